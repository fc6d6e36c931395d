//! SMTP and LMTP.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::IpProtocol;
use flowgauge::protocols::smtp::{Message, PROTOCOL, SmtpParser};
use flowgauge::session::{MessageMeta, Protocol, Role};

use crate::harness::{
    self, Description, Dialogue, check_corruptions, check_truncations, observe, observe_in_any_split_after,
    observe_with_gap,
};

use Role::{Client, Server};

static TLS: Protocol = Protocol::new("tls");

flowgauge::protocols! {
    /// SMTP, and TLS by name only.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Observed;
    parsers { Smtp: SmtpParser = &PROTOCOL }
    recognized { &TLS }
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
    let Observed::Smtp(message) = observed;
    if let Message::Content(content) = message {
        return Description::Part(format!("content of {}", content.mail), content.bytes.to_vec());
    }
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or("-".to_owned());
    Description::Whole(match message {
        Message::Greeting(greeting) => format!("{} from {}: {}", greeting.code, greeting.host, greeting.text),
        Message::Command(command) => {
            let mut report = format!("{} {}", command.transaction, command.verb.name());
            for (name, text) in
                [("", command.argument), ("path ", command.address), ("with ", command.parameters)]
            {
                if let Some(text) = text {
                    report += &format!(" {name}{text}");
                }
            }
            report
                + &command.credentials.map(|kind| format!(" credentials {kind}")).unwrap_or_default()
                + if command.is_truncated { " truncated" } else { "" }
        }
        Message::Reply(reply) => {
            let text = reply.text.to_string().replace('\n', "|");
            let malformed = if reply.is_malformed { " malformed" } else { "" };
            format!(
                "{} mail {} {}{malformed}: {text}",
                number(reply.transaction),
                number(reply.mail),
                reply.code
            )
        }
        Message::Mail(mail) => {
            let recipient = |recipient: &flowgauge::protocols::smtp::Recipient| {
                let code = recipient.code.map(u64::from);
                format!("{} {}", recipient.address.escape_ascii(), number(code))
            };
            let recipients: Vec<_> = mail.recipients.iter().map(recipient).collect();
            format!(
                "mail {} from <{}> to [{}] of {}, {} of {} octets, whole {}, accepted {:?} by {}",
                mail.mail,
                mail.reverse_path,
                recipients.join(", "),
                mail.recipient_count,
                mail.content_len,
                number(mail.declared_len),
                mail.is_complete,
                mail.is_accepted,
                number(mail.code.map(u64::from)),
            )
        }
        Message::Gap(gap) => format!("gap in content of {} at {}: {}", gap.mail, gap.offset, gap.len),
        other => format!("{other:?}"),
    })
}

/// RFC 5321 appendix D.1, with an additional dot as required for transparency.
const TYPICAL: [(Role, &[u8]); 17] = [
    (Server, b"220 foo.com Simple Mail Transfer Service Ready\r\n"),
    (Client, b"EHLO bar.com\r\n"),
    (Server, b"250-foo.com greets bar.com\r\n250-8BITMIME\r\n250-SIZE\r\n250 HELP\r\n"),
    (Client, b"MAIL FROM:<Smith@bar.com>\r\n"),
    (Server, b"250 OK\r\n"),
    (Client, b"RCPT TO:<Jones@foo.com>\r\n"),
    (Server, b"250 OK\r\n"),
    (Client, b"RCPT TO:<Green@foo.com>\r\n"),
    (Server, b"550 No such user here\r\n"),
    (Client, b"RCPT TO:<Brown@foo.com>\r\n"),
    (Server, b"250 OK\r\n"),
    (Client, b"DATA\r\n"),
    (Server, b"354 Start mail input; end with <CRLF>.<CRLF>\r\n"),
    (Client, b"Blah blah blah...\r\n..\r\n.etc. etc.\r\n.\r\n"),
    (Server, b"250 OK\r\n"),
    (Client, b"QUIT\r\n"),
    (Server, b"221 foo.com Service closing transmission channel\r\n"),
];

