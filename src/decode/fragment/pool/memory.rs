//! Memory of the pool: charged before it is allocated, reused where possible, and released by evicting the
//! oldest datagrams.

use super::{PAYLOAD_LEN_MAX, Pool};
use crate::base::Refusal;
use crate::decode::fragment::datagram::Body;
use crate::decode::fragment::input::{DatagramKey, Extent};
use crate::decode::fragment::outcome::{Cap, EndReason, Ended};
use crate::decode::fragment::pages::PAGE_COST;
use crate::decode::fragment::policy::OverlapPolicy;
use crate::decode::fragment::slots::Slots;

/// Maximum number of unused datagram bodies that are kept for later datagrams.
const SPARE_BODIES_MAX: usize = 16;

/// Number of tags for which a datagram allocates memory with its first fragment.
const TAG_COUNT_FIRST: usize = 4;

impl<T: Copy> Pool<T> {
    /// Adds a datagram without fragments and returns the index of its slot. If the pool is full, evicts the
    /// datagrams and tombstones that expire next.
    pub(super) fn open(
        &mut self,
        hash: u64,
        key: DatagramKey,
        ended: &mut impl FnMut(Ended<'_, T>),
    ) -> Result<u32, Cap> {
        let max = self.limits.fragment_datagram_count_max;
        while self.slots.len() >= max as usize {
            let (slot, _) = self.slots.next_due().ok_or(Cap::Datagrams)?;
            self.end(slot, EndReason::Evicted(Cap::Datagrams), ended);
        }
        let mut body = match self.spare_bodies.pop() {
            Some(body) => body,
            None => {
                self.take(Self::BODY_COST, None, ended)?;
                Box::new(Body::new())
            }
        };
        let growth = self.slots.growth(max);
        if growth > 0 {
            if let Err(cap) = self.take(growth as u64 * Self::SLOT_COST, None, ended) {
                self.recycle(body);
                return Err(cap);
            }
            self.slots.grow(growth);
        }
        body.reset(self.clock);
        let slot = self.slots.insert(hash, key, self.clock.saturating_add(self.config.timeout), body);
        self.stats.datagram_count_max = self.stats.datagram_count_max.max(self.slots.len() as u64);
        Ok(slot)
    }

    /// Removes the datagram in a slot, after memory for its first fragment was refused.
    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(body) = self.slots.remove(slot) {
            self.recycle(body);
        }
    }

