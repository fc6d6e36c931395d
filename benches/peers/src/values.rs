//! Values of a data record, as flowgauge and netflow_parser decode them.

use std::net::IpAddr;

use flowgauge::FlowRecord;
use flowgauge::base::IpProtocol;
use netflow_parser::NetflowPacket;
use netflow_parser::static_versions::v5::{FlowSet as V5Record, Header as V5Header};
use netflow_parser::variable_versions::field_value::{DataNumber, DurationValue, FieldValue};
use netflow_parser::variable_versions::ipfix::lookup::{
    IANAIPFixField, IPFixField, ReverseInformationElement,
};
use netflow_parser::variable_versions::v9::lookup::V9Field;
use netflow_parser::variable_versions::{ipfix, v9};

/// Nanoseconds from 1900-01-01, the epoch of the NTP timestamp format, to 1970-01-01.
const NTP_TO_UNIX_NS: u64 = 2_208_988_800_000_000_000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// The TCP control bits that have names, from FIN to NS. netflow_parser 1.0.6 discards the three reserved ones, which
/// flowgauge keeps (RFC 9565 section 3).
const NAMED_TCP_FLAGS: u16 = 0x01ff;

/// Counts of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) packet_count: u64,
    pub(crate) octet_count: u64,
    pub(crate) tcp_flags: u16,
}

/// Values of a data record between two addresses. A value that the record does not have is zero or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: Option<IpAddr>,
    pub(crate) ports: Option<(u16, u16)>,
    /// Type and code.
    pub(crate) icmp: Option<(u8, u8)>,
    pub(crate) protocol: u8,
    pub(crate) forward: Counts,
    pub(crate) reverse: Counts,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

impl Values {
    #[inline]
    pub(crate) fn of_record(record: &FlowRecord) -> Self {
        let counts = |side: &flowgauge::record::SideRecord| Counts {
            packet_count: side.counters.packet_count,
            octet_count: side.counters.ip_octet_count,
            tcp_flags: side.tcp_flags.0 & NAMED_TCP_FLAGS,
        };
        Self {
            source: Some(record.source_address()),
            destination: Some(record.destination_address()),
            ports: record.source_port().zip(record.destination_port()),
            icmp: record.icmp,
            protocol: record.protocol().0,
            forward: counts(&record.forward),
            reverse: counts(&record.reverse),
            start_ns: record.start.as_nanos(),
            end_ns: record.end.as_nanos(),
        }
    }

    /// Returns the sum of all values, which a row computes so that each of them is read.
    #[inline]
    pub(crate) fn sum(&self) -> u64 {
        let address = |address: Option<IpAddr>| match address {
            Some(IpAddr::V4(address)) => u64::from(address.to_bits()),
            Some(IpAddr::V6(address)) => address.to_bits() as u64,
            None => 0,
        };
        let (source_port, destination_port) = self.ports.unwrap_or_default();
        let numbers = [
            address(self.source),
            address(self.destination),
            source_port.into(),
            destination_port.into(),
            self.protocol.into(),
            self.forward.packet_count,
            self.forward.octet_count,
            self.forward.tcp_flags.into(),
            self.reverse.packet_count,
            self.reverse.octet_count,
            self.reverse.tcp_flags.into(),
            self.start_ns,
            self.end_ns,
        ];
        numbers.into_iter().fold(0, u64::wrapping_add)
    }
}

/// Passes the values of each data record between two addresses to `each`, as netflow_parser decoded them.
#[inline]
pub(crate) fn of_packet(packet: &NetflowPacket, mut each: impl FnMut(Values)) {
    match packet {
        NetflowPacket::V5(message) => {
            message.flowsets.iter().for_each(|record| each(of_netflow5(&message.header, record)));
        }
        NetflowPacket::V9(message) => {
            let boot_time = BootTime::new(message.header.unix_secs, 0, message.header.sys_up_time);
            for set in &message.flowsets {
                let v9::FlowSetBody::Data(data) = &set.body else { continue };
                for record in &data.fields {
                    let mut draft = Draft::default();
                    for (field, value) in record {
                        draft.set(of_netflow9_field(*field), value);
                    }
                    let values = draft.finish(Some(boot_time), message.header.unix_secs);
                    values.into_iter().for_each(&mut each);
                }
            }
        }
        NetflowPacket::IPFix(message) => {
            for set in &message.flowsets {
                let ipfix::FlowSetBody::Data(data) = &set.body else { continue };
                for record in &data.fields {
                    let mut draft = Draft::default();
                    for (field, value) in record {
                        draft.set(of_ipfix_field(*field), value);
                    }
                    let values = draft.finish(None, message.header.export_time);
                    values.into_iter().for_each(&mut each);
                }
            }
        }
        other => panic!("a version that no message has: {other:?}"),
    }
}

