//! State of one open capture, which is read in blocks of records. The interface table belongs to the caller.

use std::io::ErrorKind;
#[cfg(feature = "net")]
use std::io::Read;
use std::path::Path;

use super::contents::{Contents, HEAD_LEN, read_more};
use super::error::Error;
use super::head::{self, Format, Head};
use super::input::Input;
use super::interfaces::Interfaces;
use super::memory::{Charge, Memory, Refused};
use super::source::Next;
use super::stats::{SourceStats, Tally};
use super::walk::Sinks;
use super::warning::{Stop, Warning, WarningKind};
use crate::base::{FrameBatch, Limits};

/// Open capture file or stream. Several captures may share an interface table and a memory account.
#[derive(Debug)]
pub(super) struct Capture {
    input: Input,
    format: Format,
    limits: Limits,
    /// Octets that were read but not processed yet: the start of a record, or, after opening, the first
    /// octets of the file after its header.
    carry: Vec<u8>,
    /// Charge for the memory of `carry`, and of the part of a long record that exceeds a block.
    charge: Charge,
    /// Number of octets of the decompressed capture before those in `carry`.
    offset: u64,
    tally: Tally,
    warnings: Vec<Warning>,
    ended: bool,
}

impl Capture {
    pub(super) fn open(path: &Path, limits: &Limits, memory: &Memory) -> Result<Self, Error> {
        Self::of(Contents::begin(Input::open(path, memory)?, limits, memory)?)
    }

    pub(super) fn stdin(limits: &Limits, memory: &Memory) -> Result<Self, Error> {
        Self::of(Contents::begin(Input::stdin(memory.stop())?, limits, memory)?)
    }

    /// Creates the capture of an input whose first octets are known.
    pub(super) fn of(contents: Contents) -> Result<Self, Error> {
        let (mut input, mut head, limits, memory) = contents.into_parts();
        loop {
            match head::judge(&head, input.path(), &limits, &memory)? {
                Head::Need(len) => {
                    if !read_more(&mut input, &mut head, len)? {
                        return Err(head::too_short(&head, input.path()));
                    }
                }
                // What is compressed was decompressed.
                Head::Compressed => return Err(head::compressed_twice(input.path())),
                Head::Capture(format, start) => {
                    return Self::with_head(input, format, head.split_off(start), start, &limits, &memory);
                }
            }
        }
    }

