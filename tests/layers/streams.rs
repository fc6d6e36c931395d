//! Streams in the pipeline: the same for batches and single frames, complete for flows that were captured completely,
//! and released when a sink stops them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use flowgauge::base::{EndReason, FlowKey, FrameBatch, Side, TcpFlags};
use flowgauge::decode::extractor::Packet;
use flowgauge::pipeline::{FirstOctets, Pipeline, PipelineStats, RunOptions, Sink, Streams};
use flowgauge::reassembler::StreamEvent;
use flowgauge::source::{FileSource, Source as _};
use flowgauge::tracker::{Flow, FlowEvent, FlowView, Interest};

/// The contents of a stream, with chunks joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Text {
    bytes: Vec<u8>,
    gaps: Vec<(u64, u64)>,
    event_count: usize,
    has_fin: bool,
}

/// Collects everything, and checks the order of calls.
#[derive(Default)]
struct Collect {
    interest: Option<Interest>,
    /// Octets after which a stream is stopped.
    stop_at: Option<usize>,
    /// Octets of one side after which the flow is muted.
    mute_at: Option<usize>,
    ended: Vec<(FlowKey, [Text; 2], u64)>,
    packet_count: u64,
    call_after_mute_count: u64,
    event_count: u64,
}

#[derive(Debug, Default)]
struct State {
    texts: [Text; 2],
    is_muted: bool,
}

