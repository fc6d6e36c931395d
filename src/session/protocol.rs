//! Properties of an application protocol that do not depend on its parser: name, ports and recognition.

use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;
use crate::row::{Cell, Column, Type, Visitor};
use std::fmt;

use super::octet_set::OctetSet;
use crate::base::{Application, ApplicationName, Evidence};

/// Number of octets of each direction of a stream that probes may inspect.
pub const PROBE_LEN_MAX: usize = 2048;

/// Number of octets of payload for which a flow may report one additional message.
///
/// A conversation of short commands and replies has a packet for each of them; a packet with many messages is covered
/// by this value. Pieces of files ([`Parser::is_content`](super::Parser::is_content)) are not counted, because they
/// are no longer than the input. A protocol with shorter messages states their length with
/// [`Protocol::with_message_len_min`], which replaces this value.
pub const MESSAGE_OCTET_COUNT: u64 = 16;

/// Role of a sender. In a session, roles are assigned with the first octets and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that initiated the conversation.
    Client,
    /// The side that responds to the client.
    Server,
}

impl Saved for Role {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.bool(*self == Self::Server)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(if reader.bool()? { Self::Server } else { Self::Client })
    }
}

impl Cell for Role {
    const TYPE: Type = Type::Name;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.name(column, self.name());
    }
}

impl Role {
    /// Returns the role of the peer.
    #[must_use]
    #[inline]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns 0 for the client and 1 for the server.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the item of this role from the pair `[client, server]`.
    #[must_use]
    #[inline]
    pub const fn of<T>(self, [client, server]: &[T; 2]) -> &T {
        match self {
            Self::Client => client,
            Self::Server => server,
        }
    }

    /// Returns a mutable reference to the item of this role in the pair `[client, server]`.
    #[must_use]
    #[inline]
    #[doc(hidden)]
    pub const fn of_mut<T>(self, [client, server]: &mut [T; 2]) -> &mut T {
        match self {
            Self::Client => client,
            Self::Server => server,
        }
    }

    /// Returns the name of the role, `client` or `server`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Result of a probe, the function that recognizes a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The octets are of the probe's protocol.
    Match,
    /// The octets are of the protocol, but the roles are exchanged: the initiator of the flow is the server. The
    /// capture began in the middle of the conversation, or the protocol works that way.
    MatchReversed,
    /// The octets are not of the probe's protocol.
    No,
    /// The octets may be of the protocol, and the probe needs more of them. If a probe still returns this when the
    /// window closes, the port identifies the protocol.
    More,
}

impl Verdict {
    /// Returns [`Match`](Self::Match) if a condition holds, otherwise [`No`](Self::No).
    #[must_use]
    pub const fn of(is_match: bool) -> Self {
        if is_match { Self::Match } else { Self::No }
    }
}

/// The first octets received in both directions of a stream, as input for probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOpening<'a> {
    /// Octets sent by the client.
    pub client: &'a [u8],
    /// Octets sent by the server.
    pub server: &'a [u8],
    /// The client's port.
    pub client_port: u16,
    /// The server's port.
    pub server_port: u16,
}

impl<'a> StreamOpening<'a> {
    /// Creates an opening from the octets and ports of both directions.
    #[must_use]
    pub const fn new(client: &'a [u8], server: &'a [u8], client_port: u16, server_port: u16) -> Self {
        Self { client, server, client_port, server_port }
    }

    /// Returns whether the client or the server of this stream has the port number `port`.
    #[must_use]
    pub const fn has_port(&self, port: u16) -> bool {
        self.client_port == port || self.server_port == port
    }

    /// Returns the opening with client and server exchanged.
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

/// One datagram of a flow that is not recognized yet, and the first octets of previous datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramOpening<'a> {
    /// The captured octets of the datagram's payload.
    pub bytes: &'a [u8],
    /// Length of the datagram's payload on the wire in octets.
    pub len: usize,
    /// Role of the sender of the datagram.
    pub from: Role,
    /// The sender's port; zero if the transport protocol has no ports.
    pub source_port: u16,
    /// The receiver's port; zero if the transport protocol has no ports.
    pub destination_port: u16,
    /// The IP protocol number: UDP, or another protocol without streams.
    pub ip_protocol: u8,
    /// The first octets, at most 64, of the previous datagram of the same sender; empty if there is none.
    pub previous: &'a [u8],
    /// The first octets, at most 64, of the last datagram of the other side; empty if there is none.
    pub answered: &'a [u8],
}

