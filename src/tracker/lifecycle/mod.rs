//! The states of a TCP connection, as an observer between its ends can determine them.
//!
//! [`starts_anew`] decides whether a SYN belongs to the existing flow on its ports, before the packet is counted;
//! [`segment()`] then updates the flow. The common case, the next segment of an established connection, is handled
//! first, by [`ordinary`].

mod history;
mod reset;
mod rules;
mod segment;
mod sequence;
mod start;
mod state;
#[cfg(test)]
mod tests;

use super::extras::{Extra, Extras};
use super::flow::{Cold, Endpoint, FlowBits, Hot, SideBits, SideState};
use crate::base::Packet;
use crate::base::TcpSegment;
use crate::base::{Side, TcpFlags, TcpState};
use history::letter;
use rules::{CONTROL, is_probe};
pub(super) use segment::{Changes, segment};
use start::has_only_syn;

/// Maximum time in nanoseconds after the last packet of a connection in which the connection's own SYN may still
/// arrive, because two interfaces, or two queues of one interface, are read in turn.
const OVERTAKEN_NS: u64 = 100_000_000;

/// Time in nanoseconds after the last packet of a connection from which no segment of it is under way: twice the maximum
/// segment lifetime (RFC 9293 section 3.4.2).
const FORGOTTEN_NS: u64 = 240_000_000_000;

/// Returns whether both ends of a TCP connection have closed it, by FIN or RST, so that later segments do not belong to
/// it.
pub(super) fn is_over(hot: &Hot) -> bool {
    let has_closed = |side: &SideState| matches!(side.endpoint, Endpoint::Closed | Endpoint::Reset);
    hot.state >= TcpState::Established && hot.sides.iter().all(has_closed)
}

/// Records that a side sent a datagram, for protocols without TCP control bits.
pub(super) fn note_datagram(hot: &mut Hot, cold: &mut Cold, side: Side) {
    let is_initiator = hot.bits.initiator() == side;
    let state = &mut hot.sides[side.index()];
    if state.letters & letter::DATA == 0 {
        state.letters |= letter::DATA;
        cold.push_history(if is_initiator { b'D' } else { b'd' });
    }
}

/// Returns whether a side has recorded a datagram before.
#[inline(always)]
pub(super) fn has_sent(side: &SideState) -> bool {
    side.letters & letter::DATA != 0
}

/// Returns whether a segment begins a new connection on the ports of a known flow.
///
/// A SYN with the flow's own initial sequence number is a retransmission, unless the connection was accepted and has
/// closed: then it is a new attempt with the same number. A SYN with another number begins a new connection on a
/// closed flow, and on one in SYN-SENT. On an open flow (RFC 5961 section 4), only the SYN-ACK that acknowledges it
/// proves that the other end accepted it, unless the end that opens the new connection had sent FIN, and the old one was
/// silent for [`FORGOTTEN_NS`]. `silent_ns` is the time from the flow's last packet to the segment.
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
    // If a side's SYN was not seen, its number is derived from the side's octets or the peer's acknowledgment: a SYN
    // with that number is the missing one, arriving late.
    let is_retransmission = own.bits.has(SideBits::SEQ) && own.initial_seq == segment.seq;
    if segment.flags.contains(TcpFlags::ACK) {
        let answers_pending = extra.and_then(|extra| extra.pending_syn).is_some_and(|(pending_side, isn)| {
            pending_side != side
                && segment.ack.distance_from(isn) > 0
                && segment.ack.distance_from(isn) < 1 << 16
        });
        // If this side refused a connection and then accepts one, the accepted one is a new connection.
        let has_history = own.bits.has(SideBits::SEQ) || own.endpoint == Endpoint::Reset;
        // First what no usual SYN-ACK has.
        return answers_pending
            || (has_history
                && !is_retransmission
                && (hot.state.is_closed() || is_forgotten(hot, side.other(), silent_ns)));
    }
    if is_retransmission {
        let is_accepted = hot.sides.iter().all(|side| side.bits.has(SideBits::SYN));
        return is_accepted && hot.state.is_closed() && silent_ns >= OVERTAKEN_NS;
    }
    match hot.state {
        // On a closed connection, this side may not have been seen before.
        state if state.is_closed() => true,
        TcpState::SynSent => own.bits.has(SideBits::SYN),
        _ => is_forgotten(hot, side, silent_ns),
    }
}

