//! Comparison of methods, targets, hosts and status codes of HTTP/1.x and HTTP/2 with tshark. The lists of values must
//! be equal for each five-tuple.

use std::collections::BTreeMap;
use std::process::Command;

use flowgauge::base::{FlowKey, IpProtocol};
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::http1::{self, HttpParser};
use flowgauge::protocols::http2::{self, Http2Parser};
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::tracker::{Flow, Interest};
use serde_json::Value;

use super::corpus::{self, Capture};
use super::layers;
use super::support::run_without_timeouts;

flowgauge::protocols! {
    /// The parsers of HTTP/1.x and HTTP/2.
    #[derive(Debug)]
    enum Http;
    /// Their messages.
    #[derive(Debug)]
    enum Observed;
    parsers { Http1: HttpParser = &http1::PROTOCOL, Http2: Http2Parser = &http2::PROTOCOL }
}

/// A capture for which tshark's values differ, and the reason.
struct Listed {
    capture: &'static str,
    why: &'static str,
    /// All differences, in the format that the test prints.
    differences: &'static [&'static str],
}

const TRUNCATED: &str =
    "the snap length truncates the request line, so its target is unknown; tshark shows the captured part";

const LISTED: &[Listed] = &[
    Listed {
        capture: "suricata-verify/bug-3844/input.pcap",
        why: "a request line without version and end, and a body as the response: HTTP/0.9, which Suricata reports too",
        differences: &[
            "tcp 1.1.1.1:12345 <-> 2.2.2.2:8080: http.request.method [\"GET\"], tshark [] or []",
            "tcp 1.1.1.1:12345 <-> 2.2.2.2:8080: http.request.uri [\"/\"], tshark [] or []",
        ],
    },
    Listed {
        capture: "suricata-verify/tcp-urgp-01-oob/tcp-urgent1.pcap",
        why: "urgent data remains in the stream (RFC 6093), here within the target; tshark stops at the urgent data",
        differences: &[
            "tcp 10.10.10.44:43950 <-> 10.10.10.55:9090: http.request.method [\"GET\"], tshark [] or []",
            "tcp 10.10.10.44:43950 <-> 10.10.10.55:9090: http.request.uri [\"/malicXious\"], tshark [] or []",
            "tcp 10.10.10.44:43950 <-> 10.10.10.55:9090: http.host [\"10.10.10.55:9090\"], tshark [] or []",
        ],
    },
    Listed {
        capture: "arkime/gre-erspan-vxlan.pcap",
        why: "the target contains a space; tshark ends it there",
        differences: &[
            "tcp 10.16.27.12:65174 <-> 10.16.27.131:80: http.request.uri [\"/Hello Arkime\"], tshark [\"/Hello\"] or [\"/Hello\"]",
        ],
    },
    Listed {
        capture: "tcptrace/http.dmp",
        why: "segments are missing within bodies; tshark finds no messages after these gaps",
        differences: &[
            "tcp 132.235.3.132:33688 <-> 132.235.3.154:80: http.response.code [\"200\", \"301\"], tshark [] or [\"200\"]",
            "tcp 132.235.3.132:33690 <-> 132.235.3.154:80: http.response.code [\"200\", \"200\"], tshark [] or [\"200\"]",
            "tcp 132.235.3.132:33674 <-> 216.52.45.129:80: http.response.code [\"200\", \"200\", \"304\", \"200\", \"200\"], \
             tshark [] or [\"200\"]",
        ],
    },
    Listed {
        capture: "tcptrace/rawip.dmp",
        why: TRUNCATED,
        differences: &[
            "tcp 207.110.0.206:80 <-> 208.200.110.46:1351: http.request.method [], tshark [\"GET\"] or [\"GET\"]",
            "tcp 207.110.0.206:80 <-> 208.200.110.46:1351: http.request.uri [], tshark [\"/archive-dv7cnezqmiuciuf\"] or \
             [\"/archive-dv7cnezqmiuciuf\"]",
        ],
    },
    Listed {
        capture: "tcptrace/single_byte_rexmit.dmp",
        why: "the snap length truncates request lines, so their targets are unknown; tshark shows the captured parts, and \
              repeats retransmissions",
        differences: &[
            "tcp 30.229.118.67:37143 <-> 67.82.9.253:80: http.request.method [\"GET\", \"GET\"], tshark [\"GET\", \"GET\", \"GET\", \
             \"GET\", \"GET\"] or [\"GET\", \"GET\", \"GET\", \"GET\", \"GET\"]",
            "tcp 30.229.118.67:37143 <-> 67.82.9.253:80: http.request.uri [\"/kangal/basic.php\", \"/kangal/images/left1.gif\"], \
             tshark [\"/kangal/basic.php\", \"/kangal/basic.php\", \"/kangal/images/header3.gif\", \"/kangal/images/left1.gif\", \
             \"/kangal/images/right1.gif\"] or [\"/kangal/basic.php\", \"/kangal/basic.php\", \"/kangal/images/header3.gif\", \
             \"/kangal/images/left1.gif\", \"/kangal/images/right1.gif\"]",
            "tcp 30.229.118.67:37143 <-> 67.82.9.253:80: http.response.code [\"200\", \"200\", \"200\", \"200\"], tshark [\"200\", \
             \"200\", \"200\", \"200\", \"200\"] or [\"200\", \"200\", \"200\", \"200\", \"200\"]",
        ],
    },
    Listed {
        capture: "community-id-spec/tcp.pcap",
        why: TRUNCATED,
        differences: &[
            "tcp 66.35.250.204:80 <-> 128.232.110.120:34855: http.request.method [], tshark [\"GET\"] or [\"GET\"]",
            "tcp 66.35.250.204:80 <-> 128.232.110.120:34855: http.request.uri [], tshark [\"/images/sf.net_box.gif\"] or \
             [\"/images/sf.net_box.gif\"]",
        ],
    },
    Listed {
        capture: "arkime/http2-nghttp2.pcap",
        why: "the first request has 18 KiB of fields, in a block of several frames over many segments, which tshark does not \
              reassemble; the second one is a promised request",
        differences: &[
            "tcp 10.89.85.15:49570 <-> 139.162.123.134:80: http2.headers.method [\"GET\", \"GET\"], tshark [\"GET\"] or [\"GET\"]",
            "tcp 10.89.85.15:49570 <-> 139.162.123.134:80: http2.headers.path [\"/\", \"/stylesheets/screen.css\"], \
             tshark [\"/stylesheets/screen.css\"] or [\"/stylesheets/screen.css\"]",
            "tcp 10.89.85.15:49570 <-> 139.162.123.134:80: http2.headers.authority [\"nghttp2.org\", \"nghttp2.org\"], \
             tshark [\"nghttp2.org\"] or [\"nghttp2.org\"]",
        ],
    },
    Listed {
        capture: "nDPI/KakaoTalk_talk.pcap",
        why: "a middlebox changed the sequence numbers, so SYN-ACK and data do not match; tshark waits for octets after the SYN-ACK",
        differences: &[
            "tcp 10.24.82.188:48489 <-> 203.205.147.215:80: http.response.code [\"200\"], tshark [] or []",
        ],
    },
];

