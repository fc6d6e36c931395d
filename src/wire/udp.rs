//! UDP (RFC 768).

use super::be16;

/// Length of a UDP header in octets.
pub(crate) const HEADER_LEN: usize = 8;

/// Number of octets from the start of a UDP header to the end of its checksum field.
pub(crate) const CHECKSUM_END: usize = field::CHECKSUM + 2;

mod field {
    pub(super) const SOURCE_PORT: usize = 0;
    pub(super) const DESTINATION_PORT: usize = 2;
    pub(super) const LEN: usize = 4;
    pub(super) const CHECKSUM: usize = 6;
}

/// View of a UDP header. Each accessor reads only one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Udp<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Udp<'a> {
    /// Returns the UDP header at the start of `data`; `None` if there are fewer than [`HEADER_LEN`] octets.
    #[inline(always)]
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    #[inline(always)]
    pub(crate) fn source_port(self) -> u16 {
        self.u16(field::SOURCE_PORT)
    }

    #[inline(always)]
    pub(crate) fn destination_port(self) -> u16 {
        self.u16(field::DESTINATION_PORT)
    }

    /// Returns the length of UDP header and payload in octets, as the length field states; zero in a jumbogram
    /// (RFC 2675).
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.u16(field::LEN) as usize
    }

    #[inline(always)]
    fn u16(self, at: usize) -> u16 {
        be16(self.0, at).unwrap_or_default()
    }
}

/// Returns the length field of the UDP header at the start of `data`: octets of header and payload. The header
/// may be truncated behind this field.
pub(crate) fn len(data: &[u8]) -> Option<usize> {
    be16(data, field::LEN).map(usize::from)
}

/// Returns the checksum field of the UDP header at the start of `data`; `None` if it is truncated. Computes
/// nothing.
pub(crate) fn checksum(data: &[u8]) -> Option<u16> {
    be16(data, field::CHECKSUM)
}

/// Writes the length field of the UDP header at the start of `data`.
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) fn set_len(data: &mut [u8], len: u16) {
    super::set_be16(data, field::LEN, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_place() {
        let octets = [0x13, 0x88, 0, 53, 0, 12, 1, 2, 9];
        let header = Udp::read(&octets).unwrap();
        assert_eq!((header.source_port(), header.destination_port(), header.len()), (5000, 53, 12));
        assert_eq!((len(&octets[..6]), len(&octets[..5])), (Some(12), None));
        assert!(Udp::read(&octets[..7]).is_none());
        assert_eq!((checksum(&octets), checksum(&octets[..CHECKSUM_END - 1])), (Some(0x0102), None));
    }
}
