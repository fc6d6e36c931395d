//! Answers of the command that could mislead: names that compare, numbers that are named, and input that is missing.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::trace::Trace;
use super::{Folder, Run, command, data, number, objects, piped, run, run_with_input};

/// Returns the evidence of the findings of a kind in a capture.
fn evidence(kind: &str, capture: &[u8]) -> Vec<(u64, String)> {
    let run = run_with_input(&["summary", "-", "--format", "ndjson", "-q"], capture);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let of_kind = objects(&run.out).into_iter().filter(|finding| finding["finding"] == kind);
    of_kind
        .map(|finding| (number(&finding, "count"), finding["evidence"].as_str().unwrap().to_owned()))
        .collect()
}

/// Frames of HTTP/2: a request, and its response (RFC 9113 section 4.1, RFC 7541 appendix A).
fn http2() -> [Vec<u8>; 2] {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let settings = frame(4, 0, 0, &[]);
    let request = [&[0x82, 0x84, 0x86, 0x41, 9], &b"h.example"[..]].concat();
    [
        [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings, &frame(1, 5, 1, &request)].concat(),
        [settings, frame(1, 5, 1, &[0x88])].concat(),
    ]
}

#[test]
fn http_includes_http2() {
    let mut trace = Trace::new();
    let ends = |client| [([10, 0, 0, 1], client), ([192, 0, 2, 1], 80)];
    trace.exchange(
        0,
        ends(40_001),
        b"GET /1 HTTP/1.1\r\nHost: h.example\r\n\r\n",
        b"HTTP/1.1 204 OK\r\n\r\n",
    );
    let [request, response] = http2();
    trace.exchange(5_000_000, ends(40_002), &request, &response);
    let capture = trace.file();
    let rows = |options: &[&str]| {
        let run = run_with_input(&[&["sessions", "-", "-q"], options].concat(), &capture);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        objects(&run.out)
    };
    let targets = |options: &[&str]| -> Vec<String> {
        let rows = rows(options);
        rows.iter().filter_map(|row| Some(row.get("target")?.as_str()?.to_owned())).collect()
    };
    assert_eq!(targets(&["-p", "http", "-t"]), ["/1", "/"]);
    // Messages have the same name for the target, so that one condition selects both.
    assert_eq!(targets(&["-p", "http", "--where", "target like '/%' and host = 'h.example'"]), ["/1", "/"]);
    assert_eq!(targets(&["-p", "http2", "-t"]), ["/"]);
    let folder = Folder::new();
    let file = folder.file("in.pcap", &capture);
    let logs = folder.path("logs");
    assert_eq!(run(&["sessions", &file, "-p", "http", "-f", "zeek-json", "-o", &logs, "-q"]).status, 0);
    let log = fs::read_to_string(format!("{logs}/http.log")).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
}

/// The time of a response is a length in all protocols, and the moment has another name.
#[test]
fn times_of_responses_are_lengths() {
    let mut count = 0;
    for (capture, protocol, time, moment) in [
        ("web.pcap", "http", "response_time", Some("response_timestamp")),
        ("dns.pcap", "dns", "response_time", None),
        ("transfer.pcap", "ftp", "reply_time", Some("reply_timestamp")),
    ] {
        let rows = |condition: &str| {
            let options = ["sessions", capture, "-t", "-q", "-p", protocol, "--where", condition];
            let run = run(&options);
            assert_eq!((run.status, run.err.as_str()), (0, ""), "{condition}");
            objects(&run.out)
        };
        let all = rows(&format!("{time} is not null and kind = '{protocol}'"));
        let longer = rows(&format!("{time} > '1ms'"));
        let expected = all.iter().filter(|row| number(row, time) > 1_000_000);
        assert_eq!(longer, expected.cloned().collect::<Vec<_>>(), "{capture}");
        for row in &all {
            assert!(number(row, time) < 3_600_000_000_000, "{row}");
            if let Some(moment) = moment {
                assert_eq!(number(row, moment) - number(row, "timestamp"), number(row, time), "{row}");
            }
        }
        count += all.len();
    }
    assert!(count > 40, "{count}");
}

