//! Objects of a flow that are being received.

use std::net::IpAddr;

use flowgauge::protocols::{http1, http2};
use flowgauge::record::CommunityId;
use flowgauge::session::Text;
use flowgauge::transaction::DecodingCredit;
use flowgauge::{FlowView, Message, MessageMeta, Role, Side, Timestamp};

use super::args::Kind;
use super::entries::Entries;
use super::folder::Content;
use super::row::ObjectRow;
use crate::sessions::id;

/// Maximum number of objects of a flow that are being received. At the limit, the first one ends.
const INCOMING_MAX: usize = 256;

/// Maximum length in octets of the host and of the target of a request; longer ones are truncated.
const TEXT_LEN_MAX: usize = 1024;

/// Maximum length in octets of a validator; longer ones are truncated.
const VALIDATOR_LEN_MAX: usize = 256;

/// Status code of a response with an entity (RFC 9110 section 15.3.1).
const OK: u16 = 200;

/// Status code of a response with ranges of an entity (RFC 9110 section 15.3.7).
const PARTIAL_CONTENT: u16 = 206;

/// Identifies an object of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    /// Number of the transaction.
    pub(super) number: u64,
    is_of_server: bool,
}

impl Key {
    pub(super) fn new(kind: Kind, number: u64, sender: Role) -> Self {
        Self { kind, number, is_of_server: sender == Role::Server }
    }

    pub(super) fn sender(self) -> Role {
        if self.is_of_server { Role::Server } else { Role::Client }
    }
}

/// State of a flow that the sink keeps.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) community_id: Option<CommunityId>,
    /// Octets of output of this flow.
    pub(super) spent: u64,
    /// Work of decoding that the flow has paid for.
    pub(super) credit: DecodingCredit,
    /// Requests of HTTP that have not ended. Their number is limited because [`Transactions`](flowgauge::Transactions) ends
    /// them.
    requests: Entries<u64, Request>,
    /// Objects that are being received; nothing for one that is omitted because of a limit.
    pub(super) incoming: Entries<Key, Option<Box<Incoming>>>,
    /// Memory in bytes that requests and objects have allocated.
    entries_len: usize,
    /// True if the content of the mail that ends is complete.
    pub(super) is_mail_complete: bool,
}

/// What is known of a request of HTTP.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) host: Option<Box<str>>,
    pub(super) target: Option<Box<str>>,
    status: Option<u16>,
    /// What identifies the entity of a response among those of its target.
    pub(super) validator: Option<Box<str>>,
}

impl Request {
    /// Returns whether the response has ranges of an entity.
    pub(super) fn is_partial(&self) -> bool {
        self.status == Some(PARTIAL_CONTENT)
    }

    /// Returns whether the response is a whole entity with a strong validator, of which the end can be requested again.
    pub(super) fn may_be_resumed(&self) -> bool {
        self.status == Some(OK) && self.validator.is_some()
    }

    /// Returns the memory of the texts in bytes.
    pub(super) fn heap_len(&self) -> usize {
        let texts = [&self.host, &self.target, &self.validator];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }
}

fn copy(text: Text<'_>) -> Box<str> {
    String::from_utf8_lossy(text.0.get(..TEXT_LEN_MAX).unwrap_or(text.0)).into()
}

/// Returns what identifies an entity among those of its target, by the fields ETag and Last-Modified: a strong ETag, or
/// else both fields of a response with a range. `None` if there are none.
fn validator(fields: [Option<Text<'_>>; 2], is_range: bool) -> Option<Box<str>> {
    let [tag, _] = fields;
    // Weak tags begin with W (RFC 9110 section 8.8.3).
    if let Some(tag) = tag.filter(|tag| tag.0.starts_with(b"\"") && tag.0.len() <= VALIDATOR_LEN_MAX) {
        return Some(String::from_utf8_lossy(tag.0).into());
    }
    let texts = fields.map(|field| {
        let text = field.map_or(&b""[..], |field| field.0);
        String::from_utf8_lossy(text.get(..VALIDATOR_LEN_MAX).unwrap_or(text))
    });
    (is_range && fields.iter().any(Option::is_some)).then(|| texts.join("\n").into())
}

/// What a row states about the flow of its object.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowFacts {
    community_id: CommunityId,
    start: Timestamp,
    /// Addresses and ports of the sides.
    ends: [(IpAddr, Option<u16>); 2],
    client: Side,
}

impl FlowFacts {
    pub(super) fn new(view: &FlowView<'_>, state: &mut State, client: Side) -> Self {
        let end = |side| (view.key().address(side), view.key().port(side));
        Self {
            community_id: id(&mut state.community_id, view),
            start: view.start(),
            ends: [end(Side::A), end(Side::B)],
            client,
        }
    }

    /// Returns address and port of a role.
    pub(super) fn end(&self, role: Role) -> (IpAddr, Option<u16>) {
        self.side(if role == Role::Client { self.client } else { self.client.other() })
    }

    fn side(&self, side: Side) -> (IpAddr, Option<u16>) {
        let [a, b] = self.ends;
        if side == Side::A { a } else { b }
    }
}

impl State {
    /// Returns the memory that was allocated for the flow, in bytes.
    pub(super) const fn heap_len(&self) -> usize {
        self.entries_len + self.requests.heap_len() + self.incoming.heap_len()
    }

