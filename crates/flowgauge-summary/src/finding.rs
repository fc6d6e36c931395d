//! What was seen in a capture, with the evidence and, if it was seen in flows, the command that shows them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use flowgauge::export::human;
use flowgauge::reassembler::CaptureSide;
use flowgauge::row::{Name, Value};
use flowgauge::{FlowRecord, IpProtocol, Timestamp};

use crate::counts::{Attempts, is_group};
use crate::facts::{Conversation, Facts, LATE_MIN, Times};
use crate::incident::IncidentKind;
use crate::text::{plural, shell_word};
use crate::watch::{Frames, Totals};

/// A finding: what was seen, not a verdict. It is a row of the table `summary.finding`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was seen.
    pub kind: FindingKind,
    /// The host that did it, if there is one.
    pub source: Option<IpAddr>,
    /// The other host.
    pub destination: Option<IpAddr>,
    /// Port of the other host.
    pub port: Option<u16>,
    /// Number of flows, or of what the kind counts; at least, if the text says so.
    pub count: u64,
    /// The evidence in one line.
    pub text: String,
    /// The command that shows the flows or transactions.
    pub command: Option<FindingCommand>,
}

/// A command of `flowgauge` that shows the flows or transactions of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingCommand {
    name: &'static str,
    filter: Option<String>,
    /// The other options, as a shell reads them.
    options: String,
}

impl FindingCommand {
    /// Returns the command that shows flows.
    fn flows(options: impl Into<String>) -> Option<Self> {
        Some(Self { name: "flows", filter: None, options: options.into() })
    }

    /// Returns the command that shows the flows that match a filter.
    pub(crate) fn filtered(filter: String) -> Option<Self> {
        Some(Self { name: "flows", filter: Some(filter), options: String::new() })
    }

    /// Returns the name of the command: `flows` or `sessions`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Adds the options with which the captures were read, so that the command reads the same packets: a
    /// filter, and other options as a shell reads them.
    pub fn add(&mut self, filter: Option<&str>, others: &str) {
        self.filter = match (filter, self.filter.take()) {
            (Some(filter), Some(own)) => Some(format!("({filter}) and {own}")),
            (filter, own) => filter.map(str::to_owned).or(own),
        };
        if !others.is_empty() {
            self.options = format!("{} {others}", self.options).trim_start().to_owned();
        }
    }

    /// Returns the words of the command, with the names of the captures as a shell reads them
    /// ([`shell_file`](crate::text::shell_file)).
    #[must_use]
    pub fn words(&self, files: &str) -> String {
        let filter = self.filter.as_ref().map(|filter| format!("--filter {}", shell_word(filter)));
        let words = [self.name, files, filter.as_deref().unwrap_or_default(), &self.options];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the command that shows the messages of a protocol that meet a condition, which has only letters, digits and
    /// quotes of texts.
    pub(crate) fn messages(protocol: &str, condition: &str) -> Self {
        let options = format!("--protocol {protocol} --where \"{condition}\"");
        Self { name: "sessions", filter: None, options }
    }

    /// Returns the command that shows the transactions of a protocol that meet a condition. `None` if the condition has a character
    /// that a shell interprets in double quotes: names are chosen by others.
    fn transactions(protocol: &str, condition: &str) -> Option<Self> {
        let is_plain = |letter: char| !letter.is_control() && !"\"$`\\!".contains(letter);
        let options = format!("--transactions --protocol {protocol} --where \"{condition}\"");
        condition.chars().all(is_plain).then_some(Self { name: "sessions", filter: None, options })
    }
}

/// Returns a text of a condition, in which a quote is doubled.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Kinds of findings, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// Many flows without an answer.
    Scan,
    /// An address that several hosts claim.
    AddressConflict,
    /// Servers of DHCP that contradict each other.
    DhcpServers,
    /// Many connections to a service that nobody completes.
    SynFlood,
    /// Answers of many hosts to connections that the receiver did not begin.
    Reflection,
    /// Answers of UDP services that are much longer than what the receiver sent.
    Amplification,
    /// Flows or requests at regular times.
    Beacon,
    /// A flow with much payload of its initiator.
    Upload,
    /// Credentials without encryption.
    ClearTextLogin,
    /// An authentication that is easy to break.
    WeakLogin,
    /// Connections of SMB 1.
    Smb1,
    /// A connection to a share of administrators.
    AdminShare,
    /// A service that is created on another host.
    RemoteService,
    /// An expired or self-signed certificate.
    Certificate,
    /// Connections of an old version of TLS.
    TlsVersion,
    /// An application on a port of others.
    ForeignPort,
    /// Failed or unanswered queries.
    DnsFailure,
    /// Many names of one domain that were queried once.
    NamesOnce,
    /// A long flow.
    LongConnection,
    /// Retransmitted segments.
    Retransmissions,
    /// Closed windows.
    ZeroWindow,
    /// Aborted connections.
    Resets,
    /// A server with slow handshakes.
    RoundTrip,
    /// A stream of voice or video of poor quality.
    PoorMedia,
    /// Duplicate frames.
    Duplicates,
    /// Octets of streams that were sent again with other values.
    Conflicts,
    /// Octets of streams that the capture lacks.
    Gaps,
    /// Frames captured only in part.
    Truncated,
    /// Times that show that a clock was set.
    Clock,
    /// A direction that was captured later than answers to it.
    Skew,
}