#[test]
fn names_of_codes_compare_without_case() {
    let count = |condition: &str| {
        let run = run(&["sessions", "dns.pcap", "-t", "-q", "--where", condition]);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        run.out.lines().count()
    };
    let exact = count("rcode = 'NXDomain'");
    assert!(exact > 0);
    assert_eq!(count("rcode = 'NXDOMAIN'"), exact);
    assert_eq!(count("rcode in ('nxdomain')"), exact);
    assert_eq!(count("kind = 'DNS' and query_type = 'aaaa'"), count("query_type = 'AAAA'"));
}

/// Names of applications and of DNS (RFC 4343) compare without case; methods of HTTP (RFC 9110 section 9.1) do not.
#[test]
fn names_of_applications_and_hosts_compare_without_case() {
    let cases = [
        (&["flows", "web.pcap", "--format", "ndjson"][..], "application", true),
        (&["sessions", "web.pcap", "-t"], "host", true),
        (&["sessions", "web.pcap", "-t"], "server_name", true),
        (&["sessions", "web.pcap", "-t"], "method", false),
        (&["sessions", "dns.pcap", "-t"], "query", true),
    ];
    for (args, column, ignores_case) in cases {
        let rows = |condition: &str| {
            let run = run(&[args, &["-q", "--where", condition]].concat());
            assert_eq!((run.status, run.err.as_str()), (0, ""), "{condition}");
            run.out
        };
        let values: std::collections::BTreeSet<_> = objects(&rows(&format!("{column} is not null")))
            .iter()
            .map(|row| row[column].as_str().unwrap().to_owned())
            .collect();
        assert!(!values.is_empty(), "{column}");
        for value in values {
            let of = |row: &&Value| {
                row[column]
                    .as_str()
                    .is_some_and(|other| other == value || ignores_case && other.eq_ignore_ascii_case(&value))
            };
            let all = objects(&rows(&format!("{column} is not null")));
            let expected = all.iter().filter(of).count();
            let count = |condition: String| rows(&condition).lines().count();
            assert_eq!(count(format!("{column} = '{value}'")), expected, "{column} = {value}");
            let other = if value.bytes().any(|octet| octet.is_ascii_lowercase()) {
                value.to_ascii_uppercase()
            } else {
                value.to_ascii_lowercase()
            };
            if other == value {
                continue;
            }
            let other_expected = if ignores_case { expected } else { 0 };
            assert_eq!(count(format!("{column} = '{other}'")), other_expected, "{column} = {other}");
            assert_eq!(count(format!("'{other}' = {column}")), other_expected);
            assert_eq!(count(format!("{column} in ('{other}')")), other_expected);
            assert_eq!(count(format!("{column} <> '{other}'")), all.len() - other_expected);
            assert_eq!(count(format!("{column} like '{other}'")), 0, "LIKE has ILIKE");
        }
    }
    let questions = |name: &str| {
        let condition = format!("questions.name = '{name}'");
        run(&["sessions", "dns.pcap", "-q", "--where", &condition]).out
    };
    let all = objects(&run(&["sessions", "dns.pcap", "-q", "--where", "questions is not null"]).out);
    let name = all.iter().find_map(|row| row["questions"][0]["name"].as_str()).unwrap();
    assert!(!questions(name).is_empty());
    assert_eq!(questions(&name.to_ascii_uppercase()), questions(&name.to_ascii_lowercase()), "{name}");
    assert!(questions(&name.to_ascii_uppercase()).contains(name));
    let named = |name: &str| run(&["sessions", "web.pcap", "-p", name, "-q"]);
    assert!(!named("http").out.is_empty());
    assert_eq!(named("HTTP").out, named("http").out, "{}", named("HTTP").err);
}

