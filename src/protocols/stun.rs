//! STUN and TURN: a row for each request with its response, and for indications other than data.
//!
//! What follows on the same port, such as DTLS or RTP, is recognized by its content. Integrity values, keys and relayed data are not kept.
//!
//! Standards: RFC 8489 (STUN), 8656 (TURN), 8445 (ICE), 6062 (TURN over TCP), 3489.

use std::net::IpAddr;
use std::time::Duration;

use super::recognizers::octets::{begins_with, datagram_in_role, either_in_role, u16_at, u32_at};
use crate::base::fnv1a;
use crate::checkpoint::state;
use crate::codec::Reader;
use crate::session::framing::{AfterPdu, Cut, Framing, Pdu};
use crate::session::kit::{Kept, Malformed, PduParser, Reply, Rows, exchange, names, open};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, StreamOpening, Verdict};

/// Protocol `stun`, recognized by the magic cookie; for RFC 3489, which had none, by attributes that fill the message.
pub static PROTOCOL: Protocol = Protocol::new("stun")
    .over_streams(&[PORT], Some(probe_stream))
    .over_datagrams(&[PORT], Some(probe_datagram))
    .streams_begin_with(OctetSet::range(0..=0x3F))
    .datagrams_begin_with(OctetSet::range(0..=0x3F))
    .leading_on()
    .with_kinds(&["stun"])
    .with_message_len_min(20)
    .with_limits("16 open requests; 1 KiB of a message, texts of 128 octets")
    .with_standards("RFC 8489, 8656, 8445, 6062, 3489");

const PORT: u16 = 3478;
const COOKIE: u32 = 0x2112_A442;

fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    // Some clients do not count or send the padding of the last attribute.
    let is_len_possible = |len: u16| len.is_multiple_of(4) || opening.server_port == PORT;
    let message = |bytes: &[u8]| match bytes {
        [] => Verdict::More,
        [0..0x40, ..] => match begins_with(bytes.get(4..).unwrap_or_default(), &[&COOKIE.to_be_bytes()]) {
            Verdict::Match => Verdict::of(u16_at(bytes, 2).is_some_and(is_len_possible)),
            verdict => verdict,
        },
        _ => Verdict::No,
    };
    either_in_role(opening, message, is_answer)
}

/// Returns whether a message is a response, by the two bits of its class; `None` for an indication.
fn is_answer(bytes: &[u8]) -> Option<bool> {
    match u16_at(bytes, 0)? & 0x0110 {
        0 => Some(false),
        0x0010 => None,
        _ => Some(true),
    }
}

fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let bytes = opening.bytes;
    let ([0..0x40, ..], Some(len)) = (bytes, u16_at(bytes, 2)) else { return Verdict::No };
    if usize::from(len) + 20 != opening.len {
        return Verdict::No;
    }
    if u32_at(bytes, 4) == Some(COOKIE) {
        return datagram_in_role(opening, true, is_answer(bytes));
    }
    if len % 4 != 0 {
        return Verdict::No;
    }
    // Binding and shared secret requests, responses and errors.
    let is_classic = matches!(bytes, [0 | 1, 1 | 2, ..] | [1, 0x11 | 0x12, ..]);
    let attributes = bytes.get(20..).unwrap_or_default();
    let is_match = is_classic && (opening.has_port(PORT) || (len > 0 && is_filled(attributes)));
    datagram_in_role(opening, is_match, is_answer(bytes))
}

/// Returns whether attributes of RFC 3489 fill the octets exactly.
fn is_filled(mut bytes: &[u8]) -> bool {
    while let Some((kind, len)) = u16_at(bytes, 0).zip(u16_at(bytes, 2)) {
        let is_known = matches!(kind, 1..=0x20 | 0x8000..=0x80FF);
        match bytes.get(4 + usize::from(len)..) {
            Some(rest) if is_known => bytes = rest,
            _ => return false,
        }
    }
    bytes.is_empty()
}

