//! A message as a JSON object: what it is about, then its own fields.

use std::net::IpAddr;

use flowgauge::record::community_id;
use flowgauge::session::{About, Fault, Role};
use flowgauge::tracker::FlowView;
use serde::Serialize;

/// A line. The source is the client, as it seemed when the session began.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a, M> {
    timestamp_ns: u64,
    community_id: &'a str,
    start_ns: u64,
    protocol: &'static str,
    source_address: IpAddr,
    source_port: u16,
    destination_address: IpAddr,
    destination_port: u16,
    role: &'static str,
    #[serde(flatten)]
    message: M,
}

/// That a parser gave up.
#[derive(Debug, Serialize)]
#[serde(tag = "message", rename = "stopped")]
pub(super) struct Stopped {
    fault: &'static str,
    offset: u64,
}

/// That messages of a flow are left out from here on.
#[derive(Debug, Serialize)]
#[serde(tag = "message", rename = "suppressed")]
pub(super) struct Suppressed {}

impl Stopped {
    pub(super) const fn new(fault: Fault, offset: u64) -> Self {
        Self { fault: fault.reason(), offset }
    }
}

impl<'a, M> Line<'a, M> {
    pub(super) fn new(view: &FlowView<'_>, community_id: &'a str, about: &About, message: M) -> Self {
        let client = if about.from == Role::Client { about.side } else { about.side.other() };
        let key = view.key();
        Self {
            timestamp_ns: about.timestamp.as_nanos(),
            community_id,
            start_ns: view.start().as_nanos(),
            protocol: about.protocol.name(),
            source_address: key.address(client),
            source_port: key.port(client),
            destination_address: key.address(client.other()),
            destination_port: key.port(client.other()),
            role: about.from.name(),
            message,
        }
    }
}

/// The Community ID of a flow, computed once.
pub(super) fn id<'a>(known: &'a mut Option<Box<str>>, view: &FlowView<'_>) -> &'a str {
    known.get_or_insert_with(|| community_id(view.key(), 0).into_boxed_str())
}
