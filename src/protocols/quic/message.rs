//! QUIC messages that are sent in the clear, or protected with keys that any observer can derive.

use super::packet::ConnectionId;
use super::transport_parameters::TransportParameters;
use super::version::{Version, Versions};
use crate::protocols::tls;
use crate::row::{Column, Row, RowType, Table, Visitor, concat};
use crate::session::Text;

crate::messages! {
    /// A QUIC message.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// A TLS ClientHello from the client's Initial packets.
        ClientHello(ClientHello<'m>),
        /// A TLS ServerHello or HelloRetryRequest from the server's Initial packets.
        ServerHello(ServerHello<'m>),
        /// A Version Negotiation packet: the server does not support the client's version.
        VersionNegotiation(VersionNegotiation<'m>),
        /// A Retry packet: the server requests validation of the client's address.
        Retry(Retry<'m>),
        /// A CONNECTION_CLOSE frame in an Initial packet, before the connection was established.
        Close(Close<'m>),
        /// A connection of a version that is not parsed. Reported at most once per flow.
        UnsupportedVersion(UnsupportedVersion<'m>),
    }
}

/// A TLS ClientHello, with fields of the Initial packet in which it was complete.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientHello<'m> {
    /// Index of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// QUIC version of the packet in which the ClientHello was complete.
    pub quic_version: Version,
    /// Destination connection id of the packet in which the ClientHello was complete: chosen by the client, or by the
    /// server after its first response.
    pub dcid: ConnectionId<'m>,
    /// Source connection id of the packet: chosen by the client for itself.
    pub scid: ConnectionId<'m>,
    /// Length in octets of the token in the packet, which the client received in a Retry or on an earlier connection;
    /// zero if there is none.
    pub token_len: usize,
    /// Content of the TLS ClientHello: server name, versions, cipher suites, JA4.
    pub hello: tls::ClientHello<'m>,
    /// QUIC transport parameters of the client; `None` if the extension is missing, or encoded as in drafts before 27.
    pub transport_parameters: Option<TransportParameters<'m>>,
}

/// A TLS ServerHello, with fields of the Initial packet in which it was complete.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerHello<'m> {
    /// Index of the connection in its flow, starting at zero.
    pub transaction: u64,
    /// Version selected by the server, which may differ from that of the client's first packet (RFC 9368).
    pub quic_version: Version,
    /// Destination connection id of the packet: chosen by the client for itself.
    pub dcid: ConnectionId<'m>,
    /// Source connection id of the packet: chosen by the server for itself.
    pub scid: ConnectionId<'m>,
    /// Content of the TLS ServerHello or HelloRetryRequest.
    pub hello: tls::ServerHello<'m>,
}

crate::message! {
    /// A Version Negotiation packet: list of the versions that a server supports (RFC 9000 section 17.2.1). The packet is
    /// not authenticated.
    #[derive(Clone, Debug, PartialEq, Eq)]
    "quic.version_negotiation" pub struct VersionNegotiation<'m> {
        /// Index of the connection in its flow, starting at zero.
        pub transaction: u64,
        /// Destination connection id of the Version Negotiation packet: the source connection id of the client's packet
        /// (RFC 8999 section 6).
        pub dcid: ConnectionId<'m>,
        /// Source connection id of the Version Negotiation packet: the destination connection id of the client's packet.
        pub scid: ConnectionId<'m>,
        /// Versions supported by the server.
        pub versions: Versions<'m>,
    }
}

crate::message! {
    /// A Retry packet: request of the server to start the connection again with a token (RFC 9000 section 17.2.5).
    #[derive(Clone, Debug, PartialEq, Eq)]
    "quic.retry" pub struct Retry<'m> {
        /// Index of the connection in its flow, starting at zero.
        pub transaction: u64,
        /// QUIC version of the packet.
        pub quic_version: Version,
        /// Destination connection id of the packet: chosen by the client for itself.
        pub dcid: ConnectionId<'m>,
        /// Source connection id of the packet: the one to which the client must send from now on.
        pub scid: ConnectionId<'m>,
        /// Length in octets of the token that the client must return.
        pub token_len: usize [octets],
        /// True if the integrity tag of the Retry packet matches the client's first packet; `None` if that packet was not
        /// captured, or the tag key of the QUIC version is unknown.
        pub is_genuine: Option<bool>,
    }
}

crate::message! {
    /// A CONNECTION_CLOSE frame in an Initial packet (RFC 9000 section 19.19).
    #[derive(Clone, Debug, PartialEq, Eq)]
    "quic.close" pub struct Close<'m> {
        /// Index of the connection in its flow, starting at zero.
        pub transaction: u64,
        /// QUIC version of the packet.
        pub quic_version: Version,
        /// Error code of the close (RFC 9000 section 20.1); 0x100 to 0x1ff are TLS alerts.
        pub error_code: u64,
        /// Name of the error code in RFC 9000 section 20.1 or RFC 9368 in lower case; `None` if the code has no name.
        pub error: Option<&'static str>,
        /// TLS alert description code, if the error code is 0x100 to 0x1ff.
        pub alert: Option<u8>,
        /// Type of the frame that caused the error; zero if it is unknown.
        pub frame_type: u64,
        /// Reason phrase of the close, for human readers.
        pub reason: Text<'m>,
    }
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

crate::message! {
    /// A connection of a version that is not parsed: only the version and the connection ids are known.
    #[derive(Clone, Debug, PartialEq, Eq)]
    "quic.unsupported_version" pub struct UnsupportedVersion<'m> {
        /// Index of the connection in its flow, starting at zero.
        pub transaction: u64,
        /// QUIC version of the packet.
        pub quic_version: Version,
        /// Destination connection id of the packet.
        pub dcid: ConnectionId<'m>,
        /// Source connection id of the packet; empty in Google's older versions, which use one id for both ends.
        pub scid: ConnectionId<'m>,
    }
}

