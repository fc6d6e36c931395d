//! Sessions: the driver with test parsers, and each protocol parser with dialogues in any segmentation, with gaps,
//! truncated and corrupted.

mod bounds;
#[cfg(feature = "protocols")]
mod dhcp;
#[cfg(feature = "protocols")]
mod direction;
#[cfg(feature = "protocols")]
mod dns;
mod driver;
#[cfg(feature = "protocols")]
mod expected;
#[cfg(feature = "protocols")]
mod ftp;
#[allow(dead_code, reason = "the tests of each parser use a part of it")]
mod harness;
#[cfg(feature = "protocols")]
mod http1;
#[cfg(feature = "protocols")]
mod http2;
#[cfg(all(feature = "protocols", feature = "serde"))]
#[path = "../support/message_json.rs"]
mod message_json;
mod own_parsers;
#[cfg(feature = "protocols")]
mod quic;
#[cfg(feature = "protocols")]
mod recognition;
#[cfg(feature = "protocols")]
mod resuming;
#[cfg(feature = "protocols")]
mod smtp;
#[cfg(feature = "protocols")]
mod ssh;
#[path = "../support/sessions.rs"]
mod support;
#[cfg(feature = "protocols")]
mod tftp;
#[cfg(feature = "protocols")]
mod tls;
