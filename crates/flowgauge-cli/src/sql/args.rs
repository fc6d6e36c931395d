//! Options of `flowgauge sql`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
#[cfg(feature = "cluster")]
use flowgauge_cluster::Cluster;

use crate::args::{parse_count, parse_size};

/// Run SQL over captures, with tables of flows, packets, messages, transactions and findings.
///
/// The tables are flows('FILE', ...), packets('FILE', ...), messages('PROTOCOL', 'FILE', ...), transactions('KIND', 'FILE',
/// ...) and findings('FILE', ...), where a file may be a pattern such as 'captures/*.pcap'. Parquet files are tables too: SELECT * FROM 'flows.parquet'.
/// docs/sql.md describes tables, options and functions; the language is that of DataFusion.
///
/// Statements are read from the argument, from --file, or from standard input if that is no terminal. Otherwise, a prompt reads
/// them.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge sql \"SELECT application, count(*) AS n FROM flows('capture.pcap') GROUP BY application\"
  flowgauge sql \"SELECT * FROM messages('dns.response', '*.pcap')\" --format ndjson | jq .
  flowgauge sql \"SELECT * FROM flows('*.pcap') WHERE destination_port = 443\" -o https.parquet
  flowgauge sql \"SELECT a.file FROM flows('a.pcap') AS a JOIN 'b.parquet' AS b USING (community_id)\"
  flowgauge sql --file report.sql
  flowgauge sql                                    a prompt

Exit status:
  0    All input was read.
  1    Some input could not be read, or a query failed, or the output could not be written.
  2    The command line or a statement is invalid.
  130  Ctrl-C ended a query.")]
pub(crate) struct SqlArgs {
    /// Statements, separated by `;`
    #[arg(value_name = "SQL", conflicts_with = "file")]
    pub(super) statements: Option<String>,

    /// Read statements from a file; `-` is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// Output format [default: that of the name of --out, otherwise table]
    ///
    /// Times are dates in table, csv and ndjson. Lists and groups are JSON in table and csv. Several results follow one
    /// another, except for parquet and arrow, which have one.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<SqlFormat>,

    /// Write results to a file, which appears when all statements have succeeded
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(super) out: Option<PathBuf>,

    /// Overwrite an existing output file
    #[arg(long, requires = "out")]
    pub(super) force: bool,

    /// Print the physical plan of each query instead of its result
    #[arg(long)]
    pub(super) explain: bool,

    /// Memory limit of a query, such as 2GiB [default: none]
    ///
    /// Sorts, joins and groups that need more use temporary files, and a query fails if that is not possible. The flows of
    /// captures use at most half of the limit, but 16 MiB per thread at the least.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) memory: Option<u64>,

    /// Threads of a query [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroUsize>)]
    pub(super) threads: Option<NonZeroUsize>,

    /// Run queries on the executors of a scheduler, such as df://10.0.0.1:50050
    ///
    /// The scheduler and its executors read captures under the paths that they have here, and write damage of captures to
    /// their logs. --threads is the number of partitions of a query [default: 16]. docs/cluster.md describes the processes.
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "URL", conflicts_with = "memory")]
    pub(super) cluster: Option<Cluster>,
}

impl SqlArgs {
    /// Returns the format of the results.
    pub(super) fn format(&self) -> SqlFormat {
        let extension = || self.out.as_ref()?.extension()?.to_str();
        let named = || SqlFormat::from_str(extension()?, true).ok();
        self.format.or_else(named).unwrap_or(SqlFormat::Table)
    }
}

/// Format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SqlFormat {
    /// Columns below their names
    Table,
    /// One JSON object per line
    #[value(aliases = ["jsonl", "json"])]
    Ndjson,
    /// A header line and one line per row
    Csv,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC stream
    Arrow,
}

impl SqlFormat {
    /// Returns whether the format is for programs only, and holds one result.
    pub(super) const fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}
