//! Messages of exporters, for the collector, and datagrams of mirror sessions.

use std::io;
use std::path::Path;

use flowgauge::base::{FrameBatch, LinkType};
use flowgauge::ipfix::{Exporter, ExporterConfig, TimePrecision, Transport};
use flowgauge::{FileSource, records};

use super::Seeds;

/// Name of the target.
const TARGET: &str = "collector";

/// Number of records in a seed.
const RECORD_COUNT: usize = 12;

/// Messages, each with the number of its exporter and its length before it.
struct Framed(Vec<u8>);

impl Transport for Framed {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.push(1, message);
        Ok(())
    }
}

impl Framed {
    fn push(&mut self, exporter: u8, message: &[u8]) {
        self.0.push(exporter);
        self.0.extend((message.len() as u16).to_be_bytes());
        self.0.extend_from_slice(message);
    }
}

/// Adds the IPFIX messages with the first records of a capture.
pub(super) fn add_capture(seeds: &mut Seeds, path: &Path) {
    let Ok(source) = FileSource::open(path) else { return };
    let records: Vec<_> = records(source).filter_map(Result::ok).take(RECORD_COUNT).collect();
    for (is_uniflow, enterprise_number) in [(false, Some(32_473)), (true, None)] {
        let mut config = ExporterConfig::default();
        (config.is_uniflow, config.enterprise_number) = (is_uniflow, enterprise_number);
        config.message_len_max = 512;
        if is_uniflow {
            config.time_precision = TimePrecision::Milliseconds;
        }
        let mut exporter = Exporter::new(config, Framed(Vec::new())).expect("a valid configuration");
        for record in &records {
            exporter.export(record, record.end).expect("a transport without errors");
        }
        exporter.flush().expect("a transport without errors");
        seeds.add(TARGET, exporter.into_transport().0);
    }
}

fn words(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Adds messages of the versions of NetFlow.
pub(super) fn add_netflow(seeds: &mut Seeds) {
    let mut version5 = Framed(Vec::new());
    let header = words(&[5, 1, 0, 10_000, 0x6553, 0xf100, 0, 0, 0, 7, 0, 0]);
    let record = words(&[
        0xc000, 0x0201, 0xc000, 0x0202, 0, 0, 3, 4, 0, 10, 0, 5000, 0, 9000, 0, 9900, 40_000, 80, 0x001b,
        0x06b8, 0, 0, 0, 0,
    ]);
    version5.push(1, &[header, record].concat());
    seeds.add(TARGET, version5.0);

    // A template, an options template of its scope and an option, and a data record of each.
    let mut version9 = Framed(Vec::new());
    let header = words(&[9, 3, 0, 10_000, 0x6553, 0xf100, 0, 7, 0, 1]);
    let template = words(&[0, 44, 256, 9, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 21, 4, 22, 4, 2, 4, 58, 2]);
    let options = words(&[1, 18, 257, 4, 4, 1, 2, 34, 4]);
    let data = words(&[
        256, 32, 0xc000, 0x0201, 0xc000, 0x0202, 40_000, 80, 0x0600, 0x0023, 0x0000, 0x0022, 0x0000, 0,
        0x0900, 5,
    ]);
    let option = words(&[257, 10, 1, 0, 100]);
    version9.push(2, &[header, template, options, data, option].concat());
    seeds.add(TARGET, version9.0);
}

/// Headers of mirror sessions: the place in [`MirrorEncapsulation::ALL`](flowgauge::source::MirrorEncapsulation::ALL), and
/// the octets before a frame.
const MIRROR_HEADERS: [(u8, &[u8]); 9] = [
    (0, &[8, 0, 0, 0, 0, 1, 0x2c, 0]),
    (1, &[0x0c, 0, 0, 3, 0, 0, 5, 0]),
    (2, &[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 0]),
    (3, &[1, 0, 0, 1, 10, 1, 0xd0, 1]),
    (4, &[0, 0, 0x65, 0x58]),
    (4, &[0x20, 0, 0x65, 0x58, 0, 0, 7, 1]),
    (4, &[0, 0, 0x88, 0xbe]),
    (4, &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 4, 0, 0, 0, 2]),
    (4, &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0]),
];

/// Adds the first Ethernet frames of a capture in the datagrams of mirror sessions.
pub(super) fn add_mirrored(seeds: &mut Seeds, frames: &FrameBatch) {
    let frames = frames.iter().filter(|frame| frame.link_type == LinkType::ETHERNET);
    for (frame, (encapsulation, header)) in frames.take(40).zip(MIRROR_HEADERS.into_iter().cycle()) {
        seeds.add("mirror", [&[encapsulation], header, frame.data].concat());
    }
}
