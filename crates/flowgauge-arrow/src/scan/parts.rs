//! Flow records of one long capture, whose parts several threads track.

use std::fs;
use std::path::Path;

use flowgauge::record_file::RecordFormat;
use flowgauge::source::{Contents, FileParts};
use flowgauge::{
    Builder, Decapsulation, FlowView, Flows, Resources, RunOptions, RunProgress, Sessions, SourceConfig,
    Stage, Standard,
};

use super::Scan;
use super::batches::Batches;
use super::control::Control;
use super::error::ScanError;
use super::sinks::Rows;
use super::table::Table;

/// Number of threads from which parts are faster than one pass, which has two.
const THREAD_COUNT_MIN: usize = 4;

/// Minimum length of a capture in octets for each thread.
const LEN_MIN: u64 = 2 << 20;

/// Minimum memory of the pipelines in bytes for each thread.
const MEMORY_MIN: u64 = 64 << 20;

/// A capture, and the number of threads that track its parts.
pub(super) struct Parts {
    file: FileParts,
    /// Length in octets.
    len: u64,
    thread_count: usize,
}

impl Scan {
    /// Returns the parts of a capture; `None` if one pass reads the file.
    pub(super) fn parts(
        &self,
        path: &Path,
        contents: &Contents,
        sources: SourceConfig,
        control: &Control,
    ) -> Option<Parts> {
        let config = &self.config;
        // A limit ends reading soon.
        let is_divisible = self.table == Table::Flows
            && !self.wants_features()
            && config.tunnels != Decapsulation::Both
            && config.limit.is_none();
        if control.thread_count < THREAD_COUNT_MIN || !is_divisible {
            return None;
        }
        let len = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
        let count_max = (len / LEN_MIN).min(config.memory / MEMORY_MIN);
        let thread_count = control.thread_count.min(usize::try_from(count_max).unwrap_or(usize::MAX));
        if thread_count < THREAD_COUNT_MIN || RecordFormat::of(contents.head()).is_some() {
            return None;
        }
        // What cannot be divided, such as a compressed file, or opened, is that in one pass too.
        let file = FileParts::open_with(path, sources).ok()?;
        Some(Parts { file, len, thread_count })
    }

    /// Reads a capture in parts.
    pub(super) fn capture_in_parts(
        &self,
        resources: &Resources,
        parts: Parts,
        name: &str,
        control: &Control,
        batches: &mut Batches<'_>,
    ) -> Result<(), ScanError> {
        let builder = &self.pipeline(resources);
        let rows = Rows { batches, file: Some(name), times: self.config.times };
        if self.wants_application() {
            self.read_parts::<Sessions<Standard>>(builder, parts, rows, control)
        } else {
            self.read_parts::<Flows>(builder, parts, rows, control)
        }
    }

    fn read_parts<G: Stage>(
        &self,
        builder: &Builder,
        parts: Parts,
        mut rows: Rows<'_, '_>,
        control: &Control,
    ) -> Result<(), ScanError> {
        let Parts { mut file, len, thread_count } = parts;
        let mut options = RunOptions::default().stop(control.stop.clone());
        if let Some(progress) = control.progress.clone() {
            options = options.progress(move |state| progress(state));
        }
        let whole = self.config.filter.as_ref().filter(|filter| !filter.is_final());
        let wants = |view: &FlowView<'_>| whole.is_none_or(|filter| filter.matches_flow(view));
        let outcome = builder.run_parts::<G>(thread_count, &mut file, &options, wants, |record| {
            rows.push_record(&record);
            if rows.batches.is_over() {
                control.stop.stop();
            }
        });
        if !control.stop.is_stopped() {
            // Frames of parts that were tracked at the same time have not been reported.
            let mut progress = RunProgress::default();
            progress.frame_count = file.stats().frame_count;
            (progress.input_octet_count, progress.input_len) = (len, Some(len));
            control.report(&progress);
        }
        control.warn(file.warnings());
        outcome?;
        Ok(())
    }
}
