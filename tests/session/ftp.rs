//! Control connection of FTP.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::IpProtocol;
use flowgauge::protocols::ftp::{DataEnd, FtpParser, Message, PROTOCOL};
use flowgauge::protocols::smtp::{self, SmtpParser};
use flowgauge::session::{MessageMeta, Protocol, Role};

use crate::harness::{
    self, Description, Dialogue, check_corruptions, check_truncations, observe_in_any_split_after,
    observe_with_gap,
};

use Role::{Client, Server};

static TLS: Protocol = Protocol::new("tls");

flowgauge::protocols! {
    /// FTP; SMTP, which begins similarly; and TLS by name only.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Observed;
    parsers {
        Smtp: SmtpParser = &smtp::PROTOCOL,
        Ftp: FtpParser = &PROTOCOL,
    }
    recognized { &TLS }
}

fn end(end: DataEnd) -> String {
    let address = end.address.map_or("same".to_owned(), |address| address.to_string());
    format!("{address} port {} opened by {}", end.port, end.opened_by.name())
}

/// Observes a dialogue in any split after the greeting, because recognition of the greeting needs more octets than the
/// recognition window has chunks.
fn observe_split(
    port: u16,
    turns: &[(Role, &[u8])],
    describe: fn(&MessageMeta, Observed<'_>) -> Description,
) -> harness::Observed {
    observe_in_any_split_after::<Set>(port, 1, turns, describe)
}

fn describe(_: &MessageMeta, observed: Observed<'_>) -> Description {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or("-".to_owned());
    let message = match observed {
        Observed::Ftp(message) => message,
        Observed::Smtp(message) => return Description::Whole(format!("{message:?}")),
    };
    Description::Whole(match message {
        Message::Greeting(greeting) => format!("{}: {}", greeting.code, greeting.text),
        Message::Command(command) => {
            let argument = command.argument.map(|text| format!(" {text}")).unwrap_or_default();
            let credentials =
                command.credentials.map(|kind| format!(" credentials {kind}")).unwrap_or_default();
            format!("{} {}{argument}{credentials}", command.transaction, command.verb)
        }
        Message::Reply(reply) => {
            format!(
                "{} {}{}: {}",
                number(reply.transaction),
                reply.code,
                if reply.is_malformed { " malformed" } else { "" },
                reply.text.to_string().replace('\n', "|")
            )
        }
        Message::DataConnection(data) => format!("{} expects {}", number(data.transaction), end(data.end)),
        Message::Transfer(transfer) => format!(
            "{} {} of {}, {} octets from {}, over {}: {} complete {}",
            transfer.transaction,
            transfer.verb,
            transfer.name.map_or("-".to_owned(), |name| name.to_string()),
            number(transfer.announced_len),
            number(transfer.restart_offset),
            transfer.data.map_or("?".to_owned(), end),
            transfer.code,
            transfer.is_complete,
        ),
        other => format!("{other:?}"),
    })
}

const DIALOGUE: [(Role, &[u8]); 27] = [
    (Server, b"220 (vsFTPd 3.0.3)\r\n"),
    (Client, b"USER anonymous\r\n"),
    (Server, b"331 Please specify the password.\r\n"),
    (Client, b"PASS someone@example.org\r\n"),
    (Server, b"230 Login successful.\r\n"),
    (Client, b"FEAT\r\n"),
    (Server, b"211-Features:\r\n EPRT\r\n SIZE\r\n211 End\r\n"),
    (Client, b"SIZE pub/a b.iso\r\n"),
    (Server, b"213 73400320\r\n"),
    (Client, b"EPSV\r\n"),
    (Server, b"229 Entering Extended Passive Mode (|||41234|)\r\n"),
    (Client, b"REST 1000\r\n"),
    (Server, b"350 Restart position accepted (1000).\r\n"),
    (Client, b"RETR pub/a b.iso\r\n"),
    (Server, b"150 Opening BINARY mode data connection.\r\n226 Transfer complete.\r\n"),
    (Client, b"PASV\r\n"),
    (Server, b"227 Entering Passive Mode (192,0,2,7,156,64).\r\n"),
    (Client, b"LIST\r\n"),
    (Server, b"150 Here comes the directory listing.\r\n226 Directory send OK.\r\n"),
    (Client, b"PORT 198,51,100,9,4,1\r\n"),
    (Server, b"200 PORT command successful.\r\n"),
    (Client, b"STOR up.txt\r\n"),
    (Server, b"150 Ok to send data (77 bytes).\r\n426 Failure writing network stream.\r\n"),
    (Client, b"EPRT |2|2001:db8::9|5282|\r\n"),
    (Server, b"522 Network protocol not supported.\r\n"),
    (Client, b"\xFF\xF4\xFF\xF2ABOR\r\nSITE PSWD old new\r\nQUIT\r\n"),
    (Server, b"225 No transfer to ABOR.\r\n500 Unknown\r\n221 Goodbye.\r\n"),
];

#[test]
fn a_dialogue_with_transfers_is_parsed() {
    let observed = observe_split(9, &DIALOGUE, describe);
    assert_eq!(
        observed.reports,
        [
            "[ftp by content]",
            "220: (vsFTPd 3.0.3)",
            "0 USER anonymous",
            "0 331: Please specify the password.",
            "1 PASS someone@example.org credentials user_pass",
            "1 230: Login successful.",
            "2 FEAT",
            "2 211: Features:| EPRT| SIZE|End",
            "3 SIZE pub/a b.iso",
            "3 213: 73400320",
            "4 EPSV",
            "4 229: Entering Extended Passive Mode (|||41234|)",
            "4 expects same port 41234 opened by client",
            "5 REST 1000",
            "5 350: Restart position accepted (1000).",
            "6 RETR pub/a b.iso",
            "6 150: Opening BINARY mode data connection.",
            "6 226: Transfer complete.",
            "6 RETR of pub/a b.iso, 73400320 octets from 1000, over same port 41234 opened by client: 226 complete true",
            "7 PASV",
            "7 227: Entering Passive Mode (192,0,2,7,156,64).",
            "7 expects 192.0.2.7 port 40000 opened by client",
            "8 LIST",
            "8 150: Here comes the directory listing.",
            "8 226: Directory send OK.",
            "8 LIST of -, - octets from -, over 192.0.2.7 port 40000 opened by client: 226 complete true",
            "9 PORT 198,51,100,9,4,1",
            "9 200: PORT command successful.",
            "9 expects 198.51.100.9 port 1025 opened by server",
            "10 STOR up.txt",
            "10 150: Ok to send data (77 bytes).",
            "10 426: Failure writing network stream.",
            "10 STOR of up.txt, 77 octets from -, over 198.51.100.9 port 1025 opened by server: 426 complete false",
            "11 EPRT |2|2001:db8::9|5282|",
            "11 522: Network protocol not supported.",
            "12 ABOR",
            "13 SITE PSWD",
            "14 QUIT",
            "12 225: No transfer to ABOR.",
            "13 500: Unknown",
            "14 221: Goodbye.",
        ]
    );
    assert!(!observed.reports.concat().contains("secret"));
    check_truncations::<Set>(21, &DIALOGUE, describe);
    check_corruptions::<Set>(21, &DIALOGUE, describe);
}

#[test]
fn an_accepted_auth_tls_hands_over_to_tls() {
    let turns: [(Role, &[u8]); 6] = [
        (Server, b"220 Service ready\r\n"),
        (Client, b"AUTH TLS\r\n"),
        (Server, b"234 Proceed with negotiation.\r\n"),
        (Client, b"\x16\x03\x01\x00\x05hello"),
        (Server, b"\x16\x03\x03\x00\x05hello"),
        (Client, b"\x17\x03\x03"),
    ];
    let expected = ["0 AUTH TLS", "0 234: Proceed with negotiation.", "[tls by content]"];
    let observed = observe_split(9, &turns, describe);
    assert_eq!(
        (observed.application, &observed.reports[2..]),
        (Some(("ftp", "content")), &expected.map(str::to_owned)[..])
    );
    let mut swapped = turns;
    swapped.swap(2, 3);
    assert_eq!(observe_split(9, &swapped, describe).reports[2..], expected);
    let observed = observe_with_gap::<Set>(9, &turns, describe, (2, 5, 26));
    assert_eq!(observed.reports[2..], [expected[0], expected[2]]);
    let refused: [(Role, &[u8]); 4] =
        [turns[0], turns[1], (Server, b"502 not implemented\r\n"), (Client, b"USER a\r\n")];
    assert_eq!(observe_split(9, &refused, describe).reports.last().map(String::as_str), Some("1 USER a"));
}

#[test]
fn greetings_of_various_servers_are_recognized() {
    for (port, turns, application) in [
        (
            9,
            vec![(Server, b"220-Welcome to\r\n220 ProFTPD Server ready.\r\n".as_slice())],
            Some(("ftp", "content")),
        ),
        (9, vec![(Server, b"220-FileZilla Server 1.8\r\n220 hello\r\n")], Some(("ftp", "content"))),
        (9, vec![(Server, b"220 ready\r\n"), (Client, b"USER a\r\n")], Some(("ftp", "content"))),
        (9, vec![(Server, b"220 ready\r\n"), (Client, b"EHLO a\r\n")], Some(("smtp", "content"))),
        (9, vec![(Server, b"220 ftp.example.org ESMTP\r\n")], Some(("smtp", "content"))),
        (9, vec![(Server, b"220 smtp.example.org FTP server\r\n")], Some(("ftp", "content"))),
        (9, vec![(Client, b"220 FTP server\r\n"), (Server, b"USER a\r\n")], Some(("ftp", "content"))),
        (
            21,
            vec![(Server, b"120 in 5 minutes\r\n220 ready\r\n"), (Client, b"USER a\r\n")],
            Some(("ftp", "content")),
        ),
        (21, vec![(Server, b"421 Too many connections\r\n")], Some(("ftp", "content"))),
        (21, vec![(Server, b"220 ready\r\n"), (Client, b"QUIT\r\n")], Some(("ftp", "port"))),
        (21, vec![(Client, b"USER a\r\n")], Some(("ftp", "port"))),
        (9, vec![(Client, b"USER a\r\n")], None),
        (21, vec![(Client, b"GET / HTTP/1.1\r\n")], None),
        (21, vec![(Server, b"SSH-2.0-x\r\n")], None),
        (21, vec![(Server, b"+OK ready\r\n")], None),
    ] {
        assert_eq!(observe_split(port, &turns, describe).application, application, "{turns:?}");
    }
}

#[test]
fn gaps_and_single_directions_are_parsed() {
    // The reply to EPSV is missing in one run, and a line of the client in another.
    let observed = observe_with_gap::<Set>(21, &DIALOGUE, describe, (10, 3, 20));
    assert!(
        observed
            .reports
            .contains(&"6 RETR of pub/a b.iso, - octets from 1000, over ?: 226 complete true".to_owned()),
        "{observed:?}"
    );
    let observed = observe_with_gap::<Set>(21, &DIALOGUE, describe, (13, 0, 2));
    assert!(observed.reports.contains(&"- 226: Transfer complete.".to_owned()));
    assert!(
        observed.reports.contains(
            &"7 LIST of -, - octets from 1000, over 192.0.2.7 port 40000 opened by client: 226 complete true"
                .to_owned()
        ),
        "{observed:?}"
    );

    let only = |role| DIALOGUE.into_iter().filter(|(from, _)| *from == role).collect::<Vec<_>>();
    let observed = observe_split(21, &only(Client), describe);
    assert_eq!((observed.reports.len(), &observed.reports[1][..]), (16, "0 USER anonymous"));
    let observed = observe_split(21, &only(Server), describe);
    assert!(observed.reports.contains(&"- expects 192.0.2.7 port 40000 opened by client".to_owned()));
}

/// A login without pipelining: each command waits for the reply to the previous one.
const LOGIN: [(Role, &[u8]); 9] = [
    (Server, b"220 FTP server ready\r\n"),
    (Client, b"USER anonymous\r\n"),
    (Server, b"331 Password please\r\n"),
    (Client, b"PASS guest\r\n"),
    (Server, b"230 Welcome\r\n"),
    (Client, b"CWD pub\r\n"),
    (Server, b"250 Okay\r\n"),
    (Client, b"QUIT\r\n"),
    (Server, b"221 Goodbye\r\n"),
];

#[test]
fn only_anonymous_users_state_no_secret() {
    for (command, argument) in [
        ("USER FTP", " guest"),
        ("USER guest", ""),
        ("USER anonymous2", ""),
        ("USER ", ""),
        ("USR bob", ""),
        ("REIN", ""),
    ] {
        let turns = [
            LOGIN[0],
            LOGIN[1],
            (Server, b"530 No anonymous users\r\n"),
            (Client, &[command.as_bytes(), b"\r\n"].concat()),
            LOGIN[2],
            LOGIN[3],
            LOGIN[4],
        ];
        let observed = observe_split(21, &turns, describe);
        let expected = format!("2 PASS{argument} credentials user_pass");
        assert!(observed.reports.contains(&expected), "{command}: {:?}", observed.reports);
    }
}

#[test]
fn a_whole_command_after_a_gap_is_paired_with_its_reply() {
    let rest = ["0 PASS credentials user_pass", "0 230: Welcome", "1 CWD pub", "1 250: Okay"];
    // The gap is reported at once, or after the reply to the missing command.
    for (gap_turn, is_split) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 21, describe);
        for (turn, (from, bytes)) in LOGIN.into_iter().enumerate() {
            if turn != 1 {
                let len = if is_split { 1 } else { bytes.len() };
                bytes.chunks(len).for_each(|piece| dialogue.send_octets(from, piece));
            }
            if turn == gap_turn {
                dialogue.send_gap(Client, LOGIN[1].1.len() as u64);
            }
        }
        let observed = dialogue.finish();
        assert_eq!(
            observed.messages()[1..6],
            [&["- 331: Password please"][..], &rest].concat(),
            "{gap_turn}"
        );
    }
    // Two replies precede the report of the gap: the second one may answer PASS, so that the next reply has no number.
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 21, describe);
    for turn in [0, 2, 4] {
        dialogue.send_octets(LOGIN[turn].0, LOGIN[turn].1);
    }
    dialogue.send_gap(Client, LOGIN[1].1.len() as u64);
    for turn in [3, 5, 6, 7, 8] {
        dialogue.send_octets(LOGIN[turn].0, LOGIN[turn].1);
    }
    assert_eq!(
        dialogue.finish().messages()[1..],
        [
            "- 331: Password please",
            "- 230: Welcome",
            "0 PASS credentials user_pass",
            "1 CWD pub",
            "- 250: Okay",
            "2 QUIT",
            "2 221: Goodbye"
        ]
    );
}

