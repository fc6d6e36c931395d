//! Sinks that implement callbacks which their interest excludes: debug builds refuse them.
#![cfg(debug_assertions)]

use flowgauge::{FileSource, Flow, FlowEvent, Flows, Interest, Packet, Pipeline, RunOptions, Sink};

/// Passes all flows of a capture to a sink.
fn run(sink: impl Sink) {
    let mut pipeline = Pipeline::builder().build(sink).expect("default settings");
    let mut source = FileSource::open("examples/data/dns.pcap").expect("a capture");
    pipeline.run(&mut source, &RunOptions::default()).expect("a complete capture");
}

/// Declares a sink with an interest and one callback.
macro_rules! sink {
    ($name:ident, $interest:expr $(, fn $callback:ident($($argument:ty),*))?) => {
        struct $name;

        impl Sink for $name {
            type State = ();
            type Stage = Flows;

            fn interest(&self) -> Interest {
                $interest
            }

            $(fn $callback(&mut self, _: &mut Flow<'_, ()> $(, _: $argument)*) {})?
        }
    };
}

#[test]
#[should_panic(expected = "the sink implements `started`, but its `interest` excludes it")]
fn a_start_without_interest_is_refused() {
    sink!(Starts, Interest::PACKETS | Interest::EVENTS, fn started());
    run(Starts);
}

#[test]
#[should_panic(expected = "the sink implements `packet`, but its `interest` excludes it")]
fn a_packet_without_interest_is_refused() {
    sink!(Packets, Interest::STARTS | Interest::EVENTS, fn packet(&Packet<'_>));
    run(Packets);
}

#[test]
#[should_panic(expected = "the sink implements `event`, but its `interest` excludes it")]
fn an_event_without_interest_is_refused() {
    sink!(Events, Interest::STARTS | Interest::PACKETS, fn event(&FlowEvent));
    run(Box::new(Events));
}

#[test]
fn an_interest_that_varies_and_defaults_are_accepted() {
    sink!(Varying, Interest::VARIES, fn packet(&Packet<'_>));
    sink!(Datagrams, Interest::DATAGRAMS, fn packet(&Packet<'_>));
    sink!(Records, Interest::RECORDS);
    run(Varying);
    run(Datagrams);
    run(Box::new(Records) as Box<dyn Sink<State = (), Stage = Flows>>);
    run(&mut Records);
}
