//! Sorting of flows: all of them, or the first few.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use flowgauge::record::{FlowRecord, SideRecord, SortKey};
use flowgauge::row::{Column, Row as _, Type, Value};
use flowgauge::tracker::FlowView;

use flowgauge_condition::field_name;
use flowgauge_condition::{RowFilter, compare_values};

/// What flows are sorted by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Criterion {
    Key(SortKey),
    /// Index of a field.
    Field(usize),
}

impl Criterion {
    /// Returns the criterion with a name, or the names of all.
    pub(crate) fn of_name(name: &str) -> Result<Self, String> {
        let key = SortKey::ALL.into_iter().find(|key| key.name() == name).map(Self::Key);
        let fields = FlowRecord::columns();
        let has_order = |column: &Column| !matches!(column.column_type, Type::List(_) | Type::Group(_));
        let name = field_name(name, |name| fields.iter().any(|column| column.name == name));
        let field =
            || fields.iter().position(|column| column.name == name && has_order(column)).map(Self::Field);
        key.or_else(field).ok_or_else(|| {
            let names = SortKey::ALL.map(SortKey::name).join(", ");
            format!("`{name}` is neither one of {names}, nor a field with one value")
        })
    }
}

/// Sort order of flows: a criterion, and whether it is reversed. The flow with the greatest rank comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) criterion: Criterion,
    pub(crate) is_reversed: bool,
}

impl Order {
    /// Returns the rank of a flow in this order, without creating a record; `None` if it needs the record. A flow without a
    /// value comes last even if the order is reversed.
    fn rank(self, view: &FlowView<'_>) -> Option<Rank> {
        let Criterion::Key(key) = self.criterion else { return None };
        Some(self.rank_of_value(view.sort_value(key)))
    }

    /// Returns the rank of a flow with a value of a sort key.
    fn rank_of_value(self, value: Option<u64>) -> Rank {
        let Some(value) = value else { return Rank::Number(0) };
        // Zero is the rank of a flow without a value.
        let rank = value.saturating_add(1);
        Rank::Number(if self.is_reversed { (!rank).max(1) } else { rank })
    }

    /// Returns the rank of the record of a flow.
    fn rank_of(self, record: &FlowRecord) -> Rank {
        match self.criterion {
            Criterion::Key(key) => self.rank_of_value(sort_value(record, key)),
            Criterion::Field(index) => {
                let (value, is_reversed) = (record.value(index), self.is_reversed);
                Rank::Place(Reverse(Box::new(Place { value, is_reversed, name: String::new() })))
            }
        }
    }
}

/// Returns the value by which a record is sorted, as [`FlowView::sort_value`] does.
fn sort_value(record: &FlowRecord, key: SortKey) -> Option<u64> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let both =
        |value: &dyn Fn(&SideRecord) -> u64| value(&record.forward).saturating_add(value(&record.reverse));
    Some(match key {
        // The earliest flow comes first.
        SortKey::Start => !record.start.as_nanos(),
        SortKey::End => !record.end.as_nanos(),
        SortKey::Duration => nanos(record.duration()),
        SortKey::Packets => record.packet_count(),
        SortKey::Payload => both(&|side| side.counters.payload_octet_count),
        SortKey::Retransmitted => both(&|side| side.tcp.retransmitted_count.into()),
        SortKey::Rtt => return record.handshake_rtt.map(nanos),
        _ => record.octet_count(),
    })
}

/// The rank of a flow. All flows of an order have the same kind of rank.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Number(u64),
    Place(Reverse<Box<Place>>),
}

/// The place of a value in an order: numbers descend, texts and times ascend, and absent values come last.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) value: Value,
    pub(crate) is_reversed: bool,
    /// Decides between equal values.
    pub(crate) name: String,
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let is_absent = |place: &Self| place.value == Value::Null;
        let descends = matches!(
            self.value,
            Value::Unsigned(_) | Value::Signed(_) | Value::Float(_) | Value::Duration(_) | Value::Bool(_)
        );
        let order = compare_values(&self.value, &other.value).unwrap_or(Ordering::Equal);
        let order = if descends == self.is_reversed { order } else { order.reverse() };
        is_absent(self).cmp(&is_absent(other)).then(order).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}

/// A flow with its rank. The greatest `Ranked` is the flow that comes last in the order, so that a heap returns it
/// first.
struct Ranked {
    rank: Rank,
    number: u64,
    record: Box<FlowRecord>,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank.cmp(&self.rank).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The first flows of an order, up to a limit; records are created only for these.
pub(crate) struct Sorted {
    order: Order,
    limit: usize,
    filter: RowFilter,
    number: u64,
    heap: BinaryHeap<Ranked>,
}

impl Sorted {
    /// Creates an empty list that keeps the first `limit` flows of an order.
    pub(crate) fn new(order: Order, limit: usize, filter: RowFilter) -> Self {
        Self { order, limit, filter, number: 0, heap: BinaryHeap::new() }
    }

    /// Returns whether a flow with this rank is among the first flows so far.
    fn is_candidate(&self, rank: &Rank) -> bool {
        // Among equal ranks, flows that ended earlier come first.
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|last| *rank > last.rank)
    }

    /// Adds a flow if it is among the first ones so far and meets the conditions, and removes the last one if the list is
    /// full. `record` returns its record.
    #[inline]
    pub(crate) fn add(&mut self, view: &FlowView<'_>, record: impl FnOnce() -> FlowRecord) {
        let known = self.order.rank(view);
        if known.as_ref().is_some_and(|rank| !self.is_candidate(rank)) {
            return;
        }
        let record = record();
        let rank = known.unwrap_or_else(|| self.order.rank_of(&record));
        if self.is_candidate(&rank) && self.filter.matches(&record) {
            self.push(rank, record);
        }
    }

    /// Adds a record as [`add`](Self::add) does.
    pub(crate) fn add_record(&mut self, record: &FlowRecord) {
        let rank = self.order.rank_of(record);
        if self.is_candidate(&rank) && self.filter.matches(record) {
            self.push(rank, record.clone());
        }
    }

    fn push(&mut self, rank: Rank, record: FlowRecord) {
        if self.heap.len() >= self.limit {
            self.heap.pop();
        }
        self.number += 1;
        self.heap.push(Ranked { rank, number: self.number, record: Box::new(record) });
    }

    /// Merges several lists of first flows into one, in order. Among equal ranks, flows that ended first come first,
    /// regardless of their list.
    pub(crate) fn merge(all: Vec<Self>) -> impl Iterator<Item = FlowRecord> {
        let limit = all.first().map_or(0, |sorted| sorted.limit);
        let mut ranked: Vec<_> = all.into_iter().flat_map(|sorted| sorted.heap.into_vec()).collect();
        ranked.sort_unstable_by(|one, other| {
            let ends = |ranked: &Ranked| (ranked.record.end, ranked.record.start, ranked.record.key);
            other.rank.cmp(&one.rank).then_with(|| ends(one).cmp(&ends(other)))
        });
        ranked.into_iter().take(limit).map(|ranked| *ranked.record)
    }

    /// Returns why no record met the conditions.
    pub(crate) fn unmatched(&self) -> Option<String> {
        self.filter.unmatched()
    }

    /// Returns the records of the flows that were kept, in order.
    pub(crate) fn into_records(self) -> impl Iterator<Item = FlowRecord> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| *ranked.record)
    }
}
