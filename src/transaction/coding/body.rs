//! A body in gzip or deflate of which type and digests are computed.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Coding, Inflate, Part, Unpacker};
use crate::transaction::decoding::{Decoding, DecodingCredit};
use crate::transaction::digests::Digests;

/// Maximum number of bodies that are decoded at the same time in the process: each needs some 45 KiB.
const OPEN_MAX: usize = 1024;

/// Number of bodies that are being decoded.
static OPEN_COUNT: AtomicUsize = AtomicUsize::new(0);

/// A body that is being decoded.
pub(in crate::transaction) struct Decoder {
    unpacker: Unpacker<Inflate>,
    digests: Digests,
    len: u64,
    _place: Place,
}

/// One of the bodies that may be decoded at the same time.
struct Place(&'static AtomicUsize);

impl Place {
    /// Returns a place, of which there are [`OPEN_MAX`].
    fn take(count: &'static AtomicUsize) -> Option<Self> {
        let place = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < OPEN_MAX).then_some(count + 1)
        });
        place.is_ok().then(|| Self(count))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Decoder {
    /// Memory of a decoder in bytes.
    pub(in crate::transaction) const HEAP_LEN: usize = 52 << 10;

    /// Returns the decoder of a coding.
    ///
    /// # Errors
    ///
    /// [`Decoding::Unsupported`] for another coding than gzip and deflate, [`Decoding::Limit`] if too many bodies are being
    /// decoded.
    pub(in crate::transaction) fn new(coding: Coding, digests: Digests) -> Result<Self, Decoding> {
        let stream = Inflate::new(coding).ok_or(Decoding::Unsupported)?;
        let place = Place::take(&OPEN_COUNT).ok_or(Decoding::Limit)?;
        Ok(Self { unpacker: Unpacker::new(stream), digests, len: 0, _place: place })
    }

    /// Decodes octets, which the connection pays for.
    pub(in crate::transaction) fn add(
        &mut self,
        octets: &[u8],
        (credit, received_len): (&mut DecodingCredit, u64),
    ) {
        let Self { unpacker, digests, len, .. } = self;
        let has_digests = digests.has_hashes();
        unpacker.add(octets, &mut |part| {
            let is_granted = credit.spend(received_len, part.cost(has_digests));
            if let (true, Part::Octets(octets)) = (is_granted, part) {
                *len += octets.len() as u64;
                digests.add(octets);
            }
            is_granted
        });
    }

    /// Returns the result, and the length and digests of what was decoded, if anything.
    pub(in crate::transaction) fn finish(self) -> (Decoding, Option<(u64, Digests)>) {
        let Self { unpacker, mut digests, len, .. } = self;
        let result = unpacker.result();
        match result {
            // A head is no content.
            Decoding::Cut if len == 0 => (Decoding::Incomplete, None),
            Decoding::Decoded | Decoding::Trailing => (result, Some((len, digests))),
            Decoding::Cut => {
                digests.forget();
                (result, Some((len, digests)))
            }
            _ => (result, None),
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    /// Decodes a body that arrives in pieces over a connection which has received so many octets more.
    fn decoded(coding: Coding, octets: &[u8], piece_len: usize) -> (Decoding, Option<(u64, Vec<u8>)>) {
        let mut decoder = Decoder::new(coding, Digests::new(false)).expect("a decoder");
        let mut credit = DecodingCredit::default();
        octets.chunks(piece_len).for_each(|piece| decoder.add(piece, (&mut credit, octets.len() as u64)));
        let (result, content) = decoder.finish();
        (result, content.map(|(len, digests)| (len, digests.first().to_vec())))
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text).expect("a vector");
        gzip.finish().expect("a vector")
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(text).expect("a vector");
        zlib.finish().expect("a vector")
    }

    fn raw(text: &[u8]) -> Vec<u8> {
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(text).expect("a vector");
        raw.finish().expect("a vector")
    }

    #[test]
    fn bodies_are_decoded_in_pieces_of_any_length() {
        let text = b"some text ".repeat(900);
        let members = [gzip(&text[..3333]), gzip(b""), gzip(&text[3333..])].concat();
        for (coding, octets) in [
            (Coding::Gzip, gzip(&text)),
            (Coding::Gzip, members),
            (Coding::Deflate, zlib(&text)),
            (Coding::Deflate, raw(&text)),
        ] {
            for piece_len in [1, 7, 10_000] {
                let (result, content) = decoded(coding, &octets, piece_len);
                let (len, first) = content.expect("content");
                assert_eq!((result, len), (Decoding::Decoded, text.len() as u64));
                assert!(text.starts_with(&first) && first.len() > 100);
            }
        }
        assert_eq!(decoded(Coding::Gzip, &zlib(&text), 100), (Decoding::Invalid, None));
        assert!(matches!(Decoder::new(Coding::Brotli, Digests::new(false)), Err(Decoding::Unsupported)));
    }

    /// Of each prefix, what another decoder finds is decoded; octets after the end change nothing.
    #[test]
    fn bodies_are_decoded_up_to_their_end_or_the_last_octet() {
        let text: Vec<u8> = (0..1000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        for (coding, octets) in
            [(Coding::Gzip, gzip(&text)), (Coding::Deflate, zlib(&text)), (Coding::Deflate, raw(&text))]
        {
            let mut lens = Vec::new();
            for len in 0..octets.len() {
                let (result, content) = decoded(coding, &octets[..len], 100);
                let expected = if content.is_some() { Decoding::Cut } else { Decoding::Incomplete };
                assert_eq!(result, expected, "{coding:?}: {len} of {} octets", octets.len());
                let (len, first) = content.unwrap_or_default();
                assert!(text.starts_with(&first) && first.len() as u64 == len.min(first.len() as u64));
                lens.push(len);
            }
            assert!(
                lens.is_sorted() && lens.last() == Some(&(text.len() as u64)) || coding == Coding::Deflate
            );
            for after in [&b"\0"[..], b"\0\0\0\0\0", b"\x1f", b"\x1f\0", b"<html>"] {
                for piece_len in [1, 10_000] {
                    let (result, content) = decoded(coding, &[&octets, after].concat(), piece_len);
                    let len = content.map(|(len, _)| len);
                    assert_eq!((result, len), (Decoding::Trailing, Some(text.len() as u64)), "{after:?}");
                }
            }
        }
    }

    /// What is decoded, and the number of streams, are in proportion to the octets of the connection, whatever the number
    /// of bodies.
    #[test]
    fn a_body_that_expands_too_much_is_not_decoded() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![0; 1 << 20]).expect("a vector");
        let (bomb, members) = (bomb.finish().expect("a vector"), gzip(b"").repeat(500));
        for octets in [&bomb, &members] {
            let (mut credit, mut received_len, mut cost, mut results) =
                (DecodingCredit::default(), 0, 0, Vec::new());
            for _ in 0..50 {
                let mut unpacker = Unpacker::new(Inflate::new(Coding::Gzip).expect("gzip"));
                received_len += octets.len() as u64;
                unpacker.add(octets, &mut |part| {
                    let is_granted = credit.spend(received_len, part.cost(true));
                    cost += if is_granted { part.cost(true) } else { 0 };
                    is_granted
                });
                results.push(unpacker.result());
                assert!(cost <= 64 * received_len + (16 << 10), "{cost} for {received_len}");
            }
            assert_eq!(results, [Decoding::Limit; 50]);
        }
    }

    #[test]
    fn the_number_of_open_decoders_is_bounded() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let all: Vec<_> = (0..OPEN_MAX + 10).filter_map(|_| Place::take(&COUNT)).collect();
        assert_eq!(all.len(), OPEN_MAX);
        drop(all);
        assert!(Place::take(&COUNT).is_some());
    }
}
