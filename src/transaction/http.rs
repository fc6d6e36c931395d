//! Requests of HTTP with their responses.

use std::time::Duration;

use super::config::TransactionConfig;
use super::file::{BodyHead, BodyKind, File, FilesOpen, name_of};
use super::identity::Identity;
use super::open::{Copier, HeapLen, Open, Pending, allocated};
use super::span::Span;
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::protocols::http1::content_range::ContentRange;
use crate::protocols::{http1, http2};
use crate::session::{Lack, MessageMeta, Role, Text};

/// Maximum number of interim responses that are kept.
const INTERIM_MAX: usize = 16;

crate::message! {
    /// A request of HTTP/1.x or HTTP/2, with its response.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.http" pub struct Http {
        /// Number of the request in its flow, starting at 0; identifier of the stream in HTTP/2.
        pub number: u64,
        /// The HTTP version of the request, or else of the response: `0.9`, `1.0`, `1.1` or `2`.
        pub version: Box<str>,
        /// The method of the request.
        pub method: Option<Box<str>>,
        /// The host that the client requests, without user information.
        pub host: Option<Box<str>>,
        /// The target of the request, or its path in HTTP/2.
        pub target: Option<Box<str>>,
        /// The URI scheme of a request of HTTP/2.
        pub scheme: Option<Box<str>>,
        /// Value of the User-Agent field.
        pub user_agent: Option<Box<str>>,
        /// Value of the Referer field, without user information.
        pub referer: Option<Box<str>>,
        /// Value of the Origin field.
        pub origin: Option<Box<str>>,
        /// User who authenticates with NTLM, with the domain.
        pub user_name: Option<Box<str>> [sparse],
        /// Name of the client's host, in an authentication with NTLM.
        pub client_host: Option<Box<str>> [sparse],
        /// Service whose ticket of Kerberos the client uses, with its realm.
        pub service_name: Option<Box<str>> [sparse],
        /// Value of the Content-Type field of the request.
        pub request_content_type: Option<Box<str>>,
        /// Length of the body of the request, including missing octets; absent if its end was not captured.
        pub request_body_len: Option<u64> [octets],
        /// Octets of the body of the request that were not captured.
        pub request_missing_len: Option<u64> [octets],
        /// The service of a gRPC call.
        pub grpc_service: Option<Box<str>>,
        /// The method name of a gRPC call.
        pub grpc_method: Option<Box<str>>,
        /// True if the server promised the response without a request.
        pub pushed: bool [sparse],
        /// Status codes of interim responses, at most 16.
        pub interim_statuses: Vec<u16> [sparse],
        /// Time from the head of the request to that of the final response.
        pub response_time: Option<Duration>,
        /// Time at which the head of the final response was complete.
        pub response_timestamp: Option<Timestamp>,
        /// Status code of the final response.
        pub status: Option<u16>,
        /// Reason phrase of the final response of HTTP/1.x.
        pub reason: Option<Box<str>>,
        /// Value of the Server field.
        pub server: Option<Box<str>>,
        /// Value of the Location field, without user information.
        pub location: Option<Box<str>>,
        /// Value of the Content-Type field of the response.
        pub content_type: Option<Box<str>>,
        /// Value of the Content-Encoding field of the response.
        pub content_encoding: Option<Box<str>>,
        /// Length of the body of the response, including missing octets; absent if its end was not captured.
        pub response_body_len: Option<u64> [octets],
        /// Octets of the body of the response that were not captured.
        pub response_missing_len: Option<u64> [octets],
        /// Position of the body of the response in the complete representation, by the Content-Range field.
        pub range_start: Option<u64> [octets],
        /// Length of the complete representation, by the Content-Range field of the response.
        pub complete_len: Option<u64> [octets],
        /// The status code of a gRPC call, 0 for success.
        pub grpc_status: Option<u32>,
        /// The description of the gRPC status, percent-encoded.
        pub grpc_message: Option<Box<str>>,
        /// Error code of a stream of HTTP/2 that was reset.
        pub reset: Option<http2::ErrorCode>,
        ..
        /// Length of the range in the Content-Range field of the response.
        pub range_len: Option<u64>,
        /// The HTTP version of the response.
        pub response_version: Option<Box<str>>,
        /// Reason phrase of the last interim response.
        pub interim_reason: Option<Box<str>>,
        /// Fields of the request that a proxy adds, at most 16, as `VIA -> 1.1 proxy`.
        pub proxied: Vec<Box<str>>,
        /// The body of the request, and that of the response, unless they are empty.
        pub bodies: [Option<BodyKind>; 2],
    }
}

