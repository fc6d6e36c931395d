//! Conversion between Ethernet frames and IP packets, in place, for programs on TAP and TUN devices.

use std::fmt;

use super::ethernet_header::EthernetHeader;
use crate::base::{EtherType, IpProtocol, Layer, Limits, ParseError, ParseErrorKind};
use crate::decode::link::Unsupported;
use crate::wire::ethernet::{self, Ethernet};
use crate::wire::ip;
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};
use crate::wire::ipv6_extension::Extension;

/// Reason why a frame yields no IP packet, with the same three cases as
/// [`Decapsulated`](crate::decode::link::Decapsulated).
///
/// 20 octets, `Copy`, without heap allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotIp {
    /// A valid frame with a payload other than IP: ARP, LLDP, MPLS, IEEE 802.3 with a length.
    Unsupported(Unsupported),
    /// The octets of the frame end before the end of a header.
    Truncated(ParseError),
    /// A header is inconsistent, or a length field exceeds the octets present.
    Malformed(ParseError),
}

impl fmt::Display for NotIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => write!(f, "the frame contains no IP packet: {what}"),
            Self::Truncated(error) | Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotIp {}

/// Reason why no Ethernet frame could be built around an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoFrame {
    /// The headroom before the packet is too small for the Ethernet header.
    Headroom {
        /// Length of the Ethernet header in octets.
        need: usize,
        /// Number of octets before the packet.
        have: usize,
    },
    /// The buffer contains no IP packet at the given offset.
    NotIp(NotIp),
}

impl fmt::Display for NoFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headroom { need, have } => {
                write!(
                    f,
                    "the Ethernet header needs {need} octets in front of the packet, but only {have} are available"
                )
            }
            Self::NotIp(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for NoFrame {}

impl From<NotIp> for NoFrame {
    fn from(why: NotIp) -> Self {
        Self::NotIp(why)
    }
}

/// Returns the IP packet in an Ethernet frame, as a slice of the frame: no copy, no allocation, constant time
/// except for a bounded stack of VLAN tags.
///
/// Selects the protocol by the EtherType behind up to eight VLAN tags (802.1Q, 802.1ad, 0x9100), and checks
/// the version, the header length and the total length (RFC 791 section 3.1, RFC 8200 section 3, RFC 2675 for
/// a payload length of zero) against the frame, which must be complete: a total length beyond its end is
/// malformed. The slice ends at the end of the packet, without padding and frame check sequence. Not checked:
/// IP options and extension headers, the header checksum, the addresses of the frame (the caller knows which
/// of them to accept).
///
/// ```
/// use flowgauge::decode::link::Unsupported;
/// use flowgauge::tap::{NotIp, ethernet_to_ip};
///
/// let mut frame = [0; 60];
/// frame[12..14].copy_from_slice(&[0x08, 0x00]);
/// frame[14..18].copy_from_slice(&[0x45, 0, 0, 28]);
/// assert_eq!(ethernet_to_ip(&frame).map(<[u8]>::len), Ok(28));
///
/// frame[13] = 0x06;
/// assert!(matches!(ethernet_to_ip(&frame), Err(NotIp::Unsupported(Unsupported::EtherType(arp))) if arp.0 == 0x0806));
/// ```
///
/// # Errors
///
/// Returns a [`NotIp`] that distinguishes another payload, a truncated frame and inconsistent headers; its
/// offsets count from the start of the frame.
#[inline]
pub fn ethernet_to_ip(frame: &[u8]) -> Result<&[u8], NotIp> {
    let (Some(header), Some(rest)) = (Ethernet::read(frame), frame.get(ethernet::HEADER_LEN..)) else {
        return Err(truncated(Layer::Ethernet, 0, ethernet::HEADER_LEN, frame.len()));
    };
    match header.ether_type() {
        EtherType::IPV4 => ipv4(rest, ethernet::HEADER_LEN),
        EtherType::IPV6 => ipv6(rest, ethernet::HEADER_LEN),
        other => behind_tags(rest, other),
    }
}

/// Writes an Ethernet header into the headroom of a packet and returns the frame, which lies in the same
/// buffer.
///
/// The packet begins at `offset` of `buffer` and ends according to its own length fields; octets behind it
/// are unchanged. Its first four bits select the EtherType, and version and lengths are checked as in
/// [`ethernet_to_ip`]. No copy of the packet, no allocation, constant time. The frame is not padded to the 60
/// octets of IEEE 802.3, because devices do that.
///
/// ```
/// use flowgauge::base::VlanIds;
/// use flowgauge::tap::{EthernetHeader, NoFrame, ethernet_to_ip, ip_to_ethernet};
///
/// let header = EthernetHeader::new([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], VlanIds::NONE.push(42));
/// let mut buffer = [0; 1536];
/// let offset = EthernetHeader::LEN_MAX; // where the packet is read to
/// buffer[offset..offset + 4].copy_from_slice(&[0x45, 0, 0, 28]);
/// let frame = ip_to_ethernet(&mut buffer, offset, &header)?;
/// assert_eq!(frame.len(), 18 + 28);
/// assert_eq!(frame[12..18], [0x81, 0, 0, 42, 0x08, 0]);
/// assert_eq!(ethernet_to_ip(frame)?.len(), 28);
/// # Ok::<(), NoFrame>(())
/// ```
///
/// # Errors
///
/// Returns [`NoFrame::Headroom`] if `offset` is less than [`EthernetHeader::len`], otherwise
/// [`NoFrame::NotIp`], whose offsets count from the start of the buffer. The buffer is unchanged in case of
/// an error.
#[inline]
pub fn ip_to_ethernet<'b>(
    buffer: &'b mut [u8],
    offset: usize,
    header: &EthernetHeader,
) -> Result<&'b mut [u8], NoFrame> {
    let packet = buffer.get(offset..).unwrap_or_default();
    let (ether_type, len) = match ip::ether_type(packet) {
        Some(EtherType::IPV4) => (EtherType::IPV4, ipv4(packet, offset)?.len()),
        Some(_) => (EtherType::IPV6, ipv6(packet, offset)?.len()),
        None => return Err(no_version(ip::version(packet), offset).into()),
    };
    let need = header.len();
    let insufficient = NoFrame::Headroom { need, have: offset };
    let start = offset.checked_sub(need).ok_or(insufficient)?;
    let frame = buffer.get_mut(start..offset + len).ok_or(insufficient)?;
    header.write(frame, ether_type).ok_or(insufficient)?;
    Ok(frame)
}

