//! Delivery of records to subscribers of this library: nothing is lost without being counted, on both sides.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::base::{FlowKey, Timestamp};
use flowgauge::{EndReason, FlowRecord};
use flowgauge_bus::{
    Batch, BusError, ClientSecurity, Encoding, Line, Overflow, Publisher, PublisherConfig, PublisherStats,
    SecretKey, ServerSecurity, Subscriber, SubscriberConfig, Topic,
};

/// Time within which anything that is expected must happen.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns the record with a number, which is its time in nanoseconds.
fn record(number: u64) -> FlowRecord {
    let (key, side) = FlowKey::tcp("192.0.2.1:40000".parse().unwrap(), "198.51.100.7:443".parse().unwrap());
    let mut record = FlowRecord::new(key, side, Timestamp::from_nanos(number));
    record.flow_end_reason = EndReason::EndOfFlow;
    record
}

/// Returns the numbers of the records in a message.
fn numbers(batch: &Batch) -> Vec<u64> {
    batch.records().map(|record| record.unwrap().start().as_nanos()).collect()
}

/// Returns an endpoint of each transport that no other test uses.
fn endpoints() -> [String; 3] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf = std::env::temp_dir().join(format!("flowgauge-bus-{}-{number}", std::process::id()));
    ["tcp://127.0.0.1:0".to_owned(), format!("ipc://{}", path.display()), format!("inproc://test-{number}")]
}

/// Waits until a condition is true.
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not become true");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Receives all records until the publisher ends.
fn receive_all(subscriber: &mut Subscriber) -> Vec<u64> {
    let deadline = Instant::now() + LIMIT;
    let mut received = Vec::new();
    while !subscriber.has_ended() {
        assert!(Instant::now() < deadline, "the publisher did not end: {:?}", subscriber.stats());
        if let Some(batch) = subscriber.recv(Duration::from_secs(1)).unwrap() {
            received.extend(numbers(&batch));
        }
    }
    received
}

/// Asserts that publisher and subscriber count the same, and that nothing is missing.
fn assert_agree(publisher: &PublisherStats, subscriber: &Subscriber, published_count: u64) {
    let stats = subscriber.stats();
    assert_eq!(stats.record_count + stats.lost_count, published_count, "{stats:?}");
    let own: Vec<_> = publisher.subscribers.iter().collect();
    assert!(
        own.iter().any(|own| own.record_count == stats.record_count && own.dropped_count == stats.lost_count),
        "{own:?} {stats:?}"
    );
}

/// Returns a publisher that waits for its subscriber, which selects `flow.end`.
fn patient_publisher(endpoint: &str) -> (Publisher, Subscriber) {
    let mut config = PublisherConfig::default();
    config.overflow = Overflow::Wait(LIMIT);
    let publisher = Publisher::new(config).unwrap();
    let endpoint = publisher.listen(endpoint).unwrap();
    let subscriber = Subscriber::connect(&endpoint).unwrap().subscribe("flow.end").unwrap();
    publisher.wait_for_subscribers(1, LIMIT).unwrap();
    (publisher, subscriber)
}

#[test]
fn every_record_arrives_once_in_order_over_each_transport() {
    const COUNT: u64 = 100_000;
    for endpoint in endpoints() {
        let (publisher, mut subscriber) = patient_publisher(&endpoint);
        let receiver = thread::spawn(move || (receive_all(&mut subscriber), subscriber));
        for number in 0..COUNT {
            publisher.publish(&Topic::FLOW_END, &record(number));
            publisher.publish(&Topic::FLOW_START, &record(number));
        }
        let stats = publisher.close(LIMIT);
        let (received, subscriber) = receiver.join().unwrap();
        assert!(received.into_iter().eq(0..COUNT), "{endpoint}");
        assert_agree(&stats, &subscriber, COUNT);
        assert_eq!((stats.published_count, stats.unsubscribed_count), (2 * COUNT, COUNT));
    }
}

#[test]
fn records_published_together_arrive_as_those_published_one_by_one() {
    let records: Vec<_> = (0..5000).map(record).collect();
    for endpoint in endpoints() {
        let (publisher, mut subscriber) = patient_publisher(&endpoint);
        records.chunks(700).for_each(|records| publisher.publish_all(&Topic::FLOW_END, records));
        publisher.publish_all(&Topic::FLOW_START, &records[..10]);
        let receiver = thread::spawn(move || (receive_all(&mut subscriber), subscriber));
        let stats = publisher.close(LIMIT);
        let (received, subscriber) = receiver.join().unwrap();
        assert!(received.into_iter().eq(0..5000), "{endpoint}");
        assert_agree(&stats, &subscriber, 5000);
        assert_eq!((stats.published_count, stats.unsubscribed_count), (5010, 10));
    }
}

