//! DNS message; its sections are parsed on iteration.

use std::time::Duration;

use super::edns::Edns;
use super::header::{Header, ParseError, Variant};
use super::numbers::{Rcode, RecordType};
use super::record::{Item, Question, Record, Section, Walk};

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
    /// for multicast DNS, and for messages without a valid first question. A response in a datagram without an earlier
    /// query has a number of its own, which a query that was captured up to 50 ms later shares; in a stream, its number is
    /// `None`.
    pub transaction: Option<u64>,
    /// For a query: number of times it was sent before. A datagram is a retransmission until 50 ms after the latest message of
    /// the exchange, because the response to an earlier transmission may be captured before it.
    pub retransmission_count: u32,
    /// For a response: time since its query was first sent.
    pub response_time: Option<Duration>,
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
            response_time: None,
            earlier_response_count: 0,
        })
    }

    /// Iterates over questions and records of the message in their order, up to the first one that is malformed;
    /// [`Walk::parse_error`] returns the reason.
    #[must_use]
    pub const fn items(&self) -> Walk<'m> {
        Walk::new(self.bytes, self.len, &self.header, self.variant)
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
