//! Decoding of content codings of HTTP (RFC 9110 section 8.4.1) from one file to another.

use std::io::{ErrorKind, Read};

use brotli_decompressor::{
    BrotliDecoderParameter, BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc,
};
use flowgauge::transaction::Decoding;
use flowgauge::transaction::coding::{Coding, Inflate, Part, Step, Stream, Unpacker};
use zstd::stream::raw::{DParameter, InBuffer, Operation as _, OutBuffer};

use crate::console::Failure;

/// Maximum window of zstd in octets (RFC 9659).
const ZSTD_WINDOW_MAX: u64 = 8 << 20;

/// Memory in bytes that a window may always have. That of gzip and deflate is 32 KiB.
const WINDOW_MIN: u64 = 256 << 10;

/// Name of the error of zstd if the window of a frame is larger than permitted.
const ZSTD_WINDOW_ERROR: &str = "Frame requires too much memory for decoding";

/// Number of octets that are read at once.
const BUFFER_LEN: usize = 1 << 14;

/// A stream of br.
struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    window_max: u64,
    has_begun: bool,
}

impl Brotli {
    fn new(window_max: u64) -> Self {
        let alloc = StandardAlloc::default;
        let mut state = Box::new(BrotliState::new(alloc(), alloc(), alloc()));
        // A window of up to 16 MiB; large windows are not part of the coding (RFC 7932).
        state.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
        Self { state, window_max, has_begun: false }
    }

    /// Returns the window in octets of a stream with this first octet (RFC 7932 section 9.1). No other pattern is valid.
    const fn window(first: u8) -> u64 {
        let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
            (0, ..) => 16,
            (_, 0, 0) => 17,
            (_, 0, more) => 8 + more,
            (_, bits, _) => 17 + bits,
        };
        1 << bits
    }
}

impl Stream for Brotli {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Decoding> {
        let first = input.first().filter(|_| !std::mem::replace(&mut self.has_begun, true));
        if first.is_some_and(|first| Self::window(*first) > self.window_max) {
            return Err(Decoding::Limit);
        }
        let (mut input_len, mut taken_len) = (input.len(), 0);
        let (mut output_len, mut decoded_len, mut total_len) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut input_len,
            &mut taken_len,
            input,
            &mut output_len,
            &mut decoded_len,
            output,
            &mut total_len,
            &mut self.state,
        );
        let is_over = matches!(result, BrotliResult::ResultSuccess);
        let is_sound = !matches!(result, BrotliResult::ResultFailure);
        is_sound.then_some(Step { taken_len, decoded_len, is_over }).ok_or(Decoding::Invalid)
    }

    fn begins_another(&mut self, _: &[u8]) -> Option<bool> {
        Some(false)
    }
}

/// Frames of zstd.
struct Zstd {
    decoder: zstd::stream::raw::Decoder<'static>,
    window_max: u64,
}

impl Zstd {
    fn new(window_max: u64) -> Option<Self> {
        let mut decoder = zstd::stream::raw::Decoder::new().ok()?;
        let window_max = window_max.min(ZSTD_WINDOW_MAX);
        decoder.set_parameter(DParameter::WindowLogMax(window_max.checked_ilog2()?)).ok()?;
        Some(Self { decoder, window_max })
    }

    /// Returns the result for an error of the decoder.
    fn result(&self, error: &std::io::Error) -> Decoding {
        let is_limited = self.window_max < ZSTD_WINDOW_MAX && error.to_string() == ZSTD_WINDOW_ERROR;
        if is_limited { Decoding::Limit } else { Decoding::Invalid }
    }
}

impl Stream for Zstd {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Decoding> {
        let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
        let wanted_len = self.decoder.run(&mut input, &mut output).map_err(|error| self.result(&error))?;
        Ok(Step { taken_len: input.pos(), decoded_len: output.pos(), is_over: wanted_len == 0 })
    }

