//! Recognizer of peer-to-peer file sharing: `BitTorrent`.

use super::octets::{begins_with, either, u16_at, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// `BitTorrent`, recognized over TCP by the handshake of the peer protocol or a tracker request; over UDP by DHT
/// queries (BEP 5), tracker connections (BEP 15), local discovery (BEP 14), and uTP (BEP 29): two packets with
/// consistent identifiers and numbers and valid extensions.
pub static BITTORRENT: Protocol = Protocol::new("bittorrent")
    .over_streams(&[6881, 6882, 6883, 6884, 6885, 6886, 6887, 6888, 6889], Some(stream))
    .over_datagrams(&[6881], Some(datagram))
    .streams_begin_with(OctetSet::of(b"\x13G"))
    .datagrams_begin_with(OctetSet::of(b"\0dB\x01\x11\x21\x31\x41"));

const HANDSHAKE: &[u8] = b"\x13BitTorrent protocol";

/// Request of a client for a connection to a BitTorrent tracker over UDP (BEP 15): the protocol's magic number and
/// action 0.
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

/// Returns whether octets start like a BitTorrent DHT message (BEP 5): a dictionary whose first key contains the
/// arguments, the response or the error of a query, or an address before these.
fn is_dht(bytes: &[u8]) -> bool {
    let firsts: &[&[u8]] =
        &[b"d1:ad2:id20:", b"d1:rd2:id20:", b"d1:eli20", b"d2:ip6:", b"d2:ip18:", b"d1:q4:ping"];
    begins_with(bytes, firsts) == Verdict::Match
}

/// Maximum number of extensions of a uTP packet that are examined; three kinds exist.
const UTP_EXTENSION_COUNT_MAX: usize = 4;

/// Maximum difference between the sequence number of a uTP packet and the number that the other side acknowledges: the
/// window in packets of a fast connection.
const UTP_WINDOW: u16 = 2048;

/// Maximum difference of the sequence numbers of two uTP packets that are captured in succession from one side.
const UTP_STEP: u16 = 64;

/// Maximum time in microseconds between two uTP packets of one side. Idle connections send twice a minute.
const UTP_PAUSE: u32 = 60_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UtpKind {
    Data,
    Fin,
    State,
    Reset,
    Syn,
}

/// The header of a uTP packet (BEP 29).
#[derive(Clone, Copy, Debug)]
struct Utp {
    kind: UtpKind,
    connection: u16,
    /// Timestamp of the sender in microseconds, never zero.
    time: u32,
    sequence: u16,
    acknowledged: u16,
}

impl Utp {
    /// Parses the uTP header at the start of `bytes`.
    fn read(bytes: &[u8]) -> Option<Self> {
        let kind = match bytes.first()? {
            0x01 => UtpKind::Data,
            0x11 => UtpKind::Fin,
            0x21 => UtpKind::State,
            0x31 => UtpKind::Reset,
            0x41 => UtpKind::Syn,
            _ => return None,
        };
        Some(Self {
            kind,
            connection: u16_at(bytes, 2)?,
            // A timestamp of zero is not sent.
            time: u32_at(bytes, 4).filter(|time| *time != 0)?,
            sequence: u16_at(bytes, 16)?,
            acknowledged: u16_at(bytes, 18)?,
        })
    }

    /// Returns whether the uTP packet responds to `other`, a packet that the other side sent shortly before.
    fn answers(self, other: Self) -> bool {
        let is_same = self.connection == other.connection;
        // The initiator uses the identifier of its SYN, and one more from then on; the acceptor uses that of the SYN.
        let is_paired = matches!(self.connection.wrapping_sub(other.connection), 1 | u16::MAX);
        let is_acknowledged = other.sequence.wrapping_sub(self.acknowledged) <= UTP_WINDOW;
        match (self.kind, other.kind) {
            (UtpKind::Syn, UtpKind::Syn) | (_, UtpKind::Reset) => false,
            (_, UtpKind::Syn) => is_same && self.acknowledged == other.sequence,
            // The SYN is retransmitted, because its response is late or lost.
            (UtpKind::Syn, _) => is_same && other.acknowledged == self.sequence,
            // From an endpoint that does not know the connection.
            (UtpKind::Reset, _) => (is_same || is_paired) && is_acknowledged,
            _ => is_paired && is_acknowledged,
        }
    }

    /// Returns whether the uTP packet follows `before`, a packet of the same side: timestamp and counters have
    /// advanced.
    fn follows(self, before: Self) -> bool {
        let is_later = (1..=UTP_PAUSE).contains(&self.time.wrapping_sub(before.time));
        let sent = self.sequence.wrapping_sub(before.sequence);
        let acknowledged = self.acknowledged.wrapping_sub(before.acknowledged);
        let is_step = match (before.kind, self.kind) {
            (UtpKind::Syn, UtpKind::Data | UtpKind::State) => sent == 1,
            (UtpKind::Data, UtpKind::Data | UtpKind::Fin) => {
                (1..=UTP_STEP).contains(&sent) && acknowledged <= UTP_STEP
            }
            // An acknowledgment has its own number, which the next data packet uses.
            (UtpKind::State, UtpKind::State) => sent == 0 && (1..=UTP_STEP).contains(&acknowledged),
            _ => false,
        };
        let opened = u16::from(before.kind == UtpKind::Syn);
        is_later && is_step && self.connection == before.connection.wrapping_add(opened)
    }

    /// Returns whether the uTP packet repeats `before`, a packet of the same side. A repetition is no evidence for uTP.
    fn repeats(self, before: Self) -> bool {
        (self.kind, self.connection, self.sequence) == (before.kind, before.connection, before.sequence)
    }
}

/// Returns the length in octets of the uTP header and its extensions; `None` if an extension is unknown, or they exceed
/// the packet length `len`.
fn utp_header_len(bytes: &[u8], len: usize) -> Option<usize> {
    let (mut kind, mut at) = (*bytes.get(1)?, 20);
    // Each extension starts with the type of the next one and a length.
    for _ in 0..UTP_EXTENSION_COUNT_MAX {
        let extension_len = match (kind, bytes.get(at + 1)) {
            (0, _) => return (at <= len).then_some(at),
            // Bit mask of packets received out of order, in words of 32 bits; two kinds of later additions.
            (1, Some(octets)) if *octets >= 4 && octets % 4 == 0 => *octets,
            (2, Some(8)) => 8,
            (3, Some(4)) => 4,
            _ => return None,
        };
        kind = *bytes.get(at)?;
        at += 2 + usize::from(extension_len);
    }
    None
}

fn utp(opening: &DatagramOpening<'_>) -> Verdict {
    let Some(packet) = Utp::read(opening.bytes) else { return Verdict::No };
    let Some(header_len) = utp_header_len(opening.bytes, opening.len) else { return Verdict::No };
    // Only data packets have a payload, and they always do.
    if (packet.kind == UtpKind::Data) != (opening.len > header_len) {
        return Verdict::No;
    }
    if opening.bytes.get(header_len..).is_some_and(|data| data.starts_with(HANDSHAKE)) {
        return Verdict::Match;
    }
    let (before, other) = (Utp::read(opening.previous), Utp::read(opening.answered));
    match (opening.previous.is_empty(), opening.answered.is_empty()) {
        (true, true) => Verdict::More,
        (_, false) => Verdict::of(other.is_some_and(|other| packet.answers(other))),
        // Only one side has sent.
        (false, true) => match before {
            Some(before) if packet.follows(before) => Verdict::Match,
            Some(before) if packet.repeats(before) => Verdict::More,
            _ => Verdict::No,
        },
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram, with};
    use super::BITTORRENT;

    const SYN: &[u8; 20] =
        b"\x41\x00\x12\x34\x00\x00\x10\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00";
    const STATE: &[u8; 20] =
        b"\x21\x00\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01";
    const DATA: &[u8; 21] =
        b"\x01\x00\x12\x35\x00\x00\x30\x00\x00\x00\x10\x00\x00\x10\x00\x00\x00\x02\x77\x76a";

    /// The next uTP packet after `DATA` from the same side: 256 microseconds later, with the next sequence number.
    const DATA_2: &[u8; 21] = &with(with(*DATA, 6, 0x31), 17, 3);
    const STATE_2: &[u8; 20] = &with(with(*STATE, 6, 0x31), 19, 2);

    /// A uTP packet with extensions before its data: selective acknowledgment of 32 packets, then a mask of supported
    /// extensions.
    const EXTENDED: &[u8] =
        b"\x21\x01\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01\
        \x02\x04\x01\x00\x00\x00\x00\x08\0\0\0\0\0\0\0\0";

    /// A uTP packet whose extension has an invalid length, which is not a multiple of four.
    const ODD: &[u8] =
        b"\x21\x01\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01\x00\x03\x01\0\0";
    /// A uTP packet whose last extension announces another one, so that the chain does not end.
    const UNENDED: &[u8] =
        b"\x21\x01\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01\x01\x04\x01\0\0\0";
    /// A uTP packet with an extension of an unknown type.
    const UNKNOWN: &[u8] =
        b"\x21\x09\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01\x00\x04\x01\0\0\0";
    /// A uTP packet in whose extension one octet is missing.
    const SHORT: &[u8] =
        b"\x21\x01\x12\x34\x00\x00\x20\x00\x00\x00\x10\x00\x00\x10\x00\x00\x77\x77\x00\x01\x00\x04\x01\0\0";

    /// A made-up message of another program, which resembles uTP: a type, a channel of two octets, a clock, and a
    /// payload.
    const GAME_1: &[u8] = b"\x01\x00\x00\x07\x00\x01\x86\xA0position of a player, and so on";
    const GAME_2: &[u8] = b"\x01\x00\x00\x07\x00\x01\x86\xB4what it sees, and so on and on";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&BITTORRENT, 51_413, b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05"),
        datagram(&BITTORRENT, 6881, b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe"),
        datagram(&BITTORRENT, 80, b"\x00\x00\x04\x17\x27\x10\x19\x80\x00\x00\x00\x00abcd"),
        datagram(&BITTORRENT, 6771, b"BT-SEARCH * HTTP/1.1\r\n"),
        datagram(&BITTORRENT, 51_413, STATE).answered(SYN),
        datagram(&BITTORRENT, 51_413, EXTENDED).answered(SYN),
        datagram(&BITTORRENT, 51_413, DATA).answered(STATE),
        datagram(&BITTORRENT, 51_413, SYN).answered(STATE),
        // Only one side has sent.
        datagram(&BITTORRENT, 51_413, DATA).after(SYN),
        datagram(&BITTORRENT, 51_413, DATA_2).after(DATA),
        datagram(&BITTORRENT, 51_413, STATE_2).after(STATE),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&BITTORRENT, 6881, b"\x13BitTorrent Protocol"),
        datagram(&BITTORRENT, 6881, b"d3:foo3:bare"),
        datagram(&BITTORRENT, 80, b"\x00\x00\x04\x17\x27\x10\x19\x80\x00\x00\x00\x02abcd"),
        // Another connection; the same identifier in both directions; acknowledgment of a packet that was not sent.
        datagram(&BITTORRENT, 51_413, const { &with(*STATE, 3, 0x36) }).answered(SYN),
        datagram(&BITTORRENT, 51_413, const { &with(*STATE, 3, 0x35) }).answered(DATA),
        datagram(&BITTORRENT, 51_413, const { &with(*DATA, 18, 0x12) }).answered(STATE),
        datagram(&BITTORRENT, 51_413, const { &with(*STATE, 19, 2) }).answered(SYN),
        // A data packet without payload, and an acknowledgment with payload.
        datagram(&BITTORRENT, 51_413, const { &with(*STATE, 0, 0x01) }).answered(SYN),
        datagram(&BITTORRENT, 51_413, const { &with(*DATA, 0, 0x21) }).answered(STATE),
        datagram(&BITTORRENT, 51_413, ODD).answered(SYN),
        datagram(&BITTORRENT, 51_413, UNENDED).answered(SYN),
        datagram(&BITTORRENT, 51_413, UNKNOWN).answered(SYN),
        datagram(&BITTORRENT, 51_413, SHORT).answered(SYN),
        // Only the identifier matches: no counter or no timestamp advances.
        datagram(&BITTORRENT, 51_413, const { &with(*DATA_2, 15, 1) }).after(STATE),
        datagram(&BITTORRENT, 51_413, const { &with(*DATA_2, 17, 1) }).after(DATA),
        datagram(&BITTORRENT, 51_413, const { &with(*DATA_2, 6, 0x30) }).after(DATA),
        datagram(&BITTORRENT, 51_413, const { &with(*STATE_2, 19, 1) }).after(const { &with(*STATE, 16, 0) }),
        datagram(&BITTORRENT, 27_015, GAME_2).after(GAME_1),
        datagram(&BITTORRENT, 27_015, GAME_2).answered(GAME_1),
        datagram(&BITTORRENT, 53, b"\x01\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a"),
    ];
}
