//! IP over Fibre Channel: the network header (RFC 2625 section 3.2).

/// Octets of the header: two addresses of eight octets, the last six of which are the MAC address.
pub(crate) const HEADER_LEN: usize = 16;

/// Offset of the sender's MAC address.
pub(crate) const SOURCE_OFFSET: usize = 10;
