//! The reassembler's own account: what it has allocated, under its cap and the budget.

use crate::base::{Account, Budget};

#[derive(Debug)]
pub(super) struct Memory {
    budget: Budget,
    held_bytes: u64,
    max_bytes: u64,
    peak_bytes: u64,
}

impl Memory {
    pub(super) const fn new(budget: Budget, max_bytes: u64) -> Self {
        Self { budget, held_bytes: 0, max_bytes, peak_bytes: 0 }
    }

    pub(super) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(super) const fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Whether so little is left that the oldest holds should go.
    pub(super) const fn is_pressed(&self) -> bool {
        self.held_bytes > self.max_bytes - self.max_bytes / 8
    }

    /// Takes bytes for an allocation, or refuses it.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let fits = self.held_bytes.saturating_add(bytes) <= self.max_bytes;
        if !fits || !self.budget.charge(Account::Streams, bytes) {
            return false;
        }
        self.held_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        true
    }

    /// Takes bytes for what can be done without, of which there is never more than half of all: what waits is not given up
    /// for it.
    pub(super) fn take_spare(&mut self, bytes: u64) -> bool {
        self.held_bytes.saturating_add(bytes) <= self.max_bytes / 2 && self.take(bytes)
    }

    /// Gives the bytes of an allocation back.
    pub(super) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held_bytes, "what is given back was taken");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        self.budget.release(Account::Streams, bytes);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.budget.release(Account::Streams, self.held_bytes);
    }
}