/// The names of the compared fields in tshark.
const FIELDS: [&str; 8] = [
    "http.request.method",
    "http.request.uri",
    "http.host",
    "http.response.code",
    "http2.headers.method",
    "http2.headers.path",
    "http2.headers.authority",
    "http2.headers.status",
];

/// Values of each field, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Values([Vec<String>; FIELDS.len()]);

type Flows = BTreeMap<FlowKey, Values>;

#[derive(Default)]
struct Collect {
    flows: Flows,
    stops: Vec<String>,
}

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Http>;

    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, _meta: &MessageMeta, message: &Observed<'_>) {
        let Values([methods, targets, hosts, codes, methods2, paths, authorities, statuses]) =
            self.flows.entry(*flow.view.key()).or_default();
        match message {
            Observed::Http1(http1::Message::Request(request)) => {
                methods.push(printed(request.method.0));
                targets.push(printed(request.target.0));
                hosts.extend(request.host.filter(|host| !host.is_empty()).map(|host| printed(host.0)));
            }
            Observed::Http1(http1::Message::Response(response)) => codes.push(response.status.to_string()),
            Observed::Http2(http2::Message::Request(request)) => {
                methods2.push(printed(request.method.0));
                paths.push(printed(request.target.0));
                authorities.extend(request.host.map(|host| printed(host.0)));
            }
            Observed::Http2(http2::Message::Response(response)) => statuses.push(response.status.to_string()),
            _ => {}
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault, .. } = event {
            self.stops.push(format!("{} stopped: {fault}", flow.view.key()));
        }
    }
}

