//! Joining of uniflows to biflows.

use std::time::Duration;

use lru::LruCache;

use crate::base::{Account, Allowance, ConfigError, Counters, FlowKey, Resources, Side, Timestamp};
use crate::record::FlowRecord;
use crate::tracker::server_by_port;

/// Interval by which the two uniflows of a flow may lie apart: each ends with its own last packet.
const GAP_MAX: Duration = Duration::from_secs(10);

/// Number of uniflows of the same Flow Key and source that wait. When there are more, the oldest is emitted alone.
const SAME_SOURCE_COUNT_MAX: usize = 32;

/// Joins the two uniflows of a flow to one biflow (RFC 5103 section 3).
///
/// A uniflow waits for the one of the other direction, which has the same Flow Key and overlaps in time. The initiator is
/// the source of the uniflow that begins first. If both begin in the same millisecond or second, and their times are not
/// finer, the side with the port of a service is the responder. Otherwise, the uniflow that arrived first is the
/// initiator's. Constant time per record, on average. Keeps at most the given number of uniflows, and charges their memory to the budget; when
/// one of the two is exhausted, the one that has waited longest is emitted alone.
#[derive(Debug)]
pub struct UniflowJoiner {
    /// Uniflows in the order of arrival, by Flow Key and source.
    waiting: LruCache<(FlowKey, Side), Vec<Waiting>>,
    record_count: usize,
    record_count_max: usize,
    timeout: Duration,
    allowance: Allowance,
}

/// Memory in bytes of a key, with its entry in the list and in the index.
const KEY_BYTES: u64 = (size_of::<(FlowKey, Side)>() + 96) as u64;

/// Returns the memory of a list of uniflows in bytes, including that of its key.
fn bytes_of(list: &Vec<Waiting>) -> u64 {
    let heap_bytes = |waiting: &Waiting| {
        let FlowRecord { encapsulation, exported, .. } = &waiting.record;
        encapsulation.as_deref().map_or(0, size_of_val) + exported.as_deref().map_or(0, size_of_val)
    };
    let heap_bytes: usize = list.iter().map(heap_bytes).sum();
    KEY_BYTES + (list.capacity() * size_of::<Waiting>() + heap_bytes) as u64
}

#[derive(Debug)]
struct Waiting {
    record: FlowRecord,
    arrival: Timestamp,
}

impl UniflowJoiner {
    /// Creates a joiner that keeps at most `record_count_max` uniflows, each for `timeout`, in memory that it charges to
    /// [`Account::Uniflows`] of the budget.
    ///
    /// # Errors
    ///
    /// Returns an error if `record_count_max` is zero.
    pub fn new(
        record_count_max: usize,
        timeout: Duration,
        resources: &Resources,
    ) -> Result<Self, ConfigError> {
        if record_count_max == 0 {
            return Err(ConfigError::out_of_range("ipfix", "record_count_max", (1, u64::MAX)));
        }
        let allowance = Allowance::new(resources.budget.clone(), Account::Uniflows, u64::MAX);
        Ok(Self { waiting: LruCache::unbounded(), record_count: 0, record_count_max, timeout, allowance })
    }

    /// Adds a record that arrived at the time `now`. Emits the biflow that it completes, the uniflows whose time has
    /// passed, and the record itself if it is a biflow already, or reports an
    /// [event](FlowRecord::is_event).
    pub fn push(&mut self, record: &FlowRecord, now: Timestamp, mut emit: impl FnMut(&FlowRecord)) {
        self.expire(now, &mut emit);
        let Counters { packet_count, octet_count, .. } = record.reverse.counters;
        let is_biflow = packet_count > 0 || octet_count > 0;
        if is_biflow || record.key.is_one_way_icmp() || record.is_event() {
            return emit(record);
        }
        if let Some(other) = self.take_other_direction(record) {
            return emit(&join(other, record));
        }
        if self.record_count >= self.record_count_max {
            self.evict(&mut emit);
        }
        let waiting = Waiting { record: record.clone(), arrival: now };
        let key = (record.key, record.initiator);
        let mut list = self.take_list(&key);
        if list.len() >= SAME_SOURCE_COUNT_MAX {
            emit(&list.remove(0).record);
            self.record_count -= 1;
        }
        list.reserve_exact(1);
        list.push(waiting);
        while self.allowance.take(bytes_of(&list)).is_err() {
            if self.waiting.is_empty() {
                self.record_count = 0;
                return list.iter().for_each(|waiting| emit(&waiting.record));
            }
            self.evict(&mut emit);
        }
        self.record_count += 1;
        self.waiting.put(key, list);
    }

