//! The state of one flow, and the transitions between its states.
//!
//! A [`Session`] is one state machine. Probes, window, search, parsers and eviction are its states and their causes:
//!
//! | state | waits for | holds |
//! |---|---|---|
//! | `New` | the first octets | nothing |
//! | `Stream` | octets that decide the probes of a stream, at most `PROBE_LEN_MAX` a direction | those octets |
//! | `Datagrams` | a datagram that decides the probes, or is of the protocol of the port | prefixes of datagrams |
//! | `Resuming` | a message of the protocol of the port, after octets of another protocol | the last octets |
//! | `Parsing` | octets or datagrams for a parser | the parser, and incomplete messages |
//! | `Off` | nothing: octets are refused | nothing |
//!
//! | from | cause | to | when |
//! |---|---|---|---|
//! | `New` | `Undecided` | `Stream`, `Datagrams` | a probe needs more than the first octets |
//! | `New`, `Stream`, `Resuming`, `Datagrams` | `Recognized` | `Parsing` | a probe or the port names a protocol with a parser; the search found a message |
//! | `New`, `Stream` | `Searched` | `Resuming` | no probe matches, and messages of the protocol of the port can be searched for |
//! | `Parsing` | `Handover` | `Parsing` | the parser names the next protocol, or a datagram is of the protocol of the port |
//! | `Parsing` | `Handover` | `Stream` | the parser requests the handover to an unknown protocol |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Parsing` | `Unparsed` | `Off` | the protocol has no parser, or is unknown; the search ended without a message |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Parsing` | `Refused` | `Off` | memory for the next state, or for more octets in front of a parser, was refused |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Parsing` | `Closed` | `Off` | the parser is done or stopped; the session was evicted; the flow ended or was muted |
//!
//! No transition leaves `Off`. [`Session::transition`] is the only place that changes the state; it asserts the table
//! ([`TRANSITIONS`]) in debug builds, and the tests in `transitions.rs` check that each entry is taken.

use super::charged::{Charged, Node};
use super::datagrams::DatagramProbing;
use super::parsing::Parsing;
use super::probing::StreamProbing;
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::resuming::Resuming;
use crate::base::{Application, Evidence, FlowKey, Side, Timestamp};
use crate::tracker::FlowId;

/// The flow to which a chunk, gap or datagram belongs, and its capture time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FlowContext<'a> {
    /// Key of the flow to which the octets belong.
    pub key: &'a FlowKey,
    /// Presumed initiator of the flow.
    pub initiator: Side,
    /// Capture time of the octets; for a gap, the time at which the wait for the missing octets ended.
    pub timestamp: Timestamp,
    /// True if the stream of the current side was captured from its beginning. Octets from the middle of a stream
    /// refute no protocol, so that the port may still identify it.
    pub is_from_start: bool,
    /// The id of the flow in its tracker. A session without an id is not closed to release memory for other sessions.
    pub id: Option<FlowId>,
}

impl<'a> FlowContext<'a> {
    /// Creates the context of a flow whose streams were captured from their beginnings.
    #[must_use]
    #[inline]
    pub const fn new(key: &'a FlowKey, initiator: Side, timestamp: Timestamp) -> Self {
        Self { key, initiator, timestamp, is_from_start: true, id: None }
    }

    /// Sets the id of the flow in its tracker, so that its session can be evicted.
    #[must_use]
    #[inline]
    pub(crate) const fn of_flow(self, id: FlowId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Sets whether the stream of the current side was captured from the middle on, not from its beginning.
    #[must_use]
    #[inline]
    pub const fn picked_up(self, is_picked_up: bool) -> Self {
        Self { is_from_start: !is_picked_up, ..self }
    }

    /// Sets the capture time.
    pub(super) const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }

    /// Returns the client's port and the server's port, in this order. The session determines which side is the client;
    /// the initiator in this context may change.
    pub(super) const fn ports(&self, client: Side) -> (u16, u16) {
        (self.key.raw_port(client), self.key.raw_port(client.other()))
    }
}

/// State of the application protocol of one flow: 32 bytes, and an allocation while the flow is parsed or the probes
/// are undecided.
#[derive(Debug)]
pub struct Session<P: Protocols> {
    /// The current state; changed by [`transition`](Self::transition) only.
    state: State<P>,
    /// The protocol that was recognized first in the flow.
    pub(super) protocol: Option<&'static Protocol>,
    /// Evidence for `protocol`. Not part of the `Option`, where it would take eight octets.
    evidence: Evidence,
    /// The side of the flow's key that is the client; valid only if the state is not `New`.
    pub(super) client: Side,
    /// Index of this session in the list of charged sessions.
    pub(super) node: Node,
}

#[derive(Debug)]
pub(super) enum State<P: Protocols> {
    /// State of a session that has received no octets yet.
    New,
    /// State of a session with buffered octets of a stream for which the probes are undecided.
    Stream(Box<StreamProbing>),
    /// State of a session with a stream that does not begin with the protocol to which its port belongs, but may
    /// contain messages of that protocol.
    Resuming(Box<Resuming>),
    /// State of a session with datagrams for which the probes are undecided.
    Datagrams(Box<DatagramProbing>),
    /// State of a session with a parser that processes the flow.
    Parsing(Box<Parsing<P>>),
    /// State of a session that is closed: octets are refused.
    Off,
}

