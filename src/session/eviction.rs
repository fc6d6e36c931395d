//! Memory of sessions: the list of charged sessions, eviction while memory is short, and release.

use super::charged::Charged;
use super::context::FlowContext;
use super::driver::{Driver, Turn};
use super::parser::Fault;
use super::protocol::Role;
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::{Session, State};
use super::transition::Cause;
use crate::tracker::FlowId;

impl<P: Protocols> Driver<P> {
    /// Returns the flow with the session that was charged longest ago, while memory for sessions is short; otherwise
    /// `None`. Pass its session to [`evict`](Self::evict), unless the flow has ended.
    pub fn next_evicted(&mut self) -> Option<FlowId> {
        if !self.allowance.is_pressed() {
            return None;
        }
        let (node, id) = self.charged.oldest()?;
        self.charged.remove(node);
        self.allowance.give(Charged::ENTRY_LEN as u64);
        Some(id)
    }

    /// Closes the session of the flow that [`next_evicted`](Self::next_evicted) returned, and reports a parser as
    /// stopped ([`Fault::EVICTED`]). The protocol of a flow that was not recognized yet is identified by its port.
    pub fn evict(
        &mut self,
        session: &mut Session<P>,
        context: &FlowContext<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        session.node = Charged::NONE;
        self.stats.evicted_count += 1;
        Turn { driver: self, session, context, receiver }.drop_session(Fault::EVICTED);
    }

    /// Returns whether a session was charged for memory since the last call of this function, so that memory may be
    /// short now.
    #[inline(always)]
    pub(crate) const fn take_charged(&mut self) -> bool {
        std::mem::replace(&mut self.is_charged, false)
    }

    fn delist(&mut self, session: &mut Session<P>) {
        if session.node != Charged::NONE {
            self.charged.remove(session.node);
            session.node = Charged::NONE;
            self.allowance.give(Charged::ENTRY_LEN as u64);
        }
    }

    /// Closes a session and releases its memory; further octets of the flow are ignored.
    pub fn close(&mut self, session: &mut Session<P>) {
        self.close_for(session, Cause::Closed);
    }

    pub(super) fn close_for(&mut self, session: &mut Session<P>, cause: Cause) {
        self.release(session);
        if !session.is_off() {
            self.turn_off(session, cause);
        }
    }

    /// Closes a session by a transition to the state `Off`, and removes it from the list of charged sessions. Returns
    /// the previous state; the caller releases its memory.
    pub(super) fn turn_off(&mut self, session: &mut Session<P>, cause: Cause) -> State<P> {
        self.delist(session);
        session.transition(State::Off, cause)
    }

    /// Releases the memory of a session that is about to leave its state.
    pub(super) fn release(&mut self, session: &mut Session<P>) {
        let held_bytes = session.held_bytes();
        if held_bytes == 0 {
            return;
        }
        // The bytes held include those of the entry in the list.
        if session.node != Charged::NONE {
            self.charged.remove(session.node);
            session.node = Charged::NONE;
        }
        if let Some(parsing) = session.parsing_mut() {
            self.stats.count_suppressed(&mut parsing.quota);
        }
        self.allowance.give(held_bytes);
    }

    /// Panics unless the list of charged sessions is consistent. Returns the number of charged sessions. For tests and
    /// fuzzers; takes linear time.
    #[doc(hidden)]
    #[must_use]
    pub fn check_invariants(&self) -> usize {
        self.charged.check_invariants()
    }
}

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    /// Closes a session because memory is short. A parser is reported as stopped; a flow that was not recognized yet is
    /// identified by its port.
    fn drop_session(&mut self, fault: Fault) {
        match self.session.state() {
            State::Parsing(parsing) => {
                let offset = parsing.lanes.iter().map(|lane| lane.offset).max().unwrap_or_default();
                self.stop(Role::Client, offset, fault);
            }
            State::Stream(_) => {
                self.driver.close(self.session);
                self.name_by_port();
            }
            State::Datagrams(probing) => {
                let found = probing.decide::<P>(self.context.ports(self.session.client));
                self.driver.close(self.session);
                self.name(found);
            }
            State::Resuming(_) | State::Awaiting(_) | State::New | State::Paused { .. } | State::Off => {
                self.driver.close(self.session)
            }
        }
    }

    /// Updates the list of charged sessions after a driver call in which a session was charged for memory.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if self.driver.allowance.has_taken() {
            self.relist();
        }
    }

    #[inline(never)]
    fn relist(&mut self) {
        self.driver.is_charged = true;
        match (self.session.node, self.context.id) {
            (Charged::NONE, Some(id)) if self.session.held_bytes() > 0 => {
                if self.driver.allowance.take(Charged::ENTRY_LEN as u64).is_ok() {
                    self.session.node = self.driver.charged.insert(id);
                } else {
                    // A self.session that is not in the list would keep its memory until the flow ends, even while memory is
                    // short.
                    self.driver.stats.refused_count += u64::from(self.session.parsing_mut().is_none());
                    self.drop_session(Fault::NO_MEMORY);
                }
            }
            (Charged::NONE, _) => {}
            (node, _) => self.driver.charged.touch(node),
        }
        self.driver.allowance.clear_taken();
    }
}
