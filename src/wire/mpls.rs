//! MPLS label stack entries (RFC 3032 section 2.1).

use super::be32;

/// Octets of a label stack entry.
pub const ENTRY_LEN: usize = 4;

/// The label that says that IPv4 follows (RFC 3032).
pub const IPV4_EXPLICIT_NULL: u32 = 0;

/// The label that says that IPv6 follows (RFC 3032).
pub const IPV6_EXPLICIT_NULL: u32 = 2;

/// A label stack entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MplsEntry {
    /// The label, 20 bits.
    pub label: u32,
    /// Whether it is the last one.
    pub is_bottom: bool,
}

/// Reads a label stack entry.
#[must_use]
pub fn entry(data: &[u8]) -> Option<MplsEntry> {
    let word = be32(data, 0)?;
    Some(MplsEntry { label: word >> 12, is_bottom: word & 0x100 != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_label_class_bottom_and_hops() {
        // Label 0xfffff, class 0, not the last, 255 hops; label 16, class 7, the last.
        assert_eq!(entry(&[0xff, 0xff, 0xf0, 255]), Some(MplsEntry { label: 0xf_ffff, is_bottom: false }));
        assert_eq!(entry(&[0, 1, 0x0f, 0]), Some(MplsEntry { label: 16, is_bottom: true }));
        assert_eq!(entry(&[0, 1, 1]), None);
    }
}
