//! Changes of a capture, and the records that are expected after them.

use std::io::{Cursor, Read, Write as _};
use std::time::Duration;

use flowgauge::base::{FrameBatch, LinkType, Side};
use flowgauge::source::{Files, PcapngWriter};
use flowgauge::{Builder, FileSource, Filter, Next, Source as _, Timestamp};
use serde_json::{Value, json};

use super::capture::{Capture, Fields, Owned, builder, of_batches, of_frames, of_shards, of_source, sort};
use super::{agreement, flows, packets, pairs};

/// Result of a check.
pub(crate) enum Outcome {
    Equal,
    /// The first difference.
    Different(String),
    /// The change cannot be made, for example because the capture has no packet of the kind.
    NotApplicable,
}

pub(crate) struct Relation {
    pub(crate) name: &'static str,
    /// What must be equal, for the scoreboard.
    pub(crate) expected: &'static str,
    pub(crate) check: fn(&Capture) -> Outcome,
}

const ALL: &str = "all fields";
const OCTETS_MORE: &str = "all fields; octets plus those of the headers";

pub(crate) const RELATIONS: &[Relation] = &[
    Relation { name: "pcapng, written from the frames", expected: ALL, check: pcapng },
    Relation { name: "pcap with nanoseconds, little-endian", expected: ALL, check: pcap_little },
    Relation { name: "pcap with nanoseconds, big-endian", expected: ALL, check: pcap_big },
    Relation {
        name: "pcap with microseconds",
        expected: "all fields of times in microseconds",
        check: pcap_micro,
    },
    Relation { name: "gzip", expected: ALL, check: gzip },
    Relation { name: "zstd", expected: ALL, check: zstd },
    Relation { name: "pieces of a pipe of 1 to 61 octets", expected: ALL, check: pieces },
    Relation { name: "2 shards", expected: ALL, check: |capture| shards(capture, 2) },
    Relation { name: "5 shards", expected: ALL, check: |capture| shards(capture, 5) },
    Relation { name: "batches of one frame", expected: ALL, check: |capture| batches(capture, 1) },
    Relation { name: "batches of 7 frames", expected: ALL, check: |capture| batches(capture, 7) },
    Relation { name: "batches of 1000 frames", expected: ALL, check: |capture| batches(capture, 1000) },
    Relation {
        name: "a VLAN tag on each frame",
        expected: "all fields but VLAN ids; octets plus 4",
        check: vlan,
    },
    Relation { name: "an MPLS label on each frame", expected: OCTETS_MORE, check: mpls },
    Relation {
        name: "each frame in VXLAN",
        expected: OCTETS_MORE,
        check: |capture| tunnel(capture, packets::in_vxlan, 50),
    },
    Relation {
        name: "each frame in GENEVE",
        expected: OCTETS_MORE,
        check: |capture| tunnel(capture, packets::in_geneve, 50),
    },
    Relation {
        name: "each frame in GRE",
        expected: OCTETS_MORE,
        check: |capture| tunnel(capture, packets::in_gre, 38),
    },
    Relation {
        name: "each packet in two fragments",
        expected: "ends, payload, TCP state, application",
        check: fragments,
    },
    Relation {
        name: "source and destination addresses swapped",
        expected: "all fields, addresses swapped",
        check: swapped,
    },
    Relation {
        name: "the filter `tcp`",
        expected: "all fields of the flows of TCP",
        check: |capture| filter(capture, "tcp", |fields| fields["protocol"] == 6),
    },
    Relation {
        name: "the filter `udp`",
        expected: "all fields of the flows of UDP",
        check: |capture| filter(capture, "udp", |fields| fields["protocol"] == 17),
    },
    Relation {
        name: "the filter `port 53 or port 80`",
        expected: "all fields of the flows with the ports",
        check: ports,
    },
    Relation {
        name: "the first side of each flow 1 ms late",
        expected: pairs::EXPECTED,
        check: |capture| pairs::late(capture, Side::A, 1),
    },
    Relation {
        name: "the second side of each flow 1 ms late",
        expected: pairs::EXPECTED,
        check: |capture| pairs::late(capture, Side::B, 1),
    },
    Relation {
        name: "the first side of each flow 3 ms late",
        expected: pairs::EXPECTED,
        check: |capture| pairs::late(capture, Side::A, 3),
    },
    Relation {
        name: "the second side of each flow 3 ms late",
        expected: pairs::EXPECTED,
        check: |capture| pairs::late(capture, Side::B, 3),
    },
    Relation {
        name: "the first side of each flow 20 ms late",
        expected: pairs::EXPECTED,
        check: |capture| pairs::late(capture, Side::A, 20),
    },
    Relation {
        name: "the second side of each flow 20 ms late",
        expected: pairs::EXPECTED,
        check: |capture| pairs::late(capture, Side::B, 20),
    },
    Relation {
        name: "neighboring frames of both directions swapped",
        expected: pairs::EXPECTED,
        check: pairs::swapped,
    },
    Relation {
        name: "the first answer of each flow before its first packet too",
        expected: flows::DIRECTION,
        check: flows::answered_before,
    },
    Relation {
        name: "the clock set back by 1 s in the middle",
        expected: flows::DURATION,
        check: |capture| flows::clock_set_back(capture, Duration::from_secs(1)),
    },
    Relation {
        name: "the clock set back by an hour in the middle",
        expected: flows::DURATION,
        check: |capture| flows::clock_set_back(capture, Duration::from_secs(3600)),
    },
    Relation {
        name: "records, messages, transactions, events of EVE, logs of Zeek",
        expected: flows::OUTPUTS,
        check: agreement::of_outputs,
    },
    Relation { name: "first and second half merged", expected: ALL, check: halves },
    Relation { name: "odd and even frames merged", expected: ALL, check: alternating },
];

