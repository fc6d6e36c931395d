//! Where octets come from: a file that can be closed and opened again, or a stream.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::error::Error;

/// Reads, and counts in a place that others can see. A read that a signal interrupted is repeated: decompressors would lose what
/// they read ahead.
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

/// An error of the reader below a decompressor, which is no damage of the compressed data.
#[cfg(feature = "compression")]
#[derive(Debug)]
pub(super) struct ReadFailed(pub(super) io::Error);

#[cfg(feature = "compression")]
impl fmt::Display for ReadFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "compression")]
impl std::error::Error for ReadFailed {}

/// Marks the errors of a reader as its own.
#[cfg(feature = "compression")]
struct Marked<R>(R);

#[cfg(feature = "compression")]
impl<R: Read> Read for Marked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| io::Error::new(error.kind(), ReadFailed(error)))
    }
}

/// Reads from a pipe, a device or a socket when there is something to read, and ends once the flag is set.
#[cfg(unix)]
struct Polled<R> {
    inner: R,
    stop: Arc<AtomicBool>,
}

/// The longest wait between two looks at the flag.
#[cfg(unix)]
const POLL_INTERVAL: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[cfg(unix)]
impl<R: Read + std::os::fd::AsFd> Read for Polled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, poll};
        while !self.stop.load(Relaxed) {
            match poll(&mut [PollFd::new(&self.inner, PollFlags::IN)], Some(&POLL_INTERVAL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.inner.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}

#[cfg(unix)]
fn polled(file: File, stop: &Arc<AtomicBool>) -> impl Read + Send + 'static {
    Polled { inner: file, stop: Arc::clone(stop) }
}

#[cfg(not(unix))]
fn polled(file: File, _: &Arc<AtomicBool>) -> impl Read + Send + 'static {
    file
}

/// Standard input without a buffer of its own, in which octets would wait that no poll tells of.
#[cfg(unix)]
fn stdin_reader(stop: &Arc<AtomicBool>) -> io::Result<impl Read + Send + 'static> {
    use std::os::fd::AsFd as _;
    Ok(polled(File::from(io::stdin().as_fd().try_clone_to_owned()?), stop))
}

#[cfg(not(unix))]
fn stdin_reader(_: &Arc<AtomicBool>) -> io::Result<impl Read + Send + 'static> {
    Ok(io::stdin())
}

enum Octets {
    /// A regular file, read directly.
    Plain(File),
    /// A regular file that was closed for the time being.
    Parked,
    /// Anything else.
    Stream(Box<dyn Read + Send>),
}

/// The input of a file source.
pub(super) struct Input {
    octets: Octets,
    path: PathBuf,
    count: Arc<AtomicU64>,
    total_len: Option<u64>,
    decompresses: bool,
    stop: Arc<AtomicBool>,
}

impl Input {
    pub(super) fn open(path: &Path, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
        if metadata.is_dir() {
            return Err(Error::Directory { path: path.to_owned() });
        }
        if metadata.is_file() {
            let octets = Octets::Plain(file);
            let total_len = Some(metadata.len());
            let (path, count, stop) = (path.to_owned(), Arc::default(), Arc::clone(stop));
            Ok(Self { octets, path, count, total_len, decompresses: false, stop })
        } else {
            Ok(Self::stream(polled(file, stop), path, stop))
        }
    }

    pub(super) fn stdin(stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        let path = Path::new("-");
        let reader = stdin_reader(stop).map_err(|error| Error::io(path, error))?;
        Ok(Self::stream(reader, path, stop))
    }

    pub(super) fn stream(reader: impl Read + Send + 'static, path: &Path, stop: &Arc<AtomicBool>) -> Self {
        let (count, stop) = (Arc::default(), Arc::clone(stop));
        let octets = Octets::Stream(Box::new(Counted { inner: reader, count: Arc::clone(&count) }));
        Self { octets, path: path.to_owned(), count, total_len: None, decompresses: false, stop }
    }

    /// Whether the caller ended the input.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Puts `head`, which was read from it, back in front, and what `wrap` makes of the whole in its place.
    #[cfg(feature = "compression")]
    pub(super) fn wrapped(
        self,
        head: Vec<u8>,
        wrap: impl FnOnce(Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>>,
    ) -> Result<Self, Error> {
        let Self { octets, path, count, total_len, stop, .. } = self;
        let inner: Box<dyn Read + Send> = match octets {
            Octets::Plain(file) => Box::new(Counted { inner: file, count: Arc::clone(&count) }),
            Octets::Parked => Box::new(io::empty()),
            Octets::Stream(reader) => reader,
        };
        let whole = Box::new(Marked(io::Cursor::new(head).chain(inner)));
        let octets = Octets::Stream(wrap(whole).map_err(|error| Error::io(&path, error))?);
        Ok(Self { octets, path, count, total_len, decompresses: true, stop })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a failure to read may be one of the compressed data.
    pub(super) fn decompresses(&self) -> bool {
        self.decompresses
    }

    /// Octets read from the file itself.
    pub(super) fn progress(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(super) fn total_len(&self) -> Option<u64> {
        self.total_len
    }

    /// Octets of capture that a plain file still had when it was opened; `None` for anything else.
    pub(super) fn left_len(&self) -> Option<u64> {
        let total_len = self.total_len.filter(|_| !self.decompresses)?;
        Some(total_len.saturating_sub(self.progress()))
    }

    /// Closes the file until it is read again; whether that was possible.
    pub(super) fn park(&mut self) -> bool {
        if matches!(self.octets, Octets::Plain(_)) {
            self.octets = Octets::Parked;
        }
        matches!(self.octets, Octets::Parked)
    }

    pub(super) fn is_parked(&self) -> bool {
        matches!(self.octets, Octets::Parked)
    }

    /// One read, repeated only if a signal interrupted it.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_parked() {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.progress()))?;
            self.octets = Octets::Plain(file);
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

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("path", &self.path).field("progress", &self.progress()).finish()
    }
}
