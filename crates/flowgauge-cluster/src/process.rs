//! What the commands of the scheduler and the executor have in common: options, log, signals, failures.

use std::fmt;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use clap::ValueEnum;
use log::{LevelFilter, Log, Metadata, Record};
use tokio::runtime::Runtime;

/// Stack of threads in octets: plans are trees, which are walked by recursion.
const STACK_LEN: usize = 8 << 20;

/// A failure that ends a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessError(String);

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProcessError {}

impl ProcessError {
    pub(crate) fn new(subject: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self(format!("{subject}: {problem}"))
    }
}

/// What is logged to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Failures, and damage of captures.
    #[default]
    Warn,
    /// Queries and tasks too.
    Info,
    /// All that Ballista logs.
    Debug,
}

/// Writes lines to standard error.
struct Lines;

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let time = humantime::format_rfc3339_millis(SystemTime::now());
            let text = printable(&record.args().to_string());
            // Nobody may read it.
            let _ = writeln!(io::stderr(), "{time} {} {}: {text}", record.level(), record.target());
        }
    }

    fn flush(&self) {}
}

/// Returns a text that cannot control a terminal; lines remain.
fn printable(text: &str) -> String {
    let escape = |letter: char| match letter {
        '\n' | '\t' => letter.to_string(),
        letter if letter.is_control() => letter.escape_default().to_string(),
        letter => letter.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Writes the log of this process to standard error.
pub(crate) fn log_to_stderr(level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::Error,
        LogLevel::Warn => LevelFilter::Warn,
        LogLevel::Info => LevelFilter::Info,
        LogLevel::Debug => LevelFilter::Debug,
    };
    // A process that has another log keeps it.
    if log::set_boxed_logger(Box::new(Lines)).is_ok() {
        log::set_max_level(level);
    }
}

/// Writes a line about the state of the process to standard output.
pub(crate) fn announce(line: &str) {
    let mut out = io::stdout().lock();
    // Nobody may read it.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Creates the threads of a process.
pub(crate) fn runtime() -> Result<Runtime, ProcessError> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads
        .enable_all()
        .thread_stack_size(STACK_LEN)
        .build()
        .map_err(|error| ProcessError::new("threads cannot be created", error))
}

/// Waits for SIGINT or SIGTERM.
///
/// # Errors
///
/// Returns an error if the process cannot receive signals.
pub(crate) async fn signal() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            received = tokio::signal::ctrl_c() => received,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await
    }
}

/// Returns a port at which a process can listen: the port itself, or for zero any free one.
pub(crate) fn free_port(address: IpAddr, port: u16) -> Result<u16, ProcessError> {
    let address = SocketAddr::new(address, port);
    let port = TcpListener::bind(address).and_then(|listener| Ok(listener.local_addr()?.port()));
    port.map_err(|error| ProcessError::new(address, error))
}

/// Parses a number of octets with or without a unit: kB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let size = text.parse::<ByteSize>().ok().map(|size| size.as_u64());
    size.filter(|size| *size > 0)
        .ok_or_else(|| "must be a size greater than zero, such as 256MiB, 1GB or 1000000".to_owned())
}

/// Parses a duration of whole seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<u64, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be longer than zero".to_owned()),
        Ok(duration) if duration.subsec_nanos() == 0 => Ok(duration.as_secs()),
        Ok(_) => Err("must be a number of whole seconds".to_owned()),
        Err(error) => Err(format!("must be a time with a unit, such as 30s or 5m: {error}")),
    }
}

/// Returns the exit status of a process, and writes its failure.
pub fn exit(name: &str, outcome: Result<(), ProcessError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may read it.
            let _ = writeln!(io::stderr(), "{name}: {}", printable(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("2 GB"), Ok(2_000_000_000));
        assert_eq!(parse_seconds("2m"), Ok(120));
        for text in ["", "0", "-1", "1XB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        for text in ["", "0s", "5", "1500ms"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn controls_are_escaped() {
        assert_eq!(printable("a\x1b[2J\tb\n"), "a\\u{1b}[2J\tb\n");
    }
}
