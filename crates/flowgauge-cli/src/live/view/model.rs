//! Content of the view: rates over time, and the flows, hosts and protocols with the most traffic.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use flowgauge::source::SourceStats;
use flowgauge::{
    EndReason, Filter, FlowId, FlowRecord, FlowView, IpProtocol, Message, MessageMeta, PipelineStats, Side,
    Timestamp,
};
use lru::LruCache;

use super::messages::{Lines, Messages, Share};
use super::name;
use super::order::{Order, Tab, Times};
use super::selected::FlowCondition;
use super::traffic::{Activity, Counted, Sum, Traffic, seconds};

/// Time between two refreshes of the content.
pub(super) const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// State of a flow in the view.
#[derive(Debug, Default)]
pub(super) struct Seen {
    counted: Counted,
    name: Option<Arc<str>>,
    share: Share,
}

/// Number of rows of each table that are kept.
const ROW_COUNT_MAX: usize = 200;

/// Number of hosts with totals; the one without traffic for the longest time is forgotten first.
const HOST_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// Number of protocols with totals. Names come from a fixed set, except for the numbers of IP protocols.
const PROTOCOL_COUNT_MAX: usize = 1024;

/// Number of samples that are kept, one per interval.
const SAMPLE_COUNT_MAX: usize = 512;

/// Maximum number of octets of the names of all flows together.
const NAME_OCTET_COUNT_MAX: usize = 16 << 20;

/// A flow at the last refresh.
#[derive(Clone, Debug)]
pub(super) struct FlowRow {
    pub(super) id: FlowId,
    pub(super) record: FlowRecord,
    /// Name of the server, or the name that was queried.
    pub(super) name: Option<Arc<str>>,
    pub(super) activity: Activity,
    pub(super) age: Duration,
}

impl FlowRow {
    fn new(view: &FlowView<'_>, seen: &Seen, now: Timestamp) -> Self {
        Self {
            id: view.id(),
            // The flow continues.
            record: view.record(EndReason::ActiveTimeout),
            name: seen.name.clone(),
            activity: seen.counted.activity(view.initiator()),
            age: now.saturating_since(view.start()),
        }
    }

    /// Returns the application protocol, or the IP protocol.
    pub(super) fn protocol(&self) -> String {
        match self.record.application {
            Some(application) => application.to_string(),
            None if self.record.protocol() == IpProtocol::ICMPV6 => "icmp6".to_owned(),
            None => self.record.protocol().to_string(),
        }
    }
}

/// A host or a protocol at the last refresh.
#[derive(Clone, Debug)]
pub(super) struct TotalRow {
    pub(super) name: String,
    pub(super) activity: Activity,
}

impl TotalRow {
    /// Returns the condition that selects the flows of a host or a protocol.
    fn condition(&self, tab: Tab) -> Option<FlowCondition> {
        let Self { name, .. } = self;
        let text = match (tab, name.split_once('/')) {
            (Tab::Flows, _) => return None,
            (Tab::Hosts, _) => format!("source_address = '{name}' or destination_address = '{name}'"),
            (Tab::Protocols, None) => format!("protocol = '{name}' and application is null"),
            (Tab::Protocols, Some((protocol, application))) => {
                format!("protocol = '{protocol}' and application = '{}'", application.trim_end_matches('?'))
            }
        };
        FlowCondition::parse(&text).ok()
    }
}

/// The row that is marked. A flow remains marked when its row moves.
#[derive(Clone, Copy, Debug)]
struct Mark {
    index: usize,
    flow: Option<FlowId>,
}

/// A flow with all its facts and its latest messages.
#[derive(Debug)]
pub(super) struct ShownFlow {
    pub(super) row: FlowRow,
    pub(super) lines: Lines,
    /// Reason for the end of the flow, if it has ended.
    pub(super) end_reason: Option<EndReason>,
}

/// Rates in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) interval: Duration,
    pub(super) bits_per_second: f64,
    pub(super) flows_per_second: f64,
    /// Number of packets that were processed, and that were dropped.
    pub(super) packet_count: u64,
    pub(super) drop_count: u64,
}

