//! The thread that reads captures, or executes a query.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow_array::RecordBatch;
use flowgauge::StopHandle;
use flowgauge_arrow::scan::{Control, Scan};
use pyo3::{PyResult, Python};

use crate::failure::Failure;
use crate::interface::Ring;
use crate::object::{Object, Octets};

/// Number of complete batches that wait for the consumer.
const BATCH_COUNT: usize = 2;

/// Interval between checks for signals.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// A batch, an error after which there are no more batches, or the end.
pub(crate) type Item = Option<Result<RecordBatch, Failure>>;

/// The captures of a run.
#[derive(Debug)]
pub(crate) enum Captures {
    /// Files, in their order.
    Paths(Vec<PathBuf>),
    /// The octets of one capture.
    Octets(Octets),
    /// A file object, and its name.
    Object(Object, Option<String>),
    /// An interface.
    Interface(Box<Ring>),
}

/// Receives a batch, and returns whether there may be others.
pub(crate) type Receive<'r> = &'r (dyn Fn(RecordBatch) -> ControlFlow<()> + Sync);

/// What a thread does.
pub(crate) trait Work: Send {
    /// Returns whether the thread needs Python to make progress.
    fn needs_python(&self) -> bool {
        false
    }

    /// Returns what the thread must not drop, because that may need Python, for which the consumer may wait.
    fn kept(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Passes all batches to `receive`, until that ends the work, or the run is stopped.
    fn run(self: Box<Self>, run: &Arc<Run>, receive: Receive<'_>) -> Result<(), Failure>;
}

/// Reads captures.
#[derive(Debug)]
pub(crate) struct Reading {
    scan: Scan,
    captures: Captures,
}

impl Reading {
    /// Returns the work of a scan.
    pub(crate) fn work(scan: Scan, captures: Captures) -> Box<dyn Work> {
        Box::new(Self { scan, captures })
    }
}

impl Work for Reading {
    fn needs_python(&self) -> bool {
        matches!(self.captures, Captures::Object(..))
    }

    fn run(self: Box<Self>, run: &Arc<Run>, receive: Receive<'_>) -> Result<(), Failure> {
        let Self { scan, captures } = *self;
        let mut control = Control::default();
        control.stop = run.stop.clone();
        control.is_ahead = true;
        let warned = Arc::clone(run);
        control.warning = Some(Arc::new(move |warning| warned.warn(warning.to_string())));
        let result = match captures {
            Captures::Paths(paths) => scan.run(paths, &control, receive),
            Captures::Octets(octets) => scan.run_reader(io::Cursor::new(octets), None, &control, receive),
            Captures::Interface(mut ring) => scan.run_source(ring.as_mut(), None, &control, receive),
            Captures::Object(object, name) => scan.run_reader(object, name.as_deref(), &control, receive),
        };
        result.map_err(Failure::Scan)
    }
}

/// What a run shares with its stream.
#[derive(Default)]
pub(crate) struct Run {
    stop: StopHandle,
    #[cfg(feature = "sql")]
    stopped: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    warnings: Mutex<Vec<String>>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Run {
    /// Ends the run.
    pub(crate) fn stop(&self) {
        self.stop.stop();
        #[cfg(feature = "sql")]
        if let Some(stopped) = self.stopped.lock().unwrap_or_else(PoisonError::into_inner).take() {
            stopped();
        }
    }

    /// Calls a function when the run is stopped, at once if it was.
    #[cfg(feature = "sql")]
    pub(crate) fn on_stop(&self, stopped: impl FnOnce() + Send + 'static) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stopped));
        if self.stop.is_stopped() {
            self.stop();
        }
    }

    /// Returns the damage of captures so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds damage of a capture.
    pub(crate) fn warn(&self, text: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

#[derive(Debug)]
enum Event {
    Batch(RecordBatch),
    Ended(Result<(), Failure>),
}

/// The consumer's end of a thread that reads. Dropping it ends the thread.
pub(crate) struct Worker {
    run: Arc<Run>,
    /// `None` after the end.
    events: Option<Receiver<Event>>,
    thread: Option<JoinHandle<()>>,
    needs_python: bool,
    /// Number of the process of the thread. A copy of the process (fork) has no copy of the thread.
    process: u32,
    /// Dropped after the thread has ended.
    _kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts to work. `run` must not have been used before.
    pub(crate) fn start(work: Box<dyn Work>, run: Arc<Run>) -> Result<Self, Failure> {
        let (sender, events) = sync_channel(BATCH_COUNT);
        let (needs_python, kept) = (work.needs_python(), work.kept());
        let of_thread = Arc::clone(&run);
        let thread = thread::Builder::new()
            .name("flowgauge".to_owned())
            .spawn(move || execute(work, &of_thread, &sender))
            .map_err(Failure::Thread)?;
        let (events, thread) = (Some(events), Some(thread));
        Ok(Self { run, events, thread, needs_python, process: process::id(), _kept: kept })
    }

    /// Returns whether the thread needs Python to make progress.
    pub(crate) const fn needs_python(&self) -> bool {
        self.needs_python
    }

    /// Returns whether the process is a copy (fork) of that of the thread.
    fn is_forked(&self) -> bool {
        self.process != process::id()
    }

    /// Waits for the next batch or the end.
    pub(crate) fn wait(&mut self) -> Item {
        if self.is_forked() {
            return Some(Err(Failure::Forked));
        }
        let event = self.events.as_ref()?.recv();
        self.item(event.ok())
    }

    /// Waits for the next batch or the end, detached from Python, and processes signals.
    ///
    /// # Errors
    ///
    /// Returns the exception of a signal handler, such as `KeyboardInterrupt`.
    pub(crate) fn wait_with_signals(&mut self, py: Python<'_>) -> PyResult<Item> {
        loop {
            py.check_signals()?;
            if let Some(item) = py.detach(|| self.wait_for(SIGNAL_INTERVAL)) {
                return Ok(item);
            }
        }
    }

    /// Returns `None` if nothing arrived within a time.
    fn wait_for(&mut self, timeout: Duration) -> Option<Item> {
        if self.is_forked() {
            return Some(Some(Err(Failure::Forked)));
        }
        let Some(events) = &self.events else { return Some(None) };
        match events.recv_timeout(timeout) {
            Ok(event) => Some(self.item(Some(event))),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(self.item(None)),
        }
    }

    fn item(&mut self, event: Option<Event>) -> Item {
        let failure = match event {
            Some(Event::Batch(batch)) => return Some(Ok(batch)),
            // Batches are missing, and an error may be a consequence: a pipe seems to be empty.
            Some(Event::Ended(_)) if self.run.stop.is_stopped() => Some(Failure::Closed),
            Some(Event::Ended(result)) => result.err(),
            None => Some(Failure::Aborted),
        };
        self.events = None;
        failure.map(Err)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_forked() {
            // The thread may have held their locks.
            std::mem::forget((self.events.take(), self.thread.take()));
            return;
        }
        self.run.stop();
        // A thread that waits until a batch is received continues.
        self.events = None;
        // The thread of a file object may wait for Python, to which the current thread may be attached; it ends after
        // the read that is in progress. Other threads end within a batch of frames, or 100 ms of a pipe.
        if let Some(thread) = self.thread.take().filter(|_| !self.needs_python) {
            // A panic was reported as the end without a result.
            drop(thread.join());
        }
    }
}

/// Does the work, and passes its batches and its end to the consumer.
fn execute(work: Box<dyn Work>, run: &Arc<Run>, sender: &SyncSender<Event>) {
    let result = work.run(run, &|batch| match sender.send(Event::Batch(batch)) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    });
    // Fails if the consumer was dropped.
    drop(sender.send(Event::Ended(result)));
}
