//! What is known of an application protocol before anything is parsed: its name, its ports, and how it is recognised.

use std::fmt;

/// Who sends: in a session, roles are fixed with the first octets and never turn over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Role {
    /// Who opened the conversation.
    Client,
    /// Who answers.
    Server,
}

impl Role {
    /// The peer's.
    #[must_use]
    #[inline]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// 0 for the client, 1 for the server.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What is this role's of a pair, the client's first.
    #[must_use]
    #[inline]
    pub const fn of<T>(self, [client, server]: &[T; 2]) -> &T {
        match self {
            Self::Client => client,
            Self::Server => server,
        }
    }

    /// The same, to be changed.
    #[must_use]
    #[inline]
    pub const fn of_mut<T>(self, [client, server]: &mut [T; 2]) -> &mut T {
        match self {
            Self::Client => client,
            Self::Server => server,
        }
    }

    /// `client` or `server`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What a probe says of octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are of the protocol.
    Match,
    /// They are, and who opened the flow answers in it: the capture began in the middle, or the protocol is spoken that way.
    MatchReversed,
    /// They are not.
    No,
    /// They may be. A probe that says so again when the window is over was wrong, and the port decides.
    More,
}

impl Verdict {
    /// A match if a condition holds, otherwise no.
    #[must_use]
    pub const fn of(is_match: bool) -> Self {
        if is_match { Self::Match } else { Self::No }
    }
}

/// The first octets of both directions of a stream, as far as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOpening<'a> {
    /// What the client sent.
    pub client: &'a [u8],
    /// What the server sent.
    pub server: &'a [u8],
    /// The client's port.
    pub client_port: u16,
    /// The server's.
    pub server_port: u16,
}

impl<'a> StreamOpening<'a> {
    /// Octets of both directions.
    #[must_use]
    pub const fn new(client: &'a [u8], server: &'a [u8], client_port: u16, server_port: u16) -> Self {
        Self { client, server, client_port, server_port }
    }

    /// Whether one of both ports has a number.
    #[must_use]
    pub const fn has_port(&self, port: u16) -> bool {
        self.client_port == port || self.server_port == port
    }

    /// The same with the roles turned over.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            client: self.server,
            server: self.client,
            client_port: self.server_port,
            server_port: self.client_port,
        }
    }
}

/// One datagram of a flow that is not recognised yet, and the beginnings of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramOpening<'a> {
    /// Its payload, as far as captured.
    pub bytes: &'a [u8],
    /// Octets of its payload on the wire.
    pub len: usize,
    /// Who sent it.
    pub from: Role,
    /// The sender's port; zero if the transport has none.
    pub source_port: u16,
    /// The receiver's.
    pub destination_port: u16,
    /// The IP protocol: UDP, or another one that is no stream.
    pub ip_protocol: u8,
    /// The first octets, 64 at most, of the datagram that the same side sent before; none if it sent none.
    pub previous: &'a [u8],
    /// The same of the datagram that the other side sent last.
    pub answered: &'a [u8],
}

impl<'a> DatagramOpening<'a> {
    /// The first datagram of a flow, sent by the client.
    #[must_use]
    pub const fn first(bytes: &'a [u8], source_port: u16, destination_port: u16) -> Self {
        Self {
            bytes,
            len: bytes.len(),
            from: Role::Client,
            source_port,
            destination_port,
            ip_protocol: 17,
            previous: &[],
            answered: &[],
        }
    }

    /// Whether one of both ports has a number.
    #[must_use]
    pub const fn has_port(&self, port: u16) -> bool {
        self.source_port == port || self.destination_port == port
    }
}

