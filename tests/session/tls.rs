//! TLS and DTLS: dialogues recorded between the client and the server of OpenSSL 3.0, and some handwritten ones.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::protocols::Standard;
use flowgauge::protocols::tls::{self, AltName, DtlsParser, Hex, Message, TlsParser};
use flowgauge::session::{
    Driver, FlowContext, MessageMeta, Payload, RESUME_DATAGRAM_COUNT_MAX, Receiver, Role, Session, Text,
};
use flowgauge::transaction::{Content, FlowTransactions, Joins};

use crate::harness::{
    Description, Dialogue, Turn, check_corruptions, check_truncations, observe, observe_in_any_split,
    observe_with_gap,
};

use Role::{Client, Server};

flowgauge::protocols! {
    /// TLS and DTLS.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Observed;
    parsers { Tls: TlsParser = &tls::PROTOCOL, Dtls: DtlsParser = &tls::DTLS }
}

fn describe(meta: &MessageMeta, message: Observed<'_>) -> Description {
    let (Observed::Tls(message) | Observed::Dtls(message)) = message;
    let text = match message {
        Message::ClientHello(hello) => {
            let name = hello.server_name().unwrap_or_default();
            let protocols: Vec<_> = hello.alpn().iter().map(|name| name.to_string()).collect();
            let ticket = if hello.has_session_ticket() { " ticket" } else { "" };
            let cookie = hello.cookie.map(|cookie| format!(" cookie {}", cookie.0.len())).unwrap_or_default();
            format!("hello {} {name} {}{ticket}{cookie}", hello.version(), protocols.join(","))
        }
        Message::Ssl2ClientHello(hello) => format!("ssl2 hello {} {}", hello.version, hello.cipher_specs),
        Message::ServerHello(hello) => {
            let protocol = hello.alpn().unwrap_or_default();
            let kind = if hello.is_hello_retry_request() { "retry" } else { "hello" };
            let is_resumed = hello.is_resumed.map_or("?".to_owned(), |is_resumed| is_resumed.to_string());
            format!("{kind} {} {} {protocol} resumed {is_resumed}", hello.version(), hello.cipher_suite)
        }
        Message::HelloVerifyRequest(request) => format!("verify {}", request.cookie.0.len()),
        Message::CertificateChain(chain) => {
            let all = chain.iter().map(|certificate| certificate.subject.to_string());
            format!("certificates {}", all.collect::<Vec<_>>().join(" | "))
        }
        Message::ServerKeyExchange(key) => format!("key of {}", key.group),
        Message::NewSessionTicket(ticket) => format!("ticket {} s, {}", ticket.lifetime_s, ticket.ticket_len),
        Message::ChangeCipherSpec(_) => "change".to_owned(),
        Message::Alert(alert) => format!("alert {} {}", alert.level, alert.description),
        Message::Step(step) => {
            step.handshake_type.map_or("encrypted".to_owned(), |kind| format!("step {kind}"))
        }
        _ => "?".to_owned(),
    };
    Description::Whole(format!("{}: {text}", meta.from.name()))
}

type Recorded = Vec<(Role, Vec<u8>)>;

/// Parses lines with a sender and octets in hexadecimal digits.
fn recorded(text: &str) -> Recorded {
    let turn = |line: &str| {
        let (sender, digits) = line.split_once(' ').expect("a sender and digits");
        let octet = |position| u8::from_str_radix(&digits[position..position + 2], 16).expect("hex");
        let from = if sender == "C" { Client } else { Server };
        (from, (0..digits.len()).step_by(2).map(octet).collect())
    };
    text.lines().map(turn).collect()
}

fn turns(recorded: &Recorded) -> Vec<Turn<'_>> {
    recorded.iter().map(|(from, bytes)| (*from, bytes.as_slice())).collect()
}

fn tls12() -> Recorded {
    recorded(include_str!("tls/tls12_new.txt"))
}

const SUBJECT: &str = "CN=www.example.org,OU=Zürich,O=Example\\, Inc.,C=CH";

/// Messages of which only the type is reported (RFC 5246 section 7.4).
const SERVER_KEY_EXCHANGE: &str = "server: step 12";
const SERVER_HELLO_DONE: &str = "server: step 14";
const CLIENT_KEY_EXCHANGE: &str = "client: step 16";

