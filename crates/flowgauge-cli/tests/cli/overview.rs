//! `flowgauge summary` on captures with known answers, which are written here.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::trace::{Connection, Trace};
use super::{objects, run, run_with_input};

/// Returns the findings of a capture on standard input.
fn findings(capture: &[u8]) -> Vec<Value> {
    let run = run_with_input(&["summary", "-", "--format", "ndjson", "-q"], capture);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    objects(&run.out)
}

fn kinds(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["finding"].as_str().unwrap()).collect()
}

/// Connections that no finding is about.
fn ordinary(trace: &mut Trace) {
    for number in 0..40_u64 {
        // Irregular times.
        let time = number * number * 37_000 + 11_000;
        let client = ([10, 0, 0, 20 + (number % 5) as u8], 40_000 + number as u16);
        let body = "x".repeat(3000 + 100 * number as usize);
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let request = format!("GET /{number} HTTP/1.1\r\nHost: www.lab.example\r\n\r\n");
        trace.exchange(time, [client, ([198, 51, 100, 80], 80)], request.as_bytes(), response.as_bytes());
    }
}

#[test]
fn ordinary_traffic_has_no_findings() {
    let mut trace = Trace::new();
    ordinary(&mut trace);
    assert_eq!(findings(&trace.file()), Vec::<Value>::new());
}

#[test]
fn a_scan_is_seen() {
    let mut trace = Trace::new();
    ordinary(&mut trace);
    for number in 0..2500_u64 {
        let ends = [([10, 0, 0, 66], 50_000), ([192, 0, 2, (number % 250) as u8], 1 + (number / 250) as u16)];
        let mut connection = Connection { ends, next: [number as u32, 1] };
        trace.segment(number * 1000, &mut connection, 0, "S", b"");
        // Every tenth port refuses.
        if number % 10 == 0 {
            trace.segment(number * 1000 + 100, &mut connection, 1, "RA", b"");
        }
    }
    let capture = trace.file();
    let findings = findings(&capture);
    assert_eq!(kinds(&findings), ["scan"]);
    let scan = &findings[0];
    assert_eq!((scan["source_address"].as_str(), scan["count"].as_u64()), (Some("10.0.0.66"), Some(2500)));
    assert_eq!(
        scan["evidence"],
        "10.0.0.66: 2500 connections without data, 250 of them refused, to 250 hosts and 10 ports"
    );
    // The command shows exactly these flows.
    assert_eq!(rows_of(scan, &capture).len(), 2500);
}

#[test]
fn a_beacon_is_seen_in_connections_and_in_requests() {
    let server = ([203, 0, 113, 9], 80);
    let request = b"POST /status HTTP/1.1\r\nHost: c.example\r\nContent-Length: 2\r\n\r\nok";
    let response = b"HTTP/1.1 204 No Content\r\n\r\n";
    let mut trace = Trace::new();
    ordinary(&mut trace);
    for number in 0..5_u64 {
        let client = ([10, 0, 0, 77], 45_000 + number as u16);
        trace.exchange(number * 10_000_000 + number % 3 * 200_000, [client, server], request, response);
    }
    let found = findings(&trace.file());
    assert_eq!(kinds(&found), ["beacon"]);
    let ends = ["source_address", "destination_address"].map(|end| found[0][end].as_str().unwrap());
    assert_eq!((ends, found[0]["count"].as_u64()), (["10.0.0.77", "203.0.113.9"], Some(5)));

    let mut trace = Trace::new();
    ordinary(&mut trace);
    let mut connection = Connection { ends: [([10, 0, 0, 77], 45_000), server], next: [1, 1] };
    trace.segment(0, &mut connection, 0, "S", b"");
    trace.segment(10, &mut connection, 1, "SA", b"");
    trace.segment(20, &mut connection, 0, "A", b"");
    for number in 0..5 {
        trace.segment(30 + number * 5_000_000, &mut connection, 0, "AP", request);
        trace.segment(90 + number * 5_000_000, &mut connection, 1, "AP", response);
    }
    let found = findings(&trace.file());
    assert_eq!(kinds(&found), ["beacon"]);
    assert!(found[0]["evidence"].as_str().unwrap().contains("5 times every 5.000s"), "{found:?}");
}

