//! The driver of sessions, which passes the octets of each flow to the parser of its protocol.

use std::ops::ControlFlow;

use super::awaited::{Announcers, Arrived};
use super::charged::Charged;
use super::context::FlowContext;
use super::expected::ExpectedFlows;
use super::octets::{Octets, Payload};
use super::parser::{AfterGap, Datagram, EndKind, Fault};
use super::parsing::{Capacity, Lane, Outcome, Parsing};
use super::probing::{Found, StreamProbing, datagram_by_port, stream_by_port};
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::receiver::{MessageMeta, Receiver, SessionEvent};
use super::session::{Session, State};
use super::stats::{DriverConfig, DriverStats};
use super::transition::Cause;
use crate::base::{Account, Allowance, Evidence, IpProtocol, Resources, Side, Timestamp};
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
    pub(super) expected: ExpectedFlows,
    pub(super) announcers: Announcers,
    pub(super) stats: DriverStats,
    /// False if the checkpoint from which the driver was restored is of another set of protocols, so that its indexes of
    /// table entries have no meaning.
    pub(super) knows_entries: bool,
    set: std::marker::PhantomData<fn() -> P>,
}

/// One input of a session: the driver, the session, the flow to which the input belongs, and the receiver of what
/// results.
pub(super) struct Turn<'t, P: Protocols, R> {
    pub(super) driver: &'t mut Driver<P>,
    pub(super) session: &'t mut Session<P>,
    pub(super) context: &'t FlowContext<'t>,
    pub(super) receiver: &'t mut R,
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
            expected: ExpectedFlows::default(),
            announcers: Announcers::default(),
            stats: DriverStats::default(),
            knows_entries: true,
            set: std::marker::PhantomData,
        }
    }

    /// Returns the counters of this driver.
    #[must_use]
    pub fn stats(&self) -> DriverStats {
        DriverStats {
            held_bytes: self.allowance.held_bytes(),
            peak_bytes: self.allowance.peak_bytes(),
            ..self.stats.clone()
        }
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
        let mut turn = Turn { driver: self, session, context, receiver };
        let wants = turn.chunk(side, chunk);
        turn.settle();
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
        let mut turn = Turn { driver: self, session, context, receiver };
        let wants = turn.gap(side, gap);
        turn.settle();
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
        let mut turn = Turn { driver: self, session, context, receiver };
        turn.datagram(side, payload);
        turn.settle();
    }

    /// Processes a FIN, which ends one direction of a flow.
    pub fn fin(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        side: Side,
        receiver: &mut impl Receiver<P>,
    ) {
        let mut turn = Turn { driver: self, session, context, receiver };
        turn.fin(side);
        turn.settle();
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
        let mut turn = Turn { driver: self, session, context, receiver };
        turn.finish(kind);
        turn.settle();
    }

    /// Returns whether flows are only named, and not parsed.
    pub(crate) const fn is_naming_only(&self) -> bool {
        self.is_naming_only
    }

    /// Closes a session for which no parser was started.
    fn not_started(&mut self, session: &mut Session<P>, cause: Cause) -> Started<P> {
        Started { previous: self.turn_off(session, cause), has_parser: false }
    }
}

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    #[inline]
    pub(super) fn chunk(&mut self, side: Side, chunk: &Chunk<'_>) -> ControlFlow<()> {
        let (offset, bytes) = (chunk.offset, chunk.bytes);
        match self.session.state() {
            State::Parsing(_) => {
                let from = self.session.role(side);
                self.pass_to_parser(Octets { from, offset, bytes })
            }
            State::Off => ControlFlow::Break(()),
            State::New => {
                self.session.client = self.context.initiator;
                self.first_chunk(Octets { from: self.session.role(side), offset, bytes })
            }
            State::Stream(_) => {
                let from = self.session.role(side);
                self.next_chunk(Octets { from, offset, bytes })
            }
            State::Resuming(_) => {
                let from = self.session.role(side);
                self.resume_chunk(Octets { from, offset, bytes })
            }
            State::Awaiting(_) => {
                if self.begins_late() {
                    return self.chunk(side, chunk);
                }
                self.keep_awaited(side, Arrived::Octets { offset, bytes })
            }
            State::Datagrams(_) | State::Paused { .. } => ControlFlow::Break(()),
        }
    }

    pub(super) fn gap(&mut self, side: Side, gap: &Gap) -> ControlFlow<()> {
        if is_done(self.session, side) {
            return ControlFlow::Break(());
        }
        match self.session.state() {
            // The octets after the gap are probed as if the stream began there.
            State::New => return ControlFlow::Continue(()),
            State::Off | State::Datagrams(_) | State::Paused { .. } => return ControlFlow::Break(()),
            State::Stream(probing) => {
                // The buffered octets cannot be joined to those after the gap, so that the protocol is decided now.
                if probing.probed.iter().any(|probed| !probed.bytes.is_empty()) {
                    self.decide_by_port();
                }
            }
            State::Parsing(_) | State::Resuming(_) | State::Awaiting(_) => {}
        }
        if matches!(self.session.state(), State::Awaiting(_)) && !self.begins_late() {
            return self.keep_awaited(side, Arrived::Gap(*gap));
        }
        let from = self.session.role(side);
        if let Some(parsing) = self.session.parsing_mut() {
            let after =
                parsing.gap(gap, from, self.context.timestamp, &mut self.driver.allowance, self.receiver);
            self.driver.stats.count_suppressed(&mut parsing.quota);
            if after == AfterGap::Stop {
                self.stop(from, gap.offset, Fault::GAP);
            }
        } else if let Some(resuming) = self.session.resuming_mut() {
            resuming.gap(from);
        }
        off(self.session)
    }

    /// Processes a datagram that was kept until now.
    #[cold]
    #[inline(never)]
    pub(super) fn kept_datagram(&mut self, side: Side, payload: Payload<'_>) {
        self.datagram(side, payload);
    }

    #[inline(always)]
    fn datagram(&mut self, side: Side, payload: Payload<'_>) {
        if payload.bytes.is_empty() {
            return;
        }
        let mut is_announced = false;
        match self.session.state() {
            State::Parsing(parsing) if !parsing.is_expected && parsing.port_owner.is_none() => {}
            State::Parsing(parsing) if parsing.is_expected => {
                is_announced = self.driver.expected.take(self.context).is_some();
            }
            State::Parsing(_) => self.probe_port_owner(side, payload),
            State::Off | State::Stream(_) | State::Resuming(_) => return,
            State::Paused { .. } => {
                let Some(paused) = self.session.state().as_paused() else { return };
                if !paused.may_precede::<P>(payload.bytes) || !self.begin_conversation(side, payload, paused)
                {
                    return;
                }
            }
            State::New => {
                self.session.client = self.context.initiator;
                match self.driver.expected.take(self.context) {
                    Some(expected) => {
                        is_announced = true;
                        self.probe_expected(side, payload, expected);
                    }
                    None => self.probe_datagram(side, payload),
                }
            }
            State::Datagrams(_) => self.probe_datagram(side, payload),
            State::Awaiting(_) => {
                if !self.begins_late() {
                    let _ = self.keep_awaited(side, Arrived::Datagram(payload));
                    return;
                }
            }
        }
        let from = self.session.role(side);
        if let Some(parsing) = self.session.parsing_mut() {
            let Payload { bytes, len } = payload;
            let timestamp = self.context.timestamp;
            let datagram = Datagram { bytes, len, from, timestamp, is_announced };
            let outcome = parsing.datagram(&datagram, &mut self.driver.allowance, self.receiver);
            if !parsing.announced.is_empty() {
                debug_assert!(
                    parsing.protocol.may_lead_on()
                        || parsing.announced.iter().all(|flow| flow.protocol == parsing.protocol),
                    "{} announces flows of others without declaring it",
                    parsing.protocol.name()
                );
                self.driver.expected.announce::<P>(self.context, parsing.client, &mut parsing.announced);
            }
            self.driver.stats.count_suppressed(&mut parsing.quota);
            match outcome {
                Outcome::More if parsing.early.is_some() => self.pass_early(side),
                Outcome::More | Outcome::Handover(Some(_)) => {}
                Outcome::Handover(None) => self.hand_over_datagram(side, payload),
                Outcome::Early => self.keep_early(side, payload),
                Outcome::Done => self.end_conversation(),
                Outcome::Fault(fault) => self.stop(from, 0, fault),
            }
        }
    }

    pub(super) fn fin(&mut self, side: Side) {
        if matches!(self.session.state(), State::Stream(_)) {
            self.decide_by_port();
        }
        if matches!(self.session.state(), State::Awaiting(_)) && !self.begins_late() {
            let _ = self.keep_awaited(side, Arrived::Fin);
        }
        let from = self.session.role(side);
        if let Some(parsing) = self.session.parsing_mut()
            && parsing.end(from, EndKind::Fin, self.context.timestamp, self.receiver)
        {
            self.driver.close(self.session);
        }
    }

    fn finish(&mut self, kind: EndKind) {
        match self.session.state() {
            State::New => {
                self.session.client = self.context.initiator;
                let (ports, refuted) = (self.context.naming_ports(self.session.client), 0);
                let found = match self.context.key.protocol() {
                    IpProtocol::TCP => stream_by_port::<P>(refuted, ports),
                    IpProtocol::UDP => datagram_by_port::<P>(refuted, ports),
                    _ => None,
                };
                self.name(found);
            }
            State::Stream(_) => self.decide_by_port(),
            State::Datagrams(_) if self.session.protocol.is_some() => {}
            State::Datagrams(probing) => {
                let found = probing.decide::<P>(self.context.ports(self.session.client));
                self.name(found);
            }
            State::Parsing(_)
            | State::Resuming(_)
            | State::Paused { .. }
            | State::Awaiting(_)
            | State::Off => {}
        }
        self.begins_late();
        self.end_resuming();
        if let Some(parsing) = self.session.parsing_mut() {
            parsing.end(Role::Client, kind, self.context.timestamp, self.receiver);
            parsing.end(Role::Server, kind, self.context.timestamp, self.receiver);
        }
        self.driver.close(self.session);
    }

    /// Starts the parser of an entry of the protocol table, or only identifies the flow if the entry has no parser. The
    /// caller must release the memory of the session's previous state.
    pub(super) fn start(&mut self, found: Found) -> Started<P> {
        let Some(entry) = P::TABLE.get(found.entry) else {
            return self.driver.not_started(self.session, Cause::Unparsed);
        };
        self.take_roles(found);
        if found.is_expected {
            let (protocol, evidence) = (entry.protocol, found.evidence);
            self.receiver.event(&SessionEvent::Recognized { protocol, evidence });
        } else {
            self.recognized(entry.protocol, found.evidence);
        }
        if !entry.has_parser || self.driver.is_naming_only {
            return self.driver.not_started(self.session, Cause::Unparsed);
        }
        if entry.protocol.announces_streams {
            self.driver.announcers.insert(self.context.key);
        }
        let len = size_of::<Parsing<P>>() as u64;
        if self.driver.allowance.take(len).is_err() {
            let meta = MessageMeta {
                protocol: entry.protocol,
                from: Role::Client,
                side: self.session.client,
                timestamp: self.context.timestamp,
                received_len: 0,
            };
            self.stopped(meta, 0, Fault::NO_MEMORY);
            return self.driver.not_started(self.session, Cause::Refused);
        }
        let mut parsing =
            Parsing::new(P::start(found.entry), entry.protocol, self.session.client, self.context.timestamp);
        parsing.charged = len;
        parsing.is_expected = found.is_expected;
        let cause = match self.session.parsing_mut() {
            Some(previous) => {
                parsing.received_len = previous.received_len;
                Cause::Handover
            }
            None => Cause::Recognized,
        };
        Started {
            previous: self.session.transition(State::Parsing(Box::new(parsing)), cause),
            has_parser: true,
        }
    }

    /// Exchanges the roles of both sides if the protocol that was found requires it, and reports that. A protocol after a
    /// handover says nothing about the flow, and an announced flow was opened by either side.
    pub(super) fn take_roles(&mut self, found: Found) {
        if !found.is_reversed {
            return;
        }
        self.session.client = self.session.client.other();
        let is_handover = self.session.stream_mut().is_some_and(|probing| probing.handover_count > 0)
            || self.session.datagrams_mut().is_some_and(|probing| probing.is_handover);
        if !is_handover && !found.is_expected {
            self.receiver.learned(self.session.client, found.evidence);
        }
    }

    /// Passes octets of one direction to the session's parser, and performs the next step that results.
    #[inline]
    pub(super) fn pass_to_parser(&mut self, octets: Octets<'_>) -> ControlFlow<()> {
        let Octets { from, offset, .. } = octets;
        let Some(parsing) = self.session.parsing_mut() else { return off(self.session) };
        let capacity = Capacity { allowance: &mut self.driver.allowance, side_max: self.driver.side_max };
        let outcome = parsing.pass_to_parser(octets, self.context.timestamp, capacity, self.receiver);
        if !parsing.announced.is_empty() {
            self.driver.expected.announce::<P>(self.context, parsing.client, &mut parsing.announced);
        }
        self.driver.stats.count_suppressed(&mut parsing.quota);
        match outcome {
            Outcome::More => ControlFlow::Continue(()),
            outcome => self.apply_outcome(from, offset, outcome),
        }
    }

    #[cold]
    fn apply_outcome(&mut self, from: Role, offset: u64, outcome: Outcome) -> ControlFlow<()> {
        let State::Parsing(parsing) = self.session.state() else { return off(self.session) };
        match outcome {
            Outcome::More | Outcome::Early => ControlFlow::Continue(()),
            Outcome::Done => {
                if parsing.lanes.iter().all(|lane| lane.is_done || lane.is_ended) {
                    self.driver.close(self.session);
                }
                ControlFlow::Break(())
            }
            Outcome::Fault(fault) => {
                self.stop(from, offset, fault);
                ControlFlow::Break(())
            }
            Outcome::Handover(next) => {
                let side = side_of(from, self.session.client);
                self.change_protocol(from, next);
                if is_done(self.session, side) { ControlFlow::Break(()) } else { off(self.session) }
            }
        }
    }

    /// Drops the session's parser, and passes the buffered octets of both directions to the next protocol.
    fn change_protocol(&mut self, from: Role, next: Option<&'static Protocol>) {
        let Some(parsing) = self.session.parsing_mut() else { return };
        debug_assert!(
            parsing.protocol.may_lead_on(),
            "another protocol follows {}, which does not declare it",
            parsing.protocol.name()
        );
        let handover_count = parsing.handover_count + 1;
        if handover_count > HANDOVER_COUNT_MAX {
            let offset = from.of(&parsing.lanes).offset;
            return self.stop(from, offset, Fault::TOO_MANY_HANDOVERS);
        }
        let (lanes, is_expected) = (std::mem::take(&mut parsing.lanes), parsing.is_expected);
        self.driver.stats.handover_count += 1;
        self.driver.release(self.session);
        let entry = next.and_then(|next| P::TABLE.iter().position(|entry| entry.protocol == next));
        match (next, entry) {
            (Some(_), Some(entry)) => {
                let found = Found { is_expected, ..Found::by_content(entry, false) };
                self.start(found);
            }
            (Some(next), None) => {
                self.recognized(next, Evidence::Content);
                self.driver.turn_off(self.session, Cause::Unparsed);
            }
            (None, _) if self.driver.take_for_window(size_of::<StreamProbing>()) => {
                self.session.transition(State::Stream(Box::new(StreamProbing::new())), Cause::Handover);
            }
            (None, _) => {
                self.driver.turn_off(self.session, Cause::Refused);
            }
        }
        if let Some(parsing) = self.session.parsing_mut() {
            parsing.handover_count = handover_count;
            for (new, old) in parsing.lanes.iter_mut().zip(&lanes) {
                *new = Lane::at(old.offset, old.is_ended);
            }
        } else if let Some(probing) = self.session.stream_mut() {
            probing.handover_count = handover_count;
        } else {
            return;
        }
        for (role, lane) in [Role::Client, Role::Server].into_iter().zip(&lanes) {
            if lane.rest().is_empty() {
                continue;
            }
            let octets = Octets { from: role, offset: lane.offset, bytes: lane.rest() };
            self.go_on_at(lane.captured, octets);
        }
    }

    /// Passes buffered octets to the session's current state again: a parser may request a handover while it processes
    /// octets of the other direction.
    pub(super) fn go_on(&mut self, octets: Octets<'_>) {
        let _ = match self.session.state() {
            State::Stream(_) => self.next_chunk(octets),
            State::Resuming(_) => self.resume_chunk(octets),
            _ => self.pass_to_parser(octets),
        };
    }

    /// Passes buffered octets that were captured at another time to the session's current state.
    pub(super) fn go_on_at(&mut self, timestamp: Timestamp, octets: Octets<'_>) {
        let context = self.context.at(timestamp);
        let Self { driver, session, receiver, .. } = self;
        Turn { driver, session, context: &context, receiver: *receiver }.go_on(octets);
    }

    pub(super) fn recognized(&mut self, protocol: &'static Protocol, evidence: Evidence) {
        if self.session.protocol.is_none() {
            self.driver.stats.recognized_count += 1;
            self.session.set_application(protocol, evidence);
        }
        self.receiver.event(&SessionEvent::Recognized { protocol, evidence });
    }

    /// Drops a parser that stopped with a fault, closes its session unless a later conversation may begin, and reports the
    /// fault.
    pub(super) fn stop(&mut self, from: Role, offset: u64, fault: Fault) {
        let Some(parsing) = self.session.parsing_mut() else { return };
        parsing.finish(from, self.context.timestamp, self.receiver);
        let meta = parsing.meta(from, self.context.timestamp);
        if matches!(fault, Fault::NO_MEMORY | Fault::EVICTED) {
            self.driver.close(self.session);
        } else {
            self.end_conversation();
        }
        self.stopped(meta, offset, fault);
    }

    pub(super) fn stopped(&mut self, meta: MessageMeta, offset: u64, fault: Fault) {
        self.driver.stats.stopped_count += 1;
        self.driver.stats.faults.count(meta.protocol.name(), fault.reason(), 1);
        self.receiver.event(&SessionEvent::Stopped { meta, fault, offset });
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
