//! The table of flow records: the columns, from which all formats derive, and the setters of incomplete records.
//!
//! A row of the macro states name, Rust type, attributes, value and setter of a column. The macro expands to the table
//! of [`FlowRecord`], and to the setters with which a record is deserialized or collected. Adding a column requires only
//! a row. The last rows are those of the part that only collected records have, so that others cost one test for all.

use std::net::IpAddr;
use std::time::Duration;

use super::community_id::CommunityId;
use super::draft::{Draft, FieldSource, Setter};
use super::encapsulation::EncapsulationRecord;
use super::exported::FlowDirection;
use super::flow_record::{FieldSet, FlowRecord};
use crate::base::{
    ApplicationName, ConnState, DirectionEvidence, Encapsulation, EndReason, Evidence, History, IpProtocol,
    OuterFlow, Ports, TcpFlags, TcpState, Timestamp, VlanIds,
};
use crate::row::{Cell, Column, Group, Merge, Name, Row, RowType, Table, Visitor};

/// Converts the setter in a row to a [`Setter`]; a row without a setter is a column that is derived from others.
macro_rules! setter {
    () => { Setter::Derived };
    (unsigned $($set:tt)+) => { setter!(@Unsigned $($set)+) };
    (address $($set:tt)+) => { setter!(@Address $($set)+) };
    (mac $($set:tt)+) => { setter!(@Mac $($set)+) };
    (name $($set:tt)+) => { setter!(@Text $($set)+) };
    (text $($set:tt)+) => { setter!(@Text $($set)+) };
    (vlan_ids $($set:tt)+) => { setter!(@VlanIds $($set)+) };
    (encapsulation $($set:tt)+) => { setter!(@Encapsulation $($set)+) };
    (outer_flow $($set:tt)+) => { setter!(@OuterFlow $($set)+) };
    (@$variant:ident |$draft:ident, $value:ident| $assign:expr) => {
        Setter::$variant(|$draft, $value| {
            $assign;
            Some(())
        })
    };
}

