//! A bound on the work and memory that input may cause: an initial amount, plus an amount for each octet received.
//!
//! With compression, pointers and short commands, a few octets can expand to far more. Each decoder that expands its
//! input spends from a credit, so that the total for a connection is bounded by its octets, without a bound on each
//! message.

/// Amount of work or memory that may still be spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    left: u64,
}

crate::checkpoint::state! { struct Credit { left } }

impl Credit {
    pub(crate) const fn new(left: u64) -> Self {
        Self { left }
    }

    /// Returns the amount that may still be spent.
    pub(crate) const fn left(self) -> u64 {
        self.left
    }

    #[inline]
    pub(crate) const fn earn(&mut self, amount: u64) {
        self.left = self.left.saturating_add(amount);
    }

    /// Spends `amount` if the credit has that much left; otherwise spends nothing. Returns whether it was spent.
    #[inline]
    #[must_use]
    pub(crate) const fn spend(&mut self, amount: u64) -> bool {
        let is_granted = amount <= self.left;
        if is_granted {
            self.left -= amount;
        }
        is_granted
    }
}
