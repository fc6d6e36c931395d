//! One capture: read in blocks, frames described where they lie.

use std::io::Read;
use std::path::Path;

use super::compressed::decompressed;
use super::error::Error;
use super::head::{self, Format, Head};
use super::input::Input;
use super::stats::{SourceStats, Tally};
use super::warning::{Stop, Warning, WarningKind};
use super::{Interface, Source};
use crate::base::{FrameBatch, Limits};

/// Octets that are read at first, to see what the input is.
const HEAD_LEN: usize = 4096;

/// One capture file or stream: pcap or pcapng, plain or compressed, told by its content and never by its name.
///
/// Each batch is filled by one read of [`Limits::batch_len`] octets, and its frames lie where the read put them; only
/// the record that the block's end cuts is moved, to the start of the next. A pipe is not waited upon: what one read
/// returned is delivered if it holds a frame. Holds one block's partial record, at most
/// [`Limits::block_len_max`] octets, besides the caller's batch.
///
/// ```no_run
/// use flowgauge::base::FrameBatch;
/// use flowgauge::source::{FileSource, Source};
///
/// let mut source = FileSource::open("day.pcapng.gz")?;
/// let mut batch = FrameBatch::new();
/// while source.next_batch(&mut batch)? {
///     for frame in batch.iter() {
///         println!("{} {}", frame.timestamp, frame.wire_len);
///     }
/// }
/// for warning in source.warnings() {
///     eprintln!("{warning}");
/// }
/// # Ok::<(), flowgauge::source::Error>(())
/// ```
#[derive(Debug)]
pub struct FileSource {
    input: Input,
    format: Format,
    limits: Limits,
    /// What was read and not walked yet: the start of a record, and after opening the head of the file.
    carry: Vec<u8>,
    /// Octets of the capture ahead of `carry`.
    offset: u64,
    tally: Tally,
    warnings: Vec<Warning>,
    ended: bool,
}

impl FileSource {
    /// Opens a capture with the default limits.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Limits::DEFAULT)
    }

    /// Opens a capture and reads its header.
    ///
    /// # Errors
    ///
    /// [`Error`] if the path cannot be opened or read, is a directory, is empty, or holds no capture that this build
    /// can read.
    pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<Self, Error> {
        Self::begin(Input::open(path.as_ref())?, limits)
    }

    /// Reads a capture from any reader, such as a socket or a `Cursor`. Needs no buffering around it. Waits for the
    /// capture's header.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn from_reader(reader: impl Read + Send + 'static) -> Result<Self, Error> {
        Self::from_reader_with(reader, Limits::DEFAULT)
    }

    /// As [`from_reader`](Self::from_reader), with limits.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn from_reader_with(reader: impl Read + Send + 'static, limits: Limits) -> Result<Self, Error> {
        Self::begin(Input::stream(reader, Path::new("(stream)")), limits)
    }

    /// Reads a capture from standard input. Waits for the capture's header.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn stdin() -> Result<Self, Error> {
        Self::stdin_with(Limits::DEFAULT)
    }

    /// As [`stdin`](Self::stdin), with limits.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn stdin_with(limits: Limits) -> Result<Self, Error> {
        Self::begin(Input::stream(std::io::stdin(), Path::new("-")), limits)
    }

    fn begin(mut input: Input, limits: Limits) -> Result<Self, Error> {
        let mut head = Vec::new();
        loop {
            match head::judge(&head, input.path(), &limits)? {
                Head::Need(len) => match read_more(&mut input, &mut head, len)? {
                    More::Read => {}
                    More::End => return Err(head::too_short(&head, input.path())),
                    More::Damaged => {
                        return Err(Error::NotACapture {
                            path: input.path().to_owned(),
                            looks_like: "compressed data that is cut short or damaged near its beginning",
                        });
                    }
                },
                // Compressed twice is what nobody means.
                Head::Compressed(_) if input.decompresses() => {
                    return Err(Error::NotACapture {
                        path: input.path().to_owned(),
                        looks_like: "data that was compressed twice",
                    });
                }
                Head::Compressed(method) => input = decompressed(input, std::mem::take(&mut head), method)?,
                Head::Capture(format, start) => {
                    return Ok(Self {
                        input,
                        format,
                        limits,
                        carry: head.split_off(start),
                        offset: start as u64,
                        tally: Tally::default(),
                        warnings: Vec::new(),
                        ended: false,
                    });
                }
            }
        }
    }

    /// The path; `-` for standard input, `(stream)` for a reader.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Closes the file until it is read again, if it is a plain one; whether that was possible.
    pub(super) fn park(&mut self) -> bool {
        self.input.park()
    }

    pub(super) fn is_parked(&self) -> bool {
        self.input.is_parked()
    }

    /// How long a block should be that has `have` octets: no longer than what is left of a plain file, so that a small
    /// file makes a small block; always longer than `have` if that is below [`Limits::batch_len`].
    fn block_len(&self, have: usize) -> usize {
        let left =
            self.input.left_len().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        // One octet more, so that the read finds the end of the file.
        let useful = have.saturating_add(left).saturating_add(1).max(HEAD_LEN);
        (self.limits.batch_len as usize).max(1).min(useful)
    }

    /// Ends the source, with a warning about the record `at` octets behind the offset.
    fn end(&mut self, at: usize, kind: WarningKind) {
        self.ended = true;
        let stats = &mut self.tally.stats;
        *match kind {
            WarningKind::Truncated { .. } => &mut stats.truncated_file_count,
            WarningKind::BadBlock(_) => &mut stats.bad_block_count,
            WarningKind::Compression(_) => &mut stats.damaged_compression_count,
        } += 1;
        self.warnings.push(Warning {
            path: self.input.path().to_owned(),
            offset: self.offset + at as u64,
            frame_number: stats.frame_count + 1,
            kind,
        });
    }
}

