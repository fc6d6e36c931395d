//! Literals of conditions, and their comparison with values.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::time::Duration;

use flowgauge::row::{Type, Value};
use flowgauge::{IpProtocol, Timestamp};

use crate::quantity::{parse_duration, parse_size};

/// A literal, as all that it may mean: the type of the value decides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Number(f64, Option<i128>),
    Text(Text),
}

/// A text in quotes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) text: String,
    size: Option<u64>,
    duration: Option<Duration>,
    time: Option<Timestamp>,
    network: Option<(IpAddr, u8)>,
    /// Texts that differ in the case of ASCII letters only are equal.
    ignores_case: bool,
}

/// Parses a network, such as `10.0.0.0/8`, or an address.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => (address.parse::<IpAddr>().ok()?, Some(len.parse::<u8>().ok()?)),
        None => (text.parse().ok()?, None),
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let len = len.unwrap_or(bits);
    (len <= bits).then_some((address, len))
}

/// Returns the bits of an address, from the highest on.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Parses a date, or a date and time, in UTC.
fn time(text: &str) -> Option<Timestamp> {
    let whole = if text.len() == "2026-11-26".len() { &format!("{text}T00:00:00Z") } else { text };
    let time = humantime::parse_rfc3339_weak(whole).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(time.as_nanos()).ok().map(Timestamp::from_nanos)
}

impl Literal {
    pub(crate) fn text(text: String) -> Self {
        Self::Text(Text {
            size: parse_size(&text).ok().or_else(|| text.parse().ok()),
            duration: parse_duration(&text).ok(),
            time: time(&text),
            network: network(&text),
            ignores_case: false,
            text,
        })
    }

    /// Lets a text equal those that differ in the case of ASCII letters only.
    pub(crate) const fn ignore_case(&mut self) {
        if let Self::Text(text) = self {
            text.ignores_case = true;
        }
    }

    pub(crate) fn number(text: &str) -> Option<Self> {
        Some(Self::Number(text.parse().ok()?, text.parse().ok()))
    }

    /// Returns whether this is a text.
    pub(crate) fn is_text(&self, text: &str) -> bool {
        matches!(self, Self::Text(own) if own.text == text)
    }

    /// Replaces the name of an IP protocol by its number.
    pub(crate) fn name_protocol(&mut self) {
        let Self::Text(text) = self else { return };
        // The name in the table of flows.
        let name = if text.text.eq_ignore_ascii_case("icmp6") { "ipv6-icmp" } else { &text.text };
        let number = (0..=u8::MAX).find(|number| IpProtocol(*number).to_string().eq_ignore_ascii_case(name));
        if let Some(number) = number {
            *self = Self::Number(number.into(), Some(number.into()));
        }
    }

    /// Returns the negative of a number.
    pub(crate) fn negative(self) -> Option<Self> {
        match self {
            Self::Number(number, whole) => Some(Self::Number(-number, whole.map(|whole| -whole))),
            _ => None,
        }
    }

    /// Returns what values of a type are compared with, if this literal is none of these.
    pub(crate) fn misfit(&self, column_type: Type) -> Option<&'static str> {
        let is_number = matches!(self, Self::Number(..));
        let text = if let Self::Text(text) = self { Some(text) } else { None };
        let (fits, expected) = match column_type {
            _ if *self == Self::Null => (true, ""),
            Type::Bool => (matches!(self, Self::Bool(_)), "true or false"),
            Type::Unsigned(_) | Type::Signed(_) | Type::Float => (
                is_number || text.is_some_and(|text| text.size.is_some()),
                "a number, or a text such as '1MiB'",
            ),
            Type::Timestamp => (
                is_number || text.is_some_and(|text| text.time.is_some()),
                "seconds since 1970, or a text such as '2026-11-26T12:00:00Z'",
            ),
            Type::Duration => (
                is_number || text.is_some_and(|text| text.duration.is_some()),
                "seconds, or a text such as '10ms'",
            ),
            Type::Address => (
                text.is_some_and(|text| text.network.is_some()),
                "an address or network, such as '10.0.0.0/8'",
            ),
            Type::List(item) => return self.misfit(item.column_type),
            Type::Group(_) => (false, "NULL, because it is a group; name one of its columns"),
            // Names may be numbers, such as versions.
            _ => (text.is_some() || is_number, "a text"),
        };
        (!fits).then_some(expected)
    }
}

