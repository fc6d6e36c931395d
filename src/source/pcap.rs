//! Classic pcap files: draft-ietf-opsawg-pcap, and the variants of it that exist in practice.

use super::interfaces::Interfaces;
use super::walk::{Candidate, Sinks};
use super::warning::{BadBlock, Stop};
use super::{Interface, TimeResolution};
use crate::base::{Limits, LinkType, NANOS_PER_SECOND, Timestamp};

/// Length of the file header of pcap, in octets.
pub(super) const FILE_HEADER_LEN: usize = 24;

/// Length of a pcap record header, in octets. The modified format has eight more octets (interface, protocol,
/// packet type), which are skipped.
const RECORD_HEADER_LEN: usize = 16;
const MODIFIED_RECORD_HEADER_LEN: usize = 24;

/// Order of the two length fields in a pcap record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthOrder {
    /// Captured length, then length on the wire: version 2.4.
    Standard,
    /// Length on the wire, then captured length: versions below 2.3, and version 543.0 of DG/UX.
    Swapped,
    /// Either order, as version 2.3 was written in both: the smaller length is the captured length.
    SmallerIsCaptured,
}

/// Maximum length of a frame on the wire in octets that is plausible.
const WIRE_LEN_MAX: u32 = 1 << 20;

/// State of reading a classic pcap file: the fields of its file header.
#[derive(Debug)]
pub(super) struct Pcap {
    big_endian: bool,
    modified: bool,
    nanos_per_unit: u64,
    length_order: LengthOrder,
    frame_len_max: u32,
    interface: Interface,
    /// Index of the interface among the interfaces of all captures, once it is assigned.
    number: Option<u32>,
}

/// Properties of a pcap file that the magic number in its first four octets determines.
struct Magic {
    big_endian: bool,
    modified: bool,
    nanos_per_unit: u64,
}

impl Magic {
    fn read(octets: [u8; 4]) -> Option<Self> {
        let one_way = |value: u32| match value {
            0xa1b2_c3d4 => Some((false, 1000)),
            0xa1b2_3c4d => Some((false, 1)),
            0xa1b2_cd34 => Some((true, 1000)),
            _ => None,
        };
        let found =
            |big_endian| move |(modified, nanos_per_unit)| Self { big_endian, modified, nanos_per_unit };
        one_way(u32::from_be_bytes(octets))
            .map(found(true))
            .or_else(|| one_way(u32::from_le_bytes(octets)).map(found(false)))
    }
}

impl Pcap {
    /// Returns whether a file with these first four octets is a pcap file.
    pub(super) fn knows(octets: [u8; 4]) -> bool {
        Magic::read(octets).is_some()
    }

