//! Memory that one layer charges, limited by the cap of the layer and by the shared budget.

use super::budget::{Account, Budget};

/// Reason why a memory charge was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The charge would exceed the cap of the layer.
    Cap,
    /// The shared memory budget refused the charge.
    Budget,
}

/// The bytes of memory that a layer has charged. Dropping the allowance releases them.
#[derive(Debug)]
pub(crate) struct Allowance {
    budget: Budget,
    account: Account,
    held_bytes: u64,
    max_bytes: u64,
    peak_bytes: u64,
    /// True if memory was charged since the last call of [`clear_taken`](Self::clear_taken).
    has_taken: bool,
}

impl Allowance {
    /// Creates an allowance of at most `max_bytes`, without any charged bytes.
    pub(crate) const fn new(budget: Budget, account: Account, max_bytes: u64) -> Self {
        Self { budget, account, held_bytes: 0, max_bytes, peak_bytes: 0, has_taken: false }
    }

    pub(crate) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(crate) const fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Returns whether memory was charged since the last call of [`clear_taken`](Self::clear_taken).
    #[inline(always)]
    pub(crate) const fn has_taken(&self) -> bool {
        self.has_taken
    }

    /// Resets the flag that [`has_taken`](Self::has_taken) returns.
    #[inline(always)]
    pub(crate) const fn clear_taken(&mut self) {
        self.has_taken = false;
    }

    pub(crate) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Charges bytes of memory for an allocation. Returns an error that states which limit refuses the charge.
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

    /// Releases bytes that were charged for an allocation.
    pub(crate) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held_bytes, "released memory was taken before");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        self.budget.release(self.account, bytes);
    }

    /// Returns whether the shared budget requires the layer to release memory.
    pub(crate) fn must_release(&self) -> bool {
        self.held_bytes > 0 && self.budget.is_pressed(self.account)
    }

    /// Returns whether the layer holds more than seven eighths of its cap, or the shared budget requires it to
    /// release memory.
    pub(crate) fn is_pressed(&self) -> bool {
        self.held_bytes > self.max_bytes - self.max_bytes / 8 || self.must_release()
    }

    /// Charges bytes of memory for optional data, and returns whether they were charged. Optional data is refused
    /// beyond half of the layer's cap, so that it does not displace required data.
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
