//! Points in time, as nanoseconds since the Unix epoch.

use std::fmt;
use std::time::Duration;

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A point in time: whole nanoseconds since 1970-01-01T00:00:00Z.
///
/// Covers the years 1970 to 2554. Arithmetic saturates at both ends, so that absurd times in a hostile capture cannot
/// make a layer panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch; also the timestamp of a frame without a time (a pcapng Simple Packet Block has none).
    pub const ZERO: Self = Self(0);

    /// The last point in time that can be represented.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a timestamp from nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a timestamp from whole seconds since the Unix epoch, and nanoseconds (which may exceed a second).
    /// Saturates at [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_parts(seconds: u64, nanos: u64) -> Self {
        Self(seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos))
    }

    /// Returns the time of a timestamp of NTP (RFC 5905 section 6): seconds since 1900, and their fraction. Seconds before
    /// 1970 are those of the era that begins in 2036.
    #[must_use]
    pub(crate) const fn from_ntp(value: u64) -> Self {
        const FROM_1900: u64 = 2_208_988_800;
        let seconds = match (value >> 32).checked_sub(FROM_1900) {
            Some(seconds) => seconds,
            None => (value >> 32) + (1 << 32) - FROM_1900,
        };
        Self::from_parts(seconds, ((value & 0xffff_ffff) * NANOS_PER_SECOND) >> 32)
    }

    /// Returns the timestamp as nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the point in time that is `duration` later, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration_nanos(duration)))
    }

    /// Returns the time that passed since `earlier`, or zero if `earlier` is after `self`.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Converts a duration to nanoseconds, saturating at 584 years.
#[must_use]
pub(crate) const fn duration_nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(NANOS_PER_SECOND).saturating_add(duration.subsec_nanos() as u64)
}

impl fmt::Display for Timestamp {
    /// Writes the timestamp as seconds with nine decimals, in the format of `tcpdump -tt --nano`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let late = Timestamp::from_nanos(u64::MAX - 1);
        assert_eq!(late.saturating_add(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO.saturating_since(late), Duration::ZERO);
        assert_eq!(Timestamp::from_parts(u64::MAX, 0), Timestamp::MAX);
    }

    #[test]
    fn display_keeps_leading_zeros() {
        assert_eq!(Timestamp::from_parts(12, 345).to_string(), "12.000000345");
    }
}
