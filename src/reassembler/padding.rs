//! Octets that may be the padding of a minimal Ethernet frame, which the IP length of some network cards includes.
//!
//! An acknowledgment in a frame of 60 octets, or 64 with a VLAN tag or the checksum, has room for six octets of padding. If
//! its length says that they are payload, they are delivered when something confirms them: a segment of their sender that
//! follows them or repeats them, an acknowledgment of their receiver, or the end of the flow. A segment with other octets in
//! their place contradicts them. They are zeros, so that only their number is kept.

use super::event::{Chunk, Conflict, Extent, StreamEvent};
use super::pieces::{New, Origin, Out, difference};
use super::reassembler::Reassembler;
use super::segment::{PADDING_LEN_MAX, Segment};
use super::stream::Stream;
use crate::base::{SeqNum, TcpFlags, Timestamp};

const ZEROS: [u8; PADDING_LEN_MAX] = [0; PADDING_LEN_MAX];

impl<T: Copy> Reassembler<T> {
    /// Withholds the octets of a segment that may be padding. Returns whether it did.
    #[cold]
    pub(super) fn doubt(&mut self, stream: &mut Stream, segment: &Segment<'_>) -> bool {
        const COMPARED: u8 = Stream::COMPARED | Stream::HELD;
        let is_in_order = stream.flags & !COMPARED == Stream::ANCHORED && segment.seq == stream.next;
        if !is_in_order || self.hold_of(stream).is_some_and(|hold| !hold.pieces.is_empty()) {
            return false;
        }
        stream.padding_len = segment.payload.len() as u8;
        stream.flags |= Stream::DOUBTED;
        true
    }

    /// Decides about the withheld octets of a stream by a further segment of their sender. Returns whether the segment is to be
    /// processed.
    #[cold]
    pub(super) fn decide(
        &mut self,
        stream: &mut Stream,
        name: T,
        segment: &Segment<'_>,
        out: &mut Out<'_>,
    ) -> bool {
        let padding_len = usize::from(stream.padding_len);
        let ahead = segment.seq.distance_from(stream.next);
        if ahead > 0 {
            self.believe(stream, name, segment.timestamp, out);
            return true;
        }
        let again = segment.payload.get(ahead.unsigned_abs() as usize..).unwrap_or_default();
        if again.is_empty() {
            // Octets or a FIN in the place of the padding show that it was none.
            if segment.flags.contains(TcpFlags::FIN) && ahead == 0 {
                stream.flags &= !Stream::DOUBTED;
            }
            return true;
        }
        if segment.may_be_padding() && again.len() <= padding_len {
            return false;
        }
        let len = again.len().min(padding_len);
        let parts = ZEROS.get(..len).zip(again.get(..len));
        let Some((place, differing_len)) = parts.and_then(|(old, new)| difference(old, new)) else {
            self.believe(stream, name, segment.timestamp, out);
            return true;
        };
        stream.flags &= !Stream::DOUBTED;
        self.stats.conflict_count += 1;
        self.stats.conflict_octet_count += differing_len;
        let timestamp = segment.timestamp;
        let old = Extent { offset: stream.offset, len: padding_len as u64, timestamp };
        let new = Extent { offset: stream.offset, len: again.len() as u64, timestamp };
        out(&StreamEvent::Conflict(Conflict {
            offset: stream.offset + place,
            len: differing_len,
            old,
            new,
            is_new_kept: true,
        }));
        true
    }

    /// Delivers the withheld octets of a stream.
    #[cold]
    pub(super) fn believe(&mut self, stream: &mut Stream, name: T, timestamp: Timestamp, out: &mut Out<'_>) {
        stream.flags &= !Stream::DOUBTED;
        let (start, end) = (stream.offset, stream.offset + u64::from(stream.padding_len));
        let bytes = ZEROS.get(..usize::from(stream.padding_len));
        let origin = Origin { begin: start, end, timestamp };
        // Nothing of it is held, so that its acknowledgment number has no effect.
        let ack = SeqNum(0);
        self.deliver(stream, name, &New { start, end, bytes, origin, ack }, out);
    }

    /// Delivers the withheld octets of a stream that ends.
    pub(super) fn believe_at_end(&self, stream: &mut Stream, timestamp: Timestamp, out: &mut Out<'_>) {
        if stream.has(Stream::DOUBTED) {
            stream.flags &= !Stream::DOUBTED;
            let bytes = ZEROS.get(..usize::from(stream.padding_len)).unwrap_or_default();
            out(&StreamEvent::Chunk(Chunk { offset: stream.offset, bytes, timestamp }));
            stream.advance_to(stream.offset + bytes.len() as u64);
        }
    }
}
