//! The pool: fragments in, datagrams out, all of it bounded.

mod room;

use ahash::RandomState;

use super::config::{ConfigError, PoolConfig};
use super::datagram::{Body, Verdict};
use super::input::{DatagramKey, Extent, Fragment};
use super::outcome::{Cap, Completed, Discard, EndReason, Ended, Held, Outcome};
use super::pages::SparePages;
use super::policy::OverlapPolicy;
use super::slots::{Slot, Slots};
use super::stats::FragmentStats;
use crate::base::{Account, Allowance, Budget, Timestamp};

/// The longest payload that can come out.
const PAYLOAD_LEN_MAX: usize = 65_536;

/// Fragments that wait for the rest of their datagrams. `T` is a tag of the caller's, kept per fragment.
///
/// Time is that of the packets: the highest timestamp that was pushed, or given to [`advance`](Self::advance). A
/// datagram has until [`PoolConfig::timeout`] after its first fragment (by arrival); a fragment that comes at the
/// deadline or later starts a new one.
///
/// Cost per fragment: one look-up by keyed hash, and work in proportion to its length (128 units of eight octets at a
/// time, and the copy), whatever the number of fragments or holes. A completed datagram is copied once more into one
/// piece. Memory is allocated per kibioctet of payload that fragments touch, charged to the budget first, and given back
/// when datagrams end, but for some spare pages.
///
/// ```
/// use std::net::Ipv4Addr;
/// use flowgauge::base::{IpProtocol, Timestamp};
/// use flowgauge::fragment::{DatagramKey, Fragment, Outcome, Pool, PoolConfig};
///
/// let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
/// let first = Fragment {
///     key: DatagramKey::v4(source, destination, 7, IpProtocol::UDP, 0),
///     timestamp: Timestamp::ZERO,
///     protocol: IpProtocol::UDP,
///     offset: 0,
///     more_fragments: true,
///     header_len: 20,
///     len: 16,
///     bytes: b"\x12\x34\x00\x35\x00\x14\x00\x00GET some",
/// };
/// let second = Fragment { offset: 16, more_fragments: false, len: 4, bytes: b"more", ..first };
///
/// // The tags are the octets on the wire here; the second fragment comes first.
/// let mut pool: Pool<u32> = Pool::new(PoolConfig::default())?;
/// let outcome = pool.push(&second, 60, |_| {});
/// assert!(matches!(outcome, Outcome::Held(held) if held.head().is_none()));
/// match pool.push(&first, 50, |_| {}) {
///     Outcome::Completed(datagram) => {
///         assert_eq!(&datagram.payload[8..], b"GET somemore");
///         assert_eq!(datagram.tags, [60, 50]);
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), flowgauge::fragment::ConfigError>(())
/// ```
pub struct Pool<T> {
    slots: Slots<T>,
    memory: Allowance,
    hasher: RandomState,
    clock: Timestamp,
    config: PoolConfig,
    stats: FragmentStats,
    spare_pages: SparePages,
    /// Pages for the fragment at hand; empty between calls.
    set_aside: SparePages,
    #[expect(clippy::vec_box, reason = "bodies change hands without being copied")]
    spare_bodies: Vec<Box<Body<T>>>,
    /// The datagram that was completed last: its tags here, its bytes in `payload`.
    completed: Option<Box<Body<T>>>,
    payload: Vec<u8>,
}

impl<T> std::fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("len", &self.slots.len())
            .field("held_bytes", &self.memory.held_bytes())
            .field("clock", &self.clock)
            .field("config", &self.config)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// What is known of a fragment once its datagram has been looked at.
enum Step {
    Held { slot: u32, overlaps: bool },
    Duplicate { slot: u32 },
    Completed { slot: u32, overlaps: bool },
    Discarded(Discard),
    AlreadyDiscarded,
    Refused(Cap),
}

impl<T: Copy> Pool<T> {
    const BODY_COST: u64 = size_of::<Body<T>>() as u64 + 16;
    const SLOT_COST: u64 = size_of::<Slot<T>>() as u64;

    /// An empty pool.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a cap is zero, or less than an empty pool takes.
    pub fn new(config: PoolConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let limits = config.limits;
        let mut memory = Allowance::new(config.budget.clone(), Account::Fragments, limits.fragment_bytes_max);
        let bucket_count = Slots::<T>::bucket_count(limits.fragment_datagram_count_max);
        let fixed = PAYLOAD_LEN_MAX + bucket_count * size_of::<u32>();
        memory.take(fixed as u64).map_err(|_| ConfigError::TooFewBytes)?;
        let hasher = match config.seeds {
            Some([a, b, c, d]) => RandomState::with_seeds(a, b, c, d),
            None => RandomState::new(),
        };
        Ok(Self {
            slots: Slots::new(limits.fragment_datagram_count_max),
            memory,
            hasher,
            clock: Timestamp::ZERO,
            config,
            stats: FragmentStats::default(),
            spare_pages: SparePages::default(),
            set_aside: SparePages::default(),
            spare_bodies: Vec::new(),
            completed: None,
            payload: Vec::with_capacity(PAYLOAD_LEN_MAX),
        })
    }

