//! Comparison of the events of `export::eve` with those that Suricata's own tests expect, in all keys that both have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use flowgauge::decode::link::Decapsulation;
use flowgauge::export::eve::EveConfig;
use flowgauge::tracker::{Timeouts, TrackerConfig};
use serde_json::Value;

use super::corpus;
use super::eve_events::events_of;

/// The reason for which an event differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// A rule of the test fired.
    Rule,
    /// Suricata counts messages of DNS, flowgauge queries: a response has the number of its query.
    Number,
    /// Suricata's name of a protocol that it does not recognize.
    Failed,
    /// Suricata has no state of a TCP connection that began before the capture, and its source is the first sender. flowgauge
    /// determines direction and state by the segments.
    Midstream,
    /// The source is the sender of the first packet in Suricata, and in flowgauge the end with the unassigned port.
    Direction,
    /// Suricata keeps a closed connection until a timeout or the end of the input.
    Closed,
    /// Suricata counts the inner packet of a tunnel, flowgauge the frame; and it counts the packets of each depth of tunnels as a
    /// flow, with this option.
    Tunnel,
}

/// The values that differ, by test, number of the event in it, and class.
const DIFFERING: &[(&str, usize, Class, &str)] = &[
    ("ids-tunnel-pkt-flows-recursion-included", 1, Class::Tunnel, "flow.pkts_toclient 1, Suricata 0"),
    ("ips-tunnel-pkt-flows-recursion-included", 1, Class::Tunnel, "flow.pkts_toclient 1, Suricata 0"),
    ("bug-5464-verdict-06", 1, Class::Rule, "flow.alerted false, Suricata true"),
    ("decode-teredo-01", 3, Class::Number, "dns.tx_id 1, Suricata 2"),
    ("decode-teredo-01", 6, Class::Number, "dns.tx_id 2, Suricata 4"),
    ("decode-teredo-01", 9, Class::Number, "dns.tx_id 3, Suricata 6"),
    ("decode-teredo-01", 11, Class::Number, "dns.tx_id 4, Suricata 8"),
    (
        "decode-teredo-01",
        15,
        Class::Direction,
        "app_proto absent, Suricata failed; dest_ip 65.55.158.81, Suricata 192.168.2.16; dest_port 3544, Suricata 3797; flow.bytes_toclient 151, Suricata 0; flow.bytes_toserver 0, Suricata 151; flow.pkts_toclient 1, Suricata 0; flow.pkts_toserver 0, Suricata 1; src_ip 192.168.2.16, Suricata 65.55.158.81; src_port 3797, Suricata 3544",
    ),
    (
        "decode-teredo-01",
        17,
        Class::Midstream,
        "dest_ip 75.126.130.163, Suricata 192.168.2.16; dest_port 80, Suricata 1576; flow.alerted false, Suricata true; flow.reason timeout, Suricata shutdown; flow.state closed, Suricata new; src_ip 192.168.2.16, Suricata 75.126.130.163; src_port 1576, Suricata 80; tcp.tcp_flags 15, Suricata 00; tcp.tcp_flags_tc 15, Suricata 00; tcp.tcp_flags_ts 14, Suricata 00",
    ),
    ("decode-teredo-01", 18, Class::Failed, "app_proto absent, Suricata failed"),
    (
        "decode-teredo-01",
        19,
        Class::Failed,
        "app_proto absent, Suricata failed; flow.alerted false, Suricata true",
    ),
    ("decode-teredo-01", 21, Class::Tunnel, "flow.bytes_toserver 94, Suricata 52"),
    (
        "decode-teredo-01",
        22,
        Class::Midstream,
        "dest_ip 75.126.203.78, Suricata 192.168.2.16; dest_port 80, Suricata 1577; flow.alerted false, Suricata true; flow.bytes_toclient 162, Suricata 108; flow.bytes_toserver 108, Suricata 162; flow.pkts_toclient 3, Suricata 2; flow.pkts_toserver 2, Suricata 3; flow.reason timeout, Suricata shutdown; flow.state closed, Suricata new; src_ip 192.168.2.16, Suricata 75.126.203.78; src_port 1577, Suricata 80; tcp.tcp_flags 15, Suricata 00; tcp.tcp_flags_tc 15, Suricata 00; tcp.tcp_flags_ts 11, Suricata 00",
    ),
    ("decode-teredo-01", 23, Class::Failed, "app_proto absent, Suricata failed"),
    ("decode-teredo-01", 24, Class::Closed, "flow.reason timeout, Suricata shutdown"),
    ("decode-teredo-01", 25, Class::Failed, "app_proto absent, Suricata failed"),
    ("decode-teredo-01", 26, Class::Closed, "flow.reason timeout, Suricata shutdown"),
];

