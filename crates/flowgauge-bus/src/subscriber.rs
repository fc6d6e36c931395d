//! Subscribers.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use omq_tokio::{
    Context, Endpoint as SocketEndpoint, Message, Options, ReconnectPolicy, SocketType, blocking,
};

use crate::config::SubscriberConfig;
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::message::{Batch, Header};
use crate::publisher::{LocalReceiver, find_local};

/// Maximum number of messages that are taken from a socket at once, and the part of its queue that they are at most: one in
/// this many. The publisher can send further messages only when some were taken, so that it waits if they are too many.
const BATCH_COUNT: usize = 32;
const BATCH_PART: usize = 16;

/// Maximum number of connections and of topics whose numbers are remembered.
const STREAM_COUNT_MAX: usize = 1024;
const TOPIC_COUNT_MAX: usize = 65_536;

/// Counters of a subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionStats {
    /// Number of received messages with records.
    pub message_count: u64,
    /// Number of received records.
    pub record_count: u64,
    /// Number of records that the publisher dropped for this subscriber, because it received too slowly. The publisher
    /// counts the same number.
    pub lost_count: u64,
    /// Number of records that were published on the topics of this subscriber while it was not connected, or that were
    /// in flight when a connection ended. Known if the publisher is the same one as before.
    pub missed_count: u64,
    /// Number of connections from which messages were received.
    pub stream_count: u64,
    /// Number of messages of publishers that have ended.
    pub last_count: u64,
    /// Number of messages that could not be decoded, and were skipped.
    pub malformed_count: u64,
}

/// Receives messages of publishers whose topics begin with one of its prefixes.
///
/// A connection that is lost is made again. Messages for which the subscriber has no time are dropped at the publisher,
/// and counted on both sides ([`SubscriptionStats::lost_count`]). [`Publisher`](crate::Publisher) has an example.
pub struct Subscriber {
    origin: Origin,
    tracking: Tracking,
}

enum Origin {
    Local(LocalReceiver),
    Socket(Socket),
}

/// A socket, and the messages that were taken from it.
struct Socket {
    socket: blocking::Socket,
    received: Vec<Message>,
    /// Number of messages that are taken at once.
    batch_count: usize,
    /// Keeps the thread of the socket.
    _context: Context,
}

/// Numbers of the last messages, from which losses are counted.
#[derive(Debug, Default)]
pub struct Tracking {
    stats: SubscriptionStats,
    /// Next sequence of each stream.
    sequences: HashMap<u64, u64, SeedableRandomState>,
    /// Publisher, stream and next position of each topic.
    positions: HashMap<Box<[u8]>, (u64, u64), SeedableRandomState>,
    is_last: bool,
}

impl Subscriber {
    /// Connects to a publisher with the default settings: `tcp://HOST:PORT`, `ipc://PATH`, or `inproc://NAME` for a
    /// publisher of the same process. A publisher on a socket need not exist yet.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Endpoint`] for an endpoint that cannot be parsed, [`BusError::Socket`] if no socket can be
    /// created, and [`BusError::NoPublisher`] if no publisher of the process has the name.
    pub fn connect(endpoint: &str) -> Result<Self, BusError> {
        Self::connect_with(endpoint, &SubscriberConfig::default())
    }

    /// Connects to a publisher.
    ///
    /// # Errors
    ///
    /// Same as for [`connect`](Self::connect).
    pub fn connect_with(endpoint: &str, config: &SubscriberConfig) -> Result<Self, BusError> {
        let origin = match Endpoint::parse(endpoint)? {
            Endpoint::Local(name) => Origin::Local(find_local(&name, config.high_water_mark)?),
            Endpoint::Socket(socket) => Origin::Socket(Socket::connect(endpoint, socket, config)?),
        };
        Ok(Self { origin, tracking: Tracking::default() })
    }

    /// Adds a prefix; the empty one selects all topics.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Closed`] if the socket was closed.
    pub fn subscribe(mut self, prefix: &str) -> Result<Self, BusError> {
        match &mut self.origin {
            Origin::Local(receiver) => receiver.subscribe(prefix),
            Origin::Socket(socket) => {
                let prefix = Bytes::copy_from_slice(prefix.as_bytes());
                socket.socket.subscribe(prefix).map_err(|_| BusError::Closed)?;
            }
        }
        Ok(self)
    }

