//! DCE/RPC, over TCP and over UDP: calls by the names of interface and operation.
//!
//! | row | when |
//! |---|---|
//! | [`Call`] | a call with its response or fault |
//! | [`Binding`] | the interfaces that a client asks for, with the answer of the server |
//! | [`Endpoint`] | each endpoint in an answer to `ept_map` of the endpoint mapper, over a connection |
//! | [`Authentication`] | an authentication with NTLM |
//! | [`kerberos::Exchange`](super::kerberos::Exchange) | an authentication with a ticket of Kerberos |
//!
//! Calls are matched by their number, and interfaces by the number of their context. Parameters and results are not read,
//! except for the results of `ept_map`. A call in several fragments has the length that its first one states.
//!
//! Standards: C706 chapter 12, [MS-RPCE].

mod endpoint;
mod fields;
mod interfaces;
mod recognition;
mod rows;

pub use recognition::PROTOCOL;
pub use rows::{AuthenticationKind, AuthenticationLevel, Binding, Call, Endpoint, EndpointTransport, Uuid};

use super::gss;
use super::kerberos::Exchange as Ticket;
use super::ntlm::Authentication;
use crate::base::fnv1a;
use crate::checkpoint::state;
use crate::codec::{ReadError, Reader};
use crate::session::framing::{AfterPdu, Cut, Framing, Pdu, Width};
use crate::session::kit::{Kept, KeptList, Malformed, Measured, Open, PduParser, Reply, Rows, Stored, open};
use crate::session::{Fault, Protocol, Role};
use fields::Fields;
use recognition::kind;

/// Length of the head of version 5.
const HEAD_LEN: u64 = 16;

open! {
    /// Rows of DCE/RPC.
    pub(crate) enum Row { 0 = Call, 1 = Binding, 2 = Authentication, 3 = Endpoint, 4 = Ticket in Box }
}

/// Key of the row of an authentication.
const AUTHENTICATION: u64 = 1 << 63;

/// Maximum number of contexts that are known.
const CONTEXT_COUNT_MAX: usize = 32;

/// Parser of DCE/RPC.
#[derive(Debug, Default)]
pub(crate) struct Dcerpc {
    /// Numbers of contexts with their interfaces.
    contexts: Vec<Context>,
    /// Address of the endpoint that the server states.
    address: Option<Kept<64>>,
}

/// A context of a connection.
#[derive(Clone, Debug)]
struct Context {
    id: u16,
    uuid: Uuid,
}

state! { struct Context { id, uuid } }
state! { struct Dcerpc { contexts, address } if |parser| parser.contexts.len() <= CONTEXT_COUNT_MAX }

fn cut(_: Role, octets: &[u8]) -> Cut {
    match octets {
        [5, _, _, _, order, ..] if order & 0xF0 == 0 => Framing::length(8, Width::U16).measure(octets),
        [5, _, _, _, _, ..] => Framing::length(8, Width::U16_LE).measure(octets),
        [5, ..] => Cut::Need(10),
        _ => Cut::Bad(Fault::new("malformed")),
    }
}

impl PduParser for Dcerpc {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::by(cut).keep(8 << 10));
    const OPEN_MAX: usize = 32;
    type Row = Row;

    fn heap_len(&self) -> usize {
        self.contexts.capacity() * size_of::<Context>() + self.address.heap_len()
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let is_little = pdu.bytes.get(4).is_some_and(|order| order & 0xF0 != 0);
        let mut fields = Fields { reader: Reader::new(pdu.bytes), is_little };
        if rows.is_in_stream() {
            self.connected(&mut fields, pdu, 0, rows)
        } else {
            datagram(&mut fields, rows)
        }?;
        Ok(AfterPdu::More)
    }
}

/// Flags of a fragment.
const FIRST: u8 = 1;
const LAST: u8 = 2;
const OBJECT: u8 = 0x80;

impl Dcerpc {
    /// Returns whether octets are a whole PDU of version 5.
    pub(super) fn is_whole(octets: &[u8]) -> bool {
        matches!(octets, [5, 0..=1, 0..=20, ..]) && cut(Role::Client, octets) == Cut::Pdu(octets.len() as u64)
    }

