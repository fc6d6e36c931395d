//! Resident memory of commands under attacks on what they keep for flows and keys: it exceeds `--memory` by at most what
//! `docs/limits.md` states. Each row of its table of the memory of sinks has a test of the allocator:
//!
//! | row of the table | test |
//! |---|---|
//! | open transactions; control connections of FTP, requests of TFTP | `tests/budget/transactions.rs` of the library |
//! | objects, byte ranges and certificates of `export-objects` | `objects::tests::allocated_memory_is_within_the_budget` |
//! | connections, gaps and conflicts of `streams` | `streams::tests::allocated_memory_is_within_the_budget` |
//! | window of a decoder | `objects::decode::tests::windows_are_limited` |
//! | groups | `groups::tests::allocated_memory_is_within_the_limit` |
//! | rows over time | `groups::series::tests` |
//! | intervals of collected and merged records | `records_are_spread_over_as_many_intervals_as_their_number_permits` |
//! | records of `--sort` and `--top` | `order::tests::allocated_memory_is_within_the_limit` |
//! | locations of addresses | `joined::locations::tests::allocated_memory_is_within_the_limit` |
//! | numbers of selected flows | `choice::tests::allocated_memory_is_within_the_limit` |
//! | records that wait in `merge` | `merge::joiner::tests::allocated_memory_is_within_the_limit` |
//!
//! or cases below:
//!
//! | row of the table | commands, captures |
//! |---|---|
//! | features of flows | `flows --features`, datagrams |
//! | names of servers, and those that DNS answered | `flows --server-name`, requests, certificates and answers |
//! | fragments in `slice` | `slice`, fragments |
//! | events of EVE | `flows -f eve`, requests and certificates |
//! | logs of Zeek | `flows -f zeek`, requests, certificates, and datagrams with `--tunnels both` |
//! | facts of `summary`, `report` and `hosts` | requests, handshakes, certificates, logins, answers and announcements |
//! | names of hosts | `flows --names`, handshakes, answers and announcements |
//! | logins without evidence of a connection | `summary` and `report`, logins |
//! | flows of a report | `report`, requests |
//! | intervals of open flows | `flows --time-series`, datagrams |

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use etherparse::PacketBuilder;

use super::joined::database;
use super::{Folder, data, run};

/// The memory budget.
const MEMORY: usize = 4 << 20;

/// Memory of rows over time, which has a limit of its own.
const ROWS: usize = 256 << 20;

/// Memory that is not accounted: of the allocator, buffers, and threads. The files of the program are in addition, because
/// they are large without optimization.
const OTHER: usize = 12 << 20;

/// Writes a capture of frames that are a microsecond apart.
fn capture(folder: &Folder, name: &str, frames: impl Iterator<Item = Vec<u8>>) -> String {
    let mut capture = data("web.pcap")[..24].to_vec();
    for (number, frame) in (0_u32..).zip(frames) {
        let len = frame.len() as u32;
        let words = [1_700_000_000, number, len, len];
        capture.extend(words.into_iter().flat_map(u32::to_le_bytes));
        capture.extend(frame);
    }
    folder.file(name, &capture)
}

/// Returns a segment or datagram from a client with this number.
fn frame(number: u32, (port, is_tcp): (u16, bool), seq: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, a, b, c], [192, 0, 2, 1], 64);
    let mut frame = Vec::new();
    if is_tcp {
        let builder = builder.tcp(40_000, port, seq, 1000);
        let builder = if seq == 0 { builder.syn() } else { builder.ack(1) };
        builder.write(&mut frame, payload).unwrap();
    } else {
        builder.udp(40_000, port).write(&mut frame, payload).unwrap();
    }
    frame
}

/// Requests with credentials, each the only segment of its connection.
fn logins() -> impl Iterator<Item = Vec<u8>> {
    let request = b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Basic dXNlcjpwYXNz\r\n\r\n";
    (0..8000_u32).map(|number| frame(number, (80, true), 1, request))
}

/// Returns a number of `len` octets, as in messages of TLS.
fn octets(number: usize, len: usize) -> Vec<u8> {
    number.to_be_bytes()[size_of::<usize>() - len..].to_vec()
}

/// Returns a record of TLS with a handshake message.
fn handshake(message_type: u8, body: &[u8]) -> Vec<u8> {
    let message = [&[message_type][..], &octets(body.len(), 3), body].concat();
    [&[22, 3, 3][..], &octets(message.len(), 2), &message].concat()
}

