//! Addresses in events.

use std::fmt;
use std::net::IpAddr;

/// An address as Suricata writes it: IPv6 without abbreviation, such as `2001:0db8:0000:0000:0000:0000:0000:0001`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) IpAddr);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IpAddr::V6(address) = self.0 else { return self.0.fmt(f) };
        address.segments().iter().enumerate().try_for_each(|(index, segment)| {
            let separator = if index == 0 { "" } else { ":" };
            write!(f, "{separator}{segment:04x}")
        })
    }
}

crate::row::cells! { displayed Address; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_is_not_abbreviated() {
        let text = |address: &str| Address(address.parse().unwrap()).to_string();
        assert_eq!(text("2001:4860:0:2001::68"), "2001:4860:0000:2001:0000:0000:0000:0068");
        assert_eq!(text("192.0.2.1"), "192.0.2.1");
    }
}
