//! Messages of sessions for people: one line each, truncated at the width of the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgauge::row::{ColumnSet, Row, Value};
use flowgauge::session::MessageHead;
use flowgauge::transaction::TransactionHead;
use flowgauge::{Role, Timestamp};

use crate::escape;
use crate::formats::line_width;
use crate::human::time_of_day;

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
    pub(super) fn write<R: Row>(
        &mut self,
        line: &mut Vec<u8>,
        head: &RowHead,
        message: &R,
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
        let columns = R::columns();
        let all: ColumnSet = (0..columns.len()).collect();
        for (column, value) in columns.iter().zip(message.values(&all)) {
            let is_usual = match &value {
                Value::Null => true,
                Value::Bool(value) => column.is_sparse && !value,
                Value::Unsigned(value) => column.is_sparse && *value == 0,
                Value::List(items) => column.is_sparse && items.is_empty(),
                _ => false,
            };
            if is_usual || column.is_sensitive && !has_sensitive {
                continue;
            }
            let _ = write!(row, " {}=", column.name);
            match value {
                Value::Text(text) => escape::push_printable(row, &text),
                value @ (Value::List(_) | Value::Group(_)) => {
                    let json = serde_json::to_string(&without_nulls(value)).unwrap_or_default();
                    escape::push_printable(row, &json);
                }
                value => {
                    let _ = write!(row, "{value}");
                }
            }
        }
        let end =
            line_width.and_then(|width| row.char_indices().nth(width)).map_or(row.len(), |(end, _)| end);
        line.extend_from_slice(row.get(..end).unwrap_or_default().as_bytes());
    }
}

/// Returns a value without the absent and usual members of its groups.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(without_nulls).collect()),
        Value::Group(members) => Value::Group(
            members
                .into_iter()
                .filter(|(column, value)| {
                    *value != Value::Null && !(column.is_sparse && *value == Value::Bool(false))
                })
                .map(|(column, value)| (column, without_nulls(value)))
                .collect(),
        ),
        value => value,
    }
}

fn end((address, port): (IpAddr, Option<u16>)) -> String {
    port.map_or_else(|| address.to_string(), |port| SocketAddr::new(address, port).to_string())
}
