//! Templates, and the decoding of their data records.

use std::net::IpAddr;

use super::CollectorStats;
use super::action::{Action, OwnElements};
use super::field::{Specifier, field, len_min, unsigned};
use super::packet::{self, PacketReport};
use super::sampling::{Sampler, Sampling, SamplingElement};
use super::times::{AbsoluteUnit, DataContext, Moment, Related, TimeUnit};
use crate::base::{IpProtocol, VlanIds};
use crate::codec::{ReadError, Reader};
use crate::ipfix::{ENTERPRISE_BIT, VARIABLE_LEN, iana};
use crate::record::{Draft, FieldSet, FieldSource, FlowRecord, field_index, fill};
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

/// The kind of data that a template describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Options,
}

/// Octets that pay for templates that are compiled again, so that definitions of elements that change all the time cost
/// no more than other octets.
#[derive(Debug)]
pub(super) struct Compilations(u64);

impl Default for Compilations {
    /// Permits that the templates of a usual exporter are compiled again once.
    fn default() -> Self {
        Self(Self::FIELD_LEN * 1024)
    }
}

impl Compilations {
    /// Octets that pay for a field.
    const FIELD_LEN: u64 = 16;
    /// Octets that are saved for later at most.
    const LEN_MAX: u64 = Self::FIELD_LEN << 16;

    pub(super) fn earn(&mut self, octet_count: usize) {
        self.0 = self.0.saturating_add(octet_count as u64).min(Self::LEN_MAX);
    }

    /// Returns whether the fields may be compiled.
    pub(super) fn spend(&mut self, field_count: usize) -> bool {
        match self.0.checked_sub(Self::FIELD_LEN * field_count as u64) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

/// A template, as received, and the steps that decode its records.
#[derive(Debug)]
pub(super) struct Template {
    specifiers: Box<[Specifier]>,
    kind: Kind,
    /// In a box, because most templates of a flood are never used.
    steps: Option<Box<Steps>>,
    /// Revision of the own elements for which the steps were compiled.
    revision: u32,
}

impl Template {
    /// Parses the field specifiers of a template.
    pub(super) fn parse(reader: &mut Reader<'_>, field_count: u16, is_ipfix: bool) -> Option<Self> {
        // Each specifier has at least four octets, so that the count cannot cause an allocation beyond the message.
        if reader.remaining_len() / 4 < field_count.into() {
            return None;
        }
        let mut specifiers = Vec::with_capacity(field_count.into());
        for _ in 0..field_count {
            let id = reader.be::<u16>().ok()?;
            let len = reader.be::<u16>().ok()?;
            let is_enterprise = is_ipfix && id & ENTERPRISE_BIT != 0;
            let enterprise_number = if is_enterprise { reader.be::<u32>().ok()? } else { 0 };
            let id = if is_enterprise { id & !ENTERPRISE_BIT } else { id };
            specifiers.push(Specifier { enterprise_number, id, len });
        }
        Some(Self { specifiers: specifiers.into(), kind: Kind::Data, steps: None, revision: 0 })
    }

    /// Returns the template as one of options records.
    pub(super) fn into_options(self) -> Self {
        Self { kind: Kind::Options, ..self }
    }

    /// Returns the template as one of options records of NetFlow version 9. Its scope fields are not information
    /// elements; that of an interface corresponds to one (RFC 3954 section 6.1).
    pub(super) fn into_netflow9_options(mut self, scope_field_count: usize) -> Self {
        const INTERFACE: u16 = 2;
        for scope in self.specifiers.iter_mut().take(scope_field_count) {
            scope.id = if scope.id == INTERFACE { iana::INGRESS_INTERFACE } else { 0 };
        }
        self.into_options()
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether each record has at least one octet, so that a set contains a bounded number of records.
    pub(super) fn is_valid(&self) -> bool {
        self.len_min() > 0
    }

    /// Returns whether the template was received before.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.specifiers == other.specifiers
    }

    /// Returns the memory of the template in bytes beside the template itself, including the steps that are compiled
    /// later.
    pub(super) const fn heap_bytes(&self) -> usize {
        let field_bytes = size_of::<Specifier>() + size_of::<(Action, Location)>();
        size_of::<Steps>() + self.specifiers.len() * field_bytes
    }

    /// Returns whether the records contain a section of a packet.
    pub(super) fn has_packets(&self) -> bool {
        self.specifiers.iter().any(packet::is_section)
    }

    /// Decodes a data record with a section of a packet.
    pub(super) fn decode_packet<'a>(&self, reader: &mut Reader<'a>) -> Result<PacketReport<'a>, ReadError> {
        PacketReport::decode(reader, &self.specifiers)
    }

