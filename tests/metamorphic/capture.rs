//! A capture in memory, and the records of captures.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flowgauge::base::{Frame, FrameBatch, LinkType};
use flowgauge::{
    Builder, FileSource, FlowRecord, Interface, Next, Pipeline, Records, RunOptions, Sessions, Source,
    Standard, Timestamp,
};
use serde_json::Value;

use super::pairs::Unchanged;

/// Maximum number of frames of a capture that are used, so that the test ends in minutes.
const FRAME_COUNT_MAX: usize = 20_000;

/// A record as its fields.
pub(crate) type Fields = BTreeMap<String, Value>;

/// A frame that owns its octets.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) timestamp: Timestamp,
    pub(crate) link_type: LinkType,
    pub(crate) wire_len: u32,
    pub(crate) interface: u32,
    pub(crate) data: Vec<u8>,
}

impl Owned {
    pub(crate) fn frame(&self) -> Frame<'_> {
        let Self { timestamp, link_type, wire_len, interface, .. } = *self;
        Frame { timestamp, link_type, data: &self.data, wire_len, interface }
    }

    /// Returns whether all octets were captured.
    pub(crate) fn is_complete(&self) -> bool {
        self.wire_len as usize == self.data.len()
    }
}

/// A capture, its frames, and its records in the default settings.
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The file, unless it has too many frames.
    pub(crate) octets: Option<Vec<u8>>,
    pub(crate) frames: Vec<Owned>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) records: Vec<Fields>,
    /// Computed when first used.
    pub(crate) unchanged: Unchanged,
    /// What the relations checked so far.
    pub(crate) checked: Cell<Checked>,
}

/// Numbers of what relations checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    /// Answers that were captured before their flow.
    pub(crate) answer_count: usize,
    /// Flows with packets before and after the clock was set back.
    pub(crate) divided_count: usize,
    /// Records that all outputs have.
    pub(crate) record_count: usize,
    /// Rows of transactions in logs of Zeek, and events of EVE.
    pub(crate) row_count: usize,
}

impl Checked {
    pub(crate) fn add(&mut self, other: Self) {
        self.answer_count += other.answer_count;
        self.divided_count += other.divided_count;
        self.record_count += other.record_count;
        self.row_count += other.row_count;
    }
}

impl Capture {
    pub(crate) fn read(path: &Path) -> Self {
        let mut source = FileSource::open(path).unwrap_or_else(|error| panic!("{error}"));
        let (mut frames, mut batch) = (Vec::new(), FrameBatch::new());
        // What precedes an error of the file counts.
        while matches!(source.next_batch(&mut batch), Ok(Next::Frames)) {
            frames.extend(batch.iter().map(|frame| Owned {
                timestamp: frame.timestamp,
                link_type: frame.link_type,
                wire_len: frame.wire_len,
                interface: frame.interface,
                data: frame.data.to_vec(),
            }));
        }
        let interfaces = source.interfaces().to_vec();
        let is_short = frames.len() <= FRAME_COUNT_MAX;
        frames.truncate(FRAME_COUNT_MAX);
        let octets = is_short.then(|| fs::read(path).expect("a file"));
        let records = of_frames(&builder(), &frames);
        let (name, unchanged) = (path.display().to_string(), Unchanged::default());
        let checked = Cell::default();
        Self { name, path: path.to_owned(), octets, frames, interfaces, records, unchanged, checked }
    }

    /// Notes what a relation checked.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Checked)) {
        let mut checked = self.checked.get();
        note(&mut checked);
        self.checked.set(checked);
    }
}

/// Returns the captures of the examples.
pub(crate) fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_capture = |path: &PathBuf| path.extension().is_some_and(|name| name == "pcap" || name == "pcapng");
    paths.filter(is_capture).collect()
}

pub(crate) fn builder() -> Builder {
    Pipeline::builder()
}

/// Returns the records of frames in the order in which they end.
pub(crate) fn records_of(builder: &Builder, frames: &[Owned]) -> Vec<FlowRecord> {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record)).with_stage::<Sessions<Standard>>();
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    frames.iter().for_each(|owned| {
        pipeline.frame(&owned.frame());
    });
    pipeline.finish();
    drop(pipeline);
    records
}

/// Returns the fields of a record.
pub(crate) fn fields(record: &FlowRecord) -> Fields {
    let Ok(Value::Object(object)) = serde_json::to_value(record) else { panic!("an object") };
    object.into_iter().collect()
}

pub(crate) fn sorted(records: &[FlowRecord]) -> Vec<Fields> {
    let mut all: Vec<_> = records.iter().map(fields).collect();
    sort(&mut all);
    all
}

/// Sorts records, so that those of the same flow are at the same place in two lists.
pub(crate) fn sort(records: &mut [Fields]) {
    records.sort_by_cached_key(|fields| serde_json::to_string(fields).expect("text"));
}

/// Returns the records of frames, which are processed one by one.
pub(crate) fn of_frames(builder: &Builder, frames: &[Owned]) -> Vec<Fields> {
    of_batches(builder, frames, None)
}

/// Returns the records of frames in batches of a number of frames; `None` for frames without a batch.
pub(crate) fn of_batches(builder: &Builder, frames: &[Owned], batch_len: Option<usize>) -> Vec<Fields> {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record)).with_stage::<Sessions<Standard>>();
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    match batch_len {
        None => frames.iter().for_each(|owned| {
            pipeline.frame(&owned.frame());
        }),
        Some(len) => {
            for part in frames.chunks(len) {
                let mut batch = FrameBatch::new();
                part.iter().for_each(|owned| {
                    batch.push(&owned.frame());
                });
                let _ = pipeline.batch(&batch);
            }
        }
    }
    pipeline.finish();
    drop(pipeline);
    sorted(&records)
}

/// Returns the records of a source.
pub(crate) fn of_source(builder: &Builder, mut source: impl Source) -> Vec<Fields> {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record)).with_stage::<Sessions<Standard>>();
    // The records of what precedes an error count.
    let _ = builder.build(sink).expect("a valid configuration").run(&mut source, &RunOptions::default());
    sorted(&records)
}

/// Returns the records of a source that is divided among shards.
pub(crate) fn of_shards(count: usize, mut source: impl Source) -> Vec<Fields> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut sinks: Vec<_> = (0..count)
        .map(|_| {
            let sender = sender.clone();
            Records::new(move |record| drop(sender.send(record))).with_stage::<Sessions<Standard>>()
        })
        .collect();
    let _ = builder().run_shards(&mut sinks, &mut source, &RunOptions::default());
    drop((sinks, sender));
    sorted(&receiver.into_iter().collect::<Vec<_>>())
}
