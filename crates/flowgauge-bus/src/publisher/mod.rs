//! Publishing: events become messages of topics, which are distributed to the queues of subscribers.

mod counters;
mod hub;
mod in_process;
mod link;
mod local;
mod outbox;
mod outgoing;
mod payload;
#[allow(clippy::module_inception, reason = "the type that the folder is named after")]
mod publisher;
mod shared;

pub use counters::{PublisherStats, SubscriberStats};
pub(crate) use in_process::{LocalReceiver, find_local};
pub use publisher::Publisher;