#[test]
fn a_tls_1_2_handshake_is_parsed() {
    let recorded = tls12();
    let observed = observe_in_any_split::<Set>(9, &turns(&recorded), describe);
    assert_eq!(
        observed.reports,
        [
            "[tls by content]",
            "client: hello TLS 1.2 www.example.org h2,http/1.1",
            "server: hello TLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 h2 resumed false",
            &format!("server: certificates {SUBJECT}"),
            "server: key of x25519",
            SERVER_HELLO_DONE,
            CLIENT_KEY_EXCHANGE,
            "client: change",
            "server: ticket 7200 s, 176",
            "server: change",
        ]
    );
    assert_eq!(observed.application, Some(("tls", "content")));
}

#[test]
fn a_resumed_session_is_reported() {
    let recorded = recorded(include_str!("tls/tls12_resumed.txt"));
    let observed = observe_in_any_split::<Set>(9, &turns(&recorded), describe);
    assert_eq!(
        observed.messages(),
        [
            "client: hello TLS 1.2 www.example.org h2,http/1.1 ticket",
            "server: hello TLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 h2 resumed true",
            "server: change",
            "client: change",
        ]
    );
}

#[test]
fn a_tls_1_3_handshake_with_a_hello_retry_request_is_parsed() {
    let recorded = recorded(include_str!("tls/tls13_retry.txt"));
    let observed = observe_in_any_split::<Set>(9, &turns(&recorded), describe);
    assert_eq!(
        observed.messages(),
        [
            "client: hello TLS 1.3 www.example.org ",
            "server: retry TLS 1.3 TLS_AES_256_GCM_SHA384  resumed false",
            "server: change",
            "client: change",
            "client: hello TLS 1.3 www.example.org ",
            "server: hello TLS 1.3 TLS_AES_256_GCM_SHA384  resumed false",
            "server: encrypted",
            "client: encrypted",
        ]
    );
}

#[test]
fn a_handshake_failure_alert_is_reported() {
    let recorded = recorded(include_str!("tls/refused.txt"));
    let observed = observe_in_any_split::<Set>(9, &turns(&recorded), describe);
    let hello = "client: hello TLS 1.2 www.example.org ";
    assert_eq!(observed.messages(), [hello, "server: alert fatal handshake_failure"]);
}

#[test]
fn certificate_fields_match_openssl() {
    // The expected values are from `openssl x509 -text -fingerprint`.
    fn describe(_: &MessageMeta, message: Observed<'_>) -> Description {
        let Observed::Tls(Message::CertificateChain(chain)) = message else {
            return Description::Whole(String::new());
        };
        let certificate = chain.iter().next().expect("a certificate");
        assert_eq!(chain.iter().count(), 1);
        assert_eq!(certificate.subject.to_string(), SUBJECT);
        assert_eq!(certificate.issuer.to_string(), SUBJECT);
        assert_eq!(certificate.subject.common_name().as_deref(), Some("www.example.org"));
        assert_eq!(certificate.serial.to_string(), "1122334455667788");
        assert_eq!(certificate.not_before.expect("a time").to_string(), "2026-11-21T12:02:32Z");
        assert_eq!(certificate.not_after.expect("a time").to_string(), "2036-11-18T12:02:32Z");
        let sha256 = "02a44a81192635bbc8208fcf3ca8937387bfd3416492bcf99a7a649543fbc6b0";
        assert_eq!(Hex(&certificate.sha256()).to_string(), sha256);
        assert_eq!(Hex(&certificate.sha1()).to_string(), "6d260b82b75edc180525c6ac235f1fd49e71c904");
        let names: Vec<_> = certificate.alt_names.iter().collect();
        assert_eq!(
            names,
            [
                AltName::Dns(Text(b"www.example.org")),
                AltName::Dns(Text(b"*.example.net")),
                AltName::Ip("192.0.2.7".parse().expect("an address")),
                AltName::Ip("2001:db8::7".parse().expect("an address")),
                AltName::Email(Text(b"admin@example.org")),
                AltName::Uri(Text(b"https://example.org/")),
            ]
        );
        Description::Whole("checked".to_owned())
    }
    let recorded = tls12();
    let observed = observe::<Set>(9, &turns(&recorded), describe, || usize::MAX);
    assert!(observed.reports.contains(&"checked".to_owned()));
}

