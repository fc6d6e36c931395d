//! Decoding of the data records of a template.

use std::net::IpAddr;

use super::CollectorStats;
use super::action::Action;
use super::family::{Family, FamilyChoice};
use super::field::{Specifier, field, len_min, unsigned};
use super::own_elements::OwnElements;
use super::times::{AbsoluteUnit, DataContext, Moment, Related, TimeUnit, complete_times};
use crate::base::{IpProtocol, Timestamp, VlanIds};
use crate::codec::{ReadError, Reader};
use crate::ipfix::VARIABLE_LEN;
use crate::record::{
    Draft, EXPORTED, FieldSet, FieldSource, FlowRecord, field_index, fill, has_summed_counts,
};
use crate::row::Table as _;

const PROTOCOL: usize = field_index("protocol");
const SOURCE_ADDRESS: usize = field_index("source_address");
const DESTINATION_ADDRESS: usize = field_index("destination_address");
const DESTINATION_PORT: usize = field_index("destination_port");
const START: usize = field_index("start");
const END: usize = field_index("end");
const DURATION: usize = field_index("duration");
const VLAN_IDS: usize = field_index("vlan_ids");
const REVERSE_VLAN_IDS: usize = field_index("reverse_vlan_ids");
const COMMUNITY_ID: usize = field_index("community_id");
const ICMP_TYPE: usize = field_index("icmp_type");
const ICMP_CODE: usize = field_index("icmp_code");
const SAMPLING_INTERVAL: usize = field_index("sampling_interval");

/// Decoding of one field.
#[derive(Clone, Copy, Debug)]
struct Step {
    action: Action,
    len: u16,
}

/// The steps that decode the data records of a template.
///
/// The fields in front of the first one of variable length have constant offsets. Numbers and addresses among them are
/// set in the order of the schema, by code without indirect calls.
#[derive(Debug)]
pub(super) struct Steps {
    /// Length of the fields with constant offsets.
    fixed_len: usize,
    /// Numbers and addresses with constant offsets.
    located: FieldSet,
    locations: [Location; FIELD_COUNT],
    time_units: TimeUnits,
    /// Other fields with constant offsets.
    converted: Box<[(Action, Location)]>,
    /// The first field of variable length and those behind it.
    sequential: Box<[Step]>,
    len_min: usize,
    /// Fields that the records contain.
    sent: FieldSet,
    /// These fields, and those that follow from them.
    known: FieldSet,
    derivation: Derivation,
    /// Whether a time refers to another field of the record.
    has_relative_times: bool,
    /// Whether the records lack counts of which sums are made.
    has_unknown_counts: bool,
    /// Whether the records have fields about their export.
    has_exported: bool,
    /// For a template with addresses of both versions of IP: the decision, and the steps for the other version.
    mixed: Option<Box<Mixed>>,
}

/// Decoding of a template with addresses of both versions of IP.
#[derive(Debug)]
struct Mixed {
    choice: FamilyChoice,
    /// Steps of records of IPv6.
    ipv6: Steps,
}

/// Position of a field in a record.
#[derive(Clone, Copy, Debug, Default)]
struct Location {
    offset: u32,
    len: u16,
}

const FIELD_COUNT: usize = FlowRecord::COLUMNS.len();

/// The octets of a set from a record on, and the locations of its fields in the order of the schema.
struct Record<'a> {
    octets: &'a [u8],
    locations: &'a [Location; FIELD_COUNT],
    time_units: TimeUnits,
}

/// Units of the times with constant offsets.
#[derive(Clone, Copy, Debug, Default)]
struct TimeUnits {
    start: AbsoluteUnit,
    end: AbsoluteUnit,
}

impl Record<'_> {
    #[inline(always)]
    fn location(&self, index: usize) -> Option<Location> {
        self.locations.get(index).copied()
    }

    #[inline(always)]
    fn octets(&self, location: Location) -> Option<&[u8]> {
        self.octets.get(location.offset as usize..)?.get(..location.len.into())
    }

    #[inline(always)]
    fn number(&self, location: Location) -> Option<u64> {
        match self.array(location) {
            // The octets behind the number are removed, without a branch for each length.
            Some(octets) => Some(u64::from_be_bytes(octets) >> (u64::BITS - 8 * u32::from(location.len))),
            // At the end of the set.
            None => unsigned(self.octets(location)?),
        }
    }

    #[inline(always)]
    fn array<const N: usize>(&self, location: Location) -> Option<[u8; N]> {
        self.octets.get(location.offset as usize..)?.first_chunk().copied()
    }
}

