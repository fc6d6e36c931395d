//! Streams in a checkpoint.
//!
//! The position and the flags of a stream are saved, and octets that are next in order but wait for those of the opposite
//! direction; octets that are held after a hole are not. A restored stream delivers the former at once, and continues after
//! the latter, after a gap with the reason [`GapReason::Checkpoint`].

use super::event::{Cause, Chunk, GapReason, StreamEvent};
use super::holes::is_waiting;
use super::pieces::Out;
use super::reassembler::Reassembler;
use super::segment::PADDING_LEN_MAX;
use super::stream::Stream;
use crate::base::{SeqNum, Timestamp};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::{Prefix, Reader};

/// Maximum offset of a saved stream, so that sums with the length of a gap do not overflow.
const OFFSET_MAX: u64 = 1 << 60;

/// Maximum number of octets of a stream that wait for the opposite direction and are saved.
const WAITING_LEN_MAX: usize = 64 << 10;

impl<T: Copy> Reassembler<T> {
    /// Writes the state of a stream: one octet for a stream without octets, otherwise some twenty.
    pub(crate) fn save(&self, stream: &Stream, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let flags = stream.flags & !Stream::HELD;
        // What waits for a stream is delivered when its connection continues.
        let marks = stream.marks & !Stream::AWAITED;
        let is_new = flags == 0 && marks == 0 && stream.stray_count == 0;
        out.bool(!is_new)?;
        if is_new {
            return Ok(());
        }
        let hold = if stream.has(Stream::HELD) { self.holds.get(stream.hold) } else { None };
        let held_end =
            hold.and_then(|hold| hold.pieces.last_end()).map_or(0, |end| end.min(stream.drain_limit()));
        out.varint(stream.offset)?;
        for number in [stream.next, stream.fin, stream.stray_next] {
            out.be(number.0)?;
        }
        out.array([stream.stray_count, flags, marks, stream.padding_len])?;
        out.varint(held_end.saturating_sub(stream.offset))?;
        let mut left = WAITING_LEN_MAX;
        if let Some(hold) = hold.filter(|hold| is_waiting(stream, hold)) {
            let range = (stream.offset, stream.drain_limit());
            for (timestamp, bytes) in hold.pieces.next_octets(&self.store, range) {
                let Some(rest) = left.checked_sub(bytes.len()) else { break };
                left = rest;
                out.prefixed(Prefix::U32, bytes)?;
                out.be(timestamp.as_nanos())?;
            }
        }
        Ok(out.prefixed(Prefix::U32, [])?)
    }

    /// Reads the state of a stream into `stream`, delivers the octets that waited, and reports those that were held as a gap.
    pub(crate) fn load(
        &mut self,
        reader: &mut Reader<'_>,
        (stream, name): (&mut Stream, T),
        now: Timestamp,
        out: &mut Out<'_>,
    ) -> Result<(), Invalid> {
        self.advance_clock(now);
        if !reader.bool()? {
            return Ok(());
        }
        stream.offset = reader.varint()?;
        stream.next = SeqNum(reader.be()?);
        stream.fin = SeqNum(reader.be()?);
        stream.stray_next = SeqNum(reader.be()?);
        let [stray_count, flags, marks, padding_len] = reader.array()?;
        let lost_len = reader.varint()?;
        let mut waiting = Vec::new();
        loop {
            let bytes = reader.prefixed(Prefix::U32)?;
            if bytes.is_empty() {
                break;
            }
            waiting.push((bytes, Timestamp::from_nanos(reader.be()?)));
        }
        let waiting_len: usize = waiting.iter().map(|(bytes, _)| bytes.len()).sum();
        if waiting_len as u64 > lost_len {
            return Err(Invalid::new("octets of a stream that cannot be there"));
        }
        if stream.offset > OFFSET_MAX || lost_len > u64::from(u32::MAX) {
            return Err(Invalid::new("a stream that is too long"));
        }
        let compared = if self.compared_len > 0 { Stream::COMPARED } else { 0 };
        (stream.stray_count, stream.marks) = (stray_count, marks & !Stream::AWAITED);
        stream.padding_len = padding_len.min(PADDING_LEN_MAX as u8);
        stream.flags = flags & !(Stream::HELD | Stream::COMPARED);
        if stream.padding_len == 0 {
            stream.flags &= !Stream::DOUBTED;
        }
        if stream.is_anchored() {
            stream.flags |= compared;
        }
        if stream.has(Stream::STOPPED) || !stream.is_anchored() {
            return Ok(());
        }
        let before = stream.offset;
        let cause = Cause { reason: GapReason::Checkpoint, timestamp: now };
        for (bytes, timestamp) in waiting {
            out(&StreamEvent::Chunk(Chunk { offset: stream.offset, bytes, timestamp }));
            stream.advance_to(stream.offset + bytes.len() as u64);
        }
        self.delivered_at = now;
        self.gap(stream, before + lost_len, cause, out);
        self.settle(stream, name, before, out);
        Ok(())
    }
}
