//! QUIC: packets of the RFCs and of aioquic, reordered, missing, duplicate, truncated and corrupted.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use std::collections::BTreeMap;
use std::path::Path;

use flowgauge::base::IpProtocol;
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::quic::{self, QuicParser};
use flowgauge::session::{MessageMeta, Role};
use flowgauge::tracker::{Flow, TrackerConfig};

use crate::harness::{Description, Dialogue, random};
use crate::support::run_capture;

#[path = "../../src/protocols/quic/vectors.rs"]
mod vectors;

use Role::{Client, Server};

flowgauge::protocols! {
    /// Only QUIC.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Observed;
    parsers { Quic: QuicParser = &quic::PROTOCOL }
}

fn describe(_: &MessageMeta, message: Observed<'_>) -> Description {
    let Observed::Quic(message) = message;
    Description::Whole(text(&message))
}

fn text(message: &quic::Message<'_>) -> String {
    match message {
        quic::Message::ClientHello(hello) => {
            let name = hello.hello.server_name().map(|name| name.to_string()).unwrap_or_default();
            format!("{} client {} {name} {}", hello.transaction, hello.quic_version, hello.hello.ja4())
        }
        quic::Message::ServerHello(hello) => {
            let suite = hello.hello.cipher_suite.0;
            format!("{} server {} {suite:04x}", hello.transaction, hello.quic_version)
        }
        quic::Message::VersionNegotiation(wants) => {
            format!("{} versions {:?}", wants.transaction, wants.versions)
        }
        quic::Message::Retry(retry) => {
            format!("{} retry {} {:?}", retry.transaction, retry.token_len, retry.is_genuine)
        }
        quic::Message::Close(close) => {
            format!("{} close {:?} {}", close.transaction, close.alert, close.reason)
        }
        quic::Message::UnsupportedVersion(unread) => {
            format!("{} unread {} {}", unread.transaction, unread.quic_version, unread.dcid)
        }
        _ => "?".to_owned(),
    }
}

fn dialogue(port: u16, datagrams: &[(Role, Vec<u8>)]) -> crate::harness::Observed {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, port, describe);
    for (from, bytes) in datagrams {
        dialogue.send_datagram(*from, bytes);
    }
    dialogue.finish()
}

fn v1() -> [(Role, Vec<u8>); 2] {
    [
        (Client, vectors::octets(vectors::CLIENT_INITIAL_V1)),
        (Server, vectors::octets(vectors::SERVER_INITIAL_V1)),
    ]
}

fn v2() -> [(Role, Vec<u8>); 2] {
    [
        (Client, vectors::octets(vectors::CLIENT_INITIAL_V2)),
        (Server, vectors::octets(vectors::SERVER_INITIAL_V2)),
    ]
}

// JA4 counts two suites and eleven extensions (SNI and ALPN are counted, but not hashed); the ALPN value is "alpn".
const EXAMPLE: &str = "example.com q13d0211an";

#[test]
fn the_examples_of_the_rfcs_are_parsed() {
    for (version, datagrams) in [("1", v1()), ("2", v2())] {
        let observed = dialogue(4433, &datagrams);
        assert_eq!(observed.application, Some(("quic", "content")));
        let [hello, answer] = observed.messages()[..] else { panic!("{observed:?}") };
        assert!(hello.starts_with(&format!("0 client {version} {EXAMPLE}")), "{hello}");
        assert_eq!(answer, format!("0 server {version} 1301"));
        assert_eq!(observed.reports[0], "[quic by content]");
    }
}

#[test]
fn the_parser_is_done_after_both_hellos() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 443, describe);
    let [client, server] = v1();
    dialogue.send_datagram(client.0, &client.1);
    assert!((1..2000).contains(&dialogue.held_bytes()), "{}", dialogue.held_bytes());
    dialogue.send_datagram(server.0, &server.1);
    assert_eq!(dialogue.held_bytes(), 0);
    for _ in 0..10 {
        dialogue.send_datagram(client.0, &client.1);
    }
    assert_eq!(dialogue.finish().messages().len(), 2);
}

