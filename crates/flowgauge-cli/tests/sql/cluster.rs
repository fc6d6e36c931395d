//! `flowgauge sql --cluster` with a scheduler and an executor of the package `flowgauge-cluster`.
//!
//! Their programs are beside that of the command. Without them, which another selection of packages builds, a note is
//! printed; if `FLOWGAUGE_READERS` is set to `required`, the test fails instead.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder::Folder;
use super::process::Process;
use super::{captures, command, outcome, run};

/// Returns the path of a program beside the command.
fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_flowgauge")).with_file_name(name);
    if path.exists() {
        return Some(path);
    }
    assert_ne!(
        std::env::var("FLOWGAUGE_READERS").as_deref(),
        Ok("required"),
        "{} is missing",
        path.display()
    );
    eprintln!("skipped: {} is not built", path.display());
    None
}

/// Starts a program; returns its first line of output.
fn start(path: &Path, args: &[&str]) -> (Process, String) {
    let mut command = Command::new(path);
    let mut process = Process::start(command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (process, line.trim().to_owned())
}

#[test]
fn a_scheduler_that_cannot_be_reached_is_a_failure() {
    let found = run(&["sql", "SELECT 1", "--cluster", "df://127.0.0.1:1"]);
    assert_eq!((found.status, found.out.as_str()), (Some(1), ""), "{}", found.err);
    assert!(found.err.contains("df://127.0.0.1:1: ") && found.err.contains("refused"), "{}", found.err);
    for args in [&["--cluster", "127.0.0.1"][..], &["--cluster", "df://a", "--memory", "1GiB"]] {
        let found = run(&[&["sql", "SELECT 1"], args].concat());
        assert_eq!(found.status, Some(2), "{}", found.err);
    }
}

#[test]
fn results_of_a_cluster_are_those_of_the_command() {
    let (Some(scheduler), Some(executor)) = (program("flowgauge-scheduler"), program("flowgauge-executor"))
    else {
        return;
    };
    let folder = Folder::new();
    let (_scheduler, url) = start(&scheduler, &["--port", "0"]);
    let address = url.strip_prefix("df://").unwrap();
    let args = ["--scheduler", address, "--port", "0", "--control-port", "0", "--work-dir"];
    let (_executor, line) = start(&executor, &[&args[..], &[&*folder.path("")]].concat());
    assert!(line.contains(&url), "{line}");
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let query = "SELECT application, source_port, octet_count FROM flows('*.pcap') WHERE octet_count > 100";
    for format in ["table", "ndjson", "csv"] {
        let own = run(&["sql", query, "--format", format]);
        let found = run(&["sql", query, "--format", format, "--cluster", &url]);
        assert_eq!((found.status, found.err.as_str()), (Some(0), ""));
        // The columns of a table are as wide as its widest row.
        let squeezed = |text: &str| -> String {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
        };
        let [own, found] = [&own.out, &found.out].map(|text| squeezed(text));
        assert_eq!(sorted(&found), sorted(&own), "{format}");
        assert!(sorted(&own).len() > 20);
    }
    let parquet = folder.path("flows.parquet");
    let parquet = &*parquet;
    let found = run(&["sql", query, "-o", parquet, "--cluster", &url]);
    assert_eq!(found.status, Some(0), "{}", found.err);
    // Files of other formats are tables of the cluster too.
    let count = format!("SELECT count(*) AS n FROM '{parquet}'; SELECT count(*) AS n FROM ({query})");
    let counts = run(&["sql", &count, "--format", "csv", "--cluster", &url]);
    assert_eq!(counts.status, Some(0), "{}", counts.err);
    let counts: Vec<_> = counts.out.lines().filter(|line| *line != "n").collect();
    assert!(counts.len() == 2 && counts[0] == counts[1], "{counts:?}");
    for (query, cause) in [
        ("SELECT * FROM flows('missing.pcap')", "missing.pcap"),
        ("SELECT cidr_contains(file, '10.0.0.1') FROM flows('web.pcap')", "is no network"),
    ] {
        let found = run(&["sql", query, "--cluster", &url]);
        assert_eq!(found.status, Some(1), "{}", found.err);
        assert!(found.err.contains(cause), "{}", found.err);
    }
    // Ctrl-C ends a query.
    let many = vec![format!("'{}/*'", captures().display()); 500].join(", ").replace("/*'", "/*.pcap'");
    let query = format!("SELECT application, count(*) FROM flows({many}) GROUP BY 1");
    let mut running = command(&["sql", &query, "--cluster", &url]);
    let mut running = Process::start(running.stdout(Stdio::piped()).stderr(Stdio::piped()));
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(!running.has_ended());
    running.signal("INT");
    assert_eq!(running.end(), Some(130));
    let next = outcome(&mut command(&["sql", "SELECT count(*) FROM flows('web.pcap')", "--cluster", &url]));
    assert!(next.out.contains("27"), "{} {}", next.out, next.err);
}
