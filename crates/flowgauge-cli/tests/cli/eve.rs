//! Tests of `--format eve` and `--write eve=DIR`; `tests/eve.rs` and `tests/oracle/eve.rs` check the events.

use std::collections::BTreeSet;
use std::fs;

use super::{Folder, objects, run};

/// Returns the types of events in JSON lines.
fn kinds(text: &str) -> BTreeSet<String> {
    objects(text).iter().map(|event| event["event_type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn standard_output_has_flows_or_all_events() {
    let flows = run(&["flows", "web.pcap", "-q", "--format", "eve"]);
    assert_eq!((flows.status, kinds(&flows.out)), (0, ["flow".to_owned()].into()), "{}", flows.err);
    assert_eq!(flows.out.lines().count(), 27);
    let all = run(&["sessions", "web.pcap", "-q", "--format", "eve"]);
    assert_eq!(kinds(&all.out), ["arp", "fileinfo", "flow", "http", "tls"].map(str::to_owned).into());
    // Messages of ARP belong to no flow.
    let of = |text: &str| -> BTreeSet<u64> {
        objects(text).iter().filter_map(|event| event["flow_id"].as_u64()).collect()
    };
    assert_eq!(of(&all.out), of(&flows.out), "the identifiers of flows are the same in each run");
    let only = run(&["sessions", "web.pcap", "-q", "--format", "eve", "-p", "tls"]);
    assert_eq!(kinds(&only.out), ["tls".to_owned()].into());
}

#[test]
fn files_have_all_events_and_statistics() {
    let folder = Folder::new();
    let (out, written) = (folder.path("out"), folder.path("written"));
    let target = format!("eve={written}");
    for args in [
        &["flows", "dns.pcap", "-q", "--format", "eve", "--out", &out][..],
        &["sessions", "dns.pcap", "-q", "--write", &target],
    ] {
        let run = run(args);
        assert_eq!((run.status, &*run.out), (0, ""), "{}", run.err);
    }
    let [first, second] =
        [&out, &written].map(|folder| fs::read_to_string(format!("{folder}/eve.json")).unwrap());
    for text in [&first, &second] {
        let expected = ["dns", "flow", "stats"].map(str::to_owned);
        assert!(kinds(text).is_superset(&expected.into()), "{:?}", kinds(text));
        assert_eq!(objects(text).last().unwrap()["event_type"], "stats");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    let refused = run(&["flows", "dns.pcap", "-q", "--format", "eve", "--local-networks", "10.0.0.0/8"]);
    assert!(refused.status == 2 && refused.err.contains("--local-networks requires"), "{}", refused.err);
}

#[test]
fn records_of_other_programs_are_flows() {
    let folder = Folder::new();
    let path = folder.path("flows.ipfix");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "-q"]).status, 0);
    let collected = run(&["collect", &path, "--format", "eve", "-q"]);
    assert_eq!((collected.status, collected.err.as_str()), (0, ""));
    let own = run(&["flows", "web.pcap", "--format", "eve", "-q"]);
    let ids = |text: &str| -> BTreeSet<u64> {
        objects(text).iter().map(|event| event["flow_id"].as_u64().unwrap()).collect()
    };
    assert_eq!(kinds(&collected.out), ["flow".to_owned()].into());
    assert_eq!(ids(&collected.out), ids(&own.out));
}

#[test]
fn a_rotation_begins_new_files() {
    let folder = Folder::new();
    let out = folder.path("logs");
    let run = run(&["sessions", "web.pcap", "-q", "--format", "eve", "--out", &out, "--rotate", "4KiB"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let mut event_count = 0;
    let paths: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in &paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("eve.2026-") && name.ends_with(".json"), "{name}");
        event_count += objects(&fs::read_to_string(path).unwrap()).len();
    }
    let all = super::run(&["sessions", "web.pcap", "-q", "--format", "eve"]);
    assert!(!paths.is_empty());
    assert_eq!(event_count, all.out.lines().count() + 1, "all events, and the statistics");
}
