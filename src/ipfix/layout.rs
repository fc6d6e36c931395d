//! Layouts of data records, and the visitor that writes a record.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use super::element::{Element, TimePrecision};
use super::{NTP_TO_UNIX_SECONDS, SET_HEADER_LEN, TEMPLATE_SET_ID, UNKNOWN_APPLICATION, iana};
use crate::base::{EndReason, NANOS_PER_SECOND, Timestamp};
use crate::codec::{Buffer, Fixed, Prefix, WriteError, Writer};
use crate::record::{EncapsulationRecord, FieldSet, FlowDirection, FlowRecord, SideRecord};
use crate::row::{Column, ColumnSide, InformationElement, Members, Table as _, Type, Visitor};

/// The part of the schema that an exporter sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    /// Enterprise number of the elements that this crate defines; without it, they are not sent.
    pub(super) enterprise_number: Option<u32>,
    pub(super) precision: TimePrecision,
    pub(super) is_uniflow: bool,
}

impl Selection {
    #[inline(always)]
    fn contains(self, column: &Column) -> bool {
        match column.ipfix {
            None => false,
            // A uniflow has the direction of its record instead.
            Some(InformationElement::Iana(iana::FLOW_DIRECTION)) => !self.is_uniflow,
            // The MAC address of the responder is the destination address of a uniflow.
            Some(InformationElement::Iana(_)) => true,
            Some(InformationElement::Reverse(_)) => !self.is_uniflow,
            Some(InformationElement::Own(_)) => {
                self.enterprise_number.is_some() && !(self.is_uniflow && column.side == ColumnSide::Reverse)
            }
        }
    }
}

/// The fields of a data record, and which forms they have. Records with equal layouts have the same template.
///
/// Compared for each record; the highest bits of the set are no fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layout(FieldSet);

const _: () = assert!(
    FlowRecord::COLUMNS.len() <= Layout::IS_POST_NAT_DESTINATION_IPV6,
    "bits for the forms of fields"
);

impl Layout {
    const IS_IPV6: usize = 127;
    /// Both directions have an inner VLAN id, which may be 0.
    const CUSTOMER_VLAN_IDS: usize = 126;
    const IS_EXPORTER_IPV6: usize = 125;
    const IS_POST_NAT_SOURCE_IPV6: usize = 124;
    const IS_POST_NAT_DESTINATION_IPV6: usize = 123;

    #[inline(always)]
    const fn with(self, bit: usize) -> Self {
        Self(self.0.with(bit))
    }

    /// Returns the bit for the version of IP of an address that may differ from that of the flow.
    #[inline(always)]
    const fn version_bit(column: &Column) -> Option<usize> {
        match column.ipfix {
            Some(InformationElement::Iana(iana::EXPORTER_IPV4_ADDRESS)) => Some(Self::IS_EXPORTER_IPV6),
            Some(InformationElement::Iana(iana::POST_NAT_SOURCE_IPV4_ADDRESS)) => {
                Some(Self::IS_POST_NAT_SOURCE_IPV6)
            }
            Some(InformationElement::Iana(iana::POST_NAT_DESTINATION_IPV4_ADDRESS)) => {
                Some(Self::IS_POST_NAT_DESTINATION_IPV6)
            }
            _ => None,
        }
    }

    fn elements(self, selection: Selection) -> impl Iterator<Item = Element> {
        let enterprise_number = selection.enterprise_number.unwrap_or_default();
        let columns =
            FlowRecord::COLUMNS.iter().enumerate().filter(move |(index, _)| self.0.contains(*index));
        let elements = columns.flat_map(move |(_, column)| {
            let is_ipv6 = self.0.contains(Self::version_bit(column).unwrap_or(Self::IS_IPV6));
            let element = Element::of_column(column, enterprise_number, is_ipv6, selection.precision);
            let is_reverse = column.side == ColumnSide::Reverse;
            let has_customer = is_vlan_ids(column) && self.0.contains(Self::CUSTOMER_VLAN_IDS);
            let customer = has_customer.then(|| Element::customer_vlan_id(is_reverse));
            element.into_iter().chain(customer)
        });
        elements.chain(selection.is_uniflow.then_some(Element::iana(iana::FLOW_DIRECTION, 1)))
    }

