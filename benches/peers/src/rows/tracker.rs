//! Flow tracking of frames, including extraction.

use std::hint::black_box;
use std::net::Ipv4Addr;

use flowgauge::base::{EndReason, Frame, Resources, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};
use flowgauge::tracker::{FlowView, Interest, Observer, Tracker, TrackerConfig};
use flowscope::extract::FiveTuple;
use flowscope::{FlowTracker, FlowTrackerConfig};

use super::{FLOWGAUGE, FLOWSCOPE, MakeRow};
use crate::cases::{CLIENT, Random, SERVER, set_seq, tcp};
use crate::gopacket::Gopacket;
use crate::interleave::{Contender, Row};

/// Packets per step in the row of a million flows, which flowgauge tracks in batches.
const BATCH: usize = 32;

pub(super) fn rows() -> Vec<MakeRow> {
    let mut rows: Vec<MakeRow> = Vec::new();
    for (prefix, is_in_order) in [("", false), ("_in_order", true)] {
        for flow_count in [1, 10, 100, 1000, 10_000] {
            let id = if flow_count == 1 {
                format!("tracker/monoflow{prefix}")
            } else {
                format!("tracker/n_flows{prefix}/{flow_count}")
            };
            let make = move |gopacket: Option<&Gopacket>| {
                let frames = frames(flow_count);
                let mut contenders =
                    vec![ours(frames.clone(), is_in_order), flowscope_contender(frames.clone(), is_in_order)];
                if let Some(gopacket) = gopacket {
                    let work = if is_in_order { "track_in_order" } else { "track" };
                    contenders.push(gopacket.contender(work, &frames, flow_count as u64));
                }
                Row::new(contenders)
            };
            rows.push((id, Box::new(make)));
        }
    }
    for (name, is_batched, huge_pages) in [
        ("n_flows", true, false),
        ("n_flows_one_at_a_time", false, false),
        ("n_flows_one_at_a_time_in_huge_pages", false, true),
    ] {
        rows.push((format!("tracker/{name}/1000000"), Box::new(move |_| million(is_batched, huge_pages))));
    }
    rows
}

/// A segment of one octet for each flow, with different ports, and different addresses for each 50,000 flows.
fn frames(flow_count: usize) -> Vec<Vec<u8>> {
    let client = |flow: usize| {
        let [_, a, b, c] = (flow as u32 / 50_000).to_be_bytes();
        let address = Ipv4Addr::new(10, a, b.wrapping_add(1), c.wrapping_add(1));
        (if flow < 50_000 { CLIENT } else { address }, 10_000 + (flow % 50_000) as u16)
    };
    (0..flow_count).map(|flow| tcp(client(flow), (SERVER, 443), b"x")).collect()
}

/// Frames in turn, repeatedly. Their sequence numbers and timestamps advance if `is_in_order`.
struct Arrivals {
    frames: Vec<Vec<u8>>,
    next: usize,
    round: u32,
    nanos: u64,
    is_in_order: bool,
}

impl Arrivals {
    fn new(frames: Vec<Vec<u8>>, is_in_order: bool) -> Self {
        Self { frames, next: 0, round: 0, nanos: 1_000_000, is_in_order }
    }

    #[inline]
    fn next(&mut self) -> (u64, &[u8]) {
        let position = self.next;
        if self.is_in_order {
            set_seq(&mut self.frames[position], 1000_u32.wrapping_add(self.round));
            self.nanos += 700;
        }
        self.next += 1;
        if self.next == self.frames.len() {
            self.next = 0;
            self.round = self.round.wrapping_add(1);
        }
        (self.nanos, black_box(&self.frames[position]))
    }
}

/// Requests only the ends of flows.
struct Ends;

impl Observer<()> for Ends {
    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn ended(&mut self, _: &FlowView<'_>, reason: EndReason, (): ()) {
        panic!("no flow may end: {reason:?}");
    }
}

fn ours(frames: Vec<Vec<u8>>, is_in_order: bool) -> Contender {
    let flow_count = frames.len();
    let mut state =
        (Arrivals::new(frames, is_in_order), Extractor::default(), Tracker::<()>::default(), 0_u64);
    let step = |(arrivals, extractor, tracker, _): &mut (Arrivals, Extractor, Tracker<()>, u64)| {
        let (nanos, data) = arrivals.next();
        let mut packet = Packet::EMPTY;
        let frame = Frame::ethernet(Timestamp::from_nanos(nanos), data);
        if extractor.extract_into(&frame, &mut packet).is_ok() {
            tracker.track(&packet, &mut Ends);
        }
    };
    (0..flow_count).for_each(|_| step(&mut state));
    Contender::new(FLOWGAUGE, state, step, move |(_, _, tracker, _), done| {
        assert_eq!((tracker.len(), tracker.stats().packet_count), (flow_count, flow_count as u64 + done));
    })
}

