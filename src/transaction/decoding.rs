//! Result of decoding a body, and the bound on the work of decoding.

use crate::checkpoint::state;

/// Result of decoding the content coding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decoding {
    /// The whole body was decoded.
    Decoded,
    /// Octets follow the end of the coded content; those before it were decoded.
    Trailing,
    /// The end of the coded content is missing; the octets before it were decoded.
    Cut,
    /// Not decoded: octets of the body are missing.
    Incomplete,
    /// Not decoded: the octets are not those of the coding.
    Invalid,
    /// Not decoded: the body expands too much, or too many bodies are being decoded.
    Limit,
    /// Not decoded: the coding is unknown, or there are several.
    Unsupported,
}

impl Decoding {
    /// Returns true if the body was decoded, at least up to where its coding ends or is cut.
    #[must_use]
    pub const fn is_decoded(self) -> bool {
        matches!(self, Self::Decoded | Self::Trailing | Self::Cut)
    }
}

state! { enum Decoding {
    0 = Decoded, 1 = Trailing, 2 = Cut, 3 = Incomplete, 4 = Invalid, 5 = Limit, 6 = Unsupported,
} }

crate::row::cells! {
    name Decoding {
        Decoded => "decoded",
        Trailing => "trailing",
        Cut => "cut",
        Incomplete => "incomplete",
        Invalid => "invalid",
        Limit => "limit",
        Unsupported => "unsupported",
    }
}

/// Work that each received octet of a connection pays for, in decoded octets without digests. Text is rarely compressed to
/// less than a tenth; the formats permit a thousandth and less.
const FACTOR: u64 = 64;

/// Work that a connection may cause in addition.
const INITIAL: u64 = 16 << 10;

/// Work of decoding that the octets of a connection have paid for.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodingCredit {
    spent: u64,
}

state! { struct DecodingCredit { spent } }

impl DecodingCredit {
    /// Spends an amount of work, in decoded octets without digests, if the received octets of the connection
    /// ([`MessageMeta::received_len`](crate::session::MessageMeta::received_len)) pay for it. Returns whether they do; if
    /// not, nothing is spent.
    #[must_use]
    pub fn spend(&mut self, received_len: u64, amount: u64) -> bool {
        let after = self.spent.saturating_add(amount);
        let is_granted = after <= received_len.saturating_mul(FACTOR).saturating_add(INITIAL);
        if is_granted {
            self.spent = after;
        }
        is_granted
    }
}
