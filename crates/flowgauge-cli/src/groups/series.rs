//! Counts over time: `--time-series`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::time::Duration;

use clap::Args;
use flowgauge::export::Selection;
use flowgauge::pipeline::boxed;
use flowgauge::row::{Column, ColumnSet, Row as _, RowType as _, Type, Value};
use flowgauge::{
    Builder, EndReason, Filter, Flow, FlowRecord, FlowView, Interest, Packet, PipelineStats, Side, Sink,
    Stage, Timestamp,
};

use super::output::{COUNT, Target, fields, write};
use super::row::GroupRow;
use crate::args::parse_duration;
use crate::console::{Console, Failure, write_line};
use crate::human::plural;
use crate::input::Input;
use crate::names::completed_fields;
use crate::rows::RowWriter;
use flowgauge_condition::RowFilter;

/// Maximum number of intervals of a flow that are held until its record is known. The values of its fields so far decide about
/// the oldest ones then.
const OPEN_MAX: usize = 16;

/// The same for rows that do not depend on the record: packets of several interfaces may be out of order. A flow counts again
/// in an interval with packets later than that.
const LATE_MAX: usize = 4;

/// Octets that rows take at most.
const HELD_MAX: usize = 256 << 20;

/// Octets of a row in nodes of a tree, which are at least half full, and later in the list of rows, without its values and
/// texts.
const ROW_LEN: usize = 2 * size_of::<((u64, String), Interval)>() + 2 * size_of::<GroupRow>();

/// Octets of an allocation beside its content.
const BLOCK_LEN: usize = 24;

/// Returns about the number of octets that a row takes with the values of its fields, whose texts are in `name`.
fn row_len(name: &str, key: &[Value]) -> usize {
    let values_len = 2 * (key.len() + 6) * size_of::<Value>();
    ROW_LEN + 3 * name.len() + values_len + (3 + key.len()) * BLOCK_LEN
}

/// Options of counts over time.
#[derive(Debug, Args)]
pub(crate) struct SeriesArgs {
    /// Write packets, octets and flows per interval of TIME, such as 10s
    ///
    /// Each packet counts in the interval in which it was captured. A row has `time`, the start of the interval; `flow_count`, the
    /// number of flows with packets in it; and `packet_count`, `octet_count`, `reverse_packet_count` and
    /// `reverse_octet_count`. Intervals without packets have no row. The rows are written at the end. Records that were
    /// collected have no packets: their counts are spread evenly over their time. A record with more than 4096 intervals counts
    /// in its first one only, and so does one with which the records so far would have more than 320 on average, after the
    /// first 65,536.
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    time_series: Option<Duration>,

    /// With --time-series, write a row per interval and value of these fields
    ///
    /// The values are those of the record of the flow.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "LIST",
        requires = "time_series",
        hide_possible_values = true
    )]
    #[arg(value_parser = completed_fields(fields))]
    by: Option<Selection>,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    let is_valid = interval >= Duration::from_millis(1) && interval <= Duration::from_secs(366 * 86_400);
    if is_valid { Ok(interval) } else { Err("must be from 1ms to 366days".to_owned()) }
}

impl SeriesArgs {
    pub(crate) const fn is_used(&self) -> bool {
        self.time_series.is_some()
    }

    /// Returns whether rows depend on a field with a name that contains a text.
    pub(crate) fn mentions(&self, part: &str) -> bool {
        let fields = self.by.as_ref().map(Selection::columns).unwrap_or_default();
        fields.iter().any(|column| column.name.contains(part))
    }

    /// Writes the counts of an input over time. Returns the counters, and the number of rows.
    pub(crate) fn run<G: Stage>(
        &self,
        target: Target,
        rows: RowFilter,
        (builder, filter): (&Builder, Option<&Filter>),
        input: &mut Input,
        console: &mut Console,
    ) -> Result<(PipelineStats, u64), Failure> {
        let series = self.series();
        let open_max = if series.keys.is_empty() && rows.is_empty() { LATE_MAX } else { OPEN_MAX };
        let mut sink = SeriesSink::<G> { series, open_max, open_count: 0, filter, rows, stage: PhantomData };
        let stats = input.run(builder.build(boxed(&mut sink))?, console)?;
        let row_count = sink.series.finish(target)?;
        Ok((stats, row_count))
    }

