//! Messages on their way to the queues of subscribers.

use bytes::Bytes;

use crate::message::Encoding;

/// A complete message.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) topic: Bytes,
    pub(super) encoding: Encoding,
    pub(super) record_count: u32,
    /// Number of records that were published on the topic before this message.
    pub(super) position: u64,
    /// Number of records of the topic that were dropped before this message, because the queue was full.
    pub(super) dropped_count: u64,
    /// True if a subscriber of the same process selects the topic.
    pub(super) has_locals: bool,
    pub(super) payload: Bytes,
}
