//! Groups of flows and counts over time, compared with programs that group the records of `--format ndjson` and the rows of
//! packets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Folder, run};

fn rows(args: &[&str]) -> Vec<Value> {
    let run = run(&[args, &["-q"]].concat());
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{args:?}");
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Groups records by fields.
fn grouped(records: &[Value], fields: &[&str]) -> BTreeMap<Vec<String>, Vec<Value>> {
    let mut groups: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    for record in records {
        let key = fields.iter().map(|field| record[*field].to_string()).collect();
        groups.entry(key).or_default().push(record.clone());
    }
    groups
}

fn numbers(records: &[Value], field: &str) -> Vec<u64> {
    let mut numbers: Vec<_> = records.iter().filter_map(|record| record[field].as_u64()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn groups_are_those_of_the_records() {
    let cases: [(&str, &[&str]); 4] = [
        ("web.pcap", &["destination_port"]),
        ("dns.pcap", &["application", "conn_state"]),
        ("mail.pcap", &["source_address", "destination_port"]),
        ("vlan.pcapng", &["vlan_ids"]),
    ];
    for (capture, fields) in cases {
        let groups = grouped(&rows(&["flows", capture, "--format", "ndjson"]), fields);
        let list = fields.join(",");
        let functions = "mean(octet_count),min(duration),max(duration),distinct(source_port),median(octet_count),p90(octet_count)";
        let written = rows(&[
            "flows",
            capture,
            "--format",
            "ndjson",
            "--group-by",
            &list,
            "--sum",
            "octet_count,reverse_packet_count",
            "--aggregate",
            functions,
        ]);
        assert_eq!(written.len(), groups.len(), "{capture}");
        let sums: Vec<_> = written.iter().map(|row| row["octet_count_sum"].as_u64().unwrap()).collect();
        assert!(sums.is_sorted_by(|one, other| one >= other), "{sums:?}");
        for row in written {
            let key: Vec<_> = fields.iter().map(|field| row[*field].to_string()).collect();
            let records = &groups[&key];
            let octets = numbers(records, "octet_count");
            assert_eq!(row["flow_count"], records.len());
            assert_eq!(row["octet_count_sum"], octets.iter().sum::<u64>());
            assert_eq!(
                row["reverse_packet_count_sum"],
                numbers(records, "reverse_packet_count").iter().sum::<u64>()
            );
            let mean = octets.iter().sum::<u64>() as f64 / octets.len() as f64;
            assert!((row["octet_count_mean"].as_f64().unwrap() - mean).abs() <= 1e-6 * mean);
            let durations = numbers(records, "duration");
            assert_eq!(
                (&row["duration_min"], &row["duration_max"]),
                (&durations[0].into(), &durations[durations.len() - 1].into())
            );
            let mut ports = numbers(records, "source_port");
            ports.dedup();
            assert_eq!(row["source_port_distinct"], ports.len());
            // The nearest rank; exact, because the groups are small.
            assert!(octets.len() <= 256);
            for (name, percent) in [("octet_count_median", 50), ("octet_count_p90", 90)] {
                let exact = octets[(octets.len() * percent).div_ceil(100) - 1] as f64;
                assert_eq!(row[name].as_f64(), Some(exact), "{name} of {octets:?}");
            }
        }
    }
}

#[test]
fn groups_are_sorted_limited_and_selected() {
    let all = rows(&[
        "flows",
        "web.pcap",
        "--format",
        "ndjson",
        "--group-by",
        "destination_port",
        "--sort",
        "destination_port",
    ]);
    let ports: Vec<_> = all.iter().map(|row| row["destination_port"].as_u64()).collect();
    assert_eq!(ports, [Some(8080), Some(443), Some(80), None]);
    let reversed = rows(&[
        "flows",
        "web.pcap",
        "--format",
        "ndjson",
        "--group-by",
        "destination_port",
        "--sort",
        "destination_port",
        "-r",
        "--top",
        "2",
    ]);
    assert_eq!(reversed, [all[2].clone(), all[1].clone()]);
    let selected = rows(&[
        "flows",
        "web.pcap",
        "--format",
        "ndjson",
        "--group-by",
        "destination_port",
        "--where",
        "conn_state = 'SF'",
    ]);
    assert!(
        selected.iter().all(|row| row["destination_port"] != 8080) && selected.len() == 2,
        "{selected:?}"
    );
    let sharded = rows(&[
        "flows",
        "web.pcap",
        "--format",
        "ndjson",
        "--group-by",
        "destination_port",
        "--sort",
        "destination_port",
        "--shards",
        "2",
    ]);
    assert_eq!(sharded, all);
}

#[test]
fn groups_of_collected_records_and_other_formats() {
    let folder = Folder::new();
    let path = folder.path("flows.ipfix");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "-q"]).status, 0);
    let args = ["--group-by", "destination_port", "--sum", "octet_count", "--top", "2"];
    let own = run(&[&["flows", "web.pcap", "-q"][..], &args].concat());
    let collected = run(&[&["collect", &path, "-q"][..], &args].concat());
    assert_eq!((own.status, collected.status), (0, 0));
    assert_eq!(own.out, collected.out);
    let joined = run(&[&["collect", &path, "-q", "--join", "30s"][..], &args].concat());
    assert_eq!(joined.out, own.out);
    let lines: Vec<_> = own.out.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], "DESTINATION_PORT  FLOW_COUNT  OCTET_COUNT_SUM");
    let csv = run(&[&["flows", "web.pcap", "-q", "--format", "csv"][..], &args].concat());
    assert_eq!(csv.out.lines().next(), Some("destination_port,flow_count,octet_count_sum"));
}

