//! Bodies of the fuzz targets that need only crates that the tests need too.
//!
//! Each body is a function of the octets of the input, and panics if an invariant is violated. The fuzz package defines
//! a target for each body, and `tests/fuzz_regressions.rs` runs the same functions on all inputs that have ever failed.

pub mod cases;
mod checkpoint;
mod codec;
mod collector;
mod compare;
mod dedup;
pub mod dialogue;
mod extractor;
mod filter;
mod fragment;
pub mod frames;
mod headers;
pub mod input;
mod mirror;
mod neighbor;
pub mod observer;
mod phrases;
mod pipelines;
mod reassembler;
pub mod rig;
pub mod script;
mod session_dns;
mod session_ftp;
mod session_http1;
mod session_http2;
pub mod session_quic;
mod session_smtp;
mod session_ssh;
pub mod session_standard;
mod session_tls;
mod shards;
mod source;
mod tracker;
mod translate;

/// Name and body of a target.
pub type Target = (&'static str, fn(&[u8]));

pub const ALL: &[Target] = &[
    ("sessions", pipelines::sessions),
    ("streams", pipelines::streams),
    ("flows", pipelines::flows),
    ("shards", shards::run),
    ("session_standard", session_standard::run),
    ("session_http2", session_http2::run),
    ("session_quic", session_quic::run),
    ("session_tls", session_tls::run),
    ("session_dns", session_dns::run),
    ("session_http1", session_http1::run),
    ("session_smtp", session_smtp::run),
    ("session_ssh", session_ssh::run),
    ("session_ftp", session_ftp::run),
    ("source", source::run),
    ("fragment", fragment::run),
    ("reassembler", reassembler::run),
    ("tracker", tracker::run),
    ("extractor", extractor::run),
    ("headers", headers::run),
    ("checkpoint", checkpoint::run),
    ("codec", codec::run),
    ("collector", collector::run),
    ("dedup", dedup::run),
    ("mirror", mirror::run),
    ("neighbor", neighbor::run),
    ("translate", translate::run),
    ("filter", filter::run),
];
