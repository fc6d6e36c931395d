//! Reading on another thread than the one that processes the frames.

use std::io;
use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use super::error::Error;
use super::stats::SourceStats;
use super::warning::Warning;
use super::{End, Interface, Next, Source};
use crate::base::FrameBatch;
use crate::base::ring::{Consumer, Producer, ring};

/// Number of batches that are read ahead at most. Few, so that they remain in a cache that both threads share.
const BATCH_COUNT: usize = 4;

/// A source that is read on a thread of its own, up to four batches ahead.
///
/// With two cores, the frames of a file are processed while the next ones are read, which takes a quarter to a third of the
/// time of a pipeline. The frames, errors, counts and warnings are those of the source, in the same order; counts
/// include only batches that [`next_batch`](Source::next_batch) has returned. Besides the batches, at most
/// [`Limits::batch_len`](crate::base::Limits::batch_len) octets each, nothing is stored, and nothing is allocated per frame.
///
/// When the value is dropped, the thread ends after the batch that it reads; it is not awaited, because a pipe may never
/// have another one.
///
/// ```
/// use flowgauge::source::ReadAhead;
/// use flowgauge::{FileSource, Pipeline, RunOptions};
///
/// let mut source = ReadAhead::new(FileSource::open("examples/data/web.pcap")?)?;
/// let mut pipeline = Pipeline::builder().build(())?;
/// let summary = pipeline.run(&mut source, &RunOptions::default())?;
/// assert_eq!(summary.stats.frame_count, 1286);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReadAhead {
    read: Consumer<Item>,
    empty: Producer<FrameBatch>,
    /// `None` once the thread was joined.
    thread: Option<JoinHandle<()>>,
    warnings: Vec<Warning>,
    interfaces: Vec<Interface>,
    state: State,
    /// Reason for the end, once the source has ended.
    end: End,
}

/// The result of one read.
#[derive(Debug)]
struct Item {
    batch: FrameBatch,
    result: Result<Next, Error>,
    /// Warnings and interfaces since the item before.
    warnings: Vec<Warning>,
    interfaces: Vec<Interface>,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct State {
    stats: SourceStats,
    progress: u64,
    total_len: Option<u64>,
}

impl State {
    fn of(source: &impl Source) -> Self {
        Self { stats: source.stats(), progress: source.progress(), total_len: source.total_len() }
    }
}

impl ReadAhead {
    /// Starts the thread that reads the source.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if it cannot start another thread.
    pub fn new(source: impl Source + 'static) -> io::Result<Self> {
        let (to_caller, read) = ring(BATCH_COUNT);
        let (mut empty, to_fill) = ring(BATCH_COUNT);
        for _ in 0..BATCH_COUNT {
            // The queue has space for all of them.
            let _ = empty.push(FrameBatch::new());
        }
        let (warnings, interfaces) = (source.warnings().to_vec(), source.interfaces().to_vec());
        let state = State::of(&source);
        let counts = (warnings.len(), interfaces.len());
        let thread = thread::Builder::new()
            .name("read-ahead".to_owned())
            .spawn(move || read_all(source, counts, to_fill, to_caller))?;
        Ok(Self { read, empty, thread: Some(thread), warnings, interfaces, state, end: End::Complete })
    }
}

/// Reads the source until it ends, or until nobody receives its batches. `counts` are the numbers of warnings and
/// interfaces that the receiver knows.
fn read_all(
    mut source: impl Source,
    counts: (usize, usize),
    mut to_fill: Consumer<FrameBatch>,
    mut to_caller: Producer<Item>,
) {
    let (mut warning_count, mut interface_count) = counts;
    for mut batch in to_fill.iter() {
        let result = source.next_batch(&mut batch);
        let is_end = result.as_ref().is_ok_and(|next| next.is_end());
        let warnings = source.warnings().get(warning_count..).unwrap_or_default().to_vec();
        let interfaces = source.interfaces().get(interface_count..).unwrap_or_default().to_vec();
        warning_count += warnings.len();
        interface_count += interfaces.len();
        let item = Item { batch, result, warnings, interfaces, state: State::of(&source) };
        if to_caller.push(item).is_err() || is_end {
            return;
        }
    }
}

impl Source for ReadAhead {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        let Some(item) = self.read.pop() else {
            batch.clear();
            // The thread has ended, after the end of the input or by a panic.
            if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                resume_unwind(panic);
            }
            return Ok(Next::End(self.end));
        };
        let Item { batch: filled, result, warnings, interfaces, state } = item;
        // A thread that has ended needs no batches.
        let _ = self.empty.push(std::mem::replace(batch, filled));
        self.warnings.extend(warnings);
        self.interfaces.extend(interfaces);
        self.state = state;
        if let Ok(Next::End(end)) = result {
            self.end = end;
        }
        result
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        self.state.stats
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn progress(&self) -> u64 {
        self.state.progress
    }

    fn total_len(&self) -> Option<u64> {
        self.state.total_len
    }
}