#[test]
fn the_typical_dialogue_of_rfc_5321_is_parsed() {
    let observed = observe_split(9, &TYPICAL, describe);
    assert_eq!(
        observed.reports,
        [
            "[smtp by content]",
            "220 from foo.com: foo.com Simple Mail Transfer Service Ready",
            "0 EHLO bar.com",
            "0 mail - 250: foo.com greets bar.com|8BITMIME|SIZE|HELP",
            "1 MAIL path Smith@bar.com",
            "1 mail 0 250: OK",
            "2 RCPT path Jones@foo.com",
            "2 mail 0 250: OK",
            "3 RCPT path Green@foo.com",
            "3 mail 0 550: No such user here",
            "4 RCPT path Brown@foo.com",
            "4 mail 0 250: OK",
            "5 DATA",
            "5 mail 0 354: Start mail input; end with <CRLF>.<CRLF>",
            r"content of 0: Blah blah blah...\r\n.\r\netc. etc.\r\n",
            "5 mail 0 250: OK",
            // 19, 3 and 11 octets: the leading dots of two lines are not counted.
            "mail 0 from <Smith@bar.com> to [Jones@foo.com 250, Green@foo.com 550, Brown@foo.com 250] of 3, \
             33 of - octets, whole true, accepted Some(true) by 250",
            "6 QUIT",
            "6 mail - 221: foo.com Service closing transmission channel",
        ]
    );
    check_truncations::<Set>(25, &TYPICAL, describe);
    check_corruptions::<Set>(25, &TYPICAL, describe);
}

#[test]
fn pipelined_commands_and_mails_are_paired() {
    // RFC 2920 section 4: groups of commands; the end of the content begins one of the groups.
    let turns: [(Role, &[u8]); 9] = [
        (Server, b"220 innosoft.com SMTP service ready\r\n"),
        (Client, b"EHLO dbc.mtview.ca.us\r\n"),
        (Server, b"250-innosoft.com\r\n250 PIPELINING\r\n"),
        (Client, b"MAIL FROM:<mrose@dbc.mtview.ca.us> SIZE=9 BODY=8BITMIME\r\nRCPT TO:<ned@innosoft.com>\r\nrcpt to: <dan@innosoft.com>\r\nDATA\r\n"),
        (Server, b"250 sender ok\r\n250 recipient ok\r\n451 later\r\n354 enter mail\r\n"),
        (Client, b"a mail.\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<ned@innosoft.com>\r\nDATA\r\n"),
        (Server, b"250 message sent\r\n250 ok\r\n550 5.1.1 gone\r\n554 no valid recipients\r\n"),
        (Client, b"RSET\r\nQUIT\r\n"),
        (Server, b"250 ok\r\n221 bye\r\n"),
    ];
    let observed = observe_split(25, &turns, describe);
    assert_eq!(
        observed.messages()[3..],
        [
            "1 MAIL path mrose@dbc.mtview.ca.us with SIZE=9 BODY=8BITMIME",
            "2 RCPT path ned@innosoft.com",
            "3 RCPT path dan@innosoft.com",
            "4 DATA",
            "1 mail 0 250: sender ok",
            "2 mail 0 250: recipient ok",
            "3 mail 0 451: later",
            "4 mail 0 354: enter mail",
            r"content of 0: a mail.\r\n",
            "5 MAIL path ",
            "6 RCPT path ned@innosoft.com",
            "7 DATA",
            "4 mail 0 250: message sent",
            "mail 0 from <mrose@dbc.mtview.ca.us> to [ned@innosoft.com 250, dan@innosoft.com 451] of 2, \
             9 of 9 octets, whole true, accepted Some(true) by 250",
            "5 mail 1 250: ok",
            "6 mail 1 550: 5.1.1 gone",
            "7 mail 1 554: no valid recipients",
            "mail 1 from <> to [ned@innosoft.com 550] of 1, 0 of - octets, whole false, accepted Some(false) by 554",
            "8 RSET",
            "9 QUIT",
            "8 mail - 250: ok",
            "9 mail - 221: bye",
        ]
    );
}

