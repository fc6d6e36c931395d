//! The table of flow records: column widths fit the first flows, and the number of columns fits the line width.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};
use std::net::IpAddr;
use std::time::Duration;

use flowgauge::base::{EndReason, Evidence, IpProtocol, Timestamp};
use flowgauge::record::{Field, FieldType, FlowRecord, SortKey, Unit, Value};

use crate::human;

/// Number of rows that are examined before the column widths are decided.
const SAMPLE_COUNT: usize = 1000;

/// Number of spaces between columns.
const GAP: usize = 2;

/// Returns the index of a field in the schema. A name that is not a field is an error at compile time.
const fn field(name: &str) -> usize {
    let mut index = 0;
    while index < FlowRecord::SCHEMA.len() {
        if is_equal(FlowRecord::SCHEMA[index].name.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("no field has this name")
}

const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// Content of a column: one field of the schema, or several that are shown together. The numbers are indices of fields
/// in the schema.
#[derive(Clone, Copy)]
enum Content {
    Field(usize),
    /// A time without its date, from one field.
    TimeOfDay(usize),
    /// The sum of two fields, one for each direction.
    Sum(usize, usize),
    /// The octets of frames in a direction, or those of IP packets if an exporter sent only these; from two fields.
    Octets(usize, usize),
    /// The sum of [`Content::Octets`] of both directions: the fields of frames, and those of IP packets.
    OctetSum([usize; 2], [usize; 2]),
    /// An address and a port, from two fields.
    Endpoint(usize, usize),
    /// A transport protocol, and the application protocol with its evidence if it is known, from three fields: `tcp`,
    /// `tcp/http`, or `tcp/http?` if only the port names it.
    Protocol([usize; 3]),
    /// Zeek's connection state, or the type and code for ICMP, from three fields.
    State([usize; 3]),
    /// A short name of the reason why the flow ended.
    End(usize),
}

/// Returns the sum of two counts, or the one that is known.
fn sum<'r>(first: Value<'r>, second: Value<'r>) -> Value<'r> {
    match (first, second) {
        (Value::Unsigned(first), Value::Unsigned(second)) => Value::Unsigned(first.saturating_add(second)),
        (Value::Absent, value) | (value, _) => value,
    }
}

/// Returns a value, or another one if it is not known.
fn known_or<'r>(value: Value<'r>, other: Value<'r>) -> Value<'r> {
    if value == Value::Absent { other } else { value }
}

/// A column of the table. Alignment, minimum width and format follow from the fields of its content.
#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    content: Content,
}

impl Column {
    const fn new(title: &'static str, content: Content) -> Self {
        Self { title, content }
    }

    /// Returns the first field of the column, which determines the format of its values.
    fn first_field(self) -> &'static Field {
        let (Content::Field(index)
        | Content::TimeOfDay(index)
        | Content::Sum(index, _)
        | Content::Octets(index, _)
        | Content::OctetSum([index, _], _)
        | Content::Endpoint(index, _)
        | Content::Protocol([index, ..])
        | Content::State([index, ..])
        | Content::End(index)) = self.content;
        &FlowRecord::SCHEMA[index]
    }

    /// Returns whether the column is right-aligned, as numbers are.
    fn is_right(self) -> bool {
        let field = self.first_field();
        let is_number = matches!(field.field_type, FieldType::Unsigned(_)) && !is_time(field);
        is_number
            && matches!(
                self.content,
                Content::Field(_) | Content::Sum(..) | Content::Octets(..) | Content::OctetSum(..)
            )
    }

    /// Returns the width in characters of the title and of common values, so that later rows seldom exceed it.
    fn min_width(self) -> usize {
        let field = self.first_field();
        let common = match (self.content, field.field_type, field.unit) {
            (Content::TimeOfDay(_), ..) => 12,
            (Content::Protocol(..), ..) => 5,
            (_, FieldType::Unsigned(_), Unit::Nanoseconds) if is_time(field) => 23,
            (_, FieldType::Unsigned(_), Unit::Nanoseconds) => 7,
            (_, FieldType::Unsigned(_), Unit::None) => 0,
            (_, FieldType::Unsigned(_) | FieldType::Name, _) => 6,
            (_, FieldType::Address, _) => 15,
            (_, FieldType::Mac, _) => 17,
            _ => 8,
        };
        common.max(self.title.len())
    }

    /// Returns the text of this column for a flow record.
    fn cell(self, record: &FlowRecord) -> String {
        let value = |index| record.value(index);
        match self.content {
            Content::Field(index) => single(self.first_field(), value(index)),
            Content::TimeOfDay(index) => {
                let start = single(self.first_field(), value(index));
                start.get(11..).unwrap_or(&start).to_owned()
            }
            Content::Sum(forward, reverse) => single(self.first_field(), sum(value(forward), value(reverse))),
            Content::Octets(frames, packets) => {
                single(self.first_field(), known_or(value(frames), value(packets)))
            }
            Content::OctetSum([forward, reverse], [ip_forward, ip_reverse]) => {
                let frames = sum(value(forward), value(reverse));
                single(self.first_field(), known_or(frames, sum(value(ip_forward), value(ip_reverse))))
            }
            Content::Endpoint(address, port) => match (value(address), value(port)) {
                (Value::Address(IpAddr::V6(address)), Value::Unsigned(port)) => format!("[{address}]:{port}"),
                (address, Value::Unsigned(port)) => format!("{address}:{port}"),
                (address, _) => address.to_string(),
            },
            Content::Protocol(fields) => protocol_name(fields.map(value)),
            Content::State([state, kind, code]) => match (value(kind), value(code)) {
                (Value::Unsigned(kind), Value::Unsigned(code)) => format!("{kind}/{code}"),
                _ => value(state).to_string(),
            },
            Content::End(reason) => end_name(&value(reason)).to_owned(),
        }
    }
}

