//! Options that several commands share, and parsers of their values.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use flowgauge::decode::extractor::Scope;
use flowgauge::dedup::Mode;
use flowgauge::pipeline::boxed;
use flowgauge::row::RowType as _;
use flowgauge::source::ShiftedFrames;
use flowgauge::tracker::Timeouts;
use flowgauge::{
    Builder, ChecksumHandling, ConfigError, Decapsulation, DedupConfig, Filter, FlowRecord, FragmentHandling,
    Limits, Pipeline, Protocols as _, Records, Resources, Stage, Standard, TrackerConfig,
};

pub(crate) use flowgauge_condition::{parse_duration, parse_size};

use crate::console::Failure;

#[derive(Debug, Args)]
pub(crate) struct DedupArgs {
    /// Skip duplicate packets within TIME [default TIME: 1ms]
    ///
    /// A host may send two identical packets on purpose. If the duplicates in the capture come from different
    /// interfaces, --dedup-between-interfaces keeps such packets.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms")]
    #[arg(value_parser = parse_duration)]
    pub(crate) dedup: Option<Duration>,

    /// Octets that --dedup compares: exact or mirror
    ///
    /// `exact` compares all octets; `mirror` ignores what a mirror port or a router changes.
    #[arg(long, hide_short_help = true, value_enum, value_name = "MODE", default_value_t = DedupMode::Exact, requires = "dedup")]
    #[arg(hide_possible_values = true)]
    pub(crate) dedup_mode: DedupMode,

    /// With --dedup, compare the octets, not only 64-bit keyed hashes
    #[arg(long, hide_short_help = true, requires = "dedup")]
    pub(crate) dedup_verify: bool,

    /// With --dedup, skip only duplicates from another interface
    #[arg(long, hide_short_help = true, requires = "dedup")]
    pub(crate) dedup_between_interfaces: bool,
}

/// Options of all commands that read captures.
#[derive(Debug, Args)]
pub(crate) struct SharedArgs {
    /// End flows after TIME without a packet, such as 30s, or `none`
    ///
    /// Defaults: TCP connections 5 min, TCP handshakes 65 s, closed TCP connections 15 s, UDP 60 s, other protocols
    /// 30 s. The option replaces all of them. With `none`, flows end only by their protocol or with the input.
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) idle_timeout: Option<Timeout>,

    /// Maximum number of open flows [default: 1048576]
    ///
    /// When the maximum is reached, each new flow evicts another one: TCP handshakes first, then unanswered flows, then
    /// closed ones, then others.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count::<NonZeroU32>)]
    pub(crate) max_flows: Option<NonZeroU32>,

    /// Memory limit, such as 256MiB [default: 1GiB]
    ///
    /// Limits the memory of flows, fragments, streams, sessions, transactions, features, open capture files, and records
    /// kept for --sort and --top. Groups and rows over time (256 MiB), output buffers, and about 32 MiB for the program
    /// itself are not included. The default is higher if --max-flows requires it: 512 bytes per flow.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,

    /// Maximum window of zstd files, such as 128MiB [default: 8MiB]
    ///
    /// The decoder needs this much memory. Files compressed with `zstd --long=27` have a window of 128MiB.
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = parse_window)]
    pub(crate) zstd_window: Option<u32>,

    #[command(flatten)]
    pub(crate) dedup: DedupArgs,

    /// Suppress progress bar and summary; problems are still reported
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GraceArgs {
    /// Wait TIME for octets that were already acknowledged
    ///
    /// The time is measured by the timestamps of the packets. In a capture with reordered packets or artificial
    /// timestamps, an acknowledgment may precede the octets that it covers by more than the default. With a longer
    /// time, these octets are put in order instead of reported as a gap. If the capture has no later octets of their
    /// direction either, which then may be late as a whole, the time is at least 50ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10ms")]
    pub(crate) ack_grace: Duration,

    #[command(flatten)]
    pub(crate) shift: ShiftArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ShiftArgs {
    /// Add TIME to the times of the frames of SIDE, such as 1=-20ms; may be repeated
    ///
    /// Corrects a capture of which one direction is late, as `flowgauge summary` reports. SIDE is the number of an
    /// interface, or the source address of Ethernet frames, such as 02:00:00:00:00:01. The order of the frames remains.
    #[arg(long, hide_short_help = true, value_name = "SIDE=TIME", value_parser = parse_shift)]
    pub(crate) shift_time: Vec<(ShiftedFrames, i64)>,
}

impl ShiftArgs {
    /// Returns an error if times are shifted and another option that excludes that is used.
    pub(crate) fn exclude(&self, option: &str, is_used: bool) -> Result<(), Failure> {
        if is_used && !self.shift_time.is_empty() {
            return Err(Failure::Usage(format!("--shift-time cannot be combined with {option}")));
        }
        Ok(())
    }
}

fn parse_shift(text: &str) -> Result<(ShiftedFrames, i64), String> {
    let (side, time) = text.split_once('=').ok_or("must be SIDE=TIME, such as 1=-20ms")?;
    let octets: Vec<_> = side.split(':').map(|octet| u8::from_str_radix(octet, 16)).collect();
    let frames = match octets.as_slice() {
        [Ok(a), Ok(b), Ok(c), Ok(d), Ok(e), Ok(f)] => ShiftedFrames::SourceMac([*a, *b, *c, *d, *e, *f]),
        _ => {
            let interface = side.parse();
            ShiftedFrames::Interface(
                interface.map_err(|_| "SIDE must be the number of an interface or a MAC address")?,
            )
        }
    };
    let (is_negative, time) = match time.strip_prefix('-') {
        Some(time) => (true, time),
        None => (false, time.strip_prefix('+').unwrap_or(time)),
    };
    let nanos = i64::try_from(parse_duration(time)?.as_nanos()).map_err(|_| "the time is too long")?;
    Ok((frames, if is_negative { -nanos } else { nanos }))
}

/// Memory pages of the flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Huge pages, for a single pipeline that reads files. A large table is faster, and takes up to 12 MiB and 0.5 %
    /// more memory than the limit counts.
    Huge,
    /// Ordinary pages, for several pipelines, and for interfaces: the kernel may need milliseconds for a huge page, in
    /// which frames could be lost.
    Ordinary,
}

