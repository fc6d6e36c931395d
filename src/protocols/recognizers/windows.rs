//! Recognizers of Windows networks: SMB, NetBIOS, Kerberos, RDP, DCE/RPC.

use super::octets::{begins_with, datagram_in_role, dialogue, either_in_role, once, u16_at, u32_at};
use crate::codec::ber;
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// SMB 1, 2 and 3, recognized by the magic number after a NetBIOS session header, or by a NetBIOS session request.
pub static SMB: Protocol = Protocol::new("smb")
    .in_zeek("smb")
    .in_eve("smb")
    .over_streams(&[445, 139], Some(|opening| either_in_role(opening, smb, is_smb_answer)))
    .streams_begin_with(OctetSet::of(b"\0\x81"));

/// NetBIOS name service (RFC 1002 section 4.2), recognized by a DNS message whose first name has NetBIOS encoding.
pub static NBNS: Protocol = Protocol::new("nbns").in_zeek("dns").over_datagrams(&[137], Some(nbns));

/// NetBIOS datagram service (RFC 1002 section 4.4), recognized by port 138, message type and length.
pub static NBDGM: Protocol = Protocol::new("nbdgm")
    .over_datagrams(&[138], Some(nbdgm))
    .datagrams_begin_with(OctetSet::range(0x10..=0x16));

/// Kerberos 5 (RFC 4120), recognized by a message type with version 5.
pub static KERBEROS: Protocol = Protocol::new("kerberos")
    .in_zeek_by_transport("krb_tcp", "krb")
    .in_eve("krb5")
    .over_streams(
        &[88],
        Some(|opening| either_in_role(opening, kerberos_stream, |bytes| is_kerberos_answer(bytes.get(4..)?))),
    )
    .over_datagrams(&[88], Some(kerberos_datagram))
    .streams_begin_with(OctetSet::of(b"\0"))
    .datagrams_begin_with(OctetSet::range(0x6A..=0x6D).and(OctetSet::of(b"\x7E")));

/// RDP, recognized by an X.224 connection request with a cookie or a negotiation; over UDP by the handshake on port
/// 3389.
pub static RDP: Protocol = Protocol::new("rdp")
    .in_zeek_by_transport("rdp", "rdpeudp")
    .in_eve("rdp")
    .over_streams(&[3389], Some(rdp_stream))
    .over_datagrams(&[3389], Some(rdp_datagram))
    .streams_begin_with(OctetSet::of(b"\x03"))
    .datagrams_begin_with(OctetSet::of(b"\xFF"));

/// DCE/RPC version 5, recognized by the header, with little-endian integers.
pub static DCERPC: Protocol = Protocol::new("dcerpc")
    .in_zeek("dce_rpc")
    .in_eve("dcerpc")
    .over_streams(&[135], Some(|opening| either_in_role(opening, dcerpc, is_dcerpc_answer)))
    .streams_begin_with(OctetSet::of(b"\x05"));

fn smb(bytes: &[u8]) -> Verdict {
    match bytes {
        [] => Verdict::More,
        [0, ..] => {
            begins_with(bytes.get(4..).unwrap_or_default(), &[b"\xFESMB", b"\xFFSMB", b"\xFDSMB", b"\xFCSMB"])
        }
        // A session request (RFC 1002 section 4.3.2): two encoded names. Only SMB follows it in practice.
        [0x81, ..] => once(bytes, 6, || matches!(bytes, [_, 0, 0, 0x44, 0x20, b'A'..=b'P', ..])),
        _ => Verdict::No,
    }
}

/// Returns whether an SMB message is a response, by the flags of its version.
fn is_smb_answer(bytes: &[u8]) -> Option<bool> {
    match (bytes.first()?, bytes.get(4..8)) {
        (0x81, _) => Some(false),
        (_, Some(b"\xFFSMB")) => bytes.get(13).map(|flags| flags & 0x80 != 0),
        (_, Some(b"\xFESMB")) => bytes.get(20).map(|flags| flags & 1 != 0),
        _ => None,
    }
}

