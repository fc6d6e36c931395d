//! Comparison of messages with the events of DNS, HTTP and files that Suricata's own tests expect.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

use super::corpus;
use super::messages::{self, Observed};

/// The values of an expected event by key.
type Event = BTreeMap<String, String>;

/// Returns the events of a test that the latest version of Suricata emits.
fn events(test: &str) -> Vec<Event> {
    let checks = test.split("- filter:").skip(1);
    let events = checks.filter(|check| !check.contains("lt-version")).map(|check| {
        let (_, matches) = check.split_once("match:").unwrap_or_default();
        let mut event = Event::new();
        let mut last = String::new();
        for line in matches.lines().map(str::trim) {
            match line.split_once(": ") {
                Some((name, value)) if !name.contains(' ') => {
                    last = name.to_owned();
                    event.insert(last.clone(), value.trim_matches('\'').to_owned());
                }
                // The continuation of a text.
                _ if !line.is_empty() && !line.starts_with('#') => {
                    if let Some(text) = event.get_mut(&last) {
                        *text += &format!(" {line}");
                    }
                }
                _ => {}
            }
        }
        event
    });
    let is_wanted = |event: &Event| {
        matches!(event.get("event_type").map(String::as_str), Some("dns" | "http" | "fileinfo"))
    };
    events.filter(is_wanted).collect()
}

/// Returns whether a message belongs to the flow of an event, as far as the event identifies it.
fn is_of(event: &Event, observed: &Observed) -> bool {
    let end = |prefix: &str| {
        let address: Option<IpAddr> =
            event.get(&format!("{prefix}_ip")).map(|text| text.parse().expect("an address"));
        let port: Option<u16> =
            event.get(&format!("{prefix}_port")).map(|text| text.parse().expect("a port"));
        (address, port)
    };
    let expected = [end("src"), end("dest")];
    let is_same = |ends: [(IpAddr, u16); 2]| {
        expected.iter().zip(ends).all(|((address, port), (own_address, own_port))| {
            address.is_none_or(|address| address == own_address) && port.is_none_or(|port| port == own_port)
        })
    };
    let [client, server] = observed.ends();
    is_same([client, server]) || is_same([server, client])
}

/// Returns a value of a message by its name in a DNS event, or `None` if flowgauge has no such value.
fn dns(observed: &Observed, name: &str) -> Option<Option<String>> {
    let message = &observed.message;
    let flags = message["flags"].as_array();
    let has = |flag: &str| flags.is_some_and(|flags| flags.contains(&flag.into()));
    let (list, rest) = match name.split_once('[') {
        Some((list, rest)) => {
            let (position, rest) = rest.split_once("].").unwrap_or((rest.trim_end_matches(']'), ""));
            (list, Some((position.parse::<usize>().expect("an index"), rest)))
        }
        None => (name, None),
    };
    let item = |key: &str| rest.map(|(position, _)| message[key][position].clone()).unwrap_or_default();
    Some(match list {
        "id" => messages::text(&message["id"]),
        // Some names of IANA's registry have lowercase letters.
        "rcode" => messages::text(&message["rcode"]).map(|rcode| rcode.to_uppercase()),
        "qr" => Some(observed.is("response").to_string()),
        "aa" | "rd" | "ra" | "tc" => Some(has(list).to_string()),
        "type" => Some(if observed.is("response") { "response" } else { "request" }.to_owned()),
        "queries" => record(&item("questions"), rest?.1),
        "answers" => record(&item("answers"), rest?.1),
        "authorities" => record(&item("authorities"), rest?.1),
        // Only the answers of a type, in order.
        _ if list.starts_with("grouped.") => {
            let is_of = |answer: &&Value| answer["type"] == list.trim_start_matches("grouped.");
            let answers = message["answers"].as_array()?;
            answers.iter().filter(is_of).nth(rest?.0).and_then(|answer| record(answer, "rdata"))
        }
        _ => return None,
    })
}

/// Returns a value of a record by its name in events.
fn record(record: &Value, name: &str) -> Option<String> {
    const SOA: [&str; 7] = ["mname", "rname", "serial", "refresh", "retry", "expire", "minimum"];
    match name {
        "rrname" => messages::text(&record["name"]),
        "rrtype" => messages::text(&record["type"]),
        "ttl" => messages::text(&record["ttl"]),
        "rdata" => messages::text(&record["data"]),
        _ => {
            let position = SOA.iter().position(|known| name.strip_prefix("soa.") == Some(known))?;
            record["data"].as_str()?.split(' ').nth(position).map(str::to_owned)
        }
    }
}

/// The messages of an HTTP exchange: request and its end, response and its end.
type Exchange<'a> = [Option<&'a Observed>; 4];

