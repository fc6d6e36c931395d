//! Networks by prefix, and the ones that are local.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A network: an address and the length of its prefix, such as `192.168.0.0/16`. `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// The first octets of its addresses, IPv4 addresses mapped to IPv6.
    address: u128,
    mask: u128,
}

impl Network {
    /// Returns a network; `None` if the prefix is longer than the address. Bits behind the prefix are ignored.
    #[must_use]
    pub fn new(address: IpAddr, prefix_len: u8) -> Option<Self> {
        let (len, len_max) = match address {
            IpAddr::V4(_) => (u32::from(prefix_len) + 96, 32),
            IpAddr::V6(_) => (prefix_len.into(), 128),
        };
        if prefix_len > len_max {
            return None;
        }
        let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
        Some(Self { address: mapped(address) & mask, mask })
    }

    /// Returns whether an address belongs to the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        mapped(address) & self.mask == self.address
    }
}

fn mapped(address: IpAddr) -> u128 {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.into()
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from(self.address);
        let len = self.mask.leading_ones();
        match address.to_ipv4_mapped().filter(|_| len >= 96) {
            Some(address) => write!(f, "{address}/{}", len - 96),
            None => write!(f, "{address}/{len}"),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({self})")
    }
}

/// Error of a text that is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseNetworkError;

impl fmt::Display for ParseNetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a network is an address and the length of its prefix, such as 192.168.0.0/16")
    }
}

impl std::error::Error for ParseNetworkError {}

impl FromStr for Network {
    type Err = ParseNetworkError;

    /// Parses an address with the length of a prefix, or a single address.
    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
        let address: IpAddr = address.parse().map_err(|_| ParseNetworkError)?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let len = len.map_or(Ok(whole), |len| len.parse().map_err(|_| ParseNetworkError))?;
        Self::new(address, len).ok_or(ParseNetworkError)
    }
}

/// The networks that the IANA registries of special-purpose addresses exclude from the Internet, local groups (RFC 5771), and
/// those of 6to4 with such IPv4 addresses (RFC 3056): what Zeek considers local by default.
const PRIVATE: [&str; 41] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/24",
    "239.0.0.0/8",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "2002::/24",
    "2002:a00::/24",
    "2002:6440::/26",
    "2002:7f00::/24",
    "2002:a9fe::/32",
    "2002:ac10::/28",
    "2002:c000::/40",
    "2002:c000:200::/40",
    "2002:c0a8::/32",
    "2002:c612::/31",
    "2002:c633:6400::/40",
    "2002:cb00:7100::/40",
    "2002:e000::/40",
    "2002:ef00::/24",
    "2002:f000::/20",
    "2002:ffff:ffff::/48",
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:2::/48",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
];

/// Networks that are local.
#[derive(Clone, Debug)]
pub(super) struct LocalNetworks(Vec<Network>);

impl LocalNetworks {
    /// Returns the private ranges, unless other networks are given.
    pub(super) fn new(given: &[Network]) -> Self {
        let private = || PRIVATE.iter().filter_map(|text| text.parse().ok()).collect();
        Self(if given.is_empty() { private() } else { given.to_vec() })
    }

    pub(super) fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_local() {
        let local = LocalNetworks::new(&[]);
        assert_eq!(local.0.len(), PRIVATE.len());
        for (address, is_local) in [
            ("10.1.2.3", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("100.127.255.255", true),
            ("100.128.0.0", false),
            ("8.8.8.8", false),
            ("224.0.0.251", true),
            ("224.0.1.1", false),
            ("239.255.255.250", true),
            ("fe80::1", true),
            ("febf::1", true),
            ("fec0::1", false),
            ("2600::1", false),
            ("2002:a01::1", true),
            ("::1", true),
            ("::2", false),
        ] {
            assert_eq!(local.contain(address.parse().unwrap()), is_local, "{address}");
        }
    }

    #[test]
    fn networks_are_parsed_and_displayed() {
        for (text, shown) in [
            ("192.168.1.7/16", "192.168.0.0/16"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::/0", "::/0"),
        ] {
            let network: Network = text.parse().unwrap();
            assert_eq!(network.to_string(), shown);
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "x/8", "10.0.0.0/-1"] {
            assert_eq!(text.parse::<Network>(), Err(ParseNetworkError), "{text}");
        }
        let local = LocalNetworks::new(&["0.0.0.0/0".parse().unwrap()]);
        assert!(local.contain([8, 8, 8, 8].into()) && !local.contain("2600::1".parse().unwrap()));
    }
}
