//! A naive model of the rules of the tracker.

use std::collections::HashMap;
use std::time::Duration;

use flowgauge::base::{EndReason, FlowKey, IpProtocol, NANOS_PER_SECOND, Side, TcpFlags};
use flowgauge::decode::extractor::{Packet, Transport};

/// The values of a record that are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) key: FlowKey,
    pub(crate) start: u64,
    pub(crate) sequence_number: u32,
    pub(crate) end: u64,
    pub(crate) reason: EndReason,
    pub(crate) initiator: Side,
    /// Packets, octets, IP octets, payload octets of sides A and B.
    pub(crate) counts: [[u64; 4]; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    SynSent,
    SynReceived,
    Open,
    Closed,
}

#[derive(Clone, Debug, Default)]
struct End {
    counts: [u64; 4],
    is_seen: bool,
    /// The sequence number of its SYN.
    isn: Option<u32>,
    /// The first sequence number: that of its SYN, or one below the first that was seen or acknowledged.
    first: Option<u32>,
    /// The sequence number after the highest octet that was seen or acknowledged.
    next: Option<u32>,
    ack: Option<u32>,
    window: u16,
    /// `None` while unknown.
    scale: Option<u8>,
    has_fin: bool,
    /// Its first sequence number is that of a SYN that does not count, and later ones arrived before it.
    has_skipped_first: bool,
    /// It sent octets in a segment without SYN, FIN, and RST.
    has_data: bool,
    /// It sent a valid RST.
    has_refused: bool,
}

#[derive(Clone, Debug)]
struct Flow {
    /// `None` for other protocols than TCP.
    phase: Option<Phase>,
    is_suspect: bool,
    /// A SYN with a sequence number other than that of its side: on an open flow, or a second SYN-ACK.
    pending: Option<(Side, u32)>,
    initiator: Side,
    /// Rank of the evidence for it.
    evidence: u8,
    ends: [End; 2],
    /// The timestamp of the record's first packet; `None` after an active timeout.
    start: Option<u64>,
    end: u64,
    /// The clock at the record's first packet, at the last packet, and at the last SYN.
    started_at: u64,
    last: u64,
    syn_at: u64,
    sequence_number: u32,
}

pub(crate) struct Model {
    flows: HashMap<FlowKey, Flow>,
    /// Initiators of connections whose idle timeout passed, and the rank of the evidence.
    proven: HashMap<FlowKey, (Side, u8)>,
    clock: u64,
    active_ns: Option<u64>,
    records: Vec<Record>,
}

pub(crate) const fn seconds(count: u64) -> u64 {
    count * NANOS_PER_SECOND
}

fn is_after(left: u32, right: u32) -> bool {
    left.wrapping_sub(right) as i32 > 0
}

impl Flow {
    fn timeout(&self, protocol: IpProtocol) -> u64 {
        if self.is_suspect {
            return seconds(15);
        }
        match (protocol, self.phase) {
            (_, Some(Phase::SynSent | Phase::SynReceived)) => seconds(65),
            (_, Some(Phase::Open)) => seconds(300),
            (_, Some(Phase::Closed)) => seconds(15),
            (IpProtocol::UDP, None) => seconds(60),
            _ => seconds(30),
        }
    }

    /// Returns the start of the idle timeout: the last SYN during a handshake, otherwise the last packet.
    fn idle_since(&self) -> u64 {
        let is_waiting = self.phase.is_some_and(|phase| phase <= Phase::SynReceived) && !self.is_suspect;
        if is_waiting { self.syn_at } else { self.last }
    }

    fn is_closed(&self) -> bool {
        self.phase == Some(Phase::Closed)
    }

    /// Returns true if a SYN begins a new connection that replaces this one.
    fn is_replaced_by(&self, packet: &Packet<'_>) -> bool {
        let flags = packet.tcp.flags;
        if packet.transport != Transport::Tcp || !flags.contains(TcpFlags::SYN) {
            return false;
        }
        let own = &self.ends[packet.side.index()];
        let is_same_syn = own.first == Some(packet.tcp.seq.0);
        let silent = packet.timestamp.as_nanos().saturating_sub(self.last);
        // Two maximum segment lifetimes after the side that opens the new connection has closed its direction.
        let is_forgotten = |opener: Side| {
            self.phase == Some(Phase::Open) && self.ends[opener.index()].has_fin && silent >= seconds(240)
        };
        if flags.contains(TcpFlags::ACK) {
            let answers = self.pending.is_some_and(|(side, isn)| {
                side != packet.side && (1..1 << 16).contains(&packet.tcp.ack.0.wrapping_sub(isn))
            });
            let is_past = self.is_closed() || is_forgotten(packet.side.other());
            answers || (is_past && (own.first.is_some() || own.has_refused) && !is_same_syn)
        } else if is_same_syn {
            // The same SYN again, after a connection that was established has closed.
            self.is_closed() && self.ends.iter().all(|end| end.isn.is_some()) && silent >= seconds(1) / 10
        } else {
            self.is_closed()
                || (self.phase == Some(Phase::SynSent) && own.isn.is_some())
                || is_forgotten(packet.side)
        }
    }