#[test]
fn the_remainder_of_a_line_after_a_gap_is_not_a_command() {
    // The beginning of `PASS list my files` is missing, or all of `CWD` except for a word that begins like a command.
    for (rest, commands) in [
        (&b"my files\r\nNOOP\r\n"[..], &["0 NOOP"][..]),
        (b"quiteso\r\nNOOP\r\n", &["0 NOOP"]),
        (b"RETR.txt\r\nNOOP\r\n", &["0 NOOP"]),
        (b"noop\r\nNOOP\r\n", &["0 noop", "1 NOOP"]),
        (b"pass guest\r\n", &["0 pass credentials user_pass"]),
    ] {
        for len in 1..rest.len() {
            let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 21, describe);
            dialogue.send_octets(Server, LOGIN[0].1);
            dialogue.send_octets(Server, LOGIN[2].1);
            dialogue.send_gap(Client, 20);
            rest.chunks(len).for_each(|piece| dialogue.send_octets(Client, piece));
            assert_eq!(dialogue.finish().messages()[2..], *commands, "{}", rest.escape_ascii());
        }
    }
}

#[test]
fn an_invalid_reply_does_not_end_the_session() {
    let mut turns = LOGIN;
    turns[4].1 = b"230_no_space\r\n";
    let observed = observe_split(21, &turns, describe);
    assert_eq!(
        observed.messages()[3..],
        [
            "1 PASS guest credentials user_pass",
            "1 230 malformed: _no_space",
            "2 CWD pub",
            "2 250: Okay",
            "3 QUIT",
            "3 221: Goodbye"
        ]
    );
    // A line without a code may be the reply or not: the next command is paired with its reply again.
    turns[4].1 = b"Welcome\r\n";
    let observed = observe_split(21, &turns, describe);
    assert_eq!(
        observed.messages()[3..],
        ["1 PASS guest credentials user_pass", "2 CWD pub", "2 250: Okay", "3 QUIT", "3 221: Goodbye"]
    );
    turns[4].1 = b"\x00\x01\n";
    let observed = observe_split(21, &turns, describe);
    assert_eq!(observed.reports.last().map(String::as_str), Some("[ftp stopped: not_a_reply]"));
}

