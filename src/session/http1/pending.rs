//! Which requests wait for an answer, and what kind of answer that is.

use super::PIPELINE_COUNT_MAX;

/// What a request makes of its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing special.
    #[default]
    Plain,
    /// HEAD: the response has no body, whatever it says.
    Head,
    /// CONNECT: a response that grants it ends HTTP.
    Connect,
    /// Asks for another protocol, which `101` grants.
    Upgrade,
    /// A request of HTTP/0.9: the response is a body without a head.
    Simple,
}

/// Numbers of requests and responses.
#[derive(Debug, Default)]
pub(super) struct Pending {
    request_count: u64,
    /// The number of the next response, unless requests say otherwise.
    next_response: u64,
    kinds: [Kind; PIPELINE_COUNT_MAX as usize],
    /// Responses may have been lost.
    is_adrift: bool,
}

impl Pending {
    /// A request came: its number.
    pub(super) fn request(&mut self, kind: Kind) -> u64 {
        // What was answered without a request had one that was not captured.
        let number = self.request_count.max(self.next_response);
        self.request_count = number + 1;
        if let Some(place) = self.kinds.get_mut((number % PIPELINE_COUNT_MAX) as usize) {
            *place = kind;
        }
        number
    }

    /// A response came: the number and the kind of its request. `is_interim`: another response to the same one will follow.
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

    /// The kind of the request that the next response answers.
    pub(super) fn next_kind(&self) -> Kind {
        self.kind(self.next_response)
    }

    /// Responses may be missing.
    pub(super) fn lost_responses(&mut self) {
        self.is_adrift = true;
    }

    /// Whether a request has no final response yet.
    pub(super) fn is_waiting(&self, number: u64) -> bool {
        self.next_response <= number
    }

    fn kind(&self, number: u64) -> Kind {
        let is_known = number < self.request_count && self.request_count - number <= PIPELINE_COUNT_MAX;
        let kind = self.kinds.get((number % PIPELINE_COUNT_MAX) as usize).filter(|_| is_known);
        kind.copied().unwrap_or_default()
    }
}
