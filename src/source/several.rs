//! Several captures as one, merged in time order.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::file::FileSource;
use super::stats::SourceStats;
use super::warning::Warning;
use super::{Interface, Source};
use crate::base::{FrameBatch, Limits, Timestamp};

/// Several capture files, merged in time order; for equal times, in the order in which the files were given.
///
/// All files are opened at first, so that what is no capture is known before anything is read; each is then closed
/// until the merge reaches its first frame. A batch that lies ahead of all other files is handed over as it is; only
/// where files overlap in time are frames copied. With one file there is no overhead.
///
/// The frames of one file keep their order: where time steps back within it, the merge takes the latest time so far.
/// Interfaces that files describe alike are one, so that the files of a rotating capture stay one interface; those of
/// one file are never joined.
///
/// At most [`Limits::open_file_count_max`] files are open at once. A file that the merge has begun holds a block of
/// at most [`Limits::batch_len`] octets.
#[derive(Debug)]
pub struct Files {
    limits: Limits,
    /// Files that the merge has not reached, the next one last.
    waiting: Vec<Waiting>,
    /// Files that the merge is within, by the key of their next frame, the next one last. One whose batch is used up is
    /// at the end, and is read on before anything else.
    #[expect(clippy::vec_box, reason = "they move on every change of the file whose frame is next")]
    open: Vec<Box<Reader>>,
    interfaces: Vec<Interface>,
    /// The number of the n-th interface of a file that is described so.
    numbers: HashMap<(Interface, u32), u32>,
    warnings: Vec<Warning>,
    /// Of files that are done.
    closed: SourceStats,
    closed_len: u64,
    total_len: Option<u64>,
    refills: u64,
}

/// What orders frames: time, then the place of the file among those given.
type Key = (Timestamp, usize);

#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    key: Key,
    /// What cannot be opened twice stays open, with the frames that were read to know its first time.
    kept: Option<(FileSource, FrameBatch)>,
}

/// A file that the merge is within.
#[derive(Debug)]
struct Reader {
    source: FileSource,
    order: usize,
    batch: FrameBatch,
    /// The next frame of the batch.
    at: usize,
    /// The latest time up to that frame; `None` if the batch is used up.
    head: Option<Timestamp>,
    /// The latest time up to the end of the batch.
    tail: Timestamp,
    /// The numbers of the file's interfaces among those of all files.
    map: Vec<u32>,
    occurrences: HashMap<Interface, u32>,
    refilled: u64,
}

impl Reader {
    fn new(source: FileSource, order: usize) -> Self {
        Self {
            source,
            order,
            batch: FrameBatch::new(),
            at: 0,
            head: None,
            tail: Timestamp::ZERO,
            map: Vec::new(),
            occurrences: HashMap::new(),
            refilled: 0,
        }
    }

    /// Of the next frame; a used-up batch comes first.
    fn key(&self) -> Key {
        (self.head.unwrap_or(Timestamp::ZERO), self.order)
    }

    /// Begins with the first frame of the batch.
    fn begin_batch(&mut self) {
        self.batch.map_interfaces(&self.map);
        self.at = 0;
        self.head = self.batch.get(0).map(|frame| frame.timestamp.max(self.tail));
        self.tail = self.batch.iter().map(|frame| frame.timestamp).fold(self.tail, Timestamp::max);
    }

    /// Copies frames while they lie ahead of `end`, until `out` has `len_max` octets.
    fn copy(&mut self, end: Option<Key>, out: &mut FrameBatch, len_max: usize) {
        while let Some(head) = self.head
            && end.is_none_or(|end| (head, self.order) < end)
            && out.bytes().len() < len_max
            && let Some(frame) = self.batch.get(self.at)
        {
            out.push(&frame);
            self.at += 1;
            self.head = self.batch.get(self.at).map(|next| next.timestamp.max(head));
        }
    }
}

