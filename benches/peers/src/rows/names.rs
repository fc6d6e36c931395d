//! Names of programs in tables, and the type of rows.

use crate::gopacket::Gopacket;
use crate::interleave::Row;

/// Name of flowgauge in tables.
pub(crate) const FLOWGAUGE: &str = "flowgauge";
/// Name of the most similar crate in tables.
pub(crate) const FLOWSCOPE: &str = "flowscope";
/// Name of the crate that decodes and encodes IPFIX and NetFlow in tables.
pub(crate) const NETFLOW_PARSER: &str = "netflow_parser";

/// An id, and a function that creates the row when it is measured, so that only one row is in memory.
pub type MakeRow = (String, Box<dyn FnOnce(Option<&Gopacket>) -> Row>);
