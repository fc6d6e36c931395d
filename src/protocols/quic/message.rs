//! QUIC messages that are sent in the clear, or protected with keys that any observer can derive.

use super::packet::ConnectionId;
use super::transport_parameters::TransportParameters;
use super::version::{Version, Versions};
use crate::protocols::tls;
use crate::session::Text;

/// A message of QUIC.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// The client's hello.
    ClientHello(ClientHello<'m>),
    /// The server's hello, or a HelloRetryRequest.
    ServerHello(ServerHello<'m>),
    /// The server does not support the client's version.
    VersionNegotiation(VersionNegotiation<'m>),
    /// The server requests validation of the client's address.
    Retry(Retry<'m>),
    /// A close before the connection was established.
    Close(Close<'m>),
    /// A connection of a version whose packets are not parsed. Reported once.
    UnsupportedVersion(UnsupportedVersion<'m>),
}

/// The client's hello.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClientHello<'m> {
    /// Number of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// The version of the packet in which the hello was complete.
    pub quic_version: Version,
    /// Destination connection id of this packet: the client's choice, or the server's own after its first response.
    pub dcid: ConnectionId<'m>,
    /// Source connection id: the client's own.
    pub scid: ConnectionId<'m>,
    /// Length of the token in octets, from a Retry or an earlier connection.
    pub token_len: usize,
    /// TLS ClientHello: server name, versions, cipher suites, JA4.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub hello: tls::ClientHello<'m>,
    /// Transport parameters of the client.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transport_parameters: Option<TransportParameters<'m>>,
}

/// The server's hello.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ServerHello<'m> {
    /// Number of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// Version selected by the server, which may differ from that of the client's first packet (RFC 9368).
    pub quic_version: Version,
    /// Connection id of the client.
    pub dcid: ConnectionId<'m>,
    /// Source connection id: the server's own.
    pub scid: ConnectionId<'m>,
    /// TLS ServerHello.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub hello: tls::ServerHello<'m>,
}

/// List of the versions that a server supports (RFC 9000 section 17.2.1). It is not authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct VersionNegotiation<'m> {
    /// Number of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// Connection id of the client.
    pub dcid: ConnectionId<'m>,
    /// Connection id that the client chose for the server.
    pub scid: ConnectionId<'m>,
    /// Versions supported by the server.
    pub versions: Versions<'m>,
}

/// Request of the server to start again with a token (RFC 9000 section 17.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Retry<'m> {
    /// Number of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// Version of the packet.
    pub quic_version: Version,
    /// Connection id of the client.
    pub dcid: ConnectionId<'m>,
    /// Connection id that the client must use for the server.
    pub scid: ConnectionId<'m>,
    /// Length of the token in octets.
    pub token_len: usize,
    /// True if the integrity tag matches the client's first packet; `None` if that packet was not captured, or the
    /// version's key is unknown.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub is_genuine: Option<bool>,
}

/// A close in an Initial packet (RFC 9000 section 19.19).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Close<'m> {
    /// Number of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// Version of the packet.
    pub quic_version: Version,
    /// Error code; 0x100 to 0x1ff are TLS alerts.
    pub error_code: u64,
    /// Name of the error code in RFC 9000 section 20.1 in lower case, if there is one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub error: Option<&'static str>,
    /// Number of the TLS alert, if the error code is one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub alert: Option<u8>,
    /// Type of the frame that caused the error; zero if unknown.
    pub frame_type: u64,
    /// Reason phrase.
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
pub struct UnsupportedVersion<'m> {
    /// Number of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// Version of the packet.
    pub quic_version: Version,
    /// Destination connection id.
    pub dcid: ConnectionId<'m>,
    /// Source connection id; empty in Google's older versions, which use one id for both.
    pub scid: ConnectionId<'m>,
}
