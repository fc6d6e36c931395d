use std::io::{self, Cursor};

use super::super::End;
use super::super::pcap::tests::{header, put, record};
use super::super::warning::{BadBlock, WarningKind};
use super::*;
use crate::base::Limits;

fn pcap_of(frames: u32) -> Vec<u8> {
    let mut file = header(0xa1b2_c3d4, false, (2, 4), 1);
    for number in 0..frames {
        let len = 60 + number * 37 % 1400;
        record(&mut file, false, [number, 0, len, len], 0, &vec![number as u8; len as usize]);
    }
    file
}

/// Reader that returns at most `chunk_len` octets of another reader per read.
struct Drip<R> {
    inner: R,
    chunk_len: usize,
}

impl<R: Read> Read for Drip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.chunk_len);
        self.inner.read(&mut buffer[..len])
    }
}

/// Reads a source to its end. Returns its frames, each as (seconds of the timestamp, first octet, captured
/// length), and the source.
fn read_all(source: FileSource) -> (Vec<(u64, Option<u8>, usize)>, FileSource) {
    let mut source = source;
    let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        frames.extend(batch.iter().map(|frame| {
            (frame.timestamp.as_nanos() / 1_000_000_000, frame.data.first().copied(), frame.data.len())
        }));
    }
    assert!(batch.is_empty());
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::End(End::Complete));
    assert_eq!(source.stats().frame_count, frames.len() as u64);
    (frames, source)
}

fn reading(octets: Vec<u8>) -> FileSource {
    FileSource::from_reader(Cursor::new(octets)).unwrap()
}

#[test]
fn frames_do_not_depend_on_read_and_block_lengths() {
    let file = pcap_of(50);
    let (expected, _) = read_all(reading(file.clone()));
    assert_eq!(expected.len(), 50);
    for chunk_len in [1, 7, 1000, 1 << 20] {
        for batch_len in [0, 1, 100, 2000, 1 << 16] {
            let reader = Drip { inner: Cursor::new(file.clone()), chunk_len };
            let limits = Limits { batch_len, ..Limits::DEFAULT };
            let (frames, source) = read_all(FileSource::from_reader_with(reader, limits).unwrap());
            assert_eq!(frames, expected);
            assert!(source.warnings().is_empty());
            assert_eq!(source.progress(), file.len() as u64);
        }
    }
}

#[test]
fn available_data_of_a_pipe_is_delivered() {
    struct Pipe(Vec<Vec<u8>>);
    impl Read for Pipe {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            // A live pipe would block here.
            let chunk = self.0.pop().expect("no read after the first records");
            buffer[..chunk.len()].copy_from_slice(&chunk);
            Ok(chunk.len())
        }
    }
    let head = header(0xa1b2_c3d4, false, (2, 4), 1);
    let first = pcap_of(1).split_off(24);
    let two = pcap_of(2).split_off(24);
    let mut source = FileSource::from_reader(Pipe(vec![two, first, head])).unwrap();
    let mut batch = FrameBatch::new();
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
    assert_eq!(batch.len(), 1);
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
    assert_eq!(batch.len(), 2);
}

#[test]
fn a_truncated_file_yields_its_whole_frames_and_reports_the_position() {
    let mut file = pcap_of(3);
    file.truncate(file.len() - 1);
    let (frames, source) = read_all(reading(file));
    assert_eq!(frames.len(), 2);
    let [warning] = source.warnings() else { panic!("{:?}", source.warnings()) };
    assert_eq!((warning.offset, warning.frame_number), (24 + 16 + 60 + 16 + 97, 3));
    assert_eq!(warning.kind, WarningKind::Truncated { need: 16 + 134, have: 16 + 133 });
    assert_eq!(source.stats().truncated_file_count, 1);
}

#[test]
fn a_bad_record_ends_the_file_after_the_valid_ones() {
    let mut file = pcap_of(3);
    let position = file.len() as u64;
    record(&mut file, false, [9, 0, u32::MAX, u32::MAX], 0, &[0; 500]);
    let (frames, source) = read_all(reading(file));
    assert_eq!(frames.len(), 3);
    let [warning] = source.warnings() else { panic!("{:?}", source.warnings()) };
    assert_eq!((warning.offset, warning.frame_number), (position, 4));
    assert_eq!(warning.kind, WarningKind::BadBlock(BadBlock::FrameTooLong(u32::MAX)));
    assert_eq!(source.stats().bad_block_count, 1);
}

