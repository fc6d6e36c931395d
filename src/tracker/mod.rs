//! Flow tracking: from packets to flows.
//!
//! [`Tracker::track`] finds the flow of a packet, counts the packet, follows the TCP connection, and reports events
//! to an [`Observer`]. A packet of a known flow costs one look-up and no allocation; a batch
//! ([`Tracker::track_batch`]) hides the latency of memory, with the same results. All memory is bounded: see
//! [`Limits`](crate::base::Limits), and [`Class`] for the order of eviction.
//!
//! Time is taken from the packets: the clock is the highest timestamp seen. A timeout is decided when the flow's own
//! next packet arrives, or at the end; sweeps in between only deliver the same decision sooner. The same packets
//! therefore give the same records, regardless of how they are divided into calls.
//!
//! A program that reads frames itself can use the tracker alone. This one counts the flows of a capture:
//!
//! ```
//! use flowgauge::base::{EndReason, FrameBatch};
//! use flowgauge::decode::extractor::Extractor;
//! use flowgauge::source::{FileSource, Next, Source};
//! use flowgauge::tracker::{FlowView, Observer, Tracker};
//!
//! struct Count(u32);
//!
//! impl Observer<()> for Count {
//!     fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _: ()) {
//!         println!("{} {} packets, {reason}", flow.key(), flow.packet_count());
//!         self.0 += 1;
//!     }
//! }
//!
//! let (mut tracker, mut count): (Tracker<()>, _) = (Tracker::default(), Count(0));
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! let mut batch = FrameBatch::new();
//! while source.next_batch(&mut batch)? != Next::End {
//!     for packet in batch.iter().filter_map(|frame| Extractor::default().extract(&frame).ok()) {
//!         tracker.track(&packet, &mut count);
//!     }
//! }
//! tracker.finish(&mut count);
//! assert_eq!(count.0, 27);
//! # Ok::<(), flowgauge::source::Error>(())
//! ```

mod class;
mod config;
mod direction;
mod encapsulations;
mod endpoint;
mod expiry;
mod extras;
mod flow;
mod hot_cache;
mod index;
mod lifecycle;
mod observer;
mod recency;
mod segments;
mod services;
mod share;
mod slab;
mod stats;
mod table;
mod timing;
mod update;
mod view;

pub use class::{Class, Timeouts, USER_CLASS_COUNT_MAX, UserClass};
pub use config::TrackerConfig;
pub use flow::{FlowId, FlowScan};
pub use observer::{Anomaly, Flow, FlowEvent, Interest, Observer};
pub use stats::TrackerStats;
pub use view::FlowView;

use ahash::RandomState;

use crate::base::Packet;
use crate::base::{Budget, ConfigError, EndReason, FlowKey, Resources, Timestamp, duration_nanos};
use class::{CLASSES, Class as ClassOf, LISTS};
use recency::List;
pub(crate) use share::Share;
use table::{Hint, Table};

/// Number of packets of a batch that are looked up together.
const BATCH: usize = 32;

/// Divisor that determines whether a batch is scattered over the flow table: if more packets than the batch size
/// divided by it were of flows that were not used recently.
const SCATTERED_SHARE: u64 = 2;

/// Tracks flows. `S` is the caller's own state per flow, which is created by default when a flow begins and returned
/// when it ends; the state `()` uses no memory.
#[derive(Debug)]
pub struct Tracker<S> {
    table: Table<S>,
    lists: Lists,
    config: TrackerConfig,
    resources: Resources,
    /// The highest timestamp seen, in nanoseconds.
    now_ns: u64,
    /// Time in nanoseconds before which no flow can be due.
    next_sweep_ns: u64,
    /// Time in nanoseconds before which nothing can be due, neither a flow nor a deadline of the sink.
    wake_ns: u64,
    /// True if the flows of the latest batch were scattered over the table; those of the next batch probably are, too.
    is_scattered: bool,
    /// Active timeout in nanoseconds; `u64::MAX` for none.
    active_ns: u64,
    active: expiry::ActiveList,
    stats: TrackerStats,
    /// The share of flows that this tracker tracks, if other trackers track the rest.
    share: Option<Share>,
}

/// The recency lists of all timeout classes, as an array that is never copied.
#[derive(Debug)]
struct Lists([List; LISTS]);

impl Lists {
    #[inline(always)]
    fn of(&mut self, list: u8) -> &mut List {
        // The modulo lets the compiler omit bounds checks: no list number is greater.
        &mut self.0[list as usize % LISTS]
    }

    /// Returns the epoch of a recency list as of the list's last update.
    #[inline(always)]
    const fn epoch(&self, list: u8) -> u8 {
        self.0[list as usize % LISTS].latest_epoch()
    }

    /// Returns the index of the first recency list with an entry, starting at the list `first`.
    #[inline]
    fn next_nonempty(&self, first: usize) -> Option<usize> {
        (first..LISTS).find(|list| self.0[*list].oldest().is_some())
    }
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
        let hasher = match resources.seeds {
            Some([a, b, c, d]) => RandomState::with_seeds(a, b, c, d),
            None => RandomState::new(),
        };
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
        let beside_len = if config.active_timeout.is_some() { expiry::ActiveList::ENTRY_LEN } else { 0 };
        let (limits, budget) = (resources.limits, resources.budget.clone());
        let table = Table::new(hasher, limits, budget, beside_len, config.huge_pages);
        Self {
            table,
            lists: Lists(lists),
            now_ns: 0,
            next_sweep_ns: u64::MAX,
            wake_ns: u64::MAX,
            is_scattered: false,
            active_ns: config.active_timeout.map_or(u64::MAX, duration_nanos),
            active: expiry::ActiveList::new(config.huge_pages),
            stats: TrackerStats::default(),
            share: None,
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

    /// Stops delivery of packets and events of an open flow, like [`Flow::mute`] in a callback. Returns whether the
    /// flow was open.
    pub fn mute(&mut self, id: FlowId) -> bool {
        let slot = self.table.resolve(id);
        if let Some(slot) = slot {
            self.table.hot_mut(slot).bits.set(flow::FlowBits::MUTED, true);
        }
        slot.is_some()
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
        let open_count = self.stats.started_count - self.stats.ended_count();
        assert_eq!(
            open_count,
            u64::from(self.table.live_count()),
            "flows that began and did not end are open"
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
        for chunk in packets.chunks(BATCH) {
            let mut hints = [Hint::default(); BATCH];
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
