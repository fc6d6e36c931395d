//! Data packets of the Locator/ID Separation Protocol (RFC 9300 section 5.1; RFC 9305 for the next protocol).

use super::{be32, ip, nsh};
use crate::base::EtherType;

/// Length of a LISP header in octets.
pub(crate) const HEADER_LEN: usize = 8;

const HAS_INSTANCE: u8 = 0x08;
const HAS_NEXT_PROTOCOL: u8 = 0x04;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const NEXT_PROTOCOL: usize = 3;
    pub(super) const INSTANCE: usize = 4;
}

/// Returns the instance identifier of a LISP header, or zero without one, and the EtherType of its payload; `None` if the
/// header is truncated or the payload is of an unknown protocol.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<(u32, EtherType)> {
    let (header, payload) = data.split_first_chunk::<HEADER_LEN>()?;
    let has = |flag: u8| header[field::FLAGS] & flag != 0;
    let instance = if has(HAS_INSTANCE) { be32(header, field::INSTANCE)? >> 8 } else { 0 };
    let next = if has(HAS_NEXT_PROTOCOL) {
        nsh::next_protocol(header[field::NEXT_PROTOCOL])?
    } else {
        ip::ether_type(payload)?
    };
    Some((instance, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_announce_the_instance_and_the_next_protocol() {
        let header_of = |flags, next, first| header(&[flags, 0, 0, next, 0, 1, 2, 0xff, first]);
        assert_eq!(header_of(0xc0, 3, 0x45), Some((0, EtherType::IPV4)));
        assert_eq!(header_of(0x08, 3, 0x60), Some((0x102, EtherType::IPV6)));
        assert_eq!(header_of(0x0c, 3, 0x02), Some((0x102, EtherType::ETHERNET_BRIDGING)));
        assert_eq!((header_of(0x08, 3, 0x02), header_of(0x0c, 9, 0x45), header(&[0; 8])), (None, None, None));
    }
}
