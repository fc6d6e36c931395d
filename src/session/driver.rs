//! Leads each flow's octets to the parser that its protocol has.

use std::ops::ControlFlow;

use super::datagrams::DatagramProbing;
use super::parser::{AfterGap, Datagram, EndKind, Fault};
use super::parsing::{Lane, Outcome, Parsing};
use super::probing::{Found, StreamProbing, datagram_by_port, stream_by_port};
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::session::{About, Receiver, Session, SessionEvent, State, Whose};
use super::stats::{DriverConfig, DriverStats};
use crate::base::{Account, Allowance, Evidence, IpProtocol, Side};
use crate::reassembler::{Chunk, Gap};

/// Handovers that one connection may make: CONNECT, then an upgrade inside, then STARTTLS are three.
pub const HANDOVER_COUNT_MAX: u8 = 4;

/// Leads the octets of many flows to parsers. Each flow's [`Session`] lies with the caller; what parsers leave of the octets, and
/// the account of it, is here.
///
/// A driver reads no clock and allocates only for sessions: one allocation where a protocol is recognised that has a parser,
/// and what is kept of incomplete messages.
#[derive(Debug)]
pub struct Driver<P: Protocols> {
    pub(super) allowance: Allowance,
    side_max: usize,
    is_naming_only: bool,
    pub(super) stats: DriverStats,
    set: std::marker::PhantomData<fn() -> P>,
}

impl<P: Protocols> Default for Driver<P> {
    fn default() -> Self {
        Self::new(&DriverConfig::default())
    }
}

impl<P: Protocols> Driver<P> {
    /// A driver that nothing went through yet. Its limits are those of `config`.
    #[must_use]
    pub fn new(config: &DriverConfig) -> Self {
        let limits = &config.limits;
        Self {
            allowance: Allowance::new(config.budget.clone(), Account::Sessions, limits.session_bytes_max),
            side_max: limits.session_side_bytes_max as usize,
            is_naming_only: config.is_naming_only,
            stats: DriverStats::default(),
            set: std::marker::PhantomData,
        }
    }