    /// Returns true if the receiver of a RST accepts it.
    fn is_valid_reset(&self, packet: &Packet<'_>) -> bool {
        let (own, peer) = (&self.ends[packet.side.index()], &self.ends[packet.side.other().index()]);
        let (seq, ack) = (packet.tcp.seq.0, packet.tcp.ack.0);
        if self.phase == Some(Phase::SynSent)
            && let Some(isn) = peer.isn
        {
            let sent = peer.next.unwrap_or(isn).wrapping_sub(isn);
            return packet.tcp.flags.contains(TcpFlags::ACK) && (1..=sent).contains(&ack.wrapping_sub(isn));
        }
        let Some(next) = own.next else { return true };
        if !peer.is_seen {
            return !is_after(next, seq);
        }
        let first = peer.ack.or(own.first).unwrap_or(seq);
        let window = u32::from(peer.window) << peer.scale.unwrap_or(14);
        !is_after(first, seq) && !is_after(seq, next.wrapping_add(window))
    }

    /// Returns the sequence number of the other SYN of a side that sent nothing else.
    fn other_syn(&self, side: Side) -> Option<u32> {
        let end = &self.ends[side.index()];
        let is_open = end.isn.is_some() && !end.has_fin && !end.has_data;
        self.pending.filter(|(of, _)| *of == side && is_open).map(|(_, seq)| seq)
    }

    /// Moves the beginning of a side to another SYN.
    fn begin_at(&mut self, side: Side, seq: u32) {
        let end = &mut self.ends[side.index()];
        self.pending = Some((side, end.first.unwrap_or(seq)));
        (end.isn, end.first, end.next, end.scale) = (Some(seq), Some(seq), Some(seq.wrapping_add(1)), None);
    }

    /// Selects the SYN of a side by the acknowledgment of its peer: the nearest before it within an unscaled window; if
    /// there is none, a SYN that is no longer known.
    fn confirm(&mut self, side: Side, ack: u32) {
        let (Some(other), Some(first)) = (self.other_syn(side), self.ends[side.index()].first) else {
            return;
        };
        let ahead = |seq: u32| ack.wrapping_sub(seq.wrapping_add(1));
        let near = [first, other].into_iter().filter(|seq| ahead(*seq) < 1 << 16);
        let seq = near.min_by_key(|seq| ahead(*seq)).unwrap_or(ack.wrapping_sub(1));
        if seq != first {
            self.begin_at(side, seq);
            self.ends[side.other().index()].ack = Some(ack);
        }
    }

