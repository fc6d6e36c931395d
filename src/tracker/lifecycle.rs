//! The life of a TCP connection, as an observer between its ends can tell it.
//!
//! [`starts_anew`] decides whether a SYN belongs to the flow that holds its ports, before the packet is counted;
//! [`segment`] updates the flow after. The common case, the next segment of an established connection, is told
//! apart first, by [`ordinary`].

use super::endpoint;
use super::flow::{
    Cold, Endpoint, Extra, ExtraSide, Extras, FlowBits, Hot, SideBits, SideState, UNKNOWN_RTT,
    WINDOW_SCALE_UNKNOWN,
};
use super::sink::Anomaly;
use crate::base::{SeqNum, Side, TcpFlags, TcpState};
use crate::extractor::Packet;
use crate::wire::tcp::{self, TcpSegment, WINDOW_SCALE_MAX};

/// What a segment changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    pub(super) is_established: bool,
    pub(super) anomaly: Option<Anomaly>,
    pub(super) is_extra_refused: bool,
}

const CONTROL: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0);

/// Letters of the history that a side has once each, as bits of [`SideState::letters`].
mod letter {
    pub(super) const SYN: u8 = 1;
    pub(super) const FIN: u8 = 1 << 1;
    pub(super) const RST: u8 = 1 << 2;
    pub(super) const DATA: u8 = 1 << 3;
    pub(super) const ACK: u8 = 1 << 4;
    pub(super) const FIN_RST: u8 = 1 << 5;
    pub(super) const MULTIPLE: u8 = 1 << 6;
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
/// A SYN with the flow's own initial sequence number is a retransmission. With another one it begins anew on a
/// closed flow, and on one in SYN-SENT. On an open flow (RFC 5961 section 4) only the SYN-ACK that acknowledges it
/// proves that the other end took it.
pub(super) fn starts_anew(hot: &Hot, extra: Option<&Extra>, side: Side, segment: &TcpSegment) -> bool {
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
        return false;
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
    if !start.is_before(own.next_seq) || end.is_after(own.next_seq) || packet.payload_len == 0 || is_due {
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

/// Everything about a segment that is not simply the next one.
struct Update<'t> {
    hot: &'t mut Hot,
    cold: &'t mut Cold,
    extras: &'t mut Extras,
    side: Side,
    segment: TcpSegment,
    payload_len: u32,
    /// When the packet was captured.
    own_ns: u64,
    now_ns: u64,
    changes: Changes,
}

/// Updates a flow by any segment, whose packet was counted.
#[inline(never)]
pub(super) fn segment(
    hot: &mut Hot,
    cold: &mut Cold,
    extras: &mut Extras,
    packet: &Packet<'_>,
    now_ns: u64,
) -> Changes {
    let (side, segment, payload_len) = (packet.side, packet.tcp, packet.payload_len);
    let own_ns = packet.timestamp.as_nanos();
    hot.sides[side.index()].flags |= segment.flags;
    let mut update =
        Update { hot, cold, extras, side, segment, payload_len, own_ns, now_ns, changes: Changes::default() };
    update.control_letters();
    update.window(packet.transport_bytes());
    let is_valid_reset = segment.flags.contains(TcpFlags::RST) && update.reset();
    if segment.flags.contains(TcpFlags::SYN) {
        update.syn();
    }
    if segment.flags.contains(TcpFlags::ACK) && !segment.flags.contains(TcpFlags::RST) {
        update.acknowledgment();
    }
    if !segment.flags.contains(TcpFlags::RST) {
        update.octets();
    }
    if !segment.flags.contains(TcpFlags::RST) || is_valid_reset {
        update.endpoints();
    }
    update.state(is_valid_reset);
    update.changes
}

impl Update<'_> {
    fn own(&mut self) -> &mut SideState {
        &mut self.hot.sides[self.side.index()]
    }

    fn peer(&self) -> &SideState {
        &self.hot.sides[self.side.other().index()]
    }

    fn is_initiator(&self) -> bool {
        self.hot.bits.initiator() == self.side
    }

    fn has(&self, flag: TcpFlags) -> bool {
        self.segment.flags.contains(flag)
    }

    fn push(&mut self, letter: u8, is_of_sender: bool) {
        let is_initiator = self.is_initiator() == is_of_sender;
        self.cold.push_history(if is_initiator { letter } else { letter.to_ascii_lowercase() });
    }

    /// The extra of one of the sides, if there is room for it.
    fn extra(&mut self, side: Side) -> Option<&mut ExtraSide> {
        let extra = self.extras.of(self.hot);
        self.changes.is_extra_refused |= extra.is_none();
        extra.map(|extra| &mut extra.sides[side.index()])
    }

    /// Pushes a letter that a side has once.
    fn push_once(&mut self, letter: u8, bit: u8) {
        let own = self.own();
        if own.letters & bit == 0 {
            own.letters |= bit;
            self.push(letter, true);
        }
    }

    /// Pushes a letter that a side has once, and again whenever its sequence number is another than the last
    /// time. The first number is known from the side itself; only later ones need a note.
    fn push_numbered(&mut self, letter: u8, bit: u8, seq: SeqNum, first: SeqNum) {
        if self.own().letters & bit == 0 {
            return self.push_once(letter, bit);
        }
        let has_extra = self.hot.bits.has(FlowBits::EXTRA);
        if !has_extra && seq == first {
            return;
        }
        let Some(extra) = self.extra(self.side) else { return };
        let last = match bit {
            letter::SYN => &mut extra.last_syn,
            letter::FIN => &mut extra.last_fin,
            _ => &mut extra.last_rst,
        };
        if last.replace(seq).unwrap_or(first) != seq {
            self.push(letter, true);
        }
    }

    fn control_letters(&mut self) {
        let TcpSegment { seq, flags, .. } = self.segment;
        let payload_len = self.payload_len;
        let own = self.own();
        let (initial_seq, next_seq) = (own.initial_seq, own.next_seq);
        match TcpFlags(flags.0 & CONTROL.0) {
            TcpFlags(0) if payload_len > 0 => self.push_once(b'D', letter::DATA),
            TcpFlags(0) if flags.contains(TcpFlags::ACK) => self.push_once(b'A', letter::ACK),
            TcpFlags(0) => {}
            TcpFlags::SYN => {
                let name = if flags.contains(TcpFlags::ACK) { b'H' } else { b'S' };
                self.push_numbered(name, letter::SYN, seq, initial_seq);
            }
            // Told apart by the octet that FIN itself stands for: the last one that was sent.
            TcpFlags::FIN => self.push_numbered(b'F', letter::FIN, seq.add(payload_len + 1), next_seq),
            TcpFlags::RST => self.push_numbered(b'R', letter::RST, seq, next_seq),
            control if control.contains(TcpFlags::FIN) && control.contains(TcpFlags::RST) => {
                self.push_once(b'I', letter::FIN_RST);
            }
            _ => self.push_once(b'Q', letter::MULTIPLE),
        }
    }

    fn window(&mut self, header: &[u8]) {
        let TcpSegment { window, .. } = self.segment;
        let peer_is_closed = self.peer().bits.has(SideBits::FIN);
        let was_reset = self.hot.state == TcpState::Closed;
        if window == 0 && !self.has(TcpFlags::RST) && !peer_is_closed && !was_reset {
            let count = self.extra(self.side).map(|extra| {
                extra.zero_window_count += 1;
                extra.zero_window_count
            });
            if count.is_some_and(is_power_of_ten) {
                self.push(b'W', true);
            }
        }
        // A reset offers no window, and a SYN of another connection none of this one.
        if self.has(TcpFlags::RST) || self.is_foreign_syn() {
            return;
        }
        let has_syn = self.has(TcpFlags::SYN);
        let own = self.own();
        own.window = window;
        if has_syn {
            let is_whole = tcp::header_len(header).is_some_and(|len| len <= header.len());
            let unseen = if is_whole { 0 } else { WINDOW_SCALE_UNKNOWN };
            own.window_scale = tcp::window_scale(header).unwrap_or(unseen);
        }
    }

    /// Whether the segment is a SYN that does not belong to the connection as it is known so far.
    fn is_foreign_syn(&mut self) -> bool {
        let (seq, is_opening) = (self.segment.seq, self.hot.state <= TcpState::SynReceived);
        let own = self.own();
        let is_new = is_opening && !own.bits.has(SideBits::SYN);
        let is_known = own.bits.has(SideBits::SEQ) && own.initial_seq == seq;
        self.has(TcpFlags::SYN) && !is_new && !is_known
    }

    /// Whether a RST is one that its receiver would act on.
    fn reset(&mut self) -> bool {
        let TcpSegment { seq, ack, .. } = self.segment;
        let own = &self.hot.sides[self.side.index()];
        let peer = &self.hot.sides[self.side.other().index()];
        let window = window_of(peer);
        let is_valid = if self.hot.state == TcpState::SynSent && peer.bits.has(SideBits::SYN) {
            // RFC 9293 section 3.10.7.3: in SYN-SENT a reset counts if it acknowledges the SYN.
            self.has(TcpFlags::ACK) && ack.is_after(peer.initial_seq) && !ack.is_after(peer.next_seq)
        } else if !peer.bits.has(SideBits::SEEN) {
            !own.bits.has(SideBits::SEQ) || !seq.is_before(own.next_seq)
        } else if peer.bits.has(SideBits::ACK) {
            // What the peer expects next, and the end of the window that it offered.
            let end = if own.bits.has(SideBits::SEQ) { own.next_seq } else { peer.ack };
            !seq.is_before(peer.ack) && !seq.is_after(end.add(window))
        } else {
            !own.bits.has(SideBits::SEQ)
                || (!seq.is_before(own.initial_seq) && !seq.is_after(own.next_seq.add(window)))
        };
        if !is_valid {
            self.changes.anomaly = Some(Anomaly::ResetOutOfWindow);
        }
        is_valid
    }

    fn syn(&mut self) {
        let (side, seq) = (self.side, self.segment.seq);
        let (own_ns, now_ns) = (self.own_ns, self.now_ns);
        let is_opening = self.hot.state <= TcpState::SynReceived;
        let is_bare = !self.has(TcpFlags::ACK);
        let own = self.own();
        let is_seen = own.bits.has(SideBits::SYN);
        if own.bits.has(SideBits::SEQ) && own.initial_seq == seq && (is_seen || !is_opening) {
            // A retransmission, or overtaken by all that followed. In the handshake its clock restarts.
            if is_opening && is_bare {
                self.cold.note_syn(own_ns, now_ns);
            }
            return;
        }
        if is_opening && !is_seen {
            own.initial_seq = seq;
            own.next_seq = seq;
            own.bits.set(SideBits::SYN);
            own.bits.set(SideBits::SEQ);
            if is_bare {
                self.cold.note_syn(own_ns, now_ns);
            }
            return;
        }
        if is_bare {
            self.changes.anomaly = Some(Anomaly::SynOnOpenFlow);
            if let Some(extra) = self.extras.of(self.hot) {
                extra.pending_syn = Some((side, seq));
            }
        }
    }

    fn acknowledgment(&mut self) {
        let ack = self.segment.ack;
        let other = self.side.other();
        let own = self.own();
        let is_advance = !own.bits.has(SideBits::ACK) || ack.is_after(own.ack);
        if is_advance {
            own.ack = ack;
            own.bits.set(SideBits::ACK);
        }
        let peer = &mut self.hot.sides[other.index()];
        if !peer.bits.has(SideBits::SEQ) {
            // The peer was not seen, but this is where it stands.
            peer.initial_seq = ack.add(u32::MAX);
            peer.next_seq = ack;
            peer.bits.set(SideBits::SEQ);
            return;
        }
        if !is_advance {
            return;
        }
        let next = peer.next_seq;
        let unseen = ack.distance_from(next);
        // A jump of more than a window's possible size is nonsense, not evidence.
        let is_gap = unseen > 0 && unseen < 1 << 30 && peer.bits.has(SideBits::SEEN);
        if is_gap {
            peer.next_seq = ack;
        }
        let hole = self.hole(other);
        let is_acked_hole = hole.is_some_and(|(_, end)| !ack.is_before(end));
        if !is_gap && !is_acked_hole {
            return;
        }
        // The octets may still come: captures from two interfaces are skewed.
        if is_gap {
            self.changes.anomaly = Some(Anomaly::AckedUnseen);
            self.set_hole(other, Some((hole.map_or(next, |(start, _)| start), ack)));
        } else {
            self.set_hole(other, None);
        }
        let count = self.extra(other).map(|extra| {
            extra.gap_count += 1;
            extra.gap_count
        });
        if count.is_some_and(is_power_of_ten) && !self.has(TcpFlags::FIN) {
            self.push(b'G', false);
        }
    }

    /// The octets of a side that were jumped over and did not come since.
    fn hole(&mut self, side: Side) -> Option<(SeqNum, SeqNum)> {
        if !self.hot.sides[side.index()].bits.has(SideBits::HOLE) {
            return None;
        }
        self.extra(side).and_then(|extra| extra.hole)
    }

    fn set_hole(&mut self, side: Side, hole: Option<(SeqNum, SeqNum)>) {
        if let Some(extra) = self.extra(side) {
            extra.hole = hole;
            let bits = &mut self.hot.sides[side.index()].bits;
            if hole.is_some() { bits.set(SideBits::HOLE) } else { bits.clear(SideBits::HOLE) }
        }
    }

    /// The sequence numbers that the segment covers: SYN, payload, FIN.
    fn octets(&mut self) {
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
            // A SYN of another connection: its numbers say nothing about this one.
            return;
        }
        if covered_len == 0 {
            return;
        }
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
            self.set_hole(side, Some((first, start)));
        } else if !end.is_after(next) {
            self.stale(start, end, next);
        }
    }

    /// A segment that reaches no further than what was seen: late, or sent again.
    fn stale(&mut self, start: SeqNum, end: SeqNum, next: SeqNum) {
        let (side, payload_len) = (self.side, self.payload_len);
        let is_probe = is_probe(end, next, payload_len) && end.distance_from(start) == 1;
        let hole = self.hole(side).filter(|(first, last)| !start.is_before(*first) && start.is_before(*last));
        if let Some((first, last)) = hole {
            let rest = match (start == first, !end.is_before(last)) {
                (true, true) => None,
                (true, false) => Some((end, last)),
                (false, true) => Some((first, start)),
                (false, false) => Some((first, last)),
            };
            self.set_hole(side, rest);
        }
        let Some(extra) = self.extra(side) else { return };
        if hole.is_some() {
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

    fn endpoints(&mut self) {
        let (sender, peer) = (self.own().endpoint, self.peer().endpoint);
        let (sender, peer) =
            endpoint::after(sender, peer, self.is_initiator(), self.segment.flags, self.payload_len);
        self.own().endpoint = sender;
        self.hot.sides[self.side.other().index()].endpoint = peer;
    }

    fn state(&mut self, is_valid_reset: bool) {
        let is_suspect = matches!(self.changes.anomaly, Some(Anomaly::ResetOutOfWindow));
        if is_suspect || self.payload_len > 0 {
            self.hot.bits.set(FlowBits::SUSPECT, is_suspect);
        }
        let before = self.hot.state;
        if is_valid_reset {
            self.hot.state = TcpState::Closed;
            if before < TcpState::Established {
                self.cold.handshake_ns = UNKNOWN_RTT;
            }
        }
        if self.has(TcpFlags::RST) || before == TcpState::Closed {
            return;
        }
        self.hot.state = match before {
            TcpState::None | TcpState::SynSent | TcpState::SynReceived => self.opening(before),
            _ => self.open_or_closing(),
        };
        match before {
            TcpState::SynSent | TcpState::SynReceived if self.hot.state >= TcpState::Established => {
                self.established()
            }
            TcpState::None if self.hot.state >= TcpState::Established => self.cold.handshake_ns = UNKNOWN_RTT,
            _ => {}
        }
    }

    /// Up to the end of the handshake.
    fn opening(&self, before: TcpState) -> TcpState {
        let is_initiator = self.is_initiator();
        if self.has(TcpFlags::SYN) {
            let both = self.hot.sides.iter().all(|side| side.bits.has(SideBits::SYN));
            return if self.has(TcpFlags::ACK) || both {
                TcpState::SynReceived
            } else {
                before.max(TcpState::SynSent)
            };
        }
        match before {
            // The responder's acknowledgment before its SYN-ACK, or one of an older connection.
            TcpState::SynSent if !is_initiator && self.payload_len == 0 && !self.has(TcpFlags::FIN) => before,
            TcpState::SynReceived if !is_initiator && self.payload_len == 0 && !self.has(TcpFlags::FIN) => {
                before
            }
            _ => self.open_or_closing(),
        }
    }

    /// From which sides sent FIN, and which of the FINs are acknowledged.
    fn open_or_closing(&self) -> TcpState {
        let [a, b] = &self.hot.sides;
        let is_acked = |sender: &SideState, receiver: &SideState| {
            receiver.bits.has(SideBits::ACK) && !receiver.ack.is_before(sender.next_seq)
        };
        match (a.bits.has(SideBits::FIN), b.bits.has(SideBits::FIN)) {
            (false, false) => TcpState::Established,
            (true, false) if is_acked(a, b) => TcpState::FinWait2,
            (false, true) if is_acked(b, a) => TcpState::FinWait2,
            (true, false) | (false, true) => TcpState::FinWait1,
            (true, true) => match (is_acked(a, b), is_acked(b, a)) {
                (true, true) => TcpState::TimeWait,
                (false, false) => TcpState::Closing,
                _ => TcpState::LastAck,
            },
        }
    }

    fn established(&mut self) {
        self.changes.is_established = true;
        let initiator = &self.hot.sides[self.hot.bits.initiator().index()];
        let saw_handshake =
            self.is_initiator() && initiator.bits.has(SideBits::SYN) && self.has(TcpFlags::ACK);
        let elapsed_ns = self.cold.since_syn_ns(self.own_ns).filter(|_| saw_handshake);
        self.cold.handshake_ns = elapsed_ns.unwrap_or(UNKNOWN_RTT);
    }
}

/// The window that a side offers, in octets; of a scale that was not seen the largest is assumed.
fn window_of(side: &SideState) -> u32 {
    let scale = if side.window_scale == WINDOW_SCALE_UNKNOWN { WINDOW_SCALE_MAX } else { side.window_scale };
    u32::from(side.window) << scale
}

/// 1, 10, 100 ...: when a letter of the history repeats.
const fn is_power_of_ten(count: u32) -> bool {
    matches!(
        count,
        1 | 10 | 100 | 1_000 | 10_000 | 100_000 | 1_000_000 | 10_000_000 | 100_000_000 | 1_000_000_000
    )
}

#[cfg(test)]
mod tests {
    use crate::base::{ConnState, EndReason, FlowKey, IpProtocol, SeqNum, TcpFlags, Timestamp};
    use crate::extractor::{Packet, Transport};
    use crate::record::FlowRecord;
    use crate::tracker::{FlowSink, FlowView, Tracker};

    struct Ended(Vec<FlowRecord>);

    impl FlowSink<()> for Ended {
        fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
            self.0.push(flow.record(reason));
        }
    }

    /// A segment: whether the client sent it, control bits, sequence number, acknowledgment, payload.
    type Sketch = (bool, TcpFlags, u32, u32, u32);

    /// Records of segments at times, and how many SYNs on open flows were counted.
    fn records_at(segments: &[(u64, Sketch)]) -> (Vec<FlowRecord>, u64) {
        let [client, server] =
            [("10.0.0.1", 40_000), ("10.0.0.2", 80)].map(|(address, port)| (address.parse().unwrap(), port));
        let mut tracker = Tracker::<()>::default();
        let mut sink = Ended(Vec::new());
        for (time_ns, (is_client, flags, seq, ack, payload_len)) in segments {
            let (source, target) = if *is_client { (client, server) } else { (server, client) };
            let (key, side) = FlowKey::new(IpProtocol::TCP, source, target);
            let mut packet = Packet::new(key, side, Timestamp::from_nanos(*time_ns), &[]);
            packet.transport = Transport::Tcp;
            packet.payload_len = *payload_len;
            packet.tcp.flags = *flags;
            packet.tcp.seq = SeqNum(*seq);
            packet.tcp.ack = SeqNum(*ack);
            packet.tcp.window = 1000;
            tracker.track(&packet, &mut sink);
        }
        tracker.finish(&mut sink);
        let syn_on_open_flow_count = tracker.stats().syn_on_open_flow_count;
        (sink.0, syn_on_open_flow_count)
    }

    fn records(segments: &[Sketch]) -> (Vec<FlowRecord>, u64) {
        records_at(&(1..).zip(segments.iter().copied()).collect::<Vec<_>>())
    }

    const SYN: TcpFlags = TcpFlags::SYN;
    const ACK: TcpFlags = TcpFlags::ACK;
    const FIN: TcpFlags = TcpFlags::FIN;
    const RST: TcpFlags = TcpFlags::RST;

    #[test]
    fn a_syn_that_was_overtaken_belongs_to_its_connection() {
        let open = [
            (false, SYN | ACK, 500, 101, 0),
            (true, ACK, 101, 501, 0),
            (true, ACK, 101, 501, 10),
            (false, ACK, 501, 111, 0),
        ];
        let closing = [(true, FIN | ACK, 111, 501, 0), (false, FIN | ACK, 501, 112, 0)];
        let late_syn = [(true, SYN, 100, 0, 0)];
        for segments in [[&open[..], &late_syn].concat(), [&open[..], &closing, &late_syn].concat()] {
            let (found, syn_on_open_flow_count) = records(&segments);
            assert_eq!((found.len(), syn_on_open_flow_count), (1, 0));
            assert_eq!(found[0].forward.tcp.retransmitted_count, 0);
        }
        let new_syn = [(true, SYN, 9000, 0, 0)];
        assert_eq!(records(&[&open[..], &new_syn].concat()).1, 1);
        assert_eq!(records(&[&open[..], &closing, &new_syn].concat()).0.len(), 2);
    }
    #[test]
    fn who_refused_and_then_accepts_begins_anew() {
        let refused = [(true, SYN, 100, 0, 0), (false, RST | ACK, 0, 101, 0), (true, SYN, 100, 0, 0)];
        let accepted = [
            (false, SYN | ACK, 500, 101, 0),
            (false, SYN | ACK, 500, 101, 0),
            (true, ACK, 101, 501, 0),
            (true, ACK, 101, 501, 10),
        ];
        let (found, _) = records(&[&refused[..], &accepted].concat());
        let states: Vec<_> = found.iter().map(|record| record.conn_state).collect();
        assert_eq!(states, [ConnState::Rej, ConnState::S1]);
        // An answer that comes after the client gave up is of the connection that it gave up.
        let given_up = [(true, SYN, 100, 0, 0), (true, RST, 101, 0, 0), (false, SYN | ACK, 500, 101, 0)];
        assert_eq!(records(&given_up).0.len(), 1);
    }

    #[test]
    fn a_handshake_is_timed_by_its_own_packets() {
        let rtt_of = |times_ns: [u64; 4], third: Sketch| {
            let (foreign, syn) = ((true, ACK, 7, 9, 0), (true, SYN, 100, 0, 0));
            let sketches = [foreign, syn, (false, SYN | ACK, 500, 101, 0), third];
            // The first packet sets the clock; its connection ends where the next one begins.
            let mut segments: Vec<_> = times_ns.into_iter().zip(sketches).collect();
            segments.insert(1, (times_ns[0], (false, RST, 9, 0, 0)));
            let (found, _) = records_at(&segments);
            found.last().and_then(|record| record.handshake_rtt).map(|rtt| rtt.as_nanos())
        };
        let ack = (true, ACK, 101, 501, 0);
        assert_eq!(rtt_of([10, 10, 13, 17], ack), Some(7));
        // The clock is ahead: another interface of the capture is.
        assert_eq!(rtt_of([1000, 10, 13, 17], ack), Some(7));
        assert_eq!(rtt_of([5_000_000_000, 10, 13, 17], ack), None);
        assert_eq!(rtt_of([10, 10, 13, 4], ack), None);
        // A FIN without ACK completes nothing.
        assert_eq!(rtt_of([10, 10, 13, 17], (true, FIN, 101, 0, 0)), None);
    }
}
