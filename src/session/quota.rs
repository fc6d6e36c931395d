//! How many messages a flow may report: enough for any protocol, and not so many that output outgrows input.

use super::credit::Credit;
use super::protocols::Protocols;
use super::session::{About, Receiver, SessionEvent};

/// Messages that a flow may report whatever its octets; see [`MESSAGE_OCTET_COUNT`].
pub const MESSAGE_CREDIT: u64 = 1024;

/// Messages that each segment or datagram of a flow adds to them.
pub const MESSAGES_PER_PACKET: u64 = 8;

/// Octets of payload of which each multiple adds one more.
///
/// A conversation of short commands and replies has a packet for each, and one that packs many into a packet has more to say
/// than this in each. Pieces of bodies ([`Parser::is_content`](super::Parser::is_content)) are not counted, since they are no longer than what was sent.
pub const MESSAGE_OCTET_COUNT: u64 = 16;

/// What a flow may still report, in octets.
#[derive(Debug)]
pub(super) struct Quota {
    credit: Credit,
    /// Messages that were left out since the driver asked.
    pub(super) suppressed_count: u64,
    has_suppressed: bool,
}

impl Quota {
    pub(super) const fn new() -> Self {
        let credit = Credit::new(MESSAGE_CREDIT * MESSAGE_OCTET_COUNT);
        Self { credit, suppressed_count: 0, has_suppressed: false }
    }

    /// A segment or a datagram came.
    #[inline]
    pub(super) const fn earn(&mut self, len: usize) {
        self.credit.earn(len as u64 + MESSAGES_PER_PACKET * MESSAGE_OCTET_COUNT);
    }

    /// Passes a message on, or leaves it out.
    #[inline(always)]
    pub(super) fn pass<P: Protocols>(
        &mut self,
        about: &About,
        message: P::Message<'_>,
        receiver: &mut impl Receiver<P>,
    ) {
        if P::is_content(&message) || self.credit.spend(MESSAGE_OCTET_COUNT) {
            receiver.message(about, message);
        } else {
            self.suppress(about, receiver);
        }
    }

    #[cold]
    fn suppress<P: Protocols>(&mut self, about: &About, receiver: &mut impl Receiver<P>) {
        self.suppressed_count += 1;
        if !std::mem::replace(&mut self.has_suppressed, true) {
            receiver.event(&SessionEvent::Suppressed { about: *about });
        }
    }
}
