//! State of an observation domain, and the sets of its messages.

use std::collections::HashMap;

use ahash::RandomState;

use super::CollectorStats;
use super::action::OwnElements;
use super::sequence::Sequence;
use super::template::{Kind, OptionsValues, Template};
use super::times::{BootTime, DataContext};
use crate::base::Timestamp;
use crate::codec::Reader;
use crate::codec::ipfix::{OPTIONS_TEMPLATE_SET_ID, SET_HEADER_LEN, TEMPLATE_ID_MIN, TEMPLATE_SET_ID};
use crate::record::{Draft, FlowRecord};

/// Set identifiers of templates and options templates in NetFlow version 9 (RFC 3954 sections 5.2 and 6.1).
const NETFLOW9_TEMPLATE_SET_ID: u16 = 0;
const NETFLOW9_OPTIONS_TEMPLATE_SET_ID: u16 = 1;

/// State of an observation domain.
#[derive(Debug, Default)]
pub(super) struct Domain {
    templates: HashMap<u16, Template, RandomState>,
    template_bytes: usize,
    own_elements: OwnElements,
    /// Time at which the exporter was started, from an options record (systemInitTimeMilliseconds, IPFIX 160).
    init_time_ms: Option<u64>,
    pub(super) sequence: Sequence,
    /// Whether a flow record was decoded.
    pub(super) has_records: bool,
}

impl Domain {
    /// Returns the memory of the templates in bytes.
    pub(super) const fn template_bytes(&self) -> usize {
        self.template_bytes
    }

    /// Removes all templates, and returns their number.
    pub(super) fn clear_templates(&mut self) -> u64 {
        let count = self.templates.len() as u64;
        self.templates = HashMap::default();
        self.template_bytes = 0;
        count
    }

    fn insert(&mut self, id: u16, template: Template) {
        self.remove(id);
        self.template_bytes += template.bytes();
        self.templates.insert(id, template);
    }

    fn remove(&mut self, id: u16) {
        let removed = self.templates.remove(&id);
        self.template_bytes -= removed.map_or(0, |template| template.bytes());
    }

    fn remove_kind(&mut self, kind: Kind) {
        let bytes = &mut self.template_bytes;
        self.templates.retain(|_, template| {
            let is_kept = template.kind() != kind;
            *bytes -= if is_kept { 0 } else { template.bytes() };
            is_kept
        });
    }
}

/// Decoder of the sets of one message.
pub(super) struct Sets<'d> {
    pub(super) domain: &'d mut Domain,
    pub(super) stats: &'d mut CollectorStats,
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
    pub(super) fn decode(&mut self, mut message: Reader<'_>, emit: &mut impl FnMut(&FlowRecord)) -> Counted {
        let mut counted = Counted { record_count: Some(0), is_well_formed: true };
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
                (TEMPLATE_SET_ID, 0) => self.domain.remove_kind(Kind::Data),
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
                (OPTIONS_TEMPLATE_SET_ID, 0) => self.domain.remove_kind(Kind::Options),
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
        self.stats.template_count += 1;
        if id < TEMPLATE_ID_MIN || !template.is_valid() {
            self.stats.refused_template_count += 1;
            self.domain.remove(id);
        } else if self.domain.templates.get(&id).is_none_or(|known| !known.is_same(&template)) {
            self.domain.insert(id, template);
        }
    }

    /// Decodes a set of data records; returns `None` if it is malformed.
    fn data(
        &mut self,
        id: u16,
        mut set: Reader<'_>,
        counted: &mut Counted,
        emit: &mut impl FnMut(&FlowRecord),
    ) -> Option<()> {
        let domain = &mut *self.domain;
        let Some(template) = domain.templates.get_mut(&id) else {
            self.stats.unknown_template_set_count += 1;
            counted.record_count = None;
            return Some(());
        };
        let mut record_count = 0;
        let mut outcome = Some(());
        match template.kind() {
            Kind::Data => {
                let steps = template.steps(&domain.own_elements);
                if !steps.has_addresses() {
                    let skipped = steps.skip(&mut set);
                    record_count = skipped.unwrap_or_default();
                    self.stats.unkeyed_record_count += u64::from(record_count);
                    counted.record_count = counted.record_count.map(|count| count.wrapping_add(record_count));
                    return skipped.ok().map(drop);
                }
                let context = DataContext {
                    export_time: self.export_time,
                    boot_time: self.boot_time,
                    init_time_ms: domain.init_time_ms,
                };
                let mut draft = Draft::new();
                while set.remaining_len() >= steps.len_min() {
                    let Ok(record) = steps.decode(&mut set, &mut draft, &context, self.stats) else {
                        outcome = None;
                        break;
                    };
                    record_count += 1;
                    match record {
                        Some(record) => {
                            self.stats.record_count += 1;
                            emit(record);
                        }
                        None => self.stats.unkeyed_record_count += 1,
                    }
                }
            }
            Kind::Options => {
                while set.remaining_len() >= template.len_min() {
                    let Ok(OptionsValues { own_element, init_time_ms }) = template.decode_options(&mut set)
                    else {
                        outcome = None;
                        break;
                    };
                    record_count += 1;
                    self.stats.options_record_count += 1;
                    if let Some((enterprise_number, id, name)) = own_element {
                        domain.own_elements.define(enterprise_number, id, name);
                    }
                    domain.init_time_ms = init_time_ms.or(domain.init_time_ms);
                }
            }
        }
        counted.record_count = counted.record_count.map(|count| count.wrapping_add(record_count));
        outcome
    }
}
