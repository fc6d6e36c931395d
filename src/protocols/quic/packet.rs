//! QUIC packets of a datagram and their unprotected fields: RFC 8999, RFC 9000 section 17.2, RFC 9369 section 3.2.

use std::fmt;

use super::version::Version;
use crate::codec::{Prefix, Reader};
use crate::row::{Cell, Column, Type, Visitor};

/// Maximum length in octets of a connection id in the QUIC versions that are parsed (RFC 9000 section 17.2).
pub(super) const CONNECTION_ID_LEN_MAX: usize = 20;

/// Minimum length in octets of the connection id that a client chooses for a server (RFC 9000 section 7.2).
pub(super) const FIRST_ID_LEN_MIN: usize = 8;

/// Minimum length in octets of the UDP payload of a client's first datagram (RFC 9000 section 14.1).
pub(super) const FIRST_DATAGRAM_LEN_MIN: usize = 1200;

/// Length in octets of the authentication tag of protected packets, and of the integrity tag of Retry packets.
pub(super) const TAG_LEN: usize = 16;

const LONG_HEADER: u8 = 0x80;
pub(super) const FIXED_BIT: u8 = 0x40;

/// A connection id, displayed and written in hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ConnectionId<'a>(pub &'a [u8]);

impl fmt::Display for ConnectionId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for ConnectionId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Cell for ConnectionId<'_> {
    const TYPE: Type = Type::Octets;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.octets(column, self.0);
    }
}

/// Consumes a variable-length integer of 1, 2, 4 or 8 octets, as indicated by its first two bits (RFC 9000 section 16).
pub(super) fn varint(reader: &mut Reader<'_>) -> Option<u64> {
    Some(match reader.rest().first()? >> 6 {
        0 => reader.be::<u8>().ok()?.into(),
        1 => u64::from(reader.be::<u16>().ok()?) & 0x3fff,
        2 => u64::from(reader.be::<u32>().ok()?) & 0x3fff_ffff,
        _ => reader.be::<u64>().ok()? & 0x3fff_ffff_ffff_ffff,
    })
}

/// Returns whether `first` is the first octet of a packet with a long header.
pub(super) const fn is_long(first: u8) -> bool {
    first & LONG_HEADER != 0
}

/// Version-independent fields of a long header (RFC 8999 section 5.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct LongHeader<'a> {
    pub(super) first: u8,
    pub(super) version: Version,
    pub(super) dcid: &'a [u8],
    pub(super) scid: &'a [u8],
}

impl<'a> LongHeader<'a> {
    /// Parses a long header; `None` if the header is incomplete or not a long one.
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let first = reader.be::<u8>().ok().filter(|first| is_long(*first))?;
        let version = Version(reader.be::<u32>().ok()?);
        let dcid = reader.prefixed(Prefix::U8).ok()?;
        let scid = reader.prefixed(Prefix::U8).ok()?;
        Some(Self { first, version, dcid, scid })
    }

    /// Returns whether both connection ids have at most [`CONNECTION_ID_LEN_MAX`] octets.
    pub(super) const fn has_fair_ids(&self) -> bool {
        self.dcid.len() <= CONNECTION_ID_LEN_MAX && self.scid.len() <= CONNECTION_ID_LEN_MAX
    }
}

/// A packet with a long header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) header: LongHeader<'a>,
    pub(super) body: Body<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    /// A Version Negotiation packet: the versions that the server supports, four octets each.
    VersionNegotiation(&'a [u8]),
    /// An Initial packet, protected with keys derived from the client's first destination connection id.
    Initial(Initial<'a>),
    /// A Retry packet, the server's request to start again: its token, the packet without the integrity tag, and the
    /// tag.
    Retry { token: &'a [u8], tagged: &'a [u8], tag: [u8; TAG_LEN] },
    /// A 0-RTT packet: early data of the client, which an observer cannot decrypt.
    ZeroRtt,
    /// A Handshake packet, which an observer cannot decrypt.
    Handshake,
    /// A packet of a QUIC version that is not parsed; the rest of the datagram is unknown.
    UnsupportedVersion,
}

/// An Initial packet that is still protected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Initial<'a> {
    pub(super) token: &'a [u8],
    /// The whole packet, including its header and authentication tag.
    pub(super) bytes: &'a [u8],
    /// Offset of the packet number from the start of the packet, in octets.
    pub(super) number_at: usize,
}

