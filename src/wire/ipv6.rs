//! IPv6 (RFC 8200 section 3).

use super::{array, be16, be64, encode};
use crate::base::IpProtocol;

/// Length of the IPv6 header without extension headers, in octets.
pub(crate) const HEADER_LEN: usize = 40;

pub(crate) const VERSION: u8 = 6;

mod field {
    /// Offset of the version and the upper half of the traffic class.
    pub(super) const VERSION_AND_CLASS: usize = 0;
    /// Offset of the lower half of the traffic class and the upper part of the flow label.
    pub(super) const CLASS_AND_LABEL: usize = 1;
    pub(super) const PAYLOAD_LEN: usize = 4;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SOURCE: usize = 8;
    pub(super) const DESTINATION: usize = 24;
}

/// View of an IPv6 header. Each accessor reads only one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv6<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Ipv6<'a> {
    /// Returns the IPv6 header at the start of `data`; `None` if there are fewer than [`HEADER_LEN`] octets.
    /// Checks no field.
    #[inline(always)]
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    #[inline(always)]
    pub(crate) const fn version(self) -> u8 {
        self.0[field::VERSION_AND_CLASS] >> 4
    }

    #[inline(always)]
    pub(crate) const fn traffic_class(self) -> u8 {
        self.0[field::VERSION_AND_CLASS] << 4 | self.0[field::CLASS_AND_LABEL] >> 4
    }

    /// Returns the number of octets behind the IPv6 header, as its payload length field states; zero in a
    /// jumbogram.
    #[inline(always)]
    pub(crate) fn payload_len(self) -> usize {
        be16(self.0, field::PAYLOAD_LEN).unwrap_or_default().into()
    }

    #[inline(always)]
    pub(crate) const fn next_header(self) -> IpProtocol {
        IpProtocol(self.0[field::NEXT_HEADER])
    }

    #[inline(always)]
    pub(crate) const fn hop_limit(self) -> u8 {
        self.0[field::HOP_LIMIT]
    }

    #[inline(always)]
    pub(crate) fn source(self) -> u128 {
        self.address(field::SOURCE)
    }

    #[inline(always)]
    pub(crate) fn destination(self) -> u128 {
        self.address(field::DESTINATION)
    }

    #[inline(always)]
    fn address(self, at: usize) -> u128 {
        array(self.0, at).map_or(0, |octets| u128::from_be_bytes(*octets))
    }
}

/// Returns the number of octets behind the IPv6 header at the start of `data`, as its payload length field
/// states.
pub(crate) fn payload_len(data: &[u8]) -> Option<usize> {
    be16(data, field::PAYLOAD_LEN).map(usize::from)
}

/// Returns the next-header field of the IPv6 header at the start of `data`.
pub(crate) fn next_header(data: &[u8]) -> Option<IpProtocol> {
    data.get(field::NEXT_HEADER).copied().map(IpProtocol)
}

/// Returns the source address and then the destination address of the IPv6 header at the start of `data`.
pub(crate) fn addresses(data: &[u8]) -> Option<&[u8; 32]> {
    array(data, field::SOURCE)
}

/// Returns two slices of `data` that start at the source and the destination address of an IPv6 header; a slice
/// is empty if the capture ends before the address.
pub(crate) fn address_slices(data: &[u8]) -> [&[u8]; 2] {
    [field::SOURCE, field::DESTINATION].map(|at| data.get(at..).unwrap_or_default())
}

/// IPv6 header as words for comparison, without the fields that differ between copies of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskedIpv6 {
    /// All fields of the IPv6 header as words; traffic class and hop limit are replaced by zero.
    pub(crate) words: [u64; HEADER_LEN / 8],
    pub(crate) payload_len: usize,
}

