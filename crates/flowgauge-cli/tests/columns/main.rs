//! Parquet and Arrow IPC, as DuckDB, Polars and pyarrow read them, logs of Zeek, as zat and DuckDB read them, and features,
//! compared with those of NFStream; groups and counts over time, compared with those of DuckDB and tshark; and the recipes
//! of docs/recipes.md.
//!
//! The tests run the Python interpreter of the variable `FLOWGAUGE_PYTHON`, or `python3`. Without these libraries,
//! they print a note and pass. If `FLOWGAUGE_READERS` is set to `required`, they fail instead. With `FLOWGAUGE_CORPUS`, its
//! captures are compared too:
//!
//! ```sh
//! python3 -m venv venv && venv/bin/pip install duckdb dpkt netflower nfstream numpy pandas polars pyarrow requests scapy scipy
//! venv/bin/pip install --no-deps cicflowmeter==0.2.0 zat==0.4.9
//! FLOWGAUGE_READERS=required FLOWGAUGE_PYTHON=venv/bin/python \
//!     cargo test -p flowgauge-cli --features arrow --test columns
//! ```

#[path = "../support/folder.rs"]
mod folder;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use folder::Folder;
use process::{Process, wait_for};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.args(args).stderr(Stdio::piped());
    command
}

/// Runs a command, with its output in a file. Captures of the corpus may be damaged, which is status 1.
fn run_into(path: &str, args: &[&str]) {
    let output = command(args).stdout(File::create(path).unwrap()).output().unwrap();
    let is_damaged = std::env::var_os("FLOWGAUGE_CORPUS").is_some() && output.status.code() == Some(1);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || is_damaged, "{message}");
}

/// Runs a command that fails, and returns its exit status and message.
fn failure(args: &[&str], out: Stdio) -> (Option<i32>, String) {
    let output = command(args).stdout(out).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    path.to_str().unwrap().to_owned()
}

/// Returns the captures of this repository, and those of the corpus if it is there.
fn captures() -> Vec<String> {
    let mut captures: Vec<_> =
        ["web.pcap", "dns.pcap", "mail.pcap", "ssh.pcap", "vlan.pcapng"].map(data).into();
    if let Some(corpus) = std::env::var_os("FLOWGAUGE_CORPUS") {
        let manifest =
            fs::read_to_string(Path::new(&corpus).join("MANIFEST.tsv")).expect("the list of the corpus");
        let paths = manifest.lines().filter_map(|line| line.split('\t').next());
        let paths = paths.map(|path| Path::new(&corpus).join(path)).filter(|path| path.is_file());
        captures.extend(paths.map(|path| path.to_str().unwrap().to_owned()));
        assert!(captures.len() > 100, "{} captures", captures.len());
    }
    captures
}

/// Runs the readers; returns what they print, or `None` after a note if there are none and they are not required.
fn readers(args: &[&str]) -> Option<String> {
    python("readers.py", "duckdb, polars, pyarrow", args)
}

