//! Each outer header limits the packet inside it: octets behind its end belong to no packet, for any values of the
//! inner length fields. The table of frames is checked against its own payload, and against tshark.

mod frames;

use std::ops::ControlFlow;
use std::process::Command;

use etherparse::PacketBuilder;
use flowgauge::base::{Frame, FrameBatch, IpProtocol, Limits, LinkType, Side, Timestamp};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, Packet, PacketMarks, Transport, quoted_key};
use flowgauge::decode::link::{Checksum, Decapsulated, Decapsulation, TunnelPorts, checksums, decapsulate};
use flowgauge::pipeline::{ChecksumHandling, Pipeline, Sink, Streams};
use flowgauge::reassembler::StreamEvent;
use flowgauge::source::PcapngWriter;
use flowgauge::tracker::Flow;

use frames::{
    BEYOND, CLIENT, Case, PAYLOAD, SEGMENT_LEN, SERVER, cases, ethernet, gtpu, join,
    packet_with_false_length, segment, sum_header, udp, whole,
};

fn frame(link_type: LinkType, data: &[u8]) -> Frame<'_> {
    Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, data) }
}

fn extracted<'a>(case: &'a Case) -> Packet<'a> {
    let frame = frame(case.link_type, &case.frame);
    Extractor::default().extract(&frame).unwrap_or_else(|skip| panic!("{}: {skip}", case.name))
}

#[test]
fn no_octet_beyond_an_outer_length_is_delivered() {
    for case in cases() {
        let packet = extracted(&case);
        assert_eq!(
            (packet.transport, packet.key.port(packet.side)),
            (Transport::Tcp, Some(1000)),
            "{}",
            case.name
        );
        assert_eq!(packet.payload(), PAYLOAD, "{}", case.name);
        assert_eq!(packet.payload_len as usize, PAYLOAD.len(), "{}", case.name);
        assert_eq!(packet.transport_bytes().len(), 20 + PAYLOAD.len(), "{}", case.name);
        assert!(packet.marks.contains(PacketMarks::BAD_IP_LEN), "{}", case.name);
        assert!(!packet.marks.contains(PacketMarks::TRUNCATED), "{}", case.name);
        assert_eq!(packet.wire_len as usize, case.frame.len(), "{}", case.name);
        let ip_len = packet.transport_offset - packet.ip_offset + 20 + PAYLOAD.len() as u32;
        assert_eq!(packet.ip_len, ip_len, "{}", case.name);
    }
}

#[test]
fn a_wrong_length_is_counted_and_only_a_wrong_checksum_drops_the_packet() {
    for case in cases() {
        let mut corrupt = case.frame.clone();
        let at = corrupt.windows(PAYLOAD.len()).position(|window| window == PAYLOAD).expect("the payload");
        corrupt[at] ^= 1;
        for (handling, data, dropped_count) in [
            (ChecksumHandling::Ignore, &corrupt, 0),
            (ChecksumHandling::Drop, &case.frame, 0),
            (ChecksumHandling::Drop, &corrupt, 1),
        ] {
            let mut pipeline = Pipeline::builder().checksums(handling).build(()).unwrap();
            pipeline.frame(&frame(case.link_type, data));
            let stats = pipeline.stats();
            assert_eq!(stats.checksums.dropped_count, dropped_count, "{}", case.name);
            assert_eq!(stats.tracker.bad_ip_len_count, 1 - dropped_count, "{}", case.name);
        }
    }
}

/// Returns the length and octets of the segment in each frame according to tshark.
fn payloads_of_tshark(cases: &[Case]) -> Option<Vec<(String, String)>> {
    let path = std::env::temp_dir().join(format!("flowgauge-outer-lengths-{}.pcapng", std::process::id()));
    let mut writer = PcapngWriter::new(std::fs::File::create(&path).expect("a file")).expect("a header");
    for (number, case) in (1..).zip(cases) {
        let frame =
            Frame { timestamp: Timestamp::from_parts(number, 0), ..frame(case.link_type, &case.frame) };
        writer.write(&frame, &[]).expect("a frame");
    }
    writer.finish().expect("a file");
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(&path).args(["-T", "fields", "-e", "tcp.len", "-e", "tcp.payload"]);
    let output = command.output();
    std::fs::remove_file(&path).expect("the file exists");
    let text = String::from_utf8_lossy(&output.ok()?.stdout).into_owned();
    let cells = |line: &str| line.split_once('\t').map(|(len, octets)| (len.to_owned(), octets.to_owned()));
    Some(text.lines().map(|line| cells(line).unwrap_or_default()).collect())
}

