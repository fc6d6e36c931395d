//! Options for flow records, which all commands that track flows share.

use clap::{Args, ValueEnum};
use flowgauge::decode::fragment::{OverlapPolicy, PoolConfig};
use flowgauge::{Builder, DriverConfig, Filter, KeyPolicy, PipelineStats, Resources};

use crate::args::{
    Checksums, FlowScope, Fragments, Pages, SharedArgs, Timeout, Tunnels, parse_filter, parse_timeout,
};
use crate::console::Failure;
use crate::formats::OutputArgs;
use crate::groups::SeriesArgs;
use crate::human::plural;
use crate::joined::JoinArgs;
use crate::rows::Written;
use crate::summary::SummaryLineArgs;
use crate::write::WriteArgs;

/// Options for flow records.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) written: WriteArgs,

    #[command(flatten)]
    pub(crate) series: SeriesArgs,

    #[command(flatten)]
    pub(crate) joined: JoinArgs,

    /// Write a record of each open flow every TIME, such as 30m
    ///
    /// `none` disables these records, which is the default for files; the default of `flowgauge live` is 30m. The field
    /// `sequence_number` numbers the records of a flow.
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) active_timeout: Option<Timeout>,

    /// Write only flows that match an expression, as in pcap-filter(7)
    ///
    /// The expression may contain host, net, port, portrange, tcp, udp, icmp, ip, ip6, proto and vlan, the directions
    /// src and dst, the operators and, or and not, and parentheses. The source is the initiator of the flow. A flow is
    /// written with all of its packets or not at all.
    #[arg(long, short = 'F', value_name = "EXPR")]
    filter: Option<String>,

    /// Identify applications: auto, always or never
    ///
    /// The fields `application`, such as http, tls or dns, and `application_evidence`, content or port, contain the
    /// result in ndjson and csv. The table shows the application behind the transport protocol with `always`. See
    /// docs/protocols.md for the protocols.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Applications::Auto, hide_possible_values = true)]
    application: Applications,

    /// Checksums: ignore, count or drop wrong ones
    ///
    /// Those of IPv4, TCP and UDP.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Checksums::Ignore, hide_possible_values = true)]
    checksums: Checksums,

    /// Flow of tunneled packets: innermost (default), outermost or both
    ///
    /// If all outputs are folders of Zeek's logs, the default is both.
    #[arg(long, value_enum, value_name = "FLOW", hide_possible_values = true)]
    tunnels: Option<Tunnels>,

    /// Interfaces that share flows: all or interface
    ///
    /// With `interface`, packets of different interfaces never belong to the same flow, so that equal addresses behind
    /// them do not mix. Each VXLAN network and each mirror session of `flowgauge live` is an interface. The field `scope` is
    /// the interface then.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = FlowScope::All, hide_possible_values = true)]
    scope: FlowScope,

    /// Add the outer headers of each flow to ndjson and csv
    ///
    /// The headers are label stacks and tunnels, with their identifiers and endpoints, from the outermost inward. A table
    /// shows them if --fields lists them.
    #[arg(long)]
    encapsulation: bool,

    /// IP fragments: whole, pair or as-they-come
    ///
    /// `whole` reassembles datagrams and counts each fragment for the flow of its datagram; orphan fragments belong to no
    /// flow, or with `pair` to a flow of their address pair. `as-they-come` does not reassemble: the first fragment counts
    /// for its ports, the others for their address pair.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Fragments::Whole, hide_possible_values = true)]
    fragments: Fragments,

    /// Policy for overlapping IPv4 fragments
    ///
    /// Policies: discard, linux, first, last, bsd, bsd_right, linux2, windows, solaris. `discard` discards the datagram,
    /// as RFC 5722 requires for IPv6. The others keep the octets that the named operating system keeps, or those of
    /// the first or last fragment.
    #[arg(long, hide_short_help = true, value_name = "POLICY", default_value = "discard")]
    fragment_policy: OverlapPolicy,

    #[command(flatten)]
    pub(crate) summary: SummaryLineArgs,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// Formats for which application protocols are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Applications {
    /// Identify applications for ndjson and csv
    Auto,
    /// Identify applications for all formats
    Always,
    /// Leave the fields empty
    Never,
}