/// Asserts that each published record is in a counter, for a publisher that had a single subscriber.
fn assert_complete(stats: &PublisherStats) {
    let counted: u64 = stats.subscribers.iter().map(|own| own.record_count + own.dropped_count).sum();
    assert_eq!(counted + stats.unsubscribed_count, stats.published_count, "{stats:?}");
}

#[test]
fn records_are_counted_when_the_last_subscriber_leaves_before_they_are_sent() {
    for endpoint in endpoints() {
        let mut config = PublisherConfig::default();
        config.flush_interval = LIMIT;
        let publisher = Publisher::new(config).unwrap();
        let endpoint = publisher.listen(&endpoint).unwrap();
        let subscriber = Subscriber::connect(&endpoint).unwrap().subscribe("").unwrap();
        publisher.wait_for_subscribers(1, LIMIT).unwrap();
        (0..5).for_each(|number| publisher.publish(&Topic::FLOW_END, &record(number)));
        drop(subscriber);
        wait_until(|| !publisher.stats().subscribers[0].is_connected);
        publisher.publish(&Topic::FLOW_END, &record(5));
        let stats = publisher.close(LIMIT);
        assert_complete(&stats);
        assert_eq!(stats.unsubscribed_count, 6, "{endpoint}");
    }
}

#[test]
fn records_that_are_not_sent_in_time_are_counted() {
    let [tcp, ipc, _] = endpoints();
    for endpoint in [tcp, ipc] {
        for overflow in [Overflow::Drop, Overflow::Wait(Duration::from_millis(200))] {
            let mut config = PublisherConfig::default();
            config.overflow = overflow;
            config.queue_len = 2;
            config.server.high_water_mark = 1;
            let publisher = Publisher::new(config).unwrap();
            let endpoint = publisher.listen(&endpoint).unwrap();
            let mut config = SubscriberConfig::default();
            config.high_water_mark = 1;
            let subscriber = Subscriber::connect_with(&endpoint, &config).unwrap().subscribe("").unwrap();
            publisher.wait_for_subscribers(1, LIMIT).unwrap();
            // More than the buffers of the connection, which nobody reads.
            (0..300_000).for_each(|number| publisher.publish(&Topic::FLOW_END, &record(number)));
            let stats = publisher.close(Duration::from_millis(50));
            assert_complete(&stats);
            assert!(stats.subscribers[0].dropped_count > 0, "{stats:?}");
            drop(subscriber);
        }
    }
}

#[test]
fn an_incomplete_message_is_sent_after_the_flush_interval() {
    for endpoint in endpoints() {
        let publisher = Publisher::bind(&endpoint).unwrap();
        let mut subscriber = Subscriber::connect(&publisher.endpoints()[0]).unwrap().subscribe("").unwrap();
        publisher.wait_for_subscribers(1, LIMIT).unwrap();
        publisher.publish(&Topic::FLOW_END, &record(7));
        publisher.publish(&Topic::session("http"), &Line(b"{\"a\":1}"));
        let first = subscriber.recv(LIMIT).unwrap().unwrap();
        let second = subscriber.recv(LIMIT).unwrap().unwrap();
        let (records, lines) = if first.topic() == "flow.end" { (first, second) } else { (second, first) };
        assert_eq!(numbers(&records), [7]);
        assert_eq!((lines.topic(), lines.header().encoding), ("session.http", Encoding::Ndjson));
        assert_eq!(lines.lines().collect::<Vec<_>>(), ["{\"a\":1}"]);
    }
}

#[test]
fn ndjson_has_a_line_per_record() {
    for endpoint in endpoints() {
        let mut config = PublisherConfig::default();
        config.encoding = Encoding::Ndjson;
        let publisher = Publisher::new(config).unwrap();
        let endpoint = publisher.listen(&endpoint).unwrap();
        let mut subscriber = Subscriber::connect(&endpoint).unwrap().subscribe("flow.").unwrap();
        publisher.wait_for_subscribers(1, LIMIT).unwrap();
        for number in 0..1000 {
            publisher.publish(&Topic::FLOW_UPDATE, &record(number));
        }
        let mut number = 0;
        while number < 1000 {
            let batch = subscriber.recv(LIMIT).unwrap().unwrap();
            for line in batch.lines() {
                assert!(line.contains(&format!("\"start\":{number},")), "{line}");
                number += 1;
            }
        }
    }
}