    /// Reads the header of a pcap file whose magic number is known. If the version is not supported, returns
    /// the major and minor version as the error.
    pub(super) fn new(header: &[u8; FILE_HEADER_LEN], limits: &Limits) -> Result<Self, (u16, u16)> {
        let (words, _) = header.as_chunks::<4>();
        let [magic, version, _zone, _accuracy, snap_len, link] = words else {
            return Err((0, 0));
        };
        let Some(Magic { big_endian, modified, nanos_per_unit }) = Magic::read(*magic) else {
            return Err((0, 0));
        };
        let word = |octets: [u8; 4]| {
            if big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
        };
        let half = |octets: [u8; 2]| {
            if big_endian { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) }
        };
        let [a, b, c, d] = *version;
        let length_order = match (half([a, b]), half([c, d])) {
            (2, 0..=2) | (543, 0) => LengthOrder::Swapped,
            (2, 3) => LengthOrder::SmallerIsCaptured,
            (2, 4) => LengthOrder::Standard,
            unknown => return Err(unknown),
        };
        let (snap_len, link) = (word(*snap_len), word(*link));
        let resolution =
            if nanos_per_unit == 1 { TimeResolution::NANOSECONDS } else { TimeResolution::MICROSECONDS };
        let interface = Interface {
            resolution,
            snap_len: (snap_len != 0).then_some(snap_len),
            fcs_len: fcs_len(link),
            ..Interface::new(LinkType(link as u16))
        };
        let frame_len_max = limits.frame_len_max;
        let number = None;
        Ok(Self { big_endian, modified, nanos_per_unit, length_order, frame_len_max, interface, number })
    }

    /// Returns the index of the file's interface in the table `interfaces`, and adds the interface to the
    /// table at the first call.
    pub(super) fn number(&mut self, interfaces: &mut Interfaces) -> u32 {
        let interface = &self.interface;
        let add = || interfaces.number(interface.clone(), interfaces.hash(interface), 0).number;
        *self.number.get_or_insert_with(add)
    }

    /// Implements [`Format::walk`](super::head::Format::walk) for pcap: describes the frames of all complete
    /// records in `bytes` from the offset `at` on.
    pub(super) fn walk(&mut self, bytes: &[u8], at: usize, sinks: &mut Sinks<'_, '_>) -> (usize, Stop) {
        let number = self.number(sinks.interfaces);
        match (self.big_endian, self.modified) {
            (false, false) => self.records::<false, RECORD_HEADER_LEN>(bytes, at, number, sinks),
            (true, false) => self.records::<true, RECORD_HEADER_LEN>(bytes, at, number, sinks),
            (false, true) => self.records::<false, MODIFIED_RECORD_HEADER_LEN>(bytes, at, number, sinks),
            (true, true) => self.records::<true, MODIFIED_RECORD_HEADER_LEN>(bytes, at, number, sinks),
        }
    }

    /// Implements [`Format::candidate`](super::head::Format::candidate) for pcap.
    pub(super) fn candidate(&self, bytes: &[u8]) -> Option<Candidate> {
        let header_len = if self.modified { MODIFIED_RECORD_HEADER_LEN } else { RECORD_HEADER_LEN };
        let (words, _) = bytes.get(..header_len)?.as_chunks::<4>();
        let [seconds, fraction, first_len, second_len, ..] = words else { return None };
        let word = |octets: &[u8; 4]| {
            if self.big_endian { u32::from_be_bytes(*octets) } else { u32::from_le_bytes(*octets) }
        };
        let (first_len, second_len) = (word(first_len), word(second_len));
        let captured_len = match self.length_order {
            LengthOrder::Standard => first_len,
            LengthOrder::Swapped => second_len,
            LengthOrder::SmallerIsCaptured => first_len.min(second_len),
        };
        let wire_len = first_len.max(second_len);
        let nanos = u64::from(word(fraction)) * self.nanos_per_unit;
        let is_plausible = captured_len == first_len.min(second_len)
            && (1..=self.frame_len_max).contains(&captured_len)
            && wire_len <= WIRE_LEN_MAX
            && nanos < NANOS_PER_SECOND;
        let time = Some(u64::from(word(seconds)) * NANOS_PER_SECOND + nanos);
        is_plausible.then(|| Candidate { len: header_len + captured_len as usize, time })
    }

    fn records<const BIG_ENDIAN: bool, const HEADER_LEN: usize>(
        &self,
        bytes: &[u8],
        mut at: usize,
        number: u32,
        Sinks { out, tally, .. }: &mut Sinks<'_, '_>,
    ) -> (usize, Stop) {
        let word = |octets: [u8; 4]| {
            if BIG_ENDIAN { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
        };
        let (link_type, nanos_per_unit) = (self.interface.link_type, self.nanos_per_unit);
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            // A header is checked when it is complete, so that the result does not depend on the sizes of the
            // reads.
            let (words, _) =
                rest.first_chunk::<HEADER_LEN>().map(|header| header.as_chunks::<4>()).unwrap_or_default();
            let [seconds, fraction, first_len, second_len, ..] = words else {
                return (at, Stop::Need(HEADER_LEN));
            };
            let (first_len, second_len) = (word(*first_len), word(*second_len));
            let (captured_len, wire_len) = match self.length_order {
                LengthOrder::Standard => (first_len, second_len),
                LengthOrder::Swapped => (second_len, first_len),
                LengthOrder::SmallerIsCaptured => (first_len.min(second_len), first_len.max(second_len)),
            };
            if captured_len > self.frame_len_max {
                return (at, Stop::Bad(BadBlock::FrameTooLong(captured_len)));
            }
            let record_len = HEADER_LEN + captured_len as usize;
            if rest.len() < record_len {
                return (at, Stop::Need(record_len));
            }
            // Some programs write fractions of a second or more; the value is simply added.
            let nanos =
                u64::from(word(*seconds)) * NANOS_PER_SECOND + u64::from(word(*fraction)) * nanos_per_unit;
            let timestamp = Timestamp::from_nanos(nanos);
            out.push(at + HEADER_LEN, captured_len, wire_len, timestamp, link_type, number);
            tally.timed_frame(timestamp, captured_len, wire_len);
            at += record_len;
        }
    }
}

