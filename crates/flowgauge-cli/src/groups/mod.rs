//! Groups of flows: `--group-by`.

mod function;
mod output;
mod row;
mod series;
mod table;

use std::collections::HashMap;

use clap::Args;
use flowgauge::FlowRecord;
use flowgauge::export::Selection;
use flowgauge::row::{Column, ColumnSet, Row as _, RowType as _, Type, Value};

use crate::console::{Failure, write_line};
use crate::human::plural;
use flowgauge_condition::field_name;

use crate::names::completed_fields;
use crate::order::Place;
use crate::rows::RowWriter;
pub(crate) use function::Aggregate;
use function::State;
pub(crate) use output::Target;
use output::{COUNT, fields, write};
use row::GroupRow;
pub(crate) use series::SeriesArgs;

/// Octets that groups take at most.
const HELD_MAX: usize = 256 << 20;

/// Octets of a group in the table while that grows, without what its key, functions and texts have allocated.
const GROUP_LEN: usize = 3 * size_of::<(String, Group)>();

/// Octets of an allocation beside its content.
const BLOCK_LEN: usize = 24;

/// Returns about the number of octets that a group takes, in the table or later in its row, without what its functions have
/// allocated.
fn group_len(name: &str, key_count: usize, function_count: usize) -> usize {
    // The name, a copy for sorting, and texts in the values.
    let texts_len = 3 * name.len() + (2 + key_count) * BLOCK_LEN;
    let values_len = 2 * (key_count + 1 + function_count) * size_of::<Value>();
    GROUP_LEN + texts_len + values_len + 2 * BLOCK_LEN + function_count * size_of::<State>()
}

/// Options of groups.
#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// Write a row per group of flows with the same values of these fields
    ///
    /// The fields are separated by commas; docs/fields.md describes them. A row has the fields, `flow_count`, and the results
    /// of --sum and --aggregate. The rows are written at the end, in the order of --sort: the greatest sum or result
    /// first, or the greatest number of flows.
    #[arg(long, value_name = "LIST", value_parser = completed_fields(fields), hide_possible_values = true)]
    group_by: Option<Selection>,

    /// With --group-by, add the sums of fields, such as octet_count
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "group_by",
        hide_possible_values = true
    )]
    #[arg(value_parser = completed_fields(Aggregate::sum))]
    sum: Vec<Aggregate>,

    /// With --group-by, add functions such as p95(duration)
    ///
    /// The functions are separated by commas: sum, mean, min, max, distinct (number of different values, exact up to 1024, then
    /// with a standard error of 0.8 %), median, and percentiles such as p95 and p99.9 (nearest rank, exact up to 256 values,
    /// then with an error of 1 % of the value).
    #[arg(long, value_name = "LIST", value_parser = Aggregate::parse, value_delimiter = ',', requires = "group_by")]
    aggregate: Vec<Aggregate>,

    /// With --group-by or --time-series, count events of firewalls and translators as flows
    ///
    /// A collected record of an event, such as the beginning of a flow, a denied packet or a new translation, is not a flow of
    /// its own. Without this option, it adds its packets and octets, if it has any, and does not count in `flow_count`.
    #[arg(long, hide_short_help = true)]
    pub(crate) count_events: bool,
}

/// The order of groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupOrder<'a> {
    /// Name of a column.
    pub(crate) column: Option<&'a str>,
    pub(crate) is_reversed: bool,
    pub(crate) limit: usize,
}

impl GroupArgs {
    pub(crate) const fn is_used(&self) -> bool {
        self.group_by.is_some()
    }

    /// Returns whether a field with a name that contains a text is grouped by.
    pub(crate) fn mentions(&self, part: &str) -> bool {
        let fields = self.group_by.as_ref().map(Selection::columns).unwrap_or_default();
        let aggregates = self.sum.iter().chain(&self.aggregate).map(|aggregate| aggregate.field);
        fields.iter().copied().chain(aggregates).any(|column| column.name.contains(part))
    }

