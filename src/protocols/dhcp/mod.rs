//! DHCP for IPv4 and BOOTP: a row for each message, and as a transaction also one for each exchange.
//!
//! A server answers a client without an address by broadcast, in another flow, so that the messages of an exchange are joined
//! across flows. Of options that are repeated, the first one is read. Those in the fields for the names
//! of a server and a file are read if they are announced (RFC 2132 section 9.3).
//!
//! Standards: RFC 951, RFC 2131, RFC 2132, RFC 4702 (the full name of a client).

mod exchange;
mod message;

pub use exchange::Exchange;
#[cfg(test)]
pub(super) use message::samples;
pub(super) use message::{Dhcp, digits, dns_name, text};
pub use message::{Entry, Kind, PROTOCOL};
