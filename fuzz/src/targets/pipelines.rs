//! Scripts run through whole pipelines, with checks after each step: the layers agree with their memory accounts, every
//! frame is counted once, every flow starts and ends once, and all memory is released.

use flowgauge::base::{Account, Budget};
use flowgauge::pipeline::{Pipeline, PipelineStats};

use super::input::structured;
use super::observer::{FlowObserver, Observer, Observing, SessionObserver, StreamObserver};
use super::rig::{Setup, nth_flow};
use super::script::{Player, Script, Step};

/// Flows and records without streams, and the sums of records.
pub fn flows(data: &[u8]) {
    let Some(script) = structured::<Script<'_>>(data) else { return };
    let budget = script.setup.budget();
    if let Some(pipeline) = script.setup.flows(&budget, FlowObserver::default()) {
        play(pipeline, &script, &budget);
    }
}

/// Flows with TCP streams.
pub fn streams(data: &[u8]) {
    let Some(script) = structured::<Script<'_>>(data) else { return };
    let budget = script.setup.budget();
    if let Some(pipeline) = script.setup.stream_pipeline(&budget, StreamObserver::default()) {
        play(pipeline, &script, &budget);
    }
}

/// Flows with streams and sessions.
pub fn sessions(data: &[u8]) {
    let Some(script) = structured::<Script<'_>>(data) else { return };
    let budget = script.setup.budget();
    if let Some(pipeline) = script.setup.session_pipeline(&budget, SessionObserver::default()) {
        play(pipeline, &script, &budget);
    }
}

fn play<K: Observing>(mut pipeline: Pipeline<K>, script: &Script<'_>, budget: &Budget) {
    let mut player = Player::default();
    let (mut frame_count, mut octet_count) = (0, 0);
    for step in &script.steps {
        match step {
            Step::Raw { .. } | Step::Packet(_) | Step::Again { .. } => {
                for captured in player.frames(step) {
                    frame_count += 1;
                    octet_count += u64::from(captured.wire_len);
                    pipeline.frame(&captured.frame());
                }
            }
            Step::Advance { wait } => pipeline.advance(player.wait(*wait)),
            Step::Remove { number } => {
                if let Some(id) = nth_flow(&pipeline, usize::from(*number)) {
                    let count = pipeline.flow_count();
                    assert!(pipeline.remove(id));
                    assert!(!pipeline.remove(id), "a flow was removed twice");
                    assert_eq!(pipeline.flow_count(), count - 1);
                }
            }
            Step::Mute => pipeline.sink_mut().observer_mut().mutes_next = true,
            Step::Stop => pipeline.sink_mut().observer_mut().stops_next = true,
        }
        pipeline.check_invariants();
        assert!(budget.held() <= budget.limit());
        check_counts(&pipeline.stats(), pipeline.flow_count());
        // One frame may be held until the next one, which shows whether its timestamp is plausible.
        assert!(frame_count - pipeline.stats().frame_count <= 1);
        let totals = &pipeline.sink().observer().totals;
        assert_eq!(totals.started_count - totals.ended_count, pipeline.flow_count() as u64);
    }
    pipeline.finish();
    pipeline.check_invariants();
    let stats = pipeline.stats();
    check_counts(&stats, 0);
    assert_eq!((stats.frame_count, stats.octet_count), (frame_count, octet_count));
    check_sums(&stats, &script.setup, pipeline.sink().observer());
    assert_eq!((pipeline.flow_count(), stats.sessions.held_bytes), (0, 0));
    assert_eq!(budget.held_by(Account::Sessions), 0);
    drop(pipeline);
    assert_eq!(budget.held(), 0, "the pipeline did not release all of its budget");
}

/// Checks counts at any time.
fn check_counts(stats: &PipelineStats, open_count: usize) {
    let tracker = &stats.tracker;
    assert_eq!(tracker.started_count - tracker.ended_count(), open_count as u64);
    assert_eq!(stats.dedup.mismatch_count, 0, "two different frames had the same hash");
}

/// Checks sums after all flows have ended.
fn check_sums(stats: &PipelineStats, setup: &Setup, sink: &Observer) {
    let totals = &sink.totals;
    assert_eq!(totals.started_count, totals.ended_count);
    assert_eq!(totals.started_count, stats.tracker.started_count);
    let dropped = stats.skipped.total()
        + stats.dedup.duplicate_count
        + stats.checksums.dropped_count
        + stats.filtered_count
        + stats.orphan_fragment_count;
    let counted = stats.frame_count + stats.outer_packet_count + stats.aggregated_count;
    assert_eq!(counted, stats.tracker.packet_count + dropped);
    assert_eq!(totals.packet_count, stats.tracker.packet_count);
    if !setup.is_linked() {
        assert_eq!((stats.outer_packet_count, totals.carried_packet_count), (0, 0));
    }
    if setup.has_ample_limits() && setup.is_linked() && stats.filtered_count == 0 {
        assert_eq!(totals.carried_packet_count, stats.outer_packet_count);
    }
    if setup.has_ample_limits() && dropped == 0 {
        assert_eq!(totals.octet_count - totals.carried_octet_count, stats.octet_count);
    }
}
