//! What a QUIC connection says in the clear, or under keys that everybody can derive.

use std::fmt;

use super::packet::ConnectionId;
use super::transport_parameters::TransportParameters;
use super::version::Version;
use crate::session::{Text, tls};

/// A message of QUIC.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// The client's hello.
    ClientHello(ClientHello<'m>),
    /// The server's hello, or its request for another one of the client's.
    ServerHello(ServerHello<'m>),
    /// The server does not speak the client's version.
    VersionNegotiation(VersionNegotiation<'m>),
    /// The server wants to see that its packets arrive where the client's seem to come from.
    Retry(Retry<'m>),
    /// An end before the connection was established.
    Close(Close<'m>),
    /// A connection in a version whose packets are not read. Said once.
    Unread(Unread<'m>),
}

/// What a client says first.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClientHello<'m> {
    /// Which connection of the flow, from zero on.
    pub transaction: u64,
    /// The version of the packet in which the hello was complete.
    pub quic_version: Version,
    /// The id that this packet names: the client's choice for the server, or the server's own after its first answer.
    pub dcid: ConnectionId<'m>,
    /// The id by which the client wants to be called.
    pub scid: ConnectionId<'m>,
    /// Octets of the token, from a Retry or from an earlier connection.
    pub token_len: usize,
    /// The hello as TLS has it: names, versions, suites, JA4.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub hello: tls::ClientHello<'m>,
    /// What it wants of the transport.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transport_parameters: Option<TransportParameters<'m>>,
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ServerHello<'m> {
    /// Which connection of the flow, from zero on.
    pub transaction: u64,
    /// The version that the server chose, which may be another one than the client began with (RFC 9368).
    pub quic_version: Version,
    /// The client's id.
    pub dcid: ConnectionId<'m>,
    /// The id by which the server wants to be called.
    pub scid: ConnectionId<'m>,
    /// The hello as TLS has it.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub hello: tls::ServerHello<'m>,
}

/// A list of versions that a server speaks (RFC 9000 section 17.2.1). Nothing vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct VersionNegotiation<'m> {
    /// Which connection of the flow, from zero on.
    pub transaction: u64,
    /// The client's id.
    pub dcid: ConnectionId<'m>,
    /// The id that the client chose for the server.
    pub scid: ConnectionId<'m>,
    /// What it speaks.
    pub versions: Versions<'m>,
}

/// Versions, four octets each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Versions<'m>(pub(super) &'m [u8]);

impl<'m> Versions<'m> {
    /// The versions in their order, reserved ones included.
    pub fn iter(&self) -> impl Iterator<Item = Version> + use<'m> {
        self.0
            .chunks_exact(4)
            .map(|version| Version(version.iter().fold(0, |number, octet| number << 8 | u32::from(*octet))))
    }
}

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Versions<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// A server's wish that the client begin again with a token (RFC 9000 section 17.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Retry<'m> {
    /// Which connection of the flow, from zero on.
    pub transaction: u64,
    /// The version.
    pub quic_version: Version,
    /// The client's id.
    pub dcid: ConnectionId<'m>,
    /// The id that the client is to use for the server.
    pub scid: ConnectionId<'m>,
    /// Octets of the token.
    pub token_len: usize,
    /// Whether its integrity tag fits the client's first packet; none if that was not seen, or the version's key is unknown.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub is_genuine: Option<bool>,
}

/// An end that is told in an Initial packet (RFC 9000 section 19.19).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Close<'m> {
    /// Which connection of the flow, from zero on.
    pub transaction: u64,
    /// The version.
    pub quic_version: Version,
    /// Why, as a number: 0x100 to 0x1ff are alerts of TLS.
    pub error_code: u64,
    /// Why, by the name of RFC 9000 section 20.1 in lower case, if it has one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub error: Option<&'static str>,
    /// The number of the TLS alert, if it is one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub alert: Option<u8>,
    /// The type of the frame at fault; zero if unknown.
    pub frame_type: u64,
    /// Why, for humans.
    pub reason: Text<'m>,
}

impl<'m> Close<'m> {
    pub(super) fn new(
        (transaction, quic_version): (u64, Version),
        (error_code, frame_type): (u64, u64),
        reason: &'m [u8],
    ) -> Self {
        const NAMES: [&str; 17] = [
            "no_error",
            "internal_error",
            "connection_refused",
            "flow_control_error",
            "stream_limit_error",
            "stream_state_error",
            "final_size_error",
            "frame_encoding_error",
            "transport_parameter_error",
            "connection_id_limit_error",
            "protocol_violation",
            "invalid_token",
            "application_error",
            "crypto_buffer_exceeded",
            "key_update_error",
            "aead_limit_reached",
            "no_viable_path",
        ];
        let alert = (error_code >> 8 == 1).then_some(error_code as u8);
        let error = match error_code {
            0x11 => Some("version_negotiation_error"),
            _ if alert.is_some() => Some("crypto_error"),
            _ => usize::try_from(error_code).ok().and_then(|place| NAMES.get(place)).copied(),
        };
        let reason = Text(reason);
        Self { transaction, quic_version, error_code, error, alert, frame_type, reason }
    }
}

/// A connection of which only the version is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unread<'m> {
    /// Which connection of the flow, from zero on.
    pub transaction: u64,
    /// The version.
    pub quic_version: Version,
    /// The id of who is spoken to.
    pub dcid: ConnectionId<'m>,
    /// The id of who speaks; empty in Google's older versions, which have one id for both.
    pub scid: ConnectionId<'m>,
}
