//! The recency lists of all timeout classes.

use super::class::LISTS;
use super::recency::List;

/// The recency lists of all timeout classes, as an array that is never copied.
#[derive(Debug)]
pub(super) struct Lists(pub(super) [List; LISTS]);

impl Lists {
    #[inline(always)]
    pub(super) fn of(&mut self, list: u8) -> &mut List {
        // The modulo lets the compiler omit bounds checks: no list number is greater.
        &mut self.0[list as usize % LISTS]
    }

    /// Returns the epoch of a recency list as of the list's last update.
    #[inline(always)]
    pub(super) const fn epoch(&self, list: u8) -> u8 {
        self.0[list as usize % LISTS].latest_epoch()
    }

    /// Returns the index of the first recency list with an entry, starting at the list `first`.
    #[inline]
    pub(super) fn next_nonempty(&self, first: usize) -> Option<usize> {
        (first..LISTS).find(|list| self.0[*list].oldest().is_some())
    }
}
