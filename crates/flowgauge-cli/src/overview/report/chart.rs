//! Charts as SVG, with classes instead of colors, so that the style of the page decides.

use std::fmt::{self, Display, Write as _};

use flowgauge::Timestamp;
use flowgauge::export::human;

use super::histogram::BINS_PER_DECADE;
use crate::escape;
use crate::human::{rate as rate_of, time_of_day};

/// Number of classes of colors.
pub(super) const COLOR_COUNT: usize = 9;

/// A text with everything escaped that HTML or a terminal would interpret.
pub(super) struct Escaped<T>(pub(super) T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in escape::text(&self.0.to_string()).chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Shortens a text to a number of letters.
pub(super) fn shortened(text: &str, letter_max: usize) -> String {
    match text.char_indices().nth(letter_max) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "\u{2026}",
        None => text.to_owned(),
    }
}

/// An SVG image.
struct Svg(String);

impl Svg {
    fn new(title: &str, width: f64, height: f64) -> Self {
        // Areas take the width of the page.
        let class = if width > 900.0 { "full" } else { "" };
        Self(format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" aria-label=\"{}\">",
            Escaped(title)
        ))
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = write!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            Escaped(text)
        );
    }

    /// Adds a rectangle that shows a text under the pointer.
    fn bar(&mut self, (x, y, width, height): (f64, f64, f64, f64), style: &str, text: &str) {
        let _ = write!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}><title>{}</title></rect>",
            Escaped(text)
        );
    }

    fn line(&mut self, (x1, y1, x2, y2): (f64, f64, f64, f64)) {
        let _ = write!(
            self.0,
            "<line class=\"axis\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }
}

/// Rounds a value up to a short multiple of a power of ten.
fn rounded_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

/// Formats a time on an axis of a length in nanoseconds: with its date if that is more than a day.
fn time_text(time: Timestamp, len_ns: u64) -> String {
    const DAY_NS: u64 = 86_400_000_000_000;
    if len_ns <= DAY_NS {
        return time_of_day(time);
    }
    let text = time.rfc3339().to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// Formats a rate in bits per second.
fn rate_text(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.2} bit/s") } else { format!("{}bit/s", rate_of(rate)) }
}

/// A kind of traffic and its bits per second in each interval.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) rates: Vec<f64>,
}

/// Returns areas on top of each other: traffic over time by kind. Times are in nanoseconds.
pub(super) fn areas(title: &str, series: &[Series], start_ns: u64, interval_ns: u64) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 260.0;
    const LEFT: f64 = 80.0;
    const BOTTOM: f64 = 24.0;
    let count = series.iter().map(|series| series.rates.len()).max().unwrap_or(0);
    let total = |index: usize| series.iter().filter_map(|series| series.rates.get(index)).sum::<f64>();
    let greatest = rounded_up((0..count).map(total).fold(0.0, f64::max));
    let x = |index: usize| LEFT + (WIDTH - LEFT) * index as f64 / count.max(1) as f64;
    let y = |rate: f64| (HEIGHT - BOTTOM) - (HEIGHT - BOTTOM - 12.0) * rate / greatest;
    let mut svg = Svg::new(title, WIDTH, HEIGHT);
    for part in 0..=2 {
        let rate = greatest * f64::from(part) / 2.0;
        svg.line((LEFT, y(rate), WIDTH, y(rate)));
        svg.text((LEFT - 6.0, y(rate) + 4.0), "end", &rate_text(rate));
    }
    let mut below = vec![0.0; count];
    for (number, series) in series.iter().enumerate() {
        let mut upper = String::new();
        let mut lower = Vec::new();
        for (index, base) in below.iter_mut().enumerate() {
            let rate = series.rates.get(index).copied().unwrap_or(0.0);
            for edge in [index, index + 1] {
                let _ = write!(upper, "{:.1},{:.1} ", x(edge), y(*base + rate));
                lower.push(format!("{:.1},{:.1}", x(edge), y(*base)));
            }
            *base += rate;
        }
        lower.reverse();
        let _ = write!(
            svg.0,
            "<polygon class=\"c{}\" points=\"{upper}{}\"><title>{}</title></polygon>",
            number % COLOR_COUNT,
            lower.join(" "),
            Escaped(&series.name)
        );
    }
    for part in 0..=4_u64 {
        let at = LEFT + (WIDTH - LEFT) * part as f64 / 4.0;
        let since = u128::from(interval_ns) * count as u128 * u128::from(part) / 4;
        let time = u64::try_from(u128::from(start_ns) + since).unwrap_or(u64::MAX);
        let anchor = match part {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        svg.text(
            (at, HEIGHT - 6.0),
            anchor,
            &time_text(Timestamp::from_nanos(time), interval_ns * count as u64),
        );
    }
    svg.end()
}

/// Returns the names of series with their colors.
pub(super) fn legend(series: &[Series]) -> String {
    let mut html = "<ul class=\"legend\">".to_owned();
    for (number, series) in series.iter().enumerate() {
        let color = number % COLOR_COUNT;
        let _ = write!(html, "<li><i class=\"c{color}\"></i>{}</li>", Escaped(&series.name));
    }
    html + "</ul>"
}

