//! softflowd, an exporter whose records `flowgauge collect` receives.

use std::fs;
use std::process::Command;

use super::folder::Folder;
use super::{Directions, Process, capture, flowgauge, flows, free_port, program, wait_for_port};

/// Runs softflowd on a capture, and returns what `flowgauge collect` writes.
fn exchange(softflowd: &std::path::Path, name: &str, version: &str, options: &[&str]) -> Vec<u8> {
    let (folder, port) = (Folder::new(), free_port());
    let listen = format!("udp://127.0.0.1:{port}");
    let mut command = flowgauge();
    command.args(["collect", "--listen", &listen, "--format", "ndjson"]).args(options);
    let [out, err] = ["out", "err"].map(|name| fs::File::create(folder.path(name)).unwrap());
    let mut collect = Process::start(command.stdout(out).stderr(err));
    wait_for_port(port);
    let collector = format!("127.0.0.1:{port}");
    let status = Command::new(softflowd)
        .args(["-r", &capture(name), "-n", &collector, "-v", version, "-a", "-d", "-c", "none"])
        .args(["-p", &folder.path("pid")])
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    collect.signal("INT");
    let status = collect.end();
    let summary = fs::read_to_string(folder.path("err")).unwrap();
    assert_eq!(status, Some(130), "{summary}");
    assert!(!summary.contains("malformed") && !summary.contains("invalid"), "{summary}");
    fs::read(folder.path("out")).unwrap()
}

/// Captures without tunnels and fragments, in which both programs see the same packets.
const CAPTURES: [&str; 2] = ["web.pcap", "ssh.pcap"];

#[test]
fn all_versions_agree_with_the_flows_of_the_capture() {
    let Some(softflowd) = program("softflowd") else { return };
    for name in CAPTURES {
        let expected = Directions::of_ndjson(&flows(name)).without_record_counts();
        for version in ["5", "9", "10"] {
            let found = Directions::of_ndjson(&exchange(&softflowd, name, version, &[]));
            let mut expected = Directions(expected.0.clone());
            if version == "5" {
                // NetFlow version 5 has no IPv6.
                expected.0.retain(|direction, _| direction.1.is_ipv4());
            }
            assert!(expected.0.len() >= 4);
            assert_eq!(found.without_record_counts(), expected, "{name}, version {version}");
        }
    }
}

#[test]
fn uniflows_are_joined_to_the_flows_of_the_capture() {
    let Some(softflowd) = program("softflowd") else { return };
    for name in CAPTURES {
        let joined = exchange(&softflowd, name, "10", &["--join", "10s"]);
        let count = |lines: &[u8]| lines.split(|octet| *octet == b'\n').count();
        let flows = flows(name);
        let directions = Directions::of_ndjson(&joined);
        assert_eq!(directions.without_record_counts(), Directions::of_ndjson(&flows).without_record_counts());
        assert_eq!(count(&joined), count(&flows), "{name}");
    }
}

#[test]
fn times_agree_with_the_flows_of_the_capture() {
    let Some(softflowd) = program("softflowd") else { return };
    let times = |lines: &[u8]| -> Vec<(u64, u64)> {
        let lines = std::str::from_utf8(lines).unwrap().lines();
        let records = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let tcp = records.filter(|record| record["protocol"] == 6);
        let time = |record: &serde_json::Value, name: &str| record[name].as_u64().unwrap() / 1_000_000;
        let mut times: Vec<_> = tcp.map(|record| (time(&record, "start"), time(&record, "end"))).collect();
        times.sort_unstable();
        times
    };
    let name = "web.pcap";
    let expected = times(&flows(name));
    for version in ["9", "10"] {
        let found = times(&exchange(&softflowd, name, version, &["--join", "10s"]));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            // softflowd rounds to milliseconds, and the export time of version 9 to seconds.
            let tolerance_ms = if version == "9" { 1000 } else { 2 };
            assert!(
                found.0.abs_diff(expected.0) <= tolerance_ms,
                "version {version}: {found:?} {expected:?}"
            );
            assert!(
                found.1.abs_diff(expected.1) <= tolerance_ms,
                "version {version}: {found:?} {expected:?}"
            );
        }
    }
}
