//! A file of flow records, in a format that is recognized by the content.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use super::format::{RecordFormat, other_content};
use super::messages::Messages;
use super::problem::{RecordProblem, RecordProblemKind};
use crate::export::FixedRecord;
use crate::record::FlowRecord;
use crate::source::{self, Contents};

/// Longest line of ndjson in octets. That of a record is some thousand.
const LINE_LEN_MAX: u64 = 1 << 20;

/// Number of lines, records or rows without a flow record that are reported one by one.
const REPORTED_COUNT_MAX: u64 = 8;

/// Octets that are buffered.
const BUFFER_LEN: usize = 64 << 10;

type Input = BufReader<Contents>;

type LineParser = Box<dyn FnMut(&[u8]) -> Result<FlowRecord, String> + Send>;

type Rows = Box<dyn Iterator<Item = io::Result<FlowRecord>> + Send>;

/// Iterator over the records of a file, and over what is no record in it.
///
/// Of the lines, records or rows that are no flow records, the first eight are problems of their own, and the number of
/// further ones is another problem at the end. After a problem, the iterator continues if it can. In memory are 64 KiB of
/// the file, one line of at most 1 MiB or one message, and the decompressor of a compressed file.
pub struct RecordFile {
    path: PathBuf,
    records: Records,
    invalid_count: u64,
    /// Problems that are passed on at the end of the file.
    last: VecDeque<RecordProblemKind>,
}

enum Records {
    Lines {
        input: Input,
        line: Vec<u8>,
        number: u64,
        parse: LineParser,
    },
    Fixed {
        input: Input,
        number: u64,
    },
    Messages(Box<Messages<Input>>),
    Rows {
        rows: Rows,
        number: u64,
    },
    /// The file was read.
    End,
}

/// What is read instead of a record.
enum Fault {
    /// A part that is no record, and is skipped.
    Invalid { place: &'static str, number: u64, cause: String },
    /// The rest of the file cannot be read.
    Rest(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Rest(error)
    }
}

/// The next record, or the end of the file.
type Next = Result<Option<FlowRecord>, Fault>;

impl fmt::Debug for RecordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RecordFile {
    /// Reads a file as ndjson, IPFIX or fixed records. `parse_line` returns the record in a line of ndjson; a position
    /// ` at line ...` at the end of its error is omitted, because the file counts lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has other content. An empty file has no records.
    pub fn new<E: Display>(
        contents: Contents,
        mut parse_line: impl FnMut(&[u8]) -> Result<FlowRecord, E> + Send + 'static,
    ) -> Result<Self, RecordProblem> {
        let path = contents.path().to_owned();
        let problem = |kind| RecordProblem::new(path.clone(), kind);
        let head = contents.head();
        let records = match RecordFormat::of(head) {
            None if head.is_empty() => Records::End,
            None | Some(RecordFormat::Parquet) => {
                return Err(problem(RecordProblemKind::NotRecords(other_content(head))));
            }
            Some(RecordFormat::Ndjson) => {
                let parse = Box::new(move |line: &[u8]| {
                    parse_line(line).map_err(|error| {
                        let text = error.to_string();
                        text.split(" at line ").next().unwrap_or_default().to_owned()
                    })
                });
                Records::Lines { input: buffered(contents), line: Vec::new(), number: 0, parse }
            }
            Some(RecordFormat::Fixed) => Records::Fixed { input: buffered(contents), number: 0 },
            Some(RecordFormat::Ipfix) => {
                let messages = Messages::new(buffered(contents));
                let messages = messages.map_err(|error| problem(RecordProblemKind::Config(error)))?;
                Records::Messages(Box::new(messages))
            }
        };
        Ok(Self::of(path, records))
    }

    /// Reads the rows of a file that the caller decodes. A row whose error is of the kind
    /// [`InvalidData`](io::ErrorKind::InvalidData) is skipped; after another error, nothing is read.
    pub fn of_rows(
        path: impl Into<PathBuf>,
        rows: impl Iterator<Item = io::Result<FlowRecord>> + Send + 'static,
    ) -> Self {
        Self::of(path.into(), Records::Rows { rows: Box::new(rows), number: 0 })
    }

    const fn of(path: PathBuf, records: Records) -> Self {
        Self { path, records, invalid_count: 0, last: VecDeque::new() }
    }

    /// Returns the contents of a file that is not decoded by the caller.
    fn contents(&self) -> Option<&Contents> {
        match &self.records {
            Records::Lines { input, .. } | Records::Fixed { input, .. } => Some(input.get_ref()),
            Records::Messages(messages) => Some(messages.reader.get_ref().get_ref()),
            Records::Rows { .. } | Records::End => None,
        }
    }

