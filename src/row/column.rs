//! Columns of tables: names, types and attributes.

use std::fmt;

/// Type of the values of a column. It follows from the Rust type of the [cell](super::Cell).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// True or false.
    Bool,
    /// An unsigned integer with the given number of bits.
    Unsigned(u8),
    /// A signed integer with the given number of bits.
    Signed(u8),
    /// A floating-point number of 64 bits.
    Float,
    /// A point in time, in nanoseconds.
    Timestamp,
    /// A length of time, in nanoseconds.
    Duration,
    /// An IPv4 or IPv6 address.
    Address,
    /// A MAC address.
    Mac,
    /// One of a set of names that this crate or a registry defines.
    Name,
    /// Text.
    Text,
    /// Octets, written as hexadecimal digits in text formats.
    Octets,
    /// A list of items, whose type and attributes are those of a column.
    List(&'static Column),
    /// A row inside of a row.
    Group(&'static [Column]),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Unsigned(bits) => write!(f, "unsigned{bits}"),
            Self::Signed(bits) => write!(f, "signed{bits}"),
            Self::Float => f.write_str("float"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Address => f.write_str("address"),
            Self::Mac => f.write_str("MAC address"),
            Self::Name => f.write_str("name"),
            Self::Text => f.write_str("text"),
            Self::Octets => f.write_str("octets"),
            Self::List(item) => write!(f, "list of {}", item.column_type),
            Self::Group(members) => {
                f.write_str("group of ")?;
                for (index, member) in members.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    f.write_str(member.name)?;
                }
                Ok(())
            }
        }
    }
}

/// Unit of a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A number without a unit, or a value that is no number.
    None,
    /// Octets.
    Octets,
    /// Packets.
    Packets,
    /// Flows.
    Flows,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

impl Unit {
    /// Returns the name of the unit; empty for [`Unit::None`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Octets => "octets",
            Self::Packets => "packets",
            Self::Flows => "flows",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
        }
    }
}

/// Direction of a biflow that a column describes (RFC 5103).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnSide {
    /// The column describes both directions together.
    Shared,
    /// The column describes the direction from the initiator to the responder.
    Forward,
    /// The column describes the direction from the responder to the initiator.
    Reverse,
}

/// Rule by which the values of a column in two rows of the same flow become one value
/// ([`FlowRecord::merge`](crate::record::FlowRecord::merge)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Merge {
    /// Two values cannot become one without the packets: means and deviations, for example. Also the rule of tables that
    /// are not merged.
    Cannot,
    /// The values are equal, because they identify the flow.
    Key,
    /// The sum, which saturates.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The value of the earlier row, or that of the later one if the earlier one has none.
    First,
    /// All flags or letters of both.
    Union,
    /// The value with the strongest evidence; that of the earlier row if both are as strong.
    Strongest,
    /// The value follows from several columns.
    Derived,
}

impl Merge {
    /// Returns the name of the rule.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cannot => "cannot",
            Self::Key => "key",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::First => "first",
            Self::Union => "union",
            Self::Strongest => "strongest",
            Self::Derived => "derived",
        }
    }
}

/// IPFIX information element (RFC 7012).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InformationElement {
    /// An element of the IANA registry, by its identifier.
    Iana(u16),
    /// The reverse of an element of the IANA registry, by the identifier of that element. Its enterprise number is
    /// 29305 (RFC 5103 section 6.1).
    Reverse(u16),
    /// An element that this crate defines, by its identifier. The exporter sets the enterprise number.
    Own(u16),
}

/// Maximum length of the beginning of a JSON entry: the longest name of a column, and the characters around it.
const KEY_LEN: usize = 48;

/// The beginning of a JSON entry: a comma, the name in quotes and a colon, then zeros. A copy of a fixed length is a few
/// instructions, where one of a variable length is a call.
#[derive(Clone, Copy, PartialEq, Eq)]
struct JsonKey {
    octets: [u8; KEY_LEN],
    /// Number of octets up to the colon.
    len: u8,
}

impl JsonKey {
    #[allow(
        clippy::indexing_slicing,
        reason = "runs when compiled, where a name that is too long is an error"
    )]
    const fn new(name: &str) -> Self {
        let parts: [&[u8]; 3] = [b",\"", name.as_bytes(), b"\":"];
        let (mut octets, mut len, mut part) = ([0; KEY_LEN], 0, 0);
        while part < parts.len() {
            let (_, rest) = octets.split_at_mut(len);
            rest.split_at_mut(parts[part].len()).0.copy_from_slice(parts[part]);
            len += parts[part].len();
            part += 1;
        }
        Self { octets, len: len as u8 }
    }
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Name of the column, at most 44 letters. In flow records, the names of the responder's columns start with
    /// `reverse_`, except for its address, port and MAC address.
    pub name: &'static str,
    /// Description of the column.
    pub description: &'static str,
    /// Type of the column's values.
    pub column_type: Type,
    /// True if a row may have no value in the column.
    pub is_nullable: bool,
    /// True if false, zero and empty lists are usual in the column, so that text formats that omit absent values also
    /// omit these.
    pub is_sparse: bool,
    /// True if the order of the items of a list has no meaning.
    pub is_set: bool,
    /// True if the column describes credentials, so that text formats write it on request only.
    pub is_sensitive: bool,
    /// Unit of the column's values.
    pub unit: Unit,
    /// Direction of the flow that the column describes.
    pub side: ColumnSide,
    /// IPFIX information element for the column; for an address, the element for IPv4 addresses; for VLAN ids, the
    /// element for the outermost one. `None` for a column that IPFIX does not have.
    pub ipfix: Option<InformationElement>,
    /// Name of the order of rows by this column, as used on the command line.
    pub sort_key: Option<&'static str>,
    /// Rule by which the values of two rows of the same flow become one.
    pub merge: Merge,
    json_key: JsonKey,
}

