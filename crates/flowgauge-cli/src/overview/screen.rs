//! The screen: at most 24 lines of 100 columns; only a word of a command is never broken.

use std::collections::BTreeMap;
use std::net::IpAddr;

use flowgauge::base::LinkType;
use flowgauge::export::human;
use flowgauge::{IpProtocol, Timestamp};
use flowgauge_summary::{Facts, Finding, FindingKind, Frames, Totals};

use crate::escape;
use crate::human::plural;
use flowgauge_summary::text::shell_words;

/// Width in characters.
const WIDTH: usize = 100;

/// Maximum number of findings of a kind on the screen.
const KIND_MAX: usize = 3;

/// What precedes the traffic over time.
pub(super) const SPARKLINE: &str = "Traffic  ";

/// Number of lines.
const LINE_MAX: usize = 24;

/// A part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Section {
    Capture,
    Protocols,
    Hosts,
    Conversations,
    Findings,
}

/// Width of the names of findings.
const KIND_WIDTH: usize = 16;

/// Escapes the controls of a line, and shortens it to the width.
fn fitted(line: &str) -> String {
    shortened(&escape::text(line))
}

/// Shortens a line to the width.
fn shortened(line: &str) -> String {
    let line = line.trim_end();
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain(['\u{2026}']).collect()
}

/// Returns the name and the text of a finding, which continues on a second line if it is wider than the screen: with its last
/// part after a semicolon, or with the next word. What is wider than both lines is cut.
fn evidence(name: &str, text: &str) -> Vec<String> {
    let text = escape::text(text);
    let prefix = format!("  {name:<KIND_WIDTH$} ");
    let width = |text: &str| text.chars().count();
    let space = WIDTH.saturating_sub(width(&prefix));
    if width(&text) <= space {
        return vec![prefix + &text];
    }
    // Places of a line break: after a semicolon, before a space.
    let semicolons = text.match_indices("; ").map(|(at, _)| at + 1);
    let spaces = text.match_indices(' ').map(|(at, _)| at);
    let parts = |at: usize| text.split_at_checked(at).filter(|(first, _)| width(first) <= space);
    let is_whole = |(_, rest): &(&str, &str)| width(rest.trim_start()) <= space;
    let split = semicolons.filter_map(parts).filter(is_whole).last();
    let Some((first, rest)) = split.or_else(|| spaces.filter_map(parts).next_back()) else {
        return vec![shortened(&(prefix + &text))];
    };
    let indent = " ".repeat(width(&prefix));
    vec![prefix + first, shortened(&(indent + rest.trim_start()))]
}

/// Breaks a command that is wider than the screen between its words, so that it can be copied to a shell. A line break
/// inside of quotes would be a part of the word.
fn wrapped(command: &str) -> Vec<String> {
    let width = |text: &str| text.chars().count();
    let mut lines = Vec::new();
    let mut line = String::from("   ");
    for word in shell_words(command) {
        // Space for the word, the one before it, and what continues the line.
        if width(&line) + width(word) + 3 > WIDTH && !line.trim().is_empty() {
            lines.push(line + " \\");
            line = String::from("     ");
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Returns the number of rows of the screen that lines take.
fn row_count(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count().div_ceil(WIDTH).max(1)).sum()
}

/// Returns a part of a sum in percent.
pub(super) fn percent(part: u64, of: u64) -> String {
    let percent = part as f64 * 100.0 / of.max(1) as f64;
    if percent < 1.0 && part > 0 { "<1 %".to_owned() } else { format!("{percent:.0} %") }
}

/// Returns the note of a heading, if entries with little traffic were removed.
const fn approximate(removed_count: u64) -> &'static str {
    if removed_count == 0 { "" } else { "; at least, because of their number" }
}

/// Returns a line of blocks whose heights are in proportion to values.
fn sparkline(values: &[u64]) -> String {
    const BLOCKS: [char; 9] =
        [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    let greatest = values.iter().copied().max().unwrap_or(0).max(1);
    let block = |value: &u64| {
        let height = (u128::from(*value) * 8).div_ceil(u128::from(greatest)) as usize;
        BLOCKS.get(height).copied().unwrap_or(' ')
    };
    values.iter().map(block).collect()
}

/// Returns a time in seconds.
fn seconds(time: Timestamp) -> String {
    let text = time.rfc3339().to_string();
    text.split('.').next().unwrap_or(&text).to_owned() + "Z"
}

/// Returns whether an address is one of a private network, or has no meaning outside of its link.
pub(super) fn is_internal(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
        }
        IpAddr::V6(address) => {
            address.is_unique_local()
                || address.is_loopback()
                || address.is_unicast_link_local()
                || address.is_unspecified()
                || address.is_multicast()
        }
    }
}

