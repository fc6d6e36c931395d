//! What the caller decides about a reassembler.

use std::fmt;
use std::time::Duration;

use super::policy::{OverflowPolicy, OverlapPolicy};
use crate::base::{Budget, Limits};

/// Policies, times and limits of a [`Reassembler`](super::Reassembler).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReassemblerConfig {
    /// Whose bytes count where held segments and new ones overlap.
    pub overlap: OverlapPolicy,
    /// What gives way where there is no room.
    pub overflow: OverflowPolicy,
    /// How long octets that the receiver acknowledged may still come, in packet time: captures of two interfaces are skewed.
    /// Default 10 ms.
    pub ack_grace: Duration,
    /// How long a stream without acknowledgments waits for a hole to fill while nothing else fills either. Default 3 s,
    /// which is enough for a first and a second retransmission (RFC 6298: 1 s, then 2 s).
    pub hole_timeout: Duration,
    /// How many of the octets that were delivered last are kept per side, to compare with what comes again. Costs a copy of
    /// all that is delivered and memory of this size per stream, rounded up to a power of two. Default 0: what was
    /// delivered is not compared. At most 16 MiB.
    pub compared_len: u32,
    /// Caps. Of these, `stream_bytes_max`, `stream_side_bytes_max` and `stream_side_segment_count_max`. Zeros are allowed: then
    /// nothing is held, and streams are what came in order.
    pub limits: Limits,
    /// The account of memory; shared with other layers by cloning the handle.
    pub budget: Budget,
}

impl ReassemblerConfig {
    /// The most octets that [`compared_len`](Self::compared_len) may ask for.
    pub const COMPARED_LEN_MAX: u32 = 16 << 20;

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.compared_len > Self::COMPARED_LEN_MAX { Err(ConfigError::ComparedTooMuch) } else { Ok(()) }
    }
}

impl Default for ReassemblerConfig {
    fn default() -> Self {
        let limits = Limits::DEFAULT;
        Self {
            overlap: OverlapPolicy::default(),
            overflow: OverflowPolicy::default(),
            ack_grace: Duration::from_millis(10),
            hole_timeout: Duration::from_secs(3),
            compared_len: 0,
            limits,
            budget: Budget::new(limits.total_bytes_max),
        }
    }
}

/// A configuration that no reassembler can be made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// More than [`ReassemblerConfig::COMPARED_LEN_MAX`] octets to compare.
    ComparedTooMuch,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ComparedTooMuch => "compared_len exceeds 16 MiB",
        })
    }
}

impl std::error::Error for ConfigError {}
