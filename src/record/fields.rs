//! A record as a list of named values: what text formats write.

use std::fmt;
use std::net::IpAddr;

use super::enclosure::{OuterFlow, SideEnclosure};
use super::flow_record::{FlowRecord, SideRecord};
use crate::base::{EncapsulationStack, History, VlanIds, duration_nanos};

/// One value of a [`FlowRecord`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// Does not apply to this flow.
    Absent,
    /// A number, a count, nanoseconds.
    Unsigned(u64),
    /// One of a set of names.
    Name(&'static str),
    /// Text.
    Text(String),
    /// An address.
    Address(IpAddr),
    /// A hardware address.
    Mac([u8; 6]),
    /// VLAN ids, outermost first.
    VlanIds(VlanIds),
    /// Headers that enclose packets, outermost first.
    Encapsulation(EncapsulationStack),
    /// History letters.
    History(History),
}

impl Field {
    fn of<T: Into<u64>>(value: Option<T>) -> Self {
        value.map_or(Self::Absent, |value| Self::Unsigned(value.into()))
    }
}

impl fmt::Display for Field {
    /// As text: nothing if absent, VLAN ids joined by dots, headers by ` / `, hardware addresses as pairs of digits joined by
    /// colons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Unsigned(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
            Self::Text(text) => f.write_str(text),
            Self::Address(address) => address.fmt(f),
            Self::Mac([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Self::VlanIds(ids) => ids.fmt(f),
            Self::Encapsulation(stack) => stack.fmt(f),
            Self::History(history) => history.fmt(f),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Field {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Name(name) => serializer.serialize_str(name),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Address(address) => address.serialize(serializer),
            Self::Mac(_) => serializer.collect_str(self),
            Self::VlanIds(ids) => ids.serialize(serializer),
            Self::Encapsulation(stack) => stack.serialize(serializer),
            Self::History(history) => history.serialize(serializer),
        }
    }
}

const FIELD_COUNT: usize = 8 + 2 * SIDE_FIELD_COUNT + 14 + 2 * ENCLOSURE_FIELD_COUNT + 6;
const SIDE_FIELD_COUNT: usize = 13;
const ENCLOSURE_FIELD_COUNT: usize = 4;

impl FlowRecord {
    /// The names of the [`fields`](Self::fields), in their order: the columns of `flowgauge flows --format csv`. Those of
    /// the responder have `reverse_` in front.
    pub const FIELD_NAMES: [&'static str; FIELD_COUNT] = [
        "protocol",
        "source_address",
        "source_port",
        "destination_address",
        "destination_port",
        "start_ns",
        "end_ns",
        "duration_ns",
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
        "tcp_state",
        "conn_state",
        "history",
        "handshake_rtt_ns",
        "flow_end_reason",
        "direction_evidence",
        "community_id",
        "icmp_type",
        "icmp_code",
        "icmp_error_count",
        "fragment_count",
        "interface",
        "scope",
        "sequence_number",
        "encapsulation",
        "encapsulation_changed_count",
        "outer_flow",
        "outer_community_id",
        "reverse_encapsulation",
        "reverse_encapsulation_changed_count",
        "reverse_outer_flow",
        "reverse_outer_community_id",
        "inner_flow_count",
        "carried_packet_count",
        "carried_octet_count",
        "application",
        "application_evidence",
        "open_duration_ns",
    ];

