//! Numbers and lengths of time for people, as [tables](super::FlowTable) write them.

use std::time::Duration;

/// Formats a count with a decimal prefix: `999`, `1.3k`, `434.1M`. Counts below `exact` are written in full.
#[must_use]
pub fn count(number: u64, exact: u64) -> String {
    if number < exact {
        return number.to_string();
    }
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        // 999.95 would be rounded to 1000.0.
        if value < 999.95 {
            return format!("{value:.1}{prefix}");
        }
        value /= 1000.0;
    }
    format!("{value:.1}E")
}

/// Formats a number of octets in at most six characters below an exaoctet.
#[must_use]
pub fn octets(number: u64) -> String {
    count(number, 1000)
}

/// Formats a duration in at most seven characters: `0`, `850ns`, `12.3us`, `45.6ms`, `1.234s`, `12m05s`, `3h02m`,
/// `12d03h`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let seconds = duration.as_secs();
    match nanos {
        0 => "0".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..999_950 => format!("{:.1}us", nanos as f64 / 1e3),
        999_950..999_950_000 => format!("{:.1}ms", nanos as f64 / 1e6),
        999_950_000..59_999_500_000 => format!("{:.3}s", nanos as f64 / 1e9),
        _ if seconds < 3600 => {
            let seconds = seconds.max(60);
            format!("{}m{:02}s", seconds / 60, seconds % 60)
        }
        _ if seconds < 86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let cases = [(0, "0"), (999, "999"), (1000, "1.0k"), (999_949, "999.9k"), (999_950, "1.0M")];
        for (number, text) in cases {
            assert_eq!(octets(number), text);
        }
        assert_eq!(octets(u64::MAX), "18.4E");
        assert_eq!((count(99_999, 100_000), count(100_000, 100_000)), ("99999".into(), "100.0k".into()));
    }

    #[test]
    fn durations_are_short() {
        let cases = [
            (0, "0"),
            (999, "999ns"),
            (12_340, "12.3us"),
            (999_949, "999.9us"),
            (999_950, "1.0ms"),
            (999_949_999, "999.9ms"),
            (1_000_000_000, "1.000s"),
            (59_999_499_999, "59.999s"),
            (59_999_500_000, "1m00s"),
            (3_599_999_999_999, "59m59s"),
            (86_399_000_000_000, "23h59m"),
            (u64::MAX, "213503d23h"),
        ];
        for (nanos, text) in cases {
            assert_eq!(duration(Duration::from_nanos(nanos)), text);
        }
    }
}
