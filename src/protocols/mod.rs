//! Parsers of application protocols, and recognizers of protocols without a parser (feature `protocols`).
//!
//! Each folder contains a [`Parser`](crate::session::Parser), its [`Protocol`](crate::session::Protocol) with ports and
//! probes, and its messages. [`Standard`] is the set of all these protocols, for
//! [`Sessions`](crate::pipeline::Sessions). Use [`protocols!`](crate::protocols!) to define a set of your own, with
//! your own parsers.
//!
//! A program that needs only the name of each flow's protocol finds it in the flow records, if the stage of its sink is
//! `Sessions`:
//!
//! ```
//! use flowgauge::{FileSource, Pipeline, Records, RunOptions, Sessions, Standard};
//!
//! let mut tls_count = 0;
//! let sink = Records::new(|record| {
//!     tls_count += u32::from(record.application.is_some_and(|application| application.name.as_str() == "tls"));
//! });
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! Pipeline::builder().build(sink.with_stage::<Sessions<Standard>>())?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(tls_count, 7);
//! # Ok::<(), flowgauge::Error>(())
//! ```

pub mod dcerpc;
pub mod dhcp;
pub mod dhcpv6;
pub mod dns;
pub mod ftp;
pub mod ftp_data;
pub(crate) mod gss;
pub mod http1;
pub mod http2;
pub mod imap;
pub mod irc;
pub mod kerberos;
mod kit;
pub mod ldap;
pub mod modbus;
pub mod mqtt;
pub mod nbdgm;
pub mod nbns;
pub mod ntlm;
pub mod ntp;
mod owned;
pub mod pop3;
pub mod quic;
pub mod radius;
pub mod rdp;
pub mod recognizers;
mod reply_order;
pub mod rfb;
pub mod rtp;
mod sdp;
mod server_name;
pub mod sip;
pub mod smb;
pub mod smtp;
pub mod snmp;
pub mod socks;
pub mod ssh;
mod standard;
mod starttls;
pub mod stun;
pub mod syslog;
pub mod tftp;
pub mod tls;

pub(crate) use kit::CrossingRow;
pub use kit::{Kit, eve_tables, zeek_tables};
pub use owned::{HttpStart, OwnedAnswer, OwnedClientHello, OwnedDnsMessage, OwnedHttpHead};
pub use server_name::{NameCache, NameEvidence, ServerName};
pub use standard::{Message, Standard};
