//! Command-line arguments of `flowgauge streams`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge::reassembler::{OverflowPolicy, OverlapPolicy, ReassemblerConfig};

use super::name::Pattern;
use crate::args::{Checksums, GraceArgs, SharedArgs, parse_community_id, parse_size};
use crate::summary::SummaryLineArgs;

/// Number of octets that are kept of each direction, the latest ones written, to compare repeated octets with.
const COMPARED_LEN: u32 = 64 << 10;

/// Write the octets of TCP connections to files, one per direction.
///
/// Segments are put in order, and retransmitted octets are written once. Octets that are missing in the capture are
/// gaps. The file index.ndjson in the same folder has a line for each direction with its flow, file, octets, gaps and
/// conflicts.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("output").required(true).args(["out", "to_stdout"])))]
#[command(group(ArgGroup::new("choice").args(["community_id", "filter"])))]
#[command(after_long_help = "Examples:
  flowgauge streams capture.pcap --out streams
  flowgauge streams capture.pcap --filter 'tcp port 80' --out web --gaps zero
  flowgauge streams capture.pcap --community-id 1:LQU9qZlK+B5F3KDmev6m5PMibrg= --to-stdout responder
  jq -r 'select(.gap_octet_count > 0) | .file' streams/index.ndjson

Exit status:
  0  All input was read.
  1  Some input could not be read, an output exists or could not be written, or --to-stdout found no
     connection or more than one.
  2  The command line is invalid.")]
pub(crate) struct StreamsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Output folder, which is created if it does not exist
    #[arg(long, short = 'o', value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Write one connection to standard output instead of files
    ///
    /// The connection is the first selected one that has octets.
    #[arg(long, value_enum, value_name = "SIDE")]
    pub(crate) to_stdout: Option<Sides>,

    /// Select flows by Community ID; may be repeated
    ///
    /// The version is 1 and the seed 0, as in the field `community_id` of `flowgauge flows`.
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(crate) community_id: Vec<String>,

    /// Select flows by an expression (see `flowgauge flows --help`)
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// Pattern of file names, such as {number}-{side}
    ///
    /// The placeholders are {number}, {source}, {source_port}, {destination}, {destination_port} and {side}. The source
    /// is the sender of the octets. {number} is the position of the flow in the order of first packets; with a filter,
    /// some numbers are not used. {side} is `a` or `b`. Colons in addresses are replaced by underscores. Each direction
    /// of each flow needs a unique name: the pattern must contain {number}, and either {side} or both {source} and
    /// {source_port}, with text between placeholders.
    ///
    /// [default: {number}-{source}.{source_port}-{destination}.{destination_port}]
    #[arg(long, value_name = "PATTERN", default_value = Pattern::DEFAULT, hide_default_value = true)]
    #[arg(conflicts_with = "to_stdout")]
    pub(crate) name: Pattern,

    /// Overwrite existing files in DIR
    ///
    /// Files of an earlier run that have no counterpart in this run are kept.
    #[arg(long, conflicts_with = "to_stdout")]
    pub(crate) force: bool,

    /// Content of the file where octets are missing
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Gaps::Omit)]
    pub(crate) gaps: Gaps,

    /// Policy for overlapping segments, such as first or windows
    ///
    /// Policies: linux, old_linux, first, last, bsd, windows, vista, solaris. The policy decides which octets are kept
    /// where segments that are held behind a gap overlap: those that the named operating system keeps, or those of the
    /// first or last segment.
    #[arg(long, value_name = "POLICY", default_value_t = OverlapPolicy::default())]
    pub(crate) overlap: OverlapPolicy,

    /// Action when the segments behind a gap exceed --max-held
    #[arg(long, value_enum, value_name = "ACTION", default_value_t = Overflow::Slide)]
    pub(crate) overflow: Overflow,

    /// Memory limit for the held segments of one direction
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_size)]
    pub(crate) max_held: u64,

    #[command(flatten)]
    pub(crate) grace: GraceArgs,

    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Checksums::Ignore)]
    pub(crate) checksums: Checksums,

    #[command(flatten)]
    pub(crate) summary: SummaryLineArgs,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// Directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sides {
    /// Octets sent by the initiator
    Initiator,
    /// Octets sent by the responder
    Responder,
    /// Octets of both directions, in the order in which they become available
    Both,
}

/// Content of a file where octets are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gaps {
    /// Nothing; offsets in the file are smaller than in the stream
    Omit,
    /// Zeros, as holes in the file if the file system supports them, up to 4 GiB per direction
    Zero,
}

/// Action when held segments exceed their memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Overflow {
    /// Report the missing octets as a gap, and write the held segments
    Slide,
    /// Stop the direction; no more of its octets are written
    Poison,
    /// Drop the segment that exceeds the limit
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
    /// Returns the configuration of the reassembler according to these options.
    pub(super) fn reassembler(&self) -> ReassemblerConfig {
        let mut config = ReassemblerConfig::default();
        (config.overlap, config.overflow) = (self.overlap, self.overflow.into());
        (config.compared_len, config.ack_grace) = (COMPARED_LEN, self.grace.ack_grace);
        config
    }
}
