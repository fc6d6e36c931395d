//! Requests that read all open flows or all kept packets. They are answered together, in steps of bounded length.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::Instant;

use bytes::Bytes;
use flowgauge::base::{EndReason, FlowKey};
use flowgauge::export::FixedRecord;
use flowgauge::record::SortKey;
use flowgauge::source::PcapngWriter;
use flowgauge::tracker::FlowView;
use flowgauge::{FlowScan, Interface, Pipeline, Sink};

use super::request::{Answer, Numbered, Request, not_found};
use crate::packet_ring::PacketRing;

/// Number of entries of the flow table, or of packets, between two looks at the clock.
const STEP_LEN: u32 = 32;

type Encoded = [u8; FixedRecord::LEN];

/// One pass over all open flows, and over the packets that are kept if a request needs them, for all requests that waited
/// when it began. Its work therefore does not depend on the number of requests.
pub(super) struct Tour {
    scan: FlowScan,
    by_id: BTreeMap<String, ById>,
    tops: Vec<Top>,
    slices: Option<Slices>,
}

/// The requests for the flows with one Community ID, and those that were found.
#[derive(Default)]
struct ById {
    records: Vec<u64>,
    slices: Vec<u64>,
    encoded: Vec<u8>,
    key: Option<FlowKey>,
}

/// The requests for the first flows of one order, and the first flows so far.
struct Top {
    key: SortKey,
    requests: Vec<(u64, usize)>,
    count_max: usize,
    first: BinaryHeap<Reverse<(u64, Encoded)>>,
}

/// The packets of the flows that requests selected.
struct Slices {
    by_key: HashMap<FlowKey, Slice>,
    /// Numbers of the next packet and of the one behind the last.
    next: u64,
    end: u64,
}

struct Slice {
    requests: Vec<u64>,
    writer: PcapngWriter<Vec<u8>>,
}

impl Tour {
    pub(super) fn new(requests: impl Iterator<Item = Numbered>) -> Self {
        let mut tour =
            Self { scan: FlowScan::default(), by_id: BTreeMap::new(), tops: Vec::new(), slices: None };
        for (number, request) in requests {
            match request {
                Request::CommunityId(id) => tour.by_id.entry(id).or_default().records.push(number),
                Request::Slice(id) => tour.by_id.entry(id).or_default().slices.push(number),
                Request::Top { count, key } => tour.top(number, count, key),
                Request::Key(_) | Request::Counters => {}
            }
        }
        tour
    }

    fn top(&mut self, number: u64, count: usize, key: SortKey) {
        let known = self.tops.iter().position(|top| top.key == key);
        let index = known.unwrap_or_else(|| {
            self.tops.push(Top { key, requests: Vec::new(), count_max: 0, first: BinaryHeap::new() });
            self.tops.len() - 1
        });
        if let Some(top) = self.tops.get_mut(index) {
            top.requests.push((number, count));
            top.count_max = top.count_max.max(count);
        }
    }

    /// Continues until the time `until`, at least for one step. Returns whether all requests are answered.
    pub(super) fn advance<K: Sink>(
        &mut self,
        pipeline: &Pipeline<K>,
        packets: Option<(&PacketRing, &[Interface])>,
        until: Instant,
        reply: &mut impl FnMut(u64, Answer),
    ) -> bool {
        while self.slices.is_none() {
            match pipeline.scan(&mut self.scan, STEP_LEN) {
                Some(flows) => flows.for_each(|(view, _)| self.flow(&view)),
                None => self.slices = Some(self.flows_done(packets, reply)),
            }
            if Instant::now() >= until {
                return false;
            }
        }
        let (Some(slices), Some((ring, interfaces))) = (&mut self.slices, packets) else { return true };
        while slices.advance(ring, interfaces) {
            if Instant::now() >= until {
                return false;
            }
        }
        for slice in std::mem::take(&mut slices.by_key).into_values() {
            // Writing to memory fails for no frame of a capture.
            let file = Bytes::from(slice.writer.finish().unwrap_or_default());
            slice.requests.into_iter().for_each(|number| reply(number, ("ok", file.clone())));
        }
        true
    }

    fn flow(&mut self, view: &FlowView<'_>) {
        let encode = || FixedRecord::encode(&view.record(EndReason::ActiveTimeout));
        if !self.by_id.is_empty()
            && let Some(wanted) = self.by_id.get_mut(view.community_id().as_str())
        {
            wanted.encoded.extend_from_slice(&encode());
            wanted.key.get_or_insert(*view.key());
        }
        for top in &mut self.tops {
            if let Some(value) = view.sort_value(top.key) {
                top.offer(value, encode);
            }
        }
    }

