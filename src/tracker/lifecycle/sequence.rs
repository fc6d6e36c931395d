//! Sequence numbers of TCP segments: acknowledged, missing, late and retransmitted octets.

use super::super::event::Anomaly;
use super::super::flow::SideBits;
use super::rules::{CONTROL, is_power_of_ten, is_probe};
use super::segment::Update;
use crate::base::{SeqNum, Side, TcpFlags, TcpState};

/// Number of duplicate acknowledgments after which missing octets are sent again (RFC 5681 section 3.2).
const DUPLICATE_ACKS: u8 = 3;

/// Round-trip time in nanoseconds of a connection whose handshake was not seen, as in Wireshark.
const UNKNOWN_RTT_NS: u64 = 3_000_000;

/// The times of holes have units of 2^10 ns, and wrap around after 73 minutes.
const UNIT_SHIFT: u32 = 10;

const fn units(time_ns: u64) -> u32 {
    (time_ns >> UNIT_SHIFT) as u32
}

impl Update<'_> {
    pub(super) fn acknowledgment(&mut self) {
        let ack = self.segment.ack;
        let other = self.side.other();
        self.confirm_start(other, ack);
        let own = self.own();
        let before = own.bits.has(SideBits::ACK).then_some(own.ack);
        let is_advance = before.is_none_or(|before| ack.is_after(before));
        if is_advance {
            own.ack = ack;
            own.bits.set(SideBits::ACK);
        }
        let peer = &mut self.hot.sides[other.index()];
        if !peer.bits.has(SideBits::SEQ) {
            // The peer was not seen, but the acknowledgment indicates its position.
            peer.initial_seq = ack.add(u32::MAX);
            peer.next_seq = ack;
            peer.bits.set(SideBits::SEQ);
            return;
        }
        if !is_advance {
            if peer.bits.has(SideBits::HOLE) && before == Some(ack) {
                self.note_duplicate_ack(other);
            }
            return;
        }
        let next = peer.next_seq;
        let unseen = ack.distance_from(next);
        // A jump beyond the maximum size of a window is not evidence of missing octets.
        let is_gap = unseen > 0 && unseen < 1 << 30 && peer.bits.has(SideBits::SEEN);
        if is_gap {
            peer.next_seq = ack;
        }
        let hole = self.hole(other);
        let is_acked_hole = hole.is_some_and(|(_, end)| !ack.is_before(end));
        if !is_gap && !is_acked_hole {
            return;
        }
        // The octets may still arrive, because captures from two interfaces are skewed.
        if is_gap {
            self.changes.anomaly = Some(Anomaly::AckedUnseen);
            self.open_hole(other, (hole.map_or(next, |(start, _)| start), ack));
        } else {
            self.set_hole(other, None);
            // An earlier acknowledgment covered the hole, which was kept for late octets and is counted already.
            if hole.zip(before).is_some_and(|((_, end), before)| !end.is_after(before)) {
                return;
            }
        }
        let count = self.extra(other).map(|extra| {
            extra.gap_count += 1;
            extra.gap_count
        });
        if count.is_some_and(is_power_of_ten) && !self.has(TcpFlags::FIN) {
            self.push(b'G', false);
        }
    }

    /// Returns the range of octets of a side that were skipped and have not arrived since: sequence number of the first
    /// one, and after the last one.
    fn hole(&mut self, side: Side) -> Option<(SeqNum, SeqNum)> {
        if !self.hot.sides[side.index()].bits.has(SideBits::HOLE) {
            return None;
        }
        self.extra(side).and_then(|extra| extra.hole)
    }

    /// Counts an acknowledgment without octets that asks for octets of `side` again.
    fn note_duplicate_ack(&mut self, side: Side) {
        if self.payload_len == 0
            && !self.segment.flags.intersects(CONTROL)
            && let Some(extra) = self.extra(side)
        {
            extra.duplicate_ack_count = extra.duplicate_ack_count.saturating_add(1);
        }
    }

    /// Opens a hole of a side at its missing octets, or extends the open one.
    fn open_hole(&mut self, side: Side, (first, end): (SeqNum, SeqNum)) {
        let since = units(self.own_ns);
        let is_open = self.hot.sides[side.index()].bits.has(SideBits::HOLE);
        self.set_hole(side, Some((first, end)));
        if let Some(extra) = self.extra(side) {
            extra.hole_since = since;
            if !is_open {
                extra.duplicate_ack_count = 0;
            }
        }
    }

    fn set_hole(&mut self, side: Side, hole: Option<(SeqNum, SeqNum)>) {
        if let Some(extra) = self.extra(side) {
            extra.hole = hole;
            let bits = &mut self.hot.sides[side.index()].bits;
            if hole.is_some() { bits.set(SideBits::HOLE) } else { bits.clear(SideBits::HOLE) }
        }
    }

    /// Processes the sequence numbers that a TCP segment occupies: SYN, payload, FIN.
    pub(super) fn octets(&mut self) {
        let has_syn = self.has(TcpFlags::SYN);
        let has_fin = self.has(TcpFlags::FIN);
        let (side, payload_len) = (self.side, self.payload_len);
        let start = self.segment.seq;
        let covered_len = payload_len + u32::from(has_syn) + u32::from(has_fin);
        let end = start.add(covered_len);
        let own = self.own();
        if !own.bits.has(SideBits::SEQ) {
            own.initial_seq = if has_syn { start } else { start.add(u32::MAX) };
            own.next_seq = start;
            own.bits.set(SideBits::SEQ);
        }
        if has_syn && !(own.bits.has(SideBits::SYN) && own.initial_seq == start) {
            // A SYN of another connection: its numbers do not apply to this one.
            return;
        }
        if covered_len == 0 {
            return;
        }
        if !has_syn {
            self.follow_start();
        }
        let own = self.own();
        let next = own.next_seq;
        let is_first_fin = has_fin && !own.bits.has(SideBits::FIN);
        if end.is_after(next) {
            own.next_seq = end;
        }
        if is_first_fin {
            own.bits.set(SideBits::FIN);
        }
        let jump = start.distance_from(next);
        if jump > 0 {
            let first = self.hole(side).map_or(next, |(first, _)| first);
            self.open_hole(side, (first, start));
        } else if !end.is_after(next) {
            self.stale(start, end, next);
        }
    }

    /// Processes a segment that ends no later than the octets already seen: it is late or retransmitted.
    fn stale(&mut self, start: SeqNum, end: SeqNum, next: SeqNum) {
        let (side, payload_len) = (self.side, self.payload_len);
        let is_probe = is_probe(end, next, payload_len) && end.distance_from(start) == 1;
        let hole = self.hole(side).filter(|(first, last)| !start.is_before(*first) && start.is_before(*last));
        let is_overtaken = hole.is_some() && (self.is_acked(end) || self.is_overtaken(side));
        if let Some((first, last)) = hole {
            let rest = match (start == first, !end.is_before(last)) {
                (true, true) => None,
                (true, false) => Some((end, last)),
                (false, true) => Some((first, start)),
                (false, false) => Some((first, last)),
            };
            self.set_hole(side, rest);
        }
        let is_late = if hole.is_some() { is_overtaken } else { self.precedes_capture(start, end) };
        let Some(extra) = self.extra(side) else { return };
        if is_late {
            extra.out_of_order_count += 1;
        } else if !is_probe {
            extra.retransmitted_count += 1;
        }
        if payload_len == 0 {
            return;
        }
        extra.stale_count += 1;
        if extra.stale_count >= extra.stale_letter_count {
            extra.stale_letter_count = extra.stale_count.saturating_mul(10);
            self.push(b'T', true);
        }
    }

    /// Returns whether the other side has acknowledged the octets of the sender up to a sequence number.
    fn is_acked(&self, end: SeqNum) -> bool {
        let peer = self.peer();
        peer.bits.has(SideBits::ACK) && !end.is_after(peer.ack)
    }

    /// Returns whether missing octets of a side that now arrive were overtaken by later ones, and not lost and sent again:
    /// within a round trip, and before the other side has asked for them with three duplicate acknowledgments (RFC 5681
    /// section 3.2).
    fn is_overtaken(&mut self, side: Side) -> bool {
        let (rtt_ns, now) = (self.rtt_ns(), units(self.own_ns));
        let Some(extra) = self.extra(side) else { return true };
        let elapsed = now.wrapping_sub(extra.hole_since).cast_signed();
        extra.duplicate_ack_count < DUPLICATE_ACKS
            && i64::from(elapsed) <= (rtt_ns >> UNIT_SHIFT).cast_signed()
    }

    /// Returns the round-trip time of the handshake, or an assumed one if it is not known.
    fn rtt_ns(&self) -> u64 {
        let is_open = self.hot.state >= TcpState::Established;
        self.cold.timing.rtt_ns().filter(|_| is_open).unwrap_or(UNKNOWN_RTT_NS)
    }

    /// Returns whether octets precede the first sequence number of a side whose SYN was not seen, were not acknowledged, and
    /// arrive within a round trip after the start of the flow, so that later octets overtook them. The side's sequence
    /// numbers now start with them.
    fn precedes_capture(&mut self, start: SeqNum, end: SeqNum) -> bool {
        let is_acked = self.is_acked(end);
        let own = self.own();
        // After this many octets, a number close to the first one may have wrapped around.
        let is_near_start = own.payload_octet_count < 1 << 30;
        let is_early =
            !is_acked && is_near_start && !own.bits.has(SideBits::SYN) && !start.is_after(own.initial_seq);
        if is_early {
            own.initial_seq = start.add(u32::MAX);
        }
        let elapsed_ns = self.own_ns.saturating_sub(self.cold.start_ns);
        is_early && self.cold.sequence_number == 0 && elapsed_ns <= self.rtt_ns()
    }
}
