//! Messages of sessions as JSON objects: time and flow, then the fields of the message.

use std::net::IpAddr;

use flowgauge::export::{MessageVisitor, visit_message};
use flowgauge::record::{CommunityId, community_id};
use flowgauge::session::{Fault, MessageMeta, Role};
use flowgauge::tracker::FlowView;
use serde::Serialize;

use crate::escape;

/// Fields of an output line that precede those of the message. The source is the client, as determined when the session
/// began.
#[derive(Debug, Serialize)]
pub(crate) struct Header {
    pub(super) timestamp_ns: u64,
    community_id: CommunityId,
    start_ns: u64,
    pub(super) protocol: &'static str,
    pub(super) source_address: IpAddr,
    pub(super) source_port: Option<u16>,
    pub(super) destination_address: IpAddr,
    pub(super) destination_port: Option<u16>,
    pub(super) role: &'static str,
}

/// The message that reports that a parser stopped.
#[derive(Debug, Serialize)]
#[serde(tag = "message", rename = "stopped")]
pub(super) struct Stopped {
    fault: &'static str,
    offset: u64,
}

/// The message that reports that further messages of a flow are omitted.
#[derive(Debug, Serialize)]
#[serde(tag = "message", rename = "suppressed")]
pub(super) struct Suppressed {}

impl Stopped {
    pub(super) const fn new(fault: Fault, offset: u64) -> Self {
        Self { fault: fault.reason(), offset }
    }
}

impl Header {
    pub(crate) fn new(view: &FlowView<'_>, community_id: CommunityId, meta: &MessageMeta) -> Self {
        let client = if meta.from == Role::Client { meta.side } else { meta.side.other() };
        let key = view.key();
        Self {
            timestamp_ns: meta.timestamp.as_nanos(),
            community_id,
            start_ns: view.start().as_nanos(),
            protocol: meta.protocol.name(),
            source_address: key.address(client),
            source_port: key.port(client),
            destination_address: key.address(client.other()),
            destination_port: key.port(client.other()),
            role: meta.from.name(),
        }
    }
}

/// Appends the fields of a header and of a message to a line, as one JSON object.
pub(crate) fn write_json(
    out: &mut Vec<u8>,
    header: &Header,
    message: &impl Serialize,
    has_credentials: bool,
) -> serde_json::Result<()> {
    let mut object = Object { out, has_credentials, delimiter: b'{' };
    visit_message(header, &mut object)?;
    visit_message(message, &mut object)?;
    out.push(b'}');
    Ok(())
}

/// Returns whether a field of a message is written. `has_credentials` permits the field that lists kinds of
/// credentials.
pub(super) fn is_written(name: &str, has_credentials: bool) -> bool {
    has_credentials || name != "credentials"
}

/// Serializer that appends fields as the entries of a JSON object.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    has_credentials: bool,
    /// Delimiter that precedes the next entry of the JSON object.
    delimiter: u8,
}

impl MessageVisitor for Object<'_> {
    type Error = serde_json::Error;

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> serde_json::Result<()> {
        if !is_written(name, self.has_credentials) {
            return Ok(());
        }
        self.out.push(std::mem::replace(&mut self.delimiter, b','));
        escape::push_json(self.out, name)?;
        self.out.push(b':');
        escape::push_json(self.out, value)
    }
}

/// Returns the Community ID of a flow, which is computed only once per flow and stored in `known`.
pub(crate) fn id(known: &mut Option<CommunityId>, view: &FlowView<'_>) -> CommunityId {
    *known.get_or_insert_with(|| community_id(view.key(), 0))
}
