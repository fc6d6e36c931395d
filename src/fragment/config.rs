//! What the caller decides about a pool.

use std::fmt;
use std::time::Duration;

use super::policy::OverlapPolicy;
use crate::base::{Budget, Limits};

/// Deadline, limits, policy and seeds of a [`Pool`](super::Pool).
#[derive(Clone)]
#[non_exhaustive]
pub struct PoolConfig {
    /// How long a datagram may take from its first fragment to its last, in packet time. Default 30 s, which is what
    /// Linux waits; RFC 8200 says 60 s, RFC 791 15 s and more.
    pub timeout: Duration,
    /// What happens to IPv4 fragments that overlap.
    pub policy: OverlapPolicy,
    /// Caps. Of these, the pool looks at `fragment_datagram_count_max`, `fragment_bytes_max` and
    /// `fragment_per_datagram_count_max`.
    pub limits: Limits,
    /// The account of memory; shared with other layers by cloning the handle.
    pub budget: Budget,
    /// Seeds of the keyed hash, for runs that must be repeatable; drawn at random (the default) if `None`. Outcomes do
    /// not depend on them.
    pub seeds: Option<[u64; 4]>,
}

impl PoolConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match &self.limits {
            limits if limits.fragment_datagram_count_max == 0 => Err(ConfigError::NoDatagrams),
            limits if limits.fragment_per_datagram_count_max < 2 => Err(ConfigError::TooFewFragments),
            _ => Ok(()),
        }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        let limits = Limits::DEFAULT;
        Self {
            timeout: Duration::from_secs(30),
            policy: OverlapPolicy::default(),
            limits,
            budget: Budget::new(limits.total_bytes_max),
            seeds: None,
        }
    }
}

impl fmt::Debug for PoolConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds stay unsaid: who knows them can choose colliding datagrams.
        f.debug_struct("PoolConfig")
            .field("timeout", &self.timeout)
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// A configuration that no pool can be made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A cap of zero datagrams.
    NoDatagrams,
    /// A cap of less than two fragments per datagram.
    TooFewFragments,
    /// The cap on bytes or the budget does not hold what the pool always has: 64 KiB for a completed datagram, and four
    /// bytes per datagram of the cap, up to 4 MiB.
    TooFewBytes,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDatagrams => "fragment_datagram_count_max is zero",
            Self::TooFewFragments => "fragment_per_datagram_count_max is less than two",
            Self::TooFewBytes => "fragment_bytes_max or the budget is too small for an empty pool",
        })
    }
}

impl std::error::Error for ConfigError {}
