//! Warnings about damaged input. They are not errors, because all frames before the damage were delivered.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::memory::Refused;

/// Position at which reading of a capture ended prematurely.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Path of the capture; `-` for standard input, `(stream)` for a reader, and the address of the peer for a
    /// connection, such as `tcp 192.0.2.1:40000`.
    pub path: PathBuf,
    /// Octets from the start of the capture to the record that could not be read, after decompression.
    pub offset: u64,
    /// Number of the frame, counted from one in this file, that could not be read.
    pub frame_number: u64,
    /// Kind of damage, and its details.
    pub kind: WarningKind,
}

/// Kind of damage in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// The input ends within a record: truncated, or still being written.
    Truncated {
        /// Number of octets that the record needs, as far as it is known.
        need: u64,
        /// Number of octets of the record that are present.
        have: u64,
    },
    /// A record or block is invalid, so reading of the file ended there.
    BadBlock(BadBlock),
    /// The compressed data is damaged, or ends prematurely ([`io::ErrorKind::UnexpectedEof`]).
    Compression(io::ErrorKind),
    /// A connection was closed because it did not start with the header of a capture. Contains a description of what
    /// it sent instead, such as `text`.
    NotACapture(&'static str),
    /// A connection ended with an error of the operating system.
    Io(io::ErrorKind),
    /// A connection was closed for another reason.
    Connection(&'static str),
    /// The network interface was disabled; the capture continues when it is enabled again.
    InterfaceDown,
}

/// Reason that a record of a pcap file or a block of a pcapng file is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadBlock {
    /// The block's total length, in octets, is below the minimum or not a multiple of four.
    TotalLen(u32),
    /// The block is longer than [`Limits::block_len_max`](crate::base::Limits::block_len_max). The value is
    /// its length in octets.
    TooLong(u32),
    /// The length fields at the start and at the end of a block differ.
    Trailer {
        /// Length field at the start of the block.
        leading: u32,
        /// Length field at the end of the block.
        trailing: u32,
    },
    /// The byte-order magic of a section header has a value of neither byte order.
    ByteOrder(u32),
    /// The section has an unsupported version.
    Version {
        /// Major version of the section.
        major: u16,
        /// Minor version of the section.
        minor: u16,
    },
    /// The frame belongs to the interface with this index, which its section does not describe.
    UnknownInterface(u32),
    /// The section has more interfaces than
    /// [`Limits::interface_count_max`](crate::base::Limits::interface_count_max).
    TooManyInterfaces,
    /// The captured length of the frame exceeds the octets in its block.
    FrameLen {
        /// Captured length of the frame according to the block, in octets.
        need: u32,
        /// Number of octets in the block that are available for the frame.
        have: u32,
    },
    /// The frame is longer than [`Limits::frame_len_max`](crate::base::Limits::frame_len_max). The value is
    /// its captured length in octets.
    FrameTooLong(u32),
}

impl fmt::Display for BadBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TotalLen(len) => write!(f, "{len} octets is not a valid block length"),
            Self::TooLong(len) => write!(f, "the block of {len} octets exceeds the limit"),
            Self::Trailer { leading, trailing } => {
                write!(
                    f,
                    "the block length is {leading} at the start of the block, but {trailing} at its end"
                )
            }
            Self::ByteOrder(magic) => write!(f, "0x{magic:08x} is not a byte-order magic"),
            Self::Version { major, minor } => {
                write!(f, "the section has the unsupported version {major}.{minor}")
            }
            Self::UnknownInterface(number) => write!(f, "the section does not describe interface {number}"),
            Self::TooManyInterfaces => {
                f.write_str("the number of interfaces in the section exceeds the limit")
            }
            Self::FrameLen { need, have } => {
                write!(f, "the frame has a length of {need} octets, but its block contains only {have}")
            }
            Self::FrameTooLong(len) => write!(f, "the frame of {len} octets exceeds the limit"),
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { need, have } => {
                write!(f, "truncated: the record needs {need} octets, but only {have} are present")
            }
            Self::BadBlock(bad) => write!(f, "invalid record: {bad}; the rest of the file is skipped"),
            Self::Compression(io::ErrorKind::UnexpectedEof) => {
                f.write_str("the compressed data is truncated")
            }
            Self::Compression(_) => {
                f.write_str("the compressed data is damaged; the rest of the file is skipped")
            }
            Self::NotACapture(looks_like) => {
                write!(
                    f,
                    "not a pcap or pcapng capture: it looks like {looks_like}; the connection was closed"
                )
            }
            Self::Io(kind) => write!(f, "the connection ended: {kind}"),
            Self::InterfaceDown => f.write_str("the interface is down; the capture waits for it"),
            Self::Connection(reason) => write!(f, "the connection was closed: {reason}"),
        }
    }
}

impl fmt::Display for Warning {
    /// Formats the warning as one line: path, position, and kind of damage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, frame_number, kind } = self;
        // The others are not about a position.
        if !matches!(
            kind,
            WarningKind::Truncated { .. } | WarningKind::BadBlock(_) | WarningKind::Compression(_)
        ) {
            return write!(f, "{}: {kind}", path.display());
        }
        write!(f, "{}: at offset {offset}, frame {frame_number}: {kind}", path.display())
    }
}

/// Reason that a walk over the records in a block of octets ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The record at the returned offset is incomplete; it needs at least this number of octets from its
    /// start.
    Need(usize),
    /// The record at the returned offset is invalid.
    Bad(BadBlock),
    /// The content of the record at the returned offset needs more memory than is available.
    NoMemory(Refused),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_one_line_with_the_position() {
        let warning = Warning {
            path: "day.pcap".into(),
            offset: 100,
            frame_number: 3,
            kind: WarningKind::Truncated { need: 60, have: 7 },
        };
        let line =
            "day.pcap: at offset 100, frame 3: truncated: the record needs 60 octets, but only 7 are present";
        assert_eq!(warning.to_string(), line);
    }
}
