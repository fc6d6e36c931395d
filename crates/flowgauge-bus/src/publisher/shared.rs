//! Data of all threads of a publisher.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::counters::{PublisherStats, SubscriberCounters, SubscriberStats, Subscribers};
use super::link::Link;
use super::outbox::Outbox;
use crate::lock::lock;
use crate::server::ServerCounters;

/// Number of disconnected subscribers with statistics that are kept.
const CLOSED_COUNT_MAX: usize = 1024;

/// Data of the capture's thread, the thread of the sockets, and subscribers of the same process.
pub(crate) struct Shared {
    pub(super) link: Link,
    pub(super) outbox: Mutex<Outbox>,
    pub(super) subscribers: Mutex<Subscribers>,
    pub(super) subscribed: Condvar,
    pub(super) server: Arc<ServerCounters>,
    /// Number of records that were queued for the thread of the sockets, and whose last subscriber left before they
    /// were sent.
    pub(super) left_count: AtomicU64,
    /// Random number of this publisher.
    pub(super) id: u32,
}

impl Shared {
    pub(super) fn stats(&self) -> PublisherStats {
        let mut stats = PublisherStats { server: self.server.stats(), ..PublisherStats::default() };
        lock(&self.outbox).add_stats(&mut stats);
        stats.unsubscribed_count += self.left_count.load(Relaxed);
        stats.subscribers = lock(&self.subscribers)
            .list
            .iter()
            .map(|counters| SubscriberStats {
                name: counters.name.clone(),
                is_connected: !counters.is_closed(),
                record_count: counters.queued.load(Relaxed),
                dropped_count: counters.dropped.load(Relaxed),
            })
            .collect();
        stats
    }

    /// Adds a subscriber without subscriptions to the list.
    pub(super) fn add_subscriber(&self, name: String) -> Arc<SubscriberCounters> {
        let counters = Arc::new(SubscriberCounters { name, ..SubscriberCounters::default() });
        let mut subscribers = lock(&self.subscribers);
        let closed_count = subscribers.list.iter().filter(|counters| counters.is_closed()).count();
        if closed_count >= CLOSED_COUNT_MAX
            && let Some(oldest) = subscribers.list.iter().position(|counters| counters.is_closed())
        {
            subscribers.list.remove(oldest);
        }
        subscribers.list.push(Arc::clone(&counters));
        counters
    }

    /// Marks all topics for a new search of their subscribers.
    pub(super) fn note_subscriptions(&self, counters: &SubscriberCounters, subscription_count: usize) {
        counters.subscription_count.store(subscription_count as u64, Relaxed);
        self.link.generation.fetch_add(1, Release);
        lock(&self.subscribers).changed_at = Some(Instant::now());
        self.subscribed.notify_all();
    }
}
