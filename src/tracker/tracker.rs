//! The tracker, and the operations on its open flows.

use std::collections::HashSet;
use std::sync::Arc;

use ahash::RandomState;

use super::active_list::ActiveList;
use super::class::{CLASSES, Class as ClassOf, LISTS, UserClass};
use super::config::TrackerConfig;
use super::event::CallbackChanges;
use super::flow::{FlowBits, FlowId, FlowScan};
use super::lists::Lists;
use super::observer::Observer;
use super::proven::Proven;
use super::recency::List;
use super::share::{Restriction, Share};
use super::stats::TrackerStats;
use super::table::{GROUP_LEN, Hint, Table};
use super::view::FlowView;
use crate::base::{
    Budget, ConfigError, EndReason, FlowKey, Packet, Resources, Timestamp, duration_nanos, hash_state,
};
use crate::decode::extractor::quoted_key;

/// Divisor that determines whether a batch is scattered over the flow table: if more packets than the batch size
/// divided by it were of flows that were not used recently.
const SCATTERED_SHARE: u64 = 2;

/// Tracks flows. `S` is the caller's own state per flow, which is created by default when a flow begins and returned
/// when it ends; the state `()` uses no memory. Dropping a tracker does not report the flows that are open; call
/// [`finish`](Self::finish) first.
#[derive(Debug)]
#[must_use = "a tracker that is dropped without `finish` loses its open flows"]
pub struct Tracker<S> {
    pub(super) table: Table<S>,
    pub(super) lists: Lists,
    pub(super) config: TrackerConfig,
    pub(super) resources: Resources,
    /// The highest timestamp seen, in nanoseconds.
    pub(super) now_ns: u64,
    /// Time in nanoseconds before which no flow can be due.
    pub(super) next_sweep_ns: u64,
    /// Time in nanoseconds before which nothing can be due, neither a flow nor a deadline of the sink.
    pub(super) wake_ns: u64,
    /// True if the flows of the latest batch were scattered over the table; those of the next batch probably are, too.
    pub(super) is_scattered: bool,
    /// Active timeout in nanoseconds; `u64::MAX` for none.
    /// True if the record of a connection is delivered when it closes.
    pub(super) records_close: bool,
    pub(super) active_ns: u64,
    pub(super) active: ActiveList,
    pub(super) stats: TrackerStats,
    pub(super) proven: Proven,
    /// The flows that this tracker tracks, if other trackers track the rest.
    pub(super) restriction: Option<Restriction>,
}

impl<S> Default for Tracker<S> {
    /// Creates a tracker with the default configuration, and a budget that allows at least the first segment of the
    /// flow table, regardless of the size of the caller's state.
    fn default() -> Self {
        let mut resources = Resources::default();
        let limit = resources.limits.total_bytes_max.max(Table::<S>::segment_bytes());
        resources.budget = Budget::new(limit);
        let mut tracker = Self::build(TrackerConfig::default(), resources);
        let is_reserved = tracker.table.reserve();
        debug_assert!(is_reserved, "the budget was made to hold it");
        tracker
    }
}

impl<S> Tracker<S> {
    /// Creates a tracker. Allocates a cache of 128 KiB and an index of 16 KiB; the table grows with the flows, 1024
    /// at a time.
    ///
    /// # Errors
    ///
    /// Returns a [`ConfigError`] for a limit of zero, or a budget that is too small for the first flows, whose memory
    /// is charged at once.
    pub fn new(config: TrackerConfig, resources: &Resources) -> Result<Self, ConfigError> {
        const FLOW_COUNT_MAX: u32 = 1 << 31;
        if !(1..=FLOW_COUNT_MAX).contains(&resources.limits.flow_count_max) {
            return Err(ConfigError::out_of_range("tracker", "flow_count_max", (1, FLOW_COUNT_MAX.into())));
        }
        let mut tracker = Self::build(config, resources.clone());
        if !tracker.table.reserve() {
            return Err(ConfigError::too_small("tracker", "budget", tracker.table.segment_cost()));
        }
        Ok(tracker)
    }

