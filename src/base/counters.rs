//! Counters for each side of a flow.

/// Packets and octets that one side of a flow sent.
///
/// Octets are counted at three layers: a frame of 60 octets on the wire may contain an IP packet of 40 octets that
/// carries no payload at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Number of packets that the side sent; each fragment counts as one (packetDeltaCount, IPFIX 2).
    pub packet_count: u64,
    /// Octets of the side's frames on the wire, including octets that were not captured (layer2OctetDeltaCount, IPFIX
    /// 352).
    pub octet_count: u64,
    /// Octets of the side's packets according to the IP total length of the innermost packet (octetDeltaCount, IPFIX
    /// 1).
    pub ip_octet_count: u64,
    /// Octets of transport payload that the side sent, according to the length fields: without padding, with
    /// retransmissions.
    pub payload_octet_count: u64,
}

impl Counters {
    /// Returns whether no packet was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.packet_count == 0
    }

    /// Multiplies all counts by a factor; they saturate.
    pub(crate) const fn scale(&mut self, factor: u64) {
        self.packet_count = self.packet_count.saturating_mul(factor);
        self.octet_count = self.octet_count.saturating_mul(factor);
        self.ip_octet_count = self.ip_octet_count.saturating_mul(factor);
        self.payload_octet_count = self.payload_octet_count.saturating_mul(factor);
    }
}

impl std::ops::Add for Counters {
    type Output = Self;

    /// Adds counts, which saturate: those of an exporter can be any numbers.
    fn add(self, other: Self) -> Self {
        Self {
            packet_count: self.packet_count.saturating_add(other.packet_count),
            octet_count: self.octet_count.saturating_add(other.octet_count),
            ip_octet_count: self.ip_octet_count.saturating_add(other.ip_octet_count),
            payload_octet_count: self.payload_octet_count.saturating_add(other.payload_octet_count),
        }
    }
}

/// Counters of one side of a TCP flow, in addition to [`Counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TcpCounters {
    /// Number of TCP segments whose octets had all been seen before, except keep-alives and window probes.
    pub retransmitted_count: u32,
    /// Number of TCP segments that arrived late and filled a hole.
    pub out_of_order_count: u32,
    /// Number of TCP segments that advertised a window of zero.
    pub zero_window_count: u32,
}
