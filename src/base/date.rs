//! Points in time as dates of the calendar (RFC 3339), and conversion from and to the time of the system.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use super::time::{NANOS_PER_SECOND, Timestamp};

/// Number of days from the beginning of the era of years that begin in March to the Unix epoch.
const EPOCH_DAY: u64 = 719_468;

/// Days in an era of 400 years.
const ERA_DAYS: u64 = 146_097;

/// Returns year, month and day of a number of days since 1970-01-01 in the Gregorian calendar.
const fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the leap day is the last day of a year, and eras of 400 years are all equal.
    let days = days + EPOCH_DAY;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + is_next_year as u64, month, day)
}

/// Returns the number of days from the Unix epoch to a date; `None` if the calendar does not have it, or if it is before
/// the epoch.
fn days_to(year: u64, month: u64, day: u64) -> Option<u64> {
    let (years, months) =
        if month > 2 { (year, month.wrapping_sub(3)) } else { (year.checked_sub(1)?, month + 9) };
    let (era, year_of_era) = (years / 400, years % 400);
    let day_of_year = (153 * months.min(12) + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * ERA_DAYS + day_of_era).checked_sub(EPOCH_DAY)?;
    (date(days) == (year, month, day)).then_some(days)
}

impl Timestamp {
    /// Returns `2026-11-20T23:41:15.123456789Z`.
    pub(crate) fn date_and_time(self) -> [u8; 30] {
        let (seconds, nanoseconds) = (self.as_nanos() / NANOS_PER_SECOND, self.as_nanos() % NANOS_PER_SECOND);
        let (year, month, day) = date(seconds / 86_400);
        let time = seconds % 86_400;
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        let mut text = *b"0000-00-00T00:00:00.000000000Z";
        let parts: [(usize, usize, u64); 7] = [
            (0, 4, year),
            (5, 2, month),
            (8, 2, day),
            (11, 2, hour),
            (14, 2, minute),
            (17, 2, second),
            (20, 9, nanoseconds),
        ];
        for (start, len, mut value) in parts {
            for place in text.iter_mut().skip(start).take(len).rev() {
                *place = b'0' + (value % 10) as u8;
                value /= 10;
            }
        }
        text
    }

    /// Returns the date and the time in UTC as RFC 3339 writes them, with nanoseconds.
    ///
    /// ```
    /// use flowgauge::Timestamp;
    ///
    /// let time: Timestamp = "2026-11-20T23:41:15.5Z".parse()?;
    /// assert_eq!(time.rfc3339().to_string(), "2026-11-20T23:41:15.500000000Z");
    /// # Ok::<(), flowgauge::base::DateError>(())
    /// ```
    pub fn rfc3339(self) -> impl fmt::Display {
        struct Date([u8; 30]);
        impl fmt::Display for Date {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(std::str::from_utf8(&self.0).unwrap_or_default())
            }
        }
        Date(self.date_and_time())
    }
}

/// Error of reading a [`Timestamp`]: the text is not a date and a time of RFC 3339, or the time cannot be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DateError;

impl fmt::Display for DateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a time between 1970 and 2554 such as 2026-11-20T23:41:15.5Z or 2026-11-21T00:41:15+01:00",
        )
    }
}

impl std::error::Error for DateError {}

/// Returns the number that all of `octets` are the digits of.
fn number(octets: &[u8]) -> Option<u64> {
    octets.iter().try_fold(0_u64, |number, octet| {
        octet.is_ascii_digit().then(|| number * 10 + u64::from(octet - b'0'))
    })
}

