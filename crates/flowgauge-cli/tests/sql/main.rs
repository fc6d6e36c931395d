//! `flowgauge sql` on the captures in `examples/data`: results in each format are those of `flowgauge flows`.
#![cfg(target_os = "linux")]

#[cfg(feature = "cluster")]
mod cluster;
mod findings;
#[path = "../support/folder.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod folder;
#[path = "../support/process.rs"]
mod process;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use folder::Folder;
use process::Process;

/// Exit status and output of one run.
#[derive(Debug)]
struct Run {
    status: Option<i32>,
    octets: Vec<u8>,
    out: String,
    err: String,
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").canonicalize().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.args(args).current_dir(captures()).env_remove("COLUMNS").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Run {
    outcome(&mut command(args))
}

fn outcome(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8(output.stderr).unwrap();
    Run { status: output.status.code(), octets: output.stdout, out, err }
}

/// Runs a query that succeeds without a message.
fn sql(query: &str, args: &[&str]) -> Run {
    let run = run(&[&["sql", query], args].concat());
    assert_eq!((run.status, run.err.as_str()), (Some(0), ""), "{query}");
    run
}

/// Runs a statement from standard input.
fn sql_from_stdin(args: &[&str], statements: &str) -> Run {
    let folder = Folder::new();
    let file = fs::File::open(folder.file("statements", statements.as_bytes())).unwrap();
    outcome(command(&[&["sql"], args].concat()).stdin(file))
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn flows(capture: &str) -> Vec<Value> {
    let run = run(&["flows", capture, "--format", "ndjson", "--quiet", "--time", "rfc3339"]);
    assert_eq!(run.status, Some(0), "{}", run.err);
    objects(&run.out)
}

const FIELDS: [&str; 8] = [
    "source_address",
    "source_port",
    "destination_address",
    "destination_port",
    "octet_count",
    "vlan_ids",
    "application",
    "community_id",
];

/// The values of the fields of records, sorted.
fn values(records: &[Value]) -> Vec<String> {
    let mut values: Vec<_> =
        records.iter().map(|record| FIELDS.map(|field| record[field].to_string()).join(" ")).collect();
    values.sort();
    values
}

#[test]
fn ndjson_has_the_values_of_the_command_flows() {
    for capture in ["web.pcap", "vlan.pcapng"] {
        let expected = flows(capture);
        let query = format!("SELECT * FROM flows('{capture}')");
        let found = objects(&sql(&query, &["--format", "ndjson"]).out);
        assert!(found.len() > 3);
        assert_eq!(values(&found), values(&expected), "{capture}");
        assert_eq!(found[0]["file"], capture);
        // Both are dates of the same nanosecond.
        let mut starts = [&found, &expected].map(|records| {
            let mut starts: Vec<_> = records.iter().map(|record| record["start"].to_string()).collect();
            starts.sort();
            starts
        });
        let digits = |text: &String| text.chars().filter(char::is_ascii_digit).collect::<String>();
        starts.iter_mut().flatten().for_each(|start| *start = format!("{:0<30}", digits(start)));
        assert_eq!(starts[0], starts[1]);
    }
}

#[test]
fn csv_has_the_values_of_ndjson() {
    let query = format!("SELECT {} FROM flows('vlan.pcapng')", FIELDS.join(", "));
    let text = sql(&query, &["--format", "csv"]).out;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(&*FIELDS.join(",")));
    let records = flows("vlan.pcapng");
    assert_eq!(lines.clone().count(), records.len());
    for record in &records {
        let cell = |field: &&str| match &record[*field] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(items) if items.len() > 1 => format!("\"{}\"", record[*field]),
            value => value.to_string(),
        };
        let expected = FIELDS.iter().map(cell).collect::<Vec<_>>().join(",");
        assert!(lines.clone().any(|line| line == expected), "{expected}:\n{text}");
    }
    let empty = sql("SELECT protocol, file FROM flows('web.pcap') WHERE false", &["--format", "csv"]);
    assert_eq!(empty.out, "protocol,file\n");
}

#[test]
fn a_table_has_a_line_for_each_row() {
    let records = flows("web.pcap");
    let sum: u64 = records.iter().map(|record| record["octet_count"].as_u64().unwrap()).sum();
    let query = "SELECT count(*) AS n, sum(octet_count) AS octets, NULL AS nothing, 'a' AS text FROM flows('web.pcap')";
    let (n, octets) = (records.len().to_string(), sum.to_string());
    let width = octets.len().max("OCTETS".len());
    let expected =
        format!("{:>2}  {:>width$}  NOTHING  TEXT\n{n:>2}  {octets:>width$}  -        a\n", "N", "OCTETS");
    assert_eq!(sql(query, &[]).out, expected);
    assert_eq!(sql("SELECT 1 AS one WHERE false", &[]).out, "ONE\n");
}