impl FieldSource for Record<'_> {
    #[inline(always)]
    fn unsigned(&self, index: usize) -> Option<u64> {
        let value = self.number(self.location(index)?)?;
        // The index of each field is known when the code is compiled.
        match index {
            START => Some(self.time_units.start.time(value).as_nanos()),
            END => Some(self.time_units.end.time(value).as_nanos()),
            _ => Some(value),
        }
    }

    #[inline(always)]
    fn vlan_ids(&self, index: usize) -> Option<VlanIds> {
        let id = self.number(self.location(index)?)?;
        Some(VlanIds::NONE.push(id as u16))
    }

    #[inline(always)]
    fn address(&self, index: usize) -> Option<IpAddr> {
        let location = self.location(index)?;
        if location.len == 4 {
            self.array::<4>(location).map(IpAddr::from)
        } else {
            self.array::<16>(location).map(IpAddr::from)
        }
    }

    #[inline(always)]
    fn mac(&self, index: usize) -> Option<[u8; 6]> {
        self.array(self.location(index)?)
    }
}

impl Steps {
    /// Memory of a field in bytes.
    pub(super) const FIELD_BYTES: usize = size_of::<(Action, Location)>();

    /// Compiles a template. Linear in the number of fields.
    pub(super) fn new(specifiers: &[Specifier], own_elements: &OwnElements) -> Self {
        if !Family::is_mixed(specifiers) {
            return Self::compile(specifiers, own_elements, Family::of_template(specifiers));
        }
        let of_family = |family| Self::compile(specifiers, own_elements, Some(family));
        let mixed = Mixed { choice: FamilyChoice::new(specifiers), ipv6: of_family(Family::Ipv6) };
        Self { mixed: Some(Box::new(mixed)), ..of_family(Family::Ipv4) }
    }

    /// Compiles a template for records of a version of IP.
    fn compile(specifiers: &[Specifier], own_elements: &OwnElements, family: Option<Family>) -> Self {
        let mut actions: Vec<_> =
            specifiers.iter().map(|specifier| Action::new(*specifier, own_elements)).collect();
        if let Some(family) = family {
            Action::remove_other_family(&mut actions, specifiers, family);
        }
        Action::remove_redundant(&mut actions, specifiers);
        Action::remove_observed(&mut actions);
        let sent = actions.iter().fold(FieldSet::EMPTY, |set, action| set.union(action.fields()));
        let derivation = Derivation {
            has_duration: actions.iter().any(|action| matches!(action, Action::Duration(_))),
            has_icmp_in_port: sent.contains(DESTINATION_PORT) && !sent.contains(ICMP_TYPE),
        };
        let has_relative_times = actions.iter().any(|action| action.is_relative());
        let fixed_count = specifiers.iter().take_while(|specifier| specifier.len != VARIABLE_LEN).count();
        let mut located = FieldSet::EMPTY;
        let mut locations = [Location::default(); FIELD_COUNT];
        let mut converted = Vec::new();
        let mut time_units = TimeUnits::default();
        let has_customer_vlan_ids = actions.iter().any(|action| matches!(action, Action::CustomerVlanId(_)));
        let mut offset = 0_u32;
        for (action, specifier) in actions.iter().zip(specifiers).take(fixed_count) {
            let location = Location { offset, len: specifier.len };
            offset += u32::from(specifier.len);
            let field = match *action {
                Action::Skip => continue,
                Action::Unsigned(index, _)
                | Action::Ipv4(index, _)
                | Action::Ipv6(index, _)
                | Action::Mac(index, _) => Some(index).filter(|index| !EXPORTED.contains(*index)),
                Action::Time(Moment::Start, TimeUnit::Absolute(unit)) => {
                    time_units.start = unit;
                    Some(START)
                }
                Action::Time(Moment::End, TimeUnit::Absolute(unit)) => {
                    time_units.end = unit;
                    Some(END)
                }
                Action::VlanId(direction) if !has_customer_vlan_ids => {
                    Some(direction.select(VLAN_IDS, REVERSE_VLAN_IDS))
                }
                _ => None,
            };
            match field.and_then(|index| Some((index, locations.get_mut(index)?))) {
                Some((index, target)) => {
                    *target = location;
                    located = located.with(index);
                }
                None => converted.push((*action, location)),
            }
        }
        let sequential = actions.iter().zip(specifiers).skip(fixed_count);
        let sequential = sequential.map(|(action, specifier)| Step { action: *action, len: specifier.len });
        Self {
            fixed_len: offset as usize,
            located,
            locations,
            time_units,
            converted: converted.into(),
            sequential: sequential.collect(),
            len_min: specifiers.iter().map(|specifier| len_min(specifier.len)).sum(),
            sent,
            known: derivation.complete(sent),
            derivation,
            has_relative_times,
            has_unknown_counts: !has_summed_counts(sent),
            has_exported: sent.intersection(EXPORTED) != FieldSet::EMPTY,
            mixed: None,
        }
    }

    /// Returns the minimum length of a record in octets.
    pub(super) const fn len_min(&self) -> usize {
        self.len_min
    }

    /// Returns whether the records have fields about their export.
    pub(super) const fn has_exported(&self) -> bool {
        self.has_exported
    }

    /// Returns whether the records have two addresses.
    pub(super) fn has_addresses(&self) -> bool {
        self.sent.contains(SOURCE_ADDRESS) && self.sent.contains(DESTINATION_ADDRESS)
    }

