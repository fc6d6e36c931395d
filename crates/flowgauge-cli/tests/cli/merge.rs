//! Tests of `flowgauge merge`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flowgauge::source::PcapngWriter;
use flowgauge::{FileSource, FrameBatch, Next, Source as _};
use serde_json::{Value, json};

use super::{Folder, data, number, objects, records, repository, run, run_with_input};

/// Writes the packets of an example to files, and begins a new file at each position.
fn split(folder: &Folder, name: &str, positions: &[usize]) -> Vec<String> {
    let path = repository().join("examples/data").join(name);
    let mut source = FileSource::open(&path).unwrap();
    let writer = || PcapngWriter::new(Vec::new()).unwrap();
    let (mut batch, mut parts, mut count) = (FrameBatch::new(), vec![writer()], 0);
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        for frame in batch.iter() {
            if positions.contains(&count) {
                parts.push(writer());
            }
            count += 1;
            parts.last_mut().unwrap().write(&frame, source.interfaces()).unwrap();
        }
    }
    assert_eq!(parts.len(), positions.len() + 1, "{name} has {count} packets");
    let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
    let file = |(index, part): (usize, PcapngWriter<Vec<u8>>)| {
        folder.file(&format!("{stem}.{index}.pcapng"), &part.finish().unwrap())
    };
    parts.into_iter().enumerate().map(file).collect()
}

/// Writes the records of captures to files.
fn records_of(folder: &Folder, captures: &[String], format: &[&str]) -> Vec<String> {
    let write = |capture: &String| {
        let path = folder.path(&format!("{}.{}", capture.rsplit('/').next().unwrap(), format[0]));
        let output = super::command()
            .args(["flows", capture, "-q", "--format"])
            .args(format)
            .stdout(fs::File::create(&path).unwrap())
            .status()
            .unwrap();
        assert!(output.success());
        path
    };
    captures.iter().map(write).collect()
}

fn merge(files: &[String], args: &[&str]) -> super::Run {
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    run(&[&["merge"], &files[..], args].concat())
}

fn merged(files: &[String], args: &[&str]) -> Vec<Value> {
    let run = merge(files, &[&["--format", "ndjson"], args].concat());
    assert_eq!(run.status, 0, "{}", run.err);
    objects(&run.out)
}

/// Number of records, packets and octets, first and last time of a flow.
type Totals = (usize, u64, u64, u64, u64);

/// Returns the totals of all flows by their Community ID.
fn totals(records: &[Value]) -> BTreeMap<String, Totals> {
    let mut totals: BTreeMap<_, Totals> = BTreeMap::new();
    for record in records {
        let id = record["community_id"].as_str().unwrap().to_owned();
        let both = |name: &str| number(record, name) + number(record, &format!("reverse_{name}"));
        let total = totals.entry(id).or_insert((0, 0, 0, u64::MAX, 0));
        total.0 += 1;
        total.1 += both("packet_count");
        total.2 += both("octet_count");
        total.3 = total.3.min(number(record, "start"));
        total.4 = total.4.max(number(record, "end"));
    }
    totals
}

