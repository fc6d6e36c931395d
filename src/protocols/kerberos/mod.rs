//! Kerberos 5: requests for tickets, with their replies and errors, over TCP and UDP.
//!
//! A row is reported with the reply ([`Exchange`]). A reply repeats no number of its request: type and order decide. In datagrams,
//! a request with the same octets is a repetition. What is encrypted is not read, and tickets are not kept. With a ticket, clients
//! of other protocols authenticate to a service (`token`).
//!
//! Standards: RFC 4120, 4121; encryption types and pre-authentication of the IANA registry of Kerberos parameters; RFC 8429 (weak
//! encryption).

mod numbers;
pub(super) mod token;

pub use numbers::{EncryptionType, ErrorCode, MessageType, PreAuthentication};

use super::recognizers::octets::{datagram_in_role, either_in_role, once, u32_at};
use super::tls::CertificateTime;
use crate::base::{Timestamp, fnv1a};
use crate::checkpoint::state;
use crate::codec::ber::{self, Value, Values, tag};
use crate::row::{Displayed, Name};
use crate::session::framing::{AfterPdu, Framing, Pdu, Width};
use crate::session::kit::{Kept, KeptList, Malformed, PduParser, Reply, Rows, exchange, open};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, StreamOpening, Text, Verdict};

/// Protocol `kerberos`, recognized by a message type with version 5.
pub static PROTOCOL: Protocol = Protocol::new("kerberos")
    .in_zeek_by_transport("krb_tcp", "krb")
    .in_eve("krb5")
    .over_streams(&[88], Some(probe_stream))
    .over_datagrams(&[88], Some(probe_datagram))
    .streams_begin_with(OctetSet::of(b"\0"))
    .datagrams_begin_with(OctetSet::range(0x6A..=0x6D).and(OctetSet::of(b"\x7E")))
    .with_kinds(&["kerberos"])
    .with_limits("16 open exchanges; messages of 16 KiB, of longer ones the beginning; texts of 256 octets")
    .with_standards("RFC 4120, 6113, 6806, 8429");

/// Tags of messages, which contain their type: `[APPLICATION 10]` and so on.
mod message {
    pub(super) const AS_REQUEST: u8 = 0x6A;
    pub(super) const AS_REPLY: u8 = 0x6B;
    pub(super) const TGS_REQUEST: u8 = 0x6C;
    pub(super) const TGS_REPLY: u8 = 0x6D;
    pub(super) const ERROR: u8 = 0x7E;
}

/// Returns whether octets are a message of `len` octets. An error may lack its version if the port is known.
fn is_message(octets: &[u8], len: usize, is_on_port: bool) -> bool {
    let Some((kind @ (message::AS_REQUEST..=message::TGS_REPLY | message::ERROR), header_len, body_len)) =
        ber::header(octets)
    else {
        return false;
    };
    let Some((tag::SEQUENCE, inner_len, fields_len)) =
        ber::header(octets.get(header_len..).unwrap_or_default())
    else {
        return false;
    };
    // The version, which is the first field of a reply and the second of a request, has tag number 0 or 1.
    let version = octets.get(header_len + inner_len..).unwrap_or_default();
    let is_bare = kind == message::ERROR && is_on_port && inner_len + fields_len == body_len;
    header_len + body_len == len && (is_bare || matches!(version, [0xA0 | 0xA1, 3, 2, 1, 5, ..]))
}

fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    let probe = |octets: &[u8]| {
        match octets {
            [0, 0..=1, ..] | [0] | [] => {}
            _ => return Verdict::No,
        }
        match (u32_at(octets, 0), octets.get(4..)) {
            (None, _) | (_, None | Some([])) => Verdict::More,
            (Some(len), Some(message @ [message::AS_REQUEST..=message::TGS_REPLY | message::ERROR, ..])) => {
                once(message, 20, || is_message(message, len as usize, false))
            }
            _ => Verdict::No,
        }
    };
    either_in_role(opening, probe, |octets| is_answer(octets.get(4..)?))
}

fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is = |is_on_port| is_message(opening.bytes, opening.len, is_on_port);
    // Without a version, the octets are no evidence of the direction.
    let is_answer = is_answer(opening.bytes).filter(|_| is(false));
    datagram_in_role(opening, is(opening.has_port(88)), is_answer)
}

/// Returns whether a message is a reply or an error.
fn is_answer(octets: &[u8]) -> Option<bool> {
    octets.first().map(|tag| matches!(*tag, message::AS_REPLY | message::TGS_REPLY | message::ERROR))
}

/// Texts of errors that are part of each login, and have no row in Zeek's log.
const COMMON_ERRORS: [&[u8]; 2] = [b"NEEDED_PREAUTH", b"Need to use PA-ENC-TIMESTAMP/PA-PK-AS-REQ"];

exchange! {
    /// A request for a ticket with its reply, or the error; in other protocols, the use of a ticket.
    "kerberos" pub struct Exchange {
        /// Type of the request; null if it was not captured.
        pub request_type: Option<MessageType>,
        /// Type of the reply.
        pub reply_type: Option<MessageType>,
        /// Code of the error.
        pub error: Option<ErrorCode>,
        /// Text of the error.
        pub error_text: Option<Kept<256>>,
        /// Name of the client, with `/` between its parts.
        pub client_name: Option<Kept<256>>,
        /// Realm of the client, as the server states it.
        pub client_realm: Option<Kept<256>>,
        /// Name of the service, with `/` between its parts: of the ticket or the error, or else of the request.
        pub service_name: Option<Kept<256>>,
        /// Realm of the service: of the ticket or the error, or else of the request.
        pub service_realm: Option<Kept<256>>,
        /// NetBIOS name of the client's host, if the request has one.
        pub client_host: Option<Kept<16>>,
        /// Time from which the ticket is requested, if later than now.
        pub start_timestamp: Option<Timestamp>,
        /// Time until which the ticket is requested.
        pub end_timestamp: Option<Timestamp>,
        /// Time until which it may be renewed, as requested.
        pub renewal_end_timestamp: Option<Timestamp>,
        /// True if a ticket that may be forwarded is requested.
        pub forwardable: Option<bool>,
        /// True if a ticket that may be renewed is requested.
        pub renewable: Option<bool>,
        /// Encryption types that the client accepts, in at most 512 octets.
        pub encryption_types: KeptList<512> [sparse],
        /// Types of pre-authentication data of the request, in at most 256 octets.
        pub preauthentication: KeptList<256> [sparse],
        /// Encryption type of the ticket with which the client authenticates, in requests to the ticket-granting service.
        pub granting_ticket_encryption: Option<EncryptionType>,
        /// Encryption type of the ticket in the reply, or of the one that is used: that of the key of the service.
        pub ticket_encryption: Option<EncryptionType>,
        /// Encryption type of the part of the reply that the client can read.
        pub reply_encryption: Option<EncryptionType>,
        /// True if the service accepts a ticket that is used; null if the other protocol does not say it in the clear.
        pub is_accepted: Option<bool>,
        ..
        /// Realm that the request states.
        request_realm: Option<Kept<256>>,
        /// Name of the client that the request states.
        request_client: Option<Kept<256>>,
        /// True if a client authenticates to a service of another protocol.
        uses_ticket: bool,
    }
    /// The requests for tickets with their results.
    zeek "kerberos" ['a] as row if (!row.is_common_error() && !row.uses_ticket) {
        /// `AS` or `TGS`.
        "request_type": Option<Name> = row.request_type.map(|kind| Name(if kind.0 == 10 { "AS" } else { "TGS" }));
        /// Name and realm of the client; of a request to the authentication service, the realm that it states.
        "client": Option<Displayed<String>> = row.client_and_realm().map(Displayed);
        /// `service_name`.
        "service": Option<Text<'a>> = row.service();
        /// True for a ticket, false for an error.
        "success": Option<bool> = row.reply_type.map(|kind| kind.0 != 30);
        /// `error_text`, or else the name of `error`.
        "error_msg": Option<Displayed<String>> = row.error_message().map(Displayed);
        /// `start_timestamp`.
        "from": Option<Timestamp> = row.start_timestamp;
        /// `end_timestamp`.
        "till": Option<Timestamp> = row.end_timestamp;
        /// `ticket_encryption`.
        "cipher": Option<EncryptionType> = row.ticket_encryption;
        /// `forwardable`.
        "forwardable": Option<bool> = row.forwardable;
        /// `renewable`.
        "renewable": Option<bool> = row.renewable;
        /// Subject of the client's certificate: null, certificates are not read.
        "client_cert_subject": Option<Text<'a>> = None;
        /// Identifier of the client's certificate: null.
        "client_cert_fuid": Option<Text<'a>> = None;
        /// Subject of the server's certificate: null.
        "server_cert_subject": Option<Text<'a>> = None;
        /// Identifier of the server's certificate: null.
        "server_cert_fuid": Option<Text<'a>> = None;
    }
    /// Replies and errors.
    eve "krb5" ['a] as (row, from) if (from == Role::Server && row.reply_type.is_some() && !row.uses_ticket) {
        /// `KRB_AS_REP`, `KRB_TGS_REP` or `KRB_ERROR`.
        "msg_type": Name = row.reply_name();
        /// Type of the request that failed: `KRB_AS_REQ` or `KRB_TGS_REQ`, or `UNKNOWN`.
        "failed_request": Option<Name> = row.failed_request();
        /// Name of `error`.
        "error_code": Option<ErrorCode> = row.error;
        /// `client_name`.
        "cname": Option<Text<'a>> = row.client_name.as_ref().map(Kept::text);
        /// `client_realm`; of an error, `service_realm`.
        "realm": Option<Text<'a>> = row.client_realm.as_ref().or(row.service_realm.as_ref()).map(Kept::text);
        /// `service_name`.
        "sname": Option<Text<'a>> = row.service_name.as_ref().map(Kept::text);
        /// `reply_encryption`.
        "encryption": Option<EncryptionType> = row.reply_encryption;
        /// True if `reply_encryption` is weak.
        "weak_encryption": Option<bool> = row.reply_encryption.map(EncryptionType::is_weak);
        /// `ticket_encryption`.
        "ticket_encryption": Option<EncryptionType> = row.ticket_encryption;
        /// True if `ticket_encryption` is weak.
        "ticket_weak_encryption": Option<bool> = row.ticket_encryption.map(EncryptionType::is_weak);
    }
}

