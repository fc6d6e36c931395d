//! A request for TLS on a plaintext connection, and the octets that follow it (RFC 3207 section 4, RFC 4217 section 4).

/// State of a client's request for TLS on a plaintext connection.
///
/// A granted request is followed by a TLS record, or by text in captures that were decrypted: the first octet that
/// either side sends next decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StartTls {
    #[default]
    No,
    /// The client sent the request for TLS, and the server has not replied.
    Requested,
    /// The client sent the request for TLS, and then a TLS record before the server's reply was seen.
    RequestedAndBegun,
    /// The server granted the request for TLS.
    Granted,
}

crate::checkpoint::state! { enum StartTls { 0 = No, 1 = Requested, 2 = RequestedAndBegun, 3 = Granted } }

/// The kind of octets where a line of text may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The octets are a line of text.
    Line,
    /// The octets are a TLS record.
    Tls,
    /// The kind is unknown until more octets or the reply of the server are received.
    Undecided,
}

impl StartTls {
    /// Returns whether the client waits for a reply to its request for TLS.
    pub(super) const fn is_requested(self) -> bool {
        matches!(self, Self::Requested | Self::RequestedAndBegun)
    }

    /// Records that the server granted the request for TLS. Returns whether the client has sent a TLS record already.
    pub(super) fn grant(&mut self) -> bool {
        std::mem::replace(self, Self::Granted) == Self::RequestedAndBegun
    }

    /// Classifies the client's octets where a line may begin. `is_reply_lost` is true if no reply to a request for TLS
    /// will be seen.
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

    /// Classifies the server's octets where a reply must begin.
    pub(super) const fn server(self, octets: &[u8]) -> Next {
        match (self, octets) {
            (Self::Granted, [first, ..]) if !is_text(*first) => Next::Tls,
            _ => Next::Line,
        }
    }
}

/// Returns whether a line of text may begin with this octet. TLS records and SSL 2.0 hellos begin with other octets.
const fn is_text(octet: u8) -> bool {
    octet.is_ascii_graphic() || octet.is_ascii_whitespace()
}
