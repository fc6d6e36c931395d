//! A single time far ahead of all others ends no flow, no stream, and no datagram: a capture with such a time gives the
//! same results as the same capture in which that frame has the time of the frame before it.

use std::ops::ControlFlow;
use std::time::Duration;

use etherparse::PacketBuilder;
use flowgauge::base::{EndReason, Frame, FrameBatch, Side, Timestamp};
use flowgauge::pipeline::{Pipeline, RunOptions, Sink, Streams, TIME_JUMP_MAX};
use flowgauge::reassembler::StreamEvent;
use flowgauge::source::{End, Error, Next, Source};
use flowgauge::tracker::{Flow, FlowView, Interest};

const FLOW_COUNT: u8 = 100;

fn udp(flow: u8, is_reply: bool) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, flow], [192, 0, 2, 1]);
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let builder = match is_reply {
        false => builder.ipv4(client, server, 64).udp(40_000, 53),
        true => builder.ipv4(server, client, 64).udp(53, 40_000),
    };
    written(|frame| builder.write(frame, b"said").unwrap())
}

fn tcp(is_reply: bool, seq: u32, ack: u32, text: &str) -> Vec<u8> {
    let (client, server) = ([10, 0, 1, 1], [192, 0, 2, 1]);
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let builder = match is_reply {
        false => builder.ipv4(client, server, 64).tcp(40_000, 7, seq, 1000),
        true => builder.ipv4(server, client, 64).tcp(7, 40_000, seq, 1000),
    };
    let builder = builder.ack(ack).psh();
    written(|frame| builder.write(frame, text.as_bytes()).unwrap())
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    write(&mut frame);
    frame
}

/// Returns one of the two fragments of a UDP datagram.
fn fragment(is_last: bool) -> Vec<u8> {
    let mut frame = udp(200, false);
    // 20 octets of IP header, 8 of UDP, 4 of payload: the first fragment ends with the UDP header.
    let (offset_and_flags, payload) = if is_last { (1_u16, 42..46) } else { (0x2000, 34..42) };
    let payload = frame[payload].to_vec();
    frame.truncate(34);
    frame.extend(&payload);
    frame[16..18].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    frame[18..20].copy_from_slice(&[0, 77]);
    frame[20..22].copy_from_slice(&offset_and_flags.to_be_bytes());
    frame
}

/// Returns two seconds of traffic. `outlier` sets the flow and the time in milliseconds of one frame.
fn capture(outlier: Option<(u8, u64)>) -> FrameBatch {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    frames.extend((0..FLOW_COUNT).map(|flow| udp(flow, false)));
    frames.extend([tcp(false, 1000, 5000, "ab"), tcp(false, 1004, 5000, "ef"), fragment(false)]);
    let position = frames.len();
    let flow = outlier.map_or(0, |(flow, _)| flow);
    frames.push(udp(flow, false));
    frames.extend([fragment(true), tcp(false, 1002, 5000, "cd"), tcp(true, 5000, 1006, "ok")]);
    frames.extend((0..FLOW_COUNT).map(|flow| udp(flow, true)));
    let mut batch = FrameBatch::new();
    let mut millis = 1_000_000;
    for (index, frame) in frames.iter().enumerate() {
        let outlier_millis = outlier.map(|(_, millis)| millis).filter(|_| index == position);
        millis += if index == position { 0 } else { 10 };
        let nanos = outlier_millis.unwrap_or(millis) * 1_000_000;
        batch.push(&Frame::ethernet(Timestamp::from_nanos(nanos), frame));
    }
    batch
}

/// A source that splits a batch into parts.
struct Parts {
    frames: FrameBatch,
    index: usize,
    len: usize,
}

impl Source for Parts {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let end = (self.index + self.len).min(self.frames.len());
        (self.index..end)
            .filter_map(|position| self.frames.get(position))
            .for_each(|frame| batch.push(&frame));
        self.index = end;
        Ok(if batch.is_empty() { Next::End(End::Complete) } else { Next::Frames })
    }
}

/// Collects the record and the octets of each flow as text.
#[derive(Default)]
struct Results(Vec<String>);