/// Runs a script that imports modules.
fn python(script: &str, modules: &str, args: &[&str]) -> Option<String> {
    let python = std::env::var("FLOWGAUGE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = format!("import {modules}");
    let found = Command::new(&python).args(["-c", &import]).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        let is_required = std::env::var("FLOWGAUGE_READERS").as_deref() == Ok("required");
        assert!(!is_required, "{python} lacks one of {modules}");
        eprintln!("{python} lacks one of {modules}: the test is skipped");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns").join(script);
    let output = Command::new(&python).arg(&script).args(args).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script:?}: {}", message.lines().last().unwrap_or_default());
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Compares the output of a command for captures in all formats.
fn check(table: &str, command: &[&str], captures: &[&str]) -> Option<String> {
    let folder = Folder::new();
    let paths = ["parquet", "arrow", "ndjson"].map(|format| {
        let path = folder.path(format);
        let shape: &[&str] = if format == "ndjson" { &["--nulls", "null"] } else { &["--addresses", "text"] };
        run_into(&path, &[command, &["-q", "--format", format], shape, captures].concat());
        path
    });
    let [parquet, arrow, ndjson] = &paths;
    readers(&["whole", table, parquet, arrow, ndjson])
}

/// Compares the flow records of captures in all formats.
fn check_flows(captures: &[&str]) -> Option<String> {
    check("flow", &["flows", "--encapsulation"], captures)
}

#[test]
fn flow_records_are_those_of_ndjson() {
    let captures = captures();
    let captures: Vec<&str> = captures.iter().map(String::as_str).collect();
    // Captures of one format are merged; those with other link types are too.
    let Some(report) = check_flows(&captures) else { return };
    print!("{report}");
}

#[test]
fn features_are_those_of_nfstream_and_can_be_read() {
    check_features("features.py", "nfstream");
    let captures = captures();
    let pcaps: Vec<&str> =
        captures.iter().map(String::as_str).filter(|path| path.ends_with(".pcap")).collect();
    let features = ["flows", "--server-name", "dns", "--features", "cic,nfstream,splt=20,histogram,tcp"];
    if let Some(report) = check("features", &features, &pcaps) {
        print!("{report}");
    }
}

#[test]
fn packets_are_those_of_ndjson() {
    let captures = captures();
    let captures: Vec<&str> = captures.iter().map(String::as_str).collect();
    if let Some(report) = check("packet", &["packets"], &captures) {
        print!("{report}");
    }
}

#[test]
fn logs_of_zeek_are_read_by_zat_duckdb_and_awk() {
    let captures = captures();
    let captures: Vec<&str> = captures.iter().map(String::as_str).collect();
    let folder = Folder::new();
    let (tsv, json) = (folder.path("tsv"), folder.path("json"));
    let targets = [format!("zeek={tsv}"), format!("zeek-json={json}")];
    let args = ["sessions", "-q", "--hashes", "--write", &targets[0], "--write", &targets[1]];
    run_into(&folder.path("out"), &[&args[..], &captures].concat());
    if let Some(report) = python("logs.py", "duckdb, zat", &[&tsv, &json]) {
        assert!(report.contains(" logs, ") && !report.contains(" 0 rows"), "{report}");
        print!("{report}");
    }
}

/// Compares features with those of other programs.
fn check_features(script: &str, modules: &str) {
    let captures = captures();
    // These programs read no pcapng, or not all of it.
    let pcaps = captures.iter().map(String::as_str).filter(|path| path.ends_with(".pcap"));
    let args: Vec<_> = [env!("CARGO_BIN_EXE_flowgauge")].into_iter().chain(pcaps).collect();
    if let Some(report) = python(script, modules, &args) {
        print!("{report}");
    }
}

#[test]
fn features_are_those_of_netflower_and_cicflowmeter() {
    check_features("vectors.py", "netflower, cicflowmeter");
}

#[test]
fn features_of_tcp_are_those_of_tshark() {
    let found = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        check_features("tcp.py", "json");
    } else {
        assert!(std::env::var("FLOWGAUGE_READERS").as_deref() != Ok("required"), "tshark is not installed");
        eprintln!("tshark is not installed: the test is skipped");
    }
}

#[test]
fn an_empty_capture_gives_valid_empty_files() {
    let folder = Folder::new();
    let header = fs::read(data("web.pcap")).unwrap();
    let empty = folder.file("empty.pcap", header.get(..24).unwrap());
    if let Some(report) = check_flows(&[&empty]) {
        assert!(report.starts_with("flow: 0 rows, "), "{report}");
    }
}

