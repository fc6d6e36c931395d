//! The second chance: messages behind octets or datagrams of something else, on the port of their protocol, within bounds.

use flowgauge::base::IpProtocol;
use flowgauge::protocols::Standard;
use flowgauge::session::{
    PROBE_CHUNK_COUNT_MAX, RESUME_CHUNK_COUNT_MAX, RESUME_DATAGRAM_COUNT_MAX, RESUME_LEN_MAX, Role,
};

use crate::harness::{Heard, Talk, hear, hear_in_any_split};
use crate::recognition::{client_hello, describe, query};

use Role::{Client, Server};

/// RFC 1157 section 4.1.2: a GetRequest of version 2c.
const SNMP: &[u8] = b"\x30\x16\x02\x01\x01\x04\x06public\xA0\x09\x02\x01\x01\x02\x01\x00\x02\x01\x00";

/// RFC 8489 section 5: a binding request without attributes.
const STUN: &[u8] = b"\0\x01\0\0\x21\x12\xA4\x42twelve octet";

const JUNK: &[u8] = b"\x01\x02 nothing that a probe knows\r\n";
const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const ASKED: [&str; 5] =
    ["http client: /a", "http client: end", "http server: 200", "http body: ok", "http server: end"];

/// A client hello of DTLS 1.2 in one record.
fn dtls_hello() -> Vec<u8> {
    let body = [b"\xFE\xFD".as_slice(), &[0x5A; 32], b"\0\0\0\x02\xC0\x2B\x01\0"].concat();
    let len = body.len() as u8;
    let record = [b"\x16\xFE\xFD\0\0\0\0\0\0\0\0\0".as_slice(), &[len + 12]].concat();
    [record.as_slice(), b"\x01\0\0", &[len], b"\0\0\0\0\0\0\0", &[len], &body].concat()
}

fn datagrams(port: u16, turns: &[(Role, &[u8])]) -> Heard {
    let mut talk = Talk::<Standard>::new(IpProtocol::UDP, port, describe);
    for (from, bytes) in turns {
        talk.send(*from, bytes);
        assert!(talk.held_bytes() < 100_000);
    }
    talk.finish()
}

#[test]
fn a_foreign_datagram_does_not_hide_the_protocol_of_the_port() {
    let (asks, answers) = (query(9, 0x0100, 1), query(9, 0x8180, 1));
    let heard = datagrams(53, &[(Client, SNMP), (Client, &asks), (Server, &answers)]);
    assert_eq!(heard.said, ["[dns by content]", "dns client: query 9", "dns server: response 9"]);
    // Roles are those of the messages, whoever sent the foreign one.
    let heard = datagrams(53, &[(Server, SNMP), (Client, &asks)]);
    assert_eq!(heard.said[..2], ["[dns by content]", "dns client: query 9"]);
    // A parser that began with the foreign one gives way, and names the flow.
    let heard = datagrams(53, &[(Client, &dtls_hello()), (Client, &asks), (Server, &answers)]);
    assert_eq!(
        heard.said,
        [
            "[dtls by content]",
            "dtls client: ClientHello",
            "[dns by content]",
            "dns client: query 9",
            "dns server: response 9"
        ]
    );
    assert_eq!(heard.application, Some(("dtls", "content")));
}

#[test]
fn a_flow_on_a_port_that_is_not_its_own_has_its_name_all_the_same() {
    let heard = datagrams(53, &[(Client, SNMP), (Server, SNMP)]);
    assert_eq!(heard.said, ["[snmp by content]"]);
    // Something else that is parsed comes behind: the first one names the flow.
    let heard = datagrams(53, &[(Client, STUN), (Client, &dtls_hello())]);
    assert_eq!(heard.said, ["[stun by content]", "[dtls by content]", "dtls client: ClientHello"]);
    // The port of a protocol without a parser waits for nothing.
    let mut talk = Talk::<Standard>::new(IpProtocol::UDP, 123, describe);
    talk.send(Client, SNMP);
    assert_eq!(talk.held_bytes(), 0);
    assert_eq!(talk.finish().application, Some(("snmp", "content")));
}

#[test]
fn the_second_chance_of_datagrams_ends() {
    let asks = query(9, 0x0100, 1);
    for (foreign, said) in [(SNMP, vec!["[snmp by content]"]), (b"\xFF\xFFnothing", vec![])] {
        let hear = |count: u8| {
            let mut talk = Talk::<Standard>::new(IpProtocol::UDP, 53, describe);
            for _ in 0..count {
                talk.send(Client, foreign);
                assert!(talk.held_bytes() < 500);
            }
            let held_bytes = talk.held_bytes();
            talk.send(Client, &asks);
            (held_bytes > 0, talk.finish().said)
        };
        let (is_held, found) = hear(RESUME_DATAGRAM_COUNT_MAX - 1);
        assert!(is_held);
        assert_eq!(found[..2], ["[dns by content]", "dns client: query 9"]);
        assert_eq!(hear(RESUME_DATAGRAM_COUNT_MAX), (false, said.iter().map(ToString::to_string).collect()));
        // The same where a parser has the flow.
        let mut talk = Talk::<Standard>::new(IpProtocol::UDP, 53, describe);
        for _ in 0..RESUME_DATAGRAM_COUNT_MAX {
            talk.send(Client, &dtls_hello());
        }
        talk.send(Client, &asks);
        assert!(talk.finish().said.iter().all(|said| !said.contains("dns")));
    }
}

