//! Packets that exporters sample: data records with a section of a packet (RFC 5477 section 8.5).

use std::net::IpAddr;

use ahash::RandomState;

use super::field::{Specifier, field, unsigned};
use super::sampling::{Sampling, SamplingElement};
use super::times::AbsoluteUnit;
use crate::base::{Frame, LinkType, Timestamp};
use crate::codec::{ReadError, Reader};
use crate::wire::{ip, ipv4, ipv6};

/// The beginning of a packet that an exporter sampled.
#[derive(Clone, Copy, Debug)]
pub struct SampledPacket<'a> {
    /// The octets of the packet, for a pipeline. The interface of the frame is a number of the observation point: with
    /// [`Scope::Interface`](crate::decode::extractor::Scope::Interface), different observation points have separate flows.
    pub frame: Frame<'a>,
    /// Origin of the packet.
    pub point: ObservationPoint,
    /// Number of the interface by which the packet leaves the exporter (egressInterface, IPFIX 14), if it is known.
    pub egress_interface: Option<u32>,
    /// Autonomous system of the source (bgpSourceAsNumber, IPFIX 16; extended gateway data of sFlow), if it is known.
    pub source_as: Option<u32>,
    /// Autonomous system of the destination (bgpDestinationAsNumber, IPFIX 17; the last one of the path in sFlow), if it is
    /// known.
    pub destination_as: Option<u32>,
}

/// An interface of an exporter at which packets are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObservationPoint {
    /// Address of the exporter; for sFlow, of the agent.
    pub exporter: IpAddr,
    /// Identifier of the observation domain; for sFlow, of the sub-agent.
    pub domain: u32,
    /// Number of the ingress interface (ingressInterface, IPFIX 10), or 0 if it is not known.
    pub interface: u32,
    /// Number of packets of which one is sampled, if it is known.
    pub sampling_interval: Option<u32>,
    /// VLAN in which the packet arrived, if the exporter states it beside the packet: an agent of sFlow with extended
    /// switch data.
    pub vlan_id: Option<u16>,
}

impl ObservationPoint {
    /// Returns a number for the point, a keyed hash: two points have the same one with a probability of 1 in 2^32.
    pub(super) fn number(&self, keys: &RandomState) -> u32 {
        keys.hash_one(self) as u32
    }
}

/// Elements of data records with a section of a packet.
mod element {
    pub(super) const INGRESS_INTERFACE: u16 = 10;
    pub(super) const EGRESS_INTERFACE: u16 = 14;
    pub(super) const BGP_SOURCE_AS_NUMBER: u16 = 16;
    pub(super) const BGP_DESTINATION_AS_NUMBER: u16 = 17;
    pub(super) const IP_TOTAL_LENGTH: u16 = 224;
    pub(super) const DATA_LINK_FRAME_SIZE: u16 = 312;
    pub(super) const IP_HEADER_PACKET_SECTION: u16 = 313;
    pub(super) const DATA_LINK_FRAME_SECTION: u16 = 315;
    pub(super) const DATA_LINK_FRAME_TYPE: u16 = 408;
    pub(super) const SECTION_OFFSET: u16 = 409;
}

/// Returns whether an element is a section of a packet that begins with a header.
pub(super) const fn is_section(specifier: &Specifier) -> bool {
    specifier.enterprise_number == 0
        && matches!(specifier.id, element::IP_HEADER_PACKET_SECTION | element::DATA_LINK_FRAME_SECTION)
}

/// A data record with a section of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketReport<'a> {
    section: Option<(LinkType, &'a [u8])>,
    frame_len: Option<u64>,
    ip_len: Option<u64>,
    frame_type: Option<u64>,
    offset: Option<u64>,
    time: Option<Timestamp>,
    pub(super) interface: u32,
    pub(super) egress_interface: Option<u32>,
    pub(super) source_as: Option<u32>,
    pub(super) destination_as: Option<u32>,
    pub(super) sampling: Sampling,
}

impl<'a> PacketReport<'a> {
    /// Decodes a record. Linear in the number of fields.
    pub(super) fn decode(reader: &mut Reader<'a>, specifiers: &[Specifier]) -> Result<Self, ReadError> {
        let mut report = Self::default();
        for specifier in specifiers {
            let octets = field(reader, specifier.len)?;
            if specifier.enterprise_number == 0 {
                report.set(specifier.id, octets);
            }
        }
        Ok(report)
    }

    fn set(&mut self, id: u16, octets: &'a [u8]) {
        let system = || unsigned(octets).filter(|number| *number != 0).map(|number| number as u32);
        let time = |unit: AbsoluteUnit| unsigned(octets).map(|value| unit.time(value));
        match id {
            // A section of the link layer is more complete.
            element::DATA_LINK_FRAME_SECTION => self.section = Some((LinkType::ETHERNET, octets)),
            element::IP_HEADER_PACKET_SECTION if self.section.is_none() => {
                self.section = Some((LinkType::RAW, octets));
            }
            element::DATA_LINK_FRAME_SIZE => self.frame_len = unsigned(octets),
            element::DATA_LINK_FRAME_TYPE => self.frame_type = unsigned(octets),
            element::SECTION_OFFSET => self.offset = unsigned(octets),
            element::IP_TOTAL_LENGTH => self.ip_len = unsigned(octets),
            element::EGRESS_INTERFACE => self.egress_interface = unsigned(octets).map(|number| number as u32),
            element::BGP_SOURCE_AS_NUMBER => self.source_as = system(),
            element::BGP_DESTINATION_AS_NUMBER => self.destination_as = system(),
            element::INGRESS_INTERFACE => self.interface = unsigned(octets).unwrap_or_default() as u32,
            // Times of observation, and times of a flow of one packet.
            322 | 150 => self.time = time(AbsoluteUnit::Seconds),
            323 | 152 => self.time = time(AbsoluteUnit::Milliseconds),
            324 | 154 => self.time = time(AbsoluteUnit::NtpMicroseconds),
            325 | 156 => self.time = time(AbsoluteUnit::NtpNanoseconds),
            _ => {
                if let Some(element) = SamplingElement::of_id(id) {
                    self.sampling.set(element, octets);
                }
            }
        }
    }

    /// Returns the frame, without the number of its interface; its time is `export_time` if the record has none. Returns `None` for a section that does not
    /// begin with the first header, and for a link layer that is not supported.
    pub(super) fn frame(&self, export_time: Timestamp) -> Option<Frame<'a>> {
        const ETHERNET: u64 = 1;
        const IEEE802_11: u64 = 2;
        let (section_type, data) = self.section.filter(|_| matches!(self.offset, None | Some(0)))?;
        let link_type = match (section_type, self.frame_type) {
            (LinkType::RAW, _) | (_, None | Some(ETHERNET)) => section_type,
            (_, Some(IEEE802_11)) => LinkType::IEEE802_11,
            _ => return None,
        };
        let stated_len =
            if link_type == LinkType::RAW { self.ip_len.or(ip_len(data)) } else { self.frame_len };
        let len = stated_len.and_then(|len| u32::try_from(len).ok()).unwrap_or_default();
        let wire_len = len.max(data.len() as u32);
        let timestamp = self.time.unwrap_or(export_time);
        (!data.is_empty()).then_some(Frame { timestamp, link_type, data, wire_len, interface: 0 })
    }
}

/// Returns the length of an IP packet in octets according to its header.
fn ip_len(data: &[u8]) -> Option<u64> {
    let len =
        if ip::is_ipv6(data) { ipv6::HEADER_LEN + ipv6::payload_len(data)? } else { ipv4::total_len(data)? };
    Some(len as u64)
}
