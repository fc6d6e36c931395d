//! Flow record, with the names of the corresponding IPFIX information elements.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::community_id::CommunityId;
use super::encapsulation::EncapsulationRecord;
use super::exported::ExportedRecord;
use crate::base::{
    Application, ConnState, Counters, DirectionEvidence, EndReason, FlowKey, History, IpProtocol, Side,
    TcpCounters, TcpFlags, TcpState, Timestamp, VlanIds,
};
use crate::row::Table as _;

/// Counters and properties of one direction of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SideRecord {
    /// Counts of packets and octets in this direction.
    pub counters: Counters,
    /// Counts of TCP segments in this direction with special properties, such as retransmissions.
    pub tcp: TcpCounters,
    /// Union of the TCP control bits of all segments in this direction (tcpControlBits, IPFIX 6).
    pub tcp_flags: TcpFlags,
    /// VLAN ids of the first frame in this direction, outermost first (dot1qVlanId, IPFIX 243).
    pub vlan_ids: VlanIds,
    /// MAC address of the side that sends in this direction (sourceMacAddress, IPFIX 56).
    pub mac: Option<[u8; 6]>,
    /// Minimum and maximum TTL or hop limit (minimumTTL, maximumTTL, IPFIX 52 and 53); `None` if there was no
    /// packet in this direction.
    pub hop_limits: Option<(u8, u8)>,
    /// DSCP of the first packet in this direction (ipDiffServCodePoint, IPFIX 195).
    pub dscp: Option<u8>,
}

/// A bidirectional flow record (RFC 5103) with the properties of a flow at its end, initiator first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowRecord {
    /// Flow Key of the flow.
    pub key: FlowKey,
    /// Side of the key that initiated the flow; the source address and port of the record belong to this
    /// side.
    pub initiator: Side,
    /// Time of the first packet (flowStartNanoseconds, IPFIX 156).
    pub start: Timestamp,
    /// Time of the last packet (flowEndNanoseconds, IPFIX 157).
    pub end: Timestamp,
    /// Time of the packet after which both sides of a TCP connection had closed it, each by FIN or RST;
    /// otherwise the time of the last packet.
    pub open_end: Timestamp,
    /// Counts and properties of the direction from the initiator to the responder.
    pub forward: SideRecord,
    /// Counts and properties of the direction from the responder to the initiator.
    pub reverse: SideRecord,
    /// State of the TCP connection at the end of the record.
    pub tcp_state: TcpState,
    /// Outcome of the connection, with the names of Zeek's `conn_state`.
    pub conn_state: ConnState,
    /// Events of the flow in order of their first occurrence, as letters (Zeek's `history`).
    pub history: History,
    /// Time from the last SYN to the ACK that completed the TCP handshake, if both were captured.
    pub handshake_rtt: Option<Duration>,
    /// Reason that the record was created (flowEndReason, IPFIX 136).
    pub flow_end_reason: EndReason,
    /// Evidence by which the initiator of the flow was determined.
    pub direction_evidence: DirectionEvidence,
    /// ICMP type and code of the initiator's first packet, in this order.
    pub icmp: Option<(u8, u8)>,
    /// Number of ICMP error messages that quoted a packet of the flow.
    pub icmp_error_count: u32,
    /// Number of packets of the flow that were IP fragments.
    pub fragment_count: u32,
    /// Index of the interface on which the flow's first packet was captured (ingressInterface, IPFIX 10),
    /// counted from zero.
    pub interface: u32,
    /// Number of records of the flow that active timeouts created before this record.
    pub sequence_number: u32,
    /// Application protocol of the flow, if the stage of the pipeline identified one.
    pub application: Option<Application>,
    /// Number of packets of which one was sampled (samplingInterval, IPFIX 34), in a record of an exporter that samples;
    /// `None` if all packets were counted.
    pub sampling_interval: Option<u32>,
    /// Factor by which [`scale`](Self::scale) multiplied the counts of packets and octets, which are estimates then.
    pub counter_scale: Option<u32>,
    /// Encapsulation, outer flows and carried packets of the flow, if they are recorded and present.
    pub encapsulation: Option<Box<EncapsulationRecord>>,
    /// Exporter of the record, and what it sent beside the properties of the packets; `None` unless the record was
    /// collected.
    pub exported: Option<Box<ExportedRecord>>,
    /// Set of the fields whose values are known: all fields in a record from a tracker; in a record from a
    /// collector, the fields that its exporter sent. Other fields are written as absent.
    pub known: FieldSet,
}

impl FlowRecord {
    /// Creates a record of a flow without packets that starts and ends at the given time, with all fields
    /// known. The caller sets the other fields.
    ///
    /// ```
    /// use flowgauge::{FlowKey, FlowRecord, IpProtocol, Timestamp};
    ///
    /// let client = ([192, 0, 2, 1].into(), 40_000);
    /// let (key, initiator) = FlowKey::new(IpProtocol::UDP, client, ([192, 0, 2, 2].into(), 53));
    /// let mut record = FlowRecord::new(key, initiator, Timestamp::from_parts(1_700_000_000, 0));
    /// record.forward.counters.packet_count = 1;
    /// record.forward.counters.octet_count = 72;
    /// assert_eq!(record.to_string(), "udp 192.0.2.1:40000 -> 192.0.2.2:53 OTH 1 packets, 72 octets");
    /// ```
    #[must_use]
    pub fn new(key: FlowKey, initiator: Side, time: Timestamp) -> Self {
        Self {
            key,
            initiator,
            start: time,
            end: time,
            open_end: time,
            forward: SideRecord::default(),
            reverse: SideRecord::default(),
            tcp_state: TcpState::default(),
            conn_state: ConnState::Oth,
            history: History::EMPTY,
            handshake_rtt: None,
            flow_end_reason: EndReason::ForcedEnd,
            direction_evidence: DirectionEvidence::default(),
            icmp: None,
            icmp_error_count: 0,
            fragment_count: 0,
            interface: 0,
            sequence_number: 0,
            application: None,
            sampling_interval: None,
            counter_scale: None,
            encapsulation: None,
            exported: None,
            known: FieldSet::ALL,
        }
    }

