//! Files shared among peers: `BitTorrent`.

use super::octets::{begins_with, either, u16_at, u32_at};
use crate::session::{DatagramOpening, Protocol, StreamOpening, Verdict};

/// `BitTorrent`: the handshake of the peer protocol over TCP; over UDP the queries of the DHT (BEP 5), a tracker's connection (BEP
/// 15), local discovery (BEP 14), and uTP (BEP 29), which takes two datagrams to tell.
pub static BITTORRENT: Protocol = Protocol::new("bittorrent")
    .over_streams(&[6881, 6882, 6883, 6884, 6885, 6886, 6887, 6888, 6889], Some(stream))
    .over_datagrams(&[6881], Some(datagram));

const HANDSHAKE: &[u8] = b"\x13BitTorrent protocol";

/// What a client says to a tracker before it has a connection.
const TRACKER: &[u8] = b"\x00\x00\x04\x17\x27\x10\x19\x80\x00\x00\x00\x00";

fn stream(opening: &StreamOpening<'_>) -> Verdict {
    either(opening, |bytes| {
        begins_with(bytes, &[HANDSHAKE, b"GET /announce?info_hash=", b"GET /scrape?info_hash="])
    })
}

fn datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let bytes = opening.bytes;
    match bytes {
        [b'd', ..] => Verdict::of(is_dht(bytes)),
        [0, ..] => Verdict::of(opening.len >= 16 && bytes.starts_with(TRACKER)),
        [b'B', ..] => Verdict::of(bytes.starts_with(b"BT-SEARCH * HTTP/1.")),
        _ => utp(opening),
    }
}

/// Whether a dictionary has the arguments, the answer or the error of a query as its first key, or the address before.
fn is_dht(bytes: &[u8]) -> bool {
    let firsts: &[&[u8]] =
        &[b"d1:ad2:id20:", b"d1:rd2:id20:", b"d1:eli20", b"d2:ip6:", b"d2:ip18:", b"d1:q4:ping"];
    begins_with(bytes, firsts) == Verdict::Match
}

/// The connection of a uTP header, and whether it opens one.
fn utp_header(bytes: &[u8]) -> Option<(u16, bool)> {
    // Type and version, then the first extension: none, selective acknowledgment, or bits.
    let [first @ (0x01 | 0x11 | 0x21 | 0x31 | 0x41), 0..=2, ..] = bytes else { return None };
    // A time of zero is not sent: it is microseconds.
    let is_sound = bytes.len() >= 20 && u32_at(bytes, 4) != Some(0);
    u16_at(bytes, 2).filter(|_| is_sound).map(|connection| (connection, *first == 0x41))
}

fn utp(opening: &DatagramOpening<'_>) -> Verdict {
    let Some((connection, is_opening)) = utp_header(opening.bytes) else { return Verdict::No };
    if opening.bytes.get(20..).is_some_and(|data| data.starts_with(HANDSHAKE)) {
        return Verdict::Match;
    }
    // One side's connection is the other side's and one.
    let fits = |other: Option<(u16, bool)>| {
        other.is_some_and(|(other, _)| matches!(connection.wrapping_sub(other), 0 | 1 | u16::MAX))
    };
    if fits(utp_header(opening.answered)) || (!is_opening && fits(utp_header(opening.previous))) {
        return Verdict::Match;
    }
    let is_first = opening.answered.is_empty() && (opening.previous.is_empty() || is_opening);
    if is_first { Verdict::More } else { Verdict::No }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram};
    use super::BITTORRENT;

    const SYN: &[u8] = b"\x41\x00\x12\x34\x00\x00\x10\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00";
    const STATE: &[u8] = b"\x21\x00\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01";
    const OTHER: &[u8] = b"\x21\x00\x43\x21\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&BITTORRENT, 51_413, b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05"),
        datagram(&BITTORRENT, 6881, b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe"),
        datagram(&BITTORRENT, 80, b"\x00\x00\x04\x17\x27\x10\x19\x80\x00\x00\x00\x00abcd"),
        datagram(&BITTORRENT, 6771, b"BT-SEARCH * HTTP/1.1\r\n"),
        datagram(&BITTORRENT, 51_413, STATE).answered(SYN),
        datagram(&BITTORRENT, 51_413, STATE).after(STATE),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&BITTORRENT, 6881, b"\x13BitTorrent Protocol"),
        datagram(&BITTORRENT, 6881, b"d3:foo3:bare"),
        datagram(&BITTORRENT, 80, b"\x00\x00\x04\x17\x27\x10\x19\x80\x00\x00\x00\x02abcd"),
        datagram(&BITTORRENT, 51_413, STATE).answered(OTHER),
        datagram(&BITTORRENT, 53, b"\x01\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a"),
    ];
}
