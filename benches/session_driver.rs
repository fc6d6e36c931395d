//! Frames to sessions. A time is that of one frame unless the id says otherwise.
//!
//! `passthrough`: one connection after its handshake, segments of 1400 octets in order, frames built before and their sequence
//! numbers set in place, through the whole pipeline to a parser that keeps nothing. `passthrough_10000_flows`: the same over as many
//! connections in turn.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Frame, Timestamp};
use flowgauge::pipeline::{Pipeline, SessionPipeline, SessionSink};
use flowgauge::reassembler::ReassemblerConfig;
use flowgauge::session::{About, DriverConfig, Fault, Input, Out, Parser, Progress, Protocol};
use flowgauge::tracker::{Flow, FlowSink, Interest, TrackerConfig};

const LEN: u32 = 1400;
const ISN: u32 = 1000;

/// Offsets in an Ethernet frame with IPv4 and TCP without options.
const SOURCE_ADDRESS: usize = 14 + 12;
const SOURCE_PORT: usize = 14 + 20;
const SEQ: usize = SOURCE_PORT + 4;
const ACK: usize = SOURCE_PORT + 8;
const FLAGS: usize = SOURCE_PORT + 13;

/// Takes everything and says how much, which is what a parser of a body does.
#[derive(Debug, Default)]
struct Passthrough;

impl Parser for Passthrough {
    type Message<'m> = &'m [u8];

    #[inline]
    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        out(input.bytes);
        Ok(Progress::Took(input.bytes.len()))
    }
}

static PASSTHROUGH: Protocol = Protocol::new("passthrough").over_streams(&[80], None);

flowgauge::protocols! {
    /// One protocol.
    #[derive(Debug)]
    enum Set;
    /// What it says.
    #[derive(Debug)]
    enum Message;
    parsers { Passthrough: Passthrough = &PASSTHROUGH }
    recognised {}
}

#[derive(Default)]
struct Count(u64);

impl FlowSink<()> for Count {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }
}

impl SessionSink<Set, ()> for Count {
    #[inline]
    fn message(&mut self, _: &mut Flow<'_, ()>, _: &About, Message::Passthrough(bytes): Message<'_>) {
        self.0 += black_box(bytes).len() as u64;
    }
}

fn pipeline() -> SessionPipeline<Set, ()> {
    let config = TrackerConfig::default();
    let (mut streams, mut sessions) = (ReassemblerConfig::default(), DriverConfig::default());
    (streams.budget, sessions.budget) = (config.budget.clone(), config.budget.clone());
    let pipeline = Pipeline::new(config).expect("a valid configuration");
    pipeline.with_streams(streams).expect("a valid configuration").with_sessions(&sessions)
}

fn frame(is_client: bool, flags: u8, (seq, ack): (u32, u32), payload: &[u8]) -> Vec<u8> {
    let (client, server) = (([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 80));
    let (source, destination) = if is_client { (client, server) } else { (server, client) };
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(source.0, destination.0, 64)
        .tcp(source.1, destination.1, seq, 65_000)
        .write(&mut frame, payload)
        .expect("a valid packet");
    frame[ACK..ACK + 4].copy_from_slice(&ack.to_be_bytes());
    frame[FLAGS] = flags;
    frame
}

/// Gives the client a number: an address of its own.
fn set_client(frame: &mut [u8], is_client: bool, number: u32) {
    let place = if is_client { SOURCE_ADDRESS } else { SOURCE_ADDRESS + 4 };
    frame[place..place + 4].copy_from_slice(&(0x0A01_0000 + number).to_be_bytes());
}

/// SYN, SYN+ACK and ACK of a client.
fn shake_hands(pipeline: &mut SessionPipeline<Set, ()>, sink: &mut Count, number: u32) {
    for (is_client, flags, seq, ack) in
        [(true, 0x02, ISN, 0), (false, 0x12, 5000, ISN + 1), (true, 0x10, ISN + 1, 5001)]
    {
        let mut frame = frame(is_client, flags, (seq, ack), &[]);
        set_client(&mut frame, is_client, number);
        pipeline.frame(&Frame::ethernet(Timestamp::ZERO, &frame), sink);
    }
}

fn passthrough(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("session_driver");
    for (id, flow_count) in [("passthrough", 1), ("passthrough_10000_flows", 10_000)] {
        let (mut pipeline, mut sink) = (pipeline(), Count::default());
        (0..flow_count).for_each(|number| shake_hands(&mut pipeline, &mut sink, number));
        let mut data = frame(true, 0x18, (ISN + 1, 5001), &[b'A'; LEN as usize]);
        let (mut seq, mut number, mut frame_count) = (ISN + 1, 0, 0_u64);
        group.throughput(Throughput::Bytes(LEN.into()));
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                data[SEQ..SEQ + 4].copy_from_slice(&seq.to_be_bytes());
                set_client(&mut data, true, number);
                pipeline.frame(&Frame::ethernet(Timestamp::ZERO, black_box(&data)), &mut sink);
                number += 1;
                if number == flow_count {
                    (number, seq) = (0, seq.wrapping_add(LEN));
                }
                frame_count += 1;
            });
        });
        assert_eq!(sink.0, frame_count * u64::from(LEN), "every octet came, once");
        assert_eq!(pipeline.session_stats().stopped_count, 0);
    }
    group.finish();
}

criterion_group!(benches, passthrough);
criterion_main!(benches);
