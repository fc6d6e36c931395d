//! Which programs read a capture into flows: their commands, what they print, and where to get them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads a number from what a program printed.
pub type Count = fn(&str) -> Option<u64>;

/// How many packets a program says that it saw.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// It says nothing of it.
    Nothing,
    /// All of the file's: another number is a failure.
    All(Count),
    /// Those that it takes for packets of flows, which depends on the links and tunnels that it knows.
    OfFlows(Count),
}

/// A program and how it is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// With its version, for people.
    pub name: String,
    /// What it does with the file, in some words.
    pub does: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What to make of its output.
    pub seen: Seen,
    /// Whether it gives each flow to others, as a record of its own: compared with those of ours that do.
    pub is_export: bool,
    /// Whether it may use all cores; otherwise it is held on one.
    pub is_on_all_cores: bool,
}

/// What the commands need to know.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The capture.
    pub trace: PathBuf,
    /// Where output may be left; exists, and is removed later.
    pub folder: PathBuf,
    /// Where somebody listens for NetFlow on this host.
    pub netflow_port: u16,
    /// The Python in which to look for nfstream.
    pub python: String,
    /// Our command.
    pub flowgauge: PathBuf,
    /// The peer crate, as a command.
    pub flowscope: PathBuf,
}

/// The programs that are installed, and for each of the others its name and how to get it.
#[must_use]
pub fn find(setting: &Setting) -> (Vec<Program>, Vec<(&'static str, &'static str)>) {
    let trace = setting.trace.display().to_string();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let ours = |does, is_export, arguments: &[&str]| {
        let mut command = vec![setting.flowgauge.display().to_string(), "flows".to_owned()];
        command.extend(arguments.iter().map(|it| (*it).to_owned()));
        command.push(trace.clone());
        Program {
            name: format!("flowgauge flows {}", arguments.join(" ")),
            does,
            command,
            seen: Seen::All(before_packets),
            is_export,
            is_on_all_cores: false,
        }
    };
    found.push(ours("flows, the ten largest as a table", false, &["--format", "table", "--top", "10"]));
    found.push(ours("flows, all records with Community IDs", true, &["--format", "ndjson"]));
    found.push(Program {
        name: format!("flowscope {FLOWSCOPE_VERSION}"),
        does: "flows, counted",
        command: vec![setting.flowscope.display().to_string(), trace.clone()],
        seen: Seen::OfFlows(before_packets),
        is_export: false,
        is_on_all_cores: false,
    });
    let collector = format!("127.0.0.1:{}", setting.netflow_port);
    let folder = setting.folder.display().to_string();
    let mut others: Vec<(&'static str, Peer<'_>)> = Vec::new();
    let mut other = |program, does, version, arguments: &[&str], seen, install| {
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        others.push((program, Peer { does, version, arguments, seen, install }));
    };
    other(
        "capinfos",
        "walks the records only",
        "--version",
        &["-c", "-M", &trace],
        Seen::All(|text| after(text, "Number of packets:")),
        "apt install wireshark-common",
    );
    other(
        "tcpdump",
        "copies the records",
        "--version",
        &["-r", &trace, "-w", "/dev/null"],
        Seen::Nothing,
        "apt install tcpdump",
    );
    other(
        "softflowd",
        "flows, NetFlow 9 over UDP",
        "-h",
        &["-d", "-r", &trace, "-v", "9", "-n", &collector, "-m", "1000000"],
        Seen::All(|text| Some(after(text, "Packets processed:")? + before(text, " non-IP").unwrap_or(0))),
        "apt install softflowd",
    );
    other(
        "nfpcapd",
        "flows, files of nfdump",
        "-V",
        &["-r", &trace, "-l", &folder],
        Seen::All(|text| after(text, "Processed:")),
        "apt install nfdump",
    );
    other(
        "ndpiReader",
        "flows, protocols by content",
        "-h",
        &["-i", &trace, "-v", "0"],
        Seen::All(|text| before(text, " packets total")),
        "apt install libndpi-bin",
    );
    other(
        "tshark",
        "dissects all, TCP and UDP conversations",
        "--version",
        &["-r", &trace, "-q", "-z", "conv,tcp", "-z", "conv,udp"],
        Seen::Nothing,
        "apt install tshark",
    );
    for (program, peer) in others {
        let Some(path) = in_path(program) else {
            missing.push((program, peer.install));
            continue;
        };
        let mut command = vec![path.display().to_string()];
        command.extend(peer.arguments);
        let version = version(&[path.display().to_string(), peer.version.to_owned()]);
        found.push(Program {
            name: format!("{program} {version}"),
            does: peer.does,
            command,
            seen: peer.seen,
            is_export: matches!(program, "softflowd" | "nfpcapd"),
            is_on_all_cores: false,
        });
    }
    let python = |code: &str| vec![setting.python.clone(), "-c".to_owned(), code.to_owned()];
    let version = version(&python("import nfstream; print(nfstream.__version__)"));
    if version.is_empty() {
        missing.push(("nfstream", "pip install nfstream, and --python with the interpreter that has it"));
    } else {
        let mut command = python(NFSTREAM);
        command.push(trace);
        found.push(Program {
            name: format!("nfstream {version}"),
            does: "flows in Python, no protocols",
            command,
            seen: Seen::OfFlows(before_packets),
            is_export: false,
            is_on_all_cores: false,
        });
    }
    (found, missing)
}

