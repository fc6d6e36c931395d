//! The page of a report.

use std::fmt::{Display, Write as _};
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowgauge::IpProtocol;
use flowgauge::export::human;
use flowgauge::row::Value;
use flowgauge_summary::{Facts, Finding, Frames, HostRow, Totals, vendor};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::super::screen::{SPARKLINE, Screen, is_internal, percent};
use super::chart::{COLOR_COUNT, Escaped, Series, areas, bars, histogram, legend, matrix};
use super::details::{Details, SERIES_MAX, TcpDetails, Texts};
use crate::console::Failure;
use crate::human::plural;

/// Duration from which times have a date.
const DAY: Duration = Duration::from_secs(86_400);

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Number of rows of a table of hosts, conversations or protocols.
const ROW_MAX: usize = 25;

/// Number of bars of a chart.
const BAR_MAX: usize = 12;

/// Number of hosts of the matrix of conversations.
const HOST_MAX: usize = 16;

/// What a page shows.
pub(super) struct Page<'a> {
    pub(super) title: String,
    /// Names of the captures in commands.
    pub(super) arguments: String,
    /// Options with which the captures were read.
    pub(super) options: String,
    /// A filter selected the packets.
    pub(super) is_filtered: bool,
    /// Why not all input was read; `None` if it was.
    pub(super) lack: Option<String>,
    pub(super) facts: &'a Facts,
    pub(super) findings: &'a [Finding],
    pub(super) frames: &'a Frames,
    pub(super) totals: &'a Totals,
}

/// A table with the classes of its columns.
struct Table<'a> {
    titles: &'a [(&'a str, &'a str)],
    rows: Vec<Vec<String>>,
}

impl Display for Table<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<div class=\"scroll\"><table><thead><tr>")?;
        for (title, class) in self.titles {
            write!(f, "<th scope=\"col\" class=\"{class}\">{}</th>", Escaped(title))?;
        }
        f.write_str("</tr></thead><tbody>")?;
        for row in &self.rows {
            f.write_str("<tr>")?;
            for (value, (_, class)) in row.iter().zip(self.titles) {
                write!(f, "<td class=\"{class}\">{}</td>", Escaped(value))?;
            }
            f.write_str("</tr>")?;
        }
        f.write_str("</tbody></table></div>")
    }
}

