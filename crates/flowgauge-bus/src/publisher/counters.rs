//! Subscribers and their counters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::server::ServerStats;

/// The subscribers with their counters.
#[derive(Default)]
pub(super) struct Subscribers {
    pub(super) list: Vec<Arc<SubscriberCounters>>,
    pub(super) changed_at: Option<Instant>,
}

impl Subscribers {
    /// Returns the number of connected subscribers with a subscription.
    pub(super) fn subscribed_count(&self) -> usize {
        let is_subscribed = |counters: &&Arc<SubscriberCounters>| {
            counters.subscription_count.load(Relaxed) > 0 && !counters.is_closed()
        };
        self.list.iter().filter(is_subscribed).count()
    }
}

/// Counters of a subscriber, which a single thread changes.
#[derive(Debug, Default)]
pub(crate) struct SubscriberCounters {
    pub(super) name: String,
    pub(super) queued: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) subscription_count: AtomicU64,
    pub(super) closed: AtomicU64,
}

impl SubscriberCounters {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed) != 0
    }
}

/// Counters of a subscriber at its publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberStats {
    /// Address of the subscriber, or the endpoint that it is connected to.
    pub name: String,
    /// True while the subscriber is connected.
    pub is_connected: bool,
    /// Number of records that were queued for the subscriber.
    pub record_count: u64,
    /// Number of records that were dropped for the subscriber because a queue was full.
    pub dropped_count: u64,
}

/// Counters of a publisher.
///
/// Each published record is in `unsubscribed_count`, or in `record_count` or `dropped_count` of each subscriber whose
/// subscriptions match its topic. Records in an incomplete message are in none of them until it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherStats {
    /// Number of records that were published.
    pub published_count: u64,
    /// Number of these that no subscription matched when they were published, or when they were sent.
    pub unsubscribed_count: u64,
    /// Number of messages that were dropped for all connected subscribers, because the queue to the thread of the
    /// sockets was full. Their records are in `dropped_count` of the subscribers.
    pub queue_dropped_message_count: u64,
    /// The subscribers, including the latest ones that are no longer connected.
    pub subscribers: Vec<SubscriberStats>,
    /// Counters of the bound sockets.
    pub server: ServerStats,
}
