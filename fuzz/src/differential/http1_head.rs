//! Heads of HTTP/1.x read by the parser and by `httparse` alone: the parser reports heads that httparse accepts with
//! the same first line and fields.
//!
//! The parser uses httparse for well-formed heads. This target therefore checks the remaining parts of the parser: the
//! start and end of heads, the search and the state between pieces, and the reading by lines of heads that httparse
//! rejects.

use flowgauge::base::Timestamp;
use flowgauge::protocols::http1::{HEAD_LEN_MAX, HEADER_COUNT_MAX, HttpParser, Message, Version};
use flowgauge::session::{Input, Parser, Role};

/// Maximum length of a method that the parser accepts.
const METHOD_LEN_MAX: usize = 32;

/// Compared parts: method and target, or status and reason; the minor version; the fields.
#[derive(Debug, PartialEq)]
struct Facts {
    first: (Vec<u8>, Vec<u8>),
    minor: u8,
    fields: Vec<(String, Vec<u8>)>,
}

fn ours(from: Role, octets: &[u8]) -> Option<Facts> {
    let mut reported = None;
    let minor = |version| u8::from(version == Version::Http11);
    let mut take = |message: Message<'_>| {
        let (first, minor, headers) = match message {
            Message::Request(it) => {
                ((it.method.0.to_vec(), it.target.0.to_vec()), minor(it.version), it.headers)
            }
            Message::Response(it) => {
                ((it.status.to_string().into_bytes(), it.reason.0.to_vec()), minor(it.version), it.headers)
            }
            _ => return,
        };
        let fields = headers.iter().map(|field| (field.name.to_owned(), field.value.0.to_vec())).collect();
        reported.get_or_insert(Facts { first, minor, fields });
    };
    let _ = HttpParser::default().bytes(&Input::new(octets, 0, from, Timestamp::ZERO), &mut take);
    reported
}

fn theirs(from: Role, octets: &[u8]) -> Option<Facts> {
    let mut slots = [httparse::EMPTY_HEADER; HEADER_COUNT_MAX];
    let (len, first, minor, headers) = match from {
        Role::Client => {
            let mut request = httparse::Request::new(&mut slots);
            let httparse::Status::Complete(len) = request.parse(octets).ok()? else { return None };
            let first = (request.method?.as_bytes().to_vec(), request.path?.as_bytes().to_vec());
            (len, first, request.version?, request.headers)
        }
        Role::Server => {
            let mut response = httparse::Response::new(&mut slots);
            let httparse::Status::Complete(len) = response.parse(octets).ok()? else { return None };
            let first = (response.code?.to_string().into_bytes(), response.reason?.as_bytes().to_vec());
            (len, first, response.version?, response.headers)
        }
    };
    // By design: the parser rejects longer methods and heads.
    if first.0.len() > METHOD_LEN_MAX || len > HEAD_LEN_MAX {
        return None;
    }
    let fields = headers.iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
    Some(Facts { first, minor, fields })
}

pub fn run(data: &[u8]) {
    let Some((choice, octets)) = data.split_first() else { return };
    let from = if choice & 1 == 0 { Role::Client } else { Role::Server };
    let ours = ours(from, octets);
    let Some(theirs) = theirs(from, octets) else { return };
    let mut ours = ours.unwrap_or_else(|| panic!("only httparse found a head: {theirs:?}"));
    // By design: the parser removes user information from the target.
    if theirs.first.1.contains(&b'@') {
        ours.first.1.clone_from(&theirs.first.1);
    }
    assert_eq!(ours, theirs);
}
