//! State of a session that searches a stream for messages.

use super::octets::Octets;
use super::probing::ProbedOctets;
use super::protocol::{PROBE_LEN_MAX, Role, Search, StreamSearch};
use crate::base::Timestamp;

/// Maximum number of octets of each direction that are searched for a message of the protocol to which the port
/// belongs.
pub const RESUME_LEN_MAX: usize = 256 << 10;

/// Maximum number of chunks of each direction that are searched for a message of the protocol to which the port
/// belongs.
pub const RESUME_CHUNK_COUNT_MAX: u16 = 256;

/// State of a session that searches a stream for a message of the protocol to which its port belongs.
#[derive(Debug)]
pub(super) struct Resuming {
    /// Index in the protocol table of the protocol whose messages are searched for.
    pub(super) entry: usize,
    pub(super) search: StreamSearch,
    pub(super) is_picked_up: bool,
    pub(super) lanes: [Searched; 2],
}

/// Progress of the search for a message in one direction of a stream.
#[derive(Debug, Default)]
pub(super) struct Searched {
    /// The last octets of the direction, which may begin a message.
    pub(super) tail: ProbedOctets,
    /// Capture time of the latest octets of `tail`.
    pub(super) captured: Timestamp,
    pub(super) len: usize,
    pub(super) chunk_count: u16,
}

impl Resuming {
    /// Searches the next octets of a direction. If a message begins in them, returns true and sets `tail` to start with
    /// that message.
    pub(super) fn search(
        &mut self,
        Octets { from, offset, bytes }: Octets<'_>,
        timestamp: Timestamp,
    ) -> bool {
        let lane = from.of_mut(&mut self.lanes);
        lane.captured = timestamp;
        lane.len = lane.len.saturating_add(bytes.len());
        lane.chunk_count = lane.chunk_count.saturating_add(1);
        let tail = &mut lane.tail;
        if tail.bytes.is_empty() {
            tail.offset = offset;
        }
        tail.bytes.extend_from_slice(bytes);
        let (dropped_len, is_found) = match (self.search)(from, &tail.bytes) {
            Search::Found(at) => (at, true),
            Search::From(at) => (at.max(tail.bytes.len().saturating_sub(PROBE_LEN_MAX)), false),
        };
        let dropped_len = dropped_len.min(tail.bytes.len());
        tail.offset += dropped_len as u64;
        tail.bytes.drain(..dropped_len);
        if !is_found && tail.bytes.capacity() > 2 * PROBE_LEN_MAX {
            tail.bytes.shrink_to(PROBE_LEN_MAX);
        }
        is_found
    }

    /// Returns whether the search of this direction has reached [`RESUME_LEN_MAX`] or [`RESUME_CHUNK_COUNT_MAX`].
    pub(super) fn is_over(&self) -> bool {
        self.lanes.iter().any(|lane| lane.len > RESUME_LEN_MAX || lane.chunk_count >= RESUME_CHUNK_COUNT_MAX)
    }

    /// Discards the buffered last octets of a direction, because octets after them are missing.
    pub(super) fn gap(&mut self, from: Role) {
        from.of_mut(&mut self.lanes).tail.bytes.clear();
    }

    pub(super) fn allocated_len(&self) -> usize {
        size_of::<Self>() + self.lanes.iter().map(|lane| lane.tail.bytes.capacity()).sum::<usize>()
    }
}