#[test]
fn an_upload_is_seen() {
    let mut trace = Trace::new();
    ordinary(&mut trace);
    let body = "y".repeat(3_000_000);
    let request =
        format!("PUT /backup HTTP/1.1\r\nHost: f.example\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let ends = [([10, 0, 0, 88], 46_000), ([203, 0, 113, 7], 80)];
    trace.exchange(500, ends, request.as_bytes(), b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    let capture = trace.file();
    let found = findings(&capture);
    assert_eq!(kinds(&found), ["upload"]);
    let shown = rows_of(&found[0], &capture);
    assert_eq!((shown.len(), shown[0]["source_address"].as_str()), (1, Some("10.0.0.88")));
}

#[test]
fn a_login_without_encryption_is_seen_but_its_values_are_not_written() {
    let mut trace = Trace::new();
    let ends = [([10, 0, 0, 99], 47_000), ([10, 0, 0, 1], 80)];
    // The Base64 form of `user:secret`.
    let request =
        b"GET /private HTTP/1.1\r\nHost: h.example\r\nAuthorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n";
    trace.exchange(500, ends, request, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let found = findings(&trace.file());
    assert_eq!(kinds(&found), ["clear_text_login"]);
    let text = found[0].to_string();
    assert!(text.contains("http") && !text.contains("dXNlc") && !text.contains("secret"), "{text}");
}

#[test]
fn the_screen_has_24_lines_of_100_characters() {
    let captures = [
        "any.pcap",
        "dns.pcap",
        "lossy.pcap",
        "mail.pcap",
        "ssh.pcap",
        "transfer.pcap",
        "vlan.pcapng",
        "web.pcap",
    ];
    for capture in captures {
        let shown = run(&[capture, "-q"]);
        assert_eq!((shown.status, shown.err.as_str()), (0, ""), "{capture}");
        assert_eq!(shown.out, run(&["summary", capture, "-q"]).out);
        let widths: Vec<_> = shown.out.lines().map(|line| line.chars().count()).collect();
        assert!(widths.len() <= 24 && widths.iter().all(|width| *width <= 100), "{}", shown.out);
        // Each command shows flows or transactions.
        let octets = super::data(capture);
        for finding in objects(&run(&["summary", capture, "--format", "ndjson", "-q"]).out) {
            if finding.get("command").is_some() {
                assert!(!rows_of(&finding, &octets).is_empty(), "{capture}: {finding}");
            }
        }
    }
}

#[test]
fn the_option_that_corrects_a_skew_is_whole_in_each_output() {
    let capture = super::repository().join("examples/findings/skew.pcap.zst");
    let capture = capture.to_str().unwrap();
    let page = std::env::temp_dir().join(format!("flowgauge-skew-{}.html", std::process::id()));
    let written = run(&["report", capture, "-q", "-o", page.to_str().unwrap(), "--force"]);
    assert_eq!((written.status, written.err.as_str()), (0, ""));
    let report = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    let outputs = [
        run(&["summary", capture, "-q"]).out,
        run(&["summary", capture, "-q", "--section", "findings"]).out,
        run(&["summary", capture, "-q", "--format", "ndjson"]).out,
        report,
    ];
    for output in outputs {
        let line =
            output.lines().find(|line| line.contains("--shift-time")).unwrap_or_else(|| panic!("{output}"));
        let words: Vec<_> = line[line.find("--shift-time").unwrap()..].split(' ').take(3).collect();
        assert_eq!(words[2], "corrects", "{line}");
        let corrected = run(&["summary", capture, "-q", "--section", "findings", words[0], words[1]]);
        assert_eq!((corrected.status, corrected.err.as_str()), (0, ""));
        assert!(!corrected.out.contains("skew"), "{}", corrected.out);
    }
}

/// A datagram of DNS over Ethernet, or over IP: its time in microseconds, whether the server sent it, and the frame.
type Datagram = (u64, bool, Vec<u8>);

/// Returns queries of DNS with responses after 1 to 7 ms, in the order of their times.
fn queries(count: u16, is_ethernet: bool) -> Vec<Datagram> {
    let mut all = Vec::new();
    for number in 0..count {
        let micros = u64::from(number) * 100_000;
        for is_response in [false, true] {
            let id = number.to_be_bytes();
            let flags = if is_response { [0x81, 0x80] } else { [1, 0] };
            let mut payload = [&id[..], &flags, &[0, 1, 0, 0, 0, 0, 0, 0]].concat();
            payload.extend(b"\x04host\x03lab\x07example\0\0\x01\0\x01");
            let ends = [([10, 0, 0, 1], 40_000 + number), ([10, 0, 0, 53], 53)];
            let [from, to] = if is_response { [ends[1], ends[0]] } else { ends };
            let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
            let [from_mac, to_mac] = if is_response { [macs[1], macs[0]] } else { macs };
            let mut frame = Vec::new();
            if is_ethernet {
                let builder = etherparse::PacketBuilder::ethernet2(from_mac, to_mac).ipv4(from.0, to.0, 64);
                builder.udp(from.1, to.1).write(&mut frame, &payload).unwrap();
            } else {
                let builder = etherparse::PacketBuilder::ipv4(from.0, to.0, 64);
                builder.udp(from.1, to.1).write(&mut frame, &payload).unwrap();
            }
            let micros = micros + if is_response { 1000 * (1 + u64::from(number % 7)) } else { 0 };
            all.push((micros, is_response, frame));
        }
    }
    all
}

/// Returns a file with datagrams in the order of their times.
fn file(datagrams: impl IntoIterator<Item = Datagram>, link_type: u32) -> Vec<u8> {
    let mut datagrams: Vec<_> = datagrams.into_iter().collect();
    datagrams.sort_by_key(|(micros, ..)| *micros);
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend(word.to_le_bytes());
    }
    for (micros, _, frame) in datagrams {
        let len = frame.len() as u32;
        for word in [1_700_000_000 + (micros / 1_000_000) as u32, (micros % 1_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Returns a pcapng file with the responses on interface 0, and the queries on interface 1.
fn pcapng(mut datagrams: Vec<Datagram>) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &body, &len].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let interface = block(1, &words(&[1, 65_535]));
    let mut file = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    file.extend([&interface[..], &interface].concat());
    datagrams.sort_by_key(|(micros, ..)| *micros);
    for (micros, is_response, frame) in datagrams {
        let (time, len) = (1_700_000_000_000_000 + micros, frame.len() as u32);
        let head = words(&[u32::from(!is_response), (time >> 32) as u32, time as u32, len, len]);
        file.extend(block(6, &[head, frame].concat()));
    }
    file
}

/// Delays the direction of the clients.
fn late_queries(datagrams: Vec<Datagram>, late_micros: impl Fn(usize) -> u64) -> Vec<Datagram> {
    let late = |(place, (micros, is_response, frame)): (usize, Datagram)| {
        (micros + if is_response { 0 } else { late_micros(place / 2) }, is_response, frame)
    };
    datagrams.into_iter().enumerate().map(late).collect()
}

#[test]
fn a_skew_of_datagrams_is_seen_and_corrected() {
    let folder = super::Folder::new();
    let skews = |files: &[&str], options: &[&str]| {
        let run = run(&[&["summary", "--format", "ndjson", "-q"], files, options].concat());
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        let all = objects(&run.out);
        let skews = all.iter().filter(|finding| finding["finding"] == "skew");
        skews.map(|finding| finding["evidence"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let late = || late_queries(queries(100, true), |_| 20_000);
    // The fastest response took 1 ms.
    let one = folder.file("one.pcap", &file(late(), 1));
    let text = "the direction from 02:00:00:00:00:01 is about 19.0ms late, by 100 answers; --shift-time \
                02:00:00:00:00:01=-19000us corrects it";
    assert_eq!(skews(&[&one], &[]), [text]);
    assert_eq!(skews(&[&one], &["--shift-time", "02:00:00:00:00:01=-19000us"]), [""; 0]);
    // Corrected times are those of the responses.
    let corrected = ["sessions", &one, "--transactions", "--format", "ndjson", "-q", "--shift-time"];
    let rows = run(&[&corrected[..], &["02:00:00:00:00:01=-20ms"]].concat());
    let times: Vec<_> = objects(&rows.out).iter().map(|row| row["response_time"].as_u64().unwrap()).collect();
    assert_eq!(times, (0..100).map(|number| (1 + number % 7) * 1_000_000).collect::<Vec<_>>());
    // Two interfaces.
    let two = folder.file("two.pcapng", &pcapng(late()));
    let found = skews(&[&two], &[]);
    assert!(found[0].contains("interface 1 is") && found[0].contains("--shift-time 1=-19000us"), "{found:?}");
    assert_eq!(skews(&[&two], &["--shift-time", "1=-19000us"]), [""; 0]);
    // Without a link layer.
    let raw = folder.file("raw.pcap", &file(late_queries(queries(100, false), |_| 20_000), 101));
    assert_eq!(
        skews(&[&raw], &[]),
        ["the direction from the initiators is about 19.0ms late, by 100 answers"]
    );
    // No constant skew.
    for (name, micros) in [
        ("none", (|_| 0) as fn(usize) -> u64),
        ("few", |number| if number < 2 { 20_000 } else { 0 }),
        ("queues", |_| 1_200),
        ("varying", |number| if number == 0 { 48_000 } else { 2_000 }),
        ("beyond", |_| 60_000),
    ] {
        let capture = folder.file("other.pcap", &file(late_queries(queries(100, true), micros), 1));
        assert_eq!(skews(&[&capture], &[]), [""; 0], "{name}");
    }
}

#[test]
fn each_command_shows_what_was_found() {
    let folder = super::repository().join("examples/findings");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "zst") {
            let octets = std::fs::read(&path).unwrap();
            for finding in findings(&octets) {
                if finding.get("command").is_some() {
                    assert!(!rows_of(&finding, &octets).is_empty(), "{}: {finding}", path.display());
                    count += 1;
                }
            }
        }
    }
    assert!(count > 25, "{count} commands");
}

/// Returns the rows that the command of a finding shows, when a shell runs it.
fn rows_of(finding: &Value, capture: &[u8]) -> Vec<Value> {
    let (command, options) = finding["command"].as_str().unwrap().split_once(' ').unwrap();
    let line = format!("exec \"$0\" {command} - {options} --format ndjson -q");
    let mut child = Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_flowgauge")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, octets) = (child.stdin.take().unwrap(), capture.to_vec());
    let writer = std::thread::spawn(move || drop(input.write_all(&octets)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{line}");
    objects(&String::from_utf8(output.stdout).unwrap())
}

/// Sums of a list: the number before the word `flow` of each line.
fn flow_count(lines: &str) -> u64 {
    let counts = lines.lines().filter_map(|line| {
        let (before, _) = line.rsplit_once(" flow")?;
        before.rsplit_once(' ')?.1.parse::<u64>().ok()
    });
    counts.sum()
}

#[test]
fn sections_count_each_flow() {
    for capture in ["any.pcap", "dns.pcap", "mail.pcap", "vlan.pcapng"] {
        let flows = objects(&run(&["flows", capture, "--format", "ndjson", "-q"]).out);
        let count = flows.len() as u64;
        // A host that talks to itself has one flow.
        let is_own = |flow: &&Value| flow["source_address"] == flow["destination_address"];
        let own_count = flows.iter().filter(is_own).count() as u64;
        let host_count = 2 * count - own_count;
        for (section, expected) in [("protocols", count), ("conversations", count), ("hosts", host_count)] {
            let shown = run(&["summary", capture, "--section", section, "-q"]);
            assert_eq!(flow_count(&shown.out), expected, "{capture}: {}", shown.out);
        }
    }
}

/// The commands read the same packets as the summary, also with options.
#[test]
fn commands_have_the_options_of_the_run() {
    let octets = super::data("web.pcap");
    let options = ["--filter", "tcp port 443 or tcp port 8080", "--idle-timeout", "30s", "--dedup"];
    let args = [&["summary", "-", "--format", "ndjson", "-q"][..], &options].concat();
    let found = objects(&run_with_input(&args, &octets).out);
    assert!(!found.is_empty());
    for finding in &found {
        if let Some(command) = finding.get("command").and_then(Value::as_str) {
            assert!(command.contains("tcp port 443 or tcp port 8080"), "{command}");
            assert!(command.contains("--idle-timeout 30s --dedup=1ms"), "{command}");
            assert!(!rows_of(finding, &octets).is_empty(), "{command}");
        }
    }
    let refused = run(&["summary", "web.pcap", "--format", "ndjson", "--section", "hosts"]);
    assert!(refused.status == 2 && refused.err.contains("writes findings"), "{}", refused.err);
}

#[test]
fn an_unknown_first_word_is_refused_with_a_suggestion() {
    let shown = run(&["flwos", "web.pcap"]);
    assert!(shown.status == 2 && shown.err.contains("'flows'"), "{}", shown.err);
    for absent in ["absent.pcap", "./absent"] {
        let shown = run(&[absent]);
        assert_eq!(shown.status, 1, "{}", shown.err);
        assert!(shown.err.contains("No such file"), "{}", shown.err);
    }
    // A command behind an option is no capture.
    let shown = run(&["-q", "flows", "web.pcap"]);
    assert!(shown.status == 2 && shown.out.is_empty(), "{}", shown.err);
    // Options may precede the capture.
    assert_eq!(run(&["--section", "hosts", "web.pcap"]).out, run(&["web.pcap", "--section", "hosts"]).out);
}

#[test]
fn one_segment_without_a_connection_is_no_login() {
    let request = b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic dXNlcjpwYXNz\r\n\r\n";
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    // Each case: segments after the request of a client whose handshake was not captured.
    for (after, is_login) in [
        (&[][..], false),
        (&[(1, "R", &b""[..])], false),
        (&[(1, "A", b"")], false),
        (&[(1, "AP", response)], true),
    ] {
        let mut trace = Trace::new();
        ordinary(&mut trace);
        let ends = [([10, 0, 0, 77], 45_000), ([198, 51, 100, 80], 80)];
        let mut connection = Connection { ends, next: [1000, 9000] };
        trace.segment(7_000_000, &mut connection, 0, "AP", request);
        for (number, (from, flags, payload)) in after.iter().enumerate() {
            trace.segment(7_000_100 + number as u64, &mut connection, *from, flags, payload);
        }
        let capture = trace.file();
        let found = findings(&capture);
        assert_eq!(kinds(&found).contains(&"clear_text_login"), is_login, "{after:?}");
        let report = run_with_input(&["report", "-", "-o", "-", "-q"], &capture).out;
        assert_eq!(report.contains("login over http without encryption"), is_login, "report: {after:?}");
    }
}

/// While memory is short, hosts are forgotten, but not the totals of protocols.
#[test]
fn totals_of_protocols_are_exact_while_memory_is_short() {
    let mut trace = Trace::new();
    for number in 0..20_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let ends = [([10, a, b, c], 40_000), ([192, 0, 2, 1], 80)];
        let mut connection = Connection { ends, next: [1000, 9000] };
        trace.segment(u64::from(number) * 100, &mut connection, 0, "S", b"");
    }
    let summary = run_with_input(&["summary", "-", "-q", "--memory", "4MiB"], &trace.file()).out;
    let protocol = summary.lines().find(|line| line.trim_start().starts_with("tcp/http?")).unwrap();
    assert!(protocol.ends_with(" 20000 flows"), "{summary}");
    assert!(summary.contains("at least, because of their number"), "{summary}");
}
