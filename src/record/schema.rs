//! The schema of flow records: one table from which all lists of fields are derived.
//!
//! A row defines name, type, unit, side, elements of other formats, getter and setter of a field. The macro expands to
//! [`FlowRecord::SCHEMA`], static metadata with getters for documentation, projections and tables, and to
//! [`FlowRecord::visit`], which passes all values to a [`Visitor`] without an intermediate value, for the formats.
//! Adding a field requires only a row.

use super::draft::{Draft, FieldSource, Setter};
use super::encapsulation::EncapsulationRecord;
use super::field::{Field, FieldSide, FieldType, InformationElement, SortKey, Unit, Value, Visitor};
use super::flow_record::{FieldSet, FlowRecord};
use crate::base::{
    ApplicationName, ConnState, DirectionEvidence, EndReason, Evidence, History, IpProtocol, TcpFlags,
    TcpState, Timestamp,
};
use crate::base::{Encapsulation, OuterFlow, duration_nanos};
use std::time::Duration;

/// Converts the type in a row of the schema to a [`FieldType`].
macro_rules! field_type {
    (unsigned $bits:tt) => {
        FieldType::Unsigned($bits)
    };
    (address) => {
        FieldType::Address
    };
    (mac) => {
        FieldType::Mac
    };
    (name) => {
        FieldType::Name
    };
    (text $variant:tt) => {
        FieldType::Text
    };
    (vlan_ids) => {
        FieldType::VlanIds
    };
    (encapsulation) => {
        FieldType::Encapsulation
    };
}

/// Converts the result of a field's getter to a [`Value`].
macro_rules! value {
    ($value:expr, unsigned $bits:tt) => {
        $value.map_or(Value::Absent, Value::Unsigned)
    };
    ($value:expr, address) => {
        $value.map_or(Value::Absent, Value::Address)
    };
    ($value:expr, mac) => {
        $value.map_or(Value::Absent, Value::Mac)
    };
    ($value:expr, name) => {
        $value.map_or(Value::Absent, Value::Name)
    };
    ($value:expr, text $variant:tt) => {
        $value.map_or(Value::Absent, Value::$variant)
    };
    ($value:expr, vlan_ids) => {
        $value.map_or(Value::Absent, Value::VlanIds)
    };
    ($value:expr, encapsulation) => {
        $value.map_or(Value::Absent, Value::Encapsulation)
    };
}

/// Converts the setter in a row of the schema to a [`Setter`]; a row without a setter is a field that is
/// derived from other fields.
macro_rules! setter {
    ($type:ident) => { Setter::Derived };
    (unsigned |$draft:ident, $value:ident| $assign:expr) => { setter!(Unsigned: $draft, $value, $assign) };
    (address |$draft:ident, $value:ident| $assign:expr) => { setter!(Address: $draft, $value, $assign) };
    (mac |$draft:ident, $value:ident| $assign:expr) => { setter!(Mac: $draft, $value, $assign) };
    (name |$draft:ident, $value:ident| $assign:expr) => { setter!(Text: $draft, $value, $assign) };
    (text |$draft:ident, $value:ident| $assign:expr) => { setter!(Text: $draft, $value, $assign) };
    (vlan_ids |$draft:ident, $value:ident| $assign:expr) => { setter!(VlanIds: $draft, $value, $assign) };
    (encapsulation |$draft:ident, $value:ident| $assign:expr) => {
        setter!(Encapsulation: $draft, $value, $assign)
    };
    ($variant:ident: $draft:ident, $value:ident, $assign:expr) => {
        Setter::$variant(|$draft, $value| {
            $assign;
            Some(())
        })
    };
}

macro_rules! optional {
    () => { None };
    ($($value:tt)+) => { Some($($value)+) };
}

