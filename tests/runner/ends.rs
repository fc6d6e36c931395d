//! The end of a source and of a run says whether the input is complete or was stopped: each way of reading, stopped after
//! its first batch by the handle of the source alone, or by none.

use std::io::Cursor;
use std::path::PathBuf;

use flowgauge::source::{End, FileParts, ReadAhead};
use flowgauge::{
    FileSource, Files, Flows, FrameBatch, Limits, Next, Pipeline, Resources, RunEnd, RunOptions, Source,
    SourceConfig, StopHandle,
};

fn path(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name)
}

/// A configuration whose batches are short, with a stop handle.
fn config(stop: &StopHandle) -> SourceConfig {
    let mut limits = Limits::DEFAULT;
    limits.batch_len = 4096;
    let mut config = SourceConfig::from(Resources::new(limits));
    config.stop = Some(stop.clone());
    config
}

type Open = fn(&StopHandle) -> Box<dyn Source>;

const SOURCES: [(&str, Open); 4] = [
    ("file", |stop| Box::new(FileSource::open_with(path("dns.pcap"), config(stop)).unwrap())),
    ("reader", |stop| {
        let octets = std::fs::read(path("dns.pcap")).unwrap();
        Box::new(FileSource::from_reader_with(Cursor::new(octets), config(stop)).unwrap())
    }),
    ("files", |stop| {
        Box::new(Files::open_with([path("dns.pcap"), path("mail.pcap")], config(stop)).unwrap())
    }),
    ("read ahead", |stop| {
        let file = FileSource::open_with(path("web.pcap"), config(stop)).unwrap();
        Box::new(ReadAhead::new(file).unwrap())
    }),
];

#[test]
fn the_end_of_a_source_says_whether_the_input_is_complete() {
    for (name, open) in SOURCES {
        let mut counts = [0, 0];
        for (is_stopped, count) in [(false, 0), (true, 1)] {
            let stop = StopHandle::new();
            let mut source = open(&stop);
            let mut batch = FrameBatch::new();
            let end = loop {
                match source.next_batch(&mut batch).unwrap() {
                    Next::End(end) => break end,
                    _ => counts[count] += batch.len(),
                }
                if is_stopped {
                    stop.stop();
                }
            };
            assert_eq!(end, if is_stopped { End::Stopped } else { End::Complete }, "{name}");
            assert_eq!(source.next_batch(&mut batch).unwrap(), Next::End(end), "{name}: again");
        }
        assert!(counts[1] > 0 && counts[1] < counts[0], "{name}: {counts:?}");
    }
}

#[test]
fn a_run_and_an_iterator_say_whether_the_input_is_complete() {
    for (name, open) in SOURCES {
        for (is_stopped, expected) in [(false, RunEnd::EndOfInput), (true, RunEnd::Stopped)] {
            let options = |stop: &StopHandle| {
                let stop = stop.clone();
                RunOptions::default().progress(move |_| {
                    if is_stopped {
                        stop.stop()
                    }
                })
            };
            for is_ahead in [false, true] {
                let stop = StopHandle::new();
                let mut pipeline = Pipeline::builder().build(()).unwrap();
                let options = options(&stop).extract_ahead(is_ahead);
                let summary = pipeline.run(&mut open(&stop), &options).unwrap();
                assert_eq!(summary.end, expected, "{name}, {is_ahead}");
            }
            let stop = StopHandle::new();
            let mut records = Pipeline::builder().records(open(&stop)).unwrap().options(options(&stop));
            assert_eq!(records.end(), None);
            assert!(records.by_ref().all(|record| record.is_ok()));
            assert_eq!(records.end(), Some(expected), "{name}");
        }
    }
}

/// A stop at any batch of a run over parts: only a run that has read all frames is complete.
#[test]
fn a_run_over_parts_says_whether_the_input_is_complete() {
    let frame_count = 1286;
    let mut complete_count = 0;
    for stopped_at in 1..60 {
        for stops_run in [false, true] {
            let stop = StopHandle::new();
            let mut parts = FileParts::open_with(path("web.pcap"), config(&stop)).unwrap().part_len(200_000);
            let batches = std::sync::atomic::AtomicU32::new(0);
            let (handle, mut options) = (stop.clone(), RunOptions::default());
            options = options.progress(move |_| {
                if batches.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == stopped_at * 5 {
                    handle.stop();
                }
            });
            if stops_run {
                options = options.stop(stop.clone());
            }
            let run = Pipeline::builder().run_parts::<Flows>(3, &mut parts, &options, |_| true, |_| {});
            let end = run.unwrap().end;
            if end == RunEnd::EndOfInput {
                assert_eq!(parts.stats().frame_count, frame_count, "{stopped_at}");
                complete_count += 1;
            } else {
                assert!(stop.is_stopped());
            }
        }
    }
    assert!(complete_count < 118, "no run was stopped");
}
