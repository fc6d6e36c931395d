//! Entries of the index file of streams, one per direction.

use flowgauge::base::{EndReason, Side};
use flowgauge::reassembler::{Conflict, Gap, StreamEvent};
use flowgauge::record::{CommunityId, community_id};
use flowgauge::tracker::FlowView;
use serde::Serialize;

/// Maximum number of gaps, and of conflicts, that are listed per direction; further ones are only counted.
const LISTED_COUNT_MAX: usize = 1000;

/// Properties of one direction of a TCP connection that are written to the index when its flow ends.
#[derive(Debug, Default)]
pub(super) struct DirectionState {
    /// Number of octets of the direction that were written.
    pub(super) octet_count: u64,
    /// Length of the stream in octets, including gaps.
    pub(super) len: u64,
    /// Number of missing octets that were written as zeros.
    pub(super) filled_octet_count: u64,
    pub(super) has_file: bool,
    /// True if the direction has events, but is not written to the output.
    pub(super) is_left_out: bool,
    gap_count: u64,
    gaps: Vec<Gap>,
    conflict_count: u64,
    conflicts: Vec<Conflict>,
    repeated_octet_count: u64,
    after_fin_octet_count: u64,
    has_fin: bool,
    is_poisoned: bool,
}

impl DirectionState {
    /// Records an event of the direction. `listable_count` is the number of gaps and conflicts that may still be listed
    /// for all flows together.
    pub(super) fn note(&mut self, event: &StreamEvent<'_>, listable_count: &mut usize) {
        match event {
            StreamEvent::Chunk(chunk) => {
                self.octet_count += chunk.bytes.len() as u64;
                self.len = chunk.end();
            }
            StreamEvent::Gap(gap) => {
                self.gap_count += 1;
                self.len = gap.offset + gap.len;
                list(&mut self.gaps, *gap, listable_count);
            }
            StreamEvent::Conflict(conflict) => {
                self.conflict_count += 1;
                list(&mut self.conflicts, *conflict, listable_count);
            }
            StreamEvent::Repeated { len, .. } => self.repeated_octet_count += len,
            StreamEvent::AfterFin { len, .. } => self.after_fin_octet_count += len,
            StreamEvent::Fin { .. } => self.has_fin = true,
            StreamEvent::Poisoned { .. } => self.is_poisoned = true,
            _ => {}
        }
    }

    pub(super) const fn listed_count(&self) -> usize {
        self.gaps.len() + self.conflicts.len()
    }

    pub(super) const fn gap_octet_count(&self) -> u64 {
        self.len - self.octet_count
    }

    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.gap_count, self.conflict_count)
    }
}

fn list<T>(all: &mut Vec<T>, one: T, listable_count: &mut usize) {
    if all.len() < LISTED_COUNT_MAX && *listable_count > 0 {
        *listable_count -= 1;
        all.push(one);
    }
}

/// A line of the index file, for one direction. The source is the sender of the octets. `gaps` and `conflicts` list the
/// first of the gaps and conflicts that are counted.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    /// Name of the file with the octets; `null` if no octet was written.
    file: Option<&'a str>,
    number: u64,
    community_id: CommunityId,
    source_address: std::net::IpAddr,
    source_port: Option<u16>,
    destination_address: std::net::IpAddr,
    destination_port: Option<u16>,
    /// True if the source, which sent the octets, is the initiator of the flow.
    is_initiator: bool,
    /// Start of the flow in nanoseconds since 1970.
    start_ns: u64,
    end_ns: u64,
    flow_end_reason: &'static str,
    octet_count: u64,
    gap_octet_count: u64,
    /// Number of missing octets that were written as zeros.
    filled_octet_count: u64,
    gap_count: u64,
    gaps: &'a [Gap],
    conflict_count: u64,
    conflicts: &'a [Conflict],
    repeated_octet_count: u64,
    after_fin_octet_count: u64,
    /// True if the end of the stream is known.
    has_fin: bool,
    is_poisoned: bool,
}

impl<'a> Line<'a> {
    pub(super) fn new(
        view: &FlowView<'_>,
        number: u64,
        (side, direction): (Side, &'a DirectionState),
        reason: EndReason,
        file: Option<&'a str>,
    ) -> Self {
        Self {
            file,
            number,
            community_id: community_id(view.key(), 0),
            source_address: view.address(side),
            source_port: view.key().port(side),
            destination_address: view.address(side.other()),
            destination_port: view.key().port(side.other()),
            is_initiator: view.initiator() == side,
            start_ns: view.start().as_nanos(),
            end_ns: view.end().as_nanos(),
            flow_end_reason: reason.name(),
            octet_count: direction.octet_count,
            gap_octet_count: direction.gap_octet_count(),
            // Without any octet, there is no file for zeros either.
            filled_octet_count: if file.is_some() { direction.filled_octet_count } else { 0 },
            gap_count: direction.gap_count,
            gaps: &direction.gaps,
            conflict_count: direction.conflict_count,
            conflicts: &direction.conflicts,
            repeated_octet_count: direction.repeated_octet_count,
            after_fin_octet_count: direction.after_fin_octet_count,
            has_fin: direction.has_fin,
            is_poisoned: direction.is_poisoned,
        }
    }
}
