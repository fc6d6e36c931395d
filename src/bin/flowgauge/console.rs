//! What is said on standard error, and how a command can fail.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

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
        say(&format!("flowgauge: {}", printable(&what.to_string())));
    }

    /// Whether nothing went wrong.
    pub(crate) const fn is_clean(&self) -> bool {
        self.problem_count == 0
    }
}

/// Writes a line to standard error. If nobody listens there, nobody is told.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// File names may hold anything; the terminal shall not obey it. Line ends are ours.
fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() && c != '\n' {
            let _ = write!(out, "{}", c.escape_debug());
        } else {
            out.push(c);
        }
        out
    })
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
    /// Of standard output, which is where all but slices go.
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
