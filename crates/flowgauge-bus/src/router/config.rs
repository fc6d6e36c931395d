//! Settings of a router.

use std::time::Duration;

use crate::config::ServerConfig;

/// Default of [`ServerConfig::high_water_mark`] of a router: answers may be long.
const QUEUE_LEN: usize = 8;

flowgauge::configuration! {
    /// Settings of a [`Router`](super::Router).
    #[derive(Clone, Debug)]
    pub struct RouterConfig {
        /// Maximum number of requests that wait for an answer. Default: 64. Further ones are rejected as `busy`.
        pub request_count_max: usize,
        /// Maximum number of requests of one client among them. Default: 8. Further ones are rejected as `busy`.
        pub peer_request_count_max: usize,
        /// Time after which a request without an answer is rejected as `timeout`. Default: 1 s.
        pub timeout: Duration,
        /// Limits of the bound sockets. Default: a queue of 8 answers for each client.
        pub server: ServerConfig,
    }
}

impl Default for RouterConfig {
    fn default() -> Self {
        let server = ServerConfig { high_water_mark: QUEUE_LEN, ..ServerConfig::default() };
        Self { request_count_max: 64, peer_request_count_max: 8, timeout: Duration::from_secs(1), server }
    }
}
