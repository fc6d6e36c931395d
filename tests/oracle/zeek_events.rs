//! Comparison of messages with the SMTP events of Zeek.

use std::collections::BTreeMap;
use std::path::Path;

use super::corpus;
use super::messages::{self, Observed};

/// The events that differ: their numbers, and the reasons. flowgauge reports no answers of AUTH, and the end of a mail in its
/// summary.
const DIFFERING: [(usize, &str); 4] = [
    (13, "an AUTH response"),
    (15, "an AUTH response"),
    (23, "the end of content"),
    (43, "the end of content"),
];

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

#[test]
fn smtp_events_agree_but_for_listed_ones() {
    let Some(captures) = corpus::captures() else { return };
    let mut compared_count = 0;
    for capture in &captures {
        let folders = ["zeek", "zeek-conn", "zeek(multi)"].into_iter().flat_map(|kind| capture.oracles(kind));
        for path in folders.map(|folder| folder.join("smtp-events.log")).filter(|path| path.exists()) {
            let outcomes = smtp_events(&path, &messages::of(&capture.path()));
            let differing: Vec<_> = (1..).zip(&outcomes).filter(|(_, outcome)| !outcome.is_empty()).collect();
            let differing: Vec<_> =
                differing.iter().map(|(number, outcome)| (*number, outcome.as_str())).collect();
            assert_eq!(differing, DIFFERING, "{}", path.display());
            compared_count += outcomes.len();
        }
    }
    assert!(compared_count > 40, "{compared_count} events");
}
