//! The trait of a protocol, and the parser that it becomes.

use std::fmt;
use std::time::Duration;

use super::log::LogFormat;
use super::rows::{Deliver, OPEN_MAX, Open, Rows, Store};
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::{ReadError, Reader};
use crate::row::TableInfo;
use crate::session::framing::{AfterPdu, Framing, Lane, Pdu};
use crate::session::{
    AWAITED_TIME, AfterGap, Datagram, End, Fault, Input, Missing, Progress, Protocol, Role,
};

/// A PDU does not have the format of the protocol. A datagram is ignored, and so is a PDU of which octets are missing;
/// otherwise the parser of a stream stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed;

impl From<ReadError> for Malformed {
    fn from(_: ReadError) -> Self {
        Self
    }
}

/// The grammar of a protocol: what a PDU adds to the rows of its flow. Its own state should be a few octets.
pub(crate) trait PduParser: Saved + Default + Send + Sync + 'static {
    /// Name and recognition of the protocol.
    const PROTOCOL: &'static Protocol;
    /// How PDUs follow each other in a stream; `None` for a protocol of datagrams only, each of which is a PDU.
    const FRAMING: Option<Framing> = None;
    /// Maximum number of exchanges that are open, at most 64. The oldest one is displaced.
    const OPEN_MAX: usize = 16;
    /// Time without a message after which an exchange is reported without a response.
    const ANSWER_WITHIN: Duration = Duration::from_secs(10);
    /// Time within which the request of a datagram may be captured after its response: longer for keys that are not used again.
    const REQUEST_WITHIN: Duration = AWAITED_TIME;
    /// Rows of the protocol that may be open.
    type Row: Open + Send + Sync;

    /// Returns the number of octets that were allocated for what the parser keeps between PDUs, besides its rows.
    fn heap_len(&self) -> usize {
        0
    }

    /// Returns how the next PDU of a side is found, for a protocol in which that follows from the PDUs before: `pdu` returns
    /// [`AfterPdu::Reframe`] when it changes.
    fn framing(&self, _from: Role) -> &'static Option<Framing> {
        const { &Self::FRAMING }
    }

    /// Returns the protocol that the client has asked for on this connection. Octets with which it may begin wait for the answer,
    /// which may be captured after them.
    fn asked_for(&self) -> Option<&'static Protocol> {
        None
    }

    /// Processes a PDU.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the PDU does not have the format.
    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Self::Row>) -> Result<AfterPdu, Malformed>;

    /// Processes further octets of a PDU, if the framing passes them on.
    fn rest(&mut self, _pdu: &Pdu<'_>, _rows: &mut Rows<'_, Self::Row>) {}

    /// Processes the end of the direction of a stream that `rows` names as the sender.
    fn end(&mut self, _rows: &mut Rows<'_, Self::Row>) {}

    /// Reports what the parser keeps besides the open rows: no PDU follows.
    fn finish(&mut self, _rows: &mut Rows<'_, Self::Row>) {}
}

/// Number of octets that a client may send of another protocol before the answer to its request for it.
const UNANSWERED_LEN_MAX: usize = 4096;

/// The parser of a protocol of the kit.
pub(crate) struct Kit<P: PduParser> {
    grammar: P,
    lanes: [Lane; 2],
    ended: [bool; 2],
    store: Store<P::Row>,
}

impl<P: PduParser> Default for Kit<P> {
    fn default() -> Self {
        Self { grammar: P::default(), lanes: Default::default(), ended: [false; 2], store: Store::default() }
    }
}

impl<P: PduParser> Kit<P> {
    /// Reports the rows that wait for a side from which nothing more follows.
    fn over(&mut self, from: Role, now: Timestamp, out: Deliver<'_>) {
        *from.of_mut(&mut self.ended) = true;
        self.with_rows(from, now, out, P::end);
        if self.ended == [true; 2] { self.report(out) } else { self.store.end(from, out) }
    }

    /// Reports all that is open.
    fn report(&mut self, out: Deliver<'_>) {
        self.with_rows(Role::Client, Timestamp::ZERO, out, P::finish);
        self.store.finish(out);
    }

    /// Calls a function of the grammar with the rows. Most grammars have none.
    #[inline]
    fn with_rows(
        &mut self,
        from: Role,
        now: Timestamp,
        out: Deliver<'_>,
        call: impl FnOnce(&mut P, &mut Rows<'_, P::Row>),
    ) {
        let Self { grammar, store, .. } = self;
        call(grammar, &mut Rows { store, out, open_max: P::OPEN_MAX, from, now, request_within: None });
    }
}

/// Passes a PDU to a grammar.
fn pass<P: PduParser>(
    (grammar, store): (&mut P, &mut Store<P::Row>),
    pdu: &Pdu<'_>,
    may_be_early: bool,
    out: Deliver<'_>,
) -> Result<AfterPdu, Malformed> {
    let (from, now) = (pdu.from, pdu.timestamp);
    let (open_max, request_within) = (P::OPEN_MAX, may_be_early.then_some(P::REQUEST_WITHIN));
    let mut rows = Rows { store, out, open_max, from, now, request_within };
    if pdu.is_rest {
        grammar.rest(pdu, &mut rows);
        return Ok(AfterPdu::More);
    }
    grammar.pdu(pdu, &mut rows)
}

/// Passes a PDU of a stream to a grammar.
fn pass_of_stream<P: PduParser>(
    parts: (&mut P, &mut Store<P::Row>),
    pdu: &Pdu<'_>,
    out: Deliver<'_>,
) -> Result<AfterPdu, Fault> {
    match pass(parts, pdu, false, out) {
        Ok(next) => Ok(next),
        Err(Malformed) if pdu.is_truncated() => Ok(AfterPdu::More),
        Err(Malformed) => Err(Fault::new("malformed")),
    }
}

/// A [`Kit`] without its type: all parsers of the kit are one variant of a set of protocols.
pub(crate) trait KitParser: Send + Sync {
    /// Returns the protocol.
    fn protocol(&self) -> &'static Protocol;
    /// As [`Parser::bytes`](crate::session::Parser::bytes).
    fn bytes(&mut self, input: &Input<'_>, out: Deliver<'_>) -> Result<Progress, Fault>;
    /// As [`Parser::datagram`](crate::session::Parser::datagram).
    fn datagram(&mut self, datagram: &Datagram<'_>, out: Deliver<'_>) -> Result<Progress, Fault>;
    /// As [`Parser::gap`](crate::session::Parser::gap).
    fn gap(&mut self, missing: &Missing<'_>, out: Deliver<'_>) -> AfterGap;
    /// As [`Parser::end`](crate::session::Parser::end).
    fn end(&mut self, end: &End<'_>, out: Deliver<'_>);
    /// As [`Parser::finish`](crate::session::Parser::finish).
    fn finish(&mut self, out: Deliver<'_>);
    /// As [`Parser::tick`](crate::session::Parser::tick).
    fn tick(&mut self, now: Timestamp, out: Deliver<'_>);
    /// Returns the number of octets that were allocated for the parser, its own included.
    fn heap_len(&self) -> usize;
    /// Writes the state to a checkpoint.
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid>;
    /// Reads the state.
    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid>;
}

impl fmt::Debug for dyn KitParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kit({})", self.protocol())
    }
}

impl<P: PduParser> KitParser for Kit<P> {
    fn protocol(&self) -> &'static Protocol {
        P::PROTOCOL
    }

    fn bytes(&mut self, input: &Input<'_>, out: Deliver<'_>) -> Result<Progress, Fault> {
        let Self { grammar, lanes, store, .. } = self;
        let Some(framing) = grammar.framing(input.from) else { return Err(Fault::UNSUPPORTED_TRANSPORT) };
        let lane = input.from.of_mut(lanes);
        let asked = grammar.asked_for().filter(|next| lane.is_at_start() && next.may_begin(input.bytes));
        let progress = match asked {
            Some(_) if input.bytes.len() <= UNANSWERED_LEN_MAX => {
                Ok(Progress::incomplete(0, input.bytes.len()))
            }
            // The client goes on: the answer was not captured.
            Some(next) => Ok(Progress::Handover { taken: 0, next: Some(next) }),
            None => lane.cut(framing, input, &mut |pdu| match pass_of_stream((grammar, store), pdu, out) {
                Ok(AfterPdu::More) if grammar.asked_for().is_some() => Ok(AfterPdu::Reframe),
                next => next,
            }),
        };
        match progress {
            // The driver does not pass the end of this direction.
            Ok(Progress::Done) => self.over(input.from, input.timestamp, out),
            // The driver drops the parser.
            Ok(Progress::Handover { .. }) => self.report(out),
            _ => {}
        }
        progress
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Deliver<'_>) -> Result<Progress, Fault> {
        let Datagram { bytes, len, from, timestamp, .. } = *datagram;
        let pdu = Pdu { bytes, len: len as u64, offset: 0, is_rest: false, from, timestamp };
        match pass((&mut self.grammar, &mut self.store), &pdu, true, out) {
            Ok(AfterPdu::Done) => {
                self.report(out);
                Ok(Progress::Done)
            }
            Ok(AfterPdu::Handover(None)) => {
                self.report(out);
                Ok(Progress::Handover { taken: 0, next: None })
            }
            Ok(_) | Err(Malformed) => Ok(Progress::Took(bytes.len())),
        }
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Deliver<'_>) -> AfterGap {
        let Self { grammar, lanes, store, .. } = self;
        let Some(framing) = grammar.framing(missing.from) else { return AfterGap::Stop };
        let lane = missing.from.of_mut(lanes);
        lane.gap(framing, missing, &mut |pdu| pass_of_stream((grammar, store), pdu, out))
    }

    fn end(&mut self, end: &End<'_>, out: Deliver<'_>) {
        let Self { grammar, lanes, store, .. } = self;
        if let Some(framing) = grammar.framing(end.from) {
            let lane = end.from.of_mut(lanes);
            lane.end(framing, end, &mut |pdu| pass_of_stream((grammar, store), pdu, out));
        }
        self.over(end.from, end.timestamp, out);
    }

    fn finish(&mut self, out: Deliver<'_>) {
        self.report(out);
    }

    fn tick(&mut self, now: Timestamp, out: Deliver<'_>) {
        self.store.age(now, (P::ANSWER_WITHIN, P::REQUEST_WITHIN), out);
    }

    fn heap_len(&self) -> usize {
        const { assert!(P::OPEN_MAX >= 1 && P::OPEN_MAX <= OPEN_MAX, "1 to 64 exchanges are open") };
        size_of::<Self>() + self.grammar.heap_len() + self.store.heap_len()
    }

    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        let Self { grammar, lanes, ended, store } = self;
        grammar.save(writer)?;
        lanes.save(writer)?;
        ended.save(writer)?;
        store.save(writer)
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let (grammar, lanes, ended) = (P::load(reader)?, Saved::load(reader)?, Saved::load(reader)?);
        *self = Self { grammar, lanes, ended, store: Store::load(reader, P::OPEN_MAX)? };
        Ok(())
    }
}

/// A protocol of the kit, as it is listed in a set.
#[derive(Clone, Copy)]
pub(crate) struct KitEntry {
    /// Name and recognition.
    pub(crate) protocol: &'static Protocol,
    /// Tables of its rows as messages.
    pub(crate) tables: &'static [&'static TableInfo],
    /// Tables of its rows as transactions.
    pub(crate) transactions: &'static [&'static TableInfo],
    /// Returns the tables of its rows in logs of other programs.
    pub(crate) logs: fn() -> Vec<(&'static TableInfo, LogFormat)>,
    /// Creates a parser.
    pub(crate) start: fn() -> Box<dyn KitParser>,
}

impl KitEntry {
    /// Returns the entry of a protocol.
    pub(crate) const fn of<P: PduParser>() -> Self {
        Self {
            protocol: P::PROTOCOL,
            tables: P::Row::TABLES,
            transactions: P::Row::TRANSACTIONS,
            logs: P::Row::logs,
            start: || Box::new(Kit::<P>::default()),
        }
    }
}