#[test]
fn a_slow_subscriber_loses_only_its_own_records_and_both_sides_count_them() {
    const LOST_COUNT: u64 = 50_000;
    for endpoint in endpoints() {
        let mut config = PublisherConfig::default();
        config.payload_len = 64 * 64;
        config.server.high_water_mark = 32;
        let publisher = Publisher::new(config).unwrap();
        let endpoint = publisher.listen(&endpoint).unwrap();
        let mut config = SubscriberConfig::default();
        config.high_water_mark = 2;
        let mut slow = Subscriber::connect_with(&endpoint, &config).unwrap().subscribe("").unwrap();
        config.high_water_mark = 1 << 16;
        let mut fast = Subscriber::connect_with(&endpoint, &config).unwrap().subscribe("").unwrap();
        publisher.wait_for_subscribers(2, LIMIT).unwrap();
        let receiver = thread::spawn(move || (receive_all(&mut fast), fast));
        // The buffers of the system and of the sockets have different lengths.
        let mut count = 0;
        while publisher.stats().subscribers.iter().all(|subscriber| subscriber.dropped_count < LOST_COUNT) {
            assert!(count < 10_000_000, "{endpoint} {:?}", publisher.stats());
            for _ in 0..2048 {
                publisher.publish(&Topic::FLOW_END, &record(count));
                count += 1;
            }
            thread::sleep(Duration::from_millis(2));
        }
        let closing = publisher.clone();
        let closing = thread::spawn(move || closing.close(LIMIT));
        let received = receive_all(&mut slow);
        let stats = closing.join().unwrap();
        assert!(received.is_sorted() && received.len() as u64 == slow.stats().record_count);
        assert!(slow.stats().lost_count >= LOST_COUNT, "{endpoint} {:?}", slow.stats());
        assert_agree(&stats, &slow, count);
        let (received, fast) = receiver.join().unwrap();
        assert_agree(&stats, &fast, count);
        assert!(received.into_iter().eq(0..count), "{endpoint} {:?}", fast.stats());
    }
}

#[test]
fn fifty_subscribers_receive_every_record() {
    const COUNT: u64 = 20_000;
    for endpoint in endpoints() {
        let mut config = PublisherConfig::default();
        config.overflow = Overflow::Wait(LIMIT);
        let publisher = Publisher::new(config).unwrap();
        let endpoint = publisher.listen(&endpoint).unwrap();
        let receivers: Vec<_> = (0..50)
            .map(|_| {
                let mut subscriber = Subscriber::connect(&endpoint).unwrap().subscribe("flow.end").unwrap();
                thread::spawn(move || (receive_all(&mut subscriber), subscriber))
            })
            .collect();
        assert_eq!(publisher.wait_for_subscribers(50, LIMIT).unwrap(), 50);
        for number in 0..COUNT {
            publisher.publish(&Topic::FLOW_END, &record(number));
        }
        let stats = publisher.close(LIMIT);
        assert_eq!(stats.subscribers.len(), 50);
        for receiver in receivers {
            let (received, subscriber) = receiver.join().unwrap();
            assert!(received.into_iter().eq(0..COUNT));
            assert_agree(&stats, &subscriber, COUNT);
        }
    }
}

#[test]
fn a_subscriber_continues_with_a_publisher_that_was_restarted() {
    // The kernel assigns no port of this range to a client, which could take it before the second publisher does.
    let tcp = (20_000..32_000).map(|port| format!("tcp://127.0.0.1:{port}"));
    let [_, ipc, _] = endpoints();
    for candidates in [tcp.collect(), vec![ipc]] {
        let first = candidates.iter().find_map(|endpoint| Publisher::bind(endpoint).ok()).unwrap();
        let endpoint = first.endpoints()[0].clone();
        let mut subscriber = Subscriber::connect(&endpoint).unwrap().subscribe("").unwrap();
        first.wait_for_subscribers(1, LIMIT).unwrap();
        (0..1000).for_each(|number| first.publish(&Topic::FLOW_END, &record(number)));
        let mut stats = vec![first.close(LIMIT)];
        assert!(receive_all(&mut subscriber).into_iter().eq(0..1000));

        let second = Publisher::bind(&endpoint).unwrap();
        second.wait_for_subscribers(1, LIMIT).unwrap();
        (1000..3000).for_each(|number| second.publish(&Topic::FLOW_END, &record(number)));
        stats.push(second.close(LIMIT));
        let mut received = Vec::new();
        while received.len() < 2000 {
            received.extend(numbers(&subscriber.recv(LIMIT).unwrap().unwrap()));
        }
        assert!(received.into_iter().eq(1000..3000));
        let own = subscriber.stats();
        assert_eq!((own.record_count, own.lost_count, own.missed_count, own.stream_count), (3000, 0, 0, 2));
        let counted: u64 = stats
            .iter()
            .flat_map(|stats| &stats.subscribers)
            .map(|own| own.record_count + own.dropped_count)
            .sum();
        assert_eq!(counted, 3000);
    }
}

