//! Files that are long enough for several threads give the output of a pipe, which is read on one.

use std::fs;
use std::process::Stdio;

use super::folder::Folder;
use super::{command, data, run, run_with_input};

/// Length from which files are read on a thread of their own.
const LONG_LEN: usize = 4 << 20;

/// Writes the packets of a capture again and again, each time ten minutes later, until the file is long.
fn long_file(folder: &Folder) -> (String, Vec<u8>) {
    const TEN_MINUTES: u32 = 600;
    let capture = data("web.pcap");
    let (header, packets) = capture.split_at(24);
    let mut octets = header.to_vec();
    let mut later = 0;
    while octets.len() <= LONG_LEN {
        let mut rest = packets;
        while let Some((packet_header, after)) = rest.split_at_checked(16) {
            let word = |at: usize| u32::from_le_bytes(packet_header[at..at + 4].try_into().unwrap());
            octets.extend((word(0) + later).to_le_bytes());
            octets.extend(&packet_header[4..]);
            let (packet, after) = after.split_at(word(8) as usize);
            octets.extend(packet);
            rest = after;
        }
        later += TEN_MINUTES;
    }
    (folder.file("long.pcap", &octets), octets)
}

#[test]
fn the_output_is_that_of_a_pipe() {
    let folder = Folder::new();
    let (path, octets) = long_file(&folder);
    for args in [
        &["flows", "--format", "ndjson"][..],
        &["flows", "--format", "ndjson", "--application", "never"],
        &["flows", "--format", "csv", "--filter", "dst net 10.77.0.0/24 or dst port 80"],
        &["flows", "--top", "20"],
        &["flows"],
        &["sessions", "--format", "ndjson"],
    ] {
        let from_file = run(&[args, &["-q", &path]].concat());
        let from_pipe = run_with_input(&[args, &["-q", "-"]].concat(), &octets);
        assert_eq!((from_file.status, &*from_file.err), (0, ""), "{args:?}");
        assert!(from_file.out.lines().count() >= 20, "{args:?}: {}", from_file.out);
        assert!(from_file.out == from_pipe.out, "{args:?}: the outputs differ");
    }
    let [from_file, from_pipe] = ["file.pcap", "pipe.pcap"].map(|name| folder.path(name));
    let args = ["slice", "-q", "--filter", "port 8080", "-w"];
    assert_eq!(run(&[&args[..], &[&from_file, &path]].concat()).status, 0);
    assert_eq!(run_with_input(&[&args[..], &[&from_pipe, "-"]].concat(), &octets).status, 0);
    assert!(fs::read(from_file).unwrap() == fs::read(from_pipe).unwrap());
}

#[test]
fn a_damaged_end_is_reported_after_all_records_before_it() {
    let folder = Folder::new();
    let (path, octets) = long_file(&folder);
    fs::write(&path, &octets[..octets.len() - 7]).unwrap();
    let args = ["flows", "--format", "ndjson", "-q"];
    let from_file = run(&[&args[..], &[&path]].concat());
    let from_pipe = run_with_input(&[&args[..], &["-"]].concat(), &octets[..octets.len() - 7]);
    assert_eq!(from_file.out, from_pipe.out);
    assert_eq!(from_file.status, from_pipe.status);
    assert!(from_file.err.contains("long.pcap") && from_file.err.contains("truncated"), "{}", from_file.err);
}

/// The reader of the output ends after the first line, as `head` does.
#[test]
fn a_closed_output_ends_the_run_without_an_error() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let folder = Folder::new();
    let (path, _) = long_file(&folder);
    for format in ["ndjson", "csv"] {
        let mut child = command()
            .args(["flows", "--format", format, "-q", &path])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'));
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), &*errors), (Some(0), ""), "{format}");
    }
}
