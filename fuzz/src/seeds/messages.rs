//! Messages of exporters, for the collector, datagrams of mirror sessions, and messages of the bus.

use std::io;
use std::path::Path;

use flowgauge::base::{FrameBatch, LinkType};
use flowgauge::ipfix::{Exporter, ExporterConfig, TimePrecision, Transport};
use flowgauge::{FileSource, records};

use super::store::Seeds;
use crate::targets::input::put_octets;

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

/// Adds attacks on the collector: the shortest records, tables of templates that are withdrawn over and over, and type records
/// that define an element again before each record of a long template.
pub(super) fn add_attacks(seeds: &mut Seeds) {
    let set = |id: u16, body: &[u16]| words(&[&[id, 4 + 2 * body.len() as u16], body].concat());
    let message = |sets: &[Vec<u8>]| {
        let sets = sets.concat();
        [words(&[10, 16 + sets.len() as u16, 0x6553, 0xf100, 0, 0, 0, 1]), sets].concat()
    };
    let record = [0x0a00, 1, 0x0a00, 2];

    let mut shortest = Framed(Vec::new());
    shortest.push(1, &message(&[set(2, &[256, 2, 8, 4, 12, 4]), set(256, &record.repeat(30))]));
    seeds.add(TARGET, shortest.0);

    let mut withdrawals = Framed(Vec::new());
    let templates: Vec<u16> = (256..300).flat_map(|id| [id, 1, 8, 4]).collect();
    for exporter in 1..=5 {
        withdrawals.push(exporter, &message(&[set(2, &templates)]));
        withdrawals.push(exporter, &message(&[set(3, &[3, 0].repeat(30)), set(2, &[2, 0].repeat(30))]));
        withdrawals.push(exporter, &message(&[set(2, &[256, 2, 8, 4, 12, 4]), set(256, &record)]));
    }
    seeds.add(TARGET, withdrawals.0);

    let mut definitions = Framed(Vec::new());
    let long = [&[256, 42, 8, 4, 12, 4], &[999, 0].repeat(40)[..]].concat();
    let options = [999, 3, 0, 346, 4, 303, 2, 341, 65_535];
    definitions.push(1, &message(&[set(2, &long), set(3, &options)]));
    for number in 0..8 {
        let named = [&words(&[0, 32_473, 1 + number % 2])[..], b"\x0bcommunityId"].concat();
        let named = [&words(&[999, 4 + named.len() as u16])[..], &named].concat();
        definitions.push(1, &message(&[named, set(256, &record)]));
    }
    seeds.add(TARGET, definitions.0);
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

/// Number of datagrams in a seed.
const DATAGRAM_COUNT: usize = 5;

/// Adds the first Ethernet frames of a capture in the datagrams of mirror sessions.
pub(super) fn add_mirrored(seeds: &mut Seeds, frames: &FrameBatch) {
    let frames = frames.iter().filter(|frame| frame.link_type == LinkType::ETHERNET);
    let frames: Vec<_> = frames.take(40).map(|frame| frame.data.to_vec()).collect();
    for (frames, (encapsulation, header)) in
        frames.chunks(DATAGRAM_COUNT).zip(MIRROR_HEADERS.into_iter().cycle())
    {
        let mut seed = vec![encapsulation, 3];
        for (number, frame) in frames.iter().enumerate() {
            let mut payload = [header, frame].concat();
            // Another session, for the encapsulations with an identifier at this place.
            payload[6] = payload[6].wrapping_add(number as u8 / 2);
            put_octets(&mut seed, &payload);
        }
        seeds.add("mirror", seed);
    }
}

/// Topic, whether the payload is text, number of records, stream, sequence and position of a message.
type BusMessage<'t> = (&'t [u8], bool, u8, u8, u64, u16);

/// Adds messages of publishers: records and lines in order, with losses, of several connections, and at the limits.
pub(super) fn add_subscriber(seeds: &mut Seeds) {
    let mut seed = |steps: &[BusMessage<'_>]| {
        let mut octets = Vec::new();
        for (topic, is_text, record_count, stream, sequence, position) in steps {
            put_octets(&mut octets, topic);
            octets.extend([0, u8::from(*is_text), 0, *record_count, *stream]);
            octets.extend(sequence.to_le_bytes());
            octets.extend(position.to_le_bytes());
            put_octets(&mut octets, b"{\"a\":1}");
            octets.push(1);
        }
        seeds.add("subscriber", octets);
    };
    seed(&[
        (b"flow.end", false, 3, 1, 0, 0),
        (b"flow.end", false, 2, 1, 3, 3),
        (b"flow.start", true, 1, 1, 9, 0),
    ]);
    seed(&[
        (b"flow.end", true, 3, 1, 0, 0),
        (b"flow.end", true, 2, 2, 1, 9),
        (b"flow.end", true, 0, 3, 7, 0),
    ]);
    let hostile = [
        (&b"flow.\x1b]0;x\x07"[..], true, 1, 0, u64::MAX - 1, 65_535),
        (b"flow", false, 255, 0, u64::MAX, 0),
    ];
    seed(&hostile);
    seed(&[
        (&[b't'; 300], true, 1, 1, 0, 0),
        (b"\xff", true, 1, 1, 0, 0),
        (b"", true, 1, 1, u64::MAX / 2, 0),
    ]);
}

/// Adds requests of each kind to a router, before, between and after packets.
pub(super) fn add_router(seeds: &mut Seeds) {
    /// Number of the kinds of steps.
    const KIND_COUNT: u64 = 6;
    let step = |kind: u64, rest: &[u8]| {
        let number = ((kind << 32) / KIND_COUNT + 1) as u32;
        [&number.to_le_bytes()[..], rest].concat()
    };
    let packets: Vec<u8> = (0..40_u8).flat_map(|at| step(0, &[at, at / 3, at, 5, at])).collect();
    let text = |request: &str| {
        let mut octets = Vec::new();
        put_octets(&mut octets, request.as_bytes());
        step(2, &octets)
    };
    let work = |is_complete: bool| step(5, &[u8::from(is_complete)]);
    let requests = [
        step(3, &[2, 0]),
        step(3, &[5, 1]),
        step(4, &[3, 0, 4]),
        text("top 10 octets"),
        text("counters"),
        text("key udp 10.0.0.1:1 10.0.1.0:5"),
        text("community_id 1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
        text("slice 1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
    ]
    .concat();
    for (has_ring, steps) in [
        (true, [&packets[..], &requests, &work(true)].concat()),
        (false, [&packets[..], &requests, &work(false), &packets, &work(false), &work(true)].concat()),
        (
            true,
            [
                &requests[..],
                &work(true),
                &packets,
                &step(1, &[60]),
                &requests,
                &work(false),
                &packets,
                &work(true),
            ]
            .concat(),
        ),
    ] {
        seeds.add("router", [&[0x40, 0x1f, u8::from(has_ring)][..], &steps].concat());
    }
}
