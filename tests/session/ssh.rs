//! SSH up to the point where it is encrypted.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::IpProtocol;
use flowgauge::protocols::ssh::{Message, PROTOCOL, SshParser};
use flowgauge::protocols::{Message as AnyMessage, Standard};
use flowgauge::session::{MessageMeta, PROBE_LEN_MAX, Role};

use crate::harness::{
    Description, Dialogue, check_corruptions, check_truncations, observe, observe_in_any_split,
    observe_in_any_split_after, observe_with_gap,
};

use Role::{Client, Server};

flowgauge::protocols! {
    /// Only SSH.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Observed;
    parsers { Ssh: SshParser = &PROTOCOL }
}

fn describe(meta: &MessageMeta, observed: Observed<'_>) -> Description {
    let Observed::Ssh(message) = observed;
    let text = match message {
        Message::Identification(id) => {
            let comments = id.comments.map(|comments| format!(" ({comments})")).unwrap_or_default();
            let before = id.preceding_line_count;
            format!("{} {}{comments}, {before} before", id.protocol_version, id.software_version)
        }
        Message::KexInit(kexinit) => format!(
            "offers {} follows {}, {}",
            kexinit.kex_algorithms.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" "),
            kexinit.first_kex_packet_follows,
            kexinit.hassh_algorithms(),
        ),
        Message::Negotiated(agreed) => format!(
            "agreed on {:?} {:?} {:?} {:?}",
            agreed.kex_algorithm,
            agreed.encryption_algorithm_client_to_server,
            agreed.mac_algorithm_client_to_server,
            agreed.mac_algorithm_server_to_client,
        ),
        Message::Disconnect(disconnect) => {
            format!("disconnects: {} {}", disconnect.reason_code, disconnect.description)
        }
        Message::HostKey(key) => format!("key {} {}", key.algorithm, key.fingerprint),
        other => format!("{other:?}"),
    };
    Description::Whole(format!("{}: {text}", meta.from.name()))
}

/// Describes identifications among the messages of all protocols.
fn describe_any(meta: &MessageMeta, message: AnyMessage<'_>) -> Description {
    let text = match message {
        AnyMessage::Ssh(Message::Identification(id)) => format!("{} before", id.preceding_line_count),
        other => format!("{other:?}"),
    };
    Description::Whole(format!("{}: {text}", meta.from.name()))
}

/// Encodes an unencrypted packet (RFC 4253 section 6).
fn packet(payload: &[u8]) -> Vec<u8> {
    let padding_len = 8 - (payload.len() + 5) % 8 + if (payload.len() + 5) % 8 > 4 { 8 } else { 0 };
    let len = u32::try_from(1 + payload.len() + padding_len).expect("a length");
    let mut packet = len.to_be_bytes().to_vec();
    packet.push(padding_len as u8);
    packet.extend_from_slice(payload);
    packet.resize(packet.len() + padding_len, 0);
    packet
}

fn kexinit(lists: [&str; 10], follows: u8) -> Vec<u8> {
    let mut payload = vec![20];
    payload.extend_from_slice(&[0xC0; 16]);
    for list in lists {
        payload.extend_from_slice(&u32::try_from(list.len()).expect("a length").to_be_bytes());
        payload.extend_from_slice(list.as_bytes());
    }
    payload.extend_from_slice(&[follows, 0, 0, 0, 0]);
    packet(&payload)
}

fn client_kexinit() -> Vec<u8> {
    let cipher = "chacha20-poly1305@openssh.com,aes128-ctr";
    kexinit(
        [
            "curve25519-sha256,ext-info-c",
            "ssh-ed25519",
            cipher,
            "aes128-ctr",
            "m1",
            "m2,m3",
            "none",
            "none",
            "",
            "",
        ],
        0,
    )
}

fn server_kexinit() -> Vec<u8> {
    let kex = "sntrup761x25519-sha512,curve25519-sha256";
    kexinit(
        [
            kex,
            "ssh-ed25519",
            "aes128-ctr,chacha20-poly1305@openssh.com",
            "aes128-ctr",
            "m1",
            "m3",
            "none",
            "none",
            "",
            "",
        ],
        1,
    )
}

const EXPECTED: [&str; 6] = [
    "[ssh by content]",
    "server: 2.0 OpenSSH_9.2p1 (Debian-2), 0 before",
    "client: 2.0 PuTTY_Release_0.78, 0 before",
    "client: offers curve25519-sha256 ext-info-c follows false, \
     curve25519-sha256,ext-info-c;chacha20-poly1305@openssh.com,aes128-ctr;m1;none",
    "server: offers sntrup761x25519-sha512 curve25519-sha256 follows true, \
     sntrup761x25519-sha512,curve25519-sha256;aes128-ctr;m3;none",
    "server: agreed on Some(\"curve25519-sha256\") Some(\"chacha20-poly1305@openssh.com\") None Some(\"m3\")",
];

