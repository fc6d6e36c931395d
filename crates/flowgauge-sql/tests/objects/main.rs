//! Captures in object storage as tables of SQL: over HTTP from a server of the test, and from a server of S3.
//!
//! The server of S3 is that of the Python package `moto`, for which the test runs the interpreter of the variable
//! `FLOWGAUGE_PYTHON`, or `python3`. Without the package, the test prints a note and passes. If `FLOWGAUGE_READERS` is set to
//! `required`, it fails instead.

mod bucket;
#[path = "../support/rows.rs"]
mod rows;
mod s3;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt as _;

use server::Server;

/// Each table. Captures are `$C`.
pub(crate) const TABLES: [&str; 8] = [
    "SELECT * EXCEPT (file) FROM flows($C)",
    "SELECT * EXCEPT (file) FROM flows($C, features => 'cic', filter => 'tcp')",
    "SELECT * EXCEPT (file) FROM packets($C)",
    "SELECT * EXCEPT (file) FROM messages('dns', $C)",
    "SELECT * EXCEPT (file) FROM messages('http.request', $C)",
    "SELECT * EXCEPT (file) FROM transactions('http', $C)",
    "SELECT * FROM findings($C)",
    "SELECT * FROM flows($C, joined => true)",
];

/// The captures of the tests: plain, pcapng and compressed ones.
pub(crate) const CAPTURES: [&str; 6] = [
    "data/dns.pcap",
    "data/mail.pcap",
    "data/vlan.pcapng",
    "data/web.pcap",
    "findings/gaps.pcap.zst",
    "findings/scan-ports.pcap.zst",
];

pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

pub(crate) fn context(partition_count: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partition_count);
    let context = SessionContext::new_with_config(config);
    flowgauge_sql::register(&context).unwrap();
    context
}

/// Returns captures as arguments of a table.
pub(crate) fn listed(captures: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<_> = captures.into_iter().map(|capture| format!("'{}'", capture.as_ref())).collect();
    quoted.join(", ")
}

/// Returns the captures of the tests as local files.
pub(crate) fn local() -> String {
    listed(CAPTURES.map(|name| example(name).to_str().unwrap().to_owned()))
}

async fn batches(context: &SessionContext, query: &str) -> Result<Vec<RecordBatch>> {
    context.sql(query).await?.collect().await
}