impl Exchange {
    fn is_common_error(&self) -> bool {
        self.error_text.as_ref().is_some_and(|text| COMMON_ERRORS.contains(&text.text().0))
    }

    fn client_and_realm(&self) -> Option<String> {
        let text = |kept: &Option<Kept<256>>| {
            kept.as_ref().map(|kept| kept.text().to_str_lossy().into_owned()).unwrap_or_default()
        };
        let is_ticket = matches!(self.reply_type, Some(MessageType(11 | 13)));
        if self.request_type == Some(MessageType(10)) {
            Some(format!("{}/{}", text(&self.request_client), text(&self.request_realm)))
        } else if is_ticket || self.client_name.is_some() {
            Some(format!("{}/{}", text(&self.client_name), text(&self.client_realm)))
        } else {
            self.client_realm.is_some().then(|| text(&self.client_realm))
        }
    }

    fn service(&self) -> Option<Text<'_>> {
        let name = self.service_name.as_ref().map(Kept::text);
        name.or(self.request_type.map(|_| Text(b"")))
    }

    fn error_message(&self) -> Option<String> {
        let code = self.error?;
        Some(match &self.error_text {
            Some(text) => text.text().to_str_lossy().into_owned(),
            None => code.to_string(),
        })
    }

    fn reply_name(&self) -> Name {
        Name(match self.reply_type {
            Some(MessageType(11)) => "KRB_AS_REP",
            Some(MessageType(13)) => "KRB_TGS_REP",
            _ => "KRB_ERROR",
        })
    }

    fn failed_request(&self) -> Option<Name> {
        self.error?;
        Some(Name(match self.request_type {
            Some(MessageType(10)) => "KRB_AS_REQ",
            Some(MessageType(12)) => "KRB_TGS_REQ",
            _ => "UNKNOWN",
        }))
    }

    /// Reads `KDC-REQ` (section 5.4.1). The pre-authentication data are before what the client requests.
    fn request(&mut self, fields: Values<'_>) {
        for (number, content) in numbered(fields) {
            match number {
                3 => self.preauthentication(content),
                4 => self.body(content),
                _ => {}
            }
        }
    }

    fn preauthentication(&mut self, content: &[u8]) {
        for data in sequence(content).captured_values().take(32) {
            let mut kind = None;
            for (number, content) in numbered(Values(data.content)) {
                match number {
                    1 => kind = int32(content).map(PreAuthentication),
                    2 if kind == Some(PreAuthentication(1)) => {
                        self.granting_ticket_encryption = ticket_of_request(content);
                    }
                    _ => {}
                }
            }
            if let Some(kind) = kind {
                self.preauthentication.push(&kind.to_string());
            }
        }
    }

    /// Reads `KDC-REQ-BODY`.
    fn body(&mut self, content: &[u8]) {
        for (number, content) in numbered(sequence(content)) {
            match number {
                0 => {
                    // After the number of unused bits; bit 0 is the first one.
                    let bits = Values(content).next_of(tag::BIT_STRING).unwrap_or_default();
                    self.forwardable = bits.get(1).map(|bits| bits & 0x40 != 0);
                    self.renewable = bits.get(2).map(|bits| bits & 0x80 != 0);
                }
                1 => {
                    self.request_client = principal(content);
                    self.client_name = self.client_name.take().or_else(|| self.request_client.clone());
                }
                2 => {
                    self.request_realm = text(content);
                    self.service_realm = self.service_realm.take().or_else(|| self.request_realm.clone());
                }
                3 => self.service_name = self.service_name.take().or_else(|| principal(content)),
                4 => self.start_timestamp = time(content),
                5 => self.end_timestamp = time(content),
                6 => self.renewal_end_timestamp = time(content),
                8 => {
                    for value in sequence(content).take(32) {
                        if let Some(number) =
                            ber::signed(value.content).and_then(|number| number.try_into().ok())
                        {
                            self.encryption_types.push(&EncryptionType(number).to_string());
                        }
                    }
                }
                9 => self.client_host = sequence(content).find_map(|address| netbios_name(address.content)),
                _ => {}
            }
        }
    }

    /// Reads `KDC-REP` (section 5.4.2).
    fn reply(&mut self, fields: Values<'_>) {
        for (number, content) in numbered(fields) {
            match number {
                3 => self.client_realm = text(content),
                4 => self.client_name = principal(content),
                5 => self.ticket(content),
                6 => self.reply_encryption = encryption(content),
                _ => {}
            }
        }
    }

    fn ticket(&mut self, content: &[u8]) {
        let Some(fields) = Values(content).open(0x61).and_then(|mut ticket| ticket.open(tag::SEQUENCE))
        else {
            return;
        };
        for (number, content) in numbered(fields) {
            match number {
                1 => self.service_realm = text(content),
                2 => self.service_name = principal(content),
                3 => self.ticket_encryption = encryption(content),
                _ => {}
            }
        }
    }

    /// Reads `KRB-ERROR` (section 5.9.1).
    fn failure(&mut self, fields: Values<'_>) {
        for (number, content) in numbered(fields) {
            match number {
                6 => self.error = int32(content).map(ErrorCode),
                7 => self.client_realm = text(content),
                8 => self.client_name = principal(content),
                9 => self.service_realm = text(content),
                10 => self.service_name = principal(content),
                11 => self.error_text = text(content),
                _ => {}
            }
        }
    }
}

