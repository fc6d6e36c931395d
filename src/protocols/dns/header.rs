//! Header of a DNS message, and the reasons for which the rest cannot be parsed.

use super::numbers::{Opcode, Rcode};

/// Length of the DNS message header in octets (RFC 1035 section 4.1.1).
pub const HEADER_LEN: usize = 12;

/// Protocol of a message: DNS, or a protocol that shares its message format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// Unicast DNS (RFC 1035).
    Dns,
    /// Multicast DNS (RFC 6762): the top bit of the class field is a flag, and the class has 15 bits.
    Mdns,
    /// Link-Local Multicast Name Resolution (RFC 4795): some header flags have other meanings.
    Llmnr,
}

/// Reason why parsing of a DNS message stopped early. Everything parsed before is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseError {
    /// The message is truncated by the snap length, or octets of the stream are missing.
    Truncated,
    /// The message ends before its counts and lengths indicate.
    Short,
    /// A label of a name has an undefined type.
    BadLabel,
    /// A pointer in a name does not point backward, or points into the header.
    BadPointer,
    /// A name has more pointers than [`JUMP_COUNT_MAX`](super::JUMP_COUNT_MAX).
    TooManyPointers,
    /// A name is longer than [`NAME_LEN_MAX`](super::NAME_LEN_MAX).
    LongName,
}

crate::row::cells! {
    name ParseError {
        Truncated => "truncated",
        Short => "short",
        BadLabel => "bad_label",
        BadPointer => "bad_pointer",
        TooManyPointers => "too_many_pointers",
        LongName => "long_name",
    }
}

/// Flags of a DNS message header: the third and fourth octets of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

crate::checkpoint::state! { numbers Flags }

impl Flags {
    /// Returns the QR flag: the message is a response.
    #[must_use]
    #[inline]
    pub const fn is_response(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns the operation code in the flags.
    #[must_use]
    #[inline]
    pub const fn opcode(self) -> Opcode {
        Opcode((self.0 >> 11 & 15) as u8)
    }

    /// Returns the AA flag: the answer is authoritative. In LLMNR the bit is C: a conflict.
    #[must_use]
    pub const fn is_authoritative(self) -> bool {
        self.0 & 0x0400 != 0
    }

    /// Returns the TC flag: the message is truncated to what the transport could carry.
    #[must_use]
    pub const fn is_truncated(self) -> bool {
        self.0 & 0x0200 != 0
    }

    /// Returns the RD flag: recursion is desired. In LLMNR the bit is T: the answer is tentative.
    #[must_use]
    pub const fn is_recursion_desired(self) -> bool {
        self.0 & 0x0100 != 0
    }

    /// Returns the RA flag: recursion is available.
    #[must_use]
    pub const fn is_recursion_available(self) -> bool {
        self.0 & 0x0080 != 0
    }

    /// Returns the AD flag: the data is authentic (RFC 4035).
    #[must_use]
    pub const fn is_authentic(self) -> bool {
        self.0 & 0x0020 != 0
    }

    /// Returns the CD flag: checking is disabled (RFC 4035).
    #[must_use]
    pub const fn is_checking_disabled(self) -> bool {
        self.0 & 0x0010 != 0
    }

    /// Returns the lower four bits of the response code, which are in the header.
    #[must_use]
    pub const fn rcode(self) -> Rcode {
        Rcode(self.0 & 15)
    }

    /// Iterates over the names of the flags that are set, except for QR, in the order of the bits: `aa`, `tc`, `rd`,
    /// `ra`, `z`, `ad`, `cd`; for LLMNR `c`, `tc`, `t`.
    pub fn names(self, variant: Variant) -> impl Iterator<Item = &'static str> + Clone {
        const DNS: [(u16, &str); 7] = [
            (0x0400, "aa"),
            (0x0200, "tc"),
            (0x0100, "rd"),
            (0x0080, "ra"),
            (0x0040, "z"),
            (0x0020, "ad"),
            (0x0010, "cd"),
        ];
        const LLMNR: [(u16, &str); 3] = [(0x0400, "c"), (0x0200, "tc"), (0x0100, "t")];
        let known: &[(u16, &str)] = if variant == Variant::Llmnr { &LLMNR } else { &DNS };
        known.iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| *name)
    }
}

/// Header of a DNS message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Identifier that a response shares with its query; zero in multicast DNS.
    pub id: u16,
    /// The flags, including the operation code and the response code.
    pub flags: Flags,
    /// Number of items in each section as claimed by the sender of the message, in the order of [`Section`](super::Section).
    pub counts: [u16; 4],
}

impl Header {
    /// Parses the DNS header at the start of a message; `None` if there are fewer than [`HEADER_LEN`] octets.
    #[must_use]
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [i, d, f, l, q, qd, a, an, n, ns, r, ar] = *bytes.first_chunk::<HEADER_LEN>()?;
        let number = |high, low| u16::from_be_bytes([high, low]);
        Some(Self {
            id: number(i, d),
            flags: Flags(number(f, l)),
            counts: [number(q, qd), number(a, an), number(n, ns), number(r, ar)],
        })
    }

    /// Returns the total number of records in the three sections after the questions, as claimed by the sender.
    #[must_use]
    pub(super) fn record_count(&self) -> usize {
        self.counts.iter().skip(1).map(|count| usize::from(*count)).sum()
    }
}
