//! Interleaved measurement of programs that each read a whole file several times.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::programs::{PrintedCount, Program, in_path};

/// Programs that take longer than this run at most [`SLOW_RUN_COUNT`] times.
const SLOW_SECONDS: f64 = 3.0;

const SLOW_RUN_COUNT: usize = 3;

/// Results of a program.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The program.
    pub program: Program,
    /// Duration of each run, in order.
    pub seconds: Vec<f64>,
    /// Number of packets that the program printed.
    pub packet_count: Option<u64>,
}

impl Outcome {
    /// Median duration of the runs.
    #[must_use]
    pub fn median(&self) -> f64 {
        crate::interleave::Spread::of(self.seconds.clone()).median
    }

    /// Durations of the shortest and of the longest run.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let fold = |choose: fn(f64, f64) -> f64| self.seconds.iter().copied().reduce(choose).unwrap_or(0.0);
        (fold(f64::min), fold(f64::max))
    }
}

/// Runs each program `run_count` times in rounds; each round begins with another program.
///
/// # Errors
///
/// If a program cannot be run, fails, or counts a number of packets that differs from the file. The error names the
/// program.
pub fn run(
    programs: Vec<Program>,
    run_count: usize,
    core: Option<usize>,
    packet_count: u64,
    folder: &Path,
) -> io::Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = programs
        .into_iter()
        .map(|program| Outcome { program, seconds: Vec::new(), packet_count: None })
        .collect();
    let count = outcomes.len();
    for round in 0..run_count {
        for turn in 0..count {
            let outcome = &mut outcomes[(round + turn) % count];
            let is_slow = outcome.seconds.first().is_some_and(|seconds| *seconds > SLOW_SECONDS);
            if is_slow && outcome.seconds.len() >= SLOW_RUN_COUNT {
                continue;
            }
            let (seconds, text) = once(&outcome.program, core, folder)?;
            outcome.seconds.push(seconds);
            outcome.packet_count = printed_count(&outcome.program, packet_count, &text)?;
            eprintln!("round {}: {:8.3} s  {}", round + 1, seconds, outcome.program.name);
        }
    }
    Ok(outcomes)
}

/// Runs a program once and returns the duration and the output.
fn once(program: &Program, core: Option<usize>, folder: &Path) -> io::Result<(f64, String)> {
    let printed = folder.join("printed");
    let out = File::create(&printed)?;
    let pinned = core.filter(|_| !program.is_on_all_cores).zip(in_path("taskset"));
    let mut command = match pinned {
        Some((core, taskset)) => {
            let mut command = Command::new(taskset);
            command.args(["-c", &core.to_string(), &program.command[0]]);
            command
        }
        None => Command::new(&program.command[0]),
    };
    command.args(&program.command[1..]).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let started = Instant::now();
    let status = command.status()?;
    let seconds = started.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&fs::read(&printed)?).into_owned();
    if !status.success() {
        return Err(io::Error::other(format!("{}: {status}\n{text}", program.name)));
    }
    Ok((seconds, text))
}

fn printed_count(program: &Program, packet_count: u64, text: &str) -> io::Result<Option<u64>> {
    let fail = |what: String| Err(io::Error::other(format!("{}: {what}", program.name)));
    match program.printed_count {
        PrintedCount::None => Ok(None),
        PrintedCount::All(count) => match count(text) {
            Some(found) if found == packet_count => Ok(Some(found)),
            found => fail(format!("counted {found:?} of {packet_count} packets")),
        },
        PrintedCount::OfFlows(count) => match count(text) {
            Some(found) if found > 0 && found <= packet_count => Ok(Some(found)),
            found => {
                fail(format!("counted {found:?} packets in flows, but the file has {packet_count} packets"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(text: &str, printed_count: PrintedCount) -> Program {
        let command = ["echo", text].map(str::to_owned).into();
        Program {
            name: text.to_owned(),
            does: "",
            command,
            printed_count,
            is_export: false,
            is_on_all_cores: true,
        }
    }

    #[test]
    fn a_program_that_fails_or_prints_a_wrong_count_is_an_error() {
        let folder = std::env::temp_dir().join(format!("flowgauge-peers-test-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let count: crate::programs::Count = |text| text.trim().parse().ok();
        let run = |program| run(vec![program], 2, None, 7, &folder);
        let outcomes = run(echo("7", PrintedCount::All(count))).expect("the program counts all packets");
        assert_eq!((outcomes[0].seconds.len(), outcomes[0].packet_count), (2, Some(7)));
        assert!(run(echo("6", PrintedCount::All(count))).is_err());
        assert!(run(echo("none", PrintedCount::All(count))).is_err());
        assert_eq!(
            run(echo("6", PrintedCount::OfFlows(count))).expect("the program counts some packets")[0]
                .packet_count,
            Some(6)
        );
        assert!(run(echo("8", PrintedCount::OfFlows(count))).is_err());
        let mut failing = echo("7", PrintedCount::None);
        failing.command = vec!["false".to_owned()];
        assert!(run(failing).is_err());
        fs::remove_dir_all(&folder).expect("the folder exists");
    }
}