    /// Creates a writer of counts over time from records without their packets, of which those of events are flows if
    /// `counts_events`.
    pub(crate) fn writer(&self, target: Target, counts_events: bool) -> impl RowWriter + Send + 'static {
        SeriesWriter::new(self.series(), target, counts_events)
    }

    fn series(&self) -> Series {
        let all = FlowRecord::columns();
        let fields = self.by.as_ref().map(Selection::columns).unwrap_or_default();
        let place = |field: &&'static Column| all.iter().position(|column| column.name == field.name);
        let keys: Vec<usize> = fields.iter().filter_map(place).collect();
        let counts = ["packet_count", "octet_count", "reverse_packet_count", "reverse_octet_count"];
        let count = |name: &str| all.iter().find(|column| column.name == name).map(|column| **column);
        let mut columns = vec![Column::new("time", "Start of the interval.", Type::Timestamp, false)];
        columns.extend(fields.iter().map(|column| **column));
        let flows = "Number of flows with packets in the interval.";
        columns.push(Column::new(COUNT, flows, Type::Unsigned(64), false).flows());
        columns.extend(counts.into_iter().filter_map(count));
        GroupRow::set_columns(columns);
        Series {
            interval: self.time_series.unwrap_or(Duration::from_secs(1)),
            wanted: keys.iter().copied().collect(),
            keys,
            held_len: 0,
            held_max: HELD_MAX,
            intervals: BTreeMap::new(),
            omitted_count: 0,
        }
    }
}

/// Packets and octets of both sides.
type Counts = [(u64, u64); 2];

/// The counts of an interval, or of a group in it.
#[derive(Debug)]
struct Interval {
    key: Vec<Value>,
    flow_count: u64,
    counts: Counts,
}

impl Interval {
    fn into_row(self, number: u64, interval: Duration) -> GroupRow {
        let Self { key, flow_count, counts: [forward, reverse] } = self;
        let time = u128::from(number) * interval.as_nanos();
        let time = Timestamp::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
        let mut values = vec![Value::Timestamp(time)];
        values.extend(key);
        values.extend([flow_count, forward.0, forward.1, reverse.0, reverse.1].map(Value::Unsigned));
        GroupRow(values)
    }
}

/// The intervals of a flow that have not been added yet.
type Open = Vec<OpenInterval>;

/// An interval of a flow.
#[derive(Clone, Copy, Debug)]
struct OpenInterval {
    number: u64,
    counts: Counts,
    /// The flow was not counted in the interval yet.
    is_new: bool,
}

/// Counts in intervals.
struct Series {
    interval: Duration,
    /// Indices of the fields that a row has.
    keys: Vec<usize>,
    wanted: ColumnSet,
    /// The counts by number of the interval and values of the fields.
    intervals: BTreeMap<(u64, String), Interval>,
    /// About the number of octets that all rows take, and how many they may take.
    held_len: usize,
    held_max: usize,
    /// Packets in intervals beyond the limit.
    omitted_count: u64,
}

impl Series {
    /// Returns the number of the interval of a time.
    fn number(&self, time: Timestamp) -> u64 {
        let number = u128::from(time.as_nanos()) / self.interval.as_nanos();
        u64::try_from(number).unwrap_or(u64::MAX)
    }

    /// Returns the values of the fields of a record.
    fn key(&self, record: &FlowRecord) -> Vec<Value> {
        let values = record.values(&self.wanted);
        self.keys.iter().map(|index| values.get(*index).cloned().unwrap_or(Value::Null)).collect()
    }

    /// Adds intervals with the counts of the initiator first to those with the same values of fields.
    fn add(&mut self, key: &[Value], open: impl Iterator<Item = OpenInterval>) {
        let mut name = String::new();
        for value in key {
            let _ = write!(name, "{value}\u{1}");
        }
        for OpenInterval { number, counts, is_new } in open {
            let place = (number, name.clone());
            if !self.intervals.contains_key(&place) {
                if self.held_len > self.held_max {
                    self.omitted_count += counts.iter().map(|(packet_count, _)| packet_count).sum::<u64>();
                    continue;
                }
                self.held_len += row_len(&name, key);
            }
            let interval = self.intervals.entry(place).or_insert_with(|| Interval {
                key: key.to_vec(),
                flow_count: 0,
                counts: Counts::default(),
            });
            interval.flow_count += u64::from(is_new);
            for (sum, (packet_count, octet_count)) in interval.counts.iter_mut().zip(counts) {
                *sum = (sum.0 + packet_count, sum.1 + octet_count);
            }
        }
    }

