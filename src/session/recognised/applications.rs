//! Programs with a protocol of their own that announce themselves.

use super::octets::{begins_with, dialogue};
use crate::session::{DatagramOpening, Protocol, StreamOpening, Verdict};

/// Discovery in the LAN by Dropbox: JSON that begins with its host.
pub static DROPBOX: Protocol = Protocol::new("dropbox").over_datagrams(&[17500], Some(dropbox));

/// Discovery in the LAN by Spotify.
pub static SPOTIFY: Protocol = Protocol::new("spotify").over_datagrams(&[57621], Some(spotify));

/// WhatsApp: the first octets of its handshake.
pub static WHATSAPP: Protocol = Protocol::new("whatsapp").over_streams(&[], Some(whatsapp));

/// Google's QUIC from before the standard: a public header with a version that begins with Q.
pub static GQUIC: Protocol = Protocol::new("gquic").over_datagrams(&[], Some(gquic));

fn dropbox(opening: &DatagramOpening<'_>) -> Verdict {
    Verdict::of(
        begins_with(opening.bytes, &[b"{\"host_int\"", b"{\"version\": [", b"{\"displayname\""])
            == Verdict::Match,
    )
}

fn spotify(opening: &DatagramOpening<'_>) -> Verdict {
    Verdict::of(opening.bytes.starts_with(b"SpotUdp0"))
}

fn whatsapp(opening: &StreamOpening<'_>) -> Verdict {
    let first = |bytes: &[u8]| match bytes {
        [b'W', b'A', 1..=5, 0..=9, ..] => Verdict::Match,
        [] | [b'W'] | [b'W', b'A'] | [b'W', b'A', 1..=5] => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, first, |_| Verdict::No)
}

fn gquic(opening: &DatagramOpening<'_>) -> Verdict {
    let version = match opening.bytes {
        // The long header of QUIC, which the last versions had.
        [0xC0..=0xFF, version @ ..] => version,
        // A version and a connection of eight octets follow.
        [flags, _, _, _, _, _, _, _, _, version @ ..] if flags & 0x89 == 0x09 => version,
        _ => return Verdict::No,
    };
    Verdict::of(matches!(version, [b'Q', b'0', b'0'..=b'9', b'0'..=b'9', ..]))
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram};
    use super::{DROPBOX, GQUIC, SPOTIFY, WHATSAPP};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&DROPBOX, 17_500, b"{\"host_int\": 1, \"version\": [2, 0]}"),
        datagram(&SPOTIFY, 57_621, b"SpotUdp0abcdefgh"),
        client(&WHATSAPP, 443, b"WA\x02\x01\x00\x00\x14"),
        datagram(&GQUIC, 443, b"\x0Dconnect8Q043\x01"),
        datagram(&GQUIC, 443, b"\xC3Q046\x50connect8"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&DROPBOX, 17_500, b"{\"method\": \"ping\"}"),
        datagram(&SPOTIFY, 57_621, b"SpotTcp0abcdefgh"),
        client(&WHATSAPP, 443, b"WARNING\r\n"),
        datagram(&GQUIC, 443, b"\xC3\x00\x00\x00\x01\x08connect8"),
        datagram(&GQUIC, 443, b"\x0Cconnect8Q043\x01"),
    ];
}
