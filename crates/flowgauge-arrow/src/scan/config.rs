//! How the flows of a scan are tracked, and which rows are wanted.

use std::time::Duration;

use flowgauge::features::FeatureSet;
use flowgauge::{Decapsulation, Filter, Timestamp};
use flowgauge_condition::RowFilter;

/// Settings of a scan. What is not set is as in the command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScanConfig {
    /// Features of flows, which are columns of [`Table::Flows`](super::Table::Flows).
    pub features: FeatureSet,
    /// Time without packets after which a flow ends, for all protocols.
    pub idle_timeout: Option<Duration>,
    /// Interval after which a record of an ongoing flow is created. Findings have none.
    pub active_timeout: Option<Duration>,
    /// The layer of tunnels whose flows are tracked.
    pub tunnels: Decapsulation,
    /// Packets that are tracked. `src`, `dst` and `vlan` are permitted for flows only.
    pub filter: Option<Filter>,
    /// The times of rows: of the first packet for flows, of the row itself otherwise. Findings have no time.
    pub times: Times,
    /// Conditions on rows, on columns that need not be chosen ([`Scan::condition`](super::Scan::condition)).
    pub(super) conditions: RowFilter,
    /// True if all captures are read as one, in time order, as those of findings always are.
    pub is_joined: bool,
    /// Time after which rows are passed on, although their batch is not full, when the source has frames or is idle. None
    /// by default: rows of captures follow each other quickly.
    pub interval: Option<Duration>,
    /// Maximum number of rows.
    pub limit: Option<u64>,
    /// Memory of the pipeline in bytes.
    pub memory: u64,
}

impl Default for ScanConfig {
    fn default() -> Self {
        Self {
            features: FeatureSet::default(),
            idle_timeout: None,
            active_timeout: None,
            tunnels: Decapsulation::default(),
            filter: None,
            times: Times::default(),
            conditions: RowFilter::default(),
            is_joined: false,
            interval: None,
            limit: None,
            memory: 1 << 30,
        }
    }
}

impl ScanConfig {
    /// Returns whether rows have conditions ([`Scan::condition`](super::Scan::condition)).
    #[must_use]
    pub const fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }
}

/// A range of times, with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// The earliest time.
    pub first: Timestamp,
    /// The latest time.
    pub last: Timestamp,
}

impl Default for Times {
    fn default() -> Self {
        Self { first: Timestamp::ZERO, last: Timestamp::from_nanos(u64::MAX) }
    }
}

impl Times {
    /// Creates the range from the earliest to the latest time in nanoseconds since 1970.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Self {
        Self { first: Timestamp::from_nanos(first), last: Timestamp::from_nanos(last) }
    }

    /// Returns whether a time is in the range.
    #[must_use]
    pub fn contains(&self, time: Timestamp) -> bool {
        self.first <= time && time <= self.last
    }
}
