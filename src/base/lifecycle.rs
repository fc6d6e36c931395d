//! Words for the life of a flow: how it stands, how it ended, who began it.

use std::fmt;

macro_rules! named {
    ($type:ident { $( $variant:ident => $text:literal, )* }) => {
        impl $type {
            /// The name in text formats.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

/// Why a flow record was made: the values of flowEndReason (IPFIX 136).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum EndReason {
    /// No packet for as long as the flow's class waits.
    IdleTimeout = 1,
    /// The flow goes on; this record is what it did since the last one.
    ActiveTimeout = 2,
    /// The protocol closed it: FIN from both sides, a valid RST, or a new connection on the same ports.
    EndOfFlow = 3,
    /// The input ended, or the caller removed it.
    ForcedEnd = 4,
    /// It had to make room.
    LackOfResources = 5,
}

named!(EndReason {
    IdleTimeout => "idle_timeout",
    ActiveTimeout => "active_timeout",
    EndOfFlow => "end_of_flow_detected",
    ForcedEnd => "forced_end",
    LackOfResources => "lack_of_resources",
});

/// How a TCP connection stands, as seen from between the two ends; the names of RFC 9293 section 3.3.2.
///
/// While it closes, the name is that of the end which closed first, until the other end's FIN is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum TcpState {
    /// Not TCP, or nothing known yet.
    #[default]
    None = 0,
    /// A SYN was seen and nothing that answers it.
    SynSent = 1,
    /// A SYN-ACK was seen, the handshake's last ACK was not.
    SynReceived = 2,
    /// Data may flow both ways; also a connection picked up in its middle.
    Established = 3,
    /// One end sent FIN, which is not acknowledged yet.
    FinWait1 = 4,
    /// One end sent FIN and the other acknowledged it; the other may go on sending.
    FinWait2 = 5,
    /// Both ends sent FIN before either was acknowledged.
    Closing = 6,
    /// The second FIN is on its way, the first one is acknowledged.
    LastAck = 7,
    /// Both FINs are acknowledged.
    TimeWait = 8,
    /// A valid RST ended it.
    Closed = 9,
}

named!(TcpState {
    None => "none",
    SynSent => "syn_sent",
    SynReceived => "syn_received",
    Established => "established",
    FinWait1 => "fin_wait_1",
    FinWait2 => "fin_wait_2",
    Closing => "closing",
    LastAck => "last_ack",
    TimeWait => "time_wait",
    Closed => "closed",
});

impl TcpState {
    /// Whether both ends are done: late segments still belong to it, a new SYN does not.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closing | Self::LastAck | Self::TimeWait | Self::Closed)
    }
}

/// On what grounds one side was taken for the initiator; the later ones outweigh the earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum DirectionEvidence {
    /// Its packet was seen first, and nothing speaks against it.
    #[default]
    FirstSeen = 0,
    /// The other side's port is the registered service of the two.
    ServicePort = 1,
    /// The other side's address is multicast or broadcast.
    Multicast = 2,
    /// The other side sent a SYN-ACK.
    SynAck = 3,
    /// It sent a SYN.
    Syn = 4,
}

named!(DirectionEvidence {
    FirstSeen => "first_seen",
    ServicePort => "service_port",
    Multicast => "multicast",
    SynAck => "syn_ack",
    Syn => "syn",
});

impl DirectionEvidence {
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::FirstSeen,
            1 => Self::ServicePort,
            2 => Self::Multicast,
            3 => Self::SynAck,
            _ => Self::Syn,
        }
    }
}

/// The outcome of a connection in one word, with the letters of Zeek's `conn_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ConnState {
    /// Attempt seen, no reply.
    S0,
    /// Established, not terminated.
    S1,
    /// Established, the initiator closed, the responder did not.
    S2,
    /// Established, the responder closed, the initiator did not.
    S3,
    /// Established and terminated by both.
    Sf,
    /// Attempt rejected.
    Rej,
    /// Established, the initiator aborted.
    Rsto,
    /// The responder aborted.
    Rstr,
    /// The initiator sent SYN and then RST, no SYN-ACK seen.
    Rstos0,
    /// The responder sent SYN-ACK and then RST, no SYN seen.
    Rstrh,
    /// The initiator sent SYN and then FIN, no SYN-ACK seen.
    Sh,
    /// The responder sent SYN-ACK and then FIN, no SYN seen.
    Shr,
    /// Anything else: traffic in the middle of a connection, protocols without one.
    Oth,
}

named!(ConnState {
    S0 => "S0",
    S1 => "S1",
    S2 => "S2",
    S3 => "S3",
    Sf => "SF",
    Rej => "REJ",
    Rsto => "RSTO",
    Rstr => "RSTR",
    Rstos0 => "RSTOS0",
    Rstrh => "RSTRH",
    Sh => "SH",
    Shr => "SHR",
    Oth => "OTH",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_survives_its_bits() {
        for evidence in [
            DirectionEvidence::FirstSeen,
            DirectionEvidence::ServicePort,
            DirectionEvidence::Multicast,
            DirectionEvidence::SynAck,
            DirectionEvidence::Syn,
        ] {
            assert_eq!(DirectionEvidence::from_bits(evidence as u8), evidence);
        }
    }
}
