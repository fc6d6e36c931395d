//! Reading of the records of a file into the frames of a batch that has grown to its final size.

use std::io::Cursor;

use flowgauge::base::{Frame, FrameBatch, Timestamp};
use flowgauge::source::{FileSource, Next, PcapngWriter, Source};
use gungraun::prelude::*;

use crate::cases::{CLIENT, SERVER, udp};

const FRAME_COUNT: u64 = 2000;

/// Payload lengths: small, full, and a length between.
const PAYLOAD_LENS: [usize; 4] = [18, 1458, 18, 550];

/// A file to be read.
struct Reading {
    source: FileSource,
    batch: FrameBatch,
    frame_count: u64,
    octet_count: u64,
}

fn frames() -> Vec<Vec<u8>> {
    PAYLOAD_LENS.iter().map(|len| udp((CLIENT, 40_000), (SERVER, 53), &vec![7; *len])).collect()
}

fn timestamp(number: u64) -> Timestamp {
    Timestamp::from_nanos(1_700_000_000_000_000_000 + number * 1000)
}

fn pcap() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for (frame, number) in frames().iter().cycle().zip(0..FRAME_COUNT) {
        let micros = timestamp(number).as_nanos() / 1000;
        let len = frame.len() as u32;
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn pcapng() -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).expect("writing to a vector succeeds");
    for (frame, number) in frames().iter().cycle().zip(0..FRAME_COUNT) {
        writer.write(&Frame::ethernet(timestamp(number), frame), &[]).expect("writing to a vector succeeds");
    }
    writer.finish().expect("writing to a vector succeeds")
}

fn opened(file: &[u8]) -> FileSource {
    FileSource::from_reader(Cursor::new(file.to_vec())).expect("a capture")
}

/// Reads the file once, so that the batch has its final size.
fn ready(write: fn() -> Vec<u8>) -> Reading {
    let file = write();
    let mut before =
        Reading { source: opened(&file), batch: FrameBatch::new(), frame_count: 0, octet_count: 0 };
    read(&mut before);
    Reading { source: opened(&file), batch: before.batch, frame_count: 0, octet_count: 0 }
}

fn read(reading: &mut Reading) {
    while reading.source.next_batch(&mut reading.batch).expect("a readable file") == Next::Frames {
        for frame in reading.batch.iter() {
            reading.frame_count += 1;
            reading.octet_count += u64::from(frame.wire_len);
        }
    }
}

fn all_read(reading: Reading) {
    let round: u64 = PAYLOAD_LENS.iter().map(|len| *len as u64 + 42).sum();
    let round_count = FRAME_COUNT / PAYLOAD_LENS.len() as u64;
    assert_eq!((reading.frame_count, reading.octet_count), (FRAME_COUNT, round_count * round));
}

#[library_benchmark(setup = ready, teardown = all_read)]
#[bench::pcap(pcap)]
#[bench::pcapng(pcapng)]
fn records(mut reading: Reading) -> Reading {
    read(&mut reading);
    reading
}

library_benchmark_group!(name = source_group, benchmarks = records);
