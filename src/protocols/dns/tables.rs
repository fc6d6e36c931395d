//! Tables of DNS messages.

use std::cell::Cell as Shared;
use std::fmt::{self, Write as _};
use std::time::Duration;

use super::edns::{Edns, EdnsOption};
use super::header::ParseError;
use super::message::DnsMessage;
use super::numbers::{Class, Opcode, OptionCode, Rcode, RecordType};
use super::record::{Item, Question, Record, Section, Walk};
use crate::row::{Column, Displayed, Group, List, ListOf, Name, Row, RowType, Table, Visitor};

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
    text_left: Shared<usize>,
    item_count: Shared<usize>,
}

impl Written {
    fn new(message: &DnsMessage<'_>) -> Self {
        let text_left = TEXT_CREDIT + TEXT_FACTOR * message.bytes.len();
        Self { text_left: Shared::new(text_left), item_count: Shared::new(0) }
    }

    fn is_full(&self) -> bool {
        self.text_left.get() == 0
    }
}

/// A value that is written as text, up to the number of octets that may still be written for the message.
#[derive(Clone, Copy)]
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

/// Iterates over the items of one section of a message, until the limit of text is reached.
fn items<'a, 'm>(
    section: Section,
    walk: &Walk<'m>,
    written: &'a Written,
) -> impl Iterator<Item = Item<'m>> + Clone + use<'a, 'm> {
    let of_section = walk.clone().take_while(move |item| section_of(item) == section);
    of_section.filter(|item| !is_opt(item)).take_while(|_| {
        let is_listed = !written.is_full();
        written.item_count.set(written.item_count.get() + usize::from(is_listed));
        is_listed
    })
}

/// A message with what one pass through its sections found.
struct Outlined<'a, 'm> {
    message: &'a DnsMessage<'m>,
    outline: Outline<'m>,
    written: Written,
}

impl<'m> Outlined<'_, 'm> {
    fn questions(&self) -> impl Iterator<Item = Group<LimitedQuestion<'_, 'm>>> + Clone {
        let walk = self.outline.starts.first().into_iter().flatten();
        let items = walk.flat_map(|walk| items(Section::Question, walk, &self.written));
        items.filter_map(|item| match item {
            Item::Question(question) => Some(Group(LimitedQuestion(question, &self.written))),
            Item::Record(..) => None,
        })
    }

    /// Returns the records of a section; `None` if it has no items.
    fn records(
        &self,
        section: Section,
    ) -> Option<List<impl Iterator<Item = Group<LimitedRecord<'_, 'm>>> + Clone>> {
        let walk = self.outline.starts.get(section as usize)?.as_ref()?;
        Some(List(items(section, walk, &self.written).filter_map(|item| match item {
            Item::Record(_, record) => Some(Group(LimitedRecord(record, &self.written))),
            Item::Question(_) => None,
        })))
    }

    /// Returns the response code: four bits of the header, and eight of the OPT record. `None` for a query without one.
    fn rcode(&self) -> Option<Rcode> {
        let flags = self.message.header.flags;
        let extended = self.outline.edns.as_ref().map_or(0, |edns| u16::from(edns.extended_rcode));
        let rcode = Rcode(extended << 4 | flags.rcode().0);
        (flags.is_response() || rcode != Rcode(0)).then_some(rcode)
    }
}

struct LimitedQuestion<'a, 'm>(Question<'m>, &'a Written);

crate::table! {
    /// A question of a DNS message.
    impl['a, 'm] "dns.question" for LimitedQuestion<'a, 'm> as question {
        /// Domain name that is queried.
        "name": Displayed<&'static str> => Displayed(Limited(&question.0.name, question.1));
        /// Type of the requested records.
        "type": RecordType = question.0.record_type;
        /// Class of the requested records.
        "class": Class = question.0.class;
        /// QU bit of multicast DNS: a unicast response is accepted (RFC 6762 section 5.4).
        "unicast_response": bool [sparse] = question.0.unicast_response;
    }
}

struct LimitedRecord<'a, 'm>(Record<'m>, &'a Written);

crate::table! {
    /// A resource record of a DNS message.
    impl['a, 'm] "dns.record" for LimitedRecord<'a, 'm> as record {
        /// Name to which the record belongs.
        "name": Displayed<&'static str> => Displayed(Limited(&record.0.name, record.1));
        /// Type of the record.
        "type": RecordType = record.0.record_type;
        /// Class of the record.
        "class": Class = record.0.class;
        /// Cache-flush bit of multicast DNS (RFC 6762 section 10.2).
        "is_cache_flush": bool [sparse] = record.0.is_cache_flush;
        /// Time to live.
        "ttl": u32 [seconds] = record.0.ttl;
        /// Data of the record as in a zone file.
        "data": Option<Displayed<&'static str>> =>
            (!record.0.data.is_empty()).then_some(Displayed(Limited(&record.0.data, record.1)));
    }
}

