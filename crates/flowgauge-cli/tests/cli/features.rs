//! Tests of features of flows.

use serde_json::Value;

use super::{objects, run};

fn rows(options: &[&str]) -> Vec<Value> {
    let run = run(&[&["flows", "web.pcap", "-q", "--format", "ndjson"], options].concat());
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    objects(&run.out)
}

#[test]
fn a_record_is_followed_by_its_features() {
    let plain = rows(&[]);
    let features = rows(&["--features", "cic,nfstream"]);
    assert_eq!(plain.len(), features.len());
    for (plain, features) in plain.iter().zip(&features) {
        for (name, value) in plain.as_object().unwrap() {
            assert_eq!(&features[name], value, "{name}");
        }
        assert_eq!(features["Total Fwd Packet"], plain["packet_count"]);
        assert_eq!(features["Total Bwd packets"], plain["reverse_packet_count"]);
    }
    let chosen = rows(&["--features", "splt=2", "--fields", "start,protocol"]);
    let names: Vec<_> = chosen[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["start", "protocol", "splt_direction", "splt_length", "splt_interval"]);
    let selected = rows(&["--features", "cic", "--filter", "src host 10.77.0.2 and tcp"]);
    assert!(!selected.is_empty() && selected.len() < plain.len());
    assert!(selected.iter().all(|row| row["Src IP"] == "10.77.0.2" && row["Protocol"] == 6));
}

#[test]
fn an_early_row_has_the_packets_up_to_there_and_each_flow_has_one() {
    let all = rows(&["--features", "nfstream"]);
    let early = rows(&["--features", "nfstream", "--at", "packets=10"]);
    assert_eq!(all.len(), early.len());
    let count = |row: &Value| row["bidirectional_packets"].as_u64().unwrap();
    let mut expected: Vec<u64> = all.iter().map(|row| count(row).min(10)).collect();
    let mut found: Vec<u64> = early.iter().map(count).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert!(all.iter().any(|row| count(row) > 10));
    let timely = rows(&["--features", "nfstream", "--at", "ms=1"]);
    assert!(timely.iter().all(|row| row["bidirectional_duration_ms"].as_u64().unwrap() <= 1));
}

#[test]
fn rows_are_sorted_with_what_is_joined() {
    const JOINED: [&str; 5] = ["--features", "tcp", "--names", "--server-name", "dns"];
    let joined = |options: &[&str]| rows(&[&JOINED, options].concat());
    let mut all = joined(&[]);
    assert!(all.iter().any(|row| row["server_name"].is_string() && row["destination_name"].is_string()));
    let packets =
        |row: &Value| row["packet_count"].as_u64().unwrap() + row["reverse_packet_count"].as_u64().unwrap();
    // Equal ones stay in the order in which they ended.
    all.sort_by_key(|row| std::cmp::Reverse(packets(row)));
    assert_eq!(joined(&["--sort", "packets"]), all);
    assert_eq!(joined(&["--top", "3", "--sort", "packets"]), all[..3]);
    let named = joined(&["--top", "2", "--sort", "packets", "--where", "server_name = 'web.example'"]);
    all.retain(|row| row["server_name"] == "web.example");
    assert!(all.len() > 2 && named == all[..2], "{named:?}");
}

#[test]
fn bad_requests_are_refused() {
    for (options, message) in [
        (&["--features", "cic"][..], "--features requires --format ndjson, csv, parquet or arrow"),
        (&["--features", "cix", "-f", "csv"], "`cix` is no feature; the features are cic"),
        (&["--features", "splt=0", "-f", "csv"], "`splt=0` is no feature"),
        (&["--features", "cic", "-f", "csv", "--shards", "2"], "--features cannot be combined with --shards"),
        (&["--features", "cic", "-f", "csv", "--at", "10"], "`10` is none of packets=N, octets=N and ms=N"),
        (&["--at", "packets=10"], "--features <LIST>"),
    ] {
        let run = run(&[&["flows", "web.pcap"], options].concat());
        assert!(run.status == 2 && run.err.contains(message), "{options:?}: {}", run.err);
    }
}
