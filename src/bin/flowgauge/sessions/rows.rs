//! Messages for people: a row each, cut at the width of the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use flowgauge::base::Timestamp;
use serde_json::{Map, Value};

use crate::escape;
use crate::table::{date_and_time, line_width};

/// Fields that have columns of their own.
const ABOUT: [&str; 10] = [
    "timestamp_ns",
    "community_id",
    "start_ns",
    "protocol",
    "source_address",
    "source_port",
    "destination_address",
    "destination_port",
    "role",
    "message",
];

/// Writes rows.
pub(super) struct Rows {
    line_width: Option<usize>,
}

impl Rows {
    /// Writes the titles.
    pub(super) fn new(out: &mut impl Write) -> io::Result<Self> {
        let titles = ("TIME", "PROTO", "CLIENT", "SERVER", "MESSAGE");
        let (time, protocol, client, server, message) = titles;
        writeln!(out, "{time:<12}  {protocol:<5}  {client:<21}    {server:<21}  {message}")?;
        Ok(Self { line_width: line_width() })
    }

    /// Appends a row. What strangers sent cannot do anything to a terminal: what is no printable character is escaped.
    pub(super) fn write(&self, line: &mut Vec<u8>, fields: &Map<String, Value>) -> io::Result<()> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or_default();
        let start = date_and_time(Timestamp::from_nanos(number("timestamp_ns")));
        let arrow = if text("role") == "server" { "<-" } else { "->" };
        let end = |address: &str, port: &str| {
            let (address, port) = (text(address), number(port));
            if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
        };
        let mut row = String::new();
        let _ = write!(
            row,
            "{:<12}  {:<5}  {:<21} {arrow} {:<21}  {}",
            start.get(11..).unwrap_or(&start),
            text("protocol"),
            end("source_address", "source_port"),
            end("destination_address", "destination_port"),
            text("message"),
        );
        for (name, value) in fields.iter().filter(|(name, _)| !ABOUT.contains(&name.as_str())) {
            let value = match value {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let _ = write!(row, " {name}=");
            escape::push_printable(&mut row, &value);
        }
        let width = self.line_width.unwrap_or(usize::MAX);
        if let Some((end, _)) = row.char_indices().nth(width) {
            row.truncate(end);
        }
        line.write_all(row.as_bytes())
    }
}
