//! Command-line arguments of `flowgauge sessions`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use flowgauge::export::{Format, Style};
use flowgauge::neighbor::{self, NeighborHead, NeighborMessage};
use flowgauge::row::{RowType as _, TableInfo, Union as _};
use flowgauge::session::MessageHead;
use flowgauge::transaction::{Content, TransactionHead};
use flowgauge::{Filter, Message, Protocols as _, SessionEvent, Standard};

use crate::args::{Checksums, GraceArgs, SharedArgs, parse_community_id};
use crate::checkpoint::CheckpointArgs;
use crate::columns::{ColumnArgs, Columns};
use crate::console::Failure;
use crate::formats::{OutputFormat, StyleArgs};
use crate::log_format::LogFormat;
use crate::names::completed_protocols;
use crate::summary::SummaryLineArgs;
use crate::write::WriteArgs;
use flowgauge_condition::{Condition, RowFilter};

/// Print the messages of application protocols, one per line.
///
/// Protocols are recognized by content, on any port. Message bodies, mails, files, passwords and other credentials are
/// not written. A parser that encounters invalid data writes one message `stopped` and ignores the rest of the flow.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").args(["community_id", "filter"])))]
#[command(after_long_help = "Examples:
  flowgauge sessions capture.pcap
  flowgauge sessions capture.pcap --protocol dns --format table
  flowgauge sessions capture.pcap -p tls | jq -r 'select(.message == \"client_hello\") | .server_name'
  flowgauge sessions capture.pcap -p neighbor | jq -r 'select(.system_name) | [.source_mac, .system_name, .port_id] | @tsv'
  flowgauge sessions capture.pcap --format zeek --out logs
  flowgauge sessions capture.pcap --transactions -p http | jq -r '[.status, .host, .target] | @tsv'
  tcpdump -U -w - | flowgauge sessions - -p http

Exit status:
  0  All input was read.
  1  Some input could not be read, or the output could not be written.
  2  The command line is invalid.")]
pub(crate) struct SessionsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "finish")]
    pub(crate) files: Vec<PathBuf>,

    /// Write only messages of this protocol, such as http; may be repeated
    ///
    /// `http` includes HTTP/2, and `http2` is HTTP/2 alone. Messages between neighbors on a link are written only if they are
    /// named, because they have no flow: arp, rarp, ndp, igmp, mld, lldp, cdp, stp, vrrp, hsrp, or neighbor for all of them.
    #[arg(long, short = 'p', value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = completed_protocols(parse_protocol))]
    pub(crate) protocol: Vec<&'static str>,

    /// Write transactions, such as a request with its response, instead of messages
    ///
    /// One row per exchange of HTTP or DNS, connection of TLS, QUIC or SSH, certificate, mail, command of FTP, and body of HTTP,
    /// with the times of both halves. The field `lacks` states what a transaction lacks.
    #[arg(long, short = 't', conflicts_with = "credentials")]
    pub(crate) transactions: bool,

    /// With --transactions or logs, add MD5, SHA-1 and SHA-256 digests of files
    #[arg(long)]
    pub(crate) hashes: bool,

    /// Format: ndjson (default), table, parquet, arrow, zeek, zeek-json, eve
    ///
    /// ndjson: a JSON object per line; table: a row per message, truncated to the width of the terminal; parquet, arrow: a file
    /// per kind of message in a folder (`--out`), such as http.request.parquet (feature `arrow`); zeek, zeek-json: all logs of
    /// Zeek, in a folder or one after another on standard output; eve: Suricata's events (docs/formats.md).
    #[arg(long, short = 'f', value_name = "FORMAT", value_parser = format_parser(), hide_possible_values = true)]
    format: Option<OutputFormat>,

    #[command(flatten)]
    pub(crate) written: WriteArgs,

    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,

    /// Add the kinds of credentials that were sent without encryption
    ///
    /// The field `credentials` of a message lists the kinds, such as a password. The credentials are never written.
    #[arg(long)]
    pub(crate) credentials: bool,

    /// Select flows by Community ID; may be repeated
    ///
    /// The version is 1 and the seed 0, as in the field `community_id` of `flowgauge flows`.
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(crate) community_id: Vec<String>,

    /// Select flows by an expression (see `flowgauge flows --help`)
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// Write only rows that meet a condition: 'status >= 500'
    ///
    /// The condition is that of `flowgauge flows --where`, over the fields of all messages or transactions
    /// (docs/reference/protocols.md). A row without a field has no value for it.
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    condition: Option<String>,

    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Checksums::Ignore)]
    pub(crate) checksums: Checksums,

    #[command(flatten)]
    style: StyleArgs,

    #[command(flatten)]
    columns: ColumnArgs,

    #[command(flatten)]
    pub(crate) grace: GraceArgs,

    #[command(flatten)]
    pub(crate) checkpoint: CheckpointArgs,

    #[command(flatten)]
    pub(crate) summary: SummaryLineArgs,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// Which messages between neighbors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbors {
    None,
    Named,
    WithoutFlow,
}

