//! The latest packets of a capture, from which those of a flow are selected.

use std::collections::VecDeque;
use std::ops::Range;

use flowgauge::Interface;
use flowgauge::base::{FlowKey, Frame, FrameBatch, LinkType, Timestamp};
use flowgauge::decode::extractor::{Extractor, KeyPolicy};
use flowgauge::source::PcapngWriter;

/// Ring of the latest frames, with a limit on their octets.
///
/// A frame is copied when it is added; nothing else is computed then. [`slice`](Self::slice) reads the key of each frame.
#[derive(Debug)]
pub struct PacketRing {
    frames: VecDeque<Stored>,
    /// Octets of all frames in order, of which the oldest are replaced by the latest.
    octets: Box<[u8]>,
    /// Offset at which the next frame is written.
    end: usize,
    /// Number of frames that were removed.
    removed_count: u64,
    extractor: Extractor,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    timestamp: Timestamp,
    offset: usize,
    len: usize,
    wire_len: u32,
    interface: u32,
    link_type: LinkType,
}

impl PacketRing {
    /// Creates a ring for `octet_count` octets of frames, which are allocated at once. `policy` is that of the pipeline,
    /// so that keys are the same.
    #[must_use]
    pub fn new(octet_count: usize, policy: KeyPolicy) -> Self {
        let extractor = Extractor::new(policy);
        Self {
            frames: VecDeque::new(),
            octets: vec![0; octet_count].into(),
            end: 0,
            removed_count: 0,
            extractor,
        }
    }

    /// Adds the frames of a batch, and removes the oldest ones if there is not enough memory.
    pub fn push_batch(&mut self, batch: &FrameBatch) {
        batch.iter().for_each(|frame| self.push(&frame));
    }

    /// Adds a frame. A frame that is longer than the ring is ignored.
    pub fn push(&mut self, frame: &Frame<'_>) {
        let len = frame.data.len();
        if len > self.octets.len() {
            return;
        }
        if self.end + len > self.octets.len() {
            // The rest of the memory remains unused; the frames there are the oldest.
            while self.frames.front().is_some_and(|oldest| oldest.offset >= self.end) {
                self.remove_oldest();
            }
            self.end = 0;
        }
        let (start, end) = (self.end, self.end + len);
        // The frame that begins exactly where this one ends remains.
        while self
            .frames
            .front()
            .is_some_and(|oldest| oldest.offset < end && oldest.offset + oldest.len > start)
        {
            self.remove_oldest();
        }
        if let Some(target) = self.octets.get_mut(start..end) {
            target.copy_from_slice(frame.data);
        }
        self.end = end;
        self.frames.push_back(Stored {
            timestamp: frame.timestamp,
            offset: start,
            len,
            wire_len: frame.wire_len,
            interface: frame.interface,
            link_type: frame.link_type,
        });
    }

    /// Returns the number of frames in the ring.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    fn remove_oldest(&mut self) {
        self.frames.pop_front();
        self.removed_count += 1;
    }

    /// Returns the numbers of the frames in the ring. All frames that were added are numbered consecutively.
    pub(crate) fn numbers(&self) -> Range<u64> {
        self.removed_count..self.removed_count + self.frames.len() as u64
    }

    /// Iterates over the packets with keys among the frames with some numbers. Those that are not in the ring are skipped.
    pub(crate) fn packets(&self, numbers: Range<u64>) -> impl Iterator<Item = (Frame<'_>, FlowKey)> {
        let all = self.numbers();
        let index = |number: u64| (number.clamp(all.start, all.end) - all.start) as usize;
        let (start, end) = (index(numbers.start), index(numbers.end));
        self.frames.range(start..end.max(start)).filter_map(|stored| {
            let frame = self.frame(stored)?;
            let key = self.extractor.extract(&frame).ok()?.key;
            Some((frame, key))
        })
    }

    fn frame(&self, stored: &Stored) -> Option<Frame<'_>> {
        let data = self.octets.get(stored.offset..stored.offset + stored.len)?;
        let mut frame = Frame::ethernet(stored.timestamp, data);
        frame.wire_len = stored.wire_len;
        frame.interface = stored.interface;
        frame.link_type = stored.link_type;
        Some(frame)
    }

    /// Returns a pcapng file with the packets of a flow that the ring contains, and their number. Reads all frames of the
    /// ring. `interfaces` are those of the source.
    #[must_use]
    pub fn slice(&self, key: &FlowKey, interfaces: &[Interface]) -> (Vec<u8>, u64) {
        let mut count = 0;
        let written = PcapngWriter::new(Vec::new()).and_then(|mut writer| {
            for (frame, _) in self.packets(self.numbers()).filter(|(_, found)| found == key) {
                count += 1;
                writer.write(&frame, interfaces)?;
            }
            writer.finish()
        });
        // Writing to memory fails for no frame of a capture.
        (written.unwrap_or_default(), count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_frames_remain() {
        let mut ring = PacketRing::new(1000, KeyPolicy::DEFAULT);
        let mut expected: VecDeque<Vec<u8>> = VecDeque::new();
        for number in 0_usize..500 {
            let data = vec![number as u8; 60 + number * 7 % 90];
            ring.push(&Frame::ethernet(Timestamp::from_nanos(number as u64), &data));
            expected.push_back(data);
            let contained: Vec<_> = ring
                .frames
                .iter()
                .map(|stored| ring.octets[stored.offset..stored.offset + stored.len].to_vec())
                .collect();
            while expected.len() > contained.len() {
                expected.pop_front();
            }
            assert!(contained.iter().eq(&expected));
            // At most the length of two frames is unused.
            assert!(number < 20 || contained.iter().map(Vec::len).sum::<usize>() > 1000 - 2 * 150);
        }
        ring.push(&Frame::ethernet(Timestamp::ZERO, &[0; 1001]));
        assert_eq!(ring.frame_count(), expected.len());
    }
}
