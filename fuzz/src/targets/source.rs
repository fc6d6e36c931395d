//! Arbitrary octets as a capture file: frames are within bounds, do not depend on the number of octets that each read
//! returns, and are the same after writing and reading them as pcapng.
use std::io::{self, Cursor, Read};
use std::mem::discriminant;

use flowgauge::base::{FrameBatch, Limits};
use flowgauge::source::{Error, FileSource, PcapngWriter, Source, WarningKind};

use super::input::structured;

/// A reader that returns at most a given number of octets per call.
struct SlowReader {
    inner: Cursor<Vec<u8>>,
    chunk_len: usize,
}

impl Read for SlowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.chunk_len);
        self.inner.read(&mut buffer[..len])
    }
}

#[derive(Debug, PartialEq)]
struct Seen {
    frames: Vec<(u64, u16, Vec<u8>, u32, u32)>,
    warning: Option<(u64, u64, WarningKind)>,
}

const FRAME_LEN_MAX: u32 = 2000;
const INTERFACE_COUNT_MAX: u32 = 5;

fn read(octets: &[u8], chunk_len: usize, batch_len: u32) -> Result<Seen, Error> {
    let mut limits = Limits::DEFAULT;
    limits.frame_len_max = FRAME_LEN_MAX;
    limits.block_len_max = 4096;
    limits.interface_count_max = INTERFACE_COUNT_MAX;
    limits.batch_len = batch_len;
    let mut source =
        FileSource::from_reader_with(SlowReader { inner: Cursor::new(octets.to_vec()), chunk_len }, limits)?;
    let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
    let mut writer = PcapngWriter::new(Vec::new()).expect("writing to a vector succeeds");
    while !source.next_batch(&mut batch).expect("reading from a cursor succeeds").is_end() {
        assert!(!batch.is_empty());
        for frame in batch.iter() {
            assert!(frame.data.len() <= FRAME_LEN_MAX as usize);
            assert!((frame.interface as usize) < source.interfaces().len());
            writer.write(&frame, source.interfaces()).expect("writing to a vector succeeds");
            frames.push((
                frame.timestamp.as_nanos(),
                frame.link_type.0,
                frame.data.to_vec(),
                frame.wire_len,
                frame.interface,
            ));
        }
    }
    assert!(batch.is_empty());
    assert!(source.interfaces().len() <= INTERFACE_COUNT_MAX as usize);
    assert!(source.warnings().len() <= 1);
    let stats = source.stats();
    assert_eq!(stats.frame_count, frames.len() as u64);
    assert_eq!(stats.captured_octet_count, frames.iter().map(|frame| frame.2.len() as u64).sum::<u64>());
    let contradicted = frames.iter().filter(|frame| frame.2.len() > frame.3 as usize);
    assert_eq!(stats.contradicted_len_count, contradicted.count() as u64);
    let ends = stats.bad_block_count + stats.truncated_file_count + stats.damaged_compression_count;
    assert_eq!(ends, source.warnings().len() as u64);
    let warning =
        source.warnings().first().map(|warning| (warning.offset, warning.frame_number, warning.kind));

    // The written file has the same frames.
    let file = writer.finish().expect("writing to a vector succeeds");
    let mut again = FileSource::from_reader(Cursor::new(file)).expect("the written capture");
    let mut count = 0;
    while !again.next_batch(&mut batch).expect("reading from a cursor succeeds").is_end() {
        count += batch.len();
    }
    assert_eq!((count, again.warnings().len()), (frames.len(), 0));
    Ok(Seen { frames, warning })
}

pub fn run(data: &[u8]) {
    let Some((chunk_len, batch_len, octets)) = structured::<(u8, u16, &[u8])>(data) else { return };
    let whole = read(octets, usize::MAX, 1 << 16);
    let slow = read(octets, usize::from(chunk_len).max(1), batch_len.into());
    match (whole, slow) {
        (Ok(whole), Ok(slow)) => {
            if is_compressed(octets) {
                // The length of each read determines how much of the end of a damaged stream is decompressed.
                let common = whole.frames.len().min(slow.frames.len());
                assert_eq!(whole.frames[..common], slow.frames[..common]);
            } else {
                assert_eq!(whole, slow);
            }
        }
        // Damage at the start of compressed data may hide more or less of the file header.
        (Err(_), Err(_)) if is_compressed(octets) => {}
        // The description of an unknown format depends on the number of octets read.
        (Err(whole), Err(slow)) => assert_eq!(discriminant(&whole), discriminant(&slow)),
        // Damage at the start of compressed data may hide the file header or not.
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => assert!(is_compressed(octets)),
    }
}

fn is_compressed(octets: &[u8]) -> bool {
    matches!(octets, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}
