//! The records of the pipelines that track parts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::record_sink::{RecordReceiver, RecordSink};
use super::super::sink::Stage;
use super::memory::charge;
use crate::base::{Account, Budget, EndReason, FlowKey};
use crate::record::FlowRecord;
use crate::tracker::FlowView;

/// Maximum number of flows that a part may end.
const COUNT_MAX: usize = 1 << 18;

/// Number of records whose memory is charged at a time.
const CHARGED_COUNT: usize = 1024;

/// Whether the record of a flow is wanted.
pub(super) type Wants<'a> = &'a (dyn Fn(&FlowView<'_>) -> bool + Sync);

/// Keeps records until it is known which of them are those of a single pass. Shared with the sink of a pipeline.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Ended>>);

/// The flows that ended.
#[derive(Default)]
struct Ended {
    records: Vec<FlowRecord>,
    /// The keys of the flows of a part that ended, and of those whose records an active timeout ended.
    keys: Vec<(FlowKey, EndReason)>,
    /// The budget, and the bytes that are charged to it; `None` for the carrier, whose records are delivered after each
    /// batch.
    charge: Option<(Budget, u64)>,
    is_full: bool,
}

impl Kept {
    /// Creates an empty list for a part.
    pub(super) fn part(budget: Budget) -> Self {
        let kept = Self::default();
        kept.lock().charge = Some((budget, 0));
        kept
    }

    /// Returns a sink that adds the records that `wants` accepts.
    pub(super) fn sink<'a, G: Stage>(&self, wants: Wants<'a>) -> RecordSink<'a, G> {
        RecordSink::new(Adding { kept: self.clone(), wants })
    }

    fn lock(&self) -> MutexGuard<'_, Ended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether records were lost because there were too many.
    pub(super) fn is_full(&self) -> bool {
        self.lock().is_full
    }

    /// Removes and returns all records.
    pub(super) fn take_records(&self) -> Vec<FlowRecord> {
        std::mem::take(&mut self.lock().records)
    }

    /// Passes all records to `deliver`, and keeps none.
    pub(super) fn drain(&self, deliver: impl FnMut(FlowRecord)) {
        self.lock().records.drain(..).for_each(deliver);
    }

    /// Calls a function with the keys of the flows of a part that ended, or whose records an active timeout ended.
    pub(super) fn each_ended(&self, mut call: impl FnMut(&FlowKey, EndReason)) {
        self.lock().keys.iter().for_each(|(key, reason)| call(key, *reason));
    }
}

impl Ended {
    fn note(&mut self, key: &FlowKey, reason: EndReason) {
        if self.charge.is_some() && self.keys.len() < COUNT_MAX {
            self.keys.push((*key, reason));
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

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some((budget, bytes)) = &self.charge {
            budget.release(Account::Queues, *bytes);
        }
    }
}

/// Adds the records of a pipeline.
struct Adding<'a> {
    kept: Kept,
    wants: Wants<'a>,
}

impl RecordReceiver for Adding<'_> {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        let is_wanted = (self.wants)(view);
        let mut ended = self.kept.lock();
        if is_wanted && ended.has_space() {
            ended.records.push(view.record(reason));
        }
        if reason == EndReason::ActiveTimeout {
            ended.note(view.key(), reason);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason) {
        self.kept.lock().note(view.key(), reason);
    }
}
