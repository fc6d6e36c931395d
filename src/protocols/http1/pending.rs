//! HTTP/1.x requests that wait for a response, and their kinds.

use super::PIPELINE_COUNT_MAX;
use crate::checkpoint::{COUNT_MAX, state};

/// Kind of an HTTP/1.x request, by its effect on the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request without an effect on the framing of the response.
    #[default]
    Plain,
    /// A HEAD request: the response has no body, regardless of its fields.
    Head,
    /// A CONNECT request: HTTP ends with a response that grants it.
    Connect,
    /// A request for another protocol, which a response `101` grants.
    Upgrade,
    /// A request of HTTP/0.9: the response is a body without a head.
    Simple,
    /// A request that was not captured, or is no longer known.
    Unknown,
}

/// Assigns numbers to HTTP/1.x requests and their responses.
#[derive(Debug, Default)]
pub(super) struct Pending {
    request_count: u64,
    /// Number that the next response receives, unless responses are missing.
    next_response: u64,
    kinds: [Kind; PIPELINE_COUNT_MAX as usize],
    /// True if responses may be missing, so that the next one is assumed to answer the last request.
    is_adrift: bool,
    /// Number of the last request whose final response has another status than 2xx.
    refused: Option<u64>,
}

state! { enum Kind { 0 = Plain, 1 = Head, 2 = Connect, 3 = Upgrade, 4 = Simple, 5 = Unknown } }
state! {
    struct Pending { request_count, next_response, kinds, is_adrift, refused }
    if |pending| pending.request_count.max(pending.next_response) < COUNT_MAX
}

impl Pending {
    /// Records a request of the given kind. Returns the number of the request.
    pub(super) fn request(&mut self, kind: Kind) -> u64 {
        // A response without a request had a request that was not captured.
        let number = self.request_count.max(self.next_response);
        self.request_count = number + 1;
        if let Some(place) = self.kinds.get_mut((number % PIPELINE_COUNT_MAX) as usize) {
            *place = kind;
        }
        number
    }

    /// Records a response. Returns the number and the kind of the request that it answers. `is_interim` is true if
    /// another response to the same request follows.
    pub(super) fn response(&mut self, is_interim: bool) -> (u64, Kind) {
        if self.is_adrift {
            self.next_response = self.next_response.max(self.request_count.saturating_sub(1));
            self.is_adrift = false;
        }
        let number = self.next_response;
        let kind = self.kind(number);
        if !is_interim {
            self.next_response += 1;
        }
        (number, kind)
    }

    /// Records that the final response to the request with this number has another status than 2xx.
    pub(super) const fn refuse(&mut self, number: u64) {
        self.refused = Some(number);
    }

    /// Returns whether [`refuse`](Self::refuse) was called for this request, and for none after it.
    pub(super) fn is_refused(&self, number: u64) -> bool {
        self.refused == Some(number)
    }

    /// Returns the kind of the request that the next response answers.
    pub(super) fn next_kind(&self) -> Kind {
        self.kind(self.next_response)
    }

    /// Records that responses may be missing, so that the next one is assumed to answer the last request.
    pub(super) fn lost_responses(&mut self) {
        self.is_adrift = true;
    }

    /// Returns whether the request with this number has no final response yet.
    pub(super) fn is_waiting(&self, number: u64) -> bool {
        self.next_response <= number
    }

    fn kind(&self, number: u64) -> Kind {
        let is_known = number < self.request_count && self.request_count - number <= PIPELINE_COUNT_MAX;
        let kind = self.kinds.get((number % PIPELINE_COUNT_MAX) as usize).filter(|_| is_known);
        kind.copied().unwrap_or(Kind::Unknown)
    }
}