    /// Writes the rows. Returns their number.
    fn finish(self, target: Target) -> Result<u64, Failure> {
        let Self { intervals, interval, omitted_count, .. } = self;
        let rows: Vec<_> =
            intervals.into_iter().map(|((number, _), row)| row.into_row(number, interval)).collect();
        let row_count = rows.len() as u64;
        write(rows, target)?;
        if omitted_count > 0 {
            let packets = plural(omitted_count, "packet");
            write_line(&format!("{packets} omitted, because there are too many rows"));
        }
        Ok(row_count)
    }
}

/// Counts records in intervals. The counts of a record are spread evenly over its time, because its packets are not known.
struct SeriesWriter {
    series: Series,
    target: Target,
    counts_events: bool,
    /// Number of intervals over which further records may be spread.
    spread_credit: u64,
    /// Records with more intervals than that, or than a record may have.
    unspread_count: u64,
}

/// Maximum number of intervals of a record. The counts of one with more are those of its first interval.
const SPREAD_MAX: u64 = 4096;

/// Number of intervals that each record permits, spread or not: those of 1 s in the usual active timeout of 5 minutes, which
/// exporters exceed by some seconds. The work for a record is constant on average.
const SPREAD_CREDIT: u64 = 320;

/// Number of intervals that are permitted in addition, for a few records that last long.
const SPREAD_CREDIT_FIRST: u64 = 1 << 16;

