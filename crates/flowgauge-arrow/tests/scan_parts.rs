//! A scan that tracks parts of a capture on several threads has the rows of one pass.

#[path = "support/long_capture.rs"]
mod long_capture;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use flowgauge::Decapsulation;
use flowgauge_arrow::scan::{Control, Scan, ScanConfig, ScanError, Table, Times};
use flowgauge_arrow::{Names, Options};

/// Number of octets of the capture, enough for four threads.
const LEN: usize = 9 << 20;

/// A capture that is removed at the end.
struct Capture(PathBuf);

impl Capture {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("flowgauge-scan-{name}-{}.pcap", std::process::id()));
        long_capture::write(&path, LEN);
        Self(path)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The rows of a scan as text, and the numbers of frames that it reported.
struct Outcome {
    rows: Vec<String>,
    frame_counts: Vec<u64>,
    octet_count: u64,
    warnings: Vec<String>,
}

impl Outcome {
    /// Returns the greatest number of frames between two reports: that of a batch, or of a part.
    fn step(&self) -> u64 {
        self.frame_counts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default()
    }

    fn sorted(mut self) -> Self {
        self.rows.sort();
        self
    }
}

fn run(scan: &Scan, path: &Path, thread_count: usize) -> Result<Outcome, ScanError> {
    let (reports, warnings) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let mut control = Control::default();
    control.thread_count = thread_count;
    let seen = Arc::clone(&reports);
    control.progress = Some(Arc::new(move |progress| {
        seen.lock().unwrap().push((progress.frame_count, progress.input_octet_count));
    }));
    let seen = Arc::clone(&warnings);
    control.warning = Some(Arc::new(move |warning| seen.lock().unwrap().push(warning.to_string())));
    let mut rows = Vec::new();
    scan.run([path], &control, |batch: RecordBatch| {
        rows.extend((0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1).columns())));
        ControlFlow::Continue(())
    })?;
    let reports = reports.lock().unwrap();
    let warnings = warnings.lock().unwrap().clone();
    let octet_count = reports.last().unwrap().1;
    Ok(Outcome { rows, frame_counts: reports.iter().map(|report| report.0).collect(), octet_count, warnings })
}

fn flows(config: ScanConfig) -> Scan {
    Scan::new(Table::Flows, &Options::default().names(Names::Text), config)
}

/// Compares the rows of one pass and of parts.
fn compare(scan: &Scan, path: &Path) -> usize {
    let one = run(scan, path, 1).unwrap().sorted();
    let parts = run(scan, path, 4).unwrap().sorted();
    assert!(one.rows == parts.rows, "{} and {} rows", one.rows.len(), parts.rows.len());
    assert_eq!(parts.frame_counts.last(), one.frame_counts.last());
    assert_eq!((parts.octet_count, one.octet_count), (fs::metadata(path).unwrap().len(), parts.octet_count));
    // A part that was tracked beside another one is reported as a whole.
    assert!(parts.step() > one.frame_counts.last().unwrap() / 8 && parts.step() > one.step());
    one.rows.len()
}

#[test]
fn parts_have_the_rows_of_one_pass() {
    let capture = Capture::new("parts");
    let path = &capture.0;
    let all_count = compare(&flows(ScanConfig::default()), path);
    assert!(all_count > 300, "{all_count}");
    let columns = ["source_address", "source_port", "octet_count", "tcp_state", "flow_end_reason", "file"];
    assert_eq!(compare(&flows(ScanConfig::default()).columns(columns).unwrap(), path), all_count);
    let mut config = ScanConfig::default();
    config.active_timeout = Some(Duration::from_millis(500));
    config.tunnels = Decapsulation::Outermost;
    assert!(compare(&flows(config), path) > all_count);
    for filter in ["ip6 or not port 53", "src port 443 or dst port 443"] {
        let mut config = ScanConfig::default();
        config.filter = Some(filter.parse().unwrap());
        let count = compare(&flows(config), path);
        assert!((1..all_count).contains(&count), "{filter}: {count}");
    }
    let scan = flows(ScanConfig::default()).condition("application = 'http' and octet_count > 1000").unwrap();
    assert!((1..all_count).contains(&compare(&scan, path)));
    let mut config = ScanConfig::default();
    config.times = Times::new(1_795_000_030_000_000_000, u64::MAX);
    assert!((1..all_count).contains(&compare(&flows(config), path)));
    // Damage is that of one pass.
    let octets = fs::read(path).unwrap();
    fs::write(path, &octets[..octets.len() - 100_001]).unwrap();
    let [one, parts] = [1, 4].map(|thread_count| run(&flows(ScanConfig::default()), path, thread_count));
    let (one, parts) = (one.unwrap().sorted(), parts.unwrap().sorted());
    assert!(one.rows == parts.rows && one.rows.len() < all_count);
    assert_eq!((one.warnings.len(), &one.warnings), (1, &parts.warnings));
}

/// One pass reads what parts could not: the order of its rows is the same for each number of threads.
#[test]
fn other_tables_and_settings_have_one_pass() {
    let capture = Capture::new("passes");
    let limited = {
        let mut config = ScanConfig::default();
        config.limit = Some(100);
        flows(config)
    };
    let with_features = {
        let mut config = ScanConfig::default();
        config.features = "splt=4".parse().unwrap();
        flows(config)
    };
    let both = {
        let mut config = ScanConfig::default();
        config.tunnels = Decapsulation::Both;
        flows(config)
    };
    let small = {
        let mut config = ScanConfig::default();
        config.memory = 128 << 20;
        flows(config)
    };
    let other = |table| Scan::new(table, &Options::default(), ScanConfig::default());
    let others =
        [Table::Packets, Table::messages("dns").unwrap(), Table::transactions("http").unwrap()].map(other);
    for scan in [limited, with_features, both, small].iter().chain(&others) {
        let [one, other] = [1, 4].map(|thread_count| run(scan, &capture.0, thread_count).unwrap());
        assert!(!one.rows.is_empty() && one.rows == other.rows && one.step() == other.step(), "{scan:?}");
    }
}

/// A receiver ends the scan, and the threads.
#[test]
fn a_receiver_ends_the_scan_of_parts() {
    let capture = Capture::new("receiver");
    let frame_count = Arc::new(Mutex::new(0));
    let mut control = Control::default();
    control.thread_count = 4;
    let seen = Arc::clone(&frame_count);
    control.progress = Some(Arc::new(move |progress| *seen.lock().unwrap() = progress.frame_count));
    let mut batch_count = 0;
    flows(ScanConfig::default())
        .batch_size(10)
        .run([&capture.0, &capture.0], &control, |_| {
            batch_count += 1;
            ControlFlow::Break(())
        })
        .unwrap();
    assert!(control.stop.is_stopped());
    let all_count = *run(&flows(ScanConfig::default()), &capture.0, 1).unwrap().frame_counts.last().unwrap();
    let read_count = *frame_count.lock().unwrap();
    assert!(batch_count == 1 && read_count < all_count / 2, "{batch_count} batches, {read_count} frames");
}