names! {
    /// Method (IANA registry of STUN).
    pub struct Method: u16 {
        1 => "binding", 2 => "shared_secret", 3 => "allocate", 4 => "refresh", 6 => "send", 7 => "data",
        8 => "create_permission", 9 => "channel_bind", 10 => "connect", 11 => "connection_bind", 12 => "connection_attempt",
    }
}

exchange! {
    /// A request with its response, or an indication.
    "stun" pub struct Exchange {
        /// Method.
        pub method: Method,
        /// True if the request succeeds, false if it is refused; null without a response.
        pub is_success: Option<bool>,
        /// Code of the error (RFC 8489 section 14.8).
        pub error_code: Option<u16>,
        /// Text of the error.
        pub error_text: Option<Kept<128>>,
        /// Name of the user; of ICE, the fragments of both sides.
        pub user_name: Option<Kept<128>>,
        /// Realm of the user.
        pub realm: Option<Kept<128>>,
        /// Program that responds, or otherwise the one that requests.
        pub software: Option<Kept<128>>,
        /// Address from which the request came, as the responder sees it.
        pub mapped_address: Option<IpAddr>,
        /// Port from which it came.
        pub mapped_port: Option<u16>,
        /// Address at which a relay receives for the client.
        pub relayed_address: Option<IpAddr>,
        /// Port at which it receives.
        pub relayed_port: Option<u16>,
        /// Address with which the client communicates through the relay.
        pub peer_address: Option<IpAddr>,
        /// Port of that address.
        pub peer_port: Option<u16>,
        /// Time for which the relay keeps the address.
        pub lifetime: Option<Duration>,
        /// True if ICE selects the addresses of this request (RFC 8445 section 7.1.2).
        pub is_selected: bool,
    }
}

/// Types of attributes (IANA registry of STUN).
mod attribute {
    pub(super) const MAPPED: u16 = 0x0001;
    pub(super) const USER_NAME: u16 = 0x0006;
    pub(super) const ERROR: u16 = 0x0009;
    pub(super) const LIFETIME: u16 = 0x000D;
    pub(super) const PEER: u16 = 0x0012;
    pub(super) const REALM: u16 = 0x0014;
    pub(super) const RELAYED: u16 = 0x0016;
    pub(super) const XOR_MAPPED: u16 = 0x0020;
    pub(super) const USE_CANDIDATE: u16 = 0x0025;
    pub(super) const SOFTWARE: u16 = 0x8022;
}

impl Exchange {
    /// Adds the attributes of a message, as far as they were captured.
    fn add(&mut self, head: &[u8; 20], mut attributes: &[u8]) {
        while let Some((kind, len)) = u16_at(attributes, 0).zip(u16_at(attributes, 2)) {
            let Some(value) = attributes.get(4..4 + usize::from(len)) else { return };
            self.attribute(kind, value, head);
            attributes = attributes.get(4 + usize::from(len).next_multiple_of(4)..).unwrap_or_default();
        }
    }

    fn attribute(&mut self, kind: u16, value: &[u8], head: &[u8; 20]) {
        match kind {
            attribute::MAPPED => {
                set((&mut self.mapped_address, &mut self.mapped_port), place(value, &[0; 16]))
            }
            attribute::XOR_MAPPED => {
                set((&mut self.mapped_address, &mut self.mapped_port), place(value, mask(head)))
            }
            attribute::RELAYED => {
                set((&mut self.relayed_address, &mut self.relayed_port), place(value, mask(head)))
            }
            attribute::PEER => set((&mut self.peer_address, &mut self.peer_port), place(value, mask(head))),
            attribute::USER_NAME => self.user_name = Some(Kept::new(value)),
            attribute::REALM => self.realm = Some(Kept::new(value)),
            attribute::SOFTWARE => self.software = Some(Kept::new(value)),
            attribute::LIFETIME => {
                self.lifetime = u32_at(value, 0).map(|seconds| Duration::from_secs(seconds.into()));
            }
            attribute::USE_CANDIDATE => self.is_selected = true,
            attribute::ERROR => {
                if let [_, _, class, number, text @ ..] = value {
                    self.error_code = Some(100 * u16::from(class & 7) + u16::from(*number));
                    self.error_text = Some(Kept::new(text)).filter(|_| !text.is_empty());
                }
            }
            _ => {}
        }
    }
}