#[test]
fn payloads_equal_those_of_tshark() {
    let cases = cases();
    let Some(rows) = payloads_of_tshark(&cases) else {
        assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(rows.len(), cases.len());
    let wanted: String = PAYLOAD.iter().map(|octet| format!("{octet:02x}")).collect();
    for (case, (len, octets)) in cases.iter().zip(&rows) {
        let is_equal = (len.as_str(), octets) == ("6", &wanted);
        assert_eq!(is_equal, case.tshark_differs.is_none(), "{}: {len} {octets}", case.name);
    }
}

/// A frame truncated by the capture is different: the octets were on the wire, and the lengths agree with them.
#[test]
fn truncation_changes_no_length() {
    let data = ethernet(0x0800, &segment(SEGMENT_LEN));
    for captured_len in 14 + 20..data.len() {
        let captured =
            Frame { wire_len: data.len() as u32, ..frame(LinkType::ETHERNET, &data[..captured_len]) };
        let packet = Extractor::default().extract(&captured).unwrap();
        let is_header_whole = captured_len >= 14 + 20 + 20;
        assert_eq!(packet.ip_len as usize, SEGMENT_LEN);
        assert!(!packet.marks.contains(PacketMarks::BAD_IP_LEN), "{captured_len}");
        assert_eq!(packet.marks.contains(PacketMarks::TRUNCATED), !is_header_whole, "{captured_len}");
        if is_header_whole {
            assert_eq!(packet.payload_len as usize, PAYLOAD.len());
            assert_eq!(packet.payload().len(), captured_len - 14 - 40);
        }
    }
    // Both at once: the false length is limited to the length on the wire, not to the captured length.
    let data = join(&[&ethernet(0x0800, &packet_with_false_length())]);
    let captured =
        Frame { wire_len: data.len() as u32, ..frame(LinkType::ETHERNET, &data[..data.len() - 2]) };
    let packet = Extractor::default().extract(&captured).unwrap();
    assert!(packet.marks.contains(PacketMarks::BAD_IP_LEN));
    assert_eq!((packet.payload_len as usize, packet.payload()), (PAYLOAD.len(), &PAYLOAD[..4]));
    // A packet that is too short for its ports is not truncated.
    let short = segment(22);
    let packet = Extractor::default();
    let data = ethernet(0x0800, &short);
    let packet = packet.extract(&frame(LinkType::ETHERNET, &data)).unwrap();
    assert!(
        packet.marks.contains(PacketMarks::WITHOUT_PORTS) && !packet.marks.contains(PacketMarks::TRUNCATED)
    );
}

/// Collects the octets of each side.
#[derive(Default)]
struct Octets([Vec<u8>; 2]);

impl Sink for Octets {
    type State = ();
    type Stage = Streams;

    fn stream(&mut self, _: &mut Flow<'_, ()>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        if let StreamEvent::Chunk(chunk) = event {
            self.0[side.index()].extend(chunk.bytes);
        }
        ControlFlow::Continue(())
    }
}