crate::table! {
    /// Contents of an OPT record (RFC 6891).
    impl['m] "dns.edns" for Edns<'m> as edns {
        /// EDNS version of the sender; only 0 is assigned.
        "version": u8 = edns.version;
        /// Number of octets that the sender accepts in one datagram.
        "udp_payload_len": u16 [octets] = edns.udp_payload_len;
        /// True if the sender accepts DNSSEC records.
        "dnssec_ok": bool = edns.is_dnssec_ok;
        /// Options.
        "options": ListOf<Group<EdnsOption<'m>>> [sparse] => List(edns.options().map(Group));
    }
}

crate::table! {
    /// An EDNS option.
    impl['m] "dns.edns_option" for EdnsOption<'m> as option {
        /// Name of the option.
        "name": OptionCode = option.code;
        /// Data of the option: a client subnet, an extended error, or hexadecimal digits.
        "data": Option<Displayed<&'static str>> => (!option.data.is_empty()).then_some(Displayed(option));
    }
}

crate::table! {
    /// A DNS query or response, and its relation to earlier messages.
    impl['a, 'm] "dns.message" for Outlined<'a, 'm> as outlined {
        /// Identifier of the message.
        "id": u16 = outlined.message.header.id;
        /// Operation.
        "opcode": Opcode = outlined.message.header.flags.opcode();
        /// Names of the flags that are set, except for QR.
        "flags": ListOf<Name> => List(outlined.message.header.flags.names(outlined.message.variant).map(Name));
        /// Response code, with the bits of the OPT record; null for a query without one.
        "rcode": Option<Rcode> = outlined.rcode();
        /// Questions; in an update the zone.
        "questions": ListOf<Group<LimitedQuestion<'static, 'static>>> => List(outlined.questions());
        /// Answers; in an update the prerequisites.
        "answers": Option<ListOf<Group<LimitedRecord<'static, 'static>>>> => outlined.records(Section::Answer);
        /// Authority records; in an update the changes.
        "authorities": Option<ListOf<Group<LimitedRecord<'static, 'static>>>> => outlined.records(Section::Authority);
        /// Additional records, without the OPT record.
        "additionals": Option<ListOf<Group<LimitedRecord<'static, 'static>>>> => outlined.records(Section::Additional);
        /// True if questions or records are missing because their text is longer than the limit.
        "truncated": bool [sparse] = outlined.written.is_full();
        /// Number of questions and records that are missing for that reason.
        "left_out_count": Option<usize> =
            outlined.written.is_full().then(|| outlined.outline.item_count - outlined.written.item_count.get());
        /// Contents of the OPT record.
        "edns": Option<Group<Edns<'static>>> => outlined.outline.edns.as_ref().map(Group);
        /// Number of the query in its flow, for a query and its responses.
        "transaction": Option<u64> = outlined.message.transaction;
        /// For a query: number of times it was sent before.
        "retransmission_count": u32 [sparse] = outlined.message.retransmission_count;
        /// For a response: time since its query was first sent.
        "response_time": Option<Duration> = outlined.message.response_time;
        /// For a response: number of earlier responses to the same query.
        "earlier_response_count": u32 [sparse] = outlined.message.earlier_response_count;
        /// Length of the message on the wire.
        "len": usize [octets] = outlined.message.len;
        /// Number of octets after the last record.
        "trailing_len": usize [octets, sparse] = outlined.outline.rest_len;
        /// Why the message cannot be parsed to its end.
        "parse_error": Option<ParseError> = outlined.outline.parse_error;
    }
}

impl RowType for DnsMessage<'_> {
    fn columns() -> Vec<&'static Column> {
        Outlined::columns()
    }
}

impl Row for DnsMessage<'_> {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        let (outline, written) = (Outline::of(self), Written::new(self));
        Outlined { message: self, outline, written }.visit(visitor);
    }
}

impl Table for DnsMessage<'_> {
    const NAME: &'static str = Outlined::NAME;
    const DESCRIPTION: &'static str = Outlined::DESCRIPTION;
    const COLUMNS: &'static [Column] = Outlined::COLUMNS;
}
