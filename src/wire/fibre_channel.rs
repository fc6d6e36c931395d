//! IP over Fibre Channel: the network header (RFC 2625 section 3.2).

/// Length of the network header in octets: two addresses of eight octets each, the last six of which are a MAC
/// address.
pub(crate) const HEADER_LEN: usize = 16;

/// Offset of the sender's MAC address in the network header.
pub(crate) const SOURCE_OFFSET: usize = 10;
