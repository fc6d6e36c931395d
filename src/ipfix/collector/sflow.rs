//! sFlow version 5: datagrams with samples of packets (the specification of sFlow.org, version 5, section 5).

use std::net::IpAddr;

use super::CollectorStats;
use super::steps::finish_icmp;
use crate::base::{IpProtocol, LinkType, TcpFlags, Timestamp, VlanIds};
use crate::codec::{ReadError, Reader};
use crate::record::{Draft, EXPORTED, FieldSet, FlowRecord, field_set};

/// Version number of a datagram.
pub(super) const VERSION: u32 = 5;

/// Formats of samples, of which the enterprise number is zero.
mod sample {
    pub(super) const FLOW: u32 = 1;
    pub(super) const COUNTERS: u32 = 2;
    pub(super) const EXPANDED_FLOW: u32 = 3;
    pub(super) const EXPANDED_COUNTERS: u32 = 4;
    /// Notification of a packet that the device discarded (sFlow Dropped Packet Notification Structures).
    pub(super) const DISCARDED_PACKET: u32 = 5;
}

/// Formats of the data in a flow sample, of which the enterprise number is zero.
mod data {
    pub(super) const HEADER: u32 = 1;
    pub(super) const IPV4: u32 = 3;
    pub(super) const IPV6: u32 = 4;
    /// VLAN ids and priorities of the packet in the switch.
    pub(super) const EXTENDED_SWITCH: u32 = 1001;
    /// Autonomous systems on the path of the packet.
    pub(super) const EXTENDED_GATEWAY: u32 = 1003;
}

/// Fields of the record of a packet whose addresses and ports an agent sent instead of its header.
const FIELDS: FieldSet = field_set(&[
    "protocol",
    "source_address",
    "source_port",
    "destination_address",
    "destination_port",
    "start",
    "end",
    "duration",
    "packet_count",
    "ip_octet_count",
    "tcp_flags",
    "dscp",
    "community_id",
    "interface",
    "sampling_interval",
])
.union(EXPORTED);

/// A datagram with its header.
pub(super) struct Datagram<'a> {
    /// Address that identifies the agent; relays forward datagrams of many agents.
    pub(super) agent: IpAddr,
    /// Identifier of the part of the agent that sent the datagram.
    pub(super) sub_agent: u32,
    pub(super) sequence_number: u32,
    sample_count: u32,
    samples: Reader<'a>,
}

/// A packet of a flow sample.
pub(super) struct Sampled<'a> {
    pub(super) link_type: LinkType,
    pub(super) octets: &'a [u8],
    pub(super) wire_len: u32,
    pub(super) place: Place,
}

/// Path of a sampled packet through the device, and the sampling interval.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) interface: u32,
    pub(super) egress_interface: Option<u32>,
    pub(super) interval: u32,
    /// VLAN in which the packet arrived, if it is known.
    pub(super) vlan_id: Option<u16>,
    pub(super) systems: Systems,
}

/// Autonomous systems of the source and the destination of a packet, if they are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Systems {
    pub(super) source: Option<u32>,
    pub(super) destination: Option<u32>,
}

/// Addresses and ports of a packet, which an agent sent instead of its header.
pub(super) struct Described {
    len: u32,
    protocol: IpProtocol,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    tcp_flags: TcpFlags,
    traffic_class: u8,
}

/// Content of a flow sample.
pub(super) enum Sample<'a> {
    Packet(Sampled<'a>),
    /// A record of one packet.
    Record(Described, Place),
}

impl<'a> Datagram<'a> {
    /// Parses the header of a datagram behind its version; `None` if it is truncated or invalid.
    pub(super) fn parse(mut reader: Reader<'a>) -> Option<Self> {
        let agent: IpAddr = match reader.be::<u32>().ok()? {
            1 => reader.array::<4>().ok()?.into(),
            2 => reader.array::<16>().ok()?.into(),
            _ => return None,
        };
        let sub_agent = reader.be::<u32>().ok()?;
        let sequence_number = reader.be::<u32>().ok()?;
        let _uptime_ms = reader.be::<u32>().ok()?;
        let sample_count = reader.be::<u32>().ok()?;
        Some(Self { agent, sub_agent, sequence_number, sample_count, samples: reader })
    }