    fn build(config: TrackerConfig, resources: Resources) -> Self {
        let hasher = hash_state(resources.seeds);
        let timeout_ns = |class| {
            let timeout = match class {
                ClassOf::User(number) => config.user_timeouts.get(usize::from(number.0)).copied().flatten(),
                class => config.timeouts.of(class),
            };
            timeout.map_or(u64::MAX, duration_nanos)
        };
        let mut lists = [List::new(u64::MAX); LISTS];
        let user =
            (0..(CLASSES - ClassOf::BUILT_IN.len()) as u8).map(|number| ClassOf::User(UserClass(number)));
        for class in ClassOf::BUILT_IN.into_iter().chain(user) {
            for is_answered in [false, true] {
                lists[usize::from(class.list(is_answered))] = List::new(timeout_ns(class));
            }
        }
        let beside_len = if config.active_timeout.is_some() { ActiveList::ENTRY_LEN } else { 0 };
        let (limits, budget) = (resources.limits, resources.budget.clone());
        let table = Table::new(hasher, limits, budget, beside_len, config.huge_pages);
        Self {
            table,
            lists: Lists(lists),
            now_ns: 0,
            next_sweep_ns: u64::MAX,
            wake_ns: u64::MAX,
            is_scattered: false,
            records_close: config.timeouts.records_close(),
            active_ns: config.active_timeout.map_or(u64::MAX, duration_nanos),
            active: ActiveList::new(config.huge_pages),
            stats: TrackerStats::default(),
            proven: Proven::default(),
            restriction: None,
            config,
            resources,
        }
    }

    /// Returns the number of open flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.live_count() as usize
    }

    /// Returns whether no flow is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the highest timestamp that the tracker has seen.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now_ns)
    }

    /// Returns the counters of the tracker.
    #[must_use]
    pub const fn stats(&self) -> &TrackerStats {
        &self.stats
    }

    /// Returns the memory budget of the tracker.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.resources.budget
    }

    /// Returns the identifier of the open flow with a key, in constant time.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        let slot = self.table.find(self.table.hash(key), key)?;
        Some(self.table.view(slot).id())
    }

    /// Returns an open flow by its identifier, and the caller's state; `None` if the flow has ended.
    #[must_use]
    pub fn get(&self, id: FlowId) -> Option<(FlowView<'_>, &S)> {
        let slot = self.table.resolve(id)?;
        Some((self.table.view(slot), self.table.state(slot)))
    }

    /// Returns whether a slot holds an open flow.
    pub(crate) fn is_open(&self, slot: u32) -> bool {
        self.table.is_open(slot)
    }

    /// Returns an open flow by its identifier, and the caller's state as a mutable reference; `None` if the flow has
    /// ended.
    pub fn get_mut(&mut self, id: FlowId) -> Option<(FlowView<'_>, &mut S)> {
        let slot = self.table.resolve(id)?;
        let flow = self.table.flow(slot);
        Some((flow.view, flow.state))
    }

    /// Stops delivery of packets and events of an open flow, like [`Flow::mute`](super::Flow::mute) in a callback. Returns whether the
    /// flow was open.
    pub fn mute(&mut self, id: FlowId) -> bool {
        let slot = self.table.resolve(id);
        if let Some(slot) = slot {
            self.table.hot_mut(slot).bits.set(FlowBits::MUTED, true);
        }
        slot.is_some()
    }

    /// Applies the changes to an open flow that a callback made outside of the tracker.
    pub(crate) fn apply_to(&mut self, id: FlowId, changes: CallbackChanges) {
        if let Some(slot) = self.table.resolve(id) {
            self.change(slot, changes);
        }
    }

    /// Iterates over all open flows and the caller's state of each flow, in the order of their slots in the flow table.
    pub fn iter(&self) -> impl Iterator<Item = (FlowView<'_>, &S)> {
        self.table.slots().map(|slot| (self.table.view(slot), self.table.state(slot)))
    }

    /// Iterates over the open flows among the next `len` entries of the flow table, and moves `scan` behind them.
    /// Returns `None` at the end of the table.
    pub(crate) fn scan<'a>(
        &'a self,
        scan: &mut FlowScan,
        len: u32,
    ) -> Option<impl Iterator<Item = (FlowView<'a>, &'a S)> + use<'a, S>> {
        let start = scan.next;
        let end = start.saturating_add(len).min(self.table.entry_count());
        scan.next = end;
        let slots = (start..end).filter(|slot| self.table.is_open(*slot));
        (start < end).then(|| slots.map(|slot| (self.table.view(slot), self.table.state(slot))))
    }

    /// Panics unless the index, the recency lists and the counters are consistent. For tests; takes time linear in the
    /// number of flows.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let listed: u32 = self.lists.0.iter().map(List::len).sum();
        assert_eq!(listed, self.table.live_count(), "every open flow is in one list");
        for list in &self.lists.0 {
            list.check_invariants(self.table.cold());
        }
        self.table.check_invariants();
        let open_count = self.stats.started_count + self.stats.restored_count - self.stats.ended_count();
        assert_eq!(
            open_count,
            u64::from(self.table.live_count()),
            "flows that began or were restored, and did not end, are open"
        );
    }
}

