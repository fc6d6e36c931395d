//! Comparison of records with the rows of Zeek's `conn.log`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowgauge::base::{EndReason, IpProtocol, Ports, Side, TcpFlags};
use flowgauge::pipeline::{Flows, Sink};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{FlowView, Interest, Timeouts, TrackerConfig};

use super::corpus;
use super::support::run_capture;

/// The reason for which a row differs from a record. `docs/compare.md` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The row describes the packets that carry a tunnel. In flowgauge a frame counts once, in its innermost flow.
    OuterFlow,
    /// Zeek examines UDP on any port if the content resembles Teredo. In flowgauge the port decides.
    ByContent,
    /// Zeek counts no payload of unknown protocols.
    UnknownTransport,
    /// flowgauge counts fragments as packets, Zeek the datagram as one packet. Octets and payload agree.
    Fragments,
    /// Zeek removes a half-closed connection without SYN after 3 s.
    PartialClose,
    /// The script of the test dropped packets.
    Script,
    /// The log describes another capture, which the corpus does not contain.
    OtherCapture,
}

/// The rows of a log that differ.
struct Differing {
    log: &'static str,
    class: Class,
    /// Row numbers in the log, and the differences.
    rows: &'static [(usize, &'static str)],
}

/// The difference of a row if no record has its endpoints.
const MISSING: &str = "no such flow";

const DIFFERING: &[Differing] = &[
    Differing {
        log: "scripts.base.frameworks.netcontrol.packetfilter/conn.log",
        class: Class::Script,
        rows: &[
            (
                3,
                "orig_pkts 28, Zeek 1; orig_ip_bytes 21673, Zeek 48; orig_bytes 14705, Zeek 0; resp_pkts 25, Zeek 1; resp_ip_bytes 1546, Zeek 48; resp_bytes 538, Zeek 0; duration 7.576953, Zeek 0.346950; conn_state SF, Zeek S1; history ShAdDaTFf, Zeek Sh",
            ),
            (
                5,
                "orig_pkts 17, Zeek 1; orig_ip_bytes 1865, Zeek 64; orig_bytes 969, Zeek 0; resp_pkts 10, Zeek 1; resp_ip_bytes 690, Zeek 60; resp_bytes 162, Zeek 0; duration 0.057320, Zeek 0.004707; history ShAdDa, Zeek Sh",
            ),
        ],
    },
    Differing {
        log: "core.tunnels.teredo/conn.log",
        class: Class::PartialClose,
        rows: &[
            (
                1,
                "orig_pkts 2, Zeek 1; orig_ip_bytes 80, Zeek 40; duration 10.270160, Zeek 0.000357; conn_state RSTO, Zeek SHR; history ^fAR, Zeek ^fA",
            ),
            (
                2,
                "orig_pkts 2, Zeek 1; orig_ip_bytes 80, Zeek 40; resp_pkts 2, Zeek 1; resp_ip_bytes 80, Zeek 40; duration 6.966297, Zeek 0.000387; conn_state SF, Zeek SHR; history ^fAFa, Zeek ^fA",
            ),
            (3, MISSING),
            (4, MISSING),
        ],
    },
    Differing {
        log: "core.tunnels.geneve-47101/conn.log",
        class: Class::OtherCapture,
        rows: &[(1, MISSING), (2, MISSING)],
    },
    Differing {
        log: "core.tunnels.teredo/conn.log",
        class: Class::OuterFlow,
        rows: &[(10, MISSING), (11, MISSING)],
    },
    Differing {
        log: "core.tunnels.teredo/conn.log",
        class: Class::ByContent,
        rows: &[
            (
                18,
                "resp_pkts 0, Zeek 1; resp_ip_bytes 0, Zeek 52; resp_bytes 0, Zeek 4; duration 0.000000, Zeek 0.463615",
            ),
            (19, MISSING),
        ],
    },
    Differing {
        log: "core.tunnels.geneve/conn.log",
        class: Class::OuterFlow,
        rows: &[(1, MISSING), (2, MISSING)],
    },
    Differing {
        log: "core.tunnels.gtp.different_dl_and_ul/conn.log",
        class: Class::Fragments,
        rows: &[(1, "resp_pkts 91, Zeek 49; history ShADadf, Zeek ShADadXf")],
    },
    Differing {
        log: "core.tunnels.gtp.different_dl_and_ul/conn.log",
        class: Class::OuterFlow,
        rows: &[(2, MISSING), (3, MISSING)],
    },
    Differing {
        log: "core.tunnels.gtp.inner_teredo/conn.log",
        class: Class::OuterFlow,
        rows: &[
            (1, MISSING),
            (2, MISSING),
            (3, MISSING),
            (4, MISSING),
            (5, MISSING),
            (6, MISSING),
            (7, MISSING),
            (8, MISSING),
            (9, MISSING),
            (10, MISSING),
            (11, MISSING),
            (12, MISSING),
            (13, MISSING),
            (14, MISSING),
            (15, MISSING),
        ],
    },
    Differing {
        log: "core.tunnels.max-depth/conn.log.cut",
        class: Class::OuterFlow,
        rows: &[(2, MISSING), (3, MISSING), (4, MISSING)],
    },
    Differing {
        log: "core.tunnels.max-depth-exceeded/conn.log.cut",
        class: Class::OuterFlow,
        rows: &[(1, MISSING), (2, MISSING), (3, MISSING)],
    },
    Differing {
        log: "core.vntag/conn.log",
        class: Class::UnknownTransport,
        rows: &[(1, "orig_bytes 240, Zeek 0")],
    },
];

