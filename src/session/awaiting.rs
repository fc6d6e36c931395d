//! Flows whose announcement may be captured after their first octets, because one direction of the capture is late.
//!
//! What arrives in such a flow is kept for at most [`AWAITED_TIME`], until another flow announces it. Only flows that
//! neither content nor port names wait, and of these only streams between hosts with a parser that announces streams, and
//! datagrams with which an announced protocol begins.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use super::datagram_probing::PROBE_DATAGRAM_COUNT_MAX;
use super::driver::{Started, Turn, off, side_of};
use super::index::Index;
use super::octets::{Octets, Payload};
use super::probing::{Found, StreamProbing};
use super::protocol::{DatagramOpening, Role};
use super::protocols::Protocols;
use super::receiver::Receiver;
use super::session::State;
use super::transition::Cause;
use crate::base::{FlowKey, Side, Timestamp};
use crate::reassembler::Gap;

/// Time after the first octets of a flow within which its announcement may be captured.
pub const AWAITED_TIME: Duration = Duration::from_millis(50);

/// Maximum number of octets of a flow that are kept until its announcement.
pub const AWAITED_LEN_MAX: usize = 64 << 10;

/// Maximum number of segments or datagrams of a flow that are kept until its announcement.
pub const AWAITED_COUNT_MAX: usize = 128;

/// Maximum number of datagrams of a flow that are kept until one of the other side.
const EARLY_COUNT_MAX: usize = PROBE_DATAGRAM_COUNT_MAX as usize;

/// Maximum number of flows that are known to announce others. At the limit, the first one is forgotten.
const ANNOUNCER_COUNT_MAX: usize = 64;

/// What arrives in a flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrived<'a> {
    Octets { offset: u64, bytes: &'a [u8] },
    Datagram(Payload<'a>),
    Gap(Gap),
    Fin,
}

/// What arrived in a flow, without its octets.
#[derive(Debug)]
struct Kept {
    side: Side,
    timestamp: Timestamp,
    /// Number of octets that are kept.
    len: usize,
    kind: KeptKind,
}

#[derive(Clone, Copy, Debug)]
enum KeptKind {
    Octets { offset: u64 },
    Datagram { len: usize },
    Gap(Gap),
    Fin,
}

/// A flow that waits for its announcement, with what has arrived in order.
#[derive(Debug, Default)]
pub(super) struct Awaiting {
    kept: Vec<Kept>,
    bytes: Vec<u8>,
}

impl Awaiting {
    /// Returns the time up to which the announcement may be captured.
    fn until(&self) -> Timestamp {
        let first = self.kept.first().map_or(Timestamp::ZERO, |first| first.timestamp);
        Timestamp::from_nanos(first.as_nanos().saturating_add(AWAITED_TIME.as_nanos() as u64))
    }

    /// Keeps what arrived. Returns false if that is too much, or too late.
    fn push(&mut self, side: Side, timestamp: Timestamp, arrived: Arrived<'_>) -> bool {
        let (kind, bytes): (_, &[u8]) = match arrived {
            Arrived::Octets { offset, bytes } => (KeptKind::Octets { offset }, bytes),
            Arrived::Datagram(Payload { bytes, len }) => (KeptKind::Datagram { len }, bytes),
            Arrived::Gap(gap) => (KeptKind::Gap(gap), &[]),
            Arrived::Fin => (KeptKind::Fin, &[]),
        };
        let is_late = !self.kept.is_empty() && timestamp > self.until();
        if is_late || self.kept.len() >= AWAITED_COUNT_MAX || self.bytes.len() + bytes.len() > AWAITED_LEN_MAX
        {
            return false;
        }
        self.kept.push(Kept { side, timestamp, len: bytes.len(), kind });
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// Returns what arrived, in order: sender, capture time, and content.
    fn arrived(&self) -> impl Iterator<Item = (Side, Timestamp, Arrived<'_>)> {
        let mut rest = self.bytes.as_slice();
        self.kept.iter().filter_map(move |kept| {
            let (bytes, after) = rest.split_at_checked(kept.len)?;
            rest = after;
            let arrived = match kept.kind {
                KeptKind::Octets { offset } => Arrived::Octets { offset, bytes },
                KeptKind::Datagram { len } => Arrived::Datagram(Payload { bytes, len }),
                KeptKind::Gap(gap) => Arrived::Gap(gap),
                KeptKind::Fin => Arrived::Fin,
            };
            Some((kept.side, kept.timestamp, arrived))
        })
    }

    pub(super) fn allocated_len(&self) -> usize {
        size_of::<Self>() + self.kept.capacity() * size_of::<Kept>() + self.bytes.capacity()
    }
}

/// The flows whose parsers announce streams, in the order in which they began. They are not removed at their end: a
/// stream between their hosts waits in vain then.
#[derive(Debug, Default)]
pub(super) struct Announcers(VecDeque<FlowKey>);

impl Announcers {
    /// Adds a flow.
    #[cold]
    pub(super) fn insert(&mut self, key: &FlowKey) {
        if self.may_announce(key) {
            return;
        }
        if self.0.len() >= ANNOUNCER_COUNT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(*key);
    }

    /// Returns whether one of the flows may announce a flow: it has the same hosts.
    fn may_announce(&self, key: &FlowKey) -> bool {
        let hosts = |key: &FlowKey| [Side::A, Side::B].map(|side| key.address(side));
        let scope = |key: &FlowKey| (key.protocol(), key.scope(), key.vni(), key.vlan_ids());
        let [a, b] = hosts(key);
        self.0
            .iter()
            .any(|known| (hosts(known) == [a, b] || hosts(known) == [b, a]) && scope(known) == scope(key))
    }
}

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
                Turn { driver, session, context: &context, receiver: *receiver }.datagram(side, payload);
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
                Arrived::Datagram(payload) => turn.datagram(side, payload),
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
