//! The publisher: the part that runs on the thread of the capture.

mod hub;
mod local;
mod outbox;
mod payload;

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flowgauge::base::ring::ring;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::config::PublisherConfig;
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::event::Event;
use crate::prefix_set::PrefixSet;
use crate::server::{ServerCounters, ServerStats};
use crate::topic::Topic;
use hub::{Control, Hub};
pub(crate) use local::{LocalReceiver, find_local};
use outbox::Outbox;

/// Time that a dropped publisher takes at most to send what its queues contain.
const LINGER: Duration = Duration::from_secs(1);

/// Time without a new subscription after which all subscribers are assumed to have sent all of theirs.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Number of disconnected subscribers with statistics that are kept.
const CLOSED_COUNT_MAX: usize = 1024;

/// Locks a mutex. After a panic in another thread, the data is still valid: no lock is held across a callback.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Publishes events to subscribers in the same process, on the same host, and over TCP.
///
/// [`publish`](Self::publish) appends an event to a message of its topic. A message is passed to a thread of the
/// publisher when it has the configured length, or after the configured time. This thread has a bounded queue for each
/// subscriber. If a queue is full, the message is dropped for this subscriber only, and counted on both sides.
///
/// A clone publishes through the same sockets. When the last clone is dropped, the publisher takes up to a second to
/// send what its queues contain; [`close`](Self::close) takes the time that the caller permits.
///
/// ```
/// use std::time::Duration;
///
/// use flowgauge::{FileSource, records};
/// use flowgauge_bus::{Publisher, Subscriber, Topic};
///
/// let publisher = Publisher::bind("tcp://127.0.0.1:0")?;
/// let mut subscriber = Subscriber::connect(&publisher.endpoints()[0])?.subscribe("flow.end")?;
/// publisher.wait_for_subscribers(1, Duration::from_secs(5))?;
/// for record in records(FileSource::open("../../examples/data/web.pcap")?) {
///     publisher.publish(&Topic::FLOW_END, &record?);
/// }
/// publisher.close(Duration::from_secs(5));
///
/// let mut packet_count = 0;
/// while let Some(batch) = subscriber.recv(Duration::from_secs(5))? {
///     for record in batch.records() {
///         packet_count += record?.packet_count();
///     }
/// }
/// assert_eq!(subscriber.stats().record_count, 27);
/// assert_eq!(subscriber.stats().lost_count, 0);
/// # assert!(packet_count > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Publisher {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    control: UnboundedSender<Control>,
    thread: Mutex<Option<JoinHandle<()>>>,
    endpoints: Mutex<Vec<String>>,
}

/// Data of the capture's thread, the thread of the sockets, and subscribers of the same process.
pub(crate) struct Shared {
    pub(crate) config: PublisherConfig,
    pub(crate) outbox: Mutex<Outbox>,
    /// Changes whenever the subscriptions change.
    generation: AtomicU64,
    /// The subscriptions of all connected subscribers.
    remote_prefixes: Mutex<PrefixSet>,
    /// Notifies the thread of the sockets of new messages.
    queued: Notify,
    subscribers: Mutex<Subscribers>,
    subscribed: Condvar,
    server: Arc<ServerCounters>,
    /// Number of records that were queued for the thread of the sockets, and whose last subscriber left before they
    /// were sent.
    left_count: AtomicU64,
    /// Random number of this publisher.
    id: u32,
}

/// The subscribers with their counters.
#[derive(Default)]
struct Subscribers {
    list: Vec<Arc<SubscriberCounters>>,
    changed_at: Option<Instant>,
}

impl Subscribers {
    /// Returns the number of connected subscribers with a subscription.
    fn subscribed_count(&self) -> usize {
        let is_subscribed = |counters: &&Arc<SubscriberCounters>| {
            counters.subscription_count.load(Relaxed) > 0 && !counters.is_closed()
        };
        self.list.iter().filter(is_subscribed).count()
    }
}