#[test]
fn duplicate_datagrams_are_reported_once() {
    let [client, server] = v1();
    let once = dialogue(443, &[client.clone(), server.clone()]);
    assert_eq!(dialogue(443, &[client.clone(), client.clone(), client, server.clone(), server]), once);
}

#[test]
fn roles_are_exchanged_when_the_answer_is_captured_first() {
    let [client, server] = v1();
    // Side A sends first and is the server: the first captured datagram is the answer.
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 5000, describe);
    dialogue.send_datagram(Client, &server.1);
    dialogue.send_datagram(Server, &client.1);
    dialogue.send_datagram(Client, &server.1);
    let observed = dialogue.finish();
    assert_eq!(observed.application, Some(("quic", "content")));
    assert_eq!(observed.messages().len(), 2, "{observed:?}");
}

#[test]
fn an_answer_that_is_captured_first_is_read_once() {
    for (port, datagrams) in [(443, v1()), (4433, v2())] {
        let expected = dialogue(port, &datagrams);
        let [client, server] = datagrams;
        // Repeated, and with a packet behind it that cannot be read.
        let late = |front: &[&(Role, Vec<u8>)]| {
            let datagrams: Vec<_> =
                front.iter().map(|datagram| (*datagram).clone()).chain([client.clone()]).collect();
            dialogue(port, &datagrams)
        };
        for front in [vec![&server], vec![&server; 2], vec![&server; 8]] {
            let found = late(&front);
            assert_eq!(found.messages(), expected.messages());
        }
        // The datagrams of the client keep the one of the server waiting if they cannot be read.
        let unreadable = (Client, server.1.clone());
        assert_eq!(late(&[&server, &unreadable]).messages(), expected.messages());
        let mut waiting = Dialogue::<Set>::new(IpProtocol::UDP, port, describe);
        (0..10).for_each(|_| waiting.send_datagram(Server, &server.1));
        assert!((1000..20_000).contains(&waiting.held_bytes()), "{}", waiting.held_bytes());
        assert_eq!(waiting.finish().messages().len(), 0);
    }
}

#[test]
fn truncated_datagrams_yield_no_messages() {
    for datagrams in [v1(), v2()] {
        for end in 0..datagrams[0].1.len() {
            let mut truncated = datagrams.clone();
            truncated[0].1.truncate(end);
            let observed = dialogue(443, &truncated);
            assert_eq!(observed.messages().len(), 0, "truncated to {end}: {observed:?}");
        }
    }
}

#[test]
fn corrupted_datagrams_cause_no_panic() {
    let whole = recorded();
    for (seed, (port, datagrams)) in (1..1500_u64).zip(whole.iter().cycle()) {
        let (mut random, mut changed) = (random(seed), datagrams.clone());
        for _ in 0..=random() % 4 {
            let turn = (random() % changed.len() as u64) as usize;
            let bytes = &mut changed[turn].1;
            // Octets of the headers are changed more often than others.
            let len = if random() % 2 == 0 { 40.min(bytes.len()) } else { bytes.len() };
            let position = (random() % len as u64) as usize;
            bytes[position] = random() as u8;
        }
        if random() % 3 == 0 {
            let turn = (random() % changed.len() as u64) as usize;
            let end = (random() % changed[turn].1.len() as u64) as usize;
            changed[turn].1.truncate(end);
        }
        dialogue(*port, &changed);
    }
}

