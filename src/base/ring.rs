//! Bounded queues between two threads.
//!
//! [`ring`] returns the two ends of a queue with one producer and one consumer. The shards of a pipeline receive their
//! batches from such queues, and subscribers of the bus that run in the same process receive their messages from them.
//!
//! ```
//! use flowgauge::base::ring::ring;
//!
//! let (mut producer, mut consumer) = ring(2);
//! let thread = std::thread::spawn(move || consumer.iter().sum::<u32>());
//! for number in 1..=100 {
//!     // Waits while the queue is full.
//!     producer.push(number).expect("the consumer exists");
//! }
//! // The consumer finds the end of the queue.
//! drop(producer);
//! assert_eq!(thread.join().unwrap(), 5050);
//! ```

use std::fmt;
use std::hint;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Number of attempts before a thread sleeps. An item that arrives within about a microsecond is received without a
/// system call.
const SPIN_COUNT: u32 = 200;

/// A thread that sleeps until the other end of the queue makes progress.
#[derive(Debug, Default)]
struct Sleeper {
    is_waiting: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Sleeper {
    /// Wakes the thread if it sleeps. The caller has changed the queue before.
    #[inline]
    fn wake(&self) {
        // Orders the change of the queue before the read of the flag. The sleeper sets the flag, passes its own fence
        // and then reads the queue, so that at least one of the two threads sees the store of the other.
        fence(SeqCst);
        if self.is_waiting.load(Relaxed) {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        if self.is_waiting.swap(false, SeqCst)
            && let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            thread.unpark();
        }
    }

    /// Calls `attempt` until it returns a value, and sleeps in between. Returns `None` after `deadline`.
    fn wait<R>(&self, deadline: Option<Instant>, mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
        for _ in 0..SPIN_COUNT {
            if let Some(result) = attempt() {
                return Some(result);
            }
            hint::spin_loop();
        }
        loop {
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
            self.is_waiting.store(true, SeqCst);
            fence(SeqCst);
            if let Some(result) = attempt() {
                self.is_waiting.store(false, Relaxed);
                return Some(result);
            }
            match deadline {
                None => thread::park(),
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(rest) if !rest.is_zero() => thread::park_timeout(rest),
                    _ => {
                        self.is_waiting.store(false, Relaxed);
                        return None;
                    }
                },
            }
        }
    }
}

struct Shared<T> {
    producer: Sleeper,
    consumer: Sleeper,
    /// True once the consumer was dropped.
    is_closed: AtomicBool,
    /// The consumer after it was dropped, so that an item that is added at the same time is dropped too, and not only
    /// when the producer is dropped: an item may hold a resource for which the producer waits.
    orphan: Mutex<Option<rtrb::Consumer<T>>>,
}

impl<T> Shared<T> {
    /// Wakes the consumer after an item was added, or drops the item if there is no consumer.
    #[inline]
    fn note_item(&self) {
        // Passes a fence, so that either this thread sees that the consumer is closed, or the consumer sees the item.
        self.consumer.wake();
        if self.is_closed.load(Relaxed) {
            self.drop_items();
        }
    }

    #[cold]
    fn drop_items(&self) {
        if let Some(items) = &mut *self.orphan.lock().unwrap_or_else(PoisonError::into_inner) {
            while items.pop().is_ok() {}
        }
    }
}

/// Creates a queue for at most `capacity` items, and returns its two ends.
///
/// Neither end allocates after that. Each end may be moved to another thread.
#[must_use]
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let (items, received) = rtrb::RingBuffer::new(capacity);
    let shared = Arc::new(Shared {
        producer: Sleeper::default(),
        consumer: Sleeper::default(),
        is_closed: AtomicBool::new(false),
        orphan: Mutex::new(None),
    });
    let producer = Producer { items, closer: Closer(Arc::clone(&shared)) };
    (producer, Consumer { items: Some(received), shared })
}