/// Reads a date and a time. Decimals of the second after the ninth are dropped, and a leap second is the second after it.
fn parse(text: &[u8]) -> Option<Timestamp> {
    let (fixed, rest) = text.split_at_checked(19)?;
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T' | b't' | b' ', h0, h1, b':', n0, n1, b':', s0, s1] =
        fixed
    else {
        return None;
    };
    let day = days_to(number(&[*y0, *y1, *y2, *y3])?, number(&[*m0, *m1])?, number(&[*d0, *d1])?)?;
    let two = |tens: &u8, ones: &u8, max| number(&[*tens, *ones]).filter(|number| *number <= max);
    let (hour, minute, second) = (two(h0, h1, 23)?, two(n0, n1, 59)?, two(s0, s1, 60)?);
    let (mut nanos, mut zone) = (0, rest);
    if let Some(decimals) = rest.strip_prefix(b".") {
        let len = decimals.iter().take_while(|octet| octet.is_ascii_digit()).count();
        let (digits, after) = decimals.split_at_checked(len)?;
        (!digits.is_empty()).then_some(())?;
        let digits = digits.iter().map(|digit| digit - b'0').chain(std::iter::repeat(0));
        nanos = digits.take(9).fold(0, |nanos, digit| nanos * 10 + u64::from(digit));
        zone = after;
    }
    let local = ((day * 24 + hour) * 60 + minute) * 60 + second;
    let seconds = match zone {
        b"Z" | b"z" => local,
        [sign @ (b'+' | b'-'), h0, h1, b':', m0, m1] => {
            let offset = (two(h0, h1, 23)? * 60 + two(m0, m1, 59)?) * 60;
            if *sign == b'+' { local.checked_sub(offset)? } else { local + offset }
        }
        _ => return None,
    };
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos).map(Timestamp::from_nanos)
}

impl FromStr for Timestamp {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        parse(text.as_bytes()).ok_or(DateError)
    }
}

impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        Self::UNIX_EPOCH + Duration::from_nanos(timestamp.as_nanos())
    }
}

impl From<SystemTime> for Timestamp {
    /// Converts a time of the system. Times before 1970 become [`Timestamp::ZERO`], those after 2554 [`Timestamp::MAX`].
    fn from(time: SystemTime) -> Self {
        Self::ZERO.saturating_add(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Seconds as printed by `date -u -d ... +%s`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000005Z"),
            (951_782_400, "2000-02-29T00:00:00.000000005Z"),
            (951_868_799, "2000-02-29T23:59:59.000000005Z"),
            (951_868_800, "2000-03-01T00:00:00.000000005Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000005Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000005Z"),
            (1_795_562_475, "2026-11-24T23:21:15.000000005Z"),
        ] {
            let time = Timestamp::from_parts(seconds, 5);
            assert_eq!(time.rfc3339().to_string(), expected);
            assert_eq!(expected.parse(), Ok(time));
        }
    }

    #[test]
    fn offsets_and_decimals_are_read() {
        // Seconds as printed by `date -u -d ... +%s`.
        for (text, seconds, nanos) in [
            ("2026-11-20T23:41:15Z", 1_795_218_075, 0),
            ("2026-11-20t23:41:15.25z", 1_795_218_075, 250_000_000),
            ("2026-11-21 00:41:15.1234567899+01:00", 1_795_218_075, 123_456_789),
            ("2026-11-20T14:11:15-09:30", 1_795_218_075, 0),
            ("2016-12-31T23:59:60Z", 1_483_228_800, 0),
        ] {
            assert_eq!(text.parse(), Ok(Timestamp::from_parts(seconds, nanos)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "2026-11-20",
            "2026-11-20T23:41:15",
            "2026-11-20T23:41:15.Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T23:60:00Z",
            "2026-11-20T23:41:61Z",
            "2026-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-99-99T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "0000-01-01T00:00:00Z",
            "1970-01-01T00:00:00+00:01",
            "2600-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-11-20T23:41:15+0100",
            "2026-11-20T23:41:15Z ",
            "+026-11-20T23:41:15Z",
            "2026-11-2é123:41:15Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(DateError), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn each_time_is_read_as_it_was_written(nanos in proptest::prelude::any::<u64>()) {
            let time = Timestamp::from_nanos(nanos);
            proptest::prop_assert_eq!(time.rfc3339().to_string().parse(), Ok(time));
            proptest::prop_assert_eq!(Timestamp::from(SystemTime::from(time)), time);
        }
    }
}