state! { struct Http {
    number, version, method, host, target, scheme, user_agent, referer, origin, user_name, client_host, service_name,
    request_content_type,
    request_body_len, request_missing_len, grpc_service, grpc_method, pushed, interim_statuses, response_time,
    response_timestamp, status, reason, server, location, content_type, content_encoding, response_body_len, response_missing_len,
    range_start, complete_len, range_len, grpc_status,
    grpc_message, reset, response_version, interim_reason, proxied, bodies,
} }

/// The open transactions of a connection, and their bodies.
#[derive(Debug, Default)]
pub(super) struct HttpOpen {
    open: Open<OpenHttp>,
    files: FilesOpen,
}

/// An open transaction, and what its heads state about the bodies.
#[derive(Debug, Default)]
struct OpenHttp {
    http: Http,
    request_body: BodyHead,
    response_body: BodyHead,
}

state! { struct HttpOpen { open, files } }
state! { struct OpenHttp { http, request_body, response_body } }

impl HeapLen for OpenHttp {
    fn heap_len(&self) -> usize {
        let Http { interim_statuses, proxied, .. } = &self.http;
        let ranges = [&self.request_body.range, &self.response_body.range].into_iter().flatten();
        let lists = allocated(2 * interim_statuses.capacity()) + allocated(16 * proxied.capacity());
        // The versions are not counted as texts.
        2 * allocated(3) + lists + ranges.count() * allocated(size_of::<ContentRange>())
    }
}

/// What ended.
#[allow(clippy::large_enum_variant, reason = "with pointers of 64 bits; it is passed on at once")]
pub(super) enum Ended {
    Http(Pending<Http>),
    File(Pending<File>),
}

/// Receives what ended.
type Out<'o> = &'o mut dyn FnMut(Ended);

impl From<Pending<OpenHttp>> for Ended {
    fn from(pending: Pending<OpenHttp>) -> Self {
        Self::Http(pending.map(|open| open.http))
    }
}

/// Returns what the fields of a head state about the body behind it.
fn body_head(
    copier: &mut Copier,
    (disposition, range): (Option<Text<'_>>, Option<Text<'_>>),
    content_encoding: Option<Text<'_>>,
    declared_len: Option<u64>,
) -> BodyHead {
    BodyHead {
        name: disposition.and_then(|field| name_of(field, copier)),
        // That of the columns is copied if there is a body.
        content_type: None,
        content_encoding: copier.optional(content_encoding),
        declared_len,
        range: range.map(|field| ContentRange::parse(field.0).into()),
    }
}

