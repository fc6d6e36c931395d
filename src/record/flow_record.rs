//! The record of a flow, under the names of IPFIX.

use std::net::IpAddr;
use std::time::Duration;

use super::{Enclosure, community_id};
use crate::base::{
    Application, ConnState, Counters, DirectionEvidence, EndReason, FlowKey, History, IpProtocol, Side,
    TcpCounters, TcpFlags, TcpState, Timestamp, VlanIds,
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
    /// Time of the packet by which both ends of a TCP connection had closed it, each by FIN or RST; otherwise of the last packet.
    pub open_end: Timestamp,
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
    /// What is spoken in it, if that was asked for and is known.
    pub application: Option<Application>,
    /// What encloses it, and what it carries, if that was asked for and there is anything.
    pub enclosure: Option<Box<Enclosure>>,
}

impl FlowRecord {
    /// The same, with what is spoken in it.
    #[must_use]
    pub fn with_application(self, application: Option<Application>) -> Self {
        Self { application, ..self }
    }

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

    /// From the first packet to the last (flowDurationMilliseconds, IPFIX 161).
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.end.saturating_since(self.start)
    }

    /// From the first packet to the one by which both ends of a TCP connection had closed it; without that, to the last. It is
    /// what Zeek calls duration.
    #[must_use]
    pub const fn open_duration(&self) -> Duration {
        self.open_end.saturating_since(self.start)
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
