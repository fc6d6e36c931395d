//! Detection of the format from the first octets of an input.

use std::path::Path;

use super::error::Error;
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::pcap::{self, Pcap};
use super::pcapng::{self, Pcapng};
use super::walk::{Candidate, Sinks};
use super::warning::{BadBlock, Stop};
use crate::base::Limits;

/// Compression method of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Gzip,
    Zstd,
}

impl Method {
    #[cfg_attr(feature = "compression", allow(dead_code))]
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Detects the compression method by the first octets of an input: gzip (RFC 1952 section 2.3.1), or zstd
    /// (RFC 8878 sections 3.1.1 and 3.1.2), which may start with a skippable frame.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Capture format of an input, with the state of reading it.
#[derive(Debug)]
pub(super) enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl Format {
    /// Describes the frames of all complete records in `bytes` from the offset `at` on, without copying them.
    /// Returns the offset after the last complete record and the reason that the walk ended.
    pub(super) fn walk(&mut self, bytes: &[u8], at: usize, sinks: &mut Sinks<'_, '_>) -> (usize, Stop) {
        match self {
            Self::Pcap(pcap) => pcap.walk(bytes, at, sinks),
            Self::Pcapng(pcapng) => pcapng.walk(bytes, at, sinks),
        }
    }

    /// Number of octets that determine the length of a record in any format.
    pub(super) const HEADER_LEN_MAX: usize = 32;

    /// Returns the number of octets of which the offset of each record is a multiple.
    pub(super) const fn alignment(&self) -> usize {
        match self {
            Self::Pcap(_) => 1,
            Self::Pcapng(_) => 4,
        }
    }

    /// Returns the record at the start of `bytes`, if its header is plausible.
    pub(super) fn candidate(&self, bytes: &[u8]) -> Option<Candidate> {
        match self {
            Self::Pcap(pcap) => pcap.candidate(bytes),
            Self::Pcapng(pcapng) => pcapng.candidate(bytes),
        }
    }

    /// Returns whether records are read in the same way.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            // The header of the file determines the way.
            (Self::Pcap(_), Self::Pcap(_)) => true,
            (Self::Pcapng(one), Self::Pcapng(other)) => one.agrees_with(other),
            _ => false,
        }
    }

    /// Adds the interface that the file header describes to the table `interfaces`, if the format is pcap.
    pub(super) fn number_interfaces(&mut self, interfaces: &mut Interfaces) {
        if let Self::Pcap(pcap) = self {
            pcap.number(interfaces);
        }
    }
}

/// Result of detecting the format from the octets read so far.
#[derive(Debug)]
pub(super) enum Head {
    /// More octets are needed; the value is the total number of octets needed from the start of the input.
    Need(usize),
    Compressed,
    /// The input is a capture in this format. The number is the offset at which reading of records starts, in
    /// octets.
    Capture(Format, usize),
}

/// Number of octets at the start of an input that identify gzip, zstd, pcap and pcapng reliably.
pub(super) const MAGIC_LEN: usize = 4;

/// Detects the format of an input from its first octets, `head`.
///
/// # Errors
///
/// Returns [`Error::NotACapture`] for an unknown format, and [`Error::Version`] for an unsupported version of
/// a capture format.
pub(super) fn judge(head: &[u8], path: &Path, limits: &Limits, memory: &Memory) -> Result<Head, Error> {
    let Some(magic) = head.first_chunk::<MAGIC_LEN>() else {
        return Ok(Head::Need(MAGIC_LEN));
    };
    if Method::of(head).is_some() {
        return Ok(Head::Compressed);
    }
    let version_error =
        |format, (major, minor)| Error::Version { path: path.to_owned(), format, major, minor };
    if *magic == pcapng::SECTION_TYPE {
        return match pcapng::section_head(head) {
            Err(Stop::Need(len)) => Ok(Head::Need(len)),
            Err(Stop::Bad(BadBlock::Version { major, minor })) => {
                Err(version_error("pcapng", (major, minor)))
            }
            Err(_) => Err(not_a_capture(path, "pcapng with a damaged first block")),
            Ok(_) => Ok(Head::Capture(Format::Pcapng(Pcapng::new(limits, memory)), 0)),
        };
    }
    if !Pcap::knows(*magic) {
        return Err(not_a_capture(path, looks_like(head)));
    }
    let Some(header) = head.first_chunk::<{ pcap::FILE_HEADER_LEN }>() else {
        return Ok(Head::Need(pcap::FILE_HEADER_LEN));
    };
    let pcap = Pcap::new(header, limits).map_err(|version| version_error("pcap", version))?;
    Ok(Head::Capture(Format::Pcap(pcap), pcap::FILE_HEADER_LEN))
}

