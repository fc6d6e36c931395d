//! A read-only view of a flow.

use std::net::IpAddr;
use std::time::Duration;

use super::endpoint;
use super::event::CallbackChanges;
use super::extras::Extra;
use super::flow::{Cold, FlowBits, FlowId, Hot, NOT_STARTED, SideBits, SideState};
use super::lifecycle;
use crate::base::{
    Application, ConnState, Counters, DirectionEvidence, EndReason, Evidence, FlowKey, History, IpProtocol,
    Ports, SeqNum, Side, TcpCounters, TcpFlags, TcpState, Timestamp, VlanIds, duration_nanos,
};
use crate::record::{CommunityId, EncapsulationRecord, FieldSet, FlowRecord, SideRecord, SortKey};

/// A read-only view of a flow: cheap to create, `Copy`. All values are per record: after an active timeout, times and
/// counters cover the time since that timeout.
#[derive(Clone, Copy, Debug)]
pub struct FlowView<'t> {
    pub(super) slot: u32,
    /// The bits of the flow; within a callback of a session, those that the flow will have after it.
    pub(super) bits: FlowBits,
    pub(super) hot: &'t Hot,
    pub(super) cold: &'t Cold,
    pub(super) extra: Option<&'t Extra>,
    pub(super) clock_ns: u64,
    /// The application protocol of the flow. A reference, so that a view, which is copied for each callback, stays
    /// small.
    pub(super) application: Option<&'static Application>,
}