/// Returns a string in tshark's notation.
fn printed(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn ours(capture: &Capture) -> Collect {
    run_without_timeouts(&capture.path(), Collect::default())
}

/// Returns tshark's values, or `None` if it is not installed.
fn theirs(capture: &Capture, reassembles_bodies: bool) -> Option<Flows> {
    if !layers::has_any(capture, &["http", "http2"]) {
        return Some(Flows::new());
    }
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args(["-o", &format!("http.desegment_body:{}", reassembles_bodies)]);
    command.args([
        "-Y",
        "(http || http2) && tcp && !tls",
        "-T",
        "fields",
        "-E",
        "aggregator=\u{1}",
        "-e",
        "tcp.stream",
    ]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().ok()?;
    let keys = keys(capture);
    let mut flows = Flows::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut columns = line.split('\t');
        let stream = columns.next().and_then(|text| text.split('\u{1}').next_back()).expect("a stream");
        let own_values = flows.entry(keys[stream]).or_default();
        for (values, column) in own_values.0.iter_mut().zip(columns) {
            values.extend(column.split('\u{1}').filter(|value| !value.is_empty()).map(str::to_owned));
        }
    }
    flows.retain(|_, values| *values != Values::default());
    Some(flows)
}

/// Returns the five-tuples of tshark's streams by stream number.
fn keys(capture: &Capture) -> BTreeMap<String, FlowKey> {
    let text = std::fs::read_to_string(capture.derived("tshark-flows.json")).expect("a derived file");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let end = |end: &Value| {
        (end[0].as_str().expect("an address").to_owned(), end[1].as_u64().expect("a port") as u16)
    };
    let key = |stream: &Value| {
        let (a, b) = (end(&stream["a"]), end(&stream["b"]));
        corpus::key(IpProtocol::TCP.0, (&a.0, a.1), (&b.0, b.1)).0
    };
    let streams = json["tcp_streams"].as_array().expect("streams");
    streams.iter().map(|stream| (stream["stream"].to_string(), key(stream))).collect()
}

#[test]
fn http_messages_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let (mut counts, mut failures) = ([(0, 0); FIELDS.len()], Vec::new());
    let (mut equal_count, mut listed_count) = (0, 0);
    for capture in &captures {
        let Some(whole) = theirs(capture, true) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        // tshark omits a response with an incomplete body unless the reassembly of bodies is disabled.
        let heads = if whole.is_empty() { Flows::new() } else { theirs(capture, false).unwrap_or_default() };
        let Collect { flows: ours, stops } = ours(capture);
        let mut found = Vec::new();
        let mut keys: Vec<_> = ours.keys().chain(whole.keys()).chain(heads.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let of = |flows: &Flows| flows.get(key).cloned().unwrap_or_default().0;
            for (position, ((own, whole), head)) in
                of(&ours).iter().zip(of(&whole)).zip(of(&heads)).enumerate()
            {
                counts[position].1 += own.len().max(whole.len());
                if *own == whole || *own == head {
                    counts[position].0 += own.len();
                } else {
                    found.push(format!("{key}: {} {own:?}, tshark {whole:?} or {head:?}", FIELDS[position]));
                }
            }
        }
        found.extend(stops);
        let entry = LISTED.iter().find(|entry| entry.capture == capture.name);
        if found != entry.map_or(&[][..], |entry| entry.differences) {
            failures.push(format!("{}: {found:#?}", capture.name));
        } else if entry.is_some() {
            listed_count += 1;
        } else {
            equal_count += usize::from(!whole.is_empty());
        }
    }
    for entry in LISTED {
        println!("{}: {}", entry.capture, entry.why);
    }
    for (field, (equal, all)) in FIELDS.iter().zip(counts) {
        println!("{field}: {equal} of {all} values in equal lists");
    }
    println!("{equal_count} captures with HTTP equal, {listed_count} listed");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for entry in LISTED {
        assert!(
            captures.iter().any(|capture| capture.name == entry.capture),
            "{} is not a capture of the corpus",
            entry.capture
        );
    }
    let [methods, .., statuses] = counts;
    assert!(methods.0 > 0 && statuses.0 > 0, "nothing was compared");
}
