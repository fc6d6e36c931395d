//! The title, rates, drops, and the titles of the tables.

use flowgauge::export::human::{count, octets};
use flowgauge::source::SourceStats;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::model::{Model, drop_count};
use super::super::order::Tab;
use super::super::traffic::Volume;
use super::style::{ALARM, BOLD};
use super::text::{age, fit, printable, split, width};

use crate::human::{plural, rate};

/// What is shown besides the model.
pub(in super::super) struct Surroundings<'a> {
    /// Name of the origin of the frames.
    pub(in super::super) origin: &'a str,
    /// The last problem of the source; empty if there was none.
    pub(in super::super) message: &'a str,
}

/// Height of the rates and drops.
pub(super) const HEIGHT: u16 = 3;

/// Width from which the rates have totals beside them.
const TOTALS_WIDTH_MIN: usize = 72;

/// Width of the rates if there are totals beside them.
const RATES_WIDTH: usize = 38;

/// Share of packets from which drops are highlighted.
const DROP_SHARE_MAX: f64 = 0.001;

/// Draws the title, with the state of the view at its right end.
pub(super) fn draw_title(frame: &mut Frame<'_>, model: &Model, surroundings: &Surroundings<'_>, area: Rect) {
    let state = format!("{}{}", if model.is_paused { "PAUSED  " } else { "" }, age(model.elapsed));
    let title = format!("flowgauge live: {}", printable(surroundings.origin));
    let columns = usize::from(area.width);
    let title = fit(&title, columns.saturating_sub(state.len() + 2)).into_owned();
    let gap = " ".repeat(columns.saturating_sub(width(&title) + state.len()));
    let style = if model.is_paused { BOLD.add_modifier(Modifier::REVERSED) } else { BOLD };
    let line = Line::from(vec![Span::styled(title, BOLD), Span::raw(gap), Span::styled(state, style)]);
    frame.render_widget(Paragraph::new(line), area);
}

/// Draws the rates of both directions, totals, and drops.
pub(super) fn draw_rates(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let has_totals = usize::from(area.width) >= TOTALS_WIDTH_MIN;
    let recent = model.sum.activity.recent;
    let report = &model.report;
    let flows_per_second = model.samples.back().map_or(0.0, |sample| sample.flows_per_second);
    let totals = [
        format!("{} open, {flows_per_second:.0} new/s", plural(report.flow_count as u64, "flow")),
        format!(
            "{} packets, {} octets, {} memory",
            count(report.stats.frame_count, 1_000_000),
            octets(report.stats.octet_count),
            octets(report.budget_bytes),
        ),
    ];
    let line = |name: &'static str, volume: Volume, color: Color, totals: &String| {
        let bits = rate(volume.bits_per_second(report.interval));
        let packets = volume.packets_per_second(report.interval).round() as u64;
        let text = format!(" {bits}bit/s  {} packets/s", count(packets, 100_000));
        let mut spans = vec![Span::styled(name, BOLD.fg(color)), Span::raw(text)];
        if has_totals {
            let used: usize = spans.iter().map(Span::width).sum();
            spans.push(Span::raw(format!("{}{totals}", " ".repeat(RATES_WIDTH.saturating_sub(used)))));
        }
        Line::from(spans)
    };
    let [flows, packets] = &totals;
    let lines = vec![
        line("Out  ", recent.sent, Color::Cyan, flows),
        line("In   ", recent.received, Color::Green, packets),
        drops(model, usize::from(area.width)),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Formats a share, which is not shown as zero unless it is.
fn percent(part: u64, whole: u64) -> String {
    match 100.0 * part as f64 / whole.max(1) as f64 {
        0.0 => "0 %".to_owned(),
        share if share < 0.1 => "<0.1 %".to_owned(),
        share => format!("{share:.1} %"),
    }
}

/// Returns the line of drops: their share since the start and in the last interval, marked if one of them is great.
fn drops(model: &Model, columns: usize) -> Line<'static> {
    let (source, stats) = (&model.report.source, &model.report.stats);
    let (dropped, received) = (drop_count(source), stats.frame_count);
    let all = dropped.saturating_add(received);
    let latest = model.samples.back().copied().unwrap_or_default();
    let latest_all = latest.packet_count.saturating_add(latest.drop_count);
    let name = Span::styled("Drops", BOLD);
    if dropped == 0 {
        return Line::from(vec![name, Span::raw(" none")]);
    }
    let is_great = |part: u64, whole: u64| part as f64 > DROP_SHARE_MAX * whole as f64;
    let is_alarming = is_great(dropped, all) || is_great(latest.drop_count, latest_all);
    let mark = if is_alarming { " !!" } else { "" };
    let share = format!(" {}{mark}", percent(dropped, all));
    let now = format!("last second {}", percent(latest.drop_count, latest_all));
    let SourceStats { kernel_drop_count, interface_drop_count, .. } = source;
    let short = format!("{share}, {now}");
    let medium = format!("{share}  {dropped} of {all} packets, {now}");
    let long = format!("{medium}  (kernel {kernel_drop_count}, interface {interface_drop_count})");
    let fits = |text: &String| name.width() + width(text) <= columns;
    let text = [long, medium, short].into_iter().find(fits).unwrap_or(share);
    Line::from(vec![name, Span::styled(text, if is_alarming { ALARM } else { Style::new() })])
}

/// Draws the titles of the tables, the number of rows, and the condition.
pub(super) fn draw_tabs(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let mut spans = Vec::new();
    for tab in Tab::ALL {
        spans.push(if tab == model.tab {
            Span::styled(format!("[{}]", tab.title()), BOLD.add_modifier(Modifier::REVERSED))
        } else {
            Span::raw(format!(" {} ", tab.title()))
        });
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let text = match (&model.condition, model.tab) {
        (Some(condition), Tab::Flows) => {
            format!(
                "  {} of {} where {}",
                model.selected_count,
                model.report.flow_count,
                printable(&condition.text)
            )
        }
        (None, Tab::Flows) => format!("  {}", plural(model.selected_count as u64, "flow")),
        _ => String::new(),
    };
    let style = if model.condition.is_some() { BOLD.fg(Color::Yellow) } else { Style::new() };
    let text = split(&text, usize::from(area.width).saturating_sub(used), 1).pop().unwrap_or_default();
    spans.push(Span::styled(text, style));
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}