impl FindingKind {
    const fn of(incident: IncidentKind) -> Self {
        match incident {
            IncidentKind::NtlmV1 | IncidentKind::NoPreauthentication | IncidentKind::WeakTicket => {
                Self::WeakLogin
            }
            IncidentKind::Smb1 => Self::Smb1,
            IncidentKind::AdminShare => Self::AdminShare,
            IncidentKind::RemoteService => Self::RemoteService,
            IncidentKind::PoorMedia => Self::PoorMedia,
        }
    }

    /// Returns the name, such as `clear_text_login`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::AddressConflict => "address_conflict",
            Self::DhcpServers => "dhcp_servers",
            Self::SynFlood => "syn_flood",
            Self::Reflection => "reflection",
            Self::Amplification => "amplification",
            Self::Beacon => "beacon",
            Self::Upload => "upload",
            Self::ClearTextLogin => "clear_text_login",
            Self::WeakLogin => "weak_login",
            Self::Smb1 => "smb_1",
            Self::AdminShare => "admin_share",
            Self::RemoteService => "remote_service",
            Self::Certificate => "certificate",
            Self::TlsVersion => "tls_version",
            Self::ForeignPort => "foreign_port",
            Self::DnsFailure => "dns_failure",
            Self::NamesOnce => "names_once",
            Self::LongConnection => "long_connection",
            Self::Retransmissions => "retransmissions",
            Self::ZeroWindow => "zero_window",
            Self::Resets => "resets",
            Self::RoundTrip => "round_trip",
            Self::PoorMedia => "poor_media",
            Self::Duplicates => "duplicates",
            Self::Conflicts => "conflicts",
            Self::Gaps => "gaps",
            Self::Truncated => "truncated",
            Self::Clock => "clock",
            Self::Skew => "skew",
        }
    }
}

flowgauge::table! {
    /// What was seen in a capture.
    impl "summary.finding" for Finding as finding {
        /// What was seen, such as `scan`.
        "finding": Name = Name(finding.kind.name());
        /// The host that did it.
        "source_address": Option<IpAddr> = finding.source;
        /// The other host.
        "destination_address": Option<IpAddr> = finding.destination;
        /// Port of the other host.
        "destination_port": Option<u16> = finding.port;
        /// Number of flows, or of what the text counts.
        "count": u64 = finding.count;
        /// The evidence.
        "evidence": String = finding.text.clone();
        /// The command that shows the flows or transactions, and its options; without the name of the capture.
        "command": Option<String> = finding.command.as_ref().map(|command| command.words(""));
    }
}

/// Flows without an answer that a scan has at least.
const SCAN_FLOW_MIN: u64 = 25;

/// Distinct ports or hosts that a scan has at least: these, and four fifths of its flows, or many.
const SCAN_TARGET_MIN: usize = 15;
const SCAN_TARGET_MANY: usize = 100;