#[cfg(feature = "serde")]
#[test]
fn messages_serialize_as_json_objects() {
    fn describe(_: &MessageMeta, message: Observed<'_>) -> Description {
        let (Observed::Tls(message) | Observed::Dtls(message)) = message;
        Description::Whole(as_json(&message))
    }
    let recorded = tls12();
    let observed = observe::<Set>(9, &turns(&recorded), describe, || usize::MAX);
    let objects: Vec<serde_json::Value> =
        observed.messages().iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
    assert_eq!(objects[0]["message"], "client_hello");
    assert_eq!(objects[0]["server_name"], "www.example.org");
    assert_eq!(objects[0]["alpn"], serde_json::json!(["h2", "http/1.1"]));
    assert_eq!(objects[0]["version"], "TLS 1.2");
    assert_eq!(objects[0]["random"].as_str().map(str::len), Some(64));
    assert_eq!(objects[0]["ja3"].as_str().map(str::len), Some(32));
    assert!(objects[0]["ja4"].as_str().is_some_and(|ja4| ja4.starts_with("t12d28")));
    assert_eq!(objects[1]["message"], "server_hello");
    assert_eq!(objects[1]["cipher_suite"], "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
    assert_eq!(objects[1]["is_resumed"], false);
    let certificate = &objects[2]["certificates"][0];
    assert_eq!(certificate["subject"], SUBJECT);
    assert_eq!(certificate["alt_names"][2], serde_json::json!({"ip": "192.0.2.7"}));
    assert_eq!(objects[3], serde_json::json!({"message": "server_key_exchange", "group": "x25519"}));
    assert_eq!(objects[4], serde_json::json!({"message": "step", "handshake_type": 14}));
    assert_eq!(objects[6], serde_json::json!({"message": "change_cipher_spec"}));
    assert_eq!(objects[7]["lifetime_s"], 7200);
}

/// Encodes a handshake record with a part of a message.
fn record(content: &[u8]) -> Vec<u8> {
    let mut record = vec![22, 3, 1];
    record.extend((content.len() as u16).to_be_bytes());
    record.extend(content);
    record
}

#[test]
fn a_message_split_over_many_records_is_parsed() {
    let recorded = tls12();
    let hello = &recorded[0].1[5..];
    for len in [1, 3, 4, 5, 50, 200] {
        let mut records: Recorded = vec![(Client, hello.chunks(len).flat_map(record).collect())];
        let first: Vec<_> = recorded[1].1[5..].chunks(len).collect();
        // Each message of the server is in its own record; the first record contains the server hello.
        let server_hello_len = usize::from(u16::from_be_bytes([recorded[1].1[3], recorded[1].1[4]]));
        let server_hello = &recorded[1].1[5..5 + server_hello_len];
        assert!(!first.is_empty());
        records.push((Server, server_hello.chunks(len).flat_map(record).collect()));
        let observed = observe_in_any_split::<Set>(443, &turns(&records), describe);
        assert_eq!(
            observed.messages(),
            [
                "client: hello TLS 1.2 www.example.org h2,http/1.1",
                "server: hello TLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 h2 resumed false",
            ],
            "{len}"
        );
    }
}

#[test]
fn oversized_and_invalid_messages_stop_the_parser() {
    let recorded = tls12();
    let start = recorded[0].1.as_slice();
    for (more, fault) in [
        // A message of 65537 octets.
        (&record(&[11, 1, 0, 1])[..], "handshake_too_long"),
        (&record(&[99, 0, 0, 0])[..], "bad_handshake_type"),
        (&record(&[1, 0, 0, 1, 3])[..], "bad_client_hello"),
        (b"GET / HTTP/1.1\r\n\r\n", "bad_record"),
        (b"\x16\x03\x01\x60\x00", "bad_record"),
    ] {
        let observed = observe_in_any_split::<Set>(443, &[(Client, start), (Client, more)], describe);
        assert_eq!(observed.reports.last().map(String::as_str), Some(&*format!("[tls stopped: {fault}]")));
        assert_eq!(observed.messages().len(), 1);
    }
}

#[test]
fn an_ssl_2_hello_is_parsed() {
    // The client offers TLS 1.0, with two cipher specifications and 16 octets of challenge.
    let mut hello = b"\x80\x1f\x01\x03\x01\x00\x06\x00\x00\x00\x10\x00\x00\x04\x00\x00\x05".to_vec();
    hello.extend([9; 16]);
    let recorded = tls12();
    let turns: [Turn<'_>; 2] = [(Client, &hello), (Server, &recorded[1].1)];
    let observed = observe_in_any_split::<Set>(9, &turns, describe);
    assert_eq!(
        observed.reports,
        [
            "[tls by content]",
            "client: ssl2 hello TLS 1.0 000004000005",
            "server: hello TLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 h2 resumed ?",
            &format!("server: certificates {SUBJECT}"),
            "server: key of x25519",
            SERVER_HELLO_DONE,
        ]
    );
    // The server selects SSL 2.0, which is not parsed.
    let observed = observe_in_any_split::<Set>(
        9,
        &[(Client, &hello), (Server, b"\x80\x0b\x04\0\0\0\x02\0\0\0\0\0\0")],
        describe,
    );
    assert_eq!(observed.messages().len(), 1);
    assert_eq!(observed.reports.len(), 2);
}

#[test]
fn a_mid_stream_flow_is_recognized_and_uses_no_memory() {
    let mut data = b"\x17\x03\x03\x04\x00".to_vec();
    data.resize(5 + 1024, 0xaa);
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 9, describe);
    for from in [Server, Client] {
        for _ in 0..3 {
            dialogue.send_octets(from, &data);
        }
    }
    assert_eq!(dialogue.held_bytes(), 0, "both directions are done");
    let observed = dialogue.finish();
    assert_eq!(observed.reports, ["[tls by content]"]);
    // The capture begins with the server hello, which identifies the server independently of the initiator of the flow.
    let recorded = tls12();
    let observed =
        observe_in_any_split::<Set>(9, &[(Client, &recorded[1].1), (Server, &recorded[2].1)], describe);
    assert_eq!(
        observed.messages(),
        [
            "server: hello TLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 h2 resumed ?",
            &format!("server: certificates {SUBJECT}"),
            "server: key of x25519",
            SERVER_HELLO_DONE,
            CLIENT_KEY_EXCHANGE,
            "client: change",
        ]
    );
}

#[test]
fn other_protocols_are_not_recognized() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x16\x03\x05\x00\x10\x01\x00\x00\x0c\x03\x03",
        b"\x16\x03\x01\xff\xff\x01\x00",
        b"\x16\x03\x01\x00\x40\x63\x00\x00\x3c\x03\x03",
        b"\x15\x03\x01\x00\x02\x07\x28",
        b"\x17\x03\x03\x00\x02ab\x99\x99\x99",
        b"\x80\x2e\x01\x03\x01\x00\x05\x00\x00\x00\x10",
        b"\x80\x46\x01\x03",
        b"\x14\x03\x01\x00\x01\x02",
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
    ] {
        let observed = observe::<Set>(443, &[(Client, bytes), (Server, bytes)], describe, || 1);
        assert!(observed.messages().is_empty(), "{}: {:?}", bytes.escape_ascii(), observed.reports);
        assert_ne!(observed.application, Some(("tls", "content")), "{}", bytes.escape_ascii());
    }
}

