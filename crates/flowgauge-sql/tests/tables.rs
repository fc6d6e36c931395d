//! The tables as a query reads them.

#[path = "tables/conditions.rs"]
mod conditions;
#[path = "tables/execution.rs"]
mod execution;
#[path = "tables/parts.rs"]
mod parts;
#[path = "tables/records.rs"]
mod records;
#[path = "support/rows.rs"]
mod rows;

#[cfg(unix)]
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt as _;

fn capture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    path.to_str().unwrap().to_owned()
}

fn context(partition_count: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partition_count);
    let context = SessionContext::new_with_config(config);
    flowgauge_sql::register(&context).unwrap();
    context
}

async fn batches(context: &SessionContext, query: &str) -> Result<Vec<RecordBatch>> {
    context.sql(&query.replace("$DATA", &capture(""))).await?.collect().await
}

/// Returns the rows of a result as text, sorted.
async fn rows(context: &SessionContext, query: &str) -> Vec<String> {
    let batches = batches(context, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    rows::sorted(&batches)
}

async fn error(query: &str) -> String {
    batches(&context(2), query).await.expect_err(query).to_string()
}

async fn plan(context: &SessionContext, query: &str) -> String {
    let frame = context.sql(&query.replace("$DATA", &capture(""))).await.unwrap();
    displayable(frame.create_physical_plan().await.unwrap().as_ref()).indent(true).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_does_not_depend_on_partitions() {
    let queries = [
        "SELECT * FROM flows('$DATA/*.pcap', '$DATA/*.pcapng')",
        "SELECT application, count(*), sum(octet_count + reverse_octet_count) FROM flows(['$DATA/*.pcap']) GROUP BY 1",
        "SELECT count(*) FROM packets('$DATA/*.pcap')",
        "SELECT * FROM messages('dns', '$DATA/*.pcap')",
        "SELECT * FROM findings('$DATA/*.pcap', '$DATA/*.pcapng')",
        "SELECT f.application, m.method, m.host, count(*) FROM flows('$DATA/*.pcap') f
         JOIN messages('http.request', '$DATA/*.pcap') m ON f.community_id = m.community_id AND f.file = m.file
         GROUP BY 1, 2, 3",
    ];
    for query in queries {
        let one = rows(&context(1), query).await;
        assert!(!one.is_empty(), "{query}");
        for partition_count in [2, 3, 16] {
            assert_eq!(rows(&context(partition_count), query).await, one, "{partition_count}: {query}");
        }
    }
}

/// A condition that is pushed gives the rows that the same condition chooses from all rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_conditions_change_no_row() {
    let context = context(2);
    let conditions = [
        "source_port = 53 OR destination_port = 53",
        "protocol = 17",
        "protocol IN (1, 58)",
        "destination_port IN (80, 443, 22)",
        "cidr_contains('10.0.0.0/8', source_address)",
        "cidr_contains('fe80::/10', destination_address) OR cidr_contains('192.168.0.0/16', source_address)",
        "source_address = '10.9.0.2' AND destination_port = 443",
        "destination_address = 'FE80::1'",
        "protocol = 6 AND (source_port < 1024 OR destination_port = 80)",
        "start >= '2026-10-01T00:00:00Z' AND start < '2026-11-20T00:00:00Z'",
        "start BETWEEN '2026-10-03T00:00:00Z' AND '2026-10-04T00:00:00Z' AND protocol = 6",
        "NOT (destination_port = 443)",
    ];
    let all = "SELECT * EXCEPT (sequence_number, application, application_evidence) FROM flows('$DATA/*.pcap', '$DATA/*.pcapng')";
    let (mut found, mut pushed_count) = (0, 0);
    for condition in conditions {
        let query = format!("{all} WHERE {condition}");
        let scan = plan(&context, &query).await;
        pushed_count += usize::from(scan.contains("packets=") || scan.contains("times="));
        let pushed = rows(&context, &query).await;
        // A condition beside one on the result of a window function is not pushed.
        let kept = format!(
            "SELECT * EXCEPT (sequence_number, application, application_evidence, number) FROM
             (SELECT *, row_number() OVER () AS number FROM flows('$DATA/*.pcap', '$DATA/*.pcapng'))
             WHERE number > 0 AND ({condition})"
        );
        assert!(!plan(&context, &kept).await.contains("packets="), "{condition}");
        assert_eq!(pushed, rows(&context, &kept).await, "{condition}");
        found += pushed.len();
    }
    // All but those with another spelling of an address, and NOT.
    assert_eq!(pushed_count, conditions.len() - 2);
    assert!(found > 100, "{found}");
    let pushed =
        "SELECT octet_count FROM flows('$DATA/*.pcap') WHERE destination_port = 53 AND protocol = 17";
    let plan = plan(&context, pushed).await;
    assert!(plan.contains("packets=Filter(port 53 and udp)"), "{plan}");
}

/// The control connections of FTP and TFTP announce flows, so that conditions on the keys of these do not omit the packets of
/// others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_do_not_omit_what_announces_a_flow() {
    let context = context(2);
    let all = "SELECT DISTINCT destination_port FROM flows('$DATA/transfer.pcap') WHERE destination_port IS NOT NULL";
    let ports = rows(&context, all).await;
    let mut file_count = 0;
    for port in ports {
        for (columns, table) in [
            ("application, octet_count", "flows("),
            ("file, message, timestamp", "messages('ftp_data', "),
            ("file, message, timestamp", "messages('tftp', "),
            ("name, timestamp", "transactions('file', "),
        ] {
            let pushed = format!(
                "SELECT {columns} FROM {table}'$DATA/transfer.pcap') WHERE destination_port = {port}"
            );
            let kept = format!(
                "SELECT {columns} FROM (SELECT *, row_number() OVER () AS position FROM {table}'$DATA/transfer.pcap'))
                 WHERE position > 0 AND destination_port = {port}"
            );
            assert!(!plan(&context, &kept).await.contains("packets="), "{kept}");
            let kept = rows(&context, &kept).await;
            assert_eq!(rows(&context, &pushed).await, kept, "{pushed}");
            file_count += if table.contains("file") { kept.len() } else { 0 };
        }
    }
    assert!(file_count > 3, "{file_count}");
}

