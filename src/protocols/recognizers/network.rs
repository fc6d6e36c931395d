//! Recognizers of network infrastructure: NTP, DHCP, DHCPv6, RADIUS, SSDP.

use super::octets::{begins_with, datagram_in_role, u16_at, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, Verdict};

/// NTP (RFC 5905), versions 1 to 4, including control and private messages, recognized by port 123 and a valid header.
pub static NTP: Protocol = Protocol::new("ntp").over_datagrams(&[123], Some(ntp));

/// DHCP (RFC 2131), recognized by the magic cookie; on port 67 or 68 also BOOTP without a cookie.
pub static DHCP: Protocol =
    Protocol::new("dhcp").over_datagrams(&[67, 68], Some(dhcp)).datagrams_begin_with(OctetSet::range(1..=2));

/// DHCPv6 (RFC 8415), recognized by port 546 or 547, and options that fill the message.
pub static DHCPV6: Protocol = Protocol::new("dhcpv6")
    .over_datagrams(&[546, 547], Some(dhcpv6))
    .datagrams_begin_with(OctetSet::range(1..=36));

/// RADIUS (RFC 2865, RFC 2866, RFC 5176), recognized by a known code, and attributes that fill the message; on its
/// registered ports, padding may follow the message.
pub static RADIUS: Protocol = Protocol::new("radius")
    .over_datagrams(&[1812, 1813, 1645, 1646, 3799], Some(radius))
    .datagrams_begin_with(OctetSet::range(1..=5).and(OctetSet::range(11..=13)).and(OctetSet::range(40..=45)));

/// UPnP SSDP, recognized by its start lines of HTTP over UDP.
pub static SSDP: Protocol =
    Protocol::new("ssdp").over_datagrams(&[1900], Some(ssdp)).datagrams_begin_with(OctetSet::of(b"HMN"));

fn ntp(opening: &DatagramOpening<'_>) -> Verdict {
    let [first, second, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(123) {
        return Verdict::No;
    }
    let (version, mode) = (first >> 3 & 7, first & 7);
    let is_valid = match mode {
        // Stratum 16 is unsynchronized, and higher values are invalid.
        1..=5 => (1..=4).contains(&version) && opening.len >= 48 && *second <= 16,
        6 => (2..=4).contains(&version) && opening.len >= 12,
        7 => (2..=4).contains(&version) && opening.len >= 8,
        _ => false,
    };
    let is_answer = match mode {
        1 | 3 => Some(false),
        2 | 4 => Some(true),
        6 => Some(second & 0x80 != 0),
        7 => Some(first & 0x80 != 0),
        _ => None,
    };
    datagram_in_role(opening, is_valid, is_answer)
}

fn dhcp(opening: &DatagramOpening<'_>) -> Verdict {
    let [operation @ (1 | 2), _, 0..=16, ..] = opening.bytes else { return Verdict::No };
    let is_on_port = opening.has_port(67) || opening.has_port(68);
    let is_match = match u32_at(opening.bytes, 236) {
        Some(cookie) => cookie == 0x6382_5363 || (is_on_port && opening.len >= 300),
        // The snap length truncated it before the cookie.
        None => is_on_port && opening.len >= 240 && opening.bytes.len() >= 28,
    };
    datagram_in_role(opening, is_match, Some(*operation == 2))
}

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

fn radius(opening: &DatagramOpening<'_>) -> Verdict {
    let [code @ (1..=5 | 11..=13 | 40..=45), ..] = opening.bytes else { return Verdict::No };
    let Some(len) = u16_at(opening.bytes, 2).map(usize::from) else { return Verdict::No };
    let is_on_port = [1812, 1813, 1645, 1646, 3799].into_iter().any(|port| opening.has_port(port));
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
    let is_answer = matches!(code, 2 | 3 | 5 | 11 | 41 | 42 | 44 | 45);
    datagram_in_role(opening, at == len || (!is_complete && at <= len), Some(is_answer))
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
    use super::{DHCP, DHCPV6, NTP, RADIUS, SSDP};

    const BOOTREQUEST: &[u8; 244] = &{
        let mut bytes = [0; 244];
        (bytes[0], bytes[1], bytes[2], bytes[4]) = (1, 1, 6, 0x39);
        (bytes[236], bytes[237], bytes[238], bytes[239]) = (0x63, 0x82, 0x53, 0x63);
        (bytes[240], bytes[241], bytes[242], bytes[243]) = (53, 1, 1, 255);
        bytes
    };

    const NO_COOKIE: &[u8; 244] = &{
        let mut bytes = *BOOTREQUEST;
        bytes[236] = 0;
        bytes
    };

    const NTP_CLIENT: &[u8; 48] = &{
        let mut bytes = [0; 48];
        (bytes[0], bytes[2], bytes[3], bytes[40]) = (0x23, 6, 0xE8, 0xE4);
        bytes
    };

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&NTP, 123, NTP_CLIENT),
        datagram(&NTP, 123, b"\x16\x02\x00\x01\0\0\0\0\0\0\0\0"),
        datagram(&DHCP, 67, BOOTREQUEST),
        datagram(&DHCP, 6767, BOOTREQUEST),
        datagram(&DHCPV6, 547, b"\x01\x10\x08\x74\x00\x08\x00\x02\x00\x00\x00\x06\x00\x02\x00\x17"),
        datagram(&RADIUS, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo"),
        datagram(&RADIUS, 40_000, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo"),
        datagram(&RADIUS, 1813, b"\x05\x07\x00\x14abcdefghijklmnop"),
        // RFC 2865 section 3: padding.
        datagram(&RADIUS, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo\0\0\0\0"),
        datagram(&RADIUS, 1813, b"\x05\x07\x00\x14abcdefghijklmnop\0\0"),
        datagram(&SSDP, 1900, b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n\r\n"),
        datagram(&SSDP, 40_000, b"HTTP/1.1 200 OK\r\nST: upnp:rootdevice\r\n\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&NTP, 40_000, NTP_CLIENT),
        datagram(&NTP, 123, b"\x23\x00\x06\xE8"),
        datagram(&DHCP, 67, NO_COOKIE),
        datagram(&DHCPV6, 547, b"\x01\x10\x08\x74\x00\x08\x00\x03\x00\x00\x00\x06\x00\x02\x00\x17"),
        datagram(&DHCPV6, 53, b"\x01\x10\x08\x74\x00\x08\x00\x02\x00\x00"),
        datagram(&RADIUS, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x07nemo"),
        // Longer than the datagram; an attribute that extends into the padding; padding on another port.
        datagram(&RADIUS, 1812, b"\x01\x07\x00\x1Babcdefghijklmnop\x01\x06nemo"),
        datagram(&RADIUS, 1812, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x08nemo\0\0\0\0"),
        datagram(&RADIUS, 40_000, b"\x01\x07\x00\x1Aabcdefghijklmnop\x01\x06nemo\0\0\0\0"),
        datagram(&RADIUS, 40_000, b"\x05\x07\x00\x14abcdefghijklmnop"),
        datagram(&SSDP, 1900, b"BT-SEARCH * HTTP/1.1\r\n\r\n"),
        datagram(&SSDP, 1900, b"NOTIFY sip:joe@example SIP/2.0\r\n\r\n"),
    ];
}
