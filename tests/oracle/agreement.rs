//! Agreement of all outputs of a flow. Records, transactions, messages, the logs of Zeek and the events of EVE have the same
//! initiator. Flow events and `conn.log` have as many rows as there are records, with the same ends, packets and octets: of
//! frames in EVE, of IP packets in Zeek, each compared with that counter of the record.

#[path = "../support/memory.rs"]
mod memory;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use flowgauge::base::{DirectionEvidence, EndReason};
use flowgauge::export::eve::EveConfig;
use flowgauge::export::zeek::{Logs, ZeekConfig};
use flowgauge::session::{MessageMeta, Role};
use flowgauge::tracker::{Timeouts, TrackerConfig};
use flowgauge::transaction::Transaction;
use flowgauge::{
    FileSource, Flow, FlowRecord, FlowView, LogSink, Message, Pipeline, RunOptions, Sessions, Side, Sink,
    Standard, TransactionSink, Transactions,
};
use serde_json::Value;

use memory::Memory;

use crate::{corpus, eve_events};

/// Protocols whose client need not be the initiator of the connection: the other side of an FTP or TFTP transfer opens it.
const OPENED_BY_EITHER: [&str; 2] = ["ftp_data", "tftp"];

/// Captures with differences, and the reason.
const LISTED: [(&str, usize, &str); 1] = [(
    "snabb/src/program/ipfix/tests/sanitized4k.pcap",
    3,
    "DNS servers answer to anonymized addresses that are multicast addresses, which initiate nothing",
)];

/// The clients that messages and transactions of a flow stated, by protocol.
#[derive(Default)]
struct Clients(BTreeMap<&'static str, [bool; 2]>);

/// A row of a flow in any output.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FlowRow {
    /// Address of the initiator, and its port, without those of ICMP, which are types.
    source: (IpAddr, u64),
    destination: (IpAddr, u64),
    /// Packets of the initiator and the responder.
    packets: [u64; 2],
    octets: [u64; 2],
}

impl FlowRow {
    /// Returns what a record states, with octets of frames or of IP packets.
    fn of_record(record: &FlowRecord, is_of_ip: bool) -> Self {
        let end = |side| (record.key.address(side), record.key.port(side).unwrap_or_default().into());
        let counters = [&record.forward, &record.reverse].map(|side| side.counters);
        let octets = |index: usize| {
            let counters = &counters[index];
            if is_of_ip { counters.ip_octet_count } else { counters.octet_count }
        };
        Self {
            source: end(record.initiator),
            destination: end(record.initiator.other()),
            packets: counters.map(|counters| counters.packet_count),
            octets: [octets(0), octets(1)],
        }
    }

    fn of_event(event: &Value) -> Self {
        let [source, destination] = event_ends(event);
        let flow = &event["flow"];
        Self {
            source,
            destination,
            packets: [number(&flow["pkts_toserver"]), number(&flow["pkts_toclient"])],
            octets: [number(&flow["bytes_toserver"]), number(&flow["bytes_toclient"])],
        }
    }