/// An event that a test expects.
#[derive(Debug, Default)]
struct Expected {
    /// Number of such events.
    count: Option<usize>,
    /// Values by path.
    values: BTreeMap<String, String>,
}

/// Returns the events of a test that the latest version of Suricata emits.
fn expected(test: &str) -> Vec<Expected> {
    let checks = test.split("- filter:").skip(1).filter(|check| !check.contains("lt-version"));
    let events = checks.map(|check| {
        let mut event = Expected::default();
        let (head, matches) = check.split_once("match:").unwrap_or_default();
        let count = head.lines().find_map(|line| line.trim().strip_prefix("count: "));
        event.count = count.and_then(|count| count.parse().ok());
        let mut last = String::new();
        for line in matches.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            match line.split_once(": ") {
                Some((name, value)) if !name.contains(' ') => {
                    last = name.to_owned();
                    let value = value.trim_matches(['\'', '"']).to_owned();
                    event.values.insert(last.clone(), value);
                }
                // The continuation of a text.
                _ if !line.is_empty() => {
                    if let Some(text) = event.values.get_mut(&last) {
                        *text += &format!(" {line}");
                    }
                }
                _ => {}
            }
        }
        event
    });
    let kinds = ["dns", "http", "fileinfo", "flow"];
    events
        .filter(|event| event.values.get("event_type").is_some_and(|kind| kinds.contains(&&**kind)))
        .collect()
}

/// Returns the value at a path such as `dns.answers[0].rrname`.
fn at<'v>(event: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(event, |value, part| match part.split_once('[') {
        Some((name, index)) => value.get(name)?.get(index.trim_end_matches(']').parse::<usize>().ok()?),
        None => value.get(part),
    })
}

/// Returns whether an own event may have a value at a path.
fn is_known(path: &str, known: &BTreeSet<String>) -> bool {
    let shape: String = path.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    known.contains(&shape)
}

/// Returns the differences between an expected event and an own one; values of keys that it never has are not compared.
fn differences(expected: &Expected, own: &Value, known: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, value) in &expected.values {
        if !is_known(path, known) {
            continue;
        }
        let text = at(own, path).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        // Keys of flags are absent if they are false.
        let is_equal = match &text {
            Some(text) => text == value,
            None => value == "false",
        };
        if !is_equal {
            found.push(format!("{path} {}, Suricata {value}", text.unwrap_or_else(|| "absent".to_owned())));
        }
    }
    found
}

/// Adds the paths of all values, with `[]` for an index.
fn add_paths(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let separator = if path.is_empty() { "" } else { "." };
                add_paths(member, &format!("{path}{separator}{name}"), out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_paths(item, &format!("{path}[]"), out)),
        _ => drop(out.insert(path.to_owned())),
    }
}

