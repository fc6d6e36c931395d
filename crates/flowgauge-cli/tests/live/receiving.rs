//! Mirror sessions and captures over TCP, on loopback.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Folder, Live, Process, capture, comparable, flowgauge, flows, free_port, wait_for};

/// Returns the frames of a capture in pcap format with little-endian headers.
fn frames(name: &str) -> Vec<Vec<u8>> {
    let file = fs::read(capture(name)).unwrap();
    let (mut frames, mut rest) = (Vec::new(), &file[24..]);
    while let Some(header) = rest.get(..16) {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}

#[test]
fn a_mirror_session_gives_the_records_of_the_capture() {
    let port = free_port();
    let live = Live::start(flowgauge(), &["--listen", &format!("udp://127.0.0.1:{port}/vxlan")]);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let frames = frames("web.pcap");
    for group in frames.chunks(10) {
        for frame in group {
            let octets = [&[8, 0, 0, 0, 0, 0, 42, 0], &frame[..]].concat();
            sender.send_to(&octets, ("127.0.0.1", port)).unwrap();
        }
        // The kernel's buffer of an unprivileged process holds about 100 of these datagrams.
        thread::sleep(Duration::from_millis(10));
    }
    sender.send_to(b"no VXLAN", ("127.0.0.1", port)).unwrap();
    thread::sleep(Duration::from_secs(1));
    let outcome = live.interrupt();
    assert_eq!(outcome.status, Some(130), "{}", outcome.messages);
    assert!(outcome.messages.starts_with("1286 packets"), "{}", outcome.messages);
    assert!(outcome.messages.contains("1 datagram without a frame"), "{}", outcome.messages);
    assert_eq!(comparable(&outcome.records), comparable(&flows(&capture("web.pcap"), &[])));
}

/// With a scope per interface, equal addresses in two virtual networks are different flows.
#[test]
fn virtual_networks_are_kept_apart_on_request() {
    let frames = frames("dns.pcap");
    let expected = flows(&capture("dns.pcap"), &[]).len();
    for (scope, factor) in [("all", 1), ("interface", 2)] {
        let port = free_port();
        let address = format!("udp://127.0.0.1:{port}/vxlan");
        let live = Live::start(flowgauge(), &["--listen", &address, "--scope", scope]);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for group in frames.chunks(10) {
            for (frame, vni) in group.iter().flat_map(|frame| [(frame, 1), (frame, 2)]) {
                let octets = [&[8, 0, 0, 0, 0, 0, vni, 0], &frame[..]].concat();
                sender.send_to(&octets, ("127.0.0.1", port)).unwrap();
            }
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_secs(1));
        let outcome = live.interrupt();
        assert_eq!(outcome.records.len(), factor * expected, "{scope}: {}", outcome.messages);
        let scopes: BTreeSet<_> =
            outcome.records.iter().map(|record| record["scope"].as_u64().unwrap()).collect();
        assert_eq!(scopes.len(), factor, "{scope}");
    }
}

#[test]
fn captures_over_tcp_give_the_records_of_the_file() {
    let port = free_port();
    let live = Live::start(flowgauge(), &["--listen", &format!("tcp://127.0.0.1:{port}/pcap")]);
    let mut garbage = TcpStream::connect(("127.0.0.1", port)).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(&fs::read(capture("mail.pcap")).unwrap()).unwrap();
    drop(stream);
    wait_for("the message", || live.messages().contains("it looks like text"));
    let outcome = live.interrupt();
    assert_eq!(outcome.records.len(), flows(&capture("mail.pcap"), &[]).len());
    assert_eq!(comparable(&outcome.records), comparable(&flows(&capture("mail.pcap"), &[])));
    assert!(
        outcome.messages.contains("1 connection failed or closed without a capture"),
        "{}",
        outcome.messages
    );
}

#[test]
fn a_remote_capture_is_read_and_connected_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}/pcap", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        for name in ["dns.pcap", "ssh.pcap"] {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&fs::read(capture(name)).unwrap()).unwrap();
        }
    });
    let live = Live::start(flowgauge(), &["--connect", &address]);
    server.join().unwrap();
    thread::sleep(Duration::from_millis(500));
    let outcome = live.interrupt();
    let both = [flows(&capture("dns.pcap"), &[]), flows(&capture("ssh.pcap"), &[])].concat();
    // Flows of the second capture that continue those of the first are one, so only the packets are comparable.
    let packet_count = |records: &[Value]| -> u64 {
        let count = |record: &Value, name: &str| record[name].as_u64().unwrap();
        records
            .iter()
            .map(|record| count(record, "packet_count") + count(record, "reverse_packet_count"))
            .sum()
    };
    assert_eq!(packet_count(&outcome.records), packet_count(&both), "{}", outcome.messages);
}

