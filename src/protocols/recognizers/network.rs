//! Recognizers of network infrastructure: DHCPv6, SSDP.

use super::octets::{begins_with, datagram_in_role, u16_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// DHCPv6 (RFC 8415), recognized by port 546 or 547, and options that fill the message.
pub static DHCPV6: Protocol = Protocol::new("dhcpv6")
    .over_datagrams(&[546, 547], Some(dhcpv6))
    .datagrams_begin_with(OctetSet::range(1..=36));

/// UPnP SSDP, recognized by its start lines of HTTP over UDP.
pub static SSDP: Protocol =
    Protocol::new("ssdp").over_datagrams(&[1900], Some(ssdp)).datagrams_begin_with(OctetSet::of(b"HMN"));

fn dhcpv6(opening: &DatagramOpening<'_>) -> Verdict {
    let [kind @ 1..=36, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(546) && !opening.has_port(547) {
        return Verdict::No;
    }
    // Relay messages have a hop count and two addresses before the options, instead of a transaction id.
    let mut at = if matches!(kind, 12 | 13) { 34 } else { 4 };
    while at < opening.bytes.len() {
        let Some(len) = u16_at(opening.bytes, at + 2) else { break };
        at += 4 + usize::from(len);
    }
    let is_filled = at == opening.len || (opening.bytes.len() < opening.len && at <= opening.len);
    // A server may begin with a Reconfigure message.
    let is_answer = Some(matches!(kind, 2 | 7 | 13)).filter(|_| *kind != 10);
    datagram_in_role(opening, is_filled, is_answer)
}

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
    use super::{DHCPV6, SSDP};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&DHCPV6, 547, b"\x01\x10\x08\x74\x00\x08\x00\x02\x00\x00\x00\x06\x00\x02\x00\x17"),
        datagram(&SSDP, 1900, b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n\r\n"),
        datagram(&SSDP, 40_000, b"HTTP/1.1 200 OK\r\nST: upnp:rootdevice\r\n\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&DHCPV6, 547, b"\x01\x10\x08\x74\x00\x08\x00\x03\x00\x00\x00\x06\x00\x02\x00\x17"),
        datagram(&DHCPV6, 53, b"\x01\x10\x08\x74\x00\x08\x00\x02\x00\x00"),
        datagram(&SSDP, 1900, b"BT-SEARCH * HTTP/1.1\r\n\r\n"),
        datagram(&SSDP, 1900, b"NOTIFY sip:joe@example SIP/2.0\r\n\r\n"),
    ];
}
