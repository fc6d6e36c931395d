//! Joining of the records that continue each other.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use flowgauge::tracker::Timeouts;
use flowgauge::{EndReason, FlowKey, FlowRecord, Timestamp};
use lru::LruCache;

use crate::order::boxed_len;

/// Number of records of one flow key that wait. When there are more, the oldest one is written.
const SAME_KEY_COUNT_MAX: usize = 32;

/// Memory in octets of a key, with its entries in the list and the index, while the index is growing.
const KEY_BYTES: u64 = 224;

/// Memory in octets of an entry of the queue, while it is growing.
const ENDED_BYTES: u64 = 9 * size_of::<(Timestamp, FlowKey)>() as u64 / 4;

/// Number of entries of the queue without a key, beside as many as there are keys, after which they are removed.
const STALE_MAX: usize = 1024;

/// Records of a flow that continue each other, merged.
struct Chain {
    /// The merged record, with the sequence number of the last one.
    record: FlowRecord,
    /// Sequence number of the first record.
    first_number: u32,
    record_count: u32,
}

impl Chain {
    const fn new(record: FlowRecord) -> Self {
        let first_number = record.sequence_number;
        Self { record, first_number, record_count: 1 }
    }

    /// Returns whether no later record continues the flow.
    const fn has_ended(&self) -> bool {
        matches!(self.record.flow_end_reason, EndReason::IdleTimeout | EndReason::EndOfFlow)
    }

    fn is_continued_by(&self, later: &mut Self, gap: Option<Duration>) -> bool {
        let gap = gap.or_else(|| Timeouts::DEFAULT.of_record(&self.record)).unwrap_or(Duration::MAX);
        let last_number = mem::replace(&mut later.record.sequence_number, later.first_number);
        let is_continued = self.record.is_continued_by(&later.record, gap);
        later.record.sequence_number = last_number;
        is_continued
    }

    fn append(&mut self, mut later: Self) {
        let last_number = mem::replace(&mut later.record.sequence_number, later.first_number);
        // All chains of a list have the same key.
        if self.record.merge(&later.record).is_ok() {
            self.record.sequence_number = last_number;
            self.record_count += later.record_count;
        }
    }

    fn into_record(mut self) -> FlowRecord {
        self.record.sequence_number = self.first_number;
        self.record
    }
}

/// Returns the memory of the records of a key.
fn bytes_of(chains: &Vec<Chain>) -> u64 {
    let records = chains.capacity() * size_of::<Chain>() + 16;
    KEY_BYTES + records as u64 + chains.iter().map(|chain| boxed_len(&chain.record) as u64).sum::<u64>()
}

/// Counts of records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JoinStats {
    pub(super) record_count: u64,
    /// Records that were merged with an earlier or later one.
    pub(super) merged_count: u64,
    /// Records that overlap another one of the same flow key, or are equal to it.
    pub(super) overlapping_count: u64,
    /// Records of open flows that were written because of the memory limit.
    pub(super) evicted_count: u64,
}

/// Merges the records that continue each other.
///
/// Records are expected in the order in which they end, as far as several files are in order: a file may contain a record
/// after others that end later, since a flow without packets ends only at its timeout. Therefore, a record may also precede
/// one that waits. Records of flows that have ended wait for the longest pause; those of open flows, whose next record may
/// end at any time, until the end of the input. If the memory limit is reached, those that were not continued for the
/// longest time are written.
pub(super) struct Joiner {
    waiting: LruCache<FlowKey, Vec<Chain>>,
    /// Keys of flows that have ended, with the time of the input when they arrived, in that order.
    ended: VecDeque<(Timestamp, FlowKey)>,
    /// The latest end of a record so far.
    now: Timestamp,
    gap: Option<Duration>,
    /// Time for which the record of a flow that has ended waits.
    wait: Duration,
    bytes: u64,
    bytes_max: u64,
    pub(super) stats: JoinStats,
}

impl Joiner {
    /// Creates a joiner. `gap` is the shortest pause that ends a flow, by default the idle timeout of its class.
    pub(super) fn new(gap: Option<Duration>, bytes_max: u64) -> Self {
        Self {
            waiting: LruCache::unbounded(),
            ended: VecDeque::new(),
            now: Timestamp::ZERO,
            gap,
            wait: gap.or(Timeouts::DEFAULT.established).unwrap_or_default(),
            bytes: 0,
            bytes_max,
            stats: JoinStats::default(),
        }
    }

    /// Adds a record, and emits those that wait no longer.
    pub(super) fn push(&mut self, record: FlowRecord, mut emit: impl FnMut(&FlowRecord)) {
        self.stats.record_count += 1;
        self.now = self.now.max(record.end);
        self.expire(&mut emit);
        let key = record.key;
        let mut chains = self.take(&key);
        let mut chain = Chain::new(record);
        let is_same = |other: &Chain| other.record_count == 1 && other.record == chain.record;
        if chains.iter().any(is_same) {
            self.stats.overlapping_count += 1;
        } else {
            chain = self.join(chain, &mut chains);
        }
        if chain.has_ended() {
            if self.ended.len() == self.ended.capacity() {
                // The queue is copied when it grows.
                self.ended.reserve_exact(self.ended.len() / 8 + 64);
            }
            self.ended.push_back((self.now, key));
        }
        // Most flows have one record that waits.
        chains.reserve_exact(1);
        chains.push(chain);
        if chains.len() > SAME_KEY_COUNT_MAX {
            emit(&chains.remove(0).into_record());
        }
        self.put(key, chains);
        while self.held_bytes() > self.bytes_max && self.evict(&mut emit) {}
        if self.ended.len() > 2 * self.waiting.len() + STALE_MAX {
            self.forget_stale();
        }
    }