#[test]
fn nothing_is_invented_if_a_change_of_the_cipher_is_missing() {
    let recorded = tls12();
    let turns = turns(&recorded);
    let change = b"\x14\x03\x03\0\x01\x01";
    for turn in [2, 3] {
        let mut octets = turns[turn].1.to_vec();
        let start = octets.windows(6).position(|window| window == change).expect("a change");
        let whole = observe_with_gap::<Set>(443, &turns, describe, (turn, octets.len(), 0));
        // The nonce of the encrypted record behind it is zero, as that of OpenSSL, and resembles two messages.
        octets[start + 11..start + 19].fill(0);
        let mut altered = turns.clone();
        altered[turn].1 = &octets;
        let observed = observe_with_gap::<Set>(443, &altered, describe, (turn, start, 6));
        let missing = if turn == 2 { "client: change" } else { "server: change" };
        let expected: Vec<_> = whole.messages().into_iter().filter(|message| *message != missing).collect();
        assert_eq!(observed.messages(), expected, "{turn}");
    }
}

#[test]
fn parsing_resumes_after_a_gap_at_a_record_boundary() {
    let recorded = tls12();
    let turns = turns(&recorded);
    let server = turns[1].1;
    let hello_len = 5 + usize::from(u16::from_be_bytes([server[3], server[4]]));
    // The whole server hello is missing: the certificates are reported.
    let observed = observe_with_gap::<Set>(443, &turns, describe, (1, 0, hello_len));
    assert_eq!(
        observed.messages(),
        [
            "client: hello TLS 1.2 www.example.org h2,http/1.1",
            &format!("server: certificates {SUBJECT}"),
            SERVER_KEY_EXCHANGE,
            SERVER_HELLO_DONE,
            CLIENT_KEY_EXCHANGE,
            "client: change",
            "server: ticket 7200 s, 176",
            "server: change",
        ]
    );
    // The gap extends from the middle of the server hello to the middle of the certificate, where no record begins: the
    // direction of the server ends.
    let observed = observe_with_gap::<Set>(443, &turns, describe, (1, 20, hello_len));
    assert_eq!(
        observed.messages(),
        ["client: hello TLS 1.2 www.example.org h2,http/1.1", CLIENT_KEY_EXCHANGE, "client: change"]
    );
    // Any other gap causes neither a panic nor a fault.
    for start in 0..server.len() {
        let observed =
            observe_with_gap::<Set>(443, &turns, describe, (1, start, 7.min(server.len() - start)));
        assert!(
            observed.reports.iter().all(|report| !report.contains("stopped")),
            "{start}: {:?}",
            observed.reports
        );
    }
}

