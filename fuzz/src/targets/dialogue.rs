//! Dialogues for the targets of parsers: octets, words of the protocol, gaps, FINs and waits, read from the front of
//! the input, and passed to a session driver in pieces of any length.

use std::net::IpAddr;
use std::ops::ControlFlow;

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::{Budget, FlowKey, IpProtocol, Limits, Resources, Side, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{
    Driver, DriverConfig, EndKind, FlowContext, MessageMeta, Parser, Payload, Protocols, Receiver, Role,
    Session, SessionEvent,
};

use super::compare::assert_same;
use super::input::{Octets, items, structured};

/// Maximum number of steps of a dialogue.
const STEP_COUNT_MAX: usize = 300;

#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Arbitrary octets.
    Octets {
        from: Role,
        octets: &'a [u8],
    },
    /// A word of the protocol, repeated.
    Word {
        from: Role,
        number: u8,
        count: usize,
    },
    /// Missing octets.
    Gap {
        from: Role,
        len: u16,
    },
    Fin {
        from: Role,
    },
    Wait {
        seconds: u8,
    },
}

/// First octets of the steps with octets, for seeds.
pub const CLIENT_OCTETS: u8 = 0;
pub const SERVER_OCTETS: u8 = 1;

const fn role(number: u8) -> Role {
    if number & 1 == 0 { Role::Client } else { Role::Server }
}

impl<'a> Arbitrary<'a> for Step<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let kind = u8::arbitrary(u)? % 12;
        let from = role(kind);
        Ok(match kind {
            CLIENT_OCTETS | SERVER_OCTETS => Self::Octets { from, octets: Octets::arbitrary(u)?.0 },
            2..6 => Self::Word { from, number: u8::arbitrary(u)?, count: 1 },
            6 | 7 => {
                let (number, count) = <(u8, u16)>::arbitrary(u)?;
                Self::Word { from, number, count: usize::from(count % 600) }
            }
            8 | 9 => {
                let len = u16::arbitrary(u)?;
                // Mostly short gaps, because long ones are treated alike.
                Self::Gap { from, len: if len & 0x8000 == 0 { len & 0xff } else { len } }
            }
            10 => Self::Fin { from: role(u8::arbitrary(u)?) },
            _ => Self::Wait { seconds: u8::arbitrary(u)? },
        })
    }
}

#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Maximum length of the pieces in the second run.
    pub piece_len: u8,
    /// Choice with a meaning that depends on the target.
    pub choice: u8,
    pub steps: Vec<Step<'a>>,
}

/// Number of octets before the steps of an [`Input`].
pub const HEAD_LEN: usize = 2;

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (piece_len, choice) = Arbitrary::arbitrary(u)?;
        Ok(Self { piece_len, choice, steps: items(u, STEP_COUNT_MAX)? })
    }
}

/// Description of a message for comparison. Successive parts with the same name are joined, such as pieces of a body.
pub enum Line {
    Whole(String),
    Part(String, Vec<u8>),
    /// Of a message that depends on the pieces.
    None,
}

pub type Describe<P> = fn(&MessageMeta, <P as Parser>::Message<'_>) -> Line;

/// Transport of a dialogue, and the expectations of a target for its parser.
pub struct Expectations<P: Protocols> {
    pub protocol: IpProtocol,
    pub server_port: u16,
    pub words: &'static [&'static [u8]],
    pub describe: Describe<P>,
    /// Maximum number of octets that the session may hold.
    pub held_max: u64,
    /// Limits on the memory of all sessions and of a direction; zero for the defaults.
    pub memory_limits: (u64, u32),
}

impl<P: Protocols> Expectations<P> {
    pub fn tcp(
        server_port: u16,
        words: &'static [&'static [u8]],
        describe: Describe<P>,
        held_max: u64,
    ) -> Self {
        Self { protocol: IpProtocol::TCP, server_port, words, describe, held_max, memory_limits: (0, 0) }
    }

    pub fn udp(self) -> Self {
        Self { protocol: IpProtocol::UDP, ..self }
    }

    /// Sets the memory limits selected by an octet.
    pub fn with_limits(self, choice: u8) -> Self {
        let memory_limits = (1024 << (choice & 7), 256 << (choice >> 3 & 7));
        Self { memory_limits, held_max: memory_limits.0, ..self }
    }
}

