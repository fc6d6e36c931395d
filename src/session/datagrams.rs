//! Recognition in flows of datagrams: the window in which the probes are undecided, and the later search for the
//! protocol to which the port belongs.

use super::driver::Driver;
use super::index::{Entries, Index, first, only};
use super::parsing::PortOwner;
use super::probing::{Answer, Found, datagram_by_port, run_datagram_probes};
use super::protocol::{DatagramOpening, Role, Verdict};
use super::protocols::Protocols;
use super::session::{Cause, FlowContext, Receiver, Session, State};
use crate::base::{Evidence, Side};

/// Number of datagrams of a flow after which the port identifies the protocol if no probe matched.
pub const PROBE_DATAGRAM_COUNT_MAX: u8 = 8;

/// Number of datagrams of a flow within which the protocol to which the port belongs is searched for, although the
/// first datagrams were of another protocol. Applies to ports of protocols with a parser.
pub const RESUME_DATAGRAM_COUNT_MAX: u8 = 64;

/// Number of octets of a datagram that are kept for the probes of later datagrams.
const PREFIX_LEN: usize = 64;

/// A flow of datagrams whose protocol is undecided, or may still turn out to be the one to which the port belongs.
#[derive(Debug, Default)]
pub(super) struct DatagramProbing {
    refuted: Entries,
    /// Table entries to which the port belongs, but which a datagram refuted. Their probes are called for the next
    /// datagrams too, because one damaged datagram does not exclude the protocol. The port alone does not identify
    /// these protocols.
    doubted: Entries,
    previous: [Prefix; 2],
    count: u8,
    /// Index of the table entry that has a parser and one of the flow's ports.
    owner: Option<usize>,
    /// A table entry without a parser that matched a datagram on the port of `owner`. It identifies the flow unless a
    /// later datagram matches `owner`.
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
    /// Passes one more datagram of the flow to the probes. `opening` need not contain previous datagrams.
    fn run_probes<P: Protocols>(&mut self, opening: &DatagramOpening<'_>) -> Answer {
        let (from, bytes) = (opening.from, opening.bytes);
        let opening = DatagramOpening {
            previous: from.of(&self.previous).as_slice(),
            answered: from.other().of(&self.previous).as_slice(),
            ..*opening
        };
        // After the general window, only the owner of the port is still searched for.
        let is_late = self.count >= PROBE_DATAGRAM_COUNT_MAX;
        let mut refuted = if is_late { !self.owner.map_or(0, only) } else { self.refuted };
        let before = refuted;
        let mut answer = run_datagram_probes::<P>(&mut refuted, &opening);
        if self.count == 0 && !is_of_port::<P>(&answer, &opening) {
            self.owner = owner::<P>(&opening);
        }
        if !matches!(answer, Answer::Found(_)) {
            if refuted != before {
                let again = refuted & !before & of_ports::<P>(&opening);
                self.doubted |= again;
                refuted &= !again;
            }
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

    /// Returns whether enough datagrams were probed, so that the port identifies the protocol. If datagrams of another
    /// protocol arrived on the port of `owner`, the window is longer.
    fn is_over(&self) -> bool {
        let is_doubted = self.owner.is_some_and(|owner| self.doubted & only(owner) != 0);
        self.count >= if is_doubted { RESUME_DATAGRAM_COUNT_MAX } else { PROBE_DATAGRAM_COUNT_MAX }
    }

    /// Excludes a table entry that matched but has no parser from further probing, and waits for a match of `owner`.
    /// Returns the entry if there is no `owner`, so that the entry identifies the flow at once.
    fn set_aside(&mut self, found: Found) -> Option<Found> {
        self.refuted |= only(found.entry);
        self.doubted &= !only(found.entry);
        let Some(owner) = self.owner else { return Some(found) };
        // A datagram of another protocol has refuted the owner, or arrived before its first message.
        self.refuted &= !only(owner);
        self.doubted |= only(owner);
        self.held = self.held.or(Some(found));
        None
    }

    /// Returns the table entry that identifies a flow that is still undecided: the one that matched, or else the one to
    /// which the port belongs.
    pub(super) fn decide<P: Protocols>(&self, ports: (u16, u16)) -> Option<Found> {
        let refuted = self.refuted | self.doubted;
        self.held.or_else(|| datagram_by_port::<P>(refuted, ports))
    }
}

/// Returns the table entries to which one of the ports of a datagram belongs.
fn of_ports<P: Protocols>(opening: &DatagramOpening<'_>) -> Entries {
    let datagrams = &Index::of::<P>().datagrams;
    datagrams.of_port(opening.source_port) | datagrams.of_port(opening.destination_port)
}

/// Returns whether the table entry that was found has a parser and one of the ports of the datagram. In this common
/// case, no other entry is probed.
fn is_of_port<P: Protocols>(answer: &Answer, opening: &DatagramOpening<'_>) -> bool {
    let Answer::Found(found) = answer else { return false };
    let is_owner = |ports: &[u16]| ports.iter().any(|port| opening.has_port(*port));
    !is_only_named::<P>(*found)
        && P::TABLE.get(found.entry).is_some_and(|entry| is_owner(entry.protocol.datagram_ports()))
}

/// Returns the index of the table entry with a parser and a probe that has the receiver's port, or else the sender's
/// port.
fn owner<P: Protocols>(opening: &DatagramOpening<'_>) -> Option<usize> {
    let Index { datagrams, parsed, .. } = Index::of::<P>();
    let owners = |port| first(datagrams.of_port(port) & parsed & datagrams.probed);
    owners(opening.destination_port).or_else(|| owners(opening.source_port))
}

/// Returns whether the table entry that was found has no parser, so that the flow is only identified.
fn is_only_named<P: Protocols>(found: Found) -> bool {
    P::TABLE.get(found.entry).is_none_or(|entry| entry.start.is_none())
}

impl<P: Protocols> Driver<P> {
    pub(super) fn probe_datagram(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        (bytes, len): (&[u8], usize),
        receiver: &mut impl Receiver<P>,
    ) {
        let opening = opening(context, side, session.role(side), (bytes, len));
        let mut fresh = DatagramProbing::default();
        let is_fresh = matches!(session.state(), State::New);
        let (is_named, ports) = (session.protocol.is_some(), context.ports(session.client));
        let probing = session.datagrams_mut().unwrap_or(&mut fresh);
        let answer = probing.run_probes::<P>(&opening);
        let mut named = None;
        let found = match answer {
            // A protocol without a parser does not exclude one with a parser that may follow it, as DTLS follows STUN.
            Answer::Found(found)
                if is_only_named::<P>(found)
                    && !probing.is_over()
                    && (found.is_early || probing.owner.is_some()) =>
            {
                named = probing.set_aside(found);
                None
            }
            Answer::Found(found) => Some(found),
            Answer::Unknown if is_named => None,
            Answer::Unknown => probing.decide::<P>(ports),
            Answer::Undecided => None,
        };
        let is_waiting = match answer {
            Answer::Undecided => true,
            Answer::Found(_) => found.is_none(),
            Answer::Unknown => false,
        };
        if is_waiting {
            if is_fresh && self.take_for_window(size_of::<DatagramProbing>()) {
                session.transition(State::Datagrams(Box::new(fresh)), Cause::Undecided);
            } else if is_fresh {
                named = named.or(fresh.held);
                self.turn_off(session, Cause::Refused);
            }
            self.name(session, named, receiver);
            return;
        }
        let (owner, held, count) = (probing.owner, probing.held, probing.count);
        self.release(session);
        let Some(found) = found else {
            self.turn_off(session, Cause::Unparsed);
            return;
        };
        let port_owner = owner.filter(|owner| *owner != found.entry);
        if port_owner.is_some() && held.is_some_and(|held| held.entry != found.entry) {
            // Neither has the port: the first one identifies the flow. Roles are those of the second one.
            let held = held.map(|held| Found { is_reversed: false, ..held });
            self.name(session, held, receiver);
        }
        self.start(session, context, found, receiver);
        if let Some(parsing) = session.parsing_mut() {
            let left = RESUME_DATAGRAM_COUNT_MAX.saturating_sub(count);
            parsing.port_owner =
                port_owner.filter(|_| left > 0).map(|entry| PortOwner { entry: entry as u8, left });
        }
    }

    /// Calls the probe of the protocol to which the port belongs, for a datagram of a flow that another protocol's
    /// parser processes. If the probe matches, its protocol replaces the other one.
    #[cold]
    pub(super) fn probe_port_owner(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        (bytes, len): (&[u8], usize),
        receiver: &mut impl Receiver<P>,
    ) {
        let from = session.role(side);
        let Some(parsing) = session.parsing_mut() else { return };
        let Some(PortOwner { entry, left }) = parsing.port_owner else { return };
        parsing.port_owner = (left > 1).then_some(PortOwner { entry, left: left.saturating_sub(1) });
        let entry = usize::from(entry);
        let Some(port_owner) = P::TABLE.get(entry) else { return };
        let is_reversed =
            match port_owner.protocol.probe_datagram(&opening(context, side, from, (bytes, len))) {
                Verdict::Match => false,
                Verdict::MatchReversed => true,
                Verdict::No | Verdict::More => return,
            };
        for role in [Role::Client, Role::Server] {
            parsing.end((role, super::EndKind::Flow, context.timestamp), receiver);
        }
        self.stats.handover_count += 1;
        self.release(session);
        let found = Found { entry, evidence: Evidence::Content, is_reversed, is_early: false };
        self.start(session, context, found, receiver);
    }

    /// Identifies the protocol of a flow of datagrams without starting a parser.
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
        self.recognized(session, entry.protocol, found.evidence, receiver);
    }
}

/// Returns a datagram as input for the probes, without previous datagrams.
fn opening<'a>(
    context: &FlowContext<'_>,
    side: Side,
    from: Role,
    (bytes, len): (&'a [u8], usize),
) -> DatagramOpening<'a> {
    let (source_port, destination_port) = (context.key.raw_port(side), context.key.raw_port(side.other()));
    DatagramOpening {
        len,
        from,
        ip_protocol: context.key.protocol().0,
        ..DatagramOpening::first(bytes, source_port, destination_port)
    }
}
