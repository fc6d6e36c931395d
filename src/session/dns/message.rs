//! One message: its header, and what is in it, read while it is looked at.

use super::edns::Edns;
use super::numbers::{Opcode, Rcode, RecordType};
use super::record::{Item, Question, Record, Section, Walk};

/// Octets of the header (RFC 1035 section 4.1.1).
pub const HEADER_LEN: usize = 12;

/// Which of the protocols that share the format a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flavour {
    /// DNS (RFC 1035).
    Dns,
    /// Multicast DNS (RFC 6762): the class has 15 bits, and a flag before them.
    Mdns,
    /// Link-Local Multicast Name Resolution (RFC 4795): other flags.
    Llmnr,
}

/// Why a message is not read to its end. What stands before is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Stop {
    /// A snap length cut it, or octets of the stream are missing.
    Cut,
    /// It ends before its counts and lengths say.
    Short,
    /// A label of a kind that does not exist.
    BadLabel,
    /// A pointer that does not go back, or goes into the header.
    BadPointer,
    /// More pointers in one name than [`JUMP_COUNT_MAX`](super::JUMP_COUNT_MAX).
    TooManyPointers,
    /// A name beyond [`NAME_LEN_MAX`](super::NAME_LEN_MAX).
    LongName,
}

impl Stop {
    /// The reason in a word or two with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Short => "short",
            Self::BadLabel => "bad_label",
            Self::BadPointer => "bad_pointer",
            Self::TooManyPointers => "too_many_pointers",
            Self::LongName => "long_name",
        }
    }
}

/// The second pair of octets of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// QR: a response.
    #[must_use]
    #[inline]
    pub const fn is_response(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// What the message is for.
    #[must_use]
    #[inline]
    pub const fn opcode(self) -> Opcode {
        Opcode((self.0 >> 11 & 15) as u8)
    }

    /// AA: the answer of an authority. In LLMNR C: a conflict.
    #[must_use]
    pub const fn is_authoritative(self) -> bool {
        self.0 & 0x0400 != 0
    }

    /// TC: more than the transport could carry.
    #[must_use]
    pub const fn is_truncated(self) -> bool {
        self.0 & 0x0200 != 0
    }

    /// RD: recursion is desired. In LLMNR T: the answer is tentative.
    #[must_use]
    pub const fn is_recursion_desired(self) -> bool {
        self.0 & 0x0100 != 0
    }

    /// RA: recursion is available.
    #[must_use]
    pub const fn is_recursion_available(self) -> bool {
        self.0 & 0x0080 != 0
    }

    /// AD: the data is authentic (RFC 4035).
    #[must_use]
    pub const fn is_authentic(self) -> bool {
        self.0 & 0x0020 != 0
    }

    /// CD: checking is disabled (RFC 4035).
    #[must_use]
    pub const fn is_checking_disabled(self) -> bool {
        self.0 & 0x0010 != 0
    }

    /// The four bits of the response code that the header has.
    #[must_use]
    pub const fn rcode(self) -> Rcode {
        Rcode(self.0 & 15)
    }

    /// The names of the flags that are set, QR left out, in the order of the bits: `aa`, `tc`, `rd`, `ra`, `z`, `ad`, `cd`;
    /// of LLMNR `c`, `tc`, `t`.
    pub fn names(self, flavour: Flavour) -> impl Iterator<Item = &'static str> {
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
        let known: &[(u16, &str)] = if flavour == Flavour::Llmnr { &LLMNR } else { &DNS };
        known.iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| *name)
    }
}

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// What an answer has in common with its query; zero in multicast DNS.
    pub id: u16,
    /// The flags.
    pub flags: Flags,
    /// How many items each section has, as far as the sender says, in the order of [`Section`].
    pub counts: [u16; 4],
}

impl Header {
    /// Reads it; `None` if there are less than [`HEADER_LEN`] octets.
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

    /// Records that the three sections behind the questions have together, as far as the sender says.
    #[must_use]
    pub(super) fn record_count(&self) -> usize {
        self.counts.iter().skip(1).map(|count| usize::from(*count)).sum()
    }
}

/// A query or a response, and what it has to do with messages before it. Looking at it allocates nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DnsMessage<'m> {
    /// The octets, as far as captured; at least a header.
    pub bytes: &'m [u8],
    /// Octets on the wire.
    pub len: usize,
    /// The header.
    pub header: Header,
    /// Which protocol's.
    pub flavour: Flavour,
    /// The number of the query in its flow, for a query and the responses to it. A query that is sent again keeps it. None of
    /// multicast DNS, of responses whose query was not seen or is too long ago, and of queries without a sound first question.
    pub transaction: Option<u64>,
    /// Of a query: how many times it was sent before.
    pub retransmission_count: u32,
    /// Of a response: nanoseconds since the query was first sent.
    pub response_time_ns: Option<u64>,
    /// Of a response: how many responses to the query came before. A zone transfer has many, as has a resolver whose answer
    /// was doubled on its way, or forged.
    pub earlier_response_count: u32,
}

impl<'m> DnsMessage<'m> {
    /// A message that has nothing to do with others; `None` if there is less than a header. `len` is its length on the wire.
    #[must_use]
    pub fn read(bytes: &'m [u8], len: usize, flavour: Flavour) -> Option<Self> {
        let header = Header::read(bytes)?;
        Some(Self {
            bytes,
            len: len.max(bytes.len()),
            header,
            flavour,
            transaction: None,
            retransmission_count: 0,
            response_time_ns: None,
            earlier_response_count: 0,
        })
    }

    /// Questions and records in their order, as far as they can be read; [`Walk::stop`] says why it ended.
    #[must_use]
    pub const fn items(&self) -> Walk<'m> {
        Walk::new(self)
    }

    /// The questions; of an update, its zone.
    pub fn questions(&self) -> impl Iterator<Item = Question<'m>> {
        self.items().map_while(|item| match item {
            Item::Question(question) => Some(question),
            Item::Record(..) => None,
        })
    }

    /// The records, with the section that each stands in; OPT records are among them.
    pub fn records(&self) -> impl Iterator<Item = (Section, Record<'m>)> {
        self.items().filter_map(|item| match item {
            Item::Record(section, record) => Some((section, record)),
            Item::Question(_) => None,
        })
    }

    /// The answers; of an update, its prerequisites.
    pub fn answers(&self) -> impl Iterator<Item = Record<'m>> {
        self.records().take_while(|(section, _)| *section == Section::Answer).map(|(_, record)| record)
    }

    /// What its OPT record says, if it has one.
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

    /// The response code: four bits of the header, and eight of the OPT record if there is one.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        let extended = self.edns().map_or(0, |edns| u16::from(edns.extended_rcode));
        Rcode(extended << 4 | self.header.flags.rcode().0)
    }

    /// Why it cannot be read to its end; `None` if it can. Reads it all.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        let mut walk = self.items();
        walk.by_ref().for_each(drop);
        walk.stop()
    }
}