/// Ports of services that clients request at regular times: DHCP, NTP and DHCPv6.
const REGULAR_PORTS: [u16; 5] = [67, 68, 123, 546, 547];

/// Time without a packet that a capture has if its clock was set, or if it was merged of others.
const PAUSE_MIN: Duration = Duration::from_secs(30 * 86_400);

/// Maximum number of findings of a kind, or of a form of it.
pub(crate) const FINDING_MAX: usize = 100;

/// Flows or requests that a beacon has at least, and their period and jitter.
const BEACON_COUNT_MIN: usize = 5;
const BEACON_PERIOD_MIN: Duration = Duration::from_secs(1);
/// Jitter of a beacon: the median deviation from the period, as a part of it.
const BEACON_JITTER_MAX: f64 = 0.15;

/// Duration of a long connection; a sixth of it, if the connection takes nine tenths of the capture.
const LONG_MIN: Duration = Duration::from_secs(3600);

/// Part of segments that are retransmissions.
const RETRANSMITTED_MIN: f64 = 0.02;

/// Part of connections that end by a reset.
const RESET_MIN: f64 = 0.25;

impl Facts {
    /// Returns all findings, in the order of their kinds; those of a kind with the greatest counts first, and at most 100 of
    /// each form. `frames` and `totals` are those of the passes that collected the facts.
    #[must_use]
    pub fn findings(&self, frames: &Frames, totals: &Totals) -> Vec<Finding> {
        let mut all = Vec::new();
        self.scans(&mut all);
        self.attacks(&mut all);
        self.beacons(&mut all);
        self.flows(&mut all);
        self.logins(&mut all);
        self.incidents(&mut all);
        self.tls(&mut all);
        self.ports(&mut all);
        self.dns(&mut all);
        self.tcp(frames.duplicate_count, &mut all);
        let mut totals = *totals;
        totals.skew.add(&self.skew);
        capture(frames, &totals, &mut all);
        self.clock(&mut all);
        all.sort_by(|one, other| one.kind.cmp(&other.kind).then(other.count.cmp(&one.count)));
        all
    }

    fn scans(&self, all: &mut Vec<Finding>) {
        for (source, attempts) in self.attempts.first(FINDING_MAX) {
            if !attempts.is_scan() {
                continue;
            }
            let refused = match (attempts.refused_count, attempts.probe_count) {
                (0, 0) => String::new(),
                (count, 0) => format!(", {count} of them refused"),
                (0, count) => format!(", {count} of them reset after the answer"),
                (refused, reset) => format!(", {refused} of them refused and {reset} reset after the answer"),
            };
            all.push(Finding {
                kind: FindingKind::Scan,
                source: Some(*source),
                destination: None,
                port: None,
                count: attempts.flow_count,
                text: format!(
                    "{source}: {}{} without data{refused}, {}",
                    self.attempts.at_least(),
                    connections(attempts),
                    attempts.targets()
                ),
                command: FindingCommand::flows(format!(
                    "--where \"source_address = '{source}' and conn_state in ('S0', 'REJ', 'RSTO', 'RSTOS0') and \
                     payload_octet_count + reverse_payload_octet_count = 0 and protocol = 'tcp'\""
                )),
            });
        }
        for ((source, destination), attempts) in self.datagrams.first(FINDING_MAX) {
            if !attempts.is_scan() {
                continue;
            }
            all.push(Finding {
                kind: FindingKind::Scan,
                source: Some(*source),
                destination: Some(*destination),
                port: None,
                count: attempts.flow_count,
                text: format!(
                    "{source}: {}{} of UDP without an answer, {}",
                    self.datagrams.at_least(),
                    plural(attempts.flow_count, "flow"),
                    attempts.targets()
                ),
                command: FindingCommand::flows(format!(
                    "--where \"source_address = '{source}' and destination_address = '{destination}' and \
                     protocol = 'udp' and conn_state = 'S0'\""
                )),
            });
        }
    }