#[test]
fn records_published_while_a_subscriber_is_away_are_counted_as_missed() {
    let publisher = Publisher::bind("tcp://127.0.0.1:0").unwrap();
    let endpoint = publisher.endpoints()[0].clone();
    let proxy = Proxy::start(&endpoint);
    let mut subscriber = Subscriber::connect(&proxy.endpoint).unwrap().subscribe("").unwrap();
    publisher.wait_for_subscribers(1, LIMIT).unwrap();
    let publish = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| publisher.publish(&Topic::FLOW_END, &record(number)));
        publisher.flush();
    };
    publish(0..10);
    assert!(numbers(&subscriber.recv(LIMIT).unwrap().unwrap()).into_iter().eq(0..10));
    proxy.cut();
    wait_until(|| publisher.stats().subscribers.iter().all(|subscriber| !subscriber.is_connected));
    publish(10..25);
    proxy.resume();
    publisher.wait_for_subscribers(1, LIMIT).unwrap();
    publish(25..30);
    assert!(numbers(&subscriber.recv(LIMIT).unwrap().unwrap()).into_iter().eq(25..30));
    let stats = subscriber.stats();
    assert_eq!(
        (stats.record_count, stats.lost_count, stats.missed_count, stats.stream_count),
        (15, 0, 15, 2)
    );
    assert_eq!(publisher.stats().unsubscribed_count, 15);
}

/// Forwards one TCP connection at a time, and can interrupt it.
struct Proxy {
    endpoint: String,
    state: std::sync::Arc<std::sync::Mutex<(bool, Vec<TcpStream>)>>,
}

impl Proxy {
    fn start(target: &str) -> Self {
        let target = target.trim_start_matches("tcp://").to_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        let state = std::sync::Arc::new(std::sync::Mutex::new((true, Vec::new())));
        let shared = std::sync::Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let mut state = shared.lock().unwrap();
                if !state.0 {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&target) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
                state.1.extend([client, server]);
            }
        });
        Self { endpoint, state }
    }

    fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = false;
        for stream in state.1.drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    fn resume(&self) {
        self.state.lock().unwrap().0 = true;
    }
}

#[test]
fn hostile_peers_are_disconnected_and_counted_while_others_receive_everything() {
    let mut config = PublisherConfig::default();
    config.server.handshake_timeout = Duration::from_millis(300);
    config.server.peer_count_max = 8;
    config.subscription_count_max = 10;
    let publisher = Publisher::new(config).unwrap();
    let endpoint = publisher.listen("tcp://127.0.0.1:0").unwrap();
    let address = endpoint.trim_start_matches("tcp://");
    let mut subscriber = Subscriber::connect(&endpoint).unwrap().subscribe("").unwrap();
    publisher.wait_for_subscribers(1, LIMIT).unwrap();

    let is_closed = |mut stream: TcpStream| {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    };
    // Another protocol, octets without meaning, and a peer that sends nothing.
    for octets in [&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], &[0xff; 4096], &[0; 64], b""] {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(octets);
        assert!(is_closed(stream));
    }
    wait_until(|| publisher.stats().server.failed_handshake_count == 4);

    // Complete handshakes, and then: a message that is too long, one that is no subscription, a reserved flag, too
    // many subscriptions, a prefix that is too long.
    let too_many: Vec<u8> = (0..11).flat_map(|number| [0, 2, 1, number]).collect();
    let mut too_long = vec![2, 0, 0, 0, 0, 0, 1, 0, 0];
    too_long.resize(70_000, 1);
    let mut long_prefix = vec![2, 0, 0, 0, 0, 0, 0, 2, 1, 1];
    long_prefix.resize(9 + 0x201, b'x');
    let violations = [too_long, vec![0, 1, 7], vec![0xf8, 1, 7], too_many, long_prefix];
    for (number, octets) in violations.iter().enumerate() {
        let mut stream = handshake(address);
        let _ = stream.write_all(octets);
        assert!(is_closed(stream), "violation {number}");
    }
    wait_until(|| publisher.stats().server.violation_count == violations.len() as u64);

    // More peers than permitted.
    let streams: Vec<_> = (0..7).map(|_| handshake(address)).collect();
    assert!(is_closed(TcpStream::connect(address).unwrap()));
    wait_until(|| publisher.stats().server.refused_count == 1);
    drop(streams);

    (0..5000).for_each(|number| publisher.publish(&Topic::FLOW_END, &record(number)));
    let stats = publisher.close(LIMIT);
    assert!(receive_all(&mut subscriber).into_iter().eq(0..5000));
    assert_agree(&stats, &subscriber, 5000);
}

