//! Captures in gzip (RFC 1952) and zstd (RFC 8878), identified by their first octets.
//!
//! Consecutive members or frames are read as one capture, as in the tools of both formats.

use super::error::Error;
use super::head::Method;
use super::input::Input;
use super::memory::Memory;
use crate::base::Limits;

/// Number of octets of compressed data per read.
#[cfg(feature = "compression")]
const INPUT_LEN: usize = 64 << 10;

/// Memory of a gzip decompressor, in bytes: its window of 32 KiB, tables, and a buffer for compressed data.
#[cfg(feature = "compression")]
const GZIP_BYTES: u64 = INPUT_LEN as u64 + (96 << 10);

/// Returns an input that yields the decompressed content of `input`. `head` contains the octets that were
/// already read from `input`.
///
/// # Errors
///
/// Returns [`Error::Compressed`] in a build without the feature `compression`, and [`Error::Memory`] if there
/// is not enough memory for a decompressor.
#[cfg(feature = "compression")]
pub(super) fn decompressed(
    input: Input,
    head: Vec<u8>,
    method: Method,
    limits: &Limits,
    memory: &Memory,
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

/// Returns [`Error::Compressed`], because a build without the feature `compression` cannot decompress.
#[cfg(not(feature = "compression"))]
pub(super) fn decompressed(
    input: Input,
    _: Vec<u8>,
    method: Method,
    _: &Limits,
    _: &Memory,
) -> Result<Input, Error> {
    Err(Error::Compressed { path: input.path().to_owned(), method: method.name() })
}

/// Decompressor whose memory charge is released when it is dropped.
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
