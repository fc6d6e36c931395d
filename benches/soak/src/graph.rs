//! Chart of resident memory and speed over time, in SVG that is legible on light and on dark pages.

use std::fmt::Write as _;

use crate::samples::{Sample, speeds};

const LEFT: f64 = 64.0;
const WIDTH: f64 = 640.0;
const PANEL_HEIGHT: f64 = 150.0;
const PANEL_TOPS: [f64; 2] = [34.0, 240.0];
const MIB: f64 = (1 << 20) as f64;

/// A class of the style sheet, and points in minutes and in the unit of the panel.
type Line = (&'static str, Vec<(f64, f64)>);

/// Draws two panels, one above the other, with a common time axis.
pub fn svg(samples: &[Sample]) -> String {
    let minutes = |sample: &Sample| sample.elapsed.as_secs_f64() / 60.0;
    let end = samples.last().map_or(1.0, minutes).max(1e-9);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} 436\" width=\"{w}\" height=\"436\" role=\"img\" \
         aria-label=\"Resident memory and packets per second over time\">\n\
         <style>text {{ font: 13px sans-serif; fill: #777 }} .axis {{ stroke: #999; stroke-width: 1 }} \
         .grid {{ stroke: #999; stroke-width: 0.3 }} polyline {{ fill: none; stroke-width: 1.6 }} \
         .resident {{ stroke: #d9730d }} .budget {{ stroke: #6b8fb3 }} .speed {{ stroke: #4f9d69 }}</style>\n",
        w = LEFT + WIDTH + 24.0
    );
    let resident = samples.iter().map(|it| (minutes(it), it.resident_bytes as f64 / MIB)).collect();
    let budget = samples.iter().map(|it| (minutes(it), it.budget_bytes as f64 / MIB)).collect();
    let speed =
        samples[1..].iter().zip(speeds(samples)).map(|(it, speed)| (minutes(it), speed / 1e6)).collect();
    let titles =
        ["MiB: resident (orange), held by the budget (blue)", "million packets per second in the pipeline"];
    let panels: [Vec<Line>; 2] = [vec![("resident", resident), ("budget", budget)], vec![("speed", speed)]];
    for ((lines, title), top) in panels.iter().zip(titles).zip(PANEL_TOPS) {
        panel(&mut svg, lines, title, (top, end));
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, lines: &[Line], title: &str, (top, end): (f64, f64)) {
    let points = lines.iter().flat_map(|(_, points)| points);
    let step = round_step(points.fold(1e-9, |most: f64, (_, value)| most.max(*value)) / 4.0);
    let most = 5.0 * step;
    let x = |minutes: f64| LEFT + minutes / end * WIDTH;
    let y = |value: f64| top + PANEL_HEIGHT * (1.0 - value / most);
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 12.0);
    for tick in 0..=5 {
        let value = f64::from(tick) * step;
        let class = if tick == 0 { "axis" } else { "grid" };
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT + WIDTH,
            LEFT - 8.0,
            y(value) + 4.0,
            (value * 1000.0).round() / 1000.0,
            y = y(value)
        );
    }
    for tick in 0..=6 {
        let minutes = end * f64::from(tick) / 6.0;
        let label = if end >= 6.0 { format!("{minutes:.0}") } else { format!("{minutes:.2}") };
        let unit = if tick == 6 { " min" } else { "" };
        let below = top + PANEL_HEIGHT + 18.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{below}\" text-anchor=\"middle\">{label}{unit}</text>",
            x(minutes)
        );
    }
    for (class, points) in lines {
        let _ = write!(svg, "<polyline class=\"{class}\" points=\"");
        for (minutes, value) in points {
            let _ = write!(svg, "{:.1},{:.1} ", x(*minutes), y(*value));
        }
        svg.push_str("\"/>\n");
    }
}

/// Returns the smallest value that is at least `least` and 1, 2, 2.5 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= least).unwrap_or(10.0);
    factor * power
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn steps_are_round_and_cover_the_values() {
        for (least, step) in [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (24.0, 25.0), (26.0, 50.0), (80.0, 100.0)] {
            let found = round_step(least);
            assert!((found - step).abs() < 1e-9 * step, "{least}: {found}");
        }
    }

    #[test]
    fn each_sample_is_a_point() {
        let samples: Vec<_> = (0..4)
            .map(|at| Sample {
                elapsed: Duration::from_secs(at * 60),
                busy: Duration::from_secs(at),
                frame_count: at * 1_000_000,
                resident_bytes: 50 << 20,
                ..Sample::default()
            })
            .collect();
        let svg = svg(&samples);
        let counts: Vec<_> = svg
            .lines()
            .filter(|line| line.starts_with("<polyline"))
            .map(|line| line.matches(',').count())
            .collect();
        assert_eq!(counts, [4, 4, 3]);
    }
}
