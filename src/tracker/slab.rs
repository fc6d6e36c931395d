//! A table that grows by segments of entries: entries never move, and growth takes a bounded number of steps.

use super::segments::Segments;

/// Number of entries in a segment, as the exponent of a power of two.
const SEGMENT_BITS: u32 = 10;

/// Number of entries in a segment.
pub(super) const SEGMENT_LEN: usize = 1 << SEGMENT_BITS;

/// Types with a value for entries of a [`Slab`] that are not in use yet.
pub(super) trait Vacant {
    fn vacant() -> Self;
}

impl<T: Default> Vacant for T {
    fn vacant() -> Self {
        Self::default()
    }
}

/// A table of entries in segments of equal length. Slots are allocated in order, and stay valid once allocated.
#[derive(Debug)]
pub(super) struct Slab<T> {
    segments: Segments<T, SEGMENT_LEN>,
    len: usize,
}

impl<T> Slab<T> {
    /// Creates an empty table, whose segments are in huge pages on request.
    pub(super) const fn new(in_huge_pages: bool) -> Self {
        Self { segments: Segments::new(in_huge_pages), len: 0 }
    }

    /// Returns the number of allocated slots.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the last segment is full, so that the next push allocates a segment.
    pub(super) const fn is_full(&self) -> bool {
        self.len == self.segments.len() * SEGMENT_LEN
    }

    /// Appends an entry and returns its slot. Allocates a segment first if the last one is full.
    pub(super) fn push(&mut self, entry: T) -> u32
    where
        T: Vacant,
    {
        if self.is_full() {
            self.segments.push(T::vacant);
        }
        let slot = self.len as u32;
        self.len += 1;
        *self.at_mut(slot) = entry;
        slot
    }

    /// Returns the entry in an allocated slot.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> &T {
        &self.segments.at((slot >> SEGMENT_BITS) as usize)[slot as usize % SEGMENT_LEN]
    }

    /// Returns the entry in an allocated slot as a mutable reference.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        &mut self.segments.at_mut((slot >> SEGMENT_BITS) as usize)[slot as usize % SEGMENT_LEN]
    }

    /// Returns the entry in a slot, if the slot was ever allocated.
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        ((slot as usize) < self.len).then(|| self.at(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_numbers_continue_across_segments() {
        let mut slab = Slab::new(false);
        for value in 0..2 * SEGMENT_LEN as u32 + 1 {
            assert_eq!(slab.is_full(), (value as usize).is_multiple_of(SEGMENT_LEN));
            assert_eq!(slab.push(Some(value)), value);
        }
        let last = 2 * SEGMENT_LEN as u32;
        *slab.at_mut(SEGMENT_LEN as u32) = Some(0);
        assert_eq!(*slab.at(SEGMENT_LEN as u32), Some(0));
        assert_eq!((slab.get(last), slab.get(last + 1)), (Some(&Some(last)), None));
        assert_eq!(slab.len(), 2 * SEGMENT_LEN + 1);
    }
}
