//! Exchanges whose messages are in several flows.

use std::collections::VecDeque;
use std::time::Duration;

use super::content::{Content, Transaction};
use super::open::allocated;
use super::span::Span;
use super::transfer::FlowOrigin;
use crate::base::Side;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::CrossingRow;
use crate::session::kit::{KitMessage, KitTransaction, Open as _, Turn};
use crate::session::{Lack, MessageMeta, Role};

/// Maximum number of exchanges that are open. At the limit, the oldest one of the same flow ends; without one, a message is an
/// exchange of its own.
const EXCHANGES_MAX: usize = 256;
/// Maximum number of flows of an exchange. A message in another one begins a new exchange.
const FLOWS_MAX: usize = 10;
/// Maximum number of messages of an exchange.
const MESSAGES_MAX: u8 = 50;
/// Time without a message after which an exchange is over.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// Time after which an exchange is over.
const TIME_MAX: Duration = Duration::from_secs(30);

/// An exchange that is not over.
#[derive(Debug)]
struct Exchange {
    key: u64,
    /// The flows of its messages. The transaction is one of the first flow.
    flows: Vec<FlowOrigin>,
    span: Span,
    message_count: u8,
    /// Whether there is a message of the client, or the server began.
    has_begin: bool,
    /// Kind of the last message of the client, if it has no answer.
    awaiting: Option<u8>,
    /// Whether there is a last answer.
    is_decided: bool,
    row: Box<CrossingRow>,
    /// Memory in bytes as it was measured last.
    heap_len: usize,
}

// What is counted belongs to the process.
state! { struct Exchange {
    key, flows, span, message_count, has_begin, awaiting, is_decided, row, .. heap_len
} }

/// A message that belongs to an exchange.
#[derive(Clone, Copy)]
struct Part<'m> {
    flow: FlowOrigin,
    meta: &'m MessageMeta,
    message: &'m KitMessage<'m>,
    turn: Turn,
}

impl Part<'_> {
    /// Returns the side of the client, as the message states it.
    fn client(&self) -> Side {
        let side = self.meta.side;
        if self.message.exchange().from == Role::Client { side } else { side.other() }
    }
}

impl Exchange {
    fn measure(&self) -> usize {
        let flows_len = allocated(self.flows.capacity() * size_of::<FlowOrigin>());
        flows_len + allocated(size_of::<CrossingRow>()) + self.row.row().heap_len()
    }

    fn is_of(&self, flow: &FlowOrigin) -> bool {
        self.flows.first() == Some(flow)
    }

    fn is_over(&self, meta: &MessageMeta) -> bool {
        let now = meta.timestamp;
        now.saturating_since(self.span.end) > SILENT_MAX || now.saturating_since(self.span.start) > TIME_MAX
    }

    /// Returns whether a message of a flow belongs to the exchange with its key.
    fn takes(&self, flow: &FlowOrigin, meta: &MessageMeta) -> bool {
        let has_room = self.message_count < MESSAGES_MAX;
        // Frames may be captured in another order than that of their times.
        let is_before = self.span.start.saturating_since(meta.timestamp) > SILENT_MAX;
        !self.is_over(meta)
            && !is_before
            && has_room
            && (self.flows.len() < FLOWS_MAX || self.flows.contains(flow))
    }

    /// Returns whether the exchange has all messages, in one flow.
    fn is_complete_in_a_flow(&self) -> bool {
        self.is_decided && self.has_begin && self.awaiting.is_none() && self.flows.len() == 1
    }

    fn add(&mut self, part: &Part<'_>) {
        let Part { flow, meta, message, turn } = *part;
        if !self.flows.contains(&flow) {
            self.flows.push(flow);
        }
        self.message_count += 1;
        let (start, end) = (self.span.start.min(meta.timestamp), self.span.end.max(meta.timestamp));
        self.span = Span { start, end, ..self.span };
        if self.is_of(&flow) {
            self.span.received_len = meta.received_len;
        }
        let client = part.client();
        self.row.add(message, [client, client.other()].map(|side| flow.key.address(side)));
        let head = self.row.row_mut().head_mut();
        (head.from, head.start, head.end) = (Role::Client, start, end);
        match turn {
            Turn::Request(kind) => {
                let is_repeated = self.awaiting.replace(kind) == Some(kind) && head.responded.is_none();
                head.retransmission_count = head.retransmission_count.saturating_add(is_repeated.into());
                self.has_begin = true;
            }
            Turn::Statement | Turn::Announcement => (self.has_begin, self.awaiting) = (true, None),
            Turn::Answer | Turn::Decision => {
                if head.responded.is_none() {
                    head.responded = Some(meta.timestamp);
                    head.response_time = self.has_begin.then(|| meta.timestamp.saturating_since(start));
                }
                self.awaiting = None;
                self.is_decided |= turn == Turn::Decision;
            }
        }
    }

