//! Tests of `--checkpoint` and `flowgauge checkpoint`.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use flowgauge::source::PcapngWriter;
use flowgauge::{FileSource, FrameBatch, Next, Source as _};

use super::trace::Trace;
use super::{Folder, command, repository, run};

/// Writes the frames of a capture to files of a rotation, whose names are not in the order of time.
fn rotated(folder: &Folder, capture: &Path, file_count: usize) -> Vec<String> {
    let mut source = FileSource::open(capture).unwrap();
    let (mut batch, mut frames) = (FrameBatch::new(), FrameBatch::new());
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        batch.iter().for_each(|frame| frames.push(&frame));
    }
    let len = frames.len().div_ceil(file_count);
    let file = |number: usize| {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        for frame in frames.iter().skip(number * len).take(len) {
            writer.write(&frame, source.interfaces()).unwrap();
        }
        folder.file(&format!("rotated{}.pcapng", file_count - number), &writer.finish().unwrap())
    };
    (0..file_count).map(file).collect()
}

/// Returns the arguments of a run with a checkpoint.
fn arguments<'a>(checkpoint: &'a str, files: &'a [String]) -> Vec<&'a str> {
    let files = files.iter().map(String::as_str);
    ["flows", "--checkpoint", checkpoint, "--format", "ndjson"].into_iter().chain(files).collect()
}

/// Returns the rows of one run over a capture, sorted.
fn rows(capture: &str) -> Vec<String> {
    let run = run(&["flows", capture, "--format", "ndjson", "-q"]);
    assert_eq!(run.status, 0, "{}", run.err);
    sorted(&run.out)
}

