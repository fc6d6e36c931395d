//! Orders of flow records.

/// Property by which flows are sorted, in descending order unless noted otherwise. Counts include both
/// directions.
///
/// [`FlowView::sort_value`](crate::tracker::FlowView::sort_value) returns the value of a flow before a record is
/// created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SortKey {
    /// Time of the first packet, the earliest first.
    Start,
    /// Time of the last packet, the earliest first.
    End,
    /// Time from the first packet to the last.
    Duration,
    /// Number of packets.
    Packets,
    /// Number of octets on the wire.
    Octets,
    /// Number of octets of transport payload.
    Payload,
    /// Number of retransmitted TCP segments.
    Retransmitted,
    /// Round-trip time of the TCP handshake. A flow without a measured round-trip time comes last.
    Rtt,
}

impl SortKey {
    /// All sort keys.
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::End,
        Self::Duration,
        Self::Packets,
        Self::Octets,
        Self::Payload,
        Self::Retransmitted,
        Self::Rtt,
    ];

    /// Returns the name of the sort key as used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Duration => "duration",
            Self::Packets => "packets",
            Self::Octets => "octets",
            Self::Payload => "payload",
            Self::Retransmitted => "retransmitted",
            Self::Rtt => "rtt",
        }
    }
}
