//! BSD loopback (`pcap-linktype(7)`, LINKTYPE_NULL and LINKTYPE_LOOP): an address family before the packet.

use crate::base::EtherType;

/// Length of the BSD loopback header in octets.
pub(crate) const HEADER_LEN: usize = 4;

const AF_INET: u32 = 2;

/// Values of AF_INET6 on Linux (10), NetBSD and OpenBSD (24), FreeBSD (28) and Darwin (30).
const AF_INET6: [u32; 4] = [10, 24, 28, 30];

/// Returns the address family in a BSD loopback header; `None` if the header is truncated. The field is in
/// network order if `is_network_order` is true (LINKTYPE_LOOP), otherwise in the byte order of the capturing
/// host (LINKTYPE_NULL).
#[must_use]
pub(crate) fn family(data: &[u8], is_network_order: bool) -> Option<u32> {
    let octets = *data.first_chunk::<HEADER_LEN>()?;
    // The file does not indicate the byte order of the host reliably. Address families are small, so the order
    // in which the value fits in 16 bits is the right one.
    let big = u32::from_be_bytes(octets);
    Some(if is_network_order || big <= 0xffff { big } else { u32::from_le_bytes(octets) })
}

/// Returns the EtherType of packets of an address family; `None` for families other than IPv4 and IPv6.
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
