//! QUIC transport parameters of a client, which are an extension of its TLS ClientHello.

use std::fmt;

use super::packet::varint;
use super::version::{Version, Versions};
use crate::codec::Reader;
use crate::session::Text;

/// Id of the `max_idle_timeout` parameter in the IANA registry of QUIC Transport Parameters.
const MAX_IDLE_TIMEOUT: u64 = 0x01;
/// Id of the `max_udp_payload_size` parameter in the IANA registry of QUIC Transport Parameters.
const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
/// Id of the `initial_max_data` parameter in the IANA registry of QUIC Transport Parameters.
const INITIAL_MAX_DATA: u64 = 0x04;
/// Id of the `version_information` parameter in the IANA registry of QUIC Transport Parameters.
const VERSION_INFORMATION: u64 = 0x11;
/// Id of the `max_datagram_frame_size` parameter in the IANA registry of QUIC Transport Parameters.
const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
/// Id of Google's parameter for the user agent, which Chrome sent until 2023.
const USER_AGENT: u64 = 0x3129;

/// QUIC transport parameters (RFC 9000 section 18), parsed on access. The parameters that have an access method are
/// serialized.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TransportParameters<'m>(&'m [u8]);

impl<'m> TransportParameters<'m> {
    /// Returns the transport parameters in the data of a TLS extension; `None` for QUIC drafts before 27, which used
    /// another encoding.
    pub(super) fn of(extension: &'m [u8], version: Version) -> Option<Self> {
        version.has_varint_parameters().then_some(Self(extension))
    }

    /// Iterates over the parameters as pairs of id and value, in the order in which they were sent, including reserved
    /// ones. Ends at a truncated parameter.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &'m [u8])> + use<'m> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || {
            let id = varint(&mut reader)?;
            let len = usize::try_from(varint(&mut reader)?).ok()?;
            Some((id, reader.bytes(len).ok()?))
        })
    }

    fn find(&self, wanted: u64) -> Option<&'m [u8]> {
        self.iter().find_map(|(id, value)| (id == wanted).then_some(value))
    }

    fn number(&self, wanted: u64) -> Option<u64> {
        varint(&mut Reader::new(self.find(wanted)?))
    }

    /// Returns the idle timeout in milliseconds; zero or `None` means no timeout.
    #[must_use]
    pub fn max_idle_timeout_ms(&self) -> Option<u64> {
        self.number(MAX_IDLE_TIMEOUT)
    }

    /// Returns the maximum length in octets of the UDP payloads that the client accepts.
    #[must_use]
    pub fn max_udp_payload_len(&self) -> Option<u64> {
        self.number(MAX_UDP_PAYLOAD_SIZE)
    }

    /// Returns the initial flow-control limit in octets for the data of all streams together.
    #[must_use]
    pub fn initial_max_data_len(&self) -> Option<u64> {
        self.number(INITIAL_MAX_DATA)
    }

    /// Returns the maximum length in octets of a DATAGRAM frame that the client accepts (RFC 9221).
    #[must_use]
    pub fn max_datagram_frame_len(&self) -> Option<u64> {
        self.number(MAX_DATAGRAM_FRAME_SIZE)
    }

    /// Returns the user agent sent by Google's clients.
    #[must_use]
    pub fn user_agent(&self) -> Option<Text<'m>> {
        self.find(USER_AGENT).map(Text)
    }

    /// Iterates over the versions that the client supports, most preferred first (RFC 9368 section 3).
    pub fn versions(&self) -> impl Iterator<Item = Version> + use<'m> {
        self.offered().iter()
    }

    fn offered(&self) -> Versions<'m> {
        // The first one is the version in use.
        Versions(self.find(VERSION_INFORMATION).and_then(|versions| versions.get(4..)).unwrap_or_default())
    }
}

impl fmt::Debug for TransportParameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(id, value)| (id, Text(value)))).finish()
    }
}

crate::table! {
    /// QUIC transport parameters (RFC 9000 section 18.2).
    impl['m] "quic.transport_parameters" for TransportParameters<'m> as parameters {
        /// Idle timeout; zero or null means no timeout.
        "max_idle_timeout_ms": Option<u64> [milliseconds] = parameters.max_idle_timeout_ms();
        /// Maximum length of the UDP payloads that the client accepts.
        "max_udp_payload_len": Option<u64> [octets] = parameters.max_udp_payload_len();
        /// Initial flow-control limit for the data of all streams together.
        "initial_max_data_len": Option<u64> [octets] = parameters.initial_max_data_len();
        /// Maximum length of a DATAGRAM frame that the client accepts (RFC 9221).
        "max_datagram_frame_len": Option<u64> [octets] = parameters.max_datagram_frame_len();
        /// Versions that the client supports, most preferred first (RFC 9368 section 3).
        "versions": Versions<'m> [sparse] = parameters.offered();
        /// User agent sent by Google's clients.
        "user_agent": Option<Text<'m>> = parameters.user_agent();
    }
}

crate::row::cells! { group TransportParameters<'m>; }
