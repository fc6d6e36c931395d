//! Dialogues for parsers: processed whole, in pieces of any length, with gaps, truncated, or corrupted.

use std::net::IpAddr;
use std::ops::ControlFlow;

use flowgauge::base::{FlowKey, IpProtocol, Limits, Resources, Side, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{
    Driver, DriverConfig, EndKind, FlowContext, MessageMeta, Parser, Payload, Protocols, Receiver, Role,
    Session, SessionEvent,
};

/// Text of a message for comparison. Consecutive parts with the same name are joined, for example pieces of a body.
pub(crate) enum Description {
    Whole(String),
    Part(String, Vec<u8>),
}

/// Function with which a test describes a message.
pub(crate) type Describe<P> = fn(&MessageMeta, <P as Parser>::Message<'_>) -> Description;

/// Octets and their sender.
pub(crate) type Turn<'a> = (Role, &'a [u8]);

/// Result of a dialogue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Descriptions of messages, and events of the session between `[` and `]`.
    pub(crate) reports: Vec<String>,
    pub(crate) application: Option<(&'static str, &'static str)>,
}

impl Observed {
    /// Returns the messages without the events.
    pub(crate) fn messages(&self) -> Vec<&str> {
        self.reports.iter().map(String::as_str).filter(|report| !report.starts_with('[')).collect()
    }
}

struct Observer<P: Protocols> {
    describe: Describe<P>,
    reports: Vec<String>,
    part: Option<(String, Vec<u8>)>,
}

impl<P: Protocols> Observer<P> {
    fn end_part(&mut self) {
        if let Some((name, bytes)) = self.part.take() {
            self.reports.push(format!("{name}: {}", bytes.escape_ascii()));
        }
    }
}

impl<P: Protocols> Receiver<P> for Observer<P> {
    fn message(&mut self, meta: &MessageMeta, message: P::Message<'_>) {
        match (self.describe)(meta, message) {
            Description::Whole(text) => {
                self.end_part();
                self.reports.push(text);
            }
            Description::Part(name, bytes) => match &mut self.part {
                Some((known, all)) if *known == name => all.extend(bytes),
                _ => {
                    self.end_part();
                    self.part = Some((name, bytes));
                }
            },
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        self.end_part();
        self.reports.push(match event {
            SessionEvent::Recognized { protocol, evidence } => format!("[{protocol} by {}]", evidence.name()),
            SessionEvent::Stopped { meta, fault, .. } => format!("[{} stopped: {fault}]", meta.protocol),
            _ => "[?]".to_owned(),
        });
    }
}

/// Session with its own driver. The client is side A.
pub(crate) struct Dialogue<P: Protocols> {
    driver: Driver<P>,
    session: Session<P>,
    key: FlowKey,
    observer: Observer<P>,
    offsets: [u64; 2],
    wants: [bool; 2],
    clock: u64,
    is_picked_up: bool,
}

impl<P: Protocols> Dialogue<P> {
    /// Creates a dialogue over TCP or UDP with a port of the server.
    pub(crate) fn new(protocol: IpProtocol, server_port: u16, describe: Describe<P>) -> Self {
        Self::from_port(protocol, 40_000, server_port, describe)
    }

    /// Creates a dialogue with the ports of both ends.
    pub(crate) fn from_port(
        protocol: IpProtocol,
        client_port: u16,
        server_port: u16,
        describe: Describe<P>,
    ) -> Self {
        let end = |last, port| (IpAddr::from([10, 0, 0, last]), port);
        let (key, side) = FlowKey::new(protocol, end(1, client_port), end(2, server_port));
        assert_eq!(side, Side::A);
        let observer = Observer { describe, reports: Vec::new(), part: None };
        let (driver, session) = (Driver::default(), Session::default());
        let (offsets, wants) = ([0; 2], [true; 2]);
        Self { driver, session, key, observer, offsets, wants, clock: 0, is_picked_up: false }
    }

    /// Limits the memory of all sessions.
    pub(crate) fn with_bytes_max(mut self, bytes_max: u64) -> Self {
        let mut limits = Limits::DEFAULT;
        limits.session_bytes_max = bytes_max;
        self.driver = Driver::new(DriverConfig::default(), &Resources::new(limits));
        self
    }

