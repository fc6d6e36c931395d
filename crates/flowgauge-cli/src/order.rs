//! Sorting of flows: all of them, or the first few.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use flowgauge::EndReason;
use flowgauge::pipeline::RecordReceiver;
use flowgauge::record::{FlowRecord, SideRecord, SortKey};
use flowgauge::row::{Column, Row as _, RowType as _, Type, Value};
use flowgauge::tracker::FlowView;

use crate::human::plural;
use flowgauge_condition::field_name;
use flowgauge_condition::{RowFilter, compare_values};

/// Part of the memory limit that the records of an order may take.
pub(crate) const MEMORY_PART: u64 = 2;

/// Memory in bytes of an allocation beside its content.
pub(crate) const BLOCK_LEN: usize = 16;

/// Returns the memory in bytes of the parts of a record that few have.
pub(crate) fn boxed_len(record: &FlowRecord) -> usize {
    let FlowRecord { encapsulation, exported, .. } = record;
    let encapsulation_len = encapsulation
        .as_deref()
        .map_or(0, |record| size_of_val(record) + 40 * record.encapsulation.headers().len());
    encapsulation_len + exported.as_deref().map_or(0, size_of_val)
}

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

/// What is kept beside a record until it is written.
pub(crate) trait Beside {
    /// Returns the memory in bytes beside its own size.
    fn heap_len(&self) -> usize;
}

impl Beside for () {
    fn heap_len(&self) -> usize {
        0
    }
}

/// The rank of a flow. All flows of an order have the same kind of rank.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Number(u64),
    Place(Reverse<Box<Place>>),
}

impl Rank {
    /// Returns the memory of the rank in bytes beside its own size.
    fn heap_len(&self) -> usize {
        let Self::Place(Reverse(place)) = self else { return 0 };
        let value_len = match &place.value {
            Value::Text(text) => BLOCK_LEN + text.capacity(),
            Value::Octets(octets) => BLOCK_LEN + octets.capacity(),
            _ => 0,
        };
        BLOCK_LEN + size_of::<Place>() + value_len
    }
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
struct Ranked<T> {
    rank: Rank,
    number: u64,
    kept: Box<(FlowRecord, T)>,
}

impl<T: Beside> Ranked<T> {
    /// Returns the memory of the record, what is beside it, and its rank in bytes.
    fn heap_len(&self) -> usize {
        let (record, beside) = &*self.kept;
        BLOCK_LEN
            + size_of::<(FlowRecord, T)>()
            + boxed_len(record)
            + beside.heap_len()
            + self.rank.heap_len()
    }
}

impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank.cmp(&self.rank).then(self.number.cmp(&other.number))
    }
}

impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Ranked<T> {}

/// The first flows of an order, up to a limit; records are created only for these. If they exceed the memory limit, the
/// last ones are omitted. Each record may have a `T` beside it.
pub(crate) struct Sorted<T = ()> {
    order: Order,
    limit: usize,
    filter: RowFilter,
    number: u64,
    heap: BinaryHeap<Ranked<T>>,
    /// Memory of the records and ranks in bytes.
    records_len: usize,
    /// Memory in bytes that the list may have.
    held_max: usize,
    /// Number of records that were omitted because of the memory limit, and the greatest rank of these. What follows it in
    /// the order is omitted too.
    omitted_count: u64,
    omitted: Option<Rank>,
}

impl<T: Beside> Sorted<T> {
    /// Creates an empty list that keeps the first `limit` flows of an order.
    pub(crate) fn new(order: Order, limit: usize, filter: RowFilter) -> Self {
        Self {
            order,
            limit,
            filter,
            number: 0,
            heap: BinaryHeap::new(),
            records_len: 0,
            held_max: usize::MAX,
            omitted_count: 0,
            omitted: None,
        }
    }

    /// Limits the memory of the list, in bytes.
    pub(crate) fn set_held_max(&mut self, held_max: u64) {
        self.held_max = usize::try_from(held_max).unwrap_or(usize::MAX);
        self.omit_excess();
    }

    /// Returns the memory of the list in bytes. The table is copied when it grows.
    pub(crate) fn held_len(&self) -> usize {
        self.records_len + self.heap.capacity() * size_of::<Ranked<T>>() / 2 * 3
    }

    /// Omits the last records as long as the list has too much memory.
    #[inline]
    fn omit_excess(&mut self) {
        while self.held_len() > self.held_max
            && let Some(last) = self.heap.pop()
        {
            self.records_len -= last.heap_len();
            self.omit(last.rank);
            // The table is halved, so that it does not take all of the memory.
            if self.heap.len() < self.heap.capacity() / 4 {
                self.heap.shrink_to(self.heap.len() * 2);
            }
        }
    }

