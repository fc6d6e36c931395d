//! The thread of the sockets: a queue for each subscriber.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use bytes::Bytes;
use flowgauge::base::ring::Consumer;
use foldhash::fast::RandomState;
use omq_tokio::engine::PeerDriverData;
use omq_tokio::proto::Command;
use omq_tokio::{Endpoint, Message, SocketType};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::counters::SubscriberCounters;
use super::outgoing::Outgoing;
use super::shared::Shared;
use crate::config::Overflow;
use crate::lock::lock;
use crate::message::Header;
use crate::patience::Patience;
use crate::prefix_set::PrefixSet;
use crate::server::{Server, ServerEvent};

/// Number of messages after which the connections get a turn.
const TURN_LEN: u32 = 8;

/// Maximum length of a prefix that a subscriber may send.
const PREFIX_LEN_MAX: usize = 255;

/// Maximum number of topics with a list of subscribers.
const ROUTE_COUNT_MAX: usize = 4096;

/// Request to the thread of the sockets.
pub(super) enum Control {
    /// Binds an endpoint; the reply is the endpoint with its port, or a message.
    Bind(Endpoint, mpsc::Sender<Result<String, String>>),
    /// Sends what the queues contain until a time, and ends the thread.
    Close(Instant),
}

/// A connected subscriber.
struct Subscriber {
    stream: u64,
    prefixes: PrefixSet,
    subscription_count: usize,
    /// Number of records for this subscriber, dropped ones included.
    sequence: u64,
    /// The sequence that the last message for this subscriber reported.
    reported_sequence: u64,
    /// True if the subscriber received nothing for the time that the publisher waits.
    is_stalled: bool,
    counters: Arc<SubscriberCounters>,
}

pub(super) struct Hub {
    shared: Arc<Shared>,
    messages: Consumer<Outgoing>,
    control: UnboundedReceiver<Control>,
    server: Server,
    subscribers: HashMap<u64, Subscriber, RandomState>,
    /// Time by which the thread ends.
    deadline: Option<Instant>,
    patience: Patience,
    /// The subscribers of each topic; empty after each change of the subscriptions.
    routes: HashMap<Bytes, Arc<[u64]>, RandomState>,
}

impl Hub {
    pub(super) fn new(
        shared: Arc<Shared>,
        messages: Consumer<Outgoing>,
        control: UnboundedReceiver<Control>,
    ) -> Self {
        let server =
            Server::new(shared.link.config.server.clone(), SocketType::XPub, Arc::clone(&shared.server));
        let (subscribers, routes) = (HashMap::default(), HashMap::default());
        let patience = Patience::new(shared.link.config.stop.clone());
        Self { shared, messages, control, server, subscribers, deadline: None, patience, routes }
    }

    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut ticks =
            interval(shared.link.config.flush_interval.max(std::time::Duration::from_micros(100)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_empty = self.deliver_turn().await;
            tokio::select! {
                biased;
                command = self.control.recv() => match command {
                    Some(Control::Bind(endpoint, reply)) => {
                        let bound = self.server.bind(&endpoint).await;
                        let bound = bound.map(|bound| bound.to_string()).map_err(|error| error.to_string());
                        let _ = reply.send(bound);
                    }
                    Some(Control::Close(deadline)) => return self.close(deadline).await,
                    None => return self.close(Instant::now()).await,
                },
                event = self.server.next() => self.process(event),
                _ = ticks.tick() => self.tick(),
                () = shared.link.queued.notified(), if is_empty => {}
                () = tokio::task::yield_now(), if !is_empty => {}
            }
        }
    }

    /// Passes some messages to the queues of the subscribers. Returns whether there are no more.
    async fn deliver_turn(&mut self) -> bool {
        for _ in 0..TURN_LEN {
            let Some(message) = self.messages.try_pop() else { return true };
            self.deliver(message).await;
        }
        false
    }

    async fn deliver(&mut self, message: Outgoing) {
        let route = self.route(&message.topic);
        for id in &*route {
            self.send(*id, &message).await;
        }
        if route.is_empty() && !message.has_locals {
            self.shared
                .left_count
                .fetch_add(u64::from(message.record_count) + message.dropped_count, Relaxed);
        }
    }

