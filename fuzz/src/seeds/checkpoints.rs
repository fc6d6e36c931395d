//! Checkpoints of pipelines in the middle of a capture.

use flowgauge::base::FrameBatch;
use flowgauge::checkpoint::{State, Writer};
use flowgauge::{
    Flows, KeyPolicy, Pipeline, Records, Sessions, Sink, Stage, Standard, Streams, on_transaction,
};

use super::store::Seeds;

/// Adds checkpoints after a tenth, a half and all of the frames.
pub(super) fn add(seeds: &mut Seeds, frames: &FrameBatch) {
    for frame_count in [frames.len() / 10, frames.len() / 2, frames.len()] {
        add_stage::<Flows>(seeds, frames, frame_count);
        add_stage::<Streams>(seeds, frames, frame_count);
        add_stage::<Sessions<Standard>>(seeds, frames, frame_count);
        add_sink(seeds, frames, frame_count, on_transaction(|_, _| {}));
    }
}

fn add_stage<G: Stage>(seeds: &mut Seeds, frames: &FrameBatch, frame_count: usize) {
    add_sink(seeds, frames, frame_count, Records::new(drop).with_stage::<G>());
}

fn add_sink<K: Sink<State: State>>(seeds: &mut Seeds, frames: &FrameBatch, frame_count: usize, sink: K) {
    let builder = Pipeline::builder()
        .active_timeout(std::time::Duration::from_secs(60))
        .encapsulation(true)
        .key_policy(KeyPolicy::default());
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    frames.iter().take(frame_count).for_each(|frame| pipeline.frame(&frame));
    let mut writer = Writer::new(Vec::new()).expect("a vector");
    pipeline.checkpoint(&mut writer).expect("a vector");
    let seed = writer.finish().expect("a vector");
    // Longer ones take most of their time in the first blocks.
    if seed.len() <= 16 << 10 {
        seeds.add("checkpoint", seed);
    }
}
