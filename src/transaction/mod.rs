//! Transactions: one row per exchange, joined from the messages of a flow in the same pass.
//!
//! A message is a request, or a response, or a certificate; a transaction is a request with its response and the times of
//! both. [`Transactions`](crate::pipeline::Transactions) is a sink that passes them on; [`FlowTransactions`] joins the messages
//! of one flow for other programs.
//!
//! Nothing is invented: what a transaction has not is absent, and [`Lack`] states the reason. The memory of a flow is
//! bounded: at most [`OPEN_MAX`] open transactions of a protocol, and [`TEXT_LEN_MAX`] octets of each text.

#[cfg(feature = "compression")]
pub mod coding;
mod config;
mod content;
mod data_connections;
mod decoding;
mod digests;
mod dns;
mod exchanges;
mod file;
mod ftp;
mod ftp_data;
mod head;
mod http;
mod identity;
mod joiner;
mod joins;
mod mail;
mod open;
mod requests;
mod smtp;
mod span;
mod ssh;
mod tftp;
mod tls;
mod transfer;
mod x509;

pub use crate::session::Lack;
pub use config::TransactionConfig;
pub use content::{Content, Transaction};
pub use decoding::{Decoding, DecodingCredit};
pub use digests::{SNIFFED_LEN, detected_type};
pub use dns::{Dns, DnsRecord};
pub use file::{BodyKind, File};
pub use ftp::Ftp;
pub(crate) use ftp::join_path;
pub use head::TransactionHead;
pub use http::Http;
pub use joiner::FlowTransactions;
pub use joins::Joins;
pub use open::{OPEN_MAX, TEXT_LEN_MAX};
pub use smtp::{Attachment, Mail};
pub use ssh::Ssh;
pub use tls::{Quic, QuicPackets, Tls};
pub(crate) use transfer::{FlowOrigin, Transfer};
pub use x509::X509;
