//! Capture files one after another, without the frames that a checkpoint contains.

use std::collections::VecDeque;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flowgauge::base::FrameBatch;
use flowgauge::source::{Error, Interface, Next, SourceStats, Warning};
use flowgauge::{Files, Source, SourceConfig, Timestamp};

use super::inputs::Inputs;
use super::pace::locked;

/// A source of the frames of files one after another, which notes the frames of each.
pub(super) struct Sequence {
    waiting: VecDeque<PathBuf>,
    config: SourceConfig,
    current: Option<Current>,
    inputs: Arc<Mutex<Inputs>>,
    warnings: Vec<Warning>,
    closed: SourceStats,
    closed_len: u64,
    total_len: Option<u64>,
}

/// The file that is read.
struct Current {
    source: Files,
    path: PathBuf,
    /// Length of the file in octets before it was read. It may grow meanwhile.
    len: Option<u64>,
    /// Index in the list of recognized files.
    index: Option<usize>,
    /// Number of frames that are in the checkpoint, and were not skipped yet.
    skipped_count: u64,
}

impl Sequence {
    /// Creates a source of files in the order of their first frames.
    pub(super) fn new(paths: &[PathBuf], config: SourceConfig, inputs: Arc<Mutex<Inputs>>) -> Self {
        let mut waiting: Vec<_> =
            paths.iter().map(|path| (first_time(path, &config), path.clone())).collect();
        waiting.sort_by_key(|(time, _)| *time);
        let total_len = paths.iter().map(|path| file_len(path)).sum();
        let waiting = waiting.into_iter().map(|(_, path)| path).collect();
        Self {
            waiting,
            config,
            current: None,
            inputs,
            warnings: Vec::new(),
            closed: SourceStats::default(),
            closed_len: 0,
            total_len,
        }
    }

    /// Opens the next file with frames that are not in the checkpoint. Returns `false` at the end.
    fn open_next(&mut self) -> Result<bool, Error> {
        while let Some(path) = self.waiting.pop_front() {
            let mut inputs = locked(&self.inputs);
            let index = inputs.find(&path);
            let known = index.and_then(|index| inputs.get(index));
            let len = file_len(&path);
            if known.is_some_and(|known| known.len.is_some() && known.len == len) {
                inputs.skipped_count += 1;
                self.closed_len += len.unwrap_or(0);
                continue;
            }
            let skipped_count = known.map_or(0, |known| known.frame_count);
            drop(inputs);
            self.open(path, index, skipped_count)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Opens a file, which is added to the list unless it is known.
    fn open(&mut self, path: PathBuf, known: Option<usize>, skipped_count: u64) -> Result<(), Error> {
        let len = file_len(&path);
        let source = Files::open_with(iter::once(&path), self.config.clone())?;
        let index = known.or_else(|| locked(&self.inputs).add(&path));
        self.current = Some(Current { source, path, len, index, skipped_count });
        Ok(())
    }

    /// Removes the first frames of a batch that are in the checkpoint already. Returns whether the file is the one that
    /// was read.
    fn skip(&mut self, batch: &mut FrameBatch) -> bool {
        let Some(current) = &mut self.current else { return true };
        let count = current.skipped_count.min(batch.len() as u64) as usize;
        if count == 0 {
            return true;
        }
        current.skipped_count -= count as u64;
        let inputs = locked(&self.inputs);
        let known = current.index.and_then(|index| inputs.get(index));
        let is_known = current.skipped_count > 0
            || batch.get(count - 1).zip(known).is_some_and(|(last, known)| known.ends_with(&last));
        let mut rest = FrameBatch::new();
        batch.iter().skip(count).for_each(|frame| rest.push(&frame));
        *batch = rest;
        is_known
    }

    /// Begins with the first frame of the current file, because it is not the one that it was taken for.
    fn begin_anew(&mut self) -> Result<(), Error> {
        let Some(Current { path, .. }) = self.current.take() else { return Ok(()) };
        self.open(path, None, 0)
    }

    /// Notes the frames of the current file that are processed next.
    fn note(&self, batch: &FrameBatch) {
        let index = self.current.as_ref().and_then(|current| current.index);
        let last = batch.len().checked_sub(1).and_then(|last| batch.get(last));
        if let Some((index, last)) = index.zip(last)
            && let Some(file) = locked(&self.inputs).get_mut(index)
        {
            file.add(batch.len(), &last);
        }
    }

    /// Notes the end of the current file.
    fn close(&mut self) {
        let Some(Current { source, path, len, index, .. }) = self.current.take() else { return };
        self.closed += source.stats();
        self.closed_len += source.progress();
        self.warnings.extend_from_slice(source.warnings());
        let mut inputs = locked(&self.inputs);
        if let Some(file) = index.and_then(|index| inputs.get_mut(index)) {
            file.end(&path, len);
        }
    }
}

impl Source for Sequence {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        loop {
            let Some(current) = &mut self.current else {
                if self.open_next()? {
                    continue;
                }
                return Ok(Next::End);
            };
            let next = current.source.next_batch(batch);
            let is_missing = matches!(next, Ok(Next::End)) && current.skipped_count > 0;
            if !self.skip(batch) || is_missing {
                self.begin_anew()?;
                continue;
            }
            self.note(batch);
            match next? {
                Next::End => self.close(),
                Next::Frames if batch.is_empty() => {}
                next => return Ok(next),
            }
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        let mut stats = self.closed;
        if let Some(current) = &self.current {
            stats += current.source.stats();
        }
        stats
    }

    fn interfaces(&self) -> &[Interface] {
        self.current.as_ref().map_or(&[], |current| current.source.interfaces())
    }

    fn progress(&self) -> u64 {
        self.closed_len + self.current.as_ref().map_or(0, |current| current.source.progress())
    }

    fn total_len(&self) -> Option<u64> {
        self.total_len
    }
}

/// Returns the time of the first frame of a file; `None` for one that cannot be read, or that can be read only once.
fn first_time(path: &Path, config: &SourceConfig) -> Option<Timestamp> {
    file_len(path)?;
    let mut source = Files::open_with(iter::once(path), config.clone()).ok()?;
    let mut batch = FrameBatch::new();
    let _ = source.next_batch(&mut batch).ok()?;
    batch.get(0).map(|frame| frame.timestamp)
}

/// Returns the length of a regular file in octets.
fn file_len(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len())
}
