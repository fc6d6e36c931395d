//! Arrays that never move once they are allocated, on request in huge pages.
//!
//! A flow table of a million flows spans more pages of 4 KiB than the processor holds translations for, so that a
//! packet of a random flow costs page table walks besides its cache misses. A page of 2 MiB needs one translation for
//! thousands of flows. The kernel provides such pages only for large aligned regions, and the arrays of the flow table
//! are smaller than one page. On request, they are therefore placed one after another in regions of their own.
//!
//! This module contains the only `unsafe` code of the crate. What it relies on:
//!
//! - Each pointer in `pointers` comes from `Box::leak` (no regions) or from [`Regions::allocate`] (with regions),
//!   which returns disjoint, aligned memory. The array behind it was initialized before the pointer was stored.
//! - Arrays are removed only by `drop`. A region is unmapped only after that, because `drop` runs before the fields are
//!   dropped. If the drop of a value panics, the remaining arrays are never dropped, and
//!   nothing refers to them.
//! - A reference to an array borrows `Segments`, as if the arrays were stored in a `Vec<Box<[T; N]>>`.

#![expect(unsafe_code, reason = "the standard library has no stable way to choose the memory of a box")]

use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapRaw};

/// Size and alignment of a huge page in bytes.
const HUGE_PAGE_LEN: usize = 2 << 20;

/// Size of a region in bytes. Only those of its pages that were used take memory.
const REGION_LEN: usize = 16 * HUGE_PAGE_LEN;

/// Size in bytes of the first region, which has ordinary pages, so that a small table takes little memory.
const FIRST_REGION_LEN: usize = 256 << 10;

/// Alignment of the first region in bytes, unless its first array needs a greater one.
const PAGE_LEN: usize = 4096;

/// Arrays of `N` values each, which never move.
#[derive(Debug)]
pub(super) struct Segments<T, const N: usize> {
    // Thin pointers need one load and one check less per access than vectors.
    pointers: Vec<NonNull<[T; N]>>,
    /// The memory of the arrays; `None` if each is a box.
    regions: Option<Regions>,
    arrays: PhantomData<[T; N]>,
}

// SAFETY: `Segments` owns its arrays and shares them with nothing, like a vector of boxes.
unsafe impl<T: Send, const N: usize> Send for Segments<T, N> {}
// SAFETY: a shared reference to `Segments` permits only shared references to its arrays.
unsafe impl<T: Sync, const N: usize> Sync for Segments<T, N> {}

impl<T, const N: usize> Segments<T, N> {
    pub(super) const fn new(in_huge_pages: bool) -> Self {
        let regions = if in_huge_pages { Some(Regions::new()) } else { None };
        Self { pointers: Vec::new(), regions, arrays: PhantomData }
    }

    /// Returns the number of arrays.
    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Appends an array of values that `value` returns. Allocates its memory.
    pub(super) fn push(&mut self, mut value: impl FnMut() -> T) {
        let pointer = match &mut self.regions {
            None => {
                let boxed: Box<[T]> = (0..N).map(|_| value()).collect();
                let Ok(boxed) = <Box<[T; N]>>::try_from(boxed) else { unreachable!("it has N values") };
                NonNull::from(Box::leak(boxed))
            }
            Some(regions) => {
                // Values without a size need no memory.
                let pointer: NonNull<T> = if size_of::<T>() == 0 {
                    NonNull::dangling()
                } else {
                    regions.allocate(Layout::new::<[T; N]>()).cast()
                };
                for index in 0..N {
                    // SAFETY: the memory is that of N values, aligned, and of nothing else. If `value` panics, the
                    // values that were written are never dropped.
                    unsafe { pointer.add(index).write(value()) };
                }
                pointer.cast()
            }
        };
        self.pointers.push(pointer);
    }

    /// Returns the array with a number below [`len`](Self::len).
    #[inline(always)]
    pub(super) fn at(&self, number: usize) -> &[T; N] {
        // SAFETY: the array is initialized and not dropped. All mutable references to it borrow `self` mutably.
        unsafe { self.pointers[number].as_ref() }
    }

    /// Returns the array with a number below [`len`](Self::len) as a mutable reference.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, number: usize) -> &mut [T; N] {
        // SAFETY: the array is initialized and not dropped. All other references to it borrow `self`, and no two
        // pointers are of the same array.
        unsafe { self.pointers[number].as_mut() }
    }
}

impl<T, const N: usize> Drop for Segments<T, N> {
    fn drop(&mut self) {
        for pointer in self.pointers.drain(..) {
            if self.regions.is_some() {
                // SAFETY: the array is initialized, nothing refers to it, and its pointer was just removed.
                unsafe { pointer.drop_in_place() };
            } else {
                // SAFETY: the pointer is of a box that `push` leaked, and was just removed.
                drop(unsafe { Box::from_raw(pointer.as_ptr()) });
            }
        }
    }
}

/// Regions of memory, all but the first one in huge pages. Memory is returned only as a whole, when they are dropped.
#[derive(Debug)]
struct Regions {
    maps: Vec<MmapRaw>,
    /// Start of the unused memory in the last region.
    next: NonNull<u8>,
    /// Size of the unused memory in the last region.
    left_len: usize,
}

impl Regions {
    const fn new() -> Self {
        Self { maps: Vec::new(), next: NonNull::dangling(), left_len: 0 }
    }

    /// Returns memory that nothing else uses, until the regions are dropped. Aborts the process if the system has none,
    /// like the allocation of a box.
    fn allocate(&mut self, layout: Layout) -> NonNull<u8> {
        assert!(layout.align() <= HUGE_PAGE_LEN, "regions are aligned to huge pages at most");
        let mut padding_len = self.next.align_offset(layout.align());
        if self.left_len < padding_len.saturating_add(layout.size()) {
            self.map(layout);
            padding_len = 0;
        }
        // SAFETY: `padding_len` and `layout.size()` together are within the unused memory of the last region.
        let (start, next) =
            unsafe { (self.next.add(padding_len), self.next.add(padding_len + layout.size())) };
        self.next = next;
        self.left_len -= padding_len + layout.size();
        start
    }

