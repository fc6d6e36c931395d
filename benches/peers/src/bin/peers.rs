//! Measures flowgauge and its peers in one run, and optionally writes the results to the documentation.

use std::env;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use flowgauge::{FileSource, Pipeline, RunOptions};
use flowgauge_peers::gopacket::Gopacket;
use flowgauge_peers::programs::{PrintedCount, Program, Setting, find, in_path};
use flowgauge_peers::report::{Environment, Trace, replace, section};
use flowgauge_peers::{plot, rows, whole};

type Reason = Box<dyn std::error::Error>;

const USAGE: &str = "\
usage: peers [--trace FILE] [--runs N] [--core N|none] [--rows TEXT|none] [--python PROGRAM]
             [--also NAME=COMMAND]... [--write]

Runs the library benches of flowgauge, of flowscope, of netflow_parser and, if Go is installed, of gopacket. With
--trace, also runs each installed program on the whole file.

  --trace FILE         read FILE with all programs: a pcap file of Ethernet frames, such as one from `compose`
  --runs N             run each program N times (default 5; programs that take longer than 3 s run 3 times)
  --core N             pin programs to core N (default 0); `none` lets them use all cores
  --rows TEXT          run only library benches with TEXT in their id; `none` runs no library benches
  --python PROGRAM     Python interpreter with nfstream (default python3)
  --also NAME=COMMAND  run another command on all cores; {trace} is replaced by the path of the file, {flowgauge}
                       by the path of the flowgauge command
  --write              write tables and plot to docs/performance.md and docs/performance.svg
";

struct Options {
    trace: Option<PathBuf>,
    run_count: usize,
    core: Option<usize>,
    rows: Option<String>,
    python: String,
    also: Vec<(String, String)>,
    is_written: bool,
}

fn options() -> Result<Option<Options>, Reason> {
    let mut options = Options {
        trace: None,
        run_count: 5,
        core: Some(0),
        rows: Some(String::new()),
        python: "python3".to_owned(),
        also: Vec::new(),
        is_written: false,
    };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} requires a value"));
        match argument.as_str() {
            "--trace" => options.trace = Some(fs::canonicalize(value()?)?),
            "--runs" => options.run_count = value()?.parse::<usize>()?.max(1),
            "--core" => {
                options.core = Some(value()?).filter(|it| it != "none").map(|it| it.parse()).transpose()?
            }
            "--rows" => options.rows = Some(value()?).filter(|it| it != "none"),
            "--python" => options.python = value()?,
            "--also" => {
                let value = value()?;
                let (name, command) = value.split_once('=').ok_or("--also requires NAME=COMMAND")?;
                options.also.push((name.to_owned(), command.to_owned()));
            }
            "--write" => options.is_written = true,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown argument {other}\n\n{USAGE}").into()),
        }
    }
    Ok(Some(options))
}

/// A temporary folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Reason> {
        let path = env::temp_dir().join(format!("flowgauge-peers-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn build(manifest: &Path, arguments: &[&str]) -> Result<(), Reason> {
    let cargo = env::var("CARGO").unwrap_or("cargo".to_owned());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--locked", "--manifest-path"])
        .arg(manifest)
        .args(arguments)
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("cannot build {}", manifest.display()).into()) }
}

/// Counts the frames and flows of the trace, which also loads it into the page cache.
fn survey(path: &Path) -> Result<Trace, Reason> {
    let mut pipeline = Pipeline::builder().build(())?;
    let stats = pipeline.run(&mut FileSource::open(path)?, &RunOptions::default())?.stats;
    let flow_count = stats.tracker.started_count;
    Ok(Trace { frame_count: stats.frame_count, file_len: fs::metadata(path)?.len(), flow_count })
}

fn library(filter: &str, folder: &Path) -> Vec<flowgauge_peers::interleave::RowResult> {
    let gopacket = match Gopacket::build(folder) {
        Ok(gopacket) => Some(gopacket),
        Err(error) => {
            eprintln!("gopacket is not measured ({error}); install Go from https://go.dev/dl");
            None
        }
    };
    let mut results = Vec::new();
    for (id, make) in rows::all().into_iter().filter(|(id, _)| id.contains(filter)) {
        let result = make(gopacket.as_ref()).measure(id);
        let entries = result.entries.iter();
        let entries = entries.map(|(name, it)| format!("{name} {:.1} ns ±{:.0} %", it.median, it.percent()));
        eprintln!("{}: {}", result.id, entries.collect::<Vec<_>>().join(", "));
        results.push(result);
    }
    results
}

fn also(options: &Options, setting: &Setting) -> Vec<Program> {
    let filled = |word: &str| {
        let word = word.replace("{trace}", &setting.trace.display().to_string());
        word.replace("{flowgauge}", &setting.flowgauge.display().to_string())
    };
    let program = |(name, command): &(String, String)| Program {
        name: name.clone(),
        does: "given by --also",
        command: command.split_whitespace().map(filled).collect(),
        printed_count: PrintedCount::None,
        is_export: false,
        is_on_all_cores: true,
    };
    options.also.iter().map(program).collect()
}

fn run() -> Result<(), Reason> {
    let Some(options) = options()? else {
        print!("{USAGE}");
        return Ok(());
    };
    let folder = Folder::new()?;
    let results = options.rows.as_ref().map_or_else(Vec::new, |filter| library(filter, &folder.0));
    let mut files = None;
    let mut missing = Vec::new();
    if let Some(trace) = &options.trace {
        build(&repository().join("Cargo.toml"), &["--package", "flowgauge-cli"])?;
        build(&repository().join("benches/peers/Cargo.toml"), &["--bins"])?;
        // softflowd exports to this port; the records are not read.
        let collector = UdpSocket::bind(("127.0.0.1", 0))?;
        let setting = Setting {
            trace: trace.clone(),
            folder: folder.0.clone(),
            netflow_port: collector.local_addr()?.port(),
            python: options.python.clone(),
            flowgauge: repository().join("target/release/flowgauge"),
            libraries: repository().join("benches/peers/target/release"),
        };
        let (mut programs, not_found) = find(&setting);
        for (name, install) in &not_found {
            eprintln!("{name} is not installed and not measured; to install it: {install}");
        }
        if options.core.is_some() && in_path("taskset").is_none() {
            eprintln!("programs use all cores because taskset is not installed: apt install util-linux");
        }
        programs.extend(also(&options, &setting));
        missing = not_found;
        let survey = survey(trace)?;
        let outcomes = whole::run(programs, options.run_count, options.core, survey.frame_count, &folder.0)?;
        files = Some((survey, outcomes));
    }
    let environment = Environment::now();
    let parts = files.as_ref().map(|(trace, outcomes)| (trace, &outcomes[..]));
    let text = section(&environment, &results, parts, &missing);
    println!("{text}");
    if options.is_written {
        let docs = repository().join("docs");
        replace(&docs.join("performance.md"), &text)?;
        if let Some((trace, outcomes)) = parts {
            let cores = if options.core.is_some() { ", one core" } else { "" };
            let caption = format!("Million frames per second{cores}; {}", environment.date);
            fs::write(docs.join("performance.svg"), plot::bars(trace.frame_count, outcomes, &caption))?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("peers: {reason}");
            ExitCode::FAILURE
        }
    }
}
