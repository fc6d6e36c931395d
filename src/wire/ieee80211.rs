//! Wireless LAN frames (IEEE 802.11, clause 9.2).

/// Kind of a frame, and the offset of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Wlan {
    /// An unencrypted data frame, with LLC at an offset.
    Data {
        /// Octets of the header.
        len: usize,
        /// Offset of the sender's address.
        source_offset: usize,
        /// True if several payloads follow, each behind an Ethernet-like header of 14 octets.
        is_aggregate: bool,
    },
    /// A data frame encrypted with WEP, TKIP or CCMP.
    Protected,
    /// A data frame that is a later fragment.
    LaterFragment,
    /// Management, control, or a data frame without data.
    Other,
}

/// Reads a header; `None` if it is truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<Wlan> {
    let [kind, flags] = *data.first_chunk::<2>()?;
    let subtype = kind >> 4;
    if kind & 0x0f != 0x08 || subtype & 4 != 0 {
        return Some(Wlan::Other);
    }
    let (is_quality, is_order) = (subtype & 8 != 0, flags & 0x80 != 0);
    let (to_ds, from_ds) = (flags & 1 != 0, flags & 2 != 0);
    let mut len = if to_ds && from_ds { 30 } else { 24 };
    let quality_offset = len;
    if is_quality {
        len += if is_order { 6 } else { 2 };
    }
    let header = data.get(..len)?;
    if flags & 0x40 != 0 {
        return Some(Wlan::Protected);
    }
    if header.get(22)? & 0x0f != 0 {
        return Some(Wlan::LaterFragment);
    }
    let source_offset = match (to_ds, from_ds) {
        (true, true) => 24,
        (false, true) => 16,
        _ => 10,
    };
    let is_aggregate = is_quality && header.get(quality_offset)? & 0x80 != 0;
    Some(Wlan::Data { len, source_offset, is_aggregate })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, len: usize) -> Vec<u8> {
        [&[kind, flags][..], &vec![0; len - 2]].concat()
    }

    /// Checks lengths and sender offsets against IEEE 802.11, table 9-30: address 2, 3 or 4, depending on the
    /// two bits of the distribution system.
    #[test]
    fn the_distribution_system_bits_determine_the_position_of_the_sender() {
        for (flags, len, source_offset) in [(0, 24, 10), (1, 24, 10), (2, 24, 16), (3, 30, 24)] {
            let data = frame(0x08, flags, len);
            assert_eq!(header(&data), Some(Wlan::Data { len, source_offset, is_aggregate: false }));
            assert_eq!(header(&data[..len - 1]), None);
            let mut quality = frame(0x88, flags, len + 2);
            quality[len] = 0x80;
            assert_eq!(
                header(&quality),
                Some(Wlan::Data { len: len + 2, source_offset, is_aggregate: true })
            );
            let controlled = frame(0x88, flags | 0x80, len + 6);
            assert_eq!(
                header(&controlled),
                Some(Wlan::Data { len: len + 6, source_offset, is_aggregate: false })
            );
        }
    }

    #[test]
    fn frames_without_a_plaintext_packet_are_reported() {
        assert_eq!(header(&frame(0x08, 0x41, 24)), Some(Wlan::Protected));
        let mut later = frame(0x08, 1, 24);
        later[22] = 0x21;
        assert_eq!(header(&later), Some(Wlan::LaterFragment));
        // A beacon, an acknowledgment, a data frame without data with and without QoS.
        for kind in [0x80, 0xd4, 0x48, 0xc8] {
            assert_eq!(header(&frame(kind, 0, 24)), Some(Wlan::Other), "{kind:x}");
        }
    }
}
