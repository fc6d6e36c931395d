//! Files of flow records beside captures: their rows are those of the captures from which they were written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use datafusion::arrow::util::display::array_value_to_string;
use datafusion::prelude::SessionContext;
use flowgauge::export::{FixedRecord, Lines, RecordWriter, Style};
use flowgauge::ipfix::{Exporter, ExporterConfig, StreamTransport};
use flowgauge::{FileSource, FlowRecord, Pipeline, Records, RunOptions, Sessions, Standard};
use flowgauge_arrow::{Options, ParquetWriter};

use super::{batches, capture, context, error, plan, rows};

/// The formats, with those of ipfix with and without an enterprise number.
const FORMATS: [&str; 5] = ["ndjson", "parquet", "fixed", "ipfix", "enterprise.ipfix"];

/// A folder of a test, which is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("flowgauge-sql-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, octets: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, octets).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes the flow records of a capture in a format.
    fn records(&self, capture_name: &str, format: &str) -> String {
        let name = format!("{capture_name}.{format}");
        let octets = match format {
            "ndjson" => written(capture_name, Lines::ndjson(Vec::new(), None, Style::default()), |lines| {
                lines.into_inner().unwrap()
            }),
            "fixed" => records(capture_name).iter().flat_map(FixedRecord::encode).collect(),
            "parquet" => {
                let path = self.0.join(&name);
                let file = fs::File::create(&path).unwrap();
                let writer = ParquetWriter::new::<FlowRecord>(file, Options::default()).unwrap();
                let mut writer: Box<dyn RecordWriter<FlowRecord>> = Box::new(writer);
                records(capture_name).iter().for_each(|record| writer.write(record).unwrap());
                writer.finish().unwrap();
                return path.to_str().unwrap().to_owned();
            }
            _ => {
                let mut config = ExporterConfig::default();
                config.enterprise_number = (format != "ipfix").then_some(32_473);
                let mut octets = Vec::new();
                let mut exporter = Exporter::new(config, StreamTransport::new(&mut octets)).unwrap();
                for record in records(capture_name) {
                    exporter.export(&record, record.end).unwrap();
                }
                exporter.flush().unwrap();
                drop(exporter);
                octets
            }
        };
        self.write(&name, &octets)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Returns the records that `flowgauge flows` writes.
fn records(capture_name: &str) -> Vec<FlowRecord> {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record)).with_stage::<Sessions<Standard>>();
    let mut pipeline = Pipeline::builder().encapsulation(true).build(sink).unwrap();
    let mut source = FileSource::open(capture(capture_name)).unwrap();
    pipeline.run(&mut source, &RunOptions::default()).unwrap();
    drop(pipeline);
    records
}

fn written<W: RecordWriter<FlowRecord>>(
    name: &str,
    mut writer: W,
    finish: impl FnOnce(W) -> Vec<u8>,
) -> Vec<u8> {
    records(name).iter().for_each(|record| writer.write(record).unwrap());
    finish(writer)
}

/// Returns the columns of a result, with their values as text, in the order of the rows.
async fn columns(context: &SessionContext, query: &str) -> Vec<(String, Vec<String>)> {
    let batches = batches(context, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let names = batches[0].schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let values = |index: usize| {
        let of_batch = |batch: &super::RecordBatch| {
            let value = |row| array_value_to_string(batch.column(index), row).unwrap();
            (0..batch.num_rows()).map(value).collect::<Vec<_>>()
        };
        batches.iter().flat_map(of_batch).collect()
    };
    names.into_iter().enumerate().map(|(index, name)| (name, values(index))).collect()
}

/// Returns a session that collects warnings.
fn with_warnings() -> (SessionContext, Arc<Mutex<Vec<String>>>) {
    let context = SessionContext::new();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&warnings);
    let notify = Arc::new(move |warning: &flowgauge_arrow::scan::Warning| {
        seen.lock().unwrap().push(warning.to_string())
    });
    flowgauge_sql::register_with(&context, Some(notify)).unwrap();
    (context, warnings)
}