/// Connections of TLS 1.2, each with a certificate and a long server name of its own.
fn certificates() -> impl Iterator<Item = Vec<u8>> {
    let folder = Folder::new();
    let (file, out) = (folder.file("web.pcap", &data("web.pcap")), folder.path("out"));
    assert_eq!(run(&["export-objects", &file, "-q", "-k", "certificate", "--out", &out]).status, 0);
    let first = fs::read_dir(&out).unwrap().next().unwrap().unwrap();
    let der = fs::read(first.path()).unwrap();
    // After two sequences and the version (RFC 5280 section 4.1).
    assert!(der[13] == 2 && der[14] >= 8, "a serial number of 8 octets or more");
    (0..2000_u32).flat_map(move |number| {
        let mut der = der.clone();
        der[16..20].copy_from_slice(&number.to_be_bytes());
        let name = format!("{number:0>63}.{0}.{0}.example", "n".repeat(63)).into_bytes();
        let name = [&[0][..], &octets(name.len(), 2), &name].concat();
        let list = [octets(name.len(), 2), name].concat();
        let extension = [&[0, 0][..], &octets(list.len(), 2), &list].concat();
        let head = [&[3, 3][..], &[7; 32], &[0]].concat();
        let suites = [0, 2, 0xc0, 0x2f, 1, 0];
        let hello = [&head[..], &suites, &octets(extension.len(), 2), &extension].concat();
        let (hello, reply_hello) = (handshake(1, &hello), [&head[..], &[0xc0, 0x2f, 0]].concat());
        let chain = [octets(der.len() + 3, 3), octets(der.len(), 3), der].concat();
        let flight = [handshake(2, &reply_hello), handshake(11, &chain), handshake(14, &[])].concat();
        let end = 1 + hello.len() as u32;
        [
            frame(number, (443, true), 0, &[]),
            reply((number, 443), (0, 1), &[]),
            frame(number, (443, true), 1, &hello),
            reply((number, 443), (1, end), &flight),
        ]
    })
}

/// Eight thousand datagrams whose first fragments arrive alone, among datagrams of as many flows.
fn fragments() -> impl Iterator<Item = Vec<u8>> {
    (0..8000_u32).flat_map(|number| {
        let mut fragment = frame(number, (9999, false), 0, &[7; 1008]);
        // Identification and more fragments; the checksum is not verified.
        fragment[18..20].copy_from_slice(&(number as u16).to_be_bytes());
        fragment[20..22].copy_from_slice(&[0x20, 0]);
        // Another datagram, whose first fragment does not arrive.
        let mut later = fragment.clone();
        later[18..20].copy_from_slice(&(number as u16 + 8000).to_be_bytes());
        later[20..22].copy_from_slice(&[0x20, 100]);
        [fragment, later, frame(number, (9999, false), 0, b"datagram")]
    })
}

/// IPFIX messages with records of flows of a client each, which begin at the same time and last as many milliseconds.
fn long_records(count: u32, duration_ms: u64) -> Vec<u8> {
    let message = |number: u32, set: &[u8]| {
        let mut message = vec![0, 10];
        message.extend((16 + set.len() as u16).to_be_bytes());
        message.extend([1_700_000_000, number, 1].map(u32::to_be_bytes).concat());
        message.extend(set);
        message
    };
    let fields = [(4, 1), (8, 4), (12, 4), (7, 2), (11, 2), (152, 8), (153, 8), (2, 8), (1, 8)];
    let mut template = vec![0, 2];
    template.extend((8 + 4 * fields.len() as u16).to_be_bytes());
    template.extend([1, 0]);
    template.extend((fields.len() as u16).to_be_bytes());
    for (element, len) in fields {
        template.extend([u16::to_be_bytes(element), u16::to_be_bytes(len)].concat());
    }
    let mut file = message(0, &template);
    for number in 0..count {
        let mut set = vec![1, 0, 0, 4 + 45, 17];
        let [_, a, b, c] = number.to_be_bytes();
        set.extend([[10, a, b, c], [192, 0, 2, 1]].concat());
        set.extend([9, 9, 7, 7]);
        let start = 1_700_000_000_000_u64;
        set.extend([start, start + duration_ms, 8000, 800_000].map(u64::to_be_bytes).concat());
        file.extend(message(number, &set));
    }
    file
}

/// Serves a capture to those who connect. Returns the address.
fn serve(path: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}/pcap", listener.local_addr().unwrap());
    let octets = fs::read(path).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            // The client may have ended.
            let _ = connection.and_then(|mut connection| connection.write_all(&octets));
        }
    });
    address
}

