//! Parsing of addresses, networks, ports and numbers in a filter expression.

use std::net::Ipv6Addr;

use super::error::FilterErrorKind;
use super::names::port_of;

/// An address in a filter expression, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// An IPv4 address, or only its first one to three octets. `bits` contains the octets from the left, `len` is the
    /// number of bits that are given.
    V4 {
        bits: u32,
        len: u32,
    },
    V6(u128),
}

/// Parses an IPv4 address, which may have only its first octets, or an IPv6 address.
pub(super) fn address(text: &str) -> Result<Address, FilterErrorKind> {
    if text.contains(':') {
        return match text.parse::<Ipv6Addr>() {
            Ok(address) => Ok(Address::V6(address.to_bits())),
            Err(_) => Err(FilterErrorKind::Address),
        };
    }
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(FilterErrorKind::HostName);
    }
    let (mut bits, mut len) = (0u32, 0);
    for part in text.split('.') {
        let octet = number(part).filter(|octet| len < 32 && *octet <= 255 && part.len() <= 3);
        let Some(octet) = octet else { return Err(FilterErrorKind::Address) };
        bits = bits << 8 | octet;
        len += 8;
    }
    Ok(Address::V4 { bits: bits << (32 - len), len })
}

/// Parses a decimal number, or a hexadecimal number after `0x`. A leading zero is rejected: in libpcap it means
/// octal, which most users do not expect.
pub(super) fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => return None,
        None => (text, 10),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u32::from_str_radix(digits, radix).ok() } else { None }
}

/// Parses a port number or a service name.
pub(super) fn port(text: &str) -> Option<u16> {
    if text.bytes().next()?.is_ascii_digit() { u16::try_from(number(text)?).ok() } else { port_of(text) }
}

/// Parses two ports separated by a hyphen, or one port. Returns the lower port, then the higher one.
pub(super) fn port_range(text: &str) -> Option<(u16, u16)> {
    if let Some(port) = port(text) {
        return Some((port, port));
    }
    // A service name may contain hyphens.
    text.match_indices('-').find_map(|(at, _)| {
        let (low, high) = (port(text.get(..at)?)?, port(text.get(at + 1..)?)?);
        Some((low.min(high), low.max(high)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_and_partial_addresses_are_parsed() {
        let v4 = |bits, len| Ok(Address::V4 { bits, len });
        assert_eq!(address("10"), v4(0x0a00_0000, 8));
        assert_eq!(address("10.1"), v4(0x0a01_0000, 16));
        assert_eq!(address("192.168.0.255"), v4(0xc0a8_00ff, 32));
        assert_eq!(address("fe80::"), Ok(Address::V6(0xfe80 << 112)));
        for bad in
            ["256", "1.2.3.4.5", "1..2", "1.", ".1", "010.1", "1.0001", "::1::", "00:11:22:33:44:55", "."]
        {
            assert_eq!(address(bad), Err(FilterErrorKind::Address), "{bad}");
        }
        assert_eq!(address("www.example.org"), Err(FilterErrorKind::HostName));
    }

    #[test]
    fn ports_and_ranges_are_parsed() {
        assert_eq!(port("80"), Some(80));
        assert_eq!(port("0x50"), Some(80));
        assert_eq!(port("ftp-data"), Some(20));
        for bad in ["65536", "080", "", "80a", "0x", "0x+1", "99999999999", "-"] {
            assert_eq!(port(bad), None, "{bad}");
        }
        assert_eq!(port_range("20-10"), Some((10, 20)));
        assert_eq!(port_range("ftp-data-ssh"), Some((20, 22)));
        assert_eq!(port_range("http"), Some((80, 80)));
        for bad in ["1-", "-1", "1-2-3", "a-b", "1-65536"] {
            assert_eq!(port_range(bad), None, "{bad}");
        }
    }
}
