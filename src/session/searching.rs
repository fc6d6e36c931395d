//! Search for messages in a stream that does not begin with the protocol to which its port belongs.
//!
//! Without the search, octets before the first message would hide all messages after them, and no message of a stream
//! that is captured from the middle of a message would be parsed. The search is bounded in octets and in chunks.

use std::ops::ControlFlow;

use super::driver::{Started, Turn, is_done, off, side_of};
use super::index::Index;
use super::octets::Octets;
use super::probing::{Found, by_port};
use super::protocol::{Role, StreamSearch};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::resuming::{Resuming, Searched};
use super::session::State;
use super::transition::Cause;

/// Returns the protocol whose messages are searched for in a stream with these ports, and its search function.
/// `is_picked_up` is true for a stream that was captured from the middle on; only in such a stream may the client have
/// the port of the protocol.
pub(super) fn resumable<P: Protocols>(
    ports: (u16, u16),
    is_picked_up: bool,
) -> Option<(Found, StreamSearch)> {
    let index = Index::of::<P>();
    let resumed = if is_picked_up { index.resumed_in_middle } else { index.resumed };
    let found = by_port(&index.streams, ports, resumed)?;
    let resumption = P::TABLE.get(found.entry)?.protocol.resumption?;
    (is_picked_up || !found.is_reversed).then_some((found, resumption.search))
}

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    /// Starts the search for messages in a stream that does not begin with the protocol to which its port belongs.
    /// Returns the previous state of the session, or `None` if that protocol has no search function, or memory is
    /// refused.
    pub(super) fn resume(&mut self, is_picked_up: bool) -> Option<State<P>> {
        let (found, search) = resumable::<P>(self.context.naming_ports(self.session.client), is_picked_up)?;
        if !self.driver.take_for_window(size_of::<Resuming>()) {
            return None;
        }
        self.take_roles(found);
        let lanes = Default::default();
        let resuming = Box::new(Resuming { entry: found.entry, search, is_picked_up, lanes });
        Some(self.session.transition(State::Resuming(resuming), Cause::Searched))
    }

    /// Processes further octets of a stream that is searched for a message of the protocol to which its port belongs.
    pub(super) fn resume_chunk(&mut self, Octets { from, offset, bytes }: Octets<'_>) -> ControlFlow<()> {
        let Some(resuming) = self.session.resuming_mut() else { return off(self.session) };
        let before = resuming.allocated_len();
        let is_found = resuming.search(Octets { from, offset, bytes }, self.context.timestamp);
        let (after, is_over) = (resuming.allocated_len(), resuming.is_over());
        if !self.driver.take_for_window(after.saturating_sub(before)) {
            // The memory released is the memory that was taken, not the current length.
            self.driver.turn_off(self.session, Cause::Refused);
            self.driver.allowance.give(before as u64);
            return ControlFlow::Break(());
        }
        self.driver.allowance.give(before.saturating_sub(after) as u64);
        if is_found {
            let side = side_of(from, self.session.client);
            self.resumed(from);
            return if is_done(self.session, side) { ControlFlow::Break(()) } else { off(self.session) };
        }
        if is_over {
            self.end_resuming();
        }
        off(self.session)
    }

    /// Starts the parser with the message that the search found, and then passes the last octets of the other direction
    /// to it.
    fn resumed(&mut self, from: Role) {
        let State::Resuming(resuming) = self.session.state() else { return };
        let entry = resuming.entry;
        let found = Found::by_content(entry, false);
        let Started { previous, has_parser } = self.start(found);
        let State::Resuming(resuming) = previous else { return };
        let allocated_len = resuming.allocated_len() as u64;
        let Resuming { lanes, .. } = *resuming;
        if has_parser {
            for role in [from, from.other()] {
                let Searched { tail, captured, .. } = role.of(&lanes);
                if !tail.bytes.is_empty() {
                    self.go_on_at(*captured, Octets { from: role, offset: tail.offset, bytes: &tail.bytes });
                }
            }
        }
        self.driver.allowance.give(allocated_len);
    }

    /// Ends the search for messages in a stream without a result.
    pub(super) fn end_resuming(&mut self) {
        let State::Resuming(resuming) = self.session.state() else { return };
        let is_picked_up = resuming.is_picked_up;
        self.driver.close_for(self.session, Cause::Unparsed);
        if is_picked_up {
            self.name_by_port();
        }
    }
}
