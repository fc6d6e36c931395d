//! The sink of the pipelines that track parts.

use std::marker::PhantomData;

use super::super::sink::{Sink, Stage};
use super::memory::charge;
use crate::base::{Account, Budget, EndReason, FlowKey};
use crate::record::FlowRecord;
use crate::tracker::{Flow, FlowView, Interest};

/// Maximum number of flows that a part may end.
const COUNT_MAX: usize = 1 << 18;

/// Number of records whose memory is charged at a time.
const CHARGED_COUNT: usize = 1024;

/// Keeps records until it is known which of them are those of a single pass.
pub(super) struct Kept<'a, W, G> {
    wants: &'a W,
    records: Vec<FlowRecord>,
    /// The keys of the flows of a part that ended, and of those whose records an active timeout ended.
    ended: Vec<(FlowKey, EndReason)>,
    /// The budget, and the bytes that are charged to it; `None` for the carrier, whose records are delivered after each
    /// batch.
    charge: Option<(Budget, u64)>,
    is_full: bool,
    stage: PhantomData<fn() -> G>,
}

impl<'a, W, G> Kept<'a, W, G> {
    /// Creates the sink of the carrier.
    pub(super) fn carrier(wants: &'a W) -> Self {
        let (records, ended) = (Vec::new(), Vec::new());
        Self { wants, records, ended, charge: None, is_full: false, stage: PhantomData }
    }

    /// Creates the sink of a part.
    pub(super) fn part(wants: &'a W, budget: Budget) -> Self {
        let mut kept = Self::carrier(wants);
        kept.charge = Some((budget, 0));
        kept
    }

    /// Returns whether records were lost because there were too many.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Removes and returns all records.
    pub(super) fn take_records(&mut self) -> Vec<FlowRecord> {
        std::mem::take(&mut self.records)
    }

    /// Passes all records to `deliver`, and keeps none.
    pub(super) fn drain(&mut self, deliver: impl FnMut(FlowRecord)) {
        self.records.drain(..).for_each(deliver);
    }

    /// Returns the keys of the flows of a part that ended, or whose records an active timeout ended.
    pub(super) fn ended(&self) -> &[(FlowKey, EndReason)] {
        &self.ended
    }

    fn note(&mut self, key: &FlowKey, reason: EndReason) {
        if self.charge.is_some() && self.ended.len() < COUNT_MAX {
            self.ended.push((*key, reason));
        } else {
            self.is_full = self.charge.is_some();
        }
    }

    /// Charges the memory of further records. Returns whether one more may be kept.
    fn has_space(&mut self) -> bool {
        let Some((budget, charged_bytes)) = &mut self.charge else { return true };
        let count = self.records.len();
        if self.is_full || count >= COUNT_MAX {
            self.is_full = true;
        } else if count.is_multiple_of(CHARGED_COUNT) {
            let bytes =
                (CHARGED_COUNT * (size_of::<FlowRecord>() + size_of::<(FlowKey, EndReason)>())) as u64;
            self.is_full = !charge(budget, bytes);
            *charged_bytes += if self.is_full { 0 } else { bytes };
        }
        !self.is_full
    }
}

impl<W: Fn(&FlowView<'_>) -> bool, G: Stage> Sink for Kept<'_, W, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        if (self.wants)(&flow.view) && self.has_space() {
            self.records.push(flow.view.record(reason));
        }
        if reason == EndReason::ActiveTimeout {
            self.note(flow.view.key(), reason);
        }
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.note(flow.key(), reason);
    }
}

impl<W, G> Drop for Kept<'_, W, G> {
    fn drop(&mut self) {
        if let Some((budget, bytes)) = &self.charge {
            budget.release(Account::Queues, *bytes);
        }
    }
}
