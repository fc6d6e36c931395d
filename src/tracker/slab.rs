//! A table that grows by segments: nothing that lies in it ever moves, and growing never pauses.

/// Entries of a segment, as a power of two.
const SEGMENT_BITS: u32 = 12;

/// Entries of a segment.
pub(super) const SEGMENT_LEN: usize = 1 << SEGMENT_BITS;

/// A vector of segments. Slots are handed out in order; a slot once handed out stays valid.
#[derive(Debug)]
pub(super) struct Slab<T> {
    segments: Vec<Vec<T>>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { segments: Vec::new() }
    }

    /// Slots handed out.
    pub(super) fn len(&self) -> usize {
        self.segments.last().map_or(0, |last| (self.segments.len() - 1) * SEGMENT_LEN + last.len())
    }

    /// Whether the next push needs a segment of memory.
    pub(super) fn is_full(&self) -> bool {
        self.segments.last().is_none_or(|last| last.len() == SEGMENT_LEN)
    }

    /// Appends an entry. The memory of a segment is reserved at once but touched one entry at a time.
    pub(super) fn push(&mut self, entry: T) -> u32 {
        let slot = self.len() as u32;
        if self.is_full() {
            self.segments.push(Vec::with_capacity(SEGMENT_LEN));
        }
        if let Some(last) = self.segments.last_mut() {
            last.push(entry);
        }
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
        self.segments.get((slot >> SEGMENT_BITS) as usize)?.get(slot as usize % SEGMENT_LEN)
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
            assert_eq!(slab.push(value), value);
        }
        *slab.at_mut(SEGMENT_LEN as u32) += 1;
        assert_eq!(*slab.at(SEGMENT_LEN as u32), SEGMENT_LEN as u32 + 1);
        assert_eq!(slab.get(2 * SEGMENT_LEN as u32), Some(&(2 * SEGMENT_LEN as u32)));
        assert_eq!(slab.get(2 * SEGMENT_LEN as u32 + 1), None);
        assert_eq!(slab.len(), 2 * SEGMENT_LEN + 1);
    }
}