#[test]
fn bdat_chunks_may_contain_any_octets() {
    // RFC 3030 section 4.2, shortened; a chunk that looks like commands is not parsed as commands.
    let turns: [(Role, &[u8]); 6] = [
        (Server, b"220 cnri.reston.va.us ESMTP\r\n"),
        (Client, b"EHLO ymir\r\nMAIL FROM:<ned@ymir.claremont.edu> BODY=BINARYMIME\r\nRCPT TO:<gvaudre@cnri.reston.va.us>\r\n"),
        (Server, b"250 CHUNKING\r\n250 ok\r\n250 ok\r\n"),
        (Client, b"BDAT 8\r\n\r\n.\r\n\0\r\nBDAT 6 LAST\r\nQUIT\r\nQUIT\r\n"),
        (Server, b"250 8 octets received\r\n"),
        (Server, b"250 Message OK, 14 octets received\r\n221 Goodbye\r\n"),
    ];
    let observed = observe_split(9, &turns, describe);
    assert_eq!(
        observed.messages()[7..],
        [
            "3 BDAT 8",
            r"content of 0: \r\n.\r\n\x00\r\n",
            "4 BDAT 6 LAST",
            r"content of 0: QUIT\r\n",
            "5 QUIT",
            "3 mail 0 250: 8 octets received",
            "4 mail 0 250: Message OK, 14 octets received",
            "mail 0 from <ned@ymir.claremont.edu> to [gvaudre@cnri.reston.va.us 250] of 1, 14 of - octets, whole true, \
             accepted Some(true) by 250",
            "5 mail - 221: Goodbye",
        ]
    );
}

#[test]
fn credentials_are_named_and_never_reported() {
    // RFC 4954 sections 4.2 and 5, and LOGIN as servers implement it.
    let turns: [(Role, &[u8]); 15] = [
        (Server, b"220 smtp.example.com ESMTP server\r\n"),
        (Client, b"EHLO jgm.example.com\r\n"),
        (Server, b"250 AUTH CRAM-MD5 LOGIN PLAIN\r\n"),
        (Client, b"AUTH PLAIN dGVzdAB0ZXN0ADEyMzQ=\r\n"),
        (Server, b"535 5.7.8 Authentication credentials invalid\r\n"),
        (Client, b"auth login\r\n"),
        (Server, b"334 VXNlcm5hbWU6\r\n"),
        (Client, b"dGVzdA==\r\n"),
        (Server, b"334 UGFzc3dvcmQ6\r\n"),
        (Client, b"QUIT\r\n"),
        (Server, b"535 no\r\n"),
        (Client, b"AUTH c2VjcmV0 MAIL\r\nMTIzNA==\r\nc2VjcmV0 c2VjcmV0\r\n"),
        (Server, b"504 what\r\n500 what\r\n500 what\r\n"),
        (Client, b"MTIzNA== dGVzdA==\r\nNOOP\r\n"),
        (Server, b"500 what\r\n250 ok\r\n"),
    ];
    let observed = observe_split(25, &turns, describe);
    assert_eq!(
        observed.messages()[3..],
        [
            "1 AUTH PLAIN credentials plain",
            "1 mail - 535: ",
            "2 AUTH login credentials login",
            "2 mail - 334: VXNlcm5hbWU6",
            "2 mail - 334: UGFzc3dvcmQ6",
            "2 mail - 535: ",
            "3 AUTH credentials other",
            "3 mail - 504: ",
            "- mail - 500: ",
            "- mail - 500: ",
            "4 other",
            "5 NOOP",
            "4 mail - 500: ",
            "5 mail - 250: ok",
        ]
    );
    let all = observed.reports.concat();
    for secret in ["dGVzdA", "MTIzNA", "c2VjcmV0"] {
        assert!(!all.contains(secret), "{secret}");
    }
}

