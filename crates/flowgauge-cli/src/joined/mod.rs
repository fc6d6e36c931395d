//! Flow records with what is joined to them: features, labels, names of servers, locations of addresses.

mod labels;
mod locations;
mod row;

use std::io::{self, Write};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use flowgauge::export::{FlowTable, Format, Lines, RecordWriter, Selection, Summary};
use flowgauge::features::{FeatureSet, Features, FlowFeatures, Moment};
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::boxed;
use flowgauge::protocols::{NameCache, ServerName};
use flowgauge::row::{Column, RowType as _, Table as _};
use flowgauge::{
    Builder, EndReason, Filter, Flow, FlowRecord, FlowView, Flows, Interest, Message, MessageMeta, MessageOf,
    Packet, PipelineStats, Sessions, Sink, Stage, Standard,
};

use crate::console::{Console, Failure, stdout};
use crate::formats::{OutputArgs, OutputFormat, line_width};
use crate::input::Input;
use crate::order::{BLOCK_LEN, Beside, MEMORY_PART, Sorted};
use crate::rows::Written;
use flowgauge_condition::RowFilter;
use flowgauge_summary::Hosts;
use labels::Labels;
use locations::Locations;
use row::Joined;

/// Maximum number of addresses whose names of DNS are kept.
const NAME_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();

/// Options for what is joined to flow records.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Add statistical features, such as cic,nfstream or splt=20,tcp
    ///
    /// The names are separated by commas. `cic` is the vector of CICFlowMeter with corrected values, `cic_compat` the one
    /// with its errors, or with some of them: `cic_compat=e4+e5`; `nfstream` has the columns of NFStream, with the length
    /// `nfstream=wire` (default), `ip`, `transport` or `payload`; `splt=20` directions, lengths and times of the first 20
    /// packets; `histogram` logarithmic histograms of lengths and times; `entropy=1024` (default) entropy and distribution
    /// of the first octets of each side; `payload=64` these octets; `tcp` round-trip times, retransmissions by kind,
    /// windows and options. See docs/features.md. The columns follow the fields.
    #[arg(long, value_name = "LIST")]
    features: Option<FeatureSet>,

    /// Write the row of --features early: packets=N, octets=N or ms=N
    ///
    /// A flow has one row: at this number of packets, of octets of payload, or this time after its first packet, or at its
    /// end if that is earlier.
    #[arg(long, hide_short_help = true, value_name = "WHEN", requires = "features")]
    at: Option<Moment>,

    /// Add a label to each flow, by the rules of a CSV file
    ///
    /// The first line names the columns: `label`, and any of `source`, `destination`, `address` (of either end),
    /// `source_port`, `destination_port`, `port`, `protocol`, `start` and `end`. An address may be a network or a range, a
    /// port a range; an empty field is no condition. `start` and `end` are a time that the flow overlaps, in seconds since
    /// 1970, or as 2017-07-07T13:56:00Z. The first rule that matches gives the column `label`.
    #[arg(long, value_name = "FILE")]
    label: Option<PathBuf>,

    /// Add the name of each server: from its content, or else from dns
    ///
    /// `content` has names of TLS, QUIC and HTTP. With `dns`, a flow without such a name has the one that DNS answered its
    /// initiator last for the address of the responder, at most an hour before, or the time to live if that is longer. The
    /// column `server_name_evidence` is tls, quic, http or dns.
    #[arg(long, value_enum, value_name = "FROM", hide_possible_values = true)]
    server_name: Option<NameOrigin>,

    /// Add the names of both hosts: source_name and destination_name
    ///
    /// The most reliable name that was known when the flow ended, as `flowgauge hosts` shows it, from DHCP, LLDP, NTLM, NetBIOS,
    /// multicast DNS, DNS, TLS and others; not from HTTP, SSH and certificates. A table has them in place of addresses.
    #[arg(long, hide_short_help = true)]
    names: bool,

    /// Add countries, cities and networks from a MaxMind database
    ///
    /// The databases are files such as GeoLite2-City.mmdb and GeoLite2-ASN.mmdb; the option may be repeated. Nothing is
    /// requested from a network.
    #[arg(long, value_name = "FILE")]
    geoip: Vec<PathBuf>,
}