/// What the pipeline reports at the end of an interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) interval: Duration,
    pub(super) source: SourceStats,
    pub(super) stats: PipelineStats,
    pub(super) flow_count: usize,
    pub(super) budget_bytes: u64,
}

/// Content of the view. Memory is bounded, whatever the traffic.
pub(super) struct Model {
    pub(super) tab: Tab,
    pub(super) order: Order,
    pub(super) is_reversed: bool,
    pub(super) is_paused: bool,
    pub(super) condition: Option<FlowCondition>,
    /// The table from which the flows of a host or protocol were opened.
    origin: Option<Tab>,
    /// The part of the filter of the command that applies to complete flows.
    filter: Option<Filter>,
    pub(super) flows: Vec<FlowRow>,
    /// Number of open flows that meet the condition.
    pub(super) selected_count: usize,
    pub(super) totals: Vec<TotalRow>,
    /// The row that is marked, if any.
    mark: Option<Mark>,
    pub(super) shown: Option<ShownFlow>,
    /// Samples, the latest one last.
    pub(super) samples: VecDeque<Sample>,
    /// Traffic of all flows, from the view of their initiators.
    pub(super) sum: Sum,
    /// The report of the last complete interval.
    pub(super) report: Report,
    pub(super) elapsed: Duration,
    messages: Messages,
    hosts: LruCache<IpAddr, Sum>,
    protocols: HashMap<String, Sum>,
    /// Octets of the names of all flows.
    name_octet_count: usize,
}

/// Returns the number of packets that the kernel and the interface dropped.
pub(super) const fn drop_count(source: &SourceStats) -> u64 {
    source.kernel_drop_count.saturating_add(source.interface_drop_count)
}

impl Model {
    /// Creates a model without traffic, which shows the flows that a filter selects.
    pub(super) fn new(filter: Option<Filter>) -> Self {
        Self {
            tab: Tab::default(),
            order: Order::default(),
            is_reversed: false,
            is_paused: false,
            condition: None,
            origin: None,
            filter,
            flows: Vec::new(),
            selected_count: 0,
            totals: Vec::new(),
            mark: None,
            shown: None,
            samples: VecDeque::new(),
            sum: Sum::default(),
            report: Report { interval: REFRESH_INTERVAL, ..Report::default() },
            elapsed: Duration::ZERO,
            messages: Messages::default(),
            hosts: LruCache::new(HOST_COUNT_MAX),
            protocols: HashMap::new(),
            name_octet_count: 0,
        }
    }

    /// Adds the traffic of a flow since its last count to the totals. Returns it, from the view of side A.
    fn count(&mut self, view: &FlowView<'_>, seen: &Seen) -> Traffic {
        let new = seen.counted.count(view);
        if new.both().packet_count == 0 {
            return new;
        }
        let [host, peer] = [Side::A, Side::B].map(|side| view.key().address(side));
        self.hosts.get_or_insert_mut(host, Sum::default).add(new);
        if peer != host {
            self.hosts.get_or_insert_mut(peer, Sum::default).add(new.seen_by(Side::B));
        }
        let of_initiator = new.seen_by(view.initiator());
        let name = match view.application() {
            Some(application) => format!("{}/{application}", view.key().protocol()),
            None => view.key().protocol().to_string(),
        };
        if self.protocols.len() < PROTOCOL_COUNT_MAX || self.protocols.contains_key(&name) {
            self.protocols.entry(name).or_default().add(of_initiator);
        }
        self.sum.add(of_initiator);
        new
    }

    /// Counts a flow for which a record is due and that continues.
    pub(super) fn record_ended(&mut self, view: &FlowView<'_>, seen: &Seen) {
        self.count(view, seen);
        seen.counted.begin_record();
    }