/// The fields of a ClientHello's packet.
struct ClientPacket<'a, 'm>(&'a ClientHello<'m>);

crate::table! {
    /// Fields of the Initial packet in which a ClientHello was complete.
    impl['a, 'm] "quic.client_packet" for ClientPacket<'a, 'm> as packet {
        /// Index of the connection in its flow, starting at zero.
        "transaction": u64 = packet.0.transaction;
        /// QUIC version of the packet in which the message was complete.
        "quic_version": Version = packet.0.quic_version;
        /// Destination connection id of the packet.
        "dcid": ConnectionId<'m> = packet.0.dcid;
        /// Source connection id of the packet.
        "scid": ConnectionId<'m> = packet.0.scid;
        /// Length of the token in the packet; zero if there is none.
        "token_len": usize [octets] = packet.0.token_len;
    }
}

/// What follows a ClientHello.
struct ClientParameters<'a, 'm>(&'a ClientHello<'m>);

crate::table! {
    /// Transport parameters of a ClientHello.
    impl['a, 'm] "quic.client_parameters" for ClientParameters<'a, 'm> as parameters {
        /// QUIC transport parameters of the client.
        "transport_parameters": Option<TransportParameters<'m>> = parameters.0.transport_parameters;
    }
}

impl RowType for ClientHello<'_> {
    fn columns() -> Vec<&'static Column> {
        Self::COLUMNS.iter().collect()
    }
}

impl Row for ClientHello<'_> {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        ClientPacket(self).visit(visitor);
        self.hello.visit(visitor);
        ClientParameters(self).visit(visitor);
    }
}

impl Table for ClientHello<'_> {
    const NAME: &'static str = "quic.client_hello";
    const DESCRIPTION: &'static str =
        "A TLS ClientHello, with fields of the Initial packet in which it was complete.";
    const COLUMNS: &'static [Column] = {
        const PARTS: [&[Column]; 3] =
            [ClientPacket::COLUMNS, tls::ClientHello::COLUMNS, ClientParameters::COLUMNS];
        &concat::<{ PARTS[0].len() + PARTS[1].len() + PARTS[2].len() }>(&PARTS)
    };
}

/// The fields of a ServerHello's packet.
struct ServerPacket<'a, 'm>(&'a ServerHello<'m>);

crate::table! {
    /// Fields of the Initial packet in which a ServerHello was complete.
    impl['a, 'm] "quic.server_packet" for ServerPacket<'a, 'm> as packet {
        /// Index of the connection in its flow, starting at zero.
        "transaction": u64 = packet.0.transaction;
        /// Version selected by the server, which may differ from that of the client's first packet (RFC 9368).
        "quic_version": Version = packet.0.quic_version;
        /// Destination connection id of the packet: chosen by the client for itself.
        "dcid": ConnectionId<'m> = packet.0.dcid;
        /// Source connection id of the packet: chosen by the server for itself.
        "scid": ConnectionId<'m> = packet.0.scid;
    }
}

impl RowType for ServerHello<'_> {
    fn columns() -> Vec<&'static Column> {
        Self::COLUMNS.iter().collect()
    }
}

impl Row for ServerHello<'_> {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        ServerPacket(self).visit(visitor);
        self.hello.visit(visitor);
    }
}

impl Table for ServerHello<'_> {
    const NAME: &'static str = "quic.server_hello";
    const DESCRIPTION: &'static str =
        "A TLS ServerHello, with fields of the Initial packet in which it was complete.";
    const COLUMNS: &'static [Column] = {
        const PARTS: [&[Column]; 2] = [ServerPacket::COLUMNS, tls::ServerHello::COLUMNS];
        &concat::<{ PARTS[0].len() + PARTS[1].len() }>(&PARTS)
    };
}
