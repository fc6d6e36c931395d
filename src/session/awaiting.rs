//! Flows whose announcement may be captured after their first octets, because one direction of the capture is late.
//!
//! What arrives in such a flow is kept for at most [`AWAITED_TIME`](super::AWAITED_TIME), until another flow announces it. Only
//! flows that neither content nor port names wait, and of these only streams between hosts with a parser that announces streams,
//! and datagrams with which an announced protocol begins.

use std::ops::ControlFlow;

use super::awaited::{Arrived, Awaiting, EARLY_COUNT_MAX};
use super::driver::{Started, Turn, off, side_of};
use super::index::Index;
use super::octets::{Octets, Payload};
use super::probing::{Found, StreamProbing};
use super::protocol::{DatagramOpening, Role};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::State;
use super::transition::Cause;
use crate::base::{Side, Timestamp};

impl<P: Protocols, R: Receiver<P>> Turn<'_, P, R> {
    /// Keeps the first octets of a stream that is not recognized if it may be announced. Returns false if it may not.
    pub(super) fn await_stream(&mut self, side: Side, offset: u64, bytes: &[u8]) -> bool {
        let may_wait = offset == 0 && self.driver.announcers.may_announce(self.context.key);
        may_wait && self.begin_awaiting([(side, self.context.timestamp, Arrived::Octets { offset, bytes })])
    }

    /// Keeps the octets for which the probes were undecided if the stream may be announced. Returns false if it may not.
    pub(super) fn await_probed(&mut self) -> bool {
        let State::Stream(probing) = self.session.state() else { return false };
        let is_first = probing.handover_count == 0 && probing.start(Role::Client) == 0;
        if !is_first || probing.is_picked_up || !self.driver.announcers.may_announce(self.context.key) {
            return false;
        }
        // The octets are moved to the next state, and the driver charges that before it releases this one.
        let probing: StreamProbing = match self.session.stream_mut() {
            Some(probing) => std::mem::replace(probing, StreamProbing::new()),
            None => return false,
        };
        let (client, len) = (self.session.client, probing.allocated_len());
        let chunks = probing.chunks().map(|(from, offset, bytes, timestamp)| {
            (side_of(from, client), timestamp, Arrived::Octets { offset, bytes })
        });
        let is_awaiting = self.begin_awaiting(chunks);
        if !is_awaiting {
            self.driver.turn_off(self.session, Cause::Refused);
        }
        self.driver.allowance.give(len as u64);
        true
    }

    /// Keeps the first datagram of a flow that is not recognized if an announced protocol begins with it. Returns false if
    /// none does.
    pub(super) fn await_datagram(
        &mut self,
        side: Side,
        payload: Payload<'_>,
        opening: &DatagramOpening<'_>,
    ) -> bool {
        let mut early = Index::of::<P>().early;
        let mut begins = false;
        while early != 0 && !begins {
            let entry = P::TABLE.get(early.trailing_zeros() as usize);
            begins = entry.and_then(|entry| entry.protocol.early).is_some_and(|early| early(opening));
            early &= early - 1;
        }
        let arrived = (side, self.context.timestamp, Arrived::Datagram(payload));
        begins && !self.driver.is_naming_only() && self.begin_awaiting([arrived])
    }

    /// Keeps what arrived first in a flow. Returns false if there is not enough memory.
    fn begin_awaiting<'a>(
        &mut self,
        first: impl IntoIterator<Item = (Side, Timestamp, Arrived<'a>)>,
    ) -> bool {
        let mut awaiting = Awaiting::default();
        let is_kept =
            first.into_iter().all(|(side, timestamp, arrived)| awaiting.push(side, timestamp, arrived));
        if !is_kept || !self.driver.take_for_window(awaiting.allocated_len()) {
            return false;
        }
        self.session.transition(State::Awaiting(Box::new(awaiting)), Cause::Undecided);
        true
    }

    /// Keeps a datagram that the parser cannot read before one of the other side, if there is enough memory.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_early(&mut self, side: Side, payload: Payload<'_>) {
        let Some(parsing) = self.session.parsing_mut() else { return };
        let before = parsing.early.as_ref().map_or(0, |early| early.allocated_len());
        let early = parsing.early.get_or_insert_default();
        let is_other = early.kept.first().is_some_and(|first| first.side != side);
        if !is_other && early.kept.len() < EARLY_COUNT_MAX {
            early.push(side, self.context.timestamp, Arrived::Datagram(payload));
        }
        let grown = (early.allocated_len() - before) as u64;
        if self.driver.allowance.take(grown).is_ok() {
            parsing.charged += grown;
        } else {
            parsing.early = None;
            parsing.charged -= before as u64;
            self.driver.allowance.give(before as u64);
            self.driver.stats.refused_count += 1;
        }
    }

    /// Passes the datagrams of the other side again that the parser could not read before one of `side`.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_early(&mut self, side: Side) {
        let Some(parsing) = self.session.parsing_mut() else { return };
        let Some(early) = parsing.early.take_if(|early| early.kept.iter().all(|kept| kept.side != side))
        else {
            return;
        };
        let len = early.allocated_len() as u64;
        parsing.charged -= len;
        self.driver.allowance.give(len);
        let is_late = self.context.timestamp > early.until();
        for (side, timestamp, arrived) in early.arrived().take_while(|_| !is_late) {
            if let Arrived::Datagram(payload) = arrived {
                let context = self.context.at(timestamp);
                let Self { driver, session, receiver, .. } = self;
                Turn { driver, session, context: &context, receiver: *receiver }.kept_datagram(side, payload);
            }
        }
    }

    /// Starts the parser of a flow that waits for its announcement, if it was announced. Returns whether it was; what
    /// arrives next is processed in the new state then.
    #[cold]
    #[inline(never)]
    pub(super) fn begins_late(&mut self) -> bool {
        let State::Awaiting(awaiting) = self.session.state() else { return false };
        let Some(found) = self.driver.expected.take_late(self.context, awaiting.until()) else {
            return false;
        };
        self.begin_awaited(found);
        true
    }

    /// Starts the parser of an announced flow, and passes what arrived before the announcement to it.
    fn begin_awaited(&mut self, found: Found) {
        self.session.client = self.context.initiator;
        let Started { previous, has_parser } = self.start(found);
        let State::Awaiting(awaiting) = previous else { return };
        for (side, timestamp, arrived) in awaiting.arrived().take_while(|_| has_parser) {
            let context = self.context.at(timestamp);
            let Self { driver, session, receiver, .. } = self;
            let mut turn = Turn { driver, session, context: &context, receiver: *receiver };
            match arrived {
                Arrived::Octets { offset, bytes } => {
                    let from = turn.session.role(side);
                    turn.go_on(Octets { from, offset, bytes });
                }
                Arrived::Datagram(payload) => turn.kept_datagram(side, payload),
                Arrived::Gap(gap) => {
                    let _ = turn.gap(side, &gap);
                }
                Arrived::Fin => turn.fin(side),
            }
        }
        self.driver.allowance.give(awaiting.allocated_len() as u64);
    }

    /// Keeps what arrives in a flow that waits for its announcement, or gives up the flow.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_awaited(&mut self, side: Side, arrived: Arrived<'_>) -> ControlFlow<()> {
        let timestamp = self.context.timestamp;
        let Some(awaiting) = self.session.awaiting_mut() else { return off(self.session) };
        let before = awaiting.allocated_len();
        let is_kept = awaiting.push(side, timestamp, arrived);
        let grown = awaiting.allocated_len() - before;
        if !self.driver.take_for_window(grown) {
            // The memory released is the memory that was taken, not the current length.
            self.driver.turn_off(self.session, Cause::Refused);
            self.driver.allowance.give(before as u64);
        } else if !is_kept {
            self.driver.close_for(self.session, Cause::Unparsed);
        }
        off(self.session)
    }
}
