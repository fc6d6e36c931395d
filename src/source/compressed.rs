//! Captures in gzip (RFC 1952) and zstd (RFC 8878), told by their first octets.
//!
//! Several members or frames after each other read as one capture, as the tools of both formats have it.

use super::error::Error;
use super::head::Method;
use super::input::Input;
use super::memory::Memory;
use crate::base::Limits;

/// Octets of compressed data that are read at once.
#[cfg(feature = "compression")]
const INPUT_LEN: usize = 64 << 10;

/// What gzip keeps: its window of 32 KiB, tables, and the compressed data that was read.
#[cfg(feature = "compression")]
const GZIP_BYTES: u64 = INPUT_LEN as u64 + (96 << 10);

/// What the compressed `input` holds; `head` was read from it.
///
/// # Errors
///
/// [`Error::Compressed`] in a build without the feature `compression`; [`Error::Memory`] if there is none for a
/// decompressor.
#[cfg(feature = "compression")]
pub(super) fn decompressed(
    input: Input,
    head: Vec<u8>,
    method: Method,
    (limits, memory): (&Limits, &Memory),
) -> Result<Input, Error> {
    use std::io::BufReader;

    use super::zstd::ZstdReader;

    let mut charge = memory.charge();
    let fixed_bytes = if method == Method::Gzip { GZIP_BYTES } else { INPUT_LEN as u64 };
    charge.set(fixed_bytes).map_err(|refused| Error::memory(input.path(), refused))?;
    input.wrapped(head, |reader| {
        let reader = BufReader::with_capacity(INPUT_LEN, reader);
        Ok(match method {
            Method::Gzip => {
                Box::new(Charged { inner: flate2::bufread::MultiGzDecoder::new(reader), _charge: charge })
            }
            Method::Zstd => Box::new(ZstdReader::new(reader, limits.zstd_window_len_max, charge)?),
        })
    })
}

/// As above.
#[cfg(not(feature = "compression"))]
pub(super) fn decompressed(
    input: Input,
    _: Vec<u8>,
    method: Method,
    _: (&Limits, &Memory),
) -> Result<Input, Error> {
    Err(Error::Compressed { path: input.path().to_owned(), method: method.name() })
}

/// A reader whose memory is given back when it goes.
#[cfg(feature = "compression")]
struct Charged<R> {
    inner: R,
    _charge: super::memory::Charge,
}

#[cfg(feature = "compression")]
impl<R: std::io::Read> std::io::Read for Charged<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buffer)
    }
}
