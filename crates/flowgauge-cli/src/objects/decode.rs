//! Decoding of content codings of HTTP (RFC 9110 section 8.4.1) from one file to another.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use brotli_decompressor::{BrotliDecoderParameter, Decompressor};
use flate2::bufread::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use flowgauge::row::Name;

use crate::console::Failure;

/// Octets of output that each octet of a body permits, and those that are permitted in addition. Text is rarely
/// compressed to less than a fiftieth; the formats permit a thousandth and less.
const FACTOR: u64 = 100;
const CREDIT: u64 = 1 << 20;

/// Binary logarithm of the maximum window of zstd: 8 MiB (RFC 9659).
const WINDOW_LOG_MAX: u32 = 23;

/// Result of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoding {
    Decoded,
    /// The object is not complete.
    Incomplete,
    /// The octets are not those of the coding.
    Invalid,
    /// The body decodes to more octets than permitted.
    Limit,
    /// The coding is unknown, or there are several.
    Unsupported,
}

impl Decoding {
    pub(super) const fn name(self) -> Name {
        Name(match self {
            Self::Decoded => "decoded",
            Self::Incomplete => "incomplete",
            Self::Invalid => "invalid",
            Self::Limit => "limit",
            Self::Unsupported => "unsupported",
        })
    }
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    /// An unknown one, or several.
    Unknown,
}

impl Coding {
    /// Returns the coding in a Content-Encoding field; `None` if it has none.
    pub(super) fn of_field(field: &str) -> Option<Self> {
        let names = field.split(',').map(str::trim);
        let mut names = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
        let name = names.next()?;
        if names.next().is_some() {
            return Some(Self::Unknown);
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            "br" => Self::Brotli,
            "zstd" => Self::Zstd,
            _ => Self::Unknown,
        })
    }

    /// Returns a reader of the decoded octets.
    fn reader<'r>(self, inner: impl BufRead + 'r) -> io::Result<Option<Box<dyn Read + 'r>>> {
        Ok(Some(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(inner)),
            Self::Deflate => Box::new(Inflate::new(inner)?),
            Self::Brotli => {
                let mut decoder = Decompressor::new(inner, 1 << 14);
                // A window of up to 16 MiB; large windows are no part of the coding (RFC 7932).
                decoder.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
                Box::new(decoder)
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(inner)?;
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Box::new(decoder)
            }
            Self::Unknown => return Ok(None),
        }))
    }
}

/// Decoder of zlib, or of deflate without its header, which some servers send. Those of `flate2` accept a stream without its
/// end.
struct Inflate<R> {
    inner: R,
    stream: Decompress,
    is_over: bool,
}

impl<R: BufRead> Inflate<R> {
    fn new(mut inner: R) -> io::Result<Self> {
        // From RFC 1950 section 2.2: the method is 8, and the header a multiple of 31.
        let has_header = match inner.fill_buf()? {
            [first, second, ..] => first & 15 == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0,
            _ => true,
        };
        Ok(Self { inner, stream: Decompress::new(has_header), is_over: false })
    }
}

impl<R: BufRead> Read for Inflate<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = self.inner.fill_buf()?;
            if self.is_over {
                // Octets behind the end belong to no stream.
                return if input.is_empty() { Ok(0) } else { Err(ErrorKind::InvalidData.into()) };
            }
            let (is_end, taken, decoded) =
                (input.is_empty(), self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(input, buffer, FlushDecompress::None)?;
            self.inner.consume((self.stream.total_in() - taken) as usize);
            let len = (self.stream.total_out() - decoded) as usize;
            self.is_over = status == Status::StreamEnd;
            if len > 0 {
                return Ok(len);
            }
            if is_end && !self.is_over {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Decodes octets, and passes the decoded ones to `out`, at most `len_max`.
///
/// # Errors
///
/// Returns an error of `out`.
pub(super) fn decode(
    coding: Coding,
    inner: impl Read,
    (encoded_len, len_max): (u64, u64),
    out: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<Decoding, Failure> {
    let len_max = len_max.min(encoded_len.saturating_mul(FACTOR).saturating_add(CREDIT));
    let mut reader = match coding.reader(BufReader::with_capacity(1 << 14, inner)) {
        Ok(Some(reader)) => reader,
        Ok(None) => return Ok(Decoding::Unsupported),
        Err(_) => return Ok(Decoding::Invalid),
    };
    let (mut buffer, mut len) = (vec![0; 1 << 14], 0);
    loop {
        let octets = match reader.read(&mut buffer) {
            Ok(0) => return Ok(Decoding::Decoded),
            Ok(len) => buffer.get(..len).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Ok(Decoding::Invalid),
        };
        len += octets.len() as u64;
        if len > len_max {
            return Ok(Decoding::Limit);
        }
        out(octets)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn decoded(coding: Coding, octets: &[u8], len_max: u64) -> (Decoding, Vec<u8>) {
        let mut out = Vec::new();
        let result = decode(coding, octets, (octets.len() as u64, len_max), &mut |octets| {
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
    fn codings_are_decoded_and_damage_is_noticed() {
        let text = b"some text ".repeat(500);
        let mut all = encoded(&text);
        all.push((Coding::Brotli, brotli()));
        for (coding, octets) in all {
            assert_eq!(decoded(coding, &octets, 5000), (Decoding::Decoded, text.clone()), "{coding:?}");
            assert_eq!(decoded(coding, &octets, 4999).0, Decoding::Limit, "{coding:?}");
            for len in 0..octets.len() {
                // A prefix of no octets, or one of which the checksum is missing, is no whole stream.
                let (result, part) = decoded(coding, &octets[..len], 5000);
                assert_eq!(result, Decoding::Invalid, "{coding:?}: {len} of {} octets", octets.len());
                assert!(text.starts_with(&part));
            }
        }
    }

    #[test]
    fn a_bomb_is_not_decoded() {
        for (coding, octets) in encoded(&vec![0; 4 << 20]) {
            let (result, part) = decoded(coding, &octets, u64::MAX);
            assert_eq!(result, Decoding::Limit, "{coding:?}: {} octets", octets.len());
            assert!(part.len() as u64 <= octets.len() as u64 * FACTOR + CREDIT);
        }
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
