//! Comparison of the logs of `export::zeek` with those of Zeek, in all columns that both have.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flowgauge::base::{IpProtocol, Side, Timestamp};
use flowgauge::decode::link::Decapsulation;
use flowgauge::export::LogFiles;
use flowgauge::export::zeek::{Logs, ZeekConfig};
use flowgauge::pipeline::{LogSink, Pipeline, RunOptions, Transactions};
use flowgauge::source::FileSource;
use flowgauge::tracker::{Timeouts, TrackerConfig};
use flowgauge::transaction::TransactionConfig;

use super::corpus;

/// The reason for which a row differs. `docs/compare.md` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The script of the test drops packets, logs other commands, calls functions, or loads no analyzers.
    Script,
    /// The log describes another capture, which the corpus does not contain.
    OtherCapture,
    /// Zeek removes a half-closed connection without SYN after 3 s.
    PartialClose,
    /// Zeek examines UDP on any port if the content resembles Teredo, and confirms it by content. In flowgauge the port decides.
    ByContent,
    /// flowgauge counts fragments as packets, Zeek the datagram as one packet. Payload agrees.
    Fragments,
    /// Zeek has a limit of nested tunnels, which the test lowers.
    Depth,
    /// The line end before the delimiter of a part belongs to the part in Zeek, and to the delimiter in RFC 2046.
    LineEnd,
}

/// The rows of a log that differ.
struct Differing {
    log: &'static str,
    class: Class,
    /// Row numbers in the log, and the differences.
    rows: &'static [(usize, &'static str)],
}

/// The difference of a row without a counterpart.
const MISSING: &str = "no such row";

