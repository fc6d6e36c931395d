//! The prompt of `flowgauge sql`.

use std::borrow::Cow;
use std::fs;
#[cfg(unix)]
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
#[cfg(unix)]
use std::thread;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use flowgauge::FlowRecord;
use flowgauge::row::RowType as _;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::args::SqlArgs;
use super::output::Output;
use super::session::Session;
#[cfg(unix)]
use super::session::TICK;
use crate::console::{Console, Failure, write_line};
use crate::{escape, interrupt};

/// Number of statements that the history keeps.
const HISTORY_COUNT_MAX: usize = 1000;

/// Keywords that are completed.
const KEYWORDS: [&str; 56] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COPY",
    "CREATE",
    "CROSS",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "RIGHT",
    "SELECT",
    "SHOW",
    "TABLE",
    "THEN",
    "TRUE",
    "UNION",
    "USING",
    "VIEW",
    "WHEN",
    "WHERE",
];

/// Tables of captures, as they are called.
const TABLES: [&str; 5] = ["findings('", "flows('", "messages('", "packets('", "transactions('"];

const HELP: &str = r"A statement ends with ; and may have several lines.

  SELECT application, count(*) FROM flows('capture.pcap') GROUP BY application;
  SELECT * FROM packets('*.pcap') LIMIT 10;
  SELECT * FROM messages('dns.response', 'capture.pcap');
  SELECT * FROM transactions('http', 'capture.pcap');
  SELECT finding, evidence, command FROM findings('*.pcap');
  DESCRIBE 'flows.parquet';  EXPLAIN SELECT ...;  SHOW FUNCTIONS;

  Tab      completes keywords, functions, columns of flows, and files within quotes
  Ctrl-C   ends a query or discards a statement
  \?       this help
  \q       ends the program, as quit, exit and Ctrl-D do";

/// Reads statements and runs each until the user ends the program. A statement that fails does not end it.
pub(super) fn run(args: &SqlArgs, session: &Session) -> Result<(), Failure> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_COUNT_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(|error| failure(&error))?
        .history_ignore_space(true)
        .build();
    let mut editor: Editor<Words, FileHistory> =
        Editor::with_config(config).map_err(|error| failure(&error))?;
    editor.set_helper(Some(Words::new(session)));
    let history = history();
    if let Some(history) = &history {
        // There is none at first.
        let _ = editor.load_history(history);
    }
    write_line(r"SQL over captures: \? for help, \q to quit");
    let is_reading = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    end_at_signal(Arc::clone(&is_reading));
    loop {
        is_reading.store(true, Relaxed);
        let line = editor.readline("flowgauge> ");
        is_reading.store(false, Relaxed);
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(failure(&error)),
        };
        let _ = editor.add_history_entry(line.trim());
        if let Some(history) = &history {
            // The prompt works without a history.
            let _ = editor.append_history(history);
        }
        match command(&line) {
            Some(Command::Quit) => return Ok(()),
            Some(Command::Help) => HELP.lines().for_each(write_line),
            Some(Command::Unknown) => {
                write_line(&format!(r"unknown command {}; \? lists the commands", line.trim()));
            }
            None => statements(args, session, &line)?,
        }
        if interrupt::stop().is_stopped() && !interrupt::take_interrupt() {
            return Ok(());
        }
    }
}

/// Runs the statements of a line. Only a failure of standard output is one of the prompt.
fn statements(args: &SqlArgs, session: &Session, line: &str) -> Result<(), Failure> {
    let mut console = Console::default();
    let run = |console: &mut Console| {
        let mut output = Output::open(args)?;
        for statement in session.parse(line)? {
            session.run(statement, &mut output, console)?;
            if interrupt::stop().is_stopped() {
                break;
            }
        }
        output.commit()
    };
    match run(&mut console) {
        Ok(()) => Ok(()),
        Err(Failure::ClosedPipe) => Err(Failure::ClosedPipe),
        Err(Failure::Usage(message) | Failure::Other(message)) => {
            console.usage(&message);
            Ok(())
        }
    }
}

