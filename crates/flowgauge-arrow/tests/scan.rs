//! Scans of captures, compared with what the library passes on.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt16Array};
use flowgauge::row::Union;
use flowgauge::source::End;
use flowgauge::transaction::{Content, TransactionConfig};
use flowgauge::{
    FileSource, FrameBatch, Message, Next, Pipeline, RunOptions, SessionEvent, Source, Standard, StopHandle,
    Timestamp, on_message, on_transaction, source,
};
use flowgauge_arrow::scan::{Control, Scan, ScanConfig, ScanError, Table, Times};
use flowgauge_arrow::{Names, Options};

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)
}

fn captures() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(capture(".")).unwrap();
    let mut paths: Vec<_> = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng"))
        .collect();
    paths.sort();
    paths
}

fn options() -> Options {
    Options::default().names(Names::Text)
}

fn rows(scan: &Scan, paths: &[PathBuf]) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    scan.run(paths, &Control::default(), |batch| {
        assert_eq!(batch.schema(), scan.schema());
        batches.push(batch);
        ControlFlow::Continue(())
    })
    .unwrap();
    batches
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn texts(batches: &[RecordBatch], name: &str) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    for batch in batches {
        let column =
            batch.column_by_name(name).unwrap().as_any().downcast_ref::<StringArray>().unwrap().clone();
        texts.extend((0..column.len()).map(|row| column.is_valid(row).then(|| column.value(row).to_owned())));
    }
    texts
}

fn all_messages() -> Vec<&'static str> {
    let tables = <Message<'static> as Union>::tables().into_iter().chain(SessionEvent::tables());
    let mut names: Vec<_> = tables.map(|table| table.name.split('.').next().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// No column occurs twice, and each column of a kind is a column of the table of its protocol: under its name, or with its
/// kind before it if another kind has a column of this name with another type.
#[test]
fn columns_of_kinds_fit_together() {
    let mut renamed = Vec::new();
    for name in all_messages() {
        let all = Scan::new(Table::messages(name).unwrap(), &options(), ScanConfig::default()).schema();
        let mut names: Vec<_> = all.fields().iter().map(|field| field.name().clone()).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before, "{name}");
        for table in <Message<'static> as Union>::tables() {
            if table.name.split('.').next() != Some(name) {
                continue;
            }
            let kind = Scan::new(Table::messages(table.name).unwrap(), &options(), ScanConfig::default());
            for field in kind.schema().fields() {
                let same = all.field_with_name(field.name()).unwrap();
                if same.data_type() != field.data_type() {
                    let other = format!("{}_{}", table.kind(), field.name());
                    assert_eq!(all.field_with_name(&other).unwrap().data_type(), field.data_type());
                    renamed.push(format!("{name}: {other}"));
                }
            }
        }
    }
    assert_eq!(renamed, ["quic: server_hello_alpn", "tls: server_hello_alpn"]);
}

/// The messages of each protocol are those that all parsers together pass on, although parsers of other protocols do not
/// run.
#[test]
fn messages_of_a_protocol_are_those_of_all_parsers() {
    for path in captures() {
        let mut expected = BTreeMap::<&str, usize>::new();
        let sink = on_message::<Standard>(|_, _, message| {
            if !message.is_content() && !message.is_plain_end() {
                *expected.entry(message.row().table.name).or_default() += 1;
            }
        });
        let mut source = FileSource::open(&path).unwrap();
        Pipeline::builder().build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
        for table in <Message<'static> as Union>::tables() {
            let scan = Scan::new(Table::messages(table.name).unwrap(), &options(), ScanConfig::default());
            let expected = expected.get(table.name).copied().unwrap_or_default();
            assert_eq!(
                count(&rows(&scan, std::slice::from_ref(&path))),
                expected,
                "{} {}",
                path.display(),
                table.name
            );
        }
    }
}

/// The transactions of each kind are those that all parsers together give.
#[test]
fn transactions_of_a_kind_are_those_of_all_parsers() {
    for path in captures() {
        let mut expected = BTreeMap::<&str, usize>::new();
        let sink = on_transaction(|_, transaction| {
            *expected.entry(transaction.content.row().table.name).or_default() += 1;
        });
        let mut source = FileSource::open(&path).unwrap();
        Pipeline::builder().build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
        for table in Content::tables() {
            let scan =
                Scan::new(Table::transactions(table.kind()).unwrap(), &options(), ScanConfig::default());
            let expected = expected.get(table.name).copied().unwrap_or_default();
            assert_eq!(
                count(&rows(&scan, std::slice::from_ref(&path))),
                expected,
                "{} {}",
                path.display(),
                table.name
            );
        }
    }
}