#[test]
fn an_accepted_starttls_hands_over_to_tls() {
    let turns: [(Role, &[u8]); 7] = [
        (Server, b"220-mail.imc.org\r\n220 ESMTP\r\n"),
        (Client, b"EHLO mail.example.com\r\n"),
        (Server, b"250 STARTTLS\r\n"),
        (Client, b"STARTTLS\r\n"),
        (Server, b"220 Go ahead\r\n"),
        (Client, b"\x16\x03\x01\x00\x05hello"),
        (Server, b"\x16\x03\x03\x00\x05hello"),
    ];
    let observed = observe_split(9, &turns, describe);
    let expected = ["1 STARTTLS", "1 mail - 220: Go ahead", "[tls by content]"];
    assert_eq!(observed.reports[4..], expected);
    assert_eq!(observed.application, Some(("smtp", "content")));

    // The reply is late or missing, or only one direction was captured.
    let mut swapped = turns;
    swapped.swap(4, 5);
    assert_eq!(observe_split(9, &swapped, describe).reports[4..], expected);
    let observed = observe_with_gap::<Set>(9, &turns, describe, (4, 0, 14));
    assert_eq!(observed.reports[4..], [expected[0], expected[2]]);
    let only = |role| turns.into_iter().filter(|(from, _)| *from == role).collect::<Vec<_>>();
    let observed = observe_split(25, &only(Client), describe);
    assert_eq!(
        observed.reports,
        ["[smtp by content]", "0 EHLO mail.example.com", "1 STARTTLS", "[tls by content]"]
    );
    let observed = observe_split(25, &only(Server), describe);
    assert_eq!(
        observed.reports[2..],
        ["- mail - 250: STARTTLS", "- mail - 220: Go ahead", "[tls by content]"]
    );

    // If STARTTLS is rejected, the dialogue continues in plaintext.
    let refused: [(Role, &[u8]); 4] = [
        (Client, b"EHLO a\r\n"),
        (Client, b"STARTTLS\r\n"),
        (Server, b"220 a\r\n250 a\r\n454 not now\r\n"),
        (Client, b"QUIT\r\n"),
    ];
    let observed = observe_split(25, &refused, describe);
    assert_eq!(observed.reports.last().map(String::as_str), Some("2 QUIT"));
}

#[test]
fn lmtp_has_a_reply_for_each_recipient() {
    // RFC 2033 section 4.2.
    let turns: [(Role, &[u8]); 5] = [
        (Server, b"220 foo.edu LMTP server ready\r\n"),
        (Client, b"LHLO foo.edu\r\nMAIL FROM:<chris@bar.com>\r\nRCPT TO:<pat@foo.edu>\r\nRCPT TO:<jones@foo.edu>\r\nRCPT TO:<green@foo.edu>\r\nDATA\r\n"),
        (Server, b"250-foo.edu\r\n250 SIZE\r\n250 OK\r\n250 OK\r\n550 No such user here\r\n250 OK\r\n354 Start mail input\r\n"),
        (Client, b"Blah blah blah...\r\n.\r\nQUIT\r\n"),
        (Server, b"452 <pat@foo.edu> is temporarily over quota\r\n250 <green@foo.edu> OK\r\n221 foo.edu closing connection\r\n"),
    ];
    let observed = observe_split(9, &turns, describe);
    assert_eq!(
        observed.messages()[13..],
        [
            r"content of 0: Blah blah blah...\r\n",
            "6 QUIT",
            "5 mail 0 452: <pat@foo.edu> is temporarily over quota",
            "5 mail 0 250: <green@foo.edu> OK",
            "mail 0 from <chris@bar.com> to [pat@foo.edu 452, jones@foo.edu 550, green@foo.edu 250] of 3, 19 of - octets, \
             whole true, accepted Some(true) by 250",
            "6 mail - 221: foo.edu closing connection",
        ]
    );
}