/// Returns the rows of a result as text, sorted.
pub(crate) async fn rows(context: &SessionContext, query: &str) -> Vec<String> {
    let batches = batches(context, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    rows::sorted(&batches)
}

pub(crate) async fn error(query: &str) -> String {
    let error = batches(&context(2), query).await.expect_err(query).to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

/// Checks that each table has the same rows over other captures, with these numbers of partitions.
pub(crate) async fn assert_equal_rows(captures: &str, expected: &str, partition_counts: &[usize]) {
    for table in TABLES {
        let expected = rows(&context(2), &table.replace("$C", expected)).await;
        assert!(!expected.is_empty(), "{table}");
        for partition_count in partition_counts {
            let found = rows(&context(*partition_count), &table.replace("$C", captures)).await;
            assert_eq!(found.len(), expected.len(), "{table}");
            assert_eq!(found, expected, "{table}");
        }
    }
}

/// Returns a capture of about this length: one with its records repeated.
fn long_capture(len: usize) -> Vec<u8> {
    let mut octets = fs::read(example("data/web.pcap")).unwrap();
    let records = octets[24..].to_vec();
    while octets.len() < len {
        octets.extend(&records);
    }
    octets
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_over_http_are_those_of_the_files() {
    let server = Server::start();
    let urls =
        CAPTURES.map(|name| server.put(&name.replace("data/", "my data/"), fs::read(example(name)).unwrap()));
    assert!(urls[0].contains("/my%20data/dns.pcap"));
    assert_equal_rows(&listed(&urls), &local(), &[1, 4]).await;
    // Objects and files together, and files as URLs.
    let mut mixed = urls.clone();
    mixed[1] = example(CAPTURES[1]).to_str().unwrap().to_owned();
    mixed[3] = format!("file://{}", example(CAPTURES[3]).canonicalize().unwrap().display());
    assert_equal_rows(&listed(&mixed), &local(), &[2]).await;
    let files = rows(&context(2), &format!("SELECT DISTINCT file FROM packets('{}')", urls[0])).await;
    assert_eq!(files, [urls[0].clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_objects_are_read_once_in_bounded_ranges() {
    let server = Server::start();
    let capture = long_capture(40 << 20);
    let folder = std::env::temp_dir().join(format!("flowgauge-objects-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("long.pcap");
    fs::write(&path, &capture).unwrap();
    let url = server.put("long.pcap", capture.clone());
    let query = |capture: &str| format!("SELECT count(*), sum(wire_len) FROM packets('{capture}')");
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc().unwrap();
    let small =
        SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), environment);
    flowgauge_sql::register(&small).unwrap();
    let expected = rows(&context(1), &query(path.to_str().unwrap())).await;
    fs::remove_dir_all(&folder).unwrap();
    // The ranges of a query hold at most an eighth of its memory, here two of which one is ahead.
    for (context, is_small) in [(context(1), false), (small, true)] {
        assert_eq!(rows(&context, &query(&url)).await, expected);
        let ranges = std::mem::take(&mut server.state().ranges);
        assert_eq!(ranges.iter().sum::<usize>(), capture.len());
        assert_eq!(ranges[0], 256 << 10);
        let two_len_max = ranges.windows(2).map(|two| two[0] + two[1]).max().unwrap();
        assert_eq!(two_len_max > 8 << 20, !is_small, "{ranges:?}");
        assert!(two_len_max <= 16 << 20, "{ranges:?}");
    }
    assert_eq!(pool.reserved(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_stops_reading() {
    let server = Server::start();
    let url = server.put("long.pcap", long_capture(40 << 20));
    let query = format!("SELECT timestamp FROM packets('{url}') LIMIT 3");
    assert_eq!(rows(&context(1), &query).await.len(), 3);
    let state = server.state();
    assert!(state.ranges.len() <= 2, "{:?}", state.ranges);
    assert!(state.sent_len <= 2 << 20, "{}", state.sent_len);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_is_dropped_stops_reading() {
    let server = Server::start();
    server.state().faults.is_stalled = true;
    let url = server.put("long.pcap", long_capture(2 << 20));
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(256 << 20));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), environment);
    flowgauge_sql::register(&context).unwrap();
    let frame = context.sql(&format!("SELECT count(*) FROM packets('{url}')")).await.unwrap();
    let mut stream = frame.execute_stream().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(500), stream.next()).await;
    assert!(waited.is_err(), "the server is stalled");
    assert!(pool.reserved() > 0);
    drop(stream);
    let start = Instant::now();
    while pool.reserved() > 0 || server.state().closed_count == 0 {
        assert!(start.elapsed() < Duration::from_millis(200), "{} octets are held", pool.reserved());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_connections_are_repeated_or_an_error() {
    let server = Server::start();
    let url = server.put("web.pcap", fs::read(example("data/web.pcap")).unwrap());
    let query = format!("SELECT * EXCEPT (file) FROM packets('{url}')");
    let local = query.replace(&url, example("data/web.pcap").to_str().unwrap());
    let expected = rows(&context(1), &local).await;
    server.state().faults.truncated_len = 100_000;
    server.state().faults.truncated_count = 2;
    assert_eq!(rows(&context(1), &query).await, expected);
    assert_eq!(server.state().faults.truncated_count, 0);
    server.state().faults.truncated_len = 0;
    server.state().faults.truncated_count = usize::MAX;
    let problem = error(&query).await;
    assert!(problem.contains(&format!("{url}: ")), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_object_is_an_error() {
    for is_unconditional in [false, true] {
        let server = Server::start();
        server.state().faults.is_unconditional = is_unconditional;
        let capture = fs::read(example("data/web.pcap")).unwrap();
        let url = server.put("web.pcap", capture.clone());
        let context = context(1);
        let frame = context.sql(&format!("SELECT count(*) FROM packets('{url}')")).await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let other = [&capture[..capture.len() - 1], &[!capture[capture.len() - 1]]].concat();
        server.put("web.pcap", other);
        let problem = collect(plan, context.task_ctx()).await.unwrap_err().to_string();
        let expected = format!("{url}: has changed since it was listed");
        assert!(problem.contains(&expected), "{is_unconditional}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_an_error_with_its_url() {
    let server = Server::start();
    let root = format!("http://{}", server.address);
    let cases = [
        (format!("{root}/missing.pcap"), "does not exist"),
        (format!("{root}/*.pcap"), "HTTP has no listing"),
        (format!("{root}/a.pcap?signature=1"), "HTTP has no listing"),
        (root.clone(), "is no object"),
        (format!("{root}/folder/"), "is no object"),
        ("gs://bucket/a.pcap".to_owned(), "from stores that a program registers"),
        ("http://127.0.0.1:99999/a".to_owned(), "invalid port number"),
        ("file:///missing/a.pcap".to_owned(), "No such file"),
    ];
    for (url, expected) in cases {
        let problem = error(&format!("SELECT * FROM flows('{url}')")).await;
        let url = url.trim_start_matches("file://");
        assert!(problem.contains(&format!("{url}: ")) && problem.contains(expected), "{problem}");
    }
    let problem = error("SELECT * FROM flows('https://user:secret@host/a.pcap')").await;
    assert!(problem.contains("must not contain credentials") && !problem.contains("secret"), "{problem}");
    // Contents that are no capture, and a server without ranges.
    let url = server.put("text", b"a text that is no capture".to_vec());
    let problem = error(&format!("SELECT * FROM packets('{url}')")).await;
    assert!(problem.contains(&format!("{url}: is not a pcap or pcapng capture")), "{problem}");
    server.state().faults.has_no_ranges = true;
    let problem = error(&format!("SELECT * FROM packets('{url}')")).await;
    assert!(problem.contains(&format!("{url}: Range request not supported")), "{problem}");
}

/// Explains a query.
pub(crate) async fn plan(context: &SessionContext, query: &str) -> String {
    let frame = context.sql(query).await.unwrap();
    displayable(frame.create_physical_plan().await.unwrap().as_ref()).indent(true).to_string()
}