impl<'a> DatagramOpening<'a> {
    /// Creates an opening for the first datagram of a flow, sent by the client.
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

    /// Returns whether the sender or the receiver of this datagram has the port number `port`.
    #[must_use]
    pub const fn has_port(&self, port: u16) -> bool {
        self.source_port == port || self.destination_port == port
    }
}

/// Probe for the beginning of a stream. While it returns [`Verdict::More`], it is called again after more octets were
/// received.
pub type StreamProbe = fn(&StreamOpening<'_>) -> Verdict;

/// Probe for a datagram. While it returns [`Verdict::More`], it is called for later datagrams of the flow too.
pub type DatagramProbe = fn(&DatagramOpening<'_>) -> Verdict;

/// Result of a search for the beginning of a message of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// A message begins at this index of the octets.
    Found(usize),
    /// No message begins before this index of the octets. The octets from there on are searched again together with
    /// later ones.
    From(usize),
}

/// Function that searches the octets that one role sent for the beginning of a message, after octets of any kind.
pub type StreamSearch = fn(Role, &[u8]) -> Search;

/// Search for messages of a protocol in a stream that begins with octets of another protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resumption {
    pub(super) search: StreamSearch,
    /// True if streams that were captured from the middle on are searched too.
    pub(super) is_for_middle: bool,
}

/// Function that returns whether a datagram begins another conversation than the one with this
/// [mark](super::Remains::mark).
pub type Repetition = fn(&DatagramOpening<'_>, u64) -> bool;

/// Recognition of a later conversation of datagrams between the same ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    /// A mask and a value: the function is called for datagrams whose first octet has this value under the mask.
    pub(super) first: [u8; 2],
    pub(super) begins: Repetition,
}

/// Recognition of a protocol over one kind of transport: streams or datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recognition<F> {
    pub(super) ports: &'static [u16],
    pub(super) probe: Option<F>,
    /// The first octets for which the probe is called; `None` if it is called for all.
    pub(super) first_octets: Option<OctetSet>,
}

impl<F: Copy> Recognition<F> {
    const fn new(ports: &'static [u16], probe: Option<F>) -> Self {
        Self { ports, probe, first_octets: None }
    }

    /// Returns whether the probe is called for octets that begin with `first`.
    pub(super) const fn may_begin_with(&self, first: u8) -> bool {
        match self.first_octets {
            Some(octets) => octets.contains(first),
            None => true,
        }
    }

    #[cfg(any(test, feature = "protocols"))]
    #[expect(clippy::panic, reason = "a protocol is a constant, so that the compiler reports it")]
    const fn beginning_with(recognition: Option<Self>, octets: OctetSet) -> Option<Self> {
        match recognition {
            Some(Self { probe: probe @ Some(_), ports, .. }) => {
                Some(Self { ports, probe, first_octets: Some(octets) })
            }
            _ => panic!("first octets are declared for a probe"),
        }
    }
}

/// An application protocol: its name and how it is recognized.
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
    /// The protocol as identified by content, and the protocol as identified by port.
    applications: [Application; 2],
    pub(super) streams: Option<Recognition<StreamProbe>>,
    pub(super) datagrams: Option<Recognition<DatagramProbe>>,
    pub(super) resumption: Option<Resumption>,
    pub(super) repeated: Option<Repeated>,
    message_len_max: u32,
    message_len_min: u32,
    /// True if a server may send lines of text before the protocol begins.
    pub(super) follows_lines: bool,
    pub(super) reads_previous: bool,
    /// True if messages of the protocol announce streams.
    pub(super) announces_streams: bool,
    /// Function that returns whether an announced flow of the protocol may begin with a datagram.
    pub(super) early: Option<fn(&DatagramOpening<'_>) -> bool>,
    /// Kinds of the tables with the messages and transactions of the protocol; empty if they are not declared.
    kinds: &'static [&'static str],
    /// True if another protocol may follow in a connection, or messages announce flows of others.
    leads_on: bool,
    /// Names in Zeek, over TCP and over UDP.
    zeek: [Option<&'static str>; 2],
    /// Name in EVE.
    eve: Option<&'static str>,
    limits: &'static str,
    standards: &'static str,
}

