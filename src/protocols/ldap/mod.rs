//! LDAP: a row for each operation with its result, over TCP and over UDP.
//!
//! | row | when |
//! |---|---|
//! | [`Operation`] | a bind, change, comparison or extended operation with its result; an unbind or abandon, at once |
//! | [`SearchOperation`] | a search with its result, and the number of its entries |
//! | [`Authentication`](super::ntlm::Authentication) | a bind with SASL by NTLM |
//! | [`kerberos::Exchange`](super::kerberos::Exchange) | a bind with SASL by a ticket of Kerberos |
//!
//! After a bind with SASL, messages may have a layer of security (RFC 4422 section 3.7). They are read if it only signs them, with
//! Kerberos (RFC 4121) or NTLM; if the signature of Kerberos follows the messages of a buffer, those in its first 8 KiB. After
//! StartTLS, TLS follows. Passwords are not kept, and neither are the values of entries.
//!
//! Standards: RFC 4511, RFC 4515 (filters as texts).

mod filter;
mod rows;

pub use rows::{Aliases, Authentication, Operation, OperationKind, ResultCode, Scope, SearchOperation};

use std::fmt::Write as _;

use filter::{FILTER_DEPTH_MAX, public, write_filter};
use rows::{op, text};

use super::gss::Logons;
use super::kerberos::Exchange as Ticket;
use super::ntlm::Authentication as Ntlm;
use super::recognizers::octets::{datagram_in_role, dialogue};
use super::tls;
use crate::checkpoint::state;
use crate::codec::ber::{self, Value, Values, tag};
use crate::session::framing::{AfterPdu, Cut, Framing, Pdu, Width};
use crate::session::kit::{Kept, KeptList, Malformed, PduParser, Reply, Rows, open};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, StreamOpening, Text, Verdict};

/// Protocol `ldap`, also over UDP, recognized by a message with a message id and a known operation.
pub static PROTOCOL: Protocol = Protocol::new("ldap")
    .in_zeek_by_transport("ldap_tcp", "ldap_udp")
    .in_eve("ldap")
    .over_streams(&[389, 3268], Some(probe_stream))
    .over_datagrams(&[389], Some(probe_datagram))
    .streams_begin_with(OctetSet::of(b"\x30"))
    .datagrams_begin_with(OctetSet::of(b"\x30"))
    .with_kinds(&["ldap", "ldap_search", "ntlm", "kerberos"])
    .with_message_len_min(7)
    .leading_on()
    .with_limits(
        "64 open operations; PDUs of 8 KiB, of longer ones the beginning; filters of depth 32 and 1024 \
         octets, attributes of 1024 octets, other texts of 512",
    )
    .with_standards("RFC 4511, 4513, 4515; RFC 4121 and NTLM signatures");

/// Returns the tag of the operation in a message (RFC 4511, from section 4.2), or the verdict if there is none.
fn operation(octets: &[u8]) -> Result<u8, Verdict> {
    match octets {
        [] | [0x30] => return Err(Verdict::More),
        [0x30, ..] => {}
        _ => return Err(Verdict::No),
    }
    let unknown = if octets.len() < 16 { Verdict::More } else { Verdict::No };
    let Some((_, header_len, len)) = ber::header(octets) else { return Err(unknown) };
    if len < 5 {
        return Err(Verdict::No);
    }
    match octets.get(header_len..).unwrap_or_default() {
        [2, number_len @ 1..=4, rest @ ..] => rest.get(usize::from(*number_len)).copied().ok_or(unknown),
        [] | [2] => Err(unknown),
        _ => Err(Verdict::No),
    }
}

const REQUESTS: [u8; 10] = [
    op::BIND,
    op::UNBIND,
    op::SEARCH,
    op::MODIFY,
    op::ADD,
    op::DELETE,
    op::RENAME,
    op::COMPARE,
    op::ABANDON,
    op::EXTENDED,
];

const RESPONSES: [u8; 11] = [
    op::BIND_RESPONSE,
    op::ENTRY,
    op::SEARCH_DONE,
    op::MODIFY_RESPONSE,
    op::ADD_RESPONSE,
    op::DELETE_RESPONSE,
    op::RENAME_RESPONSE,
    op::COMPARE_RESPONSE,
    op::REFERENCE,
    op::EXTENDED_RESPONSE,
    op::INTERMEDIATE,
];

