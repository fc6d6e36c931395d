//! The IP header and what follows it up to the transport: options, extension headers, authentication header.

use etherparse::{
    IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
};

use crate::base::{EtherType, IpProtocol, Layer, Limits, ParseError, ParseErrorKind};
use crate::wire::{be16, be32};

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;

/// An IP header and its extensions, walked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IpHeader {
    /// IPv6, or IPv4.
    pub is_ipv6: bool,
    /// The source address; IPv4 in the lower 32 bits.
    pub source: u128,
    /// The destination address.
    pub destination: u128,
    /// The protocol behind the last extension that was read.
    pub protocol: IpProtocol,
    /// Octets of the packet by its length field, or to the end of what encloses it where that is zero or ends earlier.
    pub len: usize,
    /// Octets of the header and the extensions.
    pub header_len: usize,
    /// IPv4 time to live or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv4 type of service or IPv6 traffic class.
    pub traffic_class: u8,
    /// Part of a fragmented datagram.
    pub is_fragment: bool,
    /// Not its first part: no transport header.
    pub is_later_fragment: bool,
    /// The capture ends within the header.
    pub is_cut: bool,
    /// The length field is zero or exceeds what encloses the packet.
    pub is_bad_len: bool,
    /// The length field exceeds what encloses the packet, so that `len` is less than it says. A snap length does not
    /// set this: what encloses the packet is measured on the wire.
    pub is_over_long: bool,
}

impl IpHeader {
    /// No header yet.
    pub(super) const EMPTY: Self = Self {
        is_ipv6: false,
        source: 0,
        destination: 0,
        protocol: IpProtocol(0),
        len: 0,
        header_len: 0,
        hop_limit: 0,
        traffic_class: 0,
        is_fragment: false,
        is_later_fragment: false,
        is_cut: false,
        is_bad_len: false,
        is_over_long: false,
    };

    /// Whether the length field is missing: segmentation offload, or a jumbogram.
    pub(super) const fn is_without_len(&self) -> bool {
        self.is_bad_len && !self.is_over_long
    }
}

/// Reads the IP header at the start of `data`, of which `wire_len` octets were on the wire.
///
/// `offset` is where it stands in the frame, for errors; extension headers and authentication headers are stepped
/// over, as far as they were captured.
///
/// # Errors
///
/// It is cut before the addresses end, of another version, or contradicts itself.
pub fn ip_header(
    data: &[u8],
    wire_len: usize,
    offset: usize,
    ether_type: EtherType,
    limits: &Limits,
) -> Result<IpHeader, ParseError> {
    let mut ip = IpHeader::EMPTY;
    read_ip_header(data, wire_len, offset, ether_type, limits, &mut ip)?;
    Ok(ip)
}

/// The same, written in place: a header is large enough that to return it costs as much as to read it.
#[inline]
pub(super) fn read_ip_header(
    data: &[u8],
    wire_len: usize,
    offset: usize,
    ether_type: EtherType,
    limits: &Limits,
    ip: &mut IpHeader,
) -> Result<(), ParseError> {
    let (layer, need) = match ether_type {
        EtherType::IPV6 => (Layer::Ipv6, IPV6_HEADER_LEN),
        _ => (Layer::Ipv4, IPV4_HEADER_LEN),
    };
    let version = data.first().map_or(0, |octet| octet >> 4);
    if !data.is_empty() && version != if layer == Layer::Ipv6 { 6 } else { 4 } {
        return Err(ParseError::new(layer, ParseErrorKind::BadVersion, offset, version.into(), 0));
    }
    if data.len() < need {
        return Err(ParseError::truncated(layer, offset, need, data.len()));
    }
    match layer {
        Layer::Ipv6 => ipv6_header(data, wire_len, offset, limits, ip),
        _ => ipv4_header(data, wire_len, offset, ip),
    }
}

/// What nearly every IPv4 header is: without options, its length within what encloses it, no authentication header behind
/// it. Says the same as [`read_ip_header`], field by field, so that a walk reads no more than it asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainIpv4<'a>(&'a [u8; IPV4_HEADER_LEN]);

