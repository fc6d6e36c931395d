//! Dialogues over a stream for the targets of parsers: turns, holes, and words that the protocol knows, in pieces of any length.

use std::net::IpAddr;

use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{Driver, EndKind, Protocols, Receiver, Session, SessionEvent, Whose};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
pub enum Step<'a> {
    /// Octets as they are.
    Octets { of_server: bool, octets: &'a [u8] },
    /// One of the words.
    Word { of_server: bool, place: u8 },
    /// A word over and over.
    Words { of_server: bool, place: u8, times: u16 },
    /// Octets that are lost.
    Gap { of_server: bool, len: u16 },
}

/// What is said, before it is cut into pieces.
pub enum Turn {
    Octets(Side, Vec<u8>),
    Gap(Side, u64),
}

pub fn turns(opening: (Side, &[u8]), words: &[&[u8]], steps: &[Step<'_>]) -> Vec<Turn> {
    let side = |of_server| if of_server { Side::B } else { Side::A };
    let word = |place: u8| words[usize::from(place) % words.len()];
    let mut turns = vec![Turn::Octets(opening.0, opening.1.to_vec())];
    turns.extend(steps.iter().map(|step| match *step {
        Step::Octets { of_server, octets } => Turn::Octets(side(of_server), octets.to_vec()),
        Step::Word { of_server, place } => Turn::Octets(side(of_server), word(place).to_vec()),
        Step::Words { of_server, place, times } => {
            Turn::Octets(side(of_server), word(place).repeat(usize::from(times % 600)))
        }
        Step::Gap { of_server, len } => Turn::Gap(side(of_server), u64::from(len) + 1),
    }));
    turns
}

/// Collects messages as text.
pub trait Ear<P: Protocols>: Receiver<P> + Default {
    fn said(self) -> Vec<String>;
}

/// What is heard if all but the opening comes in pieces of a length; memory stays below a bound, and is given back.
pub fn hear<P: Protocols, E: Ear<P>>(
    turns: &[Turn],
    port: u16,
    piece_len: usize,
    held_max: u64,
) -> Vec<String> {
    let end = |last, port| (IpAddr::from([10, 0, 0, last]), port);
    let (key, _) = FlowKey::new(IpProtocol::TCP, end(1, 40_000), end(2, port));
    let (mut driver, mut session, mut ear) = (Driver::<P>::default(), Session::default(), E::default());
    let mut offsets = [0; 2];
    let whose = Whose::new(&key, Side::A, Timestamp::from_nanos(0));
    for (place, turn) in turns.iter().enumerate() {
        match turn {
            Turn::Octets(side, octets) => {
                for piece in octets.chunks(if place == 0 { usize::MAX } else { piece_len }) {
                    let chunk = Chunk::new(offsets[*side as usize], piece);
                    offsets[*side as usize] += piece.len() as u64;
                    let _ = driver.chunk(&mut session, &whose, *side, &chunk, &mut ear);
                    let held = driver.stats().held_bytes;
                    assert!(held <= held_max, "{held} octets");
                }
            }
            Turn::Gap(side, len) => {
                let gap = Gap::new(offsets[*side as usize], *len, GapReason::Deadline);
                offsets[*side as usize] += len;
                let _ = driver.gap(&mut session, &whose, *side, &gap, &mut ear);
            }
        }
    }
    driver.finish(&mut session, &whose, EndKind::Flow, &mut ear);
    assert_eq!(driver.stats().held_bytes, 0);
    ear.said()
}

pub fn event(event: &SessionEvent) -> String {
    match event {
        SessionEvent::Recognised { protocol, .. } => format!("recognised {protocol}"),
        SessionEvent::Stopped { about, fault, .. } => format!("{} stopped: {fault}", about.protocol),
        _ => String::new(),
    }
}

/// A set with one parser, and an ear for it.
#[macro_export]
macro_rules! one_parser {
    ($Parser:ty, $protocol:expr) => {
        flowgauge::protocols! {
            /// One parser.
            #[derive(Debug)]
            enum Set;
            /// What it says.
            #[derive(Debug)]
            enum Heard;
            parsers { One: $Parser = $protocol }
            recognised {}
        }

        #[derive(Default)]
        struct Said(Vec<String>);

        impl flowgauge::session::Receiver<Set> for Said {
            fn message(&mut self, _: &flowgauge::session::About, message: Heard<'_>) {
                self.0.push(format!("{message:?}"));
            }

            fn event(&mut self, event: &flowgauge::session::SessionEvent) {
                self.0.push(dialogue::event(event));
            }
        }

        impl dialogue::Ear<Set> for Said {
            fn said(self) -> Vec<String> {
                self.0
            }
        }
    };
}
