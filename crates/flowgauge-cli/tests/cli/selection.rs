//! Rows that are selected by their values: `--where` and `--community-id`.

use std::fs;

use serde_json::Value;

use super::{Folder, free_port, run};

/// Returns the rows that a command writes as ndjson.
fn rows(args: &[&str]) -> Vec<Value> {
    let run = run(&[args, &["-q"]].concat());
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{args:?}");
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Selects rows of a command by a condition, and compares them with those that a function selects from all rows.
fn check(args: &[&str], condition: &str, is_selected: fn(&Value) -> bool) {
    let mut all = rows(args);
    let count = all.len();
    all.retain(is_selected);
    assert!(!all.is_empty() && all.len() < count, "{args:?}: {condition} selects {} of {count}", all.len());
    assert_eq!(rows(&[args, &["--where", condition]].concat()), all, "{args:?}: {condition}");
}

/// A condition, and whether a row meets it.
type Case = (&'static str, fn(&Value) -> bool);

/// Conditions on flows of `web.pcap`.
const CASES: [Case; 6] = [
    ("conn_state = \"SF\" and octet_count > 1000", |row| {
        row["conn_state"] == "SF" && row["octet_count"].as_u64() > Some(1000)
    }),
    ("application = 'tls'", |row| row["application"] == "tls"),
    ("protocol = 'tcp' and not application_evidence = 'content'", |row| {
        row["protocol"] == 6
            && row["application_evidence"].as_str().is_some_and(|evidence| evidence != "content")
    }),
    ("source_address in ('10.77.0.0/24', '192.0.2.1')", |row| {
        row["source_address"].as_str().unwrap().starts_with("10.77.0.")
    }),
    ("handshake_rtt is not null", |row| !row["handshake_rtt"].is_null()),
    ("duration between '1ms' and 0.01", |row| {
        (1_000_000..=10_000_000).contains(&row["duration"].as_u64().unwrap())
    }),
];

#[test]
fn flows_are_selected_by_their_fields() {
    for (condition, is_selected) in CASES {
        check(&["flows", "web.pcap", "--format", "ndjson"], condition, is_selected);
        check(&["flows", "web.pcap", "--format", "ndjson", "--sort", "octets"], condition, is_selected);
    }
    let (condition, is_selected) = CASES[0];
    check(&["flows", "vlan.pcapng", "--format", "ndjson"], "vlan_ids = 100", |row| {
        row["vlan_ids"].as_array().is_some_and(|ids| ids.contains(&100.into()))
    });
    check(&["flows", "web.pcap", "--format", "ndjson", "--features", "tcp"], condition, is_selected);
    // The limit applies to the selected flows.
    let all = rows(&["flows", "web.pcap", "--format", "ndjson", "--sort", "octets", "--where", condition]);
    let first = rows(&["flows", "web.pcap", "--format", "ndjson", "--top", "2", "--where", condition]);
    assert_eq!(first, all[..2]);
    let sharded = rows(&[
        "flows", "web.pcap", "--format", "ndjson", "--top", "2", "--shards", "2", "--where", condition,
    ]);
    assert_eq!(sharded, first);
    let mut unsorted =
        rows(&["flows", "web.pcap", "--format", "ndjson", "--shards", "2", "--where", condition]);
    let mut expected = all.clone();
    unsorted.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(unsorted, expected);
}

#[test]
fn flows_are_selected_by_community_id() {
    let all = rows(&["flows", "web.pcap", "--format", "ndjson"]);
    let id = |index: usize| all[index]["community_id"].as_str().unwrap();
    let two =
        rows(&["flows", "web.pcap", "--format", "ndjson", "--community-id", id(3), "--community-id", id(5)]);
    assert_eq!(two, [all[3].clone(), all[5].clone()]);
    let none = rows(&[
        "flows",
        "web.pcap",
        "--format",
        "ndjson",
        "--community-id",
        id(3),
        "--where",
        "packet_count > 1000000",
    ]);
    assert!(none.is_empty());
}

#[test]
fn joined_columns_can_be_selected() {
    let folder = Folder::new();
    let rules = folder.path("rules.csv");
    fs::write(&rules, "label,port\nweb,80\n").unwrap();
    let args = ["flows", "web.pcap", "--format", "ndjson", "--label", &rules, "--server-name", "content"];
    check(&args, "label = 'web'", |row| row["label"] == "web");
    check(&args, "server_name like 'web%'", |row| {
        row["server_name"].as_str().is_some_and(|name| name.starts_with("web"))
    });
}

#[test]
fn messages_and_transactions_are_selected_by_their_fields() {
    check(&["sessions", "web.pcap"], "status >= 400", |row| row["status"].as_u64() >= Some(400));
    check(&["sessions", "web.pcap"], "message = 'request' and host ilike 'WEB%'", |row| {
        row["message"] == "request" && row["host"].as_str().is_some_and(|host| host.starts_with("web"))
    });
    check(&["sessions", "dns.pcap"], "questions.type = 'AAAA'", |row| {
        row["questions"].as_array().is_some_and(|all| all.iter().any(|question| question["type"] == "AAAA"))
    });
    check(&["sessions", "dns.pcap", "--transactions"], "rcode != 'NoError' or lacks is not null", |row| {
        row["rcode"].as_str().is_some_and(|rcode| rcode != "NoError") || !row["lacks"].is_null()
    });
    check(&["sessions", "transfer.pcap", "--transactions"], "seen_len > 10000 and kind = 'file'", |row| {
        row["kind"] == "file" && row["seen_len"].as_u64() > Some(10_000)
    });
}

#[test]
fn collected_records_are_selected_by_their_fields() {
    let folder = Folder::new();
    let path = folder.path("flows.ipfix");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "-q"]).status, 0);
    check(&["collect", &path, "--format", "ndjson"], "reverse_octet_count > '100kB'", |row| {
        row["reverse_octet_count"].as_u64() > Some(100_000)
    });
    let zeek = ["collect", &path, "--format", "zeek-json"];
    check(&zeek, "destination_port = 443", |row| row["id.resp_p"] == 443);
    let unused = format!("udp://127.0.0.1:{}", free_port());
    let invalid = run(&["collect", "--listen", &unused, "--where", "octet_sum > 1"]);
    assert_eq!((invalid.status, invalid.out.as_str()), (2, ""));
}