fn set((address, port): (&mut Option<IpAddr>, &mut Option<u16>), place: Option<(IpAddr, u16)>) {
    if let Some((found, number)) = place {
        (*address, *port) = (Some(found), Some(number));
    }
}

/// Returns the octets with which addresses are combined: the cookie and the identifier of the transaction.
fn mask(head: &[u8; 20]) -> &[u8; 16] {
    head.last_chunk().unwrap_or(&[0; 16])
}

/// Reads an address and a port (RFC 8489 sections 14.1 and 14.2).
fn place(value: &[u8], mask: &[u8; 16]) -> Option<(IpAddr, u16)> {
    let mut reader = Reader::new(value);
    let (_, family, port): (u8, u8, u16) = (reader.be().ok()?, reader.be().ok()?, reader.be().ok()?);
    let [high, low, ..] = *mask;
    let port = port ^ u16::from_be_bytes([high, low]);
    let address = match family {
        1 => {
            let mut address: [u8; 4] = reader.array().ok()?;
            address.iter_mut().zip(mask).for_each(|(octet, mask)| *octet ^= mask);
            address.into()
        }
        2 => {
            let mut address: [u8; 16] = reader.array().ok()?;
            address.iter_mut().zip(mask).for_each(|(octet, mask)| *octet ^= mask);
            address.into()
        }
        _ => return None,
    };
    Some((address, port))
}

open! {
    /// Rows of STUN.
    pub(crate) enum Row { 0 = Exchange }
}

/// Parser of STUN.
#[derive(Debug, Default)]
pub(crate) struct Stun;

state! { struct Stun {} }

/// Finds the end of a message, or of data in a channel, which are padded in streams (RFC 8656 section 12.5).
fn cut(_: Role, octets: &[u8]) -> Cut {
    match (octets, u16_at(octets, 2)) {
        (_, None) => Cut::Need(4),
        ([0..=0x3F, ..], Some(len)) => Cut::Pdu(20 + u64::from(len)),
        (_, Some(len)) => Cut::Pdu(4 + u64::from(len).next_multiple_of(4)),
    }
}

