//! SNMP, versions 1, 2c and 3: a row for each request with its response, for each trap, and for each flow.
//!
//! | row | when |
//! |---|---|
//! | [`Exchange`] | a request with its response, matched by the identifier that the response repeats; a trap, at once |
//! | [`Conversation`] | the end of a flow: numbers of variables, description of the system |
//!
//! Of messages of version 3 that are encrypted, only the head is read. A response may follow after a report with which the
//! engines agree on their time. Values of variables are not kept, but for the description of the system.
//!
//! Standards: RFC 1157, RFC 1901, RFC 3416, RFC 3412, RFC 3414.

use std::net::IpAddr;
use std::time::Duration;

use super::recognizers::octets::datagram_in_role;
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::codec::ber::{self, Oid, Value, Values, tag};
use crate::row::{Displayed, List};
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{
    Kept, KeptItem, KeptList, KeptOid, Malformed, Measured, PduParser, Reply, Rows, exchange, names, open,
};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, Text, Verdict};

/// Protocol `snmp`: recognized by a message with a matching length and a known version, then a community or the header sequence
/// of version 3.
pub static PROTOCOL: Protocol = Protocol::new("snmp")
    .in_zeek("snmp")
    .in_eve("snmp")
    .over_datagrams(&[161, 162], Some(probe))
    .datagrams_begin_with(OctetSet::of(b"\x30"))
    .with_kinds(&["snmp", "snmp_conversation"])
    .with_limits("32 open requests; 512 octets of identifiers of variables, communities of 64 octets")
    .with_standards("RFC 1157, 1901, 3412, 3414, 3416");

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let Some((0x30, header_len, len)) = ber::header(opening.bytes) else { return Verdict::No };
    let fits = header_len.saturating_add(len) == opening.len;
    match opening.bytes.get(header_len..) {
        Some([2, 1, 0..=2, 4, community_len, rest @ ..]) => {
            let pdu = rest.get(usize::from(*community_len));
            let is_match = pdu.is_some_and(|tag| (0xA0..=0xA8).contains(tag))
                || (pdu.is_none() && opening.bytes.len() < opening.len);
            // A response, or a report.
            let is_answer = pdu.map(|tag| matches!(tag, 0xA2 | 0xA8));
            datagram_in_role(opening, fits && is_match, is_answer)
        }
        Some([2, 1, 3, 0x30, ..]) => Verdict::of(fits),
        _ => Verdict::No,
    }
}

/// Identifier of the description of a system, `sysDescr.0`.
const DESCRIPTION: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 1, 0];
/// Identifier of the time since the start of a system, `sysUpTime.0`.
const UP_TIME: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 3, 0];
/// Identifier of the identifier of a trap, `snmpTrapOID.0`.
const TRAP_OID: &[u8] = &[0x2b, 6, 1, 6, 3, 1, 1, 4, 1, 0];

names! {
    /// Version of a message, by its number.
    pub struct Version: u8 { 0 => "1", 1 => "2c", 2 => "2u", 3 => "3" }
}

names! {
    /// Kind of a message, by the tag of its PDU (RFC 3416 section 3).
    pub struct Kind: u8 {
        0xa0 => "get_request", 0xa1 => "get_next_request", 0xa2 => "response", 0xa3 => "set_request", 0xa4 => "trap_v1",
        0xa5 => "get_bulk_request", 0xa6 => "inform_request", 0xa7 => "trap_v2", 0xa8 => "report",
    }
}

impl Kind {
    const RESPONSE: Self = Self(0xa2);
    const TRAP_V1: Self = Self(0xa4);
    const INFORM: Self = Self(0xa6);
    const TRAP_V2: Self = Self(0xa7);
    const REPORT: Self = Self(0xa8);
}