    /// A body has several frames, of which some are skipped (RFC 8878 section 3.1).
    fn begins_another(&mut self, octets: &[u8]) -> Option<bool> {
        const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
        let begins = match octets {
            [first @ 0x50..=0x5f, rest @ ..] => [*first, 0x2a, 0x4d, 0x18].get(1..)?.starts_with(rest),
            _ => FRAME.starts_with(octets),
        };
        if begins && octets.len() < FRAME.len() { None } else { Some(begins) }
    }
}

/// Returns the decoder of a coding whose window has up to `window_max` octets; `None` for an unknown one.
fn stream(coding: Coding, window_max: u64) -> Option<Box<dyn Stream>> {
    let window_max = window_max.max(WINDOW_MIN);
    Some(match coding {
        Coding::Brotli => Box::new(Brotli::new(window_max)),
        Coding::Zstd => Box::new(Zstd::new(window_max)?),
        _ => Box::new(Inflate::new(coding)?),
    })
}

/// Decodes octets, and passes the decoded ones to `out`, as long as `permits` accepts the parts of the body, and their window
/// has up to `window_max` octets, or 256 KiB.
///
/// # Errors
///
/// Returns an error of `out`.
pub(super) fn decode(
    (coding, window_max): (Coding, u64),
    inner: &mut dyn Read,
    permits: &mut dyn FnMut(&Part<'_>) -> bool,
    out: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<Decoding, Failure> {
    let Some(stream) = stream(coding, window_max) else { return Ok(Decoding::Unsupported) };
    let mut unpacker = Unpacker::new(stream);
    let (mut buffer, mut outcome, mut decoded_len) = (vec![0; BUFFER_LEN], Ok(()), 0);
    loop {
        let octets = match inner.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => buffer.get(..len).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        unpacker.add(octets, &mut |part| {
            if !permits(&part) {
                return false;
            }
            if let Part::Octets(octets) = part {
                decoded_len += octets.len();
                outcome = out(octets);
            }
            outcome.is_ok()
        });
        std::mem::replace(&mut outcome, Ok(()))?;
        if unpacker.is_over() {
            break;
        }
    }
    Ok(match unpacker.result() {
        // A head is not content.
        Decoding::Cut if decoded_len == 0 => Decoding::Incomplete,
        result => result,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn decoded(coding: Coding, octets: &[u8], mut len_max: usize) -> (Decoding, Vec<u8>) {
        let mut out = Vec::new();
        let mut permits = |part: &Part<'_>| match part {
            Part::Octets(octets) => match len_max.checked_sub(octets.len()) {
                Some(left) => {
                    len_max = left;
                    true
                }
                None => false,
            },
            _ => true,
        };
        let result = decode((coding, u64::MAX), &mut &octets[..], &mut permits, &mut |octets| {
            out.extend_from_slice(octets);
            Ok(())
        });
        (result.unwrap(), out)
    }

    fn encoded(text: &[u8]) -> Vec<(Coding, Vec<u8>)> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(text).unwrap();
        zlib.write_all(text).unwrap();
        raw.write_all(text).unwrap();
        vec![
            (Coding::Gzip, gzip.finish().unwrap()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, raw.finish().unwrap()),
            (Coding::Zstd, zstd::stream::encode_all(text, 3).unwrap()),
        ]
    }

    /// `some text ` 500 times, as encoded by the library of Google in Node.js, in hexadecimal digits.
    const BROTLI: &str = "1b8713f8051c72a477095b50501c180a80b300d0584c1f";

    fn brotli() -> Vec<u8> {
        let digits = BROTLI.as_bytes();
        let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(octet).collect()
    }

    #[test]
    fn codings_are_decoded_up_to_their_end_or_the_last_octet() {
        let text = b"some text ".repeat(500);
        let mut all = encoded(&text);
        all.push((Coding::Brotli, brotli()));
        for (coding, octets) in all {
            assert_eq!(decoded(coding, &octets, 5000), (Decoding::Decoded, text.clone()), "{coding:?}");
            assert_eq!(decoded(coding, &octets, 4999).0, Decoding::Limit, "{coding:?}");
            for len in 0..octets.len() {
                // A prefix of no octets, or one of which the checksum is missing, is not a whole stream.
                let (result, part) = decoded(coding, &octets[..len], 5000);
                let expected = if part.is_empty() { Decoding::Incomplete } else { Decoding::Cut };
                assert_eq!(result, expected, "{coding:?}: {len} of {} octets", octets.len());
                assert!(text.starts_with(&part));
            }
            for after in [&b"\0\0\0\0\0"[..], b"\0", b"\x28\xb5", b"\x1f", b"<html></html>"] {
                let with_more = [&octets[..], after].concat();
                assert_eq!(
                    decoded(coding, &with_more, 5000),
                    (Decoding::Trailing, text.clone()),
                    "{coding:?}"
                );
            }
        }
    }

    #[test]
    fn gzip_and_zstd_have_several_streams() {
        for (coding, octets) in encoded(b"some text ") {
            let expected = match coding {
                Coding::Deflate => (Decoding::Trailing, b"some text ".to_vec()),
                _ => (Decoding::Decoded, b"some text some text ".to_vec()),
            };
            assert_eq!(decoded(coding, &octets.repeat(2), 5000), expected, "{coding:?}");
        }
        let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let text = zstd::stream::encode_all(&b"text"[..], 3).unwrap();
        let frames = [&skipped[..], &text, &skipped].concat();
        assert_eq!(decoded(Coding::Zstd, &frames, 5000), (Decoding::Decoded, b"text".to_vec()));
    }

    #[test]
    fn damaged_octets_are_invalid() {
        for (coding, mut octets) in encoded(&b"some text ".repeat(500)) {
            octets[0] ^= 0x07;
            assert_eq!(decoded(coding, &octets, 5000).0, Decoding::Invalid, "{coding:?}");
        }
    }

    /// Streams with the largest windows are decoded only if they are permitted; then the decoder takes the window, and what
    /// the tables of a stream may take.
    #[test]
    fn windows_are_limited() {
        let mut frame = zstd::stream::raw::Encoder::new(3).unwrap();
        frame.set_parameter(zstd::stream::raw::CParameter::WindowLog(23)).unwrap();
        let mut zstd = zstd::stream::zio::Writer::new(Vec::new(), frame);
        zstd.write_all(&b"some text ".repeat(500)).unwrap();
        zstd.finish().unwrap();
        // The header of a window of 16 MiB, and a metablock of 16 MiB without compression that is cut.
        let brotli = [&[0xcf, 0xff, 0xff, 0xff][..], &[7; 100]].concat();
        for (coding, octets, window) in
            [(Coding::Zstd, zstd.into_inner().0, 8 << 20), (Coding::Brotli, brotli, 16 << 20)]
        {
            let run = |window_max| {
                crate::heap::peak_of(|| {
                    decode((coding, window_max), &mut &octets[..], &mut |_| true, &mut |_| Ok(())).unwrap()
                })
            };
            let (small, result) = run(window - 1);
            assert!(result == Decoding::Limit && small < 256 << 10, "{coding:?}: {result:?}, {small} bytes");
            let (large, result) = run(window);
            println!("{coding:?}: {small} and {large} bytes");
            assert!(result != Decoding::Limit && large as u64 <= window + (4 << 20), "{coding:?}: {large}");
            // The memory of zstd is not that of this allocator.
            assert!(large as u64 > window || coding == Coding::Zstd, "{large}");
        }
        assert_eq!([Brotli::window(0), Brotli::window(1), Brotli::window(0x21)], [1 << 16, 1 << 17, 1 << 10]);
    }

    #[test]
    fn fields_name_one_coding() {
        for (field, coding) in [
            ("gzip", Some(Coding::Gzip)),
            (" X-GZip ", Some(Coding::Gzip)),
            ("identity, br", Some(Coding::Brotli)),
            ("zstd", Some(Coding::Zstd)),
            ("Deflate", Some(Coding::Deflate)),
            ("gzip, br", Some(Coding::Unknown)),
            ("aes128gcm", Some(Coding::Unknown)),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(Coding::of_field(field), coding, "{field}");
        }
    }
}