/// Records, and the number of octets of each side according to sequence numbers, initiator first.
#[derive(Default)]
struct Records(Vec<(FlowRecord, [Option<u32>; 2])>);

impl Sink for Records {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        let record = flow.record(reason);
        let by_sequence = |side: Side, flags: TcpFlags| {
            let (initial, next) = flow.sequence_numbers(side)?;
            // SYN precedes the first octet, and FIN follows the last one.
            let has_fin = flags.contains(TcpFlags::FIN);
            u32::try_from(next.distance_from(initial) - 1 - i32::from(has_fin)).ok()
        };
        let sides = [
            by_sequence(record.initiator, record.forward.tcp_flags),
            by_sequence(record.initiator.other(), record.reverse.tcp_flags),
        ];
        self.0.push((record, sides));
    }
}

/// The values of a row by column name.
pub(crate) struct Row {
    cells: Vec<(String, String)>,
}

impl Row {
    /// Returns whether the log has a column with this name.
    #[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.cells.iter().any(|(column, _)| column == name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.cells.iter().find(|(column, _)| column == name);
        found.map(|(_, value)| value.as_str()).filter(|value| *value != "-")
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).map(|text| text.parse().expect("a number"))
    }

    /// Returns address and port of the originator or responder, as far as the row has them.
    pub(crate) fn end(&self, name: &str) -> (Option<IpAddr>, Option<u16>) {
        let address = self.get(&format!("id.{name}_h")).map(|text| text.parse().expect("an address"));
        (address, self.number(&format!("id.{name}_p")).map(|port| port as u16))
    }

    /// Returns whether a record has the endpoints and the protocol of the row, in either direction.
    fn is_of(&self, record: &FlowRecord) -> bool {
        let protocol = match self.get("proto") {
            Some("tcp") => Some(6),
            Some("udp") => Some(17),
            _ => self.number("ip_proto"),
        };
        let own = ends(record);
        let expected = [self.end("orig"), self.end("resp")];
        let is_same = |order: [usize; 2]| {
            order.iter().zip(expected).all(|(position, (address, port))| {
                let (own_address, own_port) = own[*position];
                address.is_none_or(|address| address == own_address)
                    && port.is_none_or(|port| port == own_port)
            })
        };
        // Logs of mail tests contain only the service.
        let is_mail = self.get("service") != Some("smtp") || record.destination_port() == Some(25);
        is_mail
            && protocol.is_none_or(|number| number == u64::from(record.protocol().0))
            && (is_same([0, 1]) || is_same([1, 0]))
    }
}