#[test]
fn columnar_files_can_be_queried_and_joined() {
    let folder = Folder::new();
    let (path, arrow) = (folder.path("flows.parquet"), folder.path("flows.arrow"));
    let records = flows("web.pcap");
    let written = sql("SELECT * FROM flows('web.pcap')", &["-o", &path]);
    assert_eq!(written.out, "");
    assert_eq!(folder.names(), ["flows.parquet"]);
    let query = format!(
        "SELECT count(*) AS n, count(DISTINCT b.community_id) AS ids FROM flows('web.pcap') AS a
         JOIN '{path}' AS b ON a.community_id = b.community_id AND a.start = b.start"
    );
    let found = objects(&sql(&query, &["--format", "ndjson"]).out);
    assert_eq!(found[0]["n"], records.len());
    let found = objects(&sql(&format!("SELECT * FROM '{path}'"), &["--format", "ndjson"]).out);
    assert_eq!(values(&found), values(&records));
    // Both formats on standard output.
    let parquet = sql("SELECT * FROM flows('web.pcap')", &["--format", "parquet"]).octets;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    sql("SELECT source_port, start FROM flows('web.pcap')", &["--out", &arrow]);
    let octets = fs::read(&arrow).unwrap();
    assert!(octets.starts_with(&[0xff; 4]) && octets.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
    // What the command flows writes has octets as addresses.
    let file = fs::File::create(folder.path("written.parquet")).unwrap();
    let status =
        command(&["flows", "web.pcap", "--format", "parquet", "--quiet"]).stdout(file).status().unwrap();
    assert!(status.success());
    // Records of files that queries of files have written are complete: columns of text, and addresses, are kept.
    let derived = folder.path("derived.parquet");
    let https = "application, community_id, source_address, octet_count";
    for source in [path.as_str(), &folder.path("written.parquet")] {
        sql(&format!("SELECT * FROM '{source}' WHERE destination_port = 443"), &["-o", &derived, "--force"]);
        let of_file =
            sql(&format!("SELECT {https} FROM flows('{derived}') ORDER BY 2, 4"), &["--format", "csv"]);
        let query =
            format!("SELECT {https} FROM flows('web.pcap') WHERE destination_port = 443 ORDER BY 2, 4");
        assert_eq!(of_file.out, sql(&query, &["--format", "csv"]).out, "{source}");
        assert!(of_file.out.lines().count() > 3, "{}", of_file.out);
    }
    let query = format!("SELECT sum(octet_count) AS octets FROM '{}'", folder.path("written.parquet"));
    let sum: u64 = records.iter().map(|record| record["octet_count"].as_u64().unwrap()).sum();
    assert_eq!(objects(&sql(&query, &["--format", "ndjson"]).out)[0]["octets"], sum);
}

#[test]
fn statements_come_from_the_argument_a_file_or_standard_input() {
    let folder = Folder::new();
    let statements = "CREATE VIEW web AS SELECT * FROM flows('web.pcap') WHERE application = 'http';
        SELECT count(*) AS n FROM web; -- one more
        SELECT 'a;b' AS text;";
    let http = flows("web.pcap").iter().filter(|record| record["application"] == "http").count();
    let expected = format!(" N\n{http}\n\nTEXT\na;b\n");
    assert!(http > 9, "a number with two digits");
    assert_eq!(sql(statements, &[]).out, expected);
    let path = folder.file("report.sql", statements.as_bytes());
    for run in [
        run(&["sql", "-f", &path]),
        sql_from_stdin(&["-f", "-"], statements),
        sql_from_stdin(&[], statements),
    ] {
        assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (Some(0), &*expected, ""));
    }
    assert_eq!(sql_from_stdin(&[], "").status, Some(0));
}

