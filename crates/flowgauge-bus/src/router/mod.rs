//! Requests about live flows.

mod answers;
mod hub;
mod tour;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use answers::Answers;
use bytes::Bytes;
use flowgauge::base::FlowKey;
use flowgauge::base::ring::{Consumer, ring};
use flowgauge::record::SortKey;
use flowgauge::{Interface, Pipeline, Sink};
use hub::{Control, Hub};
use omq_tokio::options::WorkloadProfile;
use omq_tokio::{Context, Message, Options, SocketType, blocking};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::config::{ClientSecurity, ServerConfig};
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::packet_ring::PacketRing;
use crate::publisher::lock;
use crate::server::{Server, ServerCounters, ServerStats};

/// Maximum number of flows in an answer.
const TOP_COUNT_MAX: usize = 65_536;

/// Part of the time between two calls of [`Router::answer`] that requests may use which read all flows or packets: one in
/// this many.
const WORK_SHARE: u32 = 8;

/// Maximum time between two calls that counts for the work of the next one.
const CALL_INTERVAL_MAX: Duration = Duration::from_millis(16);

/// Default of [`ServerConfig::high_water_mark`] of a router: answers may be long.
const QUEUE_LEN: usize = 8;

/// A request about the open flows of a pipeline. Its text is the form in which clients send it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// The flow with a key: `key tcp 192.0.2.1:40000 198.51.100.7:443` or `key udp …`.
    Key(FlowKey),
    /// The flow with a Community ID of version 1 and seed 0: `community_id 1:…`.
    CommunityId(String),
    /// The first flows of an order: `top 10 octets`.
    Top {
        /// Number of flows.
        count: usize,
        /// The order.
        key: SortKey,
    },
    /// The counters of the pipeline: `counters`.
    Counters,
    /// The packets of a flow that the packet ring contains: `slice 1:…`.
    Slice(String),
}

impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split(' ').collect();
        match *words.as_slice() {
            ["key", protocol, source, destination] => {
                let address =
                    |text: &str| text.parse::<SocketAddr>().map_err(|_| format!("invalid address `{text}`"));
                let (source, destination) = (address(source)?, address(destination)?);
                if source.is_ipv4() != destination.is_ipv4() {
                    return Err("the addresses are of different IP versions".to_owned());
                }
                match protocol {
                    "tcp" => Ok(Self::Key(FlowKey::tcp(source, destination).0)),
                    "udp" => Ok(Self::Key(FlowKey::udp(source, destination).0)),
                    _ => Err(format!("unknown protocol `{protocol}`; use tcp or udp")),
                }
            }
            ["community_id", id] => Ok(Self::CommunityId(id.to_owned())),
            ["top", count, key] => {
                let count = count.parse().ok().filter(|count| (1..=TOP_COUNT_MAX).contains(count));
                let count =
                    count.ok_or_else(|| format!("the number of flows must be 1 to {TOP_COUNT_MAX}"))?;
                let key = SortKey::ALL.into_iter().find(|known| known.name() == key);
                Ok(Self::Top { count, key: key.ok_or("unknown order")? })
            }
            ["counters"] => Ok(Self::Counters),
            ["slice", id] => Ok(Self::Slice(id.to_owned())),
            _ => Err("unknown request; use key, community_id, top, counters or slice".to_owned()),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use flowgauge::base::Side::{A, B};
        match self {
            Self::Key(key) => {
                let address = |side| SocketAddr::new(key.address(side), key.port(side).unwrap_or(0));
                let protocol = key.protocol().to_string().to_ascii_lowercase();
                write!(f, "key {protocol} {} {}", address(A), address(B))
            }
            Self::CommunityId(id) => write!(f, "community_id {id}"),
            Self::Top { count, key } => write!(f, "top {count} {}", key.name()),
            Self::Counters => f.write_str("counters"),
            Self::Slice(id) => write!(f, "slice {id}"),
        }
    }
}

/// Settings of a [`Router`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouterConfig {
    /// Maximum number of requests that wait for an answer. Default: 64. Further ones are rejected as `busy`.
    pub request_count_max: usize,
    /// Maximum number of requests of one client among them. Default: 8. Further ones are rejected as `busy`.
    pub peer_request_count_max: usize,
    /// Time after which a request without an answer is rejected as `timeout`. Default: 1 s.
    pub timeout: Duration,
    /// Limits of the bound sockets. Default: a queue of 8 answers for each client.
    pub server: ServerConfig,
}

impl Default for RouterConfig {
    fn default() -> Self {
        let server = ServerConfig { high_water_mark: QUEUE_LEN, ..ServerConfig::default() };
        Self { request_count_max: 64, peer_request_count_max: 8, timeout: Duration::from_secs(1), server }
    }
}