fn theirs(flow_count: usize) -> FlowTracker<FiveTuple> {
    let mut config = FlowTrackerConfig::default();
    config.max_flows = config.max_flows.max(2 * flow_count);
    FlowTracker::with_config(FiveTuple::bidirectional(), config)
}

fn flowscope_contender(frames: Vec<Vec<u8>>, is_in_order: bool) -> Contender {
    let flow_count = frames.len();
    let mut state = (Arrivals::new(frames, is_in_order), theirs(flow_count));
    let step = |(arrivals, tracker): &mut (Arrivals, FlowTracker<FiveTuple>)| {
        let (nanos, data) = arrivals.next();
        let time = flowscope::Timestamp::new((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32);
        black_box(tracker.track(flowscope::PacketView::new(data, time)));
    };
    (0..flow_count).for_each(|_| step(&mut state));
    Contender::new(FLOWSCOPE, state, step, move |(_, tracker), done| {
        let stats = tracker.stats();
        assert_eq!((tracker.flow_count(), stats.flows_created), (flow_count, flow_count as u64), "{done}");
    })
}

/// A million flows, whose packets arrive in a random order, again and again. flowgauge tracks batches as its pipeline
/// does, or one packet at a time, and on request in huge pages, for which flowscope has no setting.
fn million(is_batched: bool, huge_pages: bool) -> Row {
    const FLOWS: usize = 1_000_000;
    /// The flows begin in another order than that of the packets measured. After that, the first lap allocates what
    /// flows with retransmissions need.
    const LAPS: usize = 3;
    // A multiple of a batch, so that each step has the same number of packets.
    const { assert!(FLOWS.is_multiple_of(BATCH)) };
    let order = Random(7).shuffled(FLOWS);
    let frames = frames(FLOWS);
    let arrival: Vec<Vec<u8>> = order.iter().map(|flow| frames[*flow].clone()).collect();
    let mut config = TrackerConfig::default();
    config.huge_pages = huge_pages;
    let tracker = Tracker::<()>::new(config, &Resources::default()).expect("a valid configuration");
    let mut state = (Arrivals::new(frames.clone(), false), Extractor::default(), tracker);
    let ours = move |(arrivals, extractor, tracker): &mut (Arrivals, Extractor, Tracker<()>)| {
        let end = arrivals.next + BATCH;
        let frames = arrivals.frames[arrivals.next..end].iter();
        let frames = frames.map(|data| Frame::ethernet(Timestamp::ZERO, black_box(data)));
        if is_batched {
            let mut packets = [Packet::EMPTY; BATCH];
            for (packet, frame) in packets.iter_mut().zip(frames) {
                extractor.extract_into(&frame, packet).expect("the frame contains a packet");
            }
            tracker.track_batch(&packets, &mut Ends);
        } else {
            for frame in frames {
                let packet = extractor.extract(&frame).expect("the frame contains a packet");
                tracker.track(&packet, &mut Ends);
            }
        }
        arrivals.next = if end == FLOWS { 0 } else { end };
    };
    let mut theirs_state = (Arrivals::new(frames, false), theirs(FLOWS));
    let theirs = |(arrivals, tracker): &mut (Arrivals, FlowTracker<FiveTuple>)| {
        for _ in 0..BATCH {
            let (_, data) = arrivals.next();
            black_box(tracker.track(flowscope::PacketView::new(data, flowscope::Timestamp::default())));
        }
    };
    for lap in 0..LAPS {
        for _ in 0..FLOWS / BATCH {
            ours(&mut state);
            theirs(&mut theirs_state);
        }
        if lap == 0 {
            state.0 = Arrivals::new(arrival.clone(), false);
            theirs_state.0 = Arrivals::new(arrival.clone(), false);
        }
    }
    let contenders = vec![
        Contender::new(FLOWGAUGE, state, ours, |(_, _, tracker), done| {
            let packet_count = (LAPS * FLOWS) as u64 + done * BATCH as u64;
            assert_eq!((tracker.len(), tracker.stats().packet_count), (FLOWS, packet_count));
        }),
        Contender::new(FLOWSCOPE, theirs_state, theirs, |(_, tracker), _| {
            assert_eq!((tracker.flow_count(), tracker.stats().flows_created), (FLOWS, FLOWS as u64));
        }),
    ];
    Row { per_step_count: BATCH as u64, contenders }
}
