//! Binary encoding: a [`Reader`] over received octets, and a [`Writer`] over a buffer of the caller or a growing one.
//!
//! This module is for programs that read or write a binary format, such as one of their own messages, without an allocation per
//! message. All numbers have a fixed width, in network order ([`Writer::be`]) or in little-endian order
//! ([`Writer::le`]). Octets and texts have a known length, are padded, or follow their length (a [`Prefix`]).
//!
//! A read borrows from its input. A read or write that fails changes nothing, and its error states the offset, the
//! number of required octets, and the number of available ones.
//!
//! ```
//! use flowgauge::codec::{Prefix, ReadError, Reader, Writer};
//!
//! let mut buffer = [0; 64];
//! let mut writer = Writer::new(&mut buffer);
//! writer.be(4739_u16)?;
//! writer.prefixed(Prefix::U8, "collector")?;
//! // The length of a section is written when the section is complete.
//! writer.section(Prefix::U16, |writer| {
//!     writer.be(7_u32)?;
//!     writer.le(0.5_f64)
//! })?;
//! let message = writer.written();
//!
//! let mut reader = Reader::new(message);
//! assert_eq!(reader.be::<u16>()?, 4739);
//! assert_eq!(reader.prefixed_str(Prefix::U8)?, "collector");
//! let mut section = reader.section(Prefix::U16)?;
//! assert_eq!((section.be::<u32>()?, section.le::<f64>()?), (7, 0.5));
//! assert!(reader.is_empty());
//!
//! let error: ReadError = section.be::<u16>().unwrap_err();
//! assert_eq!(error.to_string(), "truncated at offset 26: 2 octets required, 0 available");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "protocols")]
pub(crate) mod ber;
mod buffer;
mod error;
mod number;
mod prefix;
mod reader;
mod writer;

pub use buffer::{Buffer, Fixed, Growing};
pub use error::{ReadError, ReadProblem, WriteError, WriteProblem};
pub use number::Number;
pub use prefix::Prefix;
pub use reader::Reader;
pub use writer::{Reserved, Writer};