    /// Allocates and charges memory for the bytes and the tag of a fragment; a duplicate needs memory only
    /// for its tag.
    pub(super) fn reserve(
        &mut self,
        slot: u32,
        extent: &Extent<'_>,
        is_duplicate: bool,
        ended: &mut impl FnMut(Ended<'_, T>),
    ) -> Result<(), Cap> {
        let Some(body) = self.body(slot) else { return Ok(()) };
        let (from, to) = extent.units();
        let page_count = if is_duplicate { 0 } else { body.pages.missing_count(from, to) };
        let (len, capacity) = (body.tags.len(), body.tags.capacity());
        if len == capacity {
            let growth = capacity.max(TAG_COUNT_FIRST);
            self.take((growth * size_of::<T>()) as u64, Some(slot), ended)?;
            if let Some(body) = self.slots.at_mut(slot).and_then(|slot| slot.body.as_deref_mut()) {
                body.tags.reserve_exact(growth);
            }
        }
        while self.set_aside.len() < page_count {
            if !self.set_aside.add_from(&mut self.spare_pages) {
                if let Err(cap) = self.take(PAGE_COST, Some(slot), ended) {
                    self.memory.give(self.set_aside.len() as u64 * PAGE_COST);
                    self.set_aside.clear();
                    return Err(cap);
                }
                self.set_aside.add_new();
            }
        }
        if page_count > 0
            && let Some(body) = self.slots.at_mut(slot).and_then(|slot| slot.body.as_deref_mut())
        {
            body.pages.add_missing(from, to, &mut self.set_aside);
        }
        Ok(())
    }

    /// Charges `bytes` of memory to the pool and the budget. While the charge is refused, releases spare
    /// memory, then evicts the oldest datagrams other than the one in the slot `except`.
    fn take(
        &mut self,
        bytes: u64,
        except: Option<u32>,
        ended: &mut impl FnMut(Ended<'_, T>),
    ) -> Result<(), Cap> {
        loop {
            let Err(refusal) = self.memory.take(bytes) else { return Ok(()) };
            let cap = match refusal {
                Refusal::Cap => Cap::Bytes,
                Refusal::Budget => Cap::Budget,
            };
            if self.drop_spare() {
                continue;
            }
            let oldest = self.slots.oldest_live(except).ok_or(cap)?;
            self.end(oldest, EndReason::Evicted(cap), ended);
        }
    }

    /// Releases all spare memory, or evicts the oldest datagram if there is no spare memory, or releases the
    /// memory of unused slots if there is no datagram. Returns whether anything was released.
    pub(super) fn release_some(&mut self, ended: &mut impl FnMut(Ended<'_, T>)) -> bool {
        if self.spare_pages.len() > 0 || !self.spare_bodies.is_empty() {
            self.drop_spares();
            return true;
        }
        if let Some(oldest) = self.slots.oldest_live(None) {
            self.end(oldest, EndReason::Evicted(Cap::Budget), ended);
            return true;
        }
        let slot_count = self.slots.clear();
        self.memory.give(slot_count as u64 * Self::SLOT_COST);
        slot_count > 0
    }

    /// Releases the memory of one spare page, or of one spare datagram body if there is no spare page.
    /// Returns whether anything was released. The remaining spare pages and bodies are kept for the following
    /// fragments.
    fn drop_spare(&mut self) -> bool {
        if self.spare_pages.drop_one() {
            self.memory.give(PAGE_COST);
        } else if let Some(body) = self.spare_bodies.pop() {
            self.memory.give(Self::body_bytes(&body));
        } else {
            return false;
        }
        true
    }

    fn drop_spares(&mut self) {
        self.memory.give(self.spare_pages.len() as u64 * PAGE_COST);
        self.spare_pages.clear();
        while let Some(body) = self.spare_bodies.pop() {
            self.memory.give(Self::body_bytes(&body));
        }
    }

    /// Returns the memory that a datagram body and its tags use, without its pages, in bytes.
    pub(super) fn body_bytes(body: &Body<T>) -> u64 {
        Self::BODY_COST + Self::tag_bytes(body)
    }

    fn tag_bytes(body: &Body<T>) -> u64 {
        (body.tags.capacity().saturating_mul(size_of::<T>())) as u64
    }

    pub(super) fn free_pages(&mut self, body: &mut Body<T>) {
        let dropped_count = body.pages.clear(&mut self.spare_pages);
        self.memory.give(dropped_count as u64 * PAGE_COST);
    }

    pub(super) fn recycle_completed(&mut self) {
        if let Some(body) = self.completed.take() {
            self.recycle(body);
        }
    }

    pub(super) fn recycle(&mut self, mut body: Box<Body<T>>) {
        self.free_pages(&mut body);
        body.tags.clear();
        if self.spare_bodies.len() < SPARE_BODIES_MAX && body.tags.capacity() <= 64 {
            self.spare_bodies.push(body);
        } else {
            self.memory.give(Self::body_bytes(&body));
        }
    }

    /// Panics unless the parts of the pool are consistent with each other and with its accounting; for tests
    /// and fuzzers.
    pub fn check_invariants(&self) {
        let bucket_count = Slots::<T>::bucket_count(self.limits.fragment_datagram_count_max);
        let mut bytes = (PAYLOAD_LEN_MAX + bucket_count * size_of::<u32>()) as u64;
        bytes += self.slots.capacity() as u64 * Self::SLOT_COST + self.spare_pages.len() as u64 * PAGE_COST;
        let mut add = |body: &Body<T>| {
            bytes += Self::body_bytes(body) + u64::from(body.pages.page_count()) * PAGE_COST;
        };
        self.slots.check_invariants(|body| {
            body.check_invariants();
            assert!(!body.is_complete() || self.config.policy == OverlapPolicy::Linux);
            add(body);
        });
        self.spare_bodies.iter().chain(&self.completed).for_each(|body| add(body));
        assert_eq!(bytes, self.memory.held_bytes(), "what is held is what was charged");
        assert!(bytes <= self.limits.fragment_bytes_max);
        assert!(self.slots.len() <= self.limits.fragment_datagram_count_max as usize);
        assert_eq!(self.stats.outcome_count(), self.stats.fragment_count);
    }
}
