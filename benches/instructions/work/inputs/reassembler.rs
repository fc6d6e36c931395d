//! Stream reassembly: small segments partly out of order, and segments that cause work for held segments.

use flowgauge::base::{Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};

use super::feed::INPUT_LEN;

/// Length of Ethernet, IPv4 and TCP headers.
const HEADERS_LEN: usize = 54;

/// A sequence number and a length.
type Piece = (u32, usize);

/// A stream, and segments to be reassembled.
pub(crate) struct Reassembly {
    reassembler: Reassembler<u32>,
    stream: Stream,
    pieces: Vec<Piece>,
    payload: Vec<u8>,
    event_count: u64,
}

/// Creates the segments of an input. The last segment has the remaining length.
fn filled(mut make: impl FnMut(u32) -> Piece) -> Vec<Piece> {
    let (mut pieces, mut len) = (Vec::new(), 0);
    for number in 0.. {
        let (seq, piece_len) = make(number);
        let room = INPUT_LEN - len - HEADERS_LEN;
        let piece_len = if piece_len + HEADERS_LEN >= room { room } else { piece_len };
        pieces.push((seq, piece_len));
        len += HEADERS_LEN + piece_len;
        if len == INPUT_LEN {
            break;
        }
    }
    pieces
}

pub(crate) fn prepared(make: fn() -> Vec<Piece>) -> Reassembly {
    let pieces = make();
    let input_len: usize = pieces.iter().map(|(_, len)| HEADERS_LEN + len).sum();
    assert_eq!(input_len, INPUT_LEN, "the input does not have INPUT_LEN octets");
    let mut reassembler =
        Reassembler::new(ReassemblerConfig::default(), &Resources::default()).expect("a valid configuration");
    let mut stream = Stream::default();
    let syn = Segment::new(SeqNum(u32::MAX), TcpFlags::SYN, &[], Timestamp::ZERO);
    reassembler.segment(&mut stream, 0, &syn, |_| {});
    let payload = (0..INPUT_LEN).map(|position| (position / 7) as u8).collect();
    Reassembly { reassembler, stream, pieces, payload, event_count: 0 }
}

pub(crate) fn checked(mut reassembly: Reassembly) {
    reassembly.reassembler.check_invariants();
    let mut octet_count = 0;
    reassembly.reassembler.finish(&mut reassembly.stream, |event| {
        if let StreamEvent::Chunk(chunk) = event {
            octet_count += chunk.bytes.len();
        }
    });
    assert!(reassembly.event_count > 0 || octet_count > 0);
}

impl Reassembly {
    pub(crate) fn reassemble(mut self) -> Self {
        for (seq, len) in &self.pieces {
            let segment = Segment::new(SeqNum(*seq), TcpFlags::ACK, &self.payload[..*len], Timestamp::ZERO);
            self.reassembler.segment(&mut self.stream, 0, &segment, |_| self.event_count += 1);
        }
        self
    }
}

/// Segments of 100 octets, with each two exchanged.
pub(crate) fn benign() -> Vec<Piece> {
    filled(|number| (100 * (number ^ 1), 100))
}

/// Single octets with holes between them, in order.
pub(crate) fn holes_forward() -> Vec<Piece> {
    filled(|number| (2 * number + 1, 1))
}

/// The same in reverse order.
pub(crate) fn holes_backward() -> Vec<Piece> {
    filled(|number| (100_001 - 2 * number, 1))
}

/// The same from the middle outward, alternately on both sides.
pub(crate) fn holes_outward() -> Vec<Piece> {
    filled(|number| (if number % 2 == 0 { 50_001 + 2 * number } else { 50_001 - 2 * number }, 1))
}

/// Segments that repeatedly overlap hundreds of pieces.
pub(crate) fn overlaps() -> Vec<Piece> {
    filled(|number| if number < 700 { (2 * number + 1, 1) } else { (1, 1400) })
}

/// The same with decreasing length, so that no segment equals the previous one.
pub(crate) fn shrinking_overlaps() -> Vec<Piece> {
    filled(|number| {
        if number < 700 { (2 * number + 1, 1) } else { (1 + number % 60, 1400 - 2 * (number as usize % 60)) }
    })
}

/// Octets that have already been delivered.
pub(crate) fn repetition() -> Vec<Piece> {
    filled(|number| if number == 0 { (0, 1400) } else { (number % 1000, 10) })
}

/// Sequence numbers beyond any window.
pub(crate) fn strays() -> Vec<Piece> {
    filled(|number| (number << 29 | number, 1))
}