    /// Processes the PDUs that a message of another protocol transfers, as far as they were captured. The key tells its rows
    /// from those of other pipes.
    pub(super) fn piped<R>(&mut self, octets: &[u8], key: u64, rows: &mut Rows<'_, R>)
    where
        R: Open + Stored<Call> + Stored<Binding> + Stored<Authentication> + Stored<Ticket>,
    {
        let mut rest = octets;
        while let [5, 0..=1, 0..=20, ..] = rest {
            let Cut::Pdu(len) = cut(Role::Client, rest) else { return };
            let bytes = usize::try_from(len).ok().and_then(|len| rest.get(..len)).unwrap_or(rest);
            let is_little = bytes.get(4).is_some_and(|order| order & 0xF0 != 0);
            let mut fields = Fields { reader: Reader::new(bytes), is_little };
            let (from, timestamp) = (rows.from(), rows.now());
            // What is malformed has no rows.
            let pdu = Pdu { bytes, len, offset: 0, is_rest: false, from, timestamp };
            let _ = self.connected(&mut fields, &pdu, key, rows);
            rest = rest.get(bytes.len()..).unwrap_or_default();
            if len < HEAD_LEN {
                return;
            }
        }
    }

    /// Processes a PDU of version 5.
    fn connected<R>(
        &mut self,
        fields: &mut Fields<'_>,
        pdu: &Pdu<'_>,
        key: u64,
        rows: &mut Rows<'_, R>,
    ) -> Result<(), ReadError>
    where
        R: Open + Stored<Call> + Stored<Binding> + Stored<Authentication> + Stored<Ticket>,
    {
        let [_, _, kind, flags, _, _, _, _]: [u8; 8] = fields.reader.array()?;
        let (_, authentication_len, call_id): (u16, u16, u32) =
            (fields.number()?, fields.number()?, fields.number()?);
        // The authentication is at the end, after eight octets with its kind and level.
        let trailer = usize::from(authentication_len)
            .checked_add(8)
            .filter(|len| *len > 8 && !pdu.is_truncated())
            .and_then(|len| pdu.bytes.get(pdu.bytes.len().checked_sub(len)?..));
        let level = trailer.and_then(|trailer| trailer.get(1).copied()).map(AuthenticationLevel);
        let (authentication, key) = (AUTHENTICATION ^ key, key ^ u64::from(call_id));
        match kind {
            kind::REQUEST if flags & FIRST != 0 => {
                let (len, context_id, number): (u32, u16, u16) =
                    (fields.number()?, fields.number()?, fields.number()?);
                if flags & OBJECT != 0 {
                    fields.uuid()?;
                }
                let uuid =
                    self.contexts.iter().find(|context| context.id == context_id).map(|context| context.uuid);
                let address = self.address.clone();
                rows.request(key, |row: &mut Call| {
                    (row.call_id, row.context_id, row.operation_number) = (call_id, context_id, Some(number));
                    (row.parameters_len, row.authentication_level) = (Some(len), level);
                    row.endpoint_address = address;
                    if let Some(uuid) = uuid {
                        row.name(uuid);
                    }
                });
            }
            kind::RESPONSE | kind::FAULT => {
                let (len, context_id): (u32, u16) = (fields.number()?, fields.number()?);
                let [_, _] = fields.reader.array()?;
                let status = if kind == kind::FAULT { Some(fields.number()?) } else { None };
                rows.response(key, |row: &mut Call| {
                    (row.call_id, row.context_id) = (call_id, context_id);
                    if flags & FIRST != 0 {
                        row.results_len = Some(len);
                    }
                    row.fault_status = status.or(row.fault_status);
                    if flags & LAST == 0 { Reply::More } else { Reply::Last }
                });
                let is_mapper =
                    |context: &Context| context.id == context_id && context.uuid.number() == endpoint::MAPPER;
                if kind == kind::RESPONSE && flags & FIRST != 0 && self.contexts.iter().any(is_mapper) {
                    // Results of another operation end early.
                    let _ = endpoint::mapped(fields, |endpoint| rows.single(endpoint));
                }
            }
            kind::BIND | kind::ALTER_CONTEXT => {
                let mut interfaces = KeptList::default();
                self.contexts(fields, &mut interfaces)?;
                rows.request(key, |row: &mut Binding| {
                    row.interfaces = interfaces;
                    row.authentication_kind =
                        trailer.and_then(|trailer| trailer.first().copied()).map(AuthenticationKind);
                    row.authentication_level = level;
                });
            }
            kind::BIND_ACK | kind::ALTER_CONTEXT_RESPONSE => {
                let accepted_count = self.answers(fields)?;
                let address = self.address.clone();
                rows.response(key, |row: &mut Binding| {
                    (row.accepted_count, row.endpoint_address) = (Some(accepted_count), address);
                    Reply::Last
                });
            }
            kind::BIND_NAK => {
                rows.response(key, |row: &mut Binding| {
                    row.accepted_count = Some(0);
                    Reply::Last
                });
                gss::result(false, authentication, rows);
            }
            _ => {}
        }
        let has_token = matches!(
            kind,
            kind::BIND | kind::BIND_ACK | kind::ALTER_CONTEXT | kind::ALTER_CONTEXT_RESPONSE | kind::AUTH3
        );
        if let Some(trailer) = trailer.filter(|_| has_token) {
            gss::read(trailer.get(8..).unwrap_or_default(), authentication, false, rows);
        }
        Ok(())
    }

    /// Reads the contexts of a bind, and lists their interfaces.
    fn contexts(&mut self, fields: &mut Fields<'_>, interfaces: &mut KeptList<512>) -> Result<(), ReadError> {
        fields.reader.skip(8)?;
        let [count, _, _, _] = fields.reader.array()?;
        for _ in 0..count {
            let id: u16 = fields.number()?;
            let [syntax_count, _] = fields.reader.array()?;
            let uuid = fields.uuid()?;
            fields.reader.skip(4 + 20 * usize::from(syntax_count))?;
            match uuid.interface() {
                Some(interface) => interfaces.push(interface.name),
                None => interfaces.push(&uuid.to_string()),
            }
            self.contexts.retain(|context| context.id != id);
            if self.contexts.len() < CONTEXT_COUNT_MAX {
                self.contexts.push(Context { id, uuid });
            }
        }
        Ok(())
    }

    /// Reads the address and the results of an answer to a bind. Returns the number of interfaces that are accepted.
    fn answers(&mut self, fields: &mut Fields<'_>) -> Result<u32, ReadError> {
        fields.reader.skip(8)?;
        let len: u16 = fields.number()?;
        let address = fields.reader.bytes(len.into())?;
        let address = address.strip_suffix(b"\0").unwrap_or(address);
        if !address.is_empty() {
            self.address = Some(Kept::new(address));
        }
        // The results are aligned to four octets.
        fields.reader.skip(fields.reader.offset().wrapping_neg() % 4)?;
        let [count, _, _, _] = fields.reader.array()?;
        let mut accepted_count = 0;
        for _ in 0..count {
            let result: u16 = fields.number()?;
            accepted_count += u32::from(result == 0);
            fields.reader.skip(2 + 20)?;
        }
        Ok(accepted_count)
    }
}

/// Processes a PDU of version 4.
fn datagram(fields: &mut Fields<'_>, rows: &mut Rows<'_, Row>) -> Result<(), ReadError> {
    let [_, kind, _, _, _, _, _, _]: [u8; 8] = fields.reader.array()?;
    let (_, uuid, activity) = (fields.uuid()?, fields.uuid()?, fields.uuid()?);
    fields.reader.skip(8)?;
    let (call_id, number): (u32, u16) = (fields.number()?, fields.number()?);
    fields.reader.skip(4)?;
    let len: u16 = fields.number()?;
    // The number of the fragment, the kind of authentication, and the rest of another number.
    let fragment: u16 = fields.number()?;
    fields.reader.skip(2)?;
    let key = fnv1a(&activity.octets) << 32 >> 1 | u64::from(call_id);
    match kind {
        kind::REQUEST if fragment == 0 => {
            rows.acts_as(Role::Client);
            rows.request(key, |row: &mut Call| {
                (row.call_id, row.operation_number) = (call_id, Some(number));
                row.parameters_len = Some(len.into());
                row.set_datagram(activity);
                row.name(uuid);
            });
        }
        kind::RESPONSE | kind::FAULT | kind::REJECT if fragment == 0 => {
            rows.acts_as(Role::Server);
            let status = if kind == kind::RESPONSE { None } else { Some(fields.number()?) };
            rows.response(key, |row: &mut Call| {
                (row.call_id, row.operation_number) = (call_id, Some(number));
                (row.results_len, row.fault_status) = (Some(len.into()), status);
                row.set_datagram(activity);
                row.name(uuid);
                Reply::Last
            });
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram};
    use super::PROTOCOL;

    /// A datagram of version 4 without parameters.
    const PING: [u8; 80] = {
        let mut octets = [0; 80];
        (octets[0], octets[1], octets[4]) = (4, 1, 0x10);
        octets
    };

    /// The same, with a length that is not that of the datagram.
    const OTHER_LEN: [u8; 80] = {
        let mut octets = PING;
        octets[74] = 1;
        octets
    };

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 135, b"\x05\x00\x0B\x03\x10\x00\x00\x00\x48\x00\x00\x00\x01\x00\x00\x00"),
        datagram(&PROTOCOL, 135, &PING),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 135, b"\x05\x01\x00\x00\x00\x00\x00\x00\x48\x00\x00\x00"),
        datagram(&PROTOCOL, 135, &OTHER_LEN),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    /// A PDU of version 5, whose authentication has a kind, level 6, and a token.
    fn pdu(kind: u8, flags: u8, call_id: u8, body: &[u8], token: Option<(u8, &[u8])>) -> Vec<u8> {
        let trailer =
            token.map(|(kind, token)| [&[kind, 6, 0, 0, 1, 0, 0, 0], token].concat()).unwrap_or_default();
        let token_len = token.map_or(0, |(_, token)| token.len());
        let len = 16 + body.len() + trailer.len();
        [
            &[
                5,
                0,
                kind,
                flags,
                0x10,
                0,
                0,
                0,
                len as u8,
                (len >> 8) as u8,
                token_len as u8,
                0,
                call_id,
                0,
                0,
                0,
            ][..],
            body,
            &trailer,
        ]
        .concat()
    }

