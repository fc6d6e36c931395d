//! The table: column widths fit the first flows, and the number of columns fits the line width.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};
use std::net::IpAddr;

use flowgauge::base::{EndReason, IpProtocol, Side, Timestamp};
use flowgauge::record::FlowRecord;

use crate::human;

/// Number of rows that are examined before the widths are decided.
const SAMPLE_COUNT: usize = 1000;

/// Spaces between columns.
const GAP: usize = 2;

/// A column: its title, its minimum width, and whether it is right-aligned.
#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    width: usize,
    is_right: bool,
}

const fn left(title: &'static str, width: usize) -> Column {
    Column { title, width, is_right: false }
}

const fn right(title: &'static str, width: usize) -> Column {
    Column { title, width, is_right: true }
}

const COLUMN_COUNT: usize = 15;

/// All columns. Widths fit common values, so that later rows seldom exceed them.
const COLUMNS: [Column; COLUMN_COUNT] = [
    left("START (UTC)", 23),
    left("START", 12),
    right("DURATION", 8),
    left("PROTO", 5),
    left("SOURCE", 15),
    left("DESTINATION", 15),
    right("PKTS->", 6),
    right("<-PKTS", 6),
    right("PACKETS", 7),
    right("OCTETS->", 8),
    right("<-OCTETS", 8),
    right("OCTETS", 6),
    left("STATE", 6),
    left("HISTORY", 8),
    left("ENDED", 6),
];

const START: usize = 0;
const TIME: usize = 1;
const DURATION: usize = 2;
const PROTOCOL: usize = 3;
const SOURCE: usize = 4;
const DESTINATION: usize = 5;
const PACKETS_OUT: usize = 6;
const PACKETS_BACK: usize = 7;
const PACKETS: usize = 8;
const OCTETS_OUT: usize = 9;
const OCTETS_BACK: usize = 10;
const OCTETS: usize = 11;
const STATE: usize = 12;
const HISTORY: usize = 13;
const ENDED: usize = 14;

/// Layouts, from the most columns to the fewest.
const LAYOUTS: [&[usize]; 6] = [
    &[
        START,
        DURATION,
        PROTOCOL,
        SOURCE,
        DESTINATION,
        PACKETS_OUT,
        PACKETS_BACK,
        OCTETS_OUT,
        OCTETS_BACK,
        STATE,
        HISTORY,
        ENDED,
    ],
    &[
        TIME,
        DURATION,
        PROTOCOL,
        SOURCE,
        DESTINATION,
        PACKETS_OUT,
        PACKETS_BACK,
        OCTETS_OUT,
        OCTETS_BACK,
        STATE,
        HISTORY,
        ENDED,
    ],
    &[
        TIME,
        DURATION,
        PROTOCOL,
        SOURCE,
        DESTINATION,
        PACKETS_OUT,
        PACKETS_BACK,
        OCTETS_OUT,
        OCTETS_BACK,
        STATE,
        HISTORY,
    ],
    &[
        TIME,
        DURATION,
        PROTOCOL,
        SOURCE,
        DESTINATION,
        PACKETS_OUT,
        PACKETS_BACK,
        OCTETS_OUT,
        OCTETS_BACK,
        STATE,
    ],
    &[DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS_OUT, PACKETS_BACK, OCTETS_OUT, OCTETS_BACK, STATE],
    &[DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS, OCTETS, STATE],
];

/// Layout for lines too narrow for the last of these: numbers first, then the addresses, on separate lines if
/// necessary.
const NARROW: &[usize] = &[DURATION, PROTOCOL, PACKETS, OCTETS, STATE];

type Row = [String; COLUMN_COUNT];

/// Writes records as rows.
pub(crate) struct Table<W> {
    out: W,
    /// Width of a line in characters; `None` for no limit.
    line_width: Option<usize>,
    /// Rows that are kept until the widths are decided.
    sample: Vec<Row>,
    layout: Option<Layout>,
    line: String,
}

