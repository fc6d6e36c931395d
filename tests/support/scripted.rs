//! A source that delivers the steps that a function returns: frames, idle times and errors.

use std::collections::VecDeque;

use etherparse::PacketBuilder;
use flowgauge::source::End;
use flowgauge::source::Error;
use flowgauge::{EndReason, Flow, Flows, Frame, FrameBatch, Interest, Next, Sink, Source, Timestamp};

/// The result of one call of `next_batch`.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A datagram from each port, all with the same capture time in milliseconds.
    Frames(u64, Vec<u16>),
    /// No frames, with the current time in milliseconds.
    Idle(u64),
    /// Such datagrams, followed by an error.
    Fails(u64, Vec<u16>),
}

/// A source that gets its steps from a function; `None` ends it.
pub(crate) struct Scripted<F>(pub(crate) F);

/// Returns a source that delivers a list of steps.
pub(crate) fn listed(steps: impl IntoIterator<Item = Step>) -> Scripted<impl FnMut() -> Option<Step> + Send> {
    let mut steps: VecDeque<_> = steps.into_iter().collect();
    Scripted(move || steps.pop_front())
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn fill(batch: &mut FrameBatch, millis: u64, ports: &[u16]) {
    for port in ports {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let mut frame = Vec::new();
        builder.udp(*port, 53).write(&mut frame, b"text").expect("a frame");
        batch.push(&Frame::ethernet(at(millis), &frame));
    }
}

impl<F: FnMut() -> Option<Step> + Send> Source for Scripted<F> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        match (self.0)() {
            None => Ok(Next::End(End::Complete)),
            Some(Step::Idle(millis)) => Ok(Next::Idle(at(millis))),
            Some(Step::Frames(millis, ports)) => {
                fill(batch, millis, &ports);
                Ok(Next::Frames)
            }
            Some(Step::Fails(millis, ports)) => {
                fill(batch, millis, &ports);
                Err(Error::Io { path: "scripted".into(), error: std::io::Error::other("injected").into() })
            }
        }
    }
}

/// Collects the client port, packet count and end reason of each record, and counts calls.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) records: Vec<(u16, u64, EndReason)>,
    pub(crate) ended_count: usize,
    pub(crate) batch_count: usize,
    /// Number of batches that had ended before each record.
    pub(crate) batches_before: Vec<usize>,
}

impl Kept {
    /// The ports of all records, in order.
    pub(crate) fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<_> = self.records.iter().map(|(port, _, _)| *port).collect();
        ports.sort_unstable();
        ports
    }
}

impl Sink for Kept {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let port = flow.view.key().port(flow.view.initiator()).unwrap_or_default();
        self.records.push((port, flow.view.packet_count(), reason));
        self.batches_before.push(self.batch_count);
    }

    fn ended(&mut self, _: &flowgauge::FlowView<'_>, _: EndReason, (): ()) {
        self.ended_count += 1;
    }

    fn batch_ended(&mut self) -> std::ops::ControlFlow<()> {
        self.batch_count += 1;
        std::ops::ControlFlow::Continue(())
    }
}
