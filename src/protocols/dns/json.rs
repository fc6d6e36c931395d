//! DNS messages as JSON objects.

use std::cell::Cell;
use std::fmt::{self, Write as _};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::edns::{Edns, EdnsOption};
use super::header::ParseError;
use super::message::DnsMessage;
use super::numbers::{Rcode, RecordType};
use super::record::{Item, Question, Record, Section, Walk};

/// Result of one pass through the sections of a DNS message.
struct Outline<'m> {
    /// Iterator positioned at the first item of each section.
    starts: [Option<Walk<'m>>; 4],
    /// Number of questions and records in the message, without OPT records.
    item_count: usize,
    edns: Option<Edns<'m>>,
    parse_error: Option<ParseError>,
    rest_len: usize,
}

impl<'m> Outline<'m> {
    fn of(message: &DnsMessage<'m>) -> Self {
        let mut starts = [const { None }; 4];
        let (mut item_count, mut edns) = (0, None);
        let mut walk = message.items();
        loop {
            let before = walk.clone();
            let Some(item) = walk.next() else { break };
            if is_opt(&item) {
                if let Item::Record(_, record) = &item {
                    edns.get_or_insert_with(|| Edns::of(record));
                }
                continue;
            }
            item_count += 1;
            if let Some(start) = starts.get_mut(section_of(&item) as usize) {
                start.get_or_insert(before);
            }
        }
        let parse_error = walk.parse_error();
        Self {
            starts,
            item_count,
            edns,
            parse_error,
            rest_len: if parse_error.is_some() { 0 } else { walk.rest_len() },
        }
    }
}

fn section_of(item: &Item<'_>) -> Section {
    match item {
        Item::Question(_) => Section::Question,
        Item::Record(section, _) => *section,
    }
}

/// Returns whether an item is an OPT record, which is written under a separate key.
fn is_opt(item: &Item<'_>) -> bool {
    matches!(item, Item::Record(Section::Additional, record) if record.record_type == RecordType::OPT)
}

/// Maximum number of octets of text for the questions and records of a message, in addition to [`TEXT_FACTOR`] per
/// octet of the message.
const TEXT_CREDIT: usize = 1024;

/// Maximum number of octets of text per octet of a message. In responses of servers, name compression expands text by a
/// factor of three, and escaped octets by a factor of four.
const TEXT_FACTOR: usize = 8;

/// Number of octets of text that may still be written for a message, and number of items written.
#[derive(Debug)]
struct Written {
    text_left: Cell<usize>,
    item_count: Cell<usize>,
}

impl Written {
    fn new(message: &DnsMessage<'_>) -> Self {
        let text_left = TEXT_CREDIT + TEXT_FACTOR * message.bytes.len();
        Self { text_left: Cell::new(text_left), item_count: Cell::new(0) }
    }

    fn is_full(&self) -> bool {
        self.text_left.get() == 0
    }
}

/// A value that is written as text, up to the number of octets that may still be written for the message.
struct Limited<'a, T>(&'a T, &'a Written);

impl<T: fmt::Display> fmt::Display for Limited<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text, written) = self;
        let mut writer = LimitedWriter { f, left: written.text_left.get(), is_full: false };
        let outcome = write!(writer, "{text}");
        let is_full = writer.is_full;
        written.text_left.set(if is_full { 0 } else { writer.left });
        if is_full { Ok(()) } else { outcome }
    }
}

impl<T: fmt::Display> Serialize for Limited<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writer that stops with an error when the text reaches the limit.
struct LimitedWriter<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    left: usize,
    is_full: bool,
}

impl fmt::Write for LimitedWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() >= self.left {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.left -= text.len();
        self.f.write_str(text)
    }
}

/// Items of one section of a message, written until the limit of text is reached.
struct Items<'a, 'm>(Section, &'a Walk<'m>, &'a Written);

impl Serialize for Items<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(section, walk, written) = self;
        let mut list = serializer.serialize_seq(None)?;
        let of_section = (*walk).clone().take_while(|item| section_of(item) == *section);
        for item in of_section.filter(|item| !is_opt(item)) {
            if written.is_full() {
                break;
            }
            written.item_count.set(written.item_count.get() + 1);
            match &item {
                Item::Question(question) => list.serialize_element(&LimitedQuestion(question, written))?,
                Item::Record(_, record) => list.serialize_element(&LimitedRecord(record, written))?,
            }
        }
        list.end()
    }
}

