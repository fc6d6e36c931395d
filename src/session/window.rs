//! The window: the first octets or datagrams of a flow, while its protocol is not known yet.

use std::ops::ControlFlow;

use super::driver::{Driver, Started, Turn, is_done, off, side_of};
use super::octets::Octets;
use super::preamble::Preamble;
use super::probing::{Answer, Found, StreamProbing, run_stream_probes, stream_by_port};
use super::protocol::{Role, StreamOpening};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::searching::resumable;
use super::session::State;
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
}

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    /// Processes the first octets of a stream. They suffice to recognize most protocols, and are then not copied.
    pub(super) fn first_chunk(&mut self, Octets { from, offset, bytes }: Octets<'_>) -> ControlFlow<()> {
        // On the ports of protocols that are searched for, a later message would decide.
        let ports = self.context.ports(self.session.client);
        let naming_ports = self.context.naming_ports(self.session.client);
        let expected =
            self.driver.expected.take(self.context).filter(|_| resumable::<P>(naming_ports, true).is_none());
        let (client_port, server_port) = ports;
        let (client, server): (&[u8], &[u8]) = if from == Role::Client { (bytes, &[]) } else { (&[], bytes) };
        let opening = StreamOpening::new(client, server, client_port, server_port);
        let mut refuted = 0;
        let answer = match Preamble::read(client) {
            Preamble::None => run_stream_probes::<P>(&mut refuted, &opening),
            Preamble::Partial | Preamble::Whole(_) => Answer::Undecided,
        };
        let found = match answer {
            Answer::Found(found) => Some(found),
            Answer::Unknown => stream_by_port::<P>(refuted, naming_ports),
            Answer::Undecided => {
                return if self.driver.take_for_window(size_of::<StreamProbing>()) {
                    let probing = StreamProbing::with_expected(expected);
                    self.session.transition(State::Stream(Box::new(probing)), Cause::Undecided);
                    self.next_chunk(Octets { from, offset, bytes })
                } else {
                    self.driver.close_for(self.session, Cause::Refused);
                    ControlFlow::Break(())
                };
            }
        };
        // Octets after a gap are from the middle of the stream as well.
        let is_picked_up = !self.context.is_from_start || offset > 0;
        if expected.is_some() && found.is_none() && is_picked_up {
            self.name_by_port();
        }
        let Some(found) = self.preferred(found, expected) else {
            let side = side_of(from, self.session.client);
            if self.resume(is_picked_up).is_some() {
                let from = self.session.role(side);
                return self.resume_chunk(Octets { from, offset, bytes });
            }
            if !is_picked_up && self.await_stream(side, offset, bytes) {
                return ControlFlow::Continue(());
            }
            self.driver.turn_off(self.session, Cause::Unparsed);
            if is_picked_up {
                self.name_by_port();
            }
            return ControlFlow::Break(());
        };
        let from = if found.is_reversed { from.other() } else { from };
        self.begin_with(found, Octets { from, offset, bytes })
    }

    /// Starts the parser of a protocol, and passes the first octets of a stream to it.
    pub(super) fn begin_with(&mut self, found: Found, octets: Octets<'_>) -> ControlFlow<()> {
        if self.start(found).has_parser { self.pass_to_parser(octets) } else { ControlFlow::Break(()) }
    }

    /// Returns the protocol whose parser processes a stream: the expected one, or else the one that was found. The latter
    /// names the flow in any case, as in a driver that did not process the announcement. Proven content replaces an expected
    /// protocol that would have been recognized by its own.
    fn preferred(&mut self, found: Option<Found>, expected: Option<Found>) -> Option<Found> {
        let is_proven = found.is_some_and(|found| found.evidence == Evidence::Content);
        let is_replaced = |expected: &Found| {
            let has_probe =
                P::TABLE.get(expected.entry).is_some_and(|entry| entry.protocol.has_stream_probe());
            is_proven && (expected.is_foreign || has_probe)
        };
        let expected = expected.filter(|expected| !is_replaced(expected));
        if expected.is_some()
            && let Some(Found { entry, evidence, .. }) = found
            && let Some(entry) = P::TABLE.get(entry)
        {
            self.driver.stats.recognized_count += 1;
            self.session.set_application(entry.protocol, evidence);
        }
        expected.or(found)
    }

    /// Processes further octets of a stream whose protocol is undecided.
    pub(super) fn next_chunk(&mut self, Octets { from, offset, bytes }: Octets<'_>) -> ControlFlow<()> {
        let ports = self.context.ports(self.session.client);
        let Some(probing) = self.session.stream_mut() else { return off(self.session) };
        let before = probing.allocated_len();
        probing.is_picked_up |= !self.context.is_from_start
            || (offset > probing.start(from) && from.of(&probing.probed).bytes.is_empty());
        let is_open = probing.push(Octets { from, offset, bytes }, self.context.timestamp);
        let grown = probing.allocated_len() - before;
        if !self.driver.take_for_window(grown) {
            // The memory released is the memory that was taken, not the current length.
            self.driver.turn_off(self.session, Cause::Refused);
            self.driver.allowance.give(before as u64);
            return ControlFlow::Break(());
        }
        let answer = if is_open && probing.is_within_line(bytes) {
            Answer::Undecided
        } else {
            probing.run_probes::<P>(ports)
        };
        let is_open = is_open || matches!(answer, Answer::Undecided) && probing.continues_lines::<P>();
        let side = side_of(from, self.session.client);
        match answer {
            Answer::Found(found) => self.begin(Some(found)),
            Answer::Undecided if is_open => {}
            Answer::Undecided | Answer::Unknown => self.decide_by_port(),
        }
        if is_done(self.session, side) { ControlFlow::Break(()) } else { off(self.session) }
    }

    /// Ends the window of a stream in which no probe matched: the port identifies the protocol.
    pub(super) fn decide_by_port(&mut self) {
        let State::Stream(probing) = self.session.state() else { return };
        // The port identifies the first protocol of the connection, and not the one after a handover.
        let is_first = probing.handover_count == 0;
        let found = probing.by_port::<P>(self.context.naming_ports(self.session.client)).filter(|_| is_first);
        let is_picked_up = probing.is_picked_up && is_first;
        if found.is_none() && probing.expected.is_none() && is_first && self.resume_probed() {
            return;
        }
        self.begin(found);
        if found.is_none() && is_picked_up {
            self.name_by_port();
        }
    }

    /// Starts the search for a message of the protocol to which the port belongs, in the buffered octets and those that
    /// follow. Returns false if that protocol has no search function.
    fn resume_probed(&mut self) -> bool {
        let State::Stream(probing) = self.session.state() else { return false };
        let (is_picked_up, client) = (probing.is_picked_up, self.session.client);
        let Some(State::Stream(probing)) = self.resume(is_picked_up) else { return false };
        for (role, offset, bytes, timestamp) in probing.chunks() {
            let from = self.session.role(side_of(role, client));
            self.go_on_at(timestamp, Octets { from, offset, bytes });
        }
        self.driver.allowance.give(probing.allocated_len() as u64);
        true
    }

    /// Identifies the protocol by its port although the octets do not match the protocol's beginning, because they are
    /// from the middle of the stream. No parser is created: it could not find the start of a message.
    #[cold]
    pub(super) fn name_by_port(&mut self) {
        let found = stream_by_port::<P>(0, self.context.naming_ports(self.session.client));
        if let Some(entry) = found.and_then(|found| P::TABLE.get(found.entry)) {
            self.recognized(entry.protocol, Evidence::Port);
        }
    }

    /// Ends the window of a stream, and passes the buffered octets to the parser of the protocol that was found.
    pub(super) fn begin(&mut self, found: Option<Found>) {
        let Some(probing) = self.session.stream_mut() else { return };
        let expected = probing.expected;
        let Some(found) = self.preferred(found, expected) else {
            if !self.await_probed() {
                self.driver.close_for(self.session, Cause::Unparsed);
            }
            return;
        };
        let Started { previous, has_parser } = self.start(found);
        let State::Stream(probing) = previous else { return };
        if has_parser {
            if let Some(parsing) = self.session.parsing_mut() {
                parsing.handover_count = probing.handover_count;
            }
            let role_of = |role: Role| if found.is_reversed { role.other() } else { role };
            if found.is_expected
                && let Some((offset, bytes, timestamp)) = probing.removed_header()
            {
                self.go_on_at(timestamp, Octets { from: role_of(Role::Client), offset, bytes });
            }
            for (role, offset, bytes, timestamp) in probing.chunks() {
                let role = role_of(role);
                self.go_on_at(timestamp, Octets { from: role, offset, bytes });
            }
        }
        self.driver.allowance.give(probing.allocated_len() as u64);
    }
}
