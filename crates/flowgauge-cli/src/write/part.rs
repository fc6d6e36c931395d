//! Files that are written part by part, and when a part ends.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flowgauge::Timestamp;

use crate::args::{parse_duration, parse_size};
use crate::console::Failure;
use crate::output::{OutputFile, Outputs};

/// Octets that a file holds back at most.
const BUFFER_LEN: usize = 1 << 16;

/// When another file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// After this time of the capture, counted from 1970-01-01 00:00 UTC.
    Every(Duration),
    /// When a file has this number of octets.
    Len(u64),
}

impl FromStr for Rotation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (parse_duration(text), parse_size(text)) {
            (Ok(time), _) if time >= Duration::from_secs(1) => Ok(Self::Every(time)),
            (_, Ok(len)) => Ok(Self::Len(len)),
            _ => Err("must be a time of at least a second, such as 1h, or a size, such as 1GiB".to_owned()),
        }
    }
}

impl Rotation {
    /// Returns the time in the name of a file that is opened now.
    fn start(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Every(period) => {
                let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
                Timestamp::from_nanos(now.as_nanos() / period * period)
            }
            Self::Len(_) => now,
        }
    }
}

/// Where a file is created, and when the next one begins.
#[derive(Debug)]
pub(crate) struct Series {
    path: PathBuf,
    outputs: Arc<Outputs>,
    rotation: Option<Rotation>,
    /// The date in the last name that was used, and its number among those with the same date.
    last: Option<(String, usize)>,
}

impl Series {
    pub(crate) const fn new(path: PathBuf, outputs: Arc<Outputs>, rotation: Option<Rotation>) -> Self {
        Self { path, outputs, rotation, last: None }
    }

    /// Creates the next file. With a rotation, its name has the time before the extension.
    pub(crate) fn create(&mut self, now: Timestamp) -> Result<(Part, Lines), Failure> {
        let start = self.rotation.map_or(now, |rotation| rotation.start(now));
        let mut path = self.path.clone();
        if self.rotation.is_some() {
            path = self.next_name(start);
        }
        let (output, file) = OutputFile::create(self.outputs.claim(&path)?)?;
        let handle = file.try_clone().map_err(|error| output.failure(&error))?;
        let len = Arc::new(AtomicU64::new(0));
        let lines =
            Lines { file, buffer: Vec::new(), len: Arc::clone(&len), stored_len: 0, is_failed: false };
        Ok((Part { output, handle, len, start, rotation: self.rotation }, lines))
    }

    /// Returns the name of a file that begins at a time. Files of one second are numbered, as long as the second lasts.
    fn next_name(&mut self, start: Timestamp) -> PathBuf {
        let date = date(start);
        let number = match self.last.take() {
            Some((last, number)) if last == date => number + 1,
            _ => 1,
        };
        let path = dated(&self.path, &date, number);
        self.last = Some((date, number));
        path
    }
}

/// Returns a time in seconds as it is in names: `2026-11-26-12-00-00`.
fn date(time: Timestamp) -> String {
    let date: String = time.rfc3339().to_string().chars().take(19).collect();
    date.replace(['T', ':'], "-")
}

/// Returns a path with a date before its extension: `conn.2026-11-26-12-00-00.log`, and from the second file of the same date
/// on `conn.2026-11-26-12-00-00.2.log`.
fn dated(path: &Path, date: &str, number: usize) -> PathBuf {
    #[cfg(test)]
    tests::FORMATTED_COUNT.set(tests::FORMATTED_COUNT.get() + 1);
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{date}"));
    if number > 1 {
        name.push(format!(".{number}"));
    }
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A file of a series, which has a temporary name until it is complete.
#[derive(Debug)]
pub(crate) struct Part {
    output: OutputFile,
    handle: File,
    /// Length of all lines.
    len: Arc<AtomicU64>,
    start: Timestamp,
    rotation: Option<Rotation>,
}

impl Part {
    /// Returns whether the next file begins.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        match self.rotation {
            None => false,
            Some(Rotation::Every(period)) => now >= self.start.saturating_add(period),
            Some(Rotation::Len(len)) => self.len.load(Ordering::Relaxed) >= len,
        }
    }

    /// Returns the failure for an error of a write.
    pub(crate) fn failure(&self, cause: &io::Error) -> Failure {
        self.output.failure(cause)
    }

    /// Stores the file, and gives it its name. After a failure, which is returned, what was written is kept, unless that is
    /// nothing or would replace another file.
    pub(crate) fn complete(self, written: Result<(), Failure>) -> Result<(), Failure> {
        let Self { output, handle, .. } = self;
        // Pipes and devices store nothing.
        let len = handle.metadata().ok().filter(Metadata::is_file).map(|metadata| metadata.len());
        let stored = match len {
            Some(_) => handle.sync_all().map_err(|error| output.failure(&error)),
            None => Ok(()),
        };
        let outcome = written.and(stored);
        if outcome.is_err() && (len == Some(0) || output.replaces()) {
            return outcome;
        }
        let committed = output.commit();
        outcome.and(committed)
    }
}

