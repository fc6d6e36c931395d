//! Command-line arguments of `flowgauge merge`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::{parse_duration, parse_size};
use crate::formats::OutputArgs;
use crate::groups::SeriesArgs;
use crate::summary::SummaryLineArgs;
use crate::write::WriteArgs;

/// Merge the flow records of several files, so that each flow has one record.
///
/// Flows that continue in the next file of a rotated capture, or after an active timeout, have several records. This
/// command merges a record with the next one of the same flow key if the flow was open at its end and the pause is short.
/// Each column has a rule (docs/fields.md): counts are added, for example. The records must be of different packets:
/// records that overlap in time are not merged.
///
/// Reads ndjson with times in nanoseconds, IPFIX files, Parquet files (feature `arrow`), and fixed records, as recognized by
/// their content. The order of the files does not matter. In each file, the records must be roughly in the order in which
/// the flows ended, which is that of other commands unless they sort the flows.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge merge flows.1.ndjson flows.2.ndjson > flows.txt
  flowgauge merge hour*.ipfix --format ndjson
  flowgauge merge hour*.ipfix --where 'octet_count > 1000000' --top 10
  flowgauge flows capture.pcap --active-timeout 1m --format ndjson | flowgauge merge -

Exit status:
  0  All input was read.
  1  Some input could not be read, the output could not be written, or the memory limit omitted sorted records.
  2  The command line is invalid.")]
pub(crate) struct MergeArgs {
    /// Files of flow records: ndjson, IPFIX, Parquet or fixed; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Shortest pause that ends a flow, such as 5m [default: the default idle timeouts]
    ///
    /// The default idle timeouts of `flowgauge flows` are 300s for TCP connections, 65s for their handshakes, 15s for those that
    /// are closed, 60s for UDP, and 30s for ICMP and other protocols.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) gap: Option<Duration>,

    /// Memory limit for records that wait for the next one, such as 256MiB [default: 1GiB]
    ///
    /// With --sort or --top, half of it is for the records of these.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) memory: Option<u64>,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) series: SeriesArgs,

    #[command(flatten)]
    pub(super) written: WriteArgs,

    #[command(flatten)]
    pub(super) summary: SummaryLineArgs,

    /// Suppress the summary; problems are still reported
    #[arg(long, short = 'q')]
    pub(super) quiet: bool,
}
