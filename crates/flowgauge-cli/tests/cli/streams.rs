//! Tests of `flowgauge streams`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::{Folder, data, number, objects, records, run, run_with_input};

/// Lines of the index with the content of the files that they name. The folder must not contain other files.
fn read(folder: &str) -> Vec<(Value, Vec<u8>)> {
    let mut files: BTreeMap<_, _> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    let index = String::from_utf8(files.remove("index.ndjson").unwrap()).unwrap();
    let with_octets = |line: Value| {
        let octets = line["file"].as_str().map(|name| files.remove(name).unwrap()).unwrap_or_default();
        (line, octets)
    };
    let streams = objects(&index).into_iter().map(with_octets).collect();
    assert!(files.is_empty(), "{:?}", files.keys());
    streams
}

#[test]
fn each_direction_is_a_file_and_a_line_of_the_index() {
    for file in ["web.pcap", "mail.pcap", "ssh.pcap", "any.pcap", "raw-tun.pcap", "dns.pcap"] {
        let folder = Folder::new();
        let out = folder.path("made/by it");
        let run = run(&["streams", file, "--out", &out]);
        assert_eq!(run.status, 0, "{}", run.err);
        let streams = read(&out);
        let records = records(&[file, "--filter", "tcp"]);
        assert_eq!(streams.len(), 2 * records.len());
        let mut octet_count = 0;
        for (line, octets) in &streams {
            let id = &line["community_id"];
            let record = records.iter().find(|record| record["community_id"] == *id).unwrap();
            let (prefix, source) = match line["is_initiator"].as_bool().unwrap() {
                true => ("", "source"),
                false => ("reverse_", "destination"),
            };
            assert_eq!(line["source_address"], record[format!("{source}_address")]);
            assert_eq!(line["source_port"], record[format!("{source}_port")]);
            assert_eq!(line["start"], record["start"]);
            assert_eq!(number(line, "octet_count"), octets.len() as u64);
            // Retransmitted octets count as payload each time, but are written only once.
            let payload_octet_count = number(record, &format!("{prefix}payload_octet_count"));
            let repeated_octet_count = number(line, "repeated_octet_count");
            assert_eq!(octets.len() as u64 + repeated_octet_count, payload_octet_count, "{line}");
            assert_eq!((number(line, "gap_count"), number(line, "conflict_count")), (0, 0), "{line}");
            octet_count += octets.len();
        }
        assert!(octet_count > 1000);
        assert!(run.err.contains(&format!("{octet_count} octets of ")), "{}", run.err);
    }
}

#[test]
fn stream_files_contain_the_payload() {
    let folder = Folder::new();
    let out = folder.path("out");
    assert_eq!(run(&["streams", "web.pcap", "--filter", "port 80", "--out", &out, "-q"]).status, 0);
    let streams = read(&out);
    // One connection was opened without any data.
    for (line, octets) in streams.iter().filter(|(_, octets)| !octets.is_empty()) {
        let begins = |text: &str| octets.starts_with(text.as_bytes());
        let is_request = ["GET /", "HEAD /", "PUT /"].iter().any(|text| begins(text));
        assert_eq!((is_request, begins("HTTP/1.1 ")), {
            let is_initiator = line["is_initiator"] == true;
            (is_initiator, !is_initiator)
        });
    }
    assert!(streams.len() >= 12);
}

/// A capture with a snap length of 128 octets on a link with loss has many gaps.
#[test]
fn gaps_are_omitted_or_filled() {
    let folder = Folder::new();
    let (omitted, filled) = (folder.path("omitted"), folder.path("filled"));
    assert_eq!(run(&["streams", "lossy.pcap", "--out", &omitted]).status, 0);
    let run = run(&["streams", "lossy.pcap", "--out", &filled, "--gaps", "zero"]);
    assert_eq!(run.status, 0);
    let (omitted, filled) = (read(&omitted), read(&filled));
    let mut gap_count = 0;
    for ((line, octets), (same, filled)) in omitted.iter().zip(&filled) {
        let mut same = same.clone();
        assert_eq!(same["filled_octet_count"], line["gap_octet_count"]);
        same["filled_octet_count"] = 0.into();
        assert_eq!(*line, same);
        let mut rest = &octets[..];
        let mut expected = Vec::new();
        for gap in line["gaps"].as_array().unwrap() {
            let (offset, len) = (number(gap, "offset") as usize, number(gap, "len") as usize);
            let (before, behind) = rest.split_at(offset - expected.len());
            expected.extend_from_slice(before);
            expected.resize(offset + len, 0);
            rest = behind;
            gap_count += 1;
        }
        expected.extend_from_slice(rest);
        assert!(expected == *filled, "{line}");
        assert_eq!(expected.len() - octets.len(), number(line, "gap_octet_count") as usize);
        assert_eq!(number(line, "gap_count") as usize, line["gaps"].as_array().unwrap().len());
    }
    assert!(gap_count > 100, "{gap_count}");
    assert!(run.err.contains(&format!("{gap_count} gaps of ")), "{}", run.err);
}