impl SessionsArgs {
    /// Returns a failure if options contradict each other.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.names_neighbors() && !self.community_id.is_empty() {
            let usage = "--community-id selects flows, to which messages between neighbors do not belong";
            return Err(Failure::Usage(usage.to_owned()));
        }
        let mut logs = self.written.outputs().map(|(format, _)| format).chain(self.format);
        let has_zeek = logs.any(|format| format.logs().is_some_and(|logs| logs != LogFormat::Eve));
        if self.names_neighbors() && has_zeek {
            return Err(Failure::Usage("Zeek has no logs of messages between neighbors".to_owned()));
        }
        let format = self.standard();
        let columns = format.and_then(OutputFormat::columns);
        let others = "--write, --out, --community-id and logs";
        let has_others =
            self.logs().is_some() || self.written.outputs().next().is_some() || !self.community_id.is_empty();
        self.checkpoint
            .check(format.unwrap_or(OutputFormat::Library(Format::Ndjson)), (others, has_others))?;
        self.columns.check(columns)?;
        self.written.check(self.logs(), (columns.is_some(), false))?;
        self.rows()?;
        if self.condition.is_some() && self.logs().is_some() | self.written.needs_transactions(None) {
            return Err(Failure::Usage("--where cannot be combined with logs".to_owned()));
        }
        if columns.is_some() && self.written.out.is_none() {
            return Err(Failure::Usage("--format parquet and arrow require --out".to_owned()));
        }
        let outputs = self.written.outputs().map(|(format, _)| format).chain(format);
        let mut outputs = outputs.map(OutputFormat::library);
        if !outputs.any(|format| format == Some(Format::Ndjson)) && self.style.style() != Style::default() {
            return Err(Failure::Usage("--time and --nulls require --format ndjson".to_owned()));
        }
        let mut other = self.written.outputs().map(|(format, _)| format);
        match other.find(|format| matches!(format.library(), Some(Format::Csv | Format::Fixed))) {
            Some(format) => {
                let name = format.name();
                Err(Failure::Usage(format!("--write {name}: the rows of messages have different columns")))
            }
            None => Ok(()),
        }
    }

    /// Returns the conditions on rows.
    pub(super) fn rows(&self) -> Result<RowFilter, Failure> {
        let Some(text) = &self.condition else { return Ok(RowFilter::default()) };
        let mut neighbors = vec![const { &TableInfo::of::<NeighborHead>() }];
        neighbors.extend(NeighborMessage::tables());
        let condition = if self.transactions {
            let tables = [Content::tables(), neighbors].concat();
            Condition::of_tables(text, &TransactionHead::columns(), &tables)
        } else {
            let tables = [Message::tables(), SessionEvent::tables(), neighbors].concat();
            Condition::of_tables(text, &MessageHead::columns(), &tables)
        };
        condition
            .map(|condition| RowFilter::new([condition]))
            .map_err(|error| Failure::Usage(format!("--where: {error}")))
    }

    /// Returns which messages between neighbors are written: those of protocols that are named, or else those without an IP
    /// packet if the filter selects some.
    pub(super) fn neighbors(&self) -> Neighbors {
        let is_in_filter = |text: &String| text.parse().is_ok_and(|filter: Filter| filter.selects_link());
        if self.names_neighbors() {
            Neighbors::Named
        } else if self.filter.as_ref().is_some_and(is_in_filter) {
            Neighbors::WithoutFlow
        } else {
            Neighbors::None
        }
    }

    fn names_neighbors(&self) -> bool {
        let mut names = self.protocols().into_iter();
        names.any(|name| neighbor::protocol_names().any(|known| known == name))
    }

    /// Returns the protocols whose rows are written; all if there are none.
    pub(super) fn protocols(&self) -> Vec<&'static str> {
        let mut all = self.protocol.clone();
        if all.contains(&NEIGHBORS) {
            all.extend(neighbor::protocol_names());
        }
        if all.contains(&"http") {
            all.push("http2");
        }
        all
    }

    /// Returns the format of logs on standard output or in the folder `--out`.
    pub(super) fn logs(&self) -> Option<LogFormat> {
        self.format.and_then(OutputFormat::logs)
    }

    /// Returns the format of messages or transactions, unless only other outputs are wanted.
    pub(super) fn standard(&self) -> Option<OutputFormat> {
        match self.format {
            None if self.written.write.is_empty() => Some(OutputFormat::Library(Format::Ndjson)),
            format => format.filter(|format| format.logs().is_none()),
        }
    }

    /// Returns whether all outputs are logs in folders.
    pub(super) fn has_only_folders(&self) -> bool {
        self.joins() && self.standard().is_none() && self.written.has_only_folders(self.format)
    }

    /// Returns whether transactions are joined.
    pub(super) fn joins(&self) -> bool {
        self.transactions || self.written.needs_transactions(self.logs()) || self.logs().is_some()
    }

    /// Creates the files of a format of columns in a folder.
    #[cfg(feature = "arrow")]
    pub(super) fn table_files(
        &self,
        format: Columns,
        (folder, outputs): (PathBuf, &std::sync::Arc<crate::output::Outputs>),
    ) -> Result<crate::columns::TableFiles, Failure> {
        let outputs = std::sync::Arc::clone(outputs);
        crate::columns::TableFiles::new((format, self.columns), self.credentials, folder, outputs)
    }

    /// Returns how values are written in ndjson.
    pub(super) fn style(&self) -> Style {
        let mut style = self.style.style();
        style.has_sensitive = self.credentials;
        style
    }
}

