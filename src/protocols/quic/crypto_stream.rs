//! Reassembly of the QUIC CRYPTO frames that one end sends in Initial packets.

/// Maximum length in octets of the handshake data that one end sends in Initial packets: several times the length of a
/// hello with post-quantum keys.
pub const CRYPTO_LEN_MAX: usize = 32 * 1024;

/// Maximum number of received pieces of a CRYPTO stream with holes between them. Browsers deliberately split and
/// shuffle their hello.
pub const CRYPTO_PIECE_COUNT_MAX: usize = 128;

/// Length of a handshake message's type and length fields in octets (RFC 8446 section 4).
const MESSAGE_HEADER_LEN: usize = 4;

/// Handshake data that one end sends in the CRYPTO frames of Initial packets, received in any order. Where frames
/// overlap, the octets received first remain.
///
/// Consuming a message does not move the remaining octets, because the whole handshake has at most [`CRYPTO_LEN_MAX`]
/// octets.
#[derive(Debug, Default)]
pub(super) struct CryptoStream {
    /// Number of octets consumed from the start of the stream.
    taken: usize,
    /// Stream offset of the first octet of `bytes`, at most `taken`.
    base: usize,
    /// Octets from `base` on; zero where none were received.
    bytes: Vec<u8>,
    /// Received ranges of stream offsets as (start, end) with exclusive end, sorted, with holes in between. The first
    /// range may start before `taken`.
    pieces: Vec<(u16, u16)>,
}

impl CryptoStream {
    /// Inserts the octets of a CRYPTO frame at a stream offset. A frame that exceeds the length or piece limit is
    /// dropped.
    pub(super) fn insert(&mut self, offset: u64, bytes: &[u8]) {
        let Ok(offset) = usize::try_from(offset) else { return };
        let Some(end) = offset.checked_add(bytes.len()).filter(|end| *end <= CRYPTO_LEN_MAX) else { return };
        let known_len = self.taken.saturating_sub(offset);
        let Some(bytes) = bytes.get(known_len..).filter(|bytes| !bytes.is_empty()) else { return };
        let start = offset + known_len;
        // The first piece that ends at or after the start.
        let first = self.pieces.partition_point(|piece| usize::from(piece.1) < start);
        let beyond = self.pieces.partition_point(|piece| usize::from(piece.0) <= end);
        if first == beyond && self.pieces.len() >= CRYPTO_PIECE_COUNT_MAX {
            return;
        }
        let base = self.base;
        if self.bytes.len() < end - base {
            self.bytes.resize(end - base, 0);
        }
        let joined = self.pieces.get(first..beyond).unwrap_or_default();
        let mut at = start;
        for (piece_start, piece_end) in joined.iter().map(|piece| (piece.0.into(), usize::from(piece.1))) {
            copy(&mut self.bytes, (at, piece_start), (bytes, start), base);
            at = at.max(piece_end);
        }
        copy(&mut self.bytes, (at, end), (bytes, start), base);
        let whole = joined
            .iter()
            .fold((start as u16, end as u16), |whole, piece| (whole.0.min(piece.0), whole.1.max(piece.1)));
        self.pieces.splice(first..beyond, [whole]);
    }

    /// Returns the next handshake message including its type and length fields; `None` while it is incomplete.
    pub(super) fn message(&self) -> Option<&[u8]> {
        let (start, end) = self.pieces.first().map(|piece| (usize::from(piece.0), usize::from(piece.1)))?;
        if start > self.taken {
            return None;
        }
        let whole = self.bytes.get(self.taken - self.base..end.checked_sub(self.base)?)?;
        // The type of the message, and its length in the other three octets.
        let len = u32::from_be_bytes(*whole.first_chunk::<MESSAGE_HEADER_LEN>()?) & 0x00ff_ffff;
        whole.get(..MESSAGE_HEADER_LEN + len as usize)
    }

    /// Consumes the next `len` octets of the stream after the message in them was processed.
    pub(super) fn take(&mut self, len: usize) {
        self.taken += len;
        if self.pieces.first().is_some_and(|piece| usize::from(piece.1) <= self.taken) {
            self.pieces.remove(0);
            // The last piece ends where the buffer ends.
            if self.pieces.is_empty() {
                (self.base, self.bytes, self.pieces) = (self.taken, Vec::new(), Vec::new());
            }
        }
    }

    /// Returns the memory allocated for the buffer and the list of pieces, in octets.
    pub(super) fn heap_len(&self) -> usize {
        self.bytes.capacity() + self.pieces.capacity() * size_of::<(u16, u16)>()
    }
}

