//! The iterator over records yields the records that a sink receives, in the same order; it holds no more of them than
//! necessary, and yields an error of the source as its last item.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use etherparse::PacketBuilder;
use flowgauge::base::{Account, EndReason, FlowKey, Frame, FrameBatch, Limits, Timestamp};
use flowgauge::source;
use flowgauge::source::End;
use flowgauge::tracker::{Timeouts, TrackerConfig};
use flowgauge::{
    Builder, DedupConfig, Error, ErrorPolicy, FileSource, FlowRecord, FlowView, Flows, Next, Pipeline,
    RecordIter, Records, RunOptions, Sink, Source, StopHandle, records,
};

use crate::fn_source::FnSource;

const CAPTURES: [&str; 8] = [
    "any.pcap",
    "dns.pcap",
    "lossy.pcap",
    "mail.pcap",
    "raw-tun.pcap",
    "ssh.pcap",
    "vlan.pcapng",
    "web.pcap",
];

fn capture(name: &str) -> FileSource {
    FileSource::open(PathBuf::from("examples/data").join(name)).expect("a capture")
}

/// Returns the records that a sink receives, and the result of the run.
fn records_of_sink(builder: &Builder, mut source: impl Source) -> (Vec<FlowRecord>, Result<(), Error>) {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    let outcome = pipeline.run(&mut source, &RunOptions::default()).map(|_| ());
    drop(pipeline);
    (records, outcome)
}

/// Adds datagrams of new flows, one per number, one millisecond apart.
fn push(batch: &mut FrameBatch, numbers: impl Iterator<Item = u16>) {
    for number in numbers {
        let [high, low] = number.to_be_bytes();
        let mut frame = Vec::new();
        let ends = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, high, low], [192, 0, 2, 1], 64);
        ends.udp(4000, 53).write(&mut frame, b"question").expect("a valid packet");
        batch.push(&Frame::ethernet(at(number), &frame));
    }
}

fn at(number: u16) -> Timestamp {
    Timestamp::from_parts(1000, 0).saturating_add(Duration::from_millis(number.into()))
}

fn source_error() -> source::Error {
    source::Error::Io { path: PathBuf::from("network"), error: io::Error::other("gone").into() }
}

/// Returns a source of batches of new flows, which then returns the results of a function.
fn flows_then(
    batch_count: u16,
    flow_count: u16,
    mut end: impl FnMut(&mut FrameBatch) -> Result<Next, source::Error> + Send,
) -> impl Source {
    let mut number = 0;
    FnSource(move |batch: &mut FrameBatch| {
        if number == batch_count {
            return end(batch);
        }
        push(batch, number * flow_count..(number + 1) * flow_count);
        number += 1;
        Ok(Next::Frames)
    })
}

/// Collects all records of an iterator that yields no error.
fn all_records<S: Source>(iter: RecordIter<S>) -> Vec<FlowRecord> {
    iter.collect::<Result<_, _>>().expect("a readable source")
}

#[test]
fn an_iterator_yields_the_records_that_a_sink_receives() {
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = 5;
    let settings = [
        ("defaults", Pipeline::builder()),
        ("active timeout", Pipeline::builder().active_timeout(Duration::from_millis(50))),
        ("evictions", Pipeline::builder().limits(limits)),
        ("filter and deduplication", {
            let filter = "tcp or port 53".parse().expect("a filter");
            Pipeline::builder().filter(filter).dedup(DedupConfig::default()).encapsulation(true)
        }),
    ];
    for name in CAPTURES {
        assert_eq!(
            all_records(records(capture(name))),
            records_of_sink(&settings[0].1, capture(name)).0,
            "{name}"
        );
        for (what, builder) in &settings {
            let (wanted, _) = records_of_sink(builder, capture(name));
            let found = all_records(builder.records(capture(name)).expect("a valid configuration"));
            assert_eq!(found, wanted, "{name}, {what}");
            assert_eq!(builder.budget().held(), 0);
        }
    }
    // Several batches, so that records are emitted while the source is read.
    for batch_len in [2000, 50_000] {
        let mut limits = Limits::DEFAULT;
        (limits.batch_len, limits.flow_count_max) = (batch_len, 5);
        let source = || FileSource::open_with("examples/data/web.pcap", limits).expect("a capture");
        let builder = Pipeline::builder().limits(limits);
        assert_eq!(
            all_records(builder.records(source()).expect("valid")),
            records_of_sink(&builder, source()).0
        );
    }
}

