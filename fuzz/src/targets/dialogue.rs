//! Dialogues for the targets of parsers: octets, words of the protocol, gaps, FINs and waits, read from the front of
//! the input, and played to a driver of sessions in pieces of any length.

use std::net::IpAddr;
use std::ops::ControlFlow;

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::{Budget, FlowKey, IpProtocol, Limits, Resources, Side, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{
    Driver, DriverConfig, EndKind, FlowContext, MessageMeta, Parser, Protocols, Receiver, Role, Session,
    SessionEvent,
};

use super::compare::assert_same;
use super::input::{Octets, items, structured};

/// Steps of a dialogue that are used.
const STEP_COUNT_MAX: usize = 300;

#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Octets as they are.
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
    /// Octets that were lost.
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

/// The octets with which the steps of octets begin, for seeds.
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
                // Mostly short gaps: long ones are alike.
                Self::Gap { from, len: if len & 0x8000 == 0 { len & 0xff } else { len } }
            }
            10 => Self::Fin { from: role(u8::arbitrary(u)?) },
            _ => Self::Wait { seconds: u8::arbitrary(u)? },
        })
    }
}

#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// Length of the pieces of the second run.
    pub piece_len: u8,
    /// Of each target's own meaning.
    pub choice: u8,
    pub steps: Vec<Step<'a>>,
}

/// Octets before the steps of an [`Input`].
pub const HEAD_LEN: usize = 2;

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (piece_len, choice) = Arbitrary::arbitrary(u)?;
        Ok(Self { piece_len, choice, steps: items(u, STEP_COUNT_MAX)? })
    }
}

/// What a target makes of a message, for comparison. Parts that follow one another under one name are joined, as pieces
/// of a body are.
pub enum Line {
    Whole(String),
    Part(String, Vec<u8>),
}

pub type Describe<P> = fn(&MessageMeta, <P as Parser>::Message<'_>) -> Line;

/// A dialogue's side of the network, and what a target promises of its parser.
pub struct Terms<P: Protocols> {
    pub protocol: IpProtocol,
    pub server_port: u16,
    pub words: &'static [&'static [u8]],
    pub describe: Describe<P>,
    /// Octets that the session may hold.
    pub held_max: u64,
    /// Caps on the memory of sessions, of all and of a direction; zero for the defaults.
    pub caps: (u64, u32),
}

impl<P: Protocols> Terms<P> {
    pub fn tcp(
        server_port: u16,
        words: &'static [&'static [u8]],
        describe: Describe<P>,
        held_max: u64,
    ) -> Self {
        Self { protocol: IpProtocol::TCP, server_port, words, describe, held_max, caps: (0, 0) }
    }

    pub fn udp(self) -> Self {
        Self { protocol: IpProtocol::UDP, ..self }
    }

    /// The same under the caps that an octet chooses.
    pub fn with_caps(self, choice: u8) -> Self {
        let caps = (1024 << (choice & 7), 256 << (choice >> 3 & 7));
        Self { caps, held_max: caps.0, ..self }
    }
}

/// The line of messages that were left out.
const SUPPRESSED: &str = "messages left out";

struct Collector<P: Protocols> {
    describe: Describe<P>,
    lines: Vec<String>,
    part: Option<(String, Vec<u8>)>,
    has_stopped: bool,
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
        assert!(!self.has_stopped, "no message follows once a parser has stopped");
        match (self.describe)(meta, message) {
            Line::Whole(text) => {
                self.end_part();
                self.lines.push(text);
            }
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
                assert!(!std::mem::replace(&mut self.has_stopped, true), "a session stops once");
                format!("{} stopped: {fault}", meta.protocol)
            }
            SessionEvent::Suppressed { .. } => String::from(SUPPRESSED),
            _ => String::from("another event"),
        });
    }
}