/// Returns a segment of a server to the client with this number.
fn reply((number, port): (u32, u16), (seq, ack): (u32, u32), payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let builder = PacketBuilder::ethernet2([4; 6], [2; 6]).ipv4([192, 0, 2, 1], [10, a, b, c], 64);
    let builder = builder.tcp(port, 40_000, seq, 1000).ack(ack);
    let builder = if seq == 0 { builder.syn() } else { builder };
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// Requests of HTTP and queries of DNS that nobody answers: a quarter of the flows of HTTP have 100 requests each.
fn requests() -> impl Iterator<Item = Vec<u8>> {
    let http = (0..1000_u32).flat_map(|number| {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: h{number}.example.org\r\n\r\n");
        let requests = if number % 4 == 0 { request.repeat(100) } else { request };
        let mut frames = vec![frame(number, (80, true), 0, &[])];
        let mut seq = 1;
        for payload in requests.as_bytes().chunks(1400) {
            frames.push(frame(number, (80, true), seq, payload));
            seq += payload.len() as u32;
        }
        frames
    });
    let dns = (0..3000_u32).map(|number| {
        let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in [format!("name{number:06}"), "example".to_owned(), "org".to_owned()] {
            query.push(label.len() as u8);
            query.extend(label.as_bytes());
        }
        query.extend([0, 0, 1, 0, 1]);
        frame(1 << 20 | number, (53, false), 0, &query)
    });
    http.chain(dns)
}

/// Answers of DNS with 60 addresses for a long name each.
fn answers() -> impl Iterator<Item = Vec<u8>> {
    (0..1000_u32).map(|number| {
        let mut answer = vec![0, 1, 0x81, 0x80, 0, 1, 0, 60, 0, 0, 0, 0];
        for label in [format!("{number:0>63}"), "n".repeat(63), "m".repeat(63), "example".to_owned()] {
            answer.push(label.len() as u8);
            answer.extend(label.as_bytes());
        }
        answer.extend([0, 0, 1, 0, 1]);
        for address in 0..60 {
            let [.., high, low] = number.to_be_bytes();
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 203, high, low, address]);
        }
        let [_, a, b, c] = number.to_be_bytes();
        let builder = PacketBuilder::ethernet2([4; 6], [2; 6]).ipv4([192, 0, 2, 1], [10, a, b, c], 64);
        let mut frame = Vec::new();
        builder.udp(53, 40_000).write(&mut frame, &answer).unwrap();
        frame
    })
}

/// Announcements of ARP, each of another address by another host.
fn announcements() -> impl Iterator<Item = Vec<u8>> {
    (0..300_000_u32).map(|number| {
        let [_, a, b, c] = number.to_be_bytes();
        let (mac, address) = ([2, 0, 0, a, b, c], [10, a, b, c]);
        let head = [&[0xff; 6][..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]];
        [&head.concat()[..], &mac, &address, &[0xff; 6], &address].concat()
    })
}

/// Connections that each begin a coded body, which does not end.
fn bodies() -> impl Iterator<Item = Vec<u8>> {
    (0..3000_u32).flat_map(|number| {
        let request = format!("GET /{number:0>600} HTTP/1.1\r\nHost: {}\r\n\r\n", "h".repeat(600));
        let head = &b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nContent-Encoding: br\r\n\r\n"[..];
        let response = [head, &[0xcf, 0xff, 0xff, 0xff][..], &[7; 600][..]].concat();
        let end = 1 + request.len() as u32;
        [
            frame(number, (80, true), 0, &[]),
            reply((number, 80), (0, 1), &[]),
            frame(number, (80, true), 1, request.as_bytes()),
            reply((number, 80), (1, end), &response),
        ]
    })
}

