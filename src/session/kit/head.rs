//! What all rows of exchanges have in common.

use std::time::Duration;

use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::session::{Lack, Role};

/// Times of an exchange, and what of it was not captured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExchangeHead {
    /// Role of the side that sent the request.
    pub from: Role,
    /// Time of the first message.
    pub start: Timestamp,
    /// Time of the last message.
    pub end: Timestamp,
    /// Time from the first request to the first response.
    pub response_time: Option<Duration>,
    /// Time of the first response.
    pub responded: Option<Timestamp>,
    /// Number of times that the request was repeated before a response.
    pub retransmission_count: u32,
    /// What was not captured.
    pub lacks: Option<Lack>,
}

state! { struct ExchangeHead { from, start, end, response_time, responded, retransmission_count, lacks } }

impl Default for ExchangeHead {
    fn default() -> Self {
        Self::new(Role::Client, Timestamp::ZERO)
    }
}

impl ExchangeHead {
    pub(crate) const fn new(from: Role, now: Timestamp) -> Self {
        Self {
            from,
            start: now,
            end: now,
            response_time: None,
            responded: None,
            retransmission_count: 0,
            lacks: None,
        }
    }
}