macro_rules! schema {
    ($record:ident: $(
        $(#[doc = $doc:literal])+
        $name:literal: $type:ident $( ($detail:tt) )?, $unit:ident, $side:ident,
        ipfix $( ($registry:ident $element:literal) )?, zeek $( ($zeek:literal) )?, eve $( ($eve:literal) )?,
        sort $( ($sort:ident) )? = $value:expr, set $( |$draft:ident, $set:ident| $assign:expr )?;
    )+) => {
        const SCHEMA: &[Field] = &[$(
            Field {
                name: $name,
                // Set in SCHEMA_FIELDS.
                index: 0,
                description: concat!($($doc),+).trim_ascii(),
                field_type: field_type!($type $( $detail )?),
                unit: Unit::$unit,
                side: FieldSide::$side,
                ipfix: optional!($( InformationElement::$registry($element) )?),
                zeek: optional!($( $zeek )?),
                eve: optional!($( $eve )?),
                get: |$record| value!($value, $type $( $detail )?),
                sort: optional!($( SortKey::$sort )?),
            }
        ),+];

        /// Setters of all fields of an incomplete record, in the order of the schema.
        pub(crate) static SETTERS: [Setter; SCHEMA.len()] = [$(
            setter!($type $( |$draft, $set| $assign )?)
        ),+];

        /// Sets fields of an incomplete record to the values of a source, in the order of the schema. Returns the
        /// fields whose values are missing or invalid.
        #[inline(always)]
        #[allow(unused_assignments, reason = "the index behind the last field")]
        pub(crate) fn fill(draft: &mut Draft, fields: FieldSet, source: &impl FieldSource) -> FieldSet {
            let mut invalid = FieldSet::EMPTY;
            let mut index = 0;
            $(
                $(
                    if fields.contains(index) {
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
        #[allow(unused_assignments, reason = "the index behind the last field")]
        fn visit_all($record: &FlowRecord, visitor: &mut impl Visitor) {
            let mut index = 0;
            $(
                if visitor.wants(&SCHEMA_FIELDS[index]) {
                    visitor.$type(&SCHEMA_FIELDS[index], $value);
                }
                index += 1;
            )+
        }

        fn visit_known($record: &FlowRecord, known: FieldSet, visitor: &mut impl Visitor) {
            let mut index = 0;
            $(
                if visitor.wants(&SCHEMA_FIELDS[index]) {
                    let value = if known.contains(index) { $value } else { None };
                    visitor.$type(&SCHEMA_FIELDS[index], value);
                }
                index += 1;
            )+
            debug_assert_eq!(index, SCHEMA.len());
        }
    };
}

/// Single copy of the schema's table of fields, to which all visitors refer.
static SCHEMA_FIELDS: [Field; SCHEMA.len()] = {
    let mut fields = [SCHEMA[0]; SCHEMA.len()];
    let mut index = 0;
    while index < SCHEMA.len() {
        fields[index] = Field { index, ..SCHEMA[index] };
        index += 1;
    }
    fields
};

/// Returns the index of the field with a name. Compares texts, so that it is called when the code is compiled only; another
/// name is then an error.
pub(crate) const fn field_index(name: &str) -> usize {
    let mut index = 0;
    while index < SCHEMA.len() {
        if is_same(SCHEMA[index].name.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    assert!(index < SCHEMA.len(), "the name of a field");
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

const _: () = assert!(SCHEMA.len() <= 128, "a FieldSet has 128 bits");

#[inline]
fn encapsulation(record: &FlowRecord) -> Option<&EncapsulationRecord> {
    record.encapsulation.as_deref()
}

fn known(encapsulation: &Encapsulation) -> Option<&Encapsulation> {
    Some(encapsulation).filter(|encapsulation| !encapsulation.is_empty())
}

/// Returns control bits without the four highest bits, which belong to the data offset (RFC 9565 section 3).
fn tcp_flags(value: u64) -> Option<TcpFlags> {
    u16::try_from(value).ok().map(|bits| TcpFlags(bits & 0x0fff))
}

schema! { record:
    /// IP protocol number.
    "protocol": unsigned(8), None, Shared, ipfix (Iana 4), zeek ("proto"), eve ("proto"), sort
        = Some(u64::from(record.protocol().0)),
        set |draft, value| draft.protocol = IpProtocol(value.try_into().ok()?);
    /// Address of the initiator.
    "source_address": address, None, Shared, ipfix (Iana 8), zeek ("id.orig_h"), eve ("src_ip"), sort
        = Some(record.source_address()),
        set |draft, value| draft.source.0 = Some(value);
    /// Port of the initiator; absent for protocols without ports.
    "source_port": unsigned(16), None, Shared, ipfix (Iana 7), zeek ("id.orig_p"), eve ("src_port"), sort
        = record.source_port().map(u64::from),
        set |draft, value| draft.source.1 = Some(value.try_into().ok()?);
    /// Address of the responder.
    "destination_address": address, None, Shared, ipfix (Iana 12), zeek ("id.resp_h"), eve ("dest_ip"), sort
        = Some(record.destination_address()),
        set |draft, value| draft.destination.0 = Some(value);
    /// Port of the responder; absent for protocols without ports.
    "destination_port": unsigned(16), None, Shared, ipfix (Iana 11), zeek ("id.resp_p"), eve ("dest_port"), sort
        = record.destination_port().map(u64::from),
        set |draft, value| draft.destination.1 = Some(value.try_into().ok()?);
    /// Time of the first packet.
    "start_ns": unsigned(64), Nanoseconds, Shared, ipfix (Iana 156), zeek ("ts"), eve ("flow.start"), sort (Start)
        = Some(record.start.as_nanos()),
        set |draft, value| draft.record.start = Timestamp::from_nanos(value);
    /// Time of the last packet.
    "end_ns": unsigned(64), Nanoseconds, Shared, ipfix (Iana 157), zeek, eve ("flow.end"), sort (End)
        = Some(record.end.as_nanos()),
        set |draft, value| draft.record.end = Timestamp::from_nanos(value);
    /// Time from the first packet to the last.
    "duration_ns": unsigned(64), Nanoseconds, Shared, ipfix, zeek, eve ("flow.age"), sort (Duration)
        = Some(duration_nanos(record.duration())), set;
    /// Packets that the initiator sent.
    "packet_count": unsigned(64), Packets, Forward, ipfix (Iana 2), zeek ("orig_pkts"), eve ("flow.pkts_toserver"), sort (Packets)
        = Some(record.forward.counters.packet_count),
        set |draft, value| draft.record.forward.counters.packet_count = value;
    /// Octets of the initiator's frames on the wire.
    "octet_count": unsigned(64), Octets, Forward, ipfix (Iana 352), zeek, eve ("flow.bytes_toserver"), sort (Octets)
        = Some(record.forward.counters.octet_count),
        set |draft, value| draft.record.forward.counters.octet_count = value;
    /// Octets of the initiator's IP packets.
    "ip_octet_count": unsigned(64), Octets, Forward, ipfix (Iana 1), zeek ("orig_ip_bytes"), eve, sort
        = Some(record.forward.counters.ip_octet_count),
        set |draft, value| draft.record.forward.counters.ip_octet_count = value;
    /// Octets of the initiator's transport payload, retransmissions included.
    "payload_octet_count": unsigned(64), Octets, Forward, ipfix (Own 1), zeek ("orig_bytes"), eve, sort (Payload)
        = Some(record.forward.counters.payload_octet_count),
        set |draft, value| draft.record.forward.counters.payload_octet_count = value;
    /// Union of the control bits of the initiator's TCP segments.
    "tcp_flags": unsigned(16), None, Forward, ipfix (Iana 6), zeek, eve ("tcp.tcp_flags_ts"), sort
        = Some(u64::from(record.forward.tcp_flags.0)),
        set |draft, value| draft.record.forward.tcp_flags = tcp_flags(value)?;
    /// TCP segments that the initiator retransmitted.
    "retransmitted_count": unsigned(32), Packets, Forward, ipfix (Own 2), zeek, eve, sort (Retransmitted)
        = Some(u64::from(record.forward.tcp.retransmitted_count)),
        set |draft, value| draft.record.forward.tcp.retransmitted_count = value.try_into().ok()?;
    /// TCP segments of the initiator that arrived out of order.
    "out_of_order_count": unsigned(32), Packets, Forward, ipfix (Own 3), zeek, eve, sort
        = Some(u64::from(record.forward.tcp.out_of_order_count)),
        set |draft, value| draft.record.forward.tcp.out_of_order_count = value.try_into().ok()?;
    /// TCP segments of the initiator that advertised a window of zero.
    "zero_window_count": unsigned(32), Packets, Forward, ipfix (Own 4), zeek, eve, sort
        = Some(u64::from(record.forward.tcp.zero_window_count)),
        set |draft, value| draft.record.forward.tcp.zero_window_count = value.try_into().ok()?;
    /// VLAN ids of the initiator's first frame, outermost first.
    "vlan_ids": vlan_ids, None, Forward, ipfix (Iana 243), zeek ("vlan"), eve ("vlan"), sort
        = Some(record.forward.vlan_ids),
        set |draft, value| draft.record.forward.vlan_ids = value;
    /// Minimum TTL or hop limit of the initiator's packets.
    "ttl_min": unsigned(8), None, Forward, ipfix (Iana 52), zeek, eve, sort
        = record.forward.hop_limits.map(|(min, _)| u64::from(min)),
        set |draft, value| draft.record.forward.hop_limits.get_or_insert_default().0 = value.try_into().ok()?;
    /// Maximum TTL or hop limit of the initiator's packets.
    "ttl_max": unsigned(8), None, Forward, ipfix (Iana 53), zeek, eve, sort
        = record.forward.hop_limits.map(|(_, max)| u64::from(max)),
        set |draft, value| draft.record.forward.hop_limits.get_or_insert_default().1 = value.try_into().ok()?;
    /// DSCP of the initiator's first packet.
    "dscp": unsigned(8), None, Forward, ipfix (Iana 195), zeek, eve, sort
        = record.forward.dscp.map(u64::from),
        set |draft, value| draft.record.forward.dscp = Some(value.try_into().ok()?);
    /// MAC address of the initiator, or of the router that forwards for it.
    "source_mac_address": mac, None, Forward, ipfix (Iana 56), zeek ("orig_l2_addr"), eve ("ether.src_macs"), sort
        = record.forward.mac,
        set |draft, value| draft.record.forward.mac = Some(value);
    /// Packets that the responder sent.
    "reverse_packet_count": unsigned(64), Packets, Reverse, ipfix (Reverse 2), zeek ("resp_pkts"), eve ("flow.pkts_toclient"), sort
        = Some(record.reverse.counters.packet_count),
        set |draft, value| draft.record.reverse.counters.packet_count = value;
    /// Octets of the responder's frames on the wire.
    "reverse_octet_count": unsigned(64), Octets, Reverse, ipfix (Reverse 352), zeek, eve ("flow.bytes_toclient"), sort
        = Some(record.reverse.counters.octet_count),
        set |draft, value| draft.record.reverse.counters.octet_count = value;
    /// Octets of the responder's IP packets.
    "reverse_ip_octet_count": unsigned(64), Octets, Reverse, ipfix (Reverse 1), zeek ("resp_ip_bytes"), eve, sort
        = Some(record.reverse.counters.ip_octet_count),
        set |draft, value| draft.record.reverse.counters.ip_octet_count = value;
    /// Octets of the responder's transport payload, retransmissions included.
    "reverse_payload_octet_count": unsigned(64), Octets, Reverse, ipfix (Own 5), zeek ("resp_bytes"), eve, sort
        = Some(record.reverse.counters.payload_octet_count),
        set |draft, value| draft.record.reverse.counters.payload_octet_count = value;
    /// Union of the control bits of the responder's TCP segments.
    "reverse_tcp_flags": unsigned(16), None, Reverse, ipfix (Reverse 6), zeek, eve ("tcp.tcp_flags_tc"), sort
        = Some(u64::from(record.reverse.tcp_flags.0)),
        set |draft, value| draft.record.reverse.tcp_flags = tcp_flags(value)?;
    /// TCP segments that the responder retransmitted.
    "reverse_retransmitted_count": unsigned(32), Packets, Reverse, ipfix (Own 6), zeek, eve, sort
        = Some(u64::from(record.reverse.tcp.retransmitted_count)),
        set |draft, value| draft.record.reverse.tcp.retransmitted_count = value.try_into().ok()?;
    /// TCP segments of the responder that arrived out of order.
    "reverse_out_of_order_count": unsigned(32), Packets, Reverse, ipfix (Own 7), zeek, eve, sort
        = Some(u64::from(record.reverse.tcp.out_of_order_count)),
        set |draft, value| draft.record.reverse.tcp.out_of_order_count = value.try_into().ok()?;
    /// TCP segments of the responder that advertised a window of zero.
    "reverse_zero_window_count": unsigned(32), Packets, Reverse, ipfix (Own 8), zeek, eve, sort
        = Some(u64::from(record.reverse.tcp.zero_window_count)),
        set |draft, value| draft.record.reverse.tcp.zero_window_count = value.try_into().ok()?;
    /// VLAN ids of the responder's first frame, outermost first.
    "reverse_vlan_ids": vlan_ids, None, Reverse, ipfix (Reverse 243), zeek, eve, sort
        = Some(record.reverse.vlan_ids),
        set |draft, value| draft.record.reverse.vlan_ids = value;
    /// Minimum TTL or hop limit of the responder's packets.
    "reverse_ttl_min": unsigned(8), None, Reverse, ipfix (Reverse 52), zeek, eve, sort
        = record.reverse.hop_limits.map(|(min, _)| u64::from(min)),
        set |draft, value| draft.record.reverse.hop_limits.get_or_insert_default().0 = value.try_into().ok()?;
    /// Maximum TTL or hop limit of the responder's packets.
    "reverse_ttl_max": unsigned(8), None, Reverse, ipfix (Reverse 53), zeek, eve, sort
        = record.reverse.hop_limits.map(|(_, max)| u64::from(max)),
        set |draft, value| draft.record.reverse.hop_limits.get_or_insert_default().1 = value.try_into().ok()?;
    /// DSCP of the responder's first packet.
    "reverse_dscp": unsigned(8), None, Reverse, ipfix (Reverse 195), zeek, eve, sort
        = record.reverse.dscp.map(u64::from),
        set |draft, value| draft.record.reverse.dscp = Some(value.try_into().ok()?);
    /// MAC address of the responder, or of the router that forwards for it.
    "destination_mac_address": mac, None, Reverse, ipfix (Iana 80), zeek ("resp_l2_addr"), eve ("ether.dest_macs"), sort
        = record.reverse.mac,
        set |draft, value| draft.record.reverse.mac = Some(value);
    /// State of the TCP connection at the end (RFC 9293).
    "tcp_state": name, None, Shared, ipfix (Own 9), zeek, eve ("tcp.state"), sort
        = Some(record.tcp_state.name()),
        set |draft, value| draft.record.tcp_state = TcpState::from_name(value)?;
    /// Outcome of the connection, as in Zeek.
    "conn_state": name, None, Shared, ipfix (Own 10), zeek ("conn_state"), eve, sort
        = Some(record.conn_state.name()),
        set |draft, value| draft.record.conn_state = ConnState::from_name(value)?;
    /// Letters of events in the order of their first occurrence, as in Zeek; those of gaps, repeated payload and zero
    /// windows repeat at the 10th, 100th ... occurrence.
    "history": text(History), None, Shared, ipfix (Own 11), zeek ("history"), eve, sort
        = Some(record.history),
        set |draft, value| draft.record.history = History::from_letters(value)?;
    /// Time from the last SYN to the ACK that completed the handshake.
    "handshake_rtt_ns": unsigned(64), Nanoseconds, Shared, ipfix (Own 12), zeek, eve, sort (Rtt)
        = record.handshake_rtt.map(duration_nanos),
        set |draft, value| draft.record.handshake_rtt = Some(Duration::from_nanos(value));
    /// Reason for the end of the record.
    "flow_end_reason": name, None, Shared, ipfix (Iana 136), zeek, eve ("flow.reason"), sort
        = Some(record.flow_end_reason.name()),
        set |draft, value| draft.record.flow_end_reason = EndReason::from_name(value)?;
    /// Evidence for which side is the initiator.
    "direction_evidence": name, None, Shared, ipfix (Own 13), zeek, eve, sort
        = Some(record.direction_evidence.name()),
        set |draft, value| draft.record.direction_evidence = DirectionEvidence::from_name(value)?;
    /// Community ID, version 1, seed 0.
    "community_id": text(CommunityId), None, Shared, ipfix (Own 14), zeek ("community_id"), eve ("community_id"), sort
        = Some(record.community_id()), set;
    /// ICMP type of the initiator's first packet.
    "icmp_type": unsigned(8), None, Shared, ipfix (Iana 176), zeek, eve ("icmp_type"), sort
        = record.icmp.map(|(kind, _)| u64::from(kind)),
        set |draft, value| draft.record.icmp.get_or_insert_default().0 = value.try_into().ok()?;
    /// ICMP code of the initiator's first packet.
    "icmp_code": unsigned(8), None, Shared, ipfix (Iana 177), zeek, eve ("icmp_code"), sort
        = record.icmp.map(|(_, code)| u64::from(code)),
        set |draft, value| draft.record.icmp.get_or_insert_default().1 = value.try_into().ok()?;
    /// ICMP errors that quoted a packet of the flow.
    "icmp_error_count": unsigned(32), Packets, Shared, ipfix (Own 15), zeek, eve, sort
        = Some(u64::from(record.icmp_error_count)),
        set |draft, value| draft.record.icmp_error_count = value.try_into().ok()?;
    /// Packets of the flow that were IP fragments.
    "fragment_count": unsigned(32), Packets, Shared, ipfix (Own 16), zeek, eve, sort
        = Some(u64::from(record.fragment_count)),
        set |draft, value| draft.record.fragment_count = value.try_into().ok()?;
    /// Interface of the first packet of the flow, counted from zero.
    "interface": unsigned(32), None, Shared, ipfix (Iana 10), zeek, eve ("in_iface"), sort
        = Some(u64::from(record.interface)),
        set |draft, value| draft.record.interface = value.try_into().ok()?;
    /// Scope in the flow key, as set by the caller.
    "scope": unsigned(32), None, Shared, ipfix (Own 17), zeek, eve, sort
        = Some(u64::from(record.key.scope())),
        set |draft, value| draft.scope = value.try_into().ok()?;
    /// Number of records of the flow that active timeouts had emitted before this one.
    "sequence_number": unsigned(32), None, Shared, ipfix (Own 18), zeek, eve, sort
        = Some(u64::from(record.sequence_number)),
        set |draft, value| draft.record.sequence_number = value.try_into().ok()?;
    /// Outer headers of the initiator's packets, outermost first, if they are recorded.
    "encapsulation": encapsulation, None, Forward, ipfix (Own 19), zeek, eve, sort
        = encapsulation(record).and_then(|part| known(&part.encapsulation)),
        set |draft, value| draft.encapsulation().encapsulation = value;
    /// Packets of the initiator with other outer headers than those of the first one.
    "encapsulation_changed_count": unsigned(32), Packets, Forward, ipfix (Own 20), zeek, eve, sort
        = encapsulation(record).map(|part| u64::from(part.encapsulation_changed_count)),
        set |draft, value| draft.encapsulation().encapsulation_changed_count = value.try_into().ok()?;
    /// Flow that carried the initiator's first packet, sender first.
    "outer_flow": text(OuterFlow), None, Forward, ipfix (Own 21), zeek, eve, sort
        = encapsulation(record).and_then(|part| part.outer_flow.as_ref()),
        set |draft, value| draft.encapsulation().outer_flow = Some(OuterFlow::parse(value)?);
    /// Community ID of the flow that carried the initiator's first packet.
    "outer_community_id": text(CommunityId), None, Forward, ipfix, zeek, eve, sort
        = encapsulation(record).and_then(|part| part.outer_flow.map(|flow| flow.community_id())), set;
    /// Outer headers of the responder's packets, outermost first, if they are recorded.
    "reverse_encapsulation": encapsulation, None, Reverse, ipfix (Own 22), zeek, eve, sort
        = encapsulation(record).and_then(|part| known(&part.reverse_encapsulation)),
        set |draft, value| draft.encapsulation().reverse_encapsulation = value;
    /// Packets of the responder with other outer headers than those of the first one.
    "reverse_encapsulation_changed_count": unsigned(32), Packets, Reverse, ipfix (Own 23), zeek, eve, sort
        = encapsulation(record).map(|part| u64::from(part.reverse_encapsulation_changed_count)),
        set |draft, value| draft.encapsulation().reverse_encapsulation_changed_count = value.try_into().ok()?;
    /// Flow that carried the responder's first packet, sender first.
    "reverse_outer_flow": text(OuterFlow), None, Reverse, ipfix (Own 24), zeek, eve, sort
        = encapsulation(record).and_then(|part| part.reverse_outer_flow.as_ref()),
        set |draft, value| draft.encapsulation().reverse_outer_flow = Some(OuterFlow::parse(value)?);
    /// Community ID of the flow that carried the responder's first packet.
    "reverse_outer_community_id": text(CommunityId), None, Reverse, ipfix, zeek, eve, sort
        = encapsulation(record).and_then(|part| part.reverse_outer_flow.map(|flow| flow.community_id())), set;
    /// Number of flows whose first packet this flow carried.
    "inner_flow_count": unsigned(32), Flows, Shared, ipfix (Own 25), zeek, eve, sort
        = encapsulation(record).map(|part| u64::from(part.inner_flow_count)),
        set |draft, value| draft.encapsulation().inner_flow_count = value.try_into().ok()?;
    /// Packets of the flow that carried a packet of another flow.
    "carried_packet_count": unsigned(64), Packets, Shared, ipfix (Own 26), zeek, eve, sort
        = encapsulation(record).map(|part| part.carried_packet_count),
        set |draft, value| draft.encapsulation().carried_packet_count = value;
    /// Octets on the wire of the packets that carried a packet of another flow.
    "carried_octet_count": unsigned(64), Octets, Shared, ipfix (Own 27), zeek, eve, sort
        = encapsulation(record).map(|part| part.carried_octet_count),
        set |draft, value| draft.encapsulation().carried_octet_count = value;
    /// Application protocol, if it was identified.
    "application": text(Application), None, Shared, ipfix (Iana 96), zeek ("service"), eve ("app_proto"), sort
        = record.application.map(|application| application.name),
        set |draft, value| draft.application.0 = Some(ApplicationName::new(value)?);
    /// Evidence for the application protocol.
    "application_evidence": name, None, Shared, ipfix (Own 28), zeek, eve, sort
        = record.application.map(|application| application.evidence.name()),
        set |draft, value| draft.application.1 = Some(Evidence::from_name(value)?);
    /// Time from the first packet to the one with which both ends had closed the TCP connection, otherwise to the last.
    "open_duration_ns": unsigned(64), Nanoseconds, Shared, ipfix (Own 29), zeek ("duration"), eve, sort
        = Some(duration_nanos(record.open_duration())),
        set |draft, value| draft.open_duration_ns = Some(value);
    /// Number of packets of which one was sampled; absent if all packets were counted.
    "sampling_interval": unsigned(32), Packets, Shared, ipfix (Iana 34), zeek, eve, sort
        = record.sampling_interval.map(u64::from),
        set |draft, value| draft.record.sampling_interval = Some(value.try_into().ok()?);
    /// Factor by which the counts of packets and octets were multiplied, so that they are estimates; absent otherwise.
    "counter_scale": unsigned(32), None, Shared, ipfix (Own 30), zeek, eve, sort
        = record.counter_scale.map(u64::from),
        set |draft, value| draft.record.counter_scale = Some(value.try_into().ok()?);
}

impl FlowRecord {
    /// All fields of a flow record, in the order in which formats write them.
    pub const SCHEMA: &'static [Field] = &SCHEMA_FIELDS;

    /// Passes the values of all fields of the record to a visitor, in the order of [`SCHEMA`](Self::SCHEMA).
    /// Computes the Community ID; allocates nothing.
    #[inline]
    pub fn visit(&self, visitor: &mut impl Visitor) {
        if self.known == FieldSet::ALL {
            visit_all(self, visitor);
        } else {
            visit_known(self, self.known, visitor);
        }
    }

    /// Passes the values of some fields of the record to a visitor. `indices` are the indices of the fields
    /// in [`SCHEMA`](Self::SCHEMA), in the order in which the values are passed; indices that are not in the
    /// schema are skipped. Allocates nothing.
    pub fn visit_fields(&self, indices: &[usize], visitor: &mut impl Visitor) {
        for &index in indices {
            if let Some(field) = Self::SCHEMA.get(index) {
                self.value(index).visit(field, visitor);
            }
        }
    }

    /// Returns the value of the field with the given index in [`SCHEMA`](Self::SCHEMA); [`Value::Absent`] if
    /// the value is not known.
    #[must_use]
    pub fn value(&self, index: usize) -> Value<'_> {
        let field = Self::SCHEMA.get(index).filter(|_| self.known.contains(index));
        field.map_or(Value::Absent, |field| (field.get)(self))
    }
}