impl Protocol {
    /// Creates a protocol that is recognized over no transport. Names are in lower case, with underscores between
    /// words.
    ///
    /// # Panics
    ///
    /// At compile time in a constant: if the name is not valid for an [`ApplicationName`].
    #[must_use]
    #[expect(clippy::panic, reason = "a protocol is a constant, so that the compiler reports it")]
    pub const fn new(name: &'static str) -> Self {
        let Some(application) = ApplicationName::new(name) else {
            panic!("a protocol has a name of at most 23 lower-case letters, digits, `_`, `-`, `.` and `/`")
        };
        let (by_content, by_port) = (Evidence::Content, Evidence::Port);
        let applications = [
            Application { name: application, evidence: by_content },
            Application { name: application, evidence: by_port },
        ];
        Self {
            name,
            applications,
            streams: None,
            datagrams: None,
            resumption: None,
            repeated: None,
            message_len_max: 0,
            message_len_min: MESSAGE_OCTET_COUNT as u32,
            follows_lines: false,
            reads_previous: false,
            announces_streams: false,
            early: None,
            kinds: &[],
            leads_on: false,
            zeek: [None; 2],
            eve: None,
            limits: "",
            standards: "",
        }
    }

    /// Adds the name that a protocol of the standard set has in Zeek's column `service`. Without one, logs do not name it.
    #[must_use]
    pub const fn in_zeek(self, name: &'static str) -> Self {
        self.in_zeek_by_transport(name, name)
    }

    /// Adds the names that a protocol of the standard set has in Zeek's column `service` over TCP and over UDP.
    #[must_use]
    pub const fn in_zeek_by_transport(self, tcp: &'static str, udp: &'static str) -> Self {
        Self { zeek: [Some(tcp), Some(udp)], ..self }
    }

    /// Adds the name that a protocol of the standard set has in events of EVE (`app_proto`). Without one, events do not name it.
    #[must_use]
    pub const fn in_eve(self, name: &'static str) -> Self {
        Self { eve: Some(name), ..self }
    }

    /// Adds recognition over TCP: the registered ports of the protocol, and a probe. Without a probe, the port identifies
    /// the protocol if no probe of the set matches: a first line `GET / HTTP/1.1` is HTTP on any port. A probe such as
    /// `|opening| Verdict::of(opening.server_port == 7001)` claims the port, in a set that extends another. All protocols of a [set](super::Protocols) may have 1024 ports together.
    #[must_use]
    pub const fn over_streams(self, ports: &'static [u16], probe: Option<StreamProbe>) -> Self {
        Self { streams: Some(Recognition::new(ports, probe)), ..self }
    }

    /// Adds recognition over UDP and other transport protocols without streams: the registered ports of the protocol,
    /// and a probe. Without a probe, only the port identifies the protocol. All protocols of a
    /// [set](super::Protocols) may have 1024 ports together.
    #[must_use]
    pub const fn over_datagrams(self, ports: &'static [u16], probe: Option<DatagramProbe>) -> Self {
        Self { datagrams: Some(Recognition::new(ports, probe)), ..self }
    }

    /// Declares the octets with which the protocol begins over streams, so that its probe is called only if the first
    /// octet of the client or that of the server is one of them. The probe must return [`Verdict::No`] for all other
    /// streams, whichever ports they have, which is asserted in debug builds.
    #[cfg(any(test, feature = "protocols"))]
    pub(crate) const fn streams_begin_with(self, octets: OctetSet) -> Self {
        Self { streams: Recognition::beginning_with(self.streams, octets), ..self }
    }

    /// Declares the first octets of datagrams, as [`streams_begin_with`](Self::streams_begin_with) does for streams.
    #[cfg(any(test, feature = "protocols"))]
    pub(crate) const fn datagrams_begin_with(self, octets: OctetSet) -> Self {
        Self { datagrams: Recognition::beginning_with(self.datagrams, octets), ..self }
    }

