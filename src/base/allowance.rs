//! Memory charged by one layer, under the layer's own cap and the shared budget.

use super::budget::{Account, Budget};

/// Reason why a charge was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The layer's own cap would be exceeded.
    Cap,
    /// The budget refused the charge.
    Budget,
}

/// The bytes that a layer holds. They are released when this is dropped.
#[derive(Debug)]
pub(crate) struct Allowance {
    budget: Budget,
    account: Account,
    held_bytes: u64,
    max_bytes: u64,
    peak_bytes: u64,
    /// True if bytes were charged since the last call of [`clear_taken`](Self::clear_taken).
    has_taken: bool,
}

impl Allowance {
    /// Creates an allowance of at most `max_bytes` that holds nothing yet.
    pub(crate) const fn new(budget: Budget, account: Account, max_bytes: u64) -> Self {
        Self { budget, account, held_bytes: 0, max_bytes, peak_bytes: 0, has_taken: false }
    }

    pub(crate) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(crate) const fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Returns whether bytes were charged since the last call of [`clear_taken`](Self::clear_taken).
    #[inline(always)]
    pub(crate) const fn has_taken(&self) -> bool {
        self.has_taken
    }

    /// Forgets that bytes were charged.
    #[inline(always)]
    pub(crate) const fn clear_taken(&mut self) {
        self.has_taken = false;
    }

    pub(crate) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Charges bytes for an allocation, or returns which limit refuses them.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), Refusal> {
        if self.held_bytes.saturating_add(bytes) > self.max_bytes {
            return Err(Refusal::Cap);
        }
        if !self.budget.charge(self.account, bytes) {
            return Err(Refusal::Budget);
        }
        self.has_taken = true;
        self.held_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        Ok(())
    }

    /// Releases the bytes of an allocation.
    pub(crate) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held_bytes, "released memory was taken before");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        self.budget.release(self.account, bytes);
    }

    /// Returns whether the budget requires this layer to release memory.
    pub(crate) fn must_release(&self) -> bool {
        self.held_bytes > 0 && self.budget.is_pressed(self.account)
    }

    /// Returns whether more than seven eighths of the layer's own cap are held, or the budget requires this layer to
    /// release memory.
    pub(crate) fn is_pressed(&self) -> bool {
        self.held_bytes > self.max_bytes - self.max_bytes / 8 || self.must_release()
    }

    /// Charges bytes for optional data. Optional data is refused beyond half of the cap, so that it does not displace
    /// required data.
    pub(crate) fn take_spare(&mut self, bytes: u64) -> bool {
        let has_capacity = self.held_bytes.saturating_add(bytes) <= self.max_bytes / 2;
        has_capacity && !self.must_release() && self.take(bytes).is_ok()
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.budget.release(self.account, self.held_bytes);
    }
}
