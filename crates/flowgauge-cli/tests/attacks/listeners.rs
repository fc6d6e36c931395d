//! Connections and datagrams that would keep honest senders out.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::collect::{FLOW, RECORD, data, message, template};
use super::packets::{LINK_ETHERNET, block, header, interface, pcap, section, udp};
use super::port::free_port;
use super::process::{Process, TIMEOUT, wait_for};
use super::{Folder, Run};

/// Number of connections that `collect` and `live` accept at once.
const COLLECT_SLOT_COUNT: usize = 64;
const LIVE_SLOT_COUNT: usize = 16;

/// A message with a template and a record to the port `port`.
fn record(port: u16) -> Vec<u8> {
    let mut record = RECORD;
    record[10..12].copy_from_slice(&port.to_be_bytes());
    message(1, &[template(256, &FLOW), data(256, &record)].concat())
}

/// Connects as soon as the listener accepts connections.
fn connect(port: u16) -> TcpStream {
    let mut connection = None;
    wait_for("a listener", || {
        connection = TcpStream::connect(("127.0.0.1", port)).ok();
        connection.is_some()
    });
    connection.unwrap()
}

/// Connects and sends until the output has a text: a connection for which there is no slot is closed.
fn send_until(run: &Run, port: u16, octets: &[u8], text: &str) {
    let mut connections = Vec::new();
    wait_for(text, || {
        if let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = connection.write_all(octets);
            connections.push(connection);
        }
        thread::sleep(Duration::from_millis(300));
        run.out().contains(text)
    });
}

#[test]
fn connections_without_messages_do_not_shut_out_exporters() {
    let port = free_port();
    let address = format!("tcp://127.0.0.1:{port}");
    let mut run = Run::start(Folder::new(), &["collect", "--listen", &address, "--format", "ndjson"]);
    let mut held: Vec<_> = (0..COLLECT_SLOT_COUNT).map(|_| connect(port)).collect();
    held.iter_mut().for_each(|connection| drop(connection.write_all(&[0])));
    send_until(&run, port, &record(443), "\"destination_port\":443");
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
    drop(held);
}

#[test]
fn a_listener_continues_after_it_had_no_descriptors_left() {
    let folder = Folder::new();
    let port = free_port();
    let line = format!(
        "ulimit -n 40; exec {} collect --listen tcp://127.0.0.1:{port} --format ndjson >out 2>err",
        env!("CARGO_BIN_EXE_flowgauge")
    );
    let mut shell = Command::new("sh");
    let process = Process::start(shell.args(["-c", &line]).current_dir(&folder.0).stdin(Stdio::null()));
    let mut run = Run { process, folder };
    let mut held: Vec<_> = (0..COLLECT_SLOT_COUNT).map(|_| connect(port)).collect();
    held.iter_mut().for_each(|connection| drop(connection.write_all(&[0])));
    thread::sleep(Duration::from_secs(1));
    assert!(!run.process.has_ended(), "{}", run.err());
    drop(held);
    send_until(&run, port, &record(443), "\"destination_port\":443");
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
}

#[test]
fn connections_without_frames_do_not_shut_out_captures() {
    let port = free_port();
    let address = format!("tcp://127.0.0.1:{port}/pcap");
    let args = ["live", "--listen", &address, "--format", "ndjson", "--idle-timeout", "1ms"];
    let mut run = Run::start(Folder::new(), &args);
    let mut held: Vec<_> = (0..LIVE_SLOT_COUNT).map(|_| connect(port)).collect();
    held.iter_mut().for_each(|connection| drop(connection.write_all(&header(LINK_ETHERNET))));
    let frames: Vec<_> = (0..5).map(|_| udp((77, 2), b"x")).collect();
    send_until(&run, port, &pcap(LINK_ETHERNET, &frames), "\"source_port\":77");
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
    drop(held);
}

/// Captures over TCP with lengths that are never sent, and interfaces without end.
#[test]
fn malformed_captures_over_tcp_use_bounded_memory_and_do_not_end_others() {
    let port = free_port();
    let address = format!("tcp://127.0.0.1:{port}/pcap");
    let args =
        ["live", "--listen", &address, "--format", "ndjson", "--memory", "64MiB", "--idle-timeout", "1ms"];
    let mut run = Run::start(Folder::new(), &args);
    let mut honest = connect(port);
    honest.write_all(&header(LINK_ETHERNET)).unwrap();
    let long = u32::MAX.to_le_bytes();
    let claim = |block_type: u32, len: u32| [block_type.to_le_bytes(), len.to_le_bytes()].concat();
    let packet = |interface: u32, len: u32| -> Vec<u8> {
        let fields = [interface, 0, 0, len, len].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        block(6, &[&fields[..], &[0; 64]].concat())
    };
    for octets in [
        [header(LINK_ETHERNET), vec![0; 8], long.to_vec(), long.to_vec(), vec![0; 1000]].concat(),
        [section(&[]), claim(6, u32::MAX - 3), vec![0; 1000]].concat(),
        [section(&[]), claim(6, 16 << 20)].concat(),
        [section(&[]), interface(&[]).repeat(200_000)].concat(),
        section(&[]).repeat(100_000),
        section(&[2, 0, 0xff, 0xff, 1, 2, 3, 4]),
        [section(&[]), packet(0, 1 << 31)].concat(),
        [section(&[]), packet(u32::MAX, 4)].concat(),
        [b"\x1f\x8b\x08\0".to_vec(), vec![0; 500]].concat(),
    ] {
        let mut connection = connect(port);
        connection.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = connection.write_all(&octets);
    }
    let frames = pcap(LINK_ETHERNET, &[udp((77, 2), b"x")]);
    honest.write_all(&frames[header(LINK_ETHERNET).len()..]).unwrap();
    // The end of this connection is noticed behind its frames.
    honest.shutdown(std::net::Shutdown::Write).unwrap();
    honest.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_eq!(honest.read(&mut [0]).unwrap_or(0), 0);
    thread::sleep(Duration::from_millis(500));
    let peak = run.peak_memory();
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
    assert!(run.out().contains("\"source_port\":77"), "{}", run.err());
    assert!(peak < 150, "{peak} MiB");
}

