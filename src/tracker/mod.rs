//! From packets to flows.
//!
//! [`Tracker::track`] finds the flow of a packet, counts it, follows the TCP connection, and tells a
//! [`FlowSink`] what happened. A packet of a known flow costs one look-up and no allocation; a batch
//! ([`Tracker::track_batch`]) hides the latency of memory, with the same results. Everything is bounded: see
//! [`Limits`](crate::base::Limits), and [`Class`] for who makes room.
//!
//! Time is that of the packets: the clock is the highest timestamp seen. A timeout is decided when the flow's own next
//! packet comes, or at the end; sweeps in between only deliver the same decision sooner. So the same packets give the
//! same records however they are cut into calls.
//!
//! ```
//! use flowgauge::base::{EndReason, Frame, Timestamp};
//! use flowgauge::extractor::Extractor;
//! use flowgauge::tracker::{FlowSink, FlowView, Tracker};
//!
//! struct Print;
//! impl FlowSink<()> for Print {
//!     fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _: ()) {
//!         println!("{} {} packets, {reason}", flow.key(), flow.packet_count());
//!     }
//! }
//!
//! let mut tracker: Tracker<()> = Tracker::default();
//! let frame = Frame::ethernet(Timestamp::ZERO, &[0; 60]);
//! if let Ok(packet) = Extractor::default().extract(&frame) {
//!     tracker.track(&packet, &mut Print);
//! }
//! tracker.finish(&mut Print);
//! ```

mod class;
mod config;
mod direction;
mod enclosures;
mod endpoint;
mod expiry;
mod extras;
mod flow;
mod hot_cache;
mod index;
mod lifecycle;
mod recency;
mod services;
mod share;
mod sink;
mod slab;
mod stats;
mod table;
mod timing;
mod update;
mod view;

pub use class::{Class, Timeouts, USER_CLASS_COUNT_MAX, UserClass};
pub use config::{ConfigError, TrackerConfig};
pub use flow::FlowId;
pub use sink::{Anomaly, Flow, FlowEvent, FlowSink, Interest};
pub use stats::TrackerStats;
pub use view::FlowView;

use ahash::RandomState;

use crate::base::{Budget, EndReason, FlowKey, Timestamp, duration_nanos};
use crate::extractor::Packet;
use class::{CLASSES, Class as ClassOf, LISTS};
use recency::List;
pub(crate) use share::Share;
use table::{Hint, Table};

/// Packets of a batch that are looked up together.
const BATCH: usize = 32;

/// A batch is scattered over the table if more than one of so many packets was of a flow that was not used lately.
const SCATTERED_SHARE: u64 = 2;

/// Follows flows. `S` is the caller's own state per flow, made by default when a flow begins and handed back when it
/// ends; `()` costs nothing.
#[derive(Debug)]
pub struct Tracker<S> {
    table: Table<S>,
    lists: Lists,
    config: TrackerConfig,
    /// The highest timestamp seen.
    now_ns: u64,
    /// Before this time no flow can be due.
    next_sweep_ns: u64,
    /// Before this time nothing can be due, neither a flow nor anything of the sink's.
    wake_ns: u64,
    /// Whether the latest batch was scattered over the table: then so is the next one, probably.
    is_scattered: bool,
    /// Active timeout; `u64::MAX` for none.
    active_ns: u64,
    active: expiry::ActiveList,
    stats: TrackerStats,
    /// Where others track the rest.
    share: Option<Share>,
}

/// The recency lists, as an array that is copied nowhere.
#[derive(Debug)]
struct Lists([List; LISTS]);

impl Lists {
    #[inline(always)]
    fn of(&mut self, list: u8) -> &mut List {
        // The modulo is a promise to the compiler: list numbers come from classes only.
        &mut self.0[list as usize % LISTS]
    }

    /// The epoch of a list as it was when it was asked for last.
    #[inline(always)]
    const fn epoch(&self, list: u8) -> u8 {
        self.0[list as usize % LISTS].latest_epoch()
    }
}

impl<S> Default for Tracker<S> {
    /// With the default configuration, and a budget that holds at least the first flows, however large their state.
    fn default() -> Self {
        let mut config = TrackerConfig::default();
        let limit = config.limits.total_bytes_max.max(Table::<S>::segment_bytes());
        config.budget = Budget::new(limit);
        let mut tracker = Self::build(config);
        let is_reserved = tracker.table.reserve();
        debug_assert!(is_reserved, "the budget was made to hold it");
        tracker
    }
}