impl PduParser for Stun {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::by(cut).keep(1024));
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let is_of_stream = rows.is_in_stream();
        let Some((head, attributes)) = pdu.bytes.split_first_chunk::<20>().filter(|(head, _)| head[0] < 4)
        else {
            return match pdu.bytes {
                // Data in a channel of a relay.
                [0x40..=0x7F, ..] => Ok(AfterPdu::More),
                _ if is_of_stream => Err(Malformed),
                // DTLS, RTP and others on the same port (RFC 7983).
                _ => Ok(AfterPdu::Handover(None)),
            };
        };
        let kind = u16_at(head, 0).ok_or(Malformed)?;
        let method = Method(kind & 0x000F | kind >> 1 & 0x0070 | kind >> 2 & 0x0F80);
        let key = fnv1a(mask(head));
        match kind & 0x0110 {
            0 => rows.request(key, |row: &mut Exchange| {
                row.method = method;
                row.add(head, attributes);
            }),
            // Relayed data has no rows.
            0x0010 if matches!(method.name(), Some("send" | "data")) => {}
            0x0010 => {
                let mut row = Exchange { method, ..Exchange::default() };
                row.add(head, attributes);
                rows.single(row);
            }
            class => rows.response(key, |row: &mut Exchange| {
                (row.method, row.is_success) = (method, Some(class == 0x0100));
                row.add(head, attributes);
                Reply::Last
            }),
        }
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram};
    use super::PROTOCOL as STUN;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&STUN, 3478, b"\x00\x01\x00\x00\x21\x12\xA4\x42abcdefghijkl"),
        datagram(&STUN, 3478, b"\x00\x01\x00\x00abcdefghijklmnop"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x08abcdefghijklmnop\x00\x03\x00\x04\x00\x00\x00\x06"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x06\x21\x12\xA4\x42abcdefghijkl\x80\x22\x00\x02ab"),
        client(&STUN, 3478, b"\x00\x01\x00\x06\x21\x12\xA4\x42abcdefghijkl\x80\x22\x00\x02ab"),
        client(&STUN, 3478, b"\x00\x03\x00\x08\x21\x12\xA4\x42abcdefghijkl\x00\x19\x00\x04\x11\x00\x00\x00"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&STUN, 3478, b"\x00\x01\x00\x04\x21\x12\xA4\x42abcdefghijkl"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x08abcdefghijklmnop\x00\x03\x00\x09\x00\x00\x00\x06"),
        client(&STUN, 3478, b"\x00\x01\x00\x00abcdefghijklmnop"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn message(kind: u16, number: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut content = Vec::new();
        for (kind, value) in attributes {
            content.extend(kind.to_be_bytes());
            content.extend((value.len() as u16).to_be_bytes());
            content.extend(*value);
            content.resize(content.len().next_multiple_of(4), 0);
        }
        let len = (content.len() as u16).to_be_bytes();
        [&kind.to_be_bytes()[..], &len, &COOKIE.to_be_bytes(), &[number; 12], &content].concat()
    }

    /// The address of the example in RFC 5769 section 2.2: 192.0.2.1, port 32853.
    const XOR_ADDRESS: &[u8] = b"\x00\x01\xa1\x47\xe1\x12\xa6\x43";

    fn cases() -> [Case; 2] {
        [
            Case {
                name: "an address that is mapped, and one that is relayed after a refusal",
                turns: vec![
                    (CLIENT, message(0x0001, 1, &[(0x8022, b"test"), (0x0006, b"evtj:h6vY"), (0x0025, b"")])),
                    (SERVER, message(0x0101, 1, &[(0x0020, XOR_ADDRESS)])),
                    (CLIENT, message(0x0003, 2, &[(0x0019, b"\x11\0\0\0")])),
                    (SERVER, message(0x0113, 2, &[(0x0009, b"\0\0\x04\x01No"), (0x0014, b"a.example")])),
                    (CLIENT, message(0x0003, 3, &[(0x0006, b"joe")])),
                    (SERVER, message(0x0103, 3, &[(0x0016, XOR_ADDRESS), (0x000D, b"\0\0\x02\x58")])),
                    (CLIENT, message(0x0008, 4, &[(0x0012, XOR_ADDRESS)])),
                    (SERVER, message(0x0108, 4, &[])),
                    (CLIENT, message(0x0016, 5, &[(0x0012, XOR_ADDRESS), (0x0013, b"data")])),
                ],
                rows: &[
                    "stun method=binding is_success=Bool(true) user_name=evtj:h6vY software=test mapped_address=Address(192.0.2.1) \
                    mapped_port=32853 is_selected=Bool(true) response_time=10ms",
                    "stun method=allocate error_code=401 error_text=No realm=a.example response_time=10ms",
                    "stun method=allocate is_success=Bool(true) user_name=joe relayed_address=Address(192.0.2.1) relayed_port=32853 \
                    lifetime=600s response_time=10ms",
                    "stun method=create_permission is_success=Bool(true) peer_address=Address(192.0.2.1) peer_port=32853 response_time=10ms",
                ],
            },
            Case {
                name: "a request without a response, and an indication",
                turns: vec![
                    (CLIENT, message(0x0001, 1, &[])),
                    (CLIENT, message(0x0011, 2, &[(0x8022, b"test")])),
                ],
                rows: &["stun method=binding software=test", "stun method=binding lacks=response"],
            },
        ]
    }

    #[test]
    fn cases_in_datagrams() {
        check(&KitEntry::of::<Stun>(), &cases());
    }

    #[test]
    fn cases_in_streams() {
        check_stream(&KitEntry::of::<Stun>(), &cases());
    }
}