#[test]
fn all_outputs_of_a_run_have_the_selected_flows() {
    let folder = Folder::new();
    let (condition, is_selected) = CASES[0];
    let ndjson = format!("ndjson={}", folder.path("a.ndjson"));
    let both =
        run(&["flows", "web.pcap", "--write", &ndjson, "--format", "zeek-json", "--where", condition, "-q"]);
    assert_eq!((both.status, both.err.as_str()), (0, ""));
    let mut all = rows(&["flows", "web.pcap", "--format", "ndjson"]);
    all.retain(is_selected);
    let lines = fs::read_to_string(folder.path("a.ndjson")).unwrap();
    let written: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written, all);
    assert_eq!(both.out.lines().count(), all.len());
}

#[test]
fn invalid_selections_are_refused_before_anything_is_written() {
    for (args, message) in [
        (&["flows", "web.pcap", "--where", "octet_cont > 5"][..], "did you mean `octet_count`?"),
        (&["flows", "web.pcap", "--where", "octet_count >"], "found the end"),
        (&["flows", "web.pcap", "--where", "a = 1; select 1"], "`;` is not supported"),
        (&["flows", "web.pcap", "--filter", "tcp and tls"], "--where \"application = 'tls'\""),
        (&["flows", "web.pcap", "--filter", "octet_count > 5"], "--where 'octet_count IS NOT NULL'"),
        (&["flows", "web.pcap", "--community-id", "2:x"], "must be a Community ID of version 1"),
        (
            &["flows", "web.pcap", "--where", "packet_count > 1", "--format", "zeek", "--out", "x"],
            "cannot be combined with logs in a folder",
        ),
        (
            &["sessions", "web.pcap", "--where", "status > 1", "--format", "eve"],
            "--where cannot be combined with logs",
        ),
        (&["sessions", "web.pcap", "--where", "octet_count > 1"], "`octet_count` is not a column"),
    ] {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(message), "{args:?}: {}", run.err);
    }
}