    /// Returns whether a stream of the protocol may begin with these octets, at least one.
    #[cfg(feature = "protocols")]
    pub(crate) fn may_begin(&self, octets: &[u8]) -> bool {
        let first = octets.first().copied().unwrap_or_default();
        self.streams.is_some_and(|recognition| recognition.may_begin_with(first))
    }

    /// Declares that a server may send lines of text before the protocol begins. While its probe is undecided, the number
    /// of segments in which the lines arrive does not end the recognition. The probe must limit the number of lines.
    #[cfg(feature = "protocols")]
    pub(crate) const fn following_lines(self) -> Self {
        Self { follows_lines: true, ..self }
    }

    /// Declares that the parser reads the beginnings of datagrams before the one by which the protocol is recognized: of each side the
    /// latest one, up to 64 octets.
    #[cfg(feature = "protocols")]
    pub(crate) const fn reading_previous(self) -> Self {
        Self { reads_previous: true, ..self }
    }

    /// Declares that messages of the protocol announce streams between the same hosts, which may be captured before.
    #[cfg(any(test, feature = "protocols"))]
    pub(crate) const fn announcing_streams(self) -> Self {
        Self { announces_streams: true, ..self }
    }

    /// Declares the datagrams with which an announced flow of the protocol begins. A flow that begins with one and is not
    /// recognized waits for its announcement, which may be captured later.
    #[cfg(any(test, feature = "protocols"))]
    pub(crate) const fn announced_late_by(self, early: fn(&DatagramOpening<'_>) -> bool) -> Self {
        Self { early: Some(early), ..self }
    }

    /// Declares the kinds of all tables that messages and transactions of the protocol belong to: `tls` for
    /// `tls.client_hello`.
    #[cfg(feature = "protocols")]
    pub(crate) const fn with_kinds(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds, ..self }
    }

    /// Declares that another protocol may follow in a connection, or that messages announce flows of others.
    #[cfg(feature = "protocols")]
    pub(crate) const fn leading_on(self) -> Self {
        Self { leads_on: true, ..self }
    }

    /// Adds the limits of the parser, besides those of the driver, as text for its users.
    #[must_use]
    pub const fn with_limits(self, limits: &'static str) -> Self {
        Self { limits, ..self }
    }

    /// Adds the documents that specify the protocol, such as `RFC 5905, 9327`.
    #[must_use]
    pub const fn with_standards(self, standards: &'static str) -> Self {
        Self { standards, ..self }
    }