#[test]
fn errors_of_a_source_are_items_between_records_if_the_run_continues() {
    let source = || {
        let mut results =
            [Err(source_error()), Ok(Next::Idle(Timestamp::ZERO)), Err(source_error())].into_iter();
        flows_then(2, 3, move |batch| {
            batch.clear();
            results.next().unwrap_or(Ok(Next::End(End::Complete)))
        })
    };
    let kinds = |policy| {
        let iter = records(source()).options(RunOptions::default().error_policy(policy));
        iter.map(|item| item.is_ok()).collect::<Vec<_>>()
    };
    let count = |items: &[bool], is_record| items.iter().filter(|item| **item == is_record).count();
    let continued = kinds(ErrorPolicy::Continue);
    assert_eq!((count(&continued, true), count(&continued, false)), (6, 2));
    let ended = kinds(ErrorPolicy::End);
    assert_eq!((count(&ended, true), count(&ended, false), ended.last()), (6, 1, Some(&false)));
}

#[test]
fn a_source_that_fails_permanently_ends_an_iterator() {
    let source = FnSource(|batch: &mut FrameBatch| {
        batch.clear();
        Err(source_error())
    });
    let iter = records(source).options(RunOptions::default().error_policy(ErrorPolicy::Continue));
    assert_eq!(iter.take(100_000).filter(Result::is_err).count(), (1 << 16) + 1);
}

#[test]
fn a_stop_handle_ends_an_iterator_with_the_records_of_its_open_flows() {
    let stop = StopHandle::new();
    let handle = stop.clone();
    let mut batch_count = 0;
    let source = FnSource(move |batch: &mut FrameBatch| {
        batch_count += 1;
        assert!(batch_count <= 2, "the source is not read any more");
        push(batch, batch_count * 10..batch_count * 10 + 10);
        if batch_count == 2 {
            handle.stop();
        }
        Ok(Next::Frames)
    });
    let mut iter = records(source).options(RunOptions::default().stop(stop));
    assert_eq!(iter.by_ref().filter(Result::is_ok).count(), 20);
    assert!(iter.next().is_none());
}

#[test]
fn counters_of_an_iterator_equal_those_of_a_pipeline() {
    let mut iter = records(capture("web.pcap"));
    let packet_count: u64 = iter.by_ref().map(|record| record.expect("a readable file").packet_count()).sum();
    let stats = iter.stats();
    assert_eq!((stats.tracker.packet_count, stats.tracker.ended_count()), (packet_count, 27));
    assert_eq!(stats.frame_count, packet_count + stats.skipped.total());
}

#[test]
fn an_error_of_the_source_is_the_last_item() {
    for has_frames in [false, true] {
        let source = || {
            flows_then(3, 10, move |batch| {
                // Frames that were read before the error.
                push(batch, 30..if has_frames { 35 } else { 30 });
                Err(source_error())
            })
        };
        let items: Vec<_> = records(source()).collect();
        let (last, before) = items.split_last().expect("items");
        assert!(matches!(last, Err(Error::Source(error)) if error.to_string() == source_error().to_string()));
        let before: Vec<_> = before.iter().map(|item| item.as_ref().expect("one error").clone()).collect();
        assert_eq!(before.len(), if has_frames { 35 } else { 30 });

        let (wanted, outcome) = records_of_sink(&Pipeline::builder(), source());
        assert_eq!(before, wanted);
        assert!(matches!(outcome, Err(Error::Source(_))));
    }
}

