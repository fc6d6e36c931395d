//! IPv6 extension headers (RFC 8200 section 4), and the authentication header (RFC 4302 section 2).

use super::{be32, encode};
use crate::base::IpProtocol;

/// Length of an IPv6 fragment header in octets.
pub(crate) const FRAGMENT_LEN: usize = 8;

/// More-fragments flag in the 16-bit field of fragment offset and flags.
const MORE_FRAGMENTS: u16 = 1;
const HOME_ADDRESS: u8 = 201;
const JUMBO_PAYLOAD: u8 = 0xc2;
const PAD_1: u8 = 0;

mod field {
    pub(super) const NEXT_HEADER: usize = 0;
    pub(super) const LEN: usize = 1;
    pub(super) const OPTIONS: usize = 2;
    pub(super) const ROUTING_TYPE: usize = 2;
    pub(super) const SEGMENTS_LEFT: usize = 3;
    pub(super) const ROUTING_ADDRESSES: usize = 8;
}

/// IPv6 extension header of which all octets were captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension<'a> {
    kind: IpProtocol,
    /// All octets of the extension header.
    octets: &'a [u8],
    pub(crate) next_header: IpProtocol,
}

impl<'a> Extension<'a> {
    /// Reads the extension header at the start of `data`, which the previous header announced as `kind`; `None`
    /// if the header is truncated. Headers other than fragment and authentication headers have a length field
    /// in units of eight octets.
    pub(crate) fn read(kind: IpProtocol, data: &'a [u8]) -> Option<Self> {
        let (next_header, units) = (*data.get(field::NEXT_HEADER)?, usize::from(*data.get(field::LEN)?));
        let len = match kind {
            IpProtocol::IPV6_FRAG => FRAGMENT_LEN,
            IpProtocol::AH => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        Some(Self { kind, octets: data.get(..len)?, next_header: IpProtocol(next_header) })
    }

    pub(crate) const fn len(&self) -> usize {
        self.octets.len()
    }

    /// Returns the final destination of a routing header; `None` if the routing type is unknown. Returns
    /// `destination` itself if no segments are left or if the extension header is not a routing header.
    pub(crate) fn last_segment(&self, destination: u128) -> Option<u128> {
        if self.kind != IpProtocol::IPV6_ROUTE {
            return Some(destination);
        }
        let addresses = self.octets.get(field::ROUTING_ADDRESSES..)?;
        let last = match (*self.octets.get(field::ROUTING_TYPE)?, *self.octets.get(field::SEGMENTS_LEFT)?) {
            (_, 0) => return Some(destination),
            // In the order of travel (RFC 2460 section 4.4, RFC 6275 section 6.4).
            (0 | 2, _) => addresses.last_chunk(),
            // Segments are in reverse order (RFC 8754 section 2).
            (4, _) => addresses.first_chunk(),
            _ => None,
        };
        last.map(|octets| u128::from_be_bytes(*octets))
    }

    /// Returns the home address option of a destination options header (RFC 6275 section 6.3).
    pub(crate) fn home_address(&self) -> Option<u128> {
        if self.kind != IpProtocol::IPV6_OPTS {
            return None;
        }
        let option = option(self.octets.get(field::OPTIONS..)?, HOME_ADDRESS, 16)?;
        option.first_chunk().map(|octets| u128::from_be_bytes(*octets))
    }

    /// Returns the value of the jumbo payload option of a hop-by-hop header (RFC 2675 section 2).
    pub(crate) fn jumbo_payload_len(&self) -> Option<usize> {
        let option = option(self.octets.get(field::OPTIONS..)?, JUMBO_PAYLOAD, 4)?;
        be32(option, 0).map(|len| len as usize)
    }
}

/// Returns the octets of `options` from the value of the first option with type `wanted` and length `wanted_len`
/// on; `None` if there is no such option or if a malformed option precedes it. Linear in the options.
fn option(mut options: &[u8], wanted: u8, wanted_len: u8) -> Option<&[u8]> {
    loop {
        options = match *options {
            [PAD_1, ref rest @ ..] => rest,
            [kind, len, ref value @ ..] if kind == wanted && len == wanted_len => return Some(value),
            [_, len, ref rest @ ..] => rest.get(usize::from(len)..)?,
            _ => return None,
        };
    }
}

/// Returns an IPv6 fragment header as octets in wire format: offset zero, more fragments follow, identification
/// zero.
#[must_use]
pub(crate) fn first_fragment(next_header: IpProtocol) -> [u8; FRAGMENT_LEN] {
    let (reserved, identification) = (0_u8, 0_u32);
    encode(|writer| {
        writer.be(next_header.0)?;
        writer.be(reserved)?;
        writer.be(MORE_FRAGMENTS)?;
        writer.be(identification)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_extension_header_has_its_own_length_unit() {
        let data = [17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (kind, len) in [(IpProtocol::IPV6_FRAG, 8), (IpProtocol::AH, 12), (IpProtocol::IPV6_OPTS, 16)] {
            let header = Extension::read(kind, &data).unwrap();
            assert_eq!((header.len(), header.next_header), (len, IpProtocol::UDP));
            assert!(Extension::read(kind, &data[..len - 1]).is_none());
        }
    }

    #[test]
    fn a_routing_header_leads_to_its_last_segment() {
        let mut data = [0; 24];
        data[1] = 2;
        data[23] = 9;
        let end = |data: &[u8]| Extension::read(IpProtocol::IPV6_ROUTE, data).unwrap().last_segment(1);
        assert_eq!(end(&data), Some(1), "no segments are left");
        data[3] = 1;
        assert_eq!(end(&data), Some(9));
        data[2] = 77;
        assert_eq!(end(&data), None);
        assert_eq!(Extension::read(IpProtocol::IPV6_OPTS, &data).unwrap().last_segment(1), Some(1));
    }

    #[test]
    fn options_are_found_after_padding() {
        let mut data = [0; 24];
        data[1] = 2;
        data[2..8].copy_from_slice(&[0, 1, 1, 0, HOME_ADDRESS, 16]);
        data[23] = 5;
        let header = Extension::read(IpProtocol::IPV6_OPTS, &data).unwrap();
        assert_eq!(header.home_address(), Some(5));
        data[2..8].copy_from_slice(&[JUMBO_PAYLOAD, 4, 0, 1, 0, 0]);
        let header = Extension::read(IpProtocol::HOP_BY_HOP, &data).unwrap();
        assert_eq!((header.home_address(), header.jumbo_payload_len()), (None, Some(65_536)));
    }

    #[test]
    fn a_first_fragment_has_the_more_fragments_flag() {
        assert_eq!(first_fragment(IpProtocol::TCP), [6, 0, 0, 1, 0, 0, 0, 0]);
    }
}