/// Copies the stream range `from..to` from `piece`, which starts at stream offset `start`, to `buffer`, which starts at
/// stream offset `base`.
fn copy(buffer: &mut [u8], (from, to): (usize, usize), (piece, start): (&[u8], usize), base: usize) {
    if from < to
        && let Some(target) = buffer.get_mut(from - base..to - base)
        && let Some(source) = piece.get(from - start..to - start)
    {
        target.copy_from_slice(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a generator of pseudorandom numbers below its argument. Equal seeds yield equal numbers.
    fn random(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as usize % below
        }
    }

    fn message(kind: u8, len: usize) -> Vec<u8> {
        let mut message = vec![kind, 0, (len >> 8) as u8, len as u8];
        message.extend((0..len).map(|place| (place * 7 + usize::from(kind)) as u8));
        message
    }

    #[test]
    fn pieces_in_any_order_yield_the_same_messages() {
        for seed in 1..300 {
            let mut random = random(seed);
            let messages: Vec<_> = (0..3).map(|kind| message(kind, random(900))).collect();
            let all = messages.concat();
            let (mut stream, mut completed) = (CryptoStream::default(), Vec::new());
            // Reference model: the received octets, and their contiguous length from the front.
            let mut arrived = vec![false; all.len()];
            while arrived.contains(&false) {
                let start = random(all.len());
                let len = 1 + random(120);
                let piece = &all[start..all.len().min(start + len)];
                arrived[start..start + piece.len()].fill(true);
                stream.insert(start as u64, piece);
                while let Some(message) = stream.message() {
                    completed.push(message.to_vec());
                    let len = completed.last().map_or(0, Vec::len);
                    stream.take(len);
                }
                let front = arrived.iter().position(|has_arrived| !has_arrived).unwrap_or(all.len());
                let mut end = 0;
                let whole = messages.iter().take_while(|message| {
                    end += message.len();
                    end <= front
                });
                assert_eq!(completed.len(), whole.count(), "seed {seed}, {front} octets");
                let has_order = stream.pieces.windows(2).all(|pair| pair[0].1 < pair[1].0);
                assert!(has_order, "seed {seed}: {:?}", stream.pieces);
            }
            assert_eq!(completed, messages, "seed {seed}");
            assert_eq!(stream.heap_len(), 0);
        }
    }

    #[test]
    fn messages_without_a_body_are_consumed_one_by_one() {
        let mut stream = CryptoStream::default();
        let message = [8, 0, 0, 0];
        let all = message.repeat(CRYPTO_LEN_MAX / 4);
        // All but the first octet, then the first octet.
        stream.insert(1, &all[1..]);
        assert_eq!(stream.message(), None);
        stream.insert(0, &all[..1]);
        let mut count = 0;
        while let Some(found) = stream.message() {
            assert_eq!(found, message);
            stream.take(4);
            count += 1;
        }
        assert_eq!((count, stream.heap_len()), (CRYPTO_LEN_MAX / 4, 0));
        // The octets are already present, and none fit after them.
        stream.insert(0, &all);
        stream.insert(CRYPTO_LEN_MAX as u64, &message);
        assert_eq!((stream.message(), stream.heap_len()), (None, 0));
    }

    #[test]
    fn octets_received_first_are_kept() {
        let mut stream = CryptoStream::default();
        stream.insert(4, b"cd");
        stream.insert(0, &[1, 0, 0, 4, b'x', b'x', b'x', b'x']);
        assert_eq!(stream.message(), Some(&[1, 0, 0, 4, b'c', b'd', b'x', b'x'][..]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut stream = CryptoStream::default();
        for place in 0..CRYPTO_LEN_MAX as u64 {
            stream.insert(place * 2 + 1, &[0]);
        }
        assert_eq!(stream.pieces.len(), CRYPTO_PIECE_COUNT_MAX);
        stream.insert(CRYPTO_LEN_MAX as u64 - 1, b"xx");
        stream.insert(u64::MAX, b"x");
        stream.insert(u64::MAX - 1, b"xx");
        assert!(stream.bytes.len() <= CRYPTO_LEN_MAX);
        assert!(stream.heap_len() <= 2 * CRYPTO_LEN_MAX + 8 * CRYPTO_PIECE_COUNT_MAX);
        // Pieces adjacent to others are accepted even at the limit.
        stream.insert(0, &[2, 0, 0, 0]);
        assert_eq!(stream.message(), Some(&[2, 0, 0, 0][..]));
    }
}