    /// What went through so far.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        DriverStats {
            held_bytes: self.allowance.held_bytes(),
            peak_bytes: self.allowance.peak_bytes(),
            ..self.stats
        }
    }

    /// Octets that `side` sent, next in order. [`ControlFlow::Break`]: no more of this direction are wanted.
    #[inline]
    pub fn chunk(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        side: Side,
        chunk: &Chunk<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let (offset, bytes) = (chunk.offset, chunk.bytes);
        match &session.state {
            State::Parsing(_) => {
                let from = session.role(side);
                self.offer(session, whose, (from, offset, bytes), receiver)
            }
            State::Off => ControlFlow::Break(()),
            State::New => {
                session.client = whose.initiator;
                self.first_chunk(session, whose, (session.role(side), offset, bytes), receiver)
            }
            State::Stream(_) => {
                let from = session.role(side);
                self.next_chunk(session, whose, (from, offset, bytes), receiver)
            }
            State::Resuming(_) => {
                let from = session.role(side);
                self.resume_chunk(session, whose, (from, offset, bytes), receiver)
            }
            State::Datagrams(_) => ControlFlow::Break(()),
        }
    }

    /// Octets that `side` sent will not come. [`ControlFlow::Break`]: no more of this direction are wanted.
    pub fn gap(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        side: Side,
        gap: &Gap,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        if is_done(session, side) {
            return ControlFlow::Break(());
        }
        match &mut session.state {
            // What follows is looked at as if it began there.
            State::New => return ControlFlow::Continue(()),
            State::Off | State::Datagrams(_) => return ControlFlow::Break(()),
            State::Stream(probing) => {
                // What was heard cannot be joined to what comes: now or never.
                if probing.heard.iter().any(|heard| !heard.bytes.is_empty()) {
                    self.decide_by_port(session, whose, receiver);
                }
            }
            State::Parsing(_) | State::Resuming(_) => {}
        }
        let from = session.role(side);
        match &mut session.state {
            State::Parsing(parsing) => {
                let after = parsing.gap(gap, (from, whose.timestamp), &mut self.allowance, receiver);
                self.stats.count_suppressed(parsing);
                if after == AfterGap::Stop {
                    self.stop(session, whose, (from, gap.offset, Fault::GAP), receiver);
                }
            }
            State::Resuming(resuming) => resuming.gap(from),
            _ => {}
        }
        off(session)
    }

    /// A datagram of a flow, `len` octets long on the wire.
    #[inline]
    pub fn datagram(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        side: Side,
        (bytes, len): (&[u8], usize),
        receiver: &mut impl Receiver<P>,
    ) {
        if bytes.is_empty() {
            return;
        }
        match &session.state {
            State::Parsing(parsing) if parsing.rival.is_none() => {}
            State::Parsing(_) => self.ask_rival(session, whose, side, (bytes, len), receiver),
            State::Off | State::Stream(_) | State::Resuming(_) => return,
            State::New => {
                session.client = whose.initiator;
                self.probe_datagram(session, whose, side, (bytes, len), receiver);
            }
            State::Datagrams(_) => self.probe_datagram(session, whose, side, (bytes, len), receiver),
        }
        let from = session.role(side);
        if let State::Parsing(parsing) = &mut session.state {
            let datagram = Datagram { bytes, len, from, timestamp: whose.timestamp };
            let outcome = parsing.datagram(&datagram, &mut self.allowance, receiver);
            self.stats.count_suppressed(parsing);
            match outcome {
                Outcome::More | Outcome::Handover(_) => {}
                Outcome::Done => self.close(session),
                Outcome::Fault(fault) => self.stop(session, whose, (from, 0, fault), receiver),
            }
        }
    }

    /// A direction ended with its FIN.
    pub fn fin(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        side: Side,
        receiver: &mut impl Receiver<P>,
    ) {
        if matches!(session.state, State::Stream(_)) {
            self.decide_by_port(session, whose, receiver);
        }
        let from = session.role(side);
        if let State::Parsing(parsing) = &mut session.state
            && parsing.end((from, EndKind::Fin, whose.timestamp), receiver)
        {
            self.close(session);
        }
    }

    /// The flow ended: tells the parser, names the protocol by its port if no octets told, and frees what is held.
    pub fn finish(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        kind: EndKind,
        receiver: &mut impl Receiver<P>,
    ) {
        match &session.state {
            State::New => {
                let (ports, refuted) = (whose.ports(whose.initiator), 0);
                let found = match whose.key.protocol() {
                    IpProtocol::TCP => stream_by_port::<P>(refuted, ports),
                    IpProtocol::UDP => datagram_by_port::<P>(refuted, ports),
                    _ => None,
                };
                self.name(session, found, receiver);
            }
            State::Stream(_) => self.decide_by_port(session, whose, receiver),
            State::Datagrams(_) if session.application.is_some() => {}
            State::Datagrams(probing) => {
                let found = probing.decide::<P>(whose.ports(session.client));
                self.name(session, found, receiver);
            }
            State::Parsing(_) | State::Resuming(_) | State::Off => {}
        }
        self.end_resuming(session, whose, receiver);
        if let State::Parsing(parsing) = &mut session.state {
            parsing.end((Role::Client, kind, whose.timestamp), receiver);
            parsing.end((Role::Server, kind, whose.timestamp), receiver);
        }
        self.close(session);
    }

    /// Frees what a session holds; nothing more is wanted of its flow.
    pub fn close(&mut self, session: &mut Session<P>) {
        match std::mem::replace(&mut session.state, State::Off) {
            State::Parsing(mut parsing) => {
                self.stats.count_suppressed(&mut parsing);
                self.allowance.give(parsing.charged);
            }
            State::Stream(probing) => self.allowance.give(probing.allocated_len() as u64),
            State::Resuming(resuming) => self.allowance.give(resuming.allocated_len() as u64),
            State::Datagrams(_) => self.allowance.give(size_of::<DatagramProbing>() as u64),
            State::New | State::Off => {}
        }
    }

    /// Sets the session to an entry of the table. Whether a parser wants the octets.
    pub(super) fn start(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        found: Found,
        receiver: &mut impl Receiver<P>,
    ) -> bool {
        session.state = State::Off;
        let Some(entry) = P::TABLE.get(found.entry) else { return false };
        if found.is_reversed {
            session.client = session.client.other();
        }
        self.recognised(session, entry.protocol, found.evidence, receiver);
        let Some(start) = entry.start.filter(|_| !self.is_naming_only) else { return false };
        let len = size_of::<Parsing<P>>() as u64;
        if self.allowance.take(len).is_err() {
            let about = About {
                protocol: entry.protocol,
                from: Role::Client,
                side: session.client,
                timestamp: whose.timestamp,
            };
            self.stopped(about, (0, Fault::NO_MEMORY), receiver);
            return false;
        }
        let mut parsing = Parsing::new(start(), entry.protocol, session.client, whose.timestamp);
        parsing.charged = len;
        session.state = State::Parsing(Box::new(parsing));
        true
    }

    /// Octets for a parser.
    #[inline]
    pub(super) fn offer(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        (from, offset, bytes): (Role, u64, &[u8]),
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let State::Parsing(parsing) = &mut session.state else { return off(session) };
        let memory = (&mut self.allowance, self.side_max);
        let outcome = parsing.offer((from, offset, whose.timestamp), bytes, memory, receiver);
        self.stats.count_suppressed(parsing);
        match outcome {
            Outcome::More => ControlFlow::Continue(()),
            outcome => self.after_offer(session, whose, (from, offset), outcome, receiver),
        }
    }

    #[cold]
    fn after_offer(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        (from, offset): (Role, u64),
        outcome: Outcome,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let State::Parsing(parsing) = &mut session.state else { return off(session) };
        match outcome {
            Outcome::More => ControlFlow::Continue(()),
            Outcome::Done => {
                if parsing.lanes.iter().all(|lane| lane.is_done || lane.is_ended) {
                    self.close(session);
                }
                ControlFlow::Break(())
            }
            Outcome::Fault(fault) => {
                self.stop(session, whose, (from, offset, fault), receiver);
                ControlFlow::Break(())
            }
            Outcome::Handover(next) => {
                let side = side_of(from, session.client);
                self.hand_over(session, whose, from, next, receiver);
                if is_done(session, side) { ControlFlow::Break(()) } else { off(session) }
            }
        }
    }

    /// Drops the parser, and leads what it left of both directions to what comes next.
    fn hand_over(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        from: Role,
        next: Option<&'static Protocol>,
        receiver: &mut impl Receiver<P>,
    ) {
        let State::Parsing(parsing) = &mut session.state else { return };
        let handover_count = parsing.handover_count + 1;
        if handover_count > HANDOVER_COUNT_MAX {
            let offset = from.of(&parsing.lanes).offset;
            return self.stop(session, whose, (from, offset, Fault::TOO_MANY_HANDOVERS), receiver);
        }
        let lanes = std::mem::take(&mut parsing.lanes);
        self.stats.handover_count += 1;
        self.close(session);
        let entry = next.and_then(|next| P::TABLE.iter().position(|entry| entry.protocol == next));
        let is_on = match (next, entry) {
            (Some(_), Some(entry)) => {
                let found = Found { entry, evidence: Evidence::Content, is_reversed: false, is_early: false };
                self.start(session, whose, found, receiver)
            }
            (Some(next), None) => {
                self.recognised(session, next, Evidence::Content, receiver);
                false
            }
            (None, _) => {
                let is_granted = self.take_for_window(size_of::<StreamProbing>());
                if is_granted {
                    session.state = State::Stream(Box::new(StreamProbing::new()));
                }
                is_granted
            }
        };
        if !is_on {
            return;
        }
        match &mut session.state {
            State::Parsing(parsing) => {
                parsing.handover_count = handover_count;
                for (new, old) in parsing.lanes.iter_mut().zip(&lanes) {
                    *new = Lane::at(old.offset, old.is_ended);
                }
            }
            State::Stream(probing) => probing.handover_count = handover_count,
            _ => {}
        }
        for (role, lane) in [Role::Client, Role::Server].into_iter().zip(&lanes) {
            if lane.rest().is_empty() {
                continue;
            }
            let octets = (role, lane.offset, lane.rest());
            self.go_on(session, &whose.at(lane.captured), octets, receiver);
        }
    }

    /// Octets that were kept, for whatever is there now: a parser may hand over at those of the other direction.
    pub(super) fn go_on(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        octets: (Role, u64, &[u8]),
        receiver: &mut impl Receiver<P>,
    ) {
        let _ = match session.state {
            State::Stream(_) => self.next_chunk(session, whose, octets, receiver),
            State::Resuming(_) => self.resume_chunk(session, whose, octets, receiver),
            _ => self.offer(session, whose, octets, receiver),
        };
    }

    pub(super) fn recognised(
        &mut self,
        session: &mut Session<P>,
        protocol: &'static Protocol,
        evidence: Evidence,
        receiver: &mut impl Receiver<P>,
    ) {
        if session.application.is_none() {
            self.stats.recognised_count += 1;
            session.application = Some((protocol, evidence));
        }
        receiver.event(&SessionEvent::Recognised { protocol, evidence });
    }

    /// Drops a parser that gave up.
    fn stop(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        (from, offset, fault): (Role, u64, Fault),
        receiver: &mut impl Receiver<P>,
    ) {
        let State::Parsing(parsing) = &session.state else { return };
        let about = parsing.about(from, whose.timestamp);
        self.close(session);
        self.stopped(about, (offset, fault), receiver);
    }

    pub(super) fn stopped(
        &mut self,
        about: About,
        (offset, fault): (u64, Fault),
        receiver: &mut impl Receiver<P>,
    ) {
        self.stats.stopped_count += 1;
        receiver.event(&SessionEvent::Stopped { about, fault, offset });
    }
}

/// Whether the parser wants no more of a side's direction.
pub(super) fn is_done<P: Protocols>(session: &Session<P>, side: Side) -> bool {
    let State::Parsing(parsing) = &session.state else { return false };
    session.role(side).of(&parsing.lanes).is_done
}

pub(super) fn side_of(role: Role, client: Side) -> Side {
    if role == Role::Client { client } else { client.other() }
}

pub(super) fn off<P: Protocols>(session: &Session<P>) -> ControlFlow<()> {
    if session.is_off() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
