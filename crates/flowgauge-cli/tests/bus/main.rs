//! `flowgauge publish` and `flowgauge subscribe`, and pyzmq as a subscriber.
//!
//! The tests with pyzmq run the Python interpreter of the variable `FLOWGAUGE_PYTHON`, or `python3`. Without pyzmq,
//! they print a note and pass. If `FLOWGAUGE_PYZMQ` is set to `required`, they fail instead:
//!
//! ```sh
//! python3 -m venv venv && venv/bin/pip install pyzmq
//! FLOWGAUGE_PYZMQ=required FLOWGAUGE_PYTHON=venv/bin/python \
//!     cargo test -p flowgauge-cli --features bus --test bus
//! ```
#![cfg(all(feature = "bus", target_os = "linux"))]

#[path = "../support/folder.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod folder;
#[path = "../support/port.rs"]
mod port;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use flowgauge::base::{Frame, Timestamp};
use flowgauge::source::PcapngWriter;
use folder::Folder;
use port::free_port;
use process::{TIMEOUT, wait_for};

/// A process with its output in files, which ends with the test.
struct Process {
    process: process::Process,
    out: String,
    err: String,
}

impl Process {
    fn start(folder: &Folder, name: &str, command: &mut Command, stdin: Stdio) -> Self {
        let path = |kind: &str| folder.path(&format!("{name}.{kind}"));
        let (out, err) = (path("out"), path("err"));
        command.stdin(stdin).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Self { process: process::Process::start(command), out, err }
    }

    fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Waits for the end of the process. Returns its exit status.
    fn end(&mut self) -> Option<i32> {
        self.process.end()
    }

    fn signal(&self, name: &str) {
        self.process.signal(name);
    }
}

fn flowgauge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.env_remove("COLUMNS");
    command
}

/// Starts `flowgauge subscribe` until the publisher ends.
fn subscribe(folder: &Folder, endpoint: &str, options: &[&str]) -> Process {
    let mut command = flowgauge();
    command.args(["subscribe", "--connect", endpoint, "--until-end"]).args(options);
    Process::start(folder, "subscriber", &mut command, Stdio::null())
}

