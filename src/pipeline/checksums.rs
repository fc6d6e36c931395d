//! Checksums verified on request.

use crate::base::{Frame, IpProtocol};
use crate::extractor::Extractor;
use crate::link::{Checksum, checksums};

/// What a [`Pipeline`](super::Pipeline) does about checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChecksumHandling {
    /// They are not looked at.
    #[default]
    Ignore,
    /// They are verified and counted, which walks each frame once more and reads all of it.
    Count,
    /// The same, and frames with a wrong one are no packets of any flow. What a network card was to fill in is no error,
    /// and is not dropped.
    Drop,
}

/// Packets by what a checksum says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChecksumCounts {
    /// It agrees with the octets.
    pub right_count: u64,
    /// UDP over IPv4 without one.
    pub absent_count: u64,
    /// Zero where it must not be: left to the network card.
    pub zero_count: u64,
    /// The sum of the pseudo-header alone: left to the network card.
    pub partial_count: u64,
    /// It does not agree.
    pub wrong_count: u64,
    /// Not all of the octets are there.
    pub unknown_count: u64,
}

impl ChecksumCounts {
    const fn count(&mut self, checksum: Checksum) {
        match checksum {
            Checksum::Right => self.right_count += 1,
            Checksum::Absent => self.absent_count += 1,
            Checksum::Zero => self.zero_count += 1,
            Checksum::Partial => self.partial_count += 1,
            Checksum::Wrong => self.wrong_count += 1,
            Checksum::Unknown => self.unknown_count += 1,
            Checksum::None => {}
        }
    }
}

/// What verifying found; all zero if it was not asked for. Of a tunnel, the innermost packet counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChecksumStats {
    /// IPv4 headers.
    pub ipv4: ChecksumCounts,
    /// TCP segments.
    pub tcp: ChecksumCounts,
    /// UDP datagrams.
    pub udp: ChecksumCounts,
    /// Frames that were dropped for one that is wrong.
    pub dropped_count: u64,
}

/// Verifies frames, and counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verifier {
    pub(super) handling: ChecksumHandling,
    pub(super) stats: ChecksumStats,
}

impl Verifier {
    /// Whether a frame is to be tracked.
    #[inline(never)]
    pub(super) fn accepts(&mut self, frame: &Frame<'_>, extractor: &Extractor) -> bool {
        let Some(found) = extractor.find(frame, None) else { return true };
        let checksums = checksums(frame.data, &found);
        self.stats.ipv4.count(checksums.header);
        match found.ip.protocol {
            IpProtocol::TCP => self.stats.tcp.count(checksums.transport),
            IpProtocol::UDP => self.stats.udp.count(checksums.transport),
            _ => {}
        }
        let is_dropped = self.handling == ChecksumHandling::Drop && checksums.is_wrong();
        self.stats.dropped_count += u64::from(is_dropped);
        !is_dropped
    }
}
