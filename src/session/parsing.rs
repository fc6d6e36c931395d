//! A parser that processes a flow, and the octets of each direction that the parser did not consume.

use super::awaited::Awaiting;
use super::expectation::Expectation;
use super::octets::Octets;
use super::parser::{End, EndKind, Fault, Input, Missing, Progress};
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::quota::Quota;
use super::receiver::{HEADERS_LEN, MessageMeta, Receiver};
use crate::base::Allowance;
use crate::base::{Side, Timestamp};

/// Interval in nanoseconds between two calls of [`Parser::tick`](super::Parser::tick), in the time of the flow.
const TICK_NS: u64 = 1_000_000_000;

/// Maximum capacity in octets that the buffer of a direction keeps for reuse when it is empty.
const SPARE_LEN: usize = 4096;

/// Length in octets up to which an incomplete message may be buffered even if memory is nearly exhausted.
const MODEST_LEN: usize = 4096;

/// One direction of a parsed flow, with its octets that the parser did not consume.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Buffer of the direction: consumed octets that stay in place until the buffer is compacted, then octets that were
    /// not consumed.
    kept: Vec<u8>,
    /// Number of octets at the start of `kept` that were consumed.
    taken: usize,
    /// Number of octets after the consumed ones that the parser has seen but not consumed.
    seen: usize,
    /// Number of octets of the stream before the octets that were not consumed; if there are none, before the next
    /// octets.
    pub(super) offset: u64,
    /// Number of octets that must be available before the parser is called again.
    pub(super) need: usize,
    /// Capture time of the latest octets of the direction.
    pub(super) captured: Timestamp,
    pub(super) is_done: bool,
    pub(super) is_ended: bool,
}

impl Lane {
    pub(super) fn at(offset: u64, is_ended: bool) -> Self {
        Self { offset, is_ended, ..Self::default() }
    }

    /// Returns the buffered octets that the parser did not consume.
    pub(super) fn rest(&self) -> &[u8] {
        self.kept.get(self.taken..).unwrap_or_default()
    }

    /// Appends octets to the buffer if there is enough memory.
    fn keep(&mut self, bytes: &[u8], memory: &mut Memory<'_>) -> Result<(), Fault> {
        if self.kept.len() + bytes.len() > self.kept.capacity() {
            self.reserve(bytes.len(), memory)?;
        }
        self.kept.extend_from_slice(bytes);
        Ok(())
    }

    /// Ensures that the buffer has capacity for `len` more octets. Buffered octets are moved at most once while a
    /// quarter of them is consumed or appended.
    fn reserve(&mut self, len: usize, memory: &mut Memory<'_>) -> Result<(), Fault> {
        let (len, capacity) = (self.rest().len() + len, self.kept.capacity());
        if len > capacity - capacity / 4 {
            // The length that the parser needs is known, so that there is one allocation for it. Otherwise the capacity
            // is doubled, so that octets are seldom moved.
            let wanted = len.max(self.need).max(2 * capacity).max(64);
            memory.take_for_message(wanted, capacity)?;
            self.drop_taken();
            self.kept.reserve_exact(wanted - self.kept.len());
        } else {
            self.drop_taken();
        }
        Ok(())
    }

    fn drop_taken(&mut self) {
        self.kept.drain(..self.taken);
        self.taken = 0;
    }

    /// Removes the first `len` octets that were not consumed from the buffer.
    fn drop_front(&mut self, len: usize, memory: &mut Memory<'_>) {
        let capacity = self.kept.capacity();
        self.taken += len;
        if self.taken < self.kept.len() {
            if self.taken >= self.kept.len() / 4 {
                self.drop_taken();
            }
            return;
        }
        self.taken = 0;
        if capacity > SPARE_LEN {
            memory.give(capacity as u64);
            self.kept = Vec::new();
        } else {
            self.kept.clear();
        }
    }
}

/// The memory budget for a session, and the memory that the session has allocated.
pub(super) struct Memory<'a> {
    pub(super) allowance: &'a mut Allowance,
    pub(super) charged: &'a mut u64,
    /// Maximum number of octets that are buffered per direction.
    pub(super) side_max: usize,
}