/// Returns the interpreter with pyzmq; `None` after a note if there is none and it is not required.
fn python() -> Option<Command> {
    let python = std::env::var("FLOWGAUGE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_zmq = Command::new(&python)
        .args(["-c", "import zmq"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if !has_zmq {
        assert!(std::env::var("FLOWGAUGE_PYZMQ").as_deref() != Ok("required"), "{python} has no pyzmq");
        eprintln!("{python} has no pyzmq: the test is skipped");
        return None;
    }
    Some(Command::new(python))
}

/// Starts the subscriber in Python.
fn subscriber(folder: &Folder, name: &str, endpoint: &str, slow: bool) -> Option<Process> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bus/subscriber.py");
    let high_water_mark = if slow { "1" } else { "10000" };
    let mut command = python()?;
    command.arg(script).args([endpoint, "flow.end", high_water_mark]);
    Some(Process::start(folder, name, &mut command, Stdio::null()))
}

/// Position and content of a record.
type Row = (u64, String);

/// Returns the received records of a subscriber with their positions, and the numbers of received and lost records if
/// it received the end.
fn received(process: &Process) -> (Vec<Row>, Option<(u64, u64)>) {
    let (mut rows, mut end) = (Vec::new(), None);
    let out = process.out();
    // The last line may be incomplete if the process was killed.
    for line in out.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (first, rest) = line.split_once(',').unwrap();
        if first == "end" {
            let (received, lost) = rest.split_once(',').unwrap();
            end = Some((received.parse().unwrap(), lost.parse().unwrap()));
        } else {
            rows.push((first.parse().unwrap(), rest.to_owned()));
        }
    }
    (rows, end)
}

/// Returns an endpoint with a free port, and one with a path.
fn endpoints(folder: &Folder) -> [String; 2] {
    let port = free_port();
    [format!("tcp://127.0.0.1:{port}"), format!("ipc://{}", folder.path("flows.ipc"))]
}

/// Returns a UDP datagram of the flow with a number, in an Ethernet frame.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, (number >> 24) as u8, (number >> 16) as u8, 192, 0, 2, 1]);
    frame.extend((number as u16).to_be_bytes());
    frame.extend([0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
    frame
}

/// Writes one datagram per flow; each comes a minute after the one before, so that it ends the flow of that one.
struct Capture(PcapngWriter<ChildStdin>);

impl Capture {
    fn write(&mut self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let time = Timestamp::from_parts(1_000_000 + u64::from(number) * 61, 0);
            self.0.write(&Frame::ethernet(time, &frame(number)), &[]).unwrap();
        }
        self.0.get_mut().flush().unwrap();
    }
}

/// Starts a publisher that reads frames from the test.
fn publish_frames(folder: &Folder, endpoint: &str, args: &[&str]) -> (Process, Capture) {
    let mut command = flowgauge();
    command.args(["publish", "-", "--bind", endpoint]).args(args);
    let mut process = Process::start(folder, "publisher", &mut command, Stdio::piped());
    let capture = PcapngWriter::new(process.process.0.stdin.take().unwrap()).unwrap();
    wait_for("the publisher", || process.err().contains("publishing at"));
    (process, Capture(capture))
}

/// Returns the numbers of records and of dropped records of each subscriber in the summary of a publisher, and the
/// number of records without a subscriber.
fn summary(err: &str) -> (Vec<(u64, u64)>, u64) {
    let number = |text: &str| text.trim().split(' ').next().unwrap().parse::<u64>().unwrap();
    let is_subscriber = |line: &&str| line.starts_with("127.0.0.1:") || line.starts_with("ipc:");
    let subscribers = err.lines().filter(is_subscriber).map(|line| {
        let (_, counts) = line.rsplit_once(": ").unwrap();
        (number(counts), counts.split_once(", ").map_or(0, |(_, dropped)| number(dropped)))
    });
    let unsubscribed = err.lines().find(|line| line.contains("without a subscriber")).unwrap();
    let (result, _) = unsubscribed.split_once("; processed in ").unwrap();
    (subscribers.collect(), number(result.rsplit_once(", ").unwrap().1))
}

/// Writes a capture of a number of flows, and returns its path.
fn capture(folder: &Folder, count: u32) -> String {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    for number in 0..count {
        let time = Timestamp::from_parts(1_000_000 + u64::from(number / 1000), (number % 1000).into());
        writer.write(&Frame::ethernet(time, &frame(number)), &[]).unwrap();
    }
    let path = folder.path("capture.pcapng");
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

/// Returns the records of a capture in the form that the subscriber in Python writes.
fn expected(capture: &str) -> Vec<String> {
    let fields =
        "start,source_address,source_port,destination_address,destination_port,packet_count,octet_count";
    let args = ["flows", capture, "--quiet", "--format", "csv", "--fields", fields];
    let output = flowgauge().args(args).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn pyzmq_receives_every_record_of_a_capture_in_order() {
    const COUNT: u32 = 100_000;
    let folder = Folder::new();
    let capture = capture(&folder, COUNT);
    let expected = expected(&capture);
    assert_eq!(expected.len(), COUNT as usize);
    for endpoint in endpoints(&folder) {
        let Some(mut python) = subscriber(&folder, "python", &endpoint, false) else { return };
        let mut command = flowgauge();
        command.args(["publish", &capture, "--bind", &endpoint, "--wait-for-subscribers", "1"]);
        let mut publisher = Process::start(&folder, "publisher", &mut command, Stdio::null());
        assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
        assert_eq!(python.end(), Some(0), "{}", python.err());
        let (rows, end) = received(&python);
        assert!(rows.iter().enumerate().all(|(index, (position, _))| *position == index as u64));
        assert!(rows.iter().map(|(_, row)| row).eq(&expected), "{endpoint}");
        assert_eq!(end, Some((u64::from(COUNT), 0)));
        assert_eq!(summary(&publisher.err()), (vec![(u64::from(COUNT), 0)], u64::from(COUNT)));
    }
}

#[test]
fn the_example_in_python_prints_the_records_of_a_capture() {
    let folder = Folder::new();
    let [endpoint, _] = endpoints(&folder);
    let Some(mut command) = python() else { return };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    command.arg(examples.join("bus_subscriber.py")).arg(&endpoint);
    let mut python = Process::start(&folder, "python", &mut command, Stdio::null());
    let mut command = flowgauge();
    command.arg("publish").arg(examples.join("data/web.pcap"));
    command.args(["--bind", &endpoint, "--wait-for-subscribers", "1"]);
    let mut publisher = Process::start(&folder, "publisher", &mut command, Stdio::null());
    assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
    assert_eq!(python.end(), Some(0), "{}", python.err());
    assert_eq!(python.out().lines().count(), 27);
    assert!(python.out().contains("flow.end 10.77.0.2 54802 10.77.0.66 80 4 296\n"), "{}", python.out());
}

#[test]
fn a_slow_subscriber_loses_only_its_own_share_and_both_sides_count_it() {
    const COUNT: u32 = 600_000;
    let folder = Folder::new();
    let capture = capture(&folder, COUNT);
    for endpoint in endpoints(&folder) {
        let Some(mut slow) = subscriber(&folder, "slow", &endpoint, true) else { return };
        let mut fast = flowgauge();
        fast.args(["subscribe", "--connect", &endpoint, "--topic", "flow.end", "--until-end"]);
        let mut fast = Process::start(&folder, "fast", fast.args(["--format", "csv"]), Stdio::null());
        let mut command = flowgauge();
        command.args(["publish", &capture, "--bind", &endpoint, "--wait-for-subscribers", "2"]);
        // A slow subscriber is waited for a moment, so that a fast one loses nothing.
        command.args(["--queue", "4", "--stall", "200ms"]);
        let mut publisher = Process::start(&folder, "publisher", &mut command, Stdio::null());
        // Stopped, the subscriber receives nothing.
        wait_for("the subscribers", || publisher.err().contains("2 subscribers"));
        slow.signal("STOP");
        wait_for("the end of the capture", || {
            let has_ended = publisher.process.has_ended();
            has_ended || fast.out().lines().count() > COUNT as usize
        });
        slow.signal("CONT");
        assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
        assert_eq!(slow.end(), Some(0), "{}", slow.err());
        assert_eq!(fast.end(), Some(0), "{}", fast.err());
        let (_, end) = received(&slow);
        let (received_count, lost_count) = end.expect("the slow subscriber receives the end");
        assert!(lost_count > 0, "{endpoint}: {}", publisher.err());
        assert_eq!(received_count + lost_count, u64::from(COUNT));
        let (mut subscribers, _) = summary(&publisher.err());
        subscribers.sort_unstable();
        assert_eq!(subscribers, [(received_count, lost_count), (u64::from(COUNT), 0)]);
        assert_eq!(fast.out().lines().count(), COUNT as usize + 1);
    }
}

#[test]
fn a_subscriber_that_is_killed_and_restarted_continues() {
    const COUNT: u32 = 3000;
    let folder = Folder::new();
    for endpoint in endpoints(&folder) {
        let Some(first) = subscriber(&folder, "first", &endpoint, false) else { return };
        let (mut publisher, mut capture) =
            publish_frames(&folder, &endpoint, &["--wait-for-subscribers", "1"]);
        capture.write(0..1001);
        wait_for("the first subscriber", || received(&first).0.len() >= 1000);
        first.signal("KILL");
        thread::sleep(Duration::from_millis(300));
        capture.write(1001..2001);
        thread::sleep(Duration::from_millis(300));
        let mut second = subscriber(&folder, "second", &endpoint, false).unwrap();
        // Records are published until the second subscriber receives some.
        let mut count = 2001;
        wait_for("the second subscriber", || {
            capture.write(count..count + 10);
            count += 10;
            !received(&second).0.is_empty()
        });
        capture.write(count..count + COUNT);
        count += COUNT;
        drop(capture);
        assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
        assert_eq!(second.end(), Some(0), "{}", second.err());
        let ((first, _), (second, end)) = (received(&first), received(&second));
        // Each subscriber receives consecutive records.
        for rows in [&first, &second] {
            assert!(rows.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "{endpoint}");
        }
        let (start, missed) = (second[0].0, second[0].0 - first.len() as u64);
        assert_eq!(first.len() as u64 + missed + second.len() as u64, u64::from(count), "{endpoint} {start}");
        assert_eq!(end, Some((second.len() as u64, 0)));
        // The same in the counters of the publisher, which also publishes a flow.start for each flow.
        let (subscribers, unsubscribed) = summary(&publisher.err());
        let queued: u64 = subscribers.iter().map(|(queued, dropped)| queued + dropped).sum();
        assert_eq!(queued + unsubscribed, 2 * u64::from(count), "{}", publisher.err());
        assert_eq!(subscribers[1], (second.len() as u64, 0));
    }
}

#[test]
fn subscribers_continue_after_a_restart_of_the_publisher() {
    let folder = Folder::new();
    let capture = capture(&folder, 5000);
    for endpoint in endpoints(&folder) {
        let mut command = flowgauge();
        command.args(["subscribe", "--connect", &endpoint, "--topic", "flow.end", "--format", "csv"]);
        let mut subscriber = Process::start(&folder, "subscriber", &mut command, Stdio::null());
        for run in 1..=3 {
            let mut command = flowgauge();
            command.args(["publish", &capture, "--bind", &endpoint, "--wait-for-subscribers", "1"]);
            let mut publisher = Process::start(&folder, "publisher", &mut command, Stdio::null());
            assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
            assert_eq!(summary(&publisher.err()).0, [(5000, 0)]);
            wait_for("the records", || subscriber.out().lines().count() == run * 5000 + 1);
        }
        subscriber.signal("INT");
        assert_eq!(subscriber.end(), Some(130));
        assert!(subscriber.err().starts_with("15000 records in "), "{}", subscriber.err());
    }
}

#[test]
fn garbage_on_the_port_is_counted_and_disturbs_no_one() {
    let folder = Folder::new();
    let [endpoint, _] = endpoints(&folder);
    let (mut publisher, mut capture) = publish_frames(&folder, &endpoint, &["--wait-for-subscribers", "1"]);
    for octets in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 1000]] {
        let mut stream = TcpStream::connect(endpoint.trim_start_matches("tcp://")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(octets).unwrap();
        // The connection is closed.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let mut subscriber = subscribe(&folder, &endpoint, &["--topic", "flow.end", "--format", "csv"]);
    capture.write(0..2000);
    drop(capture);
    assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
    assert!(
        publisher.err().contains("2 connections without a complete ZMTP handshake"),
        "{}",
        publisher.err()
    );
    assert_eq!(subscriber.end(), Some(0), "{}", subscriber.err());
    assert_eq!(subscriber.out().lines().count(), 2001);
}

#[test]
fn only_subscribers_with_a_permitted_key_receive_encrypted_records() {
    let folder = Folder::new();
    let [server_key, client_key] = ["server.key", "client.key"].map(|name| folder.path(name));
    let public_key = |err: &str| -> Option<String> {
        err.lines().find_map(|line| line.strip_prefix("flowgauge: public key ").map(str::to_owned))
    };
    // Creates the key of the subscriber.
    let [unused, _] = endpoints(&folder);
    let mut command = flowgauge();
    command.args(["subscribe", "--connect", &unused, "--duration", "1ms", "--curve-key", &client_key]);
    command.args(["--curve-server", &"0".repeat(40)]);
    let mut created = Process::start(&folder, "created", &mut command, Stdio::null());
    assert_eq!(created.end(), Some(0), "{}", created.err());
    let client = public_key(&created.err()).unwrap();
    assert_eq!(fs::metadata(&client_key).unwrap().permissions().mode() & 0o777, 0o600);

    for endpoint in endpoints(&folder) {
        let options = ["--curve-key", &server_key, "--curve-client", &client, "--wait-for-subscribers", "1"];
        let (mut publisher, mut capture) = publish_frames(&folder, &endpoint, &options);
        wait_for("the public key", || public_key(&publisher.err()).is_some());
        let server = public_key(&publisher.err()).unwrap();
        // Without encryption, with a key that is not permitted, and with the permitted one.
        let start = |name: &str, options: &[&str]| {
            let mut command = flowgauge();
            command.args(["subscribe", "--connect", &endpoint, "--until-end", "--topic", "flow.end"]);
            Process::start(&folder, name, command.args(["--format", "csv"]).args(options), Stdio::null())
        };
        let rejected =
            [start("plain", &["--duration", "20s"]), start("stranger", &["--curve-server", &server])];
        let mut admitted = start("admitted", &["--curve-server", &server, "--curve-key", &client_key]);
        wait_for("the subscriber", || publisher.err().contains("flowgauge: 1 subscriber\n"));
        capture.write(0..1000);
        drop(capture);
        assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
        assert_eq!(admitted.end(), Some(0), "{}", admitted.err());
        assert_eq!(admitted.out().lines().count(), 1001);
        assert!(publisher.err().contains("without a complete ZMTP handshake"), "{}", publisher.err());
        for rejected in rejected {
            rejected.signal("KILL");
            assert_eq!(rejected.out(), "");
        }
    }

    // A public key may begin with a hyphen.
    let key = format!("-{}", "0".repeat(39));
    let mut command = flowgauge();
    command.args(["subscribe", "--connect", &unused, "--duration", "1ms", "--curve-server", &key]);
    let mut subscriber = Process::start(&folder, "hyphen", &mut command, Stdio::null());
    assert_eq!(subscriber.end(), Some(0), "{}", subscriber.err());
    let mut command = flowgauge();
    command.args(["publish", &capture(&folder, 1), "--bind", &unused]);
    command.args(["--curve-key", &server_key, "--curve-client", &key]);
    let mut publisher = Process::start(&folder, "hyphens", &mut command, Stdio::null());
    assert_eq!(publisher.end(), Some(0), "{}", publisher.err());

    let (invalid, readable) =
        (folder.file("invalid.key", b"no key\n"), folder.file("readable.key", b"no key\n"));
    fs::set_permissions(&invalid, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o640)).unwrap();
    for (options, status, message) in [
        (["--curve-key", &readable], 1, "others than the owner have access to the key (mode 0640)"),
        (["--curve-key", &invalid], 1, "does not contain a secret key in Z85"),
        (["--curve-client", "short"], 2, "a key has 40 characters of Z85"),
        (["--curve-client", &client], 2, "--curve-key <FILE>"),
    ] {
        let mut command = flowgauge();
        command.args(["publish", "-", "--bind", &unused]).args(options);
        let mut process = Process::start(&folder, "invalid", &mut command, Stdio::null());
        assert_eq!(process.end(), Some(status), "{}", process.err());
        assert!(process.err().contains(message), "{}", process.err());
    }
}

#[test]
fn ctrl_c_ends_the_input_and_sends_all_records() {
    let folder = Folder::new();
    let [endpoint, _] = endpoints(&folder);
    let mut subscriber = subscribe(&folder, &endpoint, &["--topic", "flow.end", "--format", "csv"]);
    let (mut publisher, mut capture) = publish_frames(&folder, &endpoint, &["--wait-for-subscribers", "1"]);
    capture.write(0..500);
    wait_for("the first records", || subscriber.out().lines().count() == 500);
    publisher.signal("INT");
    assert_eq!(publisher.end(), Some(130), "{}", publisher.err());
    assert_eq!(subscriber.end(), Some(0), "{}", subscriber.err());
    // The header, and the records of all flows, also of the one that was open.
    assert_eq!(subscriber.out().lines().count(), 501);
}

#[test]
fn messages_are_published_without_credentials_and_filters_select_flows() {
    let folder = Folder::new();
    let [endpoint, _] = endpoints(&folder);
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/web.pcap");
    let run = |topic: &str, args: &[&str]| {
        let mut subscriber = subscribe(&folder, &endpoint, &["--topic", topic, "--format", "ndjson"]);
        let mut command = flowgauge();
        command
            .arg("publish")
            .arg(&web)
            .args(["--bind", &endpoint, "--wait-for-subscribers", "1"])
            .args(args);
        let mut publisher = Process::start(&folder, "publisher", &mut command, Stdio::null());
        assert_eq!(publisher.end(), Some(0), "{}", publisher.err());
        assert_eq!(subscriber.end(), Some(0), "{}", subscriber.err());
        let out = subscriber.out();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<serde_json::Value>>()
    };
    let messages = run("session.http", &["--sessions"]);
    let output =
        flowgauge().arg("sessions").arg(&web).args(["--format", "ndjson", "--protocol", "http"]).output();
    let expected = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(messages.len(), expected.lines().filter(|line| !line.contains("\"stopped\"")).count());
    assert!(messages.iter().all(|message| message["protocol"] == "http" && message["credentials"].is_null()));

    let output =
        flowgauge().arg("flows").arg(&web).args(["--format", "ndjson", "-q", "-F", "tcp port 8080"]).output();
    let expected = String::from_utf8(output.unwrap().stdout).unwrap();
    let records = run("flow.end", &["--format", "ndjson", "-F", "tcp port 8080"]);
    assert!(!records.is_empty());
    let expected: Vec<serde_json::Value> =
        expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records, expected);
    assert_eq!(run("flow.end.tcp.8080", &["--keys"]).len(), expected.len());
}

#[test]
fn invalid_endpoints_are_reported() {
    for (args, message) in [
        (&["publish", "x.pcap", "--bind", "udp://127.0.0.1:1"][..], "--bind: invalid endpoint"),
        (&["publish", "x.pcap", "--bind", "tcp://0.0.0.0:1"], "--allow-remote"),
        (&["subscribe", "--connect", "5556"], "--connect: invalid endpoint"),
    ] {
        let folder = Folder::new();
        let path = capture(&folder, 1);
        let args: Vec<_> =
            args.iter().map(|arg| if *arg == "x.pcap" { path.as_str() } else { arg }).collect();
        let output = flowgauge().args(&args).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?} {err}");
        assert!(err.contains(message), "{args:?} {err}");
    }
}
