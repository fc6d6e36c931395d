//! Tables of captures, and of files of flow records, as batches: what SQL and Python read.

mod batches;
mod config;
mod control;
mod error;
mod findings;
mod parts;
mod records;
mod sinks;
mod table;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use flowgauge::export::Selection;
use flowgauge::pipeline::{RecordSink, boxed};
use flowgauge::record_file::RecordFormat;
use flowgauge::row::{ColumnSide, Table as _};
use flowgauge::session::DriverConfig;
use flowgauge::source::Contents;
use flowgauge::tracker::Timeouts;
use flowgauge::transaction::TransactionConfig;
use flowgauge::{
    Builder, Decapsulation, FileSource, Files, FlowRecord, Flows, FragmentHandling, KeyPolicy, Limits,
    Pipeline, PipelineStats, Resources, RunOptions, RunProgress, Sessions, Sink, Source, SourceConfig,
    Standard, TrackerConfig, Transactions,
};
use flowgauge_condition::Condition;
use flowgauge_summary::{Collector, Watch};

pub use config::{ScanConfig, Times};
pub use control::{Control, Notify, Warning};
pub use error::ScanError;
pub use table::{Table, UnknownTable};

use batches::{Batches, Receive};
use sinks::{FeatureRows, PacketRows, Rows, SessionRows};

use crate::batch::BatchBuilder;
use crate::options::Options;
use crate::records::record_file_in;

/// Length of a file in octets above which a thread of its own extracts its packets, if the scan has one.
const AHEAD_LEN_MIN: u64 = 4 << 20;

/// Columns that only the stage with sessions knows.
const APPLICATION: [&str; 4] =
    ["application", "application_evidence", "application_name", "application_category_name"];

/// Columns of which the values are those of both sides or depend on the roles of both, besides those of a side: the content of
/// a flow may state which side is the initiator, so that they need its application.
const DIRECTED: [&str; 9] = [
    "source_address",
    "source_port",
    "destination_address",
    "destination_port",
    "direction_evidence",
    "history",
    "conn_state",
    "tcp_state",
    "handshake_rtt",
];

/// The table with columns of digests, which are computed only if one of them is chosen.
const FILES: Table = Table::Transactions("file");
const DIGESTS: [&str; 3] = ["md5", "sha1", "sha256"];

/// Columns of outer headers, which are recorded only if they are chosen.
const ENCAPSULATION: [&str; 8] = [
    "encapsulation",
    "encapsulation_changed_count",
    "outer_flow",
    "outer_community_id",
    "reverse_encapsulation",
    "reverse_encapsulation_changed_count",
    "reverse_outer_flow",
    "reverse_outer_community_id",
];

/// The rows of a table in captures, as batches.
///
/// Flows are also read from files of flow records ([`RecordFile`](flowgauge::record_file::RecordFile)): ndjson, IPFIX, fixed
/// records, Parquet. They have the columns that the format keeps, and others are null; a filter applies to the fields of the
/// record. What concerns packets is an error then: features, timeouts, tunnels, joined captures, and other tables. An empty
/// file has no flows.
///
/// Each capture is tracked alone, unless the configuration joins them; findings and hosts are those of all captures together. What the
/// columns do not need is not computed: without the application of a flow, no protocol is recognized, and messages of
/// protocols without a column are not parsed.
///
/// # Parts of a capture
///
/// With four [threads](Control::thread_count) or more, flow records of one uncompressed capture are tracked in parts
/// ([`Builder::run_parts`]), each at least 2 MiB long and with 64 MiB of memory. The rows are those of one pass, in the order of
/// the parts. If the limit on flows or on memory is reached, the scan ends with [`Error::Parts`](flowgauge::Error::Parts),
/// because other flows would be evicted than in one pass. One pass reads compressed and joined captures, and all captures if
/// features, packets, messages or transactions are read, with [`Decapsulation::Both`], or with a limit of rows.
///
/// ```
/// use std::ops::ControlFlow;
/// use flowgauge_arrow::scan::{Control, Scan, ScanConfig, Table};
/// use flowgauge_arrow::Options;
///
/// let scan = Scan::new(Table::messages("dns")?, &Options::default(), ScanConfig::default());
/// let mut row_count = 0;
/// scan.run(["../../examples/data/dns.pcap"], &Control::default(), |batch| {
///     row_count += batch.num_rows();
///     ControlFlow::Continue(())
/// })?;
/// assert!(row_count > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    table: Table,
    options: Options,
    config: ScanConfig,
    schema: SchemaRef,
}

