//! flowgauge
pub mod base;
