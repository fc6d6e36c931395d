//! Comparison of messages with the rows of Zeek's `http.log`, `dns.log`, `ftp.log`, `smtp.log` and `files.log`, and
//! with its SMTP events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha1::{Digest as _, Sha1};

use super::corpus;
use super::messages::{self, Observed};
use super::zeek::{Row, rows};

/// The reason for which a row differs from the messages. `docs/compare.md` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The row contains a password, or the reply to a wrong password, which may repeat it. flowgauge reports neither.
    Credentials,
    /// Zeek examines UDP on any port if the content resembles Teredo. In flowgauge the port decides.
    ByContent,
    /// Zeek counts the line end before the delimiter behind a part in quoted-printable. It belongs to the delimiter
    /// (RFC 2046 section 5.1.1).
    MailContent,
    /// Zeek takes AA and RA only from answers, and the response has none.
    NoAnswers,
    /// The dot that ends a mail is a command in Zeek's events. flowgauge reports the end in the summary of the mail.
    EndOfContent,
}

/// A log, the reason, and the rows that differ: their numbers and the differences.
type Differing = (&'static str, Class, &'static [(usize, &'static str)]);

const DIFFERING: &[Differing] = &[
    ("core.tunnels.gre-pptp/dns.log", Class::NoAnswers, &[(1, "RA \"T\", Zeek \"F\"")]),
    (
        "scripts.base.protocols.ftp.ftp-password-pass-command-hidden/ftp.log",
        Class::Credentials,
        &[(2, "reply_msg \"\", Zeek \"Login incorrect.\"")],
    ),
    (
        "scripts.base.protocols.ftp.ftp-password-pass-command/ftp.log",
        Class::Credentials,
        &[(2, "arg \"<hidden>\", Zeek \"qwerty\"; reply_msg \"\", Zeek \"Login incorrect.\"")],
    ),
    (
        "scripts.policy.misc.dump-events/smtp-events.log",
        Class::Credentials,
        &[(13, "an AUTH response"), (15, "an AUTH response")],
    ),
    (
        "scripts.policy.misc.dump-events/smtp-events.log",
        Class::EndOfContent,
        &[(23, "the end of content"), (43, "the end of content")],
    ),
    (
        "scripts.base.protocols.smtp.attachment/files.log",
        Class::MailContent,
        &[(2, "seen_bytes \"1866\", Zeek \"1868\""), (3, "seen_bytes \"10807\", Zeek \"10809\"")],
    ),
    (
        "scripts.base.protocols.smtp.rfc822-msg-file-analysis-multi-session/files.cut",
        Class::MailContent,
        &[(2, "seen_bytes \"1866\", Zeek \"1868\""), (3, "seen_bytes \"10807\", Zeek \"10809\"")],
    ),
    ("core.tunnels.teredo/http.log", Class::ByContent, &[(2, MISSING), (3, MISSING)]),
];

/// The difference of a row without a corresponding message.
const MISSING: &str = "no such message";

/// A function that returns the difference of each row of a log from the messages, which is empty if they agree.
type Comparison = fn(&Path, &[Observed]) -> Vec<String>;

/// Returns the comparison for a log with this name.
fn comparison(name: &str) -> Option<Comparison> {
    match name {
        "http.log" => Some(|path, observed| by_rows(path, observed, http)),
        "dns.log" | "dns.log.cut" => Some(|path, observed| by_rows(path, observed, dns)),
        "ftp.log" => Some(|path, observed| by_rows(path, observed, ftp)),
        "smtp.log" => Some(|path, observed| by_rows(path, observed, smtp)),
        "files.log" | "files.cut" => Some(files),
        "smtp-events.log" => Some(smtp_events),
        _ => None,
    }
}

/// The differences of one row, which are empty if all values that both have agree.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    /// Compares a column if the log has it. A value that Zeek omits must be missing in flowgauge too.
    fn compare(&mut self, row: &Row, name: &str, own: Option<String>) {
        if !row.has(name) {
            return;
        }
        // Zeek writes the second for a response without a reason.
        let is_empty = |text: &str| matches!(text, "(empty)" | "<empty>");
        let expected = row.get(name).map(|text| if is_empty(text) { "" } else { text });
        if own.as_deref() != expected {
            let shown = |value: Option<&str>| value.map_or("none".to_owned(), |text| format!("{text:?}"));
            self.0.push(format!("{name} {}, Zeek {}", shown(own.as_deref()), shown(expected)));
        }
    }
}

type OfRow = fn(&Row, &[&Observed], &mut Differences);

/// Compares each row with the messages of its flow.
fn by_rows(path: &Path, observed: &[Observed], compare: OfRow) -> Vec<String> {
    let is_of = |row: &Row, message: &&Observed| {
        ["orig", "resp"].into_iter().zip(message.ends()).all(|(name, (address, port))| {
            let (wanted_address, wanted_port) = row.end(name);
            wanted_address == Some(address) && wanted_port.is_none_or(|expected| expected == port)
        })
    };
    let of_row = |row: &Row| {
        let flow: Vec<&Observed> = observed.iter().filter(|message| is_of(row, message)).collect();
        let mut differences = Differences::default();
        match flow.is_empty() {
            true => differences.0.push(MISSING.to_owned()),
            false => compare(row, &flow, &mut differences),
        }
        differences.0.join("; ")
    };
    rows(path).iter().map(of_row).collect()
}

/// Returns the first message of a kind that a side sent in an exchange.
fn find<'a>(flow: &[&'a Observed], from: &str, kind: &str, transaction: u64) -> Option<&'a Observed> {
    let is_wanted = |observed: &&&Observed| {
        observed.from.name() == from
            && observed.is(kind)
            && observed.number("transaction") == Some(transaction)
    };
    flow.iter().find(is_wanted).copied()
}

