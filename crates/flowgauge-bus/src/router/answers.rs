//! The part of a router that answers requests, without sockets.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use flowgauge::base::EndReason;
use flowgauge::export::FixedRecord;
use flowgauge::{Interface, Pipeline, Sink};

use super::request::{Answer, Numbered, Request, not_found};
use super::tour::Tour;
use crate::packet_ring::PacketRing;

/// Requests that wait for answers which need a pass over all flows.
#[expect(missing_debug_implementations, reason = "not part of the public interface")]
pub struct Answers {
    /// Requests that arrived while a pass for earlier ones is under way.
    scans: VecDeque<Numbered>,
    tour: Option<Tour>,
    request_count_max: usize,
}

impl Answers {
    /// At most `request_count_max` requests wait.
    #[must_use]
    pub const fn new(request_count_max: usize) -> Self {
        Self { scans: VecDeque::new(), tour: None, request_count_max }
    }

    /// Returns whether no request waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tour.is_none() && self.scans.is_empty()
    }

    /// Answers requests that take constant time, and works on the others until the time `until`. Each answer is passed to
    /// `reply` with the number of its request.
    pub fn step<K: Sink>(
        &mut self,
        requests: impl Iterator<Item = Numbered>,
        pipeline: &Pipeline<K>,
        packets: Option<(&PacketRing, &[Interface])>,
        until: Instant,
        reply: &mut impl FnMut(u64, Answer),
    ) {
        for (number, request) in requests {
            if let Some(answer) = direct_answer(&request, pipeline) {
                reply(number, answer);
                continue;
            }
            self.scans.push_back((number, request));
            // More requests do not wait: the earliest ones were rejected meanwhile.
            if self.scans.len() > self.request_count_max {
                self.scans.pop_front();
            }
        }
        if self.tour.is_none() && !self.scans.is_empty() {
            self.tour = Some(Tour::new(self.scans.drain(..)));
        }
        if let Some(tour) = &mut self.tour
            && tour.advance(pipeline, packets, until, reply)
        {
            self.tour = None;
        }
    }
}

/// Answers a request that takes constant time; `None` for the others.
fn direct_answer<K: Sink>(request: &Request, pipeline: &Pipeline<K>) -> Option<Answer> {
    match request {
        Request::Key(key) => Some(match pipeline.find(key).and_then(|id| pipeline.flow(id)) {
            Some((view, _)) => {
                let record = view.record(EndReason::ActiveTimeout);
                ("ok", Bytes::copy_from_slice(&FixedRecord::encode(&record)))
            }
            None => not_found(),
        }),
        Request::Counters => {
            let stats = pipeline.stats();
            let text = format!(
                "{{\"frame_count\":{},\"octet_count\":{},\"packet_count\":{},\"flow_count\":{},\
                 \"started_count\":{},\"now_ns\":{}}}\n",
                stats.frame_count,
                stats.octet_count,
                stats.tracker.packet_count,
                pipeline.flow_count(),
                stats.tracker.started_count,
                pipeline.now().as_nanos(),
            );
            Some(("ok", text.into()))
        }
        Request::CommunityId(_) | Request::Top { .. } | Request::Slice(_) => None,
    }
}
