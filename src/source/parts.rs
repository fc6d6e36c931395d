//! Capture file that several threads read, each a part of its octets.
//!
//! A part begins at an offset at which records seem to begin. Only the reader of the part before can prove that: the part
//! is valid if that reader has reached this offset behind a complete record.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::config::SourceConfig;
use super::error::Error;
use super::file::FileSource;
use super::head::Format;
use super::stats::SourceStats;
use super::walk::Candidate;
use super::warning::Warning;
use super::{Interface, Source};
use crate::base::FrameBatch;

/// Number of octets in which the first record of a part is searched for.
const WINDOW_LEN: u64 = 1 << 20;

/// Number of octets that plausible records must fill without a gap, unless the file ends before.
const CHAIN_LEN: usize = 128 << 10;

/// Minimum number of plausible records, unless the last one ends at the end of the file.
const CHAIN_COUNT: usize = 4;

/// Number of records behind which the first record of a part is chosen, so that its time can be compared with theirs.
const COMPARED_COUNT: usize = 16;

/// Minimum and maximum length of a part in octets, unless [`FileParts::part_len`] sets another length.
const PART_LEN: (u64, u64) = (1 << 20, 256 << 20);

/// A range of octets of a file; the last one has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartRange {
    pub(crate) start: u64,
    pub(crate) end: Option<u64>,
}

/// Uncompressed capture file, for [`Builder::run_parts`](crate::pipeline::Builder::run_parts).
///
/// ```
/// use flowgauge::source::FileParts;
///
/// let mut parts = FileParts::open("examples/data/web.pcap")?.part_len(100_000);
/// let mut octet_count = 0;
/// let options = flowgauge::RunOptions::default();
/// flowgauge::Pipeline::builder().run_parts::<flowgauge::Flows>(
///     2, &mut parts, &options, |_| true, |record| octet_count += record.octet_count(),
/// )?;
/// assert!(octet_count > 1_000_000);
/// assert_eq!(parts.stats().frame_count, 1286);
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[derive(Debug)]
pub struct FileParts {
    readers: PartReaders,
    len: u64,
    part_len: Option<u64>,
    /// A reader that has read the first block of the file, which describes the interfaces.
    first: FileSource,
    pub(crate) outcome: PartsOutcome,
}

/// What is needed to open readers of parts.
#[derive(Clone, Debug)]
pub(crate) struct PartReaders {
    path: PathBuf,
    config: SourceConfig,
    /// Offset of the first record.
    records_at: u64,
}

impl PartReaders {
    /// Opens a reader of a part, which has the interfaces of the first block of the file.
    pub(crate) fn open(&self, range: PartRange) -> Result<FileSource, Error> {
        let mut reader = FileSource::open_with(&self.path, self.config.clone())?;
        if range.start != self.records_at {
            let _ = reader.next_batch(&mut FrameBatch::new());
        }
        reader.select(range)?;
        Ok(reader)
    }
}

/// What the readers of all parts have counted.
#[derive(Debug, Default)]
pub(crate) struct PartsOutcome {
    pub(crate) stats: SourceStats,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) interfaces: Vec<Interface>,
    /// Numbers of parts that were tracked by the carrier, and alone.
    pub(crate) part_counts: (u64, u64),
}

impl PartsOutcome {
    /// Adds what a reader has counted.
    pub(crate) fn add(&mut self, reader: &FileSource) {
        let earlier_count = self.stats.frame_count;
        let warnings = reader.warnings().iter().map(|warning| {
            let frame_number = warning.frame_number + earlier_count;
            Warning { frame_number, ..warning.clone() }
        });
        self.warnings.extend(warnings);
        self.stats += reader.stats();
    }
}

