//! Recognition of DNS, mDNS and LLMNR.
//!
//! On the registered port, a header with counts that fit the length is enough, or a first question that can be parsed;
//! with an unassigned opcode, the message must be parsed to its last octet. On other ports the message must be complete
//! and parsed to its last octet, with one question of a known type. The port distinguishes DNS, mDNS and LLMNR. Port
//! 137 belongs to the NetBIOS name service, which has the same header.

use super::header::{HEADER_LEN, Header, Variant};
use super::message::DnsMessage;
use super::name::{Labels, Name};
use super::numbers::{Opcode, Rcode};
use super::record::{Item, Question};
use crate::session::{DatagramOpening, StreamOpening, Verdict};

/// Registered ports of DNS.
pub(super) const DNS_PORTS: &[u16] = &[53];
pub(super) const MDNS_PORTS: &[u16] = &[5353];
pub(super) const LLMNR_PORTS: &[u16] = &[5355];

const NETBIOS_PORT: u16 = 137;

/// Length in octets of the shortest question: a root name of one octet, a type and a class.
const QUESTION_LEN_MIN: usize = 5;
const RECORD_LEN_MIN: usize = 11;

/// Maximum length in octets of the first DNS message of a stream on an unregistered port.
const STRANGER_LEN_MAX: usize = 2046;

/// Flag bits that the header of an LLMNR message may have set: QR, C, TC, T and the response code.
const LLMNR_FLAGS: u16 = 0x8000 | 0x0400 | 0x0200 | 0x0100 | 0x000F;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// There are too few octets to decide.
    More,
    No,
    Query,
    Response,
}

impl Look {
    fn of(header: &Header) -> Self {
        if header.flags.is_response() { Self::Response } else { Self::Query }
    }
}

/// Returns whether a message of `len` octets can contain as many items as its header claims.
pub(super) fn fits(bytes: &[u8], len: usize) -> bool {
    Header::read(bytes).is_some_and(|header| {
        let question_count = header.counts.first().map_or(0, |count| usize::from(*count));
        HEADER_LEN + question_count * QUESTION_LEN_MIN + header.record_count() * RECORD_LEN_MIN <= len
    })
}

pub(super) fn dns_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is_own = opening.has_port(53);
    if !is_own && [NETBIOS_PORT, 5353, 5355].iter().any(|port| opening.has_port(*port)) {
        return Verdict::No;
    }
    let look = if is_own {
        look_on_own_port(opening.bytes, opening.len, Variant::Dns)
    } else {
        look_anywhere(opening.bytes, opening.len)
    };
    match look {
        Look::Query | Look::Response => of_role(look, opening),
        Look::No | Look::More => Verdict::No,
    }
}

/// Probe for multicast DNS. Roles are never exchanged: the sender to the group may send both queries and announcements.
pub(super) fn mdns_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is_own = opening.has_port(5353) && !opening.has_port(53);
    let look = || look_on_own_port(opening.bytes, opening.len, Variant::Mdns);
    Verdict::of(is_own && matches!(look(), Look::Query | Look::Response))
}

pub(super) fn llmnr_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    if !opening.has_port(5355) || opening.has_port(53) {
        return Verdict::No;
    }
    match look_on_own_port(opening.bytes, opening.len, Variant::Llmnr) {
        look @ (Look::Query | Look::Response) => of_role(look, opening),
        Look::No | Look::More => Verdict::No,
    }
}

/// Returns the match of a query or response, reversed if it is not that of its sender's role.
fn of_role(look: Look, opening: &DatagramOpening<'_>) -> Verdict {
    let is_straight = (look == Look::Query) == (opening.from == crate::session::Role::Client);
    if is_straight { Verdict::Match } else { Verdict::MatchReversed }
}

pub(super) fn dns_stream(opening: &StreamOpening<'_>) -> Verdict {
    if opening.has_port(5355) && !opening.has_port(53) {
        return Verdict::No;
    }
    let variant = opening.has_port(53).then_some(Variant::Dns);
    stream(opening, variant)
}

pub(super) fn llmnr_stream(opening: &StreamOpening<'_>) -> Verdict {
    if !opening.has_port(5355) || opening.has_port(53) {
        return Verdict::No;
    }
    stream(opening, Some(Variant::Llmnr))
}

/// Probe for a stream of DNS messages. `variant` is the protocol of the port, if the port is registered.
fn stream(opening: &StreamOpening<'_>, variant: Option<Variant>) -> Verdict {
    let look = |bytes: &[u8]| {
        let Some((len, message)) = bytes.split_first_chunk() else {
            let is_short = variant.is_some() || bytes.first().is_none_or(|high| *high < 8);
            return if is_short { Look::More } else { Look::No };
        };
        let len = usize::from(u16::from_be_bytes(*len));
        if len < HEADER_LEN || variant.is_none() && len > STRANGER_LEN_MAX {
            return Look::No;
        }
        let message = message.get(..len).unwrap_or(message);
        if message.len() < HEADER_LEN {
            return Look::More;
        }
        match variant {
            Some(variant) => look_on_own_port(message, len, variant),
            None if message.len() == len => look_anywhere(message, len),
            None if Header::read(message).is_some_and(|header| is_modest(&header)) => Look::More,
            None => Look::No,
        }
    };
    match (look(opening.client), look(opening.server)) {
        (Look::No, _) | (_, Look::No) => Verdict::No,
        (Look::Query, _) | (Look::More, Look::Response) => Verdict::Match,
        (Look::Response, _) | (Look::More, Look::Query) => Verdict::MatchReversed,
        (Look::More, Look::More) => Verdict::More,
    }
}