/// What came of reading on.
enum More {
    Read,
    End,
    /// The decompressor cannot go on.
    Damaged,
}

/// Appends what one read gives to a head of which `len` octets are needed.
fn read_more(input: &mut Input, head: &mut Vec<u8>, len: usize) -> Result<More, Error> {
    let have = head.len();
    head.resize(len.max(HEAD_LEN), 0);
    let result = input.read(head.get_mut(have..).unwrap_or_default());
    let (read_len, outcome) = match result {
        Ok(0) => (0, More::End),
        Ok(read_len) => (read_len, More::Read),
        Err(_) if input.decompresses() => (0, More::Damaged),
        Err(error) => return Err(Error::io(input.path(), error)),
    };
    head.truncate(have + read_len);
    Ok(outcome)
}

impl Source for FileSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error> {
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        batch.append(&self.carry);
        self.carry.clear();
        let mut need = 0;
        let mut at = 0;
        loop {
            let (bytes, mut out) = batch.split();
            let have = bytes.len() - at;
            if have >= need {
                let (walked, stop) = self.format.walk(bytes, at, &mut out, &mut self.tally);
                at = walked;
                match stop {
                    Stop::Need(len) => need = len,
                    Stop::Bad(bad) => {
                        self.end(at, WarningKind::BadBlock(bad));
                        return Ok(!batch.is_empty());
                    }
                }
            }
            if !batch.is_empty() {
                self.carry.extend_from_slice(batch.bytes().get(at..).unwrap_or_default());
                self.offset += at as u64;
                return Ok(true);
            }
            batch.drop_front(at);
            self.offset += at as u64;
            at = 0;
            let have = batch.bytes().len();
            // A record longer than a block gets room as it comes in, not as it claims.
            let block_len = need.min(have * 2).max(self.block_len(have));
            match self.input.read(batch.space(block_len)) {
                Ok(0) => {
                    if have > 0 {
                        self.end(0, WarningKind::Truncated { need: need as u64, have: have as u64 });
                    }
                    self.ended = true;
                    batch.clear();
                    return Ok(false);
                }
                Ok(len) => batch.fill(len),
                Err(error) if self.input.decompresses() => {
                    self.end(0, WarningKind::Compression(error.kind()));
                    batch.clear();
                    return Ok(false);
                }
                Err(error) => {
                    self.ended = true;
                    batch.clear();
                    return Err(Error::io(self.input.path(), error));
                }
            }
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        self.tally.stats
    }

    fn interfaces(&self) -> &[Interface] {
        self.format.interfaces()
    }

    fn progress(&self) -> u64 {
        self.input.progress()
    }

    fn total_len(&self) -> Option<u64> {
        self.input.total_len()
    }
}

#[cfg(test)]
mod tests;