fn http(row: &Row, flow: &[&Observed], differences: &mut Differences) {
    let transaction = row.number("trans_depth").expect("a number") - 1;
    let of = |from, kind| find(flow, from, kind, transaction);
    let request = of("client", "request");
    let response = of("server", "response");
    for (name, message, key) in [
        ("method", request, "method"),
        ("host", request, "host"),
        ("referrer", request, "referer"),
        // The version of the response, if there is one.
        ("version", response.or(request), "version"),
        ("user_agent", request, "user_agent"),
        ("request_body_len", of("client", "end"), "body_len"),
        ("status_code", response, "status"),
        ("status_msg", response, "reason"),
    ] {
        differences.compare(row, name, message.and_then(|message| message.text(key)));
    }
    let target = request.and_then(|request| request.text("target"));
    differences.compare(row, "uri", target.map(|target| unescaped(&target)));
    let body_len = messages::decoded_len(response, of("server", "end"));
    differences.compare(row, "response_body_len", body_len.map(|len| len.to_string()));
}

/// Returns a URI without percent-encoding, which is Zeek's notation.
fn unescaped(uri: &str) -> String {
    let mut parts = uri.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(octet) => text.extend([char::from(octet)].into_iter().chain(part[2..].chars())),
            None => text.extend(['%'].into_iter().chain(part.chars())),
        }
    }
    text
}

fn dns(row: &Row, flow: &[&Observed], differences: &mut Differences) {
    let corresponds =
        |observed: &&&Observed| row.number("trans_id").is_none_or(|id| observed.number("id") == Some(id));
    let query = flow.iter().filter(corresponds).find(|observed| observed.is("query"));
    let response = flow.iter().filter(corresponds).find(|observed| observed.is("response"));
    // Zeek merges both in a row, and the capture may contain only one of them.
    let Some(message) = response.or(query) else { return differences.0.push(MISSING.to_owned()) };
    let question = &message.message["questions"][0];
    let name_of = |class: &str| if class == "IN" { "C_INTERNET".to_owned() } else { class.to_owned() };
    differences.compare(row, "query", messages::text(&question["name"]));
    differences.compare(row, "qtype_name", messages::text(&question["type"]));
    differences.compare(row, "qclass_name", messages::text(&question["class"]).map(|class| name_of(&class)));
    // Some names of IANA's registry have lowercase letters.
    let rcode = response.and_then(|observed| observed.text("rcode")).map(|rcode| rcode.to_uppercase());
    differences.compare(row, "rcode_name", rcode);
    differences.compare(row, "opcode_name", message.text("opcode").map(|opcode| opcode.to_lowercase()));
    let has = |flag: &str| message.message["flags"].as_array().is_some_and(|all| all.contains(&flag.into()));
    for (name, flag) in [("AA", "aa"), ("TC", "tc"), ("RD", "rd"), ("RA", "ra")] {
        differences.compare(row, name, Some(if has(flag) { "T" } else { "F" }.to_owned()));
    }
    let answers = message.message["answers"].as_array();
    let data = |answer: &serde_json::Value| messages::text(&answer["data"]).expect("data");
    let data = answers.map(|answers| answers.iter().map(data).collect::<Vec<_>>().join(","));
    differences.compare(row, "answers", data);
}

