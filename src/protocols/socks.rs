//! SOCKS 4, 4a and 5: to which host a client wants to be connected, and the answer. What follows is parsed by its content.
//!
//! The row [`Session`] is reported when the proxy has connected the client, or at the end of the flow. Passwords are not kept.
//!
//! Standards: RFC 1928, 1929; SOCKS 4 and 4a by their descriptions, which are no RFC.

use std::net::IpAddr;

use super::recognizers::octets::u16_at;
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::row::Name;
use crate::session::framing::{AfterPdu, Cut, Framing, Pdu};
use crate::session::kit::{Kept, Malformed, PduParser, Rows, exchange, names, open};
use crate::session::{Fault, OctetSet, Protocol, Role, StreamOpening, Text, Verdict};

/// Protocol `socks`, recognized by a client's request of valid length, and the server's response or port 1080.
pub static PROTOCOL: Protocol = Protocol::new("socks")
    .in_zeek("socks")
    .over_streams(&[1080], Some(probe))
    .streams_begin_with(OctetSet::range(4..=5))
    .leading_on()
    .with_kinds(&["socks"])
    .with_message_len_min(2)
    .with_limits("names of 255 octets; 600 octets of a client wait for the answer")
    .with_standards("RFC 1928, 1929; SOCKS 4, 4a");

fn probe(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(1080);
    let (is_complete, is_answered) = match opening.client {
        [5, method_count @ 1..=16, methods @ ..] => {
            let offered = methods.get(..usize::from(*method_count)).unwrap_or(methods);
            // Registered and private methods.
            if !offered.iter().all(|method| matches!(method, 0..=9 | 0x80..=0xFE)) {
                return Verdict::No;
            }
            (
                offered.len() == usize::from(*method_count),
                matches!(opening.server, [5, 0..=9 | 0x80..=0xFF, ..]),
            )
        }
        [4, 1 | 2, rest @ ..] => {
            let user = rest.get(6..).unwrap_or_default();
            if user.iter().take_while(|octet| **octet != 0).any(|octet| !(b' '..=b'~').contains(octet)) {
                return Verdict::No;
            }
            (user.last() == Some(&0), matches!(opening.server, [0, 0x5A..=0x5D, ..]))
        }
        [5] | [4] => (false, false),
        _ => return Verdict::No,
    };
    match (is_complete, opening.server.is_empty()) {
        (true, _) if is_answered || is_on_port => Verdict::Match,
        (_, true) => Verdict::More,
        _ => Verdict::No,
    }
}

names! {
    /// What a client asks for.
    pub struct Command: u8 {
        1 => "connect", 2 => "bind", 3 => "udp_associate", 0xF0 => "resolve", 0xF1 => "resolve_reverse",
    }
}

names! {
    /// How a client authenticates (registry of IANA).
    pub struct Method: u8 {
        0 => "none", 1 => "gssapi", 2 => "user_name_and_password", 3 => "chap", 5 => "cram", 6 => "ssl", 7 => "nds",
        8 => "multi_authentication_framework", 9 => "json_parameter_block", 0xFF => "none_acceptable",
    }
}

names! {
    /// Answer of the proxy, of version 5 (RFC 1928 section 6) and 4.
    pub struct Answer: u8 {
        0 => "succeeded", 1 => "general_failure", 2 => "not_allowed", 3 => "network_unreachable", 4 => "host_unreachable",
        5 => "connection_refused", 6 => "ttl_expired", 7 => "command_not_supported", 8 => "address_type_not_supported",
        0x5A => "granted", 0x5B => "rejected", 0x5C => "no_identd", 0x5D => "other_user_in_identd",
    }
}

impl Answer {
    const fn is_success(self) -> bool {
        matches!(self.0, 0 | 0x5A)
    }