    /// Returns the limits of the parser, as text.
    #[must_use]
    pub const fn limits(&self) -> &'static str {
        self.limits
    }

    /// Returns the documents that specify the protocol, as text.
    #[must_use]
    pub const fn standards(&self) -> &'static str {
        self.standards
    }

    /// Returns whether a flow of this protocol may have messages or transactions in tables of a kind, such as `tls`: its own,
    /// or those of a protocol that follows after a handover or that it announces. True for protocols that do not declare
    /// their tables. Reading rows of one kind, a program may mute the other flows.
    #[must_use]
    pub fn may_lead_to(&self, kind: &str) -> bool {
        self.leads_on || self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Returns the name of the protocol in Zeek's column `service`, over TCP or another transport protocol.
    #[must_use]
    pub const fn zeek_name(&self, is_tcp: bool) -> Option<&'static str> {
        let [tcp, other] = self.zeek;
        if is_tcp { tcp } else { other }
    }

    /// Returns the name of the protocol in events of EVE.
    #[must_use]
    pub const fn eve_name(&self) -> Option<&'static str> {
        self.eve
    }

    #[cfg(all(test, feature = "protocols"))]
    pub(crate) const fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    /// Returns whether another protocol may follow, as far as the protocol declares what it leads to.
    pub(super) const fn may_lead_on(&self) -> bool {
        self.leads_on || self.kinds.is_empty()
    }

    /// Adds a search for messages in streams that begin with octets of another protocol. The search is used on the
    /// protocol's own ports, within [`RESUME_LEN_MAX`](super::RESUME_LEN_MAX); a message that it finds is evidence by
    /// content.
    #[must_use]
    pub const fn resumed_by(self, search: StreamSearch) -> Self {
        Self { resumption: Some(Resumption { search, is_for_middle: false }), ..self }
    }

    /// Adds a search for messages in streams that begin with octets of another protocol, or were captured from the
    /// middle on. Use it for protocols whose messages remain decodable and recur.
    #[must_use]
    pub const fn resumed_anywhere_by(self, search: StreamSearch) -> Self {
        Self { resumption: Some(Resumption { search, is_for_middle: true }), ..self }
    }

    /// Adds the recognition of a later conversation of datagrams between the same ports, after the parser of an earlier one
    /// was done ([`Parser::remains`](super::Parser::remains)). `begins` is called for datagrams whose first octet has a
    /// value under a mask; others cost a comparison.
    #[must_use]
    pub const fn repeated_by(self, (mask, value): (u8, u8), begins: Repetition) -> Self {
        Self { repeated: Some(Repeated { first: [mask, value], begins }), ..self }
    }

    /// Lets parsers of the protocol wait for longer messages than
    /// [`Limits::session_side_bytes_max`](crate::base::Limits::session_side_bytes_max), of up to `len` octets per
    /// direction. The limit of all sessions together still applies.
    #[must_use]
    pub const fn with_message_len_max(self, len: u32) -> Self {
        Self { message_len_max: len, ..self }
    }

    /// Sets the length in octets of the shortest messages of the protocol, at least one; the default is
    /// [`MESSAGE_OCTET_COUNT`](super::MESSAGE_OCTET_COUNT), 16. A flow may report one message for each so many octets of its
    /// payload, besides [`MESSAGE_CREDIT`](super::MESSAGE_CREDIT) and
    /// [`MESSAGES_PER_PACKET`](super::MESSAGES_PER_PACKET); further ones are suppressed. Without this setting, a flow of
    /// messages of 4 octets, many in a segment, loses three of four.
    #[must_use]
    pub const fn with_message_len_min(self, len: u32) -> Self {
        Self { message_len_min: if len == 0 { 1 } else { len }, ..self }
    }

    /// Returns whether the probe is called for streams, and for datagrams, that begin with `first`.
    #[cfg(all(test, feature = "protocols"))]
    pub(crate) fn may_begin_with(&self, first: u8) -> [bool; 2] {
        [
            self.streams.is_some_and(|streams| streams.may_begin_with(first)),
            self.datagrams.is_some_and(|datagrams| datagrams.may_begin_with(first)),
        ]
    }

    pub(super) const fn message_len_max(&self) -> usize {
        self.message_len_max as usize
    }

    pub(super) const fn message_len_min(&self) -> u32 {
        self.message_len_min
    }

    /// Returns the name of the protocol, such as `http`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the protocol in the form that flow records contain, with the evidence by which it was identified.
    #[must_use]
    pub const fn application(&self, evidence: Evidence) -> &Application {
        let [by_content, by_port] = &self.applications;
        match evidence {
            Evidence::Content => by_content,
            Evidence::Port => by_port,
        }
    }

    /// Returns the TCP ports that identify the protocol if the content does not.
    #[must_use]
    pub const fn stream_ports(&self) -> &'static [u16] {
        match &self.streams {
            Some(recognition) => recognition.ports,
            None => &[],
        }
    }

    /// Returns the UDP ports that identify the protocol if the content does not.
    #[must_use]
    pub const fn datagram_ports(&self) -> &'static [u16] {
        match &self.datagrams {
            Some(recognition) => recognition.ports,
            None => &[],
        }
    }

    /// Returns whether streams of the protocol are recognized by their beginning.
    pub(crate) fn has_stream_probe(&self) -> bool {
        self.streams.as_ref().is_some_and(|streams| streams.probe.is_some())
    }

    /// Calls the protocol's probe for the beginning of a stream; returns [`Verdict::No`] if the protocol has no such
    /// probe.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn probe_stream(&self, opening: &StreamOpening<'_>) -> Verdict {
        self.streams.as_ref().and_then(|streams| streams.probe).map_or(Verdict::No, |probe| probe(opening))
    }

    /// Calls the protocol's probe for a datagram; returns [`Verdict::No`] if the protocol has no such probe.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn probe_datagram(&self, opening: &DatagramOpening<'_>) -> Verdict {
        self.datagrams
            .as_ref()
            .and_then(|datagrams| datagrams.probe)
            .map_or(Verdict::No, |probe| probe(opening))
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