#[test]
fn gaps_in_commands_replies_and_content_are_tolerated() {
    let mail = |observed: &harness::Observed| {
        assert!(!observed.reports.iter().any(|report| report.contains("stopped")), "{observed:?}");
        observed.reports.iter().find(|report| report.starts_with("mail ")).cloned().unwrap_or_default()
    };
    // A RCPT is missing, so that its reply has no number; replies are paired again from the next turn.
    let observed = observe_with_gap::<Set>(25, &TYPICAL, describe, (5, 3, 10));
    assert_eq!(
        observed.messages()[5..8],
        ["- mail - 250: OK", "2 RCPT path Green@foo.com", "2 mail 0 550: No such user here"]
    );
    assert_eq!(
        mail(&observed),
        "mail 0 from <Smith@bar.com> to [Green@foo.com 550, Brown@foo.com 250] of 2, 33 of - octets, whole false, \
         accepted Some(true) by 250"
    );
    // A reply is missing.
    let observed = observe_with_gap::<Set>(25, &TYPICAL, describe, (8, 0, 23));
    assert!(
        mail(&observed).contains("[Jones@foo.com 250, Green@foo.com -, Brown@foo.com 250]"),
        "{observed:?}"
    );
    // Part of the content is missing, and in the second run also its end: the reply of the server determines
    // acceptance.
    let observed = observe_with_gap::<Set>(25, &TYPICAL, describe, (13, 5, 10));
    assert!(
        mail(&observed).contains("33 of - octets, whole false, accepted Some(true) by 250"),
        "{observed:?}"
    );
    let content = |observed: &harness::Observed| {
        let mut reports = observed.reports.clone();
        reports.retain(|report| report.contains("content of"));
        reports
    };
    let gap = "gap in content of 0 at 5: 10";
    assert_eq!(content(&observed), ["content of 0: Blah ", gap, r"content of 0: ..\r\n.\r\netc. etc.\r\n"]);
    let observed = observe_with_gap::<Set>(25, &TYPICAL, describe, (13, 19, 19));
    assert!(
        mail(&observed).contains("38 of - octets, whole false, accepted Some(true) by 250"),
        "{observed:?}"
    );
    assert_eq!(
        observed.messages()[17..],
        ["6 QUIT", "6 mail - 221: foo.com Service closing transmission channel"]
    );
}

#[test]
fn a_whole_command_after_a_gap_is_reported() {
    // EHLO is missing; its reply arrives before the gap is reported, or after.
    for gap_turn in [1, 2] {
        let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 25, describe);
        for (turn, (from, bytes)) in TYPICAL.into_iter().enumerate() {
            if turn != 1 {
                dialogue.send_octets(from, bytes);
            }
            if turn == gap_turn {
                dialogue.send_gap(Client, TYPICAL[1].1.len() as u64);
            }
        }
        let observed = dialogue.finish();
        let expected = ["0 MAIL path Smith@bar.com", "0 mail 0 250: OK", "1 RCPT path Jones@foo.com"];
        assert_eq!(observed.messages()[2..5], expected, "{gap_turn}");
    }
    // DATA is missing: the following octets are content, even if they look like commands.
    let mut turns = TYPICAL;
    turns[13].1 = b"Help me\r\nQUIT\r\n.\r\n";
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 25, describe);
    for (turn, (from, bytes)) in turns.into_iter().enumerate() {
        match turn {
            11 => {}
            13 => {
                dialogue.send_gap(Client, turns[11].1.len() as u64);
                dialogue.send_octets(from, bytes);
            }
            _ => dialogue.send_octets(from, bytes),
        }
    }
    let observed = dialogue.finish();
    assert_eq!(
        observed.messages()[11..],
        [
            "- mail - 354: Start mail input; end with <CRLF>.<CRLF>",
            "gap in content of 0 at 0: 0",
            r"content of 0: Help me\r\nQUIT\r\n",
            "- mail - 250: OK",
            "5 QUIT",
            "5 mail - 221: foo.com Service closing transmission channel",
            "mail 0 from <Smith@bar.com> to [Jones@foo.com 250, Green@foo.com 550, Brown@foo.com 250] of 3, \
             15 of - octets, whole false, accepted None by -",
        ]
    );
}

#[test]
fn an_invalid_reply_does_not_end_the_session() {
    let mut turns = TYPICAL;
    turns[2].1 = b"250-foo.com greets bar.com\r\nwelcome\r\n250 HELP\r\n";
    turns[4].1 = b"250OK\r\n";
    turns[6].1 = b"fine\r\n";
    let observed = observe_split(25, &turns, describe);
    assert_eq!(
        observed.messages()[2..9],
        [
            "0 mail - 250 malformed: foo.com greets bar.com|welcome|HELP",
            "1 MAIL path Smith@bar.com",
            "1 mail 0 250 malformed: OK",
            "2 RCPT path Jones@foo.com",
            "3 RCPT path Green@foo.com",
            "3 mail 0 550: No such user here",
            "4 RCPT path Brown@foo.com",
        ]
    );
    assert!(!observed.reports.iter().any(|report| report.contains("stopped")), "{observed:?}");
}

