//! Inputs that are not files of the operating system.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Inputs that are not files of the operating system, such as objects in object storage. A source opens them by their path,
/// which may be a URL, as it opens files: it reads an input again from its beginning, or from where it was closed.
///
/// ```
/// use std::io::{self, Cursor, Read};
/// use std::ops::Range;
/// use std::path::Path;
/// use std::sync::Arc;
/// use flowgauge::source::{FileSource, SourceConfig, Storage};
///
/// /// One capture in memory.
/// #[derive(Debug)]
/// struct InMemory(Vec<u8>);
///
/// impl Storage for InMemory {
///     fn find(&self, path: &Path) -> Option<u64> {
///         (path == Path::new("memory:web")).then_some(self.0.len() as u64)
///     }
///
///     fn open(&self, _: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
///         let octets = self.0.get(range.start as usize..range.end as usize).unwrap_or_default();
///         Ok(Box::new(Cursor::new(octets.to_vec())))
///     }
/// }
///
/// let capture = InMemory(std::fs::read("examples/data/web.pcap")?);
/// let config = SourceConfig::default().storage(Arc::new(capture) as Arc<dyn Storage>);
/// assert_eq!(flowgauge::records(FileSource::open_with("memory:web", config)?).count(), 27);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns the length of an input in octets; `None` if the path is that of a file.
    fn find(&self, path: &Path) -> Option<u64>;

    /// Opens a range of octets of an input that [`find`](Self::find) has found. The reader ends at the end of the range, and
    /// early once the stop handle of the source is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be opened. The path need not be part of the message.
    fn open(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>>;
}
