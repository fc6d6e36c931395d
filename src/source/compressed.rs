//! Captures in gzip (RFC 1952) and zstd (RFC 8878), told by their first octets.
//!
//! Several members or frames after each other read as one capture, as the tools of both formats have it.

use super::error::Error;
use super::head::Method;
use super::input::Input;

/// Octets of compressed data that are read at once.
#[cfg(feature = "compression")]
const INPUT_LEN: usize = 64 << 10;

/// What the compressed `input` holds; `head` was read from it.
///
/// # Errors
///
/// [`Error::Compressed`] in a build without the feature `compression`.
#[cfg(feature = "compression")]
pub(super) fn decompressed(input: Input, head: Vec<u8>, method: Method) -> Result<Input, Error> {
    use std::io::BufReader;
    input.wrapped(head, |reader| {
        let reader = BufReader::with_capacity(INPUT_LEN, reader);
        Ok(match method {
            Method::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
            Method::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
        })
    })
}

/// As above.
#[cfg(not(feature = "compression"))]
pub(super) fn decompressed(input: Input, _: Vec<u8>, method: Method) -> Result<Input, Error> {
    Err(Error::Compressed { path: input.path().to_owned(), method: method.name() })
}