#[test]
fn zero_rows_say_what_there_was() {
    let all = run(&["sessions", "dns.pcap", "-t", "-q"]).out.lines().count();
    let shown = run(&["sessions", "dns.pcap", "-t", "--where", "rcode = 'none'"]);
    assert_eq!((shown.status, shown.out.as_str()), (0, ""));
    let codes: std::collections::BTreeSet<_> = objects(&run(&["sessions", "dns.pcap", "-t", "-q"]).out)
        .iter()
        .filter_map(|row| Some(row.get("rcode")?.as_str()?.to_owned()))
        .collect();
    let codes = codes.into_iter().collect::<Vec<_>>().join(", ");
    let expected = format!("(0 of {all} rows matched; rcode values seen: {codes})");
    assert!(shown.err.contains(&expected), "{}", shown.err);

    let other = run(&["sessions", "dns.pcap", "-t", "-p", "ssh"]);
    assert!(other.err.contains(&format!("(rows of other protocols: dns: {all})")), "{}", other.err);
    let quiet = run(&["sessions", "dns.pcap", "-t", "-q", "--where", "rcode = 'none'"]);
    assert_eq!(quiet.err, "");
    let some = run(&["sessions", "dns.pcap", "-t", "--where", "rcode = 'noerror'"]);
    assert!(!some.err.contains("matched"), "{}", some.err);

    let flows = run(&["flows", "web.pcap", "-q", "--format", "csv"]).out.lines().count() - 1;
    for options in [&[][..], &["--top", "3"], &["--features", "tcp", "--format", "ndjson"]] {
        let args = [&["flows", "web.pcap", "--where", "packet_count > 100000"], options].concat();
        let shown = run(&args);
        let expected = format!("0 records written (0 of {flows} rows matched; packet_count values seen: ");
        assert!(shown.err.contains(&expected), "{options:?}: {}", shown.err);
    }
}

/// The first lines name the numbers of the capture, and those of the selection.
#[test]
fn a_filter_selects_numbers_that_are_named() {
    let selected = objects(&run(&["flows", "web.pcap", "-F", "port 8080", "--format", "ndjson", "-q"]).out);
    let sum = |fields: [&str; 2]| {
        selected.iter().flat_map(|flow| fields.map(|field| number(flow, field))).sum::<u64>()
    };
    let packets = sum(["packet_count", "reverse_packet_count"]);
    let octets = sum(["octet_count", "reverse_octet_count"]);
    let whole = run(&["summary", "web.pcap", "-q"]);
    let first = whole.out.lines().next().unwrap();
    let [skipped, _, octet_count, capture] = first.rsplitn(4, ", ").collect::<Vec<_>>()[..] else { panic!() };
    let all = format!("{capture}, {octet_count} octets in all, {skipped}");
    let expected =
        format!("Selected by the filter: {packets} packets, {octets} octets, {} flows", selected.len());
    let shown = run(&["summary", "web.pcap", "-F", "port 8080", "-q"]);
    let lines: Vec<_> = shown.out.lines().take(2).collect();
    assert_eq!(lines, [all.clone(), expected.clone()]);
    let page = run(&["report", "web.pcap", "-F", "port 8080", "-o", "-", "-q"]).out;
    assert!(page.contains(&format!("<p>{all}</p>\n<p>{expected}</p>\n")));
    let page = run(&["report", "web.pcap", "-o", "-", "-q"]).out;
    assert!(
        page.contains(&format!("<p>{}</p>", whole.out.lines().next().unwrap()))
            && !page.contains("Selected by")
    );
}

