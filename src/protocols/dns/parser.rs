//! The parsers of DNS, mDNS and LLMNR: datagrams, and streams of messages that are preceded by their lengths.

use std::time::Duration;

use super::exchange::{Exchanges, Subject, Unanswered, hash_question};
use super::header::{HEADER_LEN, ParseError, Variant};
use super::message::DnsMessage;
use super::name::Name;
use super::numbers::RecordType;
use super::probe;
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::session::{AfterGap, Datagram, End, Fault, Input, Missing, Out, Parser, Payload, Progress, Role};

crate::messages! {
    /// A message that the parsers of DNS, mDNS and LLMNR report.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// A message with the QR flag zero: a query, a notification, an update; in mDNS also a probe.
        Query(DnsMessage<'m>) = "dns.query",
        /// A message with the QR flag set.
        Response(DnsMessage<'m>) = "dns.response",
        /// A DNS query without a response.
        Unanswered(Unanswered),
        /// A datagram without a valid DNS header.
        Unreadable(Unreadable),
    }
}

crate::message! {
    /// A datagram that is not a DNS message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "dns.unreadable" pub struct Unreadable {
        /// Length of the datagram's payload on the wire in octets.
        pub len: usize [octets],
        /// Reason why it is not a message: truncated by the snap length, or shorter than a header.
        pub reason: ParseError,
    }
}

/// Parsing state of one flow, for all variants of DNS.
#[derive(Debug)]
struct Core {
    variant: Variant,
    exchanges: Exchanges,
    lanes: [Lane; 2],
}

/// Parsing state of one direction of a DNS stream.
#[derive(Debug, Default)]
struct Lane {
    /// Length of the current message in octets, once the length field was read.
    len: Option<u16>,
    /// Number of octets to skip: the rest of a message of which octets are missing because of a gap.
    skipped_len: u16,
}

state! { struct Lane { len, skipped_len } }

/// Callback that receives messages of any variant of DNS.
type Sink<'o> = &'o mut dyn for<'m> FnMut(Message<'m>);

impl Core {
    fn new(variant: Variant) -> Self {
        Self { variant, exchanges: Exchanges::default(), lanes: Default::default() }
    }