/// Compares records.
fn compare(expected: &[Fields], found: &[Fields]) -> Outcome {
    if expected == found {
        return Outcome::Equal;
    }
    let different = expected.iter().zip(found).find(|(expected, found)| expected != found);
    let Some((expected_fields, found_fields)) = different else {
        return Outcome::Different(format!("{} records instead of {}", found.len(), expected.len()));
    };
    let fields: Vec<_> = expected_fields
        .iter()
        .filter(|(name, value)| found_fields.get(*name) != Some(value))
        .map(|(name, value)| {
            format!("{name} {} instead of {value}", found_fields.get(name).unwrap_or(&Value::Null))
        })
        .take(2)
        .collect();
    Outcome::Different(format!("{} and {} records: {}", expected.len(), found.len(), fields.join(", ")))
}

/// Compares records after a change of the fields of both.
fn compare_after(expected: &[Fields], found: &[Fields], change: impl Fn(&mut Fields)) -> Outcome {
    let changed = |records: &[Fields]| {
        let mut records = records.to_vec();
        records.iter_mut().for_each(&change);
        sort(&mut records);
        records
    };
    compare(&changed(expected), &changed(found))
}

fn without(fields: &mut Fields, names: &[&str]) {
    for name in names {
        fields.remove(*name);
        fields.remove(&format!("reverse_{name}"));
    }
}

fn of_octets(octets: Vec<u8>) -> Vec<Fields> {
    of_source(&builder(), FileSource::from_reader(Cursor::new(octets)).expect("a capture"))
}

fn pcapng_octets<'a>(capture: &Capture, frames: impl Iterator<Item = &'a Owned>) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).expect("writing to memory");
    for frame in frames {
        writer.write(&frame.frame(), &capture.interfaces).expect("writing to memory");
    }
    writer.finish().expect("writing to memory")
}

fn pcapng(capture: &Capture) -> Outcome {
    // Interfaces without frames are not written, and others are numbered in the order of their frames.
    let found = of_octets(pcapng_octets(capture, capture.frames.iter()));
    compare_after(&capture.records, &found, |fields| without(fields, &["interface"]))
}

