//! The one account of memory that all layers share, and who gives way first.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::limits::Limits;

/// Who holds memory.
///
/// Each may grow only while all of them together are below a part of the limit of its own, so that memory which is getting
/// short is left to those for which more depends on it:
///
/// | account | grows below | gives back above, oldest first |
/// |---|---|---|
/// | [`Dedup`](Self::Dedup) | 13/16 | nothing: it is small, and forgets by itself |
/// | [`Fragments`](Self::Fragments) | 14/16 | datagrams |
/// | [`Streams`](Self::Streams), [`Sessions`](Self::Sessions) | 15/16 | octets kept for comparison, then holes of streams |
/// | [`Flows`](Self::Flows), [`Queues`](Self::Queues) | the limit | flows, for each new one |
/// | [`Sources`](Self::Sources) | the limit | nothing: it has a part of its own, see [`Limits::source_bytes_max`] |
///
/// What goes is counted under its own name where it goes, and told as an event: a datagram that ended, a gap, a flow that
/// ended for lack of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(usize)]
pub enum Account {
    /// The tracker: flows, their index, the callers' states as far as they lie in the flow table.
    Flows = 0,
    /// Fragments that wait for the rest of their datagram.
    Fragments = 1,
    /// Segments that wait for a hole to fill.
    Streams = 2,
    /// What parsers keep.
    Sessions = 3,
    /// Batches and queues between threads.
    Queues = 4,
    /// Frames that are remembered to tell those that were captured twice.
    Dedup = 5,
    /// Captures that are being read: blocks, windows of decompressors, descriptions of interfaces.
    Sources = 6,
}

const ACCOUNTS: usize = 7;

impl Account {
    /// Up to how many sixteenths of the limit all accounts together may come for this one to grow.
    const fn sixteenths(self) -> u64 {
        match self {
            Self::Dedup => 13,
            Self::Fragments => 14,
            Self::Streams | Self::Sessions => 15,
            Self::Flows | Self::Queues | Self::Sources => 16,
        }
    }
}

/// The one account of memory that all layers of a pipeline share.
///
/// A layer charges what it is about to allocate and does not allocate if it is refused; it releases what it gives
/// back. Charges are made per segment of a table, not per packet. Cloning gives another handle on the same
/// account; handles may live on several threads.
#[derive(Clone, Debug)]
pub struct Budget {
    shared: Arc<Ledger>,
}

#[derive(Debug)]
struct Ledger {
    limit: u64,
    total: AtomicU64,
    per_account: [AtomicU64; ACCOUNTS],
    peak: AtomicU64,
    refused: AtomicU64,
    injected: Option<Refusals>,
}

/// Charges that are refused although there is memory, by their numbers from zero.
#[derive(Debug)]
struct Refusals {
    numbers: Range<u64>,
    next: AtomicU64,
}

impl Refusals {
    fn takes_next(&self) -> bool {
        self.numbers.contains(&self.next.fetch_add(1, Relaxed))
    }
}