/// Files have the digests that the library computes, if one of their columns is chosen.
#[test]
fn digests_of_files_are_those_of_the_library() {
    let paths = captures();
    let mut expected = Vec::new();
    for path in &paths {
        let mut config = TransactionConfig::default();
        config.has_hashes = true;
        let sink = on_transaction(|_, transaction| {
            if let Content::File(file) = &transaction.content {
                expected.push(file.sha256.as_deref().map(str::to_owned));
            }
        });
        let mut source = FileSource::open(path).unwrap();
        let mut pipeline = Pipeline::builder().build(sink.config(config)).unwrap();
        pipeline.run(&mut source, &RunOptions::default()).unwrap();
    }
    let known_count = expected.iter().flatten().count();
    assert!(known_count > 5 && known_count < expected.len(), "{expected:?}");
    let scan = Scan::new(Table::transactions("file").unwrap(), &options(), ScanConfig::default());
    assert_eq!(texts(&rows(&scan, &paths), "sha256"), expected);
    let one = scan.clone().columns(["sha256"]).unwrap();
    assert_eq!(texts(&rows(&one, &paths), "sha256"), expected);
    let condition = scan.columns(["name"]).unwrap().condition("md5 is not null").unwrap();
    assert_eq!(count(&rows(&condition, &paths)), known_count);
}

/// Values do not depend on which columns are chosen.
#[test]
fn columns_do_not_depend_on_others() {
    let tables = [
        Table::Flows,
        Table::Packets,
        Table::messages("http").unwrap(),
        Table::messages("dns").unwrap(),
        Table::transactions("tls").unwrap(),
    ];
    let paths = [capture("web.pcap"), capture("dns.pcap")];
    for table in tables {
        let all = Scan::new(table, &options(), ScanConfig::default());
        let expected = rows(&all, &paths);
        for field in all.schema().fields() {
            let one = all.clone().columns([field.name().as_str()]).unwrap();
            let found = rows(&one, &paths);
            for (one, all) in found.iter().zip(&expected) {
                assert_eq!(one.column(0), all.column_by_name(field.name()).unwrap(), "{}", field.name());
            }
            assert_eq!(found.len(), expected.len());
        }
        assert_eq!(count(&rows(&all.clone().columns([]).unwrap(), &paths)), count(&expected));
        assert_eq!(all.clone().columns(["protocol", "protocol"]).unwrap_err(), "protocol");
        assert_eq!(all.columns(["absent"]).unwrap_err(), "absent");
    }
}

/// A message has the columns of its kind; the others are null.
#[test]
fn columns_of_other_kinds_are_null() {
    let scan = Scan::new(Table::messages("http").unwrap(), &options(), ScanConfig::default());
    let batches = rows(&scan, &[capture("web.pcap")]);
    let kinds = texts(&batches, "message");
    let methods = texts(&batches, "method");
    assert!(kinds.iter().any(|kind| kind.as_deref() == Some("request")));
    assert!(kinds.iter().any(|kind| kind.as_deref() == Some("response")));
    for (kind, method) in kinds.iter().zip(&methods) {
        assert_eq!(method.is_some(), kind.as_deref() == Some("request"));
    }
    assert!(
        texts(&batches, "file")
            .iter()
            .all(|file| file.as_deref().is_some_and(|file| file.ends_with("web.pcap")))
    );
}

#[test]
fn times_and_filter_choose_rows() {
    let paths = [capture("web.pcap")];
    let all = Scan::new(Table::Flows, &options(), ScanConfig::default())
        .columns(["start", "destination_port"])
        .unwrap();
    let expected = rows(&all, &paths);
    let starts: Vec<i64> = expected
        .iter()
        .flat_map(|batch| {
            batch.column(0).as_any().downcast_ref::<TimestampNanosecondArray>().unwrap().values().to_vec()
        })
        .collect();
    let mut sorted = starts.clone();
    sorted.sort_unstable();
    let (first, last) = (sorted[5], sorted[12]);
    let mut timed = all.clone();
    timed.config_mut().times = Times::new(first as u64, last as u64);
    let within = starts.iter().filter(|start| (first..=last).contains(start)).count();
    assert_eq!(count(&rows(&timed, &paths)), within);
    let mut filtered = all.clone();
    filtered.config_mut().filter = Some("dst port 443".parse().unwrap());
    let ports = expected.iter().flat_map(|batch| {
        batch.column(1).as_any().downcast_ref::<UInt16Array>().unwrap().iter().collect::<Vec<_>>()
    });
    assert_eq!(count(&rows(&filtered, &paths)), ports.filter(|port| *port == Some(443)).count());
}

