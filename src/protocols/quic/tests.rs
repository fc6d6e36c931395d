//! Tests of the QUIC parser with packets that the tests encrypt, for cases that are missing from recordings.

use super::keys::Keys;
use super::vectors;
use super::{FAILED_COUNT_MAX, Message, QuicParser, SILENT_COUNT_MAX, Version};
use crate::base::{FlowKey, IpProtocol, Side, Timestamp};
use crate::protocols::Standard;
use crate::session::{
    Datagram, Driver, FlowContext, MessageMeta, Parser, Payload, Progress, Receiver, Role, Session,
};

use Role::{Client, Server};

const DCID: &[u8] = &[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const CLIENT_ID: &[u8] = b"clientid";
const SERVER_ID: &[u8] = b"serverid";

/// Returns the ClientHello and the ServerHello of the examples in RFC 9001, Appendix A.
fn hellos() -> [Vec<u8>; 2] {
    [(vectors::CLIENT_INITIAL_V1, Client), (vectors::SERVER_INITIAL_V1, Server)].map(|(digits, sender)| {
        let bytes = vectors::octets(digits);
        let packet = super::packet::next(&mut &bytes[..]).expect("a packet");
        let super::packet::Body::Initial(initial) = packet.body else { panic!("{packet:?}") };
        let keys = Keys::derive(Version::V1.rules().expect("read"), DCID, sender).expect("keys");
        let opened = keys.open(&initial, None).expect("a packet of the standard");
        let mut frames = super::frames::Frames::new(opened.frames());
        let Some(super::frames::Frame::Crypto { bytes, .. }) = frames.next() else { panic!("no CRYPTO") };
        bytes.to_vec()
    })
}

fn crypto(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let number = |value: usize| (0x8000_0000 | value as u32).to_be_bytes();
    [&[0x06], &number(offset)[..], &number(bytes.len()), bytes].concat()
}

/// An Initial packet to be encrypted, padded to 1200 octets.
struct Sealed<'a> {
    version: Version,
    /// Connection id from which the keys are derived.
    first_id: &'a [u8],
    sender: Role,
    dcid: &'a [u8],
    number: u16,
    token: &'a [u8],
}

impl Default for Sealed<'_> {
    fn default() -> Self {
        Self { version: Version::V1, first_id: DCID, sender: Client, dcid: DCID, number: 0, token: &[] }
    }
}

impl Sealed<'_> {
    fn packet(&self, frames: &[u8]) -> Vec<u8> {
        let rules = self.version.rules().expect("a supported version");
        let frames = [frames, &vec![0; 1160_usize.saturating_sub(frames.len())]].concat();
        let len = (0x4000 | (2 + frames.len() + 16) as u16).to_be_bytes();
        let first = 0xc1 | rules.initial_bits << 4;
        let scid = if self.sender == Client { CLIENT_ID } else { SERVER_ID };
        let header = [
            &[first][..],
            &self.version.0.to_be_bytes(),
            &[self.dcid.len() as u8],
            self.dcid,
            &[scid.len() as u8],
            scid,
            &[self.token.len() as u8],
            self.token,
            &len,
        ];
        let keys = Keys::derive(rules, self.first_id, self.sender).expect("keys");
        keys.seal(&header.concat(), self.number, &frames)
    }
}

/// Collects the messages of a QUIC parser as text, and records whether the parser is done.
#[derive(Default)]
struct Collector {
    parser: QuicParser,
    messages: Vec<String>,
    is_done: bool,
}

impl Collector {
    fn receive(&mut self, from: Role, bytes: &[u8]) {
        assert!(!self.is_done, "no datagram is passed to a parser that is done");
        let datagram = Datagram::new(bytes, from, Timestamp::from_nanos(0));
        let messages = &mut self.messages;
        let progress = self.parser.datagram(&datagram, &mut |message| messages.push(describe(&message)));
        self.is_done = matches!(progress.expect("QUIC"), Progress::Done);
    }
}

