//! RADIUS: requests for access, accounting and changes of authorization, with their responses.
//!
//! A row is reported with the response ([`Exchange`]). Requests and responses are matched by the identifier; one that is used
//! again with another authenticator is another request. Passwords and keys are not read. Of an attribute that occurs several
//! times, the first is kept; attributes of vendors are counted only. A request that repeats the State of a challenge continues its
//! dialogue, which the log of Zeek shows as one row.
//!
//! Standards: RFC 2865, 2866, 2869, 3162, 5176. Attributes of RFC 6929 (extended) are not read.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::recognizers::octets::{datagram_in_role, u16_at};
use crate::base::{Timestamp, fnv1a};
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::row::Name;
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{
    Kept, Malformed, Measured, PduParser, Reply, Rows, Wire, exchange, names, open, wire,
};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, Text, Verdict};

/// Protocol `radius`: recognized by a known code, and attributes that fill the message; on its registered ports, padding may
/// follow the message.
pub static PROTOCOL: Protocol = Protocol::new("radius")
    .in_zeek("radius")
    .over_datagrams(&PORTS, Some(probe))
    .datagrams_begin_with(OctetSet::range(1..=5).and(OctetSet::range(11..=13)).and(OctetSet::range(40..=45)))
    .with_kinds(&["radius"])
    .with_limits("64 open exchanges, 16 challenges without a further request, texts of 253 octets")
    .with_standards("RFC 2865, 2866, 2869, 3162, 5176");

const PORTS: [u16; 5] = [1812, 1813, 1645, 1646, 3799];

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let [code @ (1..=5 | 11..=13 | 40..=45), ..] = opening.bytes else { return Verdict::No };
    let Some(len) = u16_at(opening.bytes, 2).map(usize::from) else { return Verdict::No };
    let is_on_port = PORTS.into_iter().any(|port| opening.has_port(port));
    // RFC 2865 section 3: octets after the length are padding, which the receiver ignores. An accounting response may
    // have no attribute. Either is conclusive only on the registered port.
    let is_len = if is_on_port { (20..=opening.len).contains(&len) } else { len == opening.len && len >= 22 };
    if !is_len {
        return Verdict::No;
    }
    let is_complete = opening.bytes.len() >= len;
    let message = opening.bytes.get(..len).unwrap_or(opening.bytes);
    let mut at = 20;
    while at < message.len() {
        match message.get(at + 1) {
            Some(0 | 1) => return Verdict::No,
            Some(len) => at += usize::from(*len),
            None => break,
        }
    }
    datagram_in_role(opening, at == len || (!is_complete && at <= len), Some(is_response(*code)))
}

const ACCESS_CHALLENGE: u8 = 11;

const fn is_response(code: u8) -> bool {
    matches!(code, 2 | 3 | 5 | 11 | 41 | 42 | 44 | 45)
}

names! {
    /// Code of a message.
    pub struct Code: u8 {
        1 => "access_request", 2 => "access_accept", 3 => "access_reject", 4 => "accounting_request",
        5 => "accounting_response", 11 => "access_challenge", 12 => "status_server", 13 => "status_client",
        40 => "disconnect_request", 41 => "disconnect_ack", 42 => "disconnect_nak", 43 => "coa_request", 44 => "coa_ack",
        45 => "coa_nak",
    }
}

names! {
    /// Reason of an accounting request (RFC 2866 section 5.1).
    pub struct AccountingStatus: u32 {
        1 => "start", 2 => "stop", 3 => "interim_update", 7 => "accounting_on", 8 => "accounting_off",
    }
}

names! {
    /// Cause of the end of a session (RFC 2866 section 5.10).
    pub struct TerminateCause: u32 {
        1 => "user_request", 2 => "lost_carrier", 3 => "lost_service", 4 => "idle_timeout", 5 => "session_timeout",
        6 => "admin_reset", 7 => "admin_reboot", 8 => "port_error", 9 => "nas_error", 10 => "nas_request",
        11 => "nas_reboot", 12 => "port_unneeded", 13 => "port_preempted", 14 => "port_suspended",
        15 => "service_unavailable", 16 => "callback", 17 => "user_error", 18 => "host_request",
    }
}