    /// Reports a message. The query of a response may follow it if both are datagrams; `is_datagram` is true then.
    fn message(
        &mut self,
        (Payload { bytes, len }, is_datagram): (Payload<'_>, bool),
        from: Role,
        now: Timestamp,
        out: Sink<'_>,
    ) {
        let Some(mut message) = DnsMessage::read(bytes, len, self.variant) else {
            let reason = if bytes.len() < len { ParseError::Truncated } else { ParseError::Short };
            return out(Message::Unreadable(Unreadable { len, reason }));
        };
        let is_response = message.header.flags.is_response();
        // An mDNS response is for all hosts, whether requested or not, and arrives in another flow.
        if self.variant != Variant::Mdns
            && let Some(subject) = subject(&message, from, is_datagram)
        {
            let reports = self.variant == Variant::Dns;
            if is_response {
                if let Some(answered) = self.exchanges.answer(&subject, now) {
                    message.transaction = Some(answered.transaction);
                    message.response_time = answered.response_time_ns.map(Duration::from_nanos);
                    message.earlier_response_count = answered.earlier_response_count;
                } else if is_datagram && reports && subject.question.is_some() {
                    let unanswered = |unanswered| report(reports, unanswered, out);
                    message.transaction = Some(self.exchanges.add_early(&subject, now, unanswered));
                }
            } else {
                let (transaction, count) =
                    self.exchanges.add_query(&subject, now, |unanswered| report(reports, unanswered, out));
                message.transaction = Some(transaction);
                message.retransmission_count = count;
            }
        }
        out(if is_response { Message::Response(message) } else { Message::Query(message) });
    }

    fn bytes(&mut self, input: &Input<'_>, out: Sink<'_>) -> Result<Progress, Fault> {
        let mut rest = input.bytes;
        let taken = |rest: &[u8]| input.bytes.len() - rest.len();
        loop {
            let lane = input.from.of_mut(&mut self.lanes);
            if lane.skipped_len > 0 {
                let len = rest.len().min(usize::from(lane.skipped_len));
                lane.skipped_len -= len as u16;
                rest = rest.get(len..).unwrap_or_default();
            }
            // The length is consumed at once: a message of maximum length would otherwise exceed the buffer of a
            // direction.
            let len = match lane.len {
                Some(len) => len,
                None => {
                    let Some((len, after)) = rest.split_first_chunk() else {
                        return Ok(Progress::Needs { taken: taken(rest), need: 2 });
                    };
                    rest = after;
                    u16::from_be_bytes(*len)
                }
            };
            lane.len = Some(len);
            let len = usize::from(len);
            if len < HEADER_LEN {
                return Err(Fault::new("length_below_header"));
            }
            let Some((message, after)) = rest.split_at_checked(len) else {
                return Ok(Progress::Needs { taken: taken(rest), need: len });
            };
            if !probe::fits(message, len) {
                return Err(Fault::new("counts_beyond_length"));
            }
            lane.len = None;
            self.message((Payload { bytes: message, len }, false), input.from, input.timestamp, out);
            rest = after;
        }
    }

    /// Reports the captured part of a message that remains incomplete, if its header was captured.
    fn torn(&mut self, rest: &[u8], from: Role, now: Timestamp, out: Sink<'_>) {
        if let Some(len) = from.of_mut(&mut self.lanes).len.take()
            && rest.len() >= HEADER_LEN
        {
            self.message((Payload { bytes: rest, len: usize::from(len) }, false), from, now, out);
        }
    }

    /// Processes a gap in a DNS stream. Parsing continues only after a gap inside one message, because then the next
    /// message can be located.
    fn gap(&mut self, missing: &Missing<'_>, out: Sink<'_>) -> AfterGap {
        let lane = missing.from.of_mut(&mut self.lanes);
        let left = match lane.len {
            Some(len) => u64::from(len).checked_sub(missing.rest.len() as u64),
            None => Some(u64::from(lane.skipped_len)),
        };
        let Some(left) = left.and_then(|left| left.checked_sub(missing.len)) else {
            self.torn(missing.rest, missing.from, missing.timestamp, out);
            return AfterGap::Stop;
        };
        lane.skipped_len = left as u16;
        self.torn(missing.rest, missing.from, missing.timestamp, out);
        AfterGap::Resume
    }

    /// Processes the end of one side's stream. Queries of the other side then receive no more responses.
    fn end(&mut self, end: &End<'_>, out: Sink<'_>) {
        self.torn(end.rest, end.from, end.timestamp, out);
        let reports = self.variant == Variant::Dns;
        self.exchanges.end(end.from.other(), end.timestamp, |unanswered| report(reports, unanswered, out));
    }

    fn tick(&mut self, now: Timestamp, out: Sink<'_>) {
        let reports = self.variant == Variant::Dns;
        self.exchanges.age(now, |unanswered| report(reports, unanswered, out));
    }
}

/// Reports an unanswered query if `reports` is true. It is false for mDNS and LLMNR: their responses arrive in other
/// flows.
fn report(reports: bool, unanswered: Unanswered, out: Sink<'_>) {
    if reports {
        out(Message::Unanswered(unanswered));
    }
}

/// Returns the subject by which a message is assigned to its exchange; `None` if its first question cannot be parsed.
fn subject(message: &DnsMessage<'_>, from: Role, is_datagram: bool) -> Option<Subject> {
    let is_response = message.header.flags.is_response();
    let querier = if is_response { from.other() } else { from };
    let subject = Subject { id: message.header.id, querier, question: None, is_transfer: false, is_datagram };
    if message.header.counts.first() == Some(&0) {
        return Some(subject);
    }
    let (_, end) = Name::read(message.bytes, HEADER_LEN).ok()?;
    let mut reader = Reader::new(message.bytes.get(end..)?);
    let (record_type, class) = (RecordType(reader.be::<u16>().ok()?), reader.be::<u16>().ok()?);
    let name = message.bytes.get(HEADER_LEN..end)?;
    let question = Some(hash_question(name, record_type, class));
    Some(Subject { question, is_transfer: record_type.is_transfer(), ..subject })
}

macro_rules! parser {
    ($(#[$meta:meta])* $name:ident, $variant:expr) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name(Core);

        impl Default for $name {
            fn default() -> Self {
                Self(Core::new($variant))
            }
        }

        impl Parser for $name {
            type Message<'m> = Message<'m>;

            fn save(&self, writer: &mut StateWriter<'_>) -> Result<bool, Invalid> {
                self.0.exchanges.save(writer)?;
                self.0.lanes.save(writer).map(|()| true)
            }

            fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
                (self.0.exchanges, self.0.lanes) = (Saved::load(reader)?, Saved::load(reader)?);
                Ok(())
            }

            fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
                self.0.bytes(input, out)
            }

            #[inline]
            fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
                let payload = Payload { bytes: datagram.bytes, len: datagram.len };
                self.0.message((payload, true), datagram.from, datagram.timestamp, out);
                Ok(Progress::Took(datagram.bytes.len()))
            }

            fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
                self.0.gap(missing, out)
            }

            fn end(&mut self, end: &End<'_>, out: Out<'_, Self>) {
                self.0.end(end, out);
            }

            fn tick(&mut self, now: Timestamp, out: Out<'_, Self>) {
                self.0.tick(now, out);
            }

            fn heap_len(&self) -> usize {
                self.0.exchanges.heap_len()
            }
        }
    };
}

parser! {
    /// Parser of DNS over UDP and TCP.
    DnsParser, Variant::Dns
}
parser! {
    /// Parser of multicast DNS.
    MdnsParser, Variant::Mdns
}
parser! {
    /// Parser of LLMNR over UDP and TCP.
    LlmnrParser, Variant::Llmnr
}
