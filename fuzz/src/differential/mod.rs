//! Targets that compare a parser with a second implementation, which is a dependency of this package only.
//!
//! If the second implementation is stricter, only input that it accepts is compared. Each target lists the differences
//! by design, with the reason.

mod certificate;
mod client_hello;
pub(crate) mod condition;
mod dns_message;
mod hpack;
mod http1_head;
mod quic_header;

use crate::targets::Target;

pub const ALL: &[Target] = &[
    ("hpack", hpack::run),
    ("quic_header", quic_header::run),
    ("dns_message", dns_message::run),
    ("certificate", certificate::run),
    ("client_hello", client_hello::run),
    ("condition", condition::run),
    ("http1_head", http1_head::run),
];