fn ftp(row: &Row, flow: &[&Observed], differences: &mut Differences) {
    let corresponds = |observed: &&&Observed| {
        observed.is("command") && observed.text("verb").as_deref() == row.get("command")
    };
    let Some(command) = flow.iter().find(corresponds) else { return differences.0.push(MISSING.to_owned()) };
    let transaction = command.number("transaction");
    let is_reply =
        |observed: &&&Observed| observed.is("reply") && observed.number("transaction") == transaction;
    let reply = flow.iter().rfind(is_reply);
    let is_user =
        |observed: &&&Observed| observed.is("command") && observed.text("verb").as_deref() == Some("USER");
    let user =
        flow.iter().rfind(|observed| is_user(observed) && observed.number("transaction") <= transaction);
    differences.compare(row, "user", user.and_then(|observed| observed.text("argument")));
    // In the test of hidden passwords, Zeek's log shows where one was.
    let hidden = || command.text("credentials").map(|_| "<hidden>".to_owned());
    differences.compare(row, "arg", command.text("argument").or_else(hidden));
    differences.compare(row, "reply_code", reply.and_then(|observed| observed.text("code")));
    differences.compare(row, "reply_msg", reply.and_then(|observed| observed.text("text")));
}

fn smtp(row: &Row, flow: &[&Observed], differences: &mut Differences) {
    let number = row.number("trans_depth").expect("a number") - 1;
    let is_of_mail = |observed: &&&Observed| observed.number("mail") == Some(number);
    let mail = flow.iter().find(|observed| is_of_mail(observed) && observed.is("mail"));
    let is_hello = |observed: &&&Observed| {
        observed.is("command") && matches!(observed.text("verb").as_deref(), Some("EHLO" | "HELO"))
    };
    let hello = flow.iter().find(is_hello);
    let reply = flow.iter().rfind(|observed| is_of_mail(observed) && observed.is("reply"));
    let last_line = |observed: &&&Observed| {
        let text = observed.text("text")?;
        Some(format!("{} {}", observed.number("code")?, text.lines().next_back()?))
    };
    let recipients = mail.and_then(|observed| {
        let addresses = observed.message["recipients"].as_array()?.iter();
        let mut all: Vec<_> =
            addresses.filter_map(|recipient| messages::text(&recipient["address"])).collect();
        // The order is not significant.
        all.sort();
        Some(all)
    });
    let mut expected: Vec<_> = row.get("rcptto").into_iter().flat_map(|all| all.split(',')).collect();
    expected.sort_unstable();
    if recipients.clone().unwrap_or_default() != expected {
        differences.0.push(format!("rcptto {recipients:?}, Zeek {expected:?}"));
    }
    differences.compare(row, "helo", hello.and_then(|observed| observed.text("argument")));
    differences.compare(row, "mailfrom", mail.and_then(|observed| observed.text("reverse_path")));
    differences.compare(row, "last_reply", reply.as_ref().and_then(last_line));
    let is_tls = flow.iter().any(|observed| observed.protocol == "tls");
    differences.compare(row, "tls", Some(if is_tls { "T" } else { "F" }.to_owned()));
    let is_transaction =
        |observed: &&&Observed| observed.is("transaction.mail") && observed.number("number") == Some(number);
    let header = flow.iter().find(is_transaction);
    for (name, own) in [
        ("date", "date"),
        ("from", "from"),
        ("reply_to", "reply_to"),
        ("msg_id", "message_id"),
        ("in_reply_to", "in_reply_to"),
        ("subject", "subject"),
        ("x_originating_ip", "originating_ip"),
        ("user_agent", "user_agent"),
    ] {
        differences.compare(row, name, header.and_then(|observed| observed.text(own)));
    }
    let list = |name: &str| {
        let items = header.and_then(|observed| observed.message[name].as_array());
        items.into_iter().flatten().filter_map(messages::text).collect::<Vec<_>>()
    };
    for name in ["to", "cc"] {
        // The order is not significant.
        let mut own = list(name);
        own.sort();
        let mut expected: Vec<_> = row.get(name).into_iter().flat_map(|all| all.split(',')).collect();
        expected.sort_unstable();
        if own != expected {
            differences.0.push(format!("{name} {own:?}, Zeek {expected:?}"));
        }
    }
    for (name, index) in [("first_received", 0), ("second_received", 1)] {
        differences.compare(row, name, list("received").get(index).cloned());
    }
}