    fn omit(&mut self, rank: Rank) {
        self.omitted_count += 1;
        if self.omitted.as_ref().is_none_or(|omitted| rank > *omitted) {
            self.omitted = Some(rank);
        }
    }

    /// Returns a problem if records of lists that are merged are omitted because of the memory limit.
    pub(crate) fn problem<'s>(all: impl Iterator<Item = &'s Self>) -> Option<String>
    where
        T: 's,
    {
        let (mut kept_count, mut omitted_count, mut limit) = (0, 0, usize::MAX);
        let mut greatest: Option<&Rank> = None;
        let all: Vec<_> = all.collect();
        for sorted in &all {
            omitted_count += sorted.omitted_count;
            limit = sorted.limit;
            // A list that is not merged has omitted what follows already.
            greatest = greatest.max(sorted.omitted.as_ref().filter(|_| all.len() > 1));
        }
        for sorted in &all {
            let kept = sorted.heap.iter().filter(|ranked| greatest.is_none_or(|rank| ranked.rank > *rank));
            let count = kept.count();
            kept_count += count;
            omitted_count += (sorted.heap.len() - count) as u64;
        }
        let omitted_count = omitted_count.min(limit.saturating_sub(kept_count) as u64);
        let records = plural(omitted_count, "record");
        (omitted_count > 0).then(|| {
            format!(
                "{records} omitted after the first {kept_count} of the order, because memory is short; use --top, or \
                 raise --memory"
            )
        })
    }

    /// Returns whether a flow with this rank is among the first flows so far.
    fn is_candidate(&self, rank: &Rank) -> bool {
        // Among equal ranks, flows that ended earlier come first.
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|last| *rank > last.rank)
    }

    /// Returns the rank of a record; `None` if it is not among the first ones so far.
    pub(crate) fn rank(&self, record: &FlowRecord) -> Option<Rank> {
        Some(self.order.rank_of(record)).filter(|rank| self.is_candidate(rank))
    }

    /// Adds a record with its [`rank`](Self::rank), and removes the last one if the list is full.
    pub(crate) fn insert(&mut self, rank: Rank, record: FlowRecord, beside: T) {
        if self.omitted.as_ref().is_some_and(|omitted| rank <= *omitted) {
            self.omitted_count += 1;
            return;
        }
        if self.heap.len() >= self.limit
            && let Some(last) = self.heap.pop()
        {
            self.records_len -= last.heap_len();
        }
        self.number += 1;
        let ranked = Ranked { rank, number: self.number, kept: Box::new((record, beside)) };
        self.records_len += ranked.heap_len();
        self.heap.push(ranked);
        self.omit_excess();
    }

    /// Returns the records that were kept, in order, with what is beside each.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = (FlowRecord, T)> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| *ranked.kept)
    }
}

impl Sorted {
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
            self.insert(rank, record, ());
        }
    }

    /// Adds a record as [`add`](Self::add) does.
    pub(crate) fn add_record(&mut self, record: &FlowRecord) {
        if let Some(rank) = self.rank(record)
            && self.filter.matches(record)
        {
            self.insert(rank, record.clone(), ());
        }
    }

    /// Merges several lists of first flows into one, in order. Among equal ranks, flows that ended first come first,
    /// regardless of their list.
    pub(crate) fn merge(all: Vec<Self>) -> impl Iterator<Item = FlowRecord> {
        let limit = all.first().map_or(0, |sorted| sorted.limit);
        let (mut ranked, mut omitted) = (Vec::new(), None);
        for sorted in all {
            ranked.append(&mut sorted.heap.into_vec());
            omitted = omitted.max(sorted.omitted);
        }
        // The list with the greatest omitted rank decides for all.
        ranked.retain(|ranked| omitted.as_ref().is_none_or(|omitted| ranked.rank > *omitted));
        ranked.sort_unstable_by(|one, other| {
            let ends = |ranked: &Ranked<()>| (ranked.kept.0.end, ranked.kept.0.start, ranked.kept.0.key);
            other.rank.cmp(&one.rank).then_with(|| ends(one).cmp(&ends(other)))
        });
        ranked.into_iter().take(limit).map(|ranked| ranked.kept.0)
    }

    /// Returns why no record met the conditions.
    pub(crate) fn unmatched(&self) -> Option<String> {
        self.filter.unmatched()
    }

    /// Returns the records of the flows that were kept, in order.
    pub(crate) fn into_records(self) -> impl Iterator<Item = FlowRecord> {
        self.into_rows().map(|(record, ())| record)
    }
}

