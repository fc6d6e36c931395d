//! Snapshot of the open flows of a tracker, for a checkpoint.
//!
//! Flows are saved one by one in the order of the flow table; their places in the recency lists follow, oldest first. The
//! seeds of the hashes are not saved: a restored tracker has those of its own resources, so that the index is built again.

mod flow;
mod order;
mod restore;
mod save;

use std::fmt;

use super::tracker::Tracker;
use crate::base::Timestamp;

pub use restore::read_flows;

/// The open flows of a [`Tracker`], to be written to a checkpoint; see [`Tracker::snapshot`].
pub struct Snapshot<'t, S> {
    tracker: &'t Tracker<S>,
}

/// What a checkpoint states about the tracker that it was written from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// Number of open flows.
    pub flow_count: u64,
    /// Clock of the tracker: the latest packet.
    pub now: Timestamp,
    /// The settings that determine which packets belong to a flow, as text.
    pub key_policy: String,
}

impl<S> Tracker<S> {
    /// Returns the open flows, to be written to a checkpoint. Constant time; the tracker cannot change meanwhile.
    #[must_use]
    pub const fn snapshot(&self) -> Snapshot<'_, S> {
        Snapshot { tracker: self }
    }
}

impl<S> fmt::Debug for Snapshot<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("flow_count", &self.tracker.len()).finish_non_exhaustive()
    }
}