    /// Returns the number of octets that were read so far (for a compressed file, compressed octets), and the length of the
    /// file; `None` after its end, if the caller decodes it, or if it is a stream.
    #[must_use]
    pub fn progress(&self) -> Option<(u64, u64)> {
        let contents = self.contents()?;
        Some((contents.progress(), contents.total_len()?))
    }

    /// Reads up to the next record, the end, or what is no record.
    fn read(&mut self) -> Next {
        match &mut self.records {
            Records::Lines { input, line, number, parse } => read_line(input, line, number, parse),
            Records::Fixed { input, number } => read_fixed(input, number),
            Records::Messages(messages) => Ok(messages.next()?),
            Records::Rows { rows, number } => read_row(rows, number),
            Records::End => Ok(None),
        }
    }

    /// Closes the file, and prepares the problems that concern all of it.
    fn end(&mut self) {
        if let Records::Messages(messages) = &self.records {
            self.last.extend(messages.skipped());
        }
        let more = self.invalid_count.saturating_sub(REPORTED_COUNT_MAX);
        self.last.extend((more > 0).then_some(RecordProblemKind::More(more)));
        (self.records, self.invalid_count) = (Records::End, 0);
    }

    fn problem(&self, kind: RecordProblemKind) -> RecordProblem {
        RecordProblem::new(self.path.clone(), kind)
    }
}

impl Iterator for RecordFile {
    type Item = Result<FlowRecord, RecordProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read() {
                Ok(Some(record)) => return Some(Ok(record)),
                Err(Fault::Invalid { place, number, cause }) => {
                    self.invalid_count += 1;
                    if self.invalid_count <= REPORTED_COUNT_MAX {
                        let kind = RecordProblemKind::Invalid { place, number, cause };
                        return Some(Err(self.problem(kind)));
                    }
                }
                Ok(None) => {
                    self.end();
                    return self.last.pop_front().map(|kind| Err(self.problem(kind)));
                }
                Err(Fault::Rest(error)) => {
                    // A stream that the caller stopped ends within a record.
                    let is_stopped = self.contents().is_some_and(Contents::is_stopped);
                    let kind = match error.downcast::<source::Error>() {
                        Ok(error) => RecordProblemKind::Source(error),
                        Err(error) => RecordProblemKind::Damaged(error.to_string()),
                    };
                    self.end();
                    if !is_stopped {
                        return Some(Err(self.problem(kind)));
                    }
                }
            }
        }
    }
}

fn buffered(contents: Contents) -> Input {
    BufReader::with_capacity(BUFFER_LEN, contents)
}

/// Reads the next record of ndjson. Empty lines are skipped.
fn read_line(input: &mut Input, line: &mut Vec<u8>, number: &mut u64, parse: &mut LineParser) -> Next {
    loop {
        line.clear();
        if input.by_ref().take(LINE_LEN_MAX).read_until(b'\n', line)? == 0 {
            return Ok(None);
        }
        *number += 1;
        let (place, number) = ("line", *number);
        let is_complete = line.ends_with(b"\n");
        if line.len() as u64 == LINE_LEN_MAX && !is_complete {
            input.skip_until(b'\n')?;
            let cause = format!("longer than {LINE_LEN_MAX} octets");
            return Err(Fault::Invalid { place, number, cause });
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        return match parse(line) {
            Ok(record) => Ok(Some(record)),
            // A stream that the caller stopped ends within a line.
            Err(_) if !is_complete && input.get_ref().is_stopped() => Ok(None),
            Err(cause) => Err(Fault::Invalid { place, number, cause: format!("not a flow record: {cause}") }),
        };
    }
}

/// Reads the next fixed record.
fn read_fixed(input: &mut Input, number: &mut u64) -> Next {
    let mut octets = [0; FixedRecord::LEN];
    let mut len = 0;
    while let Some(rest) = octets.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) if len == 0 => return Ok(None),
            Ok(0) => {
                let text = format!("the last record is truncated: {len} of {} octets", FixedRecord::LEN);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text).into());
            }
            Ok(read_len) => len += read_len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    *number += 1;
    match FixedRecord::new(&octets) {
        Ok(record) => Ok(Some(record.to_record())),
        Err(error) => Err(Fault::Invalid { place: "record", number: *number, cause: error.to_string() }),
    }
}

/// Reads the next row.
fn read_row(rows: &mut Rows, number: &mut u64) -> Next {
    *number += 1;
    match rows.next() {
        Some(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            let cause = format!("not a flow record: {error}");
            Err(Fault::Invalid { place: "row", number: *number, cause })
        }
        row => Ok(row.transpose()?),
    }
}
