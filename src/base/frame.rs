//! Frames, one at a time and in batches.

use super::code_point::LinkType;
use super::time::Timestamp;

/// One captured frame, borrowed from whoever read it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// What `data` starts with.
    pub link_type: LinkType,
    /// The octets that the capture kept.
    pub data: &'a [u8],
    /// Octets that the frame had on the wire. Values below the length of `data` are read as that length.
    pub wire_len: u32,
    /// Where it was captured: the number of the interface in its source, counted from zero.
    pub interface: u32,
}

impl<'a> Frame<'a> {
    /// An Ethernet frame that was captured whole, on interface 0.
    #[must_use]
    pub const fn ethernet(timestamp: Timestamp, data: &'a [u8]) -> Self {
        Self { timestamp, link_type: LinkType::ETHERNET, data, wire_len: data.len() as u32, interface: 0 }
    }
}

/// Where a frame lies in its [`FrameBatch`], and what was said about it.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    timestamp: Timestamp,
    start: u32,
    captured_len: u32,
    wire_len: u32,
    interface: u32,
    link_type: LinkType,
}

/// A block of bytes and the frames in it: owned, recyclable, and able to cross to another thread.
///
/// A source fills the block with one large read and appends a descriptor per frame; the frames are made while
/// iterating. Clearing keeps both allocations, so a batch in a loop allocates only until it has seen its largest
/// content. A block holds at most 4 GiB.
#[derive(Debug, Default)]
pub struct FrameBatch {
    bytes: Vec<u8>,
    descriptors: Vec<Descriptor>,
}

impl FrameBatch {
    /// An empty batch; allocates nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), descriptors: Vec::new() }
    }

    /// How many frames it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether it holds no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Forgets frames and bytes, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.descriptors.clear();
    }

    /// The frame at a place, counted from zero.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<Frame<'_>> {
        self.descriptors.get(place).map(|descriptor| self.frame(descriptor))
    }

    /// The frames in the order in which they were captured.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        self.descriptors.iter().map(|descriptor| self.frame(descriptor))
    }

    /// Appends a copy of a frame: for callers that do not read a source of this crate.
    ///
    /// # Panics
    ///
    /// If the block would exceed 4 GiB.
    pub fn push(&mut self, frame: &Frame<'_>) {
        let start = self.bytes.len();
        assert!(start + frame.data.len() <= u32::MAX as usize, "a batch holds at most 4 GiB");
        self.bytes.extend_from_slice(frame.data);
        self.describe(
            start,
            frame.data.len(),
            frame.wire_len,
            frame.timestamp,
            frame.link_type,
            frame.interface,
        );
    }

    /// The bytes that frames are described in; a source reads into them.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a frame that lies in the block's bytes already.
    #[inline]
    pub(crate) fn describe(
        &mut self,
        start: usize,
        captured_len: usize,
        wire_len: u32,
        timestamp: Timestamp,
        link_type: LinkType,
        interface: u32,
    ) {
        debug_assert!(start + captured_len <= self.bytes.len());
        self.descriptors.push(Descriptor {
            timestamp,
            start: start as u32,
            captured_len: captured_len as u32,
            wire_len: wire_len.max(captured_len as u32),
            interface,
            link_type,
        });
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
    fn pushed_frames_come_back_in_order() {
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
    fn the_wire_length_is_never_below_the_captured_one() {
        let mut batch = FrameBatch::new();
        batch.push(&Frame { wire_len: 2, ..Frame::ethernet(Timestamp::ZERO, &[0; 9]) });
        assert_eq!(batch.get(0).unwrap().wire_len, 9);
    }
}
