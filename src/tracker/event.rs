//! Changes of flows, and unusual traffic.

use std::time::Duration;

use super::flow::FlowBits;
use crate::base::{DirectionEvidence, Side, TcpState};

/// Unusual traffic of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anomaly {
    /// A RST with a sequence number that no receiver would accept, or that does not acknowledge the SYN: possibly
    /// forged. The flow continues, with a short timeout until more data arrives.
    ResetOutOfWindow,
    /// A SYN with a new sequence number on an open connection (RFC 5961 section 4). The flow continues.
    SynOnOpenFlow,
    /// An ICMP error quoted a packet of the flow.
    IcmpError,
    /// An ACK for octets that were not captured, so that the capture is incomplete.
    AckedUnseen,
}

impl Anomaly {
    /// Returns the name of the anomaly, as in all formats: `reset_out_of_window` and so on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResetOutOfWindow => "reset_out_of_window",
            Self::SynOnOpenFlow => "syn_on_open_flow",
            Self::IcmpError => "icmp_error",
            Self::AckedUnseen => "acked_unseen",
        }
    }
}

/// A change of a flow or unusual traffic, reported to an observer or a sink. Small and `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEvent {
    /// The TCP handshake is complete.
    Established {
        /// Time from the last SYN to the ACK that completes the handshake, if both were seen.
        handshake_rtt: Option<Duration>,
    },
    /// The TCP state of the flow changed.
    StateChanged {
        /// The state before the segment.
        from: TcpState,
        /// The state after the segment.
        to: TcpState,
    },
    /// Stronger evidence reversed the direction of the flow: the initiator is the other side than before.
    DirectionChanged {
        /// The new initiator.
        initiator: Side,
        /// The evidence in the packet for the new initiator.
        evidence: DirectionEvidence,
    },
    /// Unusual traffic of the flow.
    Anomaly(Anomaly),
}

/// What a callback changed about its flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallbackChanges {
    flags: u8,
    /// The bits of the view after the callback, with the direction that a session learned.
    pub(super) bits: FlowBits,
}

impl CallbackChanges {
    pub(super) const MUTED: u8 = 1;
    pub(super) const TURNED: u8 = 1 << 1;

    #[inline(always)]
    pub(super) const fn new(flags: u8, bits: FlowBits) -> Self {
        Self { flags, bits }
    }

    pub(super) const fn flags(self) -> u8 {
        self.flags
    }

    /// Returns the changes of two callbacks together.
    #[inline(always)]
    pub(crate) const fn and(self, later: Self) -> Self {
        Self { flags: self.flags | later.flags, bits: later.bits }
    }

    #[inline(always)]
    pub(crate) const fn is_some(self) -> bool {
        self.flags != 0
    }

    #[inline(always)]
    pub(crate) const fn is_muted(self) -> bool {
        self.flags & Self::MUTED != 0
    }

    /// Returns whether a session learned that the other side is the initiator, so that the view of the flow has changed.
    #[inline(always)]
    pub(crate) const fn has_turned(self) -> bool {
        self.flags & Self::TURNED != 0
    }
}