    /// Creates a capture whose header ends at the offset `start`, and of which `carry` was already read behind it.
    fn with_head(
        input: Input,
        format: Format,
        carry: Vec<u8>,
        start: usize,
        limits: &Limits,
        memory: &Memory,
    ) -> Result<Self, Error> {
        let mut charge = memory.charge();
        charge.set(carry.capacity() as u64).map_err(|refused| Error::memory(input.path(), refused))?;
        Ok(Self {
            input,
            format,
            limits: *limits,
            carry,
            charge,
            offset: start as u64,
            tally: Tally::default(),
            warnings: Vec::new(),
            ended: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.input.path()
    }

    /// Closes the file until the next read, if it is an uncompressed regular file. Returns whether the file
    /// is now closed.
    pub(super) fn park(&mut self) -> bool {
        self.input.park()
    }

    pub(super) fn is_parked(&self) -> bool {
        self.input.is_parked()
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.input.decompresses()
    }

    /// Sets the length of the blocks of further reads, in octets.
    pub(super) const fn set_block_len(&mut self, len: u32) {
        self.limits.batch_len = len;
    }

    /// Continues the capture, an uncompressed regular file, with the record at the offset `start`, and ends it before the
    /// first record at or behind the offset `end`, if there is one.
    pub(super) fn select(&mut self, start: u64, end: Option<u64>) -> Result<(), Error> {
        self.input.select(start, end).map_err(|error| Error::io(self.input.path(), error))?;
        self.carry.clear();
        (self.offset, self.ended) = (start, false);
        Ok(())
    }

    /// Returns the offset behind the last complete record.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) const fn format(&self) -> &Format {
        &self.format
    }

    /// Returns whether the input is an uncompressed regular file.
    pub(super) const fn is_plain(&self) -> bool {
        self.input.is_plain()
    }

    /// Returns whether a part of a file was read to its end without damage.
    pub(super) fn is_part_over(&self) -> bool {
        self.ended && self.input.is_part() && self.warnings.is_empty()
    }

    /// Removes all counts and warnings.
    pub(super) fn forget(&mut self) {
        self.tally = Tally::default();
        self.warnings.clear();
    }

    /// Ends the capture: further reads return no frames.
    pub(super) const fn stop(&mut self) {
        self.ended = true;
    }

    /// Adds the interface that the file header describes to the table `interfaces`, if the format is pcap.
    pub(super) fn number_interfaces(&mut self, interfaces: &mut Interfaces) {
        self.format.number_interfaces(interfaces);
    }

    pub(super) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub(super) const fn stats(&self) -> SourceStats {
        self.tally.stats
    }

    pub(super) fn progress(&self) -> u64 {
        self.input.progress()
    }

    pub(super) fn total_len(&self) -> Option<u64> {
        self.input.total_len()
    }

    /// Returns the length in octets to which a block that already has `have` octets is filled. The block is
    /// no longer than the rest of an uncompressed regular file needs, so that a small file yields a small
    /// block, and longer than `have` if `have` is below [`Limits::batch_len`].
    fn block_len(&self, have: usize) -> usize {
        let left =
            self.input.left_len().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        // One octet more, so that the read detects the end of the file.
        let useful = have.saturating_add(left).saturating_add(1).max(HEAD_LEN);
        (self.limits.batch_len as usize).max(1).min(useful)
    }

    /// Ends the capture with a warning about the record that starts `at` octets after `self.offset`.
    fn end(&mut self, at: usize, kind: WarningKind) {
        self.ended = true;
        let stats = &mut self.tally.stats;
        *match kind {
            WarningKind::Truncated { .. } => &mut stats.truncated_file_count,
            WarningKind::BadBlock(_) => &mut stats.bad_block_count,
            WarningKind::Compression(_) => &mut stats.damaged_compression_count,
            WarningKind::InterfaceDown => &mut stats.interface_down_count,
            WarningKind::NotACapture(_) | WarningKind::Io(_) | WarningKind::Connection(_) => {
                &mut stats.failed_connection_count
            }
        } += 1;
        self.warnings.push(Warning {
            path: self.input.path().to_owned(),
            offset: self.offset + at as u64,
            frame_number: stats.frame_count + 1,
            kind,
        });
    }

    /// Ends the capture because memory was refused, and returns the error; the batch keeps its content.
    fn refuse(&mut self, refused: Refused) -> Error {
        self.ended = true;
        Error::memory(self.input.path(), refused)
    }

    /// Handles a failed read: a stream that has no data yet continues with the next call, any other failure
    /// ends the capture.
    #[cold]
    #[inline(never)]
    fn refused_read(&mut self, batch: &mut FrameBatch, error: std::io::Error) -> Result<Next, Error> {
        if error.kind() == ErrorKind::WouldBlock {
            self.carry.extend_from_slice(batch.bytes());
            batch.clear();
            let charged = self.charge.set(self.carry.capacity() as u64);
            return charged.map(|()| Next::Frames).map_err(|refused| self.refuse(refused));
        }
        batch.clear();
        self.ended = true;
        // A compressed stream that the caller stopped is truncated.
        if self.input.is_stopped() {
            return Ok(self.over());
        }
        match Error::of_decompressor(self.input.path(), error) {
            Ok(error) => Err(error),
            Err(error) if self.input.decompresses() => {
                self.end(0, WarningKind::Compression(error.kind()));
                Ok(self.over())
            }
            Err(error) => Err(Error::io(self.input.path(), error)),
        }
    }

    /// Returns the end of the capture, and its reason.
    fn over(&self) -> Next {
        Next::End(self.input.end())
    }

    /// Clears the batch and fills it with the next frames; adds new interfaces to the caller's table. The batch is empty
    /// if a stream has no data yet.
    pub(super) fn fill(
        &mut self,
        batch: &mut FrameBatch,
        interfaces: &mut Interfaces,
    ) -> Result<Next, Error> {
        batch.clear();
        if self.ended || self.input.is_stopped() {
            return Ok(self.over());
        }
        batch.append(&self.carry);
        self.carry.clear();
        let mut need = 0;
        let mut at = 0;
        loop {
            let (bytes, out) = batch.split();
            let have = bytes.len() - at;
            if have >= need {
                let mut sinks = Sinks { out, tally: &mut self.tally, interfaces };
                let (walked, stop) = self.format.walk(bytes, at, &mut sinks);
                at = walked;
                match stop {
                    Stop::Need(len) => need = len,
                    Stop::Bad(bad) => {
                        self.end(at, WarningKind::BadBlock(bad));
                        return Ok(if batch.is_empty() { self.over() } else { Next::Frames });
                    }
                    Stop::NoMemory(refused) => return Err(self.refuse(refused)),
                }
            }
            if !batch.is_empty() {
                self.carry.extend_from_slice(batch.bytes().get(at..).unwrap_or_default());
                self.offset += at as u64;
                let charged = self.charge.set(self.carry.capacity() as u64);
                return charged.map(|()| Next::Frames).map_err(|refused| self.refuse(refused));
            }
            batch.drop_front(at);
            self.offset += at as u64;
            at = 0;
            let have = batch.bytes().len();
            // Memory for a record longer than a block grows with the octets that arrive, not with the claimed
            // length.
            let usual_len = self.block_len(have);
            let block_len = need.min(have * 2).max(usual_len);
            if block_len > usual_len {
                let charged = self.charge.set((self.carry.capacity() + block_len) as u64);
                charged.map_err(|refused| self.refuse(refused))?;
            }
            match self.input.read(batch.space(block_len)) {
                Ok(0) => {
                    // A record that begins in a part of a file, and extends behind it, belongs to the next part.
                    if have > 0 && !self.input.is_stopped() && !self.input.is_part() {
                        self.end(0, WarningKind::Truncated { need: need as u64, have: have as u64 });
                    }
                    self.ended = true;
                    batch.clear();
                    return Ok(self.over());
                }
                Ok(len) => batch.fill(len),
                Err(error) => {
                    batch.fill(0);
                    return self.refused_read(batch, error);
                }
            }
        }
    }
}

/// Stream whose first octets are read as they arrive, for a caller that cannot wait.
#[cfg(feature = "net")]
#[derive(Debug)]
pub(super) struct NewStream {
    input: Input,
    head: Vec<u8>,
    charge: Charge,
}

/// State of a [`NewStream`] after reading what has arrived.
#[cfg(feature = "net")]
pub(super) enum Advanced {
    /// More octets are needed.
    Waiting(NewStream),
    /// The header of the capture is complete.
    Open(Box<Capture>),
    /// The stream ended before its first octet.
    End,
}

#[cfg(feature = "net")]
impl NewStream {
    /// Creates a stream; `reader` returns [`ErrorKind::WouldBlock`] if nothing has arrived.
    pub(super) fn new(reader: impl Read + Send + 'static, path: &Path, memory: &Memory) -> Self {
        let input = Input::stream(reader, path, memory.stop());
        Self { input, head: Vec::new(), charge: memory.charge() }
    }

