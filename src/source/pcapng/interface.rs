//! Interface Description Blocks (draft-ietf-opsawg-pcapng section 4.2).

use super::options::{Options, half, word};
use super::time::{Clock, TimeResolution};
use crate::base::LinkType;
use crate::source::Interface;

/// Maximum number of octets of an interface's name or description that are kept. Together with the limit on
/// the number of interfaces, this bounds the memory that a file can occupy.
const TEXT_LEN_MAX: usize = 255;

const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Fields of an interface of the current section that are needed to read frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) link_type: LinkType,
    /// Snap length of the interface in octets; `u32::MAX` if there is none.
    pub(super) snap_len: u32,
    pub(super) clock: Clock,
    /// Index of the interface among the interfaces of all captures.
    pub(super) number: u32,
}

/// Reads the body of an Interface Description Block; `None` if the body is too short. The caller has to fill
/// in the index of the interface in the [`Port`].
pub(super) fn read<const BIG_ENDIAN: bool>(body: &[u8]) -> Option<(Interface, Port)> {
    let ([a, b, _, _, snap @ ..], options) = body.split_first_chunk::<8>()?;
    let link_type = LinkType(half::<BIG_ENDIAN>([*a, *b]));
    let snap_len = word::<BIG_ENDIAN>(*snap);
    let mut interface =
        Interface { snap_len: (snap_len != 0).then_some(snap_len), ..Interface::new(link_type) };
    let mut offset_seconds = 0;
    for (code, value) in Options::<BIG_ENDIAN>::new(options) {
        match (code, value) {
            (IF_NAME, text) => interface.name = Some(clipped(text)),
            (IF_DESCRIPTION, text) => interface.description = Some(clipped(text)),
            (IF_TSRESOL, [octet, ..]) => interface.resolution = TimeResolution::from_octet(*octet),
            (IF_TSOFFSET, octets) => {
                if let Some(octets) = octets.first_chunk::<8>() {
                    offset_seconds =
                        if BIG_ENDIAN { i64::from_be_bytes(*octets) } else { i64::from_le_bytes(*octets) };
                }
            }
            _ => {}
        }
    }
    let port = Port {
        link_type,
        snap_len: interface.snap_len.unwrap_or(u32::MAX),
        clock: Clock::new(interface.resolution, offset_seconds),
        number: 0,
    };
    Some((interface, port))
}

/// Returns the text truncated to [`TEXT_LEN_MAX`] octets, without the zeros that some writers append.
fn clipped(text: &[u8]) -> String {
    let text = text.split(|octet| *octet == 0).next().unwrap_or_default();
    let text = text.get(..TEXT_LEN_MAX).unwrap_or(text);
    let mut clipped = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        clipped.push_str(chunk.valid());
        // Octets that are not valid UTF-8 are replaced by longer ones.
        if !chunk.invalid().is_empty() {
            clipped.push(char::REPLACEMENT_CHARACTER);
        }
        if clipped.len() > TEXT_LEN_MAX {
            let end = (0..=TEXT_LEN_MAX).rev().find(|end| clipped.is_char_boundary(*end));
            clipped.truncate(end.unwrap_or_default());
            break;
        }
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(code: u8, value: &[u8]) -> Vec<u8> {
        let mut octets = vec![0, code, 0, value.len() as u8];
        octets.extend(value);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    #[test]
    fn all_known_options_are_read() {
        let mut body = vec![0, 101, 0, 0, 0, 0, 1, 0];
        body.extend(option(2, b"eth0"));
        body.extend(option(99, b"what"));
        body.extend(option(3, b"uplink\0\0"));
        body.extend(option(9, &[3]));
        body.extend(option(14, &100_i64.to_be_bytes()));
        let (interface, port) = read::<true>(&body).unwrap();
        assert_eq!(interface.name.as_deref(), Some("eth0"));
        assert_eq!(interface.description.as_deref(), Some("uplink"));
        assert_eq!((interface.resolution, interface.snap_len), (TimeResolution::Decimal(3), Some(256)));
        assert_eq!((port.link_type, port.snap_len), (LinkType::RAW, 256));
        assert_eq!(port.clock.timestamp(5).as_nanos(), 100_005_000_000);
    }

    #[test]
    fn missing_options_have_default_values() {
        let (interface, port) = read::<false>(&[1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(interface, Interface::new(LinkType::ETHERNET));
        assert_eq!(port.snap_len, u32::MAX);
        assert!(read::<false>(&[1, 0, 0, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn long_names_are_truncated() {
        assert_eq!(clipped(&[0xff; 400]).len(), TEXT_LEN_MAX);
        assert_eq!(clipped("ä".repeat(200).as_bytes()).chars().next(), Some('ä'));
        assert!(clipped("ä".repeat(200).as_bytes()).len() <= TEXT_LEN_MAX);
    }
}
