//! Memory of the ranges that are read from objects.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

/// Length of the first range of a reader in octets, and of each range if little memory is available.
pub(super) const RANGE_LEN_MIN: u64 = 256 << 10;

/// Maximum length of a range in octets.
pub(super) const RANGE_LEN_MAX: u64 = 8 << 20;

/// Ratio of the lengths of a range and the one before it.
pub(super) const RANGE_GROWTH: u64 = 4;

/// Memory of the ranges of all readers of a scan. It limits the length of ranges, but never refuses one of the least length.
pub(super) struct RangeMemory {
    held_bytes: AtomicU64,
    max_bytes: u64,
    reservation: MemoryReservation,
}

impl fmt::Debug for RangeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeMemory")
            .field("held_bytes", &self.held_bytes)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

impl RangeMemory {
    /// Creates an account, which is charged to a pool.
    pub(super) fn new(pool: &Arc<dyn MemoryPool>, max_bytes: u64) -> Arc<Self> {
        let reservation = MemoryConsumer::new("flowgauge objects").register(pool);
        Arc::new(Self { held_bytes: AtomicU64::new(0), max_bytes, reservation })
    }

    /// Charges a range of at most `len` octets, or of a shorter length that the memory permits.
    pub(super) fn charge(self: &Arc<Self>, len: u64) -> RangeCharge {
        let mut len = len.min(RANGE_LEN_MAX);
        while len > RANGE_LEN_MIN {
            let before = self.held_bytes.fetch_add(len, Relaxed);
            if before + len <= self.max_bytes && self.reservation.try_grow(len as usize).is_ok() {
                return RangeCharge { memory: Arc::clone(self), len };
            }
            self.held_bytes.fetch_sub(len, Relaxed);
            len = (len / RANGE_GROWTH).max(RANGE_LEN_MIN);
        }
        self.held_bytes.fetch_add(len, Relaxed);
        self.reservation.grow(len as usize);
        RangeCharge { memory: Arc::clone(self), len }
    }
}

/// Charge of a range, which is released on drop.
#[derive(Debug)]
pub(super) struct RangeCharge {
    memory: Arc<RangeMemory>,
    len: u64,
}

impl RangeCharge {
    /// Returns the length of the range in octets.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for RangeCharge {
    fn drop(&mut self) {
        self.memory.held_bytes.fetch_sub(self.len, Relaxed);
        self.memory.reservation.shrink(self.len as usize);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn ranges_are_shorter_if_memory_is_short_and_none_is_refused() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(10 << 20));
        let memory = RangeMemory::new(&pool, 64 << 20);
        let first = memory.charge(RANGE_LEN_MAX * 2);
        assert_eq!((first.len(), pool.reserved()), (RANGE_LEN_MAX, 8 << 20));
        // The pool has 2 MiB left.
        let second = memory.charge(RANGE_LEN_MAX);
        assert_eq!((second.len(), pool.reserved()), (2 << 20, 10 << 20));
        let third = memory.charge(RANGE_LEN_MAX);
        assert_eq!((third.len(), memory.charge(17).len()), (RANGE_LEN_MIN, 17));
        drop((first, second, third));
        assert_eq!((pool.reserved(), memory.held_bytes.load(Relaxed)), (0, 0));
        let memory = RangeMemory::new(&pool, 3 << 20);
        assert_eq!(memory.charge(RANGE_LEN_MAX).len(), 2 << 20);
    }
}