#[test]
fn google_quic_versions_are_reported_as_unsupported() {
    let old = |version: &[u8; 4]| [&[0x0d][..], b"8octets!", version, &[1, 2, 3]].concat();
    let observed = dialogue(443, &[(Client, old(b"Q025")), (Client, old(b"Q025"))]);
    assert_eq!(observed.reports, ["[quic by content]", "0 unread Q025 386f637465747321"]);

    let mut long = [&[0xc3][..], b"Q050", &[8], b"8octets!", &[0], &[0; 1200]].concat();
    assert_eq!(
        dialogue(443, &[(Client, long.clone())]).reports,
        ["[quic by content]", "0 unread Q050 386f637465747321"]
    );
    let middle = [&[0xc3][..], b"Q046", &[0x50], b"8octets!", &[0, 0, 0, 1, 2, 3]].concat();
    assert_eq!(dialogue(443, &[(Client, middle)]).messages(), ["0 unread Q046 386f637465747321"]);
    // The client proposes an unknown version, and the server answers with version negotiation.
    long[1..5].copy_from_slice(&[0x1a, 0x2a, 0x3a, 0x4a]);
    let refusal = [&[0xff, 0, 0, 0, 0, 0, 8][..], b"8octets!", &[0, 0, 0, 1]].concat();
    let observed = dialogue(443, &[(Client, long), (Server, refusal)]);
    assert_eq!(observed.messages(), ["0 unread 0x1a2a3a4a 386f637465747321", "0 versions [1]"]);
}

#[test]
fn similar_protocols_are_not_recognized_as_quic() {
    let others: [(u16, &[u8]); 8] = [
        (443, b"\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05hello"),
        (443, b"\x00\x01\x00\x00\x21\x12\xa4\x42twelve octet"),
        (443, b"\x38twelve octets of OpenVPN are here"),
        (443, b"\x01\x00\x00\x00WireGuard"),
        (53, b"\xc0\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x00\x00\x01\x00\x01"),
        (5004, b"\xc0\x00\x00\x00\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\x00\x00\x44\x9e"),
        (4433, b"\x40twenty and some octets of a short header"),
        (443, b"\x40short"),
    ];
    for (port, bytes) in others {
        let observed = dialogue(port, &[(Client, bytes.to_vec())]);
        assert_eq!(observed.application, None, "port {port}: {}", bytes.escape_ascii());
    }
}

#[test]
fn a_connection_captured_midway_is_recognized_by_port() {
    let mut random = random(1);
    let mut encrypted = |first: &[u8], len: usize| {
        let octets: Vec<u8> = std::iter::repeat_with(|| random() as u8).take(len).collect();
        [first, &octets].concat()
    };
    let datagrams: Vec<_> = (0..40)
        .map(|position| (if position % 2 == 0 { Client } else { Server }, encrypted(b"\x41", 50)))
        .collect();
    let observed = dialogue(443, &datagrams);
    assert_eq!(
        (observed.application, observed.reports),
        (Some(("quic", "port")), vec!["[quic by port]".to_owned()])
    );
    assert_eq!(dialogue(444, &datagrams).application, None);
    // The same for the older format of Google QUIC, in which only the client sends a connection id.
    let (client, server) = (encrypted(b"\x0C8octets!", 30), encrypted(b"\0", 40));
    for count in [1, 40] {
        let datagrams = vec![[(Client, client.clone()), (Server, server.clone())]; count].concat();
        assert_eq!(dialogue(443, &datagrams).reports, ["[quic by port]"]);
    }
}

/// Messages of the recording by the server's port.
#[derive(Default)]
struct Collector {
    reports: BTreeMap<u16, Vec<String>>,
    #[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "it contains only serialized messages"))]
    json: Vec<String>,
}

impl Sink for Collector {
    type State = ();
    type Stage = Sessions<Set>;

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Observed<'_>) {
        let Observed::Quic(message) = message;
        let client = if meta.from == Client { meta.side } else { meta.side.other() };
        let port = flow.view.key().port(client.other()).expect("a port");
        self.reports.entry(port).or_default().push(format!("{} {}", meta.from.name(), text(message)));
        #[cfg(feature = "serde")]
        self.json.push(as_json(message));
    }
}

fn observe_recording() -> Collector {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/quic.pcap");
    run_capture(&path, TrackerConfig::default(), Collector::default()).0
}

