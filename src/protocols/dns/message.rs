//! Message with its header; sections are parsed on iteration.

use super::edns::Edns;
use super::numbers::{Opcode, Rcode, RecordType};
use super::record::{Item, Question, Record, Section, Walk};

/// Length of the header in octets (RFC 1035 section 4.1.1).
pub const HEADER_LEN: usize = 12;

/// Protocol of a message, of those that share the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// DNS (RFC 1035).
    Dns,
    /// Multicast DNS (RFC 6762): the top bit of the class field is a flag, and the class has 15 bits.
    Mdns,
    /// Link-Local Multicast Name Resolution (RFC 4795): flags with other meanings.
    Llmnr,
}

/// Reason why parsing of a message stopped early. Everything parsed before is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ParseError {
    /// Truncated by the snap length, or octets of the stream are missing.
    Truncated,
    /// Ends before its counts and lengths indicate.
    Short,
    /// A label of an undefined type.
    BadLabel,
    /// A pointer that does not point backward, or points into the header.
    BadPointer,
    /// More pointers in one name than [`JUMP_COUNT_MAX`](super::JUMP_COUNT_MAX).
    TooManyPointers,
    /// A name longer than [`NAME_LEN_MAX`](super::NAME_LEN_MAX).
    LongName,
}

impl ParseError {
    /// Returns the reason as one or two words joined by underscores.
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

/// Flags of a header: its third and fourth octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// Returns whether QR is set: the message is a response.
    #[must_use]
    #[inline]
    pub const fn is_response(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns the opcode.
    #[must_use]
    #[inline]
    pub const fn opcode(self) -> Opcode {
        Opcode((self.0 >> 11 & 15) as u8)
    }

    /// Returns AA: the answer is authoritative. In LLMNR the bit is C: a conflict.
    #[must_use]
    pub const fn is_authoritative(self) -> bool {
        self.0 & 0x0400 != 0
    }

    /// Returns TC: the message is truncated to what the transport could carry.
    #[must_use]
    pub const fn is_truncated(self) -> bool {
        self.0 & 0x0200 != 0
    }

    /// Returns RD: recursion is desired. In LLMNR the bit is T: the answer is tentative.
    #[must_use]
    pub const fn is_recursion_desired(self) -> bool {
        self.0 & 0x0100 != 0
    }

    /// Returns RA: recursion is available.
    #[must_use]
    pub const fn is_recursion_available(self) -> bool {
        self.0 & 0x0080 != 0
    }

    /// Returns AD: the data is authentic (RFC 4035).
    #[must_use]
    pub const fn is_authentic(self) -> bool {
        self.0 & 0x0020 != 0
    }

    /// Returns CD: checking is disabled (RFC 4035).
    #[must_use]
    pub const fn is_checking_disabled(self) -> bool {
        self.0 & 0x0010 != 0
    }

    /// Returns the four bits of the response code in the header.
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

/// Message header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Identifier that a response shares with its query; zero in multicast DNS.
    pub id: u16,
    /// The flags.
    pub flags: Flags,
    /// Number of items in each section as claimed by the sender, in the order of [`Section`].
    pub counts: [u16; 4],
}

impl Header {
    /// Parses a header; `None` if there are fewer than [`HEADER_LEN`] octets.
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

/// A query or a response, and its relation to earlier messages. Parsing its sections allocates nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DnsMessage<'m> {
    /// Captured octets; at least a header.
    pub bytes: &'m [u8],
    /// Length on the wire in octets.
    pub len: usize,
    /// The header.
    pub header: Header,
    /// Protocol of the message.
    pub variant: Variant,
    /// Number of the query in its flow, for a query and its responses. A retransmitted query keeps its number. `None`
    /// for multicast DNS, for responses whose query was not captured or is too old, and for queries without a valid
    /// first question.
    pub transaction: Option<u64>,
    /// Number of earlier transmissions, for a query.
    pub retransmission_count: u32,
    /// Nanoseconds since the query was first sent, for a response.
    pub response_time_ns: Option<u64>,
    /// Number of earlier responses to the same query, for a response. Not zero in a zone transfer, and if a response
    /// was duplicated in the network or forged.
    pub earlier_response_count: u32,
}

impl<'m> DnsMessage<'m> {
    /// Parses a message without relation to others; `None` if there is less than a header. `len` is its length on the
    /// wire.
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

    /// Iterates over questions and records in their order, up to the first that is malformed; [`Walk::parse_error`] returns
    /// the reason.
    #[must_use]
    pub const fn items(&self) -> Walk<'m> {
        Walk::new(self)
    }

    /// Iterates over the questions; in an update, the zone.
    pub fn questions(&self) -> impl Iterator<Item = Question<'m>> {
        self.items().map_while(|item| match item {
            Item::Question(question) => Some(question),
            Item::Record(..) => None,
        })
    }

    /// Iterates over the records, each with its section; OPT records are included.
    pub fn records(&self) -> impl Iterator<Item = (Section, Record<'m>)> {
        self.items().filter_map(|item| match item {
            Item::Record(section, record) => Some((section, record)),
            Item::Question(_) => None,
        })
    }

    /// Iterates over the answers; in an update, the prerequisites.
    pub fn answers(&self) -> impl Iterator<Item = Record<'m>> {
        self.records().take_while(|(section, _)| *section == Section::Answer).map(|(_, record)| record)
    }

    /// Returns the contents of the OPT record, if there is one.
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

    /// Returns the response code: four bits of the header, and eight of the OPT record if there is one.
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
