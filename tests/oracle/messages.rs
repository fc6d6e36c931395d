//! Messages of all protocols in a capture as JSON objects, in the format of `flowgauge sessions`.

use crate::message_json::as_json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use flowgauge::base::{FlowKey, Side};
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::{Message, Standard, http1, http2, smtp};
use flowgauge::session::{MessageMeta, Role};
use flowgauge::tracker::Flow;
use serde_json::Value;

use super::support::run_without_timeouts;

/// A message with its sender and receiver.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) key: FlowKey,
    pub(crate) protocol: &'static str,
    pub(crate) from: Role,
    /// Side that sent the message.
    pub(crate) side: Side,
    pub(crate) message: Value,
    /// Body of an HTTP request or response, in the message that reports its end; content of a mail, in its summary.
    pub(crate) body: Vec<u8>,
}

impl Observed {
    /// Returns address and port of the client, then of the server.
    pub(crate) fn ends(&self) -> [(IpAddr, u16); 2] {
        let client = if self.from == Role::Client { self.side } else { self.side.other() };
        [client, client.other()].map(|side| (self.key.address(side), self.key.port(side).expect("a port")))
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.message["message"] == kind
    }

    /// Returns a value of the message as text, or `None` if it has no such key.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        text(&self.message[name])
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.message[name].as_u64()
    }
}

/// Returns a scalar as text, without quotes.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns the length of an HTTP/1.x body after decoding of its content coding, which is the length that other programs
/// count.
pub(crate) fn decoded_len(head: Option<&Observed>, end: Option<&Observed>) -> Option<u64> {
    let (head, end) = (head?, end?);
    if head.text("content_encoding").as_deref() != Some("gzip") {
        return end.number("body_len");
    }
    let mut decoder = flate2::read::GzDecoder::new(end.body.as_slice());
    std::io::copy(&mut decoder, &mut std::io::sink()).ok()
}

#[derive(Default)]
struct Collect {
    observed: Vec<Observed>,
    /// Bodies by direction and HTTP/2 stream; contents by number of the mail.
    bodies: BTreeMap<(FlowKey, usize, u64), Vec<u8>>,
}

/// Replaces the direction for contents of mails.
const MAILS: usize = 2;

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Standard>;

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Message<'_>) {
        let key = *flow.view.key();
        let kind = if matches!(message, Message::Smtp(_)) { MAILS } else { meta.side.index() };
        let of_stream = |stream: u64| (key, kind, stream);
        let (piece, end) = match message {
            Message::Http1(http1::Message::Body(body)) => (Some((0, body.bytes)), None),
            Message::Http1(http1::Message::End(_)) => (None, Some(0)),
            Message::Http2(http2::Message::Body(body)) => (Some((body.transaction, body.bytes)), None),
            Message::Http2(http2::Message::End(end)) => (None, Some(end.transaction)),
            Message::Smtp(smtp::Message::Content(content)) => (Some((content.mail, content.bytes)), None),
            Message::Smtp(smtp::Message::Mail(mail)) => (None, Some(mail.mail)),
            _ if message.is_content() => return,
            _ => (None, None),
        };
        if let Some((stream, bytes)) = piece {
            return self.bodies.entry(of_stream(stream)).or_default().extend(bytes);
        }
        let body = end.and_then(|stream| self.bodies.remove(&of_stream(stream))).unwrap_or_default();
        let message = serde_json::from_str::<Value>(&as_json(message)).expect("an object");
        let (protocol, from, side) = (meta.protocol.name(), meta.from, meta.side);
        self.observed.push(Observed { key, protocol, from, side, message, body });
    }
}

/// Returns the messages of a capture in order. Flows do not time out.
///
/// # Panics
///
/// If the file cannot be read.
pub(crate) fn of(path: &Path) -> Vec<Observed> {
    let sink = run_without_timeouts(path, Collect::default());
    sink.observed
}