/// Time at which an exporter was started.
#[derive(Clone, Copy)]
struct BootTime {
    time_ns: u64,
}

impl BootTime {
    /// Computes the time from the header of a message.
    fn new(unix_seconds: u32, unix_nanos: u32, uptime_ms: u32) -> Self {
        let time_ns = u64::from(unix_seconds) * NANOS_PER_SECOND + u64::from(unix_nanos);
        Self { time_ns: time_ns - u64::from(uptime_ms) * NANOS_PER_MILLISECOND }
    }

    fn time_ns(self, uptime_ms: u64) -> u64 {
        self.time_ns + uptime_ms * NANOS_PER_MILLISECOND
    }
}

fn of_netflow5(header: &V5Header, record: &V5Record) -> Values {
    let boot_time = BootTime::new(header.unix_secs, header.unix_nsecs, header.sys_up_time);
    let mut draft = Draft {
        source_port: Some(record.src_port),
        destination_port: Some(record.dst_port),
        ..Draft::default()
    };
    draft.values = Values {
        source: Some(record.src_addr.into()),
        destination: Some(record.dst_addr.into()),
        protocol: record.protocol_number,
        forward: Counts {
            packet_count: record.d_pkts.into(),
            octet_count: record.d_octets.into(),
            tcp_flags: record.tcp_flags.into(),
        },
        start_ns: boot_time.time_ns(record.first.into()),
        end_ns: boot_time.time_ns(record.last.into()),
        ..Values::default()
    };
    draft.finish(None, 0).expect("a record with addresses")
}

/// Meaning of a field.
#[derive(Clone, Copy)]
enum Element {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    IcmpType,
    IcmpCode,
    IcmpTypeCode,
    Protocol,
    PacketCount,
    OctetCount,
    TcpFlags,
    ReversePacketCount,
    ReverseOctetCount,
    ReverseTcpFlags,
    Start,
    End,
    StartUptime,
    EndUptime,
    StartAge,
    EndAge,
    DurationMilliseconds,
    DurationMicroseconds,
    InitTime,
    Other,
}

fn of_ipfix_field(field: IPFixField) -> Element {
    use IANAIPFixField as Iana;
    match field {
        IPFixField::IANA(field) => match field {
            Iana::SourceIpv4address | Iana::SourceIpv6address => Element::Source,
            Iana::DestinationIpv4address | Iana::DestinationIpv6address => Element::Destination,
            Iana::SourceTransportPort => Element::SourcePort,
            Iana::DestinationTransportPort => Element::DestinationPort,
            Iana::IcmpTypeIpv4 | Iana::IcmpTypeIpv6 => Element::IcmpType,
            Iana::IcmpCodeIpv4 | Iana::IcmpCodeIpv6 => Element::IcmpCode,
            Iana::IcmpTypeCodeIpv4 | Iana::IcmpTypeCodeIpv6 => Element::IcmpTypeCode,
            Iana::ProtocolIdentifier => Element::Protocol,
            Iana::PacketDeltaCount | Iana::PacketTotalCount => Element::PacketCount,
            Iana::OctetDeltaCount | Iana::OctetTotalCount => Element::OctetCount,
            Iana::TcpControlBits => Element::TcpFlags,
            Iana::FlowStartSeconds
            | Iana::FlowStartMilliseconds
            | Iana::FlowStartMicroseconds
            | Iana::FlowStartNanoseconds => Element::Start,
            Iana::FlowEndSeconds
            | Iana::FlowEndMilliseconds
            | Iana::FlowEndMicroseconds
            | Iana::FlowEndNanoseconds => Element::End,
            Iana::FlowStartSysUpTime => Element::StartUptime,
            Iana::FlowEndSysUpTime => Element::EndUptime,
            Iana::FlowStartDeltaMicroseconds => Element::StartAge,
            Iana::FlowEndDeltaMicroseconds => Element::EndAge,
            Iana::FlowDurationMilliseconds => Element::DurationMilliseconds,
            Iana::FlowDurationMicroseconds => Element::DurationMicroseconds,
            Iana::SystemInitTimeMilliseconds => Element::InitTime,
            _ => Element::Other,
        },
        IPFixField::ReverseInformationElement(field) => match field {
            ReverseInformationElement::ReversePacketDeltaCount => Element::ReversePacketCount,
            ReverseInformationElement::ReverseOctetDeltaCount => Element::ReverseOctetCount,
            ReverseInformationElement::ReverseTcpControlBits => Element::ReverseTcpFlags,
            _ => Element::Other,
        },
        _ => Element::Other,
    }
}