fn describe(message: &Message<'_>) -> String {
    match message {
        Message::ClientHello(hello) => {
            let name = hello.hello.server_name().map(|name| name.to_string()).unwrap_or_default();
            format!(
                "{} client {} {} {name} token {}",
                hello.transaction, hello.quic_version, hello.dcid, hello.token_len
            )
        }
        Message::ServerHello(hello) if hello.hello.is_hello_retry_request() => "again".to_owned(),
        Message::ServerHello(hello) => format!("{} server {}", hello.transaction, hello.quic_version),
        Message::Close(close) => format!("close {:?} {:?} {}", close.error, close.alert, close.reason),
        Message::Retry(retry) => format!("retry {:?}", retry.is_genuine),
        Message::VersionNegotiation(wants) => format!("versions {:?}", wants.versions),
        Message::UnsupportedVersion(unsupported_version) => {
            format!("{} unread {}", unsupported_version.transaction, unsupported_version.quic_version)
        }
    }
}

#[test]
fn a_hello_in_shuffled_pieces_over_datagrams_is_one_message() {
    let [hello, answer] = hellos();
    let pieces: Vec<_> =
        hello.chunks(17).enumerate().map(|(place, piece)| crypto(place * 17, piece)).collect();
    for turn in 0..pieces.len() {
        let mut order = pieces.clone();
        order.rotate_left(turn);
        order.reverse();
        let mut collector = Collector::default();
        for (number, pieces) in order.chunks(4).enumerate() {
            assert_eq!(collector.messages.len(), 0, "not before the message is complete");
            // PING and PADDING between the pieces; the first piece is sent twice.
            let frames = [&pieces.join(&[1, 0, 0][..])[..], &pieces[0]].concat();
            collector.receive(Client, &Sealed { number: number as u16, ..Sealed::default() }.packet(&frames));
        }
        assert_eq!(collector.messages, ["0 client 1 8394c8f03e515708 example.com token 0"]);
        let sealed = Sealed { sender: Server, dcid: b"asked", ..Sealed::default() };
        collector.receive(Server, &sealed.packet(&crypto(0, &answer)));
        assert_eq!(collector.messages[1..], ["0 server 1"]);
        assert!(collector.is_done);
    }
}

#[test]
fn every_version_with_known_keys_names_its_server() {
    let [hello, _] = hellos();
    let mvfst = [0xface_b001, 0xface_b002, 0xface_b003, 0xface_b00e, 0xface_b011];
    for version in [0xff00_0016, 0xff00_0017, 0xff00_001b, 0xff00_0020].into_iter().chain(mvfst).map(Version)
    {
        let mut collector = Collector::default();
        collector.receive(Client, &Sealed { version, ..Sealed::default() }.packet(&crypto(0, &hello)));
        let expected = format!("0 client {version} 8394c8f03e515708 example.com token 0");
        assert_eq!(collector.messages, [expected]);
    }
}

#[test]
fn versions_with_unknown_keys_are_reported_by_number() {
    let lengths_of_a_draft =
        |version: u32| [&[0xff], &version.to_be_bytes()[..], &[0x55], DCID, b"chosenby", &[0; 1200]].concat();
    let own_lengths =
        |version: u32| [&[0xc3], &version.to_be_bytes()[..], &[8], DCID, &[0, 0], &[0; 1200]].concat();
    for datagram in
        [lengths_of_a_draft(0xff00_0012), lengths_of_a_draft(0xface_b000), own_lengths(0x5147_4f10)]
    {
        let mut collector = Collector::default();
        collector.receive(Client, &datagram);
        let version = Version(u32::from_be_bytes(datagram[1..5].try_into().expect("four octets")));
        assert_eq!(collector.messages, [format!("0 unread {version}")]);
        let opening = crate::session::DatagramOpening::first(&datagram, 5000, 5001);
        assert_eq!(super::probe::probe(&opening), crate::session::Verdict::Match, "{version}");
    }
}