impl Files {
    /// Opens captures with the default limits; the path `-` is standard input.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        Self::open_with(paths, Limits::DEFAULT)
    }

    /// Opens captures and looks at the first frame of each.
    ///
    /// # Errors
    ///
    /// [`Error::NoFiles`] without a path, and whatever [`FileSource::open_with`] says of the first file that cannot be
    /// read.
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        limits: Limits,
    ) -> Result<Self, Error> {
        let mut is_named = false;
        let files = Self::open_all(paths.into_iter().inspect(|_| is_named = true), limits, Err)?;
        if is_named { Ok(files) } else { Err(Error::NoFiles) }
    }

    /// Opens those captures that can be opened, and hands the errors of the others to `refuse`; nothing of the good ones
    /// is lost. Without any, there are no frames.
    pub fn open_readable<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        limits: Limits,
        mut refuse: impl FnMut(Error),
    ) -> Self {
        let refuse = |error| -> Result<(), std::convert::Infallible> {
            refuse(error);
            Ok(())
        };
        match Self::open_all(paths, limits, refuse) {
            Ok(files) => files,
            Err(never) => match never {},
        }
    }

    fn open_all<P: AsRef<Path>, E>(
        paths: impl IntoIterator<Item = P>,
        limits: Limits,
        mut refuse: impl FnMut(Error) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut files = Self {
            limits,
            waiting: Vec::new(),
            open: Vec::new(),
            interfaces: Vec::new(),
            numbers: HashMap::new(),
            warnings: Vec::new(),
            closed: SourceStats::default(),
            closed_len: 0,
            total_len: Some(0),
            refills: 0,
        };
        let mut paths = paths.into_iter().enumerate().peekable();
        while let Some((order, path)) = paths.next() {
            // A file on its own is read straight away.
            let is_only = order == 0 && paths.peek().is_none();
            let opened =
                if is_only { files.begin_only(path.as_ref()) } else { files.look_at(path.as_ref(), order) };
            opened.or_else(&mut refuse)?;
        }
        files.waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.key));
        Ok(files)
    }

    fn begin_only(&mut self, path: &Path) -> Result<(), Error> {
        let source = open_path(path, self.limits)?;
        self.total_len = source.total_len();
        self.open.push(Box::new(Reader::new(source, 0)));
        Ok(())
    }

    fn look_at(&mut self, path: &Path, order: usize) -> Result<(), Error> {
        let mut source = open_path(path, self.limits)?;
        let len = source.total_len();
        let mut batch = FrameBatch::new();
        while source.next_batch(&mut batch)? && batch.is_empty() {}
        self.total_len = self.total_len.zip(len).map(|(sum, len)| sum + len);
        let first = batch.get(0).map_or(Timestamp::ZERO, |frame| frame.timestamp);
        let kept = len.is_none().then_some((source, batch));
        self.waiting.push(Waiting { path: path.to_owned(), key: (first, order), kept });
        Ok(())
    }

    /// Begins the waiting file that comes next.
    fn begin_next(&mut self) -> Result<(), Error> {
        let Some(Waiting { path, key: (_, order), kept }) = self.waiting.pop() else { return Ok(()) };
        let reader = if let Some((source, batch)) = kept {
            let mut reader = Reader::new(source, order);
            reader.batch = batch;
            self.adopt_interfaces(&mut reader);
            reader.begin_batch();
            reader
        } else {
            self.make_room(&path)?;
            Reader::new(FileSource::open_with(&path, self.limits)?, order)
        };
        self.put_back(Box::new(reader));
        Ok(())
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
        let result = loop {
            match reader.source.next_batch(&mut reader.batch) {
                Ok(true) if reader.batch.is_empty() => {}
                result => break result,
            }
        };
        self.adopt_interfaces(&mut reader);
        if matches!(result, Ok(true)) {
            reader.begin_batch();
            self.put_back(reader);
        } else {
            self.close(&reader);
        }
        result.map(drop)
    }

    fn close(&mut self, reader: &Reader) {
        self.closed += reader.source.stats();
        self.closed_len += reader.source.progress();
        self.warnings.extend_from_slice(reader.source.warnings());
    }

    /// Numbers the interfaces that a file has described since the last time.
    fn adopt_interfaces(&mut self, reader: &mut Reader) {
        for interface in reader.source.interfaces().iter().skip(reader.map.len()) {
            let occurrence = reader.occurrences.entry(interface.clone()).or_insert(0);
            let next = self.interfaces.len() as u32;
            let number = *self.numbers.entry((interface.clone(), *occurrence)).or_insert(next);
            if number == next {
                self.interfaces.push(interface.clone());
            }
            *occurrence += 1;
            reader.map.push(number);
        }
    }

    /// The only file left reads straight into the caller's batch.
    fn read_last(&mut self, mut reader: Box<Reader>, batch: &mut FrameBatch) -> Result<bool, Error> {
        let result = reader.source.next_batch(batch);
        self.adopt_interfaces(&mut reader);
        batch.map_interfaces(&reader.map);
        if matches!(result, Ok(true)) {
            self.open.push(reader);
        } else {
            self.close(&reader);
        }
        result
    }
}

fn open_path(path: &Path, limits: Limits) -> Result<FileSource, Error> {
    if path == Path::new("-") { FileSource::stdin_with(limits) } else { FileSource::open_with(path, limits) }
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
        &self.interfaces
    }

    fn progress(&self) -> u64 {
        let open = self.open.iter().map(|reader| reader.source.progress());
        let kept = self.waiting.iter().filter_map(|waiting| waiting.kept.as_ref());
        self.closed_len + open.sum::<u64>() + kept.map(|(source, _)| source.progress()).sum::<u64>()
    }

    fn total_len(&self) -> Option<u64> {
        self.total_len
    }
}

#[cfg(test)]
mod tests;
