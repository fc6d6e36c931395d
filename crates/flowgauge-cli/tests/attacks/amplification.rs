//! Octets of output for each octet of input.

use super::collect::{data, message, template};
use super::packets::{LINK_ETHERNET, RAW, connection, ipv4, pcap, udp};
use super::run;

/// Octets of output that each octet of input may cause.
const OUTPUT_PER_OCTET: usize = 16;

/// Octets of output in addition.
const RESERVE: usize = 1 << 20;

/// Number of connections of each attack.
const CONNECTION_COUNT: u16 = 30;

fn assert_bounded(what: &str, input_len: usize, output: &[u8]) {
    let limit = OUTPUT_PER_OCTET * input_len + RESERVE;
    assert!(output.len() <= limit, "{what}: {} octets of {input_len}", output.len());
}

/// Frames of connections with the same octets.
fn connections(port: u16, sent: &[u8], replied: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    (0..CONNECTION_COUNT).for_each(|at| connection(&mut frames, (port, 30_000 + at), sent, replied));
    frames
}

/// A frame of HTTP/2.
fn http2(frame_type: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![len[1], len[2], len[3], frame_type, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Requests whose path of 4000 octets is in the dynamic table, and referenced by one octet.
fn repeated_paths() -> Vec<u8> {
    let mut octets = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    octets.extend(http2(4, 0, 0, &[]));
    let mut first =
        vec![0x82, 0x86, 0x44, 0x7f, 0x80 | ((4000 - 127) & 127) as u8, ((4000 - 127) >> 7) as u8, b'/'];
    first.extend([b'a'; 3999]);
    first.extend([0x41, 1, b'a']);
    octets.extend(http2(1, 5, 1, &first));
    (0..2000).for_each(|at| octets.extend(http2(1, 5, 3 + 2 * at, &[0x82, 0x86, 0xbf, 0xbe])));
    octets
}

/// A DNS message with counts of questions and answers.
fn dns(flags: u16, question_count: u16, answer_count: u16) -> Vec<u8> {
    [7, flags, question_count, answer_count, 0, 0].into_iter().flat_map(u16::to_be_bytes).collect()
}

#[test]
fn messages_are_in_proportion_to_the_octets_of_their_flows() {
    let http = b"GET / HTTP/1.1\r\nHost:a\r\n\r\n".repeat(2000);
    let http_reply = b"HTTP/1.1 200\r\nContent-Length:0\r\n\r\n".repeat(2000);
    let (ftp, ftp_reply) = (b"PWD\r\n".repeat(5000), b"200\r\n".repeat(5000));
    let smtp = [b"EHLO a\r\n".to_vec(), b"NOOP\r\n".repeat(5000)].concat();
    let smtp_reply = [b"220 a ESMTP\r\n250 a\r\n".to_vec(), b"250\r\n".repeat(5000)].concat();
    let alerts = [0x15, 3, 3, 0, 2, 2, 0x28].repeat(5000);
    let controls = [b"GET /".to_vec(), vec![0x80; 4000], b" HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()].concat();
    let name = [&[63_u8][..], &[1; 63]].concat().repeat(3);
    let name = [&name[..], &[60], &[1; 60], &[0]].concat();
    let pointers = [0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 1, 0, 2, 0xc0, 12].repeat(80);
    let reply = [dns(0x8180, 1, 80), name.clone(), vec![0, 1, 0, 1], pointers].concat();
    let short = [dns(0x100, 1, 0), vec![0, 0, 1, 0, 1]].concat();
    let escapes = [dns(0x100, 1, 0), name, vec![0, 1, 0, 1]].concat();
    let datagrams = |ports: (u16, u16), payload: &[u8]| -> Vec<Vec<u8>> {
        let at = |at| if ports.0 == 53 { (53, ports.1 + at) } else { (ports.0 + at, 53) };
        (0..3000).map(|number| udp(at(number), payload)).collect()
    };
    for (what, frames) in [
        ("http", connections(80, &http, &http_reply)),
        ("http, controls", connections(80, &controls.repeat(10), &[])),
        ("http2, repeated paths", connections(80, &repeated_paths(), &[])),
        (
            "ftp",
            connections(
                21,
                &[b"USER a\r\n".to_vec(), ftp].concat(),
                &[b"220 FTP\r\n".to_vec(), ftp_reply].concat(),
            ),
        ),
        ("smtp", connections(25, &smtp, &smtp_reply)),
        ("tls alerts", connections(443, &alerts, &[])),
        ("ssh", connections(22, b"SSH-2.0-a\r\n", b"SSH-2.0-b\r\n")),
        ("dns, short", datagrams((1024, 53), &short)),
        ("dns, escapes", datagrams((1024, 53), &escapes)),
        ("dns, pointers", datagrams((53, 1024), &reply)),
    ] {
        let capture = pcap(LINK_ETHERNET, &frames);
        for format in ["ndjson", "table"] {
            let (out, err, _) = run(&["sessions", "--format", format, "input"], &capture);
            assert_bounded(what, capture.len(), &out);
            assert!(!out.is_empty(), "{what}: {err}");
            // What is omitted is counted, and reported once per flow at most.
            let reported = String::from_utf8(out).unwrap().matches("suppressed").count();
            assert!(reported <= usize::from(CONNECTION_COUNT), "{what}");
            assert!(
                reported == 0 || err.contains("suppressed by the output limit per flow"),
                "{what}: {err}"
            );
        }
    }
}

/// A flow cannot use up what others may write.
#[test]
fn a_flood_of_messages_does_not_suppress_those_of_other_flows() {
    let alerts = [0x15, 3, 3, 0, 2, 2, 0x28].repeat(5000);
    let mut frames = connections(443, &alerts, &[]);
    connection(
        &mut frames,
        (80, 20_000),
        b"GET /honest HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    );
    let (out, err, _) = run(&["sessions", "input"], &pcap(LINK_ETHERNET, &frames));
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("\"/honest\"") && out.contains("\"status\":200"), "{err}");
}

#[test]
fn collected_records_are_in_proportion_to_their_messages() {
    // Records of two addresses, which are the shortest; a record has eight octets.
    let mut shortest = message(1, &template(256, &[(8, 4), (12, 4)]));
    (0..10).for_each(|_| shortest.extend(message(1, &data(256, &[10, 0, 0, 1, 10, 0, 0, 2].repeat(8000)))));
    // Records of 13 octets.
    let mut small = message(1, &template(256, &[(8, 4), (12, 4), (7, 2), (11, 2), (4, 1)]));
    let record = [10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 1, 187, 6];
    (0..10).for_each(|_| small.extend(message(1, &data(256, &record.repeat(5000)))));
    // Packets of 20 octets, each of another flow.
    let mut sampled = message(1, &template(256, &[(313, 20)]));
    for part in 0..10 {
        let packets: Vec<u8> = (0..3000).flat_map(|at| ipv4(61, part << 16 | at, 7, &[])).collect();
        sampled.extend(message(1, &data(256, &packets)));
    }
    for (what, messages, is_honest) in
        [("shortest", shortest, false), ("small", small, true), ("sampled", sampled, false)]
    {
        for format in ["ndjson", "csv", "table", "ipfix"] {
            for join in [&[][..], &["--join", "10s"]] {
                let args = [&["collect", "--format", format, "input"], join].concat();
                let (out, err, _) = run(&args, &messages);
                assert_bounded(&format!("{what}, {format}"), messages.len(), &out);
                assert!(!out.is_empty(), "{what}: {err}");
                assert!(!is_honest || !err.contains("omitted"), "{what}, {format}: {err}");
            }
        }
    }
}

/// Each record of `flows` has at least one packet. The shortest ones without a link layer are less than half as long as
/// those of Ethernet, and have a bound of their own.
#[test]
fn records_are_in_proportion_to_their_packets() {
    let raw: Vec<_> = (0..20_000).map(|at| ipv4(61, 0xdf00_0000 + at, 0xdfdf_dfdf, &[])).collect();
    let ethernet: Vec<_> = (0..20_000).map(|at| udp((at, 60_000), &[0; 18])).collect();
    for (what, capture, per_octet) in
        [("raw", pcap(RAW, &raw), 26), ("ethernet", pcap(LINK_ETHERNET, &ethernet), OUTPUT_PER_OCTET)]
    {
        for format in ["ndjson", "csv", "table", "ipfix"] {
            let (out, _, _) = run(&["flows", "--format", format, "input"], &capture);
            assert!(
                out.len() <= per_octet * capture.len(),
                "{what}, {format}: {} of {}",
                out.len(),
                capture.len()
            );
        }
    }
}