    /// Reads what has arrived, until the header of the capture is complete. Memory grows with the octets that arrive,
    /// not with the length that they claim.
    pub(super) fn advance(mut self, limits: &Limits, memory: &Memory) -> Result<Advanced, Error> {
        loop {
            let need = match head::judge(&self.head, self.input.path(), limits, memory)? {
                Head::Need(need) => need,
                Head::Compressed => {
                    let looks_like = "compressed data, which is not read from a connection";
                    return Err(Error::NotACapture { path: self.input.path().to_owned(), looks_like });
                }
                Head::Capture(format, start) => {
                    let Self { input, mut head, charge } = self;
                    // The capture charges the rest of the head.
                    drop(charge);
                    let carry = head.split_off(start);
                    let capture = Capture::with_head(input, format, carry, start, limits, memory)?;
                    return Ok(Advanced::Open(Box::new(capture)));
                }
            };
            let have = self.head.len();
            self.head.resize(need.min(have * 2).max(HEAD_LEN), 0);
            let charged = self.charge.set(self.head.capacity() as u64);
            charged.map_err(|refused| Error::memory(self.input.path(), refused))?;
            let result = self.input.read(self.head.get_mut(have..).unwrap_or_default());
            self.head.truncate(have + *result.as_ref().unwrap_or(&0));
            match result {
                Ok(0) if self.head.is_empty() => return Ok(Advanced::End),
                Ok(0) => return Err(head::too_short(&self.head, self.input.path())),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Advanced::Waiting(self)),
                Err(error) => return Err(Error::io(self.input.path(), error)),
            }
        }
    }
}
