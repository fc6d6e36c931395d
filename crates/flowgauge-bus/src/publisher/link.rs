//! What the outbox and the thread of the sockets share.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use tokio::sync::Notify;

use crate::config::PublisherConfig;
use crate::prefix_set::PrefixSet;

/// The configuration, the subscriptions over sockets, and the notification of their thread.
pub(super) struct Link {
    pub(super) config: PublisherConfig,
    /// Changes whenever the subscriptions change.
    pub(super) generation: AtomicU64,
    /// The subscriptions of all subscribers that are connected over sockets.
    pub(super) remote_prefixes: Mutex<PrefixSet>,
    /// Notifies the thread of the sockets of new messages.
    pub(super) queued: Notify,
}