/// Words of a filter that depend on the whole flow select the same flows, packets and octets as in `flows`.
#[test]
fn a_filter_of_whole_flows_selects_those_of_flows() {
    let filters = [
        ("vlan.pcapng", "vlan 999"),
        ("vlan.pcapng", "not vlan"),
        ("vlan.pcapng", "vlan 40"),
        ("vlan.pcapng", "vlan 100"),
        ("vlan.pcapng", "vlan 10 and tcp"),
        ("web.pcap", "src port 80"),
        ("web.pcap", "dst port 80"),
        ("web.pcap", "dst port 443 or src port 443"),
        ("web.pcap", "src host 10.77.0.2"),
        ("web.pcap", "dst host 10.77.0.2"),
        ("web.pcap", "not dst host 10.77.0.1"),
        ("mail.pcap", "tcp src portrange 1024-65535"),
    ];
    // Timeouts between shifted times divide flows.
    let shift = ["--shift-time", "02:00:00:77:00:02=-600s"];
    let cases = filters.map(|(capture, filter)| (capture, filter, &[][..]));
    let shifted = [("web.pcap", "dst port 80", &shift[..]), ("web.pcap", "src host 10.77.0.2", &shift)];
    let mut counts = Vec::new();
    for (capture, filter, options) in cases.into_iter().chain(shifted) {
        let run = |args: &[&str]| run(&[args, options].concat());
        let flows = run(&["flows", capture, "-F", filter, "--format", "ndjson", "-q"]);
        let flows = objects(&flows.out);
        let sum = |fields: [&str; 2]| {
            flows.iter().flat_map(|flow| fields.map(|field| number(flow, field))).sum::<u64>()
        };
        let plural = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let packets = plural(sum(["packet_count", "reverse_packet_count"]), "packet");
        let expected = (
            format!("Selected by the filter: {packets}, "),
            format!(" octets, {}", plural(flows.len() as u64, "flow")),
        );
        let is_expected = |line: &str| line.starts_with(&expected.0) && line.ends_with(&expected.1);
        let shown = run(&["summary", capture, "-F", filter, "-q"]);
        assert_eq!(shown.status, 0, "{}", shown.err);
        let line = shown.out.lines().nth(1).unwrap();
        assert!(is_expected(line), "{capture}, {filter}: {line}, not {expected:?}");
        let page = run(&["report", capture, "-F", filter, "-o", "-", "-q"]).out;
        assert!(page.contains(&format!("<p>{line}</p>")), "{capture}, {filter}");
        // The hosts of the lists are those of the flows.
        let hosts: std::collections::BTreeSet<_> = flows
            .iter()
            .flat_map(|flow| [&flow["source_address"], &flow["destination_address"]])
            .map(Value::as_str)
            .collect();
        let listed = run(&["summary", capture, "-F", filter, "--section", "hosts", "-q"]).out;
        assert_eq!(listed.lines().filter(|line| line.starts_with("  ")).count(), hosts.len(), "{listed}");
        counts.push(flows.len());
    }
    assert!(counts.contains(&0) && counts.iter().any(|count| *count > 1), "{counts:?}");
}

#[test]
fn a_filter_of_whole_flows_requires_files_that_can_be_read_twice() {
    for filter in ["src port 80", "vlan 10"] {
        let piped = run_with_input(&["summary", "-", "-F", filter, "-q"], &data("web.pcap"));
        assert_eq!(piped.status, 2, "{}", piped.err);
        assert!(piped.err.contains("can be read only once"), "{}", piped.err);
        let folder = Folder::new();
        let state = folder.path("state");
        let continued = run(&["summary", "web.pcap", "-F", filter, "--checkpoint", &state, "-q"]);
        assert_eq!(continued.status, 2, "{}", continued.err);
        assert!(continued.err.contains("without src, dst and vlan"), "{}", continued.err);
    }
}

#[test]
fn a_truncated_input_is_stated_at_the_top() {
    let folder = Folder::new();
    let cut = folder.file("cut.pcap", &data("web.pcap")[..50_000]);
    for options in [&[][..], &["--section", "hosts"]] {
        let shown = run(&[&["summary", &cut, "-q"], options].concat());
        let problem = shown.err.trim_start_matches("flowgauge: ").trim_end();
        assert_eq!(shown.status, 1);
        let first: String = shown.out.lines().next().unwrap().trim_end_matches('\u{2026}').to_owned();
        assert!(format!("Incomplete: {problem}").starts_with(&first) && first.len() > 30, "{first}");
    }
    let page = run(&["report", &cut, "-o", "-", "-q"]).out;
    let (_, body) = page.split_once("</h1>\n").unwrap();
    assert!(body.starts_with("<p class=\"note\">Incomplete: "), "{}", &body[..200]);
    let whole = run(&["report", "web.pcap", "-o", "-", "-q"]).out;
    assert!(!whole.contains("class=\"note\""));
}