#[test]
fn limit_and_stop_end_the_scan() {
    let paths = captures();
    let mut scan = Scan::new(Table::Packets, &options(), ScanConfig::default()).batch_size(10);
    scan.config_mut().limit = Some(25);
    let batches = rows(&scan, &paths);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [10, 10, 5]);
    scan.config_mut().limit = Some(0);
    assert_eq!(count(&rows(&scan, &paths)), 0);
    scan.config_mut().limit = None;
    let mut batch_count = 0;
    let frames = Arc::new(AtomicU64::new(0));
    let mut control = Control::default();
    let counted = Arc::clone(&frames);
    control.progress = Some(Arc::new(move |progress| counted.store(progress.frame_count, Relaxed)));
    scan.run(&paths, &control, |_| {
        batch_count += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(batch_count, 1);
    let mut pipeline = Pipeline::builder().build(()).unwrap();
    let mut first = FileSource::open(&paths[0]).unwrap();
    let total = pipeline.run(&mut first, &RunOptions::default()).unwrap().stats.frame_count;
    // Nothing is read after the first capture.
    assert!(frames.load(Relaxed) <= total);
    let mut stopped = Control::default();
    stopped.stop = StopHandle::new();
    stopped.stop.stop();
    scan.run(&paths, &stopped, |_| unreachable!("stopped before the first batch")).unwrap();
}

#[test]
fn joined_captures_are_one() {
    let paths = [capture("web.pcap"), capture("web.pcap")];
    let mut scan =
        Scan::new(Table::Flows, &options(), ScanConfig::default()).columns(["packet_count", "file"]).unwrap();
    assert_eq!(count(&rows(&scan, &paths)), 54);
    scan.config_mut().is_joined = true;
    let batches = rows(&scan, &paths);
    assert_eq!(count(&batches), 27);
    assert!(texts(&batches, "file").iter().all(Option::is_none));
}

#[test]
fn bad_input_has_a_clear_error() {
    let flows = Scan::new(Table::Flows, &options(), ScanConfig::default());
    let run = |scan: &Scan, path: &Path| {
        scan.run([path], &Control::default(), |_| ControlFlow::Continue(()))
            .map_err(|error| error.to_string())
    };
    let error = run(&flows, Path::new("missing.pcap")).unwrap_err();
    assert!(error.contains("missing.pcap"), "{error}");
    let error = run(&flows, Path::new("Cargo.toml")).unwrap_err();
    assert!(error.contains("Cargo.toml"), "{error}");
    let mut packets = Scan::new(Table::Packets, &options(), ScanConfig::default());
    packets.config_mut().filter = Some("src host 10.0.0.1".parse().unwrap());
    let result = packets.run([capture("web.pcap")], &Control::default(), |_| ControlFlow::Continue(()));
    assert!(matches!(result, Err(ScanError::Filter)));
    let error = Table::messages("dnss").unwrap_err().to_string();
    assert!(error.contains("dns") && error.contains("http2"), "{error}");
    assert!(Table::transactions("").is_err());
}

/// Damage is a warning, and the rows before it are passed on.
#[test]
fn damage_is_a_warning() {
    let folder = std::env::temp_dir().join(format!("flowgauge-scan-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("truncated.pcap");
    let whole = std::fs::read(capture("web.pcap")).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let mut control = Control::default();
    let seen = Arc::clone(&warnings);
    control.warning = Some(Arc::new(move |warning| seen.lock().unwrap().push(warning.to_string())));
    let mut row_count = 0;
    let scan = Scan::new(Table::Flows, &options(), ScanConfig::default());
    scan.run([&path], &control, |batch| {
        row_count += batch.num_rows();
        ControlFlow::Continue(())
    })
    .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(row_count > 0);
    let warnings = warnings.lock().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("truncated.pcap"), "{warnings:?}");
}

/// A reader has the rows of the file that it reads, with its name in place of the path.
#[test]
fn a_reader_has_the_rows_of_its_file() {
    let path = capture("web.pcap");
    let scan = Scan::new(Table::Flows, &options(), ScanConfig::default());
    let of_path = rows(&scan, std::slice::from_ref(&path));
    let octets = std::fs::read(&path).unwrap();
    for name in [Some("a name"), None] {
        let mut batches = Vec::new();
        let reader = std::io::Cursor::new(octets.clone());
        scan.run_reader(reader, name, &Control::default(), |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(count(&batches), 27);
        let last = batches[0].num_columns() - 1;
        assert_eq!(batches[0].columns()[..last], of_path[0].columns()[..last]);
        assert!(texts(&batches, "file").iter().all(|file| file.as_deref() == name));
    }
}

/// The end of a truncated reader is a warning, and its error of the operating system an error.
#[test]
fn damage_of_a_reader_is_a_warning_and_a_failed_read_an_error() {
    let mut octets = std::fs::read(capture("web.pcap")).unwrap();
    octets.truncate(octets.len() - 10);
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let mut control = Control::default();
    let received = Arc::clone(&warnings);
    control.warning = Some(Arc::new(move |warning| received.lock().unwrap().push(warning.to_string())));
    let scan = Scan::new(Table::Flows, &options(), ScanConfig::default());
    let octets = std::io::Cursor::new(octets);
    scan.run_reader(octets, None, &control, |_| ControlFlow::Continue(())).unwrap();
    let warnings = warnings.lock().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("(stream)"), "{warnings:?}");

    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is on fire"))
        }
    }
    let error = scan.run_reader(Failing, None, &control, |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.to_string(), "(stream): the disk is on fire");
}