    fn beacons(&self, all: &mut Vec<Finding>) {
        let is_regular = |(_, destination, _, port): &Conversation| {
            is_group(destination) || port.is_some_and(|port| REGULAR_PORTS.contains(&port))
        };
        let times = self.times.iter().filter(|(key, _)| !is_regular(key));
        let mut found: Vec<_> = times.filter_map(|(key, times)| Some((*key, period(times)?))).collect();
        found.sort_by_key(|(key, (count, ..))| (std::cmp::Reverse(*count), *key));
        for ((source, destination, protocol, port), (count, period, jitter)) in
            found.into_iter().take(FINDING_MAX)
        {
            let at_least = self.times.at_least();
            let end = port.map(|port| format!(" port {port}")).unwrap_or_default();
            all.push(Finding {
                kind: FindingKind::Beacon,
                source: Some(source),
                destination: Some(destination),
                port,
                count,
                text: format!(
                    "{source} to {destination}{end}: {at_least}{count} times every {}, jitter {:.0} %",
                    human::duration(period),
                    jitter * 100.0
                ),
                command: FindingCommand::filtered(conversation((source, destination, protocol, port))),
            });
        }
    }

    fn flows(&self, all: &mut Vec<Finding>) {
        let capture = self.first.zip(self.last).map(|(first, last)| last.saturating_since(first));
        for (_, record) in &self.long.flows {
            let duration = record.duration();
            let is_most = capture.is_some_and(|capture| duration * 10 >= capture * 9);
            if duration >= LONG_MIN || duration >= LONG_MIN / 6 && is_most {
                let text = format!("open for {}", human::duration(duration));
                all.push(of_flow(FindingKind::LongConnection, record, &text));
            }
        }
        for (payload, record) in &self.uploads.flows {
            let text = format!("{} of payload sent", human::octets(*payload));
            all.push(of_flow(FindingKind::Upload, record, &text));
        }
    }

    fn logins(&self, all: &mut Vec<Finding>) {
        for ((host, protocol, kind), count) in self.logins.first(FINDING_MAX) {
            all.push(Finding {
                kind: FindingKind::ClearTextLogin,
                source: None,
                destination: Some(*host),
                port: None,
                count: count.0,
                text: format!(
                    "{host}: {}{} over {protocol} without encryption ({kind})",
                    self.logins.at_least(),
                    plural(count.0, "login")
                ),
                command: FindingCommand::flows(format!(
                    "--where \"destination_address = '{host}' and application = '{protocol}'\""
                )),
            });
        }
    }

    fn incidents(&self, all: &mut Vec<Finding>) {
        for ((kind, protocol, client, server, what), count) in self.incidents.first(FINDING_MAX) {
            let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
            let (at_least, (name, rest)) = (self.incidents.at_least(), kind.text());
            let name = plural(count.0, name);
            all.push(Finding {
                kind: FindingKind::of(*kind),
                source: Some(*client),
                destination: Some(*server),
                port: None,
                count: count.0,
                text: format!("{client} to {server}: {at_least}{name} {rest} over {protocol}{what}"),
                command: FindingCommand::transactions(protocol, kind.condition()),
            });
        }
    }

    fn tls(&self, all: &mut Vec<Finding>) {
        for (version, count) in &self.tls_versions {
            if !["1.0", "1.1", "SSL 3.0", "TLS 1.0", "TLS 1.1"].contains(&version.as_str()) {
                continue;
            }
            let text = format!("{} of version {version}", plural(*count, "connection"));
            let command = FindingCommand::transactions("tls", &format!("version = {}", literal(version)));
            all.push(Finding { command, ..plain(FindingKind::TlsVersion, *count, text) });
        }
        for (what, certificates) in [("expired", &self.expired), ("self-signed", &self.self_signed)] {
            for (subject, count) in certificates.first(FINDING_MAX) {
                let text = format!("{what} certificate: {subject}");
                let condition = format!("subject = {} and position = 0", literal(subject));
                let command = FindingCommand::transactions("tls", &condition);
                all.push(Finding { command, ..plain(FindingKind::Certificate, count.0, text) });
            }
        }
    }