/// Returns whether a connection is open only in one direction, because `side` sent FIN, and was silent for so long that this
/// side may use its ports again.
#[cold]
#[inline(never)]
fn is_forgotten(hot: &Hot, side: Side, silent_ns: u64) -> bool {
    silent_ns >= FORGOTTEN_NS
        && matches!(hot.state, TcpState::FinWait1 | TcpState::FinWait2)
        && hot.sides[side.index()].bits.has(SideBits::FIN)
}

/// Result of an attempt to process a TCP segment as one that does not change the state of its connection.
pub(super) enum Ordinary {
    /// The segment is not an ordinary one; nothing was changed.
    No,
    Yes,
    /// The segment was processed, and this letter is to be added to the history.
    First(u8),
}

/// Processes a TCP segment that changes only sequence numbers, counts and the history: the next one of an established
/// connection, or a retransmission.
#[inline(always)]
pub(super) fn ordinary(hot: &mut Hot, extras: &mut Extras, packet: &Packet<'_>) -> Ordinary {
    const NUMBERS: u8 = SideBits::SEQ | SideBits::ACK;
    let segment = &packet.tcp;
    let [a, b] = &mut hot.sides;
    let (own, peer) = if packet.side == Side::A { (a, b) } else { (b, a) };
    let bit = if packet.payload_len > 0 { letter::DATA } else { letter::ACK };
    let is_plain = hot.state == TcpState::Established
        && segment.flags.0 & (CONTROL.0 | TcpFlags::ACK.0) == TcpFlags::ACK.0
        && segment.window != 0
        && (own.letters & bit != 0 || is_sending(own.endpoint))
        && own.bits.has_all(NUMBERS);
    if !is_plain {
        return Ordinary::No;
    }
    // An acknowledgment that advances may cover octets that were not captured.
    let is_known_ack = segment.ack == own.ack
        || (segment.ack.is_after(own.ack)
            && !segment.ack.is_after(peer.next_seq)
            && peer.bits.has(SideBits::SEQ)
            && !peer.bits.has(SideBits::HOLE));
    let has_extra = hot.bits.has(FlowBits::EXTRA);
    if !is_known_ack || (has_extra && is_of_interest(peer, extras.at_mut(hot.extra), packet)) {
        return Ordinary::No;
    }
    if segment.seq == own.next_seq {
        own.next_seq = segment.seq.add(packet.payload_len);
    } else if own.letters & bit == 0
        || !has_extra
        || own.bits.has(SideBits::HOLE)
        || !sent_again(own, extras.at_mut(hot.extra), packet)
    {
        return Ordinary::No;
    }
    own.ack = segment.ack;
    own.window = segment.window;
    own.flags |= segment.flags;
    if own.letters & bit != 0 {
        return Ordinary::Yes;
    }
    own.letters |= bit;
    Ordinary::First(history::of_first(bit, hot.bits.initiator() == packet.side))
}

/// Returns whether an acknowledgment selects one of several SYNs of the other side, or may be a duplicate one that asks for
/// missing octets.
#[inline(always)]
fn is_of_interest(peer: &SideState, extra: &Extra, packet: &Packet<'_>) -> bool {
    (packet.payload_len == 0 && peer.bits.has(SideBits::HOLE))
        || (has_only_syn(peer) && extra.pending_syn.is_some())
}

/// Returns whether a segment without control bits does not change the state of the end that sent it.
const fn is_sending(sender: Endpoint) -> bool {
    !matches!(sender, Endpoint::Inactive | Endpoint::Closed | Endpoint::Reset)
}

/// Counts a segment that ends no later than the octets that its sender has already sent. Returns false, without any
/// change, if it is another kind of segment or a letter of the history is due.
#[inline(always)]
fn sent_again(own: &SideState, extra: &mut Extra, packet: &Packet<'_>) -> bool {
    let start = packet.tcp.seq;
    let end = start.add(packet.payload_len);
    let extra = &mut extra.sides[packet.side.index()];
    let is_due = extra.stale_count + 1 >= extra.stale_letter_count;
    // Octets before the side's first sequence number were not seen before.
    let is_known = start.is_after(own.initial_seq) && start.is_before(own.next_seq);
    if !is_known || end.is_after(own.next_seq) || packet.payload_len == 0 || is_due {
        return false;
    }
    extra.stale_count += 1;
    extra.retransmitted_count += u32::from(!is_probe(end, own.next_seq, packet.payload_len));
    true
}
