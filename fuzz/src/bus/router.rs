//! Requests to a router between packets, in steps of any length: each request is answered once or, if too many wait, not
//! at all, and its answer is that of the flows when no packet arrives in between.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::{EndReason, Frame, Limits, Resources, Timestamp};
use flowgauge::export::FixedRecord;
use flowgauge::{KeyPolicy, Pipeline};
use flowgauge_bus::{Answers, PacketRing, Request};

use crate::targets::input::{Octets, items, structured};

const REQUEST_COUNT_MAX: usize = 8;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// A UDP datagram between hosts and ports.
    Packet {
        hosts: (u8, u8),
        ports: (u8, u8),
        len: u8,
    },
    /// Time passes.
    Pause(u8),
    /// The text of a request.
    Text(Octets<'a>),
    /// A request for the flow with a number in the table.
    Flow {
        number: u8,
        is_slice: bool,
    },
    Top {
        count: u16,
        key: u8,
    },
    /// Work, until the end or for one step.
    Work {
        is_complete: bool,
    },
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    ring_len: u16,
    has_ring: bool,
    #[arbitrary(with = steps)]
    steps: Vec<Step<'a>>,
}

fn steps<'a>(u: &mut Unstructured<'a>) -> Result<Vec<Step<'a>>> {
    items(u, 300)
}

fn datagram((source, destination): (u8, u8), ports: (u8, u8), len: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let total = 28 + u16::from(len);
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source % 16, 10, 0, 1, destination % 4]);
    frame.extend([0, ports.0 % 16, 0, ports.1 % 16]);
    frame.extend((total - 20).to_be_bytes());
    frame.resize(14 + usize::from(total) + 2, 0);
    frame
}

/// Checks an answer against the flows that are open now.
fn check(request: &Request, (status, content): &(&'static str, bytes::Bytes), pipeline: &Pipeline<()>) {
    let records: Vec<_> =
        pipeline.flows().map(|(view, _)| (view, view.record(EndReason::ActiveTimeout))).collect();
    let of_id = |id: &str| -> Vec<u8> {
        let matching = records.iter().filter(|(view, _)| view.community_id().as_str() == id);
        matching.flat_map(|(_, record)| FixedRecord::encode(record)).collect()
    };
    match request {
        Request::CommunityId(id) => {
            let expected = of_id(id);
            assert_eq!(*status == "ok", !expected.is_empty());
            assert!(expected.is_empty() || **content == *expected);
        }
        Request::Top { count, key } => {
            let value = |octets: &[u8]| {
                let found = records.iter().find(|(_, record)| FixedRecord::encode(record) == *octets);
                found
                    .and_then(|(view, _)| view.sort_value(*key))
                    .expect("a record of an open flow with a value")
            };
            let values: Vec<_> = content.chunks(FixedRecord::LEN).map(value).collect();
            let mut expected: Vec<_> = records.iter().filter_map(|(view, _)| view.sort_value(*key)).collect();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            expected.truncate(*count);
            assert_eq!((*status, values), ("ok", expected));
        }
        Request::Key(key) => assert_eq!(*status == "ok", pipeline.find(key).is_some()),
        Request::Slice(_) | Request::Counters => {}
        _ => unreachable!("all requests are checked"),
    }
}

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = 64;
    let builder = Pipeline::builder().resources(Resources::new(limits));
    let mut pipeline = builder.build(()).expect("a valid configuration");
    let mut ring = PacketRing::new(usize::from(input.ring_len), KeyPolicy::DEFAULT);
    let mut answers = Answers::new(REQUEST_COUNT_MAX);
    let mut now = Timestamp::from_nanos(1_000_000_000);
    let mut open: BTreeMap<u64, Request> = BTreeMap::new();
    let (mut next, mut waiting) = (0_u64, Vec::new());
    let mut is_unchanged = true;
    for step in &input.steps {
        let request = match step {
            Step::Packet { hosts, ports, len } => {
                now = now.saturating_add(Duration::from_millis(1));
                let octets = datagram(*hosts, *ports, *len);
                let frame = Frame::ethernet(now, &octets);
                pipeline.frame(&frame);
                ring.push(&frame);
                is_unchanged = open.is_empty();
                None
            }
            Step::Pause(seconds) => {
                now = now.saturating_add(Duration::from_secs(u64::from(*seconds)));
                pipeline.advance(now);
                is_unchanged = open.is_empty();
                None
            }
            Step::Text(text) => String::from_utf8_lossy(text.0).parse::<Request>().ok(),
            Step::Flow { number, is_slice } => {
                let view = pipeline.flows().nth(usize::from(*number)).map(|(view, _)| *view.key());
                view.map(|key| {
                    let id = key.community_id(0).as_str().to_owned();
                    if *is_slice { Request::Slice(id) } else { Request::CommunityId(id) }
                })
            }
            Step::Top { count, key } => {
                let keys = flowgauge::record::SortKey::ALL;
                let key = keys[usize::from(*key) % keys.len()];
                Some(Request::Top { count: usize::from(*count).max(1), key })
            }
            Step::Work { is_complete } => {
                let until = Instant::now() + Duration::from_secs(if *is_complete { 3600 } else { 0 });
                let packets = input.has_ring.then_some((&ring, &[][..]));
                answers.step(waiting.drain(..), &pipeline, packets, until, &mut |number, answer| {
                    let request: Request = open.remove(&number).expect("one answer for each request");
                    if is_unchanged {
                        check(&request, &answer, &pipeline);
                    }
                });
                if answers.is_idle() {
                    // Those that waited too long are not answered.
                    open.clear();
                    is_unchanged = true;
                }
                None
            }
        };
        if let Some(request) = request {
            let text = request.to_string();
            assert_eq!(text.parse::<Request>().as_ref(), Ok(&request), "{text}");
            if waiting.len() < REQUEST_COUNT_MAX {
                waiting.push((next, request.clone()));
                open.insert(next, request);
                next += 1;
            }
        }
    }
}
