//! Resumed recognition: messages after octets or datagrams of another protocol, on the port of their protocol, within
//! limits.

use flowgauge::base::IpProtocol;
use flowgauge::protocols::Standard;
use flowgauge::session::{
    PROBE_CHUNK_COUNT_MAX, RESUME_CHUNK_COUNT_MAX, RESUME_DATAGRAM_COUNT_MAX, RESUME_LEN_MAX, Role,
};

use crate::harness::{Dialogue, Observed, observe, observe_in_any_split};
use crate::recognition::{client_hello, describe, query};

use Role::{Client, Server};

/// RFC 1157 section 4.1.2: a GetRequest of version 2c.
const SSDP: &[u8] = b"NOTIFY * HTTP/1.1\r\nNT: a\r\n\r\n";

/// RFC 8489 section 5: a binding request without attributes.
const STUN: &[u8] = b"\0\x01\0\0\x21\x12\xA4\x42twelve octet";

const JUNK: &[u8] = b"\x01\x02 nothing that a probe knows\r\n";
const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const EXCHANGE: [&str; 5] =
    ["http client: /a", "http client: end", "http server: 200", "http body: ok", "http server: end"];

/// Encodes a client hello of DTLS 1.2 in one record.
fn dtls_hello() -> Vec<u8> {
    let body = [b"\xFE\xFD".as_slice(), &[0x5A; 32], b"\0\0\0\x02\xC0\x2B\x01\0"].concat();
    let len = body.len() as u8;
    let record = [b"\x16\xFE\xFD\0\0\0\0\0\0\0\0\0".as_slice(), &[len + 12]].concat();
    [record.as_slice(), b"\x01\0\0", &[len], b"\0\0\0\0\0\0\0", &[len], &body].concat()
}

fn datagrams(port: u16, turns: &[(Role, &[u8])]) -> Observed {
    let mut dialogue = Dialogue::<Standard>::new(IpProtocol::UDP, port, describe);
    for (from, bytes) in turns {
        dialogue.send_datagram(*from, bytes);
        assert!(dialogue.held_bytes() < 100_000);
    }
    dialogue.finish()
}

#[test]
fn a_datagram_of_another_protocol_does_not_hide_the_protocol_of_the_port() {
    let (requests, answers) = (query(9, 0x0100, 1), query(9, 0x8180, 1));
    let observed = datagrams(53, &[(Client, SSDP), (Client, &requests), (Server, &answers)]);
    assert_eq!(observed.reports, ["[dns by content]", "dns client: query 9", "dns server: response 9"]);
    // The messages determine the roles, independently of the sender of the other datagram.
    let observed = datagrams(53, &[(Server, SSDP), (Client, &requests)]);
    assert_eq!(observed.reports[..2], ["[dns by content]", "dns client: query 9"]);
    // A parser that was created for the other datagram is replaced; its protocol still names the flow.
    let observed = datagrams(53, &[(Client, &dtls_hello()), (Client, &requests), (Server, &answers)]);
    assert_eq!(
        observed.reports,
        [
            "[dtls by content]",
            "dtls client: ClientHello",
            "[dns by content]",
            "dns client: query 9",
            "dns server: response 9"
        ]
    );
    assert_eq!(observed.application, Some(("dtls", "content")));
}

#[test]
fn a_flow_on_the_port_of_another_protocol_is_recognized_by_content() {
    let observed = datagrams(53, &[(Client, SSDP), (Server, SSDP)]);
    assert_eq!(observed.reports, ["[ssdp by content]"]);
    // Another protocol follows: the first one names the flow.
    let observed = datagrams(53, &[(Client, STUN), (Client, &dtls_hello())]);
    assert_eq!(
        observed.reports,
        ["[stun by content]", "stun client: stun", "[dtls by content]", "dtls client: ClientHello"]
    );
    // On the port of a protocol without a parser, nothing is buffered.
    let mut dialogue = Dialogue::<Standard>::new(IpProtocol::UDP, 5683, describe);
    dialogue.send_datagram(Client, SSDP);
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().application, Some(("ssdp", "content")));
}

#[test]
fn resumed_recognition_of_datagrams_is_limited() {
    let requests = query(9, 0x0100, 1);
    for (other, reports) in [(SSDP, vec!["[ssdp by content]"]), (b"\xFF\xFFnothing", vec![])] {
        let observe = |count: u8| {
            let mut dialogue = Dialogue::<Standard>::new(IpProtocol::UDP, 53, describe);
            for _ in 0..count {
                dialogue.send_datagram(Client, other);
                assert!(dialogue.held_bytes() < 500);
            }
            let held_bytes = dialogue.held_bytes();
            dialogue.send_datagram(Client, &requests);
            (held_bytes > 0, dialogue.finish().reports)
        };
        let (is_held, found) = observe(RESUME_DATAGRAM_COUNT_MAX - 1);
        assert!(is_held);
        assert_eq!(found[..2], ["[dns by content]", "dns client: query 9"]);
        assert_eq!(
            observe(RESUME_DATAGRAM_COUNT_MAX),
            (false, reports.iter().map(ToString::to_string).collect())
        );
        // The limit is the same if a parser processes the flow.
        let mut dialogue = Dialogue::<Standard>::new(IpProtocol::UDP, 53, describe);
        for _ in 0..RESUME_DATAGRAM_COUNT_MAX {
            dialogue.send_datagram(Client, &dtls_hello());
        }
        dialogue.send_datagram(Client, &requests);
        assert!(dialogue.finish().reports.iter().all(|report| !report.contains("dns")));
    }
}

