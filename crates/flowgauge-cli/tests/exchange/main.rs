//! Exchange of flow records with other programs over UDP: `flowgauge flows --format ipfix` to nfcapd, nfacctd, goflow2 and
//! tshark; softflowd, and the sFlow agent of pmacct, to `flowgauge collect`.
//!
//! Each program must agree on packets and octets of each direction of each flow. A test whose program is not installed
//! prints a note and passes. If `FLOWGAUGE_COLLECTORS` is set to `required`, the test fails instead:
//!
//! ```sh
//! FLOWGAUGE_COLLECTORS=required cargo test -p flowgauge-cli --test exchange
//! ```
//!
//! Debian has the packages nfdump, pmacct, softflowd and tshark; goflow2 is installed by
//! `go install github.com/netsampler/goflow2/v2/cmd/goflow2@v2.2.6`.
#![cfg(target_os = "linux")]

mod collectors;
#[path = "../support/folder.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod folder;
#[path = "../support/port.rs"]
mod port;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;
mod sfprobe;
mod softflowd;
mod tshark;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use port::free_port;
use process::{Process, wait_for};

/// One direction of a flow: protocol, source, source port, destination, destination port. Protocols without ports have
/// the port 0.
type Direction = (u8, IpAddr, u16, IpAddr, u16);

/// Flow records, packets and octets of IP of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    record_count: u64,
    packet_count: u64,
    octet_count: u64,
}

/// Totals of all directions with packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Directions(BTreeMap<Direction, Totals>);

impl Directions {
    fn add(&mut self, direction: Direction, (packet_count, octet_count): (u64, u64)) {
        if packet_count == 0 {
            return;
        }
        let (protocol, source, source_port, destination, destination_port) = direction;
        let port = |port| if matches!(protocol, 6 | 17 | 132) { port } else { 0 };
        let key = (protocol, source, port(source_port), destination, port(destination_port));
        let totals = self.0.entry(key).or_default();
        totals.record_count += 1;
        totals.packet_count += packet_count;
        totals.octet_count += octet_count;
    }

    /// Adds both directions of a record of `flowgauge` in ndjson.
    fn add_ndjson(&mut self, record: &Value) {
        let number = |name: &str| record[name].as_u64().unwrap_or_default();
        let address = |name: &str| record[name].as_str().unwrap().parse::<IpAddr>().unwrap();
        let port = |name: &str| number(name) as u16;
        let source = (address("source_address"), port("source_port"));
        let destination = (address("destination_address"), port("destination_port"));
        let protocol = number("protocol") as u8;
        let forward = (number("packet_count"), number("ip_octet_count"));
        let reverse = (number("reverse_packet_count"), number("reverse_ip_octet_count"));
        self.add((protocol, source.0, source.1, destination.0, destination.1), forward);
        self.add((protocol, destination.0, destination.1, source.0, source.1), reverse);
    }

    fn of_ndjson(lines: &[u8]) -> Self {
        let mut directions = Self::default();
        for line in std::str::from_utf8(lines).unwrap().lines() {
            directions.add_ndjson(&serde_json::from_str(line).unwrap());
        }
        directions
    }

    /// Returns the directions without the number of records, for a program that sums the records of a direction.
    fn without_record_counts(mut self) -> Self {
        self.0.values_mut().for_each(|totals| totals.record_count = 0);
        self
    }
}

/// Returns the path of a program; `None`, with a note, if it is not installed and not required.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        let is_required = std::env::var("FLOWGAUGE_COLLECTORS").is_ok_and(|value| value == "required");
        assert!(!is_required, "{name} is required, but not installed");
        eprintln!("{name} is not installed: the test is skipped");
    }
    found
}

/// Waits until a program listens on a UDP port.
fn wait_for_port(port: u16) {
    let address = format!(":{port:04X} ");
    wait_for("a program that listens", || {
        ["/proc/net/udp", "/proc/net/udp6"].iter().any(|path| {
            let sockets = std::fs::read_to_string(path).unwrap_or_default();
            sockets.lines().any(|line| {
                line.split_whitespace().nth(1).is_some_and(|local| format!("{local} ").ends_with(&address))
            })
        })
    });
}

fn capture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name).to_str().unwrap().to_owned()
}

fn flowgauge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// Returns the records of a capture in ndjson.
fn flows(name: &str) -> Vec<u8> {
    let output = flowgauge().args(["flows", &capture(name), "--format", "ndjson"]).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Exports the flows of a capture to a UDP port.
fn export(name: &str, port: u16, options: &[&str]) {
    let to = format!("udp://127.0.0.1:{port}");
    let args = ["flows", &capture(name), "--format", "ipfix", "--to", &to];
    let output = flowgauge().args(args).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
