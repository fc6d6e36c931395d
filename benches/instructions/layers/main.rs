//! Instructions and allocations of one run of the hot path of each layer.
//!
//! `setup` builds frames and fills tables, and `teardown` checks results; neither is counted. Seeds are fixed, so that
//! two runs of one binary on one machine have the same counts. `cargo run` in this package compares them with
//! `reference.json`.

#[path = "../../cases/mod.rs"]
mod cases;
mod codec;
mod dedup;
mod extractor;
mod filter;
mod fragment;
mod link;
mod pipeline;
mod reassembler;
#[path = "../../cases/replay.rs"]
mod replay;
mod session_driver;
mod source;
mod tracker;

use flowgauge_instructions::padding;
use gungraun::prelude::*;
use gungraun::{Dhat, EntryPoint};

use codec::codec_group;
use dedup::dedup_group;
use extractor::extractor_group;
use filter::filter_group;
use fragment::fragment_group;
use link::link_group;
use pipeline::pipeline_group;
use reassembler::reassembler_group;
use session_driver::session_group;
use source::source_group;
use tracker::tracker_group;

/// Seeds of all keyed hashes.
pub(crate) const SEEDS: [u64; 4] = [11, 22, 33, 44];

gungraun::main!(
    config = LibraryBenchmarkConfig::default()
        .env("PADDING", padding())
        .tool(Dhat::default().entry_point(EntryPoint::Default));
    library_benchmark_groups = source_group,
    link_group,
    extractor_group,
    tracker_group,
    fragment_group,
    reassembler_group,
    dedup_group,
    session_group,
    filter_group,
    codec_group,
    pipeline_group
);
