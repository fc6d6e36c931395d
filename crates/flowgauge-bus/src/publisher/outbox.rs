//! Messages that are being filled, and their distribution to the queues.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::Ordering::Acquire;
use std::time::Instant;

use bytes::Bytes;
use flowgauge::base::ring::Producer;
use foldhash::fast::RandomState;

use super::counters::PublisherStats;
use super::link::Link;
use super::local::Local;
use super::outgoing::Outgoing;
use super::payload::BufferPool;
use crate::config::Overflow;
use crate::event::Event;
use crate::lock::lock;
use crate::message::Encoding;
use crate::prefix_set::PrefixSet;
use crate::topic::Topic;

/// Number of octets that are added to a payload together.
const STAGE_LEN: usize = 4096;

/// A topic, and its message that is being filled.
struct Slot {
    topic: Topic,
    /// The topic as the first frame of messages.
    frame: Bytes,
    encoding: Encoding,
    /// Events that are not in `payload` yet. It stays in the nearest cache, while the memory of a payload comes from that
    /// of the receiver, which is much faster to write in large pieces.
    stage: Vec<u8>,
    payload: Vec<u8>,
    record_count: u32,
    /// Number of records that were published on the topic before those in `stage` and `payload`.
    position: u64,
    /// Number of records that were dropped since the last message that was queued for the sockets.
    dropped_count: u64,
    /// Value of [`Link::generation`] when the next two were determined.
    generation: u64,
    has_locals: bool,
    has_remotes: bool,
    /// Number of calls of `flush_idle` since the first record was appended.
    age: u32,
}

/// The part of a publisher that its lock protects.
pub(super) struct Outbox {
    slots: Vec<Slot>,
    index: HashMap<Topic, usize, RandomState>,
    /// Index of the slot that was used last.
    last: usize,
    locals: Vec<Local>,
    pool: BufferPool,
    /// Queue to the thread of the sockets.
    queue: Producer<Outgoing>,
    is_closed: bool,
    published_count: u64,
    unsubscribed_count: u64,
    queue_dropped_message_count: u64,
}

/// Permission to wait for a full queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// As the configuration determines.
    Configured,
    Never,
    Until(Instant),
}

impl Outbox {
    /// Creates an outbox whose messages have payloads of `payload_len` octets.
    pub(super) fn new(queue: Producer<Outgoing>, payload_len: usize) -> Self {
        Self {
            slots: Vec::new(),
            index: HashMap::default(),
            last: 0,
            locals: Vec::new(),
            pool: BufferPool::new(payload_len),
            queue,
            is_closed: false,
            published_count: 0,
            unsubscribed_count: 0,
            queue_dropped_message_count: 0,
        }
    }

    pub(super) fn locals(&self) -> impl Iterator<Item = &PrefixSet> {
        self.locals.iter().map(|local| &local.prefixes)
    }

    pub(super) fn add_local(&mut self, local: Local) {
        self.locals.push(local);
    }

    pub(super) fn local_mut(&mut self, number: u32) -> Option<&mut Local> {
        self.locals.iter_mut().find(|local| local.number == number)
    }

    pub(super) fn remove_local(&mut self, number: u32) {
        self.locals.retain(|local| local.number != number);
    }

    pub(super) const fn add_stats(&self, stats: &mut PublisherStats) {
        stats.published_count = self.published_count;
        stats.unsubscribed_count = self.unsubscribed_count;
        stats.queue_dropped_message_count = self.queue_dropped_message_count;
    }

    #[inline]
    pub(super) fn publish(&mut self, link: &Link, topic: &Topic, event: &impl Event) {
        if self.is_closed {
            return;
        }
        if !self.slots.get(self.last).is_some_and(|slot| slot.topic == *topic) {
            self.last = self.slot_of(link, topic);
        }
        self.published_count += 1;
        let generation = link.generation.load(Acquire);
        let Self { slots, locals, last, .. } = self;
        let Some(slot) = slots.get_mut(*last) else { return };
        if slot.generation != generation {
            slot.generation = generation;
            slot.has_locals = locals.iter().any(|local| local.prefixes.matches(topic.as_bytes()));
            slot.has_remotes = lock(&link.remote_prefixes).matches(topic.as_bytes());
        }
        if !slot.has_locals && !slot.has_remotes && slot.record_count == 0 {
            slot.position += 1;
            self.unsubscribed_count += 1;
            return;
        }
        let encoding = event.encoding(link.config.encoding);
        if encoding != slot.encoding {
            let last = *last;
            self.flush(link, last, Wait::Configured);
            if let Some(slot) = self.slots.get_mut(last) {
                slot.encoding = encoding;
            }
        }
        let Some(slot) = self.slots.get_mut(self.last) else { return };
        event.encode(encoding, &mut slot.stage);
        slot.record_count += 1;
        if slot.stage.len() >= STAGE_LEN || slot.stage.len() + slot.payload.len() >= link.config.payload_len {
            if slot.payload.capacity() == 0 {
                slot.payload = self.pool.buffer();
            }
            slot.payload.extend_from_slice(&slot.stage);
            slot.stage.clear();
            if slot.payload.len() >= link.config.payload_len {
                self.flush(link, self.last, Wait::Configured);
            }
        }
    }

    pub(super) fn skip(&mut self, topic: &Topic) {
        self.published_count += 1;
        self.unsubscribed_count += 1;
        if let Some(index) = self.index.get(topic)
            && let Some(slot) = self.slots.get_mut(*index)
        {
            // Records in an incomplete message precede this one.
            slot.position += 1;
        }
    }

