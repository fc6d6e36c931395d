//! Comparison of flowgauge with other programs and libraries: interleaved in one run, with checked results, and with
//! medians and their spread.

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
#[path = "../../support/mod.rs"]
mod support;
pub mod traffic;
mod values;
pub mod whole;