/// Returns the fields of a sequence with their numbers. The content of the last one may be truncated.
fn numbered(fields: Values<'_>) -> impl Iterator<Item = (u8, &[u8])> {
    fields.captured_values().map(|Value { tag, content }| (tag.wrapping_sub(tag::CONTEXT_0), content))
}

/// Returns the members of the sequence that a field contains, as far as they were captured.
fn sequence(content: &[u8]) -> Values<'_> {
    Values(content).open(tag::SEQUENCE).unwrap_or_default()
}

fn int32(content: &[u8]) -> Option<i32> {
    Values(content).integer(tag::INTEGER)?.try_into().ok()
}

/// Reads a `KerberosString`, or a realm.
fn text(content: &[u8]) -> Option<Kept<256>> {
    Values(content).next().map(|value| Kept::new(value.content))
}

/// Reads a `KerberosTime`. Times that a timestamp cannot express are left out.
fn time(content: &[u8]) -> Option<Timestamp> {
    let text = Values(content).next_of(tag::GENERALIZED_TIME)?;
    let seconds = u64::try_from(CertificateTime::parse(tag::GENERALIZED_TIME, text)?.0).ok()?;
    seconds.checked_mul(1_000_000_000).map(Timestamp::from_nanos)
}

/// Reads a `PrincipalName` (section 5.2.2): its parts with `/` between them.
fn principal(content: &[u8]) -> Option<Kept<256>> {
    let (_, parts) = numbered(sequence(content)).find(|(number, _)| *number == 1)?;
    let mut name = Vec::new();
    for (place, part) in sequence(parts).take_while(|part| part.content.len() <= 256).take(32).enumerate() {
        if place > 0 {
            name.push(b'/');
        }
        name.extend_from_slice(part.content);
    }
    Some(Kept::new(&name))
}