/// Counters of a subscriber, which a single thread changes.
#[derive(Debug, Default)]
pub(crate) struct SubscriberCounters {
    name: String,
    queued: AtomicU64,
    dropped: AtomicU64,
    subscription_count: AtomicU64,
    closed: AtomicU64,
}

impl SubscriberCounters {
    fn is_closed(&self) -> bool {
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

impl Publisher {
    /// Creates a publisher with the default settings, and binds it to an endpoint: `tcp://HOST:PORT`, `ipc://PATH` or
    /// `inproc://NAME`. Port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// Returns the error of [`new`](Self::new) or [`listen`](Self::listen).
    pub fn bind(endpoint: &str) -> Result<Self, BusError> {
        let publisher = Self::new(PublisherConfig::default())?;
        publisher.listen(endpoint)?;
        Ok(publisher)
    }

    /// Creates a publisher that is not bound yet.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Io`] if the thread of the sockets cannot be started.
    pub fn new(config: PublisherConfig) -> Result<Self, BusError> {
        let (queue, messages) = ring(config.queue_len.max(1));
        let (control, commands) = unbounded_channel();
        let server = Arc::new(ServerCounters::default());
        let shared = Arc::new(Shared {
            outbox: Mutex::new(Outbox::new(queue, config.payload_len)),
            generation: AtomicU64::new(1),
            remote_prefixes: Mutex::default(),
            queued: Notify::new(),
            subscribers: Mutex::default(),
            subscribed: Condvar::new(),
            server,
            left_count: AtomicU64::new(0),
            id: RandomState::new().hash_one(0) as u32,
            config,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let hub = Hub::new(Arc::clone(&shared), messages, commands);
        let thread = thread::Builder::new().name("flowgauge-bus".to_owned()).spawn(move || {
            tokio::task::LocalSet::new().block_on(&runtime, hub.run());
        })?;
        let (thread, endpoints) = (Mutex::new(Some(thread)), Mutex::default());
        Ok(Self { inner: Arc::new(Inner { shared, control, thread, endpoints }) })
    }

    /// Binds the publisher to a further endpoint. Returns the endpoint with its port.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::NotLoopback`] for an address that other hosts can reach, unless the configuration permits
    /// it, [`BusError::Endpoint`] for an endpoint that cannot be parsed, and [`BusError::Socket`] for one that cannot be
    /// bound.
    pub fn listen(&self, endpoint: &str) -> Result<String, BusError> {
        let Inner { shared, control, endpoints, .. } = &*self.inner;
        let parsed = Endpoint::parse(endpoint)?;
        if !shared.config.server.permits_remote {
            parsed.check_is_loopback(endpoint)?;
        }
        let bound = match parsed {
            Endpoint::Local(name) => {
                local::register(&name, shared)?;
                endpoint.to_owned()
            }
            Endpoint::Socket(socket) => {
                let (reply, outcome) = mpsc::channel();
                control.send(Control::Bind(socket, reply)).map_err(|_| BusError::Closed)?;
                let bound = outcome.recv().map_err(|_| BusError::Closed)?;
                bound.map_err(|problem| BusError::Socket { endpoint: endpoint.to_owned(), problem })?
            }
        };
        lock(endpoints).push(bound.clone());
        Ok(bound)
    }

    /// Returns the bound endpoints, with their ports.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        lock(&self.inner.endpoints).clone()
    }

    /// Publishes an event under a topic.
    ///
    /// Does not wait, unless the configuration has [`Overflow::Wait`](crate::Overflow::Wait). An event without
    /// subscribers is not encoded. Allocates once per message, and for each new topic.
    #[inline]
    pub fn publish(&self, topic: &Topic, event: &impl Event) {
        let shared = &*self.inner.shared;
        lock(&shared.outbox).publish(shared, topic, event);
    }

    /// Publishes several events under a topic. Same as [`publish`](Self::publish) for each of them, but the publisher is
    /// locked only once.
    #[inline]
    pub fn publish_all<E: Event>(&self, topic: &Topic, events: &[E]) {
        let shared = &*self.inner.shared;
        let mut outbox = lock(&shared.outbox);
        events.iter().for_each(|event| outbox.publish(shared, topic, event));
    }

    /// Counts an event that is not published, because [`is_wanted`](Self::is_wanted) returned false for its topic.
    pub fn skip(&self, topic: &Topic) {
        lock(&self.inner.shared.outbox).skip(topic);
    }

    /// Returns whether a subscription matches the topic, or another topic that begins with it.
    #[must_use]
    pub fn is_wanted(&self, topic: &Topic) -> bool {
        let topic = topic.as_bytes();
        let overlaps = |prefix: &[u8]| topic.starts_with(prefix) || prefix.starts_with(topic);
        lock(&self.inner.shared.outbox).locals().any(|prefixes| prefixes.iter().any(overlaps))
            || lock(&self.inner.shared.remote_prefixes).iter().any(overlaps)
    }

    /// Returns a number that changes whenever the subscriptions change.
    pub(crate) fn generation(&self) -> u64 {
        self.inner.shared.generation.load(Acquire)
    }

    /// Sends all incomplete messages.
    pub fn flush(&self) {
        let shared = &*self.inner.shared;
        lock(&shared.outbox).flush_all(shared);
    }

    /// Waits until `count` subscribers are connected and have sent their subscriptions. Returns their number.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Timeout`] if there are fewer after `timeout`.
    pub fn wait_for_subscribers(&self, count: usize, timeout: Duration) -> Result<usize, BusError> {
        let shared = &*self.inner.shared;
        let deadline = Instant::now().checked_add(timeout);
        let mut subscribers = lock(&shared.subscribers);
        loop {
            let now = Instant::now();
            let subscribed_count = subscribers.subscribed_count();
            let settled_in = subscribers
                .changed_at
                .map_or(Duration::ZERO, |at| (at + SETTLE_TIME).saturating_duration_since(now));
            if subscribed_count >= count && settled_in.is_zero() {
                return Ok(subscribed_count);
            }
            let rest = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now));
            if rest.is_zero() {
                return Err(BusError::Timeout);
            }
            let wait = if subscribed_count >= count { settled_in } else { Duration::from_secs(1) };
            let waited = shared.subscribed.wait_timeout(subscribers, wait.min(rest));
            subscribers = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> PublisherStats {
        self.inner.shared.stats()
    }

    /// Sends what the queues contain and a last message to each subscriber, and disconnects all of them, in at most
    /// `timeout`. Events that are published later are ignored.
    pub fn close(&self, timeout: Duration) -> PublisherStats {
        self.inner.close(timeout);
        self.stats()
    }
}

impl Shared {
    fn stats(&self) -> PublisherStats {
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
    pub(crate) fn add_subscriber(&self, name: String) -> Arc<SubscriberCounters> {
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
    pub(crate) fn note_subscriptions(&self, counters: &SubscriberCounters, subscription_count: usize) {
        counters.subscription_count.store(subscription_count as u64, Relaxed);
        self.generation.fetch_add(1, Release);
        lock(&self.subscribers).changed_at = Some(Instant::now());
        self.subscribed.notify_all();
    }
}

impl Inner {
    fn close(&self, timeout: Duration) {
        let Some(thread) = lock(&self.thread).take() else { return };
        let deadline = Instant::now() + timeout;
        let shared = &*self.shared;
        lock(&shared.outbox).close(shared, deadline);
        let _ = self.control.send(Control::Close(deadline));
        // The thread ends at the deadline at the latest.
        let _ = thread.join();
        local::unregister(&self.shared);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close(LINGER);
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("endpoints", &self.endpoints()).finish_non_exhaustive()
    }
}
