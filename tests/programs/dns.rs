//! dig and dnsmasq over UDP and TCP: the messages match dig's output.

use serde_json::Value;

use crate::lab::record;
use crate::observe::{Dialogue, to_port};

const SERVER: &str = "
port=5300
listen-address=127.0.0.1
bind-interfaces
no-resolv
no-hosts
no-daemon
user=root
local=/example/
local-ttl=77
address=/host.example/192.0.2.7
address=/host.example/2001:db8::7
cname=also.example,host.example
mx-host=example,host.example,10
txt-record=text.example,some words,v=1
srv-host=_imap._tcp.example,host.example,143,0,5
";

/// Name and type of each question, and the option of dig for the transport.
const QUESTIONS: [(&str, &str); 8] = [
    ("host.example A", "+notcp"),
    ("host.example AAAA", "+notcp"),
    ("text.example TXT", "+notcp"),
    ("example MX", "+noedns"),
    ("_imap._tcp.example SRV", "+notcp"),
    ("none.example A", "+notcp"),
    ("text.example TXT", "+tcp"),
    ("host.example AAAA", "+tcp"),
];

/// Returns an answer from dig's output: the status, the identifier and the records, with one space between columns.
fn reported(output: &str) -> (String, u64, Vec<String>) {
    let after = |prefix: &str| {
        let (_, rest) = output.split_once(prefix).unwrap_or_else(|| panic!("{prefix} in {output}"));
        rest.split([',', '\n']).next().unwrap_or_default().to_owned()
    };
    let records = output.lines().filter(|line| !line.is_empty() && !line.starts_with(';'));
    let records = records.map(|line| {
        // flowgauge writes names without the trailing dot of the root.
        let words = line.split_whitespace().map(|word| word.strip_suffix('.').unwrap_or(word));
        words.collect::<Vec<_>>().join(" ")
    });
    (after("status: "), after("id: ").parse().expect("a number"), records.collect())
}

fn records(response: &Value) -> Vec<String> {
    let all = response["answers"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line =
        |record: &Value| ["name", "ttl", "class", "type", "data"].map(|key| text(&record[key])).join(" ");
    all.iter().map(line).collect()
}

#[test]
fn dns_messages_match_the_output_of_dig() {
    let mut script = "dnsmasq -C server >dnsmasq.log 2>&1 &\nwaited listens_udp 5300\n".to_owned();
    for (position, (question, option)) in QUESTIONS.iter().enumerate() {
        script +=
            &format!("dig @127.0.0.1 -p 5300 +tries=1 +comments {option} {question} >answer.{position}\n");
    }
    let Some(recorded) = record("dns", &["dig", "dnsmasq"], &[("server", SERVER)], &script) else { return };
    let dialogues = to_port(&recorded.capture(), 5300);
    assert_eq!(dialogues.len(), QUESTIONS.len());
    for (position, (dialogue, (question, _))) in dialogues.iter().zip(QUESTIONS).enumerate() {
        assert_eq!(dialogue.recognized, [("dns", "content")]);
        let [query, response] = query_and_response(dialogue);
        let (name, kind) = question.split_once(' ').expect("a name and a type");
        for message in [query, response] {
            let parsed_question = &message["questions"][0];
            assert_eq!([&parsed_question["name"], &parsed_question["type"]], [name, kind]);
        }
        let (status, id, answers) = reported(&recorded.file(&format!("answer.{position}")));
        // dig writes the names of response codes in capital letters.
        assert_eq!(response["rcode"].as_str().map(str::to_uppercase), Some(status));
        assert_eq!([response["id"].as_u64(), query["id"].as_u64()], [Some(id); 2]);
        assert_eq!(records(response), answers);
        assert_eq!(query["transaction"], response["transaction"]);
    }
}

/// Returns the query and the response.
fn query_and_response(dialogue: &Dialogue) -> [&Value; 2] {
    ["client", "server"].map(|from| {
        let all: Vec<_> = dialogue
            .messages
            .iter()
            .filter(|value| value["from"] == from && value["protocol"] == "dns")
            .collect();
        assert_eq!(all.len(), 1, "{dialogue:#?}");
        all[0]
    })
}
