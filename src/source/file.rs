//! One capture: read in blocks, frames described where they lie.

use std::io::Read;
use std::path::Path;

use super::capture::Capture;
use super::config::SourceConfig;
use super::error::Error;
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::stats::SourceStats;
use super::warning::Warning;
use super::{Interface, Source};
use crate::base::FrameBatch;

/// One capture file or stream: pcap or pcapng, plain or compressed, told by its content and never by its name.
///
/// Each batch is filled by one read of [`Limits::batch_len`](crate::base::Limits::batch_len) octets, and its frames lie where the read put them; only
/// the record that the block's end cuts is moved, to the start of the next. A pipe is not waited upon: what one read
/// returned is delivered if it holds a frame. Holds one block's partial record, at most
/// [`Limits::block_len_max`](crate::base::Limits::block_len_max) octets, besides the caller's batch.
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
    capture: Capture,
    interfaces: Interfaces,
}

impl FileSource {
    /// Opens a capture with the default limits.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, SourceConfig::default())
    }

    /// Opens a capture and reads its header.
    ///
    /// # Errors
    ///
    /// [`Error`] if the path cannot be opened or read, is a directory, is empty, or holds no capture that this build
    /// can read; if its compression takes a window or memory beyond the limits.
    pub fn open_with(path: impl AsRef<Path>, config: impl Into<SourceConfig>) -> Result<Self, Error> {
        Self::begin(config, |config, memory| Capture::open(path.as_ref(), &config.limits, memory))
    }

    /// Reads a capture from any reader, such as a socket or a `Cursor`. Needs no buffering around it. Waits for the
    /// capture's header.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn from_reader(reader: impl Read + Send + 'static) -> Result<Self, Error> {
        Self::from_reader_with(reader, SourceConfig::default())
    }

    /// As [`from_reader`](Self::from_reader), with limits.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn from_reader_with(
        reader: impl Read + Send + 'static,
        config: impl Into<SourceConfig>,
    ) -> Result<Self, Error> {
        let path = Path::new("(stream)");
        Self::begin(config, |config, memory| Capture::from_reader(reader, path, &config.limits, memory))
    }

    /// Reads a capture from standard input. Waits for the capture's header.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn stdin() -> Result<Self, Error> {
        Self::stdin_with(SourceConfig::default())
    }

    /// As [`stdin`](Self::stdin), with limits.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn stdin_with(config: impl Into<SourceConfig>) -> Result<Self, Error> {
        Self::begin(config, |config, memory| Capture::stdin(&config.limits, memory))
    }

    fn begin(
        config: impl Into<SourceConfig>,
        open: impl FnOnce(&SourceConfig, &Memory) -> Result<Capture, Error>,
    ) -> Result<Self, Error> {
        let config = config.into();
        let memory = Memory::new(&config);
        let mut capture = open(&config, &memory)?;
        let mut interfaces = Interfaces::new(config.limits.interface_count_max, &memory);
        capture.number_interfaces(&mut interfaces);
        Ok(Self { capture, interfaces })
    }

    /// The path; `-` for standard input, `(stream)` for a reader.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.capture.path()
    }
}

impl Source for FileSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error> {
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