/// Compares mails, and files in mails.
fn files(path: &Path, observed: &[Observed]) -> Vec<String> {
    let mut mails = observed.iter().filter(|observed| observed.is("mail"));
    let mut parts = observed.iter().filter(|observed| observed.is("transaction.file"));
    let of_row = |row: &Row| {
        let mut differences = Differences::default();
        if row.get("mime_type") == Some("message/rfc822") {
            let mail = mails.next();
            differences.compare(row, "seen_bytes", mail.and_then(|mail| mail.text("content_len")));
            let digest = mail.map(|mail| Sha1::digest(&mail.body));
            let hex = |digest: &[u8]| digest.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
            differences.compare(row, "sha1", digest.map(|digest| hex(&digest)));
            return differences.0.join("; ");
        }
        let Some(part) = parts.next() else { return MISSING.to_owned() };
        let content_type = part.text("content_type").unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().to_lowercase();
        differences.compare(row, "mime_type", Some(media_type));
        for (name, own) in
            [("filename", "name"), ("seen_bytes", "seen_len"), ("missing_bytes", "missing_len")]
        {
            differences.compare(row, name, part.text(own));
        }
        differences.0.join("; ")
    };
    rows(path).iter().map(of_row).collect()
}

/// Compares Zeek's SMTP events as lines: `> EHLO GP`, `250 EHLO Ok`.
fn smtp_events(path: &Path, observed: &[Observed]) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a log");
    let mut own: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (port, line) in observed.iter().filter(|observed| observed.protocol == "smtp").flat_map(|observed| {
        let port = observed.ends()[0].1;
        events(observed).into_iter().map(move |line| (port, line))
    }) {
        own.entry(port).or_default().push(line);
    }
    let verbs = observed.iter().filter(|observed| observed.is("command")).filter_map(|observed| {
        Some(((observed.ends()[0].1, observed.number("transaction")?), observed.text("verb")?))
    });
    let verbs: BTreeMap<_, _> = verbs.collect();
    let mut own: BTreeMap<u16, std::vec::IntoIter<String>> =
        own.into_iter().map(|(port, lines)| (port, lines.into_iter())).collect();
    let mut outcomes = Vec::new();
    for event in text.split("\n\n").filter(|event| event.contains(" smtp_re")) {
        let value = |name: &str| {
            let (_, rest) = event.split_once(&format!("] {name}: "))?;
            let (_, rest) = rest.split_once("= ")?;
            Some(rest.split('\n').next().unwrap_or_default())
        };
        let port = event.split_once("orig_p=").and_then(|(_, rest)| rest.split('/').next());
        let port: u16 = port.and_then(|port| port.parse().ok()).expect("a port");
        let expected = match (value("command"), value("code")) {
            (Some("."), _) => Err("the end of content"),
            (Some("**"), _) => Err("an AUTH response"),
            (Some(command), _) => {
                // Some clients send a space before the path.
                Ok(format!("> {command} {}", value("arg").unwrap_or_default().replace(": <", ":<")))
            }
            (None, code) => {
                let command = value("cmd").unwrap_or_default();
                let message = value("msg").unwrap_or_default();
                // These are replies to the command that began the exchange.
                let command = match command {
                    "AUTH_ANSWER" => "AUTH",
                    "." => "DATA",
                    ">" => "",
                    command => command,
                };
                Ok(format!("{} {command} {message}", code.expect("a code")))
            }
        };
        outcomes.push(match expected {
            Err(why) => why.to_owned(),
            Ok(expected) => {
                let mut line = own.get_mut(&port).and_then(Iterator::next).unwrap_or_default();
                if let Some((code, rest)) = line.split_once('#') {
                    let (transaction, rest) = rest.split_once(' ').expect("a number and text");
                    let verb = transaction.parse().ok().and_then(|number| verbs.get(&(port, number)));
                    line = format!("{code}{} {rest}", verb.map_or("", String::as_str));
                }
                if line.trim_end() == expected.trim_end() {
                    String::new()
                } else {
                    format!("{line:?}, Zeek {expected:?}")
                }
            }
        });
    }
    let left: Vec<String> = own.into_values().flatten().collect();
    assert!(left.is_empty(), "events that Zeek does not have: {left:?}");
    outcomes
}

