//! Octets and times of DNS records as text.

use std::fmt::{self, Write as _};

use super::name::write_escaped;

/// Writes record data in the generic format for unknown record types (RFC 3597 section 5).
pub(super) fn write_generic(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    write!(f, "\\# {}", octets.len())?;
    if !octets.is_empty() {
        f.write_char(' ')?;
    }
    write_hex(f, octets)
}

/// Writes a character string in quotes.
pub(super) fn write_quoted(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    f.write_char('"')?;
    write_escaped(f, octets, b'"', b' ')?;
    f.write_char('"')
}

pub(super) fn write_hex(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
}

/// Writes octets in base32 with the extended hex alphabet, without padding (RFC 5155 section 3.3).
pub(super) fn write_base32(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    for group in octets.chunks(5) {
        let mut bits = 0;
        for place in 0..5 {
            bits = bits << 8 | u64::from(group.get(place).copied().unwrap_or(0));
        }
        for digit in 0..(group.len() * 8).div_ceil(5) {
            let value = (bits >> (35 - 5 * digit) & 31) as u32;
            f.write_char(char::from_digit(value, 32).unwrap_or('?').to_ascii_uppercase())?;
        }
    }
    Ok(())
}

/// Writes a time in seconds since 1970, as in RRSIG, as `YYYYMMDDHHmmSS` (RFC 4034 section 3.2) in the Gregorian
/// calendar.
pub(super) fn write_time(f: &mut fmt::Formatter<'_>, seconds: u32) -> fmt::Result {
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that a leap day is the last day of its year. March 1 of the year 0 is 719,468 days
    // before 1970. A count of 32 bits stays within the first 47 centuries.
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let year = year + 400 * era + u32::from(month >= 10);
    let month = if month < 10 { month + 3 } else { month - 9 };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    write!(f, "{year:04}{month:02}{day_of_month:02}{hour:02}{minute:02}{second:02}")
}
