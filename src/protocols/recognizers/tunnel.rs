//! Recognizers of tunnels: WireGuard, OpenVPN, IPsec, L2TP, Teredo.

use super::octets::{datagram_in_role, u16_at, u32_at, u32_le_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, StreamOpening, Verdict};

/// WireGuard, recognized by a handshake message with matching type and length; in the middle of a flow by two data
/// messages with the same receiver and increasing counters.
pub static WIREGUARD: Protocol = Protocol::new("wireguard")
    .over_datagrams(&[51820], Some(wireguard))
    .datagrams_begin_with(OctetSet::range(1..=4));

/// `OpenVPN`, recognized by the first reset packet of a client and the server's response; without authentication of
/// control packets, by the client's reset alone.
pub static OPENVPN: Protocol = Protocol::new("openvpn")
    .over_streams(&[1194], Some(openvpn_stream))
    .over_datagrams(&[1194], Some(openvpn_datagram))
    .streams_begin_with(OctetSet::range(0..=4))
    .datagrams_begin_with(OctetSet::of(b"\x38\x40\x50"));

/// IPsec, recognized by IKE (RFC 2408, RFC 7296) on any port, by ESP and keep-alives on port 4500 (RFC 3948), and by
/// ESP and AH as IP protocols. IKE and ESP share a flow on port 4500, so they have one name.
pub static IPSEC: Protocol = Protocol::new("ipsec").in_eve("ike").over_datagrams(&[500, 4500], Some(ipsec));

/// L2TP version 2 (RFC 2661), recognized by a control message that fills the datagram; on port 1701 also by data
/// messages.
pub static L2TP: Protocol = Protocol::new("l2tp").over_datagrams(&[1701], Some(l2tp));

/// Teredo (RFC 4380) that is not decapsulated as a tunnel, recognized by port 3544, and a Teredo header or an IPv6
/// packet.
pub static TEREDO: Protocol = Protocol::new("teredo")
    .over_datagrams(&[3544], Some(teredo))
    .datagrams_begin_with(OctetSet::range(0x60..=0x6F).and(OctetSet::of(b"\0")));

fn wireguard(opening: &DatagramOpening<'_>) -> Verdict {
    let [kind @ 1..=4, 0, 0, 0, ..] = opening.bytes else { return Verdict::No };
    match (kind, opening.len) {
        (1, 148) => by_role(opening.from == Role::Client),
        (2, 92) | (3, 64) => by_role(opening.from == Role::Server),
        (4, 32..) if opening.len.is_multiple_of(16) => {
            if opening.previous.is_empty() {
                return Verdict::More;
            }
            let receiver_and_count =
                |bytes| Some((u32_le_at(bytes, 4)?, u32_le_at(bytes, 8)?, u32_le_at(bytes, 12)?));
            let (now, before) = (receiver_and_count(opening.bytes), receiver_and_count(opening.previous));
            Verdict::of(now.zip(before).is_some_and(|(now, before)| {
                opening.previous.starts_with(&[4, 0, 0, 0])
                    && (now.0, now.2) == (before.0, before.2)
                    && (1..=64).contains(&now.1.wrapping_sub(before.1))
            }))
        }
        _ => Verdict::No,
    }
}

fn by_role(is_straight: bool) -> Verdict {
    if is_straight { Verdict::Match } else { Verdict::MatchReversed }
}

/// First octets of a client's first `OpenVPN` packet, a hard reset of version 2 or 3: opcode and key id.
const CLIENT_RESETS: [u8; 2] = [7 << 3, 10 << 3];
/// First octet of the server's response to the first `OpenVPN` packet of a client: opcode and key id.
const SERVER_RESET: u8 = 8 << 3;

/// Length in octets of a client's first `OpenVPN` packet without an HMAC: opcode, session id, no acknowledgments,
/// packet id.
const PLAIN_RESET_LEN: usize = 14;

fn is_plain_reset(bytes: &[u8]) -> bool {
    matches!(bytes, [first, _, _, _, _, _, _, _, _, 0, 0, 0, 0, 0] if CLIENT_RESETS.contains(first))
}

