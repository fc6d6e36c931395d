//! The pool's own account: what it holds, under its cap and the budget.

use super::outcome::Cap;
use crate::base::{Account, Budget};

#[derive(Debug)]
pub(super) struct Memory {
    budget: Budget,
    held: u64,
    max: u64,
}

impl Memory {
    pub(super) const fn new(budget: Budget, max: u64) -> Self {
        Self { budget, held: 0, max }
    }

    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    pub(super) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes bytes, or says what is in the way.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), Cap> {
        if self.held.saturating_add(bytes) > self.max {
            return Err(Cap::Bytes);
        }
        if !self.budget.charge(Account::Fragments, bytes) {
            return Err(Cap::Budget);
        }
        self.held += bytes;
        Ok(())
    }

    /// Gives bytes back.
    pub(super) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held);
        self.held = self.held.saturating_sub(bytes);
        self.budget.release(Account::Fragments, bytes);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.budget.release(Account::Fragments, self.held);
    }
}
