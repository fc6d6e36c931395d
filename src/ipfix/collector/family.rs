//! Elements that belong to one version of IP. Some exporters use one template for both: each record fills the elements of
//! its version, and the others are zero.

use super::field::{Specifier, field, unsigned};
use crate::codec::Reader;

/// Version of IP of an element, or of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// Returns the version to which an address or an element of ICMP belongs.
    pub(super) const fn of_element(specifier: &Specifier) -> Option<Self> {
        match (specifier.enterprise_number, specifier.id) {
            (0, 8 | 12 | 32 | 176 | 177) => Some(Self::Ipv4),
            (0, 27 | 28 | 139 | 178 | 179) => Some(Self::Ipv6),
            _ => None,
        }
    }

    /// Returns the version of a field with an address of a flow.
    const fn of_address(specifier: &Specifier) -> Option<Self> {
        match Self::of_element(specifier) {
            Some(family) if matches!(specifier.id, 8 | 12 | 27 | 28) => Some(family),
            _ => None,
        }
    }

    /// Returns the version of the first address of a template.
    pub(super) fn of_template(specifiers: &[Specifier]) -> Option<Self> {
        specifiers.iter().find_map(Self::of_address)
    }

    /// Returns whether a template has addresses of both versions.
    pub(super) fn is_mixed(specifiers: &[Specifier]) -> bool {
        let first = Self::of_template(specifiers);
        specifiers.iter().filter_map(Self::of_address).any(|family| Some(family) != first)
    }
}

/// Part of a field in the decision for a version.
#[derive(Clone, Copy, Debug)]
enum Role {
    None,
    /// The version itself (ipVersion, IPFIX 60).
    Version,
    Address(Family),
}

/// The fields of a template by which the version of IP of each record is decided.
#[derive(Debug)]
pub(super) struct FamilyChoice {
    fields: Box<[(Role, u16)]>,
    /// Version of records that have addresses of both or of neither.
    default: Family,
}

impl FamilyChoice {
    /// Memory of a field in bytes.
    pub(super) const FIELD_BYTES: usize = size_of::<(Role, u16)>();

    pub(super) fn new(specifiers: &[Specifier]) -> Self {
        const IP_VERSION: u16 = 60;
        let role = |specifier: &Specifier| match Family::of_address(specifier) {
            Some(family) => Role::Address(family),
            None if (specifier.enterprise_number, specifier.id) == (0, IP_VERSION) => Role::Version,
            None => Role::None,
        };
        Self {
            fields: specifiers.iter().map(|specifier| (role(specifier), specifier.len)).collect(),
            default: Family::of_template(specifiers).unwrap_or(Family::Ipv4),
        }
    }

    /// Returns the version of a record: that which it states, or that of the addresses that are not zero. Linear in the
    /// number of fields.
    pub(super) fn of_record(&self, mut record: Reader<'_>) -> Family {
        let (mut has_ipv4, mut has_ipv6) = (false, false);
        for (role, len) in &self.fields {
            let Ok(octets) = field(&mut record, *len) else { break };
            let is_set = || octets.iter().any(|octet| *octet != 0);
            match role {
                Role::None => {}
                Role::Version => match unsigned(octets) {
                    Some(4) => return Family::Ipv4,
                    Some(6) => return Family::Ipv6,
                    _ => {}
                },
                Role::Address(Family::Ipv4) => has_ipv4 |= is_set(),
                Role::Address(Family::Ipv6) => has_ipv6 |= is_set(),
            }
        }
        match (has_ipv4, has_ipv6) {
            (true, false) => Family::Ipv4,
            (false, true) => Family::Ipv6,
            _ => self.default,
        }
    }
}