#[test]
fn flows_are_sorted_by_any_field() {
    let all = rows(&["flows", "web.pcap", "--format", "ndjson"]);
    for (field, descends) in [
        ("reverse_octet_count", true),
        ("destination_port", true),
        ("handshake_rtt", true),
        ("conn_state", false),
    ] {
        let sorted = rows(&["flows", "web.pcap", "--format", "ndjson", "--sort", field]);
        let mut expected = all.clone();
        expected.sort_by(|one, other| {
            let (one, other) = (&one[field], &other[field]);
            let order = match (one.as_u64(), other.as_u64()) {
                (Some(one), Some(other)) => one.cmp(&other),
                _ => one.as_str().cmp(&other.as_str()),
            };
            let order = if descends { order.reverse() } else { order };
            one.is_null().cmp(&other.is_null()).then(order)
        });
        assert_eq!(sorted, expected, "{field}");
        let top = rows(&["flows", "web.pcap", "--format", "ndjson", "--sort", field, "--top", "3"]);
        assert_eq!(top, expected[..3], "{field}");
    }
}

#[test]
fn contradictions_are_refused() {
    for (args, message) in [
        (&["flows", "web.pcap", "--sum", "octet_count"][..], "--group-by <LIST>"),
        (&["flows", "web.pcap", "--group-by", "port"], "`port` is not a field"),
        (&["flows", "web.pcap", "--group-by", "protocol", "--sum", "history"], "`history` is no number"),
        (
            &["flows", "web.pcap", "--group-by", "protocol", "--aggregate", "p101(duration)"],
            "from p0 to p100",
        ),
        (
            &["flows", "web.pcap", "--group-by", "protocol", "--aggregate", "duration"],
            "no function of a field",
        ),
        (
            &["flows", "web.pcap", "--group-by", "protocol", "--sort", "octets"],
            "is not a column of the groups",
        ),
        (
            &[
                "flows",
                "web.pcap",
                "--group-by",
                "protocol",
                "--sum",
                "duration",
                "--aggregate",
                "sum(duration)",
            ],
            "the column `duration_sum` exists twice",
        ),
        (
            &["flows", "web.pcap", "--group-by", "protocol", "--format", "ipfix"],
            "--group-by requires --format table",
        ),
        (
            &["flows", "web.pcap", "--group-by", "protocol", "--write", "csv=x"],
            "cannot be combined with --write",
        ),
        (&["flows", "web.pcap", "--sort", "color"], "neither one of start, end"),
        (&["flows", "missing.pcap", "--sort", "vlan_ids"], "nor a field with one value"),
        (&["flows", "missing.pcap", "--where", "bad = 1"], "`bad` is not a column"),
        (&["collect", "x.ipfix", "--top", "3"], "--top requires --group-by"),
        (&["flows", "web.pcap", "--by", "protocol"], "--time-series <TIME>"),
        (&["flows", "web.pcap", "--time-series", "0s"], "must be from 1ms to 366days"),
        (
            &["flows", "web.pcap", "--time-series", "1s", "--group-by", "protocol"],
            "cannot be combined with --time-series",
        ),
        (
            &["flows", "web.pcap", "--time-series", "1s", "--top", "3"],
            "cannot be combined with --sort, --top",
        ),
        (
            &["flows", "web.pcap", "--time-series", "1s", "--format", "zeek"],
            "cannot be combined with --write",
        ),
        (&["flows", "web.pcap", "--time-series", "1s", "--shards", "2"], "cannot be combined with --shards"),
    ] {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(message), "{args:?}: {}", run.err);
    }
}

/// Counts of an interval: flows, then packets and octets of both directions together.
type Counts = (u64, u64, u64);

fn counts(row: &Value) -> Counts {
    let number = |name: &str| row[name].as_u64().unwrap();
    (
        number("flow_count"),
        number("packet_count") + number("reverse_packet_count"),
        number("octet_count") + number("reverse_octet_count"),
    )
}