    /// Counts a flow that has ended.
    pub(super) fn flow_ended(&mut self, view: &FlowView<'_>, seen: &Seen, reason: EndReason) {
        self.count(view, seen);
        self.name_octet_count -= seen.name.as_ref().map_or(0, |name| name.len());
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.row.id == view.id()) {
            shown.row = FlowRow { record: view.record(reason), ..FlowRow::new(view, seen, view.end()) };
            shown.row.activity.recent = Traffic::default();
            shown.end_reason = Some(reason);
        }
    }

    /// Takes a message of a flow.
    pub(super) fn message(
        &mut self,
        view: &FlowView<'_>,
        seen: &mut Seen,
        meta: &MessageMeta,
        message: &Message<'_>,
    ) {
        if let Some(name) = name::of(message, seen.name.as_deref()) {
            self.name_octet_count -= seen.name.take().map_or(0, |old| old.len());
            if self.name_octet_count + name.len() <= NAME_OCTET_COUNT_MAX {
                self.name_octet_count += name.len();
                seen.name = Some(name);
            }
        }
        let Some(line) = self.messages.add(view.id(), &mut seen.share, meta, message) else { return };
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.row.id == view.id()) {
            shown.lines.push(line.clone());
        }
    }

    /// Updates the rows from all open flows; with a report, ends an interval first.
    pub(super) fn refresh<'v>(
        &mut self,
        now: Timestamp,
        report: Option<Report>,
        flows: impl Iterator<Item = (FlowView<'v>, &'v Seen)>,
    ) {
        let order = self.order.or_default_in(self.tab);
        let mut top = Top::new(self.is_reversed);
        let mut condition = self.condition.take();
        // A key takes effect in a pause too.
        let is_updated = !self.is_paused || report.is_none();
        let has_rows = self.tab == Tab::Flows && is_updated;
        let mut selected_count = 0;
        for (view, seen) in flows {
            if report.is_some() {
                seen.counted.end_interval(self.count(&view, seen));
            }
            if let Some(shown) = self.shown.as_mut().filter(|shown| shown.row.id == view.id()) {
                shown.row = FlowRow::new(&view, seen, now);
            }
            if !has_rows || self.filter.as_ref().is_some_and(|filter| !filter.matches_flow(&view)) {
                continue;
            }
            let is_selected = condition.as_mut().is_none_or(|condition| {
                condition.matches(&view.record(EndReason::ActiveTimeout), seen.name.as_deref())
            });
            if is_selected {
                selected_count += 1;
                let times = Times { rtt: view.handshake_rtt(), age: now.saturating_since(view.start()) };
                let activity = seen.counted.activity(view.initiator());
                // Of flows without traffic, those with the latest packets are first.
                let tie = (Reverse(view.end()), view.start());
                top.add(order.value(&activity, times), tie, (view, seen));
            }
        }
        self.condition = condition;
        if has_rows {
            self.selected_count = selected_count;
            let rows = top.into_rows();
            self.flows = rows.map(|(view, seen)| FlowRow::new(&view, seen, now)).collect();
        }
        if let Some(report) = report {
            self.end_interval(report);
        }
        if is_updated {
            self.totals = self.total_rows(order);
        }
        self.follow_mark();
    }

    /// Returns the number of rows of the current table.
    fn row_count(&self) -> usize {
        if self.tab == Tab::Flows { self.flows.len() } else { self.totals.len() }
    }

    /// Returns the index of the marked row.
    pub(super) fn marked_index(&self) -> Option<usize> {
        self.mark.map(|mark| mark.index)
    }

    /// Marks the row with an index, or the last one if there are fewer; `None` marks no row.
    pub(super) fn mark(&mut self, index: Option<usize>) {
        let last = self.row_count().checked_sub(1);
        self.mark = index.zip(last).map(|(index, last)| {
            let index = index.min(last);
            let flow = self.flows.get(index).filter(|_| self.tab == Tab::Flows);
            Mark { index, flow: flow.map(|row| row.id) }
        });
    }

    /// Moves the mark by a number of rows. The first or last row is marked if none was.
    pub(super) fn move_mark(&mut self, by: isize) {
        let index = match self.mark {
            Some(mark) => mark.index.saturating_add_signed(by),
            None if by < 0 => usize::MAX,
            None => 0,
        };
        self.mark(Some(index));
    }

    /// Moves the mark to the new row of its flow; if the flow has no row, the row with the same index is marked.
    fn follow_mark(&mut self) {
        let Some(mark) = self.mark else { return };
        let row = self.flows.iter().position(|row| Some(row.id) == mark.flow);
        self.mark(Some(row.unwrap_or(mark.index)));
    }

    /// Shows the flows of a table from the start, and marks no row.
    pub(super) fn select_tab(&mut self, tab: Tab) {
        self.origin = None;
        self.tab = tab;
        self.mark = None;
    }

    /// Opens the marked row, or the first one: shows a flow, or the flows of a host or protocol.
    pub(super) fn open(&mut self) {
        let index = self.marked_index().unwrap_or_default();
        if self.tab == Tab::Flows {
            if let Some(row) = self.flows.get(index) {
                let lines = self.messages.of(row.id);
                self.shown = Some(ShownFlow { row: row.clone(), lines, end_reason: None });
            }
        } else if let Some(condition) = self.totals.get(index).and_then(|row| row.condition(self.tab)) {
            self.condition = Some(condition);
            let origin = self.tab;
            self.select_tab(Tab::Flows);
            self.origin = Some(origin);
        }
    }

    /// Removes the condition, and returns to the table from which the flows were opened.
    pub(super) fn close(&mut self) {
        self.condition = None;
        if let Some(origin) = self.origin {
            self.select_tab(origin);
        }
    }

    fn end_interval(&mut self, report: Report) {
        let old = std::mem::replace(&mut self.report, report);
        let Report { interval, stats, source, .. } = &self.report;
        let new = |now: u64, before: u64| now.saturating_sub(before);
        let seconds = seconds(*interval);
        let started = new(stats.tracker.started_count, old.stats.tracker.started_count);
        self.samples.push_back(Sample {
            interval: *interval,
            bits_per_second: 8.0 * new(stats.octet_count, old.stats.octet_count) as f64 / seconds,
            flows_per_second: started as f64 / seconds,
            packet_count: new(stats.frame_count, old.stats.frame_count),
            drop_count: new(drop_count(source), drop_count(&old.source)),
        });
        if self.samples.len() > SAMPLE_COUNT_MAX {
            self.samples.pop_front();
        }
        self.elapsed += *interval;
        self.sum.end_interval();
        self.hosts.iter_mut().for_each(|(_, sum)| sum.end_interval());
        self.protocols.values_mut().for_each(Sum::end_interval);
        self.messages.end_interval();
    }

    /// Returns the rows of the hosts or protocols with the most traffic.
    fn total_rows(&self, order: Order) -> Vec<TotalRow> {
        let value = |sum: &Sum| order.value(&sum.activity, Times::default());
        let activity = |sum: &Sum| sum.activity;
        match self.tab {
            Tab::Flows => Vec::new(),
            Tab::Hosts => {
                let mut top = Top::new(self.is_reversed);
                self.hosts.iter().for_each(|(host, sum)| top.add(value(sum), *host, (host, sum)));
                let row =
                    |(host, sum): (&IpAddr, _)| TotalRow { name: host.to_string(), activity: activity(sum) };
                top.into_rows().map(row).collect()
            }
            Tab::Protocols => {
                let mut top = Top::new(self.is_reversed);
                self.protocols.iter().for_each(|(name, sum)| top.add(value(sum), name, (name, sum)));
                let row =
                    |(name, sum): (&String, _)| TotalRow { name: name.clone(), activity: activity(sum) };
                top.into_rows().map(row).collect()
            }
        }
    }
}

/// The first rows of an order.
struct Top<T, R> {
    is_reversed: bool,
    rows: Vec<((u64, T), R)>,
}

impl<T: Ord + Copy, R> Top<T, R> {
    const fn new(is_reversed: bool) -> Self {
        Self { is_reversed, rows: Vec::new() }
    }

    /// Adds a row with its value, and what decides among rows with the same value.
    fn add(&mut self, value: u64, tie: T, row: R) {
        let rank = if self.is_reversed { value } else { !value };
        self.rows.push(((rank, tie), row));
        if self.rows.len() >= 2 * ROW_COUNT_MAX {
            self.rows.select_nth_unstable_by_key(ROW_COUNT_MAX, |row| row.0);
            self.rows.truncate(ROW_COUNT_MAX);
        }
    }

    fn into_rows(mut self) -> impl Iterator<Item = R> {
        self.rows.sort_by_key(|row| row.0);
        self.rows.into_iter().take(ROW_COUNT_MAX).map(|(_, row)| row)
    }
}