    /// The identifier as it is sent, with its first fields in little-endian order.
    fn uuid(number: u128) -> Vec<u8> {
        let octets = number.to_be_bytes();
        let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        order.map(|place: usize| octets[place]).to_vec()
    }

    const EPMAPPER: u128 = 0xe1af8308_5d1f_11c9_91a4_08002b14a0fa;

    fn bind(interfaces: &[u128]) -> Vec<u8> {
        let mut body = vec![0xB8, 0x10, 0xB8, 0x10, 0, 0, 0, 0, interfaces.len() as u8, 0, 0, 0];
        for (place, interface) in interfaces.iter().enumerate() {
            body.extend([place as u8, 0, 1, 0]);
            body.extend(uuid(*interface));
            body.extend([3, 0, 0, 0]);
            body.extend([0; 20]);
        }
        body
    }

    fn bind_ack(results: &[u8]) -> Vec<u8> {
        let mut body = vec![0xB8, 0x10, 0xB8, 0x10, 1, 0, 0, 0, 4, 0, b'1', b'3', b'5', 0, 0, 0];
        body.extend([results.len() as u8, 0, 0, 0]);
        for result in results {
            body.extend([*result, 0, 0, 0]);
            body.extend([0; 20]);
        }
        body
    }

    fn call(context: u8, number: u8) -> Vec<u8> {
        [&[8, 0, 0, 0, context, 0, number, 0][..], b"stubstub"].concat()
    }

