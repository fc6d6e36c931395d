//! BSD loopback (`pcap-linktype(7)`, LINKTYPE_NULL and LINKTYPE_LOOP): an address family before the packet.

use crate::base::EtherType;

/// Octets of the header.
pub(crate) const HEADER_LEN: usize = 4;

const AF_INET: u32 = 2;

/// AF_INET6 of NetBSD, OpenBSD and Linux (in the order 24, 24, 10), FreeBSD, and Darwin.
const AF_INET6: [u32; 4] = [10, 24, 28, 30];

/// Returns the address family; `None` if it is truncated. It is in network order (LOOP), or in the byte order
/// of the capturing host (NULL).
#[must_use]
pub(crate) fn family(data: &[u8], is_network_order: bool) -> Option<u32> {
    let octets = *data.first_chunk::<HEADER_LEN>()?;
    // The file does not indicate the byte order of the host reliably. Address families are small, so the order
    // in which the value fits in 16 bits is the right one.
    let big = u32::from_be_bytes(octets);
    Some(if is_network_order || big <= 0xffff { big } else { u32::from_le_bytes(octets) })
}

/// Returns the EtherType of the packets of an address family, for IP.
#[must_use]
pub(crate) fn ether_type(family: u32) -> Option<EtherType> {
    match family {
        AF_INET => Some(EtherType::IPV4),
        family if AF_INET6.contains(&family) => Some(EtherType::IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_host_is_the_one_that_gives_a_small_number() {
        assert_eq!((family(&[0, 0, 0, 2], false), family(&[2, 0, 0, 0], false)), (Some(2), Some(2)));
        assert_eq!((family(&[0, 0, 0, 2], true), family(&[2, 0, 0, 0], true)), (Some(2), Some(0x0200_0000)));
        assert_eq!(family(&[0, 0, 2], false), None);
        for number in [10, 24, 28, 30] {
            assert_eq!(ether_type(number), Some(EtherType::IPV6));
        }
        assert_eq!((ether_type(2), ether_type(7)), (Some(EtherType::IPV4), None));
    }
}
