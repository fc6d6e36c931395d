//! Times of events.

use std::fmt;

use crate::base::Timestamp;

/// A point in time in UTC with six decimals, such as `2026-11-20T23:09:24.195000+0000`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub(super) Timestamp);

/// Number of octets of date and time up to the microseconds.
const LEN: usize = 26;

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.date_and_time();
        let digits = text.get(..LEN).and_then(|digits| std::str::from_utf8(digits).ok());
        f.write_str(digits.unwrap_or_default())?;
        f.write_str("+0000")
    }
}

crate::row::cells! { displayed Time; }

/// Returns the difference of two times in whole seconds, as EVE computes it: by subtraction of the seconds.
pub(super) const fn age(start: Timestamp, end: Timestamp) -> u64 {
    const NANOS_PER_SECOND: u64 = 1_000_000_000;
    (end.as_nanos() / NANOS_PER_SECOND).saturating_sub(start.as_nanos() / NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_and_a_zone() {
        let time = Timestamp::from_parts(1_795_216_164, 195_000_999);
        assert_eq!(Time(time).to_string(), "2026-11-20T23:09:24.195000+0000");
    }

    #[test]
    fn the_age_is_a_difference_of_seconds() {
        let time = Timestamp::from_parts;
        assert_eq!(age(time(5, 999_999_999), time(6, 0)), 1);
        assert_eq!(age(time(5, 0), time(5, 999_999_999)), 0);
    }
}