struct LimitedQuestion<'a, 'm>(&'a Question<'m>, &'a Written);

impl Serialize for LimitedQuestion<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(Question { name, record_type, class, unicast_response }, written) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &Limited(name, written))?;
        map.serialize_entry("type", record_type)?;
        map.serialize_entry("class", class)?;
        if *unicast_response {
            map.serialize_entry("unicast_response", unicast_response)?;
        }
        map.end()
    }
}

struct LimitedRecord<'a, 'm>(&'a Record<'m>, &'a Written);

impl Serialize for LimitedRecord<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(Record { name, record_type, class, is_cache_flush, ttl, data }, written) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &Limited(name, written))?;
        map.serialize_entry("type", record_type)?;
        map.serialize_entry("class", class)?;
        if *is_cache_flush {
            map.serialize_entry("is_cache_flush", is_cache_flush)?;
        }
        map.serialize_entry("ttl", ttl)?;
        if !data.is_empty() {
            map.serialize_entry("data", &Limited(data, written))?;
        }
        map.end()
    }
}

impl Serialize for DnsMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Outline { starts, item_count, edns, parse_error, rest_len } = Outline::of(self);
        let written = Written::new(self);
        let flags = self.header.flags;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.header.id)?;
        map.serialize_entry("opcode", &flags.opcode())?;
        map.serialize_entry("flags", &Names(self))?;
        let extended = edns.as_ref().map_or(0, |edns| u16::from(edns.extended_rcode));
        let rcode = Rcode(extended << 4 | flags.rcode().0);
        if flags.is_response() || rcode != Rcode(0) {
            map.serialize_entry("rcode", &rcode)?;
        }
        let keys = [
            (Section::Question, "questions"),
            (Section::Answer, "answers"),
            (Section::Authority, "authorities"),
            (Section::Additional, "additionals"),
        ];
        for ((section, key), start) in keys.into_iter().zip(&starts) {
            match start {
                Some(walk) => map.serialize_entry(key, &Items(section, walk, &written))?,
                None if section == Section::Question => map.serialize_entry(key, &[(); 0])?,
                None => {}
            }
        }
        if written.is_full() {
            map.serialize_entry("truncated", &true)?;
            map.serialize_entry("left_out_count", &(item_count - written.item_count.get()))?;
        }
        if let Some(edns) = &edns {
            map.serialize_entry("edns", edns)?;
        }
        if let Some(transaction) = self.transaction {
            map.serialize_entry("transaction", &transaction)?;
        }
        if self.retransmission_count > 0 {
            map.serialize_entry("retransmission_count", &self.retransmission_count)?;
        }
        if let Some(response_time_ns) = self.response_time_ns {
            map.serialize_entry("response_time_ns", &response_time_ns)?;
        }
        if self.earlier_response_count > 0 {
            map.serialize_entry("earlier_response_count", &self.earlier_response_count)?;
        }
        map.serialize_entry("len", &self.len)?;
        if rest_len > 0 {
            map.serialize_entry("trailing_len", &rest_len)?;
        }
        if let Some(parse_error) = parse_error {
            map.serialize_entry("parse_error", &parse_error)?;
        }
        map.end()
    }
}

/// Names of the flags that are set in a DNS message.
struct Names<'a, 'm>(&'a DnsMessage<'m>);

impl Serialize for Names<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.header.flags.names(self.0.variant))
    }
}

impl Serialize for Edns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("udp_payload_len", &self.udp_payload_len)?;
        map.serialize_entry("dnssec_ok", &self.is_dnssec_ok)?;
        if self.options().next().is_some() {
            map.serialize_entry("options", &Options(self))?;
        }
        map.end()
    }
}

struct Options<'a, 'm>(&'a Edns<'m>);

impl Serialize for Options<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.options())
    }
}

impl Serialize for EdnsOption<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.code)?;
        if !self.data.is_empty() {
            map.serialize_entry("data", &format_args!("{self}"))?;
        }
        map.end()
    }
}
