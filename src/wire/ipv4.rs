//! IPv4 (RFC 791 section 3.1).

use super::checksum::{fold, sum};
use super::{array, be16, be32, be64, encode};
use crate::base::IpProtocol;

/// Length of an IPv4 header without options, in octets.
pub(crate) const HEADER_LEN_MIN: usize = 20;

/// More-fragments flag in the 16-bit field of flags and fragment offset.
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;

pub(crate) const VERSION: u8 = 4;

/// First octet of an IPv4 header without options: version 4, and a header length of five words.
pub(crate) const VERSION_AND_PLAIN_LEN: u8 = 0x45;
const FRAGMENT_OFFSET_MASK: u16 = 0x1fff;
const HEADER_LEN_MASK: u8 = 0xf;

/// Option type of a loose source and record route (RFC 791 section 3.1).
const LOOSE_ROUTE: u8 = 131;
/// Option type of a strict source and record route (RFC 791 section 3.1).
const STRICT_ROUTE: u8 = 137;

mod field {
    /// Offset of the version and of the header length, which counts words of four octets.
    pub(super) const VERSION_AND_LEN: usize = 0;
    pub(super) const TRAFFIC_CLASS: usize = 1;
    pub(super) const TOTAL_LEN: usize = 2;
    pub(super) const IDENTIFICATION: usize = 4;
    pub(super) const FRAGMENT: usize = 6;
    pub(super) const HOP_LIMIT: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: usize = 10;
    pub(super) const SOURCE: usize = 12;
    pub(super) const DESTINATION: usize = 16;
}

/// View of an IPv4 header without its options. Each accessor reads only one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv4<'a>(&'a [u8; HEADER_LEN_MIN]);

impl<'a> Ipv4<'a> {
    /// Returns the IPv4 header at the start of `data`; `None` if there are fewer than [`HEADER_LEN_MIN`]
    /// octets. Checks no field.
    #[inline(always)]
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    #[inline(always)]
    pub(crate) const fn version(self) -> u8 {
        self.0[field::VERSION_AND_LEN] >> 4
    }

    /// Returns whether the IP version is 4 and the header has no options.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.0[field::VERSION_AND_LEN] == VERSION_AND_PLAIN_LEN
    }

    /// Returns the length of the IPv4 header with its options in octets, as its length field states; at least
    /// 20 in a valid header.
    #[inline(always)]
    pub(crate) const fn header_len(self) -> usize {
        (self.0[field::VERSION_AND_LEN] & HEADER_LEN_MASK) as usize * 4
    }

    #[inline(always)]
    pub(crate) const fn traffic_class(self) -> u8 {
        self.0[field::TRAFFIC_CLASS]
    }

    /// Returns the length of the IPv4 packet in octets, as its total length field states.
    #[inline(always)]
    pub(crate) fn total_len(self) -> usize {
        self.u16(field::TOTAL_LEN) as usize
    }

    #[inline(always)]
    pub(crate) fn identification(self) -> u16 {
        self.u16(field::IDENTIFICATION)
    }

    /// Returns whether the more-fragments flag is set: further fragments of the datagram follow this one.
    #[inline(always)]
    pub(crate) fn has_more_fragments(self) -> bool {
        self.u16(field::FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Returns the offset of the fragment in its datagram, in octets. The 16-bit field contains three flags,
    /// then the offset in units of eight octets.
    #[inline(always)]
    pub(crate) fn fragment_offset(self) -> u16 {
        self.u16(field::FRAGMENT) << 3
    }

    /// Returns whether the IPv4 packet is a fragment of a datagram.
    #[inline(always)]
    pub(crate) fn is_fragment(self) -> bool {
        self.u16(field::FRAGMENT) & (MORE_FRAGMENTS | FRAGMENT_OFFSET_MASK) != 0
    }

    /// Returns whether the IPv4 packet is a fragment other than the first of a datagram.
    #[inline(always)]
    pub(crate) fn is_later_fragment(self) -> bool {
        self.u16(field::FRAGMENT) & FRAGMENT_OFFSET_MASK != 0
    }

    #[inline(always)]
    pub(crate) const fn hop_limit(self) -> u8 {
        self.0[field::HOP_LIMIT]
    }

    #[inline(always)]
    pub(crate) const fn protocol(self) -> IpProtocol {
        IpProtocol(self.0[field::PROTOCOL])
    }

    #[inline(always)]
    pub(crate) fn checksum(self) -> u16 {
        self.u16(field::CHECKSUM)
    }

    #[inline(always)]
    pub(crate) fn source(self) -> u32 {
        be32(self.0, field::SOURCE).unwrap_or_default()
    }

    #[inline(always)]
    pub(crate) fn destination(self) -> u32 {
        be32(self.0, field::DESTINATION).unwrap_or_default()
    }

    #[inline(always)]
    fn u16(self, at: usize) -> u16 {
        be16(self.0, at).unwrap_or_default()
    }
}

/// Returns the length in octets of the IPv4 header at the start of `data`, as its length field states; `None`
/// if `data` is empty.
pub(crate) fn header_len(data: &[u8]) -> Option<usize> {
    data.get(field::VERSION_AND_LEN).map(|octet| usize::from(octet & HEADER_LEN_MASK) * 4)
}

/// Returns the length in octets of the IPv4 packet at the start of `data`, as its total length field states.
pub(crate) fn total_len(data: &[u8]) -> Option<usize> {
    be16(data, field::TOTAL_LEN).map(usize::from)
}

/// Returns the source address and then the destination address of the IPv4 header at the start of `data`.
pub(crate) fn addresses(data: &[u8]) -> Option<&[u8; 8]> {
    array(data, field::SOURCE)
}

/// Returns the options of the IPv4 header at the start of `data`; `None` if they are truncated or if the header
/// length field is below 20 octets.
pub(crate) fn options(data: &[u8]) -> Option<&[u8]> {
    data.get(HEADER_LEN_MIN..header_len(data)?)
}

/// Returns whether the IPv4 header at the start of `data` is complete with its options and has a correct
/// checksum.
pub(crate) fn has_right_checksum(data: &[u8]) -> bool {
    let header = header_len(data).and_then(|len| data.get(..len));
    header.is_some_and(|header| fold(sum(header)) == 0xffff)
}

/// Fixed part of an IPv4 header as words for comparison, without the fields that differ between copies of a
/// packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskedIpv4 {
    /// All fields of the fixed header as words; traffic class, time to live and checksum are replaced by zero.
    pub(crate) words: [u64; 3],
    pub(crate) header_len: usize,
    pub(crate) total_len: usize,
}