    /// Returns the subscribers of a topic.
    fn route(&mut self, topic: &Bytes) -> Arc<[u64]> {
        if let Some(route) = self.routes.get(topic) {
            return Arc::clone(route);
        }
        let matching = self.subscribers.iter().filter(|(_, subscriber)| subscriber.prefixes.matches(topic));
        let route: Arc<[u64]> = matching.map(|(id, _)| *id).collect();
        if self.routes.len() >= ROUTE_COUNT_MAX {
            self.routes.clear();
        }
        self.routes.insert(topic.clone(), Arc::clone(&route));
        route
    }

    /// Queues a message for a subscriber, or counts its records as dropped.
    async fn send(&mut self, id: u64, message: &Outgoing) {
        let (Some(subscriber), Some(queue)) = (self.subscribers.get_mut(&id), self.server.queue(id)) else {
            return;
        };
        let record_count = u64::from(message.record_count);
        subscriber.sequence += message.dropped_count;
        subscriber.counters.dropped.fetch_add(message.dropped_count, Relaxed);
        if record_count == 0 {
            return;
        }
        let wire = subscriber.message(message, false);
        subscriber.sequence += record_count;
        let is_queued = match queue.try_send(PeerDriverData::SendMessage(wire)) {
            Ok(()) => true,
            Err(TrySendError::Full(wire)) => match self.shared.link.config.overflow {
                Overflow::Wait(limit) if !subscriber.is_stalled => {
                    let until = Instant::now() + limit;
                    let until = self.deadline.map_or(until, |deadline| until.min(deadline));
                    matches!(self.patience.wait(until, queue.send(wire)).await, Some(Ok(())))
                }
                _ => false,
            },
            Err(TrySendError::Closed(_)) => false,
        };
        subscriber.is_stalled = !is_queued;
        if is_queued {
            subscriber.reported_sequence = subscriber.sequence;
            subscriber.counters.queued.fetch_add(record_count, Relaxed);
        } else {
            subscriber.counters.dropped.fetch_add(record_count, Relaxed);
        }
    }