const DIFFERING: &[Differing] = &[
    Differing {
        log: "bifs.decode_base64_conn/weird.log",
        class: Class::Script,
        rows: &[(1, MISSING), (2, MISSING), (3, MISSING)],
    },
    Differing {
        log: "core.expire-all-timers/conn-all.log",
        class: Class::Script,
        rows: &[(1, "service http, Zeek -"), (2, "service http, Zeek -")],
    },
    Differing {
        log: "core.expire-all-timers/conn-limited.log",
        class: Class::Script,
        rows: &[(1, "service http, Zeek -")],
    },
    Differing {
        log: "scripts.base.frameworks.netcontrol.packetfilter/conn.log",
        class: Class::Script,
        rows: &[
            (
                3,
                "service smtp, Zeek -; duration 7.576953, Zeek 0.346950; orig_bytes 14705, Zeek 0; resp_bytes 538, Zeek 0; conn_state SF, Zeek S1; history ShAdDaTFf, Zeek Sh; orig_pkts 28, Zeek 1; orig_ip_bytes 21673, Zeek 48; resp_pkts 25, Zeek 1; resp_ip_bytes 1546, Zeek 48",
            ),
            (
                5,
                "service smtp, Zeek -; duration 0.057320, Zeek 0.004707; orig_bytes 969, Zeek 0; resp_bytes 162, Zeek 0; history ShAdDa, Zeek Sh; orig_pkts 17, Zeek 1; orig_ip_bytes 1865, Zeek 64; resp_pkts 10, Zeek 1; resp_ip_bytes 690, Zeek 60",
            ),
        ],
    },
    Differing {
        log: "scripts.base.protocols.ftp.ftp-password-pass-command-hidden/ftp.log",
        class: Class::Script,
        rows: &[(1, MISSING), (2, MISSING)],
    },
    Differing {
        log: "scripts.base.protocols.ftp.ftp-password-pass-command/ftp.log",
        class: Class::Script,
        rows: &[(1, MISSING), (2, MISSING)],
    },
    Differing {
        log: "scripts.policy.protocols.conn.community-id-logging-flipped/conn.log.cut",
        class: Class::Script,
        rows: &[(1, "service http, Zeek -")],
    },
    Differing {
        log: "core.tunnels.geneve-47101/conn.log",
        class: Class::OtherCapture,
        rows: &[(1, MISSING), (2, MISSING)],
    },
    Differing {
        log: "core.tunnels.geneve-47101/tunnel.log",
        class: Class::OtherCapture,
        rows: &[(1, MISSING), (2, MISSING)],
    },
    Differing {
        log: "core.tunnels.teredo/conn.log",
        class: Class::PartialClose,
        rows: &[
            (
                1,
                "duration 10.270160, Zeek 0.000357; conn_state RSTO, Zeek SHR; history ^fAR, Zeek ^fA; orig_pkts 2, Zeek 1; orig_ip_bytes 80, Zeek 40",
            ),
            (
                2,
                "duration 6.966297, Zeek 0.000387; conn_state SF, Zeek SHR; history ^fAFa, Zeek ^fA; orig_pkts 2, Zeek 1; orig_ip_bytes 80, Zeek 40; resp_pkts 2, Zeek 1; resp_ip_bytes 80, Zeek 40",
            ),
            (3, MISSING),
            (4, MISSING),
        ],
    },
    Differing {
        log: "core.tunnels.teredo/conn.log",
        class: Class::ByContent,
        rows: &[
            (11, "service teredo, Zeek -"),
            (16, "service -, Zeek teredo"),
            (
                18,
                "duration -, Zeek 0.463615; orig_bytes -, Zeek 4; resp_bytes -, Zeek 4; resp_pkts 0, Zeek 1; resp_ip_bytes 0, Zeek 52",
            ),
            (19, MISSING),
        ],
    },
    Differing {
        log: "core.tunnels.teredo/http.log",
        class: Class::ByContent,
        rows: &[(2, MISSING), (3, MISSING)],
    },
    Differing {
        log: "core.tunnels.teredo/tunnel.log",
        class: Class::ByContent,
        rows: &[(3, MISSING), (6, MISSING)],
    },
    Differing {
        log: "core.tunnels.gtp.different_dl_and_ul/conn.log",
        class: Class::Fragments,
        rows: &[
            (1, "history ShADadf, Zeek ShADadXf; resp_pkts 91, Zeek 49"),
            (2, "orig_pkts 91, Zeek 49; orig_ip_bytes 68000, Zeek 67160"),
        ],
    },
    Differing {
        log: "core.tunnels.max-depth-exceeded/conn.log.cut",
        class: Class::Depth,
        rows: &[(3, "history D, Zeek DX; service vxlan, Zeek -")],
    },
    Differing {
        log: "core.tunnels.max-depth-exceeded/weird.log",
        class: Class::Depth,
        rows: &[(1, MISSING)],
    },
    Differing {
        log: "scripts.base.protocols.smtp.attachment/files.log",
        class: Class::LineEnd,
        rows: &[(2, "seen_bytes 1866, Zeek 1868"), (3, "seen_bytes 10807, Zeek 10809")],
    },
    Differing {
        log: "scripts.base.protocols.smtp.rfc822-msg-file-analysis-multi-session/files.cut",
        class: Class::Script,
        rows: &[
            (1, "parent_fuid -, Zeek F8cH26hNF5zzM8RRh"),
            (2, "seen_bytes 1866, Zeek 1868; parent_fuid -, Zeek F8cH26hNF5zzM8RRh"),
            (3, "seen_bytes 10807, Zeek 10809; parent_fuid -, Zeek F8cH26hNF5zzM8RRh"),
            (4, MISSING),
            (5, "parent_fuid -, Zeek Fc5KpS3kUYqDLwWSMf"),
            (6, MISSING),
        ],
    },
];

/// Columns that no two programs share: identifiers, and names of the program. Whether they are set is compared.
const OWN: [&str; 8] =
    ["uid", "fuid", "tunnel_parents", "orig_fuids", "resp_fuids", "fuids", "parent_fuid", "peer"];

/// Logs in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>>);