impl FlowView<'_> {
    /// Returns the identifier of the flow, which is unique among all flows of the tracker (until a slot was used 2^32
    /// times).
    #[must_use]
    pub const fn id(&self) -> FlowId {
        FlowId { slot: self.slot, generation: self.cold.generation }
    }

    /// Returns the application protocol, if a stage with sessions has identified it by now.
    #[must_use]
    pub const fn application(&self) -> Option<Application> {
        match self.application {
            Some(application) => Some(*application),
            None => None,
        }
    }

    /// Returns the bits of the flow, with its direction.
    #[inline(always)]
    pub(crate) const fn bits(&self) -> FlowBits {
        self.bits
    }

    /// Returns the view after a callback with another view of the flow.
    #[inline(always)]
    pub(crate) const fn after(self, changes: CallbackChanges) -> Self {
        Self { bits: changes.bits, ..self }
    }

    #[inline(always)]
    pub(crate) const fn with_application(self, application: Option<&'static Application>) -> Self {
        Self { application, ..self }
    }

    /// Returns the view after a session learned that `client` is the side of the protocol's client: with that side as
    /// the initiator, if this evidence is stronger than the known evidence. The direction is final after the first record
    /// of the flow.
    #[must_use]
    pub(crate) fn learned(self, client: Side, evidence: Evidence) -> Self {
        let evidence = match evidence {
            Evidence::Content => DirectionEvidence::Content,
            Evidence::Port => DirectionEvidence::ServicePort,
        };
        let known = self.direction_evidence();
        let is_stronger =
            evidence > known || (evidence == known && evidence == DirectionEvidence::ServicePort);
        if self.cold.sequence_number > 0 || self.initiator() == client || !is_stronger {
            return self;
        }
        let mut bits = self.bits;
        bits.set_direction(client, evidence as u8);
        Self { bits, ..self }
    }

    /// Returns the Community ID of the flow, version 1, seed 0. Takes some hundred nanoseconds.
    #[must_use]
    pub fn community_id(&self) -> CommunityId {
        self.key().community_id(0)
    }

    /// Returns the Flow Key of the flow.
    #[must_use]
    pub const fn key(&self) -> &FlowKey {
        &self.hot.key
    }

    /// Returns the side that initiated the flow, according to the evidence so far.
    #[must_use]
    pub const fn initiator(&self) -> Side {
        self.bits.initiator()
    }

    /// Returns the evidence for which side is the initiator.
    #[must_use]
    pub const fn direction_evidence(&self) -> DirectionEvidence {
        DirectionEvidence::from_bits(self.bits.evidence_bits())
    }

    const fn side(&self, side: Side) -> &SideState {
        &self.hot.sides[side.index()]
    }

    /// Returns the packet and octet counters of a side.
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

    /// Returns the TCP-specific counters of a side.
    #[must_use]
    pub(crate) fn tcp_counters(&self, side: Side) -> TcpCounters {
        self.extra.map_or_else(TcpCounters::default, |extra| {
            let side = &extra.sides[side.index()];
            TcpCounters {
                retransmitted_count: side.retransmitted_count,
                out_of_order_count: side.out_of_order_count,
                zero_window_count: side.zero_window_count.wrapping_sub(side.zero_window_before_count),
            }
        })
    }

    /// Returns the value by which flows are sorted for the sort key `key`; `None` if the flow has no such value. The
    /// flow with the greatest value comes first.
    #[must_use]
    pub fn sort_value(&self, key: SortKey) -> Option<u64> {
        let both = |value: &dyn Fn(Side) -> u64| value(Side::A) + value(Side::B);
        match key {
            // The earliest flow comes first.
            SortKey::Start => Some(!self.start().as_nanos()),
            SortKey::End => Some(!self.end().as_nanos()),
            SortKey::Duration => Some(duration_nanos(self.end().saturating_since(self.start()))),
            SortKey::Packets => Some(self.packet_count()),
            SortKey::Octets => Some(self.octet_count()),
            SortKey::Payload => Some(both(&|side| self.counters(side).payload_octet_count)),
            SortKey::Retransmitted => Some(both(&|side| self.tcp_counters(side).retransmitted_count.into())),
            SortKey::Rtt => self.handshake_rtt().map(duration_nanos),
        }
    }

    /// Returns the sum of the numbers of packets of both sides.
    #[must_use]
    pub fn packet_count(&self) -> u64 {
        self.hot.sides.iter().map(|side| side.packet_count).sum()
    }

    /// Returns the sum of the octets of both sides on the wire.
    #[must_use]
    pub fn octet_count(&self) -> u64 {
        self.hot.sides.iter().map(|side| side.octet_count).sum()
    }

    /// Returns whether no packet was counted on the flow since the last active timeout.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cold.start_ns == NOT_STARTED
    }

    /// Returns the TCP control bits of all segments that a side sent, combined.
    #[must_use]
    pub const fn tcp_flags(&self, side: Side) -> TcpFlags {
        self.side(side).flags
    }

    /// Returns the state of the flow's TCP connection.
    #[must_use]
    pub const fn tcp_state(&self) -> TcpState {
        self.hot.state
    }

    /// Returns the initial sequence number of a side and the sequence number after its highest one, if the side was
    /// seen or acknowledged.
    #[must_use]
    pub fn sequence_numbers(&self, side: Side) -> Option<(SeqNum, SeqNum)> {
        let state = self.side(side);
        let is_tcp = self.hot.protocol() == IpProtocol::TCP;
        (is_tcp && state.bits.has(SideBits::SEQ)).then_some((state.initial_seq, state.next_seq))
    }

    /// Returns the history of the flow as letters.
    #[must_use]
    pub fn history(&self) -> History {
        let history = self.cold.history();
        if self.bits.initiator() == self.hot.bits.initiator() { history } else { history.reversed() }
    }

    /// Returns the outcome code of the TCP connection.
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

    /// Returns the time at which the record's first packet was captured.
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        Timestamp::from_nanos(if self.is_empty() { self.hot.last_ns } else { self.cold.start_ns })
    }

    /// Returns the latest capture time of the record's packets; never before the start. If the clock of the capture was set
    /// back during the flow, it is not that of the last packet.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        let has_lag = self.hot.bits.has(FlowBits::LAG);
        let lag_ns = self.extra.filter(|_| has_lag).map_or(0, |extra| extra.lag_ns);
        Timestamp::from_nanos(self.hot.last_ns.saturating_sub(lag_ns)).max(self.start())
    }

    /// Returns the time of the packet after which both ends of a TCP connection had closed it, each by FIN or RST. For
    /// any other flow, returns [`end`](Self::end).
    #[must_use]
    pub(crate) fn open_end(&self) -> Timestamp {
        let end = self.end();
        if self.hot.protocol() != IpProtocol::TCP || !lifecycle::is_over(self.hot) {
            return end;
        }
        let closed_ns = self.hot.last_ns.saturating_sub(self.cold.timing.since_close_ns());
        Timestamp::from_nanos(closed_ns).clamp(self.start(), end)
    }

    /// Returns the time on the tracker's clock at the flow's last packet; while the flow ends, the current time, but
    /// not after the flow's idle timeout.
    #[inline(always)]
    pub(crate) const fn clock(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock_ns)
    }

    /// Returns the time from the last SYN to the ACK that completed the TCP handshake, if both were seen.
    #[must_use]
    pub const fn handshake_rtt(&self) -> Option<Duration> {
        match self.cold.timing.rtt_ns() {
            Some(rtt_ns) if self.hot.state as u8 >= TcpState::Established as u8 => {
                Some(Duration::from_nanos(rtt_ns))
            }
            _ => None,
        }
    }

    /// Returns the index of the interface at which the flow's first packet was captured.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        self.cold.interface
    }

    /// Returns the number of records that active timeouts have created of the flow so far.
    #[must_use]
    pub const fn sequence_number(&self) -> u32 {
        self.cold.sequence_number
    }

    /// Returns the VLAN identifiers in the first frame that a side sent.
    #[must_use]
    pub fn vlan_ids(&self, side: Side) -> VlanIds {
        self.side(side).vlan_ids()
    }

    /// Returns the hardware address of a side in the first frames of the flow: the address of a router, if one is in
    /// between.
    #[must_use]
    pub const fn mac(&self, side: Side) -> Option<[u8; 6]> {
        let state = self.side(side);
        // Loopback devices use zeros, which are not a valid address.
        if matches!(state.mac, [0, 0, 0, 0, 0, 0]) { None } else { Some(state.mac) }
    }

    /// Returns the lowest and the highest TTL or hop limit of a side's packets.
    #[must_use]
    pub const fn hop_limits(&self, side: Side) -> Option<(u8, u8)> {
        let state = self.side(side);
        if state.packet_count == 0 { None } else { Some((state.hop_limit_min, state.hop_limit_max)) }
    }

    /// Returns the DSCP in the IP header of a side's first packet.
    #[must_use]
    pub const fn dscp(&self, side: Side) -> Option<u8> {
        let state = self.side(side);
        if state.bits.has(SideBits::SEEN) { Some(state.traffic_class >> 2) } else { None }
    }

    /// Returns the ICMP type and code of the initiator's first packet, if the flow is ICMP.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        let Ports::Icmp { kind, counterpart, .. } = self.hot.key.ports() else { return None };
        let initiator = self.initiator();
        // For a type with a reply, the code is not in the key.
        let code = self.side(initiator).initial_seq.0 as u8;
        Some(match initiator {
            _ if self.hot.key.is_one_way_icmp() => (kind, counterpart),
            Side::A => (kind, code),
            Side::B => (counterpart, code),
        })
    }

    /// Returns the ICMP type and code of the responder's first packet, if the flow is ICMP and the responder sent one.
    #[cfg(feature = "protocols")]
    #[must_use]
    pub(crate) fn response_icmp(&self) -> Option<(u8, u8)> {
        let Ports::Icmp { kind, counterpart, .. } = self.hot.key.ports() else { return None };
        let responder = self.initiator().other();
        let side = self.side(responder);
        let is_answered = side.packet_count > 0 && !self.hot.key.is_one_way_icmp();
        let code = side.initial_seq.0 as u8;
        is_answered.then_some((if responder == Side::A { kind } else { counterpart }, code))
    }

    /// Returns the number of ICMP errors that quoted a packet of the flow.
    #[must_use]
    pub fn icmp_error_count(&self) -> u32 {
        self.extra.map_or(0, |extra| extra.icmp_error_count)
    }

    /// Returns the number of fragments among the packets of the flow.
    #[must_use]
    pub fn fragment_count(&self) -> u32 {
        self.extra.map_or(0, |extra| extra.fragment_count)
    }

    /// Returns the encapsulation and the outer flow of each direction, and counters of the packets that the flow
    /// carries, if requested and present. Copies the data; lists of headers are shared.
    #[must_use]
    pub fn encapsulation(&self) -> Option<EncapsulationRecord> {
        let encapsulation = self.extra?.encapsulation.as_deref()?.clone();
        Some(if self.initiator() == Side::A { encapsulation } else { encapsulation.turned() })
    }

    /// Returns the record of the flow, initiator first, with an end reason. Copies some 400 octets, and allocates only
    /// for an [`encapsulation`](Self::encapsulation).
    ///
    /// If the active timeout of a closed connection passes while the connection is still kept for late segments, the
    /// record states that the connection ended: it may be the last one, since a record without packets is not created.
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
            sampling_interval: None,
            counter_scale: None,
            application: self.application(),
            encapsulation: self.encapsulation().map(Box::new),
            exported: None,
            known: FieldSet::ALL,
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

    /// Returns the IP address of a side in the Flow Key.
    #[must_use]
    pub fn address(&self, side: Side) -> IpAddr {
        self.hot.key.address(side)
    }
}
