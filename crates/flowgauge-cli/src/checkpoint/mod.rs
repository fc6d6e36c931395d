//! Runs that continue the open flows of an earlier one.
//!
//! A checkpoint also states which frames of which files were processed, and where standard output ended. A run that follows
//! one that ended in any way begins with the first frame, and the first row, behind the checkpoint.

mod args;
mod file;
mod inputs;
mod output;
mod pace;
mod sequence;
mod show;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flowgauge::checkpoint::{Invalid, Reader, State, Writer};
use flowgauge::pipeline::RecordSink;
use flowgauge::source::SourceStats;
use flowgauge::{
    Builder, ErrorPolicy, Pipeline, PipelineStats, Resources, RunEnd, Sink, Source, SourceConfig, Stage,
};
use serde::{Deserialize, Serialize};

pub(crate) use args::CheckpointArgs;
use file::CheckpointFile;
use inputs::Inputs;
use output::Position;
use pace::{Pace, Paced, locked};
use sequence::Sequence;
pub(crate) use show::{CheckpointCommand, run as run_command};

use crate::console::{Console, Failure, write_line};
use crate::human::plural;
use crate::input::Input;
use crate::interrupt;

/// Name of the attachment with the state of a run.
const ATTACHMENT: &str = "flowgauge.run";

/// The state of a run beside its pipeline.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RunState {
    /// Name of the command.
    command: String,
    /// Version of the program that wrote the checkpoint.
    version: String,
    inputs: Inputs,
    /// Where standard output ended; `None` if it was no file.
    output: Option<Position>,
    /// True if the run ended, so that no rows follow those before the checkpoint.
    has_ended: bool,
}

impl RunState {
    /// Returns the state in a checkpoint.
    fn of<R: std::io::Read>(reader: &Reader<R>) -> Option<Self> {
        serde_json::from_slice(reader.attachment(ATTACHMENT)?).ok()
    }
}

/// Sinks that can write their rows before the checkpoint that relies on them.
pub(crate) trait Flush {
    /// Writes what is held back. Returns whether all rows could be written.
    fn flush(&mut self) -> bool;

    /// Attaches what the sink keeps for all flows to a checkpoint, with the counters of this run.
    fn attach(&self, stats: &PipelineStats, writer: &mut Writer<File>) -> io::Result<()> {
        let _ = (stats, writer);
        Ok(())
    }

    /// Continues with what was attached to a checkpoint.
    fn restore(&mut self, reader: &Reader<File>) -> Result<(), Invalid> {
        let _ = reader;
        Ok(())
    }
}

impl<G: Stage> Flush for RecordSink<'_, G> {
    fn flush(&mut self) -> bool {
        RecordSink::flush(self).is_continue()
    }
}

/// A run with a checkpoint.
pub(crate) struct Run<'a> {
    pub(crate) command: &'static str,
    pub(crate) args: &'a CheckpointArgs,
    pub(crate) builder: &'a Builder,
}

/// Returns a source that passes the frames of another one on.
pub(crate) type Around = Box<dyn FnOnce(Box<dyn Source>) -> Box<dyn Source>>;

/// The input of a run.
pub(crate) enum Origin<'a> {
    /// Capture files, without the frames that are in the checkpoint, and whether a progress bar is shown.
    Files(&'a [PathBuf], &'a Resources, bool),
    /// The same, with a source around that of their frames.
    Within(&'a [PathBuf], &'a Resources, bool, Around),
    /// A source of frames that arrive now.
    Live(Box<dyn Source>),
}

impl Origin<'_> {
    /// Returns the files that are read.
    const fn inputs(&self) -> &[PathBuf] {
        match self {
            Self::Files(files, ..) | Self::Within(files, ..) => files,
            Self::Live(_) => &[],
        }
    }

    fn open(self, inputs: &Arc<Mutex<Inputs>>, pace: &Arc<Mutex<Pace>>) -> Input {
        let pace = Arc::clone(pace);
        let (files, resources, has_bar, around) = match self {
            Self::Files(files, resources, has_bar) => (files, resources, has_bar, None),
            Self::Within(files, resources, has_bar, around) => (files, resources, has_bar, Some(around)),
            Self::Live(source) => return Input::new(Box::new(Paced { source, pace }), ErrorPolicy::End),
        };
        let mut config = SourceConfig::from(resources.clone());
        config.stop = Some(interrupt::stop());
        let source: Box<dyn Source> = Box::new(Sequence::new(files, config, Arc::clone(inputs)));
        let source = match around {
            Some(around) => around(source),
            None => source,
        };
        Input::new(Box::new(Paced { source, pace }), ErrorPolicy::Continue).with_progress(has_bar)
    }
}

/// What a run with a checkpoint has counted.
pub(crate) struct Outcome {
    pub(crate) stats: PipelineStats,
    pub(crate) source: SourceStats,
    /// Number of files without new frames.
    pub(crate) skipped_count: u64,
    /// No other process uses the checkpoint meanwhile.
    file: CheckpointFile,
}

impl Outcome {
    /// Returns the description of a result, with the files that were skipped.
    pub(crate) fn describe(&self, result: String) -> String {
        match self.skipped_count {
            0 => result,
            count => format!("{result}, {} without new packets", plural(count, "file")),
        }
    }
}