    fn ports(&self, all: &mut Vec<Finding>) {
        for ((name, port), traffic) in self.foreign_ports.first(FINDING_MAX) {
            let port_text = port.map_or_else(|| "no port".to_owned(), |port| format!("port {port}"));
            let mut finding = plain(
                FindingKind::ForeignPort,
                traffic.flow_count,
                format!(
                    "{} on {port_text}: {}{}, {}",
                    name.as_str(),
                    self.foreign_ports.at_least(),
                    plural(traffic.flow_count, "flow"),
                    human::octets(traffic.octet_count())
                ),
            );
            finding.port = *port;
            finding.command = port.and_then(|port| {
                FindingCommand::flows(format!(
                    "--where \"application = '{}' and destination_port = {port} and application_evidence = 'content' and \
                     direction_evidence <> 'first_seen'\"",
                    name.as_str()
                ))
            });
            all.push(finding);
        }
    }

    fn dns(&self, all: &mut Vec<Finding>) {
        let names = &self.names;
        for (code, count) in &names.failures {
            let is_common = *count * 10 >= names.query_count && names.failed.iter().count() >= 3;
            if *count >= 10 || *count >= 3 && is_common {
                let mut text = format!("{count} of {} queries answered by {code}", names.query_count);
                if let Some((name, _)) =
                    names.failed.first(1).first().filter(|(name, _)| !matches!(name.as_str(), "" | "."))
                {
                    text.push_str(&format!(", such as {name}"));
                }
                let command = FindingCommand::transactions("dns", &format!("rcode = {}", literal(code)));
                all.push(Finding { command, ..plain(FindingKind::DnsFailure, *count, text) });
            }
        }
        if names.unanswered_count >= 5 {
            let text =
                format!("{} of {} queries without an answer", names.unanswered_count, names.query_count);
            let command = FindingCommand::transactions("dns", "rcode IS NULL");
            all.push(Finding { command, ..plain(FindingKind::DnsFailure, names.unanswered_count, text) });
        }
        let mut domains: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in names.queried.iter() {
            if count.0 == 1 && !name.ends_with(".arpa") {
                *domains.entry(domain(name).to_owned()).or_default() += 1;
            }
        }
        for (domain, count) in domains {
            if count >= 25 {
                let text = format!("{}{count} names in {domain} queried once each", names.queried.at_least());
                let command = FindingCommand::transactions(
                    "dns",
                    &format!("query ILIKE {}", literal(&format!("%.{domain}"))),
                );
                all.push(Finding { command, ..plain(FindingKind::NamesOnce, count, text) });
            }
        }
    }

    fn clock(&self, all: &mut Vec<Finding>) {
        let clock = &self.clock;
        if clock.late_count > 0 {
            let text = format!(
                "{} at least {} before an earlier packet, by up to {}",
                plural(clock.late_count, "packet"),
                human::duration(LATE_MIN),
                human::duration(clock.late)
            );
            all.push(plain(FindingKind::Clock, clock.late_count, text));
        }
        let Some((first, last)) = self.first.zip(self.last) else { return };
        let is_most = clock.pause * 10 >= last.saturating_since(first) * 9;
        if let Some(start) = clock.pause_start.filter(|_| clock.pause >= PAUSE_MIN && is_most) {
            let text = format!(
                "no packet for {} after {}: a clock was set, or captures were merged",
                human::duration(clock.pause),
                start.rfc3339()
            );
            all.push(plain(FindingKind::Clock, 1, text));
        }
    }