impl HttpOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.open.heap_len() + self.files.heap_len()
    }

    /// Adds a message. Returns whether the memory may have changed.
    pub(super) fn message1(
        &mut self,
        meta: &MessageMeta,
        (message, config): (&http1::Message<'_>, TransactionConfig),
        out: Out<'_>,
    ) -> bool {
        match message {
            http1::Message::Request(head) => {
                let mut copier = Copier::default();
                // To a proxy by one scheme, and to the server by another.
                let names = head.credentials.map_or(&[][..], |_| &["authorization", "proxy-authorization"]);
                let fields = names.iter().filter_map(|name| head.headers.find(name));
                let identity = Identity::read(fields, &mut copier);
                let http = Http {
                    version: head.version.name().into(),
                    method: Some(copier.text(head.method)),
                    host: copier.optional(head.host),
                    target: Some(copier.text(head.target)),
                    user_agent: copier.optional(head.user_agent),
                    referer: copier.optional(head.referer),
                    origin: copier.optional(head.headers.find("origin")),
                    user_name: identity.user_name,
                    client_host: identity.client_host,
                    service_name: identity.service_name,
                    request_content_type: copier.optional(head.content_type),
                    proxied: proxied(
                        head.headers.iter().map(|header| (Text(header.name.as_bytes()), header.value)),
                        &mut copier,
                    ),
                    ..Http::default()
                };
                let fields = ["content-disposition", "content-range"].map(|name| head.headers.find(name));
                let body = body_head(&mut copier, fields.into(), head.content_encoding, head.content_length);
                self.request(meta, head.transaction, (http, body), &copier, out);
            }
            http1::Message::Response(head) => {
                let mut copier = Copier::default();
                let http = Http {
                    version: head.version.name().into(),
                    status: Some(head.status),
                    reason: Some(copier.text(head.reason)),
                    server: copier.optional(head.server),
                    location: copier.optional(head.location),
                    content_type: copier.optional(head.content_type),
                    content_encoding: copier.optional(head.content_encoding),
                    range_start: head.range_start,
                    complete_len: head.complete_len,
                    range_len: head.range_len,
                    ..Http::default()
                };
                let fields = ["content-disposition", "content-range"].map(|name| head.headers.find(name));
                let body = body_head(&mut copier, fields.into(), None, head.content_length);
                let is_interim = head.status < 200 && head.status != 101;
                self.response(meta, head.transaction, (http, body, is_interim), &copier, out);
            }
            http1::Message::End(end) => {
                let grpc = (None, None);
                self.end(meta, end.transaction, (end.body_len, end.missing_len, end.complete), grpc, out);
            }
            http1::Message::Body(body) => return self.body(meta, (body, config), out),
            http1::Message::Gap(gap) => self.gap(meta, gap, out),
        }
        true
    }

    /// Adds a message. Returns whether the memory may have changed.
    pub(super) fn message2(
        &mut self,
        meta: &MessageMeta,
        (message, config): (&http2::Message<'_>, TransactionConfig),
        out: Out<'_>,
    ) -> bool {
        match message {
            http2::Message::Request(head) => {
                let mut copier = Copier::default();
                let http = Http {
                    version: "2".into(),
                    method: Some(copier.text(head.method)),
                    host: copier.optional(head.host),
                    target: Some(copier.text(head.target)),
                    scheme: copier.optional(head.scheme),
                    user_agent: copier.optional(head.user_agent),
                    referer: copier.optional(head.referer),
                    origin: copier.optional(field(&head.fields, b"origin")),
                    request_content_type: copier.optional(head.content_type),
                    grpc_service: copier.optional(head.grpc_service),
                    grpc_method: copier.optional(head.grpc_method),
                    pushed: head.pushed,
                    proxied: proxied(head.fields.iter().map(|field| (field.name, field.value)), &mut copier),
                    ..Http::default()
                };
                let fields =
                    [&b"content-disposition"[..], b"content-range"].map(|name| field(&head.fields, name));
                let body = body_head(&mut copier, fields.into(), head.content_encoding, head.content_length);
                self.request(meta, head.transaction, (http, body), &copier, out);
            }
            http2::Message::Response(head) => {
                let mut copier = Copier::default();
                let http = Http {
                    version: "2".into(),
                    status: Some(head.status),
                    server: copier.optional(head.server),
                    location: copier.optional(head.location),
                    content_type: copier.optional(head.content_type),
                    content_encoding: copier.optional(head.content_encoding),
                    range_start: head.range_start,
                    complete_len: head.complete_len,
                    range_len: head.range_len,
                    ..Http::default()
                };
                let fields =
                    [&b"content-disposition"[..], b"content-range"].map(|name| field(&head.fields, name));
                let body = body_head(&mut copier, fields.into(), None, head.content_length);
                self.response(meta, head.transaction, (http, body, head.status < 200), &copier, out);
            }
            http2::Message::End(end) => {
                let grpc = (end.grpc_status, end.grpc_message);
                self.end(meta, end.transaction, (end.body_len, end.missing_len, end.complete), grpc, out);
            }
            http2::Message::Reset(reset) => {
                let Self { open, files } = self;
                let mut pending = open.take(reset.transaction);
                for role in [Role::Client, Role::Server] {
                    files.close((reset.transaction, role), false, &mut |file| {
                        if let Some(pending) = &mut pending {
                            *role.of_mut(&mut pending.content.http.bodies) = Some(file.content.kind());
                        }
                        out(Ended::File(file));
                    });
                }
                if let Some(mut pending) = pending {
                    pending.span.extend(meta);
                    let http = &mut pending.content.http;
                    http.reset = Some(reset.error);
                    let lack = if http.status.is_some() { Lack::End } else { Lack::Response };
                    pending.lack(lack);
                    out(pending.into());
                }
            }
            http2::Message::Body(body) => return self.body(meta, (body, config), out),
            http2::Message::Gap(gap) => self.gap(meta, gap, out),
            _ => {}
        }
        true
    }

    // A description of the piece would take 40 instructions for each segment of a body.
    fn body(
        &mut self,
        meta: &MessageMeta,
        (body, config): (&http1::Body<'_>, TransactionConfig),
        out: Out<'_>,
    ) -> bool {
        let Self { open, files } = self;
        let head = || take_body_head(open, meta, body.transaction);
        let octets = (body.transaction, body.offset, body.bytes, config);
        files.octets(meta, octets, head, &mut |file| out(Ended::File(file)))
    }

    fn gap(&mut self, meta: &MessageMeta, gap: &http1::BodyGap, out: Out<'_>) {
        let Self { open, files } = self;
        let head = || take_body_head(open, meta, gap.transaction);
        files.gap(meta, (gap.transaction, gap.len), head, &mut |file| out(Ended::File(file)));
    }

    fn request(
        &mut self,
        meta: &MessageMeta,
        number: u64,
        (http, request_body): (Http, BodyHead),
        copier: &Copier,
        out: Out<'_>,
    ) {
        let open = OpenHttp { http: Http { number, ..http }, request_body, ..OpenHttp::default() };
        let pending = Pending::new(number, Span::of(meta), open, copier);
        self.open.push(pending, &mut |evicted| out(evicted.into()));
    }

    fn response(
        &mut self,
        meta: &MessageMeta,
        number: u64,
        (response, body, is_interim): (Http, BodyHead, bool),
        copier: &Copier,
        out: Out<'_>,
    ) {
        if self.open.get(number).is_none() {
            let http = Http { number, version: response.version.clone(), ..Http::default() };
            let open = OpenHttp { http, ..OpenHttp::default() };
            let mut pending = Pending::new(number, Span::of(meta), open, &Copier::default());
            pending.lack(Lack::Request);
            self.open.push(pending, &mut |evicted| out(evicted.into()));
        }
        let Some(pending) = self.open.get(number) else { return };
        pending.span.extend(meta);
        let requested = pending.lacks.is_none().then_some(pending.span.start);
        let http = &mut pending.content.http;
        if is_interim {
            if http.interim_statuses.len() < INTERIM_MAX {
                http.interim_statuses.extend(response.status);
            }
            http.interim_reason = response.reason;
            pending.add(copier);
            return self.open.trim(&mut |evicted| out(evicted.into()));
        }
        http.response_time = requested.map(|time| meta.timestamp.saturating_since(time));
        http.response_timestamp = Some(meta.timestamp);
        http.response_version = Some(response.version);
        http.status = response.status;
        http.reason = response.reason;
        http.server = response.server;
        http.location = response.location;
        http.content_type = response.content_type;
        http.content_encoding = response.content_encoding;
        (http.range_start, http.range_len) = (response.range_start, response.range_len);
        http.complete_len = response.complete_len;
        pending.content.response_body = body;
        pending.add(copier);
        self.open.trim(&mut |evicted| out(evicted.into()));
    }

    fn end(
        &mut self,
        meta: &MessageMeta,
        number: u64,
        (body_len, missing_len, is_complete): (u64, u64, bool),
        (grpc_status, grpc_message): (Option<u32>, Option<Text<'_>>),
        out: Out<'_>,
    ) {
        let Self { open, files } = self;
        let mut pending = open.get(number);
        files.end(meta, number, is_complete, &mut |file| {
            if let Some(pending) = &mut pending {
                let mut copier = Copier::default();
                copier.count(file.content.name.as_deref());
                pending.add(&copier);
                *meta.from.of_mut(&mut pending.content.http.bodies) = Some(file.content.kind());
            }
            out(Ended::File(file));
        });
        let Some(pending) = pending else { return };
        pending.span.extend(meta);
        if !is_complete {
            pending.lack(if missing_len > 0 { Lack::Body } else { Lack::End });
        }
        let http = &mut pending.content.http;
        if meta.from == Role::Client {
            (http.request_body_len, http.request_missing_len) = (Some(body_len), Some(missing_len));
        } else {
            (http.response_body_len, http.response_missing_len) = (Some(body_len), Some(missing_len));
            http.grpc_status = grpc_status;
            let mut copier = Copier::default();
            http.grpc_message = copier.optional(grpc_message);
            pending.add(&copier);
        }
        let http = &pending.content.http;
        let is_request_over = http.request_body_len.is_some() || http.pushed || http.method.is_none();
        if is_request_over
            && http.response_body_len.is_some()
            && let Some(pending) = self.open.take(number)
        {
            out(pending.into());
        }
    }

    pub(super) fn finish(&mut self, out: Out<'_>) {
        self.files.finish(&mut |file| out(Ended::File(file)));
        for mut pending in self.open.take_all() {
            let has_response = pending.content.http.status.is_some();
            pending.lack(if has_response { Lack::End } else { Lack::Response });
            out(pending.into());
        }
    }
}

/// The fields of requests that proxies add, by their names in upper case.
const PROXY_FIELDS: [&str; 7] = [
    "FORWARDED",
    "X-FORWARDED-FOR",
    "X-FORWARDED-FROM",
    "CLIENT-IP",
    "VIA",
    "XROXY-CONNECTION",
    "PROXY-CONNECTION",
];

/// Returns the fields that a proxy added.
fn proxied<'m>(fields: impl Iterator<Item = (Text<'m>, Text<'m>)>, copier: &mut Copier) -> Vec<Box<str>> {
    let known = fields.filter_map(|(name, value)| {
        let is_known = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name.0);
        Some((PROXY_FIELDS.iter().find(|known| is_known(known))?, value))
    });
    known.take(INTERIM_MAX).map(|(name, value)| copier.display(format_args!("{name} -> {value}"))).collect()
}

/// Returns the value of the first field with a name.
fn field<'m>(fields: &http2::Fields<'m>, name: &[u8]) -> Option<Text<'m>> {
    fields.iter().find(|field| field.name.0 == name).map(|field| field.value)
}