    /// Returns the next message with records, and waits for it for at most `timeout`. Returns `None` after that time,
    /// and when the publisher has ended ([`has_ended`](Self::has_ended)).
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Closed`] if the socket was closed.
    pub fn recv(&mut self, timeout: Duration) -> Result<Option<Batch>, BusError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let rest = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => timeout,
            };
            let Some(batch) = self.origin.next(rest, &mut self.tracking)? else {
                self.note_local_end();
                return Ok(None);
            };
            if batch.record_count() > 0 {
                return Ok(Some(batch));
            }
            if self.tracking.is_last {
                return Ok(None);
            }
        }
    }

    /// Counts the records that were dropped after the last message, once a publisher of the same process has ended.
    fn note_local_end(&mut self) {
        if let Origin::Local(receiver) = &self.origin
            && receiver.messages.is_finished()
        {
            self.tracking.stats.lost_count = receiver.dropped_count();
            self.tracking.is_last = true;
        }
    }

    /// Returns whether the last message of a publisher was received, and no other one since.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.tracking.is_last
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> SubscriptionStats {
        self.tracking.stats
    }
}

impl Origin {
    /// Returns the next message that can be decoded, which is counted.
    #[inline]
    fn next(&mut self, timeout: Duration, tracking: &mut Tracking) -> Result<Option<Batch>, BusError> {
        match self {
            Self::Local(receiver) => {
                Ok(receiver.messages.pop_timeout(timeout).inspect(|batch| tracking.note(batch)))
            }
            Self::Socket(socket) => socket.next(timeout, tracking),
        }
    }
}

impl Socket {
    fn connect(text: &str, endpoint: SocketEndpoint, config: &SubscriberConfig) -> Result<Self, BusError> {
        let mut options = Options::new()
            .recv_hwm(u32::try_from(config.queue_len()).unwrap_or(u32::MAX))
            .max_message_size(config.message_len_max)
            .reconnect(ReconnectPolicy::Fixed(config.reconnect_interval));
        options.mechanism = config.security.mechanism();
        let context = Context::new();
        let socket = context.blocking_socket(SocketType::Sub, options);
        let problem = |error: omq_tokio::Error| BusError::Socket {
            endpoint: text.to_owned(),
            problem: error.to_string(),
        };
        socket.connect(endpoint).map_err(problem)?;
        // These messages wait in addition to those in the queue of the socket.
        let batch_count = (config.queue_len() / BATCH_PART).clamp(1, BATCH_COUNT);
        Ok(Self { socket, received: Vec::with_capacity(batch_count), batch_count, _context: context })
    }

    fn next(&mut self, timeout: Duration, tracking: &mut Tracking) -> Result<Option<Batch>, BusError> {
        loop {
            if self.received.is_empty() {
                match self.socket.recv_many_timeout_into(self.batch_count, timeout, &mut self.received) {
                    // Taken from the end.
                    Ok(_) => self.received.reverse(),
                    Err(omq_tokio::Error::Timeout | omq_tokio::Error::WouldBlock) => return Ok(None),
                    Err(_) => return Err(BusError::Closed),
                }
            }
            let Some(message) = self.received.pop() else { return Ok(None) };
            match frames(&message) {
                Ok((topic, header, payload)) => {
                    if let Some(batch) = tracking.message(topic, header, payload) {
                        return Ok(Some(batch));
                    }
                }
                Err(_) => tracking.stats.malformed_count += 1,
            }
        }
    }
}

/// Decodes the frames of a message.
pub(crate) fn decode(message: &Message) -> Result<Batch, BusError> {
    let (topic, header, payload) = frames(message)?;
    Batch::decode(topic, header, payload)
}

/// Returns topic, header and payload of a message.
fn frames(message: &Message) -> Result<(Bytes, &[u8], Bytes), BusError> {
    let (3, Some(topic), Some(header), Some(payload)) =
        (message.len(), message.part_bytes(0), message.part_slice(1), message.part_bytes(2))
    else {
        return Err(BusError::Malformed("a message has three frames"));
    };
    Ok((topic, header, payload))
}

impl Tracking {
    /// Creates the numbers of a subscriber with a given seed of its tables in place of a random one, so that equal messages
    /// take an equal number of instructions.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        let hasher = SeedableRandomState::with_seed(seed, SharedSeed::global_fixed());
        Self {
            sequences: HashMap::with_hasher(hasher.clone()),
            positions: HashMap::with_hasher(hasher),
            ..Self::default()
        }
    }

    /// Decodes and counts the three frames of a message, as a subscriber does with each message of a socket. Returns
    /// `None` for a malformed one.
    pub fn message(&mut self, topic: Bytes, header: &[u8], payload: Bytes) -> Option<Batch> {
        match Batch::decode(topic, header, payload) {
            Ok(batch) => {
                self.note(&batch);
                Some(batch)
            }
            Err(_) => {
                self.stats.malformed_count += 1;
                None
            }
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> SubscriptionStats {
        self.stats
    }

    fn note(&mut self, batch: &Batch) {
        let Header { is_last, record_count, stream, sequence, position, .. } = *batch.header();
        let record_count = u64::from(record_count);
        let Self { stats, sequences, positions, .. } = self;
        // The numbers are those of the publisher; `Header::decode` has tested the two sums below.
        let add = |count: &mut u64, value: u64| *count = count.saturating_add(value);
        self.is_last = is_last;
        add(&mut stats.last_count, u64::from(is_last));
        add(&mut stats.message_count, u64::from(record_count > 0));
        add(&mut stats.record_count, record_count);
        match sequences.get_mut(&stream) {
            Some(next) => {
                add(&mut stats.lost_count, sequence.saturating_sub(*next));
                *next = sequence + record_count;
            }
            None => {
                add(&mut stats.stream_count, 1);
                add(&mut stats.lost_count, sequence);
                if sequences.len() >= STREAM_COUNT_MAX {
                    sequences.clear();
                }
                sequences.insert(stream, sequence + record_count);
            }
        }
        if record_count == 0 {
            return;
        }
        let next = position + record_count;
        match positions.get_mut(&*batch.topic) {
            Some((last_stream, last)) => {
                let is_same_publisher = *last_stream >> 32 == stream >> 32;
                if *last_stream != stream && is_same_publisher {
                    // Records that were dropped on the new connection are in `lost_count`.
                    add(&mut stats.missed_count, position.saturating_sub(*last).saturating_sub(sequence));
                }
                (*last_stream, *last) = (stream, next);
            }
            None => {
                if positions.len() >= TOPIC_COUNT_MAX {
                    positions.clear();
                }
                // A copy: the topic of a batch may be a part of the memory of its message.
                positions.insert(Box::from(&*batch.topic), (stream, next));
            }
        }
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
