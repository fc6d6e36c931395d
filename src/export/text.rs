//! Writers that append values as text: numbers, IP addresses and MAC addresses.

use std::fmt::Display;
use std::io::Write as _;
use std::net::IpAddr;

pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

pub(super) fn display(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value}");
}

pub(super) fn address(out: &mut Vec<u8>, value: IpAddr) {
    let IpAddr::V4(address) = value else { return display(out, value) };
    let [a, b, c, d] = address.octets();
    number(out, a.into());
    for octet in [b, c, d] {
        out.push(b'.');
        number(out, octet.into());
    }
}

pub(super) fn mac(out: &mut Vec<u8>, value: [u8; 6]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    for (index, octet) in value.into_iter().enumerate() {
        if index > 0 {
            out.push(b':');
        }
        out.extend([DIGITS[usize::from(octet >> 4)], DIGITS[usize::from(octet & 15)]]);
    }
}