const CAPTURES: [&str; 4] = ["web.pcap", "dns.pcap", "transfer.pcap", "vlan.pcapng"];

/// Columns of these captures that IPFIX does not keep without an enterprise number, because no registry has them, and those
/// that fixed records do not keep because of their length. Their times of the end are rounded.
const NOT_IN_IPFIX: &[&str] = &[
    "application_evidence",
    "conn_state",
    "direction_evidence",
    "fragment_count",
    "handshake_rtt",
    "history",
    "icmp_error_count",
    "observation_domain",
    "open_duration",
    "out_of_order_count",
    "payload_octet_count",
    "retransmitted_count",
    "reverse_out_of_order_count",
    "reverse_payload_octet_count",
    "reverse_retransmitted_count",
    "reverse_zero_window_count",
    "scope",
    "sequence_number",
    "tcp_state",
    "zero_window_count",
];
const NOT_IN_FIXED: &[&str] = &[
    "application",
    "application_evidence",
    "destination_mac_address",
    "direction_evidence",
    "dscp",
    "duration",
    "end",
    "fragment_count",
    "handshake_rtt",
    "history",
    "icmp_error_count",
    "interface",
    "ip_octet_count",
    "open_duration",
    "out_of_order_count",
    "payload_octet_count",
    "retransmitted_count",
    "reverse_dscp",
    "reverse_ip_octet_count",
    "reverse_out_of_order_count",
    "reverse_payload_octet_count",
    "reverse_retransmitted_count",
    "reverse_tcp_flags",
    "reverse_ttl_max",
    "reverse_ttl_min",
    "reverse_vlan_ids",
    "reverse_zero_window_count",
    "scope",
    "sequence_number",
    "source_mac_address",
    "tcp_flags",
    "tcp_state",
    "ttl_max",
    "ttl_min",
    "vlan_ids",
    "zero_window_count",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_records_are_those_of_their_capture() {
    let folder = Folder::new("formats");
    let context = context(1);
    let all = "SELECT * EXCEPT (file) FROM flows";
    let mut not_kept = BTreeMap::new();
    for format in FORMATS {
        let mut different = BTreeSet::new();
        for name in CAPTURES {
            let path = folder.records(name, format);
            // Parquet is sorted by time.
            let query = |path: &str| {
                format!("{all}('{path}') ORDER BY start, source_address, source_port, destination_port")
            };
            let expected = columns(&context, &query(&format!("$DATA/{name}"))).await;
            let found = columns(&context, &query(&path)).await;
            assert_eq!((found.len(), found[0].1.len()), (83, expected[0].1.len()), "{path}");
            for ((name, found), (_, expected)) in found.iter().zip(&expected) {
                if found != expected {
                    different.insert(name.clone());
                }
            }
        }
        not_kept.insert(format, different.into_iter().collect::<Vec<_>>());
    }
    let expected = [
        ("ndjson", &[][..]),
        ("parquet", &[]),
        ("ipfix", NOT_IN_IPFIX),
        ("enterprise.ipfix", &["observation_domain"]),
        ("fixed", NOT_IN_FIXED),
    ];
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(not_kept, expected.map(|(format, names)| (format, owned(names))).into());
}

/// Captures and files of records in one call have the rows of each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captures_and_records_are_read_together() {
    let folder = Folder::new("mixed");
    let paths: Vec<_> = FORMATS[..4].iter().map(|format| folder.records("web.pcap", format)).collect();
    let empty = folder.write("empty.ndjson", b"");
    let list = paths.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
    let all = format!("flows({list}, '$DATA/web.pcap', '{empty}')");
    for partition_count in [1, 3, 16] {
        let context = context(partition_count);
        let count = rows(&context, &format!("SELECT count(*), count(DISTINCT file) FROM {all}")).await;
        assert_eq!(count, ["135|5"]);
        let sums = format!(
            "SELECT DISTINCT count(*), sum(packet_count), sum(reverse_octet_count), min(start) FROM {all} GROUP BY file"
        );
        assert_eq!(rows(&context, &sums).await.len(), 1, "{partition_count}");
        assert_eq!(rows(&context, &format!("SELECT * FROM {all} LIMIT 30")).await.len(), 30);
        let files = rows(&context, &format!("SELECT DISTINCT file FROM {all}")).await;
        assert!(paths.iter().all(|path| files.contains(path)), "{files:?}");
    }
    assert_eq!(rows(&context(2), &format!("SELECT count(*) FROM flows('{empty}')")).await, ["0"]);
}

