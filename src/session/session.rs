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
//! | `Paused` | a datagram with which a later conversation begins | nothing |
//! | `Awaiting` | the announcement of the flow by another one | what has arrived |
//! | `Off` | nothing: octets are refused | nothing |
//!
//! | from | cause | to | when |
//! |---|---|---|---|
//! | `New` | `Undecided` | `Stream`, `Datagrams` | a probe needs more than the first octets |
//! | `New`, `Stream` | `Undecided` | `Awaiting` | no probe matches, and another flow may announce this one |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Awaiting` | `Recognized` | `Parsing` | a probe or the port names a protocol with a parser; the search found a message; another flow announced this one |
//! | `Parsing` | `Paused` | `Paused` | the parser of datagrams is done or stopped, and its protocol recognizes later conversations |
//! | `Paused` | `Recognized` | `Parsing` | a datagram begins a later conversation |
//! | `New`, `Stream` | `Searched` | `Resuming` | no probe matches, and messages of the protocol of the port can be searched for |
//! | `Parsing` | `Handover` | `Parsing` | the parser names the next protocol, or a datagram is of the protocol of the port |
//! | `Parsing` | `Handover` | `Stream` | the parser requests the handover to an unknown protocol |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Parsing`, `Awaiting` | `Unparsed` | `Off` | the protocol has no parser, or is unknown; the search ended without a message; no flow announced this one |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Parsing`, `Paused`, `Awaiting` | `Refused` | `Off` | memory for the next state, or for more octets in front of a parser, was refused |
//! | `New`, `Stream`, `Resuming`, `Datagrams`, `Parsing`, `Paused`, `Awaiting` | `Closed` | `Off` | the parser is done or stopped; the session was evicted; the flow ended or was muted |
//!
//! No transition leaves `Off`. [`Session::transition`] is the only place that changes the state; it asserts the table
//! ([`TRANSITIONS`]) in debug builds, and `transition_tests.rs` checks that each entry is taken.

use super::awaited::Awaiting;
use super::charged::{Charged, Node};
use super::datagram_probing::DatagramProbing;
use super::parsing::Parsing;
use super::paused::Paused;
use super::probing::StreamProbing;
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::resuming::Resuming;
#[cfg(test)]
use super::transition::SEEN;
use super::transition::{Cause, StateKind, TRANSITIONS};
use crate::base::{Evidence, Side};

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
    /// State of a session whose parser of datagrams is done, while a later conversation may begin.
    /// The fields are those of [`Paused`]: as one field, they would enlarge every session.
    Paused { entry: u8, count: u8, received: u32, mark: u64 },
    /// State of a session whose flow another one may announce.
    Awaiting(Box<Awaiting>),
    /// State of a session that is closed: octets are refused.
    Off,
}

impl<P: Protocols> State<P> {
    pub(super) const fn paused(Paused { entry, count, received, mark }: Paused) -> Self {
        Self::Paused { entry, count, received, mark }
    }

    /// Returns what is kept between conversations, if the session is paused.
    #[inline]
    pub(super) const fn as_paused(&self) -> Option<Paused> {
        match *self {
            Self::Paused { entry, count, received, mark } => Some(Paused { entry, count, received, mark }),
            _ => None,
        }
    }

    const fn kind(&self) -> StateKind {
        match self {
            Self::New => StateKind::New,
            Self::Stream(_) => StateKind::Stream,
            Self::Resuming(_) => StateKind::Resuming,
            Self::Datagrams(_) => StateKind::Datagrams,
            Self::Parsing(_) => StateKind::Parsing,
            Self::Paused { .. } => StateKind::Paused,
            Self::Awaiting(_) => StateKind::Awaiting,
            Self::Off => StateKind::Off,
        }
    }
}

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

    pub(super) fn awaiting_mut(&mut self) -> Option<&mut Awaiting> {
        if let State::Awaiting(awaiting) = &mut self.state { Some(awaiting) } else { None }
    }

    /// Changes the state of the session. Returns the previous state, whose memory the driver releases.
    pub(super) fn transition(&mut self, next: State<P>, cause: Cause) -> State<P> {
        let transition = (self.state.kind(), cause, next.kind());
        debug_assert!(TRANSITIONS.contains(&transition), "{transition:?} is no transition of a session");
        #[cfg(test)]
        SEEN.with_borrow_mut(|seen| seen.insert(transition));
        std::mem::replace(&mut self.state, next)
    }

    /// Returns whether a datagram is ignored without a look at more than its first octet.
    #[inline]
    pub(crate) fn ignores<'a>(&self, bytes: impl FnOnce() -> &'a [u8]) -> bool {
        self.is_off() || self.state.as_paused().is_some_and(|paused| !paused.may_precede::<P>(bytes()))
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
                State::Awaiting(awaiting) => awaiting.allocated_len() as u64,
                State::New | State::Paused { .. } | State::Off => 0,
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
