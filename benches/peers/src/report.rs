//! Results as tables for `docs/performance.md`, between two markers.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::interleave::RowResult;
use crate::rows::FLOWGAUGE;
use crate::whole::Outcome;

/// Marker before the generated section.
pub const BEGIN: &str = "<!-- peers: begin; written by benches/peers -->";
/// Marker after the generated section.
pub const END: &str = "<!-- peers: end -->";

/// Environment of a measurement.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Date of the measurement, as `2026-11-21`.
    pub date: String,
    /// Processor and number of cores.
    pub machine: String,
    /// Version of the compiler.
    pub compiler: String,
    /// Commit of this repository, with a suffix if files differ from it.
    pub commit: String,
}

impl Environment {
    /// Returns the current environment. A value that cannot be determined is `unknown`.
    #[must_use]
    pub fn now() -> Self {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let folder = env!("CARGO_MANIFEST_DIR");
        Self {
            date: first_output(&["date", "-u", "+%F"]),
            machine: format!("{cores} cores of {}", model.unwrap_or("unknown").trim()),
            compiler: first_output(&["rustc", "--version"]).split(" (").next().unwrap_or_default().to_owned(),
            commit: first_output(&["git", "-C", folder, "describe", "--always", "--dirty", "--exclude", "*"]),
        }
    }
}

fn first_output(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).output();
    let text = output.ok().filter(|it| it.status.success()).map(|it| it.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if text.is_empty() { "unknown".to_owned() } else { text }
}

/// Properties of the trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// Number of frames in the file.
    pub frame_count: u64,
    /// Length of the file in octets.
    pub file_len: u64,
    /// Number of flows as flowgauge counts them.
    pub flow_count: u64,
}

/// Returns the generated section without its markers.
#[must_use]
pub fn section(
    environment: &Environment,
    rows: &[RowResult],
    files: Option<(&Trace, &[Outcome])>,
    missing: &[(&str, &str)],
) -> String {
    let Environment { date, machine, compiler, commit } = environment;
    let mut text = format!("Measured on {date}: {machine}; {compiler}; commit {commit}.\n");
    if let Some((trace, outcomes)) = files {
        write_files(&mut text, trace, outcomes);
    }
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|(name, _)| *name).collect();
        let _ = writeln!(text, "\nNot installed and therefore not measured: {}.", names.join(", "));
    }
    if !rows.is_empty() {
        write_rows(&mut text, rows);
    }
    let faster_peers = faster_peers(rows, files.map(|(_, outcomes)| outcomes));
    if faster_peers.is_empty() {
        text.push_str("\nIn this run, no peer was faster in any row.\n");
    } else {
        text.push_str("\n**Rows in which a peer was faster:**\n\n");
        faster_peers.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    text
}

fn write_files(text: &mut String, trace: &Trace, outcomes: &[Outcome]) {
    let Trace { frame_count, file_len, flow_count } = *trace;
    let _ = writeln!(
        text,
        "\n![Million frames per second of each program](performance.svg)\n\n\
         A trace of {} frames ({} MB, {} flows as flowgauge counts them) in the page cache. Times are of whole\n\
         processes, which ran in turn.\n\n\
         | program | work | runs | seconds: median (minimum to maximum) | million frames per second | time relative to flowgauge | packets counted |\n\
         |---|---|--:|--:|--:|--:|--:|",
        thousands(frame_count),
        file_len / 1_000_000,
        thousands(flow_count)
    );
    let ours = outcomes.first().map_or(1.0, Outcome::median);
    for outcome in outcomes {
        let (median, (least, most)) = (outcome.median(), outcome.range());
        let printed_count = outcome.packet_count.map_or("-".to_owned(), thousands);
        let cores = if outcome.program.is_on_all_cores { " (all cores)" } else { "" };
        let _ = writeln!(
            text,
            "| {}{cores} | {} | {} | {median:.3} ({least:.3} to {most:.3}) | {:.2} | {:.1} | {printed_count} |",
            outcome.program.name,
            outcome.program.does,
            outcome.seconds.len(),
            frame_count as f64 / median / 1e6,
            median / ours
        );
    }
}

fn write_rows(text: &mut String, rows: &[RowResult]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.entries) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let _ = writeln!(
        text,
        "\nNanoseconds per call: median, and half of the interquartile range as a percentage of the median. The libraries ran in\n\
         turn in 25 rounds.\n\n\
         | bench id | {} | time relative to flowgauge |\n|---|{}--:|",
        names.join(" | "),
        "--:|".repeat(names.len())
    );
    for row in rows {
        let _ = write!(text, "| {} ", row.id);
        let mut ratios = Vec::new();
        let ours = row.entries.iter().find(|(name, _)| *name == FLOWGAUGE).map(|(_, spread)| spread.median);
        for name in &names {
            match row.entries.iter().find(|(entry, _)| entry == name) {
                Some((name, spread)) => {
                    let _ = write!(text, "| {} ±{:.0} % ", nanos(spread.median), spread.percent());
                    if let Some(ours) = ours.filter(|_| *name != FLOWGAUGE) {
                        ratios.push(format!("{:.1}", spread.median / ours));
                    }
                }
                None => text.push_str("| "),
            }
        }
        let _ = writeln!(text, "| {} |", ratios.join(", "));
    }
}