names! {
    /// Status of a response (RFC 3416 section 3).
    pub struct Status: u8 {
        0 => "no_error", 1 => "too_big", 2 => "no_such_name", 3 => "bad_value", 4 => "read_only", 5 => "gen_err",
        6 => "no_access", 7 => "wrong_type", 8 => "wrong_length", 9 => "wrong_encoding", 10 => "wrong_value",
        11 => "no_creation", 12 => "inconsistent_value", 13 => "resource_unavailable", 14 => "commit_failed",
        15 => "undo_failed", 16 => "authorization_error", 17 => "not_writable", 18 => "inconsistent_name",
    }
}

names! {
    /// Security of a message of version 3 (RFC 3412 section 6.4).
    pub struct Security: u8 { 0 => "none", 1 => "authenticated", 3 => "encrypted" }
}

names! {
    /// Kind of a trap of version 1 (RFC 1157 section 4.1.6).
    pub struct Trap: u8 {
        0 => "cold_start", 1 => "warm_start", 2 => "link_down", 3 => "link_up", 4 => "authentication_failure",
        5 => "egp_neighbor_loss", 6 => "enterprise_specific",
    }
}

exchange! {
    /// A request with its response, or a trap.
    "snmp" pub struct Exchange {
        /// Version.
        pub version: Version,
        /// Community of versions 1 and 2c, which serves as a password.
        pub community: Option<Kept<64>>,
        /// User of version 3.
        pub user_name: Option<Kept<32>>,
        /// Engine that has authority over the message, in version 3.
        pub engine_id: Option<EngineId>,
        /// Security of version 3.
        pub security: Option<Security>,
        /// Kind of the request; null if it was not captured, or is encrypted.
        pub request_kind: Option<Kind>,
        /// Kind of the response.
        pub response_kind: Option<Kind>,
        /// Number by which the response is matched: of the request, in version 3 that in the head of the message. Negative
        /// ones have 2^32 added.
        pub identifier: u32,
        /// Identifiers of the variables of the request, in at most 512 octets.
        pub oids: KeptList<512> [sparse],
        /// Identifiers of the variables of the response, in at most 512 octets.
        pub response_oids: KeptList<512> [sparse],
        /// Number of variables of the request.
        pub variable_count: u32,
        /// Number of variables of the response.
        pub response_variable_count: u32,
        /// Status of the response.
        pub error_status: Option<Status>,
        /// Kind of a trap of version 1.
        pub trap: Option<Trap>,
        /// Identifier of a trap, or of the enterprise in version 1.
        pub trap_oid: Option<KeptOid<64>>,
        /// Address of the agent in a trap of version 1.
        pub agent_address: Option<IpAddr>,
    }
    /// Messages of SNMP.
    eve "snmp" ['a] as (row, from) {
        /// 1, 2, or 3.
        "version": u8 = if row.version.0 == 0 { 1 } else { row.version.0.max(2) };
        /// `request_kind` or `response_kind`; `encrypted`.
        "pdu_type": Displayed<String> = Displayed(row.kind(from));
        /// `error_status`, unless it is `no_error`, in responses.
        "error": Option<Status> = row.error_status.filter(|status| status.0 != 0 && from == Role::Server);
        /// `trap`.
        "trap_type": Option<Trap> = row.trap;
        /// `trap_oid`.
        "trap_oid": Option<Displayed<String>> = row.trap_oid.as_ref().map(|oid| Displayed(oid.to_string()));
        /// `agent_address`.
        "trap_address": Option<IpAddr> = row.agent_address;
        /// `oids` or `response_oids`.
        "vars": Option<List<Vec<KeptItem<'a>>>> = row.listed(from);
        /// `community`.
        "community": Option<Text<'a>> = row.community.as_ref().map(Kept::text);
        /// `user_name`.
        "usm": Option<Text<'a>> = row.user_name.as_ref().map(Kept::text);
    }
}

impl Exchange {
    fn kind(&self, from: Role) -> String {
        let kind = if from == self.exchange.from { self.request_kind } else { self.response_kind };
        kind.map_or_else(|| "encrypted".to_owned(), |kind| kind.to_string())
    }

