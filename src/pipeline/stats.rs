//! The counters of a pipeline.

use super::dispatch::QueueStats;
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::decode::ChecksumStats;
use crate::decode::extractor::SkipStats;
use crate::decode::fragment::FragmentStats;
use crate::dedup::DedupStats;
use crate::reassembler::ReassemblerStats;
use crate::session::DriverStats;
use crate::tracker::TrackerStats;

/// Counters of all layers of a [`Pipeline`](super::Pipeline).
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PipelineStats {
    /// Number of frames that were processed.
    pub frame_count: u64,
    /// Number of octets of the frames on the wire.
    pub octet_count: u64,
    /// Time of the first frame with a time, and the latest time of all frames that was accepted; `None` before that frame. A
    /// frame that is late may have an earlier time than the first one.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Number of frames with a time far ahead of all earlier ones that the next frame did not confirm; the latest
    /// earlier time is used for them. See [`TIME_JUMP_MAX`](super::TIME_JUMP_MAX).
    pub doubted_time_count: u64,
    /// Counters of duplicate frames, which are dropped first; all zero without deduplication.
    pub dedup: DedupStats,
    /// Numbers of frames that contain no packet of any flow, by reason.
    pub skipped: SkipStats,
    /// Number of packets that the filter dropped.
    pub filtered_count: u64,
    /// Results of verifying checksums; all zero if checksums are ignored.
    pub checksums: ChecksumStats,
    /// Number of orphan fragments, which belong to no flow because the first fragment of their datagram is missing.
    pub orphan_fragment_count: u64,
    /// Number of octets on the wire of the frames with orphan fragments.
    pub orphan_fragment_octet_count: u64,
    /// Counters of the pool of fragments that wait for the rest of their datagram.
    pub fragments: FragmentStats,
    /// Number of packets that were counted for an outer flow, in addition to the innermost flow; zero unless
    /// [`Decapsulation::Both`](crate::decode::link::Decapsulation::Both) is set.
    pub outer_packet_count: u64,
    /// Number of frames in 802.11 aggregates (A-MSDU) in addition to the first of each: an aggregate counts as one frame,
    /// and each frame in it has a packet or a reason in `skipped`.
    pub aggregated_count: u64,
    /// Counters of the TCP reassembler; all zero without streams.
    pub streams: ReassemblerStats,
    /// Counters of the session driver; all zero without sessions.
    pub sessions: DriverStats,
    /// Statistics of the queues between threads; all zero without shards.
    pub queues: QueueStats,
    /// Counters of the flow tracker.
    pub tracker: TrackerStats,
    /// What the checkpoint did not contain from which the pipeline was restored; all zero without one.
    pub unsaved: Unsaved,
}

impl PipelineStats {
    /// Adds the counters of another part of the input.
    pub(super) fn add_part(&mut self, other: &Self) {
        self.frame_count += other.frame_count;
        self.octet_count += other.octet_count;
        self.doubted_time_count += other.doubted_time_count;
        self.skipped.merge(&other.skipped);
        self.filtered_count += other.filtered_count;
        self.orphan_fragment_count += other.orphan_fragment_count;
        self.orphan_fragment_octet_count += other.orphan_fragment_octet_count;
        self.fragments.add(&other.fragments);
        self.outer_packet_count += other.outer_packet_count;
        self.aggregated_count += other.aggregated_count;
        self.streams.add(&other.streams);
        self.sessions.add(&other.sessions);
        self.tracker.add(&other.tracker);
    }
}

/// What a [checkpoint](super::Pipeline::checkpoint) does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unsaved {
    /// Number of datagrams with fragments that waited for others.
    pub datagram_count: u64,
    /// Number of frames with which later ones were compared to find duplicates.
    pub hash_count: u64,
}

impl Unsaved {
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        out.varint(self.datagram_count)?;
        Ok(out.varint(self.hash_count)?)
    }

    pub(super) fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self { datagram_count: reader.varint()?, hash_count: reader.varint()? })
    }
}
