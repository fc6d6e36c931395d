//! Counts the instructions and allocations of the hot path of each layer and compares them with a committed reference.

use std::env;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::thread;

use flowgauge_instructions::{
    Change, Comparison, EXEMPTIONS, Environment, FACTOR_MAX, Fault, Figures, PERCENT_MAX, Run, work_rows,
};

type Reason = Box<dyn std::error::Error>;

const USAGE: &str = "\
usage: instructions [--update] [--strict] [--reference FILE]

Runs the benches under Callgrind and DHAT and compares the results with FILE (default: reference.json of this
package). Fails if a bench has over 1 % more instructions or at least one more allocation than in FILE, or if the
run or FILE does not contain it. Also fails if an expensive input (`work/...`) takes more than 8 times the
instructions of the benign input of the same parser or layer.

  --update          print the changes and write FILE
  --strict          fail also if compiler, C library, valgrind or processor differ from those of FILE;
                    without this option, a different environment means that more instructions do not fail
  --reference FILE  use another reference, such as one for your own compiler

Requires valgrind, and gungraun-runner in the version of the library:
    cargo install --locked gungraun-runner --version =0.20.0
";

struct Options {
    is_update: bool,
    is_strict: bool,
    reference: PathBuf,
}

fn options() -> Result<Option<Options>, Reason> {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference.json");
    let mut options = Options { is_update: false, is_strict: false, reference };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--update" => options.is_update = true,
            "--strict" => options.is_strict = true,
            "--reference" => options.reference = arguments.next().ok_or("--reference needs a file")?.into(),
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown argument {other}\n\n{USAGE}").into()),
        }
    }
    Ok(Some(options))
}

