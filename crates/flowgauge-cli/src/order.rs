//! Sorting of flows: all of them, or the first few.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use flowgauge::record::{FlowRecord, SortKey};
use flowgauge::tracker::FlowView;

use crate::condition::RowFilter;

/// Sort order of flows: a criterion, and whether it is reversed. The flow with the greatest rank comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) key: SortKey,
    pub(crate) is_reversed: bool,
}

impl Order {
    /// Returns the rank of a flow in this order, without creating a record. A flow without a value comes last even if
    /// the order is reversed.
    fn rank(self, view: &FlowView<'_>) -> u64 {
        let Some(value) = view.sort_value(self.key) else { return 0 };
        // Zero is the rank of a flow without a value.
        let rank = value.saturating_add(1);
        if self.is_reversed { (!rank).max(1) } else { rank }
    }
}

/// A flow with its rank. The greatest `Ranked` is the flow that comes last in the order, so that a heap returns it
/// first.
struct Ranked {
    rank: u64,
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

    /// Returns the rank of a flow if it is among the first flows so far; `None` if it comes later.
    #[inline]
    pub(crate) fn candidate(&self, view: &FlowView<'_>) -> Option<u64> {
        let rank = self.order.rank(view);
        // Among equal ranks, flows that ended earlier come first.
        let is_late = self.heap.len() >= self.limit && self.heap.peek().is_none_or(|last| rank <= last.rank);
        (!is_late).then_some(rank)
    }

    /// Adds a flow as `take` does, if it meets the conditions.
    pub(crate) fn take_selected(&mut self, rank: u64, record: FlowRecord) {
        if self.filter.matches(&record) {
            self.take(rank, record);
        }
    }

    /// Adds a flow with the rank that [`candidate`](Self::candidate) returned for it, and removes the last flow if the
    /// list is full.
    pub(crate) fn take(&mut self, rank: u64, record: FlowRecord) {
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
        ranked.sort_unstable_by_key(|Ranked { rank, record, .. }| {
            (std::cmp::Reverse(*rank), record.end, record.start, record.key)
        });
        ranked.into_iter().take(limit).map(|ranked| *ranked.record)
    }

    /// Returns the records of the flows that were kept, in order.
    pub(crate) fn into_records(self) -> impl Iterator<Item = FlowRecord> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| *ranked.record)
    }
}
