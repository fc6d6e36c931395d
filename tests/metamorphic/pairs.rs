//! The same pairs of requests and responses although the directions of a capture are skewed, or neighboring frames are
//! swapped.

use std::time::Duration;

use flowgauge::base::{FlowKey, Side, Transport};
use flowgauge::decode::extractor::Packet;
use flowgauge::pipeline::on_transaction;
use flowgauge::tracker::{Flow, FlowView, Interest};
use flowgauge::transaction::{Content, Transaction};
use flowgauge::{EndReason, Flows, Sink, Timestamp};

use super::capture::{Capture, Owned, builder};
use super::relations::Outcome;

/// Time between two frames up to which they may be captured in the other order.
const SWAP_MAX: Duration = Duration::from_millis(20);

/// Returns what a transaction pairs, without its times.
fn pair(transaction: &Transaction) -> Option<String> {
    match &transaction.content {
        Content::Http(http) => Some(format!("{:?} {:?} {:?}", http.method, http.target, http.status)),
        Content::Dns(dns) => Some(format!("{} {:?} {:?} {:?}", dns.id, dns.query, dns.query_type, dns.rcode)),
        Content::Ftp(ftp) => Some(format!("{} {:?} {:?}", ftp.command, ftp.argument, ftp.code)),
        Content::Mail(mail) => Some(format!("{:?} {:?}", mail.sender, mail.recipients)),
        _ => None,
    }
}

/// Returns the pairs of all flows in order.
fn pairs(frames: &[Owned]) -> Vec<String> {
    let mut pairs = Vec::new();
    let sink = on_transaction(|flow: &FlowView<'_>, transaction| {
        pairs.extend(pair(transaction).map(|pair| format!("{} {pair}", flow.key())));
    });
    let mut pipeline = builder().build(sink).expect("a valid configuration");
    frames.iter().for_each(|owned| {
        pipeline.frame(&owned.frame());
    });
    pipeline.finish();
    drop(pipeline);
    pairs.sort();
    // Equal exchanges that overlap after the change, such as of DNS with the same identifier, cannot be distinguished.
    pairs.dedup();
    pairs
}

/// The flow of a frame, the side that sent it, and the number of packets of the flow before.
type Sent = (FlowKey, Side, u64);

/// Notes the flow of the latest packet.
#[derive(Default)]
struct Last(Option<Sent>);

impl Sink for Last {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        if matches!(packet.transport, Transport::Tcp | Transport::Udp) {
            self.0 = Some((packet.key, packet.side, flow.view.packet_count()));
        }
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {}
}

/// Returns the flow of each frame, if it has one.
fn sent(frames: &[Owned]) -> Vec<Option<Sent>> {
    let mut pipeline = builder().build(Last::default()).expect("a valid configuration");
    let of_frame = |owned: &Owned| {
        pipeline.frame(&owned.frame());
        pipeline.sink_mut().0.take()
    };
    frames.iter().map(of_frame).collect()
}

fn compare(capture: &Capture, changed: &[Owned]) -> Outcome {
    let (expected, found) = (pairs(&capture.frames), pairs(changed));
    if expected.is_empty() {
        return Outcome::NotApplicable;
    }
    let others = |of: &[String], than: &[String]| -> Vec<String> {
        of.iter().filter(|pair| than.binary_search(pair).is_err()).cloned().collect()
    };
    let (missing, new) = (others(&expected, &found), others(&found, &expected));
    if missing.is_empty() && new.is_empty() {
        return Outcome::Equal;
    }
    let first = missing.first().or(new.first());
    Outcome::Different(format!("{} pairs less, {} others: {first:?}", missing.len(), new.len()))
}

/// Captures the packets of one side of each flow later by a number of milliseconds.
pub(crate) fn late(capture: &Capture, side: Side, millis: u64) -> Outcome {
    let mut frames = capture.frames.clone();
    if !frames.is_sorted_by_key(|frame| frame.timestamp) {
        return Outcome::NotApplicable;
    }
    for (frame, sent) in frames.iter_mut().zip(sent(&capture.frames)) {
        if sent.is_some_and(|(_, from, _)| from == side) {
            frame.timestamp = Timestamp::from_nanos(frame.timestamp.as_nanos() + millis * 1_000_000);
        }
    }
    frames.sort_by_key(|frame| frame.timestamp);
    compare(capture, &frames)
}

/// Swaps neighboring frames of different directions of a flow, except its first ones.
pub(crate) fn swapped(capture: &Capture) -> Outcome {
    let mut frames = capture.frames.clone();
    let sent = sent(&frames);
    let mut at = 1;
    while at < frames.len() {
        let time = |index: usize| frames[index].timestamp.as_nanos();
        let is_near = time(at).abs_diff(time(at - 1)) <= SWAP_MAX.as_nanos() as u64;
        if let (Some((key, side, before)), Some((next_key, next_side, _))) = (&sent[at - 1], &sent[at])
            && (key, *side) == (next_key, next_side.other())
            && *before > 1
            && is_near
        {
            let (first, second) = (frames[at - 1].timestamp, frames[at].timestamp);
            frames.swap(at - 1, at);
            (frames[at - 1].timestamp, frames[at].timestamp) = (first, second);
            at += 1;
        }
        at += 1;
    }
    compare(capture, &frames)
}