/// As in the lock file, which a test holds.
pub const FLOWSCOPE_VERSION: &str = "0.22.0";

const NFSTREAM: &str = "
import sys, nfstream
flows = packets = 0
for flow in nfstream.NFStreamer(source=sys.argv[1], n_dissections=0, statistical_analysis=False, n_meters=1):
    flows += 1
    packets += flow.bidirectional_packets
print(packets, 'packets,', flows, 'flows')
";

/// A program that may be installed.
struct Peer<'a> {
    does: &'static str,
    version: &'a str,
    arguments: Vec<String>,
    seen: Seen,
    install: &'static str,
}

/// Where a program lies that a shell would run, or one of the system's.
#[must_use]
pub fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The first thing with a point between digits in what a command prints; nothing if it fails to run.
fn version(command: &[String]) -> String {
    let Ok(output) = Command::new(&command[0]).args(&command[1..]).output() else { return String::new() };
    let text = [output.stdout, output.stderr].concat();
    first_version(&String::from_utf8_lossy(&text)).unwrap_or_default()
}

fn first_version(text: &str) -> Option<String> {
    let words = text.split(|sign: char| !(sign.is_ascii_digit() || sign == '.'));
    let is_version = |word: &&str| word.contains('.') && word.split('.').all(|part| !part.is_empty());
    words.map(|word| word.trim_end_matches('.')).find(is_version).map(str::to_owned)
}

/// The number behind a text.
fn after(text: &str, label: &str) -> Option<u64> {
    let rest = text.split(label).nth(1)?.trim_start();
    rest.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

/// The number in front of a text.
fn before(text: &str, label: &str) -> Option<u64> {
    let rest = text.split(label).next().filter(|rest| rest.len() < text.len())?;
    rest.rsplit(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

fn before_packets(text: &str) -> Option<u64> {
    before(text, " packets")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn numbers_are_those_beside_the_labels() {
        assert_eq!(after("Processed: 416719, skipped: 3502", "Processed:"), Some(416_719));
        assert_eq!(before("\tIP packets: 270709  of 416719 packets total", " packets total"), Some(416_719));
        assert_eq!(before("Ignored packets: 6426 (6008 non-IP, 418 too short)", " non-IP"), Some(6008));
        assert_eq!((after("no label", "Processed:"), before("no label", " packets")), (None, None));
    }

    #[test]
    fn versions_are_found_in_sentences() {
        assert_eq!(first_version("TShark (Wireshark) 4.0.17 (Git v4.0)."), Some("4.0.17".to_owned()));
        assert_eq!(
            first_version("This is softflowd version 1.1.0. Valid options:"),
            Some("1.1.0".to_owned())
        );
        assert_eq!(first_version("no module 1 found. Sorry."), None);
    }

    #[test]
    fn the_peer_crate_has_the_version_that_tables_name() {
        let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"))
            .expect("a lock file");
        assert!(lock.contains(&format!("name = \"flowscope\"\nversion = \"{FLOWSCOPE_VERSION}\"")));
    }
}
