//! Random messages of an exporter.

use std::collections::BTreeMap;

use crate::cases::Random;
use crate::messages::{NetflowHeader, set};

/// Length of a field of variable length in a template (RFC 7011 section 7).
const VARIABLE_LEN: u16 = 65_535;

/// Enterprise number of reverse elements (RFC 5103 section 6.1).
const REVERSE: u32 = 29_305;

/// The smallest identifier of a template (RFC 7011 section 3.4.1).
const TEMPLATE_ID_MIN: u16 = 256;

const UNIX_SECONDS: u32 = 1_700_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Ipfix,
    Netflow9,
}

/// Permitted values of a field.
#[derive(Clone, Copy, Debug)]
enum Content {
    Any,
    /// A protocol over the given version of IP.
    IpProtocol {
        is_ipv6: bool,
    },
    TcpFlags,
    /// Milliseconds since 1970.
    Milliseconds,
    /// The NTP timestamp format, with this mask of the fraction.
    Ntp(u32),
    /// Milliseconds since the exporter was started.
    Uptime,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    /// Zero for an element of the IANA registry.
    enterprise_number: u32,
    id: u16,
    len: u16,
    content: Content,
}

#[derive(Clone, Debug)]
struct Template {
    fields: Vec<Field>,
    is_options: bool,
}

/// Generator of the messages of one exporter.
pub(super) struct Generator {
    random: Random,
    protocol: Protocol,
    uptime_ms: u32,
    /// The templates that are in use.
    templates: BTreeMap<u16, Template>,
}

impl Generator {
    pub(super) fn new(protocol: Protocol, seed: u64) -> Self {
        let mut random = Random(seed);
        let uptime_ms = random.next() as u32 >> 1;
        Self { random, protocol, uptime_ms, templates: BTreeMap::new() }
    }

    /// Returns some messages, of which the first one begins with a template.
    pub(super) fn messages(&mut self) -> Vec<Vec<u8>> {
        let count = 1 + self.below(4);
        (0..count).map(|index| self.message(index as u32)).collect()
    }

    fn message(&mut self, index: u32) -> Vec<u8> {
        let mut sets = if index == 0 { self.template_set() } else { Vec::new() };
        for _ in 0..=self.below(6) {
            let set = match self.below(10) {
                0 => self.template_set(),
                1 => self.options_template_set(),
                2 if self.protocol == Protocol::Ipfix => self.withdrawal(),
                3 => self.other_set(),
                _ => self.data_set(),
            };
            sets.extend(set);
        }
        if self.protocol == Protocol::Netflow9 {
            let (uptime_ms, record_count) = (self.uptime_ms, 1);
            let header =
                NetflowHeader { record_count, uptime_ms, unix_seconds: UNIX_SECONDS, sequence_number: index };
            return header.netflow9(&sets);
        }
        let len = 16 + sets.len() as u16;
        let numbers = [UNIX_SECONDS, index, 7].map(u32::to_be_bytes).concat();
        [&[0, 10], &len.to_be_bytes()[..], &numbers, &sets].concat()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next() % limit
    }

