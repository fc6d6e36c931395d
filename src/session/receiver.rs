//! What a session reports: messages and events, and the trait that receives them.

use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use crate::base::{Application, Evidence, Side, Timestamp};

/// Protocol, sender and capture time of a message.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MessageMeta {
    /// The protocol of the parser that reported the message.
    pub protocol: &'static Protocol,
    /// Role of the sender of the octets that completed the message.
    pub from: Role,
    /// The side of the flow's key that sent the octets that completed the message.
    pub side: Side,
    /// Capture time of the octets that completed the message.
    pub timestamp: Timestamp,
    /// Number of octets that the parsers of the flow have received so far, and [`HEADERS_LEN`] for each segment or
    /// datagram, so that a receiver can keep its output in proportion to the input.
    pub received_len: u64,
}

/// Number of octets for the headers of a segment or datagram in [`MessageMeta::received_len`]: those of IPv4 and TCP
/// without options.
pub const HEADERS_LEN: u64 = 40;

/// Event of a session other than a message.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A protocol was recognized in a flow. Reported again after a handover.
    Recognized {
        /// The protocol that was recognized.
        protocol: &'static Protocol,
        /// Evidence for the protocol: content or port.
        evidence: Evidence,
    },
    /// A parser stopped with a fault. Reported once per flow.
    Stopped {
        /// Sender and capture time of the octets at which the parser stopped.
        meta: MessageMeta,
        /// Reason for which the parser stopped.
        fault: super::Fault,
        /// Number of octets of the stream before those at which the parser stopped; zero for datagrams.
        offset: u64,
    },
    /// Further messages of the flow are suppressed while it reports more messages than its packets justify
    /// ([`MESSAGE_CREDIT`](super::MESSAGE_CREDIT)). Reported once; [`DriverStats`](super::DriverStats) counts the
    /// suppressed messages.
    Suppressed {
        /// Protocol, sender and time of the first suppressed message.
        meta: MessageMeta,
    },
}

impl SessionEvent {
    /// Returns the protocol of a [`Recognized`](Self::Recognized) event; `None` for other events.
    #[must_use]
    pub const fn application(&self) -> Option<&'static Application> {
        match self {
            Self::Recognized { protocol, evidence } => Some(protocol.application(*evidence)),
            Self::Stopped { .. } | Self::Suppressed { .. } => None,
        }
    }
}

/// Receives the messages and events of sessions from a driver.
pub trait Receiver<P: Protocols> {
    /// Receives a message, which is valid until the call returns.
    fn message(&mut self, meta: &MessageMeta, message: P::Message<'_>);

    /// Learns that `client` is the side of the client, and not the presumed initiator of the flow. `evidence` is that of
    /// the protocol.
    fn learned(&mut self, client: Side, evidence: Evidence) {
        let _ = (client, evidence);
    }

    /// Receives an event of the session.
    fn event(&mut self, event: &SessionEvent) {
        let _ = event;
    }
}
