//! Events of Suricata's EVE format: a JSON object per line, with the keys of Suricata 8.
//!
//! [`Events`] is a [`FlowLog`](super::FlowLog) that converts flows, [transactions](crate::transaction) and anomalies to
//! events, and writes them to one destination. An event is a [`Head`] and a type of this module, each with a
//! [table](crate::row::Table), whose descriptions state the rule of each key (`docs/formats.md`). Values that are not known
//! are omitted, and so are credentials.
//!
//! ```
//! use flowgauge::export::eve::{EveConfig, Events};
//! use flowgauge::{FileSource, LogSink, Pipeline, RunOptions, Transactions};
//!
//! let events = Events::stream(std::io::sink(), EveConfig::default());
//! let mut pipeline = Pipeline::builder().build(Transactions::new(LogSink::new(events)))?;
//! pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
//! assert_eq!(pipeline.into_sink().into_inner().close()?, 60);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod anomaly;
mod arp;
mod dns;
mod events;
mod fileinfo;
mod flow;
mod ftp;
mod ftp_data;
mod head;
mod held;
mod http;
mod netflow;
mod protocol;
mod quic;
mod smtp;
mod ssh;
mod stats;
mod tcp;
mod time;
mod tls;

pub use anomaly::Anomaly;
pub use arp::Arp;
pub use dns::Dns;
pub use events::{EveConfig, Events};
pub use fileinfo::Fileinfo;
pub use flow::Flow;
pub use ftp::Ftp;
pub use ftp_data::FtpData;
pub use head::Head;
pub use http::Http;
pub use netflow::Netflow;
pub use quic::Quic;
pub use smtp::Smtp;
pub use ssh::Ssh;
pub use stats::Stats;
pub use tls::Tls;