/// Returns a value as a number: times in seconds. `None` if it is absent, or of another type.
#[must_use]
pub fn number(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Unsigned(number) => *number as f64,
        Value::Signed(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Timestamp(time) => time.as_nanos() as f64 / 1e9,
        Value::Duration(duration) => duration.as_secs_f64(),
        _ => return None,
    })
}

/// Compares a value with a literal; `None` if there is no value, or nothing to compare.
pub(crate) fn compare(value: &Value, literal: &Literal) -> Option<Ordering> {
    match (value, literal) {
        (Value::Bool(value), Literal::Bool(literal)) => Some(value.cmp(literal)),
        (Value::Unsigned(value), Literal::Number(_, Some(whole))) => Some(i128::from(*value).cmp(whole)),
        (Value::Signed(value), Literal::Number(_, Some(whole))) => Some(i128::from(*value).cmp(whole)),
        (Value::Unsigned(value), Literal::Text(text)) => Some(value.cmp(&text.size?)),
        (Value::Signed(value), Literal::Text(text)) => Some(i128::from(*value).cmp(&text.size?.into())),
        (Value::Float(value), Literal::Text(text)) => value.partial_cmp(&(text.size? as f64)),
        (Value::Timestamp(value), Literal::Text(text)) => Some(value.cmp(&text.time?)),
        (Value::Duration(value), Literal::Text(text)) => Some(value.cmp(&text.duration?)),
        (Value::Address(value), Literal::Text(text)) => {
            let (address, len) = text.network?;
            let shift = 128 - u32::from(len);
            let prefix = |address| bits(address).checked_shr(shift).unwrap_or_default();
            let families = value.is_ipv6().cmp(&address.is_ipv6());
            Some(families.then_with(|| prefix(*value).cmp(&prefix(address))))
        }
        (value, Literal::Number(literal, _)) => match number(value) {
            Some(number) => number.partial_cmp(literal),
            None => Some(text_of(value)?.parse::<f64>().ok()?.total_cmp(literal)),
        },
        (Value::Mac(_) | Value::Octets(_), Literal::Text(text)) => {
            Some(text_of(value)?.cmp(&text.text.to_ascii_lowercase()))
        }
        // Names are of a closed set, none of which differ in case only.
        (Value::Name(name), Literal::Text(text)) => Some(compare_without_case(name, &text.text)),
        (value, Literal::Text(text)) if text.ignores_case => {
            Some(compare_without_case(&text_of(value)?, &text.text))
        }
        (value, Literal::Text(text)) => Some(text_of(value)?.as_str().cmp(text.text.as_str())),
        _ => None,
    }
}

/// Compares texts without regard to the case of ASCII letters.
fn compare_without_case(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|text| text.bytes().map(|octet| octet.to_ascii_lowercase()));
    one.cmp(other)
}

/// Returns a name, text, MAC address or octets as text.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Name(_) | Value::Text(_) | Value::Mac(_) | Value::Octets(_) | Value::Address(_) => {
            Some(value.to_string())
        }
        _ => None,
    }
}

/// Compares two values; `None` if one is absent, or their types cannot be compared.
#[must_use]
pub fn compare_values(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Unsigned(left), Value::Unsigned(right)) => Some(left.cmp(right)),
        (Value::Address(left), Value::Address(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Signed(left), Value::Signed(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => Some(text_of(left)?.cmp(&text_of(right)?)),
        },
    }
}