    fn listed(&self, from: Role) -> Option<List<Vec<KeptItem<'_>>>> {
        let oids = if from == self.exchange.from { &self.oids } else { &self.response_oids };
        (!oids.is_empty()).then(|| List(oids.iter().collect()))
    }
}

/// Octets that identify an engine of version 3, displayed as hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineId {
    octets: Kept<32>,
}

impl std::fmt::Display for EngineId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.octets.text().0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

crate::row::cells! { displayed EngineId; }

state! { struct EngineId { octets } }

impl Measured for EngineId {
    fn heap_len(&self) -> usize {
        self.octets.heap_len()
    }
}

exchange! {
    /// What the messages of a flow have in common.
    "snmp_conversation" pub struct Conversation {
        /// Version of the first message.
        pub version: Version,
        /// Community of the first message that has one.
        pub community: Option<Kept<64>>,
        /// Variables of requests for values.
        pub get_variable_count: u64,
        /// Variables of requests for many values.
        pub get_bulk_variable_count: u64,
        /// Variables of requests to change values.
        pub set_variable_count: u64,
        /// Variables of responses.
        pub response_variable_count: u64,
        /// Description of the system.
        pub description: Option<Kept<255>>,
        /// Time at which the system was started.
        pub started_timestamp: Option<Timestamp>,
    }
    /// Conversations of SNMP.
    zeek "snmp" ['a] as row {
        /// Time from the first message to the last one.
        "duration": Duration = row.exchange.end.saturating_since(row.exchange.start);
        /// `version`.
        "version": Displayed<String> = Displayed(row.version.to_string());
        /// `community`.
        "community": Option<Text<'a>> = row.community.as_ref().map(Kept::text);
        /// `get_variable_count`.
        "get_requests": u64 = row.get_variable_count;
        /// `get_bulk_variable_count`.
        "get_bulk_requests": u64 = row.get_bulk_variable_count;
        /// `response_variable_count`.
        "get_responses": u64 = row.response_variable_count;
        /// `set_variable_count`.
        "set_requests": u64 = row.set_variable_count;
        /// `description`.
        "display_string": Option<Text<'a>> = row.description.as_ref().map(Kept::text);
        /// `started_timestamp`.
        "up_since": Option<Timestamp> = row.started_timestamp;
    }
}

open! {
    /// Rows of SNMP.
    pub(crate) enum Row { 0 = Exchange, 1 = Conversation }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, Default)]
struct Head<'a> {
    version: u8,
    community: Option<&'a [u8]>,
    user_name: Option<&'a [u8]>,
    engine_id: Option<&'a [u8]>,
    security: Option<u8>,
    /// Whether the receiver may send a report: true for requests, and false for traps.
    is_reportable: bool,
    /// Identifier of the message, in version 3.
    identifier: i64,
}

impl<'a> Head<'a> {
    /// Reads the head of a message. Returns it with the PDU, which is absent if it is encrypted.
    fn read(octets: &'a [u8]) -> Option<(Self, Option<Value<'a>>)> {
        let mut message = Values(octets).open(tag::SEQUENCE)?;
        let version = u8::try_from(message.integer(tag::INTEGER)?).ok().filter(|version| *version <= 3)?;
        let mut head = Self { version, ..Self::default() };
        if version != 3 {
            head.community = Some(message.next_of(tag::OCTET_STRING)?);
            return Some((head, Some(message.captured()?)));
        }
        let mut global = Values(message.next_of(tag::SEQUENCE)?);
        head.identifier = global.integer(tag::INTEGER)?;
        global.integer(tag::INTEGER)?;
        let flags = *global.next_of(tag::OCTET_STRING)?.first()?;
        (head.security, head.is_reportable) = (Some(flags & 3), flags & 4 != 0);
        let model = global.integer(tag::INTEGER)?;
        let parameters = message.next_of(tag::OCTET_STRING)?;
        if model == 3 {
            let mut parameters = Values(Values(parameters).next_of(tag::SEQUENCE)?);
            head.engine_id = Some(parameters.next_of(tag::OCTET_STRING)?);
            parameters.integer(tag::INTEGER)?;
            parameters.integer(tag::INTEGER)?;
            head.user_name = Some(parameters.next_of(tag::OCTET_STRING)?);
        }
        if flags & 2 != 0 {
            return Some((head, None));
        }
        let mut scoped = message.open(tag::SEQUENCE)?;
        scoped.next_of(tag::OCTET_STRING)?;
        scoped.next_of(tag::OCTET_STRING)?;
        Some((head, Some(scoped.captured()?)))
    }
}

