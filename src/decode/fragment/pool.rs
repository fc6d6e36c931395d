//! Pool: takes fragments, yields datagrams, and bounds the memory of both.

mod memory;

use ahash::RandomState;

use super::config::PoolConfig;
use super::datagram::{Body, Verdict};
use super::input::{DatagramKey, Extent, Fragment};
use super::outcome::{Cap, Completed, Discard, EndReason, Ended, Held, Outcome};
use super::pages::SparePages;
use super::policy::OverlapPolicy;
use super::slots::{Slot, Slots};
use super::stats::FragmentStats;
use crate::base::{Account, Allowance, Budget, ConfigError, Limits, Refusal, Resources, Timestamp};

/// Maximum length of a payload that the pool can return, in octets.
const PAYLOAD_LEN_MAX: usize = 65_536;

/// Pool of fragments that wait for the rest of their datagrams. `T` is a caller-defined tag, which the pool
/// keeps for each fragment.
///
/// The pool's clock is the highest timestamp that was pushed with a fragment or passed to
/// [`advance`](Self::advance). A datagram expires [`PoolConfig::timeout`] after its first fragment (by
/// arrival); a fragment that arrives at the deadline or later starts a new datagram.
///
/// Cost per fragment: one lookup by keyed hash, and work in proportion to its length (128 units of eight
/// octets at a time, and the copy), regardless of the number of fragments or holes. A completed datagram is
/// copied once more into contiguous memory. Memory is allocated per kibioctet of payload that fragments
/// touch, charged to the budget first, and released when datagrams end, except for some spare pages.
///
/// ```
/// use std::net::Ipv4Addr;
/// use flowgauge::base::{IpProtocol, Resources, Timestamp};
/// use flowgauge::decode::fragment::{DatagramKey, Fragment, Outcome, Pool, PoolConfig};
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
/// let mut pool: Pool<u32> = Pool::new(PoolConfig::default(), &Resources::default())?;
/// let outcome = pool.push(&second, 60, |_| {});
/// assert!(matches!(outcome, Outcome::Held(held) if held.head().is_none()));
/// match pool.push(&first, 50, |_| {}) {
///     Outcome::Completed(datagram) => {
///         assert_eq!(&datagram.payload[8..], b"GET somemore");
///         assert_eq!(datagram.tags, [60, 50]);
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), flowgauge::base::ConfigError>(())
/// ```
pub struct Pool<T> {
    slots: Slots<T>,
    memory: Allowance,
    hasher: RandomState,
    clock: Timestamp,
    config: PoolConfig,
    limits: Limits,
    stats: FragmentStats,
    spare_pages: SparePages,
    /// Memory pages that were allocated for the current fragment; empty between calls of the pool.
    set_aside: SparePages,
    #[expect(clippy::vec_box, reason = "bodies change hands without being copied")]
    spare_bodies: Vec<Box<Body<T>>>,
    /// Body of the datagram that was completed last, with its tags; the payload of this datagram is in
    /// `payload`.
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

/// Result of adding a fragment to its datagram.
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

    /// Creates an empty pool.
    ///
    /// # Errors
    ///
    /// Returns a [`ConfigError`] if a cap is zero, if fewer than two fragments per datagram are allowed, or
    /// if `fragment_bytes_max` or the budget is smaller than the fixed memory of the pool: 64 KiB for a
    /// completed datagram, and four bytes per datagram of the cap, up to 4 MiB.
    pub fn new(config: PoolConfig, resources: &Resources) -> Result<Self, ConfigError> {
        let limits = resources.limits;
        check(&limits)?;
        let mut memory =
            Allowance::new(resources.budget.clone(), Account::Fragments, limits.fragment_bytes_max);
        let bucket_count = Slots::<T>::bucket_count(limits.fragment_datagram_count_max);
        let fixed = PAYLOAD_LEN_MAX + bucket_count * size_of::<u32>();
        memory.take(fixed as u64).map_err(|refusal| {
            let field = match refusal {
                Refusal::Cap => "fragment_bytes_max",
                Refusal::Budget => "budget",
            };
            ConfigError::too_small("fragment", field, fixed as u64)
        })?;
        let hasher = crate::base::hash_state(resources.seeds);
        Ok(Self {
            slots: Slots::new(limits.fragment_datagram_count_max),
            memory,
            hasher,
            clock: Timestamp::ZERO,
            config,
            limits,
            stats: FragmentStats::default(),
            spare_pages: SparePages::default(),
            set_aside: SparePages::default(),
            spare_bodies: Vec::new(),
            completed: None,
            payload: Vec::with_capacity(PAYLOAD_LEN_MAX),
        })
    }

