//! States of a flow, reasons for the end of a flow, and evidence for its direction.

use std::cmp::Ordering;
use std::fmt;

macro_rules! named {
    ($type:ident { $( $variant:ident => $text:literal, )* }) => {
        impl $type {
            /// Returns the name of the value in text formats.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }

            /// Returns the value with this name in text formats.
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $( $text => Some(Self::$variant), )*
                    _ => None,
                }
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

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
                let expected = concat!("the name of a ", stringify!($type));
                Self::from_name(&name)
                    .ok_or_else(|| serde::de::Error::invalid_value(serde::de::Unexpected::Str(&name), &expected))
            }
        }
    };
}

/// Reason why a flow record was created: the values of flowEndReason (IPFIX 136).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum EndReason {
    /// No packet arrived during the idle timeout of the flow's class.
    IdleTimeout = 1,
    /// The flow continues; this record covers the time since the flow's previous record.
    ActiveTimeout = 2,
    /// The protocol ended the flow: FIN from both sides, a valid RST, or a new connection on the same ports.
    EndOfFlow = 3,
    /// The input ended, or the caller removed the flow.
    ForcedEnd = 4,
    /// The flow was evicted to release memory or a table entry.
    LackOfResources = 5,
}

impl EndReason {
    /// Returns the reason with a number of flowEndReason.
    pub(crate) const fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::IdleTimeout),
            2 => Some(Self::ActiveTimeout),
            3 => Some(Self::EndOfFlow),
            4 => Some(Self::ForcedEnd),
            5 => Some(Self::LackOfResources),
            _ => None,
        }
    }
}

named!(EndReason {
    IdleTimeout => "idle_timeout",
    ActiveTimeout => "active_timeout",
    EndOfFlow => "end_of_flow_detected",
    ForcedEnd => "forced_end",
    LackOfResources => "lack_of_resources",
});

/// State of a TCP connection as observed between the two ends, with the names of RFC 9293 section 3.3.2.
///
/// While the connection closes, this is the state of the end that closed first, until the other end sends its FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum TcpState {
    /// The flow is not TCP, or its state is unknown.
    #[default]
    None = 0,
    /// A SYN was seen, but no reply to it.
    SynSent = 1,
    /// A SYN-ACK was seen, but not the last ACK of the handshake.
    SynReceived = 2,
    /// Data may flow in both directions; also the state of a connection whose beginning was not seen.
    Established = 3,
    /// One end sent a FIN, which is not acknowledged yet.
    FinWait1 = 4,
    /// One end sent a FIN and the other end acknowledged it; the other end may continue to send.
    FinWait2 = 5,
    /// Both ends sent a FIN before either FIN was acknowledged.
    Closing = 6,
    /// The second end sent its FIN, and the FIN of the first end is acknowledged.
    LastAck = 7,
    /// The FINs of both ends are acknowledged.
    TimeWait = 8,
    /// A valid RST ended the connection.
    Closed = 9,
}

impl TcpState {
    /// All states, in the order of their codes.
    pub(crate) const ALL: [Self; 10] = [
        Self::None,
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
        Self::Closed,
    ];
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
    /// Returns whether both ends closed the connection: late segments still belong to it, but a new SYN does not.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closing | Self::LastAck | Self::TimeWait | Self::Closed)
    }
}

/// Evidence for which side of a flow is the initiator. Stronger evidence, as compared by [`Ord`], replaces weaker:
/// `FirstSeen`, `ServicePort`, `Content`, `Multicast`, `SynAck`, `Syn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum DirectionEvidence {
    /// The first packet seen was sent by the initiator, and no other evidence exists.
    #[default]
    FirstSeen = 0,
    /// Of the two ports, the responder's is the registered service port.
    ServicePort = 1,
    /// The address of the responder is multicast or broadcast.
    Multicast = 2,
    /// The responder sent a SYN-ACK.
    SynAck = 3,
    /// The initiator sent a SYN.
    Syn = 4,
    /// The octets that a side sent are those of the protocol's client, or of its server.
    Content = 5,
}

impl PartialOrd for DirectionEvidence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DirectionEvidence {
    fn cmp(&self, other: &Self) -> Ordering {
        self.strength().cmp(&other.strength())
    }
}

named!(DirectionEvidence {
    FirstSeen => "first_seen",
    ServicePort => "service_port",
    Multicast => "multicast",
    SynAck => "syn_ack",
    Syn => "syn",
    Content => "content",
});

impl DirectionEvidence {
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::FirstSeen,
            1 => Self::ServicePort,
            2 => Self::Multicast,
            3 => Self::SynAck,
            4 => Self::Syn,
            _ => Self::Content,
        }
    }

    const fn strength(self) -> u8 {
        match self {
            Self::FirstSeen => 0,
            Self::ServicePort => 1,
            Self::Content => 2,
            Self::Multicast => 3,
            Self::SynAck => 4,
            Self::Syn => 5,
        }
    }
}

/// The outcome of a connection, with the codes of Zeek's `conn_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ConnState {
    /// A connection attempt was seen, but no reply.
    S0,
    /// The connection was established and did not end.
    S1,
    /// The connection was established; the initiator closed, the responder did not.
    S2,
    /// The connection was established; the responder closed, the initiator did not.
    S3,
    /// The connection was established, and closed by both ends.
    Sf,
    /// The connection attempt was rejected.
    Rej,
    /// The connection was established; the initiator aborted it.
    Rsto,
    /// The responder aborted the connection.
    Rstr,
    /// The initiator sent SYN and then RST; no SYN-ACK was seen.
    Rstos0,
    /// The responder sent SYN-ACK and then RST; no SYN was seen.
    Rstrh,
    /// The initiator sent SYN and then FIN; no SYN-ACK was seen.
    Sh,
    /// The responder sent SYN-ACK and then FIN; no SYN was seen.
    Shr,
    /// Any other outcome: traffic in the middle of a connection, or a protocol without connections.
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
    fn evidence_converts_to_bits_and_back() {
        for evidence in [
            DirectionEvidence::FirstSeen,
            DirectionEvidence::ServicePort,
            DirectionEvidence::Multicast,
            DirectionEvidence::SynAck,
            DirectionEvidence::Syn,
            DirectionEvidence::Content,
        ] {
            assert_eq!(DirectionEvidence::from_bits(evidence as u8), evidence);
        }
    }
}
