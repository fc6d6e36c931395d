//! State of an observation domain, and the sets of its messages.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;

use super::Collected;
use super::own_elements::OwnElements;
use super::packet::{ObservationPoint, SampledPacket};
use super::sampling::Samplers;
use super::sequence::Sequence;
use super::shared::Shared;
use super::template::{Compilations, Kind, OptionsValues, Template};
use super::times::{BootTime, DataContext};
use crate::base::{Frame, Timestamp};
use crate::codec::Reader;
use crate::ipfix::{OPTIONS_TEMPLATE_SET_ID, SET_HEADER_LEN, TEMPLATE_ID_MIN, TEMPLATE_SET_ID};
use crate::record::ExportedRecord;

/// Set identifiers of templates and options templates in NetFlow version 9 (RFC 3954 sections 5.2 and 6.1).
const NETFLOW9_TEMPLATE_SET_ID: u16 = 0;
const NETFLOW9_OPTIONS_TEMPLATE_SET_ID: u16 = 1;

/// State of an observation domain.
#[derive(Debug, Default)]
pub(super) struct Domain {
    data: Templates,
    options: Templates,
    own_elements: OwnElements,
    /// Number of fields that may be compiled again because the meaning of elements has changed.
    compilations: Compilations,
    samplers: Samplers,
    /// Time at which the exporter was started, from an options record (systemInitTimeMilliseconds, IPFIX 160).
    init_time_ms: Option<u64>,
    pub(super) sequence: Sequence,
    /// Whether a record was decoded.
    pub(super) has_records: bool,
    /// Number of the last message, over all domains.
    pub(super) last_message: u64,
}

impl Domain {
    /// Memory in bytes that is charged for a domain without templates, with its part of the tables of all domains.
    const BYTES: usize = 1024;

    /// Returns the memory of the domain in bytes.
    pub(super) fn bytes(&self) -> usize {
        Self::BYTES + self.data.bytes() + self.options.bytes() + self.samplers.bytes()
    }

    /// Removes all templates, and returns their number.
    pub(super) fn clear_templates(&mut self) -> u64 {
        let count = self.data.map.len() + self.options.map.len();
        (self.data, self.options) = (Templates::default(), Templates::default());
        count as u64
    }

    /// Adds a template, unless the same one is known already. An identifier belongs to one template only.
    fn insert(&mut self, id: u16, template: Template) {
        let (same, other) = match template.kind() {
            Kind::Data => (&mut self.data, &mut self.options),
            Kind::Options => (&mut self.options, &mut self.data),
        };
        other.remove(id);
        same.insert(id, template);
    }

    fn remove(&mut self, id: u16) {
        self.data.remove(id);
        self.options.remove(id);
    }
}

/// The templates of one kind, and their memory.
#[derive(Debug, Default)]
struct Templates {
    map: BTreeMap<u16, Template>,
    /// Memory of the templates in bytes, without the map.
    heap_bytes: usize,
}

impl Templates {
    /// Memory of an entry of the map in bytes: its nodes are at least half full.
    const ENTRY_LEN: usize = 2 * size_of::<(u16, Template)>() + 16;

    fn bytes(&self) -> usize {
        self.heap_bytes + self.map.len() * Self::ENTRY_LEN
    }

    /// Adds a template, unless the same one is known already.
    fn insert(&mut self, id: u16, template: Template) {
        match self.map.entry(id) {
            Entry::Occupied(known) if known.get().is_same(&template) => {}
            Entry::Occupied(mut known) => {
                self.heap_bytes -= known.get().heap_bytes();
                self.heap_bytes += template.heap_bytes();
                known.insert(template);
            }
            Entry::Vacant(entry) => {
                self.heap_bytes += template.heap_bytes();
                entry.insert(template);
            }
        }
    }

    fn remove(&mut self, id: u16) {
        let removed = self.map.remove(&id);
        self.heap_bytes -= removed.map_or(0, |template| template.heap_bytes());
    }
}

