//! What happened in a capture: traffic, hosts, conversations, and findings.
//!
//! A [`Collector`] is the sink of a pipeline that collects [`Facts`] in one pass and bounded memory. A [`Watch`] around the
//! source notes what frames are, such as duplicates. [`Facts::findings`] returns what was seen: each [`Finding`] has the
//! evidence, and the command of `flowgauge` that shows its flows or transactions. None is a verdict.
//!
//! ```
//! use flowgauge::pipeline::Transactions;
//! use flowgauge::{FileSource, Pipeline, Resources, RunOptions};
//! use flowgauge_summary::{Collector, Totals, Watch};
//!
//! let resources = Resources::default();
//! let watch = Watch::new(&resources)?;
//! let builder = Pipeline::builder().resources(resources).encapsulation(true);
//! let mut pipeline = builder.build(Transactions::new(Collector::default()))?;
//! let source = FileSource::open("../../examples/data/web.pcap")?;
//! let summary = pipeline.run(&mut watch.source(source), &RunOptions::default())?;
//!
//! let mut totals = Totals::default();
//! totals.add(&summary.stats);
//! let facts = pipeline.into_sink().into_inner().facts;
//! let findings = facts.findings(&watch.frames(), &totals);
//! assert_eq!(findings[0].kind.name(), "certificate");
//! assert_eq!(findings[0].text, "self-signed certificate: CN=web.example");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)
)]

mod attack_findings;
mod attacks;
mod bounded;
mod collector;
mod counts;
mod facts;
mod few;
mod finding;
mod hosts;
mod incident;
mod keyed;
mod login;
mod ports;
pub mod text;
mod timeline;
mod watch;

pub use bounded::{Bounded, Weight};
pub use collector::{Collector, CollectorState};
pub use counts::Traffic;
pub use facts::{Conversation, Count, Facts, Service, Tcp};
pub use few::Few;
pub use finding::{Finding, FindingCommand, FindingKind};
pub use hosts::{Host, HostName, HostRow, HostService, HostSystem, HostUser, Hosts, Source, vendor};
pub use timeline::Timeline;
pub use watch::{Frames, Totals, Watch, Watched};
