//! Comparison of messages with the fields of HTTP, TLS, certificates and DNS that Arkime's own tests expect in each
//! session.

use std::collections::{BTreeMap, BTreeSet};

use flowgauge::base::FlowKey;
use md5::{Digest as _, Md5};
use serde_json::Value;
use sha2::Sha256;

use super::corpus;
use super::messages::{self, Observed};

/// Values that differ: the capture, the field, Arkime's value, and the reason.
const DIFFERING: &[(&str, &str, &str, &str)] = &[
    (
        "arkime/gre-erspan-vxlan.pcap",
        "http.uri",
        "/Hello",
        "the target contains a space; Arkime ends it there",
    ),
    ("arkime/http2-nghttp2.pcap", "http.method", "PRI", PREFACE),
    ("arkime/http2-nghttp2.pcap", "http.uri", "*", PREFACE),
];
const PREFACE: &str = "Arkime treats the preface of HTTP/2 as a request";

/// A function that returns the values of a field in messages.
type Extract = fn(&[&Observed]) -> Vec<String>;

/// Fields by their paths in a session.
const FIELDS: [(&str, Extract); 31] = [
    ("http.method", |flow| http(flow, "request", "method")),
    ("http.host", hosts),
    ("http.uri", uris),
    ("http.path", |flow| {
        let mut targets = http(flow, "request", "target");
        targets.extend(values(flow, "http2", "request", "target"));
        targets.iter().filter_map(|target| target.split('?').next()).map(str::to_owned).collect()
    }),
    ("http.useragent", |flow| http(flow, "request", "user_agent")),
    ("http.request-referer", |flow| http(flow, "request", "referer")),
    ("http.statuscode", |flow| http(flow, "response", "status")),
    ("http.response-location", |flow| http(flow, "response", "location")),
    ("http.clientVersion", |flow| http_versions(flow, "request")),
    ("http.serverVersion", |flow| http_versions(flow, "response")),
    ("http.md5", |flow| bodies(flow, |body| hex(&Md5::digest(body)))),
    ("http.sha256", |flow| bodies(flow, |body| hex(&Sha256::digest(body)))),
    ("http.requestBody", |flow| bodies(flow, |body| String::from_utf8_lossy(body).into_owned())),
    ("tls.cipher", |flow| hellos(flow, "server_hello", "cipher_suite")),
    ("tls.version", versions),
    ("tls.ja3", |flow| hellos(flow, "client_hello", "ja3")),
    ("tls.ja3s", |flow| hellos(flow, "server_hello", "ja3s")),
    ("tls.ja4", |flow| hellos(flow, "client_hello", "ja4")),
    ("tls.srcSessionId", |flow| hellos(flow, "client_hello", "session_id")),
    ("tls.dstSessionId", |flow| hellos(flow, "server_hello", "session_id")),
    ("cert.hash", |flow| {
        certificates(flow, |certificate| Some(colons(&messages::text(&certificate["sha1"])?)))
    }),
    ("cert.serial", |flow| certificates(flow, |certificate| messages::text(&certificate["serial"]))),
    ("cert.issuerCN", |flow| certificates(flow, |certificate| part(certificate, "issuer", "CN"))),
    ("cert.issuerON", |flow| certificates(flow, |certificate| part(certificate, "issuer", "O"))),
    ("cert.subjectCN", |flow| certificates(flow, |certificate| part(certificate, "subject", "CN"))),
    ("cert.subjectON", |flow| certificates(flow, |certificate| part(certificate, "subject", "O"))),
    ("cert.subjectOU", |flow| certificates(flow, |certificate| part(certificate, "subject", "OU"))),
    ("dns.queryHost", |flow| questions(flow, "name")),
    ("dns.qt", |flow| questions(flow, "type")),
    ("dns.qc", |flow| questions(flow, "class")),
    ("dns.status", |flow| {
        values(flow, "dns", "response", "rcode").iter().map(|rcode| rcode.to_uppercase()).collect()
    }),
];