    /// Returns `true` once in `count` calls on average.
    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn octets(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.random.next() as u8).collect()
    }

    /// Returns an identifier that is sometimes in use already, so that templates are replaced.
    fn template_id(&mut self) -> u16 {
        TEMPLATE_ID_MIN + self.below(6) as u16
    }

    fn template_set(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        for _ in 0..=self.below(3) {
            let id = self.template_id();
            let fields = self.flow_fields();
            body.extend([id, fields.len() as u16].map(u16::to_be_bytes).concat());
            fields.iter().for_each(|field| self.write_specifier(*field, &mut body));
            self.templates.insert(id, Template { fields, is_options: false });
        }
        self.pad(&mut body, 4);
        set(if self.protocol == Protocol::Ipfix { 2 } else { 0 }, &body)
    }

    fn options_template_set(&mut self) -> Vec<u8> {
        let id = self.template_id();
        // At least one field that is no scope, because netflow_parser 1.0.6 does not accept others. RFC 7011 section
        // 3.4.2.2 requires only a scope.
        let scope_count = 1 + self.below(3) as u16;
        let option_count = 1 + self.below(3) as u16;
        let fields: Vec<_> = (0..scope_count + option_count).map(|_| self.other_field()).collect();
        let counts = match self.protocol {
            Protocol::Ipfix => [scope_count + option_count, scope_count],
            Protocol::Netflow9 => [scope_count * 4, option_count * 4],
        };
        let mut body = [id, counts[0], counts[1]].map(u16::to_be_bytes).concat();
        fields.iter().for_each(|field| self.write_specifier(*field, &mut body));
        self.templates.insert(id, Template { fields, is_options: true });
        self.pad(&mut body, 4);
        set(if self.protocol == Protocol::Ipfix { 3 } else { 1 }, &body)
    }

    /// Returns the withdrawal of a template, or of all templates (RFC 7011 section 8.1), but not of options templates,
    /// which netflow_parser does not read.
    fn withdrawal(&mut self) -> Vec<u8> {
        let mut ids = self.templates.iter().filter(|(_, template)| !template.is_options).map(|(id, _)| *id);
        let id = ids.next().filter(|_| !self.random.next().is_multiple_of(4));
        self.templates.retain(|known, template| template.is_options || id.is_some_and(|id| id != *known));
        set(2, &[id.unwrap_or(2), 0].map(u16::to_be_bytes).concat())
    }

    /// Returns a set of an unknown template, or with a reserved identifier.
    fn other_set(&mut self) -> Vec<u8> {
        let id = if self.is_one_in(2) { 1000 } else { 4 + self.below(252) as u16 };
        let len = 4 * (1 + self.below(10)) as usize;
        let body = self.octets(len);
        set(id, &body)
    }

    fn data_set(&mut self) -> Vec<u8> {
        let index = self.below(self.templates.len().max(1) as u64) as usize;
        let Some((&id, template)) = self.templates.iter().nth(index) else { return self.other_set() };
        let fields = template.fields.clone();
        let mut body = Vec::new();
        for _ in 0..=self.below(5) {
            fields.iter().for_each(|field| self.write_value(*field, &mut body));
        }
        let len_min: u16 =
            fields.iter().map(|field| if field.len == VARIABLE_LEN { 1 } else { field.len }).sum();
        self.pad(&mut body, len_min);
        set(id, &body)
    }

    /// Appends padding, which is shorter than a record (RFC 7011 section 3.3.1) and at most three octets long.
    fn pad(&mut self, body: &mut Vec<u8>, record_len_min: u16) {
        let len = self.below(record_len_min.min(4).into());
        body.extend((0..len).map(|_| 0));
    }

    /// Returns the fields of a template of flows, of which some are missing, in any order and between unknown ones.
    fn flow_fields(&mut self) -> Vec<Field> {
        let is_ipv6 = self.is_one_in(2);
        let (address_ids, address_len) = if is_ipv6 { ([27, 28], 16) } else { ([8, 12], 4) };
        let address = |id| Field { enterprise_number: 0, id, len: address_len, content: Content::Any };
        let mut fields: Vec<_> = address_ids.map(address).into();
        fields.extend(self.times());
        let is_total = self.protocol == Protocol::Ipfix && self.is_one_in(4);
        let (octet_count_id, packet_count_id) = if is_total { (85, 86) } else { (1, 2) };
        for (id, len_max, content) in [
            (octet_count_id, 8, Content::Any),
            (packet_count_id, 8, Content::Any),
            (4, 1, Content::IpProtocol { is_ipv6 }),
            (6, 2, Content::TcpFlags),
            (7, 2, Content::Any),
            (11, 2, Content::Any),
        ] {
            let has_reverse = self.protocol == Protocol::Ipfix && matches!(id, 1 | 2 | 6);
            for enterprise_number in [Some(0), has_reverse.then_some(REVERSE)].into_iter().flatten() {
                // Fewer octets than the type has are permitted (RFC 7011 section 6.2).
                let len = 1 + self.below(len_max) as u16;
                fields.push(Field { enterprise_number, id, len, content });
            }
        }
        fields.retain(|_| !self.random.next().is_multiple_of(8));
        if self.protocol == Protocol::Ipfix && self.is_one_in(4) {
            fields.extend(self.icmp(is_ipv6));
        }
        for _ in 0..self.below(4) {
            let field = self.other_field();
            fields.push(field);
        }
        if fields.is_empty() {
            fields.push(self.other_field());
        }
        let order = self.random.shuffled(fields.len());
        order.into_iter().map(|index| fields[index]).collect()
    }

    /// Returns ICMP type and code, as one element or as two.
    fn icmp(&mut self, is_ipv6: bool) -> Vec<Field> {
        let field = |id, len| Field { enterprise_number: 0, id, len, content: Content::Any };
        match (self.is_one_in(2), is_ipv6) {
            (true, false) => vec![field(32, 2)],
            (true, true) => vec![field(139, 2)],
            (false, false) => vec![field(176, 1), field(177, 1)],
            (false, true) => vec![field(178, 1), field(179, 1)],
        }
    }

    fn times(&mut self) -> Vec<Field> {
        // A collector must ignore the lowest 11 bits of the fraction in microseconds (RFC 7011 section 6.1.9), which
        // neither of the two does.
        let microseconds = Content::Ntp(!0x7ff);
        let kinds: &[(&[u16], u16, Content)] = match self.protocol {
            Protocol::Ipfix => &[
                (&[150, 151], 4, Content::Any),
                (&[152, 153], 8, Content::Milliseconds),
                (&[154, 155], 8, microseconds),
                (&[156, 157], 8, Content::Ntp(u32::MAX)),
                (&[158, 159], 4, Content::Any),
                (&[22, 21], 4, Content::Uptime),
            ],
            Protocol::Netflow9 => &[(&[22, 21], 4, Content::Uptime), (&[152, 153], 8, Content::Milliseconds)],
        };
        let (ids, len, content) = kinds[self.below(kinds.len() as u64) as usize];
        let field = |id, len, content| Field { enterprise_number: 0, id, len, content };
        let mut fields: Vec<_> = ids.iter().map(|id| field(*id, len, content)).collect();
        match content {
            Content::Uptime if self.protocol == Protocol::Ipfix => {
                fields.push(field(160, 8, Content::Milliseconds));
            }
            Content::Milliseconds if self.protocol == Protocol::Ipfix && self.is_one_in(2) => {
                // The start and a duration, in milliseconds or microseconds.
                let id = if self.is_one_in(2) { 161 } else { 162 };
                fields[1] = field(id, 4, Content::Any);
            }
            _ => {}
        }
        fields
    }

    /// Returns a field whose value is not compared, of at least four octets unless its length is variable.
    fn other_field(&mut self) -> Field {
        const NOT_COMPARED: [u16; 6] = [10, 14, 16, 17, 34, 35];
        const ENTERPRISE_NUMBERS: [u32; 6] = [9, 637, 5951, 6871, 6876, 32_473];
        let len = 4 + self.below(20) as u16;
        let (is_ipfix, content) = (self.protocol == Protocol::Ipfix, Content::Any);
        match self.below(4) {
            0 => {
                let id = NOT_COMPARED[self.below(6) as usize];
                Field { enterprise_number: 0, id, len: 4, content }
            }
            1 if is_ipfix => {
                let enterprise_number = ENTERPRISE_NUMBERS[self.below(6) as usize];
                let len = if self.is_one_in(2) { VARIABLE_LEN } else { len };
                Field { enterprise_number, id: self.below(1 << 15) as u16, len, content }
            }
            2 if is_ipfix => {
                // interfaceName and interfaceDescription.
                let id = 82 + self.below(2) as u16;
                Field { enterprise_number: 0, id, len: VARIABLE_LEN, content }
            }
            _ => {
                let id_count = if is_ipfix { 30_000 } else { 60_000 };
                Field { enterprise_number: 0, id: 2000 + self.below(id_count) as u16, len, content }
            }
        }
    }

    fn write_specifier(&self, field: Field, out: &mut Vec<u8>) {
        let Field { enterprise_number, id, len, .. } = field;
        let is_enterprise = enterprise_number != 0;
        out.extend([id | u16::from(is_enterprise) << 15, len].map(u16::to_be_bytes).concat());
        if is_enterprise {
            out.extend(enterprise_number.to_be_bytes());
        }
    }

    fn write_value(&mut self, field: Field, out: &mut Vec<u8>) {
        let random = self.random.next();
        let value = match field.content {
            Content::Any if field.len == VARIABLE_LEN => return self.write_variable(out),
            Content::Any => {
                let octets = self.octets(field.len.into());
                return out.extend(octets);
            }
            Content::IpProtocol { is_ipv6 } => ip_protocol(random, is_ipv6).into(),
            // With the bits of the data offset, which a collector ignores (RFC 9565 section 3).
            Content::TcpFlags => random,
            Content::Milliseconds => random >> 22,
            Content::Ntp(mask) => {
                let seconds = u64::from(UNIX_SECONDS) + 2_208_988_800 + random % 1_000_000;
                seconds << 32 | random >> 32 & u64::from(mask)
            }
            Content::Uptime => u64::from(self.uptime_ms).saturating_sub(random % 100_000),
        };
        out.extend(&value.to_be_bytes()[8 - usize::from(field.len)..]);
    }

    /// Writes a value of variable length. The long form of the length is permitted for all values (RFC 7011 section
    /// 7).
    fn write_variable(&mut self, out: &mut Vec<u8>) {
        let len_max = if self.is_one_in(8) { 600 } else { 40 };
        let len = 1 + self.below(len_max) as u16;
        if len < 255 && !self.is_one_in(8) {
            out.push(len as u8);
        } else {
            out.push(255);
            out.extend(len.to_be_bytes());
        }
        let octets = self.octets(len.into());
        out.extend(octets);
    }
}

/// Returns a protocol over a version of IP: a common one, or any.
pub(super) fn ip_protocol(random: u64, is_ipv6: bool) -> u8 {
    let icmp = if is_ipv6 { 58 } else { 1 };
    [icmp, 6, 17, 132, (random >> 8) as u8][(random % 5) as usize]
}
