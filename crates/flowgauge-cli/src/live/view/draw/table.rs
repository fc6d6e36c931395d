//! The tables of flows, hosts and protocols, with the columns that fit.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use flowgauge::export::human::{count, duration, octets};
use flowgauge::{ConnState, FlowKey, Side};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Table};

use super::super::model::{FlowRow, Model, TotalRow};
use super::super::order::{Order, Tab};
use super::super::traffic::Activity;
use super::style::BOLD;
use super::text::{age, fit, printable, short_rate, split, width};

/// Width of an IPv4 address with a port.
const IPV4_WIDTH: usize = 21;

/// Columns of the tables, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Protocol,
    Source,
    Destination,
    Name,
    /// Name of a host or a protocol.
    Total,
    State,
    /// Both directions together, if there is no space for each of them.
    Rate,
    Out,
    In,
    OutPackets,
    InPackets,
    Rtt,
    Age,
    Octets,
    Packets,
}

impl Column {
    /// Columns of flows that are shown if there is space for them, by importance.
    const OF_FLOWS: [&'static [Self]; 9] = [
        &[Self::Out, Self::In],
        &[Self::Protocol],
        &[Self::Name],
        &[Self::State],
        &[Self::Octets],
        &[Self::Age],
        &[Self::Rtt],
        &[Self::OutPackets, Self::InPackets],
        &[Self::Packets],
    ];

    /// The same of hosts and protocols.
    const OF_TOTALS: [&'static [Self]; 4] =
        [&[Self::Out, Self::In], &[Self::Octets], &[Self::OutPackets, Self::InPackets], &[Self::Packets]];

    /// Returns the width; of a column with text, the width that suffices for most rows.
    const fn width(self) -> usize {
        match self {
            Self::Protocol => 5,
            Self::State => 6,
            // Of any IPv4 address, with a port at a destination.
            Self::Source => 15,
            Self::Destination => IPV4_WIDTH,
            Self::Name => 11,
            Self::Total => 24,
            Self::Packets => 8,
            _ => 7,
        }
    }

    /// Returns the minimum width.
    const fn width_min(self) -> usize {
        match self {
            Self::Source | Self::Destination | Self::Total => 12,
            _ => self.width(),
        }
    }

    /// Returns whether the width depends on the texts of the column.
    const fn is_flexible(self) -> bool {
        matches!(self, Self::Protocol | Self::Source | Self::Destination | Self::Name | Self::Total)
    }

    const fn is_right_aligned(self) -> bool {
        !self.is_flexible() && !matches!(self, Self::State)
    }

    /// Returns the title as two parts, between which the mark of the order is shown.
    const fn title(self, tab: Tab) -> (&'static str, &'static str) {
        match self {
            Self::Protocol => ("PROTO", ""),
            Self::Source => ("SOURCE", ""),
            Self::Destination => ("DESTINATION", ""),
            Self::Name => ("SERVER NAME", ""),
            Self::Total if matches!(tab, Tab::Hosts) => ("HOST", ""),
            Self::Total => ("PROTOCOL", ""),
            Self::State => ("STATE", ""),
            Self::Rate => ("BIT/S", ""),
            Self::Out => ("OUT", "bps"),
            Self::In => ("IN", "bps"),
            Self::OutPackets => ("OUT", "pps"),
            Self::InPackets => ("IN", "pps"),
            Self::Rtt => ("RTT", ""),
            Self::Age => ("AGE", ""),
            Self::Octets => ("OCTETS", ""),
            Self::Packets => ("PACKETS", ""),
        }
    }
}

/// Returns the columns by which rows are sorted.
const fn sorted_columns(order: Order) -> &'static [Column] {
    match order {
        Order::Rate => &[Column::Out, Column::In],
        Order::Out => &[Column::Out],
        Order::In => &[Column::In],
        Order::Octets => &[Column::Octets],
        Order::Packets => &[Column::Packets],
        Order::Rtt => &[Column::Rtt],
        Order::Age => &[Column::Age],
    }
}

/// A column with its width.
type Placed = (Column, usize);