#[test]
fn flows_continue_from_a_checkpoint_in_the_next_run() {
    let folder = Folder::new();
    let state = folder.path("state");
    let file = fs::read(capture("web.pcap")).unwrap();
    // The position of a frame in the middle.
    let mut half = 24;
    while half < file.len() / 2 {
        half += 16 + u32::from_le_bytes(file[half + 8..half + 12].try_into().unwrap()) as usize;
    }
    let parts = [file[..half].to_vec(), [&file[..24], &file[half..]].concat()];
    let mut records = Vec::new();
    for (part, last) in parts.iter().zip([&[][..], &["--finish"]]) {
        let port = free_port();
        let address = format!("tcp://127.0.0.1:{port}/pcap");
        let args = ["--listen", &address, "--checkpoint", &state, "--checkpoint-interval", "100ms"];
        let live = Live::start(flowgauge(), &[&args[..], last].concat());
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(part).unwrap();
        drop(stream);
        wait_for("a checkpoint", || fs::metadata(&state).is_ok());
        thread::sleep(Duration::from_millis(500));
        let outcome = live.interrupt();
        assert_eq!(outcome.records.is_empty(), last.is_empty(), "{}", outcome.messages);
        records.extend(outcome.records);
    }
    assert!(fs::metadata(&state).is_err());
    assert_eq!(comparable(&records), comparable(&flows(&capture("web.pcap"), &[])));
}

#[test]
fn recorded_files_contain_all_frames_and_old_ones_are_removed() {
    let folder = Folder::new();
    for (options, file_count) in
        [(&[][..], 1), (&["--rotate-size", "200kB"], 7), (&["--rotate-size", "200kB", "--keep", "2"], 2)]
    {
        let port = free_port();
        let address = format!("tcp://127.0.0.1:{port}/pcap");
        let path = folder.path("web.pcapng");
        let args = [&["--listen", &address, "--write", &path], options].concat();
        let live = Live::start(flowgauge(), &args);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&fs::read(capture("web.pcap")).unwrap()).unwrap();
        drop(stream);
        thread::sleep(Duration::from_millis(500));
        let outcome = live.interrupt();
        assert_eq!(outcome.status, Some(130), "{}", outcome.messages);
        let names = folder.names();
        assert_eq!(names.len(), file_count, "{names:?}");
        let paths: Vec<_> = names.iter().map(|name| folder.path(name)).collect();
        let others: Vec<_> = paths[1..].iter().map(String::as_str).collect();
        let written = flows(&paths[0], &others);
        if file_count != 2 {
            assert_eq!(comparable(&written), comparable(&flows(&capture("web.pcap"), &[])));
            assert_eq!(comparable(&written), comparable(&outcome.records));
        }
        names.iter().for_each(|name| fs::remove_file(folder.path(name)).unwrap());
    }
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let folder = Folder::new();
    let path = folder.file("old.pcapng", b"old");
    let address = format!("udp://127.0.0.1:{}/vxlan", free_port());
    let args = ["--listen", &address, "--duration", "100ms", "--write", &path];
    let outcome = Live::start(flowgauge(), &args).end();
    assert_eq!(outcome.status, Some(1));
    assert!(outcome.messages.contains("already exists; use --force"), "{}", outcome.messages);
    let outcome = Live::start(flowgauge(), &[&args[..], &["--force"]].concat()).end();
    assert_eq!(outcome.status, Some(0), "{}", outcome.messages);
    assert_ne!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn invalid_addresses_are_explained() {
    for (args, message) in [
        (&["--listen", "udp://127.0.0.1:4789"][..], "must state the content behind the address"),
        (&["--listen", "udp://127.0.0.1:4789/l2tp"], "unknown encapsulation `l2tp`; use one of vxlan,"),
        (&["--listen", "tcp://127.0.0.1:4789/vxlan"], "is not received over TCP; use pcap"),
        (&["--listen", "ip://127.0.0.1/vxlan"], "is not received directly over IP; use gre"),
        (&["--listen", "ip://localhost/gre"], "`localhost` is not an IP address"),
        (&["--connect", "udp://127.0.0.1:4789/pcap"], "must begin with tcp://"),
        (&[], "the following required arguments were not provided"),
        (&["--connect", "tcp://127.0.0.1:1/pcap", "--keep", "3"], "--write <KIND=PATH>"),
    ] {
        let outcome = Live::start(flowgauge(), args).end();
        assert_eq!(outcome.status, Some(2), "{args:?}");
        assert!(outcome.messages.contains(message), "{}", outcome.messages);
    }
    let used = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap();
    let outcome = Live::start(flowgauge(), &["--listen", &format!("udp://{address}/geneve")]).end();
    assert_eq!(outcome.status, Some(1));
    assert_eq!(outcome.messages, format!("flowgauge: udp {address}: Address already in use (os error 98)\n"));
}

