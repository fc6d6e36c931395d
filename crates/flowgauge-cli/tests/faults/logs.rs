//! Faults of outputs in folders and files: completed files consist of whole rows, which are the first ones of the undisturbed
//! output.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use super::folder::Folder;
use super::outputs::{command, limited};

/// Returns the rows of a log, without its header and its last line.
fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Checks that a log consists of whole rows.
fn check_rows(path: &Path, text: &str) {
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t"));
    let column_count = fields.map(|fields| fields.split('\t').count());
    assert!(text.is_empty() || text.ends_with('\n'), "{}", path.display());
    for row in rows(text) {
        assert_eq!(Some(row.split('\t').count()), column_count, "{}: {row}", path.display());
    }
}

/// Returns the completed files of a folder; others have hidden names.
fn completed(folder: &str) -> Vec<(std::path::PathBuf, String)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let visible = paths.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'));
    visible.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn a_limit_of_file_sizes_leaves_whole_rows_and_is_reported() {
    let folder = Folder::new();
    let whole = folder.path("whole");
    let args = ["sessions", "web.pcap", "--format", "zeek", "--hashes", "--out"];
    assert!(command(&[&args[..], &[&whole]].concat()).status().unwrap().success());
    let mut fault_count = 0;
    for block_count in [0, 1, 2, 4, 8, 100] {
        let path = folder.path(&format!("{block_count}"));
        let output = limited(block_count, &[&args[..], &[&path]].concat()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        if output.status.code() == Some(1) {
            assert!(message.contains(".log: File too large"), "{message}");
            fault_count += 1;
        } else {
            assert_eq!((output.status.code(), message.as_str()), (Some(0), ""));
        }
        for (file, text) in completed(&path) {
            check_rows(&file, &text);
            let expected = fs::read_to_string(Path::new(&whole).join(file.file_name().unwrap())).unwrap();
            assert!(rows(&expected).starts_with(&rows(&text)), "{}", file.display());
        }
        // No temporary file is left.
        assert_eq!(fs::read_dir(&path).unwrap().count(), completed(&path).len());
    }
    assert!(fault_count >= 3, "{fault_count} faults");
}

#[test]
fn a_failed_write_replaces_no_file() {
    let folder = Folder::new();
    for target in ["ndjson=flows", "csv=flows", "zeek=logs"] {
        let (kind, name) = target.split_once('=').unwrap();
        let path = folder.path(name);
        let file = if kind == "zeek" { Path::new(&path).join("conn.log") } else { path.clone().into() };
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "old\n").unwrap();
        let target = format!("{kind}={path}");
        for block_count in [0, 2] {
            let output =
                limited(block_count, &["flows", "web.pcap", "--force", "--write", &target]).output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{target}: {message}");
            assert!(message.contains(": File too large"), "{target}: {message}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "old\n", "{target}");
            assert_eq!(
                fs::read_dir(file.parent().unwrap())
                    .unwrap()
                    .filter(|entry| {
                        entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".part")
                    })
                    .count(),
                0
            );
        }
        let output = command(&["flows", "web.pcap", "--force", "--write", &target]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(fs::read_to_string(&file).unwrap().len() > 1000);
    }
}

#[test]
fn a_full_device_is_reported_for_each_kind_of_file() {
    for kind in ["ndjson", "csv", "fixed"] {
        let target = format!("{kind}=/dev/full");
        for args in [
            &["flows", "web.pcap", "--write", &target][..],
            &["flows", "web.pcap", "--write", &target, "-f", "csv"],
        ] {
            let output = command(args).output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
            assert!(message.starts_with("flowgauge: /dev/full: No space left"), "{args:?}: {message}");
        }
    }
}

/// Returns a capture with the packets of another one many times, each time an hour later.
fn repeated(capture: &[u8], count: u32) -> Vec<u8> {
    let (header, records) = capture.split_at(24);
    let mut all = header.to_vec();
    for round in 0..count {
        let mut rest = records;
        while let Some((seconds, after)) = rest.split_first_chunk::<4>() {
            let captured_len = u32::from_le_bytes(after[4..8].try_into().unwrap()) as usize;
            let (record, next) = after.split_at(12 + captured_len);
            all.extend((u32::from_le_bytes(*seconds) + round * 3600).to_le_bytes());
            all.extend(record);
            rest = next;
        }
    }
    all
}

#[test]
fn a_killed_run_leaves_completed_files_whole() {
    let folder = Folder::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/dns.pcap");
    let capture = folder.file("long.pcap", &repeated(&fs::read(data).unwrap(), 300));
    let mut whole_count = 0;
    for round in 0..50 {
        let path = folder.path(&format!("{round}"));
        let (zeek, ndjson) = (format!("zeek={path}"), format!("ndjson={path}/flows.ndjson"));
        let options = ["--write", &zeek, "--write", &ndjson, "--rotate", "4kB"];
        let args = [&["flows", &capture], &options[..]].concat();
        let mut child = command(&args).stdout(Stdio::null()).spawn().unwrap();
        // At some time after a number of files is complete.
        let wanted_count = (round % 10) as usize;
        while completed(&path).len() < wanted_count && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(round * 7 % 23));
        child.kill().unwrap();
        child.wait().unwrap();
        for (file, text) in completed(&path) {
            if file.extension().is_some_and(|extension| extension == "log") {
                check_rows(&file, &text);
                assert!(text.lines().last().unwrap().starts_with("#close\t"), "{}", file.display());
            } else {
                assert!(text.ends_with('\n'), "{}", file.display());
                text.lines().for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).unwrap()));
            }
            whole_count += 1;
        }
        fs::remove_dir_all(&path).unwrap_or_default();
    }
    assert!(whole_count > 50, "{whole_count} files");
}

#[test]
fn a_folder_that_is_removed_is_reported() {
    let folder = Folder::new();
    let path = folder.path("logs");
    let capture =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/web.pcap")).unwrap();
    let args = ["sessions", "-", "--format", "zeek", "--out", &path];
    let mut child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&capture).unwrap();
    // The first log exists.
    for _ in 0..1000 {
        if fs::read_dir(&path).is_ok_and(|entries| entries.count() > 0) {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    fs::remove_dir_all(&path).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&path) && message.contains("No such file"), "{message}");
}
