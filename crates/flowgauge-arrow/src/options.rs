//! Options of batches and files.

use flowgauge::export::Selection;

/// How batches look, and how large they are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The columns, in their order; all if `None`.
    pub selection: Option<Selection>,
    /// Name of the table in the metadata of the schema.
    pub table: Option<&'static str>,
    /// The type of addresses and MAC addresses.
    pub addresses: Addresses,
    /// The type of durations.
    pub durations: Durations,
    /// The type of names of closed sets.
    pub names: Names,
    /// True if columns that describe credentials are included.
    pub has_sensitive: bool,
    /// Maximum number of rows in a batch, and in a row group of Parquet.
    pub row_count_max: usize,
    /// Approximate maximum number of octets of a batch in memory, at least one row.
    pub octet_count_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selection: None,
            table: None,
            addresses: Addresses::default(),
            durations: Durations::default(),
            names: Names::default(),
            has_sensitive: false,
            row_count_max: 122_880,
            octet_count_max: 64 << 20,
        }
    }
}

impl Options {
    /// Sets the columns and their order.
    #[must_use]
    pub fn selection(self, selection: Option<Selection>) -> Self {
        Self { selection, ..self }
    }

    /// Sets the name of the table.
    #[must_use]
    pub fn table(self, name: &'static str) -> Self {
        Self { table: Some(name), ..self }
    }

    /// Sets the type of addresses.
    #[must_use]
    pub fn addresses(self, addresses: Addresses) -> Self {
        Self { addresses, ..self }
    }

    /// Sets the type of durations.
    #[must_use]
    pub fn durations(self, durations: Durations) -> Self {
        Self { durations, ..self }
    }

    /// Sets the type of names of closed sets.
    #[must_use]
    pub fn names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Includes columns that describe credentials.
    #[must_use]
    pub fn has_sensitive(self, has_sensitive: bool) -> Self {
        Self { has_sensitive, ..self }
    }

    /// Sets the maximum size of a batch in rows and, approximately, in octets.
    #[must_use]
    pub fn limits(self, row_count_max: usize, octet_count_max: usize) -> Self {
        Self { row_count_max, octet_count_max, ..self }
    }
}

/// The Arrow type of addresses and MAC addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// 16 octets, IPv4 addresses mapped to IPv6 (RFC 4291 section 2.5.5.2), and 6 octets: constant width, and sorted as
    /// addresses are.
    #[default]
    Octets,
    /// Text (RFC 5952), and hexadecimal digits with colons.
    Text,
}

/// The Arrow type of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durations {
    /// `Duration(ns)`.
    #[default]
    Durations,
    /// `Int64` with the unit `ns`, for programs that do not know durations.
    Integers,
}

/// The Arrow type of names of closed sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Names {
    /// `Dictionary(Int32, Utf8)`: each name once.
    #[default]
    Dictionary,
    /// `Utf8`, for engines that pass batches with different dictionaries between processes.
    Text,
}
