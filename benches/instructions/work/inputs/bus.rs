//! Messages of publishers, and requests about live flows.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flowgauge::base::{Frame, Limits, Resources, Timestamp};
use flowgauge::export::FixedRecord;
use flowgauge::{FlowKey, FlowRecord, KeyPolicy, Pipeline};
use flowgauge_bus::{Answers, Encoding, Header, PacketRing, Request, Tracking};

use super::feed::INPUT_LEN;
use crate::SEEDS;
use crate::cases::{CLIENT, SERVER, udp};

/// Octets that ZMTP adds to each of the three frames of a message.
const FRAME_HEADER_LEN: usize = 2;

/// Octets of a message on the network apart from topic and payload.
const MESSAGE_LEN: usize = 3 * FRAME_HEADER_LEN + Header::LEN;

/// Topic, header and payload.
type Frames = (Bytes, [u8; Header::LEN], Bytes);

/// A subscriber, and messages.
pub(crate) struct Subscribing {
    tracking: Tracking,
    messages: Vec<Frames>,
}

pub(crate) fn subscribing(make: fn() -> Vec<Frames>) -> Subscribing {
    Subscribing { tracking: Tracking::with_seed(SEEDS[0]), messages: make() }
}

impl Subscribing {
    pub(crate) fn receive(mut self) -> Self {
        for (topic, header, payload) in &self.messages {
            if let Some(batch) = self.tracking.message(topic.clone(), black_box(header), payload.clone()) {
                for record in batch.records() {
                    black_box(record.expect("a record").to_record());
                }
                black_box(batch.lines().map(str::len).sum::<usize>());
            }
        }
        self
    }

    pub(crate) fn received(self) {
        let stats = self.tracking.stats();
        assert_eq!(stats.message_count + stats.malformed_count, self.messages.len() as u64);
    }
}

/// As many messages as fit the input. `make` returns topic, connection, encoding, number of records, and payload.
fn filled(mut make: impl FnMut(u64) -> (Vec<u8>, u64, Encoding, u32, Vec<u8>)) -> Vec<Frames> {
    let (mut messages, mut len) = (Vec::new(), 0);
    for number in 0.. {
        let (topic, stream, encoding, record_count, payload) = make(number);
        len += MESSAGE_LEN + topic.len() + payload.len();
        if len > INPUT_LEN {
            break;
        }
        let header =
            Header { encoding, is_last: false, record_count, stream, sequence: number, position: number };
        messages.push((topic.into(), header.encode(), payload.into()));
    }
    messages
}

/// 16 records in each message.
pub(crate) fn records() -> Vec<Frames> {
    let ends =
        ("192.0.2.1:1000".parse().expect("an address"), "198.51.100.2:53".parse().expect("an address"));
    let (key, initiator) = FlowKey::udp(ends.0, ends.1);
    let record = FixedRecord::encode(&FlowRecord::new(key, initiator, Timestamp::from_nanos(7)));
    filled(|_| (b"flow.end".to_vec(), 1, Encoding::Records, 16, record.repeat(16)))
}

/// Lines of three octets.
pub(crate) fn short_lines() -> Vec<Frames> {
    filled(|_| (b"flow.end".to_vec(), 1, Encoding::Ndjson, 300, b"{}\n".repeat(300)))
}

/// Messages with one line and the shortest topic.
pub(crate) fn short_messages() -> Vec<Frames> {
    filled(|_| (Vec::new(), 1, Encoding::Ndjson, 1, b"\n".to_vec()))
}

/// Each message on another topic, of another connection.
pub(crate) fn new_topics() -> Vec<Frames> {
    filled(|number| (number.to_string().into_bytes(), number, Encoding::Ndjson, 1, b"\n".to_vec()))
}

/// Payloads of another length than the header states.
pub(crate) fn contradictions() -> Vec<Frames> {
    filled(|number| (b"t".to_vec(), 1, Encoding::Ndjson, number as u32 + 2, vec![b'\n'; 40]))
}

/// Number of open flows while requests are answered.
const FLOW_COUNT: u16 = 64;

/// Number of passes over the flows. The rows have an equal number of passes, not of octets: the work of a pass depends on
/// the flows, and hardly on the requests that it answers.
const PASS_COUNT: usize = 20;

/// Number of requests that a pass answers in the other rows.
const REQUEST_COUNT: usize = 64;

/// A pipeline with flows, and requests.
pub(crate) struct Answering {
    pipeline: Pipeline<()>,
    ring: PacketRing,
    requests: Vec<Request>,
    answer_count: usize,
}

/// The text of requests, for a pipeline.
type Make = fn(&Pipeline<()>) -> Vec<String>;

pub(crate) fn answering((make, count): (Make, usize)) -> Answering {
    let resources = Resources::new(Limits::DEFAULT).with_seeds(SEEDS);
    let mut pipeline = Pipeline::builder().resources(resources).build(()).expect("a valid configuration");
    let mut ring = PacketRing::new(64 << 10, KeyPolicy::DEFAULT);
    for port in 0..FLOW_COUNT {
        let data = udp((CLIENT, 1000 + port), (SERVER, 53), &[0; 40]);
        let frame = Frame::ethernet(Timestamp::from_nanos(port.into()), &data);
        pipeline.frame(&frame);
        ring.push(&frame);
    }
    let texts = make(&pipeline);
    let requests = texts.iter().cycle().take(count).map(|text| text.parse().expect("a request")).collect();
    Answering { pipeline, ring, requests, answer_count: 0 }
}

impl Answering {
    pub(crate) fn answer(mut self) -> Self {
        let mut answers = Answers::new(REQUEST_COUNT);
        let until = Instant::now() + Duration::from_secs(3600);
        for _ in 0..PASS_COUNT {
            let requests = self.requests.iter().map(|request| black_box(request).clone());
            let count = &mut self.answer_count;
            answers.step(
                (0..).zip(requests),
                &self.pipeline,
                Some((&self.ring, &[])),
                until,
                &mut |_, answer| {
                    black_box(answer);
                    *count += 1;
                },
            );
        }
        self
    }

    pub(crate) fn all_answered(self) {
        assert_eq!(self.answer_count, PASS_COUNT * self.requests.len());
    }
}

fn ids(pipeline: &Pipeline<()>) -> impl Iterator<Item = String> {
    pipeline.flows().map(|(view, _)| view.key().community_id(0).as_str().to_owned())
}

pub(crate) fn ids_of_flows(pipeline: &Pipeline<()>) -> Vec<String> {
    ids(pipeline).map(|id| format!("community_id {id}")).collect()
}

/// Identifiers of no flow.
pub(crate) fn unknown_ids(_: &Pipeline<()>) -> Vec<String> {
    (0..1000).map(|number| format!("community_id {number}")).collect()
}

/// All flows, in all orders.
pub(crate) fn tops(_: &Pipeline<()>) -> Vec<String> {
    flowgauge::record::SortKey::ALL.iter().map(|key| format!("top 65536 {}", key.name())).collect()
}

/// The packets of all flows.
pub(crate) fn slices(pipeline: &Pipeline<()>) -> Vec<String> {
    ids(pipeline).map(|id| format!("slice {id}")).collect()
}
