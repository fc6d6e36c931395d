//! Messages of sessions for people: one line each, truncated at the width of the terminal.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgauge::neighbor::NeighborHead;
use flowgauge::row::{TableRow, Value};
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
    source: End,
    destination: End,
    arrow: &'static str,
}

/// One end of a row: an address with its port, or what a message between neighbors states.
enum End {
    Flow(IpAddr, Option<u16>),
    Neighbor(Option<IpAddr>, Option<[u8; 6]>),
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
        let [source, destination] = [source, destination].map(|(address, port)| End::Flow(address, port));
        Self { timestamp, protocol, kind, source, destination, arrow }
    }
}

impl From<&NeighborHead> for RowHead {
    fn from(head: &NeighborHead) -> Self {
        Self {
            timestamp: head.timestamp,
            protocol: head.protocol,
            kind: head.kind,
            source: End::Neighbor(head.source_address, head.source_mac),
            destination: End::Neighbor(head.destination_address, head.destination_mac),
            arrow: "->",
        }
    }
}

impl From<&TransactionHead> for RowHead {
    fn from(head: &TransactionHead) -> Self {
        let TransactionHead { timestamp, protocol, kind, source, destination, .. } = *head;
        let [source, destination] = [source, destination].map(|(address, port)| End::Flow(address, port));
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
            head.source.to_string(),
            head.arrow,
            head.destination.to_string(),
            head.kind,
        );
        push_values(row, message, has_sensitive);
        let end =
            line_width.and_then(|width| row.char_indices().nth(width)).map_or(row.len(), |(end, _)| end);
        line.extend_from_slice(row.get(..end).unwrap_or_default().as_bytes());
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(address, Some(port)) => SocketAddr::new(*address, *port).fmt(f),
            Self::Flow(address, None) | Self::Neighbor(Some(address), _) => address.fmt(f),
            Self::Neighbor(None, Some(mac)) => Value::Mac(*mac).fmt(f),
            Self::Neighbor(None, None) => f.write_str("-"),
        }
    }
}