    /// Decodes all samples, and emits the packets. Returns `None` if a length contradicts the datagram. Linear in the octets
    /// of the datagram.
    pub(super) fn samples(
        mut self,
        stats: &mut CollectorStats,
        mut emit: impl FnMut(Sample<'a>, &mut CollectorStats),
    ) -> Option<()> {
        for _ in 0..self.sample_count {
            let format = self.samples.be::<u32>().ok()?;
            let len = self.samples.be::<u32>().ok()?;
            let body = Reader::new(self.samples.bytes(len as usize).ok()?);
            match format {
                sample::FLOW | sample::EXPANDED_FLOW => {
                    match flow_sample(body, format == sample::EXPANDED_FLOW, stats).ok()? {
                        Some(sample) => emit(sample, stats),
                        None => stats.unsupported_packet_count += 1,
                    }
                }
                sample::COUNTERS | sample::EXPANDED_COUNTERS => stats.counter_sample_count += 1,
                sample::DISCARDED_PACKET => stats.discarded_packet_count += 1,
                // Such as formats of vendors.
                _ => stats.skipped_sample_count += 1,
            }
        }
        Some(())
    }
}

/// Decodes a flow sample; `None` for one without data of a known format.
fn flow_sample<'a>(
    mut body: Reader<'a>,
    is_expanded: bool,
    stats: &mut CollectorStats,
) -> Result<Option<Sample<'a>>, ReadError> {
    const INTERFACE_MASK: u32 = 0x3fff_ffff;
    const FORMAT_SHIFT: u32 = 30;
    let _sequence_number: u32 = body.be()?;
    // Type and index of the source of the sample, in one word or in two.
    body.skip(if is_expanded { 8 } else { 4 })?;
    let interval: u32 = body.be()?;
    // Number of packets that could have been sampled, and of samples that the agent dropped.
    body.skip(8)?;
    let mut interface = || -> Result<(u32, u32), ReadError> {
        Ok(if is_expanded {
            (body.be()?, body.be()?)
        } else {
            let word: u32 = body.be()?;
            (word >> FORMAT_SHIFT, word & INTERFACE_MASK)
        })
    };
    let ((_, interface), (egress_format, egress)) = (interface()?, interface()?);
    // Other formats are the reason for which a packet was discarded, and the number of several interfaces.
    let is_interface = egress_format == 0 && !matches!(egress, 0 | INTERFACE_MASK | u32::MAX);
    let egress_interface = is_interface.then_some(egress);
    let systems = Systems::default();
    let mut place = Place { interface, egress_interface, interval, vlan_id: None, systems };
    let (mut packet, mut described) = (None, None);
    for _ in 0..body.be::<u32>()? {
        let format: u32 = body.be()?;
        let len: u32 = body.be()?;
        let mut data = Reader::new(body.bytes(len as usize)?);
        match format {
            data::HEADER if packet.is_none() => packet = header(&mut data)?,
            data::IPV4 | data::IPV6 if described.is_none() => {
                described = Some(addresses(&mut data, format == data::IPV6)?);
            }
            data::EXTENDED_SWITCH => place.vlan_id = vlan_id(&mut data)?,
            data::EXTENDED_GATEWAY => place.systems = systems_of(&mut data)?,
            data::HEADER | data::IPV4 | data::IPV6 => {}
            _ => stats.skipped_data_count += 1,
        }
    }
    Ok(match (packet, described) {
        (Some((link_type, octets, wire_len)), _) => {
            Some(Sample::Packet(Sampled { link_type, octets, wire_len, place }))
        }
        (None, Some(described)) => Some(Sample::Record(described, place)),
        (None, None) => None,
    })
}

/// Decodes the VLAN in which a packet arrived; `None` if it is not known.
fn vlan_id(data: &mut Reader<'_>) -> Result<Option<u16>, ReadError> {
    const ID_MAX: u32 = 4094;
    let id: u32 = data.be()?;
    Ok((1..=ID_MAX).contains(&id).then_some(id as u16))
}