    fn tcp(&self, duplicate_count: u64, all: &mut Vec<Finding>) {
        let tcp = &self.tcp;
        let part = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        // A duplicate of a segment with data counts as a retransmission too.
        let retransmitted_count = tcp.retransmitted_count.saturating_sub(duplicate_count);
        let retransmitted = part(retransmitted_count, tcp.segment_count);
        if retransmitted_count >= 10 && retransmitted >= RETRANSMITTED_MIN {
            let mut finding = plain(
                FindingKind::Retransmissions,
                retransmitted_count,
                format!(
                    "{} of {} segments, {:.1} %",
                    retransmitted_count,
                    tcp.segment_count,
                    retransmitted * 100.0
                ),
            );
            finding.command = FindingCommand::flows(
                "--where \"retransmitted_count + reverse_retransmitted_count > 0 and conn_state not in ('S0', 'REJ')\" \
                 --sort retransmitted --top 10",
            );
            all.push(finding);
        }
        if tcp.closed_count > 0 {
            let mut finding = plain(
                FindingKind::ZeroWindow,
                tcp.closed_count,
                format!(
                    "a window closed {}, for up to {}",
                    plural(tcp.closed_count, "time"),
                    human::duration(tcp.closed)
                ),
            );
            finding.command =
                FindingCommand::flows("--where \"zero_window_count > 0 or reverse_zero_window_count > 0\"");
            all.push(finding);
        }
        let resets = part(tcp.reset_count, tcp.connection_count);
        if tcp.reset_count >= 10 && resets >= RESET_MIN {
            let text = format!(
                "{} of {} connections aborted, {:.0} %",
                tcp.reset_count,
                tcp.connection_count,
                resets * 100.0
            );
            let mut finding = plain(FindingKind::Resets, tcp.reset_count, text);
            finding.command = FindingCommand::flows("--where \"conn_state in ('RSTO', 'RSTR')\"");
            all.push(finding);
        }
        let median = |rtts: &[Duration]| {
            let mut rtts = rtts.to_vec();
            rtts.sort_unstable();
            rtts.get(rtts.len() / 2).copied().unwrap_or_default()
        };
        let medians: Vec<_> =
            tcp.rtts.iter().map(|(host, rtts)| (*host, rtts.count, median(&rtts.first))).collect();
        let whole = median(&medians.iter().map(|(.., rtt)| *rtt).collect::<Vec<_>>());
        let mut slow: Vec<_> = medians
            .into_iter()
            .filter(|(_, count, rtt)| *count >= 3 && *rtt > whole * 5 && *rtt >= Duration::from_millis(100))
            .collect();
        slow.sort_by_key(|(host, _, rtt)| (std::cmp::Reverse(*rtt), *host));
        for (host, count, rtt) in slow.into_iter().take(FINDING_MAX) {
            all.push(Finding {
                kind: FindingKind::RoundTrip,
                source: None,
                destination: Some(host),
                port: None,
                count,
                text: format!(
                    "{host}: handshakes take {}, others {}",
                    human::duration(rtt),
                    human::duration(whole)
                ),
                command: FindingCommand::flows(format!(
                    "--where \"destination_address = '{host}'\" --sort rtt"
                )),
            });
        }
    }
}

/// Returns the findings about the capture itself.
fn capture(frames: &Frames, totals: &Totals, all: &mut Vec<Finding>) {
    let mut note = |kind: FindingKind, count: u64, text: String| {
        if count > 0 {
            all.push(plain(kind, count, text));
        }
    };
    let Totals { gap_count, missing_len, conflict_count, conflict_len, .. } = *totals;
    note(
        FindingKind::Conflicts,
        conflict_count,
        format!(
            "{} in streams, {conflict_len} octets sent again with other values",
            plural(conflict_count, "conflict")
        ),
    );
    note(
        FindingKind::Gaps,
        gap_count,
        format!("{} in streams, {missing_len} octets missing", plural(gap_count, "gap")),
    );
    if let Some((side, time)) = totals.skew.constant() {
        let late = human::duration(time);
        let count = totals.skew.late.iter().flatten().map(|late| late.count).sum();
        let (direction, option) = match side {
            CaptureSide::Interface(interface) => {
                (format!("interface {interface}"), Some(format!("{interface}")))
            }
            CaptureSide::Mac(mac) => (mac_text(mac), Some(mac_text(mac))),
            CaptureSide::Initiator(true) => ("the initiators".to_owned(), None),
            _ => ("the responders".to_owned(), None),
        };
        let correction = option.map_or_else(String::new, |option| {
            format!("; --shift-time {option}=-{}us corrects it", time.as_micros())
        });
        let text = format!(
            "the direction from {direction} is about {late} late, by {}{correction}",
            plural(count, "answer")
        );
        note(FindingKind::Skew, count, text);
    }
    let Frames { frame_count, duplicate_count, truncated_count, .. } = *frames;
    note(
        FindingKind::Truncated,
        truncated_count,
        format!("{truncated_count} of {} captured only in part", plural(frame_count, "packet")),
    );
    let text = format!(
        "{} in {}; --dedup removes them",
        plural(duplicate_count, "duplicate"),
        plural(frame_count, "packet")
    );
    note(FindingKind::Duplicates, duplicate_count, text);
}

