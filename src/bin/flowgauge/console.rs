//! What is said on standard error, and how a command can fail.

use std::fmt::Display;
use std::io::{self, Write as _};

use crate::escape;

/// Says problems, one line each, and remembers that there were any.
#[derive(Debug, Default)]
pub(crate) struct Console {
    problem_count: u64,
    is_silent: bool,
}

impl Console {
    /// Keeps what went wrong to itself.
    pub(crate) const fn silent() -> Self {
        Self { problem_count: 0, is_silent: true }
    }

    /// Says what went wrong; the exit status will tell it too.
    pub(crate) fn problem(&mut self, what: impl Display) {
        self.problem_count += 1;
        if self.is_silent {
            return;
        }
        say(&format!("flowgauge: {what}"));
    }

    /// Says what is wrong with the command line, on several lines if it has several.
    pub(crate) fn usage(&mut self, what: &str) {
        self.problem_count += 1;
        for (number, line) in what.lines().enumerate() {
            say(&format!("{}{line}", if number == 0 { "flowgauge: " } else { "" }));
        }
    }

    /// Whether nothing went wrong.
    pub(crate) const fn is_clean(&self) -> bool {
        self.problem_count == 0
    }
}

/// Writes a line to standard error. If nobody listens there, nobody is told. File names and names in captures may hold
/// anything; the terminal must not obey it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape::text(line));
}

/// Why a command ends before its time.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Standard output was closed by its reader.
    ClosedPipe,
    /// What was asked for cannot be.
    Usage(String),
    /// Anything else.
    Other(String),
}

impl From<io::Error> for Failure {
    /// Of standard output.
    fn from(error: io::Error) -> Self {
        Self::writing("standard output", &error)
    }
}

impl Failure {
    /// Of any output.
    pub(crate) fn writing(name: impl Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Other(format!("{name}: {error}"))
        }
    }
}
