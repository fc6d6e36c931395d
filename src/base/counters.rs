//! What is counted per side of a flow.

/// Packets and octets that one side of a flow sent.
///
/// Octets have three meanings, and all three are kept: a frame of 60 octets on the wire may hold an IP packet of
/// 40 octets that carries no payload at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Packets, a fragment counting as one (packetDeltaCount, IPFIX 2).
    pub packet_count: u64,
    /// Octets of the frames on the wire, whatever the capture kept of them (layer2OctetDeltaCount, IPFIX 352).
    pub octet_count: u64,
    /// Octets by the IP total length of the innermost packet (octetDeltaCount, IPFIX 1).
    pub ip_octet_count: u64,
    /// Octets of transport payload by the length fields: padding excluded, retransmissions included.
    pub payload_octet_count: u64,
}

impl Counters {
    /// Whether nothing was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.packet_count == 0
    }
}

impl std::ops::Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packet_count: self.packet_count + other.packet_count,
            octet_count: self.octet_count + other.octet_count,
            ip_octet_count: self.ip_octet_count + other.ip_octet_count,
            payload_octet_count: self.payload_octet_count + other.payload_octet_count,
        }
    }
}

/// What TCP adds to the [`Counters`] of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TcpCounters {
    /// Segments all of whose octets had been seen before; keep-alives and window probes are not among them.
    pub retransmitted_count: u32,
    /// Segments that arrived late and filled a hole.
    pub out_of_order_count: u32,
    /// Segments that announced a window of zero.
    pub zero_window_count: u32,
}