/// Reads the encryption type of `EncryptedData` (section 5.2.9).
fn encryption(content: &[u8]) -> Option<EncryptionType> {
    let (_, kind) = numbered(sequence(content)).find(|(number, _)| *number == 0)?;
    int32(kind).map(EncryptionType)
}

/// Returns the ticket in the fields of `AP-REQ` (section 5.5.1).
fn used_ticket(fields: Values<'_>) -> Option<&[u8]> {
    numbered(fields).find(|(number, _)| *number == 3).map(|(_, ticket)| ticket)
}

/// Returns the encryption type of the ticket in `AP-REQ`.
fn ticket_of_request(content: &[u8]) -> Option<EncryptionType> {
    let request = Values(content).open(tag::OCTET_STRING)?.open(0x6E)?.open(tag::SEQUENCE)?;
    let ticket = Values(used_ticket(request)?).open(0x61)?.open(tag::SEQUENCE)?;
    let (_, encrypted) = numbered(ticket).find(|(number, _)| *number == 3)?;
    encryption(encrypted)
}

/// Returns the NetBIOS name of a `HostAddress` (section 7.5.3), without the spaces that fill it.
fn netbios_name(address: &[u8]) -> Option<Kept<16>> {
    let (mut is_name, mut name) = (false, None);
    for (number, content) in numbered(Values(address)) {
        match number {
            0 => is_name = int32(content) == Some(20),
            1 => name = Values(content).next_of(tag::OCTET_STRING),
            _ => {}
        }
    }
    name.filter(|_| is_name).map(|name| Kept::new(name.trim_ascii_end()))
}

open! {
    /// Rows of Kerberos.
    pub(crate) enum Row { 0 = Exchange }
}

/// Parser of Kerberos.
#[derive(Debug, Default)]
pub(crate) struct Kerberos {
    /// Type of the last request: an error does not state to which one it belongs.
    requested: u8,
}

state! { struct Kerberos { requested } }