/// Returns the part of a count that belongs to the nanoseconds before `until` of a record of a length.
fn share(count: u64, until: u64, len: u64) -> u64 {
    let share = u128::from(count) * u128::from(until.min(len)) / u128::from(len.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl SeriesWriter {
    fn new(series: Series, target: Target, counts_events: bool) -> Self {
        Self { series, target, counts_events, spread_credit: SPREAD_CREDIT_FIRST, unspread_count: 0 }
    }

    /// Returns whether a record may be spread over a number of intervals, and takes them from the credit.
    fn permits(&mut self, interval_count: u64) -> bool {
        self.spread_credit = self.spread_credit.saturating_add(SPREAD_CREDIT);
        let is_permitted = interval_count <= SPREAD_MAX.min(self.spread_credit);
        self.spread_credit -= if is_permitted { interval_count } else { 1 };
        self.unspread_count += u64::from(!is_permitted);
        is_permitted
    }

    fn add(&mut self, record: &FlowRecord) {
        let is_flow = self.counts_events || !record.is_event();
        if !is_flow && record.packet_count() == 0 && record.octet_count() == 0 {
            return;
        }
        let first = self.series.number(record.start);
        let last = self.series.number(record.end).max(first);
        let last = if self.permits((last - first).saturating_add(1)) { last } else { first };
        let series = &mut self.series;
        let start_ns = record.start.as_nanos();
        let len = record.end.as_nanos().saturating_sub(start_ns).saturating_add(1);
        let interval_ns = u64::try_from(series.interval.as_nanos()).unwrap_or(u64::MAX);
        let totals = [&record.forward, &record.reverse]
            .map(|side| (side.counters.packet_count, side.counters.octet_count));
        let intervals = (first..=last).map(|number| {
            // The last interval has the rest.
            let end = number.saturating_add(1).saturating_mul(interval_ns).saturating_sub(start_ns);
            let end = if number == last { len } else { end };
            let begin = number.saturating_mul(interval_ns).saturating_sub(start_ns);
            let part = |count| share(count, end, len) - share(count, begin, len);
            let counts = totals.map(|(packet_count, octet_count)| (part(packet_count), part(octet_count)));
            OpenInterval { number, counts, is_new: is_flow }
        });
        let key = series.key(record);
        series.add(&key, intervals);
    }
}

impl RowWriter for SeriesWriter {
    fn write_if(
        &mut self,
        record: &FlowRecord,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, Failure> {
        // The output is bounded by the number of rows.
        let is_permitted = permits(0);
        if is_permitted {
            self.add(record);
        }
        Ok(is_permitted)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn finish(self: Box<Self>, _: bool) -> Result<(), Failure> {
        let Self { series, target, unspread_count, .. } = *self;
        series.finish(target)?;
        if unspread_count > 0 {
            let records = plural(unspread_count, "record");
            write_line(&format!(
                "{records} counted in the first interval only, because there are too many intervals"
            ));
        }
        Ok(())
    }
}

/// Counts packets in intervals.
struct SeriesSink<'a, G> {
    series: Series,
    /// Maximum number of intervals of a flow that are held.
    open_max: usize,
    /// Number of places for intervals of open flows.
    open_count: usize,
    filter: Option<&'a Filter>,
    rows: RowFilter,
    stage: PhantomData<fn() -> G>,
}

impl<G> SeriesSink<'_, G> {
    /// Adds intervals of a flow to those with the same values of fields.
    fn add(&mut self, view: &FlowView<'_>, reason: EndReason, open: impl Iterator<Item = OpenInterval>) {
        if self.filter.is_some_and(|filter| !filter.matches_flow(view)) {
            return;
        }
        let mut key = Vec::new();
        if !self.series.keys.is_empty() || !self.rows.is_empty() {
            let record = view.record(reason);
            if !self.rows.matches(&record) {
                return;
            }
            key = self.series.key(&record);
        }
        let is_reversed = view.initiator() != Side::A;
        let initiator_first = |interval: OpenInterval| {
            let [a, b] = interval.counts;
            OpenInterval { counts: if is_reversed { [b, a] } else { [a, b] }, ..interval }
        };
        self.series.add(&key, open.map(initiator_first));
    }
}

impl<G: Stage> Sink for SeriesSink<'_, G> {
    type State = Open;
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, Open>, packet: &Packet<'_>) {
        let number = self.series.number(packet.timestamp);
        let open = &mut *flow.state;
        self.open_count -= open.capacity();
        // Packets of several interfaces may be out of order.
        let found = open.iter().rposition(|interval| interval.number == number);
        let index = found.unwrap_or_else(|| {
            open.push(OpenInterval { number, counts: Counts::default(), is_new: true });
            open.len() - 1
        });
        if let Some(OpenInterval { counts, .. }) = open.get_mut(index)
            && let Some((packet_count, octet_count)) = counts.get_mut(packet.side.index())
        {
            *packet_count += u64::from(packet.segment_count());
            *octet_count += u64::from(packet.wire_len);
        }
        self.open_count += open.capacity();
        if open.len() > self.open_max {
            let oldest: Vec<_> = open.drain(..self.open_max.div_ceil(2)).collect();
            self.add(&flow.view, EndReason::ActiveTimeout, oldest.into_iter());
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, Open>, reason: EndReason) {
        let open = std::mem::take(flow.state);
        self.open_count -= open.capacity();
        // The flow continues in its last interval.
        if reason == EndReason::ActiveTimeout
            && let Some(last) = open.last()
        {
            flow.state.push(OpenInterval { counts: Counts::default(), is_new: false, ..*last });
            self.open_count += flow.state.capacity();
        }
        self.add(&flow.view, reason, open.into_iter());
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, open: Open) {
        self.open_count -= open.capacity();
    }

    fn held_bytes(&mut self, _: u64) -> u64 {
        (self.open_count * size_of::<OpenInterval>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use flowgauge::{FlowKey, IpProtocol};

    use super::*;

    /// Each record has 4000 intervals, and a group of its own.
    #[test]
    fn allocated_memory_of_spread_records_is_within_the_limit() {
        const LIMIT: usize = 4 << 20;
        let args = SeriesArgs {
            time_series: Some(Duration::from_millis(1)),
            by: Some(fields("source_port").unwrap()),
        };
        let (peak, (row_count, omitted_count)) = crate::heap::peak_of(|| {
            let mut writer = SeriesWriter::new(args.series(), Target::Table, false);
            writer.series.held_max = LIMIT;
            for number in 0..20 {
                let (key, side) = FlowKey::new(
                    IpProtocol::UDP,
                    ([10, 0, 0, 1].into(), 2000 + number),
                    ([192, 0, 2, 1].into(), 2000),
                );
                let mut record = FlowRecord::new(key, side, Timestamp::ZERO);
                record.end = Timestamp::from_nanos(4_000_000_000);
                record.forward.counters.packet_count = 8000;
                writer.add(&record);
            }
            let Series { intervals, interval, omitted_count, .. } = writer.series;
            let rows = intervals.into_iter().map(|((number, _), row)| row.into_row(number, interval));
            (rows.collect::<Vec<_>>().len(), omitted_count)
        });
        println!("{peak} bytes, {row_count} rows, {omitted_count} packets omitted");
        assert!(peak <= LIMIT, "{peak}");
        assert!(row_count > LIMIT / 2000 && omitted_count > 8000, "{row_count} rows");
    }
}
