//! Captures over TCP connections (pcap-over-IP).

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use flowgauge::StopHandle;
use flowgauge::base::FrameBatch;
use flowgauge::source::{End, Next, Source, StreamConfig, StreamSource, Warning, WarningKind};

use super::captures::root;
use super::{OwnedFrame, frames_of, read_until};

fn file(name: &str) -> Vec<u8> {
    fs::read(root().join("examples/data").join(name)).unwrap()
}

fn listening(config: StreamConfig) -> (StreamSource, SocketAddr) {
    let source = StreamSource::listen("127.0.0.1:0", config).unwrap();
    let address = source.local_addr().unwrap();
    (source, address)
}

/// Sends octets in pieces of odd lengths, and closes the connection.
fn send(address: SocketAddr, octets: Vec<u8>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut rest = &octets[..];
        for len in [1, 3, 19, 2, 400, 7, 65_000].into_iter().cycle() {
            let (piece, others) = rest.split_at(len.min(rest.len()));
            // The source may have closed the connection.
            if piece.is_empty() || stream.write_all(piece).is_err() {
                break;
            }
            rest = others;
        }
    })
}

#[test]
fn a_connection_delivers_the_frames_of_the_file() {
    for name in ["web.pcap", "vlan.pcapng"] {
        let (mut source, address) = listening(StreamConfig::default());
        let sender = send(address, file(name));
        let expected = frames_of(name);
        let frames = read_until(&mut source, |frames, source| {
            frames.len() >= expected.len() && source.progress() == file(name).len() as u64
        });
        sender.join().unwrap();
        assert_eq!(frames, expected);
        assert_eq!(source.stats().frame_count, expected.len() as u64);
    }
}

#[test]
fn simultaneous_connections_are_all_read() {
    let (mut source, address) = listening(StreamConfig::default());
    let names = ["web.pcap", "dns.pcap", "web.pcap", "ssh.pcap"];
    let senders: Vec<_> = names.map(|name| send(address, file(name))).into();
    let mut expected: Vec<_> =
        names.iter().flat_map(|name| frames_of(name)).map(|frame| frame.data).collect();
    let frames = read_until(&mut source, |frames, _| frames.len() >= expected.len());
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let mut found: Vec<_> = frames.into_iter().map(|frame| frame.data).collect();
    found.sort();
    expected.sort();
    assert!(found == expected);
    assert!(source.interfaces().len() < names.len(), "equal ones are one");
}

#[test]
fn connections_without_a_capture_do_not_disturb_others() {
    let mut config = StreamConfig::default();
    config.header_timeout = Duration::from_millis(300);
    let (mut source, address) = listening(config);
    let silent = TcpStream::connect(address).unwrap();
    let hostile: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x1f, 0x8b, 8, 0, 0, 0],
        // A section header block of 16 MiB, most of which does not arrive.
        &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 1, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
        // A pcap header, and a frame of 4 GiB.
        &[
            0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 1, 0,
            0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        ],
    ];
    let senders: Vec<_> = hostile.map(|octets| send(address, octets.to_vec())).into();
    let last = send(address, file("dns.pcap"));
    let expected = frames_of("dns.pcap");
    let frames = read_until(&mut source, |frames, source| {
        frames.len() >= expected.len() && source.warnings().len() == 5
    });
    let data = |frames: &[OwnedFrame]| frames.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>();
    assert!(data(&frames) == data(&expected));
    senders.into_iter().chain([last]).for_each(|sender| sender.join().unwrap());
    let has = |wanted: fn(&WarningKind) -> bool| {
        source.warnings().iter().filter(|warning| wanted(&warning.kind)).count()
    };
    assert_eq!(has(|kind| matches!(kind, WarningKind::NotACapture(_))), 2, "{:?}", source.warnings());
    assert_eq!(has(|kind| matches!(kind, WarningKind::BadBlock(_))), 1);
    assert_eq!(has(|kind| matches!(kind, WarningKind::Truncated { .. })), 1);
    assert_eq!(has(|kind| matches!(kind, WarningKind::Connection(_))), 1, "the silent connection");
    let not_a_capture = |warning: &&Warning| matches!(warning.kind, WarningKind::NotACapture(_));
    let line = source.warnings().iter().find(not_a_capture).unwrap().to_string();
    assert!(line.starts_with("tcp 127.0.0.1:") && !line.contains("offset"), "{line}");
    assert_eq!((source.stats().failed_connection_count, source.stats().bad_block_count), (3, 1));
    drop(silent);
}

#[test]
fn further_connections_are_refused() {
    let mut config = StreamConfig::default();
    config.connection_count_max = 2;
    let (mut source, address) = listening(config);
    let streams: Vec<_> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
    read_until(&mut source, |_, source| source.stats().refused_connection_count == 3);
    assert_eq!(source.connection_count(), 2);
    drop(streams);
    let mut batch = FrameBatch::new();
    while source.connection_count() > 0 {
        assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
    }
    let expected = frames_of("dns.pcap");
    let sender = send(address, file("dns.pcap"));
    assert_eq!(read_until(&mut source, |frames, _| frames.len() >= expected.len()), expected);
    sender.join().unwrap();
}

#[test]
fn a_truncated_stream_is_reported() {
    let (mut source, address) = listening(StreamConfig::default());
    let octets = file("dns.pcap");
    send(address, octets[..octets.len() - 3].to_vec()).join().unwrap();
    let expected = frames_of("dns.pcap").len() - 1;
    let frames = read_until(&mut source, |_, source| source.stats().truncated_file_count == 1);
    assert_eq!(frames.len(), expected);
    assert!(matches!(source.warnings()[0].kind, WarningKind::Truncated { .. }));
}

#[test]
fn a_lost_connection_is_made_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let octets = file("dns.pcap");
    let server = thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&octets).unwrap();
        }
    });
    let mut config = StreamConfig::default();
    config.reconnect_interval = Duration::from_millis(20);
    let mut source = StreamSource::connect(address, config).unwrap();
    let expected = frames_of("dns.pcap").len() * 3;
    let frames = read_until(&mut source, |frames, _| frames.len() >= expected);
    assert_eq!(frames.len(), expected);
    server.join().unwrap();
    // Nobody listens any more: attempts fail, and are counted.
    read_until(&mut source, |_, source| source.stats().failed_connection_count >= 2);
    assert_eq!(source.connection_count(), 0);
}

#[test]
fn the_first_connection_must_succeed_and_a_port_must_be_free() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let error = StreamSource::listen(address, StreamConfig::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("tcp {address}: ")), "{error}");
    drop(listener);
    let error = StreamSource::connect(address, StreamConfig::default()).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn the_source_ends_at_its_stop_handle() {
    let stop = StopHandle::new();
    let mut config = StreamConfig::default();
    config.source.stop = Some(stop.clone());
    let (mut source, address) = listening(config);
    let _silent = TcpStream::connect(address).unwrap();
    let mut batch = FrameBatch::new();
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
    assert!(batch.is_empty());
    stop.stop();
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::End(End::Stopped));
}
