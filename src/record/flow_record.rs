//! The record of a flow, under the names of IPFIX.

use std::net::IpAddr;
use std::time::Duration;

use super::community_id;
use crate::base::{
    ConnState, Counters, DirectionEvidence, EndReason, FlowKey, History, IpProtocol, Side, TcpCounters,
    TcpFlags, TcpState, Timestamp, VlanIds,
};

/// What one side of a flow did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SideRecord {
    /// Packets and octets.
    pub counters: Counters,
    /// What TCP adds to them.
    pub tcp: TcpCounters,
    /// Union of the control bits (tcpControlBits, IPFIX 6).
    pub tcp_flags: TcpFlags,
    /// VLAN ids of its first frame, outermost first (dot1qVlanId, IPFIX 243).
    pub vlan_ids: VlanIds,
    /// Its hardware address (sourceMacAddress, IPFIX 56).
    pub mac: Option<[u8; 6]>,
    /// Least and greatest TTL or hop limit (minimumTTL, maximumTTL, IPFIX 52 and 53); `None` if it sent nothing.
    pub hop_limits: Option<(u8, u8)>,
    /// DSCP of its first packet (ipDiffServCodePoint, IPFIX 195).
    pub dscp: Option<u8>,
}

/// A bidirectional flow record (RFC 5103): what is known of a flow when it ends, initiator first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowRecord {
    /// The Flow Key.
    pub key: FlowKey,
    /// Which side of the key began: the source of the record.
    pub initiator: Side,
    /// First packet (flowStartNanoseconds, IPFIX 156).
    pub start: Timestamp,
    /// Last packet (flowEndNanoseconds, IPFIX 157).
    pub end: Timestamp,
    /// What the initiator sent.
    pub forward: SideRecord,
    /// What the responder sent.
    pub reverse: SideRecord,
    /// How the TCP connection stood at the end.
    pub tcp_state: TcpState,
    /// The outcome in one word.
    pub conn_state: ConnState,
    /// What happened, as letters.
    pub history: History,
    /// From the last SYN to the ACK that completed the handshake, if both were seen.
    pub handshake_rtt: Option<Duration>,
    /// Why the record was made (flowEndReason, IPFIX 136).
    pub flow_end_reason: EndReason,
    /// On what grounds the initiator was told.
    pub direction_evidence: DirectionEvidence,
    /// ICMP type and code of the initiator's first packet.
    pub icmp: Option<(u8, u8)>,
    /// ICMP errors that quoted one of its packets.
    pub icmp_error_count: u32,
    /// Fragments among its packets.
    pub fragment_count: u32,
    /// Where its first packet was captured (ingressInterface, IPFIX 10, counted from zero).
    pub interface: u32,
    /// How many records an active timeout had made of the flow before this one.
    pub sequence_number: u32,
}

impl FlowRecord {
    /// The initiator's address (sourceIPv4Address, sourceIPv6Address; IPFIX 8 and 27).
    #[must_use]
    pub fn source_address(&self) -> IpAddr {
        self.key.address(self.initiator)
    }

    /// The responder's address (IPFIX 12 and 28).
    #[must_use]
    pub fn destination_address(&self) -> IpAddr {
        self.key.address(self.initiator.other())
    }

    /// The initiator's port (sourceTransportPort, IPFIX 7); zero if the key has none.
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        self.key.port(self.initiator)
    }

    /// The responder's port (IPFIX 11); zero if the key has none.
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        self.key.port(self.initiator.other())
    }

    /// The protocol (protocolIdentifier, IPFIX 4).
    #[must_use]
    pub const fn protocol(&self) -> IpProtocol {
        self.key.protocol()
    }

    /// From the first packet to the last.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.end.saturating_since(self.start)
    }

    /// The Community ID of the flow, version 1, seed 0.
    #[must_use]
    pub fn community_id(&self) -> String {
        community_id(&self.key, 0)
    }

    /// Packets of both sides.
    #[must_use]
    pub const fn packet_count(&self) -> u64 {
        self.forward.counters.packet_count + self.reverse.counters.packet_count
    }

    /// Octets of both sides on the wire.
    #[must_use]
    pub const fn octet_count(&self) -> u64 {
        self.forward.counters.octet_count + self.reverse.counters.octet_count
    }
}

