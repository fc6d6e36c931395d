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