/// Returns what the head of a message states about its body, which is needed once.
fn take_body_head(open: &mut Open<OpenHttp>, meta: &MessageMeta, number: u64) -> BodyHead {
    let Some(Pending { content: OpenHttp { http, request_body, response_body }, .. }) = open.get(number)
    else {
        return BodyHead::default();
    };
    match meta.from {
        Role::Client => {
            BodyHead { content_type: http.request_content_type.clone(), ..std::mem::take(request_body) }
        }
        Role::Server => BodyHead {
            content_type: http.content_type.clone(),
            content_encoding: http.content_encoding.clone(),
            ..std::mem::take(response_body)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;
    use crate::protocols::http2::{Http2Parser, PROTOCOL};
    use crate::session::{Input, Parser};

    /// Returns a frame of HTTP/2 (RFC 9113 section 4.1).
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }

    #[test]
    fn a_reset_ends_the_bodies_of_its_stream() {
        // SETTINGS, and HEADERS with indexed fields: GET https://…/, and status 200.
        let client = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[]),
            frame(1, 5, 1, &[0x82, 0x87, 0x84]),
        ];
        let server = [
            frame(4, 0, 0, &[]),
            frame(1, 4, 1, &[0x88]),
            frame(0, 0, 1, b"hello"),
            frame(3, 0, 1, &[0, 0, 0, 8]),
        ];
        let (mut parser, mut open) = (Http2Parser::default(), HttpOpen::default());
        let (mut exchanges, mut files) = (Vec::new(), Vec::new());
        for (from, side, frames) in
            [(Role::Client, Side::A, &client[..]), (Role::Server, Side::B, &server[..])]
        {
            let timestamp = Timestamp::ZERO;
            let meta = MessageMeta { protocol: &PROTOCOL, from, side, timestamp, received_len: 0 };
            let octets = frames.concat();
            let input = Input::new(&octets, 0, from, timestamp);
            let progress = parser.bytes(&input, &mut |message| {
                open.message2(&meta, (&message, TransactionConfig::DEFAULT), &mut |ended| match ended {
                    Ended::Http(http) => exchanges.push(http),
                    Ended::File(file) => files.push(file),
                });
            });
            progress.expect("HTTP/2");
        }
        let [file] = files.as_slice() else { panic!("{} files", files.len()) };
        assert_eq!(
            (file.content.seen_len, file.content.is_complete, file.lacks),
            (5, false, Some(Lack::End))
        );
        let [http] = exchanges.as_slice() else { panic!("{} exchanges", exchanges.len()) };
        assert_eq!((http.content.status, http.lacks), (Some(200), Some(Lack::End)));
        assert!(http.content.reset.is_some());
        let [of_client, of_server] = &http.content.bodies;
        assert!(of_client.is_none() && of_server.is_some());
        open.finish(&mut |_| panic!("nothing is open"));
    }
}