/// Octets of two packets that must be equal for a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DedupMode {
    /// All octets
    Exact,
    /// All except those that mirror ports and routers change: MAC addresses, VLAN tags, TTL, traffic class, header
    /// checksum
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

/// Handling of checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Checksums {
    /// Do not verify checksums
    Ignore,
    /// Count wrong and offloaded checksums in the summary
    Count,
    /// Count them, and drop packets with a wrong checksum; packets with an offloaded checksum are kept
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

/// Flows that count a tunneled packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tunnels {
    /// The flow inside the tunnel
    Innermost,
    /// The flow of the outermost tunnel
    Outermost,
    /// Both flows and those of tunnels in between; their records refer to each other
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

/// Interfaces whose packets belong to the same flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowScope {
    /// All interfaces: packets with the same addresses and ports are one flow
    All,
    /// Each interface, virtual network or mirror session has its own flows
    Interface,
}

impl From<FlowScope> for Scope {
    fn from(scope: FlowScope) -> Self {
        match scope {
            FlowScope::All => Self::Fixed(0),
            FlowScope::Interface => Self::Interface,
        }
    }
}

/// Handling of IP fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fragments {
    /// Reassemble datagrams and count each fragment for the flow of its datagram; orphan fragments belong to no flow
    Whole,
    /// Reassemble datagrams; orphan fragments belong to a flow of their address pair
    Pair,
    /// Do not reassemble: the first fragment counts for its ports, others for their address pair
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

/// A timeout; `None` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeout(pub(crate) Option<Duration>);

pub(crate) fn parse_count<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|_| "must be a whole number greater than zero, and not too large for this option".to_owned())
}

fn parse_window(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "must be less than 4GiB".to_owned())
}

