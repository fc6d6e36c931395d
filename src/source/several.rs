//! Several captures, merged into one in time order.

mod reader;
mod started;

use std::path::{Path, PathBuf};

use reader::{Key, Reader};
use started::Started;

use super::capture::Capture;
use super::config::SourceConfig;
use super::error::Error;
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::stats::SourceStats;
use super::warning::Warning;
use super::{End, Interface, Next, Source};
use crate::base::{FrameBatch, Limits, Timestamp};

/// Minimum length of the blocks in which files are read, in octets, used if little memory is available.
const BLOCK_LEN_MIN: u32 = 4096;

/// Divisor of the memory limit of all files: blocks may use an eighth of it, because the descriptions of
/// frames, which are at most twice as long as the blocks, and the windows of decompressors need additional
/// memory.
const BLOCKS_PART: u64 = 8;

/// Maximum number of files that overlap in time and for which memory is reserved in advance.
const RESERVED_COUNT: u64 = 16;

/// Several capture files, merged in time order; frames with equal times from different files are in the order
/// in which the files were specified.
///
/// All files are opened first, so that a file that is not a capture is detected before anything is read; each
/// is then closed until the merge reaches its first frame. A batch of frames that precede the frames of all
/// other files is returned without a copy; frames are copied only where files overlap in time. With one file
/// there is no overhead.
///
/// The frames of one file keep their order, even if a timestamp is earlier than the one before it: that frame
/// is then returned next, because it is the earliest of all files, as in `mergecap`. Interfaces that
/// different sections or files describe identically are merged, so that the files of a rotating capture have
/// one interface; interfaces of the same section are never merged.
///
/// At most [`Limits::open_file_count_max`] files are open at once. For each file that the merge has started,
/// a block of at most [`Limits::batch_len`] octets is in memory; the blocks are shorter if there are many
/// files. All files together, with their decompressors and the interfaces, hold no more than
/// [`Limits::source_bytes_max`].
#[derive(Debug)]
pub struct Files {
    limits: Limits,
    /// Files that the merge has not started yet; the file with the earliest first frame is the last element.
    waiting: Vec<Waiting>,
    started: Started,
    interfaces: Interfaces,
    memory: Memory,
    warnings: Vec<Warning>,
    /// Counters of the files that were read completely.
    closed: SourceStats,
    closed_len: u64,
    total_len: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    key: Key,
    /// Reader of an input that cannot be opened a second time, such as a pipe, with the frames that were read
    /// to determine the time of the first frame.
    kept: Option<Box<Reader>>,
}