    /// Answers the requests that need no packets, and begins the search for the packets of the others.
    fn flows_done(
        &mut self,
        packets: Option<(&PacketRing, &[Interface])>,
        reply: &mut impl FnMut(u64, Answer),
    ) -> Slices {
        for top in self.tops.drain(..) {
            top.answer(reply);
        }
        let range = packets.map_or(0..0, |(ring, _)| ring.numbers());
        let mut slices = Slices { by_key: HashMap::new(), next: range.start, end: range.end };
        for wanted in std::mem::take(&mut self.by_id).into_values() {
            let found = Bytes::from(wanted.encoded);
            let answer = if found.is_empty() { not_found() } else { ("ok", found) };
            wanted.records.into_iter().for_each(|number| reply(number, answer.clone()));
            if wanted.slices.is_empty() {
                continue;
            }
            let writer = PcapngWriter::new(Vec::new());
            match (packets, wanted.key, writer) {
                (Some(_), Some(key), Ok(writer)) => {
                    slices.by_key.insert(key, Slice { requests: wanted.slices, writer });
                }
                (None, ..) => {
                    let answer = ("error", Bytes::from_static(b"the program keeps no packets"));
                    wanted.slices.into_iter().for_each(|number| reply(number, answer.clone()));
                }
                _ => wanted.slices.into_iter().for_each(|number| reply(number, not_found())),
            }
        }
        slices
    }
}

impl Top {
    fn offer(&mut self, value: u64, encode: impl FnOnce() -> Encoded) {
        if self.first.len() < self.count_max {
            self.first.push(Reverse((value, encode())));
        } else if let Some(mut last) = self.first.peek_mut()
            && last.0.0 < value
        {
            *last = Reverse((value, encode()));
        }
    }

    fn answer(self, reply: &mut impl FnMut(u64, Answer)) {
        // The order of a heap of reversed values: the greatest first.
        let records: Vec<u8> =
            self.first.into_sorted_vec().into_iter().flat_map(|Reverse((_, encoded))| encoded).collect();
        let records = Bytes::from(records);
        for (number, count) in self.requests {
            let len = records.len().min(count.saturating_mul(FixedRecord::LEN));
            reply(number, ("ok", records.slice(..len)));
        }
    }
}

