//! The order in which the current records of open flows began.

use super::recency::{Linked, Links, List};
use super::slab::{Slab, Vacant};

/// List of flows in the order in which their current records began, for the active timeout. Empty, and without memory,
/// if there is no active timeout.
#[derive(Debug)]
pub(super) struct ActiveList {
    pub(super) entries: Slab<ActiveEntry>,
    pub(super) list: List,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveEntry {
    links: Links,
    is_listed: bool,
    /// Start of the flow's current record, in nanoseconds on the tracker's clock.
    began_ns: u64,
}

impl Vacant for ActiveEntry {
    fn vacant() -> Self {
        Self { links: Links::NONE, is_listed: false, began_ns: 0 }
    }
}

impl Linked for ActiveEntry {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl ActiveList {
    /// Creates an empty list, whose entries are in huge pages on request.
    pub(super) const fn new(in_huge_pages: bool) -> Self {
        Self { entries: Slab::new(in_huge_pages), list: List::new(u64::MAX) }
    }

    /// Memory of the list in bytes for each slot of the flow table.
    pub(super) const ENTRY_LEN: usize = size_of::<ActiveEntry>();

    /// Adds the flow in a slot to the list. Its current record begins at `now_ns`.
    pub(super) fn add(&mut self, slot: u32, now_ns: u64) {
        while self.entries.len() <= slot as usize {
            self.entries.push(ActiveEntry::vacant());
        }
        self.remove(slot);
        self.list.add(&mut self.entries, slot, now_ns);
        let entry = self.entries.at_mut(slot);
        entry.is_listed = true;
        entry.began_ns = now_ns;
    }

    /// Returns the start of the current record of the flow in a slot, in nanoseconds; `None` if its active timeout has
    /// already been processed.
    pub(super) fn began_ns(&self, slot: u32) -> Option<u64> {
        self.entries.get(slot).filter(|entry| entry.is_listed).map(|entry| entry.began_ns)
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if self.entries.get(slot).is_some_and(|entry| entry.is_listed) {
            self.list.remove(&mut self.entries, slot);
            self.entries.at_mut(slot).is_listed = false;
        }
    }
}
