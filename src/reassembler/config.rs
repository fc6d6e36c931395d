//! Configuration of a reassembler.

use std::time::Duration;

use super::policy::{OverflowPolicy, OverlapPolicy};
use crate::base::ConfigError;

crate::base::configuration! {
    /// Policies and timeouts of a [`Reassembler`](super::Reassembler).
    ///
    /// The reassembler uses three of the limits in its [`Resources`](crate::base::Resources): `stream_bytes_max`,
    /// `stream_side_bytes_max` and `stream_side_segment_count_max`. Zeros are allowed: then nothing is held, and streams
    /// consist of the octets that arrived in order.
    #[derive(Clone, Debug)]
    pub struct ReassemblerConfig {
        /// Policy that selects the bytes to keep where held segments and new ones overlap.
        pub overlap: OverlapPolicy,
        /// Policy for segments that must be held when a memory limit is reached.
        pub overflow: OverflowPolicy,
        /// Time for which octets that the receiver acknowledged may still arrive although later octets of their direction
        /// did, in packet time, because packets were captured out of order. Default 10 ms.
        pub ack_grace: Duration,
        /// Time by which one direction of a connection may be captured later than the other, in packet time, because a
        /// capture of two interfaces is skewed. So long, acknowledged octets after the last captured ones may arrive, and
        /// octets of the other direction that were sent after them wait. At least `ack_grace`; default 50 ms.
        pub skew_max: Duration,
        /// Time for which a stream without acknowledgments waits for a hole to be filled; the time restarts whenever the
        /// stream advances. Default 3 s, which is enough for a first and a second retransmission (RFC 6298: 1 s, then 2 s).
        pub hole_timeout: Duration,
        /// Number of octets per direction of a connection, counted back from the latest delivered octet, that are kept for
        /// comparison with repeated octets. Costs a copy of all delivered octets and memory of this size per stream,
        /// rounded up to a power of two. Default 0: delivered octets are not compared. At most 16 MiB.
        pub compared_len: u32,
    }
}

impl ReassemblerConfig {
    /// Maximum of [`compared_len`](Self::compared_len) in octets.
    pub const COMPARED_LEN_MAX: u32 = 16 << 20;

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.compared_len > Self::COMPARED_LEN_MAX {
            return Err(ConfigError::out_of_range(
                "reassembler",
                "compared_len",
                (0, Self::COMPARED_LEN_MAX.into()),
            ));
        }
        Ok(())
    }
}

impl Default for ReassemblerConfig {
    fn default() -> Self {
        Self {
            overlap: OverlapPolicy::default(),
            overflow: OverflowPolicy::default(),
            ack_grace: Duration::from_millis(10),
            skew_max: Duration::from_millis(50),
            hole_timeout: Duration::from_secs(3),
            compared_len: 0,
        }
    }
}
