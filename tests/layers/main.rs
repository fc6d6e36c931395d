//! Behavior of single layers through their public interfaces.

#[path = "../support/fn_source.rs"]
mod fn_source;
#[path = "../support/record_list.rs"]
mod record_list;

mod boxed;
mod builder;
mod checksums;
mod codec;
mod decapsulation;
mod features;
mod filter;
mod filtering;
mod flows;
mod hostile;
mod interest;
mod merging;
#[cfg(feature = "protocols")]
mod neighbors;
#[cfg(feature = "protocols")]
mod order;
mod paths;
mod rare_links;
mod read_ahead;
mod records;
mod session_eviction;
mod source;
mod stacked_links;
mod streams;
mod super_packets;
mod time_jumps;
mod translate;
mod writers;
