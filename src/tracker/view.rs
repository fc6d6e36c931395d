//! What can be seen of a flow.

use std::net::IpAddr;
use std::time::Duration;

use super::endpoint;
use super::extras::Extra;
use super::flow::{Cold, FlowBits, FlowId, Hot, NOT_STARTED, SideBits, SideState, WINDOW_SCALE_UNKNOWN};
use super::lifecycle;
use crate::base::{
    ConnState, Counters, DirectionEvidence, EndReason, FlowKey, History, IpProtocol, Ports, SeqNum, Side,
    TcpCounters, TcpFlags, TcpState, Timestamp, VlanIds,
};
use crate::record::{Enclosure, FlowRecord, SideRecord};

/// A read-only view of a flow: cheap to make, `Copy`. Everything is per record: after an active timeout, times and
/// counters are those since.
#[derive(Clone, Copy, Debug)]
pub struct FlowView<'t> {
    pub(super) slot: u32,
    pub(super) hot: &'t Hot,
    pub(super) cold: &'t Cold,
    pub(super) extra: Option<&'t Extra>,
    pub(super) clock_ns: u64,
}

impl FlowView<'_> {
    /// The name of the flow, unique among all that the tracker ever held (until a slot was used 2^32 times).
    #[must_use]
    pub const fn id(&self) -> FlowId {
        FlowId { slot: self.slot, generation: self.cold.generation }
    }

    /// Its key.
    #[must_use]
    pub const fn key(&self) -> &FlowKey {
        &self.hot.key
    }

    /// The side that began, as far as is known.
    #[must_use]
    pub const fn initiator(&self) -> Side {
        self.hot.bits.initiator()
    }

    /// On what grounds.
    #[must_use]
    pub const fn direction_evidence(&self) -> DirectionEvidence {
        DirectionEvidence::from_bits(self.hot.bits.evidence_bits())
    }

    const fn side(&self, side: Side) -> &SideState {
        &self.hot.sides[side.index()]
    }

    /// What a side sent.
    #[must_use]
    pub fn counters(&self, side: Side) -> Counters {
        let state = self.side(side);
        Counters {
            packet_count: state.packet_count,
            octet_count: state.octet_count,
            ip_octet_count: state.ip_octet_count,
            payload_octet_count: state.payload_octet_count,
        }
    }

    /// What TCP adds to it.
    #[must_use]
    pub fn tcp_counters(&self, side: Side) -> TcpCounters {
        self.extra.map_or_else(TcpCounters::default, |extra| {
            let side = &extra.sides[side.index()];
            TcpCounters {
                retransmitted_count: side.retransmitted_count,
                out_of_order_count: side.out_of_order_count,
                zero_window_count: side.zero_window_count.wrapping_sub(side.zero_window_before_count),
            }
        })
    }

    /// Packets of both sides.
    #[must_use]
    pub fn packet_count(&self) -> u64 {
        self.hot.sides.iter().map(|side| side.packet_count).sum()
    }

    /// Octets of both sides on the wire.
    #[must_use]
    pub fn octet_count(&self) -> u64 {
        self.hot.sides.iter().map(|side| side.octet_count).sum()
    }

    /// Whether nothing was counted since the last active timeout.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cold.start_ns == NOT_STARTED
    }

    /// Control bits of all segments of a side.
    #[must_use]
    pub const fn tcp_flags(&self, side: Side) -> TcpFlags {
        self.side(side).flags
    }

    /// How the TCP connection stands.
    #[must_use]
    pub const fn tcp_state(&self) -> TcpState {
        self.hot.state
    }

    /// Initial sequence number of a side and one past its highest, if it was seen or acknowledged.
    #[must_use]
    pub fn sequence_numbers(&self, side: Side) -> Option<(SeqNum, SeqNum)> {
        let state = self.side(side);
        let is_tcp = self.hot.protocol() == IpProtocol::TCP;
        (is_tcp && state.bits.has(SideBits::SEQ)).then_some((state.initial_seq, state.next_seq))
    }

    /// The window scale that a side announced in its SYN; 0 if it announced none, `None` if no SYN was seen, or not to
    /// the end of its options.
    #[must_use]
    pub const fn window_scale(&self, side: Side) -> Option<u8> {
        match self.side(side).window_scale {
            WINDOW_SCALE_UNKNOWN => None,
            scale => Some(scale),
        }
    }

    /// What happened, as letters.
    #[must_use]
    pub fn history(&self) -> History {
        self.cold.history()
    }

    /// The outcome in one word.
    #[must_use]
    pub fn conn_state(&self) -> ConnState {
        let initiator = self.side(self.initiator());
        let responder = self.side(self.initiator().other());
        match self.hot.protocol() {
            IpProtocol::TCP => {
                let is_without_payload = initiator.payload_octet_count + responder.payload_octet_count == 0;
                endpoint::outcome(initiator.endpoint, responder.endpoint, self.history(), is_without_payload)
            }
            IpProtocol::UDP => match (initiator.bits.has(SideBits::SEEN), responder.bits.has(SideBits::SEEN))
            {
                (true, true) => ConnState::Sf,
                (true, false) => ConnState::S0,
                (false, true) => ConnState::Shr,
                (false, false) => ConnState::Oth,
            },
            _ => ConnState::Oth,
        }
    }

    /// When its first packet was captured.
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        Timestamp::from_nanos(if self.is_empty() { self.hot.last_ns } else { self.cold.start_ns })
    }

    /// When its last packet was captured; never before the start.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        let has_lag = self.hot.bits.has(FlowBits::LAG);
        let lag_ns = self.extra.filter(|_| has_lag).map_or(0, |extra| extra.lag_ns);
        Timestamp::from_nanos(self.hot.last_ns.saturating_sub(lag_ns)).max(self.start())
    }

    /// Time of the packet by which both ends of a TCP connection had closed it, each by FIN or RST; otherwise [`end`](Self::end).
    #[must_use]
    pub fn open_end(&self) -> Timestamp {
        let end = self.end();
        if self.hot.protocol() != IpProtocol::TCP || !lifecycle::is_over(self.hot) {
            return end;
        }
        let closed_ns = self.hot.last_ns.saturating_sub(self.cold.timing.since_close_ns());
        Timestamp::from_nanos(closed_ns).clamp(self.start(), end)
    }

    /// The time that the tracker had reached at its last packet, or when its end was due.
    #[inline(always)]
    pub(crate) const fn clock(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock_ns)
    }

    /// From the last SYN to the ACK that completed the handshake, if both were seen.
    #[must_use]
    pub const fn handshake_rtt(&self) -> Option<Duration> {
        match self.cold.timing.rtt_ns() {
            Some(rtt_ns) if self.hot.state as u8 >= TcpState::Established as u8 => {
                Some(Duration::from_nanos(rtt_ns))
            }
            _ => None,
        }
    }

    /// Where its first packet was captured.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        self.cold.interface
    }

    /// How many records an active timeout has made of it so far.
    #[must_use]
    pub const fn sequence_number(&self) -> u32 {
        self.cold.sequence_number
    }

    /// VLAN ids of the first frame that a side sent.
    #[must_use]
    pub fn vlan_ids(&self, side: Side) -> VlanIds {
        self.side(side).vlan_ids()
    }

    /// The hardware address of a side, as the first frames show it: that of a router, if one is in between.
    #[must_use]
    pub const fn mac(&self, side: Side) -> Option<[u8; 6]> {
        let state = self.side(side);
        // Loopback devices show zeros, which are nobody's address.
        if matches!(state.mac, [0, 0, 0, 0, 0, 0]) { None } else { Some(state.mac) }
    }

    /// Least and greatest TTL or hop limit of a side's packets.
    #[must_use]
    pub const fn hop_limits(&self, side: Side) -> Option<(u8, u8)> {
        let state = self.side(side);
        if state.packet_count == 0 { None } else { Some((state.hop_limit_min, state.hop_limit_max)) }
    }

    /// DSCP of a side's first packet.
    #[must_use]
    pub const fn dscp(&self, side: Side) -> Option<u8> {
        let state = self.side(side);
        if state.bits.has(SideBits::SEEN) { Some(state.traffic_class >> 2) } else { None }
    }

    /// Type and code of the initiator's first packet, if it is ICMP.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        let Ports::Icmp { kind, counterpart, .. } = self.hot.key.ports() else { return None };
        let initiator = self.initiator();
        // The code of a type that is answered is not in the key.
        let code = self.side(initiator).initial_seq.0 as u8;
        Some(match initiator {
            _ if self.hot.key.is_one_way_icmp() => (kind, counterpart),
            Side::A => (kind, code),
            Side::B => (counterpart, code),
        })
    }

    /// ICMP errors that quoted one of its packets.
    #[must_use]
    pub fn icmp_error_count(&self) -> u32 {
        self.extra.map_or(0, |extra| extra.icmp_error_count)
    }

    /// Fragments among its packets.
    #[must_use]
    pub fn fragment_count(&self) -> u32 {
        self.extra.map_or(0, |extra| extra.fragment_count)
    }

    /// What encloses it, initiator first, and what it carries, if that was asked for and there is anything. Copies; stacks
    /// are shared.
    #[must_use]
    pub fn enclosure(&self) -> Option<Enclosure> {
        let enclosure = self.extra?.enclosure.as_deref()?.clone();
        Some(if self.initiator() == Side::A { enclosure } else { enclosure.turned() })
    }

    /// The record of the flow, initiator first, as it ends for a reason. Copies some 400 octets, and allocates nothing but
    /// room for an [`enclosure`](Self::enclosure).
    ///
    /// Where a closed connection meets its active timeout before its linger is over, the record says that it ended: it
    /// may be the last one, since a record without packets is not made.
    #[must_use]
    pub fn record(&self, reason: EndReason) -> FlowRecord {
        let has_ended = reason == EndReason::ActiveTimeout && self.tcp_state().is_closed();
        let source = self.initiator();
        let key = self.hot.key;
        FlowRecord {
            key,
            initiator: source,
            start: self.start(),
            end: self.end(),
            open_end: self.open_end(),
            forward: self.side_record(source),
            reverse: self.side_record(source.other()),
            tcp_state: self.tcp_state(),
            conn_state: self.conn_state(),
            history: self.history(),
            handshake_rtt: self.handshake_rtt(),
            flow_end_reason: if has_ended { EndReason::EndOfFlow } else { reason },
            direction_evidence: self.direction_evidence(),
            icmp: self.icmp(),
            icmp_error_count: self.icmp_error_count(),
            fragment_count: self.fragment_count(),
            interface: self.interface(),
            sequence_number: self.sequence_number(),
            application: None,
            enclosure: self.enclosure().map(Box::new),
        }
    }

    fn side_record(&self, side: Side) -> SideRecord {
        SideRecord {
            counters: self.counters(side),
            tcp: self.tcp_counters(side),
            tcp_flags: self.tcp_flags(side),
            vlan_ids: self.vlan_ids(side),
            mac: self.mac(side),
            hop_limits: self.hop_limits(side),
            dscp: self.dscp(side),
        }
    }

    /// The address of a side.
    #[must_use]
    pub fn address(&self, side: Side) -> IpAddr {
        self.hot.key.address(side)
    }
}