/// Consumes the next packet with a long header from `rest`, the remaining octets of a datagram; `None` if the next
/// octets are no long header, or the packet's length is invalid.
pub(super) fn next<'a>(rest: &mut &'a [u8]) -> Option<Packet<'a>> {
    let all = *rest;
    let mut reader = Reader::new(all);
    let header = LongHeader::read(&mut reader)?;
    *rest = &[];
    if header.version == Version::NEGOTIATION {
        let versions = reader.rest();
        return Some(Packet { header, body: Body::VersionNegotiation(versions) });
    }
    let Some(rules) = header.version.rules() else {
        return Some(Packet { header, body: Body::UnsupportedVersion });
    };
    if !header.has_fair_ids() {
        return None;
    }
    let kind = (header.first >> 4 & 3).wrapping_sub(rules.initial_bits) & 3;
    if kind == 3 {
        let (tagged, tag) = all.split_last_chunk::<TAG_LEN>()?;
        let token = tagged.get(reader.offset()..)?;
        return Some(Packet { header, body: Body::Retry { token, tagged, tag: *tag } });
    }
    let mut token: &[u8] = &[];
    if kind == 0 {
        let token_len = usize::try_from(varint(&mut reader)?).ok()?;
        token = reader.bytes(token_len).ok()?;
    }
    let len = usize::try_from(varint(&mut reader)?).ok()?;
    let number_at = reader.offset();
    reader.skip(len).ok()?;
    *rest = reader.rest();
    let body = match kind {
        0 => Body::Initial(Initial { token, bytes: all.get(..reader.offset())?, number_at }),
        1 => Body::ZeroRtt,
        _ => Body::Handshake,
    };
    Some(Packet { header, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_length_of_their_prefix() {
        // RFC 9000, Appendix A.1.
        let read = |bytes: &[u8]| varint(&mut Reader::new(bytes));
        assert_eq!(read(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]), Some(151_288_809_941_952_652));
        assert_eq!(read(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
        assert_eq!(read(&[0x7b, 0xbd]), Some(15_293));
        assert_eq!(read(&[0x25]), Some(37));
        assert_eq!(read(&[0x40, 0x25]), Some(37));
        assert_eq!((read(&[0x40]), read(&[])), (None, None));
    }

    #[test]
    fn coalesced_packets_are_read_up_to_a_short_header() {
        let mut datagram = Vec::new();
        for first in [0xc0, 0xd0, 0xe0] {
            datagram.extend([first, 0, 0, 0, 1, 1, 7, 0]);
            datagram.extend(if first == 0xc0 { &[2, 9, 9, 3, 1, 2, 3][..] } else { &[3, 1, 2, 3] });
        }
        datagram.extend([0x40, 7, 1, 2, 3]);
        let mut rest = &datagram[..];
        let initial = next(&mut rest).expect("an Initial");
        let Body::Initial(body) = initial.body else { panic!("{initial:?}") };
        assert_eq!((body.token, body.bytes.len(), body.number_at), (&[9, 9][..], 15, 12));
        assert_eq!((initial.header.dcid, initial.header.scid), (&[7][..], &[][..]));
        assert!(matches!(next(&mut rest), Some(Packet { body: Body::ZeroRtt, .. })));
        assert!(matches!(next(&mut rest), Some(Packet { body: Body::Handshake, .. })));
        assert!(next(&mut rest).is_none() && rest.len() == 5, "a packet with a short header is not read");
        for end in 0..15 {
            assert!(next(&mut &datagram[..end]).is_none(), "truncated to {end}");
        }
    }
}