    /// Takes a fragment. What became of it is returned; datagrams that ended because of it, or because time went on, are
    /// given to `ended` before.
    pub fn push(
        &mut self,
        fragment: &Fragment<'_>,
        tag: T,
        mut ended: impl FnMut(Ended<'_, T>),
    ) -> Outcome<'_, T> {
        self.recycle_completed();
        self.stats.fragment_count += 1;
        self.stats.late_count += u64::from(fragment.timestamp < self.clock);
        self.expire(fragment.timestamp, &mut ended);
        self.stats.cut_count += u64::from((fragment.bytes.len() as u64) < u64::from(fragment.len));
        if fragment.is_atomic() {
            self.stats.atomic_count += 1;
            return Outcome::Atomic;
        }
        // RFC 8200 section 4.5 has the fragment of IPv6 discarded.
        let rounds_down = self.config.policy.rounds_down() && !fragment.key.is_ipv6();
        let extent = match fragment.extent(rounds_down) {
            Ok(extent) => extent,
            Err(malformed) => {
                self.stats.count_malformed(malformed);
                return Outcome::Malformed(malformed);
            }
        };
        self.stats.rounded_count += u64::from(extent.end - extent.start != fragment.len);
        match self.step(fragment, &extent, tag, &mut ended) {
            Step::Held { slot, overlaps } => {
                self.stats.held_count += 1;
                self.stats.overlap_resolved_count += u64::from(overlaps);
                self.held(slot, overlaps).map_or(Outcome::AlreadyDiscarded, Outcome::Held)
            }
            Step::Duplicate { slot } => {
                self.stats.duplicate_count += 1;
                self.held(slot, false).map_or(Outcome::AlreadyDiscarded, Outcome::Duplicate)
            }
            Step::Completed { slot, overlaps } => {
                self.stats.overlap_resolved_count += u64::from(overlaps);
                self.complete(slot, fragment.key, overlaps)
            }
            Step::Discarded(discard) => {
                self.stats.count_discard(discard);
                Outcome::Discarded(discard)
            }
            Step::AlreadyDiscarded => {
                self.stats.already_discarded_count += 1;
                Outcome::AlreadyDiscarded
            }
            Step::Refused(cap) => {
                self.stats.count_refusal(cap);
                Outcome::Refused(cap)
            }
        }
    }