/// Skips the VLAN tags after the Ethernet header and returns the IP packet behind them. `ether_type` is the EtherType
/// of the Ethernet header, and `rest` the octets behind it.
#[inline(never)]
fn behind_tags(rest: &[u8], mut ether_type: EtherType) -> Result<&[u8], NotIp> {
    let tag_count_max = Limits::DEFAULT.vlan_tag_count_max as usize;
    let mut rest = rest;
    let mut offset = ethernet::HEADER_LEN;
    let mut tag_count = 0;
    while ethernet::is_vlan(ether_type) {
        tag_count += 1;
        if tag_count > tag_count_max {
            return Err(malformed(
                Layer::Ethernet,
                ParseErrorKind::TooDeep,
                offset,
                tag_count,
                tag_count_max,
            ));
        }
        let (Some(tag), Some(behind)) = (ethernet::vlan_tag(rest), rest.get(ethernet::VLAN_TAG_LEN..)) else {
            return Err(truncated(Layer::Ethernet, offset, ethernet::VLAN_TAG_LEN, rest.len()));
        };
        ether_type = tag.ether_type;
        rest = behind;
        offset += ethernet::VLAN_TAG_LEN;
    }
    match ether_type {
        EtherType::IPV4 => ipv4(rest, offset),
        EtherType::IPV6 => ipv6(rest, offset),
        length if length.0 < ethernet::ETHERTYPE_MIN => Err(NotIp::Unsupported(Unsupported::Ieee8023)),
        other => Err(NotIp::Unsupported(Unsupported::EtherType(other))),
    }
}

/// Returns the IPv4 packet at the start of `data`, without the octets after its end.
#[inline(always)]
fn ipv4(data: &[u8], offset: usize) -> Result<&[u8], NotIp> {
    if let Some(header) = Ipv4::read(data) {
        let (header_len, total_len) = (header.header_len(), header.total_len());
        if header.version() == ipv4::VERSION
            && header_len >= ipv4::HEADER_LEN_MIN
            && header_len <= total_len
            && let Some(packet) = data.get(..total_len)
        {
            return Ok(packet);
        }
    }
    Err(ipv4_error(data, offset))
}

