//! What a report shows beyond the facts of a summary.

use std::collections::BTreeMap;

use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::TransactionSink;
use flowgauge::session::MessageMeta;
use flowgauge::transaction::{Content, Tls, Transaction};
use flowgauge::{
    EndReason, Flow, FlowRecord, FlowView, Interest, Message, Packet, Sessions, Sink, Standard, Timestamp,
};
use flowgauge_summary::{Bounded, Collector, CollectorState, Count, Timeline};

use super::histogram::Histogram;
use super::kept::{Kept, Transactions};

/// Number of protocols and applications with a series of their own, and one of all others.
pub(super) const SERIES_MAX: usize = 64;

/// Maximum number of intervals of a flow that wait for its application to be known.
const OPEN_MAX: usize = 16;

/// Numbers of transactions by a text, of which the most frequent ones are kept.
pub(super) type Texts = Bounded<String, Count, 4096>;

/// Collects the facts of a summary, and what only a report shows.
#[derive(Debug, Default)]
pub(super) struct Detailed {
    pub(super) overview: Collector,
    pub(super) details: Details,
}

/// What a report shows beyond the facts of a summary.
#[derive(Debug, Default)]
pub(super) struct Details {
    pub(super) timeline: Timeline<SERIES_MAX>,
    /// Names of the series.
    pub(super) series: Vec<String>,
    pub(super) durations: Histogram,
    pub(super) octets: Histogram,
    pub(super) handshakes: Histogram,
    pub(super) states: BTreeMap<&'static str, u64>,
    pub(super) tcp: TcpDetails,
    pub(super) tls: TlsDetails,
    pub(super) dns: DnsDetails,
    pub(super) http: HttpDetails,
    pub(super) kept: Kept,
    /// Number of places for intervals of open flows.
    open_count: usize,
}

/// Sums of all connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpDetails {
    pub(super) retransmitted_count: u64,
    pub(super) zero_window_count: u64,
}

#[derive(Debug, Default)]
pub(super) struct TlsDetails {
    pub(super) versions: Texts,
    pub(super) cipher_suites: Texts,
    pub(super) server_names: Texts,
}

#[derive(Debug, Default)]
pub(super) struct DnsDetails {
    pub(super) results: Texts,
    pub(super) query_types: Texts,
    pub(super) queries: Texts,
    pub(super) response_times: Histogram,
}

#[derive(Debug, Default)]
pub(super) struct HttpDetails {
    pub(super) results: Texts,
    pub(super) hosts: Texts,
}

/// State of a flow.
#[derive(Debug, Default)]
pub(super) struct State {
    /// That of the overview.
    overview: CollectorState,
    /// Times and octets of intervals that are not in the timeline yet.
    open: Vec<(u64, u64)>,
    transactions: Transactions,
}

/// Maximum length in octets of a text by which transactions are counted.
const TEXT_LEN_MAX: usize = 256;

/// Returns the entry of a text, which is truncated.
fn entry<'t>(texts: &'t mut Texts, text: &str) -> &'t mut Count {
    let mut ends = (0..=text.len().min(TEXT_LEN_MAX)).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    texts.entry(text.get(..end).unwrap_or_default().to_owned())
}

impl Details {
    /// Adds the octets of a flow to its series.
    fn close(&mut self, view: &FlowView<'_>, open: impl Iterator<Item = (u64, u64)>) {
        let protocol = view.key().protocol();
        let name = match view.application() {
            Some(application) => format!("{protocol}/{}", application.name.as_str()),
            None => protocol.to_string(),
        };
        let known = self.series.iter().position(|known| *known == name);
        let kind = known.unwrap_or_else(|| {
            if self.series.len() < SERIES_MAX - 1 {
                self.series.push(name);
                self.series.len() - 1
            } else {
                SERIES_MAX - 1
            }
        });
        open.for_each(|(time_ns, octet_count)| self.timeline.add(time_ns, kind, octet_count));
    }

    fn packet(&mut self, flow: &mut Flow<'_, State>, packet: &Packet<'_>) {
        let interval_ns = u64::try_from(self.timeline.interval().as_nanos()).unwrap_or(u64::MAX);
        let time_ns = packet.timestamp.as_nanos() / interval_ns * interval_ns;
        let open = &mut flow.state.open;
        self.open_count -= open.capacity();
        match open.iter_mut().rev().find(|(known, _)| *known == time_ns) {
            Some((_, octet_count)) => *octet_count += u64::from(packet.wire_len),
            None => open.push((time_ns, packet.wire_len.into())),
        }
        self.open_count += open.capacity();
        if open.len() > OPEN_MAX {
            let oldest: Vec<_> = open.drain(..OPEN_MAX / 2).collect();
            self.close(&flow.view, oldest.into_iter());
        }
    }

