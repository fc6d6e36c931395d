//! Recognition of TLS and DTLS.

use memchr::memchr;

use super::datagram::Record;
use super::fragments::Fragment;
use super::handshake::{CLIENT_HELLO, HELLO_VERIFY_REQUEST, SERVER_HELLO, is_kind, sender};
use super::message::{Alert, Ssl2ClientHello};
use super::stream::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, RECORD_HEADER_LEN, record_header,
};
use crate::codec::Reader;
use crate::session::{DatagramOpening, Role, Search, StreamOpening, Verdict};

/// Minimum length in octets of a record that contains a hello with all mandatory fields.
const HELLO_LEN_MIN: u16 = 42;
/// Maximum length in octets of a record in the clear.
const PLAIN_LEN_MAX: u16 = 1 << 14;

/// Minimum length in octets of an encrypted record: one octet of content, and 16 of its tag or hash.
const ENCRYPTED_LEN_MIN: usize = 17;

/// Classification of the first octets of a direction: whether they resemble TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    /// The octets resemble TLS, sent by this side if they identify their sender.
    Like(Option<Role>),
    /// There are too few octets to decide.
    Short,
    /// The octets are not TLS.
    Unlike,
}

/// Recognizes TLS in a stream. The client's octets are checked first, and the first side with enough octets decides.
pub(super) fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    let mut is_short = false;
    for (bytes, role) in [(opening.client, Role::Client), (opening.server, Role::Server)] {
        match looks(bytes) {
            Looks::Like(Some(sender)) if sender != role => return Verdict::MatchReversed,
            Looks::Like(_) => return Verdict::Match,
            Looks::Short => is_short = true,
            // A side that sends another protocol is not a TLS peer. The exception, TLS after another protocol, is
            // started by that protocol.
            Looks::Unlike => return Verdict::No,
        }
    }
    if is_short { Verdict::More } else { Verdict::No }
}

fn looks(bytes: &[u8]) -> Looks {
    match bytes {
        [] => return Looks::Short,
        [0x80..=0xff, ..] => return looks_ssl2(bytes),
        // Before the header is complete: type, then version.
        [kind, ..] if !(CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(kind) => return Looks::Unlike,
        [_, major, ..] if *major != 3 => return Looks::Unlike,
        [_, _, minor, ..] if *minor > 4 => return Looks::Unlike,
        _ => {}
    }
    let (kind, len) = match record_header(bytes) {
        None => return Looks::Short,
        Some(Err(_)) => return Looks::Unlike,
        Some(Ok(header)) => header,
    };
    let after = bytes.get(RECORD_HEADER_LEN..).unwrap_or_default();
    let content = after.get(..len).unwrap_or(after);
    let is_complete = content.len() == len;
    match kind {
        HANDSHAKE => looks_handshake(content, len),
        // In the clear, or encrypted, which does not identify its sender either.
        ALERT if len == 2 && is_complete => like(Alert::parse(content).is_some()),
        ALERT if len == 2 => Looks::Short,
        ALERT => like(len >= ENCRYPTED_LEN_MIN),
        CHANGE_CIPHER_SPEC if content.is_empty() && len == 1 => Looks::Short,
        CHANGE_CIPHER_SPEC => like(len == 1 && content == [1]),
        _ => like(len >= ENCRYPTED_LEN_MIN),
    }
}

const fn like(is_like: bool) -> Looks {
    if is_like { Looks::Like(None) } else { Looks::Unlike }
}

/// Classifies the received part of a handshake record of `record_len` octets. A hello has a version at a known offset;
/// other messages, with which a capture may start, have a plausible length.
fn looks_handshake(content: &[u8], record_len: usize) -> Looks {
    let Some(&kind) = content.first() else {
        return if record_len > 0 { Looks::Short } else { Looks::Unlike };
    };
    if !is_kind(kind) {
        // Finished is encrypted and may start with any octet; so may everything after ChangeCipherSpec.
        return Looks::Unlike;
    }
    // A record of a few octets is part of a message that was split into many.
    let need = record_len.min(6);
    let Some(head) = content.get(..need) else { return Looks::Short };
    let is_message = match (kind, head) {
        (CLIENT_HELLO | SERVER_HELLO, [_, high, _, _, major, _]) => {
            *high == 0 && matches!(major, 2 | 3 | 0x7f)
        }
        (_, [_, high, ..]) => *high == 0,
        _ => true,
    };
    if is_message { Looks::Like(sender(kind)) } else { Looks::Unlike }
}

/// Searches the octets of a side for a hello after octets of another protocol. Other TLS records are too similar to
/// arbitrary data.
pub(super) fn search(from: Role, bytes: &[u8]) -> Search {
    let hello = if from == Role::Client { CLIENT_HELLO } else { SERVER_HELLO };
    let mut start = 0;
    while let Some(place) = bytes.get(start..).and_then(|rest| memchr(HANDSHAKE, rest)) {
        start += place;
        match bytes.get(start..start + 11) {
            // Type, version and length of the record; type and length of the message, and its version.
            Some([_, 3, 0..=4, high, low, kind, 0, _, _, 3, 0..=4])
                if *kind == hello
                    && (HELLO_LEN_MIN..=PLAIN_LEN_MAX).contains(&u16::from_be_bytes([*high, *low])) =>
            {
                return Search::Found(start);
            }
            Some(_) => start += 1,
            None => return Search::From(start),
        }
    }
    Search::From(bytes.len())
}

fn looks_ssl2(bytes: &[u8]) -> Looks {
    match bytes {
        [_, _, kind, ..] if *kind != CLIENT_HELLO => Looks::Unlike,
        [_, _, _, major, ..] if !matches!(major, 0 | 3) => Looks::Unlike,
        _ if bytes.len() < Ssl2ClientHello::HEAD_LEN => Looks::Short,
        _ if Ssl2ClientHello::record_len(bytes).is_some() => Looks::Like(Some(Role::Client)),
        _ => Looks::Unlike,
    }
}

/// Recognizes DTLS in a datagram by a record that fits the datagram: either a handshake record with a fragment that
/// fits the record, or an encrypted record that is the last one or is followed by another.
pub(super) fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    // WebRTC first sends STUN on the same ports (RFC 7983).
    if is_stun(opening.bytes) {
        return Verdict::More;
    }
    let mut reader = Reader::new(opening.bytes);
    let Some(record) = Record::read(&mut reader) else { return Verdict::No };
    let is_followed = reader.remaining_len() == 0 || Record::read(&mut reader).is_some();
    let is_dtls = match record.kind {
        HANDSHAKE if record.epoch == 0 => {
            let Some(fragment) = Fragment::read(&mut Reader::new(record.content)) else { return Verdict::No };
            let from = sender(fragment.kind);
            let is_hello = matches!(fragment.kind, CLIENT_HELLO | SERVER_HELLO | HELLO_VERIFY_REQUEST);
            if is_hello && from != Some(opening.from) {
                return Verdict::MatchReversed;
            }
            true
        }
        ALERT if record.epoch == 0 => Alert::parse(record.content).is_some(),
        CHANGE_CIPHER_SPEC => record.content == [1],
        _ => record.epoch > 0 && record.content.len() >= ENCRYPTED_LEN_MIN,
    };
    Verdict::of(is_dtls && is_followed)
}

/// Returns whether a datagram has the magic cookie of STUN (RFC 8489 section 5).
fn is_stun(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| *first < 4) && bytes.get(4..8) == Some(&[0x21, 0x12, 0xa4, 0x42])
}