/// Wakes the consumer when the producer is dropped. It is the last field of the producer, so that the ring itself is
/// marked as abandoned before.
struct Closer<T>(Arc<Shared<T>>);

impl<T> Drop for Closer<T> {
    fn drop(&mut self) {
        self.0.consumer.wake();
    }
}

/// Reason why an item was not queued. It contains the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// The queue is full.
    Full(T),
    /// The consumer was dropped.
    Closed(T),
}

/// The end of a queue that adds items.
pub struct Producer<T> {
    items: rtrb::Producer<T>,
    closer: Closer<T>,
}

impl<T> Producer<T> {
    /// Adds an item without waiting.
    ///
    /// # Errors
    ///
    /// Returns the item if the queue is full, or if the consumer was dropped.
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.is_closed() {
            return Err(PushError::Closed(item));
        }
        match self.items.push(item) {
            Ok(()) => {
                self.closer.0.note_item();
                Ok(())
            }
            Err(rtrb::PushError::Full(item)) => Err(PushError::Full(item)),
        }
    }

    /// Adds an item, and waits while the queue is full.
    ///
    /// # Errors
    ///
    /// Returns the item if the consumer was dropped.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.try_push(item) {
            Ok(()) => Ok(()),
            Err(PushError::Closed(item)) => Err(item),
            Err(PushError::Full(item)) => self.push_waiting(item, None),
        }
    }

    /// Adds an item, and waits for at most `timeout` while the queue is full.
    ///
    /// # Errors
    ///
    /// Returns the item if the queue is still full, or if the consumer was dropped.
    pub fn push_timeout(&mut self, item: T, timeout: Duration) -> Result<(), T> {
        self.push_waiting(item, Instant::now().checked_add(timeout))
    }

    fn push_waiting(&mut self, item: T, deadline: Option<Instant>) -> Result<(), T> {
        let Self { items, closer: Closer(shared) } = self;
        let mut pending = Some(item);
        let is_done = shared.producer.wait(deadline, || {
            if shared.is_closed.load(Acquire) {
                return Some(false);
            }
            match items.push(pending.take()?) {
                Ok(()) => Some(true),
                Err(rtrb::PushError::Full(item)) => {
                    pending = Some(item);
                    None
                }
            }
        });
        if is_done == Some(true) {
            shared.note_item();
        }
        pending.map_or(Ok(()), Err)
    }

    /// Returns the number of items that the queue can take now; later, it may be more.
    #[must_use]
    pub fn free_count(&self) -> usize {
        self.items.slots()
    }

    /// Returns whether the consumer has received all items.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.slots() == self.items.buffer().capacity()
    }

    /// Returns whether the consumer was dropped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closer.0.is_closed.load(Acquire)
    }
}

/// The end of a queue that removes items.
pub struct Consumer<T> {
    /// `None` only while the consumer is dropped.
    items: Option<rtrb::Consumer<T>>,
    shared: Arc<Shared<T>>,
}

