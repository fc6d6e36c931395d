//! Reassembly of DTLS handshake messages from their fragments (RFC 6347 section 4.2.3).

use std::borrow::Cow;

use super::handshake::{HANDSHAKE_LEN_MAX, is_kind};
use crate::codec::Reader;
use crate::session::credit::Credit;

/// Maximum number of incomplete DTLS handshake messages that are reassembled per direction at a time.
pub const OPEN_MESSAGE_COUNT_MAX: usize = 4;

/// Maximum number of non-adjacent received pieces of an incomplete DTLS handshake message.
pub const PIECE_COUNT_MAX: usize = 32;

/// Initial credit, in octets, for the growth of buffers in which fragmented handshake messages are reassembled; each
/// octet of a fragment adds [`JOIN_FACTOR`]. The credit bounds the cost of fragments with high offsets in messages that
/// never complete.
pub(super) const JOIN_CREDIT: u64 = 4 * HANDSHAKE_LEN_MAX as u64;

/// Octets by which a reassembly buffer may grow for each octet of a fragment.
const JOIN_FACTOR: u64 = 16;

/// A fragment of a DTLS handshake message, usually the whole message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub(super) kind: u8,
    /// Length of the whole handshake message in octets.
    pub(super) len: usize,
    /// Sequence number of the handshake message.
    pub(super) sequence: u16,
    /// Offset of the fragment in the handshake message, in octets.
    pub(super) offset: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Parses the next fragment of a handshake message; `None` if the fragment is invalid, or the message is longer
    /// than [`HANDSHAKE_LEN_MAX`].
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let kind = reader.be::<u8>().ok()?;
        let len = u24(reader)?;
        let sequence = reader.be::<u16>().ok()?;
        let offset = u24(reader)?;
        let fragment_len = u24(reader)?;
        let bytes = reader.bytes(fragment_len).ok()?;
        let is_inside = len <= HANDSHAKE_LEN_MAX && offset.checked_add(fragment_len)? <= len;
        (is_kind(kind) && is_inside).then_some(Self { kind, len, sequence, offset, bytes })
    }
}

fn u24(reader: &mut Reader<'_>) -> Option<usize> {
    let [high, middle, low] = reader.array().ok()?.map(usize::from);
    Some(high << 16 | middle << 8 | low)
}

/// Reassembly state of the DTLS handshake messages of one direction.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Bit set of the sequence numbers of complete messages. Only the numbers 0 to 63 are recorded.
    whole: u64,
    open: Vec<Open>,
}

/// A DTLS handshake message that is not complete yet.
#[derive(Debug)]
struct Open {
    kind: u8,
    sequence: u16,
    /// Length of the whole handshake message in octets.
    len: usize,
    /// Octets of the message up to the end of the last received piece; zero where none were received.
    bytes: Vec<u8>,
    /// Received ranges of the message as (start, end) with exclusive end, ascending and not adjacent.
    pieces: Vec<(usize, usize)>,
}

impl Fragments {
    /// Adds a fragment. Returns the handshake message when it becomes complete, only once. The growth of its buffer is
    /// charged to `credit`; a fragment that exceeds the credit is ignored.
    pub(super) fn add<'a>(&mut self, fragment: &Fragment<'a>, credit: &mut Credit) -> Option<Cow<'a, [u8]>> {
        let bit = 1_u64.checked_shl(u32::from(fragment.sequence)).unwrap_or_default();
        if self.whole & bit != 0 {
            return None;
        }
        let whole = if fragment.bytes.len() == fragment.len {
            Some(Cow::Borrowed(fragment.bytes))
        } else {
            self.join(fragment, credit).map(Cow::Owned)
        };
        if whole.is_some() {
            self.whole |= bit;
            self.open.retain(|open| open.sequence != fragment.sequence);
        }
        whole
    }

    fn join(&mut self, fragment: &Fragment<'_>, credit: &mut Credit) -> Option<Vec<u8>> {
        credit.earn(JOIN_FACTOR * fragment.bytes.len() as u64);
        let is_of = |open: &Open| open.sequence == fragment.sequence;
        let place = match self.open.iter().position(is_of) {
            Some(place) => place,
            None => {
                if self.open.len() >= OPEN_MESSAGE_COUNT_MAX {
                    // The oldest message is the least likely to complete.
                    self.open.remove(0);
                }
                let Fragment { kind, sequence, len, .. } = *fragment;
                self.open.push(Open { kind, sequence, len, bytes: Vec::new(), pieces: Vec::new() });
                self.open.len() - 1
            }
        };
        let open = self.open.get_mut(place)?;
        if open.kind != fragment.kind || open.len != fragment.len {
            return None;
        }
        let end = fragment.offset + fragment.bytes.len();
        let grown = end.saturating_sub(open.bytes.len());
        if grown > 0 {
            if !credit.spend(grown as u64) {
                return None;
            }
            let capacity = open.bytes.capacity();
            if end > capacity {
                open.bytes.reserve_exact(end.max(2 * capacity).min(open.len) - open.bytes.len());
            }
            open.bytes.resize(end, 0);
        }
        open.bytes.get_mut(fragment.offset..end)?.copy_from_slice(fragment.bytes);
        open.add_piece(fragment.offset, end);
        let is_complete = open.pieces.first() == Some(&(0, open.len));
        is_complete.then(|| std::mem::take(&mut open.bytes))
    }

    /// Discards all incomplete messages.
    pub(super) fn clear(&mut self) {
        self.open = Vec::new();
    }

    pub(super) fn heap_len(&self) -> usize {
        let pieces_len = |open: &Open| open.pieces.capacity() * size_of::<(usize, usize)>();
        let of_each: usize = self.open.iter().map(|open| open.bytes.capacity() + pieces_len(open)).sum();
        self.open.capacity() * size_of::<Open>() + of_each
    }
}

