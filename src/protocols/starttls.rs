//! A request for TLS on a plaintext connection, and the octets after it (RFC 3207 section 4, RFC 4217 section 4).

/// State of a request for TLS.
///
/// A granted request is followed by a TLS record, or by text in captures that were decrypted: the first octet that
/// either side sends next decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StartTls {
    #[default]
    No,
    /// The client sent the request.
    Requested,
    /// The client sent the request, and a TLS record before the reply was seen.
    RequestedAndBegun,
    /// The server granted the request.
    Granted,
}

/// The kind of octets at the start of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A line.
    Line,
    /// A TLS record.
    Tls,
    /// Unknown until more octets or the reply of the server are received.
    Undecided,
}

impl StartTls {
    /// Returns whether the client waits for a reply to its request.
    pub(super) const fn is_requested(self) -> bool {
        matches!(self, Self::Requested | Self::RequestedAndBegun)
    }

    /// Records that the server granted the request. Returns whether TLS has begun already.
    pub(super) fn grant(&mut self) -> bool {
        std::mem::replace(self, Self::Granted) == Self::RequestedAndBegun
    }

    /// Classifies the client's octets at the start of a line; `is_reply_lost` if no reply to a request will be seen.
    pub(super) const fn client(&mut self, octets: &[u8], is_reply_lost: bool) -> Next {
        match (*self, octets) {
            (Self::Granted, [first, ..]) if is_text(*first) => {
                *self = Self::No;
                Next::Line
            }
            (Self::Granted, [_, ..]) => Next::Tls,
            (Self::No, _) if !is_reply_lost => Next::Line,
            (_, [0x16]) => Next::Undecided,
            (_, [0x16, 3, ..]) if is_reply_lost => Next::Tls,
            (_, [0x16, 3, ..]) => {
                *self = Self::RequestedAndBegun;
                Next::Undecided
            }
            _ => Next::Line,
        }
    }

    /// Classifies the server's octets where a reply has to begin.
    pub(super) const fn server(self, octets: &[u8]) -> Next {
        match (self, octets) {
            (Self::Granted, [first, ..]) if !is_text(*first) => Next::Tls,
            _ => Next::Line,
        }
    }
}

/// Returns whether a line may begin with an octet: TLS records and hellos of SSL 2.0 begin with others.
const fn is_text(octet: u8) -> bool {
    octet.is_ascii_graphic() || octet.is_ascii_whitespace()
}