    fn record(&mut self, record: FlowRecord, transactions: Transactions) {
        self.durations.add(record.duration().as_secs_f64());
        self.octets.add(record.octet_count() as f64);
        if let Some(rtt) = record.handshake_rtt {
            self.handshakes.add(rtt.as_secs_f64());
        }
        if record.protocol() == flowgauge::IpProtocol::TCP {
            *self.states.entry(record.conn_state.name()).or_default() += 1;
            for side in [&record.forward, &record.reverse] {
                self.tcp.retransmitted_count += u64::from(side.tcp.retransmitted_count);
                self.tcp.zero_window_count += u64::from(side.tcp.zero_window_count);
            }
        }
        self.kept.record(record, transactions);
    }

    fn transaction(&mut self, transaction: &Transaction) {
        match &transaction.content {
            Content::Tls(tls) => self.tls.add(tls),
            Content::Quic(quic) => self.tls.add(&quic.tls),
            Content::Dns(dns) => {
                let result = dns.rcode.map_or_else(|| "no answer".to_owned(), |rcode| rcode.to_string());
                self.dns.results.entry(result).0 += 1;
                if let Some(query_type) = dns.query_type {
                    self.dns.query_types.entry(query_type.to_string()).0 += 1;
                }
                if let Some(query) = &dns.query {
                    entry(&mut self.dns.queries, &query.to_ascii_lowercase()).0 += 1;
                }
                if let Some(time) = dns.response_time {
                    self.dns.response_times.add(time.as_secs_f64());
                }
            }
            Content::Http(http) => {
                let result =
                    http.status.map_or_else(|| "no response".to_owned(), |status| status.to_string());
                self.http.results.entry(result).0 += 1;
                if let Some(host) = &http.host {
                    entry(&mut self.http.hosts, host).0 += 1;
                }
            }
            _ => {}
        }
    }
}

impl TlsDetails {
    fn add(&mut self, tls: &Tls) {
        let version = tls.version.map_or_else(|| "no answer".to_owned(), |version| version.to_string());
        self.versions.entry(version).0 += 1;
        if let Some(suite) = tls.cipher_suite {
            self.cipher_suites.entry(suite.to_string()).0 += 1;
        }
        if let Some(name) = &tls.server_name {
            entry(&mut self.server_names, name).0 += 1;
        }
    }
}

impl Sink for Detailed {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        self.overview.interest()
    }

    fn packet(&mut self, flow: &mut Flow<'_, State>, packet: &Packet<'_>) {
        self.details.packet(flow, packet);
        flow.project(|state| &mut state.overview, |flow| self.overview.packet(flow, packet));
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.overview.neighbor(neighbor);
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        flow.project(|state| &mut state.overview, |flow| self.overview.message(flow, meta, message));
    }

    fn restored(&mut self, state: &mut State) {
        self.overview.restored(&mut state.overview);
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: State) {
        // What belongs to no record.
        self.details.open_count -= state.open.capacity();
        self.details.kept.forget(&state.transactions);
        self.overview.ended(view, reason, state.overview);
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        let intervals_len = self.details.open_count * size_of::<(u64, u64)>();
        let own = self.details.kept.held_bytes(left) + intervals_len as u64;
        own + Sink::held_bytes(&mut self.overview, left)
    }

    fn record(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        let State { open, transactions, .. } = &mut *flow.state;
        let (open, transactions) = (std::mem::take(open), std::mem::take(transactions));
        self.details.open_count -= open.capacity();
        self.details.close(&flow.view, open.into_iter());
        self.details.record(flow.view.record(reason), transactions);
        flow.project(|state| &mut state.overview, |flow| self.overview.record(flow, reason));
    }
}

impl TransactionSink for Detailed {
    fn transaction(&mut self, view: &FlowView<'_>, state: &mut State, transaction: &Transaction) {
        self.overview.transaction(view, &mut state.overview, transaction);
        self.details.transaction(transaction);
        let start: Timestamp = view.start();
        self.details.kept.transaction(&mut state.transactions, start.as_nanos(), transaction);
    }
}
