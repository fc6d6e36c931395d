//! Writers that append values as text: numbers, IP addresses and MAC addresses.

use std::fmt::Display;
use std::io::Write as _;
use std::net::IpAddr;

#[inline]
pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    // Most numbers of a record are small.
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    long_number(out, value);
}

fn long_number(out: &mut Vec<u8>, value: u64) {
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
    let mut text = [b':'; 17];
    for (pair, octet) in text.chunks_mut(3).zip(value) {
        let digits = [DIGITS[usize::from(octet >> 4)], DIGITS[usize::from(octet & 15)]];
        pair.iter_mut().zip(digits).for_each(|(place, digit)| *place = digit);
    }
    out.extend_from_slice(&text);
}