#[test]
fn existing_files_are_kept_and_nothing_is_written_outside_the_folder() {
    let folder = Folder::new();
    let out = folder.path("out");
    let args = ["streams", "mail.pcap", "--out", &out, "-q"];
    assert_eq!(run(&args).status, 0);
    let before = read(&out);
    let refused = run(&args);
    assert_eq!(refused.status, 1);
    assert!(
        refused.err.contains("index.ndjson: already exists; use --force to overwrite it"),
        "{}",
        refused.err
    );
    assert_eq!(read(&out), before);

    // An unrelated file in a folder without an index.
    let name = before[0].0["file"].as_str().unwrap();
    let other = folder.path("other");
    fs::create_dir(&other).unwrap();
    let precious = folder.file(&format!("other/{name}"), b"precious");
    let refused = run(&["streams", "mail.pcap", "--out", &other, "-q"]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains(name) && refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    let forced = run(&["streams", "mail.pcap", "--out", &other, "-q", "--force"]);
    assert_eq!(forced.status, 0, "{}", forced.err);
    assert_eq!(read(&other), before);

    // A link out of the folder is replaced, not followed.
    #[cfg(unix)]
    {
        let outside = folder.file("outside", b"precious");
        fs::remove_file(&precious).unwrap();
        std::os::unix::fs::symlink(&outside, &precious).unwrap();
        assert_eq!(run(&["streams", "mail.pcap", "--out", &other, "-q", "--force"]).status, 0);
        assert_eq!(fs::read(&outside).unwrap(), b"precious");
        assert_eq!(read(&other), before);
    }

    // A folder that cannot be created.
    let refused = run(&["streams", "mail.pcap", "--out", &folder.path("outside/x"), "-q"]);
    assert_eq!(refused.status, 1);
    assert!(!refused.err.is_empty());
}

#[test]
fn an_input_is_never_an_output() {
    let folder = Folder::new();
    let input = folder.file("index.ndjson", &data("mail.pcap"));
    let refused = run(&["streams", &input, "--out", folder.0.to_str().unwrap(), "--force"]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("is an input"), "{}", refused.err);
    assert_eq!(fs::read(&input).unwrap(), data("mail.pcap"));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "a file was written");
}

/// Acknowledged segments with sequence numbers as far apart as possible: terabytes are missing. A complete connection
/// follows.
#[test]
fn zero_filling_of_gaps_is_limited() {
    let segment = |port: u16, from_client: bool, seq: u32, ack: u32, flags: u8, payload: &[u8]| {
        let ports = if from_client { [port, 80] } else { [80, port] };
        let hosts = if from_client { [[10, 0, 0, 1], [10, 0, 0, 2]] } else { [[10, 0, 0, 2], [10, 0, 0, 1]] };
        let len = 40 + payload.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend(hosts.concat());
        ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(payload);
        packet
    };
    let mut capture =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    let mut millis = 0_u32;
    let mut push = |packet: Vec<u8>| {
        millis += 30;
        let len = (packet.len() as u32).to_le_bytes();
        capture.extend((millis / 1000).to_le_bytes());
        capture.extend((millis % 1000 * 1000).to_le_bytes());
        capture.extend([len, len].concat());
        capture.extend(packet);
    };
    let mut seq = 1_u32;
    for _ in 0..20 {
        push(segment(1000, true, seq, 1, 0x10, b"x"));
        push(segment(1000, false, 1, seq.wrapping_add(1), 0x10, b""));
        seq = seq.wrapping_add((1 << 30) - 5);
    }
    push(segment(1001, true, 1, 1, 0x10, b"good"));
    let folder = Folder::new();
    let input = folder.file("far.pcap", &capture);
    let out = folder.path("out");
    let run = run(&["streams", &input, "--out", &out, "--gaps", "zero"]);
    assert_eq!(run.status, 0, "{}", run.err);
    for line in objects(&fs::read_to_string(format!("{out}/index.ndjson")).unwrap()) {
        let Some(name) = line["file"].as_str() else { continue };
        let (octets, filled) = (number(&line, "octet_count"), number(&line, "filled_octet_count"));
        assert_eq!(fs::metadata(format!("{out}/{name}")).unwrap().len(), octets + filled);
        assert!(filled <= 1 << 32, "{line}");
        if line["source_port"] == 1001 {
            assert_eq!(fs::read(format!("{out}/{name}")).unwrap(), b"good");
        } else {
            assert!(octets > 4 && number(&line, "gap_octet_count") > 1 << 32 && filled > 0, "{line}");
        }
    }
}