/// A finding depends on many flows, so that conditions on its hosts choose rows only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_are_those_of_all_flows() {
    let context = context(4);
    let table = "findings('$DATA/*.pcap', '$DATA/../findings/scan-*.pcap.zst')";
    let all = rows(&context, &format!("SELECT finding, source_address, evidence FROM {table}")).await;
    let scans: Vec<_> = all.iter().filter(|row| row.starts_with("scan|")).collect();
    assert!(scans.len() > 1 && scans.len() < all.len(), "{all:?}");
    for scan in &scans {
        let source = scan.split('|').nth(1).unwrap();
        for condition in [
            format!("source_address = '{source}' AND finding = 'scan'"),
            format!("cidr_contains('{source}', source_address) AND finding = 'scan'"),
        ] {
            let query = format!("SELECT finding, source_address, evidence FROM {table} WHERE {condition}");
            let plan = plan(&context, &query).await;
            assert!(!plan.contains("packets=") && plan.contains("table=findings"), "{plan}");
            let expected: Vec<_> = scans
                .iter()
                .filter(|row| row.split('|').nth(1) == Some(source))
                .map(|row| (**row).clone())
                .collect();
            assert_eq!(rows(&context, &query).await, expected, "{condition}");
        }
    }
    let limited = format!("SELECT evidence FROM {table} WHERE destination_port IS NULL LIMIT 2");
    assert_eq!(rows(&context, &limited).await.len(), 2);
    let columns = format!("SELECT count(*), max(count) > 0 FROM {table}");
    assert_eq!(rows(&context, &columns).await, [format!("{}|true", all.len())]);
    // Findings are joined with the flows of their hosts.
    let joined = format!(
        "SELECT DISTINCT s.evidence FROM {table} s JOIN flows('$DATA/../findings/scan-*.pcap.zst') f USING (source_address)
         WHERE s.finding = 'scan'"
    );
    assert_eq!(rows(&context, &joined).await.len(), scans.len());
}