    /// Skips the records of a set, and returns their number. Constant time if all fields have a fixed length.
    pub(super) fn skip(&self, set: &mut Reader<'_>) -> Result<u32, ReadError> {
        let mut record_count = 0;
        if self.sequential.is_empty() {
            record_count = set.remaining_len() / self.len_min;
            set.skip(record_count * self.len_min)?;
        }
        while set.remaining_len() >= self.len_min {
            set.skip(self.fixed_len)?;
            for step in &self.sequential {
                field(set, step.len)?;
            }
            record_count += 1;
        }
        Ok(record_count as u32)
    }

    /// Decodes a data record to `draft`; `None` for a record without two addresses of one version of IP.
    #[inline]
    pub(super) fn decode<'d>(
        &self,
        reader: &mut Reader<'_>,
        draft: &'d mut Draft,
        context: &DataContext<'_>,
        stats: &mut CollectorStats,
    ) -> Result<Option<&'d FlowRecord>, ReadError> {
        let steps = match &self.mixed {
            Some(mixed) if mixed.choice.of_record(*reader) == Family::Ipv6 => &mixed.ipv6,
            _ => self,
        };
        steps.decode_record(reader, draft, context, stats)
    }

    #[inline]
    fn decode_record<'d>(
        &self,
        reader: &mut Reader<'_>,
        draft: &'d mut Draft,
        context: &DataContext<'_>,
        stats: &mut CollectorStats,
    ) -> Result<Option<&'d FlowRecord>, ReadError> {
        draft.restart();
        if self.has_exported {
            *draft.exported() = *context.exported;
        }
        let mut related = Related::default();
        // A copy, which stays in registers.
        let mut next = *reader;
        next.skip(self.fixed_len)?;
        let record =
            Record { octets: reader.rest(), locations: &self.locations, time_units: self.time_units };
        let mut absent = fill(draft, self.located, &record);
        stats.invalid_value_count += u64::from(absent.count());
        let mut convert = |action: &Action, octets: &[u8]| {
            if action.apply(octets, draft, &mut related, context).is_none() {
                absent = absent.union(action.fields());
                stats.invalid_value_count += 1;
            }
        };
        for (action, location) in &self.converted {
            convert(action, record.octets(*location).unwrap_or_default());
        }
        for step in &self.sequential {
            convert(&step.action, field(&mut next, step.len)?);
        }
        *reader = next;
        if self.has_relative_times {
            absent = absent.union(related.times.resolve(draft, context));
        }
        if draft.record.end < draft.record.start || draft.record.start == Timestamp::ZERO {
            let invalid =
                complete_times(&mut draft.record, self.sent.difference(absent), context.export_time);
            stats.invalid_value_count += u64::from(invalid.count());
            absent = absent.union(invalid);
        }
        finish_icmp(draft, self.derivation.has_icmp_in_port);
        if absent == FieldSet::EMPTY {
            draft.record.known = self.known;
            if self.has_unknown_counts {
                draft.record.complete_counts();
            }
        } else {
            draft.record.known = self.derivation.complete(self.sent.difference(absent));
            draft.record.complete_counts();
        }
        if let interval @ Some(_) = context.samplers.interval(&related.sampling, draft.record.interface) {
            draft.record.sampling_interval = interval;
            draft.record.known = draft.record.known.with(SAMPLING_INTERVAL);
        }
        let versions = [draft.source.0, draft.destination.0].map(|address| address.map(|ip| ip.is_ipv6()));
        Ok(if versions[0] == versions[1] { draft.finish().ok() } else { None })
    }
}

/// How the fields that a template does not contain follow from others.
#[derive(Clone, Copy, Debug)]
struct Derivation {
    has_duration: bool,
    /// Whether ICMP type and code are in the destination port.
    has_icmp_in_port: bool,
}

impl Derivation {
    /// Returns the known fields, and those that follow from them.
    fn complete(self, mut known: FieldSet) -> FieldSet {
        if self.has_duration && known.contains(START) {
            known = known.with(END);
        }
        known = known.union(EXPORTED);
        if known.contains(START) && known.contains(END) {
            known = known.with(DURATION);
        }
        if known.contains(PROTOCOL) {
            known = known.with(COMMUNITY_ID);
        }
        if self.has_icmp_in_port && known.contains(DESTINATION_PORT) {
            known = known.with(ICMP_TYPE).with(ICMP_CODE);
        }
        known
    }
}

/// Sets type and code of an ICMP record, and removes them from others: a template has the same elements for all
/// protocols.
#[inline]
pub(super) fn finish_icmp(draft: &mut Draft, is_in_port: bool) {
    if !matches!(draft.protocol, IpProtocol::ICMP | IpProtocol::ICMPV6) {
        draft.record.icmp = None;
    } else if is_in_port {
        draft.record.icmp = draft.destination.1.map(|port| port.to_be_bytes().into());
    }
}