#[test]
fn the_records_of_parts_are_those_of_the_whole_capture() {
    let folder = Folder::new();
    for (name, positions) in
        [("web.pcap", [3, 700]), ("lossy.pcap", [200, 201]), ("mail.pcap", [40, 90]), ("ssh.pcap", [20, 60])]
    {
        let whole = records(&[name]);
        let parts = split(&folder, name, &positions);
        let expected = totals(&whole);
        let undivided: usize = parts.iter().map(|part| records(&[part]).len()).sum();
        assert!(undivided > whole.len(), "{name}: no flow is divided");
        let formats = [
            &["ndjson"][..],
            &["ipfix"],
            &["ipfix", "--enterprise-number", "32473"],
            #[cfg(feature = "arrow")]
            &["parquet"],
        ];
        for format in formats {
            let files = records_of(&folder, &parts, format);
            let mut found = merged(&files, &[]);
            assert_eq!(totals(&found), expected, "{name}, {format:?}");
            // The arguments may be in any order.
            let reversed: Vec<_> = files.into_iter().rev().collect();
            let mut again = merged(&reversed, &[]);
            found.sort_by_key(Value::to_string);
            again.sort_by_key(Value::to_string);
            assert_eq!(found, again, "{name}, {format:?}");
        }
        // Fixed records round durations.
        let counts = |totals: BTreeMap<String, Totals>| -> BTreeMap<_, _> {
            totals.into_iter().map(|(id, total)| (id, (total.0, total.1, total.2, total.3))).collect()
        };
        let files = records_of(&folder, &parts, &["fixed"]);
        assert_eq!(counts(totals(&merged(&files, &[]))), counts(expected), "{name}");
    }
}

#[test]
fn connections_that_are_divided_have_the_outcome_of_the_whole_capture() {
    let folder = Folder::new();
    let parts = split(&folder, "mail.pcap", &[40, 90, 120]);
    let files = records_of(&folder, &parts, &["ndjson"]);
    let by_id = |records: Vec<Value>| -> BTreeMap<_, _> {
        let fields = ["conn_state", "tcp_state", "flow_end_reason", "source_port", "ttl_min", "tcp_flags"];
        let values = |record: &Value| fields.map(|name| record[name].clone());
        records.iter().map(|record| (record["community_id"].to_string(), values(record))).collect()
    };
    let (found, expected) = (by_id(merged(&files, &[])), by_id(records(&["mail.pcap", "--filter", "tcp"])));
    let different = expected.iter().filter(|(id, values)| found.get(*id) != Some(values)).count();
    assert_eq!(different, 0, "{found:?}\n{expected:?}");
}

#[test]
fn records_of_active_timeouts_are_merged_from_standard_input() {
    let lines = run(&["flows", "web.pcap", "--active-timeout", "1s", "--format", "ndjson", "-q"]);
    let merged = run_with_input(&["merge", "-", "--format", "ndjson"], lines.out.as_bytes());
    assert_eq!(merged.status, 0, "{}", merged.err);
    assert!(merged.err.starts_with("1 file: 32 records merged to 27; processed in "), "{}", merged.err);
    let (found, expected) = (objects(&merged.out), records(&["web.pcap"]));
    assert_eq!(totals(&found), totals(&expected));
    assert!(found.iter().all(|record| record["sequence_number"] == 0));
    let histories = |records: &[Value]| -> BTreeMap<_, _> {
        let fields = |record: &Value| (record["history"].to_string(), record["conn_state"].to_string());
        records.iter().map(|record| (record["community_id"].to_string(), fields(record))).collect()
    };
    assert_eq!(histories(&found), histories(&expected));
}

#[test]
fn files_may_have_different_formats() {
    let folder = Folder::new();
    let parts = split(&folder, "ssh.pcap", &[20, 60]);
    let formats = [&["ndjson"][..], &["ipfix"], &["fixed"]];
    let files: Vec<_> = parts
        .iter()
        .zip(formats)
        .flat_map(|(part, format)| records_of(&folder, std::slice::from_ref(part), format))
        .collect();
    let count = |records: &[Value]| {
        totals(records).into_iter().map(|(id, total)| (id, total.0, total.1)).collect::<Vec<_>>()
    };
    assert_eq!(count(&merged(&files, &[])), count(&records(&["ssh.pcap"])));
}

