//! Connections that acknowledge octets that nobody sent, so that their own octets wait for these: they wait no longer than
//! `skew_max`, no octets are lost, and allocated memory stays below the budget plus a constant.

use std::ops::ControlFlow;

use etherparse::PacketBuilder;
use flowgauge::base::{Budget, EndReason, Frame, Resources, Side, Timestamp};
use flowgauge::pipeline::{Pipeline, Sink, Streams};
use flowgauge::reassembler::{ReassemblerConfig, StreamEvent};
use flowgauge::tracker::{Flow, FlowView};

use super::heap::{held_now, peak_since};
use super::{FIXED, run_alone};

const LIMIT: usize = 16 << 20;

/// Number of octets in the segment that waits.
const LEN: usize = 100;

/// Octets that were delivered, and for how long they waited.
#[derive(Default)]
struct Delivered {
    now: Timestamp,
    len: u64,
    waited_count: usize,
    waited_ns_max: u64,
}

impl Sink for Delivered {
    type State = ();
    type Stage = Streams;

    fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        if let StreamEvent::Chunk(chunk) = event {
            let waited_ns = self.now.as_nanos().saturating_sub(chunk.timestamp.as_nanos());
            self.len += chunk.bytes.len() as u64;
            self.waited_count += usize::from(waited_ns > 0);
            self.waited_ns_max = self.waited_ns_max.max(waited_ns);
        }
        ControlFlow::Continue(())
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {}
}

/// Returns the frames of a connection whose server acknowledges octets that the client never sent.
fn connection(number: u32, has_handshake: bool) -> Vec<Vec<u8>> {
    let [_, a, b, c] = number.to_be_bytes();
    let (client, server) = (([10, a, b, c], 40_000), ([192, 0, 2, 1], 80));
    let frame = |is_reply: bool, numbers: (u32, Option<u32>), is_syn: bool, octets: &[u8]| {
        let (from, to) = if is_reply { (server, client) } else { (client, server) };
        let (seq, ack) = numbers;
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from.0, to.0, 64);
        let builder = builder.tcp(from.1, to.1, seq, 1000);
        let builder = if is_syn { builder.syn() } else { builder };
        let builder = if let Some(ack) = ack { builder.ack(ack) } else { builder };
        let mut frame = Vec::new();
        builder.write(&mut frame, octets).expect("writing to memory");
        frame
    };
    let handshake = [
        frame(false, (100, None), true, &[]),
        frame(true, (500, Some(101)), true, &[]),
        frame(false, (101, Some(501)), false, &[]),
    ];
    let response = frame(true, (501, Some(9000)), false, &[b'x'; LEN]);
    handshake.into_iter().filter(|_| has_handshake).chain([response]).collect()
}

/// Passes this many connections to a pipeline, with a time between their frames. Returns what was delivered.
fn run(count: u32, has_handshake: bool, interval_ns: u64) -> Delivered {
    let before = held_now();
    let budget = Budget::new(LIMIT as u64);
    let builder = Pipeline::builder().resources(Resources::default().with_budget(budget.clone()));
    let mut pipeline = builder.build(Delivered::default()).expect("a valid configuration");
    let mut nanos = 1_000_000_000;
    for number in 0..count {
        for frame in connection(number, has_handshake) {
            nanos += interval_ns;
            let now = Timestamp::from_nanos(nanos);
            pipeline.sink_mut().now = now;
            pipeline.frame(&Frame::ethernet(now, &frame));
        }
    }
    pipeline.check_invariants();
    pipeline.finish();
    let peak = peak_since(before);
    assert!(peak <= LIMIT + FIXED, "{peak} bytes");
    let delivered = pipeline.into_sink();
    assert_eq!(budget.held(), 0);
    delivered
}

#[test]
fn acknowledgments_of_octets_that_were_never_sent_delay_no_longer_than_the_skew() {
    let _guard = run_alone();
    let skew_max = ReassemblerConfig::default().skew_max.as_nanos() as u64;
    for (count, has_handshake, interval_ns) in
        [(100_000, true, 100), (20_000, true, 10_000), (20_000, false, 10_000)]
    {
        let found = run(count, has_handshake, interval_ns);
        let case = format!("{count} connections, handshake {has_handshake}, {interval_ns} ns between frames");
        println!("{case}: {} waited up to {} ns", found.waited_count, found.waited_ns_max);
        assert_eq!(found.len, u64::from(count) * LEN as u64, "{case}: no octets are lost");
        assert!(found.waited_ns_max <= skew_max + interval_ns, "{case}: {} ns", found.waited_ns_max);
        assert!(!has_handshake || found.waited_count > 0, "{case}");
    }
}
