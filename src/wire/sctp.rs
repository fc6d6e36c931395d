//! SCTP (RFC 9260 section 3.1).

/// Octets of the common header.
pub(crate) const HEADER_LEN: usize = 12;
