//! Requests about live flows.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flowgauge::base::ring::{Consumer, Producer, ring};
use flowgauge::base::{EndReason, FlowKey};
use flowgauge::codec::FixedRecord;
use flowgauge::record::{SortKey, community_id};
use flowgauge::tracker::FlowView;
use flowgauge::{Interface, Pipeline, Sink};
use omq_tokio::engine::PeerDriverData;
use omq_tokio::options::WorkloadProfile;
use omq_tokio::{Context, Endpoint as SocketEndpoint, Message, Options, SocketType, blocking};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};

use crate::config::{ClientSecurity, ServerConfig};
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::packet_ring::PacketRing;
use crate::patience::Patience;
use crate::publisher::lock;
use crate::server::{Server, ServerCounters, ServerEvent, ServerStats};

/// Maximum number of flows in an answer.
const TOP_COUNT_MAX: usize = 65_536;

/// Maximum length of the identifier that a client gives a request.
const ID_LEN_MAX: usize = 16;

/// Interval of the search for requests without an answer in time.
const TICK: Duration = Duration::from_millis(10);

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
    /// Time after which a request without an answer is rejected as `timeout`. Default: 1 s.
    pub timeout: Duration,
    /// Limits of the bound sockets.
    pub server: ServerConfig,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self { request_count_max: 64, timeout: Duration::from_secs(1), server: ServerConfig::default() }
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
type Numbered = (u64, Request);

