//! Command-line arguments of `flowgauge sessions`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge::export::Style;
use flowgauge::{Protocols as _, Standard};

use crate::args::{Checksums, GraceArgs, SharedArgs, parse_community_id};
use crate::columns::{ColumnArgs, Columns};
use crate::console::Failure;
use crate::formats::StyleArgs;

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
  flowgauge sessions capture.pcap --transactions -p http | jq -r '[.status, .host, .target] | @tsv'
  tcpdump -U -w - | flowgauge sessions - -p http

Exit status:
  0  All input was read.
  1  Some input could not be read, or the output could not be written.
  2  The command line is invalid.")]
pub(crate) struct SessionsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Write only messages of this protocol, such as http; may be repeated
    #[arg(long, short = 'p', value_name = "NAME", value_parser = parse_protocol)]
    pub(crate) protocol: Vec<&'static str>,

    /// Write transactions, such as a request with its response, instead of messages
    ///
    /// One row per exchange of HTTP or DNS, connection of TLS, QUIC or SSH, certificate, mail, command of FTP, and body of HTTP,
    /// with the times of both halves. The field `lacks` states what a transaction lacks.
    #[arg(long, short = 't', conflicts_with = "credentials")]
    pub(crate) transactions: bool,

    /// With --transactions, add MD5, SHA-1 and SHA-256 digests of files
    #[arg(long, requires = "transactions")]
    pub(crate) hashes: bool,

    /// Output format
    #[arg(long, short = 'f', value_enum, default_value_t = Format::Ndjson)]
    pub(crate) format: Format,

    /// Folder for the files of parquet and arrow, which is created if it does not exist
    ///
    /// Each kind of message is a file of its own, such as http.request.parquet.
    #[arg(long, short = 'o', value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Overwrite existing files in DIR
    #[arg(long, requires = "out")]
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
    pub(crate) shared: SharedArgs,
}

impl SessionsArgs {
    /// Returns a failure if options contradict each other.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let columns = self.format.columns();
        self.columns.check(columns)?;
        if columns.is_some() != self.out.is_some() {
            let usage = "--format parquet and arrow require --out, and --out requires one of them";
            return Err(Failure::Usage(usage.to_owned()));
        }
        if self.format != Format::Ndjson && self.style.style() != Style::default() {
            return Err(Failure::Usage("--time and --nulls require --format ndjson".to_owned()));
        }
        Ok(())
    }

    /// Creates the files of a format of columns.
    #[cfg(feature = "arrow")]
    pub(super) fn files(&self) -> Result<crate::columns::TableFiles, Failure> {
        let format = self.format.columns().unwrap_or(Columns::Parquet);
        let folder = self.out.clone().unwrap_or_default();
        let outputs = crate::output::Outputs::new(&self.files, self.force);
        crate::columns::TableFiles::new((format, self.columns), self.credentials, folder, outputs)
    }

    /// Returns how values are written in ndjson.
    pub(super) fn style(&self) -> Style {
        let mut style = self.style.style();
        style.has_sensitive = self.credentials;
        style
    }
}

/// Output format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line
    Ndjson,
    /// One row per message, truncated to the width of the terminal
    Table,
    /// A Parquet file per kind of message (feature `arrow`)
    Parquet,
    /// An Arrow IPC stream per kind of message (feature `arrow`)
    Arrow,
}

impl Format {
    /// Returns the format of columns.
    pub(super) const fn columns(self) -> Option<Columns> {
        match self {
            Self::Parquet => Some(Columns::Parquet),
            Self::Arrow => Some(Columns::Arrow),
            Self::Ndjson | Self::Table => None,
        }
    }
}

/// Checks that a text is the name of a protocol that has a parser, and returns the name.
fn parse_protocol(text: &str) -> Result<&'static str, String> {
    let table = Standard::TABLE;
    let known = table.iter().find(|entry| entry.protocol.name() == text);
    match known {
        Some(entry) if entry.has_parser => Ok(entry.protocol.name()),
        Some(_) => Err(format!(
            "{text} is recognized, but has no parser; `flowgauge flows --application always` shows such flows"
        )),
        None => {
            let parsed = table.iter().filter(|entry| entry.has_parser);
            let names: Vec<_> = parsed.map(|entry| entry.protocol.name()).collect();
            Err(format!("unknown protocol; the protocols are {}", names.join(", ")))
        }
    }
}
