//! Hardware addresses.

use crate::wire::ethernet;

/// Where the hardware addresses of a frame lie.
///
/// Four octets: an offset from the start of the frame, and what stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacAddresses(u32);

impl MacAddresses {
    /// The link has none, or none of six octets.
    pub const NONE: Self = Self(0);

    const KIND: u32 = 3;
    const ETHERNET: u32 = 1;
    const SOURCE: u32 = 2;

    /// An Ethernet header at an offset: destination, then source.
    #[must_use]
    #[inline(always)]
    pub const fn ethernet(offset: u32) -> Self {
        Self(offset << 2 | Self::ETHERNET)
    }

    /// The sender's address alone, at an offset (Linux cooked capture).
    #[must_use]
    pub const fn source_only(offset: u32) -> Self {
        Self(offset << 2 | Self::SOURCE)
    }

    const fn offset(self) -> usize {
        (self.0 >> 2) as usize
    }

    /// The sender's address.
    #[must_use]
    pub fn source(self, frame: &[u8]) -> Option<[u8; 6]> {
        match self.0 & Self::KIND {
            Self::ETHERNET => address(frame, self.offset() + ethernet::SOURCE_OFFSET),
            Self::SOURCE => address(frame, self.offset()),
            _ => None,
        }
    }

    /// The receiver's address.
    #[must_use]
    pub fn destination(self, frame: &[u8]) -> Option<[u8; 6]> {
        match self.0 & Self::KIND {
            Self::ETHERNET => address(frame, self.offset() + ethernet::DESTINATION_OFFSET),
            _ => None,
        }
    }
}

fn address(frame: &[u8], at: usize) -> Option<[u8; 6]> {
    frame.get(at..)?.first_chunk().copied()
}
