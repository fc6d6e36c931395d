//! Maximum number of messages that a flow may report: sufficient for any protocol, and bounded in proportion to its
//! input.

use super::credit::Credit;
use super::expectation::Expectation;
use super::expected::EXPECTED_MAX;
use super::protocols::Protocols;
use super::receiver::{MessageMeta, Receiver, SessionEvent};

/// Number of messages that a flow may report independent of its octets; further messages are earned by
/// [`MESSAGE_OCTET_COUNT`](super::MESSAGE_OCTET_COUNT) and [`MESSAGES_PER_PACKET`].
pub const MESSAGE_CREDIT: u64 = 1024;

/// Number of additional messages that a flow may report for each of its segments or datagrams.
pub const MESSAGES_PER_PACKET: u64 = 8;

/// Remaining message quota of a flow, in octets: each message costs those of the shortest message of the protocol.
#[derive(Debug)]
pub(super) struct Quota {
    credit: Credit,
    /// Number of octets for which a flow may report a message.
    cost: u32,
    /// Number of messages that were suppressed since the driver last read this counter.
    pub(super) suppressed_count: u64,
    has_suppressed: bool,
}

impl Quota {
    /// Creates the quota of a flow with messages of a protocol, the shortest of which has `cost` octets.
    pub(super) const fn new(cost: u32) -> Self {
        let credit = Credit::new(MESSAGE_CREDIT * cost as u64);
        Self { credit, cost, suppressed_count: 0, has_suppressed: false }
    }

    /// Sets how much of the quota is left.
    pub(super) const fn with_left(self, left: u64) -> Self {
        Self { credit: Credit::new(left), cost: self.cost, suppressed_count: 0, has_suppressed: false }
    }

    /// Returns how much of the quota is left.
    pub(super) const fn left(&self) -> u64 {
        self.credit.left()
    }

    /// Adds the quota that a segment or datagram with `len` octets of payload earns.
    #[inline]
    pub(super) const fn earn(&mut self, len: usize) {
        self.credit.earn(len as u64 + MESSAGES_PER_PACKET * self.cost as u64);
    }

    /// Passes a message on to the receiver if the quota is sufficient; otherwise suppresses the message.
    #[inline(always)]
    pub(super) fn pass<P: Protocols>(
        &mut self,
        meta: &MessageMeta,
        message: P::Message<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        if P::is_content(&message) || self.credit.spend(self.cost.into()) {
            receiver.message(meta, message);
        } else {
            self.suppress(meta, receiver);
        }
    }

    /// Passes a message on as [`pass`](Self::pass) does, and notes the flow that it announces.
    #[inline(always)]
    pub(super) fn pass_announcing<P: Protocols>(
        &mut self,
        meta: &MessageMeta,
        message: P::Message<'_>,
        announced: &mut Vec<Expectation>,
        receiver: &mut impl Receiver<P>,
    ) {
        if !P::is_content(&message) {
            if !self.credit.spend(self.cost.into()) {
                return self.suppress(meta, receiver);
            }
            if let Some(expectation) = P::expectation(&message) {
                announce(announced, expectation);
            }
        }
        receiver.message(meta, message);
    }

    #[cold]
    fn suppress<P: Protocols>(&mut self, meta: &MessageMeta, receiver: &mut impl Receiver<P>) {
        self.suppressed_count += 1;
        if !std::mem::replace(&mut self.has_suppressed, true) {
            receiver.event(&SessionEvent::Suppressed { meta: *meta });
        }
    }
}

/// Notes a flow that a message announced. At most as many are kept as a driver expects.
#[cold]
#[inline(never)]
fn announce(announced: &mut Vec<Expectation>, expectation: Expectation) {
    if announced.len() < EXPECTED_MAX {
        announced.push(expectation);
    }
}