/// Returns a hardware address as text.
pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    Value::Mac(mac).to_string()
}

/// Returns the number of connections as text.
fn connections(attempts: &Attempts) -> String {
    plural(attempts.flow_count, "connection")
}

impl Attempts {
    /// Returns whether there are many attempts, and most of them have other targets. A client that tries again has few.
    pub(crate) fn is_scan(&self) -> bool {
        let targets = self.ports.len().max(self.hosts.len());
        let are_most = targets as u64 * 5 >= self.flow_count * 4 || targets >= SCAN_TARGET_MANY;
        self.flow_count >= SCAN_FLOW_MIN && targets >= SCAN_TARGET_MIN && are_most
    }

    /// Returns the numbers of hosts and ports as text.
    fn targets(&self) -> String {
        let ending = |count: usize| if count == 1 { "" } else { "s" };
        let (hosts, ports) = (&self.hosts, &self.ports);
        format!(
            "to {} host{} and {} port{}",
            hosts.count(),
            ending(hosts.len()),
            ports.count(),
            ending(ports.len())
        )
    }
}

fn plain(kind: FindingKind, count: u64, text: String) -> Finding {
    Finding { kind, source: None, destination: None, port: None, count, text, command: None }
}

fn of_flow(kind: FindingKind, record: &FlowRecord, text: &str) -> Finding {
    let (source, destination) = (record.source_address(), record.destination_address());
    Finding {
        kind,
        source: Some(source),
        destination: Some(destination),
        port: record.destination_port(),
        count: 1,
        text: format!("{source} to {destination}: {text}"),
        command: FindingCommand::flows(format!("--community-id {}", record.key.community_id(0).as_str())),
    }
}

/// Returns the filter that selects the flows of a conversation.
fn conversation((source, destination, protocol, port): Conversation) -> String {
    let port = port.map(|port| format!(" and port {port}")).unwrap_or_default();
    let protocol = match IpProtocol(protocol) {
        IpProtocol::TCP => " and tcp".to_owned(),
        IpProtocol::UDP => " and udp".to_owned(),
        other => format!(" and proto {}", other.0),
    };
    format!("host {source} and host {destination}{protocol}{port}")
}

/// Returns the number of times, and the period and jitter of the first ones, if they are regular.
fn period(times: &Times) -> Option<(u64, Duration, f64)> {
    let mut starts: Vec<Timestamp> = times.starts.clone();
    starts.sort_unstable();
    if starts.len() < BEACON_COUNT_MIN {
        return None;
    }
    let mut gaps: Vec<u64> = starts
        .windows(2)
        .filter_map(|pair| match pair {
            [one, other] => Some(other.as_nanos() - one.as_nanos()),
            _ => None,
        })
        .collect();
    gaps.sort_unstable();
    let median = *gaps.get(gaps.len() / 2)?;
    let mut deviations: Vec<u64> = gaps.iter().map(|gap| gap.abs_diff(median)).collect();
    deviations.sort_unstable();
    // Most gaps are regular, not only half of them.
    let deviation = *deviations.get(deviations.len() * 3 / 4)?;
    let jitter = deviation as f64 / median.max(1) as f64;
    let period = Duration::from_nanos(median);
    (period >= BEACON_PERIOD_MIN && jitter <= BEACON_JITTER_MAX).then_some((times.count, period, jitter))
}

/// Returns the last two labels of a name, or three if the second to last is one under which a country registers, as `co.uk`.
fn domain(name: &str) -> &str {
    let name = name.trim_end_matches('.');
    let labels: Vec<&str> = name.rsplit('.').take(3).collect();
    let len = match labels.as_slice() {
        [top, second, third] if top.len() == 2 && second.len() <= 3 => {
            top.len() + second.len() + third.len() + 2
        }
        [top, second, ..] => top.len() + second.len() + 1,
        _ => name.len(),
    };
    name.get(name.len() - len..).unwrap_or(name)
}
