//! Parsers of application protocols, and recognizers of protocols without a parser (feature `protocols`).
//!
//! Each folder contains a [`Parser`](crate::session::Parser), its [`Protocol`](crate::session::Protocol) with ports and
//! probes, and its messages. [`Standard`] is the set of all these protocols, for
//! [`Sessions`](crate::pipeline::Sessions). Use [`protocols!`](crate::protocols!) to define a set of your own, with
//! your own parsers.

pub mod dns;
pub mod ftp;
pub mod http1;
pub mod http2;
pub mod quic;
pub mod recognizers;
mod reply_order;
pub mod smtp;
pub mod ssh;
mod standard;
mod starttls;
pub mod tls;

pub use standard::{Message, Standard};