/// A server that ends each connection after a stream of interfaces.
#[test]
fn a_server_of_interfaces_without_frames_uses_bounded_memory() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}/pcap", server.local_addr().unwrap());
    let mut run = Run::start(
        Folder::new(),
        &["live", "--connect", &address, "--format", "ndjson", "--memory", "64MiB"],
    );
    let octets = [section(&[]), interface(&[]).repeat(100_000)].concat();
    for _ in 0..3 {
        let (mut connection, _) = server.accept().unwrap();
        let _ = connection.write_all(&octets);
    }
    assert!(run.peak_memory() < 150, "{} MiB", run.peak_memory());
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
}

/// Datagrams of mirror sessions: tunnels in tunnels up to the length of a datagram, and octets of all kinds.
#[test]
fn mirrored_datagrams_of_any_content_use_bounded_memory() {
    let vxlan = |inner: &[u8]| [&[8, 0, 0, 0, 0, 0, 7, 0], inner].concat();
    let mut nested = udp((1, 2), b"x");
    while nested.len() < 60_000 {
        nested = udp((5, 4789), &vxlan(&nested));
    }
    for encapsulation in ["vxlan", "vxlan-gpe", "geneve", "tzsp", "gre"] {
        let port = free_port();
        let address = format!("udp://127.0.0.1:{port}/{encapsulation}");
        let args = ["live", "--listen", &address, "--format", "ndjson", "--memory", "64MiB"];
        let mut run = Run::start(Folder::new(), &args);
        run.wait_until_ready();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = ("127.0.0.1", port);
        for number in 0_u32..3000 {
            let mut datagram = match number % 50 {
                0 => vxlan(&nested),
                1 => Vec::new(),
                _ => vxlan(&udp((number as u16, 2), b"x")),
            };
            let len = datagram.len();
            if len > 0 && number % 3 == 0 {
                datagram[number as usize % len.min(60)] ^= (number >> 3) as u8;
            }
            let _ = socket.send_to(&datagram, to);
        }
        let peak = run.peak_memory();
        assert_eq!(run.interrupt(), Some(130), "{encapsulation}: {}", run.err());
        assert!(peak < 150, "{encapsulation}: {peak} MiB");
    }
}

/// 4000 domains of 200 addresses, each with a long template, and malformed messages of the same addresses.
#[test]
fn a_flood_of_domains_does_not_displace_the_templates_of_an_exporter() {
    let port = free_port();
    let address = format!("udp://127.0.0.1:{port}");
    let mut run = Run::start(
        Folder::new(),
        &["collect", "--listen", &address, "--format", "csv", "--fields", "destination_port"],
    );
    let to = ("127.0.0.1", port);
    let honest = UdpSocket::bind("127.0.0.1:0").unwrap();
    wait_for("the first record", || {
        let _ = honest.send_to(&record(1), to);
        thread::sleep(Duration::from_millis(100));
        run.out().contains("\n1\n")
    });
    let spoofed: Vec<_> =
        (1..=200).map(|at| UdpSocket::bind((format!("127.0.1.{at}"), 0)).unwrap()).collect();
    let long: Vec<_> = vec![(8, 4); 300];
    for domain in 0..4000_u32 {
        let sets = [template(256, &long), template(257, &FLOW), data(257, &RECORD)].concat();
        let mut datagram = message(domain, &sets);
        let socket = &spoofed[domain as usize % spoofed.len()];
        socket.send_to(&datagram, to).unwrap();
        let at = domain as usize * 7 % datagram.len();
        datagram[at] ^= 1 << (domain % 8);
        socket.send_to(&datagram, to).unwrap();
        if domain % 50 == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    wait_for("a record without its template", || {
        let mut octets = RECORD;
        octets[10..12].copy_from_slice(&2_u16.to_be_bytes());
        let _ = honest.send_to(&message(1, &data(256, &octets)), to);
        thread::sleep(Duration::from_millis(100));
        run.out().contains("\n2\n")
    });
    assert!(run.peak_memory() < 100, "{} MiB", run.peak_memory());
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
}