#[test]
fn failures_have_a_message_and_a_status() {
    let folder = Folder::new();
    let missing = folder.path("missing.pcap");
    let query = format!("SELECT * FROM flows('{missing}')");
    let not_utf8 = folder.file("not-utf8.sql", b"SELECT '\xff'");
    for (args, status, message) in [
        (&["WHERE 1"][..], 2, "Expected"),
        (&["SELECT nothing FROM flows('web.pcap')"], 2, "nothing"),
        (&["SELECT * FROM flows('web.pcap', timeout => '1s')"], 2, "timeout"),
        (&["SELECT * FROM web"], 2, "web"),
        (&["SELECT 1; SELECT 2", "--format", "parquet"], 2, "--format parquet holds the result of one query"),
        (&["SELECT 1", "--memory", "much"], 2, "--memory"),
        (&["SELECT 1", "--threads", "0"], 2, "--threads"),
        (&["SELECT 1", "-f", "x.sql"], 2, "cannot be used with"),
        (&[&query], 1, &missing),
        (&["-f", &missing], 1, &missing),
        (&["-f", "csv"], 1, "the format is --format csv"),
        (&["-f", &not_utf8], 1, "not-utf8.sql: "),
        (&["SELECT * FROM flows('README.md')"], 1, "README.md: is not a pcap or pcapng capture"),
        (&["SELECT cast('x' AS int)"], 1, "x"),
    ] {
        let run = run(&[&["sql"], args].concat());
        assert_eq!((run.status, run.out.as_str()), (Some(status), ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(message), "{args:?}: {}", run.err);
    }
    // Statements that are no queries have results too.
    let (copy, out) = (folder.path("copy.parquet"), folder.path("out.parquet"));
    let statements = format!("COPY (SELECT 1 AS a) TO '{copy}'; SELECT 2 AS b");
    let failed = run(&["sql", &statements, "-o", &out]);
    assert!(failed.status == Some(2) && failed.err.contains("the result of one query"), "{failed:?}");
    assert!(!Path::new(&out).exists());
    // A folder with the name of a table is not read.
    fs::create_dir(folder.path("flows")).unwrap();
    folder.file("flows/unfinished.parquet", b"PAR1");
    let query = format!("SELECT count(*) FROM flows('{}')", captures().join("web.pcap").display());
    let found = outcome(command(&["sql", &query, "--format", "csv"]).current_dir(&folder.0));
    assert_eq!((found.status, found.err.as_str()), (Some(0), ""));
    assert_eq!(found.out.lines().last(), Some("27"));
    // The statements before a failure are complete, and those behind it are not run.
    let run = run(&["sql", "SELECT 1 AS a; SELECT * FROM nothing; SELECT 2 AS b"]);
    assert_eq!((run.status, run.out.as_str()), (Some(2), "A\n1\n"));
}

#[test]
fn damage_is_reported_and_the_rows_before_it_remain() {
    let folder = Folder::new();
    let octets = fs::read(captures().join("web.pcap")).unwrap();
    let path = folder.file("truncated.pcap", &octets[..20_000]);
    let run = run(&["sql", &format!("SELECT count(*) AS n FROM flows('{path}')")]);
    assert_eq!((run.status, run.out.as_str()), (Some(1), "N\n1\n"), "{}", run.err);
    assert!(run.err.contains("truncated.pcap: at offset 19779, frame 25: truncated"), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

#[test]
fn text_cannot_control_the_terminal() {
    let query = "SELECT chr(27) || '[31m' || chr(155) || chr(8238) || chr(10) || 'é' AS \"a\u{9b}\",
                 [chr(155)] AS list";
    let escaped = r"\u001b[31m\u009b\u202e\né";
    for (format, expected) in [
        (
            "table",
            format!("A\\u009b{}LIST\n{escaped}  [\"\\u009b\"]\n", " ".repeat(escaped.chars().count() - 5)),
        ),
        ("csv", format!("a\\u009b,list\n{escaped},\"[\"\"\\u009b\"\"]\"\n")),
        ("ndjson", format!("{{\"a\\u009b\":\"{escaped}\",\"list\":[\"\\u009b\"]}}\n")),
    ] {
        assert_eq!(sql(query, &["--format", format]).out, expected);
    }
    let run = run(&["sql", "SELECT \"\u{1b}[31m\""]);
    assert!(run.status == Some(2) && run.err.contains("\\u001b[31m"), "{}", run.err);
}

#[test]
fn the_plan_is_printed_in_lines() {
    let query = "SELECT application FROM flows('web.pcap') WHERE destination_port = 80";
    let plan = sql(query, &["--explain"]).out;
    assert!(plan.lines().count() > 1 && plan.contains("file_type=captures"), "{plan}");
    assert!(!plan.contains("TableScan"), "{plan}");
    let both = sql(&format!("EXPLAIN {query}"), &[]).out;
    assert!(both.contains("TableScan") && both.contains("file_type=captures"), "{both}");
    let count =
        |threads| sql(query, &["--explain", "--threads", threads]).out.matches("input_partitions=").count();
    assert_eq!(count("1"), 0, "{plan}");
}

#[test]
fn a_limit_of_memory_is_kept_or_the_query_fails() {
    let query = "SELECT count(*) AS n FROM (SELECT DISTINCT value % 500000 FROM generate_series(1, 1000000))";
    assert_eq!(sql(query, &["--memory", "1GiB"]).out, "     N\n500000\n");
    let run = run(&["sql", "SELECT array_agg(value) FROM generate_series(1, 1000000)", "--memory", "1MiB"]);
    assert_eq!((run.status, run.out.as_str()), (Some(1), ""), "{}", run.err);
    assert!(run.err.starts_with("flowgauge: "), "{}", run.err);
}

#[test]
fn files_are_complete_or_do_not_appear() {
    let folder = Folder::new();
    let path = folder.path("out.csv");
    let failed = run(&["sql", "SELECT 1; SELECT * FROM nothing", "-o", &path]);
    assert_eq!((failed.status, folder.names()), (Some(2), Vec::new()));
    sql("SELECT 1 AS a", &["-o", &path]);
    let refused = run(&["sql", "SELECT 2 AS a", "-o", &path]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains("already exists; use --force"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n1\n");
    sql("SELECT 2 AS a", &["-o", &path, "--force"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n2\n");
}

#[test]
fn a_closed_pipe_ends_the_command_and_a_full_device_is_a_failure() {
    let query = "SELECT * FROM generate_series(1, 1000000000)";
    let mut child = command(&["sql", query]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*line), (Some(0), "VALUE\n"));
    assert!(output.stderr.is_empty());
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for format in ["table", "ndjson", "csv", "parquet", "arrow"] {
        let run = outcome(command(&["sql", "SELECT 1", "--format", format]).stdout(full()));
        assert_eq!(run.status, Some(1), "{format}");
        assert!(run.err.starts_with("flowgauge: standard output: No space left"), "{format}: {}", run.err);
    }
}

/// Starts a query that waits for octets of a pipe, which has the frames of a capture.
fn waiting(args: &[&str], folder: &Folder) -> (Process, fs::File) {
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let query = format!("SELECT source_port FROM packets('{pipe}')");
    let process = Process::start(
        command(&[&["sql", &query], args].concat())
            .stdout(fs::File::create(folder.path("stdout")).unwrap())
            .stderr(fs::File::create(folder.path("stderr")).unwrap()),
    );
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(&fs::read(captures().join("web.pcap")).unwrap()).unwrap();
    (process, writer)
}

#[test]
fn a_signal_ends_a_query_that_waits() {
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let folder = Folder::new();
        let (mut process, writer) = waiting(&["--format", "csv"], &folder);
        std::thread::sleep(Duration::from_millis(300));
        let started = Instant::now();
        process.signal(signal);
        assert_eq!(process.end(), Some(status));
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        assert_eq!(fs::read_to_string(folder.path("stderr")).unwrap(), "");
        drop(writer);
    }
}

#[test]
fn a_signal_ends_a_query_that_computes_and_its_file_does_not_appear() {
    let folder = Folder::new();
    let path = folder.path("out.csv");
    let query = "SELECT count(*) FROM generate_series(1, 100000000000) AS a";
    let mut process = Process::start(&mut command(&["sql", query, "-o", &path]));
    process::wait_for("the output", || !folder.names().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    let started = Instant::now();
    process.signal("INT");
    assert_eq!(process.end(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(folder.names(), Vec::<String>::new());
}

/// Runs a script with the command as its first argument, unless there is no Python.
fn run_script(name: &str, args: &[&str]) {
    let python = std::env::var_os("FLOWGAUGE_PYTHON").unwrap_or_else(|| "python3".into());
    if Command::new(&python).arg("--version").output().is_err() {
        eprintln!("skipped: python3 is not installed");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql").join(name);
    let mut command = Command::new(&python);
    let output = command.arg(script).arg(env!("CARGO_BIN_EXE_flowgauge")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn progress_is_shown_on_a_terminal_without_rows() {
    run_script("progress.py", &[captures().join("web.pcap").to_str().unwrap()]);
}

#[test]
fn the_prompt_runs_statements_and_survives_errors_and_interrupts() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Open, so that the query does not wait for a writer, but for octets.
    let _writer = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    run_script("prompt.py", &[captures().join("web.pcap").to_str().unwrap(), &pipe, &folder.path("home")]);
}