#[test]
fn messages_are_found_after_octets_of_another_protocol() {
    let junk = |message: &[u8]| [JUNK, message].concat();
    let requests = junk(REQUEST);
    let observed = observe_in_any_split::<Standard>(80, &[(Client, &requests), (Server, RESPONSE)], describe);
    assert_eq!(observed.reports[0], "[http by content]");
    assert_eq!(observed.messages(), EXCHANGE);
    assert_eq!(
        observe::<Standard>(9, &[(Client, &requests)], describe, || 1000).application,
        None,
        "not an HTTP port"
    );

    // The greeting is ambiguous, and the first command is invalid.
    let turns: [(Role, &[u8]); 4] = [
        (Server, b"220 a.example\r\n"),
        (Client, b"#!$\r\n"),
        (Server, b"500 What?\r\n"),
        (Client, b"EHLO b.example\r\n"),
    ];
    let observed = observe_in_any_split::<Standard>(25, &turns, describe);
    assert_eq!(observed.reports[..2], ["[smtp by content]", "smtp client: Ehlo"]);
    let turns: [(Role, &[u8]); 3] = [(Server, b"220 a\r\n"), (Client, b"#!$\r\n"), (Client, b"USER b\r\n")];
    let observed = observe_in_any_split::<Standard>(21, &turns, describe);
    assert_eq!(observed.reports[..2], ["[ftp by content]", "ftp client: command"]);

    let turns: [(Role, &[u8]); 2] = [(Client, JUNK), (Server, b"SSH-2.0-x\r\n")];
    let observed = observe_in_any_split::<Standard>(22, &turns, describe);
    assert_eq!(observed.reports[..2], ["[ssh by content]", "ssh server: identification"]);

    let hello = [b"\x16\x03\x01 and \x16".as_slice(), &client_hello()].concat();
    let observed = observe_in_any_split::<Standard>(443, &[(Client, &junk(&hello))], describe);
    assert_eq!(observed.reports, ["[tls by content]", "tls client: ClientHello"]);
}

#[test]
fn a_mid_stream_http_connection_is_parsed_from_its_next_message() {
    let mut dialogue = Dialogue::<Standard>::new(IpProtocol::TCP, 80, describe).picked_up();
    dialogue.send_octets(Server, b"the rest of a body, ");
    dialogue.send_octets(Server, b"and more of it");
    dialogue.send_gap(Server, 1000);
    dialogue.send_octets(Server, b"HTTP/1.1 ");
    dialogue.send_octets(Client, REQUEST);
    dialogue.send_octets(Server, RESPONSE);
    let observed = dialogue.finish();
    assert_eq!(observed.reports[0], "[http by content]");
    assert_eq!(observed.messages(), EXCHANGE);

    // If the beginning of the connection was not captured, the port determines the client.
    let mut dialogue = Dialogue::<Standard>::from_port(IpProtocol::TCP, 80, 40_000, describe).picked_up();
    dialogue.send_octets(Client, b"the rest of a body");
    dialogue.send_octets(Server, REQUEST);
    assert_eq!(dialogue.finish().messages()[..2], EXCHANGE[..2]);

    // TLS records from the middle of a stream contain no further information: the port names them at once.
    let mut dialogue = Dialogue::<Standard>::new(IpProtocol::TCP, 443, describe).picked_up();
    dialogue.send_octets(Server, JUNK);
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().application, Some(("tls", "port")));
}

#[test]
fn the_search_for_a_message_is_limited() {
    let piece = [b'x'; 1400];
    let search = |octet_count: usize, is_picked_up: bool| {
        let dialogue = Dialogue::<Standard>::new(IpProtocol::TCP, 80, describe);
        let mut dialogue = if is_picked_up { dialogue.picked_up() } else { dialogue };
        dialogue.send_octets(Client, b"\x01");
        for _ in 0..octet_count / piece.len() {
            dialogue.send_octets(Client, &piece);
            assert!(dialogue.held_bytes() < 10_000);
        }
        let has_ended = dialogue.held_bytes() == 0;
        dialogue.send_octets(Client, b"\r\n");
        dialogue.send_octets(Client, REQUEST);
        (has_ended, dialogue.finish().application)
    };
    assert_eq!(search(RESUME_LEN_MAX - 10_000, false), (false, Some(("http", "content"))));
    assert_eq!(search(RESUME_LEN_MAX + 10_000, false), (true, None));
    assert_eq!(search(RESUME_LEN_MAX + 10_000, true), (true, Some(("http", "port"))));

    let observe = |chunk_count| {
        let mut dialogue = Dialogue::<Standard>::new(IpProtocol::TCP, 80, describe);
        dialogue.send_octets(Client, b"\x01");
        for _ in 0..chunk_count {
            dialogue.send_octets(Client, b"\x01");
        }
        dialogue.send_octets(Client, REQUEST);
        dialogue.finish().application
    };
    assert_eq!(observe(RESUME_CHUNK_COUNT_MAX / 2), Some(("http", "content")));
    assert_eq!(observe(RESUME_CHUNK_COUNT_MAX + u16::from(PROBE_CHUNK_COUNT_MAX)), None);
}

#[test]
fn a_search_without_memory_releases_what_it_charged() {
    for bytes_max in (0..4000).step_by(100) {
        let mut dialogue = Dialogue::<Standard>::new(IpProtocol::TCP, 80, describe).with_bytes_max(bytes_max);
        dialogue.send_octets(Client, b"\x01\x02");
        dialogue.send_octets(Client, &[b'x'; 1400]);
        dialogue.send_octets(Client, &[b'x'; 1400]);
        dialogue.send_octets(Client, REQUEST);
        // `finish` checks that all memory is released.
        dialogue.finish();
    }
}
