//! Recognizers of network monitoring: NetFlow, IPFIX, sFlow.

use super::octets::{u16_at, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

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
    use super::{IPFIX, NETFLOW, SFLOW};

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
        datagram(&NETFLOW, 2055, TWO_RECORDS),
        datagram(
            &IPFIX,
            4739,
            b"\0\x0A\0\x1C\x3B\0\0\0\0\0\0\x01\0\0\0\0\0\x02\0\x0D\x01\0\0\x01\0\x08\0\x04",
        ),
        datagram(&SFLOW, 40_000, b"\0\0\0\x05\0\0\0\x01\x0A\0\0\x01\0\0\0\0\0\0\0\x01\0\0\x10\0\0\0\0\x01"),
    ];
}
