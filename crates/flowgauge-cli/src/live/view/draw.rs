//! Drawing of the view.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as TableRow, Sparkline, Table, Tabs};

use super::model::{Model, Tab};
use crate::escape;
use crate::human::{plural, rate};
use flowgauge::export::human::{count, octets};

/// Text below the table.
pub(super) enum Footer<'a> {
    Keys,
    /// A filter expression that is being entered, and its error.
    Input(&'a str, Option<&'a str>),
}

/// Height of the rates with their border.
const RATES_HEIGHT: u16 = 6;

/// Draws the view. `origin` is the name of the origin of the frames, `message` the last problem.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, origin: &str, message: &str, footer: &Footer<'_>) {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(RATES_HEIGHT),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [title, rates, tabs, table, bottom] = areas.areas(frame.area());
    draw_title(frame, model, origin, title);
    draw_rates(frame, model, message, rates);
    let titles = Tab::ALL.map(Tab::title);
    let selected = Tab::ALL.iter().position(|tab| *tab == model.tab).unwrap_or_default();
    frame.render_widget(Tabs::new(titles).select(selected), tabs);
    draw_table(frame, model, table);
    let line = match footer {
        Footer::Keys => {
            let pause = if model.is_paused { "continue" } else { "pause" };
            Line::raw(format!(
                "q quit  Tab next table  s sort by {}  p {pause}  / filter",
                model.order.next().name()
            ))
        }
        Footer::Input(text, None) => Line::raw(format!("filter: {text}_   (Enter applies, Esc cancels)")),
        Footer::Input(text, Some(error)) => Line::raw(format!("filter: {text}_   {error}")),
    };
    frame.render_widget(Paragraph::new(line), bottom);
}

fn draw_title(frame: &mut Frame<'_>, model: &Model, origin: &str, area: Rect) {
    let state = if model.is_paused { "  PAUSED" } else { "" };
    let filter = if model.filter.is_some() { "  FILTERED" } else { "" };
    let text = format!("flowgauge live: {}{state}{filter}", escape::text(origin));
    frame.render_widget(Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD)), area);
}

fn draw_rates(frame: &mut Frame<'_>, model: &Model, message: &str, area: Rect) {
    let latest = model.rates.back().copied().unwrap_or_default();
    let block = Block::new().borders(Borders::TOP).title(format!(
        " {}bit/s  {}packets/s  {}flows/s ",
        rate(latest.bits_per_second),
        rate(latest.packets_per_second),
        rate(latest.flows_per_second),
    ));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [chart, totals, problems] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(1), Constraint::Length(1)]).areas(inner);
    let shown = model.rates.len().saturating_sub(usize::from(chart.width));
    let bits: Vec<_> = model.rates.iter().skip(shown).map(|rates| rates.bits_per_second as u64).collect();
    frame.render_widget(Sparkline::default().data(bits), chart);
    let totals_text = format!(
        "{} open, {} packets, {} octets, {} of memory",
        plural(model.flow_count as u64, "flow"),
        count(model.stats.frame_count, 100_000),
        octets(model.stats.octet_count),
        octets(model.budget_bytes),
    );
    frame.render_widget(Paragraph::new(totals_text), totals);
    let source = &model.source;
    let drops = format!(
        "dropped by the kernel {}, by the interface {}",
        source.kernel_drop_count, source.interface_drop_count
    );
    let text = if message.is_empty() { drops } else { format!("{drops}; {}", escape::text(message)) };
    let has_drops = source.kernel_drop_count + source.interface_drop_count > 0 || !message.is_empty();
    let style = if has_drops { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    frame.render_widget(Paragraph::new(text).style(style), problems);
}