impl Run<'_> {
    /// Continues the flows of the checkpoint, if there is one, with all frames that are not in it, and replaces it.
    pub(crate) fn run<K: Sink + Flush>(
        &self,
        sink: K,
        origin: Origin<'_>,
        console: &mut Console,
    ) -> Result<Outcome, Failure>
    where
        K::State: State,
    {
        let Some(path) = &self.args.checkpoint else {
            return Err(Failure::Usage("no checkpoint".to_owned()));
        };
        let file = CheckpointFile::lock(path, origin.inputs())?;
        let is_only_end =
            self.args.finish && matches!(origin, Origin::Files([], ..) | Origin::Within([], ..));
        let (mut pipeline, inputs) = self.restore(&file, (sink, is_only_end))?;
        let inputs = Arc::new(Mutex::new(inputs));
        let pace = Arc::new(Mutex::new(Pace::new(self.args.interval())));
        // States where the rows of this run begin, and that it has not ended.
        self.write(&file, &mut pipeline, &inputs, false)?;
        let is_live = matches!(origin, Origin::Live(_));
        let mut input = origin.open(&inputs, &pace);
        let (mut failure, mut end) = (None, None);
        input.run_with(console, |source, options| {
            let mut errors = Vec::new();
            loop {
                let mut summary = pipeline.feed(source, options)?;
                errors.append(&mut summary.errors);
                if !locked(&pace).is_paused() || interrupt::stop().is_stopped() {
                    summary.errors = errors;
                    end = Some(summary.end);
                    return Ok(summary);
                }
                // The previous checkpoint remains, and the next one may succeed.
                failure = self.write(&file, &mut pipeline, &inputs, false).err().or(failure.take());
                locked(&pace).resume();
            }
        })?;
        // A signal is how a live run ends, but leaves files unread.
        let is_finished = self.args.finish && (is_live || end == Some(RunEnd::EndOfInput));
        if is_finished {
            pipeline.finish();
            if pipeline.sink_mut().flush() {
                file.remove()?;
            }
        } else {
            self.write(&file, &mut pipeline, &inputs, true)?;
        }
        match failure {
            // A later checkpoint was written.
            Some(Failure::Other(problem)) if !is_finished => console.problem(problem),
            _ => {}
        }
        let skipped_count = locked(&inputs).skipped_count;
        Ok(Outcome { stats: pipeline.stats(), source: input.stats(), skipped_count, file })
    }

    /// Ends the flows of the checkpoint that a run has written, for its output so far; they remain in the checkpoint. `None` if
    /// the run has ended them.
    pub(crate) fn ended<K: Sink + Flush>(
        &self,
        outcome: &Outcome,
        sink: K,
    ) -> Result<Option<PipelineStats>, Failure>
    where
        K::State: State,
    {
        let Some(mut reader) = outcome.file.open()? else { return Ok(None) };
        let mut pipeline = self.rebuild(&outcome.file, &mut reader, sink)?;
        pipeline.finish();
        Ok(Some(pipeline.stats()))
    }

    /// Builds a pipeline from a checkpoint.
    fn rebuild<K: Sink + Flush>(
        &self,
        file: &CheckpointFile,
        reader: &mut Reader<File>,
        mut sink: K,
    ) -> Result<Pipeline<K>, Failure>
    where
        K::State: State,
    {
        sink.restore(reader).map_err(|invalid| file.failure(format!("invalid checkpoint: {invalid}")))?;
        self.builder.restore(reader, sink).map_err(|error| file.failure(error))
    }

    /// Builds the pipeline, from the checkpoint if there is one. Returns the files that were read.
    fn restore<K: Sink + Flush>(
        &self,
        file: &CheckpointFile,
        (sink, is_only_end): (K, bool),
    ) -> Result<(Pipeline<K>, Inputs), Failure>
    where
        K::State: State,
    {
        let Some(mut reader) = file.open()? else {
            if is_only_end {
                return Err(file.failure("no checkpoint whose flows could be ended"));
            }
            return Ok((self.builder.build(sink)?, Inputs::default()));
        };
        let Some(state) = RunState::of(&reader) else {
            return Err(file.failure("checkpoint of another program"));
        };
        if state.command != self.command {
            let (saved, current) = (state.command, self.command);
            return Err(file.failure(format!(
                "checkpoint of `flowgauge {saved}`, which `flowgauge {current}` cannot continue"
            )));
        }
        let pipeline = self.rebuild(file, &mut reader, sink)?;
        if let Some(output) = state.output.filter(|_| !state.has_ended) {
            let removed_len =
                output.truncate().map_err(|error| Failure::writing("standard output", &error))?;
            if removed_len > 0 {
                write_line(&format!(
                    "flowgauge: removed {removed_len} octets from standard output, which an interrupted run wrote behind \
                     its last checkpoint"
                ));
            }
        }
        Ok((pipeline, state.inputs))
    }

    /// Writes the checkpoint behind the rows before it.
    fn write<K: Sink + Flush>(
        &self,
        file: &CheckpointFile,
        pipeline: &mut Pipeline<K>,
        inputs: &Mutex<Inputs>,
        has_ended: bool,
    ) -> Result<(), Failure>
    where
        K::State: State,
    {
        if !pipeline.sink_mut().flush() {
            // The run ends with the failure of the output, and the previous checkpoint remains.
            return Ok(());
        }
        let output = Position::sync().map_err(|error| Failure::writing("standard output", &error))?;
        let inputs = locked(inputs).saved();
        let (command, version) = (self.command.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let state = RunState { command, version, inputs, output, has_ended };
        let octets = serde_json::to_vec(&state).map_err(|error| file.failure(error));
        let octets = octets?;
        file.replace(|writer| {
            writer.attach(ATTACHMENT, &octets)?;
            let stats = pipeline.stats();
            pipeline.sink_mut().attach(&stats, writer)?;
            pipeline.checkpoint(writer)
        })
    }
}