impl Sink for Results {
    type State = String;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, text: String) {
        self.0.push(format!("{:?} {text}", view.record(reason)));
    }

    fn stream(&mut self, flow: &mut Flow<'_, String>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        match event {
            StreamEvent::Chunk(chunk) => *flow.state += &String::from_utf8_lossy(chunk.bytes),
            StreamEvent::Gap(gap) => *flow.state += &format!("[{}]", gap.len),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn pipeline() -> Pipeline<Results> {
    Pipeline::builder().build(Results::default()).unwrap()
}

/// Returns the sorted results of a run, and the number of times that were rejected.
fn results_of(frames: FrameBatch, len: usize, shard_count: usize, is_checked: bool) -> (Vec<String>, u64) {
    let builder = Pipeline::builder().time_check(is_checked);
    let mut sinks: Vec<Results> = (0..shard_count).map(|_| Results::default()).collect();
    let first = frames.get(0).unwrap().timestamp;
    let mut source = Parts { frames, index: 0, len };
    let stats = builder.run_shards(&mut sinks, &mut source, &RunOptions::default()).unwrap().stats;
    let mut all: Vec<_> = sinks.into_iter().flat_map(|sink| sink.0).collect();
    all.sort();
    assert_eq!(stats.fragments.completed_count, 1, "the datagram is complete");
    // An unconfirmed time is none of the capture.
    let (start, latest) = stats.times.unwrap();
    assert_eq!(start, first);
    assert_eq!(latest.saturating_since(first).as_secs() < 1_000_000, is_checked, "{latest:?}");
    (all, stats.doubted_time_count)
}

#[test]
fn a_single_time_far_ahead_ends_nothing() {
    let ten_years = 10 * 365 * 86_400_000;
    // The frame is of a separate flow, or of a flow with other packets.
    for flow in [150, 30] {
        let latest = capture(None).get(102).unwrap().timestamp.as_nanos() / 1_000_000;
        let (wanted, doubted_count) = results_of(capture(Some((flow, latest))), 1000, 1, true);
        assert_eq!(doubted_count, 0);
        assert!(wanted.iter().any(|text| text.ends_with(" abcdefok")), "{wanted:?}");
        for (len, shard_count) in [(1000, 1), (1, 1), (7, 1), (104, 1), (1, 2), (64, 2), (7, 3), (103, 3)] {
            let outlier = capture(Some((flow, latest + ten_years)));
            assert_eq!(
                results_of(outlier, len, shard_count, true),
                (wanted.clone(), 1),
                "{len} by {shard_count}"
            );
        }
        // One call per frame.
        let mut pipeline = pipeline();
        let outlier = capture(Some((flow, latest + ten_years)));
        outlier.iter().for_each(|frame| pipeline.frame(&frame));
        pipeline.finish();
        let mut results = pipeline.into_sink();
        results.0.sort();
        assert_eq!(results.0, wanted);
        // Without the check, the time ends all flows.
        let (all, _) = results_of(capture(Some((flow, latest + ten_years))), 1000, 1, false);
        assert!(all.len() > wanted.len() + usize::from(FLOW_COUNT) / 2);
    }
}

#[test]
fn a_pause_is_accepted_when_the_next_frame_confirms_it() {
    // Packets of one flow only, some of them an hour apart; in the last case 59 s, which is less than the timeout.
    for (seconds, flow_count) in
        [(&[0, 3600][..], 2), (&[0, 3600, 3601], 2), (&[0, 3600, 7200, 10_800], 4), (&[0, 59], 1)]
    {
        for len in [1, 2, 100] {
            let mut frames = FrameBatch::new();
            for second in seconds {
                frames.push(&Frame::ethernet(Timestamp::from_parts(1_000_000 + second, 0), &udp(1, false)));
            }
            let mut pipeline = pipeline();
            pipeline.run(&mut Parts { frames, index: 0, len }, &RunOptions::default()).unwrap();
            assert_eq!(
                (pipeline.sink().0.len(), pipeline.stats().doubted_time_count),
                (flow_count, 0),
                "{seconds:?}"
            );
        }
    }
}

#[test]
fn a_delayed_frame_is_processed_when_the_caller_advances_the_clock() {
    let mut pipeline = pipeline();
    let start = Timestamp::from_parts(1_000_000, 0);
    let later = start.saturating_add(TIME_JUMP_MAX + Duration::from_secs(1));
    pipeline.frame(&Frame::ethernet(start, &udp(1, false)));
    pipeline.frame(&Frame::ethernet(later, &udp(2, false)));
    assert_eq!(pipeline.stats().frame_count, 1);
    pipeline.advance(later);
    assert_eq!((pipeline.stats().frame_count, pipeline.flow_count(), pipeline.sink().0.len()), (2, 1, 1));
}
