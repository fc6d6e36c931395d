//! Input captures, the pipeline runs that read them, and the progress bar.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use flowgauge::source::{self, FileParts, ReadAhead, Shifted, SourceStats, Warning};
use flowgauge::{
    Error, ErrorPolicy, Files, Pipeline, PipelineStats, Resources, RunOptions, Sink, Source, SourceConfig,
    Summary,
};

use crate::args::ShiftArgs;
use crate::bar::Bar;
use crate::console::{Console, Failure};
use crate::interrupt;

/// Length of an input in octets from which it is read on a thread of its own.
const AHEAD_LEN_MIN: u64 = 4 << 20;

/// An open input with the settings for reading it.
pub(crate) struct Input {
    source: Box<dyn Source>,
    options: RunOptions,
    bar: Option<Arc<Bar>>,
    /// True if the input is long enough for further threads.
    is_long: bool,
}

impl Input {
    /// Opens capture files, which share the budget of the pipelines. Reports files that cannot be opened, and opens the
    /// remaining ones; `None` if none can be opened.
    pub(crate) fn open(paths: &[PathBuf], resources: &Resources, console: &mut Console) -> Option<Self> {
        let files = open_files(paths, resources, console)?;
        let is_long = is_worth_a_thread(&files);
        let input = Self::new(Box::new(files), ErrorPolicy::Continue);
        Some(Self { options: input.options.extract_ahead(is_long), is_long, ..input })
    }

    /// Opens capture files like [`open`](Self::open), for runs that process frame by frame, which only reading ahead
    /// makes faster.
    pub(crate) fn open_for_frames(
        paths: &[PathBuf],
        resources: &Resources,
        console: &mut Console,
    ) -> Option<Self> {
        let files = open_files(paths, resources, console)?;
        if !is_worth_a_thread(&files) {
            return Some(Self::new(Box::new(files), ErrorPolicy::Continue));
        }
        match ReadAhead::new(files) {
            Ok(source) => Some(Self::new(Box::new(source), ErrorPolicy::Continue)),
            Err(error) => {
                console.problem(format!("no thread can be started to read the input: {error}"));
                None
            }
        }
    }

    /// Creates an input from any source. `error_policy` is [`ErrorPolicy::Continue`] for a source that can continue
    /// after an error.
    pub(crate) fn new(source: Box<dyn Source>, error_policy: ErrorPolicy) -> Self {
        let options = RunOptions::default().stop(interrupt::stop()).error_policy(error_policy);
        Self { source, options, bar: None, is_long: false }
    }

    /// Shifts the times of frames.
    pub(crate) fn shifted(mut self, args: &ShiftArgs) -> Self {
        if !args.shift_time.is_empty() {
            self.source = Box::new(Shifted::new(self.source, args.shift_time.clone()));
        }
        self
    }

    /// Enables the progress bar, which is shown if standard error is a terminal and the length of the input is known.
    pub(crate) fn with_progress(mut self, is_wanted: bool) -> Self {
        if is_wanted && !self.is_stream() && io::stderr().is_terminal() {
            let bar = Arc::new(Bar::new());
            self.bar = Some(Arc::clone(&bar));
            self.options =
                self.options.progress(move |state| bar.update(state.input_octet_count, state.input_len));
        }
        self
    }

    /// Returns whether the frames of the input arrive in real time, so that results must not wait in a buffer.
    pub(crate) fn is_stream(&self) -> bool {
        self.source.total_len().is_none()
    }

    /// Returns whether the input is a file that is long enough for further threads, on more than one core.
    pub(crate) const fn is_long(&self) -> bool {
        self.is_long
    }

    pub(crate) fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    /// Runs a pipeline on the input, then reports read errors. Returns the counters of the run.
    pub(crate) fn run<K: Sink>(
        &mut self,
        mut pipeline: Pipeline<K>,
        console: &mut Console,
    ) -> Result<PipelineStats, Failure> {
        let stats = self.run_with(console, |source, options| pipeline.run(source, options))?;
        Ok(stats.unwrap_or_else(|| pipeline.stats()))
    }

    /// Runs pipelines on the input by a given function, then reports read errors. Returns the counters of the run;
    /// `None` if an error of the input ended it.
    pub(crate) fn run_with(
        &mut self,
        console: &mut Console,
        run: impl FnOnce(&mut dyn Source, &RunOptions) -> Result<Summary, Error>,
    ) -> Result<Option<PipelineStats>, Failure> {
        let outcome = run(&mut *self.source, &self.options);
        let (stats, errors) = results(outcome)?;
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        report(console, &errors, self.source.warnings());
        Ok(stats)
    }
}

/// An uncompressed capture file that several threads read.
pub(crate) struct InputParts {
    parts: FileParts,
    options: RunOptions,
    bar: Option<Arc<Bar>>,
}

