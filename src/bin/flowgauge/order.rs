//! Flows in order: all of them, or the first few.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use flowgauge::base::Side;
use flowgauge::record::FlowRecord;
use flowgauge::tracker::FlowView;

use crate::args::SortField;

/// What decides a flow's place. The greatest rank comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) field: SortField,
    pub(crate) is_reversed: bool,
}

impl Order {
    /// The rank of a flow, without a record of it.
    fn rank(self, view: &FlowView<'_>) -> u64 {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let both = |value: fn(&FlowView<'_>, Side) -> u64| value(view, Side::A) + value(view, Side::B);
        let rank = match self.field {
            // The earliest comes first.
            SortField::Start => !view.start().as_nanos(),
            SortField::End => !view.end().as_nanos(),
            SortField::Duration => nanos(view.end().saturating_since(view.start())),
            SortField::Packets => view.packet_count(),
            SortField::Octets => view.octet_count(),
            SortField::Payload => both(|view, side| view.counters(side).payload_octet_count),
            SortField::Retransmitted => both(|view, side| view.tcp_counters(side).retransmitted_count.into()),
            // What has none comes last in either order.
            SortField::Rtt => match view.handshake_rtt() {
                Some(rtt) => nanos(rtt).saturating_add(1),
                None => return 0,
            },
        };
        if self.is_reversed { !rank } else { rank }
    }
}

/// A flow among others. The greatest is the one that comes last, so that a heap gives it first.
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

/// Keeps the flows that come first; a record is made only of those.
pub(crate) struct Sorted {
    order: Order,
    limit: usize,
    number: u64,
    heap: BinaryHeap<Ranked>,
}

impl Sorted {
    /// Keeps at most `limit` flows.
    pub(crate) const fn new(order: Order, limit: usize) -> Self {
        Self { order, limit, number: 0, heap: BinaryHeap::new() }
    }

    /// The rank of a flow that may belong to the first.
    #[inline]
    pub(crate) fn candidate(&self, view: &FlowView<'_>) -> Option<u64> {
        let rank = self.order.rank(view);
        // Among equals, those that ended earlier come first.
        let is_late = self.heap.len() >= self.limit && self.heap.peek().is_none_or(|last| rank <= last.rank);
        (!is_late).then_some(rank)
    }

    /// Takes a flow with the rank that it was told to have.
    pub(crate) fn take(&mut self, rank: u64, record: FlowRecord) {
        if self.heap.len() >= self.limit {
            self.heap.pop();
        }
        self.number += 1;
        self.heap.push(Ranked { rank, number: self.number, record: Box::new(record) });
    }

    /// The first flows of all of several. Of equal ones, those come first that ended first, whoever kept them.
    pub(crate) fn merge(all: Vec<Self>) -> impl Iterator<Item = FlowRecord> {
        let limit = all.first().map_or(0, |sorted| sorted.limit);
        let mut ranked: Vec<_> = all.into_iter().flat_map(|sorted| sorted.heap.into_vec()).collect();
        ranked.sort_unstable_by_key(|Ranked { rank, record, .. }| {
            (std::cmp::Reverse(*rank), record.end, record.start, record.key)
        });
        ranked.into_iter().take(limit).map(|ranked| *ranked.record)
    }

    /// The flows, in order.
    pub(crate) fn into_records(self) -> impl Iterator<Item = FlowRecord> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| *ranked.record)
    }
}