fn is_one_of(octets: &[u8], operations: &[u8]) -> Verdict {
    operation(octets).map_or_else(|verdict| verdict, |operation| Verdict::of(operations.contains(&operation)))
}

fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    dialogue(opening, |octets| is_one_of(octets, &REQUESTS), |octets| is_one_of(octets, &RESPONSES))
}

fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is = |operations| is_one_of(opening.bytes, operations) == Verdict::Match;
    let is_complete = ber::header(opening.bytes).is_some_and(|(_, header_len, len)| {
        let end = header_len.saturating_add(len);
        end == opening.len || (end < opening.len && opening.bytes.get(end) == Some(&0x30))
    });
    let is_answer = is(&RESPONSES);
    datagram_in_role(opening, is_complete && (is_answer || is(&REQUESTS)), Some(is_answer))
}

/// A message, or a buffer with a layer of security, which follows its length in four octets. Of a buffer that is only signed, the
/// messages are PDUs of their own, because many may share a long one.
fn cut(_: Role, octets: &[u8]) -> Cut {
    match octets {
        [0, ..] => {
            let whole = Framing::length(0, Width::U32).plus(4).measure(octets);
            let Cut::Pdu(len) = whole else { return whole };
            let need = usize::try_from(len).map_or(SIGNATURE_LEN_MAX, |len| len.min(SIGNATURE_LEN_MAX));
            if octets.len() < need {
                return Cut::Need(need);
            }
            match octets.get(4..).and_then(signature) {
                Some((len, true)) => Cut::Pdu(len as u64 + 4),
                _ => whole,
            }
        }
        _ => Framing::BER.measure(octets),
    }
}

/// Name of the extended operation that begins TLS (RFC 4511 section 4.14).
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

open! {
    /// Rows of LDAP.
    pub(crate) enum Row { 0 = Operation, 1 = SearchOperation, 2 = Ntlm in Box, 3 = Ticket in Box }
}

/// Returns the changes of a modification, as texts.
fn changes(list: Values<'_>) -> Option<Kept<512>> {
    let mut out = String::new();
    for change in list {
        let mut change = Values(change.content);
        let kind = change.next()?.content.first().copied()?;
        let mut attribute = Values(change.next()?.content);
        let kind =
            ["add", "delete", "replace", "increment"].get(usize::from(kind)).copied().unwrap_or("other");
        let separator = if out.is_empty() { "" } else { ", " };
        let name = Text(attribute.next()?.content);
        let values = attribute.next().map_or(Values(&[]), |values| Values(values.content));
        let _ = write!(out, "{separator}{kind}({name}");
        for (index, value) in values.enumerate() {
            let value = Text(public(name.0, value.content));
            let _ = write!(out, "{}{value}", if index == 0 { "=" } else { "," });
            if out.len() > 512 {
                return text(out.as_bytes());
            }
        }
        out.push(')');
    }
    text(out.as_bytes())
}

/// Parser of LDAP.
#[derive(Debug, Default)]
pub(crate) struct Ldap {
    /// Number of the request to begin TLS, until it is answered.
    start_tls: Option<u32>,
    logons: Logons,
}

state! { struct Ldap { start_tls, logons } }

impl Ldap {
    /// Reads a message. Returns `None` if it is malformed.
    fn message(&mut self, mut message: Values<'_>, rows: &mut Rows<'_, Row>) -> Option<AfterPdu> {
        let id = u32::try_from(message.integer(tag::INTEGER)?).ok()?;
        let body = message.captured()?;
        if REQUESTS.contains(&body.tag) {
            rows.acts_as(Role::Client);
            self.request(id, body, rows)?;
            return Some(AfterPdu::More);
        }
        if !RESPONSES.contains(&body.tag) {
            return None;
        }
        rows.acts_as(Role::Server);
        Some(self.response(id, body, rows))
    }

