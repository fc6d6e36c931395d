//! `flowgauge subscribe` and a publisher that sends crafted messages.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::zmtp::{frame, greeting, ready};
use super::{Folder, Run};
use crate::process::wait_for;

/// Values of the header of a message.
#[derive(Clone, Copy)]
struct Header {
    encoding: u8,
    count: u32,
    stream: u64,
    sequence: u64,
    position: u64,
}

const NDJSON: u8 = 2;
const HEADER: Header = Header { encoding: NDJSON, count: 1, stream: 1, sequence: 0, position: 0 };

fn message(topic: &[u8], header: Header, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![1, header.encoding, 0, 0];
    octets.extend(header.count.to_be_bytes());
    for value in [header.stream, header.sequence, header.position] {
        octets.extend(value.to_be_bytes());
    }
    [frame(topic, true), frame(&octets, true), frame(payload, false)].concat()
}

/// Starts a subscriber, and connects it to this publisher.
fn subscriber() -> (Run, TcpStream) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", server.local_addr().unwrap());
    let run = Run::start(Folder::new(), &["subscribe", "--connect", &address, "--format", "ndjson"]);
    let (mut connection, _) = server.accept().unwrap();
    connection.write_all(&[greeting(), ready(b"PUB", &[])].concat()).unwrap();
    // The subscription arrives before messages are read.
    std::thread::sleep(Duration::from_millis(300));
    connection.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    (run, connection)
}

#[test]
fn topics_and_payloads_of_any_length_use_bounded_memory() {
    for topic_len in [1 << 20, 12] {
        let (mut run, mut connection) = subscriber();
        for number in 0..200_u64 {
            let mut topic = format!("flow.{number:08}").into_bytes();
            topic.resize(topic_len.max(topic.len()), b't');
            let payload = [b"{\"a\":\"".to_vec(), vec![b'x'; 65_000], b"\"}\n".to_vec()].concat();
            // A subscriber that was sent an invalid message closes the connection.
            if connection
                .write_all(&message(&topic, Header { sequence: number, ..HEADER }, &payload))
                .is_err()
            {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(500));
        let peak = run.peak_memory();
        assert_eq!(run.interrupt(), Some(130), "{}", run.err());
        assert!(peak < 120, "{peak} MiB");
    }
}

#[test]
fn counts_of_a_publisher_are_compared_with_what_arrived() {
    let (mut run, mut connection) = subscriber();
    let huge = Header { count: u32::MAX, sequence: u64::MAX, position: u64::MAX, ..HEADER };
    for stream in 0..50 {
        let _ = connection.write_all(&message(b"flow.end", Header { stream, ..huge }, b"{}\n"));
        let _ = connection.write_all(&message(b"flow.end", Header { stream, count: 7, ..HEADER }, b"{}\n"));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
    let err = run.err();
    // No count in the summary exceeds what 100 messages can contain.
    let numbers =
        err.split(|letter: char| !letter.is_ascii_digit()).filter_map(|text| text.parse::<u64>().ok());
    assert!(numbers.filter(|number| *number > 100_000).count() == 0, "{err}");
}

#[test]
fn lines_of_a_publisher_are_json_objects_without_control_characters() {
    let (mut run, mut connection) = subscriber();
    for (sequence, line) in [
        "\u{1b}[31m\u{9b} not json \0 ",
        "{\"a\":\"\u{7f}\u{9b}31m\u{202e}\"}",
        "{\"a\":1}{\"b\":2}",
        "[1]",
        "{\"last\":true}",
    ]
    .into_iter()
    .enumerate()
    {
        let header = Header { sequence: sequence as u64, position: sequence as u64, ..HEADER };
        let line = format!("{line}\n");
        connection.write_all(&message(b"flow.\x1b]0;x\x07", header, line.as_bytes())).unwrap();
    }
    wait_for("the last line", || run.out().contains("last"));
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
    let out = run.out();
    for line in out.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok_and(|value| value.is_object()),
            "{line:?}"
        );
    }
    for text in [out.as_str(), run.err().as_str()] {
        let is_control = |letter: char| {
            letter.is_control() && letter != '\n' || ('\u{202a}'..='\u{202e}').contains(&letter)
        };
        assert!(!text.contains(is_control), "{text:?}");
    }
    assert_eq!(out.lines().count(), 2, "{out}");
}

#[test]
fn a_length_that_is_never_sent_is_refused() {
    let (mut run, mut connection) = subscriber();
    let claim = [&[2][..], &(u64::MAX >> 1).to_be_bytes(), &[b'x'; 100]].concat();
    for _ in 0..20 {
        let _ = connection.write_all(&claim);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(run.peak_memory() < 60, "{} MiB", run.peak_memory());
    assert_eq!(run.interrupt(), Some(130), "{}", run.err());
}
