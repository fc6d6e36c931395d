//! Messages of sessions for people: one line each, truncated at the width of the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgauge::row::TableRow;
use flowgauge::session::MessageHead;
use flowgauge::transaction::TransactionHead;
use flowgauge::{Role, Timestamp};

use crate::formats::line_width;
use crate::human::time_of_day;
use crate::values::push_values;

/// What precedes the content of a row: time, protocol and kind, and the ends with an arrow between them.
pub(super) struct RowHead {
    timestamp: Timestamp,
    protocol: &'static str,
    kind: &'static str,
    source: (IpAddr, Option<u16>),
    destination: (IpAddr, Option<u16>),
    arrow: &'static str,
}

impl RowHead {
    /// Returns the time of the row.
    pub(super) const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

impl From<&MessageHead> for RowHead {
    fn from(head: &MessageHead) -> Self {
        let MessageHead { timestamp, protocol, kind, source, destination, .. } = *head;
        let arrow = if head.role == Role::Server { "<-" } else { "->" };
        Self { timestamp, protocol, kind, source, destination, arrow }
    }
}

impl From<&TransactionHead> for RowHead {
    fn from(head: &TransactionHead) -> Self {
        let TransactionHead { timestamp, protocol, kind, source, destination, .. } = *head;
        Self { timestamp, protocol, kind, source, destination, arrow: "->" }
    }
}

/// Writes messages and transactions of sessions as lines.
pub(super) struct Rows {
    line_width: Option<usize>,
    /// The current line.
    row: String,
}

impl Rows {
    /// Writes the column titles.
    pub(super) fn new(out: &mut impl Write) -> io::Result<Self> {
        let titles = ("TIME", "PROTO", "CLIENT", "SERVER", "MESSAGE");
        let (time, protocol, client, server, message) = titles;
        writeln!(out, "{time:<12}  {protocol:<5}  {client:<21}    {server:<21}  {message}")?;
        Ok(Self { line_width: line_width(), row: String::new() })
    }

    /// Appends the line of a message. Characters that are not printable are escaped, so that untrusted text cannot
    /// control the terminal. Absent values, and usual ones of sparse columns, are omitted.
    pub(super) fn write(
        &mut self,
        line: &mut Vec<u8>,
        head: &RowHead,
        message: TableRow<'_>,
        has_sensitive: bool,
    ) {
        let Self { line_width, row } = self;
        row.clear();
        let _ = write!(
            row,
            "{:<12}  {:<5}  {:<21} {} {:<21}  {}",
            time_of_day(head.timestamp),
            head.protocol,
            end(head.source),
            head.arrow,
            end(head.destination),
            head.kind,
        );
        push_values(row, message, has_sensitive);
        let end =
            line_width.and_then(|width| row.char_indices().nth(width)).map_or(row.len(), |(end, _)| end);
        line.extend_from_slice(row.get(..end).unwrap_or_default().as_bytes());
    }
}

fn end((address, port): (IpAddr, Option<u16>)) -> String {
    port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string())
}