fn sorted(text: &str) -> Vec<String> {
    let mut rows: Vec<_> = text.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

#[test]
fn rotated_files_have_the_records_of_one_file() {
    let folder = Folder::new();
    for name in ["web.pcap", "dns.pcap", "lossy.pcap"] {
        let capture = repository().join("examples/data").join(name);
        let files = rotated(&folder, &capture, 5);
        let checkpoint = folder.path("state");
        let mut out = String::new();
        // Each run receives all files so far, as a job with a pattern of names does.
        for count in 1..=files.len() {
            let run = run(&arguments(&checkpoint, &files[..count]));
            assert_eq!(run.status, 0, "{}", run.err);
            out += &run.out;
        }
        // A file under another name is the same file.
        let renamed = folder.path("renamed.pcapng");
        fs::copy(&files[2], &renamed).unwrap();
        let again = run(&arguments(&checkpoint, &[renamed]));
        assert!(again.err.contains("1 file without new packets"), "{}", again.err);
        let finished = run(&["flows", "--checkpoint", &checkpoint, "--format", "ndjson", "--finish"]);
        assert_eq!(finished.status, 0, "{}", finished.err);
        out += &finished.out;
        assert!(!Path::new(&checkpoint).exists());
        // Interfaces are those of each file.
        assert_eq!(sorted(&out), rows(name), "{name}");
    }
}

#[test]
fn transactions_of_rotated_files_are_those_of_one_file() {
    let folder = Folder::new();
    for name in ["web.pcap", "dns.pcap", "mail.pcap", "transfer.pcap", "ssh.pcap"] {
        let capture = repository().join("examples/data").join(name);
        let checkpoint = folder.path("state");
        let run = |files: &[&str]| {
            let options = ["--transactions", "--hashes", "--format", "ndjson", "-q"];
            let run = run(&[&["sessions"], &options[..], files].concat());
            assert_eq!(run.status, 0, "{}", run.err);
            run.out
        };
        let files = rotated(&folder, &capture, 7);
        let mut out = String::new();
        for file in &files {
            out += &run(&["--checkpoint", &checkpoint, file]);
        }
        out += &run(&["--checkpoint", &checkpoint, "--finish"]);
        assert_eq!(sorted(&out), sorted(&run(&[name])), "{name}");
    }
}

#[test]
fn files_with_the_same_beginning_are_different_files() {
    let folder = Folder::new();
    // The newest file of a rotation has no frame yet, or one that others have, too.
    let dns = fs::read(repository().join("examples/data/dns.pcap")).unwrap();
    let ssh = fs::read(repository().join("examples/data/ssh.pcap")).unwrap();
    let second = 24 + 16 + u32::from_le_bytes(dns[32..36].try_into().unwrap()) as usize;
    let mixed = [&dns[..second], &ssh[24..]].concat();
    let expected = {
        let files = [folder.file("a.pcap", &dns), folder.file("b.pcap", &mixed)];
        run(&["flows", &files[0], &files[1], "--format", "ndjson", "-q"]).out
    };
    for beginning in [&dns[..0], &dns[..24], &dns[..second]] {
        let checkpoint = folder.path("state");
        let first = folder.file("newest.pcap", beginning);
        let mut out = run(&arguments(&checkpoint, std::slice::from_ref(&first))).out;
        let files = [folder.file("newest.pcap", &dns), folder.file("b.pcap", &mixed)];
        let rest = run(&arguments(&checkpoint, &files));
        assert_eq!(rest.status, 0, "{}", rest.err);
        out += &rest.out;
        out += &run(&["flows", "--checkpoint", &checkpoint, "--format", "ndjson", "--finish"]).out;
        let packets = |rows: &str| -> u64 {
            let count = |row: &serde_json::Value, name: &str| row[name].as_u64().unwrap();
            let of =
                |row: &serde_json::Value| count(row, "packet_count") + count(row, "reverse_packet_count");
            super::objects(rows).iter().map(of).sum()
        };
        assert_eq!(packets(&out), packets(&expected), "{} octets", beginning.len());
    }
}

#[test]
fn only_rows_of_the_interrupted_run_are_removed() {
    let folder = Folder::new();
    let (checkpoint, out) = (folder.path("state"), folder.path("out"));
    let web = ["web.pcap".to_owned()];
    let append = || OpenOptions::new().create(true).append(true).open(&out).unwrap();
    assert!(
        command()
            .args(arguments(&checkpoint, &web))
            .stdout(append())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    // A run that waits for standard input is killed behind its first checkpoint.
    let mut child = command()
        .args(["flows", "--checkpoint", &checkpoint, "--format", "ndjson", "-"])
        .stdin(Stdio::piped())
        .stdout(append())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..500 {
        if !run(&["checkpoint", "show", &checkpoint]).out.contains("the run ended") {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(&out, "another text\n").unwrap();
    let next =
        command().args(arguments(&checkpoint, &["dns.pcap".to_owned()])).stdout(append()).output().unwrap();
    assert_eq!(next.status.code(), Some(0));
    assert!(fs::read_to_string(&out).unwrap().starts_with("another text\n"));
}

#[test]
fn a_file_that_grows_continues_behind_its_last_frame() {
    let folder = Folder::new();
    let octets = fs::read(repository().join("examples/data/web.pcap")).unwrap();
    let (checkpoint, mut out) = (folder.path("state"), String::new());
    // The first length ends within a frame.
    for len in [octets.len() / 3, octets.len() / 2, octets.len()] {
        let file = folder.file("growing.pcap", &octets[..len]);
        let run = run(&arguments(&checkpoint, &[file]));
        assert_eq!(run.status, i32::from(len < octets.len()), "{}", run.err);
        out += &run.out;
    }
    out += &run(&["flows", "--checkpoint", &checkpoint, "--format", "ndjson", "--finish"]).out;
    assert_eq!(sorted(&out), rows("web.pcap"));
}

#[test]
fn a_checkpoint_is_shown_and_what_cannot_continue_is_refused() {
    let folder = Folder::new();
    let checkpoint = folder.path("state");
    assert_eq!(run(&arguments(&checkpoint, &["web.pcap".to_owned()])).status, 0);
    let shown = run(&["checkpoint", "show", &checkpoint]);
    assert_eq!(shown.status, 0, "{}", shown.err);
    for line in
        ["27 open flows: 9 ipv6-icmp, 18 tcp\n", "input: 1286 frames of 1 file\n", "state: the run ended\n"]
    {
        assert!(shown.out.contains(line), "{}", shown.out);
    }
    let flows = run(&["checkpoint", "show", &checkpoint, "--flows", "ndjson"]);
    assert_eq!(flows.out.lines().count(), 27);

    let permissions = fs::metadata(&checkpoint).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, 0o600);
    let octets = fs::read(&checkpoint).unwrap();
    let mut damaged = octets.clone();
    damaged[octets.len() / 2] ^= 1;
    let mut newer = octets.clone();
    newer[9] = 9;
    let cases = [
        (damaged, "checkpoint damaged: wrong checksum of the block at offset"),
        (
            newer,
            "checkpoint of format version 9, but this program reads versions up to 1; use the program that wrote it",
        ),
        (octets[..octets.len() - 20].to_vec(), "checkpoint ends early"),
        (b"text".to_vec(), "not a checkpoint"),
    ];
    for (content, message) in cases {
        let path = folder.file("bad", &content);
        for args in [arguments(&path, &["dns.pcap".to_owned()]), vec!["checkpoint", "show", &path]] {
            let run = run(&args);
            assert_eq!((run.status, run.out.as_str()), (1, ""), "{message}");
            assert!(run.err.contains(message), "{}", run.err);
        }
        assert_eq!(fs::read(&path).unwrap(), content, "it is not overwritten");
    }
    let other =
        run(&[&arguments(&checkpoint, &["dns.pcap".to_owned()])[..], &["--tunnels", "outermost"]].concat());
    assert_eq!(other.status, 1);
    assert!(other.err.contains("with the key policy"), "{}", other.err);
    let table = run(&["flows", "--checkpoint", &checkpoint, "web.pcap", "--format", "csv"]);
    assert_eq!(table.status, 2);
    assert_eq!(fs::read(&checkpoint).unwrap(), octets, "it is not overwritten");
}

/// Writes a capture of connections that overlap.
fn long_capture(folder: &Folder) -> String {
    let mut trace = Trace::new();
    for number in 0..6000_u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let ends = [([10, 0, high, low], 40_000), ([192, 0, 2, 1], 80)];
        trace.exchange(u64::from(number) * 97, ends, b"GET / HTTP/1.1\r\n\r\n", &[b'x'; 2000]);
    }
    folder.file("long.pcap", &trace.file())
}

#[test]
fn messages_of_rotated_files_are_those_of_one_file() {
    let folder = Folder::new();
    for name in ["web.pcap", "dns.pcap", "mail.pcap", "transfer.pcap"] {
        let files = rotated(&folder, &repository().join("examples/data").join(name), 3);
        let checkpoint = folder.path("state");
        let mut out = String::new();
        for file in &files {
            let run = run(&["sessions", file, "--checkpoint", &checkpoint, "-q"]);
            assert_eq!(run.status, 0, "{}", run.err);
            out += &run.out;
        }
        let finished = run(&["sessions", "--checkpoint", &checkpoint, "--finish", "-q"]);
        assert_eq!(finished.status, 0, "{}", finished.err);
        assert_eq!(sorted(&(out + &finished.out)), sorted(&run(&["sessions", name, "-q"]).out), "{name}");
    }
}

/// Returns the summary of captures as text and as findings, without their names.
fn summaries(options: &[&str], captures: &[&str]) -> [String; 2] {
    [&["-n", "50"][..], &["--format", "ndjson"]].map(|format| {
        let run = run(&[&["summary", "-q"], options, format, captures].concat());
        assert_eq!(run.status, 0, "{}", run.err);
        run.out
    })
}

#[test]
fn the_summary_of_rotated_files_is_that_of_one_pass() {
    let folder = Folder::new();
    // Not saved are fragments that wait for others, as in the third of four files of dns.pcap, and octets behind a hole, as in
    // lossy.pcap.
    for name in
        ["web.pcap", "ssh.pcap", "mail.pcap", "transfer.pcap", "any.pcap", "raw-tun.pcap", "vlan.pcapng"]
    {
        let mut files = rotated(&folder, &repository().join("examples/data").join(name), 4);
        // In this order, one pass reads them as they are read one after another.
        files.sort();
        files.reverse();
        let names: Vec<_> = files.iter().map(String::as_str).collect();
        let checkpoint = folder.path("state");
        for count in 1..=names.len() {
            let options = ["--checkpoint", &checkpoint];
            // The second format continues the checkpoint of the first one, without new packets.
            let divided = summaries(&options, &names[..count]);
            assert_eq!(divided, summaries(&[], &names[..count]), "{count} files of {name}");
        }
        let shown = run(&["checkpoint", "show", &checkpoint]).out;
        assert!(shown.contains("command: flowgauge summary"), "{shown}");
        let finished = run(&["summary", "-n", "50", "--checkpoint", &checkpoint, "--finish", "-q"]);
        assert_eq!(finished.status, 0, "{}", finished.err);
        assert_eq!(finished.out, summaries(&[], &names)[0], "{name}");
        assert!(!Path::new(&checkpoint).exists());
    }
}

#[test]
fn another_command_does_not_continue() {
    let folder = Folder::new();
    let (flows, messages) = (folder.path("flows"), folder.path("messages"));
    assert_eq!(run(&arguments(&flows, &["web.pcap".to_owned()])).status, 0);
    let other = run(&["sessions", "web.pcap", "--checkpoint", &flows]);
    assert!(other.err.contains("checkpoint of `flowgauge flows`"), "{}", other.err);
    assert_eq!(run(&["sessions", "web.pcap", "--checkpoint", &messages]).status, 0);
    let other = run(&["sessions", "web.pcap", "--checkpoint", &messages, "--transactions"]);
    let expected =
        "checkpoint of `flowgauge sessions`, which `flowgauge sessions --transactions` cannot continue";
    assert!(other.status != 0 && other.err.contains(expected), "{}", other.err);
    let refused =
        run(&["sessions", "web.pcap", "--checkpoint", "state", "--out", "folder", "--format", "zeek"]);
    assert_eq!(refused.status, 2, "{}", refused.err);
    assert!(refused.err.contains("--checkpoint cannot be combined with --write, --out"), "{}", refused.err);
}

#[test]
fn killed_runs_lose_and_repeat_no_record() {
    let folder = Folder::new();
    let capture = long_capture(&folder);
    let files = rotated(&folder, Path::new(&capture), 20);
    let expected = rows(&capture);
    let (checkpoint, out) = (folder.path("state"), folder.path("out"));
    let append = || OpenOptions::new().create(true).append(true).open(&out).unwrap();
    // Without checkpoints in between, a killed run begins again.
    let often = [&arguments(&checkpoint, &files)[..], &["--checkpoint-interval", "1ms", "-q"]].concat();
    let args = [&arguments(&checkpoint, &files)[..], &["-q"]].concat();
    let (mut kill_count, mut run_count, mut random) = (0, 0, 0x2545_f491_u64);
    while kill_count < 200 {
        run_count += 1;
        assert!(run_count < 2000, "{kill_count} runs were killed");
        let args = if run_count % 3 == 0 { &args } else { &often };
        let mut child =
            command().args(args).stdout(append()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros(20_000 + (random >> 33) % 40_000));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            kill_count += 1;
            child.wait().unwrap();
            continue;
        }
        finish(&checkpoint, append());
        assert_eq!(sorted(&fs::read_to_string(&out).unwrap()), expected);
        fs::remove_file(&out).unwrap();
    }
    assert!(command().args(&args).stdout(append()).status().unwrap().success());
    finish(&checkpoint, append());
    assert_eq!(sorted(&fs::read_to_string(&out).unwrap()), expected);
    println!("{kill_count} of {run_count} runs were killed");
}

fn finish(checkpoint: &str, out: File) {
    let args = ["flows", "--checkpoint", checkpoint, "--format", "ndjson", "--finish", "-q"];
    assert!(command().args(args).stdout(out).status().unwrap().success());
}

#[test]
fn a_checkpoint_is_used_by_one_process_at_a_time() {
    let folder = Folder::new();
    let checkpoint = folder.path("state");
    // It waits for standard input.
    let mut first = command()
        .args(["flows", "--checkpoint", &checkpoint, "--format", "ndjson", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lock = folder.path(".state.lock");
    for _ in 0..500 {
        if Path::new(&lock).exists() {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(100));
    let second = run(&arguments(&checkpoint, &["web.pcap".to_owned()]));
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status, 1);
    assert!(second.err.contains("another process uses this checkpoint"), "{}", second.err);
    assert_eq!(run(&arguments(&checkpoint, &["web.pcap".to_owned()])).status, 0);
}
