//! `flowgauge sessions`, and the names that `flows` gives.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{data, number, objects, records, run, run_with_input};

/// Messages of a capture by their protocol and kind.
fn kinds(args: &[&str]) -> BTreeMap<String, usize> {
    let run = run(args);
    assert_eq!(run.status, 0, "{}", run.err);
    let mut kinds = BTreeMap::new();
    for line in objects(&run.out) {
        let name = format!("{} {}", line["protocol"].as_str().unwrap(), line["message"].as_str().unwrap());
        *kinds.entry(name).or_default() += 1;
    }
    kinds
}

#[test]
fn a_line_is_about_its_flow_and_says_the_message() {
    let run = run(&["sessions", "web.pcap", "-p", "http", "-q"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let lines = objects(&run.out);
    let flows = records(&["web.pcap"]);
    assert!(lines.len() > 20);
    for line in &lines {
        let flow = flows.iter().find(|flow| flow["community_id"] == line["community_id"]).expect("its flow");
        for field in ["source_address", "source_port", "destination_address", "destination_port"] {
            assert_eq!(line[field], flow[field]);
        }
        let at = number(line, "timestamp_ns");
        assert!((number(flow, "start_ns")..=number(flow, "end_ns")).contains(&at));
        assert_eq!((&line["protocol"], &flow["application"]), (&"http".into(), &"http".into()));
        assert_eq!(flow["application_evidence"], "content");
    }
    // What curl was told to ask, in the order of the recording.
    let requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request").collect();
    assert_eq!((&requests[0]["method"], &requests[0]["target"]), (&"GET".into(), &"/".into()));
    let hosts: Vec<_> = requests.iter().map(|line| line["host"].as_str().unwrap()).collect();
    assert!(hosts.iter().all(|host| host.starts_with("web.example") || host.starts_with("web6.example")));
    // Each request has its response.
    for request in &requests {
        let is_answer = |line: &&Value| {
            line["message"] == "response"
                && line["community_id"] == request["community_id"]
                && line["transaction"] == request["transaction"]
        };
        assert_eq!(lines.iter().filter(is_answer).count(), 1, "{request}");
    }
}

#[test]
fn several_protocols_are_heard_in_one_pass() {
    let all = kinds(&["sessions", "mail.pcap", "-q"]);
    assert!(all.keys().any(|kind| kind.starts_with("smtp ")) && !all.contains_key("smtp stopped"), "{all:?}");
    let ssh = kinds(&["sessions", "ssh.pcap", "-q"]);
    assert_eq!((ssh["ssh identification"], ssh["ssh kex_init"]), (8, 8), "{ssh:?}");
    let tls = kinds(&["sessions", "web.pcap", "-q", "--protocol", "tls"]);
    assert!(tls.keys().all(|kind| kind.starts_with("tls ")) && tls["tls client_hello"] > 3, "{tls:?}");
    let both = kinds(&["sessions", "web.pcap", "-q", "-p", "tls", "-p", "http"]);
    assert_eq!(both, kinds(&["sessions", "web.pcap", "-q"]));
}

#[test]
fn a_filter_or_a_community_id_chooses_flows() {
    let all = run(&["sessions", "web.pcap", "-q", "-p", "http"]).out;
    let id = objects(&all)[0]["community_id"].as_str().unwrap().to_owned();
    let one = run(&["sessions", "web.pcap", "-q", "--community-id", &id]).out;
    let of_id: String = all.split_inclusive('\n').filter(|line| line.contains(&id)).collect();
    assert_eq!(one, of_id);
    let source = &objects(&all)[0]["source_port"];
    let filtered = run(&["sessions", "web.pcap", "-q", "--filter", &format!("src port {source}")]).out;
    assert_eq!(filtered, of_id);
    let piped = run_with_input(&["sessions", "-", "-q", "-p", "http"], &data("web.pcap"));
    assert_eq!(piped.out, all);
}

#[test]
fn credentials_are_never_written_and_their_kind_if_asked() {
    // The passwords of the recordings.
    for (file, protocol) in [("mail.pcap", "smtp"), ("web.pcap", "http")] {
        let silent = run(&["sessions", file, "-q", "-p", protocol]).out;
        let told = run(&["sessions", file, "-q", "-p", protocol, "--credentials"]).out;
        assert!(!silent.contains("\"credentials\""), "{file}");
        let strip = |mut line: Value| {
            line.as_object_mut().unwrap().remove("credentials");
            line
        };
        let told: Vec<_> = objects(&told);
        for line in &told {
            assert!(line["credentials"].is_null() || line["credentials"].is_string());
        }
        assert_eq!(told.into_iter().map(strip).collect::<Vec<_>>(), objects(&silent));
    }
    let told = objects(&run(&["sessions", "mail.pcap", "-q", "--credentials"]).out);
    assert!(told.iter().any(|line| line["credentials"].is_string()), "the recording has AUTH");
    let everything = run(&["sessions", "mail.pcap", "-q", "--credentials"]).out;
    // `alice` and `example` as PLAIN sends them, and the password alone, in base64 (RFC 4616, RFC 4648).
    assert!(!everything.contains("AGFsaWNlAGV4YW1wbGU") && !everything.contains("ZXhhbXBsZQ"));
}

#[test]
fn the_table_has_a_row_per_message_and_escapes_what_is_no_text() {
    let lines = objects(&run(&["sessions", "ssh.pcap", "-q"]).out);
    let table = run(&["sessions", "ssh.pcap", "-q", "--format", "table"]).out;
    assert_eq!(table.lines().count(), lines.len() + 1);
    assert!(table.starts_with("TIME"));
    assert!(table.lines().nth(1).unwrap().contains("identification protocol_version=2.0"));
    assert!(!table.bytes().any(|octet| octet < b' ' && octet != b'\n'));
}

#[test]
fn what_is_not_parsed_is_refused_with_the_names_that_are() {
    let unknown = run(&["sessions", "web.pcap", "-p", "gopher"]);
    assert_eq!(unknown.status, 2);
    assert!(unknown.err.contains("http, ") && unknown.err.contains("these are parsed"), "{}", unknown.err);
    let named = run(&["sessions", "web.pcap", "-p", "ntp"]);
    assert!(named.status == 2 && named.err.contains("recognised, not parsed"), "{}", named.err);
}

#[test]
fn flows_are_named_if_asked() {
    let auto = records(&["ssh.pcap", "--filter", "tcp"]);
    assert!(auto.iter().all(|flow| flow["application"] == "ssh" && flow["application_evidence"] == "content"));
    let never = records(&["ssh.pcap", "--application", "never"]);
    assert!(never.iter().all(|flow| flow["application"].is_null() && flow["application_evidence"].is_null()));
    let table = run(&["flows", "ssh.pcap", "-q"]).out;
    assert!(!table.contains("/ssh"));
    let named = run(&["flows", "ssh.pcap", "-q", "--application", "always"]).out;
    assert_eq!(named.matches("tcp/ssh").count(), 4, "{named}");
    // On many threads too.
    let sorted = |args: &[&str]| {
        let mut lines: Vec<_> = run(args).out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let one = sorted(&["flows", "mail.pcap", "-q", "-f", "csv"]);
    assert_eq!(sorted(&["flows", "mail.pcap", "-q", "-f", "csv", "--shards", "3"]), one);
    assert_eq!(sorted(&["flows", "mail.pcap", "-q", "-f", "csv", "--shards", "3", "--sort", "start"]), one);
}