exchange! {
    /// A request with its response. Attributes are those of the request, or else those of the response.
    "radius" pub struct Exchange {
        /// Code of the request; absent if it was not captured.
        pub request_code: Option<Code>,
        /// Code of the response.
        pub response_code: Option<Code>,
        /// Number by which the response is matched.
        pub identifier: u8,
        /// Name of the user.
        pub user_name: Option<Kept<253>>,
        /// Address of the user's device: a MAC address, or a telephone number.
        pub calling_station_id: Option<Kept<253>>,
        /// Address that the user's device called: the MAC address of an access point with the name of its network, or a
        /// telephone number.
        pub called_station_id: Option<Kept<253>>,
        /// Address of the network access server.
        pub nas_address: Option<IpAddr>,
        /// Name of the network access server.
        pub nas_identifier: Option<Kept<253>>,
        /// Port of the network access server.
        pub nas_port: Option<u32>,
        /// Address that the user has.
        pub framed_address: Option<IpAddr>,
        /// Address of the client end of a tunnel.
        pub tunnel_client: Option<Kept<253>>,
        /// Description of the connection, such as its speed.
        pub connect_info: Option<Kept<253>>,
        /// Text for the user.
        pub reply_message: Option<Kept<253>>,
        /// Time after which the session ends.
        pub session_timeout: Option<Duration>,
        /// True if a message of EAP is part of the request.
        pub has_eap: bool [sparse],
        /// Reason of an accounting request.
        pub accounting_status: Option<AccountingStatus>,
        /// Identifier of the session in accounting.
        pub accounting_session_id: Option<Kept<253>>,
        /// Length of the session so far.
        pub accounting_session_length: Option<Duration>,
        /// Octets that the user has sent.
        pub accounting_input_octets: Option<u64> [octets],
        /// Octets that the user has received.
        pub accounting_output_octets: Option<u64> [octets],
        /// Cause of the end of the session.
        pub terminate_cause: Option<TerminateCause>,
        /// Number of attributes of vendors.
        pub vendor_attribute_count: u16 [sparse],
        ..
        /// Digest of the attribute State in the last message.
        state: Option<u64>,
        /// The exchanges before, in which the server challenged the client.
        dialogue: Option<Dialogue>,
    }
    /// Requests for access with their results, without those that a challenge answers.
    zeek "radius" ['a] as row if (row.is_decided()) {
        /// `user_name`.
        "username": Option<Text<'a>> = row.user_name.as_ref().map(Kept::text);
        /// `calling_station_id`, if it is a MAC address.
        "mac": Option<String> = row.mac();
        /// `framed_address` of the first challenge that led to the request.
        "framed_addr": Option<IpAddr> = row.dialogue.as_ref().and_then(|dialogue| dialogue.address);
        /// `tunnel_client`.
        "tunnel_client": Option<Text<'a>> = row.tunnel_client.as_ref().map(Kept::text);
        /// `connect_info`.
        "connect_info": Option<Text<'a>> = row.connect_info.as_ref().map(Kept::text);
        /// `reply_message` of the first challenge that led to the request.
        "reply_msg": Option<Text<'a>> =
            row.dialogue.as_ref().and_then(|dialogue| dialogue.message.as_ref()).map(Kept::text);
        /// `success`, `failed`, or `unknown` without a response.
        "result": Name = row.result();
        /// Time from the first request of the dialogue to the result.
        "ttl": Option<Duration> = row.duration();
    }
}

impl Exchange {
    /// Returns whether the row is of a request for access that has a result, or never will.
    fn is_decided(&self) -> bool {
        let is_access = self.request_code.is_none_or(|code| code.0 == 1);
        is_access && matches!(self.response_code, None | Some(Code(2 | 3)))
    }

    /// Returns the MAC address of the user's device.
    fn mac(&self) -> Option<String> {
        let text = self.calling_station_id.as_ref()?.text().to_str_lossy();
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let is_mac = digits.len() == 12
            && text.chars().all(|letter| letter.is_ascii_hexdigit() || "-:.".contains(letter));
        let pairs = digits.as_bytes().chunks(2).map(String::from_utf8_lossy);
        is_mac.then(|| pairs.collect::<Vec<_>>().join(":").to_lowercase())
    }

    fn duration(&self) -> Option<Duration> {
        let time = self.exchange.response_time?;
        let earlier =
            self.dialogue.as_ref().map(|dialogue| self.exchange.start.saturating_since(dialogue.start));
        Some(time + earlier.unwrap_or_default())
    }

    /// Returns the result of a request for access.
    fn result(&self) -> Name {
        Name(match self.response_code {
            Some(Code(2)) => "success",
            Some(Code(3)) => "failed",
            _ => "unknown",
        })
    }
}

