//! Service parameters of DNS SVCB and HTTPS records.

use std::fmt::{self, Display as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use super::name::write_escaped;
use super::presentation::write_quoted;

/// Service parameters of a DNS SVCB or HTTPS record (RFC 9460 section 2.2). Displayed as keys and values separated by
/// spaces: `alpn="h3,h2" port=443`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceParameters<'m>(&'m [u8]);

impl<'m> ServiceParameters<'m> {
    /// Creates the service parameters from their octets; `None` if the last parameter is truncated.
    pub(super) fn read(octets: &'m [u8]) -> Option<Self> {
        let len: usize = pairs(octets).map(|(_, value)| value.len() + 4).sum();
        (len == octets.len()).then_some(Self(octets))
    }

    /// Returns whether there are no service parameters.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the service parameters: number of the key, and octets of the value.
    pub fn pairs(&self) -> impl Iterator<Item = (u16, &'m [u8])> + use<'m> {
        pairs(self.0)
    }

    /// Iterates over the protocol names for ALPN, from the service parameter `alpn`.
    pub fn alpn(&self) -> impl Iterator<Item = &'m [u8]> + use<'m> {
        strings(self.value(1).unwrap_or_default())
    }

    /// Returns the configurations of Encrypted Client Hello, from the service parameter `ech`.
    #[must_use]
    pub fn ech(&self) -> Option<&'m [u8]> {
        self.value(5)
    }

    fn value(&self, key: u16) -> Option<&'m [u8]> {
        self.pairs().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

impl fmt::Display for ServiceParameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (key, value)) in self.pairs().enumerate() {
            f.write_str(if place > 0 { " " } else { "" })?;
            write_parameter(f, key, value)?;
        }
        Ok(())
    }
}

/// Iterates over pairs of a key and a value. Each key has two octets and is followed by the value's length of two
/// octets and the value.
pub(super) fn pairs(list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> + Clone {
    let mut rest = list;
    std::iter::from_fn(move || {
        let ([key, low_key, len, low_len], after) = rest.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_be_bytes([*len, *low_len]));
        let (value, after) = after.split_at_checked(len)?;
        rest = after;
        Some((u16::from_be_bytes([*key, *low_key]), value))
    })
}

/// Returns the name of a service parameter key (RFC 9460 section 14.3).
fn key_name(key: u16) -> Option<&'static str> {
    Some(match key {
        0 => "mandatory",
        1 => "alpn",
        2 => "no-default-alpn",
        3 => "port",
        4 => "ipv4hint",
        5 => "ech",
        6 => "ipv6hint",
        7 => "dohpath",
        8 => "ohttp",
        9 => "tls-supported-groups",
        _ => return None,
    })
}

fn write_key(f: &mut fmt::Formatter<'_>, key: u16) -> fmt::Result {
    match key_name(key) {
        Some(name) => f.write_str(name),
        None => write!(f, "key{key}"),
    }
}

fn write_parameter(f: &mut fmt::Formatter<'_>, key: u16, value: &[u8]) -> fmt::Result {
    write_key(f, key)?;
    if value.is_empty() {
        return Ok(());
    }
    f.write_char('=')?;
    match key {
        0 | 9 if value.len().is_multiple_of(2) => write_list(f, value.chunks_exact(2), |f, pair| {
            let number = pair.iter().fold(0, |number, octet| number << 8 | u16::from(*octet));
            if key == 0 { write_key(f, number) } else { number.fmt(f) }
        }),
        1 => {
            f.write_char('"')?;
            write_list(f, strings(value), |f, protocol| write_escaped(f, protocol, b'"', b' '))?;
            f.write_char('"')
        }
        3 => match value {
            [high, low] => u16::from_be_bytes([*high, *low]).fmt(f),
            _ => write_quoted(f, value),
        },
        4 if value.len().is_multiple_of(4) => write_list(f, value.chunks_exact(4), |f, octets| {
            <[u8; 4]>::try_from(octets).map_or(Ok(()), |octets| Ipv4Addr::from(octets).fmt(f))
        }),
        5 => Base64Display::new(value, &STANDARD).fmt(f),
        6 if value.len().is_multiple_of(16) => write_list(f, value.chunks_exact(16), |f, octets| {
            <[u8; 16]>::try_from(octets).map_or(Ok(()), |octets| Ipv6Addr::from(octets).fmt(f))
        }),
        _ => write_quoted(f, value),
    }
}

/// Iterates over strings that are each preceded by a length of one octet; the last string may be incomplete.
fn strings(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first()?;
        let (string, after) = after.split_at_checked(usize::from(*len)).unwrap_or((after, &[]));
        rest = after;
        Some(string)
    })
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (place, item) in items.enumerate() {
        if place > 0 {
            f.write_char(',')?;
        }
        write(f, item)?;
    }
    Ok(())
}
