//! The Content-Range field (RFC 9110 section 14.4).

use super::number::number;

/// The part of a representation that a body contains, by a Content-Range field (RFC 9110 section 14.4). Positions and
/// lengths are octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentRange {
    /// Position of the first octet.
    pub start: Option<u64>,
    /// Number of octets, which is known if `start` is.
    pub len: Option<u64>,
    /// Length of the complete representation.
    pub complete_len: Option<u64>,
}

crate::checkpoint::state! { struct ContentRange { start, len, complete_len } }

impl ContentRange {
    /// Returns the range of octets in the value of a field, such as `bytes 0-19/40`, `bytes 0-19/*` or `bytes */40`; one
    /// without values if it is invalid, or of another unit. Nothing is allocated.
    #[must_use]
    pub fn parse(value: &[u8]) -> Self {
        Self::try_parse(value).unwrap_or_default()
    }

    fn try_parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(5)?;
        // Some servers write an equals sign, as in the Range field.
        let rest = rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"="))?.trim_ascii();
        if !unit.eq_ignore_ascii_case(b"bytes") {
            return None;
        }
        let slash = rest.iter().position(|octet| *octet == b'/')?;
        let (range, complete) = (rest.get(..slash)?.trim_ascii(), rest.get(slash + 1..)?.trim_ascii());
        let complete_len = if complete == b"*" { None } else { Some(number(complete)?) };
        if range == b"*" {
            return Some(Self { start: None, len: None, complete_len: Some(complete_len?) });
        }
        let dash = range.iter().position(|octet| *octet == b'-')?;
        let (start, last) = (number(range.get(..dash)?)?, number(range.get(dash + 1..)?)?);
        if complete_len.is_some_and(|len| last >= len) {
            return None;
        }
        Some(Self { start: Some(start), len: Some(last.checked_sub(start)? + 1), complete_len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        let range =
            |start, len, complete_len| ContentRange { start: Some(start), len: Some(len), complete_len };
        for (value, expected) in [
            ("bytes 42-1233/1234", range(42, 1192, Some(1234))),
            ("bytes 42-1233/*", range(42, 1192, None)),
            ("bytes */1234", ContentRange { complete_len: Some(1234), ..ContentRange::default() }),
            ("Bytes 0-0/1", range(0, 1, Some(1))),
            ("bytes=0-19/40", range(0, 20, Some(40))),
        ] {
            assert_eq!(ContentRange::parse(value.as_bytes()), expected, "{value}");
        }
        for value in [
            "",
            "bytes",
            "bytes ",
            "bytes 0-19",
            "bytes */*",
            "bytes 20-19/40",
            "bytes 0-40/40",
            "bytes -19/40",
            "bytes 0-/40",
            "items 0-19/40",
            "bytes 0-18446744073709551615/*",
            "bytes 0-19/-40",
            "bytes 0-19/40/50",
        ] {
            assert_eq!(ContentRange::parse(value.as_bytes()), ContentRange::default(), "{value}");
        }
    }
}
