//! The flows that the table of a report shows.

use std::cmp::Reverse;
use std::collections::HashMap;

use flowgauge::base::ApplicationName;
use flowgauge::row::{TableRow, Union as _};
use flowgauge::transaction::{Content, Transaction};
use flowgauge::{ConnState, FlowRecord, IpProtocol};
use serde_json::{Value, json};

use crate::escape;
use crate::values::push_values;

/// Maximum number of flows with the most octets.
const LARGEST_MAX: usize = 1000;

/// Maximum number of other flows of the same protocol, application and state, and of all of them.
const KIND_MAX: usize = 25;
const OTHERS_MAX: usize = 1000;

/// Maximum number of transactions of a flow, and of the letters of each.
const TRANSACTION_MAX: usize = 16;
const TEXT_MAX: usize = 600;

/// Octets that the transactions of all flows take at most, also as a part of the memory, and of those in the report.
const HELD_MAX: usize = 64 << 20;
const MEMORY_PART: usize = 8;
const WRITTEN_MAX: usize = 2 << 20;

/// The transactions of a flow.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The server that the first transaction names: the host of a request, a server name, or a queried name.
    name: Option<Box<str>>,
    lines: Vec<Line>,
    /// Number of transactions that are not kept.
    omitted_count: u64,
}

/// Memory of a name in octets beside its length.
const NAME_LEN: usize = 16;

#[derive(Debug)]
struct Line {
    /// Time from the start of the flow in nanoseconds.
    since_ns: u64,
    protocol: &'static str,
    text: Box<str>,
}

impl Line {
    /// Returns the memory of the line, in a list that has up to twice as many places.
    fn len(&self) -> usize {
        self.text.len() + 16 + 2 * size_of::<Self>()
    }
}

impl Transactions {
    fn len(&self) -> usize {
        let name_len = self.name.as_ref().map_or(0, |name| NAME_LEN + name.len());
        name_len + self.lines.iter().map(Line::len).sum::<usize>()
    }
}

/// Flows with their transactions: those with the most octets, and some of each kind.
#[derive(Debug, Default)]
pub(super) struct Kept {
    largest: Vec<Flow>,
    others: Vec<Flow>,
    kinds: HashMap<(IpProtocol, Option<ApplicationName>, ConnState), usize>,
    /// Octets that all transactions take, and how many they may take.
    held_len: usize,
    held_max: usize,
    pub(super) flow_count: u64,
}

#[derive(Debug)]
struct Flow {
    record: FlowRecord,
    transactions: Transactions,
}

/// Formats the kind and the values of a row.
fn text(row: TableRow<'_>) -> String {
    let name = row.table.name;
    let mut text = name.rsplit('.').next().unwrap_or(name).to_owned();
    push_values(&mut text, row, false);
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
        text.push('\u{2026}');
    }
    text
}

/// Returns the server that a transaction names.
fn server_name(content: &Content) -> Option<&str> {
    match content {
        Content::Http(http) => http.host.as_deref(),
        Content::Tls(tls) => tls.server_name.as_deref(),
        Content::Quic(quic) => quic.tls.server_name.as_deref(),
        Content::Dns(dns) => dns.query.as_deref(),
        _ => None,
    }
}

impl Kept {
    /// Adds a transaction to those of its flow, which started at this time.
    pub(super) fn transaction(&mut self, flow: &mut Transactions, start_ns: u64, transaction: &Transaction) {
        let has_memory = self.held_len < self.held_max;
        if flow.name.is_none() && has_memory {
            flow.name = server_name(&transaction.content).map(Into::into);
            self.held_len += flow.name.as_ref().map_or(0, |name| NAME_LEN + name.len());
        }
        if flow.lines.len() >= TRANSACTION_MAX || !has_memory {
            flow.omitted_count += 1;
            return;
        }
        let line = Line {
            since_ns: transaction.start().as_nanos().saturating_sub(start_ns),
            protocol: transaction.protocol().name(),
            text: text(transaction.content.row()).into(),
        };
        self.held_len += line.len();
        flow.lines.push(line);
    }

