//! The bus, and the sockets below it beside those of libzmq.
//!
//! `sockets/omq` are the sockets of omq-tokio alone, `sockets/libzmq` those of libzmq, in the same run. The program
//! `benches/peers/libzmq/sockets.c` is compiled with `cc`; without libzmq, its rows are skipped. Sender and receiver are
//! different threads, and the receiver counts. A latency is the time of a message in one direction: half of a round
//! trip. Records are read field by field at the receiver.
//!
//! ```sh
//! cargo bench -p flowgauge-bus
//! ```

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::ring::ring;
use flowgauge::base::{FlowKey, Timestamp};
use flowgauge::export::FixedRecord;
use flowgauge::{EndReason, FlowRecord, Pipeline};
use flowgauge_bus::{
    ClientSecurity, Encoding, Overflow, Pair, PrefixSet, Publisher, PublisherConfig, Request, Requester,
    Router, ServerConfig, Subscriber, SubscriberConfig, Topic,
};
use omq_tokio::{Context, Message, Options, SocketType, blocking};

const PATTERNS: [&str; 3] = ["pair", "pub_sub", "router"];
const TRANSPORTS: [&str; 3] = ["tcp", "ipc", "inproc"];
const SIZES: [usize; 6] = [64, 256, 1 << 10, 64 << 10, 128 << 10, 256 << 10];
const LIMIT: Duration = Duration::from_secs(60);

fn endpoint(transport: &str, name: &str) -> String {
    match transport {
        "tcp" => "tcp://127.0.0.1:0".to_owned(),
        "ipc" => {
            let path = std::env::temp_dir().join(format!("flowgauge-bench-{}-{name}", std::process::id()));
            format!("ipc://{}", path.display())
        }
        _ => format!("inproc://{name}"),
    }
}

/// Two connected sockets of omq-tokio, and those of the way back.
struct Omq {
    sender: blocking::Socket,
    receiver: blocking::Socket,
    back_sender: blocking::Socket,
    back_receiver: blocking::Socket,
    _context: Context,
}

impl Omq {
    fn new(pattern: &str, transport: &str, is_latency: bool) -> Self {
        let context = Context::new();
        let join = |bound: SocketType, connecting: SocketType, name: &str| {
            let mut options = Options::new();
            options.xpub_nodrop = bound == SocketType::Pub;
            let bound = context.blocking_socket(bound, options);
            let connecting = context.blocking_socket(connecting, Options::new());
            let address = bound.bind(endpoint(transport, name)).unwrap();
            if connecting.socket_type() == SocketType::Sub {
                connecting.subscribe("").unwrap();
            }
            connecting.connect(address).unwrap();
            bound.wait_connected(1, LIMIT).unwrap();
            connecting.wait_connected(1, LIMIT).unwrap();
            if bound.socket_type() == SocketType::Pub {
                bound.wait_subscribed(1, LIMIT).unwrap();
            }
            (bound, connecting)
        };
        let (sender, receiver, back_sender, back_receiver) = match pattern {
            "pub_sub" => {
                let (sender, receiver) = join(SocketType::Pub, SocketType::Sub, "a");
                let (back_sender, back_receiver) = if is_latency {
                    join(SocketType::Pub, SocketType::Sub, "b")
                } else {
                    (sender.clone(), receiver.clone())
                };
                (sender, receiver, back_sender, back_receiver)
            }
            _ => {
                let types = if pattern == "pair" {
                    (SocketType::Pair, SocketType::Pair)
                } else {
                    (SocketType::Router, SocketType::Dealer)
                };
                let (receiver, sender) = join(types.0, types.1, "a");
                (sender.clone(), receiver.clone(), receiver, sender)
            }
        };
        Self { sender, receiver, back_sender, back_receiver, _context: context }
    }

    fn run(&self, size: usize, count: u64, is_latency: bool) -> Duration {
        let content = bytes::Bytes::from(vec![0; size]);
        let started_at = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..count {
                    // A copy, as zmq_send makes one.
                    self.sender.send(Message::from_slice(&content)).unwrap();
                    if is_latency {
                        black_box(self.back_receiver.recv().unwrap());
                    }
                }
            });
            let mut received = Vec::with_capacity(256);
            let mut rest = count;
            while rest > 0 {
                if is_latency {
                    let message = self.receiver.recv().unwrap();
                    assert!(message.byte_len() >= size);
                    self.back_sender.send(message).unwrap();
                    rest -= 1;
                } else {
                    rest -= self.receiver.recv_many_into(256, &mut received).unwrap() as u64;
                    assert!(received.drain(..).all(|message| black_box(message).byte_len() >= size));
                }
            }
        });
        started_at.elapsed()
    }
}