impl Open {
    /// Records `start..end` as received, and merges it with the pieces that it touches. A piece beyond
    /// [`PIECE_COUNT_MAX`] is ignored: it must be retransmitted.
    fn add_piece(&mut self, start: usize, end: usize) {
        let first = self.pieces.partition_point(|piece| piece.1 < start);
        let after = self.pieces.partition_point(|piece| piece.0 <= end);
        let touched = self.pieces.get(first..after).unwrap_or_default();
        let joined = match (touched.first(), touched.last()) {
            (Some(low), Some(high)) => (start.min(low.0), end.max(high.1)),
            _ if self.pieces.len() >= PIECE_COUNT_MAX => return,
            _ => (start, end),
        };
        self.pieces.splice(first..after, [joined]);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn fragment(whole: &[u8], start: usize, end: usize) -> Fragment<'_> {
        Fragment { kind: 11, len: whole.len(), sequence: 2, offset: start, bytes: &whole[start..end] }
    }

    #[test]
    fn fragments_in_any_order_yield_the_message_once() {
        let whole: Vec<u8> = (0..=255).collect();
        let parts = [(0, 100), (100, 180), (180, 256), (50, 130)];
        for order in [[0, 1, 2, 3], [2, 1, 0, 3], [3, 2, 0, 1], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let (mut fragments, mut credit) = (Fragments::default(), Credit::new(JOIN_CREDIT));
            let found: Vec<_> = order
                .iter()
                .filter_map(|place| {
                    fragments.add(&fragment(&whole, parts[*place].0, parts[*place].1), &mut credit)
                })
                .collect();
            assert_eq!(found, [Cow::<[u8]>::Owned(whole.clone())], "{order:?}");
            let again = fragments.add(&fragment(&whole, 0, 256), &mut credit);
            assert!(again.is_none(), "a retransmitted fragment does not repeat the message");
        }
    }

    #[test]
    fn incomplete_messages_are_bounded() {
        let whole = vec![1; HANDSHAKE_LEN_MAX];
        let (mut fragments, mut credit) = (Fragments::default(), Credit::new(u64::MAX));
        for sequence in 0..60 {
            for place in 0..100 {
                let part = fragment(&whole, place * 600, place * 600 + 10);
                assert!(fragments.add(&Fragment { sequence, ..part }, &mut credit).is_none());
            }
        }
        assert_eq!(fragments.open.len(), OPEN_MESSAGE_COUNT_MAX);
        assert!(fragments.open.iter().all(|open| open.pieces.len() == PIECE_COUNT_MAX));
        assert!(fragments.heap_len() < OPEN_MESSAGE_COUNT_MAX * (HANDSHAKE_LEN_MAX + 4096));
    }

    #[test]
    fn buffers_are_bounded_by_the_received_octets() {
        let whole = vec![1; HANDSHAKE_LEN_MAX];
        let (mut fragments, mut credit) = (Fragments::default(), Credit::new(JOIN_CREDIT));
        let last = fragment(&whole, HANDSHAKE_LEN_MAX - 1, HANDSHAKE_LEN_MAX);
        let mut buffer_count = 0;
        for sequence in 0..10_000 {
            assert!(fragments.add(&Fragment { sequence, ..last }, &mut credit).is_none());
            buffer_count += usize::from(fragments.open.last().is_some_and(|open| !open.bytes.is_empty()));
        }
        // The buffers covered by the initial credit, and one for each 4096 octets.
        assert_eq!(buffer_count, 4 + 10_000 * JOIN_FACTOR as usize / HANDSHAKE_LEN_MAX);
        // In-order fragments need no credit.
        let mut credit = Credit::new(0);
        let parts = [(0, 30_000), (30_000, HANDSHAKE_LEN_MAX)];
        let found = parts.map(|(start, end)| fragments.add(&fragment(&whole, start, end), &mut credit));
        assert_eq!(found, [None, Some(Cow::<[u8]>::Owned(whole.clone()))]);
    }

    #[test]
    fn invalid_lengths_are_rejected() {
        let header = |len: u8, offset: u8, fragment_len: u8| {
            let mut bytes = vec![1, 0, 0, len, 0, 0, 0, 0, offset, 0, 0, fragment_len];
            bytes.extend([0; 20]);
            Fragment::read(&mut Reader::new(&bytes)).is_some()
        };
        assert!(header(20, 0, 20) && header(20, 10, 10));
        assert!(!header(20, 10, 11) && !header(19, 0, 20) && !header(40, 0, 21));
    }
}
