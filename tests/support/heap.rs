//! An allocator that counts allocated bytes, for tests of memory limits. It is the global allocator of the program, so
//! each such test is a separate binary.

#![allow(dead_code, reason = "each test uses only some of the functions")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to `System` with the arguments that it was given, so that its guarantees are those of
// `System`. The counts are atomic integers, which neither allocate nor unwind.
#[allow(unsafe_code, reason = "an allocator requires unsafe code")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller satisfies the contract of `GlobalAlloc::alloc`, which is also that of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above; `block` came from `System`, since all allocations do.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocated bytes.
pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

/// Returns the number of allocated bytes and restarts the measurement of the peak.
pub(crate) fn held_now() -> usize {
    let held = held();
    PEAK.store(held, Relaxed);
    held
}

/// Returns by how many bytes the peak since the last call of [`held_now`] exceeds `before`.
pub(crate) fn peak_since(before: usize) -> usize {
    PEAK.load(Relaxed).saturating_sub(before)
}
