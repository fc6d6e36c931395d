//! Logs of Zeek: rows with the columns of Zeek 8.1 and later in their order, as TSV or JSON.
//!
//! [`Logs`] is a [`FlowLog`](super::FlowLog) that converts flows, [transactions](crate::transaction) and anomalies to rows, and
//! writes them, each log to a destination of its own or all to one. Each row is a type of this module with a
//! [table](crate::row::Table), whose descriptions state the rule of each column (`docs/formats.md`).
//!
//! ```
//! use flowgauge::export::zeek::{Logs, ZeekConfig};
//! use flowgauge::{FileSource, LogSink, Pipeline, RunOptions, Transactions};
//!
//! let logs = Logs::stream(std::io::sink(), ZeekConfig::default());
//! let mut pipeline = Pipeline::builder().build(Transactions::new(LogSink::new(logs)))?;
//! pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
//! assert_eq!(pipeline.into_sink().into_inner().close()?, 67);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conn;
mod dns;
mod files;
mod ftp;
mod head;
mod http;
mod known;
mod line;
mod logs;
mod networks;
mod once;
mod quic;
mod service;
mod smtp;
mod ssh;
mod ssl;
mod tunnel;
mod weird;
mod x509;

pub use conn::Conn;
pub use dns::Dns;
pub use files::Files;
pub use ftp::Ftp;
pub use head::{CrossingHead, FileHead, Head};
pub use http::Http;
pub use known::{KnownHost, KnownService};
pub use logs::{Logs, ZeekConfig};
pub use networks::{Network, ParseNetworkError};
pub use quic::Quic;
pub use smtp::Smtp;
pub use ssh::Ssh;
pub use ssl::Ssl;
pub use tunnel::Tunnel;
pub use weird::Weird;
pub use x509::X509;
