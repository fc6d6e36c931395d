//! Real programs talk to each other in a network namespace, tcpdump listens, and what was parsed is what they say they said.
//!
//! Needs root, `unshare`, `ip`, `ss` and `tcpdump`, and each test its programs; a test says so and passes where something is
//! missing. Where `FLOWGAUGE_PROGRAMS` is set to `required`, it fails instead.
//!
//! ```text
//! FLOWGAUGE_PROGRAMS=required cargo test --test programs
//! ```

#[cfg(all(feature = "protocols", feature = "serde"))]
mod ftp;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod lab;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod mail;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod names;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod observe;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod recognized;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod ssh;
#[cfg(all(feature = "protocols", feature = "serde"))]
#[path = "../support/sessions.rs"]
mod support;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod things;
#[cfg(all(feature = "protocols", feature = "serde"))]
mod web;
