//! flowgauge
pub mod base;
pub mod source;