/// Chooses the columns for a width, each with a column before it for spacing or the mark of a row. `demand` returns the width that the longest text of a
/// column needs.
fn place((tab, order): (Tab, Order), available: usize, demand: impl Fn(Column) -> usize) -> Vec<Placed> {
    let (mut chosen, optional): (Vec<_>, &[&[Column]]) = match tab {
        Tab::Flows => (vec![Column::Source, Column::Destination], &Column::OF_FLOWS),
        Tab::Hosts | Tab::Protocols => (vec![Column::Total], &Column::OF_TOTALS),
    };
    let used = |columns: &[Column]| columns.iter().map(|column| column.width() + 1).sum::<usize>();
    let sorted = sorted_columns(order);
    // The columns of the order are shown in any case.
    let essential: &[Column] = match order {
        Order::Rate if used(&[&chosen, sorted].concat()) > available => &[Column::Rate],
        _ => sorted,
    };
    chosen.extend(essential);
    for columns in optional {
        let new: Vec<_> = columns.iter().copied().filter(|column| !chosen.contains(column)).collect();
        let is_redundant = chosen.contains(&Column::Rate) && columns.contains(&Column::Out);
        if !is_redundant && used(&[&chosen[..], &new].concat()) <= available {
            chosen.extend(new);
        }
    }
    chosen.sort();
    let mut placed: Vec<Placed> = chosen
        .into_iter()
        .map(|column| {
            let wanted = demand(column).max(width(column.title(tab).0));
            (column, if column.is_flexible() { wanted.min(column.width_min()) } else { column.width() })
        })
        .collect();
    let sum: usize = placed.iter().map(|(_, width)| width + 1).sum();
    // Columns with text share the rest in proportion, as long as their texts need it; names have the first share.
    for _ in sum..available {
        let short =
            placed.iter_mut().filter(|(column, width)| column.is_flexible() && *width < demand(*column));
        if let Some((_, width)) =
            short.min_by_key(|(column, width)| ((*width * 16) / column.width(), Reverse(*column)))
        {
            *width += 1;
        } else if let Some((_, width)) = placed.iter_mut().rfind(|(column, _)| column.is_flexible()) {
            // Numbers are at the right end.
            *width += 1;
        }
    }
    placed
}

/// Formats an end of a flow.
pub(super) fn endpoint(key: &FlowKey, side: Side) -> String {
    match (key.address(side), key.port(side)) {
        (IpAddr::V6(address), Some(port)) => format!("[{address}]:{port}"),
        (address, Some(port)) => format!("{address}:{port}"),
        (address, None) => address.to_string(),
    }
}

/// Returns the style of a connection state: refused and aborted connections, and those without a reply, are marked.
pub(super) fn state_style(state: ConnState) -> Style {
    match state {
        ConnState::S0 | ConnState::Sh | ConnState::Shr => Style::new().fg(Color::Yellow),
        ConnState::Rej | ConnState::Rsto | ConnState::Rstr | ConnState::Rstos0 | ConnState::Rstrh => {
            Style::new().fg(Color::Red)
        }
        _ => Style::new(),
    }
}

