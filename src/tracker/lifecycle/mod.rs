//! The life of a TCP connection, as an observer between its ends can tell it.
//!
//! [`starts_anew`] decides whether a SYN belongs to the flow that holds its ports, before the packet is counted;
//! [`segment()`] updates the flow after. The common case, the next segment of an established connection, is told
//! apart first, by [`ordinary`].

mod history;
mod reset;
mod segment;
mod sequence;
mod start;
mod state;
#[cfg(test)]
mod tests;

use super::extras::{Extra, Extras};
use super::flow::{Cold, Endpoint, FlowBits, Hot, SideBits, SideState};
use crate::base::{SeqNum, Side, TcpFlags, TcpState};
use crate::extractor::Packet;
use crate::wire::tcp::TcpSegment;
use history::letter;
pub(super) use segment::{Changes, segment};

const CONTROL: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0);

/// Longest time after the last packet of a connection in which its own SYN may still arrive: two interfaces, or two queues of
/// one interface, are read in turn.
const OVERTAKEN_NS: u64 = 100_000_000;

/// Returns whether both ends of a connection have closed it, by FIN or RST: what follows is no part of it any more.
pub(super) fn is_over(hot: &Hot) -> bool {
    let has_closed = |side: &SideState| matches!(side.endpoint, Endpoint::Closed | Endpoint::Reset);
    hot.state >= TcpState::Established && hot.sides.iter().all(has_closed)
}

/// Notes that a side sent something, for protocols without control bits.
pub(super) fn note_datagram(hot: &mut Hot, cold: &mut Cold, side: Side) {
    let is_initiator = hot.bits.initiator() == side;
    let state = &mut hot.sides[side.index()];
    if state.letters & letter::DATA == 0 {
        state.letters |= letter::DATA;
        cold.push_history(if is_initiator { b'D' } else { b'd' });
    }
}

/// Whether a side has sent a datagram before.
#[inline(always)]
pub(super) fn has_sent(side: &SideState) -> bool {
    side.letters & letter::DATA != 0
}

/// Whether a segment begins a new connection on the ports of a known flow.
///
/// A SYN with the flow's own initial sequence number is a retransmission, unless that connection was accepted and has
/// closed: then it was tried once more with the same number. With another number it begins anew on a closed flow, and
/// on one in SYN-SENT. On an open flow (RFC 5961 section 4) only the SYN-ACK that acknowledges it proves that the other
/// end took it. `silent_ns` is the time from the flow's last packet to the segment.
pub(super) fn starts_anew(
    hot: &Hot,
    extra: Option<&Extra>,
    side: Side,
    segment: &TcpSegment,
    silent_ns: u64,
) -> bool {
    let own = &hot.sides[side.index()];
    if !segment.flags.contains(TcpFlags::SYN) || segment.flags.intersects(TcpFlags::RST) {
        return false;
    }
    // Of a side whose SYN was not seen, the number is known from what it sent or from the peer's acknowledgment: a SYN
    // that comes late is the one that was missing.
    let is_retransmission = own.bits.has(SideBits::SEQ) && own.initial_seq == segment.seq;
    if segment.flags.contains(TcpFlags::ACK) {
        let answers_pending = extra.and_then(|extra| extra.pending_syn).is_some_and(|(pending_side, isn)| {
            pending_side != side
                && segment.ack.distance_from(isn) > 0
                && segment.ack.distance_from(isn) < 1 << 16
        });
        // Who refused a connection and then accepts one accepts another.
        let has_history = own.bits.has(SideBits::SEQ) || own.endpoint == Endpoint::Reset;
        return answers_pending || (hot.state.is_closed() && !is_retransmission && has_history);
    }
    if is_retransmission {
        let is_accepted = hot.sides.iter().all(|side| side.bits.has(SideBits::SYN));
        return is_accepted && hot.state.is_closed() && silent_ns >= OVERTAKEN_NS;
    }
    match hot.state {
        // Of a connection that closed, the side may have been unseen.
        state if state.is_closed() => true,
        TcpState::SynSent => own.bits.has(SideBits::SYN),
        _ => false,
    }
}

/// Takes a segment that changes nothing but numbers: the next one of an established connection, or one that was sent
/// before. Whether it is one; if not, nothing was changed.
#[inline(always)]
pub(super) fn ordinary(hot: &mut Hot, extras: &mut Extras, packet: &Packet<'_>) -> bool {
    const NUMBERS: u8 = SideBits::SEQ | SideBits::ACK;
    let segment = &packet.tcp;
    let [a, b] = &mut hot.sides;
    let (own, peer) = if packet.side == Side::A { (a, b) } else { (b, a) };
    let letter = if packet.payload_len > 0 { letter::DATA } else { letter::ACK };
    let is_plain = hot.state == TcpState::Established
        && segment.flags.0 & (CONTROL.0 | TcpFlags::ACK.0) == TcpFlags::ACK.0
        && segment.window != 0
        && own.letters & letter != 0
        && own.bits.has_all(NUMBERS);
    if !is_plain {
        return false;
    }
    // An acknowledgment that advances may tell of octets that were not captured.
    let is_known_ack = segment.ack == own.ack
        || (segment.ack.is_after(own.ack)
            && !segment.ack.is_after(peer.next_seq)
            && peer.bits.has(SideBits::SEQ)
            && !peer.bits.has(SideBits::HOLE));
    if !is_known_ack {
        return false;
    }
    if segment.seq == own.next_seq {
        own.next_seq = segment.seq.add(packet.payload_len);
    } else if !hot.bits.has(FlowBits::EXTRA)
        || own.bits.has(SideBits::HOLE)
        || !sent_again(own, extras.at_mut(hot.extra), packet)
    {
        return false;
    }
    own.ack = segment.ack;
    own.window = segment.window;
    own.flags |= segment.flags;
    true
}

/// Counts a segment that reaches no further than what was sent, unless a letter of the history is due.
#[inline(always)]
fn sent_again(own: &SideState, extra: &mut Extra, packet: &Packet<'_>) -> bool {
    let start = packet.tcp.seq;
    let end = start.add(packet.payload_len);
    let extra = &mut extra.sides[packet.side.index()];
    let is_due = extra.stale_count + 1 >= extra.stale_letter_count;
    // What lies before the side's first number was not seen before.
    let is_known = start.is_after(own.initial_seq) && start.is_before(own.next_seq);
    if !is_known || end.is_after(own.next_seq) || packet.payload_len == 0 || is_due {
        return false;
    }
    extra.stale_count += 1;
    extra.retransmitted_count += u32::from(!is_probe(end, own.next_seq, packet.payload_len));
    true
}

/// One octet at the end of what was sent: a keep-alive (RFC 9293 section 3.8.4) or a window probe.
#[inline(always)]
fn is_probe(end: SeqNum, next: SeqNum, payload_len: u32) -> bool {
    payload_len == 1 && end == next
}
