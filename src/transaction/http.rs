//! Requests of HTTP with their responses.

use super::lack::Lack;
use super::open::{Copier, Open, Pending};
use super::span::Span;
use crate::base::Timestamp;
use crate::protocols::{http1, http2};
use crate::session::{MessageMeta, Role, Text};

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
        /// Time of the head of the final response.
        pub response_time: Option<Timestamp>,
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
        /// The status code of a gRPC call, 0 for success.
        pub grpc_status: Option<u32>,
        /// The description of the gRPC status, percent-encoded.
        pub grpc_message: Option<Box<str>>,
        /// Error code of a stream of HTTP/2 that was reset.
        pub reset: Option<http2::ErrorCode>,
    }
}

/// The open transactions of a connection.
#[derive(Debug, Default)]
pub(super) struct HttpOpen(Open<Http>);

impl HttpOpen {
    pub(super) fn message1(
        &mut self,
        meta: &MessageMeta,
        message: &http1::Message<'_>,
        out: &mut dyn FnMut(Pending<Http>),
    ) {
        match message {
            http1::Message::Request(head) => {
                let mut copier = Copier::default();
                let origin = header1(&head.headers, "origin");
                let http = Http {
                    version: head.version.name().into(),
                    method: Some(copier.text(head.method)),
                    host: copier.optional(head.host),
                    target: Some(copier.text(head.target)),
                    user_agent: copier.optional(head.user_agent),
                    referer: copier.optional(head.referer),
                    origin: copier.optional(origin),
                    request_content_type: copier.optional(head.content_type),
                    ..Http::default()
                };
                self.request(meta, head.transaction, http, &copier, out);
            }
            http1::Message::Response(head) => {
                let mut copier = Copier::default();
                let response = Http {
                    version: head.version.name().into(),
                    status: Some(head.status),
                    reason: Some(copier.text(head.reason)),
                    server: copier.optional(head.server),
                    location: copier.optional(head.location),
                    content_type: copier.optional(head.content_type),
                    content_encoding: copier.optional(head.content_encoding),
                    ..Http::default()
                };
                let is_interim = head.status < 200 && head.status != 101;
                self.response(meta, head.transaction, (response, is_interim), &copier, out);
            }
            http1::Message::End(end) => {
                let grpc = (None, None);
                self.end(meta, end.transaction, (end.body_len, end.missing_len, end.complete), grpc, out);
            }
            _ => {}
        }
    }

    pub(super) fn message2(
        &mut self,
        meta: &MessageMeta,
        message: &http2::Message<'_>,
        out: &mut dyn FnMut(Pending<Http>),
    ) {
        match message {
            http2::Message::Request(head) => {
                let mut copier = Copier::default();
                let origin = head.fields.iter().find(|field| field.name.0 == b"origin");
                let http = Http {
                    version: "2".into(),
                    method: Some(copier.text(head.method)),
                    host: copier.optional(head.host),
                    target: Some(copier.text(head.path)),
                    scheme: copier.optional(head.scheme),
                    user_agent: copier.optional(head.user_agent),
                    referer: copier.optional(head.referer),
                    origin: copier.optional(origin.map(|field| field.value)),
                    request_content_type: copier.optional(head.content_type),
                    grpc_service: copier.optional(head.grpc_service),
                    grpc_method: copier.optional(head.grpc_method),
                    pushed: head.pushed,
                    ..Http::default()
                };
                self.request(meta, head.transaction, http, &copier, out);
            }
            http2::Message::Response(head) => {
                let mut copier = Copier::default();
                let response = Http {
                    version: "2".into(),
                    status: Some(head.status),
                    server: copier.optional(head.server),
                    location: copier.optional(head.location),
                    content_type: copier.optional(head.content_type),
                    content_encoding: copier.optional(head.content_encoding),
                    ..Http::default()
                };
                self.response(meta, head.transaction, (response, head.status < 200), &copier, out);
            }
            http2::Message::End(end) => {
                let grpc = (end.grpc_status, end.grpc_message);
                self.end(meta, end.transaction, (end.body_len, end.missing_len, end.complete), grpc, out);
            }
            http2::Message::Reset(reset) => {
                if let Some(mut pending) = self.0.take(reset.transaction) {
                    pending.span.extend(meta);
                    pending.content.reset = Some(reset.error);
                    pending.lack(if pending.content.status.is_some() { Lack::End } else { Lack::Response });
                    out(pending);
                }
            }
            _ => {}
        }
    }

    fn request(
        &mut self,
        meta: &MessageMeta,
        number: u64,
        http: Http,
        copier: &Copier,
        out: &mut dyn FnMut(Pending<Http>),
    ) {
        let http = Http { number, ..http };
        self.0.push(Pending::new(number, Span::of(meta), http, copier), out);
    }

    fn response(
        &mut self,
        meta: &MessageMeta,
        number: u64,
        (response, is_interim): (Http, bool),
        copier: &Copier,
        out: &mut dyn FnMut(Pending<Http>),
    ) {
        if self.0.get(number).is_none() {
            let http = Http { number, version: response.version.clone(), ..Http::default() };
            let mut pending = Pending::new(number, Span::of(meta), http, &Copier::default());
            pending.lack(Lack::Request);
            self.0.push(pending, out);
        }
        let Some(pending) = self.0.get(number) else { return };
        pending.span.extend(meta);
        let http = &mut pending.content;
        if is_interim {
            if http.interim_statuses.len() < INTERIM_MAX {
                http.interim_statuses.extend(response.status);
            }
            return;
        }
        http.response_time = Some(meta.timestamp);
        http.status = response.status;
        http.reason = response.reason;
        http.server = response.server;
        http.location = response.location;
        http.content_type = response.content_type;
        http.content_encoding = response.content_encoding;
        pending.add(copier);
    }

    fn end(
        &mut self,
        meta: &MessageMeta,
        number: u64,
        (body_len, missing_len, is_complete): (u64, u64, bool),
        (grpc_status, grpc_message): (Option<u32>, Option<Text<'_>>),
        out: &mut dyn FnMut(Pending<Http>),
    ) {
        let Some(pending) = self.0.get(number) else { return };
        pending.span.extend(meta);
        if !is_complete {
            pending.lack(if missing_len > 0 { Lack::Body } else { Lack::End });
        }
        let http = &mut pending.content;
        if meta.from == Role::Client {
            (http.request_body_len, http.request_missing_len) = (Some(body_len), Some(missing_len));
        } else {
            (http.response_body_len, http.response_missing_len) = (Some(body_len), Some(missing_len));
            http.grpc_status = grpc_status;
            let mut copier = Copier::default();
            http.grpc_message = copier.optional(grpc_message);
            pending.add(&copier);
        }
        let http = &pending.content;
        let is_request_over =
            http.request_body_len.is_some() || http.pushed || pending.lacks == Some(Lack::Request);
        if is_request_over
            && http.response_body_len.is_some()
            && let Some(pending) = self.0.take(number)
        {
            out(pending);
        }
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<Http>)) {
        for mut pending in self.0.take_all() {
            pending.lack(if pending.content.status.is_some() { Lack::End } else { Lack::Response });
            out(pending);
        }
    }
}

/// Returns the value of the first header field with a name.
fn header1<'m>(headers: &http1::Headers<'m>, name: &str) -> Option<Text<'m>> {
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}