    /// Moves the clock, for captures without packets: datagrams whose deadline has passed are given to `ended`. O(expired).
    pub fn advance(&mut self, now: Timestamp, mut ended: impl FnMut(Ended<'_, T>)) {
        self.recycle_completed();
        self.expire(now, &mut ended);
        self.relieve(&mut ended);
    }

    /// Gives up the oldest datagrams while the budget asks for memory back.
    pub(crate) fn relieve(&mut self, ended: &mut impl FnMut(Ended<'_, T>)) {
        while self.memory.is_asked_back() && self.give_back_some(ended) {}
    }

    /// Ends all datagrams, oldest first. The pool can be used on.
    pub fn finish(&mut self, mut ended: impl FnMut(Ended<'_, T>)) {
        self.recycle_completed();
        while let Some((slot, _)) = self.slots.next_due() {
            self.end(slot, EndReason::Finished, &mut ended);
        }
    }

    /// When the next datagram or tombstone falls due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.slots.next_due().map(|(_, deadline)| deadline)
    }

    /// Datagrams that wait, and tombstones.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// Bytes that the pool has allocated and charged.
    #[must_use]
    pub const fn held_bytes(&self) -> u64 {
        self.memory.held_bytes()
    }

    /// The account that the pool charges.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        self.memory.budget()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn stats(&self) -> &FragmentStats {
        &self.stats
    }

    fn step(
        &mut self,
        fragment: &Fragment<'_>,
        extent: &Extent<'_>,
        tag: T,
        ended: &mut impl FnMut(Ended<'_, T>),
    ) -> Step {
        let policy = if fragment.key.is_ipv6() { OverlapPolicy::Discard } else { self.config.policy };
        let hash = self.hasher.hash_one(fragment.key);
        let found = self.slots.find(hash, &fragment.key);
        let (slot, verdict) = match found {
            None => match self.open(hash, fragment.key, ended) {
                Ok(slot) => (slot, Verdict::Place { overlaps: false }),
                Err(cap) => return Step::Refused(cap),
            },
            Some(slot) => match self.body(slot) {
                Some(body) => (slot, body.judge(extent, policy)),
                None => return Step::AlreadyDiscarded,
            },
        };
        let overlaps = match verdict {
            Verdict::Place { overlaps } => overlaps,
            Verdict::Duplicate => false,
            Verdict::Overlap => return self.discard(slot, Discard::Overlap, policy, ended),
            Verdict::EndConflict => return self.discard(slot, Discard::EndConflict, policy, ended),
        };
        let fragment_count = self.body(slot).map_or(0, |body| body.fragment_count);
        if fragment_count >= self.config.limits.fragment_per_datagram_count_max {
            return self.discard(slot, Discard::TooManyFragments, OverlapPolicy::Discard, ended);
        }
        let is_duplicate = verdict == Verdict::Duplicate;
        if let Err(cap) = self.make_room(slot, extent, is_duplicate, ended) {
            if found.is_none() {
                self.forget(slot);
            }
            return Step::Refused(cap);
        }
        let Some(body) = self.slots.at_mut(slot).and_then(|slot| slot.body.as_deref_mut()) else {
            return Step::AlreadyDiscarded;
        };
        body.tags.push(tag);
        body.fragment_count += 1;
        body.last_time = fragment.timestamp;
        if body.fragment_count == 1 {
            body.first_time = fragment.timestamp;
            self.stats.datagram_count += 1;
        }
        if is_duplicate {
            body.note_duplicate(extent, policy);
            // With another host's rules, a duplicate adds nothing that could complete a datagram.
            return Step::Duplicate { slot };
        }
        if extent.start == 0 {
            body.protocol = fragment.protocol;
        }
        body.place(extent, overlaps, policy);
        if body.is_complete() { Step::Completed { slot, overlaps } } else { Step::Held { slot, overlaps } }
    }

    fn body(&self, slot: u32) -> Option<&Body<T>> {
        self.slots.at(slot)?.body.as_deref()
    }

    fn held(&mut self, slot: u32, overlaps: bool) -> Option<Held<'_, T>> {
        let body = self.slots.at_mut(slot)?.body.as_deref_mut()?;
        Some(Held { body, overlaps })
    }

    fn complete(&mut self, slot: u32, key: DatagramKey, overlaps: bool) -> Outcome<'_, T> {
        let Some(mut body) = self.slots.remove(slot) else { return Outcome::AlreadyDiscarded };
        body.pages.gather(body.captured_len(), &mut self.payload);
        self.free_pages(&mut body);
        let body = &**self.completed.insert(body);
        let completed = Completed {
            key,
            protocol: body.protocol,
            payload: &self.payload,
            payload_len: body.total_len().unwrap_or(0),
            tags: &body.tags,
            fragment_count: body.fragment_count,
            first_time: body.first_time,
            overlaps,
        };
        if body.is_cut() {
            self.stats.completed_cut_count += 1;
            Outcome::CompletedCut(completed)
        } else {
            self.stats.completed_count += 1;
            Outcome::Completed(completed)
        }
    }

    fn expire(&mut self, now: Timestamp, ended: &mut impl FnMut(Ended<'_, T>)) {
        self.clock = self.clock.max(now);
        while let Some((slot, deadline)) = self.slots.next_due() {
            if deadline > self.clock {
                return;
            }
            self.end(slot, EndReason::Expired, ended);
        }
    }

    /// Takes a datagram out and tells of it, or a tombstone.
    fn end(&mut self, slot: u32, reason: EndReason, ended: &mut impl FnMut(Ended<'_, T>)) {
        let Some(key) = self.slots.at(slot).map(|slot| slot.key) else { return };
        match self.slots.remove(slot) {
            Some(body) => self.tell(key, reason, body, ended),
            None => {
                self.stats.tombstone_evicted_count += u64::from(matches!(reason, EndReason::Evicted(_)));
            }
        }
    }

    fn tell(
        &mut self,
        key: DatagramKey,
        reason: EndReason,
        body: Box<Body<T>>,
        ended: &mut impl FnMut(Ended<'_, T>),
    ) {
        let head = body.head();
        self.stats.count_end(reason, head.is_some());
        ended(Ended {
            key,
            reason,
            head,
            protocol: head.map(|_| body.protocol),
            tags: &body.tags,
            fragment_count: body.fragment_count,
            held_len: body.held_len(),
            first_time: body.first_time,
            last_time: body.last_time,
        });
        self.recycle(body);
    }

    fn discard(
        &mut self,
        slot: u32,
        discard: Discard,
        policy: OverlapPolicy,
        ended: &mut impl FnMut(Ended<'_, T>),
    ) -> Step {
        let reason = EndReason::Discarded(discard);
        if policy == OverlapPolicy::Linux {
            self.end(slot, reason, ended);
        } else if let Some(key) = self.slots.at(slot).map(|slot| slot.key) {
            let deadline = self.clock.saturating_add(self.config.timeout);
            if let Some(body) = self.slots.bury(slot, deadline) {
                self.tell(key, reason, body, ended);
            }
        }
        Step::Discarded(discard)
    }
}
