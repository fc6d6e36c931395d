//! Files of flow records, in a format that is recognized by the content.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use flowgauge::export::FixedRecord;
use flowgauge::ipfix::MessageReader;
use flowgauge::ipfix::collector::{Collected, Collector, CollectorConfig};
use flowgauge::{FlowRecord, Timestamp};
#[cfg(feature = "arrow")]
use flowgauge_arrow::ParquetRecords;

use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::is_stdin;

/// Longest line of ndjson in octets. That of a record is some thousand.
const LINE_LEN_MAX: u64 = 1 << 20;

/// Number of problems of a file that are reported one by one.
const REPORTED_COUNT_MAX: u64 = 8;

/// Number of octets by which a format is recognized.
const HEAD_LEN: usize = 4;

type Input = BufReader<Box<dyn Read>>;

/// A file of flow records.
pub(super) struct RecordFile {
    name: String,
    content: Content,
    problem_count: u64,
}

enum Content {
    Lines {
        input: Input,
        line: Vec<u8>,
        number: u64,
    },
    Fixed {
        input: Input,
        number: u64,
    },
    Ipfix(Box<Messages>),
    #[cfg(feature = "arrow")]
    Parquet {
        records: Box<ParquetRecords>,
        number: u64,
    },
    /// The file is read.
    End,
}

/// A file of IPFIX messages.
struct Messages {
    reader: MessageReader<Input>,
    collector: Collector,
    records: VecDeque<FlowRecord>,
}

/// Returns the problem of a file that begins with octets of another format.
fn problem(head: &[u8]) -> &'static str {
    match head {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => "is compressed; decompress it first",
        [0x0a, 0x0d, 0x0d, 0x0a]
        | [0xa1, 0xb2, 0xc3, 0xd4]
        | [0xa1, 0xb2, 0x3c, 0x4d]
        | [0xd4, 0xc3, 0xb2, 0xa1]
        | [0x4d, 0x3c, 0xb2, 0xa1] => "is a capture; `flowgauge flows` creates the records of its flows",
        b"PAR1" if cfg!(feature = "arrow") => "a Parquet file cannot be read from a pipe",
        b"PAR1" => "is a Parquet file; this build of flowgauge reads it only with the feature `arrow`",
        [b'A', b'R', b'R', b'O'] | [0xff, 0xff, 0xff, 0xff] => {
            "is an Arrow file; write the records as ndjson, IPFIX or Parquet"
        }
        _ => "does not contain flow records as ndjson, IPFIX, Parquet or fixed records",
    }
}

impl RecordFile {
    /// Opens a file, and recognizes its format.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let name = if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
        let failure = |error: io::Error| Failure::Other(format!("{name}: {error}"));
        let mut input: Box<dyn Read> =
            if is_stdin(path) { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failure)?) };
        let mut head = Vec::with_capacity(HEAD_LEN);
        input.by_ref().take(HEAD_LEN as u64).read_to_end(&mut head).map_err(failure)?;
        let rest = move |head: Vec<u8>| -> Input {
            BufReader::with_capacity(1 << 16, Box::new(io::Cursor::new(head).chain(input)))
        };
        let first = head.iter().find(|octet| !octet.is_ascii_whitespace()).copied();
        let content = match head.as_slice() {
            [] => Content::End,
            [0, 10, ..] => Content::Ipfix(Box::new(Messages {
                reader: MessageReader::new(rest(head)),
                collector: Collector::new(CollectorConfig::default())?,
                records: VecDeque::new(),
            })),
            // The version of fixed records, and not a compressed file.
            [0x10..=0x1f, second, ..] if *second != 0x8b => Content::Fixed { input: rest(head), number: 0 },
            #[cfg(feature = "arrow")]
            b"PAR1" if path.is_file() => {
                let file = File::open(path).map_err(failure)?;
                Content::Parquet { records: Box::new(ParquetRecords::new(file).map_err(failure)?), number: 0 }
            }
            [0x0a, 0x0d, ..] => return Err(Failure::Other(format!("{name}: {}", problem(&head)))),
            _ if matches!(first, Some(b'{') | None) => {
                Content::Lines { input: rest(head), line: Vec::new(), number: 0 }
            }
            _ => return Err(Failure::Other(format!("{name}: {}", problem(&head)))),
        };
        Ok(Self { name, content, problem_count: 0 })
    }

    /// Returns the next record, and reports what is no record; `None` at the end of the file.
    pub(super) fn next(&mut self, console: &mut Console) -> Option<FlowRecord> {
        loop {
            let found = match &mut self.content {
                Content::Lines { input, line, number } => next_line(input, line, number),
                Content::Fixed { input, number } => next_fixed(input, number),
                Content::Ipfix(messages) => messages.next(),
                #[cfg(feature = "arrow")]
                Content::Parquet { records, number } => next_row(records, number),
                Content::End => return None,
            };
            match found {
                Ok(Some(record)) => return Some(record),
                Ok(None) => {
                    self.end(console);
                    return None;
                }
                Err(Problem { text, is_last }) => {
                    self.problem_count += 1;
                    if is_last || self.problem_count <= REPORTED_COUNT_MAX {
                        console.problem(format!("{}: {text}", self.name));
                    }
                    if is_last {
                        self.end(console);
                        return None;
                    }
                }
            }
        }
    }

    /// Closes the file.
    fn end(&mut self, console: &mut Console) {
        if let Content::Ipfix(messages) = &self.content {
            let stats = messages.collector.stats();
            for (count, one, what) in [
                (stats.malformed_message_count, "message", "malformed"),
                (stats.unknown_template_set_count, "data set", "skipped because the template is not known"),
                (stats.refused_template_count, "template", "refused (malformed or too large)"),
                (stats.unkeyed_record_count, "record", "without addresses skipped"),
                (stats.packet_count, "sampled packet", "skipped; `flowgauge collect` makes records of them"),
            ] {
                if count > 0 {
                    console.problem(format!("{}: {} {what}", self.name, plural(count, one)));
                }
            }
        }
        if let Some(count) = self.problem_count.checked_sub(REPORTED_COUNT_MAX).filter(|count| *count > 0) {
            console.problem(format!("{}: {} more without a record", self.name, plural(count, "problem")));
        }
        self.content = Content::End;
    }
}

