//! Memory that the sink of a pipeline has allocated for open flows, as charged to the budget.

use crate::base::{Account, Budget};

/// The charge for the memory of a sink. Dropping it releases the charge.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    bytes: u64,
}

impl Held {
    pub(super) fn new(budget: Budget) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Charges what the sink has allocated since the last call, or releases the charge for what it has freed. `measure`
    /// returns the memory of the sink; it is called with the number of bytes by which that may grow.
    #[inline]
    pub(super) fn update(&mut self, measure: impl FnOnce(u64) -> u64) {
        let bytes = measure(self.budget.left(Account::Sinks));
        if bytes != self.bytes {
            self.change(bytes);
        }
    }

    #[inline(never)]
    fn change(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes > before {
            self.budget.charge_allocated(Account::Sinks, bytes - before);
        } else {
            self.budget.release(Account::Sinks, before - bytes);
        }
    }

    /// Returns whether the budget requires the sink to release memory.
    #[inline]
    pub(super) fn must_release(&self) -> bool {
        self.bytes > 0 && self.budget.is_pressed(Account::Sinks)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.release(Account::Sinks, self.bytes);
    }
}