/// A process with the sockets of libzmq.
struct Libzmq {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Libzmq {
    /// Compiles the program. `None` if libzmq is not installed.
    fn program() -> Option<PathBuf> {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/libzmq/sockets.c");
        let program = std::env::temp_dir().join(format!("flowgauge-libzmq-{}", std::process::id()));
        let status = Command::new("cc")
            .arg("-O3")
            .arg("-o")
            .arg(&program)
            .arg(source)
            .args(["-lzmq", "-lpthread"])
            .status();
        if status.is_ok_and(|status| status.success()) {
            Some(program)
        } else {
            eprintln!("libzmq is not installed (Debian: libzmq3-dev): its rows are skipped");
            None
        }
    }

    fn start(program: &PathBuf, pattern: &str, transport: &str, size: usize, kind: &str) -> Self {
        let mut command = Command::new(program);
        command
            .args([pattern, transport, &size.to_string(), kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn run(&mut self, count: u64) -> Duration {
        writeln!(self.input, "{count}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        Duration::from_nanos(line.trim().parse().unwrap())
    }
}

impl Drop for Libzmq {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs at least `least` iterations, so that the start of a thread does not count, and returns the time of `count`.
fn scaled(count: u64, least: u64, run: &mut dyn FnMut(u64) -> Duration) -> Duration {
    let run_count = count.max(least);
    run(run_count).mul_f64(count as f64 / run_count as f64)
}

fn short(group: &mut BenchmarkGroup<'_, WallTime>) {
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400));
}

fn sockets(c: &mut Criterion) {
    let program = Libzmq::program();
    for pattern in PATTERNS {
        for transport in TRANSPORTS {
            for kind in ["throughput", "latency"] {
                let is_latency = kind == "latency";
                let mut group = c.benchmark_group(format!("sockets/{kind}/{pattern}/{transport}"));
                short(&mut group);
                for size in SIZES {
                    if !is_latency {
                        group.throughput(Throughput::Elements(1));
                    }
                    let (bulk, large) = if is_latency { (2000, 500) } else { (200_000, 2000) };
                    let least = if size > 1024 { large } else { bulk };
                    let measure = |count: u64, run: &mut dyn FnMut(u64) -> Duration| {
                        let time = scaled(count, least, run);
                        if is_latency { time / 2 } else { time }
                    };
                    let sockets = Omq::new(pattern, transport, is_latency);
                    group.bench_function(BenchmarkId::new("omq", size), |bencher| {
                        bencher.iter_custom(|count| {
                            measure(count, &mut |count| sockets.run(size, count, is_latency))
                        });
                    });
                    drop(sockets);
                    if let Some(program) = &program {
                        let mut sockets = Libzmq::start(program, pattern, transport, size, kind);
                        group.bench_function(BenchmarkId::new("libzmq", size), |bencher| {
                            bencher.iter_custom(|count| measure(count, &mut |count| sockets.run(count)));
                        });
                    }
                }
            }
        }
    }
    if let Some(program) = program {
        let _ = std::fs::remove_file(program);
    }
}

/// Reads every field of a record.
fn sum(record: FixedRecord<'_>) -> u64 {
    let ports = record.ports().unwrap_or_default();
    let addresses = match record.addresses() {
        (std::net::IpAddr::V4(a), std::net::IpAddr::V4(b)) => u64::from(a.to_bits() ^ b.to_bits()),
        (std::net::IpAddr::V6(a), std::net::IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()) as u64,
        _ => 0,
    };
    addresses
        ^ u64::from(record.protocol().0)
        ^ record.conn_state() as u64
        ^ record.flow_end_reason() as u64
        ^ record.duration().as_nanos() as u64
        ^ record.packet_count()
        ^ record.reverse_packet_count()
        ^ record.octet_count()
        ^ record.reverse_octet_count()
        ^ record.start().as_nanos()
        ^ u64::from(ports.0)
        ^ u64::from(ports.1)
        ^ u64::from(record.is_saturated())
}

fn records(c: &mut Criterion) {
    let list: Vec<FlowRecord> = (0..1024_u64)
        .map(|number| {
            let client = std::net::SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 40_000));
            let (key, side) = FlowKey::tcp(client, "198.51.100.7:443".parse().unwrap());
            let mut record = FlowRecord::new(key, side, Timestamp::from_nanos(1_000_000 * number));
            record.flow_end_reason = EndReason::EndOfFlow;
            record.forward.counters.packet_count = number;
            record
        })
        .collect();
    let mut group = c.benchmark_group("records");
    short(&mut group);
    group.throughput(Throughput::Elements(1));
    // Published one by one, and in groups as a tracker that expires flows has them.
    let variants = [
        (Encoding::Records, "fixed", 1),
        (Encoding::Records, "fixed_in_groups", 128),
        (Encoding::Ndjson, "ndjson", 1),
    ];
    for (encoding, name, group_len) in variants {
        for transport in TRANSPORTS {
            let mut config = PublisherConfig::default();
            config.encoding = encoding;
            // Nothing is dropped, so that the receiver counts all.
            config.overflow = Overflow::Wait(LIMIT);
            config.server.high_water_mark = 16;
            config.queue_len = 16;
            let publisher = Publisher::new(config).unwrap();
            let endpoint = endpoint(transport, &format!("records-{name}"));
            let bound = publisher.listen(&endpoint).unwrap();
            let mut config = SubscriberConfig::default();
            // Messages in flight fit in a cache.
            config.high_water_mark = 16;
            let mut subscriber =
                Subscriber::connect_with(&bound, &config).unwrap().subscribe("flow.end").unwrap();
            publisher.wait_for_subscribers(1, LIMIT).unwrap();
            group.bench_function(BenchmarkId::new(name, transport), |bencher| {
                let mut run = |count: u64| {
                    let started_at = Instant::now();
                    thread::scope(|scope| {
                        scope.spawn(|| {
                            if group_len == 1 {
                                for record in list.iter().cycle().take(count as usize) {
                                    publisher.publish(&Topic::FLOW_END, record);
                                }
                            } else {
                                for number in (0..count as usize).step_by(group_len) {
                                    let start = number % list.len();
                                    let len = group_len.min(count as usize - number);
                                    publisher.publish_all(&Topic::FLOW_END, &list[start..start + len]);
                                }
                            }
                            publisher.flush();
                        });
                        let mut received = 0;
                        while received < count {
                            let batch = subscriber.recv(LIMIT).unwrap().unwrap();
                            received += u64::from(batch.record_count());
                            for record in batch.records() {
                                black_box(sum(record.unwrap()));
                            }
                            black_box(batch.lines().map(str::len).sum::<usize>());
                        }
                    });
                    started_at.elapsed()
                };
                let least = if encoding == Encoding::Records { 2_000_000 } else { 100_000 };
                bencher.iter_custom(|count| scaled(count, least, &mut run));
            });
        }
    }
    group.finish();

    let mut group = c.benchmark_group("publish");
    short(&mut group);
    let publisher = Publisher::bind("inproc://unsubscribed").unwrap();
    group.bench_function("without_subscribers", |bencher| {
        bencher.iter(|| publisher.publish(&Topic::FLOW_END, black_box(&list[0])));
    });
    group.finish();
}

fn rings(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring");
    short(&mut group);
    // Items of 64 octets.
    group.bench_function("throughput", |bencher| {
        let mut run = |count: u64| {
            let (mut producer, mut consumer) = ring::<[u64; 8]>(1024);
            let started_at = Instant::now();
            thread::scope(|scope| {
                scope.spawn(move || (0..count).for_each(|number| producer.push([number; 8]).unwrap()));
                assert_eq!(consumer.iter().filter(|item| black_box(item)[0] < count).count() as u64, count);
            });
            started_at.elapsed()
        };
        bencher.iter_custom(|count| scaled(count, 1_000_000, &mut run));
    });
    group.bench_function("one_way_latency", |bencher| {
        let mut run = |count: u64| {
            let (mut there, mut received) = ring::<[u64; 8]>(16);
            let (mut back, mut answered) = ring::<[u64; 8]>(16);
            let started_at = Instant::now();
            thread::scope(|scope| {
                scope.spawn(move || received.iter().for_each(|item| back.push(item).unwrap()));
                for number in 0..count {
                    there.push([number; 8]).unwrap();
                    assert_eq!(answered.pop().unwrap()[0], number);
                }
                drop(there);
            });
            started_at.elapsed() / 2
        };
        bencher.iter_custom(|count| scaled(count, 100_000, &mut run));
    });
    group.finish();
}

/// The pairs and routers of this crate, on top of the sockets.
fn links(c: &mut Criterion) {
    let mut group = c.benchmark_group("links");
    short(&mut group);
    // One record: the receiver counts the lines.
    let payload = bytes::Bytes::from([[b' '; 1023].as_slice(), b"\n"].concat());
    for transport in TRANSPORTS {
        let mut config = ServerConfig::default();
        config.high_water_mark = 1024;
        let (mut bound, address) = Pair::bind_with(&endpoint(transport, "links"), &config).unwrap();
        let mut connected = Pair::connect(&address, 1024).unwrap();
        let topic = Topic::new("frames").unwrap();
        // A full queue does not accept the message.
        let send = |pair: &mut Pair| {
            while pair.send(&topic, Encoding::Ndjson, 1, payload.clone()).is_err() {
                thread::yield_now();
            }
        };
        group.bench_function(BenchmarkId::new("pair_throughput/1024", transport), |bencher| {
            let mut run = |count: u64| {
                let started_at = Instant::now();
                thread::scope(|scope| {
                    scope.spawn(|| (0..count).for_each(|_| send(&mut bound)));
                    for _ in 0..count {
                        assert_eq!(connected.recv(LIMIT).unwrap().unwrap().payload().len(), payload.len());
                    }
                });
                started_at.elapsed()
            };
            bencher.iter_custom(|count| scaled(count, 100_000, &mut run));
        });
        group.bench_function(BenchmarkId::new("pair_latency/1024", transport), |bencher| {
            let mut run = |count: u64| {
                let started_at = Instant::now();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        for _ in 0..count {
                            black_box(bound.recv(LIMIT).unwrap().unwrap());
                            send(&mut bound);
                        }
                    });
                    for _ in 0..count {
                        send(&mut connected);
                        black_box(connected.recv(LIMIT).unwrap().unwrap());
                    }
                });
                started_at.elapsed() / 2
            };
            bencher.iter_custom(|count| scaled(count, 2000, &mut run));
        });
    }
    // From the request to the answer, while the pipeline's thread only answers.
    for transport in ["tcp", "ipc"] {
        let mut router = Router::bind(&endpoint(transport, "router")).unwrap();
        let mut requester =
            Requester::connect(router.endpoint(), "bench", LIMIT, &ClientSecurity::None).unwrap();
        let pipeline = Pipeline::builder().build(()).unwrap();
        group.bench_function(BenchmarkId::new("request", transport), |bencher| {
            let mut run = |count: u64| {
                let started_at = Instant::now();
                thread::scope(|scope| {
                    let client = scope.spawn(|| {
                        for _ in 0..count {
                            black_box(requester.request(&Request::Counters).unwrap());
                        }
                    });
                    while !client.is_finished() {
                        if router.answer(&pipeline, None) == 0 {
                            thread::yield_now();
                        }
                    }
                });
                started_at.elapsed()
            };
            bencher.iter_custom(|count| scaled(count, 1000, &mut run));
        });
    }
    group.finish();
}

