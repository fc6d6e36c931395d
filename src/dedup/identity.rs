//! The parts of a frame that are compared: copied and masked octets, then unchanged octets of the frame, and a word.

use crate::base::{EtherType, Frame, LinkType};
use crate::wire::ipv4::{self, MaskedIpv4};
use crate::wire::ipv6::{self, MaskedIpv6};
use crate::wire::{arp, ethernet, ip, null, ppp, sll};

/// Number of words of eight octets that an IPv6 header fills.
const HEAD_COUNT_MAX: usize = 5;

/// Bit of an identity's word that is set if the word contains an EtherType, and clear if it contains a link type and
/// a length.
const BEHIND_THE_LINK: u64 = 1 << 48;

/// The parts of a frame that are compared. Two frames are equal if all fields of their identities are equal.
///
/// The head consists of words, so that hashing it needs no call. IPv4 options are in the tail, because none of their
/// octets are masked.
#[derive(Debug)]
pub(super) struct Identity<'a> {
    head: [u64; HEAD_COUNT_MAX],
    head_count: usize,
    tail: &'a [u8],
    word: u64,
}

impl<'a> Identity<'a> {
    /// Returns the identity of an unchanged frame, with its length on the wire and its link type.
    #[inline(always)]
    pub(super) fn exact(frame: &Frame<'a>) -> Self {
        let wire_len = (frame.data.len() as u32).max(frame.wire_len);
        let word = u64::from(wire_len) | u64::from(frame.link_type.0) << 32;
        Self { head: [0; HEAD_COUNT_MAX], head_count: 0, tail: frame.data, word }
    }

    /// Returns the identity of the parts of a frame that neither a mirror port nor a router changes.
    pub(super) fn behind_the_link(frame: &Frame<'a>) -> Self {
        let Some((ether_type, packet)) = network(frame) else { return Self::exact(frame) };
        let masked = match ether_type {
            EtherType::IPV4 => ipv4(packet),
            EtherType::IPV6 => ipv6(packet),
            EtherType::ARP => Some(plain(packet.get(..arp::PACKET_LEN).unwrap_or(packet))),
            _ => None,
        };
        Self { word: BEHIND_THE_LINK | u64::from(ether_type.0), ..masked.unwrap_or(plain(packet)) }
    }

    /// Returns the masked octets of the identity, as words.
    #[inline(always)]
    pub(super) fn head(&self) -> &[u64] {
        self.head.get(..self.head_count).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) const fn tail(&self) -> &'a [u8] {
        self.tail
    }

    #[inline(always)]
    pub(super) const fn word(&self) -> u64 {
        self.word
    }
}

#[inline(always)]
const fn plain(tail: &[u8]) -> Identity<'_> {
    Identity { head: [0; HEAD_COUNT_MAX], head_count: 0, tail, word: 0 }
}

/// Returns the identity of an IPv4 packet without traffic class, TTL and checksum (RFC 791 section 3.1), and without
/// the data after the total length, unless a network card left that length at zero. `None` if the header is truncated
/// or inconsistent.
#[inline(always)]
fn ipv4(packet: &[u8]) -> Option<Identity<'_>> {
    let MaskedIpv4 { words: [a, b, c], header_len, total_len } = MaskedIpv4::read(packet)?;
    let is_sound = header_len >= ipv4::HEADER_LEN_MIN && (total_len == 0 || total_len >= header_len);
    if !is_sound || packet.len() < header_len {
        return None;
    }
    let len = if total_len == 0 { packet.len() } else { total_len.min(packet.len()) };
    Some(Identity {
        head: [a, b, c, 0, 0],
        head_count: 3,
        tail: packet.get(ipv4::HEADER_LEN_MIN..len)?,
        word: 0,
    })
}

/// Returns the identity of an IPv6 packet without traffic class and hop limit (RFC 8200 section 3), and without the
/// data after the payload length, unless that length is zero: for a jumbogram, or because a network card left it at
/// zero. `None` if the header is truncated or has another version.
#[inline(always)]
fn ipv6(packet: &[u8]) -> Option<Identity<'_>> {
    let MaskedIpv6 { words: head, payload_len } = MaskedIpv6::read(packet)?;
    let len =
        if payload_len == 0 { packet.len() } else { (ipv6::HEADER_LEN + payload_len).min(packet.len()) };
    Some(Identity { head, head_count: HEAD_COUNT_MAX, tail: packet.get(ipv6::HEADER_LEN..len)?, word: 0 })
}

/// Returns the EtherType of a frame after the link-layer header and VLAN tags, and the data that follows it; `None`
/// for a link type for which they cannot be determined.
fn network<'a>(frame: &Frame<'a>) -> Option<(EtherType, &'a [u8])> {
    let data = frame.data;
    match frame.link_type {
        LinkType::ETHERNET => behind_tags(ethernet::ether_type(data)?, data.get(ethernet::HEADER_LEN..)?),
        LinkType::LINUX_SLL => cooked(data, sll::v1(data)?),
        LinkType::LINUX_SLL2 => cooked(data, sll::v2(data)?),
        LinkType::NULL | LinkType::LOOP => by_version(data.get(null::HEADER_LEN..)?),
        LinkType::RAW | LinkType::RAW_DLT_12 | LinkType::RAW_DLT_14 | LinkType::IPV4 | LinkType::IPV6 => {
            by_version(data)
        }
        LinkType::PPP | LinkType::PPP_HDLC => {
            let header = ppp::header(data)?;
            Some((header.ether_type()?, data.get(header.len..)?))
        }
        _ => None,
    }
}

fn cooked(data: &[u8], header: sll::SllHeader) -> Option<(EtherType, &[u8])> {
    behind_tags(header.ether_type, data.get(header.len..)?)
}

/// Returns the EtherType that corresponds to the version of an IP packet, and the packet itself; `None` if the
/// version is neither 4 nor 6.
fn by_version(packet: &[u8]) -> Option<(EtherType, &[u8])> {
    Some((ip::ether_type(packet)?, packet))
}

/// Skips VLAN tags, regardless of their number, because each takes four octets of the frame. Returns the EtherType
/// after the tags and the data that follows it. A length field of IEEE 802.3 truncates the data; in place of the
/// length, the value that Linux cooked capture uses for LLC is returned.
fn behind_tags(mut ether_type: EtherType, mut data: &[u8]) -> Option<(EtherType, &[u8])> {
    while ethernet::is_vlan(ether_type) {
        let (tag, rest) = ethernet::split_vlan_tag(data)?;
        (ether_type, data) = (tag.ether_type, rest);
    }
    if ether_type.0 < ethernet::ETHERTYPE_MIN && ether_type != sll::LLC {
        data = data.get(..usize::from(ether_type.0)).unwrap_or(data);
        ether_type = sll::LLC;
    }
    Some((ether_type, data))
}
