//! Messages in the octets of a TCP connection, or in the chunks of an SCTP association.

use std::collections::VecDeque;
use std::time::Duration;

use flowgauge::Timestamp;

/// Length of a message in octets at most.
const MESSAGE_LEN_MAX: usize = 65_535;

/// Length of the headers of a message of IPFIX and of its first set in octets.
const IPFIX_HEADERS_LEN: usize = 20;

/// Length of the header of a message of NetFlow version 9.
const NETFLOW9_HEADER_LEN: usize = 20;

/// Deviation of the time of a message from the clock of the capture, up to which octets in the middle of a stream can be
/// its header.
const CLOCK_DEVIATION_MAX: Duration = Duration::from_secs(86_400);

/// Reads a number of two octets.
fn number(octets: &[u8], offset: usize) -> Option<u16> {
    octets.get(offset..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// Reads a number of four octets.
fn word(octets: &[u8], offset: usize) -> Option<u32> {
    octets.get(offset..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Length of the message with which octets begin.
enum MessageLen {
    Known(usize),
    /// More octets must arrive, or the stream must end. The first ones, of this number, need not be examined again.
    Unknown(usize),
    /// The first octets, of this number, are not the beginning of a message.
    None(usize),
}

impl MessageLen {
    /// Returns the length of the message with which octets begin, of which the first ones were examined before.
    fn of(octets: &[u8], examined_len: usize) -> Self {
        match (number(octets, 0), number(octets, 2)) {
            (Some(5), Some(count @ 1..=30)) => Self::Known(24 + 48 * usize::from(count)),
            (Some(9), Some(_)) => Self::netflow9(octets, examined_len),
            (Some(10), Some(len @ 16..)) => Self::Known(len.into()),
            (None | Some(5 | 9 | 10), None) => Self::Unknown(0),
            _ => Self::None(1),
        }
    }

    /// The header has no length: sets follow up to the version of another message, which is not the identifier of a set.
    fn netflow9(octets: &[u8], examined_len: usize) -> Self {
        let mut len = examined_len.max(NETFLOW9_HEADER_LEN);
        while len < MESSAGE_LEN_MAX {
            match (number(octets, len), number(octets, len + 2)) {
                (Some(5 | 9 | 10), _) => return Self::Known(len),
                (Some(0 | 1 | 256..), Some(set_len @ 4..)) => len += usize::from(set_len),
                (Some(0 | 1 | 256..) | None, None) => return Self::Unknown(len),
                _ => break,
            }
        }
        Self::None(len)
    }
}

/// Returns whether octets in the middle of a stream are the headers of a message and of its first set.
fn is_header(octets: &[u8], now: Timestamp) -> bool {
    let seconds = octets.get(if number(octets, 0) == Some(10) { 4.. } else { 8.. });
    let Some(seconds) = seconds.and_then(|octets| octets.first_chunk().copied()) else { return false };
    let time = Timestamp::from_parts(u32::from_be_bytes(seconds).into(), 0);
    let is_near = time.saturating_since(now) <= CLOCK_DEVIATION_MAX
        && now.saturating_since(time) <= CLOCK_DEVIATION_MAX;
    is_near
        && match number(octets, 0) {
            Some(10) => {
                let set_len = number(octets, 18).map(usize::from).unwrap_or_default();
                let len = number(octets, 2).map(usize::from).unwrap_or_default();
                matches!(number(octets, 16), Some(2 | 3 | 256..)) && set_len >= 4 && set_len + 16 <= len
            }
            Some(9) => matches!(number(octets, 2), Some(1..=1000)),
            Some(5) => matches!(number(octets, 2), Some(1..=30)),
            _ => false,
        }
}

/// Octets of a stream that are not a complete message yet.
#[derive(Debug, Default)]
pub(super) struct Framing {
    octets: Vec<u8>,
    position: Position,
}

/// State of the search for the end of a message.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// Number of octets of the message that were examined.
    examined_len: usize,
    /// The beginning of the next message is not known, after a gap or in a stream that began before the capture.
    is_lost: bool,
}

impl Position {
    /// Passes on the messages that are complete. Returns the number of octets that are not needed any more. Linear in the
    /// octets that were not examined.
    fn advance(&mut self, octets: &[u8], now: Timestamp, mut message: impl FnMut(&[u8])) -> usize {
        let mut consumed_len = 0;
        while let Some(rest) = octets.get(consumed_len..).filter(|rest| !rest.is_empty()) {
            if self.is_lost {
                let is_found = |at: &usize| is_header(rest.get(*at..).unwrap_or_default(), now);
                let searched_len = rest.len().saturating_sub(IPFIX_HEADERS_LEN - 1);
                let found = (0..searched_len).find(is_found);
                consumed_len += found.unwrap_or(searched_len);
                if found.is_none() {
                    break;
                }
                self.is_lost = false;
                continue;
            }
            let len = match MessageLen::of(rest, self.examined_len) {
                MessageLen::Known(len) => match rest.get(..len) {
                    Some(first) => {
                        message(first);
                        len
                    }
                    None => break,
                },
                MessageLen::Unknown(examined_len) => {
                    self.examined_len = examined_len;
                    break;
                }
                MessageLen::None(len) => {
                    self.is_lost = true;
                    len.min(rest.len())
                }
            };
            self.examined_len = 0;
            consumed_len += len;
        }
        consumed_len
    }
}

impl Framing {
    /// Adds octets, and passes on the messages that are complete. Keeps at most one message. Linear in the octets.
    pub(super) fn push(&mut self, octets: &[u8], now: Timestamp, message: impl FnMut(&[u8])) {
        if self.octets.is_empty() {
            let consumed_len = self.position.advance(octets, now, message);
            self.octets.extend_from_slice(octets.get(consumed_len..).unwrap_or_default());
        } else {
            self.octets.extend_from_slice(octets);
            let consumed_len = self.position.advance(&self.octets, now, message);
            self.octets.drain(..consumed_len);
        }
    }

    /// Discards an incomplete message, because octets are missing.
    pub(super) fn lose(&mut self) {
        *self = Self { octets: Vec::new(), position: Position { examined_len: 0, is_lost: true } };
    }

    /// Passes on the last message, which the end of the stream completes.
    pub(super) fn finish(&mut self, message: impl FnOnce(&[u8])) {
        let octets = std::mem::take(&mut self.octets);
        if number(&octets, 0) == Some(9) && octets.len() > NETFLOW9_HEADER_LEN && !self.position.is_lost {
            message(&octets);
        }
    }
}

/// Number of messages of an association that are put together at the same time.
const PARTIAL_COUNT_MAX: usize = 4;

/// Number of the latest chunks that are remembered, because they may be sent again.
const RECENT_COUNT: usize = 256;

/// Number of the first chunks of an association, of which one shows that it was established.
const FIRST_COUNT: u32 = 1024;

/// What the packets of an association contain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'p> {
    /// The first octets of a new association between the same ports.
    Beginning,
    /// A message.
    Message(&'p [u8]),
}

/// One direction of an SCTP association.
#[derive(Debug, Default)]
pub(super) struct Association {
    /// Transmission sequence number of the first chunk of a new association, until it or one of the next is received. A
    /// retransmitted or forged INIT chunk alone ends nothing.
    initial: Option<u32>,
    /// Transmission sequence numbers of the latest chunks.
    recent: VecDeque<u32>,
    partial: VecDeque<Partial>,
}

/// Identifies a message of which fragments are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageId {
    /// The only message of a stream that is incomplete (DATA).
    Stream(u16),
    /// Message of a stream, by its number; unordered ones are numbered separately (I-DATA, RFC 8260 section 2.1).
    Interleaved { stream: u16, is_unordered: bool, number: u32 },
}

/// The first fragments of a message.
#[derive(Debug)]
struct Partial {
    id: MessageId,
    /// Number of the next fragment.
    next: u32,
    octets: Vec<u8>,
}

/// A fragment of a message.
#[derive(Clone, Copy, Debug)]
struct Fragment<'f> {
    id: MessageId,
    /// Transmission sequence number, or number of the fragment within an interleaved message.
    number: u32,
    is_beginning: bool,
    is_end: bool,
    octets: &'f [u8],
}

impl Association {
    /// Reads the chunks of a packet (RFC 9260 section 3.3.1, RFC 8260 section 2.1), and passes on the messages in them.
    /// Linear in the octets.
    pub(super) fn packet(&mut self, mut chunks: &[u8], mut receive: impl FnMut(Piece<'_>)) {
        const DATA: u8 = 0;
        const INIT: u8 = 1;
        const INIT_ACK: u8 = 2;
        const I_DATA: u8 = 64;
        const INITIAL_TSN_AT: usize = 16;
        while let Some(header) = chunks.first_chunk::<4>() {
            let [kind, flags, ..] = *header;
            let len = usize::from(number(chunks, 2).unwrap_or_default());
            let chunk = chunks.get(..len).unwrap_or(chunks);
            match kind {
                INIT | INIT_ACK => self.initial = word(chunk, INITIAL_TSN_AT),
                DATA | I_DATA => self.data(chunk, flags, kind == I_DATA, &mut receive),
                _ => {}
            }
            // Chunks are padded to a multiple of four octets.
            chunks = chunks.get(len.max(4).next_multiple_of(4)..).unwrap_or_default();
        }
    }

    /// Reads a chunk with octets of a message.
    fn data(&mut self, chunk: &[u8], flags: u8, is_interleaved: bool, receive: &mut impl FnMut(Piece<'_>)) {
        const IS_END: u8 = 1;
        const IS_BEGINNING: u8 = 2;
        const IS_UNORDERED: u8 = 4;
        let header_len = if is_interleaved { 20 } else { 16 };
        let (Some(tsn), Some(stream), Some(octets)) =
            (word(chunk, 4), number(chunk, 8), chunk.get(header_len..))
        else {
            return;
        };
        if self.initial.is_some_and(|initial| tsn.wrapping_sub(initial) < FIRST_COUNT) {
            *self = Self::default();
            receive(Piece::Beginning);
        }
        if self.recent.contains(&tsn) {
            return;
        }
        if self.recent.len() >= RECENT_COUNT {
            self.recent.pop_front();
        }
        self.recent.push_back(tsn);
        let (is_beginning, is_end) = (flags & IS_BEGINNING != 0, flags & IS_END != 0);
        let (id, number) = if is_interleaved {
            let is_unordered = flags & IS_UNORDERED != 0;
            let id =
                MessageId::Interleaved { stream, is_unordered, number: word(chunk, 12).unwrap_or_default() };
            // The first fragment has an identifier of its payload in place of its number.
            (id, if is_beginning { 0 } else { word(chunk, 16).unwrap_or_default() })
        } else {
            (MessageId::Stream(stream), tsn)
        };
        self.fragment(Fragment { id, number, is_beginning, is_end, octets }, receive);
    }

    fn fragment(&mut self, fragment: Fragment<'_>, receive: &mut impl FnMut(Piece<'_>)) {
        let Fragment { id, number, is_beginning, is_end, octets } = fragment;
        if is_beginning && is_end {
            return receive(Piece::Message(octets));
        }
        let place = self.partial.iter().position(|partial| partial.id == id);
        let mut partial = match place.and_then(|place| self.partial.remove(place)) {
            Some(partial) if !is_beginning && partial.next == number => partial,
            _ if is_beginning => Partial { id, next: number, octets: Vec::new() },
            // A fragment is missing, and with it the message.
            _ => return,
        };
        if partial.octets.len() + octets.len() > MESSAGE_LEN_MAX {
            return;
        }
        partial.octets.extend_from_slice(octets);
        partial.next = number.wrapping_add(1);
        if is_end {
            return receive(Piece::Message(&partial.octets));
        }
        if self.partial.len() >= PARTIAL_COUNT_MAX {
            self.partial.pop_front();
        }
        self.partial.push_back(partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);

    /// A message of IPFIX with a data set of this many octets.
    fn ipfix(len: u16, octet: u8) -> Vec<u8> {
        let mut message = [10_u16, 20 + len].map(u16::to_be_bytes).concat();
        message.extend([1_700_000_000_u32, 7, 1].map(u32::to_be_bytes).concat());
        message.extend([256, 4 + len].map(u16::to_be_bytes).concat());
        message.resize(message.len() + usize::from(len), octet);
        message
    }

    /// A message of NetFlow version 9 with data sets of these numbers of octets.
    fn netflow9(lens: &[u16]) -> Vec<u8> {
        let mut message = [9, lens.len() as u16].map(u16::to_be_bytes).concat();
        message.extend([5_u32, 1_700_000_000, 7, 1].map(u32::to_be_bytes).concat());
        for len in lens {
            message.extend([256, 4 + len].map(u16::to_be_bytes).concat());
            message.resize(message.len() + usize::from(*len), 9);
        }
        message
    }

    fn netflow5() -> Vec<u8> {
        let mut message = [5_u16, 1].map(u16::to_be_bytes).concat();
        message.resize(24 + 48, 3);
        message
    }

    #[test]
    fn messages_do_not_depend_on_segments() {
        let messages =
            [ipfix(40, 0), netflow9(&[8, 12]), netflow5(), ipfix(0, 1), netflow9(&[1]), netflow9(&[2])];
        let stream = messages.concat();
        for segment_len in [1, 2, 3, 7, 19, 20, 64, stream.len()] {
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            for segment in stream.chunks(segment_len) {
                framing.push(segment, NOW, |message| found.push(message.to_vec()));
            }
            framing.finish(|message| found.push(message.to_vec()));
            assert_eq!(found, messages, "{segment_len}");
        }
    }

    #[test]
    fn after_a_gap_the_next_header_is_found() {
        let messages: Vec<_> = (0..6).map(|number| ipfix(50, number)).collect();
        let stream = messages.concat();
        for lost in 1..stream.len() - 140 {
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            framing.push(&stream[..lost], NOW, |message| found.push(message.to_vec()));
            framing.lose();
            framing.push(&stream[lost + 70..], NOW, |message| found.push(message.to_vec()));
            assert!(found.len() >= 4 && found.iter().all(|message| messages.contains(message)), "{lost}");
        }
        // Other octets are no message, and are not kept.
        let mut framing = Framing::default();
        for _ in 0..100 {
            framing.push(&[7; 5000], NOW, |_| panic!("a message"));
            assert!(framing.octets.len() < IPFIX_HEADERS_LEN);
        }
    }

    fn chunk(flags: u8, tsn: u32, stream: u16, data: &[u8]) -> Vec<u8> {
        let mut chunk = vec![0, flags];
        chunk.extend((16 + data.len() as u16).to_be_bytes());
        chunk.extend(tsn.to_be_bytes());
        chunk.extend(stream.to_be_bytes());
        chunk.extend([0; 6]);
        chunk.extend(data);
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        chunk
    }

    fn octets(piece: Piece<'_>) -> Vec<u8> {
        let Piece::Message(octets) = piece else { panic!("another association") };
        octets.to_vec()
    }

    /// A chunk of an interleaved message: flags, transmission sequence number, stream, number of the message, and that of
    /// the fragment (RFC 8260 section 2.1).
    fn interleaved(flags: u8, [tsn, stream, message, fragment]: [u32; 4], data: &[u8]) -> Vec<u8> {
        let mut chunk = vec![64, flags];
        chunk.extend((20 + data.len() as u16).to_be_bytes());
        chunk.extend(tsn.to_be_bytes());
        chunk.extend((stream << 16).to_be_bytes());
        chunk.extend(message.to_be_bytes());
        chunk.extend(fragment.to_be_bytes());
        chunk.extend(data);
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        chunk
    }

    #[test]
    fn fragments_of_messages_are_interleaved() {
        let (mut association, mut found) = (Association::default(), Vec::new());
        // The first fragments have an identifier of their payload, 99, in place of a number.
        let chunks = [
            interleaved(2, [1, 5, 0, 99], b"a"),
            interleaved(2, [2, 5, 1, 99], b"x"),
            interleaved(6, [3, 5, 0, 99], b"unordered, "),
            interleaved(0, [4, 5, 0, 1], b"b"),
            interleaved(3, [5, 6, 0, 99], b"whole"),
            interleaved(1, [6, 5, 1, 1], b"y"),
            interleaved(1, [6, 5, 1, 1], b"y"),
            interleaved(5, [7, 5, 0, 1], b"too"),
            interleaved(1, [8, 5, 0, 2], b"c"),
            // The second of three fragments is missing.
            interleaved(2, [9, 5, 2, 99], b"m"),
            interleaved(1, [11, 5, 2, 2], b"o"),
        ];
        for chunk in chunks {
            association.packet(&chunk, |piece| found.push(octets(piece)));
        }
        assert_eq!(found, [&b"whole"[..], b"xy", b"unordered, too", b"abc"]);
        association.packet(&interleaved(3, [12, 0, 0, 0], b"")[..16], |_| panic!("a message"));
    }

    #[test]
    fn a_new_association_begins_with_its_first_chunk() {
        let init = |kind: u8, tsn: u32| {
            let head = [u32::from_be_bytes([kind, 0, 0, 20]), 77, 65_536, 0x1_0001, tsn];
            head.map(u32::to_be_bytes).concat()
        };
        for kind in [1, 2] {
            let (mut association, mut found) = (Association::default(), Vec::new());
            for packet in [
                init(kind, 100),
                chunk(2, 100, 0, b"lost"),
                // It is not acknowledged, and sent again.
                init(kind, 900_000),
                chunk(1, 101, 0, b" not"),
                chunk(3, 900_001, 0, b"second"),
                chunk(3, 900_000, 0, b"first"),
                chunk(3, 900_000, 0, b"first"),
            ] {
                association.packet(&packet, |piece| {
                    found.push(match piece {
                        Piece::Beginning => "new".to_owned(),
                        Piece::Message(octets) => String::from_utf8(octets.to_vec()).unwrap(),
                    });
                });
            }
            assert_eq!(found, ["new", "lost not", "new", "second", "first"]);
        }
    }

    #[test]
    fn messages_of_sctp_are_complete_and_not_repeated() {
        let (mut association, mut found) = (Association::default(), Vec::new());
        let packets = [
            // A heartbeat is another kind of chunk.
            [vec![4, 0, 0, 4], chunk(3, 10, 0, b"whole"), chunk(2, 11, 1, b"fir")].concat(),
            [chunk(3, 12, 0, b"x"), chunk(0, 12, 1, b"lost")].concat(),
            [chunk(3, 10, 0, b"whole"), chunk(2, u32::MAX, 2, b"a")].concat(),
            [chunk(0, 0, 2, b"b"), chunk(1, 1, 2, b"c"), chunk(1, 99, 2, b"d")].concat(),
        ];
        for packet in packets {
            association.packet(&packet, |piece| found.push(octets(piece)));
        }
        assert_eq!(found, [&b"whole"[..], b"x", b"abc"]);
        for tsn in 1000..3000 {
            association.packet(&chunk(2, tsn, tsn as u16, &[0; 1000]), |_| panic!("a message"));
        }
        assert!(association.partial.len() <= PARTIAL_COUNT_MAX && association.recent.len() <= RECENT_COUNT);
    }
}