/// Decodes the autonomous systems on the path of a packet. That of the destination is the last one of the path; a set of
/// several has none. Communities and the preference follow, which are not read.
fn systems_of(data: &mut Reader<'_>) -> Result<Systems, ReadError> {
    const IPV4: u32 = 1;
    const IPV6: u32 = 2;
    const SEQUENCE: u32 = 2;
    // Address of the next hop, of which only the type is sent if it is not known.
    match data.be::<u32>()? {
        IPV4 => data.skip(4)?,
        IPV6 => data.skip(16)?,
        _ => {}
    }
    let _own: u32 = data.be()?;
    let source: u32 = data.be()?;
    let _peer_of_source: u32 = data.be()?;
    let mut destination = None;
    for _ in 0..data.be::<u32>()? {
        let kind: u32 = data.be()?;
        let (count, mut last) = (data.be::<u32>()?, None);
        for _ in 0..count {
            last = Some(data.be::<u32>()?);
        }
        destination = last.filter(|_| kind == SEQUENCE || count == 1);
    }
    // The number 0 is reserved (RFC 7607), and sent for a source that is not known.
    let known = |number: &u32| *number != 0;
    Ok(Systems { source: Some(source).filter(known), destination: destination.filter(known) })
}

/// Link type, octets, and length on the wire of the beginning of a packet.
type Header<'a> = (LinkType, &'a [u8], u32);

/// Decodes the header of a packet; `None` for a link type that is not supported.
fn header<'a>(data: &mut Reader<'a>) -> Result<Option<Header<'a>>, ReadError> {
    const ETHERNET: u32 = 1;
    const PPP: u32 = 7;
    const IPV4: u32 = 11;
    const IPV6: u32 = 12;
    let link_type = match data.be::<u32>()? {
        ETHERNET => LinkType::ETHERNET,
        PPP => LinkType::PPP,
        IPV4 | IPV6 => LinkType::RAW,
        _ => return Ok(None),
    };
    let frame_len: u32 = data.be()?;
    // Such as the frame check sequence.
    let stripped_len: u32 = data.be()?;
    let len: u32 = data.be()?;
    let octets = data.bytes(len as usize)?;
    let wire_len = frame_len.saturating_sub(stripped_len).max(len);
    Ok((!octets.is_empty()).then_some((link_type, octets, wire_len)))
}

/// Decodes the addresses and ports of a packet.
fn addresses(data: &mut Reader<'_>, is_ipv6: bool) -> Result<Described, ReadError> {
    let len: u32 = data.be()?;
    let protocol: u32 = data.be()?;
    let mut address = || -> Result<IpAddr, ReadError> {
        Ok(if is_ipv6 { data.array::<16>()?.into() } else { data.array::<4>()?.into() })
    };
    let (source, destination) = (address()?, address()?);
    let [source_port, destination_port, flags, traffic_class] =
        [data.be::<u32>()?, data.be()?, data.be()?, data.be()?];
    Ok(Described {
        len,
        protocol: IpProtocol(protocol as u8),
        source: (source, source_port as u16),
        destination: (destination, destination_port as u16),
        tcp_flags: TcpFlags(flags as u16 & 0x0fff),
        traffic_class: traffic_class as u8,
    })
}

impl Described {
    /// Sets the fields of a record to those of the packet, which arrived at the time `now`.
    pub(super) fn fill(&self, place: Place, draft: &mut Draft, now: Timestamp) {
        draft.restart();
        draft.source = (Some(self.source.0), Some(self.source.1));
        draft.destination = (Some(self.destination.0), Some(self.destination.1));
        draft.protocol = self.protocol;
        let exported = draft.exported();
        exported.egress_interface = place.egress_interface;
        (exported.source_as, exported.destination_as) = (place.systems.source, place.systems.destination);
        let record: &mut FlowRecord = &mut draft.record;
        record.forward.counters.packet_count = 1;
        record.forward.counters.ip_octet_count = self.len.into();
        record.forward.tcp_flags = self.tcp_flags;
        record.forward.dscp = Some(self.traffic_class >> 2);
        record.interface = place.interface;
        record.sampling_interval = Some(place.interval);
        (record.start, record.end) = (now, now);
        record.known = FIELDS;
        if let Some(id) = place.vlan_id {
            record.forward.vlan_ids = VlanIds::NONE.push(id);
            record.known = record.known.union(const { field_set(&["vlan_ids"]) });
        }
        record.complete_counts();
        finish_icmp(draft, false);
    }
}