    /// Returns the memory of all transactions and flows, of which the transactions have a part at most.
    pub(super) fn held_bytes(&mut self, left: u64) -> u64 {
        let memory = usize::try_from(left).unwrap_or(usize::MAX).saturating_add(self.held_len);
        self.held_max = HELD_MAX.min(memory / MEMORY_PART);
        let flow_count = self.largest.capacity() + self.others.capacity();
        (self.held_len + flow_count * size_of::<Flow>()) as u64
    }

    /// Forgets transactions that belong to no flow.
    pub(super) fn forget(&mut self, transactions: &Transactions) {
        self.held_len = self.held_len.saturating_sub(transactions.len());
    }

    /// Adds a flow that has ended.
    pub(super) fn record(&mut self, record: FlowRecord, transactions: Transactions) {
        self.flow_count += 1;
        let kind =
            (record.protocol(), record.application.map(|application| application.name), record.conn_state);
        let is_other = self.others.len() < OTHERS_MAX && {
            let count = self.kinds.entry(kind).or_default();
            *count += 1;
            *count <= KIND_MAX
        };
        if is_other {
            self.others.push(Flow { record, transactions });
            return;
        }
        self.largest.push(Flow { record, transactions });
        if self.largest.len() >= 2 * LARGEST_MAX {
            self.shrink();
        }
    }

    /// Removes all but the flows with the most octets.
    fn shrink(&mut self) {
        self.largest.sort_by_key(|flow| Reverse(flow.record.octet_count()));
        for flow in self.largest.drain(LARGEST_MAX.min(self.largest.len())..) {
            self.held_len = self.held_len.saturating_sub(flow.transactions.len());
        }
    }

    /// Returns the number of flows that are kept.
    pub(super) fn len(&self) -> usize {
        self.largest.len().min(LARGEST_MAX) + self.others.len()
    }

    /// Returns the flows as JSON, the one with the most octets first.
    pub(super) fn json(&mut self) -> Value {
        self.shrink();
        let mut flows: Vec<_> = self.largest.iter().chain(&self.others).collect();
        flows.sort_by_key(|flow| (Reverse(flow.record.octet_count()), flow.record.start));
        let mut written_len = 0;
        flows.into_iter().map(|flow| flow.json(&mut written_len)).collect()
    }
}

impl Flow {
    /// Returns the values of the flow in the order of the columns of the page, and then its transactions.
    fn json(&self, written_len: &mut usize) -> Value {
        let Self { record, transactions } = self;
        let mut omitted_count = transactions.omitted_count;
        let mut lines = Vec::new();
        for Line { since_ns, protocol, text } in &transactions.lines {
            if *written_len + text.len() > WRITTEN_MAX {
                omitted_count += 1;
                continue;
            }
            *written_len += text.len();
            lines.push(json!([since_ns, protocol, text]));
        }
        let name = transactions.name.as_deref().map(escape::text);
        let retransmitted = u64::from(record.forward.tcp.retransmitted_count)
            + u64::from(record.reverse.tcp.retransmitted_count);
        json!([
            record.start.as_nanos().to_string(),
            u64::try_from(record.duration().as_nanos()).unwrap_or(u64::MAX),
            record.source_address(),
            record.source_port(),
            record.destination_address(),
            record.destination_port(),
            record.protocol().to_string(),
            record.application.map(|application| application.to_string()),
            name,
            record.conn_state.name(),
            record.forward.counters.packet_count,
            record.reverse.counters.packet_count,
            record.forward.counters.octet_count,
            record.reverse.counters.octet_count,
            record.handshake_rtt.map(|rtt| u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX)),
            retransmitted,
            record.history.to_string(),
            record.flow_end_reason.name(),
            record.community_id().to_string(),
            omitted_count,
            lines,
        ])
    }
}
