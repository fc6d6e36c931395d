//! Recognition of HTTP/2 by the client's preface, or by the server's first SETTINGS frame.

use super::frame::{ACK, Frame, HEADER_LEN, PREFACE, SETTINGS, WINDOW_UPDATE, settings};
use crate::session::{StreamOpening, Verdict};

/// Number of octets of the client's preface with which no other protocol begins. The number is small, because a stream
/// that arrives octet by octet is probed only a few times; for the same reason, the first setting of a SETTINGS frame
/// suffices.
const PREFACE_LEN_ENOUGH: usize = 14;

/// Maximum number of settings in a server's first SETTINGS frame that is recognized; implementations send up to eight.
const SETTING_COUNT_MAX: usize = 16;

/// Classification of the first octets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Nothing,
    Preface,
    Settings,
    Unlike,
    Undecided,
}

/// Recognizes HTTP/2 by the preface or a first SETTINGS frame at the start of a direction.
pub(super) fn probe(opening: &StreamOpening<'_>) -> Verdict {
    match (looks(opening.client), looks(opening.server)) {
        (Looks::Preface, _) => Verdict::Match,
        (_, Looks::Preface) => Verdict::MatchReversed,
        (Looks::Unlike, _) | (_, Looks::Unlike) => Verdict::No,
        (_, Looks::Settings) => Verdict::Match,
        (Looks::Settings, _) => Verdict::MatchReversed,
        (Looks::Nothing | Looks::Undecided, Looks::Nothing | Looks::Undecided) => Verdict::More,
    }
}

fn looks(bytes: &[u8]) -> Looks {
    if bytes.is_empty() {
        return Looks::Nothing;
    }
    match (preface(bytes), first_settings(bytes)) {
        (Some(true), _) => Looks::Preface,
        (None, _) if bytes.len() >= PREFACE_LEN_ENOUGH => Looks::Preface,
        (_, Some(true)) => Looks::Settings,
        (Some(false), Some(false)) => Looks::Unlike,
        _ => Looks::Undecided,
    }
}

/// Returns whether `bytes` begin with the client's preface; `None` if there are too few octets.
pub(super) fn preface(bytes: &[u8]) -> Option<bool> {
    let len = bytes.len().min(PREFACE.len());
    match bytes.get(..len) == PREFACE.get(..len) {
        false => Some(false),
        true if len == PREFACE.len() => Some(true),
        true => None,
    }
}

/// Returns whether `bytes` begin with a SETTINGS frame of known settings, or with an empty one that is followed by
/// another frame of the connection; `None` if there are too few octets.
fn first_settings(bytes: &[u8]) -> Option<bool> {
    // Two octets of the length are zero; type, flags and stream follow.
    let is_begun = bytes.iter().zip([0, 0]).all(|(octet, wanted)| *octet == wanted)
        && bytes
            .get(3..)
            .unwrap_or_default()
            .iter()
            .zip([SETTINGS, 0, 0, 0, 0, 0])
            .all(|(octet, wanted)| *octet == wanted)
        && bytes.get(2).is_none_or(|len| len % 6 == 0 && usize::from(*len) <= 6 * SETTING_COUNT_MAX);
    if !is_begun {
        return Some(false);
    }
    let frame = Frame::read(bytes)?;
    let rest = bytes.get(HEADER_LEN..)?;
    if frame.len == 0 {
        let next = Frame::read(rest)?;
        let is_ack = next.kind == SETTINGS && next.flags == ACK;
        return Some(next.stream == 0 && next.is_sound() && (is_ack || next.kind == WINDOW_UPDATE));
    }
    let payload = rest.get(..frame.len.min(rest.len()))?;
    if payload.len() < 6 {
        return None;
    }
    Some(settings(payload).all(|(id, value)| match id {
        2 | 8 | 9 => value <= 1,
        4 => value <= 0x7FFF_FFFF,
        5 => (0x4000..=0xFF_FFFF).contains(&value),
        // Other values are reserved for variation, as 0x?A?A (RFC 8701 for TLS; settings likewise).
        1 | 3 | 6 => true,
        _ => id & 0x0F0F == 0x0A0A,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(client: &[u8], server: &[u8]) -> Verdict {
        probe(&StreamOpening::new(client, server, 40_000, 80))
    }

    const SERVER: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];

    #[test]
    fn prefaces_match() {
        assert_eq!(verdict(PREFACE, b""), Verdict::Match);
        assert_eq!(verdict(b"", PREFACE), Verdict::MatchReversed);
        assert_eq!(verdict(b"", SERVER), Verdict::Match);
        assert_eq!(verdict(SERVER, b""), Verdict::MatchReversed);
        assert_eq!(verdict(b"PRI * ", SERVER), Verdict::Match);
        for len in 1..PREFACE_LEN_ENOUGH {
            assert_eq!(verdict(&PREFACE[..len], b""), Verdict::More, "{len}");
        }
        for len in 1..SERVER.len() {
            assert_eq!(verdict(b"", &SERVER[..len]), Verdict::More, "{len}");
        }
        let empty: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
        assert_eq!(verdict(b"", empty), Verdict::More);
        assert_eq!(verdict(b"", &[empty, &[0, 0, 0, 4, 1, 0, 0, 0, 0]].concat()), Verdict::Match);
        assert_eq!(verdict(b"", &[empty, &[0; 9]].concat()), Verdict::No);
    }

    #[test]
    fn other_octets_do_not_match() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PRI * HTTP/1.1",
            b"\x16\x03\x01",
            b"SSH-2.0-x",
            &[0, 0, 0, 5, 1, 2],
            &[0; 40],
        ] {
            assert_eq!(verdict(bytes, b""), Verdict::No, "{bytes:?}");
            assert_eq!(verdict(b"", bytes), Verdict::No, "{bytes:?}");
            assert_eq!(verdict(bytes, SERVER), Verdict::No, "{bytes:?}");
        }
    }
}