/// A connection over PPPoE: the length of an acknowledgment includes six octets that are the padding of its Ethernet
/// frame, and the next segment has the octets with these sequence numbers.
#[test]
fn padding_does_not_replace_the_octets_of_the_next_segment() {
    let segment = |seq: u32, is_syn: bool, payload: &[u8], beyond: usize| {
        let builder = PacketBuilder::ipv4(CLIENT, SERVER, 64).tcp(1000, 2000, seq, 1000);
        let mut packet = Vec::new();
        if is_syn {
            builder.syn().write(&mut packet, payload).unwrap();
        } else {
            builder.ack(1).write(&mut packet, payload).unwrap();
        }
        let pppoe_len = (2 + packet.len()) as u16;
        packet[2..4].copy_from_slice(&((40 + payload.len() + beyond) as u16).to_be_bytes());
        sum_header(&mut packet);
        let [high, low] = pppoe_len.to_be_bytes();
        let session = [&[0x11, 0, 0, 9, high, low, 0, 0x21], &packet[..], &BEYOND[..beyond]].concat();
        ethernet(0x8864, &session)
    };
    let frames = [
        segment(99, true, b"", 0),
        segment(100, false, b"", 6),
        segment(100, false, b"\x16\x03\x01hello", 0),
    ];
    let mut pipeline = Pipeline::builder().build(Octets::default()).unwrap();
    for (millis, data) in (1..).zip(&frames) {
        let frame = Frame::ethernet(Timestamp::from_nanos(millis * 1_000_000), data);
        pipeline.frame(&frame);
    }
    pipeline.finish();
    let sent = pipeline.sink().0.iter().find(|octets| !octets.is_empty()).expect("a stream");
    assert_eq!(sent, b"\x16\x03\x01hello");
    let stats = pipeline.stats();
    assert_eq!((stats.tracker.bad_ip_len_count, stats.tracker.packet_count), (1, 3));
    assert_eq!(stats.octet_count, frames.iter().map(|frame| frame.len() as u64).sum::<u64>());
}

#[test]
fn a_udp_payload_ends_with_its_packet() {
    let datagram = udp(9999, &join(&[PAYLOAD, BEYOND]), 8 + PAYLOAD.len() + BEYOND.len());
    // The packet ends after the first six octets, but the UDP length covers twelve.
    let mut data = whole(17, &datagram);
    data[17] = 20 + 8 + PAYLOAD.len() as u8;
    let packet = Extractor::default();
    let packet = packet.extract(&frame(LinkType::ETHERNET, &data)).unwrap();
    assert_eq!((packet.payload(), packet.key.protocol()), (PAYLOAD, IpProtocol::UDP));
    assert!(packet.marks.contains(PacketMarks::BAD_IP_LEN));
    // Octets of IP behind the end of UDP are not part of the payload, and no length is wrong.
    let data = whole(17, &udp(9999, &join(&[PAYLOAD, BEYOND]), 8 + PAYLOAD.len()));
    let packet = Extractor::default();
    let packet = packet.extract(&frame(LinkType::ETHERNET, &data)).unwrap();
    assert_eq!((packet.payload(), packet.marks), (PAYLOAD, PacketMarks::default()));
}

#[test]
fn a_quoted_packet_ends_with_the_icmp_error() {
    // Destination unreachable that quotes the header and ports of a segment; its length may end within the ports.
    let quoted = &segment(SEGMENT_LEN)[..24];
    let error = join(&[&[3, 1, 0, 0, 0, 0, 0, 0], quoted]);
    for (missing, is_known) in [(0, true), (1, false), (4, false)] {
        let mut data = whole(1, &error);
        data[17] -= missing;
        let data = join(&[&data, BEYOND]);
        let packet = Extractor::default();
        let packet = packet.extract(&frame(LinkType::ETHERNET, &data)).unwrap();
        assert_eq!(quoted_key(&packet, &KeyPolicy::DEFAULT).is_some(), is_known, "{missing}");
    }
}

#[test]
fn a_fragment_with_a_false_length_is_not_part_of_a_datagram() {
    let payload = udp(9999, &[7; 40], 48);
    let fragment = |offset: u8, is_last: bool, octets: &[u8], claimed_len: usize| {
        let total_len = 20 + claimed_len as u8;
        let flags = if is_last { 0 } else { 0x20 };
        let mut packet =
            join(&[&[0x45, 0, 0, total_len, 0, 1, flags, offset, 64, 17, 0, 0], &CLIENT, &SERVER, octets]);
        sum_header(&mut packet);
        ethernet(0x0800, &packet)
    };
    let whole = [fragment(0, false, &payload[..24], 24), fragment(3, true, &payload[24..], 24)];
    let false_lengths = [fragment(0, false, &payload[..24], 24), fragment(3, true, &payload[24..40], 24)];
    for (frames, completed_count, bad_count) in [(whole, 1, 0), (false_lengths, 0, 1)] {
        let mut pipeline = Pipeline::builder().build(()).unwrap();
        for data in &frames {
            pipeline.frame(&frame(LinkType::ETHERNET, data));
        }
        pipeline.finish();
        let stats = pipeline.stats();
        assert_eq!(stats.fragments.completed_count, completed_count);
        // The second one has no ports, and its datagram is incomplete: it is counted for no flow.
        assert_eq!((stats.orphan_fragment_count, stats.tracker.packet_count), (bad_count, 2 - bad_count));
    }
}