/// Returns the first line of the version message of a program.
fn version(program: &str) -> Result<String, Reason> {
    let output = Command::new(program).arg("--version").output();
    let output = output
        .map_err(|error| format!("cannot run {program} ({error}); see --help for the required programs"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn environment() -> Result<Environment, Reason> {
    // The C library selects copy routines by processor.
    #[cfg(target_arch = "x86_64")]
    let processor = if is_x86_feature_detected!("avx2") { "x86_64 with avx2" } else { "x86_64" };
    #[cfg(not(target_arch = "x86_64"))]
    let processor = env::consts::ARCH;
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    let rustc = env::var("RUSTC").unwrap_or("rustc".to_owned());
    Ok(Environment::from([
        ("libc".to_owned(), version("ldd")?),
        ("processor".to_owned(), processor.to_owned()),
        ("rustc".to_owned(), format!("{} {flags}", version(&rustc)?).trim_end().to_owned()),
        ("valgrind".to_owned(), version("valgrind")?),
    ]))
}

/// Returns an error with what a process wrote if it failed.
fn succeeded(output: &Output) -> Result<(), Reason> {
    if output.status.success() {
        return Ok(());
    }
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let status = output.status;
    Err(format!("{stdout}\n{stderr}\nthe benches failed ({status}); see --help for the required programs")
        .into())
}

/// Runs the benches and reads their summaries.
fn measure() -> Result<Run, Reason> {
    let mut run = Run { environment: environment()?, ..Run::default() };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A separate folder, removed first, so that results of earlier runs are not read.
    let home = package.join("../../target/instructions-run");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    let bench = |arguments: &[&str]| {
        Command::new(env::var("CARGO").unwrap_or("cargo".to_owned()))
            .args(["bench", "--locked", "--profile", "instructions", "--manifest-path"])
            .arg(package.join("Cargo.toml"))
            .args(arguments)
            .env("GUNGRAUN_HOME", &home)
            .env("GUNGRAUN_SAVE_SUMMARY", "json")
            .output()
    };
    succeeded(&bench(&["--bench", "layers", "--bench", "work", "--no-run"])?)?;
    // Counts do not depend on the load, and valgrind uses one processor.
    thread::scope(|scope| {
        let work = scope.spawn(|| bench(&["--bench", "work"]));
        let layers = bench(&["--bench", "layers"])?;
        let work = work.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        [layers, work].iter().try_for_each(succeeded)
    })?;
    run.read_summaries(&home)?;
    if run.benches.is_empty() {
        return Err(format!("no summaries in {}", home.display()).into());
    }
    Ok(run)
}

/// Prints each row, and returns the lines of those that failed.
fn print(comparison: &Comparison, is_update: bool) -> Vec<String> {
    let mut failures = Vec::new();
    println!("{:42} {:>12} {:>12} {:>8}  {:>11}", "bench", "reference", "instructions", "", "allocations");
    for (id, before, after, change) in &comparison.rows {
        let number = |figures: &Option<Figures>| {
            figures.map_or("-".to_owned(), |figures| figures.instructions.to_string())
        };
        let (percent, allocations) = match (before, after) {
            (Some(before), Some(after)) => {
                let ratio = after.instructions as f64 / before.instructions.max(1) as f64;
                let allocations = if before.allocations == after.allocations {
                    after.allocations.to_string()
                } else {
                    format!("{} -> {}", before.allocations, after.allocations)
                };
                (format!("{:+.2} %", (ratio - 1.0) * 100.0), allocations)
            }
            _ => (String::new(), String::new()),
        };
        let verdict = match change {
            Change::Same => "",
            _ if is_update => "changes",
            Change::Less if !comparison.environment_changes.is_empty() => "fewer",
            Change::Less => "fewer: update the reference",
            Change::MoreInstructions if comparison.is_failure(*change) => "FAILED: more instructions",
            Change::MoreInstructions => "more instructions",
            Change::MoreAllocations => "FAILED: more allocations",
            Change::New => "FAILED: not in the reference",
            Change::Missing => "FAILED: not run",
        };
        let (before, after) = (number(before), number(after));
        let line = format!("{id:42} {before:>12} {after:>12} {percent:>8}  {allocations:>11}  {verdict}");
        println!("{line}");
        if comparison.is_failure(*change) {
            failures.push(line);
        }
    }
    failures
}

/// Prints the ratio of each row about work per octet to its benign row, and returns the lines of those that failed.
fn print_work(run: &Run) -> Vec<String> {
    println!("\n{:50} {:>12} {:>8}", "work per octet", "times benign", "limit");
    let mut failures = Vec::new();
    for row in work_rows(run, EXEMPTIONS) {
        let factor = row.factor.map_or("-".to_owned(), |factor| format!("{factor:.2}"));
        let verdict = match row.fault {
            None => row.reason.map(|reason| format!("exempted: {reason}")).unwrap_or_default(),
            Some(Fault::TooExpensive) => "FAILED: above the limit".to_owned(),
            Some(Fault::NoBenign) => "FAILED: no benign row".to_owned(),
            Some(Fault::NoOther) => "FAILED: no row to compare with the benign one".to_owned(),
            Some(Fault::NeedlessExemption) => format!("FAILED: exempted, but not above {FACTOR_MAX} times"),
            Some(Fault::Missing) => "FAILED: exempted, but not run".to_owned(),
        };
        let line = format!("{:50} {factor:>12} {:>8}  {verdict}", row.id, row.factor_max);
        println!("{line}");
        if row.fault.is_some() {
            failures.push(line);
        }
    }
    failures
}

fn run() -> Result<ExitCode, Reason> {
    let Some(options) = options()? else {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let path = options.reference.display();
    let reference = match fs::read_to_string(&options.reference) {
        Ok(text) => Run::from_json(&text).map_err(|reason| format!("{path}: {reason}"))?,
        Err(_) if options.is_update => Run::default(),
        Err(error) => return Err(format!("{path}: {error}").into()),
    };
    let measured = measure()?;
    let comparison = Comparison::new(&reference, &measured);
    let failures = print(&comparison, options.is_update);
    let work_failures = print_work(&measured);
    if !work_failures.is_empty() {
        println!("\n{}", work_failures.join("\n"));
        println!(
            "{} failed: work per octet, regardless of the reference (see src/work.rs)",
            work_failures.len()
        );
    }
    if options.is_update {
        fs::write(&options.reference, measured.to_json())?;
        println!("\nwritten: {path}");
        return Ok(if work_failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    for (name, before, after) in &comparison.environment_changes {
        println!("\nwarning: {name} is `{after}`, but the reference was created with `{before}`");
    }
    if !comparison.environment_changes.is_empty() {
        println!("warning: because of these differences, only allocations can fail, not instructions");
    }
    if !failures.is_empty() {
        println!("\n{}", failures.join("\n"));
        println!(
            "{} failed: over {PERCENT_MAX} % more instructions, more allocations, or a missing bench",
            failures.len()
        );
        println!("if the change is intended, run the same command with --update and commit {path}");
    }
    let is_strict_failure = options.is_strict && !comparison.environment_changes.is_empty();
    Ok(if !failures.is_empty() || !work_failures.is_empty() || is_strict_failure {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn main() -> ExitCode {
    run().unwrap_or_else(|reason| {
        eprintln!("instructions: {reason}");
        ExitCode::from(2)
    })
}
