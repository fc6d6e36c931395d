//! Eviction of sessions: while memory for sessions is short, the session that was charged longest ago is closed first,
//! so that incomplete messages of thousands of connections do not prevent the parsing of later connections.
#![cfg(feature = "protocols")]

use std::collections::{BTreeMap, BTreeSet};

use etherparse::PacketBuilder;
use flowgauge::protocols::http1;
use flowgauge::tracker::Timeouts;
use flowgauge::{
    Account, Budget, Fault, Flow, FlowKey, Frame, FrameBatch, IpProtocol, Limits, Message, MessageMeta,
    Pipeline, Resources, SessionEvent, Sessions, Side, Sink, Standard, Timestamp, TrackerConfig,
};
use proptest::prelude::*;

const SERVER: [u8; 4] = [192, 0, 2, 1];
const CLIENT_PORT: u16 = 40_000;
const HTTP_PORT: u16 = 80;
const TLS_PORT: u16 = 443;

const REQUEST: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: example.com\r\n\r\n";

/// Muting of flows by the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Muting {
    #[default]
    Never,
    /// Mutes a flow with its first message.
    AtMessage,
    /// Mutes a flow when its session is evicted.
    AtEviction,
}

/// Records events by the number of the client.
#[derive(Debug, Default)]
struct Log {
    muting: Muting,
    /// Requests of each client, in their order.
    requests: Vec<u32>,
    /// Parsers that stopped, in their order.
    stopped: Vec<(u32, Fault)>,
    ended_count: usize,
}

impl Log {
    fn evicted(&self) -> Vec<u32> {
        self.stopped.iter().filter(|(_, fault)| *fault == Fault::EVICTED).map(|(number, _)| *number).collect()
    }
}

fn number_of(key: &FlowKey) -> u32 {
    let addresses = [Side::A, Side::B].map(|side| key.address(side));
    let client = addresses.into_iter().find(|address| *address != std::net::IpAddr::from(SERVER));
    match client {
        Some(std::net::IpAddr::V4(address)) => u32::from(address) & 0xff_ffff,
        other => panic!("{other:?} is not a client"),
    }
}

impl Sink for Log {
    type State = ();
    type Stage = Sessions<Standard>;

    fn message(&mut self, flow: &mut Flow<'_, ()>, _: &MessageMeta, message: &Message<'_>) {
        if let Message::Http1(http1::Message::Request(_)) = message {
            self.requests.push(number_of(flow.view.key()));
        }
        if self.muting == Muting::AtMessage {
            flow.mute();
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault, .. } = event {
            self.stopped.push((number_of(flow.view.key()), *fault));
            if self.muting == Muting::AtEviction {
                flow.mute();
            }
        }
    }

    fn ended(&mut self, _: &flowgauge::FlowView<'_>, _: flowgauge::base::EndReason, (): ()) {
        self.ended_count += 1;
    }
}

/// A pipeline, and the clients that send to it.
struct TestNetwork {
    pipeline: Pipeline<Log>,
    nanos: u64,
    /// Octets that each client has sent.
    sent: BTreeMap<u32, u32>,
}

impl TestNetwork {
    fn new(session_bytes_max: u64) -> Self {
        let mut limits = Limits::DEFAULT;
        limits.session_bytes_max = session_bytes_max;
        Self::with(Resources::new(limits), Muting::Never)
    }

    fn with(resources: Resources, muting: Muting) -> Self {
        let mut config = TrackerConfig::default();
        config.timeouts = Timeouts::all(None);
        let builder = Pipeline::builder().resources(resources).tracker(config);
        let log = Log { muting, ..Log::default() };
        let pipeline = builder.build(log).expect("a valid configuration");
        Self { pipeline, nanos: 0, sent: BTreeMap::new() }
    }

