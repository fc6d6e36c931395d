//! Signals that end the command while it reads a pipe that stays open, or writes to one that nobody reads: what was written is
//! the beginning of the whole, in whole rows unless a write was under way, and no file has its name that is not whole.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::Folder;
use super::outputs::command;

const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;
const SIGNALS: [i32; 2] = [INTERRUPT, TERMINATE];

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

fn data(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name)).unwrap()
}

fn send(signal: i32, child: &Child) {
    let status = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Waits until something is so.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a command that reads standard input, and gives it a capture. The pipe stays open.
fn start(args: &[&str], input: &[u8], out: Stdio) -> (Child, ChildStdin) {
    let mut child = command(args).stdin(Stdio::piped()).stdout(out).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    (child, stdin)
}

/// Whether a process waits for what a pipe gives or takes.
fn waits_for_pipe(child: &Child, what: &str) -> bool {
    let place = fs::read_to_string(format!("/proc/{}/wchan", child.id())).unwrap_or_default();
    // Not every kernel tells where; then it is enough that the process sleeps.
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let is_asleep = stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'));
    is_asleep && (place.contains(what) || matches!(place.as_str(), "" | "0"))
}

#[test]
fn rows_are_whole_when_reading_is_interrupted() {
    let input = data("web.pcap");
    for signal in SIGNALS {
        for args in [
            &["flows", "-", "--idle-timeout", "1ms", "--format", "ndjson"][..],
            &["flows", "-", "--idle-timeout", "1ms", "--format", "csv"],
            &["flows", "-", "--idle-timeout", "1ms", "--format", "ndjson", "--shards", "2"],
            &["sessions", "-"],
        ] {
            let folder = Folder::new();
            let out = folder.path("rows");
            let file = fs::File::create(&out).unwrap();
            // Rows of what ended are written although the input goes on.
            let (mut child, stdin) = start(args, &input, file.into());
            wait_for("rows", || fs::metadata(&out).unwrap().len() > 0);
            wait_for("the command to wait", || waits_for_pipe(&child, "pipe_read"));
            send(signal, &child);
            let status = child.wait().unwrap();
            drop(stdin);
            assert_eq!(status.signal(), Some(signal), "{args:?}: {status}");
            let rows = fs::read_to_string(&out).unwrap();
            assert!(rows.ends_with('\n') && rows.lines().count() > 10, "{args:?}: {}", rows.lines().count());
            if !args.contains(&"csv") {
                for row in rows.lines() {
                    serde_json::from_str::<serde_json::Value>(row).expect("a whole row");
                }
            }
        }
    }
}

#[test]
fn rows_are_a_beginning_when_writing_is_interrupted() {
    for signal in SIGNALS {
        for args in [
            // More than a pipe holds.
            &["sessions", "dns.pcap", "mail.pcap", "web.pcap"][..],
            &["slice", "web.pcap", "--filter", "tcp", "-w", "-"],
            &["streams", "web.pcap", "--to-stdout", "both", "--filter", "port 80"],
        ] {
            let whole = command(args).output().unwrap().stdout;
            let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
            let mut out = child.stdout.take().unwrap();
            wait_for("a full pipe", || waits_for_pipe(&child, "pipe_write"));
            send(signal, &child);
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(signal), "{args:?}: {status}");
            let mut got = Vec::new();
            out.read_to_end(&mut got).unwrap();
            assert!(!got.is_empty() && got.len() < whole.len(), "{args:?}: {} of {}", got.len(), whole.len());
            assert!(whole.starts_with(&got), "{args:?}");
        }
    }
}

/// A reader that is slow, or stops for a while, gets everything.
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

/// The files of a run that is ended keep their temporary names, and what was there before stays.
#[test]
fn files_that_are_not_whole_get_no_name() {
    let input = data("ssh.pcap");
    let half = &input[..input.len() / 2];
    for signal in SIGNALS {
        let folder = Folder::new();
        let out = folder.file("out.pcapng", b"precious");
        let args = ["slice", "-", "--filter", "tcp", "-w", &out, "--force"];
        let (mut child, stdin) = start(&args, half, Stdio::null());
        let temporary = format!(".out.pcapng.{}.part", child.id());
        wait_for("the output", || folder.names().contains(&temporary));
        send(signal, &child);
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        drop(stdin);
        assert_eq!(fs::read(&out).unwrap(), b"precious");
        assert_eq!(folder.names(), [temporary, "out.pcapng".to_owned()]);

        let folder = Folder::new();
        let index = folder.file("index.ndjson", b"precious");
        let out = folder.path("");
        let (mut child, stdin) = start(&["streams", "-", "--out", &out, "--force"], half, Stdio::null());
        wait_for("files", || folder.names().len() > 3);
        send(signal, &child);
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        drop(stdin);
        assert_eq!(fs::read(&index).unwrap(), b"precious");
        let all = Folder::new();
        assert!(command(&["streams", "ssh.pcap", "--out", &all.path("")]).status().unwrap().success());
        for name in folder.names().iter().filter(|name| !name.ends_with(".part") && *name != "index.ndjson") {
            assert!(fs::read(folder.path(name)).unwrap() == fs::read(all.path(name)).unwrap(), "{name}");
        }
    }
}