/// Ends the program at a signal while the editor waits for keys, and restores the terminal.
#[cfg(unix)]
fn end_at_signal(is_reading: Arc<AtomicBool>) {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    /// Ends the mode in which a terminal marks what is pasted (DECRST 2004 of xterm).
    const PASTE_END: &[u8] = b"\x1b[?2004l\n";
    let Ok(settings) = tcgetattr(io::stdin()) else { return };
    thread::spawn(move || {
        loop {
            thread::sleep(TICK);
            if let Some(code) = interrupt::code().filter(|_| is_reading.load(Relaxed)) {
                // The terminal may be closed.
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
                let _ = io::stdout().write_all(PASTE_END);
                std::process::exit(code.into());
            }
        }
    });
}

fn failure(error: &ReadlineError) -> Failure {
    Failure::Other(format!("the terminal: {error}"))
}

/// Commands of the prompt that are no statements.
enum Command {
    Quit,
    Help,
    Unknown,
}

/// Returns the command of a line, as in psql and DuckDB.
fn command(line: &str) -> Option<Command> {
    let word = line.trim().trim_end_matches(';').trim_end().to_ascii_lowercase();
    match &*word {
        "\\q" | "quit" | "exit" | ".quit" | ".exit" => Some(Command::Quit),
        "\\?" | "\\h" | "help" | ".help" => Some(Command::Help),
        _ if word.starts_with(['\\', '.']) => Some(Command::Unknown),
        _ => None,
    }
}

/// Returns whether a text is a command or ends with a complete statement.
fn is_complete(text: &str) -> bool {
    if text.trim().is_empty() || command(text).is_some() {
        return true;
    }
    // A text or comment without an end is an error here.
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().unwrap_or_default();
    let last = tokens.iter().rfind(|token| !matches!(token, Token::Whitespace(_)));
    last == Some(&Token::SemiColon)
}

/// Returns the path of the history, and creates its folder; `None` without a home.
fn history() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = state.join("flowgauge");
    fs::create_dir_all(&folder).ok()?;
    // rustyline gives only the owner access to the file.
    Some(folder.join("sql_history"))
}

/// Completes words, and decides whether a statement is complete.
struct Words {
    words: Vec<String>,
    files: FilenameCompleter,
}

impl Words {
    fn new(session: &Session) -> Self {
        let state = session.context().state();
        let functions = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let functions = functions.chain(state.window_functions().keys()).map(|name| format!("{name}("));
        let columns = FlowRecord::columns().iter().map(|column| column.name.to_owned()).collect::<Vec<_>>();
        let known = KEYWORDS.into_iter().chain(TABLES).map(str::to_owned);
        let mut words: Vec<_> = known.chain(columns).chain(functions).collect();
        words.sort_unstable();
        words.dedup();
        Self { words, files: FilenameCompleter::new() }
    }

    /// Returns the words that begin with a prefix, in its case for keywords.
    fn beginning_with(&self, prefix: &str) -> Vec<Pair> {
        let is_lower = prefix.chars().any(char::is_lowercase);
        let matches = self
            .words
            .iter()
            .filter(|word| word.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)));
        let pair = |word: &String| {
            let is_keyword = KEYWORDS.contains(&&**word);
            let word = if is_keyword && is_lower { word.to_lowercase() } else { word.clone() };
            Pair { display: word.clone(), replacement: word }
        };
        matches.map(pair).collect()
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or(line);
        if before.matches('\'').count() % 2 == 1 {
            let (start, mut pairs) = self.files.complete_path(line, pos)?;
            // A name with controls is typed, if at all.
            pairs.retain(|pair| matches!(escape::text(&pair.display), Cow::Borrowed(_)));
            return Ok((start, pairs));
        }
        let is_separator = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let start = before.rfind(is_separator).map_or(0, |index| {
            index + before.get(index..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        match before.get(start..).unwrap_or_default() {
            "" => Ok((pos, Vec::new())),
            prefix => Ok((start, self.beginning_with(prefix))),
        }
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_complete_with_its_semicolon() {
        for text in
            ["", "  ", "SELECT 1;", "SELECT 1; -- one", "\\q", "quit", "SELECT ';';", "select 1;\n", "\\x"]
        {
            assert!(is_complete(text), "{text:?}");
        }
        for text in ["SELECT", "SELECT ';", "SELECT ';'", "SELECT 1 -- ;", "SELECT /* ;", "quit now", "1.5"] {
            assert!(!is_complete(text), "{text:?}");
        }
    }
}