fn nbns(opening: &DatagramOpening<'_>) -> Verdict {
    let (Some(counts), Some([0x20, name @ ..])) = (opening.bytes.get(4..12), opening.bytes.get(12..)) else {
        return Verdict::No;
    };
    let is_small = matches!(counts, [0, 0..=1, 0, _, 0, _, 0, 0..=1]);
    let name = name.get(..32).unwrap_or(name);
    let is_encoded = !name.is_empty() && name.iter().all(|octet| matches!(octet, b'A'..=b'P'));
    // On its port, one of the two is enough.
    let is_on_port = opening.has_port(137);
    let is_match = (is_small && is_encoded) || (is_on_port && (is_small || is_encoded));
    datagram_in_role(opening, is_match, opening.bytes.get(2).map(|flags| flags & 0x80 != 0))
}

fn nbdgm(opening: &DatagramOpening<'_>) -> Verdict {
    // Port of the sender, which some implementations omit.
    let [kind @ 0x10..=0x16, _, _, _, _, _, _, _, 0, 0 | 138, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(138) {
        return Verdict::No;
    }
    // Data messages contain their own length, and the rest of the header.
    let is_filled = || u16_at(opening.bytes, 10).is_some_and(|len| usize::from(len) + 14 <= opening.len);
    Verdict::of(*kind > 0x12 || is_filled())
}

/// Returns whether `bytes` are a Kerberos message of `len` octets.
fn is_kerberos(bytes: &[u8], len: usize) -> bool {
    // AS and TGS requests and replies; error.
    let Some((0x6A..=0x6D | 0x7E, header_len, body_len)) = ber::header(bytes) else { return false };
    let Some((0x30, inner_len, _)) = ber::header(bytes.get(header_len..).unwrap_or_default()) else {
        return false;
    };
    // The version, which is the first field of a reply and the second of a request, has tag number 0 or 1.
    let version = bytes.get(header_len + inner_len..).unwrap_or_default();
    header_len + body_len == len && matches!(version, [0xA0 | 0xA1, 3, 2, 1, 5, ..])
}

fn kerberos_stream(bytes: &[u8]) -> Verdict {
    match bytes {
        [0, 0..=1, ..] | [0] | [] => {}
        _ => return Verdict::No,
    }
    let (Some(len), Some(message)) = (u32_at(bytes, 0), bytes.get(4..)) else { return Verdict::More };
    if message.is_empty() {
        return Verdict::More;
    }
    if !matches!(message, [0x6A..=0x6D | 0x7E, ..]) {
        return Verdict::No;
    }
    once(message, 20, || is_kerberos(message, len as usize))
}

fn kerberos_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    datagram_in_role(opening, is_kerberos(opening.bytes, opening.len), is_kerberos_answer(opening.bytes))
}

/// Returns whether a Kerberos message is a reply or an error.
fn is_kerberos_answer(message: &[u8]) -> Option<bool> {
    message.first().map(|tag| matches!(tag, 0x6B | 0x6D | 0x7E))
}

fn rdp_stream(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(3389);
    // TPKT (RFC 1006), then a connection request of class 0; its parameters distinguish RDP from other uses of ISO
    // transport.
    let request = |bytes: &[u8]| match bytes {
        [3, 0, _, len, indicator, 0xE0, 0, 0, _, _, 0, rest @ ..] if *len == indicator.wrapping_add(5) => {
            match (rest, *len) {
                (_, 11) => Verdict::of(is_on_port),
                ([], _) => Verdict::More,
                ([1, ..], _) => once(rest, 4, || matches!(rest, [1, _, 8, 0, ..])),
                _ => begins_with(rest, &[b"Cookie: mstshash=", b"Cookie: msts="]),
            }
        }
        [3, 0, ..] | [3] | [] if bytes.len() < 11 => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, request, |_| Verdict::No)
}

fn rdp_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    // SYN of the transport: no acknowledged sequence number yet, and the flag.
    let is_syn = matches!(opening.bytes, [0xFF, 0xFF, 0xFF, 0xFF, _, _, _, flags, ..] if flags & 1 != 0);
    Verdict::of(is_syn && opening.has_port(3389))
}

/// Returns whether a DCE/RPC message is of the server: response, fault, or the answer to a bind or an alteration.
fn is_dcerpc_answer(bytes: &[u8]) -> Option<bool> {
    bytes.get(2).map(|kind| matches!(kind, 2 | 3 | 12 | 13 | 15))
}

