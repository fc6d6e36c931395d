//! Outputs that are full, closed or limited: the exit status and the message report the problem, rows are complete, and
//! an incomplete file never gets its final name.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::folder::Folder;

/// Commands that write to standard output.
pub(crate) const TO_STDOUT: [&[&str]; 12] = [
    &["flows", "web.pcap"],
    &["flows", "web.pcap", "--format", "csv"],
    &["flows", "web.pcap", "--format", "ndjson"],
    &["flows", "web.pcap", "--format", "ndjson", "--shards", "2"],
    &["flows", "web.pcap", "--format", "ndjson", "--sort", "octets"],
    &["flows", "web.pcap", "--format", "zeek"],
    &["sessions", "web.pcap"],
    &["sessions", "web.pcap", "--format", "zeek-json"],
    &["sessions", "web.pcap", "--format", "eve"],
    &["sessions", "web.pcap", "--format", "table"],
    &["streams", "ssh.pcap", "--to-stdout", "both", "--filter", "port 57544"],
    &["slice", "web.pcap", "--filter", "tcp", "-w", "-"],
];

fn in_example_folder(mut command: Command) -> Command {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    command.current_dir(data).env_remove("COLUMNS").stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The command without a summary, run in the folder of the example captures.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = command_with_summary(args);
    command.arg("--quiet");
    command
}

/// The same command with its summary.
pub(crate) fn command_with_summary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.args(args);
    in_example_folder(command)
}

/// The same command under `ulimit -f` of the shell, which limits the size of files to a number of blocks. The signal is
/// ignored, so that the write fails instead.
pub(crate) fn limited(block_count: u32, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {block_count}; exec \"$0\" \"$@\" --quiet");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_flowgauge")]).args(args);
    in_example_folder(command)
}

fn complete_output(args: &[&str]) -> Vec<u8> {
    let output = command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn message(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_full_device_is_reported() {
    for args in TO_STDOUT {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).output().unwrap();
        let message = message(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.starts_with("flowgauge: standard output: No space left"), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{args:?}: {message}");
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    for args in TO_STDOUT {
        let expected = complete_output(args);
        for read_len in [0, 1, 100] {
            let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
            let mut out = child.stdout.take().unwrap();
            let mut got = vec![0; read_len];
            out.read_exact(&mut got).unwrap();
            assert_eq!(got, expected[..read_len], "{args:?}");
            drop(out);
            let output = child.wait_with_output().unwrap();
            assert_eq!((output.status.code(), message(&output).as_str()), (Some(0), ""), "{args:?}");
        }
    }
}

/// The output up to the limit is unchanged; the last row may be incomplete, because the system may accept a part of a
/// write.
#[test]
fn a_size_limit_of_standard_output_is_reported() {
    let folder = Folder::new();
    for args in TO_STDOUT {
        let expected = complete_output(args);
        for block_count in [1, 3] {
            let path = folder.path("out");
            let file = fs::File::create(&path).unwrap();
            let output = limited(block_count, args).stdout(file).output().unwrap();
            let (message, got) = (message(&output), fs::read(&path).unwrap());
            assert!(expected.starts_with(&got), "{args:?}");
            if got.len() < expected.len() {
                assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
                assert!(message.starts_with("flowgauge: standard output: File too large"), "{message}");
            } else {
                assert_eq!((output.status.code(), message.as_str()), (Some(0), ""), "{args:?}");
            }
        }
    }
}

#[test]
fn a_slice_that_does_not_fit_leaves_existing_files_unchanged() {
    for block_count in [0, 1, 8, 100] {
        for is_forced in [false, true] {
            let folder = Folder::new();
            let out = folder.path("out.pcapng");
            let mut args = vec!["slice", "web.pcap", "--filter", "tcp", "-w", &out];
            if is_forced {
                folder.file("out.pcapng", b"precious");
                args.push("--force");
            }
            let output = limited(block_count, &args).output().unwrap();
            let message = message(&output);
            assert_eq!(output.status.code(), Some(1), "{message}");
            assert!(message.contains("out.pcapng: File too large"), "{message}");
            let expected: &[&str] = if is_forced { &["out.pcapng"] } else { &[] };
            assert_eq!(folder.names(), expected);
            assert!(!is_forced || fs::read(&out).unwrap() == b"precious");
        }
    }
}

/// Complete streams have their files, and a complete index has its file. The index does not list streams that did not
/// fit.
#[test]
fn streams_that_do_not_fit_leave_existing_files_unchanged() {
    let all = Folder::new();
    let status = command(&["streams", "ssh.pcap", "--out", &all.path("")]).status().unwrap();
    assert!(status.success());
    let names = all.names();
    for block_count in [0, 1, 2, 4, 8, 30, 50] {
        for is_forced in [false, true] {
            let folder = Folder::new();
            let out = folder.path("");
            let mut args = vec!["streams", "ssh.pcap", "--out", &out];
            if is_forced {
                names.iter().for_each(|name| drop(folder.file(name, b"precious")));
                args.push("--force");
            }
            let output = limited(block_count, &args).output().unwrap();
            let message = message(&output);
            assert_eq!(output.status.code(), Some(1), "{block_count}: {message}");
            assert!(message.contains(": File too large"), "{block_count}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            check_streams(&all, &folder, is_forced);
        }
    }
}

/// Checks that each file either has its previous content or is as complete as the index states.
fn check_streams(all: &Folder, folder: &Folder, is_forced: bool) {
    let index = fs::read(folder.path("index.ndjson")).ok().filter(|index| index != b"precious");
    let mut lens = std::collections::BTreeMap::new();
    if let Some(index) = &index {
        assert_eq!(index.last(), Some(&b'\n'), "the index ends with an incomplete line");
        for line in index.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
            let line: serde_json::Value = serde_json::from_slice(line).expect("an incomplete line");
            if let Some(file) = line["file"].as_str() {
                lens.insert(file.to_owned(), line["octet_count"].as_u64().unwrap());
            }
        }
    }
    for name in folder.names() {
        assert!(!name.ends_with(".part"), "the temporary file {name} remains");
        let octets = fs::read(folder.path(&name)).unwrap();
        if name == "index.ndjson" || (is_forced && octets == b"precious") {
            continue;
        }
        assert!(fs::read(all.path(&name)).unwrap().starts_with(&octets), "{name}");
        match lens.remove(&name) {
            Some(len) => assert_eq!(octets.len() as u64, len, "{name}"),
            None => assert!(index.is_none(), "{name} is not in the index"),
        }
    }
    assert!(lens.is_empty(), "the index lists missing files: {lens:?}");
}

/// If a manual page does not fit, the directory contains no incomplete page.
#[test]
fn no_manual_page_is_incomplete() {
    let folder = Folder::new();
    let out = folder.path("man");
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 3; exec \"$0\" man --out \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_flowgauge"), &out]);
    let output = in_example_folder(command).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", message(&output));
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        assert!(fs::read(&path).unwrap().ends_with(b"\n"), "{}", path.display());
        assert_eq!(path.extension().unwrap(), "1");
    }
}