macro_rules! schema {
    ($record:ident: $(
        $(#[doc = $doc:literal])+
        $name:literal: $cell:ty $([ $( $attribute:ident $( ($argument:expr) )? ),+ ])?
            = $value:expr, set $( $type:ident |$draft:ident, $set:ident| $assign:expr )?;
    )+
    $part:ident of exported: $(
        $(#[doc = $part_doc:literal])+
        $part_name:literal: $part_cell:ty [ $( $part_attribute:ident $( ($part_argument:expr) )? ),+ ]
            = $part_value:expr, set $part_type:ident |$part_draft:ident, $part_set:ident| $part_assign:expr;
    )+) => {
        /// Number of the columns of all records; those of [`FlowRecord::exported`] follow.
        const COMMON_COUNT: usize = [$($name),+].len();

        /// Columns of flow records. A single copy, to which all visitors refer.
        static COLUMNS: [Column; COMMON_COUNT + [$($part_name),+].len()] = [
            $(
                Column::new(
                    $name,
                    concat!($($doc),+).trim_ascii(),
                    <$cell as Cell>::TYPE,
                    <$cell as Cell>::IS_NULLABLE,
                ) $( $( .$attribute( $($argument)? ) )+ )?,
            )+
            $(
                Column::new(
                    $part_name,
                    concat!($($part_doc),+).trim_ascii(),
                    <$part_cell as Cell>::TYPE,
                    <$part_cell as Cell>::IS_NULLABLE,
                ) $( .$part_attribute( $($part_argument)? ) )+,
            )+
        ];

        /// Setters of all columns of an incomplete record, in their order.
        pub(crate) static SETTERS: [Setter; COLUMNS.len()] = [
            $( setter!($( $type |$draft, $set| $assign )?), )+
            $( setter!($part_type |$part_draft, $part_set| $part_assign), )+
        ];

        /// Sets common columns of an incomplete record to the values of a source, in their order. Returns the columns
        /// whose values are missing or invalid.
        #[inline(always)]
        #[allow(unused_assignments, reason = "the index behind the last column")]
        pub(crate) fn fill(draft: &mut Draft, columns: FieldSet, source: &impl FieldSource) -> FieldSet {
            let mut invalid = FieldSet::EMPTY;
            let mut index = 0;
            $(
                $(
                    if columns.contains(index) {
                        let is_set = set_value(draft, source.$type(index), |$draft, $set| {
                            $assign;
                            Some(())
                        });
                        if is_set.is_none() {
                            invalid = invalid.with(index);
                        }
                    }
                )?
                index += 1;
            )+
            invalid
        }

        #[inline]
        #[allow(unused_assignments, reason = "the index behind the last column")]
        fn visit_common($record: &FlowRecord, visitor: &mut (impl Visitor + ?Sized)) {
            let mut index = 0;
            $(
                if visitor.wants(&COLUMNS[index]) {
                    let value: $cell = $value;
                    value.visit(&COLUMNS[index], visitor);
                }
                index += 1;
            )+
        }

        /// Passes the columns of [`FlowRecord::exported`] to a visitor. They are known if there are any.
        #[inline]
        #[allow(unused_assignments, reason = "the index behind the last column")]
        fn visit_exported(record: &FlowRecord, visitor: &mut (impl Visitor + ?Sized)) {
            let mut index = COMMON_COUNT;
            match record.exported.as_deref() {
                None => {$(
                    let _name = $part_name;
                    if visitor.wants(&COLUMNS[index]) {
                        visitor.null(&COLUMNS[index]);
                    }
                    index += 1;
                )+}
                Some($part) => {$(
                    if visitor.wants(&COLUMNS[index]) {
                        let value: $part_cell = $part_value;
                        value.visit(&COLUMNS[index], visitor);
                    }
                    index += 1;
                )+}
            }
        }

        fn visit_known($record: &FlowRecord, visitor: &mut (impl Visitor + ?Sized)) {
            let mut index = 0;
            $(
                if visitor.wants(&COLUMNS[index]) {
                    if $record.known.contains(index) {
                        let value: $cell = $value;
                        value.visit(&COLUMNS[index], visitor);
                    } else {
                        visitor.null(&COLUMNS[index]);
                    }
                }
                index += 1;
            )+
            debug_assert_eq!(index, COMMON_COUNT);
            visit_exported($record, visitor);
        }
    };
}

impl FlowRecord {
    /// Passes the values of the record to a visitor as [`visit`](Row::visit) does, for a format that omits absent values:
    /// the columns of exporters are skipped together if the record has none.
    #[inline]
    pub(crate) fn visit_present(&self, visitor: &mut (impl Visitor + ?Sized)) {
        if self.exported.is_some() || self.known != FieldSet::ALL {
            self.visit(visitor);
        } else {
            visit_common(self, visitor);
        }
    }
}

impl RowType for FlowRecord {
    fn columns() -> Vec<&'static Column> {
        COLUMNS.iter().collect()
    }
}

impl Row for FlowRecord {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    /// Passes the values of the record to a visitor. Computes the Community ID; allocates nothing.
    #[inline]
    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        if self.known == FieldSet::ALL {
            visit_common(self, visitor);
            visit_exported(self, visitor);
        } else {
            visit_known(self, visitor);
        }
    }
}

impl Table for FlowRecord {
    const NAME: &'static str = "flow";
    const DESCRIPTION: &'static str =
        "The properties of a flow at its end, or when an active timeout passes.";
    const COLUMNS: &'static [Column] = &COLUMNS;
}

