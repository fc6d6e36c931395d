//! Fields of the schema, and their values in a record.

use std::fmt;
use std::net::IpAddr;

use super::community_id::CommunityId;
use super::encapsulation::OuterFlow;
use super::flow_record::FlowRecord;
use crate::base::{ApplicationName, Encapsulation, History, VlanIds};

/// The type of a field.
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
    /// A list of headers, outermost first.
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

/// The unit of a number.
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
    /// Nanoseconds; of a time, since 1970-01-01 00:00 UTC.
    Nanoseconds,
}

impl Unit {
    /// Returns the name of the unit; empty without one.
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

/// The part of a biflow that a field describes (RFC 5103).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldSide {
    /// Both directions together.
    Shared,
    /// The direction from the initiator.
    Forward,
    /// The direction from the responder.
    Reverse,
}

/// A sort key for flows, in descending order. Counts are those of both directions.
///
/// [`FlowView::sort_value`](crate::tracker::FlowView::sort_value) returns the value of a flow before a record is
/// created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SortKey {
    /// The time of the first packet, the earliest first.
    Start,
    /// The time of the last packet, the earliest first.
    End,
    /// The time from the first packet to the last.
    Duration,
    /// Packets.
    Packets,
    /// Octets on the wire.
    Octets,
    /// Octets of payload.
    Payload,
    /// Retransmitted TCP segments.
    Retransmitted,
    /// Round-trip time of the handshake. A flow without one comes last.
    Rtt,
}

impl SortKey {
    /// All keys.
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

    /// Returns the name as used on the command line.
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

/// A field of [`FlowRecord`], as defined by the schema.
///
/// [`FlowRecord::SCHEMA`] lists all of them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Name in ndjson, csv and queries. Fields of the responder begin with `reverse_`, except for its address, port and
    /// MAC address.
    pub name: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// The type of its values.
    pub field_type: FieldType,
    /// The unit of its values.
    pub unit: Unit,
    /// The part of the flow that it describes.
    pub side: FieldSide,
    /// Enterprise number and identifier of the IPFIX information element; for an address, that of IPv4. The enterprise
    /// number is 0 for an IANA element, and 29305 for its reverse (RFC 5103).
    pub ipfix: Option<(u32, u16)>,
    /// The column of Zeek's `conn.log`.
    pub zeek: Option<&'static str>,
    /// The key of Suricata's EVE event `flow`, with dots between nested keys.
    pub eve: Option<&'static str>,
    /// Returns the value of a record.
    pub get: for<'r> fn(&'r FlowRecord) -> Value<'r>,
    /// Sort key of this field, if there is one.
    pub sort: Option<SortKey>,
}

/// One value of a [`FlowRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'r> {
    /// Not applicable to this flow, or not known.
    Absent,
    /// A number, a count, nanoseconds.
    Unsigned(u64),
    /// An address.
    Address(IpAddr),
    /// A MAC address.
    Mac([u8; 6]),
    /// One of a set of names.
    Name(&'static str),
    /// History letters.
    History(History),
    /// A Community ID.
    CommunityId(CommunityId),
    /// An application protocol.
    Application(ApplicationName),
    /// A flow that carries this one.
    OuterFlow(&'r OuterFlow),
    /// VLAN ids, outermost first.
    VlanIds(VlanIds),
    /// An encapsulation.
    Encapsulation(&'r Encapsulation),
}

impl Value<'_> {
    /// Passes the value of a field to a visitor.
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
    /// Formats the value as in csv: nothing if absent, VLAN ids joined by dots, headers by ` / `, MAC addresses as
    /// pairs of digits joined by colons.
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

/// A MAC address as text.
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
/// [`FlowRecord::visit`] calls it; `None` represents a value that does not apply or is not known.
pub trait Visitor {
    /// A number.
    fn unsigned(&mut self, field: &'static Field, value: Option<u64>);
    /// An address.
    fn address(&mut self, field: &'static Field, value: Option<IpAddr>);
    /// A MAC address.
    fn mac(&mut self, field: &'static Field, value: Option<[u8; 6]>);
    /// One of a set of names.
    fn name(&mut self, field: &'static Field, value: Option<&'static str>);
    /// Text without quotes and commas.
    fn text(&mut self, field: &'static Field, value: Option<impl fmt::Display>);
    /// VLAN ids.
    fn vlan_ids(&mut self, field: &'static Field, value: Option<VlanIds>);
    /// An encapsulation.
    fn encapsulation(&mut self, field: &'static Field, value: Option<&Encapsulation>);
}
