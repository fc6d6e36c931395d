//! Sessions: the driver with parsers made for it, and each parser with dialogues in any pieces, with holes, cut off, changed.

#[cfg(feature = "protocols")]
mod dns;
mod driver;
#[allow(dead_code, reason = "each parser's tests use a part of it")]
mod harness;
