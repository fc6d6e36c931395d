//! Session parsing. A time is for one frame unless the id states otherwise.
//!
//! `passthrough`: segments of 1400 octets of one established connection, in order, through the whole pipeline to a
//! parser without state. The frames are built in advance and their sequence numbers are set in place.
//! `passthrough_10000_flows`: the same for 10,000 connections in turn. Ids with the name of a protocol: all recorded
//! conversations of the protocol are replayed to its parser; the time is for one message, which is a request with its response in
//! the protocols of the kit.

mod cases;
#[path = "cases/kit.rs"]
mod kit;
#[path = "cases/per_item.rs"]
mod per_item;
#[path = "cases/replay.rs"]
mod replay;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use per_item::PerItem as _;

use flowgauge::session::Driver;

use cases::session::{Connections, LEN};
use replay::{Conversation, Observed, conversations};

fn passthrough(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("session_driver");
    for (id, flow_count) in [("passthrough", 1), ("passthrough_10000_flows", 10_000)] {
        let mut connections = Connections::new(flow_count, None);
        let mut step_count = 0;
        group.throughput(Throughput::Bytes(LEN.into()));
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                connections.step();
                step_count += 1;
            });
        });
        connections.check(step_count);
    }
    group.finish();
}

/// Replies and commands of a session with one file (RFC 959).
const FTP: [(bool, &[u8]); 13] = [
    (false, b"220 FTP server ready.\r\n"),
    (true, b"USER alice\r\n"),
    (false, b"331 Password required for alice.\r\n"),
    (true, b"PASS example\r\n"),
    (false, b"230 User alice logged in.\r\n"),
    (true, b"TYPE I\r\n"),
    (false, b"200 Type set to I.\r\n"),
    (true, b"PASV\r\n"),
    (false, b"227 Entering Passive Mode (10,0,0,2,200,10)\r\n"),
    (true, b"RETR report.pdf\r\n"),
    (false, b"150 Opening data connection for report.pdf (12345 bytes).\r\n226 Transfer complete.\r\n"),
    (true, b"QUIT\r\n"),
    (false, b"221 Goodbye.\r\n"),
];

/// The preface, SETTINGS, a request with the header block of RFC 7541 appendix C.3.1, and a response with DATA (RFC
/// 9113).
const HTTP2: [(bool, &[u8]); 4] = [
    (true, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
    (false, b"\0\0\0\x04\0\0\0\0\0"),
    (true, b"\0\0\x14\x01\x05\0\0\0\x01\x82\x86\x84\x41\x0fwww.example.com"),
    (false, b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x05\0\x01\0\0\0\x01hello"),
];

/// One row per protocol.
fn protocols(criterion: &mut Criterion) {
    let rows = [
        ("http", conversations("examples/data/web.pcap", "http")),
        ("http2", vec![Conversation::synthetic(80, &HTTP2); 10]),
        ("tls", conversations("examples/data/web.pcap", "tls")),
        ("quic", conversations("tests/data/quic.pcap", "quic")),
        ("dns", conversations("examples/data/dns.pcap", "dns")),
        ("ssh", conversations("examples/data/ssh.pcap", "ssh")),
        ("smtp", conversations("examples/data/mail.pcap", "smtp")),
        ("ftp", vec![Conversation::synthetic(21, &FTP); 10]),
    ];
    let mut group = criterion.benchmark_group("session_driver");
    let rows = rows.into_iter().map(|(id, conversations)| (id, conversations, None));
    let of_kit = kit::conversations()
        .into_iter()
        .map(|(id, conversation, count)| (id, vec![conversation], Some(count)));
    for (id, conversations, count) in rows.chain(of_kit) {
        let mut driver = Driver::default();
        let mut replay = || {
            let mut observed = Observed::default();
            conversations.iter().for_each(|conversation| drop(conversation.send(&mut driver, &mut observed)));
            observed
        };
        let observed = replay();
        let is_met = match count {
            Some(count) => observed.message_count == count,
            None => observed.message_count >= conversations.len() as u64 && !conversations.is_empty(),
        };
        assert!(is_met, "{id}: {observed:?}");
        assert_eq!(observed.stopped_count, 0, "{id}");
        // The mean number of octets of a message.
        let bytes = observed.octet_count / observed.message_count;
        group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes });
        group.bench_function(id, |bencher| bencher.iter_items(observed.message_count, &mut replay));
        assert_eq!(driver.stats().held_bytes, 0, "{id}");
    }
    group.finish();
}

criterion_group!(benches, passthrough, protocols);
criterion_main!(benches);
