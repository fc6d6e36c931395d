//! DNS message with its header; sections are parsed on iteration.

use super::edns::Edns;
use super::numbers::{Opcode, Rcode, RecordType};
use super::record::{Item, Question, Record, Section, Walk};

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
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
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

impl ParseError {
    /// Returns the name of the reason, which is one or two words joined by underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Short => "short",
            Self::BadLabel => "bad_label",
            Self::BadPointer => "bad_pointer",
            Self::TooManyPointers => "too_many_pointers",
            Self::LongName => "long_name",
        }
    }
}

/// Flags of a DNS message header: the third and fourth octets of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

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
    pub fn names(self, variant: Variant) -> impl Iterator<Item = &'static str> {
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
    /// Number of items in each section as claimed by the sender of the message, in the order of [`Section`].
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

/// A DNS query or response, and its relation to earlier messages. Parsing its sections allocates nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DnsMessage<'m> {
    /// Captured octets of the message; at least a header.
    pub bytes: &'m [u8],
    /// Length of the message on the wire in octets.
    pub len: usize,
    /// The header of the message.
    pub header: Header,
    /// Protocol of the message, DNS or one that shares its format.
    pub variant: Variant,
    /// Number of the query in its flow, for a query and its responses. A retransmitted query keeps this number. `None`
    /// for multicast DNS, for responses to a query that was not captured or is too old, and for queries without a valid
    /// first question.
    pub transaction: Option<u64>,
    /// For a query: number of times it was sent before.
    pub retransmission_count: u32,
    /// For a response: nanoseconds since its query was first sent.
    pub response_time_ns: Option<u64>,
    /// For a response: number of earlier responses to the same query. Not zero in a zone transfer, and if a response
    /// was duplicated in the network or forged.
    pub earlier_response_count: u32,
}

impl<'m> DnsMessage<'m> {
    /// Parses a message without its relation to other messages; `None` if there is less than a header. `len` is the
    /// length of the message on the wire in octets.
    #[must_use]
    pub fn read(bytes: &'m [u8], len: usize, variant: Variant) -> Option<Self> {
        let header = Header::read(bytes)?;
        Some(Self {
            bytes,
            len: len.max(bytes.len()),
            header,
            variant,
            transaction: None,
            retransmission_count: 0,
            response_time_ns: None,
            earlier_response_count: 0,
        })
    }

    /// Iterates over questions and records of the message in their order, up to the first one that is malformed;
    /// [`Walk::parse_error`] returns the reason.
    #[must_use]
    pub const fn items(&self) -> Walk<'m> {
        Walk::new(self)
    }

    /// Iterates over the questions of the message; in an update, this section contains the zone.
    pub fn questions(&self) -> impl Iterator<Item = Question<'m>> {
        self.items().map_while(|item| match item {
            Item::Question(question) => Some(question),
            Item::Record(..) => None,
        })
    }

    /// Iterates over the records of the message, each with its section; OPT records are included.
    pub fn records(&self) -> impl Iterator<Item = (Section, Record<'m>)> {
        self.items().filter_map(|item| match item {
            Item::Record(section, record) => Some((section, record)),
            Item::Question(_) => None,
        })
    }

    /// Iterates over the answer records of the message; in an update, this section contains the prerequisites.
    pub fn answers(&self) -> impl Iterator<Item = Record<'m>> {
        self.records().take_while(|(section, _)| *section == Section::Answer).map(|(_, record)| record)
    }

    /// Returns the contents of the message's OPT record, if there is one.
    #[must_use]
    pub fn edns(&self) -> Option<Edns<'m>> {
        if self.header.counts.last() == Some(&0) {
            return None;
        }
        let is_opt = |(section, record): &(Section, Record<'m>)| {
            *section == Section::Additional && record.record_type == RecordType::OPT
        };
        self.records().find(is_opt).map(|(_, record)| Edns::of(&record))
    }

    /// Returns the response code of the message: four bits of the header, and eight of the OPT record if there is one.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        let extended = self.edns().map_or(0, |edns| u16::from(edns.extended_rcode));
        Rcode(extended << 4 | self.header.flags.rcode().0)
    }

    /// Returns why the message cannot be parsed to its end; `None` if it can. Parses the whole message.
    #[must_use]
    pub fn parse_error(&self) -> Option<ParseError> {
        let mut walk = self.items();
        walk.by_ref().for_each(drop);
        walk.parse_error()
    }
}