    /// Returns the frames with which a client sends octets to a port, starting with a SYN if it has sent nothing.
    fn frames(&mut self, number: u32, port: u16, payload: &[u8]) -> Vec<Vec<u8>> {
        let [_, a, b, c] = number.to_be_bytes();
        let mut frames = Vec::new();
        let mut frame = |seq, is_syn: bool, payload: &[u8]| {
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, a, b, c], SERVER, 64).tcp(
                CLIENT_PORT,
                port,
                seq,
                8000,
            );
            let builder = if is_syn { builder.syn() } else { builder };
            let mut frame = Vec::new();
            builder.write(&mut frame, payload).expect("a frame");
            frames.push(frame);
        };
        let sent = self.sent.entry(number).or_insert_with(|| {
            frame(0, true, &[]);
            0
        });
        for piece in payload.chunks(1400) {
            frame(1 + *sent, false, piece);
            *sent += piece.len() as u32;
        }
        frames
    }

    fn deliver(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            self.nanos += 1000;
            self.pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(self.nanos), frame));
        }
    }

    fn deliver_batch(&mut self, frames: &[Vec<u8>]) {
        let mut batch = FrameBatch::new();
        for frame in frames {
            self.nanos += 1000;
            batch.push(&Frame::ethernet(Timestamp::from_nanos(self.nanos), frame));
        }
        assert!(self.pipeline.batch(&batch).is_continue());
    }

    fn send_datagram(&mut self, number: u32, port: u16, payload: &[u8]) {
        let frames = self.frames(number, port, payload);
        self.deliver(&frames);
    }

    fn key(number: u32, port: u16) -> FlowKey {
        let [_, a, b, c] = number.to_be_bytes();
        let client = ([10, a, b, c].into(), CLIENT_PORT);
        FlowKey::new(IpProtocol::TCP, client, (SERVER.into(), port)).0
    }

    fn log(&self) -> &Log {
        self.pipeline.sink()
    }

    fn evicted_count(&self) -> u64 {
        self.pipeline.stats().sessions.evicted_count
    }

    fn held_bytes(&self) -> u64 {
        self.pipeline.stats().sessions.held_bytes
    }

    /// Ends all flows, after which no session holds memory.
    fn finish(mut self) -> Log {
        self.pipeline.check_invariants();
        self.pipeline.finish();
        self.pipeline.check_invariants();
        assert_eq!(self.held_bytes(), 0);
        assert_eq!(self.pipeline.budget().held_by(Account::Sessions), 0);
        self.pipeline.into_sink()
    }
}

/// Returns the beginning of a request with an endless head.
fn head_without_end(len: usize) -> Vec<u8> {
    let mut head = b"GET /index.html HTTP/1.1\r\nHost: example.com\r\nX-Long: ".to_vec();
    head.resize(len.max(head.len()), b'a');
    head
}

/// Returns the beginning of a TLS record with a handshake message, both of 16 KiB.
fn record_without_end(len: usize) -> Vec<u8> {
    let mut record = vec![22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc, 3, 3];
    record.resize(len.max(record.len()), 7);
    record
}

/// Returns an incomplete message of a client: an HTTP head for even numbers, a TLS record for odd ones.
fn incomplete(number: u32) -> (u16, Vec<u8>) {
    if number.is_multiple_of(2) {
        (HTTP_PORT, head_without_end(700))
    } else {
        (TLS_PORT, record_without_end(300))
    }
}

fn is_ascending(numbers: &[u32]) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

