//! Output of flow records: the options of the formats, and the writer.

use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flowgauge::export::{FlowLog, Format, FormatOptions, Nulls, RecordWriter, Selection, Style, TimeFormat};
use flowgauge::{FlowRecord, SortKey};

use crate::args::parse_count;
use crate::columns::{ColumnArgs, Columns};
use crate::console::{Failure, stdout};
use crate::groups::{GroupArgs, GroupOrder, Groups, Target};
use crate::ipfix::{ExportArgs, IpfixWriter};
use crate::log_format::LogFormat;
use crate::names::completed_fields;
use crate::order::{Beside, Criterion, Order, Sorted};
use crate::rows::{RowWriter, Rows};
use crate::selection::SelectionArgs;
use flowgauge_condition::RowFilter;

/// Options for the output of flow records.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Format: table, ndjson, csv, ipfix, fixed, parquet, arrow, zeek, zeek-json, eve
    ///
    /// table (default): columns that fit the width of the terminal; ndjson: a JSON object per line; csv: a header line and a line per
    /// flow, with the fields of ndjson; ipfix: messages (RFC 7011), to a collector or a file; fixed: records of 64 octets with
    /// the most important fields; parquet, arrow: a Parquet file, and an Arrow IPC stream (feature `arrow`); zeek, zeek-json:
    /// Zeek's conn.log as TSV or JSON, or with --out all logs; eve: Suricata's events of flows, or with --out all events
    /// (docs/formats.md).
    #[arg(id = "format", long, short = 'f', value_name = "FORMAT", value_parser = format_parser())]
    #[arg(hide_possible_values = true)]
    chosen: Option<OutputFormat>,

    /// Write only these fields of each flow, separated by commas
    ///
    /// The fields are written in this order. The names are those of ndjson and csv; `--fields help` lists and docs/fields.md
    /// describes them. Groups such as basic, tcp and tunnel, and other names such as src_ip or those of Zeek's conn.log stand for
    /// them. A table has a column for each field.
    #[arg(long, value_name = "LIST", hide_possible_values = true)]
    #[arg(value_parser = completed_fields(crate::selection::parse_columns::<FlowRecord>))]
    pub(crate) fields: Option<Selection>,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    #[command(flatten)]
    pub(crate) groups: GroupArgs,

    #[command(flatten)]
    pub(crate) order: OrderArgs,

    #[command(flatten)]
    pub(crate) style: StyleArgs,

    #[command(flatten)]
    pub(crate) columns: ColumnArgs,

    #[command(flatten)]
    pub(crate) export: ExportArgs,
}

/// Options for the order of flows, or of groups of flows.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// Sort the flows by a field: start, octets, rtt or another one
    ///
    /// All records are kept in memory until the end of the input. If they take more than half of the memory limit, the last
    /// ones of the order are omitted, which is reported. Without this option, flows are written in the order
    /// in which they end. `start` and `end` sort in ascending order, the other fields in descending order. Flows with
    /// equal values stay in the order in which they ended.
    ///
    /// start: time of the first packet; end: time of the last packet; duration: from the first packet to the last;
    /// packets, octets (on the wire), payload (octets carried by the transport protocol) and retransmitted (TCP
    /// segments): sums of both directions; rtt: round-trip time of the TCP handshake. Other names are those of fields
    /// (docs/fields.md), of which numbers and lengths of time sort in descending order, and the others in ascending order. With --group-by, the field is a column
    /// of the groups.
    #[arg(long, short = 's', value_name = "FIELD", hide_possible_values = true)]
    #[arg(value_parser = completed_fields(clap::builder::StringValueParser::new()))]
    pub(crate) sort: Option<String>,

    /// Reverse the order of --sort
    #[arg(long, short = 'r')]
    pub(crate) reverse: bool,

    /// Write only the first N of --sort, or by octets
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = parse_count::<NonZeroUsize>)]
    pub(crate) top: Option<NonZeroUsize>,
}

impl OrderArgs {
    /// Returns the first option that is used.
    fn used(&self) -> Option<&'static str> {
        let used =
            [("--sort", self.sort.is_some()), ("--top", self.top.is_some()), ("--reverse", self.reverse)];
        used.into_iter().find(|(_, is_used)| *is_used).map(|(option, _)| option)
    }
}

/// A format of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// A format of the library.
    Library(Format),
    /// A format of columns, which needs a feature.
    Columns(Columns),
    /// A format of logs.
    Logs(LogFormat),
}

