//! Features of flows: the time per packet by feature, and the row of a flow with all features as ndjson.

#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{FlowKey, Packet, Timestamp, Transport};
use flowgauge::export::{Style, write_json};
use flowgauge::features::{FeatureSet, Features, FlowFeatures};
use flowgauge::row::{Row as _, RowType as _, Value};
use flowgauge::{FlowRecord, TcpFlags};
use per_item::PerItem as _;

/// Number of packets of a flow.
const PACKET_COUNT: u64 = 32;

/// Returns the packets of a connection: a request of the client in each fourth packet, and an answer of the server.
fn packets<'f>(key: FlowKey, frame: &'f [u8]) -> Vec<Packet<'f>> {
    let packet = |index: u64| {
        let side = if index.is_multiple_of(4) { flowgauge::Side::A } else { flowgauge::Side::B };
        let time = Timestamp::from_parts(1_700_000_000, index * 1_234_567);
        let mut packet = Packet::new(key, side, time, frame);
        packet.transport = Transport::Tcp;
        packet.tcp.flags = TcpFlags(0x18);
        packet.tcp.window = 64_240;
        (packet.transport_offset, packet.payload_offset) = (34, 66);
        packet.payload_len = if index.is_multiple_of(4) { 200 } else { 1448 };
        packet.ip_len = packet.payload_len + 52;
        packet.wire_len = packet.ip_len + 14;
        packet
    };
    (0..PACKET_COUNT).map(packet).collect()
}

fn features(criterion: &mut Criterion) {
    let frame: Vec<u8> = (0..1514_u32).map(|index| (index * 7 % 251) as u8).collect();
    let (key, initiator) = FlowKey::tcp(([10, 0, 0, 1], 40_000).into(), ([192, 0, 2, 1], 443).into());
    let packets = packets(key, &frame);
    let record = FlowRecord::new(key, initiator, packets.first().expect("a packet").timestamp);
    let mut group = criterion.benchmark_group("features");
    group.throughput(Throughput::Elements(1));
    for (id, list) in [
        ("cic", "cic"),
        ("cic_nfstream", "cic,nfstream"),
        ("splt_20", "splt=20"),
        ("tcp", "tcp"),
        ("entropy_1024", "entropy"),
        ("all", "cic,nfstream,splt=20,histogram,entropy,payload=64,tcp"),
    ] {
        let set: FeatureSet = list.parse().expect("features");
        let count = || {
            let mut flow = FlowFeatures::default();
            packets.iter().for_each(|packet| flow.count(&set, black_box(packet)));
            flow
        };
        let column = Features::columns().iter().position(|column| column.name == "Total Bwd packets");
        let flow = count();
        let features = Features::new(&record, &flow, None);
        assert_eq!(column.map(|column| features.value(column)), Some(Value::Unsigned(PACKET_COUNT / 4 * 3)));
        group.bench_function(id, |bencher| bencher.iter_items(PACKET_COUNT, count));
    }
    let set: FeatureSet = "cic,nfstream,splt=20,histogram,entropy,payload=64,tcp".parse().expect("features");
    let mut flow = FlowFeatures::default();
    packets.iter().for_each(|packet| flow.count(&set, packet));
    let mut line = Vec::new();
    let mut write = || {
        line.clear();
        write_json(&mut line, &(&record, Features::new(&record, &flow, None)), Style::default());
        line.len()
    };
    assert!(write() > 4000);
    group.bench_function("row_ndjson", |bencher| bencher.iter(&mut write));
    group.finish();
}

criterion_group!(benches, features);
criterion_main!(benches);
