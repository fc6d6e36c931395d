//! Header of virtio-net (virtio 1.2 section 5.1.6), as TUN and TAP devices use it: 10 octets in host byte order.

use super::array;

/// Length of the header in octets, without the field for merged buffers.
pub(crate) const HEADER_LEN: usize = 10;

/// The checksum from `checksum_start` on is to be completed (VIRTIO_NET_HDR_F_NEEDS_CSUM).
const NEEDS_CHECKSUM: u8 = 1;
/// TCP segments with congestion notification; a bit beside the kind (VIRTIO_NET_HDR_GSO_ECN).
const CONGESTION_NOTIFICATION: u8 = 0x80;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const KIND: usize = 1;
    pub(super) const HEADERS_LEN: usize = 2;
    pub(super) const SEGMENT_LEN: usize = 4;
    pub(super) const CHECKSUM_START: usize = 6;
    pub(super) const CHECKSUM_OFFSET: usize = 8;
}

/// Kind of segmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segmentation {
    Tcp,
    Udp,
}

/// Header of virtio-net with typed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VirtioNet {
    /// Kind of segmentation; `None` for a single packet.
    pub(crate) segmentation: Option<Segmentation>,
    /// Octets of payload in each segment but the last.
    pub(crate) segment_len: usize,
    /// Offset of the transport header and offset of the checksum behind it, if the checksum is to be completed.
    pub(crate) checksum: Option<(usize, usize)>,
}

impl VirtioNet {
    /// Reads the header at the start of `data`. Returns `None` if it is truncated, or announces a kind of segmentation
    /// that is not requested from devices.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_LEN] = array(data, 0)?;
        let segmentation = match header[field::KIND] & !CONGESTION_NOTIFICATION {
            0 => None,
            // TCP over IPv4 and IPv6.
            1 | 4 => Some(Segmentation::Tcp),
            5 => Some(Segmentation::Udp),
            _ => return None,
        };
        let word = |at| array(header, at).map(|octets| usize::from(u16::from_ne_bytes(*octets)));
        let needs_checksum = header[field::FLAGS] & NEEDS_CHECKSUM != 0;
        let checksum = (word(field::CHECKSUM_START)?, word(field::CHECKSUM_OFFSET)?);
        Some(Self {
            segmentation,
            segment_len: word(field::SEGMENT_LEN)?,
            checksum: needs_checksum.then_some(checksum),
        })
    }
}

/// Adds `added_len` to the positions in the header at the start of `data`, because a link header of this length was
/// added to the packet, or removed if the value is negative. Positions are used only if the checksum is to be
/// completed.
pub(crate) fn shift(data: &mut [u8], added_len: isize) {
    let Some(header) = data.first_chunk_mut::<HEADER_LEN>() else { return };
    if header[field::FLAGS] & NEEDS_CHECKSUM == 0 {
        return;
    }
    // The length of all headers is a hint, which the kernel replaces if it is shorter than the headers.
    for at in [field::HEADERS_LEN, field::CHECKSUM_START] {
        let Some(octets) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) else { continue };
        let shifted = isize::try_from(u16::from_ne_bytes(*octets)).unwrap_or_default() + added_len;
        *octets = u16::try_from(shifted.max(0)).unwrap_or(u16::MAX).to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: u8, kind: u8, words: [u16; 4]) -> [u8; HEADER_LEN] {
        let mut octets = [0; HEADER_LEN];
        octets[..2].copy_from_slice(&[flags, kind]);
        for (to, word) in octets[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        octets
    }

    #[test]
    fn headers_of_super_packets_are_read() {
        let read = VirtioNet::read(&header(1, 0x81, [52, 1448, 20, 16])).unwrap();
        let expected =
            VirtioNet { segmentation: Some(Segmentation::Tcp), segment_len: 1448, checksum: Some((20, 16)) };
        assert_eq!(read, expected);
        assert_eq!(VirtioNet::read(&header(0, 0, [0; 4])).unwrap().checksum, None);
        assert_eq!(VirtioNet::read(&header(0, 3, [0; 4])), None);
        assert_eq!(VirtioNet::read(&[0; 9]), None);
    }

    #[test]
    fn positions_move_with_the_packet() {
        let mut octets = header(1, 1, [52, 1448, 20, 16]);
        shift(&mut octets, 14);
        assert_eq!(octets, header(1, 1, [66, 1448, 34, 16]));
        shift(&mut octets, -14);
        assert_eq!(octets, header(1, 1, [52, 1448, 20, 16]));
        let mut plain = header(0, 0, [0; 4]);
        shift(&mut plain, 14);
        assert_eq!(plain, header(0, 0, [0; 4]));
    }
}
