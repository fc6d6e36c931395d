//! Fields of the schema of flow records, and their values in a record.

use std::fmt;
use std::net::IpAddr;

use super::community_id::CommunityId;
use super::flow_record::FlowRecord;
use crate::base::{ApplicationName, Encapsulation, History, OuterFlow, VlanIds};

/// Type of a field of a flow record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// An unsigned integer with the given number of bits.
    Unsigned(u8),
    /// An IPv4 or IPv6 address.
    Address,
    /// A MAC address.
    Mac,
    /// One of a set of names.
    Name,
    /// Text of ASCII letters, digits and punctuation without quotes and commas.
    Text,
    /// A list of VLAN ids, outermost first.
    VlanIds,
    /// A list of the headers around a packet, outermost first.
    Encapsulation,
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(bits) => write!(f, "unsigned{bits}"),
            Self::Address => f.write_str("address"),
            Self::Mac => f.write_str("MAC address"),
            Self::Name => f.write_str("name"),
            Self::Text => f.write_str("text"),
            Self::VlanIds => f.write_str("list of VLAN ids"),
            Self::Encapsulation => f.write_str("list of headers"),
        }
    }
}

/// Unit of a numeric field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A number without a unit.
    None,
    /// Octets.
    Octets,
    /// Packets.
    Packets,
    /// Flows.
    Flows,
    /// Nanoseconds; for a point in time, since 1970-01-01 00:00 UTC.
    Nanoseconds,
}

impl Unit {
    /// Returns the name of the unit; empty for [`Unit::None`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Octets => "octets",
            Self::Packets => "packets",
            Self::Flows => "flows",
            Self::Nanoseconds => "ns",
        }
    }
}

/// Direction of a biflow that a field describes (RFC 5103).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldSide {
    /// The field describes both directions together.
    Shared,
    /// The field describes the direction from the initiator to the responder.
    Forward,
    /// The field describes the direction from the responder to the initiator.
    Reverse,
}

/// Property by which flows are sorted, in descending order unless noted otherwise. Counts include both
/// directions.
///
/// [`FlowView::sort_value`](crate::tracker::FlowView::sort_value) returns the value of a flow before a record is
/// created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SortKey {
    /// Time of the first packet, the earliest first.
    Start,
    /// Time of the last packet, the earliest first.
    End,
    /// Time from the first packet to the last.
    Duration,
    /// Number of packets.
    Packets,
    /// Number of octets on the wire.
    Octets,
    /// Number of octets of transport payload.
    Payload,
    /// Number of retransmitted TCP segments.
    Retransmitted,
    /// Round-trip time of the TCP handshake. A flow without a measured round-trip time comes last.
    Rtt,
}

impl SortKey {
    /// All sort keys.
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::End,
        Self::Duration,
        Self::Packets,
        Self::Octets,
        Self::Payload,
        Self::Retransmitted,
        Self::Rtt,
    ];

    /// Returns the name of the sort key as used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Duration => "duration",
            Self::Packets => "packets",
            Self::Octets => "octets",
            Self::Payload => "payload",
            Self::Retransmitted => "retransmitted",
            Self::Rtt => "rtt",
        }
    }
}

/// IPFIX information element (RFC 7012).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InformationElement {
    /// An element of the IANA registry, by its identifier.
    Iana(u16),
    /// The reverse of an element of the IANA registry, by the identifier of that element. Its enterprise number is
    /// 29305 (RFC 5103 section 6.1).
    Reverse(u16),
    /// An element that this crate defines, by its identifier. The exporter sets the enterprise number.
    Own(u16),
}

/// A field of [`FlowRecord`], as defined by the schema.
///
/// [`FlowRecord::SCHEMA`] lists all fields.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Name of the field in ndjson, csv and queries. The names of the responder's fields start with
    /// `reverse_`, except for its address, port and MAC address.
    pub name: &'static str,
    /// Index of the field in [`FlowRecord::SCHEMA`].
    pub index: usize,
    /// Description of the field in one sentence.
    pub description: &'static str,
    /// Type of the field's values.
    pub field_type: FieldType,
    /// Unit of the field's values.
    pub unit: Unit,
    /// Direction of the flow that the field describes.
    pub side: FieldSide,
    /// IPFIX information element for the field; for an address, the element for IPv4 addresses; for VLAN ids, the
    /// element for the outermost one. `None` for a field that is derived from other fields.
    pub ipfix: Option<InformationElement>,
    /// Name of the column of Zeek's `conn.log` that corresponds to the field.
    pub zeek: Option<&'static str>,
    /// Key in Suricata's EVE event `flow` that corresponds to the field, with dots between nested keys.
    pub eve: Option<&'static str>,
    /// Function that returns the field's value in a record.
    pub get: for<'r> fn(&'r FlowRecord) -> Value<'r>,
    /// Sort key that corresponds to the field, if there is one.
    pub sort: Option<SortKey>,
}