impl RecordArgs {
    /// Returns a failure if options contradict each other. `has_frames` states that the command can write frames.
    pub(crate) fn check(&self, has_frames: bool) -> Result<(), Failure> {
        self.joined.check(&self.output)?;
        let format = self.output.format().logs();
        self.written.check(format, (false, has_frames))?;
        if self.joined.is_wanted() && self.written.is_wanted(format) {
            let usage =
                "--features, --label, --server-name, --names and --geoip cannot be combined with --write";
            return Err(Failure::Usage(usage.to_owned()));
        }
        if self.output.selection.is_used() && self.written.needs_transactions(format) {
            // Rows of transactions are written before their flows end.
            let usage = "--where and --community-id cannot be combined with logs in a folder";
            return Err(Failure::Usage(usage.to_owned()));
        }
        let has_others = self.joined.is_wanted() || self.written.is_wanted(format);
        self.output.check_groups(self.series.is_used(), has_others)?;
        if has_frames {
            self.output.check_order()?;
        }
        self.output.check()
    }

    /// Returns whether the outputs are several, or logs.
    pub(crate) fn is_several(&self) -> bool {
        self.written.is_wanted(self.output.format().logs())
    }

    /// Returns which flows of tunneled packets are tracked.
    pub(crate) fn tunnels(&self) -> Tunnels {
        let has_only_folders =
            self.is_several() && self.written.has_only_folders(self.output.chosen_format());
        self.tunnels.unwrap_or(if has_only_folders { Tunnels::Both } else { Tunnels::Innermost })
    }

    /// Returns whether rows are wanted, which a view does not write.
    pub(crate) fn has_rows(&self) -> bool {
        let output = &self.output;
        output.selection.is_used() || output.groups.is_used() || self.series.is_used() || self.is_several()
    }

    /// Returns whether standard output is the only output.
    pub(crate) fn has_only_standard_output(&self) -> bool {
        !self.is_several() && self.written.frames().is_none() && self.output.export.to.is_none()
    }

    /// Returns whether outer headers are recorded.
    fn has_encapsulation(&self) -> bool {
        let output = &self.output;
        let is_selected = ["encapsulation", "outer_"].iter().any(|part| {
            output.order.sort.as_ref().is_some_and(|name| name.contains(part))
                || output.selection.mentions(part)
                || output.groups.mentions(part)
                || self.series.mentions(part)
        });
        self.encapsulation || is_selected || self.is_several() && self.tunnels() == Tunnels::Both
    }

    /// Returns the parsed filter expression, if there is one.
    pub(crate) fn filter(&self) -> Result<Option<Filter>, Failure> {
        self.filter.as_deref().map(parse_filter).transpose()
    }

    /// Returns how sessions are parsed, if applications are identified or messages are needed. `is_view` states that a view
    /// shows the applications, and the names in messages.
    pub(crate) fn sessions(&self, is_view: bool) -> Option<DriverConfig> {
        let names_applications = match self.application {
            Applications::Always => true,
            Applications::Never => false,
            Applications::Auto => {
                is_view || self.output.has_application() || self.series.mentions("application")
            }
        };
        let format = self.output.format().logs();
        let needs_messages = self.joined.needs_messages() || self.written.needs_transactions(format);
        let mut config = DriverConfig::default();
        config.is_naming_only = !(needs_messages || is_view);
        let is_needed = needs_messages || names_applications || self.written.is_wanted(format);
        is_needed.then_some(config)
    }

    /// Returns whether checksums are verified.
    pub(crate) fn verifies_checksums(&self) -> bool {
        self.checksums != Checksums::Ignore
    }

    /// Returns a pipeline builder with the settings of these options. `active_timeout` is the default of the option.
    pub(crate) fn builder(
        &self,
        resources: &Resources,
        filter: Option<&Filter>,
        active_timeout: Timeout,
        pages: Pages,
    ) -> Builder {
        let mut pool = PoolConfig::default();
        pool.policy = self.fragment_policy;
        let mut key_policy = KeyPolicy::DEFAULT;
        key_policy.decapsulation = self.tunnels().into();
        key_policy.scope = self.scope.into();
        let builder = self.shared.builder(resources, filter, pages);
        let builder = builder
            .key_policy(key_policy)
            .fragments(self.fragments.into())
            .fragment_pool(pool)
            .checksums(self.checksums.into())
            .encapsulation(self.has_encapsulation());
        match self.active_timeout.unwrap_or(active_timeout) {
            Timeout(Some(timeout)) => builder.active_timeout(timeout),
            Timeout(None) => builder,
        }
    }
}

/// Returns the description of a run's output for the summary.
pub(crate) fn result(stats: &PipelineStats, written: &Written) -> String {
    let flows = plural(stats.tracker.started_count, "flow");
    match (written.row_count, stats.tracker.started_count) {
        (row_count, started) if row_count == started => flows,
        (row_count, _) => format!("{flows}, {} written{}", plural(row_count, "record"), written.note()),
    }
}
