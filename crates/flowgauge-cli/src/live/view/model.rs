//! Content of the view: rates over time, and the flows, hosts and protocols with the most traffic.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use flowgauge::base::IpProtocol;
use flowgauge::source::SourceStats;
use flowgauge::{Filter, FlowView, PipelineStats, Side, Timestamp};
use lru::LruCache;

use crate::choice::matches;

/// Counts of a flow that are part of the totals of its hosts and its protocol.
#[derive(Debug, Default)]
pub(super) struct Seen {
    packet_count: Cell<u64>,
    octet_count: Cell<u64>,
}

impl Seen {
    /// Replaces the counts, and returns the previous ones.
    pub(super) fn replace(&self, packet_count: u64, octet_count: u64) -> (u64, u64) {
        (self.packet_count.replace(packet_count), self.octet_count.replace(octet_count))
    }
}

/// Number of rows of each table that are kept.
const ROW_COUNT_MAX: usize = 200;

/// Number of hosts with totals; the one without traffic for the longest time is forgotten first.
const HOST_COUNT_MAX: usize = 16_384;

/// Number of protocols with totals. Names come from a fixed set, except for the numbers of IP protocols.
const PROTOCOL_COUNT_MAX: usize = 1024;

/// Number of rates that are kept, one per refresh.
const RATE_COUNT_MAX: usize = 512;

/// Tables of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Flows,
    Hosts,
    Protocols,
}

impl Tab {
    pub(super) const ALL: [Self; 3] = [Self::Flows, Self::Hosts, Self::Protocols];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Flows => "Flows",
            Self::Hosts => "Hosts",
            Self::Protocols => "Protocols",
        }
    }

    pub(super) const fn next(self) -> Self {
        match self {
            Self::Flows => Self::Hosts,
            Self::Hosts => Self::Protocols,
            Self::Protocols => Self::Flows,
        }
    }
}

/// Orders of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Rate,
    Octets,
    Packets,
}

impl Order {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Rate => Self::Octets,
            Self::Octets => Self::Packets,
            Self::Packets => Self::Rate,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Octets => "octets",
            Self::Packets => "packets",
        }
    }
}

/// Traffic of a flow, host or protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) packet_count: u64,
    pub(super) octet_count: u64,
    /// Octets since the last refresh.
    pub(super) new_octet_count: u64,
}

impl Traffic {
    fn add(&mut self, new: Self) {
        self.packet_count += new.packet_count;
        self.octet_count += new.octet_count;
        self.new_octet_count += new.octet_count;
    }

    fn rank(&self, order: Order) -> u64 {
        match order {
            Order::Rate => self.new_octet_count,
            Order::Octets => self.octet_count,
            Order::Packets => self.packet_count,
        }
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Protocol of a flow; empty in the other tables.
    pub(super) protocol: String,
    /// Source of a flow, or the name of a host or a protocol.
    pub(super) name: String,
    /// Destination of a flow; empty in the other tables.
    pub(super) peer: String,
    pub(super) traffic: Traffic,
}

/// Rates between two refreshes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) bits_per_second: f64,
    pub(super) packets_per_second: f64,
    pub(super) flows_per_second: f64,
}

/// Content of the view. Memory is bounded, whatever the traffic.
pub(super) struct Model {
    pub(super) tab: Tab,
    pub(super) order: Order,
    pub(super) is_paused: bool,
    pub(super) filter: Option<Filter>,
    pub(super) rows: Vec<Row>,
    /// Rates of the last refreshes, the latest last.
    pub(super) rates: VecDeque<Rates>,
    pub(super) source: SourceStats,
    pub(super) stats: PipelineStats,
    pub(super) flow_count: usize,
    pub(super) budget_bytes: u64,
    /// Duration between the last two refreshes.
    pub(super) interval: Duration,
    hosts: LruCache<IpAddr, Traffic>,
    protocols: HashMap<String, Traffic>,
}

/// What the pipeline reports at a refresh.
pub(super) struct Report {
    pub(super) interval: Duration,
    pub(super) source: SourceStats,
    pub(super) stats: PipelineStats,
    pub(super) flow_count: usize,
    pub(super) budget_bytes: u64,
}

impl Model {
    /// Creates a model without traffic, which shows the flows that a filter selects.
    pub(super) fn new(filter: Option<Filter>) -> Self {
        let host_count_max =
            std::num::NonZeroUsize::new(HOST_COUNT_MAX).unwrap_or(std::num::NonZeroUsize::MIN);
        Self {
            tab: Tab::default(),
            order: Order::default(),
            is_paused: false,
            filter,
            rows: Vec::new(),
            rates: VecDeque::new(),
            source: SourceStats::default(),
            stats: PipelineStats::default(),
            flow_count: 0,
            budget_bytes: 0,
            interval: Duration::from_secs(1),
            hosts: LruCache::new(host_count_max),
            protocols: HashMap::new(),
        }
    }

