//! A contiguous buffer for the bytes of one direction of a TCP connection.

use bytes::{Bytes, BytesMut};

use super::event::StreamEvent;

/// Behavior of a [`Buffered`] buffer when its maximum length is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BufferedOverflow {
    /// Keeps the newest bytes; older bytes are dropped and counted.
    #[default]
    Slide,
    /// Releases all buffered bytes, and drops all bytes that arrive later.
    Poison,
}

/// Buffer that collects the chunks of one direction of a TCP connection until the caller takes them. Grows by doubling,
/// up to its maximum length.
///
/// A gap in the stream adds no bytes to the buffer; [`gap_octet_count`](Self::gap_octet_count) counts the missing
/// octets.
#[derive(Debug)]
pub struct Buffered {
    bytes: BytesMut,
    /// Capacity of `bytes` before bytes were taken from its beginning.
    reserved_len: usize,
    len_max: usize,
    overflow: BufferedOverflow,
    is_poisoned: bool,
    dropped_octet_count: u64,
    gap_octet_count: u64,
}

impl Default for Buffered {
    /// Creates a buffer without a maximum length. The caller limits the memory of the buffer by taking the bytes
    /// regularly.
    fn default() -> Self {
        Self::with_cap(usize::MAX, BufferedOverflow::Slide)
    }
}

impl Buffered {
    /// Creates a buffer of at most `len_max` octets.
    #[must_use]
    pub fn with_cap(len_max: usize, overflow: BufferedOverflow) -> Self {
        Self {
            bytes: BytesMut::new(),
            reserved_len: 0,
            len_max,
            overflow,
            is_poisoned: false,
            dropped_octet_count: 0,
            gap_octet_count: 0,
        }
    }

    /// Processes an event of a stream: appends the bytes of a chunk to the buffer, and counts the octets of a gap.
    #[inline]
    pub fn push(&mut self, event: &StreamEvent<'_>) {
        match event {
            StreamEvent::Chunk(chunk) if self.is_poisoned => {
                self.dropped_octet_count += chunk.bytes.len() as u64
            }
            StreamEvent::Chunk(chunk)
                if !self.bytes.is_empty() && chunk.bytes.len() <= self.len_max - self.bytes.len() =>
            {
                self.bytes.extend_from_slice(chunk.bytes);
            }
            StreamEvent::Chunk(chunk) => self.push_slow(chunk.bytes),
            StreamEvent::Gap(gap) => self.gap_octet_count += gap.len,
            _ => {}
        }
    }

    /// Appends bytes to an empty buffer, or to one that they do not fit.
    #[inline(never)]
    fn push_slow(&mut self, bytes: &[u8]) {
        if !self.bytes.is_empty() || bytes.len() > self.len_max {
            return self.overflow(bytes);
        }
        // If the bytes taken last were dropped, this returns to the beginning of the memory, which is more likely to be
        // in the processor's caches than the rest.
        if !self.bytes.try_reclaim(self.reserved_len) {
            self.reserved_len = self.bytes.capacity();
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn overflow(&mut self, bytes: &[u8]) {
        match self.overflow {
            BufferedOverflow::Poison => {
                self.dropped_octet_count += (self.bytes.len() + bytes.len()) as u64;
                self.bytes = BytesMut::new();
                self.is_poisoned = true;
            }
            BufferedOverflow::Slide => {
                let newest = bytes.get(bytes.len().saturating_sub(self.len_max)..).unwrap_or_default();
                if newest.len() == self.len_max && newest.len() == self.bytes.len() {
                    // All bytes are replaced in place.
                    self.dropped_octet_count += bytes.len() as u64;
                    self.bytes.copy_from_slice(newest);
                    return;
                }
                let excess = (self.bytes.len() + newest.len()).saturating_sub(self.len_max);
                self.dropped_octet_count += (excess + bytes.len() - newest.len()) as u64;
                if excess == self.bytes.len() {
                    self.bytes.clear();
                } else {
                    let kept_len = self.bytes.len() - excess;
                    self.bytes.copy_within(excess.., 0);
                    self.bytes.truncate(kept_len);
                }
                self.bytes.extend_from_slice(newest);
            }
        }
    }

    /// Returns the buffered bytes that [`take`](Self::take) has not returned yet.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of buffered bytes that [`take`](Self::take) has not returned yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the buffer contains no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes all bytes from the buffer and returns them, without a copy. The memory of the bytes is reused after the
    /// returned value is dropped.
    pub fn take(&mut self) -> Bytes {
        self.reserved_len = self.reserved_len.max(self.bytes.capacity());
        self.bytes.split().freeze()
    }

    /// Returns whether the buffer drops all further bytes because its maximum length was reached.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    /// Returns the number of octets that the buffer dropped because of its maximum length.
    #[must_use]
    pub const fn dropped_octet_count(&self) -> u64 {
        self.dropped_octet_count
    }

    /// Returns the number of octets that are missing in the stream, according to its gaps.
    #[must_use]
    pub const fn gap_octet_count(&self) -> u64 {
        self.gap_octet_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reassembler::Chunk;

    #[test]
    fn memory_is_reused_from_its_beginning_once_the_bytes_are_dropped() {
        let mut buffered = Buffered::default();
        let mut push = |byte: u8| {
            buffered.push(&StreamEvent::Chunk(Chunk::new(0, &[byte; 600])));
            buffered.push(&StreamEvent::Chunk(Chunk::new(600, &[byte; 600])));
            buffered.take()
        };
        let first = push(1);
        let start = first.as_ptr();
        drop(first);
        let second = push(2);
        assert_eq!(second.as_ptr(), start);
        // Bytes that the caller still has are not overwritten.
        let third = push(3);
        assert_eq!((&second[..], &third[..]), (&[2; 1200][..], &[3; 1200][..]));
        drop((second, third));
        assert_eq!(push(4)[..], [4; 1200]);
    }

    #[test]
    fn a_sliding_buffer_keeps_the_newest_octets() {
        for len_max in [0, 1, 4, 10] {
            // Chunks shorter than the maximum length, equal to it, and longer, appended to each state of the buffer.
            for lens in
                [[3, 3, 3, 4, 4, 1], [10, 10, 4, 7, 12, 10], [1, 0, 25, 25, 2, 9], [4, 4, 1, 4, 10, 3]]
            {
                let mut buffered = Buffered::with_cap(len_max, BufferedOverflow::Slide);
                let mut all: Vec<u8> = Vec::new();
                for len in lens {
                    let offset = all.len();
                    all.extend((offset..offset + len).map(|at| at as u8));
                    let chunk = Chunk::new(offset as u64, &all[offset..]);
                    buffered.push(&StreamEvent::Chunk(chunk));
                    let kept = &all[all.len().saturating_sub(len_max)..];
                    assert_eq!(buffered.bytes(), kept, "{lens:?} into {len_max}");
                    assert_eq!(buffered.dropped_octet_count() as usize, all.len() - kept.len());
                }
            }
        }
    }
}