/// Formats seconds as a tick of an axis.
fn tick_of_seconds(seconds: f64) -> String {
    if seconds >= 1.0 {
        return format!("{}s", human::count(seconds.round() as u64, 10_000));
    }
    let (value, unit) = match seconds {
        1e-3.. => (seconds * 1e3, "ms"),
        1e-6.. => (seconds * 1e6, "us"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{value:.0}{unit}")
}

/// Returns a description of a `conn_state`.
fn state_text(state: &str) -> &'static str {
    match state {
        "S0" => "no answer",
        "S1" => "open",
        "S2" => "closed by initiator",
        "S3" => "closed by responder",
        "SF" => "closed by both",
        "REJ" => "refused",
        "RSTO" => "reset by initiator",
        "RSTR" => "reset by responder",
        "RSTOS0" => "SYN, then reset",
        "RSTRH" => "SYN-ACK, then reset",
        "SH" => "SYN, then FIN",
        "SHR" => "SYN-ACK, then FIN",
        _ => "begin not captured",
    }
}

impl Page<'_> {
    /// Returns the page.
    pub(super) fn html(&self, details: &mut Details) -> Result<String, Failure> {
        let digest = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
        let title = Escaped(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             </head>\n<body>\n<h1>{title}</h1>\n"
        );
        self.head(&mut out);
        let mut parts =
            vec![("findings", "Findings", self.findings()), ("traffic", "Traffic", self.traffic(details))];
        parts.push(("hosts", "Hosts", self.hosts()));
        if self.facts.tcp.connection_count > 0 {
            parts.push(("tcp", "TCP", self.tcp(details)));
        }
        if details.tls.versions.iter().next().is_some() {
            parts.push(("tls", "TLS", self.tls(details)));
        }
        if details.dns.results.iter().next().is_some() {
            parts.push(("dns", "DNS", self.dns(details)));
        }
        if details.http.results.iter().next().is_some() {
            parts.push(("http", "HTTP", self.http(details)));
        }
        parts.push(("flows-part", "Flows", self.flows(details)));
        out.push_str("<nav aria-label=\"Parts\">");
        for (id, name, _) in &parts {
            let _ = write!(out, "<a href=\"#{id}\">{name}</a>");
        }
        out.push_str("<button id=\"theme\" data-script hidden>Light or dark</button></nav>\n");
        for (id, name, content) in parts {
            let _ = write!(out, "<section id=\"{id}\"><h2>{name}</h2>\n{content}</section>\n");
        }
        let is_long = self
            .facts
            .first
            .zip(self.facts.last)
            .is_some_and(|(first, last)| last.saturating_since(first) > DAY);
        let files = format!("{} {}", self.arguments, self.options);
        let data = json!({ "files": files.trim_end(), "has_dates": is_long, "flows": details.kept.json() });
        let data = serde_json::to_string(&data)
            .map_err(|error| Failure::Other(format!("the report cannot be written: {error}")))?;
        // The end of the element, or the begin of a comment, would otherwise be found in a text.
        let data = data.replace('<', "\\u003c");
        let _ = write!(
            out,
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
        );
        Ok(out)
    }

    /// Returns the command that writes the numbers of a figure.
    fn command(&self, command: &str, options: &str) -> String {
        let words = [command, &self.arguments, &self.options, options];
        Self::code(&words)
    }

    /// Returns the words of a command that are not empty.
    fn code(words: &[&str]) -> String {
        let words: Vec<_> = words.iter().filter(|word| !word.is_empty()).copied().collect();
        format!("<code>flowgauge {}</code>", Escaped(words.join(" ")))
    }

    /// Returns a figure with the command that writes its numbers.
    fn figure(
        &self,
        (title, is_wide): (&str, bool),
        image: &str,
        (command, options): (&str, &str),
    ) -> String {
        format!(
            "<figure{}><h3>{}</h3>{image}<figcaption>{}</figcaption></figure>\n",
            if is_wide { " class=\"wide\"" } else { "" },
            Escaped(title),
            self.command(command, options)
        )
    }

    fn head(&self, out: &mut String) {
        let Self { facts, findings, frames, totals, .. } = *self;
        let screen = Screen {
            files: self.title.clone(),
            facts,
            frames,
            totals,
            findings,
            arguments: self.arguments.clone(),
            is_filtered: self.is_filtered,
            lack: None,
        };
        if let Some(lack) = &self.lack {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", Escaped(lack));
        }
        for line in screen.capture().iter().filter(|line| !line.starts_with(SPARKLINE)) {
            let _ = writeln!(out, "<p>{}</p>", Escaped(line));
        }
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", self.command("summary", ""));
    }

    fn findings(&self) -> String {
        let mut html = String::new();
        if self.findings.is_empty() {
            return "<p>None of those that flowgauge knows.</p>\n".to_owned();
        }
        html.push_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Finding</th><th scope=\"col\">Evidence</th></tr></thead><tbody>");
        for finding in self.findings {
            let command = match &finding.command {
                Some(command) => format!("<br>{}", Self::code(&[&command.words(&self.arguments)])),
                None => String::new(),
            };
            let _ = write!(
                html,
                "<tr><td>{}</td><td class=\"wrap\">{}{command}</td></tr>",
                Escaped(finding.kind.name()),
                Escaped(&finding.text)
            );
        }
        html.push_str(
            "</tbody></table></div><p class=\"dim\">A finding is what was seen, not a verdict.</p>\n",
        );
        html
    }

    fn traffic(&self, details: &Details) -> String {
        let mut html = String::from("<div class=\"figures\">\n");
        let interval = details.timeline.interval();
        let (start_ns, intervals) = details.timeline.intervals();
        let seconds = interval.as_secs_f64();
        let mut sums: Vec<(usize, u64)> = (0..SERIES_MAX)
            .map(|kind| (kind, intervals.iter().filter_map(|octets| octets.get(kind)).sum()))
            .filter(|(_, sum)| *sum > 0)
            .collect();
        sums.sort_by_key(|(kind, sum)| (std::cmp::Reverse(*sum), *kind));
        let rates = |kinds: &[usize]| -> Vec<f64> {
            let sum =
                |octets: &[u64; SERIES_MAX]| kinds.iter().filter_map(|kind| octets.get(*kind)).sum::<u64>();
            intervals.iter().map(|octets| sum(octets) as f64 * 8.0 / seconds).collect()
        };
        let own_max = if sums.len() > COLOR_COUNT { COLOR_COUNT - 1 } else { COLOR_COUNT };
        let (own, others) = sums.split_at(own_max.min(sums.len()));
        let name = |kind: usize| details.series.get(kind).cloned().unwrap_or_else(|| "others".to_owned());
        let mut series: Vec<_> =
            own.iter().map(|(kind, _)| Series { name: name(*kind), rates: rates(&[*kind]) }).collect();
        if !others.is_empty() {
            let kinds: Vec<_> = others.iter().map(|(kind, _)| *kind).collect();
            series.push(Series { name: "others".to_owned(), rates: rates(&kinds) });
        }
        let title = "Traffic over time by application";
        let image = areas(title, &series, start_ns, u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
        let options = format!(
            "--application always --time-series {} --by protocol,application",
            humantime::format_duration(interval).to_string().replace(' ', "")
        );
        html.push_str(&self.figure((title, true), &(image + &legend(&series)), ("flows", &options)));

        let axis = |value: f64| human::octets(value.round() as u64);
        let (decade, bins) = details.octets.decades();
        let image = histogram("Flows by octets", (decade, &bins), axis);
        let options = "--fields octet_count,reverse_octet_count --format csv";
        html.push_str(&self.figure(
            ("Flows by octets of both directions", false),
            &image,
            ("flows", options),
        ));
        let (decade, bins) = details.durations.decades();
        let image = histogram("Flows by duration", (decade, &bins), tick_of_seconds);
        let title = match details.durations.zero_count {
            0 => "Flows by duration".to_owned(),
            count => format!("Flows by duration; {count} of a single packet are not shown"),
        };
        html.push_str(&self.figure((&title, false), &image, ("flows", "--fields duration --format csv")));
        let services = &self.facts.services;
        let all: u64 = services.iter().map(|(_, traffic)| traffic.octet_count()).sum();
        let rows = services.first(ROW_MAX).into_iter().map(|((protocol, name, is_proven), traffic)| {
            let mark = if *is_proven || name.is_none() { "" } else { "?" };
            let name = name.as_ref().map(|name| format!("/{}", name.as_str())).unwrap_or_default();
            vec![
                format!("{protocol}{name}{mark}"),
                percent(traffic.octet_count(), all),
                human::octets(traffic.octet_count()),
                traffic.packet_count.to_string(),
                traffic.flow_count.to_string(),
            ]
        });
        let titles = [
            ("Protocol", ""),
            ("Share", "number"),
            ("Octets", "number"),
            ("Packets", "number"),
            ("Flows", "number"),
        ];
        let table = Table { titles: &titles, rows: rows.collect() }.to_string();
        let options =
            "--application always --group-by protocol,application --sum octet_count,reverse_octet_count";
        html.push_str(&self.figure(("Protocols (? by port only)", false), &table, ("flows", options)));
        html + "</div>\n"
    }

    /// Returns the table of what is known of the hosts with the most octets.
    fn known(&self) -> String {
        let mut rows = self.facts.host_rows();
        rows.sort_by_key(|row| std::cmp::Reverse(row.traffic().octet_count()));
        let of = |row: &HostRow<'_>| {
            let host = row.host();
            let services = host.services().iter().map(|service| {
                let name = if service.application.is_empty() { "?" } else { &service.application };
                let software = service.software.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
                format!("{name}/{}{software}", service.port)
            });
            let users = host.users().iter().map(|user| user.name.clone());
            let mac = row.mac().map(|mac| Value::Mac(mac).to_string());
            vec![
                row.address().to_string(),
                host.name().map(|name| format!("{} ({})", name.name, name.source.name())).unwrap_or_default(),
                mac.unwrap_or_default(),
                row.mac().and_then(vendor).unwrap_or_default().to_owned(),
                host.system().map(|system| system.system.clone()).unwrap_or_default(),
                services.collect::<Vec<_>>().join(", "),
                users.collect::<Vec<_>>().join(", "),
            ]
        };
        let titles =
            ["Host", "Name", "MAC", "Vendor", "System", "Services", "Users"].map(|title| (title, ""));
        Table { titles: &titles, rows: rows.iter().take(ROW_MAX).map(of).collect() }.to_string()
    }

    fn hosts(&self) -> String {
        let Facts { hosts, conversations, .. } = self.facts;
        let mut html = String::from("<div class=\"figures\">\n");
        let rows = hosts.first(ROW_MAX).into_iter().map(|(address, traffic)| {
            vec![
                address.to_string(),
                self.facts.known.name(address).unwrap_or_default().to_owned(),
                if is_internal(address) { "internal" } else { "external" }.to_owned(),
                human::octets(traffic.sent),
                human::octets(traffic.received),
                traffic.flow_count.to_string(),
            ]
        });
        let titles = [
            ("Host", ""),
            ("Name", ""),
            ("Zone", ""),
            ("Sent", "number"),
            ("Received", "number"),
            ("Flows", "number"),
        ];
        let table = Table { titles: &titles, rows: rows.collect() }.to_string();
        html.push_str(&self.figure(("Hosts", false), &table, ("summary", "--section hosts")));
        html.push_str(&self.figure(("What is known of hosts", true), &self.known(), ("hosts", "")));
        let rows = conversations.first(ROW_MAX).into_iter().map(
            |((source, destination, protocol, port), traffic)| {
                let port = port.map(|port| format!(" {port}")).unwrap_or_default();
                vec![
                    source.to_string(),
                    destination.to_string(),
                    self.facts.known.name(destination).unwrap_or_default().to_owned(),
                    format!("{}{port}", IpProtocol(*protocol)),
                    human::octets(traffic.sent),
                    human::octets(traffic.received),
                    traffic.flow_count.to_string(),
                ]
            },
        );
        let titles = [
            ("Source", ""),
            ("Destination", ""),
            ("Name", ""),
            ("Port", ""),
            ("Sent", "number"),
            ("Received", "number"),
            ("Flows", "number"),
        ];
        let table = Table { titles: &titles, rows: rows.collect() }.to_string();
        let command = ("summary", "--section conversations");
        html.push_str(&self.figure(("Conversations", false), &table, command));
        let all = hosts.first(HOST_MAX);
        let names: Vec<IpAddr> = all.iter().map(|(address, _)| **address).collect();
        let mut octets = vec![vec![0; names.len()]; names.len()];
        let place = |address: &IpAddr| names.iter().position(|known| known == address);
        for ((source, destination, ..), traffic) in conversations.iter() {
            let Some((source, destination)) = place(source).zip(place(destination)) else { continue };
            for (from, to, sent) in
                [(source, destination, traffic.sent), (destination, source, traffic.received)]
            {
                if let Some(cell) = octets.get_mut(from).and_then(|row: &mut Vec<u64>| row.get_mut(to)) {
                    *cell += sent;
                }
            }
        }
        let title = "Octets that each host (row) sent to each other one (column)";
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let options = "--group-by source_address,destination_address --sum octet_count,reverse_octet_count";
        html.push_str(&self.figure((title, true), &matrix(title, &names, &octets), ("flows", options)));
        html + "</div>\n"
    }

    fn tcp(&self, details: &Details) -> String {
        let tcp = &self.facts.tcp;
        let mut html = String::from("<div class=\"figures\">\n");
        let mut states: Vec<_> = details
            .states
            .iter()
            .map(|(state, count)| (format!("{state} {}", state_text(state)), *count))
            .collect();
        states.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let title = "Outcome of connections";
        let options = "--where \"protocol = 'tcp'\" --group-by conn_state";
        html.push_str(&self.figure((title, false), &bars(title, &states), ("flows", options)));
        let title = "Handshake round-trip time";
        let (decade, bins) = details.handshakes.decades();
        if !bins.is_empty() {
            let image = histogram(title, (decade, &bins), tick_of_seconds);
            let command =
                ("flows", "--where 'handshake_rtt IS NOT NULL' --fields handshake_rtt --format csv");
            html.push_str(&self.figure((title, false), &image, command));
        }
        let share = |count: u64, of: u64| format!("{:.2} %", count as f64 * 100.0 / of.max(1) as f64);
        let row = |name: &str, count: u64, share: String| vec![name.to_owned(), count.to_string(), share];
        let TcpDetails { retransmitted_count, zero_window_count, .. } = details.tcp;
        let rows = vec![
            row("Connections", tcp.connection_count, String::new()),
            row("Segments", tcp.segment_count, String::new()),
            row("retransmitted", retransmitted_count, share(retransmitted_count, tcp.segment_count)),
            row("with a window of zero", zero_window_count, share(zero_window_count, tcp.segment_count)),
        ];
        let titles = [("", ""), ("Number", "number"), ("Share", "number")];
        let table = Table { titles: &titles, rows }.to_string();
        let options = "--where \"protocol = 'tcp'\" --group-by protocol --sum packet_count,reverse_packet_count,\
                       retransmitted_count,reverse_retransmitted_count,zero_window_count,reverse_zero_window_count";
        html.push_str(&self.figure(("TCP health", false), &table, ("flows", options)));
        html + "</div>\n"
    }

    /// Returns bars of the most frequent texts.
    fn texts(&self, title: &str, texts: &Texts, options: &str) -> String {
        let rows: Vec<_> =
            texts.first(BAR_MAX).into_iter().map(|(text, count)| (text.clone(), count.0)).collect();
        if rows.is_empty() {
            return String::new();
        }
        self.figure((title, false), &bars(title, &rows), ("sessions", options))
    }

    fn tls(&self, details: &Details) -> String {
        let tls = &details.tls;
        let options = "--transactions --protocol tls --protocol quic";
        format!(
            "<div class=\"figures\">\n{}{}{}</div>\n",
            self.texts("Versions", &tls.versions, options),
            self.texts("Server names", &tls.server_names, options),
            self.texts("Cipher suites", &tls.cipher_suites, options),
        )
    }

    fn dns(&self, details: &Details) -> String {
        let dns = &details.dns;
        let options = "--transactions --protocol dns";
        let (decade, bins) = dns.response_times.decades();
        let title = "Response time";
        let times = if bins.is_empty() {
            String::new()
        } else {
            let image = histogram(title, (decade, &bins), tick_of_seconds);
            let options = "--transactions --protocol dns --where 'response_time IS NOT NULL'";
            self.figure((title, false), &image, ("sessions", options))
        };
        format!(
            "<div class=\"figures\">\n{}{}{}{times}</div>\n",
            self.texts("Results of queries", &dns.results, options),
            self.texts("Queried names", &dns.queries, options),
            self.texts("Types of queries", &dns.query_types, options),
        )
    }

    fn http(&self, details: &Details) -> String {
        let http = &details.http;
        let options = "--transactions --protocol http";
        format!(
            "<div class=\"figures\">\n{}{}</div>\n",
            self.texts("Status codes", &http.results, options),
            self.texts("Hosts", &http.hosts, options),
        )
    }

    fn flows(&self, details: &Details) -> String {
        let count = details.kept.flow_count;
        let kept = details.kept.len() as u64;
        let note = if kept < count {
            format!(
                "{kept} of {}: those with the most octets, and some of each protocol, application and state",
                plural(count, "flow")
            )
        } else {
            plural(count, "flow")
        };
        format!(
            "<p>{note}</p>\n<p>All flows: {}</p>\n<noscript><p>The table needs a script, which this browser does not run.</p></noscript>\n\
             <div class=\"tools\" data-script hidden><label for=\"find\">Find (/)</label>\
             <input id=\"find\" type=\"search\" spellcheck=\"false\" placeholder=\"words, or application:dns\">\
             <span id=\"count\" role=\"status\"></span></div>\n\
             <p class=\"dim\" data-script hidden>Arrow keys move, Enter shows the transactions of a flow, / finds, \
             and a column title sorts.</p>\n\
             <div class=\"scroll\"><table id=\"flows\"><thead><tr></tr></thead><tbody></tbody></table></div>\n\
             <p><button id=\"more\" hidden>More flows</button></p>\n",
            self.command("flows", "--application always")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_unit_of_their_size() {
        let ticks = [1e-9, 1e-6, 1e-4, 1e-3, 0.1, 1.0, 100.0, 1e5].map(tick_of_seconds);
        assert_eq!(ticks, ["1ns", "1us", "100us", "1ms", "100ms", "1s", "100s", "100.0ks"]);
    }
}
