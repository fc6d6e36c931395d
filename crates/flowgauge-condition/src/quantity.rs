//! Sizes and durations as texts.

use std::time::Duration;

/// Parses a number of bytes with or without a unit: kB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB of 1024.
///
/// # Errors
///
/// Returns a text that states what is permitted: the size is zero, or at least 2^64 bytes, or the text is no size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
        ("", 1),
    ];
    let found = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?.trim_end(), bytes)));
    let size = found.and_then(|(digits, bytes)| digits.parse::<u64>().ok()?.checked_mul(*bytes));
    size.filter(|size| *size > 0)
        .ok_or_else(|| "must be a size greater than zero, such as 256MiB, 1GB or 1000000".to_owned())
}

/// Parses a time with a unit, such as `500us`, `30s` or `5m`.
///
/// # Errors
///
/// Returns a text that states what is permitted.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("must be a time with a unit, such as 500us, 30s or 5m: {error}"))
}