fn draw_table(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let seconds = model.interval.as_secs_f64().max(1e-3);
    let numbers = |row: &super::model::Row| {
        let bits = row.traffic.new_octet_count as f64 * 8.0 / seconds;
        [
            format!("{}bit/s", rate(bits)),
            octets(row.traffic.octet_count),
            count(row.traffic.packet_count, 100_000),
        ]
        .map(|text| Cell::new(Line::raw(text).right_aligned()))
    };
    let number_widths = [Constraint::Length(14), Constraint::Length(8), Constraint::Length(8)];
    let titles = ["RATE", "OCTETS", "PACKETS"].map(|title| Cell::new(Line::raw(title).right_aligned()));
    let (header, widths): (Vec<Cell<'_>>, Vec<Constraint>) = match model.tab {
        Tab::Flows => (
            ["PROTO", "SOURCE", "DESTINATION"].map(Cell::from).into_iter().chain(titles).collect(),
            [Constraint::Length(8), Constraint::Fill(1), Constraint::Fill(1)]
                .into_iter()
                .chain(number_widths)
                .collect(),
        ),
        Tab::Hosts | Tab::Protocols => (
            [Cell::from(if model.tab == Tab::Hosts { "HOST" } else { "PROTOCOL" })]
                .into_iter()
                .chain(titles)
                .collect(),
            [Constraint::Fill(1)].into_iter().chain(number_widths).collect(),
        ),
    };
    let rows = model.rows.iter().take(usize::from(area.height)).map(|row| {
        let texts: Vec<_> = match model.tab {
            Tab::Flows => vec![row.protocol.clone(), row.name.clone(), row.peer.clone()],
            Tab::Hosts | Tab::Protocols => vec![row.name.clone()],
        };
        let texts = texts.into_iter().map(|text| Cell::from(escape::text(&text).into_owned()));
        TableRow::new(texts.chain(numbers(row)))
    });
    let header = TableRow::new(header).style(Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;
    use std::rc::Rc;
    use std::time::Duration;

    use flowgauge::base::FrameBatch;
    use flowgauge::source::Next;
    use flowgauge::{FileSource, Filter, Flows, Pipeline, Source as _};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::{Order, Report};
    use super::super::sink::ViewSink;
    use super::*;

    /// Draws the traffic of a capture of this repository, and returns the lines.
    fn lines(size: (u16, u16), change: impl FnOnce(&mut Model), footer: &Footer<'_>) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/web.pcap");
        let mut source = FileSource::open(path).unwrap();
        let model = Rc::new(RefCell::new(Model::new(None)));
        change(&mut model.borrow_mut());
        let mut pipeline = Pipeline::builder().build(ViewSink::<Flows>::new(Rc::clone(&model))).unwrap();
        let mut batch = FrameBatch::new();
        while source.next_batch(&mut batch).unwrap() == Next::Frames {
            let _ = pipeline.batch(&batch);
        }
        let report = Report {
            interval: Duration::from_secs(1),
            source: source.stats(),
            stats: pipeline.stats(),
            flow_count: pipeline.flow_count(),
            budget_bytes: 1 << 20,
        };
        model.borrow_mut().refresh(report, pipeline.flows());
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| draw(frame, &model.borrow(), "eth0", "", footer)).unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |row: &[ratatui::buffer::Cell]| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        buffer.content.chunks(usize::from(size.0)).map(|row| line(row).trim_end().to_owned()).collect()
    }

    #[test]
    fn all_parts_fit_any_usual_terminal() {
        for size in [(80, 24), (132, 50), (40, 14)] {
            let lines = lines(size, |_| (), &Footer::Keys);
            assert_eq!(lines[0], "flowgauge live: eth0");
            assert!(lines[1].contains("bit/s") && lines[1].contains("packets/s"), "{}", lines[1]);
            assert!(lines[5].contains("1286 packets") || size.0 == 40, "{}", lines[5]);
            assert!(lines[7].contains("Flows"), "{}", lines[7]);
            assert!(lines[8].starts_with("PROTO"), "{}", lines[8]);
            assert!(lines[9].starts_with("tcp"), "{}", lines[9]);
            assert!(lines.last().unwrap().starts_with("q quit"), "{lines:?}");
        }
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let by_octets = lines((100, 24), |model| model.order = Order::Octets, &Footer::Keys);
        // The flow with the most octets of the capture.
        assert!(
            by_octets[9].contains("10.77.0.2:60260") && by_octets[9].contains("184.4k"),
            "{}",
            by_octets[9]
        );
        let filter: Filter = "tcp dst port 8080".parse().unwrap();
        let filtered = lines((100, 24), |model| model.filter = Some(filter), &Footer::Keys);
        assert!(filtered[0].ends_with("FILTERED"));
        assert!(filtered[9].contains(":8080") && filtered[10].contains(":8080"), "{filtered:?}");
        assert_eq!(filtered[11], "");
    }

    #[test]
    fn hosts_and_protocols_have_the_traffic_of_all_flows() {
        let hosts = lines((80, 24), |model| model.tab = Tab::Hosts, &Footer::Keys);
        assert!(hosts[8].starts_with("HOST") && hosts[9].starts_with("10.77.0."), "{hosts:?}");
        let protocols = lines((80, 24), |model| model.tab = Tab::Protocols, &Footer::Keys);
        assert!(protocols[9].starts_with("tcp"), "{protocols:?}");
        let counted: u64 = protocols[9..]
            .iter()
            .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
            .sum();
        // Two packets of the capture are ARP.
        assert_eq!(counted, 1284);
    }

    #[test]
    fn a_filter_is_edited_in_the_last_line() {
        let editing = lines((80, 24), |_| (), &Footer::Input("tcp po", None));
        assert!(editing[23].starts_with("filter: tcp po_"));
        let wrong = lines((80, 24), |_| (), &Footer::Input("tcp po", Some("column 5: error")));
        assert!(wrong[23].ends_with("column 5: error"));
        let paused = lines((80, 24), |model| model.is_paused = true, &Footer::Keys);
        assert!(paused[0].ends_with("PAUSED") && paused[23].contains("p continue"));
    }
}