#[test]
fn algorithms_are_reported_and_encrypted_octets_are_ignored() {
    let (client, server) = (client_kexinit(), server_kexinit());
    let turns: [(Role, &[u8]); 6] = [
        (Server, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        (Client, b"SSH-2.0-PuTTY_Release_0.78\r\n"),
        (Client, &client),
        (Server, &server),
        (Client, b"encrypted, or a key exchange at least"),
        (Server, b"likewise"),
    ];
    let observed = observe_in_any_split::<Set>(2222, &turns, describe);
    assert_eq!(observed.reports, EXPECTED);
    check_truncations::<Set>(2222, &turns, describe);
    check_corruptions::<Set>(2222, &turns, describe);

    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 22, describe);
    for (from, bytes) in &turns[..3] {
        dialogue.send_octets(*from, bytes);
    }
    let held = dialogue.held_bytes();
    assert!(held > client.len() as u64 - 50, "the first KEXINIT is buffered until the second one");
    dialogue.send_octets(Client, &[0; 1 << 16]);
    assert_eq!(dialogue.held_bytes(), held, "octets of a side after its KEXINIT are not buffered");
    dialogue.send_octets(Server, turns[3].1);
    assert!(dialogue.held_bytes() < held, "the KEXINIT is released");
    dialogue.send_octets(Server, &reply(31));
    dialogue.send_octets(Server, &packet(&[21]));
    let (state, segment) = (dialogue.held_bytes(), [7; 1 << 16]);
    dialogue.send_octets(Server, &segment);
    assert_eq!(dialogue.held_bytes(), state, "encrypted octets are not buffered");
    (0..32).for_each(|_| dialogue.send_octets(Server, &segment));
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().reports, [&EXPECTED[..], &[KEY]].concat());
}

/// Encodes a string (RFC 4251 section 5).
fn string(octets: &[u8]) -> Vec<u8> {
    [&u32::try_from(octets.len()).expect("a length").to_be_bytes(), octets].concat()
}

/// Encodes a reply of the key exchange with a key of zeros.
fn reply(number: u8) -> Vec<u8> {
    let key = [string(b"ssh-ed25519"), string(&[0; 32])].concat();
    packet(&[vec![number], string(&key), string(&[9; 32]), string(&[7; 83])].concat())
}

/// The fingerprint was computed by another program.
const KEY: &str = "server: key ssh-ed25519 SHA256:kmYcvdi2GkPeWxB6XLjrZB8JHsy2Hm8luHMFp9GMvqk";

#[test]
fn the_key_of_the_server_is_reported() {
    let lists = |method: &'static str| {
        kexinit([method, "ssh-ed25519", "aes128-ctr", "aes128-ctr", "m1", "m1", "none", "none", "", ""], 0)
    };
    let group = packet(&[vec![31], string(&[1; 256]), string(&[2])].concat());
    let (ignored, new_keys) = (packet(&[2, 0, 0, 0, 0]), packet(&[21]));
    let cases: [(&str, Vec<Vec<u8>>, bool); 6] = [
        ("curve25519-sha256", vec![reply(31), new_keys.clone()], true),
        ("curve25519-sha256", vec![ignored, reply(31)], true),
        ("diffie-hellman-group-exchange-sha256", vec![group.clone(), reply(33)], true),
        // The first string of this packet is no key.
        ("diffie-hellman-group-exchange-sha256", vec![group, new_keys.clone(), reply(33)], false),
        ("gss-group14-sha256-x", vec![reply(31)], false),
        ("curve25519-sha256", vec![new_keys, reply(31)], false),
    ];
    for (method, packets, has_key) in cases {
        let (offer, packets) = (lists(method), packets.concat());
        let turns: [(Role, &[u8]); 5] = [
            (Server, b"SSH-2.0-a\r\n"),
            (Client, b"SSH-2.0-b\r\n"),
            (Server, &offer),
            (Client, &offer),
            (Server, &packets),
        ];
        let observed = observe_in_any_split::<Set>(22, &turns, describe);
        assert_eq!(
            observed.reports.iter().any(|report| *report == KEY),
            has_key,
            "{method}: {:?}",
            observed.reports
        );
        assert!(observed.reports.iter().all(|report| !report.contains("stopped")));
        check_truncations::<Set>(22, &turns, describe);
        check_corruptions::<Set>(22, &turns, describe);
    }
}

