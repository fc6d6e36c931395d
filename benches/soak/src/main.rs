//! Soak test: loops over captures at full speed through all layers and checks that resident memory does not grow.

#[cfg(test)]
#[path = "../../cases/mod.rs"]
mod cases;
mod graph;
#[path = "../../peers/src/readdress.rs"]
mod readdress;
mod samples;
mod soak;
mod trace;

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use samples::verdict;
use soak::soak;
use trace::Trace;

const USAGE: &str = "\
usage: soak CAPTURE|FOLDER... [--minutes N] [--span SECONDS] [--csv FILE] [--svg FILE]

Loops over all frames of the captures, each pass between other addresses and at later times, through duplicate
removal, checksum verification, filter, decapsulation, defragmentation, flow tracking, TCP reassembly and all
session parsers. Fails if resident memory grows between the second third of the run and the last.

  --minutes N     duration of the run (default 30; fractions are allowed)
  --span SECONDS  capture time of one pass; longer captures are compressed to it (default 10)
  --csv FILE      write one row per sample
  --svg FILE      draw resident memory and packets per second
";

struct Options {
    captures: Vec<PathBuf>,
    duration: Duration,
    span: Duration,
    csv: Option<PathBuf>,
    svg: Option<PathBuf>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        captures: Vec::new(),
        duration: Duration::from_secs(30 * 60),
        span: Duration::from_secs(10),
        csv: None,
        svg: None,
    };
    let mut arguments = env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let name = argument.to_string_lossy().into_owned();
        if !name.starts_with("--") {
            options.captures.push(argument.into());
            continue;
        }
        let value = arguments.next().ok_or(USAGE)?;
        let number = || value.to_str().and_then(|text| text.parse::<f64>().ok()).ok_or(USAGE);
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).map_err(|_| USAGE);
        match name.as_str() {
            "--minutes" => options.duration = seconds(number()? * 60.0)?,
            "--span" => options.span = seconds(number()?)?,
            "--csv" => options.csv = Some(value.into()),
            "--svg" => options.svg = Some(value.into()),
            _ => return Err(USAGE.into()),
        }
    }
    if options.captures.is_empty() || options.span.is_zero() {
        return Err(USAGE.into());
    }
    Ok(options)
}

fn run() -> Result<bool, Box<dyn Error>> {
    let options = options()?;
    let mut trace = Trace::new(options.span);
    for capture in &options.captures {
        trace.add(capture).map_err(|error| format!("{}: {error}", capture.display()))?;
    }
    let trace = trace.sorted();
    println!(
        "{} frames of {} captures, {} octets; {} files skipped",
        trace.len(),
        trace.capture_count,
        trace.octet_count(),
        trace.skipped_count
    );
    if trace.len() == 0 {
        return Err("the captures contain no frames".into());
    }
    let samples = soak(&trace, options.duration)?;
    if let Some(path) = &options.csv {
        fs::write(path, samples::csv(&samples))?;
    }
    if let Some(path) = &options.svg {
        fs::write(path, graph::svg(&samples))?;
    }
    let verdict =
        verdict(&samples).ok_or("the run was too short for a verdict, which requires at least 6 samples")?;
    println!("{verdict}");
    Ok(verdict.is_flat())
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}