impl OutputFormat {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Library(format) => format.name(),
            Self::Columns(format) => format.name(),
            Self::Logs(format) => format.name(),
        }
    }

    /// Returns the format, if it is one of the library.
    pub(crate) const fn library(self) -> Option<Format> {
        match self {
            Self::Library(format) => Some(format),
            Self::Columns(_) | Self::Logs(_) => None,
        }
    }

    /// Returns the format, if it is one of columns.
    pub(crate) const fn columns(self) -> Option<Columns> {
        match self {
            Self::Library(_) | Self::Logs(_) => None,
            Self::Columns(format) => Some(format),
        }
    }

    /// Returns the format, if it is one of logs.
    pub(crate) const fn logs(self) -> Option<LogFormat> {
        match self {
            Self::Library(_) | Self::Columns(_) => None,
            Self::Logs(format) => Some(format),
        }
    }
}

/// Options for times and absent values in ndjson and csv.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct StyleArgs {
    /// Times in ndjson and csv: ns, unix or rfc3339
    ///
    /// `ns` writes integers of nanoseconds, `unix` and `rfc3339` write lengths of time as seconds with nine decimals, and
    /// points in time as seconds since 1970 or as date and time.
    #[arg(long, value_name = "FORMAT", default_value = "ns")]
    time: TimeFormat,

    /// Absent values in ndjson and csv: omit or null
    ///
    /// `omit` writes no key in ndjson, and nothing in csv.
    #[arg(long, hide_short_help = true, value_name = "POLICY", default_value = "omit")]
    nulls: Nulls,
}

impl StyleArgs {
    pub(crate) fn style(self) -> Style {
        let mut style = Style::default();
        (style.time, style.nulls) = (self.time, self.nulls);
        style
    }
}

fn format_parser() -> impl TypedValueParser<Value = OutputFormat> {
    let all = || {
        let library = Format::ALL.into_iter().map(OutputFormat::Library);
        let columns = Columns::ALL.into_iter().map(OutputFormat::Columns);
        library.chain(columns).chain(LogFormat::ALL.into_iter().map(OutputFormat::Logs))
    };
    PossibleValuesParser::new(all().map(OutputFormat::name))
        .try_map(move |name| all().find(|format| format.name() == name).ok_or("unknown format"))
}

impl OutputArgs {
    /// Returns the format of standard output.
    pub(crate) fn format(&self) -> OutputFormat {
        self.chosen.unwrap_or(OutputFormat::Library(Format::Table))
    }

    /// Returns the format of `--format`.
    pub(crate) const fn chosen_format(&self) -> Option<OutputFormat> {
        self.chosen
    }

    /// Returns the format of standard output, if it was chosen and is not one of logs.
    pub(crate) fn standard(&self) -> Option<OutputFormat> {
        self.chosen.filter(|format| format.logs().is_none())
    }

    /// Returns whether flows are sorted, and not groups or counts over time.
    pub(crate) fn is_sorted(&self, is_series: bool) -> Result<bool, Failure> {
        let has_groups = self.groups.is_used() || is_series;
        let is_sorted = !has_groups && (self.order.sort.is_some() || self.order.top.is_some());
        if self.order.reverse && !is_sorted && !has_groups {
            return Err(Failure::Usage("--reverse requires --sort or --top".to_owned()));
        }
        Ok(is_sorted)
    }

    /// Returns an empty list for flows in the requested order; `None` if flows are written as they end.
    pub(crate) fn sorted<T: Beside>(&self, filter: &RowFilter) -> Result<Option<Sorted<T>>, Failure> {
        let OrderArgs { sort, reverse, top } = &self.order;
        if self.groups.is_used() || sort.is_none() && top.is_none() {
            return Ok(None);
        }
        let criterion = match sort {
            None => Criterion::Key(SortKey::Octets),
            Some(name) => {
                Criterion::of_name(name).map_err(|error| Failure::Usage(format!("--sort: {error}")))?
            }
        };
        let limit = top.map_or(usize::MAX, NonZeroUsize::get);
        Ok(Some(Sorted::new(Order { criterion, is_reversed: *reverse }, limit, filter.clone())))
    }

    /// Returns a failure if flows that end one after another would have to be sorted.
    pub(crate) fn check_order(&self) -> Result<(), Failure> {
        match self.order.used().filter(|_| !self.groups.is_used()) {
            Some(option) => Err(Failure::Usage(format!("{option} requires --group-by"))),
            None => Ok(()),
        }
    }