#[test]
fn truncated_and_corrupted_handshakes_cause_no_panic() {
    for text in [
        include_str!("tls/tls12_new.txt"),
        include_str!("tls/tls13_retry.txt"),
        include_str!("tls/tls12_resumed.txt"),
    ] {
        let recorded = recorded(text);
        check_truncations::<Set>(443, &turns(&recorded), describe);
        check_corruptions::<Set>(443, &turns(&recorded), describe);
    }
}

fn dtls12() -> Recorded {
    recorded(include_str!("tls/dtls12.txt"))
}

fn observe_datagrams(turns: &[Turn<'_>]) -> crate::harness::Observed {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 9, describe);
    turns.iter().for_each(|(from, bytes)| dialogue.send_datagram(*from, bytes));
    dialogue.finish()
}

#[test]
fn a_dtls_handshake_with_a_cookie_and_fragments_is_parsed() {
    let recorded = dtls12();
    let expected = [
        "[dtls by content]",
        "client: hello DTLS 1.2 www.example.org  cookie 0",
        "server: verify 20",
        "client: hello DTLS 1.2 www.example.org  cookie 20",
        "server: hello DTLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384  resumed false",
        &format!("server: certificates {SUBJECT}"),
        "server: key of x25519",
        SERVER_HELLO_DONE,
        CLIENT_KEY_EXCHANGE,
        "client: change",
        "server: ticket 7200 s, 176",
        "server: change",
    ];
    let turns = turns(&recorded);
    assert_eq!(observe_datagrams(&turns).reports, expected);
    // Each datagram is sent twice.
    let doubled: Vec<_> = turns.iter().flat_map(|turn| [*turn, *turn]).collect();
    let observed = observe_datagrams(&doubled);
    let mut messages = observed.reports;
    messages.dedup();
    assert_eq!(messages, expected, "a repeated message is reported once");
    // The server's datagrams arrive in reverse order.
    let mut reversed = turns.clone();
    reversed[3..9].reverse();
    let mut messages = observe_datagrams(&reversed).reports;
    messages.sort();
    // The kind of the key is known only from the server hello, which follows it here.
    let without_key =
        |message| if message == "server: key of x25519" { SERVER_KEY_EXCHANGE } else { message };
    let mut sorted = expected.map(without_key);
    sorted.sort_unstable();
    assert_eq!(messages, sorted);
}

/// Returns the recorded handshake with another random value of the client.
fn dtls12_again(number: u8) -> Recorded {
    let mut recorded = dtls12();
    // Behind the headers of record and handshake message, and the version.
    const RANDOM: std::ops::Range<usize> = 13 + 12 + 2..13 + 12 + 2 + 8;
    let random = recorded[0].1[RANDOM].to_vec();
    for (_, bytes) in &mut recorded {
        if bytes.get(RANDOM) == Some(&random) {
            bytes[RANDOM.start] ^= number;
        }
    }
    recorded
}

#[test]
fn a_later_dtls_handshake_of_a_flow_is_parsed() {
    let once = observe_datagrams(&turns(&dtls12()));
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 9, describe);
    let encrypted = [&[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 9, 0, 20][..], &[7; 20]].concat();
    for number in 0..=tls::CONVERSATION_COUNT_MAX + 1 {
        for (from, bytes) in turns(&dtls12_again(number)) {
            dialogue.send_datagram(from, bytes);
        }
        dialogue.send_datagram(Client, &encrypted);
        assert_eq!(dialogue.held_bytes(), 0, "nothing is held between handshakes");
    }
    // One more than the first, which is the maximum.
    let messages = dialogue.finish();
    let count = 1 + usize::from(tls::CONVERSATION_COUNT_MAX);
    assert_eq!(messages.messages().len(), count * once.messages().len());
    for messages in messages.messages().chunks(once.messages().len()) {
        assert_eq!(messages, once.messages());
    }
}