/// Writes whole lines to a file, which therefore consists of whole lines at any time but during a write: what a failed write
/// left is removed.
#[derive(Debug)]
pub(crate) struct Lines {
    file: File,
    buffer: Vec<u8>,
    /// Length of all lines.
    len: Arc<AtomicU64>,
    /// Length of the lines in the file.
    stored_len: u64,
    is_failed: bool,
}

impl Write for Lines {
    /// Takes whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + lines.len() > BUFFER_LEN {
            self.flush()?;
        }
        self.buffer.extend_from_slice(lines);
        self.len.fetch_add(lines.len() as u64, Ordering::Relaxed);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        if let Err(error) = self.file.write_all(&self.buffer) {
            self.is_failed = true;
            // A failure to truncate leaves a part of a line.
            let _ = self.file.set_len(self.stored_len);
            return Err(error);
        }
        self.stored_len += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// A series of files of lines.
#[derive(Debug)]
pub(crate) struct LineFiles {
    series: Series,
    current: Option<(Part, Lines)>,
    now: Timestamp,
    has_begun: bool,
}

impl LineFiles {
    pub(crate) const fn new(series: Series) -> Self {
        Self { series, current: None, now: Timestamp::ZERO, has_begun: false }
    }

    /// Writes a line about a time.
    pub(crate) fn write(&mut self, time: Timestamp, line: &[u8]) -> Result<(), Failure> {
        self.now = self.now.max(time);
        if self.current.as_ref().is_some_and(|(part, _)| part.is_over(self.now)) {
            self.complete()?;
        }
        if self.current.is_none() {
            self.begin()?;
        }
        let Some((part, lines)) = &mut self.current else { return Ok(()) };
        lines.write_all(line).map_err(|error| part.failure(&error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let Some((part, lines)) = &mut self.current else { return Ok(()) };
        lines.flush().map_err(|error| part.failure(&error))
    }

    /// Completes the last file, which is empty if there were no lines.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if !self.has_begun {
            self.begin()?;
        }
        self.complete()
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.has_begun = true;
        self.current = Some(self.series.create(self.now)?);
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Failure> {
        let written = self.flush();
        match self.current.take() {
            Some((part, _)) => part.complete(written),
            None => written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        /// Number of names that were formatted.
        pub(super) static FORMATTED_COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn names_have_the_time_before_the_extension() {
        let time = Timestamp::from_parts(1_700_000_000, 5);
        let name = |path: &str, number| dated(Path::new(path), &date(time), number).display().to_string();
        assert_eq!(name("logs/conn.log", 1), "logs/conn.2023-11-14-22-13-20.log");
        assert_eq!(name("flows", 2), "flows.2023-11-14-22-13-20.2");
    }

    /// The work of a name does not depend on the files before it: counted in names that are formatted.
    #[test]
    fn a_name_costs_the_same_after_any_number_of_files() {
        let hour = Rotation::Every(Duration::from_secs(3600));
        let mut series = Series::new("f.ndjson".into(), Arc::new(Outputs::only_new(&[])), Some(hour));
        let mut names = std::collections::BTreeSet::new();
        // A file for each hour, and then all in one second.
        let times = (0..2_000).map(|period| period * 3600).chain([7_200_000; 20_000]);
        for (number, time) in times.enumerate() {
            assert!(names.insert(series.next_name(Timestamp::from_parts(time, 0))), "{time}");
            assert_eq!(FORMATTED_COUNT.get(), number + 1);
        }
    }

    #[test]
    fn a_rotation_is_a_time_or_a_size() {
        assert_eq!("1h".parse(), Ok(Rotation::Every(Duration::from_secs(3600))));
        assert_eq!("1GiB".parse(), Ok(Rotation::Len(1 << 30)));
        for text in ["", "0s", "10ms", "x", "0"] {
            assert!(text.parse::<Rotation>().is_err(), "{text}");
        }
        let hour = Rotation::Every(Duration::from_secs(3600));
        let start = hour.start(Timestamp::from_parts(7300, 1));
        assert_eq!(start, Timestamp::from_parts(7200, 0));
    }
}
