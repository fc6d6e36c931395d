//! `flowgauge sql`: SQL over captures.

mod args;
mod output;
mod progress;
mod prompt;
mod session;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};

pub(crate) use args::SqlArgs;
use output::Output;
use session::Session;

use crate::console::{Console, Failure};
use crate::formats::check_redirected;
use crate::input::is_stdin;
use crate::interrupt;

/// Maximum length of a file of statements in octets.
const FILE_LEN_MAX: u64 = 16 << 20;

/// Runs the command `flowgauge sql`.
pub(crate) fn run(args: &SqlArgs, console: &mut Console) -> Result<(), Failure> {
    if args.out.is_none() && args.format().is_binary() {
        check_redirected(args.format().name())?;
    }
    let session = Session::new(args)?;
    let outcome = execute(args, &session, console);
    session.end();
    outcome
}

fn execute(args: &SqlArgs, session: &Session, console: &mut Console) -> Result<(), Failure> {
    let has_terminal = io::stdin().is_terminal();
    let text = match (&args.statements, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) if !is_stdin(path) => {
            let file = File::open(path).map_err(|error| missing(path, &error))?;
            read(session, path.clone(), file)?
        }
        (None, None) if has_terminal && (args.out.is_some() || !io::stdout().is_terminal()) => {
            let problem =
                "a prompt writes to the terminal; specify a statement or --file to redirect its result";
            return Err(Failure::Usage(problem.to_owned()));
        }
        (None, None) if has_terminal => return prompt::run(args, session),
        (None, _) => read(session, PathBuf::from("-"), io::stdin())?,
    };
    let statements = session.parse(&text)?;
    let mut output = Output::open(args)?;
    for statement in statements {
        session.run(statement, &mut output, console)?;
        if interrupt::stop().is_stopped() {
            return Ok(());
        }
    }
    output.commit()
}

/// Returns the failure for a file of statements that cannot be opened.
fn missing(path: &Path, error: &io::Error) -> Failure {
    let name = path.to_string_lossy();
    let is_format = ["table", "ndjson", "csv", "parquet", "arrow"].contains(&&*name);
    let hint = if is_format { format!("; the format is --format {name}") } else { String::new() };
    Failure::Other(format!("{name}: {error}{hint}"))
}

/// Reads statements; an empty text if a signal is received.
fn read(session: &Session, path: PathBuf, file: impl Read + Send + 'static) -> Result<String, Failure> {
    let problem =
        move |problem: &dyn std::fmt::Display| Failure::Other(format!("{}: {problem}", path.display()));
    let text = move || {
        let mut text = String::new();
        file.take(FILE_LEN_MAX + 1).read_to_string(&mut text).map(|_| text)
    };
    let reading = async { tokio::task::spawn_blocking(text).await };
    match session.until_signal(reading, || Ok(()))? {
        None => Ok(String::new()),
        Some(Ok(Ok(text))) if text.len() as u64 > FILE_LEN_MAX => {
            Err(problem(&format_args!("statements have more than {FILE_LEN_MAX} octets")))
        }
        Some(Ok(text)) => text.map_err(|error| problem(&error)),
        Some(Err(error)) => Err(problem(&error)),
    }
}