impl Sink for Collect {
    type State = State;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        self.interest.unwrap_or(Interest::RECORDS) | Interest::VARIES
    }

    fn packet(&mut self, flow: &mut Flow<'_, State>, _: &Packet<'_>) {
        self.packet_count += 1;
        self.call_after_mute_count += u64::from(flow.state.is_muted);
    }

    fn event(&mut self, flow: &mut Flow<'_, State>, _: &FlowEvent) {
        self.event_count += 1;
        self.call_after_mute_count += u64::from(flow.state.is_muted);
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, state: State) {
        // SYN and FIN use one sequence number each, and all octets between them are in the stream or in its gaps.
        for side in [Side::A, Side::B] {
            let text = &state.texts[side as usize];
            let flags = view.tcp_flags(side);
            let is_complete = flags.contains(TcpFlags::SYN) && text.has_fin;
            if let Some((initial, end)) = view.sequence_numbers(side)
                && is_complete
            {
                let sent = end.distance_from(initial) as u64 - 2;
                let delivered = text.gaps.iter().map(|(_, len)| len).sum::<u64>() + text.bytes.len() as u64;
                assert_eq!(delivered, sent, "{} {side:?}", view.key());
            }
        }
        self.ended.push((*view.key(), state.texts, view.packet_count()));
    }

    fn stream(&mut self, flow: &mut Flow<'_, State>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        self.call_after_mute_count += u64::from(flow.state.is_muted);
        let text = &mut flow.state.texts[side as usize];
        let offset = text.bytes.len() as u64 + text.gaps.iter().map(|(_, len)| len).sum::<u64>();
        text.event_count += 1;
        match event {
            StreamEvent::Chunk(chunk) => {
                assert_eq!(chunk.offset, offset);
                text.bytes.extend_from_slice(chunk.bytes);
            }
            StreamEvent::Gap(gap) => {
                assert_eq!(gap.offset, offset);
                text.gaps.push((gap.offset, gap.len));
            }
            StreamEvent::Fin { offset: end, .. } => {
                assert_eq!(*end, offset);
                text.has_fin = true;
            }
            _ => {}
        }
        let len = text.bytes.len();
        if self.mute_at.is_some_and(|at| len >= at) {
            flow.state.is_muted = true;
            flow.mute();
        }
        if self.stop_at.is_some_and(|at| len >= at) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn pipeline<K: Sink>(sink: K) -> Pipeline<K> {
    Pipeline::builder().build(sink).expect("a valid configuration")
}

fn data(name: &str) -> FileSource {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
    FileSource::open(path).expect("a capture of this crate")
}

fn run<K: Sink>(name: &str, sink: K) -> (K, PipelineStats) {
    let mut pipeline = pipeline(sink);
    pipeline.run(&mut data(name), &RunOptions::default()).expect("a capture of this crate");
    assert_eq!(pipeline.held_stream_count(), 0, "no stream is held at the end");
    pipeline.check_invariants();
    let stats = pipeline.stats();
    (pipeline.into_sink(), stats)
}

const NAMES: [&str; 6] = ["web.pcap", "mail.pcap", "ssh.pcap", "lossy.pcap", "any.pcap", "raw-tun.pcap"];

#[test]
fn single_frames_and_batches_give_the_same_streams() {
    for name in NAMES {
        let (by_batch, stats) = run(name, Collect::default());
        let mut pipeline = pipeline(Collect::default());
        let (mut source, mut batch) = (data(name), FrameBatch::new());
        while !source.next_batch(&mut batch).unwrap().is_end() {
            batch.iter().for_each(|frame| pipeline.frame(&frame));
        }
        pipeline.finish();
        let texts = |sink: &Collect| -> HashMap<FlowKey, Vec<[Text; 2]>> {
            let mut map: HashMap<_, Vec<_>> = HashMap::new();
            for (key, texts, _) in &sink.ended {
                map.entry(*key).or_default().push(texts.clone());
            }
            map
        };
        assert_eq!(texts(&by_batch), texts(pipeline.sink()), "{name}");
        assert_eq!(stats.streams.gap_octet_count, pipeline.stats().streams.gap_octet_count);
        let octet_count: usize =
            by_batch.ended.iter().flat_map(|(_, texts, _)| texts).map(|text| text.bytes.len()).sum();
        assert!(octet_count > 1000, "{name}: {octet_count}");
        assert_eq!((by_batch.packet_count, by_batch.event_count), (0, 0), "the sink has no interest in them");
    }
}

#[test]
fn requests_and_responses_are_read_completely() {
    let (sink, _) = run("web.pcap", Collect::default());
    let texts: Vec<_> =
        sink.ended.iter().flat_map(|(_, texts, _)| texts).filter(|text| !text.bytes.is_empty()).collect();
    let is_request =
        |bytes: &[u8]| [&b"GET /"[..], b"HEAD /", b"PUT /"].iter().any(|at| bytes.starts_with(at));
    let requests = texts.iter().filter(|text| is_request(&text.bytes)).count();
    let answers = texts.iter().filter(|text| text.bytes.starts_with(b"HTTP/1.")).count();
    assert!(requests > 0 && requests == answers, "{requests} {answers}");
}

#[test]
fn a_stopped_stream_delivers_nothing_more_and_its_flow_is_counted() {
    for name in NAMES {
        let (whole, _) = run(name, Collect { interest: Some(Interest::ALL), ..Collect::default() });
        let sink = Collect { interest: Some(Interest::ALL), stop_at: Some(1), ..Collect::default() };
        let (stopped, _) = run(name, sink);
        assert_eq!(whole.packet_count, stopped.packet_count, "packets are still reported");
        assert_eq!(whole.event_count, stopped.event_count);
        for ((key, whole, count), (stopped_key, stopped, stopped_count)) in
            whole.ended.iter().zip(&stopped.ended)
        {
            assert_eq!((key, count), (stopped_key, stopped_count));
            for (whole, stopped) in whole.iter().zip(stopped) {
                assert!(whole.bytes.starts_with(&stopped.bytes));
                assert_eq!(whole.bytes.is_empty(), stopped.bytes.is_empty());
                assert!(stopped.bytes.len() < 65_536, "one chunk");
            }
        }
    }
}

/// A flow whose streams are both stopped is muted only for a sink without interest in its packets and events. Streams,
/// ends and counts are the same.
#[test]
fn the_interest_of_a_sink_does_not_change_streams() {
    for name in NAMES {
        for stop_at in [None, Some(1)] {
            let sink = |interest| Collect { interest: Some(interest), stop_at, ..Collect::default() };
            let (alone, _) = run(name, sink(Interest::RECORDS));
            for interest in [Interest::STARTS, Interest::PACKETS, Interest::EVENTS, Interest::ALL] {
                let (all, stats) = run(name, sink(interest));
                assert_eq!(all.ended, alone.ended, "{name}");
                let is_counted = interest.contains(Interest::PACKETS);
                assert_eq!(all.packet_count, if is_counted { stats.tracker.packet_count } else { 0 });
                assert_eq!(all.event_count > 0, interest.contains(Interest::EVENTS));
            }
        }
    }
}

/// Stops each stream at its first octets, and requests packets once its field is set.
#[derive(Default)]
struct StopsAll {
    requests_packets: bool,
    packet_count: u64,
}

impl Sink for StopsAll {
    type State = ();
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::VARIES | if self.requests_packets { Interest::PACKETS } else { Interest::RECORDS }
    }

    fn packet(&mut self, _: &mut Flow<'_, ()>, _: &Packet<'_>) {
        self.packet_count += 1;
    }

    fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, _: &StreamEvent<'_>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn a_flow_with_stopped_streams_is_muted_unless_packets_are_requested() {
    use etherparse::PacketBuilder;
    use flowgauge::base::{Frame, Timestamp};
    let send = |pipeline: &mut Pipeline<StopsAll>, port: u16, is_reply: bool| {
        let ends = [([10, 0, 0, 1], port), ([10, 0, 0, 2], 80)];
        let [(from, from_port), (to, to_port)] = if is_reply { [ends[1], ends[0]] } else { ends };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(from, to, 64)
            .tcp(from_port, to_port, 1, 1000)
            .ack(1);
        let mut data = Vec::new();
        builder.write(&mut data, b"text").unwrap();
        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(1), &data));
        pipeline.sink().packet_count
    };
    let mut pipeline = pipeline(StopsAll::default());
    // The first flow has both streams, the second one only one.
    for (port, is_reply) in [(4000, false), (4000, true), (4001, false)] {
        assert_eq!(send(&mut pipeline, port, is_reply), 0);
    }
    pipeline.sink_mut().requests_packets = true;
    assert_eq!([send(&mut pipeline, 4000, false), send(&mut pipeline, 4000, true)], [0, 0], "muted");
    assert_eq!([send(&mut pipeline, 4001, false), send(&mut pipeline, 4001, true)], [1, 2]);
    // Both streams are stopped, but packets are requested.
    assert_eq!(send(&mut pipeline, 4001, false), 3);
}

