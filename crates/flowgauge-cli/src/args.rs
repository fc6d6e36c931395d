//! Command-line arguments.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use flowgauge::decode::fragment::OverlapPolicy;
use flowgauge::dedup::Mode;
use flowgauge::tracker::Timeouts;
use flowgauge::{
    Builder, ChecksumHandling, ConfigError, Decapsulation, DedupConfig, Filter, FragmentHandling, Limits,
    Pipeline, Records, Resources, SortKey, Stage, TrackerConfig,
};

use crate::console::Failure;
use crate::sessions::SessionsArgs;
use crate::streams::StreamsArgs;

/// Turns packets into flows.
#[derive(Debug, Parser)]
#[command(name = "flowgauge", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Examples:
  flowgauge flows capture.pcap                     one line per flow
  flowgauge flows capture.pcap --top 10            the ten flows with the most octets
  tcpdump -w - | flowgauge flows - --format ndjson
  flowgauge slice capture.pcap --filter 'tcp port 443' -w https.pcapng
  flowgauge streams capture.pcap --out streams     a file per direction of each TCP connection
  flowgauge sessions capture.pcap --protocol dns   a line per message

`flowgauge COMMAND --help` describes the options of a command.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Flows(FlowsArgs),
    Slice(SliceArgs),
    Streams(StreamsArgs),
    Sessions(SessionsArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Print the flows in captures, both directions of a conversation as one.
///
/// Reads pcap and pcapng, plain or compressed with gzip or zstd, and merges several files in time order. A flow is
/// written when it ends: closed by its protocol, silent for too long, or at the end of the input. `--sort` and `--top`
/// need all flows before the first can be written; without them, memory does not grow with the number of flows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowgauge flows day1.pcap day2.pcap.gz
  flowgauge flows capture.pcap --top 10 --sort packets
  flowgauge flows capture.pcap --filter 'tcp dst port 80 or 443 and not net 10.0.0.0/8'
  flowgauge flows capture.pcap --format ndjson | jq -c 'select(.conn_state == \"S0\")'
  ssh host tcpdump -U -w - | flowgauge flows -

Exit status: 0 if all input was read, 1 if some of it could not be (what could be read is written),
2 if the command line is wrong.")]
pub(crate) struct FlowsArgs {
    /// Capture files; `-` is standard input
    #[cfg_attr(feature = "live", arg(value_name = "FILE", required_unless_present = "interface"))]
    #[cfg_attr(not(feature = "live"), arg(value_name = "FILE", required = true))]
    pub(crate) files: Vec<PathBuf>,

    /// Listen on a network interface instead (needs the right to capture)
    ///
    /// Flows that go on are written every 30 minutes unless --active-timeout says otherwise.
    #[cfg(feature = "live")]
    #[arg(long, short = 'i', value_name = "NAME", conflicts_with = "files")]
    pub(crate) interface: Option<String>,

    /// How long to listen, such as 10s or 1h; without it until Ctrl-C or SIGTERM
    #[cfg(feature = "live")]
    #[arg(long, value_name = "TIME", requires = "interface", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// How to write flows
    #[arg(long, short = 'f', value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Put the flows in order; all of them are kept in memory until the end
    ///
    /// Without it flows come in the order in which they end. Those that come first in time are first for `start` and
    /// `end`, and the greatest are first for the others. What is equal stays in the order in which it ended.
    ///
    /// start: first packet; end: last packet; duration: from the first packet to the last; packets, octets (on the wire), payload
    /// (octets that the transport carried) and retransmitted (TCP segments): of both sides; rtt: of the TCP handshake.
    #[arg(long, short = 's', value_parser = sort_key_parser(), value_name = "FIELD")]
    pub(crate) sort: Option<SortKey>,

    /// Turn the order of --sort around
    #[arg(long, short = 'r')]
    pub(crate) reverse: bool,

    /// Only the first N flows in the order of --sort (of `octets` if not given)
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count::<NonZeroUsize>)]
    pub(crate) top: Option<NonZeroUsize>,

    /// Make a record of flows that go on after each TIME, such as 30m; `none` for never [default: none for files]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) active_timeout: Option<Timeout>,

    /// Only flows for which this holds: the everyday part of pcap-filter(7)
    ///
    /// host, net, port, portrange, tcp, udp, icmp, ip, ip6, proto, vlan; src and dst; and, or, not, parentheses. The
    /// source is the side that began the flow. A filter keeps or drops whole flows.
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// Whether to find out what is spoken in each flow: http, tls, dns ...; see docs/protocols.md
    ///
    /// ndjson and csv have `application`, and `application_evidence`: content or port. A table shows it beside the protocol, if
    /// asked for.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Applications::Auto)]
    pub(crate) application: Applications,

    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long, value_enum, default_value_t = Checksums::Ignore)]
    pub(crate) checksums: Checksums,

    /// Which flow a packet in a tunnel counts for
    #[arg(long, value_enum, default_value_t = Tunnels::Innermost)]
    pub(crate) tunnels: Tunnels,

    /// Show in ndjson and csv what encloses the packets of each flow: labels, tunnels, their numbers and ends
    #[arg(long)]
    pub(crate) encapsulation: bool,

    /// Track on N threads, each with its share of the flows; one more reads
    ///
    /// The same flows are written, those that end together perhaps in another order. Not with `--tunnels both`.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_shards)]
    #[cfg_attr(feature = "live", arg(conflicts_with = "interface"))]
    pub(crate) shards: NonZeroUsize,

    /// What to do with IP fragments
    #[arg(long, value_enum, default_value_t = Fragments::Whole)]
    pub(crate) fragments: Fragments,

    /// Which bytes win where IPv4 fragments overlap: discard, first, last, or a family of operating systems
    ///
    /// discard (the datagram, as RFC 5722 asks of IPv6), linux, first, last, bsd, bsd_right, linux2, windows, solaris.
    #[arg(long, value_name = "POLICY", default_value = "discard", hide_default_value = true)]
    pub(crate) fragment_policy: OverlapPolicy,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// Write the packets of chosen flows, both directions, to a pcapng file.