/// Returns the index of the field with a name. Compares texts, so that it is called when the code is compiled only; another
/// name is then an error.
pub(crate) const fn field_index(name: &str) -> usize {
    let mut index = 0;
    while index < COLUMNS.len() {
        if is_same(COLUMNS[index].name.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    assert!(index < COLUMNS.len(), "the name of a field");
    index
}

/// Returns the set of the fields with these names; for the same calls as [`field_index`].
pub(crate) const fn field_set(names: &[&str]) -> FieldSet {
    let mut set = FieldSet::EMPTY;
    let mut index = 0;
    while index < names.len() {
        set = set.with(field_index(names[index]));
        index += 1;
    }
    set
}

const fn is_same(first: &[u8], second: &[u8]) -> bool {
    let mut index = 0;
    while index < first.len() && index < second.len() {
        if first[index] != second[index] {
            return false;
        }
        index += 1;
    }
    first.len() == second.len()
}

/// Passes a value to the setter of its field.
#[inline(always)]
fn set_value<T>(
    draft: &mut Draft,
    value: Option<T>,
    set: impl FnOnce(&mut Draft, T) -> Option<()>,
) -> Option<()> {
    set(draft, value?)
}

const _: () = assert!(COLUMNS.len() <= FieldSet::LEN_MAX, "bits for all columns");

fn echo_id(record: &FlowRecord) -> Option<u16> {
    match record.key.ports() {
        Ports::Icmp { echo_id, .. } => echo_id,
        _ => None,
    }
}

#[inline]
fn encapsulation(record: &FlowRecord) -> Option<&EncapsulationRecord> {
    record.encapsulation.as_deref()
}

/// Columns of [`FlowRecord::exported`], which most records do not have.
pub(crate) const EXPORTED: FieldSet = {
    let (mut set, mut index) = (FieldSet::EMPTY, COMMON_COUNT);
    while index < COLUMNS.len() {
        set = set.with(index);
        index += 1;
    }
    set
};

fn known(encapsulation: &Encapsulation) -> Option<&Encapsulation> {
    Some(encapsulation).filter(|encapsulation| !encapsulation.is_empty())
}

/// Returns control bits without the four highest bits, which belong to the data offset (RFC 9565 section 3).
fn tcp_flags(value: u64) -> Option<TcpFlags> {
    u16::try_from(value).ok().map(|bits| TcpFlags(bits & 0x0fff))
}

schema! { record:
    /// IP protocol number.
    "protocol": u8 [iana(4), merged(Merge::Key)]
        = record.protocol().0,
        set unsigned |draft, value| draft.protocol = IpProtocol(value.try_into().ok()?);
    /// Address of the initiator.
    "source_address": IpAddr [iana(8), merged(Merge::Key)]
        = record.source_address(),
        set address |draft, value| draft.source.0 = Some(value);
    /// Port of the initiator; absent for protocols without ports.
    "source_port": Option<u16> [iana(7), merged(Merge::Key)]
        = record.source_port(),
        set unsigned |draft, value| draft.source.1 = Some(value.try_into().ok()?);
    /// Address of the responder.
    "destination_address": IpAddr [iana(12), merged(Merge::Key)]
        = record.destination_address(),
        set address |draft, value| draft.destination.0 = Some(value);
    /// Port of the responder; absent for protocols without ports.
    "destination_port": Option<u16> [iana(11), merged(Merge::Key)]
        = record.destination_port(),
        set unsigned |draft, value| draft.destination.1 = Some(value.try_into().ok()?);
    /// Time of the first packet.
    "start": Timestamp [iana(156), sort_key("start"), merged(Merge::Min)]
        = record.start,
        set unsigned |draft, value| draft.record.start = Timestamp::from_nanos(value);
    /// Latest time of a packet.
    "end": Timestamp [iana(157), sort_key("end"), merged(Merge::Max)]
        = record.end,
        set unsigned |draft, value| draft.record.end = Timestamp::from_nanos(value);
    /// Time from the first packet to the latest one.
    "duration": Duration [sort_key("duration"), merged(Merge::Derived)]
        = record.duration(), set;
    /// Packets that the initiator sent.
    "packet_count": u64 [packets, forward, iana(2), sort_key("packets"), merged(Merge::Sum)]
        = record.forward.counters.packet_count,
        set unsigned |draft, value| draft.record.forward.counters.packet_count = value;
    /// Octets of the initiator's frames on the wire.
    "octet_count": u64 [octets, forward, iana(352), sort_key("octets"), merged(Merge::Sum)]
        = record.forward.counters.octet_count,
        set unsigned |draft, value| draft.record.forward.counters.octet_count = value;
    /// Octets of the initiator's IP packets.
    "ip_octet_count": u64 [octets, forward, iana(1), merged(Merge::Sum)]
        = record.forward.counters.ip_octet_count,
        set unsigned |draft, value| draft.record.forward.counters.ip_octet_count = value;
    /// Octets of the initiator's transport payload, retransmissions included.
    "payload_octet_count": u64 [octets, forward, own(1), sort_key("payload"), merged(Merge::Sum)]
        = record.forward.counters.payload_octet_count,
        set unsigned |draft, value| draft.record.forward.counters.payload_octet_count = value;
    /// Union of the control bits of the initiator's TCP segments.
    "tcp_flags": u16 [forward, iana(6), merged(Merge::Union)]
        = record.forward.tcp_flags.0,
        set unsigned |draft, value| draft.record.forward.tcp_flags = tcp_flags(value)?;
    /// TCP segments that the initiator retransmitted.
    "retransmitted_count": u32 [packets, forward, own(2), sort_key("retransmitted"), merged(Merge::Sum)]
        = record.forward.tcp.retransmitted_count,
        set unsigned |draft, value| draft.record.forward.tcp.retransmitted_count = value.try_into().ok()?;
    /// TCP segments of the initiator that arrived out of order.
    "out_of_order_count": u32 [packets, forward, own(3), merged(Merge::Sum)]
        = record.forward.tcp.out_of_order_count,
        set unsigned |draft, value| draft.record.forward.tcp.out_of_order_count = value.try_into().ok()?;
    /// TCP segments of the initiator that advertised a window of zero.
    "zero_window_count": u32 [packets, forward, own(4), merged(Merge::Sum)]
        = record.forward.tcp.zero_window_count,
        set unsigned |draft, value| draft.record.forward.tcp.zero_window_count = value.try_into().ok()?;
    /// VLAN ids of the initiator's first frame, outermost first.
    "vlan_ids": VlanIds [forward, iana(243), merged(Merge::First)]
        = record.forward.vlan_ids,
        set vlan_ids |draft, value| draft.record.forward.vlan_ids = value;
    /// Minimum TTL or hop limit of the initiator's packets.
    "ttl_min": Option<u8> [forward, iana(52), merged(Merge::Min)]
        = record.forward.hop_limits.map(|(min, _)| min),
        set unsigned |draft, value| draft.record.forward.hop_limits.get_or_insert_default().0 = value.try_into().ok()?;
    /// Maximum TTL or hop limit of the initiator's packets.
    "ttl_max": Option<u8> [forward, iana(53), merged(Merge::Max)]
        = record.forward.hop_limits.map(|(_, max)| max),
        set unsigned |draft, value| draft.record.forward.hop_limits.get_or_insert_default().1 = value.try_into().ok()?;
    /// DSCP of the initiator's first packet.
    "dscp": Option<u8> [forward, iana(195), merged(Merge::First)]
        = record.forward.dscp,
        set unsigned |draft, value| draft.record.forward.dscp = Some(value.try_into().ok()?);
    /// MAC address of the initiator, or of the router that forwards for it.
    "source_mac_address": Option<[u8; 6]> [forward, iana(56), merged(Merge::First)]
        = record.forward.mac,
        set mac |draft, value| draft.record.forward.mac = Some(value);
    /// Packets that the responder sent.
    "reverse_packet_count": u64 [packets, reverse, reverse_of(2), merged(Merge::Sum)]
        = record.reverse.counters.packet_count,
        set unsigned |draft, value| draft.record.reverse.counters.packet_count = value;
    /// Octets of the responder's frames on the wire.
    "reverse_octet_count": u64 [octets, reverse, reverse_of(352), merged(Merge::Sum)]
        = record.reverse.counters.octet_count,
        set unsigned |draft, value| draft.record.reverse.counters.octet_count = value;
    /// Octets of the responder's IP packets.
    "reverse_ip_octet_count": u64 [octets, reverse, reverse_of(1), merged(Merge::Sum)]
        = record.reverse.counters.ip_octet_count,
        set unsigned |draft, value| draft.record.reverse.counters.ip_octet_count = value;
    /// Octets of the responder's transport payload, retransmissions included.
    "reverse_payload_octet_count": u64 [octets, reverse, own(5), merged(Merge::Sum)]
        = record.reverse.counters.payload_octet_count,
        set unsigned |draft, value| draft.record.reverse.counters.payload_octet_count = value;
    /// Union of the control bits of the responder's TCP segments.
    "reverse_tcp_flags": u16 [reverse, reverse_of(6), merged(Merge::Union)]
        = record.reverse.tcp_flags.0,
        set unsigned |draft, value| draft.record.reverse.tcp_flags = tcp_flags(value)?;
    /// TCP segments that the responder retransmitted.
    "reverse_retransmitted_count": u32 [packets, reverse, own(6), merged(Merge::Sum)]
        = record.reverse.tcp.retransmitted_count,
        set unsigned |draft, value| draft.record.reverse.tcp.retransmitted_count = value.try_into().ok()?;
    /// TCP segments of the responder that arrived out of order.
    "reverse_out_of_order_count": u32 [packets, reverse, own(7), merged(Merge::Sum)]
        = record.reverse.tcp.out_of_order_count,
        set unsigned |draft, value| draft.record.reverse.tcp.out_of_order_count = value.try_into().ok()?;
    /// TCP segments of the responder that advertised a window of zero.
    "reverse_zero_window_count": u32 [packets, reverse, own(8), merged(Merge::Sum)]
        = record.reverse.tcp.zero_window_count,
        set unsigned |draft, value| draft.record.reverse.tcp.zero_window_count = value.try_into().ok()?;
    /// VLAN ids of the responder's first frame, outermost first.
    "reverse_vlan_ids": VlanIds [reverse, reverse_of(243), merged(Merge::First)]
        = record.reverse.vlan_ids,
        set vlan_ids |draft, value| draft.record.reverse.vlan_ids = value;
    /// Minimum TTL or hop limit of the responder's packets.
    "reverse_ttl_min": Option<u8> [reverse, reverse_of(52), merged(Merge::Min)]
        = record.reverse.hop_limits.map(|(min, _)| min),
        set unsigned |draft, value| draft.record.reverse.hop_limits.get_or_insert_default().0 = value.try_into().ok()?;
    /// Maximum TTL or hop limit of the responder's packets.
    "reverse_ttl_max": Option<u8> [reverse, reverse_of(53), merged(Merge::Max)]
        = record.reverse.hop_limits.map(|(_, max)| max),
        set unsigned |draft, value| draft.record.reverse.hop_limits.get_or_insert_default().1 = value.try_into().ok()?;
    /// DSCP of the responder's first packet.
    "reverse_dscp": Option<u8> [reverse, reverse_of(195), merged(Merge::First)]
        = record.reverse.dscp,
        set unsigned |draft, value| draft.record.reverse.dscp = Some(value.try_into().ok()?);
    /// MAC address of the responder, or of the router that forwards for it.
    "destination_mac_address": Option<[u8; 6]> [reverse, iana(80), merged(Merge::First)]
        = record.reverse.mac,
        set mac |draft, value| draft.record.reverse.mac = Some(value);
    /// State of the TCP connection at the end (RFC 9293).
    "tcp_state": Name [own(9), merged(Merge::Derived)]
        = Name(record.tcp_state.name()),
        set name |draft, value| draft.record.tcp_state = TcpState::from_name(value)?;
    /// Outcome of the connection, as in Zeek.
    "conn_state": Name [own(10), merged(Merge::Derived)]
        = Name(record.conn_state.name()),
        set name |draft, value| draft.record.conn_state = ConnState::from_name(value)?;
    /// Letters of events in the order of their first occurrence, as in Zeek; those of gaps, repeated payload and zero
    /// windows repeat at the 10th, 100th ... occurrence.
    "history": History [own(11), merged(Merge::Union)]
        = record.history,
        set text |draft, value| draft.record.history = History::from_letters(value)?;
    /// Time from the last SYN to the ACK that completed the handshake.
    "handshake_rtt": Option<Duration> [own(12), sort_key("rtt"), merged(Merge::First)]
        = record.handshake_rtt,
        set unsigned |draft, value| draft.record.handshake_rtt = Some(Duration::from_nanos(value));
    /// Reason for the end of the record.
    "flow_end_reason": Name [iana(136), merged(Merge::Derived)]
        = Name(record.flow_end_reason.name()),
        set name |draft, value| draft.record.flow_end_reason = EndReason::from_name(value)?;
    /// Evidence for which side is the initiator.
    "direction_evidence": Name [own(13), merged(Merge::Strongest)]
        = Name(record.direction_evidence.name()),
        set name |draft, value| draft.record.direction_evidence = DirectionEvidence::from_name(value)?;
    /// Community ID, version 1, seed 0.
    "community_id": CommunityId [own(14), merged(Merge::Key)]
        = record.community_id(), set;
    /// ICMP type of the initiator's first packet.
    "icmp_type": Option<u8> [iana(176), merged(Merge::First)]
        = record.icmp.map(|(kind, _)| kind),
        set unsigned |draft, value| draft.record.icmp.get_or_insert_default().0 = value.try_into().ok()?;
    /// ICMP code of the initiator's first packet.
    "icmp_code": Option<u8> [iana(177), merged(Merge::First)]
        = record.icmp.map(|(_, code)| code),
        set unsigned |draft, value| draft.record.icmp.get_or_insert_default().1 = value.try_into().ok()?;
    /// ICMP errors that quoted a packet of the flow.
    "icmp_error_count": u32 [packets, own(15), merged(Merge::Sum)]
        = record.icmp_error_count,
        set unsigned |draft, value| draft.record.icmp_error_count = value.try_into().ok()?;
    /// Packets of the flow that were IP fragments.
    "fragment_count": u32 [packets, own(16), merged(Merge::Sum)]
        = record.fragment_count,
        set unsigned |draft, value| draft.record.fragment_count = value.try_into().ok()?;
    /// Interface of the first packet of the flow, counted from zero.
    "interface": u32 [iana(10), merged(Merge::First)]
        = record.interface,
        set unsigned |draft, value| draft.record.interface = value.try_into().ok()?;
    /// Scope in the flow key, as set by the caller.
    "scope": u32 [own(17), merged(Merge::Key)]
        = record.key.scope(),
        set unsigned |draft, value| draft.scope = value.try_into().ok()?;
    /// Number of records of the flow that active timeouts had emitted before this one.
    "sequence_number": u32 [own(18), merged(Merge::First)]
        = record.sequence_number,
        set unsigned |draft, value| draft.record.sequence_number = value.try_into().ok()?;
    /// Outer headers of the initiator's packets, outermost first, if they are recorded.
    "encapsulation": Option<&Encapsulation> [forward, own(19), merged(Merge::First)]
        = encapsulation(record).and_then(|part| known(&part.encapsulation)),
        set encapsulation |draft, value| draft.encapsulation().encapsulation = value;
    /// Packets of the initiator with other outer headers than those of the first one.
    "encapsulation_changed_count": Option<u32> [packets, forward, own(20), merged(Merge::Sum)]
        = encapsulation(record).map(|part| part.encapsulation_changed_count),
        set unsigned |draft, value| draft.encapsulation().encapsulation_changed_count = value.try_into().ok()?;
    /// Flow that carried the initiator's first packet, sender first.
    "outer_flow": Option<Group<&OuterFlow>> [forward, own(21), merged(Merge::First)]
        = encapsulation(record).and_then(|part| part.outer_flow.as_ref()).map(Group),
        set outer_flow |draft, value| draft.encapsulation().outer_flow = Some(value);
    /// Community ID of the flow that carried the initiator's first packet.
    "outer_community_id": Option<CommunityId> [forward, merged(Merge::Derived)]
        = encapsulation(record).and_then(|part| part.outer_flow.map(|flow| flow.community_id())), set;
    /// Outer headers of the responder's packets, outermost first, if they are recorded.
    "reverse_encapsulation": Option<&Encapsulation> [reverse, own(22), merged(Merge::First)]
        = encapsulation(record).and_then(|part| known(&part.reverse_encapsulation)),
        set encapsulation |draft, value| draft.encapsulation().reverse_encapsulation = value;
    /// Packets of the responder with other outer headers than those of the first one.
    "reverse_encapsulation_changed_count": Option<u32> [packets, reverse, own(23), merged(Merge::Sum)]
        = encapsulation(record).map(|part| part.reverse_encapsulation_changed_count),
        set unsigned |draft, value| draft.encapsulation().reverse_encapsulation_changed_count = value.try_into().ok()?;
    /// Flow that carried the responder's first packet, sender first.
    "reverse_outer_flow": Option<Group<&OuterFlow>> [reverse, own(24), merged(Merge::First)]
        = encapsulation(record).and_then(|part| part.reverse_outer_flow.as_ref()).map(Group),
        set outer_flow |draft, value| draft.encapsulation().reverse_outer_flow = Some(value);
    /// Community ID of the flow that carried the responder's first packet.
    "reverse_outer_community_id": Option<CommunityId> [reverse, merged(Merge::Derived)]
        = encapsulation(record).and_then(|part| part.reverse_outer_flow.map(|flow| flow.community_id())), set;
    /// Number of flows whose first packet this flow carried.
    "inner_flow_count": Option<u32> [flows, own(25), merged(Merge::Sum)]
        = encapsulation(record).map(|part| part.inner_flow_count),
        set unsigned |draft, value| draft.encapsulation().inner_flow_count = value.try_into().ok()?;
    /// Packets of the flow that carried a packet of another flow.
    "carried_packet_count": Option<u64> [packets, own(26), merged(Merge::Sum)]
        = encapsulation(record).map(|part| part.carried_packet_count),
        set unsigned |draft, value| draft.encapsulation().carried_packet_count = value;
    /// Octets on the wire of the packets that carried a packet of another flow.
    "carried_octet_count": Option<u64> [octets, own(27), merged(Merge::Sum)]
        = encapsulation(record).map(|part| part.carried_octet_count),
        set unsigned |draft, value| draft.encapsulation().carried_octet_count = value;
    /// Application protocol, if it was identified.
    "application": Option<ApplicationName> [iana(96), merged(Merge::Strongest)]
        = record.application.map(|application| application.name),
        set text |draft, value| draft.application.0 = Some(ApplicationName::new(value)?);
    /// Evidence for the application protocol.
    "application_evidence": Option<Name> [own(28), merged(Merge::Strongest)]
        = record.application.map(|application| Name(application.evidence.name())),
        set name |draft, value| draft.application.1 = Some(Evidence::from_name(value)?);
    /// Time from the first packet to the one with which both ends had closed the TCP connection, otherwise to the last.
    "open_duration": Duration [own(29), merged(Merge::Derived)]
        = record.open_duration(),
        set unsigned |draft, value| draft.open_duration_ns = Some(value);
    /// Number of packets of which one was sampled; absent if all packets were counted.
    "sampling_interval": Option<u32> [packets, iana(34), merged(Merge::Max)]
        = record.sampling_interval,
        set unsigned |draft, value| draft.record.sampling_interval = Some(value.try_into().ok()?);
    /// Factor by which the counts of packets and octets were multiplied, so that they are estimates; absent otherwise.
    "counter_scale": Option<u32> [own(30), merged(Merge::Max)]
        = record.counter_scale,
        set unsigned |draft, value| draft.record.counter_scale = Some(value.try_into().ok()?);
    /// Identifier of ICMP echo messages, if the flow key contains it.
    "icmp_echo_id": Option<u16> [own(31), merged(Merge::Key)]
        = echo_id(record),
        set unsigned |draft, value| draft.key_parts.echo_id = Some(value.try_into().ok()?);
    /// Virtual network identifier, if the flow key contains it.
    "vni": Option<u32> [own(32), merged(Merge::Key)]
        = record.key.vni(),
        set unsigned |draft, value| draft.key_parts.vni = Some(u32::try_from(value).ok().filter(|vni| vni >> 24 == 0)?);
    /// VLAN ids, if the flow key contains them, outermost first.
    "key_vlan_ids": Option<VlanIds> [merged(Merge::Key)]
        = Some(record.key.vlan_ids()).filter(|ids| !ids.is_empty()),
        set vlan_ids |draft, value| draft.key_parts.vlan_ids = value;

    part of exported:
    /// Address of the exporter of a collected record.
    "exporter_address": Option<IpAddr> [iana(130), merged(Merge::First)]
        = part.exporter_address,
        set address |draft, value| draft.exported().exporter_address = Some(value);
    /// Observation domain of a collected record: source id, engine or sub-agent of its exporter.
    "observation_domain": Option<u32> [iana(149), merged(Merge::First)]
        = part.observation_domain,
        set unsigned |draft, value| draft.exported().observation_domain = Some(value.try_into().ok()?);
    /// Interface of the exporter by which the packets leave.
    "egress_interface": Option<u32> [iana(14), merged(Merge::First)]
        = part.egress_interface,
        set unsigned |draft, value| draft.exported().egress_interface = Some(value.try_into().ok()?);
    /// Direction of the flow at the interface of the exporter.
    "flow_direction": Option<Name> [iana(61), merged(Merge::First)]
        = part.flow_direction.map(|direction| Name(direction.name())),
        set name |draft, value| draft.exported().flow_direction = Some(FlowDirection::from_name(value)?);
    /// Packets of the initiator that left the exporter.
    "egress_packet_count": Option<u64> [packets, forward, iana(24), merged(Merge::Sum)]
        = part.egress_packet_count,
        set unsigned |draft, value| draft.exported().egress_packet_count = Some(value);
    /// Octets of the initiator's IP packets that left the exporter.
    "egress_octet_count": Option<u64> [octets, forward, iana(23), merged(Merge::Sum)]
        = part.egress_octet_count,
        set unsigned |draft, value| draft.exported().egress_octet_count = Some(value);
    /// Packets of the responder that left the exporter.
    "reverse_egress_packet_count": Option<u64> [packets, reverse, reverse_of(24), merged(Merge::Sum)]
        = part.reverse_egress_packet_count,
        set unsigned |draft, value| draft.exported().reverse_egress_packet_count = Some(value);
    /// Octets of the responder's IP packets that left the exporter.
    "reverse_egress_octet_count": Option<u64> [octets, reverse, reverse_of(23), merged(Merge::Sum)]
        = part.reverse_egress_octet_count,
        set unsigned |draft, value| draft.exported().reverse_egress_octet_count = Some(value);
    /// Autonomous system of the initiator, according to the exporter.
    "source_as": Option<u32> [iana(16), merged(Merge::First)]
        = part.source_as,
        set unsigned |draft, value| draft.exported().source_as = Some(value.try_into().ok()?);
    /// Autonomous system of the responder, according to the exporter.
    "destination_as": Option<u32> [iana(17), merged(Merge::First)]
        = part.destination_as,
        set unsigned |draft, value| draft.exported().destination_as = Some(value.try_into().ok()?);
    /// Address of the initiator after translation by the exporter (NAT).
    "post_nat_source_address": Option<IpAddr> [iana(225), merged(Merge::First)]
        = part.post_nat_source_address,
        set address |draft, value| draft.exported().post_nat_source_address = Some(value);
    /// Port of the initiator after translation.
    "post_nat_source_port": Option<u16> [iana(227), merged(Merge::First)]
        = part.post_nat_source_port,
        set unsigned |draft, value| draft.exported().post_nat_source_port = Some(value.try_into().ok()?);
    /// Address of the responder after translation by the exporter (NAT).
    "post_nat_destination_address": Option<IpAddr> [iana(226), merged(Merge::First)]
        = part.post_nat_destination_address,
        set address |draft, value| draft.exported().post_nat_destination_address = Some(value);
    /// Port of the responder after translation.
    "post_nat_destination_port": Option<u16> [iana(228), merged(Merge::First)]
        = part.post_nat_destination_port,
        set unsigned |draft, value| draft.exported().post_nat_destination_port = Some(value.try_into().ok()?);
    /// Event of a firewall: 1 created, 2 deleted, 3 denied, 4 alert, 5 update.
    "firewall_event": Option<u8> [iana(233), merged(Merge::Max)]
        = part.firewall_event,
        set unsigned |draft, value| draft.exported().firewall_event = Some(value.try_into().ok()?);
    /// Event of a translation, with the numbers of natEvent: 4 and 5 for a session of NAT44 that is created and deleted.
    "nat_event": Option<u8> [iana(230), merged(Merge::Max)]
        = part.nat_event,
        set unsigned |draft, value| draft.exported().nat_event = Some(value.try_into().ok()?);
}
