//! zstd (RFC 8878), frame by frame: the window of each frame is known, bounded and charged before its decoder
//! allocates it.

use std::fmt;
use std::io::{self, BufRead, Read};

use zstd::stream::raw::{DParameter, Decoder, Operation as _};

use super::memory::Charge;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Maximum length of a zstd frame header, in octets: magic, descriptor, window, dictionary, content size.
const HEADER_LEN_MAX: usize = 4 + 1 + 1 + 4 + 8;

/// Memory of a zstd decoder besides its window, in bytes: its tables, and buffers for one compressed and two
/// decompressed blocks.
const DECODER_BYTES: u64 = 768 << 10;

/// Error for a zstd frame that needs a longer window than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowTooLong {
    pub(super) window_len: u64,
    pub(super) limit: u32,
}

impl fmt::Display for WindowTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the zstd window of {} bytes exceeds the limit of {} bytes", self.window_len, self.limit)
    }
}

impl std::error::Error for WindowTooLong {}

/// Reader that decompresses all zstd frames of another reader.
pub(super) struct ZstdReader<R> {
    input: R,
    decoder: Decoder<'static>,
    /// Octets of the next frame's header, which were read from the input to determine the window.
    header: Vec<u8>,
    /// Number of octets in `header` that were already passed to the decoder.
    header_at: usize,
    is_in_frame: bool,
    window_len_max: u32,
    charge: Charge,
    /// Memory that is charged for the reader without the decoder and its window, in bytes.
    fixed_bytes: u64,
}

impl<R: BufRead> ZstdReader<R> {
    /// Creates a reader that decompresses `input`. `charge` contains the memory of the input buffer; the
    /// window and the decoder are charged with the first frame.
    pub(super) fn new(input: R, window_len_max: u32, charge: Charge) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        // The decoder accepts powers of two, and by default rejects some windows that are allowed here.
        let log = (window_len_max.max(1).ilog2() + 1)
            .clamp(10, if cfg!(target_pointer_width = "64") { 31 } else { 30 });
        decoder.set_parameter(DParameter::WindowLogMax(log))?;
        let fixed_bytes = charge.bytes();
        let header = Vec::with_capacity(HEADER_LEN_MAX);
        Ok(Self {
            input,
            decoder,
            header,
            header_at: 0,
            is_in_frame: false,
            window_len_max,
            charge,
            fixed_bytes,
        })
    }

    /// Reads octets of the frame header until `header` contains `len` octets. Returns `false` if the input
    /// ends before that.
    fn read_header(&mut self, len: usize) -> io::Result<bool> {
        while self.header.len() < len {
            let octets = self.input.fill_buf()?;
            let taken = octets.len().min(len - self.header.len());
            if taken == 0 {
                return Ok(false);
            }
            self.header.extend_from_slice(octets.get(..taken).unwrap_or_default());
            self.input.consume(taken);
        }
        Ok(true)
    }

    /// Reads the header of the next zstd frame and charges the memory of its window. Returns `false` at the
    /// end of the input. Can be called again after an error of the input, such as
    /// [`io::ErrorKind::WouldBlock`].
    fn begin_frame(&mut self) -> io::Result<bool> {
        if !self.read_header(MAGIC.len())? {
            return if self.header.is_empty() { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        // The decoder itself identifies anything else, such as a skippable frame.
        if self.header == MAGIC {
            let mut need = MAGIC.len() + 1;
            let window_len = loop {
                if !self.read_header(need)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                match window_len(&self.header) {
                    Ok(window_len) => break window_len,
                    Err(more) => need = more,
                }
            };
            if window_len > u64::from(self.window_len_max) {
                return Err(io::Error::other(WindowTooLong { window_len, limit: self.window_len_max }));
            }
            // The decoder keeps the longest window so far.
            let bytes = (self.fixed_bytes + DECODER_BYTES + window_len).max(self.charge.bytes());
            self.charge.set(bytes).map_err(io::Error::other)?;
        }
        self.decoder.reinit()?;
        self.is_in_frame = true;
        Ok(true)
    }

    /// Passes the available octets of the zstd frame to the decoder. Returns the number of octets written to
    /// `out`, or `None` if the decoder needs more input.
    fn decode(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        let ahead = self.header.get(self.header_at..).unwrap_or_default();
        let is_ahead = !ahead.is_empty();
        let input = if is_ahead { ahead } else { self.input.fill_buf()? };
        let is_empty = input.is_empty();
        let status = self.decoder.run_on_buffers(input, out)?;
        if is_ahead {
            self.header_at += status.bytes_read;
        } else {
            self.input.consume(status.bytes_read);
        }
        if status.remaining == 0 {
            self.is_in_frame = false;
            self.header.clear();
            self.header_at = 0;
            return Ok(Some(status.bytes_written));
        }
        if status.bytes_written == 0 && is_empty {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(status.bytes_written).filter(|written| *written > 0))
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_in_frame && !self.begin_frame()? {
                return Ok(0);
            }
            match self.decode(out)? {
                Some(written) if written > 0 => return Ok(written),
                _ => {}
            }
        }
    }
}

