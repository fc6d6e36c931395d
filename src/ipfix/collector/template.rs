//! Templates, and the options records that they describe.

use super::family::{Family, FamilyChoice};
use super::field::{Specifier, field, len_min, unsigned};
use super::own_elements::OwnElements;
use super::packet::{self, PacketReport};
use super::sampling::{SELECTOR_COUNT_MAX, Sampler, Sampling, SamplingElement, Sequence};
use super::steps::Steps;
use crate::codec::{ReadError, Reader};
use crate::ipfix::{ENTERPRISE_BIT, iana};

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
    pub(super) fn heap_bytes(&self) -> usize {
        let (steps_count, choice_bytes) =
            if Family::is_mixed(&self.specifiers) { (2, FamilyChoice::FIELD_BYTES) } else { (1, 0) };
        let field_bytes = size_of::<Specifier>() + choice_bytes + steps_count * Steps::FIELD_BYTES;
        steps_count * size_of::<Steps>() + self.specifiers.len() * field_bytes
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
        self.steps.get_or_insert_with(|| Box::new(Steps::new(&self.specifiers, own_elements)))
    }

    /// Decodes an options record.
    pub(super) fn decode_options<'a>(&self, reader: &mut Reader<'a>) -> Result<OptionsValues<'a>, ReadError> {
        let (mut enterprise_number, mut id, mut name) = (None, None, None);
        let (mut init_time_ms, mut interface, mut sampling) = (None, None, Sampling::default());
        let (mut selectors, mut selector_count) = ([0; SELECTOR_COUNT_MAX], 0);
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
                        if element == SamplingElement::Sampler {
                            let place = selectors.get_mut(selector_count);
                            place.into_iter().for_each(|place| *place = sampling.sampler.unwrap_or_default());
                            selector_count += 1;
                        }
                    }
                }
            }
        }
        let own_element = enterprise_number.zip(id).zip(name).and_then(|((enterprise_number, id), name)| {
            let id = u16::try_from(id).ok()? & !ENTERPRISE_BIT;
            Some((u32::try_from(enterprise_number).ok()?, id, name))
        });
        let sampler = sampling.interval().map(|interval| (sampling.sampler(interface), interval));
        let is_sequence = (1..=SELECTOR_COUNT_MAX).contains(&selector_count);
        let sequence = sampling.sequence.filter(|_| is_sequence);
        let sequence = sequence.map(|id| Sequence { id, selectors, selector_count });
        Ok(OptionsValues { own_element, init_time_ms, sampler, sequence })
    }
}

/// Values of an options record that a collector uses.
pub(super) struct OptionsValues<'a> {
    /// Enterprise number, identifier and name of an element that a type record describes.
    pub(super) own_element: Option<(u32, u16, &'a str)>,
    pub(super) init_time_ms: Option<u64>,
    /// A sampler, and the number of packets of which it samples one.
    pub(super) sampler: Option<(Sampler, u32)>,
    /// The selectors of a sequence.
    pub(super) sequence: Option<Sequence>,
}
