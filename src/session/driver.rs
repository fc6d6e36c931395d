//! The driver of sessions, which passes the octets of each flow to the parser of its protocol.

use std::ops::ControlFlow;

use super::charged::Charged;
use super::context::FlowContext;
use super::octets::{Octets, Payload};
use super::parser::{AfterGap, Datagram, EndKind, Fault};
use super::parsing::{Lane, Outcome, Parsing};
use super::probing::{Found, StreamProbing, datagram_by_port, stream_by_port};
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::receiver::{MessageMeta, Receiver, SessionEvent};
use super::session::{Session, State};
use super::stats::{DriverConfig, DriverStats};
use super::transition::Cause;
use crate::base::{Account, Allowance, Evidence, IpProtocol, Resources, Side};
use crate::reassembler::{Chunk, Gap};

/// Maximum number of handovers of a connection from one protocol to the next: CONNECT, an upgrade inside the CONNECT
/// tunnel, and STARTTLS are three.
pub const HANDOVER_COUNT_MAX: u8 = 4;

/// Passes the octets of many flows to parsers. The caller keeps the [`Session`] of each flow; the driver accounts for
/// the memory of all of them.
///
/// A driver reads no clock and allocates only for sessions: once when a protocol with a parser is recognized, and for
/// octets of incomplete messages.
#[derive(Debug)]
pub struct Driver<P: Protocols> {
    pub(super) allowance: Allowance,
    side_max: usize,
    is_naming_only: bool,
    pub(super) charged: Charged,
    /// True if a session was charged for memory since the last call of `take_charged`.
    pub(super) is_charged: bool,
    pub(super) stats: DriverStats,
    set: std::marker::PhantomData<fn() -> P>,
}

impl<P: Protocols> Default for Driver<P> {
    fn default() -> Self {
        Self::new(DriverConfig::default(), &Resources::default())
    }
}

impl<P: Protocols> Driver<P> {
    /// Creates a driver without sessions.
    #[must_use]
    pub fn new(config: DriverConfig, resources: &Resources) -> Self {
        let limits = &resources.limits;
        Self {
            allowance: Allowance::new(resources.budget.clone(), Account::Sessions, limits.session_bytes_max),
            side_max: limits.session_side_bytes_max as usize,
            is_naming_only: config.is_naming_only,
            charged: Charged::default(),
            is_charged: false,
            stats: DriverStats::default(),
            set: std::marker::PhantomData,
        }
    }

