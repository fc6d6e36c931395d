//! Values of rows, for programs that need single ones.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::column::Column;
use super::column_set::ColumnSet;
use super::visitor::{Members, Visitor};
use crate::base::Timestamp;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value: it does not apply to the row, or is not known.
    Null,
    /// True or false.
    Bool(bool),
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A length of time.
    Duration(Duration),
    /// An IPv4 or IPv6 address.
    Address(IpAddr),
    /// A MAC address.
    Mac([u8; 6]),
    /// One of a set of names.
    Name(&'static str),
    /// A text.
    Text(String),
    /// Octets.
    Octets(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// The columns of a row inside of the row, and their values.
    Group(Vec<(&'static Column, Self)>),
}

impl fmt::Display for Value {
    /// Formats the value as text: nothing for null, times in nanoseconds, octets as hexadecimal digits, items of a list
    /// separated by `;`, and the values of a group by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Bool(value) => value.fmt(f),
            Self::Unsigned(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Timestamp(time) => time.as_nanos().fmt(f),
            Self::Duration(duration) => duration.as_nanos().fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::Mac([a, b, c, d, e, g]) => write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"),
            Self::Name(name) => f.pad(name),
            Self::Text(text) => f.pad(text),
            Self::Octets(octets) => octets.iter().try_for_each(|octet| write!(f, "{octet:02x}")),
            Self::List(items) => separated(f, items.iter(), ";"),
            Self::Group(members) => {
                let known = members.iter().map(|(_, value)| value).filter(|value| **value != Self::Null);
                separated(f, known, " ")
            }
        }
    }
}

fn separated<'v>(
    f: &mut fmt::Formatter<'_>,
    values: impl Iterator<Item = &'v Value>,
    separator: &str,
) -> fmt::Result {
    for (index, value) in values.enumerate() {
        f.write_str(if index > 0 { separator } else { "" })?;
        fmt::Display::fmt(value, f)?;
    }
    Ok(())
}

#[cfg(feature = "serde")]
impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Timestamp(time) => serializer.serialize_u64(time.as_nanos()),
            Self::Duration(duration) => serializer.serialize_u64(crate::base::duration_nanos(*duration)),
            Self::Address(address) => address.serialize(serializer),
            Self::Name(name) => serializer.serialize_str(name),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Mac(_) | Self::Octets(_) => serializer.collect_str(self),
            Self::List(items) => serializer.collect_seq(items),
            Self::Group(members) => {
                serializer.collect_map(members.iter().map(|(column, value)| (column.name, value)))
            }
        }
    }
}

/// Which columns a [`Picker`] keeps.
enum Wanted<'s> {
    /// The one that follows after this number of others.
    One(usize),
    /// Those of a set, and null for the others. The number is the index of the next column.
    Set(&'s ColumnSet, usize),
    /// All, inside of a list or group.
    All,
}

/// Visitor that keeps the values of some columns, and all values inside of these.
pub(super) struct Picker<'s> {
    wanted: Wanted<'s>,
    picked: Vec<(Option<&'static Column>, Value)>,
}

impl<'s> Picker<'s> {
    pub(super) const fn new(index: usize) -> Self {
        Self { wanted: Wanted::One(index), picked: Vec::new() }
    }

    pub(super) const fn of_set(set: &'s ColumnSet) -> Self {
        Self { wanted: Wanted::Set(set, 0), picked: Vec::new() }
    }

    pub(super) fn into_value(self) -> Value {
        self.into_values().into_iter().next().unwrap_or(Value::Null)
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.picked.into_iter().map(|(_, value)| value).collect()
    }

    fn put(&mut self, column: &'static Column, value: Value) {
        self.picked.push((Some(column), value));
    }

    /// Returns the values that `visit` passes to this visitor.
    fn nested(&mut self, visit: Members<'_>) -> Vec<(Option<&'static Column>, Value)> {
        let wanted = std::mem::replace(&mut self.wanted, Wanted::All);
        let picked = std::mem::take(&mut self.picked);
        visit(self);
        self.wanted = wanted;
        std::mem::replace(&mut self.picked, picked)
    }
}

impl Visitor for Picker<'_> {
    #[inline]
    fn wants(&mut self, _: &'static Column) -> bool {
        match &mut self.wanted {
            Wanted::One(before) => {
                let is_wanted = *before == 0;
                *before = before.wrapping_sub(1);
                is_wanted
            }
            Wanted::Set(set, next) => {
                let is_wanted = set.contains(*next);
                *next += 1;
                if !is_wanted {
                    self.picked.push((None, Value::Null));
                }
                is_wanted
            }
            Wanted::All => true,
        }
    }

    fn null(&mut self, column: &'static Column) {
        self.put(column, Value::Null);
    }

    fn unsigned(&mut self, column: &'static Column, value: u64) {
        self.put(column, Value::Unsigned(value));
    }

    fn float(&mut self, column: &'static Column, value: f64) {
        self.put(column, Value::Float(value));
    }

    fn text(&mut self, column: &'static Column, value: &str) {
        self.put(column, Value::Text(value.to_owned()));
    }

    fn list(&mut self, column: &'static Column, items: Members<'_>) {
        let items = self.nested(items).into_iter().map(|(_, value)| value).collect();
        self.put(column, Value::List(items));
    }

    fn group(&mut self, column: &'static Column, members: Members<'_>) {
        let members = self.nested(members).into_iter();
        self.put(
            column,
            Value::Group(members.filter_map(|(column, value)| Some((column?, value))).collect()),
        );
    }

    fn bool(&mut self, column: &'static Column, value: bool) {
        self.put(column, Value::Bool(value));
    }

    fn signed(&mut self, column: &'static Column, value: i64) {
        self.put(column, Value::Signed(value));
    }

    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        self.put(column, Value::Timestamp(value));
    }

    fn duration(&mut self, column: &'static Column, nanoseconds: u64) {
        self.put(column, Value::Duration(Duration::from_nanos(nanoseconds)));
    }

    fn address(&mut self, column: &'static Column, value: IpAddr) {
        self.put(column, Value::Address(value));
    }

    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        self.put(column, Value::Mac(value));
    }

    fn name(&mut self, column: &'static Column, value: &'static str) {
        self.put(column, Value::Name(value));
    }

    fn octets(&mut self, column: &'static Column, value: &[u8]) {
        self.put(column, Value::Octets(value.to_owned()));
    }
}
