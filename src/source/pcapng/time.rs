//! Timestamps of pcapng: units since the epoch, in a unit that is defined per interface.

use crate::base::{NANOS_PER_SECOND, Timestamp};

/// Unit of an interface's timestamps (draft-ietf-opsawg-pcapng section 4.2, if_tsresol).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum TimeResolution {
    /// The unit is 10 to the power of minus this value, in seconds.
    Decimal(u8),
    /// The unit is 2 to the power of minus this value, in seconds.
    Binary(u8),
}

impl TimeResolution {
    /// Microseconds, the resolution of an interface that specifies none.
    pub const MICROSECONDS: Self = Self::Decimal(6);

    /// Nanoseconds, the resolution of this crate's own timestamps.
    pub const NANOSECONDS: Self = Self::Decimal(9);

    /// Converts the octet of the if_tsresol option to a resolution: its top bit selects powers of two or of
    /// ten.
    pub(super) const fn from_octet(octet: u8) -> Self {
        if octet & 0x80 == 0 { Self::Decimal(octet) } else { Self::Binary(octet & 0x7f) }
    }

    /// Converts the resolution to the octet of the if_tsresol option.
    pub(in crate::source) const fn to_octet(self) -> u8 {
        match self {
            Self::Decimal(exponent) => exponent & 0x7f,
            Self::Binary(exponent) => exponent | 0x80,
        }
    }
}

/// Converts the timestamps of a pcapng interface to nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    resolution: TimeResolution,
    offset_seconds: i64,
    /// Nanoseconds per unit, if this number is an integer and there is no offset, which is the common case;
    /// zero otherwise.
    factor: u64,
}

impl Clock {
    pub(super) fn new(resolution: TimeResolution, offset_seconds: i64) -> Self {
        let factor = match (resolution, offset_seconds) {
            (TimeResolution::Decimal(exponent @ 0..=9), 0) => 10_u64.pow(9 - u32::from(exponent)),
            _ => 0,
        };
        Self { resolution, offset_seconds, factor }
    }

    /// Converts a timestamp in the interface's units to a [`Timestamp`], rounded down to nanoseconds and
    /// limited to the range of [`Timestamp`].
    #[inline]
    pub(super) fn timestamp(&self, units: u64) -> Timestamp {
        if self.factor != 0 {
            Timestamp::from_nanos(units.saturating_mul(self.factor))
        } else {
            self.general(units)
        }
    }

    #[cold]
    fn general(&self, units: u64) -> Timestamp {
        let units = u128::from(units);
        let nanos = match self.resolution {
            TimeResolution::Decimal(exponent @ 0..=9) => units * 10_u128.pow(9 - u32::from(exponent)),
            TimeResolution::Decimal(exponent) => {
                10_u128.checked_pow(u32::from(exponent) - 9).map_or(0, |divisor| units / divisor)
            }
            // 64 bits times 30 bits do not overflow; shifts stay below 128.
            TimeResolution::Binary(exponent) => {
                (units * u128::from(NANOS_PER_SECOND)).checked_shr(u32::from(exponent)).unwrap_or(0)
            }
        };
        // At most 94 bits each, so the sum fits.
        let sum = nanos.cast_signed() + i128::from(self.offset_seconds) * i128::from(NANOS_PER_SECOND);
        Timestamp::from_nanos(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_resolutions_are_converted_to_nanoseconds() {
        for (octet, offset, units, nanos) in [
            (6, 0, 1_500_000, 1_500_000_000),
            (9, 0, 1_500_000_000, 1_500_000_000),
            (0, 0, 3, 3_000_000_000),
            (3, 0, 1, 1_000_000),
            (12, 0, 1_999, 1),
            (127, 0, u64::MAX, 0),
            (0x80 | 10, 0, 1536, 1_500_000_000),
            (0x80, 0, 2, 2_000_000_000),
            (0x80 | 127, 0, u64::MAX, 0),
            (6, 10, 500_000, 10_500_000_000),
            (6, -10, 500_000, 0),
            (0x80 | 1, -1, 3, 500_000_000),
            (0, 0, u64::MAX, u64::MAX),
            (0, 1, u64::MAX, u64::MAX),
            (0x80, i64::MAX, u64::MAX, u64::MAX),
            (9, i64::MIN, u64::MAX, 0),
        ] {
            let clock = Clock::new(TimeResolution::from_octet(octet), offset);
            assert_eq!(clock.timestamp(units).as_nanos(), nanos, "{octet} {offset} {units}");
            assert_eq!(TimeResolution::from_octet(octet).to_octet(), octet);
        }
    }

    #[test]
    fn the_fast_conversion_equals_the_general_one() {
        for exponent in 0..=9 {
            let clock = Clock::new(TimeResolution::Decimal(exponent), 0);
            for units in [0, 1, 999_999, 1 << 40, u64::MAX / 1_000_000_000, u64::MAX] {
                assert_eq!(clock.timestamp(units), clock.general(units));
            }
        }
    }
}
