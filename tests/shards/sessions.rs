//! Messages of flows are the same on one shard and on many, with batches of any size.

use std::path::Path;

use flowgauge::base::EndReason;
use flowgauge::decode::extractor::Packet;
use flowgauge::pipeline::{ErrorPolicy, Pipeline, RunOptions, Sessions, Sink};
use flowgauge::protocols::{Message, Standard};
use flowgauge::record::FlowRecord;
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::source::Source;
use flowgauge::tracker::{Flow, FlowView, Interest};

use super::sources::{Rebatched, captures};

/// All messages and events of a flow, in order, with times.
#[derive(Default)]
struct Observed(Vec<String>);

/// Messages and events of each flow that ended, and the messages of all flows in the order of delivery.
#[derive(Default)]
struct Collector {
    requests_all: bool,
    packet_count: u64,
    flows: Vec<(String, Vec<String>)>,
    all: Vec<String>,
}

impl Sink for Collector {
    type State = Observed;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::VARIES | if self.requests_all { Interest::ALL } else { Interest::RECORDS }
    }

    fn packet(&mut self, _: &mut Flow<'_, Observed>, _: &Packet<'_>) {
        self.packet_count += 1;
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, mut observed: Observed) {
        observed.0.push(format!("{} packets, {:?}", view.packet_count(), view.application()));
        self.flows.push((format!("{} {}", view.key(), view.start()), observed.0));
    }

    fn message(&mut self, flow: &mut Flow<'_, Observed>, meta: &MessageMeta, message: &Message<'_>) {
        let origin = format!("{} {} {}", meta.timestamp, meta.protocol, meta.from.name());
        let message = format!("{origin}: {message:?}");
        self.all.push(format!("{} {message}", flow.view.key()));
        flow.state.0.push(message);
    }

    fn session(&mut self, flow: &mut Flow<'_, Observed>, event: &SessionEvent) {
        flow.state.0.push(match event {
            SessionEvent::Recognized { protocol, evidence } => format!("{protocol} by {}", evidence.name()),
            event => format!("{event:?}"),
        });
    }
}

/// Returns messages and events by flow, and the messages of the first shard in the order of delivery.
fn run(source: &mut impl Source, count: usize) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let mut sinks: Vec<Collector> = (0..count).map(|_| Collector::default()).collect();
    // Frames that were read before an error count.
    let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
    let run = Pipeline::builder().run_shards(&mut sinks, source, &options);
    let stats = run.expect("a valid configuration").stats;
    assert_eq!(stats.sessions.held_bytes, 0, "all memory must be released");
    let first = std::mem::take(&mut sinks[0].all);
    let mut flows: Vec<_> = sinks.into_iter().flat_map(|sink| sink.flows).collect();
    flows.sort();
    (flows, first)
}

/// Compares the messages and events of a capture, processed as one batch by one shard, with those of other batch sizes
/// and more shards. Returns the number of messages and events.
fn compare(mut whole: Rebatched, name: &str) -> usize {
    let (one, order) = run(&mut whole, 1);
    for (count, size) in [(1, 1), (1, 7), (1, 100), (2, 1000), (3, 7)] {
        if whole.frames.len() > 10_000 && (count, size) != (1, 100) && count != 2 {
            continue;
        }
        (whole.at, whole.size) = (0, size);
        let (many, many_order) = run(&mut whole, count);
        assert_eq!(many.len(), one.len());
        for ((flow, many), (_, one)) in many.iter().zip(&one) {
            let case = format!("{name} with {count} shards by {size}: {flow}");
            // With several shards, the control connection of FTP or the request of TFTP may be in another one. The name in
            // the record is the same.
            let is_announced =
                |observed: &String| observed.starts_with("ftp_data by") || observed.starts_with("tftp by");
            if count > 1 && one.iter().any(is_announced) {
                assert_eq!(many.last(), one.last(), "{case}");
                continue;
            }
            for (many, one) in many.iter().zip(one) {
                assert_eq!(many, one, "{case}");
            }
            assert_eq!(many.len(), one.len(), "{case}");
        }
        // A single shard delivers all messages, in one order.
        let differing = many_order.iter().zip(&order).position(|(many, one)| many != one);
        assert_eq!(differing.filter(|_| count == 1), None, "{name} by {size}: the order differs");
    }
    one.iter().map(|(_, observed)| observed.len()).sum()
}

#[test]
fn any_number_of_shards_and_batches_of_any_size_give_the_same_messages() {
    let mut counts = [0; 3];
    for path in captures() {
        let name = path.display().to_string();
        // The unchanged capture, a capture with missing octets, and one with missing octets and times that step back.
        for (count, (every, jitter)) in counts.iter_mut().zip([(0, 0), (5, 0), (7, 30_000_000)]) {
            let Some(whole) = Rebatched::new(&path, usize::MAX >> 1, jitter) else { continue };
            if jitter > 0 && whole.frames.len() > 10_000 {
                continue;
            }
            let whole = if every == 0 { whole } else { whole.without(every) };
            *count += compare(whole, &format!("{name} without every {every}th frame, jitter {jitter}"));
        }
    }
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
}

/// A flow whose session is closed is muted only for a sink without interest in its packets and events. Messages, names
/// and counts are the same.
#[test]
fn the_interest_of_a_sink_does_not_change_messages() {
    let mut message_count = 0;
    for path in captures() {
        let Some(mut whole) = Rebatched::new(&path, 1000, 0) else { continue };
        let [alone, all] = [false, true].map(|requests_all| {
            whole.at = 0;
            let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
            let sink = Collector { requests_all, ..Collector::default() };
            let mut pipeline = Pipeline::builder().build(sink).expect("a valid configuration");
            let summary = pipeline.run(&mut whole, &options).expect("errors are collected");
            (pipeline.into_sink(), summary.stats.tracker.packet_count)
        });
        let name = path.display();
        assert_eq!((alone.0.packet_count, all.0.packet_count), (0, all.1), "{name}");
        assert_eq!(alone.0.flows, all.0.flows, "{name}");
        assert_eq!(alone.0.all, all.0.all, "{name}");
        message_count += all.0.all.len();
    }
    assert!(message_count > 500, "{message_count}");
}

#[test]
fn records_of_shards_name_the_application() {
    let named = |path: &Path, count: usize| {
        let mut source = Rebatched::new(path, 64, 0).expect("a capture");
        let mut records: Vec<FlowRecord> = Vec::new();
        let (options, deliver) = (RunOptions::default(), |record| records.push(record));
        Pipeline::builder()
            .run_records::<Sessions<Standard>>(count, &mut source, &options, |_| true, deliver)
            .expect("no error");
        let mut names: Vec<_> =
            records.iter().map(|record| (record.key, record.start, record.application)).collect();
        names.sort_by_key(|(key, start, _)| (*key, *start));
        names
    };
    for path in &captures()[..8] {
        let one = named(path, 1);
        assert!(
            one.iter().any(|(_, _, application)| application.is_some()) || one.len() == 1,
            "{}",
            path.display()
        );
        assert_eq!(named(path, 3), one, "{}", path.display());
    }
}