///
/// `src`, `dst` and `vlan` in a filter are about a whole flow, whose beginner may be known only at its end. Such a
/// filter reads the files twice, and cannot read from a pipe. Fragments that do not show their ports belong to no
/// flow with ports, and are left out of a slice that is chosen by ports.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").required(true).args(["community_id", "filter"])))]
#[command(after_help = "Examples:
  flowgauge slice capture.pcap --community-id 1:LQU9qZlK+B5F3KDmev6m5PMibrg= -w flow.pcapng
  flowgauge slice day*.pcap --filter 'host 192.0.2.1 and tcp' -w - | tshark -r -

Exit status: 0 if all input was read and packets were written, 1 if some input could not be read or
no flow was found (then there is no file), 2 if the command line is wrong.")]
pub(crate) struct SliceArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// A flow's Community ID (version 1, seed 0), as `flows --format ndjson` shows it; may be given several times
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(crate) community_id: Vec<String>,

    /// Flows for which this holds; see `flowgauge flows --help`
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// Where to write; `-` is standard output
    #[arg(long, short = 'w', value_name = "OUT")]
    pub(crate) write: PathBuf,

    /// Overwrite OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// When flows are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Applications {
    /// For ndjson and csv
    Auto,
    /// For any format
    Always,
    /// Never: the keys are empty
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct DedupArgs {
    /// Leave out packets that were captured twice within TIME, such as 500us or 2ms [default TIME: 1ms]
    ///
    /// What a host sends twice may look the same: --dedup-between-interfaces tells these apart, if the copies come from
    /// different interfaces.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms")]
    #[arg(value_parser = parse_duration)]
    pub(crate) dedup: Option<Duration>,

    /// What must be equal for --dedup
    #[arg(long, value_enum, default_value_t = DedupMode::Exact, requires = "dedup")]
    pub(crate) dedup_mode: DedupMode,

    /// With --dedup, compare octets too, and not only a keyed hash of 64 bits
    #[arg(long, requires = "dedup")]
    pub(crate) dedup_verify: bool,

    /// With --dedup, leave out only what another interface captured
    #[arg(long, requires = "dedup")]
    pub(crate) dedup_between_interfaces: bool,
}

