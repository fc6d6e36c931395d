//! Memory of an open flow with each stage, as charged to the budget. `docs/limits.md` states the same numbers.

use flowgauge::session::{Fault, Input, Out, Parser, Progress, Protocol};
use flowgauge::{
    Account, Budget, Flows, Frame, Limits, Pipeline, Resources, Sessions, Sink, Stage, Streams, Timestamp,
};

/// Memory of a flow in the tracker: 192 bytes that each packet accesses, 56 others, and at most 16 in the index.
const FLOW_BYTES: u64 = 192 + 56 + 16;

/// Number of flows: a multiple of the 1024 by which the table grows, so that all of its memory is used.
const FLOW_COUNT: u32 = 4 * 1024;

/// A sink with any state and stage.
struct Idle<S, G>(std::marker::PhantomData<(S, G)>);

impl<S: Default, G: Stage> Sink for Idle<S, G> {
    type State = S;
    type Stage = G;
}

/// A parser that consumes all octets.
#[derive(Debug, Default)]
struct ConsumeAll;

impl Parser for ConsumeAll {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, _: Out<'_, Self>) -> Result<Progress, Fault> {
        Ok(Progress::Took(input.bytes.len()))
    }
}

static CONSUME_ALL: Protocol = Protocol::new("taking").over_streams(&[80], None);

flowgauge::protocols! {
    #[derive(Debug)]
    enum Own;
    #[derive(Debug)]
    enum OwnMessage;
    parsers { ConsumeAll: ConsumeAll = &CONSUME_ALL }
}

/// Returns the SYN of a client with the given number.
fn syn(number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, a, b, c, 192, 0, 2, 1]);
    frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0x20, 0, 0, 0, 0, 0]);
    frame
}

/// Returns the memory per flow that is charged to the budget, with a state and a stage.
fn bytes_per_flow<S: Default, G: Stage>() -> u64 {
    let builder = Pipeline::builder().resources(Resources::new(Limits::DEFAULT));
    let mut pipeline = builder.build(Idle::<S, G>(std::marker::PhantomData)).expect("a valid configuration");
    let others = |budget: &Budget| budget.held() - budget.held_by(Account::Flows);
    let held_without_flows = others(pipeline.budget());
    for number in 0..FLOW_COUNT {
        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(number.into()), &syn(number)));
    }
    assert_eq!(pipeline.flow_count(), FLOW_COUNT as usize);
    assert_eq!(others(pipeline.budget()), held_without_flows, "a flow without octets holds no other memory");
    let held = pipeline.budget().held_by(Account::Flows);
    assert_eq!(held % u64::from(FLOW_COUNT), 0);
    pipeline.finish();
    held / u64::from(FLOW_COUNT)
}

#[test]
fn a_flow_uses_memory_for_its_stage_only() {
    assert_eq!(bytes_per_flow::<(), Flows>(), FLOW_BYTES);
    assert_eq!(bytes_per_flow::<(), Streams>(), FLOW_BYTES + 64);
    assert_eq!(bytes_per_flow::<(), Sessions<Own>>(), FLOW_BYTES + 96);
    #[cfg(feature = "protocols")]
    assert_eq!(bytes_per_flow::<(), Sessions<flowgauge::Standard>>(), FLOW_BYTES + 96);
}

#[test]
fn the_state_of_the_sink_adds_its_size() {
    assert_eq!(bytes_per_flow::<u64, Flows>(), FLOW_BYTES + 8);
    assert_eq!(bytes_per_flow::<[u8; 3], Flows>(), FLOW_BYTES + 3);
    assert_eq!(bytes_per_flow::<u64, Streams>(), FLOW_BYTES + 64 + 8);
    assert_eq!(bytes_per_flow::<u64, Sessions<Own>>(), FLOW_BYTES + 96 + 8);
}
