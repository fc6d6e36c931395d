//! Blocks, of which a checkpoint consists.

/// First octets of a checkpoint. Octets that a transfer as text changes reveal such a transfer.
pub(super) const MAGIC: [u8; 8] = *b"\x8ffgc\r\n\x1a\n";

/// Version of the format that this crate writes, and the newest one that it reads.
pub(super) const VERSION: u16 = 1;

/// Length of the header of a checkpoint in octets: magic number, version, and two octets of zero.
pub(super) const HEADER_LEN: usize = 12;

/// Length of the header of a block in octets: kind, length, and checksum.
pub(super) const BLOCK_HEADER_LEN: usize = 9;

/// Length in octets from which a block with several entries is written.
pub(crate) const BLOCK_LEN: usize = 256 << 10;

/// Maximum length of a block in octets.
pub(super) const BLOCK_LEN_MAX: usize = 16 << 20;

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// An attachment of the caller, or a part of it.
    Attachment = 1,
    /// State of a pipeline below its tracker.
    Pipeline = 2,
    /// State of a tracker without its flows.
    Tracker = 3,
    /// Open flows.
    Flows = 4,
    /// Open flows in the order in which they were used, or in which their records began.
    Order = 5,
    /// End of the checkpoint.
    End = 255,
}

impl Kind {
    pub(super) const fn from_octet(octet: u8) -> Option<Self> {
        Some(match octet {
            1 => Self::Attachment,
            2 => Self::Pipeline,
            3 => Self::Tracker,
            4 => Self::Flows,
            5 => Self::Order,
            255 => Self::End,
            _ => return None,
        })
    }
}

/// Returns the checksum of a block at an offset of the checkpoint.
pub(super) fn checksum(offset: u64, kind: u8, octets: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&offset.to_be_bytes());
    crc.update(&[kind]);
    crc.update(&(octets.len() as u64).to_be_bytes());
    crc.update(octets);
    crc.finalize()
}