/// Returns whether the values of a field are times, not durations.
fn is_time(field: &Field) -> bool {
    matches!(field.sort, Some(SortKey::Start | SortKey::End))
}

/// Formats the value of a field, by the type and unit of the field; `-` if there is no value.
fn single(field: &Field, value: Value<'_>) -> String {
    match (value, field.unit) {
        (Value::Unsigned(number), Unit::Nanoseconds) if is_time(field) => {
            date_and_time(Timestamp::from_nanos(number))
        }
        (Value::Unsigned(number), Unit::Nanoseconds) => human::duration(Duration::from_nanos(number)),
        (Value::Unsigned(number), Unit::Octets) => human::octets(number),
        (Value::Unsigned(number), Unit::Packets | Unit::Flows) => human::count(number, 100_000),
        (Value::Absent, _) => "-".to_owned(),
        (value, _) => value.to_string(),
    }
}

/// The columns of the default table layouts.
const COLUMNS: [Column; 15] = [
    Column::new("START (UTC)", Content::Field(field("start_ns"))),
    Column::new("START", Content::TimeOfDay(field("start_ns"))),
    Column::new("DURATION", Content::Field(field("duration_ns"))),
    Column::new(
        "PROTO",
        Content::Protocol([field("protocol"), field("application"), field("application_evidence")]),
    ),
    Column::new("SOURCE", Content::Endpoint(field("source_address"), field("source_port"))),
    Column::new("DESTINATION", Content::Endpoint(field("destination_address"), field("destination_port"))),
    Column::new("PKTS->", Content::Field(field("packet_count"))),
    Column::new("<-PKTS", Content::Field(field("reverse_packet_count"))),
    Column::new("PACKETS", Content::Sum(field("packet_count"), field("reverse_packet_count"))),
    Column::new("OCTETS->", Content::Octets(field("octet_count"), field("ip_octet_count"))),
    Column::new("<-OCTETS", Content::Octets(field("reverse_octet_count"), field("reverse_ip_octet_count"))),
    Column::new(
        "OCTETS",
        Content::OctetSum(
            [field("octet_count"), field("reverse_octet_count")],
            [field("ip_octet_count"), field("reverse_ip_octet_count")],
        ),
    ),
    Column::new("STATE", Content::State([field("conn_state"), field("icmp_type"), field("icmp_code")])),
    Column::new("HISTORY", Content::Field(field("history"))),
    Column::new("ENDED", Content::End(field("flow_end_reason"))),
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

/// Column layouts of the table, from the most columns to the fewest.
#[rustfmt::skip]
const LAYOUTS: [&[usize]; 6] = [
    &[
        START, DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS_OUT, PACKETS_BACK, OCTETS_OUT, OCTETS_BACK,
        STATE, HISTORY, ENDED,
    ],
    &[
        TIME, DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS_OUT, PACKETS_BACK, OCTETS_OUT, OCTETS_BACK,
        STATE, HISTORY, ENDED,
    ],
    &[
        TIME, DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS_OUT, PACKETS_BACK, OCTETS_OUT, OCTETS_BACK,
        STATE, HISTORY,
    ],
    &[
        TIME, DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS_OUT, PACKETS_BACK, OCTETS_OUT, OCTETS_BACK,
        STATE,
    ],
    &[
        DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS_OUT, PACKETS_BACK, OCTETS_OUT, OCTETS_BACK, STATE,
    ],
    &[
        DURATION, PROTOCOL, SOURCE, DESTINATION, PACKETS, OCTETS, STATE,
    ],
];

/// Column layout for lines too narrow for every layout of `LAYOUTS`: numbers first, then the addresses, on separate
/// lines if necessary.
const NARROW: &[usize] = &[DURATION, PROTOCOL, PACKETS, OCTETS, STATE];

type Row = Vec<String>;

/// Writes flow records as rows of a table.
pub(crate) struct Table<W> {
    out: W,
    columns: Vec<Column>,
    /// True if the columns are those that the caller chose. Otherwise the default layout that fits the line width is
    /// chosen.
    is_chosen: bool,
    /// Width of a line in characters; `None` for no limit.
    line_width: Option<usize>,
    /// Rows that are kept until the column widths are decided.
    sample: Vec<Row>,
    layout: Option<Layout>,
    line: String,
}

/// Columns of a table, their widths, and the selection of columns that are shown.
struct Layout {
    columns: Vec<Column>,
    /// Indices of the columns that are shown.
    shown: Vec<usize>,
    /// Widths of all columns, in characters.
    widths: Vec<usize>,
    line_width: Option<usize>,
    is_narrow: bool,
}

impl<W: Write> Table<W> {
    /// Creates a table as wide as the terminal, or as the environment variable `COLUMNS` specifies; without either, as
    /// wide as its content.
    pub(crate) fn new(out: W) -> Self {
        Self::with_columns(out, COLUMNS.to_vec(), line_width())
    }

    /// Creates a table with a column for each of the given fields, which are indices in the schema.
    pub(crate) fn with_fields(out: W, fields: &[usize]) -> Self {
        let column = |index: &usize| Column::new(FlowRecord::SCHEMA[*index].name, Content::Field(*index));
        Self { is_chosen: true, ..Self::with_columns(out, fields.iter().map(column).collect(), None) }
    }

    fn with_columns(out: W, columns: Vec<Column>, line_width: Option<usize>) -> Self {
        let (sample, layout, line) = (Vec::new(), None, String::new());
        Self { out, columns, is_chosen: false, line_width, sample, layout, line }
    }

    /// Returns the length in octets of the row of a record, apart from spaces that other rows require.
    pub(crate) fn len_of(&self, record: &FlowRecord) -> usize {
        let width = |column: &Column| column.cell(record).len().max(column.min_width()) + GAP;
        self.columns.iter().map(width).sum()
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        let row: Row = self.columns.iter().map(|column| column.cell(record)).collect();
        match &self.layout {
            Some(layout) => print(&mut self.out, &mut self.line, layout, &row),
            None => {
                self.sample.push(row);
                if self.sample.len() == SAMPLE_COUNT { self.decide() } else { Ok(()) }
            }
        }
    }

    /// Writes all pending rows; later rows use the same column widths.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.layout.is_none() {
            self.decide()?;
        }
        self.out.flush()
    }

    fn decide(&mut self) -> io::Result<()> {
        let mut widths: Vec<_> = self.columns.iter().map(|column| column.min_width()).collect();
        for row in &self.sample {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.len().max(*width);
            }
        }
        let line_width = self.line_width;
        let total = |shown: &[usize]| shown.iter().map(|&at| widths[at] + GAP).sum::<usize>() - GAP;
        let fits = |shown: &&[usize]| line_width.is_none_or(|width| total(shown) <= width);
        let (shown, is_narrow) = if self.is_chosen {
            ((0..self.columns.len()).collect(), false)
        } else {
            let fitting = LAYOUTS.into_iter().find(fits);
            (fitting.unwrap_or(NARROW).to_vec(), fitting.is_none())
        };
        let titles: Row = self.columns.iter().map(|column| column.title.to_owned()).collect();
        let layout = Layout { columns: self.columns.clone(), shown, widths, line_width, is_narrow };
        print(&mut self.out, &mut self.line, &layout, &titles)?;
        for row in std::mem::take(&mut self.sample) {
            print(&mut self.out, &mut self.line, &layout, &row)?;
        }
        self.layout = Some(layout);
        Ok(())
    }
}

