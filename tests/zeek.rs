//! Logs of Zeek: bounds on their length, and the records of long connections.
#![cfg(feature = "protocols")]

#[path = "support/memory.rs"]
mod memory;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use flowgauge::decode::link::Decapsulation;
use flowgauge::export::zeek::{Logs, ZeekConfig};
use flowgauge::export::{FlowLog, LoggedFlow};
use flowgauge::pipeline::Builder;
use flowgauge::tracker::{FlowView, TrackerConfig};
use flowgauge::transaction::Transaction;
use flowgauge::{
    EndReason, FileSource, Flow, Interest, LogSink, Pipeline, RunOptions, Sessions, Sink, Standard,
    TransactionSink, Transactions,
};
use serde_json::Value;

use memory::Memory;

/// Denies some rows: those for which the pattern, which is repeated, has `false`.
struct Denying {
    log: Logs<Memory>,
    pattern: &'static [bool],
    row_count: usize,
    permitted_count: usize,
}

impl Denying {
    fn call(
        &mut self,
        write: impl FnOnce(&mut Logs<Memory>, &mut dyn FnMut(usize) -> bool) -> io::Result<bool>,
    ) {
        let Self { log, pattern, row_count, permitted_count } = self;
        let mut permits = |_| {
            let is_permitted = pattern[*row_count % pattern.len()];
            *row_count += 1;
            *permitted_count += usize::from(is_permitted);
            is_permitted
        };
        write(log, &mut permits).expect("memory");
    }
}

impl Sink for Denying {
    type State = LoggedFlow;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, LoggedFlow>, reason: EndReason) {
        self.call(|log, permits| log.record(&flow.view, flow.state, reason, permits));
    }
}

impl TransactionSink for Denying {
    fn transaction(&mut self, view: &FlowView<'_>, flow: &mut LoggedFlow, transaction: &Transaction) {
        self.call(|log, permits| log.transaction(view, flow, transaction, permits));
    }
}

fn run<K: Sink>(builder: Builder, sink: K) -> K {
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    let mut source = FileSource::open("examples/data/web.pcap").expect("the capture");
    pipeline.run(&mut source, &RunOptions::default()).expect("a readable capture");
    pipeline.into_sink()
}

#[test]
fn rows_follow_the_header_of_their_log_if_others_are_denied() {
    for pattern in
        [&[true][..], &[false], &[true, false], &[false, true, true], &[true, false, false, false, true]]
    {
        let memory = Memory::default();
        let log = Logs::stream(memory.clone(), ZeekConfig::default());
        let denying = Denying { log, pattern, row_count: 0, permitted_count: 0 };
        let Denying { log, permitted_count, .. } =
            run(Pipeline::builder(), Transactions::new(denying)).into_inner();
        let row_count = Box::new(log).close().expect("memory");
        assert_eq!(row_count, permitted_count as u64);
        let text = memory.take();
        let mut column_count = 0;
        for line in text.lines() {
            match line.strip_prefix("#fields\t") {
                Some(columns) => column_count = columns.split('\t').count(),
                None if line.starts_with('#') => {}
                None => assert_eq!(line.split('\t').count(), column_count, "{pattern:?}: {line}"),
            }
        }
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), permitted_count);
    }
}

/// Sums of the records of a connection: octets of both sides, missed ones, and the number of records; `None` if one has no
/// octets, because its duration is zero.
type Sums = Option<([u64; 3], usize)>;

fn connections(builder: Builder) -> BTreeMap<String, Sums> {
    let memory = Memory::default();
    let config = ZeekConfig::default().is_json(true).has_connections_only(true);
    let sink = run(builder, Transactions::new(LogSink::new(Logs::stream(memory.clone(), config))));
    sink.into_inner().close().expect("memory");
    let mut all = BTreeMap::new();
    for line in memory.take().lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let sums = all.entry(row["uid"].as_str().expect("a text").to_owned()).or_insert(Some(([0; 3], 0)));
        let counts = ["orig_bytes", "resp_bytes", "missed_bytes"].map(|name| row[name].as_u64());
        let [Some(orig), Some(resp), Some(missed)] = counts else {
            *sums = None;
            continue;
        };
        if let Some((sum, count)) = sums {
            *count += 1;
            *sum = [sum[0] + orig, sum[1] + resp, sum[2] + missed];
        }
    }
    all
}

#[test]
fn records_of_an_active_timeout_add_up_to_the_connection() {
    let whole = connections(Pipeline::builder());
    let parts = connections(Pipeline::builder().active_timeout(Duration::from_millis(2)));
    assert!(whole.keys().eq(parts.keys()));
    let mut split_count = 0;
    for (uid, part) in &parts {
        if let (Some((part, count)), Some((whole, 1))) = (part, &whole[uid])
            && *count > 1
        {
            assert_eq!(part, whole, "{uid}");
            split_count += 1;
        }
    }
    assert!(split_count > 5, "{split_count} connections have several records");
}

