//! tshark, which decodes what `flowgauge flows --format ipfix` sends.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::folder::Folder;
use super::{Directions, export, flows, program};

/// Enterprise number of the elements in the test.
const ENTERPRISE_NUMBER: &str = "32473";

/// Exports a capture to a socket, and returns the messages one after another, as in a file of IPFIX messages.
fn messages(name: &str, options: &[&str]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let port = socket.local_addr().unwrap().port();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut messages, mut buffer) = (Vec::new(), [0; 1 << 16]);
            loop {
                let was_last = has_ended.load(Relaxed);
                match socket.recv(&mut buffer) {
                    Ok(len) => messages.extend_from_slice(&buffer[..len]),
                    Err(_) if was_last => return messages,
                    Err(_) => {}
                }
            }
        });
        export(name, port, options);
        has_ended.store(true, Relaxed);
        receiver.join().unwrap()
    })
}

fn tshark(path: &str, args: &[&str]) -> String {
    let output = Command::new("tshark").args(["-n", "-r", path]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the flows in the description that tshark prints. Each is a list of names and values; the value of a reverse
/// element ends with `(Reverse Type ...)`.
fn described_flows(description: &str) -> Vec<Vec<(String, String)>> {
    let mut flows: Vec<Vec<(String, String)>> = Vec::new();
    let mut indent = 0;
    let mut is_in_flow = false;
    for line in description.lines() {
        let text = line.trim_start();
        let line_indent = line.len() - text.len();
        // A type record is `Flow 1 [name]`.
        let number = text.strip_prefix("Flow ").and_then(|rest| rest.split(' ').next());
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            flows.push(Vec::new());
            (indent, is_in_flow) = (line_indent, true);
        } else if line_indent <= indent {
            is_in_flow = false;
        } else if let (true, Some((name, value))) = (is_in_flow, text.split_once(": ")) {
            flows.last_mut().unwrap().push((name.to_owned(), value.to_owned()));
        }
    }
    flows
}

#[test]
fn tshark_agrees_on_the_flows_and_finds_no_problem() {
    if program("tshark").is_none() {
        return;
    }
    for name in ["web.pcap", "dns.pcap", "vlan.pcapng"] {
        let folder = Folder::new();
        let messages = messages(name, &["--enterprise-number", ENTERPRISE_NUMBER]);
        assert!(!messages.is_empty());
        let path = folder.path("messages.ipfix");
        fs::write(&path, &messages).unwrap();
        let problems =
            tshark(&path, &["-Y", "_ws.malformed || _ws.expert", "-T", "fields", "-e", "_ws.expert.message"]);
        assert_eq!(problems, "", "{name}");

        let mut found = Directions::default();
        let mut own_elements = BTreeMap::new();
        let mut type_record_names = BTreeMap::new();
        for flow in described_flows(&tshark(&path, &["-O", "cflow"])) {
            let value = |name: &str| {
                flow.iter()
                    .find(|(found, value)| found == name && !value.contains("(Reverse"))
                    .map(|(_, value)| &**value)
            };
            let reverse =
                |name: &str| flow.iter().find(|(found, value)| found == name && value.contains("(Reverse"));
            let number = |value: &str| value.split(' ').next().unwrap().parse::<u64>().unwrap();
            if let Some(element) = value("Information Element Id") {
                let id = number(element);
                type_record_names.insert(id, value("Information Element Name").unwrap().to_owned());
                continue;
            }
            let protocol = value("Protocol").unwrap();
            let protocol = protocol.rsplit_once('(').unwrap().1.trim_end_matches(')').parse().unwrap();
            let address = |name| value(name).unwrap().parse().unwrap();
            let port = |name| value(name).map_or(0, |port| number(port) as u16);
            let source = (address("SrcAddr"), port("SrcPort"));
            let destination = (address("DstAddr"), port("DstPort"));
            let forward = (number(value("Packets").unwrap()), number(value("Octets").unwrap()));
            let count = |name| number(&reverse(name).unwrap().1);
            found.add((protocol, source.0, source.1, destination.0, destination.1), forward);
            found.add(
                (protocol, destination.0, destination.1, source.0, source.1),
                (count("Packets"), count("Octets")),
            );
            for (name, value) in &flow {
                if name == "Enterprise Private entry" {
                    let id = value.split("Type ").nth(1).unwrap().split(':').next().unwrap();
                    own_elements.insert(id.parse::<u64>().unwrap(), value.clone());
                }
                assert!(!name.starts_with("Type "), "an element that tshark does not know: {name}: {value}");
            }
        }
        assert_eq!(found, Directions::of_ndjson(&flows(name)), "{name}");
        assert!(own_elements.len() > 10);
        for (id, value) in own_elements {
            assert!(type_record_names.contains_key(&id), "no type record for {value}");
        }
    }
}
