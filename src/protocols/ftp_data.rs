//! FTP's data connection (RFC 959 section 3.2): the octets of a file or a listing.
//!
//! A data connection has no framing, and any port. It is recognized because [`ftp`](super::ftp) announced it, or, without its
//! control connection, by port 20. Roles are those of the control connection: the octets of a download are sent by the
//! server, no matter which end opened the data connection.
//!
//! [`Message::Octets`] and [`Message::Gap`] are the file in order, with its octets borrowed from the segments;
//! [`Message::End`] follows the last octets of a direction. A direction without octets has no messages. A data
//! connection that begins with a ClientHello of TLS (RFC 4217) is parsed as TLS.

use crate::checkpoint::{COUNT_MAX, state};
use crate::session::{
    AfterGap, End as Ended, EndKind, Fault, Input, Missing, Out, Parser, Piece, Progress, Protocol, Role,
};

/// Protocol `ftp_data`: recognized if the control connection announced it, and on port 20.
pub static PROTOCOL: Protocol = Protocol::new("ftp_data")
    .in_zeek("ftp-data")
    .in_eve("ftp-data")
    .over_streams(&[20], None)
    .with_kinds(&["ftp_data"])
    .leading_on()
    .with_limits("none: octets are passed on as they arrive")
    .with_standards("RFC 959");

/// Protocol of encrypted data connections: the protocol of this name in the driver's set of protocols.
static TLS: Protocol = Protocol::new("tls");

crate::messages! {
    /// A message of [`FtpDataParser`].
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// A piece of a file.
        Octets(Octets<'m>),
        /// Octets of a file that were not captured.
        Gap(FileGap),
        /// The end of a file.
        End(End),
    }
}

impl<'m> Message<'m> {
    /// Returns the piece of the file that the message is.
    #[inline]
    #[must_use]
    pub const fn piece(&self) -> Piece<'m> {
        match self {
            Self::Octets(octets) => Piece::octets(0, octets.offset, octets.bytes),
            Self::Gap(gap) => Piece::gap(0, gap.offset, gap.len),
            Self::End(end) => Piece::end(0, end.len, end.is_complete),
        }
    }
}

/// A piece of a file. Its length depends on the captured segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Octets<'m> {
    /// Number of octets of the file before this piece, including missing ones.
    pub offset: u64,
    /// The octets of this piece; written as their number, `len`.
    pub bytes: &'m [u8],
}

crate::message! {
    /// Octets of a file that were not captured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ftp_data.gap" pub struct FileGap {
        /// Number of octets of the file before the gap.
        pub offset: u64 [octets],
        /// Number of missing octets.
        pub len: u64 [octets],
    }
}

crate::message! {
    /// The end of a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ftp_data.end" pub struct End {
        /// Number of octets of the file, including missing ones.
        pub len: u64 [octets],
        /// Number of octets that are missing.
        pub missing_len: u64 [octets],
        /// True if a FIN ended the direction, and no octets are missing.
        pub is_complete: bool,
    }
}

crate::table! {
    /// A piece of a file. Its length depends on the captured segments.
    impl['m] "ftp_data.octets" for Octets<'m> as octets {
        /// Number of octets of the file before this piece, including missing ones.
        "offset": u64 [octets] = octets.offset;
        /// Number of octets of this piece.
        "len": usize [octets] = octets.bytes.len();
    }
}

/// Parser of FTP's data connection; see the [module](self).
#[derive(Debug, Default)]
pub struct FtpDataParser {
    directions: [Direction; 2],
}

#[derive(Debug, Default)]
struct Direction {
    /// Length of the file so far, including missing octets.
    len: u64,
    missing_len: u64,
}

state! { struct FtpDataParser { directions } }
state! { struct Direction { len, missing_len } if |direction| direction.len < COUNT_MAX }

impl Direction {
    /// Reports missing octets.
    fn skip(&mut self, len: u64, out: Out<'_, FtpDataParser>) {
        out(Message::Gap(FileGap { offset: self.len, len }));
        self.len = self.len.saturating_add(len);
        self.missing_len = self.missing_len.saturating_add(len);
    }
}

/// Returns whether octets begin with a record of TLS that begins with a ClientHello; `None` if there are too few.
fn begins_with_hello(octets: &[u8]) -> Option<bool> {
    let is_hello = |octets: &[u8; 6]| {
        let [_, _, minor, high, low, kind] = *octets;
        minor <= 4 && (4..=1 << 14).contains(&u16::from_be_bytes([high, low])) && kind == 1
    };
    let begins = octets.iter().zip([0x16, 3]).all(|(octet, expected)| *octet == expected);
    match octets.first_chunk() {
        _ if !begins => Some(false),
        Some(octets) => Some(is_hello(octets)),
        None => None,
    }
}

impl Parser for FtpDataParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let is_first = self.directions.iter().all(|direction| direction.len == 0);
        if is_first && input.from == Role::Client && input.offset == 0 {
            match begins_with_hello(input.bytes) {
                None => return Ok(Progress::Took(0)),
                Some(true) => return Ok(Progress::Handover { taken: 0, next: Some(&TLS) }),
                Some(false) => {}
            }
        }
        let direction = input.from.of_mut(&mut self.directions);
        if let Some(missing_len) = input.offset.checked_sub(direction.len).filter(|len| *len > 0) {
            direction.skip(missing_len, out);
        }
        out(Message::Octets(Octets { offset: direction.len, bytes: input.bytes }));
        direction.len = direction.len.saturating_add(input.bytes.len() as u64);
        Ok(Progress::Took(input.bytes.len()))
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        let direction = missing.from.of_mut(&mut self.directions);
        let rest_len = missing.rest.len() as u64;
        if rest_len > 0 {
            out(Message::Octets(Octets { offset: direction.len, bytes: missing.rest }));
            direction.len += rest_len;
        }
        let end = missing.offset.saturating_add(missing.len);
        if let Some(len) = end.checked_sub(direction.len).filter(|len| *len > 0) {
            direction.skip(len, out);
        }
        AfterGap::Resume
    }

    fn end(&mut self, end: &Ended<'_>, out: Out<'_, Self>) {
        let direction = end.from.of_mut(&mut self.directions);
        if !end.rest.is_empty() {
            out(Message::Octets(Octets { offset: direction.len, bytes: end.rest }));
            direction.len += end.rest.len() as u64;
        }
        let Direction { len, missing_len } = *direction;
        if len > 0 {
            let is_complete = end.kind == EndKind::Fin && missing_len == 0;
            out(Message::End(End { len, missing_len, is_complete }));
        }
    }

    #[inline]
    fn piece<'m>(message: &'m Message<'_>) -> Option<Piece<'m>> {
        Some(message.piece())
    }
}