    fn request(&mut self, id: u32, body: Value<'_>, rows: &mut Rows<'_, Row>) -> Option<()> {
        let mut members = Values(body.content);
        let key = u64::from(id);
        if body.tag == op::SEARCH {
            let base = members.next_of(tag::OCTET_STRING)?;
            let small = |value: Option<Value<'_>>| value.and_then(|value| value.content.first().copied());
            let (scope, aliases) = (small(members.next()), small(members.next()));
            let limits = [members.next(), members.next()]
                .map(|limit| limit.and_then(|limit| ber::unsigned(limit.content)).unwrap_or_default());
            let types_only = small(members.next()).is_some_and(|octet| octet != 0);
            let filter = members.next();
            let attributes = members.open(tag::SEQUENCE).unwrap_or(Values(&[]));
            rows.request(key, |row: &mut SearchOperation| {
                (row.identifier, row.base_object) = (id, text(base));
                (row.scope, row.aliases) = (scope.map(Scope), aliases.map(Aliases));
                row.attributes = KeptList::of(attributes);
                row.set_limits(limits, types_only);
                row.filter = filter.and_then(|filter| {
                    let mut out = String::new();
                    // A filter that is too long is truncated.
                    let _ = write_filter(&mut out, filter, FILTER_DEPTH_MAX);
                    text(out.as_bytes())
                });
            });
            return Some(());
        }
        let mut token = None;
        let mut row = Operation::new(id, OperationKind(body.tag));
        match body.tag {
            op::BIND => {
                row.version = u8::try_from(members.integer(tag::INTEGER)?).ok();
                row.object = text(members.next_of(tag::OCTET_STRING)?);
                let credentials = members.captured()?;
                row.authentication = Some(Authentication(credentials.tag));
                if credentials.tag == 0xa3 {
                    let mut members = Values(credentials.content);
                    let mechanism = members.next_of(tag::OCTET_STRING)?;
                    row.mechanism = text(mechanism);
                    // Later requests of an authentication may have none.
                    let has_token = mechanism.starts_with(b"GS") || mechanism == b"NTLM";
                    token = has_token.then(|| members.captured().map_or(&[][..], |token| token.content));
                }
            }
            op::MODIFY | op::ADD | op::RENAME | op::COMPARE => {
                row.object = text(members.next_of(tag::OCTET_STRING)?);
                row.argument = match body.tag {
                    op::MODIFY => changes(members.open(tag::SEQUENCE)?),
                    op::RENAME => {
                        let name = members.next_of(tag::OCTET_STRING).and_then(text);
                        row.set_deletes_old(members.next().is_some_and(|value| value.content != [0]));
                        name
                    }
                    op::COMPARE => {
                        Values(members.next_of(tag::SEQUENCE)?).next_of(tag::OCTET_STRING).and_then(text)
                    }
                    _ => None,
                };
            }
            op::DELETE => row.object = text(body.content),
            op::EXTENDED => {
                let name = members.next_of(0x80)?;
                row.object = text(name);
                if name == START_TLS {
                    self.start_tls = Some(id);
                }
            }
            op::ABANDON => row.argument = text(ber::signed(body.content)?.to_string().as_bytes()),
            _ => {}
        }
        if matches!(body.tag, op::UNBIND | op::ABANDON) {
            rows.single(row);
        } else {
            rows.request(key, |open: &mut Operation| open.request(row));
        }
        if let Some(token) = token {
            self.logons.requested(key, token, rows);
        }
        Some(())
    }

    fn response(&mut self, id: u32, body: Value<'_>, rows: &mut Rows<'_, Row>) -> AfterPdu {
        let key = u64::from(id);
        if matches!(body.tag, op::ENTRY | op::REFERENCE) {
            rows.response(key, |row: &mut SearchOperation| {
                row.identifier = id;
                row.entry_count = row.entry_count.saturating_add((body.tag == op::ENTRY).into());
                row.reference_count = row.reference_count.saturating_add((body.tag == op::REFERENCE).into());
                Reply::More
            });
            return AfterPdu::More;
        }
        if body.tag == op::INTERMEDIATE {
            return AfterPdu::More;
        }
        let mut members = Values(body.content);
        let code = members.next().and_then(|code| ber::unsigned(code.content)).map(ResultCode);
        let matched = members.next_of(tag::OCTET_STRING).unwrap_or_default();
        let diagnostic = members.next_of(tag::OCTET_STRING).unwrap_or_default();
        if body.tag == op::SEARCH_DONE {
            rows.response(key, |row: &mut SearchOperation| {
                (row.identifier, row.result, row.diagnostic_message) = (id, code, text(diagnostic));
                row.set_matched(matched);
                Reply::Last
            });
        } else {
            rows.response(key, |row: &mut Operation| {
                (row.identifier, row.result, row.diagnostic_message) = (id, code, text(diagnostic));
                row.set_matched(matched);
                Reply::Last
            });
        }
        if body.tag == op::BIND_RESPONSE {
            // The credentials of the server, after those that name another one.
            let token = members.captured_values().find(|value| value.tag == 0x87);
            let is_accepted = (code != Some(SASL_BIND_IN_PROGRESS)).then_some(code == Some(ResultCode(0)));
            self.logons.answered(key, token.map_or(&[], |token| token.content), is_accepted, rows);
        }
        let starts_tls = body.tag == op::EXTENDED_RESPONSE && self.start_tls == Some(id);
        if starts_tls {
            self.start_tls = None;
        }
        match code {
            Some(ResultCode(0)) if starts_tls => AfterPdu::Handover(Some(&tls::PROTOCOL)),
            _ => AfterPdu::More,
        }
    }
}