#[test]
fn standard_input_is_read_once() {
    let folder = Folder::new();
    let out = folder.path("out");
    let run = run_with_input(&["streams", "-", "-", "--out", &out, "-q"], &data("mail.pcap"));
    assert_eq!(
        (run.status, run.err.as_str()),
        (1, "flowgauge: -: specified more than once; standard input is read only once\n")
    );
    let once = folder.path("once");
    assert_eq!(run_with_input(&["streams", "-", "--out", &once, "-q"], &data("mail.pcap")).status, 0);
    assert_eq!(read(&out), read(&once));
}

/// If one file cannot be written, the index contains the files that were written before it.
#[test]
fn a_write_failure_is_reported_and_the_index_lists_the_written_files() {
    let folder = Folder::new();
    let whole = folder.path("whole");
    assert_eq!(run(&["streams", "ssh.pcap", "--out", &whole, "-q"]).status, 0);
    let streams = read(&whole);
    let out = folder.path("out");
    fs::create_dir(&out).unwrap();
    // A folder that is not empty has the name of a file to be written.
    let name = streams[2].0["file"].as_str().unwrap();
    fs::create_dir_all(format!("{out}/{name}/x")).unwrap();
    let run = run(&["streams", "ssh.pcap", "--out", &out, "-q", "--force"]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains(name) && run.err.lines().count() == 1, "{}", run.err);
    let index = objects(&fs::read_to_string(format!("{out}/index.ndjson")).unwrap());
    assert!(!index.is_empty());
    for line in index {
        if let Some(file) = line["file"].as_str() {
            assert_eq!(fs::metadata(format!("{out}/{file}")).unwrap().len(), number(&line, "octet_count"));
        }
    }
}

#[test]
fn file_names_follow_the_pattern() {
    let folder = Folder::new();
    let out = folder.path("out");
    let pattern = "{source}_{source_port} to {destination}_{destination_port} {side} {number}.bin";
    assert_eq!(
        run(&["streams", "web.pcap", "--filter", "port 8080", "--out", &out, "--name", pattern]).status,
        0
    );
    // Refused connections have no payload.
    assert!(read(&out).iter().all(|(line, _)| line["file"].is_null()));
    let out = folder.path("again");
    assert_eq!(run(&["streams", "ssh.pcap", "--out", &out, "--name", pattern, "-q"]).status, 0);
    for (line, octets) in read(&out) {
        let name = line["file"].as_str().unwrap();
        let text = |field: &str| line[field].to_string().replace('"', "").replace(':', "_");
        let from = format!("{}_{} to ", text("source_address"), text("source_port"));
        assert!(name.starts_with(&from) && name.contains(&text("destination_address")), "{name}");
        assert!(name.ends_with(&format!(" {:06}.bin", number(&line, "number"))), "{name}");
        assert!(octets.starts_with(b"SSH-2.0-"));
    }
}

#[test]
fn a_single_connection_is_written_to_standard_output() {
    let folder = Folder::new();
    let all = records(&["web.pcap", "--filter", "port 80", "--sort", "start"]);
    let id = all[0]["community_id"].as_str().unwrap();
    let out = folder.path("out");
    assert_eq!(run(&["streams", "web.pcap", "--community-id", id, "--out", &out, "-q"]).status, 0);
    let streams = read(&out);
    assert_eq!(streams.len(), 2);
    let side_octets = |side: &str, input: &[u8]| {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_flowgauge"))
            .args(["streams", "-", "--community-id", id, "--to-stdout", side, "-q"])
            .stdin(std::process::Stdio::from(fs::File::open(folder.file("input", input)).unwrap()))
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        child.stdout
    };
    let web = data("web.pcap");
    assert!(side_octets("initiator", &web) == streams[0].1);
    assert!(side_octets("responder", &web) == streams[1].1);
    assert!(side_octets("both", &web).len() == streams[0].1.len() + streams[1].1.len());

    let several = run(&["streams", "mail.pcap", "--to-stdout", "responder", "--filter", "tcp port 25", "-q"]);
    assert_eq!(several.status, 1);
    assert!(
        several.out.starts_with("220 ") && several.out.matches("\r\n221 ").count() == 1,
        "{}",
        several.out
    );
    assert!(several.err.contains("only the first connection was written, without "), "{}", several.err);
    let none = run(&["streams", "mail.pcap", "--to-stdout", "both", "--filter", "udp"]);
    assert_eq!((none.status, none.out.as_str()), (1, ""));
    assert!(none.err.contains("no selected connection has octets; nothing was written"), "{}", none.err);
}

