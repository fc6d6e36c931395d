//! The memory budget that all layers share, and the order in which layers release memory.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::limits::Limits;

/// Account of a layer in the [`Budget`].
///
/// An account may grow only while the total of all accounts is below its own fraction of the limit. When memory
/// becomes scarce, the accounts on which more depends can therefore still grow:
///
/// | account | grows below | releases above, oldest first |
/// |---|---|---|
/// | [`Dedup`](Self::Dedup) | 13/16 | nothing: it is small, and its entries are overwritten in turn |
/// | [`Fragments`](Self::Fragments) | 14/16 | datagrams |
/// | [`Streams`](Self::Streams), [`Sessions`](Self::Sessions) | 15/16 | octets kept for comparison, then holes of streams; sessions |
/// | [`Flows`](Self::Flows), [`Queues`](Self::Queues) | the limit | flows, for each new one |
/// | [`Uniflows`](Self::Uniflows) | 15/16 | uniflows, which are emitted alone |
/// | [`Sinks`](Self::Sinks) | 15/16 | sessions, then flows |
/// | [`Sources`](Self::Sources) | the limit | nothing: it has a limit of its own, see [`Limits::source_bytes_max`] |
///
/// Each layer counts what it discards and reports it as an event: a datagram that ended, a gap, or a flow that ended
/// for lack of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(usize)]
pub enum Account {
    /// Memory of the tracker: flows, their index, and the part of the callers' state that is stored inline in the
    /// flow table.
    Flows = 0,
    /// Memory of fragments that wait for the rest of their datagram.
    Fragments = 1,
    /// Memory of TCP segments that wait for a hole in their stream to be filled.
    Streams = 2,
    /// Memory of the state of protocol parsers.
    Sessions = 3,
    /// Memory of frame batches and queues between threads.
    Queues = 4,
    /// Memory of frames that are remembered in order to detect duplicates.
    Dedup = 5,
    /// Memory of captures that are being read: blocks, windows of decompressors, descriptions of interfaces.
    Sources = 6,
    /// Memory of uniflows that wait for the one of the other direction.
    Uniflows = 7,
    /// Memory that sinks allocate for open flows, such as that of open transactions, outside of the flow table.
    Sinks = 8,
}

const ACCOUNTS: usize = 9;

impl Account {
    /// All accounts, in the order of their discriminants.
    const ALL: [Self; ACCOUNTS] = [
        Self::Flows,
        Self::Fragments,
        Self::Streams,
        Self::Sessions,
        Self::Queues,
        Self::Dedup,
        Self::Sources,
        Self::Uniflows,
        Self::Sinks,
    ];

    /// Returns the fraction of the budget's limit, in sixteenths, up to which the total of all accounts may rise when
    /// this account grows.
    const fn sixteenths(self) -> u64 {
        match self {
            Self::Dedup => 13,
            Self::Fragments => 14,
            Self::Streams | Self::Sessions | Self::Uniflows | Self::Sinks => 15,
            Self::Flows | Self::Queues | Self::Sources => 16,
        }
    }

    /// Returns the total of all accounts, in bytes, up to which this account may grow in a budget with this limit.
    const fn ceiling(self, limit: u64) -> u64 {
        // The division comes first so that the product cannot overflow; the second term adds what the division drops.
        limit / 16 * self.sixteenths() + limit % 16 * self.sixteenths() / 16
    }
}

/// The memory budget that all layers of a pipeline share.
///
/// A layer charges memory before it allocates it, does not allocate if the charge is refused, and releases the charge
/// when it frees the memory. Charges are made per segment of a table, not per packet. A clone is another handle on
/// the same budget; handles may be used on several threads.
#[derive(Clone, Debug)]
pub struct Budget {
    shared: Arc<Ledger>,
}

#[derive(Debug)]
struct Ledger {
    limit: u64,
    /// For each account, the total of all accounts in bytes up to which the account may grow.
    ceilings: [u64; ACCOUNTS],
    total: AtomicU64,
    per_account: [AtomicU64; ACCOUNTS],
    peak: AtomicU64,
    refused: AtomicU64,
    injected: Option<Refusals>,
}

