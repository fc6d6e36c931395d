//! Comparison of messages with the fields in nDPI's results other than the protocol: hosts, URLs, status codes,
//! versions, suites, certificates and HASSH.

use std::collections::{BTreeMap, BTreeSet};

use flowgauge::base::FlowKey;
use serde_json::Value;

use super::corpus;
use super::messages::{self, Observed};
use super::ndpi::{field, parse_flow};

/// Values that differ: the capture, the field, nDPI's value, and the reason.
const DIFFERING: &[(&str, &str, &str, &str)] = &[
    ("ssh.pcap", "Hostname/SNI", "SSH-2.0-OpenSSH_5.3", FIRST),
    ("ssh.pcap", "Server", "SSH-2.0-OpenSSH_5.6", FIRST),
    ("fuzz-2006-06-26-2594.pcap", "Hostname/SNI", "1.0.0.127?in-ad_r?arpa???", CORRUPTED),
    ("fuzz-2006-06-26-2594.pcap", "Hostname/SNI", "eci_domain", CORRUPTED_NETBIOS),
    ("fuzz-2006-06-26-2594.pcap", "Hostname/SNI", "eci_dom", CORRUPTED_NETBIOS),
    ("fuzz-2006-06-26-2594.pcap", "Hostname/SNI", "workg", CORRUPTED_NETBIOS),
];
const FIRST: &str = "nDPI regards the side that identifies itself first as the client; here it is the server";
const CORRUPTED_NETBIOS: &str =
    "flipped bits: nDPI ends a name of NetBIOS at the first octet that is no letter";
const CORRUPTED: &str = "a fuzzed name with invalid labels, which flowgauge does not parse";

/// Flows without messages, by nDPI's protocol: protocols without a parser in flowgauge, Google's versions of QUIC, and corrupted
/// flows.
const UNPARSED: [(&str, usize); 5] = [("DNS", 3), ("NetBIOS", 2), ("QUIC", 9), ("RTSP", 7), ("SSDP", 13)];

/// A field of a result, and a function that returns its values in messages.
struct Field {
    name: &'static str,
    own: fn(&[&Observed]) -> Vec<String>,
    /// nDPI keeps only the beginning of a long value.
    is_truncated: bool,
}

const FIELDS: [Field; 17] = [
    Field { name: "Hostname/SNI", own: hosts, is_truncated: true },
    Field { name: "URL", own: urls, is_truncated: true },
    Field { name: "StatusCode", own: |flow| values(flow, "http", "response", "status"), is_truncated: false },
    Field { name: "Content-Type", own: media_types, is_truncated: true },
    Field {
        name: "Req Content-Type",
        own: |flow| values(flow, "http", "request", "content_type"),
        is_truncated: true,
    },
    Field { name: "Server", own: servers, is_truncated: true },
    Field {
        name: "User-Agent",
        own: |flow| values(flow, "http", "request", "user_agent"),
        is_truncated: true,
    },
    Field {
        name: "Cipher",
        own: |flow| values(flow, "tls", "server_hello", "cipher_suite"),
        is_truncated: false,
    },
    Field { name: "JA3C", own: |flow| hellos(flow, "client_hello", "ja3"), is_truncated: false },
    Field { name: "JA3S", own: |flow| hellos(flow, "server_hello", "ja3s"), is_truncated: false },
    Field { name: "ServerNames", own: alt_names, is_truncated: false },
    Field { name: "Issuer", own: |flow| names(flow, "issuer"), is_truncated: false },
    Field { name: "Subject", own: |flow| names(flow, "subject"), is_truncated: false },
    Field { name: "Certificate SHA-1", own: fingerprints, is_truncated: false },
    Field { name: "Validity", own: validities, is_truncated: false },
    Field { name: "HASSH-C", own: |flow| hassh(flow, "client"), is_truncated: false },
    Field { name: "HASSH-S", own: |flow| hassh(flow, "server"), is_truncated: false },
];

/// Returns a value of all messages of a protocol and kind.
fn values(flow: &[&Observed], protocol: &str, kind: &str, key: &str) -> Vec<String> {
    let messages = flow.iter().filter(|observed| observed.protocol == protocol && observed.is(kind));
    messages.filter_map(|observed| observed.text(key)).collect()
}

/// Returns the values of TLS hellos over TCP, DTLS and QUIC.
fn hellos(flow: &[&Observed], kind: &str, key: &str) -> Vec<String> {
    ["tls", "dtls", "quic"].into_iter().flat_map(|protocol| values(flow, protocol, kind, key)).collect()
}

