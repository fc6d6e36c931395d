//! Wireless LAN frames (IEEE 802.11, clause 9.2).

use super::be16;

/// Length of the header of an 802.11 frame with three addresses, in octets.
pub(crate) const HEADER_LEN_MIN: usize = 24;
/// Length of the header of an 802.11 frame with four addresses, in octets.
const FOUR_ADDRESSES_LEN: usize = 30;

const QUALITY_LEN: usize = 2;
const HIGH_THROUGHPUT_LEN: usize = 4;

/// Length of the header before LLC in each part of an aggregated frame, in octets: two addresses and a length.
pub(crate) const AGGREGATE_LEN: usize = 14;

/// Parts of an aggregate begin at multiples of this number of octets.
const AGGREGATE_ALIGNMENT: usize = 4;

/// Length of the frame check sequence in octets.
pub(crate) const CHECK_SEQUENCE_LEN: usize = 4;

const VERSION_AND_TYPE_MASK: u8 = 0x0f;
const DATA: u8 = 0x08;
/// Subtype bit of a data frame that carries no data.
const WITHOUT_DATA: u8 = 4;
/// Subtype bit of a data frame with a QoS control field.
const WITH_QUALITY: u8 = 8;

const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

const FRAGMENT_MASK: u8 = 0x0f;
const AGGREGATE: u8 = 0x80;

mod field {
    pub(super) const KIND: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const ADDRESS_2: usize = 10;
    pub(super) const ADDRESS_3: usize = 16;
    /// Offset of the fragment number and the lower part of the sequence number.
    pub(super) const SEQUENCE: usize = 22;
    pub(super) const ADDRESS_4: usize = 24;
    /// Offset of the length in the header of a part of an aggregate.
    pub(super) const AGGREGATED_LEN: usize = 12;
}

/// Kind of an 802.11 frame, with the position of the payload of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Wlan {
    /// An unencrypted data frame with LLC behind the 802.11 header.
    Data {
        /// Length of the 802.11 header in octets.
        len: usize,
        /// Offset of the sender's address in the frame.
        source_offset: usize,
        /// True if several payloads follow, each behind an Ethernet-like header of 14 octets.
        is_aggregate: bool,
    },
    /// A data frame encrypted with WEP, TKIP or CCMP.
    Protected,
    /// An unencrypted data frame that contains a fragment other than the first one.
    LaterFragment,
    /// A management frame, a control frame, or a data frame without data.
    Other,
}

/// Reads the header of an 802.11 frame; `None` if the header is truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<Wlan> {
    header_of(*data.get(field::KIND)?, *data.get(field::FLAGS)?, data)
}

/// Reads the header of an 802.11 frame in CAPWAP as [`header`] does. Access points of Cisco exchange the two octets of the
/// frame control field; they are exchanged if only the second one is that of a data frame.
#[must_use]
pub(crate) fn header_in_capwap(data: &[u8]) -> Option<Wlan> {
    let (first, second) = (*data.get(field::KIND)?, *data.get(field::FLAGS)?);
    let is_data = |octet: u8| octet & VERSION_AND_TYPE_MASK == DATA;
    let is_exchanged = !is_data(first) && is_data(second);
    if is_exchanged { header_of(second, first, data) } else { header_of(first, second, data) }
}

fn header_of(kind: u8, flags: u8, data: &[u8]) -> Option<Wlan> {
    let subtype = kind >> 4;
    if kind & VERSION_AND_TYPE_MASK != DATA || subtype & WITHOUT_DATA != 0 {
        return Some(Wlan::Other);
    }
    let (is_quality, is_order) = (subtype & WITH_QUALITY != 0, flags & ORDER != 0);
    let (to_ds, from_ds) = (flags & TO_DS != 0, flags & FROM_DS != 0);
    let mut len = if to_ds && from_ds { FOUR_ADDRESSES_LEN } else { HEADER_LEN_MIN };
    let quality_offset = len;
    if is_quality {
        len += QUALITY_LEN + if is_order { HIGH_THROUGHPUT_LEN } else { 0 };
    }
    let header = data.get(..len)?;
    if flags & PROTECTED != 0 {
        return Some(Wlan::Protected);
    }
    if header.get(field::SEQUENCE)? & FRAGMENT_MASK != 0 {
        return Some(Wlan::LaterFragment);
    }
    let source_offset = match (to_ds, from_ds) {
        (true, true) => field::ADDRESS_4,
        (false, true) => field::ADDRESS_3,
        _ => field::ADDRESS_2,
    };
    let is_aggregate = is_quality && header.get(quality_offset)? & AGGREGATE != 0;
    Some(Wlan::Data { len, source_offset, is_aggregate })
}

/// Returns the length in octets of the part of an aggregate at the start of `data`: its header of two addresses and a
/// length, which is that of Ethernet, and its payload. `None` if the header is truncated.
#[must_use]
pub(crate) fn aggregated_len(data: &[u8]) -> Option<usize> {
    be16(data, field::AGGREGATED_LEN).map(|len| AGGREGATE_LEN + usize::from(len))
}

/// Returns the length in octets of a part of an aggregate with the padding behind it, which all parts but the last have.
#[must_use]
pub(crate) const fn aggregated_padded_len(len: usize) -> usize {
    len.next_multiple_of(AGGREGATE_ALIGNMENT)
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
    fn exchanged_octets_are_those_of_a_data_frame() {
        let data = Some(Wlan::Data { len: 24, source_offset: 10, is_aggregate: false });
        assert_eq!(header_in_capwap(&frame(0x08, 1, 24)), data);
        assert_eq!(
            (header_in_capwap(&frame(1, 0x08, 24)), header(&frame(1, 0x08, 24))),
            (data, Some(Wlan::Other))
        );
        assert_eq!(header_in_capwap(&frame(0x80, 0, 24)), Some(Wlan::Other));
    }

    #[test]
    fn parts_of_aggregates_are_padded() {
        let part = [&[0; 12][..], &[1, 2]].concat();
        assert_eq!((aggregated_len(&part), aggregated_len(&part[..13])), (Some(14 + 258), None));
        assert_eq!([16, 17, 20].map(aggregated_padded_len), [16, 20, 20]);
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