/// Name of all protocols of messages between neighbors together.
const NEIGHBORS: &str = "neighbor";

fn format_parser() -> impl TypedValueParser<Value = OutputFormat> {
    let all = || {
        let library = [Format::Ndjson, Format::Table].map(OutputFormat::Library);
        let columns = Columns::ALL.map(OutputFormat::Columns);
        library.into_iter().chain(columns).chain(LogFormat::ALL.map(OutputFormat::Logs))
    };
    PossibleValuesParser::new(all().map(OutputFormat::name))
        .try_map(move |name| all().find(|format| format.name() == name).ok_or("unknown format"))
}

/// Checks that a text is the name of a protocol that has a parser, in any case, and returns the name.
fn parse_protocol(text: &str) -> Result<&'static str, String> {
    let mut neighbors = neighbor::protocol_names().chain([NEIGHBORS]);
    if let Some(name) = neighbors.find(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(name);
    }
    let table = Standard::TABLE;
    let known = table.iter().find(|entry| entry.protocol.name().eq_ignore_ascii_case(text));
    match known {
        Some(entry) if entry.has_parser => Ok(entry.protocol.name()),
        Some(_) => Err(format!(
            "{text} is recognized, but has no parser; `flowgauge flows --application always` shows such flows"
        )),
        None => {
            let parsed = table.iter().filter(|entry| entry.has_parser);
            let names: Vec<_> = parsed
                .map(|entry| entry.protocol.name())
                .chain(neighbor::protocol_names())
                .chain([NEIGHBORS])
                .collect();
            Err(format!("unknown protocol; the protocols are {}", names.join(", ")))
        }
    }
}