#[test]
fn plaintext_after_starttls_is_still_parsed_as_smtp() {
    // This occurs in decrypted captures: the client sends EHLO again (RFC 3207 section 4.2).
    let start: [(Role, &[u8]); 5] = [
        (Server, b"220 mail.imc.org ESMTP\r\n"),
        (Client, b"EHLO mail.example.com\r\n"),
        (Server, b"250 STARTTLS\r\n"),
        (Client, b"STARTTLS\r\n"),
        (Server, b"220 Go ahead\r\n"),
    ];
    let observed = observe_split(9, &[&start[..], &TYPICAL[1..]].concat(), describe);
    assert_eq!(
        observed.messages()[3..8],
        [
            "1 STARTTLS",
            "1 mail - 220: Go ahead",
            "2 EHLO bar.com",
            "2 mail - 250: foo.com greets bar.com|8BITMIME|SIZE|HELP",
            "3 MAIL path Smith@bar.com",
        ]
    );
    assert_eq!(observed.application, Some(("smtp", "content")));
    assert!(
        observed.messages().iter().any(|report| report.contains("33 of - octets, whole true")),
        "{observed:?}"
    );
    assert!(!observed.reports.iter().any(|report| report.starts_with("[tls")), "{observed:?}");
}

#[test]
fn a_single_direction_is_parsed() {
    let only = |role| TYPICAL.into_iter().filter(|(from, _)| *from == role).collect::<Vec<_>>();
    let observed = observe_split(9, &only(Client), describe);
    assert_eq!(
        observed.messages()[5..],
        [
            "5 DATA",
            r"content of 0: Blah blah blah...\r\n.\r\netc. etc.\r\n",
            "6 QUIT",
            "mail 0 from <Smith@bar.com> to [Jones@foo.com -, Green@foo.com -, Brown@foo.com -] of 3, 33 of - octets, \
             whole true, accepted None by -",
        ]
    );
    let observed = observe_split(25, &only(Server), describe);
    assert_eq!(observed.messages().len(), 9);
    assert_eq!(observed.messages()[6], "- mail - 354: Start mail input; end with <CRLF>.<CRLF>");
    // A dialogue captured from the middle, and one in which the server appears as the initiator.
    let observed = observe_split(25, &TYPICAL[4..], describe);
    assert_eq!(
        (observed.application, observed.messages()[0]),
        (Some(("smtp", "content")), "- mail - 250: OK")
    );
    let reversed: Vec<_> = TYPICAL.iter().map(|(from, bytes)| (from.other(), *bytes)).collect();
    let observed = observe_split(9, &reversed, describe);
    assert_eq!(observed.messages().len(), 18);
}

#[test]
fn unusual_clients_and_servers_are_handled() {
    let turns: [(Role, &[u8]); 5] = [
        (Server, b"220 a ESMTP\n"),
        (Client, b"HELO a\nMAIL FROM: b@c\nRCPT TO:d@e\nDATA\n"),
        (Server, b"250 a\n250 b\n250 c\n354 go\n"),
        (Client, b"text\n.\n\x00\n"),
        (Server, b"250 ok\n"),
    ];
    let observed = observe_split(9, &turns, describe);
    assert!(observed.reports.contains(&"[smtp stopped: not_a_command]".to_owned()));

    let refusal: [(Role, &[u8]); 2] = [(Server, b"554 no service here\r\n"), (Client, b"QUIT\r\n")];
    let observed = observe_split(25, &refusal, describe);
    assert_eq!(observed.reports[1..], ["554 from no: no service here", "0 QUIT"]);

    let long = [b"NOOP ".as_slice(), &[b'x'; 5000], b"\r\nQUIT\r\n"].concat();
    let turns: [(Role, &[u8]); 2] = [(Server, b"220 a SMTP\r\n"), (Client, &long)];
    let observed = observe_split(25, &turns, describe);
    assert!(observed.messages()[1].ends_with("xxx truncated") && observed.messages()[1].len() < 2100);
    assert_eq!(observed.messages()[2], "1 QUIT");
}

