//! IP header and the headers between it and the transport: options, extension headers, authentication header.

use etherparse::{IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6RawExtHeaderSlice};

use crate::base::{EtherType, IpProtocol, Layer, Limits, ParseError, ParseErrorKind};
use crate::wire::ip::version;
use crate::wire::ipv4;
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::{self, Ipv6};

/// Fields of an IP header and of the extension headers and authentication headers after it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IpHeader {
    /// True for IPv6, false for IPv4.
    pub is_ipv6: bool,
    /// Source address; an IPv4 address is in the lower 32 bits.
    pub source: u128,
    /// Destination address; an IPv4 address is in the lower 32 bits.
    pub destination: u128,
    /// Protocol after the last extension header that was read.
    pub protocol: IpProtocol,
    /// Length of the packet according to its length field, in octets, or up to the end of the outer payload
    /// if the field is zero or that end is earlier.
    pub len: usize,
    /// Length of the IP header and of the extension headers that were read, in octets.
    pub header_len: usize,
    /// IPv4 time to live or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv4 type of service or IPv6 traffic class.
    pub traffic_class: u8,
    /// True if the packet is part of a fragmented datagram.
    pub is_fragment: bool,
    /// True if the packet is a fragment other than the first, and thus has no transport header.
    pub is_later_fragment: bool,
    /// True if the capture ends within the IP header or an extension header.
    pub is_truncated: bool,
    /// True if the length field is zero or exceeds the outer payload.
    pub is_bad_len: bool,
    /// True if the length field exceeds the outer payload, so that `len` is less than the field. A snap
    /// length does not set this, because the outer payload is measured on the wire.
    pub is_over_long: bool,
}

impl IpHeader {
    /// Placeholder for a header that is not read yet.
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
        is_truncated: false,
        is_bad_len: false,
        is_over_long: false,
    };

    /// Returns whether the length field is zero although the packet is not empty: segmentation offload, or a
    /// jumbogram.
    pub(super) const fn is_without_len(&self) -> bool {
        self.is_bad_len && !self.is_over_long
    }
}

