//! Tags between the addresses of an Ethernet header and its protocol, other than VLAN tags.

use super::{be16, be32};
use crate::base::{EtherType, HeaderKind};
use crate::codec::Reader;

/// Tag of time stamps that Cisco's data center switches write.
pub(crate) const CISCO_TIME: EtherType = EtherType(0x8988);
/// Cisco MetaData, which contains a security group.
pub(crate) const CISCO_METADATA: EtherType = EtherType(0x8909);
/// High-availability Seamless Redundancy (IEC 62439-3).
pub(crate) const HSR: EtherType = EtherType(0x892f);
/// Redundancy tag (IEEE 802.1CB, clause 7.8).
pub(crate) const REDUNDANCY: EtherType = EtherType(0xf1c1);
/// Protocols of Arista, one of which writes time stamps.
pub(crate) const ARISTA: EtherType = EtherType(0xd28b);

/// Length of the shortest tag, with the EtherType at its end, in octets.
pub(crate) const LEN_MIN: usize = SEQUENCE_LEN + ETHER_TYPE_LEN;

/// Length of the EtherType that ends each tag, in octets.
const ETHER_TYPE_LEN: usize = 2;
const CISCO_TIME_LEN: usize = 6;
/// Length of the sequence number and of the octets before it in HSR and R-TAG, in octets.
const SEQUENCE_LEN: usize = 4;

/// Subtype of Arista's time stamps, and their formats: 64 and 48 bits, of TAI and UTC.
const ARISTA_TIME: u16 = 1;
const ARISTA_TIME_64: [u16; 2] = [0x0010, 0x0110];
const ARISTA_TIME_48: [u16; 2] = [0x0020, 0x0120];

/// Version of Cisco MetaData, and the type of the option with the security group, in the lower twelve bits.
const METADATA_VERSION: u8 = 1;
const METADATA_GROUP: u16 = 1;
const METADATA_TYPE_MASK: u16 = 0x0fff;
const METADATA_WORD_LEN: usize = 4;

mod field {
    pub(super) const ARISTA_SUBTYPE: usize = 0;
    pub(super) const ARISTA_FORMAT: usize = 2;
    pub(super) const ARISTA_TIME: usize = 4;
}

/// A tag behind its EtherType, together with the EtherType that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) kind: HeaderKind,
    /// Security group of Cisco MetaData; zero for the other kinds.
    pub(crate) id: u32,
    /// Length of the tag with the EtherType at its end, in octets.
    pub(crate) len: usize,
    /// Protocol of the data behind the tag.
    pub(crate) ether_type: EtherType,
}

/// Result of reading a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagged {
    Tag(Tag),
    /// The EtherType announces no tag, or one of another format.
    Other,
    Truncated,
}

/// Reads the tag that `announced_as` announces from the octets behind that EtherType.
#[must_use]
pub(crate) fn tag(announced_as: EtherType, data: &[u8]) -> Tagged {
    let tag = match announced_as {
        CISCO_TIME => fixed(HeaderKind::TimeTag, CISCO_TIME_LEN, data),
        HSR => fixed(HeaderKind::Hsr, SEQUENCE_LEN, data),
        REDUNDANCY => fixed(HeaderKind::RedundancyTag, SEQUENCE_LEN, data),
        ARISTA => match arista_time_len(data) {
            Some(Some(len)) => fixed(HeaderKind::AristaTime, field::ARISTA_TIME + len, data),
            Some(None) => return Tagged::Other,
            None => None,
        },
        CISCO_METADATA => match metadata(data) {
            Some(None) => return Tagged::Other,
            tag => tag.flatten(),
        },
        _ => return Tagged::Other,
    };
    tag.map_or(Tagged::Truncated, Tagged::Tag)
}

/// Returns whether the octets behind an EtherType are the tag or the header before a frame that it announces.
#[must_use]
pub(crate) fn is_announced(announced_as: EtherType, data: &[u8]) -> bool {
    match announced_as {
        FABRIC_PATH => fabric_path(data).is_some(),
        TRILL => trill(data).is_some(),
        other => matches!(tag(other, data), Tagged::Tag(_)),
    }
}

/// Reads the EtherType behind a tag without an id, whose other fields have `len` octets.
fn fixed(kind: HeaderKind, len: usize, data: &[u8]) -> Option<Tag> {
    Some(Tag { kind, id: 0, len: len + ETHER_TYPE_LEN, ether_type: EtherType(be16(data, len)?) })
}

/// Returns the length of Arista's time stamp in octets; the inner `None` is for another subtype or format.
fn arista_time_len(data: &[u8]) -> Option<Option<usize>> {
    let (subtype, format) = (be16(data, field::ARISTA_SUBTYPE)?, be16(data, field::ARISTA_FORMAT)?);
    let len = match format {
        _ if subtype != ARISTA_TIME => None,
        format if ARISTA_TIME_64.contains(&format) => Some(8),
        format if ARISTA_TIME_48.contains(&format) => Some(6),
        _ => None,
    };
    Some(len)
}