/// Examines a message on the registered port of its protocol. Octets removed by the snap length are assumed to be
/// valid.
fn look_on_own_port(bytes: &[u8], len: usize, variant: Variant) -> Look {
    let Some(message) = DnsMessage::read(bytes, len, variant) else { return Look::No };
    let header = &message.header;
    let is_known = match variant {
        Variant::Llmnr => header.flags.0 & !LLMNR_FLAGS == 0,
        // Both sides ignore these bits (RFC 6762 section 18).
        Variant::Mdns => header.flags.opcode() == Opcode(0),
        Variant::Dns if header.flags.opcode().name().is_some() => true,
        Variant::Dns if bytes.len() < len => return Look::More,
        Variant::Dns => is_read_to_its_end(&message),
    };
    if !is_known {
        return Look::No;
    }
    let [question_count, ..] = header.counts;
    let fits = fits(bytes, len);
    let is_sound = if question_count > 0 {
        let mut walk = message.items();
        match walk.next() {
            // Either may be malformed: small counts are as strong evidence as a valid name.
            Some(Item::Question(question)) => fits || question_count == 1 && is_usual(&question),
            _ => fits,
        }
    } else {
        // An error, part of a zone transfer, a query for a cookie, an announcement, or a stateful operation.
        fits && (header.record_count() > 0
            || header.flags.opcode() == Opcode(6)
            || header.flags.is_response() && header.flags.rcode() != Rcode(0))
    };
    if is_sound { Look::of(header) } else { Look::No }
}

/// Returns whether a DNS message contains exactly the items that its header claims. On the registered port, a message
/// with an unassigned opcode is still DNS: a server answers it with NOTIMP (RFC 1035 section 4.1.1).
fn is_read_to_its_end(message: &DnsMessage<'_>) -> bool {
    let mut walk = message.items();
    let item_count = walk.by_ref().count();
    item_count > 0 && walk.parse_error().is_none() && walk.section().is_none() && walk.rest_len() == 0
}

fn is_usual(question: &Question<'_>) -> bool {
    question.record_type.name().is_some() && question.class.name().is_some()
}

/// Returns whether a header is typical of the first DNS message of a flow: one question, no reserved bits.
fn is_modest(header: &Header) -> bool {
    let [question_count, answer_count, authority_count, additional_count] = header.counts;
    let flags = header.flags;
    let is_fit = if flags.is_response() {
        flags.rcode().name().is_some()
    } else {
        let is_bare = answer_count == 0 && authority_count == 0 && additional_count <= 2;
        is_bare && flags.rcode() == Rcode(0) && !flags.is_recursion_available() && !flags.is_authoritative()
    };
    question_count == 1 && flags.0 & 0x0040 == 0 && flags.opcode() == Opcode(0) && is_fit
}

/// Examines a message on a port that is not registered for DNS.
fn look_anywhere(bytes: &[u8], len: usize) -> Look {
    let Some(message) = DnsMessage::read(bytes, len, Variant::Dns) else { return Look::No };
    if bytes.len() < len || !is_modest(&message.header) || !fits(bytes, len) {
        return Look::No;
    }
    let mut walk = message.items();
    let Some(Item::Question(question)) = walk.next() else { return Look::No };
    if !is_usual(&question) || !has_plain_labels(question.name.labels()) || is_netbios(&question.name) {
        return Look::No;
    }
    let is_known = |item: &Item<'_>| match item {
        Item::Record(_, record) => record.record_type.name().is_some(),
        Item::Question(_) => true,
    };
    if walk.all(|item| is_known(&item))
        && walk.parse_error().is_none()
        && walk.section().is_none()
        && walk.rest_len() == 0
    {
        Look::of(&message.header)
    } else {
        Look::No
    }
}

fn has_plain_labels(mut labels: Labels<'_>) -> bool {
    labels.all(|label| label.iter().all(|octet| octet.is_ascii_alphanumeric() || b"-_*".contains(octet)))
}

/// Returns whether a name is an encoded NetBIOS name: 32 letters from A to P (RFC 1001 section 14.1).
fn is_netbios(name: &Name<'_>) -> bool {
    let is_encoded =
        |label: &[u8]| label.len() == 32 && label.iter().all(|octet| (b'A'..=b'P').contains(octet));
    name.labels().next().is_some_and(is_encoded)
}
