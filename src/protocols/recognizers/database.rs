//! Recognizers of databases and caches.

use super::octets::{begins_with, dialogue, is_printable, once, u16_at, u32_at, u32_le_at};
use crate::session::{OctetSet, Protocol, Role, StreamOpening, Verdict};

/// Redis (RESP), recognized by an array of bulk strings, as in a client's command; simple strings and inline commands
/// on port 6379 only.
pub static REDIS: Protocol = Protocol::new("redis")
    .in_zeek("redis")
    .over_streams(&[6379], Some(redis))
    .streams_begin_with(OctetSet::LETTERS.and(OctetSet::of(b"*+-:$%_\r")));

/// `PostgreSQL` version 3, recognized by a startup message, or a request that may replace it; on port 5432 also by
/// messages in the middle of a stream.
pub static POSTGRESQL: Protocol = Protocol::new("postgresql")
    .in_zeek("postgresql")
    .in_eve("pgsql")
    .over_streams(&[5432], Some(postgresql))
    .streams_begin_with(OctetSet::LETTERS.and(OctetSet::range(b'1'..=b'3')).and(OctetSet::of(b"\0")));

/// `MySQL` and MariaDB, recognized by the server's greeting of version 10; on port 3306 also by commands in the middle
/// of a stream.
pub static MYSQL: Protocol = Protocol::new("mysql").in_zeek("mysql").over_streams(&[3306], Some(mysql));

/// TDS of SQL Server, recognized by the client's pre-login message.
pub static TDS: Protocol =
    Protocol::new("tds").over_streams(&[1433], Some(tds)).streams_begin_with(OctetSet::of(b"\x12"));

/// `MongoDB`, recognized by a message header with an operation that its sender may use, a valid length for that
/// operation, and the start of the message body.
pub static MONGODB: Protocol = Protocol::new("mongodb").over_streams(&[27017], Some(mongodb));

/// Cassandra native protocol, versions 3 to 5, recognized by the first request of a client.
pub static CASSANDRA: Protocol = Protocol::new("cassandra")
    .over_streams(&[9042], Some(cassandra))
    .streams_begin_with(OctetSet::range(3..=5));

/// memcached, recognized by text or binary commands or responses on port 11211.
pub static MEMCACHED: Protocol = Protocol::new("memcached").over_streams(&[11211], Some(memcached));

/// Skips a decimal number and a line end, and returns the octets that follow, or the verdict if there is no complete
/// number.
fn after_number(bytes: &[u8]) -> Result<&[u8], Verdict> {
    let digit_count = bytes.iter().take_while(|octet| octet.is_ascii_digit()).count();
    match bytes.split_at_checked(digit_count) {
        Some((number, [b'\r', b'\n', rest @ ..])) if (1..=7).contains(&number.len()) => Ok(rest),
        Some((number, [] | [b'\r'])) if number.len() <= 7 => Err(Verdict::More),
        _ => Err(Verdict::No),
    }
}

fn redis(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(6379);
    let array = |bytes: &[u8]| match bytes {
        [] => Verdict::More,
        [b'*', rest @ ..] => match after_number(rest) {
            Ok([b'$', rest @ ..]) => after_number(rest).map_or_else(|verdict| verdict, |_| Verdict::Match),
            Ok([]) => Verdict::More,
            Ok(_) => Verdict::of(is_on_port),
            Err(verdict) => verdict,
        },
        _ => Verdict::No,
    };
    // An inline command, as typed by people.
    let inline = |bytes: &[u8]| {
        let word_len = bytes.iter().take_while(|octet| octet.is_ascii_alphabetic()).count();
        match bytes.get(word_len..) {
            Some([] | [b'\r']) if word_len <= 16 => Verdict::More,
            Some([b' ', ..] | [b'\r', b'\n', ..]) => Verdict::of((3..=16).contains(&word_len)),
            _ => Verdict::No,
        }
    };
    let is_request = |bytes: &[u8]| match array(bytes) {
        Verdict::No if is_on_port => inline(bytes),
        verdict => verdict,
    };
    let answers = |bytes: &[u8]| match bytes {
        [b'+' | b'-' | b':' | b'$' | b'%' | b'_', ..] => Verdict::of(is_on_port),
        // An array from the responder of the flow: only the port identifies its sender.
        [b'*', ..] if is_on_port => array(bytes),
        _ => Verdict::No,
    };
    dialogue(opening, is_request, answers)
}