    /// Returns what was not captured.
    fn lack(&self) -> Option<Lack> {
        if !self.has_begin {
            return Some(Lack::Request);
        }
        self.awaiting.is_some().then_some(Lack::Response)
    }

    fn into_transaction(mut self, lack: Option<Lack>) -> Transaction {
        let lacks = lack.or_else(|| self.lack());
        self.row.row_mut().head_mut().lacks = lacks;
        let Self { flows, span, row, .. } = self;
        let content = Content::Kit(KitTransaction::of(row.row()));
        Transaction { span, lacks, flows: flows.into(), content }
    }
}

/// The exchanges of all flows that are not over, oldest first.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    open: VecDeque<Exchange>,
    /// Memory of all of them in bytes.
    exchanges_len: usize,
}

impl Saved for Exchanges {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.open.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let mut open: VecDeque<Exchange> = Saved::load(reader)?;
        let is_valid = |exchange: &Exchange| (1..=FLOWS_MAX).contains(&exchange.flows.len());
        if open.len() > EXCHANGES_MAX || !open.iter().all(is_valid) {
            return Err(Invalid::new("too many exchanges across flows"));
        }
        let mut exchanges_len = 0;
        for exchange in &mut open {
            exchange.heap_len = exchange.measure();
            exchanges_len += exchange.heap_len;
        }
        Ok(Self { open, exchanges_len })
    }
}

impl Exchanges {
    /// Returns the memory of all exchanges in bytes.
    pub(super) fn heap_len(&self) -> usize {
        allocated(self.open.capacity() * size_of::<Exchange>()) + self.exchanges_len
    }

    /// Adds a message of a flow to its exchange. Passes the exchanges of the flow that are over to `out`.
    pub(super) fn message(
        &mut self,
        flow: FlowOrigin,
        meta: &MessageMeta,
        message: &KitMessage<'_>,
        out: &mut dyn FnMut(Transaction),
    ) {
        let Some((turn, key, empty)) = CrossingRow::of(message) else { return };
        let part = Part { flow, meta, message, turn };
        self.end(|exchange| exchange.is_over(meta) && exchange.is_of(&flow), out);
        let known = self.open.iter().rposition(|exchange| exchange.key == key);
        let known = known.and_then(|place| Some((place, self.open.get_mut(place)?)));
        if let Some((place, exchange)) = known.filter(|(_, exchange)| exchange.takes(&flow, meta)) {
            exchange.add(&part);
            let heap_len = exchange.measure();
            let before = std::mem::replace(&mut exchange.heap_len, heap_len);
            let is_complete = exchange.is_complete_in_a_flow();
            self.exchanges_len = (self.exchanges_len + heap_len).saturating_sub(before);
            if is_complete && self.open.len() > EXCHANGES_MAX / 2 {
                // Clients that renew their leases have a flow each, which does not end for a while.
                self.pass(place, None, out);
            }
            return;
        }
        let mut exchange = Exchange {
            key,
            flows: Vec::new(),
            span: Span { client: part.client(), ..Span::of(meta) },
            message_count: 0,
            has_begin: false,
            awaiting: None,
            is_decided: false,
            row: Box::new(empty()),
            heap_len: 0,
        };
        exchange.add(&part);
        if self.open.len() >= EXCHANGES_MAX {
            match self.open.iter().position(|exchange| exchange.is_of(&flow)) {
                Some(oldest) => self.pass(oldest, Some(Lack::Limit), out),
                None => return out(exchange.into_transaction(Some(Lack::Limit))),
            }
        }
        exchange.heap_len = exchange.measure();
        self.exchanges_len += exchange.heap_len;
        self.open.push_back(exchange);
    }

    /// Passes the exchanges that began in a flow to `out`: the flow ended.
    pub(super) fn finish(&mut self, flow: FlowOrigin, out: &mut dyn FnMut(Transaction)) {
        self.end(|exchange| exchange.is_of(&flow), out);
    }

    fn end(&mut self, is_over: impl Fn(&Exchange) -> bool, out: &mut dyn FnMut(Transaction)) {
        let mut place = 0;
        while let Some(exchange) = self.open.get(place) {
            if is_over(exchange) { self.pass(place, None, out) } else { place += 1 }
        }
    }

    /// Passes an exchange to `out`.
    fn pass(&mut self, place: usize, lack: Option<Lack>, out: &mut dyn FnMut(Transaction)) {
        let Some(exchange) = self.open.remove(place) else { return };
        self.exchanges_len = self.exchanges_len.saturating_sub(exchange.heap_len);
        if self.open.is_empty() {
            self.open = VecDeque::new();
        }
        out(exchange.into_transaction(lack));
    }
}