    /// Returns the text of Zeek for an answer.
    const fn zeek_name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 | 0x5A => "succeeded",
            1 | 0x5B => "general SOCKS server failure",
            2 => "connection not allowed by ruleset",
            3 => "Network unreachable",
            4 => "Host unreachable",
            5 => "Connection refused",
            6 => "TTL expired",
            7 => "Command not supported",
            8 => "Address type not supported",
            0x5C => "request failed because client is not running identd",
            0x5D => {
                "request failed because client's identd could not confirm the user ID string in the request"
            }
            _ => return None,
        })
    }
}

exchange! {
    /// The request of a client to a proxy, with the answer.
    "socks" pub struct Session {
        /// Version: 4 or 5.
        pub version: u8,
        /// How the client authenticates, of version 5.
        pub authentication_method: Option<Method>,
        /// Name of the user.
        pub user_name: Option<Kept<256>>,
        /// True if the proxy accepts user and password; null if it does not ask for them.
        pub is_accepted: Option<bool>,
        /// What the client asks for.
        pub command: Option<Command>,
        /// Address to which the client wants to be connected.
        pub target_address: Option<IpAddr>,
        /// Name to which it wants to be connected, if it states no address.
        pub target_name: Option<Kept<256>>,
        /// Port of the target.
        pub target_port: Option<u16>,
        /// Answer of the proxy.
        pub answer: Option<Answer>,
        /// Address from which the proxy connects to the target, or at which it waits.
        pub bound_address: Option<IpAddr>,
        /// Name instead of this address.
        pub bound_name: Option<Kept<256>>,
        /// Port of this address.
        pub bound_port: Option<u16>,
    }
    /// Requests to proxies.
    zeek "socks" ['a] as row {
        /// `version`.
        "version": u8 = row.version;
        /// `user_name`.
        "user": Option<Text<'a>> = row.user_name.as_ref().map(Kept::text);
        /// Null: passwords are not kept.
        "password": Option<Text<'a>> = None;
        /// `answer`.
        "status": Option<Name> = row.answer.and_then(Answer::zeek_name).map(Name);
        /// `target_address`.
        "request.host": Option<IpAddr> = row.target_address;
        /// `target_name`.
        "request.name": Option<Text<'a>> = row.target_name.as_ref().map(Kept::text);
        /// `target_port`.
        "request_p": Option<u16> = row.target_port;
        /// `bound_address`.
        "bound.host": Option<IpAddr> = row.bound_address;
        /// `bound_name`.
        "bound.name": Option<Text<'a>> = row.bound_name.as_ref().map(Kept::text);
        /// `bound_port`.
        "bound_p": Option<u16> = row.bound_port;
    }
}

open! {
    /// Rows of SOCKS.
    pub(crate) enum Row { 0 = Session }
}

/// Number of octets that are kept of a message, and that a client may send before the answer.
const KEEP: usize = 600;

/// The first message of a client: the methods of version 5, or the request of version 4.
const CLIENT_FIRST: Option<Framing> = Some(
    Framing::by(|_, octets| match octets {
        [5, count, ..] => Cut::Pdu(2 + u64::from(*count)),
        [4, ..] => cut_request_4(octets),
        [5] => Cut::Need(2),
        _ => Cut::Bad(OTHER),
    })
    .keep(KEEP),
);

/// Later ones, of version 5: user and password (RFC 1929), or the request.
const CLIENT_NEXT: Option<Framing> = Some(
    Framing::by(|_, octets| match octets {
        [1, user_len, rest @ ..] => match rest.get(usize::from(*user_len)) {
            Some(len) => Cut::Pdu(3 + u64::from(*user_len) + u64::from(*len)),
            None => Cut::Need(3 + usize::from(*user_len)),
        },
        [1] => Cut::Need(2),
        _ => cut_5(octets),
    })
    .keep(KEEP),
);

/// After the request, octets wait for the answer.
const CLIENT_WAITS: Option<Framing> = Some(Framing::by(|_, octets| Cut::Need(octets.len() + 1)).keep(KEEP));

