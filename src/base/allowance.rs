//! What one layer has charged: under a cap of its own, and the budget.

use super::budget::{Account, Budget};

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The layer's own cap.
    Cap,
    /// The budget.
    Budget,
}

/// The bytes that a layer holds, which are given back when it goes.
#[derive(Debug)]
pub(crate) struct Allowance {
    budget: Budget,
    account: Account,
    held_bytes: u64,
    max_bytes: u64,
    peak_bytes: u64,
}

impl Allowance {
    /// Nothing yet, and at most `max_bytes`.
    pub(crate) const fn new(budget: Budget, account: Account, max_bytes: u64) -> Self {
        Self { budget, account, held_bytes: 0, max_bytes, peak_bytes: 0 }
    }

    pub(crate) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(crate) const fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    pub(crate) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes bytes for an allocation, or says what is in the way.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), Refusal> {
        if self.held_bytes.saturating_add(bytes) > self.max_bytes {
            return Err(Refusal::Cap);
        }
        if !self.budget.charge(self.account, bytes) {
            return Err(Refusal::Budget);
        }
        self.held_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        Ok(())
    }

    /// Gives the bytes of an allocation back.
    pub(crate) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held_bytes, "what is given back was taken");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        self.budget.release(self.account, bytes);
    }

    /// Whether the budget asks for some of it back.
    pub(crate) fn is_asked_back(&self) -> bool {
        self.held_bytes > 0 && self.budget.is_pressed(self.account)
    }

    /// Whether nearly all of the own cap is taken, or the budget asks for some of it back.
    pub(crate) fn is_pressed(&self) -> bool {
        self.held_bytes > self.max_bytes - self.max_bytes / 8 || self.is_asked_back()
    }

    /// Takes bytes for what can be done without, of which there is never more than half of the cap: what is needed more is not
    /// given up for it.
    pub(crate) fn take_spare(&mut self, bytes: u64) -> bool {
        let has_room = self.held_bytes.saturating_add(bytes) <= self.max_bytes / 2;
        has_room && !self.is_asked_back() && self.take(bytes).is_ok()
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.budget.release(self.account, self.held_bytes);
    }
}