/// Reads the IP header at the start of `data`; `wire_len` is the number of octets on the wire from there to
/// the end of the outer payload.
///
/// `offset` is the position of the header in the frame, for errors. Extension headers and authentication
/// headers are skipped if they were captured.
///
/// # Errors
///
/// Returns an error if the header is truncated before the end of the addresses, has another version, or is
/// inconsistent.
pub(crate) fn ip_header(
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

/// Reads the IP header at the start of `data` and writes it to `ip`, because returning such a large structure
/// would cost as much as reading the header. The arguments are those of [`ip_header`].
#[inline]
pub(super) fn read_ip_header(
    data: &[u8],
    wire_len: usize,
    offset: usize,
    ether_type: EtherType,
    limits: &Limits,
    ip: &mut IpHeader,
) -> Result<(), ParseError> {
    let layer = if ether_type == EtherType::IPV6 { Layer::Ipv6 } else { Layer::Ipv4 };
    let expected = if layer == Layer::Ipv6 { ipv6::VERSION } else { ipv4::VERSION };
    if let Some(version) = version(data)
        && version != expected
    {
        return Err(ParseError::new(layer, ParseErrorKind::BadVersion, offset, version.into(), 0));
    }
    match layer {
        Layer::Ipv6 => ipv6_header(data, wire_len, offset, limits, ip),
        _ => ipv4_header(data, wire_len, offset, ip),
    }
}

/// Typical IPv4 header: without options, with a length that fits in the outer payload, and without an
/// authentication header behind it. Each field equals that in the result of [`read_ip_header`], so a walk can
/// read only the fields that it needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainIpv4<'a>(Ipv4<'a>);

impl<'a> PlainIpv4<'a> {
    pub(super) const HEADER_LEN: usize = ipv4::HEADER_LEN_MIN;

    /// Returns the IPv4 header at the start of `data` if it is a typical one; `wire_len` is the number of
    /// octets on the wire from there to the end of the outer payload.
    #[inline(always)]
    pub(super) fn read(data: &'a [u8], wire_len: usize) -> Option<Self> {
        let plain = Self(Ipv4::read(data)?);
        let is_plain = plain.0.is_plain()
            && (Self::HEADER_LEN..=wire_len).contains(&plain.len())
            && plain.protocol() != IpProtocol::AH;
        is_plain.then_some(plain)
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.0.total_len()
    }

    #[inline(always)]
    pub(super) const fn protocol(self) -> IpProtocol {
        self.0.protocol()
    }

    #[inline(always)]
    pub(super) fn is_fragment(self) -> bool {
        self.0.is_fragment()
    }

    /// Returns all fields of the header as an [`IpHeader`].
    #[inline(always)]
    pub(super) fn header(self) -> IpHeader {
        IpHeader {
            is_ipv6: false,
            source: self.0.source().into(),
            destination: self.0.destination().into(),
            protocol: self.protocol(),
            len: self.len(),
            header_len: Self::HEADER_LEN,
            hop_limit: self.0.hop_limit(),
            traffic_class: self.0.traffic_class(),
            is_fragment: self.is_fragment(),
            is_later_fragment: self.0.is_later_fragment(),
            is_truncated: false,
            is_bad_len: false,
            is_over_long: false,
        }
    }
}

fn ipv4_header(data: &[u8], wire_len: usize, offset: usize, ip: &mut IpHeader) -> Result<(), ParseError> {
    let bad_len = |need, have| ParseError::new(Layer::Ipv4, ParseErrorKind::BadLength, offset, need, have);
    let Some(header) = Ipv4::read(data) else {
        return Err(ParseError::truncated(Layer::Ipv4, offset, ipv4::HEADER_LEN_MIN, data.len()));
    };
    let options_end = header.header_len();
    if options_end < ipv4::HEADER_LEN_MIN {
        return Err(bad_len(options_end, ipv4::HEADER_LEN_MIN));
    }
    let total_len = header.total_len();
    let claimed_len = if total_len == 0 { wire_len } else { total_len };
    if claimed_len < options_end {
        return Err(bad_len(claimed_len, options_end));
    }
    *ip = IpHeader {
        is_ipv6: false,
        source: header.source().into(),
        destination: header.destination().into(),
        protocol: header.protocol(),
        len: claimed_len.min(wire_len),
        header_len: options_end,
        hop_limit: header.hop_limit(),
        traffic_class: header.traffic_class(),
        is_fragment: header.is_fragment(),
        is_later_fragment: header.is_later_fragment(),
        is_truncated: false,
        is_bad_len: total_len == 0 || total_len > wire_len,
        is_over_long: total_len > wire_len,
    };
    match Ipv4HeaderSlice::from_slice(data) {
        Ok(_) if ip.protocol == IpProtocol::AH && !ip.is_later_fragment => {
            authentication(data.get(options_end..ip.len.min(data.len())).unwrap_or_default(), ip);
        }
        Ok(_) => {}
        Err(_) => ip.is_truncated = true,
    }
    Ok(())
}

/// Reads an authentication header (RFC 4302) at the start of `data` and adds its length and next protocol to
/// `ip`. The payload of this header is not encrypted.
fn authentication(data: &[u8], ip: &mut IpHeader) {
    match IpAuthHeaderSlice::from_slice(data) {
        Ok(header) => {
            ip.protocol = IpProtocol(header.next_header().0);
            ip.header_len += header.slice().len();
        }
        Err(_) => ip.is_truncated = true,
    }
}

fn ipv6_header(
    data: &[u8],
    wire_len: usize,
    offset: usize,
    limits: &Limits,
    ip: &mut IpHeader,
) -> Result<(), ParseError> {
    let Some(fixed) = Ipv6::read(data) else {
        return Err(ParseError::truncated(Layer::Ipv6, offset, ipv6::HEADER_LEN, data.len()));
    };
    let protocol = fixed.next_header();
    let payload_len = fixed.payload_len();
    // No length: a jumbogram (RFC 2675), or a packet that the network card was to segment.
    let is_without_len = payload_len == 0 && protocol != IpProtocol::IPV6_NO_NEXT;
    let claimed_len = if is_without_len { wire_len } else { ipv6::HEADER_LEN + payload_len };
    let len = claimed_len.min(wire_len);
    *ip = IpHeader {
        is_ipv6: true,
        source: fixed.source(),
        destination: fixed.destination(),
        protocol,
        len,
        header_len: ipv6::HEADER_LEN,
        hop_limit: fixed.hop_limit(),
        traffic_class: fixed.traffic_class(),
        is_fragment: false,
        is_later_fragment: false,
        is_truncated: false,
        is_bad_len: is_without_len || claimed_len > wire_len,
        is_over_long: claimed_len > wire_len,
    };
    extensions(data.get(..len.min(data.len())).unwrap_or_default(), offset, limits, ip)
}

/// Reads the IPv6 extension headers of the packet in `data` and adds their lengths and the last next header
/// to `ip`. Stops at a transport protocol, a later fragment, or the end of the captured octets.
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
                // An atomic fragment (RFC 6946) is not a fragment: offset zero and no more fragments.
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
            ip.is_truncated = true;
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
        /// Checks that both readers return the same result for all input that the fast reader accepts.
        #[test]
        fn the_fast_reader_agrees_with_the_thorough_one(
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