/// Draws the table.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let height = usize::from(area.height).saturating_sub(1);
    let first = model.marked_index().map_or(0, |index| (index + 1).saturating_sub(height));
    let visible = first..first.saturating_add(height);
    let (placed, rows) = match model.tab {
        Tab::Flows => flow_rows(model, usize::from(area.width), visible),
        Tab::Hosts | Tab::Protocols => total_rows(model, usize::from(area.width), visible),
    };
    let width = |(_, width): &Placed| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX));
    let table = Table::new(rows, placed.iter().map(width)).header(header(model, &placed)).column_spacing(1);
    // The first column has the mark of a row.
    let [mark, columns] = Layout::horizontal([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    frame.render_widget(table, columns);
    if let Some(index) = model.marked_index() {
        let row = u16::try_from(index.saturating_sub(first)).unwrap_or(u16::MAX);
        if let Some(cell) =
            frame.buffer_mut().cell_mut((mark.x, mark.y.saturating_add(1).saturating_add(row)))
        {
            cell.set_char('>');
        }
    }
}

/// Returns the titles of columns, with a mark on those by which the rows are sorted.
fn header(model: &Model, placed: &[Placed]) -> Row<'static> {
    let sorted = sorted_columns(model.order.or_default_in(model.tab));
    let arrow = if model.is_reversed { '▲' } else { '▼' };
    let titles = placed.iter().map(|(column, width)| {
        let (name, unit) = column.title(model.tab);
        let is_sorted = sorted.contains(column) || *column == Column::Rate;
        let text = match (is_sorted, unit) {
            (false, "") => name.to_owned(),
            (false, unit) => format!("{name} {unit}"),
            (true, unit) => format!("{name}{arrow}{unit}"),
        };
        let style = if is_sorted { BOLD.add_modifier(Modifier::REVERSED) } else { BOLD };
        cell(&text, *column, *width).style(style)
    });
    Row::new(titles)
}

/// Returns the columns and the visible rows of the table of flows.
fn flow_rows(model: &Model, available: usize, visible: Range<usize>) -> (Vec<Placed>, Vec<Row<'static>>) {
    let order = model.order.or_default_in(model.tab);
    let texts: Vec<_> = model.flows.iter().map(Texts::of_flow).collect();
    let place = |has_ports: bool| {
        let demand = |column| texts.iter().map(|row| row.demand(column, has_ports)).max().unwrap_or(0);
        place((model.tab, order), available, demand)
    };
    let with_ports = place(true);
    // The port of a source is of less importance than the other texts.
    let has_ports = with_ports.iter().any(|(column, width)| {
        let demands = || texts.iter().map(|row| row.demand(*column, true));
        *column == Column::Source && (*width >= IPV4_WIDTH || demands().all(|demand| demand <= *width))
    });
    let placed = if has_ports { with_ports } else { place(false) };
    let rows = model.flows.iter().zip(&texts).enumerate().skip(visible.start).take(visible.len());
    let rows = rows.map(|(index, (flow, texts))| {
        let state = flow.record.conn_state;
        let cells = placed.iter().map(|(column, column_width)| {
            let text = match column {
                Column::Source if has_ports && width(&texts.source) <= *column_width => texts.source.clone(),
                Column::Source => texts.source_address.clone(),
                Column::Destination => texts.destination.clone(),
                Column::Name => texts.name.clone(),
                Column::Protocol => texts.protocol.clone(),
                Column::State => state.name().to_owned(),
                Column::Rtt => flow.record.handshake_rtt.map_or_else(String::new, duration),
                Column::Age => age(flow.age),
                _ => number(*column, &flow.activity, model.report.interval),
            };
            let cell = cell(&text, *column, *column_width);
            if *column == Column::State { cell.style(state_style(state)) } else { cell }
        });
        marked(cells, model.marked_index() == Some(index))
    });
    let rows = rows.collect();
    (placed, rows)
}

/// Returns the columns and the visible rows of the table of hosts or protocols.
fn total_rows(model: &Model, available: usize, visible: Range<usize>) -> (Vec<Placed>, Vec<Row<'static>>) {
    let order = model.order.or_default_in(model.tab);
    let demand = |_| model.totals.iter().map(|row| width(&row.name)).max().unwrap_or(0);
    let placed = place((model.tab, order), available, demand);
    let rows = model.totals.iter().enumerate().skip(visible.start).take(visible.len());
    let rows = rows.map(|(index, TotalRow { name, activity })| {
        let cells = placed.iter().map(|(column, width)| {
            let text = match column {
                Column::Total => name.clone(),
                _ => number(*column, activity, model.report.interval),
            };
            cell(&text, *column, *width)
        });
        marked(cells, model.marked_index() == Some(index))
    });
    let rows = rows.collect();
    (placed, rows)
}

/// Texts of a flow whose widths determine those of the columns.
struct Texts {
    protocol: String,
    source: String,
    source_address: String,
    destination: String,
    name: String,
}

