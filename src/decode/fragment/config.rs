//! Configuration of a pool.

use std::time::Duration;

use super::policy::OverlapPolicy;

crate::base::configuration! {
    /// Configuration of a fragment [`Pool`](super::Pool): the deadline of datagrams and the policy for overlaps.
    ///
    /// The pool also uses `fragment_datagram_count_max`, `fragment_bytes_max` and
    /// `fragment_per_datagram_count_max` of the limits in its [`Resources`](crate::base::Resources).
    #[derive(Clone, Copy, Debug)]
    pub struct PoolConfig {
        /// Maximum time from the first fragment of a datagram to the last, in packet time. The default is 30 s,
        /// as in Linux; RFC 8200 specifies 60 s, RFC 791 15 s or more.
        pub timeout: Duration,
        /// Resolution of overlapping IPv4 fragments.
        pub policy: OverlapPolicy,
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), policy: OverlapPolicy::default() }
    }
}