/// A condition that is pushed to files of records gives the rows that it chooses from all rows, which are those of the capture.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_on_records_give_the_rows_of_the_capture() {
    let folder = Folder::new("conditions");
    let context = context(2);
    let mut found = 0;
    for name in CAPTURES {
        for condition in [
            "source_port = 53 OR destination_port = 53",
            "protocol IN (1, 17)",
            "destination_port = 443 AND protocol = 6",
            "cidr_contains('10.0.0.0/8', destination_address)",
            "start >= '2026-10-03T00:00:00Z'",
            "start < '2026-10-03T00:00:00Z' AND packet_count > 2",
            "NOT (destination_port = 443)",
        ] {
            let query = |table: &str, path: &str| {
                format!(
                    "SELECT source_address, source_port, destination_address, destination_port, start, octet_count FROM {table}('{path}') WHERE {condition}"
                )
            };
            let expected = rows(&context, &query("flows", &format!("$DATA/{name}"))).await;
            found += expected.len();
            for format in FORMATS {
                let path = folder.records(name, format);
                let query = query("flows", &path);
                assert_eq!(rows(&context, &query).await, expected, "{query}");
            }
        }
        for filter in ["dst port 443 or 53", "udp and not port 5353", "vlan", "src net 10.0.0.0/8"] {
            let query = |path: &str| {
                format!(
                    "SELECT source_address, destination_address, start FROM flows('{path}', filter => '{filter}')"
                )
            };
            let expected = rows(&context, &query(&format!("$DATA/{name}"))).await;
            found += expected.len();
            let path = folder.records(name, "parquet");
            assert_eq!(rows(&context, &query(&path)).await, expected, "{name}: {filter}");
        }
    }
    assert!(found > 200, "{found}");
    let path = folder.records("web.pcap", "ndjson");
    let query = format!("SELECT octet_count FROM flows('{path}') WHERE destination_port = 53");
    let plan = plan(&context, &query).await;
    assert!(plan.contains("packets=Filter(port 53)") && plan.contains("projection=["), "{plan}");
}

#[tokio::test]
async fn errors_name_the_file_and_the_reason() {
    let folder = Folder::new("errors");
    let path = folder.records("web.pcap", "ndjson");
    let csv = folder.write("flows.csv", b"protocol,source_address\n");
    let parquet = fs::read(folder.records("web.pcap", "parquet")).unwrap();
    let truncated = folder.write("truncated.parquet", &parquet[..parquet.len() / 2]);
    for (query, path, cause) in [
        (format!("packets('{path}')"), &path, "no packets"),
        (format!("messages('dns', '{path}')"), &path, "no messages"),
        (format!("transactions('http', '$DATA/web.pcap', '{path}')"), &path, "no transactions"),
        (format!("flows('{path}', features => 'cic')"), &path, "features applies to"),
        (format!("flows('{path}', idle_timeout => '1m')"), &path, "idle_timeout applies to"),
        (format!("flows('{path}', active_timeout => '1m')"), &path, "active_timeout applies to"),
        (format!("flows('{path}', tunnels => 'both')"), &path, "tunnels applies to"),
        (format!("flows('$DATA/web.pcap', '{path}', joined => true)"), &path, "joined applies to"),
        (format!("flows('{csv}')"), &csv, "it looks like text"),
        (format!("flows('{truncated}')"), &truncated, "index is damaged"),
    ] {
        let error = error(&format!("SELECT * FROM {query}")).await;
        assert!(error.contains(path.as_str()) && error.contains(cause), "{query}: {error}");
    }
}