    /// Creates the writer of groups.
    pub(crate) fn writer(&self, order: GroupOrder<'_>, target: Target) -> Result<Groups, Failure> {
        let all = FlowRecord::columns();
        let fields = self.group_by.as_ref().map(Selection::columns).unwrap_or_default();
        let place = |field: &&'static Column| all.iter().position(|column| column.name == field.name);
        let aggregates: Vec<_> = self.sum.iter().chain(&self.aggregate).cloned().collect();
        let mut columns: Vec<Column> = fields.iter().map(|column| **column).collect();
        columns.push(Column::new(COUNT, "Number of flows.", Type::Unsigned(64), false).flows());
        columns.extend(aggregates.iter().map(Aggregate::column));
        let mut names: Vec<_> = columns.iter().map(|column| column.name).collect();
        names.sort_unstable();
        if let Some([name, _]) =
            names.windows(2).find(|pair| matches!(pair, [first, second] if first == second))
        {
            return Err(Failure::Usage(format!("--group-by: the column `{name}` exists twice")));
        }
        let sorted_by = match order.column {
            Some(name) => {
                let name = field_name(name, |name| columns.iter().any(|column| column.name == name));
                columns.iter().position(|column| column.name == name).ok_or_else(|| {
                    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
                    Failure::Usage(format!(
                        "--sort: `{name}` is not a column of the groups, which are {}",
                        names.join(", ")
                    ))
                })?
            }
            None => fields.len() + usize::from(!aggregates.is_empty()),
        };
        GroupRow::set_columns(columns);
        let keys: Vec<usize> = fields.iter().filter_map(place).collect();
        let wanted: ColumnSet =
            keys.iter().copied().chain(aggregates.iter().map(|aggregate| aggregate.index)).collect();
        Ok(Groups {
            keys,
            aggregates,
            wanted,
            sorted_by,
            is_reversed: order.is_reversed,
            limit: order.limit,
            target,
            groups: HashMap::new(),
            held_len: 0,
            held_max: HELD_MAX,
            omitted: Omitted::default(),
            counts_events: self.count_events,
        })
    }
}

/// A group of flows.
struct Group {
    /// Values of the fields.
    key: Vec<Value>,
    flow_count: u64,
    states: Vec<State>,
}

/// Groups that were removed because of the limit on memory.
#[derive(Clone, Copy, Debug, Default)]
struct Omitted {
    count: u64,
    /// Sum over all removals of the greatest number of flows of a group that was removed.
    flow_count_max: u64,
}

/// Collects groups of flows, and writes them at the end.
pub(crate) struct Groups {
    /// Indices of the fields that a group has.
    keys: Vec<usize>,
    aggregates: Vec<Aggregate>,
    wanted: ColumnSet,
    /// Index of the column by which groups are sorted.
    sorted_by: usize,
    is_reversed: bool,
    limit: usize,
    target: Target,
    groups: HashMap<String, Group>,
    /// About the number of octets that all groups take.
    held_len: usize,
    held_max: usize,
    omitted: Omitted,
    /// Whether records of events are flows.
    counts_events: bool,
}

impl Groups {
    fn add(&mut self, record: &FlowRecord) {
        let is_flow = self.counts_events || !record.is_event();
        if !is_flow && record.packet_count() == 0 && record.octet_count() == 0 {
            return;
        }
        let values = record.values(&self.wanted);
        let value = |index: &usize| values.get(*index).cloned().unwrap_or(Value::Null);
        let mut name = String::new();
        for index in &self.keys {
            use std::fmt::Write as _;
            // Absent values are a group of their own.
            let _ = match values.get(*index) {
                None | Some(Value::Null) => name.write_str("\0"),
                Some(value) => write!(name, "{value}\u{1}"),
            };
        }
        let Self { groups, aggregates, keys, held_len, .. } = self;
        let group = groups.entry(name).or_insert_with_key(|name| {
            *held_len += group_len(name, keys.len(), aggregates.len());
            Group {
                key: keys.iter().map(value).collect(),
                flow_count: 0,
                states: aggregates.iter().map(Aggregate::state).collect(),
            }
        });
        group.flow_count += u64::from(is_flow);
        for (state, aggregate) in group.states.iter_mut().zip(aggregates.iter()) {
            let before = state.heap_len();
            state.add(values.get(aggregate.index).unwrap_or(&Value::Null));
            *held_len += state.heap_len().saturating_sub(before);
        }
        if *held_len > self.held_max {
            self.shrink();
        }
    }

    /// Removes the half of the groups with the fewest flows.
    #[cold]
    fn shrink(&mut self) {
        let mut counts: Vec<_> = self.groups.values().map(|group| group.flow_count).collect();
        let middle = counts.len() / 2;
        let (.., limit, _) = counts.select_nth_unstable(middle);
        let limit = *limit;
        let mut excess = middle + 1;
        let before = self.groups.len();
        self.groups.retain(|_, group| {
            let is_removed = excess > 0 && group.flow_count <= limit;
            excess -= usize::from(is_removed);
            !is_removed
        });
        self.groups.shrink_to_fit();
        self.omitted.count += (before - self.groups.len()) as u64;
        self.omitted.flow_count_max += limit;
        self.held_len = self
            .groups
            .iter()
            .map(|(name, group)| {
                let states: usize = group.states.iter().map(State::heap_len).sum();
                group_len(name, group.key.len(), group.states.len()) + states
            })
            .sum();
    }