/// Exchanges in which the server challenged the client. The next request repeats the attribute State of the challenge.
#[derive(Clone, Debug, Default, PartialEq)]
struct Dialogue {
    state: u64,
    /// Time of the first request.
    start: Timestamp,
    address: Option<IpAddr>,
    message: Option<Kept<253>>,
}

state! { struct Dialogue { state, start, address, message } }

impl Measured for Dialogue {
    fn heap_len(&self) -> usize {
        self.message.heap_len()
    }
}

open! {
    /// Rows of RADIUS.
    pub(crate) enum Row { 0 = Exchange }
}

wire! {
    /// RFC 2865 section 3.
    struct Head { code: u8, identifier: u8, len: u16, digest: u32, authenticator: [u8; 12] }
}

impl Exchange {
    /// Adds the attributes of a message; of a truncated one, those that were captured.
    fn add(&mut self, mut rest: Reader<'_>, is_request: bool) {
        while let Ok([number, len]) = rest.array() {
            let Some(value) = usize::from(len).checked_sub(2).and_then(|len| rest.bytes(len).ok()) else {
                break;
            };
            self.attribute(number, value, is_request);
        }
    }

    fn attribute(&mut self, number: u8, value: &[u8], is_request: bool) {
        let texts = match number {
            1 => &mut self.user_name,
            18 => &mut self.reply_message,
            24 => return self.state = Some(fnv1a(value)),
            30 => &mut self.called_station_id,
            31 => &mut self.calling_station_id,
            32 => &mut self.nas_identifier,
            44 => &mut self.accounting_session_id,
            66 => &mut self.tunnel_client,
            77 => &mut self.connect_info,
            _ => return self.other_attribute(number, value, is_request),
        };
        // A tunnel has a tag in front of its text, at most 31 (RFC 2868 section 3.3).
        let text = match value {
            [..=31, text @ ..] if number == 66 => text,
            text => text,
        };
        texts.get_or_insert_with(|| Kept::new(text));
    }

    fn other_attribute(&mut self, number: u8, value: &[u8], is_request: bool) {
        match (number, value) {
            (26, _) => self.vendor_attribute_count = self.vendor_attribute_count.saturating_add(1),
            (79, _) => self.has_eap |= is_request,
            (95 | 168, value) => {
                let address = value.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into());
                let place = if number == 95 { &mut self.nas_address } else { &mut self.framed_address };
                *place = place.or(address);
            }
            (_, &[a, b, c, d]) => self.number(number, u32::from_be_bytes([a, b, c, d])),
            _ => {}
        }
    }

    fn number(&mut self, number: u8, value: u32) {
        let address = || Some(IpAddr::from(Ipv4Addr::from(value)));
        let length = || Some(Duration::from_secs(value.into()));
        let low = |known: Option<u64>| Some(known.unwrap_or_default() & !0xffff_ffff | u64::from(value));
        let high =
            |known: Option<u64>| Some(known.unwrap_or_default() & 0xffff_ffff | u64::from(value) << 32);
        match number {
            4 => self.nas_address = self.nas_address.or_else(address),
            5 => self.nas_port = self.nas_port.or(Some(value)),
            8 => self.framed_address = self.framed_address.or_else(address),
            27 => self.session_timeout = self.session_timeout.or_else(length),
            40 => self.accounting_status = Some(AccountingStatus(value)),
            42 => self.accounting_input_octets = low(self.accounting_input_octets),
            43 => self.accounting_output_octets = low(self.accounting_output_octets),
            46 => self.accounting_session_length = length(),
            49 => self.terminate_cause = Some(TerminateCause(value)),
            52 => self.accounting_input_octets = high(self.accounting_input_octets),
            53 => self.accounting_output_octets = high(self.accounting_output_octets),
            _ => {}
        }
    }
}

/// Parser of RADIUS.
#[derive(Debug, Default)]
pub(crate) struct Radius {
    /// The dialogues whose next request was not captured, the oldest first.
    dialogues: VecDeque<Dialogue>,
}

/// Maximum number of dialogues that are kept.
const DIALOGUE_COUNT_MAX: usize = 16;

state! { struct Radius { dialogues } if |radius| radius.dialogues.len() <= DIALOGUE_COUNT_MAX }

