//! Formats of files of flow records, by their first octets.

/// A format of a file of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordFormat {
    /// A JSON object for each record, one a line.
    Ndjson,
    /// Records of 64 octets: [`FixedRecord`](crate::export::FixedRecord).
    Fixed,
    /// IPFIX messages (RFC 5655).
    Ipfix,
    /// Parquet, which the library itself does not read.
    Parquet,
}

impl RecordFormat {
    /// Recognizes a format by the first octets of a file, at least four, unless the file has fewer; `None` for an empty file,
    /// a capture, and any other content. White space is an ndjson file without records.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        let first = head.iter().find(|octet| !octet.is_ascii_whitespace()).copied();
        match head {
            [] => None,
            [0, 10, ..] => Some(Self::Ipfix),
            // The version of fixed records, and not a compressed file.
            [0x10..=0x1f, second, ..] if *second != 0x8b => Some(Self::Fixed),
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            // A capture in pcapng begins with white space.
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => None,
            _ if matches!(first, Some(b'{') | None) => Some(Self::Ndjson),
            _ => None,
        }
    }
}

/// Returns the problem of a file that begins with octets of another format.
pub(super) fn other_content(head: &[u8]) -> &'static str {
    match head {
        [0x0a, 0x0d, 0x0d, 0x0a, ..]
        | [0xa1, 0xb2, 0xc3 | 0x3c, 0xd4 | 0x4d, ..]
        | [0xd4 | 0x4d, 0xc3 | 0x3c, 0xb2, 0xa1, ..] => {
            "is a capture; `flowgauge flows` creates the records of its flows"
        }
        [b'P', b'A', b'R', b'1', ..] => {
            "is a Parquet file, which this build reads only with the feature `arrow`"
        }
        [b'A', b'R', b'R', b'O', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
            "is an Arrow file; write the records as ndjson, IPFIX or Parquet"
        }
        _ => "does not contain flow records as ndjson, IPFIX, Parquet or fixed records",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_recognized_by_the_first_octets() {
        for (head, format) in [
            (&b"{\"a\":1}\n"[..], Some(RecordFormat::Ndjson)),
            (b" \r\n\t{", Some(RecordFormat::Ndjson)),
            (b"\n", Some(RecordFormat::Ndjson)),
            (&[0, 10, 0, 16], Some(RecordFormat::Ipfix)),
            (&[0x12, 6, 0, 0], Some(RecordFormat::Fixed)),
            (b"PAR1", Some(RecordFormat::Parquet)),
            (b"", None),
            (&[0x1f, 0x8b, 8, 0], None),
            (&[0x0a, 0x0d, 0x0d, 0x0a], None),
            (&[0xd4, 0xc3, 0xb2, 0xa1], None),
            (b"protocol,start\n", None),
            (b"[{}]", None),
        ] {
            assert_eq!(RecordFormat::of(head), format, "{head:?}");
        }
    }

    #[test]
    fn other_formats_are_named() {
        for (head, words) in [
            (&[0x4d, 0x3c, 0xb2, 0xa1][..], "is a capture"),
            (&[0x0a, 0x0d, 0x0d, 0x0a], "is a capture"),
            (b"PAR1", "Parquet"),
            (b"ARROW1", "Arrow"),
            (b"a,b\n", "does not contain"),
        ] {
            assert!(other_content(head).contains(words), "{head:?}");
        }
    }
}