/// Returns the peak of resident memory of a command without the files of the program, as the system reported it last, and its
/// exit status.
fn resident_peak(args: &[&str]) -> (usize, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.args(args).args(["-q", "--memory", &MEMORY.to_string()]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Ok(status) = fs::read_to_string(&path) {
            let value = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().strip_suffix(" kB")?.parse::<usize>().ok()
            };
            if let (Some(all), Some(files)) = (value("VmHWM:"), value("RssFile:")) {
                peak = peak.max(all.saturating_sub(files) << 10);
            }
        }
        if let Some(status) = child.try_wait().unwrap() {
            return (peak, status.code().unwrap());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn resident_memory_of_each_command_is_within_its_bound() {
    let folder = Folder::new();
    let requests = capture(&folder, "requests.pcap", requests());
    let handshakes =
        capture(&folder, "handshakes.pcap", (0..15_000).map(|number| frame(number, (80, true), 0, &[])));
    let datagrams = capture(
        &folder,
        "datagrams.pcap",
        (0..16_000).map(|number| frame(number % 8000, (9999, false), 0, b"datagram")),
    );
    let records: String = (0..30_000_u64)
        .map(|number| {
            format!(
                "{{\"protocol\":17,\"source_address\":\"10.{}.{}.1\",\"source_port\":1,\"destination_address\":\"192.0.2.1\",\
                 \"destination_port\":2,\"start\":{number},\"end\":{number},\"packet_count\":1,\"octet_count\":100,\
                 \"end_reason\":\"active_timeout\"}}\n",
                number >> 8,
                number & 255
            )
        })
        .collect();
    let records = folder.file("records.ndjson", records.as_bytes());
    let long_records = folder.file("long.ipfix", &long_records(1500, 300));
    let fragments = capture(&folder, "fragments.pcap", fragments());
    let certificates = capture(&folder, "certificates.pcap", certificates());
    let answers = capture(&folder, "answers.pcap", answers());
    let logins = capture(&folder, "logins.pcap", logins());
    let announcements = capture(&folder, "announcements.pcap", announcements());
    let text = "n".repeat(280);
    let location =
        serde_json::json!({"country_code": text, "city": text, "autonomous_system_organization": text});
    let locations = folder.file("locations.mmdb", &database(&[("10.0.0.0", 8, location)]));
    let live = serve(&handshakes);
    let [
        page,
        logs,
        objects,
        cut_objects,
        slice,
        streams,
        der,
        tls_logs,
        logins_page,
        slice_of_hosts,
        tunnel_logs,
    ] = [
        "page.html",
        "logs",
        "objects",
        "cut",
        "slice.pcapng",
        "streams",
        "der",
        "tls",
        "logins.html",
        "hosts.pcapng",
        "tunnels",
    ]
    .map(|name| folder.path(name));
    let features = "cic,nfstream,histogram,splt=100,tcp";
    let bodies = capture(&folder, "bodies.pcap", bodies());
    #[cfg(feature = "bus")]
    let endpoint = format!("ipc://{}", folder.path("bus"));
    let cases: &[&[&str]] = &[
        &["sessions", &requests],
        &["sessions", "--transactions", &requests],
        &["sessions", "-f", "zeek", &requests],
        &["summary", &requests],
        &["summary", &handshakes],
        &["summary", &answers],
        &["summary", &announcements],
        &["hosts", &requests],
        &["hosts", &handshakes],
        &["hosts", &answers],
        &["hosts", &announcements],
        &["report", &requests, "-o", &page],
        &["flows", "-f", "eve", &requests],
        &["flows", "-f", "zeek", "--out", &logs, &requests],
        &["flows", "-f", "zeek", "--tunnels", "both", "--out", &tunnel_logs, &datagrams],
        &["flows", "--server-name", "dns", "-f", "ndjson", &requests],
        &["flows", "--server-name", "dns", "-f", "ndjson", &answers],
        &["flows", "--names", "-f", "ndjson", &handshakes],
        &["flows", "--names", "-f", "ndjson", &answers],
        &["flows", "--names", "-f", "ndjson", &announcements],
        &["flows", "--names", "--sort", "octets", "-f", "ndjson", &handshakes],
        &["sessions", "-p", "neighbor", &announcements],
        &["flows", "--geoip", &locations, "-f", "ndjson", &handshakes],
        &["flows", "--features", features, "-f", "csv", &datagrams],
        &["flows", "--group-by", "source_address", &datagrams],
        &["flows", "--time-series", "1ms", "--by", "source_address", &datagrams],
        &["export-objects", &requests, "--out", &objects],
        &["export-objects", "--decode", &bodies, "--out", &cut_objects],
        &["export-objects", &certificates, "--out", &der],
        &["flows", "-f", "eve", &certificates],
        &["flows", "-f", "zeek", "--out", &tls_logs, &certificates],
        &["flows", "--server-name", "content", "-f", "ndjson", &certificates],
        &["summary", &certificates],
        &["summary", &logins],
        &["report", &logins, "-o", &logins_page],
        &["merge", &records, "-f", "ndjson"],
        &["merge", &records, "-f", "ndjson", "--sort", "start"],
        &["flows", "--sort", "octets", "-f", "ndjson", &handshakes],
        &["flows", "--sort", "octets", "--shards", "2", "-f", "ndjson", &handshakes],
        &["flows", "--top", "100", "-f", "ndjson", &handshakes],
        &["packets", &fragments],
        &["slice", &fragments, "-F", "udp", "-w", &slice],
        &["slice", &fragments, "-F", "src net 10.0.0.0/8", "-w", &slice_of_hosts],
        &["streams", &bodies, "--out", &streams],
        &["live", "--connect", &live, "--duration", "2s", "-f", "ndjson"],
        &["collect", &long_records, "--time-series", "1ms", "--by", "source_address", "-f", "ndjson"],
        #[cfg(feature = "bus")]
        &["publish", "--sessions", &requests, "--bind", &endpoint],
    ];
    // Objects are cut, and sorted records omitted, because memory is short.
    let is_short = |args: &[&str]| args.contains(&&*cut_objects) || args.contains(&"--sort");
    for args in cases.iter().copied() {
        let (peak, status) = resident_peak(args);
        println!("{peak} bytes: {}", args.join(" "));
        assert_eq!(status, i32::from(is_short(args)), "{args:?}");
        let rows = if args.contains(&&*long_records) { ROWS } else { 0 };
        assert!(peak <= MEMORY + OTHER + rows, "{args:?}: {peak} bytes");
    }
    // The attack has reached the tables of certificates.
    let object_count = fs::read_dir(der).unwrap().count();
    let line_count = fs::read_to_string(format!("{tls_logs}/x509.log")).unwrap().lines().count();
    assert!(object_count > 500 && line_count > 500, "{object_count} objects, {line_count} lines");
}

/// Records of 5 minutes in intervals of a second are exact, whatever their number. Of records of an hour, as many are spread as
/// all of them permit, and the others are counted in their first interval: no packet is lost.
#[test]
fn records_are_spread_over_as_many_intervals_as_their_number_permits() {
    const MINUTES_5: u64 = 300;
    const HOUR: u64 = 3600;
    let folder = Folder::new();
    for (count, duration, by) in [
        (3000, MINUTES_5, &[][..]),
        (18, HOUR, &[]),
        (19, HOUR, &[]),
        (1000, HOUR, &[]),
        (100, HOUR, &["--by", "source_address"]),
        (10, 4095, &[]),
        (10, 4096, &[]),
    ] {
        let path = folder.file("records.ipfix", &long_records(count, 1000 * duration));
        let args = [&["collect", &path, "-q", "--time-series", "1s", "-f", "ndjson"], by].concat();
        let run = run(&args);
        assert_eq!(run.status, 0, "{}", run.err);
        let stated: u64 = run
            .err
            .lines()
            .find_map(|line| line.split_once(" counted in the first interval")?.0.split(' ').next())
            .map_or(0, |number| number.replace(',', "").parse().unwrap());
        let count = u64::from(count);
        // A record ends in the interval after its last full one.
        let interval_count = duration + 1;
        let (mut credit, mut unspread_count) = (65_536, 0);
        for _ in 0..count {
            credit += 320;
            let is_spread = interval_count <= credit && interval_count <= 4096;
            credit -= if is_spread { interval_count } else { 1 };
            unspread_count += u64::from(!is_spread);
        }
        assert_eq!(stated, unspread_count, "{count} records of {duration} s: {}", run.err);
        assert!(
            duration != MINUTES_5 || stated == 0,
            "{count} records of {duration} s: {stated} are not exact"
        );
        let rows: Vec<serde_json::Value> =
            run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
        let spread_count = count - unspread_count;
        // Each record counts as a flow in all of its intervals.
        assert_eq!(sum("flow_count"), spread_count * interval_count + unspread_count);
        assert!(sum("flow_count") <= 65_536 + 320 * count);
        assert_eq!((sum("packet_count"), sum("octet_count")), (8000 * count, 800_000 * count));
        let first = 1_700_000_000_000_000_000_u64;
        let in_first: Vec<_> = rows.iter().filter(|row| row["time"] == first).collect();
        let first_count: u64 = in_first.iter().map(|row| row["flow_count"].as_u64().unwrap()).sum();
        assert_eq!(first_count, count);
        // A second has its part of the octets of each record, and the last millisecond that of a millisecond.
        let part = 800_000 * 1000 / (1000 * duration + 1);
        let expected = spread_count * part + 800_000 * unspread_count;
        let octets: u64 = in_first.iter().map(|row| row["octet_count"].as_u64().unwrap()).sum();
        assert!(octets.abs_diff(expected) <= count, "{octets} octets instead of {expected}");
    }
}
