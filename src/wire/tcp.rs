//! TCP (RFC 9293 section 3.1).

use super::{be16, be32};
use crate::base::{SeqNum, TcpFlags, TcpSegment};

/// Length of a TCP header without options, in octets.
pub(crate) const HEADER_LEN_MIN: usize = 20;

/// Number of octets of a TCP header that must be present to read its ports, sequence numbers, flags and window.
pub(crate) const FIELDS_LEN: usize = 16;

/// Number of octets from the start of a TCP header to the end of its checksum field.
pub(crate) const CHECKSUM_END: usize = field::CHECKSUM + 2;

/// Mask of the TCP control bits in the 16-bit field that starts with the data offset.
const FLAGS_MASK: u16 = 0xfff;

mod field {
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const ACKNOWLEDGMENT: usize = 8;
    /// Offset of the 16-bit field that contains the data offset and the control bits.
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 12;
    pub(super) const WINDOW: usize = 14;
    pub(super) const CHECKSUM: usize = 16;
}

/// View of a TCP header without its options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp<'a>(&'a [u8; HEADER_LEN_MIN]);

impl<'a> Tcp<'a> {
    /// Returns the TCP header at the start of `data`; `None` if there are fewer than [`HEADER_LEN_MIN`] octets.
    /// Checks no field.
    #[inline(always)]
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Returns the length of the TCP header with its options in octets, as its data offset field states; at
    /// least 20 in a valid header.
    #[inline(always)]
    pub(crate) fn header_len(self) -> usize {
        header_len(self.0).unwrap_or_default()
    }

    /// Returns the fields that describe the position of the segment in the stream.
    #[inline(always)]
    pub(crate) fn segment(self) -> TcpSegment {
        TcpSegment::read(self.0).unwrap_or_default()
    }
}

impl TcpSegment {
    /// Reads the segment fields of the TCP header at the start of `header`; `None` if there are fewer than
    /// [`FIELDS_LEN`] octets.
    #[must_use]
    #[inline(always)]
    pub(crate) fn read(header: &[u8]) -> Option<Self> {
        let header = header.first_chunk::<FIELDS_LEN>()?;
        Some(Self {
            seq: SeqNum(be32(header, field::SEQUENCE)?),
            ack: SeqNum(be32(header, field::ACKNOWLEDGMENT)?),
            flags: TcpFlags(be16(header, field::FLAGS)? & FLAGS_MASK),
            window: be16(header, field::WINDOW)?,
        })
    }
}

/// Returns the length of a TCP header with its options in octets, as its data offset field states; at least 20
/// in a valid header.
#[must_use]
#[inline(always)]
pub(crate) fn header_len(header: &[u8]) -> Option<usize> {
    header.get(field::DATA_OFFSET).map(|octet| usize::from(octet >> 4) * 4)
}

/// Returns the checksum field of the TCP header at the start of `data`; `None` if it is truncated. Computes
/// nothing.
#[must_use]
pub(crate) fn checksum(data: &[u8]) -> Option<u16> {
    be16(data, field::CHECKSUM)
}

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;

/// The value of a TCP option, if its kind and length are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    /// Maximum segment size (RFC 9293 section 3.7.1).
    Mss(u16),
    /// Window scale (RFC 7323 section 2.2), at most [`WINDOW_SCALE_MAX`].
    WindowScale(u8),
    /// Timestamp, and the echo of one (RFC 7323 section 3.2).
    Timestamps(u32, u32),
    Other,
}

impl OptionValue {
    /// Reads the data behind kind and length.
    #[inline]
    fn read(kind: u8, data: &[u8]) -> Self {
        match (kind, data.len()) {
            (2, 2) => be16(data, 0).map_or(Self::Other, Self::Mss),
            (3, 1) => {
                data.first().map_or(Self::Other, |shift| Self::WindowScale((*shift).min(WINDOW_SCALE_MAX)))
            }
            (8, 8) => be32(data, 0)
                .zip(be32(data, 4))
                .map_or(Self::Other, |(value, echo)| Self::Timestamps(value, echo)),
            _ => Self::Other,
        }
    }
}

/// Maximum shift of a TCP window scale option; larger shifts are read as this one (RFC 7323 section 2.3).
pub(crate) const WINDOW_SCALE_MAX: u8 = 14;

