//! Signals while the command reads a pipe that stays open, or writes to one that is not read: the first signal ends the
//! input, so that all open flows are written in complete rows and files get their final names; the second one ends the
//! process.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::folder::Folder;
use super::outputs::{command, command_with_summary};
use super::process::{TIMEOUT, wait_for};

const HANGUP: i32 = 1;
const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;

/// Returns the signals that end the input. The command ignores SIGHUP if this process does, as under `nohup`.
fn signals() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignores_hangup = u64::from_str_radix(ignored, 16).unwrap() & 1 == 1;
    [INTERRUPT, TERMINATE, HANGUP].into_iter().filter(move |signal| *signal != HANGUP || !ignores_hangup)
}

/// The exit status of a run that a signal ended is this value plus the number of the signal, as in shells.
const STATUS_BASE: i32 = 128;

fn data(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)).unwrap()
}

fn send(signal: i32, child: &Child) {
    let status = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Returns the output of a command for a file, which replaces the argument `-`.
fn run_on(args: &[&str], path: &str) -> Vec<u8> {
    let args: Vec<_> = args.iter().map(|arg| if *arg == "-" { path } else { arg }).collect();
    command(&args).output().unwrap().stdout
}

/// Starts a command that reads standard input, and writes a capture to it. The pipe stays open.
fn start(args: &[&str], input: &[u8], out: Stdio) -> (Child, ChildStdin) {
    let mut child = command(args).stdin(Stdio::piped()).stdout(out).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    (child, stdin)
}

/// Makes a named pipe.
fn named_pipe(folder: &Folder) -> String {
    let path = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Returns whether a process has a file open.
fn has_open(child: &Child, path: &str) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
    entries.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(path)))
}

/// Returns whether all threads of a process sleep. If the input is a file, they sleep only while the output blocks.
fn is_asleep(child: &Child) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/task", child.id())) else { return false };
    entries.flatten().all(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
    })
}

/// Returns whether a process waits to read from a pipe or to write to one.
fn waits_for_pipe(child: &Child, kernel_function: &str) -> bool {
    let position = fs::read_to_string(format!("/proc/{}/wchan", child.id())).unwrap_or_default();
    // Not every kernel reports the function in which a process waits; then it is enough that the process sleeps.
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let is_asleep = stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'));
    is_asleep && (position.contains(kernel_function) || matches!(position.as_str(), "" | "0"))
}

#[test]
fn rows_are_complete_when_reading_is_interrupted() {
    let input = data("web.pcap");
    for signal in signals() {
        for args in [
            &["flows", "-", "--idle-timeout", "1ms", "--format", "ndjson"][..],
            &["flows", "-", "--idle-timeout", "1ms", "--format", "csv"],
            &["flows", "-", "--idle-timeout", "1ms", "--format", "ndjson", "--shards", "2"],
            &["sessions", "-"],
        ] {
            let folder = Folder::new();
            let out = folder.path("rows");
            let file = fs::File::create(&out).unwrap();
            // Rows of ended flows are written while the input continues.
            let (mut child, stdin) = start(args, &input, file.into());
            wait_for("rows", || fs::metadata(&out).unwrap().len() > 0);
            wait_for("the command to wait", || waits_for_pipe(&child, "poll"));
            send(signal, &child);
            let status = child.wait().unwrap();
            drop(stdin);
            assert_eq!(status.code(), Some(STATUS_BASE + signal), "{args:?}: {status}");
            // The rows of open flows are written too: the output equals that for the same input without a signal.
            let rows = fs::read(&out).unwrap();
            let folder = Folder::new();
            let whole = run_on(args, &folder.file("whole.pcap", &input));
            // Shards deliver the rows of a batch in any order.
            let sorted = |rows: &[u8]| {
                let mut rows: Vec<_> = rows.split(|octet| *octet == b'\n').map(<[u8]>::to_vec).collect();
                rows.sort();
                rows
            };
            assert!(sorted(&rows) == sorted(&whole), "{args:?}: {} octets of {}", rows.len(), whole.len());
            let rows = String::from_utf8(rows).unwrap();
            if !args.contains(&"csv") {
                for row in rows.lines() {
                    serde_json::from_str::<serde_json::Value>(row).expect("an incomplete row");
                }
            }
        }
    }
}