    /// Returns the counters of this driver.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        DriverStats {
            held_bytes: self.allowance.held_bytes(),
            peak_bytes: self.allowance.peak_bytes(),
            ..self.stats
        }
    }

    #[inline]
    fn deliver_chunk(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        chunk: &Chunk<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let (offset, bytes) = (chunk.offset, chunk.bytes);
        match session.state() {
            State::Parsing(_) => {
                let from = session.role(side);
                self.pass_to_parser(session, context, Octets { from, offset, bytes }, receiver)
            }
            State::Off => ControlFlow::Break(()),
            State::New => {
                session.client = context.initiator;
                self.first_chunk(
                    session,
                    context,
                    Octets { from: session.role(side), offset, bytes },
                    receiver,
                )
            }
            State::Stream(_) => {
                let from = session.role(side);
                self.next_chunk(session, context, Octets { from, offset, bytes }, receiver)
            }
            State::Resuming(_) => {
                let from = session.role(side);
                self.resume_chunk(session, context, Octets { from, offset, bytes }, receiver)
            }
            State::Datagrams(_) => ControlFlow::Break(()),
        }
    }

    fn deliver_gap(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        gap: &Gap,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        if is_done(session, side) {
            return ControlFlow::Break(());
        }
        match session.state() {
            // The octets after the gap are probed as if the stream began there.
            State::New => return ControlFlow::Continue(()),
            State::Off | State::Datagrams(_) => return ControlFlow::Break(()),
            State::Stream(probing) => {
                // The buffered octets cannot be joined to those after the gap, so that the protocol is decided now.
                if probing.probed.iter().any(|probed| !probed.bytes.is_empty()) {
                    self.decide_by_port(session, context, receiver);
                }
            }
            State::Parsing(_) | State::Resuming(_) => {}
        }
        let from = session.role(side);
        if let Some(parsing) = session.parsing_mut() {
            let after = parsing.gap(gap, (from, context.timestamp), &mut self.allowance, receiver);
            self.stats.count_suppressed(&mut parsing.quota);
            if after == AfterGap::Stop {
                self.stop(session, context, (from, gap.offset, Fault::GAP), receiver);
            }
        } else if let Some(resuming) = session.resuming_mut() {
            resuming.gap(from);
        }
        off(session)
    }

    #[inline]
    fn deliver_datagram(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        payload: Payload<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        if payload.bytes.is_empty() {
            return;
        }
        match session.state() {
            State::Parsing(parsing) if parsing.port_owner.is_none() => {}
            State::Parsing(_) => self.probe_port_owner(session, context, side, payload, receiver),
            State::Off | State::Stream(_) | State::Resuming(_) => return,
            State::New => {
                session.client = context.initiator;
                self.probe_datagram(session, context, side, payload, receiver);
            }
            State::Datagrams(_) => self.probe_datagram(session, context, side, payload, receiver),
        }
        let from = session.role(side);
        if let Some(parsing) = session.parsing_mut() {
            let Payload { bytes, len } = payload;
            let datagram = Datagram { bytes, len, from, timestamp: context.timestamp };
            let outcome = parsing.datagram(&datagram, &mut self.allowance, receiver);
            self.stats.count_suppressed(&mut parsing.quota);
            match outcome {
                Outcome::More | Outcome::Handover(_) => {}
                Outcome::Done => self.close(session),
                Outcome::Fault(fault) => self.stop(session, context, (from, 0, fault), receiver),
            }
        }
    }

    fn deliver_fin(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        receiver: &mut impl Receiver<P>,
    ) {
        if matches!(session.state(), State::Stream(_)) {
            self.decide_by_port(session, context, receiver);
        }
        let from = session.role(side);
        if let Some(parsing) = session.parsing_mut()
            && parsing.end((from, EndKind::Fin, context.timestamp), receiver)
        {
            self.close(session);
        }
    }

    fn deliver_finish(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        kind: EndKind,
        receiver: &mut impl Receiver<P>,
    ) {
        match session.state() {
            State::New => {
                let (ports, refuted) = (context.ports(context.initiator), 0);
                let found = match context.key.protocol() {
                    IpProtocol::TCP => stream_by_port::<P>(refuted, ports),
                    IpProtocol::UDP => datagram_by_port::<P>(refuted, ports),
                    _ => None,
                };
                self.name(session, found, receiver);
            }
            State::Stream(_) => self.decide_by_port(session, context, receiver),
            State::Datagrams(_) if session.protocol.is_some() => {}
            State::Datagrams(probing) => {
                let found = probing.decide::<P>(context.ports(session.client));
                self.name(session, found, receiver);
            }
            State::Parsing(_) | State::Resuming(_) | State::Off => {}
        }
        self.end_resuming(session, context, receiver);
        if let Some(parsing) = session.parsing_mut() {
            parsing.end((Role::Client, kind, context.timestamp), receiver);
            parsing.end((Role::Server, kind, context.timestamp), receiver);
        }
        self.close(session);
    }

    /// Processes the next octets in order that `side` of a flow sent. Returns [`ControlFlow::Break`] if no more octets
    /// of this direction are needed.
    #[inline]
    pub fn chunk(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        chunk: &Chunk<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let wants = self.deliver_chunk(session, context, side, chunk, receiver);
        self.settle(session, context, receiver);
        wants
    }

    /// Processes a gap in the octets that `side` of a flow sent. Returns [`ControlFlow::Break`] if no more octets of
    /// this direction are needed.
    pub fn gap(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        gap: &Gap,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let wants = self.deliver_gap(session, context, side, gap, receiver);
        self.settle(session, context, receiver);
        wants
    }

    /// Processes a datagram of a flow.
    #[inline]
    pub fn datagram(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        payload: Payload<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        self.deliver_datagram(session, context, side, payload, receiver);
        self.settle(session, context, receiver);
    }

    /// Processes a FIN, which ends one direction of a flow.
    pub fn fin(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        receiver: &mut impl Receiver<P>,
    ) {
        self.deliver_fin(session, context, side, receiver);
        self.settle(session, context, receiver);
    }

    /// Ends the flow: notifies the parser, identifies the protocol by the port if no octets identified it, and releases
    /// the memory of the session.
    pub fn finish(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        kind: EndKind,
        receiver: &mut impl Receiver<P>,
    ) {
        self.deliver_finish(session, context, kind, receiver);
        self.settle(session, context, receiver);
    }

    /// Starts the parser of an entry of the protocol table, or only identifies the flow if the entry has no parser. The
    /// caller must release the memory of the session's previous state.
    pub(super) fn start(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        found: Found,
        receiver: &mut impl Receiver<P>,
    ) -> Started<P> {
        let Some(entry) = P::TABLE.get(found.entry) else {
            return self.not_started(session, Cause::Unparsed);
        };
        if found.is_reversed {
            session.client = session.client.other();
        }
        self.recognized(session, entry.protocol, found.evidence, receiver);
        let Some(start) = entry.start.filter(|_| !self.is_naming_only) else {
            return self.not_started(session, Cause::Unparsed);
        };
        let len = size_of::<Parsing<P>>() as u64;
        if self.allowance.take(len).is_err() {
            let meta = MessageMeta {
                protocol: entry.protocol,
                from: Role::Client,
                side: session.client,
                timestamp: context.timestamp,
                received_len: 0,
            };
            self.stopped(meta, (0, Fault::NO_MEMORY), receiver);
            return self.not_started(session, Cause::Refused);
        }
        let mut parsing = Parsing::new(start(), entry.protocol, session.client, context.timestamp);
        parsing.charged = len;
        let cause = match session.parsing_mut() {
            Some(previous) => {
                parsing.received_len = previous.received_len;
                Cause::Handover
            }
            None => Cause::Recognized,
        };
        Started { previous: session.transition(State::Parsing(Box::new(parsing)), cause), has_parser: true }
    }

    /// Closes a session for which no parser was started.
    fn not_started(&mut self, session: &mut Session<P>, cause: Cause) -> Started<P> {
        Started { previous: self.turn_off(session, cause), has_parser: false }
    }

    /// Passes octets of one direction to the session's parser, and performs the next step that results.
    #[inline]
    pub(super) fn pass_to_parser(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        Octets { from, offset, bytes }: Octets<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let Some(parsing) = session.parsing_mut() else { return off(session) };
        let memory = (&mut self.allowance, self.side_max);
        let outcome = parsing.pass_to_parser((from, offset, context.timestamp), bytes, memory, receiver);
        self.stats.count_suppressed(&mut parsing.quota);
        match outcome {
            Outcome::More => ControlFlow::Continue(()),
            outcome => self.apply_outcome(session, context, (from, offset), outcome, receiver),
        }
    }

    #[cold]
    fn apply_outcome(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        (from, offset): (Role, u64),
        outcome: Outcome,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let State::Parsing(parsing) = session.state() else { return off(session) };
        match outcome {
            Outcome::More => ControlFlow::Continue(()),
            Outcome::Done => {
                if parsing.lanes.iter().all(|lane| lane.is_done || lane.is_ended) {
                    self.close(session);
                }
                ControlFlow::Break(())
            }
            Outcome::Fault(fault) => {
                self.stop(session, context, (from, offset, fault), receiver);
                ControlFlow::Break(())
            }
            Outcome::Handover(next) => {
                let side = side_of(from, session.client);
                self.change_protocol(session, context, from, next, receiver);
                if is_done(session, side) { ControlFlow::Break(()) } else { off(session) }
            }
        }
    }

    /// Drops the session's parser, and passes the buffered octets of both directions to the next protocol.
    fn change_protocol(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        from: Role,
        next: Option<&'static Protocol>,
        receiver: &mut impl Receiver<P>,
    ) {
        let Some(parsing) = session.parsing_mut() else { return };
        let handover_count = parsing.handover_count + 1;
        if handover_count > HANDOVER_COUNT_MAX {
            let offset = from.of(&parsing.lanes).offset;
            return self.stop(session, context, (from, offset, Fault::TOO_MANY_HANDOVERS), receiver);
        }
        let lanes = std::mem::take(&mut parsing.lanes);
        self.stats.handover_count += 1;
        self.release(session);
        let entry = next.and_then(|next| P::TABLE.iter().position(|entry| entry.protocol == next));
        match (next, entry) {
            (Some(_), Some(entry)) => {
                let found = Found { entry, evidence: Evidence::Content, is_reversed: false, is_early: false };
                self.start(session, context, found, receiver);
            }
            (Some(next), None) => {
                self.recognized(session, next, Evidence::Content, receiver);
                self.turn_off(session, Cause::Unparsed);
            }
            (None, _) if self.take_for_window(size_of::<StreamProbing>()) => {
                session.transition(State::Stream(Box::new(StreamProbing::new())), Cause::Handover);
            }
            (None, _) => {
                self.turn_off(session, Cause::Refused);
            }
        }
        if let Some(parsing) = session.parsing_mut() {
            parsing.handover_count = handover_count;
            for (new, old) in parsing.lanes.iter_mut().zip(&lanes) {
                *new = Lane::at(old.offset, old.is_ended);
            }
        } else if let Some(probing) = session.stream_mut() {
            probing.handover_count = handover_count;
        } else {
            return;
        }
        for (role, lane) in [Role::Client, Role::Server].into_iter().zip(&lanes) {
            if lane.rest().is_empty() {
                continue;
            }
            let octets = Octets { from: role, offset: lane.offset, bytes: lane.rest() };
            self.go_on(session, &context.at(lane.captured), octets, receiver);
        }
    }

    /// Passes buffered octets to the session's current state again: a parser may request a handover while it processes
    /// octets of the other direction.
    pub(super) fn go_on(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        octets: Octets<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        let _ = match session.state() {
            State::Stream(_) => self.next_chunk(session, context, octets, receiver),
            State::Resuming(_) => self.resume_chunk(session, context, octets, receiver),
            _ => self.pass_to_parser(session, context, octets, receiver),
        };
    }

    pub(super) fn recognized(
        &mut self,
        session: &mut Session<P>,
        protocol: &'static Protocol,
        evidence: Evidence,
        receiver: &mut impl Receiver<P>,
    ) {
        if session.protocol.is_none() {
            self.stats.recognized_count += 1;
            session.set_application(protocol, evidence);
        }
        receiver.event(&SessionEvent::Recognized { protocol, evidence });
    }

    /// Drops a parser that stopped with a fault, closes its session, and reports the fault.
    pub(super) fn stop(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        (from, offset, fault): (Role, u64, Fault),
        receiver: &mut impl Receiver<P>,
    ) {
        let State::Parsing(parsing) = session.state() else { return };
        let meta = parsing.meta(from, context.timestamp);
        self.close(session);
        self.stopped(meta, (offset, fault), receiver);
    }

    pub(super) fn stopped(
        &mut self,
        meta: MessageMeta,
        (offset, fault): (u64, Fault),
        receiver: &mut impl Receiver<P>,
    ) {
        self.stats.stopped_count += 1;
        receiver.event(&SessionEvent::Stopped { meta, fault, offset });
    }
}

/// Result of [`Driver::start`], which starts a parser.
pub(super) struct Started<P: Protocols> {
    /// The state of the session before the start, whose memory the caller releases.
    pub(super) previous: State<P>,
    /// True if a parser was started and processes the octets; false if the session was closed.
    pub(super) has_parser: bool,
}

/// Returns whether the parser needs no more octets from a side.
pub(super) fn is_done<P: Protocols>(session: &Session<P>, side: Side) -> bool {
    let State::Parsing(parsing) = session.state() else { return false };
    session.role(side).of(&parsing.lanes).is_done
}

pub(super) fn side_of(role: Role, client: Side) -> Side {
    if role == Role::Client { client } else { client.other() }
}

pub(super) fn off<P: Protocols>(session: &Session<P>) -> ControlFlow<()> {
    if session.is_off() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