    /// Processes a fragment and returns its outcome. Datagrams that ended because of it, or because time
    /// advanced, are passed to `ended` first.
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
        self.stats.truncated_count += u64::from((fragment.bytes.len() as u64) < u64::from(fragment.len));
        if fragment.is_atomic() {
            self.stats.atomic_count += 1;
            return Outcome::Atomic;
        }
        // RFC 8200 section 4.5 requires that a fragment of IPv6 is discarded.
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

    /// Advances the clock without a fragment, and passes datagrams whose deadline has passed to `ended`.
    /// Takes time linear in the number of expired datagrams.
    pub fn advance(&mut self, now: Timestamp, mut ended: impl FnMut(Ended<'_, T>)) {
        self.recycle_completed();
        self.expire(now, &mut ended);
        self.relieve(&mut ended);
    }

    /// Releases spare memory, then evicts the oldest datagrams, while the budget requests memory.
    pub(crate) fn relieve(&mut self, ended: &mut impl FnMut(Ended<'_, T>)) {
        while self.memory.must_release() && self.release_some(ended) {}
    }

    /// Ends all datagrams and passes them to `ended`, the oldest first. The pool remains usable.
    pub fn finish(&mut self, mut ended: impl FnMut(Ended<'_, T>)) {
        self.recycle_completed();
        while let Some((slot, _)) = self.slots.next_due() {
            self.end(slot, EndReason::Finished, &mut ended);
        }
    }

    /// Returns the deadline of the datagram or tombstone that expires next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.slots.next_due().map(|(_, deadline)| deadline)
    }

    /// Returns the number of incomplete datagrams and of tombstones of discarded datagrams.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether the pool holds neither incomplete datagrams nor tombstones of discarded datagrams.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// Returns the number of bytes that the pool has allocated and charged.
    #[must_use]
    pub const fn held_bytes(&self) -> u64 {
        self.memory.held_bytes()
    }

    /// Returns the budget that the pool charges.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        self.memory.budget()
    }

    pub(in crate::decode) const fn set_stats(&mut self, stats: FragmentStats) {
        self.stats = stats;
    }

    /// Returns the counts of fragments and datagrams so far.
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
                Ok(slot) => (slot, Verdict::Insert { overlaps: false }),
                Err(cap) => return Step::Refused(cap),
            },
            Some(slot) => match self.body(slot) {
                Some(body) => (slot, body.judge(extent, policy)),
                None => return Step::AlreadyDiscarded,
            },
        };
        let overlaps = match verdict {
            Verdict::Insert { overlaps } => overlaps,
            Verdict::Duplicate => false,
            Verdict::Overlap => return self.discard(slot, Discard::Overlap, policy, ended),
            Verdict::EndConflict => return self.discard(slot, Discard::EndConflict, policy, ended),
        };
        let fragment_count = self.body(slot).map_or(0, |body| body.fragment_count);
        if fragment_count >= self.limits.fragment_per_datagram_count_max {
            return self.discard(slot, Discard::TooManyFragments, OverlapPolicy::Discard, ended);
        }
        let is_duplicate = verdict == Verdict::Duplicate;
        if let Err(cap) = self.reserve(slot, extent, is_duplicate, ended) {
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
            // With the rules of other hosts, a duplicate adds nothing that could complete a datagram.
            return Step::Duplicate { slot };
        }
        if extent.start == 0 {
            body.protocol = fragment.protocol;
        }
        body.insert(extent, overlaps, policy);
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
        if body.is_truncated() {
            self.stats.completed_truncated_count += 1;
            Outcome::CompletedTruncated(completed)
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

    /// Removes the datagram in a slot and passes it to `ended`; a tombstone is removed without a call.
    fn end(&mut self, slot: u32, reason: EndReason, ended: &mut impl FnMut(Ended<'_, T>)) {
        let Some(key) = self.slots.at(slot).map(|slot| slot.key) else { return };
        match self.slots.remove(slot) {
            Some(body) => self.report_end(key, reason, body, ended),
            None => {
                self.stats.tombstone_evicted_count += u64::from(matches!(reason, EndReason::Evicted(_)));
            }
        }
    }

    fn report_end(
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
                self.report_end(key, reason, body, ended);
            }
        }
        Step::Discarded(discard)
    }
}

fn check(limits: &Limits) -> Result<(), ConfigError> {
    let count_max = u64::from(u32::MAX);
    if limits.fragment_datagram_count_max == 0 {
        return Err(ConfigError::out_of_range("fragment", "fragment_datagram_count_max", (1, count_max)));
    }
    if limits.fragment_per_datagram_count_max < 2 {
        return Err(ConfigError::out_of_range("fragment", "fragment_per_datagram_count_max", (2, count_max)));
    }
    Ok(())
}
