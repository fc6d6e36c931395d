//! DNS over UDP and TCP, multicast DNS, LLMNR.
//!
//! A program can log names with this module, or find failed queries. In this capture, a name that does not exist is
//! queried over IPv4 and over IPv6:
//!
//! ```
//! use flowgauge::dns::Message as Dns;
//! use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, on_message};
//!
//! let mut names = Vec::new();
//! let sink = on_message::<Standard>(|_, _, message| match message {
//!     Message::Dns(Dns::Response(response)) if response.rcode().name() == Some("NXDomain") => {
//!         names.extend(response.questions().map(|question| question.name.to_string()));
//!     }
//!     _ => {}
//! });
//! let mut source = FileSource::open("examples/data/dns.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(names, ["nowhere.lab.example"; 2]);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! # Supported protocols
//!
//! - DNS over UDP and TCP (RFC 1035, RFC 7766), on port 53 and, if a message is complete and valid, on any other:
//!   `dns`.
//! - Multicast DNS (RFC 6762) on port 5353, with its QU and cache-flush bits: `mdns`.
//! - LLMNR (RFC 4795) on port 5355: `llmnr`.
//!
//! A [`DnsMessage`] consists of a header and the octets of the message. Questions and records are parsed on iteration,
//! which allocates nothing. [`RecordType`], [`Class`], [`Opcode`], [`Rcode`] and [`OptionCode`] carry their names from
//! the IANA registry. [`RecordData`] returns the fields of the types in use as [`Value`]s and displays them in
//! presentation format: addresses, names, SOA, MX, TXT, SRV, NAPTR, CAA, SVCB and HTTPS (RFC 9460), DNSSEC (RFC 4034,
//! RFC 5155), TLSA, SSHFP, TSIG, LOC, APL, IPSECKEY, HIP and others; other types are displayed in the generic format of
//! RFC 3597. [`Edns`] is the OPT record (RFC 6891). Updates (RFC 2136), notifications and zone transfers over many
//! messages (RFC 5936) have the same format and are passed on unchanged.
//!
//! # Matching responses to queries
//!
//! A response is matched to its query by identifier, direction and first question, ignoring the case of its letters. It
//! carries the transaction number of the query and the time since the query. A query that is repeated before it is
//! answered counts as a retransmission. A query in a datagram that was captured up to 50 ms after its response belongs to
//! it, because the two directions of a capture may be skewed. Queries without a response are reported as [`Unanswered`]: after
//! [`UNANSWERED_NS`], when the flow ends, or when too many are outstanding. Unanswered queries of mDNS and LLMNR are
//! not reported, because their responses arrive in other flows, and mDNS responses may be unsolicited.
//!
//! # Limits
//!
//! - Names: [`NAME_LEN_MAX`] octets and [`JUMP_COUNT_MAX`] pointers, each of which must point backward. A message that
//!   violates this is parsed up to that point, and [`Walk::parse_error`] returns the reason; the flow continues.
//! - Outstanding queries: [`EXCHANGE_COUNT_MAX`] per flow. The first two need no allocation.
//! - Buffered octets of a stream: those of one message, at most 65,535. A gap inside a message loses that message.
//!   After any other gap, message boundaries are unknown, and parsing stops.
//!
//! # Rejected alternatives
//!
//! `hickory-proto` and `simple-dns` build lists of records, with an allocation for each section and name, and return
//! nothing for a message that ends early or has one malformed record, which is common in captures. `domain` parses
//! borrowed octets as this module does, requires pointers to point backward, and names all types, so it would be
//! suitable. However, the parts needed here are twenty times as much code as this folder, and depend on a calendar, a
//! procedural macro and octet types that would have to be hidden behind types of this crate. The required code, names
//! and a table of the fields of each type, is short.

mod data;
mod edns;
mod exchange;
mod header;
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
mod tables;
#[cfg(test)]
mod tests;
mod types;
mod value;

pub use data::{RecordData, Values};
pub use edns::{Edns, EdnsOption};
pub(crate) use exchange::EARLY_NS;
pub use exchange::{EXCHANGE_COUNT_MAX, UNANSWERED_NS, Unanswered, UnansweredReason};
pub use header::{Flags, HEADER_LEN, Header, ParseError, Variant};
pub use location::Location;
pub use message::DnsMessage;
pub use name::{JUMP_COUNT_MAX, Labels, NAME_LEN_MAX, Name};
pub use numbers::{Class, Opcode, OptionCode, Rcode, RecordType};
pub use parser::{DnsParser, LlmnrParser, MdnsParser, Message, Unreadable};
pub use ports::PortSet;
pub use prefixes::{AddressPrefix, AddressPrefixes};
pub use record::{Item, Question, Record, Section, Walk};
pub use service::ServiceParameters;
pub use types::TypeSet;
pub use value::Value;

use crate::session::Protocol;

/// Protocol DNS: `dns`.
pub static PROTOCOL: Protocol = Protocol::new("dns")
    .in_zeek("dns")
    .in_eve("dns")
    .over_streams(probe::DNS_PORTS, Some(probe::dns_stream))
    .over_datagrams(probe::DNS_PORTS, Some(probe::dns_datagram))
    .with_kinds(&["dns"])
    .with_limits(
        "names of 255 octets and 127 backward pointers, 256 pending queries; 8 octets of text for each \
         octet of a message, plus 1 KiB",
    )
    .with_standards("RFC 1035, 2136, 3597, 6891, 7766, 9460, and those of the types");

/// Protocol multicast DNS: `mdns`.
pub static MDNS: Protocol = Protocol::new("mdns")
    .in_zeek("dns")
    .in_eve("mdns")
    .over_datagrams(probe::MDNS_PORTS, Some(probe::mdns_datagram))
    .with_kinds(&["dns"])
    .with_limits("as `dns`")
    .with_standards("RFC 6762");

/// Protocol Link-Local Multicast Name Resolution: `llmnr`.
pub static LLMNR: Protocol = Protocol::new("llmnr")
    .in_zeek("dns")
    .over_streams(probe::LLMNR_PORTS, Some(probe::llmnr_stream))
    .over_datagrams(probe::LLMNR_PORTS, Some(probe::llmnr_datagram))
    .with_kinds(&["dns"])
    .with_limits("as `dns`")
    .with_standards("RFC 4795");
