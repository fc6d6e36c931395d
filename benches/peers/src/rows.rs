//! The library benches: the same ids and the same work as in the crate's own benches and in the peer's.

mod dedup;
mod extractor;
mod reassembler;
mod session;
mod tracker;

use crate::gopacket::Gopacket;
use crate::interleave::Row;

/// Our own name in tables.
pub(crate) const FLOWGAUGE: &str = "flowgauge";
/// The nearest crate.
pub(crate) const FLOWSCOPE: &str = "flowscope";

/// An id, and what makes the row when it is its turn, so that no more than one row's tables are in memory.
pub type MakeRow = (String, Box<dyn FnOnce(Option<&Gopacket>) -> Row>);

/// All rows.
#[must_use]
pub fn all() -> Vec<MakeRow> {
    let layers = [extractor::rows(), tracker::rows(), reassembler::rows(), dedup::rows(), session::rows()];
    layers.into_iter().flatten().collect()
}
