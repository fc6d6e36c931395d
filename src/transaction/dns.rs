//! Queries of DNS with their responses.

use std::time::Duration;

use super::open::{Copier, HeapLen, Open, Pending};
use super::span::Span;
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::protocols::dns::{
    Class, DnsMessage, EARLY_NS, Flags, Message, Opcode, Rcode, RecordType, Section,
};
use crate::session::Lack;
use crate::session::MessageMeta;

/// Maximum number of answers that are kept.
const ANSWER_MAX: usize = 256;

/// Maximum number of records of the authority section that are kept.
const AUTHORITY_MAX: usize = 32;

crate::message! {
    /// A query of DNS or LLMNR, with its first response.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.dns" pub struct Dns {
        /// Number of the query in its flow, or of a response in a datagram without one; absent for other responses without one.
        pub number: Option<u64>,
        /// Identifier in the header.
        pub id: u16,
        /// Operation code.
        pub opcode: Option<Opcode>,
        /// Name of the first question.
        pub query: Option<Box<str>>,
        /// Type of the first question.
        pub query_type: Option<RecordType>,
        /// Class of the first question.
        pub query_class: Option<Class>,
        /// Number of times the query was sent again.
        pub retransmission_count: u32,
        /// Time from the query to its first response.
        pub response_time: Option<Duration>,
        /// How long the query waited for a response, until it was abandoned.
        pub waited: Option<Duration>,
        /// Response code.
        pub rcode: Option<Rcode>,
        /// Whether the response is authoritative.
        pub authoritative: Option<bool>,
        /// Whether the response is truncated.
        pub truncated: Option<bool>,
        /// Whether recursion is desired, in the query or else in the response.
        pub recursion_desired: bool,
        /// Whether recursion is available.
        pub recursion_available: Option<bool>,
        /// Data of the records of the answer section in presentation format, at most 256.
        pub answers: Vec<Box<str>>,
        /// Types of these records.
        pub answer_types: Vec<RecordType>,
        /// Time to live of these records in seconds.
        pub ttls: Vec<u32>,
        /// Number of records in the authority section.
        pub authority_count: Option<u16>,
        /// Number of records in the additional section, without OPT.
        pub additional_count: Option<u16>,
        ..
        /// The flags of the query.
        pub query_flags: Option<Flags>,
        /// True if a section of the response has a record, OPT included.
        pub has_records: bool,
        /// The flags of the response.
        pub response_flags: Option<Flags>,
        /// Names to which the records of the answer section belong.
        pub answer_names: Vec<Box<str>>,
        /// The first 32 records of the authority section.
        pub authorities: Vec<DnsRecord>,
    }
}

/// A record of the authority section.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DnsRecord {
    /// Name to which the record belongs.
    pub name: Box<str>,
    /// Type of the record.
    pub record_type: RecordType,
    /// Time to live in seconds.
    pub ttl: u32,
    /// Data of the record in presentation format.
    pub data: Box<str>,
}

state! { struct Dns {
    number, id, opcode, query, query_type, query_class, retransmission_count, response_time, waited, rcode,
    authoritative, truncated, recursion_desired, recursion_available, answers, answer_types, ttls, authority_count,
    additional_count, query_flags, has_records, response_flags, answer_names, authorities,
} }
state! { struct DnsRecord { name, record_type, ttl, data } }

/// The open transactions of a flow.
#[derive(Debug, Default)]
pub(super) struct DnsOpen(Open<Dns>);

state! { numbers DnsOpen }

/// A query that waits has no lists.
impl HeapLen for Dns {}

