//! flowgauge
pub mod base;
pub mod filter;