    fn of_connection(row: &Value) -> Self {
        let [mut source, mut destination] = logged_ends(row);
        if row["proto"] == "icmp" {
            (source.1, destination.1) = (0, 0);
        }
        Self {
            source,
            destination,
            packets: [number(&row["orig_pkts"]), number(&row["resp_pkts"])],
            octets: [number(&row["orig_ip_bytes"]), number(&row["resp_ip_bytes"])],
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn end(address: &Value, port: &Value) -> (IpAddr, u64) {
    let address = address.as_str().and_then(|text| text.parse().ok());
    (address.expect("an address"), port.as_u64().unwrap_or_default())
}

/// Returns source and destination of an event of EVE.
fn event_ends(event: &Value) -> [(IpAddr, u64); 2] {
    [end(&event["src_ip"], &event["src_port"]), end(&event["dest_ip"], &event["dest_port"])]
}

/// Returns originator and responder of a row of Zeek.
fn logged_ends(row: &Value) -> [(IpAddr, u64); 2] {
    [end(&row["id.orig_h"], &row["id.orig_p"]), end(&row["id.resp_h"], &row["id.resp_p"])]
}

/// Returns the rows that only one of two outputs has.
fn unpaired(name: &str, mut expected: Vec<FlowRow>, mut found: Vec<FlowRow>) -> Vec<String> {
    expected.sort();
    found.sort();
    let mut differences = Vec::new();
    let (mut expected, mut found) = (expected.into_iter().peekable(), found.into_iter().peekable());
    loop {
        let row = match (expected.peek(), found.peek()) {
            (Some(record), Some(row)) if record == row => {
                (expected.next(), found.next());
                continue;
            }
            (Some(record), other) if other.is_none_or(|row| record < row) => ("record", expected.next()),
            (_, Some(_)) => (name, found.next()),
            (_, None) => return differences,
        };
        differences.push(format!("only in {}: {:?}", row.0, row.1));
    }
}

/// Descriptions of flows with a client that is not the initiator of the record.
#[derive(Default)]
struct Compare {
    differences: Vec<String>,
    /// The records, with octets of frames and of IP packets.
    records: [Vec<FlowRow>; 2],
    flow_count: usize,
    learned_count: usize,
}

impl Clients {
    fn note(&mut self, protocol: &'static str, client: Side) {
        if !OPENED_BY_EITHER.contains(&protocol) {
            self.0.entry(protocol).or_default()[client.index()] = true;
        }
    }
}

impl Sink for Compare {
    type State = Clients;
    type Stage = Sessions<Standard>;

    fn message(&mut self, flow: &mut Flow<'_, Clients>, meta: &MessageMeta, _: &Message<'_>) {
        let client = if meta.from == Role::Client { meta.side } else { meta.side.other() };
        flow.state.note(meta.protocol.name(), client);
    }

    fn record(&mut self, flow: &mut Flow<'_, Clients>, reason: EndReason) {
        let record = flow.view.record(reason);
        for (rows, is_of_ip) in self.records.iter_mut().zip([false, true]) {
            rows.push(FlowRow::of_record(&record, is_of_ip));
        }
        self.flow_count += usize::from(!flow.state.0.is_empty());
        self.learned_count += usize::from(record.direction_evidence == DirectionEvidence::Content);
        for (protocol, sides) in &flow.state.0 {
            if sides[record.initiator.other().index()] {
                self.differences.push(format!(
                    "{protocol} {} initiator {:?} by {} but client {sides:?}",
                    record.key, record.initiator, record.direction_evidence
                ));
            }
        }
    }
}

impl TransactionSink for Compare {
    fn transaction(&mut self, _: &FlowView<'_>, clients: &mut Clients, transaction: &Transaction) {
        clients.note(transaction.protocol().name(), transaction.client());
    }
}

fn without_timeouts() -> TrackerConfig {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    config
}

fn compare(path: &Path) -> Compare {
    let sink = Transactions::new(Compare::default());
    let mut pipeline = Pipeline::builder().tracker(without_timeouts()).build(sink).expect("a configuration");
    if let Ok(mut source) = FileSource::open(path) {
        let _ = pipeline.run(&mut source, &RunOptions::default());
    }
    pipeline.into_sink().into_inner()
}

/// Returns the events of flows that disagree with the `flow` event of the same `flow_id` in endpoints, and the `flow` events
/// that disagree with the records.
fn eve_differences(path: &Path, records: Vec<FlowRow>) -> Vec<String> {
    let events = eve_events::events_of(path, EveConfig::default(), without_timeouts());
    let flows = || events.iter().filter(|event| event["event_type"] == "flow");
    let ends: BTreeMap<u64, _> = flows().map(|flow| (number(&flow["flow_id"]), event_ends(flow))).collect();
    let of_client = ["http", "tls", "ssh", "smtp", "ftp"];
    let others = events.iter().filter(|event| of_client.iter().any(|kind| event["event_type"] == *kind));
    let turned = others
        .filter(|event| ends.get(&number(&event["flow_id"])) != Some(&event_ends(event)))
        .map(|event| format!("eve {} {:?}", event["event_type"], event_ends(event)));
    turned.chain(unpaired("eve", records, flows().map(FlowRow::of_event).collect())).collect()
}

/// Returns the rows of all logs of Zeek.
fn logged_rows(path: &Path) -> Vec<Value> {
    let memory = Memory::default();
    let log = LogSink::new(Logs::stream(memory.clone(), ZeekConfig::default().is_json(true)));
    let mut pipeline = Pipeline::builder()
        .tracker(without_timeouts())
        .build(Transactions::new(log))
        .expect("a configuration");
    if let Ok(mut source) = FileSource::open(path) {
        let _ = pipeline.run(&mut source, &RunOptions::default());
    }
    pipeline.into_sink().into_inner().close().expect("memory");
    memory.take().lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Returns the rows of Zeek's logs that disagree with the row of `conn.log` of the same `uid` in endpoints, and the rows of
/// `conn.log` that disagree with the records. Also returns the number of rows of other logs.
fn zeek_differences(path: &Path, records: Vec<FlowRow>) -> (Vec<String>, usize) {
    let rows = logged_rows(path);
    let connections = || rows.iter().filter(|row| row["_path"] == "conn");
    let ends: BTreeMap<&str, _> =
        connections().map(|row| (row["uid"].as_str().expect("a text"), logged_ends(row))).collect();
    let others = rows.iter().filter(|row| row["_path"] != "conn" && row["uid"].is_string());
    let turned = others
        .clone()
        .filter(|row| ends.get(row["uid"].as_str().unwrap_or_default()) != Some(&logged_ends(row)));
    let turned = turned.map(|row| format!("zeek {} {:?}", row["_path"], logged_ends(row)));
    let unpaired = unpaired("zeek", records, connections().map(FlowRow::of_connection).collect());
    (turned.chain(unpaired).collect(), others.count())
}

#[test]
fn all_outputs_of_a_flow_agree() {
    let Some(captures) = corpus::captures() else { return };
    let (mut flow_count, mut learned_count, mut record_count, mut row_count) = (0, 0, 0, 0);
    let mut all = Vec::new();
    for capture in captures {
        let path = capture.path();
        let Compare { mut differences, records, flow_count: flows, learned_count: learned } = compare(&path);
        (flow_count, learned_count) = (flow_count + flows, learned_count + learned);
        let [of_frames, of_ip] = records;
        record_count += of_frames.len();
        differences.extend(eve_differences(&path, of_frames));
        let (logged, count) = zeek_differences(&path, of_ip);
        differences.extend(logged);
        row_count += count;
        let listed_count =
            LISTED.iter().find(|(name, ..)| *name == capture.name).map_or(0, |(_, count, _)| *count);
        if differences.len() != listed_count {
            all.extend(differences.iter().map(|difference| format!("{}: {difference}", capture.name)));
        }
    }
    println!(
        "{record_count} records; {flow_count} flows with messages, the direction of {learned_count} flows by content; \
         {row_count} rows of transactions"
    );
    assert!(flow_count > 500 && learned_count > 10 && record_count > 5000 && row_count > 1000);
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}
