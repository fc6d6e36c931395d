//! The part of a router that runs on the thread of the pipeline.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flowgauge::base::ring::{Consumer, ring};
use flowgauge::{Interface, Pipeline, Sink};
use omq_tokio::SocketType;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::answers::Answers;
use super::config::RouterConfig;
use super::hub::{Control, Hub};
use super::request::Numbered;
use super::stats::{Counters, RouterStats};
use crate::endpoint::Endpoint;
use crate::error::BusError;
use crate::lock::lock;
use crate::packet_ring::PacketRing;
use crate::server::{Server, ServerCounters};

/// Part of the time between two calls of [`Router::answer`] that requests may use which read all flows or packets: one in
/// this many.
const WORK_SHARE: u32 = 8;

/// Maximum time between two calls that counts for the work of the next one.
const CALL_INTERVAL_MAX: Duration = Duration::from_millis(16);

/// Answers requests of ZeroMQ clients (DEALER or REQ) about the open flows of a pipeline.
///
/// A thread receives the requests. The thread of the pipeline answers those that wait by [`answer`](Self::answer), for
/// example after each batch of frames, so that no lock is needed.
///
/// A request has two frames: an identifier of at most 16 octets, which the answer repeats, and the text of a
/// [`Request`](super::Request). An answer has three: the identifier, the status, and the content. The status is `ok`, or `error`,
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