    /// Writes a set with the template of the layout (RFC 7011 section 3.4.1).
    pub(super) fn write_template<B: Buffer>(
        self,
        writer: &mut Writer<B>,
        template_id: u16,
        selection: Selection,
    ) -> Result<(), WriteError> {
        let start = writer.len();
        writer.be(TEMPLATE_SET_ID)?;
        let set_len = writer.reserve::<u16>()?;
        writer.be(template_id)?;
        let field_count = writer.reserve::<u16>()?;
        let mut count = 0;
        for element in self.elements(selection) {
            element.write(writer)?;
            count += 1;
        }
        writer.fill(field_count, count);
        let len = writer.len() - start;
        debug_assert!(len > SET_HEADER_LEN);
        writer.fill(set_len, u16::try_from(len).unwrap_or(u16::MAX));
        Ok(())
    }
}

/// Writes a data record to `buffer`. Returns its layout and its length in octets; an error if it does not fit the
/// buffer. Linear in the number of fields; allocates nothing.
#[inline]
pub(super) fn write_record(
    buffer: &mut [u8],
    record: &FlowRecord,
    selection: Selection,
    direction: FlowDirection,
) -> Result<(Layout, usize), WriteError> {
    let layout = Layout(FieldSet::EMPTY);
    let layout = if record.key.is_ipv6() { layout.with(Layout::IS_IPV6) } else { layout };
    let has_inner = |side: &SideRecord| side.vlan_ids.iter().nth(1).is_some();
    let has_vlan_ids = !(record.forward.vlan_ids.is_empty() && record.reverse.vlan_ids.is_empty());
    let layout = if has_vlan_ids && (has_inner(&record.forward) || has_inner(&record.reverse)) {
        layout.with(Layout::CUSTOMER_VLAN_IDS)
    } else {
        layout
    };
    let mut fields = Fields { writer: Writer::new(buffer), record, layout, selection, outcome: Ok(()) };
    record.visit_present(&mut fields);
    fields.outcome?;
    if selection.is_uniflow {
        fields.writer.be(direction as u8)?;
    }
    Ok((fields.layout, fields.writer.len()))
}

/// Returns whether the values of a column are VLAN ids.
const fn is_vlan_ids(column: &Column) -> bool {
    matches!(column.column_type, Type::List(item) if matches!(item.column_type, Type::Unsigned(16)))
}

/// Visitor that writes the columns that a record has, and records the layout.
struct Fields<'b, 'r> {
    writer: Writer<Fixed<'b>>,
    record: &'r FlowRecord,
    layout: Layout,
    selection: Selection,
    outcome: Result<(), WriteError>,
}

impl Fields<'_, '_> {
    /// Adds a column to the layout. Its index follows from its address, which is known when the code is compiled.
    #[inline(always)]
    fn add(&mut self, column: &'static Column, outcome: Result<(), WriteError>) {
        let offset = std::ptr::from_ref(column).addr() - FlowRecord::COLUMNS.as_ptr().addr();
        self.layout = self.layout.with(offset / size_of::<Column>());
        if let Err(error) = outcome {
            self.outcome = Err(error);
        }
    }

    #[inline(always)]
    fn side(&self, column: &'static Column) -> &SideRecord {
        if column.side == ColumnSide::Reverse { &self.record.reverse } else { &self.record.forward }
    }
}

impl Visitor for Fields<'_, '_> {
    #[inline(always)]
    fn wants(&mut self, column: &'static Column) -> bool {
        self.selection.contains(column)
    }

    #[inline(always)]
    fn null(&mut self, column: &'static Column) {
        // applicationName is in all templates, so that an unidentified application needs no template of its own.
        if matches!(column.ipfix, Some(InformationElement::Iana(iana::APPLICATION_NAME))) {
            let outcome = self.writer.prefixed(Prefix::Ipfix, UNKNOWN_APPLICATION);
            self.add(column, outcome);
        }
    }

    #[inline(always)]
    fn unsigned(&mut self, column: &'static Column, value: u64) {
        let writer = &mut self.writer;
        let outcome = match column.column_type {
            // The values have the width of their column.
            Type::Unsigned(8) => writer.be(value as u8),
            Type::Unsigned(16) => writer.be(value as u16),
            Type::Unsigned(32) => writer.be(value as u32),
            _ => writer.be(value),
        };
        self.add(column, outcome);
    }

    fn float(&mut self, column: &'static Column, value: f64) {
        let outcome = self.writer.be(value.to_bits());
        self.add(column, outcome);
    }

    #[inline(always)]
    fn timestamp(&mut self, column: &'static Column, value: Timestamp) {
        let outcome = self.writer.be(encode_time(value.as_nanos(), self.selection.precision));
        self.add(column, outcome);
    }

    #[inline(always)]
    fn address(&mut self, column: &'static Column, value: IpAddr) {
        let outcome = match value {
            IpAddr::V4(v4) => self.writer.array(v4.octets()),
            IpAddr::V6(v6) => self.writer.array(v6.octets()),
        };
        self.add(column, outcome);
        if let Some(bit) = Layout::version_bit(column).filter(|_| value.is_ipv6()) {
            self.layout = self.layout.with(bit);
        }
    }