/// A hardware address as text: six pairs of digits.
#[cfg(feature = "serde")]
fn mac_text(mac: Option<[u8; 6]>) -> Option<String> {
    mac.map(|[a, b, c, d, e, f]| format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"))
}

#[cfg(feature = "serde")]
impl serde::Serialize for FlowRecord {
    /// One flat object: the names of the fields of `flowgauge flows --format ndjson`, the responder's with `reverse_` in
    /// front. What does not apply is null, so that every record has the same fields.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("protocol", &self.protocol())?;
        out.serialize_entry("source_address", &self.source_address())?;
        out.serialize_entry("source_port", &self.source_port())?;
        out.serialize_entry("destination_address", &self.destination_address())?;
        out.serialize_entry("destination_port", &self.destination_port())?;
        out.serialize_entry("start_ns", &self.start)?;
        out.serialize_entry("end_ns", &self.end)?;
        out.serialize_entry("duration_ns", &nanos(self.duration()))?;
        serialize_side(&mut out, &FORWARD, &self.forward)?;
        serialize_side(&mut out, &REVERSE, &self.reverse)?;
        out.serialize_entry("tcp_state", &self.tcp_state)?;
        out.serialize_entry("conn_state", &self.conn_state)?;
        out.serialize_entry("history", &self.history)?;
        out.serialize_entry("handshake_rtt_ns", &self.handshake_rtt.map(nanos))?;
        out.serialize_entry("flow_end_reason", &self.flow_end_reason)?;
        out.serialize_entry("direction_evidence", &self.direction_evidence)?;
        out.serialize_entry("community_id", &self.community_id())?;
        out.serialize_entry("icmp_type", &self.icmp.map(|(kind, _)| kind))?;
        out.serialize_entry("icmp_code", &self.icmp.map(|(_, code)| code))?;
        out.serialize_entry("icmp_error_count", &self.icmp_error_count)?;
        out.serialize_entry("fragment_count", &self.fragment_count)?;
        out.serialize_entry("interface", &self.interface)?;
        out.serialize_entry("scope", &self.key.scope())?;
        out.serialize_entry("sequence_number", &self.sequence_number)?;
        out.end()
    }
}

/// The names of a side's fields, so that no name is put together at run time.
#[cfg(feature = "serde")]
struct SideNames([&'static str; 13]);

#[cfg(feature = "serde")]
const FORWARD: SideNames = SideNames([
    "packet_count",
    "octet_count",
    "ip_octet_count",
    "payload_octet_count",
    "tcp_flags",
    "retransmitted_count",
    "out_of_order_count",
    "zero_window_count",
    "vlan_ids",
    "ttl_min",
    "ttl_max",
    "dscp",
    "source_mac_address",
]);

#[cfg(feature = "serde")]
const REVERSE: SideNames = SideNames([
    "reverse_packet_count",
    "reverse_octet_count",
    "reverse_ip_octet_count",
    "reverse_payload_octet_count",
    "reverse_tcp_flags",
    "reverse_retransmitted_count",
    "reverse_out_of_order_count",
    "reverse_zero_window_count",
    "reverse_vlan_ids",
    "reverse_ttl_min",
    "reverse_ttl_max",
    "reverse_dscp",
    "destination_mac_address",
]);

#[cfg(feature = "serde")]
fn serialize_side<M: serde::ser::SerializeMap>(
    out: &mut M,
    SideNames(names): &SideNames,
    side: &SideRecord,
) -> Result<(), M::Error> {
    let [
        packets,
        octets,
        ip_octets,
        payload,
        flags,
        retransmitted,
        out_of_order,
        zero_window,
        vlan,
        ttl_min,
        ttl_max,
        dscp,
        mac,
    ] = names;
    out.serialize_entry(packets, &side.counters.packet_count)?;
    out.serialize_entry(octets, &side.counters.octet_count)?;
    out.serialize_entry(ip_octets, &side.counters.ip_octet_count)?;
    out.serialize_entry(payload, &side.counters.payload_octet_count)?;
    out.serialize_entry(flags, &side.tcp_flags)?;
    out.serialize_entry(retransmitted, &side.tcp.retransmitted_count)?;
    out.serialize_entry(out_of_order, &side.tcp.out_of_order_count)?;
    out.serialize_entry(zero_window, &side.tcp.zero_window_count)?;
    out.serialize_entry(vlan, &side.vlan_ids)?;
    out.serialize_entry(ttl_min, &side.hop_limits.map(|(min, _)| min))?;
    out.serialize_entry(ttl_max, &side.hop_limits.map(|(_, max)| max))?;
    out.serialize_entry(dscp, &side.dscp)?;
    out.serialize_entry(mac, &mac_text(side.mac))
}