#[test]
fn preceding_lines_bare_lf_and_preceding_packets_are_tolerated() {
    let kexinit = server_kexinit();
    let ignore = packet(b"\x02\0\0\0\x03abc");
    let turns: [(Role, &[u8]); 5] = [
        (Server, b"Welcome,\nstranger\r\n\r\n"),
        (Server, b"SSH-1.99-Cisco-1.25\n"),
        (Server, &ignore),
        (Server, &kexinit),
        (Client, b"SSH-2.0-x\n"),
    ];
    let observed = observe_in_any_split_after::<Set>(22, 1, &turns, describe);
    assert_eq!(observed.messages()[..2], ["server: 1.99 Cisco-1.25, 3 before", EXPECTED[4]], "{observed:?}");
    assert_eq!(observed.messages()[2], "client: 2.0 x, 0 before");
}

#[test]
fn lines_of_a_server_on_another_port_wait_for_the_client() {
    let turns: [(Role, &[u8]); 4] = [
        (Server, "Willkommen, G\u{e4}ste\r\n".as_bytes()),
        (Server, b"Authorized use only.\r\n"),
        (Client, b"SSH-2.0-x\r\n"),
        (Server, b"SSH-2.0-y\r\n"),
    ];
    for len in [999, 20, 7] {
        let observed = observe::<Set>(2222, &turns, describe, || len);
        assert_eq!(observed.application, Some(("ssh", "content")));
        assert_eq!(observed.messages(), ["client: 2.0 x, 0 before", "server: 2.0 y, 2 before"]);
    }
    // Only lines of text: binary data, too long lines, and lines that the client answers with something else.
    let long = [&[b'a'; 256][..], b"\r\n"].concat();
    for (server, client) in [
        (&b"\x01\x02\r\n"[..], &b"SSH-2.0-x\r\n"[..]),
        (b"\xff\xfe\r\n", b"SSH-2.0-x\r\n"),
        (&long, b"SSH-2.0-x\r\n"),
        (b"Welcome\r\n", b"USER me\r\n"),
    ] {
        let observed = observe::<Set>(2222, &[(Server, server), (Client, client)], describe, || 999);
        assert_eq!(observed.application, None, "{}", server.escape_ascii());
    }
}

/// Lines before the identification, on any port and in any number of segments.
#[test]
fn lines_of_a_server_arrive_in_many_segments() {
    let long = b"Another line of a banner of some sixty octets, all of text.\r\n".repeat(20);
    let banners: [&[u8]; 4] =
        [b"Welcome,\nstranger\r\n\r\n", b"\r\n*****\r\n* x *\r\n", b"GET out\r\nHTTP\r\n", &long];
    for banner in banners {
        let count = banner.iter().filter(|octet| **octet == b'\n').count();
        let both = [banner, b"SSH-2.0-y\r\n"].concat();
        let client: (Role, &[u8]) = (Client, b"SSH-2.0-x\r\n");
        let server = (Server, &both[..]);
        let orders = [
            vec![client, server],
            vec![(Server, banner), client, (Server, b"SSH-2.0-y\r\n")],
            vec![server, client],
            vec![server],
        ];
        for (turns, port) in orders.iter().flat_map(|turns| [22, 80, 443, 2222].map(|port| (turns, port))) {
            for len in [1, 3, 7, 20, 61, 999] {
                let observed = observe::<Standard>(port, turns, describe_any, || len);
                let mut messages = observed.messages();
                messages.sort_unstable();
                let expected = ["client: 0 before".to_owned(), format!("server: {count} before")];
                assert_eq!(messages, expected[2 - turns.len().min(2)..], "{port}, {len}: {turns:?}");
            }
        }
    }
    // The search ends with the number of lines that a parser accepts, and with the octets that a probe sees.
    for line in [&b"\n"[..], b"x"] {
        let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 2222, describe);
        for _ in 0..PROBE_LEN_MAX + 1 {
            dialogue.send_octets(Server, line);
        }
        assert_eq!(dialogue.held_bytes(), 0, "{line:?}");
    }
}

#[test]
fn parsing_of_version_1_ends_after_the_identification() {
    let turns: [(Role, &[u8]); 3] =
        [(Server, b"SSH-1.5-1.2.27\n"), (Client, b"SSH-1.5-PuTTY\n"), (Server, b"\0\0\x01\x0bbinary")];
    let observed = observe_in_any_split::<Set>(22, &turns, describe);
    assert_eq!(observed.messages(), ["server: 1.5 1.2.27, 0 before", "client: 1.5 PuTTY, 0 before"]);
}

#[test]
fn a_server_of_both_versions_uses_the_version_of_the_client() {
    // RFC 4253 section 5.1; the following octets of the server are not a packet of SSH 2.
    let turns: [(Role, &[u8]); 3] = [
        (Server, b"SSH-1.99-OpenSSH_3.9p1\n"),
        (Client, b"SSH-1.5-PuTTY\n"),
        (Server, b"\0\0\x01\x0bbinary"),
    ];
    let observed = observe_in_any_split::<Set>(22, &turns, describe);
    assert_eq!(observed.messages(), ["server: 1.99 OpenSSH_3.9p1, 0 before", "client: 1.5 PuTTY, 0 before"]);
    assert!(!observed.reports.iter().any(|report| report.contains("stopped")), "{observed:?}");
}

