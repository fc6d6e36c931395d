//! The parsers of DNS, mDNS and LLMNR: datagrams, and streams of messages that are preceded by their lengths.

use std::time::Duration;

use super::exchange::{Exchanges, Subject, Unanswered, hash_question};
use super::header::{HEADER_LEN, ParseError, Variant};
use super::message::DnsMessage;
use super::name::Name;
use super::numbers::RecordType;
use super::probe;
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;
use crate::session::framing::{AfterPdu, Framing, Lane, Pdu, Width};
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

/// A message over TCP, after two octets of length (RFC 1035 section 4.2.2).
const FRAMING: Framing = Framing::prefix(Width::U16).keep(65_535);

/// Parsing state of one flow, for all variants of DNS.
#[derive(Debug)]
struct Core {
    messages: Messages,
    lanes: [Lane; 2],
}

/// The messages of a flow.
#[derive(Debug)]
struct Messages {
    variant: Variant,
    exchanges: Exchanges,
}

/// Callback that receives messages of any variant of DNS.
type Sink<'o> = &'o mut dyn for<'m> FnMut(Message<'m>);

impl Messages {
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

    /// Reports the captured part of a message of a stream that remains incomplete, if its header was captured.
    fn torn(&mut self, pdu: &Pdu<'_>, out: Sink<'_>) -> Result<AfterPdu, Fault> {
        if pdu.bytes.len() >= HEADER_LEN {
            self.of_stream(pdu, out);
        }
        Ok(AfterPdu::More)
    }

    fn of_stream(&mut self, pdu: &Pdu<'_>, out: Sink<'_>) {
        let payload = Payload { bytes: pdu.bytes, len: pdu.len as usize };
        self.message((payload, false), pdu.from, pdu.timestamp, out);
    }
}

impl Core {
    fn new(variant: Variant) -> Self {
        let messages = Messages { variant, exchanges: Exchanges::default() };
        Self { messages, lanes: Default::default() }
    }

    fn bytes(&mut self, input: &Input<'_>, out: Sink<'_>) -> Result<Progress, Fault> {
        let Self { messages, lanes } = self;
        input.from.of_mut(lanes).cut(&FRAMING, input, &mut |pdu| {
            if pdu.bytes.len() < HEADER_LEN {
                return Err(Fault::new("length_below_header"));
            }
            if !probe::fits(pdu.bytes, pdu.bytes.len()) {
                return Err(Fault::new("counts_beyond_length"));
            }
            messages.of_stream(pdu, out);
            Ok(AfterPdu::More)
        })
    }

    /// Processes a gap in a DNS stream. Parsing continues only after a gap inside one message, because then the next
    /// message can be located.
    fn gap(&mut self, missing: &Missing<'_>, out: Sink<'_>) -> AfterGap {
        let Self { messages, lanes } = self;
        missing.from.of_mut(lanes).gap(&FRAMING, missing, &mut |pdu| messages.torn(pdu, out))
    }

    /// Processes the end of one side's stream. Queries of the other side then receive no more responses.
    fn end(&mut self, end: &End<'_>, out: Sink<'_>) {
        let Self { messages, lanes } = self;
        end.from.of_mut(lanes).end(&FRAMING, end, &mut |pdu| messages.torn(pdu, out));
        let reports = messages.variant == Variant::Dns;
        messages
            .exchanges
            .end(end.from.other(), end.timestamp, |unanswered| report(reports, unanswered, out));
    }

    fn tick(&mut self, now: Timestamp, out: Sink<'_>) {
        let reports = self.messages.variant == Variant::Dns;
        self.messages.exchanges.age(now, |unanswered| report(reports, unanswered, out));
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
                self.0.messages.exchanges.save(writer)?;
                self.0.lanes.save(writer).map(|()| true)
            }

            fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
                (self.0.messages.exchanges, self.0.lanes) = (Saved::load(reader)?, Saved::load(reader)?);
                Ok(())
            }

            fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
                self.0.bytes(input, out)
            }

            #[inline]
            fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
                let payload = Payload { bytes: datagram.bytes, len: datagram.len };
                self.0.messages.message((payload, true), datagram.from, datagram.timestamp, out);
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
                self.0.messages.exchanges.heap_len()
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