/// Returns horizontal bars with their names and numbers.
pub(super) fn bars(title: &str, rows: &[(String, u64)]) -> String {
    const WIDTH: f64 = 560.0;
    const STEP: f64 = 20.0;
    const LEFT: f64 = 240.0;
    const RIGHT: f64 = 64.0;
    let greatest = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1) as f64;
    let mut svg = Svg::new(title, WIDTH, STEP * rows.len() as f64 + 4.0);
    for (index, (name, count)) in rows.iter().enumerate() {
        let y = STEP * index as f64 + 2.0;
        let width = ((WIDTH - LEFT - RIGHT) * *count as f64 / greatest).max(1.0);
        svg.text((LEFT - 6.0, y + 13.0), "end", &shortened(&escape::text(name), 32));
        svg.bar((LEFT, y, width, STEP - 4.0), "class=\"c0\"", &format!("{name}: {count}"));
        svg.text((LEFT + width + 6.0, y + 13.0), "start", &human::count(*count, 100_000));
    }
    svg.end()
}

/// Returns vertical bars over a logarithmic axis that begins at a power of ten. `unit` formats a value of the axis.
pub(super) fn histogram(title: &str, (decade, bins): (i32, &[u64]), unit: impl Fn(f64) -> String) -> String {
    const WIDTH: f64 = 460.0;
    const HEIGHT: f64 = 200.0;
    const LEFT: f64 = 48.0;
    const RIGHT: f64 = 24.0;
    const BOTTOM: f64 = 24.0;
    let greatest = rounded_up(bins.iter().copied().max().unwrap_or(0) as f64);
    let step = (WIDTH - LEFT - RIGHT) / bins.len().max(1) as f64;
    let y = |count: f64| (HEIGHT - BOTTOM) - (HEIGHT - BOTTOM - 12.0) * count / greatest;
    let edge = |index: usize| 10_f64.powf(f64::from(decade) + index as f64 / f64::from(BINS_PER_DECADE));
    let mut svg = Svg::new(title, WIDTH, HEIGHT);
    for part in 0..=2 {
        let count = greatest * f64::from(part) / 2.0;
        svg.line((LEFT, y(count), WIDTH, y(count)));
        if count.fract() == 0.0 {
            svg.text((LEFT - 6.0, y(count) + 4.0), "end", &human::count(count as u64, 10_000));
        }
    }
    // Labels of many decades would overlap.
    let decades = bins.len() / BINS_PER_DECADE as usize;
    let every = decades.div_ceil(8).max(1);
    for index in 0..=bins.len() {
        let x = LEFT + step * index as f64;
        if index % (BINS_PER_DECADE as usize * every) == 0 {
            svg.text((x, HEIGHT - 6.0), "middle", &unit(edge(index)));
        }
        if let Some(count) = bins.get(index).filter(|count| **count > 0) {
            let top = y(*count as f64).min(HEIGHT - BOTTOM - 1.0);
            let text = format!("{} to {}: {count}", unit(edge(index)), unit(edge(index + 1)));
            svg.bar((x + 0.5, top, step - 1.0, HEIGHT - BOTTOM - top), "class=\"c0\"", &text);
        }
    }
    svg.end()
}

/// Returns a square of cells: the octets that each host sent to each other one, on a logarithmic scale.
pub(super) fn matrix(title: &str, hosts: &[String], octets: &[Vec<u64>]) -> String {
    const CELL: f64 = 26.0;
    const LEFT: f64 = 250.0;
    const TOP: f64 = 24.0;
    let greatest = octets.iter().flatten().copied().max().unwrap_or(0).max(2) as f64;
    let side = CELL * hosts.len() as f64;
    let mut svg = Svg::new(title, LEFT + side + 8.0, TOP + side + 8.0);
    for (row, host) in hosts.iter().enumerate() {
        let y = TOP + CELL * row as f64;
        let name = format!("{}  #{}", shortened(host, 39), row + 1);
        svg.text((LEFT - 6.0, y + 17.0), "end", &name);
        let middle = LEFT + CELL * (row as f64 + 0.5);
        svg.text((middle, TOP - 6.0), "middle", &format!("#{}", row + 1));
        for (column, other) in hosts.iter().enumerate() {
            let value = octets.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0);
            let place = (LEFT + CELL * column as f64 + 1.0, y + 1.0, CELL - 2.0, CELL - 2.0);
            let text = format!("{host} to {other}: {} octets", human::octets(value));
            let style = match value {
                0 => "class=\"empty\"".to_owned(),
                _ => {
                    let part = (value as f64).ln_1p() / greatest.ln_1p();
                    format!("class=\"c0\" fill-opacity=\"{:.2}\"", 0.15 + 0.85 * part)
                }
            };
            svg.bar(place, &style, &text);
        }
    }
    svg.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markup_or_changes_the_direction_of_text() {
        let name = "<script>alert(1)</script>\"'&\u{202e}\u{1b}";
        let escaped = Escaped(name).to_string();
        assert_eq!(escaped, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\u202e\\u001b");
        let rows = [(name.to_owned(), 1)];
        let series = [Series { name: name.to_owned(), rates: vec![1.0] }];
        let hosts = [name.to_owned()];
        let charts = bars(name, &rows)
            + &areas(name, &series, 0, 1)
            + &legend(&series)
            + &histogram(name, (0, &[1, 2, 3, 4]), |value| format!("<{value}>"))
            + &matrix(name, &hosts, &[vec![1]]);
        assert!(!charts.contains("<script") && !charts.contains(['\u{202e}', '\u{1b}']), "{charts}");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [(0.0, 1.0), (1.0, 1.0), (1.1, 1.5), (3.1, 4.0), (81.0, 100.0), (0.031, 0.04)] {
            assert!((rounded_up(value) / end - 1.0).abs() < 1e-9, "{value}");
        }
    }
}