/// Memory charges that a test wants refused although there is memory, by the index of the charge, counted from zero.
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
    /// Creates a memory budget of at most `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self::with_injected(limit_bytes, None)
    }

    /// Creates a memory budget that also refuses the charges whose indexes, counted from zero over all accounts, are
    /// in `numbers`. For tests of the behavior of layers without memory.
    #[doc(hidden)]
    #[must_use]
    pub fn with_refusals(limit_bytes: u64, numbers: Range<u64>) -> Self {
        Self::with_injected(limit_bytes, Some(Refusals { numbers, next: AtomicU64::new(0) }))
    }

    fn with_injected(limit_bytes: u64, injected: Option<Refusals>) -> Self {
        let ledger = Ledger {
            limit: limit_bytes,
            ceilings: Account::ALL.map(|account| account.ceiling(limit_bytes)),
            total: AtomicU64::new(0),
            per_account: Default::default(),
            peak: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            injected,
        };
        Self { shared: Arc::new(ledger) }
    }

    /// Returns the total of all accounts, in bytes, up to which an account may grow.
    fn ceiling(&self, account: Account) -> u64 {
        self.shared.ceilings[account as usize]
    }

    /// Returns whether an account should release memory, because the total of all accounts exceeds the ceiling of
    /// this account.
    #[must_use]
    pub(crate) fn is_pressed(&self, account: Account) -> bool {
        self.held() > self.ceiling(account)
    }

    /// Returns the number of bytes by which an account may grow.
    pub(crate) fn left(&self, account: Account) -> u64 {
        self.ceiling(account).saturating_sub(self.held())
    }

    /// Charges `bytes` that are allocated already to an account, whatever the total is.
    pub(crate) fn charge_allocated(&self, account: Account, bytes: u64) {
        let ledger = &*self.shared;
        ledger.per_account[account as usize].fetch_add(bytes, Relaxed);
        let before = ledger.total.fetch_add(bytes, Relaxed);
        ledger.peak.fetch_max(before.saturating_add(bytes), Relaxed);
    }

    /// Charges `bytes` to an account, or nothing if the account may not grow by that much. Returns whether the bytes
    /// were charged.
    #[doc(hidden)]
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

    /// Releases bytes that were charged to an account. Releasing more than an account holds is a bug of the layer;
    /// debug builds assert against it.
    pub(crate) fn release(&self, account: Account, bytes: u64) {
        let held = self.shared.per_account[account as usize].fetch_sub(bytes, Relaxed);
        debug_assert!(held >= bytes, "{account:?} released {bytes} bytes of {held}");
        self.shared.total.fetch_sub(bytes, Relaxed);
    }

    /// Returns the number of bytes that an account holds.
    #[must_use]
    pub fn held_by(&self, account: Account) -> u64 {
        self.shared.per_account[account as usize].load(Relaxed)
    }

    /// Returns the number of bytes that all accounts currently hold.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.total.load(Relaxed)
    }

    /// Returns the largest number of bytes that all accounts together ever held.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.shared.peak.load(Relaxed)
    }

    /// Returns the limit of the budget in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.shared.limit
    }

    /// Returns the number of memory charges that were refused.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }
}

impl Default for Budget {
    /// Creates a budget of the default size of [`Limits::total_bytes_max`].
    fn default() -> Self {
        Self::new(Limits::DEFAULT.total_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_accepted_completely_or_not_at_all() {
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
    fn selected_charges_are_refused_by_number() {
        let budget = Budget::with_refusals(100, 1..3);
        let taken = [10, 20, 30, 40].map(|bytes| budget.charge(Account::Streams, bytes));
        assert_eq!(taken, [true, false, false, true]);
        assert_eq!((budget.held(), budget.refused_count()), (50, 2));
    }

    #[test]
    fn accounts_reach_their_ceilings_in_the_documented_order() {
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