struct Log(Memory, &'static str);

impl Write for Log {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let Self(Memory(logs), name) = self;
        logs.lock().expect("one thread").entry(name).or_default().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogFiles for Memory {
    type Out = Log;

    fn open(&mut self, log: &'static str, _: Timestamp) -> io::Result<Log> {
        Ok(Log(self.clone(), log))
    }

    fn close(&mut self, _: &'static str, _: Log) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the logs of a capture, by name.
pub(super) fn logs_of(capture: &Path, timeouts: TrackerConfig) -> BTreeMap<&'static str, Vec<Row>> {
    let memory = Memory::default();
    let logs = Logs::each(memory.clone(), ZeekConfig::default().has_tunnels(true));
    let mut config = timeouts;
    config.key_policy.decapsulation = Decapsulation::Both;
    let mut decoding = TransactionConfig::default();
    decoding.decodes = true;
    let sink = Transactions::new(LogSink::new(logs)).config(decoding);
    let builder = Pipeline::builder().tracker(config).encapsulation(true);
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    let mut source = FileSource::open(capture).expect("a readable capture");
    let run = pipeline.run(&mut source, &RunOptions::default());
    run.unwrap_or_else(|error| panic!("{}: {error}", capture.display()));
    pipeline.into_sink().into_inner().close().expect("memory");
    let logs = std::mem::take(&mut *memory.0.lock().expect("one thread"));
    let text = |log| String::from_utf8(log).expect("UTF-8");
    logs.into_iter().map(|(name, log)| (name, rows(&text(log)))).collect()
}

/// The values of a row by column name.
#[derive(Clone, Debug)]
pub(super) struct Row {
    cells: Vec<(String, String)>,
}

impl Row {
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().map(|(column, _)| column.as_str())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.cells.iter().find(|(column, _)| column == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether a row may describe the same as this one: it has the same endpoints, in either direction, and the same
    /// number, identifier, command or content.
    fn corresponds(&self, other: &Self) -> bool {
        let end = |row: &Self, name: &str| {
            (
                row.get(&format!("id.{name}_h")).map(str::to_owned),
                row.get(&format!("id.{name}_p")).map(str::to_owned),
            )
        };
        let is_end = |(address, port): (Option<String>, Option<String>),
                      other: (Option<String>, Option<String>)| {
            (address.is_none() || address == other.0) && (port.is_none() || port == other.1)
        };
        let is_same = |names: [&str; 2]| {
            ["orig", "resp"]
                .into_iter()
                .zip(names)
                .all(|(own, their)| is_end(end(self, own), end(other, their)))
        };
        let keys = [
            "proto",
            "trans_depth",
            "trans_id",
            "query",
            "command",
            "mime_type",
            "tunnel_type",
            "action",
            "name",
        ];
        let mut keys = keys.into_iter();
        (is_same(["orig", "resp"]) || is_same(["resp", "orig"]))
            && keys.all(|key| self.get(key).is_none_or(|value| other.get(key).is_none_or(|own| own == value)))
    }
}

/// The columns of a log that `zeek-cut` wrote without a header.
const HEADER_OF_COMMUNITY_ID_LOG: &str =
    "id.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tcommunity_id";

/// Returns the rows of a log, with or without Zeek's header lines.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let header = text.lines().find_map(|line| line.strip_prefix("#fields\t"));
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let is_without_header = lines.clone().next().is_some_and(|line| line.contains("\t1:"));
    let header = match header {
        Some(header) => header,
        None if is_without_header => HEADER_OF_COMMUNITY_ID_LOG,
        None => lines.next().expect("a header"),
    };
    let columns: Vec<_> = header.split('\t').map(str::to_owned).collect();
    let row = |line: &str| Row {
        cells: columns.iter().cloned().zip(line.split('\t').map(str::to_owned)).collect(),
    };
    lines.map(row).collect()
}

/// Returns the differences between a row of Zeek and an own one.
fn differences(row: &Row, own: &Row) -> Vec<String> {
    let is_set = |value: &str| !matches!(value, "-" | "(empty)");
    let sorted = |text: &str| {
        let items: BTreeSet<_> = text.split(',').collect();
        items.into_iter().collect::<Vec<_>>().join(",")
    };
    let mut found = Vec::new();
    for (name, expected) in &row.cells {
        // Times are masked in the baselines, and the column of Community IDs is that of another script.
        let Some(value) = own.get(name).filter(|_| name != "ts") else { continue };
        let is_equal = match name.as_str() {
            name if OWN.contains(&name) => is_set(value) == is_set(expected),
            // The difference of two rounded times may be off by one microsecond.
            "duration" | "rtt" => match (value.parse::<f64>(), expected.parse::<f64>()) {
                (Ok(value), Ok(expected)) => (value - expected).abs() < 1.5e-6,
                _ => value == expected,
            },
            "rcptto" | "to" | "cc" | "service" => sorted(value) == sorted(expected),
            _ => value == expected,
        };
        if !is_equal {
            found.push(format!("{name} {value}, Zeek {expected}"));
        }
    }
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

/// Returns the differences of each row, which are empty if an own row agrees with it.
fn compared(rows: &[Row], own: &[Row]) -> Vec<String> {
    let mut is_used = vec![false; own.len()];
    let mut outcomes = vec![None; rows.len()];
    // First, exact matches. The remaining rows are compared with each other.
    for is_exact in [true, false] {
        for (row, outcome) in rows.iter().zip(&mut outcomes) {
            if outcome.is_some() {
                continue;
            }
            let candidates = own.iter().enumerate().filter(|(position, _)| !is_used[*position]);
            let found = candidates
                .filter(|(_, own)| row.corresponds(own))
                .map(|(position, own)| (position, differences(row, own)))
                .find(|(_, differences)| !is_exact || differences.is_empty());
            if let Some((position, differences)) = found {
                is_used[position] = true;
                *outcome = Some(differences.join("; "));
            }
        }
    }
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| MISSING.to_owned())).collect()
}

/// The logs that are compared.
const COMPARED: [&str; 12] =
    ["conn", "dns", "files", "ftp", "http", "quic", "smtp", "ssh", "ssl", "tunnel", "weird", "x509"];

/// Returns the logs in a folder of baselines that are compared, with their names, sorted.
fn baselines(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let entries = std::fs::read_dir(folder).expect("a folder of baselines");
    let path = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = path
        .filter_map(|path| {
            let file = path.file_name()?.to_str()?;
            let first = file.split(['.', '-']).next()?;
            let is_log = !file.contains("-events");
            let name = COMPARED.into_iter().find(|name| *name == first && is_log)?;
            Some((name, path.clone()))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn rows_of_logs_agree_or_belong_to_a_listed_class() {
    let Some(captures) = corpus::captures() else { return };
    let mut per_log = BTreeMap::<&str, (usize, BTreeMap<Class, usize>)>::new();
    let (mut failures, mut seen) = (Vec::new(), Vec::new());
    for capture in &captures {
        let folders = ["zeek", "zeek-conn", "zeek(multi)"].into_iter().flat_map(|kind| capture.oracles(kind));
        for (name, path) in folders.flat_map(|folder| baselines(&folder)) {
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            let log = format!("{}/{}", folder.display(), path.file_name().unwrap_or_default().display());
            if seen.contains(&log) && name != "conn" {
                continue;
            }
            // The script of this test prevents Zeek's timeouts.
            let has_no_timeouts = log.ends_with("conn-limited.log");
            let config = if has_no_timeouts { without_timeouts() } else { timeouts_of_zeek() };
            let text = std::fs::read_to_string(&path).expect("a log");
            let own = logs_of(&capture.path(), config).remove(name).unwrap_or_default();
            let (agreeing_count, per_class) = per_log.entry(name).or_default();
            for (number, outcome) in (1..).zip(compared(&rows(&text), &own)) {
                let stated = DIFFERING.iter().filter(|entry| entry.log == log).find_map(|entry| {
                    let (_, difference) = entry.rows.iter().find(|(row, _)| *row == number)?;
                    Some((entry.class, *difference))
                });
                match stated {
                    None if outcome.is_empty() => *agreeing_count += 1,
                    Some((class, difference)) if difference == outcome => {
                        *per_class.entry(class).or_default() += 1
                    }
                    _ => failures.push(format!("{log}: ({number}, {outcome:?}),")),
                }
            }
            seen.push(log);
        }
    }
    for (log, (agreeing_count, per_class)) in &per_log {
        println!("{log}.log: {agreeing_count} rows agree, others by class: {per_class:?}");
    }
    let unseen: Vec<_> =
        DIFFERING.iter().map(|entry| entry.log).filter(|log| !seen.iter().any(|seen| seen == log)).collect();
    assert!(unseen.is_empty(), "no such logs: {unseen:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let agreeing_count: usize = per_log.values().map(|(count, _)| count).sum();
    assert!(agreeing_count > 80, "{agreeing_count} rows");
}
