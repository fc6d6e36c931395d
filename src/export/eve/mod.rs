//! Events of Suricata's EVE format: a JSON object per line, with the keys of Suricata 8.
//!
//! [`Events`] is a [`FlowLog`](super::FlowLog) that converts flows, [transactions](crate::transaction) and anomalies to
//! events, and writes them to one destination. An event is a [`Head`] and a type of this module, each with a
//! [table](crate::row::Table), whose descriptions state the rule of each key (`docs/formats.md`). Values that are not known
//! are omitted, and so are credentials.
//!
//! ```
//! use flowgauge::export::eve::{EveConfig, Events};
//! use flowgauge::export::{FlowLog, LoggedFlow};
//! use flowgauge::{EndReason, FileSource, Flow, Flows, Interest, Pipeline, RunOptions, Sink};
//!
//! /// Writes events of flows without their application protocols.
//! struct FlowEvents(Box<dyn FlowLog>);
//!
//! impl Sink for FlowEvents {
//!     type State = LoggedFlow;
//!     type Stage = Flows;
//!
//!     fn interest(&self) -> Interest {
//!         Interest::RECORDS
//!     }
//!
//!     fn record(&mut self, flow: &mut Flow<'_, LoggedFlow>, reason: EndReason) {
//!         self.0.record(&flow.view, flow.state, reason, &mut |_| true).expect("no error of the destination");
//!     }
//! }
//!
//! let events = Events::stream(std::io::sink(), EveConfig::default());
//! let mut pipeline = Pipeline::builder().build(FlowEvents(Box::new(events)))?;
//! pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
//! assert_eq!(pipeline.into_sink().0.close()?, 27);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod anomaly;
mod dns;
mod events;
mod fileinfo;
mod flow;
mod ftp;
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
pub use dns::Dns;
pub use events::{EveConfig, Events};
pub use fileinfo::Fileinfo;
pub use flow::Flow;
pub use ftp::Ftp;
pub use head::Head;
pub use http::Http;
pub use netflow::Netflow;
pub use quic::Quic;
pub use smtp::Smtp;
pub use ssh::Ssh;
pub use stats::Stats;
pub use tls::Tls;
