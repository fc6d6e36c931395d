//! Dialogues for the targets of both parsers of HTTP: words, any octets, and holes, in pieces of any length.

use std::net::IpAddr;

use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{Driver, EndKind, Protocols, Receiver, Session, Whose};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
pub enum Step<'a> {
    /// Octets as they are.
    Octets { of_server: bool, octets: &'a [u8] },
    /// One of the words, once or more often.
    Words { of_server: bool, place: u8, times: u8 },
    /// Octets that are lost.
    Gap { of_server: bool, len: u16 },
    /// A FIN.
    Fin { of_server: bool },
}

/// Hears messages, bodies joined.
#[derive(Default)]
pub struct Said {
    pub said: Vec<String>,
    part: Option<(String, Vec<u8>)>,
}

impl Said {
    pub fn whole(&mut self, text: String) {
        if let Some((name, bytes)) = self.part.take() {
            self.said.push(format!("{name} {}", bytes.escape_ascii()));
        }
        self.said.push(text);
    }

    pub fn part(&mut self, name: String, bytes: &[u8]) {
        match &mut self.part {
            Some((known, all)) if *known == name => all.extend_from_slice(bytes),
            _ => {
                self.whole(String::new());
                self.part = Some((name, bytes.to_vec()));
            }
        }
    }
}

/// What is heard if octets come in pieces of a length; memory stays below a bound, and is given back.
pub fn hear<P: Protocols>(steps: &[Step<'_>], words: &[&[u8]], piece_len: usize, held_max: u64) -> Vec<String>
where
    Said: Receiver<P>,
{
    let end = |last, port| (IpAddr::from([10, 0, 0, last]), port);
    let (key, _) = FlowKey::new(IpProtocol::TCP, end(1, 40_000), end(2, 80));
    let (mut driver, mut session, mut ear) = (Driver::<P>::default(), Session::default(), Said::default());
    let mut offsets = [0; 2];
    let whose = Whose::new(&key, Side::A, Timestamp::from_nanos(0));
    let side = |of_server| if of_server { Side::B } else { Side::A };
    for step in steps {
        let (side, octets) = match *step {
            Step::Octets { of_server, octets } => (side(of_server), octets.to_vec()),
            Step::Words { of_server, place, times } => {
                let word = words[usize::from(place) % words.len()];
                (side(of_server), word.repeat(usize::from(times.saturating_sub(200)) + 1))
            }
            Step::Gap { of_server, len } => {
                let (side, len) = (side(of_server), u64::from(len) + 1);
                let gap = Gap::new(offsets[side.index()], len, GapReason::Deadline);
                offsets[side.index()] += len;
                let _ = driver.gap(&mut session, &whose, side, &gap, &mut ear);
                continue;
            }
            Step::Fin { of_server } => {
                driver.fin(&mut session, &whose, side(of_server), &mut ear);
                continue;
            }
        };
        for piece in octets.chunks(piece_len) {
            let chunk = Chunk::new(offsets[side.index()], piece);
            offsets[side.index()] += piece.len() as u64;
            let _ = driver.chunk(&mut session, &whose, side, &chunk, &mut ear);
            let held = driver.stats().held_bytes;
            assert!(held <= held_max, "{held} octets");
        }
    }
    driver.finish(&mut session, &whose, EndKind::Flow, &mut ear);
    assert_eq!(driver.stats().held_bytes, 0);
    ear.whole(String::new());
    ear.said.retain(|said| !said.is_empty());
    ear.said
}