/// Connects as a subscriber of ZMTP 3.0, and completes the handshake.
fn handshake(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    greeting.extend(b"NULL");
    greeting.resize(64, 0);
    stream.write_all(&greeting).unwrap();
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0\x03SUB".to_vec();
    ready.splice(0..0, [4, ready.len() as u8]);
    stream.write_all(&ready).unwrap();
    // The greeting, and the header and content of the command.
    let mut answer = [0; 66];
    stream.read_exact(&mut answer).unwrap();
    let mut command = vec![0; usize::from(answer[65])];
    stream.read_exact(&mut command).unwrap();
    assert!(command.starts_with(b"\x05READY"));
    stream
}

#[test]
fn credentials_are_required_if_they_are_configured() {
    let [server, client, stranger] = [(); 3].map(|()| SecretKey::generate());
    let public_key = server.public_key();
    let curve =
        |secret_key: &SecretKey| ClientSecurity::Curve { secret_key: secret_key.clone(), server: public_key };
    let plain = |password: &str| ClientSecurity::Plain { user: "flow".into(), password: password.into() };
    let cases = [
        (
            ServerSecurity::Plain { user: "flow".into(), password: "right".into() },
            plain("right"),
            [plain("wrong"), ClientSecurity::None],
        ),
        (
            ServerSecurity::Curve { secret_key: server, peers: vec![client.public_key()] },
            curve(&client),
            [curve(&stranger), ClientSecurity::None],
        ),
    ];
    for (security, right, wrong) in cases {
        let mut config = PublisherConfig::default();
        config.server.security = security;
        let publisher = Publisher::new(config).unwrap();
        let endpoint = publisher.listen("tcp://127.0.0.1:0").unwrap();
        let connect = |security: &ClientSecurity| {
            let mut config = SubscriberConfig::default();
            config.security = security.clone();
            Subscriber::connect_with(&endpoint, &config).unwrap().subscribe("").unwrap()
        };
        let _rejected: Vec<_> = wrong.iter().map(connect).collect();
        wait_until(|| publisher.stats().server.failed_handshake_count >= 2);
        assert!(publisher.wait_for_subscribers(1, Duration::from_millis(10)).is_err());
        let mut admitted = connect(&right);
        publisher.wait_for_subscribers(1, LIMIT).unwrap();
        publisher.publish(&Topic::FLOW_END, &record(1));
        assert_eq!(numbers(&admitted.recv(LIMIT).unwrap().unwrap()), [1]);
    }
}

#[test]
fn only_loopback_addresses_are_bound_unless_others_are_permitted() {
    assert!(matches!(Publisher::bind("tcp://0.0.0.0:0"), Err(BusError::NotLoopback { .. })));
    let mut config = PublisherConfig::default();
    config.server.permits_remote = true;
    let publisher = Publisher::new(config).unwrap();
    assert!(publisher.listen("tcp://0.0.0.0:0").unwrap().starts_with("tcp://0.0.0.0:"));
    // The port is in use.
    let bound = Publisher::bind("tcp://127.0.0.1:0").unwrap();
    assert!(matches!(Publisher::bind(&bound.endpoints()[0]), Err(BusError::Socket { .. })));
    assert!(matches!(Subscriber::connect("inproc://absent"), Err(BusError::NoPublisher { .. })));
    let [.., inproc] = endpoints();
    let first = Publisher::bind(&inproc).unwrap();
    assert!(matches!(Publisher::bind(&inproc), Err(BusError::Socket { .. })));
    drop(first);
    Publisher::bind(&inproc).unwrap();
}
