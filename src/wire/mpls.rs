//! MPLS label stack entries (RFC 3032 section 2.1).

use super::be32;

/// Length of an MPLS label stack entry in octets.
pub(crate) const ENTRY_LEN: usize = 4;

const BOTTOM: u32 = 0x100;

mod field {
    /// Offset of the 32-bit entry: label, traffic class, bottom of stack, time to live.
    pub(super) const ENTRY: usize = 0;
}

/// An MPLS label stack entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct MplsEntry {
    /// MPLS label, 20 bits.
    pub(crate) label: u32,
    /// True if the entry is the last one of the label stack.
    pub(crate) is_bottom: bool,
}

/// Reads the MPLS label stack entry at the start of `data`; `None` if the entry is truncated.
#[must_use]
pub(crate) fn entry(data: &[u8]) -> Option<MplsEntry> {
    let word = be32(data, field::ENTRY)?;
    Some(MplsEntry { label: word >> 12, is_bottom: word & BOTTOM != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_contains_label_class_bottom_flag_and_ttl() {
        // Label 0xfffff, class 0, not the last, 255 hops; label 16, class 7, the last.
        assert_eq!(entry(&[0xff, 0xff, 0xf0, 255]), Some(MplsEntry { label: 0xf_ffff, is_bottom: false }));
        assert_eq!(entry(&[0, 1, 0x0f, 0]), Some(MplsEntry { label: 16, is_bottom: true }));
        assert_eq!(entry(&[0, 1, 1]), None);
    }
}