/// Plays a dialogue, its octets in pieces of at most `piece_len`; the lines of what was reported. Memory stays below
/// the bound at any time, and is released at the end.
pub fn play<P: Protocols>(terms: &Terms<P>, steps: &[Step<'_>], piece_len: usize) -> Vec<String> {
    let end = |last, port| (IpAddr::from([10, 0, 0, last]), port);
    let (key, client) = FlowKey::new(terms.protocol, end(1, 40_000), end(2, terms.server_port));
    let budget = Budget::new(1 << 30);
    let mut limits = Limits::DEFAULT;
    if let (bytes_max @ 1.., side_max) = terms.caps {
        (limits.session_bytes_max, limits.session_side_bytes_max) = (bytes_max, side_max);
    }
    let resources = Resources::new(limits).with_budget(budget.clone());
    let mut driver = Driver::<P>::new(DriverConfig::default(), &resources);
    let mut session = Session::default();
    let mut collector =
        Collector { describe: terms.describe, lines: Vec::new(), part: None, has_stopped: false };
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
                // A direction has one FIN, and nothing follows it.
                if std::mem::replace(&mut wants[from.index()], false) {
                    driver.fin(&mut session, &context, side(from), &mut collector);
                }
                continue;
            }
        };
        if terms.protocol != IpProtocol::TCP {
            // Every fourth length is that of a datagram that a snap length truncated.
            let wire_len = octets.len() + if octets.len() % 4 == 3 { 9 } else { 0 };
            driver.datagram(&mut session, &context, side(from), (&octets, wire_len), &mut collector);
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
        assert_eq!(held_bytes, session.held_bytes(), "all that is held belongs to the session");
    }
    let context = FlowContext::new(&key, client, Timestamp::from_nanos(now_ns));
    driver.finish(&mut session, &context, EndKind::Flow, &mut collector);
    assert_eq!((driver.stats().held_bytes, budget.held()), (0, 0), "all memory is released");
    collector.end_part();
    collector.lines
}

/// Plays a dialogue over TCP whole, in pieces, and under caps. The first two report the same.
pub fn play_all<P: Protocols>(data: &[u8], terms: impl Fn() -> Terms<P>) -> Vec<String> {
    let Some(input) = structured::<Input<'_>>(data) else { return Vec::new() };
    let terms_now = terms();
    let whole = play(&terms_now, &input.steps, usize::MAX);
    let piece_len = usize::from(input.piece_len % 64) + 1;
    let pieces = play(&terms_now, &input.steps, piece_len);
    // Each call earns messages, so that more of them are reported of pieces.
    let compared_count = whole.iter().position(|line| line == SUPPRESSED).unwrap_or(usize::MAX);
    let compared = |lines: &[String]| lines.get(..compared_count).unwrap_or(lines).to_vec();
    let what = format!("lines of whole steps and of pieces of {piece_len} octets");
    assert_same(&compared(&whole), &compared(&pieces), &what);
    play(&terms().with_caps(input.choice), &input.steps, usize::MAX);
    whole
}

/// Writes a step of octets as [`Step`] reads it.
pub fn put_step(seed: &mut Vec<u8>, from: Role, octets: &[u8]) {
    for part in octets.chunks(super::input::OCTETS_LEN_MAX) {
        seed.push(if from == Role::Client { CLIENT_OCTETS } else { SERVER_OCTETS });
        super::input::put_octets(seed, part);
    }
}

/// A set with one parser, named by its port alone: what a probe sees would depend on the length of pieces.
#[macro_export]
macro_rules! one_parser {
    ($Parser:ty, $name:literal, $port:literal) => {
        static PROTOCOL: flowgauge::session::Protocol = flowgauge::session::Protocol::new($name)
            .over_streams(&[$port], None)
            .over_datagrams(&[$port], None);

        flowgauge::protocols! {
            /// One parser.
            #[derive(Debug)]
            enum Set;
            /// Its messages.
            #[derive(Debug)]
            enum Report;
            parsers { One: $Parser = &PROTOCOL }
            recognized {}
        }
    };
}
