//! A bound on what octets may cause: an amount to begin with, and so much more for each octet that comes.
//!
//! Compression, pointers and commands of a few octets can stand for far more than themselves. Whatever unfolds them spends
//! from a credit, so that the whole of a connection is bounded by its octets and no single message has to be.

/// What may still be spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    left: u64,
}

impl Credit {
    pub(super) const fn new(left: u64) -> Self {
        Self { left }
    }

    /// What is left.
    #[cfg(feature = "protocols")]
    pub(super) const fn left(self) -> u64 {
        self.left
    }

    #[inline]
    pub(super) const fn earn(&mut self, amount: u64) {
        self.left = self.left.saturating_add(amount);
    }

    /// Spends an amount if there is as much. Whether there was.
    #[inline]
    #[must_use]
    pub(super) const fn spend(&mut self, amount: u64) -> bool {
        let is_granted = amount <= self.left;
        if is_granted {
            self.left -= amount;
        }
        is_granted
    }
}