#[test]
fn an_error_is_yielded_once_as_the_last_item() {
    let call_count = AtomicUsize::new(0);
    let mut iter = records(FnSource(|_: &mut FrameBatch| {
        call_count.fetch_add(1, Relaxed);
        Err(source_error())
    }));
    assert!(matches!(iter.next(), Some(Err(Error::Source(_)))));
    assert!((0..3).all(|_| iter.next().is_none()));
    assert_eq!(call_count.load(Relaxed), 1, "the source is not read again");
    assert_eq!(iter.stats().frame_count, 0);

    let mut iter = records(capture("dns.pcap"));
    assert!(iter.by_ref().count() > 0);
    assert!((0..3).all(|_| iter.next().is_none()));
}

/// A capture that ends within a frame is not an error: the source reports a warning.
#[test]
fn a_truncated_capture_yields_the_records_of_its_complete_frames() {
    let octets = std::fs::read("examples/data/dns.pcap").expect("a capture");
    let truncated = octets[..octets.len() - 7].to_vec();
    let mut source = FileSource::from_reader(io::Cursor::new(truncated)).expect("a capture");
    let mut iter = records(&mut source);
    let packet_count: u64 = iter.by_ref().map(|record| record.expect("no error").packet_count()).sum();
    let stats = iter.stats();
    drop(iter);
    assert_eq!((source.warnings().len(), source.stats().frame_count), (1, stats.frame_count));
    assert_eq!(stats.frame_count, packet_count + stats.skipped.total());
}

#[test]
fn flows_open_at_the_end_are_ended_one_by_one() {
    const COUNT: u16 = 400;
    let mut iter = records(flows_then(4, COUNT / 4, |_| Ok(Next::End(End::Complete))));
    assert_eq!(iter.stats().tracker.started_count, 0, "nothing is read before the first call");
    for number in 0..COUNT {
        let record = iter.next().expect("a record").expect("no error");
        assert_eq!((record.start, record.flow_end_reason), (at(number), EndReason::ForcedEnd));
        let tracker = iter.stats().tracker;
        assert_eq!((tracker.started_count, tracker.ended_count()), (COUNT.into(), u64::from(number) + 1));
    }
    assert!(iter.next().is_none());
}

/// Records of ended flows are emitted before the next batch is read.
#[test]
fn no_more_than_the_records_of_one_batch_are_held() {
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = 10;
    let call_count = AtomicUsize::new(0);
    let source = FnSource(|batch: &mut FrameBatch| {
        let number = call_count.fetch_add(1, Relaxed) as u16;
        push(batch, number * 10..(number + 1) * 10);
        Ok(Next::Frames)
    });
    // The source has no end.
    let mut iter = Pipeline::builder().limits(limits).records(source).expect("a valid configuration");
    for number in 0..200_u16 {
        // The first batch fills the table, and each later batch evicts all flows of the previous one.
        let record = iter.next().expect("a record").expect("no error");
        assert_eq!(record.flow_end_reason, EndReason::LackOfResources);
        assert_eq!(call_count.load(Relaxed), 2 + usize::from(number) / 10);
    }
}

/// The clock of an idle source ends flows.
#[test]
fn flows_time_out_while_the_source_is_idle() {
    let mut call_count = 0;
    let source = FnSource(move |batch: &mut FrameBatch| {
        call_count += 1;
        match call_count {
            1 => push(batch, 0..5),
            2 => return Ok(Next::Idle(at(10))),
            3 => return Ok(Next::Idle(at(0).saturating_add(Duration::from_secs(1000)))),
            // An interruption, without frames and without a time.
            4 => {}
            5 => push(batch, 5..7),
            _ => return Ok(Next::End(End::Complete)),
        }
        Ok(Next::Frames)
    });
    let reasons: Vec<_> = all_records(records(source)).iter().map(|record| record.flow_end_reason).collect();
    assert_eq!(reasons[..5], [EndReason::IdleTimeout; 5]);
    assert_eq!(reasons[5..], [EndReason::ForcedEnd; 2]);
}

