//! DNS over UDP and TCP, multicast DNS, LLMNR.
//!
//! # What is parsed
//!
//! - DNS over UDP and TCP (RFC 1035, RFC 7766), on port 53 and, if a message is whole and faultless, on any other: `dns`.
//! - Multicast DNS (RFC 6762) on port 5353, with its bits QU and cache-flush: `mdns`.
//! - LLMNR (RFC 4795) on port 5355: `llmnr`.
//!
//! A [`DnsMessage`] is a header and the octets; questions and records are read from them while one looks at them, which
//! allocates nothing. [`RecordType`], [`Class`], [`Opcode`], [`Rcode`] and [`OptionCode`] have their names of the IANA
//! registry. [`RecordData`] gives the parts of the types in use as [`Value`]s and shows them in presentation format:
//! addresses, names, SOA, MX, TXT, SRV, NAPTR, CAA, SVCB and HTTPS (RFC 9460), DNSSEC (RFC 4034, RFC 5155), TLSA,
//! SSHFP, TSIG, LOC, APL, IPSECKEY, HIP and others; the rest is shown as RFC 3597 has it. [`Edns`] is the OPT record
//! (RFC 6891). Updates (RFC 2136), notifications and zone transfers over many messages (RFC 5936) have the same shape
//! and pass as they are.
//!
//! # Queries and their responses
//!
//! A response has the transaction number of its query and the time since, by identifier, direction and first question, whatever
//! the case of its letters. A query that comes again before it is answered is the same one. Queries that got no response are told
//! as [`Unanswered`]: after [`UNANSWERED_NS`], when the flow ends, or when there are too many at once. In mDNS responses come
//! unasked, and in mDNS and LLMNR in other flows than the queries, so that nothing is said there of what is missing.
//!
//! # Limits
//!
//! - A name: [`NAME_LEN_MAX`] octets and [`JUMP_COUNT_MAX`] pointers, each of which must go back. A message that breaks this is
//!   read up to there, and [`Walk::stop`] says why; the flow goes on.
//! - Queries waited for: [`EXCHANGE_COUNT_MAX`] a flow, of which two need no allocation.
//! - Of a stream what one message needs is kept, at most 65,535 octets. A gap inside a message costs that message; behind any
//!   other gap lengths cannot be told from text, and parsing stops.
//!
//! # Why no crate
//!
//! `hickory-proto` and `simple-dns` make lists of records, with an allocation for each section and name, and give nothing of a
//! message that ends early or has one bad record; a capture has many of these. `domain` reads as is done here, from borrowed
//! octets, with pointers that must go back and all types by name, and would serve. Its parts for this are twenty times the code of
//! this folder, and bring a calendar, a procedural macro and octet types that would all have to be hidden behind types of ours.
//! What is needed, names and a table of what data is made of, is short.

mod data;
mod edns;
mod exchange;
#[cfg(feature = "serde")]
mod json;
mod location;
mod message;
mod name;
mod numbers;
mod parser;
mod ports;
mod prefixes;
mod presentation;
mod probe;
mod record;
mod service;
#[cfg(test)]
mod tests;
mod types;

pub use data::{RecordData, Value, Values};
pub use edns::{Edns, EdnsOption};
pub use exchange::{EXCHANGE_COUNT_MAX, UNANSWERED_NS, Unanswered, UnansweredReason};
pub use location::Location;
pub use message::{DnsMessage, Flags, Flavour, HEADER_LEN, Header, Stop};
pub use name::{JUMP_COUNT_MAX, Labels, NAME_LEN_MAX, Name};
pub use numbers::{Class, Opcode, OptionCode, Rcode, RecordType};
pub use parser::{DnsParser, LlmnrParser, MdnsParser, Message, Unreadable};
pub use ports::PortSet;
pub use prefixes::{AddressPrefix, AddressPrefixes};
pub use record::{Item, Question, Record, Section, Walk};
pub use service::ServiceParameters;
pub use types::TypeSet;

use super::Protocol;

/// DNS.
pub static PROTOCOL: Protocol = Protocol::new("dns")
    .over_streams(probe::DNS_PORTS, Some(probe::dns_stream))
    .over_datagrams(probe::DNS_PORTS, Some(probe::dns_datagram));

/// Multicast DNS.
pub static MDNS: Protocol =
    Protocol::new("mdns").over_datagrams(probe::MDNS_PORTS, Some(probe::mdns_datagram));

/// Link-Local Multicast Name Resolution.
pub static LLMNR: Protocol = Protocol::new("llmnr")
    .over_streams(probe::LLMNR_PORTS, Some(probe::llmnr_stream))
    .over_datagrams(probe::LLMNR_PORTS, Some(probe::llmnr_datagram));