/// The variables of a message.
#[derive(Clone, Debug, Default)]
struct Variables<'a> {
    count: u32,
    list: Values<'a>,
    trap_oid: Option<Oid<'a>>,
    description: Option<&'a [u8]>,
    up_time: Option<u64>,
}

impl<'a> Variables<'a> {
    fn read(list: Values<'a>) -> Self {
        let mut variables = Self { list, ..Self::default() };
        for (oid, value) in pairs(list) {
            variables.count += 1;
            match oid.content {
                DESCRIPTION if value.tag == tag::OCTET_STRING => variables.description = Some(value.content),
                UP_TIME if value.tag == 0x43 => {
                    variables.up_time = ber::signed(value.content).map(|ticks| ticks.max(0).cast_unsigned());
                }
                TRAP_OID if value.tag == tag::OBJECT_IDENTIFIER => {
                    variables.trap_oid = Some(Oid(value.content));
                }
                _ => {}
            }
        }
        variables
    }

    fn oids(&self) -> KeptList<512> {
        KeptList::of(pairs(self.list).map(|(oid, _)| oid))
    }
}

/// Returns identifiers and values of variables.
fn pairs<'a>(list: Values<'a>) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
    list.map_while(|variable| {
        let mut variable = Values(variable.content);
        let oid = variable.next().filter(|oid| oid.tag == tag::OBJECT_IDENTIFIER)?;
        Some((oid, variable.next()?))
    })
}

/// Parser of SNMP.
#[derive(Debug, Default)]
pub(crate) struct Snmp;

state! { struct Snmp {} }

/// Copies what the head of a message states. A response does not change what its request stated.
fn set(row: &mut Exchange, head: &Head<'_>, identifier: i64) {
    if row.security.is_none() && row.community.is_none() {
        let identifier = if head.version == 3 { head.identifier } else { identifier };
        (row.version, row.identifier) = (Version(head.version), identifier as u32);
        row.security = head.security.map(Security);
    }
    // The first message to an engine has no name, and does not know its identifier.
    let present = |octets: Option<&[u8]>| octets.filter(|octets| !octets.is_empty()).map(<[u8]>::to_vec);
    if row.community.is_none() {
        row.community = head.community.map(Kept::new);
    }
    row.user_name = present(head.user_name).map(|name| Kept::new(&name)).or(row.user_name.take());
    row.engine_id =
        present(head.engine_id).map(|id| EngineId { octets: Kept::new(&id) }).or(row.engine_id.take());
}

impl Snmp {
    /// Adds a trap of version 1.
    fn trap(head: &Head<'_>, mut members: Values<'_>, rows: &mut Rows<'_, Row>) -> Option<()> {
        let enterprise = Oid(members.next_of(tag::OBJECT_IDENTIFIER)?);
        let agent = members.next_of(0x40)?.first_chunk::<4>().map(|octets| IpAddr::from(*octets));
        let generic = u8::try_from(members.integer(tag::INTEGER)?).ok()?;
        members.integer(tag::INTEGER)?;
        members.next()?;
        let variables = Variables::read(members.open(tag::SEQUENCE)?);
        let mut row = Exchange {
            request_kind: Some(Kind::TRAP_V1),
            oids: variables.oids(),
            variable_count: variables.count,
            trap: Some(Trap(generic)),
            trap_oid: Some(KeptOid::new(enterprise)),
            agent_address: agent,
            ..Exchange::default()
        };
        set(&mut row, head, 0);
        rows.single(row);
        Some(())
    }