#[test]
fn output_is_a_prefix_when_writing_is_interrupted() {
    for signal in signals() {
        for args in [
            // More output than a pipe buffers.
            &["sessions", "dns.pcap", "mail.pcap", "web.pcap"][..],
            &["slice", "web.pcap", "--filter", "tcp", "-w", "-"],
            &["streams", "web.pcap", "--to-stdout", "both", "--filter", "port 80"],
        ] {
            let whole = command(args).output().unwrap().stdout;
            let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
            let mut out = child.stdout.take().unwrap();
            wait_for("a full pipe", || waits_for_pipe(&child, "pipe_write"));
            send(signal, &child);
            // The rows of the input so far are written when the pipe is read.
            let mut got = Vec::new();
            out.read_to_end(&mut got).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(STATUS_BASE + signal), "{args:?}");
            assert!(
                !got.is_empty() && got.len() <= whole.len(),
                "{args:?}: {} of {}",
                got.len(),
                whole.len()
            );
            if args[0] == "sessions" {
                assert!(got.ends_with(b"\n"));
                let rows = String::from_utf8(got).unwrap();
                rows.lines().for_each(|row| drop(serde_json::from_str::<serde_json::Value>(row).unwrap()));
            }
        }
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    for (first, second) in [(INTERRUPT, INTERRUPT), (INTERRUPT, TERMINATE), (TERMINATE, TERMINATE)] {
        let args = ["sessions", "dns.pcap", "mail.pcap", "web.pcap"];
        let mut child = command(&args).stdout(Stdio::piped()).spawn().unwrap();
        // The pipe is not read.
        let out = child.stdout.take().unwrap();
        wait_for("a full pipe", || waits_for_pipe(&child, "pipe_write"));
        send(first, &child);
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "the first signal ended the process");
        send(second, &child);
        let started = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(STATUS_BASE + second));
        assert!(started.elapsed() < TIMEOUT);
        drop(out);
    }
}

#[test]
fn a_second_signal_ends_each_command_at_once() {
    let files = ["dns.pcap", "mail.pcap", "web.pcap"];
    for (name, options) in [
        ("flows", &["--format", "ndjson"][..]),
        ("flows", &["--format", "ndjson", "--shards", "2"]),
        ("flows", &["--format", "ndjson", "--shards", "2", "--sort", "octets"]),
        ("slice", &["--filter", "tcp", "-w", "-"]),
        ("streams", &["--to-stdout", "both", "--filter", "port 80"]),
    ] {
        let args = [&[name][..], &files, options].concat();
        let mut child = command(&args).stdout(Stdio::piped()).spawn().unwrap();
        // The pipe is not read.
        let out = child.stdout.take().unwrap();
        wait_for("a full pipe", || is_asleep(&child));
        send(INTERRUPT, &child);
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "{args:?}: the first signal ended the process");
        send(TERMINATE, &child);
        let started = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(STATUS_BASE + TERMINATE), "{args:?}");
        assert!(started.elapsed() < TIMEOUT);
        drop(out);
    }
}

/// A reader that is slow or pauses gets the complete output.
#[test]
fn a_slow_reader_gets_all_rows() {
    let args = ["sessions", "dns.pcap", "mail.pcap", "web.pcap"];
    let whole = command(&args).output().unwrap().stdout;
    let mut child = command(&args).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("a full pipe", || waits_for_pipe(&child, "pipe_write"));
    let mut got = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(got == whole, "{} of {}", got.len(), whole.len());
}

/// If a signal ends the input, the files contain the packets read so far and have their final names.
#[test]
fn files_contain_the_input_before_a_signal() {
    let input = data("ssh.pcap");
    let half = &input[..input.len() / 2];
    for signal in signals() {
        let folder = Folder::new();
        let out = folder.file("out.pcapng", b"precious");
        let args = ["slice", "-", "--filter", "tcp", "-w", &out, "--force"];
        let (mut child, stdin) = start(&args, half, Stdio::null());
        let temporary = format!(".out.pcapng.{}.part", child.id());
        wait_for("the output", || folder.names().contains(&temporary));
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), Some(STATUS_BASE + signal));
        drop(stdin);
        assert_eq!(folder.names(), ["out.pcapng"]);
        let frames = run_on(&["flows", "-", "-f", "csv"], &out);
        assert!(frames.iter().filter(|octet| **octet == b'\n').count() > 1, "the slice cannot be read");

        let folder = Folder::new();
        let index = folder.file("index.ndjson", b"precious");
        let out = folder.path("");
        let (mut child, stdin) = start(&["streams", "-", "--out", &out, "--force"], half, Stdio::null());
        wait_for("files", || folder.names().len() > 3);
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), Some(STATUS_BASE + signal));
        drop(stdin);
        let rows = fs::read_to_string(&index).unwrap();
        assert!(rows.lines().count() > 0 && rows.ends_with('\n'));
        rows.lines().for_each(|row| drop(serde_json::from_str::<serde_json::Value>(row).unwrap()));
        let all = Folder::new();
        assert!(command(&["streams", "ssh.pcap", "--out", &all.path("")]).status().unwrap().success());
        for name in folder.names().iter().filter(|name| *name != "index.ndjson") {
            let (part, whole) = (fs::read(folder.path(name)).unwrap(), fs::read(all.path(name)).unwrap());
            assert!(whole.starts_with(&part), "{name}: {} octets of {}", part.len(), whole.len());
        }
    }
}