#[test]
fn a_muted_flow_reports_only_its_end() {
    for name in NAMES {
        let sink = Collect { interest: Some(Interest::ALL), mute_at: Some(1), ..Collect::default() };
        let (muted, stats) = run(name, sink);
        assert_eq!(muted.call_after_mute_count, 0, "{name}");
        assert_eq!(muted.ended.iter().map(|(_, _, count)| count).sum::<u64>(), stats.tracker.packet_count);
        for (_, [a, b], _) in &muted.ended {
            assert!(a.bytes.is_empty() || b.bytes.is_empty() || a.event_count + b.event_count < 8);
        }
    }
}

/// Returns the part of a text within its first octets.
fn first_octets_of(whole: &Text, len: u64) -> Text {
    let mut text = Text { has_fin: whole.has_fin, ..Text::default() };
    let (mut offset, mut bytes) = (0, &whole.bytes[..]);
    let gaps = whole.gaps.iter().copied().chain([(u64::MAX, 0)]);
    for (gap_offset, gap_len) in gaps {
        let part = bytes.split_off(..bytes.len().min((gap_offset - offset) as usize)).expect("in range");
        let remaining = len.saturating_sub(offset) as usize;
        text.bytes.extend(part.iter().take(remaining));
        offset += part.len() as u64;
        let kept = gap_len.min(len.saturating_sub(offset));
        text.gaps.extend((kept > 0).then_some((offset, kept)));
        offset += gap_len;
    }
    text.has_fin &= offset < len;
    text
}

