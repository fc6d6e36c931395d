//! Length prefixes.

/// Encoding of a length before octets of that length, in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// One octet: at most 255 octets follow.
    U8,
    /// Two octets: at most 65,535 octets follow.
    U16,
    /// Four octets: at most 2^32 - 1 octets follow.
    U32,
    /// The length of a variable-length information element of IPFIX (RFC 7011 section 7): one octet if fewer than 255
    /// octets follow, otherwise the octet 255 and two more. A section always has the long form.
    Ipfix,
}

impl Prefix {
    /// The octet that begins the long form of [`Prefix::Ipfix`].
    pub(super) const LONG: u8 = 255;

    /// Returns the maximum length that the prefix can express, in octets.
    #[inline]
    #[must_use]
    pub const fn len_max(self) -> usize {
        match self {
            Self::U8 => u8::MAX as usize,
            Self::U16 | Self::Ipfix => u16::MAX as usize,
            Self::U32 => u32::MAX as usize,
        }
    }

    /// Returns the length of the prefix of `len` octets.
    #[inline]
    pub(super) const fn prefix_len(self, len: usize) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
            Self::Ipfix => {
                if len < Self::LONG as usize {
                    1
                } else {
                    3
                }
            }
        }
    }

    /// Returns the length of the prefix of a section, whose own length is known only afterwards.
    #[inline]
    pub(super) const fn section_prefix_len(self) -> usize {
        self.prefix_len(usize::MAX)
    }

    /// Writes `len` in a prefix, whose length selects the form. `len` must not exceed [`len_max`](Self::len_max).
    #[inline]
    pub(super) fn put(self, prefix: &mut [u8], len: usize) {
        debug_assert!(len <= self.len_max(), "the caller checks the length");
        match (self, prefix) {
            (Self::U8 | Self::Ipfix, [octet]) => *octet = len as u8,
            (Self::Ipfix, [first, rest @ ..]) => {
                *first = Self::LONG;
                rest.copy_from_slice(&(len as u16).to_be_bytes());
            }
            (Self::U32, prefix) => prefix.copy_from_slice(&(len as u32).to_be_bytes()),
            (_, prefix) => prefix.copy_from_slice(&(len as u16).to_be_bytes()),
        }
    }
}