    /// Removes the uniflows of a key and source from those that wait, and releases their memory.
    fn take_list(&mut self, key: &(FlowKey, Side)) -> Vec<Waiting> {
        let list = self.waiting.pop(key);
        if let Some(list) = &list {
            self.allowance.give(bytes_of(list));
        }
        list.unwrap_or_default()
    }

    /// Emits all uniflows that wait.
    pub fn finish(&mut self, mut emit: impl FnMut(&FlowRecord)) {
        while self.record_count > 0 {
            self.evict(&mut emit);
        }
    }

    fn take_other_direction(&mut self, record: &FlowRecord) -> Option<FlowRecord> {
        let key = (record.key, record.initiator.other());
        let waiting = self.waiting.peek(&key)?;
        let is_same_flow = |other: &FlowRecord| {
            other.start <= record.end.saturating_add(GAP_MAX)
                && record.start <= other.end.saturating_add(GAP_MAX)
        };
        let is_same_exporter = |other: &FlowRecord| {
            let exporter = |record: &FlowRecord| {
                let exported = record.exported.as_deref()?;
                Some((exported.exporter_address, exported.observation_domain))
            };
            exporter(other) == exporter(record)
        };
        let mut found = waiting.iter().enumerate().filter(|(_, waiting)| is_same_flow(&waiting.record));
        // Exporters on different paths may each see one direction.
        let first = found.clone().next()?;
        let (index, _) = found.find(|(_, waiting)| is_same_exporter(&waiting.record)).unwrap_or(first);
        let waiting = self.waiting.peek_mut(&key)?;
        let bytes = bytes_of(waiting);
        let other = waiting.remove(index).record;
        let rest_bytes = bytes_of(waiting);
        self.record_count -= 1;
        if waiting.is_empty() {
            self.waiting.pop(&key);
            self.allowance.give(bytes);
        } else {
            self.allowance.give(bytes - rest_bytes);
        }
        Some(other)
    }

    /// Emits the uniflows whose time has passed, if no record arrives that would cause this.
    pub fn expire(&mut self, now: Timestamp, mut emit: impl FnMut(&FlowRecord)) {
        while let Some((_, waiting)) = self.waiting.peek_lru() {
            let is_expired = |waiting: &Waiting| now.saturating_since(waiting.arrival) > self.timeout;
            if !waiting.first().is_none_or(is_expired) {
                return;
            }
            self.evict(&mut emit);
        }
    }

    /// Emits the uniflows of the key and source that have waited longest.
    fn evict(&mut self, emit: &mut impl FnMut(&FlowRecord)) {
        let Some((_, waiting)) = self.waiting.pop_lru() else { return };
        self.allowance.give(bytes_of(&waiting));
        self.record_count -= waiting.len();
        waiting.iter().for_each(|waiting| emit(&waiting.record));
    }
}

/// Joins two uniflows of opposite directions; `first` arrived first.
fn join(first: FlowRecord, second: &FlowRecord) -> FlowRecord {
    let is_second_forward = match server_by_port(&first.key) {
        Some(server) if is_same_time(first.start, second.start) => second.initiator != server,
        _ => second.start < first.start,
    };
    let (forward, reverse) =
        if is_second_forward { (second.clone(), first) } else { (first, second.clone()) };
    let exported = match (forward.exported, reverse.exported.as_deref().map(|part| part.turned())) {
        (Some(mut exported), Some(reverse)) => {
            exported.append(&reverse);
            Some(exported)
        }
        (exported, reverse) => exported.or_else(|| reverse.map(Box::new)),
    };
    let mut reverse_side = reverse.forward;
    reverse_side.mac = reverse_side.mac.or(forward.reverse.mac);
    FlowRecord {
        end: forward.end.max(reverse.end),
        open_end: forward.open_end.max(reverse.open_end),
        known: forward.known.union(reverse.known.turned_sides()),
        reverse: reverse_side,
        exported,
        ..forward
    }
}

/// Returns whether two times do not state which one was first: they are equal within the resolution of the coarser one, a
/// second or a millisecond. Finer times are equal only in uniflows of one biflow, of which the exporter sends the
/// initiator's first.
fn is_same_time(first: Timestamp, second: Timestamp) -> bool {
    const UNITS_NS: [u64; 2] = [1_000_000_000, 1_000_000];
    let [first, second] = [first, second].map(Timestamp::as_nanos);
    let resolution = |time: u64| UNITS_NS.into_iter().find(|unit| time.is_multiple_of(*unit)).unwrap_or(0);
    first.abs_diff(second) < resolution(first).max(resolution(second))
}