impl Budget {
    /// An account of at most `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self::with_injected(limit_bytes, None)
    }

    /// Returns a budget that also refuses the charges of these numbers, counted from zero over all accounts. For tests of what
    /// layers do without memory.
    #[doc(hidden)]
    #[must_use]
    pub fn with_refusals(limit_bytes: u64, numbers: Range<u64>) -> Self {
        Self::with_injected(limit_bytes, Some(Refusals { numbers, next: AtomicU64::new(0) }))
    }

    fn with_injected(limit_bytes: u64, injected: Option<Refusals>) -> Self {
        let ledger = Ledger {
            limit: limit_bytes,
            total: AtomicU64::new(0),
            per_account: Default::default(),
            peak: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            injected,
        };
        Self { shared: Arc::new(ledger) }
    }

    /// What all accounts together may hold for one of them to grow.
    fn ceiling(&self, account: Account) -> u64 {
        let limit = self.shared.limit;
        // Of a limit that is not to be reached, nothing is lost by the order of the two.
        limit / 16 * account.sixteenths() + limit % 16 * account.sixteenths() / 16
    }

    /// Whether an account should give memory back: all together hold more than they may for it to grow.
    #[must_use]
    pub fn is_pressed(&self, account: Account) -> bool {
        self.held() > self.ceiling(account)
    }

    /// Takes `bytes` for an account, or nothing at all if there is no room for it to grow. Whether it did.
    #[must_use = "memory that was refused must not be allocated"]
    pub fn charge(&self, account: Account, bytes: u64) -> bool {
        let ledger = &*self.shared;
        if ledger.injected.as_ref().is_some_and(Refusals::takes_next) {
            ledger.refused.fetch_add(1, Relaxed);
            return false;
        }
        let ceiling = self.ceiling(account);
        let taken = ledger
            .total
            .fetch_update(Relaxed, Relaxed, |total| total.checked_add(bytes).filter(|sum| *sum <= ceiling));
        match taken {
            Ok(before) => {
                ledger.per_account[account as usize].fetch_add(bytes, Relaxed);
                ledger.peak.fetch_max(before + bytes, Relaxed);
                true
            }
            Err(_) => {
                ledger.refused.fetch_add(1, Relaxed);
                false
            }
        }
    }

    /// Gives back what was charged. Giving back more than an account holds is a bug of the layer; debug builds
    /// assert it.
    pub fn release(&self, account: Account, bytes: u64) {
        let held = self.shared.per_account[account as usize].fetch_sub(bytes, Relaxed);
        debug_assert!(held >= bytes, "{account:?} released {bytes} bytes of {held}");
        self.shared.total.fetch_sub(bytes, Relaxed);
    }

    /// Bytes that an account holds.
    #[must_use]
    pub fn held_by(&self, account: Account) -> u64 {
        self.shared.per_account[account as usize].load(Relaxed)
    }

    /// Bytes held in all, now.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.total.load(Relaxed)
    }

    /// The most that was ever held.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.shared.peak.load(Relaxed)
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.shared.limit
    }

    /// How often a charge was refused.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }
}

impl Default for Budget {
    /// An account of [`Limits::total_bytes_max`]'s default.
    fn default() -> Self {
        Self::new(Limits::DEFAULT.total_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_taken_whole_or_not_at_all() {
        let budget = Budget::new(100);
        let handle = budget.clone();
        assert!(budget.charge(Account::Flows, 60));
        assert!(!handle.charge(Account::Flows, 41));
        assert!(handle.charge(Account::Flows, 40));
        assert_eq!((budget.held(), budget.held_by(Account::Flows), budget.refused_count()), (100, 100, 1));
        handle.release(Account::Flows, 60);
        assert_eq!((budget.held(), budget.peak()), (40, 100));
        assert!(!budget.charge(Account::Flows, u64::MAX));
    }

    #[test]
    fn charges_are_refused_by_number() {
        let budget = Budget::with_refusals(100, 1..3);
        let taken = [10, 20, 30, 40].map(|bytes| budget.charge(Account::Streams, bytes));
        assert_eq!(taken, [true, false, false, true]);
        assert_eq!((budget.held(), budget.refused_count()), (50, 2));
    }

    #[test]
    fn those_give_way_first_that_the_ladder_names_first() {
        let budget = Budget::new(1600);
        let ladder = [
            (Account::Dedup, 1300),
            (Account::Fragments, 1400),
            (Account::Streams, 1500),
            (Account::Flows, 1600),
        ];
        for (account, ceiling) in ladder {
            assert!(budget.charge(account, ceiling - budget.held()));
            assert!(!budget.is_pressed(account), "{account:?}");
            assert!(!budget.charge(account, 1), "{account:?}");
        }
        assert_eq!(budget.held(), 1600);
        let pressed = ladder.map(|(account, _)| budget.is_pressed(account));
        assert_eq!(pressed, [true, true, true, false]);
        for (account, ceiling) in [(Account::Fragments, 15), (Account::Streams, 16), (Account::Flows, 17)] {
            assert_eq!(Budget::new(17).ceiling(account), ceiling - 1 + u64::from(account == Account::Flows));
        }
    }
}