    #[inline(always)]
    fn mac(&mut self, column: &'static Column, value: [u8; 6]) {
        let outcome = self.writer.array(value);
        self.add(column, outcome);
    }

    #[inline(always)]
    fn name(&mut self, column: &'static Column, value: &'static str) {
        let outcome = match column.ipfix {
            Some(InformationElement::Iana(iana::FLOW_END_REASON)) => {
                self.writer.be(EndReason::from_name(value).map_or(0, |reason| reason as u8))
            }
            Some(InformationElement::Iana(iana::FLOW_DIRECTION)) => {
                self.writer.be(FlowDirection::from_name(value).map_or(0, |direction| direction as u8))
            }
            _ => self.writer.prefixed(Prefix::Ipfix, value),
        };
        self.add(column, outcome);
    }

    #[inline(always)]
    fn text(&mut self, column: &'static Column, value: &str) {
        let outcome = self.writer.prefixed(Prefix::Ipfix, value);
        self.add(column, outcome);
    }

    /// Writes VLAN ids as one or two numbers, and headers around packets as text.
    #[inline(always)]
    fn list(&mut self, column: &'static Column, _: Members<'_>) {
        let outcome = if !is_vlan_ids(column) {
            self.encapsulation(column.side)
        } else {
            let mut ids = self.side(column).vlan_ids.iter();
            let [outer, inner] = [ids.next(), ids.next()].map(Option::unwrap_or_default);
            let has_inner = self.layout.0.contains(Layout::CUSTOMER_VLAN_IDS);
            self.writer.be(outer).and_then(|()| if has_inner { self.writer.be(inner) } else { Ok(()) })
        };
        self.add(column, outcome);
    }

    /// Writes an outer flow as text.
    fn group(&mut self, column: &'static Column, _: Members<'_>) {
        let flow = self.record.encapsulation.as_deref().and_then(|part| match column.side {
            ColumnSide::Reverse => part.reverse_outer_flow.as_ref(),
            ColumnSide::Forward | ColumnSide::Shared => part.outer_flow.as_ref(),
        });
        // The text is shorter than 255 octets, so that the short form of the prefix is sufficient.
        let outcome = flow.map_or(Ok(()), |flow| display(&mut self.writer, Prefix::U8, flow));
        self.add(column, outcome);
    }
}

impl Fields<'_, '_> {
    fn encapsulation(&mut self, side: ColumnSide) -> Result<(), WriteError> {
        let part: Option<&EncapsulationRecord> = self.record.encapsulation.as_deref();
        let Some(part) = part else { return Ok(()) };
        let encapsulation = match side {
            ColumnSide::Reverse => &part.reverse_encapsulation,
            ColumnSide::Forward | ColumnSide::Shared => &part.encapsulation,
        };
        display(&mut self.writer, Prefix::Ipfix, encapsulation)
    }
}

/// Writes a value as text after its length.
#[inline]
fn display(
    writer: &mut Writer<Fixed<'_>>,
    prefix: Prefix,
    value: impl fmt::Display,
) -> Result<(), WriteError> {
    struct Text<'w, 'b>(&'w mut Writer<Fixed<'b>>, Result<(), WriteError>);
    impl fmt::Write for Text<'_, '_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.1 = self.0.bytes(text);
            self.1.map_err(|_| fmt::Error)
        }
    }
    writer.section(prefix, |writer| {
        let mut text = Text(writer, Ok(()));
        let _ = write!(text, "{value}");
        text.1
    })
}

/// Encodes a time in nanoseconds since 1970 as dateTimeNanoseconds, the NTP timestamp format (RFC 7011 section 6.1.10),
/// or as dateTimeMilliseconds (section 6.1.8). The NTP format cannot express times after 2106-02-07; they become that
/// time.
#[inline]
fn encode_time(nanos: u64, precision: TimePrecision) -> u64 {
    match precision {
        TimePrecision::Milliseconds => nanos / 1_000_000,
        TimePrecision::Nanoseconds => {
            let nanos = nanos.min(u64::from(u32::MAX) * NANOS_PER_SECOND);
            let seconds = nanos / NANOS_PER_SECOND + NTP_TO_UNIX_SECONDS;
            // Rounded up, so that the decoded number of nanoseconds, which is rounded down, is the same.
            let fraction = ((nanos % NANOS_PER_SECOND) << 32).div_ceil(NANOS_PER_SECOND);
            seconds << 32 | fraction
        }
    }
}