fn http(exchange: &Exchange<'_>, event: &Event, name: &str) -> Option<Option<String>> {
    let [request, request_end, response, response_end] = *exchange;
    let of = |observed: Option<&Observed>, key: &str| observed.and_then(|observed| observed.text(key));
    // The source of the event sent the file.
    let is_upload = event
        .get("src_port")
        .is_none_or(|port| request.is_some_and(|observed| observed.ends()[0].1.to_string() == *port));
    Some(match name {
        "http.hostname" => of(request, "host"),
        "http.http_method" => of(request, "method"),
        "http.http_user_agent" => of(request, "user_agent"),
        "http.http_refer" => of(request, "referer"),
        "http.url" | "fileinfo.filename" => of(request, "target"),
        "http.protocol" => of(request, "version").map(|version| format!("HTTP/{version}")),
        "http.status" => of(response, "status"),
        "http.http_content_type" => of(response, "content_type"),
        "http.length" => of(response_end, "body_len"),
        "fileinfo.size" => {
            let (head, end) = if is_upload { (request, request_end) } else { (response, response_end) };
            messages::decoded_len(head, end).map(|len| len.to_string())
        }
        "fileinfo.gaps" => {
            let end = if is_upload { request_end } else { response_end };
            end.and_then(|end| end.number("missing_len")).map(|len| (len > 0).to_string())
        }
        "fileinfo.tx_id" | "tx_id" => of(request, "transaction"),
        _ => return None,
    })
}

/// Returns the number of equal values of a message and an event, and the differences. Compares only keys that both
/// have.
fn differences(
    event: &Event,
    prefix: &str,
    own: &dyn Fn(&str) -> Option<Option<String>>,
) -> (usize, Vec<String>) {
    let (mut equal_count, mut found) = (0, Vec::new());
    for (name, expected) in event {
        let Some(value) = own(name.strip_prefix(prefix).unwrap_or(name)) else { continue };
        // Suricata writes IPv6 addresses without abbreviation.
        let is_address =
            |text: &str| expected.parse::<IpAddr>().is_ok_and(|address| text.parse() == Ok(address));
        if value.as_deref() == Some(expected) || value.as_deref().is_some_and(is_address) {
            equal_count += 1;
        } else {
            found.push(format!("{name} {:?}, Suricata {expected:?}", value.unwrap_or_default()));
        }
    }
    (equal_count, found)
}

/// Returns the number of equal values in the best message for an event, and the differences.
fn compared(event: &Event, observed: &[Observed]) -> (usize, String) {
    let observed: Vec<&Observed> = observed.iter().filter(|observed| is_of(event, observed)).collect();
    let outcomes: Vec<(usize, Vec<String>)> = if event["event_type"] == "dns" {
        let messages = observed.iter().filter(|observed| observed.protocol == "dns");
        messages.map(|message| differences(event, "dns.", &|name| dns(message, name))).collect()
    } else {
        let requests = observed.iter().filter(|observed| observed.is("request"));
        let exchange = |request: &&Observed| {
            let find = |from: &str, kind: &str| {
                let is_wanted = |observed: &&&Observed| {
                    observed.key == request.key
                        && observed.from.name() == from
                        && observed.is(kind)
                        && observed.number("transaction") == request.number("transaction")
                };
                observed.iter().find(is_wanted).copied()
            };
            let exchange =
                [Some(*request), find("client", "end"), find("server", "response"), find("server", "end")];
            differences(event, "", &|name| http(&exchange, event, name))
        };
        requests.map(exchange).collect()
    };
    let best = outcomes.into_iter().min_by_key(|(_, found)| found.len());
    best.map_or((0, "no such message".to_owned()), |(equal_count, found)| (equal_count, found.join("; ")))
}

#[test]
fn events_match_suricata() {
    let Some(captures) = corpus::captures() else { return };
    let (mut agreeing_count, mut value_count, mut failures) = (0, 0, Vec::new());
    for capture in &captures {
        let kinds =
            ["suri", "suri+stats", "suri-flow", "suri-flow+stats", "suri-flowcnt", "suri-flowcnt+stats"];
        let tests: Vec<_> = kinds.into_iter().flat_map(|kind| capture.oracles(kind)).collect();
        let texts = tests.iter().map(|path| (path, std::fs::read_to_string(path).expect("a test")));
        let expected: Vec<_> = texts.map(|(path, text)| (path, events(&text))).collect();
        if expected.iter().all(|(_, events)| events.is_empty()) {
            continue;
        }
        let observed = messages::of(&capture.path());
        for (path, events) in expected {
            let test = path.parent().and_then(Path::file_name).unwrap_or_default().display();
            for (number, event) in (1..).zip(&events) {
                let (equal_count, outcome) = compared(event, &observed);
                value_count += equal_count;
                if outcome.is_empty() && equal_count > 0 {
                    agreeing_count += 1;
                } else {
                    failures.push(format!("{test} {number}: {outcome}"));
                }
            }
        }
    }
    println!("{agreeing_count} events agree, {value_count} values");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(agreeing_count > 10 && value_count > 100, "{agreeing_count} events, {value_count} values");
}
