//! Tests of `flowgauge sessions`, and of the application protocols that `flows` reports.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use super::{Folder, Run, command, data, number, objects, records, run, run_with_input};

/// Number of messages of a capture by protocol and kind.
fn kinds(args: &[&str]) -> BTreeMap<String, usize> {
    let run = run(args);
    assert_eq!(run.status, 0, "{}", run.err);
    let mut kinds = BTreeMap::new();
    for line in objects(&run.out) {
        let name = format!("{} {}", line["protocol"].as_str().unwrap(), line["message"].as_str().unwrap());
        *kinds.entry(name).or_default() += 1;
    }
    kinds
}

#[test]
fn each_line_identifies_its_flow_and_has_the_fields_of_the_message() {
    let run = run(&["sessions", "web.pcap", "-p", "http", "-q"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let lines = objects(&run.out);
    let flows = records(&["web.pcap"]);
    assert!(lines.len() > 20);
    for line in &lines {
        let flow = flows
            .iter()
            .find(|flow| flow["community_id"] == line["community_id"])
            .expect("no flow of this message");
        for field in ["source_address", "source_port", "destination_address", "destination_port"] {
            assert_eq!(line[field], flow[field]);
        }
        let at = number(line, "timestamp");
        assert!((number(flow, "start")..=number(flow, "end")).contains(&at));
        assert_eq!((&line["protocol"], &flow["application"]), (&"http".into(), &"http".into()));
        assert_eq!(flow["application_evidence"], "content");
    }
    // The requests made with curl, in the order of the recording.
    let requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request").collect();
    assert_eq!((&requests[0]["method"], &requests[0]["target"]), (&"GET".into(), &"/".into()));
    let hosts: Vec<_> = requests.iter().map(|line| line["host"].as_str().unwrap()).collect();
    assert!(hosts.iter().all(|host| host.starts_with("web.example") || host.starts_with("web6.example")));
    // Each request has its response.
    for request in &requests {
        let is_answer = |line: &&Value| {
            // Interim responses, such as those to `Expect`, are additional.
            line["message"] == "response"
                && number(line, "status") >= 200
                && line["community_id"] == request["community_id"]
                && line["transaction"] == request["transaction"]
        };
        assert_eq!(lines.iter().filter(is_answer).count(), 1, "{request}");
    }
}

#[test]
fn several_protocols_are_parsed_in_one_run() {
    let all = kinds(&["sessions", "mail.pcap", "-q"]);
    assert!(all.keys().any(|kind| kind.starts_with("smtp ")) && !all.contains_key("smtp stopped"), "{all:?}");
    let ssh = kinds(&["sessions", "ssh.pcap", "-q"]);
    assert_eq!((ssh["ssh identification"], ssh["ssh kex_init"]), (8, 8), "{ssh:?}");
    let tls = kinds(&["sessions", "web.pcap", "-q", "--protocol", "tls"]);
    assert!(tls.keys().all(|kind| kind.starts_with("tls ")) && tls["tls client_hello"] > 3, "{tls:?}");
    let both = kinds(&["sessions", "web.pcap", "-q", "-p", "tls", "-p", "http"]);
    assert_eq!(both, kinds(&["sessions", "web.pcap", "-q"]));
}

#[test]
fn a_filter_or_a_community_id_selects_flows() {
    let all = run(&["sessions", "web.pcap", "-q", "-p", "http"]).out;
    let id = objects(&all)[0]["community_id"].as_str().unwrap().to_owned();
    let one = run(&["sessions", "web.pcap", "-q", "--community-id", &id]).out;
    let of_id: String = all.split_inclusive('\n').filter(|line| line.contains(&id)).collect();
    assert_eq!(one, of_id);
    let source = &objects(&all)[0]["source_port"];
    let filtered = run(&["sessions", "web.pcap", "-q", "--filter", &format!("src port {source}")]).out;
    assert_eq!(filtered, of_id);
    let piped = run_with_input(&["sessions", "-", "-q", "-p", "http"], &data("web.pcap"));
    assert_eq!(piped.out, all);
}

/// A capture of one connection to a port. Each turn is a payload and whether the client sends it.
fn connection(port: u16, turns: &[(bool, &str)]) -> Vec<u8> {
    let header = [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 1];
    let mut pcap: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut sent = [1_000_u32, 5_000];
    for (second, (is_client, text)) in turns.iter().enumerate() {
        let (ends, own) = if *is_client {
            (([10, 0, 0, 1], 40_000, [10, 0, 0, 2], port), 0)
        } else {
            (([10, 0, 0, 2], port, [10, 0, 0, 1], 40_000), 1)
        };
        let mut frame = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(ends.0, ends.2, 64)
            .tcp(ends.1, ends.3, sent[own], 65_000)
            .ack(sent[1 - own])
            .psh()
            .write(&mut frame, text.as_bytes())
            .unwrap();
        sent[own] += text.len() as u32;
        let record = [1_700_000_000 + second as u32, 0, frame.len() as u32, frame.len() as u32];
        pcap.extend(record.iter().flat_map(|word| word.to_le_bytes()));
        pcap.extend(&frame);
    }
    pcap
}

#[test]
fn the_summary_counts_parsers_that_stopped_by_protocol_and_fault() {
    let turns = [(true, "SSH-2.0-a\r\n"), (false, "SSH-2.0-b\r\n"), (true, "\0\0\0\x01 length of one octet")];
    let folder = Folder::new();
    let run = run(&["sessions", &folder.file("web.pcap", &connection(22, &turns))]);
    assert_eq!((run.status, run.out.lines().count()), (0, 3), "{}", run.out);
    assert!(run.err.contains("\n1 parser stopped: 1 ssh bad_packet_length\n"), "{}", run.err);
}

#[test]
fn passwords_are_never_written_and_their_kind_only_on_request() {
    let web: &[(bool, &str)] = &[
        (
            true,
            "GET /s3cret?a=b HTTP/1.1\r\nHost: a.example\r\nAuthorization: Basic YWxpY2U6SFVOVEVS\r\nCookie: id=HUNTER\r\n\r\n",
        ),
        (false, "HTTP/1.1 200 OK\r\nSet-Cookie: id=HUNTER\r\nContent-Length: 0\r\n\r\n"),
        (
            true,
            "GET http://a.example/?b=http://alice:HUNTER@c.example/ HTTP/1.1\r\nHost: alice:HUNTER@a.example\r\nReferer: //alice:HUNTER@d.example/\r\n\r\n",
        ),
        (false, "HTTP/1.1 302 Found\r\nLocation: //alice:HUNTER@a.example/\r\nContent-Length: 0\r\n\r\n"),
    ];
    let files: &[(bool, &str)] = &[
        (false, "220 FTP server ready\r\n"),
        (true, "USER alice\r\n"),
        (false, "331 Password required\r\n"),
        (true, "PASS HUNTER\r\n"),
        (false, "530 PASS HUNTER is wrong\r\n"),
        (true, "PSAS HUNTER\r\n"),
        (false, "500 PSAS HUNTER?\r\n"),
        (true, "PASS HUNTER\r\n"),
        (false, "230 Logged in\r\n"),
    ];
    let mail: &[(bool, &str)] = &[
        (false, "220 mail.example ESMTP\r\n"),
        (true, "EHLO a.example\r\n"),
        (false, "250-mail.example\r\n250 AUTH PLAIN LOGIN\r\n"),
        (true, "AUTH LOGIN\r\n"),
        (false, "334 VXNlcm5hbWU6\r\n"),
        (true, "YWxpY2U=\r\n"),
        (false, "334 UGFzc3dvcmQ6\r\n"),
        (true, "SFVOVEVS\r\n"),
        (false, "535 SFVOVEVS is wrong\r\n"),
        (true, "AUTH PLAIN SFVOVEVS\r\n"),
        (false, "235 Welcome\r\n"),
    ];
    for (port, turns, protocol) in [(80, web, "http"), (21, files, "ftp"), (25, mail, "smtp")] {
        let pcap = connection(port, turns);
        for format in ["ndjson", "table"] {
            let silent = run_with_input(&["sessions", "-", "-q", "-f", format], &pcap).out;
            let reported = run_with_input(&["sessions", "-", "-q", "-f", format, "--credentials"], &pcap).out;
            assert!(silent.contains(protocol) && !silent.contains("credentials"), "{silent}");
            assert!(reported.contains("credentials"), "{reported}");
            let folder = Folder::new();
            let target = format!("zeek={}", folder.path("logs"));
            assert_eq!(run_with_input(&["sessions", "-", "-q", "-w", &target], &pcap).status, 0);
            let logs = std::fs::read_dir(folder.path("logs")).unwrap();
            let logs: String =
                logs.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
            assert!(logs.contains(protocol));
            // The password in plain text and in base64.
            for secret in ["HUNTER", "SFVOVEVS", "YWxpY2U6SFVOVEVS"] {
                assert!(!reported.contains(secret), "{reported}");
                assert!(!logs.contains(secret), "{logs}");
            }
        }
    }
}

#[test]
fn a_line_has_each_key_once() {
    let turns: &[(bool, &str)] = &[
        (false, "220 mail.example ESMTP\r\n"),
        (true, "HELO a.example\r\n"),
        (false, "250 mail.example\r\n"),
        (true, "MAIL FROM:<alice@a.example>\r\n"),
        (false, "250 OK\r\n"),
        (true, "RCPT TO:<bob@b.example>\r\n"),
        (false, "250 OK\r\n"),
        (true, "DATA\r\n"),
        (false, "354 Go on\r\n"),
        (true, "Subject: hello\r\n\r\nHello.\r\n.\r\n"),
        (false, "250 OK\r\n"),
    ];
    let out = run_with_input(&["sessions", "-", "-q"], &connection(25, turns)).out;
    let mail =
        objects(&out).into_iter().find(|line| line["message"] == "mail").expect("no mail was reported");
    assert_eq!((&mail["role"], &mail["reverse_path"]), (&"server".into(), &"alice@a.example".into()));
    for line in out.lines() {
        for key in ["timestamp", "community_id", "protocol", "role", "message"] {
            assert_eq!(line.matches(&format!("\"{key}\":")).count(), 1, "{key} in {line}");
        }
    }
}

#[test]
fn the_table_has_a_row_per_message_and_escapes_control_characters() {
    let lines = objects(&run(&["sessions", "ssh.pcap", "-q"]).out);
    let table = run(&["sessions", "ssh.pcap", "-q", "--format", "table"]).out;
    assert_eq!(table.lines().count(), lines.len() + 1);
    assert!(table.starts_with("TIME"));
    assert!(table.lines().nth(1).unwrap().contains("identification protocol_version=2.0"));
    assert!(!table.bytes().any(|octet| octet < b' ' && octet != b'\n'));
}

#[test]
fn protocols_without_a_parser_are_rejected_with_a_list_of_valid_names() {
    let unknown = run(&["sessions", "web.pcap", "-p", "gopher"]);
    assert_eq!(unknown.status, 2);
    assert!(
        unknown.err.contains("http, ") && unknown.err.contains("unknown protocol; the protocols are"),
        "{}",
        unknown.err
    );
    let named = run(&["sessions", "web.pcap", "-p", "rtsp"]);
    assert!(named.status == 2 && named.err.contains("is recognized, but has no parser"), "{}", named.err);
}

#[test]
fn flows_have_the_application_protocol_on_request() {
    let auto = records(&["ssh.pcap", "--filter", "tcp"]);
    assert!(
        auto.iter().all(|flow| flow["application"] == "ssh" && flow["application_evidence"] == "content")
    );
    let never = records(&["ssh.pcap", "--application", "never"]);
    assert!(never.iter().all(|flow| flow["application"].is_null() && flow["application_evidence"].is_null()));
    let table = run(&["flows", "ssh.pcap", "-q"]).out;
    assert!(!table.contains("/ssh"));
    let named = run(&["flows", "ssh.pcap", "-q", "--application", "always"]).out;
    assert_eq!(named.matches("tcp/ssh").count(), 4, "{named}");
    // The same with several threads.
    let sorted = |args: &[&str]| {
        let mut lines: Vec<_> = run(args).out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let one = sorted(&["flows", "mail.pcap", "-q", "-f", "csv"]);
    assert_eq!(sorted(&["flows", "mail.pcap", "-q", "-f", "csv", "--shards", "3"]), one);
    assert_eq!(sorted(&["flows", "mail.pcap", "-q", "-f", "csv", "--shards", "3", "--sort", "start"]), one);
}

#[test]
fn the_protocols_page_lists_every_recognized_protocol() {
    use flowgauge::protocols::Standard;
    use flowgauge::session::Protocols as _;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, recognized) = text.split_once("## Recognized").unwrap();
    let names = |text: &str| {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut names: Vec<_> = rows.map(|(name, _)| name.to_owned()).collect();
        names.sort();
        names
    };
    let entries = Standard::TABLE.iter().filter(|entry| !entry.has_parser);
    let mut expected: Vec<_> = entries.map(|entry| entry.protocol.name().to_owned()).collect();
    expected.sort();
    assert_eq!(names(recognized), expected);
    // The rows of recognized protocols list their ports.
    for entry in Standard::TABLE.iter().filter(|entry| !entry.has_parser) {
        let start = format!("| `{}` |", entry.protocol.name());
        let row = recognized.lines().find(|line| line.starts_with(&start)).unwrap();
        let ports = [entry.protocol.stream_ports(), entry.protocol.datagram_ports()].concat();
        for port in ports.iter().filter(|_| ports.len() < 8) {
            assert!(row.contains(&port.to_string()), "{row}: {port}");
        }
    }
}

#[test]
fn lines_of_all_captures_have_each_key_once() {
    for file in ["web.pcap", "dns.pcap", "ssh.pcap", "mail.pcap", "any.pcap", "../../tests/data/quic.pcap"] {
        let text = run(&["sessions", file, "-q", "--credentials"]).out;
        assert!(!text.is_empty());
        for line in text.lines() {
            // The JSON reader keeps only the last value of a repeated key.
            let read: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(read.to_string().len(), line.len(), "{line}");
        }
    }
}

/// A capture without every fifth frame that has payload.
fn capture_without_every_fifth_frame(name: &str) -> Vec<u8> {
    let whole = data(name);
    let (header, mut rest) = whole.split_at(24);
    let (mut lossy, mut long_count) = (header.to_vec(), 0);
    while !rest.is_empty() {
        let len = 16 + u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (record, others) = rest.split_at(len);
        rest = others;
        long_count += usize::from(len > 120);
        if len <= 120 || long_count % 5 != 0 {
            lossy.extend_from_slice(record);
        }
    }
    lossy
}

#[test]
fn messages_after_gaps_are_the_same_from_a_file_and_from_a_pipe_in_small_pieces() {
    for name in ["web.pcap", "mail.pcap"] {
        let lossy = capture_without_every_fifth_frame(name);
        let folder = Folder::new();
        let whole = run(&["sessions", &folder.file("lossy.pcap", &lossy), "-q"]);
        assert_eq!(whole.status, 0, "{}", whole.err);
        assert!(whole.out.lines().count() > 20, "{name}");
        for piece_count in [3, 150] {
            let mut child = command()
                .args(["sessions", "-", "-q"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let lossy = lossy.clone();
            let writer = std::thread::spawn(move || {
                for piece in lossy.chunks(lossy.len() / piece_count) {
                    stdin.write_all(piece).unwrap();
                    // The reader finds only this piece when it reads.
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            let pieces: Run = child.wait_with_output().unwrap().into();
            writer.join().unwrap();
            assert_eq!((pieces.status, pieces.err.as_str()), (0, ""));
            for (piece, whole) in pieces.out.lines().zip(whole.out.lines()) {
                assert_eq!(piece, whole, "{name} in {piece_count} pieces");
            }
            assert_eq!(pieces.out.lines().count(), whole.out.lines().count());
        }
    }
}

#[test]
fn output_size_is_limited_in_proportion_to_the_input() {
    let commands = "NOOP\r\n".repeat(240);
    let mut turns = vec![(false, "220 mail.example ESMTP\r\n"), (true, "HELO a.example\r\n")];
    turns.extend(vec![(true, commands.as_str()); 200]);
    turns.extend([(true, "MAIL FROM:<alice@a.example>\r\n"), (true, "QUIT\r\n")]);
    let pcap = connection(25, &turns);
    let run = run_with_input(&["sessions", "-"], &pcap);
    // A line has about 280 octets, and a NOOP has six.
    assert!(run.out.len() < 22 * pcap.len() + 1024 * 300, "{} of {}", run.out.len(), pcap.len());
    let lines = objects(&run.out);
    assert_eq!(lines.iter().filter(|line| line["message"] == "suppressed").count(), 1);
    // The messages after the flood are reported.
    let verbs: Vec<_> = lines.iter().rev().take(2).map(|line| line["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, ["QUIT", "MAIL"]);
    let reported = lines.iter().filter(|line| line["verb"] == "NOOP").count();
    let note = format!("{} messages suppressed by the output limit per flow", 200 * 240 - reported);
    assert!(run.err.contains(&note), "{} in {}", note, run.err);
}