pub(super) struct Screen<'a> {
    pub(super) files: String,
    pub(super) facts: &'a Facts,
    pub(super) frames: &'a Frames,
    pub(super) totals: &'a Totals,
    pub(super) findings: &'a [Finding],
    /// Name of the captures in commands.
    pub(super) arguments: String,
    /// A filter selected the packets.
    pub(super) is_filtered: bool,
    /// Why not all input was read; `None` if it was.
    pub(super) lack: Option<String>,
}

impl Screen<'_> {
    /// Returns all sections on one screen. Lists have up to `limit` entries.
    pub(super) fn whole(&self, limit: Option<usize>) -> Vec<String> {
        let mut lines = self.section(Section::Capture, limit);
        lines.extend(self.list(Section::Protocols, limit.unwrap_or(5)));
        lines.extend(self.list(Section::Hosts, limit.unwrap_or(3)));
        lines.extend(self.list(Section::Conversations, limit.unwrap_or(3)));
        let line_max = if limit.is_some() { usize::MAX } else { LINE_MAX - lines.len() };
        lines.extend(self.findings(line_max));
        lines
    }

    /// Returns the lines of a section, after the one that states that input is missing. Its list has up to `limit` entries.
    pub(super) fn section(&self, section: Section, limit: Option<usize>) -> Vec<String> {
        let lack = self.lack.iter().map(|lack| fitted(lack));
        lack.chain(self.list(section, limit.unwrap_or(64))).collect()
    }

    fn list(&self, section: Section, limit: usize) -> Vec<String> {
        let lines = match section {
            Section::Capture => self.capture(),
            Section::Protocols => self.protocols(limit),
            Section::Hosts => self.hosts(limit),
            Section::Conversations => self.conversations(limit),
            Section::Findings => return self.findings(usize::MAX),
        };
        lines.iter().map(|line| fitted(line)).collect()
    }

    /// Returns what the capture is, and its traffic over time.
    pub(super) fn capture(&self) -> Vec<String> {
        let Self { facts, frames, totals, .. } = self;
        let links: Vec<_> = frames.link_types.iter().map(|number| LinkType(*number).to_string()).collect();
        let [v4, v6] = facts.packet_count;
        let versions = match (v4, v6) {
            (0, 0) => "",
            (_, 0) => ", IPv4",
            (0, _) => ", IPv6",
            _ => ", IPv4 and IPv6",
        };
        let skipped = match totals.skipped_count {
            0 => String::new(),
            count => format!(", {} without a flow", plural(count, "packet")),
        };
        let flows = plural(totals.flow_count, "flow");
        let mut lines = vec![format!(
            "{}: {}, {}{}{skipped}",
            self.files,
            plural(totals.packet_count, "packet"),
            human::octets(totals.octet_count),
            if self.is_filtered { " octets in all".to_owned() } else { format!(", {flows}") }
        )];
        if self.is_filtered {
            // All numbers below are those of the selection too.
            let octet_count = facts.timeline.octet_count();
            lines.push(format!(
                "Selected by the filter: {}, {} octets, {flows}",
                plural(v4 + v6, "packet"),
                human::octets(octet_count)
            ));
        }
        if let (Some(first), Some(last)) = (facts.first, facts.last) {
            let duration = last.saturating_since(first);
            let mut line = format!(
                "{} to {}, {}; {}{versions}",
                seconds(first),
                seconds(last),
                human::duration(duration),
                links.join(", ")
            );
            if !facts.vlan_ids.is_empty() {
                let ids: Vec<_> = facts.vlan_ids.iter().take(6).map(ToString::to_string).collect();
                line.push_str(&format!("; VLAN {}", ids.join(", ")));
            }
            if !facts.tunnels.is_empty() {
                let kinds: Vec<_> = facts.tunnels.iter().map(|kind| &**kind).collect();
                line.push_str(&format!("; {}", kinds.join(", ")));
            }
            lines.push(line);
            let parts = facts.timeline.parts(60);
            let peak = parts.iter().copied().max().unwrap_or(0);
            let seconds = (duration.as_secs_f64() / 60.0).max(1e-9);
            let rate = peak as f64 / seconds;
            // A single time has no rate.
            let rate = if duration.is_zero() || rate < 1.0 {
                String::new()
            } else {
                format!("  at most {}/s", human::octets(rate as u64))
            };
            lines.push(format!("{SPARKLINE}{}{rate}", sparkline(&parts)));
        }
        lines
    }

    fn protocols(&self, limit: usize) -> Vec<String> {
        let all: u64 = self.facts.services.iter().map(|(_, traffic)| traffic.octet_count()).sum();
        let mut lines = vec!["Protocols (octets; ? by port only)".to_owned()];
        for ((protocol, name, is_proven), traffic) in self.facts.services.first(limit) {
            let mark = if *is_proven || name.is_none() { "" } else { "?" };
            let name = name.as_ref().map(|name| format!("/{}", name.as_str())).unwrap_or_default();
            lines.push(format!(
                "  {:<24} {:>6}  {:>9}  {}",
                format!("{protocol}{name}{mark}"),
                percent(traffic.octet_count(), all),
                human::octets(traffic.octet_count()),
                plural(traffic.flow_count, "flow")
            ));
        }
        lines
    }

    fn hosts(&self, limit: usize) -> Vec<String> {
        let hosts = &self.facts.hosts;
        let internal_count = hosts.iter().filter(|(address, _)| is_internal(address)).count();
        let external_count = hosts.iter().count() - internal_count;
        let mut lines = vec![format!(
            "Hosts (octets sent, received; {internal_count} internal, {external_count} external{})",
            approximate(hosts.removed_count())
        )];
        for (address, traffic) in hosts.first(limit) {
            let (sent, received) = (human::octets(traffic.sent), human::octets(traffic.received));
            let zone = if is_internal(address) { "internal" } else { "external" };
            let name = self.facts.known.name(address).map(|name| format!("  {name}")).unwrap_or_default();
            lines.push(format!(
                "  {:<40} {sent:>8} {received:>8}  {zone}  {}{name}",
                address.to_string(),
                plural(traffic.flow_count, "flow")
            ));
        }
        lines
    }

    fn conversations(&self, limit: usize) -> Vec<String> {
        let conversations = &self.facts.conversations;
        let rows: Vec<_> = conversations
            .first(limit)
            .into_iter()
            .map(|((source, destination, protocol, port), traffic)| {
                let port = port.map(|port| format!(" {port}")).unwrap_or_default();
                let ends = format!("{source} \u{2192} {destination} {}{port}", IpProtocol(*protocol));
                (ends, traffic, self.facts.known.name(destination))
            })
            .collect();
        let width = rows.iter().map(|(ends, ..)| ends.chars().count()).max().unwrap_or(0);
        let mut lines = vec![format!(
            "Conversations (octets sent, received{})",
            approximate(conversations.removed_count())
        )];
        for (ends, traffic, name) in rows {
            let name = name.map(|name| format!("  {name}")).unwrap_or_default();
            let (sent, received) = (human::octets(traffic.sent), human::octets(traffic.received));
            lines.push(format!(
                "  {ends:<width$} {sent:>8} {received:>8}  {}{name}",
                plural(traffic.flow_count, "flow")
            ));
        }
        lines
    }

    /// Returns the findings, as far as they fit a number of lines.
    fn findings(&self, line_max: usize) -> Vec<String> {
        if self.findings.is_empty() {
            return vec!["Findings: none of those that docs/cli.md lists".to_owned()];
        }
        let mut lines = vec!["Findings".to_owned()];
        let mut used = 1;
        // A kind with many findings leaves space for others.
        let mut counts: BTreeMap<FindingKind, usize> = BTreeMap::new();
        let is_shown = |finding: &&Finding| {
            let count = counts.entry(finding.kind).or_default();
            *count += 1;
            line_max == usize::MAX || *count <= KIND_MAX
        };
        let chosen: Vec<_> = self.findings.iter().filter(is_shown).collect();
        let mut omitted_count = self.findings.len() - chosen.len();
        let mut rest = chosen.into_iter();
        while let Some(finding) = rest.clone().next() {
            let mut own = evidence(finding.kind.name(), &finding.text);
            if let Some(command) = &finding.command {
                own.extend(wrapped(&format!("flowgauge {}", command.words(&self.arguments))));
            }
            // The last line names the number of the others.
            let is_last = rest.len() == 1 && omitted_count == 0;
            used += row_count(&own);
            if used + usize::from(!is_last) > line_max {
                break;
            }
            lines.append(&mut own);
            rest.next();
        }
        omitted_count += rest.len();
        if omitted_count > 0 {
            lines.push(format!("  {omitted_count} more: --section findings"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_broken_between_words_only() {
        let long = "x".repeat(2 * WIDTH);
        let name = format!("'$x {} y.pcap'", "long ".repeat(30));
        for command in [
            "flowgauge flows a.pcap --where \"b = 1\"".to_owned(),
            format!("flowgauge flows {name} --where \"source_address = '10.0.0.1' and {long} > 1\" --top 10"),
            format!("flowgauge flows {} --filter \"host 10.0.0.1\"", vec!["'it'\\''s a.pcap'"; 30].join(" ")),
        ] {
            let lines = wrapped(&command);
            let (last, others) = lines.split_last().unwrap();
            let joined: Vec<_> = others
                .iter()
                .map(|line| line.strip_suffix('\\').unwrap())
                .chain([last.as_str()])
                .map(str::trim)
                .collect();
            assert_eq!(joined.join(" "), command);
            for line in &lines {
                let words = shell_words(line.trim_end_matches('\\')).count();
                assert!(line.chars().count() <= WIDTH || words == 1, "{line}");
            }
        }
    }

    #[test]
    fn evidence_continues_on_a_second_line() {
        let indent = " ".repeat(19);
        let shown = |text: &str| evidence("skew", text);
        assert_eq!(shown("one"), ["  skew             one"]);
        let direction = "the direction from 02:00:00:00:00:01 is about 20.0ms late, by 100 answers;";
        let option = "--shift-time 02:00:00:00:00:01=-20000us corrects it";
        let expected = [format!("  skew             {direction}"), format!("{indent}{option}")];
        assert_eq!(shown(&format!("{direction} {option}")), expected);
        // No part fits after a semicolon, and no word.
        let words = "word ".repeat(40);
        let [first, second] = &shown(&format!("a; {words}"))[..] else { panic!() };
        assert_eq!(first, &format!("  skew             a; {}", "word ".repeat(15)).trim_end());
        assert_eq!(second.chars().count(), WIDTH);
        assert!(second.starts_with(&format!("{indent}word")) && second.ends_with('\u{2026}'), "{second}");
        let word = "x".repeat(200);
        for text in [word.clone(), format!("\u{1b}[1m{word}"), format!("a; {word}"), format!("{word}; a")] {
            let lines = shown(&text);
            assert!(
                lines.iter().all(|line| line.chars().count() <= WIDTH && !line.contains('\u{1b}')),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn the_line_has_a_block_for_each_value() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), " \u{2581}\u{2584}\u{2588}");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }
}
