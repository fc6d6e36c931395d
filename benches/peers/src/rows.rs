//! Library benches with the same ids and the same work as in the benches of the crate and of the peer.

mod codec;
mod dedup;
mod extractor;
mod names;
mod reassembler;
mod session;
mod tracker;

pub use names::MakeRow;
pub(crate) use names::{FLOWGAUGE, FLOWSCOPE, NETFLOW_PARSER};

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