impl Memory<'_> {
    fn take(&mut self, bytes: u64) -> Result<(), Fault> {
        self.allowance.take(bytes).map_err(|_| Fault::NO_MEMORY)?;
        *self.charged += bytes;
        Ok(())
    }

    /// Takes memory for an incomplete message. If memory is nearly exhausted, only short messages receive it, so that a
    /// sender that begins thousands of long messages and completes none does not prevent other flows from being parsed.
    fn take_for_message(&mut self, wanted: usize, capacity: usize) -> Result<(), Fault> {
        if wanted > MODEST_LEN && self.allowance.is_pressed() {
            return Err(Fault::NO_MEMORY);
        }
        self.take((wanted - capacity) as u64)
    }

    fn give(&mut self, bytes: u64) {
        let bytes = bytes.min(*self.charged);
        self.allowance.give(bytes);
        *self.charged -= bytes;
    }
}

/// Memory that a direction of a session may take: the account of all sessions, and the maximum for a direction.
pub(super) struct Capacity<'a> {
    pub(super) allowance: &'a mut Allowance,
    pub(super) side_max: usize,
}

/// Next step of a session after octets were passed to its parser.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The parser continues with the next octets.
    More,
    /// The parser needs no more octets of this direction.
    Done,
    /// The parser cannot read the datagram before one of the other side.
    Early,
    /// The parser stopped with a fault.
    Fault(Fault),
    /// Another protocol follows; `None` if it is unknown. Octets that the parser did not consume are kept.
    Handover(Option<&'static Protocol>),
}

/// The table entry of the protocol to which the port of a flow of datagrams belongs, while another protocol parses the
/// flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortOwner {
    pub(super) entry: u8,
    /// Number of datagrams for which the probe of this protocol will still be called.
    pub(super) left: u8,
}

/// A parser, and the state of both directions of its flow.
#[derive(Debug)]
pub(super) struct Parsing<P> {
    pub(super) parser: P,
    pub(super) protocol: &'static Protocol,
    pub(super) lanes: [Lane; 2],
    /// Number of octets of memory charged for this session in addition to this struct.
    pub(super) charged: u64,
    heap_len: usize,
    pub(super) ticked: Timestamp,
    pub(super) quota: Quota,
    /// Value of [`MessageMeta::received_len`].
    pub(super) received_len: u64,
    pub(super) handover_count: u8,
    pub(super) client: Side,
    pub(super) port_owner: Option<PortOwner>,
    /// True if another flow announced this one: neither this protocol nor one after it names the flow.
    pub(super) is_expected: bool,
    /// Flows that messages announced since the driver expected the last ones.
    pub(super) announced: Vec<Expectation>,
    /// Datagrams of one side that the parser cannot read before one of the other side.
    pub(super) early: Option<Box<Awaiting>>,
}

impl<P: Protocols> Parsing<P> {
    pub(super) fn new(parser: P, protocol: &'static Protocol, client: Side, now: Timestamp) -> Self {
        Self {
            parser,
            protocol,
            lanes: Default::default(),
            charged: 0,
            heap_len: 0,
            ticked: now,
            quota: Quota::new(protocol.message_len_min()),
            received_len: 0,
            handover_count: 0,
            client,
            port_owner: None,
            is_expected: false,
            announced: Vec::new(),
            early: None,
        }
    }

    pub(super) fn meta(&self, from: Role, timestamp: Timestamp) -> MessageMeta {
        let side = if from == Role::Client { self.client } else { self.client.other() };
        let received_len = self.received_len;
        MessageMeta { protocol: self.protocol, from, side, timestamp, received_len }
    }

    /// Counts a segment or datagram with `len` octets of payload.
    #[inline]
    const fn count(&mut self, len: usize) {
        self.received_len = self.received_len.saturating_add(len as u64 + HEADERS_LEN);
        self.quota.earn(len);
    }

