//! An allocator that counts what each thread has allocated, for tests of memory limits, which run at the same time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated, without those that it has freed, and their peak.
    static COUNTS: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn add(len: isize) {
    // The counts of a thread that ends may be gone.
    let _ = COUNTS.try_with(|counts| {
        let (held, peak) = counts.get();
        counts.set((held + len, peak.max(held + len)));
    });
}

// SAFETY: every call goes to `System` with the arguments that it was given, so that its guarantees are those of
// `System`. The counts are in a cell without a destructor, which neither allocates nor unwinds.
#[allow(unsafe_code, reason = "an allocator requires unsafe code")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller satisfies the contract of `GlobalAlloc::alloc`, which is also that of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: as above; `block` came from `System`, since all allocations do.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory in bytes that the budget of a command with files does not count: 128 open files with buffers of 16 KiB, and what
/// `docs/limits.md` states for each pipeline.
pub(crate) const UNCOUNTED_LEN: usize = (128 * (16 << 10)) + (2 << 20);

/// Returns by how many bytes the memory of this thread exceeds at its peak during a call what it is before, and the result.
pub(crate) fn peak_of<T>(call: impl FnOnce() -> T) -> (usize, T) {
    let (before, _) = COUNTS.get();
    COUNTS.set((before, before));
    let result = call();
    let (_, peak) = COUNTS.get();
    ((peak - before) as usize, result)
}
