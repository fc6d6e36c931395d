//! Queries on a scheduler and executors, which are processes on the loopback interface.
#![cfg(unix)]

#[path = "../../../flowgauge-sql/tests/objects/bucket.rs"]
mod bucket;
mod machines;
#[path = "../../../flowgauge-cli/tests/support/process.rs"]
mod process;
#[path = "../../../flowgauge-sql/tests/duckdb/queries.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod queries;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use flowgauge_cluster::Cluster;
use futures::StreamExt as _;

use machines::Machines;
use queries::{lines, queries, replaced};

/// Maximum time of a query.
const QUERY_TIME_MAX: Duration = Duration::from_secs(120);

/// Queries over options and functions, which those for DuckDB do not have.
const OPTIONS: [&str; 8] = [
    "SELECT file, count(*), sum(splt_count) FROM (SELECT file, cardinality(splt_direction) AS splt_count
     FROM flows('$DATA/*.pcap', features => 'cic,splt=4')) GROUP BY file",
    "SELECT count(*), count(file) FROM flows('$DATA/*.pcap', joined => true)",
    "SELECT file, count(*) FROM flows('$DATA/*.pcap', filter => 'dst port 443') GROUP BY file",
    "SELECT file, count(*) FROM flows('$DATA/*.pcap', active_timeout => '1s', idle_timeout => '2m') GROUP BY file",
    "SELECT count(*) FROM flows('$DATA/*.pcap', tunnels => 'outermost')",
    "SELECT count(*) FROM flows('$DATA/*.pcap') WHERE protocol IN (6, 17) AND community_id =
     community_id(source_address, source_port, destination_address, destination_port, protocol)",
    "SELECT application_of_port(destination_port, protocol) AS expected, count(*) FROM flows('$DATA/*.pcap')
     WHERE cidr_contains('10.0.0.0/8', source_address) OR cidr_contains('fe80::/10', source_address) GROUP BY 1",
    "SELECT kind, count(*) FROM messages('tls', '$DATA/*.pcap') JOIN
     (SELECT community_id, application AS kind FROM flows('$DATA/*.pcap')) USING (community_id) GROUP BY kind",
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").canonicalize().unwrap()
}

/// Returns all queries over the captures of the repository.
fn all_queries() -> Vec<String> {
    let data = data();
    let patterns = format!("['{0}/*.pcap', '{0}/*.pcapng']", data.display());
    let filled = |query: &String| {
        replaced(query, |name, kind| {
            let kind = kind.map_or_else(String::new, |kind| format!("'{kind}', "));
            format!("{name}({kind}{patterns})")
        })
    };
    let options = OPTIONS.iter().map(|query| query.replace("$DATA", data.to_str().unwrap()));
    queries().iter().map(filled).chain(options).collect()
}

/// Runs a query. Returns its rows, sorted unless the query sorts them, and the types of its columns.
async fn run(
    context: &SessionContext,
    query: &str,
    types: Option<&[DataType]>,
) -> Result<(Vec<String>, Vec<DataType>)> {
    let work = async {
        let frame = context.sql(query).await?;
        let own: Vec<_> = frame.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        let batches = frame.collect().await?;
        let types = types.map_or(own, <[_]>::to_vec);
        let mut rows = lines(&batches, &types);
        let is_sorted = query.rsplit(')').next().is_some_and(|end| end.contains("ORDER BY"));
        if !is_sorted {
            rows.sort();
        }
        Ok((rows, types))
    };
    tokio::time::timeout(QUERY_TIME_MAX, work).await.unwrap_or_else(|_| panic!("timeout: {query}"))
}

async fn count(context: &SessionContext, query: &str) -> Result<Vec<String>> {
    Ok(run(context, query, None).await?.0)
}

fn local(partition_count: usize) -> SessionContext {
    let context =
        SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partition_count));
    flowgauge_sql::register(&context).unwrap();
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_those_of_one_process() {
    let queries = all_queries();
    assert!(queries.len() >= 45, "{}", queries.len());
    let local = local(2);
    let mut expected = Vec::new();
    for query in &queries {
        expected.push(run(&local, query, None).await.unwrap_or_else(|error| panic!("{query}: {error}")));
    }
    let row_count: usize = expected.iter().map(|(rows, _)| rows.len()).sum();
    assert!(row_count > 1000, "{row_count}");
    let mut machines = Machines::start("results", 1);
    for executor_count in [1, 2] {
        if machines.executors.len() < executor_count {
            machines.add_executor();
        }
        for partition_count in [1, 4, 16] {
            let context = machines.connect(partition_count).await.unwrap();
            let started = Instant::now();
            for (query, (rows, types)) in queries.iter().zip(&expected) {
                let found = run(&context, query, Some(types)).await;
                let found = found.unwrap_or_else(|error| panic!("{query}: {error}")).0;
                assert_eq!(&found, rows, "{executor_count} executors, {partition_count} partitions: {query}");
            }
            let time = started.elapsed();
            eprintln!("{executor_count} executors, {partition_count} partitions: {time:.1?}");
        }
    }
}

