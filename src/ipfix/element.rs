//! Information elements of the fields of the schema, as templates and type records describe them.

use super::{ENTERPRISE_BIT, REVERSE_ENTERPRISE_NUMBER, VARIABLE_LEN, iana};
use crate::codec::{Buffer, Prefix, WriteError, Writer};
use crate::row::{Column, InformationElement, Table as _, Type, Unit};

/// Resolution of the times of first and last packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimePrecision {
    /// Nanoseconds (flowStartNanoseconds, flowEndNanoseconds; IPFIX 156 and 157).
    #[default]
    Nanoseconds,
    /// Milliseconds (flowStartMilliseconds, flowEndMilliseconds; IPFIX 152 and 153), for collectors that support only
    /// these.
    Milliseconds,
}

/// An information element in a template: its identifier, its enterprise number (0 for the IANA registry), and its
/// length in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    enterprise_number: u32,
    id: u16,
    len: u16,
}

impl Element {
    pub(super) const fn iana(id: u16, len: u16) -> Self {
        Self { enterprise_number: 0, id, len }
    }

    /// Writes the field specifier of the element in a template (RFC 7011 section 3.2).
    pub(super) fn write<B: Buffer>(self, writer: &mut Writer<B>) -> Result<(), WriteError> {
        let Self { enterprise_number, id, len } = self;
        if enterprise_number == 0 {
            writer.be(id)?;
            return writer.be(len);
        }
        writer.be(id | ENTERPRISE_BIT)?;
        writer.be(len)?;
        writer.be(enterprise_number)
    }

    /// Returns the element of a column. `enterprise_number` is that of the elements that this crate defines.
    pub(super) fn of_column(
        column: &Column,
        enterprise_number: u32,
        is_ipv6: bool,
        precision: TimePrecision,
    ) -> Option<Self> {
        let len = DataType::of_column(column).len();
        Some(match column.ipfix? {
            InformationElement::Iana(id) => {
                let (id, len) = match column.column_type {
                    Type::Address => address(id, is_ipv6),
                    Type::Timestamp => (time(id, precision), len),
                    _ => (id, len),
                };
                Self::iana(id, len)
            }
            InformationElement::Reverse(id) => Self { enterprise_number: REVERSE_ENTERPRISE_NUMBER, id, len },
            InformationElement::Own(id) => Self { enterprise_number, id, len },
        })
    }

    /// Returns the element for an inner VLAN id of a direction.
    pub(super) const fn customer_vlan_id(is_reverse: bool) -> Self {
        let enterprise_number = if is_reverse { REVERSE_ENTERPRISE_NUMBER } else { 0 };
        Self { enterprise_number, id: iana::DOT1Q_CUSTOMER_VLAN_ID, len: 2 }
    }
}

const fn address(ipv4_id: u16, is_ipv6: bool) -> (u16, u16) {
    // sourceIPv4Address is 8, destinationIPv4Address is 12.
    match (is_ipv6, ipv4_id) {
        (false, id) => (id, 4),
        (true, 8) => (iana::SOURCE_IPV6_ADDRESS, 16),
        (true, iana::EXPORTER_IPV4_ADDRESS) => (iana::EXPORTER_IPV6_ADDRESS, 16),
        (true, iana::POST_NAT_SOURCE_IPV4_ADDRESS) => (iana::POST_NAT_SOURCE_IPV6_ADDRESS, 16),
        (true, iana::POST_NAT_DESTINATION_IPV4_ADDRESS) => (iana::POST_NAT_DESTINATION_IPV6_ADDRESS, 16),
        (true, _) => (iana::DESTINATION_IPV6_ADDRESS, 16),
    }
}

const fn time(nanoseconds_id: u16, precision: TimePrecision) -> u16 {
    match (precision, nanoseconds_id) {
        (TimePrecision::Milliseconds, iana::FLOW_START_NANOSECONDS) => iana::FLOW_START_MILLISECONDS,
        (TimePrecision::Milliseconds, iana::FLOW_END_NANOSECONDS) => iana::FLOW_END_MILLISECONDS,
        (_, id) => id,
    }
}

/// Abstract data type of an information element, with the numbers of the IANA registry "IPFIX Information Element Data
/// Types" (RFC 5610 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum DataType {
    Unsigned8 = 1,
    Unsigned16 = 2,
    Unsigned32 = 3,
    Unsigned64 = 4,
    MacAddress = 12,
    String = 13,
    Ipv4Address = 18,
}