    /// Returns a failure if groups, or `is_series` counts over time, are combined with options that do not concern them.
    pub(crate) fn check_groups(&self, is_series: bool, has_others: bool) -> Result<(), Failure> {
        let option = match (self.groups.is_used(), is_series) {
            (false, false) if self.groups.count_events => {
                let problem = "--count-events requires --group-by or --time-series";
                return Err(Failure::Usage(problem.to_owned()));
            }
            (false, false) => return Ok(()),
            (true, false) => "--group-by",
            (false, true) => "--time-series",
            (true, true) => {
                return Err(Failure::Usage("--group-by cannot be combined with --time-series".to_owned()));
            }
        };
        let is_own = matches!(self.format().library(), Some(Format::Ipfix | Format::Fixed))
            || self.format().logs().is_some();
        let problem = if has_others {
            "cannot be combined with --write, and not with joined columns"
        } else if is_own || self.fields.is_some() {
            "requires --format table, ndjson, csv, parquet or arrow, and excludes --fields"
        } else if is_series && self.order.used().is_some() {
            "cannot be combined with --sort, --top and --reverse"
        } else {
            return Ok(());
        };
        Err(Failure::Usage(format!("{option} {problem}")))
    }

    /// Returns whether only flow records are written, those that meet conditions or in groups.
    #[cfg(feature = "bus")]
    pub(crate) const fn selects_records(&self) -> bool {
        self.selection.is_used() || self.groups.is_used()
    }

    /// Returns where groups are written.
    pub(crate) fn group_target(&self) -> Result<Target, Failure> {
        self.check_terminal()?;
        Ok(match self.format() {
            OutputFormat::Library(Format::Table) => Target::Table,
            OutputFormat::Library(format) => Target::Lines(format, self.style.style()),
            #[cfg(feature = "arrow")]
            OutputFormat::Columns(format) => Target::Columns(format, self.columns),
            // Refused by `check_groups`.
            _ => Target::Table,
        })
    }

    /// Creates the writer of groups.
    fn group_writer(&self) -> Result<Groups, Failure> {
        let target = self.group_target()?;
        let order = GroupOrder {
            column: self.order.sort.as_deref(),
            is_reversed: self.order.reverse,
            limit: self.order.top.map_or(usize::MAX, NonZeroUsize::get),
        };
        self.groups.writer(order, target)
    }

    /// Returns a failure if an option has no effect with the output format.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.columns.check(self.format().columns())?;
        let format = self.format().library();
        let has_own = matches!(format, Some(Format::Ipfix | Format::Fixed)) || self.format().logs().is_some();
        if has_own && self.fields.is_some() {
            let name = self.format().name();
            return Err(Failure::Usage(format!("--fields cannot be combined with --format {name}")));
        }
        let is_text = matches!(format, Some(Format::Ndjson | Format::Csv));
        if !is_text && self.style.style() != Style::default() {
            return Err(Failure::Usage("--time and --nulls require --format ndjson or csv".to_owned()));
        }
        match self.export.used().find(|_| format != Some(Format::Ipfix)) {
            Some(option) => Err(Failure::Usage(format!("{option} requires --format ipfix"))),
            None => Ok(()),
        }
    }

    /// Returns a failure if a binary format would be written to a terminal.
    pub(crate) fn check_terminal(&self) -> Result<(), Failure> {
        let is_binary =
            matches!(self.format(), OutputFormat::Library(Format::Fixed) | OutputFormat::Columns(_));
        if is_binary { check_redirected(self.format().name()) } else { Ok(()) }
    }

    /// Returns whether a format for programs, or a chosen field, contains the application protocol.
    pub(crate) fn has_application(&self) -> bool {
        self.selection.mentions("application")
            || self.order.sort.as_ref().is_some_and(|name| name.starts_with("application"))
            || self.groups.mentions("application")
            || match &self.fields {
                Some(fields) => fields.contains("application") || fields.contains("application_evidence"),
                None => !matches!(self.format().library(), Some(Format::Table | Format::Fixed)),
            }
    }

    /// Creates the rows of the selected flow records, as `open` does.
    pub(crate) fn rows(&self, inputs: &[PathBuf], is_stream: bool) -> Result<Rows, Failure> {
        let filter = self.selection.filter()?;
        if self.groups.is_used() {
            return Ok(Rows::new(self.group_writer()?, is_stream).selected(filter));
        }
        Ok(Rows::new(self.open(inputs)?, is_stream).selected(filter))
    }

    /// Creates the writer of flow records to standard output or, for IPFIX, to the destination of its options. `inputs`
    /// are files that the output must not replace.
    pub(crate) fn open(&self, inputs: &[PathBuf]) -> Result<Writer, Failure> {
        self.check_terminal()?;
        let format = match self.format() {
            OutputFormat::Library(Format::Ipfix) => {
                return Ok(Writer::Ipfix(Box::new(IpfixWriter::open(&self.export, inputs)?)));
            }
            OutputFormat::Library(format) => format,
            #[cfg(feature = "arrow")]
            OutputFormat::Columns(format) => {
                let options = self.columns.options("flow", self.fields.clone());
                return Ok(Writer::Standard(Box::new(format.writer::<FlowRecord, _>(stdout(), options)?)));
            }
            // Refused by `check`.
            #[cfg(not(feature = "arrow"))]
            OutputFormat::Columns(_) => Format::Ndjson,
            OutputFormat::Logs(format) => return Ok(Writer::Logs(format.stream(stdout()))),
        };
        let mut options = FormatOptions::default();
        options.selection.clone_from(&self.fields);
        options.style = self.style.style();
        options.line_width = line_width();
        Ok(Writer::Standard(format.writer(stdout(), options)?))
    }
}

