//! Comparison of TLS hellos in QUIC with tshark, and of JA4 with the expectations of the captures' suites.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use flowgauge::base::{FlowKey, IpProtocol};
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::quic::{self, Message, QuicParser};
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::tracker::Flow;

use super::support::run_without_timeouts;
use super::{corpus, layers};

flowgauge::protocols! {
    /// Only the parser of QUIC.
    #[derive(Debug)]
    enum Set;
    /// Its messages.
    #[derive(Debug)]
    enum Observed;
    parsers { Quic: QuicParser = &quic::PROTOCOL }
}

/// The layers of QUIC, and the ports that tshark dissects as QUIC here. It finds no QUIC in a capture without them.
const LAYERS_AND_PORTS: &[&str] = &["quic", "gquic", "4431", "4432", "4433", "4434", "4435", "4436"];

/// Differences, and the reason.
const LISTED: &[(&str, &str, &str)] = &[(
    "tests/data/quic.pcap",
    "+4435 client 0x6b3343cf web.example h3 121f6e4f22ee3205214b0676ed64b9e2",
    "after a Version Negotiation tshark 4.0 does not decrypt the client's next packet, which has the same connection id",
)];

/// Values of a capture: lines of hellos with the server's port, in order, unsupported versions by ports, and JA4 in
/// order.
#[derive(Debug, Default)]
struct Collect {
    hellos: Vec<String>,
    unread: BTreeMap<(u16, u16), String>,
    ja4: Vec<String>,
    /// Flows that were recognized, by content or by port.
    recognized: BTreeSet<FlowKey>,
}

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Set>;

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognized { .. } => self.recognized.insert(*flow.view.key()),
            event => panic!("{}: {event:?}", flow.view.key()),
        };
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Observed<'_>) {
        let Observed::Quic(message) = message;
        let port = |side| flow.view.key().port(side).expect("a port");
        let (source, destination) = (port(meta.side), port(meta.side.other()));
        match message {
            Message::ClientHello(hello) => {
                let tls = &hello.hello;
                let name = tls.server_name().map(|name| name.to_string()).unwrap_or_default();
                let alpn: Vec<_> = tls.alpn().iter().map(|name| name.to_string()).collect();
                let version = hello.quic_version.0;
                let alpn = alpn.join(",");
                self.hellos.push(format!("{destination} client 0x{version:08x} {name} {alpn} {}", tls.ja3()));
                self.ja4.push(tls.ja4().to_string());
            }
            Message::ServerHello(hello) => {
                let version = hello.quic_version.0;
                self.hellos.push(format!("{source} server 0x{version:08x} {}", hello.hello.ja3s()));
            }
            Message::UnsupportedVersion(unread) => {
                self.unread.insert((source, destination), unread.quic_version.to_string());
            }
            _ => {}
        }
    }
}

fn ours(path: &Path) -> Collect {
    run_without_timeouts(path, Collect::default())
}

/// Returns the fields of the frames that match a filter, one line each, or `None` if tshark is not installed.
fn fields(path: &Path, filter: &str, names: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path).args([
        "-d",
        "udp.port==4431-4436,quic",
        "-Y",
        filter,
        "-T",
        "fields",
    ]);
    for name in names {
        command.args(["-e", name]);
    }
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// Returns the first of several values of a field.
fn first(values: &str) -> &str {
    values.split(',').next().unwrap_or_default()
}

fn theirs(path: &Path) -> Option<Collect> {
    let mut collect = Collect::default();
    let names = [
        "udp.srcport",
        "udp.dstport",
        "gquic.version",
        "tls.handshake.type",
        "quic.version",
        "tls.handshake.extensions_server_name",
        "tls.handshake.extensions_alpn_str",
        "tls.handshake.ja3",
        "tls.handshake.ja3s",
    ];
    let filter = "gquic.version or quic.version and (tls.handshake.type == 1 or tls.handshake.type == 2)";
    for line in fields(path, filter, &names)? {
        let [source, destination, google, kind, version, name, alpn, ja3, ja3s] = &line[..] else {
            panic!("{line:?}");
        };
        if !google.is_empty() {
            let ports = (source.parse().expect("a port"), destination.parse().expect("a port"));
            collect.unread.entry(ports).or_insert_with(|| google.clone());
            continue;
        }
        let version = first(version);
        collect.hellos.push(match first(kind) {
            "1" => format!("{destination} client {version} {name} {alpn} {ja3}"),
            _ => format!("{source} server {version} {ja3s}"),
        });
    }
    Some(collect)
}