    /// Notes the heads of requests and responses.
    pub(super) fn note(&mut self, message: &Message<'_>) {
        let (number, host, target) = match message {
            Message::Http1(http1::Message::Request(head)) => (head.transaction, head.host, head.target),
            Message::Http2(http2::Message::Request(head)) => (head.transaction, head.host, head.target),
            Message::Http1(http1::Message::Response(head)) => {
                let fields = || ["etag", "last-modified"].map(|name| head.headers.find(name));
                return self.note_response(head.transaction, head.status, head.range_start.is_some(), fields);
            }
            Message::Http2(http2::Message::Response(head)) => {
                let fields = || {
                    [&b"etag"[..], b"last-modified"].map(|name| {
                        let field = head.fields.iter().find(|field| field.name.0 == name);
                        field.map(|field| field.value)
                    })
                };
                return self.note_response(head.transaction, head.status, head.range_start.is_some(), fields);
            }
            _ => return,
        };
        self.set_request(
            number,
            Request { host: host.map(copy), target: Some(copy(target)), ..Request::default() },
        );
    }

    fn set_request(&mut self, number: u64, request: Request) {
        self.entries_len += request.heap_len();
        let before = self.requests.insert(number, request);
        self.entries_len -= before.map_or(0, |before| before.heap_len());
    }

    /// Removes a request that ended.
    pub(super) fn take_request(&mut self, number: u64) -> Option<Request> {
        let request = self.requests.remove(number)?;
        self.entries_len -= request.heap_len();
        Some(request)
    }

    /// Begins to receive an object, or to omit it.
    pub(super) fn begin(&mut self, key: Key, incoming: Option<Box<Incoming>>) {
        self.entries_len += incoming.as_ref().map_or(0, |incoming| incoming.held_len());
        self.incoming.insert(key, incoming);
    }

    /// Removes an object that ends.
    pub(super) fn take(&mut self, key: Key) -> Option<Box<Incoming>> {
        let incoming = self.incoming.remove(key)??;
        self.entries_len -= incoming.held_len();
        Some(incoming)
    }

    /// Notes that an object has allocated as much.
    pub(super) const fn has_grown(&mut self, len: usize) {
        self.entries_len += len;
    }

    /// Notes the head of a response; `fields` returns ETag and Last-Modified.
    fn note_response<'m>(
        &mut self,
        transaction: u64,
        status: u16,
        has_range: bool,
        fields: impl FnOnce() -> [Option<Text<'m>>; 2],
    ) {
        let mut request = self.take_request(transaction).unwrap_or_default();
        request.status = Some(status);
        let is_range = has_range || status == PARTIAL_CONTENT;
        request.validator = if is_range || status == OK { validator(fields(), is_range) } else { None };
        self.set_request(transaction, request);
    }

    /// Returns what is known of the request to which an object belongs.
    pub(super) fn request(&self, key: Key) -> Request {
        let request = self.requests.get(key.number).filter(|_| key.kind == Kind::Http);
        request.cloned().unwrap_or_default()
    }

    /// Notes that octets of an object are missing. Those before its first octets are noted with them.
    pub(super) fn skip(&mut self, key: Key, len: u64) {
        if let Some(Some(incoming)) = self.incoming.get_mut(key) {
            incoming.skip(len);
        }
    }

    /// Returns the first object if there are as many as permitted.
    pub(super) fn excess(&self) -> Option<Key> {
        self.incoming.first_key().filter(|_| self.incoming.len() >= INCOMING_MAX)
    }
}

/// An object that is being received.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) content: Content,
    pub(super) request: Request,
    protocol: &'static str,
    pub(super) side: Side,
    start: Timestamp,
    end: Timestamp,
    /// Number of octets of the object so far, including missing ones.
    pub(super) seen_len: u64,
    pub(super) missing_len: u64,
    pub(super) gap_count: u64,
    /// Number of octets that the parsers of the flow had received with the last octets.
    pub(super) received_len: u64,
}

impl Incoming {
    pub(super) fn new(content: Content, meta: &MessageMeta, request: Request) -> Self {
        Self {
            content,
            request,
            protocol: meta.protocol.name(),
            side: meta.side,
            start: meta.timestamp,
            end: meta.timestamp,
            seen_len: 0,
            missing_len: 0,
            gap_count: 0,
            received_len: meta.received_len,
        }
    }

    /// Returns the memory of the object in bytes.
    pub(super) fn held_len(&self) -> usize {
        size_of::<Self>() + self.request.heap_len() + self.content.heap_len()
    }

    /// Notes octets that were received.
    pub(super) fn extend(&mut self, meta: &MessageMeta, len: usize) {
        self.seen_len = self.seen_len.saturating_add(len as u64);
        self.end = self.end.max(meta.timestamp);
        self.received_len = meta.received_len;
    }

    /// Notes octets that are missing.
    pub(super) const fn skip(&mut self, len: u64) {
        self.seen_len = self.seen_len.saturating_add(len);
        self.missing_len = self.missing_len.saturating_add(len);
        self.gap_count += 1;
    }

    /// Notes another part of the object.
    pub(super) fn join(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    /// Returns the row of the object as far as its protocol states nothing else.
    pub(super) fn row(&self, flow: &FlowFacts, key: Key) -> ObjectRow<'_> {
        ObjectRow {
            file: "",
            pem_file: None,
            kind: key.kind,
            protocol: self.protocol,
            name: None,
            len: self.content.len,
            is_complete: false,
            missing_len: self.missing_len,
            gap_count: self.gap_count,
            omitted_len: self.content.omitted_len,
            sha256: "",
            detected_type: self.content.detected_type(),
            content_type: None,
            content_encoding: None,
            decoding: None,
            timestamp: self.start,
            end: self.end,
            range_start: None,
            complete_len: None,
            range_count: 0,
            ranges: None,
            community_id: flow.community_id,
            start: flow.start,
            source: flow.side(self.side),
            destination: flow.side(self.side.other()),
            role: key.sender(),
            transaction: key.number,
            host: self.request.host.as_deref(),
            target: self.request.target.as_deref(),
            status: self.request.status.filter(|_| key.is_of_server),
            command: None,
        }
    }
}