const SERVER_FIRST: Option<Framing> = Some(
    Framing::by(|_, octets| match octets {
        [5, ..] => Cut::Pdu(2),
        [0, ..] => Cut::Pdu(8),
        _ => Cut::Bad(OTHER),
    })
    .keep(KEEP),
);

/// Later ones: the answer to user and password, or to the request.
const SERVER_NEXT: Option<Framing> = Some(
    Framing::by(|_, octets| match octets {
        [1, ..] => Cut::Pdu(2),
        [0, ..] => Cut::Pdu(8),
        _ => cut_5(octets),
    })
    .keep(KEEP),
);

/// What follows an authentication that is not read.
const ANY: Option<Framing> = Some(Framing::by(|_, octets| Cut::Pdu(octets.len() as u64)).keep(KEEP));

const OTHER: Fault = Fault::new("not_socks");

/// Finds the end of a request of version 4: an address, the name of the user, and that of the host if the address is 0.0.0.x.
fn cut_request_4(octets: &[u8]) -> Cut {
    let need = Cut::Need(octets.len() + 1);
    let Some((head, texts)) = octets.split_at_checked(8) else { return Cut::Need(8) };
    let Some(user_end) = texts.iter().position(|octet| *octet == 0) else { return need };
    let has_name = matches!(head, [.., 0, 0, 0, last] if *last != 0);
    let name = texts.get(user_end + 1..).unwrap_or_default();
    match name.iter().position(|octet| *octet == 0) {
        _ if !has_name => Cut::Pdu(9 + user_end as u64),
        Some(end) => Cut::Pdu(10 + (user_end + end) as u64),
        None => need,
    }
}

/// Finds the end of a request or an answer of version 5 (RFC 1928 sections 4 and 6).
const fn cut_5(octets: &[u8]) -> Cut {
    match octets {
        [5, _, _, 1, ..] => Cut::Pdu(10),
        [5, _, _, 4, ..] => Cut::Pdu(22),
        [5, _, _, 3, len, ..] => Cut::Pdu(7 + *len as u64),
        [5, _, _, 3] => Cut::Need(5),
        [5, _, _, _, ..] => Cut::Bad(OTHER),
        [5, ..] => Cut::Need(4),
        _ => Cut::Bad(OTHER),
    }
}

/// What a side sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Its first message.
    #[default]
    First,
    /// A later one.
    Next,
    /// Of a client: what waits for the answer.
    Waits,
    /// What is not read.
    Any,
}

state! { enum Phase { 0 = First, 1 = Next, 2 = Waits, 3 = Any } }

/// Parser of SOCKS.
#[derive(Debug, Default)]
pub(crate) struct Socks {
    phases: [Phase; 2],
    command: u8,
    answer_count: u8,
}

state! { struct Socks { phases, command, answer_count } }

impl PduParser for Socks {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = CLIENT_FIRST;
    type Row = Row;

    fn framing(&self, from: Role) -> &'static Option<Framing> {
        match (from, *from.of(&self.phases)) {
            (Role::Client, Phase::First) => &CLIENT_FIRST,
            (Role::Client, Phase::Next) => &CLIENT_NEXT,
            (Role::Client, Phase::Waits) => &CLIENT_WAITS,
            (Role::Server, Phase::First) => &SERVER_FIRST,
            (Role::Server, Phase::Next | Phase::Waits) => &SERVER_NEXT,
            (_, Phase::Any) => &ANY,
        }
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let phase = *pdu.from.of(&self.phases);
        if phase == Phase::Any {
            return Ok(AfterPdu::Done);
        }
        if pdu.is_truncated() {
            return Err(Malformed);
        }
        *pdu.from.of_mut(&mut self.phases) = Phase::Next;
        rows.acts_as(Role::Client);
        match pdu.from {
            Role::Client => self.request(pdu.bytes, phase, rows)?,
            Role::Server => return self.answer(pdu.bytes, phase, rows),
        }
        Ok(AfterPdu::Reframe)
    }
}