/// Keeps the first records of the order.
impl RecordReceiver for Sorted {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        self.add(view, || view.record(reason));
    }

    fn held_bytes(&mut self) -> u64 {
        self.held_len() as u64
    }
}

#[cfg(test)]
mod tests {
    use flowgauge::{FlowKey, IpProtocol, Timestamp};
    use flowgauge_condition::RowFilter;

    use super::*;
    use crate::heap::peak_of;

    const LIMIT: usize = 2 << 20;

    /// A record with a number of packets that is about random, so that many are equal.
    fn record(number: u32) -> FlowRecord {
        let [_, a, b, c] = number.to_be_bytes();
        let (key, side) =
            FlowKey::new(IpProtocol::UDP, ([10, a, b, c].into(), 1000), ([192, 0, 2, 1].into(), 2000));
        let mut record = FlowRecord::new(key, side, Timestamp::from_nanos(u64::from(number)));
        record.forward.counters.packet_count = u64::from(number.wrapping_mul(2_654_435_761) % 1000);
        record
    }

    fn sorted(criterion: &str, limit: usize) -> Sorted {
        let order = Order { criterion: Criterion::of_name(criterion).unwrap(), is_reversed: false };
        Sorted::new(order, limit, RowFilter::default())
    }

    /// The records in the order of their packet counts, and then of their ends.
    fn expected(count: u32) -> Vec<FlowRecord> {
        let mut all: Vec<_> = (0..count).map(record).collect();
        all.sort_by_key(|record| Reverse(record.packet_count()));
        all
    }

    #[test]
    fn allocated_memory_is_within_the_limit() {
        for criterion in ["packets", "history", "source_address"] {
            let (peak, (kept_count, problem)) = peak_of(|| {
                let mut sorted = sorted(criterion, usize::MAX);
                sorted.set_held_max(LIMIT as u64);
                for number in 0..20_000 {
                    sorted.add_record(&record(number));
                    assert!(sorted.held_len() <= LIMIT);
                }
                let problem = Sorted::problem([&sorted].into_iter());
                (sorted.into_records().count(), problem)
            });
            println!("{criterion}: {peak} bytes for {kept_count} records");
            assert!(peak <= LIMIT + LIMIT / 8, "{criterion}: {peak}");
            assert!(kept_count > LIMIT / 1000 && kept_count < 20_000, "{criterion}: {kept_count}");
            let omitted = format!("{} records omitted after the first {kept_count} of", 20_000 - kept_count);
            assert!(problem.unwrap().starts_with(&omitted));
        }
    }

    /// With a limit, also one that becomes lower and higher, the records are the first ones of the order.
    #[test]
    fn the_first_records_of_the_order_remain() {
        let all = expected(20_000);
        let mut limited = sorted("packets", usize::MAX);
        for number in 0..20_000 {
            limited.set_held_max(if number == 10_000 { 500_000 } else { 2_000_000 });
            limited.add_record(&record(number));
        }
        let problem = Sorted::problem([&limited].into_iter()).unwrap();
        let kept: Vec<_> = limited.into_records().collect();
        assert!(kept.len() > 100 && kept[..] == all[..kept.len()], "{} records", kept.len());
        assert!(problem.starts_with(&format!("{} records", 20_000 - kept.len())), "{problem}");
        // Two lists, of which one has less memory.
        let mut lists = [sorted("packets", usize::MAX), sorted("packets", usize::MAX)];
        lists[0].set_held_max(300_000);
        for number in 0..20_000 {
            lists[(number % 2) as usize].add_record(&record(number));
        }
        let problem = Sorted::problem(lists.iter()).unwrap();
        let merged: Vec<_> = Sorted::merge(lists.into()).collect();
        assert!(merged.len() > 100 && merged[..] == all[..merged.len()], "{} records", merged.len());
        assert!(problem.starts_with(&format!("{} records", 20_000 - merged.len())), "{problem}");
        // A list that is short enough is complete.
        let mut top = sorted("packets", 10);
        top.set_held_max(300_000);
        (0..20_000).for_each(|number| top.add_record(&record(number)));
        assert_eq!(Sorted::problem([&top].into_iter()), None);
        assert_eq!(top.into_records().collect::<Vec<_>>(), all[..10]);
    }
}