#[test]
fn a_filter_selects_the_same_flows_as_in_other_commands() {
    let folder = Folder::new();
    for (at, (file, filter)) in [
        ("web.pcap", "tcp port 443"),
        ("web.pcap", "tcp dst port 443 or src host 2001:db8:77::2"),
        ("vlan.pcapng", "vlan 10 and tcp"),
        ("mail.pcap", "src port 25"),
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path(&at.to_string());
        assert_eq!(run(&["streams", file, "--filter", filter, "--out", &out, "-q"]).status, 0);
        let mut found: Vec<_> =
            read(&out).into_iter().map(|(line, _)| line["community_id"].to_string()).collect();
        let expected = records(&[file, "--filter", filter]);
        let expected = expected.iter().filter(|record| record["protocol"] == 6);
        let mut expected: Vec<_> =
            expected.flat_map(|record| [(); 2].map(|()| record["community_id"].to_string())).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{filter}");
    }
    let out = folder.path("out");
    let once = run_with_input(&["streams", "-", "--filter", "dst port 80", "--out", &out], &data("web.pcap"));
    assert_eq!(once.status, 2);
    assert!(once.err.contains("can be read only once"), "{}", once.err);
    assert!(!fs::exists(&out).unwrap(), "the folder was created although nothing was written");
}

/// A capture in which every seventh frame with payload is captured 50 ms late, after its acknowledgment.
fn capture_with_late_frames(name: &str) -> Vec<u8> {
    let whole = data(name);
    let (header, mut rest) = whole.split_at(24);
    let (mut frames, mut long_count) = (Vec::new(), 0);
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        // Times are in nanoseconds.
        let (mut nanos, len) =
            (u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)), 16 + word(8) as usize);
        long_count += usize::from(len > 120);
        if len > 120 && long_count % 7 == 0 {
            nanos += 50_000_000;
        }
        let mut record = rest[..len].to_vec();
        record[..4].copy_from_slice(&((nanos / 1_000_000_000) as u32).to_le_bytes());
        record[4..8].copy_from_slice(&((nanos % 1_000_000_000) as u32).to_le_bytes());
        frames.push((nanos, record));
        rest = &rest[len..];
    }
    frames.sort_by_key(|(nanos, _)| *nanos);
    header.iter().copied().chain(frames.into_iter().flat_map(|(_, record)| record)).collect()
}

#[test]
fn the_ack_grace_option_reorders_octets_captured_after_their_acknowledgment() {
    let folder = Folder::new();
    let late = folder.file("late.pcap", &capture_with_late_frames("web.pcap"));
    let streams = |file: &str, out: &str, more: &[&str]| {
        let out = folder.path(out);
        let run = run(&[&["streams", file, "--out", &out, "-q"][..], more].concat());
        assert_eq!(run.status, 0, "{}", run.err);
        read(&out)
    };
    let octets = |streams: &[(Value, Vec<u8>)]| {
        let mut octets: Vec<_> = streams
            .iter()
            .map(|(line, octets)| {
                (line["community_id"].to_string(), line["is_initiator"].to_string(), octets.clone())
            })
            .collect();
        octets.sort();
        octets
    };
    let whole = streams("web.pcap", "whole", &[]);
    let without_grace = streams(&late, "without_grace", &[]);
    let gap_count: u64 = without_grace.iter().map(|(line, _)| number(line, "gap_count")).sum();
    assert!(gap_count > 10 && octets(&without_grace) != octets(&whole), "{gap_count}");
    // The timestamp of each gap lies within the capture.
    let gaps: Vec<_> = without_grace.iter().flat_map(|(line, _)| line["gaps"].as_array().unwrap()).collect();
    let times = whole.iter().map(|(line, _)| number(line, "start")..=number(line, "end") + 100_000_000);
    let times: Vec<_> = times.collect();
    assert!(gaps.iter().all(|gap| times.iter().any(|time| time.contains(&number(gap, "timestamp")))));
    assert_eq!(octets(&streams(&late, "with_grace", &["--ack-grace", "1s"])), octets(&whole));
    // The same applies to messages; their timestamps and order are those of the late frames.
    let messages = |args: &[&str]| {
        let run = run(&[&["sessions", "-q", "-p", "http"], args].concat());
        assert_eq!(run.status, 0, "{}", run.err);
        let mut lines: Vec<_> = objects(&run.out)
            .into_iter()
            .map(|line| format!("{} {} {}", line["community_id"], line["message"], line["target"]))
            .collect();
        lines.sort();
        lines
    };
    assert_ne!(messages(&[&late]), messages(&["web.pcap"]));
    assert_eq!(messages(&[&late, "--ack-grace", "1s"]), messages(&["web.pcap"]));
    let refused = run(&["streams", "web.pcap", "--out", &folder.path("none"), "--ack-grace", "soon"]);
    assert_eq!(refused.status, 2);
}