    /// The values of the record, each under its name in [`FIELD_NAMES`](Self::FIELD_NAMES). Computes the Community ID, and
    /// allocates its text.
    #[must_use]
    pub fn fields(&self) -> [Field; FIELD_COUNT] {
        use Field::{Address, History, Name, Text, Unsigned};
        let [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12] = side_fields(&self.forward);
        let [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12] = side_fields(&self.reverse);
        let enclosure = self.enclosure.as_deref();
        let [e0, e1, e2, e3] = enclosure_fields(enclosure.map(|enclosure| &enclosure.forward));
        let [e4, e5, e6, e7] = enclosure_fields(enclosure.map(|enclosure| &enclosure.reverse));
        let carried = enclosure.map(|enclosure| &enclosure.carried);
        [
            Unsigned(self.protocol().0.into()),
            Address(self.source_address()),
            Unsigned(self.source_port().into()),
            Address(self.destination_address()),
            Unsigned(self.destination_port().into()),
            Unsigned(self.start.as_nanos()),
            Unsigned(self.end.as_nanos()),
            Unsigned(duration_nanos(self.duration())),
            f0,
            f1,
            f2,
            f3,
            f4,
            f5,
            f6,
            f7,
            f8,
            f9,
            f10,
            f11,
            f12,
            r0,
            r1,
            r2,
            r3,
            r4,
            r5,
            r6,
            r7,
            r8,
            r9,
            r10,
            r11,
            r12,
            Name(self.tcp_state.name()),
            Name(self.conn_state.name()),
            History(self.history),
            Field::of(self.handshake_rtt.map(duration_nanos)),
            Name(self.flow_end_reason.name()),
            Name(self.direction_evidence.name()),
            Text(self.community_id()),
            Field::of(self.icmp.map(|(kind, _)| kind)),
            Field::of(self.icmp.map(|(_, code)| code)),
            Unsigned(self.icmp_error_count.into()),
            Unsigned(self.fragment_count.into()),
            Unsigned(self.interface.into()),
            Unsigned(self.key.scope().into()),
            Unsigned(self.sequence_number.into()),
            e0,
            e1,
            e2,
            e3,
            e4,
            e5,
            e6,
            e7,
            Field::of(carried.map(|carried| carried.inner_flow_count)),
            Field::of(carried.map(|carried| carried.packet_count)),
            Field::of(carried.map(|carried| carried.octet_count)),
            self.application.map_or(Field::Absent, |application| Name(application.name)),
            self.application.map_or(Field::Absent, |application| Name(application.evidence.name())),
            Unsigned(duration_nanos(self.open_duration())),
        ]
    }
}

fn side_fields(side: &SideRecord) -> [Field; SIDE_FIELD_COUNT] {
    use Field::Unsigned;
    let (counters, tcp) = (&side.counters, &side.tcp);
    [
        Unsigned(counters.packet_count),
        Unsigned(counters.octet_count),
        Unsigned(counters.ip_octet_count),
        Unsigned(counters.payload_octet_count),
        Unsigned(side.tcp_flags.0.into()),
        Unsigned(tcp.retransmitted_count.into()),
        Unsigned(tcp.out_of_order_count.into()),
        Unsigned(tcp.zero_window_count.into()),
        Field::VlanIds(side.vlan_ids),
        Field::of(side.hop_limits.map(|(min, _)| min)),
        Field::of(side.hop_limits.map(|(_, max)| max)),
        Field::of(side.dscp),
        side.mac.map_or(Field::Absent, Field::Mac),
    ]
}

fn enclosure_fields(side: Option<&SideEnclosure>) -> [Field; ENCLOSURE_FIELD_COUNT] {
    use Field::{Absent, Encapsulation, Text};
    let Some(side) = side else { return [const { Absent }; ENCLOSURE_FIELD_COUNT] };
    let outer =
        |text: fn(&OuterFlow) -> String| side.outer.as_ref().map_or(Absent, |outer| Text(text(outer)));
    [
        if side.stack.is_empty() { Absent } else { Encapsulation(side.stack.clone()) },
        Field::Unsigned(side.changed_count.into()),
        outer(OuterFlow::to_string),
        outer(OuterFlow::community_id),
    ]
}

#[cfg(feature = "serde")]
impl serde::Serialize for FlowRecord {
    /// One flat object of the [`fields`](Self::fields): a line of `flowgauge flows --format ndjson`. What does not apply
    /// is null, so that every record has the same fields.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Self::FIELD_NAMES.into_iter().zip(self.fields()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_sides_correspond() {
        let names = FlowRecord::FIELD_NAMES;
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        for (forward, reverse) in names[8..20].iter().zip(&names[21..33]) {
            assert_eq!(format!("reverse_{forward}"), *reverse);
        }
        for (forward, reverse) in names[48..52].iter().zip(&names[52..56]) {
            assert_eq!(format!("reverse_{forward}"), *reverse);
        }
    }

    #[test]
    fn values_as_text() {
        let vlan_ids = Field::VlanIds(VlanIds::NONE.push(100).push(10));
        assert_eq!(vlan_ids.to_string(), "100.10");
        assert_eq!(Field::Mac([2, 0, 0, 0x77, 0, 0xab]).to_string(), "02:00:00:77:00:ab");
        assert_eq!(Field::of(None::<u8>).to_string(), "");
    }
}
