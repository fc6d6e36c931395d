//! Comparison of SSH, SMTP and FTP messages with tshark: identification lines, HASSH, commands and reply codes.

use std::path::Path;
use std::process::Command;

use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::{ftp, smtp, ssh};
use flowgauge::session::MessageMeta;
use flowgauge::tracker::Flow;

use super::corpus;
use super::support::run_without_timeouts;

flowgauge::protocols! {
    /// The parsers of SSH, SMTP and FTP.
    #[derive(Debug)]
    enum Set;
    /// Their messages.
    #[derive(Debug)]
    enum Observed;
    parsers {
        Ssh: ssh::SshParser = &ssh::PROTOCOL,
        Smtp: smtp::SmtpParser = &smtp::PROTOCOL,
        Ftp: ftp::FtpParser = &ftp::PROTOCOL,
    }
}

/// The captures in which tshark finds SSH, SMTP or FTP.
const CAPTURES: [&str; 12] = [
    "Malcolm-Test-Artifacts/protocols/STUN.pcap",
    "community-id-spec/ipv6.pcap",
    "nDPI/ftp.pcap",
    "nDPI/fuzz-2006-06-26-2594.pcap",
    "nDPI/smtp.pcap",
    "nDPI/ssh.pcap",
    "snabb/src/program/ipfix/tests/sanitized4k.pcap",
    "tcpdump/mptcp-v0.pcap",
    "tcptrace/linux_cooked_socket.dmp",
    "tcptrace/ppp_encap.dmp",
    "zeek/ftp/ftp-password-pass-command.pcap",
    "zeek/smtp.pcap",
];

/// Differences, with `+` for those of flowgauge and `-` for those of tshark, and the reason.
const LISTED: &[(&str, &[&str], &str)] = &[(
    "nDPI/fuzz-2006-06-26-2594.pcap",
    &["+ftp 221", "+ftp QUIT", "-ftp RETR"],
    "flipped bits: tshark regards QUIT and its reply as retransmissions; flowgauge rejects a NUL in a command",
)];

#[derive(Default)]
struct Collect(Vec<String>);

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Set>;

    fn message(&mut self, _: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Observed<'_>) {
        let line = match message {
            Observed::Ssh(ssh::Message::Identification(id)) => {
                let comments = id.comments.map(|comments| format!(" {comments}")).unwrap_or_default();
                format!("SSH-{}-{}{comments}", id.protocol_version, id.software_version)
            }
            Observed::Ssh(ssh::Message::KexInit(key_exchange)) => {
                format!("{} {}", key_exchange.from.name(), key_exchange.hassh_hex())
            }
            Observed::Smtp(smtp::Message::Greeting(greeting)) => greeting.code.to_string(),
            Observed::Smtp(smtp::Message::Command(command)) => command.verb.name().to_owned(),
            Observed::Smtp(smtp::Message::Reply(reply)) => reply.code.to_string(),
            Observed::Ftp(ftp::Message::Greeting(greeting)) => greeting.code.to_string(),
            Observed::Ftp(ftp::Message::Command(command)) => command.verb.to_string(),
            Observed::Ftp(ftp::Message::Reply(reply)) => reply.code.to_string(),
            _ => return,
        };
        self.0.push(format!("{} {line}", meta.protocol));
    }
}

fn ours(path: &Path) -> Vec<String> {
    let mut collect = run_without_timeouts(path, Collect::default());
    collect.0.sort();
    collect.0
}

/// Returns the same lines from tshark's fields, or `None` if it is not installed.
fn theirs(path: &Path) -> Option<Vec<String>> {
    const FIELDS: [(&str, &str); 7] = [
        ("ssh.protocol", "ssh "),
        ("ssh.kex.hassh", "ssh client "),
        ("ssh.kex.hasshserver", "ssh server "),
        ("smtp.req.command", "smtp "),
        ("smtp.response.code", "smtp "),
        ("ftp.request.command", "ftp "),
        ("ftp.response.code", "ftp "),
    ];
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "tcp.reassemble_out_of_order:TRUE", "-E", "aggregator=;", "-T", "fields"]);
    // One of the captures has SSH on this port.
    command.args(["-d", "tcp.port==8000,ssh"]);
    command.args(["-Y", "ssh or smtp or ftp", "-r"]).arg(path);
    for (field, _) in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = Vec::new();
    for line in text.lines() {
        for ((_, prefix), values) in FIELDS.iter().zip(line.split('\t')) {
            let values = values.split(';').filter(|value| !value.is_empty());
            let value =
                |value: &str| if *prefix == "smtp " { value.to_uppercase() } else { value.to_owned() };
            lines.extend(values.map(|text| format!("{prefix}{}", value(text))));
        }
    }
    lines.sort();
    Some(lines)
}

/// Returns the lines of only one of two sorted lists, with `+` for the first list and `-` for the second.
fn differences(own: &[String], other: &[String]) -> Vec<String> {
    let (mut own, mut other) = (own.iter().peekable(), other.iter().peekable());
    let mut found = Vec::new();
    loop {
        match (own.peek(), other.peek()) {
            (Some(a), Some(b)) if a == b => {
                own.next();
                other.next();
            }
            (Some(a), b) if b.is_none_or(|b| a < b) => {
                found.extend(own.next().map(|line| format!("+{line}")))
            }
            (_, Some(_)) => found.extend(other.next().map(|line| format!("-{line}"))),
            _ => return found,
        }
    }
}

#[test]
fn ssh_smtp_and_ftp_messages_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_count, mut failures) = (0, Vec::new());
    for name in CAPTURES {
        let capture = captures.iter().find(|capture| capture.name == name).expect("a capture of the corpus");
        let own = ours(&capture.path());
        let Some(other) = theirs(&capture.path()) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let found = differences(&own, &other);
        let listed = LISTED.iter().find(|entry| entry.0 == name).map_or(&[][..], |entry| entry.1);
        equal_count += own.len() - found.iter().filter(|line| line.starts_with('+')).count();
        if found != listed {
            failures.push(format!("{name}: {found:#?}"));
        }
    }
    for (name, _, why) in LISTED {
        println!("{name}: {why}");
    }
    println!("{equal_count} lines, hashes, commands and codes equal");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(equal_count > 150, "{equal_count}");
}
