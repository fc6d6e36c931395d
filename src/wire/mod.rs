//! Protocol headers, one file each: field offsets, a view, and an emitter where one is needed.
//!
//! These functions read one header; [`decode`](crate::decode) walks from one to the next. Only this module
//! contains header offsets, and a test (`tests/layering.rs`) fails if another one reads octets by their
//! position. It is not public API.
//!
//! Fields at fixed offsets are read in place, by a view of an array or by the functions below. Fields behind
//! optional or variable ones are read in order by a [`Reader`](crate::codec::Reader). All headers are written in order
//! by a [`Writer`]; a field of a header that is already in a buffer is changed in place.

pub(crate) mod arp;
pub(crate) mod ayiya;
pub(crate) mod capwap;
pub(crate) mod checksum;
pub(crate) mod erspan;
pub(crate) mod ether_ip;
pub(crate) mod ethernet;
pub(crate) mod fibre_channel;
pub(crate) mod frame_relay;
pub(crate) mod geneve;
pub(crate) mod gre;
pub(crate) mod gtpu;
pub(crate) mod hdlc;
pub(crate) mod hp_erm;
pub(crate) mod icmp;
pub(crate) mod ieee80211;
pub(crate) mod ip;
pub(crate) mod ipv4;
pub(crate) mod ipv6;
pub(crate) mod ipv6_extension;
pub(crate) mod l2tp;
pub(crate) mod lisp;
pub(crate) mod llc;
pub(crate) mod macsec;
pub(crate) mod mpls;
pub(crate) mod ndp;
pub(crate) mod nflog;
pub(crate) mod nsh;
pub(crate) mod null;
pub(crate) mod ports;
pub(crate) mod ppp;
pub(crate) mod pppoe;
pub(crate) mod provider_backbone;
pub(crate) mod pseudowire;
pub(crate) mod radio;
pub(crate) mod sctp;
pub(crate) mod sll;
pub(crate) mod tag;
pub(crate) mod tcp;
pub(crate) mod teredo;
pub(crate) mod token_ring;
pub(crate) mod tzsp;
pub(crate) mod udp;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) mod virtio_net;
pub(crate) mod vn_tag;
pub(crate) mod vxlan;

use crate::codec::{Fixed, WriteError, Writer};

/// Returns the `N` octets of `data` at offset `at`, if they lie within the slice.
#[inline(always)]
fn array<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    data.get(at..).and_then(|rest| rest.first_chunk())
}

/// Returns the big-endian 16-bit value at offset `at`, if it lies within the slice.
#[inline(always)]
fn be16(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes)
}

/// Returns the big-endian 32-bit value at offset `at`, if it lies within the slice.
#[inline(always)]
fn be32(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
}

/// Returns the big-endian 64-bit value at offset `at`, if it lies within the slice.
#[inline(always)]
fn be64(data: &[u8], at: usize) -> Option<u64> {
    array(data, at).map(|octets| u64::from_be_bytes(*octets))
}

/// Writes a big-endian 16-bit value at offset `at`, if it lies within the slice.
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) fn set_be16(data: &mut [u8], at: usize, value: u16) {
    if let Some(field) = data.get_mut(at..at.saturating_add(2)) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Returns the little-endian 16-bit value at offset `at`, if it lies within the slice.
#[inline]
fn le16(data: &[u8], at: usize) -> Option<u16> {
    array(data, at).map(|octets| u16::from_le_bytes(*octets))
}

/// Returns the little-endian 32-bit value at offset `at`, if it lies within the slice.
#[inline]
fn le32(data: &[u8], at: usize) -> Option<u32> {
    array(data, at).map(|octets| u32::from_le_bytes(*octets))
}

/// Returns the octets of a header or packet that `write` writes from the first to the last. No allocation.
#[inline(always)]
fn encode<const N: usize>(write: impl FnOnce(&mut Writer<Fixed<'_>>) -> Result<(), WriteError>) -> [u8; N] {
    let mut octets = [0; N];
    let mut writer = Writer::new(&mut octets);
    let result = write(&mut writer);
    debug_assert!(result.is_ok() && writer.len() == N, "{} of {N} octets written: {result:?}", writer.len());
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_in_order() {
        let octets = encode(|writer| {
            writer.be(1_u8)?;
            writer.be(0x0203_u16)?;
            writer.array([4, 5, 6])
        });
        assert_eq!(octets, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "2 of 3 octets written")]
    fn a_field_that_is_missing_is_detected() {
        let _: [u8; 3] = encode(|writer| writer.be(0x0102_u16));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "2 of 3 octets written")]
    fn a_field_beyond_the_end_is_detected() {
        let _: [u8; 3] = encode(|writer| {
            writer.be(0x0102_u16)?;
            writer.be(0x0304_u16)
        });
    }
}
