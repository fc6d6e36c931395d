//! Reassembly of segments of 1500 octets with borrowed delivery. The reassembler has held as many segments before.

use flowgauge::base::{Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};
use gungraun::prelude::*;

const LEN: u32 = 1500;

const ROUND_COUNT: u32 = 16;

/// A stream, and the order of the segments of a round.
struct Reassembly {
    reassembler: Reassembler<u32>,
    stream: Stream,
    order: Vec<u32>,
    payload: Vec<u8>,
    seq: u32,
    octet_count: u64,
}

impl Reassembly {
    fn round(&mut self) {
        for position in &self.order {
            let seq = SeqNum(self.seq.wrapping_add(position * LEN));
            let segment = Segment::new(seq, TcpFlags::ACK, &self.payload, Timestamp::ZERO);
            self.reassembler.segment(&mut self.stream, 0, &segment, |event| {
                if let StreamEvent::Chunk(chunk) = event {
                    self.octet_count += chunk.bytes.len() as u64;
                }
            });
        }
        self.seq = self.seq.wrapping_add(self.order.len() as u32 * LEN);
    }

    fn round_len(&self) -> u64 {
        self.order.len() as u64 * u64::from(LEN)
    }
}

/// A stream after its SYN and a first round.
fn established(order: Vec<u32>) -> Reassembly {
    let mut reassembler =
        Reassembler::new(ReassemblerConfig::default(), &Resources::default()).expect("a valid configuration");
    let mut stream = Stream::default();
    let syn = Segment::new(SeqNum(u32::MAX), TcpFlags::SYN, &[], Timestamp::ZERO);
    reassembler.segment(&mut stream, 0, &syn, |_| {});
    let answer = Segment::new(SeqNum(0), TcpFlags::ACK, &[], Timestamp::ZERO).with_ack(SeqNum(0));
    reassembler.acknowledgment(&mut stream, 0, &answer, |_| {});
    let payload = (0..LEN).map(|position| (position / 7) as u8).collect();
    let mut reassembly = Reassembly { reassembler, stream, order, payload, seq: 0, octet_count: 0 };
    reassembly.round();
    assert_eq!(reassembly.octet_count, reassembly.round_len());
    reassembly
}

fn in_order() -> Vec<u32> {
    (0..64).collect()
}

fn pairs() -> Vec<u32> {
    (0..64).map(|position| position ^ 1).collect()
}

fn reversed() -> Vec<u32> {
    (0..64).rev().collect()
}

fn all_delivered(reassembly: Reassembly) {
    assert_eq!(reassembly.octet_count, u64::from(1 + ROUND_COUNT) * reassembly.round_len());
    assert_eq!(reassembly.stream.offset(), reassembly.octet_count);
    assert!(!reassembly.stream.is_held() && reassembly.reassembler.stats().gap_octet_count == 0);
}

#[library_benchmark(setup = established, teardown = all_delivered)]
#[bench::in_order(in_order())]
#[bench::pairs_exchanged(pairs())]
#[bench::reversed_64(reversed())]
fn segments(mut reassembly: Reassembly) -> Reassembly {
    for _ in 0..ROUND_COUNT {
        reassembly.round();
    }
    reassembly
}

library_benchmark_group!(name = reassembler_group, benchmarks = segments);
