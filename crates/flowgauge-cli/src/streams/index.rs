//! Entries of the index file of streams, one per direction.

use std::net::IpAddr;

use flowgauge::Timestamp;
use flowgauge::base::{EndReason, Side};
use flowgauge::reassembler::{Conflict, Gap, StreamEvent};
use flowgauge::record::CommunityId;
use flowgauge::row::{Group, List, ListOf, Name};
use flowgauge::tracker::FlowView;

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

    /// Returns the memory of the lists in bytes.
    pub(super) const fn heap_len(&self) -> usize {
        self.gaps.capacity() * size_of::<Gap>() + self.conflicts.capacity() * size_of::<Conflict>()
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
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) view: &'a FlowView<'a>,
    pub(super) number: u64,
    pub(super) side: Side,
    pub(super) direction: &'a DirectionState,
    pub(super) reason: EndReason,
    /// Name of the file with the octets, if any octet was written.
    pub(super) file: Option<&'a str>,
}

flowgauge::table! {
    /// A direction of a TCP connection.
    impl['a] "stream" for Line<'a> as line {
        /// Name of the file with the octets; null if no octet was written.
        "file": Option<&'a str> = line.file;
        /// Number of the flow.
        "number": u64 = line.number;
        /// Community ID of the flow.
        "community_id": CommunityId = line.view.community_id();
        /// Address of the sender.
        "source_address": IpAddr = line.view.address(line.side);
        /// Port of the sender.
        "source_port": Option<u16> = line.view.key().port(line.side);
        /// Address of the receiver.
        "destination_address": IpAddr = line.view.address(line.side.other());
        /// Port of the receiver.
        "destination_port": Option<u16> = line.view.key().port(line.side.other());
        /// True if the sender is the initiator of the flow.
        "is_initiator": bool = line.view.initiator() == line.side;
        /// Time of the first packet of the flow.
        "start": Timestamp = line.view.start();
        /// Time of the last packet of the flow.
        "end": Timestamp = line.view.end();
        /// Reason for the end of the flow.
        "flow_end_reason": Name = Name(line.reason.name());
        /// Number of written octets.
        "octet_count": u64 = line.direction.octet_count;
        /// Number of missing octets.
        "gap_octet_count": u64 = line.direction.gap_octet_count();
        /// Number of missing octets that were written as zeros. Without any octet, there is no file for zeros either.
        "filled_octet_count": u64 = if line.file.is_some() { line.direction.filled_octet_count } else { 0 };
        /// Number of gaps.
        "gap_count": u64 = line.direction.gap_count;
        /// The first gaps.
        "gaps": ListOf<Group<&'a Gap>> => List(line.direction.gaps.iter().map(Group));
        /// Number of conflicts.
        "conflict_count": u64 = line.direction.conflict_count;
        /// The first conflicts.
        "conflicts": ListOf<Group<&'a Conflict>> => List(line.direction.conflicts.iter().map(Group));
        /// Number of octets that were retransmitted.
        "repeated_octet_count": u64 = line.direction.repeated_octet_count;
        /// Number of octets that were sent after the end of the stream.
        "after_fin_octet_count": u64 = line.direction.after_fin_octet_count;
        /// True if the end of the stream is known.
        "has_fin": bool = line.direction.has_fin;
        /// True if the direction was stopped because a limit was reached.
        "is_poisoned": bool = line.direction.is_poisoned;
    }
}
