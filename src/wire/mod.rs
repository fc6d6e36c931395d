//! Reads of single headers: those of the fast path, and those that `etherparse` lacks. One file each.
//!
//! These functions look at one header and say what is in it; walking from one to the next is the business of
//! [`link`](crate::link) and [`extractor`](crate::extractor).

pub mod arp;
pub mod checksum;
pub mod erspan;
pub mod ethernet;
pub mod frame_relay;
pub mod geneve;
pub mod gre;
pub mod gtpu;
pub mod icmp;
pub mod ieee80211;
pub mod l2tp;
pub mod llc;
pub mod macsec;
pub mod mpls;
pub mod ndp;
pub mod nflog;
pub mod nsh;
pub mod ppp;
pub mod pppoe;
pub mod radio;
pub mod sll;
pub mod tcp;
pub mod teredo;
pub mod token_ring;
pub mod vxlan;

/// The big-endian 16-bit value at an offset, if it lies within the slice.
#[inline(always)]
pub(crate) fn be16(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes)
}

/// The big-endian 32-bit value at an offset, if it lies within the slice.
#[inline(always)]
pub(crate) fn be32(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
}