/// Returns the error for an input that ends before its format and header are complete.
pub(super) fn too_short(head: &[u8], path: &Path) -> Error {
    match head {
        [] => Error::Empty { path: path.to_owned() },
        _ if head.len() >= MAGIC_LEN => {
            not_a_capture(path, "a capture that is truncated within its first header")
        }
        _ => not_a_capture(path, looks_like(head)),
    }
}

/// Returns the error for an input whose compressed content is compressed too.
pub(super) fn compressed_twice(path: &Path) -> Error {
    not_a_capture(path, "data that was compressed twice")
}

/// Returns the error for an input whose compressed data has no beginning that can be decompressed.
pub(super) fn damaged_compression(path: &Path) -> Error {
    not_a_capture(path, "compressed data that is truncated or damaged near its beginning")
}

fn not_a_capture(path: &Path, looks_like: &'static str) -> Error {
    Error::NotACapture { path: path.to_owned(), looks_like }
}

/// Returns a short description of the apparent content of an input that is not a capture, for users who
/// specified the wrong file.
fn looks_like(head: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 12] = [
        (b"BZh", "bzip2, which is not supported"),
        (b"\xfd7zXZ", "xz, which is not supported"),
        (b"\x04\x22\x4d\x18", "lz4, which is not supported"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x7fELF", "a program"),
        (b"snoop\0", "snoop, which is not supported"),
        (b"GMBU", "Network Monitor, which is not supported"),
        (b"RTSS", "Network Monitor 1, which is not supported"),
        (b"TRSNIFF", "Sniffer, which is not supported"),
        (b"XCP\0", "NetXRay, which is not supported"),
        (b"\xa1\xb2\xcd", "a pcap of an unknown variant"),
        (b"{", "JSON text"),
    ];
    let text = |octet: &u8| matches!(octet, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    if let Some((_, words)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        words
    } else if head.iter().all(|octet| *octet == 0) {
        "zeros"
    } else if head.iter().all(text) && head.iter().any(u8::is_ascii) {
        "text"
    } else {
        "unknown binary data"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(head: &[u8]) -> Result<Head, Error> {
        judge(head, Path::new("f"), &Limits::DEFAULT, &Memory::new(&Limits::DEFAULT.into()))
    }

    #[test]
    fn compression_is_recognized_by_its_magic_number() {
        for (head, method) in [
            (b"\x1f\x8b\x08\0", Method::Gzip),
            (b"\x28\xb5\x2f\xfd", Method::Zstd),
            (b"\x52\x2a\x4d\x18", Method::Zstd),
        ] {
            assert_eq!(Method::of(head), Some(method));
            assert!(matches!(judged(head), Ok(Head::Compressed)));
        }
    }

    #[test]
    fn other_file_types_are_named() {
        for (head, words) in [
            (&b"hello world"[..], "text"),
            (b"\0\0\0\0", "zeros"),
            (b"\x7fELF\x02\x01", "a program"),
            (b"{\"a\":1}", "JSON text"),
            (b"\x01\x02\x03\x04", "unknown binary data"),
        ] {
            let message = judged(head).unwrap_err().to_string();
            assert!(message.ends_with(words), "{message}");
        }
    }

    #[test]
    fn an_incomplete_head_needs_more_data() {
        assert!(matches!(judged(b"\xd4\xc3"), Ok(Head::Need(4))));
        assert!(matches!(judged(b"\xd4\xc3\xb2\xa1\x02\0"), Ok(Head::Need(24))));
        assert!(matches!(judged(b"\x0a\x0d\x0d\x0a"), Ok(Head::Need(_))));
        assert!(matches!(too_short(b"", Path::new("f")), Error::Empty { .. }));
        assert!(too_short(b"\xd4\xc3\xb2\xa1\x02", Path::new("f")).to_string().contains("truncated"));
        assert!(too_short(b"hi\n", Path::new("f")).to_string().ends_with("text"));
    }
}