pub(crate) fn parse_timeout(text: &str) -> Result<Timeout, String> {
    match text {
        "none" => Ok(Timeout(None)),
        _ => match parse_duration(text)? {
            Duration::ZERO => Err("timeout must be greater than zero; use `none` for no timeout".to_owned()),
            timeout => Ok(Timeout(Some(timeout))),
        },
    }
}

/// Parses a Community ID of version 1: `1:`, then twenty octets in base64. Returns the text unchanged.
pub(crate) fn parse_community_id(text: &str) -> Result<String, String> {
    let is_base64 = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    match text.strip_prefix("1:").and_then(|rest| rest.strip_suffix('=')) {
        Some(hash) if hash.len() == 27 && hash.bytes().all(is_base64) => Ok(text.to_owned()),
        _ => Err("must be a Community ID of version 1, such as 1:LQU9qZlK+B5F3KDmev6m5PMibrg=".to_owned()),
    }
}

/// Parses a filter expression. An error shows the expression and the position.
pub(crate) fn parse_filter(expression: &str) -> Result<Filter, Failure> {
    Filter::parse(expression).map_err(|error| {
        let lines: String = error.render(expression).lines().map(|line| format!("\n  {line}")).collect();
        let word = expression.chars().skip(error.column() - 1);
        let word: String = word.take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let hint = hint(&word).map(|hint| format!("\n  {hint}")).unwrap_or_default();
        Failure::Usage(format!("--filter: invalid expression:{lines}{hint}"))
    })
}

/// Returns where a word of a filter expression belongs that is no part of such expressions.
fn hint(word: &str) -> Option<String> {
    let is_application = Standard::of_name(word).is_some();
    let is_field = FlowRecord::columns().iter().any(|column| column.name == word);
    if is_application {
        Some(format!("applications are selected by --where, such as --where \"application = '{word}'\""))
    } else {
        is_field.then(|| format!("fields are selected by --where, such as --where '{word} IS NOT NULL'"))
    }
}

impl DedupArgs {
    /// Returns the configuration of deduplication, if the options enable it.
    fn config(&self) -> Option<DedupConfig> {
        let mut config = DedupConfig::default();
        (config.window, config.mode) = (self.dedup?, self.dedup_mode.into());
        (config.only_between_interfaces, config.verifies) =
            (self.dedup_between_interfaces, self.dedup_verify);
        Some(config)
    }
}

impl SharedArgs {
    /// Returns the options that decide about flows and packets, as they are on the command line.
    pub(crate) fn reading_options(&self) -> String {
        let time = |time: Duration| humantime::format_duration(time).to_string().replace(' ', "");
        let mut options = Vec::new();
        match self.idle_timeout {
            Some(Timeout(Some(timeout))) => options.push(format!("--idle-timeout {}", time(timeout))),
            Some(Timeout(None)) => options.push("--idle-timeout none".to_owned()),
            None => {}
        }
        if let Some(count) = self.max_flows {
            options.push(format!("--max-flows {count}"));
        }
        let DedupArgs { dedup, dedup_mode, dedup_verify, dedup_between_interfaces } = self.dedup;
        if let Some(window) = dedup {
            options.push(format!("--dedup={}", time(window)));
        }
        if dedup_mode == DedupMode::Mirror {
            options.push("--dedup-mode mirror".to_owned());
        }
        if dedup_verify {
            options.push("--dedup-verify".to_owned());
        }
        if dedup_between_interfaces {
            options.push("--dedup-between-interfaces".to_owned());
        }
        options.join(" ")
    }

    /// Returns the limits and the memory budget, which the pipelines and the source of a command share.
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

    /// Returns a pipeline builder with the settings of these options and a filter.
    pub(crate) fn builder(&self, resources: &Resources, filter: Option<&Filter>, pages: Pages) -> Builder {
        let mut tracker = TrackerConfig::default();
        tracker.huge_pages = pages == Pages::Huge;
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

/// Checks that a pipeline with the stage `G` can be built with these settings, before any file is opened or created.
pub(crate) fn check<G: Stage>(builder: &Builder) -> Result<(), ConfigError> {
    builder.build(boxed(Records::new(|_| ()).with_stage::<G>())).map(drop)
}