#[test]
fn conditions_select_rows_by_columns_that_are_not_chosen() {
    let paths = captures();
    let scan = |table| Scan::new(table, &options(), ScanConfig::default());
    let all = rows(&scan(Table::Flows), &paths);
    let application = texts(&all, "application");
    let expected = application.iter().filter(|name| name.as_deref() == Some("http")).count();
    let chosen = scan(Table::Flows).columns(["start"]).unwrap().condition("application = 'http'").unwrap();
    let found = rows(&chosen, &paths);
    assert!(expected > 0 && expected < application.len());
    assert_eq!((count(&found), found[0].num_columns()), (expected, 1));
    let both = chosen.condition("octet_count < 0").unwrap();
    assert_eq!(count(&rows(&both, &paths)), 0);

    // A column whose name is that of a column of another kind of messages.
    let tls = Table::messages("tls").unwrap();
    let selected = texts(&rows(&scan(tls), &paths), "server_hello_alpn");
    let expected = selected.iter().flatten().count();
    let condition = "server_hello_alpn is not null";
    let found = texts(&rows(&scan(tls).condition(condition).unwrap(), &paths), "server_hello_alpn");
    assert!(expected > 0 && expected < selected.len());
    assert_eq!(found, selected.into_iter().filter(Option::is_some).collect::<Vec<_>>());
    let found = texts(&rows(&scan(tls).condition("alpn is not null").unwrap(), &paths), "message");
    assert!(!found.is_empty() && found.iter().all(|kind| kind.as_deref() == Some("client_hello")));

    let problem = scan(Table::Packets).condition("octet_count > 1").unwrap_err();
    assert!(problem.contains("`octet_count` is not a column"), "{problem}");
}

/// The frames of a capture, and then none until the rows have arrived.
struct Idle {
    file: FileSource,
    passed_on: Arc<AtomicU64>,
    idle_count: u32,
}

impl Source for Idle {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, source::Error> {
        match self.file.next_batch(batch)? {
            Next::End(End::Complete) if self.passed_on.load(Relaxed) == 0 && self.idle_count < 1000 => {
                self.idle_count += 1;
                std::thread::sleep(Duration::from_millis(1));
                Ok(Next::Idle(Timestamp::from_nanos(4_000_000_000_000_000_000)))
            }
            next => Ok(next),
        }
    }
}

#[test]
fn rows_of_a_live_source_do_not_wait_for_a_full_batch() {
    let mut config = ScanConfig::default();
    config.idle_timeout = Some(Duration::from_secs(1));
    for interval in [Some(Duration::from_millis(20)), None] {
        config.interval = interval;
        let scan = Scan::new(Table::Flows, &options(), config.clone());
        let passed_on = Arc::new(AtomicU64::new(0));
        let file = FileSource::open(capture("web.pcap")).unwrap();
        let mut source = Idle { file, passed_on: Arc::clone(&passed_on), idle_count: 0 };
        let mut row_count = 0;
        scan.run_source(&mut source, Some("name"), &Control::default(), |batch| {
            assert_eq!(texts(std::slice::from_ref(&batch), "file")[0].as_deref(), Some("name"));
            row_count += batch.num_rows();
            passed_on.store(1, Relaxed);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(row_count, count(&rows(&scan, &[capture("web.pcap")])));
        assert_eq!(source.idle_count < 1000, interval.is_some());
    }
}