/// Returns the datagrams of the recording by the server's port, in the order of capture.
fn recorded() -> BTreeMap<u16, Vec<(Role, Vec<u8>)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/quic.pcap");
    let bytes = std::fs::read(path).expect("the recording");
    let mut flows = BTreeMap::<u16, Vec<_>>::new();
    let mut rest = &bytes[24..];
    while let Some((header, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(header[8..12].try_into().expect("four octets")) as usize;
        let (frame, after) = after.split_at(len);
        // Ethernet, IPv4 without options, UDP.
        let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let (source, destination) = (port(34), port(36));
        let (from, server_port) = if source < destination { (Server, source) } else { (Client, destination) };
        flows.entry(server_port).or_default().push((from, frame[42..].to_vec()));
        rest = after;
    }
    flows
}

#[test]
fn a_recording_of_aioquic_yields_the_expected_messages() {
    let observer = observe_recording();
    let reports: Vec<_> = observer
        .reports
        .iter()
        .flat_map(|(port, reports)| reports.iter().map(move |report| format!("{port} {report}")))
        .collect();
    assert_eq!(
        reports,
        [
            "4431 client 0 client 1 web.example q13d0307h3_55b375c5d22e_1cecd519fee8",
            "4431 server 0 server 1 1302",
            "4432 client 0 client 1 large.web.example q13d0307p0_55b375c5d22e_1cecd519fee8",
            "4432 server 0 server 1 1302",
            "4433 client 0 client 1 web.example q13d0307h3_55b375c5d22e_1cecd519fee8",
            "4433 server 0 server 2 1302",
            "4434 client 0 client 1 web.example q13d0307h3_55b375c5d22e_1cecd519fee8",
            "4434 server 0 retry 61 Some(true)",
            "4434 server 0 server 1 1302",
            "4435 client 0 client 1 web.example q13d0307h3_55b375c5d22e_1cecd519fee8",
            "4435 server 0 versions [2]",
            "4435 client 1 client 2 web.example q13d0307h3_55b375c5d22e_1cecd519fee8",
            "4435 server 1 server 2 1302",
            "4436 client 0 client 1 web.example q13d0307ng_55b375c5d22e_1cecd519fee8",
            "4436 server 0 close Some(120) No common ALPN protocols",
        ]
    );
}

#[test]
fn reordered_and_duplicate_client_datagrams_yield_the_same_messages() {
    let large = &recorded()[&4432];
    let [first, second, answer] = &large[..] else { panic!("three datagrams") };
    let whole = dialogue(4432, large);
    assert_eq!(whole.messages().len(), 2);
    for order in [[second, first, second], [first, first, second], [first, second, second]] {
        let datagrams: Vec<_> = order.into_iter().chain([answer]).cloned().collect();
        assert_eq!(dialogue(4432, &datagrams), whole);
    }
    let partial = dialogue(4432, &[first.clone(), answer.clone()]);
    assert_eq!(partial.messages(), ["0 server 1 1302"], "half of a hello yields no message");
}

#[cfg(feature = "serde")]
#[test]
fn messages_serialize_as_flat_objects() {
    let observer = observe_recording();
    let of = |kind: &str| -> serde_json::Value {
        let mut all = observer.json.iter().map(|line| serde_json::from_str(line).expect("JSON"));
        all.find(|message: &serde_json::Value| message["message"] == kind).expect("a message of this kind")
    };
    let hello = of("client_hello");
    println!("{hello:#}");
    assert_eq!(hello["quic_version"], "1");
    assert_eq!(hello["server_name"], "web.example");
    assert_eq!(hello["ja4"], "q13d0307h3_55b375c5d22e_1cecd519fee8");
    assert_eq!(hello["dcid"].as_str().map(str::len), Some(16));
    assert_eq!(hello["transport_parameters"]["max_idle_timeout_ms"], 60_000);
    assert_eq!(hello["transport_parameters"]["versions"], serde_json::json!(["1", "2"]));
    assert_eq!(of("server_hello")["quic_version"], "1");
    assert_eq!(of("version_negotiation")["versions"], serde_json::json!(["2"]));
    assert_eq!(of("retry")["is_genuine"], true);
    let close = of("close");
    assert_eq!((&close["error"], &close["alert"]), (&"crypto_error".into(), &120.into()));
}