#[test]
fn an_iterator_that_is_dropped_releases_its_memory() {
    let builder = Pipeline::builder();
    let mut iter = builder.records(capture("web.pcap")).expect("a valid configuration");
    assert!(iter.next().is_some());
    assert!(builder.budget().held_by(Account::Flows) > 0);
    drop(iter);
    assert_eq!(builder.budget().held(), 0);
    // Boxed and borrowed sources work as well.
    let boxed: Box<dyn Source> = Box::new(capture("dns.pcap"));
    let mut borrowed = capture("dns.pcap");
    assert_eq!(all_records(records(boxed)), all_records(records(&mut borrowed)));
}

/// The calls of a sink, in order.
#[derive(Default)]
struct Calls(Vec<(&'static str, FlowKey, EndReason)>);

impl Sink for Calls {
    type State = ();
    type Stage = Flows;

    fn record(&mut self, flow: &mut flowgauge::Flow<'_, ()>, reason: EndReason) {
        self.0.push(("record", *flow.view.key(), reason));
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.0.push(("ended", *flow.key(), reason));
    }
}

/// `end_next` ends the same flows as `finish`, in the same order, also if frames arrive in between.
#[test]
fn end_next_ends_the_same_flows_as_finish() {
    let all = {
        let (mut batch, mut all) = (FrameBatch::new(), FrameBatch::new());
        let mut source = capture("web.pcap");
        while source.next_batch(&mut batch).expect("a readable file") == Next::Frames {
            batch.iter().for_each(|frame| all.push(&frame));
        }
        all
    };
    let calls = |end: &dyn Fn(&mut Pipeline<Calls>)| {
        let mut pipeline = Pipeline::builder().build(Calls::default()).expect("a valid configuration");
        let _ = pipeline.batch(&all);
        end(&mut pipeline);
        assert_eq!(pipeline.flow_count(), 0);
        pipeline.check_invariants();
        pipeline.into_sink().0
    };
    let finished = calls(&|pipeline| pipeline.finish());
    let one_by_one = calls(&|pipeline| {
        while pipeline.flow_count() > 0 {
            let (count, ended_count) = (pipeline.flow_count(), pipeline.stats().tracker.ended_count());
            assert!(pipeline.end_next());
            assert_eq!(pipeline.flow_count(), count - 1);
            assert_eq!(pipeline.stats().tracker.ended_count(), ended_count + 1);
        }
        assert!(!pipeline.end_next() && !pipeline.end_next());
    });
    assert_eq!(one_by_one, finished);
    let mixed = calls(&|pipeline| {
        assert!(pipeline.end_next() && pipeline.end_next());
        pipeline.finish();
    });
    assert_eq!(mixed, finished);

    // A flow that starts in between is also ended.
    let mut pipeline = Pipeline::builder().build(Calls::default()).expect("a valid configuration");
    let mut batch = FrameBatch::new();
    push(&mut batch, 0..3);
    let _ = pipeline.batch(&batch);
    assert!(pipeline.end_next());
    batch.clear();
    push(&mut batch, 7..9);
    let _ = pipeline.batch(&batch);
    while pipeline.end_next() {}
    assert_eq!((pipeline.flow_count(), pipeline.sink().0.len()), (0, 2 * 5));
}

/// A record that is delivered at the close, and one of late segments, together are the record of the default.
#[test]
fn records_at_the_close_and_late_ones_are_the_record_after_the_linger_time() {
    type Sums = BTreeMap<FlowKey, (u64, u64, u64)>;
    fn sums(records: &[FlowRecord]) -> Sums {
        let mut sums = Sums::new();
        for record in records {
            let sum = sums.entry(record.key).or_default();
            sum.0 += record.packet_count();
            sum.1 += record.octet_count();
            sum.2 += u64::from(record.sequence_number == 0);
        }
        sums
    }
    for name in ["web.pcap", "mail.pcap", "ssh.pcap", "lossy.pcap", "any.pcap"] {
        let builder = Builder::default();
        let (expected, _) = records_of_sink(&builder, capture(name));
        let at_close =
            builder.tracker(TrackerConfig::default().timeouts(Timeouts::default().linger(Duration::ZERO)));
        let (records, _) = records_of_sink(&at_close, capture(name));
        assert_eq!(sums(&records), sums(&expected), "{name}");
        assert!(records.iter().all(|record| record.sequence_number < 2));
    }
}

#[cfg(feature = "protocols")]
mod one_call {
    use flowgauge::protocols::HttpStart;
    use flowgauge::{Message, RunOptions, Standard, on_message};

    use super::*;

    /// Returns the messages of a capture that a function formats.
    fn of_sink(name: &str, describe: impl Fn(&Message<'_>) -> Option<String>) -> Vec<(Timestamp, String)> {
        let mut described = Vec::new();
        let sink = on_message::<Standard>(|_, meta, message| {
            described.extend(describe(message).map(|text| (meta.timestamp, text)));
        });
        Pipeline::builder().build(sink).unwrap().run(&mut capture(name), &RunOptions::default()).unwrap();
        described
    }

    #[test]
    fn client_hellos_are_those_that_a_sink_receives() {
        let expected = of_sink("web.pcap", |message| {
            let hello = message.client_hello()?;
            Some(format!(
                "{:?} {} {}",
                hello.server_name().map(|name| name.to_string()),
                hello.ja3(),
                hello.ja4()
            ))
        });
        let hellos: Vec<_> = flowgauge::client_hellos(capture("web.pcap")).map(Result::unwrap).collect();
        let described = hellos.iter().map(|seen| {
            let hello = &seen.message;
            (seen.head.timestamp, format!("{:?} {} {}", hello.server_name, hello.ja3, hello.ja4))
        });
        assert_eq!(described.collect::<Vec<_>>(), expected);
        assert!(hellos.iter().any(|seen| seen.head.protocol == "tls" && seen.head.kind == "client_hello"));
    }

    #[test]
    fn dns_messages_are_those_that_a_sink_receives() {
        let expected = of_sink("dns.pcap", |message| match message {
            Message::Dns(
                flowgauge::dns::Message::Query(message) | flowgauge::dns::Message::Response(message),
            ) => Some(format!(
                "{} {} {}",
                message.header.id,
                message.questions().count(),
                message.answers().count()
            )),
            Message::Mdns(_) | Message::Llmnr(_) => panic!("the capture has no such message"),
            _ => None,
        });
        let seen = flowgauge::dns_messages(capture("dns.pcap")).map(|seen| {
            let seen = seen.unwrap();
            let message = seen.message;
            assert_eq!(message.is_response, seen.head.kind == "response");
            let counts = (message.id, message.questions.len(), message.answers.len());
            (seen.head.timestamp, format!("{} {} {}", counts.0, counts.1, counts.2))
        });
        let seen: Vec<_> = seen.collect();
        assert!(seen.len() > 10);
        assert_eq!(seen, expected);
    }

    #[test]
    fn http_heads_have_fields_without_credentials() {
        let heads: Vec<_> = flowgauge::http_heads(capture("web.pcap")).map(|seen| seen.unwrap()).collect();
        let names: std::collections::BTreeSet<_> = heads.iter().map(|seen| seen.head.protocol).collect();
        assert!(names.contains("http"), "{names:?}");
        for seen in &heads {
            let is_request = matches!(seen.message.start, HttpStart::Request { .. });
            assert_eq!(is_request, seen.head.kind == "request");
            assert!(seen.message.headers.iter().all(|(name, _)| {
                !["cookie", "set-cookie", "authorization"].contains(&name.to_ascii_lowercase().as_str())
            }));
        }
        let requests = heads.iter().filter(|seen| seen.head.kind == "request").count();
        assert!(requests > 0 && heads.len() > requests);
    }

    #[test]
    fn an_error_of_the_source_is_the_last_item() {
        let mut items = flowgauge::dns_messages(flows_then(1, 1, |_| Err(source_error())));
        assert!(items.next().is_some_and(|item| item.is_err()));
        assert!(items.next().is_none());
    }
}