fn openvpn_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let [first, ..] = opening.bytes else { return Verdict::No };
    // With an HMAC of 20 to 64 octets, or encrypted, with a client key after it in version 3.
    let has_len = |len: usize| len >= 40;
    if CLIENT_RESETS.contains(first) {
        return match opening.len {
            PLAIN_RESET_LEN => datagram_in_role(opening, is_plain_reset(opening.bytes), Some(false)),
            len if has_len(len)
                && (opening.previous.is_empty() || opening.previous.first() == Some(first)) =>
            {
                Verdict::More
            }
            _ => Verdict::No,
        };
    }
    let is_answer = opening.answered.first().is_some_and(|first| CLIENT_RESETS.contains(first));
    if *first != SERVER_RESET || !is_answer || opening.len < PLAIN_RESET_LEN {
        return Verdict::No;
    }
    by_role(opening.from == Role::Server)
}

fn openvpn_stream(opening: &StreamOpening<'_>) -> Verdict {
    let (Some(len), Some([first, ..])) = (u16_at(opening.client, 0), opening.client.get(2..)) else {
        return if matches!(opening.client, [0..=4, ..]) { Verdict::More } else { Verdict::No };
    };
    let len = usize::from(len);
    if !CLIENT_RESETS.contains(first) || !(PLAIN_RESET_LEN..=1200).contains(&len) {
        return Verdict::No;
    }
    let Some(packet) = opening.client.get(2..2 + len) else { return Verdict::More };
    if is_plain_reset(packet) {
        return Verdict::Match;
    }
    match opening.server {
        [] | [_] | [_, _] if opening.client.len() == 2 + len => Verdict::More,
        [_, _, SERVER_RESET, ..] => Verdict::Match,
        _ => Verdict::No,
    }
}

fn ipsec(opening: &DatagramOpening<'_>) -> Verdict {
    if matches!(opening.ip_protocol, 50 | 51) {
        return Verdict::Match;
    }
    if !opening.has_port(4500) {
        let is_match = is_ike(opening.bytes, opening.len);
        return datagram_in_role(opening, is_match, is_ike_answer(opening.bytes));
    }
    Verdict::of(match opening.bytes {
        [0, 0, 0, 0, message @ ..] => {
            return datagram_in_role(opening, is_ike(message, opening.len - 4), is_ike_answer(message));
        }
        [0xFF] => true,
        // A security parameter index; values below 256 are reserved.
        [0, 0, 0, _, ..] => false,
        _ => opening.len >= 28,
    })
}

/// Returns whether `bytes` start with an IKE header (RFC 7296 section 3.1) whose length field is `len`, the length of
/// the message in octets.
fn is_ike(bytes: &[u8], len: usize) -> bool {
    let Some([next_payload, version, exchange, flags]) = bytes.get(16..20) else { return false };
    let has_initiator = bytes.iter().take(8).any(|octet| *octet != 0);
    let is_type = match version {
        0x10 => *next_payload <= 21 && matches!(exchange, 0..=6 | 32..=33),
        0x20 => {
            (matches!(next_payload, 0 | 33..=60)) && matches!(exchange, 34..=45) && flags & 0b1100_0111 == 0
        }
        _ => false,
    };
    has_initiator
        && is_type
        && u32_at(bytes, 24).is_some_and(|announced| announced >= 28 && announced as usize == len)
}

/// Returns whether an IKE message is a response: by its flag in version 2, and in version 1 only for the first message,
/// which has no responder's cookie.
fn is_ike_answer(message: &[u8]) -> Option<bool> {
    let responder = message.get(8..16)?;
    match message.get(16..20)? {
        [_, 0x20, _, flags] => Some(flags & 0x20 != 0),
        _ => responder.iter().all(|octet| *octet == 0).then_some(false),
    }
}

fn l2tp(opening: &DatagramOpening<'_>) -> Verdict {
    let [first, second, ..] = opening.bytes else { return Verdict::No };
    if second & 0x0F != 2 {
        return Verdict::No;
    }
    let len = u16_at(opening.bytes, 2).map(usize::from);
    // Control messages have a length and sequence numbers, but neither offset nor priority.
    let is_control = first & 0xCB == 0xC8 && len == Some(opening.len) && opening.len >= 12;
    Verdict::of(is_control || (opening.has_port(1701) && first & 0x80 == 0 && opening.len >= 6))
}

