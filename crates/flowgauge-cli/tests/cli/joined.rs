//! Tests of what is joined to flow records: labels, names of servers, locations.

use std::fs;
use std::net::IpAddr;

use serde_json::Value;

use super::{Folder, objects, run};

fn rows(capture: &str, options: &[&str]) -> Vec<Value> {
    let run = run(&[&["flows", capture, "-q", "--format", "ndjson"], options].concat());
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    objects(&run.out)
}

#[test]
fn the_number_of_a_record_does_not_depend_on_conditions_and_order() {
    let ids = |options: &[&str]| {
        let options = [&["--features", "nfstream", "--fields", "start"], options].concat();
        rows("web.pcap", &options).iter().map(|row| row["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let count = ids(&[]).len() as u64;
    assert_eq!(ids(&[]), (0..count).collect::<Vec<_>>());
    assert_eq!(ids(&["--where", "id >= 5 and id < 8"]), [5, 6, 7]);
    let mut largest = ids(&["--where", "id < 3", "--top", "5"]);
    largest.sort_unstable();
    assert_eq!(largest, [0, 1, 2]);
}

/// Label, source, destination, address, port, destination port, protocol, start and end.
type Rule = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Rules for a program that compares each flow with each of them.
const RULES: &[Rule] = &[
    ("first", "10.77.0.2", "", "", "", "80", "", "", ""),
    ("later", "10.77.0.2", "", "", "", "", "", "1000", "1e9"),
    ("v6 client", "2001:db8:77::/64", "2001:db8:77::2-2001:db8:77::ff", "", "", "443-8080", "tcp", "", ""),
    ("either", "", "", "10.77.0.1", "", "", "", "", ""),
    ("icmp", "", "", "", "", "", "58", "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"),
    ("dns", "", "", "", "53", "", "udp", "", ""),
    ("smtp", "", "", "fe80::/10", "", "25", "", "", ""),
    ("shadowed", "10.77.0.2", "", "", "", "80", "", "", ""),
    ("rest", "0.0.0.0/0", "", "", "", "", "", "", ""),
];

/// Returns whether a text of the rules contains an address. Written in another way than the program.
fn has_address(text: &str, address: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => format!("4{:032b}", address.to_bits()),
        IpAddr::V6(address) => format!("6{:0128b}", address.to_bits()),
    };
    let parsed = |text: &str| bits(text.parse().expect("an address"));
    let own = bits(address);
    if text.is_empty() {
        true
    } else if let Some((network, len)) = text.split_once('/') {
        let len = 1 + len.parse::<usize>().unwrap();
        own.get(..len) == parsed(network).get(..len)
    } else if let Some((first, last)) = text.split_once('-') {
        (parsed(first)..=parsed(last)).contains(&own)
    } else {
        parsed(text) == own
    }
}

fn has_port(text: &str, port: &Value) -> bool {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let is_in = |port: u64| (first.parse().unwrap()..=last.parse().unwrap()).contains(&port);
    text.is_empty() || port.as_u64().is_some_and(is_in)
}

/// Returns the label of the first rule that a row matches.
fn naive(row: &Value) -> Option<&'static str> {
    let address = |name: &str| row[name].as_str().unwrap().parse::<IpAddr>().unwrap();
    let (source, destination) = (address("source_address"), address("destination_address"));
    let seconds = |name: &str| row[name].as_u64().unwrap() as f64 / 1e9;
    let time = |text: &str| match text {
        "2020-01-01T00:00:00Z" => 1_577_836_800.0,
        "2100-01-01T00:00:00Z" => 4_102_444_800.0,
        text => text.parse::<f64>().unwrap(),
    };
    let number = |protocol: &str| match protocol {
        "tcp" => 6,
        "udp" => 17,
        number => number.parse::<u64>().unwrap(),
    };
    let rule = RULES.iter().find(|(_, from, to, either, port, to_port, protocol, start, end)| {
        let either_end = [(source, &row["source_port"]), (destination, &row["destination_port"])];
        has_address(from, source)
            && has_address(to, destination)
            && either_end.iter().any(|(address, own)| has_address(either, *address) && has_port(port, own))
            && has_port(to_port, &row["destination_port"])
            && (protocol.is_empty() || row["protocol"].as_u64() == Some(number(protocol)))
            && (start.is_empty() || seconds("end") >= time(start))
            && (end.is_empty() || seconds("start") <= time(end))
    });
    rule.map(|rule| rule.0)
}

#[test]
fn labels_are_those_of_a_join_of_all_flows_with_all_rules() {
    let folder = Folder::new();
    let lines = RULES.iter().map(|(label, from, to, either, port, to_port, protocol, start, end)| {
        format!("{from},{to},{label},{either},{port},{to_port},{protocol},{start},{end}\n")
    });
    let header = "source,destination,label,address,port,destination_port,protocol,start,end\n# A comment.\n";
    let rules = folder.file("rules.csv", (header.to_owned() + &lines.collect::<String>()).as_bytes());
    let mut seen = std::collections::BTreeSet::new();
    for capture in ["web.pcap", "dns.pcap", "mail.pcap", "ssh.pcap", "any.pcap"] {
        for row in rows(capture, &["--label", &rules, "--features", "cic"]) {
            let expected = naive(&row);
            assert_eq!(row["label"].as_str(), expected, "{}", row["Flow ID"]);
            assert_eq!(row["Label"].as_str(), expected, "{}", row["Flow ID"]);
            seen.extend(expected);
        }
    }
    assert!(seen.len() >= 5 && !seen.contains("shadowed") && !seen.contains("later"), "{seen:?}");
}

#[test]
fn names_of_servers_are_those_of_messages_or_of_dns() {
    let content = rows("web.pcap", &["--server-name", "content"]);
    let named = |evidence: &str| {
        let names = content.iter().filter(|row| row["server_name_evidence"] == evidence);
        names.map(|row| row["server_name"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(named("tls").len(), 7);
    assert!(named("http").len() > 5 && named("http").iter().all(|name| name.ends_with(".example")));
    // There is no query of the client in this capture.
    assert_eq!(rows("web.pcap", &["--server-name", "dns"]), content);
    let chosen = rows("web.pcap", &["--server-name", "dns", "--fields", "end"]);
    let is_chosen =
        |row: &Value| row.as_object().unwrap().keys().all(|name| name == "end" || name.starts_with("server"));
    assert!(chosen.iter().all(is_chosen));
}

/// Returns a value in the format of MaxMind databases (version 2.0): its type and length, and its octets.
fn encoded(value: &Value) -> Vec<u8> {
    let head = |kind: u8, len: usize| match len {
        0..29 => vec![kind << 5 | len as u8],
        _ => vec![kind << 5 | 29, (len - 29) as u8],
    };
    match value {
        Value::String(text) => [head(2, text.len()), text.as_bytes().to_vec()].concat(),
        Value::Number(number) => {
            let octets = (number.as_u64().unwrap() as u32).to_be_bytes();
            [head(6, 4), octets.to_vec()].concat()
        }
        // Numbers of 16 bits.
        Value::Array(numbers) => {
            let octets = (numbers[0].as_u64().unwrap() as u16).to_be_bytes();
            [head(5, 2), octets.to_vec()].concat()
        }
        Value::Object(map) => {
            let items =
                map.iter().map(|(name, value)| [encoded(&name.as_str().into()), encoded(value)].concat());
            [head(7, map.len()), items.collect::<Vec<_>>().concat()].concat()
        }
        other => panic!("{other}"),
    }
}

/// Returns a database of IPv6 with one record for each network; IPv4 is in the network ::/96.
pub(super) fn database(networks: &[(&str, u32, Value)]) -> Vec<u8> {
    let mut nodes: Vec<[Option<u32>; 2]> = vec![[None; 2]];
    let (mut data, mut leaves) = (Vec::new(), Vec::new());
    for (network, len, value) in networks {
        let (bits, len) = match network.parse().unwrap() {
            IpAddr::V4(address) => (u128::from(address.to_bits()), len + 96),
            IpAddr::V6(address) => (address.to_bits(), *len),
        };
        let mut node = 0;
        for place in 0..len {
            let bit = (bits >> (127 - place) & 1) as usize;
            if place + 1 == len {
                leaves.push((node, bit, data.len() as u32));
            } else if let Some(next) = nodes[node][bit] {
                node = next as usize;
            } else {
                let next = nodes.len();
                nodes[node][bit] = Some(next as u32);
                nodes.push([None; 2]);
                node = next;
            }
        }
        data.extend(encoded(value));
    }
    let node_count = nodes.len() as u32;
    for (node, bit, at) in leaves {
        nodes[node][bit] = Some(node_count + 16 + at);
    }
    let records = nodes.into_iter().flatten().map(|record| record.unwrap_or(node_count));
    let tree: Vec<u8> = records.flat_map(|record| record.to_be_bytes()).collect();
    let metadata = serde_json::json!({
        "binary_format_major_version": [2], "binary_format_minor_version": [0], "database_type": "Test",
        "description": {"en": "A test"}, "ip_version": [6], "node_count": node_count, "record_size": [32],
    });
    // An empty list of languages and a time of 64 bits, whose types are extended.
    let mut metadata = encoded(&metadata);
    metadata[0] += 2;
    metadata.extend(
        [encoded(&"languages".into()), vec![0, 4], encoded(&"build_epoch".into()), vec![1, 2, 7]].concat(),
    );
    [tree, vec![0; 16], data, b"\xab\xcd\xefMaxMind.com".to_vec(), metadata].concat()
}

#[test]
fn locations_are_those_of_the_databases() {
    let folder = Folder::new();
    let city = database(&[
        (
            "10.77.0.0",
            24,
            serde_json::json!({"country": {"iso_code": "CH"}, "city": {"names": {"en": "Zürich"}}}),
        ),
        ("2001:db8:77::", 48, serde_json::json!({"country_code": "AT", "city": "Wien"})),
    ]);
    let asn = database(&[(
        "10.77.0.2",
        32,
        serde_json::json!({"autonomous_system_number": 64_500, "autonomous_system_organization": "Example"}),
    )]);
    let (city, asn) = (folder.file("city.mmdb", &city), folder.file("asn.mmdb", &asn));
    let found = rows("web.pcap", &["--geoip", &city, "--geoip", &asn]);
    let mut located_count = 0;
    for row in &found {
        for end in ["source", "destination"] {
            let address = row[format!("{end}_address")].as_str().unwrap();
            let (country, town) = match address {
                address if address.starts_with("10.77.0.") => (Some("CH"), Some("Zürich")),
                address if address.starts_with("2001:db8:77:") => (Some("AT"), Some("Wien")),
                _ => (None, None),
            };
            assert_eq!(row[format!("{end}_country")].as_str(), country, "{address}");
            assert_eq!(row[format!("{end}_city")].as_str(), town, "{address}");
            let (number, organization) =
                if address == "10.77.0.2" { (Some(64_500), Some("Example")) } else { (None, None) };
            assert_eq!(row[format!("{end}_asn")].as_u64(), number, "{address}");
            assert_eq!(row[format!("{end}_as_organization")].as_str(), organization, "{address}");
            located_count += usize::from(country.is_some());
        }
    }
    assert!(located_count > found.len());
}

#[test]
fn packets_have_rows_whose_sums_are_those_of_the_flows() {
    for capture in ["web.pcap", "vlan.pcapng", "any.pcap"] {
        let packets = |options: &[&str]| {
            let run = run(&[&["packets", capture, "-q"], options].concat());
            assert_eq!((run.status, run.err.as_str()), (0, ""));
            objects(&run.out)
        };
        let sum = |rows: &[Value], names: &[&str]| -> u64 {
            rows.iter().flat_map(|row| names.iter().map(|name| row[*name].as_u64().unwrap())).sum()
        };
        for options in
            [&[][..], &["--filter", "tcp port 80"], &["--filter", "src host 10.77.0.2 and dst port 443"]]
        {
            let flows = rows(capture, options);
            let packets = packets(options);
            assert_eq!(
                packets.len() as u64,
                sum(&flows, &["packet_count", "reverse_packet_count"]),
                "{options:?}"
            );
            let octets = sum(&flows, &["octet_count", "reverse_octet_count"]);
            assert_eq!(sum(&packets, &["wire_len"]), octets, "{options:?}");
            let payload = sum(&flows, &["payload_octet_count", "reverse_payload_octet_count"]);
            assert_eq!(sum(&packets, &["payload_len"]), payload, "{options:?}");
        }
    }
    let run = run(&["packets", "web.pcap", "-q", "-f", "csv", "--fields", "tcp_flags,timestamp"]);
    assert!(run.out.starts_with("tcp_flags,timestamp\n"), "{}", run.err);
    let unknown = super::run(&["packets", "web.pcap", "--fields", "wire_length"]).err;
    assert!(unknown.contains("`wire_length` is not a field; did you mean `wire_len`?"), "{unknown}");
}

#[test]
fn bad_requests_are_refused() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| folder.file(name, text.as_bytes());
    let rules = file("rules.csv", "label,source\na,10.0.0.0/8\n");
    let absent = folder.path("absent");
    for (options, status, message) in [
        (["--label", &rules, "-f", "table"], 2, "--label requires --format ndjson, csv, parquet or arrow"),
        (["--server-name", "content", "-f", "ipfix"], 2, "--server-name requires --format"),
        (["--server-name", "whois", "-f", "csv"], 2, "invalid value 'whois' for '--server-name"),
        (["--label", &rules, "--format=csv", "--shards=2"], 2, "--label cannot be combined with --shards"),
        (["--label", &absent, "-f", "csv"], 1, "absent: No such file"),
        (["--geoip", &rules, "-f", "csv"], 1, "rules.csv: "),
        (["--label", &file("a", "source\n10.0.0.1\n"), "-f", "csv"], 1, "one of which is `label`"),
        (["--label", &file("b", "label\n\"\"\n"), "-f", "csv"], 1, "b: line 2: the label is empty"),
        (
            ["--label", &file("c", "label,source\nx,10.0.0.0/33\n"), "-f", "csv"],
            1,
            "`10.0.0.0/33` is no address",
        ),
        (["--label", &file("d", "label,port\nx,1\nx,9-2\n"), "-f", "csv"], 1, "line 3: `9-2` is no port"),
        (["--label", &file("e", "label,start\nx,monday\n"), "-f", "csv"], 1, "`monday` is no time"),
        (
            ["--label", &file("f", "label,ports\nx,1\n"), "-f", "csv"],
            1,
            "`ports` is no column; the columns are",
        ),
        (
            ["--label", &file("i", "label,ports\nx,\n"), "-f", "csv"],
            1,
            "i: `ports` is no column; the columns are label, ",
        ),
        (
            ["--label", &file("j", "label,port,port\nx,1,2\n"), "-f", "csv"],
            1,
            "the column `port` is listed twice",
        ),
        (["--label", &file("g", "label,port\nx\n"), "-f", "csv"], 1, "g: CSV error"),
        (["--label", &file("h", "label,protocol\nx,tcpp\n"), "-f", "csv"], 1, "`tcpp` is no IP protocol"),
    ] {
        let run = run(&[&["flows", "web.pcap"][..], &options].concat());
        assert_eq!((run.status, run.out.as_str()), (status, ""), "{options:?}: {}", run.err);
        assert!(run.err.contains(message), "{options:?}: {}", run.err);
    }
    fs::remove_file(rules).unwrap();
}
