//! Capture files one after another, without the frames that a checkpoint contains.

use std::collections::VecDeque;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flowgauge::base::FrameBatch;
use flowgauge::source::{End, Error, Interface, Next, SourceStats, Warning};
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
    /// True once a read has failed: the end that follows is not that of the file.
    has_failed: bool,
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
        self.current = Some(Current { source, path, len, index, skipped_count, has_failed: false });
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

    /// Closes the current file, and notes that it was read to its end unless a read has failed.
    fn close(&mut self) {
        let Some(Current { source, path, len, index, has_failed, .. }) = self.current.take() else { return };
        self.closed += source.stats();
        self.closed_len += source.progress();
        self.warnings.extend_from_slice(source.warnings());
        if has_failed {
            return;
        }
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
                return Ok(Next::End(End::Complete));
            };
            let next = current.source.next_batch(batch);
            current.has_failed |= next.is_err();
            let is_over = matches!(next, Ok(Next::End(End::Complete)));
            let is_missing = is_over && !current.has_failed && current.skipped_count > 0;
            if !self.skip(batch) || is_missing {
                self.begin_anew()?;
                continue;
            }
            self.note(batch);
            match next? {
                Next::End(End::Complete) => self.close(),
                // The next run continues with the frames that were not read.
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

#[cfg(test)]
mod tests {
    use flowgauge::base::Frame;
    use flowgauge::source::PcapngWriter;
    use flowgauge::{Limits, LinkType, Resources, StopHandle};

    use super::*;

    /// Writes a capture with frames of given lengths.
    fn capture(name: &str, lens: &[usize]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("flowgauge-sequence-{name}-{}", std::process::id()));
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        for (number, len) in lens.iter().enumerate() {
            let data = vec![number as u8; *len];
            let timestamp = Timestamp::from_nanos(number as u64);
            let wire_len = *len as u32;
            let frame =
                Frame { timestamp, link_type: LinkType::ETHERNET, data: &data, wire_len, interface: 0 };
            writer.write(&frame, &[]).unwrap();
        }
        fs::write(&path, writer.finish().unwrap()).unwrap();
        path
    }

    /// A run over a file that continues with `inputs`, and reads at most `count` batches. Returns the number of its frames
    /// and the result of the last read.
    fn run(
        path: &Path,
        (stop, source_bytes_max): (&StopHandle, u64),
        inputs: &Arc<Mutex<Inputs>>,
        count: usize,
    ) -> (usize, Result<Next, Error>) {
        let mut limits = Limits::DEFAULT;
        (limits.batch_len, limits.source_bytes_max) = (4096, source_bytes_max);
        let mut config = SourceConfig::from(Resources::new(limits));
        config.stop = Some(stop.clone());
        let mut source = Sequence::new(&[PathBuf::from(path)], config, Arc::clone(inputs));
        let (mut batch, mut frame_count) = (FrameBatch::new(), 0);
        let mut next = Ok(Next::Frames);
        for _ in 0..count {
            next = source.next_batch(&mut batch);
            frame_count += batch.len();
            if !matches!(next, Ok(Next::Frames)) {
                break;
            }
        }
        (frame_count, next)
    }

    fn read_to_end(inputs: &Arc<Mutex<Inputs>>) -> bool {
        locked(inputs).get(0).is_some_and(|file| file.len.is_some())
    }

    #[test]
    fn a_stop_before_the_frames_of_the_checkpoint_are_skipped_is_not_the_end_of_the_file() {
        let path = capture("stop", &[500; 100]);
        let memory = Limits::DEFAULT.source_bytes_max;
        let inputs = Arc::default();
        let (read_count, next) = run(&path, (&StopHandle::new(), memory), &inputs, 4);
        assert!(read_count > 0 && read_count < 100 && matches!(next, Ok(Next::Frames)));
        let stopped = StopHandle::new();
        stopped.stop();
        let (count, next) = run(&path, (&stopped, memory), &inputs, 1000);
        assert!(count == 0 && matches!(next, Ok(Next::End(End::Stopped))), "{count} {next:?}");
        assert!(!read_to_end(&inputs), "the rest of the file would be lost");
        let (count, next) = run(&path, (&StopHandle::new(), memory), &inputs, 1000);
        assert!(matches!(next, Ok(Next::End(End::Complete))) && read_to_end(&inputs), "{next:?}");
        assert_eq!(read_count + count, 100);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_failed_read_is_not_the_end_of_the_file() {
        let mut lens = vec![500; 100];
        lens[80] = 200_000;
        let path = capture("failure", &lens);
        let inputs = Arc::default();
        // The first run, and one that skips frames before it fails.
        for expected in [80, 0] {
            let (count, next) = run(&path, (&StopHandle::new(), 64 << 10), &inputs, 1000);
            assert!(count == expected && matches!(next, Err(Error::Memory { .. })), "{count} {next:?}");
            assert!(!read_to_end(&inputs));
        }
        let (count, next) = run(&path, (&StopHandle::new(), Limits::DEFAULT.source_bytes_max), &inputs, 1000);
        assert!(count == 20 && matches!(next, Ok(Next::End(End::Complete))), "{count} {next:?}");
        assert!(read_to_end(&inputs));
        fs::remove_file(path).unwrap();
    }
}