fn postgresql(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(5432);
    let is_request = |bytes: &[u8]| match bytes {
        [0, ..] => {
            let (Some(len), Some(code)) = (u32_at(bytes, 0), u32_at(bytes, 4)) else {
                return if matches!(bytes, [0, 0, ..] | [_]) { Verdict::More } else { Verdict::No };
            };
            match code {
                // Version 3.0, and its parameters: `user` is mandatory.
                0x0003_0000..=0x0003_0002 if (9..=10_000).contains(&len) => {
                    once(bytes, 10, || is_on_port || bytes.get(8).is_some_and(u8::is_ascii_alphabetic))
                }
                // TLS, GSSAPI, cancel.
                0x04D2_162F | 0x04D2_1630 => Verdict::of(len == 8),
                0x04D2_162E => Verdict::of(len == 16),
                _ => Verdict::No,
            }
        }
        [] => Verdict::More,
        _ => message(bytes, b"QPBEDSCHXFpd", is_on_port),
    };
    dialogue(opening, is_request, |bytes| message(bytes, b"RSKZTDCEN123tnsIAVvGHWcd", is_on_port))
}

/// Matches the header of a `PostgreSQL` message whose type is one of `types`, on port 5432 only.
fn message(bytes: &[u8], types: &[u8], is_on_port: bool) -> Verdict {
    match bytes {
        [kind, ..] if is_on_port && types.contains(kind) => once(bytes, 5, || {
            u32_at(bytes, 1).is_some_and(|len| len >= 4 && (len as usize) < bytes.len().max(1400))
        }),
        _ => Verdict::No,
    }
}

fn mysql(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(3306);
    let greeting = |bytes: &[u8]| match bytes {
        [_, _, 0, 0, 10, rest @ ..] => {
            let len = u32_le_at(bytes, 0).unwrap_or_default() as usize;
            let version_len = rest.iter().position(|octet| *octet == 0);
            match version_len.and_then(|at| rest.get(..at)) {
                Some(version) => Verdict::of(
                    is_printable(version)
                        && version.first().is_some_and(u8::is_ascii_digit)
                        && len > version.len() + 13,
                ),
                None if rest.len() < 80 && (rest.is_empty() || is_printable(rest)) => Verdict::More,
                None => Verdict::No,
            }
        }
        // Too many connections, or host blocked: an error instead of the greeting.
        [_, _, 0, 0, 0xFF, _, 4, ..] => Verdict::of(is_on_port),
        [_, _, 0, 0, 0xFF, ..] if bytes.len() < 7 && is_on_port => Verdict::More,
        [_, _, 0, 0] | [_, _, 0] | [_, _] | [_] | [] => Verdict::More,
        _ => Verdict::No,
    };
    let command = |bytes: &[u8]| match bytes {
        // The first packet of an exchange: a command of one octet and its text.
        [_, _, _, 0, 1..=0x1F, ..] if is_on_port => {
            Verdict::of(u32_le_at(bytes, 0).is_some_and(|len| len as usize + 4 == bytes.len()))
        }
        _ => Verdict::No,
    };
    // The server sends first. If only the client has sent octets, they are checked only as a command.
    match (command(opening.client), opening.client.is_empty()) {
        (Verdict::No, true) => greeting(opening.server),
        (Verdict::No, false) => match greeting(opening.client) {
            Verdict::Match => Verdict::MatchReversed,
            _ => Verdict::No,
        },
        (verdict, _) => verdict,
    }
}