/// Returns the rows in which a peer was faster than flowgauge and the interquartile ranges do not overlap.
fn faster_peers(rows: &[RowResult], outcomes: Option<&[Outcome]>) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows {
        let Some((_, ours)) = row.entries.iter().find(|(name, _)| *name == FLOWGAUGE) else { continue };
        for (name, theirs) in row.entries.iter().filter(|(_, theirs)| theirs.high < ours.low) {
            let (theirs, ours) = (theirs.median, ours.median);
            lines.push(format!("{name}, `{}`: {} ns; flowgauge: {} ns", row.id, nanos(theirs), nanos(ours)));
        }
    }
    let outcomes = outcomes.unwrap_or_default();
    for outcome in outcomes.iter().filter(|outcome| !is_own(outcome)) {
        // A program that exports each flow is compared with the flowgauge command that exports each flow.
        let is_like = |it: &&Outcome| is_own(it) && it.program.is_export == outcome.program.is_export;
        let Some(ours) = outcomes.iter().find(is_like) else { continue };
        let (theirs, ours_median) = (outcome.median(), ours.median());
        if theirs < ours_median {
            let (name, does) = (&outcome.program.name, outcome.program.does);
            let own_name = &ours.program.name;
            lines.push(format!("{name} ({does}): {theirs:.3} s; `{own_name}`: {ours_median:.3} s"));
        }
    }
    lines
}

fn is_own(outcome: &Outcome) -> bool {
    outcome.program.name.starts_with(FLOWGAUGE)
}

fn nanos(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Replaces the section between the markers of a document.
///
/// # Errors
///
/// If the document cannot be read or written, or does not contain each marker once and in order.
pub fn replace(document: &Path, section: &str) -> io::Result<()> {
    let text = fs::read_to_string(document)?;
    let parts = text.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.filter(|(_, tail)| !tail.contains(BEGIN)).ok_or_else(|| {
        io::Error::other(format!(
            "{}: each of the markers for the tables must occur once and in order",
            document.display()
        ))
    })?;
    fs::write(document, format!("{head}{BEGIN}\n\n{section}\n{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interleave::Spread;
    use crate::programs::{PrintedCount, Program};

    fn row(id: &str, ours: [f64; 3], theirs: [f64; 3]) -> RowResult {
        let spread = |[low, median, high]: [f64; 3]| Spread { median, low, high };
        let entries = vec![(FLOWGAUGE, spread(ours)), ("peer", spread(theirs))];
        RowResult { id: id.to_owned(), entries }
    }

    #[test]
    fn a_peer_is_faster_only_if_the_interquartile_ranges_do_not_overlap() {
        let rows = [
            row("clear", [9.0, 10.0, 11.0], [7.0, 8.0, 8.5]),
            row("within", [9.0, 10.0, 11.0], [7.0, 8.0, 9.5]),
            row("worse", [1.0, 2.0, 3.0], [7.0, 8.0, 9.5]),
        ];
        assert_eq!(faster_peers(&rows, None), ["peer, `clear`: 8.0 ns; flowgauge: 10 ns"]);
    }

    #[test]
    fn an_exporter_is_compared_with_the_exporting_command() {
        let outcome = |name: &str, is_export, seconds| {
            let program = Program {
                name: name.to_owned(),
                does: "flows",
                command: Vec::new(),
                printed_count: PrintedCount::None,
                is_export,
                is_on_all_cores: false,
            };
            Outcome { program, seconds: vec![seconds], packet_count: None }
        };
        let outcomes = [
            outcome("flowgauge top", false, 1.0),
            outcome("flowgauge all", true, 3.0),
            outcome("exporter", true, 2.0),
            outcome("counter", false, 2.0),
        ];
        assert_eq!(
            faster_peers(&[], Some(&outcomes)),
            ["exporter (flows): 2.000 s; `flowgauge all`: 3.000 s"]
        );
    }

    #[test]
    fn replacing_a_section_keeps_the_rest_of_the_document() {
        let folder = std::env::temp_dir().join(format!("flowgauge-peers-report-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let document = folder.join("document.md");
        fs::write(&document, format!("before\n{BEGIN}\nold\n{END}\nafter\n")).expect("written");
        replace(&document, "new").expect("the markers exist");
        replace(&document, "newer").expect("the markers still exist");
        let text = fs::read_to_string(&document).expect("readable");
        assert_eq!(text, format!("before\n{BEGIN}\n\nnewer\n{END}\nafter\n"));
        fs::write(&document, "no markers").expect("written");
        assert!(replace(&document, "new").is_err());
        fs::remove_dir_all(&folder).expect("the folder exists");
    }

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!([0, 999, 1000, 1_196_350].map(thousands), ["0", "999", "1,000", "1,196,350"]);
    }
}