    /// Returns the memory of all records that wait.
    fn held_bytes(&self) -> u64 {
        self.bytes + self.ended.capacity() as u64 * ENDED_BYTES
    }

    /// Removes the entries of the queue whose records were written because of the memory limit.
    #[cold]
    fn forget_stale(&mut self) {
        let Self { ended, waiting, .. } = self;
        ended.retain(|(_, key)| waiting.contains(key));
        ended.shrink_to(2 * ended.len());
    }

    /// Joins a record with the ones that it continues, and that continue it.
    fn join(&mut self, mut chain: Chain, chains: &mut Vec<Chain>) -> Chain {
        let gap = self.gap;
        let is_alone = chains.is_empty();
        let earlier = chains.iter().rposition(|earlier| earlier.is_continued_by(&mut chain, gap));
        if let Some(index) = earlier {
            let mut earlier = chains.remove(index);
            earlier.append(chain);
            chain = earlier;
        }
        let later = chains.iter_mut().position(|later| chain.is_continued_by(later, gap));
        if let Some(index) = later {
            chain.append(chains.remove(index));
        }
        self.stats.merged_count += u64::from(earlier.is_some()) + u64::from(later.is_some());
        let overlaps = |other: &Chain| {
            let (own, other) = (&chain.record, &other.record);
            own.start < other.end && other.start < own.end
        };
        if !is_alone && earlier.or(later).is_none() && chains.iter().any(overlaps) {
            self.stats.overlapping_count += 1;
        }
        chain
    }

    /// Emits the records of flows that have ended and whose time has passed.
    fn expire(&mut self, emit: &mut impl FnMut(&FlowRecord)) {
        let (now, wait) = (self.now, self.wait);
        while let Some((_, key)) =
            self.ended.front().copied().filter(|(time, _)| now.saturating_since(*time) > wait)
        {
            self.ended.pop_front();
            let (over, rest): (Vec<_>, Vec<_>) = self
                .take(&key)
                .into_iter()
                .partition(|chain| chain.has_ended() && now.saturating_since(chain.record.end) > wait);
            over.into_iter().for_each(|chain| emit(&chain.into_record()));
            let mut rest = rest;
            rest.shrink_to_fit();
            self.put(key, rest);
        }
    }

    fn take(&mut self, key: &FlowKey) -> Vec<Chain> {
        let chains = self.waiting.pop(key);
        self.bytes -= chains.as_ref().map_or(0, bytes_of);
        chains.unwrap_or_default()
    }

    fn put(&mut self, key: FlowKey, chains: Vec<Chain>) {
        if !chains.is_empty() {
            self.bytes += bytes_of(&chains);
            self.waiting.put(key, chains);
        }
    }

    /// Emits the records of the flow key that was used least recently. Returns false if there is none.
    fn evict(&mut self, emit: &mut impl FnMut(&FlowRecord)) -> bool {
        let Some((_, chains)) = self.waiting.pop_lru() else { return false };
        self.bytes -= bytes_of(&chains);
        for chain in chains {
            self.stats.evicted_count += u64::from(!chain.has_ended());
            emit(&chain.into_record());
        }
        true
    }

    /// Emits all records that wait.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(&FlowRecord)) {
        let JoinStats { evicted_count, .. } = self.stats;
        while self.evict(&mut emit) {}
        self.stats.evicted_count = evicted_count;
    }
}

#[cfg(test)]
mod tests {
    use flowgauge::IpProtocol;

    use super::*;
    use crate::heap::peak_of;

    const LIMIT: usize = 4 << 20;

    /// A record of a flow of its own, which began at this millisecond.
    fn record(number: u32, reason: EndReason) -> FlowRecord {
        let [_, a, b, c] = number.to_be_bytes();
        let (key, side) =
            FlowKey::new(IpProtocol::UDP, ([10, a, b, c].into(), 1000), ([192, 0, 2, 1].into(), 2000));
        let mut record = FlowRecord::new(key, side, Timestamp::from_nanos(u64::from(number) * 1_000_000));
        record.flow_end_reason = reason;
        record
    }

    /// Every record waits, those of flows that ended for their timeout.
    #[test]
    fn allocated_memory_is_within_the_limit() {
        for reason in [EndReason::ActiveTimeout, EndReason::EndOfFlow] {
            let mut emitted_count = 0;
            let (peak, waiting_count) = peak_of(|| {
                let mut joiner = Joiner::new(None, LIMIT as u64);
                for number in 0..40_000 {
                    joiner.push(record(number, reason), |_| emitted_count += 1);
                }
                let waiting_count = joiner.waiting.len();
                joiner.finish(|_| emitted_count += 1);
                waiting_count
            });
            println!("{reason:?}: {peak} bytes for {waiting_count} records");
            assert!(peak <= LIMIT, "{reason:?}: {peak}");
            assert!(waiting_count > LIMIT / 900, "{reason:?}: {waiting_count} records wait");
            assert_eq!(emitted_count, 40_000);
        }
    }
}
