//! Captured frames, single and in batches.

use super::code_point::LinkType;
use super::time::Timestamp;

/// One captured frame, borrowed from its reader.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Time of capture.
    pub timestamp: Timestamp,
    /// Type of the header at the start of `data`.
    pub link_type: LinkType,
    /// The captured octets of the frame.
    pub data: &'a [u8],
    /// Number of octets that the frame had on the wire, which counters add up. A value below the length of `data`
    /// contradicts it: it is counted, but all of `data` is decoded.
    pub wire_len: u32,
    /// Index of the capturing interface within its source, counted from zero.
    pub interface: u32,
}

impl<'a> Frame<'a> {
    /// Creates a frame with an Ethernet header, captured completely on interface 0.
    #[must_use]
    pub const fn ethernet(timestamp: Timestamp, data: &'a [u8]) -> Self {
        Self { timestamp, link_type: LinkType::ETHERNET, data, wire_len: data.len() as u32, interface: 0 }
    }
}

/// Position of a frame in the block of its [`FrameBatch`], and the frame's metadata.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    timestamp: Timestamp,
    start: u32,
    captured_len: u32,
    wire_len: u32,
    interface: u32,
    link_type: LinkType,
}

/// A block of bytes and the frames in it: owned, reusable, and `Send`.
///
/// A source fills the block with one large read and appends a descriptor per frame; the frames are created during
/// iteration. Clearing keeps both allocations and the length of the block: bytes beyond `filled_len` are stale, so
/// that a read into them needs no zeroing. A batch that is reused in a loop stops allocating once it has held its
/// largest content. A block holds at most 4 GiB.
#[derive(Debug, Default)]
pub struct FrameBatch {
    bytes: Vec<u8>,
    filled_len: usize,
    descriptors: Vec<Descriptor>,
}

/// Range of octets in the block of a [`FrameBatch`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// The range without octets.
    pub(crate) const EMPTY: Self = Self { start: 0, len: 0 };
}

/// The part of a [`FrameBatch`] that collects descriptors while its bytes are being read.
#[derive(Debug)]
pub(crate) struct Descriptors<'a> {
    filled_len: usize,
    list: &'a mut Vec<Descriptor>,
}

impl Descriptors<'_> {
    /// Appends the descriptor of a frame whose octets are already in the block.
    #[inline]
    pub(crate) fn push(
        &mut self,
        start: usize,
        captured_len: u32,
        wire_len: u32,
        timestamp: Timestamp,
        link_type: LinkType,
        interface: u32,
    ) {
        debug_assert!(start + captured_len as usize <= self.filled_len);
        self.list.push(Descriptor {
            timestamp,
            start: start as u32,
            captured_len,
            wire_len,
            interface,
            link_type,
        });
    }
}

