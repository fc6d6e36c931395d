//! Recognizers of protocols that a single application uses: Dropbox, Spotify, WhatsApp.

use super::octets::{begins_with, dialogue};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// Dropbox LAN discovery, recognized by JSON that starts with the key for the host, the version or the display name.
pub static DROPBOX: Protocol =
    Protocol::new("dropbox").over_datagrams(&[17500], Some(dropbox)).datagrams_begin_with(OctetSet::of(b"{"));

/// Spotify LAN discovery, recognized by the text `SpotUdp0` at the start.
pub static SPOTIFY: Protocol =
    Protocol::new("spotify").over_datagrams(&[57621], Some(spotify)).datagrams_begin_with(OctetSet::of(b"S"));

/// WhatsApp, recognized by the first octets of the client's handshake.
pub static WHATSAPP: Protocol =
    Protocol::new("whatsapp").over_streams(&[], Some(whatsapp)).streams_begin_with(OctetSet::of(b"W"));

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

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram};
    use super::{DROPBOX, SPOTIFY, WHATSAPP};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&DROPBOX, 17_500, b"{\"host_int\": 1, \"version\": [2, 0]}"),
        datagram(&SPOTIFY, 57_621, b"SpotUdp0abcdefgh"),
        client(&WHATSAPP, 443, b"WA\x02\x01\x00\x00\x14"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&DROPBOX, 17_500, b"{\"method\": \"ping\"}"),
        datagram(&SPOTIFY, 57_621, b"SpotTcp0abcdefgh"),
        client(&WHATSAPP, 443, b"WARNING\r\n"),
    ];
}
