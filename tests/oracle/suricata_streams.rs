//! Comparison with the stream content that Suricata's own tests expect for overlapping segments and gaps.
//!
//! Suricata buffers octets until they are acknowledged, so its overlap policy also applies to octets that a host has
//! already passed to the application. A host cannot take those back, and neither does the reassembler, which delivers
//! octets in order as soon as they arrive. To compare the policies, the test pretends that one octet before the first
//! one is missing, so that the reassembler buffers all octets.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use flowgauge::base::{FrameBatch, Resources, SeqNum, TcpFlags};
use flowgauge::decode::extractor::Extractor;
use flowgauge::reassembler::{OverlapPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};
use flowgauge::source::{FileSource, Source as _};

use super::corpus;

/// Suricata's tests and their policies. Suricata's default configuration is the policy of Windows. Its inline mode
/// keeps the octets that arrived first.
const CASES: &[(&str, OverlapPolicy)] = &[
    ("eve-overlap-payload-01", OverlapPolicy::Windows),
    ("eve-overlap-payload-02-policy-oldlinux", OverlapPolicy::OldLinux),
    ("eve-overlap-payload-03-ips", OverlapPolicy::First),
    ("eve-overlap-payload-05-gap", OverlapPolicy::Windows),
    ("eve-payload-01-tcp-exact-overlap", OverlapPolicy::Windows),
    ("eve-payload-02-tcp-exact-overlap-policy-oldlinux", OverlapPolicy::OldLinux),
    ("eve-payload-03-tcp-exact-overlap-ips", OverlapPolicy::First),
    ("eve-payload-05-tcp-data-gap", OverlapPolicy::Windows),
];

/// Tests with a different text if octets are delivered as they arrive. In Suricata, a later segment replaces one that
/// was in order and not yet acknowledged, which no host with that policy does.
const REPLACED_IN_ORDER: &[&str] =
    &["eve-overlap-payload-02-policy-oldlinux", "eve-payload-02-tcp-exact-overlap-policy-oldlinux"];

/// Returns the client's stream, with gaps in Suricata's notation.
fn text_of(path: &Path, policy: OverlapPolicy, buffers_all: bool) -> String {
    let mut config = ReassemblerConfig::default();
    config.overlap = policy;
    let mut reassembler: Reassembler<()> =
        Reassembler::new(config, &Resources::default()).expect("a valid configuration");
    let mut stream = Stream::default();
    let (mut text, mut client) = (String::new(), None);
    let mut out = |event: StreamEvent<'_>| match event {
        StreamEvent::Chunk(chunk) => text += &String::from_utf8_lossy(chunk.bytes),
        StreamEvent::Gap(gap) if buffers_all && gap.offset == 0 => assert_eq!(gap.len, 1),
        StreamEvent::Gap(gap) => text += &format!("[{} bytes missing]", gap.len),
        _ => {}
    };
    let mut source = FileSource::open(path).expect("a readable capture");
    let (mut batch, extractor) = (FrameBatch::new(), Extractor::default());
    let mut segment_count = 0;
    while !source.next_batch(&mut batch).expect("a whole capture").is_end() || !batch.is_empty() {
        for frame in batch.iter() {
            let packet = extractor.extract(&frame).expect("a packet");
            let mut segment = Segment::of(&packet).expect("a segment");
            segment_count += 1;
            // The first segment is the client's SYN.
            if *client.get_or_insert(packet.side) == packet.side {
                if buffers_all && segment.flags.contains(TcpFlags::SYN) {
                    segment.seq = SeqNum(segment.seq.0.wrapping_sub(1));
                }
                reassembler.segment(&mut stream, (), &segment, &mut out);
            } else if !buffers_all {
                reassembler.acknowledgment(&mut stream, (), &segment, &mut out);
            }
        }
        batch.clear();
    }
    assert!(segment_count > 5);
    reassembler.finish(&mut stream, &mut out);
    text
}

/// Returns the payloads in alerts of the stream engine.
fn expected(test: &str) -> Vec<String> {
    let mut expected = Vec::new();
    for check in test.split("- filter:").skip(1) {
        let value = |name: &str| {
            let mut lines = check.lines().map(str::trim);
            lines.find_map(|line| {
                line.strip_prefix(name)?.strip_prefix(": ").map(|text| text.trim_matches('"'))
            })
        };
        let is_stream = value("pkt_src").is_some_and(|source| source.starts_with("stream"))
            || value("stream") == Some("1");
        if let (true, Some(payload)) = (is_stream, value("payload")) {
            let bytes = base64::engine::general_purpose::STANDARD.decode(payload).expect("base64");
            expected.push(String::from_utf8(bytes).expect("text"));
        }
    }
    expected.dedup();
    expected
}

#[test]
fn overlaps_and_gaps_match_suricata() {
    let Some(captures) = corpus::captures() else { return };
    let mut compared_count = 0;
    for capture in &captures {
        for oracle in capture.oracles("suri") {
            let folder = oracle.parent().and_then(Path::file_name).and_then(|name| name.to_str());
            let Some((name, policy)) = CASES.iter().find(|(name, _)| folder == Some(*name)) else { continue };
            let test = fs::read_to_string(&oracle).expect("a readable test");
            let expected = expected(&test);
            assert_eq!(expected.len(), 1, "{name}");
            assert_eq!(text_of(&capture.path(), *policy, true), expected[0], "{name}");
            let delivered = text_of(&capture.path(), *policy, false);
            assert_eq!(delivered != expected[0], REPLACED_IN_ORDER.contains(name), "{name}: {delivered}");
            compared_count += 1;
        }
    }
    assert_eq!(compared_count, CASES.len());
}