fn tds(opening: &StreamOpening<'_>) -> Verdict {
    let pre_login = |bytes: &[u8]| match bytes {
        // Type, status, length, channel, packet, window; then the version option, which comes first.
        [0x12, 0 | 1, _, _, 0, 0, _, 0, 0, 0, ..] => {
            Verdict::of(u16_at(bytes, 2).is_some_and(|len| (26..=4096).contains(&len)))
        }
        [0x12, 0 | 1, ..] | [0x12] | [] if bytes.len() < 10 => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, pre_login, |_| Verdict::No)
}

/// Maximum length of a `MongoDB` message in octets.
const MONGODB_LEN_MAX: usize = 48_000_000;

/// Maximum length in octets of the first `MongoDB` message of a flow on other ports than 27017. A client's first
/// message has some hundred octets.
const MONGODB_FIRST_LEN_MAX: usize = 16 << 10;

fn mongodb(opening: &StreamOpening<'_>) -> Verdict {
    let len_max = if opening.has_port(27017) { MONGODB_LEN_MAX } else { MONGODB_FIRST_LEN_MAX };
    dialogue(
        opening,
        |bytes| mongodb_message(bytes, Role::Client, len_max),
        |bytes| mongodb_message(bytes, Role::Server, len_max),
    )
}

