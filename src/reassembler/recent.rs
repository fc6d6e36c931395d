//! The latest delivered bytes of one direction, for comparison with repeated octets.

use super::event::Chunk;
use super::pieces::difference;
use crate::base::{Allowance, Timestamp};

/// Size of a ring buffer's first allocation in octets. The size doubles up to the configured length.
const LEN_MIN: usize = 4096;

/// Ring buffer of the latest delivered octets, indexed by stream offset. Its length is a power of two.
#[derive(Debug, Default)]
pub(super) struct Recent {
    ring: Box<[u8]>,
    /// Stream offset of the first octet in the ring; the ring contains the octets from `start` to `end`.
    start: u64,
    end: u64,
    pub(super) timestamp: Timestamp,
}

impl Recent {
    /// Appends delivered octets to the ring buffer. Returns the number of octets that could not be kept because memory
    /// was refused.
    pub(super) fn push(&mut self, memory: &mut Allowance, chunk: &Chunk<'_>, len_max: usize) -> u64 {
        let (offset, bytes) = (chunk.offset, chunk.bytes);
        if self.end != offset {
            // There is a gap in between.
            (self.start, self.end) = (offset, offset);
        }
        self.timestamp = chunk.timestamp;
        let wanted = (self.end - self.start) as usize + bytes.len();
        if wanted > self.ring.len() && self.ring.len() < len_max {
            self.grow(memory, wanted.next_power_of_two().clamp(LEN_MIN.min(len_max), len_max));
        }
        let len = self.ring.len();
        let kept = bytes.get(bytes.len().saturating_sub(len)..).unwrap_or_default();
        let first = offset + (bytes.len() - kept.len()) as u64;
        self.end = offset + bytes.len() as u64;
        self.start = self.start.max(self.end.saturating_sub(len as u64));
        self.parts(first, kept.len(), |ring, at, from, to| {
            if let Some((target, part)) = ring.get_mut(at..at + (to - from)).zip(kept.get(from..to)) {
                target.copy_from_slice(part);
            }
        });
        if len == 0 { bytes.len() as u64 } else { 0 }
    }

    /// Calls `with` for the one or two parts of the ring that contain `len` octets from the stream offset `offset`. The
    /// arguments are the ring, the index of the part in the ring, and the part's start and end relative to `offset`.
    fn parts(&mut self, offset: u64, len: usize, mut with: impl FnMut(&mut [u8], usize, usize, usize)) {
        let size = self.ring.len();
        if size == 0 || len == 0 {
            return;
        }
        let at = offset as usize & (size - 1);
        let here = len.min(size - at);
        with(&mut self.ring, at, 0, here);
        if here < len {
            with(&mut self.ring, 0, here, len);
        }
    }

    fn grow(&mut self, memory: &mut Allowance, len: usize) {
        let old_len = self.ring.len();
        if len <= old_len || !memory.take_spare((len - old_len) as u64) {
            return;
        }
        let old = std::mem::replace(&mut self.ring, vec![0; len].into());
        for offset in self.start..self.end {
            let octet = old.get(offset as usize & (old_len - 1)).copied();
            if let Some((place, octet)) = self.ring.get_mut(offset as usize & (len - 1)).zip(octet) {
                *place = octet;
            }
        }
    }

    /// Compares repeated bytes at a stream offset with the delivered ones. Returns `None` if none differ; otherwise the
    /// first offset that differs with the number of octets up to the last difference, and the start and end offsets of
    /// the compared range.
    pub(super) fn compare(&mut self, offset: u64, bytes: &[u8]) -> Option<((u64, u64), (u64, u64))> {
        let (from, to) = (offset.max(self.start), (offset + bytes.len() as u64).min(self.end));
        if from >= to {
            return None;
        }
        let again = bytes.get((from - offset) as usize..(to - offset) as usize)?;
        let mut differing: Option<(u64, u64)> = None;
        self.parts(from, again.len(), |ring, at, first, end| {
            let parts = ring.get(at..at + (end - first)).zip(again.get(first..end));
            if let Some((place, len)) = parts.and_then(|(old, new)| difference(old, new)) {
                let start = from + first as u64 + place;
                let begin = differing.map_or(start, |(begin, _)| begin);
                differing = Some((begin, start + len - begin));
            }
        });
        differing.map(|differing| (differing, (from, to)))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.ring.len() as u64
    }

    pub(super) fn clear(&mut self, memory: &mut Allowance) {
        // The account is shared between threads, and its update costs more than the rest.
        if !self.ring.is_empty() {
            memory.give(self.memory_bytes());
            self.ring = Box::default();
        }
        (self.start, self.end, self.timestamp) = (0, 0, Timestamp::ZERO);
    }
}
