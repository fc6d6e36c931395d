//! Comparison of the checksum verification of outermost packets with tshark.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use flowgauge::base::{Frame, FrameBatch, IpProtocol, Limits};
use flowgauge::decode::link::{
    Checksum, Checksums, Decapsulated, Decapsulation, TunnelPorts, checksums, decapsulate,
};
use flowgauge::source::{FileSource, PcapngWriter, Source as _};

use super::corpus::{self, Capture};

/// Values of tshark's fields `*.checksum.status`.
const BAD: &str = "0";
const GOOD: &str = "1";
const UNVERIFIED: &str = "2";
const NOT_PRESENT: &str = "3";
const ILLEGAL: &str = "4";

const FIELDS: [&str; 3] = ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status"];

/// A frame of the corpus: its capture, and the result of flowgauge if it has a packet.
type Checked<'c> = (&'c str, Option<(IpProtocol, Checksums)>);

/// Appends the results for the frames of a capture to `all`, and the frames to a file with those of all captures: tshark takes
/// half a second to begin.
fn check<'c>(capture: &'c Capture, joined: &mut PcapngWriter<impl Write>, all: &mut Vec<Checked<'c>>) {
    let mut source = FileSource::open(capture.path()).expect("a readable capture");
    let mut batch = FrameBatch::new();
    while source.next_batch(&mut batch).is_ok_and(|next| !next.is_end()) {
        for frame in batch.iter() {
            let found =
                decapsulate(&frame, Decapsulation::Outermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT);
            let own = match found {
                Decapsulated::Packet(found) => Some((found.ip.protocol, checksums(frame.data, &found))),
                _ => None,
            };
            all.push((&capture.name, own));
            joined.write(&Frame { interface: 0, ..frame }, &[]).expect("a frame");
        }
    }
}

fn theirs(path: &Path) -> Option<Vec<[String; 3]>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path).args(["-T", "fields", "-E", "occurrence=f"]);
    for setting in [
        "ip.defragment:FALSE",
        "ipv6.defragment:FALSE",
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.desegment_tcp_streams:FALSE",
    ] {
        command.args(["-o", setting]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        [(); 3].map(|()| cells.next().unwrap_or_default())
    };
    Some(text.lines().map(row).collect())
}

/// Returns whether tshark's status corresponds to flowgauge's result.
fn agrees(own: Checksum, other: &str) -> bool {
    match own {
        Checksum::Right => other == GOOD,
        Checksum::Absent => other == NOT_PRESENT,
        Checksum::Wrong => other == BAD,
        // tshark 4 reports a zero checksum over IPv6 as illegal, and a partial checksum as bad or good, depending on
        // its preferences.
        Checksum::Zero => [BAD, ILLEGAL, NOT_PRESENT].contains(&other),
        Checksum::Partial => [BAD, GOOD].contains(&other),
        _ => [UNVERIFIED, ""].contains(&other),
    }
}

#[test]
fn checksum_results_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let path = std::env::temp_dir().join(format!("flowgauge-checksums-{}.pcapng", std::process::id()));
    let file = File::create(&path).expect("a temporary file");
    let mut joined = PcapngWriter::new(BufWriter::new(file)).expect("a temporary file");
    let mut frames = Vec::new();
    captures.iter().for_each(|capture| check(capture, &mut joined, &mut frames));
    joined.finish().expect("a temporary file");
    let rows = theirs(&path);
    std::fs::remove_file(&path).expect("a temporary file");
    let Some(rows) = rows else {
        assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(frames.len(), rows.len());
    let (mut compared, mut found) = (BTreeMap::new(), BTreeMap::<_, usize>::new());
    for ((capture, own), row) in frames.iter().zip(&rows) {
        let Some((protocol, own)) = own else { continue };
        let transport = match *protocol {
            IpProtocol::TCP => 1,
            IpProtocol::UDP => 2,
            _ => 0,
        };
        for (checksum, field) in [(own.header, 0), (own.transport, transport)] {
            if checksum == Checksum::None {
                continue;
            }
            *compared.entry((FIELDS[field], checksum)).or_insert(0usize) += 1;
            if !agrees(checksum, &row[field]) {
                let difference = format!("{checksum:?}, tshark {:?}", row[field]);
                *found.entry((*capture, FIELDS[field], difference)).or_default() += 1;
            }
        }
    }
    println!("{compared:#?}");
    let found: Vec<_> = found
        .iter()
        .map(|((capture, field, difference), count)| (*capture, *field, difference.as_str(), *count))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    for result in [Checksum::Right, Checksum::Wrong, Checksum::Partial] {
        assert!(compared.contains_key(&(FIELDS[1], result)), "no TCP segment has the result {result:?}");
    }
}
