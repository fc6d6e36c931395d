//! Errors that the caller has to resolve: a file that is not a capture, or one that cannot be opened.

use std::fmt;
use std::io;
#[cfg(feature = "net")]
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::memory::Refused;

/// Reason that a source could not be opened or could not continue.
///
/// The message of each error is one line, which contains the path if the error concerns a file. Damage within
/// a capture is not an error, but is reported as a [`Warning`](super::Warning).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system returned an error when the file or the socket was opened or read.
    Io {
        /// Path of the file; for a socket, its transport protocol and address, such as `udp 127.0.0.1:4789`.
        path: PathBuf,
        /// Error of the operating system.
        error: Arc<io::Error>,
    },
    /// The path is a directory.
    Directory {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The input is empty.
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The input does not start with the header of a capture format.
    NotACapture {
        /// Path of the file.
        path: PathBuf,
        /// Apparent content of the input, such as `text`.
        looks_like: &'static str,
    },
    /// The input is compressed, and this build cannot decompress.
    Compressed {
        /// Path of the file.
        path: PathBuf,
        /// Compression method: `gzip` or `zstd`.
        method: &'static str,
    },
    /// The input can only be read from its beginning, because it is compressed, a pipe or a device.
    Indivisible {
        /// Path of the input.
        path: PathBuf,
    },
    /// The capture format has an unsupported version.
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Capture format: `pcap` or `pcapng`.
        format: &'static str,
        /// Major version of the capture format.
        major: u16,
        /// Minor version of the capture format.
        minor: u16,
    },
    /// More compressed files overlap in time than
    /// [`Limits::open_file_count_max`](crate::base::Limits::open_file_count_max).
    TooManyOpenFiles {
        /// Path of the file that could not be opened.
        path: PathBuf,
        /// Maximum number of open files.
        limit: u32,
    },
    /// A zstd frame needs a longer window than
    /// [`Limits::zstd_window_len_max`](crate::base::Limits::zstd_window_len_max).
    ZstdWindow {
        /// Path of the file.
        path: PathBuf,
        /// Length of the required window in bytes.
        window_len: u64,
        /// Maximum length of a window in bytes.
        limit: u32,
    },
    /// The capture needs more memory than remains of the limit for all captures together.
    Memory {
        /// Path of the file that could not be read further.
        path: PathBuf,
        /// Number of additional bytes that are needed.
        needed_bytes: u64,
        /// Memory limit for all captures together, in bytes:
        /// [`Limits::source_bytes_max`](crate::base::Limits::source_bytes_max), and no more than a quarter of
        /// the budget.
        max_bytes: u64,
    },
    /// The list of files is empty.
    NoFiles,
    /// The process has no permission to capture on an interface or to open a raw socket. On Linux, it needs the
    /// capability `CAP_NET_RAW`.
    Permission {
        /// Name of the network interface or of the address.
        name: String,
    },
    /// The capture library libpcap returned an error (feature `live`).
    Live {
        /// Name of the network interface.
        device: String,
        /// Error message of the capture library.
        message: String,
    },
    /// A TUN or TAP device cannot be opened, read or written, or was removed (feature `tun`).
    Tun {
        /// Name of the network interface.
        device: String,
        /// Problem, with the error of the operating system and its probable cause.
        message: String,
    },
}

impl Error {
    pub(super) fn memory(path: &Path, refused: Refused) -> Self {
        let Refused { needed_bytes, max_bytes } = refused;
        Self::Memory { path: path.to_owned(), needed_bytes, max_bytes }
    }

    /// Converts a read error of a decompressor to an [`Error`] if the window was too long, memory was
    /// refused, or the underlying read failed. Otherwise, the compressed data is damaged, and the read error
    /// is returned unchanged.
    #[cfg(feature = "compression")]
    pub(super) fn of_decompressor(path: &Path, error: io::Error) -> Result<Self, io::Error> {
        use super::zstd::WindowTooLong;
        error
            .downcast()
            .map(|WindowTooLong { window_len, limit }| Self::ZstdWindow {
                path: path.to_owned(),
                window_len,
                limit,
            })
            .or_else(|error| error.downcast().map(|refused: Refused| Self::memory(path, refused)))
            .or_else(|error| error.downcast().map(|ReadFailed(error)| Self::io(path, error)))
    }

