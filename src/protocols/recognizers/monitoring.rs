//! Recognizers of network monitoring: SNMP, syslog, NetFlow, IPFIX, sFlow.

use super::octets::{ber, datagram_in_role, is_printable, u16_at, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// SNMP 1, 2c and 3 (RFC 3416, RFC 3412), recognized by a message with a matching length and a known version, then a
/// community or the header sequence of version 3.
pub static SNMP: Protocol =
    Protocol::new("snmp").over_datagrams(&[161, 162], Some(snmp)).datagrams_begin_with(OctetSet::of(b"\x30"));

/// syslog (RFC 3164, RFC 5424), recognized by a priority in angle brackets, and text; on ports other than 514 also by a
/// date or a version, which is then required.
pub static SYSLOG: Protocol =
    Protocol::new("syslog").over_datagrams(&[514], Some(syslog)).datagrams_begin_with(OctetSet::of(b"<"));

/// NetFlow 1, 5, 7 and 9 (RFC 3954), recognized by the version, and records or sets that fill the datagram.
pub static NETFLOW: Protocol = Protocol::new("netflow")
    .over_datagrams(&[2055, 9995, 9996], Some(netflow))
    .datagrams_begin_with(OctetSet::of(b"\0"));

/// IPFIX (RFC 7011), recognized by the version, the length, and sets that fill the message.
pub static IPFIX: Protocol =
    Protocol::new("ipfix").over_datagrams(&[4739], Some(ipfix)).datagrams_begin_with(OctetSet::of(b"\0"));

/// sFlow 5, recognized by port 6343, version, address type, and a plausible number of samples.
pub static SFLOW: Protocol =
    Protocol::new("sflow").over_datagrams(&[6343], Some(sflow)).datagrams_begin_with(OctetSet::of(b"\0"));

fn snmp(opening: &DatagramOpening<'_>) -> Verdict {
    let Some((0x30, header_len, len)) = ber(opening.bytes) else { return Verdict::No };
    let fits = header_len + len == opening.len;
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

fn syslog(opening: &DatagramOpening<'_>) -> Verdict {
    let [b'<', rest @ ..] = opening.bytes else { return Verdict::No };
    let digits = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
    let Some((number, [b'>', text @ ..])) = rest.split_at_checked(digits) else { return Verdict::No };
    let priority = number.iter().take(4).fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    if !(1..=3).contains(&digits) || priority > 191 || !is_printable(text.get(..8).unwrap_or(text)) {
        return Verdict::No;
    }
    let has_month = || {
        const MONTHS: [&[u8; 3]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        text.first_chunk().is_some_and(|month| MONTHS.contains(&month))
    };
    Verdict::of(opening.has_port(514) || text.starts_with(b"1 ") || has_month())
}

fn netflow(opening: &DatagramOpening<'_>) -> Verdict {
    let [0, version @ (1 | 5 | 7 | 9), ..] = opening.bytes else { return Verdict::No };
    let Some(count) = u16_at(opening.bytes, 2).map(usize::from).filter(|count| *count > 0) else {
        return Verdict::No;
    };
    Verdict::of(match version {
        1 => count <= 24 && opening.len == 16 + 52 * count,
        5 => count <= 30 && opening.len == 24 + 48 * count,
        7 => count <= 28 && opening.len == 24 + 52 * count,
        _ => opening.len > 20 && are_sets(opening, 20, |id| matches!(id, 0 | 1 | 256..)),
    })
}

fn ipfix(opening: &DatagramOpening<'_>) -> Verdict {
    let [0, 10, ..] = opening.bytes else { return Verdict::No };
    let fits = u16_at(opening.bytes, 2).is_some_and(|len| usize::from(len) == opening.len);
    Verdict::of(fits && are_sets(opening, 16, |id| matches!(id, 2 | 3 | 256..)))
}

/// Returns whether NetFlow or IPFIX sets whose ids `is_id` accepts fill the captured part of a datagram from offset
/// `at`.
fn are_sets(opening: &DatagramOpening<'_>, mut at: usize, is_id: impl Fn(u16) -> bool) -> bool {
    while let Some((id, len)) = u16_at(opening.bytes, at).zip(u16_at(opening.bytes, at + 2)) {
        if !is_id(id) || len < 4 {
            return false;
        }
        at += usize::from(len);
    }
    at == opening.len || (opening.bytes.len() < opening.len && at <= opening.len)
}

fn sflow(opening: &DatagramOpening<'_>) -> Verdict {
    let [0, 0, 0, 5, 0, 0, 0, kind @ 1..=2, ..] = opening.bytes else { return Verdict::No };
    // After the agent's address: sub-agent id, sequence number, uptime, and the number of samples.
    let sample_count = u32_at(opening.bytes, if *kind == 1 { 24 } else { 36 });
    Verdict::of(opening.has_port(6343) && sample_count.is_some_and(|count| count < 1000))
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, datagram};
    use super::{IPFIX, NETFLOW, SFLOW, SNMP, SYSLOG};

    const NETFLOW_5: &[u8; 72] = &{
        let mut bytes = [0; 72];
        (bytes[1], bytes[3]) = (5, 1);
        bytes
    };

    const TWO_RECORDS: &[u8; 72] = &{
        let mut bytes = *NETFLOW_5;
        bytes[3] = 2;
        bytes
    };

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(
            &SNMP,
            161,
            b"\x30\x16\x02\x01\x01\x04\x06public\xA0\x09\x02\x01\x01\x02\x01\x00\x02\x01\x00",
        ),
        datagram(&SNMP, 161, b"\x30\x08\x02\x01\x03\x30\x03\x02\x01\x01"),
        datagram(&SYSLOG, 514, b"<34>su: failed"),
        datagram(&SYSLOG, 5140, b"<34>Oct 11 22:14:15 host su: failed"),
        datagram(&SYSLOG, 5140, b"<165>1 2003-10-11T22:14:15.003Z host app - - - x"),
        datagram(&NETFLOW, 2055, NETFLOW_5),
        datagram(
            &NETFLOW,
            9000,
            b"\0\x09\0\x01\0\0\x10\0\x3B\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x0C\x01\0\0\x01\0\x08\0\x04",
        ),
        datagram(
            &IPFIX,
            4739,
            b"\0\x0A\0\x1C\x3B\0\0\0\0\0\0\x01\0\0\0\0\0\x02\0\x0C\x01\0\0\x01\0\x08\0\x04",
        ),
        datagram(&SFLOW, 6343, b"\0\0\0\x05\0\0\0\x01\x0A\0\0\x01\0\0\0\0\0\0\0\x01\0\0\x10\0\0\0\0\x01"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(
            &SNMP,
            161,
            b"\x30\x17\x02\x01\x01\x04\x06public\xA0\x09\x02\x01\x01\x02\x01\x00\x02\x01\x00",
        ),
        datagram(&SNMP, 389, b"\x30\x0A\x02\x01\x01\x63\x05\x04\x00\x0A\x01\x00"),
        datagram(&SYSLOG, 514, b"<192>su: failed"),
        datagram(&SYSLOG, 5140, b"<34>su: failed"),
        datagram(&SYSLOG, 514, b"<?xml version"),
        datagram(&NETFLOW, 2055, TWO_RECORDS),
        datagram(
            &IPFIX,
            4739,
            b"\0\x0A\0\x1C\x3B\0\0\0\0\0\0\x01\0\0\0\0\0\x02\0\x0D\x01\0\0\x01\0\x08\0\x04",
        ),
        datagram(&SFLOW, 40_000, b"\0\0\0\x05\0\0\0\x01\x0A\0\0\x01\0\0\0\0\0\0\0\x01\0\0\x10\0\0\0\0\x01"),
    ];
}