/// What is no record is a warning with the file and the place, of which there are few; the records around it are rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_record_is_a_warning() {
    let folder = Folder::new("damage");
    let text = fs::read_to_string(folder.records("web.pcap", "ndjson")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let mixed = format!("{}\nnothing\n\n{}\n{{}}\n{}", lines[0], lines[1], &lines[2][..100]);
    let nothing = format!("{}\n{}", lines[0], "{}\n".repeat(1000));
    let fixed = fs::read(folder.records("web.pcap", "fixed")).unwrap();
    let ipfix = fs::read(folder.records("web.pcap", "ipfix")).unwrap();
    for (name, octets, count, causes) in [
        ("mixed.ndjson", mixed.as_bytes(), "2", &["line 2: ", "line 5: ", "line 6: "][..]),
        (
            "nothing.ndjson",
            nothing.as_bytes(),
            "1",
            &[
                "line 2: ",
                "line 3: ",
                "line 4: ",
                "line 5: ",
                "line 6: ",
                "line 7: ",
                "line 8: ",
                "line 9: ",
                "992 problems more",
            ],
        ),
        ("short.fixed", &fixed[..fixed.len() - 10], "26", &["the last record is truncated: 54 of 64"]),
        ("short.ipfix", &ipfix[..ipfix.len() - 10], "", &["the stream ends within the message"]),
    ] {
        let path = folder.write(name, octets);
        let (context, warnings) = with_warnings();
        let found = rows(&context, &format!("SELECT count(*) FROM flows('{path}')")).await;
        assert!(count.is_empty() || found == [count], "{name}: {found:?}");
        let warnings = warnings.lock().unwrap();
        assert_eq!(warnings.len(), causes.len(), "{name}: {warnings:?}");
        for (warning, cause) in warnings.iter().zip(causes) {
            assert!(warning.starts_with(&format!("{path}: ")) && warning.contains(cause), "{warning}");
        }
    }
}

/// Random octets behind a valid beginning give warnings or one error, and never the end of the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_octets_give_warnings() {
    let folder = Folder::new("random");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for format in FORMATS {
        let whole = fs::read(folder.records("web.pcap", format)).unwrap();
        let (mut row_count, mut problem_count) = (0, 0);
        for round in 0..40 {
            let mut octets = whole.clone();
            // The footer of Parquet remains, whose length is before the last four octets, and the index of the pages
            // before it, so that the pages are decoded.
            let (valid, end) = match format {
                "ipfix" => (400, octets.len()),
                "parquet" => {
                    let footer: [u8; 4] = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
                    (4, (whole.len() - 8 - u32::from_le_bytes(footer) as usize) / 2)
                }
                _ => (octets.len() / 4, octets.len()),
            };
            // A damaged page of one column is the end of a row group.
            let few = if format == "parquet" { 1 } else { 20 };
            for _ in 0..if round % 2 == 0 { few } else { octets.len() } {
                let at = valid + random() as usize % (end - valid);
                octets[at] = random() as u8;
            }
            let path = folder.write(&format!("random.{format}"), &octets);
            let (context, warnings) = with_warnings();
            match batches(&context, &format!("SELECT * FROM flows('{path}')")).await {
                Ok(batches) => row_count += batches.iter().map(super::RecordBatch::num_rows).sum::<usize>(),
                Err(error) => {
                    assert!(error.to_string().contains(&path), "{error}");
                    problem_count += 1;
                }
            }
            let warnings = warnings.lock().unwrap();
            assert!(warnings.len() <= 20, "{warnings:?}");
            problem_count += warnings.len();
        }
        assert!(row_count > 0 && problem_count > 0, "{format}: {row_count} {problem_count}");
    }
}
