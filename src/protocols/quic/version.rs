//! QUIC versions, and how they differ in packets that any observer can parse.

use std::fmt;

use crate::row::{Cell, Column, List, ListOf, Type, Visitor};

/// A QUIC version number as in long headers. Written as its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u32);

crate::checkpoint::state! { numbers Version }

/// First version of mvfst, which has the headers and keys of draft 17.
const MVFST_DRAFT_17: u32 = 0xface_b000;
/// Second version of mvfst, which has the keys of draft 22.
const MVFST_DRAFT_22: u32 = 0xface_b001;

/// Ranges of the version numbers that implementations have registered (the QUIC working group's list of versions), the
/// first and the last number of each.
const REGISTERED: [(u32, u32); 8] = [
    // picoquic.
    (0x5043_5130, 0x5043_513f),
    // quic-go.
    (0x5147_4f00, 0x5147_4fff),
    // quicly.
    (0x91c1_7000, 0x91c1_70ff),
    // WinQuic.
    (0xabcd_0000, 0xabcd_000f),
    // Measurements of ETH Zürich.
    (0xf0f0_f0f0, 0xf0f0_f0ff),
    // QUIC-LB.
    (0xf100_0000, 0xf100_00ff),
    // MozQuic.
    (0xf123_f0c0, 0xf123_f0cf),
    // mvfst.
    (0xface_b000, 0xface_b0ff),
];

impl Version {
    /// Reserved value that marks a Version Negotiation packet.
    pub(super) const NEGOTIATION: Self = Self(0);
    /// QUIC version 1 (RFC 9000).
    pub const V1: Self = Self(1);
    /// QUIC version 2 (RFC 9369).
    pub const V2: Self = Self(0x6b33_43cf);

    /// Returns the number of the IETF draft that the version implements, for example 29 for `draft-29`; `None` for
    /// other versions.
    #[must_use]
    pub const fn draft(self) -> Option<u8> {
        if self.0 >> 8 == 0x00ff_0000 { Some(self.0 as u8) } else { None }
    }

    /// Returns whether the version has the form `0x?a?a?a?a`. Such versions are never used, and are listed only to
    /// check that a peer ignores them (RFC 9000 section 15).
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// Returns whether the version is one of Google's versions that preceded the standard, such as `Q043` and `T051`.
    #[must_use]
    pub const fn is_google(self) -> bool {
        let [kind, zero, tens, ones] = self.0.to_be_bytes();
        matches!(kind, b'Q' | b'T') && zero == b'0' && tens.is_ascii_digit() && ones.is_ascii_digit()
    }

    /// Returns whether the version is one of mvfst, the implementation of Facebook.
    #[must_use]
    pub const fn is_mvfst(self) -> bool {
        self.0 >> 8 == 0x00fa_ceb0
    }

    /// Returns whether Initial packets of the version are parsed: versions 1 and 2, drafts 22 to 34, and the versions
    /// of mvfst except its first.
    #[must_use]
    pub const fn is_read(self) -> bool {
        self.rules().is_some()
    }

    /// Returns whether a long header with this version is likely QUIC: the version is parsed, of an IETF draft, or
    /// registered by an implementation.
    pub(super) fn is_known(self) -> bool {
        let is_registered = || REGISTERED.iter().any(|(first, last)| (*first..=*last).contains(&self.0));
        self.is_read() || self.is_google() || self.is_reserved() || self.draft().is_some() || is_registered()
    }

    /// Returns whether a long header of the version may have the lengths of both connection ids in one octet: up to
    /// draft 21, and to version 46 of Google.
    pub(super) const fn has_short_lengths(self) -> bool {
        match self.draft() {
            Some(draft) => draft <= 21,
            None => self.0 == MVFST_DRAFT_17 || self.is_google() && self.0 <= u32::from_be_bytes(*b"Q046"),
        }
    }

    /// Returns whether transport parameters have the encoding of RFC 9000 section 18, which is that of draft 27.
    pub(super) const fn has_varint_parameters(self) -> bool {
        match self.draft() {
            Some(draft) => draft >= 27,
            None => self.0 != MVFST_DRAFT_22,
        }
    }

