//! Lists of flows by recency, linked through the flows themselves: one for all handshakes, and one per other timeout
//! class and presence of a reply.
//!
//! The lists are lazy: a packet moves its flow to the most recent end only if the flow was not moved in the list's
//! current epoch. An epoch lasts an eighth of the timeout, or until an eighth of the list is new. A busy flow therefore
//! rarely accesses its neighbors, and the order of a list is exact up to one epoch. The true deadline of a flow is
//! checked where it matters.

use super::slab::Slab;

/// Value that refers to no slot.
pub(super) const NONE: u32 = u32::MAX;

/// Number of epochs into which a timeout, or the population of a recency list, is divided.
const EPOCHS: u32 = 8;

/// An entry of a recency list, with links to its two neighbors.
pub(super) trait Linked {
    fn links(&self) -> Links;
    fn links_mut(&mut self) -> &mut Links;
}

/// Slots of an entry's neighbors in a recency list: the more recent one, and the less recent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Links {
    pub(super) newer: u32,
    pub(super) older: u32,
}

impl Links {
    pub(super) const NONE: Self = Self { newer: NONE, older: NONE };
}

/// A recency list: its two ends, and its current epoch, which determines whether a flow is moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
    len: u32,
    /// Number of entries added since the epoch began.
    added_count: u32,
    epoch_began_ns: u64,
    epoch_len_ns: u64,
    /// Idle timeout of the flows in the list, in nanoseconds; `u64::MAX` for none.
    pub(super) timeout_ns: u64,
    epoch: u8,
}

/// The current epoch of a recency list, for a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) number: u8,
    pub(super) added_count: u32,
    pub(super) began_ns: u64,
}