#[test]
fn memory_is_bounded_for_any_input() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 25, describe);
    dialogue.send_octets(Server, b"220 a ESMTP\r\n");
    dialogue.send_octets(Client, b"EHLO a\r\n");
    for mail in 0..50 {
        dialogue.send_octets(Client, format!("MAIL FROM:<{mail}@{}>\r\n", "x".repeat(1500)).as_bytes());
        for position in 0..200 {
            dialogue.send_octets(Client, format!("RCPT TO:<{position}@{}>\r\n", "y".repeat(1500)).as_bytes());
        }
        dialogue.send_octets(Client, b"BDAT 4 LAST\r\nbody");
    }
    // Four mails with 128 recipients of 512 octets, and the queue.
    assert!(dialogue.held_bytes() < 5 * 128 * 600 + 64 * 1024, "{}", dialogue.held_bytes());
    let observed = dialogue.finish();
    let mails: Vec<_> = observed.reports.iter().filter(|report| report.starts_with("mail ")).collect();
    assert_eq!(mails.len(), 50);
    assert!(mails[49].contains("of 200, 4 of - octets"));
}

#[test]
fn other_protocols_are_not_recognized() {
    for (port, turns) in [
        (25, vec![(Server, b"220 (vsFTPd 3.0.3)\r\n".as_slice())]),
        (2121, vec![(Server, b"220 ftp.example.org\r\n"), (Client, b"USER a\r\n")]),
        (25, vec![(Client, b"GET / HTTP/1.1\r\n")]),
        (25, vec![(Client, b"\x16\x03\x01\x02\0")]),
        (9, vec![(Server, b"220 Welcome\r\n"), (Client, b"AUTH TLS\r\n")]),
        (9, vec![(Server, b"250 OK\r\n")]),
        (9, vec![(Client, b"HELP\r\n")]),
        (25, vec![(Server, b"+OK POP3\r\n")]),
    ] {
        assert_eq!(observe::<Set>(port, &turns, describe, || 99).application, None, "{turns:?}");
    }
    // The port decides if the content does not contradict it.
    let turns: [(Role, &[u8]); 2] = [(Server, b"220 Welcome\r\n"), (Client, b"QUIT\r\n")];
    assert_eq!(observe::<Set>(25, &turns, describe, || 99).application, Some(("smtp", "port")));
}

#[cfg(feature = "serde")]
#[test]
fn messages_serialize_as_objects() {
    fn json(_: &MessageMeta, observed: Observed<'_>) -> Description {
        let Observed::Smtp(message) = observed;
        Description::Whole(as_json(&message))
    }
    let observed = observe::<Set>(25, &TYPICAL, json, || 99);
    assert_eq!(
        observed.messages()[3],
        r#"{"message":"command","transaction":1,"mail":0,"verb":"MAIL","address":"Smith@bar.com"}"#
    );
    assert_eq!(
        observed.messages()[4],
        r#"{"message":"reply","transaction":1,"mail":0,"code":250,"text":"OK"}"#
    );
    // The dot that is added to the second line ends the first piece.
    let content = observed.messages()[13..16].join("");
    assert!(content.starts_with(r#"{"message":"content","mail":0,"offset":0,"#), "{content}");
    assert!(content.ends_with(r#"{"message":"content","mail":0,"offset":22,"len":11}"#), "{content}");
    assert_eq!(
        *observed.messages().iter().find(|message| message.contains(r#""message":"mail""#)).expect("a mail"),
        r#"{"message":"mail","mail":0,"reverse_path":"Smith@bar.com","recipients":[{"address":"Jones@foo.com","code":250},{"address":"Green@foo.com","code":550},{"address":"Brown@foo.com","code":250}],"recipient_count":3,"content_len":33,"is_complete":true,"code":250,"is_accepted":true}"#
    );
}