/// Returns the length of the frame check sequence in octets, from the upper bits of the link type field
/// `link`: if bit 26 is set, the topmost four bits contain the length in units of two octets.
fn fcs_len(link: u32) -> Option<u8> {
    (link & 0x0400_0000 != 0).then_some(((link >> 28) * 2) as u8)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::memory::Memory;
    use super::super::stats::Tally;
    use super::*;
    use crate::base::FrameBatch;

    /// Builds a pcap file header in the given byte order.
    pub(in crate::source) fn header(magic: u32, big: bool, version: (u16, u16), link: u32) -> Vec<u8> {
        let mut file = Vec::new();
        put(&mut file, big, magic);
        for half in [version.0, version.1] {
            file.extend(if big { half.to_be_bytes() } else { half.to_le_bytes() });
        }
        for word in [0, 0, 65_535, link] {
            put(&mut file, big, word);
        }
        file
    }

    pub(in crate::source) fn put(file: &mut Vec<u8>, big: bool, word: u32) {
        file.extend(if big { word.to_be_bytes() } else { word.to_le_bytes() });
    }

    pub(in crate::source) fn record(
        file: &mut Vec<u8>,
        big: bool,
        words: [u32; 4],
        extra: usize,
        data: &[u8],
    ) {
        for word in words {
            put(file, big, word);
        }
        file.extend(vec![0xee; extra]);
        file.extend(data);
    }

    fn walked(file: &[u8]) -> (FrameBatch, SourceStatsOf, (usize, Stop)) {
        let mut pcap = Pcap::new(file.first_chunk().unwrap(), &Limits::DEFAULT).unwrap();
        let mut interfaces = Interfaces::new(1, &Memory::new(&Limits::DEFAULT.into()));
        let (mut batch, mut tally) = (FrameBatch::new(), Tally::default());
        batch.append(file);
        let (bytes, out) = batch.split();
        let mut sinks = Sinks { out, tally: &mut tally, interfaces: &mut interfaces };
        let end = pcap.walk(bytes, FILE_HEADER_LEN, &mut sinks);
        (batch, tally.stats, end)
    }

    type SourceStatsOf = crate::source::SourceStats;

    #[test]
    fn all_variants_yield_the_same_frames() {
        for (magic, extra, fraction) in [(0xa1b2_c3d4, 0, 5), (0xa1b2_3c4d, 0, 5000), (0xa1b2_cd34, 8, 5)] {
            for big in [false, true] {
                let mut file = header(magic, big, (2, 4), 101);
                record(&mut file, big, [7, fraction, 3, 60], extra, b"abc");
                record(&mut file, big, [8, fraction, 0, 0], extra, b"");
                let (batch, stats, (at, stop)) = walked(&file);
                assert_eq!((at, stop), (file.len(), Stop::Need(16 + extra)));
                let frame = batch.get(0).unwrap();
                assert_eq!((frame.data, frame.wire_len), (&b"abc"[..], 60));
                assert_eq!(frame.timestamp, Timestamp::from_parts(7, 5000));
                assert_eq!(frame.link_type, LinkType::RAW);
                assert_eq!(
                    (stats.frame_count, stats.captured_octet_count, stats.wire_octet_count),
                    (2, 3, 60)
                );
            }
        }
    }

    #[test]
    fn old_versions_swap_their_lengths() {
        for (version, lens) in [((2, 2), [60, 3]), ((2, 3), [60, 3]), ((2, 3), [3, 60]), ((543, 0), [60, 3])]
        {
            let mut file = header(0xa1b2_c3d4, false, version, 1);
            record(&mut file, false, [7, 0, lens[0], lens[1]], 0, b"abc");
            let (batch, ..) = walked(&file);
            let frame = batch.get(0).unwrap();
            assert_eq!((frame.data, frame.wire_len), (&b"abc"[..], 60), "{version:?}");
        }
        let unknown = header(0xa1b2_c3d4, false, (3, 0), 1);
        assert_eq!(Pcap::new(unknown.first_chunk().unwrap(), &Limits::DEFAULT).unwrap_err(), (3, 0));
    }

    #[test]
    fn upper_bits_of_the_link_type_give_the_fcs_length() {
        let file = header(0xa1b2_c3d4, true, (2, 4), 0x2400_0001);
        let pcap = Pcap::new(file.first_chunk().unwrap(), &Limits::DEFAULT).unwrap();
        assert_eq!((pcap.interface.link_type, pcap.interface.fcs_len), (LinkType::ETHERNET, Some(4)));
        assert_eq!(fcs_len(0x2000_0001), None);
    }

    #[test]
    fn an_implausible_length_is_an_error_and_a_truncated_record_needs_more_data() {
        let mut file = header(0xa1b2_c3d4, false, (2, 4), 1);
        let start = file.len();
        record(&mut file, false, [7, 0, 4, 4], 0, b"abc");
        assert_eq!(walked(&file).2, (start, Stop::Need(20)));
        let mut file = header(0xa1b2_c3d4, false, (2, 4), 1);
        record(&mut file, false, [7, 0, 1 << 30, 1 << 30], 0, b"abc");
        assert_eq!(walked(&file).2, (start, Stop::Bad(BadBlock::FrameTooLong(1 << 30))));
    }

    #[test]
    fn an_incomplete_header_needs_more_data() {
        let mut file = header(0xa1b2_cd34, false, (2, 4), 1);
        let start = file.len();
        record(&mut file, false, [7, 0, 1 << 30, 1 << 30], 7, b"");
        assert_eq!(walked(&file).2, (start, Stop::Need(24)));
        file.push(0);
        assert_eq!(walked(&file).2, (start, Stop::Bad(BadBlock::FrameTooLong(1 << 30))));
    }

    #[test]
    fn a_fraction_of_more_than_a_second_is_added() {
        let mut file = header(0xa1b2_c3d4, false, (2, 4), 1);
        record(&mut file, false, [7, 1_500_000, 0, 0], 0, b"");
        record(&mut file, false, [u32::MAX, u32::MAX, 0, 0], 0, b"");
        record(&mut file, false, [7, 0, 9, 2], 0, b"123456789");
        let (batch, stats, _) = walked(&file);
        assert_eq!(batch.get(0).unwrap().timestamp, Timestamp::from_parts(8, 500_000_000));
        let contradicted = batch.get(2).unwrap();
        assert_eq!((contradicted.data, contradicted.wire_len), (&b"123456789"[..], 2));
        assert_eq!((stats.time_step_back_count, stats.wire_octet_count), (1, 2));
        assert_eq!((stats.contradicted_len_count, stats.truncated_frame_count), (1, 0));
    }
}