#[test]
fn incomplete_messages_of_thousands_of_flows_do_not_prevent_parsing_of_a_later_request() {
    const COUNT: u32 = 4000;
    const BYTES_MAX: u64 = 1 << 20;
    let mut network = TestNetwork::new(BYTES_MAX);
    for number in 0..COUNT {
        let (port, payload) = incomplete(number);
        network.send_datagram(number, port, &payload);
        assert!(network.held_bytes() <= BYTES_MAX - BYTES_MAX / 8, "memory is released between frames");
        if number % 500 == 0 {
            network.pipeline.check_invariants();
        }
    }
    network.send_datagram(COUNT, HTTP_PORT, REQUEST);

    // The request is parsed, and so is a head that is completed while it is listed.
    let latest = COUNT - 2;
    network.send_datagram(latest, HTTP_PORT, b"\r\n\r\n");
    assert_eq!(network.log().requests, [COUNT, latest]);

    // Each eviction is reported once, in the order of the connections, and nothing was refused.
    let evicted = network.log().evicted();
    assert!(evicted.len() > 3000, "{}", evicted.len());
    assert_eq!(evicted.len() as u64, network.evicted_count());
    assert_eq!(network.pipeline.stats().sessions.stopped_count, network.evicted_count());
    assert_eq!(network.log().stopped.len(), evicted.len(), "no parser stopped for another reason");
    assert!(is_ascending(&evicted) && evicted.first() == Some(&0));

    // All flows are still tracked, with their application.
    assert_eq!(network.pipeline.flow_count(), COUNT as usize + 1);
    for (number, port, name) in [(0, HTTP_PORT, "http"), (1, TLS_PORT, "tls")] {
        let id = network.pipeline.find(&TestNetwork::key(number, port)).expect("an open flow");
        let (view, ()) = network.pipeline.flow(id).expect("an open flow");
        assert_eq!(view.application().map(|application| application.name.to_string()).as_deref(), Some(name));
    }
    assert_eq!(network.finish().ended_count, COUNT as usize + 1);
}

#[test]
fn memory_is_released_between_groups_of_a_batch() {
    const BYTES_MAX: u64 = 2 << 20;
    let mut network = TestNetwork::new(BYTES_MAX);
    for batch in 0..40 {
        let frames: Vec<_> = (batch * 100..batch * 100 + 100)
            .flat_map(|number| network.frames(number, HTTP_PORT, &head_without_end(700)))
            .collect();
        network.deliver_batch(&frames);
        assert!(network.held_bytes() <= BYTES_MAX - BYTES_MAX / 8);
        let request = network.frames(10_000 + batch, HTTP_PORT, REQUEST);
        network.deliver_batch(&request);
        assert_eq!(network.log().requests.last(), Some(&(10_000 + batch)));
    }
    let log = network.finish();
    assert!(log.stopped.len() > 1000 && log.stopped.len() == log.evicted().len());
    // Sessions of complete requests hold a parser, so that they are also listed.
    let incomplete: Vec<_> = log.evicted().into_iter().filter(|number| *number < 10_000).collect();
    assert!(is_ascending(&incomplete));
}

#[test]
fn a_flow_that_keeps_being_charged_is_evicted_after_silent_ones() {
    let mut network = TestNetwork::new(1 << 20);
    let active = 0;
    network.send_datagram(active, HTTP_PORT, b"GET / HTTP/1.1\r\nHost: example.com\r\n");
    let mut next = 1;
    // Each line is longer than all before it, so that each is charged.
    for step in 0..8 {
        for number in next..next + 200 {
            network.send_datagram(number, HTTP_PORT, &head_without_end(700));
        }
        next += 200;
        let line = [b"X: ".as_slice(), &vec![b'a'; 100 << step], b"\r\n"].concat();
        network.send_datagram(active, HTTP_PORT, &line);
    }
    assert!(network.evicted_count() > 200, "{}", network.evicted_count());
    assert!(!network.log().evicted().contains(&active));
    network.send_datagram(active, HTTP_PORT, b"\r\n");
    assert_eq!(network.log().requests, [active]);

    // Once it is silent as well, it is evicted.
    network.send_datagram(active, HTTP_PORT, b"GET / HTTP/1.1\r\n");
    for number in next..next + 2000 {
        network.send_datagram(number, HTTP_PORT, &head_without_end(700));
    }
    assert_eq!(network.log().evicted().iter().filter(|number| **number == active).count(), 1);
    network.send_datagram(active, HTTP_PORT, b"\r\n");
    assert_eq!(network.log().requests, [active], "nothing is parsed after an eviction");
    network.finish();
}

