//! Single capture: read in blocks, with frames described in place.

use std::io::Read;
use std::path::Path;

use super::capture::Capture;
use super::config::SourceConfig;
use super::contents::Contents;
use super::error::Error;
use super::interfaces::Interfaces;
use super::stats::SourceStats;
use super::warning::Warning;
use super::{Interface, Next, Source};
use crate::base::FrameBatch;

/// Capture file or stream: pcap or pcapng, plain or compressed, identified by its content and never by its
/// name.
///
/// Each batch is filled by one read of [`Limits::batch_len`](crate::base::Limits::batch_len) octets, and its
/// frames are not copied; only a record that extends beyond the end of the block is moved to the start of the
/// next block. The source does not wait for more data of a pipe: the result of one read is delivered if it
/// contains a frame. Besides the caller's batch, the source holds one partial record of at most
/// [`Limits::block_len_max`](crate::base::Limits::block_len_max) octets.
///
/// ```no_run
/// use flowgauge::base::FrameBatch;
/// use flowgauge::source::{FileSource, Next, Source};
///
/// let mut source = FileSource::open("day.pcapng.gz")?;
/// let mut batch = FrameBatch::new();
/// while source.next_batch(&mut batch)? == Next::Frames {
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
    capture: Capture,
    interfaces: Interfaces,
}

impl FileSource {
    /// Opens a capture file with the default limits.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, SourceConfig::default())
    }

    /// Opens a capture file and reads its header, with the limits and the stop handle of `config`.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the path cannot be opened or read, is a directory, is empty, or holds no
    /// capture that this build can read, or if decompression requires a window or memory beyond the limits.
    pub fn open_with(path: impl AsRef<Path>, config: impl Into<SourceConfig>) -> Result<Self, Error> {
        Self::from_contents(Contents::open(path, config)?)
    }

    /// Reads a capture from any reader, such as a socket or a `Cursor`. A buffered reader is not necessary.
    /// Waits for the header of the capture.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn from_reader(reader: impl Read + Send + 'static) -> Result<Self, Error> {
        Self::from_reader_with(reader, SourceConfig::default())
    }

    /// Reads a capture from any reader as [`from_reader`](Self::from_reader) does, with the limits and the
    /// stop handle of `config`.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn from_reader_with(
        reader: impl Read + Send + 'static,
        config: impl Into<SourceConfig>,
    ) -> Result<Self, Error> {
        Self::from_contents(Contents::from_reader(reader, config)?)
    }

    /// Reads a capture from standard input. Waits for the header of the capture.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn stdin() -> Result<Self, Error> {
        Self::stdin_with(SourceConfig::default())
    }

    /// Reads a capture from standard input as [`stdin`](Self::stdin) does, with the limits and the stop
    /// handle of `config`.
    ///
    /// # Errors
    ///
    /// Same as for [`open_with`](Self::open_with).
    pub fn stdin_with(config: impl Into<SourceConfig>) -> Result<Self, Error> {
        Self::from_contents(Contents::stdin(config)?)
    }

    /// Reads the capture in an input whose first octets were examined.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the input is empty, cannot be read, or holds no capture that this build can read.
    pub fn from_contents(contents: Contents) -> Result<Self, Error> {
        let mut interfaces = contents.interfaces();
        let mut capture = Capture::of(contents)?;
        capture.number_interfaces(&mut interfaces);
        Ok(Self { capture, interfaces })
    }

    pub(super) const fn capture(&self) -> &Capture {
        &self.capture
    }

    pub(super) const fn capture_mut(&mut self) -> &mut Capture {
        &mut self.capture
    }

    /// Returns the path of the capture; `-` for standard input, `(stream)` for a reader.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.capture.path()
    }
}

impl Source for FileSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        self.capture.fill(batch, &mut self.interfaces)
    }

    fn warnings(&self) -> &[Warning] {
        self.capture.warnings()
    }

    fn stats(&self) -> SourceStats {
        self.capture.stats()
    }

    fn interfaces(&self) -> &[Interface] {
        self.interfaces.as_slice()
    }

    fn progress(&self) -> u64 {
        self.capture.progress()
    }

    fn total_len(&self) -> Option<u64> {
        self.capture.total_len()
    }
}

#[cfg(test)]
mod tests;