/// Answer of the pipeline: its status and content.
type Answer = (&'static str, Bytes);

enum Control {
    Bind(SocketEndpoint, mpsc::Sender<Result<String, String>>),
    Answer(u64, Answer),
    Close,
}

/// Answers requests of ZeroMQ clients (DEALER or REQ) about the open flows of a pipeline.
///
/// A thread receives the requests. The thread of the pipeline answers those that wait by [`answer`](Self::answer), for
/// example after each batch of frames, so that an answer shows all flows at one point in time, and no lock is needed.
///
/// A request has two frames: an identifier of at most 16 octets, which the answer repeats, and the text of a
/// [`Request`]. An answer has three: the identifier, the status, and the content. The status is `ok`, or `error`,
/// `busy` or `timeout` with a message as the content. The content is fixed records, a JSON object for `counters`, and a
/// pcapng file for `slice`.
pub struct Router {
    requests: Consumer<Numbered>,
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
        let (queue, requests) = ring(config.request_count_max.max(1));
        let (control, commands) = unbounded_channel();
        let (counters, server) = (Arc::new(Counters::default()), Arc::new(ServerCounters::default()));
        let peers = Arc::new(Mutex::new(Vec::new()));
        let hub = Hub {
            server: Server::new(config.server.clone(), SocketType::Router, Arc::clone(&server)),
            config,
            queue,
            control: commands,
            waiting: HashMap::new(),
            next_number: 0,
            counters: Arc::clone(&counters),
            names: HashMap::new(),
            peers: Arc::clone(&peers),
        };
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

    /// Answers the requests that wait. Does nothing else if there are none.
    ///
    /// `key` takes constant time. `community_id`, `top` and `slice` read all open flows, and `slice` also all packets of
    /// the ring. `packets` are the packet ring and the interfaces of the source.
    pub fn answer<K: Sink>(
        &mut self,
        pipeline: &Pipeline<K>,
        packets: Option<(&PacketRing, &[Interface])>,
    ) -> usize {
        let mut count = 0;
        while let Some((number, request)) = self.requests.try_pop() {
            count += 1;
            let _ = self.control.send(Control::Answer(number, answer(&request, pipeline, packets)));
        }
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

fn answer<K: Sink>(
    request: &Request,
    pipeline: &Pipeline<K>,
    packets: Option<(&PacketRing, &[Interface])>,
) -> Answer {
    let not_found = || ("error", Bytes::from_static(b"no open flow matches"));
    let encode = |view: &FlowView<'_>| FixedRecord::encode(&view.record(EndReason::ActiveTimeout));
    let has_id = |view: &FlowView<'_>, id: &str| community_id(view.key(), 0).as_str() == id;
    match request {
        Request::Key(key) => match pipeline.find(key).and_then(|id| pipeline.flow(id)) {
            Some((view, _)) => ("ok", Bytes::copy_from_slice(&encode(&view))),
            None => not_found(),
        },
        Request::CommunityId(id) => {
            let records: Vec<u8> = pipeline
                .flows()
                .filter(|(view, _)| has_id(view, id))
                .flat_map(|(view, _)| encode(&view))
                .collect();
            if records.is_empty() { not_found() } else { ("ok", records.into()) }
        }
        Request::Top { count, key } => {
            let mut flows: Vec<_> =
                pipeline.flows().filter_map(|(view, _)| Some((view.sort_value(*key)?, view))).collect();
            let order = |flow: &(u64, FlowView<'_>)| std::cmp::Reverse(flow.0);
            if *count < flows.len() {
                flows.select_nth_unstable_by_key(*count, order);
                flows.truncate(*count);
            }
            flows.sort_by_key(order);
            ("ok", flows.iter().flat_map(|(_, view)| encode(view)).collect::<Vec<u8>>().into())
        }
        Request::Counters => {
            let stats = pipeline.stats();
            let text = format!(
                "{{\"frame_count\":{},\"octet_count\":{},\"packet_count\":{},\"flow_count\":{},\
                 \"started_count\":{},\"now_ns\":{}}}\n",
                stats.frame_count,
                stats.octet_count,
                stats.tracker.packet_count,
                pipeline.flow_count(),
                stats.tracker.started_count,
                pipeline.now().as_nanos(),
            );
            ("ok", text.into())
        }
        Request::Slice(id) => {
            let Some((ring, interfaces)) = packets else {
                return ("error", Bytes::from_static(b"the program keeps no packets"));
            };
            let key = pipeline.flows().find(|(view, _)| has_id(view, id)).map(|(view, _)| *view.key());
            match key.map(|key| ring.slice(&key, interfaces)) {
                Some((file, _)) => ("ok", file.into()),
                None => not_found(),
            }
        }
    }
}

/// A request that waits for its answer.
struct Waiting {
    peer: u64,
    /// The frames before the text, which the answer repeats.
    envelope: Vec<Bytes>,
    deadline: Instant,
}

/// The thread of the sockets.
struct Hub {
    server: Server,
    config: RouterConfig,
    queue: Producer<Numbered>,
    control: UnboundedReceiver<Control>,
    waiting: HashMap<u64, Waiting>,
    next_number: u64,
    counters: Arc<Counters>,
    names: HashMap<u64, String>,
    peers: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                command = self.control.recv() => match command {
                    Some(Control::Bind(endpoint, reply)) => {
                        let bound = self.server.bind(&endpoint).await;
                        let bound = bound.map(|bound| bound.to_string()).map_err(|error| error.to_string());
                        let _ = reply.send(bound);
                    }
                    Some(Control::Answer(number, answer)) => {
                        // Otherwise it was rejected before.
                        if let Some(waiting) = self.waiting.remove(&number) {
                            let counter = |counters: &Counters| counters.answered.fetch_add(1, Relaxed);
                            self.reply(waiting.peer, waiting.envelope, answer, counter);
                        }
                    }
                    Some(Control::Close) | None => {
                        let deadline = Instant::now() + Duration::from_millis(200);
                        self.server.drain(deadline, &Patience::default()).await;
                        return;
                    }
                },
                event = self.server.next() => self.process(event),
                _ = ticks.tick() => self.reject_late(),
            }
        }
    }

    fn process(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Connected { peer, name } => {
                self.names.insert(peer, name);
                self.list_peers();
            }
            ServerEvent::Disconnected { peer } => {
                self.names.remove(&peer);
                self.list_peers();
            }
            ServerEvent::Message { peer, message } => self.request(peer, &message),
            ServerEvent::Command { .. } => {}
        }
    }

    fn list_peers(&self) {
        let mut names: Vec<_> = self.names.values().cloned().collect();
        names.sort();
        *lock(&self.peers) = names;
    }

    fn request(&mut self, peer: u64, message: &Message) {
        self.counters.request.fetch_add(1, Relaxed);
        // A client of the type REQ sends an empty frame first.
        let is_delimited = message.part_slice(0) == Some(&[]);
        let (id_index, text_index) = if is_delimited { (1, 2) } else { (0, 1) };
        let is_complete = message.len() == text_index + 1;
        let id = message.part_bytes(id_index).filter(|id| is_complete && id.len() <= ID_LEN_MAX);
        let Some(id) = id else {
            self.counters.malformed.fetch_add(1, Relaxed);
            self.server.disconnect(peer);
            return;
        };
        let mut envelope = if is_delimited { vec![Bytes::new()] } else { Vec::new() };
        envelope.push(id);
        let text = message.part_slice(text_index).and_then(|text| std::str::from_utf8(text).ok());
        let request = match text.ok_or_else(|| "the request is not UTF-8".to_owned()).and_then(str::parse) {
            Ok(request) => request,
            Err(problem) => {
                let counter = |counters: &Counters| counters.malformed.fetch_add(1, Relaxed);
                return self.reply(peer, envelope, ("error", problem.into()), counter);
            }
        };
        let number = self.next_number;
        self.next_number += 1;
        let is_busy = self.waiting.len() >= self.config.request_count_max;
        if is_busy || self.queue.try_push((number, request)).is_err() {
            let busy = ("busy", Bytes::from_static(b"too many requests wait for an answer"));
            return self.reply(peer, envelope, busy, |counters| counters.busy.fetch_add(1, Relaxed));
        }
        let deadline = Instant::now() + self.config.timeout;
        self.waiting.insert(number, Waiting { peer, envelope, deadline });
    }

    /// Sends an answer, and counts the request.
    fn reply(
        &self,
        peer: u64,
        mut frames: Vec<Bytes>,
        answer: Answer,
        counter: impl FnOnce(&Counters) -> u64,
    ) {
        let (status, content) = answer;
        frames.extend([Bytes::from_static(status.as_bytes()), content]);
        let message = PeerDriverData::SendMessage(Message::multipart(frames));
        if self.server.queue(peer).is_some_and(|queue| queue.try_send(message).is_ok()) {
            counter(&self.counters);
        } else {
            self.counters.undeliverable.fetch_add(1, Relaxed);
        }
    }

    fn reject_late(&mut self) {
        let now = Instant::now();
        let late: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.deadline <= now)
            .map(|(number, _)| *number)
            .collect();
        for waiting in late.iter().filter_map(|number| self.waiting.remove(number)).collect::<Vec<_>>() {
            let timeout = ("timeout", Bytes::from_static(b"the pipeline did not answer in time"));
            let counter = |counters: &Counters| counters.timeout.fetch_add(1, Relaxed);
            self.reply(waiting.peer, waiting.envelope, timeout, counter);
        }
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