/// A trie with a node per octet, as in libzmq.
#[derive(Default)]
struct Trie {
    is_end: bool,
    children: BTreeMap<u8, Trie>,
}

impl Trie {
    fn insert(&mut self, prefix: &[u8]) {
        let node = prefix.iter().fold(self, |node, octet| node.children.entry(*octet).or_default());
        node.is_end = true;
    }

    fn matches(&self, topic: &[u8]) -> bool {
        let mut node = self;
        for octet in topic {
            if node.is_end {
                return true;
            }
            match node.children.get(octet) {
                Some(child) => node = child,
                None => return false,
            }
        }
        node.is_end
    }
}

fn topics(c: &mut Criterion) {
    const LOOKUP_COUNT: usize = 1_000_000;
    // Numbers that are the same in each run.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let keys: Vec<Vec<u8>> =
        (0..10_000).map(|_| (0..20).map(|_| b'a' + (next() % 26) as u8).collect()).collect();
    let lookups: Vec<&[u8]> = (0..LOOKUP_COUNT).map(|_| &*keys[next() as usize % keys.len()]).collect();
    let (mut set, mut trie) = (PrefixSet::new(), Trie::default());
    for key in &keys {
        set.insert(key);
        trie.insert(key);
    }
    let mut group = c.benchmark_group("topics");
    short(&mut group);
    group.throughput(Throughput::Elements(LOOKUP_COUNT as u64));
    group.bench_function("prefix_set", |bencher| {
        bencher.iter(|| assert_eq!(lookups.iter().filter(|topic| set.matches(topic)).count(), LOOKUP_COUNT));
    });
    group.bench_function("trie", |bencher| {
        bencher.iter(|| assert_eq!(lookups.iter().filter(|topic| trie.matches(topic)).count(), LOOKUP_COUNT));
    });
    // The subscriptions of a bus: prefixes of several lengths.
    let mut set = PrefixSet::new();
    for port in 0..10_000 {
        set.insert(format!("flow.end.tcp.{port}").as_bytes());
    }
    let lookups: Vec<Topic> = (0..LOOKUP_COUNT)
        .map(|_| Topic::new(&format!("flow.end.tcp.{}", next() % 20_000)).unwrap())
        .collect();
    group.bench_function("prefix_set_of_ports", |bencher| {
        bencher.iter(|| lookups.iter().filter(|topic| set.matches(topic.as_bytes())).count());
    });
    group.finish();
}

criterion_group!(benches, topics, rings, records, links, sockets);
criterion_main!(benches);