#[test]
fn the_first_octets_equal_those_of_the_whole_stream() {
    let mut truncated_count = 0;
    for name in NAMES {
        let (whole, _) = run(name, Collect { interest: Some(Interest::ALL), ..Collect::default() });
        // Some lengths, and the middle of each gap.
        let texts = || whole.ended.iter().flat_map(|(_, texts, _)| texts);
        let in_gaps =
            texts().flat_map(|text| &text.gaps).map(|(offset, len)| offset + len.div_ceil(2)).take(20);
        for len in [0, 1, 7, 100, 1460, 5000, 70_000, u64::MAX].into_iter().chain(in_gaps) {
            let sink = FirstOctets::new(len, Collect { interest: Some(Interest::ALL), ..Collect::default() });
            let (sink, _) = run(name, sink);
            let first = sink.into_inner();
            let calls = |sink: &Collect| (sink.packet_count, sink.event_count);
            assert_eq!(calls(&first), calls(&whole), "packets and events are reported as before");
            assert_eq!(first.ended.len(), whole.ended.len());
            for ((key, first, count), (whole_key, whole, whole_count)) in first.ended.iter().zip(&whole.ended)
            {
                assert_eq!((key, count), (whole_key, whole_count));
                for (first, whole) in first.iter().zip(whole) {
                    let wanted = first_octets_of(whole, len);
                    assert_eq!(first.gaps, wanted.gaps, "{name}, {len} octets of {key}");
                    assert_eq!((&first.bytes, first.has_fin), (&wanted.bytes, wanted.has_fin));
                    truncated_count += usize::from(!first.gaps.is_empty() && wanted.gaps != whole.gaps);
                }
            }
        }
    }
    assert!(truncated_count > 0, "no gap was shortened");
}

/// Chunks in order of delivery, and the lengths of gaps.
#[derive(Default)]
struct Observed([Vec<Result<Vec<u8>, u64>>; 2]);

impl Sink for Observed {
    type State = ();
    type Stage = Streams;

