//! Protocol headers, one file each: field offsets, a view, and an emitter where one is needed.
//!
//! These functions read one header; [`decode`](crate::decode) walks from one to the next. Only this module
//! contains header offsets. It is not public API.

pub(crate) mod arp;
pub(crate) mod checksum;
pub(crate) mod erspan;
pub(crate) mod ethernet;
pub(crate) mod frame_relay;
pub(crate) mod geneve;
pub(crate) mod gre;
pub(crate) mod gtpu;
pub(crate) mod icmp;
pub(crate) mod ieee80211;
pub(crate) mod ipv4;
pub(crate) mod ipv6;
pub(crate) mod ipv6_extension;
pub(crate) mod l2tp;
pub(crate) mod llc;
pub(crate) mod macsec;
pub(crate) mod mpls;
pub(crate) mod ndp;
pub(crate) mod nflog;
pub(crate) mod nsh;
pub(crate) mod ppp;
pub(crate) mod pppoe;
pub(crate) mod radio;
pub(crate) mod sctp;
pub(crate) mod sll;
pub(crate) mod tcp;
pub(crate) mod teredo;
pub(crate) mod token_ring;
pub(crate) mod udp;
pub(crate) mod vxlan;

/// Returns the big-endian 16-bit value at an offset, if it lies within the slice.
#[inline(always)]
pub(crate) fn be16(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes)
}

/// Returns the big-endian 32-bit value at an offset, if it lies within the slice.
#[inline(always)]
pub(crate) fn be32(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
}

/// Returns whether the IP packet at the start of `data` is of version 6.
#[inline]
pub(crate) fn is_ipv6(data: &[u8]) -> bool {
    data.first().is_some_and(|octet| octet >> 4 == 6)
}

/// Returns the source and destination ports of TCP, UDP or SCTP at the start of a header.
#[inline(always)]
pub(crate) fn ports(header: &[u8]) -> Option<[u16; 2]> {
    Some([be16(header, 0)?, be16(header, 2)?])
}

/// Writes octets at an offset of a header; they must lie within it.
#[inline]
pub(crate) fn put<const N: usize>(header: &mut [u8], at: usize, value: [u8; N]) {
    let target = header.get_mut(at..at + N);
    debug_assert!(target.is_some(), "a field lies within its header");
    if let Some(target) = target {
        target.copy_from_slice(&value);
    }
}
