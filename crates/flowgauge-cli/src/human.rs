//! Formatting of numbers and times for people.

use flowgauge::Timestamp;
pub(crate) use flowgauge_summary::text::plural;

/// Formats the time of day in UTC, such as `23:41:15.123`.
pub(crate) fn time_of_day(timestamp: Timestamp) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(timestamp.as_nanos());
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.get(11..23).unwrap_or_default().to_owned()
}

/// Formats a rate per second, to be followed by a unit: `7 `, `1.95 k`, `12.20 M`, `3.20 G`.
pub(crate) fn rate(per_second: f64) -> String {
    let (factor, prefix) = match per_second {
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e3.. => (1e3, "k"),
        _ => return format!("{per_second:.0} "),
    };
    format!("{:.2} {prefix}", per_second / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_prefix_that_fits() {
        for (per_second, text) in
            [(0.0, "0 "), (7.8, "8 "), (1950.0, "1.95 k"), (1.22e7, "12.20 M"), (3.2e9, "3.20 G")]
        {
            assert_eq!(rate(per_second), text);
        }
    }
}