/// Hosts, and messages of neighbors, are tables too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_and_neighbors_are_tables() {
    let context = context(2);
    let names = "SELECT address, name, name_source, mac FROM hosts('$DATA/web.pcap') WHERE name IS NOT NULL ORDER BY 1";
    let expected = [
        "10.77.0.1|web.example|certificate|02:00:00:77:00:01",
        "2001:db8:77::1|web.example|certificate|02:00:00:77:00:01",
    ];
    assert_eq!(rows(&context, names).await, expected);
    let requests = "SELECT sender_address, target_address FROM messages('neighbor.arp', '$DATA/web.pcap')
        WHERE arp_operation = 'request'";
    assert_eq!(rows(&context, requests).await, ["10.77.0.2|10.77.0.1"]);
    let all = "SELECT protocol, count(*) FROM messages('neighbor', '$DATA/web.pcap') GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(&context, all).await, ["arp|2", "mld|6", "ndp|8"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_columns_that_are_needed_are_read() {
    let context = context(2);
    let plan = plan(&context, "SELECT sum(octet_count) FROM flows('$DATA/web.pcap')").await;
    assert!(plan.contains("projection=[octet_count]"), "{plan}");
    assert_eq!(rows(&context, "SELECT count(*) FROM flows('$DATA/web.pcap')").await, ["27"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_are_named_arguments() {
    let context = context(2);
    let count = "SELECT count(*) FROM flows('$DATA/web.pcap'";
    let all = rows(&context, &format!("{count})")).await;
    let https = rows(&context, &format!("{count}, filter => 'dst port 443')")).await;
    let expected = rows(&context, &format!("{count}) WHERE destination_port = 443")).await;
    assert_eq!(https, expected);
    assert_ne!(https, all);
    let active = rows(&context, &format!("{count}, active_timeout => '1s', idle_timeout => '2m')")).await;
    assert!(active[0].parse::<u32>().unwrap() > all[0].parse().unwrap(), "{active:?}");
    let twice = "SELECT count(*) FROM flows(['$DATA/web.pcap', '$DATA/web.pcap'], joined => ";
    assert_eq!(rows(&context, &format!("{twice}true)")).await, all);
    assert_eq!(rows(&context, &format!("{twice}false)")).await, ["54"]);
    let features = "SELECT count(*) FROM flows('$DATA/web.pcap', features => 'splt=4,tcp') WHERE splt_direction IS NOT NULL";
    assert_eq!(rows(&context, features).await, all);
    let folder = std::env::temp_dir().join(format!("flowgauge-sql-tunnel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("tunnel.pcap");
    std::fs::write(&path, tunnel()).unwrap();
    for (tunnels, protocols) in [("innermost", &["17"][..]), ("outermost", &["4"]), ("both", &["17", "4"])] {
        let query = format!("SELECT protocol FROM flows('{}', tunnels => '{tunnels}')", path.display());
        assert_eq!(rows(&context, &query).await, protocols, "{tunnels}");
    }
    // Conditions on keys of inner flows do not change the counters of outer ones.
    let query = format!(
        "SELECT protocol, inner_flow_count FROM flows('{}', tunnels => 'both') WHERE protocol = 4",
        path.display()
    );
    assert_eq!(rows(&context, &query).await, ["4|1"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Returns a capture of one datagram of UDP within IP in IP.
fn tunnel() -> Vec<u8> {
    let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
    let ip = |protocol: u8, last: u8, content: &[u8]| {
        let len = (20 + content.len()) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, last, 10, 0, 1, last]);
        packet.extend(content);
        packet
    };
    let packet = ip(4, 1, &ip(17, 2, &udp));
    let mut file =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    file.extend(
        [1_700_000_000_u32, 0, packet.len() as u32, packet.len() as u32]
            .into_iter()
            .flat_map(u32::to_le_bytes),
    );
    file.extend(packet);
    file
}

/// A condition on the key becomes a filter of packets, unless a column numbers the flows.
#[tokio::test]
async fn numbers_of_flows_do_not_depend_on_conditions() {
    let context = context(1);
    for column in ["id", "sequence_number", "octet_count"] {
        let query = |port: &str| {
            format!(
                "SELECT {column}, source_port FROM flows('$DATA/web.pcap', features => 'nfstream') WHERE {port} = 443"
            )
        };
        let found = rows(&context, &query("destination_port")).await;
        assert!(found.len() > 3, "{found:?}");
        assert_eq!(found, rows(&context, &query("destination_port + 0")).await, "{column}");
        let is_filtered = plan(&context, &query("destination_port")).await.contains("packets=");
        assert_eq!(is_filtered, column == "octet_count", "{column}");
    }
}

#[tokio::test]
async fn errors_name_the_cause() {
    for (query, cause) in [
        ("SELECT * FROM flows()", "a path of a capture is required"),
        ("SELECT * FROM flows('missing.pcap')", "missing.pcap"),
        ("SELECT * FROM flows('$DATA/*.nothing')", "no file has a name of this pattern"),
        ("SELECT * FROM flows('$DATA')", "is a folder"),
        ("SELECT * FROM flows('-')", "standard input"),
        ("SELECT * FROM flows('ftp://host/a.pcap')", "ftp://host/a.pcap: "),
        ("SELECT * FROM flows('$DATA/web.pcap', nothing => 1)", "nothing is no option"),
        ("SELECT * FROM flows('$DATA/web.pcap', joined => 'yes')", "true or false"),
        ("SELECT * FROM flows('$DATA/web.pcap', active_timeout => 60)", "must be a text"),
        ("SELECT * FROM flows('$DATA/web.pcap', active_timeout => '0s')", "longer than zero"),
        ("SELECT * FROM flows('$DATA/web.pcap', features => 'unknown')", "features"),
        ("SELECT * FROM flows('$DATA/web.pcap', filter => 'port')", "filter"),
        ("SELECT * FROM packets('$DATA/web.pcap', filter => 'src port 1')", "use WHERE"),
        ("SELECT * FROM packets('$DATA/web.pcap', features => 'cic')", "features is no option"),
        (
            "SELECT * FROM packets('$DATA/web.pcap', idle_timeout => '1s')",
            "options are filter, tunnels, joined",
        ),
        (
            "SELECT * FROM messages('dns', '$DATA/web.pcap', active_timeout => '1s')",
            "active_timeout is no option",
        ),
        ("SELECT * FROM messages('dnss', '$DATA/web.pcap')", "known are"),
        ("SELECT * FROM transactions()", "kind of rows"),
        ("SELECT * FROM findings()", "a path of a capture is required"),
        ("SELECT * FROM findings('missing.pcap')", "missing.pcap"),
        ("SELECT file FROM findings('$DATA/web.pcap')", "file"),
        ("SELECT * FROM findings('$DATA/web.pcap', filter => 'src port 1')", "whole flows"),
        (
            "SELECT * FROM findings('$DATA/web.pcap', joined => false)",
            "options are filter, idle_timeout, tunnels",
        ),
        ("SELECT * FROM findings('$DATA/web.pcap', active_timeout => '1s')", "active_timeout is no option"),
        ("SELECT * FROM flows('$DATA/' || 'web.pcap')", "must be a text"),
        ("SELECT cidr_contains('10.0.0.0/33', '10.0.0.1')", "is no network"),
        ("SELECT absent FROM flows('$DATA/web.pcap')", "absent"),
    ] {
        let error = error(query).await;
        assert!(error.contains(cause), "{query}: {error}");
    }
    let not_a_capture = format!("SELECT * FROM flows('{}/Cargo.toml')", env!("CARGO_MANIFEST_DIR"));
    assert!(error(&not_a_capture).await.contains("Cargo.toml"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_agree_with_columns() {
    let context = context(2);
    let other = "SELECT count(*) FROM flows('$DATA/*.pcap') WHERE protocol IN (6, 17) AND community_id <>
                 community_id(source_address, source_port, destination_address, destination_port, protocol)";
    assert_eq!(rows(&context, other).await, ["0"]);
    // The example of the specification.
    let example = "SELECT community_id('128.232.110.120', 34855, '66.35.250.204', 80, 6), community_id('x', 1, 'y', 2, 6)";
    assert_eq!(rows(&context, example).await, ["1:LQU9qZlK+B5F3KDmev6m5PMibrg=|"]);
    let ports = "SELECT application_of_port(53, 17), application_of_port(443, 6), application_of_port(1, 6)";
    assert_eq!(rows(&context, ports).await, ["dns|tls|"]);
    let networks = "SELECT cidr_contains('10.0.0.0/8', '10.255.0.1'), cidr_contains('10.1.2.3/8', '11.0.0.1'),
                    cidr_contains('::/0', '::1'), cidr_contains('0.0.0.0/0', '::1'), cidr_contains('10.0.0.0/8', 'x'),
                    cidr_contains('192.0.2.1', '192.0.2.1')";
    assert_eq!(rows(&context, networks).await, ["true|false|true|false||true"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_a_warning_and_the_rows_before_it_remain() {
    let folder = std::env::temp_dir().join(format!("flowgauge-sql-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("truncated [1].pcap");
    let whole = std::fs::read(capture("web.pcap")).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&warnings);
    let context = SessionContext::new();
    let notify = Arc::new(move |warning: &flowgauge_arrow::scan::Warning| {
        seen.lock().unwrap().push(warning.to_string())
    });
    flowgauge_sql::register_with(&context, Some(notify)).unwrap();
    let found = rows(&context, &format!("SELECT count(*) FROM packets('{}')", path.display())).await;
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(found[0].parse::<u32>().unwrap() > 100, "{found:?}");
    let warnings = warnings.lock().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("truncated [1].pcap"), "{warnings:?}");
}

/// The memory of a pipeline is charged to the pool of the query, which refuses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_that_of_the_query() {
    for (table, limit, is_enough) in [
        ("messages('tls', '$DATA/web.pcap')", 64 << 10, false),
        ("messages('tls', '$DATA/web.pcap')", 64 << 20, true),
        ("findings('$DATA/web.pcap', '$DATA/dns.pcap')", 64 << 10, false),
        ("findings('$DATA/web.pcap', '$DATA/dns.pcap')", 64 << 20, true),
    ] {
        let query = format!("SELECT count(*) FROM {table}");
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(limit, 1.0).build_arc().unwrap();
        let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
        flowgauge_sql::register(&context).unwrap();
        let result = batches(&context, &query).await;
        assert_eq!(result.is_ok(), is_enough, "{table} {limit}");
        if let Err(error) = result {
            assert!(error.to_string().contains("flowgauge"), "{error}");
        }
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
    }
}

/// A dropped stream ends the thread that reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_query_ends_its_threads() {
    let context = context(2);
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let frame =
        context.sql(&"SELECT * FROM packets('$DATA/*.pcap')".replace("$DATA", &capture(""))).await.unwrap();
    for _ in 0..200 {
        let mut stream = frame.clone().execute_stream().await.unwrap();
        assert!(stream.next().await.unwrap().is_ok());
    }
    assert!(threads() < 100, "{}", threads());
}

/// Findings exist only at the end of a capture, so that a query of them waits for a pipe until it is dropped.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_query_of_findings_closes_its_captures() {
    let folder = std::env::temp_dir().join(format!("flowgauge-sql-pipe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let query = format!("SELECT * FROM findings('{}')", path.display());
    let mut stream = context(2).sql(&query).await.unwrap().execute_stream().await.unwrap();
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::File::options().write(true).open(path).unwrap();
        pipe.write_all(&std::fs::read(capture("web.pcap")).unwrap()).unwrap();
        pipe
    });
    let waited = tokio::time::timeout(Duration::from_millis(500), stream.next()).await;
    assert!(waited.is_err(), "a finding before the end of the capture");
    let mut pipe = writer.join().unwrap();
    drop(stream);
    // Octets of the next frame, which do not fill the pipe.
    let is_closed = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        pipe.write_all(&[0]).is_err()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(is_closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_ends_reading() {
    let context = context(2);
    assert_eq!(rows(&context, "SELECT * FROM packets('$DATA/*.pcap') LIMIT 3").await.len(), 3);
    assert_eq!(rows(&context, "SELECT * FROM packets('$DATA/*.pcap') LIMIT 0").await.len(), 0);
}
