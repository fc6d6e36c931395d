//! Small captures with frames that contain the number of their file and their own number, and a reader of them.

use flowgauge::base::{Frame, FrameBatch, LinkType, Timestamp};
use flowgauge::source::{Error, Next, PcapngWriter, Source};

/// Length of the pcap file header.
pub(crate) const PCAP_HEADER_LEN: usize = 24;
/// Length of a pcap record with its frame.
pub(crate) const PCAP_RECORD_LEN: usize = 16 + FRAME_LEN;

pub(crate) const FRAME_LEN: usize = 20;

/// Returns the octets of a frame: the number of its file, its own number, and padding.
pub(crate) fn frame(file: u8, number: u32) -> [u8; FRAME_LEN] {
    let mut frame = [file; FRAME_LEN];
    frame[1..5].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Returns the capture time of a frame. Files overlap in time; those with higher numbers have slightly later times.
fn timestamp(file: u8, number: u32) -> Timestamp {
    Timestamp::from_parts(1000 + u64::from(number), u64::from(file) * 1000)
}

/// Returns a pcap file of frames `0..count`.
pub(crate) fn pcap(file: u8, count: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        octets.extend(word.to_le_bytes());
    }
    for number in 0..count {
        let nanos = timestamp(file, number).as_nanos();
        let len = FRAME_LEN as u32;
        for word in [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, len, len] {
            octets.extend(word.to_le_bytes());
        }
        octets.extend(frame(file, number));
    }
    octets
}

/// Returns the same frames as a pcapng file.
pub(crate) fn pcapng(file: u8, count: u32) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    for number in 0..count {
        let data = &frame(file, number);
        let timestamp = timestamp(file, number);
        let wire_len = FRAME_LEN as u32;
        let frame = Frame { timestamp, link_type: LinkType::ETHERNET, data, wire_len, interface: 0 };
        writer.write(&frame, &[]).unwrap();
    }
    writer.finish().unwrap()
}

#[cfg(feature = "compression")]
pub(crate) fn gzip(octets: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

#[cfg(feature = "compression")]
pub(crate) fn zstd(octets: &[u8]) -> Vec<u8> {
    zstd::encode_all(octets, 1).unwrap()
}

/// The frames and errors that a source delivered until it ended.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// Frames by the number of their file.
    pub(crate) counts: Vec<u32>,
    pub(crate) errors: Vec<Error>,
    pub(crate) warning_count: usize,
}

/// Reads a source to its end, and continues after errors. Frames of each file must be complete, unique, and in order.
pub(crate) fn drain(source: &mut dyn Source, file_count: usize, mut after: impl FnMut()) -> Delivered {
    let mut delivered = Delivered { counts: vec![0; file_count], ..Delivered::default() };
    let mut batch = FrameBatch::new();
    for step in 0.. {
        assert!(step < 100_000, "the source does not end: {:?}", delivered.errors.last());
        let read = source.next_batch(&mut batch);
        for found in batch.iter() {
            let file = found.data[0];
            let count = &mut delivered.counts[usize::from(file)];
            assert_eq!(found.data, frame(file, *count), "frame {count} of file {file}");
            assert_eq!(found.timestamp, timestamp(file, *count));
            *count += 1;
        }
        match read {
            Ok(Next::End(_)) => break,
            Ok(_) => {}
            Err(error) => {
                assert!(!error.to_string().is_empty());
                delivered.errors.push(error);
            }
        }
        after();
    }
    let total: u32 = delivered.counts.iter().sum();
    assert_eq!(source.stats().frame_count, u64::from(total), "the source counts what it delivers");
    delivered.warning_count = source.warnings().len();
    delivered
}