/// Where names of servers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NameOrigin {
    /// ClientHellos of TLS and QUIC, and requests of HTTP
    Content,
    /// Also answers of DNS
    Dns,
}

impl JoinArgs {
    /// Returns whether anything is joined.
    pub(crate) fn is_wanted(&self) -> bool {
        self.options().next().is_some()
    }

    /// Returns whether names of servers are wanted, which are in messages.
    pub(crate) const fn needs_messages(&self) -> bool {
        self.server_name.is_some() || self.names
    }

    /// Returns the options that are used.
    fn options(&self) -> impl Iterator<Item = &'static str> {
        let used = [
            ("--features", self.features.is_some()),
            ("--label", self.label.is_some()),
            ("--server-name", self.server_name.is_some()),
            ("--names", self.names),
            ("--geoip", !self.geoip.is_empty()),
        ];
        used.into_iter().filter(|(_, is_used)| *is_used).map(|(option, _)| option)
    }

    /// Returns a failure if an option has no effect with the output format.
    pub(crate) fn check(&self, output: &OutputArgs) -> Result<(), Failure> {
        let has_names_only = self.options().eq(["--names"]);
        let is_table = matches!(output.format(), OutputFormat::Library(Format::Table));
        match (self.options().next(), output.format()) {
            (None, _)
            | (_, OutputFormat::Library(Format::Ndjson | Format::Csv) | OutputFormat::Columns(_)) => Ok(()),
            // Names are in place of addresses.
            _ if has_names_only && is_table && output.fields.is_none() => Ok(()),
            (Some(option), _) => {
                Err(Failure::Usage(format!("{option} requires --format ndjson, csv, parquet or arrow")))
            }
        }
    }

    /// Returns a failure if flows are tracked in several threads, of which none sees what the others learn.
    pub(crate) fn check_threads(&self, has_several: bool) -> Result<(), Failure> {
        match self.options().next() {
            Some(option) if has_several => {
                Err(Failure::Usage(format!("{option} cannot be combined with --shards")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the names of the columns that are joined.
    fn columns(&self) -> Vec<&'static Column> {
        let is_joined = |column: &&Column| match column.name {
            "label" => self.label.is_some(),
            "source_name" | "destination_name" => self.names,
            name if name.starts_with("server_name") => self.server_name.is_some(),
            _ => !self.geoip.is_empty(),
        };
        let mut columns = self.features.map_or_else(Vec::new, |set| set.columns());
        columns.extend(Joined::COLUMNS.iter().filter(is_joined));
        columns
    }

    /// Writes the records of an input with what is joined to them, as flows end or in the order of `output`. Returns the
    /// counters, and the number of records.
    pub(crate) fn run<G: Named>(
        &self,
        output: &OutputArgs,
        (builder, filter): (&Builder, Option<&Filter>),
        input: &mut Input,
        console: &mut Console,
    ) -> Result<(PipelineStats, Written), Failure> {
        let mut sorted = output.sorted(&RowFilter::default())?;
        if let Some(sorted) = &mut sorted {
            sorted.set_held_max(builder.budget().limit() / MEMORY_PART);
        }
        let mut sink = JoinSink::<G> {
            features: self.features.unwrap_or_default(),
            has_features: self.features.is_some(),
            moment: self.at,
            filter,
            known: Known {
                labels: self.label.as_deref().map(Labels::open).transpose()?,
                locations: (!self.geoip.is_empty()).then(|| Locations::open(&self.geoip)).transpose()?,
            },
            has_names: self.server_name.is_some(),
            names: (self.server_name == Some(NameOrigin::Dns)).then(|| NameCache::new(NAME_COUNT_MAX)),
            hosts: self.names.then(Hosts::default),
            rows: output.selection.filter_of::<JoinedRow<'static>>()?,
            writer: self.writer(output)?,
            sorted,
            is_stream: input.is_stream(),
            number: 0,
            record_count: 0,
            flushed_count: 0,
            outcome: Ok(()),
            held_bytes: 0,
            stage: PhantomData,
        };
        let stats = input.run(builder.build(boxed(&mut sink))?, console)?;
        let JoinSink { mut writer, mut record_count, outcome, rows, mut known, sorted, .. } = sink;
        outcome?;
        if let Some(sorted) = sorted {
            Sorted::problem([&sorted].into_iter()).into_iter().for_each(|problem| console.problem(problem));
            for (record, kept) in sorted.into_rows() {
                known.row(&record, kept.parts(), |row| writer.write(row))?;
                record_count += 1;
            }
        }
        writer.finish()?;
        Ok((stats, Written { row_count: record_count, unmatched: rows.unmatched() }))
    }

    /// Creates the writer of the chosen fields of a record, followed by all that is joined.
    fn writer(&self, output: &OutputArgs) -> Result<Writer, Failure> {
        let fields = match &output.fields {
            Some(fields) => fields.columns().to_vec(),
            None => FlowRecord::columns(),
        };
        let names = fields.into_iter().chain(self.columns()).map(|column| column.name);
        let selection =
            Selection::of::<JoinedRow<'_>>(names).map_err(|name| Failure::Other(format!("column {name}")))?;
        let style = output.style.style();
        Ok(match output.format() {
            OutputFormat::Library(Format::Table) => {
                Box::new(NamedTable(FlowTable::new(stdout(), line_width())))
            }
            OutputFormat::Library(Format::Csv) => Box::new(Lines::csv(stdout(), Some(selection), style)),
            #[cfg(feature = "arrow")]
            OutputFormat::Columns(format) => {
                output.check_terminal()?;
                let options = output.columns.options("features", Some(selection));
                Box::new(format.writer::<JoinedRow<'static>, _>(stdout(), options)?)
            }
            _ => Box::new(Lines::ndjson(stdout(), Some(selection), style)),
        })
    }
}

/// A record with what is joined to it.
type JoinedRow<'r> = ((&'r FlowRecord, Features<'r>), Joined<'r>);

type Writer = Box<dyn for<'r> RecordWriter<JoinedRow<'r>> + Send>;

/// A table in which names are in place of addresses.
struct NamedTable<W>(FlowTable<W>);

impl<W: Write> RecordWriter<JoinedRow<'_>> for NamedTable<W> {
    fn write_if(
        &mut self,
        ((record, _), joined): &JoinedRow<'_>,
        _: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<bool> {
        self.0.write_named(record, joined.names).map(|()| true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn finish(self: Box<Self>) -> io::Result<Summary> {
        Box::new(self.0).finish()
    }
}

/// A stage whose messages may name a server.
pub(crate) trait Named: Stage {
    /// Returns a message of one of the standard protocols.
    fn standard<'r, 'm>(message: &'r Self::Message<'m>) -> Option<&'r Message<'m>>;
}

impl Named for Flows {
    fn standard<'r, 'm>(_: &'r Self::Message<'m>) -> Option<&'r Message<'m>> {
        None
    }
}

impl Named for Sessions<Standard> {
    fn standard<'r, 'm>(message: &'r Self::Message<'m>) -> Option<&'r Message<'m>> {
        Some(message)
    }
}

/// What is joined by the record of a flow alone.
struct Known {
    labels: Option<Labels>,
    locations: Option<Locations>,
}

impl Known {
    /// Passes on the row of a record.
    fn row<R>(
        &mut self,
        record: &FlowRecord,
        Parts { number, features, server_name, names }: Parts<'_>,
        pass: impl FnOnce(&JoinedRow<'_>) -> R,
    ) -> R {
        let label = self.labels.as_ref().and_then(|labels| labels.of(record));
        let mut location = |address| self.locations.as_mut().map(|locations| locations.of(address));
        let [source, destination] =
            [record.source_address(), record.destination_address()].map(&mut location);
        let (source, destination) = (source.as_deref(), destination.as_deref());
        let joined = Joined { label, server_name, names, source, destination };
        let features = Features::new(record, features, Some(number)).labeled(label);
        pass(&((record, features), joined))
    }
}

/// What is joined by the packets and messages of a flow.
#[derive(Clone, Copy)]
struct Parts<'a> {
    /// Number of the record among all records of flows that the filter selects, from zero.
    number: u64,
    features: &'a FlowFeatures,
    server_name: Option<&'a ServerName>,
    names: [Option<&'a str>; 2],
}

/// The same, beside a record of an order.
struct KeptParts {
    number: u64,
    features: FlowFeatures,
    server_name: Option<Arc<ServerName>>,
    names: [Option<Box<str>>; 2],
}

impl KeptParts {
    fn parts(&self) -> Parts<'_> {
        let names = self.names.each_ref().map(Option::as_deref);
        let server_name = self.server_name.as_deref();
        Parts { number: self.number, features: &self.features, server_name, names }
    }
}

impl Beside for KeptParts {
    fn heap_len(&self) -> usize {
        let names: usize = self.names.iter().flatten().map(|name| name.len() + BLOCK_LEN).sum();
        let server = self.server_name.as_ref().map_or(0, |name| 64 + name.name.len());
        self.features.heap_len() + server + names
    }
}

/// Sink that gathers what is joined, and writes it with each record. The stage `G` determines whether a record contains the
/// application protocol, and whether there are names of servers.
struct JoinSink<'a, G> {
    features: FeatureSet,
    has_features: bool,
    /// When the row of a flow is written; if `None`, with each record.
    moment: Option<Moment>,
    filter: Option<&'a Filter>,
    known: Known,
    has_names: bool,
    /// Names of DNS.
    names: Option<NameCache>,
    /// Names of hosts.
    hosts: Option<Hosts>,
    /// Conditions on rows.
    rows: RowFilter,
    writer: Writer,
    /// The first records of an order, which are written at the end of the input.
    sorted: Option<Sorted<KeptParts>>,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    /// Number of the next record.
    number: u64,
    record_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
    /// Memory of the features and names of open flows.
    held_bytes: u64,
    stage: PhantomData<fn() -> G>,
}

/// Part of the memory that names of DNS may have, as locations may, and memory in bytes that they may always have.
const KEPT_PART: usize = 4;
const KEPT_MIN: usize = 256 << 10;

/// Returns the memory of the name of a server.
fn name_bytes(name: Option<&Arc<ServerName>>) -> u64 {
    name.map_or(0, |name| 64 + name.name.len() as u64)
}

/// State of a flow.
#[derive(Debug, Default)]
struct State {
    features: FlowFeatures,
    server_name: Option<Arc<ServerName>>,
    /// The row of the flow was written early.
    is_decided: bool,
}

impl<G> JoinSink<'_, G> {
    /// Writes the record of a flow, whose next record begins again with its features.
    fn write(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        let features = std::mem::take(&mut flow.state.features);
        self.held_bytes -= features.heap_len() as u64;
        let is_selected = self.filter.is_none_or(|filter| filter.matches_flow(&flow.view));
        if !is_selected || self.outcome.is_err() {
            return;
        }
        let record = flow.view.record(reason);
        let rank = self.sorted.as_ref().map(|sorted| sorted.rank(&record));
        if let Some(None) = rank {
            return;
        }
        let (server_name, hosts) = (&flow.state.server_name, self.hosts.as_ref());
        let name = |address| hosts.and_then(|hosts| hosts.name(&address));
        let names = [record.source_address(), record.destination_address()].map(name);
        let number = self.number;
        self.number += 1;
        let parts = Parts { number, features: &features, server_name: server_name.as_deref(), names };
        let Self { rows, writer, outcome, record_count, sorted, known, .. } = self;
        match (sorted, rank.flatten()) {
            (Some(sorted), Some(rank)) => {
                if known.row(&record, parts, |row| rows.matches(row)) {
                    let (names, server_name) = (names.map(|name| name.map(Box::from)), server_name.clone());
                    sorted.insert(rank, record, KeptParts { number, features, server_name, names });
                }
            }
            _ => known.row(&record, parts, |row| {
                if rows.matches(row) {
                    *outcome = writer.write(row);
                    *record_count += 1;
                }
            }),
        }
    }
}

impl<G: Named> Sink for JoinSink<'_, G> {
    type State = State;
    type Stage = G;

    fn interest(&self) -> Interest {
        let packets = if self.has_features { Interest::PACKETS } else { Interest::RECORDS };
        let starts = if self.names.is_some() { Interest::STARTS } else { Interest::RECORDS };
        let neighbors = if self.hosts.is_some() { Interest::NEIGHBORS } else { Interest::RECORDS };
        packets | starts | neighbors | Interest::VARIES
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        if let Some(hosts) = &mut self.hosts {
            hosts.neighbor(neighbor);
        }
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        let Some(names) = &mut self.names else { return };
        let (key, now) = (flow.view.key(), flow.view.start());
        let [client, server] =
            [flow.view.initiator(), flow.view.initiator().other()].map(|side| key.address(side));
        // The capture may begin with a packet of the server.
        let found = names.find(client, server, now).or_else(|| names.find(server, client, now));
        flow.state.server_name = found.map(Arc::new);
        self.held_bytes += name_bytes(flow.state.server_name.as_ref());
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, State>, packet: &Packet<'_>) {
        let features = &mut flow.state.features;
        let before = features.heap_len();
        let is_reached = match self.moment {
            None => {
                features.count(&self.features, packet);
                false
            }
            Some(moment) => features.count_until(moment, &self.features, packet),
        };
        self.held_bytes = self.held_bytes + features.heap_len() as u64 - before as u64;
        if is_reached {
            self.write(flow, EndReason::ActiveTimeout);
            flow.state.is_decided = true;
            flow.mute();
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &MessageOf<'_, Self>) {
        let Some(message) = G::standard(message) else { return };
        if let Some(hosts) = &mut self.hosts {
            hosts.message(&flow.view, meta.from, message);
        }
        if !self.has_names {
            return;
        }
        if let Some(names) = &mut self.names {
            names.learn(flow.view.key().address(meta.side.other()), meta.timestamp, message);
        }
        let found = ServerName::of(message);
        // The first name in the content of the flow remains.
        let is_known = |known: &Arc<ServerName>| known.evidence != flowgauge::protocols::NameEvidence::Dns;
        if let Some(found) = found
            && !flow.state.server_name.as_ref().is_some_and(is_known)
        {
            let earlier = flow.state.server_name.replace(Arc::new(found));
            self.held_bytes += name_bytes(flow.state.server_name.as_ref());
            self.held_bytes -= name_bytes(earlier.as_ref());
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        // A flow that is decided once has no records of its parts.
        let is_part = self.moment.is_some() && reason == EndReason::ActiveTimeout;
        if !flow.state.is_decided && !is_part {
            self.write(flow, reason);
        }
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, state: State) {
        self.held_bytes -= state.features.heap_len() as u64 + name_bytes(state.server_name.as_ref());
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let max = |heap_len: usize| (heap_len.saturating_add(left) / KEPT_PART).max(KEPT_MIN);
        let names_len = self.names.as_mut().map_or(0, |names| {
            names.set_heap_len_max(max(names.heap_len()));
            names.heap_len()
        });
        let hosts_len = self.hosts.as_mut().map_or(0, |hosts| hosts.keep_within(max));
        let locations_len = self.known.locations.as_mut().map_or(0, |locations| {
            locations.set_heap_len_max(max(locations.heap_len()));
            locations.heap_len()
        });
        let sorted_len = self.sorted.as_ref().map_or(0, Sorted::held_len);
        self.held_bytes + (names_len + locations_len + hosts_len + sorted_len) as u64
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.record_count > self.flushed_count {
            self.flushed_count = self.record_count;
            self.outcome = self.writer.flush();
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