impl Scan {
    /// Creates a scan of all columns of a table. The selection and the table name in `options` are those of the scan.
    #[must_use]
    pub fn new(table: Table, options: &Options, config: ScanConfig) -> Self {
        let names = table.names(&config.features);
        // The names are those of the table.
        let selection = Selection::among(&table.columns(&config.features).0, names).ok();
        let options = options.clone().table(table.function()).selection(selection);
        let mut scan = Self { table, options, config, schema: Arc::new(arrow_schema::Schema::empty()) };
        scan.schema = scan.builder().schema();
        scan
    }

    /// Chooses columns, in their order.
    ///
    /// # Errors
    ///
    /// Returns the first name that is not the name of a column, or that is repeated.
    pub fn columns<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        let selection = Selection::among(&self.table.columns(&self.config.features).0, names)?;
        self.options = self.options.selection(Some(selection));
        self.schema = self.builder().schema();
        Ok(self)
    }

    /// Adds a condition on rows: an expression of SQL on columns of the table, which need not be chosen.
    ///
    /// # Errors
    ///
    /// Returns the problem, with the text in which its place is marked.
    pub fn condition(mut self, text: &str) -> Result<Self, String> {
        let names = self.table.names(&self.config.features);
        let (mut columns, _) = self.table.columns(&self.config.features);
        columns.retain(|column| names.contains(&column.name));
        self.config.conditions.add(Condition::new(text, &columns)?);
        Ok(self)
    }

    /// Sets the maximum number of rows in a batch.
    #[must_use]
    pub fn batch_size(mut self, row_count_max: usize) -> Self {
        self.options = self.options.limits(row_count_max, 8 << 20);
        self
    }

    /// Returns the table.
    #[must_use]
    pub const fn table(&self) -> Table {
        self.table
    }

    /// Returns the settings.
    #[must_use]
    pub const fn config(&self) -> &ScanConfig {
        &self.config
    }

    /// Returns the settings, to change them. The features, which determine the columns, must remain.
    pub const fn config_mut(&mut self) -> &mut ScanConfig {
        &mut self.config
    }

    /// Returns the schema of the batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Reads captures and files of flow records, and passes on batches until the receiver ends the scan. Runs on the current
    /// thread.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be opened or read, has other content, or has flow records although a setting concerns
    /// packets, or if the settings are invalid. Damage within a file is a warning.
    pub fn run<P: AsRef<Path>>(
        &self,
        captures: impl IntoIterator<Item = P>,
        control: &Control,
        mut receive: impl FnMut(RecordBatch) -> ControlFlow<()> + Send,
    ) -> Result<(), ScanError> {
        let (resources, sources) = self.resources(control)?;
        let receive: Receive<'_> = &mut receive;
        let mut batches = Batches::new(self.builder(), &self.config, control.stop.clone(), receive);
        if self.config.is_joined || self.table.is_joined() {
            let paths: Vec<PathBuf> = captures.into_iter().map(|path| path.as_ref().to_owned()).collect();
            let files = Files::open_with(paths, sources.clone());
            let mut files =
                files.map_err(|error| records::among_captures(error, self.table, &self.config, sources))?;
            self.capture(&resources, &mut files, None, control, &mut batches)?;
        } else {
            for path in captures {
                if batches.is_over() {
                    break;
                }
                let path = path.as_ref();
                let contents = Contents::open(path, sources.clone())?;
                let name = path.to_string_lossy();
                control.report(&RunProgress::default());
                match self.parts(path, &contents, sources.clone(), control) {
                    Some(parts) => self.capture_in_parts(&resources, parts, &name, control, &mut batches)?,
                    None => self.file(&resources, contents, Some(&name), control, &mut batches)?,
                }
            }
        }
        batches.finish().map_err(ScanError::Batch)
    }

    /// Reads one capture or file of flow records from a reader, such as a socket or a `Cursor`, as [`run`](Self::run) does.
    /// `name` is the value of the column `file`. Parquet is not read from a reader. The stop handle takes effect after the
    /// read that is in progress.
    ///
    /// # Errors
    ///
    /// Same as for [`run`](Self::run); a message names the reader `(stream)`.
    pub fn run_reader(
        &self,
        reader: impl Read + Send + 'static,
        name: Option<&str>,
        control: &Control,
        mut receive: impl FnMut(RecordBatch) -> ControlFlow<()> + Send,
    ) -> Result<(), ScanError> {
        let (resources, sources) = self.resources(control)?;
        let contents = Contents::from_reader(reader, sources)?;
        let receive: Receive<'_> = &mut receive;
        let mut batches = Batches::new(self.builder(), &self.config, control.stop.clone(), receive);
        self.file(&resources, contents, name, control, &mut batches)?;
        batches.finish().map_err(ScanError::Batch)
    }

    /// Reads a source of frames, such as an interface, as [`run`](Self::run) does. `name` is the value of the column `file`.
    /// Rows of a live source are passed on in time with [`ScanConfig::interval`].
    ///
    /// # Errors
    ///
    /// Same as for [`run`](Self::run).
    pub fn run_source(
        &self,
        source: &mut impl Source,
        name: Option<&str>,
        control: &Control,
        mut receive: impl FnMut(RecordBatch) -> ControlFlow<()> + Send,
    ) -> Result<(), ScanError> {
        let (resources, _) = self.resources(control)?;
        let receive: Receive<'_> = &mut receive;
        let mut batches = Batches::new(self.builder(), &self.config, control.stop.clone(), receive);
        self.capture(&resources, source, name, control, &mut batches)?;
        batches.finish().map_err(ScanError::Batch)
    }

    /// Returns the memory of a run and the settings of its sources, if the filter suits the table.
    fn resources(&self, control: &Control) -> Result<(Resources, SourceConfig), ScanError> {
        let has_whole = self.config.filter.as_ref().is_some_and(|filter| !filter.is_final());
        if has_whole && self.table != Table::Flows {
            return Err(ScanError::Filter);
        }
        let mut limits = Limits::DEFAULT;
        limits.total_bytes_max = self.config.memory;
        let resources = Resources::new(limits);
        let mut sources = SourceConfig::from(resources.clone());
        sources.stop = Some(control.stop.clone());
        sources.storage.clone_from(&control.storage);
        Ok((resources, sources))
    }

    /// Creates the builder of batches.
    fn builder(&self) -> BatchBuilder {
        let (columns, optional) = self.table.columns(&self.config.features);
        BatchBuilder::of_columns(columns, &optional, &self.options)
    }

    /// Returns whether one of these columns is chosen, or in a condition.
    fn wants(&self, names: &[&str]) -> bool {
        self.schema.fields().iter().any(|field| names.contains(&field.name().as_str()))
            || self.config.conditions.columns().any(|name| names.contains(&name))
    }

    /// Returns whether a column depends on the application of a flow, or on the direction, which the content may state. A
    /// value must not depend on the other columns that are chosen.
    fn wants_application(&self) -> bool {
        let has_side = |name: &str| {
            let mut columns = FlowRecord::COLUMNS.iter();
            columns.any(|column| column.name == name && column.side != ColumnSide::Shared)
        };
        self.wants(&APPLICATION)
            || self.wants(&DIRECTED)
            || self.schema.fields().iter().any(|field| has_side(field.name()))
            || self.config.conditions.columns().any(has_side)
    }

    /// Returns the builder of the pipelines.
    fn pipeline(&self, resources: &Resources) -> Builder {
        let config = &self.config;
        let mut tracker = TrackerConfig::default();
        if let Some(timeout) = config.idle_timeout {
            tracker.timeouts = Timeouts::all(Some(timeout));
        }
        let mut key_policy = KeyPolicy::DEFAULT;
        key_policy.decapsulation = config.tunnels;
        let mut builder =
            Pipeline::builder().resources(resources.clone()).tracker(tracker).key_policy(key_policy);
        if let Some(timeout) = config.active_timeout.filter(|_| !self.table.is_joined()) {
            builder = builder.active_timeout(timeout);
        }
        if let Some(filter) = &config.filter {
            builder = builder.filter(filter.clone());
        }
        if self.table == Table::Flows && self.wants_application() {
            // The application of a flow is known without messages.
            let mut sessions = DriverConfig::default();
            sessions.is_naming_only = true;
            builder = builder.sessions(sessions);
        }
        match self.table {
            // Each fragment is a packet.
            Table::Packets => builder.fragments(FragmentHandling::AsTheyCome),
            Table::Findings | Table::Hosts => builder.encapsulation(true),
            _ => builder.encapsulation(config.tunnels == Decapsulation::Both || self.wants(&ENCAPSULATION)),
        }
    }

    /// Reads a file: a capture, or flow records.
    fn file(
        &self,
        resources: &Resources,
        contents: Contents,
        name: Option<&str>,
        control: &Control,
        batches: &mut Batches<'_>,
    ) -> Result<(), ScanError> {
        let is_empty = contents.head().is_empty() && self.table == Table::Flows;
        if !is_empty && RecordFormat::of(contents.head()).is_none() {
            let mut source = FileSource::from_contents(contents)?;
            return self.capture(resources, &mut source, name, control, batches);
        }
        if !is_empty {
            records::check(contents.path(), self.table, &self.config)?;
        }
        let file = record_file_in(contents, control.storage.as_ref()).map_err(ScanError::Records)?;
        let rows = Rows { batches, file: name, times: self.config.times };
        records::read(file, rows, &self.config, control, resources)
    }

    /// Reads a capture.
    fn capture(
        &self,
        resources: &Resources,
        source: &mut dyn Source,
        file: Option<&str>,
        control: &Control,
        batches: &mut Batches<'_>,
    ) -> Result<(), ScanError> {
        if batches.is_over() {
            return Ok(());
        }
        let builder = &self.pipeline(resources);
        let whole = self.config.filter.as_ref().filter(|filter| !filter.is_final());
        let rows = Rows { batches, file, times: self.config.times };
        let has_features = self.table == Table::Flows && self.wants_features();
        let outcome = match self.table {
            Table::Flows => match (has_features, self.wants_application()) {
                (false, false) => {
                    let sink = RecordSink::<Flows>::new(rows).with_filter(whole);
                    read(builder, sink, source, control)
                }
                (false, true) => {
                    let sink = RecordSink::<Sessions<Standard>>::new(rows).with_filter(whole);
                    read(builder, sink, source, control)
                }
                (true, false) => {
                    let sink = FeatureRows::<Flows>::new(rows, whole, self.config.features);
                    read(builder, boxed(sink), source, control)
                }
                (true, true) => {
                    let sink = FeatureRows::<Sessions<Standard>>::new(rows, whole, self.config.features);
                    read(builder, boxed(sink), source, control)
                }
            },
            Table::Packets => read(builder, boxed(PacketRows(rows)), source, control),
            Table::Messages(_) => read(builder, boxed(SessionRows::new(rows, self.table)), source, control),
            Table::Transactions(_) => {
                let mut joining = TransactionConfig::default();
                joining.has_hashes = self.table == FILES && self.wants(&DIGESTS);
                let sink = Transactions::new(SessionRows::new(rows, self.table)).config(joining);
                read(builder, boxed(sink), source, control)
            }
            Table::Findings | Table::Hosts => {
                let watch = Watch::new(resources)?;
                let collector = Collector::default();
                let collector = if self.table == Table::Hosts { collector.thorough() } else { collector };
                let control = &control.with_memory(collector.held_bytes());
                let mut sink = Transactions::new(collector);
                let stats = read(builder, boxed(&mut sink), &mut watch.source(source), control)?;
                let facts = sink.into_inner().facts;
                if self.table == Table::Hosts {
                    facts.host_rows().iter().for_each(|host| rows.batches.push(host));
                } else {
                    let findings = findings::findings(&facts, &watch.frames(), &stats, &self.config);
                    findings.iter().for_each(|finding| rows.batches.push(finding));
                }
                Ok(stats)
            }
        };
        outcome.map(drop)
    }

    /// Returns whether a column of features is chosen.
    fn wants_features(&self) -> bool {
        let features: Vec<_> = self.config.features.columns().iter().map(|column| column.name).collect();
        self.wants(&features)
    }
}

/// Reads a source to its end, or until the sink ends the run. Returns the counters of the run.
fn read<K: Sink>(
    builder: &Builder,
    sink: K,
    source: &mut dyn Source,
    control: &Control,
) -> Result<PipelineStats, ScanError> {
    let is_long = source.total_len().is_some_and(|len| len >= AHEAD_LEN_MIN);
    let mut options =
        RunOptions::default().stop(control.stop.clone()).extract_ahead(control.is_ahead && is_long);
    if let Some(progress) = control.progress.clone() {
        options = options.progress(move |state| progress(state));
    }
    let summary = builder.build(sink)?.run(source, &options)?;
    control.warn(source.warnings());
    Ok(summary.stats)
}
