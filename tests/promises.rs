//! Guarantees about types: `Send`, sizes, sinks as `dyn`.

use std::panic::{RefUnwindSafe, UnwindSafe};

use etherparse::PacketBuilder;
use flowgauge::base::{
    Budget, Counters, EndReason, FlowKey, Frame, FrameBatch, History, Limits, Resources, Side, StopHandle,
    TcpFlags, Timestamp, VlanIds,
};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, Packet, Skip, SkipStats};
use flowgauge::dedup::{DedupConfig, DedupStats, Verdict, Window};
use flowgauge::filter::Filter;
use flowgauge::pipeline::{
    Builder, Flows, Pipeline, PipelineStats, Records, RunOptions, Sink, Streams, Summary,
};
use flowgauge::reassembler::{
    Buffered, Chunk, Conflict, Gap, OverlapPolicy, Reassembler, ReassemblerConfig, ReassemblerStats, Segment,
    Stream,
};
use flowgauge::record::{FlowRecord, SideRecord};
use flowgauge::record_file::RecordFile;
use flowgauge::source::{Contents, FileSource, Files, PcapngWriter, Source};
use flowgauge::tap::{EthernetHeader, NeighborFrame, NeighborTable, NoFrame, NotIp};
use flowgauge::tracker::{
    Flow, FlowEvent, FlowId, FlowView, Interest, Observer, Timeouts, Tracker, TrackerConfig, TrackerStats,
};

/// Public errors can be boxed and sent to another thread.
const _: () = {
    const fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<flowgauge::base::ConfigError>();
    is_error::<flowgauge::base::DateError>();
    is_error::<flowgauge::base::ParseError>();
    is_error::<flowgauge::checkpoint::Error>();
    is_error::<flowgauge::checkpoint::Invalid>();
    is_error::<flowgauge::codec::ReadError>();
    is_error::<flowgauge::codec::WriteError>();
    is_error::<flowgauge::decode::extractor::PacketError>();
    is_error::<flowgauge::decode::extractor::Skip>();
    is_error::<flowgauge::decode::fragment::UnknownPolicy>();
    is_error::<flowgauge::export::FixedRecordError>();
    is_error::<flowgauge::export::UnknownName>();
    is_error::<flowgauge::features::UnknownFeature>();
    is_error::<flowgauge::features::UnknownMoment>();
    is_error::<flowgauge::filter::FilterError>();
    is_error::<flowgauge::pipeline::Error>();
    is_error::<flowgauge::reassembler::UnknownPolicy>();
    is_error::<flowgauge::record::DifferentFlows>();
    is_error::<flowgauge::record_file::RecordProblem>();
    is_error::<flowgauge::session::Fault>();
    is_error::<flowgauge::source::Error>();
    is_error::<flowgauge::tap::NeighborError>();
    is_error::<flowgauge::tap::NoFrame>();
    is_error::<flowgauge::tap::NotIp>();
};

/// Types that can be sent to another thread, and types that can also be shared with it.
const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}
    is_send::<Tracker<()>>();
    is_send::<Tracker<Vec<u8>>>();
    is_send::<Pipeline<()>>();
    is_send::<Pipeline<Box<dyn Sink<State = String, Stage = Flows> + Send>>>();
    is_send::<Pipeline<Box<dyn Sink<State = String, Stage = Streams> + Send>>>();
    is_send::<FileSource>();
    is_send::<Contents>();
    is_send::<RecordFile>();
    is_send::<Files>();
    is_send::<PcapngWriter<Vec<u8>>>();
    is_send::<Box<dyn Source>>();
    is_send::<TrackerConfig>();
    is_send::<NeighborTable>();
    is_send::<Window>();
    is_send::<DedupConfig>();
    is_send::<Reassembler<(FlowId, Side)>>();
    is_send::<ReassemblerConfig>();
    is_send::<Buffered>();
    is_shared::<Budget>();
    is_shared::<Builder>();
    is_shared::<Resources>();
    is_shared::<RunOptions>();
    is_shared::<StopHandle>();
    is_send::<Summary>();
    is_shared::<EthernetHeader>();
    is_shared::<NeighborFrame>();
    is_shared::<Extractor>();
    is_shared::<Filter>();
    is_shared::<FlowEvent>();
    is_shared::<FlowId>();
    is_shared::<FlowKey>();
    is_shared::<FlowRecord>();
    is_shared::<FlowView<'_>>();
    is_shared::<Frame<'_>>();
    is_shared::<FrameBatch>();
    is_shared::<KeyPolicy>();
    is_shared::<Limits>();
    is_shared::<Packet<'_>>();
    is_shared::<PipelineStats>();
    is_shared::<ReassemblerStats>();
    is_shared::<Segment<'_>>();
    is_shared::<SideRecord>();
    is_shared::<Skip>();
    is_shared::<SkipStats>();
    is_shared::<Stream>();
    is_shared::<TrackerStats>();
};

/// Types that a caller can still use after it catches a panic of its own sink.
const _: () = {
    const fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<FlowKey>();
    is_unwind_safe::<FlowRecord>();
    is_unwind_safe::<Packet<'_>>();
};

