//! A handle that stops a run from another thread or a signal handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Ends the input of a running pipeline, or of a source, from any thread or from a signal handler.
///
/// Clones share one flag. A run that is stopped ends all open flows, as at the end of its input, so that their
/// records are not lost. A source that waits for input notices the flag within 100 ms.
///
/// ```
/// use flowgauge::{FileSource, Pipeline, RunOptions, StopHandle};
///
/// let stop = StopHandle::new();
/// // In a program: signal_hook::flag::register(SIGINT, stop.flag())?;
/// stop.stop();
/// let mut pipeline = Pipeline::builder().build(())?;
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// let summary = pipeline.run(&mut source, &RunOptions::default().stop(stop))?;
/// assert_eq!(summary.stats.frame_count, 0);
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Creates a stop handle with a flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a handle that SIGINT (Ctrl-C) and SIGTERM set. A second one of these signals ends the process at once,
    /// with exit status 130 or 143.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if a signal handler cannot be installed.
    #[cfg(all(feature = "net", unix))]
    pub fn on_interrupt() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag::{register, register_conditional_shutdown};
        let stop = Self::new();
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order, so that the first signal finds the flag unset.
            register_conditional_shutdown(signal, 128 + signal, stop.flag())?;
            register(signal, stop.flag())?;
        }
        Ok(stop)
    }

    /// Ends the input of the pipeline or source. Safe to call in a signal handler: it stores one atomic flag.
    pub fn stop(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Returns the flag of the stop handle, for libraries that set a flag when a signal arrives.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl From<Arc<AtomicBool>> for StopHandle {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}