/// A raw socket needs a capability, which is removed here.
#[test]
fn a_missing_permission_is_named() {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-all", env!("CARGO_BIN_EXE_flowgauge")]);
    if Command::new("setpriv")
        .args(["--bounding-set", "-all", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        let outcome = Live::start(command, &["--listen", "ip://127.0.0.1/gre"]).end();
        assert_eq!(outcome.status, Some(1));
        assert!(
            outcome.messages.contains("CAP_NET_RAW") && outcome.messages.contains("sudo setcap"),
            "{}",
            outcome.messages
        );
    } else {
        // Only root may remove capabilities from the bounding set; other users have none.
        let outcome = Live::start(flowgauge(), &["--listen", "ip://127.0.0.1/gre"]).end();
        assert!(outcome.messages.contains("CAP_NET_RAW"), "{}", outcome.messages);
    }
}

/// `flowgauge live | head -1` ends although no further flow is written.
#[test]
fn a_closed_output_ends_the_capture() {
    let port = free_port();
    let mut command = flowgauge();
    command.args(["live", "--format", "ndjson", "--listen", &format!("udp://127.0.0.1:{port}/vxlan")]);
    let mut child =
        Process::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut messages = BufReader::new(child.0.stderr.take().unwrap());
    let mut line = String::new();
    messages.read_line(&mut line).unwrap();
    assert!(line.contains("capturing on"), "{line}");
    // An open flow.
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let octets = [&[8, 0, 0, 0, 0, 0, 42, 0], &frames("dns.pcap")[0][..]].concat();
    sender.send_to(&octets, ("127.0.0.1", port)).unwrap();
    thread::sleep(Duration::from_secs(1));
    assert!(!child.has_ended());
    let closed_at = Instant::now();
    drop(child.0.stdout.take());
    assert_eq!(child.end(), Some(0));
    assert!(closed_at.elapsed() < Duration::from_secs(10), "{:?}", closed_at.elapsed());
    line.clear();
    messages.read_to_string(&mut line).unwrap();
    assert_eq!(line, "", "as after any closed pipe");
}

/// The frames of a capture are written until it ends otherwise.
#[test]
fn a_closed_output_does_not_end_a_recording() {
    let (port, folder) = (free_port(), Folder::new());
    let path = folder.path("frames.pcapng");
    let mut command = flowgauge();
    let listen = format!("udp://127.0.0.1:{port}/vxlan");
    command.args(["live", "--format", "ndjson", "--listen", &listen, "--write", &path]);
    let mut child = Process::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()));
    drop(child.0.stdout.take());
    thread::sleep(Duration::from_secs(1));
    assert!(!child.has_ended());
}