fn values(flow: &[&Observed], protocol: &str, kind: &str, key: &str) -> Vec<String> {
    let messages = flow.iter().filter(|observed| observed.protocol == protocol && observed.is(kind));
    messages.filter_map(|observed| observed.text(key)).collect()
}

/// Returns the values of TLS hellos over TCP, DTLS and QUIC.
fn hellos(flow: &[&Observed], kind: &str, key: &str) -> Vec<String> {
    ["tls", "dtls", "quic"].into_iter().flat_map(|protocol| values(flow, protocol, kind, key)).collect()
}

/// Returns a value of all messages of a kind of HTTP/1.x and HTTP/2.
fn http(flow: &[&Observed], kind: &str, key: &str) -> Vec<String> {
    ["http", "http2"].into_iter().flat_map(|protocol| values(flow, protocol, kind, key)).collect()
}

fn http_versions(flow: &[&Observed], kind: &str) -> Vec<String> {
    let mut versions = values(flow, "http", kind, "version");
    versions.extend(values(flow, "http2", kind, "transaction").iter().map(|_| "2.0".to_owned()));
    versions
}

/// Returns hosts with and without ports, and the server names of TLS, which Arkime includes.
fn hosts(flow: &[&Observed]) -> Vec<String> {
    let mut all = http(flow, "request", "host");
    let without_port = |host: &String| host.rsplit_once(':').map(|(host, _)| host.to_owned());
    all.extend(all.clone().iter().filter_map(without_port));
    all.extend(hellos(flow, "client_hello", "server_name"));
    all
}

fn uris(flow: &[&Observed]) -> Vec<String> {
    let requests = flow.iter().filter(|observed| observed.protocol == "http" && observed.is("request"));
    let uri = |observed: &&Observed| {
        observed.text("host").unwrap_or_default() + &observed.text("target").unwrap_or_default()
    };
    requests.map(uri).collect()
}

fn bodies(flow: &[&Observed], show: fn(&[u8]) -> String) -> Vec<String> {
    flow.iter().filter(|observed| !observed.body.is_empty()).map(|observed| show(&observed.body)).collect()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Returns TLS versions with Arkime's names.
fn versions(flow: &[&Observed]) -> Vec<String> {
    let name = |name: &String| match name.split_once(" (draft ") {
        Some((_, draft)) => format!("TLSv1.3-draft-{}", draft.trim_end_matches(')')),
        None if name == "SSL 3.0" => "SSLv3".to_owned(),
        None => name.replace("TLS 1.0", "TLSv1").replace("TLS ", "TLSv"),
    };
    hellos(flow, "server_hello", "version").iter().map(name).collect()
}

fn certificates(flow: &[&Observed], of: fn(&Value) -> Option<String>) -> Vec<String> {
    flow.iter()
        .filter_map(|observed| observed.message["certificates"].as_array())
        .flatten()
        .filter_map(of)
        .collect()
}

fn colons(digits: &str) -> String {
    let pairs = digits.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair));
    pairs.collect::<Vec<_>>().join(":")
}

/// Returns an attribute of a name. Common names are in lower case.
fn part(certificate: &Value, key: &str, kind: &str) -> Option<String> {
    let name = messages::text(&certificate[key])?.replace("\\,", "\u{1}");
    let part =
        name.split(',').find_map(|part| part.strip_prefix(kind)?.strip_prefix('='))?.replace('\u{1}', ",");
    Some(if kind == "CN" { part.to_lowercase() } else { part })
}

fn questions(flow: &[&Observed], key: &str) -> Vec<String> {
    let questions = flow.iter().filter_map(|observed| observed.message["questions"].as_array()).flatten();
    questions.filter_map(|question| messages::text(&question[key])).collect()
}

