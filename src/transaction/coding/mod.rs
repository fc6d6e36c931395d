//! Content codings of bodies (RFC 9110 section 8.4.1), decoded as the octets arrive.
//!
//! A coding is a [`Stream`], of which this library has [`Inflate`]; an [`Unpacker`] decodes a body of one or more streams
//! up to its end, to octets of another kind, or to the last octet that was captured.

mod body;
mod inflate;

pub(super) use body::Decoder;
pub use inflate::Inflate;

use super::decoding::Decoding;

/// Cost of the beginning of a stream, in decoded octets: its decoder is initialized.
const STREAM_COST: u64 = 3072;

/// Cost of a decoded octet of which digests are computed, in decoded octets.
const DIGEST_COST: u64 = 3;

/// Number of octets that are decoded at once.
const BUFFER_LEN: usize = 4096;

/// Maximum number of octets that show whether another stream begins.
const MAGIC_LEN: usize = 4;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// deflate: zlib (RFC 1950), or without its header (RFC 1951), which some servers send.
    Deflate,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
    /// An unknown one, or several.
    Unknown,
}

impl Coding {
    /// Returns the coding in a Content-Encoding field; `None` if it has none.
    #[must_use]
    pub fn of_field(field: &str) -> Option<Self> {
        let names = field.split(',').map(str::trim);
        let mut names = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
        let name = names.next()?;
        if names.next().is_some() {
            return Some(Self::Unknown);
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        Some(match () {
            () if is("gzip") || is("x-gzip") => Self::Gzip,
            () if is("deflate") => Self::Deflate,
            () if is("br") => Self::Brotli,
            () if is("zstd") => Self::Zstd,
            () => Self::Unknown,
        })
    }
}

/// Progress of a [`Stream`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Octets of the input that were decoded, or kept.
    pub taken_len: usize,
    /// Decoded octets.
    pub decoded_len: usize,
    /// True if the stream ended with the octets that were taken.
    pub is_over: bool,
}

/// A stream of a content coding that is being decoded.
pub trait Stream {
    /// Decodes octets of `input` to `output`, as many as fit.
    ///
    /// # Errors
    ///
    /// The result of the body: [`Decoding::Invalid`] if the octets are not those of the coding, [`Decoding::Limit`] if
    /// decoding them takes more memory than is permitted.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Decoding>;

    /// Returns whether octets after a stream, one to four, begin another one of the same body, which is decoded next; `None`
    /// if there are too few.
    fn begins_another(&mut self, octets: &[u8]) -> Option<bool>;
}

impl<S: Stream + ?Sized> Stream for Box<S> {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Decoding> {
        (**self).step(input, output)
    }

    fn begins_another(&mut self, octets: &[u8]) -> Option<bool> {
        (**self).begins_another(octets)
    }
}

/// Part of a body that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'o> {
    /// The beginning of a stream.
    Stream,
    /// Decoded octets.
    Octets(&'o [u8]),
}

impl Part<'_> {
    /// Returns the work that the part causes, in decoded octets without digests.
    #[must_use]
    pub const fn cost(&self, has_digests: bool) -> u64 {
        match self {
            Self::Stream => STREAM_COST,
            Self::Octets(octets) => octets.len() as u64 * if has_digests { DIGEST_COST } else { 1 },
        }
    }
}

/// Decodes a body that arrives in pieces.
#[derive(Debug)]
pub struct Unpacker<S> {
    stream: S,
    phase: Phase,
    buffer: Box<[u8; BUFFER_LEN]>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Before the first octet.
    Start,
    Within,
    /// After a stream, and these octets.
    Between([u8; MAGIC_LEN], usize),
    Ended(Decoding),
}

impl<S: Stream> Unpacker<S> {
    /// Creates a decoder of a body that begins with a stream. Allocates 4 KiB.
    #[must_use]
    pub fn new(stream: S) -> Self {
        Self { stream, phase: Phase::Start, buffer: Box::new([0; BUFFER_LEN]) }
    }

    /// Decodes octets, and passes the parts of the body to `out`. If it returns false, the limit is reached, and nothing more
    /// is decoded.
    pub fn add(&mut self, octets: &[u8], out: &mut dyn FnMut(Part<'_>) -> bool) {
        let mut rest = octets;
        loop {
            match &mut self.phase {
                _ if rest.is_empty() => return,
                Phase::Start => self.begin(out),
                Phase::Within => {
                    let taken_len = self.within(rest, out);
                    rest = rest.get(taken_len..).unwrap_or_default();
                }
                Phase::Between(magic, len) => {
                    if let (Some(place), [first, others @ ..]) = (magic.get_mut(*len), rest) {
                        *place = *first;
                        *len += 1;
                        rest = others;
                    }
                    let (magic, len) = (*magic, *len);
                    let magic = magic.get(..len).unwrap_or_default();
                    match self.stream.begins_another(magic) {
                        None if len < MAGIC_LEN => {}
                        Some(true) => {
                            self.begin(out);
                            // So few octets are not a stream.
                            self.within(magic, out);
                        }
                        _ => self.phase = Phase::Ended(Decoding::Trailing),
                    }
                }
                Phase::Ended(_) => return,
            }
        }
    }

    fn begin(&mut self, out: &mut dyn FnMut(Part<'_>) -> bool) {
        self.phase = if out(Part::Stream) { Phase::Within } else { Phase::Ended(Decoding::Limit) };
    }

    /// Decodes octets up to the end of a stream. Returns the number of octets that were taken.
    fn within(&mut self, octets: &[u8], out: &mut dyn FnMut(Part<'_>) -> bool) -> usize {
        let mut taken_len = 0;
        while let Phase::Within = self.phase {
            let rest = octets.get(taken_len..).unwrap_or_default();
            let step = match self.stream.step(rest, &mut *self.buffer) {
                Ok(step) => step,
                Err(result) => {
                    self.phase = Phase::Ended(result);
                    break;
                }
            };
            taken_len += step.taken_len;
            let decoded = self.buffer.get(..step.decoded_len).unwrap_or_default();
            if !decoded.is_empty() && !out(Part::Octets(decoded)) {
                self.phase = Phase::Ended(Decoding::Limit);
            } else if step.is_over {
                self.phase = Phase::Between([0; MAGIC_LEN], 0);
            } else if decoded.len() < BUFFER_LEN {
                // A full buffer may not be all.
                if taken_len < octets.len() && step.taken_len == 0 && decoded.is_empty() {
                    self.phase = Phase::Ended(Decoding::Invalid);
                } else if taken_len >= octets.len() {
                    break;
                }
            }
        }
        taken_len
    }

    /// Returns true if further octets change nothing.
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Returns the result, if no more octets follow.
    pub const fn result(&self) -> Decoding {
        match self.phase {
            Phase::Start | Phase::Within => Decoding::Cut,
            Phase::Between(_, 0) => Decoding::Decoded,
            Phase::Between(..) => Decoding::Trailing,
            Phase::Ended(result) => result,
        }
    }
}
