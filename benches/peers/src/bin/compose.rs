//! Composes one large trace from many captures.

use std::env;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use flowgauge_peers::compose::{Captures, Options};

const USAGE: &str = "\
usage: compose OUT.pcap CAPTURE|FOLDER... [--copies N] [--packets N] [--span SECONDS] [--seed N]

Writes the Ethernet frames of all captures (pcap or pcapng; folders include their subfolders) to one pcap file in
time order. Each capture begins at a random time within the span; packets after the end of the span are omitted.

  --copies N      include each capture N times, each time between other hosts (default 1)
  --packets N     end the trace after N packets
  --span SECONDS  duration of the trace (default 120)
  --seed N        seed of the random start times (default 1)
";

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut arguments = env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let name = argument.to_string_lossy().into_owned();
        if !name.starts_with("--") {
            paths.push(argument.into());
            continue;
        }
        let value = arguments.next().ok_or(USAGE)?;
        let value = value.to_str().ok_or(USAGE)?;
        match name.as_str() {
            "--copies" => options.copy_count = value.parse()?,
            "--packets" => options.packet_count_max = value.parse()?,
            "--span" => options.span = Duration::from_secs(value.parse()?),
            "--seed" => options.seed = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    let [out, inputs @ ..] = &paths[..] else { return Err(USAGE.into()) };
    if inputs.is_empty() {
        return Err(USAGE.into());
    }
    let mut captures = Captures::default();
    for input in inputs {
        captures.add(input).map_err(|error| format!("{}: {error}", input.display()))?;
    }
    let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    let (packet_count, octet_count) = captures.write(&options, &mut file)?;
    file.flush()?;
    println!(
        "{packet_count} packets, {octet_count} octets, {} captures, copies of each: {}; {} files skipped",
        captures.len(),
        options.copy_count,
        captures.skipped.len()
    );
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compose: {error}");
            ExitCode::FAILURE
        }
    }
}
