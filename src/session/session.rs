//! What a driver keeps for a flow.

use super::datagrams::DatagramProbing;
use super::parsing::Parsing;
use super::probing::StreamProbing;
use super::protocol::{Protocol, Role};
use super::protocols::Protocols;
use super::resuming::Resuming;
use crate::base::{Application, Evidence, FlowKey, Side, Timestamp};

/// The flow that octets belong to, and when they came.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Whose<'a> {
    /// Its key.
    pub key: &'a FlowKey,
    /// The side that began it, as far as is known.
    pub initiator: Side,
    /// When what is told was captured.
    pub timestamp: Timestamp,
    /// Whether the stream of the side at hand is known from its beginning. Octets from the middle of one refute no protocol, so
    /// that the port may name it all the same.
    pub is_from_start: bool,
}

impl<'a> Whose<'a> {
    /// A flow at a time, its streams known from their beginnings.
    #[must_use]
    #[inline]
    pub const fn new(key: &'a FlowKey, initiator: Side, timestamp: Timestamp) -> Self {
        Self { key, initiator, timestamp, is_from_start: true }
    }

    /// The same of a side whose stream was picked up in the middle, if so.
    #[must_use]
    #[inline]
    pub const fn picked_up(self, is_picked_up: bool) -> Self {
        Self { is_from_start: !is_picked_up, ..self }
    }

    /// The same at another time.
    pub(super) const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }

    /// The client's port and the server's. Who is the client the session knows, for the initiator may turn over.
    pub(super) const fn ports(&self, client: Side) -> (u16, u16) {
        (self.key.port(client), self.key.port(client.other()))
    }
}

/// How a flow's protocol stands: 32 octets, and an allocation while it is parsed or while the probes are undecided.
#[derive(Debug)]
pub struct Session<P: Protocols> {
    pub(super) state: State<P>,
    pub(super) application: Option<(&'static Protocol, Evidence)>,
    /// The side of the client. Means nothing while the state is new.
    pub(super) client: Side,
}

#[derive(Debug)]
pub(super) enum State<P: Protocols> {
    /// No octets yet.
    New,
    /// Octets of a stream that are undecided.
    Stream(Box<StreamProbing>),
    /// A stream that does not begin with the protocol of its port, whose messages may follow.
    Resuming(Box<Resuming>),
    /// Datagrams that are undecided.
    Datagrams(Box<DatagramProbing>),
    /// A parser has it.
    Parsing(Box<Parsing<P>>),
    /// Nothing more is wanted.
    Off,
}

impl<P: Protocols> Default for Session<P> {
    fn default() -> Self {
        Self { state: State::New, application: None, client: Side::A }
    }
}

impl<P: Protocols> Session<P> {
    /// The protocol that was recognised first, and on what grounds. Handovers do not change it: a connection that begins as
    /// SMTP is one of SMTP.
    #[must_use]
    pub const fn application(&self) -> Option<(&'static Protocol, Evidence)> {
        self.application
    }

    /// Whether nothing more is wanted: octets are turned away.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// Octets that its driver has charged for it. For tests and fuzzers.
    #[doc(hidden)]
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        match &self.state {
            State::Parsing(parsing) => parsing.charged,
            State::Stream(probing) => probing.allocated_len() as u64,
            State::Resuming(resuming) => resuming.allocated_len() as u64,
            State::Datagrams(_) => size_of::<DatagramProbing>() as u64,
            State::New | State::Off => 0,
        }
    }

    #[inline]
    pub(super) fn role(&self, side: Side) -> Role {
        if side == self.client { Role::Client } else { Role::Server }
    }
}

/// What a message is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct About {
    /// The protocol of the parser.
    pub protocol: &'static Protocol,
    /// Who sent the octets at which it came.
    pub from: Role,
    /// The side of the flow's key that sent them.
    pub side: Side,
    /// When they were captured.
    pub timestamp: Timestamp,
}

/// What happened to a session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A protocol was recognised. Comes again after a handover.
    Recognised {
        /// Which.
        protocol: &'static Protocol,
        /// On what grounds.
        evidence: Evidence,
    },
    /// A parser gave up, which happens once in a flow.
    Stopped {
        /// Whose octets it could not take, and when.
        about: About,
        /// Why.
        fault: super::Fault,
        /// The stream's octets before; of a datagram zero.
        offset: u64,
    },
    /// Messages of the flow are left out from here on, as far as it reports more than its packets account for
    /// ([`MESSAGE_CREDIT`](super::MESSAGE_CREDIT)). Comes once; [`DriverStats`](super::DriverStats) counts them.
    Suppressed {
        /// What the first of them was about.
        about: About,
    },
}

impl SessionEvent {
    /// The protocol that was recognised, if that is what happened.
    #[must_use]
    pub const fn application(&self) -> Option<Application> {
        match self {
            Self::Recognised { protocol, evidence } => {
                Some(Application { name: protocol.name(), evidence: *evidence })
            }
            Self::Stopped { .. } | Self::Suppressed { .. } => None,
        }
    }
}

/// Hears messages and events of the session at hand.
pub trait Receiver<P: Protocols> {
    /// A message. What it borrows is gone after the call.
    fn message(&mut self, about: &About, message: P::Message<'_>);

    /// Something else.
    fn event(&mut self, event: &SessionEvent) {
        let _ = event;
    }
}