/// Returns the IPv6 packet at the start of `data`, without the octets after its end.
#[inline(always)]
fn ipv6(data: &[u8], offset: usize) -> Result<&[u8], NotIp> {
    if let Some(header) = Ipv6::read(data) {
        let payload_len = header.payload_len();
        if header.version() == ipv6::VERSION
            && payload_len != 0
            && let Some(packet) = data.get(..ipv6::HEADER_LEN + payload_len)
        {
            return Ok(packet);
        }
    }
    ipv6_rare(data, offset)
}

/// Returns the error for the first check of [`ipv4`] that failed, in the order of the fields.
#[cold]
fn ipv4_error(data: &[u8], offset: usize) -> NotIp {
    let bad_length = |need, have| malformed(Layer::Ipv4, ParseErrorKind::BadLength, offset, need, have);
    let Some(version) = ip::version(data) else {
        return truncated(Layer::Ipv4, offset, ipv4::HEADER_LEN_MIN, 0);
    };
    if version != ipv4::VERSION {
        return malformed(Layer::Ipv4, ParseErrorKind::BadVersion, offset, version.into(), 0);
    }
    let header_len = ipv4::header_len(data).unwrap_or_default();
    if header_len < ipv4::HEADER_LEN_MIN {
        return bad_length(header_len, ipv4::HEADER_LEN_MIN);
    }
    match ipv4::total_len(data) {
        Some(total_len) if data.len() >= ipv4::HEADER_LEN_MIN => {
            if total_len < header_len {
                bad_length(header_len, total_len)
            } else {
                bad_length(total_len, data.len())
            }
        }
        _ => truncated(Layer::Ipv4, offset, ipv4::HEADER_LEN_MIN, data.len()),
    }
}

/// Returns an IPv6 packet with a payload length of zero, or the error for a packet that [`ipv6`] does not accept.
#[cold]
fn ipv6_rare(data: &[u8], offset: usize) -> Result<&[u8], NotIp> {
    let Some(version) = ip::version(data) else {
        return Err(truncated(Layer::Ipv6, offset, ipv6::HEADER_LEN, 0));
    };
    if version != ipv6::VERSION {
        return Err(malformed(Layer::Ipv6, ParseErrorKind::BadVersion, offset, version.into(), 0));
    }
    let (Some((header, payload)), Some(payload_len)) =
        (data.split_at_checked(ipv6::HEADER_LEN), ipv6::payload_len(data))
    else {
        return Err(truncated(Layer::Ipv6, offset, ipv6::HEADER_LEN, data.len()));
    };
    let bad_length = |need, have| malformed(Layer::Ipv6, ParseErrorKind::BadLength, offset, need, have);
    let next_header = ipv6::next_header(header);
    if payload_len != 0 {
        return Err(bad_length(payload_len, payload.len()));
    }
    if next_header != Some(IpProtocol::HOP_BY_HOP) {
        return Ok(header);
    }
    // RFC 2675 section 3: a header fits here only with the jumbo payload option, whose length exceeds 16
    // bits.
    let extension = Extension::read(IpProtocol::HOP_BY_HOP, payload);
    let jumbo_len =
        extension.and_then(|header| header.jumbo_payload_len()).filter(|len| *len > usize::from(u16::MAX));
    let jumbo_len = jumbo_len.ok_or(bad_length(8, 0))?;
    data.get(..ipv6::HEADER_LEN.saturating_add(jumbo_len)).ok_or(bad_length(jumbo_len, payload.len()))
}

#[cold]
fn no_version(version: Option<u8>, offset: usize) -> NotIp {
    match version {
        Some(version) => malformed(Layer::RawIp, ParseErrorKind::BadVersion, offset, version.into(), 0),
        None => truncated(Layer::RawIp, offset, 1, 0),
    }
}

#[cold]
fn truncated(layer: Layer, offset: usize, need: usize, have: usize) -> NotIp {
    NotIp::Truncated(ParseError::truncated(layer, offset, need, have))
}

#[cold]
fn malformed(layer: Layer, kind: ParseErrorKind, offset: usize, need: usize, have: usize) -> NotIp {
    NotIp::Malformed(ParseError::new(layer, kind, offset, need, have))
}
