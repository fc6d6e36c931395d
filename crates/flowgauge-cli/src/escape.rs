//! Escaping of untrusted text for terminals and log readers.
//!
//! Control characters of ASCII and of ISO 6429 (U+0080 to U+009F) are commands to a terminal, and bidirectional
//! controls display a line in an order different from its content. All of them are written as `\u` and four hexadecimal
//! digits, as in JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character is a control of the terminal, of the line, or of text direction.
const fn is_control(letter: char) -> bool {
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

/// Returns whether all octets of a UTF-8 text are printable ASCII. A text with other octets may or may not contain a
/// control. Reads them to the end, so that the loop has no branches and uses vectors.
fn is_plain(octets: &[u8]) -> bool {
    octets.iter().fold(true, |is_plain, octet| is_plain & (0x20..0x7f).contains(octet))
}

/// Appends a character as an escape sequence of JSON: `\n`, `\r`, `\t`, or `\u` and four hexadecimal digits.
fn push_escape(out: &mut String, letter: char) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

/// Returns the text with its control characters escaped, including line ends.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) || !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_control(letter) {
            push_escape(&mut out, letter);
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// Appends a text with all characters escaped that are not printable and thus have no defined width.
pub(crate) fn push_printable(out: &mut String, text: &str) {
    for letter in text.chars() {
        let is_quote = matches!(letter, '"' | '\'' | '\\');
        if is_quote || (!is_control(letter) && letter.escape_debug().eq([letter])) {
            out.push(letter);
        } else {
            push_escape(out, letter);
        }
    }
}

/// Returns the text of a JSON object with its control characters escaped, or `None` if it is anything else than one JSON
/// object.
///
/// A control below U+0020 occurs in JSON only as space between tokens, and becomes a space; all others occur only in
/// strings, and become escape sequences.
#[cfg(feature = "bus")]
pub(crate) fn json_object(text: &str) -> Option<Cow<'_, str>> {
    let is_object = text.trim_ascii_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !is_object {
        return None;
    }
    if is_plain(text.as_bytes()) || !text.contains(is_control) {
        return Some(Cow::Borrowed(text));
    }
    Some(Cow::Owned(self::text(&text.replace(['\t', '\r', '\n'], " ")).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every control character, and the characters next to each range of them.
    #[test]
    fn controls_are_escaped_and_letters_are_not() {
        let controls = (0..0x20).chain(0x7f..0xa0).chain([0x61c, 0x200e, 0x200f]);
        for code in controls.chain(0x2028..0x202f).chain(0x2066..0x206a) {
            let letter = char::from_u32(code).unwrap();
            let escaped = match letter {
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                _ => format!("\\u{code:04x}"),
            };
            assert_eq!(text(&format!("a{letter}ü")), format!("a{escaped}ü"));
            let mut out = String::new();
            push_printable(&mut out, &letter.to_string());
            assert_eq!(out, escaped);
        }
        for plain in
            ["a b~", "\u{a0}ü", "\u{61b}\u{61d}", "\u{200d}", "\u{2027}\u{2030}", "\u{2065}", "שלום", "👍"]
        {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn characters_without_width_are_escaped_in_a_table() {
        let mut out = String::new();
        push_printable(&mut out, "a\"'\\ü\u{200b}\u{e0001}👍");
        assert_eq!(out, "a\"'\\ü\\u200b\\udb40\\udc01👍");
    }

    #[cfg(feature = "bus")]
    #[test]
    fn only_objects_pass_and_remain_the_same_value() {
        let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        for text in [
            "{}",
            " {\"a\":\t[1,\r\n{\"b\":null}]} ",
            "{\"\u{9b}31m\": \"\u{7f}\u{202e}\u{2028}\", \"a\": \"\\u001b\\\\\"}",
        ] {
            let escaped = json_object(text).unwrap();
            assert!(!escaped.contains(is_control), "{text:?}");
            assert_eq!(parsed(&escaped), parsed(text));
        }
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(json_object(&nested).is_some_and(|text| text == nested), "no recursion");
        for text in ["", "1", "\"{}\"", "[{}]", "{", "{}{}", "{\"a\":\"\u{1b}\"}", "\u{1b}[31m", "{} x"] {
            assert_eq!(json_object(text), None);
        }
    }
}