/// Compares the files of `sessions` with its lines, and returns the number of files.
fn check_sessions(options: &[&str]) -> usize {
    let captures = captures();
    let captures: Vec<&str> = captures.iter().map(String::as_str).collect();
    let folder = Folder::new();
    for format in ["parquet", "arrow"] {
        let out = folder.path(format);
        let args = ["sessions", "-q", "--format", format, "--out", &out, "--addresses", "text"];
        run_into(&folder.path("empty"), &[&args[..], options, &captures].concat());
    }
    let all = folder.path("all.ndjson");
    run_into(&all, &[&["sessions", "-q", "--nulls", "null"], options, &captures[..]].concat());
    let lines = fs::read_to_string(&all).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(folder.path("parquet")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    let mut row_count = 0;
    for name in &names {
        let name = name.to_str().unwrap().strip_suffix(".parquet").unwrap();
        let paths = ["parquet", "arrow"].map(|format| folder.path(&format!("{format}/{name}.{format}")));
        let Some(report) = readers(&["whole", name, &paths[0], &paths[1], &all]) else { return names.len() };
        let count = report.split(' ').nth(1).and_then(|count| count.parse::<usize>().ok());
        row_count += count.unwrap_or_else(|| panic!("{report}"));
    }
    assert_eq!(row_count, lines.lines().count(), "each row is in one table");
    names.len()
}

#[test]
fn each_kind_of_message_and_transaction_is_a_table() {
    assert!(check_sessions(&[]) > 10);
    assert!(check_sessions(&["--transactions", "--hashes"]) >= 6);
}

#[test]
fn a_stream_can_be_read_up_to_the_death_of_its_writer() {
    let folder = Folder::new();
    let (arrow, ndjson) = (folder.path("arrow"), folder.path("ndjson"));
    let flows = ["flows", "-", "-q", "--idle-timeout", "1ms", "--format"];
    let mut child = command(&[&flows[..], &["arrow", "--addresses", "text"]].concat());
    child.stdin(Stdio::piped()).stdout(File::create(&arrow).unwrap());
    let mut process = Process::start(&mut child);
    let mut stdin = process.0.stdin.take().unwrap();
    stdin.write_all(&fs::read(data("web.pcap")).unwrap()).unwrap();
    // More than the schema.
    wait_for("a batch", || fs::metadata(&arrow).unwrap().len() > 30_000);
    process.signal("KILL");
    process.end();
    drop(stdin);
    let mut child = command(&[&flows[..], &["ndjson", "--nulls", "null"]].concat());
    child.stdin(File::open(data("web.pcap")).unwrap()).stdout(File::create(&ndjson).unwrap());
    assert!(child.status().unwrap().success());
    if let Some(report) = readers(&["part", &arrow, &ndjson]) {
        print!("{report}");
    }
}

#[test]
fn an_interrupted_file_is_complete() {
    let folder = Folder::new();
    let paths = ["parquet", "arrow", "ndjson"].map(|format| {
        let path = folder.path(format);
        let shape: &[&str] = if format == "ndjson" { &["--nulls", "null"] } else { &["--addresses", "text"] };
        let mut child =
            command(&[&["flows", "-", "--idle-timeout", "1ms", "--format", format], shape].concat());
        child.stdin(Stdio::piped()).stdout(File::create(&path).unwrap()).stderr(Stdio::null());
        let mut process = Process::start(&mut child);
        let mut stdin = process.0.stdin.take().unwrap();
        stdin.write_all(&fs::read(data("dns.pcap")).unwrap()).unwrap();
        let position = format!("/proc/{}/io", process.0.id());
        let has_read = || {
            let counters = fs::read_to_string(&position).unwrap_or_default();
            let read = counters.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok());
            read.is_some_and(|read| read >= fs::metadata(data("dns.pcap")).unwrap().len())
        };
        wait_for("the capture to be read", has_read);
        process.signal("INT");
        assert_eq!(process.end(), Some(130));
        drop(stdin);
        path
    });
    let [parquet, arrow, ndjson] = &paths;
    if let Some(report) = readers(&["whole", "flow", parquet, arrow, ndjson]) {
        assert!(!report.starts_with("flow: 0 rows"), "{report}");
    }
}

