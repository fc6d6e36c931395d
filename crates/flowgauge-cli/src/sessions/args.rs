//! Command-line arguments of `flowgauge sessions`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge::{Protocols as _, Standard};

use crate::args::{Checksums, GraceArgs, SharedArgs, parse_community_id};

/// Print what is said in flows: one line per message of the protocols that are parsed.
///
/// Which protocol a flow speaks its content tells, whatever its port. Contents (bodies, mails, files) are not written, and
/// neither are passwords and other credentials. A parser that meets what it cannot take says so, once, as message `stopped`,
/// and the rest of its flow is left alone.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").args(["community_id", "filter"])))]
#[command(after_help = "Examples:
  flowgauge sessions capture.pcap
  flowgauge sessions capture.pcap --protocol dns --format table
  flowgauge sessions capture.pcap -p tls | jq -r 'select(.message == \"client_hello\") | .server_name'
  tcpdump -U -w - | flowgauge sessions - -p http

Exit status: 0 if all input was read, 1 if some of it could not be (what could be read is written),
2 if the command line is wrong.")]
pub(crate) struct SessionsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Only messages of this protocol, such as http or dns; may be given several times
    #[arg(long, short = 'p', value_name = "NAME", value_parser = parse_protocol)]
    pub(crate) protocol: Vec<&'static str>,

    /// How to write messages
    #[arg(long, short = 'f', value_enum, default_value_t = Format::Ndjson)]
    pub(crate) format: Format,

    /// Show of which kind the credentials are that crossed in the clear; they themselves are never written
    #[arg(long)]
    pub(crate) credentials: bool,

    /// A flow's Community ID (version 1, seed 0), as `flows --format ndjson` shows it; may be given several times
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(crate) community_id: Vec<String>,

    /// Only flows for which this holds; see `flowgauge flows --help`
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(crate) filter: Option<String>,

    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long, value_enum, default_value_t = Checksums::Ignore)]
    pub(crate) checksums: Checksums,

    #[command(flatten)]
    pub(crate) grace: GraceArgs,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line
    Ndjson,
    /// Columns for people
    Table,
}

/// A protocol that is parsed, by its name.
fn parse_protocol(text: &str) -> Result<&'static str, String> {
    let table = Standard::TABLE;
    let known = table.iter().find(|entry| entry.protocol.name() == text);
    match known {
        Some(entry) if entry.start.is_some() => Ok(entry.protocol.name()),
        Some(_) => Err(format!("{text} is recognized, not parsed: `flows` names such flows")),
        None => {
            let parsed = table.iter().filter(|entry| entry.start.is_some());
            let names: Vec<_> = parsed.map(|entry| entry.protocol.name()).collect();
            Err(format!("these are parsed: {}", names.join(", ")))
        }
    }
}
