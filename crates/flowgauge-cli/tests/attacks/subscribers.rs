//! `flowgauge publish` and subscribers that do not read, or send what no subscriber sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::port::free_port;
use super::process::wait_for;
use super::zmtp::{frame, greeting, ready, subscription};
use super::{Folder, Run};

/// Starts a publisher of a capture that waits for `count` subscribers.
fn publisher(count: &str) -> (Run, u16) {
    let port = free_port();
    let folder = Folder::new();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/web.pcap");
    folder.file("input", &std::fs::read(capture).unwrap());
    let address = format!("tcp://127.0.0.1:{port}");
    let args = ["publish", "input", "--format", "ndjson", "--sessions", "--bind", &address];
    let run = Run::start(folder, &[&args[..], &["--wait-for-subscribers", count, "--stall", "30s"]].concat());
    run.wait_until_ready();
    (run, port)
}

fn connect(port: u16) -> TcpStream {
    let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    connection
}

/// A subscriber whose handshake is complete.
fn subscriber(port: u16, identity: &[u8]) -> TcpStream {
    let mut connection = connect(port);
    connection.write_all(&[greeting(), ready(b"SUB", identity)].concat()).unwrap();
    let _ = connection.read(&mut [0; 4096]);
    connection
}

#[test]
fn a_signal_ends_the_command_although_subscribers_do_not_read() {
    let (mut run, port) = publisher("8");
    let held: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = subscriber(port, &[]);
            connection.write_all(&subscription(&[])).unwrap();
            connection
        })
        .collect();
    wait_for("the subscribers", || run.err().contains("8 subscribers"));
    thread::sleep(Duration::from_millis(500));
    let started = Instant::now();
    // More than the socket buffers hold waits for the subscribers, or everything was sent; both must end.
    assert!(matches!(run.interrupt(), Some(130 | 0)), "{}", run.err());
    // Not a measurement: without the limit, the command would wait for half a minute.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    drop(held);
}

#[test]
fn peers_that_send_anything_use_bounded_memory_and_do_not_shut_out_others() {
    let (mut run, port) = publisher("9999");
    for number in 0..100_usize {
        let mut connection = connect(port);
        let octets: Vec<u8> =
            (0..[1, 10, 64, 100, 5000][number % 5]).map(|at| (at * 31 + number) as u8).collect();
        let _ = connection.write_all(&octets);
    }
    for octets in [
        [&[2][..], &(u64::MAX >> 1).to_be_bytes(), &[b'x'; 4000]].concat(),
        [&[6][..], &u64::MAX.to_be_bytes(), &[b'x'; 100]].concat(),
        [&[2][..], &4097_u64.to_be_bytes()].concat(),
        b"\x01\x01x".repeat(5000),
        b"\x04\x04\x03abc".repeat(1000),
        [&[4, 255][..], &[5; 255]].concat(),
    ] {
        let mut connection = subscriber(port, &[]);
        let _ = connection.write_all(&octets);
        thread::sleep(Duration::from_millis(30));
    }
    let many = |count: u32, len: usize| -> Vec<u8> {
        let prefix = |number: u32| {
            let mut prefix = format!("{number:07}").into_bytes();
            prefix.resize(len.max(7), b'x');
            subscription(&prefix)
        };
        (0..count).flat_map(prefix).collect()
    };
    let _ = subscriber(port, &[]).write_all(&many(100_000, 7));
    let pairs = [subscription(b"a"), frame(b"\0a", false)].concat().repeat(20_000);
    let _ = subscriber(port, &[]).write_all(&pairs);
    // More peers than are permitted, each with the permitted number of the longest prefixes.
    let mut peers: Vec<_> = (0..300)
        .map(|_| {
            let mut connection = connect(port);
            let _ = connection.write_all(&[greeting(), ready(b"SUB", &[b'i'; 200])].concat());
            connection
        })
        .collect();
    for peer in &mut peers {
        let _ = peer.write_all(&many(1000, 250));
    }
    thread::sleep(Duration::from_secs(1));
    let peak = run.peak_memory();
    assert!(!run.process.has_ended(), "{}", run.err());
    drop(peers);
    wait_for("a subscriber", || {
        let mut honest = connect(port);
        honest.write_all(&[greeting(), ready(b"SUB", &[])].concat()).is_ok()
            && honest.read(&mut [0; 4096]).is_ok_and(|len| len > 0)
    });
    assert!(peak < 300, "{peak} MiB");
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
}

#[test]
fn silent_connections_give_way_after_the_limit_of_the_handshake() {
    let (mut run, port) = publisher("9999");
    let held: Vec<_> = (0..250).map(|_| connect(port)).collect();
    wait_for("a subscriber", || {
        let mut honest = connect(port);
        let is_sent = honest.write_all(&[greeting(), ready(b"SUB", &[])].concat()).is_ok();
        is_sent && honest.read(&mut [0; 4096]).is_ok_and(|len| len > 64)
    });
    drop(held);
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
}
