//! The window in which it is not known yet what a flow speaks.

use std::ops::ControlFlow;

use super::driver::{Driver, is_done, off, side_of};
use super::preamble::Preamble;
use super::probing::{Answer, Found, StreamProbing, ask_stream, stream_by_port};
use super::protocol::{Role, StreamOpening};
use super::protocols::Protocols;
use super::session::{Receiver, Session, State, Whose};
use crate::base::Evidence;

impl<P: Protocols> Driver<P> {
    /// Takes octets of memory for what is undecided, or counts that there are none.
    pub(super) fn take_for_window(&mut self, len: usize) -> bool {
        let is_granted = self.allowance.take(len as u64).is_ok();
        self.stats.refused_count += u64::from(!is_granted);
        is_granted
    }

    /// The first octets of a stream: most protocols are recognised by them, so that nothing is copied.
    pub(super) fn first_chunk(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        (from, offset, bytes): (Role, u64, &[u8]),
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let (client_port, server_port) = whose.ports(session.client);
        let (client, server): (&[u8], &[u8]) = if from == Role::Client { (bytes, &[]) } else { (&[], bytes) };
        let opening = StreamOpening::new(client, server, client_port, server_port);
        let mut refuted = 0;
        let answer = match Preamble::read(client) {
            Preamble::None => ask_stream::<P>(&mut refuted, &opening),
            Preamble::Partial | Preamble::Whole(_) => Answer::Undecided,
        };
        let found = match answer {
            Answer::Found(found) => Some(found),
            Answer::Unknown => stream_by_port::<P>(refuted, (client_port, server_port)),
            Answer::Undecided => {
                let mut probing = Box::new(StreamProbing::new());
                return if !self.take_for_window(size_of::<StreamProbing>()) {
                    self.close(session);
                    ControlFlow::Break(())
                } else {
                    probing.handover_count = 0;
                    session.state = State::Stream(probing);
                    self.next_chunk(session, whose, (from, offset, bytes), receiver)
                };
            }
        };
        let Some(found) = found else {
            session.state = State::Off;
            // What follows a gap is from the middle as well.
            let is_picked_up = !whose.is_from_start || offset > 0;
            let side = side_of(from, session.client);
            if self.resume(session, whose, is_picked_up) {
                let from = session.role(side);
                return self.resume_chunk(session, whose, (from, offset, bytes), receiver);
            }
            if is_picked_up {
                self.name_by_port(session, whose, receiver);
            }
            return ControlFlow::Break(());
        };
        let from = if found.is_reversed { from.other() } else { from };
        if self.start(session, whose, found, receiver) {
            self.offer(session, whose, (from, offset, bytes), receiver)
        } else {
            ControlFlow::Break(())
        }
    }

    /// More octets of a stream that is undecided.
    pub(super) fn next_chunk(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        (from, offset, bytes): (Role, u64, &[u8]),
        receiver: &mut impl Receiver<P>,
    ) -> ControlFlow<()> {
        let State::Stream(probing) = &mut session.state else { return off(session) };
        let before = probing.allocated_len();
        probing.is_picked_up |= !whose.is_from_start
            || (offset > probing.start(from) && from.of(&probing.heard).bytes.is_empty());
        let is_open = probing.hear((from, offset, bytes), whose.timestamp);
        let grown = probing.allocated_len() - before;
        if !self.take_for_window(grown) {
            // What is given back is what was taken, not what it has grown to.
            session.state = State::Off;
            self.allowance.give(before as u64);
            return ControlFlow::Break(());
        }
        let side = side_of(from, session.client);
        match probing.ask::<P>(whose.ports(session.client)) {
            Answer::Found(found) => self.begin(session, whose, Some(found), receiver),
            Answer::Undecided if is_open => {}
            Answer::Undecided | Answer::Unknown => self.decide_by_port(session, whose, receiver),
        }
        if is_done(session, side) { ControlFlow::Break(()) } else { off(session) }
    }

    /// Ends the window of a stream: the port decides.
    pub(super) fn decide_by_port(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        let State::Stream(probing) = &session.state else { return };
        // What the port tells was true of the first protocol, and not of what that handed over to.
        let is_first = probing.handover_count == 0;
        let found = probing.by_port::<P>(whose.ports(session.client)).filter(|_| is_first);
        let is_picked_up = probing.is_picked_up && is_first;
        if found.is_none() && is_first && self.resume_heard(session, whose, receiver) {
            return;
        }
        self.begin(session, whose, found, receiver);
        if found.is_none() && is_picked_up {
            self.name_by_port(session, whose, receiver);
        }
    }

    /// Searches what was heard, and what follows, for a message of the protocol that has the port. False if there is none to be
    /// searched for.
    fn resume_heard(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> bool {
        let State::Stream(probing) = std::mem::replace(&mut session.state, State::Off) else { return false };
        if self.resume_behind(session, whose, &probing, receiver) {
            self.allowance.give(probing.allocated_len() as u64);
            true
        } else {
            session.state = State::Stream(probing);
            false
        }
    }

    /// Names the protocol that has the port, although the octets are not how it begins: they are from the middle. No parser is
    /// made, for it could not tell where to begin either.
    #[cold]
    pub(super) fn name_by_port(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        let found = stream_by_port::<P>(0, whose.ports(session.client));
        if let Some(entry) = found.and_then(|found| P::TABLE.get(found.entry)) {
            self.recognised(session, entry.protocol, Evidence::Port, receiver);
        }
    }

    /// Ends the window of a stream, and offers what was heard to the parser that was found.
    pub(super) fn begin(
        &mut self,
        session: &mut Session<P>,
        whose: &Whose<'_>,
        found: Option<Found>,
        receiver: &mut impl Receiver<P>,
    ) {
        let State::Stream(probing) = std::mem::replace(&mut session.state, State::Off) else { return };
        let allocated_len = probing.allocated_len() as u64;
        if let Some(found) = found
            && self.start(session, whose, found, receiver)
        {
            if let State::Parsing(parsing) = &mut session.state {
                parsing.handover_count = probing.handover_count;
            }
            for (role, offset, bytes, timestamp) in probing.chunks() {
                let role = if found.is_reversed { role.other() } else { role };
                self.go_on(session, &whose.at(timestamp), (role, offset, bytes), receiver);
            }
        }
        self.allowance.give(allocated_len);
    }
}
