//! The table of flow records: column widths fit the first flows, and the number of columns fits the line width.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::IpAddr;

use super::selection::Selection;
use super::writer::{RecordWriter, Summary};
use super::{human, text};
use crate::base::{EndReason, Evidence, IpProtocol, Timestamp};
use crate::record::{FlowRecord, field_index as field};
use crate::row::{Column as RowColumn, ColumnSet, Row as _, Table as _, Type, Unit, Value};

/// Number of rows that are examined before the column widths are decided.
const SAMPLE_COUNT: usize = 1000;

/// Number of spaces between columns.
const GAP: usize = 2;

/// Names of the source and the destination of a flow.
type Names<'n> = [Option<&'n str>; 2];

/// Most characters of a name that are shown.
const NAME_LEN_MAX: usize = 40;

const SOURCE_ADDRESS: usize = field("source_address");

/// Content of a column: one field of the schema, or several that are shown together. The numbers are indices of fields
/// in the schema.
#[derive(Clone, Copy, Debug)]
enum Content {
    Field(usize),
    /// A time without its date, from one field.
    TimeOfDay(usize),
    /// A count of one direction: the first known one of several fields, because exporters may send only some of them.
    Count(&'static [usize]),
    /// The sum of [`Content::Count`] of both directions.
    Sum(&'static [usize], &'static [usize]),
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
fn sum(first: &Value, second: &Value) -> Value {
    match (first, second) {
        (Value::Unsigned(first), Value::Unsigned(second)) => Value::Unsigned(first.saturating_add(*second)),
        (Value::Null, value) | (value, _) => value.clone(),
    }
}

/// A column of the table. Alignment, minimum width and format follow from the fields of its content.
#[derive(Clone, Copy, Debug)]
struct Column {
    title: &'static str,
    content: Content,
}

impl Column {
    const fn new(title: &'static str, content: Content) -> Self {
        Self { title, content }
    }

    /// Returns the indices of the columns of a record that the column shows. The first one determines the format.
    fn indices(self) -> Vec<usize> {
        match self.content {
            Content::Field(index) | Content::TimeOfDay(index) | Content::End(index) => vec![index],
            Content::Endpoint(first, second) => vec![first, second],
            Content::Count(fields) => fields.to_vec(),
            Content::Sum(forward, reverse) => [forward, reverse].concat(),
            Content::Protocol(indices) | Content::State(indices) => indices.to_vec(),
        }
    }

    fn first(self) -> &'static RowColumn {
        &FlowRecord::COLUMNS[self.indices()[0]]
    }

    /// Returns whether the column is right-aligned, as numbers are.
    fn is_right(self) -> bool {
        let is_number = matches!(
            self.first().column_type,
            Type::Unsigned(_) | Type::Signed(_) | Type::Float | Type::Duration
        );
        is_number && matches!(self.content, Content::Field(_) | Content::Count(_) | Content::Sum(..))
    }

    /// Returns the width in characters of the title and of common values, so that later rows seldom exceed it.
    fn min_width(self) -> usize {
        let column = self.first();
        let common = match (self.content, column.column_type, column.unit) {
            (Content::TimeOfDay(_), ..) => 12,
            (Content::Protocol(..), ..) => 5,
            (_, Type::Timestamp, _) => 23,
            (_, Type::Duration, _) => 7,
            (_, Type::Unsigned(_), Unit::None) => 0,
            (_, Type::Unsigned(_) | Type::Name, _) => 6,
            (_, Type::Address, _) => 15,
            (_, Type::Mac, _) => 17,
            _ => 8,
        };
        common.max(self.title.len())
    }

    /// Returns the text of this column for the values of a flow record, with the names of its hosts if they are known.
    fn cell(self, values: &[Value], [source, destination]: Names<'_>) -> String {
        let value = |index: usize| values.get(index).unwrap_or(&Value::Null);
        let count = |fields: &[usize]| {
            let known = fields.iter().map(|index| value(*index)).find(|value| **value != Value::Null);
            known.unwrap_or(&Value::Null)
        };
        let unit = self.first().unit;
        match self.content {
            Content::Field(index) => single(unit, value(index)),
            Content::TimeOfDay(index) => {
                let start = single(unit, value(index));
                start.get(11..).unwrap_or(&start).to_owned()
            }
            Content::Count(fields) => single(unit, count(fields)),
            Content::Sum(forward, reverse) => single(unit, &sum(count(forward), count(reverse))),
            Content::Endpoint(address, port) => {
                let name = if address == SOURCE_ADDRESS { source } else { destination };
                match (name, value(address), value(port)) {
                    (Some(name), _, port) => {
                        let end = name.char_indices().nth(NAME_LEN_MAX).map_or(name.len(), |(end, _)| end);
                        let name = name.get(..end).unwrap_or(name);
                        match port {
                            Value::Unsigned(port) => format!("{name}:{port}"),
                            _ => name.to_owned(),
                        }
                    }
                    (None, Value::Address(IpAddr::V6(address)), Value::Unsigned(port)) => {
                        format!("[{address}]:{port}")
                    }
                    (None, address, Value::Unsigned(port)) => format!("{address}:{port}"),
                    (None, address, _) => address.to_string(),
                }
            }
            Content::Protocol(indices) => protocol_name(indices.map(value)),
            Content::State([state, kind, code]) => match (value(kind), value(code)) {
                (Value::Unsigned(kind), Value::Unsigned(code)) => format!("{kind}/{code}"),
                _ => value(state).to_string(),
            },
            Content::End(reason) => end_name(value(reason)).to_owned(),
        }
    }
}

/// Formats a value, by its type and unit; `-` if there is none.
fn single(unit: Unit, value: &Value) -> String {
    match (value, unit) {
        (Value::Timestamp(time), _) => date_and_time(*time),
        (Value::Duration(duration), _) => human::duration(*duration),
        (Value::Unsigned(number), Unit::Octets) => human::octets(*number),
        (Value::Unsigned(number), Unit::Packets | Unit::Flows) => human::count(*number, 100_000),
        (Value::Null, _) => "-".to_owned(),
        (value, _) => value.to_string(),
    }
}

const PACKET_COUNTS: [usize; 2] = [field("packet_count"), field("egress_packet_count")];
const REVERSE_PACKET_COUNTS: [usize; 2] =
    [field("reverse_packet_count"), field("reverse_egress_packet_count")];
const OCTET_COUNTS: [usize; 4] = [
    field("octet_count"),
    field("ip_octet_count"),
    field("egress_octet_count"),
    field("payload_octet_count"),
];
const REVERSE_OCTET_COUNTS: [usize; 4] = [
    field("reverse_octet_count"),
    field("reverse_ip_octet_count"),
    field("reverse_egress_octet_count"),
    field("reverse_payload_octet_count"),
];

/// The columns of the default table layouts.
const COLUMNS: [Column; 15] = [
    Column::new("START (UTC)", Content::Field(field("start"))),
    Column::new("START", Content::TimeOfDay(field("start"))),
    Column::new("DURATION", Content::Field(field("duration"))),
    Column::new(
        "PROTO",
        Content::Protocol([field("protocol"), field("application"), field("application_evidence")]),
    ),
    Column::new("SOURCE", Content::Endpoint(field("source_address"), field("source_port"))),
    Column::new("DESTINATION", Content::Endpoint(field("destination_address"), field("destination_port"))),
    Column::new("PKTS->", Content::Count(&PACKET_COUNTS)),
    Column::new("<-PKTS", Content::Count(&REVERSE_PACKET_COUNTS)),
    Column::new("PACKETS", Content::Sum(&PACKET_COUNTS, &REVERSE_PACKET_COUNTS)),
    Column::new("OCTETS->", Content::Count(&OCTET_COUNTS)),
    Column::new("<-OCTETS", Content::Count(&REVERSE_OCTET_COUNTS)),
    Column::new("OCTETS", Content::Sum(&OCTET_COUNTS, &REVERSE_OCTET_COUNTS)),
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

/// Writes flow records as a table for people: columns that fit the line width, with numbers and times in units that are
/// easy to read. Column widths are decided after 1000 rows, or on flush.
#[derive(Debug)]
pub struct FlowTable<W> {
    out: W,
    columns: Vec<Column>,
    /// Columns of the record that the table shows.
    wanted: ColumnSet,
    /// True if the columns are those that the caller chose. Otherwise the default layout that fits the line width is
    /// chosen.
    is_chosen: bool,
    /// Width of a line in characters; `None` for no limit.
    line_width: Option<usize>,
    /// Rows that are kept until the column widths are decided.
    sample: Vec<Row>,
    layout: Option<Layout>,
    line: String,
    row_count: u64,
}

#[derive(Debug)]
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

impl<W: Write> FlowTable<W> {
    /// Creates a table of the columns that fit a line of `line_width` characters, of any width if it is `None`.
    pub fn new(out: W, line_width: Option<usize>) -> Self {
        Self::with_columns(out, COLUMNS.to_vec(), line_width)
    }

    /// Creates a table of selected columns.
    pub fn with_selection(out: W, selection: &Selection) -> Self {
        let index = |name| FlowRecord::COLUMNS.iter().position(|column| column.name == name);
        let columns = selection.columns().iter();
        let columns =
            columns.filter_map(|column| Some(Column::new(column.name, Content::Field(index(column.name)?))));
        Self { is_chosen: true, ..Self::with_columns(out, columns.collect(), None) }
    }

    fn with_columns(out: W, columns: Vec<Column>, line_width: Option<usize>) -> Self {
        let wanted = columns.iter().flat_map(|column| column.indices()).collect();
        let (sample, layout, line) = (Vec::new(), None, String::new());
        Self { out, columns, wanted, is_chosen: false, line_width, sample, layout, line, row_count: 0 }
    }

    /// Writes a record with the names of its source and destination in place of their addresses, where they are known. At most
    /// 40 characters of a name are shown.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    pub fn write_named(&mut self, record: &FlowRecord, names: [Option<&str>; 2]) -> io::Result<()> {
        self.write_row(record, names, &mut |_| true).map(drop)
    }

    fn write_row(
        &mut self,
        record: &FlowRecord,
        names: Names<'_>,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<bool> {
        let values = record.values(&self.wanted);
        let row: Row = self.columns.iter().map(|column| column.cell(&values, names)).collect();
        let width = |(column, cell): (&Column, &String)| cell.len().max(column.min_width()) + GAP;
        // Without the spaces that other rows require.
        if !permits(self.columns.iter().zip(&row).map(width).sum()) {
            return Ok(false);
        }
        self.row_count += 1;
        match &self.layout {
            Some(layout) => print(&mut self.out, &mut self.line, layout, &row)?,
            None => {
                self.sample.push(row);
                if self.sample.len() == SAMPLE_COUNT {
                    self.decide()?;
                }
            }
        }
        Ok(true)
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

impl<W: Write> RecordWriter<FlowRecord> for FlowTable<W> {
    fn write_if(&mut self, record: &FlowRecord, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool> {
        self.write_row(record, [None; 2], permits)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.layout.is_none() {
            self.decide()?;
        }
        self.out.flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        self.flush()?;
        Ok(Summary { row_count: self.row_count })
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

/// Formats a timestamp as date and time, such as `2026-11-20 23:41:15.123`.
fn date_and_time(timestamp: Timestamp) -> String {
    let mut octets = Vec::new();
    text::date_and_time(&mut octets, timestamp);
    octets.truncate(23);
    String::from_utf8(octets).unwrap_or_default().replace('T', " ")
}

fn protocol_name([protocol, application, evidence]: [&Value; 3]) -> String {
    let Value::Unsigned(number) = *protocol else { return "-".to_owned() };
    let mut name = match u8::try_from(number).map(IpProtocol) {
        Ok(IpProtocol::ICMPV6) => "icmp6".to_owned(),
        Ok(protocol) => protocol.to_string(),
        Err(_) => number.to_string(),
    };
    if *application != Value::Null {
        let mark = if *evidence == Value::Name(Evidence::Port.name()) { "?" } else { "" };
        let _ = write!(name, "/{application}{mark}");
    }
    name
}

fn end_name(reason: &Value) -> &'static str {
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
        let mut table = FlowTable::with_columns(Vec::new(), COLUMNS.to_vec(), Some(line_width));
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
        let mut table = FlowTable::with_columns(Vec::new(), COLUMNS.to_vec(), None);
        table.flush().unwrap();
        let layout = table.layout.as_ref().unwrap();
        print(&mut table.out, &mut table.line, layout, &row(LONG, LONG)).unwrap();
        let text = String::from_utf8(table.out).unwrap();
        assert_eq!(text.matches(LONG).count(), 2);
    }
}