    /// Counts the packets of a flow since it was last counted. Returns its traffic.
    pub(super) fn count(&mut self, view: &FlowView<'_>, seen: &Seen) -> Traffic {
        let (packet_count, octet_count) = (view.packet_count(), view.octet_count());
        let (old_packet_count, old_octet_count) = seen.replace(packet_count, octet_count);
        let new = Traffic {
            packet_count: packet_count - old_packet_count,
            octet_count: octet_count - old_octet_count,
            new_octet_count: 0,
        };
        if new.packet_count > 0 {
            let [host, peer] = [Side::A, Side::B].map(|side| view.key().address(side));
            self.hosts.get_or_insert_mut(host, Traffic::default).add(new);
            if peer != host {
                self.hosts.get_or_insert_mut(peer, Traffic::default).add(new);
            }
            let name = protocol_name(view);
            if self.protocols.len() < PROTOCOL_COUNT_MAX || self.protocols.contains_key(&name) {
                self.protocols.entry(name).or_default().add(new);
            }
        }
        Traffic { packet_count, octet_count, new_octet_count: new.octet_count }
    }

    /// Updates the totals and the rows from all open flows.
    pub(super) fn refresh<'v>(
        &mut self,
        report: Report,
        flows: impl Iterator<Item = (FlowView<'v>, &'v Seen)>,
    ) {
        let mut rows = Vec::new();
        let order = self.order;
        for (view, seen) in flows {
            let traffic = self.count(&view, seen);
            let is_shown =
                self.tab == Tab::Flows && self.filter.as_ref().is_none_or(|filter| matches(filter, &view));
            if is_shown {
                // The text is made for the rows that remain.
                rows.push((
                    Reverse(traffic.rank(order)),
                    view.start(),
                    *view.key(),
                    view.initiator(),
                    traffic,
                    protocol_of(&view),
                ));
                if rows.len() >= 2 * ROW_COUNT_MAX {
                    rows.select_nth_unstable_by_key(ROW_COUNT_MAX, |row| (row.0, row.1));
                    rows.truncate(ROW_COUNT_MAX);
                }
            }
        }
        let seconds = report.interval.as_secs_f64().max(1e-3);
        let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
        self.rates.push_back(Rates {
            bits_per_second: 8.0 * rate(report.stats.octet_count, self.stats.octet_count),
            packets_per_second: rate(report.stats.frame_count, self.stats.frame_count),
            flows_per_second: rate(report.stats.tracker.started_count, self.stats.tracker.started_count),
        });
        if self.rates.len() > RATE_COUNT_MAX {
            self.rates.pop_front();
        }
        let Report { interval, source, stats, flow_count, budget_bytes } = report;
        (self.interval, self.source, self.stats) = (interval, source, stats);
        (self.flow_count, self.budget_bytes) = (flow_count, budget_bytes);
        let new_rows = match self.tab {
            Tab::Flows => {
                rows.sort_by_key(|row| (row.0, row.1));
                let row = |(_, _, key, initiator, traffic, protocol): (
                    _,
                    Timestamp,
                    flowgauge::FlowKey,
                    Side,
                    _,
                    _,
                )| Row {
                    protocol,
                    name: endpoint(&key, initiator),
                    peer: endpoint(&key, initiator.other()),
                    traffic,
                };
                rows.into_iter().take(ROW_COUNT_MAX).map(row).collect()
            }
            Tab::Hosts => top(self.hosts.iter().map(|(host, traffic)| (*host, *traffic)), order),
            Tab::Protocols => {
                top(self.protocols.iter().map(|(name, traffic)| (name.clone(), *traffic)), order)
            }
        };
        if !self.is_paused {
            self.rows = new_rows;
        }
        self.hosts.iter_mut().for_each(|(_, traffic)| traffic.new_octet_count = 0);
        self.protocols.values_mut().for_each(|traffic| traffic.new_octet_count = 0);
    }
}

/// Returns the rows with the most traffic, in order.
fn top<N: ToString + Ord + Hash>(all: impl Iterator<Item = (N, Traffic)>, order: Order) -> Vec<Row> {
    let mut all: Vec<_> = all.collect();
    all.sort_by(|a, b| b.1.rank(order).cmp(&a.1.rank(order)).then_with(|| a.0.cmp(&b.0)));
    let row = |(name, traffic): (N, _)| Row {
        protocol: String::new(),
        name: name.to_string(),
        peer: String::new(),
        traffic,
    };
    all.into_iter().take(ROW_COUNT_MAX).map(row).collect()
}

fn endpoint(key: &flowgauge::FlowKey, side: Side) -> String {
    match (key.address(side), key.port(side)) {
        (IpAddr::V6(address), Some(port)) => format!("[{address}]:{port}"),
        (address, Some(port)) => format!("{address}:{port}"),
        (address, None) => address.to_string(),
    }
}

fn protocol_of(view: &FlowView<'_>) -> String {
    match view.application() {
        Some(application) => application.to_string(),
        None => view.key().protocol().to_string(),
    }
}

/// Returns the transport protocol of a flow, with the application protocol if it was identified.
fn protocol_name(view: &FlowView<'_>) -> String {
    let protocol: IpProtocol = view.key().protocol();
    match view.application() {
        Some(application) => format!("{protocol}/{application}"),
        None => protocol.to_string(),
    }
}