/// Returns the values of a field at a path, including those of each item if a list is on the path.
fn expected(body: &Value, path: &str) -> Vec<String> {
    let mut values = vec![body];
    for key in path.split('.') {
        let inner = values.into_iter().map(|value| &value[key]);
        values = inner
            .flat_map(|value| value.as_array().map_or_else(|| vec![value], |list| list.iter().collect()))
            .collect();
    }
    values.into_iter().filter_map(messages::text).collect()
}

/// Compares the validity times of certificates in seconds. Returns the number of equal times and the missing ones.
fn compare_times(body: &Value, flow: &[&Observed]) -> (usize, Vec<String>) {
    let own: BTreeSet<String> = ["not_before", "not_after"]
        .into_iter()
        .flat_map(|key| {
            flow.iter()
                .filter_map(|observed| observed.message["certificates"].as_array())
                .flatten()
                .filter_map(move |certificate| messages::text(&certificate[key]))
        })
        .collect();
    let (mut equal_count, mut missing) = (0, Vec::new());
    for key in ["cert.notBefore", "cert.notAfter"] {
        for milliseconds in expected(body, key) {
            let seconds = milliseconds.parse::<i64>().expect("a number") / 1000;
            let time = flowgauge::protocols::tls::CertificateTime(seconds).to_string();
            if own.contains(&time) { equal_count += 1 } else { missing.push(time) }
        }
    }
    (equal_count, missing)
}

#[test]
fn fields_match_arkime() {
    let Some(captures) = corpus::captures() else { return };
    let mut counts = BTreeMap::<&str, usize>::new();
    let (mut listed, mut differing) = (BTreeSet::new(), Vec::new());
    for capture in &captures {
        let tests: Vec<_> = capture.oracles("arkime").collect();
        if tests.is_empty() {
            continue;
        }
        let observed = messages::of(&capture.path());
        let mut flows: BTreeMap<FlowKey, Vec<&Observed>> = BTreeMap::new();
        for message in &observed {
            flows.entry(message.key).or_default().push(message);
        }
        for path in tests {
            let json: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).expect("text")).expect("JSON");
            for session in json["sessions3"].as_array().into_iter().flatten() {
                let body = &session["body"];
                let end = |name: &str| {
                    let port = body[name]["port"].as_u64().unwrap_or_default() as u16;
                    (body[name]["ip"].as_str().expect("an address").to_owned(), port)
                };
                let (source, target) = (end("source"), end("destination"));
                let protocol = body["ipProtocol"].as_u64().expect("a number") as u8;
                let (key, _) = corpus::key(protocol, (&source.0, source.1), (&target.0, target.1));
                let flow = flows.get(&key).map_or(&[][..], Vec::as_slice);
                let (equal_count, missing) = compare_times(body, flow);
                *counts.entry("cert.notBefore, notAfter").or_default() += equal_count;
                differing.extend(missing.iter().map(|time| format!("{}: {time}", capture.name)));
                for (field, own) in FIELDS {
                    let own = own(flow);
                    for value in expected(body, field) {
                        if own.contains(&value) {
                            *counts.entry(field).or_default() += 1;
                            continue;
                        }
                        let is_listed = |(capture_name, name, listed, _): &&(&str, &str, &str, &str)| {
                            (*capture_name, *name, *listed) == (capture.name.as_str(), field, value.as_str())
                        };
                        match DIFFERING.iter().find(is_listed) {
                            Some(entry) => {
                                listed.insert(entry);
                            }
                            None => {
                                differing.push(format!("{}: {field} {value:?}, own {own:?}", capture.name))
                            }
                        }
                    }
                }
            }
        }
    }
    println!("values that agree: {counts:?}");
    for (capture, field, value, why) in &listed {
        println!("{capture}: {field} {value}: {why}");
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert_eq!(listed.len(), DIFFERING.len(), "some listed entries are no longer needed");
    assert!(counts.values().sum::<usize>() > 100, "too few values were compared: {counts:?}");
}
