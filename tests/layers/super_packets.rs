//! A super-packet of segmentation offload gives the same flow record as its segments.

use etherparse::PacketBuilder;
use flowgauge::decode::extractor::Extractor;
use flowgauge::{FlowRecord, Frame, FrameBatch, LinkType, Pipeline, Records, Timestamp};
use proptest::prelude::*;

fn packet(is_ipv6: bool, is_tcp: bool, is_ethernet: bool, (offset, payload): (u32, &[u8])) -> Vec<u8> {
    let mut octets = if is_ethernet { vec![2; 12] } else { Vec::new() };
    if is_ethernet {
        octets.extend(if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] });
    }
    let builder = match is_ipv6 {
        true => PacketBuilder::ipv6([1; 16], [2; 16], 9),
        false => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9),
    };
    let written = match is_tcp {
        true => builder.tcp(40_000, 443, 1000 + offset, 512).ack(7).write(&mut octets, payload),
        false => builder.udp(40_000, 443).write(&mut octets, payload),
    };
    written.expect("a packet");
    octets
}

fn frame(link_type: LinkType, data: &[u8], wire_len: u32) -> Frame<'_> {
    Frame { link_type, wire_len, ..Frame::ethernet(Timestamp::from_parts(1, 0), data) }
}

fn record(frames: &FrameBatch) -> FlowRecord {
    let mut records = Vec::new();
    let mut pipeline =
        Pipeline::builder().build(Records::new(|record| records.push(record))).expect("valid settings");
    let _ = pipeline.batch(frames);
    pipeline.finish();
    let stats = pipeline.stats().tracker;
    drop(pipeline);
    assert_eq!(records.len(), 1);
    let record = records.remove(0);
    assert_eq!([stats.packet_count, stats.octet_count], [record.packet_count(), record.octet_count()]);
    record
}

proptest! {
    #[test]
    fn a_super_packet_counts_as_its_segments(
        is_ipv6: bool,
        is_tcp: bool,
        is_ethernet: bool,
        lengths in prop::collection::vec(1_usize..9000, 1..4),
        segment_len in 1_usize..1449,
    ) {
        let (mut whole, mut split) = (FrameBatch::new(), FrameBatch::new());
        let (single, several) = match is_ethernet {
            true => (LinkType::ETHERNET, LinkType::SUPER_PACKET_ETHERNET),
            false => (LinkType::RAW, LinkType::SUPER_PACKET_IP),
        };
        let mut offset = 0;
        for len in lengths {
            let payload = vec![7; len];
            let mut wire_len = 0;
            for (number, part) in payload.chunks(segment_len).enumerate() {
                let at = offset + (number * segment_len) as u32;
                let segment = packet(is_ipv6, is_tcp, is_ethernet, (at, part));
                wire_len += segment.len() as u32;
                split.push(&frame(single, &segment, segment.len() as u32));
            }
            let data = packet(is_ipv6, is_tcp, is_ethernet, (offset, &payload));
            let frame = frame(several, &data, wire_len);
            let count = Extractor::default().extract(&frame).expect("a packet").segment_count();
            prop_assert_eq!(count as usize, len.div_ceil(segment_len));
            whole.push(&frame);
            offset += len as u32;
        }
        prop_assert_eq!(record(&whole), record(&split));
    }
}
