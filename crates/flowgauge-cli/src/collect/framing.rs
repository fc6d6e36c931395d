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

/// One direction of an SCTP association.
#[derive(Debug, Default)]
pub(super) struct Association {
    /// Transmission sequence numbers of the latest chunks.
    recent: VecDeque<u32>,
    partial: VecDeque<Partial>,
}

/// The first fragments of a message.
#[derive(Debug)]
struct Partial {
    stream: u16,
    /// Transmission sequence number of the next fragment.
    next: u32,
    octets: Vec<u8>,
}

impl Association {
    /// Reads the chunks of a packet (RFC 9260 section 3.3.1), and passes on the messages in them. Linear in the octets.
    pub(super) fn packet(&mut self, mut chunks: &[u8], mut message: impl FnMut(&[u8])) {
        const HEADER_LEN: usize = 16;
        const DATA: u8 = 0;
        while let Some(header) = chunks.first_chunk::<4>() {
            let [kind, flags, ..] = *header;
            let len = usize::from(number(chunks, 2).unwrap_or_default());
            let chunk = chunks.get(..len).unwrap_or(chunks);
            if let (DATA, Some((header, data))) = (kind, chunk.split_first_chunk::<HEADER_LEN>()) {
                let [_, _, _, _, a, b, c, d, stream_high, stream_low, ..] = *header;
                let tsn = u32::from_be_bytes([a, b, c, d]);
                let stream = u16::from_be_bytes([stream_high, stream_low]);
                self.data((tsn, stream, flags), data, &mut message);
            }
            // Chunks are padded to a multiple of four octets.
            chunks = chunks.get(len.max(4).next_multiple_of(4)..).unwrap_or_default();
        }
    }

    fn data(&mut self, (tsn, stream, flags): (u32, u16, u8), data: &[u8], message: &mut impl FnMut(&[u8])) {
        const IS_END: u8 = 1;
        const IS_BEGINNING: u8 = 2;
        if self.recent.contains(&tsn) {
            return;
        }
        if self.recent.len() >= RECENT_COUNT {
            self.recent.pop_front();
        }
        self.recent.push_back(tsn);
        let (is_beginning, is_end) = (flags & IS_BEGINNING != 0, flags & IS_END != 0);
        if is_beginning && is_end {
            return message(data);
        }
        let place = self.partial.iter().position(|partial| partial.stream == stream);
        let mut partial = match place.and_then(|place| self.partial.remove(place)) {
            Some(partial) if !is_beginning && partial.next == tsn => partial,
            _ if is_beginning => Partial { stream, next: tsn, octets: Vec::new() },
            // A fragment is missing, and with it the message.
            _ => return,
        };
        if partial.octets.len() + data.len() > MESSAGE_LEN_MAX {
            return;
        }
        partial.octets.extend_from_slice(data);
        partial.next = tsn.wrapping_add(1);
        if is_end {
            return message(&partial.octets);
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
            association.packet(&packet, |message| found.push(message.to_vec()));
        }
        assert_eq!(found, [&b"whole"[..], b"x", b"abc"]);
        for tsn in 1000..3000 {
            association.packet(&chunk(2, tsn, tsn as u16, &[0; 1000]), |_| panic!("a message"));
        }
        assert!(association.partial.len() <= PARTIAL_COUNT_MAX && association.recent.len() <= RECENT_COUNT);
    }
}