/// Types that are passed by value are `Copy`.
const _: () = {
    const fn is_copy<T: Copy>() {}
    is_copy::<EthernetHeader>();
    is_copy::<NoFrame>();
    is_copy::<NotIp>();
    is_copy::<Packet<'_>>();
    is_copy::<Frame<'_>>();
    is_copy::<FlowKey>();
    is_copy::<FlowView<'_>>();
    is_copy::<FlowEvent>();
    is_copy::<FlowId>();
    is_copy::<History>();
    is_copy::<KeyPolicy>();
    is_copy::<Extractor>();
    is_copy::<Timeouts>();
    is_copy::<Limits>();
    is_copy::<Skip>();
    is_copy::<Counters>();
    is_copy::<EndReason>();
    is_copy::<TrackerStats>();
    is_copy::<DedupStats>();
    is_copy::<Verdict>();
    is_copy::<Segment<'_>>();
    is_copy::<Chunk<'_>>();
    is_copy::<Gap>();
    is_copy::<Conflict>();
    is_copy::<OverlapPolicy>();
    is_copy::<ReassemblerStats>();
};

#[test]
fn sizes_equal_those_in_the_documentation() {
    assert_eq!(size_of::<FlowKey>(), 48);
    assert_eq!(size_of::<Packet<'_>>(), 128);
    assert_eq!(size_of::<History>(), 16);
    assert_eq!(size_of::<Timestamp>(), 8);
    assert_eq!((size_of::<Side>(), size_of::<TcpFlags>(), size_of::<VlanIds>()), (1, 2, 4));
    assert_eq!(size_of::<Stream>(), 32, "two fill a cache line");
    assert!(size_of::<FlowEvent>() <= 24, "events are small: {}", size_of::<FlowEvent>());
    // Five words, and a reference to the application.
    assert!(size_of::<FlowView<'_>>() <= 48);
    assert!(size_of::<Skip>() <= 24, "reasons are small: {}", size_of::<Skip>());
    assert!(size_of::<Frame<'_>>() <= 40);
    assert!(size_of::<FlowRecord>() <= 384, "a record: {}", size_of::<FlowRecord>());
}

/// Counts calls.
#[derive(Default)]
struct Calls([u32; 4]);

impl Observer<u8> for Calls {
    fn started(&mut self, _: &mut Flow<'_, u8>) {
        self.0[0] += 1;
    }

    fn packet(&mut self, _: &mut Flow<'_, u8>, _: &Packet<'_>) {
        self.0[1] += 1;
    }

    fn event(&mut self, _: &mut Flow<'_, u8>, _: &FlowEvent) {
        self.0[2] += 1;
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, _: u8) {
        self.0[3] += 1;
    }
}

impl Sink for Calls {
    type State = ();
    type Stage = Flows;

    fn started(&mut self, _: &mut Flow<'_, ()>) {
        self.0[0] += 1;
    }

    fn packet(&mut self, _: &mut Flow<'_, ()>, _: &Packet<'_>) {
        self.0[1] += 1;
    }

    fn event(&mut self, _: &mut Flow<'_, ()>, _: &FlowEvent) {
        self.0[2] += 1;
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.0[3] += 1;
    }
}

#[test]
fn observers_work_as_trait_objects() {
    let (key, side) =
        FlowKey::new(flowgauge::base::IpProtocol::UDP, ([10, 0, 0, 1].into(), 1), ([10, 0, 0, 2].into(), 2));
    let packet = Packet::new(key, side, Timestamp::ZERO, &[]);
    let mut calls = Calls::default();
    let observers: [&mut dyn Observer<u8>; 2] = [&mut calls, &mut ()];
    for observer in observers {
        let mut tracker: Tracker<u8> = Tracker::default();
        tracker.track(&packet, observer);
        tracker.track_batch(&[packet], observer);
        tracker.advance(Timestamp::from_nanos(1), observer);
        tracker.finish(observer);
    }
    assert_eq!(calls.0, [1, 2, 0, 1]);
    assert_eq!(<() as Observer<u8>>::interest(&()), Interest::RECORDS);
}

#[test]
fn sinks_work_as_trait_objects() {
    let mut datagram = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
    builder.write(&mut datagram, &[]).expect("a frame");
    let mut records = Vec::new();
    let mut calls = Calls::default();
    {
        let mut take = Records::new(|record: FlowRecord| records.push(record));
        let sinks: [&mut dyn Sink<State = (), Stage = Flows>; 3] = [&mut calls, &mut take, &mut ()];
        for sink in sinks {
            let mut pipeline = Pipeline::builder().build(sink).expect("a valid configuration");
            pipeline.frame(&Frame::ethernet(Timestamp::ZERO, &[0; 60]));
            pipeline.frame(&Frame::ethernet(Timestamp::ZERO, &datagram));
            let mut batch = FrameBatch::new();
            batch.push(&Frame::ethernet(Timestamp::ZERO, &datagram));
            assert!(pipeline.batch(&batch).is_continue());
            pipeline.advance(Timestamp::from_nanos(1));
            pipeline.finish();
        }
    }
    assert_eq!((calls.0, records.len()), ([1, 2, 0, 1], 1));
    assert_eq!(<() as Sink>::interest(&()), Interest::RECORDS);
}

#[test]
fn a_tracker_can_move_to_another_thread() {
    let (key, side) =
        FlowKey::new(flowgauge::base::IpProtocol::UDP, ([10, 0, 0, 1].into(), 1), ([10, 0, 0, 2].into(), 2));
    let mut tracker: Tracker<()> = Tracker::default();
    tracker.track(&Packet::new(key, side, Timestamp::ZERO, &[]), &mut ());
    let count = std::thread::spawn(move || {
        tracker.finish(&mut ());
        tracker.stats().forced_end_count
    });
    assert_eq!(count.join().expect("no panic"), 1);
}