#[test]
fn intervals_count_packets_when_they_were_captured() {
    const SECOND: u64 = 1_000_000_000;
    for (capture, interval, nanoseconds) in
        [("web.pcap", "1s", SECOND), ("web.pcap", "10ms", SECOND / 100), ("vlan.pcapng", "250ms", SECOND / 4)]
    {
        let mut expected: BTreeMap<u64, Counts> = BTreeMap::new();
        let mut flows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for packet in rows(&["packets", capture, "--filter", "tcp or udp"]) {
            let end = |side: &str| [&packet[format!("{side}_address")], &packet[format!("{side}_port")]];
            let mut ends = [end("source"), end("destination")].map(|end| format!("{end:?}"));
            ends.sort();
            let id = format!("{} {ends:?}", packet["protocol"]);
            let number = packet["timestamp"].as_u64().unwrap() / nanoseconds;
            let (flow_count, packet_count, octet_count) = expected.entry(number).or_default();
            let ids = flows.entry(number).or_default();
            if !ids.contains(&id) {
                ids.push(id);
                *flow_count += 1;
            }
            *packet_count += 1;
            *octet_count += packet["wire_len"].as_u64().unwrap();
        }
        let filter = ["--filter", "tcp or udp"];
        let written = rows(
            &[&["flows", capture, "--time-series", interval, "--format", "ndjson"][..], &filter].concat(),
        );
        let written: BTreeMap<u64, Counts> =
            written.iter().map(|row| (row["time"].as_u64().unwrap() / nanoseconds, counts(row))).collect();
        assert_eq!(written, expected, "{capture} {interval}");
    }
}

/// The packets of collected records are not known: their counts are spread evenly over the time of the record.
#[test]
fn collected_records_are_spread_over_their_time() {
    let folder = Folder::new();
    let path = folder.path("web.ipfix");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "-q"]).status, 0);
    let records = rows(&["collect", &path, "--format", "ndjson"]);
    for (interval, nanoseconds) in [("1s", 1e9), ("100ms", 1e8), ("7ms", 7e6)] {
        let written = rows(&["collect", &path, "--time-series", interval, "--format", "ndjson"]);
        let mut expected: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
        for record in &records {
            let number = |name: &str| record[name].as_u64().unwrap();
            let octets = (number("octet_count") + number("reverse_octet_count")) as f64;
            let (start, end) = (number("start"), number("end"));
            let first = start / nanoseconds as u64;
            for index in first..=end / nanoseconds as u64 {
                let begin = (index * nanoseconds as u64).max(start);
                let until = ((index + 1) * nanoseconds as u64).min(end + 1);
                let part = octets * (until - begin) as f64 / (end + 1 - start) as f64;
                let (flow_count, sum) = expected.entry(index).or_default();
                (*flow_count, *sum) = (*flow_count + 1, *sum + part);
            }
        }
        assert_eq!(written.len(), expected.len(), "{interval}");
        for row in &written {
            let (flow_count, octets) = expected[&(row["time"].as_u64().unwrap() / nanoseconds as u64)];
            let sum = row["octet_count"].as_u64().unwrap() + row["reverse_octet_count"].as_u64().unwrap();
            assert_eq!(row["flow_count"], flow_count);
            // Each record is rounded.
            assert!((sum as f64 - octets).abs() <= 2.0 * flow_count as f64, "{interval} {sum} {octets}");
        }
        for name in ["packet_count", "octet_count", "reverse_packet_count", "reverse_octet_count"] {
            let sum = |rows: &[Value]| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
            assert_eq!(sum(&written), sum(&records), "{interval} {name}");
        }
    }
}

#[test]
fn intervals_by_fields_add_up() {
    let all = rows(&["flows", "web.pcap", "--time-series", "1ms", "--format", "ndjson"]);
    let by = rows(&[
        "flows",
        "web.pcap",
        "--time-series",
        "1ms",
        "--by",
        "application,conn_state",
        "--format",
        "ndjson",
    ]);
    let mut sums: BTreeMap<u64, Counts> = BTreeMap::new();
    for row in &by {
        let (flows, packets, octets) = counts(row);
        let sum = sums.entry(row["time"].as_u64().unwrap()).or_default();
        *sum = (sum.0 + flows, sum.1 + packets, sum.2 + octets);
    }
    let all: BTreeMap<u64, Counts> =
        all.iter().map(|row| (row["time"].as_u64().unwrap(), counts(row))).collect();
    assert_eq!(sums, all);
    assert!(
        by.iter().any(|row| row["application"] == "tls") && by.iter().any(|row| row["conn_state"] == "S0")
    );
    // The total of each state is that of the records.
    let records = grouped(&rows(&["flows", "web.pcap", "--format", "ndjson"]), &["conn_state"]);
    for (state, records) in records {
        let octets: u64 = by
            .iter()
            .filter(|row| format!("{}", row["conn_state"]) == state[0])
            .map(|row| counts(row).2)
            .sum();
        let expected: u64 =
            ["octet_count", "reverse_octet_count"].iter().flat_map(|name| numbers(&records, name)).sum();
        assert_eq!(octets, expected, "{state:?}");
    }
    let hour = ["flows", "web.pcap", "--time-series", "1h", "--format", "ndjson"];
    assert_eq!(rows(&[&hour[..], &["--active-timeout", "1s"]].concat()), rows(&hour));
    let selected = rows(&[
        "flows",
        "web.pcap",
        "--time-series",
        "1h",
        "--where",
        "conn_state = 'S0'",
        "--format",
        "ndjson",
    ]);
    assert_eq!(selected.iter().map(counts).collect::<Vec<_>>(), [(1, 4, 296)]);
}