/// A signal turns a named pipe without a writer into an input without frames.
#[test]
fn a_signal_ends_the_wait_for_a_writer() {
    for signal in signals() {
        for (options, written) in [
            (&["flows", "--format", "csv"][..], "protocol,source_address,"),
            (&["flows", "--format", "ndjson", "--shards", "2"], ""),
            (&["flows", "--sort", "octets", "--shards", "2"], "DURATION"),
            (&["sessions"], ""),
            (&["sessions", "--format", "table"], "TIME"),
        ] {
            let folder = Folder::new();
            let pipe = named_pipe(&folder);
            for files in [&[pipe.as_str()][..], &["web.pcap", &pipe]] {
                let args = [options, files].concat();
                let child = command_with_summary(&args).stdout(Stdio::piped()).spawn().unwrap();
                wait_for("the command to open the pipe", || has_open(&child, &pipe));
                send(signal, &child);
                let output = child.wait_with_output().unwrap();
                let message = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(STATUS_BASE + signal), "{args:?}: {message}");
                assert!(message.starts_with("0 packets (0 octets): "), "{args:?}: {message}");
                let rows = String::from_utf8(output.stdout).unwrap();
                assert!(rows.lines().count() <= 1 && rows.contains(written), "{args:?}: {rows}");
            }
        }
        for options in [&["streams", "--out"][..], &["slice", "--filter", "tcp", "-w"]] {
            let (folder, outputs) = (Folder::new(), Folder::new());
            let pipe = named_pipe(&folder);
            let out = outputs.path(if options[0] == "streams" { "" } else { "out.pcapng" });
            let args = [options, &[&out, &pipe]].concat();
            let child = command_with_summary(&args).spawn().unwrap();
            wait_for("the command to open the pipe", || has_open(&child, &pipe));
            send(signal, &child);
            let output = child.wait_with_output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(STATUS_BASE + signal), "{args:?}: {message}");
            if options[0] == "streams" {
                assert!(message.starts_with("0 packets (0 octets): "), "{message}");
                assert_eq!(outputs.names(), ["index.ndjson"]);
                assert_eq!(fs::read(outputs.path("index.ndjson")).unwrap(), b"");
            } else {
                assert_eq!(message, "flowgauge: no packet was selected; nothing was written\n");
                assert_eq!(outputs.names(), [""; 0]);
            }
        }
    }
}

#[test]
fn the_summary_of_an_interrupted_run_counts_the_packets_read() {
    let input = data("web.pcap");
    for signal in signals() {
        for args in [
            &["flows", "-", "--format", "ndjson"][..],
            &["flows", "-", "--format", "ndjson", "--shards", "2"],
            &["flows", "-", "--top", "3"],
            &["flows", "-", "--top", "3", "--shards", "2"],
            &["sessions", "-"],
        ] {
            let mut child =
                command_with_summary(args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(&input).unwrap();
            wait_for("the command to wait", || is_asleep(&child));
            send(signal, &child);
            let output = child.wait_with_output().unwrap();
            drop(stdin);
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(STATUS_BASE + signal), "{args:?}: {message}");
            assert!(
                message.starts_with("1286 packets (1318794 octets, 6.627s of capture): "),
                "{args:?}: {message}"
            );
        }
    }
}

/// Other input files wait for a pipe that stays open; a signal ends all inputs.
#[test]
fn a_signal_ends_a_pipe_and_the_other_inputs() {
    for args in
        [&["sessions"][..], &["flows", "--format", "ndjson", "--idle-timeout", "1ms", "--shards", "2"]]
    {
        let folder = Folder::new();
        let (pipe, out) = (named_pipe(&folder), folder.path("rows"));
        let args = [args, &[&pipe, "dns.pcap"]].concat();
        let mut child = command(&args).stdout(fs::File::create(&out).unwrap()).spawn().unwrap();
        let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
        writer.write_all(&data("web.pcap")).unwrap();
        wait_for("rows", || fs::metadata(&out).unwrap().len() > 0);
        wait_for("the command to wait", || is_asleep(&child));
        send(TERMINATE, &child);
        assert_eq!(child.wait().unwrap().code(), Some(STATUS_BASE + TERMINATE), "{args:?}");
        drop(writer);
        let rows = fs::read_to_string(&out).unwrap();
        assert!(rows.ends_with('\n'));
        rows.lines()
            .for_each(|row| drop(serde_json::from_str::<serde_json::Value>(row).expect("an incomplete row")));
    }
}