    /// Passes the next octets of a direction to the parser, in order.
    #[inline]
    pub(super) fn pass_to_parser(
        &mut self,
        Octets { from, offset, bytes }: Octets<'_>,
        timestamp: Timestamp,
        Capacity { allowance, side_max }: Capacity<'_>,
        receiver: &mut impl Receiver<P>,
    ) -> Outcome {
        self.tick(from, timestamp, receiver);
        self.count(bytes.len());
        let meta = self.meta(from, timestamp);
        let mut memory = Memory { allowance, charged: &mut self.charged, side_max };
        let lane = from.of_mut(&mut self.lanes);
        if lane.is_done {
            return Outcome::Done;
        }
        lane.captured = timestamp;
        let is_direct = lane.kept.is_empty();
        if is_direct {
            lane.offset = offset;
        } else if let Err(fault) = lane.keep(bytes, &mut memory) {
            return Outcome::Fault(fault);
        }
        let (available, seen_len) = if is_direct { (bytes, 0) } else { (lane.rest(), lane.seen) };
        let available_len = available.len();
        if available_len < lane.need {
            return if is_direct { kept_or_fault(lane.keep(bytes, &mut memory)) } else { Outcome::More };
        }
        let (quota, announced) = (&mut self.quota, &mut self.announced);
        let (mut taken, mut new_from) = (0, seen_len);
        let (need, then) = loop {
            let rest = available.get(taken..).unwrap_or_default();
            let input = Input::new(rest, lane.offset + taken as u64, from, timestamp).with_seen_len(new_from);
            let progress = self
                .parser
                .bytes(&input, &mut |message| quota.pass_announcing(&meta, message, announced, receiver));
            let (step, need, then) = match progress {
                Ok(Progress::Took(step)) => (step, 0, Outcome::More),
                Ok(Progress::Early) => (0, 0, Outcome::More),
                Ok(Progress::Needs { taken, need }) => (taken, need, Outcome::More),
                Ok(Progress::Handover { taken, next }) => (taken, 0, Outcome::Handover(next)),
                Ok(Progress::Done) => (rest.len(), 0, Outcome::Done),
                Err(fault) => return Outcome::Fault(fault),
            };
            debug_assert!(step <= rest.len(), "a parser takes what it was offered");
            let step = step.min(rest.len());
            taken += step;
            // A parser may take one message per call. Each further call follows one that has consumed octets.
            let left = rest.len() - step;
            if step > 0 && left > 0 && need <= left && matches!(then, Outcome::More) {
                new_from = 0;
                continue;
            }
            break (need, then);
        };
        lane.is_done |= matches!(then, Outcome::Done);
        let left = available_len - taken;
        lane.offset += taken as u64;
        lane.need = need.max(left + 1);
        lane.seen = left;
        let kept_len = left.max(need);
        if kept_len > memory.side_max && kept_len > self.protocol.message_len_max() {
            return Outcome::Fault(Fault::TOO_LONG);
        }
        if is_direct {
            if left > 0
                && let Err(fault) = lane.keep(bytes.get(taken..).unwrap_or_default(), &mut memory)
            {
                return Outcome::Fault(fault);
            }
        } else {
            lane.drop_front(taken, &mut memory);
        }
        self.charge_heap(allowance).map_or(then, Outcome::Fault)
    }

    /// Passes a datagram to the parser.
    #[inline]
    pub(super) fn datagram(
        &mut self,
        datagram: &super::Datagram<'_>,
        allowance: &mut Allowance,
        receiver: &mut impl Receiver<P>,
    ) -> Outcome {
        self.tick(datagram.from, datagram.timestamp, receiver);
        self.count(datagram.bytes.len());
        let meta = self.meta(datagram.from, datagram.timestamp);
        let (quota, announced) = (&mut self.quota, &mut self.announced);
        let progress = self
            .parser
            .datagram(datagram, &mut |message| quota.pass_announcing(&meta, message, announced, receiver));
        match progress {
            Ok(Progress::Done) => Outcome::Done,
            Ok(Progress::Early) => self.charge_heap(allowance).map_or(Outcome::Early, Outcome::Fault),
            Ok(Progress::Handover { next, .. }) => Outcome::Handover(next),
            Ok(_) => self.charge_heap(allowance).map_or(Outcome::More, Outcome::Fault),
            Err(fault) => Outcome::Fault(fault),
        }
    }