/// Looks at the beginning of a stream. Called again when more came, as long as it says [`Verdict::More`].
pub type StreamProbe = fn(&StreamOpening<'_>) -> Verdict;

/// Looks at a datagram. Called for those that follow, as long as it says [`Verdict::More`].
pub type DatagramProbe = fn(&DatagramOpening<'_>) -> Verdict;

/// Result of a search for the beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// A message begins with this octet.
    Found(usize),
    /// No message begins before this octet. Those from there on are searched again together with what follows.
    From(usize),
}

/// Searches the octets that one role sent for the beginning of a message, behind octets of any kind.
pub type StreamSearch = fn(Role, &[u8]) -> Search;

/// How the messages of a protocol are found behind octets that are not of the protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resumption {
    pub(super) search: StreamSearch,
    /// Whether streams that are captured from the middle on are searched too.
    pub(super) is_for_middle: bool,
}

/// How a protocol is recognised over one kind of transport.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recognition<F> {
    pub(super) ports: &'static [u16],
    pub(super) probe: Option<F>,
}

/// An application protocol: a name, and how it is recognised.
///
/// ```
/// use flowgauge::session::{Protocol, StreamOpening, Verdict};
///
/// fn probe(opening: &StreamOpening<'_>) -> Verdict {
///     match opening.client {
///         [0xFE, b'L', b'P', ..] => Verdict::Match,
///         [] | [0xFE] | [0xFE, b'L'] => Verdict::More,
///         _ => Verdict::No,
///     }
/// }
/// static LENGTH_PREFIXED: Protocol = Protocol::new("length_prefixed").over_streams(&[7000], Some(probe));
/// assert_eq!(LENGTH_PREFIXED.name(), "length_prefixed");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    name: &'static str,
    pub(super) streams: Option<Recognition<StreamProbe>>,
    pub(super) datagrams: Option<Recognition<DatagramProbe>>,
    pub(super) resumption: Option<Resumption>,
}

impl Protocol {
    /// A protocol over nothing yet. Names are lower case, with an underscore between words.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, streams: None, datagrams: None, resumption: None }
    }

    /// Over TCP: its registered ports, and a probe; without one, the port alone decides.
    #[must_use]
    pub const fn over_streams(self, ports: &'static [u16], probe: Option<StreamProbe>) -> Self {
        Self { streams: Some(Recognition { ports, probe }), ..self }
    }

    /// Over UDP, and other protocols that carry no stream: likewise.
    #[must_use]
    pub const fn over_datagrams(self, ports: &'static [u16], probe: Option<DatagramProbe>) -> Self {
        Self { datagrams: Some(Recognition { ports, probe }), ..self }
    }

    /// The same with a search for messages in streams that begin with octets of something else. It is used on the protocol's own
    /// ports, within [`RESUME_LEN_MAX`](super::RESUME_LEN_MAX); a message that it finds is evidence by content.
    #[must_use]
    pub const fn resumed_by(self, search: StreamSearch) -> Self {
        Self { resumption: Some(Resumption { search, is_for_middle: false }), ..self }
    }

    /// The same, also for streams that are captured from the middle on. For protocols whose messages stay readable and keep
    /// coming.
    #[must_use]
    pub const fn resumed_anywhere_by(self, search: StreamSearch) -> Self {
        Self { resumption: Some(Resumption { search, is_for_middle: true }), ..self }
    }

    /// The name, as `http`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The TCP ports that name it where content does not tell.
    #[must_use]
    pub const fn stream_ports(&self) -> &'static [u16] {
        match &self.streams {
            Some(recognition) => recognition.ports,
            None => &[],
        }
    }

    /// The UDP ports likewise.
    #[must_use]
    pub const fn datagram_ports(&self) -> &'static [u16] {
        match &self.datagrams {
            Some(recognition) => recognition.ports,
            None => &[],
        }
    }

    /// What its probe says of a stream's beginning; [`Verdict::No`] if it has none.
    #[must_use]
    pub fn probe_stream(&self, opening: &StreamOpening<'_>) -> Verdict {
        self.streams.and_then(|streams| streams.probe).map_or(Verdict::No, |probe| probe(opening))
    }

    /// What its probe says of a datagram; [`Verdict::No`] if it has none.
    #[must_use]
    pub fn probe_datagram(&self, opening: &DatagramOpening<'_>) -> Verdict {
        self.datagrams.and_then(|datagrams| datagrams.probe).map_or(Verdict::No, |probe| probe(opening))
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