/// Returns a pcap file, if all frames have the same link type.
fn pcap(capture: &Capture, is_big: bool, unit_ns: u64) -> Option<Vec<u8>> {
    let link_type = capture.frames.first()?.link_type;
    if capture.frames.iter().any(|frame| frame.link_type != link_type) {
        return None;
    }
    let u32_octets = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let u16_octets = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = u32_octets(if unit_ns == 1 { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
    file.extend([u16_octets(2), u16_octets(4)].concat());
    file.extend([u32_octets(0), u32_octets(0), u32_octets(262_144)].concat());
    file.extend(u32_octets(u32::from(link_type.0)));
    for frame in &capture.frames {
        let nanos = frame.timestamp.as_nanos();
        let seconds = u32::try_from(nanos / 1_000_000_000).ok()?;
        let rest = (nanos % 1_000_000_000 / unit_ns) as u32;
        for value in [seconds, rest, frame.data.len() as u32, frame.wire_len] {
            file.extend(u32_octets(value));
        }
        file.extend_from_slice(&frame.data);
    }
    Some(file)
}

fn with_one_interface(capture: &Capture, file: Option<Vec<u8>>, expected: &[Fields]) -> Outcome {
    let Some(file) = file else { return Outcome::NotApplicable };
    if capture.frames.iter().any(|frame| frame.interface != capture.frames[0].interface) {
        return Outcome::NotApplicable;
    }
    compare_after(expected, &of_octets(file), |fields| without(fields, &["interface"]))
}

fn pcap_little(capture: &Capture) -> Outcome {
    with_one_interface(capture, pcap(capture, false, 1), &capture.records)
}

fn pcap_big(capture: &Capture) -> Outcome {
    with_one_interface(capture, pcap(capture, true, 1), &capture.records)
}

fn pcap_micro(capture: &Capture) -> Outcome {
    let mut frames = capture.frames.clone();
    for frame in &mut frames {
        frame.timestamp = Timestamp::from_nanos(frame.timestamp.as_nanos() / 1000 * 1000);
    }
    with_one_interface(capture, pcap(capture, false, 1000), &of_frames(&builder(), &frames))
}

/// Compares the records of a file that is changed as a whole.
fn of_file(capture: &Capture, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Outcome {
    let Some(octets) = &capture.octets else { return Outcome::NotApplicable };
    if octets.starts_with(&[0x1f, 0x8b]) {
        return Outcome::NotApplicable;
    }
    compare(&capture.records, &of_octets(change(octets)))
}

fn gzip(capture: &Capture) -> Outcome {
    of_file(capture, |octets| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(octets).expect("writing to memory");
        encoder.finish().expect("writing to memory")
    })
}

fn zstd(capture: &Capture) -> Outcome {
    of_file(capture, |octets| zstd::encode_all(octets, 1).expect("writing to memory"))
}

/// A reader that returns pieces of changing length.
struct Pieces {
    octets: Vec<u8>,
    at: usize,
    len: usize,
}

impl Read for Pieces {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.len = self.len * 7 % 61 + 1;
        let rest = &self.octets[self.at..];
        let len = rest.len().min(to.len()).min(self.len);
        to[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

fn pieces(capture: &Capture) -> Outcome {
    let Some(octets) = capture.octets.clone() else { return Outcome::NotApplicable };
    let source = FileSource::from_reader(Pieces { octets, at: 0, len: 5 }).expect("a capture");
    compare(&capture.records, &of_source(&builder(), source))
}

fn shards(capture: &Capture, count: usize) -> Outcome {
    if capture.octets.is_none() {
        return Outcome::NotApplicable;
    }
    compare(&capture.records, &of_shards(count, FileSource::open(&capture.path).expect("a capture")))
}

fn batches(capture: &Capture, len: usize) -> Outcome {
    compare(&capture.records, &of_batches(&builder(), &capture.frames, Some(len)))
}

/// Applies a change to the frames for which it is possible. Returns `None` if it is not possible for all frames of IP.
fn changed(capture: &Capture, change: impl Fn(&Owned) -> Option<Owned>) -> Option<Vec<Owned>> {
    let mut count = 0;
    let mut frames = Vec::with_capacity(capture.frames.len());
    for frame in &capture.frames {
        match change(frame) {
            Some(frame) => {
                count += 1;
                frames.push(frame);
            }
            // Other frames belong to no flow, or to one without changes, which would not be comparable.
            None if packets::ip_offset(frame).is_none() && frame.link_type == LinkType::ETHERNET => {
                frames.push(frame.clone());
            }
            None => return None,
        }
    }
    (count > 0).then_some(frames)
}

/// Adds a number for each packet to the octets of a record.
fn add_octets(records: &[Fields], per_packet: u64) -> Vec<Fields> {
    let mut records = records.to_vec();
    for fields in &mut records {
        for prefix in ["", "reverse_"] {
            let count = |name: &str| fields[&format!("{prefix}{name}")].as_u64().unwrap_or_default();
            let octets = count("octet_count") + per_packet * count("packet_count");
            fields.insert(format!("{prefix}octet_count"), json!(octets));
        }
    }
    records
}

fn vlan(capture: &Capture) -> Outcome {
    let Some(frames) = changed(capture, |frame| packets::with_vlan_tag(frame, 77)) else {
        return Outcome::NotApplicable;
    };
    let found = of_frames(&builder(), &frames);
    compare_after(&add_octets(&capture.records, 4), &found, |fields| without(fields, &["vlan_ids"]))
}

fn mpls(capture: &Capture) -> Outcome {
    let Some(frames) = changed(capture, packets::with_mpls_label) else { return Outcome::NotApplicable };
    compare_after(&add_octets(&capture.records, 4), &of_frames(&builder(), &frames), |_| {})
}

/// Only frames with an IP header are changed: the records of tunneled frames without one are those of the tunnel.
fn tunnel(capture: &Capture, wrap: fn(&Owned) -> Option<Owned>, header_len: u64) -> Outcome {
    let wrapped = |frame: &Owned| packets::ip_offset(frame).and_then(|_| wrap(frame));
    let Some(frames) = changed(capture, wrapped) else { return Outcome::NotApplicable };
    compare_after(&add_octets(&capture.records, header_len), &of_frames(&builder(), &frames), |_| {})
}

fn fragments(capture: &Capture) -> Outcome {
    let (mut frames, mut count) = (Vec::new(), 0_u16);
    for frame in &capture.frames {
        match packets::fragments(frame) {
            Some(mut pair) => {
                count = count.wrapping_add(1);
                pair.iter_mut().for_each(|fragment| packets::set_identification(fragment, count));
                frames.extend(pair);
            }
            None => frames.push(frame.clone()),
        }
    }
    if count == 0 {
        return Outcome::NotApplicable;
    }
    compare_after(&capture.records, &of_frames(&builder(), &frames), |fields| {
        let kept = [
            "protocol",
            "source_address",
            "source_port",
            "destination_address",
            "destination_port",
            "payload_octet_count",
            "reverse_payload_octet_count",
            "tcp_flags",
            "reverse_tcp_flags",
            "tcp_state",
            "conn_state",
            "application",
        ];
        fields.retain(|name, _| kept.contains(&name.as_str()));
    })
}

fn swapped(capture: &Capture) -> Outcome {
    let mut frames = capture.frames.clone();
    // The flows of all frames must change.
    if frames.iter().any(|frame| !matches!(frame.link_type, LinkType::ETHERNET | LinkType::RAW)) {
        return Outcome::NotApplicable;
    }
    // Only the outermost addresses are swapped.
    let with_headers = of_frames(&builder().encapsulation(true), &frames);
    if with_headers
        .iter()
        .any(|fields| !fields["encapsulation"].is_null() || !fields["reverse_encapsulation"].is_null())
    {
        return Outcome::NotApplicable;
    }
    frames.iter_mut().for_each(packets::swap_addresses);
    let mut expected = capture.records.clone();
    let is_host = |address: &Value| {
        address.as_str().is_some_and(|text| packets::is_host(text.parse().expect("an address")))
    };
    for fields in &mut expected {
        if !is_host(&fields["source_address"]) || !is_host(&fields["destination_address"]) {
            continue;
        }
        let source = fields.insert("source_address".to_owned(), fields["destination_address"].clone());
        fields.insert("destination_address".to_owned(), source.expect("an address"));
    }
    compare_after(&expected, &of_frames(&builder(), &frames), |fields| without(fields, &["community_id"]))
}

fn with_filter(text: &str) -> Builder {
    builder().filter(text.parse::<Filter>().expect("a filter"))
}

fn filter(capture: &Capture, text: &str, selects: impl Fn(&Fields) -> bool) -> Outcome {
    let expected: Vec<_> = capture.records.iter().filter(|fields| selects(fields)).cloned().collect();
    if expected.is_empty() || expected.len() == capture.records.len() {
        return Outcome::NotApplicable;
    }
    compare(&expected, &of_frames(&with_filter(text), &capture.frames))
}

fn ports(capture: &Capture) -> Outcome {
    filter(capture, "port 53 or port 80", |fields| {
        ["source_port", "destination_port"].iter().any(|name| fields[*name] == 53 || fields[*name] == 80)
    })
}

/// Merges two captures that have been written to a folder.
fn merged(capture: &Capture, parts: [Vec<&Owned>; 2]) -> Outcome {
    // A merge is by time, so that frames with a time before an earlier one are moved.
    let is_sorted = capture.frames.is_sorted_by_key(|frame| frame.timestamp);
    if !is_sorted || parts.iter().any(Vec::is_empty) {
        return Outcome::NotApplicable;
    }
    // Each thread has a folder of its own, so that none removes that of another one.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let folder = std::env::temp_dir().join(format!("flowgauge-metamorphic-{process}-{thread:?}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let paths = [0, 1].map(|number| folder.join(format!("{number}.pcapng")));
    for (path, part) in paths.iter().zip(parts) {
        std::fs::write(path, pcapng_octets(capture, part.into_iter())).expect("a file");
    }
    let found = of_source(&builder(), Files::open(&paths).expect("two captures"));
    std::fs::remove_dir_all(&folder).expect("the folder exists");
    compare_after(&capture.records, &found, |fields| without(fields, &["interface"]))
}

fn halves(capture: &Capture) -> Outcome {
    let (first, second) = capture.frames.split_at(capture.frames.len() / 2);
    merged(capture, [first.iter().collect(), second.iter().collect()])
}

fn alternating(capture: &Capture) -> Outcome {
    // Frames with equal times are merged in the order of the files.
    if capture.frames.windows(2).any(|pair| pair[0].timestamp == pair[1].timestamp) {
        return Outcome::NotApplicable;
    }
    let part = |rest| capture.frames.iter().skip(rest).step_by(2).collect();
    merged(capture, [part(0), part(1)])
}

/// The batch of a source and its frames one by one are the same, so that the records of frames are those of the file.
#[test]
fn records_of_frames_are_those_of_the_file() {
    for path in super::capture::examples() {
        let capture = Capture::read(&path);
        let source = FileSource::open(&path).expect("a capture");
        assert!(of_source(&builder(), source) == capture.records, "{}", path.display());
        let mut source = FileSource::open(&path).expect("a capture");
        let (mut batch, mut count) = (FrameBatch::new(), 0);
        while source.next_batch(&mut batch).expect("a capture") == Next::Frames {
            count += batch.len();
        }
        assert_eq!(count, capture.frames.len());
    }
}
