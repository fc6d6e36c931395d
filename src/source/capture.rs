//! One capture that is being read: blocks, and the frames in them. It has no interfaces of its own.

use std::io::Read;
use std::path::Path;

use super::compressed::decompressed;
use super::error::Error;
use super::head::{self, Format, Head};
use super::input::Input;
use super::interfaces::Interfaces;
use super::memory::{Charge, Memory, Refused};
use super::stats::{SourceStats, Tally};
use super::walk::Sinks;
use super::warning::{Stop, Warning, WarningKind};
use crate::base::{FrameBatch, Limits};

/// Octets that are read at first, to see what the input is.
const HEAD_LEN: usize = 4096;

/// An open capture. Reads of several may share a table of interfaces and an account of memory.
#[derive(Debug)]
pub(super) struct Capture {
    input: Input,
    format: Format,
    limits: Limits,
    /// What was read and not walked yet: the start of a record, and after opening the head of the file.
    carry: Vec<u8>,
    /// What `carry` takes, and the part of a long record that exceeds a block.
    charge: Charge,
    /// Octets of the capture ahead of `carry`.
    offset: u64,
    tally: Tally,
    warnings: Vec<Warning>,
    ended: bool,
}

impl Capture {
    pub(super) fn open(path: &Path, limits: &Limits, memory: &Memory) -> Result<Self, Error> {
        Self::begin(Input::open(path, memory.stop())?, limits, memory)
    }

    pub(super) fn stdin(limits: &Limits, memory: &Memory) -> Result<Self, Error> {
        Self::begin(Input::stdin(memory.stop())?, limits, memory)
    }

    pub(super) fn from_reader(
        reader: impl Read + Send + 'static,
        path: &Path,
        limits: &Limits,
        memory: &Memory,
    ) -> Result<Self, Error> {
        Self::begin(Input::stream(reader, path, memory.stop()), limits, memory)
    }

    fn begin(mut input: Input, limits: &Limits, memory: &Memory) -> Result<Self, Error> {
        let mut head = Vec::new();
        loop {
            match head::judge(&head, input.path(), limits, memory)? {
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
                Head::Compressed(method) => {
                    input = decompressed(input, std::mem::take(&mut head), method, (limits, memory))?;
                }
                Head::Capture(format, start) => {
                    let (path, carry) = (input.path().to_owned(), head.split_off(start));
                    let mut charge = memory.charge();
                    charge.set(carry.capacity() as u64).map_err(|refused| Error::memory(&path, refused))?;
                    return Ok(Self {
                        input,
                        format,
                        limits: *limits,
                        carry,
                        charge,
                        offset: start as u64,
                        tally: Tally::default(),
                        warnings: Vec::new(),
                        ended: false,
                    });
                }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.input.path()
    }

    /// Closes the file until it is read again, if it is a plain one; whether that was possible.
    pub(super) fn park(&mut self) -> bool {
        self.input.park()
    }

    pub(super) fn is_parked(&self) -> bool {
        self.input.is_parked()
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.input.decompresses()
    }

    /// Reads blocks of so many octets from now on.
    pub(super) const fn set_block_len(&mut self, len: u32) {
        self.limits.batch_len = len;
    }

    /// Reads no more of it.
    pub(super) const fn stop(&mut self) {
        self.ended = true;
    }

    /// Numbers the interface that the head alone describes, if there is one.
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

    /// How long a block should be that has `have` octets: no longer than what is left of a plain file, so that a small
    /// file makes a small block; always longer than `have` if that is below [`Limits::batch_len`].
    fn block_len(&self, have: usize) -> usize {
        let left =
            self.input.left_len().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        // One octet more, so that the read finds the end of the file.
        let useful = have.saturating_add(left).saturating_add(1).max(HEAD_LEN);
        (self.limits.batch_len as usize).max(1).min(useful)
    }

    /// Ends the capture, with a warning about the record `at` octets behind the offset.
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

    /// Ends the capture with an error; what is in the batch stays there.
    fn refuse(&mut self, refused: Refused) -> Error {
        self.ended = true;
        Error::memory(self.input.path(), refused)
    }

    /// As [`Source::next_batch`](super::Source::next_batch), with the interfaces numbered in a table of the caller's.
    pub(super) fn fill(
        &mut self,
        batch: &mut FrameBatch,
        interfaces: &mut Interfaces,
    ) -> Result<bool, Error> {
        batch.clear();
        if self.ended || self.input.is_stopped() {
            return Ok(false);
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
                        return Ok(!batch.is_empty());
                    }
                    Stop::NoMemory(refused) => return Err(self.refuse(refused)),
                }
            }
            if !batch.is_empty() {
                self.carry.extend_from_slice(batch.bytes().get(at..).unwrap_or_default());
                self.offset += at as u64;
                let charged = self.charge.set(self.carry.capacity() as u64);
                return charged.map(|()| true).map_err(|refused| self.refuse(refused));
            }
            batch.drop_front(at);
            self.offset += at as u64;
            at = 0;
            let have = batch.bytes().len();
            // A record longer than a block gets room as it comes in, not as it claims.
            let usual_len = self.block_len(have);
            let block_len = need.min(have * 2).max(usual_len);
            if block_len > usual_len {
                let charged = self.charge.set((self.carry.capacity() + block_len) as u64);
                charged.map_err(|refused| self.refuse(refused))?;
            }
            match self.input.read(batch.space(block_len)) {
                Ok(0) => {
                    if have > 0 && !self.input.is_stopped() {
                        self.end(0, WarningKind::Truncated { need: need as u64, have: have as u64 });
                    }
                    self.ended = true;
                    batch.clear();
                    return Ok(false);
                }
                Ok(len) => batch.fill(len),
                Err(error) => {
                    batch.clear();
                    self.ended = true;
                    // A compressed stream that the caller ended is cut.
                    if self.input.is_stopped() {
                        return Ok(false);
                    }
                    return match Error::of_decompressor(self.input.path(), error) {
                        Ok(error) => Err(error),
                        Err(error) if self.input.decompresses() => {
                            self.end(0, WarningKind::Compression(error.kind()));
                            Ok(false)
                        }
                        Err(error) => Err(Error::io(self.input.path(), error)),
                    };
                }
            }
        }
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
        Err(error) => match Error::of_decompressor(input.path(), error) {
            Ok(error) => return Err(error),
            Err(_) if input.decompresses() => (0, More::Damaged),
            Err(error) => return Err(Error::io(input.path(), error)),
        },
    };
    head.truncate(have + read_len);
    Ok(outcome)
}