/// A signal ends the input, and what was read is shown.
#[cfg(unix)]
#[test]
fn an_interrupted_input_is_stated_at_the_top() {
    for (args, start) in [
        (&["summary", "-", "-q"][..], "Interrupted: the rest of the input was not read\n"),
        (
            &["report", "-", "-q", "-o", "-"],
            "<p class=\"note\">Interrupted: the rest of the input was not read</p>",
        ),
    ] {
        let mut child = piped(args);
        let mut input = child.stdin.take().unwrap();
        input.write_all(&data("web.pcap")).unwrap();
        // The command has opened its input and handles signals once the pipe is empty; its capacity is less than the file.
        let deadline = Instant::now() + Duration::from_secs(20);
        while rustix::io::ioctl_fionread(&input).unwrap() > 0 {
            assert!(Instant::now() < deadline, "the input is not read");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert!(Instant::now() < deadline);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(130), "{shown}");
        let top = shown.split_once("</h1>\n").map_or(shown.as_str(), |(_, body)| body);
        assert!(top.starts_with(start), "{}", &top[..200.min(top.len())]);
    }
}

#[test]
fn counts_of_findings_are_exact() {
    // More times than are kept.
    let mut trace = Trace::new();
    for index in 0..692_u64 {
        let ends = [([10, 0, 0, 7], 20_000 + index as u16), ([203, 0, 113, 9], 80)];
        trace.exchange(index * 60_000_000, ends, b"GET /tick HTTP/1.0\r\n\r\n", b"HTTP/1.0 204 OK\r\n\r\n");
    }
    let beacons = evidence("beacon", &trace.file());
    let [(692, text)] = beacons.as_slice() else { panic!("{beacons:?}") };
    assert!(text.contains(": 692 times every "), "{text}");

    // Logins with NTLM have two requests with credentials, and requests repeat those of other schemes.
    let request =
        |credentials: &str| format!("GET /x HTTP/1.1\r\nHost: h\r\nAuthorization: {credentials}\r\n\r\n");
    let response = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    let mut trace = Trace::new();
    let mut exchange = |client: u16, server: u8, credentials: &[&str]| {
        let requests: String = credentials.iter().map(|credentials| request(credentials)).collect();
        let ends = [([10, 0, 0, 7], client), ([192, 0, 2, server], 80)];
        let responses = response.repeat(credentials.len());
        trace.exchange(u64::from(client) * 7_919, ends, requests.as_bytes(), responses.as_bytes());
    };
    for client in 0..7 {
        exchange(
            20_000 + client,
            1,
            &["NTLM TlRMTVNTUAABAAAAB4IIogAAAAA=", "NTLM TlRMTVNTUAADAAAAGAAYAHIAAAA="],
        );
    }
    exchange(21_000, 2, &["Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"; 12]);
    exchange(22_000, 3, &["AWS4-HMAC-SHA256 Credential=AK/1/s3, SignedHeaders=host, Signature=00"; 12]);
    let mut logins = evidence("clear_text_login", &trace.file());
    logins.sort();
    let expected = [
        (1, "192.0.2.2: 1 login over http without encryption (bearer)".to_owned()),
        (7, "192.0.2.1: 7 logins over http without encryption (ntlm)".to_owned()),
    ];
    assert_eq!(logins, expected);
}

#[test]
fn assigned_ports_are_not_foreign() {
    let mut trace = Trace::new();
    for (index, port) in [80, 591, 631, 8008, 8080, 8088, 5985, 4444].into_iter().enumerate() {
        let ends = [([10, 0, 0, 7], 20_000 + index as u16), ([192, 0, 2, 1], port)];
        let request = b"POST /printers/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
        trace.exchange(
            index as u64 * 3_000_000,
            ends,
            request,
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        );
    }
    let found = evidence("foreign_port", &trace.file());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.starts_with("http on port 4444: "), "{found:?}");
}

