//! Settings and counters of a driver.

use std::collections::BTreeMap;

use super::quota::Quota;

crate::base::configuration! {
    /// Settings of a [`Driver`](super::Driver).
    ///
    /// The driver uses two of the limits in its [`Resources`](crate::base::Resources): `session_bytes_max` and
    /// `session_side_bytes_max`.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct DriverConfig {
        /// True to omit the parsers, so that protocols are identified but not parsed. Measures the cost of recognition
        /// without messages. Default false.
        pub is_naming_only: bool,
    }
}

/// Number of parsers that stopped, by protocol and fault. Bounded by the number of faults in the source code of parsers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts(BTreeMap<(&'static str, &'static str), u64>);

impl FaultCounts {
    /// Iterates over the name of the protocol, the [reason](super::Fault::reason) of the fault, and the number of
    /// parsers, in the order of these names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.0.iter().map(|((protocol, reason), count)| (*protocol, *reason, *count))
    }

    /// Counts parsers that stopped. Allocates only for the first one of a protocol and a reason.
    pub(super) fn count(&mut self, protocol: &'static str, reason: &'static str, count: u64) {
        *self.0.entry((protocol, reason)).or_default() += count;
    }
}

/// Writes a list of objects with `protocol`, `reason` and `count`.
#[cfg(feature = "serde")]
impl serde::Serialize for FaultCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Entry {
            protocol: &'static str,
            reason: &'static str,
            count: u64,
        }
        serializer.collect_seq(self.iter().map(|(protocol, reason, count)| Entry { protocol, reason, count }))
    }
}

/// Counters of a [`Driver`](super::Driver).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DriverStats {
    /// Number of flows whose protocol was identified, by content or port.
    pub recognized_count: u64,
    /// Number of parsers that stopped with a fault.
    pub stopped_count: u64,
    /// The same by protocol and fault.
    pub faults: FaultCounts,
    /// Number of handovers from one parser to another.
    pub handover_count: u64,
    /// Number of flows that were ignored, completely or from some octet on, because memory was refused before they
    /// reached a parser.
    pub refused_count: u64,
    /// Number of sessions that were closed to release memory for other sessions. The session whose latest charge is
    /// oldest is closed first.
    pub evicted_count: u64,
    /// Number of messages that were suppressed because their flows reported more messages than their packets justify
    /// ([`MESSAGE_CREDIT`](super::MESSAGE_CREDIT)).
    pub suppressed_message_count: u64,
    /// Memory that sessions currently hold, in octets.
    pub held_bytes: u64,
    /// Maximum so far of `held_bytes`.
    pub peak_bytes: u64,
}

impl DriverStats {
    /// Adds the counters of another driver. The sum of the two `peak_bytes` is an upper bound of the joint maximum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.recognized_count += other.recognized_count;
        self.stopped_count += other.stopped_count;
        other.faults.iter().for_each(|(protocol, reason, count)| self.faults.count(protocol, reason, count));
        self.handover_count += other.handover_count;
        self.refused_count += other.refused_count;
        self.evicted_count += other.evicted_count;
        self.suppressed_message_count += other.suppressed_message_count;
        self.held_bytes += other.held_bytes;
        self.peak_bytes += other.peak_bytes;
    }

    /// Adds the number of messages that were suppressed in a parser's flow to the counters.
    #[inline]
    pub(super) fn count_suppressed(&mut self, quota: &mut Quota) {
        if quota.suppressed_count > 0 {
            self.suppressed_message_count += std::mem::take(&mut quota.suppressed_count);
        }
    }
}
