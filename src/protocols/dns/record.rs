//! Questions and records of DNS messages, and the iterator over them.

use super::data::RecordData;
use super::header::{HEADER_LEN, Header, ParseError, Variant};
use super::name::Name;
use super::numbers::{Class, RecordType};
use crate::codec::Reader;

/// Top bit of the class field in multicast DNS: QU in a question, cache-flush in a record.
const MDNS_BIT: u16 = 0x8000;

/// Section of a DNS message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Section with the questions; in an update the zone (RFC 2136 section 2).
    Question,
    /// Section with the answers; in an update the prerequisites. In a query of multicast DNS, known answers.
    Answer,
    /// Section with the authority records; in an update the changes.
    Authority,
    /// Section with the additional records.
    Additional,
}

/// A question of a DNS message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question<'m> {
    /// Domain name that is queried.
    pub name: Name<'m>,
    /// Type of the requested records.
    pub record_type: RecordType,
    /// Class of the requested records.
    pub class: Class,
    /// QU bit of multicast DNS: a unicast response is accepted (RFC 6762 section 5.4).
    pub unicast_response: bool,
}

/// A resource record of a DNS message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Record<'m> {
    /// Name to which the record belongs.
    pub name: Name<'m>,
    /// Type of the record.
    pub record_type: RecordType,
    /// Class of the record; in an OPT record, the number of octets that the sender accepts.
    pub class: Class,
    /// Cache-flush bit of multicast DNS: older records of the same name, type and class are invalid (RFC 6762 section
    /// 10.2).
    pub is_cache_flush: bool,
    /// Time to live in seconds; an OPT record uses the field for other values.
    pub ttl: u32,
    /// Data of the record.
    pub data: RecordData<'m>,
}

/// A question or a record of a DNS message.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'m> {
    /// A question in the first section of the message.
    Question(Question<'m>),
    /// A record and its section; never [`Section::Question`].
    Record(Section, Record<'m>),
}

/// Iterator over the items of a DNS message. Ends at the first item that cannot be parsed.
#[derive(Clone, Debug)]
pub struct Walk<'m> {
    message: &'m [u8],
    at: usize,
    /// Number of items in each section that were not read yet.
    left: [u16; 4],
    is_mdns: bool,
    is_truncated: bool,
    parse_error: Option<ParseError>,
}

impl<'m> Walk<'m> {
    /// Creates the iterator over the captured octets of a message with `len` octets.
    pub(super) const fn new(bytes: &'m [u8], len: usize, header: &Header, variant: Variant) -> Self {
        Self {
            message: bytes,
            at: HEADER_LEN,
            left: header.counts,
            is_mdns: matches!(variant, Variant::Mdns),
            is_truncated: bytes.len() < len,
            parse_error: None,
        }
    }

    /// Returns why iteration ended before all items of the message were read. Meaningless before iteration has ended.
    #[must_use]
    pub const fn parse_error(&self) -> Option<ParseError> {
        self.parse_error
    }

    /// Returns the number of octets of the message after the current position.
    #[must_use]
    pub const fn rest_len(&self) -> usize {
        self.message.len().saturating_sub(self.at)
    }

    /// Returns the section of the next item of the message, if there is one.
    #[must_use]
    pub fn section(&self) -> Option<Section> {
        const SECTIONS: [Section; 4] =
            [Section::Question, Section::Answer, Section::Authority, Section::Additional];
        SECTIONS.into_iter().zip(self.left).find(|(_, left)| *left > 0).map(|(section, _)| section)
    }

    fn read(&mut self) -> Result<Option<Item<'m>>, ParseError> {
        let Some(section) = self.section() else { return Ok(None) };
        let (name, at) = Name::read(self.message, self.at)?;
        let mut reader = Reader::new(self.message.get(at..).unwrap_or_default());
        let record_type = RecordType(reader.be::<u16>().map_err(|_| ParseError::Short)?);
        let class = reader.be::<u16>().map_err(|_| ParseError::Short)?;
        // The class field of OPT is a length.
        let has_bit = self.is_mdns && class & MDNS_BIT != 0 && record_type != RecordType::OPT;
        let class = Class(if has_bit { class & !MDNS_BIT } else { class });
        let item = if section == Section::Question {
            Item::Question(Question { name, record_type, class, unicast_response: has_bit })
        } else {
            let ttl = reader.be::<u32>().map_err(|_| ParseError::Short)?;
            let len = reader.be::<u16>().map_err(|_| ParseError::Short)?;
            let start = at + reader.offset();
            reader.bytes(usize::from(len)).map_err(|_| ParseError::Short)?;
            let data = RecordData::new(self.message, (start, at + reader.offset()), record_type);
            Item::Record(section, Record { name, record_type, class, is_cache_flush: has_bit, ttl, data })
        };
        self.at = at + reader.offset();
        if let Some(left) = self.left.get_mut(section as usize) {
            *left -= 1;
        }
        Ok(Some(item))
    }
}

impl<'m> Iterator for Walk<'m> {
    type Item = Item<'m>;

    fn next(&mut self) -> Option<Item<'m>> {
        if self.parse_error.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|parse_error| {
            self.parse_error = Some(if parse_error == ParseError::Short && self.is_truncated {
                ParseError::Truncated
            } else {
                parse_error
            });
            None
        })
    }
}

impl std::iter::FusedIterator for Walk<'_> {}