fn of_netflow9_field(field: V9Field) -> Element {
    match field {
        V9Field::Ipv4SrcAddr | V9Field::Ipv6SrcAddr => Element::Source,
        V9Field::Ipv4DstAddr | V9Field::Ipv6DstAddr => Element::Destination,
        V9Field::L4SrcPort => Element::SourcePort,
        V9Field::L4DstPort => Element::DestinationPort,
        V9Field::Protocol => Element::Protocol,
        V9Field::InPkts => Element::PacketCount,
        V9Field::InBytes => Element::OctetCount,
        V9Field::TcpFlags => Element::TcpFlags,
        V9Field::FirstSwitched => Element::StartUptime,
        V9Field::LastSwitched => Element::EndUptime,
        V9Field::FlowStartMilliseconds => Element::Start,
        V9Field::FlowEndMilliseconds => Element::End,
        _ => Element::Other,
    }
}

/// Values of a data record, some of which refer to others or to the message.
#[derive(Default)]
struct Draft {
    values: Values,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    icmp_type: Option<u8>,
    icmp_code: Option<u8>,
    uptimes_ms: [Option<u64>; 2],
    ages_us: [Option<u64>; 2],
    duration_ns: Option<u64>,
    init_time_ns: Option<u64>,
}

impl Draft {
    #[inline]
    fn set(&mut self, element: Element, value: &FieldValue) {
        let Self { values, .. } = self;
        match element {
            Element::Source => values.source = address(value),
            Element::Destination => values.destination = address(value),
            Element::SourcePort => self.source_port = Some(number(value) as u16),
            Element::DestinationPort => self.destination_port = Some(number(value) as u16),
            Element::IcmpType => self.icmp_type = Some(number(value) as u8),
            Element::IcmpCode => self.icmp_code = Some(number(value) as u8),
            Element::IcmpTypeCode => {
                let [icmp_type, icmp_code] = (number(value) as u16).to_be_bytes();
                (self.icmp_type, self.icmp_code) = (Some(icmp_type), Some(icmp_code));
            }
            Element::Protocol => values.protocol = number(value) as u8,
            Element::PacketCount => values.forward.packet_count = number(value),
            Element::OctetCount => values.forward.octet_count = number(value),
            Element::TcpFlags => values.forward.tcp_flags = number(value) as u16,
            Element::ReversePacketCount => values.reverse.packet_count = number(value),
            Element::ReverseOctetCount => values.reverse.octet_count = number(value),
            Element::ReverseTcpFlags => values.reverse.tcp_flags = number(value) as u16,
            Element::Start => values.start_ns = time_ns(value),
            Element::End => values.end_ns = time_ns(value),
            Element::StartUptime => self.uptimes_ms[0] = Some(uptime_ms(value)),
            Element::EndUptime => self.uptimes_ms[1] = Some(uptime_ms(value)),
            Element::StartAge => self.ages_us[0] = Some(number(value)),
            Element::EndAge => self.ages_us[1] = Some(number(value)),
            Element::DurationMilliseconds => self.duration_ns = Some(time_ns(value)),
            Element::DurationMicroseconds => self.duration_ns = Some(number(value) * 1000),
            Element::InitTime => self.init_time_ns = Some(time_ns(value)),
            Element::Other => {}
        }
    }