#[test]
fn records_of_the_same_packets_are_not_added() {
    let folder = Folder::new();
    let part = split(&folder, "web.pcap", &[700]).remove(0);
    let file = records_of(&folder, &[part], &["ndjson"]).remove(0);
    let once = merged(std::slice::from_ref(&file), &[]);
    let twice = merge(&[file.clone(), file], &["--format", "ndjson"]);
    assert_eq!(twice.status, 0, "{}", twice.err);
    assert_eq!(objects(&twice.out).len(), 2 * once.len());
    let octets = |records: &[Value]| records.iter().map(|record| number(record, "octet_count")).sum::<u64>();
    assert_eq!(octets(&objects(&twice.out)), 2 * octets(&once));
    let note = format!("{} records not merged, because another record of the flow", once.len());
    assert!(twice.err.contains(&note), "{}", twice.err);
}

/// Returns a line with a record of a datagram at a second.
fn datagram(second: u64, more: &Value) -> String {
    let mut record = json!({
        "protocol": 17,
        "source_address": "192.0.2.1",
        "source_port": 5353,
        "destination_address": "192.0.2.2",
        "destination_port": 5353,
        "start": second * 1_000_000_000,
        "end": second * 1_000_000_000,
        "packet_count": 1,
        "octet_count": 100,
        "flow_end_reason": "forced_end",
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{record}\n")
}

fn merged_lines(lines: &[String], args: &[&str]) -> Vec<Value> {
    let run =
        run_with_input(&[&["merge", "-", "--format", "ndjson"], args].concat(), lines.concat().as_bytes());
    assert_eq!(run.status, 0, "{}", run.err);
    objects(&run.out)
}

#[test]
fn the_gap_decides_which_records_are_of_one_flow() {
    let lines = [datagram(0, &json!({})), datagram(59, &json!({})), datagram(120, &json!({}))];
    let counts = |args: &[&str]| -> Vec<_> {
        merged_lines(&lines, args).iter().map(|record| number(record, "packet_count")).collect()
    };
    // The idle timeout of UDP is 60 s.
    assert_eq!(counts(&[]), [2, 1]);
    assert_eq!(counts(&["--gap", "59s"]), [1, 1, 1]);
    assert_eq!(counts(&["--gap", "2m"]), [3]);
    let ended = [datagram(0, &json!({"flow_end_reason": "idle_timeout"})), datagram(59, &json!({}))];
    assert_eq!(merged_lines(&ended, &[]).len(), 2);
}

#[test]
fn a_record_of_another_flow_is_never_lost() {
    // Ports, protocol, scope and address differ.
    let others = [
        json!({}),
        json!({"source_port": 5354}),
        json!({"protocol": 132}),
        json!({"scope": 7}),
        json!({"destination_address": "192.0.2.3"}),
        json!({"vni": 7}),
    ];
    let lines: Vec<_> =
        (0..4).flat_map(|second| others.iter().map(move |more| datagram(second, more))).collect();
    for args in [&[][..], &["--memory", "2kB"], &["--memory", "1B"]] {
        let found = merged_lines(&lines, args);
        let packets: u64 = found.iter().map(|record| number(record, "packet_count")).sum();
        assert_eq!(packets, 24, "{args:?}");
        assert!(found.len() >= 6, "{args:?}: {found:?}");
        assert_eq!(found.len() == 6, args.is_empty(), "{args:?}");
    }
    let small = run_with_input(&["merge", "-", "--memory", "1B"], lines.concat().as_bytes());
    let note = "24 records of open flows not merged with later ones, because of --memory";
    assert!(small.err.contains(note), "{}", small.err);
}

#[test]
fn sampled_records_stay_sampled() {
    let sampled = |interval| json!({"sampling_interval": interval});
    let lines = [datagram(0, &sampled(100)), datagram(1, &sampled(100))];
    let found = merged_lines(&lines, &[]);
    assert_eq!((number(&found[0], "packet_count"), number(&found[0], "sampling_interval")), (2, 100));
    assert!(found[0]["counter_scale"].is_null());
    let lines = [datagram(0, &sampled(100)), datagram(1, &json!({}))];
    let found = merged_lines(&lines, &[]);
    assert_eq!((number(&found[0], "packet_count"), number(&found[0], "counter_scale")), (101, 100));
}

#[test]
fn records_are_selected_sorted_and_written_as_in_other_commands() {
    let folder = Folder::new();
    let parts = split(&folder, "web.pcap", &[700]);
    let files = records_of(&folder, &parts, &["ndjson"]);
    let octets = |record: &Value| number(record, "octet_count") + number(record, "reverse_octet_count");
    let mut expected: Vec<_> = records(&["web.pcap"]).iter().map(octets).collect();
    expected.sort_unstable_by(|one, other| other.cmp(one));
    let top: Vec<_> = merged(&files, &["--top", "3"]).iter().map(octets).collect();
    assert_eq!(top, expected[..3]);
    let selected = merged(&files, &["--where", "protocol = 6 and octet_count > 1000", "--sort", "start"]);
    assert!(!selected.is_empty() && selected.is_sorted_by_key(|record| number(record, "start")));
    assert!(selected.iter().all(|record| number(record, "octet_count") > 1000));
    let groups = merged(&files, &["--group-by", "protocol"]);
    assert_eq!(groups.iter().find(|group| group["protocol"] == 6).unwrap()["flow_count"], 18);
    let (csv, fields) = (folder.path("flows.csv"), ["--fields", "packet_count"]);
    let target = format!("csv={csv}");
    let written = merge(&files, &[&["-w", &target, "-q"], &fields[..]].concat());
    assert_eq!((written.status, written.out.as_str(), written.err.as_str()), (0, "", ""));
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 1 + 27);
    let summary = merge(&files, &["--summary", "json", "--where", "protocol = 6"]).err;
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let counts = ["record_count", "merged_record_count", "written_record_count"].map(|name| &summary[name]);
    let part_count: usize = parts.iter().map(|part| records(&[part]).len()).sum();
    assert_eq!(counts, [&json!(part_count), &json!(part_count - 27), &json!(18)]);
}

#[test]
fn problems_of_the_input_are_reported_with_file_and_line() {
    let folder = Folder::new();
    let good = datagram(0, &json!({}));
    let path = folder.file(
        "flows.ndjson",
        format!("{good}{{\"a\": 1}}\n\nnonsense\n{}", datagram(1, &json!({}))).as_bytes(),
    );
    let run_one = |path: &str| run(&["merge", path, "--format", "ndjson", "-q"]);
    let found = run_one(&path);
    assert_eq!((found.status, objects(&found.out).len()), (1, 1), "{}", found.err);
    assert_eq!(number(&objects(&found.out)[0], "packet_count"), 2);
    let lines: Vec<_> = found.err.lines().collect();
    assert!(
        lines[0].starts_with(&format!("flowgauge: {path}: line 2: not a flow record: missing field")),
        "{}",
        found.err
    );
    assert!(
        lines[1].starts_with(&format!("flowgauge: {path}: line 4: not a flow record: expected")),
        "{}",
        found.err
    );

    let rfc3339 = run(&["flows", "web.pcap", "-q", "--format", "ndjson", "--time", "rfc3339"]).out;
    let found = run_one(&folder.file("times.ndjson", rfc3339.as_bytes()));
    assert!(found.err.contains("line 1: not a flow record: invalid type"), "{}", found.err);
    assert!(found.err.contains("19 problems more without a record"), "{}", found.err);

    let part = split(&folder, "web.pcap", &[700]).remove(0);
    let octets = fs::read(&records_of(&folder, std::slice::from_ref(&part), &["fixed"])[0]).unwrap();
    let found = run_one(&folder.file("short.fixed", &octets[..octets.len() - 4]));
    assert_eq!((found.status, objects(&found.out).len()), (1, octets.len() / 64 - 1));
    assert!(found.err.contains("the last record is truncated: 60 of 64 octets"), "{}", found.err);
    let mut bad = octets.clone();
    bad[0] = 0x10;
    bad[64] = 0x70;
    let found = run_one(&folder.file("bad.fixed", &bad));
    assert!(found.err.contains("record 2: fixed record of the unknown version 7"), "{}", found.err);

    let octets = fs::read(&records_of(&folder, &[part], &["ipfix"])[0]).unwrap();
    let found = run_one(&folder.file("short.ipfix", &octets[..octets.len() - 4]));
    assert!(found.status == 1 && found.err.contains("short.ipfix: "), "{}", found.err);

    let long = format!("{{\"x\":\"{}\"}}\n{good}", "x".repeat(3 << 20));
    let found = run_one(&folder.file("long.ndjson", long.as_bytes()));
    assert!(found.err.contains("line 1: longer than 1048576 octets"), "{}", found.err);
    assert_eq!(objects(&found.out).len(), 1);

    for (name, octets, message) in [
        ("a.pcap", data("web.pcap"), "is a capture; `flowgauge flows` creates the records"),
        ("a.pcapng", data("vlan.pcapng"), "is a capture; `flowgauge flows` creates the records"),
        ("a.gz", vec![0x1f, 0x8b, 8, 0, 0], "compressed data that is truncated or damaged"),
        ("a.zst", zstd::encode_all(&data("web.pcap")[..], 1).unwrap(), "is a capture"),
        ("a.parquet", b"PAR1....".to_vec(), "Parquet"),
        ("a.csv", b"protocol,source_address\n".to_vec(), "does not contain flow records"),
    ] {
        // The other file is merged.
        let other = folder.file("good.ndjson", good.as_bytes());
        let found = run(&["merge", &folder.file(name, &octets), &other, "--format", "ndjson", "-q"]);
        assert_eq!((found.status, objects(&found.out).len()), (1, 1), "{name}: {}", found.err);
        assert!(found.err.contains(name) && found.err.contains(message), "{name}: {}", found.err);
    }
    let missing = run_one(&folder.path("missing"));
    assert!(missing.status == 1 && missing.err.contains("missing: No such file"), "{}", missing.err);
    let empty = run_one(&folder.file("empty.ndjson", b""));
    assert_eq!((empty.status, empty.out.as_str(), empty.err.as_str()), (0, "", ""));
}

/// Compressed records are those that were compressed; damage of the compressed data is reported after the records before it.
#[test]
fn compressed_records_are_read() {
    let folder = Folder::new();
    let lines: String =
        (0..2000).map(|second| datagram(second * 600, &json!({"source_port": second}))).collect();
    let plain = folder.file("plain.ndjson", lines.as_bytes());
    let expected = run(&["merge", &plain, "--format", "ndjson", "-q"]);
    assert_eq!((expected.status, objects(&expected.out).len()), (0, 2000), "{}", expected.err);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(lines.as_bytes()).unwrap();
    let gzip = encoder.finish().unwrap();
    let zstd = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    for (name, octets) in [("a.gz", &gzip), ("a.zst", &zstd)] {
        let found = run(&["merge", &folder.file(name, octets), "--format", "ndjson", "-q"]);
        assert_eq!((found.status, &found.out), (0, &expected.out), "{name}: {}", found.err);
    }
    let truncated = folder.file("truncated.gz", &gzip[..gzip.len() - 10]);
    let found = run(&["merge", &truncated, "--format", "ndjson", "-q"]);
    assert!(found.status == 1 && objects(&found.out).len() > 100, "{}", found.err);
    assert!(found.err.contains("truncated.gz: the compressed data is truncated"), "{}", found.err);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for (args, message) in [
        (&["merge"][..], "required"),
        (&["merge", "-", "--gap", "long"], "must be a time with a unit"),
        (&["merge", "-", "--reverse"], "--reverse requires --sort or --top"),
        (&["merge", "-", "--top", "3", "-w", "csv=x.csv"], "cannot be combined with --sort and --top"),
        (&["merge", "-", "--rotate", "1h"], "--rotate requires --write or --out"),
    ] {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(message), "{args:?}: {}", run.err);
    }
}
