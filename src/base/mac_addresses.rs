//! Position of the hardware addresses in a frame.

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

    /// Returns the offset of an Ethernet header.
    pub(crate) const fn ethernet_offset(self) -> Option<usize> {
        if self.0 & Self::KIND == Self::ETHERNET { Some((self.0 >> 2) as usize) } else { None }
    }

    /// Returns the offset of the sender's address where it is the only one.
    pub(crate) const fn source_offset(self) -> Option<usize> {
        if self.0 & Self::KIND == Self::SOURCE { Some((self.0 >> 2) as usize) } else { None }
    }
}
