//! Links between two stages of a pipeline.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use flowgauge::base::ring::{Consumer, Producer, PushError, ring};
use omq_tokio::{Context, Message, Options, SocketType, TrySendError, blocking};

use crate::config::{ClientSecurity, ServerConfig};
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::lock::lock;
use crate::message::{Batch, Encoding, Header};
use crate::subscriber::decode;
use crate::topic::Topic;

/// The other ends of the pairs that are bound to `inproc://NAME` and not connected yet.
static WAITING: Mutex<BTreeMap<String, Link>> = Mutex::new(BTreeMap::new());

/// Maximum length of a message in octets.
const MESSAGE_LEN_MAX: usize = 16 << 20;

/// One of two ends that exchange messages with each other, without topics to select: a link between two stages of a
/// pipeline, in one process or in two.
///
/// Nothing is dropped: an end with a full queue does not accept further messages.
///
/// ```
/// use std::time::Duration;
///
/// use flowgauge_bus::{Encoding, Pair, Topic};
///
/// let mut reader = Pair::bind("inproc://stages", 64)?;
/// let mut tracker = Pair::connect("inproc://stages", 64)?;
/// reader.send(&Topic::new("frames")?, Encoding::Ndjson, 1, "{}\n")?;
/// let batch = tracker.recv(Duration::from_secs(1))?.expect("a message");
/// assert_eq!(batch.lines().next(), Some("{}"));
/// # Ok::<(), flowgauge_bus::BusError>(())
/// ```
pub struct Pair {
    link: LinkKind,
    sequence: u64,
}

enum LinkKind {
    Local(Link),
    Socket { socket: blocking::Socket, _context: Context },
}

struct Link {
    queue: Producer<Batch>,
    received: Consumer<Batch>,
}

impl Pair {
    /// Binds one end to `inproc://NAME`, `ipc://PATH`, or `tcp://HOST:PORT` with a loopback address. At most
    /// `queue_len` messages wait in each direction.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Endpoint`], [`BusError::NotLoopback`] or [`BusError::Socket`] for an endpoint that cannot be
    /// used.
    pub fn bind(endpoint: &str, queue_len: usize) -> Result<Self, BusError> {
        let config = ServerConfig { high_water_mark: queue_len, ..ServerConfig::default() };
        Self::bind_with(endpoint, &config).map(|(pair, _)| pair)
    }

    /// Binds one end with other settings. Returns the end, and the endpoint with its port.
    ///
    /// # Errors
    ///
    /// Same as for [`bind`](Self::bind).
    pub fn bind_with(endpoint: &str, config: &ServerConfig) -> Result<(Self, String), BusError> {
        let parsed = Endpoint::parse(endpoint)?;
        if !config.permits_remote {
            parsed.check_is_loopback(endpoint)?;
        }
        match parsed {
            Endpoint::Local(name) => {
                let queue_len = config.high_water_mark.max(1);
                let ((queue, other_received), (other_queue, received)) = (ring(queue_len), ring(queue_len));
                let mut waiting = lock(&WAITING);
                // An entry whose other end was dropped is replaced.
                if waiting.get(&name).is_some_and(|link| !link.queue.is_closed()) {
                    let problem = "the name is already bound in this process".to_owned();
                    return Err(BusError::Socket { endpoint: endpoint.to_owned(), problem });
                }
                waiting.insert(name, Link { queue: other_queue, received: other_received });
                let link = LinkKind::Local(Link { queue, received });
                Ok((Self { link, sequence: 0 }, endpoint.to_owned()))
            }
            Endpoint::Socket(socket_endpoint) => {
                let mut options = options(config.high_water_mark);
                options.mechanism = config.security.mechanism();
                let (socket, context) = socket(options);
                let bound = socket.bind(socket_endpoint).map_err(|error| problem(endpoint, &error))?;
                Ok((
                    Self { link: LinkKind::Socket { socket, _context: context }, sequence: 0 },
                    bound.to_string(),
                ))
            }
        }
    }

