//! Checkpoints of open flows: writing to memory, and restoring. The throughput is in flows.
//!
//! Each flow is a TCP connection with a handshake and an octet from each side. The last packets arrived in random order, so
//! that neighbors in a recency list are far away from each other in memory.

mod cases;

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Duration;

use cases::{Random, SERVER, set_seq, tcp};
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Frame, TcpFlags, Timestamp};
use flowgauge::checkpoint::{Reader, Writer};
use flowgauge::{Builder, Pipeline};

/// Offset of the acknowledgment number in the frames, and of the control bits.
const TCP_ACK: usize = 42;
const TCP_FLAGS: usize = 47;

fn builder() -> Builder {
    Pipeline::builder().memory(4 << 30).limit(|limits| limits.flow_count_max = 2_000_000)
}

/// Returns a pipeline with open flows.
fn open_flows(flow_count: usize) -> Pipeline<()> {
    let mut pipeline = builder().build(()).expect("a valid configuration");
    let mut order = Random(1).shuffled(flow_count);
    let mut send = |flow: usize, step: u64| {
        let client =
            (Ipv4Addr::from_bits(0x0a00_0000 + flow as u32 / 50_000), 10_000 + (flow % 50_000) as u16);
        let server = (SERVER, 443);
        let (ends, payload, flags, seq, ack) = match step {
            0 => ((client, server), &b""[..], TcpFlags::SYN, 1000, 0),
            1 => ((server, client), &b""[..], TcpFlags::SYN | TcpFlags::ACK, 5000, 1001),
            2 => ((client, server), &b"x"[..], TcpFlags::ACK, 1001, 5001),
            _ => ((server, client), &b"y"[..], TcpFlags::ACK, 5001, 1002),
        };
        let mut frame = tcp(ends.0, ends.1, payload);
        set_seq(&mut frame, seq);
        frame[TCP_ACK..TCP_ACK + 4].copy_from_slice(&u32::to_be_bytes(ack));
        frame[TCP_FLAGS] = flags.0 as u8;
        let timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000 + step * 1_000_000_000);
        pipeline.frame(&Frame::ethernet(timestamp, &frame));
    };
    for step in 0..4 {
        order.iter().for_each(|flow| send(*flow, step));
        order.reverse();
    }
    assert_eq!(pipeline.flow_count(), flow_count);
    pipeline
}

fn write(pipeline: &Pipeline<()>, file: Vec<u8>) -> Vec<u8> {
    let mut writer = Writer::new(file).expect("a vector");
    pipeline.checkpoint(&mut writer).expect("a vector");
    writer.finish().expect("a vector")
}

fn checkpoints(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("checkpoint");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).warm_up_time(Duration::from_secs(1));
    for (name, flow_count) in [("10k_flows", 10_000), ("1m_flows", 1_000_000)] {
        group.throughput(Throughput::Elements(flow_count as u64));
        let pipeline = open_flows(flow_count);
        let mut file = write(&pipeline, Vec::new());
        println!("{} octets a flow", file.len() / flow_count);
        assert!(file.len() <= 200 * flow_count);
        group.bench_function(format!("write/{name}"), |bencher| {
            bencher.iter(|| {
                let mut buffer = std::mem::take(&mut file);
                buffer.clear();
                file = write(black_box(&pipeline), buffer);
            });
        });
        drop(pipeline);
        let restore = || {
            let mut reader = Reader::new(black_box(&file[..])).expect("a checkpoint");
            builder().restore(&mut reader, ()).expect("a checkpoint")
        };
        let restored = restore();
        restored.check_invariants();
        assert_eq!(restored.flow_count(), flow_count);
        drop(restored);
        group.bench_function(format!("restore/{name}"), |bencher| bencher.iter_with_large_drop(restore));
    }
    group.finish();
}

criterion_group!(benches, checkpoints);
criterion_main!(benches);