impl Column {
    /// Creates a column without attributes. Use [`table!`](crate::table!) instead, which takes the type from the cell.
    ///
    /// # Panics
    ///
    /// At compile time, if the name is longer than 44 octets.
    #[must_use]
    pub const fn new(
        name: &'static str,
        description: &'static str,
        column_type: Type,
        is_nullable: bool,
    ) -> Self {
        Self {
            name,
            description,
            column_type,
            is_nullable,
            is_sparse: false,
            is_set: false,
            is_sensitive: false,
            unit: Unit::None,
            side: ColumnSide::Shared,
            ipfix: None,
            sort_key: None,
            merge: Merge::Cannot,
            json_key: JsonKey::new(name),
        }
    }

    /// Returns the column of the items of a list.
    #[must_use]
    pub(super) const fn item(column_type: Type, is_nullable: bool) -> Self {
        let json_key = JsonKey { len: 1, ..JsonKey::new("") };
        Self { json_key, ..Self::new("item", "", column_type, is_nullable) }
    }

    /// Returns the octets of a JSON entry before its value, with zeros after them, and their number. The entry starts
    /// with a comma, and has no name if the column is that of the items of a list.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn json_key(&self) -> (&[u8; KEY_LEN], usize) {
        (&self.json_key.octets, self.json_key.len as usize)
    }

    // The attributes of a column in `table!` are calls of the functions below.

    /// Sets the unit to octets.
    #[doc(hidden)]
    #[must_use]
    pub const fn octets(self) -> Self {
        Self { unit: Unit::Octets, ..self }
    }

    /// Sets the unit to packets.
    #[doc(hidden)]
    #[must_use]
    pub const fn packets(self) -> Self {
        Self { unit: Unit::Packets, ..self }
    }

    /// Sets the unit to flows.
    #[doc(hidden)]
    #[must_use]
    pub const fn flows(self) -> Self {
        Self { unit: Unit::Flows, ..self }
    }

    /// Sets the unit to seconds.
    #[doc(hidden)]
    #[must_use]
    pub const fn seconds(self) -> Self {
        Self { unit: Unit::Seconds, ..self }
    }

    /// Sets the unit to milliseconds.
    #[doc(hidden)]
    #[must_use]
    pub const fn milliseconds(self) -> Self {
        Self { unit: Unit::Milliseconds, ..self }
    }

    /// Sets the side to the direction from the initiator to the responder.
    #[doc(hidden)]
    #[must_use]
    pub const fn forward(self) -> Self {
        Self { side: ColumnSide::Forward, ..self }
    }

    /// Sets the side to the direction from the responder to the initiator.
    #[doc(hidden)]
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self { side: ColumnSide::Reverse, ..self }
    }

    /// Sets the information element to one of the IANA registry.
    #[doc(hidden)]
    #[must_use]
    pub const fn iana(self, id: u16) -> Self {
        Self { ipfix: Some(InformationElement::Iana(id)), ..self }
    }

    /// Sets the information element to the reverse of one of the IANA registry.
    #[doc(hidden)]
    #[must_use]
    pub const fn reverse_of(self, id: u16) -> Self {
        Self { ipfix: Some(InformationElement::Reverse(id)), ..self }
    }

    /// Sets the information element to one that this crate defines.
    #[doc(hidden)]
    #[must_use]
    pub const fn own(self, id: u16) -> Self {
        Self { ipfix: Some(InformationElement::Own(id)), ..self }
    }

    /// Sets the name of the order by this column.
    #[doc(hidden)]
    #[must_use]
    pub const fn sort_key(self, name: &'static str) -> Self {
        Self { sort_key: Some(name), ..self }
    }

    /// Sets the rule by which values are merged.
    #[doc(hidden)]
    #[must_use]
    pub const fn merged(self, merge: Merge) -> Self {
        Self { merge, ..self }
    }

    /// Marks the column as [sensitive](Self::is_sensitive).
    #[doc(hidden)]
    #[must_use]
    pub const fn sensitive(self) -> Self {
        Self { is_sensitive: true, ..self }
    }

    /// Marks a list as a [set](Self::is_set).
    #[doc(hidden)]
    #[must_use]
    pub const fn set(self) -> Self {
        Self { is_set: true, ..self }
    }

    /// Marks the column as [sparse](Self::is_sparse).
    #[doc(hidden)]
    #[must_use]
    pub const fn sparse(self) -> Self {
        Self { is_sparse: true, ..self }
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column({:?}: {})", self.name, self.column_type)
    }
}
