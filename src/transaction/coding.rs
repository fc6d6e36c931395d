//! Content codings of bodies: gzip and deflate (RFC 9110 section 8.4.1), decoded as the octets arrive.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::digests::Digests;

/// Maximum number of bodies that are decoded at the same time in the process: each needs some 45 KiB.
const OPEN_MAX: usize = 1024;

/// Octets of output that each octet of a body permits, and those that are permitted in addition. Text is rarely compressed
/// to less than a fiftieth; the format permits a thousandth.
const FACTOR: u64 = 100;
const CREDIT: u64 = 1 << 20;

/// Number of bodies that are being decoded.
static OPEN_COUNT: AtomicUsize = AtomicUsize::new(0);

/// A body that is being decoded.
pub(super) struct Decoder {
    inner: Inner,
    received_len: u64,
    is_failed: bool,
    _place: Place,
}

enum Inner {
    Gzip(MultiGzDecoder<Content>),
    Deflate(Deflate),
}

/// A stream of zlib. `flate2::write::ZlibDecoder` accepts one that is truncated.
struct Deflate {
    stream: Decompress,
    content: Content,
    buffer: Box<[u8; 4096]>,
    is_over: bool,
}

impl Deflate {
    fn new(content: Content) -> Self {
        Self { stream: Decompress::new(true), content, buffer: Box::new([0; 4096]), is_over: false }
    }

    /// Decodes octets. Those behind the end of the stream are an error.
    fn add(&mut self, octets: &[u8]) -> io::Result<()> {
        let mut rest = octets;
        loop {
            if self.is_over {
                return if rest.is_empty() { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) };
            }
            let (taken, decoded) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(rest, &mut *self.buffer, FlushDecompress::None)?;
            let len = (self.stream.total_out() - decoded) as usize;
            self.content.write_all(self.buffer.get(..len).unwrap_or_default())?;
            rest = rest.get((self.stream.total_in() - taken) as usize..).unwrap_or_default();
            self.is_over = status == Status::StreamEnd;
            // A full buffer may not be all.
            if rest.is_empty() && len < self.buffer.len() && !self.is_over {
                return Ok(());
            }
            if len == 0 && self.stream.total_in() == taken && !self.is_over {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
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

/// What was decoded.
pub(super) struct Content {
    pub(super) digests: Digests,
    pub(super) len: u64,
    len_max: u64,
}

impl Write for Content {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.len += octets.len() as u64;
        if self.len > self.len_max {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.digests.add(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// Memory of a decoder in bytes.
    pub(super) const HEAP_LEN: usize = 48 << 10;

    /// Returns the decoder of a coding; `None` for an unknown one, or if too many bodies are being decoded.
    pub(super) fn new(coding: &str, digests: Digests) -> Option<Self> {
        let is = |name: &str| coding.trim().eq_ignore_ascii_case(name);
        let is_gzip = is("gzip") || is("x-gzip");
        if !is_gzip && !is("deflate") {
            return None;
        }
        let place = Place::take(&OPEN_COUNT)?;
        let content = Content { digests, len: 0, len_max: CREDIT };
        let inner = if is_gzip {
            Inner::Gzip(MultiGzDecoder::new(content))
        } else {
            Inner::Deflate(Deflate::new(content))
        };
        Some(Self { inner, received_len: 0, is_failed: false, _place: place })
    }

    /// Decodes octets.
    pub(super) fn add(&mut self, octets: &[u8]) {
        if self.is_failed {
            return;
        }
        self.received_len += octets.len() as u64;
        let len_max = self.received_len.saturating_mul(FACTOR).saturating_add(CREDIT);
        let written = match &mut self.inner {
            Inner::Gzip(decoder) => {
                decoder.get_mut().len_max = len_max;
                decoder.write_all(octets)
            }
            Inner::Deflate(decoder) => {
                decoder.content.len_max = len_max;
                decoder.add(octets)
            }
        };
        self.is_failed = written.is_err();
    }

    /// Returns what was decoded; `None` if the octets are not those of the coding, or expand too much.
    pub(super) fn finish(self) -> Option<Content> {
        if self.is_failed {
            return None;
        }
        match self.inner {
            Inner::Gzip(decoder) => decoder.finish().ok(),
            Inner::Deflate(decoder) => decoder.is_over.then_some(decoder.content),
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("received_len", &self.received_len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn decoded(coding: &str, octets: &[u8], piece_len: usize) -> Option<(u64, Vec<u8>)> {
        let mut decoder = Decoder::new(coding, Digests::new(false))?;
        octets.chunks(piece_len).for_each(|piece| decoder.add(piece));
        decoder.finish().map(|content| (content.len, content.digests.first().to_vec()))
    }

    #[test]
    fn bodies_are_decoded_in_pieces_of_any_length() {
        let text = "some text ".repeat(500);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text.as_bytes()).expect("a vector");
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(text.as_bytes()).expect("a vector");
        let (gzip, zlib) = (gzip.finish().expect("a vector"), zlib.finish().expect("a vector"));
        for (coding, octets) in [("gzip", &gzip), (" X-GZip", &gzip), ("deflate", &zlib)] {
            for piece_len in [1, 7, 10_000] {
                let (len, first) = decoded(coding, octets, piece_len).expect("content");
                assert_eq!(len, text.len() as u64);
                assert!(text.as_bytes().starts_with(&first) && first.len() > 100);
            }
        }
        assert!(decoded("gzip", &zlib, 100).is_none());
        assert!(decoded("br", &gzip, 100).is_none());
        for len in 0..gzip.len() {
            assert!(decoded("gzip", &gzip[..len], 100).is_none(), "the end is missing");
        }
        for len in 0..zlib.len() {
            assert!(decoded("deflate", &zlib[..len], 100).is_none(), "the end is missing");
        }
        assert!(decoded("deflate", &[&zlib[..], b"x"].concat(), 100).is_none(), "an octet too many");
    }

    #[test]
    fn a_body_that_expands_too_much_is_not_decoded() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&vec![0; 8 << 20]).expect("a vector");
        assert!(decoded("gzip", &gzip.finish().expect("a vector"), 1000).is_none());
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
