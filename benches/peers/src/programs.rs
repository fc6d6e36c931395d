//! Programs that read a capture into flows: their commands, their output, and how to install them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads a number from the output of a program.
pub type Count = fn(&str) -> Option<u64>;

/// Number of packets that a program prints.
#[derive(Clone, Copy, Debug)]
pub enum PrintedCount {
    /// The program does not print a number.
    None,
    /// The number of all packets in the file; a different number is a failure.
    All(Count),
    /// The number of packets in flows, which depends on the link types and tunnels that the program supports.
    OfFlows(Count),
}

/// A program and how it is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name and version for display.
    pub name: String,
    /// Short description of the work of the program.
    pub does: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Evaluation of the output.
    pub printed_count: PrintedCount,
    /// Whether the program exports a record of each flow. It is then compared with the flowgauge command that does so.
    pub is_export: bool,
    /// Whether the program may use all cores; otherwise it is pinned to one core.
    pub is_on_all_cores: bool,
}

/// Paths and values for the commands.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Path of the capture.
    pub trace: PathBuf,
    /// Existing folder for output, which is removed later.
    pub folder: PathBuf,
    /// Port of this host that accepts NetFlow.
    pub netflow_port: u16,
    /// Python interpreter for nfstream.
    pub python: String,
    /// Path of the flowgauge command.
    pub flowgauge: PathBuf,
    /// Folder of the commands that run libraries.
    pub libraries: PathBuf,
}

/// Returns the installed programs, and the name and the installation command of each missing program.
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
            printed_count: PrintedCount::All(before_packets),
            is_export,
            is_on_all_cores: false,
        }
    };
    found.push(ours("flows, the ten largest in a table", false, &["--format", "table", "--top", "10"]));
    found.push(ours("flows, all records with Community IDs", true, &["--format", "ndjson"]));
    let mut library = |name: &str, does, program: &str, printed_count| {
        found.push(Program {
            name: name.to_owned(),
            does,
            command: vec![setting.libraries.join(program).display().to_string(), trace.clone()],
            printed_count,
            is_export: false,
            is_on_all_cores: false,
        });
    };
    let (all, of_flows) = (PrintedCount::All(before_packets), PrintedCount::OfFlows(before_packets));
    library("flowgauge (library)", "flows, only counted", "flowgauge_flows", all);
    library("prototype", "five-tuples without any state, the least work", "prototype_flows", all);
    let flowscope = format!("flowscope {FLOWSCOPE_VERSION}");
    library(&flowscope, "flows, only counted", "flowscope_flows", of_flows);
    let collector = format!("127.0.0.1:{}", setting.netflow_port);
    let folder = setting.folder.display().to_string();
    let mut others: Vec<(&'static str, Peer<'_>)> = Vec::new();
    let mut other = |program, does, version, arguments: &[&str], printed_count, install| {
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        others.push((program, Peer { does, version, arguments, printed_count, install }));
    };
    other(
        "capinfos",
        "reads the records only",
        "--version",
        &["-c", "-M", &trace],
        PrintedCount::All(|text| after(text, "Number of packets:")),
        "apt install wireshark-common",
    );
    other(
        "tcpdump",
        "copies the records",
        "--version",
        &["-r", &trace, "-w", "/dev/null"],
        PrintedCount::None,
        "apt install tcpdump",
    );
    other(
        "softflowd",
        "flows, NetFlow 9 over UDP",
        "-h",
        &["-d", "-r", &trace, "-v", "9", "-n", &collector, "-m", "1000000"],
        PrintedCount::All(|text| {
            Some(after(text, "Packets processed:")? + before(text, " non-IP").unwrap_or(0))
        }),
        "apt install softflowd",
    );
    other(
        "nfpcapd",
        "flows, nfdump files",
        "-V",
        &["-r", &trace, "-l", &folder],
        PrintedCount::All(|text| after(text, "Processed:")),
        "apt install nfdump",
    );
    other(
        "ndpiReader",
        "flows, protocols recognized by content",
        "-h",
        &["-i", &trace, "-v", "0"],
        PrintedCount::All(|text| before(text, " packets total")),
        "apt install libndpi-bin",
    );
    other(
        "tshark",
        "dissects all packets, TCP and UDP conversations",
        "--version",
        &["-r", &trace, "-q", "-z", "conv,tcp", "-z", "conv,udp"],
        PrintedCount::None,
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
            printed_count: peer.printed_count,
            is_export: matches!(program, "softflowd" | "nfpcapd"),
            is_on_all_cores: false,
        });
    }
    let python = |code: &str| vec![setting.python.clone(), "-c".to_owned(), code.to_owned()];
    let version = version(&python("import nfstream; print(nfstream.__version__)"));
    if version.is_empty() {
        missing.push(("nfstream", "run pip install nfstream and pass the interpreter with --python"));
    } else {
        let mut command = python(NFSTREAM);
        command.push(trace);
        found.push(Program {
            name: format!("nfstream {version}"),
            does: "flows in Python, without protocols",
            command,
            printed_count: PrintedCount::OfFlows(before_packets),
            is_export: false,
            is_on_all_cores: false,
        });
    }
    (found, missing)
}

/// Version in the lock file; a test compares them.
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
    printed_count: PrintedCount,
    install: &'static str,
}

/// Returns the path of a program in `PATH` or in `/usr/sbin`.
#[must_use]
pub fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the first version number that a command prints, or an empty string if it cannot be run.
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

/// Returns the number after a label.
fn after(text: &str, label: &str) -> Option<u64> {
    let rest = text.split(label).nth(1)?.trim_start();
    rest.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the number before a label.
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
    fn numbers_are_found_before_and_after_labels() {
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
    fn the_version_of_the_peer_crate_in_the_tables_matches_the_lock_file() {
        let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"))
            .expect("a lock file");
        assert!(lock.contains(&format!("name = \"flowscope\"\nversion = \"{FLOWSCOPE_VERSION}\"")));
    }
}
