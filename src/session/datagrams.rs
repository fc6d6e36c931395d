//! Flows of datagrams: the window in which the probes are undecided, and the second chance of the protocol that has the port.

use super::driver::Driver;
use super::parsing::Rival;
use super::probing::{Answer, Entries, Found, ask, by_port};
use super::protocol::{DatagramOpening, Role, Verdict};
use super::protocols::Protocols;
use super::session::{Receiver, Session, State, Whose};
use crate::base::{Evidence, Side};

/// Datagrams of a flow after which the port decides.
pub const PROBE_DATAGRAM_COUNT_MAX: u8 = 8;

/// Datagrams of a flow on the port of a protocol with a parser among which that protocol is looked for, although the first ones
/// were of something else.
pub const RESUME_DATAGRAM_COUNT_MAX: u8 = 64;

/// Octets of a datagram that are remembered for the probes of those that follow.
const PREFIX_LEN: usize = 64;

/// A flow of datagrams that is undecided, or whose port may yet be right.
#[derive(Debug, Default)]
pub(super) struct DatagramProbing {
    refuted: Entries,
    /// Entries that a datagram refuted and that have the port: their probes see the next datagrams too, because one damaged
    /// datagram is not the flow. The port alone does not name them.
    doubted: Entries,
    previous: [Prefix; 2],
    count: u8,
    /// The entry with a parser that has one of the ports.
    owner: Option<usize>,
    /// An entry without a parser that matched on the port of the owner. It names the flow unless the owner is found.
    held: Option<Found>,
}

#[derive(Clone, Copy, Debug)]
struct Prefix {
    len: u8,
    bytes: [u8; PREFIX_LEN],
}

impl Default for Prefix {
    fn default() -> Self {
        Self { len: 0, bytes: [0; PREFIX_LEN] }
    }
}

impl Prefix {
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn set(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(PREFIX_LEN);
        if let (Some(to), Some(from)) = (self.bytes.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
            self.len = len as u8;
        }
    }
}

impl DatagramProbing {
    /// Asks about one more datagram. `opening` needs no datagrams before it.
    fn ask<P: Protocols>(&mut self, opening: &DatagramOpening<'_>) -> Answer {
        let (from, bytes) = (opening.from, opening.bytes);
        let opening = DatagramOpening {
            previous: from.of(&self.previous).as_slice(),
            answered: from.other().of(&self.previous).as_slice(),
            ..*opening
        };
        // Behind the window of all, only the owner of the port is still looked for.
        let is_late = self.count >= PROBE_DATAGRAM_COUNT_MAX;
        let mut refuted = if is_late { !self.owner.map_or(0, bit) } else { self.refuted };
        let before = refuted;
        let mut answer = ask_datagram::<P>(&mut refuted, &opening);
        if self.count == 0 && !is_of_port::<P>(&answer, &opening) {
            self.owner = owner::<P>(&opening);
        }
        if !matches!(answer, Answer::Found(_)) {
            let again = of_port::<P>(refuted & !before, &opening);
            self.doubted |= again;
            refuted &= !again;
            if self.doubted & !refuted != 0 {
                answer = Answer::Undecided;
            }
        }
        if !is_late {
            self.refuted = refuted;
        }
        self.count += 1;
        from.of_mut(&mut self.previous).set(bytes);
        match answer {
            Answer::Undecided if self.is_over() => Answer::Unknown,
            answer => answer,
        }
    }

    /// Whether so many datagrams were asked about that the port decides. If something else came on the port of the owner, there may
    /// be more of them.
    fn is_over(&self) -> bool {
        let is_doubted = self.owner.is_some_and(|owner| self.doubted & bit(owner) != 0);
        self.count >= if is_doubted { RESUME_DATAGRAM_COUNT_MAX } else { PROBE_DATAGRAM_COUNT_MAX }
    }

    /// Asks no more about an entry that matched and has no parser, and waits for others. The entry, if it names the flow at once.
    fn set_aside(&mut self, found: Found) -> Option<Found> {
        self.refuted |= bit(found.entry);
        self.doubted &= !bit(found.entry);
        let Some(owner) = self.owner else { return Some(found) };
        // A datagram of something else has refuted it, or comes before its turn.
        self.refuted &= !bit(owner);
        self.doubted |= bit(owner);
        self.held = self.held.or(Some(found));
        None
    }

    /// What names a flow that is still undecided: what matched, or else the port.
    pub(super) fn decide<P: Protocols>(&self, ports: (u16, u16)) -> Option<Found> {
        let refuted = self.refuted | self.doubted;
        self.held.or_else(|| by_port::<P>(refuted, ports, |entry| entry.protocol.datagram_ports()))
    }
}

const fn bit(entry: usize) -> Entries {
    1 << entry
}

fn ask_datagram<P: Protocols>(refuted: &mut Entries, opening: &DatagramOpening<'_>) -> Answer {
    ask::<P>(refuted, |entry| {
        entry.protocol.datagrams.as_ref().map(|datagrams| datagrams.probe.map(|probe| probe(opening)))
    })
}

/// Those of some entries that have a probe and one of the ports of a datagram.
fn of_port<P: Protocols>(mut entries: Entries, opening: &DatagramOpening<'_>) -> Entries {
    let mut found = 0;
    while entries != 0 {
        let place = entries.trailing_zeros();
        let recognition = P::TABLE.get(place as usize).and_then(|entry| entry.protocol.datagrams.as_ref());
        if recognition.is_some_and(|datagrams| {
            datagrams.probe.is_some() && datagrams.ports.iter().any(|port| opening.has_port(*port))
        }) {
            found |= 1 << place;
        }
        entries &= entries - 1;
    }
    found
}