impl<'a> PlainIpv4<'a> {
    pub(super) const HEADER_LEN: usize = IPV4_HEADER_LEN;

    /// The header at the start of `data`, of which `wire_len` octets were on the wire, if it is such a one.
    #[inline(always)]
    pub(super) fn read(data: &'a [u8], wire_len: usize) -> Option<Self> {
        const VERSION_AND_LEN: u8 = 0x45;
        let plain = Self(data.first_chunk()?);
        let is_plain = plain.0[0] == VERSION_AND_LEN
            && (IPV4_HEADER_LEN..=wire_len).contains(&plain.len())
            && plain.protocol() != IpProtocol::AH;
        is_plain.then_some(plain)
    }

    #[inline(always)]
    pub(super) const fn len(self) -> usize {
        u16::from_be_bytes([self.0[2], self.0[3]]) as usize
    }

    #[inline(always)]
    pub(super) const fn protocol(self) -> IpProtocol {
        IpProtocol(self.0[9])
    }

    #[inline(always)]
    pub(super) const fn is_fragment(self) -> bool {
        self.fragment_field() & 0x3fff != 0
    }

    const fn fragment_field(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// All of it.
    #[inline(always)]
    pub(super) fn header(self) -> IpHeader {
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *self.0;
        IpHeader {
            is_ipv6: false,
            source: u32::from_be_bytes([s0, s1, s2, s3]).into(),
            destination: u32::from_be_bytes([d0, d1, d2, d3]).into(),
            protocol: self.protocol(),
            len: self.len(),
            header_len: Self::HEADER_LEN,
            hop_limit: self.0[8],
            traffic_class: self.0[1],
            is_fragment: self.is_fragment(),
            is_later_fragment: self.fragment_field() & 0x1fff != 0,
            is_cut: false,
            is_bad_len: false,
            is_over_long: false,
        }
    }
}

fn ipv4_header(data: &[u8], wire_len: usize, offset: usize, ip: &mut IpHeader) -> Result<(), ParseError> {
    let bad_len = |need, have| ParseError::new(Layer::Ipv4, ParseErrorKind::BadLength, offset, need, have);
    let field = |at| usize::from(be16(data, at).unwrap_or_default());
    let options_end = usize::from(data.first().map_or(0, |octet| octet & 0xf)) * 4;
    if options_end < IPV4_HEADER_LEN {
        return Err(bad_len(options_end, IPV4_HEADER_LEN));
    }
    let total_len = field(2);
    let claimed_len = if total_len == 0 { wire_len } else { total_len };
    if claimed_len < options_end {
        return Err(bad_len(claimed_len, options_end));
    }
    let fragment_offset = field(6) & 0x1fff;
    let address = |at: usize| u128::from(be32(data, at).unwrap_or_default());
    *ip = IpHeader {
        is_ipv6: false,
        source: address(12),
        destination: address(16),
        protocol: IpProtocol(data.get(9).copied().unwrap_or_default()),
        len: claimed_len.min(wire_len),
        header_len: options_end,
        hop_limit: data.get(8).copied().unwrap_or_default(),
        traffic_class: data.get(1).copied().unwrap_or_default(),
        is_fragment: field(6) & 0x3fff != 0,
        is_later_fragment: fragment_offset != 0,
        is_cut: false,
        is_bad_len: total_len == 0 || total_len > wire_len,
        is_over_long: total_len > wire_len,
    };
    match Ipv4HeaderSlice::from_slice(data) {
        Ok(_) if ip.protocol == IpProtocol::AH && !ip.is_later_fragment => {
            authentication(data.get(options_end..ip.len.min(data.len())).unwrap_or_default(), ip);
        }
        Ok(_) => {}
        Err(_) => ip.is_cut = true,
    }
    Ok(())
}

/// Steps over an authentication header (RFC 4302), whose payload is in the clear.
fn authentication(data: &[u8], ip: &mut IpHeader) {
    match IpAuthHeaderSlice::from_slice(data) {
        Ok(header) => {
            ip.protocol = IpProtocol(header.next_header().0);
            ip.header_len += header.slice().len();
        }
        Err(_) => ip.is_cut = true,
    }
}

fn ipv6_header(
    data: &[u8],
    wire_len: usize,
    offset: usize,
    limits: &Limits,
    ip: &mut IpHeader,
) -> Result<(), ParseError> {
    let Ok(fixed) = Ipv6HeaderSlice::from_slice(data) else {
        return Err(ParseError::truncated(Layer::Ipv6, offset, IPV6_HEADER_LEN, data.len()));
    };
    let protocol = IpProtocol(fixed.next_header().0);
    // No length: a jumbogram (RFC 2675), or a packet that the network card was to cut up.
    let is_without_len = fixed.payload_length() == 0 && protocol != IpProtocol::IPV6_NO_NEXT;
    let claimed_len =
        if is_without_len { wire_len } else { IPV6_HEADER_LEN + usize::from(fixed.payload_length()) };
    let len = claimed_len.min(wire_len);
    *ip = IpHeader {
        is_ipv6: true,
        source: u128::from_be_bytes(fixed.source()),
        destination: u128::from_be_bytes(fixed.destination()),
        protocol,
        len,
        header_len: IPV6_HEADER_LEN,
        hop_limit: fixed.hop_limit(),
        traffic_class: fixed.traffic_class(),
        is_fragment: false,
        is_later_fragment: false,
        is_cut: false,
        is_bad_len: is_without_len || claimed_len > wire_len,
        is_over_long: claimed_len > wire_len,
    };
    extensions(data.get(..len.min(data.len())).unwrap_or_default(), offset, limits, ip)
}

/// Steps over extension headers until a transport, a later fragment, or the end of what was captured.
fn extensions(data: &[u8], offset: usize, limits: &Limits, ip: &mut IpHeader) -> Result<(), ParseError> {
    let mut count = 0;
    loop {
        let rest = data.get(ip.header_len..).unwrap_or_default();
        let step = match ip.protocol {
            IpProtocol::HOP_BY_HOP | IpProtocol::IPV6_ROUTE | IpProtocol::IPV6_OPTS => {
                Ipv6RawExtHeaderSlice::from_slice(rest)
                    .ok()
                    .map(|header| (header.next_header(), header.slice().len()))
            }
            IpProtocol::IPV6_FRAG => Ipv6FragmentHeaderSlice::from_slice(rest).ok().map(|header| {
                // An atomic fragment (RFC 6946) is none: offset zero and nothing more to come.
                ip.is_fragment |= header.is_fragmenting_payload();
                ip.is_later_fragment |= header.fragment_offset().value() != 0;
                (header.next_header(), header.slice().len())
            }),
            IpProtocol::AH => IpAuthHeaderSlice::from_slice(rest)
                .ok()
                .map(|header| (header.next_header(), header.slice().len())),
            _ => return Ok(()),
        };
        let Some((next, len)) = step else {
            ip.is_cut = true;
            return Ok(());
        };
        ip.protocol = IpProtocol(next.0);
        ip.header_len += len;
        if ip.is_later_fragment {
            return Ok(());
        }
        count += 1;
        if count > limits.ip_extension_count_max {
            let have = limits.ip_extension_count_max as usize;
            return Err(ParseError::new(Layer::Ipv6, ParseErrorKind::TooDeep, offset, count as usize, have));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the quick reader accepts, the thorough one reads alike.
        #[test]
        fn the_quick_reader_says_what_the_thorough_one_says(
            mut data in prop::collection::vec(any::<u8>(), 20..64),
            total_len in 0u16..80,
            wire_len in 20usize..80,
            is_plain in any::<bool>(),
        ) {
            if is_plain {
                data[0] = 0x45;
            }
            data[2..4].copy_from_slice(&total_len.to_be_bytes());
            if let Some(plain) = PlainIpv4::read(&data, wire_len) {
                let thorough = ip_header(&data, wire_len, 0, EtherType::IPV4, &Limits::DEFAULT).unwrap();
                prop_assert_eq!(format!("{:?}", plain.header()), format!("{thorough:?}"));
                prop_assert!(!thorough.is_bad_len && data[0] == 0x45);
            }
        }
    }
}
