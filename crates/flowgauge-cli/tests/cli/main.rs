//! End-to-end tests of the command line: `flowgauge` runs on the captures in `examples/data`. The expected numbers are
//! those of the README in that folder.

mod answers;
#[cfg(target_os = "linux")]
mod budget;
mod checkpoint;
mod collect;
mod documents;
mod escapes;
mod eve;
mod features;
mod findings;
#[path = "../support/folder.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod folder;
mod groups;
mod help;
mod hosts;
mod ipfix;
mod joined;
mod logs;
mod long_files;
mod memory;
mod merge;
mod names;
mod objects;
mod outputs;
mod overview;
#[cfg(unix)]
mod planted;
#[path = "../support/port.rs"]
mod port;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;
mod report;
mod selection;
mod sessions;
mod slice;
mod streams;
mod trace;
mod transactions;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use folder::Folder;
use port::free_port;

/// Exit status and output of one run.
struct Run {
    status: i32,
    out: String,
    err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Root of the repository, which contains the captures and the documents.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.current_dir(repository().join("examples/data")).env_remove("COLUMNS").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Run {
    command().args(args).output().unwrap().into()
}

/// Starts the command with pipes for its input and its outputs.
fn piped(args: &[&str]) -> Child {
    let pipe = Stdio::piped;
    command().args(args).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap()
}

fn run_with_input(args: &[&str], input: &[u8]) -> Run {
    let mut child = piped(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The child may exit before it has read all input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.into()
}

fn data(name: &str) -> Vec<u8> {
    fs::read(repository().join("examples/data").join(name)).unwrap()
}

/// Records of a run that succeeded.
fn records(args: &[&str]) -> Vec<Value> {
    let run = run(&[&["flows", "--format", "ndjson"], args].concat());
    assert_eq!(run.status, 0, "{}", run.err);
    objects(&run.out)
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(record: &Value, field: &str) -> u64 {
    record[field].as_u64().unwrap_or_else(|| panic!("{field}: {record}"))
}

/// Records without the fields that depend on where they were read, in a common order.
fn comparable_records(records: &[Value]) -> Vec<String> {
    let mut comparable_records: Vec<_> = records
        .iter()
        .map(|record| {
            let mut record = record.clone();
            // A slice renumbers interfaces, and the end of the input may end a flow for another reason.
            record.as_object_mut().unwrap().remove("interface");
            record.as_object_mut().unwrap().remove("flow_end_reason");
            record.to_string()
        })
        .collect();
    comparable_records.sort();
    comparable_records
}

#[test]
fn connection_counts_match_the_readme() {
    for (file, tcp_count, udp_count) in [
        ("web.pcap", 18, 0),
        ("dns.pcap", 6, 26),
        ("ssh.pcap", 4, 0),
        ("mail.pcap", 13, 0),
        ("lossy.pcap", 1, 0),
        ("any.pcap", 4, 3),
        ("raw-tun.pcap", 3, 3),
    ] {
        let records = records(&[file]);
        let count = |protocol| records.iter().filter(|record| number(record, "protocol") == protocol).count();
        assert_eq!((count(6), count(17)), (tcp_count, udp_count), "{file}");
    }
}

#[test]
fn records_have_all_fields_and_initiator_first() {
    let records = records(&["web.pcap", "--filter", "tcp"]);
    let sum = |field| records.iter().map(|record| number(record, field)).sum::<u64>();
    assert_eq!(sum("packet_count") + sum("reverse_packet_count"), 689 + 581);
    let ids: std::collections::HashSet<_> =
        records.iter().map(|record| record["community_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 18);
    let counters = [
        "packet_count",
        "octet_count",
        "ip_octet_count",
        "payload_octet_count",
        "tcp_flags",
        "retransmitted_count",
        "out_of_order_count",
    ];
    for record in &records {
        for field in counters {
            number(record, field);
            number(record, &format!("reverse_{field}"));
        }
        assert!([80, 443, 8080].contains(&number(record, "destination_port")));
        assert!(number(record, "source_port") > 30_000);
        let duration_ns = number(record, "end") - number(record, "start");
        assert_eq!(duration_ns, number(record, "duration"));
        for field in ["tcp_state", "conn_state", "history", "flow_end_reason", "direction_evidence"] {
            assert!(record[field].is_string(), "{field}: {record}");
        }
        for field in [
            "handshake_rtt",
            "icmp_type",
            "icmp_code",
            "interface",
            "sequence_number",
            "dscp",
            "ttl_min",
            "ttl_max",
        ] {
            assert!(record.get(field).is_none_or(Value::is_u64), "{field}");
        }
        assert!(record["vlan_ids"].is_array() && record["reverse_vlan_ids"].is_array());
        assert_eq!(record["source_mac_address"], "02:00:00:77:00:02");
    }
    // Connection 18: four SYN segments without an answer. Connections 16 and 17: refused.
    let unanswered: Vec<_> = records.iter().filter(|record| record["conn_state"] == "S0").collect();
    let [unanswered] = unanswered[..] else { panic!("{unanswered:?}") };
    assert_eq!((number(unanswered, "packet_count"), number(unanswered, "retransmitted_count")), (4, 3));
    assert_eq!(records.iter().filter(|record| record["conn_state"] == "REJ").count(), 2);
}

#[test]
fn vlan_ids_are_in_records_and_selectable_by_filters() {
    let all = records(&["vlan.pcapng", "--filter", "tcp"]);
    let packets: u64 =
        all.iter().map(|r| number(r, "packet_count") + number(r, "reverse_packet_count")).sum();
    assert_eq!(packets, 260);
    assert!(all.iter().all(|record| !record["vlan_ids"].as_array().unwrap().is_empty()));
    assert!(records(&["vlan.pcapng", "--filter", "vlan 30"]).is_empty());
    let csv = run(&["flows", "vlan.pcapng", "--format", "csv", "-q"]).out;
    assert!(
        csv.lines()
            .skip(1)
            .all(|line| line.split(',').count() == csv.lines().next().unwrap().split(',').count())
    );
}

/// A capture of raw IP packets: a query in VXLAN, its answer in VXLAN from another port, and a datagram without a
/// tunnel.
fn tunneled_capture() -> Vec<u8> {
    let ipv4 = |source: u8, destination: u8, protocol: u8, payload: &[u8]| -> Vec<u8> {
        let len = 20 + payload.len() as u8;
        let header =
            [0x45, 0, 0, len, 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, source, 192, 0, 2, destination];
        [&header, payload].concat()
    };
    let udp = |source: u16, destination: u16, payload: &[u8]| -> Vec<u8> {
        let [source, destination] = [source, destination].map(u16::to_be_bytes);
        [&source[..], &destination, &[0, 8 + payload.len() as u8, 0, 0], payload].concat()
    };
    let vxlan = |packet: &[u8]| [&[8, 0, 0, 0, 0, 0, 42, 0], &[2; 12][..], &[8, 0], packet].concat();
    let query = ipv4(1, 2, 17, &udp(5000, 53, b"query"));
    let answer = ipv4(2, 1, 17, &udp(53, 5000, b"an answer"));
    let packets = [
        ipv4(101, 102, 17, &udp(50_001, 4789, &vxlan(&query))),
        ipv4(102, 101, 17, &udp(50_002, 4789, &vxlan(&answer))),
        ipv4(1, 2, 17, &udp(7000, 7001, b"plain")),
    ];
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        capture.extend(word.to_le_bytes());
    }
    for (second, packet) in (1000_u32..).zip(packets) {
        for word in [second, 0, packet.len() as u32, packet.len() as u32] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(packet);
    }
    capture
}

#[test]
fn outer_and_inner_flows_refer_to_each_other() {
    let capture = tunneled_capture();
    let of_port = |records: &[Value], port: u64| -> Value {
        records
            .iter()
            .find(|record| number(record, "source_port") == port)
            .expect("no flow from this port")
            .clone()
    };
    let run = |args: &[&str]| run_with_input(&[&["flows", "-"], args].concat(), &capture);
    let both = run(&["--format", "ndjson", "--tunnels", "both", "--encapsulation"]);
    assert!(
        both.err.contains("\n2 packets counted again for an outer flow (--tunnels both)\n"),
        "{}",
        both.err
    );
    let records = objects(&both.out);
    assert_eq!(records.len(), 4);
    let [query, there, back, plain] = [5000, 50_001, 50_002, 7000].map(|port| of_port(&records, port));
    let outer = |source: (&str, u16), destination: (&str, u16)| {
        serde_json::json!({
            "protocol": 17,
            "source_address": source.0, "source_port": source.1,
            "destination_address": destination.0, "destination_port": destination.1,
        })
    };
    assert_eq!(query["outer_flow"], outer(("192.0.2.101", 50_001), ("192.0.2.102", 4789)));
    assert_eq!(query["reverse_outer_flow"], outer(("192.0.2.102", 50_002), ("192.0.2.101", 4789)));
    assert_eq!(query["outer_community_id"], there["community_id"]);
    assert_eq!(query["reverse_outer_community_id"], back["community_id"]);
    let stack = serde_json::json!([
        {"kind": "IP", "source": "192.0.2.101", "destination": "192.0.2.102"},
        {"kind": "VXLAN", "id": 42},
        {"kind": "Ethernet"},
    ]);
    assert_eq!(query["encapsulation"], stack);
    assert_eq!(number(&query, "reverse_encapsulation_changed_count"), 0);
    for tunnel in [&there, &back] {
        let counts = ["inner_flow_count", "carried_packet_count"].map(|field| number(tunnel, field));
        assert_eq!((counts, number(tunnel, "carried_octet_count")), ([1, 1], number(tunnel, "octet_count")));
        assert!(tunnel["encapsulation"].is_null() && tunnel["outer_flow"].is_null());
    }
    assert!(plain["inner_flow_count"].is_null() && plain["encapsulation"].is_null());

    let csv = run(&["--format", "csv", "--encapsulation", "-q"]).out;
    let expected = ",\"kind=IP source=192.0.2.101 destination=192.0.2.102;kind=VXLAN id=42;kind=Ethernet\",0,,,\"kind=IP source=192.0.2.102 \
        destination=192.0.2.101;kind=VXLAN id=42;kind=Ethernet\",0,,,0,0,0,";
    assert!(csv.contains(expected), "{csv}");
    for (tunnels, ports) in [("innermost", vec![5000, 7000]), ("outermost", vec![7000, 50_001, 50_002])] {
        let records = objects(&run(&["--format", "ndjson", "--tunnels", tunnels, "-q"]).out);
        let mut found: Vec<_> = records.iter().map(|record| number(record, "source_port")).collect();
        found.sort_unstable();
        assert_eq!(found, ports);
        assert!(
            records.iter().all(|record| record["encapsulation"].is_null() && record["outer_flow"].is_null())
        );
    }
}

#[test]
fn csv_and_ndjson_have_the_same_values() {
    for file in ["dns.pcap", "vlan.pcapng", "any.pcap"] {
        let csv = run(&["flows", file, "--format", "csv", "-q"]);
        assert_eq!((csv.status, csv.err.as_str()), (0, ""));
        let mut lines = csv.out.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let header = lines.next().unwrap();
        let ndjson = run(&["flows", file, "--format", "ndjson", "-q"]).out;
        assert_eq!(lines.clone().count(), ndjson.lines().count());
        for (line, record) in lines.zip(objects(&ndjson)) {
            assert_eq!(header.len(), line.len());
            // A value that is absent has no entry.
            let present = line.iter().filter(|cell| !cell.is_empty()).count();
            assert!((present..=header.len()).contains(&record.as_object().unwrap().len()));
            for (name, cell) in header.iter().zip(line) {
                let value = match &record[name] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    Value::Array(ids) if ids.is_empty() => String::new(),
                    Value::Array(ids) => {
                        format!("\"{}\"", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(";"))
                    }
                    other => other.to_string(),
                };
                assert_eq!(value, cell, "{name}");
            }
        }
    }
}

#[test]
fn csv_without_flows_has_only_the_header() {
    let csv = run(&["flows", "web.pcap", "--filter", "port 9", "--format", "csv"]);
    assert_eq!((csv.status, csv.out.lines().count()), (0, 1));
    assert!(csv.out.starts_with("protocol,source_address,"));
    assert!(csv.err.contains("excluded by the filter"), "{}", csv.err);
    assert_eq!(run(&["flows", "web.pcap", "--filter", "port 9", "--format", "ndjson"]).out, "");
}

#[test]
fn the_summary_counts_read_and_skipped_packets() {
    let run = run(&["flows", "web.pcap"]);
    assert_eq!(run.status, 0);
    assert!(run.err.starts_with("1286 packets (1318794 octets, 6.627s of capture): "), "{}", run.err);
    assert!(run.err.contains(" without a flow: 2 ARP\n"), "{}", run.err);
    let lossy = self::run(&["flows", "lossy.pcap"]);
    assert!(lossy.err.contains("281 packets truncated in the capture"), "{}", lossy.err);
}

#[test]
fn the_summary_as_json_has_the_numbers_of_the_text() {
    let text = run(&["flows", "web.pcap", "--format", "csv"]).err;
    let json = run(&["flows", "web.pcap", "--format", "csv", "--summary", "json"]);
    assert_eq!((json.status, json.err.lines().count()), (0, 1));
    let json: Value = serde_json::from_str(&json.err).unwrap();
    assert!(
        text.starts_with("1286 packets (1318794 octets, 6.627s of capture): 27 flows; processed in "),
        "{text}"
    );
    assert_eq!((number(&json, "packet_count"), number(&json, "octet_count")), (1286, 1_318_794));
    assert_eq!((number(&json, "flow_count"), json["result"].as_str()), (27, Some("27 flows")));
    assert_eq!(number(&json, "capture_time"), number(&json, "end") - number(&json, "start"));
    assert_eq!(number(&json, "capture_time") / 1_000_000, 6627);
    assert_eq!((number(&json, "without_flow_count"), number(&json["without_flow"], "ARP")), (2, 2));
    assert_eq!(number(&json, "late_packet_count"), 1);
    let truncated = run(&["sessions", "lossy.pcap", "--summary", "json"]);
    let truncated: Value = serde_json::from_str(&truncated.err).unwrap();
    let expected = fs::read(repository().join("examples/data/lossy.pcap")).unwrap();
    let mut rest = &expected[24..];
    let mut count = 0;
    while let [_, _, _, _, _, _, _, _, captured @ ..] = rest {
        let word = |at: usize| u32::from_le_bytes(captured[at..at + 4].try_into().unwrap());
        count += u64::from(word(0) < word(4));
        rest = &rest[16 + word(0) as usize..];
    }
    assert_eq!(number(&truncated, "truncated_count"), count);
    assert!(count > 100);
    let folder = Folder::new();
    let exported = folder.path("web.ipfix");
    let outcome = run(&["flows", "web.pcap", "--format", "ipfix", "--to", &exported, "-q"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let collected = run(&["collect", &exported, "--format", "csv", "--summary", "json"]);
    let collected: Value = serde_json::from_str(&collected.err).unwrap();
    assert_eq!((number(&collected, "record_count"), number(&collected, "written_record_count")), (27, 27));
    assert_eq!((number(&collected, "message_count"), number(&collected, "lost_count")), (1, 0));
    for command in ["flows", "sessions"] {
        let refused = run(&[command, "web.pcap", "--summary", "json", "--quiet"]);
        assert!(refused.status == 2 && refused.err.contains("cannot be used with"), "{}", refused.err);
    }
}

#[test]
fn top_selects_the_first_rows_of_the_sorted_output() {
    for (field, name) in [
        ("octets", "octet_count"),
        ("packets", "packet_count"),
        ("payload", "payload_octet_count"),
        ("retransmitted", "retransmitted_count"),
    ] {
        let sorted = records(&["dns.pcap", "web.pcap", "--sort", field]);
        let values: Vec<_> = sorted
            .iter()
            .map(|record| number(record, name) + number(record, &format!("reverse_{name}")))
            .collect();
        assert!(values.is_sorted_by(|left, right| left >= right), "{field}");
        for count in [1, 5, 1000] {
            let top = records(&["dns.pcap", "web.pcap", "--sort", field, "--top", &count.to_string()]);
            assert_eq!(top, sorted[..count.min(sorted.len())], "{field} {count}");
        }
        let reversed = records(&["dns.pcap", "web.pcap", "--sort", field, "--reverse"]);
        assert_eq!(comparable_records(&reversed), comparable_records(&sorted));
        assert_eq!(number(&reversed[0], name), number(sorted.last().unwrap(), name));
    }
    for field in ["start", "end"] {
        let sorted = records(&["web.pcap", "--sort", field]);
        let times: Vec<_> = sorted.iter().map(|record| number(record, field)).collect();
        assert!(times.is_sorted());
        assert_eq!(comparable_records(&sorted), comparable_records(&records(&["web.pcap"])));
    }
    assert_eq!(records(&["web.pcap", "--top", "3"]), records(&["web.pcap", "--sort", "octets"])[..3]);
}

#[test]
fn flows_without_a_round_trip_time_are_last_in_either_order() {
    let round_trips = |more: &[&str]| -> Vec<Option<u64>> {
        let args = [&["web.pcap", "--sort", "rtt"], more].concat();
        records(&args).iter().map(|record| record["handshake_rtt"].as_u64()).collect()
    };
    let (falling, rising) = (round_trips(&[]), round_trips(&["--reverse"]));
    let known_count = falling.iter().flatten().count();
    assert!((1..falling.len()).contains(&known_count));
    for trips in [&falling, &rising] {
        assert!(trips[..known_count].iter().all(Option::is_some), "{trips:?}");
    }
    assert!(falling[..known_count].is_sorted_by(|a, b| a >= b) && rising[..known_count].is_sorted());
}

#[test]
fn timeouts_end_flows() {
    // The unanswered connection consists of four SYN segments within 3 s.
    let truncated = records(&["web.pcap", "--filter", "host 10.77.0.66", "--idle-timeout", "500ms"]);
    assert_eq!(truncated.len(), 4);
    assert!(truncated[..3].iter().all(|record| record["flow_end_reason"] == "idle_timeout"));
    let whole = records(&["web.pcap", "--filter", "host 10.77.0.66", "--idle-timeout", "none"]);
    assert_eq!(whole.len(), 1);
    // The slow download lasts about a second.
    let parts = records(&["web.pcap", "--filter", "tcp", "--active-timeout", "200ms", "--sort", "start"]);
    let slow: Vec<_> = parts.iter().filter(|record| record["flow_end_reason"] == "active_timeout").collect();
    assert!(slow.len() >= 3);
    let packets: u64 =
        parts.iter().map(|r| number(r, "packet_count") + number(r, "reverse_packet_count")).sum();
    assert_eq!(packets, 689 + 581);
    assert!(parts.iter().any(|record| number(record, "sequence_number") >= 2));
}

#[test]
fn early_evictions_are_counted_in_the_summary() {
    let run = run(&["flows", "dns.pcap", "--max-flows", "3", "--format", "ndjson"]);
    assert_eq!(run.status, 0);
    assert!(run.err.contains("evicted early"), "{}", run.err);
    assert!(run.out.contains("lack_of_resources"));
    let packets: u64 =
        objects(&run.out).iter().map(|r| number(r, "packet_count") + number(r, "reverse_packet_count")).sum();
    assert_eq!(packets, 168 - 2);
}

#[test]
fn filters_select_whole_flows_by_their_initiator() {
    let to_server = records(&["web.pcap", "--filter", "tcp dst port 443"]);
    assert_eq!(
        comparable_records(&to_server),
        comparable_records(&records(&["web.pcap", "--filter", "tcp port 443"]))
    );
    assert!(to_server.iter().all(|record| number(record, "reverse_packet_count") > 0));
    assert!(records(&["web.pcap", "--filter", "tcp src port 443"]).is_empty());
    let bad = run(&["flows", "web.pcap", "--filter", "tcp prt 80"]);
    assert_eq!((bad.status, bad.out.as_str()), (2, ""));
    assert!(bad.err.contains("\n  tcp prt 80\n      ^^^\n"), "{}", bad.err);
}

#[test]
fn standard_input_is_read_like_a_file() {
    let piped = run_with_input(&["flows", "-", "--format", "ndjson"], &data("mail.pcap"));
    assert_eq!(piped.status, 0, "{}", piped.err);
    assert_eq!(objects(&piped.out), records(&["mail.pcap"]));
    let nothing = run_with_input(&["flows", "-"], b"");
    assert_eq!(
        (nothing.status, nothing.out.as_str(), nothing.err.as_str()),
        (1, "", "flowgauge: -: is empty, not a capture file\n")
    );
}

#[test]
fn several_files_are_merged_in_time_order() {
    let both = records(&["web.pcap", "dns.pcap"]);
    let separate = [records(&["web.pcap"]), records(&["dns.pcap"])].concat();
    let packets = |records: &[Value]| records.iter().map(|r| number(r, "packet_count")).sum::<u64>();
    assert_eq!(packets(&both), packets(&separate));
    assert_eq!(records(&["dns.pcap", "web.pcap", "--sort", "start"]).len(), both.len());
}

#[test]
fn an_unreadable_file_is_reported_in_one_line_and_the_others_are_read() {
    let folder = Folder::new();
    let (text, empty) = (folder.file("notes.txt", b"This is no capture.\n"), folder.file("empty.pcap", b""));
    let missing = folder.path("missing.pcap");
    let directory = folder.0.to_str().unwrap().to_owned();
    let good = comparable_records(&records(&["ssh.pcap"]));
    for (path, words) in [
        (&text, "is not a pcap or pcapng capture: it looks like text"),
        (&empty, "is empty, not a capture file"),
        (&missing, "No such file or directory"),
        (&directory, "is a directory, not a capture file"),
    ] {
        let single = run(&["flows", path]);
        assert_eq!((single.status, single.out.as_str()), (1, ""), "{path}");
        assert_eq!(single.err.lines().count(), 1, "{}", single.err);
        assert!(single.err.starts_with(&format!("flowgauge: {path}: {words}")), "{}", single.err);
        for order in [[path, "ssh.pcap"], ["ssh.pcap", path]] {
            let both = run(&[&["flows", "-q", "--format", "ndjson"][..], &order[..]].concat());
            assert_eq!((both.status, &both.err), (1, &single.err));
            assert_eq!(comparable_records(&objects(&both.out)), good);
        }
    }
}

#[test]
fn a_truncated_capture_yields_the_flows_before_the_truncation() {
    let folder = Folder::new();
    let whole = data("dns.pcap");
    let whole_count = records(&["dns.pcap"]).iter().map(packets).sum::<u64>();
    fn packets(record: &Value) -> u64 {
        number(record, "packet_count") + number(record, "reverse_packet_count")
    }
    // Pseudorandom positions that are the same in each run.
    let mut position: u64 = 7;
    let mut last = (0, 0);
    let mut lens: Vec<_> = (0..12)
        .map(|_| {
            position =
                position.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            24 + (position >> 33) as usize % (whole.len() - 24)
        })
        .collect();
    lens.sort_unstable();
    for len in lens {
        let path = folder.file("truncated.pcap", &whole[..len]);
        let run = run(&["flows", &path, "--format", "ndjson", "-q"]);
        let count: u64 = objects(&run.out).iter().map(packets).sum();
        assert!(last.0 <= len && last.1 <= count && count <= whole_count);
        last = (len, count);
        match run.status {
            0 => assert_eq!(run.err, ""),
            1 => {
                assert_eq!(run.err.lines().count(), 1, "{}", run.err);
                assert!(run.err.starts_with(&format!("flowgauge: {path}: at offset ")), "{}", run.err);
                assert!(run.err.contains(": truncated: the record needs "), "{}", run.err);
            }
            status => panic!("{status}: {}", run.err),
        }
    }
    assert!(last.1 > 0);
}

#[test]
fn compressed_captures_are_decompressed_on_reading() {
    let folder = Folder::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&data("web.pcap")).unwrap();
    let octets = encoder.finish().unwrap();
    // The format is recognized by the content, not by the name.
    let path = folder.file("web.pcap", &octets);
    assert_eq!(records(&[&path]), records(&["web.pcap"]));
    let piped = run_with_input(&["flows", "-", "--format", "ndjson"], &octets);
    assert_eq!(objects(&piped.out), records(&["web.pcap"]));
    let truncated = folder.file("truncated.gz", &octets[..octets.len() / 2]);
    let truncated_run = run(&["flows", &truncated, "-q", "--format", "ndjson"]);
    assert_eq!(truncated_run.status, 1);
    assert!(truncated_run.err.contains("the compressed data is truncated"), "{}", truncated_run.err);
    assert!(!truncated_run.out.is_empty());
}

#[test]
fn a_closed_output_pipe_ends_the_run_without_an_error() {
    let folder = Folder::new();
    // More output than a pipe buffers: the capture is repeated with timestamps one hour later each time.
    let mut big = data("dns.pcap");
    let mut packets = big[24..].to_vec();
    for _ in 0..50 {
        let mut at = 0;
        while at < packets.len() {
            let word = |at: usize| u32::from_le_bytes(packets[at..at + 4].try_into().unwrap());
            let (seconds, len) = (word(at), word(at + 8) as usize);
            packets[at..at + 4].copy_from_slice(&(seconds + 3600).to_le_bytes());
            at += 16 + len;
        }
        big.extend_from_slice(&packets);
    }
    let big = folder.file("big.pcap", &big);
    for format in ["table", "ndjson", "csv"] {
        let mut child = command()
            .args(["flows", &big, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 1];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{format}");
        assert_eq!(output.status.code(), Some(0), "{format}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command().args(["flows", "web.pcap", "-q"]).stdout(full).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.starts_with("flowgauge: standard output: ") && err.lines().count() == 1, "{err}");
}

#[test]
fn output_examples_in_the_documents_are_current() {
    let cases: [(&str, &[&str], Option<&str>); 5] = [
        ("README.md", &["flows", "web.pcap", "--top", "5", "-q"], None),
        ("docs/cli.md", &["flows", "ssh.pcap", "-q"], None),
        ("docs/cli.md", &["flows", "web.pcap", "--top", "3", "-q"], Some("80")),
        ("docs/cli.md", &["flows", "web.pcap", "--filter", "tcp prt 80"], None),
        (
            "docs/cli.md",
            &["flows", "web.pcap", "--filter", "tcp dst port 8080 and ip6", "--format", "ndjson", "-q"],
            None,
        ),
    ];
    for (document, args, columns) in cases {
        let text = fs::read_to_string(repository().join(document)).unwrap();
        let run =
            Run::from(command().args(args).envs(columns.map(|width| ("COLUMNS", width))).output().unwrap());
        let printed = if run.out.is_empty() { run.err } else { run.out };
        assert!(!printed.is_empty() && text.contains(&printed), "{document} lacks:\n{printed}");
    }
}

#[test]
fn summary_and_error_lines_in_the_documents_are_current() {
    let folder = Folder::new();
    let truncated = folder.file("truncated.pcap", &data("web.pcap")[..20_000]);
    let slice = folder.path("refused.pcapng");
    let streams = folder.path("streams");
    let cases: [(&str, &[&str]); 5] = [
        ("README.md", &["flows", "web.pcap", "--top", "5"]),
        (
            "docs/cli.md",
            &["flows", "vlan.pcapng", "--filter", "tcp and ip", "--dedup", "--dedup-mode", "mirror"],
        ),
        ("docs/cli.md", &["slice", "web.pcap", "--filter", "tcp dst port 8080", "-w", &slice]),
        ("docs/cli.md", &["streams", "lossy.pcap", "--out", &streams]),
        ("docs/cli.md", &["flows", &truncated, "/etc/hostname"]),
    ];
    for (document, args) in cases {
        let text = fs::read_to_string(repository().join(document)).unwrap();
        let printed = run(args).err.replace(&truncated, "truncated.pcap");
        assert!(printed.lines().count() > 1, "{args:?}: {printed}");
        for line in printed.lines() {
            // Times and rates differ from run to run.
            let part = line.split_once("; processed in ").map_or(line, |(before, _)| before);
            assert!(text.lines().any(|line| line.contains(part)), "{document} lacks:\n{part}");
        }
    }
}

#[test]
fn links_between_documents_resolve() {
    let root = repository();
    let folders = ["", "docs", "docs/design", "examples/data"].map(|folder| root.join(folder));
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(&file).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !link.is_empty() && !link.contains("://") {
                assert!(file.with_file_name(link).exists(), "{}: {link}", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 10, "only {count} links were found");
}

#[test]
fn the_table_fits_the_terminal_width() {
    for (width, expected) in [("80", "STATE"), ("120", "<-OCTETS"), ("160", "ENDED")] {
        for file in ["web.pcap", "dns.pcap", "mail.pcap"] {
            let output = command().args(["flows", file, "-q"]).env("COLUMNS", width).output().unwrap();
            let run = Run::from(output);
            assert!(run.out.lines().next().unwrap().contains(expected), "{}", run.out);
            let width: usize = width.parse().unwrap();
            assert!(run.out.lines().all(|line| line.len() <= width), "{}", run.out);
        }
    }
    let piped = run(&["flows", "web.pcap", "-q"]).out;
    assert_eq!(piped.lines().count(), 1 + records(&["web.pcap"]).len());
    assert!(piped.lines().next().unwrap().starts_with("START (UTC)"));
    assert!(piped.contains("[2001:db8:77::2]:33654"), "{piped}");
    // The table abbreviates octet counts.
    assert!(piped.contains("179.7k"), "{piped}");
}

#[test]
fn times_and_absent_values_have_the_chosen_style() {
    let first = |args: &[&str]| {
        let output = run(&[&["flows", "dns.pcap", "-q", "--format", "ndjson"], args].concat());
        assert_eq!((output.status, output.err.as_str()), (0, ""), "{args:?}");
        objects(&output.out).swap_remove(0)
    };
    let plain = first(&[]);
    let (dated, in_seconds) = (first(&["--time", "rfc3339"]), first(&["--time", "unix"]));
    let start = dated["start"].as_str().expect("a date");
    assert!(start.starts_with("2026-11-20T23:09:3") && start.ends_with('Z') && start.len() == 30, "{start}");
    let seconds = in_seconds["start"].as_f64().expect("a number");
    assert!((seconds - number(&plain, "start") as f64 / 1e9).abs() < 1e-6, "{seconds}");
    assert_eq!(in_seconds["duration"], dated["duration"]);
    let nulls = first(&["--nulls", "null"]);
    assert!(plain.get("handshake_rtt").is_none());
    assert!(nulls.get("handshake_rtt").is_some_and(Value::is_null));

    let sessions = run(&["sessions", "dns.pcap", "-q", "--time", "rfc3339"]).out;
    assert!(objects(&sessions)[0]["timestamp"].as_str().is_some_and(|time| time.starts_with("2026-11-20T")));
    for (args, error) in [
        (&["--time", "unix"][..], "--time and --nulls require --format ndjson or csv"),
        (&["--format", "fixed", "--fields", "start"], "--fields cannot be combined with --format fixed"),
        (&["--time", "iso"], "the names are ns, unix, rfc3339"),
        (&["--format", "xml"], "possible values: table, ndjson, csv, ipfix, fixed"),
    ] {
        let output = run(&[&["flows", "dns.pcap"], args].concat());
        assert_eq!(output.status, 2, "{args:?}");
        assert!(output.err.contains(error), "{args:?}: {}", output.err);
    }
}

#[test]
fn chosen_fields_are_written_in_their_order() {
    let names = "destination_port,start,octet_count,source_mac_address,handshake_rtt";
    let args = ["flows", "web.pcap", "-q", "--fields", names, "--format"];
    let written = |format| run(&[&args[..], &[format]].concat()).out;
    let (csv, ndjson, table) = (written("csv"), written("ndjson"), written("table"));
    let all = records(&["web.pcap"]);
    assert_eq!(csv.lines().next(), Some(names));
    assert_eq!((csv.lines().count(), table.lines().count()), (1 + all.len(), 1 + all.len()));
    for (record, line) in all.iter().zip(ndjson.lines()) {
        let mut at = 0;
        for name in names.split(',') {
            let Some(value) = record.get(name) else { continue };
            let entry = format!("\"{name}\":{value}");
            at += line[at..].find(&entry).unwrap_or_else(|| panic!("{entry} after {at}: {line}"));
        }
        let written = serde_json::from_str::<Value>(line).unwrap();
        assert!(written.as_object().unwrap().keys().all(|key| names.split(',').any(|name| name == key)));
    }
    // Numbers are on the right, and have the units of the default columns.
    let mut lines = table.lines();
    assert_eq!(lines.next().unwrap().split_whitespace().collect::<Vec<_>>().join(","), names);
    let first: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    let port = all[0]["destination_port"].to_string();
    assert!(first[0] == port && first[1].starts_with("2026-11-"), "{first:?}");
    assert_eq!(first[4], all[0]["source_mac_address"].as_str().unwrap());
    assert!(table.contains("  5.4k  "), "{table}");
    assert!(table.lines().nth(1).unwrap().starts_with(&format!("{port:>16}  ")), "{table}");

    // The application is named only if it is among them.
    assert!(run(&["flows", "web.pcap", "-q", "--fields", "application"]).out.contains("http"));
    for (list, error) in [
        ("octet_cont", "`octet_cont` is not a field; did you mean `octet_count`? `help` lists all"),
        ("scope,scope", "`scope` is listed twice"),
    ] {
        let run = run(&["flows", "web.pcap", "--fields", list]);
        assert!(run.status == 2 && run.err.contains(error), "{}", run.err);
    }
}

#[test]
fn packets_mirrored_on_both_sides_of_a_switch_count_once() {
    // Each of the 146 packets has one tag on the customer's side and two tags on the provider's side.
    let packets = |records: &[Value]| -> u64 {
        records.iter().map(|r| number(r, "packet_count") + number(r, "reverse_packet_count")).sum()
    };
    let mirror = ["vlan.pcapng", "--dedup", "--dedup-mode", "mirror"];
    for more in [&[][..], &["--dedup-between-interfaces"]] {
        let once = records(&[&mirror, more].concat());
        assert_eq!(packets(&once), 146);
        // No duplicate is counted as a retransmission.
        let sum = |field| once.iter().map(|record| number(record, field)).sum::<u64>();
        assert_eq!(sum("retransmitted_count") + sum("reverse_retransmitted_count"), 0);
    }
    assert_eq!(packets(&records(&["vlan.pcapng", "--dedup"])), 292);
    assert_eq!(packets(&records(&["vlan.pcapng", "--dedup=0s", "--dedup-mode", "mirror"])), 292);
    let run = run(&[&["flows"], &mirror[..]].concat());
    assert!(run.err.contains("\n146 duplicate packets skipped (--dedup)\n"), "{}", run.err);
}

#[test]
fn a_capture_given_twice_counts_once() {
    let folder = Folder::new();
    let copy = folder.file("copy.pcap", &data("dns.pcap"));
    let twice = records(&["dns.pcap", &copy, "--dedup=0s"]);
    assert_eq!(comparable_records(&twice), comparable_records(&records(&["dns.pcap"])));
    let out = folder.path("slice.pcapng");
    let run = run(&["slice", "dns.pcap", &copy, "--filter", "udp", "--dedup", "-w", &out]);
    assert_eq!(run.status, 0);
    assert!(run.err.contains("168 duplicate packets skipped (--dedup)"), "{}", run.err);
    // The slice has no ICMP errors, which count for the flows that they quote.
    let fields = ["--fields", "source_port,destination_port,packet_count,octet_count,start,end"];
    let of = |arguments: &[&str]| comparable_records(&records(&[arguments, &fields].concat()));
    assert_eq!(of(&[&out]), of(&["dns.pcap", "--filter", "udp"]));
}

#[test]
fn invalid_command_lines_exit_with_status_2() {
    for args in [
        &["flows"][..],
        &["flows", "web.pcap", "--top", "0"],
        &["flows", "web.pcap", "--idle-timeout", "soon"],
        &["flows", "web.pcap", "--idle-timeout", "0s"],
        &["flows", "web.pcap", "--max-flows", "0"],
        &["flows", "web.pcap", "--sort", "size"],
        &["flows", "web.pcap", "--reverse"],
        &["flows", "web.pcap", "--dedup=soon"],
        &["flows", "web.pcap", "--dedup-mode", "mirror"],
        &["slice", "web.pcap", "--filter", "tcp", "-w", "x.pcapng", "--dedup-between-interfaces"],
        &["flows", "web.pcap", "--format", "xml"],
        &["slice", "web.pcap", "-w", "x.pcapng"],
        &["slice", "web.pcap", "--filter", "tcp"],
        &["flows", "web.pcap", "--shards", "0"],
        &["flows", "web.pcap", "--shards", "257"],
        &["flows", "web.pcap", "--dedup-verify"],
        &["streams", "web.pcap", "--to-stdout", "both", "--force"],
        &["flows", "web.pcap", "--shards", "2", "--tunnels", "both"],
        &["streams", "web.pcap"],
        &["streams", "web.pcap", "--out", "x", "--to-stdout", "both"],
        &["streams", "web.pcap", "--out", "x", "--name", "../{number}{side}"],
        &["streams", "web.pcap", "--out", "x", "--overlap", "amiga"],
        &["streams", "web.pcap", "--to-stdout", "both", "--filter", "tcp prt 80"],
        &["man", "nonsense"],
        &["nonsense"],
        &[],
    ] {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}");
        assert!(!run.err.is_empty());
    }
}

#[test]
fn sharded_runs_write_the_same_flows() {
    for file in ["web.pcap", "dns.pcap", "vlan.pcapng", "any.pcap"] {
        for args in [
            &[][..],
            &["--filter", "src net 10.0.0.0/8"],
            &["--sort", "packets"],
            &["--active-timeout", "10ms"],
        ] {
            let args = [&[file][..], args].concat();
            let one = records(&args);
            for count in ["2", "3"] {
                let many = records(&[&args[..], &["--shards", count]].concat());
                assert_eq!(comparable_records(&many), comparable_records(&one), "{args:?}");
                if args.contains(&"--sort") {
                    let counts = |records: &[Value]| -> Vec<u64> {
                        let both =
                            |record| number(record, "packet_count") + number(record, "reverse_packet_count");
                        records.iter().map(both).collect()
                    };
                    assert_eq!(counts(&many), counts(&one));
                }
            }
        }
    }
    let top = |count| run(&["flows", "web.pcap", "--top", "3", "-q", "--shards", count]).out;
    assert_eq!(top("4"), top("1"));
    // Errors are reported as with one thread.
    let folder = Folder::new();
    let whole = data("ssh.pcap");
    let truncated = folder.file("truncated.pcap", &whole[..whole.len() / 2]);
    let [one, two] = ["1", "2"].map(|count| run(&["flows", &truncated, "/etc/hostname", "--shards", count]));
    assert_eq!((one.status, two.status), (1, 1));
    let lines = |run: &Run| {
        run.err.lines().filter(|line| line.starts_with("flowgauge:")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&one), lines(&two));
}

#[test]
fn parts_of_a_file_have_the_same_flows() {
    // Two parts: the shortest one has 1 MiB.
    for args in [&[][..], &["--filter", "src net 10.0.0.0/8"], &["--active-timeout", "10ms"]] {
        let args = [&["web.pcap"][..], args].concat();
        let parts = records(&[&args[..], &["--jobs", "3"]].concat());
        assert_eq!(comparable_records(&parts), comparable_records(&records(&args)), "{args:?}");
    }
    let counts = |run: &Run| run.err.split("; processed in ").next().unwrap().to_owned();
    let [one, two] = ["1", "2"].map(|count| run(&["flows", "web.pcap", "--format", "csv", "--jobs", count]));
    assert_eq!(counts(&one), counts(&two));
    for (args, reason) in [
        (&["web.pcap", "dns.pcap"][..], "requires one file"),
        (&["-"], "requires one file"),
        (&["web.pcap", "--sort", "packets"], "cannot be combined with --sort"),
        (&["web.pcap", "--tunnels", "both"], "cannot be combined with --tunnels both"),
        (&["web.pcap", "--dedup"], "cannot be combined with --dedup"),
        (&["web.pcap", "--checksums", "count"], "cannot be combined with --checksums"),
        (&["web.pcap", "--shards", "2"], "cannot be used with"),
    ] {
        let run = run(&[&["flows"], args, &["--jobs", "2"]].concat());
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(reason), "{args:?}: {}", run.err);
    }
    let folder = Folder::new();
    let whole = data("web.pcap");
    let truncated = folder.file("truncated.pcap", &whole[..whole.len() - 5]);
    let [one, two] = ["1", "2"].map(|count| run(&["flows", &truncated, "--jobs", count]));
    assert_eq!((one.status, two.status), (1, 1));
    assert_eq!(one.err.lines().next(), two.err.lines().next());
}

#[test]
fn help_completions_and_man_pages() {
    assert_eq!(run(&["--version"]).out, concat!("flowgauge ", env!("CARGO_PKG_VERSION"), "\n"));
    for args in [&["--help"][..], &["flows", "--help"], &["slice", "--help"], &["streams", "--help"]] {
        let help = run(args);
        assert_eq!(help.status, 0);
        assert!(help.out.contains("Examples:") && help.out.lines().all(|line| line.chars().count() <= 100));
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        assert_eq!(script.status, 0);
        assert!(script.out.contains("flowgauge") && script.out.contains("community-id"), "{shell}");
    }
    assert!(run(&["man"]).out.contains(".TH flowgauge 1"));
    assert!(run(&["man", "flows"]).out.contains("idle\\-timeout"));
    let folder = Folder::new();
    assert_eq!(run(&["man", "--out", &folder.path("man")]).status, 0);
    let mut pages: BTreeMap<_, _> = fs::read_dir(folder.path("man"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .collect();
    for name in [
        "flowgauge.1",
        "flowgauge-flows.1",
        "flowgauge-interfaces.1",
        "flowgauge-live.1",
        "flowgauge-slice.1",
        "flowgauge-streams.1",
        "flowgauge-sessions.1",
        "flowgauge-export-objects.1",
        "flowgauge-summary.1",
        "flowgauge-hosts.1",
        "flowgauge-report.1",
        "flowgauge-packets.1",
        "flowgauge-collect.1",
        "flowgauge-merge.1",
        "flowgauge-checkpoint.1",
        "flowgauge-checkpoint-show.1",
        #[cfg(feature = "bus")]
        "flowgauge-publish.1",
        #[cfg(feature = "bus")]
        "flowgauge-subscribe.1",
        #[cfg(feature = "sql")]
        "flowgauge-sql.1",
        #[cfg(all(feature = "tun", target_os = "linux"))]
        "flowgauge-tun.1",
        "flowgauge-man.1",
        "flowgauge-completions.1",
    ] {
        assert!(pages.remove(name).is_some_and(|len| len > 200), "{name}");
    }
    assert!(pages.is_empty(), "{pages:?}");
}

#[test]
fn a_timestamp_far_ahead_of_all_others_is_reported_and_ends_no_flow() {
    let mut odd = data("ssh.pcap");
    // The hundredth frame has a timestamp in the year 2100.
    let mut at = 24;
    for _ in 0..100 {
        at += 16 + u32::from_le_bytes(odd[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    odd[at..at + 4].copy_from_slice(&4_102_444_800_u32.to_le_bytes());
    let folder = Folder::new();
    let file = folder.file("odd.pcap", &odd);
    let reported = run(&["flows", &file, "--format", "ndjson"]);
    assert!(reported.err.contains("1 packet with a timestamp far ahead of all others"), "{}", reported.err);
    let (found, expected) = (objects(&reported.out), records(&["ssh.pcap"]));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        for field in ["community_id", "packet_count", "octet_count", "conn_state", "history", "start", "end"]
        {
            assert_eq!(found[field], expected[field]);
        }
    }
    // A slice keeps the original timestamps.
    let out = folder.path("slice.pcapng");
    let sliced = run(&["slice", &file, "--filter", "tcp", "-w", &out]);
    assert_eq!(sliced.status, 0, "{}", sliced.err);
    let last = records(&[&out]).iter().map(|record| number(record, "end")).max().unwrap();
    assert_eq!(
        last / 1_000_000_000,
        records(&["ssh.pcap"]).iter().map(|record| number(record, "end")).max().unwrap() / 1_000_000_000
    );
}
