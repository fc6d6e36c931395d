//! Library benches with the same ids and the same work as in the benches of the crate and of the peer.

mod codec;
mod dedup;
mod extractor;
mod reassembler;
mod session;
mod tracker;

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

/// Returns all rows.
#[must_use]
pub fn all() -> Vec<MakeRow> {
    let layers = [
        extractor::rows(),
        tracker::rows(),
        reassembler::rows(),
        dedup::rows(),
        session::rows(),
        codec::rows(),
    ];
    layers.into_iter().flatten().collect()
}