impl MaskedIpv4 {
    /// Reads the IPv4 header at the start of `data`; `None` if its fixed part is truncated or has another
    /// version.
    #[inline(always)]
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        // Version, length, class, total length, identification, offset; TTL, protocol, checksum, source;
        // destination.
        const MASKS: [u64; 2] = [!0x00ff_0000_0000_0000, !0xff00_ffff_0000_0000];
        let header = data.first_chunk::<HEADER_LEN_MIN>()?;
        let first = be64(header, 0)?;
        let words = [first & MASKS[0], be64(header, 8)? & MASKS[1], be32(header, field::DESTINATION)?.into()];
        let (header_len, total_len) = ((first >> 54 & 0x3c) as usize, (first >> 32 & 0xffff) as usize);
        (first >> 60 == u64::from(VERSION)).then_some(Self { words, header_len, total_len })
    }
}

/// Returns the final destination of the source route option among the options of an IPv4 header (RFC 791
/// section 3.1); `None` if the route is completed or absent.
pub(crate) fn source_route_end(mut options: &[u8]) -> Option<u32> {
    const END: u8 = 0;
    const NOP: u8 = 1;
    const POINTER: usize = 2;
    const ROUTE: usize = 3;
    loop {
        let (kind, len) = match *options {
            [] | [END, ..] => return None,
            [NOP, ref rest @ ..] => {
                options = rest;
                continue;
            }
            [kind, len, ..] if len >= 2 => (kind, usize::from(len)),
            _ => return None,
        };
        let option = options.get(..len)?;
        if matches!(kind, LOOSE_ROUTE | STRICT_ROUTE) {
            let is_over = usize::from(*option.get(POINTER)?) > len;
            let last = option.get(ROUTE..)?.last_chunk().map(|octets| u32::from_be_bytes(*octets));
            return last.filter(|_| !is_over);
        }
        options = options.get(len..)?;
    }
}

/// Fields of an IPv4 header without options, for writing. Traffic class, identification, hop limit and checksum are
/// written as zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv4Header {
    pub(crate) total_len: u16,
    pub(crate) has_more_fragments: bool,
    pub(crate) protocol: IpProtocol,
    pub(crate) source: std::net::Ipv4Addr,
    pub(crate) destination: std::net::Ipv4Addr,
}