/// Selected columns and their widths.
struct Layout {
    columns: &'static [usize],
    widths: [usize; COLUMN_COUNT],
    is_narrow: bool,
}

impl<W: Write> Table<W> {
    /// Creates a table as wide as the terminal, or as `COLUMNS` specifies; without either, as wide as its content.
    pub(crate) fn new(out: W) -> Self {
        Self::with_width(out, line_width())
    }

    fn with_width(out: W, line_width: Option<usize>) -> Self {
        Self { out, line_width, sample: Vec::new(), layout: None, line: String::new() }
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        let row = cells(record);
        match &self.layout {
            Some(layout) => print(&mut self.out, &mut self.line, layout, self.line_width, &row),
            None => {
                self.sample.push(row);
                if self.sample.len() == SAMPLE_COUNT { self.decide() } else { Ok(()) }
            }
        }
    }

    /// Writes all pending rows; later rows use the widths of these.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.layout.is_none() {
            self.decide()?;
        }
        self.out.flush()
    }

    fn decide(&mut self) -> io::Result<()> {
        let mut widths = COLUMNS.map(|column| column.width.max(column.title.len()));
        for row in &self.sample {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.len().max(*width);
            }
        }
        let total = |columns: &[usize]| columns.iter().map(|&at| widths[at] + GAP).sum::<usize>() - GAP;
        let fitting =
            LAYOUTS.into_iter().find(|layout| self.line_width.is_none_or(|width| total(layout) <= width));
        let layout = Layout { columns: fitting.unwrap_or(NARROW), widths, is_narrow: fitting.is_none() };
        let titles = COLUMNS.map(|column| column.title.to_owned());
        print(&mut self.out, &mut self.line, &layout, self.line_width, &titles)?;
        for row in std::mem::take(&mut self.sample) {
            print(&mut self.out, &mut self.line, &layout, self.line_width, &row)?;
        }
        self.layout = Some(layout);
        Ok(())
    }
}