#[test]
fn plaintext_after_auth_tls_is_still_parsed_as_ftp() {
    // This occurs in decrypted captures.
    let turns: [(Role, &[u8]); 7] = [
        (Server, b"220 FTP server ready\r\n"),
        (Client, b"AUTH TLS\r\n"),
        (Server, b"234 Proceed\r\n"),
        (Client, b"PBSZ 0\r\n"),
        (Server, b"200 Okay\r\n"),
        (Client, b"AUTH TLS\r\n"),
        (Server, b"234 Again\r\n"),
    ];
    let observed = observe_split(9, &turns, describe);
    let expected = ["0 AUTH TLS", "0 234: Proceed", "1 PBSZ 0", "1 200: Okay", "2 AUTH TLS", "2 234: Again"];
    assert_eq!(observed.messages()[1..], expected);
    let tls: [(Role, &[u8]); 2] = [(Client, b"\x16\x03\x01\x00\x05hello"), (Server, b"\x16\x03\x03")];
    let observed = observe_split(9, &[&turns[..], &tls].concat(), describe);
    assert_eq!(observed.reports.last().map(String::as_str), Some("[tls by content]"));
}

/// The rest of the long line and the beginning of TLS may be in the same segment.
#[test]
fn tls_is_recognized_after_a_truncated_line() {
    let long = "x".repeat(2000);
    let record = "\x16\x03\x01\0\x05hello";
    let granted = format!("234 {long}\r\n{record}");
    let pipelined = format!("AUTH TLS\r\nNOOP {long}\r\n{record}");
    for turns in [
        [(Server, b"220 FTP\r\n".as_slice()), (Client, b"AUTH TLS\r\n"), (Server, granted.as_bytes())],
        [(Server, b"220 FTP\r\n"), (Client, pipelined.as_bytes()), (Server, b"234 go\r\n200 ok\r\n")],
    ] {
        let observed = observe_split(21, &turns, describe);
        assert_eq!(observed.reports.last().map(String::as_str), Some("[tls by content]"));
    }
}