impl DataType {
    /// Returns the data type of a column. A time has the length of `Unsigned64`.
    const fn of_column(column: &Column) -> Self {
        match column.column_type {
            // flowEndReason and flowDirection are numbers in IPFIX.
            Type::Name if matches!(column.ipfix, Some(InformationElement::Iana(_))) => Self::Unsigned8,
            Type::Unsigned(8) => Self::Unsigned8,
            Type::Unsigned(16) => Self::Unsigned16,
            Type::Unsigned(32) => Self::Unsigned32,
            Type::Unsigned(_) | Type::Timestamp | Type::Duration => Self::Unsigned64,
            Type::Mac => Self::MacAddress,
            Type::Address => Self::Ipv4Address,
            // VLAN ids, of which the outer one has the element.
            Type::List(item) if matches!(item.column_type, Type::Unsigned(_)) => Self::Unsigned16,
            _ => Self::String,
        }
    }

    /// Returns the length of values of the type in octets.
    const fn len(self) -> u16 {
        match self {
            Self::Unsigned8 => 1,
            Self::Unsigned16 => 2,
            Self::Unsigned32 | Self::Ipv4Address => 4,
            Self::Unsigned64 => 8,
            Self::MacAddress => 6,
            Self::String => VARIABLE_LEN,
        }
    }
}

/// Returns the fields whose elements this crate defines, with the identifiers of these elements.
pub(super) fn own_columns() -> impl Iterator<Item = (&'static Column, u16)> {
    crate::record::FlowRecord::COLUMNS.iter().filter_map(|column| match column.ipfix {
        Some(InformationElement::Own(id)) => Some((column, id)),
        _ => None,
    })
}

/// Returns the name of the element of a column that this crate defines: the name of the column in lower camel case, as
/// RFC 7013 section 4.1 requires; for a length of time with the unit, as in flowStartNanoseconds.
pub(super) fn own_name(column: &Column) -> impl Iterator<Item = char> + Clone {
    let unit = if column.column_type == Type::Duration { "Nanoseconds" } else { "" };
    let mut is_word_start = false;
    let camel_case = column.name.chars().filter_map(move |letter| {
        if letter == '_' {
            is_word_start = true;
            return None;
        }
        let letter = if is_word_start { letter.to_ascii_uppercase() } else { letter };
        is_word_start = false;
        Some(letter)
    });
    camel_case.chain(unit.chars())
}

/// Elements of the options template of type records; the first two are its scope (RFC 5610 section 3.9).
pub(super) const TYPE_RECORD: [Element; 6] = [
    Element::iana(iana::PRIVATE_ENTERPRISE_NUMBER, 4),
    Element::iana(iana::INFORMATION_ELEMENT_ID, 2),
    Element::iana(iana::INFORMATION_ELEMENT_DATA_TYPE, 1),
    Element::iana(iana::INFORMATION_ELEMENT_SEMANTICS, 1),
    Element::iana(iana::INFORMATION_ELEMENT_UNITS, 2),
    Element::iana(iana::INFORMATION_ELEMENT_NAME, VARIABLE_LEN),
];

/// Number of scope fields in [`TYPE_RECORD`].
pub(super) const TYPE_RECORD_SCOPE_COUNT: u16 = 2;

/// Writes the type record of a field's element, in the order of [`TYPE_RECORD`].
pub(super) fn write_type_record<B: Buffer>(
    writer: &mut Writer<B>,
    enterprise_number: u32,
    id: u16,
    column: &Column,
) -> Result<(), WriteError> {
    writer.be(enterprise_number)?;
    writer.be(id)?;
    writer.be(DataType::of_column(column) as u8)?;
    writer.be(semantics(column))?;
    writer.be(units(column))?;
    // Names are short, so that one octet is sufficient for their length.
    writer.section(Prefix::U8, |writer| own_name(column).try_for_each(|letter| writer.be(letter as u8)))
}

/// Returns the number of a field's semantics in the IANA registry "IPFIX Information Element Semantics".
const fn semantics(column: &Column) -> u8 {
    const DEFAULT: u8 = 0;
    const QUANTITY: u8 = 1;
    const DELTA_COUNTER: u8 = 3;
    const IDENTIFIER: u8 = 4;
    match (column.column_type, column.unit) {
        (Type::Unsigned(_), Unit::Packets | Unit::Octets | Unit::Flows) => DELTA_COUNTER,
        (Type::Duration, _) => QUANTITY,
        (Type::Unsigned(_), Unit::None) => IDENTIFIER,
        _ => DEFAULT,
    }
}

/// Returns the number of the unit of a column in the IANA registry "IPFIX Information Element Units".
const fn units(column: &Column) -> u16 {
    if matches!(column.column_type, Type::Duration) {
        return 8;
    }
    match column.unit {
        Unit::None => 0,
        Unit::Octets => 2,
        Unit::Packets => 3,
        Unit::Flows => 4,
        Unit::Seconds => 5,
        Unit::Milliseconds => 6,
    }
}
