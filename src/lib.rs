//! flowgauge
pub mod base;
pub mod extractor;
pub mod filter;
pub mod link;
pub mod record;
pub mod tracker;
pub mod wire;
