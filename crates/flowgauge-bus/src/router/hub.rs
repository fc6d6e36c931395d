//! The thread of the sockets of a router.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flowgauge::base::ring::Producer;
use omq_tokio::engine::PeerDriverData;
use omq_tokio::{Endpoint, Message};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval};

use super::config::RouterConfig;
use super::request::{Answer, Numbered};
use super::stats::Counters;
use crate::lock::lock;
use crate::patience::Patience;
use crate::server::{Server, ServerEvent};

/// Maximum length of the identifier that a client gives a request.
const ID_LEN_MAX: usize = 16;

/// Interval of the search for requests without an answer in time.
const TICK: Duration = Duration::from_millis(10);

pub(super) enum Control {
    Bind(Endpoint, mpsc::Sender<Result<String, String>>),
    Answer(u64, Answer),
    Close,
}

/// A request that waits for its answer.
struct Waiting {
    peer: u64,
    /// The frames before the text, which the answer repeats.
    envelope: Vec<Bytes>,
    deadline: Instant,
}

/// The thread of the sockets.
pub(super) struct Hub {
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
    /// `shared` are the counters and the list of the clients.
    pub(super) fn new(
        server: Server,
        config: RouterConfig,
        queue: Producer<Numbered>,
        control: UnboundedReceiver<Control>,
        shared: (Arc<Counters>, Arc<Mutex<Vec<String>>>),
    ) -> Self {
        let (counters, peers) = shared;
        let (waiting, names) = (HashMap::new(), HashMap::new());
        Self { server, config, queue, control, waiting, next_number: 0, counters, names, peers }
    }

    pub(super) async fn run(mut self) {
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
        let of_peer = self.waiting.values().filter(|waiting| waiting.peer == peer).count();
        let is_busy = self.waiting.len() >= self.config.request_count_max
            || of_peer >= self.config.peer_request_count_max;
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