/// One value of a [`FlowRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'r> {
    /// No value: the field does not apply to the flow, or its value is not known.
    Absent,
    /// An unsigned integer, such as a count or a time in nanoseconds.
    Unsigned(u64),
    /// An IPv4 or IPv6 address.
    Address(IpAddr),
    /// A MAC address.
    Mac([u8; 6]),
    /// One of a set of names.
    Name(&'static str),
    /// Letters for the events of the flow, as in Zeek's `history`.
    History(History),
    /// A Community ID.
    CommunityId(CommunityId),
    /// Name of an application protocol.
    Application(ApplicationName),
    /// An outer flow, which carries the flow of the record in a tunnel.
    OuterFlow(&'r OuterFlow),
    /// VLAN ids, outermost first.
    VlanIds(VlanIds),
    /// Headers around the packets of the flow, outermost first.
    Encapsulation(&'r Encapsulation),
}

impl Value<'_> {
    /// Passes this value of `field` to the method of the visitor for the field's type.
    pub(super) fn visit(self, field: &'static Field, visitor: &mut impl Visitor) {
        match self {
            Self::Unsigned(number) => visitor.unsigned(field, Some(number)),
            Self::Address(address) => visitor.address(field, Some(address)),
            Self::Mac(mac) => visitor.mac(field, Some(mac)),
            Self::Name(name) => visitor.name(field, Some(name)),
            Self::History(history) => visitor.text(field, Some(history)),
            Self::CommunityId(id) => visitor.text(field, Some(id)),
            Self::Application(name) => visitor.text(field, Some(name)),
            Self::OuterFlow(flow) => visitor.text(field, Some(flow)),
            Self::VlanIds(ids) => visitor.vlan_ids(field, Some(ids)),
            Self::Encapsulation(encapsulation) => visitor.encapsulation(field, Some(encapsulation)),
            Self::Absent => match field.field_type {
                FieldType::Unsigned(_) => visitor.unsigned(field, None),
                FieldType::Address => visitor.address(field, None),
                FieldType::Mac => visitor.mac(field, None),
                FieldType::Name => visitor.name(field, None),
                FieldType::Text => visitor.text(field, None::<&str>),
                FieldType::VlanIds => visitor.vlan_ids(field, None),
                FieldType::Encapsulation => visitor.encapsulation(field, None),
            },
        }
    }
}

impl fmt::Display for Value<'_> {
    /// Formats the value as in csv: nothing if the value is absent, VLAN ids joined by dots, headers joined
    /// by ` / `, and MAC addresses as pairs of hexadecimal digits joined by colons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Unsigned(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
            Self::Mac(mac) => Mac(*mac).fmt(f),
            Self::History(history) => history.fmt(f),
            Self::CommunityId(id) => id.fmt(f),
            Self::Application(name) => name.fmt(f),
            Self::OuterFlow(flow) => flow.fmt(f),
            Self::VlanIds(ids) => ids.fmt(f),
            Self::Encapsulation(encapsulation) => encapsulation.fmt(f),
        }
    }
}

/// MAC address that is formatted as text, with colons between its octets.
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([a, b, c, d, e, g]) = self;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Receives the fields of a record by type, in the order of the schema, without an intermediate [`Value`]. Implemented
/// by each format.
///
/// [`FlowRecord::visit`] calls one method for each field; `None` represents a value that does not apply or is
/// not known.
pub trait Visitor {
    /// Returns whether the visitor receives the value of a field. The values of other fields are not computed, and
    /// no method is called for them. All fields by default.
    #[inline]
    fn wants(&self, field: &'static Field) -> bool {
        let _ = field;
        true
    }

    /// Receives the value of a field with an unsigned integer.
    fn unsigned(&mut self, field: &'static Field, value: Option<u64>);
    /// Receives the value of a field with an IPv4 or IPv6 address.
    fn address(&mut self, field: &'static Field, value: Option<IpAddr>);
    /// Receives the value of a field with a MAC address.
    fn mac(&mut self, field: &'static Field, value: Option<[u8; 6]>);
    /// Receives the value of a field with one of a set of names.
    fn name(&mut self, field: &'static Field, value: Option<&'static str>);
    /// Receives the value of a field with text, which contains no quotes and commas.
    fn text(&mut self, field: &'static Field, value: Option<impl fmt::Display>);
    /// Receives the value of a field with VLAN ids, outermost first.
    fn vlan_ids(&mut self, field: &'static Field, value: Option<VlanIds>);
    /// Receives the value of a field with the headers around packets, outermost first.
    fn encapsulation(&mut self, field: &'static Field, value: Option<&Encapsulation>);
}