impl Radius {
    /// Notes a challenge.
    fn challenged(&mut self, row: &mut Exchange) {
        let Some(state) = row.state else { return };
        let dialogue = row
            .dialogue
            .take()
            .unwrap_or_else(|| Dialogue { start: row.exchange.start, ..Dialogue::default() });
        let address = dialogue.address.or(row.framed_address);
        let message = dialogue.message.or_else(|| row.reply_message.clone());
        if self.dialogues.len() == DIALOGUE_COUNT_MAX {
            self.dialogues.pop_front();
        }
        self.dialogues.push_back(Dialogue { state, address, message, ..dialogue });
    }

    /// Returns the dialogue that a request continues.
    fn continued(&mut self, row: &Exchange) -> Option<Dialogue> {
        let state = row.state?;
        let place = self.dialogues.iter().position(|dialogue| dialogue.state == state)?;
        self.dialogues.remove(place)
    }
}

impl PduParser for Radius {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const OPEN_MAX: usize = 64;
    type Row = Row;

    fn heap_len(&self) -> usize {
        let texts: usize = self.dialogues.iter().map(Measured::heap_len).sum();
        self.dialogues.capacity() * size_of::<Dialogue>() + texts
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let mut reader = Reader::new(pdu.bytes);
        let Head { code, identifier, len, digest, .. } = Head::read(&mut reader)?;
        // Padding may follow.
        let message = pdu.bytes.get(..usize::from(len)).unwrap_or(pdu.bytes);
        let attributes = Reader::new(message.get(20..).ok_or(Malformed)?);
        let key = u64::from(identifier);
        if is_response(code) {
            rows.acts_as(Role::Server);
            rows.response(key, |row: &mut Exchange| {
                (row.identifier, row.response_code, row.state) = (identifier, Some(Code(code)), None);
                row.add(attributes, false);
                if code == ACCESS_CHALLENGE {
                    self.challenged(row);
                }
                Reply::Last
            });
        } else {
            rows.acts_as(Role::Client);
            rows.request_of(key, digest, |row: &mut Exchange| {
                if row.request_code.is_some() {
                    // A retransmission.
                    return;
                }
                (row.identifier, row.request_code) = (identifier, Some(Code(code)));
                row.add(attributes, true);
                row.dialogue = self.continued(row);
            });
        }
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, datagram};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&PROTOCOL, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo"),
        datagram(&PROTOCOL, 40_000, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo"),
        datagram(&PROTOCOL, 1813, b"\x05\x07\x00\x14abcdefghijklmnop"),
        // RFC 2865 section 3: padding.
        datagram(&PROTOCOL, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo\0\0\0\0"),
        datagram(&PROTOCOL, 1813, b"\x05\x07\x00\x14abcdefghijklmnop\0\0"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&PROTOCOL, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x07nemo"),
        // Longer than the datagram; an attribute that extends into the padding; padding on another port.
        datagram(&PROTOCOL, 1812, b"\x01\x07\x00\x1Babcdefghijklmnop\x01\x06nemo"),
        datagram(&PROTOCOL, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x08nemo\0\0\0\0"),
        datagram(&PROTOCOL, 40_000, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo\0\0\0\0"),
        datagram(&PROTOCOL, 40_000, b"\x05\x07\x00\x14abcdefghijklmnop"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn message(code: u8, identifier: u8, authenticator: u8, attributes: &[(u8, &[u8])]) -> Vec<u8> {
        let mut octets = vec![code, identifier, 0, 0];
        octets.extend([authenticator; 16]);
        for (number, value) in attributes {
            octets.extend([*number, value.len() as u8 + 2]);
            octets.extend_from_slice(value);
        }
        octets[3] = octets.len() as u8;
        octets
    }

    #[test]
    fn the_last_dialogues_are_known() {
        let mut radius = Radius::default();
        for state in 0..100 {
            radius.challenged(&mut Exchange { state: Some(state), ..Exchange::default() });
        }
        assert_eq!(radius.dialogues.len(), DIALOGUE_COUNT_MAX);
        let mut is_known = |state| radius.continued(&Exchange { state, ..Exchange::default() }).is_some();
        assert_eq!([Some(99), Some(84), Some(83), None].map(&mut is_known), [true, true, false, false]);
        // It continues once.
        assert!(!is_known(Some(99)) && radius.dialogues.len() == DIALOGUE_COUNT_MAX - 2);
    }

    #[test]
    fn cases_of_access_and_accounting() {
        let access = message(
            1,
            7,
            1,
            &[(1, b"nemo"), (2, b"0123456789abcdef"), (4, &[192, 0, 2, 9]), (5, &[0, 0, 0, 3]), (79, b"x")],
        );
        let accept = message(
            2,
            7,
            9,
            &[(8, &[198, 51, 100, 4]), (18, b"hello"), (27, &[0, 0, 14, 16]), (26, b"vend1")],
        );
        let other = message(1, 7, 2, &[(1, b"arthur")]);
        let reject = message(3, 7, 8, &[(18, b"no")]);
        let stop = message(
            4,
            8,
            3,
            &[
                (40, &[0, 0, 0, 2]),
                (44, b"session"),
                (42, &[0, 0, 0, 5]),
                (52, &[0, 0, 0, 1]),
                (43, &[0, 0, 1, 0]),
                (46, &[0, 0, 0, 60]),
                (49, &[0, 0, 0, 1]),
                (66, b"\x01192.0.2.77"),
            ],
        );
        let padded = [message(5, 8, 4, &[]), vec![0; 4]].concat();
        let cases = [
            Case {
                name: "access",
                turns: vec![(CLIENT, access.clone()), (SERVER, accept.clone())],
                rows: &[
                    "radius request_code=access_request response_code=access_accept identifier=7 user_name=nemo \
                    nas_address=Address(192.0.2.9) nas_port=3 framed_address=Address(198.51.100.4) reply_message=hello \
                    session_timeout=3600s has_eap=Bool(true) vendor_attribute_count=1 response_time=10ms",
                ],
            },
            Case {
                name: "an identifier that is used again, and a repetition",
                turns: vec![
                    (CLIENT, access.clone()),
                    (CLIENT, other.clone()),
                    (CLIENT, other),
                    (SERVER, reject.clone()),
                ],
                rows: &[
                    "radius request_code=access_request identifier=7 user_name=nemo nas_address=Address(192.0.2.9) \
                    nas_port=3 has_eap=Bool(true) lacks=response",
                    "radius request_code=access_request response_code=access_reject identifier=7 user_name=arthur \
                    reply_message=no response_time=20ms retransmission_count=1",
                ],
            },
            Case {
                name: "a challenge, and the request that continues its dialogue",
                turns: vec![
                    (CLIENT, message(1, 1, 1, &[(1, b"nemo")])),
                    (SERVER, message(11, 1, 9, &[(24, b"state"), (8, &[192, 0, 2, 8]), (18, b"again")])),
                    (CLIENT, message(1, 2, 2, &[(1, b"nemo"), (24, b"state")])),
                    (SERVER, message(2, 2, 8, &[])),
                ],
                rows: &[
                    "radius request_code=access_request response_code=access_challenge identifier=1 user_name=nemo \
                    framed_address=Address(192.0.2.8) reply_message=again response_time=10ms",
                    "radius request_code=access_request response_code=access_accept identifier=2 user_name=nemo \
                    response_time=10ms",
                ],
            },
            Case {
                name: "accounting",
                turns: vec![(CLIENT, stop), (SERVER, padded)],
                rows: &[
                    "radius request_code=accounting_request response_code=accounting_response identifier=8 \
                    tunnel_client=192.0.2.77 accounting_status=stop accounting_session_id=session \
                    accounting_session_length=60s accounting_input_octets=4294967301 accounting_output_octets=256 \
                    terminate_cause=user_request response_time=10ms",
                ],
            },
            Case {
                name: "two responses, and a later request with their identifier",
                turns: [
                    vec![(SERVER, reject.clone()), (SERVER, reject)],
                    vec![(CLIENT, message(12, 9, 5, &[])); 5],
                    vec![(CLIENT, access), (SERVER, accept)],
                ]
                .concat(),
                rows: &[
                    "radius response_code=access_reject identifier=7 reply_message=no lacks=request",
                    "radius response_code=access_reject identifier=7 reply_message=no lacks=request",
                    "radius request_code=access_request response_code=access_accept identifier=7 user_name=nemo \
                    nas_address=Address(192.0.2.9) nas_port=3 framed_address=Address(198.51.100.4) reply_message=hello \
                    session_timeout=3600s has_eap=Bool(true) vendor_attribute_count=1 response_time=10ms",
                    "radius request_code=status_server identifier=9 retransmission_count=4 lacks=response",
                ],
            },
        ];
        check(&KitEntry::of::<Radius>(), &cases);
    }
}