impl Files {
    /// Opens capture files with the default limits; the path `-` selects standard input.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        Self::open_with(paths, SourceConfig::default())
    }

    /// Opens capture files and reads the first frame of each file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoFiles`] if there is no path, and the error of
    /// [`FileSource::open_with`](super::FileSource::open_with) for the first file that cannot be read.
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        config: impl Into<SourceConfig>,
    ) -> Result<Self, Error> {
        let mut is_named = false;
        let files = Self::open_all(paths.into_iter().inspect(|_| is_named = true), &config.into(), Err)?;
        if is_named { Ok(files) } else { Err(Error::NoFiles) }
    }

    /// Opens the capture files that can be opened, and passes the errors of the other files to `refuse`. If
    /// no file can be opened, the source yields no frames.
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
            limits: config.resources.limits,
            waiting: Vec::new(),
            started: Started::default(),
            interfaces: Interfaces::new(config.resources.limits.interface_count_max, &memory),
            memory,
            warnings: Vec::new(),
            closed: SourceStats::default(),
            closed_len: 0,
            total_len: Some(0),
        };
        let mut decoder_bytes_max = 0;
        let mut paths = paths.into_iter().enumerate().peekable();
        while let Some((order, path)) = paths.next() {
            // A single file is read immediately.
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
        // The first files that overlap can be read regardless of the memory that the layers above use later.
        let overlapping = RESERVED_COUNT.min(files.waiting.len() as u64);
        files
            .memory
            .reserve(overlapping * (u64::from(config.resources.limits.batch_len) * 2 + decoder_bytes_max));
        Ok(files)
    }

    fn begin_only(&mut self, path: &Path) -> Result<(), Error> {
        let source = self.open_path(path)?;
        self.total_len = source.total_len();
        self.started.push(Box::new(Reader::new(source, 0, &self.memory)));
        Ok(())
    }

    /// Reads the first frame of a file to determine its time, and adds the file to the waiting files. Returns
    /// the memory of the file's decompressor, in bytes.
    fn look_at(&mut self, path: &Path, order: usize) -> Result<u64, Error> {
        let before = self.memory.used_bytes();
        let mut reader = Reader::new(self.open_path(path)?, order, &self.memory);
        let len = reader.source.total_len();
        let mut idle = Interfaces::idle(&self.memory);
        // A file that is opened again later describes its interfaces again.
        let interfaces = if len.is_none() { &mut self.interfaces } else { &mut idle };
        while !reader.source.fill(&mut reader.batch, interfaces)?.is_end() && reader.batch.is_empty() {}
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

    /// Starts the merge of the next waiting file.
    fn begin_next(&mut self) -> Result<(), Error> {
        let Some(Waiting { path, key: (_, order), kept }) = self.waiting.pop() else { return Ok(()) };
        let reader = if let Some(mut reader) = kept {
            reader.begin_batch();
            reader
        } else {
            self.close_least_recent(&path)?;
            let source = Capture::open(&path, &self.limits, &self.memory)?;
            Box::new(Reader::new(source, order, &self.memory))
        };
        self.started.hold(order);
        self.started.push(reader);
        Ok(())
    }

    /// Returns the length of the blocks in which a file is read, in octets, which depends on the number of
    /// files being merged.
    fn block_len(&self) -> u32 {
        let file_count = self.started.len() as u64 + 1;
        let share = self.memory.max_bytes() / BLOCKS_PART / file_count;
        let limit = self.limits.batch_len;
        u32::try_from(share).unwrap_or(u32::MAX).max(BLOCK_LEN_MIN).min(limit)
    }

    /// Closes the file that was read least recently until its next read, if the maximum number of files is
    /// open.
    fn close_least_recent(&mut self, path: &Path) -> Result<(), Error> {
        let limit = self.limits.open_file_count_max.max(1);
        if self.started.close_least_recent(limit as usize) {
            Ok(())
        } else {
            Err(Error::TooManyOpenFiles { path: path.to_owned(), limit })
        }
    }

    /// Reads the next batch of a file whose batch is exhausted, and closes the file at its end. During this
    /// call, the file is not in the list of started files, so it cannot be closed temporarily.
    fn refill(&mut self, mut reader: Box<Reader>) -> Result<(), Error> {
        self.started.release(reader.order);
        if reader.source.is_parked() {
            self.close_least_recent(reader.source.path())?;
        }
        let result = self.read(&mut reader);
        // An error may have occurred after some frames.
        if matches!(result, Ok(true)) || !reader.batch.is_empty() {
            reader.begin_batch();
            self.started.hold(reader.order);
            self.started.push(reader);
        } else {
            self.close(&reader);
        }
        result.map(drop)
    }

    /// Reads the next batch of a file, with a shorter block if little memory is available. Returns `false` at
    /// the end of the file.
    fn read(&mut self, reader: &mut Reader) -> Result<bool, Error> {
        // After an error, a batch that is not empty is merged, and its previous frames were merged already.
        reader.batch.clear();
        reader.prepare(self.block_len()).or_else(|_| reader.prepare(BLOCK_LEN_MIN))?;
        loop {
            match reader.source.fill(&mut reader.batch, &mut self.interfaces) {
                Ok(next) if reader.batch.is_empty() && !next.is_end() => {}
                Ok(next) => {
                    // The frames read so far are delivered, and reading stops.
                    let settled = reader.settle().map(|()| !next.is_end());
                    return settled.inspect_err(|_| reader.source.stop());
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

    /// Reads the only remaining file directly into the caller's batch.
    fn read_last(&mut self, mut reader: Box<Reader>, batch: &mut FrameBatch) -> Result<Next, Error> {
        reader.source.set_block_len(self.limits.batch_len);
        reader.drop_batch();
        let result = reader.source.fill(batch, &mut self.interfaces);
        if result.as_ref().is_ok_and(|next| !next.is_end()) {
            self.started.push(reader);
        } else {
            self.close(&reader);
        }
        result
    }

    /// Fills a batch with the next frames of all files, in time order. A stop ends each file that was not read to its end,
    /// and so the merge.
    fn merge_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let len_max = (self.limits.batch_len as usize).max(1);
        loop {
            let next_waiting = self.waiting.last().map(|waiting| waiting.key);
            let used_up = self.started.first().is_some_and(|(head, _)| head.is_none());
            let first_key = self.started.first_key();
            if !used_up && next_waiting.is_some_and(|waiting| first_key.is_none_or(|first| waiting < first)) {
                self.begin_next()?;
                continue;
            }
            let Some(mut reader) = self.started.pop() else {
                let end = Next::End(End::of(self.memory.stop()));
                return Ok(if batch.is_empty() { end } else { Next::Frames });
            };
            if used_up {
                if self.started.is_empty() && self.waiting.is_empty() {
                    if batch.is_empty() {
                        return self.read_last(reader, batch);
                    }
                    self.started.push(reader);
                    return Ok(Next::Frames);
                }
                self.refill(reader)?;
                continue;
            }
            let end = self.started.first_key().into_iter().chain(next_waiting).min();
            if reader.at == 0 && end.is_none_or(|end| (reader.tail, reader.order) < end) {
                if batch.is_empty() {
                    std::mem::swap(batch, &mut reader.batch);
                    reader.head = None;
                    // The caller's batch may be larger than the one it replaced.
                    if reader.settle().is_err() {
                        reader.drop_batch();
                    }
                }
                self.started.push(reader);
                return Ok(Next::Frames);
            }
            reader.copy(end, batch, len_max);
            self.started.push(reader);
            if batch.bytes().len() >= len_max {
                return Ok(Next::Frames);
            }
        }
    }
}

impl Source for Files {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        self.merge_batch(batch)
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        let mut sum = self.closed;
        for reader in self.started.iter() {
            sum += reader.source.stats();
        }
        sum
    }

    fn interfaces(&self) -> &[Interface] {
        self.interfaces.as_slice()
    }

    fn progress(&self) -> u64 {
        let open = self.started.iter().map(|reader| reader.source.progress());
        let kept = self.waiting.iter().filter_map(|waiting| waiting.kept.as_ref());
        self.closed_len + open.sum::<u64>() + kept.map(|reader| reader.source.progress()).sum::<u64>()
    }

    fn total_len(&self) -> Option<u64> {
        self.total_len
    }
}

#[cfg(test)]
mod tests;
