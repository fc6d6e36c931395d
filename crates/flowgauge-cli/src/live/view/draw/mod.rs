//! Drawing of the view.

mod chart;
mod flow;
mod header;
mod help;
mod style;
mod table;
mod text;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::controls::{Controls, Input, Mode};
use super::model::Model;
pub(super) use header::Surroundings;
use style::BOLD;
use text::{fit, printable, width};

/// Draws the view.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    model: &Model,
    controls: &Controls,
    surroundings: &Surroundings<'_>,
) {
    let has_problem = matches!(&controls.mode, Mode::Input(Input { problem: Some(_), .. }));
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(if has_problem { 2 } else { 1 }),
    ]);
    let [title, body, footer] = areas.areas(frame.area());
    header::draw_title(frame, model, surroundings, title);
    match (&controls.mode, &model.shown) {
        (Mode::Help, _) => help::draw(frame, body),
        (_, Some(shown)) => flow::draw(frame, (shown, model.report.interval), controls.scroll, body),
        (_, None) => draw_tables(frame, model, surroundings, body),
    }
    match &controls.mode {
        Mode::Input(input) => draw_input(frame, input, footer),
        Mode::Help => frame.render_widget(Paragraph::new("any key closes the help"), footer),
        Mode::Browse => draw_keys(frame, model, footer),
    }
}

/// Draws rates, drops, the chart of the traffic, and a table.
fn draw_tables(frame: &mut Frame<'_>, model: &Model, surroundings: &Surroundings<'_>, area: Rect) {
    let chart_height = match area.height {
        0..16 => 0,
        16..28 => 5,
        28..43 => 9,
        _ => 11,
    };
    let areas = Layout::vertical([
        Constraint::Length(header::HEIGHT),
        Constraint::Length(u16::from(!surroundings.message.is_empty())),
        Constraint::Length(chart_height),
        Constraint::Length(1),
        Constraint::Min(2),
    ]);
    let [rates, message, chart, tabs, table] = areas.areas(area);
    header::draw_rates(frame, model, rates);
    let problem = format!("! {}", printable(surroundings.message));
    frame.render_widget(Paragraph::new(problem).style(BOLD), message);
    chart::draw(frame, model, chart);
    header::draw_tabs(frame, model, tabs);
    table::draw(frame, model, table);
}

/// Draws the line in which a condition is entered, with the problem of the condition below it.
fn draw_input(frame: &mut Frame<'_>, input: &Input, area: Rect) {
    const PROMPT: &str = "where: ";
    let hint = "  Enter applies, Esc cancels";
    let columns = usize::from(area.width);
    let text = printable(&input.text);
    // The end of a long condition is visible, where it is edited.
    let available = columns.saturating_sub(PROMPT.len() + 1);
    let (hidden, _) = text
        .char_indices()
        .map(|(index, _)| text.split_at(index))
        .find(|(_, rest)| width(rest) <= available)
        .unwrap_or((&text, ""));
    let visible = text.get(hidden.len()..).unwrap_or_default();
    let mut line = vec![Span::styled(PROMPT, BOLD), Span::raw(visible), Span::raw("_")];
    if PROMPT.len() + width(visible) + 1 + hint.len() <= columns {
        line.push(Span::styled(hint, Style::new().add_modifier(Modifier::DIM)));
    }
    let mut lines = vec![Line::from(line)];
    if let Some(problem) = &input.problem {
        let before: String = input.text.chars().take(problem.column.saturating_sub(1)).collect();
        let indent = (PROMPT.len() + width(&printable(&before))).saturating_sub(width(hidden));
        let text = format!("^ column {}: {}", problem.column, problem.text);
        // A text that does not fit behind its mark begins before it.
        let indent = indent.min(columns.saturating_sub(width(&text)));
        let text = format!("{}{text}", " ".repeat(indent));
        lines.push(Line::styled(fit(&text, columns).into_owned(), BOLD.fg(Color::Red)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Draws the order of the rows and the keys, the most important ones if there is little space.
fn draw_keys(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let pause = if model.is_paused { "resume" } else { "pause" };
    // By importance, with their positions.
    let keys: &[(usize, &str, &str)] = if model.shown.is_some() {
        &[(9, "q", "quit"), (0, "Esc", "back"), (8, "?", "help"), (1, "↑↓", "scroll messages")]
    } else {
        &[
            (9, "q", "quit"),
            (8, "?", "help"),
            (7, "p", pause),
            (1, "s", "sort"),
            (4, "/", "where"),
            (5, "Enter", "open"),
            (3, "Tab", "table"),
            (2, "r", "reverse"),
            (6, "↑↓", "select"),
        ]
    };
    let mut available = usize::from(area.width);
    let mut spans = Vec::new();
    if model.shown.is_none() {
        let order = model.order.or_default_in(model.tab).name();
        let direction = if model.is_reversed { ", least first" } else { "" };
        let text = format!("sorted by {order}{direction}");
        available = available.saturating_sub(width(&text));
        spans.push(Span::styled(text, BOLD));
    }
    let mut shown: Vec<_> = keys
        .iter()
        .take_while(|(_, key, action)| {
            let len = width(key) + action.len() + 3;
            let fits = len <= available;
            available = available.saturating_sub(len);
            fits
        })
        .collect();
    shown.sort();
    for (_, key, action) in shown {
        let gap = if spans.is_empty() { "" } else { "  " };
        spans.extend([Span::raw(gap), Span::styled(*key, BOLD), Span::raw(format!(" {action}"))]);
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}
