//! The beginning of a stream: its SYN, its first segment, or another SYN that the receiver confirms.
//!
//! A second SYN-ACK with another sequence number comes from another host behind an anycast address, from a middlebox,
//! or from a server that lost its state; stale ones are repeated. While nothing was delivered or skipped, two sequence
//! numbers are kept at which the stream may begin. The receiver's acknowledgment, or the octets that follow, decide
//! between them.

use super::pieces::Out;
use super::reassembler::{Reassembler, WINDOW_MAX};
use super::segment::Segment;
use super::stream::Stream;
use crate::base::{SeqNum, TcpFlags};

/// Maximum distance in octets from a SYN to the first acknowledgment that confirms it: the largest window without
/// scaling.
const FIRST_WINDOW_LEN: i32 = 65_535;

impl<T: Copy> Reassembler<T> {
    /// Sets the sequence number at which the stream begins, unless it is already fixed. Returns whether the octets of
    /// the segment must be processed further. `segment.seq` is the number of the first octet, also in a SYN.
    pub(super) fn anchor(&mut self, stream: &mut Stream, segment: &Segment<'_>, out: &mut Out<'_>) -> bool {
        let seq = segment.seq;
        let is_syn = segment.flags.contains(TcpFlags::SYN);
        let is_empty = segment.len == 0 && !segment.flags.contains(TcpFlags::FIN);
        let is_soft = stream.has(Stream::SOFT);
        if stream.is_anchored() && !is_soft {
            let is_open = stream.offset == 0 && !stream.has(Stream::ENDED) && seq != stream.next;
            return (!is_open || self.choose_start(stream, segment, out)) && !is_empty;
        }
        // A keep-alive has the sequence number before that of the next octet, and sometimes an octet that is not part
        // of the stream. The first segment is taken for a keep-alive if it lacks the PSH bit, which the last data of a
        // sender has.
        let is_probe = segment.len == 1
            && !segment.flags.intersects(TcpFlags::SYN | TcpFlags::FIN)
            && if is_soft {
                seq.add(1) == stream.next
            } else {
                !segment.flags.intersects(TcpFlags::PSH | TcpFlags::URG)
            };
        let is_guess = is_probe || (is_empty && !is_syn);
        if !stream.is_anchored() || is_syn || seq.distance_from(stream.next) <= 1 {
            let kept = if self.compared_len > 0 { Stream::COMPARED } else { 0 };
            let first = seq.add(u32::from(is_probe));
            stream.anchor(first, kept | if is_guess { Stream::SOFT } else { 0 });
        } else if !is_guess {
            stream.flags &= !Stream::SOFT;
        }
        !is_empty && !is_probe
    }

    /// Processes a segment of a stream without delivered octets that does not begin at the stream's start: another SYN,
    /// or a segment that follows one. Returns whether the segment may need further processing: octets in a SYN belong
    /// to the stream only if it begins there.
    fn choose_start(&mut self, stream: &mut Stream, segment: &Segment<'_>, out: &mut Out<'_>) -> bool {
        let seq = segment.seq;
        let other = stream.other_start();
        if segment.flags.contains(TcpFlags::SYN) {
            let acked_end = self.hold_of(stream).map_or(0, |hold| hold.acked.end);
            let is_hinted = other == Some(seq) && stream.marks & Stream::HINTED != 0;
            let is_acked = acked_end > 0 && seq == stream.next.add(acked_end as u32);
            if is_hinted || is_acked {
                self.move_start(stream, seq, out);
            } else {
                stream.contest(seq, false);
            }
            return is_hinted || is_acked;
        }
        let Some(other) = other else { return true };
        let is_near = |start: SeqNum| seq.distance_from(start).unsigned_abs() < WINDOW_MAX;
        let is_behind_other = !seq.is_before(other) && is_near(other);
        if seq == other || (is_behind_other && !is_near(stream.next)) {
            self.move_start(stream, other, out);
        }
        true
    }

    /// Processes an acknowledgment for a stream without delivered octets: the acknowledgment confirms one of the SYNs
    /// at which the stream may begin.
    pub(super) fn confirm_start(&mut self, stream: &mut Stream, ack: SeqNum, out: &mut Out<'_>) {
        if stream.offset > 0 {
            stream.marks &= !(Stream::CONTESTED | Stream::HINTED);
            return;
        }
        let Some(other) = stream.other_start().filter(|_| stream.marks & Stream::HINTED == 0) else { return };
        let ahead = |start: &SeqNum| ack.distance_from(*start);
        let nearest = [stream.next, other]
            .into_iter()
            .filter(|start| (0..=FIRST_WINDOW_LEN).contains(&ahead(start)))
            .min_by_key(ahead);
        // It confirms neither: there were more SYNs, and only the latest one is kept.
        let start = nearest.unwrap_or(ack);
        if start != stream.next {
            self.move_start(stream, start, out);
        }
    }

    /// Records an acknowledgment that matches no known SYN of the stream, because its SYN may not have been captured
    /// yet.
    pub(super) fn hint_start(&self, stream: &mut Stream, ack: SeqNum) {
        if stream.offset == 0 && stream.other_start().is_none() && !stream.has(Stream::SOFT) {
            stream.contest(ack, true);
        }
    }

    /// Moves the beginning of a stream without delivered octets to the sequence number `seq`. The previous beginning
    /// remains a candidate.
    fn move_start(&mut self, stream: &mut Stream, seq: SeqNum, out: &mut Out<'_>) {
        debug_assert_eq!(stream.offset, 0, "what was delivered stays where it is");
        let by = seq.distance_from(stream.next);
        stream.contest(stream.next, false);
        stream.next = seq;
        if stream.has(Stream::FIN_KNOWN) && stream.fin.is_before(seq) {
            stream.flags &= !Stream::FIN_KNOWN;
        }
        if by.unsigned_abs() >= WINDOW_MAX {
            return self.release(stream);
        }
        let limit = stream.drain_limit();
        let Self { store, holds, memory, delivered_at, peer, .. } = self;
        let hold = if stream.has(Stream::HELD) { holds.get_mut(stream.hold) } else { None };
        let Some(hold) = hold else { return };
        hold.shift(store, by.into());
        let end = hold.pieces.drain(store, (0, limit), *peer, delivered_at, out);
        stream.advance_to(end);
        store.trim(memory);
    }
}