    fn process(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Connected { peer, name } => {
                let counters = self.shared.add_subscriber(name);
                let subscriber = Subscriber {
                    stream: u64::from(self.shared.id) << 32 | (peer & 0x7fff_ffff),
                    prefixes: PrefixSet::new(),
                    subscription_count: 0,
                    sequence: 0,
                    reported_sequence: 0,
                    is_stalled: false,
                    counters,
                };
                self.subscribers.insert(peer, subscriber);
            }
            ServerEvent::Command { peer, command } => match command {
                Command::Subscribe(prefix) => self.subscribe(peer, &prefix, true),
                Command::Cancel(prefix) => self.subscribe(peer, &prefix, false),
                _ => {}
            },
            // Subscriptions of ZMTP 3.0.
            ServerEvent::Message { peer, message } => match message.part_slice(0) {
                Some([1, prefix @ ..]) => self.subscribe(peer, prefix, true),
                Some([0, prefix @ ..]) => self.subscribe(peer, prefix, false),
                _ => self.server.disconnect(peer),
            },
            ServerEvent::Disconnected { peer } => {
                if let Some(subscriber) = self.subscribers.remove(&peer) {
                    let mut prefixes = lock(&self.shared.link.remote_prefixes);
                    // The set counts each prefix once per subscriber.
                    for prefix in subscriber.prefixes.iter() {
                        prefixes.remove(prefix);
                    }
                    drop(prefixes);
                    subscriber.counters.closed.store(1, Relaxed);
                    self.routes.clear();
                    self.shared.note_subscriptions(&subscriber.counters, 0);
                }
            }
        }
    }

    fn subscribe(&mut self, id: u64, prefix: &[u8], is_added: bool) {
        let Some(subscriber) = self.subscribers.get_mut(&id) else { return };
        let is_excessive = subscriber.subscription_count >= self.shared.link.config.subscription_count_max;
        if prefix.len() > PREFIX_LEN_MAX || is_added && is_excessive {
            self.server.disconnect(id);
            return;
        }
        let was_contained = subscriber.prefixes.contains(prefix);
        if is_added {
            subscriber.prefixes.insert(prefix);
            subscriber.subscription_count += 1;
        } else if subscriber.prefixes.remove(prefix) {
            subscriber.subscription_count -= 1;
        }
        let mut prefixes = lock(&self.shared.link.remote_prefixes);
        match (was_contained, subscriber.prefixes.contains(prefix)) {
            (false, true) => prefixes.insert(prefix),
            (true, false) => {
                prefixes.remove(prefix);
            }
            _ => {}
        }
        drop(prefixes);
        self.routes.clear();
        self.shared.note_subscriptions(&subscriber.counters, subscriber.subscription_count);
    }

    /// Sends messages that are incomplete for too long, and reports records that were dropped.
    fn tick(&mut self) {
        // A publisher that waits for this thread holds the lock.
        if let Ok(mut outbox) = self.shared.outbox.try_lock() {
            outbox.flush_idle(&self.shared.link);
        }
        for (id, subscriber) in &mut self.subscribers {
            if subscriber.sequence != subscriber.reported_sequence
                && let Some(queue) = self.server.queue(*id)
                && let Some(report) = subscriber.report(false)
                && queue.try_send(PeerDriverData::SendMessage(report)).is_ok()
            {
                subscriber.reported_sequence = subscriber.sequence;
            }
        }
    }

    async fn close(mut self, deadline: Instant) {
        self.deadline = Some(deadline);
        while let Some(message) = self.messages.try_pop() {
            self.deliver(message).await;
            // Connections and their events get a turn after each message.
            if let Ok(event) = timeout(std::time::Duration::ZERO, self.server.next()).await {
                self.process(event);
            }
        }
        let dropped = lock(&self.shared.outbox).take_dropped();
        for report in dropped {
            self.deliver(report).await;
        }
        // First those whose queues have space: a subscriber that does not read must not delay the others.
        let mut full = Vec::new();
        for (id, subscriber) in &mut self.subscribers {
            if let Some(queue) = self.server.queue(*id)
                && let Some(last) = subscriber.report(true)
            {
                match queue.try_send(PeerDriverData::SendMessage(last)) {
                    Ok(()) => subscriber.reported_sequence = subscriber.sequence,
                    Err(TrySendError::Full(last)) => full.push((*id, last)),
                    Err(TrySendError::Closed(_)) => {}
                }
            }
        }
        for (id, last) in full {
            if let (Some(queue), Some(subscriber)) = (self.server.queue(id), self.subscribers.get_mut(&id))
                && let Some(Ok(())) = self.patience.wait(deadline, queue.send(last)).await
            {
                subscriber.reported_sequence = subscriber.sequence;
            }
        }
        self.server.drain(deadline, &self.patience).await;
        for subscriber in self.subscribers.values() {
            subscriber.counters.closed.store(1, Relaxed);
        }
    }
}

impl Subscriber {
    /// Returns a message with the header for this subscriber.
    fn message(&self, message: &Outgoing, is_last: bool) -> Message {
        let header = Header {
            encoding: message.encoding,
            is_last,
            record_count: message.record_count,
            stream: self.stream,
            sequence: self.sequence,
            position: message.position,
        };
        let header = Bytes::copy_from_slice(&header.encode());
        Message::multipart([message.topic.clone(), header, message.payload.clone()])
    }

    /// Returns a message without records, which reports the current sequence. Its topic is a prefix that the subscriber
    /// selects, so that its socket does not discard the message.
    fn report(&self, is_last: bool) -> Option<Message> {
        let prefix = self.prefixes.iter().next()?;
        let report = Outgoing {
            topic: Bytes::copy_from_slice(prefix),
            encoding: crate::message::Encoding::Records,
            record_count: 0,
            position: 0,
            dropped_count: 0,
            has_locals: false,
            payload: Bytes::new(),
        };
        Some(self.message(&report, is_last))
    }
}