#[test]
fn messages_are_found_behind_octets_of_something_else() {
    let junk = |message: &[u8]| [JUNK, message].concat();
    let asks = junk(REQUEST);
    let heard = hear_in_any_split::<Standard>(80, &[(Client, &asks), (Server, RESPONSE)], describe);
    assert_eq!(heard.said[0], "[http by content]");
    assert_eq!(heard.messages(), ASKED);
    assert_eq!(
        hear::<Standard>(9, &[(Client, &asks)], describe, || 1000).application,
        None,
        "no port of HTTP"
    );

    // The greeting says nothing, and the first command is none.
    let turns: [(Role, &[u8]); 4] = [
        (Server, b"220 a.example\r\n"),
        (Client, b"#!$\r\n"),
        (Server, b"500 What?\r\n"),
        (Client, b"EHLO b.example\r\n"),
    ];
    let heard = hear_in_any_split::<Standard>(25, &turns, describe);
    assert_eq!(heard.said[..2], ["[smtp by content]", "smtp client: Ehlo"]);
    let turns: [(Role, &[u8]); 3] = [(Server, b"220 a\r\n"), (Client, b"#!$\r\n"), (Client, b"USER b\r\n")];
    let heard = hear_in_any_split::<Standard>(21, &turns, describe);
    assert_eq!(heard.said[..2], ["[ftp by content]", "ftp client: command"]);

    let turns: [(Role, &[u8]); 2] = [(Client, JUNK), (Server, b"SSH-2.0-x\r\n")];
    let heard = hear_in_any_split::<Standard>(22, &turns, describe);
    assert_eq!(heard.said[..2], ["[ssh by content]", "ssh server: identification"]);

    let hello = [b"\x16\x03\x01 and \x16".as_slice(), &client_hello()].concat();
    let heard = hear_in_any_split::<Standard>(443, &[(Client, &junk(&hello))], describe);
    assert_eq!(heard.said, ["[tls by content]", "tls client: ClientHello"]);
}

#[test]
fn a_connection_of_http_is_picked_up_at_its_next_message() {
    let mut talk = Talk::<Standard>::new(IpProtocol::TCP, 80, describe).picked_up();
    talk.say(Server, b"the rest of a body, ");
    talk.say(Server, b"and more of it");
    talk.lose(Server, 1000);
    talk.say(Server, b"HTTP/1.1 ");
    talk.say(Client, REQUEST);
    talk.say(Server, RESPONSE);
    let heard = talk.finish();
    assert_eq!(heard.said[0], "[http by content]");
    assert_eq!(heard.messages(), ASKED);

    // Who is the client the port tells, where nobody saw the connection begin.
    let mut talk = Talk::<Standard>::from_port(IpProtocol::TCP, 80, 40_000, describe).picked_up();
    talk.say(Client, b"the rest of a body");
    talk.say(Server, REQUEST);
    assert_eq!(talk.finish().messages()[..2], ASKED[..2]);

    // Records of TLS from the middle on tell nothing more: the port names them at once.
    let mut talk = Talk::<Standard>::new(IpProtocol::TCP, 443, describe).picked_up();
    talk.say(Server, JUNK);
    assert_eq!(talk.held_bytes(), 0);
    assert_eq!(talk.finish().application, Some(("tls", "port")));
}

#[test]
fn the_search_for_a_message_ends() {
    let piece = [b'x'; 1400];
    let hear = |octet_count: usize, is_picked_up: bool| {
        let talk = Talk::<Standard>::new(IpProtocol::TCP, 80, describe);
        let mut talk = if is_picked_up { talk.picked_up() } else { talk };
        talk.say(Client, b"\x01");
        for _ in 0..octet_count / piece.len() {
            talk.say(Client, &piece);
            assert!(talk.held_bytes() < 10_000);
        }
        let is_over = talk.held_bytes() == 0;
        talk.say(Client, b"\r\n");
        talk.say(Client, REQUEST);
        (is_over, talk.finish().application)
    };
    assert_eq!(hear(RESUME_LEN_MAX - 10_000, false), (false, Some(("http", "content"))));
    assert_eq!(hear(RESUME_LEN_MAX + 10_000, false), (true, None));
    assert_eq!(hear(RESUME_LEN_MAX + 10_000, true), (true, Some(("http", "port"))));

    let hear = |chunk_count| {
        let mut talk = Talk::<Standard>::new(IpProtocol::TCP, 80, describe);
        talk.say(Client, b"\x01");
        for _ in 0..chunk_count {
            talk.say(Client, b"\x01");
        }
        talk.say(Client, REQUEST);
        talk.finish().application
    };
    assert_eq!(hear(RESUME_CHUNK_COUNT_MAX / 2), Some(("http", "content")));
    assert_eq!(hear(RESUME_CHUNK_COUNT_MAX + u16::from(PROBE_CHUNK_COUNT_MAX)), None);
}

#[test]
fn a_search_that_has_no_memory_gives_back_what_it_took() {
    for bytes_max in (0..4000).step_by(100) {
        let mut talk = Talk::<Standard>::new(IpProtocol::TCP, 80, describe).with_bytes_max(bytes_max);
        talk.say(Client, b"\x01\x02");
        talk.say(Client, &[b'x'; 1400]);
        talk.say(Client, &[b'x'; 1400]);
        talk.say(Client, REQUEST);
        // Nothing may be held behind it.
        talk.finish();
    }
}
