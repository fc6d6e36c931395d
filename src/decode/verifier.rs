//! Verification of checksums on request.

use super::extractor::Packet;
use super::link::{Checksum, IpPacket, checksums, ip_header};
use crate::base::{EtherType, IpProtocol, Limits};

/// Handling of checksums in a [`Pipeline`](crate::pipeline::Pipeline).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChecksumHandling {
    /// Checksums are not verified.
    #[default]
    Ignore,
    /// Checksums are verified and counted, which reads all octets of each frame.
    Count,
    /// Checksums are verified and counted, and frames with a wrong checksum count for no flow. A frame whose
    /// checksum is left to the network card is not dropped.
    Drop,
}

/// Number of packets by result of the verification of one checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChecksumCounts {
    /// Number of packets with a checksum that matches the octets.
    pub right_count: u64,
    /// Number of packets of UDP over IPv4 that were sent without a checksum.
    pub absent_count: u64,
    /// Number of packets whose checksum field is zero where zero is not valid: the network card computes the
    /// checksum.
    pub zero_count: u64,
    /// Number of packets whose checksum field holds the sum of the pseudo-header alone: the network card
    /// computes the rest.
    pub partial_count: u64,
    /// Number of packets with a checksum that does not match the octets.
    pub wrong_count: u64,
    /// Number of packets that could not be verified, because some of the octets are missing or a length field
    /// is wrong.
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

/// Results of checksum verification; all zero if verification is disabled. For a tunnel, the innermost packet
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChecksumStats {
    /// Counts for the checksums of IPv4 headers.
    pub ipv4: ChecksumCounts,
    /// Counts for the checksums of TCP segments.
    pub tcp: ChecksumCounts,
    /// Counts for the checksums of UDP datagrams.
    pub udp: ChecksumCounts,
    /// Number of frames that were dropped because a checksum was wrong.
    pub dropped_count: u64,
}

/// Verifies the checksums of packets and counts the results.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verifier {
    handling: ChecksumHandling,
    pub(super) stats: ChecksumStats,
}

impl Verifier {
    pub(super) fn new(handling: ChecksumHandling) -> Self {
        Self { handling, stats: ChecksumStats::default() }
    }

    /// Returns whether the checksums of packets are to be verified.
    #[inline(always)]
    pub(super) fn is_wanted(&self) -> bool {
        self.handling != ChecksumHandling::Ignore
    }

    /// Verifies the checksums of a packet that a walk found in a frame, and counts the results. Returns false
    /// if the packet is to be dropped because a checksum is wrong.
    #[inline(never)]
    pub(super) fn accepts(&mut self, frame: &[u8], found: &IpPacket) -> bool {
        let checksums = checksums(frame, found);
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

    /// Verifies the checksums of a packet that the fast path read, and counts the results; reads the IP
    /// header again. Returns false if the packet is to be dropped because a checksum is wrong.
    #[inline(never)]
    pub(super) fn accepts_plain(&mut self, packet: &Packet<'_>, limits: &Limits) -> bool {
        let offset = packet.ip_offset as usize;
        let ether_type = if packet.key.is_ipv6() { EtherType::IPV6 } else { EtherType::IPV4 };
        let data = packet.frame.get(offset..).unwrap_or_default();
        let wire_len = (packet.wire_len as usize).saturating_sub(offset);
        let Ok(ip) = ip_header(data, wire_len, offset, ether_type, limits) else { return true };
        let found = IpPacket { offset, ether_type, ip, ..IpPacket::EMPTY };
        self.accepts(packet.frame, &found)
    }
}
