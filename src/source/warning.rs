//! Where input broke: not an error, as everything before the place was delivered.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::memory::Refused;

/// A place at which reading of a capture ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The file; `-` for standard input, `(stream)` for a reader.
    pub path: PathBuf,
    /// Octets from the start of the capture, decompressed, to the record that could not be read.
    pub offset: u64,
    /// The number, counted from one, that the next frame of this file would have had.
    pub frame_number: u64,
    /// What is wrong there.
    pub kind: WarningKind,
}

/// In which way input broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// The input ends within a record: cut short, or still being written.
    Truncated {
        /// Octets that the record asks for, as far as is known.
        need: u64,
        /// Octets that are there.
        have: u64,
    },
    /// A record or block that cannot be.
    BadBlock(BadBlock),
    /// The compressed data is damaged, or ends early ([`io::ErrorKind::UnexpectedEof`]).
    Compression(io::ErrorKind),
}

/// Why a record of a pcap file or a block of a pcapng file cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadBlock {
    /// The block's total length is below its least possible one, or no multiple of four.
    TotalLen(u32),
    /// The block is longer than [`Limits::block_len_max`](crate::base::Limits::block_len_max).
    TooLong(u32),
    /// The two lengths that enclose a block differ.
    Trailer {
        /// The length ahead of the block.
        leading: u32,
        /// The length after it.
        trailing: u32,
    },
    /// A section's byte-order magic is neither of the two.
    ByteOrder(u32),
    /// A section of a version that this crate does not know.
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// A frame of an interface that its section does not describe.
    UnknownInterface(u32),
    /// More interfaces in one section than [`Limits::interface_count_max`](crate::base::Limits::interface_count_max).
    TooManyInterfaces,
    /// A frame claims more octets than its block holds.
    FrameLen {
        /// Octets claimed.
        need: u32,
        /// Octets there.
        have: u32,
    },
    /// A frame is longer than [`Limits::frame_len_max`](crate::base::Limits::frame_len_max).
    FrameTooLong(u32),
}

impl fmt::Display for BadBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TotalLen(len) => write!(f, "a block cannot have a length of {len} octets"),
            Self::TooLong(len) => write!(f, "a block of {len} octets exceeds the limit"),
            Self::Trailer { leading, trailing } => {
                write!(f, "a block begins with length {leading} and ends with length {trailing}")
            }
            Self::ByteOrder(magic) => write!(f, "0x{magic:08x} is no byte-order magic"),
            Self::Version { major, minor } => write!(f, "a section of unknown version {major}.{minor}"),
            Self::UnknownInterface(number) => write!(f, "interface {number} is not described"),
            Self::TooManyInterfaces => f.write_str("more interfaces in a section than the limit"),
            Self::FrameLen { need, have } => {
                write!(f, "a frame claims {need} octets where its block has {have}")
            }
            Self::FrameTooLong(len) => write!(f, "a frame of {len} octets exceeds the limit"),
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { need, have } => {
                write!(f, "cut short: the record needs {need} octets, {have} are there")
            }
            Self::BadBlock(bad) => write!(f, "bad record: {bad}"),
            Self::Compression(io::ErrorKind::UnexpectedEof) => f.write_str("the compressed data ends early"),
            Self::Compression(_) => f.write_str("the compressed data is damaged"),
        }
    }
}

impl fmt::Display for Warning {
    /// One line: file, place, what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, frame_number, kind } = self;
        write!(f, "{}: at offset {offset}, frame {frame_number}: {kind}", path.display())
    }
}

/// Why a walk over a block of bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The record at the place needs this many octets from there on.
    Need(usize),
    /// The record at the place cannot be read.
    Bad(BadBlock),
    /// What the record at the place describes would take more memory than there is.
    NoMemory(Refused),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_one_line_with_the_place() {
        let warning = Warning {
            path: "day.pcap".into(),
            offset: 100,
            frame_number: 3,
            kind: WarningKind::Truncated { need: 60, have: 7 },
        };
        let line = "day.pcap: at offset 100, frame 3: cut short: the record needs 60 octets, 7 are there";
        assert_eq!(warning.to_string(), line);
    }
}