    fn tcp(&mut self, packet: &Packet<'_>, clock: u64) {
        let has = |flag| packet.tcp.flags.contains(flag);
        let (seq, ack, len) = (packet.tcp.seq.0, packet.tcp.ack.0, packet.payload_len);
        let (side, other) = (packet.side, packet.side.other());
        if has(TcpFlags::RST) {
            if self.is_valid_reset(packet) {
                self.phase = Some(Phase::Closed);
                self.ends[side.index()].has_refused = true;
            } else {
                self.is_suspect = true;
            }
            return;
        }
        if len > 0 {
            self.is_suspect = false;
        }
        let peers_ack = self.ends[other.index()].ack;
        let own = &mut self.ends[side.index()];
        own.has_data |= len > 0 && !has(TcpFlags::SYN) && !has(TcpFlags::FIN);
        let is_opening = self.phase.is_none_or(|phase| phase <= Phase::SynReceived);
        let mut is_other_syn = false;
        if has(TcpFlags::SYN) {
            if own.isn.is_none() && is_opening {
                own.isn = Some(seq);
                (own.first, own.next) = (Some(seq), Some(seq));
            }
            // A SYN at the first sequence number of an open connection was reordered.
            is_other_syn = own.first != Some(seq);
            if !is_other_syn && !has(TcpFlags::ACK) && is_opening {
                self.syn_at = clock;
            }
            if is_other_syn && !has(TcpFlags::ACK) {
                self.pending = Some((side, seq));
            }
        }
        if !is_other_syn {
            own.window = packet.tcp.window;
            if has(TcpFlags::SYN) {
                own.scale = scale_of(packet.frame);
            }
        }
        if is_other_syn && has(TcpFlags::ACK) && own.isn.is_some() && !own.has_fin && !own.has_data {
            if peers_ack == Some(seq.wrapping_add(1)) {
                self.begin_at(side, seq);
                self.ends[side.index()].next = Some(seq);
            } else if self.pending.is_none_or(|(of, _)| of == side) {
                self.pending = Some((side, seq));
            }
        }
        if has(TcpFlags::ACK) {
            self.confirm(other, ack);
        }
        let own = &mut self.ends[side.index()];
        let is_advance = has(TcpFlags::ACK) && own.ack.is_none_or(|highest| is_after(ack, highest));
        if is_advance {
            own.ack = Some(ack);
        }
        if has(TcpFlags::ACK) {
            let peer = &mut self.ends[other.index()];
            match peer.next {
                None => (peer.first, peer.next) = (Some(ack.wrapping_sub(1)), Some(ack)),
                Some(next) if is_advance && is_after(ack, next) && peer.is_seen => peer.next = Some(ack),
                Some(_) => {}
            }
        }
        let end = seq.wrapping_add(len + u32::from(has(TcpFlags::SYN)) + u32::from(has(TcpFlags::FIN)));
        let own = &mut self.ends[side.index()];
        let first = *own.first.get_or_insert(if has(TcpFlags::SYN) { seq } else { seq.wrapping_sub(1) });
        let next = *own.next.get_or_insert(seq);
        let has_only_syn = own.isn.is_some() && next == first.wrapping_add(1);
        // Octets after the other SYN of their side.
        if let Some((of, other_seq)) = self.pending
            && (of == side && has_only_syn && end != seq && !has(TcpFlags::SYN))
            && (seq != next && seq == other_seq.wrapping_add(1))
        {
            self.begin_at(side, other_seq);
        }
        let own = &mut self.ends[side.index()];
        let (first, next) = (own.first.unwrap_or(seq), own.next.unwrap_or(seq));
        if !has(TcpFlags::SYN) || own.isn == Some(seq) {
            if end != seq && is_after(end, next) {
                own.next = Some(end);
            }
            // Octets before all that were seen, and that were not acknowledged, move the beginning.
            // Those after a SYN that does not count were skipped, if later ones arrived first.
            let fills_skipped = own.has_skipped_first && seq == first;
            let is_early = own.isn.is_none() && !is_after(seq, first) && !fills_skipped;
            if end != seq {
                own.has_skipped_first |= next == first && is_after(seq, next);
                own.has_skipped_first &= is_after(seq, first) || !is_after(end, first);
            }
            let is_new = peers_ack.is_none_or(|acked| is_after(end, acked));
            if end != seq && !is_after(end, next) && !is_after(seq, next) && is_early && is_new {
                own.first = Some(seq.wrapping_sub(1));
            }
            own.has_fin |= has(TcpFlags::FIN);
        }
        let is_responder = side != self.initiator;
        let is_silent_responder = is_responder && len == 0 && !has(TcpFlags::FIN);
        // During the handshake, the initiator can have sent octets in its SYN only: TCP Fast Open.
        let is_early_responder = is_responder && self.ends[other.index()].counts[3] > 0;
        let both = self.ends.iter().all(|end| end.isn.is_some());
        self.phase = Some(match self.phase {
            Some(Phase::Closed) => Phase::Closed,
            Some(Phase::SynReceived) if has(TcpFlags::SYN) => Phase::SynReceived,
            None | Some(Phase::SynSent) if has(TcpFlags::SYN) => {
                if has(TcpFlags::ACK) || both {
                    Phase::SynReceived
                } else {
                    Phase::SynSent
                }
            }
            Some(phase @ (Phase::SynSent | Phase::SynReceived)) if is_silent_responder => phase,
            Some(Phase::SynReceived) if is_early_responder => Phase::SynReceived,
            _ if self.ends.iter().all(|end| end.has_fin) => Phase::Closed,
            _ => Phase::Open,
        });
    }
}

/// Returns the window scale of a TCP header; `None` if no header was captured.
fn scale_of(header: &[u8]) -> Option<u8> {
    match header.len() {
        0 => None,
        24 => Some(header[22]),
        _ => Some(0),
    }
}

/// Returns the initiator and the rank of the evidence for it, if a packet has any.
fn direction(packet: &Packet<'_>, is_first: bool) -> Option<(Side, u8)> {
    let flags = packet.tcp.flags;
    if packet.transport == Transport::Tcp && flags.contains(TcpFlags::SYN) {
        return Some(if flags.contains(TcpFlags::ACK) { (packet.side.other(), 3) } else { (packet.side, 4) });
    }
    let is_service = |side| matches!(packet.key.port(side), Some(53 | 80));
    let other = packet.side.other();
    is_first.then(|| match (is_service(packet.side), is_service(other)) {
        (true, false) => (other, 1),
        (false, true) => (packet.side, 1),
        _ => (packet.side, 0),
    })
}