    /// Counts the variables of a message for the flow.
    fn count(
        head: &Head<'_>,
        kind: Kind,
        variables: &Variables<'_>,
        rows: &mut Rows<'_, Row>,
        now: Timestamp,
    ) {
        rows.flow(|row: &mut Conversation| {
            if row.community.is_none() {
                (row.version, row.community) = (Version(head.version), head.community.map(Kept::new));
            }
            let count = match kind.0 {
                0xa0 | 0xa1 => &mut row.get_variable_count,
                0xa2 => &mut row.response_variable_count,
                0xa3 => &mut row.set_variable_count,
                0xa5 => &mut row.get_bulk_variable_count,
                _ => return,
            };
            *count = count.saturating_add(variables.count.into());
            if let Some(description) = variables.description.filter(|_| kind == Kind::RESPONSE) {
                row.description = Some(Kept::new(description));
            }
            if let Some(ticks) =
                variables.up_time.filter(|ticks| kind == Kind::RESPONSE && *ticks <= u32::MAX.into())
            {
                // Hundredths of a second.
                let up_time = Duration::from_millis(ticks.saturating_mul(10));
                row.started_timestamp =
                    Some(Timestamp::from_nanos(now.as_nanos().saturating_sub(up_time.as_nanos() as u64)));
            }
        });
    }

