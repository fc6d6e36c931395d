//! A table that grows by segments: nothing that lies in it ever moves, and growing never pauses for long.

/// Entries of a segment, as a power of two.
const SEGMENT_BITS: u32 = 10;

/// Entries of a segment.
pub(super) const SEGMENT_LEN: usize = 1 << SEGMENT_BITS;

/// What an entry is before it is used.
pub(super) trait Vacant {
    fn vacant() -> Self;
}

impl<S> Vacant for Option<S> {
    fn vacant() -> Self {
        None
    }
}

/// A vector of segments. Slots are handed out in order; a slot once handed out stays valid.
#[derive(Debug)]
pub(super) struct Slab<T> {
    // Arrays behind thin pointers: one load and one check less per access than with vectors.
    segments: Vec<Box<[T; SEGMENT_LEN]>>,
    len: usize,
}

impl<T: Vacant> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { segments: Vec::new(), len: 0 }
    }

    /// Slots handed out.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether the next push needs a segment of memory.
    pub(super) const fn is_full(&self) -> bool {
        self.len == self.segments.len() * SEGMENT_LEN
    }

    /// Appends an entry, and before it a segment if there is no room.
    pub(super) fn push(&mut self, entry: T) -> u32 {
        if self.is_full() {
            let segment: Box<[T]> = (0..SEGMENT_LEN).map(|_| T::vacant()).collect();
            let Ok(segment) = segment.try_into() else { unreachable!("it has the length of the array") };
            self.segments.push(segment);
        }
        let slot = self.len as u32;
        self.len += 1;
        *self.at_mut(slot) = entry;
        slot
    }

    /// The entry of a slot that was handed out before.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> &T {
        &self.segments[(slot >> SEGMENT_BITS) as usize][slot as usize % SEGMENT_LEN]
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        &mut self.segments[(slot >> SEGMENT_BITS) as usize][slot as usize % SEGMENT_LEN]
    }

    /// The entry of a slot, if it was ever handed out.
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        ((slot as usize) < self.len).then(|| self.at(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_run_across_segments() {
        let mut slab = Slab::new();
        for value in 0..2 * SEGMENT_LEN as u32 + 1 {
            assert_eq!(slab.is_full(), value as usize % SEGMENT_LEN == 0);
            assert_eq!(slab.push(Some(value)), value);
        }
        let last = 2 * SEGMENT_LEN as u32;
        *slab.at_mut(SEGMENT_LEN as u32) = Some(0);
        assert_eq!(*slab.at(SEGMENT_LEN as u32), Some(0));
        assert_eq!((slab.get(last), slab.get(last + 1)), (Some(&Some(last)), None));
        assert_eq!(slab.len(), 2 * SEGMENT_LEN + 1);
    }
}
