//! Real programs communicate in a network namespace while tcpdump captures their packets. The parsed messages must
//! match the logs and outputs of the programs.
//!
//! The tests need root, `unshare`, `ip`, `ss`, `tcpdump` and the programs of the test. If something is missing, a test
//! prints a note and passes. If `FLOWGAUGE_PROGRAMS` is set to `required`, the test fails instead.
//!
//! ```text
//! FLOWGAUGE_PROGRAMS=required cargo test --test programs
//! ```

#[cfg(all(feature = "protocols", feature = "serde"))]
mod dns;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod ftp;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod lab;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod mail;
#[cfg(all(feature = "protocols", feature = "serde"))]
#[path = "../support/message_json.rs"]
mod message_json;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod mqtt;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod observe;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod proxies;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod recognized;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod ssh;
#[cfg(all(feature = "protocols", feature = "serde"))]
#[path = "../support/sessions.rs"]
mod support;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod web;