#[test]
fn muted_flows_are_not_listed() {
    let mut limits = Limits::DEFAULT;
    limits.session_bytes_max = 1 << 20;
    let mut network = TestNetwork::with(Resources::new(limits), Muting::AtMessage);
    // The incomplete request is in the segment of the message at which the flow is muted, or behind it.
    let both = [REQUEST, &head_without_end(700)].concat();
    for number in 0..2000 {
        network.send_datagram(number, HTTP_PORT, &both);
        network.send_datagram(number, HTTP_PORT, &head_without_end(700));
    }
    assert_eq!((network.held_bytes(), network.evicted_count()), (0, 0));
    // Flows that are muted while they are listed leave the list.
    for number in 2000..4000 {
        network.send_datagram(number, HTTP_PORT, &head_without_end(700));
        network.send_datagram(number, HTTP_PORT, b"\r\n\r\n");
    }
    assert_eq!((network.held_bytes(), network.evicted_count()), (0, 0));
    assert!(network.finish().stopped.is_empty());
}

#[test]
fn a_sink_may_mute_a_flow_when_its_session_is_evicted() {
    let mut limits = Limits::DEFAULT;
    limits.session_bytes_max = 1 << 20;
    let mut network = TestNetwork::with(Resources::new(limits), Muting::AtEviction);
    for number in 0..3000 {
        let (port, payload) = incomplete(number);
        network.send_datagram(number, port, &payload);
    }
    let evicted = network.log().evicted();
    assert!(evicted.len() > 1000);
    for number in evicted.iter().take(100) {
        network.send_datagram(*number, incomplete(*number).0, REQUEST);
    }
    assert!(network.log().requests.is_empty());
    assert_eq!(network.pipeline.flow_count(), 3000);
    network.finish();
}

#[test]
fn flows_that_end_while_their_sessions_are_listed_leave_the_list() {
    let mut limits = Limits::DEFAULT;
    limits.session_bytes_max = 1 << 20;
    limits.flow_count_max = 1024;
    let mut network = TestNetwork::with(Resources::new(limits), Muting::Never);
    // Flows are removed by the caller, and their slots are used again while others are evicted.
    for number in 0..6000 {
        let (port, payload) = incomplete(number);
        network.send_datagram(number, port, &payload);
        if number % 3 == 0 {
            let id = network.pipeline.find(&TestNetwork::key(number, port)).expect("an open flow");
            assert!(network.pipeline.remove(id));
        }
        if number % 1000 == 0 {
            network.pipeline.check_invariants();
        }
    }
    assert!(network.evicted_count() > 1000);
    let evicted = network.log().evicted();
    assert_eq!(evicted.len() as u64, network.evicted_count());
    assert!(evicted.iter().all(|number| number % 3 != 0), "flows that were removed were not evicted");
    assert!(is_ascending(&evicted));
    assert_eq!(network.finish().ended_count, 6000);
}

#[test]
fn sessions_release_memory_for_flows_before_flows_are_evicted() {
    const LIMIT: u64 = 16 << 20;
    let budget = Budget::new(LIMIT);
    let resources = Resources::new(Limits::DEFAULT).with_budget(budget.clone());
    let mut network = TestNetwork::with(resources, Muting::Never);
    let mut count = 0;
    while budget.held_by(Account::Sessions) < LIMIT / 4 {
        network.send_datagram(count, HTTP_PORT, &head_without_end(700));
        count += 1;
    }
    assert_eq!(network.evicted_count(), 0);
    let mut next = count;
    while budget.held_by(Account::Sessions) > 0 {
        assert_eq!(
            network.pipeline.stats().tracker.evicted_by_budget_count,
            0,
            "sessions are closed before flows end"
        );
        network.send_datagram(next, HTTP_PORT, &[]);
        next += 1;
    }
    assert_eq!((network.evicted_count(), network.log().evicted().len()), (count.into(), count as usize));
    assert!(is_ascending(&network.log().evicted()));
    assert_eq!(network.pipeline.flow_count(), next as usize);
    assert!(budget.peak() <= LIMIT);
    network.finish();
}