/// Whether what was found has a parser and one of the ports: the common case, in which nobody else is looked for.
fn is_of_port<P: Protocols>(answer: &Answer, opening: &DatagramOpening<'_>) -> bool {
    let Answer::Found(found) = answer else { return false };
    let is_owner = |ports: &[u16]| ports.iter().any(|port| opening.has_port(*port));
    !is_only_named::<P>(*found)
        && P::TABLE.get(found.entry).is_some_and(|entry| is_owner(entry.protocol.datagram_ports()))
}

/// The entry with a parser and a probe that has the receiver's port, or else the sender's.
fn owner<P: Protocols>(opening: &DatagramOpening<'_>) -> Option<usize> {
    [opening.destination_port, opening.source_port].into_iter().find_map(|port| {
        P::TABLE.iter().position(|entry| {
            let has_port = |datagrams: &super::protocol::Recognition<_>| {
                datagrams.probe.is_some() && datagrams.ports.contains(&port)
            };
            entry.start.is_some() && entry.protocol.datagrams.as_ref().is_some_and(has_port)
        })
    })
}

/// Whether what was found has no parser.
fn is_only_named<P: Protocols>(found: Found) -> bool {
    P::TABLE.get(found.entry).is_none_or(|entry| entry.start.is_none())
}

impl<P: Protocols> Driver<P> {
    pub(super) fn probe_datagram(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        side: Side,
        (bytes, len): (&[u8], usize),
        receiver: &mut impl Receiver<P>,
    ) {
        let opening = opening(whose, side, session.role(side), (bytes, len));
        let mut fresh = DatagramProbing::default();
        let is_fresh = matches!(session.state, State::New);
        let probing = match &mut session.state {
            State::Datagrams(probing) => &mut **probing,
            _ => &mut fresh,
        };
        let answer = probing.ask::<P>(&opening);
        let mut named = None;
        let found = match answer {
            // What is only named does not shut out what may follow it and is parsed, as DTLS follows STUN.
            Answer::Found(found)
                if is_only_named::<P>(found)
                    && !probing.is_over()
                    && (found.is_early || probing.owner.is_some()) =>
            {
                named = probing.set_aside(found);
                None
            }
            Answer::Found(found) => Some(found),
            Answer::Unknown if session.application.is_some() => None,
            Answer::Unknown => probing.decide::<P>(whose.ports(session.client)),
            Answer::Undecided => None,
        };
        let is_waiting = match answer {
            Answer::Undecided => true,
            Answer::Found(_) => found.is_none(),
            Answer::Unknown => false,
        };
        if is_waiting {
            if is_fresh && self.take_for_window(size_of::<DatagramProbing>()) {
                session.state = State::Datagrams(Box::new(fresh));
            } else if is_fresh {
                named = named.or(fresh.held);
                session.state = State::Off;
            }
            self.name(session, named, receiver);
            return;
        }
        let (owner, held, count) = (probing.owner, probing.held, probing.count);
        self.close(session);
        let Some(found) = found else { return };
        let rival = owner.filter(|owner| *owner != found.entry);
        if rival.is_some() && held.is_some_and(|held| held.entry != found.entry) {
            // Neither has the port: the first one names the flow. Roles are those of the second one.
            let held = held.map(|held| Found { is_reversed: false, ..held });
            self.name(session, held, receiver);
        }
        if self.start(session, whose, found, receiver)
            && let State::Parsing(parsing) = &mut session.state
        {
            let left = RESUME_DATAGRAM_COUNT_MAX.saturating_sub(count);
            parsing.rival = rival.filter(|_| left > 0).map(|entry| Rival { entry: entry as u8, left });
        }
    }

    /// Asks the protocol that has the port about a datagram of a flow that another one parses, and lets it take over.
    #[cold]
    pub(super) fn ask_rival(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        side: Side,
        (bytes, len): (&[u8], usize),
        receiver: &mut impl Receiver<P>,
    ) {
        let from = session.role(side);
        let State::Parsing(parsing) = &mut session.state else { return };
        let Some(Rival { entry, left }) = parsing.rival else { return };
        parsing.rival = (left > 1).then_some(Rival { entry, left: left.saturating_sub(1) });
        let entry = usize::from(entry);
        let Some(rival) = P::TABLE.get(entry) else { return };
        let is_reversed = match rival.protocol.probe_datagram(&opening(whose, side, from, (bytes, len))) {
            Verdict::Match => false,
            Verdict::MatchReversed => true,
            Verdict::No | Verdict::More => return,
        };
        for role in [Role::Client, Role::Server] {
            parsing.end((role, super::EndKind::Flow, whose.timestamp), receiver);
        }
        self.stats.handover_count += 1;
        self.close(session);
        let found = Found { entry, evidence: Evidence::Content, is_reversed, is_early: false };
        self.start(session, whose, found, receiver);
    }

    /// Names a flow without a parser.
    pub(super) fn name(
        &mut self,
        session: &mut Session<P>,
        found: Option<Found>,
        receiver: &mut impl Receiver<P>,
    ) {
        let Some((entry, found)) = found.and_then(|found| Some((P::TABLE.get(found.entry)?, found))) else {
            return;
        };
        if found.is_reversed {
            session.client = session.client.other();
        }
        self.recognised(session, entry.protocol, found.evidence, receiver);
    }
}

/// A datagram as the probes see it, without those before it.
fn opening<'a>(
    whose: &Whose<'_>,
    side: Side,
    from: Role,
    (bytes, len): (&'a [u8], usize),
) -> DatagramOpening<'a> {
    let (source_port, destination_port) = (whose.key.port(side), whose.key.port(side.other()));
    DatagramOpening {
        len,
        from,
        ip_protocol: whose.key.protocol().0,
        ..DatagramOpening::first(bytes, source_port, destination_port)
    }
}
