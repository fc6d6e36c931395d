//! Inputs, and the parsers and layers that process them.

pub(crate) mod below;
pub(crate) mod bus;
pub(crate) mod coded;
pub(crate) mod collector;
pub(crate) mod dns;
pub(crate) mod dtls;
pub(crate) mod feed;
pub(crate) mod fragment;
mod frames;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod kit;
pub(crate) mod mail;
pub(crate) mod quic;
pub(crate) mod reassembler;
pub(crate) mod ssh;
pub(crate) mod stream;
pub(crate) mod summary;
pub(crate) mod tls;
pub(crate) mod tracker;
