//! Command-line arguments of `flowgauge publish`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge_bus::{Encoding, PublicKey};

use crate::args::{SharedArgs, Timeout, parse_count, parse_duration, parse_timeout};
use crate::summary::SummaryLineArgs;

/// Publish flow records, messages and anomalies to subscribers (ZeroMQ).
///
/// Subscribers select topics by a prefix: flow.start, flow.update and flow.end are records of flows, session.http and so
/// on are messages of application protocols, and anomaly.syn_on_open_flow and so on are unusual traffic. Any ZeroMQ
/// library can subscribe; docs/design/bus.md describes the messages. Ctrl-C ends the input, and all records are sent.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("input").required(true).args(["files", "interface"])))]
#[command(after_long_help = "Examples:
  flowgauge publish capture.pcap --bind tcp://127.0.0.1:5556 --wait-for-subscribers 1
  flowgauge publish -i eth0 --bind ipc:///run/flows --bind tcp://127.0.0.1:5556
  flowgauge publish capture.pcap --bind tcp://127.0.0.1:5556 --format ndjson --sessions
  flowgauge publish -i eth0 --bind tcp://192.0.2.1:5556 --allow-remote --curve-key publisher.key

Exit status:
  0  All input was read and published.
  1  Some input could not be read, or an endpoint could not be bound.
  2  The command line is invalid.
  129, 130, 143  SIGHUP, Ctrl-C or SIGTERM ended the input, and all records were sent.")]
pub(crate) struct PublishArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// Capture on a network interface (needs the feature `live` of this command)
    #[arg(long, short = 'i', value_name = "NAME")]
    pub(super) interface: Option<String>,

    /// Accept subscribers at tcp://HOST:PORT or ipc://PATH; may be repeated
    #[arg(long, value_name = "ENDPOINT", required = true)]
    pub(super) bind: Vec<String>,

    /// Accept subscribers from other hosts; without --curve-key, anyone can read the events
    #[arg(long)]
    pub(super) allow_remote: bool,

    /// Encrypt with the secret key in FILE (CURVE), which is created if it does not exist
    ///
    /// Subscribers need the public key, which is printed. The file contains 40 characters of Z85, or is a certificate of
    /// ZeroMQ with a secret key.
    #[arg(long, value_name = "FILE")]
    pub(super) curve_key: Option<PathBuf>,

    /// Accept only subscribers with this public key; may be repeated
    // A key may begin with a hyphen.
    #[arg(long, value_name = "KEY", requires = "curve_key", allow_hyphen_values = true)]
    pub(super) curve_client: Vec<PublicKey>,

    /// Encoding of flow records
    #[arg(long, short = 'f', value_enum, default_value_t = BusFormat::Records)]
    pub(super) format: BusFormat,

    /// Begin when N subscribers have subscribed
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroUsize>)]
    pub(super) wait_for_subscribers: Option<NonZeroUsize>,

    /// Append protocol and port to topics, such as flow.end.tcp.443
    #[arg(long)]
    pub(super) keys: bool,

    /// Publish the messages of application protocols too
    #[arg(long)]
    pub(super) sessions: bool,

    /// Wait TIME for a subscriber with a full queue, before messages for it are dropped
    ///
    /// The default is 5s for files and 0s for an interface. Dropped records are counted in the summary, and by
    /// `flowgauge subscribe`. Other subscribers lose nothing.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) stall: Option<Duration>,

    /// Maximum number of messages of up to 64 KiB that wait for a subscriber
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_count::<NonZeroUsize>)]
    pub(super) queue: NonZeroUsize,

    /// Duration of the capture on an interface, such as 1h; default: until Ctrl-C
    #[arg(long, value_name = "TIME", requires = "interface", value_parser = parse_duration)]
    pub(super) duration: Option<Duration>,

    /// Publish only flows that match an expression, as in pcap-filter(7)
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(super) filter: Option<String>,

    /// Publish a record of each open flow every TIME, or `none` [default: 30m for an interface]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(super) active_timeout: Option<Timeout>,

    #[command(flatten)]
    pub(super) summary: SummaryLineArgs,

    #[command(flatten)]
    pub(super) shared: SharedArgs,
}

/// Encoding of published flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BusFormat {
    /// Fixed records of 64 octets
    Records,
    /// JSON objects with all fields
    Ndjson,
}

impl From<BusFormat> for Encoding {
    fn from(format: BusFormat) -> Self {
        match format {
            BusFormat::Records => Self::Records,
            BusFormat::Ndjson => Self::Ndjson,
        }
    }
}