    /// Returns the minimum length of a record in octets.
    pub(super) fn len_min(&self) -> usize {
        self.specifiers.iter().map(|specifier| len_min(specifier.len)).sum()
    }

    /// Returns the steps that decode a data record. They are compiled again if the meaning of elements has changed and
    /// the compilation is permitted; otherwise the elements keep the meaning that they had before.
    pub(super) fn steps(&mut self, own_elements: &OwnElements, compilations: &mut Compilations) -> &Steps {
        let is_outdated = self.revision != own_elements.revision();
        if is_outdated && self.steps.is_some() && compilations.spend(self.specifiers.len()) {
            self.steps = None;
        }
        if self.steps.is_none() {
            self.revision = own_elements.revision();
        }
        self.steps.get_or_insert_with(|| Box::new(Steps::compile(&self.specifiers, own_elements)))
    }

    /// Decodes an options record.
    pub(super) fn decode_options<'a>(&self, reader: &mut Reader<'a>) -> Result<OptionsValues<'a>, ReadError> {
        let (mut enterprise_number, mut id, mut name) = (None, None, None);
        let (mut init_time_ms, mut interface, mut sampling) = (None, None, Sampling::default());
        for specifier in &self.specifiers {
            let octets = field(reader, specifier.len)?;
            if specifier.enterprise_number != 0 {
                continue;
            }
            match specifier.id {
                iana::PRIVATE_ENTERPRISE_NUMBER => enterprise_number = unsigned(octets),
                iana::INFORMATION_ELEMENT_ID => id = unsigned(octets),
                iana::INFORMATION_ELEMENT_NAME => name = std::str::from_utf8(octets).ok(),
                iana::SYSTEM_INIT_TIME_MILLISECONDS => init_time_ms = unsigned(octets),
                iana::INGRESS_INTERFACE => interface = unsigned(octets),
                id => {
                    if let Some(element) = SamplingElement::of_id(id) {
                        sampling.set(element, octets);
                    }
                }
            }
        }
        let own_element = enterprise_number.zip(id).zip(name).and_then(|((enterprise_number, id), name)| {
            let id = u16::try_from(id).ok()? & !ENTERPRISE_BIT;
            Some((u32::try_from(enterprise_number).ok()?, id, name))
        });
        let sampler = sampling.interval().map(|interval| (sampling.sampler(interface), interval));
        Ok(OptionsValues { own_element, init_time_ms, sampler })
    }
}

/// Values of an options record that a collector uses.
pub(super) struct OptionsValues<'a> {
    /// Enterprise number, identifier and name of an element that a type record describes.
    pub(super) own_element: Option<(u32, u16, &'a str)>,
    pub(super) init_time_ms: Option<u64>,
    /// A sampler, and the number of packets of which it samples one.
    pub(super) sampler: Option<(Sampler, u32)>,
}

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
    fn compile(specifiers: &[Specifier], own_elements: &OwnElements) -> Self {
        let mut actions: Vec<_> =
            specifiers.iter().map(|specifier| Action::new(*specifier, own_elements)).collect();
        Action::remove_redundant(&mut actions, specifiers);
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
                | Action::Mac(index, _) => Some(index),
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
        }
    }

    /// Returns the minimum length of a record in octets.
    pub(super) const fn len_min(&self) -> usize {
        self.len_min
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
        *draft = Draft::new();
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
        finish_icmp(draft, self.derivation.has_icmp_in_port);
        draft.record.known = match absent {
            FieldSet::EMPTY => self.known,
            absent => self.derivation.complete(self.sent.difference(absent)),
        };
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