#[test]
fn a_disconnect_before_kexinit_is_reported() {
    let disconnect = packet(b"\x01\0\0\0\x0b\0\0\0\x04bye.\0\0\0\0");
    let turns: [(Role, &[u8]); 2] = [(Client, b"SSH-2.0-scanner\r\n"), (Client, &disconnect)];
    let observed = observe_in_any_split::<Set>(22, &turns, describe);
    assert_eq!(observed.messages(), ["client: 2.0 scanner, 0 before", "client: disconnects: 11 bye."]);
}

#[test]
fn invalid_packets_stop_the_parser() {
    let fault = |bytes: &[u8]| {
        let observed = observe::<Set>(22, &[(Server, b"SSH-2.0-x\r\n"), (Server, bytes)], describe, || 9);
        observed.reports.last().cloned().unwrap_or_default()
    };
    assert_eq!(fault(b"\xFF\xFF\xFF\xFFabc"), "[ssh stopped: bad_packet_length]");
    assert_eq!(
        fault(b"\0\0\x88\xB8\x04"),
        "[ssh stopped: bad_packet_length]",
        "more than 35,000 octets including the length field"
    );
    assert_eq!(fault(b"\0\0\0\x04\x08\x14\0\0"), "[ssh stopped: bad_padding]");
    assert_eq!(fault(&packet(b"\x15")), "[ssh stopped: no_kexinit]");
    assert_eq!(fault(&packet(&[20; 30])), "[ssh stopped: bad_kexinit]", "a list longer than the packet");
    let long = [b"SSH-2.0-".as_slice(), &[b'a'; 300], b"\r\n"].concat();
    let observed = observe_in_any_split::<Set>(22, &[(Server, &long)], describe);
    assert_eq!(observed.reports.last().map(String::as_str), Some("[ssh stopped: line_too_long]"));
}

#[test]
fn other_protocols_are_not_recognized() {
    for (port, from, bytes) in [
        (2222, Server, b"220 mail.example ESMTP\r\n".as_slice()),
        (2222, Client, b"SSH\r\n"),
        (22, Client, b"GET / HTTP/1.1\r\n"),
        (22, Server, b"\x16\x03\x01\0\0"),
        (2222, Client, b"SSH-x"),
    ] {
        assert_eq!(observe::<Set>(port, &[(from, bytes)], describe, || 99).application, None, "{bytes:?}");
    }
}

#[test]
fn a_gap_stops_the_parser() {
    let kexinit = client_kexinit();
    let turns: [(Role, &[u8]); 2] = [(Client, b"SSH-2.0-x\r\n"), (Client, &kexinit)];
    let observed = observe_with_gap::<Set>(22, &turns, describe, (1, 40, 9));
    assert_eq!(observed.reports.last().map(String::as_str), Some("[ssh stopped: gap]"));
}

#[cfg(feature = "serde")]
#[test]
fn messages_serialize_as_objects() {
    fn json(_: &MessageMeta, observed: Observed<'_>) -> Description {
        let Observed::Ssh(message) = observed;
        Description::Whole(as_json(&message))
    }
    let (client, server) = (client_kexinit(), server_kexinit());
    let turns: [(Role, &[u8]); 3] =
        [(Server, b"SSH-2.0-OpenSSH_9.2p1\r\n"), (Client, b"SSH-2.0-x y\r\n"), (Client, &client)];
    let observed = observe::<Set>(22, &[turns[0], turns[1], turns[2], (Server, &server)], json, || 99);
    let reports: Vec<serde_json::Value> =
        observed.messages().iter().map(|message| serde_json::from_str(message).expect("an object")).collect();
    assert_eq!(
        reports[1],
        serde_json::json!({
            "message": "identification", "protocol_version": "2.0", "software_version": "x", "comments": "y",
            "preceding_line_count": 0,
        })
    );
    assert_eq!(
        (&reports[2]["message"], &reports[2]["hassh"]),
        (&"kex_init".into(), &"bf59376164221092e0d0011a11a24fa1".into())
    );
    assert_eq!(reports[2]["mac_algorithms_server_to_client"], serde_json::json!(["m2", "m3"]));
    assert!(reports[3]["hassh_server"].is_string() && reports[3]["hassh"].is_null());
    assert_eq!(reports[4]["kex_algorithm"], "curve25519-sha256");
    assert_eq!(reports[4].get("mac_algorithm_client_to_server"), None);
}
