//! Subscribers of the same process, which receive messages from a ring without sockets.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};

use flowgauge::base::ring::{Consumer, ring};

use super::counters::SubscriberCounters;
use super::local::Local;
use super::shared::Shared;
use crate::error::BusError;
use crate::lock::lock;
use crate::message::Batch;
use crate::prefix_set::PrefixSet;

/// Bit of the connection numbers of subscribers of the same process.
const IS_LOCAL: u32 = 1 << 31;

/// The publishers that are bound to `inproc://NAME`, by name.
static NAMES: Mutex<BTreeMap<String, Weak<Shared>>> = Mutex::new(BTreeMap::new());

static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

pub(super) fn register(name: &str, shared: &Arc<Shared>) -> Result<(), BusError> {
    let mut names = lock(&NAMES);
    if names.get(name).is_some_and(|other| other.strong_count() > 0) {
        let problem = "the name is already bound in this process".to_owned();
        return Err(BusError::Socket { endpoint: format!("inproc://{name}"), problem });
    }
    names.insert(name.to_owned(), Arc::downgrade(shared));
    Ok(())
}

pub(super) fn unregister(shared: &Arc<Shared>) {
    let shared = Arc::downgrade(shared);
    lock(&NAMES).retain(|_, other| !other.ptr_eq(&shared));
}

/// Returns a receiver of the messages of the publisher that is bound to a name.
pub(crate) fn find_local(name: &str, queue_len: usize) -> Result<LocalReceiver, BusError> {
    let shared = lock(&NAMES).get(name).and_then(Weak::upgrade);
    let shared = shared.ok_or_else(|| BusError::NoPublisher { name: name.to_owned() })?;
    let number = NEXT_NUMBER.fetch_add(1, Relaxed) | IS_LOCAL;
    let (queue, messages) = ring(queue_len.max(1));
    let counters = shared.add_subscriber(format!("inproc://{name}"));
    lock(&shared.outbox).add_local(Local {
        number,
        stream: u64::from(shared.id) << 32 | u64::from(number),
        prefixes: PrefixSet::new(),
        sequence: 0,
        is_stalled: false,
        queue,
        counters: Arc::clone(&counters),
    });
    Ok(LocalReceiver { shared, number, messages, counters, subscription_count: 0 })
}

/// The subscriber's end of a connection in the same process.
pub(crate) struct LocalReceiver {
    shared: Arc<Shared>,
    number: u32,
    pub(crate) messages: Consumer<Batch>,
    counters: Arc<SubscriberCounters>,
    subscription_count: usize,
}

impl LocalReceiver {
    pub(crate) fn subscribe(&mut self, prefix: &str) {
        if let Some(local) = lock(&self.shared.outbox).local_mut(self.number) {
            local.prefixes.insert(prefix.as_bytes());
        }
        self.subscription_count += 1;
        self.shared.note_subscriptions(&self.counters, self.subscription_count);
    }

    /// Returns the number of records that were dropped, also after the last message.
    pub(crate) fn dropped_count(&self) -> u64 {
        self.counters.dropped.load(Relaxed)
    }
}

impl Drop for LocalReceiver {
    fn drop(&mut self) {
        lock(&self.shared.outbox).remove_local(self.number);
        self.counters.closed.store(1, Relaxed);
        self.shared.note_subscriptions(&self.counters, 0);
    }
}
