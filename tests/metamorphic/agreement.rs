//! Agreement of all outputs of a flow. Records, transactions, messages, the logs of Zeek and the events of EVE have the same
//! initiator. Flow events and `conn.log` have as many rows as there are records, with the same ends, packets and octets: of
//! frames in EVE, of IP packets in Zeek, each compared with that counter of the record. Records without sessions are the same.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use flowgauge::base::EndReason;
use flowgauge::export::FlowLog;
use flowgauge::export::eve::{EveConfig, Events};
use flowgauge::export::zeek::{Logs, ZeekConfig};
use flowgauge::session::{MessageMeta, Role};
use flowgauge::transaction::Transaction;
use flowgauge::{
    FileSource, Flow, FlowRecord, FlowView, LogSink, Message, Records, RunOptions, Sessions, Side, Sink,
    Standard, TransactionSink, Transactions,
};
use serde_json::Value;

use super::capture::Capture;
use super::memory::Memory;
use super::pairs::{others, without_timeouts};
use super::relations::Outcome;

/// Protocols whose client need not be the initiator of the connection: the other side of an FTP or TFTP transfer opens it.
const OPENED_BY_EITHER: [&str; 2] = ["ftp_data", "tftp"];

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

/// Two ends, written with an arrow between them.
struct Ends([(IpAddr, u64); 2]);

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [source, destination] = self.0;
        write!(f, "{} port {} -> {} port {}", source.0, source.1, destination.0, destination.1)
    }
}

impl fmt::Display for FlowRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, packets, octets } = self;
        let ends = Ends([*source, *destination]);
        write!(f, "{ends}, {} + {} packets, {} + {} octets", packets[0], packets[1], octets[0], octets[1])
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
    let missing = others(&expected, &found).into_iter().map(|row| format!("not in {name}: {row}"));
    missing.chain(others(&found, &expected).into_iter().map(|row| format!("only in {name}: {row}"))).collect()
}

/// Descriptions of flows with a client that is not the initiator of the record.
#[derive(Default)]
struct Compare {
    differences: Vec<String>,
    /// The records, with octets of frames and of IP packets.
    records: [Vec<FlowRow>; 2],
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
        for (protocol, sides) in &flow.state.0 {
            if sides[record.initiator.other().index()] {
                let evidence = record.direction_evidence;
                self.differences.push(format!(
                    "the client of {protocol} is not the initiator by {evidence} of {}",
                    FlowRow::of_record(&record, false)
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

/// Returns the sink after a whole capture, or after what precedes an error of it.
fn run<K: Sink>(path: &Path, sink: K) -> K {
    let mut pipeline = without_timeouts().build(sink).expect("a valid configuration");
    let mut source = FileSource::open(path).expect("a capture");
    let _ = pipeline.run(&mut source, &RunOptions::default());
    pipeline.into_sink()
}

/// Returns the rows that a log writes to memory.
fn logged(path: &Path, log: impl FlowLog + Send + 'static, memory: &Memory) -> Vec<Value> {
    run(path, Transactions::new(LogSink::new(log))).into_inner().close().expect("memory");
    memory.take().lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Returns the events of transactions that disagree with the `flow` event of the same `flow_id` in endpoints, and the `flow`
/// events that disagree with the records. Also returns the number of the former.
fn eve_differences(path: &Path, records: Vec<FlowRow>) -> (Vec<String>, usize) {
    let memory = Memory::default();
    let events = logged(path, Events::stream(memory.clone(), EveConfig::default()), &memory);
    let flows = || events.iter().filter(|event| event["event_type"] == "flow");
    let ends: BTreeMap<u64, _> = flows().map(|flow| (number(&flow["flow_id"]), event_ends(flow))).collect();
    let of_client = ["http", "tls", "ssh", "smtp", "ftp"];
    let others = events.iter().filter(|event| of_client.iter().any(|kind| event["event_type"] == *kind));
    let turned =
        others.clone().filter(|event| ends.get(&number(&event["flow_id"])) != Some(&event_ends(event)));
    let turned =
        turned.map(|event| format!("{} of EVE from {}", event["event_type"], Ends(event_ends(event))));
    let unpaired = unpaired("EVE", records, flows().map(FlowRow::of_event).collect());
    (turned.chain(unpaired).collect(), others.count())
}

/// Returns the rows of Zeek's logs that disagree with the row of `conn.log` of the same `uid` in endpoints, and the rows of
/// `conn.log` that disagree with the records. Also returns the number of rows of other logs.
fn zeek_differences(path: &Path, records: Vec<FlowRow>) -> (Vec<String>, usize) {
    let memory = Memory::default();
    let rows = logged(path, Logs::stream(memory.clone(), ZeekConfig::default().is_json(true)), &memory);
    let connections = || rows.iter().filter(|row| row["_path"] == "conn");
    let ends: BTreeMap<&str, _> =
        connections().map(|row| (row["uid"].as_str().expect("a text"), logged_ends(row))).collect();
    let others = rows.iter().filter(|row| row["_path"] != "conn" && row["uid"].is_string());
    let turned = others
        .clone()
        .filter(|row| ends.get(row["uid"].as_str().unwrap_or_default()) != Some(&logged_ends(row)));
    let turned = turned.map(|row| format!("{} of Zeek from {}", row["_path"], Ends(logged_ends(row))));
    let unpaired = unpaired("conn.log", records, connections().map(FlowRow::of_connection).collect());
    (turned.chain(unpaired).collect(), others.count())
}

/// Checks that all outputs of a capture agree.
pub(crate) fn of_outputs(capture: &Capture) -> Outcome {
    let Compare { mut differences, records: [of_frames, of_ip] } =
        run(&capture.path, Transactions::new(Compare::default())).into_inner();
    let record_count = of_frames.len();
    if record_count == 0 {
        return Outcome::NotApplicable;
    }
    let mut of_flows = Vec::new();
    run(&capture.path, Records::new(|record| of_flows.push(FlowRow::of_record(&record, false))));
    differences.extend(unpaired("records without sessions", of_frames.clone(), of_flows));
    let (of_eve, event_count) = eve_differences(&capture.path, of_frames);
    let (of_zeek, row_count) = zeek_differences(&capture.path, of_ip);
    differences.extend(of_eve.into_iter().chain(of_zeek));
    capture.note(|checked| {
        (checked.record_count, checked.row_count) = (record_count, event_count + row_count);
    });
    match differences.first() {
        None => Outcome::Equal,
        Some(first) => Outcome::Different(format!("{} rows: {first}", differences.len())),
    }
}