/// Options of all commands that read captures.
#[derive(Debug, Args)]
pub(crate) struct SharedArgs {
    /// End flows that were silent for TIME, such as 30s or 5m; `none` for never
    ///
    /// Without it: TCP 5 min, TCP handshakes 65 s, closed TCP connections 15 s, UDP 60 s, all else 30 s.
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) idle_timeout: Option<Timeout>,

    /// Open flows at once, at most; beyond that, the oldest unanswered ones make room [default: 1048576]
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU32>)]
    pub(crate) max_flows: Option<NonZeroU32>,

    /// Memory to take at most, such as 256MiB [default: 1GiB, or more if --max-flows asks for it]
    ///
    /// For flows, fragments, streams, sessions and the captures that are being read. What is kept for --sort and --top and what
    /// is being written come on top, and some 32 MiB for the program itself.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,

    /// The longest window of a zstd frame, such as 128MiB: what its decoder has to keep [default: 8MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_window)]
    pub(crate) zstd_window: Option<u32>,

    #[command(flatten)]
    pub(crate) dedup: DedupArgs,

    /// No progress bar and no summary; problems are still reported
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GraceArgs {
    /// Wait TIME for octets that the receiver has acknowledged already, such as 50ms or 2s
    ///
    /// The times are those of the packets. In a capture whose packets are out of order, or whose times were made up, an
    /// acknowledgment may come long before the octets that it covers. With a longer time, these are put in order instead of
    /// reported as a gap.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10ms")]
    pub(crate) ack_grace: Duration,
}

/// Print a script that completes commands and options in a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowgauge completions bash > ~/.local/share/bash-completion/completions/flowgauge")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print a man page, or write all of them to a folder.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowgauge man flows | man -l -")]
pub(crate) struct ManArgs {
    /// The command whose page to print
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) page: Option<String>,

    /// Write flowgauge.1, flowgauge-flows.1 and so on to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// How flows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: as many columns as the terminal has room for
    Table,
    /// A JSON object per line
    Ndjson,
    /// A header and a line per flow, with the fields of ndjson
    Csv,
}

/// What of two packets must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DedupMode {
    /// All octets
    Exact,
    /// All that neither a mirror port nor a router changes: not MACs, VLAN tags, TTL, traffic class, header checksum
    Mirror,
}

impl From<DedupMode> for Mode {
    fn from(mode: DedupMode) -> Self {
        match mode {
            DedupMode::Exact => Self::Exact,
            DedupMode::Mirror => Self::IgnoreMirrorChanges,
        }
    }
}

/// What is done about checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Checksums {
    /// They are not looked at
    Ignore,
    /// The summary tells how many are wrong, or were left to the network card
    Count,
    /// The same, and packets with a wrong one are left out; those left to the network card are not
    Drop,
}

impl From<Checksums> for ChecksumHandling {
    fn from(checksums: Checksums) -> Self {
        match checksums {
            Checksums::Ignore => Self::Ignore,
            Checksums::Count => Self::Count,
            Checksums::Drop => Self::Drop,
        }
    }
}

/// Which flows count a packet in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tunnels {
    /// The one inside
    Innermost,
    /// The tunnel
    Outermost,
    /// Both, and each tunnel in between: the packet counts in each, and their records name each other
    Both,
}

impl From<Tunnels> for Decapsulation {
    fn from(tunnels: Tunnels) -> Self {
        match tunnels {
            Tunnels::Innermost => Self::Innermost,
            Tunnels::Outermost => Self::Outermost,
            Tunnels::Both => Self::Both,
        }
    }
}

/// What becomes of IP fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fragments {
    /// Each counts for its datagram's flow; without the first one they are counted apart
    Whole,
    /// The same, but without the first one they are a flow of their address pair
    Pair,
    /// None waits: the first one counts by its ports, others for their address pair
    AsTheyCome,
}

impl From<Fragments> for FragmentHandling {
    fn from(fragments: Fragments) -> Self {
        match fragments {
            Fragments::Whole => Self::Reassemble,
            Fragments::Pair => Self::ReassembleOrPair,
            Fragments::AsTheyCome => Self::AsTheyCome,
        }
    }
}

/// The names of sort keys.
fn sort_key_parser() -> impl TypedValueParser<Value = SortKey> {
    PossibleValuesParser::new(SortKey::ALL.map(SortKey::name)).try_map(|name| {
        let found = SortKey::ALL.into_iter().find(|key| key.name() == name);
        found.ok_or("no such field")
    })
}

