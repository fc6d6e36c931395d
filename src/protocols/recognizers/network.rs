//! Recognizers of network infrastructure: SSDP.

use super::octets::{begins_with, datagram_in_role};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// UPnP SSDP, recognized by its start lines of HTTP over UDP.
pub static SSDP: Protocol =
    Protocol::new("ssdp").over_datagrams(&[1900], Some(ssdp)).datagrams_begin_with(OctetSet::of(b"HMN"));

fn ssdp(opening: &DatagramOpening<'_>) -> Verdict {
    let verdict =
        begins_with(opening.bytes, &[b"M-SEARCH * HTTP/1.", b"NOTIFY * HTTP/1.", b"HTTP/1.1 200 OK\r\n"]);
    let is_answer = match opening.bytes.first() {
        Some(b'H') => Some(true),
        Some(b'M') => Some(false),
        _ => None,
    };
    datagram_in_role(opening, verdict == Verdict::Match, is_answer)
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, datagram};
    use super::SSDP;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&SSDP, 1900, b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n\r\n"),
        datagram(&SSDP, 40_000, b"HTTP/1.1 200 OK\r\nST: upnp:rootdevice\r\n\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&SSDP, 1900, b"BT-SEARCH * HTTP/1.1\r\n\r\n"),
        datagram(&SSDP, 1900, b"NOTIFY sip:joe@example SIP/2.0\r\n\r\n"),
    ];
}