#[test]
fn a_file_with_only_a_header_is_a_capture_without_frames() {
    let (frames, source) = read_all(reading(pcap_of(0)));
    assert!(frames.is_empty() && source.warnings().is_empty());
    assert_eq!(source.interfaces().len(), 1);
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_to_its_end() {
    let path = std::env::temp_dir().join(format!("flowgauge-growing-{}.pcap", std::process::id()));
    let octets = pcap_of(100);
    std::fs::write(&path, &octets[..6000]).unwrap();
    let mut source = FileSource::open(&path).unwrap();
    let (mut batch, mut count) = (FrameBatch::new(), 0);
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
    count += batch.len();
    std::fs::write(&path, &octets).unwrap();
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        count += batch.len();
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!((count, source.warnings().len()), (100, 0));
    assert_eq!(source.progress(), octets.len() as u64);
}

#[test]
fn a_file_that_is_not_a_capture_is_an_error() {
    let message =
        |octets: &[u8]| FileSource::from_reader(Cursor::new(octets.to_vec())).unwrap_err().to_string();
    assert_eq!(message(b""), "(stream): is empty, not a capture file");
    assert_eq!(message(b"just text\n"), "(stream): is not a pcap or pcapng capture: it looks like text");
    assert!(message(&pcap_of(0)[..20]).contains("truncated within its first header"));
    assert!(message(&header(0xa1b2_c3d4, true, (9, 1), 1)).ends_with("has the unsupported pcap version 9.1"));
    let directory = FileSource::open(std::env::temp_dir()).unwrap_err();
    assert!(matches!(directory, Error::Directory { .. }));
    let missing = FileSource::open("/nonexistent/day.pcap").unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/day.pcap: "), "{missing}");
}

#[test]
fn a_block_longer_than_the_batch_grows_it_unless_its_length_is_invalid() {
    let mut file = Vec::new();
    for words in [&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28][..], &[1, 20, 1, 0, 20]] {
        words.iter().for_each(|word| put(&mut file, false, *word));
    }
    let good = file.len();
    let len = 100_000;
    [6, len + 32, 0, 0, 0, len, len].iter().for_each(|word| put(&mut file, false, *word));
    file.extend(vec![5; len as usize]);
    put(&mut file, false, len + 32);
    let limits = Limits { batch_len: 4096, ..Limits::DEFAULT };
    let source = FileSource::from_reader_with(Cursor::new(file.clone()), limits).unwrap();
    assert_eq!(read_all(source).0, [(0, Some(5), 100_000)]);
    // A skipped block that claims 8 MiB in a file that has only a few more octets.
    file.truncate(good);
    [5, 8 << 20, 0].iter().for_each(|word| put(&mut file, false, *word));
    let mut source = FileSource::from_reader_with(Cursor::new(file), limits).unwrap();
    let mut batch = FrameBatch::new();
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::End(End::Complete));
    assert!(batch.space(4096).len() <= 4096);
    assert!(
        matches!(source.warnings()[0].kind, WarningKind::Truncated { need, have: 12 } if need == 8 << 20)
    );
}

#[cfg(not(feature = "compression"))]
#[test]
fn compressed_input_names_the_feature() {
    let error = FileSource::from_reader(Cursor::new(vec![0x1f, 0x8b, 8, 0, 0, 0])).unwrap_err();
    let message = "(stream): is compressed with gzip; decompress it, or build with the feature `compression`";
    assert_eq!(error.to_string(), message);
}

#[cfg(feature = "compression")]
mod compressed {
    use std::io::Write;

    use super::*;

    fn gzip(octets: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(octets).unwrap();
        writer.finish().unwrap()
    }

    fn zstd(octets: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(octets, 1).unwrap()
    }

    #[test]
    fn concatenated_members_and_frames_are_one_capture() {
        let file = pcap_of(500);
        let (expected, _) = read_all(reading(file.clone()));
        let (head, tail) = file.split_at(10_000);
        for pack in [gzip, zstd] {
            let packed = [pack(head), pack(tail)].concat();
            let (frames, source) = read_all(reading(packed.clone()));
            assert_eq!(frames, expected);
            assert!(source.warnings().is_empty());
            assert_eq!(source.progress(), packed.len() as u64);
            let reader = Drip { inner: Cursor::new(packed), chunk_len: 1 };
            assert_eq!(read_all(FileSource::from_reader(reader).unwrap()).0, expected);
        }
    }

    #[test]
    fn truncated_compressed_input_yields_the_frames_before_the_truncation() {
        for pack in [gzip, zstd] {
            let mut packed = pack(&pcap_of(500));
            packed.truncate(packed.len() - 9);
            let (frames, source) = read_all(reading(packed));
            assert!(frames.len() <= 500, "{}", frames.len());
            let [warning] = source.warnings() else { panic!("{:?}", source.warnings()) };
            assert_eq!(warning.kind, WarningKind::Compression(io::ErrorKind::UnexpectedEof));
            assert_eq!(warning.frame_number, frames.len() as u64 + 1);
            assert_eq!(source.stats().damaged_compression_count, 1);
        }
    }

    #[test]
    fn a_wrong_checksum_is_a_warning_after_all_frames() {
        let mut packed = gzip(&pcap_of(50));
        let position = packed.len() - 6;
        packed[position] ^= 0xff;
        let (frames, source) = read_all(reading(packed));
        assert_eq!(frames.len(), 50);
        assert!(matches!(source.warnings()[0].kind, WarningKind::Compression(_)));
    }

    #[test]
    fn compressed_content_must_be_a_capture() {
        let message = |octets: Vec<u8>| FileSource::from_reader(Cursor::new(octets)).unwrap_err().to_string();
        assert!(message(gzip(b"hello hello")).ends_with("looks like text"));
        assert!(message(gzip(b"")).ends_with("is empty, not a capture file"));
        for packed in [gzip(&pcap_of(50)), zstd(&pcap_of(50))] {
            let truncated = packed[..12].to_vec();
            assert!(
                message(truncated.clone()).ends_with("truncated or damaged near its beginning"),
                "{}",
                message(truncated)
            );
        }
        assert!(message(gzip(&gzip(&pcap_of(1)))).ends_with("compressed twice"));
    }
}