/// Returns the lines of a message. A line of a reply is the code, ` #`, the number of its command, and the text.
fn events(observed: &Observed) -> Vec<String> {
    let transaction = observed.number("transaction").map_or(String::new(), |number| number.to_string());
    match observed.message["message"].as_str() {
        Some("command") => {
            let keyword = match observed.text("verb").as_deref() {
                Some("MAIL") => "FROM:",
                Some("RCPT") => "TO:",
                _ => "",
            };
            let address = observed.text("address").map(|address| format!("{keyword}<{address}>"));
            let argument = address.or_else(|| observed.text("argument")).unwrap_or_default();
            vec![format!("> {} {argument}", observed.text("verb").unwrap_or_default())]
        }
        Some("greeting" | "reply") => {
            let text = observed.text("text").unwrap_or_default();
            let code = observed.number("code").unwrap_or_default();
            text.split('\n').map(|line| format!("{code} #{transaction} {line}")).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the logs in a folder of baselines that can be compared.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of baselines");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| comparison(&name.to_string_lossy()).is_some()));
    paths.sort();
    paths
}

#[test]
fn rows_of_protocol_logs_agree_or_belong_to_a_listed_class() {
    let Some(captures) = corpus::captures() else { return };
    let mut per_log: BTreeMap<String, (usize, BTreeMap<Class, usize>)> = BTreeMap::new();
    let (mut failures, mut seen) = (Vec::new(), Vec::new());
    for capture in &captures {
        let folders = ["zeek", "zeek-conn", "zeek(multi)"].into_iter().flat_map(|kind| capture.oracles(kind));
        let logs: Vec<_> = folders.flat_map(|folder| logs(&folder)).collect();
        if logs.is_empty() {
            continue;
        }
        let mut observed = messages::of(&capture.path());
        observed.extend(messages::mails_of(&capture.path()));
        for path in logs {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            let log = format!("{}/{name}", folder.display());
            let compare = comparison(&name).expect("a log that is compared");
            let (agreeing, per_class) = per_log.entry(name).or_default();
            for (number, outcome) in (1..).zip(compare(&path, &observed)) {
                let stated =
                    DIFFERING.iter().filter(|(known, ..)| *known == log).find_map(|(_, class, rows)| {
                        rows.iter()
                            .find(|(row, _)| *row == number)
                            .map(|(_, difference)| (*class, *difference))
                    });
                match stated {
                    None if outcome.is_empty() => *agreeing += 1,
                    Some((class, difference)) if difference == outcome => {
                        *per_class.entry(class).or_default() += 1;
                    }
                    _ => failures.push(format!("{log}: ({number}, {outcome:?}),")),
                }
            }
            seen.push(log);
        }
    }
    for (log, (agreeing, per_class)) in &per_log {
        println!("{log}: {agreeing} rows agree, others by class: {per_class:?}");
    }
    let unseen: Vec<_> =
        DIFFERING.iter().map(|(log, ..)| log).filter(|log| !seen.iter().any(|seen| seen == *log)).collect();
    assert!(unseen.is_empty(), "no such logs: {unseen:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let agreeing: usize = per_log.values().map(|(agreeing, _)| agreeing).sum();
    assert!(agreeing > 40, "{agreeing} rows");
}
