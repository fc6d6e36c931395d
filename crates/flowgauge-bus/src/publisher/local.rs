//! The publisher's end of subscribers of the same process.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use flowgauge::base::ring::{Producer, PushError};

use super::counters::SubscriberCounters;
use super::outgoing::Outgoing;
use crate::message::{Batch, Header};
use crate::prefix_set::PrefixSet;

/// The publisher's end of a subscriber of the same process.
pub(super) struct Local {
    pub(super) number: u32,
    pub(super) stream: u64,
    pub(super) prefixes: PrefixSet,
    pub(super) sequence: u64,
    pub(super) is_stalled: bool,
    pub(super) queue: Producer<Batch>,
    pub(super) counters: Arc<SubscriberCounters>,
}

impl Local {
    /// Queues a message; waits for at most `timeout` if the queue is full.
    pub(super) fn send(&mut self, message: &Outgoing, timeout: Option<Duration>) {
        let header = Header {
            encoding: message.encoding,
            is_last: false,
            record_count: message.record_count,
            stream: self.stream,
            sequence: self.sequence,
            position: message.position,
        };
        let record_count = u64::from(message.record_count);
        self.sequence += record_count;
        let batch = Batch { topic: message.topic.clone(), header, payload: message.payload.clone() };
        let is_queued = match (self.queue.try_push(batch), timeout) {
            (Ok(()), _) => true,
            (Err(PushError::Full(batch)), Some(timeout)) if !self.is_stalled => {
                self.queue.push_timeout(batch, timeout).is_ok()
            }
            (Err(_), _) => false,
        };
        self.is_stalled = !is_queued;
        let counter = if is_queued { &self.counters.queued } else { &self.counters.dropped };
        counter.fetch_add(record_count, Relaxed);
    }
}
