//! What is said in flows is the same on one shard and on many, in batches of any size.

use std::num::NonZeroUsize;

use flowgauge::base::Application;
use flowgauge::pipeline::{ConfigError, Pipeline, SessionPipeline, SessionSink};
use flowgauge::reassembler::ReassemblerConfig;
use flowgauge::record::FlowRecord;
use flowgauge::session::{About, DriverConfig, Message, SessionEvent, Standard};
use flowgauge::source::Source;
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest, TrackerConfig};

use super::sources::{Rebatched, captures};

/// All that is said in a flow, in order.
#[derive(Default)]
struct Heard(Vec<String>);

#[derive(Default)]
struct Keep(Vec<(String, Vec<String>)>);

impl FlowSink<Heard> for Keep {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn ended(&mut self, view: &FlowView<'_>, _: flowgauge::base::EndReason, heard: Heard) {
        self.0.push((format!("{} {}", view.key(), view.start()), heard.0));
    }
}

impl SessionSink<Standard, Heard> for Keep {
    fn message(&mut self, flow: &mut Flow<'_, Heard>, about: &About, message: Message<'_>) {
        // When octets came that waited behind a hole depends on who noticed that its time is over.
        let what = format!("{} {}", about.protocol, about.from.name());
        flow.state.0.push(format!("{what}: {message:.0?}"));
    }

    fn session(&mut self, flow: &mut Flow<'_, Heard>, event: &SessionEvent) {
        flow.state.0.push(match event {
            SessionEvent::Recognised { protocol, evidence } => format!("{protocol} by {}", evidence.name()),
            event => format!("{event:?}"),
        });
    }
}

fn shard<U: Default>() -> Result<SessionPipeline<Standard, U>, ConfigError> {
    let streams = Pipeline::new(TrackerConfig::default())?.with_streams(ReassemblerConfig::default())?;
    Ok(streams.with_sessions(&DriverConfig::default()))
}

fn run(source: &mut impl Source, count: usize) -> Vec<(String, Vec<String>)> {
    let mut sinks: Vec<Keep> = (0..count).map(|_| Keep::default()).collect();
    let count = NonZeroUsize::new(count).expect("a shard");
    let mut shards = SessionPipeline::shards(count, shard).expect("a sound configuration");
    // What was read before an error counts.
    let _ = shards.run(source, &mut sinks);
    assert_eq!(shards.stats().sessions.held_bytes, 0, "all memory is given back");
    let mut all: Vec<_> = sinks.into_iter().flat_map(|sink| sink.0).collect();
    all.sort();
    all
}

#[test]
fn any_number_of_shards_hears_the_same() {
    let mut message_count = 0;
    for path in captures() {
        let Some(mut whole) = Rebatched::new(&path, usize::MAX >> 1, 0) else { continue };
        let one = run(&mut whole, 1);
        message_count += one.iter().map(|(_, heard)| heard.len()).sum::<usize>();
        for (count, size) in [(1, 1), (2, 1000), (3, 7)] {
            if whole.frames.len() > 10_000 && count != 2 {
                continue;
            }
            (whole.at, whole.size) = (0, size);
            let many = run(&mut whole, count);
            assert_eq!(many.len(), one.len());
            for ((flow, many), (_, one)) in many.iter().zip(&one) {
                let what = format!("{} with {count} shards by {size}: {flow}", path.display());
                for (many, one) in many.iter().zip(one) {
                    assert_eq!(many, one, "{what}");
                }
                assert_eq!(many.len(), one.len(), "{what}");
            }
        }
    }
    assert!(message_count > 500, "{message_count}");
}

#[test]
fn records_of_shards_name_what_is_spoken() {
    let path = &captures()[0];
    let named = |count: usize| {
        let count = NonZeroUsize::new(count).expect("a shard");
        let make = shard::<Option<Application>>;
        let mut shards = SessionPipeline::shards(count, make).expect("a sound configuration");
        let mut source = Rebatched::new(path, 64, 0).expect("a capture");
        let mut records: Vec<FlowRecord> = Vec::new();
        shards.run_records(&mut source, |_| true, |record| records.push(record)).expect("no error");
        let mut names: Vec<_> =
            records.iter().map(|record| (record.key, record.start, record.application)).collect();
        names.sort_by_key(|(key, start, _)| (*key, *start));
        names
    };
    let one = named(1);
    assert!(one.iter().filter(|(_, _, application)| application.is_some()).count() > 10);
    assert_eq!(named(3), one);
}