impl<P: Protocols> State<P> {
    const fn kind(&self) -> StateKind {
        match self {
            Self::New => StateKind::New,
            Self::Stream(_) => StateKind::Stream,
            Self::Resuming(_) => StateKind::Resuming,
            Self::Datagrams(_) => StateKind::Datagrams,
            Self::Parsing(_) => StateKind::Parsing,
            Self::Off => StateKind::Off,
        }
    }
}

/// Kind of a session state, without the data of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StateKind {
    New,
    Stream,
    Resuming,
    Datagrams,
    Parsing,
    Off,
}

/// Cause of a transition between session states; the module documentation states when each cause occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Undecided,
    Recognized,
    Searched,
    Handover,
    Unparsed,
    Refused,
    Closed,
}

/// A transition of a session: state before, cause, state after.
pub(super) type Transition = (StateKind, Cause, StateKind);

/// All transitions that a session can make.
pub(super) const TRANSITIONS: [Transition; 25] = {
    use Cause::{Closed, Handover, Recognized, Refused, Searched, Undecided, Unparsed};
    use StateKind::{Datagrams, New, Off, Parsing, Resuming, Stream};
    [
        (New, Undecided, Stream),
        (New, Undecided, Datagrams),
        (New, Recognized, Parsing),
        (New, Searched, Resuming),
        (New, Unparsed, Off),
        (New, Refused, Off),
        (New, Closed, Off),
        (Stream, Recognized, Parsing),
        (Stream, Searched, Resuming),
        (Stream, Unparsed, Off),
        (Stream, Refused, Off),
        (Stream, Closed, Off),
        (Resuming, Recognized, Parsing),
        (Resuming, Unparsed, Off),
        (Resuming, Refused, Off),
        (Resuming, Closed, Off),
        (Datagrams, Recognized, Parsing),
        (Datagrams, Unparsed, Off),
        (Datagrams, Refused, Off),
        (Datagrams, Closed, Off),
        (Parsing, Handover, Parsing),
        (Parsing, Handover, Stream),
        (Parsing, Unparsed, Off),
        (Parsing, Refused, Off),
        (Parsing, Closed, Off),
    ]
};

impl<P: Protocols> Default for Session<P> {
    fn default() -> Self {
        Self {
            state: State::New,
            protocol: None,
            evidence: Evidence::Content,
            client: Side::A,
            node: Charged::NONE,
        }
    }
}

impl<P: Protocols> Session<P> {
    /// Returns the protocol that was recognized first, and the evidence for it. Handovers do not change it: a
    /// connection that begins with SMTP is identified as SMTP.
    #[must_use]
    pub const fn application(&self) -> Option<(&'static Protocol, Evidence)> {
        match self.protocol {
            Some(protocol) => Some((protocol, self.evidence)),
            None => None,
        }
    }

    pub(super) const fn set_application(&mut self, protocol: &'static Protocol, evidence: Evidence) {
        (self.protocol, self.evidence) = (Some(protocol), evidence);
    }

    pub(super) const fn state(&self) -> &State<P> {
        &self.state
    }

    #[inline]
    pub(super) fn parsing_mut(&mut self) -> Option<&mut Parsing<P>> {
        if let State::Parsing(parsing) = &mut self.state { Some(parsing) } else { None }
    }

    pub(super) fn stream_mut(&mut self) -> Option<&mut StreamProbing> {
        if let State::Stream(probing) = &mut self.state { Some(probing) } else { None }
    }

    pub(super) fn resuming_mut(&mut self) -> Option<&mut Resuming> {
        if let State::Resuming(resuming) = &mut self.state { Some(resuming) } else { None }
    }

    pub(super) fn datagrams_mut(&mut self) -> Option<&mut DatagramProbing> {
        if let State::Datagrams(probing) = &mut self.state { Some(probing) } else { None }
    }

    /// Changes the state of the session. Returns the previous state, whose memory the driver releases.
    pub(super) fn transition(&mut self, next: State<P>, cause: Cause) -> State<P> {
        let transition = (self.state.kind(), cause, next.kind());
        debug_assert!(TRANSITIONS.contains(&transition), "{transition:?} is no transition of a session");
        #[cfg(test)]
        super::transitions::note(transition);
        std::mem::replace(&mut self.state, next)
    }

    /// Returns whether the session is closed: further octets are ignored.
    #[must_use]
    pub(crate) const fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// Returns the number of bytes that the driver has charged for the session. For tests and fuzzers.
    #[doc(hidden)]
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let listed = if self.node == Charged::NONE { 0 } else { Charged::ENTRY_LEN as u64 };
        listed
            + match &self.state {
                State::Parsing(parsing) => parsing.charged,
                State::Stream(probing) => probing.allocated_len() as u64,
                State::Resuming(resuming) => resuming.allocated_len() as u64,
                State::Datagrams(_) => size_of::<DatagramProbing>() as u64,
                State::New | State::Off => 0,
            }
    }

    /// Returns whether the session is in its driver's list of charged sessions. For tests and fuzzers.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_listed(&self) -> bool {
        self.node != Charged::NONE
    }

    #[inline]
    pub(super) fn role(&self, side: Side) -> Role {
        if side == self.client { Role::Client } else { Role::Server }
    }
}

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

    /// Receives an event of the session.
    fn event(&mut self, event: &SessionEvent) {
        let _ = event;
    }
}
