//! Command-line arguments of `flowgauge collect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::{Timeout, parse_duration, parse_size, parse_timeout};
use crate::endpoint::Endpoint;
use crate::formats::OutputArgs;
use crate::groups::SeriesArgs;
use crate::summary::SummaryLineArgs;
use crate::write::WriteArgs;

/// Print or export flow records that other programs and devices export with IPFIX, NetFlow or sFlow.
///
/// Receives IPFIX, NetFlow version 9, NetFlow version 5 and sFlow version 5 over UDP, and IPFIX over TCP, until Ctrl-C.
/// Also reads files of IPFIX messages, and captures that contain the messages: over UDP, TCP and SCTP. Fields that an exporter does not send are
/// absent. Packets that an exporter sampled become flows; the field `sampling_interval` states that one of so many
/// packets was counted.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge collect --listen udp://0.0.0.0:2055 --listen udp://0.0.0.0:4739
  flowgauge collect --listen tcp://127.0.0.1:4739 --format ndjson > flows.ndjson
  flowgauge collect flows.ipfix --format csv
  flowgauge collect capture.pcap --port 9996
  flowgauge collect --listen udp://0.0.0.0:2055 --format zeek --out logs --rotate 1h
  flowgauge collect --listen udp://127.0.0.1:2055 --join 30s --format ipfix --to tcp://192.0.2.1:4739

Exit status:
  0  All input was read.
  1  Some input could not be read, or the output could not be written.
  2  The command line is invalid.")]
pub(crate) struct CollectArgs {
    /// Files of IPFIX messages (RFC 5655), or captures; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "listen")]
    pub(crate) files: Vec<PathBuf>,

    /// Receive messages at an address, such as udp://127.0.0.1:4739 or tcp://[::]:4739; may be repeated
    #[arg(long, value_name = "ADDRESS", conflicts_with = "files")]
    pub(crate) listen: Vec<Endpoint>,

    /// Port of the messages in captures; may be repeated [default: 2055, 4739, 6343, 9995, 9996]
    #[arg(long, value_name = "N", requires = "files")]
    pub(crate) port: Vec<u16>,

    /// Duration of the reception, such as 10s or 1h; without it, until Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", requires = "listen", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Join the two uniflows of a flow to one record
    ///
    /// A uniflow waits for TIME for the one of the other direction. At most 65536 uniflows wait, within --memory.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) join: Option<Duration>,

    /// Multiply packets and octets by the sampling interval
    ///
    /// The field `counter_scale` is the factor of these estimates.
    #[arg(long)]
    pub(crate) scale: bool,

    /// Write a record of each open flow of sampled packets every TIME, such as 30m
    ///
    /// The default is 30m for addresses, and none for files.
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) active_timeout: Option<Timeout>,

    /// Memory limit for flows of sampled packets and for --join, such as 256MiB [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(super) series: SeriesArgs,

    #[command(flatten)]
    pub(crate) written: WriteArgs,

    #[command(flatten)]
    pub(super) summary: SummaryLineArgs,

    /// Suppress the summary; problems are still reported
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}
