//! SCTP (RFC 9260 section 3.1).

/// Length of the SCTP common header in octets.
pub(crate) const HEADER_LEN: usize = 12;