/// Collects the connections of a flow.
#[derive(Default)]
struct Connections {
    open: FlowTransactions,
    joins: Joins,
    found: Vec<(Option<Box<str>>, Option<bool>)>,
}

impl Receiver<Standard> for Connections {
    fn message(&mut self, meta: &MessageMeta, message: flowgauge::protocols::Message<'_>) {
        let Self { open, joins, found } = self;
        let (key, _) = key();
        open.message(joins, (&key, Timestamp::ZERO), meta, &message, |transaction| {
            note(found, &transaction.content)
        });
    }
}

fn note(found: &mut Vec<(Option<Box<str>>, Option<bool>)>, content: &Content) {
    if let Content::Tls(tls) = content {
        found.push((tls.server_name.clone(), tls.is_established));
    }
}

fn key() -> (FlowKey, Side) {
    FlowKey::new(IpProtocol::UDP, ([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), 9))
}

/// Returns the connections in datagrams of a flow.
fn connections(datagrams: &[(Role, Vec<u8>)]) -> Vec<(Option<Box<str>>, Option<bool>)> {
    let (key, client) = key();
    let context = FlowContext::new(&key, client, Timestamp::ZERO);
    let (mut driver, mut session) = (Driver::<Standard>::default(), Session::default());
    let mut connections = Connections::default();
    for (from, bytes) in datagrams {
        let side = if *from == Client { client } else { client.other() };
        let payload = Payload { bytes, len: bytes.len() };
        driver.datagram(&mut session, &context, side, payload, &mut connections);
    }
    let Connections { open, joins, found } = &mut connections;
    open.end(joins, |transaction| note(found, &transaction.content));
    std::mem::take(found)
}

#[test]
fn each_dtls_handshake_of_a_flow_is_a_transaction() {
    let name: Option<Box<str>> = Some("www.example.org".into());
    // The second handshake begins before the first one is encrypted.
    let parts = [dtls12()[..4].to_vec(), dtls12_again(1), dtls12_again(2)].concat();
    let expected = [(name.clone(), None), (name.clone(), Some(true)), (name.clone(), Some(true))];
    assert_eq!(connections(&parts), expected);
    // The client changes its random value after the server requested a cookie.
    let parts = [dtls12()[..2].to_vec(), dtls12_again(1)[2..].to_vec()].concat();
    assert_eq!(connections(&parts), [(name.clone(), Some(true))]);
    // The same with a late server, whose request follows the second hello, and with a late client.
    let [first, request, second, answer] = [0, 1, 2, 3].map(|index| parts[index].clone());
    for front in [[&first, &second, &request, &answer], [&request, &answer, &first, &second]] {
        let parts: Vec<_> = front.into_iter().cloned().chain(parts[4..].iter().cloned()).collect();
        assert_eq!(connections(&parts), [(name.clone(), Some(true))]);
    }
}

#[test]
fn a_dtls_handshake_may_follow_many_datagrams_of_stun() {
    let stun = (Client, b"\x00\x01\x00\x00\x21\x12\xa4\x42abcdefghijkl".to_vec());
    let last = usize::from(RESUME_DATAGRAM_COUNT_MAX) - 1;
    for (count, expected) in [(1, 1), (8, 1), (9, 1), (last, 1), (last + 1, 1), (300, 1)] {
        let datagrams = [vec![stun.clone(); count], dtls12()].concat();
        assert_eq!(connections(&datagrams).len(), expected, "after {count}");
    }
}

