//! DHCP for IPv6: a row for each message, and as a transaction also one for each exchange.
//!
//! A client sends to a multicast address, and the server answers from its own one, so that the messages of an exchange are joined
//! across flows. Of a message that relays forward, the innermost one is read. Of options that are repeated, the first one is read,
//! besides those with addresses.
//!
//! Standards: RFC 8415, RFC 3646 (DNS servers), RFC 4704 (the full name of a client), RFC 5007 (queries of leases), RFC 6939 (the
//! hardware address that a relay adds).

mod exchange;
mod message;

pub use exchange::Exchange;
pub(super) use message::Dhcpv6;
#[cfg(test)]
pub(super) use message::samples;
pub use message::{Entry, Kind, PROTOCOL, Status};