    /// Marks the flow as captured from the middle.
    pub(crate) fn picked_up(self) -> Self {
        Self { is_picked_up: true, ..self }
    }

    /// Advances the clock by one millisecond.
    fn now(&mut self) -> Timestamp {
        self.clock += 1_000_000;
        Timestamp::from_nanos(self.clock)
    }

    /// Passes a chunk of the stream to the driver.
    pub(crate) fn send_octets(&mut self, from: Role, bytes: &[u8]) {
        let offset = self.offsets[from.index()];
        self.offsets[from.index()] += bytes.len() as u64;
        if bytes.is_empty() || !self.wants[from.index()] {
            return;
        }
        let now = self.now();
        let context = FlowContext::new(&self.key, Side::A, now).picked_up(self.is_picked_up);
        let chunk = Chunk::new(offset, bytes);
        let wants = self.driver.chunk(&mut self.session, &context, side(from), &chunk, &mut self.observer);
        self.wants[from.index()] = wants == ControlFlow::Continue(());
    }

    /// Passes a datagram to the driver.
    pub(crate) fn send_datagram(&mut self, from: Role, bytes: &[u8]) {
        let now = self.now();
        let context = FlowContext::new(&self.key, Side::A, now);
        self.driver.datagram(
            &mut self.session,
            &context,
            side(from),
            Payload { bytes, len: bytes.len() },
            &mut self.observer,
        );
    }

    /// Reports a gap in the stream to the driver.
    pub(crate) fn send_gap(&mut self, from: Role, len: u64) {
        let offset = self.offsets[from.index()];
        self.offsets[from.index()] += len;
        if len == 0 || !self.wants[from.index()] {
            return;
        }
        let now = self.now();
        let context = FlowContext::new(&self.key, Side::A, now);
        let gap = Gap::new(offset, len, GapReason::Deadline);
        let wants = self.driver.gap(&mut self.session, &context, side(from), &gap, &mut self.observer);
        self.wants[from.index()] = wants == ControlFlow::Continue(());
    }

    /// Returns the memory that the session holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.driver.stats().held_bytes
    }

    /// Reports the FIN of a direction to the driver.
    pub(crate) fn fin(&mut self, from: Role) {
        let now = self.now();
        let context = FlowContext::new(&self.key, Side::A, now);
        self.driver.fin(&mut self.session, &context, side(from), &mut self.observer);
    }

    /// Ends the flow, and checks that all memory is released.
    pub(crate) fn finish(mut self) -> Observed {
        let now = self.now();
        let context = FlowContext::new(&self.key, Side::A, now);
        self.driver.finish(&mut self.session, &context, EndKind::Flow, &mut self.observer);
        self.observer.end_part();
        assert_eq!(self.driver.stats().held_bytes, 0, "all memory is released");
        let application = self.session.application();
        Observed {
            reports: self.observer.reports,
            application: application.map(|(protocol, evidence)| (protocol.name(), evidence.name())),
        }
    }
}

fn side(from: Role) -> Side {
    if from == Role::Client { Side::A } else { Side::B }
}

/// Runs a dialogue over TCP with each turn in pieces of the lengths that `next_len` returns, followed by both FINs.
pub(crate) fn observe<P: Protocols>(
    port: u16,
    turns: &[Turn<'_>],
    describe: Describe<P>,
    mut next_len: impl FnMut() -> usize,
) -> Observed {
    let mut dialogue = Dialogue::<P>::new(IpProtocol::TCP, port, describe);
    for (from, bytes) in turns {
        let mut rest = *bytes;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(next_len().clamp(1, rest.len()));
            dialogue.send_octets(*from, piece);
            rest = after;
        }
    }
    dialogue.fin(Role::Client);
    dialogue.fin(Role::Server);
    dialogue.finish()
}