impl FrameBatch {
    /// Creates an empty batch of frames without allocating.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), filled_len: 0, descriptors: Vec::new() }
    }

    /// Returns the number of frames in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Returns whether there are no frames in the batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Removes all frames and bytes from the batch, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.filled_len = 0;
        self.descriptors.clear();
    }

    /// Returns the latest timestamp of the frames in the batch; zero if there are none.
    #[inline]
    pub(crate) fn latest(&self) -> Timestamp {
        self.descriptors.iter().fold(Timestamp::ZERO, |latest, descriptor| latest.max(descriptor.timestamp))
    }

    /// Returns the number of bytes that the allocations of the batch take.
    pub(crate) const fn held_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.descriptors.capacity() * size_of::<Descriptor>()) as u64
    }

    /// Returns the frame at index `place` of the batch, counted from zero.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<Frame<'_>> {
        self.descriptors.get(place).map(|descriptor| self.frame(descriptor))
    }

    /// Iterates over the frames of the batch in the order in which they were captured.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        self.descriptors.iter().map(|descriptor| self.frame(descriptor))
    }

    /// Appends a copy of a frame, for callers that do not use a source of this crate.
    ///
    /// # Panics
    ///
    /// Panics if the block would exceed 4 GiB.
    pub fn push(&mut self, frame: &Frame<'_>) {
        let start = self.filled_len;
        assert!(start + frame.data.len() <= u32::MAX as usize, "a batch holds at most 4 GiB");
        self.append(frame.data);
        self.split().1.push(
            start,
            frame.data.len() as u32,
            frame.wire_len,
            frame.timestamp,
            frame.link_type,
            frame.interface,
        );
    }

    /// Appends bytes to the block of the batch.
    pub(crate) fn append(&mut self, data: &[u8]) {
        let end = self.filled_len + data.len();
        if let Some(space) = self.bytes.get_mut(self.filled_len..end) {
            space.copy_from_slice(data);
        } else {
            self.bytes.truncate(self.filled_len);
            self.bytes.extend_from_slice(data);
        }
        self.filled_len = end;
    }

    /// Returns the filled bytes of the block, and the list to which descriptors of frames in them are appended.
    pub(crate) fn split(&mut self) -> (&[u8], Descriptors<'_>) {
        let bytes = self.bytes.get(..self.filled_len).unwrap_or_default();
        (bytes, Descriptors { filled_len: self.filled_len, list: &mut self.descriptors })
    }

    /// Returns the filled bytes of the block.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.filled_len).unwrap_or_default()
    }

    /// Returns the unfilled part of the block, which is first extended to `block_len` octets if it is shorter. The
    /// content of this part is stale. After octets are written to it, [`Self::fill`] must be called with their
    /// number.
    pub(crate) fn space(&mut self, block_len: usize) -> &mut [u8] {
        if self.bytes.len() < block_len {
            // Reserves exactly the requested size, because that is what was charged.
            self.bytes.reserve_exact(block_len - self.bytes.len());
            self.bytes.resize(block_len, 0);
        }
        self.bytes.get_mut(self.filled_len..block_len).unwrap_or_default()
    }

    /// Marks the first `len` octets of the unfilled part, [`Self::space`], as filled.
    pub(crate) fn fill(&mut self, len: usize) {
        self.filled_len = (self.filled_len + len).min(self.bytes.len());
    }

    /// Removes the first `len` octets of the block of a batch that has no descriptors.
    pub(crate) fn drop_front(&mut self, len: usize) {
        debug_assert!(self.descriptors.is_empty() && len <= self.filled_len);
        self.bytes.copy_within(len.min(self.filled_len)..self.filled_len, 0);
        self.filled_len -= len.min(self.filled_len);
    }

    /// Returns the range in the block of the octets of the frame at index `place`.
    #[inline]
    pub(crate) fn span(&self, place: usize) -> Span {
        self.descriptors
            .get(place)
            .map_or(Span::EMPTY, |descriptor| Span { start: descriptor.start, len: descriptor.captured_len })
    }

    /// Sets the timestamp of each frame to that which a function returns for the frame.
    pub(crate) fn set_times(&mut self, time: impl Fn(&Frame<'_>) -> Timestamp) {
        for place in 0..self.descriptors.len() {
            let Some(timestamp) = self.get(place).map(|frame| time(&frame)) else { return };
            if let Some(descriptor) = self.descriptors.get_mut(place) {
                descriptor.timestamp = timestamp;
            }
        }
    }

    /// Returns the filled bytes of the block for modification.
    #[cfg(all(feature = "tun", target_os = "linux"))]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.filled_len).unwrap_or_default()
    }

    /// Returns the positions in the block of the octets of the frame at index `place`.
    #[cfg(all(feature = "tun", target_os = "linux"))]
    pub(crate) fn range(&self, place: usize) -> std::ops::Range<usize> {
        let Span { start, len } = self.span(place);
        start as usize..start as usize + len as usize
    }

    /// Returns the octets of a range of the block.
    #[inline]
    pub(crate) fn octets(&self, span: Span) -> &[u8] {
        self.bytes.get(span.start as usize..span.start as usize + span.len as usize).unwrap_or_default()
    }

    #[inline]
    fn frame(&self, descriptor: &Descriptor) -> Frame<'_> {
        let start = descriptor.start as usize;
        let data = self.bytes.get(start..start + descriptor.captured_len as usize).unwrap_or_default();
        Frame {
            timestamp: descriptor.timestamp,
            link_type: descriptor.link_type,
            data,
            wire_len: descriptor.wire_len,
            interface: descriptor.interface,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_frames_are_returned_in_order() {
        let mut batch = FrameBatch::new();
        for length in 1..4 {
            let data = vec![length; usize::from(length)];
            batch.push(&Frame { interface: length.into(), ..Frame::ethernet(Timestamp::ZERO, &data) });
        }
        let lengths: Vec<_> = batch.iter().map(|frame| (frame.data.len(), frame.interface)).collect();
        assert_eq!(lengths, [(1, 1), (2, 2), (3, 3)]);
        assert!(batch.get(3).is_none());
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn a_cleared_batch_keeps_its_memory_and_hides_its_content() {
        let mut batch = FrameBatch::new();
        batch.push(&Frame::ethernet(Timestamp::ZERO, &[1; 100]));
        batch.clear();
        batch.push(&Frame::ethernet(Timestamp::ZERO, &[2; 60]));
        batch.push(&Frame::ethernet(Timestamp::ZERO, &[3; 60]));
        assert_eq!(batch.iter().map(|frame| frame.data.to_vec()).collect::<Vec<_>>(), [[2; 60], [3; 60]]);
        assert_eq!(batch.bytes().len(), 120);
    }

    #[test]
    fn a_wire_length_below_the_captured_one_is_kept() {
        let mut batch = FrameBatch::new();
        batch.push(&Frame { wire_len: 2, ..Frame::ethernet(Timestamp::ZERO, &[0; 9]) });
        let frame = batch.get(0).unwrap();
        assert_eq!((frame.wire_len, frame.data.len()), (2, 9));
    }
}
