//! An allocator that counts the allocations of each thread, for tests of paths that do not allocate. It is the global
//! allocator of the program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to `System` with the arguments that it was given, so that its guarantees are those of
// `System`. Counting touches a thread-local cell that is initialized at compile time and has no destructor; it neither
// allocates nor unwinds (`try_with` fails quietly while a thread ends).
#[allow(unsafe_code, reason = "a global allocator requires unsafe code")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller satisfies the contract of `GlobalAlloc::alloc`, which is also that of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; `block` came from `System`, since all allocations do.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations and reallocations of this thread so far.
pub(crate) fn count() -> u64 {
    ALLOCATIONS.get()
}