    /// Returns the constants for parsing the packets of the version; `None` if the version is not parsed.
    pub(super) const fn rules(self) -> Option<&'static Rules> {
        match (self, self.draft()) {
            (Self::V1 | Self(0xface_b003 | 0xface_b004), _) | (_, Some(33..=34)) => Some(&RULES_V1),
            (Self::V2, _) => Some(&RULES_V2),
            (_, Some(29..=32)) => Some(&RULES_DRAFT_29),
            (_, Some(23..=28)) => Some(&RULES_DRAFT_23),
            (Self(MVFST_DRAFT_22), _) | (_, Some(22)) => Some(&RULES_DRAFT_22),
            (Self(MVFST_DRAFT_17), _) => None,
            _ if self.is_mvfst() => Some(&RULES_DRAFT_23),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.draft()) {
            (Self::V1, _) => f.write_str("1"),
            (Self::V2, _) => f.write_str("2"),
            (_, Some(draft)) => write!(f, "draft-{draft}"),
            _ if self.is_google() => write!(f, "{}", self.0.to_be_bytes().escape_ascii()),
            _ => write!(f, "0x{:08x}", self.0),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Constants of Initial and Retry packets that depend on the QUIC version.
#[derive(Debug)]
pub(super) struct Rules {
    /// Salt from which the Initial secret is derived (RFC 9001 section 5.2).
    pub(super) salt: [u8; 20],
    /// Prefix of the HKDF labels for packet protection keys, such as `quic` in `quic key`.
    pub(super) label: &'static str,
    /// Value of the two type bits of Initial packets in a long header. The values of 0-RTT, Handshake and Retry packets
    /// follow in this order, modulo four.
    pub(super) initial_bits: u8,
    /// Key and nonce of the integrity tag of Retry packets (RFC 9001 section 5.8); `None` if they are not implemented
    /// for the version.
    pub(super) retry: Option<([u8; 16], [u8; 12])>,
}

static RULES_V1: Rules = Rules {
    salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
        0xbb, 0x7f, 0x0a,
    ],
    label: "quic",
    initial_bits: 0,
    retry: Some((
        [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e],
        [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb],
    )),
};

static RULES_V2: Rules = Rules {
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
        0xbd, 0x2e, 0xd9,
    ],
    label: "quicv2",
    initial_bits: 1,
    retry: Some((
        [0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92],
        [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a],
    )),
};

static RULES_DRAFT_29: Rules = Rules {
    salt: [
        0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0, 0x43,
        0x90, 0xa8, 0x99,
    ],
    label: "quic",
    initial_bits: 0,
    retry: Some((
        [0xcc, 0xce, 0x18, 0x7e, 0xd0, 0x9a, 0x09, 0xd0, 0x57, 0x28, 0x15, 0x5a, 0x6c, 0xb9, 0x6b, 0xe1],
        [0xe5, 0x49, 0x30, 0xf9, 0x7f, 0x21, 0x36, 0xf0, 0x53, 0x0a, 0x8c, 0x1c],
    )),
};

static RULES_DRAFT_22: Rules = Rules {
    salt: [
        0x7f, 0xbc, 0xdb, 0x0e, 0x7c, 0x66, 0xbb, 0xe9, 0x19, 0x3a, 0x96, 0xcd, 0x21, 0x51, 0x9e, 0xbd, 0x7a,
        0x02, 0x64, 0x4a,
    ],
    label: "quic",
    initial_bits: 0,
    retry: None,
};

static RULES_DRAFT_23: Rules = Rules {
    salt: [
        0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65, 0xbe,
        0xf9, 0xf5, 0x02,
    ],
    label: "quic",
    initial_bits: 0,
    retry: None,
};

/// List of QUIC versions, encoded in four octets each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Versions<'m>(pub(super) &'m [u8]);

impl<'m> Versions<'m> {
    /// Iterates over the versions in the order of the list, including reserved ones.
    pub fn iter(&self) -> impl Iterator<Item = Version> + Clone + use<'m> {
        self.0
            .chunks_exact(4)
            .map(|version| Version(version.iter().fold(0, |number, octet| number << 8 | u32::from(*octet))))
    }
}

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

crate::row::cells! { displayed Version; }

impl Cell for Versions<'_> {
    const TYPE: Type = ListOf::<Version>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter()).visit(column, visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_distinguished_by_their_numbers() {
        let properties = |number| {
            let version = Version(number);
            (version.to_string(), version.is_read(), version.is_google(), version.is_reserved())
        };
        assert_eq!(properties(1), ("1".to_owned(), true, false, false));
        assert_eq!(properties(0x6b33_43cf), ("2".to_owned(), true, false, false));
        assert_eq!(properties(0xff00_001d), ("draft-29".to_owned(), true, false, false));
        assert_eq!(properties(0xff00_0012), ("draft-18".to_owned(), false, false, false));
        assert_eq!(properties(0x5130_3433), ("Q043".to_owned(), false, true, false));
        assert_eq!(properties(0x5430_3531), ("T051".to_owned(), false, true, false));
        assert_eq!(properties(0xfaca_1a4a), ("0xfaca1a4a".to_owned(), false, false, true));
        assert_eq!(properties(0xface_b002), ("0xfaceb002".to_owned(), true, false, false));
        assert_eq!(properties(0xface_b000), ("0xfaceb000".to_owned(), false, false, false));
    }
}