/// What is no record, and whether the rest of the file cannot be read.
struct Problem {
    text: String,
    is_last: bool,
}

impl Problem {
    fn last(error: &io::Error) -> Self {
        Self { text: error.to_string(), is_last: true }
    }
}

/// Reads the next record of ndjson. Empty lines are skipped.
fn next_line(input: &mut Input, line: &mut Vec<u8>, number: &mut u64) -> Result<Option<FlowRecord>, Problem> {
    loop {
        line.clear();
        let read = input.by_ref().take(LINE_LEN_MAX).read_until(b'\n', line);
        if read.map_err(|error| Problem::last(&error))? == 0 {
            return Ok(None);
        }
        *number += 1;
        if line.len() as u64 == LINE_LEN_MAX && !line.ends_with(b"\n") {
            input.skip_until(b'\n').map_err(|error| Problem::last(&error))?;
            let text = format!("line {number}: longer than {LINE_LEN_MAX} octets");
            return Err(Problem { text, is_last: false });
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        return serde_json::from_slice(line).map(Some).map_err(|error| {
            // The line of a line is always the first one.
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            Problem { text: format!("line {number}: not a flow record: {text}"), is_last: false }
        });
    }
}

/// Reads the next fixed record.
fn next_fixed(input: &mut Input, number: &mut u64) -> Result<Option<FlowRecord>, Problem> {
    let mut octets = [0; FixedRecord::LEN];
    let mut len = 0;
    while let Some(rest) = octets.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) if len == 0 => return Ok(None),
            Ok(0) => {
                let text = format!("the last record is truncated: {len} of {} octets", FixedRecord::LEN);
                return Err(Problem { text, is_last: true });
            }
            Ok(read_len) => len += read_len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Problem::last(&error)),
        }
    }
    *number += 1;
    match FixedRecord::new(&octets) {
        Ok(record) => Ok(Some(record.to_record())),
        Err(error) => Err(Problem { text: format!("record {number}: {error}"), is_last: false }),
    }
}

/// Reads the next row of a Parquet file.
#[cfg(feature = "arrow")]
fn next_row(records: &mut ParquetRecords, number: &mut u64) -> Result<Option<FlowRecord>, Problem> {
    *number += 1;
    records.next().transpose().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Problem { text: format!("row {number}: not a flow record: {error}"), is_last: false }
        }
        _ => Problem::last(&error),
    })
}

impl Messages {
    /// Decodes messages up to the next record.
    fn next(&mut self) -> Result<Option<FlowRecord>, Problem> {
        // The messages of a file have one exporter.
        let exporter = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let Self { reader, collector, records } = self;
        while records.is_empty() {
            let Some(message) = reader.next().map_err(|error| Problem::last(&error))? else {
                return Ok(None);
            };
            collector.message(exporter, message, Timestamp::ZERO, |collected| {
                if let Collected::Record(record) = collected {
                    records.push_back(record.clone());
                }
            });
        }
        Ok(records.pop_front())
    }
}
