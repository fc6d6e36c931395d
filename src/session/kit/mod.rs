//! The kit for parsers of requests and responses: a protocol is its grammar and its rows, and the rest is written once.
//!
//! A protocol implements `PduParser`: how PDUs follow each other ([`Framing`](super::framing::Framing)), and what a PDU adds
//! to the rows of its flow. `Kit` makes a [`Parser`](super::Parser) of it. These bounds follow:
//!
//! | bound | kept by |
//! |---|---|
//! | memory of a direction | `Framing::keep`: the rest of a PDU is counted and skipped |
//! | memory of rows | at most `PduParser::OPEN_MAX` are open; what each keeps is bounded by its type ([`Kept`]) |
//! | work | one call for each PDU with the octets that are kept; a search visits the open rows |
//! | output | a row for each message of a PDU, and one for each table at the end of the flow |
//! | gaps | exact within a PDU, then resynchronization, or the parser stops; open rows are always reported |
//! | checkpoint | lanes, open rows and the state of the grammar |

mod crossing;
mod exchange;
mod head;
mod kept;
mod log;
mod message;
mod parser;
mod rows;
#[cfg(test)]
pub(crate) mod suite;
mod wire;

pub(crate) use crossing::{Crossing, TakeFrom, Turn};
pub(crate) use exchange::exchange;
pub use head::ExchangeHead;
pub(crate) use kept::Measured;
pub use kept::{Kept, KeptItem, KeptList, KeptOid};
pub(crate) use log::{LogFormat, LogOf, log};
pub(crate) use message::{Declared, KitRow, columns_of_message};
pub use message::{KitMessage, KitTransaction};
pub(crate) use parser::{KitEntry, KitParser, Malformed, PduParser};
pub(crate) use rows::{Open, Reply, Rows, Stored, open};
pub(crate) use wire::{Wire, names, wire};
