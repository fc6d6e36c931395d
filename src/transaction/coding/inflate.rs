//! Streams of gzip and deflate.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};

use super::{Coding, Decoding, Step, Stream};

/// Binary logarithm of the window of deflate.
const WINDOW_BITS: u8 = 15;

/// Streams of gzip, or a stream of deflate. Some 45 KiB, allocated with the first octet.
pub struct Inflate {
    is_gzip: bool,
    stream: Option<Decompress>,
}

impl Inflate {
    /// Returns the streams of gzip or deflate; `None` for another coding.
    #[must_use]
    pub const fn new(coding: Coding) -> Option<Self> {
        match coding {
            Coding::Gzip => Some(Self { is_gzip: true, stream: None }),
            Coding::Deflate => Some(Self { is_gzip: false, stream: None }),
            _ => None,
        }
    }

    fn begun(&self, first: Option<&u8>) -> Decompress {
        if self.is_gzip {
            return Decompress::new_gzip(WINDOW_BITS);
        }
        // From RFC 1950 section 2.2: the method is 8, and the window at most 32 KiB. A block of RFC 1951 does not begin so,
        // unless it is stored after bits that are not zero.
        let has_header = first.is_none_or(|octet| octet & 15 == 8 && octet >> 4 <= 7);
        Decompress::new(has_header)
    }
}

impl Stream for Inflate {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Decoding> {
        let begun = match self.stream.take() {
            Some(stream) => stream,
            None => self.begun(input.first()),
        };
        let stream = self.stream.insert(begun);
        let (taken, decoded) = (stream.total_in(), stream.total_out());
        let status =
            stream.decompress(input, output, FlushDecompress::None).map_err(|_| Decoding::Invalid)?;
        Ok(Step {
            taken_len: (stream.total_in() - taken) as usize,
            decoded_len: (stream.total_out() - decoded) as usize,
            is_over: status == Status::StreamEnd,
        })
    }

    /// A file of gzip has several members (RFC 1952 section 2.2).
    fn begins_another(&mut self, octets: &[u8]) -> Option<bool> {
        let begins = match octets {
            _ if !self.is_gzip => Some(false),
            [0x1f] => None,
            [0x1f, 0x8b, ..] => Some(true),
            _ => Some(false),
        };
        if begins == Some(true) {
            self.stream = None;
        }
        begins
    }
}

impl fmt::Debug for Inflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflate").field("is_gzip", &self.is_gzip).finish_non_exhaustive()
    }
}
