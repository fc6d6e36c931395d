//! What a window has charged to the budget.

use crate::base::{Account, Budget};

#[derive(Debug)]
pub(super) struct Memory {
    budget: Budget,
    held: u64,
}

impl Memory {
    pub(super) const fn new(budget: Budget) -> Self {
        Self { budget, held: 0 }
    }

    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    pub(super) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes bytes, or nothing. Whether it did.
    #[must_use]
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let is_taken = self.budget.charge(Account::Dedup, bytes);
        self.held += if is_taken { bytes } else { 0 };
        is_taken
    }

    /// Gives bytes back.
    pub(super) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held);
        self.held = self.held.saturating_sub(bytes);
        self.budget.release(Account::Dedup, bytes);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.budget.release(Account::Dedup, self.held);
    }
}
