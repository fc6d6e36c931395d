//! What the caller decides about a driver, and what it counts.

use super::parsing::Parsing;
use crate::base::{Budget, Limits};

/// Limits of a [`Driver`](super::Driver).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DriverConfig {
    /// Whether parsers are left out, so that flows are named and nothing is parsed: what a name costs without the messages.
    /// Default no.
    pub is_naming_only: bool,
    /// Caps. Of these, `session_bytes_max` and `session_side_bytes_max`.
    pub limits: Limits,
    /// The account of memory; shared with other layers by cloning the handle.
    pub budget: Budget,
}

impl Default for DriverConfig {
    fn default() -> Self {
        let limits = Limits::DEFAULT;
        Self { is_naming_only: false, limits, budget: Budget::new(limits.total_bytes_max) }
    }
}

/// What went through a [`Driver`](super::Driver).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DriverStats {
    /// Flows of which the protocol was named, by content or port.
    pub recognised_count: u64,
    /// Parsers that gave up.
    pub stopped_count: u64,
    /// Handovers from one parser to another.
    pub handover_count: u64,
    /// Flows that were not looked at, or not any further, for want of memory before a parser had them.
    pub refused_count: u64,
    /// Messages that were left out, since their flows reported more than their packets account for
    /// ([`MESSAGE_CREDIT`](super::MESSAGE_CREDIT)).
    pub suppressed_message_count: u64,
    /// Octets that sessions hold now.
    pub held_bytes: u64,
    /// The most they held.
    pub peak_bytes: u64,
}

impl DriverStats {
    /// Adds what another driver counted; of peaks, the sum, which is an upper bound.
    pub fn add(&mut self, other: &Self) {
        self.recognised_count += other.recognised_count;
        self.stopped_count += other.stopped_count;
        self.handover_count += other.handover_count;
        self.refused_count += other.refused_count;
        self.suppressed_message_count += other.suppressed_message_count;
        self.held_bytes += other.held_bytes;
        self.peak_bytes += other.peak_bytes;
    }
    /// Counts messages that a parser's flow left out.
    #[inline]
    pub(super) fn count_suppressed<P>(&mut self, parsing: &mut Parsing<P>) {
        if parsing.quota.suppressed_count > 0 {
            self.suppressed_message_count += std::mem::take(&mut parsing.quota.suppressed_count);
        }
    }
}
