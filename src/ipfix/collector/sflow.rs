//! sFlow version 5: datagrams with samples of packets (the specification of sFlow.org, version 5, section 5).

use std::net::IpAddr;

use super::CollectorStats;
use super::template::finish_icmp;
use crate::base::{IpProtocol, LinkType, TcpFlags, Timestamp};
use crate::codec::{ReadError, Reader};
use crate::record::{Draft, FieldSet, FlowRecord, field_set};

/// Version number of a datagram.
pub(super) const VERSION: u32 = 5;

/// Formats of samples, of which the enterprise number is zero.
mod sample {
    pub(super) const FLOW: u32 = 1;
    pub(super) const COUNTERS: u32 = 2;
    pub(super) const EXPANDED_FLOW: u32 = 3;
    pub(super) const EXPANDED_COUNTERS: u32 = 4;
}

/// Formats of the data in a flow sample, of which the enterprise number is zero.
mod data {
    pub(super) const HEADER: u32 = 1;
    pub(super) const IPV4: u32 = 3;
    pub(super) const IPV6: u32 = 4;
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
]);

/// A datagram with its header.
pub(super) struct Datagram<'a> {
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
    pub(super) interface: u32,
    pub(super) interval: u32,
}

/// Content of a flow sample.
pub(super) enum Sample<'a> {
    Packet(Sampled<'a>),
    /// A record of one packet.
    Record,
}

impl<'a> Datagram<'a> {
    /// Parses the header of a datagram behind its version; `None` if it is truncated or invalid.
    pub(super) fn parse(mut reader: Reader<'a>) -> Option<Self> {
        let address_len = match reader.be::<u32>().ok()? {
            1 => 4,
            2 => 16,
            _ => return None,
        };
        let _agent = reader.bytes(address_len).ok()?;
        let sub_agent = reader.be::<u32>().ok()?;
        let sequence_number = reader.be::<u32>().ok()?;
        let _uptime_ms = reader.be::<u32>().ok()?;
        let sample_count = reader.be::<u32>().ok()?;
        Some(Self { sub_agent, sequence_number, sample_count, samples: reader })
    }

    /// Decodes all samples, and emits the packets; `draft` has the record of a [`Sample::Record`]. Returns `None` if a
    /// length contradicts the datagram. Linear in the octets of the datagram.
    pub(super) fn samples(
        mut self,
        now: Timestamp,
        stats: &mut CollectorStats,
        mut emit: impl FnMut(Sample<'a>, &mut Draft, &mut CollectorStats),
    ) -> Option<()> {
        let mut draft = Draft::new();
        for _ in 0..self.sample_count {
            let format = self.samples.be::<u32>().ok()?;
            let len = self.samples.be::<u32>().ok()?;
            let body = Reader::new(self.samples.bytes(len as usize).ok()?);
            match format {
                sample::FLOW | sample::EXPANDED_FLOW => {
                    let sample = flow_sample(body, format == sample::EXPANDED_FLOW, now, &mut draft).ok()?;
                    match sample {
                        Some(sample) => emit(sample, &mut draft, stats),
                        None => stats.unsupported_packet_count += 1,
                    }
                }
                sample::COUNTERS | sample::EXPANDED_COUNTERS => stats.counter_sample_count += 1,
                // Formats of vendors are skipped.
                _ => {}
            }
        }
        Some(())
    }
}

/// Decodes a flow sample; `None` for one without data of a known format.
fn flow_sample<'a>(
    mut body: Reader<'a>,
    is_expanded: bool,
    now: Timestamp,
    draft: &mut Draft,
) -> Result<Option<Sample<'a>>, ReadError> {
    const INTERFACE_MASK: u32 = 0x3fff_ffff;
    let _sequence_number: u32 = body.be()?;
    // Type and index of the source of the sample, in one word or in two.
    body.skip(if is_expanded { 8 } else { 4 })?;
    let interval: u32 = body.be()?;
    // Number of packets that could have been sampled, and of samples that the agent dropped.
    body.skip(8)?;
    let interface = if is_expanded {
        let _format: u32 = body.be()?;
        let input: u32 = body.be()?;
        body.skip(8)?;
        input
    } else {
        let input: u32 = body.be()?;
        let _output: u32 = body.be()?;
        input & INTERFACE_MASK
    };
    let mut found = None;
    for _ in 0..body.be::<u32>()? {
        let format: u32 = body.be()?;
        let len: u32 = body.be()?;
        let mut data = Reader::new(body.bytes(len as usize)?);
        match format {
            data::HEADER => {
                if let Some((link_type, octets, wire_len)) = header(&mut data)? {
                    return Ok(Some(Sample::Packet(Sampled {
                        link_type,
                        octets,
                        wire_len,
                        interface,
                        interval,
                    })));
                }
            }
            data::IPV4 | data::IPV6 => {
                addresses(&mut data, format == data::IPV6, draft)?;
                draft.record.interface = interface;
                draft.record.sampling_interval = Some(interval);
                (draft.record.start, draft.record.end) = (now, now);
                found = Some(Sample::Record);
            }
            _ => {}
        }
    }
    Ok(found)
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

/// Sets the fields of a record to those of a packet.
fn addresses(data: &mut Reader<'_>, is_ipv6: bool, draft: &mut Draft) -> Result<(), ReadError> {
    *draft = Draft::new();
    let len: u32 = data.be()?;
    let protocol: u32 = data.be()?;
    let mut address = || -> Result<IpAddr, ReadError> {
        Ok(if is_ipv6 { data.array::<16>()?.into() } else { data.array::<4>()?.into() })
    };
    draft.source.0 = Some(address()?);
    draft.destination.0 = Some(address()?);
    let [source_port, destination_port, flags, traffic_class] =
        [data.be::<u32>()?, data.be()?, data.be()?, data.be()?];
    draft.protocol = IpProtocol(protocol as u8);
    draft.source.1 = Some(source_port as u16);
    draft.destination.1 = Some(destination_port as u16);
    let record: &mut FlowRecord = &mut draft.record;
    record.forward.counters.packet_count = 1;
    record.forward.counters.ip_octet_count = len.into();
    record.forward.tcp_flags = TcpFlags(flags as u16 & 0x0fff);
    record.forward.dscp = Some(traffic_class as u8 >> 2);
    record.known = FIELDS;
    finish_icmp(draft, false);
    Ok(())
}