/// A folder with a number of links to each capture of the repository.
fn links(folder: &Path, count: usize) -> usize {
    fs::create_dir_all(folder).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(data()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pcap") {
            names.push(path);
        }
    }
    for number in 0..count {
        for path in &names {
            let name = format!("{number}-{}", path.file_name().unwrap().to_str().unwrap());
            std::os::unix::fs::symlink(path, folder.join(name)).unwrap();
        }
    }
    names.len() * count
}

/// Executors that end in the middle of a query do not change its result: it is complete, or an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_executor_changes_no_result() {
    let mut machines = Machines::start("killed", 2);
    let captures = machines.folder.join("captures");
    let capture_count = links(&captures, 60);
    assert!(capture_count >= 400, "{capture_count}");
    let query = |pattern: &str| {
        format!(
            "SELECT application, count(*) AS flows, CAST(sum(octet_count) AS BIGINT) AS octets, count(DISTINCT file)
             FROM flows('{}/{pattern}') GROUP BY application",
            captures.display()
        )
    };
    let (all, few) = (query("*.pcap"), query("0-*.pcap"));
    let few_rows = count(&local(2), &few).await.unwrap();
    let times = |row: &String| {
        let mut values = row.split('|');
        let application = values.next().unwrap().to_owned();
        let values = values.map(|value| (value.parse::<u64>().unwrap() * 60).to_string());
        [application].into_iter().chain(values).collect::<Vec<_>>().join("|")
    };
    let mut expected: Vec<_> = few_rows.iter().map(times).collect();
    expected.sort();
    assert!(expected.len() > 5);
    let context = machines.connect(16).await.unwrap();
    let started = Instant::now();
    assert_eq!(count(&context, &all).await.unwrap(), expected);
    let whole = started.elapsed();
    // At least two executors end while they execute tasks; other processes may make a query faster or slower.
    let (mut killed_count, mut part) = (0, 2);
    while killed_count < 2 {
        assert!(part < 64, "no executor was killed in the middle of a query");
        while machines.executors.len() < 2 {
            machines.add_executor();
        }
        let started = Instant::now();
        let task = tokio::spawn({
            let (context, all) = (context.clone(), all.clone());
            async move { count(&context, &all).await }
        });
        tokio::time::sleep(whole / part).await;
        killed_count += usize::from(!task.is_finished());
        drop(machines.executors.pop());
        let outcome = task.await.unwrap();
        eprintln!("{whole:.1?} without and {:.1?} with a killed executor: {outcome:?}", started.elapsed());
        match outcome {
            Ok(rows) => assert_eq!(rows, expected),
            Err(error) => assert!(error.to_string().contains("failed"), "{error}"),
        }
        // The other one executes the next query.
        assert_eq!(count(&context, &few).await.unwrap(), few_rows);
        part *= 2;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_continue_after_a_restart_of_the_scheduler() {
    let mut machines = Machines::start("restart", 2);
    let query = format!("SELECT protocol, count(*) FROM flows('{}/*.pcap') GROUP BY 1", data().display());
    let expected = count(&local(2), &query).await.unwrap();
    let context = machines.connect(4).await.unwrap();
    assert_eq!(count(&context, &query).await.unwrap(), expected);
    machines.scheduler = None;
    let error = count(&context, &query).await.unwrap_err();
    eprintln!("without a scheduler: {error}");
    assert!(error.to_string().contains("onnect"), "{error}");
    machines.start_scheduler();
    let started = Instant::now();
    let (mut rows, mut error_count) = (Vec::new(), 0);
    while rows.is_empty() {
        assert!(started.elapsed() < process::TIMEOUT);
        match count(&context, &query).await {
            Ok(found) => rows = found,
            Err(error) => {
                eprintln!("after a restart: {error}");
                error_count += 1;
            }
        }
    }
    eprintln!("a result {:.1?} after the restart, after {error_count} errors", started.elapsed());
    assert_eq!(rows, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_ends_with_its_client() {
    let machines = Machines::start("ended", 1);
    let captures = machines.folder.join("captures");
    links(&captures, 300);
    let context = machines.connect(4).await.unwrap();
    let query = format!("SELECT application, count(*) FROM flows('{}/*') GROUP BY 1", captures.display());
    let frame = context.sql(&query).await.unwrap();
    let task = std::sync::Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.unwrap();
    let mut stream = execute_stream(std::sync::Arc::clone(&plan), task).unwrap();
    let wait = tokio::time::timeout(Duration::from_secs(2), stream.next()).await;
    assert!(wait.is_err(), "the query took less than two seconds");
    drop(stream);
    let started = Instant::now();
    machines.cluster.cancel(plan.as_ref()).await.unwrap();
    let has_ended = || machines.executors[0].log().contains("tasks for [");
    process::wait_for("the end of the tasks", has_ended);
    let next = format!("SELECT count(*) FROM flows('{}/web.pcap')", data().display());
    assert_eq!(count(&context, &next).await.unwrap(), ["27"]);
    eprintln!("the next query ended {:.1?} after the end of the one before", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_the_cause_and_damage_is_logged() {
    let nobody: Cluster = "df://127.0.0.1:1".parse().unwrap();
    let error = nobody.connect(Cluster::config()).await.err().unwrap().to_string();
    assert!(error.contains("df://127.0.0.1:1: ") && error.contains("refused"), "{error}");
    let machines = Machines::start("errors", 1);
    let context = machines.connect(4).await.unwrap();
    for (query, expected) in [
        ("SELECT * FROM flows('/nowhere/a.pcap')", "/nowhere/a.pcap: No such file or directory (os error 2)"),
        ("SELECT * FROM flows('/nowhere/*.pcap')", "/nowhere/*.pcap: no file has a name of this pattern"),
        ("SELECT * FROM flows('$DATA/README.md')", "$DATA/README.md: "),
        (
            "SELECT cidr_contains(file, '10.0.0.1') FROM flows('$DATA/web.pcap')",
            "cidr_contains: \"$DATA/web.pcap\" is no network",
        ),
        ("SELECT absent FROM flows('$DATA/web.pcap')", "No field named absent."),
    ] {
        let [query, expected] = [query, expected].map(|text| text.replace("$DATA", data().to_str().unwrap()));
        let error = count(&context, &query).await.unwrap_err();
        let message = flowgauge_cluster::failure(&error);
        assert!(message.starts_with(&expected), "{query}: {message}");
    }
    let path = machines.folder.join("truncated.pcap");
    let whole = fs::read(data().join("web.pcap")).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let rows = count(&context, &format!("SELECT count(*) FROM packets('{}')", path.display())).await.unwrap();
    assert!(rows[0].parse::<u32>().unwrap() > 100, "{rows:?}");
    process::wait_for("a warning", || machines.executors[0].log().contains("truncated.pcap"));
}

/// The scheduler lists objects and executors read them, with the credentials of their environment, which the client lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_read_with_the_credentials_of_the_processes() {
    let object = |name: &str| (format!("day/{name}"), data().join(name).to_str().unwrap().to_owned());
    let Some(bucket) = bucket::Bucket::start(&["web.pcap", "dns.pcap", "mail.pcap"].map(object)) else {
        return;
    };
    let environment = vec![
        ("AWS_ACCESS_KEY_ID", "access".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", bucket.port)),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ];
    let machines = Machines::start_with("objects", 2, environment);
    let context = machines.connect(4).await.unwrap();
    let query = |captures: &str| {
        format!("SELECT application, count(*), sum(octet_count) FROM flows({captures}) GROUP BY 1")
    };
    let files = format!("'{0}/web.pcap', '{0}/dns.pcap', '{0}/mail.pcap'", data().display());
    let expected = count(&local(2), &query(&files)).await.unwrap();
    assert_eq!(count(&context, &query("'s3://captures/day/*.pcap'")).await.unwrap(), expected);
    let error = count(&context, &query("'s3://captures/none.pcap'")).await.unwrap_err();
    assert_eq!(flowgauge_cluster::failure(&error), "s3://captures/none.pcap: does not exist");
}

#[test]
fn processes_end_at_signals_and_explain_failures() {
    for (signal, name) in [("TERM", "term"), ("INT", "int")] {
        let mut machines = Machines::start(name, 1);
        let executor = &mut machines.executors[0].process;
        executor.signal(signal);
        assert_eq!(executor.end(), Some(0));
        let scheduler = &mut machines.scheduler.as_mut().unwrap().process;
        scheduler.signal(signal);
        assert_eq!(scheduler.end(), Some(0));
        // The executor deletes its folder.
        assert_eq!(fs::read_dir(&machines.folder).unwrap().count(), 0);
    }
    let scheduler = env!("CARGO_BIN_EXE_flowgauge-scheduler");
    let executor = env!("CARGO_BIN_EXE_flowgauge-executor");
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    for (path, args, status, cause) in [
        (scheduler, &["--port", &port][..], 1, "in use"),
        (scheduler, &["--bind", "0.0.0.0"], 1, "--advertise"),
        (scheduler, &["--bind", "nowhere"], 2, "--bind"),
        (scheduler, &["--executor-timeout", "0s"], 2, "longer than zero"),
        (executor, &["--port", &port], 1, "in use"),
        (executor, &["--scheduler", "a:b"], 2, "host of a scheduler"),
        (executor, &["--memory", "64MiB", "--threads", "4"], 1, "32MiB"),
        (executor, &["--work-dir", "/nowhere"], 1, "/nowhere: "),
    ] {
        let output = Command::new(path).args(args).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
    for path in [scheduler, executor] {
        let help = Command::new(path).arg("--help").output().unwrap();
        assert!(String::from_utf8(help.stdout).unwrap().contains("Examples:"));
        let version = Command::new(path).arg("--version").output().unwrap();
        assert!(String::from_utf8(version.stdout).unwrap().contains(env!("CARGO_PKG_VERSION")));
    }
}