/// Returns media types without parameters.
fn media_types(flow: &[&Observed]) -> Vec<String> {
    let types = values(flow, "http", "response", "content_type");
    types.iter().filter_map(|all| all.split(';').next()).map(|name| name.trim().to_owned()).collect()
}

/// Returns names without ports in nDPI's notation: in lower case, with marks for unusual characters.
fn hosts(flow: &[&Observed]) -> Vec<String> {
    let mut all = values(flow, "http", "request", "host");
    all.extend(hellos(flow, "client_hello", "server_name"));
    let questions = flow.iter().filter_map(|observed| observed.message["questions"].as_array()).flatten();
    all.extend(questions.filter_map(|question| messages::text(&question["name"])));
    let records = ["answers", "authorities", "additionals"]
        .into_iter()
        .flat_map(|key| flow.iter().filter_map(move |observed| observed.message[key].as_array()).flatten());
    all.extend(records.filter_map(|record| messages::text(&record["name"])));
    all.extend(identifications(flow, "client"));
    all.extend(values(flow, "smtp", "greeting", "host"));
    all.extend(values(flow, "dhcp", "dhcp", "host_name"));
    all.extend(values(flow, "nbns", "nbns", "queried_name").iter().map(|name| name.to_lowercase()));
    all.extend(values(flow, "nbdgm", "nbdgm", "source_name").iter().map(|name| name.to_lowercase()));
    all.extend(
        values(flow, "ftp", "greeting", "text").iter().flat_map(|text| text.split(' ')).map(str::to_owned),
    );
    let shown = |name: &String| {
        let (host, port) = name.rsplit_once(':').unwrap_or((name, ""));
        let host = if port.bytes().all(|octet| octet.is_ascii_digit()) { host } else { name };
        let mut parts = host.split('\\');
        let mut text = parts.next().unwrap_or_default().to_lowercase();
        for part in parts {
            text.extend(["?", part.get(3..).unwrap_or_default()]);
        }
        text.to_lowercase().replace('%', "_")
    };
    all.iter().map(shown).chain(all.clone()).collect()
}

fn urls(flow: &[&Observed]) -> Vec<String> {
    let requests = flow.iter().filter(|observed| observed.protocol == "http" && observed.is("request"));
    let url = |observed: &&Observed| {
        let (host, target) =
            (observed.text("host").unwrap_or_default(), observed.text("target").unwrap_or_default());
        [format!("{host}{target}"), target]
    };
    requests.flat_map(url).collect()
}

fn servers(flow: &[&Observed]) -> Vec<String> {
    let mut all = values(flow, "http", "response", "server");
    all.extend(identifications(flow, "server"));
    all
}

fn identifications(flow: &[&Observed], from: &str) -> Vec<String> {
    let lines = flow.iter().filter(|observed| observed.from.name() == from && observed.is("identification"));
    let line = |observed: &&Observed| {
        let comments = observed.text("comments").map(|comments| format!(" {comments}")).unwrap_or_default();
        let [version, software] =
            ["protocol_version", "software_version"].map(|key| observed.text(key).unwrap_or_default());
        format!("SSH-{version}-{software}{comments}")
    };
    lines.map(line).collect()
}

fn hassh(flow: &[&Observed], from: &str) -> Vec<String> {
    let offers = flow.iter().filter(|observed| observed.from.name() == from && observed.is("kex_init"));
    let key = if from == "client" { "hassh" } else { "hassh_server" };
    offers.filter_map(|observed| observed.text(key)).map(|hassh| hassh.to_uppercase()).collect()
}

/// Returns the certificates of servers and clients.
fn certificates<'a>(flow: &[&'a Observed]) -> Vec<&'a Value> {
    flow.iter().filter_map(|observed| observed.message["certificates"].as_array()).flatten().collect()
}

fn alt_names(flow: &[&Observed]) -> Vec<String> {
    let names = |certificate: &&Value| {
        let names = certificate["alt_names"].as_array()?.iter();
        let name = |name: &Value| messages::text(&name["dns"]).or_else(|| messages::text(&name["ip"]));
        Some(names.filter_map(name).collect::<Vec<_>>().join(","))
    };
    certificates(flow).iter().filter_map(names).collect()
}

fn fingerprints(flow: &[&Observed]) -> Vec<String> {
    let fingerprint = |certificate: &&Value| {
        let digits = messages::text(&certificate["sha1"])?.to_uppercase();
        Some(
            digits
                .as_bytes()
                .chunks(2)
                .map(|pair| String::from_utf8_lossy(pair))
                .collect::<Vec<_>>()
                .join(":"),
        )
    };
    certificates(flow).iter().filter_map(fingerprint).collect()
}