    /// Returns the rows in their order.
    fn rows(&mut self) -> Vec<GroupRow> {
        let Self { groups, aggregates, sorted_by, is_reversed, limit, .. } = self;
        let mut rows: Vec<_> = std::mem::take(groups)
            .into_iter()
            .map(|(name, Group { mut key, flow_count, mut states })| {
                key.push(Value::Unsigned(flow_count));
                let results =
                    aggregates.iter().zip(&mut states).map(|(aggregate, state)| aggregate.result(state));
                key.extend(results);
                (name, GroupRow(key))
            })
            .collect();
        let value = |row: &GroupRow| row.0.get(*sorted_by).cloned().unwrap_or(Value::Null);
        rows.sort_by_cached_key(|(name, row)| Place {
            value: value(row),
            is_reversed: *is_reversed,
            name: name.clone(),
        });
        rows.truncate(*limit);
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl RowWriter for Groups {
    fn write_if(
        &mut self,
        record: &FlowRecord,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, Failure> {
        // The output is bounded by the number of groups.
        let is_permitted = permits(0);
        if is_permitted {
            self.add(record);
        }
        Ok(is_permitted)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: bool) -> Result<(), Failure> {
        let rows = self.rows();
        let Omitted { count, flow_count_max } = self.omitted;
        write(rows, self.target)?;
        if count > 0 {
            let groups = plural(count, "group");
            write_line(&format!(
                "{groups} removed to save memory: {COUNT} of each row, and of each missing one, is too small by at most \
                 {flow_count_max}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flowgauge::{FlowKey, FlowRecord, IpProtocol, Timestamp};

    use super::*;

    /// A record with this port of the responder, which started at this second.
    fn record(port: u16, second: u64) -> FlowRecord {
        let end = |last: u8, port| ([192, 0, 2, last].into(), port);
        let (key, side) = FlowKey::new(IpProtocol::TCP, end(1, 40_000), end(2, port));
        let time = Timestamp::from_nanos(second * 1_000_000_000);
        FlowRecord::new(key, side, time)
    }

    fn groups(held_max: usize, functions: &[&str]) -> Groups {
        let args = GroupArgs {
            group_by: Some(fields("destination_port").unwrap()),
            sum: Vec::new(),
            aggregate: functions.iter().map(|text| Aggregate::parse(text).unwrap()).collect(),
            count_events: false,
        };
        let order = GroupOrder { column: Some(COUNT), is_reversed: false, limit: 10 };
        let mut groups = args.writer(order, Target::Table).unwrap();
        groups.held_max = held_max;
        groups
    }

    /// Ten ports have many flows each, and thousands have one.
    #[test]
    fn memory_is_bounded_and_the_error_is_known() {
        let mut all = groups(100_000, &[]);
        let mut counts = [0_u64; 10];
        for number in 0..40_000_u64 {
            let is_rare = number % 2 == 0;
            let port = if is_rare { 1000 + (number / 2 % 20_000) as u16 } else { (number / 2 % 10) as u16 };
            if !is_rare {
                counts[usize::from(port)] += 1;
            }
            all.add(&record(port, number));
            assert!(all.held_len < 200_000, "{}", all.held_len);
        }
        let omitted = all.omitted;
        assert!(omitted.count > 1000 && omitted.flow_count_max < 1000, "{omitted:?}");
        for row in all.rows() {
            let [Value::Unsigned(port), Value::Unsigned(count)] = *row.0 else { panic!("{row:?}") };
            let exact = counts[port as usize];
            assert!(count <= exact && exact - count <= omitted.flow_count_max, "{port}: {count} of {exact}");
        }
    }

    /// Each record is in a group of its own, and the functions keep as much as they can.
    #[test]
    fn allocated_memory_is_within_the_limit() {
        const LIMIT: usize = 4 << 20;
        let functions = ["min(history)", "distinct(start)", "p95(octet_count)", "mean(duration)"];
        for (functions, record_count) in [(&functions[..0], 60_000), (&functions[..], 20_000)] {
            let (peak, row_count) = crate::heap::peak_of(|| {
                let mut all = groups(LIMIT, functions);
                for number in 0..record_count {
                    all.add(&record(number as u16, number));
                }
                all.rows().len()
            });
            println!("{peak} bytes, {row_count} rows");
            assert!(peak <= LIMIT + LIMIT / 8, "{functions:?}: {peak}");
        }
    }

    #[test]
    fn distinct_values_are_exact_and_then_estimated() {
        for (count, tolerance) in [(1, 0), (1024, 0), (1025, 25), (100_000, 3000)] {
            let mut all = groups(HELD_MAX, &["distinct(start)"]);
            for number in 0..count {
                all.add(&record(80, number));
                all.add(&record(80, number));
            }
            let rows = all.rows();
            let Value::Unsigned(distinct) = rows[0].0[2] else { panic!("{rows:?}") };
            assert!(distinct.abs_diff(count) <= tolerance, "{distinct} of {count}");
        }
    }
}