fn teredo(opening: &DatagramOpening<'_>) -> Verdict {
    if !opening.has_port(3544) {
        return Verdict::No;
    }
    Verdict::of(match opening.bytes {
        [0, 0 | 1, ..] => opening.len >= 48,
        [0x60..=0x6F, ..] => u16_at(opening.bytes, 4).is_some_and(|len| usize::from(len) + 40 == opening.len),
        _ => false,
    })
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram};
    use super::{IPSEC, L2TP, OPENVPN, TEREDO, WIREGUARD};

    const INITIATION: &[u8; 148] = &{
        let mut bytes = [0x5A; 148];
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (1, 0, 0, 0);
        bytes
    };

    const DATA_1: &[u8; 32] =
        b"\x04\x00\x00\x00\x11\x22\x33\x44\x07\x00\x00\x00\x00\x00\x00\x000123456789abcdef";
    const DATA_2: &[u8; 32] =
        b"\x04\x00\x00\x00\x11\x22\x33\x44\x08\x00\x00\x00\x00\x00\x00\x000123456789abcdef";

    const CLIENT_RESET: &[u8; 42] = &{
        let mut bytes = [0x77; 42];
        bytes[0] = 0x38;
        bytes
    };
    const SERVER_RESET: &[u8; 50] = &{
        let mut bytes = [0x66; 50];
        bytes[0] = 0x40;
        bytes
    };

    const IKE: &[u8] = b"initiate\0\0\0\0\0\0\0\0\x21\x20\x22\x08\x00\x00\x00\x00\x00\x00\x00\x1C";
    const IKE_TRUNCATED: &[u8] = b"initiate\0\0\0\0\0\0\0\0\x21\x20\x22\x08\x00\x00\x00\x00\x00\x00\x00\x1D";
    const IKE_4500: &[u8] =
        b"\0\0\0\0initiate\0\0\0\0\0\0\0\0\x21\x20\x22\x08\x00\x00\x00\x00\x00\x00\x00\x1C";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&WIREGUARD, 51820, INITIATION),
        datagram(&WIREGUARD, 40_000, DATA_2).after(DATA_1),
        datagram(&OPENVPN, 1194, b"\x38sessions\0\0\0\0\0"),
        datagram(&OPENVPN, 1194, SERVER_RESET).answered(CLIENT_RESET),
        client(&OPENVPN, 1194, b"\0\x0E\x38sessions\0\0\0\0\0"),
        datagram(&IPSEC, 500, IKE),
        datagram(&IPSEC, 4500, IKE_4500),
        datagram(&IPSEC, 4500, b"\x12\x34\x56\x78\x00\x00\x00\x01encrypted octets of ESP"),
        datagram(&IPSEC, 4500, b"\xFF"),
        datagram(&IPSEC, 0, b"\x12\x34\x56\x78\x00\x00\x00\x01encrypted").over(50),
        datagram(&L2TP, 1701, b"\xC8\x02\x00\x0C\x00\x01\x00\x00\x00\x00\x00\x01"),
        datagram(
            &TEREDO,
            3544,
            b"\x00\x01\x00\x00noncenon\x00\x60\x00\x00\x00\x00\x00\x3B\x15sixteen octets..sixteen octets..",
        ),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&WIREGUARD, 51820, b"\x01\x00\x00\x00 of another length"),
        datagram(&WIREGUARD, 51820, DATA_1).after(DATA_2),
        datagram(&OPENVPN, 1194, b"\x38sessions\0\0\0\0\x01"),
        datagram(&OPENVPN, 1194, SERVER_RESET).answered(b"\x01"),
        client(&OPENVPN, 1194, b"\0\x0E\x39sessions\0\0\0\0\0"),
        datagram(&IPSEC, 500, IKE_TRUNCATED),
        datagram(&IPSEC, 4500, b"\x12\x34\x56\x78\x00\x00"),
        datagram(&L2TP, 1701, b"\xC8\x03\x00\x0C\x00\x01\x00\x00\x00\x00\x00\x01"),
        datagram(&TEREDO, 3544, b"\x60\x00\x00\x00\x00\x01\x3B\x15"),
    ];
}