impl<S: Default> Tracker<S> {
    /// Tracks a packet. A packet of a known flow costs one look-up and no allocation.
    #[inline]
    pub fn track<K: Observer<S> + ?Sized>(&mut self, packet: &Packet<'_>, observer: &mut K) {
        let interest = observer.interest();
        self.track_one(packet, Hint::default(), interest, observer);
    }

    /// Tracks packets in order, with the same results as [`Tracker::track`] for each packet; up to 32 look-ups are in
    /// progress at a time.
    pub fn track_batch<K: Observer<S> + ?Sized>(&mut self, packets: &[Packet<'_>], observer: &mut K) {
        let interest = observer.interest();
        for chunk in packets.chunks(GROUP_LEN) {
            let mut hints = [Hint::default(); GROUP_LEN];
            let staged_min = self.config.staged_flow_count_min;
            if (self.is_scattered || staged_min == 0) && self.table.live_count() >= staged_min {
                self.table.warm(chunk, &mut hints, &self.lists, |state| observer.touch(state));
            }
            let hit_count = self.stats.hot_hit_count;
            for (packet, hint) in chunk.iter().zip(hints) {
                self.track_one(packet, hint, interest, observer);
            }
            let miss_count = chunk.len() as u64 - (self.stats.hot_hit_count - hit_count);
            self.is_scattered = miss_count > chunk.len() as u64 / SCATTERED_SHARE;
        }
    }

    /// Ends an open flow at once, in constant time. Returns whether the flow was open.
    pub fn remove<K: Observer<S> + ?Sized>(&mut self, id: FlowId, observer: &mut K) -> bool {
        match self.table.resolve(id) {
            Some(slot) => {
                self.end(slot, EndReason::ForcedEnd, observer);
                true
            }
            None => false,
        }
    }
}

impl<S> Tracker<S> {
    /// Restricts the tracker to a share of the flows, before the first packet. The limit on the number of flows is
    /// divided among the shares, too.
    pub(crate) fn restrict(&mut self, share: Share) {
        debug_assert!(self.is_empty());
        // A share without flows receives no packets either.
        let max = share.part_of(self.resources.limits.flow_count_max).max(1);
        self.resources.limits.flow_count_max = max;
        self.table.set_max(max);
        self.restriction = Some(Restriction::Share(share));
    }

    /// Restricts the tracker to the flows with some keys, or ends the restriction.
    pub(crate) fn restrict_to(&mut self, keys: Option<Arc<HashSet<FlowKey, RandomState>>>) {
        self.restriction = keys.map(Restriction::Keys);
    }

    /// Returns whether this tracker tracks the flow with a key.
    #[inline(always)]
    pub(crate) fn takes(&self, key: &FlowKey) -> bool {
        self.restriction.as_ref().is_none_or(|restriction| restriction.takes(key))
    }

    /// Returns whether other trackers track some of the flows.
    pub(crate) const fn is_restricted(&self) -> bool {
        self.restriction.is_some()
    }

    /// Returns the maximum number of open flows.
    pub(crate) const fn flow_count_max(&self) -> u32 {
        self.resources.limits.flow_count_max
    }

    /// Replaces the counters of packets by earlier ones, and keeps the counters of flows.
    pub(crate) const fn keep_packet_counters(&mut self, earlier: &TrackerStats) {
        self.stats.keep_packets_of(earlier);
    }

    /// Moves the tracker's clock forward to the time that packets of all flows have reached, including those that are
    /// not tracked here.
    pub(crate) fn note_time(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }
}

impl<S: Default> Tracker<S> {
    /// Returns the key of the flow of this share that an ICMP error quotes; `None` for any other packet.
    pub(crate) fn quoted_key(&self, packet: &Packet<'_>) -> Option<FlowKey> {
        packet.icmp()?;
        quoted_key(packet, &self.config.key_policy).map(|(key, _)| key).filter(|key| self.takes(key))
    }

    /// Counts an ICMP error that is not tracked here on the flow of this share with the packet that it quotes.
    pub(crate) fn note_quoted_in<K: Observer<S> + ?Sized>(&mut self, packet: &Packet<'_>, observer: &mut K) {
        self.note_time(packet.timestamp.as_nanos());
        self.note_quoted(packet, observer.interest(), observer);
    }
}