impl Model {
    pub(crate) fn new(active: Option<Duration>) -> Self {
        let active_ns = active.map(|active| active.as_nanos() as u64);
        Self { flows: HashMap::new(), proven: HashMap::new(), clock: 0, active_ns, records: Vec::new() }
    }

    fn emit(&mut self, key: FlowKey, flow: &Flow, reason: EndReason) {
        let Some(start) = flow.start else { return };
        self.records.push(Record {
            key,
            start,
            sequence_number: flow.sequence_number,
            end: flow.end.max(start),
            reason,
            initiator: flow.initiator,
            counts: [flow.ends[0].counts, flow.ends[1].counts],
        });
    }

    /// Emits the record of an active timeout, if it was due before the idle timeout.
    fn active(&mut self, key: FlowKey, flow: &mut Flow) {
        let (Some(active_ns), Some(_)) = (self.active_ns, flow.start) else { return };
        let due = flow.started_at + active_ns;
        if self.clock < due || flow.idle_since() + flow.timeout(key.protocol()) < due {
            return;
        }
        let reason = if flow.is_closed() { EndReason::EndOfFlow } else { EndReason::ActiveTimeout };
        self.emit(key, flow, reason);
        flow.ends.iter_mut().for_each(|end| end.counts = [0; 4]);
        flow.start = None;
        flow.sequence_number += 1;
    }

    fn is_idle(&self, key: FlowKey, flow: &Flow) -> bool {
        self.clock - flow.idle_since() >= flow.timeout(key.protocol())
    }

    pub(crate) fn packet(&mut self, packet: &Packet<'_>) {
        let (key, own) = (packet.key, packet.timestamp.as_nanos());
        self.clock = self.clock.max(own);
        let known = self.flows.remove(&key).and_then(|mut flow| {
            self.active(key, &mut flow);
            let reason = if flow.is_closed() { EndReason::EndOfFlow } else { EndReason::IdleTimeout };
            if self.is_idle(key, &flow) {
                self.emit(key, &flow, reason);
                if reason == EndReason::IdleTimeout
                    && packet.transport == Transport::Tcp
                    && flow.evidence >= 3
                {
                    self.proven.insert(key, (flow.initiator, flow.evidence));
                }
                None
            } else if flow.is_replaced_by(packet) {
                self.emit(key, &flow, EndReason::EndOfFlow);
                None
            } else {
                Some(flow)
            }
        });
        let mut flow = known.unwrap_or_else(|| {
            let (mut initiator, mut evidence) = direction(packet, true).expect("a first packet has evidence");
            // A handshake before an idle timeout proves the direction of what follows.
            if packet.transport == Transport::Tcp && evidence < 3 {
                (initiator, evidence) = self.proven.get(&key).copied().unwrap_or((initiator, evidence));
            }
            Flow {
                phase: None,
                is_suspect: false,
                pending: None,
                initiator,
                evidence,
                ends: Default::default(),
                start: None,
                end: own,
                started_at: self.clock,
                last: self.clock,
                syn_at: self.clock,
                sequence_number: 0,
            }
        });
        if flow.start.is_none() {
            (flow.start, flow.started_at, flow.end) = (Some(own), self.clock, own);
        }
        (flow.end, flow.last) = (flow.end.max(own), self.clock);
        let sender = &mut flow.ends[packet.side.index()];
        sender.is_seen = true;
        let lens = [1, packet.wire_len, packet.ip_len, packet.payload_len];
        sender.counts.iter_mut().zip(lens).for_each(|(count, len)| *count += u64::from(len));
        // Packets after the handshake are no evidence of the initiator.
        if flow.phase.is_none_or(|phase| phase <= Phase::SynReceived)
            && let Some((side, evidence)) = direction(packet, false)
            && evidence > flow.evidence
        {
            (flow.initiator, flow.evidence) = (side, evidence);
        }
        if packet.transport == Transport::Tcp {
            flow.tcp(packet, self.clock);
        }
        self.flows.insert(key, flow);
    }

    pub(crate) fn finish(mut self) -> Vec<Record> {
        for (key, mut flow) in std::mem::take(&mut self.flows) {
            self.active(key, &mut flow);
            let reason = match (flow.is_closed(), self.is_idle(key, &flow)) {
                (true, _) => EndReason::EndOfFlow,
                (false, true) => EndReason::IdleTimeout,
                (false, false) => EndReason::ForcedEnd,
            };
            self.emit(key, &flow, reason);
        }
        self.records.sort();
        self.records
    }
}