fn dcerpc(bytes: &[u8]) -> Verdict {
    match bytes {
        [5, 0..=1, 0..=20, _, 0x10, 0, 0, 0, ..] => {
            once(bytes, 12, || matches!(bytes.get(8..10), Some([16..=255, _] | [_, 1..=255])))
        }
        [5, 0..=1, 0..=20, ..] | [5, 0..=1] | [5] | [] if bytes.len() < 8 => Verdict::More,
        _ => Verdict::No,
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram, server};
    use super::{DCERPC, KERBEROS, NBDGM, NBNS, RDP, SMB};

    const NAME_QUERY: &[u8] = b"\x12\x34\x01\x10\x00\x01\x00\x00\x00\x00\x00\x00\
        \x20FHEPFCELEHFCEPFFFACACACACACACABL\x00\x00\x20\x00\x01";
    const AS_REQUEST: &[u8] =
        b"\x6A\x12\x30\x10\xA1\x03\x02\x01\x05\xA2\x03\x02\x01\x0A\xA3\x04\x30\x02\x30\x00";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&SMB, 445, b"\x00\x00\x00\x45\xFFSMB\x72\x00\x00\x00"),
        client(&SMB, 445, b"\x00\x00\x00\x68\xFESMB\x40\x00\x00\x00"),
        client(&SMB, 139, b"\x81\x00\x00\x44\x20CKFDENECFDEFFCFGEFFCCACACACACACA"),
        server(&SMB, 445, b"\x00\x00\x00\x45\xFDSMBabcd"),
        datagram(&NBNS, 137, NAME_QUERY),
        datagram(&NBDGM, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x00\x02\x00\x00 A"),
        datagram(&KERBEROS, 88, AS_REQUEST),
        client(
            &KERBEROS,
            88,
            b"\x00\x00\x00\x14\x6A\x12\x30\x10\xA1\x03\x02\x01\x05\xA2\x03\x02\x01\x0A\xA3\x04\x30\x02\x30\x00",
        ),
        client(&RDP, 3389, b"\x03\x00\x00\x13\x0E\xE0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00"),
        client(&RDP, 13_389, b"\x03\x00\x00\x22\x1D\xE0\x00\x00\x00\x00\x00Cookie: mstshash=nemo\r\n"),
        client(&RDP, 3389, b"\x03\x00\x00\x0B\x06\xE0\x00\x00\x00\x00\x00"),
        datagram(&RDP, 3389, b"\xFF\xFF\xFF\xFF\x04\x00\x00\x01\x12\x34"),
        client(&DCERPC, 135, b"\x05\x00\x0B\x03\x10\x00\x00\x00\x48\x00\x00\x00\x01\x00\x00\x00"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&SMB, 445, b"\x00\x00\x00\x45\xFFSMC\x72\x00\x00\x00"),
        client(&SMB, 139, b"\x81\x00\x00\x44\x21CKFDEN"),
        datagram(
            &NBNS,
            53,
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01",
        ),
        datagram(&NBDGM, 138, b"\x11\x0A\x12\x34\x0A\x00\x00\x01\x00\x8A\x01\x02\x00\x00 A"),
        // SNMP has its version in place of the message id, and a community or a sequence after it.
        datagram(
            &KERBEROS,
            88,
            b"\x6A\x12\x30\x10\xA1\x03\x02\x01\x04\xA2\x03\x02\x01\x0A\xA3\x04\x30\x02\x30\x00",
        ),
        client(&KERBEROS, 88, b"\x00\x00\x00\x14\x16\x03\x01\x00"),
        client(
            &RDP,
            102,
            b"\x03\x00\x00\x16\x11\xE0\x00\x00\x00\x01\x00\xC0\x01\x0A\xC1\x02\x01\x00\xC2\x02\x01\x02",
        ),
        datagram(&RDP, 3389, b"\x00\x01\x00\x00\x21\x12\xA4\x42abcdefghijkl"),
        client(&DCERPC, 135, b"\x05\x01\x00\x00\x00\x00\x00\x00\x48\x00\x00\x00"),
    ];
}
