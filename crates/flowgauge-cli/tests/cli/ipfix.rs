//! Export with IPFIX, and collection: over UDP and TCP on loopback, through files, and in captures.

use std::fs;
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{Folder, command, free_port, run, run_with_input};

const TIMEOUT: Duration = Duration::from_secs(120);

/// The records of a capture as `flows` writes them.
fn flows(name: &str, options: &[&str]) -> String {
    let run = run(&[&["flows", name, "--format", "ndjson", "--quiet"], options].concat());
    assert_eq!(run.status, 0, "{}", run.err);
    run.out
}

/// Returns collected records without their exporter and its domain, which records of packets do not have.
fn without_exporter(records: &str) -> String {
    records.replace(",\"exporter_address\":\"127.0.0.1\"", "").replace(",\"observation_domain\":1", "")
}

/// Options that send every field.
const ALL_FIELDS: [&str; 2] = ["--enterprise-number", "32473"];

#[test]
fn a_file_of_messages_has_the_records_of_the_capture() {
    let folder = Folder::new();
    for name in ["web.pcap", "dns.pcap", "vlan.pcapng", "mail.pcap"] {
        let path = folder.path(&format!("{name}.ipfix"));
        let written = run(&[&["flows", name, "--format", "ipfix", "--to", &path], &ALL_FIELDS[..]].concat());
        assert_eq!((written.status, written.out.as_str()), (0, ""), "{}", written.err);
        let collected = run(&["collect", &path, "--format", "ndjson"]);
        assert_eq!(collected.status, 0, "{}", collected.err);
        let records = without_exporter(&collected.out);
        assert!(records == flows(name, &[]), "{name}: {} records", records.lines().count());
        // The same over a pipe.
        let messages = fs::read(&path).unwrap();
        let collected = run_with_input(&["collect", "-", "--format", "ndjson", "--quiet"], &messages);
        assert_eq!((without_exporter(&collected.out), collected.err), (flows(name, &[]), String::new()));
    }
}

#[test]
fn records_are_relayed_unchanged() {
    let folder = Folder::new();
    let [first, second] = ["first", "second"].map(|name| folder.path(name));
    run(&[&["flows", "web.pcap", "--format", "ipfix", "--to", &first], &ALL_FIELDS[..]].concat());
    let relayed =
        run(&[&["collect", &first, "--format", "ipfix", "--to", &second], &ALL_FIELDS[..]].concat());
    assert_eq!(relayed.status, 0, "{}", relayed.err);
    let [first, second] = [first, second].map(|path| run(&["collect", &path, "--format", "ndjson"]).out);
    assert_eq!(first, second);
    assert_eq!(without_exporter(&second), flows("web.pcap", &[]));
}