    /// Completes the values; `None` without addresses.
    #[inline]
    fn finish(self, boot_time: Option<BootTime>, export_seconds: u32) -> Option<Values> {
        let Self { mut values, source_port, destination_port, .. } = self;
        if values.source.is_none() || values.destination.is_none() {
            return None;
        }
        let protocol = IpProtocol(values.protocol);
        if protocol.has_ports() && (source_port.is_some() || destination_port.is_some()) {
            values.ports = Some((source_port.unwrap_or_default(), destination_port.unwrap_or_default()));
        }
        if matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6) {
            let in_port = destination_port.map(|port| port.to_be_bytes().into());
            values.icmp = self.icmp_type.zip(self.icmp_code).or(in_port);
        }
        let init_time = self.init_time_ns.map(|time_ns| BootTime { time_ns });
        let export_ns = u64::from(export_seconds) * NANOS_PER_SECOND;
        let times = [&mut values.start_ns, &mut values.end_ns];
        for ((time, uptime_ms), age_us) in times.into_iter().zip(self.uptimes_ms).zip(self.ages_us) {
            if let Some((boot_time, uptime_ms)) = boot_time.or(init_time).zip(uptime_ms) {
                *time = without_wraps(boot_time.time_ns(uptime_ms), export_ns);
            }
            if let Some(age_us) = age_us {
                *time = export_ns - age_us * 1000;
            }
        }
        if let Some(duration_ns) = self.duration_ns {
            values.end_ns = values.start_ns + duration_ns;
        }
        Some(values)
    }
}

fn address(value: &FieldValue) -> Option<IpAddr> {
    Some(IpAddr::try_from(value).expect("an address"))
}

#[inline]
fn number(value: &FieldValue) -> u64 {
    match value {
        // Lengths for which netflow_parser has no type, such as five octets, remain octets.
        FieldValue::DataNumber(DataNumber::Vec(octets)) | FieldValue::Vec(octets) => {
            octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
        }
        FieldValue::DataNumber(number) => number.as_u64().expect("an unsigned number"),
        FieldValue::ProtocolType(protocol) => u8::from(*protocol).into(),
        FieldValue::TcpControlBits(bits, _) => u16::from(*bits).into(),
        other => panic!("not a number: {other:?}"),
    }
}

/// Returns a time of NetFlow version 9, which is a duration, or of IPFIX, which is a number.
fn uptime_ms(value: &FieldValue) -> u64 {
    match value {
        FieldValue::Duration(uptime) => uptime.as_duration().as_millis() as u64,
        value => number(value),
    }
}

#[inline]
fn time_ns(value: &FieldValue) -> u64 {
    let FieldValue::Duration(time) = value else { panic!("not a time: {value:?}") };
    match *time {
        DurationValue::Seconds { value, .. } => value * NANOS_PER_SECOND,
        DurationValue::Millis { value, .. } => value * NANOS_PER_MILLISECOND,
        // `as_duration` rounds down to microseconds, which are coarser than the fields.
        DurationValue::MicrosNtp { seconds, fraction } => {
            ntp_seconds_ns(seconds) + whole_microsecond_ns(fraction).unwrap_or(fraction_ns(fraction))
        }
        DurationValue::NanosNtp { seconds, fraction } => ntp_seconds_ns(seconds) + fraction_ns(fraction),
    }
}

/// Adds the wraps of an uptime of 32 bits, after 49.7 days each, that took place before a message was exported.
fn without_wraps(time_ns: u64, export_ns: u64) -> u64 {
    const WRAP_NS: u64 = NANOS_PER_MILLISECOND << 32;
    let wrap_count = (export_ns + WRAP_NS / 2).saturating_sub(time_ns) / WRAP_NS;
    time_ns + wrap_count * WRAP_NS
}

fn ntp_seconds_ns(seconds: u32) -> u64 {
    u64::from(seconds) * NANOS_PER_SECOND - NTP_TO_UNIX_NS
}

fn fraction_ns(fraction: u32) -> u64 {
    (u64::from(fraction) * NANOS_PER_SECOND) >> 32
}

/// Returns the whole number of microseconds that an exporter writes as this fraction of a second, whose lowest eleven
/// bits are ignored (RFC 7011 section 6.1.9), in nanoseconds; `None` if there is none.
fn whole_microsecond_ns(fraction: u32) -> Option<u64> {
    let microsecond = fraction_ns(fraction).div_ceil(1000);
    let written = ((microsecond << 32) / 1_000_000) & !0x07ff;
    (written == u64::from(fraction)).then_some(microsecond * 1000)
}
