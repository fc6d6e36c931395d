//! The findings of captures as a table.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Array, RecordBatch, StringArray, UInt64Array};
use flowgauge::pipeline::{Transactions, boxed};
use flowgauge::{Decapsulation, Files, Pipeline, Resources, RunOptions, SourceConfig};
use flowgauge_arrow::scan::{Control, Scan, ScanConfig, ScanError, Table};
use flowgauge_arrow::{Names, Options};
use flowgauge_summary::{Collector, Facts, Finding, Totals, Watch};

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Several captures with findings of different kinds, and one of them again, so that its frames are duplicates.
fn captures() -> Vec<PathBuf> {
    ["data/web.pcap", "findings/beacon-jitter.pcap.zst", "findings/scan-ports.pcap.zst", "data/web.pcap"]
        .map(capture)
        .to_vec()
}

fn scan(config: ScanConfig) -> Scan {
    Scan::new(Table::Findings, &Options::default().names(Names::Text), config)
}

fn run(scan: &Scan, paths: &[PathBuf]) -> Result<Vec<RecordBatch>, ScanError> {
    let mut batches = Vec::new();
    scan.run(paths, &Control::default(), |batch| {
        assert_eq!(batch.schema(), scan.schema());
        batches.push(batch);
        ControlFlow::Continue(())
    })?;
    Ok(batches)
}

fn texts(batches: &[RecordBatch], name: &str) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        let column: &StringArray = column.as_any().downcast_ref().unwrap();
        texts.extend(column.iter().map(|text| text.map(str::to_owned)));
    }
    texts
}

/// Returns the findings of captures that are read as one.
fn expected(paths: &[PathBuf]) -> Vec<Finding> {
    let resources = Resources::default();
    let watch = Watch::new(&resources).unwrap();
    let files = Files::open_with(paths, SourceConfig::from(resources.clone())).unwrap();
    let builder = Pipeline::builder().resources(resources).encapsulation(true);
    let mut pipeline = builder.build(Transactions::new(Collector::default())).unwrap();
    let summary = pipeline.run(&mut watch.source(files), &RunOptions::default()).unwrap();
    let mut totals = Totals::default();
    totals.add(&summary.stats);
    pipeline.into_sink().into_inner().facts.findings(&watch.frames(), &totals)
}

#[test]
fn rows_are_the_findings_of_all_captures_together() {
    let findings = expected(&captures());
    assert!(findings.len() > 3, "{findings:?}");
    let batches = run(&scan(ScanConfig::default()), &captures()).unwrap();
    let owned = |text: &str| Some(text.to_owned());
    let kinds: Vec<_> = findings.iter().map(|finding| owned(finding.kind.name())).collect();
    let evidence: Vec<_> = findings.iter().map(|finding| owned(&finding.text)).collect();
    let commands: Vec<_> =
        findings.iter().map(|finding| finding.command.as_ref().map(|command| command.words(""))).collect();
    assert_eq!(texts(&batches, "finding"), kinds);
    assert_eq!(texts(&batches, "evidence"), evidence);
    assert_eq!(texts(&batches, "command"), commands);
    let counts: &UInt64Array = batches[0].column_by_name("count").unwrap().as_any().downcast_ref().unwrap();
    assert!(counts.iter().eq(findings.iter().map(|finding| Some(finding.count))));
    assert!(batches[0].column_by_name("file").is_none());
    assert!(kinds.contains(&owned("duplicates")) && kinds.contains(&owned("scan")), "{kinds:?}");
}

#[test]
fn columns_and_limits_choose_rows() {
    let whole = texts(&run(&scan(ScanConfig::default()), &captures()).unwrap(), "evidence");
    let chosen = scan(ScanConfig::default()).columns(["evidence"]).unwrap();
    let batches = run(&chosen, &captures()).unwrap();
    assert_eq!(batches[0].num_columns(), 1);
    assert_eq!(texts(&batches, "evidence"), whole);
    for limit in [0, 1, whole.len(), whole.len() + 1] {
        let mut config = ScanConfig::default();
        config.limit = Some(limit as u64);
        let rows = texts(&run(&scan(config), &captures()).unwrap(), "evidence");
        assert_eq!(rows, whole[..limit.min(whole.len())], "{limit}");
    }
    assert_eq!(scan(ScanConfig::default()).columns(["file"]).unwrap_err(), "file");
}