    /// Returns the initiator's address (sourceIPv4Address, sourceIPv6Address; IPFIX 8 and 27).
    #[must_use]
    pub fn source_address(&self) -> IpAddr {
        self.key.address(self.initiator)
    }

    /// Returns the responder's address (destinationIPv4Address, destinationIPv6Address; IPFIX 12 and 28).
    #[must_use]
    pub fn destination_address(&self) -> IpAddr {
        self.key.address(self.initiator.other())
    }

    /// Returns the initiator's port (sourceTransportPort, IPFIX 7); `None` if the key has no ports, as for ICMP.
    #[must_use]
    pub const fn source_port(&self) -> Option<u16> {
        self.key.port(self.initiator)
    }

    /// Returns the responder's port (destinationTransportPort, IPFIX 11); `None` if the key has no ports, as
    /// for ICMP.
    #[must_use]
    pub const fn destination_port(&self) -> Option<u16> {
        self.key.port(self.initiator.other())
    }

    /// Returns the IP protocol number of the flow (protocolIdentifier, IPFIX 4).
    #[must_use]
    pub const fn protocol(&self) -> IpProtocol {
        self.key.protocol()
    }

    /// Returns the time from the first packet to the last (flowDurationMilliseconds, IPFIX 161).
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.end.saturating_since(self.start)
    }

    /// Returns the time from the first packet to the packet after which both sides of a TCP connection had
    /// closed it, or otherwise to the last packet. Corresponds to Zeek's `duration`.
    #[must_use]
    pub const fn open_duration(&self) -> Duration {
        self.open_end.saturating_since(self.start)
    }

    /// Returns the Community ID of the flow, version 1, seed 0.
    #[must_use]
    pub fn community_id(&self) -> CommunityId {
        self.key.community_id(0)
    }

    /// Returns whether the record reports an event of a firewall or a translator that is not the end of a flow, such as
    /// the beginning of a flow, a denied packet, or a new translation. It is not a flow of its own, but may have counts.
    #[must_use]
    #[inline]
    pub fn is_event(&self) -> bool {
        self.exported.as_deref().is_some_and(ExportedRecord::is_event)
    }

    /// Returns the number of packets of both sides.
    #[must_use]
    pub const fn packet_count(&self) -> u64 {
        self.forward.counters.packet_count.saturating_add(self.reverse.counters.packet_count)
    }

    /// Returns the number of octets of both sides, on the wire if the record has these counts.
    #[must_use]
    pub const fn octet_count(&self) -> u64 {
        self.forward.counters.octet_count.saturating_add(self.reverse.counters.octet_count)
    }
}

/// Formats the record as one line of readable text: protocol, addresses and ports, outcome, packets and
/// octets. [`export`](crate::export) contains formats that programs can parse.
impl fmt::Display for FlowRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |side: Side| (self.key.address(side), self.key.port(side));
        write!(f, "{} ", self.protocol())?;
        write_end(f, end(self.initiator))?;
        f.write_str(" -> ")?;
        write_end(f, end(self.initiator.other()))?;
        write!(f, " {} {} packets, {} octets", self.conn_state, self.packet_count(), self.octet_count())
    }
}

fn write_end(f: &mut fmt::Formatter<'_>, (address, port): (IpAddr, Option<u16>)) -> fmt::Result {
    match port {
        None => write!(f, "{address}"),
        Some(port) => write!(f, "{}", SocketAddr::new(address, port)),
    }
}

/// Set of columns of flow records.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldSet(u128);

impl FieldSet {
    /// The set without fields.
    pub const EMPTY: Self = Self(0);
    /// The set of all fields.
    pub const ALL: Self = Self(u128::MAX);

    /// Maximum number of columns of a flow record.
    pub(crate) const LEN_MAX: usize = u128::BITS as usize;

    /// Returns the set with a field added. The index is that of the field in [`FlowRecord::COLUMNS`].
    #[must_use]
    pub const fn with(self, index: usize) -> Self {
        Self(self.0 | 1 << (index & 127))
    }

    /// Returns the set of the fields that are in this set or in another one.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set of the fields that are in this set and in another one.
    pub(crate) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the set of the fields that are in this set and not in another one.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set contains a field. The index is that of the field in [`FlowRecord::COLUMNS`].
    #[must_use]
    #[inline]
    pub const fn contains(self, index: usize) -> bool {
        self.0 >> (index & 127) & 1 != 0
    }

    /// Returns the number of fields in the set.
    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the set of the fields with the given names.
    ///
    /// # Errors
    ///
    /// Returns the first name that is not the name of a field.
    pub fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        names.into_iter().try_fold(Self::EMPTY, |set, name| {
            FlowRecord::COLUMNS
                .iter()
                .position(|field| field.name == name)
                .map(|index| set.with(index))
                .ok_or(name)
        })
    }
}

impl Default for FieldSet {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("FieldSet(ALL)");
        }
        let fields = FlowRecord::COLUMNS.iter().enumerate().filter(|(index, _)| self.contains(*index));
        f.debug_set().entries(fields.map(|(_, field)| field.name)).finish()
    }
}