/// Counters of a router. Each request is in one of the last five.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouterStats {
    /// Number of received requests.
    pub request_count: u64,
    /// Number of requests that were answered in time.
    pub answered_count: u64,
    /// Number of requests that were rejected because too many waited for an answer.
    pub busy_count: u64,
    /// Number of requests that were rejected because the pipeline did not answer in time.
    pub timeout_count: u64,
    /// Number of requests that could not be understood.
    pub malformed_count: u64,
    /// Number of requests whose client was disconnected, or received too slowly, when the answer was ready.
    pub undeliverable_count: u64,
    /// Counters of the bound sockets.
    pub server: ServerStats,
}

#[derive(Debug, Default)]
struct Counters {
    request: AtomicU64,
    answered: AtomicU64,
    busy: AtomicU64,
    timeout: AtomicU64,
    malformed: AtomicU64,
    undeliverable: AtomicU64,
}

/// A request on its way to the pipeline, with its number.
pub(crate) type Numbered = (u64, Request);

/// Answer of the pipeline: its status and content.
pub(crate) type Answer = (&'static str, Bytes);

/// Answers requests of ZeroMQ clients (DEALER or REQ) about the open flows of a pipeline.
///
/// A thread receives the requests. The thread of the pipeline answers those that wait by [`answer`](Self::answer), for
/// example after each batch of frames, so that no lock is needed.
///
/// A request has two frames: an identifier of at most 16 octets, which the answer repeats, and the text of a
/// [`Request`]. An answer has three: the identifier, the status, and the content. The status is `ok`, or `error`,
/// `busy` or `timeout` with a message as the content. The content is fixed records, a JSON object for `counters`, and a
/// pcapng file for `slice`.
pub struct Router {
    requests: Consumer<Numbered>,
    answers: Answers,
    /// Time at which the last call of [`answer`](Self::answer) ended.
    answered_at: Instant,
    control: UnboundedSender<Control>,
    thread: Option<JoinHandle<()>>,
    endpoint: String,
    counters: Arc<Counters>,
    server: Arc<ServerCounters>,
    peers: Arc<Mutex<Vec<String>>>,
}

impl Router {
    /// Creates a router with the default settings at `tcp://HOST:PORT` or `ipc://PATH`.
    ///
    /// # Errors
    ///
    /// Same as for [`bind_with`](Self::bind_with).
    pub fn bind(endpoint: &str) -> Result<Self, BusError> {
        Self::bind_with(endpoint, RouterConfig::default())
    }

    /// Creates a router.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Endpoint`], [`BusError::NotLoopback`] or [`BusError::Socket`] for an endpoint that cannot be
    /// used, and [`BusError::Io`] if the thread cannot be started.
    pub fn bind_with(endpoint: &str, config: RouterConfig) -> Result<Self, BusError> {
        let parsed = Endpoint::parse(endpoint)?;
        if !config.server.permits_remote {
            parsed.check_is_loopback(endpoint)?;
        }
        let Endpoint::Socket(socket) = parsed else {
            let problem = "a router has tcp:// or ipc://".to_owned();
            return Err(BusError::Endpoint { endpoint: endpoint.to_owned(), problem });
        };
        let request_count_max = config.request_count_max.max(1);
        let (queue, requests) = ring(request_count_max);
        let (control, commands) = unbounded_channel();
        let (counters, server) = (Arc::new(Counters::default()), Arc::new(ServerCounters::default()));
        let peers = Arc::new(Mutex::new(Vec::new()));
        let socket_server = Server::new(config.server.clone(), SocketType::Router, Arc::clone(&server));
        let hub =
            Hub::new(socket_server, config, queue, commands, (Arc::clone(&counters), Arc::clone(&peers)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("flowgauge-router".to_owned()).spawn(move || {
            tokio::task::LocalSet::new().block_on(&runtime, hub.run());
        })?;
        let (reply, outcome) = mpsc::channel();
        let _ = control.send(Control::Bind(socket, reply));
        let bound = outcome.recv().map_err(|_| BusError::Closed)?;
        let endpoint = bound.map_err(|problem| BusError::Socket { endpoint: endpoint.to_owned(), problem });
        let mut router = Self {
            requests,
            answers: Answers::new(request_count_max),
            answered_at: Instant::now(),
            control,
            thread: Some(thread),
            endpoint: String::new(),
            counters,
            server,
            peers,
        };
        router.endpoint = endpoint?;
        Ok(router)
    }

    /// Returns the bound endpoint with its port.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the identities of the connected clients; the address of a client without one.
    #[must_use]
    pub fn peers(&self) -> Vec<String> {
        lock(&self.peers).clone()
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> RouterStats {
        let counters = &self.counters;
        RouterStats {
            request_count: counters.request.load(Relaxed),
            answered_count: counters.answered.load(Relaxed),
            busy_count: counters.busy.load(Relaxed),
            timeout_count: counters.timeout.load(Relaxed),
            malformed_count: counters.malformed.load(Relaxed),
            undeliverable_count: counters.undeliverable.load(Relaxed),
            server: self.server.stats(),
        }
    }

    /// Answers requests that wait, and returns their number. Takes a few nanoseconds if there are none.
    ///
    /// `key` and `counters` are answered at once, in constant time. `community_id`, `top` and `slice` read all open flows,
    /// and `slice` also all packets of the ring. All of them that wait are answered by one pass, which is done in steps:
    /// each call spends at most an eighth of the time since the call before on it, so that no number of requests slows
    /// down the pipeline by more than that. Each flow is as it was when the pass reached it.
    ///
    /// `packets` are the packet ring and the interfaces of the source.
    pub fn answer<K: Sink>(
        &mut self,
        pipeline: &Pipeline<K>,
        packets: Option<(&PacketRing, &[Interface])>,
    ) -> usize {
        let mut count = 0;
        let Self { requests, answers, answered_at, control, .. } = self;
        let now = Instant::now();
        let interval = now.saturating_duration_since(*answered_at).min(CALL_INTERVAL_MAX);
        let waiting = std::iter::from_fn(|| requests.try_pop());
        answers.step(waiting, pipeline, packets, now + interval / WORK_SHARE, &mut |number, answer| {
            count += 1;
            let _ = control.send(Control::Answer(number, answer));
        });
        *answered_at = Instant::now();
        count
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.control.send(Control::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Sends requests to a [`Router`].
pub struct Requester {
    socket: blocking::Socket,
    next_id: u64,
    timeout: Duration,
    _context: Context,
}

impl Requester {
    /// Connects to a router. `identity` names this client at the router; `timeout` is the maximum duration of a request.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Endpoint`] or [`BusError::Socket`] for an endpoint that cannot be used.
    pub fn connect(
        endpoint: &str,
        identity: &str,
        timeout: Duration,
        security: &ClientSecurity,
    ) -> Result<Self, BusError> {
        let Endpoint::Socket(socket_endpoint) = Endpoint::parse(endpoint)? else {
            let problem = "a router has tcp:// or ipc://".to_owned();
            return Err(BusError::Endpoint { endpoint: endpoint.to_owned(), problem });
        };
        let mut options =
            Options::new().identity(identity.as_bytes().to_vec()).workload_profile(WorkloadProfile::Latency);
        options.mechanism = security.mechanism();
        let context = Context::new();
        let socket = context.blocking_socket(SocketType::Dealer, options);
        socket.connect(socket_endpoint).map_err(|error| BusError::Socket {
            endpoint: endpoint.to_owned(),
            problem: error.to_string(),
        })?;
        Ok(Self { socket, next_id: 0, timeout, _context: context })
    }

    /// Sends a request, and waits for its answer. Returns the content.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Timeout`] without an answer in time, [`BusError::Rejected`] with the message of the router,
    /// and [`BusError::Closed`] if the socket was closed.
    pub fn request(&mut self, request: &Request) -> Result<Bytes, BusError> {
        let deadline = Instant::now() + self.timeout;
        let id = self.next_id.to_be_bytes();
        self.next_id += 1;
        let text = Bytes::from(request.to_string());
        let message = Message::multipart([Bytes::copy_from_slice(&id), text]);
        self.socket.send_timeout(message, self.timeout).map_err(|error| failure(&error))?;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let answer = self.socket.recv_timeout(rest).map_err(|error| failure(&error))?;
            // Answers to earlier requests, which took too long, are skipped.
            if answer.part_slice(0) != Some(&id) {
                continue;
            }
            let content = answer.part_bytes(2).ok_or(BusError::Malformed("an answer has three frames"))?;
            return match answer.part_slice(1) {
                Some(b"ok") => Ok(content),
                Some(b"timeout") => Err(BusError::Timeout),
                _ => Err(BusError::Rejected(String::from_utf8_lossy(&content).into_owned())),
            };
        }
    }
}

fn failure(error: &omq_tokio::Error) -> BusError {
    match error {
        omq_tokio::Error::Timeout | omq_tokio::Error::WouldBlock => BusError::Timeout,
        _ => BusError::Closed,
    }
}

impl fmt::Debug for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requester").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
