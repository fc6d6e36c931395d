//! An allocator that counts the octets that are held, for tests of memory limits. The allocator is that of the whole program, so
//! such a test is a binary of its own.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to `System` with the arguments that it was given, so that its guarantees are those of
// `System`. The counts are atomic integers, which neither allocate nor unwind.
#[allow(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the promises of `GlobalAlloc::alloc`, which are those of this call.
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

/// Returns the octets that are held now.
pub(crate) fn held() -> usize {
    HELD.load(Relaxed)
}

/// Returns the octets that are held now, and counts the peak from here.
pub(crate) fn held_now() -> usize {
    let held = held();
    PEAK.store(held, Relaxed);
    held
}

/// Returns the most octets that were held since the last call of [`held_now`], beyond what was held before.
pub(crate) fn peak_since(before: usize) -> usize {
    PEAK.load(Relaxed).saturating_sub(before)
}
