//! Sets of record types in DNS NSEC records.

use std::fmt;

use super::numbers::RecordType;

/// Maximum number of octets in a window: 256 record types, one bit each.
const WINDOW_LEN_MAX: usize = 32;

/// A validated set of record types, encoded in windows (RFC 4034 section 4.1.2). Displayed with spaces between the
/// types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TypeSet<'m>(&'m [u8]);

impl<'m> TypeSet<'m> {
    /// Creates a set of record types from its octets; `None` if windows are empty, too long or truncated.
    pub(super) fn read(octets: &'m [u8]) -> Option<Self> {
        let mut rest = octets;
        while let Some(([_, len], after)) = rest.split_first_chunk::<2>() {
            let len = usize::from(*len);
            if !(1..=WINDOW_LEN_MAX).contains(&len) {
                return None;
            }
            rest = after.get(len..)?;
        }
        rest.is_empty().then_some(Self(octets))
    }

    /// Returns whether the set contains no record type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types().next().is_none()
    }

    /// Iterates over the record types, in the order of the windows and bits.
    pub fn types(&self) -> impl Iterator<Item = RecordType> + use<'m> {
        let mut rest = self.0;
        let windows = std::iter::from_fn(move || {
            let ([window, len], after) = rest.split_first_chunk::<2>()?;
            let (octets, after) = after.split_at_checked(usize::from(*len))?;
            rest = after;
            Some((*window, octets))
        });
        windows.flat_map(|(window, octets)| {
            let bits = octets.iter().zip(0_u16..).flat_map(|(octet, place)| {
                (0..8).filter(move |bit| octet & (0x80 >> bit) != 0).map(move |bit| place * 8 + bit)
            });
            bits.map(move |bit| RecordType(u16::from(window) << 8 | bit))
        })
    }
}

impl fmt::Display for TypeSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, record_type) in self.types().enumerate() {
            write!(f, "{}{record_type}", if place > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for TypeSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}
