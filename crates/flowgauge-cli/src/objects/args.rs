//! Command-line arguments of `flowgauge export-objects`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge::protocols::{ftp_data, http1, http2, smb, smtp, tftp};
use flowgauge::session::Protocol;

use crate::args::{Checksums, GraceArgs, SharedArgs, parse_community_id, parse_count, parse_size};
use crate::formats::StyleArgs;
use crate::summary::SummaryLineArgs;

/// Write bodies of HTTP, mails, files of FTP, TFTP and SMB, and certificates to files.
///
/// Each object is a file of DIR, and a row on standard output with its SHA-256 digest, its type by content and its flow.
/// A file is named by a number and the name in the traffic, with `_` in place of each character that is not safe; it
/// gets its name when it is complete, and never replaces another file. Of TLS 1.3 and QUIC, certificates are encrypted.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").args(["community_id", "filter"])))]
#[command(after_long_help = "Examples:
  flowgauge export-objects capture.pcap --out objects
  flowgauge export-objects capture.pcap --out objects --kind http --decode --format table
  flowgauge export-objects capture.pcap --out objects --kind certificate --pem
  flowgauge export-objects capture.pcap -o objects | jq -r 'select(.is_complete) | [.sha256, .file] | @tsv'

Exit status:
  0  All input was read.
  1  Some input could not be read, an output exists or could not be written, or a limit omitted objects or
     octets.
  2  The command line is invalid.")]
pub(crate) struct ObjectsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Output folder, which is created if it does not exist
    #[arg(long, short = 'o', value_name = "DIR", required = true)]
    pub(super) out: PathBuf,

    /// Write only these kinds: http, mail, ftp, tftp, smb, certificate
    #[arg(
        long,
        short = 'k',
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(super) kind: Vec<Kind>,

    /// Decode bodies of HTTP that have a content coding
    ///
    /// The codings are gzip, deflate, br and zstd (with a window of up to 8 MiB). A body that is cut, or has octets after
    /// its end, is decoded up to there. A body is written as sent if it has another or several codings, has gaps, is not
    /// valid, needs a window of more than a quarter of the memory that is left, or decodes to more octets than the size of an
    /// object may have or its connection pays for: 21 for each of its octets so far, and 5 KiB.
    #[arg(long)]
    pub(super) decode: bool,

    /// Join the byte ranges of a file to one object, which is the default
    ///
    /// Ranges, also the parts of `multipart/byteranges`, belong together if host, target, ETag (without a strong one, also
    /// Last-Modified), coding and complete length are the same, in any connections. A response that is cut is the first
    /// range if it has a strong ETag. The object is written when it is complete, or at the end of the input: without the
    /// octets of missing ranges, which its row states. A range that contradicts others is an object of its own.
    #[arg(long, overrides_with = "no_join_ranges")]
    pub(super) join_ranges: bool,

    /// Write each byte range as an object of its own
    #[arg(long, overrides_with = "join_ranges")]
    pub(super) no_join_ranges: bool,

    /// Write each certificate as PEM too
    #[arg(long)]
    pub(super) pem: bool,

    /// Maximum number of objects
    #[arg(long, value_name = "N", default_value = "10000", value_parser = parse_count::<NonZeroU64>)]
    pub(super) max_count: NonZeroU64,

    /// Maximum size of an object; the rest is omitted
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    pub(super) max_size: u64,

    /// Maximum size of all objects together
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = parse_size)]
    pub(super) max_total: u64,

    /// Format of the rows: ndjson, table or csv
    #[arg(long, short = 'f', value_enum, value_name = "FORMAT", default_value_t = Format::Ndjson)]
    #[arg(hide_possible_values = true)]
    pub(super) format: Format,

    /// Select flows by Community ID; may be repeated
    ///
    /// The version is 1 and the seed 0, as in the field `community_id` of `flowgauge flows`.
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(super) community_id: Vec<String>,

    /// Select flows by an expression (see `flowgauge flows --help`)
    ///
    /// A file of FTP or TFTP has a name only if the control connection or the request is selected too.
    #[arg(long, short = 'F', value_name = "EXPR")]
    pub(super) filter: Option<String>,

    /// Verify the checksums of IPv4, TCP and UDP
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Checksums::Ignore)]
    pub(super) checksums: Checksums,

    #[command(flatten)]
    pub(super) style: StyleArgs,

    #[command(flatten)]
    pub(super) grace: GraceArgs,

    #[command(flatten)]
    pub(super) summary: SummaryLineArgs,

    #[command(flatten)]
    pub(super) shared: SharedArgs,
}

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    Http,
    Mail,
    Ftp,
    Tftp,
    Smb,
    Certificate,
}

impl Kind {
    /// Returns the kind of the files that a protocol transfers.
    pub(super) fn of(protocol: &Protocol) -> Option<Self> {
        [
            (&http1::PROTOCOL, Self::Http),
            (&http2::PROTOCOL, Self::Http),
            (&smtp::PROTOCOL, Self::Mail),
            (&ftp_data::PROTOCOL, Self::Ftp),
            (&tftp::PROTOCOL, Self::Tftp),
            (&smb::PROTOCOL, Self::Smb),
        ]
        .into_iter()
        .find_map(|(of, kind)| (of == protocol).then_some(kind))
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mail => "mail",
            Self::Ftp => "ftp",
            Self::Tftp => "tftp",
            Self::Smb => "smb",
            Self::Certificate => "certificate",
        }
    }

    /// Returns the extension of files of this kind, if it does not depend on the object.
    pub(super) const fn extension(self) -> Option<&'static str> {
        match self {
            Self::Http | Self::Ftp | Self::Tftp | Self::Smb => None,
            Self::Mail => Some("eml"),
            Self::Certificate => Some("der"),
        }
    }
}

/// Formats of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Ndjson,
    Table,
    Csv,
}