    /// Connects to the end that is bound to an endpoint. Over IPC and TCP, that end need not exist yet.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Endpoint`] or [`BusError::Socket`] for an endpoint that cannot be used, and
    /// [`BusError::NoPublisher`] if no end of the process is bound to the name.
    pub fn connect(endpoint: &str, queue_len: usize) -> Result<Self, BusError> {
        Self::connect_with(endpoint, queue_len, &ClientSecurity::None)
    }

    /// Connects with credentials.
    ///
    /// # Errors
    ///
    /// Same as for [`connect`](Self::connect).
    pub fn connect_with(
        endpoint: &str,
        queue_len: usize,
        security: &ClientSecurity,
    ) -> Result<Self, BusError> {
        let link = match Endpoint::parse(endpoint)? {
            Endpoint::Local(name) => {
                let link = lock(&WAITING).remove(&name);
                LinkKind::Local(link.ok_or(BusError::NoPublisher { name })?)
            }
            Endpoint::Socket(socket_endpoint) => {
                let mut options = options(queue_len);
                options.mechanism = security.mechanism();
                let (socket, context) = socket(options);
                socket.connect(socket_endpoint).map_err(|error| problem(endpoint, &error))?;
                LinkKind::Socket { socket, _context: context }
            }
        };
        Ok(Self { link, sequence: 0 })
    }

    /// Sends a message with `record_count` records: fixed records, or lines of text. Does not wait. The other end refuses
    /// a message of a socket whose payload has another number of records.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Full`] if the queue is full, and [`BusError::Closed`] if the other end was dropped or the
    /// socket was closed.
    pub fn send(
        &mut self,
        topic: &Topic,
        encoding: Encoding,
        record_count: u32,
        payload: impl Into<Bytes>,
    ) -> Result<(), BusError> {
        let header = Header {
            encoding,
            is_last: false,
            record_count,
            stream: 0,
            sequence: self.sequence,
            position: self.sequence,
        };
        let (topic, payload) = (Bytes::copy_from_slice(topic.as_bytes()), payload.into());
        match &mut self.link {
            LinkKind::Local(link) => match link.queue.try_push(Batch { topic, header, payload }) {
                Ok(()) => {}
                Err(PushError::Full(_)) => return Err(BusError::Full),
                Err(PushError::Closed(_)) => return Err(BusError::Closed),
            },
            LinkKind::Socket { socket, .. } => {
                let header = Bytes::copy_from_slice(&header.encode());
                match socket.try_send(Message::multipart([topic, header, payload])) {
                    Ok(()) => {}
                    Err(TrySendError::Full(_)) => return Err(BusError::Full),
                    Err(_) => return Err(BusError::Closed),
                }
            }
        }
        self.sequence += u64::from(record_count);
        Ok(())
    }

    /// Returns the next message, and waits for it for at most `timeout`; `None` after that time.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Malformed`] for a message that is not one of this library, and [`BusError::Closed`] if all
    /// messages were received and the other end was dropped.
    pub fn recv(&mut self, timeout: Duration) -> Result<Option<Batch>, BusError> {
        match &mut self.link {
            LinkKind::Local(link) => match link.received.pop_timeout(timeout) {
                None if link.received.is_finished() => Err(BusError::Closed),
                batch => Ok(batch),
            },
            LinkKind::Socket { socket, .. } => match socket.recv_timeout(timeout) {
                Ok(message) => decode(&message).map(Some),
                Err(omq_tokio::Error::Timeout | omq_tokio::Error::WouldBlock) => Ok(None),
                Err(_) => Err(BusError::Closed),
            },
        }
    }
}

fn options(queue_len: usize) -> Options {
    let high_water_mark = u32::try_from(queue_len).unwrap_or(u32::MAX);
    // A pair that is dropped sends what it accepted.
    Options::new()
        .send_hwm(high_water_mark)
        .recv_hwm(high_water_mark)
        .max_message_size(MESSAGE_LEN_MAX)
        .linger(Duration::from_secs(1))
}

fn socket(options: Options) -> (blocking::Socket, Context) {
    let context = Context::new();
    (context.blocking_socket(SocketType::Pair, options), context)
}

fn problem(endpoint: &str, error: &omq_tokio::Error) -> BusError {
    BusError::Socket { endpoint: endpoint.to_owned(), problem: error.to_string() }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}
