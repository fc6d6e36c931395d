//! Memory of captures that are read together: one limit for all of these captures, charged to the budget.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::SourceConfig;
use super::storage::Storage;
use crate::base::{Account, Allowance, StopHandle};

/// Divisor of the budget: all captures together may use a quarter of it, so that memory remains for the
/// layers above.
const BUDGET_PART: u64 = 4;

/// Memory of all captures that are read together. Clones are handles to the same account.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    shared: Arc<Mutex<Share>>,
    max_bytes: u64,
    /// Handle that ends all captures that are read together once it is set.
    stop: StopHandle,
    /// Inputs that are not files of the operating system.
    storage: Option<Arc<dyn Storage>>,
}

#[derive(Debug)]
struct Share {
    /// Bytes that are charged to the budget: used bytes and reserved bytes.
    allowance: Allowance,
    used_bytes: u64,
    reserved_bytes: u64,
}

/// Request for memory that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) needed_bytes: u64,
    /// Memory limit for all captures together, in bytes.
    pub(super) max_bytes: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed_bytes, max_bytes } = self;
        write!(
            f,
            "no memory is available for {needed_bytes} more bytes; the limit for all captures together is {max_bytes} bytes"
        )
    }
}

impl std::error::Error for Refused {}

impl Memory {
    pub(super) fn new(config: &SourceConfig) -> Self {
        let max_bytes =
            config.resources.limits.source_bytes_max.min(config.resources.budget.limit() / BUDGET_PART);
        let allowance = Allowance::new(config.resources.budget.clone(), Account::Sources, max_bytes);
        Self {
            shared: Arc::new(Mutex::new(Share { allowance, used_bytes: 0, reserved_bytes: 0 })),
            max_bytes,
            stop: config.stop.clone().unwrap_or_default(),
            storage: config.storage.clone(),
        }
    }

    /// Returns the handle that ends all captures that are read together.
    pub(super) const fn stop(&self) -> &StopHandle {
        &self.stop
    }

    /// Returns the inputs that are not files of the operating system.
    pub(super) const fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.storage.as_ref()
    }

    /// Returns the memory limit for all captures together, in bytes.
    pub(super) const fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the number of bytes that all captures together use.
    pub(super) fn used_bytes(&self) -> u64 {
        self.share().used_bytes
    }

    /// Creates an empty charge, to which the memory of one part of a capture is added.
    pub(super) fn charge(&self) -> Charge {
        Charge { memory: self.clone(), bytes: 0 }
    }

    /// Reserves memory for captures, so that it is available even if other layers use the rest of the budget.
    /// Reserves nothing if the budget does not allow all of `bytes`.
    pub(super) fn reserve(&self, bytes: u64) {
        let mut share = self.share();
        let bytes = bytes.min(self.max_bytes);
        let missing = bytes.saturating_sub(share.allowance.held_bytes());
        if share.allowance.take(missing).is_ok() {
            share.reserved_bytes = bytes;
        }
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        // The sums are consistent even if a holder of the lock panicked.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: u64) -> Result<(), Refused> {
        let mut share = self.share();
        let used_bytes = share.used_bytes.saturating_add(bytes);
        let missing = used_bytes.saturating_sub(share.allowance.held_bytes());
        let refused = Refused { needed_bytes: bytes, max_bytes: self.max_bytes };
        if missing > 0 {
            share.allowance.take(missing).map_err(|_| refused)?;
        }
        share.used_bytes = used_bytes;
        Ok(())
    }

    fn give(&self, bytes: u64) {
        let mut share = self.share();
        share.used_bytes = share.used_bytes.saturating_sub(bytes);
        let spare = share.allowance.held_bytes() - share.used_bytes.max(share.reserved_bytes);
        share.allowance.give(spare);
    }
}

/// Charge for the memory of one part of a capture; the charge is released on drop.
#[derive(Debug)]
pub(super) struct Charge {
    memory: Memory,
    bytes: u64,
}

impl Charge {
    /// Sets the number of bytes that are charged, more or fewer than before.
    ///
    /// # Errors
    ///
    /// Returns the refused request if the memory limit or the budget does not allow more bytes; the charge is
    /// then unchanged.
    pub(super) fn set(&mut self, bytes: u64) -> Result<(), Refused> {
        if bytes > self.bytes {
            self.memory.take(bytes - self.bytes)?;
        } else {
            self.memory.give(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Returns the number of bytes that are charged.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Increases the number of bytes that are charged by `bytes`.
    ///
    /// # Errors
    ///
    /// Same as for [`set`](Self::set).
    pub(super) fn add(&mut self, bytes: u64) -> Result<(), Refused> {
        self.set(self.bytes + bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Budget, Resources};

    #[test]
    fn all_parts_share_one_limit_and_reserved_memory_is_kept() {
        let budget = Budget::new(4000);
        let config = SourceConfig::from(Resources::default().with_budget(budget.clone()));
        let memory = Memory::new(&config);
        assert_eq!(memory.max_bytes(), 1000);
        memory.reserve(300);
        let (mut one, mut other) = (memory.charge(), memory.charge());
        assert_eq!(budget.held_by(Account::Sources), 300);
        assert_eq!((one.set(200), other.set(90), budget.held()), (Ok(()), Ok(()), 300));
        assert_eq!((one.set(900), budget.held()), (Ok(()), 990));
        assert_eq!(other.add(11), Err(Refused { needed_bytes: 11, max_bytes: 1000 }));
        assert_eq!((other.add(10), budget.held()), (Ok(()), 1000));
        assert_eq!((one.set(0), budget.held()), (Ok(()), 300));
        drop((one, other));
        assert_eq!(budget.held(), 300);
        // Others may use the rest, but not the reserved bytes.
        assert!(budget.charge(Account::Flows, 3700));
        let mut late = memory.charge();
        assert_eq!((late.set(300), late.set(301).is_err()), (Ok(()), true));
        drop((late, memory));
        assert_eq!(budget.held(), 3700);
    }
}