impl<T> Consumer<T> {
    /// Removes the first item, if there is one.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        let item = self.items.as_mut()?.pop().ok()?;
        self.shared.producer.wake();
        Some(item)
    }

    /// Removes the first item, and waits while the queue is empty. Returns `None` if the queue is empty and the
    /// producer was dropped.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if let Some(item) = self.try_pop() { Some(item) } else { self.pop_waiting(None) }
    }

    /// Removes the first item, and waits for at most `timeout` while the queue is empty.
    #[inline]
    pub fn pop_timeout(&mut self, timeout: Duration) -> Option<T> {
        if let Some(item) = self.try_pop() {
            return Some(item);
        }
        self.pop_waiting(Instant::now().checked_add(timeout))
    }

    fn pop_waiting(&mut self, deadline: Option<Instant>) -> Option<T> {
        let Self { items, shared } = self;
        let items = items.as_mut()?;
        let item = shared.consumer.wait(deadline, || {
            // Read before the queue: the producer adds its last item before it is dropped.
            let is_closed = items.is_abandoned();
            match items.pop() {
                Ok(item) => Some(Some(item)),
                Err(_) if is_closed => Some(None),
                Err(_) => None,
            }
        });
        if matches!(item, Some(Some(_))) {
            shared.producer.wake();
        }
        item.flatten()
    }

    /// Iterates over the items, and waits for each. The iterator ends when the producer was dropped.
    pub fn iter(&mut self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.pop())
    }

    /// Returns whether the queue is empty and the producer was dropped, so that no item will follow.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // Read before the queue: the producer adds its last item before it is dropped.
        self.items.as_ref().is_none_or(|items| items.is_abandoned() && items.is_empty())
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        *self.shared.orphan.lock().unwrap_or_else(PoisonError::into_inner) = self.items.take();
        self.shared.is_closed.store(true, SeqCst);
        self.shared.producer.wake();
        self.shared.drop_items();
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("free_count", &self.free_count()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("item_count", &self.items.as_ref().map_or(0, rtrb::Consumer::slots))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_returns_the_item() {
        let (mut producer, mut consumer) = ring(1);
        assert!(producer.is_empty());
        assert_eq!(producer.try_push(1), Ok(()));
        assert!(!producer.is_empty());
        assert_eq!(producer.try_push(2), Err(PushError::Full(2)));
        assert_eq!(producer.push_timeout(3, Duration::from_millis(1)), Err(3));
        assert_eq!(consumer.try_pop(), Some(1));
        assert!(producer.is_empty());
        assert_eq!(consumer.pop_timeout(Duration::from_millis(1)), None);
        drop(consumer);
        assert_eq!(producer.try_push(4), Err(PushError::Closed(4)));
        assert_eq!(producer.push(5), Err(5));
    }

    #[test]
    fn items_that_remain_are_received_after_the_end() {
        let (mut producer, mut consumer) = ring(4);
        producer.push("last").unwrap();
        drop(producer);
        assert!(!consumer.is_finished());
        assert_eq!(consumer.pop(), Some("last"));
        assert!(consumer.is_finished());
        assert_eq!(consumer.pop(), None);
    }

    #[test]
    fn all_items_arrive_in_order_whichever_end_waits() {
        for capacity in [1, 2, 64] {
            let (mut producer, mut consumer) = ring(capacity);
            let sender = thread::spawn(move || {
                for number in 0..20_000_u32 {
                    if number % 4096 == 0 {
                        thread::sleep(Duration::from_millis(2));
                    }
                    producer.push(number).unwrap();
                }
            });
            let mut expected = 0;
            for number in consumer.iter() {
                assert_eq!(number, expected);
                expected += 1;
                if expected % 5000 == 0 {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            assert_eq!(expected, 20_000);
            sender.join().unwrap();
        }
    }

    #[test]
    fn items_are_dropped_with_the_consumer() {
        let (mut producer, consumer) = ring(2);
        let item = Arc::new(());
        producer.push(Arc::clone(&item)).unwrap();
        drop(consumer);
        assert_eq!(Arc::strong_count(&item), 1);
        // Also those that are added while it is dropped.
        for _ in 0..2000 {
            let (mut producer, consumer) = ring(1);
            let thread = thread::spawn(move || drop(consumer));
            let _ = producer.try_push(Arc::clone(&item));
            thread.join().unwrap();
            assert_eq!(Arc::strong_count(&item), 1);
        }
    }

    #[test]
    fn a_waiting_end_notices_that_the_other_is_dropped() {
        let (mut producer, consumer) = ring(1);
        producer.push(0).unwrap();
        let waiting = thread::spawn(move || producer.push(1));
        thread::sleep(Duration::from_millis(5));
        drop(consumer);
        assert_eq!(waiting.join().unwrap(), Err(1));
        let (producer, mut consumer) = ring::<u8>(1);
        let waiting = thread::spawn(move || consumer.pop());
        thread::sleep(Duration::from_millis(5));
        drop(producer);
        assert_eq!(waiting.join().unwrap(), None);
    }
}
