//! The programs' speeds as bars, in SVG that reads on light and on dark pages.

use std::fmt::Write as _;

use crate::whole::Outcome;

const BAR_HEIGHT: usize = 18;

const LINE_HEIGHT: usize = 28;

const NAME_WIDTH: usize = 290;

const BARS_WIDTH: f64 = 400.0;

/// Million frames per second of each program, fastest first; ours in another color.
#[must_use]
pub fn bars(frame_count: u64, outcomes: &[Outcome], caption: &str) -> String {
    let mut bars: Vec<(&str, f64)> = outcomes
        .iter()
        .map(|outcome| (outcome.program.name.as_str(), frame_count as f64 / outcome.median() / 1e6))
        .collect();
    bars.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = bars.first().map_or(1.0, |(_, speed)| *speed);
    let height = 48 + LINE_HEIGHT * bars.len();
    let width = NAME_WIDTH + BARS_WIDTH as usize + 80;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"Million frames per second\">\n\
         <style>text {{ font: 13px sans-serif; fill: #777 }} .own {{ fill: #d9730d }} .other {{ fill: #6b8fb3 }}</style>\n\
         <text x=\"8\" y=\"20\">{}</text>\n",
        escaped(caption)
    );
    for (position, (name, speed)) in bars.iter().enumerate() {
        let y = 36 + LINE_HEIGHT * position;
        let (text_y, length) = (y + BAR_HEIGHT - 5, (speed / most * BARS_WIDTH).max(1.0));
        let class = if name.starts_with("flowgauge") { "own" } else { "other" };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\">{}</text>\n\
             <rect class=\"{class}\" x=\"{NAME_WIDTH}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\"/>\n\
             <text x=\"{:.1}\" y=\"{text_y}\">{speed:.2}</text>",
            NAME_WIDTH - 8,
            escaped(name),
            NAME_WIDTH as f64 + length + 6.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