    #[inline]
    fn tick(&mut self, from: Role, now: Timestamp, receiver: &mut impl Receiver<P>) {
        if now.as_nanos().saturating_sub(self.ticked.as_nanos()) >= TICK_NS {
            self.ticked = now;
            let meta = self.meta(from, now);
            let quota = &mut self.quota;
            self.parser.tick(now, &mut |message| quota.pass(&meta, message, receiver));
        }
    }

    /// Charges the memory that the parser has allocated since the last call of this function.
    #[inline]
    fn charge_heap(&mut self, allowance: &mut Allowance) -> Option<Fault> {
        let heap_len = self.parser.heap_len();
        if heap_len == self.heap_len {
            return None;
        }
        let mut memory = Memory { allowance, charged: &mut self.charged, side_max: 0 };
        if heap_len > self.heap_len {
            if let Err(fault) = memory.take((heap_len - self.heap_len) as u64) {
                return Some(fault);
            }
        } else {
            memory.give((self.heap_len - heap_len) as u64);
        }
        self.heap_len = heap_len;
        None
    }

    /// Buffers octets of both directions that an earlier process had buffered, and charges the memory of the parser.
    #[cold]
    pub(super) fn keep_all(&mut self, rests: [&[u8]; 2], allowance: &mut Allowance) -> Result<(), Fault> {
        let mut memory = Memory { allowance, charged: &mut self.charged, side_max: 0 };
        for (lane, rest) in self.lanes.iter_mut().zip(rests) {
            lane.keep(rest, &mut memory)?;
        }
        self.charge_heap(allowance).map_or(Ok(()), Err)
    }

    /// Passes a gap to the parser. Returns whether the parser continues.
    pub(super) fn gap(
        &mut self,
        gap: &crate::reassembler::Gap,
        from: Role,
        timestamp: Timestamp,
        allowance: &mut Allowance,
        receiver: &mut impl Receiver<P>,
    ) -> super::AfterGap {
        let meta = self.meta(from, timestamp);
        let lane = from.of_mut(&mut self.lanes);
        let missing = Missing {
            rest: lane.rest(),
            offset: gap.offset,
            len: gap.len,
            from,
            reason: gap.reason,
            timestamp,
        };
        let quota = &mut self.quota;
        let after = self.parser.gap(&missing, &mut |message| quota.pass(&meta, message, receiver));
        let len = lane.rest().len();
        lane.drop_front(len, &mut Memory { allowance, charged: &mut self.charged, side_max: 0 });
        (lane.offset, lane.need) = (gap.offset.saturating_add(gap.len), 0);
        after
    }

    /// Has the parser report what it keeps, before it is dropped.
    #[cold]
    pub(super) fn finish(&mut self, from: Role, timestamp: Timestamp, receiver: &mut impl Receiver<P>) {
        let (meta, quota) = (self.meta(from, timestamp), &mut self.quota);
        self.parser.finish(&mut |message| quota.pass(&meta, message, receiver));
    }

    /// Passes the end of a direction to the parser. Returns whether the parser needs no more octets of both directions.
    pub(super) fn end(
        &mut self,
        from: Role,
        kind: EndKind,
        timestamp: Timestamp,
        receiver: &mut impl Receiver<P>,
    ) -> bool {
        let meta = self.meta(from, timestamp);
        let lane = from.of_mut(&mut self.lanes);
        if !lane.is_ended {
            lane.is_ended = true;
            if !lane.is_done {
                let end = End { rest: lane.rest(), offset: lane.offset, from, kind, timestamp };
                let quota = &mut self.quota;
                self.parser.end(&end, &mut |message| quota.pass(&meta, message, receiver));
            }
        }
        self.lanes.iter().all(|lane| lane.is_ended || lane.is_done)
    }
}

fn kept_or_fault(kept: Result<(), Fault>) -> Outcome {
    kept.map_or_else(Outcome::Fault, |()| Outcome::More)
}
