//! Rows of objects, and their formats.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgauge::export::{Lines, RecordWriter, Style, Summary, human};
use flowgauge::record::CommunityId;
use flowgauge::row::Name;
use flowgauge::transaction::Decoding;
use flowgauge::{Role, Timestamp};

use super::args::{Format, Kind};
use crate::console::{Out, stdout};
use crate::formats::line_width;
use crate::human::time_of_day;

/// An object that was written to a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectRow<'a> {
    pub(super) file: &'a str,
    pub(super) pem_file: Option<&'a str>,
    pub(super) kind: Kind,
    pub(super) protocol: &'static str,
    pub(super) name: Option<&'a str>,
    pub(super) len: u64,
    pub(super) is_complete: bool,
    pub(super) missing_len: u64,
    pub(super) gap_count: u64,
    pub(super) omitted_len: u64,
    pub(super) sha256: &'a str,
    pub(super) detected_type: Option<&'static str>,
    pub(super) content_type: Option<&'a str>,
    pub(super) content_encoding: Option<&'a str>,
    pub(super) decoding: Option<Decoding>,
    pub(super) range_start: Option<u64>,
    pub(super) complete_len: Option<u64>,
    pub(super) range_count: u64,
    pub(super) ranges: Option<&'a str>,
    pub(super) timestamp: Timestamp,
    pub(super) end: Timestamp,
    pub(super) community_id: CommunityId,
    pub(super) start: Timestamp,
    pub(super) source: (IpAddr, Option<u16>),
    pub(super) destination: (IpAddr, Option<u16>),
    pub(super) role: Role,
    pub(super) transaction: u64,
    pub(super) host: Option<&'a str>,
    pub(super) target: Option<&'a str>,
    pub(super) status: Option<u16>,
    pub(super) command: Option<&'a str>,
}