/// Line for suppressed messages.
const SUPPRESSED: &str = "messages left out";

struct Collector<P: Protocols> {
    describe: Describe<P>,
    lines: Vec<String>,
    part: Option<(String, Vec<u8>)>,
    has_stopped: bool,
    /// True if several conversations may follow each other, of which each has a parser.
    is_datagrams: bool,
}

impl<P: Protocols> Collector<P> {
    fn end_part(&mut self) {
        if let Some((name, bytes)) = self.part.take() {
            self.lines.push(format!("{name}: {}", bytes.escape_ascii()));
        }
    }
}

impl<P: Protocols> Receiver<P> for Collector<P> {
    fn message(&mut self, meta: &MessageMeta, message: P::Message<'_>) {
        let is_over = self.has_stopped && !self.is_datagrams;
        assert!(!is_over, "a message was reported after a parser had stopped");
        match (self.describe)(meta, message) {
            Line::Whole(text) => {
                self.end_part();
                self.lines.push(text);
            }
            Line::None => {}
            Line::Part(name, bytes) => match &mut self.part {
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
        self.lines.push(match event {
            SessionEvent::Recognized { protocol, evidence } => format!("{protocol} by {}", evidence.name()),
            SessionEvent::Stopped { meta, fault, .. } => {
                let is_over = std::mem::replace(&mut self.has_stopped, true) && !self.is_datagrams;
                assert!(!is_over, "the session stopped twice");
                format!("{} stopped: {fault}", meta.protocol)
            }
            SessionEvent::Suppressed { .. } => String::from(SUPPRESSED),
            _ => String::from("another event"),
        });
    }
}

/// Passes a dialogue to a driver in pieces of at most `piece_len` octets, and returns the reported lines. Checks that
/// memory stays below the limit and is released at the end.
pub fn play<P: Protocols>(terms: &Expectations<P>, steps: &[Step<'_>], piece_len: usize) -> Vec<String> {
    let end = |last, port| (IpAddr::from([10, 0, 0, last]), port);
    let (key, client) = FlowKey::new(terms.protocol, end(1, 40_000), end(2, terms.server_port));
    let budget = Budget::new(1 << 30);
    let mut limits = Limits::DEFAULT;
    if let (bytes_max @ 1.., side_max) = terms.memory_limits {
        (limits.session_bytes_max, limits.session_side_bytes_max) = (bytes_max, side_max);
    }
    let resources = Resources::new(limits).with_budget(budget.clone());
    let mut driver = Driver::<P>::new(DriverConfig::default(), &resources);
    let mut session = Session::default();
    let mut collector = Collector {
        describe: terms.describe,
        lines: Vec::new(),
        part: None,
        has_stopped: false,
        is_datagrams: terms.protocol != IpProtocol::TCP,
    };
    let mut now_ns = 1_000_000_000_000_000_u64;
    let (mut offsets, mut wants) = ([0_u64; 2], [true; 2]);
    let side = |from: Role| -> Side { if from == Role::Client { client } else { client.other() } };
    for step in steps {
        let context = FlowContext::new(&key, client, Timestamp::from_nanos(now_ns));
        let (from, octets) = match *step {
            Step::Octets { from, octets } => (from, octets.to_vec()),
            Step::Word { from, number, count } => {
                (from, terms.words[usize::from(number) % terms.words.len()].repeat(count))
            }
            Step::Wait { seconds } => {
                now_ns += u64::from(seconds) * 100_000_000;
                continue;
            }
            Step::Gap { .. } | Step::Fin { .. } if terms.protocol != IpProtocol::TCP => continue,
            Step::Gap { from, len } => {
                let len = u64::from(len) + 1;
                let gap = Gap::new(offsets[from.index()], len, GapReason::Deadline);
                offsets[from.index()] += len;
                if wants[from.index()] {
                    let flow = driver.gap(&mut session, &context, side(from), &gap, &mut collector);
                    wants[from.index()] = flow == ControlFlow::Continue(());
                }
                continue;
            }
            Step::Fin { from } => {
                // A direction has one FIN and no octets after it.
                if std::mem::replace(&mut wants[from.index()], false) {
                    driver.fin(&mut session, &context, side(from), &mut collector);
                }
                continue;
            }
        };
        if terms.protocol != IpProtocol::TCP {
            // Every fourth length belongs to a datagram truncated by a snap length.
            let wire_len = octets.len() + if octets.len() % 4 == 3 { 9 } else { 0 };
            driver.datagram(
                &mut session,
                &context,
                side(from),
                Payload { bytes: &octets, len: wire_len },
                &mut collector,
            );
        }
        for piece in octets.chunks(piece_len).filter(|_| terms.protocol == IpProtocol::TCP) {
            let chunk = Chunk::new(offsets[from.index()], piece);
            offsets[from.index()] += piece.len() as u64;
            if wants[from.index()] {
                let flow = driver.chunk(&mut session, &context, side(from), &chunk, &mut collector);
                wants[from.index()] = flow == ControlFlow::Continue(());
            }
        }
        let held_bytes = driver.stats().held_bytes;
        assert!(held_bytes <= terms.held_max, "the session holds {held_bytes} octets");
        assert_eq!(held_bytes, budget.held());
        assert_eq!(held_bytes, session.held_bytes(), "the driver holds memory outside of the session");
    }
    let context = FlowContext::new(&key, client, Timestamp::from_nanos(now_ns));
    driver.finish(&mut session, &context, EndKind::Flow, &mut collector);
    assert_eq!((driver.stats().held_bytes, budget.held()), (0, 0), "memory was not released");
    collector.end_part();
    collector.lines
}

/// Passes a dialogue over TCP to a driver at once, in pieces, and with limits. The first two runs report the same.
pub fn run_all_variants<P: Protocols>(data: &[u8], terms: impl Fn() -> Expectations<P>) -> Vec<String> {
    let Some(input) = structured::<Input<'_>>(data) else { return Vec::new() };
    let terms_now = terms();
    let whole = play(&terms_now, &input.steps, usize::MAX);
    let piece_len = usize::from(input.piece_len % 64) + 1;
    let pieces = play(&terms_now, &input.steps, piece_len);
    // Each call permits further messages, so that pieces permit more messages.
    let compared_count = whole.iter().position(|line| line == SUPPRESSED).unwrap_or(usize::MAX);
    let compared = |lines: &[String]| lines.get(..compared_count).unwrap_or(lines).to_vec();
    let what = format!("lines of whole steps and of pieces of {piece_len} octets");
    assert_same(&compared(&whole), &compared(&pieces), &what);
    play(&terms().with_limits(input.choice), &input.steps, usize::MAX);
    whole
}

/// Writes a step of octets as [`Step`] reads it.
pub fn put_step(seed: &mut Vec<u8>, from: Role, octets: &[u8]) {
    for part in octets.chunks(super::input::OCTETS_LEN_MAX) {
        seed.push(if from == Role::Client { CLIENT_OCTETS } else { SERVER_OCTETS });
        super::input::put_octets(seed, part);
    }
}

/// A set with one parser that is recognized by port only, because probes would depend on the length of pieces.
#[macro_export]
macro_rules! one_parser {
    ($Parser:ty, $name:literal, $port:literal) => {
        static PROTOCOL: flowgauge::session::Protocol = flowgauge::session::Protocol::new($name)
            .over_streams(&[$port], None)
            .over_datagrams(&[$port], None);

        flowgauge::protocols! {
            /// Set with one parser.
            #[derive(Debug)]
            enum Set;
            /// Messages of the parser.
            #[derive(Debug)]
            enum Report;
            parsers { One: $Parser = &PROTOCOL }
        }
    };
}

/// Returns a message as a JSON object, which must be valid.
pub fn json(message: &impl flowgauge::row::Union) -> String {
    let mut out = Vec::new();
    flowgauge::export::write_message(&mut out, message, flowgauge::export::Style::default());
    serde_json::from_slice::<serde_json::Value>(&out).expect("a JSON object");
    String::from_utf8(out).expect("JSON is UTF-8")
}