/// Reads Cisco MetaData: version, length of the options in words, and the options, of which the first one is the security
/// group. The inner `None` is for another version.
fn metadata(data: &[u8]) -> Option<Option<Tag>> {
    let mut reader = Reader::new(data);
    let (version, word_count): (u8, u8) = (reader.be().ok()?, reader.be().ok()?);
    if version != METADATA_VERSION {
        return Some(None);
    }
    let options = reader.bytes(METADATA_WORD_LEN * usize::from(word_count)).ok()?;
    let ether_type = EtherType(reader.be().ok()?);
    let is_group = be16(options, 0).is_some_and(|head| head & METADATA_TYPE_MASK == METADATA_GROUP);
    let id = be16(options, 2).filter(|_| is_group).unwrap_or_default().into();
    Some(Some(Tag { kind: HeaderKind::CiscoMetadata, id, len: reader.offset(), ether_type }))
}

/// EtherType of Cisco FabricPath, which precedes a whole Ethernet frame.
pub(crate) const FABRIC_PATH: EtherType = EtherType(0x8903);

/// Length of a FabricPath tag behind its EtherType, in octets.
pub(crate) const FABRIC_PATH_LEN: usize = 2;

/// Returns the forwarding tag of FabricPath, ten bits, above the time to live; `None` if the tag is truncated.
#[must_use]
pub(crate) fn fabric_path(data: &[u8]) -> Option<u32> {
    be16(data, 0).map(|word| u32::from(word >> 6))
}

/// EtherType of TRILL (RFC 6325), which precedes a whole Ethernet frame.
pub(crate) const TRILL: EtherType = EtherType(0x22f3);

/// Length of a TRILL header behind its EtherType, without options, in octets.
pub(crate) const TRILL_LEN_MIN: usize = 6;

/// Returns the nicknames of a TRILL header, egress in the upper 16 bits and ingress in the lower, and the length of the
/// header with its options, in octets; `None` if the header is truncated.
#[must_use]
pub(crate) fn trill(data: &[u8]) -> Option<(u32, usize)> {
    let control = be16(data, 0)?;
    let len = TRILL_LEN_MIN + usize::from(control >> 6 & 0x1f) * 4;
    Some((be32(data, 2)?, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_end_with_an_ether_type() {
        for (announced_as, kind, tag_octets, id) in [
            (CISCO_TIME, HeaderKind::TimeTag, &[0x65, 0x53, 0xf1, 0, 0, 5][..], 0),
            (HSR, HeaderKind::Hsr, &[0x10, 0x3b, 0, 1], 0),
            (REDUNDANCY, HeaderKind::RedundancyTag, &[0, 0, 0, 1], 0),
            (ARISTA, HeaderKind::AristaTime, &[0, 1, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8], 0),
            (ARISTA, HeaderKind::AristaTime, &[0, 1, 1, 0x20, 1, 2, 3, 4, 5, 6], 0),
            (CISCO_METADATA, HeaderKind::CiscoMetadata, &[1, 1, 0, 1, 1, 5], 0x105),
            (CISCO_METADATA, HeaderKind::CiscoMetadata, &[1, 2, 0, 1, 0, 7, 9, 9, 9, 9], 7),
        ] {
            let data = [tag_octets, &[0x86, 0xdd]].concat();
            let wanted = Tag { kind, id, len: data.len(), ether_type: EtherType::IPV6 };
            assert_eq!(tag(announced_as, &data), Tagged::Tag(wanted));
            for len in 0..data.len() {
                assert_eq!(tag(announced_as, &data[..len]), Tagged::Truncated);
            }
        }
        assert_eq!(tag(ARISTA, &[0, 2, 0, 0x10, 0, 0]), Tagged::Other);
        assert_eq!(tag(ARISTA, &[0, 1, 0, 0x30, 0, 0]), Tagged::Other);
        assert_eq!(tag(CISCO_METADATA, &[2, 1, 0, 1]), Tagged::Other);
        assert_eq!(tag(EtherType::ARP, &[0; 20]), Tagged::Other);
    }

    #[test]
    fn headers_before_a_whole_frame_have_ids() {
        assert_eq!((fabric_path(&[0x04, 0x60]), fabric_path(&[4])), (Some(0x11), None));
        // One word of options, hop count 5.
        let header = [0x00, 0x45, 0, 1, 0, 2, 9, 9, 9, 9];
        assert_eq!((trill(&header), trill(&header[..5])), (Some((0x1_0002, 10)), None));
    }
}
