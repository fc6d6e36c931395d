//! Position of the hardware addresses in a frame.

use crate::wire::ethernet;

/// Position of the hardware addresses of a frame.
///
/// The value occupies four octets: an offset from the start of the frame, and the kind of header at that
/// offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacAddresses(u32);

impl MacAddresses {
    /// The frame has no hardware addresses of six octets.
    pub const NONE: Self = Self(0);

    const KIND: u32 = 3;
    const ETHERNET: u32 = 1;
    const SOURCE: u32 = 2;

    /// Creates the position of the destination and source addresses of an Ethernet header, at an offset from
    /// the start of the frame.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn ethernet(offset: u32) -> Self {
        Self(offset << 2 | Self::ETHERNET)
    }

    /// Creates the position of the sender's address alone, at an offset from the start of the frame (as in a
    /// Linux cooked capture).
    #[must_use]
    pub(crate) const fn source_only(offset: u32) -> Self {
        Self(offset << 2 | Self::SOURCE)
    }

    const fn offset(self) -> usize {
        (self.0 >> 2) as usize
    }

    /// Returns the hardware address of the sender from the frame, if it was captured.
    #[must_use]
    pub fn source(self, frame: &[u8]) -> Option<[u8; 6]> {
        match self.0 & Self::KIND {
            Self::ETHERNET => frame.get(self.offset()..).and_then(ethernet::source),
            Self::SOURCE => frame.get(self.offset()..).and_then(ethernet::address),
            _ => None,
        }
    }

    /// Returns the hardware address of the receiver from the frame, if the frame has one and it was captured.
    #[must_use]
    pub fn destination(self, frame: &[u8]) -> Option<[u8; 6]> {
        match self.0 & Self::KIND {
            Self::ETHERNET => frame.get(self.offset()..).and_then(ethernet::destination),
            _ => None,
        }
    }
}