/// A step of a random run.
#[derive(Clone, Debug)]
enum Step {
    /// Sends the next octets of an endless head, or of an endless record.
    Grow { client: u8, len: u16 },
    /// Ends the head.
    Complete { client: u8 },
    /// Ends the flow.
    Remove { client: u8 },
    /// Sends octets of an unknown protocol, or too few octets to recognize one.
    Noise { client: u8, len: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<u8>(), 1..6000_u16).prop_map(|(client, len)| Step::Grow { client, len }),
        2 => any::<u8>().prop_map(|client| Step::Complete { client }),
        1 => any::<u8>().prop_map(|client| Step::Remove { client }),
        1 => (any::<u8>(), 1..40_u8).prop_map(|(client, len)| Step::Noise { client, len }),
    ]
}

fn port_of(client: u8) -> u16 {
    if client.is_multiple_of(4) { TLS_PORT } else { HTTP_PORT }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any order in which clients send, complete, and end: the layers agree with their accounts after each batch,
    /// the limit holds, and each parser is reported as stopped at most once.
    #[test]
    fn accounts_agree_for_any_order_of_events(
        steps in prop::collection::vec(step(), 1..400),
        group in 1..40_usize,
        bytes_max in (64 << 10)..(256_u64 << 10),
        muting in prop::sample::select(vec![Muting::Never, Muting::AtMessage, Muting::AtEviction]),
    ) {
        let mut limits = Limits::DEFAULT;
        limits.session_bytes_max = bytes_max;
        let mut network = TestNetwork::with(Resources::new(limits), muting);
        // The next flow after one that ends is from another client address.
        let mut generations = [0_u32; 256];
        for steps in steps.chunks(group) {
            let (mut frames, mut removed) = (Vec::new(), Vec::new());
            for step in steps {
                let (client, payload) = match step {
                    Step::Grow { client, len } => (*client, {
                        let number = generations[usize::from(*client)] << 8 | u32::from(*client);
                        match (network.sent.contains_key(&number), port_of(*client)) {
                            (true, _) => vec![b'a'; usize::from(*len)],
                            (false, TLS_PORT) => record_without_end(usize::from(*len)),
                            (false, _) => head_without_end(usize::from(*len)),
                        }
                    }),
                    Step::Complete { client } => (*client, b"\r\n\r\n".to_vec()),
                    Step::Noise { client, len } => (*client, vec![b'S'; usize::from(*len)]),
                    Step::Remove { client } => {
                        removed.push(*client);
                        continue;
                    }
                };
                let number = generations[usize::from(client)] << 8 | u32::from(client);
                frames.extend(network.frames(number, port_of(client), &payload));
            }
            network.deliver_batch(&frames);
            for client in removed {
                let generation = &mut generations[usize::from(client)];
                let number = *generation << 8 | u32::from(client);
                if let Some(id) = network.pipeline.find(&TestNetwork::key(number, port_of(client))) {
                    prop_assert!(network.pipeline.remove(id));
                }
                *generation += 1;
            }
            network.pipeline.check_invariants();
            prop_assert!(network.held_bytes() <= bytes_max - bytes_max / 8);
            prop_assert!(network.pipeline.stats().sessions.peak_bytes <= bytes_max);
        }
        let stopped: Vec<u32> = network.log().stopped.iter().map(|(number, _)| *number).collect();
        prop_assert_eq!(stopped.iter().collect::<BTreeSet<_>>().len(), stopped.len(), "a parser stops once");
        prop_assert!(network.log().evicted().len() as u64 <= network.evicted_count());
        prop_assert!(network.pipeline.stats().sessions.stopped_count >= stopped.len() as u64);
        network.finish();
    }
}
