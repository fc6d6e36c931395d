//! How text formats write times and absent values.

use std::fmt;
use std::str::FromStr;

/// How times look in text formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeFormat {
    /// Integers: nanoseconds since 1970-01-01 00:00 UTC, and lengths of time in nanoseconds.
    #[default]
    Nanoseconds,
    /// Seconds since 1970-01-01 00:00 UTC, and lengths of time in seconds, each with nine decimals.
    Unix,
    /// Date and time in UTC (RFC 3339) with nine decimals, and lengths of time in seconds with nine decimals.
    Rfc3339,
}

/// How absent values look in text formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Nulls {
    /// Absent values are omitted; in csv they are empty. Values of [sparse](crate::row::Column::is_sparse) columns are
    /// omitted if they are false, zero or empty.
    #[default]
    Omit,
    /// Absent values are written as `null`.
    Null,
}

crate::base::configuration! {
    /// How text formats write times and absent values.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Style {
        /// How times look.
        pub time: TimeFormat,
        /// How absent values look.
        pub nulls: Nulls,
        /// Whether [sensitive](crate::row::Column::is_sensitive) columns are written.
        pub has_sensitive: bool,
    }
}

/// Error of a name that is not that of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    known: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name {}; the names are {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Returns the value whose name is `name`. `names` are the names of all values.
pub(super) fn by_name<T: Copy>(
    name: &str,
    names: &'static [&'static str],
    values: &[T],
) -> Result<T, UnknownName> {
    let found = names.iter().zip(values).find(|(known, _)| **known == name);
    found.map(|(_, value)| *value).ok_or_else(|| UnknownName { name: name.to_owned(), known: names })
}

impl FromStr for TimeFormat {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        by_name(name, &["ns", "unix", "rfc3339"], &[Self::Nanoseconds, Self::Unix, Self::Rfc3339])
    }
}

impl FromStr for Nulls {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        by_name(name, &["omit", "null"], &[Self::Omit, Self::Null])
    }
}