    /// Returns the index of the slot of a topic, which is created if there is none.
    #[cold]
    fn slot_of(&mut self, link: &Link, topic: &Topic) -> usize {
        if let Some(index) = self.index.get(topic) {
            return *index;
        }
        if self.slots.len() >= link.config.topic_count_max.max(1) {
            self.flush_all(link);
            self.flush_dropped(link, Wait::Configured);
            self.slots.clear();
            self.index.clear();
        }
        self.index.insert(*topic, self.slots.len());
        self.slots.push(Slot {
            topic: *topic,
            frame: Bytes::copy_from_slice(topic.as_bytes()),
            encoding: link.config.encoding,
            stage: Vec::new(),
            payload: Vec::new(),
            record_count: 0,
            position: 0,
            dropped_count: 0,
            generation: 0,
            has_locals: false,
            has_remotes: false,
            age: 0,
        });
        self.slots.len() - 1
    }

    /// Sends the message of a slot.
    fn flush(&mut self, link: &Link, index: usize, wait: Wait) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.record_count == 0 {
            return;
        }
        if slot.payload.capacity() == 0 {
            slot.payload = self.pool.buffer();
        }
        slot.payload.append(&mut slot.stage);
        let mut message = Outgoing {
            topic: slot.frame.clone(),
            encoding: slot.encoding,
            record_count: mem::take(&mut slot.record_count),
            position: slot.position,
            dropped_count: slot.dropped_count,
            has_locals: false,
            payload: self.pool.payload(mem::take(&mut slot.payload)),
        };
        let record_count = u64::from(message.record_count);
        slot.position += record_count;
        slot.age = 0;
        if slot.has_locals {
            let timeout = match (wait, link.config.overflow) {
                (Wait::Configured, Overflow::Wait(timeout)) => Some(timeout),
                (Wait::Until(deadline), _) => Some(deadline.saturating_duration_since(Instant::now())),
                _ => None,
            };
            for local in &mut self.locals {
                if local.prefixes.matches(slot.topic.as_bytes()) {
                    local.send(&message, timeout);
                    message.has_locals = true;
                }
            }
        }
        if slot.has_remotes {
            let is_queued = push(&mut self.queue, link, message, wait);
            slot.dropped_count = if is_queued { 0 } else { slot.dropped_count + record_count };
            self.queue_dropped_message_count += u64::from(!is_queued);
        } else if !message.has_locals {
            // The last subscriber has left since the records were published.
            self.unsubscribed_count += record_count;
        }
    }

    /// Sends all incomplete messages.
    pub(super) fn flush_all(&mut self, link: &Link) {
        for index in 0..self.slots.len() {
            self.flush(link, index, Wait::Configured);
        }
    }

    /// Sends the messages that were incomplete at the last call too, without waiting. Called by the thread of the
    /// sockets, which must not wait for itself.
    pub(super) fn flush_idle(&mut self, link: &Link) {
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get_mut(index) else { continue };
            if slot.record_count > 0 {
                slot.age += 1;
                if slot.age > 1 && self.queue.free_count() > 0 {
                    self.flush(link, index, Wait::Never);
                }
            }
        }
    }

    /// Reports records that were dropped after the last message of their topic.
    fn flush_dropped(&mut self, link: &Link, wait: Wait) {
        for slot in self.slots.iter_mut().filter(|slot| slot.dropped_count > 0) {
            if push(&mut self.queue, link, slot.dropped(), wait) {
                slot.dropped_count = 0;
            }
        }
    }

    /// Returns the reports for which the queue has no space, at the end.
    pub(super) fn take_dropped(&mut self) -> Vec<Outgoing> {
        let slots = self.slots.iter_mut().filter(|slot| slot.dropped_count > 0);
        let report = |slot: &mut Slot| {
            let report = slot.dropped();
            slot.dropped_count = 0;
            report
        };
        slots.map(report).collect()
    }

    /// Sends everything, until `deadline`, and ignores later events.
    pub(super) fn close(&mut self, link: &Link, deadline: Instant) {
        self.is_closed = true;
        for index in 0..self.slots.len() {
            self.flush(link, index, Wait::Until(deadline));
        }
        self.flush_dropped(link, Wait::Until(deadline));
        self.locals.clear();
    }
}

impl Slot {
    /// Returns a message without records, which reports those that were dropped.
    fn dropped(&self) -> Outgoing {
        Outgoing {
            topic: self.frame.clone(),
            encoding: self.encoding,
            record_count: 0,
            position: self.position,
            dropped_count: self.dropped_count,
            has_locals: self.has_locals,
            payload: Bytes::new(),
        }
    }
}

/// Adds a message to the queue of the thread of the sockets. Returns false if it was dropped.
fn push(queue: &mut Producer<Outgoing>, link: &Link, message: Outgoing, wait: Wait) -> bool {
    let is_queued = match (wait, link.config.overflow) {
        // The other thread waits for each subscriber for a bounded time only.
        (Wait::Configured, Overflow::Wait(_)) => queue.push(message).is_ok(),
        (Wait::Until(deadline), _) => {
            queue.push_timeout(message, deadline.saturating_duration_since(Instant::now())).is_ok()
        }
        _ => queue.try_push(message).is_ok(),
    };
    link.queued.notify_one();
    is_queued
}
