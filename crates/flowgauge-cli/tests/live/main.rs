//! `flowgauge live`: mirror sessions and captures over TCP on loopback, and interfaces in network namespaces.
//!
//! The test of `view` needs tmux. The tests of `interfaces` need the feature `live`, root, and the programs ip, tcpreplay and iperf3. Without them, they
//! print a note and pass. If `FLOWGAUGE_ROOT_TESTS` is set to `required`, they fail instead:
//!
//! ```sh
//! FLOWGAUGE_ROOT_TESTS=required cargo test -p flowgauge-cli --features live --test live
//! ```
#![cfg(target_os = "linux")]

#[path = "../support/folder.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod folder;
#[cfg(feature = "live")]
mod interfaces;
#[cfg(feature = "live")]
mod network;
#[path = "../support/port.rs"]
mod port;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;
mod receiving;
#[cfg(feature = "view")]
mod view;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use folder::Folder;
use port::free_port;
use process::{Process, wait_for};

/// `flowgauge live` with its output in files.
struct Live {
    process: Process,
    folder: Folder,
}

/// What a run of `flowgauge live` wrote.
#[derive(Debug)]
struct Outcome {
    status: Option<i32>,
    records: Vec<Value>,
    /// Lines of standard error after the first one.
    messages: String,
}

impl Live {
    /// Starts the command, and waits until it captures. `command` runs the program, for example in a namespace.
    fn start(mut command: Command, args: &[&str]) -> Self {
        let folder = Folder::new();
        let create = |name| File::create(folder.path(name)).unwrap();
        command
            .args(["live", "--format", "ndjson"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(create("out"))
            .stderr(create("err"));
        let mut live = Self { process: Process::start(&mut command), folder };
        wait_for("the start of the capture", || {
            live.process.has_ended() || live.messages().contains("capturing on")
        });
        live
    }

    fn messages(&self) -> String {
        fs::read_to_string(self.folder.path("err")).unwrap()
    }

    /// Interrupts the command, and returns what it wrote.
    fn interrupt(mut self) -> Outcome {
        assert!(!self.process.has_ended(), "the command has ended: {}", self.messages());
        self.process.signal("INT");
        self.end()
    }

    /// Waits for the end of the command, and returns what it wrote.
    fn end(mut self) -> Outcome {
        let status = self.process.end();
        let out = fs::read_to_string(self.folder.path("out")).unwrap();
        let records = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let messages = self.messages();
        let messages = messages
            .strip_prefix("flowgauge: capturing on ")
            .map_or(&*messages, |rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
        Outcome { status, records, messages: messages.to_owned() }
    }
}

fn flowgauge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.env_remove("COLUMNS");
    command
}

fn capture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name).to_str().unwrap().to_owned()
}

/// Returns the records of a file.
fn flows(path: &str, options: &[&str]) -> Vec<Value> {
    let args = ["flows", path, "--format", "ndjson", "--quiet"];
    let output = flowgauge().args(args).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8(output.stdout).unwrap();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The fields of records that do not depend on the times of the packets, and the number of equal records.
fn comparable(records: &[Value]) -> BTreeMap<String, usize> {
    const FIELDS: [&str; 22] = [
        "protocol",
        "source_address",
        "source_port",
        "destination_address",
        "destination_port",
        "packet_count",
        "octet_count",
        "ip_octet_count",
        "payload_octet_count",
        "tcp_flags",
        "vlan_ids",
        "ttl_min",
        "source_mac_address",
        "reverse_packet_count",
        "reverse_octet_count",
        "reverse_payload_octet_count",
        "reverse_tcp_flags",
        "reverse_vlan_ids",
        "destination_mac_address",
        "conn_state",
        "community_id",
        "application",
    ];
    let mut counts = BTreeMap::new();
    for record in records {
        let fields: Vec<_> = FIELDS.iter().map(|name| format!("{name}={}", record[name])).collect();
        *counts.entry(fields.join(" ")).or_default() += 1;
    }
    counts
}
