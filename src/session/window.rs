//! The window: the first octets or datagrams of a flow, while its protocol is not known yet.

use std::ops::ControlFlow;

use super::context::FlowContext;
use super::driver::{Driver, Started, is_done, off, side_of};
use super::octets::Octets;
use super::preamble::Preamble;
use super::probing::{Answer, Found, StreamProbing, run_stream_probes, stream_by_port};
use super::protocol::{Role, StreamOpening};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::{Session, State};
use super::transition::Cause;
use crate::base::Evidence;

impl<P: Protocols> Driver<P> {
    /// Charges memory for the octets of a flow whose protocol is undecided. Returns false and counts the refusal if
    /// there is not enough memory.
    pub(super) fn take_for_window(&mut self, len: usize) -> bool {
        let is_granted = self.allowance.take(len as u64).is_ok();
        self.stats.refused_count += u64::from(!is_granted);
        is_granted
    }

    /// Processes the first octets of a stream. They suffice to recognize most protocols, and are then not copied.
    pub(super) fn first_chunk(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        Octets { from, offset, bytes }: Octets<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let (client_port, server_port) = context.ports(session.client);
        let (client, server): (&[u8], &[u8]) = if from == Role::Client { (bytes, &[]) } else { (&[], bytes) };
        let opening = StreamOpening::new(client, server, client_port, server_port);
        let mut refuted = 0;
        let answer = match Preamble::read(client) {
            Preamble::None => run_stream_probes::<P>(&mut refuted, &opening),
            Preamble::Partial | Preamble::Whole(_) => Answer::Undecided,
        };
        let found = match answer {
            Answer::Found(found) => Some(found),
            Answer::Unknown => stream_by_port::<P>(refuted, (client_port, server_port)),
            Answer::Undecided => {
                return if self.take_for_window(size_of::<StreamProbing>()) {
                    session.transition(State::Stream(Box::new(StreamProbing::new())), Cause::Undecided);
                    self.next_chunk(session, context, Octets { from, offset, bytes }, receiver)
                } else {
                    self.close_for(session, Cause::Refused);
                    ControlFlow::Break(())
                };
            }
        };
        let Some(found) = found else {
            // Octets after a gap are from the middle of the stream as well.
            let is_picked_up = !context.is_from_start || offset > 0;
            let side = side_of(from, session.client);
            if self.resume(session, context, is_picked_up).is_some() {
                let from = session.role(side);
                return self.resume_chunk(session, context, Octets { from, offset, bytes }, receiver);
            }
            self.turn_off(session, Cause::Unparsed);
            if is_picked_up {
                self.name_by_port(session, context, receiver);
            }
            return ControlFlow::Break(());
        };
        let from = if found.is_reversed { from.other() } else { from };
        if self.start(session, context, found, receiver).has_parser {
            self.pass_to_parser(session, context, Octets { from, offset, bytes }, receiver)
        } else {
            ControlFlow::Break(())
        }
    }

    /// Processes further octets of a stream whose protocol is undecided.
    pub(super) fn next_chunk(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        Octets { from, offset, bytes }: Octets<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let ports = context.ports(session.client);
        let Some(probing) = session.stream_mut() else { return off(session) };
        let before = probing.allocated_len();
        probing.is_picked_up |= !context.is_from_start
            || (offset > probing.start(from) && from.of(&probing.probed).bytes.is_empty());
        let is_open = probing.push(Octets { from, offset, bytes }, context.timestamp);
        let grown = probing.allocated_len() - before;
        if !self.take_for_window(grown) {
            // The memory released is the memory that was taken, not the current length.
            self.turn_off(session, Cause::Refused);
            self.allowance.give(before as u64);
            return ControlFlow::Break(());
        }
        let answer = probing.run_probes::<P>(ports);
        let side = side_of(from, session.client);
        match answer {
            Answer::Found(found) => self.begin(session, context, Some(found), receiver),
            Answer::Undecided if is_open => {}
            Answer::Undecided | Answer::Unknown => self.decide_by_port(session, context, receiver),
        }
        if is_done(session, side) { ControlFlow::Break(()) } else { off(session) }
    }

    /// Ends the window of a stream in which no probe matched: the port identifies the protocol.
    pub(super) fn decide_by_port(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        let State::Stream(probing) = session.state() else { return };
        // The port identifies the first protocol of the connection, and not the one after a handover.
        let is_first = probing.handover_count == 0;
        let found = probing.by_port::<P>(context.ports(session.client)).filter(|_| is_first);
        let is_picked_up = probing.is_picked_up && is_first;
        if found.is_none() && is_first && self.resume_probed(session, context, receiver) {
            return;
        }
        self.begin(session, context, found, receiver);
        if found.is_none() && is_picked_up {
            self.name_by_port(session, context, receiver);
        }
    }

    /// Starts the search for a message of the protocol to which the port belongs, in the buffered octets and those that
    /// follow. Returns false if that protocol has no search function.
    fn resume_probed(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> bool {
        let State::Stream(probing) = session.state() else { return false };
        let (is_picked_up, client) = (probing.is_picked_up, session.client);
        let Some(State::Stream(probing)) = self.resume(session, context, is_picked_up) else { return false };
        for (role, offset, bytes, timestamp) in probing.chunks() {
            let from = session.role(side_of(role, client));
            self.go_on(session, &context.at(timestamp), Octets { from, offset, bytes }, receiver);
        }
        self.allowance.give(probing.allocated_len() as u64);
        true
    }

    /// Identifies the protocol by its port although the octets do not match the protocol's beginning, because they are
    /// from the middle of the stream. No parser is created: it could not find the start of a message.
    #[cold]
    pub(super) fn name_by_port(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        let found = stream_by_port::<P>(0, context.ports(session.client));
        if let Some(entry) = found.and_then(|found| P::TABLE.get(found.entry)) {
            self.recognized(session, entry.protocol, Evidence::Port, receiver);
        }
    }

    /// Ends the window of a stream, and passes the buffered octets to the parser of the protocol that was found.
    pub(super) fn begin(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        found: Option<Found>,
        receiver: &mut impl Receiver<P>,
    ) {
        if session.stream_mut().is_none() {
            return;
        }
        let Some(found) = found else { return self.close_for(session, Cause::Unparsed) };
        let Started { previous, has_parser } = self.start(session, context, found, receiver);
        let State::Stream(probing) = previous else { return };
        if has_parser {
            if let Some(parsing) = session.parsing_mut() {
                parsing.handover_count = probing.handover_count;
            }
            for (role, offset, bytes, timestamp) in probing.chunks() {
                let role = if found.is_reversed { role.other() } else { role };
                self.go_on(session, &context.at(timestamp), Octets { from: role, offset, bytes }, receiver);
            }
        }
        self.allowance.give(probing.allocated_len() as u64);
    }
}
