//! The caller's state, the octets of streams and the messages of sessions behind a checkpoint.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use flowgauge::base::{EndReason, FrameBatch};
use flowgauge::checkpoint::{Reader, Serialized, State, StateWriter, Writer};
use flowgauge::codec;
use flowgauge::pipeline::read_checkpoint;
use flowgauge::reassembler::GapReason;
use flowgauge::tracker::{FlowView, Tracker};
use flowgauge::{Flow, Packet, Pipeline, Side, Sink, StreamEvent, Streams};

use super::{captures, divisions, feed, frames};

/// Sizes of the packets of a flow.
type Sizes = Serialized<Vec<u32>>;

/// A flow that ended, and the sizes of its packets.
type Ended = (String, Vec<u32>);

/// Collects the octets of streams without gaps, and gaps.
#[derive(Clone, Default)]
struct Octets {
    ended: Rc<RefCell<Vec<Ended>>>,
    octet_count: Rc<RefCell<u64>>,
    gaps: Rc<RefCell<Vec<(GapReason, u64)>>>,
}

impl Sink for Octets {
    type State = Sizes;
    type Stage = Streams;

    fn packet(&mut self, flow: &mut Flow<'_, Sizes>, packet: &Packet<'_>) {
        flow.state.0.push(packet.wire_len);
    }

    fn stream(&mut self, _: &mut Flow<'_, Sizes>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        match event {
            StreamEvent::Chunk(chunk) => *self.octet_count.borrow_mut() += chunk.bytes.len() as u64,
            StreamEvent::Gap(gap) => self.gaps.borrow_mut().push((gap.reason, gap.len)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: Sizes) {
        self.ended.borrow_mut().push((format!("{} {reason}", flow.key()), state.0));
    }
}

/// Returns what a sink received; `None` if the checkpoint was written while fragments waited for others.
fn run(frames: &FrameBatch, division: Option<usize>) -> Option<Octets> {
    let sink = Octets::default();
    let mut pipeline = Pipeline::builder().build(sink.clone()).unwrap();
    let (first, second) =
        (0..division.unwrap_or(frames.len()), division.unwrap_or(frames.len())..frames.len());
    feed(&mut pipeline, first.filter_map(|place| frames.get(place)));
    if division.is_some() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        pipeline.checkpoint(&mut writer).unwrap();
        let file = writer.finish().unwrap();
        let mut reader = Reader::new(&file[..]).unwrap();
        pipeline = Pipeline::builder().restore(&mut reader, sink.clone()).unwrap();
    }
    feed(&mut pipeline, second.filter_map(|place| frames.get(place)));
    pipeline.finish();
    let is_comparable = pipeline.stats().unsaved.datagram_count == 0;
    is_comparable.then_some(sink)
}

#[test]
fn the_state_of_the_caller_continues_and_lost_octets_are_a_gap() {
    let mut checkpoint_gap_count = 0;
    for path in captures::own_captures() {
        let frames = frames(&path);
        let Some(whole) = run(&frames, None) else { panic!("one pass gives nothing up") };
        for division in divisions(frames.len()) {
            let Some(divided) = run(&frames, Some(division)) else { continue };
            assert_eq!(whole.ended, divided.ended, "{} at {division}", path.display());
            // Octets that were held are not delivered, and a gap of the checkpoint states at least as many.
            let missing: u64 = divided
                .gaps
                .borrow()
                .iter()
                .filter(|(reason, _)| *reason == GapReason::Checkpoint)
                .map(|(_, len)| len)
                .sum();
            let lost = whole.octet_count.borrow().saturating_sub(*divided.octet_count.borrow());
            assert!(lost <= missing, "{} at {division}: {lost} octets, {missing} in gaps", path.display());
            checkpoint_gap_count += u64::from(missing > 0);
        }
    }
    assert!(checkpoint_gap_count > 0, "some division is behind a hole");
}

#[test]
fn flows_are_read_without_a_pipeline() {
    let frames = frames(&captures::root().join("examples/data/web.pcap"));
    let mut pipeline = Pipeline::builder().build(()).unwrap();
    feed(&mut pipeline, frames.iter());
    let mut open: Vec<_> = pipeline.flows().map(|(view, ())| view.record(EndReason::ForcedEnd)).collect();
    let mut writer = Writer::new(Vec::new()).unwrap();
    pipeline.checkpoint(&mut writer).unwrap();
    let file = writer.finish().unwrap();
    let mut read = Vec::new();
    let info = read_checkpoint(&mut Reader::new(&file[..]).unwrap(), |view| {
        read.push(view.record(EndReason::ForcedEnd));
    })
    .unwrap();
    assert_eq!((info.stage.as_str(), info.tracker.flow_count), ("flows", open.len() as u64));
    open.sort_by_key(|record| record.key);
    read.sort_by_key(|record| record.key);
    assert!(!open.is_empty());
    assert_eq!(read, open);
}

/// State that saves less than it loads.
#[derive(Default)]
struct Short;

impl State for Short {
    fn save(&self, _: &mut StateWriter<'_>) -> Result<(), flowgauge::checkpoint::Invalid> {
        Ok(())
    }

    fn load(reader: &mut codec::Reader<'_>) -> Result<Self, flowgauge::checkpoint::Invalid> {
        reader.be::<u8>()?;
        Ok(Self)
    }
}

#[test]
fn a_state_of_another_type_is_refused() {
    let mut tracker = Tracker::<Short>::default();
    let frames = frames(&captures::root().join("examples/data/dns.pcap"));
    for frame in frames.iter() {
        if let Ok(packet) = flowgauge::decode::extractor::Extractor::default().extract(&frame) {
            tracker.track(&packet, &mut Ignore);
        }
    }
    let mut writer = Writer::new(Vec::new()).unwrap();
    tracker.snapshot().write(&mut writer).unwrap();
    let file = writer.finish().unwrap();
    let config = flowgauge::TrackerConfig::default();
    let resources = flowgauge::base::Resources::default();
    let error = Tracker::<Short>::restore(config, &resources, &mut Reader::new(&file[..]).unwrap())
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("ends within an entry"), "{error}");
}

struct Ignore;

impl<S> flowgauge::tracker::Observer<S> for Ignore {}