    fn read(pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Option<()> {
        let (head, body) = Head::read(pdu.bytes)?;
        let Some(body) = body else {
            // The roles of encrypted messages are those of the first one.
            let key = key(head.version, head.identifier);
            if pdu.from == Role::Client && !head.is_reportable {
                // A trap.
                let mut row = Exchange::default();
                set(&mut row, &head, head.identifier);
                rows.single(row);
            } else if pdu.from == Role::Client {
                rows.request(key, |row: &mut Exchange| set(row, &head, head.identifier));
            } else {
                rows.response(key, |row: &mut Exchange| {
                    set(row, &head, head.identifier);
                    Reply::Last
                });
            }
            return Some(());
        };
        let (kind, mut members) = (Kind(body.tag), Values(body.content));
        kind.name()?;
        if kind == Kind::TRAP_V1 {
            return Self::trap(&head, members, rows);
        }
        let identifier = members.integer(tag::INTEGER)?;
        let status = u8::try_from(members.integer(tag::INTEGER)?).unwrap_or(u8::MAX);
        members.integer(tag::INTEGER)?;
        let variables = Variables::read(members.open(tag::SEQUENCE)?);
        Self::count(&head, kind, &variables, rows, pdu.timestamp);
        // Reports repeat the number in the head, and may have no other.
        let key = if head.version == 3 { key(3, head.identifier) } else { key(head.version, identifier) };
        match kind {
            Kind::RESPONSE | Kind::REPORT => {
                rows.acts_as(Role::Server);
                rows.response(key, |row: &mut Exchange| {
                    set(row, &head, identifier);
                    (row.response_kind, row.error_status) = (Some(kind), Some(Status(status)));
                    row.response_oids = variables.oids();
                    row.response_variable_count = variables.count;
                    Reply::Last
                });
            }
            Kind::TRAP_V2 => {
                let mut row = Exchange {
                    request_kind: Some(kind),
                    oids: variables.oids(),
                    variable_count: variables.count,
                    trap_oid: variables.trap_oid.map(KeptOid::new),
                    ..Exchange::default()
                };
                set(&mut row, &head, identifier);
                rows.single(row);
            }
            _ => {
                rows.acts_as(Role::Client);
                rows.request(key, |row: &mut Exchange| {
                    set(row, &head, identifier);
                    row.request_kind = Some(kind);
                    row.oids = variables.oids();
                    row.variable_count = variables.count;
                    if kind == Kind::INFORM {
                        row.trap_oid = variables.trap_oid.map(KeptOid::new);
                    }
                });
            }
        }
        Some(())
    }
}

fn key(version: u8, identifier: i64) -> u64 {
    u64::from(version) << 32 | (identifier.cast_unsigned() & 0xffff_ffff)
}

impl PduParser for Snmp {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const OPEN_MAX: usize = 32;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        Self::read(pdu, rows).map(|()| AfterPdu::More).ok_or(Malformed)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, datagram};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(
            &PROTOCOL,
            161,
            b"\x30\x16\x02\x01\x01\x04\x06public\xA0\x09\x02\x01\x01\x02\x01\x00\x02\x01\x00",
        ),
        datagram(&PROTOCOL, 161, b"\x30\x08\x02\x01\x03\x30\x03\x02\x01\x01"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(
            &PROTOCOL,
            161,
            b"\x30\x17\x02\x01\x01\x04\x06public\xA0\x09\x02\x01\x01\x02\x01\x00\x02\x01\x00",
        ),
        datagram(&PROTOCOL, 389, b"\x30\x0A\x02\x01\x01\x63\x05\x04\x00\x0A\x01\x00"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ber::encoded as value;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn variable(oid: &[u8], content: &[u8]) -> Vec<u8> {
        value(0x30, &[&value(6, &[oid]), content])
    }

    fn pdu(kind: u8, identifier: u8, status: u8, variables: &[&[u8]]) -> Vec<u8> {
        value(kind, &[&[2, 1, identifier, 2, 1, status, 2, 1, 0], &value(0x30, variables)])
    }

    fn message(version: u8, body: &[u8]) -> Vec<u8> {
        value(0x30, &[&[2, 1, version], &value(4, &[b"public"]), body])
    }

    fn message_3(identifier: u8, flags: u8, user: &[u8], body: &[u8]) -> Vec<u8> {
        let engine = value(4, &[b"\x80\0\x1f\x88\x80"]);
        let global = value(0x30, &[&[2, 1, identifier, 2, 2, 5, 0xdc, 4, 1, flags, 2, 1, 3]]);
        let parameters =
            value(0x30, &[&engine, &[2, 1, 1, 2, 1, 9], &value(4, &[user]), &value(4, &[]), &value(4, &[])]);
        value(0x30, &[&[2, 1, 3], &global, &value(4, &[&parameters]), body])
    }

    #[test]
    fn cases_of_versions() {
        let description = variable(DESCRIPTION, &value(4, &[b"Linux"]));
        let up_time = variable(UP_TIME, &[0x43, 1, 100]);
        let get =
            message(0, &pdu(0xa0, 1, 0, &[&variable(DESCRIPTION, &[5, 0]), &variable(UP_TIME, &[5, 0])]));
        let response = message(0, &pdu(0xa2, 1, 0, &[&description, &up_time]));
        let bulk = message(1, &pdu(0xa5, 7, 0, &[&variable(&[0x2b, 6, 1, 2, 1], &[5, 0])]));
        let refused = message(1, &pdu(0xa2, 7, 6, &[]));
        let trap_1 = message(
            0,
            &value(
                0xa4,
                &[
                    &value(6, &[&[0x2b, 6, 1]]),
                    &[0x40, 4, 192, 0, 2, 1, 2, 1, 3, 2, 1, 0, 0x43, 1, 5, 0x30, 0],
                ],
            ),
        );
        let trap_2 =
            message(1, &pdu(0xa7, 9, 0, &[&up_time, &variable(TRAP_OID, &value(6, &[&[0x2b, 6, 1, 6, 3]]))]));
        let zeros = [&[0x2b][..], &[0x80; 10], &[0]].concat();
        let ones = [&[0x2b][..], &[0xff; 40], &[0]].concat();
        let variables = [zeros, ones, vec![0x2b, 0x81]].map(|oid| variable(&oid, &[5, 0]));
        let endless = message(0, &pdu(0xa0, 2, 0, &variables.each_ref().map(Vec::as_slice)));
        let scoped = |body: &[u8]| value(0x30, &[&value(4, &[]), &value(4, &[]), body]);
        let cases = [
            Case {
                name: "requests",
                turns: vec![(CLIENT, get), (SERVER, response), (CLIENT, bulk), (SERVER, refused)],
                rows: &[
                    "snmp version=1 community=public request_kind=get_request response_kind=response identifier=1 \
                    oids=List([Text(\"1.3.6.1.2.1.1.1.0\"), Text(\"1.3.6.1.2.1.1.3.0\")]) \
                    response_oids=List([Text(\"1.3.6.1.2.1.1.1.0\"), Text(\"1.3.6.1.2.1.1.3.0\")]) variable_count=2 \
                    response_variable_count=2 error_status=no_error response_time=10ms",
                    "snmp version=2c community=public request_kind=get_bulk_request response_kind=response identifier=7 \
                    oids=List([Text(\"1.3.6.1.2.1\")]) variable_count=1 error_status=no_access response_time=10ms",
                    "snmp_conversation version=1 community=public get_variable_count=2 get_bulk_variable_count=1 \
                    response_variable_count=2 description=Linux started_timestamp=0s",
                ],
            },
            Case {
                name: "traps",
                turns: vec![(CLIENT, trap_1), (CLIENT, trap_2)],
                rows: &[
                    "snmp version=1 community=public request_kind=trap_v1 trap=link_up trap_oid=1.3.6.1 \
                    agent_address=Address(192.0.2.1)",
                    "snmp version=2c community=public request_kind=trap_v2 identifier=9 \
                    oids=List([Text(\"1.3.6.1.2.1.1.3.0\"), Text(\"1.3.6.1.6.3.1.1.4.1.0\")]) variable_count=2 \
                    trap_oid=1.3.6.1.6.3",
                    "snmp_conversation version=2c community=public",
                ],
            },
            Case {
                name: "an identifier with a number of eleven octets, and one without an end",
                turns: vec![(CLIENT, endless)],
                rows: &[
                    "snmp_conversation version=1 community=public get_variable_count=3",
                    "snmp version=1 community=public request_kind=get_request identifier=2 \
                    oids=List([Text(\"1.3.0\"), Text(\"1.3.?\"), Text(\"1.3.?\")]) variable_count=3 lacks=response",
                ],
            },
            Case {
                name: "version 3: a report, then encrypted messages",
                turns: vec![
                    (CLIENT, message_3(5, 4, b"", &scoped(&pdu(0xa0, 3, 0, &[])))),
                    (SERVER, message_3(5, 0, b"", &scoped(&pdu(0xa8, 3, 0, &[])))),
                    (CLIENT, message_3(6, 7, b"admin", &value(4, &[b"secret"]))),
                    (SERVER, message_3(6, 3, b"admin", &value(4, &[b"secret"]))),
                ],
                rows: &[
                    "snmp version=3 engine_id=80001f8880 security=none request_kind=get_request response_kind=report \
                    identifier=5 error_status=no_error response_time=10ms",
                    "snmp version=3 user_name=admin engine_id=80001f8880 security=encrypted identifier=6 \
                    response_time=10ms",
                    "snmp_conversation version=3",
                ],
            },
            Case {
                name: "version 3: an encrypted trap",
                turns: vec![(CLIENT, message_3(8, 3, b"admin", &value(4, &[b"secret"])))],
                rows: &[
                    "snmp version=3 user_name=admin engine_id=80001f8880 security=encrypted identifier=8",
                ],
            },
        ];
        check(&KitEntry::of::<Snmp>(), &cases);
    }
}