    fn stream(&mut self, _: &mut Flow<'_, ()>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        match event {
            StreamEvent::Chunk(chunk) => self.0[side as usize].push(Ok(chunk.bytes.to_vec())),
            StreamEvent::Gap(gap) => self.0[side as usize].push(Err(gap.len)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_direction_is_stopped_after_its_first_octets() {
    use etherparse::PacketBuilder;
    use flowgauge::base::{Frame, Timestamp};
    let mut pipeline = pipeline(FirstOctets::new(10, Observed::default()));
    let mut nanos = 0;
    let mut send = |is_reply: bool, seq: u32, ack: u32, payload: &[u8]| {
        let ends = [([10, 0, 0, 1], 4000), ([10, 0, 0, 2], 80)];
        let [(from, from_port), (to, to_port)] = if is_reply { [ends[1], ends[0]] } else { ends };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(from, to, 64)
            .tcp(from_port, to_port, seq, 1000)
            .ack(ack);
        let mut data = Vec::new();
        builder.write(&mut data, payload).unwrap();
        nanos += 20_000_000;
        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(nanos), &data));
        pipeline.held_stream_count()
    };
    // The tenth octet is in the third segment.
    assert_eq!(send(false, 100, 500, b"GET "), 0);
    assert_eq!(send(false, 104, 500, b"/abc"), 0);
    assert_eq!(send(false, 108, 500, b" HTTP"), 0);
    assert_eq!(send(false, 113, 500, b"/1.1"), 0);
    assert_eq!(send(false, 200, 500, b"far ahead"), 0, "a stopped stream holds nothing");
    // The capture lacks six octets that the other side received, so that a gap is reported; two octets of the last
    // segment count.
    assert_eq!(send(true, 500, 117, b"HT"), 0);
    assert_eq!(send(true, 508, 117, b"abcd"), 1, "held behind the hole");
    assert_eq!(send(false, 300, 512, b""), 1, "acknowledged, and the grace period runs");
    assert_eq!(send(true, 512, 117, b"efgh"), 0, "the hole became a gap");
    assert_eq!(send(true, 520, 117, b"behind another"), 0);
    let observed = pipeline.into_sink().into_inner().0;
    let chunk = |text: &[u8]| Ok(text.to_vec());
    let request = vec![chunk(b"GET "), chunk(b"/abc"), chunk(b" H")];
    let reply = vec![chunk(b"HT"), Err(6), chunk(b"ab")];
    assert_eq!(observed, [request, reply]);
}

/// Without acknowledgments, a hole becomes a gap at its deadline with packets of other flows, without one of its own
/// flow.
#[test]
fn packets_of_other_flows_end_holes_at_their_deadline() {
    use etherparse::PacketBuilder;
    use flowgauge::base::{Frame, Timestamp};
    let segment = |port: u16, seq: u32| {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(port, 80, seq, 1000);
        let mut frame = Vec::new();
        builder.write(&mut frame, b"text").unwrap();
        frame
    };
    let mut pipeline = pipeline(Collect::default());
    for (millis, port, seq) in [(0, 1, 100), (1, 1, 200), (2000, 2, 5), (4000, 2, 9)] {
        let data = segment(port, seq);
        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(millis * 1_000_000), &data));
        let held = usize::from((1..4000).contains(&millis));
        assert_eq!(pipeline.held_stream_count(), held, "at {millis} ms");
    }
    let id = pipeline.flows().find(|(view, _)| view.packet_count() == 2).map(|(view, _)| view.id());
    assert!(pipeline.remove(id.expect("an open flow")));
    let (_, texts, _) = &pipeline.sink().ended[0];
    let text = texts.iter().find(|text| !text.bytes.is_empty()).expect("one side sent octets");
    assert_eq!((&text.bytes[..], &text.gaps[..]), (&b"texttext"[..], &[(4, 96)][..]));
    assert_eq!(pipeline.stats().streams.gap_octet_count, 96);
}

/// The rest of a direction is delivered when its flow ends. A sink that then mutes the flow receives nothing of the
/// other direction.
#[test]
fn a_flow_muted_at_its_end_reports_nothing_of_the_other_direction() {
    use etherparse::PacketBuilder;
    use flowgauge::base::{Frame, Timestamp};
    let segment = |from_client: bool, seq: u32| {
        let (source, destination, ports) = if from_client { (1, 2, (1, 80)) } else { (2, 1, (80, 1)) };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, source], [10, 0, 0, destination], 64)
            .tcp(ports.0, ports.1, seq, 1000);
        let mut frame = Vec::new();
        builder.write(&mut frame, b"text").unwrap();
        frame
    };
    for (mute_at, expected) in [(None, [8, 8]), (Some(8), [8, 4])] {
        let mut pipeline = pipeline(Collect { mute_at, ..Collect::default() });
        // Both directions have a hole.
        for (from_client, seq) in [(true, 100), (false, 500), (true, 200), (false, 600)] {
            let data = segment(from_client, seq);
            pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(1), &data));
        }
        assert_eq!(pipeline.held_stream_count(), 2);
        pipeline.finish();
        let sink = pipeline.sink();
        let (_, texts, packet_count) = &sink.ended[0];
        assert_eq!((texts.each_ref().map(|text| text.bytes.len()), *packet_count), (expected, 4));
        assert_eq!((sink.call_after_mute_count, pipeline.held_stream_count()), (0, 0));
    }
}
