//! Messages of the TFTP parser.

use crate::protocols::ftp_data::{End, FileGap, Octets};
use crate::row::cells;
use crate::session::{Piece, Text};

crate::messages! {
    /// A message of [`TftpParser`](super::TftpParser).
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// A request of a client.
        Request(Request<'m>),
        /// The options that the server accepted.
        OptionAcknowledgment(OptionAcknowledgment),
        /// A piece of a file.
        Octets(Octets<'m>) = "tftp.octets",
        /// Octets of a file that were not captured.
        Gap(FileGap) = "tftp.gap",
        /// The end of a file.
        End(End) = "tftp.end",
        /// An error that one side reports.
        Error(Error<'m>),
    }
}

impl<'m> Message<'m> {
    /// Returns the piece of a file that the message is.
    #[inline]
    #[must_use]
    pub const fn piece(&self) -> Option<Piece<'m>> {
        match self {
            Self::Octets(octets) => Some(Piece::octets(0, octets.offset, octets.bytes)),
            Self::Gap(gap) => Some(Piece::gap(0, gap.offset, gap.len)),
            Self::End(end) => Some(Piece::end(0, end.len, end.is_complete)),
            _ => None,
        }
    }
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The client reads a file.
    Read,
    /// The client writes a file.
    Write,
}

cells! {
    name Operation { Read => "read", Write => "write" }
}

crate::message! {
    /// A request of a client (RFC 1350 section 5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tftp.request" pub struct Request<'m> {
        /// Number of the request in its flow, starting at 0. A repeated request has another number.
        pub transaction: u64,
        /// The operation: `read` or `write`.
        pub operation: Operation,
        /// Name of the file, as sent.
        pub file_name: Text<'m>,
        /// The mode: `octet`, `netascii` or `mail`, in any case.
        pub mode: Text<'m>,
        /// Block size that the client proposes.
        pub block_len: Option<u16> [octets],
        /// Length of the file; 0 in a request to read one, whose reply states it.
        pub file_len: Option<u64> [octets],
        /// Time after which a block is repeated, in seconds.
        pub timeout_s: Option<u8>,
        /// Number of blocks of a window that the client proposes.
        pub window_len: Option<u16>,
    }
}

crate::message! {
    /// The options that the server accepted (RFC 2347).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    "tftp.option_acknowledgment" pub struct OptionAcknowledgment {
        /// Block size.
        pub block_len: Option<u16> [octets],
        /// Length of the file.
        pub file_len: Option<u64> [octets],
        /// Time after which a block is repeated, in seconds.
        pub timeout_s: Option<u8>,
        /// Number of blocks of a window.
        pub window_len: Option<u16>,
    }
}

crate::message! {
    /// An error that one side reports (RFC 1350 section 5), which ends the transfer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tftp.error" pub struct Error<'m> {
        /// Code of the error, such as 1 for a file that was not found.
        pub code: u16,
        /// Description of the error.
        pub text: Text<'m>,
    }
}
