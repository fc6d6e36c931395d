//! flowgauge
pub mod base;
pub mod extractor;
pub mod filter;
pub mod link;
pub mod pipeline;
pub mod record;
pub mod source;
pub mod tracker;
pub mod wire;