#[test]
fn a_server_may_request_a_second_hello() {
    let [hello, answer] = hellos();
    let mut again = answer.clone();
    // SHA-256 of "HelloRetryRequest" (RFC 8446 section 4.1.3).
    again[6..38].copy_from_slice(&vectors::octets(
        "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c",
    ));
    let mut collector = Collector::default();
    let server = |number| Sealed { sender: Server, dcid: b"asked", number, ..Sealed::default() };
    collector.receive(Client, &Sealed::default().packet(&crypto(0, &hello)));
    collector.receive(Server, &server(0).packet(&crypto(0, &again)));
    assert!(!collector.is_done);
    // From here on the client uses the server's id; the keys remain.
    let second = Sealed { number: 1, dcid: SERVER_ID, ..Sealed::default() };
    collector.receive(Client, &second.packet(&crypto(hello.len(), &hello)));
    collector.receive(Server, &server(1).packet(&crypto(again.len(), &answer)));
    assert_eq!(
        collector.messages,
        [
            "0 client 1 8394c8f03e515708 example.com token 0",
            "again",
            "0 client 1 7365727665726964 example.com token 0",
            "0 server 1"
        ]
    );
    assert!(collector.is_done);
}

#[test]
fn a_retry_derives_the_keys_from_another_id() {
    let [hello, answer] = hellos();
    let (first, rest) = hello.split_at(100);
    let mut collector = Collector::default();
    collector.receive(Client, &Sealed::default().packet(&crypto(0, first)));
    // RFC 9001, Appendix A.4: the server's id is f067a5502a4262b5.
    let retry = vectors::octets("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let mut forged = retry.clone();
    forged[20] ^= 1;
    collector.receive(Server, &forged);
    collector.receive(Server, &retry);
    collector.receive(Server, &retry);
    let id = &retry[7..15];
    let client = Sealed { first_id: id, dcid: id, number: 1, token: b"token", ..Sealed::default() };
    collector.receive(Client, &client.packet(&crypto(100, rest)));
    let server = Sealed { first_id: id, sender: Server, dcid: b"asked", ..Sealed::default() };
    collector.receive(Server, &server.packet(&crypto(0, &answer)));
    assert_eq!(
        collector.messages,
        [
            "retry Some(false)",
            "retry Some(true)",
            "0 client 1 f067a5502a4262b5 example.com token 5",
            "0 server 1"
        ]
    );
    assert!(collector.is_done);
}

#[test]
fn a_rejected_version_is_followed_by_another_connection() {
    let [hello, _] = hellos();
    let mut collector = Collector::default();
    let list =
        [&[0x80, 0, 0, 0, 0, 0, 8][..], DCID, &[0x6b, 0x33, 0x43, 0xcf, 0x1a, 0x2a, 0x3a, 0x4a]].concat();
    collector.receive(Client, &Sealed::default().packet(&crypto(0, &hello)));
    collector.receive(Server, &list);
    collector.receive(Server, &list);
    collector
        .receive(Client, &Sealed { version: Version::V2, ..Sealed::default() }.packet(&crypto(0, &hello)));
    assert_eq!(
        collector.messages,
        [
            "0 client 1 8394c8f03e515708 example.com token 0",
            "versions [2, 0x1a2a3a4a]",
            "1 client 2 8394c8f03e515708 example.com token 0"
        ]
    );
}

#[test]
fn both_ends_may_change_to_a_common_version() {
    let [hello, answer] = hellos();
    let (first, rest) = hello.split_at(150);
    let mut collector = Collector::default();
    collector.receive(Client, &Sealed::default().packet(&crypto(0, first)));
    let server = Sealed { version: Version::V2, sender: Server, dcid: b"asked", ..Sealed::default() };
    collector.receive(Server, &server.packet(&[1]));
    let client = Sealed { version: Version::V2, dcid: SERVER_ID, number: 1, ..Sealed::default() };
    collector.receive(Client, &client.packet(&crypto(150, rest)));
    collector.receive(Server, &Sealed { number: 1, ..server }.packet(&crypto(0, &answer)));
    assert_eq!(collector.messages, ["0 client 2 7365727665726964 example.com token 0", "0 server 2"]);
    assert!(collector.is_done);
}

#[test]
fn a_hello_that_is_repeated_after_a_change_of_version_begins_no_connection() {
    let [hello, answer] = hellos();
    let mut collector = Collector::default();
    let first = Sealed::default().packet(&crypto(0, &hello));
    let server = Sealed { version: Version::V2, sender: Server, dcid: b"asked", ..Sealed::default() };
    for (from, packet) in [
        (Client, &first),
        (Server, &server.packet(&[1])),
        (Client, &first),
        (Client, &Sealed { number: 1, ..Sealed::default() }.packet(&[1])),
        (Server, &Sealed { number: 1, ..server }.packet(&crypto(0, &answer))),
    ] {
        collector.receive(from, packet);
    }
    assert_eq!(collector.messages, ["0 client 1 8394c8f03e515708 example.com token 0", "0 server 2"]);
    assert!(collector.is_done);
}

#[test]
fn a_close_reports_its_reason_and_ends_parsing() {
    let mut collector = Collector::default();
    collector.receive(Client, &Sealed::default().packet(&[1]));
    let close = [&[0x1c, 0x41, 0x28, 0x06, 10][..], b"no ALPN :("].concat();
    collector.receive(Server, &Sealed { sender: Server, dcid: b"asked", ..Sealed::default() }.packet(&close));
    assert_eq!(collector.messages, [r#"close Some("crypto_error") Some(40) no ALPN :("#]);
    assert!(collector.is_done);
}

#[test]
fn packets_determine_the_roles_regardless_of_the_session() {
    let [hello, answer] = hellos();
    let mut collector = Collector::default();
    let server = Sealed { sender: Server, dcid: b"asked", ..Sealed::default() }.packet(&crypto(0, &answer));
    collector.receive(Client, &server);
    collector.receive(Server, &Sealed::default().packet(&crypto(0, &hello)));
    collector.receive(Client, &server);
    assert_eq!(collector.messages, ["0 client 1 8394c8f03e515708 example.com token 0", "0 server 1"]);
}

#[test]
fn consecutive_connections_are_numbered() {
    let [hello, _] = hellos();
    let mut collector = Collector::default();
    for id in [*b"connect1", *b"connect2"] {
        let client = Sealed { first_id: &id, dcid: &id, ..Sealed::default() };
        collector.receive(Client, &client.packet(&crypto(0, &hello)));
    }
    assert_eq!(
        collector.messages,
        [
            "0 client 1 636f6e6e65637431 example.com token 0",
            "1 client 1 636f6e6e65637432 example.com token 0"
        ]
    );
    let mut count = 2;
    while !collector.is_done {
        let id = [count as u8; 8];
        collector.receive(Client, &Sealed { first_id: &id, dcid: &id, ..Sealed::default() }.packet(&[1]));
        count += 1;
    }
    assert_eq!(count, 1 + u32::from(super::CONNECTION_COUNT_MAX));
}

/// A flow of the standard set, and its messages of QUIC.
struct Endpoints {
    driver: Driver<Standard>,
    session: Session<Standard>,
    messages: Messages,
}

#[derive(Default)]
struct Messages(Vec<String>);

impl Receiver<Standard> for Messages {
    fn message(&mut self, _: &MessageMeta, message: crate::protocols::Message<'_>) {
        let crate::protocols::Message::Quic(message) = message else { panic!("another protocol") };
        self.0.push(describe(&message));
    }
}

impl Endpoints {
    fn new() -> Self {
        Self { driver: Driver::default(), session: Session::default(), messages: Messages::default() }
    }

    fn send(&mut self, from: Role, bytes: &[u8]) {
        let (key, client) =
            FlowKey::new(IpProtocol::UDP, ([10, 0, 0, 1].into(), 5000), ([10, 0, 0, 2].into(), 443));
        assert_eq!(client, Side::A);
        let side = if from == Client { client } else { client.other() };
        let (context, payload) =
            (FlowContext::new(&key, client, Timestamp::ZERO), Payload { bytes, len: bytes.len() });
        self.driver.datagram(&mut self.session, &context, side, payload, &mut self.messages);
    }

    /// Sends the hellos of a connection with an id, and returns the messages since the last call.
    fn connect(&mut self, id: &[u8]) -> Vec<String> {
        let [hello, answer] = hellos();
        let client = Sealed { first_id: id, dcid: id, ..Sealed::default() }.packet(&crypto(0, &hello));
        let server = Sealed { first_id: id, sender: Server, dcid: b"asked", ..Sealed::default() };
        self.send(Client, &client);
        self.send(Server, &server.packet(&crypto(0, &answer)));
        // Repeated and late packets of this connection: the client addresses the id of the server now.
        self.send(Client, &client);
        let late = Sealed { first_id: id, dcid: SERVER_ID, number: 1, ..Sealed::default() };
        self.send(Client, &late.packet(&[1]));
        let late = Sealed { first_id: id, sender: Server, dcid: CLIENT_ID, number: 1, ..Sealed::default() };
        self.send(Server, &late.packet(&[1]));
        self.send(Client, &[0x40; 40]);
        std::mem::take(&mut self.messages.0)
    }
}

#[test]
fn later_connections_of_a_flow_are_parsed() {
    let mut endpoints = Endpoints::new();
    for number in 0..super::CONNECTION_COUNT_MAX {
        let id = [b'a' ^ number; 8];
        let name: String = id.iter().map(|octet| format!("{octet:02x}")).collect();
        let client = format!("{number} client 1 {name} example.com token 0");
        assert_eq!(endpoints.connect(&id), [client, format!("{number} server 1")]);
        // No late packet begins a connection.
        assert_eq!(endpoints.session.held_bytes(), 0, "nothing is held between connections");
    }
    assert!(endpoints.session.is_off() && endpoints.connect(b"too many").is_empty());
}

#[test]
fn packets_in_front_hide_no_connection() {
    // Packets that cannot be decrypted, of a version that is not parsed, and the first ones of a connection that is closed.
    let other = Sealed { first_id: b"somebody", ..Sealed::default() }.packet(&[1]);
    let unread = [&[0xc0, 0xff, 0, 0, 1, 8][..], b"somebody", &[0, 0, 20], &[7; 1200]].concat();
    let closed = Sealed { first_id: b"somebody", dcid: b"somebody", ..Sealed::default() };
    let closed = closed.packet(&[&[0x1c, 0x41, 0x00, 0, 0][..], &[0; 8]].concat());
    for in_front in [vec![&other; 40], vec![&unread; 40], vec![&closed], vec![&closed, &other, &unread]] {
        let mut endpoints = Endpoints::new();
        in_front.iter().for_each(|bytes| endpoints.send(Client, bytes));
        endpoints.messages.0.clear();
        let messages = endpoints.connect(b"connect1");
        let names: Vec<_> = messages.iter().map(|message| message.split(' ').nth(1)).collect();
        assert_eq!(names, [Some("client"), Some("server")], "{messages:?}");
    }
}

#[test]
fn parsing_stops_after_too_many_undecryptable_datagrams() {
    // Early data do not count: a client may send many before the server answers.
    let early = [&[0xd0, 0, 0, 0, 1, 8][..], DCID, &[0, 2, 1, 2]].concat();
    let established = [0x40; 40];
    let other = Sealed { first_id: b"somebody", ..Sealed::default() }.packet(&[1]);
    let count = |bytes: &[u8], count_max: u32| {
        let mut collector = Collector::default();
        (1..=count_max).find(|_| {
            collector.receive(Client, bytes);
            collector.is_done
        })
    };
    assert_eq!(count(&early, 1000), None);
    assert_eq!(count(&established, 1000), Some(SILENT_COUNT_MAX.into()));
    assert_eq!(count(&other, 1000), Some(FAILED_COUNT_MAX.into()));
    // Only one packet of a datagram is tried if no key decrypts it.
    let small = [&[0xc0, 0, 0, 0, 1, 8][..], b"somebody", &[0, 0, 20], &[7; 20]].concat();
    assert_eq!(count(&small.repeat(1000), 1000), Some(FAILED_COUNT_MAX.into()));
}

#[test]
fn only_packets_for_the_first_id_of_a_datagram_are_read() {
    // RFC 9000 section 12.2.
    let [hello, _] = hellos();
    let own = Sealed::default().packet(&crypto(0, &hello[..100]));
    let rest = Sealed { number: 1, ..Sealed::default() }.packet(&crypto(100, &hello[100..]));
    let other =
        Sealed { dcid: b"somebody", number: 1, ..Sealed::default() }.packet(&crypto(100, &hello[100..]));
    for (second, count) in [(&rest, 1), (&other, 0)] {
        let mut collector = Collector::default();
        collector.receive(Client, &[&own[..], second].concat());
        assert_eq!(collector.messages.len(), count);
    }
    // A packet that cannot be decrypted only ends decryption for its datagram.
    let mut bad = rest.clone();
    *bad.last_mut().expect("a tag") ^= 1;
    let mut collector = Collector::default();
    collector.receive(Client, &[&own[..], &bad, &rest].concat());
    assert_eq!(collector.messages.len(), 0);
    collector.receive(Client, &rest);
    assert_eq!(collector.messages.len(), 1);
}

#[test]
fn a_datagram_that_is_too_short_does_not_begin_a_connection() {
    // RFC 9000 section 14.1.
    let [hello, _] = hellos();
    let packet = Sealed::default().packet(&crypto(0, &hello));
    assert!(packet.len() >= 1200, "{}", packet.len());
    let mut collector = Collector::default();
    let short = Datagram { len: 1199, ..Datagram::new(&packet, Client, Timestamp::from_nanos(0)) };
    assert!(collector.parser.datagram(&short, &mut |message| panic!("{}", describe(&message))).is_ok());
    collector.receive(Client, &packet);
    assert_eq!(collector.messages.len(), 1);
}

#[test]
fn other_protocols_are_rejected() {
    for bytes in [&b"\x16\xfe\xfd\0\0"[..], &[0x80; 30], &[0xc0, 9, 9, 9, 9, 0, 0, 1, 2, 3]] {
        let datagram = Datagram::new(bytes, Client, Timestamp::from_nanos(0));
        let result = QuicParser::default().datagram(&datagram, &mut |message| panic!("{message:?}"));
        assert_eq!(result.expect_err("not QUIC").reason(), "not_quic");
    }
}

#[test]
fn heap_memory_is_charged_and_released() {
    let [hello, _] = hellos();
    let mut collector = Collector::default();
    assert_eq!(collector.parser.heap_len(), 0);
    collector.receive(Client, &Sealed::default().packet(&[1]));
    let without = collector.parser.heap_len();
    collector.receive(Client, &Sealed { number: 1, ..Sealed::default() }.packet(&crypto(1, &hello[1..])));
    assert!(collector.parser.heap_len() >= without + hello.len());
    collector.receive(Client, &Sealed { number: 2, ..Sealed::default() }.packet(&crypto(0, &hello[..1])));
    assert_eq!((collector.parser.heap_len(), collector.messages.len()), (without, 1));
    assert!(without < 700, "{without}");
}
