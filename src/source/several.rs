//! Several captures as one, merged in time order.

mod reader;

use std::path::{Path, PathBuf};

use reader::{Key, Reader};

use super::capture::Capture;
use super::config::SourceConfig;
use super::error::Error;
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::stats::SourceStats;
use super::warning::Warning;
use super::{Interface, Source};
use crate::base::{FrameBatch, Limits, Timestamp};

/// The shortest block that files are read by when memory is short.
const BLOCK_LEN_MIN: u32 = 4096;

/// What blocks may take of the memory of all files, as a divisor: descriptions of frames, which are at most twice as long, and
/// windows of decompressors come on top.
const BLOCKS_PART: u64 = 8;

/// Files that overlap in time for which memory is set aside.
const RESERVED_COUNT: u64 = 16;

/// Several capture files, merged in time order; for equal times, in the order in which the files were given.
///
/// All files are opened at first, so that what is no capture is known before anything is read; each is then closed
/// until the merge reaches its first frame. A batch that lies ahead of all other files is handed over as it is; only
/// where files overlap in time are frames copied. With one file there is no overhead.
///
/// The frames of one file keep their order, also where time steps back within it: then its next frame is the earliest of all,
/// and comes next, as `mergecap` has it. Interfaces that sections and files describe alike are one, so that the files of a
/// rotating capture stay one interface; those of one section are never joined.
///
/// At most [`Limits::open_file_count_max`] files are open at once. A file that the merge has begun holds a block of
/// at most [`Limits::batch_len`] octets, a shorter one if there are many. All of them together, with their decompressors and
/// the interfaces, hold no more than [`Limits::source_bytes_max`].
#[derive(Debug)]
pub struct Files {
    limits: Limits,
    /// Files that the merge has not reached, the next one last.
    waiting: Vec<Waiting>,
    /// Files that the merge is within, by the key of their next frame, the next one last. One whose batch is used up is
    /// at the end, and is read on before anything else.
    #[expect(clippy::vec_box, reason = "they move on every change of the file whose frame is next")]
    open: Vec<Box<Reader>>,
    interfaces: Interfaces,
    memory: Memory,
    warnings: Vec<Warning>,
    /// Of files that are done.
    closed: SourceStats,
    closed_len: u64,
    total_len: Option<u64>,
    refills: u64,
}

#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    key: Key,
    /// What cannot be opened twice stays open, with the frames that were read to know its first time.
    kept: Option<Box<Reader>>,
}