flowgauge::table! {
    /// An object that was written to a file.
    impl['a] "object" for ObjectRow<'a> as object {
        /// Name of the file.
        "file": &'a str = object.file;
        /// Name of the file with the same certificate as PEM.
        "pem_file": Option<&'a str> = object.pem_file;
        /// Kind of the object: `http`, `mail`, `ftp`, `tftp`, `smb` or `certificate`.
        "kind": Name = Name(object.kind.name());
        /// Name of the protocol.
        "protocol": Name = Name(object.protocol);
        /// Name in the traffic: the file name of a body or a file, the subject of a mail, the first DNS name or the common
        /// name of a certificate.
        "name": Option<&'a str> = object.name;
        /// Octets of the file.
        "len": u64 [octets] = object.len;
        /// True if the object ended as its protocol specifies, and no octets are missing.
        "is_complete": bool = object.is_complete;
        /// Octets that were not captured, and are not in the file.
        "missing_len": u64 [octets, sparse] = object.missing_len;
        /// Number of gaps in which octets are missing.
        "gap_count": u64 [sparse] = object.gap_count;
        /// Octets that are not in the file because of a limit.
        "omitted_len": u64 [octets, sparse] = object.omitted_len;
        /// SHA-256 digest of the file.
        "sha256": &'a str = object.sha256;
        /// Type by the first octets of the file.
        "detected_type": Option<&'static str> = object.detected_type;
        /// Type that the traffic declares.
        "content_type": Option<&'a str> = object.content_type;
        /// Content coding of the object as sent.
        "content_encoding": Option<&'a str> = object.content_encoding;
        /// Result of decoding: `decoded`; `trailing` or `cut` if octets followed the end of the coded content, or its end is
        /// missing, and those before it were decoded; or the reason why the file has the octets as sent: `incomplete`,
        /// `invalid`, `limit` or `unsupported`.
        "decoding": Option<Decoding> = object.decoding;
        /// Position of the file in the complete one, for a range.
        "range_start": Option<u64> [octets] = object.range_start;
        /// Length of the complete file, for a range.
        "complete_len": Option<u64> [octets] = object.complete_len;
        /// Number of ranges that were joined to the file.
        "range_count": u64 [sparse] = object.range_count;
        /// First and last positions of the ranges in the file if others are missing, at most 64, such as `0-19,40-59`.
        "ranges": Option<&'a str> = object.ranges;
        /// Time of the packet that completed the first octets.
        "timestamp": Timestamp = object.timestamp;
        /// Time of the packet that completed the last octets.
        "end": Timestamp = object.end;
        /// Community ID of the flow.
        "community_id": CommunityId = object.community_id;
        /// Time of the first packet of the flow.
        "start": Timestamp = object.start;
        /// Address of the sender.
        "source_address": IpAddr = object.source.0;
        /// Port of the sender.
        "source_port": Option<u16> = object.source.1;
        /// Address of the receiver.
        "destination_address": IpAddr = object.destination.0;
        /// Port of the receiver.
        "destination_port": Option<u16> = object.destination.1;
        /// Role of the sender: `client` or `server`.
        "role": Role = object.role;
        /// Number of the request of HTTP or TFTP, of the mail, or of the command of FTP; of a file of SMB, its number in the connection; of a certificate, its position in the
        /// chain.
        "transaction": u64 = object.transaction;
        /// Host that the request names.
        "host": Option<&'a str> = object.host;
        /// Target of the request.
        "target": Option<&'a str> = object.target;
        /// Status code of the response that has the body.
        "status": Option<u16> = object.status;
        /// Command of FTP that transferred the file.
        "command": Option<&'a str> = object.command;
    }
}

/// Writes rows in any format.
pub(super) type Writer = Box<dyn for<'r> RecordWriter<ObjectRow<'r>> + Send>;

/// Creates the writer of a format to standard output.
pub(super) fn writer(format: Format, style: Style) -> Writer {
    match format {
        Format::Ndjson => Box::new(Lines::ndjson(stdout(), None, style)),
        Format::Csv => Box::new(Lines::csv(stdout(), None, style)),
        Format::Table => Box::new(Table {
            out: stdout(),
            line_width: line_width(),
            line: String::new(),
            has_titles: false,
            row_count: 0,
        }),
    }
}

/// Writes objects for people: one line each, truncated at the width of the terminal.
struct Table {
    out: Out,
    line_width: Option<usize>,
    line: String,
    has_titles: bool,
    row_count: u64,
}

impl Table {
    fn push(&mut self, cells: [&str; 7]) {
        let [time, kind, len, state, detected_type, source, file] = cells;
        let start = self.line.len();
        let _ = write!(
            self.line,
            "{time:<12}  {kind:<11}  {len:>8}  {state:<10}  {detected_type:<26}  {source:<21}  {file}"
        );
        let line = self.line.get(start..).unwrap_or_default();
        if let Some((end, _)) = self.line_width.and_then(|width| line.char_indices().nth(width)) {
            self.line.truncate(start + end);
        }
        self.line.push('\n');
    }

    /// Appends the titles unless they were written.
    fn prepare(&mut self) {
        if !std::mem::replace(&mut self.has_titles, true) {
            self.push(["TIME", "KIND", "OCTETS", "STATE", "TYPE", "SOURCE", "FILE"]);
        }
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// Returns what is wrong with an object in one word.
fn state(object: &ObjectRow<'_>) -> &'static str {
    match object {
        ObjectRow { is_complete: true, .. } => "complete",
        ObjectRow { omitted_len: 1.., .. } => "truncated",
        ObjectRow { gap_count: 1.., .. } => "gaps",
        _ => "unfinished",
    }
}

impl<'r> RecordWriter<ObjectRow<'r>> for Table {
    fn write_if(
        &mut self,
        object: &ObjectRow<'r>,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<bool> {
        self.prepare();
        let start = self.line.len();
        let (address, port) = object.source;
        let source =
            port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string());
        self.push([
            &time_of_day(object.timestamp),
            object.kind.name(),
            &human::octets(object.len),
            state(object),
            object.detected_type.unwrap_or("-"),
            &source,
            object.file,
        ]);
        if !permits(self.line.len() - start) {
            self.line.truncate(start);
            return Ok(false);
        }
        self.row_count += 1;
        self.write_line()?;
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.prepare();
        self.write_line()?;
        self.out.flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        self.flush()?;
        Ok(Summary::of_rows(self.row_count))
    }
}
