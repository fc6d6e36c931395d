//! The publisher: the part that runs on the thread of the capture.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flowgauge::base::ring::ring;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::counters::PublisherStats;
use super::hub::{Control, Hub};
use super::in_process;
use super::link::Link;
use super::outbox::Outbox;
use super::shared::Shared;
use crate::config::PublisherConfig;
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::event::Event;
use crate::lock::lock;
use crate::server::ServerCounters;
use crate::topic::Topic;

/// Time that a dropped publisher takes at most to send what its queues contain.
const LINGER: Duration = Duration::from_secs(1);

/// Time without a new subscription after which all subscribers are assumed to have sent all of theirs.
const SETTLE_TIME: Duration = Duration::from_millis(50);

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
            link: Link {
                config,
                generation: AtomicU64::new(1),
                remote_prefixes: Mutex::default(),
                queued: Notify::new(),
            },
            subscribers: Mutex::default(),
            subscribed: Condvar::new(),
            server,
            left_count: AtomicU64::new(0),
            id: RandomState::new().hash_one(0) as u32,
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
        if !shared.link.config.server.permits_remote {
            parsed.check_is_loopback(endpoint)?;
        }
        let bound = match parsed {
            Endpoint::Local(name) => {
                in_process::register(&name, shared)?;
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
        lock(&shared.outbox).publish(&shared.link, topic, event);
    }

    /// Publishes several events under a topic. Same as [`publish`](Self::publish) for each of them, but the publisher is
    /// locked only once.
    #[inline]
    pub fn publish_all<E: Event>(&self, topic: &Topic, events: &[E]) {
        let shared = &*self.inner.shared;
        let mut outbox = lock(&shared.outbox);
        events.iter().for_each(|event| outbox.publish(&shared.link, topic, event));
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
            || lock(&self.inner.shared.link.remote_prefixes).iter().any(overlaps)
    }

    /// Returns a number that changes whenever the subscriptions change.
    pub(crate) fn generation(&self) -> u64 {
        self.inner.shared.link.generation.load(Acquire)
    }

    /// Sends all incomplete messages.
    pub fn flush(&self) {
        let shared = &*self.inner.shared;
        lock(&shared.outbox).flush_all(&shared.link);
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

impl Inner {
    fn close(&self, timeout: Duration) {
        let Some(thread) = lock(&self.thread).take() else { return };
        let deadline = Instant::now() + timeout;
        let shared = &*self.shared;
        lock(&shared.outbox).close(&shared.link, deadline);
        let _ = self.control.send(Control::Close(deadline));
        // The thread ends at the deadline at the latest.
        let _ = thread.join();
        in_process::unregister(&self.shared);
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