impl PduParser for Kerberos {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    // RFC 4120 section 7.2.2: the first bit of the length is reserved.
    const FRAMING: Option<Framing> = Some(Framing::prefix(Width::U32).len_max(1 << 24).keep(16 << 10));
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let tag = *pdu.bytes.first().ok_or(Malformed)?;
        let open = || Values(pdu.bytes).open(tag)?.open(tag::SEQUENCE);
        // The number of the tag is that of the type.
        let number = tag & 0x1F;
        let kind = Some(MessageType(number));
        match tag {
            message::AS_REQUEST | message::TGS_REQUEST => {
                let fields = open().ok_or(Malformed)?;
                rows.acts_as(Role::Client);
                self.requested = number;
                rows.request_of(number.into(), fnv1a(pdu.bytes) as u32, |row: &mut Exchange| {
                    row.request_type = kind;
                    row.request(fields);
                });
            }
            message::AS_REPLY | message::TGS_REPLY | message::ERROR => {
                let fields = open().ok_or(Malformed)?;
                rows.acts_as(Role::Server);
                let key = if tag == message::ERROR { self.requested.max(10) } else { number - 1 };
                rows.response(key.into(), |row: &mut Exchange| {
                    row.reply_type = kind;
                    if tag == message::ERROR {
                        row.failure(fields)
                    } else {
                        row.reply(fields)
                    }
                    Reply::Last
                });
            }
            // Messages of applications, and those of the change of a password.
            0x60..=0x7F => {}
            _ => return Err(Malformed),
        }
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram};
    use super::PROTOCOL;

    const AS_REQUEST: &[u8] =
        b"\x6A\x12\x30\x10\xA1\x03\x02\x01\x05\xA2\x03\x02\x01\x0A\xA3\x04\x30\x02\x30\x00";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&PROTOCOL, 88, AS_REQUEST),
        // An error without its version.
        datagram(&PROTOCOL, 88, b"\x7E\x07\x30\x05\xA6\x03\x02\x01\x19"),
        client(
            &PROTOCOL,
            88,
            b"\x00\x00\x00\x14\x6A\x12\x30\x10\xA1\x03\x02\x01\x05\xA2\x03\x02\x01\x0A\xA3\x04\x30\x02\x30\x00",
        ),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        // SNMP has its version in place of the message id, and a community or a sequence after it.
        datagram(
            &PROTOCOL,
            88,
            b"\x6A\x12\x30\x10\xA1\x03\x02\x01\x04\xA2\x03\x02\x01\x0A\xA3\x04\x30\x02\x30\x00",
        ),
        datagram(&PROTOCOL, 40_000, b"\x7E\x07\x30\x05\xA6\x03\x02\x01\x19"),
        client(&PROTOCOL, 88, b"\x00\x00\x00\x14\x16\x03\x01\x00"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ber::encoded;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn field(number: u8, parts: &[&[u8]]) -> Vec<u8> {
        encoded(0xA0 | number, parts)
    }

    fn int(number: u8, value: u8) -> Vec<u8> {
        field(number, &[&[2, 1, value]])
    }

    fn string(number: u8, text: &str) -> Vec<u8> {
        field(number, &[&encoded(0x1B, &[text.as_bytes()])])
    }

    fn name(number: u8, parts: &[&str]) -> Vec<u8> {
        let parts: Vec<_> = parts.iter().flat_map(|part| encoded(0x1B, &[part.as_bytes()])).collect();
        field(number, &[&encoded(0x30, &[&int(0, 1), &field(1, &[&encoded(0x30, &[&parts])])])])
    }

    fn encrypted(number: u8, kind: u8) -> Vec<u8> {
        field(number, &[&encoded(0x30, &[&int(0, kind), &field(2, &[&encoded(4, &[b"secret"])])])])
    }

    fn message(tag: u8, fields: &[&[u8]]) -> Vec<u8> {
        encoded(tag, &[&encoded(0x30, fields)])
    }

    fn ticket(number: u8, service: &[&str], kind: u8) -> Vec<u8> {
        let fields = [int(0, 5), string(1, "EXAMPLE.ORG"), name(2, service), encrypted(3, kind)].concat();
        field(number, &[&message(0x61, &[&fields])])
    }

    fn request(tag: u8, padata: &[u8], client: Option<&str>, service: &[&str], nonce: u8) -> Vec<u8> {
        let time = |number, text: &str| field(number, &[&encoded(0x18, &[text.as_bytes()])]);
        let address = encoded(0x30, &[&int(0, 20), &field(1, &[&encoded(4, &[b"DESK-7          "])])]);
        let body = [
            field(0, &[&[3, 5, 0, 0x40, 0x81, 0, 0x10]]),
            client.map(|client| name(1, &[client])).unwrap_or_default(),
            string(2, "EXAMPLE.ORG"),
            name(3, service),
            time(5, "20260101120000Z"),
            time(6, "20260108120000Z"),
            int(7, nonce),
            field(8, &[&encoded(0x30, &[&[2, 1, 18, 2, 1, 23, 2, 2, 0xFF, 0x7B]])]),
            field(9, &[&encoded(0x30, &[&address])]),
        ]
        .concat();
        let kind = tag & 0x1F;
        message(tag, &[&int(1, 5), &int(2, kind), padata, &field(4, &[&encoded(0x30, &[&body])])])
    }

    fn reply(tag: u8, service: &[&str], kind: u8) -> Vec<u8> {
        let fields = [int(0, 5), int(1, tag & 0x1F), string(3, "EXAMPLE.ORG"), name(4, &["nemo"])].concat();
        message(tag, &[&fields, &ticket(5, service, kind), &encrypted(6, 18)])
    }

    fn error(code: u8, text: Option<&str>) -> Vec<u8> {
        let fields = [int(0, 5), int(1, 30), int(5, 0), int(6, code), string(9, "EXAMPLE.ORG")].concat();
        let service = name(10, &["krbtgt", "EXAMPLE.ORG"]);
        message(0x7E, &[&fields, &service, &text.map(|text| string(11, text)).unwrap_or_default()])
    }

    fn cases() -> Vec<Case> {
        let padata = |parts: &[u8]| field(3, &[&encoded(0x30, &[parts])]);
        let data = |kind, value: &[u8]| encoded(0x30, &[&int(1, kind), &field(2, &[&encoded(4, &[value])])]);
        let timestamp = padata(&data(2, b"secret"));
        let tgt = ticket(3, &["krbtgt", "EXAMPLE.ORG"], 18);
        let application = message(0x6E, &[&int(0, 5), &int(1, 14), &field(2, &[&[3, 1, 0]]), &tgt]);
        let granting = padata(&data(1, &application));
        let krbtgt = ["krbtgt", "EXAMPLE.ORG"];
        let web = ["HTTP", "web.example.org"];
        vec![
            Case {
                name: "a login, first without pre-authentication",
                turns: vec![
                    (CLIENT, request(0x6A, &[], Some("nemo"), &krbtgt, 1)),
                    (SERVER, error(25, Some("NEEDED_PREAUTH"))),
                    (CLIENT, request(0x6A, &timestamp, Some("nemo"), &krbtgt, 2)),
                    (SERVER, reply(0x6B, &krbtgt, 18)),
                ],
                rows: &[
                    "kerberos request_type=as_request reply_type=error error=KDC_ERR_PREAUTH_REQUIRED \
                    error_text=NEEDED_PREAUTH client_name=nemo service_name=krbtgt/EXAMPLE.ORG service_realm=EXAMPLE.ORG \
                    client_host=DESK-7 end_timestamp=1767268800s renewal_end_timestamp=1767873600s forwardable=Bool(true) \
                    renewable=Bool(true) encryption_types=List([Text(\"aes256-cts-hmac-sha1-96\"), Text(\"rc4-hmac\"), \
                    Text(\"-133\")]) response_time=10ms",
                    "kerberos request_type=as_request reply_type=as_reply client_name=nemo client_realm=EXAMPLE.ORG \
                    service_name=krbtgt/EXAMPLE.ORG service_realm=EXAMPLE.ORG client_host=DESK-7 end_timestamp=1767268800s \
                    renewal_end_timestamp=1767873600s forwardable=Bool(true) renewable=Bool(true) \
                    encryption_types=List([Text(\"aes256-cts-hmac-sha1-96\"), Text(\"rc4-hmac\"), Text(\"-133\")]) \
                    preauthentication=List([Text(\"enc_timestamp\")]) ticket_encryption=aes256-cts-hmac-sha1-96 \
                    reply_encryption=aes256-cts-hmac-sha1-96 response_time=10ms",
                ],
            },
            Case {
                name: "a ticket for a service with weak encryption",
                turns: vec![
                    (CLIENT, request(0x6C, &granting, None, &web, 3)),
                    (SERVER, reply(0x6D, &web, 23)),
                ],
                rows: &[
                    "kerberos request_type=tgs_request reply_type=tgs_reply client_name=nemo client_realm=EXAMPLE.ORG \
                    service_name=HTTP/web.example.org service_realm=EXAMPLE.ORG client_host=DESK-7 end_timestamp=1767268800s \
                    renewal_end_timestamp=1767873600s forwardable=Bool(true) renewable=Bool(true) \
                    encryption_types=List([Text(\"aes256-cts-hmac-sha1-96\"), Text(\"rc4-hmac\"), Text(\"-133\")]) \
                    preauthentication=List([Text(\"tgs_req\")]) granting_ticket_encryption=aes256-cts-hmac-sha1-96 \
                    ticket_encryption=rc4-hmac reply_encryption=aes256-cts-hmac-sha1-96 response_time=10ms",
                ],
            },
            Case {
                name: "a reply without its request, and a request without a reply",
                turns: vec![
                    (SERVER, reply(0x6B, &krbtgt, 18)),
                    (CLIENT, request(0x6C, &granting, None, &web, 4)),
                ],
                rows: &[
                    "kerberos reply_type=as_reply client_name=nemo client_realm=EXAMPLE.ORG service_name=krbtgt/EXAMPLE.ORG \
                    service_realm=EXAMPLE.ORG ticket_encryption=aes256-cts-hmac-sha1-96 reply_encryption=aes256-cts-hmac-sha1-96 \
                    lacks=request",
                    "kerberos request_type=tgs_request service_name=HTTP/web.example.org service_realm=EXAMPLE.ORG \
                    client_host=DESK-7 end_timestamp=1767268800s renewal_end_timestamp=1767873600s forwardable=Bool(true) \
                    renewable=Bool(true) encryption_types=List([Text(\"aes256-cts-hmac-sha1-96\"), Text(\"rc4-hmac\"), \
                    Text(\"-133\")]) preauthentication=List([Text(\"tgs_req\")]) \
                    granting_ticket_encryption=aes256-cts-hmac-sha1-96 lacks=response",
                ],
            },
            Case {
                name: "an unknown user",
                turns: vec![
                    (CLIENT, request(0x6A, &[], Some("nobody"), &krbtgt, 5)),
                    (SERVER, error(6, None)),
                ],
                rows: &[
                    "kerberos request_type=as_request reply_type=error error=KDC_ERR_C_PRINCIPAL_UNKNOWN client_name=nobody \
                    service_name=krbtgt/EXAMPLE.ORG service_realm=EXAMPLE.ORG client_host=DESK-7 end_timestamp=1767268800s \
                    renewal_end_timestamp=1767873600s forwardable=Bool(true) renewable=Bool(true) \
                    encryption_types=List([Text(\"aes256-cts-hmac-sha1-96\"), Text(\"rc4-hmac\"), Text(\"-133\")]) \
                    response_time=10ms",
                ],
            },
        ]
    }

    #[test]
    fn cases_of_datagrams() {
        check(&KitEntry::of::<Kerberos>(), &cases());
    }

    #[test]
    fn cases_of_streams() {
        let mut cases = cases();
        for (_, octets) in cases.iter_mut().flat_map(|case| &mut case.turns) {
            *octets = [&(octets.len() as u32).to_be_bytes()[..], octets].concat();
        }
        check_stream(&KitEntry::of::<Kerberos>(), &cases);
    }
}