impl Files {
    /// Opens captures with the default limits; the path `-` is standard input.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        Self::open_with(paths, SourceConfig::default())
    }

    /// Opens captures and looks at the first frame of each.
    ///
    /// # Errors
    ///
    /// [`Error::NoFiles`] without a path, and whatever [`FileSource::open_with`](super::FileSource::open_with) says of the first
    /// file that cannot be read.
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        config: impl Into<SourceConfig>,
    ) -> Result<Self, Error> {
        let mut is_named = false;
        let files = Self::open_all(paths.into_iter().inspect(|_| is_named = true), &config.into(), Err)?;
        if is_named { Ok(files) } else { Err(Error::NoFiles) }
    }

    /// Opens those captures that can be opened, and hands the errors of the others to `refuse`; nothing of the good ones
    /// is lost. Without any, there are no frames.
    pub fn open_readable<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        config: impl Into<SourceConfig>,
        mut refuse: impl FnMut(Error),
    ) -> Self {
        let refuse = |error| -> Result<(), std::convert::Infallible> {
            refuse(error);
            Ok(())
        };
        match Self::open_all(paths, &config.into(), refuse) {
            Ok(files) => files,
            Err(never) => match never {},
        }
    }

    fn open_all<P: AsRef<Path>, E>(
        paths: impl IntoIterator<Item = P>,
        config: &SourceConfig,
        mut refuse: impl FnMut(Error) -> Result<(), E>,
    ) -> Result<Self, E> {
        let memory = Memory::new(config);
        let mut files = Self {
            limits: config.limits,
            waiting: Vec::new(),
            open: Vec::new(),
            interfaces: Interfaces::new(config.limits.interface_count_max, &memory),
            memory,
            warnings: Vec::new(),
            closed: SourceStats::default(),
            closed_len: 0,
            total_len: Some(0),
            refills: 0,
        };
        let mut decoder_bytes_max = 0;
        let mut paths = paths.into_iter().enumerate().peekable();
        while let Some((order, path)) = paths.next() {
            // A file on its own is read straight away.
            let is_only = order == 0 && paths.peek().is_none();
            let opened = if is_only {
                files.begin_only(path.as_ref())
            } else {
                let looked_at = files.look_at(path.as_ref(), order);
                looked_at.map(|bytes| decoder_bytes_max = bytes.max(decoder_bytes_max))
            };
            opened.or_else(&mut refuse)?;
        }
        files.waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.key));
        // The first files to overlap are read whatever the layers above have taken by then.
        let overlapping = RESERVED_COUNT.min(files.waiting.len() as u64);
        files.memory.reserve(overlapping * (u64::from(config.limits.batch_len) * 2 + decoder_bytes_max));
        Ok(files)
    }

    fn begin_only(&mut self, path: &Path) -> Result<(), Error> {
        let source = self.open_path(path)?;
        self.total_len = source.total_len();
        self.open.push(Box::new(Reader::new(source, 0, &self.memory)));
        Ok(())
    }

    /// Looks at the first frame of a file; what its decompressor takes.
    fn look_at(&mut self, path: &Path, order: usize) -> Result<u64, Error> {
        let before = self.memory.used_bytes();
        let mut reader = Reader::new(self.open_path(path)?, order, &self.memory);
        let len = reader.source.total_len();
        let mut idle = Interfaces::idle(&self.memory);
        // What is read again later describes its interfaces again.
        let interfaces = if len.is_none() { &mut self.interfaces } else { &mut idle };
        while reader.source.fill(&mut reader.batch, interfaces)? && reader.batch.is_empty() {}
        self.total_len = self.total_len.zip(len).map(|(sum, len)| sum + len);
        let first = reader.batch.get(0).map_or(Timestamp::ZERO, |frame| frame.timestamp);
        let decoder_bytes = if reader.source.is_compressed() { self.memory.used_bytes() - before } else { 0 };
        let kept = if len.is_none() {
            reader.settle()?;
            Some(Box::new(reader))
        } else {
            None
        };
        self.waiting.push(Waiting { path: path.to_owned(), key: (first, order), kept });
        Ok(decoder_bytes)
    }

    fn open_path(&self, path: &Path) -> Result<Capture, Error> {
        if path == Path::new("-") {
            Capture::stdin(&self.limits, &self.memory)
        } else {
            Capture::open(path, &self.limits, &self.memory)
        }
    }

    /// Begins the waiting file that comes next.
    fn begin_next(&mut self) -> Result<(), Error> {
        let Some(Waiting { path, key: (_, order), kept }) = self.waiting.pop() else { return Ok(()) };
        let reader = if let Some(mut reader) = kept {
            reader.begin_batch();
            reader
        } else {
            self.make_room(&path)?;
            let source = Capture::open(&path, &self.limits, &self.memory)?;
            Box::new(Reader::new(source, order, &self.memory))
        };
        self.put_back(reader);
        Ok(())
    }

    /// By how many octets a file is read while so many are being merged.
    fn block_len(&self) -> u32 {
        let file_count = self.open.len() as u64 + 1;
        let share = self.memory.max_bytes() / BLOCKS_PART / file_count;
        let limit = self.limits.batch_len;
        u32::try_from(share).unwrap_or(u32::MAX).max(BLOCK_LEN_MIN).min(limit)
    }

    /// Puts a file where its next frame belongs.
    fn put_back(&mut self, reader: Box<Reader>) {
        let place = match reader.head {
            None => self.open.len(),
            Some(_) => self.open.partition_point(|other| other.key() > reader.key()),
        };
        self.open.insert(place, reader);
    }

    /// Closes a file for the time being if as many are open as may be: the one whose last read lies furthest back.
    fn make_room(&mut self, path: &Path) -> Result<(), Error> {
        let limit = self.limits.open_file_count_max.max(1);
        while self.open.iter().filter(|reader| !reader.source.is_parked()).count() >= limit as usize {
            let mut held: Vec<_> = self.open.iter_mut().filter(|reader| !reader.source.is_parked()).collect();
            held.sort_by_key(|reader| reader.refilled);
            if !held.iter_mut().any(|reader| reader.source.park()) {
                return Err(Error::TooManyOpenFiles { path: path.to_owned(), limit });
            }
        }
        Ok(())
    }

    /// Reads on in a file whose batch is used up, and closes it if it is at its end. It is not in the list, so that
    /// making room never closes it.
    fn refill(&mut self, mut reader: Box<Reader>) -> Result<(), Error> {
        if reader.source.is_parked() {
            self.make_room(reader.source.path())?;
        }
        self.refills += 1;
        reader.refilled = self.refills;
        let result = self.read(&mut reader);
        // An error may have come behind frames.
        if matches!(result, Ok(true)) || !reader.batch.is_empty() {
            reader.begin_batch();
            self.put_back(reader);
        } else {
            self.close(&reader);
        }
        result.map(drop)
    }

    /// Reads the next batch of a file, within what memory there is.
    fn read(&mut self, reader: &mut Reader) -> Result<bool, Error> {
        reader.prepare(self.block_len()).or_else(|_| reader.prepare(BLOCK_LEN_MIN))?;
        loop {
            match reader.source.fill(&mut reader.batch, &mut self.interfaces) {
                Ok(true) if reader.batch.is_empty() => {}
                Ok(has_frames) => {
                    // What is there is delivered, and nothing more is read.
                    return reader.settle().map(|()| has_frames).inspect_err(|_| reader.source.stop());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn close(&mut self, reader: &Reader) {
        self.closed += reader.source.stats();
        self.closed_len += reader.source.progress();
        self.warnings.extend_from_slice(reader.source.warnings());
    }

    /// The only file left reads straight into the caller's batch.
    fn read_last(&mut self, mut reader: Box<Reader>, batch: &mut FrameBatch) -> Result<bool, Error> {
        reader.source.set_block_len(self.limits.batch_len);
        reader.drop_batch();
        let result = reader.source.fill(batch, &mut self.interfaces);
        if matches!(result, Ok(true)) {
            self.open.push(reader);
        } else {
            self.close(&reader);
        }
        result
    }
}

impl Source for Files {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error> {
        batch.clear();
        let len_max = (self.limits.batch_len as usize).max(1);
        loop {
            let next_waiting = self.waiting.last().map(|waiting| waiting.key);
            let first = self.open.last();
            let used_up = first.is_some_and(|reader| reader.head.is_none());
            let first_key = first.map(|reader| reader.key());
            if !used_up && next_waiting.is_some_and(|waiting| first_key.is_none_or(|first| waiting < first)) {
                self.begin_next()?;
                continue;
            }
            let Some(mut reader) = self.open.pop() else { return Ok(!batch.is_empty()) };
            if used_up {
                if self.open.is_empty() && self.waiting.is_empty() {
                    if batch.is_empty() {
                        return self.read_last(reader, batch);
                    }
                    self.open.push(reader);
                    return Ok(true);
                }
                self.refill(reader)?;
                continue;
            }
            let end = self.open.last().map(|other| other.key()).into_iter().chain(next_waiting).min();
            if reader.at == 0 && end.is_none_or(|end| (reader.tail, reader.order) < end) {
                if batch.is_empty() {
                    std::mem::swap(batch, &mut reader.batch);
                    reader.head = None;
                    // What came from the caller may be larger than what it took.
                    if reader.settle().is_err() {
                        reader.drop_batch();
                    }
                }
                self.put_back(reader);
                return Ok(true);
            }
            reader.copy(end, batch, len_max);
            self.put_back(reader);
            if batch.bytes().len() >= len_max {
                return Ok(true);
            }
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        let mut sum = self.closed;
        for reader in &self.open {
            sum += reader.source.stats();
        }
        sum
    }

    fn interfaces(&self) -> &[Interface] {
        self.interfaces.as_slice()
    }

    fn progress(&self) -> u64 {
        let open = self.open.iter().map(|reader| reader.source.progress());
        let kept = self.waiting.iter().filter_map(|waiting| waiting.kept.as_ref());
        self.closed_len + open.sum::<u64>() + kept.map(|reader| reader.source.progress()).sum::<u64>()
    }

    fn total_len(&self) -> Option<u64> {
        self.total_len
    }
}

#[cfg(test)]
mod tests;