fn print(out: &mut impl Write, line: &mut String, layout: &Layout, row: &Row) -> io::Result<()> {
    line.clear();
    for &at in &layout.shown {
        let width = layout.widths[at];
        let _ = if layout.columns[at].is_right() {
            write!(line, "{:>width$}  ", row[at])
        } else {
            write!(line, "{:<width$}  ", row[at])
        };
    }
    if layout.is_narrow {
        let width = layout.line_width.unwrap_or(usize::MAX);
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

/// Returns the line width in characters from the environment variable `COLUMNS`, or that of the terminal.
pub(crate) fn line_width() -> Option<usize> {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let from_terminal = || {
        let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        terminal.map(|(width, _)| usize::from(width.0))
    };
    from_environment.or_else(from_terminal).filter(|width| *width > 0)
}

/// Formats a timestamp as date and time, such as `2026-11-20 23:41:15.123`.
pub(crate) fn date_and_time(timestamp: Timestamp) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(timestamp.as_nanos());
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.replace('T', " ").trim_end_matches('Z').to_owned()
}

fn protocol_name([protocol, application, evidence]: [Value<'_>; 3]) -> String {
    let Value::Unsigned(number) = protocol else { return "-".to_owned() };
    let mut name = match u8::try_from(number).map(IpProtocol) {
        Ok(IpProtocol::ICMPV6) => "icmp6".to_owned(),
        Ok(protocol) => protocol.to_string(),
        Err(_) => number.to_string(),
    };
    if application != Value::Absent {
        let mark = if evidence == Value::Name(Evidence::Port.name()) { "?" } else { "" };
        let _ = write!(name, "/{application}{mark}");
    }
    name
}

fn end_name(reason: &Value<'_>) -> &'static str {
    let Value::Name(name) = reason else { return "-" };
    let reasons = [
        (EndReason::IdleTimeout, "idle"),
        (EndReason::ActiveTimeout, "active"),
        (EndReason::EndOfFlow, "closed"),
        (EndReason::ForcedEnd, "forced"),
        (EndReason::LackOfResources, "evicted"),
    ];
    reasons.into_iter().find(|(reason, _)| reason.name() == *name).map_or("other", |(_, short)| short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(source: &str, destination: &str) -> Row {
        let mut row = vec!["x".to_owned(); COLUMNS.len()];
        row[SOURCE] = source.to_owned();
        row[DESTINATION] = destination.to_owned();
        row
    }

    fn table(line_width: usize, rows: Vec<Row>) -> String {
        let mut table = Table::with_columns(Vec::new(), COLUMNS.to_vec(), Some(line_width));
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
        let mut table = Table::with_columns(Vec::new(), COLUMNS.to_vec(), None);
        table.flush().unwrap();
        let layout = table.layout.as_ref().unwrap();
        print(&mut table.out, &mut table.line, layout, &row(LONG, LONG)).unwrap();
        let text = String::from_utf8(table.out).unwrap();
        assert_eq!(text.matches(LONG).count(), 2);
    }
}
