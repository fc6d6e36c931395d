//! Command-line arguments of `flowgauge streams`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge::reassembler::{OverflowPolicy, OverlapPolicy, ReassemblerConfig};

use super::name::Pattern;
use crate::args::{Checksums, GraceArgs, SharedArgs, parse_community_id, parse_size};

/// Octets that were written last, of each direction, with which those are compared that come again.
const COMPARED_LEN: u32 = 64 << 10;

/// Write the octets of TCP streams to files, one for each direction, with an index of what is missing.
///
/// Segments are put in order; what was sent again is written once. Octets that the capture lacks are gaps: the index,
/// index.ndjson in the same folder, has a line for each direction with its flow, file, octets, gaps and conflicts.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("output").required(true).args(["out", "to_stdout"])))]
#[command(group(ArgGroup::new("choice").args(["community_id", "filter"])))]
#[command(after_help = "Examples:
  flowgauge streams capture.pcap --out streams
  flowgauge streams capture.pcap --filter 'tcp port 80' --out web --gaps zero
  flowgauge streams capture.pcap --community-id 1:LQU9qZlK+B5F3KDmev6m5PMibrg= --to-stdout responder
  jq -r 'select(.gap_octet_count > 0) | .file' streams/index.ndjson

Exit status: 0 if all input was read, 1 if some could not be, an output exists or cannot be written,
or --to-stdout met no stream or more than one connection, 2 if the command line is wrong.")]
pub(crate) struct StreamsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The folder to write to; it is made if it does not exist
    #[arg(long, short = 'o', value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Write one connection to standard output instead: the first one chosen that has octets
    #[arg(long, value_enum, value_name = "SIDE")]
    pub(crate) to_stdout: Option<Sides>,

    /// A flow's Community ID (version 1, seed 0), as `flows --format ndjson` shows it; may be given several times
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(crate) community_id: Vec<String>,

    /// Only flows for which this holds; see `flowgauge flows --help`
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// How files are named, with {number}, {source}, {source_port}, {destination}, {destination_port}, {side}
    ///
    /// The source is the side that sent the octets. {number} counts flows in the order of their first packets; a filter may
    /// leave some out. {side} is `a` or `b`. Colons of addresses become underscores. Both directions of all flows must get
    /// names of their own: {number} is needed, and {side} or both {source} and {source_port}, with something in between.
    #[arg(long, value_name = "PATTERN", default_value = Pattern::DEFAULT, conflicts_with = "to_stdout")]
    pub(crate) name: Pattern,

    /// Overwrite files in DIR; those of an earlier run that get no new octets stay
    #[arg(long, conflicts_with = "to_stdout")]
    pub(crate) force: bool,

    /// What to write where octets are missing
    #[arg(long, value_enum, default_value_t = Gaps::Omit)]
    pub(crate) gaps: Gaps,

    /// Whose octets win where segments that wait overlap with other octets: an operating system, first or last
    ///
    /// linux, old_linux, first, last, bsd, windows, vista, solaris.
    #[arg(long, value_name = "POLICY", default_value_t = OverlapPolicy::default(), hide_default_value = true)]
    pub(crate) overlap: OverlapPolicy,

    /// What gives way when more segments wait behind a hole than --max-held
    #[arg(long, value_enum, default_value_t = Overflow::Slide)]
    pub(crate) overflow: Overflow,

    /// Memory that segments of one direction may take while they wait, such as 4MiB
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_size)]
    pub(crate) max_held: u64,

    #[command(flatten)]
    pub(crate) grace: GraceArgs,

    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long, value_enum, default_value_t = Checksums::Ignore)]
    pub(crate) checksums: Checksums,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// Which directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sides {
    /// What the side sent that began
    Initiator,
    /// What the other side sent
    Responder,
    /// Both, in the order in which they become known
    Both,
}

/// What stands for octets that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gaps {
    /// Nothing: offsets in the file are less than in the stream
    Omit,
    /// Zeros, as holes of the file where the file system has such; beyond 4 GiB of a direction, nothing
    Zero,
}

/// What gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Overflow {
    /// The hole: it becomes a gap, and what waits is written
    Slide,
    /// The direction: nothing more is written of it
    Poison,
    /// The segment that does not fit
    Drop,
}

impl From<Overflow> for OverflowPolicy {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Slide => Self::Slide,
            Overflow::Poison => Self::Poison,
            Overflow::Drop => Self::DropNewest,
        }
    }
}

impl StreamsArgs {
    /// Returns how streams are put in order.
    pub(super) fn reassembler(&self) -> ReassemblerConfig {
        let mut config = ReassemblerConfig::default();
        (config.overlap, config.overflow) = (self.overlap, self.overflow.into());
        (config.compared_len, config.ack_grace) = (COMPARED_LEN, self.grace.ack_grace);
        config
    }
}
