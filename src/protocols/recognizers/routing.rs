//! Recognizers of protocols for routers and switches: BGP, RIP, `OpenFlow`.

use super::octets::{begins_with, either, once, u16_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// BGP (RFC 4271), recognized by the marker, and a message type.
pub static BGP: Protocol = Protocol::new("bgp")
    .over_streams(&[179], Some(|opening| either(opening, bgp)))
    .streams_begin_with(OctetSet::of(b"\xFF"));

/// RIP 1 and 2 (RFC 2453), recognized by port 520, and a length of complete entries.
pub static RIP: Protocol =
    Protocol::new("rip").over_datagrams(&[520], Some(rip)).datagrams_begin_with(OctetSet::range(1..=2));

/// `OpenFlow` 1.0 to 1.5, recognized by port 6653 or 6633, and a valid header.
pub static OPENFLOW: Protocol = Protocol::new("openflow")
    .over_streams(&[6653, 6633], Some(openflow))
    .streams_begin_with(OctetSet::range(1..=6));

fn bgp(bytes: &[u8]) -> Verdict {
    match begins_with(bytes, &[&[0xFF; 16]]) {
        Verdict::Match => once(bytes, 19, || matches!(bytes.get(16..19), Some([0..=16, _, 1..=5]))),
        verdict => verdict,
    }
}

fn rip(opening: &DatagramOpening<'_>) -> Verdict {
    let [1 | 2, 1 | 2, 0, 0, ..] = opening.bytes else { return Verdict::No };
    Verdict::of(opening.has_port(520) && opening.len >= 24 && (opening.len - 4).is_multiple_of(20))
}

fn openflow(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(6653) || opening.has_port(6633);
    either(opening, |bytes| match bytes {
        [] => Verdict::More,
        [1..=6, 0..=35, ..] if is_on_port => once(bytes, 4, || u16_at(bytes, 2).is_some_and(|len| len >= 8)),
        [1..=6] if is_on_port => Verdict::More,
        _ => Verdict::No,
    })
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram};
    use super::{BGP, OPENFLOW, RIP};

    const KEEPALIVE: &[u8; 19] = &{
        let mut bytes = [0xFF; 19];
        (bytes[16], bytes[17], bytes[18]) = (0, 19, 4);
        bytes
    };

    const TYPE_0: &[u8; 19] = &{
        let mut bytes = *KEEPALIVE;
        bytes[18] = 0;
        bytes
    };

    const ROUTES: &[u8; 24] = &{
        let mut bytes = [0; 24];
        (bytes[0], bytes[1], bytes[23]) = (1, 2, 16);
        bytes
    };

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&BGP, 179, KEEPALIVE),
        datagram(&RIP, 520, ROUTES),
        client(&OPENFLOW, 6653, b"\x04\x00\x00\x08\x00\x00\x00\x01"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&BGP, 179, TYPE_0),
        datagram(&RIP, 5200, ROUTES),
        client(&OPENFLOW, 80, b"\x04\x00\x00\x08\x00\x00\x00\x01"),
        client(&OPENFLOW, 6653, b"\x04\x00\x00\x07\x00\x00\x00\x01"),
    ];
}