/// Decoder of the sets of one message.
pub(super) struct Sets<'d> {
    pub(super) domain: &'d mut Domain,
    pub(super) shared: Shared<'d>,
    pub(super) exporter: IpAddr,
    /// Part of all records about their exporter.
    pub(super) exported: ExportedRecord,
    pub(super) domain_id: u32,
    pub(super) export_time: Timestamp,
    /// Time at which the exporter was started, for NetFlow version 9.
    pub(super) boot_time: Option<BootTime>,
    pub(super) is_ipfix: bool,
}

/// Result of decoding a message.
pub(super) struct Counted {
    /// Number of data records; `None` if a template is not known.
    pub(super) record_count: Option<u32>,
    pub(super) is_well_formed: bool,
}

impl Sets<'_> {
    pub(super) fn decode(
        &mut self,
        mut message: Reader<'_>,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Counted {
        let mut counted = Counted { record_count: Some(0), is_well_formed: true };
        self.domain.compilations.earn(message.remaining_len());
        // Fewer octets than a set header are padding, which some exporters append.
        while message.remaining_len() >= SET_HEADER_LEN {
            let set = message.be::<u16>().and_then(|id| Ok((id, message.be::<u16>()?)));
            let set = set.ok().and_then(|(id, len)| {
                let len = usize::from(len).checked_sub(SET_HEADER_LEN)?;
                Some((id, Reader::new(message.bytes(len).ok()?)))
            });
            let Some((id, set)) = set else {
                counted.is_well_formed = false;
                break;
            };
            let outcome = match (id, self.is_ipfix) {
                (TEMPLATE_SET_ID, true) | (NETFLOW9_TEMPLATE_SET_ID, false) => self.templates(set),
                (OPTIONS_TEMPLATE_SET_ID, true) => self.options_templates(set),
                (NETFLOW9_OPTIONS_TEMPLATE_SET_ID, false) => self.netflow9_options_templates(set),
                (TEMPLATE_ID_MIN.., _) => self.data(id, set, &mut counted, emit),
                // Other set identifiers are reserved; the set is skipped.
                _ => Some(()),
            };
            counted.is_well_formed &= outcome.is_some();
        }
        counted
    }

    /// Decodes a set of templates; returns `None` if it is malformed.
    fn templates(&mut self, mut set: Reader<'_>) -> Option<()> {
        // A set may be padded.
        while set.remaining_len() >= 4 {
            let id = set.be::<u16>().ok()?;
            let field_count = set.be::<u16>().ok()?;
            match (id, field_count) {
                (TEMPLATE_SET_ID, 0) => self.domain.data = Templates::default(),
                (_, 0) => self.domain.remove(id),
                _ => self.template(id, Template::parse(&mut set, field_count, self.is_ipfix)?),
            }
        }
        Some(())
    }

    fn options_templates(&mut self, mut set: Reader<'_>) -> Option<()> {
        while set.remaining_len() >= 4 {
            let id = set.be::<u16>().ok()?;
            let field_count = set.be::<u16>().ok()?;
            match (id, field_count) {
                (OPTIONS_TEMPLATE_SET_ID, 0) => self.domain.options = Templates::default(),
                (_, 0) => self.domain.remove(id),
                _ => {
                    let _scope_field_count = set.be::<u16>().ok()?;
                    self.template(id, Template::parse(&mut set, field_count, true)?.into_options());
                }
            }
        }
        Some(())
    }

    fn netflow9_options_templates(&mut self, mut set: Reader<'_>) -> Option<()> {
        const FIELD_LEN: u16 = 4;
        while set.remaining_len() >= 6 {
            let id = set.be::<u16>().ok()?;
            let [scope_len, options_len] = [set.be::<u16>().ok()?, set.be::<u16>().ok()?];
            let field_count = (scope_len / FIELD_LEN).checked_add(options_len / FIELD_LEN)?;
            let template = Template::parse(&mut set, field_count, false)?;
            self.template(id, template.into_netflow9_options((scope_len / FIELD_LEN).into()));
        }
        Some(())
    }

    fn template(&mut self, id: u16, template: Template) {
        self.shared.stats.template_count += 1;
        if id < TEMPLATE_ID_MIN || !template.is_valid() {
            self.shared.stats.refused_template_count += 1;
            self.domain.remove(id);
        } else {
            self.domain.insert(id, template);
        }
    }

    /// Decodes a set of data records; returns `None` if it is malformed.
    fn data(
        &mut self,
        id: u16,
        mut set: Reader<'_>,
        counted: &mut Counted,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> Option<()> {
        let (mut record_count, mut outcome) = (0, Some(()));
        let domain = &mut *self.domain;
        if let Some(template) = domain.options.map.get(&id) {
            while set.remaining_len() >= template.len_min() {
                let Ok(values) = template.decode_options(&mut set) else {
                    outcome = None;
                    break;
                };
                record_count += 1;
                let OptionsValues { own_element, init_time_ms, sampler, sequence } = values;
                if let Some((enterprise_number, id, name)) = own_element {
                    domain.own_elements.define(enterprise_number, id, name);
                }
                domain.init_time_ms = init_time_ms.or(domain.init_time_ms);
                if let Some((sampler, interval)) = sampler {
                    domain.samplers.define(sampler, interval);
                }
                if let Some(sequence) = sequence {
                    domain.samplers.define_sequence(sequence);
                }
            }
            self.shared.stats.options_record_count += u64::from(record_count);
        } else if let Some(template) = domain.data.map.get_mut(&id) {
            let steps = template.steps(&domain.own_elements, &mut domain.compilations);
            if !steps.has_addresses() {
                (record_count, outcome) = self.without_addresses(id, &mut set, emit);
            } else {
                let context = DataContext {
                    export_time: self.export_time,
                    boot_time: self.boot_time,
                    init_time_ms: domain.init_time_ms,
                    samplers: &domain.samplers,
                    exported: &self.exported,
                };
                let draft = &mut *self.shared.draft;
                let is_empty = self.exported == ExportedRecord::default() && !steps.has_exported();
                draft.set_exported((!is_empty).then_some(&self.exported));
                while set.remaining_len() >= steps.len_min() {
                    let Ok(record) = steps.decode(&mut set, draft, &context, self.shared.stats) else {
                        outcome = None;
                        break;
                    };
                    record_count += 1;
                    match record {
                        Some(record) => {
                            self.shared.stats.record_count += 1;
                            emit(Collected::Record(record));
                        }
                        None => self.shared.stats.unkeyed_record_count += 1,
                    }
                }
            }
        } else {
            self.shared.stats.unknown_template_set_count += 1;
            counted.record_count = None;
            return Some(());
        }
        counted.record_count = counted.record_count.map(|count| count.wrapping_add(record_count));
        outcome
    }

    /// Decodes a set of data records without addresses: emits the packets of which they contain a section, or skips
    /// them. Returns the number of records, and `None` if the set is malformed.
    fn without_addresses(
        &mut self,
        id: u16,
        set: &mut Reader<'_>,
        emit: &mut impl FnMut(Collected<'_>),
    ) -> (u32, Option<()>) {
        let Domain { data, own_elements, compilations, samplers, .. } = &mut *self.domain;
        let Some(template) = data.map.get_mut(&id) else { return (0, Some(())) };
        if !template.has_packets() {
            let skipped = template.steps(own_elements, compilations).skip(set);
            self.shared.stats.unkeyed_record_count += u64::from(skipped.unwrap_or_default());
            return (skipped.unwrap_or_default(), skipped.ok().map(drop));
        }
        let mut record_count = 0;
        while set.remaining_len() >= template.len_min() {
            let Ok(report) = template.decode_packet(set) else { return (record_count, None) };
            record_count += 1;
            let point = ObservationPoint {
                exporter: self.exporter,
                domain: self.domain_id,
                interface: report.interface,
                sampling_interval: samplers.interval(&report.sampling, report.interface),
                vlan_id: None,
            };
            match report.frame(self.export_time) {
                Some(frame) => {
                    self.shared.stats.packet_count += 1;
                    let frame = Frame { interface: point.number(self.shared.numbers), ..frame };
                    emit(Collected::Packet(SampledPacket {
                        frame,
                        point,
                        egress_interface: report.egress_interface,
                        source_as: report.source_as,
                        destination_as: report.destination_as,
                    }));
                }
                None => self.shared.stats.unsupported_packet_count += 1,
            }
        }
        (record_count, Some(()))
    }
}
