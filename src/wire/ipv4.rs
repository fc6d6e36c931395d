//! IPv4 (RFC 791 section 3.1).

use super::{be16, be32, put};
use crate::base::IpProtocol;

/// Octets of a header without options.
pub(crate) const HEADER_LEN_MIN: usize = 20;

/// More-fragments flag in the octet of the flags.
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;

/// Version 4 and a header without options.
const VERSION_AND_PLAIN_LEN: u8 = 0x45;
const FRAGMENT_OFFSET_MASK: u16 = 0x1fff;

/// Loose and strict source and record route (RFC 791 section 3.1).
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;

mod field {
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

/// View of a header without its options. Each accessor reads only its own field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv4<'a>(&'a [u8; HEADER_LEN_MIN]);

impl<'a> Ipv4<'a> {
    /// Returns the header at the start of `data`; `None` if there are fewer than [`HEADER_LEN_MIN`] octets.
    /// Checks nothing else.
    #[inline(always)]
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    #[inline(always)]
    pub(crate) const fn version(self) -> u8 {
        self.0[0] >> 4
    }

    /// Returns whether the version is 4 and there are no options.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.0[0] == VERSION_AND_PLAIN_LEN
    }

    /// Returns the octets of the header with its options according to its length field, which is at least 20
    /// in a valid header.
    #[inline(always)]
    pub(crate) const fn header_len(self) -> usize {
        (self.0[0] & 0xf) as usize * 4
    }

    #[inline(always)]
    pub(crate) const fn traffic_class(self) -> u8 {
        self.0[field::TRAFFIC_CLASS]
    }

    /// Returns the octets of the packet according to its length field.
    #[inline(always)]
    pub(crate) fn total_len(self) -> usize {
        self.u16(field::TOTAL_LEN) as usize
    }

    #[inline(always)]
    pub(crate) fn identification(self) -> u16 {
        self.u16(field::IDENTIFICATION)
    }

    /// Returns whether more fragments follow.
    #[inline(always)]
    pub(crate) fn has_more_fragments(self) -> bool {
        self.u16(field::FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Returns the offset of the fragment in octets. The field counts units of eight; its top three bits are
    /// flags.
    #[inline(always)]
    pub(crate) fn fragment_offset(self) -> u16 {
        self.u16(field::FRAGMENT) << 3
    }

    /// Returns whether the packet is a fragment of a datagram.
    #[inline(always)]
    pub(crate) fn is_fragment(self) -> bool {
        self.u16(field::FRAGMENT) & (MORE_FRAGMENTS | FRAGMENT_OFFSET_MASK) != 0
    }

    /// Returns whether the packet is a fragment of a datagram other than the first.
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

/// Returns the octets of the header at the start of `data` according to its length field, if its first octet
/// is present.
pub(crate) fn header_len(data: &[u8]) -> Option<usize> {
    data.first().map(|octet| usize::from(octet & 0xf) * 4)
}

/// Returns the octets of the packet at the start of `data` according to its length field.
pub(crate) fn total_len(data: &[u8]) -> Option<usize> {
    be16(data, field::TOTAL_LEN).map(usize::from)
}

/// Returns the source and destination addresses of the header at the start of `data`, in the order of the
/// header.
pub(crate) fn addresses(data: &[u8]) -> Option<&[u8; 8]> {
    data.get(field::SOURCE..)?.first_chunk()
}

/// Returns the destination of a source route among the options of a header (RFC 791 section 3.1), unless the
/// route is completed or absent.
pub(crate) fn source_route_end(mut options: &[u8]) -> Option<u32> {
    const END: u8 = 0;
    const NOP: u8 = 1;
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
            let is_over = usize::from(*option.get(2)?) > len;
            let last = option.get(3..)?.last_chunk().map(|octets| u32::from_be_bytes(*octets));
            return last.filter(|_| !is_over);
        }
        options = options.get(len..)?;
    }
}

/// Fields of a header without options that a caller chooses. Identification and checksum are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv4Header {
    pub(crate) total_len: u16,
    pub(crate) has_more_fragments: bool,
    pub(crate) protocol: IpProtocol,
    pub(crate) source: std::net::Ipv4Addr,
    pub(crate) destination: std::net::Ipv4Addr,
}

impl Ipv4Header {
    /// Returns the octets of the header. Constant time, no allocation.
    #[must_use]
    pub(crate) fn to_octets(self) -> [u8; HEADER_LEN_MIN] {
        let mut octets = [0; HEADER_LEN_MIN];
        let flags = if self.has_more_fragments { MORE_FRAGMENTS } else { 0 };
        octets[0] = VERSION_AND_PLAIN_LEN;
        put(&mut octets, field::TOTAL_LEN, self.total_len.to_be_bytes());
        put(&mut octets, field::FRAGMENT, flags.to_be_bytes());
        octets[field::PROTOCOL] = self.protocol.0;
        put(&mut octets, field::SOURCE, self.source.octets());
        put(&mut octets, field::DESTINATION, self.destination.octets());
        octets
    }
}

/// Writes traffic class and hop limit into the header at the start of `data`, if it is present.
pub(crate) fn set_service(data: &mut [u8], traffic_class: u8, hop_limit: u8) {
    if let Some(header) = data.first_chunk_mut::<HEADER_LEN_MIN>() {
        header[field::TRAFFIC_CLASS] = traffic_class;
        header[field::HOP_LIMIT] = hop_limit;
    }
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
    }
}
