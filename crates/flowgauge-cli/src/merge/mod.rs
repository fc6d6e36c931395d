//! `flowgauge merge`: merges the records of flows that several files divide.

mod args;
mod file;
mod joiner;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use flowgauge::export::human::duration;
use flowgauge::record_file::RecordFile;
use flowgauge::{FlowRecord, Limits, Resources, Timestamp};
use serde_json::json;

use crate::console::{Console, Failure, write_line};
use crate::human::plural;
use crate::input::is_stdin;
use crate::interrupt;
use crate::order::{MEMORY_PART, Sorted};
use crate::rows::{Rows, Written};

pub(crate) use args::MergeArgs;
use joiner::{JoinStats, Joiner};

/// Runs the command `flowgauge merge`.
pub(crate) fn run(args: &MergeArgs, console: &mut Console) -> Result<(), Failure> {
    let format = args.output.format().logs();
    let has_others = args.written.is_wanted(format);
    args.written.check(format, (false, false))?;
    args.output.check_groups(args.series.is_used(), has_others)?;
    let is_sorted = args.output.is_sorted(args.series.is_used())?;
    if is_sorted && has_others {
        let usage =
            "--write and the formats zeek, zeek-json and eve cannot be combined with --sort and --top";
        return Err(Failure::Usage(usage.to_owned()));
    }
    args.output.check()?;
    let started_at = Instant::now();
    let rows = args.written.rows(&args.output, &args.series, (&args.files, false))?;
    let mut sorted = args.output.sorted(&args.output.selection.filter()?)?;
    let mut memory = args.memory.unwrap_or(Limits::DEFAULT.total_bytes_max);
    if let Some(sorted) = &mut sorted {
        memory /= MEMORY_PART;
        sorted.set_held_max(memory);
    }
    let mut output = Output { rows, sorted };
    let mut joiner = Joiner::new(args.gap, memory);
    let mut input = Input::open(args, console);
    while let Some(record) = input.next(console) {
        joiner.push(record, |record| output.write(record));
        if interrupt::stop().is_stopped() || output.rows.flush_stream().is_break() {
            break;
        }
    }
    joiner.finish(|record| output.write(record));
    let problem = output.sorted.as_ref().and_then(|sorted| Sorted::problem([sorted].into_iter()));
    problem.into_iter().for_each(|problem| console.problem(problem));
    let written = output.finish()?;
    if !args.quiet {
        let file_count = args.files.len() as u64;
        let elapsed = started_at.elapsed();
        if args.summary.is_json() {
            write_line(&json(&joiner.stats, written.row_count, elapsed));
        } else {
            lines(&joiner.stats, (file_count, &written), elapsed).iter().for_each(|line| write_line(line));
        }
    }
    Ok(())
}

/// The records of all files, in the order in which they end, as far as each file is in this order.
struct Input {
    files: Vec<RecordFile>,
    /// The next record of each file, by its end and the index of the file.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    records: Vec<Option<FlowRecord>>,
}

impl Input {
    /// Opens the files. Those that cannot be read are reported.
    fn open(args: &MergeArgs, console: &mut Console) -> Self {
        let mut files = Vec::with_capacity(args.files.len());
        let resources = Resources::default();
        let mut has_stdin = false;
        for path in &args.files {
            if is_stdin(path) && std::mem::replace(&mut has_stdin, true) {
                console.problem("-: specified more than once; standard input is read only once");
                continue;
            }
            match file::open(path, &resources) {
                Ok(file) => files.push(file),
                Err(problem) => console.problem(problem),
            }
        }
        let mut input = Self { records: vec![None; files.len()], next: BinaryHeap::new(), files };
        (0..input.files.len()).for_each(|index| input.advance(index, console));
        input
    }

    /// Reads the next record of a file.
    fn advance(&mut self, index: usize, console: &mut Console) {
        let record = self.files.get_mut(index).and_then(|file| file::next(file, console));
        if let (Some(slot), Some(record)) = (self.records.get_mut(index), record) {
            self.next.push(Reverse((record.end, index)));
            *slot = Some(record);
        }
    }

    fn next(&mut self, console: &mut Console) -> Option<FlowRecord> {
        let Reverse((_, index)) = self.next.pop()?;
        let record = self.records.get_mut(index).and_then(Option::take);
        self.advance(index, console);
        record
    }
}

/// Output of merged records, which may be sorted before.
struct Output {
    rows: Rows,
    sorted: Option<Sorted>,
}

impl Output {
    fn write(&mut self, record: &FlowRecord) {
        match &mut self.sorted {
            Some(sorted) => sorted.add_record(record),
            None => self.rows.write(record),
        }
    }

    /// Completes the output.
    fn finish(self) -> Result<Written, Failure> {
        let Self { mut rows, sorted } = self;
        if let Some(sorted) = sorted {
            rows.unmatched_before(sorted.unmatched());
            rows.write_all(sorted.into_records());
        }
        rows.finish()
    }
}

/// Returns the lines of the summary.
fn lines(stats: &JoinStats, (file_count, written): (u64, &Written), elapsed: Duration) -> Vec<String> {
    let merged_count = stats.record_count - stats.merged_count;
    let mut result = format!("{} merged to {merged_count}", plural(stats.record_count, "record"));
    if written.row_count != merged_count {
        result = format!("{result}, {} written{}", written.row_count, written.note());
    }
    let files = plural(file_count, "file");
    let mut lines = vec![format!("{files}: {result}; processed in {}", duration(elapsed))];
    if stats.overlapping_count > 0 {
        let records = plural(stats.overlapping_count, "record");
        lines.push(format!(
            "{records} not merged, because another record of the flow overlaps; was a file given twice?"
        ));
    }
    if stats.evicted_count > 0 {
        let records = plural(stats.evicted_count, "record");
        lines.push(format!("{records} of open flows not merged with later ones, because of --memory"));
    }
    lines
}

/// Returns the summary as JSON.
fn json(stats: &JoinStats, written_count: u64, elapsed: Duration) -> String {
    json!({
        "record_count": stats.record_count,
        "merged_record_count": stats.merged_count,
        "overlapping_record_count": stats.overlapping_count,
        "evicted_record_count": stats.evicted_count,
        "written_record_count": written_count,
        "processing_time": u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
    })
    .to_string()
}
