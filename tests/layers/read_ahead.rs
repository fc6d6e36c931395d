//! A source that is read on another thread returns what the source itself returns.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::base::FrameBatch;
use flowgauge::source::{End, Error, Files, Next, ReadAhead, Source};
use flowgauge::{Frame, Pipeline, Records, RunOptions, SourceConfig, Timestamp};

use crate::fn_source::FnSource;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name)
}

/// Everything that a source returns, up to its end.
fn everything(mut source: impl Source) -> Vec<String> {
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    loop {
        let result = source.next_batch(&mut batch);
        all.extend(batch.iter().map(|frame| format!("{frame:?}")));
        let (stats, progress) = (source.stats(), source.progress());
        let interfaces = source.interfaces();
        all.push(format!("{result:?} {stats:?} {progress} {:?} {interfaces:?}", source.total_len()));
        all.extend(source.warnings().iter().map(|warning| warning.to_string()));
        if matches!(result, Ok(Next::End(_))) {
            return all;
        }
    }
}

#[test]
fn files_give_the_same_frames_counts_and_warnings() {
    let truncated = std::env::temp_dir().join(format!("flowgauge-ahead-{}.pcap", std::process::id()));
    let octets = std::fs::read(data("web.pcap")).unwrap();
    std::fs::write(&truncated, &octets[..octets.len() - 100]).unwrap();
    let inputs = [
        vec![data("web.pcap")],
        vec![data("vlan.pcapng"), data("any.pcap"), data("raw-tun.pcap"), data("dns.pcap")],
        vec![truncated.clone(), data("ssh.pcap")],
    ];
    for paths in inputs {
        let open = || {
            let mut config = SourceConfig::default();
            // Many batches.
            config.resources.limits.batch_len = 8192;
            Files::open_with(&paths, config).unwrap()
        };
        let expected = everything(open());
        assert!(expected.len() > 500);
        assert_eq!(everything(ReadAhead::new(open()).unwrap()), expected, "{paths:?}");
    }
    std::fs::remove_file(truncated).unwrap();
}

#[test]
fn records_are_the_same() {
    let run = |source: &mut dyn Source| {
        let mut records = Vec::new();
        let sink = Records::new(|record| records.push(record.to_string()));
        let mut pipeline = Pipeline::builder().build(sink).unwrap();
        pipeline.run(source, &RunOptions::default()).unwrap();
        drop(pipeline);
        records
    };
    let open = || Files::open([data("web.pcap"), data("mail.pcap")]).unwrap();
    let expected = run(&mut open());
    assert!(expected.len() > 20);
    assert_eq!(run(&mut ReadAhead::new(open()).unwrap()), expected);
}

/// Returns a frame in each batch, with the number of the call as its time.
fn numbered(batch: &mut FrameBatch, number: u64) -> Next {
    batch.push(&Frame::ethernet(Timestamp::from_nanos(number), &[0; 60]));
    Next::Frames
}

#[test]
fn an_error_is_returned_in_its_place_with_the_frames_before_it() {
    let mut number = 0;
    let source = FnSource(move |batch: &mut FrameBatch| {
        number += 1;
        let next = numbered(batch, number);
        match number {
            3 => Err(Error::Io { path: "source".into(), error: io::Error::other("broken").into() }),
            6 => {
                batch.clear();
                Ok(Next::End(End::Complete))
            }
            4 => {
                batch.clear();
                Ok(Next::Idle(Timestamp::from_nanos(4)))
            }
            _ => Ok(next),
        }
    });
    let mut source = ReadAhead::new(source).unwrap();
    let (mut batch, mut seen) = (FrameBatch::new(), Vec::new());
    for _ in 0..8 {
        let result = source.next_batch(&mut batch).map_err(|error| error.to_string());
        seen.push((batch.iter().map(|frame| frame.timestamp.as_nanos()).collect::<Vec<_>>(), result));
    }
    let expected = [
        (vec![1], Ok(Next::Frames)),
        (vec![2], Ok(Next::Frames)),
        (vec![3], Err("source: broken".to_owned())),
        (vec![], Ok(Next::Idle(Timestamp::from_nanos(4)))),
        (vec![5], Ok(Next::Frames)),
        (vec![], Ok(Next::End(End::Complete))),
        (vec![], Ok(Next::End(End::Complete))),
        (vec![], Ok(Next::End(End::Complete))),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn at_most_four_batches_are_read_ahead_and_the_thread_ends_with_the_source() {
    let count = Arc::new(AtomicU32::new(0));
    let own = Arc::clone(&count);
    let source =
        FnSource(move |batch: &mut FrameBatch| Ok(numbered(batch, own.fetch_add(1, Relaxed).into())));
    let mut source = ReadAhead::new(source).unwrap();
    let mut batch = FrameBatch::new();
    for _ in 0..10 {
        assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
    }
    let wait_for = |is_true: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !is_true() {
            assert!(started.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
    };
    wait_for(&|| count.load(Relaxed) >= 14);
    // A fifteenth batch would be read within this time.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(count.load(Relaxed), 14);
    drop(source);
    // The thread owns the other reference.
    wait_for(&|| Arc::strong_count(&count) == 1);
}

#[test]
#[should_panic(expected = "the source panics")]
fn a_panic_of_the_source_is_resumed() {
    let source = FnSource(|_: &mut FrameBatch| -> Result<Next, Error> { panic!("the source panics") });
    let _ = ReadAhead::new(source).unwrap().next_batch(&mut FrameBatch::new());
}
