//! Flow records, messages and anomalies for subscribers in the same process, on the same host, and over TCP.
//!
//! A [`Publisher`] sends events to any number of [`Subscriber`]s, which select them by a prefix of their [`Topic`]. All
//! sockets use ZMTP, the protocol of ZeroMQ, so that programs in other languages subscribe with a ZeroMQ library.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)
)]

mod config;
mod curve;
mod endpoint;
mod error;
mod event;
mod lock;
mod message;
mod packet_ring;
mod pair;
mod patience;
mod prefix_set;
mod publisher;
mod router;
mod server;
mod sink;
mod subscriber;
mod topic;

pub use config::{ClientSecurity, Overflow, PublisherConfig, ServerConfig, ServerSecurity, SubscriberConfig};
pub use curve::{PublicKey, SecretKey};
pub use error::BusError;
pub use event::{Event, Line};
pub use message::{Batch, Encoding, Header};
pub use packet_ring::PacketRing;
pub use pair::Pair;
pub use prefix_set::PrefixSet;
pub use publisher::{Publisher, PublisherStats, SubscriberStats};
#[doc(hidden)]
pub use router::Answers;
pub use router::{Request, Requester, Router, RouterConfig, RouterStats};
pub use server::ServerStats;
pub use sink::PublishSink;
#[doc(hidden)]
pub use subscriber::Tracking;
pub use subscriber::{Subscriber, SubscriptionStats};
pub use topic::Topic;
