//! Tests of `flowgauge slice`.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use flowgauge::source::PcapngWriter;
use flowgauge::{Frame, Timestamp};

use super::{Folder, command, comparable_records, data, objects, records, repository, run, run_with_input};

#[test]
fn a_slice_contains_the_flows_that_a_filter_selects() {
    let folder = Folder::new();
    for (number, (file, filter)) in [
        ("web.pcap", "tcp port 443"),
        ("web.pcap", "tcp dst port 443 or src host 2001:db8:77::2"),
        ("dns.pcap", "udp and dst port 53"),
        ("vlan.pcapng", "vlan 10 and tcp"),
        ("any.pcap", "udp"),
        ("raw-tun.pcap", "dst port 53"),
        ("mail.pcap", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path(&format!("{number}.pcapng"));
        let run = run(&["slice", file, "--filter", filter, "-w", &out]);
        assert_eq!(run.status, 0, "{filter}: {}", run.err);
        let expected = records(&[file, "--filter", filter]);
        assert!(!expected.is_empty());
        assert!(run.err.contains(&format!(" of {} flow", expected.len())), "{}", run.err);
        assert_eq!(comparable_records(&records(&[&out])), comparable_records(&expected), "{filter}");
    }
}

#[test]
fn a_slice_contains_the_flows_with_given_community_ids() {
    let folder = Folder::new();
    let all = records(&["web.pcap", "--filter", "tcp", "--sort", "start"]);
    let (first, last) = (&all[0], &all[17]);
    let ids = [first, last].map(|record| record["community_id"].as_str().unwrap());
    let out = folder.path("two.pcapng");
    let args = ["slice", "web.pcap", "--community-id", ids[0], "--community-id", ids[1], "-w", &out];
    assert_eq!(run(&args).status, 0);
    assert_eq!(comparable_records(&records(&[&out])), comparable_records(&[first.clone(), last.clone()]));

    // From a pipe into a pipe.
    let args = ["slice", "-", "--community-id", ids[0], "-w", "-", "-q"];
    let mut child = command()
        .args(args)
        .stdin(fs::File::open(repository().join("examples/data/web.pcap")).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut octets = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut octets).unwrap();
    assert!(child.wait().unwrap().success());
    let path = folder.file("one.pcapng", &octets);
    assert_eq!(comparable_records(&records(&[&path])), comparable_records(std::slice::from_ref(first)));

    let bad = run(&["slice", "web.pcap", "--community-id", "1:xyz", "-w", &folder.path("x")]);
    assert_eq!(bad.status, 2);
}

#[test]
fn a_slice_overwrites_files_only_with_force_and_never_its_input() {
    let folder = Folder::new();
    let out = folder.file("out.pcapng", b"precious");
    let args = ["slice", "web.pcap", "--filter", "port 8080", "-w", &out];
    let refused = run(&args);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("already exists; use --force to overwrite it"), "{}", refused.err);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    // If the filter selects no flow, the existing file is kept.
    let nothing = run(&["slice", "web.pcap", "--filter", "port 9", "-w", &out, "--force"]);
    assert_eq!((nothing.status, nothing.err.lines().count()), (1, 1), "{}", nothing.err);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    let forced = run(&[&args[..], &["--force"]].concat());
    assert_eq!(forced.status, 0, "{}", forced.err);
    assert_eq!(records(&[&out]).len(), 2);
    // The input is never the output.
    let own = folder.file("own.pcap", &data("dns.pcap"));
    let same = run(&["slice", &own, "--filter", "udp", "-w", &own, "--force"]);
    assert_eq!(same.status, 1);
    assert!(same.err.contains("is an input"), "{}", same.err);
    assert_eq!(fs::read(&own).unwrap(), data("dns.pcap"));

    let new = folder.path("new.pcapng");
    let once = run_with_input(&["slice", "-", "--filter", "dst port 8080", "-w", &new], &data("web.pcap"));
    assert_eq!(once.status, 2);
    assert!(once.err.contains("can be read only once"), "{}", once.err);
    let open = run_with_input(&["slice", "-", "--filter", "port 8080", "-w", &new], &data("web.pcap"));
    assert_eq!(open.status, 0, "{}", open.err);
    assert_eq!(records(&[&new]).len(), 2);
}

#[test]
fn a_slice_of_a_truncated_capture_has_the_packets_before_the_truncation() {
    let folder = Folder::new();
    let whole = data("ssh.pcap");
    let truncated = folder.file("truncated.pcap", &whole[..whole.len() / 2]);
    let out = folder.path("out.pcapng");
    let run = run(&["slice", &truncated, "--filter", "tcp dst port 22", "-w", &out, "-q"]);
    assert_eq!((run.status, run.err.lines().count()), (1, 1), "{}", run.err);
    let before = self::run(&["flows", &truncated, "--filter", "tcp", "--format", "ndjson", "-q"]);
    assert_eq!(comparable_records(&records(&[&out])), comparable_records(&objects(&before.out)));
}

/// Returns an Ethernet frame with a part of a UDP datagram in IPv4: identification, offset in octets, whether more follow.
fn fragment(identification: u16, (offset, has_more): (u16, bool), payload: &[u8]) -> Vec<u8> {
    let [length, place] =
        [20 + payload.len() as u16, (offset / 8) | if has_more { 0x2000 } else { 0 }].map(u16::to_be_bytes);
    let id = identification.to_be_bytes();
    let header = [0x45, 0, length[0], length[1], id[0], id[1], place[0], place[1], 64, 17, 0, 0];
    [&[2; 12][..], &[8, 0], &header, &[10, 0, 0, 1, 10, 0, 0, 2], payload].concat()
}

/// Returns a capture of frames with times in seconds.
fn capture(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    for (seconds, data) in frames {
        writer.write(&Frame::ethernet(Timestamp::from_parts(*seconds, 0), data), &[]).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_slice_contains_all_fragments_of_its_datagrams() {
    let first = |identification, port: u16| {
        let ports = [port.to_be_bytes(), 9999_u16.to_be_bytes()].concat();
        fragment(identification, (0, true), &[&ports[..], &[0, 24, 0, 0], &[1; 8]].concat())
    };
    let later = |identification, octet| fragment(identification, (16, false), &[octet; 8]);
    let frames = [
        // A later fragment before the first one; datagrams of two flows; the same identification again.
        (1, later(7, 7)),
        (1, later(8, 8)),
        (1, first(7, 5000)),
        (1, first(8, 5001)),
        (1, later(9, 9)),
        (2, first(10, 5000)),
        (2, later(10, 10)),
        (3, first(10, 5001)),
        (3, later(10, 11)),
        // The rest arrives too late.
        (4, first(12, 5000)),
        (100, later(12, 12)),
    ];
    let folder = Folder::new();
    let (file, out) = (folder.file("fragments.pcapng", &capture(&frames)), folder.path("slice.pcapng"));
    let run = run(&["slice", &file, "--filter", "udp port 5000", "-w", &out]);
    assert_eq!(run.status, 0, "{}", run.err);
    let wanted: Vec<_> = [0, 2, 5, 6, 9].map(|index: usize| frames[index].clone()).into();
    assert_eq!(fs::read(&out).unwrap(), capture(&wanted));
}