/// Returns whether an own event may describe the same: it has the type, and the endpoints in either direction.
fn corresponds(expected: &Expected, own: &Value) -> bool {
    let value = |name: &str| expected.values.get(name).map(String::as_str);
    let address = |name: &str| value(name).map(|text| text.parse::<IpAddr>().expect("an address"));
    let port = |name: &str| value(name).map(|text| text.parse::<u64>().expect("a port"));
    let own_end = |prefix: &str| {
        let address =
            own.get(format!("{prefix}_ip")).and_then(Value::as_str).and_then(|text| text.parse().ok());
        (address, own.get(format!("{prefix}_port")).and_then(Value::as_u64))
    };
    let is_end = |prefix: &str, own: (Option<IpAddr>, Option<u64>)| {
        let (address, port) = (address(&format!("{prefix}_ip")), port(&format!("{prefix}_port")));
        (address.is_none() || address == own.0) && (port.is_none() || port == own.1)
    };
    let (source, destination) = (own_end("src"), own_end("dest"));
    value("event_type") == own["event_type"].as_str()
        && (is_end("src", source) && is_end("dest", destination)
            || is_end("src", destination) && is_end("dest", source))
}

/// Suricata's default timeouts.
fn timeouts() -> TrackerConfig {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(Some(Duration::from_secs(600)));
    config.key_policy.decapsulation = Decapsulation::Both;
    config
}

#[test]
fn events_agree_or_belong_to_a_listed_class() {
    let Some(captures) = corpus::captures() else { return };
    let mut per_kind = BTreeMap::<String, (usize, usize)>::new();
    let (mut classes, mut failures, mut seen) =
        (BTreeMap::<Class, usize>::new(), Vec::new(), BTreeSet::new());
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for capture in &captures {
        let kinds =
            ["suri", "suri+stats", "suri-flow", "suri-flow+stats", "suri-flowcnt", "suri-flowcnt+stats"];
        let tests: Vec<_> = kinds.into_iter().flat_map(|kind| capture.oracles(kind)).collect();
        if tests.is_empty() {
            continue;
        }
        let events = events_of(&capture.path(), EveConfig::default(), timeouts());
        events.iter().for_each(|event| add_paths(event, "", &mut known));
        all.push((tests, events));
    }
    for (path, events) in all.iter().flat_map(|(tests, events)| tests.iter().map(move |path| (path, events)))
    {
        let text = std::fs::read_to_string(path).expect("a test");
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().display().to_string();
        for (number, event) in (1..).zip(expected(&text)) {
            let candidates = events.iter().filter(|own| corresponds(&event, own));
            let mut outcomes: Vec<_> = candidates.map(|own| differences(&event, own, &known)).collect();
            outcomes.sort_by_key(Vec::len);
            let equal_count = outcomes.iter().filter(|found| found.is_empty()).count();
            // The number of events depends on all values.
            let is_complete = event.values.keys().all(|path| path == "pcap_cnt" || is_known(path, &known));
            if !is_complete && event.count == Some(0) {
                continue;
            }
            let outcome = match (outcomes.into_iter().next(), event.count) {
                (_, Some(count)) if count == equal_count => String::new(),
                (Some(found), _) if found.is_empty() && !is_complete => String::new(),
                (None, _) => "no such event".to_owned(),
                (Some(found), _) if !found.is_empty() => found.join("; "),
                (_, count) => format!("{equal_count} events, Suricata {}", count.unwrap_or_default()),
            };
            let (agreeing_count, value_count) =
                per_kind.entry(event.values["event_type"].clone()).or_default();
            let stated = DIFFERING.iter().find(|entry| (entry.0, entry.1) == (&*name, number));
            match stated {
                None if outcome.is_empty() => {
                    *agreeing_count += 1;
                    *value_count += event.values.len();
                }
                Some((.., class, difference)) if *difference == outcome => {
                    *classes.entry(*class).or_default() += 1;
                    seen.insert((name.clone(), number));
                }
                _ => failures.push(format!("({name:?}, {number}, Class::, {outcome:?}),")),
            }
        }
    }
    let agreeing_count: usize = per_kind.values().map(|(count, _)| count).sum();
    assert!(agreeing_count > 20, "{agreeing_count} events");
    println!("events that agree, and their values: {per_kind:?}; others by class: {classes:?}");
    assert_eq!(seen.len(), DIFFERING.len(), "only these of the listed events: {seen:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