/// Returns the length of the window that a zstd frame needs, in octets (RFC 8878 section 3.1.1.1), or, as the
/// error, the number of octets of its header that are needed to determine the length.
fn window_len(header: &[u8]) -> Result<u64, usize> {
    const DESCRIPTOR: usize = MAGIC.len();
    const SINGLE_SEGMENT: u8 = 0x20;
    let descriptor = *header.get(DESCRIPTOR).ok_or(DESCRIPTOR + 1)?;
    if descriptor & SINGLE_SEGMENT == 0 {
        let window = *header.get(DESCRIPTOR + 1).ok_or(DESCRIPTOR + 2)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Ok(base + base / 8 * u64::from(window & 7));
    }
    // The content is a single segment, which is its own window.
    let dictionary_len = match descriptor & 3 {
        3 => 4,
        len => usize::from(len),
    };
    let (size_len, added) = match descriptor >> 6 {
        0 => (1, 0),
        1 => (2, 256),
        2 => (4, 0),
        _ => (8, 0),
    };
    let at = DESCRIPTOR + 1 + dictionary_len;
    let octets = header.get(at..at + size_len).ok_or(at + size_len)?;
    Ok(octets.iter().rev().fold(0_u64, |sum, octet| sum << 8 | u64::from(*octet)) + added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Limits;
    use crate::source::memory::{Memory, Refused};

    /// Builds a zstd frame of raw blocks according to RFC 8878 section 3.1.1.
    fn frame(window: u8, content: &[u8]) -> Vec<u8> {
        let mut frame = [&MAGIC[..], &[0, window]].concat();
        let mut chunks = content.chunks(1000).peekable();
        while let Some(chunk) = chunks.next() {
            let is_last = u32::from(chunks.peek().is_none());
            frame.extend(&((chunk.len() as u32) << 3 | is_last).to_le_bytes()[..3]);
            frame.extend(chunk);
        }
        frame
    }

    fn reader(octets: &[u8], window_len_max: u32) -> (ZstdReader<&[u8]>, Memory) {
        let memory = Memory::new(&Limits::DEFAULT.into());
        (ZstdReader::new(octets, window_len_max, memory.charge()).unwrap(), memory)
    }

    #[test]
    fn window_sizes_match_the_specification() {
        // The smallest, 8 MiB, one eighth more, 128 MiB, the largest.
        for (window, expected) in
            [(0, 1 << 10), (0x68, 8 << 20), (0x69, 9 << 20), (0x88, 128 << 20), (0xff, 15 << 38)]
        {
            assert_eq!(window_len(&frame(window, b"x")), Ok(expected));
        }
        assert_eq!(window_len(&MAGIC), Err(5));
        assert_eq!(window_len(&[&MAGIC[..], &[0]].concat()), Err(6));
        // Single segment: content sizes of one, two (less 256), four and eight octets, with a dictionary of
        // two.
        for (descriptor, octets, expected) in [
            (0x20, &[7][..], 7),
            (0x60, &[1, 1], 0x101 + 256),
            (0xa0, &[0, 0, 0, 1], 1 << 24),
            (0xe0, &[0, 0, 0, 0, 1, 0, 0, 0], 1 << 32),
            (0x22, &[9, 9, 5], 5),
        ] {
            let header = [&MAGIC[..], &[descriptor], octets].concat();
            assert_eq!(window_len(&header), Ok(expected));
            assert_eq!(window_len(&header[..header.len() - 1]), Err(header.len()));
        }
    }

    #[test]
    fn concatenated_frames_are_one_stream_and_skippable_frames_are_skipped() {
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
        let skippable = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let packed = zstd::stream::encode_all(&content[40_000..], 3).unwrap();
        let octets =
            [&skippable[..], &frame(0x10, &content[..40_000]), &skippable, &packed, &skippable].concat();
        for step in [1, 13, 100_000] {
            let (mut zstd, _) = reader(&octets, 8 << 20);
            let (mut out, mut buffer) = (Vec::<u8>::new(), vec![0; step]);
            loop {
                let len = zstd.read(&mut buffer).unwrap();
                if len == 0 {
                    break;
                }
                out.extend(&buffer[..len]);
            }
            assert!(out == content, "read by {step}");
        }
        // If the data is truncated anywhere but at the end of a frame, it ends prematurely.
        let first_len = frame(0x10, &content[..40_000]).len();
        let whole = [11, 11 + first_len, 22 + first_len, 22 + first_len + packed.len()];
        for end in (1..100).chain((100..octets.len() - 11).step_by(97)).chain(whole) {
            let (mut zstd, _) = reader(&octets[..end], 8 << 20);
            let error = zstd.read_to_end(&mut Vec::new()).map_err(|error| error.kind()).err();
            let expected = if whole.contains(&end) { None } else { Some(io::ErrorKind::UnexpectedEof) };
            assert_eq!(error, expected, "{end}");
        }
    }

    #[test]
    fn a_window_beyond_the_limit_is_reported_and_never_allocated() {
        let octets = [frame(0x10, b"first"), frame(0x88, b"second")].concat();
        let (mut zstd, _) = reader(&octets, 8 << 20);
        let mut out = [0; 100];
        assert_eq!(zstd.read(&mut out).unwrap(), 5);
        let error = zstd.read(&mut out).unwrap_err();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<WindowTooLong>());
        assert_eq!(inner, Some(&WindowTooLong { window_len: 128 << 20, limit: 8 << 20 }));
        let (mut zstd, memory) = reader(&octets, 128 << 20);
        assert_eq!((zstd.read(&mut out).unwrap(), zstd.read(&mut out).unwrap()), (5, 6));
        assert!(zstd.charge.bytes() >= 128 << 20);
        // The memory limit for all captures is another bound.
        let mut other = memory.charge();
        other.set(memory.max_bytes() - (128 << 20) - DECODER_BYTES).unwrap();
        let mut late = ZstdReader::new(&octets[..], 128 << 20, memory.charge()).unwrap();
        let error = late.read(&mut out).unwrap_err();
        assert!(error.get_ref().is_some_and(|inner| inner.is::<Refused>()));
    }
}