#[test]
fn memory_is_bounded_for_any_input() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 21, describe);
    dialogue.send_octets(Server, b"220 FTP\r\n");
    for _ in 0..60 {
        dialogue.send_octets(Client, format!("RETR {}\r\n", "x".repeat(2000)).as_bytes());
    }
    let held = dialogue.held_bytes();
    assert!((60_000..100_000).contains(&held), "{held}");
    for _ in 0..60 {
        dialogue.send_octets(Client, format!("RETR {}\r\n", "x".repeat(2000)).as_bytes());
    }
    assert!(dialogue.held_bytes() < 10_000);
    dialogue.send_octets(Server, b"226 done\r\n");
    dialogue.send_octets(Client, b"NOOP\r\n");
    dialogue.send_octets(Server, b"200 ok\r\n");
    assert_eq!(dialogue.finish().reports.last().map(String::as_str), Some("120 200: ok"));
}

#[cfg(feature = "serde")]
#[test]
fn messages_serialize_as_objects() {
    fn json(_: &MessageMeta, observed: Observed<'_>) -> Description {
        let Observed::Ftp(message) = observed else { return Description::Whole(String::new()) };
        Description::Whole(as_json(&message))
    }
    let observed = harness::observe::<Set>(21, &DIALOGUE, json, || 99);
    assert_eq!(
        observed.messages()[3],
        r#"{"message":"command","transaction":1,"verb":"PASS","argument":"someone@example.org","credentials":"user_pass"}"#
    );
    assert_eq!(
        observed.messages()[20],
        r#"{"message":"data_connection","transaction":7,"address":"192.0.2.7","port":40000,"opened_by":"client"}"#
    );
    assert_eq!(
        observed.messages()[17],
        r#"{"message":"transfer","transaction":6,"verb":"RETR","name":"pub/a b.iso","announced_len":73400320,"restart_offset":1000,"data":{"port":41234,"opened_by":"client"},"code":226,"is_complete":true}"#
    );
}

#[test]
fn invalid_commands_are_not_reported_because_they_may_contain_passwords() {
    let turns: [(Role, &[u8]); 5] = [
        (Server, b"220 FTP server ready\r\n"),
        (Client, b"USER bob\r\n"),
        (Server, b"331 Password required\r\n"),
        (Client, b"PSAS HUNTER\r\nxpass HUNTER\r\n"),
        (Server, b"500 What\r\n500 What\r\n"),
    ];
    let observed = observe_split(21, &turns, describe);
    assert!(observed.reports.iter().any(|report| report.contains("bob")), "{observed:?}");
    assert!(!observed.reports.iter().any(|report| report.contains("HUNTER")), "{observed:?}");
}