#[test]
fn weak_evidence_with_a_wrong_length_is_not_a_tunnel() {
    // Octets that begin like IPv6, with the Teredo port as one of the ports: one of sixteen payloads does by chance.
    let mut like_ipv6 = vec![0x60; 60];
    like_ipv6[4..6].copy_from_slice(&[200, 0]);
    let label = [0, 1, 1, 64];
    let mut wrong_sum = packet_with_false_length();
    wrong_sum[10] ^= 1;
    for data in [
        whole(17, &udp(3544, &like_ipv6, 68)),
        whole(17, &udp(6635, &join(&[&label, &wrong_sum]), 12 + SEGMENT_LEN)),
        whole(17, &udp(2152, &gtpu(40, &[0; 32]), 48)),
    ] {
        let packet = Extractor::default();
        let packet = packet.extract(&frame(LinkType::ETHERNET, &data)).unwrap();
        assert_eq!((packet.transport, packet.key.port(packet.side)), (Transport::Udp, Some(40_000)));
    }
    // A Teredo address is sufficient evidence.
    like_ipv6[8..12].copy_from_slice(&[0x20, 1, 0, 0]);
    let data = whole(17, &udp(3544, &like_ipv6, 68));
    let packet = Extractor::default();
    assert!(packet.extract(&frame(LinkType::ETHERNET, &data)).unwrap().key.is_ipv6());
}

#[test]
fn ppp_links_accept_cisco_hdlc_framing() {
    let packet = segment(SEGMENT_LEN);
    for (link_type, direction) in [
        (LinkType::PPP, &[][..]),
        (LinkType::PPP_HDLC, &[]),
        (LinkType::PPP_PPPD, &[1]),
        (LinkType::PPP_WITH_DIR, &[0]),
    ] {
        for address in [0x0f, 0x8f] {
            let data = join(&[direction, &[address, 0, 8, 0], &packet]);
            let read = Extractor::default();
            let read = read.extract(&frame(link_type, &data)).unwrap();
            assert_eq!(
                (read.payload(), read.key.port(read.side)),
                (PAYLOAD, Some(1000)),
                "{link_type} {address:x}"
            );
            // Cisco HDLC keepalives are reported with their EtherType, which is that of RARP.
            let keepalive = join(&[direction, &[address, 0, 0x80, 0x35], &[0; 14]]);
            let found = decapsulate(
                &frame(link_type, &keepalive),
                Decapsulation::Innermost,
                &TunnelPorts::DEFAULT,
                &Limits::DEFAULT,
            );
            assert!(
                matches!(found, Decapsulated::Unsupported(reason) if reason.to_string() == "RARP or SLARP (0x8035)"),
                "{found:?}"
            );
        }
    }
}

#[test]
fn checksums_cover_the_actual_octets() {
    let data = packet_with_false_length();
    let transport_checksum = |data: &[u8]| {
        let frame = frame(LinkType::RAW, data);
        match decapsulate(&frame, Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT) {
            Decapsulated::Packet(found) => checksums(data, &found).transport,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(transport_checksum(&data), Checksum::Right);
    let mut corrupt = data.clone();
    corrupt[44] ^= 1;
    assert_eq!(transport_checksum(&corrupt), Checksum::Wrong);
    let mut batch = FrameBatch::new();
    batch.push(&frame(LinkType::RAW, &corrupt));
    let mut pipeline = Pipeline::builder().checksums(ChecksumHandling::Drop).build(()).unwrap();
    let _ = pipeline.batch(&batch);
    assert_eq!(pipeline.stats().checksums.dropped_count, 1);
}
