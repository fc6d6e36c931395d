//! The layers of the frames of a capture, as tshark names them, determined once for all tests of the process.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use super::corpus::Capture;

/// Fields of each frame: the layers, joined by colons, and the ends of all its headers.
const FIELDS: [&str; 9] = [
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
];

type Once = Arc<OnceLock<Option<Arc<str>>>>;

static OF_CAPTURES: LazyLock<Mutex<BTreeMap<String, Once>>> = LazyLock::new(Mutex::default);

/// Returns the fields of all frames, one line each, separated by tabs; several values of a field by commas. `None` if tshark
/// is not installed.
pub(crate) fn fields(capture: &Capture) -> Option<Arc<str>> {
    let once = Arc::clone(OF_CAPTURES.lock().expect("no panic").entry(capture.name.clone()).or_default());
    once.get_or_init(|| dissect(capture)).clone()
}

fn dissect(capture: &Capture) -> Option<Arc<str>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into())
}

/// Returns false if tshark finds none of some layers in a capture, so that a run for their fields would have no result.
pub(crate) fn has_any(capture: &Capture, layers: &[&str]) -> bool {
    let is_found = |line: &str| line.split(['\t', ',', ':']).any(|layer| layers.contains(&layer));
    fields(capture).is_none_or(|fields| fields.lines().any(is_found))
}