/// A duration, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeout(pub(crate) Option<Duration>);

fn parse_count<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "not a whole number above zero that fits here".to_owned())
}

/// A number of bytes, or of units of them: kB, MB and GB of thousands, KiB, MiB and GiB of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
        ("", 1),
    ];
    let found = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?.trim_end(), bytes)));
    let size = found.and_then(|(digits, bytes)| digits.parse::<u64>().ok()?.checked_mul(*bytes));
    size.filter(|size| *size > 0).ok_or_else(|| "a size looks like 256MiB, 1GB or 1000000".to_owned())
}

fn parse_window(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "less than 4GiB".to_owned())
}

fn parse_shards(text: &str) -> Result<NonZeroUsize, String> {
    let count: NonZeroUsize = parse_count(text)?;
    if count.get() <= 256 { Ok(count) } else { Err("at most 256".to_owned()) }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

fn parse_timeout(text: &str) -> Result<Timeout, String> {
    match text {
        "none" => Ok(Timeout(None)),
        _ => match parse_duration(text)? {
            Duration::ZERO => Err("not a time that can pass; for no timeout write `none`".to_owned()),
            timeout => Ok(Timeout(Some(timeout))),
        },
    }
}

/// Version, colon, twenty octets in base64.
pub(crate) fn parse_community_id(text: &str) -> Result<String, String> {
    let is_base64 = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    match text.strip_prefix("1:").and_then(|rest| rest.strip_suffix('=')) {
        Some(hash) if hash.len() == 27 && hash.bytes().all(is_base64) => Ok(text.to_owned()),
        _ => Err("a Community ID looks like 1:LQU9qZlK+B5F3KDmev6m5PMibrg=".to_owned()),
    }
}

/// Reads a filter expression; an error shows the place.
pub(crate) fn parse_filter(expression: &str) -> Result<Filter, Failure> {
    Filter::parse(expression).map_err(|error| {
        let lines: String = error.render(expression).lines().map(|line| format!("\n  {line}")).collect();
        Failure::Usage(format!("--filter cannot be read:{lines}"))
    })
}

impl DedupArgs {
    /// Returns the settings of the window, if one is wanted.
    fn config(&self) -> Option<DedupConfig> {
        let mut config = DedupConfig::default();
        (config.window, config.mode) = (self.dedup?, self.dedup_mode.into());
        (config.only_between_interfaces, config.verifies) =
            (self.dedup_between_interfaces, self.dedup_verify);
        Some(config)
    }
}

impl SharedArgs {
    /// Returns limits and budget, which the pipelines and the source of a command share.
    pub(crate) fn resources(&self) -> Resources {
        let mut limits = Limits::DEFAULT;
        if let Some(count) = self.max_flows {
            limits.flow_count_max = count.get();
            // More flows require more memory: a flow, its entry in the index while that grows, and its state for TCP
            // take less than this.
            let bytes = u64::from(count.get()) * 512;
            limits.total_bytes_max = bytes.max(limits.total_bytes_max);
        }
        limits.total_bytes_max = self.memory.unwrap_or(limits.total_bytes_max);
        // The maximum that the library permits: captures use a quarter of the budget.
        limits.source_bytes_max = limits.total_bytes_max / 4;
        limits.zstd_window_len_max = self.zstd_window.unwrap_or(limits.zstd_window_len_max);
        Resources::new(limits)
    }

    /// Returns a builder with the settings of these options and a filter.
    pub(crate) fn builder(&self, resources: &Resources, filter: Option<&Filter>) -> Builder {
        let mut tracker = TrackerConfig::default();
        if let Some(Timeout(timeout)) = self.idle_timeout {
            tracker.timeouts = Timeouts::all(timeout);
        }
        let mut builder = Pipeline::builder().resources(resources.clone()).tracker(tracker);
        if let Some(dedup) = self.dedup.config() {
            builder = builder.dedup(dedup);
        }
        match filter {
            Some(filter) => builder.filter(filter.clone()),
            None => builder,
        }
    }
}

/// Refuses settings that no pipeline with a stage can be built with, before any file is opened or created.
pub(crate) fn check<G: Stage>(builder: &Builder) -> Result<(), ConfigError> {
    builder.build(Records::new(|_| ()).with_stage::<G>()).map(drop)
}
