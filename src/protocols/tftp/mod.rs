//! TFTP (RFC 1350): requests, and the files that they transfer.
//!
//! | message | when |
//! |---|---|
//! | [`Message::Request`] | a client reads or writes a file |
//! | [`Message::OptionAcknowledgment`] | the server accepted options (RFC 2347) |
//! | [`Message::Octets`], [`Message::Gap`] | a piece of the file, in order and once |
//! | [`Message::End`] | the file ended |
//! | [`Message::Error`] | one side reports an error |
//!
//! The server answers from another port, so that the file is in another flow, which a request announces. The parser of
//! that flow does not know the request; `transaction` joins both. If the server answers from the port of the request,
//! everything is in one flow.
//!
//! A block with the next number is a piece of the file; number 0 follows 65535. Others up to 32,767 blocks ahead are
//! evidence of missing blocks, of which the length is that of whole blocks. With windows of several blocks (RFC 7440), a sender
//! repeats blocks that were lost on the way: then, blocks are missing only if the receiver acknowledges them. A block that is shorter
//! than the block size ends the file. The block size is 512 octets, or that of the option (RFC 2348), or, without it,
//! that of the longest block.
//!
//! The octets of a file are as sent: those of mode `netascii` are not converted.
//!
//! Standards: RFC 1350, 2347, 2348 (block size), 2349 (length and timeout), 7440 (windows).

mod message;
mod parser;
mod probe;

pub use message::{Error, Message, Operation, OptionAcknowledgment, Request};
pub use parser::TftpParser;

use crate::session::{OctetSet, Protocol};

/// Protocol `tftp`: recognized by a request on any port, and announced flows.
pub static PROTOCOL: Protocol = Protocol::new("tftp")
    .in_eve("tftp")
    .over_datagrams(&[69], Some(probe::probe))
    .datagrams_begin_with(OctetSet::of(b"\0"))
    .announced_late_by(probe::may_be_answer)
    .with_kinds(&["tftp"])
    .with_limits("none: blocks are passed on as they arrive")
    .with_standards("RFC 1350, 2347, 2348, 2349, 7440");
