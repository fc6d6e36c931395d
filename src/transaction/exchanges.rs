//! Exchanges whose messages are in several flows.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use super::content::{Content, Transaction};
use super::open::allocated;
use super::span::Span;
use super::transfer::FlowOrigin;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::CrossingRow;
use crate::session::kit::{KitMessage, KitTransaction, Open as _};
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
    row: Box<CrossingRow>,
    /// Memory in bytes as it was measured last.
    heap_len: usize,
}

// What is counted belongs to the process.
state! { struct Exchange { key, flows, span, message_count, row, .. heap_len } }

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

    fn add(&mut self, flow: FlowOrigin, meta: &MessageMeta, message: &KitMessage<'_>) {
        if !self.flows.contains(&flow) {
            self.flows.push(flow);
        }
        self.message_count += 1;
        let (start, end) = (self.span.start.min(meta.timestamp), self.span.end.max(meta.timestamp));
        self.span = Span { start, end, ..self.span };
        if self.is_of(&flow) {
            self.span.received_len = meta.received_len;
        }
        let side = if meta.from == Role::Client { meta.side } else { meta.side.other() };
        let ends: [IpAddr; 2] = [side, side.other()].map(|side| flow.key.address(side));
        self.row.add(message, ends);
        let head = self.row.row_mut().head_mut();
        (head.from, head.start, head.end) = (Role::Client, start, end);
        if meta.from == Role::Server && head.responded.is_none() {
            head.responded = Some(meta.timestamp);
            head.response_time = (self.message_count > 1).then(|| meta.timestamp.saturating_since(start));
        }
    }

    fn into_transaction(self, lack: Option<Lack>) -> Transaction {
        let Self { flows, span, row, .. } = self;
        let lacks = lack.or_else(|| row.lack());
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
        let Some((key, row)) = CrossingRow::of(message) else { return };
        self.end(|exchange| exchange.is_over(meta) && exchange.is_of(&flow), out);
        let known = self.open.iter().rposition(|exchange| exchange.key == key);
        let known = known.and_then(|place| self.open.get_mut(place));
        if let Some(exchange) = known.filter(|exchange| exchange.takes(&flow, meta)) {
            exchange.add(flow, meta, message);
            let heap_len = exchange.measure();
            let before = std::mem::replace(&mut exchange.heap_len, heap_len);
            self.exchanges_len = (self.exchanges_len + heap_len).saturating_sub(before);
            return;
        }
        let (span, row) = (Span::of(meta), Box::new(row));
        let mut exchange = Exchange { key, flows: Vec::new(), span, message_count: 0, row, heap_len: 0 };
        exchange.add(flow, meta, message);
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