fn validities(flow: &[&Observed]) -> Vec<String> {
    let time = |value: &Value| Some(messages::text(value)?.replace('T', " ").replace('Z', ""));
    let validity = |certificate: &&Value| {
        Some(format!("{} - {}", time(&certificate["not_before"])?, time(&certificate["not_after"])?))
    };
    certificates(flow).iter().filter_map(validity).collect()
}

/// Returns names with the attributes that nDPI knows, the least specific one first, without escapes.
fn names(flow: &[&Observed], key: &str) -> Vec<String> {
    let name = |certificate: &&Value| {
        let text = messages::text(&certificate[key])?;
        let mut parts = vec![String::new()];
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                ',' => parts.push(String::new()),
                '\\' => parts.last_mut()?.extend(letters.next()),
                letter => parts.last_mut()?.push(letter),
            }
        }
        parts
            .retain(|part| ["C=", "ST=", "L=", "O=", "OU=", "CN="].iter().any(|kind| part.starts_with(kind)));
        parts.reverse();
        Some(parts.join(", "))
    };
    certificates(flow).iter().filter_map(name).collect()
}

#[test]
fn fields_match_ndpi() {
    let Some(captures) = corpus::captures() else { return };
    let mut counts = BTreeMap::<&str, (usize, usize)>::new();
    let (mut listed, mut differing) = (BTreeSet::new(), Vec::new());
    // Flows for which nDPI reports fields, but flowgauge has no parser.
    let mut unparsed = BTreeMap::<String, usize>::new();
    for capture in &captures {
        let results: Vec<_> = capture.oracles("ndpi").collect();
        if results.is_empty() {
            continue;
        }
        let observed = messages::of(&capture.path());
        let mut flows: BTreeMap<FlowKey, Vec<&Observed>> = BTreeMap::new();
        for message in &observed {
            flows.entry(message.key).or_default().push(message);
        }
        for path in results {
            let text = std::fs::read_to_string(&path).expect("text");
            for (line, theirs) in text.lines().filter_map(|line| Some((line, parse_flow(line)?))) {
                let is_parsed =
                    |flow: &&Vec<&Observed>| !flow.iter().all(|observed| observed.is("unsupported_version"));
                let Some(flow) = flows.get(&theirs.key).filter(is_parsed) else {
                    let has_fields =
                        FIELDS.iter().any(|field_info| line.contains(&format!("[{}: ", field_info.name)));
                    *unparsed.entry(theirs.master).or_default() += usize::from(has_fields);
                    continue;
                };
                for field_info in &FIELDS {
                    let Some(value) = field(line, &format!("[{}: ", field_info.name)) else { continue };
                    // nDPI appends its assessment to a suite or fingerprint.
                    let value =
                        value.split(" (").next().filter(|_| !field_info.is_truncated).unwrap_or(value);
                    let own = (field_info.own)(flow);
                    let is_same = |own: &String| {
                        own == value
                            || (field_info.is_truncated && value.len() > 30 && own.starts_with(value))
                    };
                    let (equal, all) = counts.entry(field_info.name).or_default();
                    *all += 1;
                    if own.iter().any(is_same) {
                        *equal += 1;
                    } else {
                        let name = capture.name.rsplit('/').next().unwrap_or_default();
                        let is_listed = |(capture, field, listed, _): &&(&str, &str, &str, &str)| {
                            (*capture, *field, *listed) == (name, field_info.name, value)
                        };
                        match DIFFERING.iter().find(is_listed) {
                            Some(entry) => {
                                listed.insert(entry);
                            }
                            None => {
                                differing.push(format!("{name} {} {value}, own {own:?}", field_info.name))
                            }
                        }
                    }
                }
            }
        }
    }
    for (name, (equal, all)) in &counts {
        println!("{name}: {equal} of {all}");
    }
    unparsed.retain(|_, count| *count > 0);
    println!("flows without messages: {unparsed:?}");
    assert_eq!(unparsed, UNPARSED.map(|(name, count)| (name.to_owned(), count)).into());
    for (capture, field, value, why) in &listed {
        println!("{capture}: {field} {value}: {why}");
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert_eq!(listed.len(), DIFFERING.len(), "some listed entries are no longer needed");
    assert!(counts.len() == FIELDS.len() && counts["URL"].0 > 50, "too few values were compared: {counts:?}");
}