/// Matches a message of the `MongoDB` wire protocol that `from` sent. The message header contains length, request
/// number, number of the request to which the message responds, and operation, each in little-endian order.
fn mongodb_message(bytes: &[u8], from: Role, len_max: usize) -> Verdict {
    let (Some(len), Some(answered), Some(operation)) =
        (u32_le_at(bytes, 0), u32_le_at(bytes, 8), u32_le_at(bytes, 12))
    else {
        return if matches!(bytes, [_, _, _, 0..=2, ..] | [_, _, _] | [_, _] | [_] | []) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let (len, body) = (len as usize, bytes.get(16..).unwrap_or_default());
    // Requests respond to nothing. Only operations of both directions need the number for the distinction.
    let is_request = from == Role::Client && answered == 0;
    let is_answer = from == Role::Server;
    let len_min = match operation {
        // OP_REPLY has 20 octets before its documents.
        1 if is_answer => 36,
        // OP_UPDATE, OP_INSERT, OP_QUERY, OP_GET_MORE, OP_DELETE, OP_KILL_CURSORS, OP_COMMAND.
        2001 | 2002 | 2004..=2007 | 2010 if is_request => 22,
        // OP_COMMANDREPLY.
        2011 if is_answer => 21,
        // OP_COMPRESSED, OP_MSG.
        2012 | 2013 if is_request || (is_answer && answered != 0) => 25,
        _ => return Verdict::No,
    };
    if !(len_min..=len_max).contains(&len) {
        return Verdict::No;
    }
    let is_document =
        |at| u32_le_at(body, at).is_some_and(|document| (5..=len as u32 - 16).contains(&document));
    let flags = u32_le_at(body, 0).unwrap_or_default();
    match operation {
        // At most four flags; a cursor and the number of the first document; the number of documents.
        1 => once(body, 20, || {
            let document_count = u32_le_at(body, 16).unwrap_or_default() as usize;
            flags < 16 && if document_count == 0 { len == 36 } else { len >= 36 + 5 * document_count }
        }),
        2004 => once(body, 5, || flags & !0xFE == 0 && is_namespace(body, 4)),
        2002 => once(body, 5, || flags <= 1 && is_namespace(body, 4)),
        2001 | 2005 | 2006 => once(body, 5, || flags == 0 && is_namespace(body, 4)),
        2007 => once(body, 8, || {
            let cursor_count = u32_le_at(body, 4).unwrap_or_default() as usize;
            flags == 0 && len == 24 + 8 * cursor_count
        }),
        2010 => once(body, 1, || is_namespace(body, 0)),
        2011 => once(body, 4, || is_document(0)),
        2012 => once(body, 9, || {
            let is_length = u32_le_at(body, 4).is_some_and(|len| len as usize <= MONGODB_LEN_MAX);
            matches!(flags, 1 | 2001..=2007 | 2010 | 2011 | 2013)
                && is_length
                && matches!(body.get(8), Some(0..=3))
        }),
        // Unknown flags among the lower 16 are invalid; two are known. Then a section: a document, or a named sequence
        // of them.
        _ => once(body, 9, || flags & 0xFFFC == 0 && matches!(body.get(4), Some(0 | 1)) && is_document(5)),
    }
}

/// Returns whether the text at offset `at` of `body` is the name of a `MongoDB` database or collection, or the
/// beginning of one.
fn is_namespace(body: &[u8], at: usize) -> bool {
    let text = body.get(at..).unwrap_or_default();
    let len = text.iter().position(|octet| *octet == 0).unwrap_or(text.len());
    len < 256 && is_printable(text.get(..len).unwrap_or_default())
}

fn cassandra(opening: &StreamOpening<'_>) -> Verdict {
    let first = |bytes: &[u8]| match bytes {
        // OPTIONS has no body; STARTUP has a string map with the CQL version.
        [3..=5, 0..=0x1F, 0, _, 5, 0, 0, 0, 0, ..] => Verdict::Match,
        [3..=5, 0..=0x1F, 0, _, 1, 0, 0, _, _, body @ ..] => once(body, 15, || {
            body.windows(11)
                .take(64)
                .any(|text| text == b"CQL_VERSION" || text == b"COMPRESSION" || text == b"DRIVER_NAME")
        }),
        [3..=5, 0..=0x1F, 0, ..] | [3..=5, 0..=0x1F] | [3..=5] | [] if bytes.len() < 9 => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, first, |_| Verdict::No)
}

fn memcached(opening: &StreamOpening<'_>) -> Verdict {
    if !opening.has_port(11211) {
        return Verdict::No;
    }
    let is_request = |bytes: &[u8]| match bytes {
        // A binary request, whose data type is zero.
        [0x80, ..] => once(bytes, 24, || matches!(bytes, [_, 0..=0x48, _, _, _, 0, ..])),
        _ => begins_with(
            bytes,
            &[
                b"get ",
                b"gets ",
                b"set ",
                b"add ",
                b"replace ",
                b"delete ",
                b"incr ",
                b"stats",
                b"version\r\n",
                b"mg ",
            ],
        ),
    };
    let answers = |bytes: &[u8]| match bytes {
        [0x81, ..] => once(bytes, 24, || matches!(bytes, [_, 0..=0x48, _, _, _, 0, ..])),
        _ => begins_with(bytes, &[b"VALUE ", b"STORED\r\n", b"END\r\n", b"STAT ", b"VERSION ", b"ERROR\r\n"]),
    };
    dialogue(opening, is_request, answers)
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, server, with};
    use super::{CASSANDRA, MEMCACHED, MONGODB, MYSQL, POSTGRESQL, REDIS, TDS};

    const GREETING: &[u8] = b"\x4A\x00\x00\x00\x0A8.0.36\x00\x0B\x00\x00\x00abcdefgh\x00\xFF\xF7";
    /// `MongoDB` OP_MSG of 26 octets: request number 7, not a response; no flags; one section, an empty document.
    const HELLO: &[u8; 26] = b"\x1A\0\0\0\x07\0\0\0\0\0\0\0\xDD\x07\0\0\0\0\0\0\0\x05\0\0\0\0";

    /// `MongoDB` OP_QUERY for `admin.$cmd`: `{ ismaster: 1 }`.
    const IS_MASTER: &[u8] =
        b"\x3A\0\0\0\x01\0\0\0\0\0\0\0\xD4\x07\0\0\0\0\0\0admin.$cmd\0\0\0\0\0\xFF\xFF\xFF\xFF\
        \x13\0\0\0\x10ismaster\0\x01\0\0\0\0";

    /// `MongoDB` OP_REPLY of minimum length: no documents.
    const REPLY: &[u8; 36] =
        b"\x24\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    /// The first 36 octets of a PPTP Start-Control-Connection-Request (RFC 2637 section 2.1).
    const PPTP_START: &[u8; 36] =
        b"\0\x9C\0\x01\x1A\x2B\x3C\x4D\0\x01\0\0\x01\0\0\0\0\0\0\x03\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0";

    /// A message of the Skinny protocol, whose header has a length, a version and a message type: SetSpeakerMode, on.
    const SKINNY_ANNOUNCEMENT: &[u8; 16] = b"\x08\0\0\0\0\0\0\0\x88\0\0\0\x01\0\0\0";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&REDIS, 7000, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"),
        client(&REDIS, 6379, b"PING\r\n"),
        server(&REDIS, 6379, b"+PONG\r\n"),
        client(&POSTGRESQL, 5432, b"\0\0\0\x08\x04\xD2\x16\x2F"),
        client(&POSTGRESQL, 6543, b"\0\0\0\x13\0\x03\0\0user\0nemo\0\0"),
        client(&POSTGRESQL, 5432, b"Q\0\0\0\x0Dselect 1\0"),
        server(&MYSQL, 3307, GREETING),
        server(&MYSQL, 3306, b"\x10\x00\x00\x00\xFF\x10\x04Too many conn"),
        client(&TDS, 1433, b"\x12\x01\x00\x2F\x00\x00\x00\x00\x00\x00\x1A\x00\x06"),
        client(&MONGODB, 27_017, HELLO),
        client(&MONGODB, 40_000, IS_MASTER),
        server(&MONGODB, 27_017, REPLY),
        server(&MONGODB, 40_000, const { &with(*HELLO, 8, 1) }),
        client(&CASSANDRA, 9042, b"\x04\x00\x00\x00\x05\x00\x00\x00\x00"),
        client(
            &CASSANDRA,
            9042,
            b"\x05\x00\x00\x01\x01\x00\x00\x00\x16\x00\x01\x00\x0BCQL_VERSION\x00\x053.0.0",
        ),
        client(&MEMCACHED, 11_211, b"get some_key\r\n"),
        server(&MEMCACHED, 11_211, b"VERSION 1.6.9\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&REDIS, 7000, b"* OK ready\r\n"),
        server(&REDIS, 110, b"+OK\r\n"),
        client(&POSTGRESQL, 5432, b"\0\0\0\x55\xFFSMB\x72"),
        client(&POSTGRESQL, 5432, b"\0\0\0\x09\x04\xD2\x16\x2F"),
        server(&MYSQL, 3306, b"\x4A\x00\x00\x01\x0A8.0.36\x00"),
        server(&MYSQL, 3307, b"\x4A\x00\x00\x00\x0Ax8.0.36\x00"),
        client(&TDS, 1433, b"\x12\x01\x00\x2F\x00\x01\x00\x00\x00\x00\x1A\x00\x06"),
        client(&MONGODB, 27_017, const { &with(*HELLO, 13, 8) }),
        // Below the minimum length; an unknown required flag; a section of unknown kind; a document longer than the
        // message.
        client(&MONGODB, 27_017, const { &with(*HELLO, 0, 24) }),
        client(&MONGODB, 27_017, const { &with(*HELLO, 16, 4) }),
        client(&MONGODB, 27_017, const { &with(*HELLO, 20, 2) }),
        client(&MONGODB, 27_017, const { &with(*HELLO, 21, 26) }),
        // A first message of 16 MB.
        client(&MONGODB, 40_000, const { &with(*HELLO, 3, 1) }),
        // Only servers send a reply; its length matches its number of documents.
        server(&MONGODB, 27_017, const { &with(*REPLY, 0, 16) }),
        server(&MONGODB, 27_017, const { &with(*REPLY, 32, 1) }),
        client(&MONGODB, 1723, PPTP_START),
        server(&MONGODB, 1723, PPTP_START),
        client(&MONGODB, 2000, SKINNY_ANNOUNCEMENT),
        server(&MONGODB, 2000, SKINNY_ANNOUNCEMENT),
        client(&CASSANDRA, 9042, b"\x04\x01\x00\x50\x0A\x00\x00\x01\x00"),
        client(&MEMCACHED, 80, b"get some_key\r\n"),
    ];
}
