//! SMTP and FTP: typical sessions, and large numbers of commands.

use flowgauge::session::Role::{Client, Server};

use super::feed::{Case, Expected, Input, filled};

/// A mail as sent by a program without pipelining.
const MAIL: [(&str, &str); 4] = [
    ("MAIL FROM:<alice@example.org> SIZE=800\r\n", "250 2.1.0 Ok\r\n"),
    ("RCPT TO:<bob@example.net>\r\n", "250 2.1.5 Ok\r\n"),
    ("DATA\r\n", "354 End data with <CR><LF>.<CR><LF>\r\n"),
    (
        "Subject: greetings\r\nFrom: alice@example.org\r\nTo: bob@example.net\r\n\r\nHello Bob,\r\n\r\n\
         this is the text of a mail that has some lines,\r\nas most of them have.\r\n\r\nAlice\r\n.\r\n",
        "250 2.0.0 Ok: queued as 4F2A91C0\r\n",
    ),
];

fn greeted() -> Input {
    let mut input = Input::tcp(25);
    input.send(Server, b"220 mail.example.net ESMTP Postfix\r\n");
    input.send(Client, b"EHLO client.example.org\r\n");
    input.send(Server, b"250-mail.example.net\r\n250-PIPELINING\r\n250-SIZE 10240000\r\n250 8BITMIME\r\n");
    input
}

fn mails(packet_len: usize) -> Input {
    filled(greeted(), |input, _| {
        for (command, reply) in MAIL {
            input.send_in(packet_len, Client, command.as_bytes());
            input.send_in(packet_len, Server, reply.as_bytes());
        }
    })
}

pub(crate) fn benign_smtp() -> Case {
    (mails(1460), Expected::messages(500))
}

/// The same mails with one octet per segment.
pub(crate) fn smtp_by_octets() -> Case {
    (mails(1), Expected::messages(20))
}

/// NOOP commands and their replies, as many as fit in each segment.
pub(crate) fn noops() -> Case {
    let input = filled(greeted(), |input, _| {
        input.send(Client, &b"NOOP\r\n".repeat(180));
        input.send(Server, &b"250 Ok\r\n".repeat(180));
    });
    (input, Expected::messages(100))
}

/// The same with different commands.
pub(crate) fn small_commands() -> Case {
    let input = filled(greeted(), |input, round| {
        let commands: String =
            (0..200).map(|position| format!("VRFY {}\r\n", (round + position) % 10)).collect();
        input.send(Client, commands.as_bytes());
        input.send(Server, &b"252 \r\n".repeat(200));
    });
    (input, Expected::messages(100))
}

/// Commands while many recipients are pending.
pub(crate) fn many_recipients() -> Case {
    let mut input = greeted();
    for _ in 0..4 {
        input.send(
            Client,
            &[&b"MAIL FROM:<>\r\n"[..], &b"RCPT TO:<a>\r\n".repeat(128), b"BDAT 1 LAST\r\nx"].concat(),
        );
    }
    let input = filled(input, |input, _| input.send(Client, &b"NOOP\r\n".repeat(240)));
    (input, Expected::messages(500))
}

/// Replies to DATA without a DATA command while many commands are pending.
pub(crate) fn replies_to_no_data() -> Case {
    let input = filled(greeted(), |input, _| {
        input.send(Client, &b"NOOP\r\n".repeat(240));
        input.send(Client, &b"NOOP\r\n".repeat(240));
        input.send(Server, &b"354\r\n".repeat(292));
        input.send(Server, &b"354\r\n".repeat(188));
    });
    (input, Expected::messages(100))
}

/// A line that arrives octet by octet after it has almost reached its maximum length.
pub(crate) fn line_by_octets() -> Case {
    let input = filled(greeted(), |input, _| {
        input.send(Client, &[&b"HELP "[..], &[b'a'; 1700]].concat());
        input.send_in(1, Client, &[b'a'; 300]);
        input.send(Client, b"\r\n");
    });
    (input, Expected::messages(6))
}

/// A reply of lines without text.
pub(crate) fn empty_lines() -> Case {
    let lines = b"250-\r\n".repeat(10_000);
    (filled(greeted(), |input, _| input.send(Server, &lines)), Expected::messages(3))
}

fn logged_in() -> Input {
    let mut input = Input::tcp(21);
    input.send(Server, b"220 (vsFTPd 3.0.3)\r\n");
    for (command, reply) in [
        ("USER alice\r\n", "331 Please specify the password.\r\n"),
        ("PASS example\r\n", "230 Login successful.\r\n"),
        ("TYPE I\r\n", "200 Switching to Binary mode.\r\n"),
    ] {
        input.send(Client, command.as_bytes());
        input.send(Server, reply.as_bytes());
    }
    input
}

fn downloads(packet_len: usize) -> Input {
    filled(logged_in(), |input, round| {
        for (command, reply) in [
            ("PASV\r\n".to_owned(), "227 Entering Passive Mode (192,0,2,1,156,64).\r\n".to_owned()),
            (
                format!("RETR pub/releases/file-{round}.tar.gz\r\n"),
                format!("150 Opening BINARY mode data connection for file-{round}.tar.gz (12345 bytes).\r\n"),
            ),
            (String::new(), "226 Transfer complete.\r\n".to_owned()),
        ] {
            input.send_in(packet_len, Client, command.as_bytes());
            input.send_in(packet_len, Server, reply.as_bytes());
        }
    })
}

pub(crate) fn benign_ftp() -> Case {
    (downloads(1460), Expected::messages(500))
}

/// The same downloads with one octet per segment.
pub(crate) fn ftp_by_octets() -> Case {
    (downloads(1), Expected::messages(20))
}

/// NOOP commands, as many as fit in each segment.
pub(crate) fn ftp_noops() -> Case {
    let input = filled(logged_in(), |input, _| {
        input.send(Client, &b"NOOP\r\n".repeat(220));
        input.send(Server, &b"200\r\n".repeat(220));
    });
    (input, Expected::messages(100))
}

/// Replies with many possible addresses of a data connection.
pub(crate) fn ftp_numbers() -> Case {
    let reply = format!("227 {}\r\n", "1,2,3,4,5,".repeat(100));
    (filled(logged_in(), |input, _| input.send(Server, reply.as_bytes())), Expected::messages(40))
}