/// Runs the dialogue with whole turns, and checks that any split gives the same result: octet by octet, in two pieces
/// at each position, and at random lengths.
pub(crate) fn observe_in_any_split<P: Protocols>(
    port: u16,
    turns: &[Turn<'_>],
    describe: Describe<P>,
) -> Observed {
    observe_in_any_split_after(port, 0, turns, describe)
}

/// Does the same, but does not split the first turns: for protocols that need more octets for recognition than the
/// window has chunks.
pub(crate) fn observe_in_any_split_after<P: Protocols>(
    port: u16,
    whole_count: usize,
    turns: &[Turn<'_>],
    describe: Describe<P>,
) -> Observed {
    let observe = |port, turns, describe, next_len: &mut dyn FnMut() -> usize| {
        let mut turn_count = 0;
        let next_len = || {
            turn_count += 1;
            if turn_count <= whole_count { usize::MAX } else { next_len() }
        };
        observe(port, turns, describe, next_len)
    };
    let whole = observe(port, turns, describe, &mut || usize::MAX);
    assert_eq!(observe(port, turns, describe, &mut || 1), whole, "octet by octet");
    for len in 2..40 {
        assert_eq!(observe(port, turns, describe, &mut || len), whole, "{len} octets at a time");
    }
    let longest = turns.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or_default();
    for position in (1..longest).step_by(longest / 400 + 1) {
        let mut is_first = false;
        let mut lens = || {
            is_first = !is_first;
            if is_first { position } else { usize::MAX }
        };
        assert_eq!(observe(port, turns, describe, &mut lens), whole, "in two pieces at {position}");
    }
    for seed in 1..60_u64 {
        let mut random = random(seed);
        let mut lens = || (random() % 97) as usize + 1;
        assert_eq!(observe(port, turns, describe, &mut lens), whole, "seed {seed}");
    }
    whole
}

/// Runs a dialogue in which octets `start..start + len` of a turn are missing.
pub(crate) fn observe_with_gap<P: Protocols>(
    port: u16,
    turns: &[Turn<'_>],
    describe: Describe<P>,
    (turn, start, len): (usize, usize, usize),
) -> Observed {
    let mut dialogue = Dialogue::<P>::new(IpProtocol::TCP, port, describe);
    for (position, (from, bytes)) in turns.iter().enumerate() {
        if position == turn {
            dialogue.send_octets(*from, &bytes[..start]);
            dialogue.send_gap(*from, len as u64);
            dialogue.send_octets(*from, &bytes[start + len..]);
        } else {
            dialogue.send_octets(*from, bytes);
        }
    }
    dialogue.finish()
}

/// Runs the dialogue truncated after any number of octets: there is no panic, and all memory is released.
pub(crate) fn check_truncations<P: Protocols>(port: u16, turns: &[Turn<'_>], describe: Describe<P>) {
    let total: usize = turns.iter().map(|(_, bytes)| bytes.len()).sum();
    for end in (0..total).step_by(total / 500 + 1) {
        let mut remaining = end;
        let truncated: Vec<_> = turns
            .iter()
            .map(|(from, bytes)| {
                let len = bytes.len().min(remaining);
                remaining -= len;
                (*from, &bytes[..len])
            })
            .collect();
        observe(port, &truncated, describe, || 7);
    }
}

/// Runs the dialogue with random octets changed: there is no panic, and all memory is released.
pub(crate) fn check_corruptions<P: Protocols>(port: u16, turns: &[Turn<'_>], describe: Describe<P>) {
    for seed in 1..400_u64 {
        let mut random = random(seed);
        let mut changed: Vec<(Role, Vec<u8>)> =
            turns.iter().map(|(from, bytes)| (*from, bytes.to_vec())).collect();
        for _ in 0..=random() % 6 {
            let turn = (random() % changed.len() as u64) as usize;
            let bytes = &mut changed[turn].1;
            if !bytes.is_empty() {
                let position = (random() % bytes.len() as u64) as usize;
                bytes[position] = random() as u8;
            }
        }
        let turns: Vec<Turn<'_>> = changed.iter().map(|(from, bytes)| (*from, bytes.as_slice())).collect();
        observe(port, &turns, describe, || 50);
    }
}

/// Returns a generator of pseudorandom numbers, which are the same for the same seed.
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 16
    }
}
