//! Input of a capture: a file that can be closed and reopened, or a stream.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::error::Error;
#[cfg(feature = "compression")]
use super::error::ReadFailed;
use super::memory::Memory;
use super::source::End;
use super::storage::Storage;
use crate::base::StopHandle;

/// Reader that adds the number of octets read to a shared counter. A read that a signal interrupted is
/// repeated, because a decompressor would otherwise drop data that it has read but not decompressed yet.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    return result.inspect(|len| {
                        self.count.fetch_add(*len as u64, Relaxed);
                    });
                }
            }
        }
    }
}

/// Reader below a decompressor that wraps its errors in [`ReadFailed`], which distinguishes them from errors
/// of the decompressor.
#[cfg(feature = "compression")]
struct Marked<R>(R);

#[cfg(feature = "compression")]
impl<R: Read> Read for Marked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| io::Error::new(error.kind(), ReadFailed(error)))
    }
}

/// Reader for a pipe, a device or a socket, which ends once the stop handle is set. If no data is available
/// within [`POLL_INTERVAL`], a read fails with [`io::ErrorKind::WouldBlock`].
#[cfg(unix)]
struct Polled<R> {
    inner: R,
    stop: StopHandle,
}

/// Maximum time that a read from a pipe, a device or a socket waits for data: 50 ms.
#[cfg(unix)]
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

/// Converts a time to that of a call of the operating system.
#[cfg(unix)]
pub(super) fn time_spec(time: std::time::Duration) -> rustix::event::Timespec {
    rustix::event::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

/// Waits up to `wait` for data, and returns whether there is some; `false` if a signal ended the wait.
#[cfg(unix)]
pub(super) fn is_readable(input: &impl std::os::fd::AsFd, wait: std::time::Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&time_spec(wait))) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(unix)]
impl<R: Read + std::os::fd::AsFd> Read for Polled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_stopped() {
            return Ok(0);
        }
        if is_readable(&self.inner, POLL_INTERVAL)? {
            self.inner.read(buffer)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
}

#[cfg(unix)]
fn polled(file: File, stop: &StopHandle) -> impl Read + Send + 'static {
    Polled { inner: file, stop: stop.clone() }
}

#[cfg(not(unix))]
fn polled(file: File, _: &StopHandle) -> impl Read + Send + 'static {
    file
}

/// Returns standard input without a buffer, because poll does not report octets in a buffer.
#[cfg(unix)]
fn stdin_reader(stop: &StopHandle) -> io::Result<impl Read + Send + 'static> {
    use std::os::fd::AsFd as _;
    Ok(polled(File::from(io::stdin().as_fd().try_clone_to_owned()?), stop))
}

#[cfg(not(unix))]
fn stdin_reader(_: &StopHandle) -> io::Result<impl Read + Send + 'static> {
    Ok(io::stdin())
}