/// Returns a failure if a binary format would be written to a terminal.
pub(crate) fn check_redirected(format: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::Usage(format!(
            "{format} is a binary format and is not written to a terminal; redirect the output"
        )));
    }
    Ok(())
}

/// Returns the line width in characters from the environment variable `COLUMNS`, or that of the terminal.
pub(crate) fn line_width() -> Option<usize> {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let from_terminal = || {
        let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        terminal.map(|(width, _)| usize::from(width.0))
    };
    from_environment.or_else(from_terminal).filter(|width| *width > 0)
}

/// Writes flow records one after another in one of the output formats.
pub(crate) enum Writer {
    /// A format on standard output.
    Standard(Box<dyn RecordWriter<FlowRecord> + Send>),
    Ipfix(Box<IpfixWriter>),
    /// Logs on standard output or in a folder.
    Logs(Box<dyn FlowLog + Send>),
}

impl RowWriter for Writer {
    fn write_if(
        &mut self,
        record: &FlowRecord,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, Failure> {
        let written = match self {
            Self::Standard(writer) => writer.write_if(record, permits),
            Self::Logs(log) => log.collected(record, permits),
            // A record of IPFIX is not longer than the record or packet that it describes, and therefore has no length
            // here.
            Self::Ipfix(ipfix) if permits(0) => ipfix.write(record).map(|()| true),
            Self::Ipfix(_) => Ok(false),
        };
        written.map_err(|error| self.failure(&error))
    }

    #[inline]
    fn write(&mut self, record: &FlowRecord) -> Result<(), Failure> {
        let written = match self {
            Self::Standard(writer) => writer.write(record),
            Self::Logs(log) => log.collected(record, &mut |_| true).map(drop),
            Self::Ipfix(ipfix) => ipfix.write(record),
        };
        written.map_err(|error| self.failure(&error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let flushed = match self {
            Self::Standard(writer) => writer.flush(),
            Self::Logs(log) => log.flush(),
            Self::Ipfix(ipfix) => ipfix.flush(),
        };
        flushed.map_err(|error| self.failure(&error))
    }

    fn finish(self: Box<Self>, has_failed: bool) -> Result<(), Failure> {
        match *self {
            // Files that are complete remain.
            Self::Logs(log) => log.close().map(drop).map_err(|error| log_failure(&error)),
            _ if has_failed => Ok(()),
            Self::Standard(writer) => writer.finish().map(drop).map_err(Failure::from),
            Self::Ipfix(ipfix) => ipfix.finish(),
        }
    }
}

impl Writer {
    /// Returns the failure for an error of a write.
    fn failure(&self, error: &io::Error) -> Failure {
        match self {
            Self::Ipfix(ipfix) => ipfix.failure(error),
            Self::Standard(_) => Failure::writing("standard output", error),
            Self::Logs(_) => log_failure(error),
        }
    }
}

/// Returns the failure for an error of a log. Errors of files name the file already.
pub(crate) fn log_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        io::ErrorKind::Other => Failure::Other(error.to_string()),
        _ => Failure::writing("standard output", error),
    }
}