impl MaskedIpv6 {
    /// Reads the IPv6 header at the start of `data`; `None` if the header is truncated or has another version.
    #[inline(always)]
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        // Version, class, flow label, payload length, next header, hop limit; then the addresses.
        const MASK: u64 = !0x0ff0_0000_0000_00ff;
        let first = be64(data, 0)?;
        if first >> 60 != u64::from(VERSION) {
            return None;
        }
        let mut words = [first & MASK; HEADER_LEN / 8];
        for (word, at) in words.iter_mut().zip((0..).step_by(8)).skip(1) {
            *word = be64(data, at)?;
        }
        Some(Self { words, payload_len: (first >> 16 & 0xffff) as usize })
    }
}

/// Fields of an IPv6 header, for writing. Traffic class and flow label are written as zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv6Header {
    pub(crate) payload_len: u16,
    pub(crate) next_header: IpProtocol,
    pub(crate) hop_limit: u8,
    pub(crate) source: std::net::Ipv6Addr,
    pub(crate) destination: std::net::Ipv6Addr,
}

impl Ipv6Header {
    /// Returns the IPv6 header as octets in wire format. Constant time, no allocation.
    #[must_use]
    pub(crate) fn to_octets(self) -> [u8; HEADER_LEN] {
        let version_class_and_label = u32::from(VERSION) << 28;
        encode(|writer| {
            writer.be(version_class_and_label)?;
            writer.be(self.payload_len)?;
            writer.be(self.next_header.0)?;
            writer.be(self.hop_limit)?;
            writer.array(self.source.octets())?;
            writer.array(self.destination.octets())
        })
    }
}

/// Writes traffic class and hop limit into the IPv6 header at the start of `data`, if the header is complete.
/// Sets the flow label to zero.
pub(crate) fn set_service(data: &mut [u8], traffic_class: u8, hop_limit: u8) {
    if let Some(header) = data.first_chunk_mut::<HEADER_LEN>() {
        header[field::VERSION_AND_CLASS] = VERSION << 4 | traffic_class >> 4;
        header[field::CLASS_AND_LABEL] = traffic_class << 4;
        header[field::HOP_LIMIT] = hop_limit;
    }
}

/// Writes the payload length into the IPv6 header at the start of `data`.
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) fn set_payload_len(data: &mut [u8], payload_len: u16) {
    super::set_be16(data, field::PAYLOAD_LEN, payload_len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_headers_are_read_back() {
        let (source, destination) = (1_u128, 0x2001_0db8_u128 << 96 | 2);
        let mut octets = Ipv6Header {
            payload_len: 1480,
            next_header: IpProtocol::UDP,
            hop_limit: 1,
            source: source.into(),
            destination: destination.into(),
        }
        .to_octets();
        set_service(&mut octets, 0xb9, 63);
        let header = Ipv6::read(&octets).unwrap();
        assert_eq!(
            (header.version(), header.payload_len(), header.next_header()),
            (6, 1480, IpProtocol::UDP)
        );
        assert_eq!((header.hop_limit(), header.traffic_class()), (63, 0xb9));
        assert_eq!((header.source(), header.destination()), (source, destination));
        assert_eq!((payload_len(&octets), next_header(&octets)), (Some(1480), Some(IpProtocol::UDP)));
        assert_eq!(addresses(&octets), octets.last_chunk());
        assert!(Ipv6::read(&octets[..39]).is_none());
    }

    #[test]
    fn copies_of_a_packet_have_equal_words() {
        let header = Ipv6Header {
            payload_len: 8,
            next_header: IpProtocol::UDP,
            hop_limit: 64,
            source: 1_u128.into(),
            destination: 2_u128.into(),
        };
        let (near, mut far) = (header.to_octets(), header.to_octets());
        set_service(&mut far, 0xff, 1);
        let masked = MaskedIpv6::read(&near).unwrap();
        assert_eq!(masked.payload_len, 8);
        assert_eq!(MaskedIpv6::read(&far).map(|far| far.words), Some(masked.words));
        for octet in 2..HEADER_LEN {
            let mut other = far;
            other[octet] ^= 1;
            let is_equal = MaskedIpv6::read(&other).is_some_and(|other| other.words == masked.words);
            assert_eq!(is_equal, octet == field::HOP_LIMIT, "{octet}");
        }
        assert!(MaskedIpv6::read(&near[..39]).is_none());
    }
}