/// Opens a file for reading. A named pipe is opened without waiting for its writer, so that a stop handle is
/// checked while there is no writer.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
    let mut options = File::options();
    if std::fs::metadata(path)?.file_type().is_fifo() {
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options.read(true).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

enum Octets {
    /// An open regular file, which is read directly.
    Plain(File),
    /// A regular file, or input of a storage, that is temporarily closed.
    Parked,
    /// Any other input, such as an open one of a storage, or decompressed data.
    Stream(Box<dyn Read + Send>),
}

/// Octets of one capture, from a regular file, a stream or a decompressor.
pub(super) struct Input {
    octets: Octets,
    path: PathBuf,
    /// The storage of the input; `None` for a file or a stream.
    storage: Option<Arc<dyn Storage>>,
    count: Arc<AtomicU64>,
    total_len: Option<u64>,
    decompresses: bool,
    /// True if the input ends at the end of a part of a file.
    is_part: bool,
    stop: StopHandle,
}

impl Input {
    pub(super) fn open(path: &Path, memory: &Memory) -> Result<Self, Error> {
        let stop = memory.stop();
        let found = memory.storage().and_then(|storage| Some((storage, storage.find(path)?)));
        if let Some((storage, len)) = found {
            let reader = storage.open(path, 0..len).map_err(|error| Error::io(path, error))?;
            let (storage, total_len) = (Some(Arc::clone(storage)), Some(len));
            return Ok(Self { storage, total_len, ..Self::stream(reader, path, stop) });
        }
        let file = open(path).map_err(|error| Error::io(path, error))?;
        let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
        if metadata.is_dir() {
            return Err(Error::Directory { path: path.to_owned() });
        }
        if metadata.is_file() {
            let octets = Octets::Plain(file);
            let total_len = Some(metadata.len());
            Ok(Self { octets, total_len, ..Self::stream(io::empty(), path, stop) })
        } else {
            Ok(Self::stream(polled(file, stop), path, stop))
        }
    }

    pub(super) fn stdin(stop: &StopHandle) -> Result<Self, Error> {
        let path = Path::new("-");
        let reader = stdin_reader(stop).map_err(|error| Error::io(path, error))?;
        Ok(Self::stream(reader, path, stop))
    }

    pub(super) fn stream(reader: impl Read + Send + 'static, path: &Path, stop: &StopHandle) -> Self {
        let (count, stop) = (Arc::default(), stop.clone());
        let octets = Octets::Stream(Box::new(Counted { inner: reader, count: Arc::clone(&count) }));
        Self {
            octets,
            path: path.to_owned(),
            storage: None,
            count,
            total_len: None,
            decompresses: false,
            is_part: false,
            stop,
        }
    }

    /// Returns whether the caller ended the input with the stop handle.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Returns the reason for the end of the input, which has no more octets.
    pub(super) fn end(&self) -> End {
        End::of(&self.stop)
    }

    /// Returns an input that reads from the result of `wrap`, such as a decompressor. The argument of `wrap`
    /// is a reader that returns `head`, which was already read from this input, and then the rest of this
    /// input.
    #[cfg(feature = "compression")]
    pub(super) fn wrapped(
        self,
        head: Vec<u8>,
        wrap: impl FnOnce(Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>>,
    ) -> Result<Self, Error> {
        let Self { octets, path, storage, count, total_len, stop, .. } = self;
        let inner: Box<dyn Read + Send> = match octets {
            Octets::Plain(file) => Box::new(Counted { inner: file, count: Arc::clone(&count) }),
            Octets::Parked => Box::new(io::empty()),
            Octets::Stream(reader) => reader,
        };
        let whole = Box::new(Marked(io::Cursor::new(head).chain(inner)));
        let octets = Octets::Stream(wrap(whole).map_err(|error| Error::io(&path, error))?);
        Ok(Self { octets, path, storage, count, total_len, decompresses: true, is_part: false, stop })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the input is decompressed, so that a read error may be caused by damaged compressed
    /// data.
    pub(super) fn decompresses(&self) -> bool {
        self.decompresses
    }

    /// Returns the number of octets that were read from the file or stream, before decompression.
    pub(super) fn progress(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(super) fn total_len(&self) -> Option<u64> {
        self.total_len
    }

    /// Returns the number of octets of a plain file or input of a storage that have not been read yet, according to its
    /// length when it was opened; `None` for any other input.
    pub(super) fn left_len(&self) -> Option<u64> {
        let total_len = self.total_len.filter(|_| !self.decompresses)?;
        Some(total_len.saturating_sub(self.progress()))
    }

    /// Returns a reader whose octets are counted.
    fn counted(&self, reader: Box<dyn Read + Send>) -> Octets {
        Octets::Stream(Box::new(Counted { inner: reader, count: Arc::clone(&self.count) }))
    }

    /// Opens a parked input at the offset at which it was closed.
    #[cold]
    fn reopen(&mut self) -> io::Result<()> {
        self.octets = if let Some(storage) = &self.storage {
            let len = self.total_len.unwrap_or_default();
            self.counted(storage.open(&self.path, self.progress().min(len)..len)?)
        } else {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.progress()))?;
            Octets::Plain(file)
        };
        Ok(())
    }

    /// Continues a regular file, or input of a storage, at the offset `start`, and ends it at the offset `end`, or at its end
    /// if there is none.
    pub(super) fn select(&mut self, start: u64, end: Option<u64>) -> io::Result<()> {
        if let Some(storage) = &self.storage {
            let len = self.total_len.unwrap_or_default();
            let range = start.min(len)..end.unwrap_or(len).min(len);
            let reader = storage.open(&self.path, range)?;
            self.count.store(start, Relaxed);
            self.is_part = end.is_some();
            self.octets = self.counted(reader);
            return Ok(());
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(start))?;
        self.count.store(start, Relaxed);
        self.is_part = end.is_some();
        self.octets = match end {
            Some(end) => {
                let inner = file.take(end.saturating_sub(start));
                Octets::Stream(Box::new(Counted { inner, count: Arc::clone(&self.count) }))
            }
            None => Octets::Plain(file),
        };
        Ok(())
    }

    /// Returns whether the input ends at a given offset, at which the file may continue.
    pub(super) const fn is_part(&self) -> bool {
        self.is_part
    }

    /// Returns whether the input is a regular file, or in a storage, and read as it is.
    pub(super) const fn is_plain(&self) -> bool {
        let is_stored = self.storage.is_some() && !self.decompresses && !self.is_part;
        is_stored || matches!(self.octets, Octets::Plain(_) | Octets::Parked)
    }

    /// Closes a regular file, or input of a storage, until the next read, which opens it again. Returns whether it is now
    /// closed; other inputs cannot be closed.
    pub(super) fn park(&mut self) -> bool {
        if self.is_plain() {
            self.octets = Octets::Parked;
        }
        matches!(self.octets, Octets::Parked)
    }

    pub(super) fn is_parked(&self) -> bool {
        matches!(self.octets, Octets::Parked)
    }

    /// Reads octets into `buffer` with one read, which is repeated only if a signal interrupted it. The error
    /// [`io::ErrorKind::WouldBlock`] means that a stream has no data yet; a later call can continue.
    #[inline(never)] // The loop over the blocks of a file needs the registers.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_parked() {
            self.reopen()?;
        }
        loop {
            let result = match &mut self.octets {
                Octets::Plain(file) => file.read(buffer).inspect(|len| {
                    self.count.fetch_add(*len as u64, Relaxed);
                }),
                Octets::Stream(reader) => reader.read(buffer),
                Octets::Parked => Ok(0),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Input {
    /// Reads octets as [`read`](Self::read) does, but waits while a stream has no data, until it is stopped. A stopped
    /// stream has ended.
    pub(super) fn read_when_ready(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.is_stopped() {
                        return Ok(0);
                    }
                }
                result => return result,
            }
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("path", &self.path).field("progress", &self.progress()).finish()
    }
}
