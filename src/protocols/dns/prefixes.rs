//! Lists of address prefixes in DNS APL records.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::presentation::write_hex;

/// A validated list of address prefixes of an APL record (RFC 3123). Displayed as `1:192.0.2.0/24 !1:192.0.2.64/28`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressPrefixes<'m>(&'m [u8]);

/// An address prefix in the list of an APL record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressPrefix<'m> {
    /// Address family of the prefix: 1 for IPv4, 2 for IPv6.
    pub family: u16,
    /// Length of the prefix in bits.
    pub len: u8,
    /// True if the prefix is negated: it is excluded from the prefixes before it.
    pub is_negated: bool,
    /// Octets of the address without trailing zeros.
    pub octets: &'m [u8],
}

impl<'m> AddressPrefixes<'m> {
    /// Creates a list of address prefixes from its octets; `None` if the last prefix is truncated.
    pub(super) fn read(octets: &'m [u8]) -> Option<Self> {
        let list = Self(octets);
        let len: usize = list.iter().map(|prefix| prefix.octets.len() + 4).sum();
        (len == octets.len()).then_some(list)
    }

    /// Returns whether the list contains no prefix.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the address prefixes in their order.
    pub fn iter(&self) -> impl Iterator<Item = AddressPrefix<'m>> + use<'m> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let ([family, low, len, octets_len], after) = rest.split_first_chunk::<4>()?;
            let (octets, after) = after.split_at_checked(usize::from(octets_len & 0x7f))?;
            rest = after;
            let family = u16::from_be_bytes([*family, *low]);
            Some(AddressPrefix { family, len: *len, is_negated: octets_len & 0x80 != 0, octets })
        })
    }
}

impl AddressPrefix<'_> {
    /// Returns the address of the prefix, padded with zeros; `None` for a family other than IPv4 and IPv6, and for more
    /// octets than an address of the family has.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        fn padded<const N: usize>(octets: &[u8]) -> Option<[u8; N]> {
            let mut all = [0; N];
            all.get_mut(..octets.len())?.copy_from_slice(octets);
            Some(all)
        }
        match self.family {
            1 => padded(self.octets).map(|octets| Ipv4Addr::from(octets).into()),
            2 => padded(self.octets).map(|octets| Ipv6Addr::from(octets).into()),
            _ => None,
        }
    }
}

impl fmt::Display for AddressPrefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}:", if self.is_negated { "!" } else { "" }, self.family)?;
        match self.address() {
            Some(address) => address.fmt(f)?,
            None => write_hex(f, self.octets)?,
        }
        write!(f, "/{}", self.len)
    }
}

impl fmt::Display for AddressPrefixes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, prefix) in self.iter().enumerate() {
            write!(f, "{}{prefix}", if place > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for AddressPrefixes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}