/// The commands select the packets that the scan tracked.
#[test]
fn commands_have_the_settings() {
    let mut config = ScanConfig::default();
    config.filter = Some("net 0.0.0.0/0 or ip6".parse().unwrap());
    config.idle_timeout = Some(Duration::from_secs(90));
    config.tunnels = Decapsulation::Outermost;
    let commands = texts(&run(&scan(config), &captures()).unwrap(), "command");
    let (flows, sessions): (Vec<_>, Vec<_>) =
        commands.iter().flatten().partition(|command| command.starts_with("flows "));
    assert!(!flows.is_empty() && !sessions.is_empty(), "{commands:?}");
    for command in flows {
        assert!(command.contains("--filter \"") && command.contains("net 0.0.0.0/0"), "{command}");
        assert!(command.ends_with("--idle-timeout 1m30s --tunnels outermost"), "{command}");
    }
    assert!(sessions.iter().all(|command| command.ends_with("--idle-timeout 1m30s")), "{sessions:?}");
    let mut config = ScanConfig::default();
    config.filter = Some("src port 80".parse().unwrap());
    assert!(matches!(run(&scan(config), &captures()), Err(ScanError::Filter)));
}

/// The memory of the facts is reported with that of the pipeline.
#[test]
fn memory_of_facts_is_reported() {
    let paths = captures();
    let last = |held: &Arc<Mutex<u64>>| *held.lock().unwrap();
    let (found, own) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let mut control = Control::default();
    let seen = Arc::clone(&found);
    control.progress = Some(Arc::new(move |progress| *seen.lock().unwrap() = progress.held_bytes));
    scan(ScanConfig::default()).run(&paths, &control, |_| ControlFlow::Continue(())).unwrap();

    let resources = Resources::default();
    let watch = Watch::new(&resources).unwrap();
    let files = Files::open_with(&paths, SourceConfig::from(resources.clone())).unwrap();
    let collector = Collector::default();
    let facts_bytes = collector.held_bytes();
    let builder = Pipeline::builder().resources(resources).encapsulation(true);
    let mut sink = Transactions::new(collector);
    // As in a scan, states of flows are allocated.
    let mut pipeline = builder.build(boxed(&mut sink)).unwrap();
    let seen = Arc::clone(&own);
    let options = RunOptions::default().progress(move |state| *seen.lock().unwrap() = state.held_bytes);
    pipeline.run(&mut watch.source(files), &options).unwrap();
    let facts_bytes = facts_bytes.load(Relaxed);
    assert!(facts_bytes > 100, "{facts_bytes}");
    assert_eq!(last(&found), last(&own) + facts_bytes);
    // Flows that were open at the end have more facts.
    drop(pipeline);
    let facts = sink.into_inner().facts;
    assert!(facts.held_bytes() >= facts_bytes && Facts::default().held_bytes() == 0);
}

#[test]
fn damaged_and_empty_captures_have_the_findings_before_their_end() {
    let folder = std::env::temp_dir().join(format!("flowgauge-findings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let octets = std::fs::read(capture("data/web.pcap")).unwrap();
    let (damaged, empty) = (folder.join("damaged.pcap"), folder.join("empty.pcap"));
    std::fs::write(&damaged, &octets[..octets.len() - 10]).unwrap();
    std::fs::write(&empty, &octets[..24]).unwrap();
    let found = scan(ScanConfig::default());
    assert!(run(&found, std::slice::from_ref(&empty)).unwrap().is_empty());
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&warnings);
    let mut control = Control::default();
    control.warning = Some(Arc::new(move |warning| seen.lock().unwrap().push(warning.to_string())));
    let mut batches = Vec::new();
    found
        .run([&damaged, &empty], &control, |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(texts(&batches, "finding"), [Some("certificate".to_owned())]);
    let warnings = warnings.lock().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("damaged.pcap"), "{warnings:?}");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(run(&found, &[damaged]).is_err(), "a file that does not exist");
}

#[test]
fn a_scan_that_is_stopped_has_no_findings() {
    let mut control = Control::default();
    let stop = control.stop.clone();
    control.progress = Some(Arc::new(move |_| stop.stop()));
    let mut row_count = 0;
    let result = scan(ScanConfig::default()).run(captures(), &control, |batch| {
        row_count += batch.num_rows();
        ControlFlow::Continue(())
    });
    assert!(result.is_ok() && row_count == 0);
}

/// A reader is one capture.
#[test]
fn findings_of_a_reader_are_those_of_the_file() {
    let path = capture("findings/scan-ports.pcap.zst");
    let found = scan(ScanConfig::default());
    let mut batches = Vec::new();
    let file = std::fs::File::open(&path).unwrap();
    found
        .run_reader(file, None, &Control::default(), |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        })
        .unwrap();
    let rows = texts(&batches, "evidence");
    assert!(rows.iter().flatten().any(|evidence| evidence.contains("connections without data")), "{rows:?}");
    assert_eq!(rows, texts(&run(&found, &[path]).unwrap(), "evidence"));
}
