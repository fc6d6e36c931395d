//! Information elements of the fields of the schema, as templates and type records describe them.

use super::{ENTERPRISE_BIT, REVERSE_ENTERPRISE_NUMBER, VARIABLE_LEN, iana};
use crate::codec::{Buffer, Prefix, WriteError, Writer};
use crate::record::{Field, FieldType, InformationElement, Unit};

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

    /// Returns the element of a field. `enterprise_number` is that of the elements that this crate defines.
    pub(super) fn of_field(
        field: &Field,
        enterprise_number: u32,
        is_ipv6: bool,
        precision: TimePrecision,
    ) -> Option<Self> {
        let len = DataType::of_field(field).len();
        Some(match field.ipfix? {
            InformationElement::Iana(id) => {
                let (id, len) = match (field.field_type, field.unit) {
                    (FieldType::Address, _) => address(id, is_ipv6),
                    (_, Unit::Nanoseconds) => (time(id, precision), len),
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
    /// Returns the data type of a field. A time has the length of `Unsigned64`.
    const fn of_field(field: &Field) -> Self {
        match field.field_type {
            // flowEndReason is a number in IPFIX.
            FieldType::Name if matches!(field.ipfix, Some(InformationElement::Iana(_))) => Self::Unsigned8,
            FieldType::Unsigned(8) => Self::Unsigned8,
            FieldType::Unsigned(16) | FieldType::VlanIds => Self::Unsigned16,
            FieldType::Unsigned(32) => Self::Unsigned32,
            FieldType::Unsigned(_) => Self::Unsigned64,
            FieldType::Mac => Self::MacAddress,
            FieldType::Address => Self::Ipv4Address,
            FieldType::Name | FieldType::Text | FieldType::Encapsulation => Self::String,
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
pub(super) fn own_fields() -> impl Iterator<Item = (&'static Field, u16)> {
    crate::record::FlowRecord::SCHEMA.iter().filter_map(|field| match field.ipfix {
        Some(InformationElement::Own(id)) => Some((field, id)),
        _ => None,
    })
}

/// Returns the name of the element of a field that this crate defines: the name of the field in lower camel case, as
/// RFC 7013 section 4.1 requires.
pub(super) fn own_name(field: &Field) -> impl Iterator<Item = char> + Clone {
    let letters = field.name.chars();
    let mut is_word_start = false;
    letters.filter_map(move |letter| {
        if letter == '_' {
            is_word_start = true;
            return None;
        }
        let letter = if is_word_start { letter.to_ascii_uppercase() } else { letter };
        is_word_start = false;
        Some(letter)
    })
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
    field: &Field,
) -> Result<(), WriteError> {
    writer.be(enterprise_number)?;
    writer.be(id)?;
    writer.be(DataType::of_field(field) as u8)?;
    writer.be(semantics(field))?;
    writer.be(units(field.unit))?;
    // Names are short, so that one octet is sufficient for their length.
    writer.section(Prefix::U8, |writer| own_name(field).try_for_each(|letter| writer.be(letter as u8)))
}

/// Returns the number of a field's semantics in the IANA registry "IPFIX Information Element Semantics".
const fn semantics(field: &Field) -> u8 {
    const DEFAULT: u8 = 0;
    const QUANTITY: u8 = 1;
    const DELTA_COUNTER: u8 = 3;
    const IDENTIFIER: u8 = 4;
    match (field.field_type, field.unit) {
        (FieldType::Unsigned(_), Unit::Packets | Unit::Octets | Unit::Flows) => DELTA_COUNTER,
        (FieldType::Unsigned(_), Unit::Nanoseconds) => QUANTITY,
        (FieldType::Unsigned(_), Unit::None) => IDENTIFIER,
        _ => DEFAULT,
    }
}

/// Returns the number of a unit in the IANA registry "IPFIX Information Element Units".
const fn units(unit: Unit) -> u16 {
    match unit {
        Unit::None => 0,
        Unit::Octets => 2,
        Unit::Packets => 3,
        Unit::Flows => 4,
        Unit::Nanoseconds => 8,
    }
}
