//! Writers that append values as text: numbers, addresses, times, and text from the network.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv6Addr};

use super::style::TimeFormat;
use crate::base::{NANOS_PER_SECOND, Timestamp};

#[inline]
pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    // Most numbers of a record are small.
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    long_number(out, value);
}

fn long_number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub(super) fn signed(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a floating-point number in the shortest form from which the same number is read; `null` if it is not finite.
pub(super) fn float(out: &mut Vec<u8>, value: f64) {
    // Below this number, all integers are written without an exponent, and many numbers are integers.
    const PLAIN_MAX: f64 = 1e15;
    let whole = value as u64;
    if value.is_sign_positive() && value < PLAIN_MAX && whole as f64 == value {
        number(out, whole);
        out.extend_from_slice(b".0");
    } else if value.is_finite() {
        out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

pub(super) fn address(out: &mut Vec<u8>, value: IpAddr) {
    match value {
        IpAddr::V4(address) => ipv4(out, address.octets()),
        IpAddr::V6(address) => ipv6(out, address),
    }
}

fn ipv4(out: &mut Vec<u8>, [a, b, c, d]: [u8; 4]) {
    number(out, a.into());
    for octet in [b, c, d] {
        out.push(b'.');
        number(out, octet.into());
    }
}

/// Appends an IPv6 address in its canonical form (RFC 5952), as its `Display` implementation does, in a fourth of the
/// instructions.
fn ipv6(out: &mut Vec<u8>, address: Ipv6Addr) {
    let segments = address.segments();
    if let Some(mapped) = address.to_ipv4_mapped() {
        out.extend_from_slice(b"::ffff:");
        return ipv4(out, mapped.octets());
    }
    // The first of the longest runs of zeros, which has at least two.
    let (mut longest, mut run) = ((0, 1), (0, 0));
    for (index, segment) in segments.into_iter().enumerate() {
        run = if segment == 0 { (index - run.1, run.1 + 1) } else { (0, 0) };
        if run.1 > longest.1 {
            longest = run;
        }
    }
    let zeros = if longest.1 > 1 { longest.0..longest.0 + longest.1 } else { 8..8 };
    for (index, segment) in segments.into_iter().enumerate() {
        if zeros.contains(&index) {
            if index == zeros.start {
                out.extend_from_slice(b"::");
            }
            continue;
        }
        if index > 0 && index != zeros.end {
            out.push(b':');
        }
        let first = segment.leading_zeros().min(12) / 4;
        for digit in first..4 {
            out.push(DIGITS[usize::from(segment >> (12 - 4 * digit) & 0xf)]);
        }
    }
}

const DIGITS: [u8; 16] = *b"0123456789abcdef";

const fn hex(octet: u8) -> [u8; 2] {
    [DIGITS[(octet >> 4) as usize], DIGITS[(octet & 15) as usize]]
}

pub(super) fn mac(out: &mut Vec<u8>, value: [u8; 6]) {
    let mut text = [b':'; 17];
    for (pair, octet) in text.chunks_mut(3).zip(value) {
        pair.iter_mut().zip(hex(octet)).for_each(|(place, digit)| *place = digit);
    }
    out.extend_from_slice(&text);
}

pub(super) fn octets(out: &mut Vec<u8>, value: &[u8]) {
    out.extend(value.iter().flat_map(|octet| hex(*octet)));
}

/// Appends a number of nanoseconds as seconds with six decimals, rounded.
#[cfg(feature = "protocols")]
pub(super) fn micros(out: &mut Vec<u8>, nanoseconds: u64) {
    const MICROS_PER_SECOND: u64 = 1_000_000;
    let micros = nanoseconds / 1000 + u64::from(nanoseconds % 1000 >= 500);
    number(out, micros / MICROS_PER_SECOND);
    let mut decimals = [b'.'; 7];
    let mut rest = micros % MICROS_PER_SECOND;
    for place in decimals.iter_mut().skip(1).rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&decimals);
}

/// Appends a number of nanoseconds as seconds with nine decimals.
pub(super) fn seconds(out: &mut Vec<u8>, nanoseconds: u64) {
    number(out, nanoseconds / NANOS_PER_SECOND);
    let mut decimals = [b'.'; 10];
    let mut rest = nanoseconds % NANOS_PER_SECOND;
    for place in decimals.iter_mut().skip(1).rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&decimals);
}

/// Appends a point in time. `quote` surrounds a time that is not a number.
#[inline]
pub(super) fn timestamp(out: &mut Vec<u8>, value: Timestamp, format: TimeFormat, quote: &[u8]) {
    match format {
        TimeFormat::Nanoseconds => number(out, value.as_nanos()),
        TimeFormat::Unix => seconds(out, value.as_nanos()),
        TimeFormat::Rfc3339 => {
            out.extend_from_slice(quote);
            date_and_time(out, value);
            out.extend_from_slice(quote);
        }
    }
}

#[inline]
pub(super) fn duration(out: &mut Vec<u8>, nanoseconds: u64, format: TimeFormat) {
    match format {
        TimeFormat::Nanoseconds => number(out, nanoseconds),
        TimeFormat::Unix | TimeFormat::Rfc3339 => seconds(out, nanoseconds),
    }
}

/// Appends a point in time as `2026-11-20T23:41:15.123456789Z` (RFC 3339).
pub(super) fn date_and_time(out: &mut Vec<u8>, value: Timestamp) {
    out.extend_from_slice(&value.date_and_time());
}

/// Returns whether a character is a control of the terminal, of the line, or of text direction: those of ASCII and of
/// ISO 6429 (U+0080 to U+009F) are commands to a terminal, and bidirectional controls display a line in another order
/// than that of its content.
pub(super) const fn is_control(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Returns whether a text is written unchanged: printable ASCII without a quotation mark and a backslash. Reads it to
/// the end, so that the loop has no branches and uses vectors.
#[inline]
fn is_plain(octets: &[u8]) -> bool {
    octets.iter().fold(true, |is_plain, octet| {
        is_plain & (0x20..0x7f).contains(octet) & (*octet != b'"') & (*octet != b'\\')
    })
}

/// Appends text as the content of a JSON string. Controls are escaped, so that untrusted text cannot control a terminal.
#[inline]
pub(super) fn escaped(out: &mut Vec<u8>, text: &str) {
    if is_plain(text.as_bytes()) {
        return out.extend_from_slice(text.as_bytes());
    }
    escape(out, text);
}

const PLAIN: u8 = 0;
const CONTROL: u8 = 1;
const WIDE: u8 = 2;

/// For each octet: [`PLAIN`], the letter after the backslash of its escape sequence, [`CONTROL`] if it is written as
/// `\u` and four digits, or [`WIDE`] if it begins a character that may be a control.
const ESCAPES: [u8; 256] = {
    let mut escapes = [PLAIN; 256];
    let mut octet = 0;
    while octet < 256 {
        escapes[octet] = match octet as u8 {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..0x20 | 0x7f => CONTROL,
            0xc2..=0xf4 => WIDE,
            _ => PLAIN,
        };
        octet += 1;
    }
    escapes
};

fn escape(out: &mut Vec<u8>, text: &str) {
    let octets = text.as_bytes();
    let (mut start, mut index) = (0, 0);
    while let Some(octet) = octets.get(index) {
        let escape = ESCAPES[usize::from(*octet)];
        let end = match escape {
            PLAIN => {
                index += 1;
                continue;
            }
            WIDE => {
                let letter = text.get(index..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                let end = index + letter.len_utf8();
                if is_control(letter) {
                    out.extend_from_slice(octets.get(start..index).unwrap_or_default());
                    out.extend_from_slice(b"\\u");
                    self::octets(out, &(u32::from(letter) as u16).to_be_bytes());
                    start = end;
                }
                index = end;
                continue;
            }
            _ => index + 1,
        };
        out.extend_from_slice(octets.get(start..index).unwrap_or_default());
        if escape == CONTROL {
            out.extend_from_slice(b"\\u00");
            self::octets(out, &[*octet]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
        (start, index) = (end, end);
    }
    out.extend_from_slice(octets.get(start..).unwrap_or_default());
}

/// Appends what a [`Display`] implementation writes as the content of a JSON string. The parts that it writes are short,
/// so that they are checked together at the end.
pub(super) fn display(out: &mut Vec<u8>, value: impl Display) {
    struct Unescaped<'o>(&'o mut Vec<u8>);
    impl fmt::Write for Unescaped<'_> {
        #[inline]
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    let start = out.len();
    // Writing to a vector cannot fail.
    let _ = fmt::Write::write_fmt(&mut Unescaped(out), format_args!("{value}"));
    if !out.get(start..).is_none_or(is_plain) {
        escape_from(out, start);
    }
}

/// Escapes the text that begins at an index, without another buffer than a piece of it on the stack.
fn escape_from(out: &mut Vec<u8>, start: usize) {
    let end = out.len();
    let mut at = start;
    while at < end {
        let mut piece = [0; 256];
        let len = piece.len().min(end - at);
        let (Some(piece), Some(octets)) = (piece.get_mut(..len), out.get(at..at + len)) else { break };
        piece.copy_from_slice(octets);
        // A character that a piece does not hold completely begins the next one.
        let text = match std::str::from_utf8(piece) {
            Ok(text) => text,
            Err(error) => {
                std::str::from_utf8(piece.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
            }
        };
        if text.is_empty() {
            break;
        }
        at += text.len();
        escape(out, text);
    }
    out.drain(start..end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn seconds_have_nine_decimals() {
        assert_eq!(text(|out| super::seconds(out, 1_000_000_001)), "1.000000001");
        assert_eq!(text(|out| super::seconds(out, 0)), "0.000000000");
    }

    proptest::proptest! {
        #[test]
        fn floats_are_written_in_the_shortest_form(bits in proptest::prelude::any::<u64>(), whole in -1_000_000_i64..1_000_000) {
            for value in [f64::from_bits(bits), whole as f64, whole as f64 * 2e9, whole as f64 / 8.0, -0.0] {
                let mut shortest = ryu::Buffer::new();
                let expected = if value.is_finite() { shortest.format_finite(value) } else { "null" };
                proptest::prop_assert_eq!(text(|out| super::float(out, value)), expected);
            }
        }

        #[test]
        fn addresses_are_written_as_the_standard_library_does(
            segments in proptest::prelude::any::<[u16; 8]>(),
            mask in proptest::prelude::any::<u8>(),
            shift in 0_u32..16,
        ) {
            let segment = |index: usize| if mask >> index & 1 == 1 { segments[index] >> shift } else { 0 };
            let address = Ipv6Addr::from(std::array::from_fn::<u16, 8, _>(segment));
            let mapped = std::net::Ipv4Addr::from(u32::from(segments[0]) << 16 | u32::from(segments[1])).to_ipv6_mapped();
            for address in [IpAddr::V6(address), mapped.into(), mapped.to_canonical()] {
                proptest::prop_assert_eq!(text(|out| super::address(out, address)), address.to_string());
            }
        }
    }

    #[test]
    fn a_displayed_value_is_escaped_like_text() {
        struct Parts(Vec<String>);
        impl Display for Parts {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|part| f.write_str(part))
            }
        }
        let letters = ["a", "\"", "\\", "\n", "é", "\u{202e}", "\u{85}", "漢", "😀"];
        for len in [1, 2, 254, 255, 256, 257, 511, 513, 1025] {
            for first in 0..letters.len() {
                let parts: Vec<_> =
                    (0..len).map(|at| letters[(first + at) % letters.len()].to_owned()).collect();
                let whole = parts.concat();
                let before = |out: &mut Vec<u8>| out.extend_from_slice(b"\\n");
                let displayed = text(|out| {
                    before(out);
                    display(out, Parts(parts));
                });
                let expected = text(|out| {
                    before(out);
                    escaped(out, &whole);
                });
                assert_eq!(displayed, expected);
            }
        }
    }

    /// Checks every control character, and the characters next to each range of them.
    #[test]
    fn controls_are_escaped_and_letters_are_not() {
        let controls = (0..0x20).chain(0x7f..0xa0).chain([0x61c, 0x200e, 0x200f]);
        for code in controls.chain(0x2028..0x202f).chain(0x2066..0x206a) {
            let letter = char::from_u32(code).unwrap();
            let source = format!("a{letter}ü\"\\");
            let written = text(|out| escaped(out, &source));
            assert!(!written.contains(is_control), "{code:x}");
            assert!(written.starts_with("a\\") && written.ends_with("ü\\\"\\\\"), "{written}");
            assert_eq!(text(|out| display(out, &source)), written);
            #[cfg(feature = "serde")]
            assert_eq!(serde_json::from_str::<String>(&format!("\"{written}\"")).unwrap(), source);
        }
        for plain in
            ["a b~", "\u{a0}ü", "\u{61b}\u{61d}", "\u{200d}", "\u{2027}\u{2030}", "\u{2065}", "שלום", "👍"]
        {
            assert_eq!(text(|out| escaped(out, plain)), plain);
        }
    }
}