/// The columns of a log that `zeek-truncated` wrote without a header.
const HEADER_OF_COMMUNITY_ID_LOG: &str =
    "id.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tcommunity_id";

/// Returns the rows of a log, with or without Zeek's header lines.
pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).expect("a log");
    let header = text.lines().find_map(|line| line.strip_prefix("#fields\t"));
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let is_without_header = lines.clone().next().is_some_and(|line| line.contains("\t1:"));
    let header = match header {
        Some(header) => header,
        None if is_without_header => HEADER_OF_COMMUNITY_ID_LOG,
        None => lines.next().expect("a header"),
    };
    let columns: Vec<_> = header.split('\t').map(str::to_owned).collect();
    lines
        .map(|line| Row { cells: columns.iter().cloned().zip(line.split('\t').map(str::to_owned)).collect() })
        .collect()
}

/// Returns the two endpoints of a record, initiator first, with ICMP types instead of ports.
fn ends(record: &FlowRecord) -> [(IpAddr, u16); 2] {
    let (source, target) = (record.source_address(), record.destination_address());
    match record.key.ports() {
        Ports::Icmp { kind, counterpart, .. } => {
            let numbers = [kind.into(), counterpart.into()];
            let at = record.initiator.index();
            [(source, numbers[at]), (target, numbers[1 - at])]
        }
        // Zeek writes 0 for protocols without ports.
        _ => [(source, record.source_port().unwrap_or(0)), (target, record.destination_port().unwrap_or(0))],
    }
}

/// Returns the differences between a row and a record.
fn differences(row: &Row, (record, by_sequence): &(FlowRecord, [Option<u32>; 2])) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |name: &str, own: String, expected: Option<String>| {
        if let Some(expected) = expected.filter(|expected| *expected != own) {
            found.push(format!("{name} {own}, Zeek {expected}"));
        }
    };
    let expected = |name: &str| row.get(name).map(str::to_owned);
    compare(
        "orig_h",
        record.source_address().to_string(),
        row.end("orig").0.map(|address| address.to_string()),
    );
    compare("orig_p", ends(record)[0].1.to_string(), row.end("orig").1.map(|port| port.to_string()));
    for (prefix, side, by_sequence) in
        [("orig", &record.forward, by_sequence[0]), ("resp", &record.reverse, by_sequence[1])]
    {
        let counters = &side.counters;
        // Zeek counts TCP octets by sequence numbers: missing and retransmitted octets count once each.
        let payload = match record.protocol() {
            IpProtocol::TCP => u64::from(by_sequence.unwrap_or(0)),
            _ => counters.payload_octet_count,
        };
        for (name, own) in
            [("pkts", counters.packet_count), ("ip_bytes", counters.ip_octet_count), ("bytes", payload)]
        {
            let name = format!("{prefix}_{name}");
            compare(&name, own.to_string(), expected(&name));
        }
    }
    if let Some(duration) = expected("duration") {
        // The difference of two rounded times may be off by one microsecond.
        let micros = |seconds: f64| (seconds * 1e6).round();
        let own = micros(record.open_duration().as_secs_f64());
        if (own - micros(duration.parse().expect("seconds"))).abs() > 1.0 {
            compare("duration", format!("{:.6}", own / 1e6), Some(duration));
        }
    }
    compare("conn_state", record.conn_state.to_string(), expected("conn_state"));
    let history = Some(record.history.to_string()).filter(|history| !history.is_empty());
    compare("history", history.unwrap_or_else(|| "-".to_owned()), expected("history"));
    compare("community_id", record.community_id().to_string(), expected("community_id"));
    found
}

