//! Protocol, client and times of a transaction.

use crate::base::{Side, Timestamp};
use crate::session::{MessageMeta, Protocol, Role};

/// Protocol, client and times of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) protocol: &'static Protocol,
    pub(super) client: Side,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// Octets that the parsers of the flow had received with the last message.
    pub(super) received_len: u64,
}

impl Span {
    /// Returns the span of a message.
    pub(super) const fn of(meta: &MessageMeta) -> Self {
        let client = match meta.from {
            Role::Client => meta.side,
            Role::Server => meta.side.other(),
        };
        Self {
            protocol: meta.protocol,
            client,
            start: meta.timestamp,
            end: meta.timestamp,
            received_len: meta.received_len,
        }
    }

    pub(super) fn extend(&mut self, meta: &MessageMeta) {
        self.start = self.start.min(meta.timestamp);
        self.end = self.end.max(meta.timestamp);
        self.received_len = self.received_len.max(meta.received_len);
    }
}