/// Returns the differences, with `+` for lines that only flowgauge has and `-` for those that only tshark has.
fn differences(own: &Collect, other: &Collect) -> Vec<String> {
    let mut found = Vec::new();
    let (mut own_rest, mut others) = (own.hellos.iter().peekable(), other.hellos.iter().peekable());
    while own_rest.peek().is_some() || others.peek().is_some() {
        match (own_rest.peek(), others.peek()) {
            (Some(own), Some(other)) if own == other => {
                own_rest.next();
                others.next();
            }
            (Some(line), _) if !other.hellos.contains(line) => {
                found.extend(own_rest.next().map(|line| format!("+{line}")))
            }
            (_, Some(_)) => found.extend(others.next().map(|line| format!("-{line}"))),
            (Some(_), None) => found.extend(own_rest.next().map(|line| format!("+{line}"))),
            (None, None) => {}
        }
    }
    if own.unread != other.unread {
        found.push(format!("{:?}, tshark {:?}", own.unread, other.unread));
    }
    found
}

#[test]
fn hellos_match_tshark() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/quic.pcap");
    let mut paths = vec![("tests/data/quic.pcap".to_owned(), recording, true)];
    let captures = corpus::captures();
    paths.extend(
        captures.iter().flatten().map(|capture| {
            (capture.name.clone(), capture.path(), layers::has_any(capture, LAYERS_AND_PORTS))
        }),
    );
    let (mut capture_count, mut hello_count, mut unread_count, mut failures) = (0, 0, 0, Vec::new());
    for (name, path, has_quic) in &paths {
        let own = ours(path);
        let Some(other) = (if *has_quic { theirs(path) } else { Some(Collect::default()) }) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let found = differences(&own, &other);
        let listed: Vec<_> = LISTED.iter().filter(|entry| entry.0 == name).map(|entry| entry.1).collect();
        if found == listed {
            capture_count += usize::from(!own.hellos.is_empty() || !own.unread.is_empty());
            hello_count += own.hellos.len() - listed.len();
            unread_count += own.unread.len();
        } else {
            failures.push(format!("{name}: {found:#?}"));
        }
    }
    for (name, line, why) in LISTED {
        println!("{name}: {line}: {why}");
    }
    println!(
        "{hello_count} hellos and {unread_count} flows of Google's versions equal in {capture_count} captures of {}",
        paths.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(hello_count > 0, "nothing was compared");
}

/// Returns the JA4 fingerprints of QUIC in a file with expectations, independent of its format.
fn expected(path: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_ja4 = |word: &&str| {
        let lens: Vec<_> = word.split('_').map(str::len).collect();
        word.starts_with("q1") && lens == [10, 12, 12]
    };
    words.filter(is_ja4).map(str::to_owned).collect()
}

#[test]
fn ja4_matches_the_expectations_of_the_suites() {
    let Some(captures) = corpus::captures() else { return };
    let mut count = 0;
    for capture in &captures {
        let files = ["ja4", "arkime"].into_iter().flat_map(|kind| capture.oracles(kind));
        // Not every suite supports QUIC.
        for expected in files.map(|path| expected(&path)).filter(|expected| !expected.is_empty()) {
            assert_eq!(ours(&capture.path()).ja4, expected, "{}", capture.name);
            count += expected.len();
        }
    }
    println!("{count} fingerprints equal");
    assert!(count > 0, "nothing was compared");
}

/// Returns the flows that nDPI identifies as QUIC, independent of the application.
fn flows_of_ndpi(path: &Path) -> BTreeSet<FlowKey> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let flow = |line: &str| {
        let (ends, proto) = line.trim().split_once("\tUDP ")?.1.split_once(" [proto: ")?;
        let name = proto.split_once('/')?.1.split([']', '.']).next()?;
        let (a, b) = ends.split_once(" <-> ").or_else(|| ends.split_once(" -> "))?;
        let end = |end: &str| {
            let (address, port) = end.rsplit_once(':').expect("an address and a port");
            (address.trim_matches(['[', ']']).to_owned(), port.parse().expect("a port"))
        };
        let (a, b) = (end(a), end(b));
        (name == "QUIC").then(|| corpus::key(IpProtocol::UDP.0, (&a.0, a.1), (&b.0, b.1)).0)
    };
    text.lines().filter_map(flow).collect()
}

#[test]
fn recognized_flows_match_ndpi() {
    let Some(captures) = corpus::captures() else { return };
    let mut count = 0;
    for capture in &captures {
        for path in capture.oracles("ndpi") {
            let (own, other) = (ours(&capture.path()).recognized, flows_of_ndpi(&path));
            assert_eq!(own, other, "{}", capture.name);
            count += own.len();
        }
    }
    println!("{count} flows recognized by both");
    assert!(count > 0, "nothing was compared");
}