/// Iterator over the options of a TCP header: their kinds (IANA registry "TCP Option Kind Numbers") and values. Ends before the
/// end of the list and before the first option that is malformed or not captured as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// Creates an iterator over the options of the captured part of a TCP header.
    pub(crate) fn of(header: &'a [u8]) -> Self {
        let end = header_len(header).unwrap_or(0).min(header.len());
        Self(header.get(HEADER_LEN_MIN..end).unwrap_or_default())
    }
}

impl Iterator for Options<'_> {
    type Item = (u8, OptionValue);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (option, rest) = match *self.0 {
            [] | [OPTION_END, ..] => return None,
            [OPTION_NOP, ref rest @ ..] => ((OPTION_NOP, OptionValue::Other), rest),
            [kind, len, ..] => {
                let (whole, rest) = self.0.split_at_checked(usize::from(len))?;
                ((kind, OptionValue::read(kind, whole.get(2..)?)), rest)
            }
            _ => return None,
        };
        self.0 = rest;
        Some(option)
    }
}

/// Returns the shift in the window scale option of a SYN (RFC 7323 section 2.2), at most [`WINDOW_SCALE_MAX`].
///
/// `header` is the captured part of the TCP header, options included. Linear in the length of `header`.
#[must_use]
pub(crate) fn window_scale(header: &[u8]) -> Option<u8> {
    Options::of(header).find_map(|option| match option {
        (_, OptionValue::WindowScale(shift)) => Some(shift),
        _ => None,
    })
}

/// Makes the TCP header at the start of `data` that of one segment of a super-packet: adds `octet_count`, the payload of
/// the segments before, to the sequence number. FIN and PSH remain set only in the last segment, CWR only in the first.
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) fn set_segment(data: &mut [u8], octet_count: u32, is_last: bool) {
    const FIN_AND_PSH: u8 = 0x09;
    const CWR: u8 = 0x80;
    let Some(header) = data.first_chunk_mut::<HEADER_LEN_MIN>() else { return };
    if let Some(field) = header.get_mut(field::SEQUENCE..field::SEQUENCE + 4) {
        let first = field.iter().fold(0, |word: u32, octet| word << 8 | u32::from(*octet));
        field.copy_from_slice(&first.wrapping_add(octet_count).to_be_bytes());
    }
    let flags = &mut header[field::FLAGS + 1];
    *flags &= if is_last { u8::MAX } else { !FIN_AND_PSH };
    *flags &= if octet_count == 0 { u8::MAX } else { !CWR };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_options(options: &[u8]) -> Vec<u8> {
        let mut header = vec![0; HEADER_LEN_MIN];
        header[12] = ((HEADER_LEN_MIN + options.len()).div_ceil(4) as u8) << 4;
        header.extend_from_slice(options);
        header
    }

    #[test]
    fn window_scale_is_found_after_other_options() {
        assert_eq!(window_scale(&with_options(&[2, 4, 5, 180, 1, 3, 3, 7])), Some(7));
        assert_eq!(window_scale(&with_options(&[3, 3, 200, 0])), Some(14));
        assert_eq!(window_scale(&with_options(&[0, 3, 3, 7])), None);
    }

    #[test]
    fn malformed_options_end_the_search() {
        for options in [&[2, 0, 3, 3][..], &[2, 1, 3, 3], &[2, 40, 3, 3], &[3, 3], &[]] {
            assert_eq!(window_scale(&with_options(options)), None);
        }
        assert_eq!(window_scale(&[0; 12]), None);
    }

    #[test]
    fn fields_are_read_in_place() {
        let mut header = with_options(&[]);
        header[4..16].copy_from_slice(&[0, 0, 0, 5, 0, 0, 0, 9, 0x5f, 0x12, 0xff, 0xfe]);
        let segment = TcpSegment::read(&header).unwrap();
        assert_eq!((segment.seq, segment.ack, segment.window), (SeqNum(5), SeqNum(9), 0xfffe));
        let seen = TcpFlags::RESERVED | TcpFlags::AE | TcpFlags::SYN | TcpFlags::ACK;
        assert_eq!(segment.flags, seen);
        assert!(TcpSegment::read(&header[..15]).is_none());
        let view = Tcp::read(&header).unwrap();
        assert_eq!((view.segment(), view.header_len()), (segment, 20));
        assert!(Tcp::read(&header[..19]).is_none());
        header[16..18].copy_from_slice(&[1, 2]);
        assert_eq!((checksum(&header), checksum(&header[..CHECKSUM_END - 1])), (Some(0x0102), None));
    }
}