/// Starts `collect` with a socket, and waits until it listens.
fn start(args: &[&str], port: u16, folder: &Folder) -> Child {
    let out = fs::File::create(folder.path("out")).unwrap();
    let mut collect = command();
    let child = collect.arg("collect").args(args).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    let address = format!(":{port:04X}");
    let is_listening = || {
        ["/proc/net/udp", "/proc/net/tcp"].iter().any(|path| {
            let sockets = fs::read_to_string(path).unwrap_or_default();
            sockets
                .lines()
                .any(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&address)))
        })
    };
    while !is_listening() {
        assert!(started.elapsed() < TIMEOUT, "the command does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Interrupts `collect`, and returns what it wrote.
fn interrupt(child: Child, folder: &Folder) -> (Output, String) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    (output, fs::read_to_string(folder.path("out")).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn records_sent_to_a_socket_are_written_at_the_interrupt() {
    for scheme in ["udp", "tcp"] {
        let folder = Folder::new();
        let port = free_port();
        let address = format!("{scheme}://127.0.0.1:{port}");
        let collect = start(&["--listen", &address, "--format", "ndjson"], port, &folder);
        let sent =
            run(&[&["flows", "web.pcap", "--format", "ipfix", "--to", &address], &ALL_FIELDS[..]].concat());
        assert_eq!(sent.status, 0, "{}", sent.err);
        let (output, records) = interrupt(collect, &folder);
        assert_eq!(records.matches("\"exporter_address\":\"127.0.0.1\"").count(), 27);
        let records = without_exporter(&records);
        assert!(records == flows("web.pcap", &[]), "{scheme}: {} records", records.lines().count());
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains("27 records") && summary.lines().count() == 1, "{summary}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn invalid_input_at_a_socket_is_reported_and_others_continue() {
    let folder = Folder::new();
    let port = free_port();
    let address = format!("tcp://127.0.0.1:{port}");
    let collect = start(&["--listen", &address, "--format", "ndjson"], port, &folder);
    let mut garbage = TcpStream::connect(("127.0.0.1", port)).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // A connection that ends within a message.
    let mut partial = TcpStream::connect(("127.0.0.1", port)).unwrap();
    partial.write_all(&[0, 10, 0, 200, 1, 2, 3]).unwrap();
    drop(partial);
    run(&[&["flows", "ssh.pcap", "--format", "ipfix", "--to", &address], &ALL_FIELDS[..]].concat());
    std::thread::sleep(Duration::from_millis(500));
    let (output, records) = interrupt(collect, &folder);
    let records = without_exporter(&records);
    assert!(records == flows("ssh.pcap", &[]), "{} records", records.lines().count());
    let problems = String::from_utf8(output.stderr).unwrap();
    assert!(problems.contains("no IPFIX message at offset 0"), "{problems}");
    assert!(problems.contains("the stream ends within the message at offset 0"), "{problems}");
}

/// Messages that arrive more often than the output is flushed do not delay it.
#[test]
#[cfg(target_os = "linux")]
fn records_are_written_while_messages_arrive() {
    let folder = Folder::new();
    let port = free_port();
    let address = format!("udp://127.0.0.1:{port}");
    let args = ["--listen", &address, "--format", "ndjson", "--join", "200ms"];
    let collect = start(&args, port, &folder);
    run(&["flows", "ssh.pcap", "--format", "ipfix", "--uniflow", "--to", &address]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let started = Instant::now();
    let count = || fs::read_to_string(folder.path("out")).unwrap().lines().count();
    while count() < 5 && started.elapsed() < TIMEOUT {
        let message = [0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        socket.send_to(&message, ("127.0.0.1", port)).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    // Four biflows, and a flow of one direction that waited for the other.
    assert_eq!(count(), 5);
    interrupt(collect, &folder);
}

#[test]
#[cfg(target_os = "linux")]
fn an_exporter_that_never_pauses_does_not_delay_the_end() {
    let folder = Folder::new();
    let port = free_port();
    let collect = start(&["--listen", &format!("udp://127.0.0.1:{port}")], port, &folder);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let elapsed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let message = [0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = socket.send_to(&message, ("127.0.0.1", port));
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        std::thread::sleep(Duration::from_millis(300));
        let started = Instant::now();
        let (_, records) = interrupt(collect, &folder);
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        // Only the header of the table.
        assert_eq!(records.lines().count(), 1, "{records}");
        started.elapsed()
    });
    assert!(elapsed < TIMEOUT, "{elapsed:?}");
}

#[test]
fn messages_in_a_capture_are_collected() {
    // The messages as datagrams, in a capture of raw IPv4 packets.
    let folder = Folder::new();
    let path = folder.path("messages");
    run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "--milliseconds"]);
    let message = fs::read(&path).unwrap();
    let udp_len = 8 + message.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp_len).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.extend([0x9c, 0x40].into_iter().chain(9996_u16.to_be_bytes()));
    packet.extend(udp_len.to_be_bytes().into_iter().chain([0, 0]));
    packet.extend(message);
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0x4_0000, 101, 1_700_000_000, 0] {
        capture.extend(word.to_le_bytes());
    }
    capture.extend((packet.len() as u32).to_le_bytes().repeat(2));
    capture.extend(packet);
    let path = folder.file("capture.pcap", &capture);
    let collected = run(&["collect", &path, "--format", "csv", "--fields", "packet_count"]);
    assert_eq!((collected.status, collected.out.lines().count()), (0, 28), "{}", collected.err);
    let other_port = run(&["collect", &path, "--port", "2055", "--format", "ndjson"]);
    assert_eq!((other_port.status, other_port.out.as_str()), (0, ""));
    let hint = "1 datagram to port 9996 looks like IPFIX; `--port 9996` reads it";
    assert!(other_port.err.contains(hint), "{}", other_port.err);
}

#[test]
fn problems_name_the_output_or_input() {
    let folder = Folder::new();
    let existing = folder.file("existing", b"content");
    let refused = run(&["flows", "web.pcap", "--format", "ipfix", "--to", &existing]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("already exists; use --force to overwrite it"), "{}", refused.err);
    assert_eq!(fs::read(&existing).unwrap(), b"content");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &existing, "--force"]).status, 0);

    let port = free_port();
    let udp = run(&["flows", "web.pcap", "--format", "ipfix", "--to", &format!("udp://127.0.0.1:{port}")]);
    assert_eq!(udp.status, 1);
    assert!(udp.err.contains("refused: no collector listens there"), "{}", udp.err);
    // A single message, whose refusal is no error of a later one.
    let one = ["flows", "web.pcap", "--filter", "tcp dst port 8080 and ip6", "--format", "ipfix", "--to"];
    let udp = run(&[&one[..], &[&format!("udp://127.0.0.1:{port}")]].concat());
    assert_eq!(udp.status, 1);
    assert!(udp.err.contains("1 message refused"), "{}", udp.err);
    let tcp = run(&["flows", "web.pcap", "--format", "ipfix", "--to", &format!("tcp://127.0.0.1:{port}")]);
    assert_eq!(tcp.status, 1);
    assert!(tcp.err.contains(&format!("tcp://127.0.0.1:{port}: Connection refused")), "{}", tcp.err);

    let truncated = folder.path("truncated");
    let messages = fs::read(&existing).unwrap();
    fs::write(&truncated, &messages[..messages.len() - 1]).unwrap();
    let collected = run(&["collect", &truncated]);
    assert_eq!(collected.status, 1);
    assert!(collected.err.contains("the stream ends within the message at offset 0"), "{}", collected.err);
    for (args, message) in [
        (&["flows", "web.pcap", "--to", "x"][..], "--to requires --format ipfix"),
        (&["flows", "web.pcap", "--uniflow"], "--uniflow requires --format ipfix"),
        (&["flows", "web.pcap", "--format", "ipfix", "--to", "sctp://h:1"], "unknown scheme `sctp`"),
        (&["flows", "web.pcap", "--format", "ipfix", "--fields", "protocol"], "--fields cannot be combined"),
        (&["collect"], "required"),
        (&["collect", "--listen", "127.0.0.1:4739"], "must begin with udp:// or tcp://"),
        (&["collect", "--listen", "udp://127.0.0.1"], "must have a host and a port"),
    ] {
        let run = run(args);
        assert!(run.status == 2 && run.err.contains(message), "{args:?}: {}", run.err);
    }
}

#[test]
fn records_are_sent_at_the_requested_rate() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", receiver.local_addr().unwrap());
    let started = Instant::now();
    let sent = run(&["flows", "web.pcap", "--format", "ipfix", "--to", &address, "--rate", "50"]);
    assert_eq!(sent.status, 0, "{}", sent.err);
    // The first record is not delayed.
    assert!(started.elapsed() >= Duration::from_millis(26 * 20 - 10), "{:?}", started.elapsed());
}