#[test]
fn bad_requests_and_full_devices_are_reported() {
    let (web, folder) = (data("web.pcap"), Folder::new());
    for format in ["parquet", "arrow"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (status, message) = failure(&["flows", &web, "--format", format], full.into());
        assert_eq!(status, Some(1), "{message}");
        assert!(message.starts_with("flowgauge: standard output: No space left"), "{message}");
        let (status, message) = failure(&["sessions", &web, "--format", format], Stdio::null());
        assert_eq!(status, Some(2), "{message}");
        assert!(message.contains("require --out"), "{message}");
        let (status, message) =
            failure(&["flows", &web, "--format", format, "--time", "unix"], Stdio::null());
        assert_eq!(status, Some(2), "{message}");
        assert!(message.contains("--time and --nulls require"), "{message}");
    }
    let (status, message) = failure(&["flows", &web, "--addresses", "text"], Stdio::null());
    assert_eq!(status, Some(2), "{message}");
    assert!(message.contains("--addresses requires --format parquet or arrow"), "{message}");
    // An existing file is kept.
    let out = folder.path("out");
    let sessions = ["sessions", &web, "-q", "--format", "parquet", "--out", &out];
    run_into(&folder.path("empty"), &sessions);
    let (status, message) = failure(&sessions, Stdio::null());
    assert_eq!(status, Some(1), "{message}");
    assert!(message.contains("already exists; use --force to overwrite it"), "{message}");
    run_into(&folder.path("empty"), &[&sessions[..], &["--force"]].concat());
    assert!(Folder::names(&Folder(out.into())).iter().all(|name| name.ends_with(".parquet")));
}

#[test]
fn groups_and_intervals_are_those_of_duckdb_and_tshark() {
    let captures = captures();
    let args: Vec<_> =
        [env!("CARGO_BIN_EXE_flowgauge")].into_iter().chain(captures.iter().map(String::as_str)).collect();
    if let Some(report) = python("groups.py", "duckdb", &args) {
        assert!(!report.contains(" 0 groups"), "{report}");
        print!("{report}");
    }
}

/// Blocks of a document: the language, the text, and the number of the line behind it.
fn blocks(document: &str) -> Vec<(&str, String, usize)> {
    let mut blocks: Vec<(&str, String, usize)> = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for (number, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language, String::new())),
            (Some(_), Some(_)) => {
                let (language, text) = open.take().unwrap();
                blocks.push((language, text, number));
            }
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Runs each block of docs/recipes.md in a folder with the capture, and compares its output with the block behind it.
/// `UPDATE_DOCS=1` writes the outputs.
#[test]
fn recipes_print_what_the_page_shows() {
    let python = std::env::var("FLOWGAUGE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found =
        Command::new(&python).args(["-c", "import duckdb, pandas, polars"]).stderr(Stdio::null()).status();
    let has_jq = Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !has_jq || !found.is_ok_and(|status| status.success()) {
        assert_ne!(
            std::env::var("FLOWGAUGE_READERS").as_deref(),
            Ok("required"),
            "jq, duckdb, pandas or polars is missing"
        );
        eprintln!("skipped: jq, duckdb, pandas or polars is missing");
        return;
    }
    let folder = Folder::new();
    fs::copy(data("web.pcap"), folder.path("capture.pcap")).unwrap();
    for name in ["arp-conflict", "ordinary-files", "ordinary-link", "poor-media", "remote-service"] {
        let name = format!("{name}.pcap.zst");
        fs::copy(data(&format!("../findings/{name}")), folder.path(&name)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_flowgauge")).parent().unwrap().to_str().unwrap();
    let paths = format!("{program}:{}", std::env::var("PATH").unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
    let document = fs::read_to_string(&path).unwrap();
    let blocks = blocks(&document);
    assert!(blocks.len() >= 12 && blocks.len().is_multiple_of(2));
    let mut updated: Vec<String> = Vec::new();
    let mut copied = 0;
    let lines: Vec<_> = document.lines().collect();
    for pair in blocks.chunks(2) {
        let [(language, recipe, _), ("text", expected, end)] = pair else { panic!("{pair:?}") };
        let mut command = match *language {
            "sh" => Command::new("bash"),
            "python" => Command::new(&python),
            other => panic!("{other}"),
        };
        let output = command
            .args(if *language == "sh" { ["-ec", recipe] } else { ["-c", recipe] })
            .current_dir(&folder.0)
            .env("PATH", &paths)
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !printed.is_empty(), "{recipe}\n{message}");
        if std::env::var_os("UPDATE_DOCS").is_none() {
            assert_eq!(printed, *expected, "{recipe}");
        }
        let start = end - expected.lines().count();
        updated.extend(lines[copied..start].iter().map(|line| (*line).to_owned()));
        updated.extend(printed.lines().map(str::to_owned));
        copied = *end;
    }
    updated.extend(lines[copied..].iter().map(|line| (*line).to_owned()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, updated.join("\n") + "\n").unwrap();
    }
}