impl Texts {
    fn of_flow(row: &FlowRow) -> Self {
        let (key, initiator) = (&row.record.key, row.record.initiator);
        Self {
            protocol: row.protocol(),
            source: endpoint(key, initiator),
            source_address: key.address(initiator).to_string(),
            destination: endpoint(key, initiator.other()),
            name: row.name.as_deref().map(printable).unwrap_or_default(),
        }
    }

    /// Returns the width of a text. `has_ports` states that sources have ports.
    fn demand(&self, column: Column, has_ports: bool) -> usize {
        match column {
            Column::Protocol => width(&self.protocol),
            Column::Source if has_ports => width(&self.source),
            Column::Source => width(&self.source_address),
            Column::Destination => width(&self.destination),
            Column::Name => width(&self.name),
            _ => 0,
        }
    }
}

/// Formats a number of a column.
fn number(column: Column, activity: &Activity, interval: Duration) -> String {
    let Activity { total, recent } = activity;
    match column {
        Column::Rate => short_rate(recent.both().bits_per_second(interval)),
        Column::Out => short_rate(recent.sent.bits_per_second(interval)),
        Column::In => short_rate(recent.received.bits_per_second(interval)),
        Column::OutPackets => short_rate(recent.sent.packets_per_second(interval)),
        Column::InPackets => short_rate(recent.received.packets_per_second(interval)),
        Column::Octets => octets(total.both().octet_count),
        Column::Packets => count(total.both().packet_count, 100_000),
        _ => String::new(),
    }
}

fn cell(text: &str, column: Column, width: usize) -> Cell<'static> {
    let text = match column {
        // The beginning of a name from a fixed set identifies it.
        Column::Protocol => split(text, width, 1).pop().unwrap_or_default(),
        _ => fit(text, width).into_owned(),
    };
    let line = Line::raw(text);
    Cell::new(if column.is_right_aligned() { line.right_aligned() } else { line })
}

/// Returns a row, highlighted if it is marked.
fn marked<'c>(cells: impl Iterator<Item = Cell<'c>>, is_marked: bool) -> Row<'c> {
    let row = Row::new(cells);
    if is_marked { row.style(Style::new().add_modifier(Modifier::REVERSED)) } else { row }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(tab: Tab, order: Order, available: usize) -> Vec<Column> {
        place((tab, order), available, |_| 0).into_iter().map(|(column, _)| column).collect()
    }

    #[test]
    fn columns_fill_the_width_and_never_exceed_it() {
        let longest = |column: Column| if column.is_flexible() { 47 } else { 0 };
        for available in 36..300 {
            for (tab, order) in
                [(Tab::Flows, Order::Rate), (Tab::Flows, Order::Rtt), (Tab::Hosts, Order::Packets)]
            {
                for placed in [place((tab, order), available, longest), place((tab, order), available, |_| 0)]
                {
                    let sum: usize = placed.iter().map(|(_, width)| width + 1).sum();
                    assert_eq!(sum, available, "{placed:?}");
                    assert!(sorted_columns(order).iter().all(|sorted| {
                        placed.iter().any(|(column, _)| column == sorted || *column == Column::Rate)
                    }));
                }
            }
        }
    }

    #[test]
    fn wider_terminals_have_more_columns() {
        use Column::{Age, Destination, In, Name, Octets, Out, Protocol, Rate, Rtt, Source, State};
        assert_eq!(columns(Tab::Flows, Order::Rate, 40), [Source, Destination, Rate]);
        assert_eq!(
            columns(Tab::Flows, Order::Rate, 80),
            [Protocol, Source, Destination, Name, State, Out, In]
        );
        let at_120 = columns(Tab::Flows, Order::Rate, 120);
        assert!([Octets, Age, Rtt].iter().all(|column| at_120.contains(column)), "{at_120:?}");
        assert_eq!(columns(Tab::Flows, Order::Rate, 160).len(), 13, "all but those of other tables");
        assert_eq!(columns(Tab::Flows, Order::Rtt, 40), [Source, Destination, Rtt]);
    }
}