impl Socks {
    fn request(&mut self, octets: &[u8], phase: Phase, rows: &mut Rows<'_, Row>) -> Result<(), Malformed> {
        match octets {
            [4, command, port @ ..] => {
                let mut reader = Reader::new(port);
                let (port, address): (u16, [u8; 4]) = (reader.be()?, reader.array()?);
                let mut texts = reader.rest().split(|octet| *octet == 0);
                let (user, name) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
                rows.flow(|row: &mut Session| {
                    (row.version, row.command, row.target_port) = (4, Some(Command(*command)), Some(port));
                    row.user_name = Some(Kept::new(user)).filter(|_| !user.is_empty());
                    match address {
                        [0, 0, 0, last] if last != 0 => row.target_name = Some(Kept::new(name)),
                        address => row.target_address = Some(address.into()),
                    }
                });
                self.requested(*command);
            }
            [5, ..] if phase == Phase::First => rows.flow(|row: &mut Session| row.version = 5),
            [5, command, ..] => {
                let (address, name, port) = place(octets)?;
                rows.flow(|row: &mut Session| {
                    (row.version, row.command) = (5, Some(Command(*command)));
                    (row.target_address, row.target_name, row.target_port) = (address, name, Some(port));
                });
                self.requested(*command);
            }
            [_, len, rest @ ..] => {
                let user = rest.get(..usize::from(*len)).ok_or(Malformed)?;
                rows.flow(|row: &mut Session| row.user_name = Some(Kept::new(user)));
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    const fn requested(&mut self, command: u8) {
        self.command = command;
        let [client, _] = &mut self.phases;
        *client = Phase::Waits;
    }

    fn answer(
        &mut self,
        octets: &[u8],
        phase: Phase,
        rows: &mut Rows<'_, Row>,
    ) -> Result<AfterPdu, Malformed> {
        let answer = match octets {
            [5, method] if phase == Phase::First => {
                rows.flow(|row: &mut Session| row.authentication_method = Some(Method(*method)));
                if !matches!(method, 0 | 2) {
                    self.phases = [Phase::Any; 2];
                }
                return Ok(AfterPdu::Reframe);
            }
            [1, result] => {
                rows.flow(|row: &mut Session| row.is_accepted = Some(*result == 0));
                return Ok(AfterPdu::Reframe);
            }
            [0, code, port @ .., a, b, c, d] => {
                let answer = Answer(*code);
                rows.flow(|row: &mut Session| {
                    row.answer = Some(answer);
                    row.bound_port = u16_at(port, 0);
                    row.bound_address = Some(IpAddr::from([*a, *b, *c, *d]));
                });
                answer
            }
            [5, code, ..] => {
                let (address, name, port) = place(octets)?;
                let answer = Answer(*code);
                rows.flow(|row: &mut Session| {
                    row.answer = Some(answer);
                    (row.bound_address, row.bound_name, row.bound_port) = (address, name, Some(port));
                });
                answer
            }
            _ => return Err(Malformed),
        };
        self.answer_count += 1;
        // The second answer to a bind says that the target has connected.
        let is_connected = match Command(self.command) {
            Command(2) => self.answer_count == 2,
            Command(3) => false,
            _ => true,
        };
        Ok(match answer.is_success() {
            true if is_connected => AfterPdu::Handover(None),
            true => AfterPdu::Reframe,
            false => AfterPdu::Done,
        })
    }
}

/// An address or a name, and a port.
type Place = (Option<IpAddr>, Option<Kept<256>>, u16);

/// Reads the address of a request or an answer of version 5 (RFC 1928 section 5).
fn place(octets: &[u8]) -> Result<Place, Malformed> {
    let mut reader = Reader::new(octets);
    reader.skip(3)?;
    let (address, name) = match reader.be::<u8>()? {
        1 => (Some(IpAddr::from(reader.array::<4>()?)), None),
        4 => (Some(IpAddr::from(reader.array::<16>()?)), None),
        _ => {
            let len: u8 = reader.be()?;
            (None, Some(Kept::new(reader.bytes(len.into())?)))
        }
    };
    Ok((address, name, reader.be()?))
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 1080, b"\x05\x02\x00\x02"),
        client(&PROTOCOL, 9050, b"\x05\x01\x00").answered(b"\x05\x00"),
        client(&PROTOCOL, 1080, b"\x04\x01\x00\x50\x0A\x00\x00\x01nemo\0"),
        client(&PROTOCOL, 9050, b"\x04\x01\x00\x50\x00\x00\x00\x01\0example.com\0")
            .answered(b"\0\x5A\0\0\0\0\0\0"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 1080, b"\x05\x00"),
        client(&PROTOCOL, 9050, b"\x05\x01\x00").answered(b"HTTP/1.1 400"),
        client(&PROTOCOL, 1080, b"\x04\x01\x00\x50\x0A\x00\x00\x01\xFF\0"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    #[test]
    fn cases_of_connections() {
        let to_name = |command: u8| [&[5, command, 0, 3, 11][..], b"example.com\x01\xbb"].concat();
        let bound = |code: u8| vec![5, code, 0, 1, 192, 0, 2, 1, 0x9c, 0x40];
        let cases = [
            Case {
                name: "version 5 with a user, and a name",
                turns: vec![
                    (CLIENT, b"\x05\x02\x00\x02".to_vec()),
                    (SERVER, b"\x05\x02".to_vec()),
                    (CLIENT, b"\x01\x03bob\x05alice".to_vec()),
                    (SERVER, b"\x01\0".to_vec()),
                    (CLIENT, to_name(1)),
                    (SERVER, bound(0)),
                ],
                rows: &[
                    "socks version=5 authentication_method=user_name_and_password user_name=bob is_accepted=Bool(true) \
                    command=connect target_name=example.com target_port=443 answer=succeeded bound_address=Address(192.0.2.1) \
                    bound_port=40000",
                ],
            },
            Case {
                name: "version 5 to a target that refuses",
                turns: vec![
                    (CLIENT, b"\x05\x01\x00".to_vec()),
                    (SERVER, b"\x05\0".to_vec()),
                    (CLIENT, [&[5, 1, 0, 4][..], &[0x20; 16], &[0, 80]].concat()),
                    (SERVER, bound(5)),
                ],
                rows: &["socks version=5 authentication_method=none command=connect \
                    target_address=Address(2020:2020:2020:2020:2020:2020:2020:2020) target_port=80 answer=connection_refused \
                    bound_address=Address(192.0.2.1) bound_port=40000"],
            },
            Case {
                name: "version 4 with a name, and a bind",
                turns: vec![
                    (CLIENT, b"\x04\x02\x00\x50\x00\x00\x00\x01nemo\0example.com\0".to_vec()),
                    (SERVER, vec![0, 0x5A, 0, 21, 192, 0, 2, 1]),
                    (SERVER, vec![0, 0x5A, 0, 20, 192, 0, 2, 7]),
                ],
                rows: &[
                    "socks version=4 user_name=nemo command=bind target_name=example.com target_port=80 answer=granted \
                    bound_address=Address(192.0.2.7) bound_port=20",
                ],
            },
            Case {
                name: "version 4 with an address, and no answer",
                turns: vec![(CLIENT, b"\x04\x01\x00\x50\x0A\x00\x00\x01\0".to_vec())],
                rows: &["socks version=4 command=connect target_address=Address(10.0.0.1) target_port=80"],
            },
            Case {
                name: "version 5 with an authentication that is not read",
                turns: vec![
                    (CLIENT, b"\x05\x01\x01".to_vec()),
                    (SERVER, b"\x05\x01".to_vec()),
                    (CLIENT, b"\x01\x01\0\x04????".to_vec()),
                ],
                rows: &["socks version=5 authentication_method=gssapi"],
            },
        ];
        check_stream(&KitEntry::of::<Socks>(), &cases);
    }
}
