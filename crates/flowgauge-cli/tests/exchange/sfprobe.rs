//! pmacctd with its plugin sfprobe, an agent of sFlow whose samples `flowgauge collect` receives.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::folder::Folder;
use super::{Directions, Process, capture, flowgauge, flows, free_port, program, wait_for, wait_for_port};

/// Runs pmacctd on a capture, one packet in `interval` of which it samples. Returns what `flowgauge collect` writes.
fn exchange(pmacctd: &std::path::Path, name: &str, interval: u32, options: &[&str]) -> Vec<u8> {
    let (folder, port) = (Folder::new(), free_port());
    let listen = format!("udp://127.0.0.1:{port}");
    let mut command = flowgauge();
    command
        .args(["collect", "--listen", &listen, "--format", "ndjson", "--active-timeout", "1s"])
        .args(options);
    let [out, err] = ["out", "err"].map(|name| fs::File::create(folder.path(name)).unwrap());
    let mut collect = Process::start(command.stdout(out).stderr(err));
    wait_for_port(port);
    let config = format!(
        "daemonize: false\nplugins: sfprobe\npcap_savefile: {}\nsavefile_wait: true\nsampling_rate: {interval}\n\
         sfprobe_receiver: 127.0.0.1:{port}\nsfprobe_agentip: 127.0.0.1\n",
        capture(name)
    );
    let log = fs::File::create(folder.path("log")).unwrap();
    let mut agent = Command::new(pmacctd);
    agent.args(["-f", &folder.file("config", config.as_bytes())]).stdin(Stdio::null());
    let mut agent = Process::start(agent.stdout(log.try_clone().unwrap()).stderr(log));
    // pmacctd waits for a moment before it reads the file, and then until it is ended. It sends a datagram when that is
    // full.
    let sent_len = || fs::metadata(folder.path("out")).map_or(0, |file| file.len());
    wait_for("a record", || sent_len() > 0 || agent.has_ended());
    std::thread::sleep(Duration::from_secs(1));
    agent.signal("INT");
    agent.end();
    collect.signal("INT");
    let status = collect.end();
    let summary = fs::read_to_string(folder.path("err")).unwrap();
    assert_eq!(status, Some(130), "{summary}");
    assert!(!summary.contains("malformed") && !summary.contains("lost"), "{summary}");
    fs::read(folder.path("out")).unwrap()
}

#[test]
fn packets_of_sflow_are_the_flows_of_the_capture() {
    let Some(pmacctd) = program("pmacctd") else { return };
    let expected = Directions::of_ndjson(&flows("web.pcap")).without_record_counts();
    let found = Directions::of_ndjson(&exchange(&pmacctd, "web.pcap", 1, &[])).without_record_counts();
    let packet_count =
        |directions: &Directions| directions.0.values().map(|totals| totals.packet_count).sum::<u64>();
    // The last datagram is not sent.
    let missing_count = packet_count(&expected) - packet_count(&found);
    assert!(missing_count < 16, "{missing_count} packets are missing");
    let equal_count =
        expected.0.iter().filter(|(direction, totals)| found.0.get(direction) == Some(totals)).count();
    assert!(equal_count + 6 >= expected.0.len(), "{found:#?}");
}

#[test]
fn sampled_packets_state_their_interval_and_are_scaled_on_request() {
    let Some(pmacctd) = program("pmacctd") else { return };
    let records = |options: &[&str]| -> Vec<Value> {
        let lines = String::from_utf8(exchange(&pmacctd, "web.pcap", 4, options)).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let sum = |records: &[Value]| -> u64 {
        let of = |record: &Value, name: &str| record[name].as_u64().unwrap_or_default();
        records.iter().map(|record| of(record, "packet_count") + of(record, "reverse_packet_count")).sum()
    };
    let sampled = records(&[]);
    assert!(sampled.len() > 5 && sampled.iter().all(|record| record["sampling_interval"] == 4));
    assert!(sampled.iter().all(|record| record["counter_scale"].is_null()));
    // A quarter of 1284 packets, of which the last ones are not sent; sampling is random.
    assert!((200..=450).contains(&sum(&sampled)), "{}", sum(&sampled));
    let scaled = records(&["--scale"]);
    assert!(scaled.iter().all(|record| record["counter_scale"] == 4));
    assert!(sum(&scaled).is_multiple_of(4) && (800..=1800).contains(&sum(&scaled)), "{}", sum(&scaled));
}