impl InputParts {
    /// Opens a capture file. Reports a file that cannot be opened; `None` then.
    pub(crate) fn open(path: &Path, resources: &Resources, console: &mut Console) -> Option<Self> {
        let mut config = SourceConfig::from(resources.clone());
        config.stop = Some(interrupt::stop());
        match FileParts::open_with(path, config) {
            Ok(parts) => {
                let options =
                    RunOptions::default().stop(interrupt::stop()).error_policy(ErrorPolicy::Continue);
                Some(Self { parts, options, bar: None })
            }
            Err(error) => {
                console.problem(reason(&error));
                None
            }
        }
    }

    /// Enables the progress bar, which is shown if standard error is a terminal.
    pub(crate) fn with_progress(mut self, is_wanted: bool) -> Self {
        if is_wanted && io::stderr().is_terminal() {
            let bar = Arc::new(Bar::new());
            self.bar = Some(Arc::clone(&bar));
            self.options =
                self.options.progress(move |state| bar.update(state.input_octet_count, state.input_len));
        }
        self
    }

    pub(crate) fn stats(&self) -> SourceStats {
        self.parts.stats()
    }

    /// Runs pipelines on the file by a given function, then reports read errors. Returns the counters of the run; `None`
    /// if an error of the input ended it.
    pub(crate) fn run_with(
        &mut self,
        console: &mut Console,
        run: impl FnOnce(&mut FileParts, &RunOptions) -> Result<Summary, Error>,
    ) -> Result<Option<PipelineStats>, Failure> {
        let outcome = run(&mut self.parts, &self.options);
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        let (stats, errors) = results(outcome)?;
        report(console, &errors, self.parts.warnings());
        Ok(stats)
    }
}

/// Returns the counters of a run that was not ended by an error, and the errors of the input.
fn results(outcome: Result<Summary, Error>) -> Result<(Option<PipelineStats>, Vec<source::Error>), Failure> {
    match outcome {
        Ok(Summary { stats, errors, .. }) => Ok((Some(stats), errors)),
        Err(Error::Source(error)) => Ok((None, vec![error])),
        Err(Error::Config(error)) => Err(error.into()),
        Err(error) => Err(Failure::Other(error.to_string())),
    }
}

/// Reports the errors of reading, and the positions at which files are damaged.
fn report(console: &mut Console, errors: &[source::Error], warnings: &[Warning]) {
    errors.iter().for_each(|error| console.problem(reason(error)));
    warnings.iter().for_each(|warning| console.problem(warning));
}

/// Opens capture files; see [`Input::open`].
fn open_files(paths: &[PathBuf], resources: &Resources, console: &mut Console) -> Option<Files> {
    let (terminals, paths): (Vec<_>, Vec<_>) =
        paths.iter().partition(|path| is_stdin(path) && io::stdin().is_terminal());
    if !terminals.is_empty() {
        console.problem("-: standard input is a terminal; use a pipe or redirect a capture file");
    }
    let stdin = paths.iter().position(|path| is_stdin(path));
    let (paths, repeated): (Vec<_>, Vec<_>) =
        paths.iter().enumerate().partition(|(index, path)| !is_stdin(path) || Some(*index) == stdin);
    if !repeated.is_empty() {
        console.problem("-: specified more than once; standard input is read only once");
    }
    let paths: Vec<_> = paths.into_iter().map(|(_, path)| *path).collect();
    let mut readable_count = paths.len();
    let stop = interrupt::stop();
    let mut config = SourceConfig::from(resources.clone());
    config.stop = Some(stop.clone());
    let files = Files::open_readable(paths, config, |error| {
        // A signal that ends the wait for the first octets of a pipe leaves an input without frames, which is not
        // an error.
        if !stop.is_stopped() {
            readable_count -= 1;
            console.problem(reason(&error));
        }
    });
    if readable_count == 0 {
        return None;
    }
    Some(files)
}

/// Returns whether files are read and extracted on a thread of their own: on one core, or for a short input, it would not
/// help.
fn is_worth_a_thread(files: &Files) -> bool {
    let is_long = files.total_len().is_some_and(|len| len >= AHEAD_LEN_MIN);
    is_long && thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}

/// Describes a read error, and names an option that helps, if there is one.
fn reason(error: &source::Error) -> String {
    match error {
        source::Error::ZstdWindow { window_len, .. } => {
            format!("{error}; to read the file, use --zstd-window {window_len}")
        }
        source::Error::Memory { .. } => {
            format!("{error}, a quarter of --memory; increase --memory, or read fewer files at once")
        }
        _ => error.to_string(),
    }
}

/// Returns whether an input path denotes standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