/// A shell passes the words of a copied command as they are, with any name of a capture.
#[cfg(unix)]
#[test]
fn commands_of_findings_are_copied_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let stub =
        folder.file("flowgauge", b"#!/bin/sh\nprintf '[%s]' \"$@\"\nexec \"$FLOWGAUGE\" \"$@\" -q >&2\n");
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
    let long = format!("$x {} name with  spaces in it's.pcap", "long ".repeat(20));
    for name in
        ["plain.pcap", "a b.pcap", "-w.pcap", "- x.pcap", "it's \"q\".pcap", "a\u{1b}[31m\nb.pcap", &long]
    {
        folder.file(name, &data("web.pcap"));
        let shown: Run = command()
            .current_dir(&folder.0)
            .args(["summary", "--section", "findings", "-q", "--", name])
            .output()
            .unwrap()
            .into();
        assert_eq!((shown.status, shown.err.as_str()), (0, ""), "{name}");
        let is_own = |line: &&str| line.starts_with("    ");
        let commands: String = shown.out.lines().filter(is_own).map(|line| format!("{line}\n")).collect();
        assert!(!commands.is_empty(), "{}", shown.out);
        let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap());
        let copied: Run = Command::new("sh")
            .args(["-c", &commands])
            .current_dir(&folder.0)
            .env("PATH", path)
            .env("FLOWGAUGE", env!("CARGO_BIN_EXE_flowgauge"))
            .output()
            .unwrap()
            .into();
        // Each command reads the capture, and no word was divided.
        let file = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
        let count = commands.matches("    flowgauge ").count();
        assert_eq!(copied.out.matches(&format!("[{file}]")).count(), count, "{name}: {}", copied.out);
        assert_eq!(copied.status, 0, "{name}: {}", copied.err);
        assert!(copied.err.contains("10.77.0.2"), "{name}: {}", copied.err);
        fs::remove_file(folder.path(name)).unwrap();
    }
}

/// A standard output that is closed from the beginning is an error; one whose reader ends is not.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_an_error() {
    let shell = |line: &str| -> Run {
        let bin = env!("CARGO_BIN_EXE_flowgauge");
        let mut shell = Command::new("sh");
        shell.args(["-c", line, bin]).current_dir(super::repository().join("examples/data"));
        shell.stdin(Stdio::null()).output().unwrap().into()
    };
    for args in [
        "flows web.pcap -q",
        "flows web.pcap -q --format ipfix",
        "flows web.pcap -q --group-by protocol",
        "summary web.pcap -q",
        "report web.pcap -q -o -",
        "sessions web.pcap -q",
        "sessions web.pcap -q --format zeek",
        "packets web.pcap -q",
        "slice web.pcap -q --filter tcp -w -",
        "streams lossy.pcap -q --to-stdout both",
        "completions bash",
        "man flows",
        "--help",
        "flows --help",
        "--version",
    ] {
        let closed = shell(&format!("\"$0\" {args} >&-"));
        assert_eq!((closed.status, closed.out.as_str()), (1, ""), "{args}: {}", closed.err);
        assert_eq!(closed.err, "flowgauge: standard output is closed\n", "{args}");
        // Other destinations, and other descriptors that are closed.
        let null = shell(&format!("\"$0\" {args} > /dev/null <&-"));
        assert_eq!((null.status, null.err.as_str()), (0, ""), "{args}");
    }
    // As the standard library opens it in place of a closed descriptor.
    let null = shell("\"$0\" flows web.pcap -q 1<> /dev/null");
    assert_eq!((null.status, null.err.as_str()), (0, ""));
    let folder = Folder::new();
    let file = shell(&format!("\"$0\" flows web.pcap -q --write ndjson={} >&-", folder.path("f.ndjson")));
    assert_eq!((file.status, file.err.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(folder.path("f.ndjson")).unwrap().lines().count(), 27);
    let piped = shell("\"$0\" flows web.pcap -q --format ndjson | head -1");
    assert_eq!((piped.status, piped.err.as_str()), (0, ""));
    let first: Value = serde_json::from_str(&piped.out).unwrap();
    assert!(first.is_object());
}