impl DnsOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.0.heap_len()
    }

    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<Dns>),
    ) {
        while let Some(pending) = self.0.take_first(|pending| is_without_query(pending, meta.timestamp)) {
            out(pending);
        }
        match message {
            Message::Query(query) => {
                let Some(number) = query.transaction else { return };
                match self.0.get(number) {
                    Some(early) if early.content.response_flags.is_some() => {
                        // The query is later in the capture, but not in time if corrected times are out of order.
                        let response_time = early.span.start.saturating_since(meta.timestamp);
                        early.content.response_time = Some(response_time).filter(|time| !time.is_zero());
                        early.span.extend(meta);
                        early.lacks = early.lacks.filter(|lack| *lack != Lack::Request);
                        early.content.query_flags = Some(query.header.flags);
                        early.content.recursion_desired = query.header.flags.is_recursion_desired();
                        self.0.take(number).into_iter().for_each(out);
                    }
                    Some(pending) => {
                        pending.span.extend(meta);
                        pending.content.retransmission_count = query.retransmission_count;
                    }
                    // The transaction ended with the response to an earlier transmission.
                    None if query.retransmission_count > 0 => {}
                    None => {
                        let mut copier = Copier::default();
                        let query_flags = Some(query.header.flags);
                        let dns = Dns { query_flags, ..question(query, &mut copier) };
                        self.0.push(Pending::new(number, Span::of(meta), dns, &copier), out);
                    }
                }
            }
            Message::Response(response) if response.earlier_response_count == 0 => {
                let known = response.transaction.and_then(|number| self.0.take(number));
                let is_early = known.is_none();
                let mut copier = Copier::default();
                let mut pending = known.unwrap_or_else(|| {
                    let dns = question(response, &mut copier);
                    let number = response.transaction.unwrap_or_default();
                    let mut pending = Pending::new(number, Span::of(meta), dns, &Copier::default());
                    pending.lack(Lack::Request);
                    pending
                });
                pending.span.extend(meta);
                answer(&mut pending.content, response, &mut copier);
                pending.add(&copier);
                match response.transaction {
                    // Its query may follow.
                    Some(_) if is_early => self.0.push(pending, out),
                    _ => out(pending),
                }
            }
            Message::Unanswered(unanswered) => {
                let Some(mut pending) = self.0.take(unanswered.transaction) else { return };
                pending.content.retransmission_count = unanswered.retransmission_count;
                pending.content.waited = Some(unanswered.waited);
                pending.lack(Lack::Response);
                out(pending);
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<Dns>)) {
        for mut pending in self.0.take_all() {
            if pending.content.response_flags.is_none() {
                pending.lack(Lack::Response);
            }
            out(pending);
        }
    }
}

/// Returns whether an open transaction is a response whose query was not captured soon enough.
fn is_without_query(pending: &Pending<Dns>, now: Timestamp) -> bool {
    let waited_ns = now.as_nanos().saturating_sub(pending.span.end.as_nanos());
    pending.content.response_flags.is_some() && waited_ns > EARLY_NS
}

/// Returns what the header and the first question state.
fn question(message: &DnsMessage<'_>, copier: &mut Copier) -> Dns {
    let question = message.questions().next();
    let flags = message.header.flags;
    Dns {
        number: message.transaction,
        id: message.header.id,
        opcode: Some(flags.opcode()),
        query: question.as_ref().map(|question| copier.display(question.name)),
        query_type: question.as_ref().map(|question| question.record_type),
        query_class: question.as_ref().map(|question| question.class),
        recursion_desired: flags.is_recursion_desired(),
        ..Dns::default()
    }
}

fn answer(dns: &mut Dns, response: &DnsMessage<'_>, copier: &mut Copier) {
    let flags = response.header.flags;
    dns.response_time = response.response_time;
    dns.response_flags = Some(flags);
    dns.rcode = Some(response.rcode());
    (dns.authoritative, dns.truncated) = (Some(flags.is_authoritative()), Some(flags.is_truncated()));
    dns.recursion_available = Some(flags.is_recursion_available());
    let (mut authority_count, mut additional_count) = (0, 0);
    for (section, record) in response.records() {
        dns.has_records = true;
        match section {
            Section::Answer if dns.answers.len() < ANSWER_MAX => {
                dns.answer_names.push(copier.display(record.name));
                dns.answers.push(copier.display(record.data));
                dns.answer_types.push(record.record_type);
                dns.ttls.push(record.ttl);
            }
            Section::Answer => copier.is_truncated = true,
            Section::Authority => {
                authority_count += 1;
                if dns.authorities.len() < AUTHORITY_MAX {
                    dns.authorities.push(DnsRecord {
                        name: copier.display(record.name),
                        record_type: record.record_type,
                        ttl: record.ttl,
                        data: copier.display(record.data),
                    });
                }
            }
            Section::Additional => additional_count += u16::from(record.record_type != RecordType::OPT),
            Section::Question => {}
        }
    }
    (dns.authority_count, dns.additional_count) = (Some(authority_count), Some(additional_count));
}
