//! Outputs that are full, closed or limited: the exit status and the message name the problem, rows are whole, and no file that
//! is not whole gets its name.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::folder::Folder;

/// Commands that write to standard output.
pub(crate) const TO_STDOUT: [&[&str]; 9] = [
    &["flows", "web.pcap"],
    &["flows", "web.pcap", "--format", "csv"],
    &["flows", "web.pcap", "--format", "ndjson"],
    &["flows", "web.pcap", "--format", "ndjson", "--shards", "2"],
    &["flows", "web.pcap", "--format", "ndjson", "--sort", "octets"],
    &["sessions", "web.pcap"],
    &["sessions", "web.pcap", "--format", "table"],
    &["streams", "ssh.pcap", "--to-stdout", "both", "--filter", "port 57544"],
    &["slice", "web.pcap", "--filter", "tcp", "-w", "-"],
];

fn in_data(mut command: Command) -> Command {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    command.current_dir(data).env_remove("COLUMNS").stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The command, to be run where the examples are.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = command_with_summary(args);
    command.arg("--quiet");
    command
}

/// The same with its summary.
pub(crate) fn command_with_summary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.args(args);
    in_data(command)
}

/// The same while files may have no more than so many blocks of the shell's `ulimit -f`. The signal is ignored, so that the write
/// fails instead.
fn limited(block_count: u32, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {block_count}; exec \"$0\" \"$@\" --quiet");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_flowgauge")]).args(args);
    in_data(command)
}

fn whole(args: &[&str]) -> Vec<u8> {
    let output = command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn message(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_full_device_is_named() {
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
fn a_reader_that_leaves_is_no_error() {
    for args in TO_STDOUT {
        let expected = whole(args);
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

/// What fits is written, and is what would have been written; the system may take a part of the last row.
#[test]
fn a_limit_on_standard_output_is_named() {
    let folder = Folder::new();
    for args in TO_STDOUT {
        let expected = whole(args);
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
fn a_slice_that_does_not_fit_leaves_what_was_there() {
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

/// Streams that are whole have their files, and so has the index if it is. What does not fit is not there, and the index tells so.
#[test]
fn streams_that_do_not_fit_leave_what_was_there() {
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

/// Each file is what was there before, or all that the index says of it.
fn check_streams(all: &Folder, folder: &Folder, is_forced: bool) {
    let index = fs::read(folder.path("index.ndjson")).ok().filter(|index| index != b"precious");
    let mut lens = std::collections::BTreeMap::new();
    if let Some(index) = &index {
        assert_eq!(index.last(), Some(&b'\n'), "the index ends with a whole line");
        for line in index.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
            let line: serde_json::Value = serde_json::from_slice(line).expect("a whole line");
            if let Some(file) = line["file"].as_str() {
                lens.insert(file.to_owned(), line["octet_count"].as_u64().unwrap());
            }
        }
    }
    for name in folder.names() {
        assert!(!name.ends_with(".part"), "{name} is left");
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
    assert!(lens.is_empty(), "the index names what is not there: {lens:?}");
}

/// A directory that cannot be written to holds no half of a file either.
#[test]
fn the_manual_is_whole_or_not_there() {
    let folder = Folder::new();
    let out = folder.path("man");
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 3; exec \"$0\" man --out \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_flowgauge"), &out]);
    let output = in_data(command).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", message(&output));
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        assert!(fs::read(&path).unwrap().ends_with(b"\n"), "{}", path.display());
        assert_eq!(path.extension().unwrap(), "1");
    }
}
