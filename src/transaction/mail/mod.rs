//! Content of mails: header (RFC 5322) and parts (RFC 2045, 2046), read as the octets arrive.

mod addresses;
mod decode;
mod header;
mod parameters;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use addresses::addresses;
pub(super) use header::Header;
pub(super) use parameters::file_name;
pub(super) use reader::{Event, Part, Reader};
