//! Octets of an input whose format is not known yet.

use std::io::{self, Read};
use std::path::Path;

use super::compressed::decompressed;
use super::config::SourceConfig;
use super::error::Error;
use super::head::{MAGIC_LEN, Method, compressed_twice, damaged_compression};
use super::input::Input;
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::warning::WarningKind;
use crate::base::Limits;

/// Length of the first read in octets, which identifies the format of the input.
pub(super) const HEAD_LEN: usize = 4096;

/// A file or stream whose format is not known yet: its octets, decompressed, of which the first ones can be examined before
/// it is decided how the input is read. A pipe is opened only once.
///
/// [`FileSource::from_contents`](super::FileSource::from_contents) reads the capture in it. Otherwise, [`Read`] returns the
/// octets from the first one on: it waits for those of a pipe until the stop handle is set, and then ends. An error of the
/// operating system contains an [`Error`] with the path; any other error of the reader means that the compressed data is
/// damaged.
///
/// ```
/// use flowgauge::source::{Contents, FileSource, SourceConfig};
///
/// let contents = Contents::open("examples/data/web.pcap", SourceConfig::default())?;
/// assert_eq!(contents.head().get(..4), Some(&[0x4d, 0x3c, 0xb2, 0xa1][..]));
/// let source = FileSource::from_contents(contents)?;
/// # Ok::<(), flowgauge::source::Error>(())
/// ```
#[derive(Debug)]
pub struct Contents {
    input: Input,
    head: Vec<u8>,
    /// Number of octets of the head that were read.
    at: usize,
    limits: Limits,
    memory: Memory,
}

impl Contents {
    /// Opens a file and reads its first octets, with the limits and the stop handle of `config`.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the path cannot be opened or read, is a directory, or is compressed, but not decompressed by
    /// this build or within the limits.
    pub fn open(path: impl AsRef<Path>, config: impl Into<SourceConfig>) -> Result<Self, Error> {
        Self::of(config, |memory| Input::open(path.as_ref(), memory))
    }

    /// Reads the first octets of any reader. A buffered reader is not necessary.
    ///
    /// # Errors
    ///
    /// Same as for [`open`](Self::open).
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        config: impl Into<SourceConfig>,
    ) -> Result<Self, Error> {
        Self::of(config, |memory| Ok(Input::stream(reader, Path::new("(stream)"), memory.stop())))
    }

    /// Reads the first octets of standard input.
    ///
    /// # Errors
    ///
    /// Same as for [`open`](Self::open).
    pub fn stdin(config: impl Into<SourceConfig>) -> Result<Self, Error> {
        Self::of(config, |memory| Input::stdin(memory.stop()))
    }

    fn of(
        config: impl Into<SourceConfig>,
        open: impl FnOnce(&Memory) -> Result<Input, Error>,
    ) -> Result<Self, Error> {
        let config = config.into();
        let memory = Memory::new(&config);
        Self::begin(open(&memory)?, &config.resources.limits, &memory)
    }

    /// Reads the first octets of an input, and decompresses it.
    pub(super) fn begin(mut input: Input, limits: &Limits, memory: &Memory) -> Result<Self, Error> {
        let mut head = Vec::new();
        loop {
            if head.len() < MAGIC_LEN {
                if read_more(&mut input, &mut head, MAGIC_LEN)? {
                    continue;
                }
                break;
            }
            match Method::of(&head) {
                // Double compression is treated as an error.
                Some(_) if input.decompresses() => return Err(compressed_twice(input.path())),
                Some(method) => {
                    input = decompressed(input, std::mem::take(&mut head), method, limits, memory)?;
                }
                None => break,
            }
        }
        Ok(Self { input, head, at: 0, limits: *limits, memory: memory.clone() })
    }

    /// Returns the input without the octets that were read, the first of the remaining ones, and what applies to a capture.
    pub(super) fn into_parts(mut self) -> (Input, Vec<u8>, Limits, Memory) {
        self.head.drain(..self.at);
        (self.input, self.head, self.limits, self.memory)
    }

    /// Returns the table of the interfaces of a capture, without interfaces.
    pub(super) fn interfaces(&self) -> Interfaces {
        Interfaces::new(self.limits.interface_count_max, &self.memory)
    }

    /// Returns the path of the file; `-` for standard input, `(stream)` for a reader.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Returns the first octets that were not read yet: before the first read, at least four, unless the input has fewer.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.head.get(self.at..).unwrap_or_default()
    }

    /// Returns whether the input is an uncompressed regular file, or in a [`Storage`](super::Storage), so that it can be
    /// opened again.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.input.is_plain()
    }

    /// Returns the number of octets that were read so far; for a compressed file, compressed octets.
    pub(crate) fn progress(&self) -> u64 {
        self.input.progress()
    }

    /// Returns the length of a regular file in octets.
    pub(crate) fn total_len(&self) -> Option<u64> {
        self.input.total_len()
    }

    /// Returns whether the stop handle ended the input.
    pub(crate) fn is_stopped(&self) -> bool {
        self.input.is_stopped()
    }
}

impl Read for Contents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at < self.head.len() {
            let len = self.head().read(buffer)?;
            self.at += len;
            return Ok(len);
        }
        self.input.read_when_ready(buffer).map_err(|error| {
            let path = self.input.path();
            match Error::of_decompressor(path, error) {
                Ok(error) => io::Error::other(error),
                Err(error) if self.input.decompresses() => {
                    io::Error::new(error.kind(), WarningKind::Compression(error.kind()).to_string())
                }
                Err(error) => io::Error::new(error.kind(), Error::io(path, error)),
            }
        })
    }
}

/// Appends the data of one read to `head`, the first octets of an input, of which `len` octets are needed in total. Returns
/// false at the end of the input.
pub(super) fn read_more(input: &mut Input, head: &mut Vec<u8>, len: usize) -> Result<bool, Error> {
    let have = head.len();
    head.resize(len.max(HEAD_LEN), 0);
    let result = input.read_when_ready(head.get_mut(have..).unwrap_or_default());
    head.truncate(have + *result.as_ref().unwrap_or(&0));
    match result {
        Ok(read_len) => Ok(read_len > 0),
        Err(error) => Err(match Error::of_decompressor(input.path(), error) {
            Ok(error) => error,
            Err(_) if input.decompresses() => damaged_compression(input.path()),
            Err(error) => Error::io(input.path(), error),
        }),
    }
}
