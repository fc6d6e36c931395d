//! Messages that own their data, for iterators over the messages of a source.

use std::time::Duration;

use super::standard::Message;
use super::{dns, http1, http2, tls};
use crate::session::Text;

/// The fields of a TLS ClientHello, from TLS, DTLS or QUIC, that most programs need; [`tls::ClientHello`] has all.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OwnedClientHello {
    /// Server name that the client requests.
    pub server_name: Option<String>,
    /// Highest version that the client offers.
    pub version: tls::Version,
    /// Application protocols that the client offers.
    pub alpn: Vec<String>,
    /// JA3 fingerprint.
    pub ja3: tls::Ja3,
    /// JA4 fingerprint.
    pub ja4: tls::Ja4,
}

impl OwnedClientHello {
    /// Copies a ClientHello; `None` for any other message.
    #[must_use]
    pub fn of(message: &Message<'_>) -> Option<Self> {
        let hello = message.client_hello()?;
        Some(Self {
            server_name: hello.server_name().map(owned),
            version: hello.version(),
            alpn: hello.alpn().iter().map(owned).collect(),
            ja3: hello.ja3(),
            ja4: hello.ja4(),
        })
    }
}

/// A DNS query or response with its questions and answers; [`dns::DnsMessage`] has all sections.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OwnedDnsMessage {
    /// Identifier of the query.
    pub id: u16,
    /// Whether the message is a response.
    pub is_response: bool,
    /// Response code, including the upper bits from EDNS; meaningless in a query.
    pub rcode: dns::Rcode,
    /// Names and types that are queried.
    pub questions: Vec<(String, dns::RecordType)>,
    /// Records of the answer section, up to the first malformed one.
    pub answers: Vec<OwnedAnswer>,
    /// For a response: time since its query was first sent.
    pub response_time: Option<Duration>,
}

/// A record of the answer section of a DNS message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedAnswer {
    /// Name to which the record belongs.
    pub name: String,
    /// Type of the record.
    pub record_type: dns::RecordType,
    /// Time to live in seconds.
    pub ttl: u32,
    /// Data of the record in presentation format (RFC 1035 section 5).
    pub data: String,
}

impl OwnedDnsMessage {
    /// Copies a message of DNS, mDNS or LLMNR; `None` for any other message.
    #[must_use]
    pub fn of(message: &Message<'_>) -> Option<Self> {
        let (Message::Dns(message) | Message::Mdns(message) | Message::Llmnr(message)) = message else {
            return None;
        };
        let (dns::Message::Query(message) | dns::Message::Response(message)) = message else { return None };
        let answers = message.answers().map(|record| OwnedAnswer {
            name: record.name.to_string(),
            record_type: record.record_type,
            ttl: record.ttl,
            data: record.data.to_string(),
        });
        Some(Self {
            id: message.header.id,
            is_response: message.header.flags.is_response(),
            rcode: message.rcode(),
            questions: message
                .questions()
                .map(|question| (question.name.to_string(), question.record_type))
                .collect(),
            answers: answers.collect(),
            response_time: message.response_time,
        })
    }
}

/// The head of an HTTP request or response of HTTP/1.x or HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedHttpHead {
    /// Number of the request in its flow; a response has the number of its request.
    pub transaction: u64,
    /// What the first line, or the pseudo-header fields, contain.
    pub start: HttpStart,
    /// Names and values of all header fields, except those with credentials.
    pub headers: Vec<(String, String)>,
}

/// First line of an HTTP message, or its pseudo-header fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpStart {
    /// Of a request.
    Request {
        /// Method, such as `GET`.
        method: String,
        /// Request target.
        target: String,
        /// Host that the client requests.
        host: Option<String>,
    },
    /// Of a response.
    Response {
        /// Status code.
        status: u16,
    },
}

impl OwnedHttpHead {
    /// Copies the head of a request or response; `None` for any other message.
    #[must_use]
    pub fn of(message: &Message<'_>) -> Option<Self> {
        let fields_of_1 = |headers: &http1::Headers<'_>| {
            let public = headers.iter().filter(|header| header.credentials.is_none());
            public.map(|header| (header.name.to_owned(), owned(header.value))).collect()
        };
        let fields_of_2 = |fields: &http2::Fields<'_>| {
            let public = fields.iter().filter(|field| field.credentials.is_none());
            public.map(|field| (owned(field.name), owned(field.value))).collect()
        };
        let request = |method, target, host: Option<Text<'_>>| HttpStart::Request {
            method: owned(method),
            target: owned(target),
            host: host.map(owned),
        };
        Some(match message {
            Message::Http1(http1::Message::Request(head)) => Self {
                transaction: head.transaction,
                start: request(head.method, head.target, head.host),
                headers: fields_of_1(&head.headers),
            },
            Message::Http1(http1::Message::Response(head)) => Self {
                transaction: head.transaction,
                start: HttpStart::Response { status: head.status },
                headers: fields_of_1(&head.headers),
            },
            Message::Http2(http2::Message::Request(head)) => Self {
                transaction: head.transaction,
                start: request(head.method, head.target, head.host),
                headers: fields_of_2(&head.fields),
            },
            Message::Http2(http2::Message::Response(head)) => Self {
                transaction: head.transaction,
                start: HttpStart::Response { status: head.status },
                headers: fields_of_2(&head.fields),
            },
            _ => return None,
        })
    }
}

fn owned(text: Text<'_>) -> String {
    text.to_str_lossy().into_owned()
}
