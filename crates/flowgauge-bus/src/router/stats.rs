//! Counters of a router.

use std::sync::atomic::AtomicU64;

use crate::server::ServerStats;

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

/// The counters while requests are answered, on two threads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) request: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) busy: AtomicU64,
    pub(super) timeout: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) undeliverable: AtomicU64,
}