    /// A response with a tower of the service control manager, over TCP.
    fn mapped() -> Vec<u8> {
        let floors: [(&[u8], &[u8]); 5] = [
            (&[&[0x0D], &uuid(0x367abb81_9844_35f1_ad32_98f038001003)[..], &[2, 0]].concat(), &[0, 0]),
            (&[&[0x0D], &uuid(0x8a885d04_1ceb_11c9_9fe8_08002b104860)[..], &[2, 0]].concat(), &[0, 0]),
            (&[0x0B], &[0, 0]),
            (&[7], &[0xC0, 0x05]),
            (&[9], &[192, 0, 2, 7]),
        ];
        let mut tower = vec![floors.len() as u8, 0];
        for part in floors.iter().flat_map(|(left, right)| [left, right]) {
            tower.extend([part.len() as u8, 0]);
            tower.extend_from_slice(part);
        }
        let len = tower.len() as u8;
        let mut body = vec![8, 0, 0, 0, 0, 0, 0, 0];
        body.extend([0; 20]);
        body.extend([1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, len, 0, 0, 0, len, 0, 0, 0]);
        body.extend(tower);
        body.resize(body.len().next_multiple_of(4) + 4, 0);
        body
    }

    /// A message of NTLM: its fixed part, with the texts at the end.
    fn ntlm(kind: u8, head_len: usize, values: &[(usize, &[u8])]) -> Vec<u8> {
        let mut octets = [b"NTLMSSP\0".as_slice(), &[kind]].concat();
        octets.resize(head_len, 0);
        for (at, value) in values {
            let (len, offset) = (value.len() as u8, octets.len() as u8);
            octets[*at] = len;
            octets[at + 4] = offset;
            octets.extend_from_slice(value);
        }
        octets
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn cases_of_connections() {
        let mut challenge = ntlm(
            2,
            56,
            &[(40, &[&[1, 0, 8, 0][..], &utf16("HOST"), &[3, 0, 6, 0], &utf16("h.x"), &[0; 4]].concat())],
        );
        challenge[23] = 2;
        challenge[48..52].copy_from_slice(&[10, 0, 0x61, 0x4A]);
        let names = [utf16("CORP"), utf16("nemo"), utf16("DESK-7")];
        let mut last = ntlm(3, 72, &[(20, &[7; 24]), (28, &names[0]), (36, &names[1]), (44, &names[2])]);
        last[60] = 1;
        let first = ntlm(1, 32, &[]);
        let cases = [
            Case {
                name: "a binding and calls, with a fault and a response in two fragments",
                turns: vec![
                    (CLIENT, pdu(kind::BIND, 3, 1, &bind(&[EPMAPPER, 7]), None)),
                    (SERVER, pdu(kind::BIND_ACK, 3, 1, &bind_ack(&[0, 2]), None)),
                    (CLIENT, pdu(kind::REQUEST, 3, 2, &call(0, 3), None)),
                    (SERVER, pdu(kind::RESPONSE, 1, 2, &call(0, 0), None)),
                    (SERVER, pdu(kind::RESPONSE, 2, 2, &call(0, 0), None)),
                    (CLIENT, pdu(kind::REQUEST, 3, 3, &call(1, 9), None)),
                    (SERVER, pdu(kind::FAULT, 3, 3, b"\x20\0\0\0\x01\0\0\0\x03\0\x01\x1C\0\0\0\0", None)),
                ],
                rows: &[
                    "dcerpc_binding interfaces=List([Text(\"epmapper\"), Text(\"00000000-0000-0000-0000-000000000007\")]) \
                    accepted_count=1 endpoint_address=135 response_time=10ms",
                    "dcerpc interface=epmapper interface_id=e1af8308-5d1f-11c9-91a4-08002b14a0fa operation=ept_map \
                    operation_number=3 call_id=2 endpoint_address=135 parameters_len=8 results_len=8 response_time=10ms",
                    "dcerpc interface_id=00000000-0000-0000-0000-000000000007 operation_number=9 call_id=3 context_id=1 \
                    endpoint_address=135 parameters_len=8 results_len=32 fault_status=469827587 response_time=10ms",
                ],
            },
            Case {
                name: "an authentication with NTLM",
                turns: vec![
                    (CLIENT, pdu(kind::BIND, 3, 1, &bind(&[EPMAPPER]), Some((10, &first)))),
                    (SERVER, pdu(kind::BIND_ACK, 3, 1, &bind_ack(&[0]), Some((10, &challenge)))),
                    (CLIENT, pdu(kind::AUTH3, 3, 1, &[0; 4], Some((10, &last)))),
                    (CLIENT, pdu(kind::REQUEST, 3, 2, &call(0, 2), Some((10, b"signature_______")))),
                ],
                rows: &[
                    "dcerpc_binding interfaces=List([Text(\"epmapper\")]) accepted_count=1 endpoint_address=135 \
                    authentication_kind=ntlm authentication_level=privacy response_time=10ms",
                    "ntlm user_name=nemo user_domain=CORP client_host=DESK-7 server_host=HOST server_dns_host=h.x \
                    server_version=10.0.19041 response_version=ntlm_v1 response_time=10ms",
                    "dcerpc interface=epmapper interface_id=e1af8308-5d1f-11c9-91a4-08002b14a0fa operation=ept_lookup \
                    operation_number=2 call_id=2 endpoint_address=135 parameters_len=8 authentication_level=privacy \
                    lacks=response",
                ],
            },
            Case {
                name: "an endpoint",
                turns: vec![
                    (CLIENT, pdu(kind::BIND, 3, 1, &bind(&[EPMAPPER]), None)),
                    (SERVER, pdu(kind::BIND_ACK, 3, 1, &bind_ack(&[0]), None)),
                    (CLIENT, pdu(kind::REQUEST, 3, 2, &call(0, 3), None)),
                    (SERVER, pdu(kind::RESPONSE, 3, 2, &mapped(), None)),
                ],
                rows: &[
                    "dcerpc_binding interfaces=List([Text(\"epmapper\")]) accepted_count=1 endpoint_address=135 \
                    response_time=10ms",
                    "dcerpc interface=epmapper interface_id=e1af8308-5d1f-11c9-91a4-08002b14a0fa operation=ept_map \
                    operation_number=3 call_id=2 endpoint_address=135 parameters_len=8 results_len=8 response_time=10ms",
                    "dcerpc_endpoint interface=svcctl interface_id=367abb81-9844-35f1-ad32-98f038001003 \
                    mapped_transport=tcp mapped_address=Address(192.0.2.7) mapped_port=49157",
                ],
            },
            Case {
                name: "a refusal, and a call without its binding",
                turns: vec![
                    (CLIENT, pdu(kind::BIND, 3, 1, &bind(&[EPMAPPER]), None)),
                    (SERVER, pdu(kind::BIND_NAK, 3, 1, &[8, 0, 0, 0], None)),
                    (CLIENT, pdu(kind::REQUEST, 3, 2, &call(5, 2), None)),
                    (SERVER, pdu(kind::RESPONSE, 3, 2, &call(5, 0), None)),
                ],
                rows: &[
                    "dcerpc_binding interfaces=List([Text(\"epmapper\")]) response_time=10ms",
                    "dcerpc operation_number=2 call_id=2 context_id=5 parameters_len=8 results_len=8 response_time=10ms",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Dcerpc>(), &cases);
    }

    /// A datagram of version 4.
    fn packet(kind: u8, call_id: u8, number: u8, body: &[u8]) -> Vec<u8> {
        let mut octets = vec![4, kind, 0, 0, 0x10, 0, 0, 0];
        octets.extend([0; 16]);
        octets.extend(uuid(EPMAPPER));
        octets.extend([9; 16]);
        octets.extend([0, 0, 0, 0, 3, 0, 0, 0, call_id, 0, 0, 0, number, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        octets.extend([body.len() as u8, 0, 0, 0, 0, 0]);
        [octets, body.to_vec()].concat()
    }

    #[test]
    fn cases_of_datagrams() {
        let cases = [Case {
            name: "a call that is repeated, and one that fails",
            turns: vec![
                (CLIENT, packet(kind::REQUEST, 1, 3, b"stub")),
                (CLIENT, packet(kind::REQUEST, 1, 3, b"stub")),
                (SERVER, packet(kind::RESPONSE, 1, 3, b"results")),
                (CLIENT, packet(kind::REQUEST, 2, 9, b"")),
                (SERVER, packet(kind::FAULT, 2, 9, &[5, 0, 0, 0])),
            ],
            rows: &[
                "dcerpc interface=epmapper interface_id=e1af8308-5d1f-11c9-91a4-08002b14a0fa operation=ept_map \
                    operation_number=3 call_id=1 parameters_len=4 results_len=7 response_time=20ms retransmission_count=1",
                "dcerpc interface=epmapper interface_id=e1af8308-5d1f-11c9-91a4-08002b14a0fa operation_number=9 call_id=2 \
                    results_len=4 fault_status=5 response_time=10ms",
            ],
        }];
        check(&KitEntry::of::<Dcerpc>(), &cases);
    }
}
