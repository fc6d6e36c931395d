//! flowgauge beside other programs and libraries: interleaved in one run, results asserted, medians with their spread.

pub mod compose;
pub mod readdress;
#[path = "../../support/mod.rs"]
mod support;