/// Result of a step of a bind.
const SASL_BIND_IN_PROGRESS: ResultCode = ResultCode(14);

/// Octets of a buffer by which its layer is known: its length, a signature, and the head of a message.
const SIGNATURE_LEN_MAX: usize = 64;

/// Returns the length of the signature in front of the messages of a buffer that is only signed, and whether it is complete. Of
/// Kerberos (RFC 4121 section 4.2.6.2), the checksum may follow the messages.
fn signature(buffer: &[u8]) -> Option<(usize, bool)> {
    let (len, is_complete) = match buffer {
        [5, 4, flags, 0xff, extra @ .., _, _, _, _, _, _, _, _] if flags & 2 == 0 => {
            let [extra, rotation] = [extra.first_chunk::<2>()?, extra.get(2..)?.first_chunk()?];
            (16 + usize::from(u16::from_be_bytes(*rotation)), extra == rotation)
        }
        [1, 0, 0, 0, ..] => (16, true),
        _ => return None,
    };
    let found = operation(buffer.get(len..)?).ok()?;
    (REQUESTS.contains(&found) || RESPONSES.contains(&found)).then_some((len, is_complete))
}

impl PduParser for Ldap {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::by(cut).keep(8192));
    const OPEN_MAX: usize = 64;
    const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
    type Row = Row;

    fn heap_len(&self) -> usize {
        self.logons.heap_len()
    }

    fn asked_for(&self) -> Option<&'static Protocol> {
        self.start_tls.is_some().then_some(&tls::PROTOCOL)
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        if let [0, _, _, _, buffer @ ..] = pdu.bytes {
            // Otherwise, the messages are PDUs of their own, or encrypted.
            let messages = signature(buffer).and_then(|(len, _)| buffer.get(len..)).unwrap_or_default();
            for message in Values(messages) {
                self.message(Values(message.content), rows);
            }
            return Ok(AfterPdu::More);
        }
        // A datagram may have the entries and the result of a search.
        let mut messages = Values(pdu.bytes);
        let mut next = AfterPdu::More;
        while !messages.0.is_empty() {
            let message = messages.open(tag::SEQUENCE).ok_or(Malformed)?;
            next = self.message(message, rows).ok_or(Malformed)?;
        }
        Ok(next)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 389, b"\x30\x0C\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00"),
        server(&PROTOCOL, 389, b"\x30\x84\x00\x00\x00\x10\x02\x01\x01\x61\x84\x00\x00\x00\x07"),
        datagram(&PROTOCOL, 389, b"\x30\x0A\x02\x01\x01\x63\x05\x04\x00\x0A\x01\x00"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 389, b"\x30\x0C\x02\x01\x01\x04\x06public\xA0\x00"),
        datagram(&PROTOCOL, 389, b"\x30\x0B\x02\x01\x01\x63\x05\x04\x00\x0A\x01\x00"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ber::encoded as value;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn string(content: &[u8]) -> Vec<u8> {
        value(4, &[content])
    }

    fn message(id: u8, operation: u8, parts: &[&[u8]]) -> Vec<u8> {
        value(0x30, &[&[2, 1, id], &value(operation, parts)])
    }

    fn result(id: u8, operation: u8, code: u8, text: &[u8]) -> Vec<u8> {
        message(id, operation, &[&[0x0a, 1, code, 4, 0], &string(text)])
    }

    fn search(id: u8, filter: &[u8]) -> Vec<u8> {
        let limits = [0x0a, 1, 2, 0x0a, 1, 3, 2, 1, 0, 2, 1, 0, 1, 1, 0];
        message(
            id,
            0x63,
            &[&string(b"dc=example"), &limits, filter, &value(0x30, &[&string(b"cn"), &string(b"mail")])],
        )
    }

    #[test]
    fn cases_of_operations() {
        const BOUND: &str = "ldap identifier=1 operation=bind version=3 authentication=simple object=cn=admin \
            result=invalid_credentials diagnostic_message=no response_time=10ms";
        const PINGED: &str = "ldap_search identifier=2 base_object=dc=example scope=tree aliases=always filter=(a=*) \
            attributes=List([Text(\"cn\"), Text(\"mail\")]) entry_count=1 result=success response_time=10ms";
        const FOUND: &str = "ldap_search identifier=2 base_object=dc=example scope=tree aliases=always \
            filter=(&(objectClass=person)(cn=a\\28*b*)(!(mail=*))) attributes=List([Text(\"cn\"), Text(\"mail\")]) \
            entry_count=2 result=success response_time=10ms";
        let bind = message(1, 0x60, &[&[2, 1, 3], &string(b"cn=admin"), &value(0x80, &[b"secret"])]);
        let person = value(0xa3, &[&string(b"objectClass"), &string(b"person")]);
        let name =
            value(0xa4, &[&string(b"cn"), &value(0x30, &[&value(0x80, &[b"a("]), &value(0x81, &[b"b"])])]);
        let none = value(0xa2, &[&value(0x87, &[b"mail"])]);
        let filter = value(0xa0, &[&person, &name, &none]);
        let entry = message(2, 0x64, &[&string(b"cn=a"), &value(0x30, &[])]);
        let secret = value(0x30, &[&string(b"2.5.4.35;x-a"), &value(0x31, &[&string(b"hunter2")])]);
        let secret = value(0x30, &[&[0x0a, 1, 0], &secret]);
        let change = value(
            0x30,
            &[
                &[0x0a, 1, 2],
                &value(0x30, &[&string(b"mail"), &value(0x31, &[&string(b"x"), &string(b"y")])]),
            ],
        );
        let modify = message(3, 0x66, &[&string(b"cn=a"), &value(0x30, &[&change, &secret])]);
        let tls = message(4, 0x77, &[&value(0x80, &[START_TLS])]);
        let buffer = |inner: &[u8]| {
            let token =
                [&[5, 4, 1, 0xff, 0, 12, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0xee; 12], inner].concat();
            [&(token.len() as u32).to_be_bytes()[..], &token].concat()
        };
        let sasl = message(5, 0x60, &[&[2, 1, 3], &string(b""), &value(0xa3, &[&string(b"GSS-SPNEGO")])]);
        let ntlm = |kind: u8| [b"NTLMSSP\0".as_slice(), &[kind, 0, 0, 0], &[0; 52]].concat();
        let bind_by = |id, kind| {
            let credentials = [string(b"GSS-SPNEGO"), string(&ntlm(kind))].concat();
            message(id, 0x60, &[&[2, 1, 3], &string(b""), &value(0xa3, &[&credentials])])
        };
        let challenge = message(8, 0x61, &[&[0x0a, 1, 14, 4, 0, 4, 0], &value(0x87, &[&ntlm(2)])]);
        // A ticket for one service, behind a list of mechanisms, and the reply in SPNEGO.
        let number = |tag: u8, number: u8| value(tag, &[&[2, 1, number]]);
        let sequence = |fields: &[&[u8]]| value(0x30, fields);
        let name = |name: &str| value(0x1b, &[name.as_bytes()]);
        let service =
            sequence(&[&number(0xa0, 2), &value(0xa1, &[&sequence(&[&name("ldap"), &name("dc")])])]);
        let encrypted = sequence(&[&number(0xa0, 23), &value(0xa2, &[&string(b"?")])]);
        let ticket = sequence(&[
            &number(0xa0, 5),
            &value(0xa1, &[&name("LAB")]),
            &value(0xa2, &[&service]),
            &value(0xa3, &[&encrypted]),
        ]);
        let asked = value(
            0x6e,
            &[&sequence(&[&number(0xa0, 5), &number(0xa1, 14), &value(0xa3, &[&value(0x61, &[&ticket])])])],
        );
        let granted = value(0x6f, &[&sequence(&[&number(0xa0, 5), &number(0xa1, 15)])]);
        let mechanism = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
        let token = |kind: u8, inner: &[u8]| value(0x60, &[&mechanism, &[kind, 0], inner]);
        let first =
            value(0xa0, &[&sequence(&[&value(0xa0, &[&sequence(&[&mechanism])]), &token(1, &asked)])]);
        let credentials = [string(b"GSS-SPNEGO"), string(&first)].concat();
        let bind_by_ticket =
            |id| message(id, 0x60, &[&[2, 1, 3], &string(b""), &value(0xa3, &[&credentials])]);
        let bound = message(10, 0x61, &[&[0x0a, 1, 0, 4, 0, 4, 0], &value(0x87, &[&token(2, &granted)])]);
        let operations = vec![
            (CLIENT, bind.clone()),
            (SERVER, result(1, 0x61, 49, b"no")),
            (CLIENT, search(2, &filter)),
            (SERVER, [entry.clone(), entry, result(2, 0x65, 0, b"")].concat()),
            (CLIENT, modify),
            (SERVER, result(3, 0x67, 50, b"")),
            (CLIENT, message(6, 0x42, &[])),
        ];
        let cases = [
            Case {
                name: "operations",
                turns: operations,
                rows: &[
                    BOUND,
                    FOUND,
                    "ldap identifier=3 operation=modify object=cn=a argument=replace(mail=x,y), add(2.5.4.35;x-a=REDACTED) \
                    result=insufficient_access_rights response_time=10ms",
                    "ldap identifier=6 operation=unbind",
                ],
            },
            Case {
                name: "TLS",
                turns: vec![(CLIENT, tls), (SERVER, result(4, 0x78, 0, b""))],
                rows: &["ldap identifier=4 operation=extended object=1.3.6.1.4.1.1466.20037 result=success \
                    response_time=10ms"],
            },
            Case {
                name: "a bind by NTLM",
                turns: vec![
                    (CLIENT, bind_by(8, 1)),
                    (SERVER, challenge),
                    (CLIENT, bind_by(9, 3)),
                    (SERVER, result(9, 0x61, 0, b"")),
                ],
                rows: &[
                    "ldap identifier=8 operation=bind version=3 authentication=sasl mechanism=GSS-SPNEGO \
                    result=sasl_bind_in_progress response_time=10ms",
                    "ldap identifier=9 operation=bind version=3 authentication=sasl mechanism=GSS-SPNEGO result=success \
                    response_time=10ms",
                    "ntlm user_name= user_domain= client_host= response_version=anonymous is_accepted=Bool(true) \
                    response_time=10ms",
                ],
            },
            Case {
                name: "a bind by Kerberos",
                // The first one is refused without a token.
                turns: vec![
                    (CLIENT, bind_by_ticket(9)),
                    (SERVER, result(9, 0x61, 49, b"")),
                    (CLIENT, bind_by_ticket(10)),
                    (SERVER, bound),
                ],
                rows: &[
                    "ldap identifier=9 operation=bind version=3 authentication=sasl mechanism=GSS-SPNEGO \
                    result=invalid_credentials response_time=10ms",
                    "kerberos request_type=ap_request service_name=ldap/dc service_realm=LAB ticket_encryption=rc4-hmac \
                    response_time=10ms",
                    "ldap identifier=10 operation=bind version=3 authentication=sasl mechanism=GSS-SPNEGO result=success \
                    response_time=10ms",
                    "kerberos request_type=ap_request reply_type=ap_reply service_name=ldap/dc service_realm=LAB \
                    ticket_encryption=rc4-hmac is_accepted=Bool(true) response_time=10ms",
                ],
            },
            Case {
                name: "a signed layer",
                turns: vec![
                    (CLIENT, sasl),
                    (SERVER, result(5, 0x61, 0, b"")),
                    (CLIENT, buffer(&message(7, 0x4a, &[b"cn=a"]))),
                    (SERVER, buffer(&result(7, 0x6b, 32, b""))),
                ],
                rows: &[
                    "ldap identifier=5 operation=bind version=3 authentication=sasl mechanism=GSS-SPNEGO result=success \
                    response_time=10ms",
                    "ldap identifier=7 operation=delete object=cn=a result=no_such_object response_time=10ms",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Ldap>(), &cases);
        // An entry and the result are one datagram.
        let found = [message(2, 0x64, &[&string(b""), &value(0x30, &[])]), result(2, 0x65, 0, b"")].concat();
        let ping = search(2, &value(0x87, &[b"a"]));
        let datagrams =
            vec![(CLIENT, bind), (SERVER, result(1, 0x61, 49, b"no")), (CLIENT, ping), (SERVER, found)];
        check(
            &KitEntry::of::<Ldap>(),
            &[Case { name: "datagrams", turns: datagrams, rows: &[BOUND, PINGED] }],
        );
    }
}