impl Slices {
    /// Reads some packets. Returns whether there are more.
    fn advance(&mut self, ring: &PacketRing, interfaces: &[Interface]) -> bool {
        if self.by_key.is_empty() {
            return false;
        }
        // Packets that were replaced meanwhile are skipped.
        let start = self.next.max(ring.numbers().start);
        self.next = (start + u64::from(STEP_LEN)).min(self.end);
        for (frame, key) in ring.packets(start..self.next) {
            if let Some(slice) = self.by_key.get_mut(&key) {
                // Writing to memory fails for no frame of a capture.
                let _ = slice.writer.write(&frame, interfaces);
            }
        }
        self.next < self.end
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use flowgauge::base::{Frame, Timestamp};
    use flowgauge::{FileSource, KeyPolicy, records};

    use super::*;

    const FLOW_COUNT: u16 = 1000;

    /// A UDP datagram of a flow, in Ethernet and IPv4.
    fn datagram(flow: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([&flow.to_be_bytes()[..], &[0, 53, 0, 8, 0, 0]].concat());
        frame
    }

    /// A pipeline and a ring with 1000 flows, of which flow N has N % 7 + 1 packets.
    fn state() -> (Pipeline<()>, PacketRing) {
        let mut pipeline = Pipeline::builder().build(()).unwrap();
        let mut ring = PacketRing::new(8 << 20, KeyPolicy::DEFAULT);
        for round in 0..7 {
            for flow in (0..FLOW_COUNT).filter(|flow| flow % 7 >= round) {
                let data = datagram(1000 + flow);
                let frame = Frame::ethernet(Timestamp::from_nanos(u64::from(round) * 1_000_000), &data);
                pipeline.frame(&frame);
                ring.push(&frame);
            }
        }
        (pipeline, ring)
    }

    /// Answers requests with a clock that is always late. Returns the answers and the number of steps.
    fn run(pipeline: &Pipeline<()>, ring: &PacketRing, requests: &[Request]) -> (Vec<Answer>, u32) {
        let numbered = requests.iter().cloned().enumerate().map(|(at, request)| (at as u64, request));
        let (mut tour, mut steps) = (Tour::new(numbered), 1);
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        let late = Instant::now();
        while !tour.advance(pipeline, Some((ring, &[])), late, &mut |number, answer| {
            assert!(answers[number as usize].replace(answer).is_none(), "one answer for each request");
        }) {
            steps += 1;
        }
        (answers.into_iter().map(Option::unwrap).collect(), steps)
    }

    #[test]
    fn steps_are_short_and_one_pass_answers_all_requests() {
        let (pipeline, ring) = state();
        let ids: Vec<_> = pipeline.flows().map(|(view, _)| view.community_id().as_str().to_owned()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), usize::from(FLOW_COUNT));
        let mut requests = vec![
            Request::Top { count: 10, key: SortKey::Packets },
            Request::Top { count: 5000, key: SortKey::Packets },
            Request::Top { count: 3, key: SortKey::Start },
            Request::CommunityId("1:absent".to_owned()),
            Request::Slice("1:absent".to_owned()),
        ];
        requests.extend(ids.iter().take(30).cloned().map(Request::CommunityId));
        requests.extend(ids.iter().take(30).cloned().map(Request::Slice));
        let (answers, steps) = run(&pipeline, &ring, &requests);
        // The flow table has no more entries than twice its flows, and each step is one of 32 entries or packets.
        let packet_count = ring.frame_count() as u32;
        assert!(steps <= (2 * u32::from(FLOW_COUNT) + packet_count) / STEP_LEN + 4, "{steps}");
        assert!(steps >= (u32::from(FLOW_COUNT) + packet_count) / STEP_LEN, "{steps}");
        let (_, fewer) = run(&pipeline, &ring, &requests[3..4]);
        assert!(fewer > steps / 8, "the work for one request is that for all without slices: {fewer}");

        let counts = |answer: &Answer| -> Vec<u64> {
            FixedRecord::all(&answer.1).map(|record| record.unwrap().packet_count()).collect()
        };
        let mut expected: Vec<_> = pipeline.flows().map(|(view, _)| view.packet_count()).collect();
        expected.sort_unstable_by_key(|count| Reverse(*count));
        assert_eq!(counts(&answers[1]), expected);
        assert_eq!(counts(&answers[0]), expected[..10]);
        assert_eq!(counts(&answers[2]).len(), 3);
        for absent in &answers[3..5] {
            assert_eq!(*absent, not_found());
        }
        for (id, (by_id, slice)) in ids.iter().zip(answers[5..35].iter().zip(&answers[35..])) {
            let (view, _) = pipeline.flows().find(|(view, _)| view.community_id().as_str() == id).unwrap();
            let record = view.record(EndReason::ActiveTimeout);
            assert_eq!(by_id.1, FixedRecord::encode(&record).as_slice());
            let file = FileSource::from_reader(std::io::Cursor::new(slice.1.to_vec())).unwrap();
            let sliced: Vec<_> = records(file).map(Result::unwrap).collect();
            assert_eq!(sliced.len(), 1);
            assert_eq!((sliced[0].key, sliced[0].packet_count()), (record.key, record.packet_count()));
        }
    }

    #[test]
    fn packets_that_are_replaced_during_a_pass_are_skipped() {
        let (pipeline, _) = state();
        let mut ring = PacketRing::new(42 * 200, KeyPolicy::DEFAULT);
        let data = datagram(1000);
        let push = |ring: &mut PacketRing, count: u64| {
            (0..count).for_each(|at| ring.push(&Frame::ethernet(Timestamp::from_nanos(at), &data)));
        };
        push(&mut ring, 200);
        let (view, _) =
            pipeline.flows().find(|(view, _)| view.key().port(flowgauge::Side::A) == Some(1000)).unwrap();
        let id = view.community_id().as_str().to_owned();
        let mut tour = Tour::new([(7, Request::Slice(id))].into_iter());
        let (late, mut answer) = (Instant::now(), None);
        for _ in 0..10_000 {
            let is_done = tour.advance(&pipeline, Some((&ring, &[])), late, &mut |number, found| {
                answer = Some((number, found));
            });
            if is_done {
                break;
            }
            push(&mut ring, 50);
        }
        let (number, (status, _)) = answer.unwrap();
        assert_eq!((number, status), (7, "ok"));
    }
}
