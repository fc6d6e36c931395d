//! The chart of the traffic over time.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, RenderDirection, Sparkline};

use super::super::model::{Model, REFRESH_INTERVAL, Sample};
use super::style::ALARM;
use super::text::width;

/// Width of the scale: `500 Mbit/s` and the axis.
const SCALE_WIDTH: u16 = 11;

/// Number of intervals between two labels of time.
const LABEL_DISTANCE: usize = 30;

/// Draws a bar for each interval, the latest one at the right, with a scale of rates and one of time.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    if area.height < 2 || area.width <= SCALE_WIDTH {
        return;
    }
    let [chart, times] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(area);
    let [scale, bars] =
        Layout::horizontal([Constraint::Length(SCALE_WIDTH), Constraint::Min(1)]).areas(chart);
    let samples = || model.samples.iter().rev().take(usize::from(bars.width));
    let max = round_up(samples().map(|sample| sample.bits_per_second).fold(0.0, f64::max));
    let data: Vec<_> = samples().map(|sample| sample.bits_per_second as u64).collect();
    let sparkline = Sparkline::default().data(data).max(max as u64).direction(RenderDirection::RightToLeft);
    frame.render_widget(sparkline.style(Style::new().fg(Color::Cyan)), bars);
    for (column, _) in samples().enumerate().filter(|(_, sample)| sample.drop_count > 0) {
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        let x = bars.right().saturating_sub(1).saturating_sub(column);
        if let Some(cell) = frame.buffer_mut().cell_mut((x, bars.y)) {
            cell.set_char('!').set_style(ALARM);
        }
    }
    let middle = scale.height / 2;
    let labels = (0..scale.height).map(|row| {
        let label = match row {
            0 => bits(max),
            _ if row == middle && scale.height.is_multiple_of(2) => bits(max / 2.0),
            _ => return Line::raw("│").right_aligned(),
        };
        Line::raw(format!("{label}┤")).right_aligned()
    });
    frame.render_widget(Paragraph::new(labels.collect::<Vec<_>>()), scale);
    let ages = ages(samples());
    frame.render_widget(Paragraph::new(time_scale(usize::from(times.width), &ages)), times);
}

/// Returns the least rate of 1, 2 or 5 times a power of ten, of at least 1 kbit/s, that is not less than a rate.
fn round_up(rate: f64) -> f64 {
    let steps = [1.0, 2.0, 5.0];
    let powers = (3..15).map(|power| 10_f64.powi(power));
    powers
        .flat_map(|power| steps.map(|step| step * power))
        .find(|candidate| *candidate >= rate)
        .unwrap_or(rate)
}

/// Formats a rate of the scale.
fn bits(per_second: f64) -> String {
    let (factor, prefix) = match per_second {
        1e12.. => (1e12, "T"),
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e3.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    let value = per_second / factor;
    let decimals = usize::from(value.fract() != 0.0);
    format!("{value:.decimals$} {prefix}bit/s")
}

/// Returns the ages of the samples in seconds, the latest one first, at least one.
fn ages<'s>(samples: impl Iterator<Item = &'s Sample>) -> Vec<u64> {
    let mut age = Duration::ZERO;
    let ages = samples.map(|sample| {
        let begin = age;
        age += sample.interval;
        begin.as_secs_f64().round() as u64
    });
    let ages: Vec<_> = ages.collect();
    if ages.is_empty() { vec![0] } else { ages }
}

/// Returns the scale of time, with the bars of its columns at the right.
fn time_scale(columns: usize, ages: &[u64]) -> String {
    let Some(bar_count) = columns.checked_sub(usize::from(SCALE_WIDTH)) else { return String::new() };
    let mut line = "now".to_owned();
    for index in (LABEL_DISTANCE..bar_count).step_by(LABEL_DISTANCE) {
        // Intervals before the start would have had the usual length.
        let missing = (index + 1).saturating_sub(ages.len()) as u64;
        let age = ages.get(index.min(ages.len().saturating_sub(1))).copied().unwrap_or_default();
        let label = format!("{} s", age + missing * REFRESH_INTERVAL.as_secs());
        if index + width(&label) > bar_count {
            break;
        }
        // The label ends at its bar.
        let gap = "─".repeat(index.saturating_sub(width(&line)));
        line = format!("{label}{gap}{line}");
    }
    let gap = "─".repeat(bar_count.saturating_sub(width(&line)));
    format!("{:>width$}{gap}{line}", "0 └", width = usize::from(SCALE_WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_at_a_round_rate() {
        for (rate, end) in [
            (0.0, "1 kbit/s"),
            (1001.0, "2 kbit/s"),
            (2e4, "20 kbit/s"),
            (3.3e8, "500 Mbit/s"),
            (7e11, "1 Tbit/s"),
        ] {
            assert_eq!(bits(round_up(rate)), end);
        }
        assert_eq!((bits(2.5e6), bits(500.0)), ("2.5 Mbit/s".into(), "500 bit/s".into()));
    }

    #[test]
    fn times_are_those_of_the_bars() {
        let samples = |seconds: u64, count: usize| {
            vec![Sample { interval: Duration::from_secs(seconds), ..Sample::default() }; count]
        };
        let scale = |samples: &[Sample], columns| time_scale(columns, &ages(samples.iter()));
        // The last character of a label is above the bar.
        let line = scale(&samples(1, 100), 80);
        assert_eq!(line.chars().count(), 80);
        assert_eq!(line.chars().skip(80 - 34).take(4).collect::<String>(), "30 s");
        assert!(line.ends_with("─now") && line.contains("─60 s─") && line.starts_with("        0 └"));
        // Each interval had two seconds, or there were none yet.
        assert!(scale(&samples(2, 100), 80).contains("─60 s─"));
        assert!(scale(&samples(2, 100), 80).contains("─120 s─"));
        assert!(scale(&[], 80).contains("─30 s─"), "{}", scale(&[], 80));
        assert_eq!(scale(&[], 5), "");
    }
}
