//! Comparison of flowgauge with other programs and libraries: interleaved in one run, with checked results, and with
//! medians and their spread.

#[path = "../../cases/mod.rs"]
mod cases;
#[cfg(test)]
mod collector_agreement;
pub mod compose;
pub mod gopacket;
pub mod interleave;
mod messages;
mod pcap;
pub mod plot;
pub mod programs;
pub mod readdress;
pub mod report;
pub mod rows;
pub mod traffic;
mod values;
pub mod whole;
