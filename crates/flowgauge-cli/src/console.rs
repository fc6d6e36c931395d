//! Messages on standard error, and failures of commands.

use std::fmt::Display;
use std::io::{self, Write as _};

use flowgauge::{ConfigError, ConfigProblem};

use crate::escape;
use crate::standard::{StandardOutput, is_missing};

/// Reports problems on standard error, one per line, and records whether there were any.
#[derive(Debug, Default)]
pub(crate) struct Console {
    problem_count: u64,
    /// The first problem.
    first: Option<String>,
    is_silent: bool,
}

impl Console {
    /// Creates a console that prints nothing.
    pub(crate) const fn silent() -> Self {
        Self { problem_count: 0, first: None, is_silent: true }
    }

    /// Reports a problem, which also affects the exit status.
    pub(crate) fn problem(&mut self, message: impl Display) {
        self.problem_count += 1;
        if self.first.is_none() {
            self.first = Some(message.to_string());
        }
        if self.is_silent {
            return;
        }
        write_line(&format!("flowgauge: {message}"));
    }

    /// Returns the first problem, and the number of the others.
    pub(crate) fn first_problem(&self) -> Option<(&str, u64)> {
        Some((self.first.as_deref()?, self.problem_count - 1))
    }

    /// Reports a problem with the command line, which may have several lines.
    pub(crate) fn usage(&mut self, message: &str) {
        self.problem_count += 1;
        for (number, line) in message.lines().enumerate() {
            write_line(&format!("{}{line}", if number == 0 { "flowgauge: " } else { "" }));
        }
    }

    /// Returns whether no problem was reported.
    pub(crate) const fn is_clean(&self) -> bool {
        self.problem_count == 0
    }
}

/// Writes a line to standard error, and ignores errors of writing. Control characters, which file names and names in
/// captures may contain, are escaped, because they must not reach the terminal.
pub(crate) fn write_line(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape::text(line));
}

/// Reason why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Standard output was closed by its reader.
    ClosedPipe,
    /// The arguments of the command line are invalid; contains the message.
    Usage(String),
    /// Any other failure; contains the message.
    Other(String),
}

/// Destination of output lines.
pub(crate) type Out = Box<dyn io::Write + Send>;

/// Returns standard output with a buffer.
pub(crate) fn stdout() -> Out {
    Box::new(io::BufWriter::with_capacity(1 << 16, StandardOutput))
}

/// Returns whether standard output is a pipe or a socket that its reader has closed. Otherwise, only the next write would
/// notice it.
#[cfg(unix)]
pub(crate) fn is_stdout_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let outcome = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    let is_closed = |polled: &PollFd<'_>| polled.revents().intersects(PollFlags::ERR | PollFlags::HUP);
    outcome.is_ok() && polled.iter().any(is_closed)
}

/// Returns `false`: only the next write notices that the reader of standard output has closed it.
#[cfg(not(unix))]
pub(crate) const fn is_stdout_closed() -> bool {
    false
}

impl From<io::Error> for Failure {
    /// Converts an I/O error of standard output to a failure.
    fn from(error: io::Error) -> Self {
        Self::writing("standard output", &error)
    }
}

impl From<ConfigError> for Failure {
    /// Converts a configuration error to a failure that names the option for the invalid field.
    fn from(error: ConfigError) -> Self {
        let ConfigError { layer, field, problem, .. } = error;
        Self::Usage(match (field, problem) {
            (_, ConfigProblem::TooSmall { needed_bytes }) => format!(
                "--memory: the memory limit is too small: the layer `{layer}` needs at least {needed_bytes} bytes, in addition \
                 to all other layers and shards"
            ),
            ("flow_count_max", _) => format!("--max-flows: {error}"),
            _ => error.to_string(),
        })
    }
}

impl Failure {
    /// Creates the failure for an I/O error of the output `name`.
    pub(crate) fn writing(name: impl Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            // The text of the error names standard output.
            io::ErrorKind::NotConnected if is_missing() => Self::Other(error.to_string()),
            _ => Self::Other(format!("{name}: {error}")),
        }
    }
}