/// Returns a configuration with Zeek's default timeouts: `tcp_inactivity_timeout`, `tcp_close_delay`,
/// `udp_inactivity_timeout`, `icmp_inactivity_timeout`, `unknown_ip_inactivity_timeout`, and `dns_session_timeout`.
fn timeouts_of_zeek() -> TrackerConfig {
    let seconds = |count| Some(Duration::from_secs(count));
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(seconds(60));
    config.timeouts.established = seconds(300);
    config.timeouts.linger = seconds(5);
    let dns = config.add_class(seconds(10)).expect("fewer classes than the maximum");
    config.classify(move |key| {
        let is_dns = key.protocol() == IpProtocol::UDP
            && [Side::A, Side::B].map(|side| key.port(side)).contains(&Some(53));
        is_dns.then_some(dns)
    });
    config
}

fn without_timeouts() -> TrackerConfig {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    config
}

fn records(path: &Path, config: TrackerConfig) -> Records {
    let (mut records, _) = run_capture(path, config, Records::default());
    records.0.sort_by_key(|(record, _)| record.start);
    records
}

/// Returns the differences of each row, which are empty if a record agrees with it.
fn compared(rows: &[Row], records: &Records) -> Vec<String> {
    let mut is_used = vec![false; records.0.len()];
    let mut outcomes = vec![None; rows.len()];
    // First, exact matches. The remaining records are compared with the remaining rows.
    for is_exact in [true, false] {
        for (row, outcome) in rows.iter().zip(&mut outcomes) {
            if outcome.is_some() {
                continue;
            }
            let candidates = records.0.iter().enumerate().filter(|(position, _)| !is_used[*position]);
            let found = candidates
                .filter(|(_, (record, _))| row.is_of(record))
                .map(|(position, record)| (position, differences(row, record)))
                .find(|(_, differences)| !is_exact || differences.is_empty());
            if let Some((position, differences)) = found {
                is_used[position] = true;
                *outcome = Some(differences.join("; "));
            }
        }
    }
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| MISSING.to_owned())).collect()
}

/// Returns the connection logs in a folder, sorted by name.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of baselines");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("conn")));
    paths.sort();
    paths
}

#[test]
fn rows_of_conn_logs_agree_or_belong_to_a_listed_class() {
    let Some(captures) = corpus::captures() else { return };
    let (mut agreeing_count, mut per_class) = (0, BTreeMap::<Class, usize>::new());
    let (mut failures, mut seen) = (Vec::new(), Vec::new());
    for capture in &captures {
        for path in capture.oracles("zeek-conn").flat_map(|folder| logs(&folder)) {
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            let log = format!("{}/{}", folder.display(), path.file_name().unwrap_or_default().display());
            // The script of this test prevents Zeek's timeouts.
            let has_no_timeouts = log.ends_with("conn-limited.log");
            let config = if has_no_timeouts { without_timeouts() } else { timeouts_of_zeek() };
            let rows = rows(&path);
            let outcomes = compared(&rows, &records(&capture.path(), config));
            for (number, outcome) in (1..).zip(outcomes) {
                let stated = DIFFERING.iter().filter(|entry| entry.log == log).find_map(|entry| {
                    let (_, difference) = entry.rows.iter().find(|(row, _)| *row == number)?;
                    Some((entry.class, *difference))
                });
                match stated {
                    None if outcome.is_empty() => agreeing_count += 1,
                    Some((class, difference)) if difference == outcome => {
                        *per_class.entry(class).or_default() += 1
                    }
                    _ => failures.push(format!("{log}: ({number}, \"{outcome}\")")),
                }
                let class = stated.map_or("agrees".to_owned(), |(class, _)| format!("{class:?}: {outcome}"));
                println!("{log} {number}: {class}");
            }
            seen.push(log);
        }
    }
    println!("{agreeing_count} rows agree, others by class: {per_class:?}");
    assert!(agreeing_count > 0, "nothing was compared");
    let unseen: Vec<_> =
        DIFFERING.iter().map(|entry| entry.log).filter(|log| !seen.iter().any(|seen| seen == log)).collect();
    assert!(unseen.is_empty(), "no such logs: {unseen:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
