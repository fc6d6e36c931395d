//! Framing: where the protocol data units (PDUs) of a stream begin and end.
//!
//! A parser declares a [`Framing`] as a constant, keeps a [`Lane`] for each direction, and receives one PDU at a time:
//!
//! ```
//! use flowgauge::session::framing::{AfterPdu, Framing, Lane, Width};
//! use flowgauge::session::{Fault, Input, Out, Parser, Progress, Role};
//!
//! /// DNS over TCP (RFC 7766 section 8): two octets of length, then the message.
//! #[derive(Debug, Default)]
//! struct DnsOverTcp {
//!     lanes: [Lane; 2],
//! }
//!
//! const FRAMING: Framing = Framing::prefix(Width::U16).keep(65_535);
//!
//! impl Parser for DnsOverTcp {
//!     type Message<'m> = &'m [u8];
//!
//!     fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
//!         input.from.of_mut(&mut self.lanes).cut(&FRAMING, input, &mut |pdu| {
//!             out(pdu.bytes);
//!             Ok(AfterPdu::More)
//!         })
//!     }
//! }
//!
//! use flowgauge::Timestamp;
//! let (mut parser, mut seen) = (DnsOverTcp::default(), Vec::new());
//! let input = Input::new(b"\0\x03one\0\x05tw", 0, Role::Client, Timestamp::ZERO);
//! let progress = parser.bytes(&input, &mut |message| seen.push(message.to_vec()))?;
//! assert_eq!(seen, [b"one"]);
//! assert!(matches!(progress, Progress::Needs { taken: 7, need: 5 }));
//! # Ok::<(), Fault>(())
//! ```

mod lane;
mod rule;
#[cfg(test)]
mod tests;

pub use lane::{AfterPdu, Each, Lane, Pdu};
#[cfg(feature = "protocols")]
pub(crate) use rule::counted;
pub use rule::{Cut, Framing, Width};