    /// Returns the read error unchanged, because a build without the feature `compression` has no
    /// decompressor.
    #[cfg(not(feature = "compression"))]
    pub(super) fn of_decompressor(_: &Path, error: io::Error) -> Result<Self, io::Error> {
        Err(error)
    }

    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::IsADirectory {
            Self::Directory { path: path.to_owned() }
        } else {
            Self::Io { path: path.to_owned(), error: error.into() }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Directory { path } => write!(f, "{}: is a directory, not a capture file", path.display()),
            Self::Empty { path } => write!(f, "{}: is empty, not a capture file", path.display()),
            Self::NotACapture { path, looks_like } => {
                write!(f, "{}: is not a pcap or pcapng capture: it looks like {looks_like}", path.display())
            }
            Self::Indivisible { path } => write!(
                f,
                "{}: can only be read from its beginning; only an uncompressed file can be read in parts",
                path.display()
            ),
            Self::Compressed { path, method } => write!(
                f,
                "{}: is compressed with {method}; decompress it, or build with the feature `compression`",
                path.display()
            ),
            Self::Version { path, format, major, minor } => {
                write!(f, "{}: has the unsupported {format} version {major}.{minor}", path.display())
            }
            Self::TooManyOpenFiles { path, limit } => {
                write!(
                    f,
                    "{}: cannot be opened: more than {limit} compressed files overlap in time",
                    path.display()
                )
            }
            Self::ZstdWindow { path, window_len, limit } => write!(
                f,
                "{}: needs a zstd window of {window_len} bytes, but the limit is {limit} bytes",
                path.display()
            ),
            Self::Memory { path, needed_bytes, max_bytes } => write!(
                f,
                "{}: needs {needed_bytes} more bytes of memory, but the limit for all captures together is {max_bytes} bytes",
                path.display()
            ),
            Self::NoFiles => f.write_str("no capture file was specified"),
            Self::Permission { name } => {
                write!(f, "{name}: no permission to capture: the process needs the capability CAP_NET_RAW")
            }
            Self::Live { device, message } | Self::Tun { device, message } => {
                write!(f, "{device}: {message}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(&**error),
            _ => None,
        }
    }
}

/// Looks up the addresses of a socket for a transport protocol.
#[cfg(feature = "net")]
pub(super) fn resolve(protocol: &str, address: impl ToSocketAddrs) -> Result<Vec<SocketAddr>, Error> {
    address.to_socket_addrs().map(Iterator::collect).map_err(|error| socket_error(protocol, &[], error))
}

/// Returns the error of a socket for any of the addresses, of which the message names the first.
#[cfg(feature = "net")]
pub(super) fn socket_error(protocol: &str, addresses: &[SocketAddr], error: io::Error) -> Error {
    let path = match addresses {
        [] => protocol.to_owned(),
        [address, ..] => format!("{protocol} {address}"),
    };
    Error::Io { path: path.into(), error: error.into() }
}

/// Error of the reader below a decompressor. Unlike other read errors of a decompressor, it does not mean
/// that the compressed data is damaged.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_with_the_path() {
        let error = Error::NotACapture { path: "notes.txt".into(), looks_like: "text" };
        assert_eq!(error.to_string(), "notes.txt: is not a pcap or pcapng capture: it looks like text");
        let error = Error::ZstdWindow { path: "x".into(), window_len: 1 << 27, limit: 1 << 23 };
        let line = "x: needs a zstd window of 134217728 bytes, but the limit is 8388608 bytes";
        assert_eq!(error.to_string(), line);
        let error = Error::io(Path::new("x"), io::ErrorKind::IsADirectory.into());
        assert_eq!(error.to_string(), "x: is a directory, not a capture file");
    }
}