impl<S> Tracker<S> {
    /// A tracker with a configuration of the caller's. Allocates a cache of 128 KiB and an index of 16 KiB; the table grows
    /// with the flows, 1024 at a time.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] for a cap of zero, or a budget in which there is no room for the first flows; these are charged
    /// at once.
    pub fn new(config: TrackerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let mut tracker = Self::build(config);
        if !tracker.table.reserve() {
            return Err(ConfigError::BudgetTooSmall { needed_bytes: tracker.table.segment_cost() });
        }
        Ok(tracker)
    }

    fn build(config: TrackerConfig) -> Self {
        let hasher = match config.seeds {
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
        let table = Table::new(hasher, config.limits, config.budget.clone(), beside_len);
        Self {
            table,
            lists: Lists(lists),
            now_ns: 0,
            next_sweep_ns: u64::MAX,
            wake_ns: u64::MAX,
            is_scattered: false,
            active_ns: config.active_timeout.map_or(u64::MAX, duration_nanos),
            active: expiry::ActiveList::default(),
            stats: TrackerStats::default(),
            share: None,
            config,
        }
    }

    /// Open flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.live_count() as usize
    }

    /// Whether no flow is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The highest timestamp seen.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now_ns)
    }

    /// What the tracker counted.
    #[must_use]
    pub const fn stats(&self) -> &TrackerStats {
        &self.stats
    }

    /// The account of memory.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.config.budget
    }

    /// The open flow of a key, in constant time.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        let slot = self.table.find(self.table.hash(key), key)?;
        Some(self.table.view(slot).id())
    }

    /// An open flow by its name, and the caller's state of it; `None` once it ended.
    #[must_use]
    pub fn get(&self, id: FlowId) -> Option<(FlowView<'_>, &S)> {
        let slot = self.table.resolve(id)?;
        Some((self.table.view(slot), self.table.state(slot)?))
    }

    /// The same, with the state to be changed.
    pub fn get_mut(&mut self, id: FlowId) -> Option<(FlowView<'_>, &mut S)> {
        let slot = self.table.resolve(id)?;
        self.table.flow(slot).map(|flow| (flow.view, flow.state))
    }

    /// No more packets and events of an open flow, as [`Flow::mute`] in a callback. Whether it was open.
    pub fn mute(&mut self, id: FlowId) -> bool {
        let slot = self.table.resolve(id);
        if let Some(slot) = slot {
            self.table.hot_mut(slot).bits.set(flow::FlowBits::MUTED, true);
        }
        slot.is_some()
    }

    /// All open flows and the caller's state of each, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (FlowView<'_>, &S)> {
        self.table.slots().filter_map(|slot| Some((self.table.view(slot), self.table.state(slot)?)))
    }

    /// Panics unless index, lists and counts agree. For tests; takes time linear in the number of flows.
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
    /// Tracks a packet: a look-up, and for a known flow no allocation.
    #[inline]
    pub fn track<K: FlowSink<S> + ?Sized>(&mut self, packet: &Packet<'_>, sink: &mut K) {
        let interest = sink.interest();
        self.track_one(packet, Hint::default(), interest, sink);
    }

    /// Tracks packets one after the other, with the same results as [`Tracker::track`] for each; the look-ups of up to
    /// 32 are under way at a time.
    pub fn track_batch<K: FlowSink<S> + ?Sized>(&mut self, packets: &[Packet<'_>], sink: &mut K) {
        let interest = sink.interest();
        for chunk in packets.chunks(BATCH) {
            let mut hints = [Hint::default(); BATCH];
            let staged_min = self.config.staged_flow_count_min;
            if (self.is_scattered || staged_min == 0) && self.table.live_count() >= staged_min {
                self.table.warm(chunk, &mut hints, &self.lists);
            }
            let hit_count = self.stats.hot_hit_count;
            for (packet, hint) in chunk.iter().zip(hints) {
                self.track_one(packet, hint, interest, sink);
            }
            let miss_count = chunk.len() as u64 - (self.stats.hot_hit_count - hit_count);
            self.is_scattered = miss_count > chunk.len() as u64 / SCATTERED_SHARE;
        }
    }

    /// Ends a flow at once, in constant time. Whether it was open.
    pub fn remove<K: FlowSink<S> + ?Sized>(&mut self, id: FlowId, sink: &mut K) -> bool {
        match self.table.resolve(id) {
            Some(slot) => {
                self.end(slot, EndReason::ForcedEnd, sink);
                true
            }
            None => false,
        }
    }
}