/// Returns an Ethernet frame with a UDP datagram.
fn datagram(hosts: [u8; 2], port: u16, payload: &[u8]) -> Vec<u8> {
    let udp_len = 8 + payload.len() as u16;
    let mut frame = [[2; 12].as_slice(), &[8, 0, 0x45, 0]].concat();
    frame.extend((20 + udp_len).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    hosts.iter().for_each(|host| frame.extend([192, 0, 2, *host]));
    for field in [50_000, port, udp_len, 0] {
        frame.extend(field.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

/// Returns a capture of Ethernet with a frame per second.
fn capture(frames: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut capture = Vec::new();
    for field in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, 1_u32] {
        capture.extend(field.to_le_bytes());
    }
    for (second, frame) in frames.enumerate() {
        for field in [second as u32, 0, frame.len() as u32, frame.len() as u32] {
            capture.extend(field.to_le_bytes());
        }
        capture.extend(frame);
    }
    capture
}

#[test]
fn a_tunnel_begins_and_ends_once() {
    let carrying =
        datagram([1, 2], 4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &datagram([3, 4], 9999, b"data")[..]].concat());
    let empty = datagram([1, 2], 4789, b"");
    for (first, last) in [(&carrying, &carrying), (&carrying, &empty), (&empty, &carrying)] {
        let capture = capture((0..20).map(|second| if second < 10 { first } else { last }.clone()));
        let memory = Memory::default();
        let config = ZeekConfig::default().is_json(true).has_tunnels(true);
        let sink = Transactions::new(LogSink::new(Logs::stream(memory.clone(), config)));
        let mut tracker = TrackerConfig::default();
        tracker.key_policy.decapsulation = Decapsulation::Both;
        tracker.active_timeout = Some(Duration::from_secs(3));
        let mut pipeline = Pipeline::builder()
            .tracker(tracker)
            .encapsulation(true)
            .build(sink)
            .expect("a valid configuration");
        let mut source = FileSource::from_reader(io::Cursor::new(capture)).expect("a capture");
        pipeline.run(&mut source, &RunOptions::default()).expect("a readable capture");
        pipeline.into_sink().into_inner().close().expect("memory");
        let text = memory.take();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let of = |log: &'static str| rows.iter().filter(move |row| row["_path"] == log);
        assert!(of("conn").count() >= 8, "{text}");
        let actions: Vec<_> = of("tunnel").map(|row| row["action"].as_str().expect("a text")).collect();
        assert_eq!(actions, ["Tunnel::DISCOVER", "Tunnel::CLOSE"], "{text}");
    }
}

/// Returns the rows of a log, each with its columns.
fn rows(text: &str, log: &str) -> Vec<Value> {
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    rows.filter(|row| row["_path"] == log).collect()
}

#[test]
fn commands_of_ftp_name_the_files_of_their_data_connections() {
    let memory = Memory::default();
    let mut config = ZeekConfig::default();
    config.is_json = true;
    let sink = Transactions::new(LogSink::new(Logs::stream(memory.clone(), config)));
    let mut pipeline = Pipeline::builder().build(sink).expect("defaults");
    let mut source = FileSource::open("examples/data/transfer.pcap").expect("the capture");
    pipeline.run(&mut source, &RunOptions::default()).expect("a readable capture");
    pipeline.into_sink().into_inner().close().expect("memory");
    let text = memory.take();
    let (commands, files, flows) = (rows(&text, "ftp"), rows(&text, "files"), rows(&text, "conn"));
    let summary = commands.iter().filter(|row| !row["fuid"].is_null()).map(|row| {
        let file = files.iter().find(|file| file["fuid"] == row["fuid"]).expect("a file");
        let flow = flows.iter().find(|flow| flow["uid"] == file["uid"]).expect("a flow");
        assert_eq!((&file["source"], &flow["service"]), (&"FTP_DATA".into(), &"ftp-data".into()));
        assert_eq!(file["mime_type"], row["mime_type"]);
        let path = row["arg"].as_str().expect("a path").rsplit('/').next();
        assert_eq!(file["filename"].as_str(), path);
        (row["command"].as_str().expect("a command"), file["seen_bytes"].as_u64().expect("a length"))
    });
    // LIST is no command that Zeek logs.
    let expected =
        [("RETR", 30_000), ("RETR", 8692), ("RETR", 8692), ("RETR", 10_000), ("STOR", 676), ("STOR", 40_000)];
    assert_eq!(summary.collect::<Vec<_>>(), expected);
    assert_eq!(files.iter().filter(|file| file["source"] == "FTP_DATA").count(), 7);
}

#[test]
fn local_hosts_and_their_services_are_logged_once() {
    let memory = Memory::default();
    let config = ZeekConfig::default().is_json(true).local_networks(vec!["10.77.0.0/16".parse().unwrap()]);
    let sink = Transactions::new(LogSink::new(Logs::stream(memory.clone(), config)));
    let mut source = FileSource::open("examples/data/web.pcap").expect("a capture");
    let mut pipeline = Pipeline::builder().build(sink).expect("default settings");
    pipeline.run(&mut source, &RunOptions::default()).expect("a complete capture");
    pipeline.into_sink().into_inner().close().expect("memory");
    let text = memory.take();
    let mut hosts: Vec<_> = rows(&text, "known_hosts").into_iter().map(|row| row["host"].clone()).collect();
    hosts.sort_by_key(Value::to_string);
    assert_eq!(hosts, ["10.77.0.1", "10.77.0.2"]);
    let services = rows(&text, "known_services");
    let mut services: Vec<_> =
        services.iter().map(|row| (row["port_num"].as_u64(), &row["service"][0])).collect();
    services.sort_by_key(|(port, _)| *port);
    assert!(
        services.contains(&(Some(80), &"HTTP".into())) && services.contains(&(Some(443), &"SSL".into())),
        "{services:?}"
    );
    assert!(services.len() <= 4, "{services:?}");
}