fn print(
    out: &mut impl Write,
    line: &mut String,
    layout: &Layout,
    line_width: Option<usize>,
    row: &Row,
) -> io::Result<()> {
    line.clear();
    for &at in layout.columns {
        let width = layout.widths[at];
        let _ = if COLUMNS[at].is_right {
            write!(line, "{:>width$}  ", row[at])
        } else {
            write!(line, "{:<width$}  ", row[at])
        };
    }
    if layout.is_narrow {
        let width = line_width.unwrap_or(usize::MAX);
        // On one line, or with the addresses on separate lines if they are too long.
        let (source, target) = (&row[SOURCE], format!("-> {}", row[DESTINATION]));
        let start = line.len();
        let mut column = start;
        if start + source.len().max(target.len()) > width {
            line.truncate(line.trim_end().len());
            line.push_str("\n    ");
            column = 4;
        }
        line.push_str(source);
        if column + source.len() + 1 + target.len() > width {
            let _ = write!(line, "\n{:column$}", "");
        } else {
            line.push(' ');
        }
        line.push_str(&target);
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Returns the line width from `COLUMNS`, or that of the terminal.
pub(crate) fn line_width() -> Option<usize> {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let from_terminal = || {
        let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        terminal.map(|(width, _)| usize::from(width.0))
    };
    from_environment.or_else(from_terminal).filter(|width| *width > 0)
}

fn cells(record: &FlowRecord) -> Row {
    let (forward, reverse) = (&record.forward.counters, &record.reverse.counters);
    let packets = |count| human::count(count, 100_000);
    let start = date_and_time(record.start);
    [
        start.clone(),
        start.get(11..).unwrap_or(&start).to_owned(),
        human::duration(record.duration()),
        protocol(record),
        end(record, record.initiator),
        end(record, record.initiator.other()),
        packets(forward.packet_count),
        packets(reverse.packet_count),
        packets(record.packet_count()),
        human::octets(forward.octet_count),
        human::octets(reverse.octet_count),
        human::octets(record.octet_count()),
        state(record),
        record.history.to_string(),
        ended(record.flow_end_reason).to_owned(),
    ]
}

/// Formats `2026-11-20 23:41:15.123`.
pub(crate) fn date_and_time(timestamp: Timestamp) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(timestamp.as_nanos());
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.replace('T', " ").trim_end_matches('Z').to_owned()
}

/// Formats `tcp`, or `tcp/http` if the application is known.
fn protocol(record: &FlowRecord) -> String {
    let protocol = record.protocol();
    let mut name = if protocol == IpProtocol::ICMPV6 { "icmp6".to_owned() } else { protocol.to_string() };
    if let Some(application) = record.application {
        name.push('/');
        name.push_str(application.name.as_str());
    }
    name
}

/// Formats address and port.
fn end(record: &FlowRecord, side: Side) -> String {
    let address = record.key.address(side);
    match (address, record.key.port(side)) {
        (IpAddr::V4(v4), Some(port)) => format!("{v4}:{port}"),
        (IpAddr::V6(v6), Some(port)) => format!("[{v6}]:{port}"),
        (address, None) => address.to_string(),
    }
}

/// Returns Zeek's connection state, or type and code for ICMP.
fn state(record: &FlowRecord) -> String {
    match record.icmp {
        Some((kind, code)) => format!("{kind}/{code}"),
        None => record.conn_state.to_string(),
    }
}

const fn ended(reason: EndReason) -> &'static str {
    match reason {
        EndReason::IdleTimeout => "idle",
        EndReason::ActiveTimeout => "active",
        EndReason::EndOfFlow => "closed",
        EndReason::ForcedEnd => "input",
        EndReason::LackOfResources => "evicted",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(source: &str, destination: &str) -> Row {
        let mut row = COLUMNS.map(|_| "x".to_owned());
        row[SOURCE] = source.to_owned();
        row[DESTINATION] = destination.to_owned();
        row
    }

    fn table(line_width: usize, rows: Vec<Row>) -> String {
        let mut table = Table::with_width(Vec::new(), Some(line_width));
        table.sample = rows;
        table.flush().unwrap();
        String::from_utf8(table.out).unwrap()
    }

    const LONG: &str = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535";

    #[test]
    fn a_shorter_line_has_fewer_columns() {
        let rows = vec![row("192.0.2.1:40000", "198.51.100.1:443")];
        let mut last = usize::MAX;
        for line_width in [160, 130, 110, 100, 90, 80, 60, 40] {
            let text = table(line_width, rows.clone());
            let count = text.lines().next().unwrap().split_whitespace().count();
            assert!(count <= last);
            last = count;
            assert!(text.lines().all(|line| line.len() <= line_width), "{text}");
            assert!(text.contains("198.51.100.1:443"));
        }
    }

    #[test]
    fn long_addresses_are_on_separate_lines() {
        let text = table(80, vec![row("192.0.2.1:40000", "192.0.2.2:80"), row(LONG, LONG)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[1].ends_with("192.0.2.1:40000 -> 192.0.2.2:80"));
        assert_eq!((lines[3], lines[4]), (&*format!("    {LONG}"), &*format!("    -> {LONG}")));
        assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
        assert!(table(200, vec![row(LONG, LONG)]).lines().count() == 2);
    }

    #[test]
    fn a_late_row_may_exceed_its_column_but_is_complete() {
        let mut table = Table::with_width(Vec::new(), None);
        table.flush().unwrap();
        let layout = table.layout.as_ref().unwrap();
        print(&mut table.out, &mut table.line, layout, None, &row(LONG, LONG)).unwrap();
        let text = String::from_utf8(table.out).unwrap();
        assert_eq!(text.matches(LONG).count(), 2);
    }
}