impl FileParts {
    /// Opens a capture file with the default limits.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, SourceConfig::default())
    }

    /// Opens a capture file, with the limits and the stop handle of `config`.
    ///
    /// # Errors
    ///
    /// Same as for [`FileSource::open_with`]; also [`Error::Indivisible`] for an input that can only be read from its
    /// beginning: a compressed file, a pipe or a device.
    pub fn open_with(path: impl AsRef<Path>, config: impl Into<SourceConfig>) -> Result<Self, Error> {
        let (path, config) = (path.as_ref().to_owned(), config.into());
        let mut first = FileSource::open_with(&path, config.clone())?;
        if !first.capture().is_plain() {
            return Err(Error::Indivisible { path });
        }
        let (len, records_at) = (first.total_len().unwrap_or(0), first.position());
        // Damage is reported by the reader of the first part.
        let _ = first.next_batch(&mut FrameBatch::new());
        let readers = PartReaders { path, config, records_at };
        Ok(Self { readers, len, part_len: None, first, outcome: PartsOutcome::default() })
    }

    /// Sets the length of a part in octets, at least one record. The default is the length of the file divided by the
    /// number of threads, between 1 MiB and 256 MiB.
    #[must_use]
    pub fn part_len(self, len: u64) -> Self {
        Self { part_len: Some(len.max(1)), ..self }
    }

    /// Returns what the readers of the last run have counted.
    #[must_use]
    pub const fn stats(&self) -> SourceStats {
        self.outcome.stats
    }

    /// Returns the positions at which the last run could not read the file.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.outcome.warnings
    }

    /// Returns the interfaces of the frames of the last run.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.outcome.interfaces
    }

    /// Returns the numbers of parts in the last run: those that one pipeline tracked after all others before them, and those
    /// that were tracked alone at the same time.
    #[must_use]
    pub const fn part_counts(&self) -> (u64, u64) {
        self.outcome.part_counts
    }

    /// Returns the offset of the first record.
    pub(crate) const fn records_at(&self) -> u64 {
        self.readers.records_at
    }

    pub(crate) const fn readers(&self) -> &PartReaders {
        &self.readers
    }

    /// Returns up to `count` parts from the record at the offset `start` on. The first one has a reader already; each other
    /// one begins where a record seems to begin.
    pub(crate) fn ranges(&self, start: u64, count: usize) -> Vec<PartRange> {
        let part_len = self.part_len.unwrap_or_else(|| {
            let (min, max) = PART_LEN;
            (self.len / count as u64 + 1).clamp(min, max)
        });
        let mut ranges = Vec::with_capacity(count);
        let mut start = start;
        while ranges.len() < count {
            let end = start.saturating_add(part_len);
            // A file that cannot be read is reported by the reader of the part.
            let end = if end < self.len { self.border(end).ok().flatten() } else { None };
            ranges.push(PartRange { start, end });
            let Some(end) = end else { break };
            start = end;
        }
        ranges
    }

    /// Returns whether the reader of the part before a range has reached its start, in the state in which the
    /// [reader](PartReaders::open) of the range begins.
    pub(crate) fn is_reached(&self, range: PartRange, before: &FileSource) -> bool {
        before.position() == range.start && before.agrees_with(&self.first)
    }

    /// Returns an offset at which a record seems to begin: at or behind `from`, and before the end of the file.
    fn border(&self, from: u64) -> io::Result<Option<u64>> {
        let mut window = Vec::new();
        let mut file = File::open(&self.readers.path)?;
        file.seek(SeekFrom::Start(from))?;
        file.take(WINDOW_LEN).read_to_end(&mut window)?;
        let is_end = from + window.len() as u64 >= self.len;
        let format = self.first.capture().format();
        let step = format.alignment();
        let skipped_len = (step - (from % step as u64) as usize) % step;
        let chosen = (skipped_len..window.len()).step_by(step).find_map(|at| {
            let records = chain(format, window.get(at..)?, is_end)?;
            Some(at + choose(&records))
        });
        Ok(chosen.map(|at| from + at as u64))
    }
}

/// Returns the offsets and times of plausible records that follow each other from the start of `bytes` on; `None` if they are
/// too few.
fn chain(format: &Format, bytes: &[u8], is_end: bool) -> Option<Vec<(usize, Option<u64>)>> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < bytes.len().min(CHAIN_LEN) {
        let rest = bytes.get(at..)?;
        let Some(Candidate { len, time }) = format.candidate(rest) else {
            // A header that the window, or the end of the file, divides.
            if rest.len() < Format::HEADER_LEN_MAX && records.len() >= CHAIN_COUNT {
                break;
            }
            return None;
        };
        records.push((at, time));
        at += len;
    }
    let is_enough = records.len() >= CHAIN_COUNT || (is_end && at == bytes.len());
    (is_enough && !records.is_empty()).then_some(records)
}

/// Returns the offset of a record that is not earlier than those before it, and not later than those behind it, so that the
/// part begins with the latest time; of the first record if there is none.
fn choose(records: &[(usize, Option<u64>)]) -> usize {
    let time = |record: &(usize, Option<u64>)| record.1.unwrap_or(0);
    let least_after: Vec<u64> = records
        .iter()
        .rev()
        .scan(u64::MAX, |least, record| {
            *least = (*least).min(time(record));
            Some(*least)
        })
        .collect();
    let mut latest = 0;
    let behind = COMPARED_COUNT.min(records.len() / 2);
    for (index, (record, least)) in records.iter().zip(least_after.iter().rev()).enumerate() {
        let is_in_order = time(record) >= latest && time(record) <= *least;
        if index >= behind && is_in_order {
            return record.0;
        }
        latest = latest.max(time(record));
    }
    records.first().map_or(0, |(at, _)| *at)
}

impl FileSource {
    /// Continues the file with a part of it. Counts and warnings begin anew.
    fn select(&mut self, range: PartRange) -> Result<(), Error> {
        self.capture_mut().select(range.start, range.end)?;
        self.capture_mut().forget();
        Ok(())
    }

    /// Continues behind the part that was read, up to the offset `end`, if there is one.
    pub(crate) fn extend(&mut self, end: Option<u64>) -> Result<(), Error> {
        let position = self.position();
        self.capture_mut().select(position, end)
    }

    /// Returns the offset behind the last complete record.
    pub(crate) fn position(&self) -> u64 {
        self.capture().offset()
    }

    /// Returns whether both readers have read the same interfaces.
    fn agrees_with(&self, other: &Self) -> bool {
        self.interfaces() == other.interfaces()
            && self.capture().format().agrees_with(other.capture().format())
    }

    /// Returns whether the part was read to its end, so that the file may continue.
    pub(crate) fn is_part_over(&self) -> bool {
        self.capture().is_part_over()
    }
}