impl List {
    pub(super) const fn new(timeout_ns: u64) -> Self {
        Self {
            newest: NONE,
            oldest: NONE,
            len: 0,
            added_count: 0,
            epoch_began_ns: 0,
            epoch_len_ns: timeout_ns / EPOCHS as u64,
            timeout_ns,
            epoch: 0,
        }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the slot of the least recent entry of the list.
    pub(super) const fn oldest(&self) -> Option<u32> {
        if self.oldest == NONE { None } else { Some(self.oldest) }
    }

    /// Returns the epoch of the list at `now_ns`, and begins a new epoch if the current one is over. A flow with
    /// another epoch is due to be moved.
    #[inline(always)]
    pub(super) fn epoch(&mut self, now_ns: u64) -> u8 {
        if now_ns.wrapping_sub(self.epoch_began_ns) > self.epoch_len_ns {
            self.next_epoch(now_ns);
        }
        self.epoch
    }

    /// Returns the epoch of the list that began last.
    #[inline(always)]
    pub(super) const fn latest_epoch(&self) -> u8 {
        self.epoch
    }

    fn next_epoch(&mut self, now_ns: u64) {
        self.epoch = self.epoch.wrapping_add(1);
        self.epoch_began_ns = now_ns;
        self.added_count = 0;
    }

    pub(super) const fn epoch_state(&self) -> Epoch {
        Epoch { number: self.epoch, added_count: self.added_count, began_ns: self.epoch_began_ns }
    }

    pub(super) const fn set_epoch(&mut self, epoch: Epoch) {
        (self.epoch, self.added_count, self.epoch_began_ns) =
            (epoch.number, epoch.added_count, epoch.began_ns);
    }

    /// Adds an entry of a checkpoint, which is in no list, to the most recent end of this list. Its epoch was saved.
    pub(super) fn restore<T: Linked>(&mut self, slab: &mut Slab<T>, slot: u32) {
        self.link_newest(slab, slot);
        self.len += 1;
    }

    /// Adds an entry that is in no list to the most recent end of this list. Returns the epoch to store in the flow.
    pub(super) fn add<T: Linked>(&mut self, slab: &mut Slab<T>, slot: u32, now_ns: u64) -> u8 {
        self.added_count += 1;
        if self.added_count > self.len / EPOCHS {
            self.next_epoch(now_ns);
        }
        self.link_newest(slab, slot);
        self.len += 1;
        self.epoch
    }

    /// Moves an entry of this list to the most recent end.
    pub(super) fn touch<T: Linked>(&mut self, slab: &mut Slab<T>, slot: u32) {
        if self.newest != slot {
            self.unlink(slab, slot);
            self.link_newest(slab, slot);
        }
    }

    /// Removes an entry from this list, which must contain it.
    pub(super) fn remove<T: Linked>(&mut self, slab: &mut Slab<T>, slot: u32) {
        self.unlink(slab, slot);
        *slab.at_mut(slot).links_mut() = Links::NONE;
        self.len -= 1;
    }

    fn link_newest<T: Linked>(&mut self, slab: &mut Slab<T>, slot: u32) {
        *slab.at_mut(slot).links_mut() = Links { newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = slot,
            newest => slab.at_mut(newest).links_mut().newer = slot,
        }
        self.newest = slot;
    }

    fn unlink<T: Linked>(&mut self, slab: &mut Slab<T>, slot: u32) {
        let Links { newer, older } = slab.at(slot).links();
        match newer {
            NONE => self.newest = older,
            newer => slab.at_mut(newer).links_mut().older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => slab.at_mut(older).links_mut().newer = newer,
        }
    }

    /// Panics unless the links of the list are consistent in both directions.
    pub(super) fn check_invariants<T: Linked>(&self, slab: &Slab<T>) {
        let (mut slot, mut newer, mut count) = (self.newest, NONE, 0);
        while slot != NONE {
            let links = slab.at(slot).links();
            assert_eq!(links.newer, newer, "slot {slot} points back to its neighbor");
            (slot, newer) = (links.older, slot);
            count += 1;
        }
        assert_eq!((self.oldest, self.len), (newer, count), "the list ends at its oldest entry");
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::Vacant;
    use super::*;

    struct Entry(Links);

    impl Vacant for Entry {
        fn vacant() -> Self {
            Self(Links::NONE)
        }
    }

    impl Linked for Entry {
        fn links(&self) -> Links {
            self.0
        }

        fn links_mut(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    fn order(list: &List, slab: &Slab<Entry>) -> Vec<u32> {
        list.check_invariants(slab);
        let mut order = vec![];
        let mut slot = list.newest;
        while slot != NONE {
            order.push(slot);
            slot = slab.at(slot).0.older;
        }
        order
    }

    #[test]
    fn touching_moves_an_entry_to_the_front_and_removal_relinks_its_neighbors() {
        let mut slab = Slab::new(false);
        let mut list = List::new(100);
        for _ in 0..4 {
            let slot = slab.push(Entry(Links::NONE));
            list.add(&mut slab, slot, 0);
        }
        assert_eq!(order(&list, &slab), [3, 2, 1, 0]);
        list.touch(&mut slab, 0);
        list.touch(&mut slab, 2);
        assert_eq!(order(&list, &slab), [2, 0, 3, 1]);
        assert_eq!(list.oldest(), Some(1));
        for (gone, left) in [(0, vec![2, 3, 1]), (1, vec![2, 3]), (2, vec![3]), (3, vec![])] {
            list.remove(&mut slab, gone);
            assert_eq!(order(&list, &slab), left);
        }
        assert_eq!(list.oldest(), None);
    }

    #[test]
    fn an_epoch_ends_after_a_time_or_a_number_of_new_entries() {
        let mut slab = Slab::new(false);
        let mut list = List::new(80);
        for _ in 0..80 {
            let slot = slab.push(Entry(Links::NONE));
            list.add(&mut slab, slot, 0);
        }
        let start = list.epoch(0);
        assert_eq!(list.epoch(10), start);
        let later = list.epoch(11);
        assert_ne!(later, start);
        for _ in 0..12 {
            let slot = slab.push(Entry(Links::NONE));
            list.add(&mut slab, slot, 11);
        }
        assert_ne!(list.epoch(11), later);
    }
}
