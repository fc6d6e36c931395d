//! Transport sessions of exporters.

use std::net::SocketAddr;

use crate::base::IpProtocol;

/// A transport session: the datagrams of an exporter, a TCP connection, or an SCTP association. Each session has its own
/// templates and sequence numbers (RFC 7011 sections 3.4.1, 8 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransportSession {
    /// Transport protocol of the messages.
    pub protocol: IpProtocol,
    /// Address and port of the exporter.
    pub exporter: SocketAddr,
}

impl TransportSession {
    /// Creates the session of an exporter over a transport protocol.
    #[must_use]
    pub const fn new(protocol: IpProtocol, exporter: SocketAddr) -> Self {
        Self { protocol, exporter }
    }
}

/// Messages whose transport protocol is not stated are datagrams.
impl From<SocketAddr> for TransportSession {
    fn from(exporter: SocketAddr) -> Self {
        Self::new(IpProtocol::UDP, exporter)
    }
}