#[test]
fn missing_truncated_and_corrupted_datagrams_cause_no_panic() {
    let recorded = dtls12();
    let turns = turns(&recorded);
    for missing in 0..turns.len() {
        let mut rest = turns.clone();
        rest.remove(missing);
        assert_eq!(observe_datagrams(&rest).application, Some(("dtls", "content")), "without {missing}");
    }
    for truncated in 0..60 {
        let truncated: Vec<_> = turns
            .iter()
            .map(|(from, bytes)| (*from, &bytes[..bytes.len() - truncated.min(bytes.len())]))
            .collect();
        observe_datagrams(&truncated);
    }
    let mut random = crate::harness::random(7);
    for _ in 0..400 {
        let mut changed = recorded.clone();
        for _ in 0..4 {
            let turn = (random() % changed.len() as u64) as usize;
            let position = (random() % changed[turn].1.len() as u64) as usize;
            changed[turn].1[position] = random() as u8;
        }
        let changed: Vec<_> = changed.iter().map(|(from, bytes)| (*from, bytes.as_slice())).collect();
        observe_datagrams(&changed);
    }
}

#[test]
fn datagrams_of_other_protocols_are_ignored() {
    let recorded = dtls12();
    let stun = b"\x00\x01\x00\x00\x21\x12\xa4\x42abcdefghijkl";
    let rtp = [0x80; 40];
    let mut turns = turns(&recorded);
    turns.insert(0, (Client, stun));
    turns.insert(4, (Server, &rtp));
    let observed = observe_datagrams(&turns);
    assert_eq!((observed.messages().len(), observed.application), (11, Some(("dtls", "content"))));
    for bytes in
        [&rtp[..], b"\x16\xfe\xfd\0\0\0\0\0\0\0\0\0\x0c\x01\0\0\0\0\0\0\0\0\0\0\x01", b"\x17\xfe\xfd\0\0"]
    {
        assert_eq!(observe_datagrams(&[(Client, bytes)]).application, None);
    }
}

#[cfg(feature = "serde")]
#[test]
fn lists_are_serialized_up_to_a_limit() {
    use flowgauge::protocols::tls::{Certificate, ClientHello, LISTED_COUNT_MAX, Transport};
    let hello = |suite_count: usize, extension_count: usize| {
        let mut body = [&[3, 3][..], &[7; 32], &[0]].concat();
        body.extend((2 * suite_count as u16).to_be_bytes());
        body.extend([0xC0, 0x2F].repeat(suite_count));
        body.extend([1, 0]);
        body.extend((4 * extension_count as u16).to_be_bytes());
        body.extend([0, 23, 0, 0].repeat(extension_count));
        body
    };
    for (suite_count, extension_count, is_truncated) in [
        (LISTED_COUNT_MAX, LISTED_COUNT_MAX, false),
        (LISTED_COUNT_MAX + 1, 1, true),
        (1, LISTED_COUNT_MAX + 1, true),
        (30_000, 1000, true),
    ] {
        let body = hello(suite_count, extension_count);
        let hello = ClientHello::parse(&body, Transport::Stream).expect("a hello");
        let written = row(&hello);
        let count = |key: &str| written[key].as_array().map_or(0, Vec::len);
        assert_eq!(count("cipher_suites"), suite_count.min(LISTED_COUNT_MAX));
        assert_eq!(count("extensions"), extension_count.min(LISTED_COUNT_MAX));
        assert_eq!(written.get("truncated"), is_truncated.then_some(&serde_json::Value::Bool(true)));
        assert_eq!(
            (hello.cipher_suites.count(), hello.extensions.iter().count()),
            (suite_count, extension_count)
        );
    }
    // Octets shorter than a fingerprint are not treated as a certificate.
    for (len, has_fingerprint) in [(63, false), (64, true)] {
        let written = row(&Certificate::parse(&vec![0x30; len]));
        assert_eq!(written.get("sha256").is_some(), has_fingerprint);
        assert_eq!(written["len"], len);
    }
}

/// Returns a row as a JSON object.
#[cfg(feature = "serde")]
fn row(row: &impl flowgauge::row::Row) -> serde_json::Value {
    let mut out = Vec::new();
    flowgauge::export::write_json(&mut out, row, flowgauge::export::Style::default());
    serde_json::from_slice(&out).expect("an object")
}
