//! Filters of searches as texts (RFC 4515), without passwords.

use std::fmt::{self, Write as _};

use crate::codec::ber::{Value, Values};
use crate::session::Text;

/// Returns a value of an attribute, unless it is a password. Options may follow the name of the attribute (RFC 4512 section 2.5).
pub(super) fn public<'a>(attribute: &[u8], value: &'a [u8]) -> &'a [u8] {
    const PASSWORDS: [&[u8]; 4] = [b"userPassword", b"2.5.4.35", b"unicodePwd", b"1.2.840.113556.1.4.90"];
    let name = attribute.split(|octet| *octet == b';').next().unwrap_or_default();
    if PASSWORDS.iter().any(|known| known.eq_ignore_ascii_case(name)) { b"REDACTED" } else { value }
}

/// Depth of nested filters, and their length as texts, that are read.
pub(super) const FILTER_DEPTH_MAX: u32 = 32;
const FILTER_LEN_MAX: usize = 1024;

/// Appends a filter as a text (RFC 4515). Returns an error if it is malformed or too long; what was appended is its beginning.
pub(super) fn write_filter(out: &mut String, filter: Value<'_>, depth: u32) -> fmt::Result {
    if depth == 0 || out.len() > FILTER_LEN_MAX {
        return Err(fmt::Error);
    }
    let mut values = Values(filter.content);
    let mut next = || values.next().map(|value| value.content).ok_or(fmt::Error);
    match filter.tag {
        0xa0..=0xa2 => {
            out.write_str(match filter.tag {
                0xa0 => "(&",
                0xa1 => "(|",
                _ => "(!",
            })?;
            for part in values {
                write_filter(out, part, depth - 1)?;
            }
            out.write_char(')')
        }
        0xa3 | 0xa5 | 0xa6 | 0xa8 => {
            let comparison = match filter.tag {
                0xa5 => ">=",
                0xa6 => "<=",
                0xa8 => "~=",
                _ => "=",
            };
            let name = next()?;
            write!(out, "({}{comparison}", Text(name))?;
            write_value(out, public(name, next()?))?;
            out.write_char(')')
        }
        0xa4 => {
            let name = next()?;
            write!(out, "({}=", Text(name))?;
            let parts = Values(next()?);
            let mut last = 0x80;
            for (index, part) in parts.enumerate() {
                if index > 0 || part.tag != 0x80 {
                    out.write_char('*')?;
                }
                write_value(out, public(name, part.content))?;
                last = part.tag;
            }
            out.write_str(if last == 0x82 { ")" } else { "*)" })
        }
        0x87 => write!(out, "({}=*)", Text(filter.content)),
        0xa9 => {
            let part = |tag| values.clone().find(|value| value.tag == tag).map(|value| value.content);
            let (rule, kind) = (part(0x81), part(0x82));
            write!(out, "({}", Text(kind.unwrap_or_default()))?;
            if part(0x84).is_some_and(|is| is != [0]) {
                out.write_str(":dn")?;
            }
            if let Some(rule) = rule {
                write!(out, ":{}", Text(rule))?;
            }
            out.write_str(":=")?;
            write_value(out, public(kind.unwrap_or_default(), part(0x83).unwrap_or_default()))?;
            out.write_char(')')
        }
        _ => Err(fmt::Error),
    }
}

/// Appends a value of a filter, with the escapes of RFC 4515 section 3.
fn write_value(out: &mut String, value: &[u8]) -> fmt::Result {
    for chunk in value.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '(' | ')' | '*' | '\\' | '\0'..' ' | '\x7f' => write!(out, "\\{:02x}", letter as u8)?,
                letter => out.write_char(letter)?,
            }
        }
        chunk.invalid().iter().try_for_each(|octet| write!(out, "\\{octet:02x}"))?;
        if out.len() > FILTER_LEN_MAX {
            return Err(fmt::Error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ber::encoded as value;

    #[test]
    fn values_are_escaped_and_passwords_left_out() {
        let text = |octets: &[u8]| {
            let mut out = String::new();
            write_filter(&mut out, Values(octets).next().unwrap(), FILTER_DEPTH_MAX).unwrap();
            out
        };
        let equality =
            |name: &[u8], content: &[u8]| value(0xa3, &[&value(4, &[name]), &value(4, &[content])]);
        assert_eq!(text(&equality(b"NtVer", b"\x16\0*\xffa")), "(NtVer=\\16\\00\\2a\\ffa)");
        assert_eq!(text(&equality(b"USERPASSWORD;x", b"secret")), "(USERPASSWORD;x=REDACTED)");
    }

    #[test]
    fn nested_filters_are_bounded() {
        let mut filter = value(0x87, &[b"a"]);
        for _ in 0..60 {
            filter = value(0xa2, &[&filter]);
        }
        let mut out = String::new();
        let value = Values(&filter).next().unwrap();
        assert!(write_filter(&mut out, value, FILTER_DEPTH_MAX).is_err());
        assert_eq!(out, "(!".repeat(32));
    }
}
