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
}

state! { struct Exchange { key, flows, span, message_count, row } }

impl Exchange {
    fn heap_len(&self) -> usize {
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
        !self.is_over(meta) && has_room && (self.flows.len() < FLOWS_MAX || self.flows.contains(flow))
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
pub(super) struct Exchanges(VecDeque<Exchange>);

impl Saved for Exchanges {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.0.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let exchanges: VecDeque<Exchange> = Saved::load(reader)?;
        let is_valid = |exchange: &Exchange| (1..=FLOWS_MAX).contains(&exchange.flows.len());
        if exchanges.len() > EXCHANGES_MAX || !exchanges.iter().all(is_valid) {
            return Err(Invalid::new("too many exchanges across flows"));
        }
        Ok(Self(exchanges))
    }
}

impl Exchanges {
    /// Returns the memory of all exchanges in bytes. Takes linear time.
    pub(super) fn heap_len(&self) -> usize {
        let rows: usize = self.0.iter().map(Exchange::heap_len).sum();
        allocated(self.0.capacity() * size_of::<Exchange>()) + rows
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
        self.end(|exchange| exchange.is_of(&flow) && exchange.is_over(meta), None, out);
        let mut open = self.0.iter_mut().rev();
        if let Some(exchange) =
            open.find(|exchange| exchange.key == key).filter(|exchange| exchange.takes(&flow, meta))
        {
            return exchange.add(flow, meta, message);
        }
        let mut exchange =
            Exchange { key, flows: Vec::new(), span: Span::of(meta), message_count: 0, row: Box::new(row) };
        exchange.add(flow, meta, message);
        if self.0.len() >= EXCHANGES_MAX {
            let Some(oldest) = self.0.iter().position(|exchange| exchange.is_of(&flow)) else {
                return out(exchange.into_transaction(Some(Lack::Limit)));
            };
            out_of(self.0.remove(oldest), Some(Lack::Limit), out);
        }
        self.0.push_back(exchange);
    }

    /// Passes the exchanges that began in a flow to `out`: the flow ended.
    pub(super) fn finish(&mut self, flow: FlowOrigin, out: &mut dyn FnMut(Transaction)) {
        self.end(|exchange| exchange.is_of(&flow), None, out);
    }

    fn end(
        &mut self,
        is_over: impl Fn(&Exchange) -> bool,
        lack: Option<Lack>,
        out: &mut dyn FnMut(Transaction),
    ) {
        while let Some(place) = self.0.iter().position(&is_over) {
            out_of(self.0.remove(place), lack, out);
        }
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
    }
}

fn out_of(exchange: Option<Exchange>, lack: Option<Lack>, out: &mut dyn FnMut(Transaction)) {
    if let Some(exchange) = exchange {
        out(exchange.into_transaction(lack));
    }
}
