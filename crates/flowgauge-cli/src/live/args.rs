//! Command-line arguments of `flowgauge live`.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::origin::{Connection, Listener};
use crate::args::{parse_count, parse_duration, parse_size};
use crate::checkpoint::CheckpointArgs;
use crate::records::RecordArgs;

/// Print the flows of an interface, a mirror session or a remote capture as they end.
///
/// Captures on a network interface, receives frames that a switch or a host mirrors inside datagrams, or reads captures
/// that other programs send over TCP, until Ctrl-C. The open flows are written at the end. Packets that the kernel
/// dropped are reported while their number grows, and in the summary.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("origin").required(true).args(["interface", "listen", "connect"])))]
#[command(after_long_help = "Examples:
  flowgauge live -i eth0
  flowgauge live -i eth0 --capture-filter 'not port 22' --format ndjson > flows.ndjson
  flowgauge live -i eth0 --write day.pcapng --rotate-size 1GB --keep 24
  flowgauge live --listen udp://192.0.2.1:4789/vxlan
  flowgauge live --listen tcp://127.0.0.1:57012/pcap
  flowgauge live --connect tcp://192.0.2.1:57012/pcap

Exit status:
  0  The capture was complete, except for packets that the summary lists.
  1  The capture could not start or continue, or the output could not be written.
  2  The command line is invalid.
  129, 130, 143  SIGHUP, Ctrl-C or SIGTERM ended the capture, and all flows were written.")]
pub(crate) struct LiveArgs {
    /// Capture on a network interface; on Linux, `any` selects all
    ///
    /// `flowgauge interfaces` lists the interfaces. Needs the feature `live` of this command, and the permission to
    /// capture.
    #[arg(long, short = 'i', value_name = "NAME")]
    pub(super) interface: Option<String>,

    /// Receive mirrored frames or captures at an address
    ///
    /// udp://HOST:PORT/ENCAPSULATION receives frames inside datagrams, where ENCAPSULATION is vxlan, vxlan-gpe, geneve,
    /// tzsp or gre. ip://ADDRESS/gre receives GRE and ERSPAN directly over IP, which needs CAP_NET_RAW.
    /// tcp://HOST:PORT/pcap accepts connections that send captures in pcap or pcapng format.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<Listener>,

    /// Read a capture from tcp://HOST:PORT/pcap
    ///
    /// The connection is made again whenever it ends.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) connect: Option<Connection>,

    /// Duration of the capture, such as 1h; default: until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) duration: Option<Duration>,

    /// Capture only packets that match an expression of pcap-filter(7)
    ///
    /// The kernel discards all other packets, so that they cost nothing. In contrast, --filter selects flows after they
    /// were tracked.
    #[arg(long, value_name = "EXPR", requires = "interface")]
    pub(super) capture_filter: Option<String>,

    /// Maximum number of octets that are kept of each frame [default: 262144]
    #[arg(long, hide_short_help = true, value_name = "N", requires = "interface", value_parser = clap::value_parser!(u32).range(64..))]
    pub(super) snap_length: Option<u32>,

    /// Capture only frames for this host (no promiscuous mode)
    #[arg(long, hide_short_help = true, requires = "interface")]
    pub(super) no_promiscuous: bool,

    /// Read each frame when it arrives, instead of in groups
    #[arg(long, hide_short_help = true, requires = "interface")]
    pub(super) immediate: bool,

    /// Size of the kernel's receive buffer, such as 64MiB [default: 16MiB]
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = parse_size)]
    pub(super) buffer: Option<u64>,

    /// Show rates and the flows with the most traffic, instead of a line per flow
    ///
    /// `auto` shows the view if standard input and output are terminals, the format is `table`, and the program was built
    /// with the feature `view`. Keys: Tab selects flows, hosts or protocols, s the order, / a condition as in --where, Enter
    /// shows one flow with its messages, ? lists all keys, q ends the capture.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ViewChoice::Auto)]
    pub(super) view: ViewChoice,

    /// Begin a new file of frames when a file reaches this size, such as 1GB
    ///
    /// With --rotate-size or --rotate-interval, a number and the time (UTC) precede the extension:
    /// day_00001_20261123T120000.pcapng.
    #[arg(long, hide_short_help = true, value_name = "SIZE", requires = "write", value_parser = parse_size)]
    pub(super) rotate_size: Option<u64>,

    /// Begin a new file of frames after this time, such as 1h
    #[arg(long, hide_short_help = true, value_name = "TIME", requires = "write", value_parser = parse_duration)]
    pub(super) rotate_interval: Option<Duration>,

    /// Keep only the last N files of frames, and remove older ones
    #[arg(long, hide_short_help = true, value_name = "N", requires = "write", value_parser = parse_count::<NonZeroUsize>)]
    pub(super) keep: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) records: RecordArgs,

    #[command(flatten)]
    pub(super) checkpoint: CheckpointArgs,
}

/// Conditions for the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ViewChoice {
    /// Show it on a terminal
    Auto,
    /// Write records
    Never,
}
