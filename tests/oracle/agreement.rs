//! Agreement of all outputs of a flow: records, transactions, messages, Zeek logs and EVE events name the same initiator and
//! count the same octets.

use std::collections::BTreeMap;
use std::path::Path;

use flowgauge::base::{DirectionEvidence, EndReason};
use flowgauge::export::eve::EveConfig;
use flowgauge::session::{MessageMeta, Role};
use flowgauge::tracker::{Timeouts, TrackerConfig};
use flowgauge::transaction::Transaction;
use flowgauge::{
    FileSource, Flow, FlowView, Message, Pipeline, RunOptions, Sessions, Side, Sink, Standard,
    TransactionSink, Transactions,
};
use serde_json::Value;

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

/// Descriptions of flows with a client that is not the initiator of the record.
#[derive(Default)]
struct Compare {
    differences: Vec<String>,
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

/// Returns the events of flows that disagree with the `flow` event of the same `flow_id` in endpoints or octets.
fn eve_differences(path: &Path) -> Vec<String> {
    let events = eve_events::events_of(path, EveConfig::default(), without_timeouts());
    let ends =
        |event: &Value| ["src_ip", "src_port", "dest_ip", "dest_port"].map(|name| event[name].to_string());
    let flows: BTreeMap<String, [String; 4]> = events
        .iter()
        .filter(|event| event["event_type"] == "flow")
        .map(|event| (event["flow_id"].to_string(), ends(event)))
        .collect();
    let of_client = ["http", "tls", "ssh", "smtp", "ftp"];
    let events = events.iter().filter(|event| of_client.iter().any(|kind| event["event_type"] == *kind));
    events
        .filter(|event| flows.get(&event["flow_id"].to_string()).is_none_or(|flow| *flow != ends(event)))
        .map(|event| format!("eve {} {:?}", event["event_type"], ends(event)))
        .collect()
}

#[test]
fn all_outputs_of_a_flow_agree() {
    let Some(captures) = corpus::captures() else { return };
    let (mut flow_count, mut learned_count, mut all) = (0, 0, Vec::new());
    for capture in captures {
        let path = capture.path();
        let compared = compare(&path);
        flow_count += compared.flow_count;
        learned_count += compared.learned_count;
        let differences: Vec<_> = compared.differences.into_iter().chain(eve_differences(&path)).collect();
        let listed_count =
            LISTED.iter().find(|(name, ..)| *name == capture.name).map_or(0, |(_, count, _)| *count);
        if differences.len() != listed_count {
            all.extend(differences.iter().map(|difference| format!("{}: {difference}", capture.name)));
        }
    }
    println!("{flow_count} flows with messages, the direction of {learned_count} flows by content");
    assert!(flow_count > 500 && learned_count > 10);
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}