impl Ipv4Header {
    /// Returns the IPv4 header as octets in wire format. Constant time, no allocation.
    #[must_use]
    pub(crate) fn to_octets(self) -> [u8; HEADER_LEN_MIN] {
        let (traffic_class, hop_limit) = (0_u8, 0_u8);
        let (identification, checksum) = (0_u16, 0_u16);
        let fragment = if self.has_more_fragments { MORE_FRAGMENTS } else { 0 };
        encode(|writer| {
            writer.be(VERSION_AND_PLAIN_LEN)?;
            writer.be(traffic_class)?;
            writer.be(self.total_len)?;
            writer.be(identification)?;
            writer.be(fragment)?;
            writer.be(hop_limit)?;
            writer.be(self.protocol.0)?;
            writer.be(checksum)?;
            writer.array(self.source.octets())?;
            writer.array(self.destination.octets())
        })
    }
}

/// Writes traffic class and hop limit into the IPv4 header at the start of `data`, if the header is complete.
pub(crate) fn set_service(data: &mut [u8], traffic_class: u8, hop_limit: u8) {
    if let Some(header) = data.first_chunk_mut::<HEADER_LEN_MIN>() {
        header[field::TRAFFIC_CLASS] = traffic_class;
        header[field::HOP_LIMIT] = hop_limit;
    }
}

/// Makes the IPv4 header at the start of `data` that of one segment of a super-packet: sets the total length, adds
/// `number` to the identification, and computes the header checksum.
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) fn set_segment(data: &mut [u8], total_len: u16, number: u16) {
    let Some(header) = header_len(data).and_then(|len| data.get_mut(..len)) else { return };
    let identification = be16(header, field::IDENTIFICATION).unwrap_or_default().wrapping_add(number);
    super::set_be16(header, field::IDENTIFICATION, identification);
    super::set_be16(header, field::TOTAL_LEN, total_len);
    super::set_be16(header, field::CHECKSUM, 0);
    let checksum = !fold(sum(header));
    super::set_be16(header, field::CHECKSUM, checksum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_headers_are_read_back() {
        let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let mut octets = Ipv4Header {
            total_len: 1480,
            has_more_fragments: true,
            protocol: IpProtocol::UDP,
            source,
            destination,
        }
        .to_octets();
        set_service(&mut octets, 0xb8, 63);
        let header = Ipv4::read(&octets).unwrap();
        assert!(header.is_plain() && header.has_more_fragments() && header.is_fragment());
        assert!(!header.is_later_fragment());
        assert_eq!((header.version(), header.header_len(), header.total_len()), (4, 20, 1480));
        assert_eq!(
            (header.protocol(), header.hop_limit(), header.traffic_class()),
            (IpProtocol::UDP, 63, 0xb8)
        );
        assert_eq!((header.source(), header.destination()), (source.to_bits(), destination.to_bits()));
        assert_eq!((header.identification(), header.fragment_offset(), header.checksum()), (0, 0, 0));
        assert_eq!(addresses(&octets), octets.last_chunk());
        assert!(Ipv4::read(&octets[..19]).is_none());
        assert_eq!((options(&octets), options(&octets[..19])), (Some(&[][..]), None));
    }

    #[test]
    fn copies_of_a_packet_have_equal_words() {
        let header = Ipv4Header {
            total_len: 40,
            has_more_fragments: false,
            protocol: IpProtocol::TCP,
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
        };
        let (mut near, mut far) = (header.to_octets(), header.to_octets());
        set_service(&mut near, 0, 64);
        set_service(&mut far, 0xff, 1);
        far[field::CHECKSUM..field::SOURCE].copy_from_slice(&[1, 2]);
        let masked = MaskedIpv4::read(&near).unwrap();
        assert_eq!((masked.header_len, masked.total_len), (20, 40));
        assert_eq!(MaskedIpv4::read(&far).map(|far| far.words), Some(masked.words));
        for octet in (0..HEADER_LEN_MIN).filter(|octet| ![1, 8, 10, 11].contains(octet)) {
            let mut other = far;
            other[octet] ^= 1;
            assert!(MaskedIpv4::read(&other).is_none_or(|other| other.words != masked.words), "{octet}");
        }
        assert!(MaskedIpv4::read(&near[..19]).is_none());
    }

    #[test]
    fn a_right_checksum_covers_options() {
        // The example of a header in RFC 1071 terms: the sum with the field is all ones.
        let mut octets = [0x46, 0, 0, 24, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 1, 1, 1, 0];
        let sum = !fold(sum(&octets));
        octets[field::CHECKSUM..field::SOURCE].copy_from_slice(&sum.to_be_bytes());
        assert!(has_right_checksum(&octets) && !has_right_checksum(&octets[..23]));
        octets[21] ^= 4;
        assert!(!has_right_checksum(&octets));
    }
}