    /// Maps another region, large enough for `layout`.
    fn map(&mut self, layout: Layout) {
        let is_first = self.maps.is_empty();
        let (len, page_len) = if is_first {
            (FIRST_REGION_LEN, PAGE_LEN.max(layout.align()))
        } else {
            (REGION_LEN, HUGE_PAGE_LEN)
        };
        let len = layout.size().max(len).next_multiple_of(page_len);
        // One page more, to begin at a multiple of a page.
        let Ok(map) = MmapMut::map_anon(len + page_len) else { handle_alloc_error(layout) };
        // A kernel without huge pages refuses the advice, and the memory has ordinary pages.
        #[cfg(target_os = "linux")]
        if !is_first {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        // From here, nothing makes a reference to the octets of the map.
        let map = MmapRaw::from(map);
        let start = NonNull::new(map.as_mut_ptr()).expect("a map is not at address 0");
        // SAFETY: the map is longer than `len` by a page, and the offset is at most a page.
        self.next = unsafe { start.add(start.align_offset(page_len)) };
        self.left_len = len;
        self.maps.push(map);
    }
}

// SAFETY: `next` points into the memory that `maps` owns.
unsafe impl Send for Regions {}
// SAFETY: nothing is accessed through a shared reference.
unsafe impl Sync for Regions {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    /// Values of any alignment keep their contents while other arrays are added, and are dropped once.
    #[test]
    fn arrays_keep_their_values_and_are_dropped_once() {
        #[repr(align(64))]
        struct Value(u32, Rc<u32>);
        for in_huge_pages in [false, true] {
            let shared = Rc::new(7);
            let mut segments: Segments<Value, 100> = Segments::new(in_huge_pages);
            // More than two regions.
            let count = ((FIRST_REGION_LEN + REGION_LEN) / size_of::<[Value; 100]>() + 2) as u32 * 100;
            let mut numbers = 0..count;
            while !numbers.is_empty() {
                segments.push(|| Value(numbers.next().unwrap(), Rc::clone(&shared)));
            }
            for (number, expected) in (0..count).step_by(100).enumerate() {
                segments.at_mut(number)[99].0 += count;
                let array = segments.at(number);
                assert!((&raw const *array).is_aligned() && *array[50].1 == 7);
                assert_eq!(
                    (array[0].0, array[98].0, array[99].0),
                    (expected, expected + 98, expected + 99 + count)
                );
            }
            assert_eq!(Rc::strong_count(&shared), count as usize + 1);
            drop(segments);
            assert_eq!(Rc::strong_count(&shared), 1);
        }
    }

    #[test]
    fn all_regions_but_the_first_begin_at_a_huge_page() {
        let mut segments: Segments<u8, { FIRST_REGION_LEN }> = Segments::new(true);
        for _ in 0..2 {
            segments.push(|| 7);
        }
        let regions = segments.regions.as_ref().unwrap();
        assert_eq!((regions.maps.len(), regions.left_len), (2, REGION_LEN - FIRST_REGION_LEN));
        assert!((&raw const *segments.at(1)).addr().is_multiple_of(HUGE_PAGE_LEN));
        assert!(regions.maps[0].len() <= FIRST_REGION_LEN + PAGE_LEN);
    }

    #[test]
    fn values_may_have_a_greater_alignment_than_a_page() {
        #[repr(align(8192))]
        struct Aligned(u8);
        let mut segments: Segments<Aligned, 8> = Segments::new(true);
        for number in 0..10 {
            segments.push(|| Aligned(number));
        }
        for number in 0..10 {
            let array = segments.at(number);
            assert!((&raw const *array).is_aligned() && array[7].0 == number as u8);
        }
    }

    #[test]
    fn an_array_larger_than_a_region_gets_its_own() {
        let mut segments: Segments<[u64; 1 << 12], 1025> = Segments::new(true);
        for number in 0..2 {
            segments.push(|| [number; 1 << 12]);
        }
        assert_eq!((segments.at(0)[1024][4095], segments.at(1)[0][0]), (0, 1));
    }

    #[test]
    fn arrays_without_memory_have_no_region() {
        let mut segments: Segments<(), 1024> = Segments::new(true);
        segments.push(|| ());
        assert_eq!(segments.at(0).len(), 1024);
        assert!(segments.regions.as_ref().unwrap().maps.is_empty());
    }

    #[test]
    fn a_panic_while_an_array_is_filled_adds_no_array() {
        for in_huge_pages in [false, true] {
            let mut segments: Segments<String, 4> = Segments::new(in_huge_pages);
            segments.push(|| "kept".into());
            let mut filled = 0;
            let pushed = catch_unwind(AssertUnwindSafe(|| {
                segments.push(|| {
                    filled += 1;
                    assert!(filled < 3, "the third value panics");
                    String::new()
                });
            }));
            assert!(pushed.is_err());
            assert_eq!((segments.len(), segments.at(0)[3].as_str()), (1, "kept"));
        }
    }

    #[test]
    fn arrays_move_between_threads() {
        let mut segments: Segments<String, 2> = Segments::new(true);
        segments.push(|| "from here".into());
        let moved = std::thread::spawn(move || {
            segments.push(|| "from there".into());
            segments
        });
        let segments = moved.join().unwrap();
        assert_eq!((segments.at(0)[0].as_str(), segments.at(1)[1].as_str()), ("from here", "from there"));
    }
}
